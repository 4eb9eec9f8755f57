/*
 * test_vfs_sim_cut.c: what a power cut, a kill and a failed sync leave of simulated files. Each
 * test goes over many seeds: what must hold holds in all, what may happen happens in some.
 */
#include "tests/support/vfs_sim.h"

#include "tests/unit/store/files.h"

#include <stdio.h>

#include "tests/support/random.h"

#define SECTOR  512u
#define SECTORS 12u
#define SEEDS   300

/* A file of SECTORS sectors, each full of one letter. */
static void fill(struct vfs *vfs, const char *path, char letter, bool synced)
{
    char text[SECTORS * SECTOR + 1];
    memset(text, letter, sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    files_write(vfs, path, text, synced);
}

/* The letter of each sector; fails if one has two. Returns how many sectors there are. */
static size_t letters(struct vfs *vfs, const char *path, char found[SECTORS + 1])
{
    size_t length = 0;
    char *text = vfs_read_file(vfs, path, FILES_BYTES_MAX, &length);
    assert_non_null(text);
    assert_int_equal(length % SECTOR, 0);
    assert_true(length <= SECTORS * SECTOR);
    for (size_t i = 0; i < length; i++) {
        found[i / SECTOR] = text[i];
        assert_int_equal(text[i], text[i / SECTOR * SECTOR]);
    }
    found[length / SECTOR] = '\0';
    free(text);
    return length / SECTOR;
}

static unsigned count_letter(const char *found, char letter)
{
    unsigned count = 0;
    for (; *found; found++) {
        count += *found == letter;
    }
    return count;
}

/* A new file system with one durable file of 'a'. */
static struct vfs_sim *begin(uint64_t seed)
{
    struct vfs_sim *sim = vfs_sim_create(seed);
    fill(vfs_sim_vfs(sim), "file", 'a', true);
    files_sync_dir(vfs_sim_vfs(sim), "/");
    return sim;
}

static struct vfs *cut(struct vfs_sim *sim, uint64_t seed)
{
    vfs_sim_power_cut(sim, seed);
    return vfs_sim_vfs(sim);
}

/* 'a' is durable, then 'b' and 'c' are written: each sector is one of them. */
static void test_sectors(void **state)
{
    (void)state;
    unsigned all[3] = {0}, some[3] = {0}, prefix = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        char found[SECTORS + 1];
        struct vfs_sim *sim = begin(seed);
        fill(vfs_sim_vfs(sim), "file", 'b', false);
        fill(vfs_sim_vfs(sim), "file", 'c', false);
        assert_int_equal(letters(cut(sim, seed), "file", found), SECTORS);
        unsigned total = 0;
        for (int i = 0; i < 3; i++) {
            unsigned count = count_letter(found, (char)('a' + i));
            total += count;
            all[i] += count == SECTORS;
            some[i] += count > 0;
        }
        assert_int_equal(total, SECTORS);
        unsigned latest = count_letter(found, 'c');
        prefix += latest > 1 && latest < SECTORS - 1 && strspn(found, "c") == latest;
        vfs_sim_destroy(sim);
    }
    assert_true(all[2] > 0 && some[0] > 0 && some[1] > 0 && some[2] > all[2] && prefix > 0);
}

/* What is left is durable: a second cut changes nothing. The same seed leaves the same. */
static void test_again(void **state)
{
    (void)state;
    unsigned differ = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        char first[SECTORS + 1], again[SECTORS + 1];
        struct vfs_sim *sim = begin(1);
        fill(vfs_sim_vfs(sim), "file", 'b', false);
        letters(cut(sim, seed), "file", first);
        letters(cut(sim, seed + 1), "file", again);
        assert_string_equal(first, again);
        vfs_sim_destroy(sim);

        sim = begin(2);
        fill(vfs_sim_vfs(sim), "file", 'b', false);
        vfs_sim_kill(sim);
        letters(cut(sim, seed), "file", again);
        assert_string_equal(first, again);
        vfs_sim_destroy(sim);
        differ += strcmp(first, "bbbbbbbbbbbb") != 0 && strcmp(first, "aaaaaaaaaaaa") != 0;
    }
    assert_true(differ > SEEDS / 10);
}

static void test_synced(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        char found[SECTORS + 1];
        struct vfs_sim *sim = begin(seed);
        fill(vfs_sim_vfs(sim), "file", 'b', true);
        letters(cut(sim, seed), "file", found);
        assert_int_equal(count_letter(found, 'b'), SECTORS);
        vfs_sim_destroy(sim);
    }
}

/* Of many versions since the sync no more than the latest few are kept; none else is ever left. */
static void test_many_versions(void **state)
{
    (void)state;
    char seen[27] = "";
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        char found[SECTORS + 1];
        struct vfs_sim *sim = begin(seed);
        for (char letter = 'b'; letter <= 'z'; letter++) {
            fill(vfs_sim_vfs(sim), "file", letter, false);
        }
        letters(cut(sim, seed), "file", found);
        for (const char *letter = found; *letter; letter++) {
            seen[*letter - 'a'] = *letter;
        }
        vfs_sim_destroy(sim);
    }
    for (char letter = 'a'; letter <= 'z'; letter++) {
        bool may = letter == 'a' || letter >= 'z' - 7;
        assert_int_equal(seen[letter - 'a'], may ? letter : '\0');
    }
}

static void test_size(void **state)
{
    (void)state;
    unsigned seen[SECTORS + 1] = {0}, zeroes = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        char found[SECTORS + 1];
        struct vfs_sim *sim = begin(seed);
        struct vfs *vfs = vfs_sim_vfs(sim);
        int fd = files_open(vfs, "file", O_RDWR);
        assert_int_equal(vfs->functions->truncate(vfs, fd, 2 * SECTOR), 0);
        assert_int_equal(vfs->functions->fdatasync(vfs, fd), 0);
        assert_int_equal(vfs->functions->allocate(vfs, fd, 6 * SECTOR), 0);
        assert_int_equal(vfs->functions->allocate(vfs, fd, 9 * SECTOR), 0);
        char text[SECTOR];
        memset(text, 'b', sizeof(text));
        assert_true(vfs_write_all(vfs, fd, text, SECTOR, 2 * SECTOR));
        size_t count = letters(cut(sim, seed), "file", found);
        seen[count]++;
        zeroes += count > 2 && found[2] == '\0';
        assert_memory_equal(found, "aa", 2);
        assert_true(count <= 2 || found[2] == 'b' || found[2] == '\0');
        assert_true(count <= 3 || found[3] == '\0'); /* not the 'a' of before the truncate */
        vfs = vfs_sim_vfs(sim);
        fd = files_open(vfs, "file", O_RDWR);
        assert_int_equal(vfs->functions->allocate(vfs, fd, 12 * SECTOR), 0);
        letters(vfs, "file", found);
        for (size_t i = count; i < 12; i++) {
            assert_int_equal(found[i], '\0'); /* nor what was written after the new end */
        }
        vfs_sim_destroy(sim);
    }
    assert_true(seen[2] > 0 && seen[6] > 0 && seen[9] > 0 && zeroes > 0);
    assert_int_equal(seen[2] + seen[6] + seen[9], SEEDS);
}

/* ---- names ---- */

static void test_create(void **state)
{
    (void)state;
    unsigned there = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct vfs_sim *sim = begin(seed);
        struct vfs *vfs = vfs_sim_vfs(sim);
        files_write(vfs, "sure", "text", true);
        files_sync_dir(vfs, "/");
        files_write(vfs, "maybe", "text", true); /* fdatasync is for the content only */
        vfs = cut(sim, seed);
        assert_true(files_hold(vfs, "sure", "text"));
        there += files_hold(vfs, "maybe", "text");
        assert_true(!files_exist(vfs, "maybe") || files_hold(vfs, "maybe", "text"));
        vfs_sim_destroy(sim);
    }
    assert_in_range(there, SEEDS / 5, SEEDS * 4 / 5);
}

/* A durable file is renamed over another: the target is always one of the two, whole. */
static void test_rename(void **state)
{
    (void)state;
    unsigned done = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct vfs_sim *sim = begin(seed);
        struct vfs *vfs = vfs_sim_vfs(sim);
        files_write(vfs, "from", "new", true);
        files_write(vfs, "to", "old", true);
        files_sync_dir(vfs, "/");
        assert_int_equal(vfs->functions->rename(vfs, "from", "to"), 0);
        vfs = cut(sim, seed);
        bool renamed = files_hold(vfs, "to", "new");
        assert_true(renamed || files_hold(vfs, "to", "old"));
        assert_int_equal(files_exist(vfs, "from"), !renamed); /* never twice, never lost */
        done += renamed;
        vfs_sim_destroy(sim);
    }
    assert_in_range(done, SEEDS / 5, SEEDS * 4 / 5);
}

/* Without a sync of the content a rename may bring a name in place before its bytes. */
static void test_rename_unsynced(void **state)
{
    (void)state;
    unsigned hollow = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct vfs_sim *sim = begin(seed);
        struct vfs *vfs = vfs_sim_vfs(sim);
        files_write(vfs, "from", "new", false);
        assert_int_equal(vfs->functions->rename(vfs, "from", "file"), 0);
        files_sync_dir(vfs, "/");
        vfs = cut(sim, seed);
        hollow += !files_hold(vfs, "file", "new");
        vfs_sim_destroy(sim);
    }
    assert_true(hollow > 0 && hollow < SEEDS);
}

/* Changes of one name: one of its states, never another; of different names: in any order. */
static void test_changes(void **state)
{
    (void)state;
    unsigned states[3] = {0}, later_only = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct vfs_sim *sim = begin(seed);
        struct vfs *vfs = vfs_sim_vfs(sim);
        files_write(vfs, "name", "first", true);
        files_sync_dir(vfs, "/");
        files_write(vfs, "early", "x", true);
        assert_int_equal(vfs->functions->unlink(vfs, "name"), 0);
        files_write(vfs, "name", "second", true);
        files_write(vfs, "late", "x", true);
        vfs = cut(sim, seed);
        int found = files_hold(vfs, "name", "first")    ? 0
                    : files_hold(vfs, "name", "second") ? 1
                                                        : 2;
        assert_true(found < 2 || !files_exist(vfs, "name"));
        states[found]++;
        later_only += files_exist(vfs, "late") && !files_exist(vfs, "early");
        vfs_sim_destroy(sim);
    }
    assert_true(states[0] > 0 && states[1] > 0 && states[2] > 0 && later_only > 0);
}

/* A file has one name, however many renames were under way. */
static void test_rename_chain(void **state)
{
    (void)state;
    unsigned at[3] = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct vfs_sim *sim = begin(seed);
        struct vfs *vfs = vfs_sim_vfs(sim);
        files_write(vfs, "a", "x", true);
        files_sync_dir(vfs, "/");
        assert_int_equal(vfs->functions->rename(vfs, "a", "b"), 0);
        assert_int_equal(vfs->functions->rename(vfs, "b", "c"), 0);
        vfs = cut(sim, seed);
        bool found[3] = {files_exist(vfs, "a"), files_exist(vfs, "b"), files_exist(vfs, "c")};
        assert_int_equal(found[0] + found[1] + found[2], 1);
        for (int i = 0; i < 3; i++) {
            at[i] += found[i];
        }
        vfs_sim_destroy(sim);
    }
    assert_true(at[0] > 0 && at[1] > 0 && at[2] > 0);
}

/* A rename that happened took its old name away, also from what had it before. */
static void test_rename_leftover(void **state)
{
    (void)state;
    unsigned alone = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct vfs_sim *sim = begin(seed);
        struct vfs *vfs = vfs_sim_vfs(sim);
        files_write(vfs, "from", "leftover", true);
        files_sync_dir(vfs, "/");
        assert_int_equal(vfs->functions->unlink(vfs, "from"), 0);
        files_write(vfs, "from", "new", true);
        assert_int_equal(vfs->functions->rename(vfs, "from", "to"), 0);
        vfs = cut(sim, seed);
        bool renamed = files_exist(vfs, "to");
        assert_true(!renamed || files_hold(vfs, "to", "new"));
        assert_false(renamed && files_exist(vfs, "from"));
        alone += renamed;
        vfs_sim_destroy(sim);
    }
    assert_true(alone > 0 && alone < SEEDS);
}

/* A directory whose name is not durable takes all that is in it away. */
static void test_directory(void **state)
{
    (void)state;
    unsigned there = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct vfs_sim *sim = begin(seed);
        struct vfs *vfs = vfs_sim_vfs(sim);
        assert_int_equal(vfs->functions->mkdir(vfs, "data"), 0);
        files_write(vfs, "data/file", "x", true);
        files_sync_dir(vfs, "data");
        vfs = cut(sim, seed);
        int result = vfs->functions->mkdir(vfs, "data");
        there += result != 0;
        assert_int_equal(files_exist(vfs, "data/file"), result != 0);
        vfs_sim_destroy(sim);
    }
    assert_true(there > 0 && there < SEEDS);
}

/* ---- the end of a process ---- */

static void test_kill(void **state)
{
    (void)state;
    unsigned kept = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct vfs_sim *sim = begin(seed);
        struct vfs *vfs = vfs_sim_vfs(sim);
        char found[SECTORS + 1];
        fill(vfs, "file", 'b', false);
        files_write(vfs, "new", "text", false);
        vfs_sim_kill(sim);
        vfs = vfs_sim_vfs(sim);
        letters(vfs, "file", found);
        assert_int_equal(count_letter(found, 'b'), SECTORS);
        assert_true(files_hold(vfs, "new", "text"));
        vfs = cut(sim, seed); /* it was there, but not for good */
        letters(vfs, "file", found);
        kept += count_letter(found, 'b') == SECTORS && files_hold(vfs, "new", "text");
        vfs_sim_destroy(sim);
    }
    assert_true(kept > 0 && kept < SEEDS / 2);
}

static void test_process_ends(void **state)
{
    (void)state;
    struct vfs_sim *sim = begin(1);
    struct vfs *old = vfs_sim_vfs(sim);
    int fd = files_open(old, "file", O_RDWR);
    assert_int_equal(old->functions->lock(old, fd), 0);
    struct vfs *vfs = cut(sim, 1);
    char byte;
    assert_errno(old->functions->pread(old, fd, &byte, 1, 0), EBADF);
    assert_errno(vfs->functions->pread(vfs, fd, &byte, 1, 0), EBADF);
    assert_errno(old->functions->fdatasync(old, fd), EBADF);
    assert_errno(old->functions->open(old, "other", O_RDWR | O_CREAT), EBADF);
    assert_errno(old->functions->mkdir(old, "other"), EBADF);
    assert_false(files_exist(vfs, "other"));
    int again = files_open(vfs, "file", O_RDWR);
    assert_int_not_equal(again, fd);
    assert_int_equal(vfs->functions->lock(vfs, again), 0);
    vfs_sim_destroy(sim);
}

/* ---- a sync that fails ---- */

static struct vfs *lose(struct vfs_sim *sim, enum vfs_sim_fault_kind kind, int fd)
{
    struct vfs *vfs = vfs_sim_vfs(sim);
    char found[SECTORS + 1];
    vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = VFS_SIM_FDATASYNC, .times = 1, .kind = kind});
    assert_errno(vfs->functions->fdatasync(vfs, fd), EIO);
    assert_int_equal(vfs->functions->fdatasync(vfs, fd), 0); /* as if nothing had been */
    letters(vfs, "file", found);
    assert_int_equal(count_letter(found, 'b'), SECTORS);
    return vfs;
}

static void test_sync_lost(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        char found[SECTORS + 1], text[SECTOR];
        struct vfs_sim *sim = begin(seed);
        int fd = files_open(vfs_sim_vfs(sim), "file", O_RDWR);
        fill(vfs_sim_vfs(sim), "file", 'b', false);
        struct vfs *vfs = lose(sim, VFS_SIM_SYNC_LOST, fd);
        memset(text, 'c', sizeof(text));
        assert_true(vfs_write_all(vfs, fd, text, SECTOR, 3 * SECTOR)); /* this one is new again */
        assert_int_equal(vfs->functions->fdatasync(vfs, fd), 0);
        letters(cut(sim, seed), "file", found);
        assert_string_equal(found, "aaacaaaaaaaa");
        vfs_sim_destroy(sim);
    }
}

static void test_sync_partly_lost(void **state)
{
    (void)state;
    unsigned kept = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        char found[SECTORS + 1], again[SECTORS + 1];
        struct vfs_sim *sim = begin(seed);
        int fd = files_open(vfs_sim_vfs(sim), "file", O_RDWR);
        fill(vfs_sim_vfs(sim), "file", 'b', false);
        lose(sim, VFS_SIM_SYNC_PARTLY_LOST, fd);
        letters(cut(sim, seed), "file", found);
        assert_int_equal(count_letter(found, 'a') + count_letter(found, 'b'), SECTORS);
        kept += count_letter(found, 'b');
        letters(cut(sim, seed + 1), "file", again);
        assert_string_equal(found, again);
        vfs_sim_destroy(sim);
    }
    assert_in_range(kept, SEEDS * SECTORS / 3, SEEDS * SECTORS * 2 / 3);
}

/* A plain failure forgets nothing: the next sync makes all durable. */
static void test_sync_fails(void **state)
{
    (void)state;
    char found[SECTORS + 1];
    struct vfs_sim *sim = begin(1);
    int fd = files_open(vfs_sim_vfs(sim), "file", O_RDWR);
    fill(vfs_sim_vfs(sim), "file", 'b', false);
    lose(sim, VFS_SIM_FAIL, fd);
    letters(cut(sim, 0), "file", found);
    assert_int_equal(count_letter(found, 'b'), SECTORS);
    vfs_sim_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sectors),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_synced),
        cmocka_unit_test(test_many_versions),
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_rename),
        cmocka_unit_test(test_rename_unsynced),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_rename_chain),
        cmocka_unit_test(test_rename_leftover),
        cmocka_unit_test(test_directory),
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_process_ends),
        cmocka_unit_test(test_sync_lost),
        cmocka_unit_test(test_sync_partly_lost),
        cmocka_unit_test(test_sync_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
