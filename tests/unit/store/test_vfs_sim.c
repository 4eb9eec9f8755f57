/* test_vfs_sim.c: the simulated files while the power is on: calls, faults, room, hook, counters.
 */
#include "tests/support/vfs_sim.h"

#include "tests/unit/store/files.h"

#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "tests/support/random.h"

#define THREADS       4
#define THREAD_ROUNDS 2000
#define CHANCES       4000
#define NAMES         6

static int setup(void **state)
{
    *state = vfs_sim_create(7);
    return 0;
}

static int teardown(void **state)
{
    vfs_sim_destroy(*state);
    return 0;
}

static void test_files(void **state)
{
    struct vfs *vfs = vfs_sim_vfs(*state);
    const struct vfs_functions *functions = vfs->functions;
    char text[8] = "";
    assert_errno(functions->open(vfs, "/file", O_RDWR), ENOENT);
    assert_errno(functions->mode(vfs, "/file"), ENOENT);
    int fd = files_open(vfs, "/file", O_RDWR | O_CREAT | O_EXCL);
    assert_int_equal(functions->mode(vfs, "/file"), 0700);
    assert_errno(functions->open(vfs, "file", O_RDWR | O_CREAT | O_EXCL), EEXIST);
    assert_int_equal(functions->pwrite(vfs, fd, "abcdef", 6, 2), 6);
    assert_int_equal(functions->pread(vfs, fd, text, 3, 3), 3);
    assert_memory_equal(text, "bcd", 3);
    assert_int_equal(functions->size(vfs, fd), 8);
    assert_int_equal(functions->truncate(vfs, fd, 5), 0);
    assert_int_equal(functions->pread(vfs, fd, text, 8, 0), 5);
    assert_memory_equal(text, "\0\0abc", 5);
    assert_int_equal(functions->allocate(vfs, fd, 7), 0); /* what was cut off does not come back */
    assert_int_equal(functions->pread(vfs, fd, text, 8, 0), 7);
    assert_memory_equal(text, "\0\0abc\0\0", 7);
    assert_int_equal(functions->allocate(vfs, fd, 2), 0);
    assert_int_equal(functions->size(vfs, fd), 7);
    assert_int_equal(functions->writeback(vfs, fd, 0, 7), 0);
    assert_int_equal(functions->readahead(vfs, fd, 0, 7), 0);
    files_close(vfs, fd);
    assert_errno(functions->close(vfs, fd), EBADF);
    assert_errno(functions->pread(vfs, fd, text, 1, 0), EBADF);
    assert_errno(functions->pread(vfs, 0, text, 1, 0), EBADF); /* one of the system's */
    fd = files_open(vfs, "file", O_RDONLY);
    assert_errno(functions->pwrite(vfs, fd, "x", 1, 0), EBADF);
    assert_errno(functions->truncate(vfs, fd, 1), EBADF);
    files_close(vfs, fd);
    files_close(vfs, files_open(vfs, "file", O_RDWR | O_TRUNC));
    assert_true(files_hold(vfs, "file", ""));
}

struct listed {
    unsigned count, file, other;
    char order[NAMES + 1];
};

static void note_entry(void *context, const char *name)
{
    struct listed *listed = context;
    listed->file += strcmp(name, "file") == 0;
    listed->other += strcmp(name, "other") == 0;
    if (listed->count < NAMES) {
        listed->order[listed->count] = name[0];
    }
    listed->count++;
}

static void test_names(void **state)
{
    struct vfs *vfs = vfs_sim_vfs(*state);
    const struct vfs_functions *functions = vfs->functions;
    struct listed listed = {0};
    assert_errno(functions->open(vfs, "data/file", O_RDWR | O_CREAT), ENOENT);
    assert_int_equal(functions->mkdir(vfs, "data"), 0);
    assert_errno(functions->mkdir(vfs, "/data/"), EEXIST);
    files_write(vfs, "data/file", "new", false);
    files_write(vfs, "/./data//other", "old", false);
    assert_errno(functions->open(vfs, "data/file/deeper", O_RDONLY), ENOTDIR);
    assert_errno(functions->open(vfs, "data/file", O_RDONLY | O_DIRECTORY), ENOTDIR);
    assert_errno(functions->open(vfs, "data", O_RDWR), EISDIR);
    assert_int_equal(functions->list(vfs, "data", note_entry, &listed), 0);
    assert_true(listed.count == 2 && listed.file == 1 && listed.other == 1);
    int fd = files_open(vfs, "data/other", O_RDONLY);
    assert_int_equal(functions->rename(vfs, "data/file", "data/other"), 0);
    assert_false(files_exist(vfs, "data/file"));
    assert_true(files_hold(vfs, "data/other", "new"));
    char text[4] = "";
    assert_int_equal(functions->pread(vfs, fd, text, 4, 0), 3); /* the replaced one is still open */
    assert_string_equal(text, "old");
    files_close(vfs, fd);
    assert_errno(functions->rename(vfs, "data/file", "data/other"), ENOENT);
    assert_errno(functions->rename(vfs, "data/other", "other"), EXDEV);
    assert_errno(functions->rename(vfs, "data", "other"), EISDIR);
    assert_errno(functions->unlink(vfs, "data"), EISDIR);
    assert_int_equal(functions->unlink(vfs, "data/other"), 0);
    assert_errno(functions->unlink(vfs, "data/other"), ENOENT);
    assert_errno(functions->sync_dir(vfs, "data/other"), ENOENT);
    assert_errno(functions->list(vfs, "data/other", note_entry, &listed), ENOENT);
    assert_int_equal(functions->list(vfs, "data", note_entry, &listed), 0);
    assert_int_equal(listed.count, 2);
}

/* The order of a list is one of chance, but the same of the same seed. */
static void test_list_order(void **state)
{
    (void)state;
    unsigned same = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct listed listed[2] = {{0}};
        for (int i = 0; i < 2; i++) {
            struct vfs_sim *sim = vfs_sim_create(seed);
            struct vfs *vfs = vfs_sim_vfs(sim);
            for (char name[2] = "a"; name[0] < 'a' + NAMES; name[0]++) {
                files_write(vfs, name, "", false);
            }
            assert_int_equal(vfs->functions->list(vfs, "/", note_entry, &listed[i]), 0);
            assert_int_equal(listed[i].count, NAMES);
            vfs_sim_destroy(sim);
        }
        assert_string_equal(listed[0].order, listed[1].order);
        same += strcmp(listed[0].order, "abcdef") == 0;
    }
    assert_true(same < 10);
}

static void test_lock(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    int first = files_open(vfs, "lock", O_RDWR | O_CREAT);
    int second = files_open(vfs, "lock", O_RDWR);
    assert_int_equal(vfs->functions->lock(vfs, first), 0);
    assert_int_equal(vfs->functions->lock(vfs, first), 0);
    assert_errno(vfs->functions->lock(vfs, second), EWOULDBLOCK);
    files_close(vfs, first);
    assert_int_equal(vfs->functions->lock(vfs, second), 0);
    vfs_sim_kill(sim);
    vfs = vfs_sim_vfs(sim);
    first = files_open(vfs, "lock", O_RDWR);
    assert_int_equal(vfs->functions->lock(vfs, first), 0);
}

static void test_direct(void **state)
{
    static _Alignas(4096) char page[4096];
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    const struct vfs_functions *functions = vfs->functions;
    int fd = files_open(vfs, "file", O_RDWR | O_CREAT | O_DIRECT);
    assert_int_equal(functions->pwrite(vfs, fd, page, 4096, 4096), 4096);
    assert_int_equal(functions->pread(vfs, fd, page, 4096, 4096), 4096);
    assert_errno(functions->pread(vfs, fd, page, 512, 4096), EINVAL);
    assert_errno(functions->pread(vfs, fd, page, 4096, 512), EINVAL);
    assert_errno(functions->pwrite(vfs, fd, page + 1, 0, 0), EINVAL);
    vfs_sim_set_direct(sim, false);
    assert_errno(functions->open(vfs, "file", O_RDONLY | O_DIRECT), EINVAL);
    files_close(vfs, files_open(vfs, "file", O_RDONLY));
}

/* ---- faults ---- */

static void test_fault_choice(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    const struct vfs_functions *functions = vfs->functions;
    int fd = files_open(vfs, "table-1", O_RDWR | O_CREAT);
    int other = files_open(vfs, "journal", O_RDWR | O_CREAT);
    unsigned rule = vfs_sim_fault(
        sim, &(struct vfs_sim_fault){
                 .op = VFS_SIM_PWRITE, .path = "table", .first = 3, .times = 2, .error = ENOSPC});
    for (int i = 1; i <= 6; i++) { /* of its own calls the third and the fourth */
        assert_int_equal(functions->pwrite(vfs, other, "x", 1, 0), 1);
        assert_int_equal(functions->size(vfs, fd), i > 1 ? 1 : 0);
        if (i == 3 || i == 4) {
            assert_errno(functions->pwrite(vfs, fd, "long", 4, 0), ENOSPC);
        } else {
            assert_int_equal(functions->pwrite(vfs, fd, "x", 1, 0), 1);
        }
    }
    assert_int_equal(vfs_sim_fault_hits(sim, rule), 2);
    rule = vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = VFS_SIM_ANY});
    assert_errno(functions->size(vfs, fd), EIO);
    assert_errno(functions->unlink(vfs, "journal"), EIO);
    vfs_sim_fault_end(sim, rule);
    assert_int_equal(functions->size(vfs, fd), 1);
    assert_true(files_exist(vfs, "journal"));
    vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = VFS_SIM_CLOSE, .path = "journal"});
    vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = VFS_SIM_RENAME, .path = "/new"});
    assert_errno(functions->close(vfs, other), EIO);
    assert_errno(functions->close(vfs, other), EBADF); /* it was closed all the same */
    assert_errno(functions->rename(vfs, "journal", "new"), EIO);
    assert_int_equal(functions->rename(vfs, "journal", "newest"), -1);
    vfs_sim_faults_end(sim);
    assert_int_equal(functions->rename(vfs, "journal", "new"), 0);
}

/* About one in four, and the same calls again from the same seed. */
static void test_fault_chance(void **state)
{
    (void)state;
    unsigned failures = 0, differ = 0;
    struct vfs_sim *sims[3] = {vfs_sim_create(1), vfs_sim_create(1), vfs_sim_create(2)};
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = files_open(vfs_sim_vfs(sims[i]), "file", O_RDWR | O_CREAT);
        vfs_sim_fault(sims[i], &(struct vfs_sim_fault){.op = VFS_SIM_PREAD, .one_in = 4});
    }
    for (int call = 0; call < CHANCES; call++) {
        ssize_t got[3];
        for (int i = 0; i < 3; i++) {
            struct vfs *vfs = vfs_sim_vfs(sims[i]);
            char byte;
            got[i] = vfs->functions->pread(vfs, fds[i], &byte, 1, 0);
        }
        failures += got[0] < 0;
        differ += got[0] != got[2];
        assert_int_equal(got[0], got[1]);
    }
    assert_in_range(failures, CHANCES / 5, CHANCES / 3);
    assert_true(differ > 0);
    for (int i = 0; i < 3; i++) {
        vfs_sim_destroy(sims[i]);
    }
}

static void test_fault_kinds(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    char text[8] = "";
    int fd = files_open(vfs, "file", O_RDWR | O_CREAT);
    vfs_sim_fault(sim, &(struct vfs_sim_fault){
                           .op = VFS_SIM_PWRITE, .times = 1, .kind = VFS_SIM_SHORT, .bytes = 2});
    assert_int_equal(vfs->functions->pwrite(vfs, fd, "abcd", 4, 0), 2);
    assert_int_equal(vfs->functions->pwrite(vfs, fd, "abcd", 4, 0), 4);
    vfs_sim_fault(sim, &(struct vfs_sim_fault){
                           .op = VFS_SIM_PREAD, .times = 1, .kind = VFS_SIM_SHORT, .bytes = 3});
    assert_int_equal(vfs->functions->pread(vfs, fd, text, 8, 0), 3);
    assert_int_equal(vfs->functions->pread(vfs, fd, text, 8, 0), 4);
    vfs_sim_fault(sim,
                  &(struct vfs_sim_fault){.op = VFS_SIM_PWRITE, .times = 1, .kind = VFS_SIM_LOSE});
    assert_int_equal(vfs->functions->pwrite(vfs, fd, "wxyz1234", 8, 0), 8);
    assert_true(files_hold(vfs, "file", "abcd"));
    files_close(vfs, fd);
}

static void test_flip(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    files_write(vfs, "file", "abc", true);
    files_sync_dir(vfs, "/");
    assert_true(vfs_sim_flip(sim, "file", 1, 0));
    assert_true(files_hold(vfs, "file", "acc"));
    assert_true(vfs_sim_flip(sim, "/file", 2, 7));
    assert_true(files_hold(vfs, "file", "ac\xe3"));
    assert_false(vfs_sim_flip(sim, "file", 3, 0));
    assert_false(vfs_sim_flip(sim, "none", 0, 0));
    for (uint64_t seed = 0; seed < 20; seed++) { /* on the disk too, and under what is written */
        files_write(vfs, "file", "ac\xe3", false);
        files_write(vfs, "file", "ac\xe3", false);
        assert_true(vfs_sim_flip(sim, "file", 2, 7));
        vfs_sim_power_cut(sim, seed);
        vfs = vfs_sim_vfs(sim);
        assert_true(files_hold(vfs, "file", "acc"));
        assert_true(vfs_sim_flip(sim, "file", 2, 7));
    }
}

/* ---- room ---- */

static void test_capacity(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    const struct vfs_functions *functions = vfs->functions;
    static char bytes[5 * 4096];
    vfs_sim_set_capacity(sim, 4 * 4096);
    int fd = files_open(vfs, "file", O_RDWR | O_CREAT);
    int other = files_open(vfs, "other", O_RDWR | O_CREAT);
    assert_int_equal(functions->allocate(vfs, fd, 4097), 0);
    assert_int_equal(vfs_sim_used(sim), 2 * 4096);
    assert_errno(functions->allocate(vfs, other, 2 * 4096 + 1), ENOSPC);
    assert_int_equal(functions->size(vfs, other), 0);
    assert_int_equal(functions->pwrite(vfs, other, bytes, sizeof(bytes), 100), 2 * 4096 - 100);
    assert_errno(functions->pwrite(vfs, other, bytes, 1, 2 * 4096), ENOSPC);
    assert_int_equal(functions->pwrite(vfs, other, bytes, 0, 4 * 4096), 0);
    assert_int_equal(functions->pwrite(vfs, other, bytes, 1, 2 * 4096 - 1), 1);
    assert_int_equal(functions->pwrite(vfs, fd, bytes, 8192, 0), 8192); /* what is allocated */
    vfs_sim_set_capacity(sim, 4096);
    assert_int_equal(functions->pwrite(vfs, fd, bytes, 8192, 0), 8192);
    assert_errno(functions->allocate(vfs, fd, 8193), ENOSPC);
    vfs_sim_set_capacity(sim, 4 * 4096);
    assert_int_equal(functions->unlink(vfs, "other"), 0); /* is open: takes room still */
    assert_errno(functions->allocate(vfs, fd, 8193), ENOSPC);
    files_close(vfs, other);
    assert_int_equal(functions->allocate(vfs, fd, 8193), 0);
    assert_int_equal(vfs_sim_used(sim), 3 * 4096);
    assert_int_equal(functions->truncate(vfs, fd, 1), 0);
    assert_int_equal(vfs_sim_used(sim), 4096);
}

/* ---- hook, counters, clock ---- */

struct witness {
    struct vfs_sim *sim;
    char text[256];
    enum vfs_sim_op kill_at;
};

static void note_call(void *context, enum vfs_sim_op op, const char *path)
{
    struct witness *witness = context;
    size_t length = strlen(witness->text);
    snprintf(witness->text + length, sizeof(witness->text) - length, "%s %s,", vfs_sim_op_name(op),
             path);
    if (op == witness->kill_at) {
        vfs_sim_kill(witness->sim);
    }
}

static void test_hook(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    struct witness witness = {sim, "", VFS_SIM_ANY};
    vfs_sim_hook(sim, note_call, &witness);
    files_write(vfs, "a", "x", true);
    assert_int_equal(vfs->functions->rename(vfs, "a", "b"), 0);
    vfs_sim_hook(sim, NULL, NULL);
    files_sync_dir(vfs, "/");
    assert_string_equal(witness.text, "open /a,pwrite /a,fdatasync /a,close /a,rename /b,");
}

/* A process that ends in the hook of a call: the call does nothing, nor do those after it. */
static void test_hook_kill(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    const struct vfs_functions *functions = vfs->functions;
    struct witness witness = {sim, "", VFS_SIM_RENAME};
    files_write(vfs, "a", "x", true);
    int fd = files_open(vfs, "a", O_RDWR);
    vfs_sim_hook(sim, note_call, &witness);
    assert_errno(functions->rename(vfs, "a", "b"), EBADF);
    assert_errno(functions->open(vfs, "c", O_RDWR | O_CREAT), EBADF);
    assert_errno(functions->unlink(vfs, "a"), EBADF);
    assert_errno(functions->pwrite(vfs, fd, "yyy", 3, 0), EBADF);
    assert_errno(functions->close(vfs, fd), EBADF);
    assert_errno(functions->sync_dir(vfs, "/"), EBADF);
    assert_string_equal(witness.text, "rename /b,"); /* the dead have no hook */
    assert_ptr_not_equal(vfs_sim_vfs(sim), vfs);
    vfs = vfs_sim_vfs(sim);
    assert_true(files_hold(vfs, "a", "x"));
    assert_false(files_exist(vfs, "b") || files_exist(vfs, "c"));
    witness.kill_at = VFS_SIM_PWRITE;
    fd = files_open(vfs, "a", O_RDWR);
    assert_errno(functions->pwrite(vfs, fd, "yyy", 3, 0), EBADF);
    vfs_sim_hook(sim, NULL, NULL);
    assert_true(files_hold(vfs_sim_vfs(sim), "a", "x"));
}

static void test_counters(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    static char page[4096];
    files_write(vfs, "table-1", "abc", true);
    files_write(vfs, "table-2.tmp", "abcdef", true);
    assert_int_equal(vfs->functions->rename(vfs, "table-2.tmp", "table-2"), 0);
    int fd = files_open(vfs, "table-2", O_RDONLY);
    vfs_sim_counts_clear(sim);
    assert_int_equal(vfs->functions->pread(vfs, fd, page, sizeof(page), 0), 6);
    assert_int_equal(vfs->functions->pread(vfs, fd, page, sizeof(page), 4), 2);
    vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = VFS_SIM_PREAD, .times = 1});
    assert_errno(vfs->functions->pread(vfs, fd, page, sizeof(page), 0), EIO);
    files_close(vfs, fd);
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_PREAD, NULL), 3);
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_PREAD, "table-2"), 3);
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_PREAD, "table-1"), 0);
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_CLOSE, "table"), 1);
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_ANY, NULL), 4);
    assert_int_equal(vfs_sim_bytes(sim, VFS_SIM_PREAD, NULL), 8);
    files_write(vfs, "table-1", "abcd", false);
    assert_int_equal(vfs_sim_bytes(sim, VFS_SIM_PWRITE, "table-1"), 4);
    assert_int_equal(vfs_sim_bytes(sim, VFS_SIM_ANY, NULL), 12);
    fd = files_open(vfs, "table-1", O_RDONLY);
    assert_int_equal(vfs->functions->rename(vfs, "table-1", "old"), 0);
    assert_int_equal(vfs->functions->size(vfs, fd), 4); /* counts under the name it has now */
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_SIZE, "old"), 1);
}

static void test_clock(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    uint64_t before = clock_monotonic_us();
    uint64_t now = vfs->functions->now_us(vfs);
    assert_true(before <= now && now <= clock_monotonic_us());
    vfs_sim_set_clock(sim, 1000);
    assert_int_equal(vfs->functions->now_us(vfs), 1000);
    vfs_sim_advance(sim, 500);
    assert_int_equal(vfs->functions->now_us(vfs), 1500);
    vfs_sim_kill(sim);
    vfs = vfs_sim_vfs(sim);
    assert_int_equal(vfs->functions->now_us(vfs), 1500);
}

/* ---- threads ---- */

struct writer {
    struct vfs *vfs;
    char path[16];
    uint64_t written;
    bool ended;
};

/* Writes rising numbers until the process ends; each that was synced must be read as it is. */
static void *write_numbers(void *context)
{
    struct writer *writer = context;
    struct vfs *vfs = writer->vfs;
    int fd = vfs->functions->open(vfs, writer->path, O_RDWR | O_CREAT);
    bool sound = fd >= 0 && vfs->functions->sync_dir(vfs, "/") == 0;
    while (sound && writer->written < UINT64_MAX) {
        uint64_t next = writer->written + 1;
        sound = vfs_write_all(vfs, fd, &next, sizeof(next), 0) &&
                vfs->functions->fdatasync(vfs, fd) == 0;
        writer->written += sound;
    }
    writer->ended = errno == EBADF;
    return NULL;
}

static void cut_after(void *context, enum vfs_sim_op op, const char *path)
{
    (void)path;
    struct vfs_sim *sim = context;
    if (op == VFS_SIM_FDATASYNC && vfs_sim_calls(sim, op, NULL) >= THREAD_ROUNDS) {
        vfs_sim_power_cut(sim, 3);
    }
}

/* Several threads, all ended by a power cut in the call of one: each finds its last number. */
static void test_threads(void **state)
{
    struct vfs_sim *sim = *state;
    struct writer writers[THREADS] = {{0}};
    pthread_t threads[THREADS];
    vfs_sim_hook(sim, cut_after, sim);
    for (int i = 0; i < THREADS; i++) {
        writers[i].vfs = vfs_sim_vfs(sim);
        snprintf(writers[i].path, sizeof(writers[i].path), "file-%d", i);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_numbers, &writers[i]), 0);
    }
    uint64_t total = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    vfs_sim_hook(sim, NULL, NULL);
    struct vfs *vfs = vfs_sim_vfs(sim);
    for (int i = 0; i < THREADS; i++) {
        uint64_t found = 0;
        total += writers[i].written;
        assert_true(writers[i].ended);
        if (writers[i].written > 0) {
            int fd = files_open(vfs, writers[i].path, O_RDONLY);
            assert_int_equal(vfs_read_all(vfs, fd, &found, sizeof(found), 0), sizeof(found));
            assert_in_range(found, writers[i].written, writers[i].written + 1);
        }
    }
    assert_in_range(total, THREAD_ROUNDS - THREADS, THREAD_ROUNDS + THREADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test(test_list_order),
        cmocka_unit_test_setup_teardown(test_lock, setup, teardown),
        cmocka_unit_test_setup_teardown(test_direct, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fault_choice, setup, teardown),
        cmocka_unit_test(test_fault_chance),
        cmocka_unit_test_setup_teardown(test_fault_kinds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_capacity, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hook, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hook_kill, setup, teardown),
        cmocka_unit_test_setup_teardown(test_counters, setup, teardown),
        cmocka_unit_test_setup_teardown(test_clock, setup, teardown),
        cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
