/* Taking a data directory and coming back from it: what is refused, what a start finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#include "base/hash.h"
#include "data/data_private.h"
#include "data_run.h"
#include "store/manifest.h"
#include "toy_engine.h"

#define FILE_BYTES_MAX (1u << 20)
#define BALLAST_BYTES  (1u << 20)
#define PROBE_BYTES    (64u << 10)           /* data_open.c's */
#define CHECKSUM_SEED  0x54534546494e414dull /* of a manifest */

static struct data_run run;

/* ---- the directory by hand ---- */

static const char *path_of(const char *name)
{
    static char path[VFS_PATH_MAX];

    assert_true(vfs_path(path, DATA_RUN_DIRECTORY, name));
    return path;
}

static void write_file(const char *name, const char *text)
{
    struct vfs *vfs = vfs_sim_vfs(run.sim);

    assert_true(vfs_replace_file(vfs, DATA_RUN_DIRECTORY, name, text, strlen(text)));
}

static char *read_file(const char *name)
{
    size_t length;
    char *text = vfs_read_file(vfs_sim_vfs(run.sim), path_of(name), FILE_BYTES_MAX, &length);

    assert_non_null(text);
    return text;
}

static void remove_file(const char *name)
{
    struct vfs *vfs = vfs_sim_vfs(run.sim);

    assert_int_equal(vfs->functions->unlink(vfs, path_of(name)), 0);
}

/* The name of some file that holds this part. */
static void keep_name(void *context, const char *name)
{
    char(*found)[2][VFS_PATH_MAX] = context;

    if (strstr(name, (*found)[0]) != NULL) {
        snprintf((*found)[1], VFS_PATH_MAX, "%s", name);
    }
}

static const char *some_file(const char *part)
{
    static char found[2][VFS_PATH_MAX];
    struct vfs *vfs = vfs_sim_vfs(run.sim);

    snprintf(found[0], VFS_PATH_MAX, "%s", part);
    found[1][0] = '\0';
    assert_int_equal(vfs->functions->list(vfs, DATA_RUN_DIRECTORY, keep_name, found), 0);
    assert_true(found[1][0] != '\0');
    return found[1];
}

/* A directory with something in it, and no process. */
static void fill(void)
{
    assert_true(data_run_begin(&run));
    data_run_fill(&run, 3, 1);
    assert_true(data_run_end(&run));
}

/* A start is refused with these words in the error, and writes nothing but its lock. */
static void refused(const char *one, const char *other)
{
    char *manifest =
        vfs_read_file(vfs_sim_vfs(run.sim), path_of(MANIFEST_NAME), FILE_BYTES_MAX, &(size_t){0});
    unsigned tables = data_run_files(&run, ".table");
    unsigned segments = data_run_files(&run, "journal-");

    assert_false(data_run_begin(&run));
    if (strstr(run.error, one) == NULL || strstr(run.error, other) == NULL) {
        fail_msg("unexpected: %s", run.error);
    }
    assert_int_equal(data_run_files(&run, ".table"), tables);
    assert_int_equal(data_run_files(&run, "journal-"), segments);
    if (manifest != NULL) {
        char *now = read_file(MANIFEST_NAME);

        assert_string_equal(now, manifest);
        free(now);
    }
    free(manifest);
}

/* ---- refusals ---- */

static void test_in_use(void **state)
{
    (void)state;
    char error[DATA_ERROR_MAX];

    assert_true(data_run_begin(&run));
    assert_null(data_open_with(vfs_sim_vfs(run.sim), &run.settings, error));
    assert_non_null(strstr(error, "/data is in use by rollcalld (pid "));
    remove_file(DIR_LOCK_NAME); /* it only names the process */
    assert_null(data_open_with(vfs_sim_vfs(run.sim), &run.settings, error));
    assert_string_equal(error, "data directory /data is in use by rollcalld, or by a verb such as "
                               "rollcall verify");
    assert_true(data_run_end(&run));
    assert_true(data_run_begin(&run)); /* its lock went with it */
    assert_true(data_run_end(&run));
}

static void test_no_manifest(void **state)
{
    (void)state;
    fill();
    remove_file(MANIFEST_NAME);
    refused("MANIFEST is missing but ", "rollcall repair /data");
    assert_int_equal(data_run_files(&run, MANIFEST_NAME), 0);
}

static void test_damaged_manifest(void **state)
{
    (void)state;
    fill();
    assert_true(vfs_sim_flip(run.sim, path_of(MANIFEST_NAME), 30, 2));
    refused(MANIFEST_NAME, "rollcall repair /data");
}

static void refused_version(unsigned version)
{
    char text[256];
    char what[32];
    int length = snprintf(text, sizeof(text), "rollcall-manifest %u\nwhatever comes\n", version);

    snprintf(text + length, sizeof(text) - (size_t)length, "checksum %016llx\n",
             (unsigned long long)hash_bytes(text, (size_t)length, CHECKSUM_SEED));
    write_file(MANIFEST_NAME, text);
    snprintf(what, sizeof(what), "format version %u", version);
    refused(MANIFEST_NAME, what);
}

/* Nor one of before. */
static void test_newer_manifest(void **state)
{
    (void)state;
    fill();
    refused_version(MANIFEST_VERSION + 1);
    refused_version(MANIFEST_VERSION - 1);
}

static void test_other_spaces(void **state)
{
    (void)state;
    fill();
    run.settings.spaces[1].kind = SPACE_COUNTER;
    refused("space b is of kind phantom", "not counter");
    run.settings.space_count = 1;
    refused("space b is in the data directory /data", "not in the configuration");
}

static void test_unwritable(void **state)
{
    (void)state;
    fill();
    vfs_sim_fault(run.sim,
                  &(struct vfs_sim_fault){.op = VFS_SIM_LOCK, .path = "/data", .error = EIO});
    refused("data directory /data: cannot be locked", strerror(EIO));
    vfs_sim_faults_end(run.sim);
    vfs_sim_fault(run.sim, &(struct vfs_sim_fault){
                               .op = VFS_SIM_OPEN, .path = "/data/probe", .error = EACCES});
    refused("data directory /data: cannot be written", strerror(EACCES));
    vfs_sim_faults_end(run.sim);
    vfs_sim_fault(run.sim, &(struct vfs_sim_fault){.op = VFS_SIM_MKDIR, .error = ENOENT});
    refused("data directory /data: cannot be made", strerror(ENOENT));
}

/* ---- a full disk ---- */

static uint64_t bytes_of(const char *name)
{
    struct vfs *vfs = vfs_sim_vfs(run.sim);
    int fd = vfs->functions->open(vfs, path_of(name), O_RDONLY);

    assert_true(fd >= 0);
    int64_t bytes = vfs->functions->size(vfs, fd);

    vfs->functions->close(vfs, fd);
    return (uint64_t)bytes;
}

/* There is no room for a name at first, then none for the next manifest beside this one. */
static void test_full_at_start(void **state)
{
    (void)state;
    static const char ballast[BALLAST_BYTES];

    fill();
    for (unsigned i = 0; i < 2; i++) {
        uint64_t manifest = bytes_of(MANIFEST_NAME);
        struct vfs *vfs = vfs_sim_vfs(run.sim);

        assert_true(vfs_replace_file(vfs, DATA_RUN_DIRECTORY, JOURNAL_BALLAST_NAME, ballast,
                                     sizeof(ballast)));
        vfs_sim_fault(run.sim,
                      &(struct vfs_sim_fault){.op = i == 0 ? VFS_SIM_OPEN : VFS_SIM_ALLOCATE,
                                              .path = "/data/probe",
                                              .times = 1,
                                              .error = ENOSPC});
        assert_true(data_run_begin(&run));
        assert_int_equal(bytes_of(JOURNAL_BALLAST_NAME),
                         BALLAST_BYTES - PROBE_BYTES - 2 * manifest);
        data_run_check(&run);
        assert_true(data_run_end(&run));
    }
}

/* The thread of checkpoints has looked, from its beginning. */
static void await_look(void)
{
    for (unsigned i = 0; i < 2; i++) {
        run.data->dumps_asked = true;
        DATA_RUN_WAIT_FOR(!run.data->dumps_asked);
    }
}

/* A disk that is full after a checkpoint is no reason for the next one at once. */
static void test_rounds_on_a_full_disk(void **state)
{
    (void)state;
    vfs_sim_set_clock(run.sim, 1000);
    assert_true(data_run_begin(&run));
    vfs_sim_fault(run.sim, &(struct vfs_sim_fault){.op = VFS_SIM_ALLOCATE,
                                                   .path = "/data/journal-next",
                                                   .error = ENOSPC});
    data_run_checkpoints(&run);
    struct journal *journal = data_journal(run.data);

    bool room = true; /* it goes while the journal's thread writes */

    for (uint64_t i = 0; room && run.data->figures.checkpoints == 0; i++) {
        room = data_run_set(&run, 0, i % TOY_RANGE, i) && journal_room(journal) == JOURNAL_ROOM;
    }
    for (unsigned rounds = 1; rounds <= 3; rounds++) {
        DATA_RUN_WAIT_FOR(data_run_stats(&run).checkpoints >= rounds);
        await_look(); /* journal_go_on was called */
        DATA_RUN_WAIT_FOR(journal_room(journal) == JOURNAL_ROOM_NONE);
        await_look();
        await_look();
        assert_int_equal(data_run_stats(&run).checkpoints, rounds);
        vfs_sim_advance(run.sim, 10 * 1000000ull);
    }
    vfs_sim_faults_end(run.sim);
    assert_true(data_run_end(&run));
}

static void test_missing_table(void **state)
{
    (void)state;
    fill();
    remove_file(some_file("a-1-0-"));
    refused("a-1-0-", "is missing, and the manifest names it");
}

static void test_swapped_tables(void **state)
{
    (void)state;
    char first[VFS_PATH_MAX];
    struct vfs *vfs = vfs_sim_vfs(run.sim);

    fill();
    snprintf(first, sizeof(first), "%s", path_of(some_file("a-1-0-")));
    assert_int_equal(vfs->functions->rename(vfs, path_of(some_file("a-2-0-")), first), 0);
    refused("is not the file the manifest names", "rollcall repair /data");
}

static void test_damaged_table(void **state)
{
    (void)state;
    fill();
    assert_true(vfs_sim_flip(run.sim, path_of(some_file("b-1-0-")), 4096 + 99, 1));
    refused("b-1-0-", "rollcall repair /data");
}

static void test_damaged_journal(void **state)
{
    (void)state;
    assert_true(data_run_begin(&run));
    for (uint64_t id = 0; id < 1000; id++) {
        assert_true(data_run_set(&run, 0, id, id + 1));
    }
    for (unsigned i = 0; i < 2; i++) { /* the first one's mark is there when the second is done */
        assert_true(data_run_set(&run, 0, i, 77));
        assert_true(journal_sync_now(data_journal(run.data)));
    }
    data_run_kill(&run);
    assert_true(vfs_sim_flip(run.sim, path_of(some_file("journal-")), 4096 + 5000, 3));
    refused("journal-", "offset");
    refused("/data", "rollcall repair /data");
}

/* The journal ends below what tables hold. */
static void test_journal_too_short(void **state)
{
    (void)state;
    fill();
    data_run_start(&run);
    assert_true(data_run_set(&run, 0, 5, 5));
    assert_true(data_run_checkpoint(&run));
    data_run_kill(&run);
    while (data_run_files(&run, "journal-") > 0) {
        remove_file(some_file("journal-"));
    }
    refused("journal", "rollcall repair /data");
}

/* ---- coming back ---- */

static void test_new_directory(void **state)
{
    (void)state;
    assert_true(data_run_begin(&run));
    assert_int_equal(vfs_sim_calls(run.sim, VFS_SIM_MKDIR, DATA_RUN_DIRECTORY), 1);
    data_run_check(&run);
    assert_int_equal(data_run_stats(&run).recovered_records, 0);
    data_run_power_cut(&run, 3); /* before anything was put */
    assert_true(data_run_begin(&run));
    data_run_check(&run);
    assert_true(data_run_end(&run));
}

/* A start that ended before the directory's name was durable: the next one sees to that. */
static void test_new_directory_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        vfs_sim_fault(run.sim,
                      &(struct vfs_sim_fault){.op = VFS_SIM_SYNC_DIR, .times = 1, .error = EIO});
        assert_false(data_run_begin(&run));
        assert_non_null(strstr(run.error, "its directory cannot be synced"));
        assert_true(data_run_begin(&run));
        assert_true(data_run_set(&run, 0, 1, seed));
        assert_true(data_run_end(&run));
        vfs_sim_power_cut(run.sim, seed);
        assert_true(data_run_begin(&run));
        data_run_check(&run);
        assert_true(data_run_end(&run));
        data_run_fini(&run);
        data_run_init(&run, seed);
    }
    vfs_sim_fault(run.sim,
                  &(struct vfs_sim_fault){.op = VFS_SIM_SYNC_DIR, .times = 2, .error = EACCES});
    assert_false(data_run_begin(&run));
    assert_true(data_run_begin(&run)); /* it may be closed to this process */
    assert_true(data_run_end(&run));
}

static void test_kill(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 4; round++) {
        assert_true(data_run_begin(&run));
        data_run_check(&run);
        for (uint64_t id = round; id < 5 * TOY_RANGE; id += 3) {
            assert_true(data_run_set(&run, id % 2, id, id + round + 1));
        }
        data_run_kill(&run);
    }
    assert_true(data_run_begin(&run));
    data_run_check(&run);
    assert_true(data_run_stats(&run).recovered_records > 4 * TOY_RANGE);
    assert_int_equal(toy_reconfigured(data_run_engine(&run, 0)), 1);
    assert_true(data_run_end(&run));
}

/* After a clean stop nothing is replayed; only starts after another end raise the epoch. */
static void test_clean_stop(void **state)
{
    (void)state;
    fill();
    uint64_t first = data_run_epoch(&run);

    for (unsigned round = 0; round < 3; round++) {
        assert_true(data_run_begin(&run));
        data_run_check(&run);
        assert_int_equal(data_run_stats(&run).recovered_records, 0);
        assert_int_equal(data_run_epoch(&run), first);
        assert_true(data_run_set(&run, 0, 100 + round, 1000 + round));
        assert_true(data_run_end(&run));
    }
    assert_true(data_run_begin(&run));
    data_run_restart(&run);
    assert_int_equal(data_run_epoch(&run), first + 1);
    assert_true(data_run_end(&run));
}

/* A number stays with its space, whatever its place in the configuration. */
static void test_numbers(void **state)
{
    (void)state;
    struct space_settings other = run.settings.spaces[0];
    uint32_t a, b;

    fill();
    assert_true(data_run_begin(&run));
    a = data_run_engine(&run, 0)->space;
    b = data_run_engine(&run, 1)->space;
    assert_true(a != b);
    assert_true(data_run_set(&run, 0, 9, 99));
    data_run_kill(&run);
    strcpy(other.name, "c");
    strcpy(other.key, "c:{id}");
    run.settings.spaces[2] = run.settings.spaces[0]; /* b, c, a; the test's own stay 0 and 1 */
    run.settings.spaces[0] = run.settings.spaces[1];
    run.settings.spaces[1] = other;
    run.settings.space_count = 3;
    assert_true(data_run_begin(&run));
    assert_int_equal(data_run_engine(&run, 2)->space, a);
    assert_int_equal(data_run_engine(&run, 0)->space, b);
    assert_int_not_equal(data_run_engine(&run, 1)->space, a);
    assert_int_not_equal(data_run_engine(&run, 1)->space, b);
    assert_int_equal(toy_get(data_run_engine(&run, 2), 9), 99);
    assert_int_equal(toy_get(data_run_engine(&run, 0), 9), 0);
    assert_int_equal(toy_get(data_run_engine(&run, 0), 7), 9);
    assert_true(data_run_end(&run));
}

/* What a reload asks for, and takes back. */
static void test_number_while_running(void **state)
{
    (void)state;
    uint32_t number, again;

    assert_true(data_run_begin(&run));
    assert_true(data_number(run.data, "late", "counter", &number, run.error));
    assert_true(data_number(run.data, "late", "counter", &again, run.error));
    assert_int_equal(number, again);
    assert_false(data_number(run.data, "late", "phantom", &again, run.error));
    data_run_power_cut(&run, 5);
    refused("space late is in the data directory", "not in the configuration");
    strcpy(run.settings.spaces[2].name, "late");
    strcpy(run.settings.spaces[2].key, "late:{id}");
    run.settings.space_count = 3;
    assert_true(data_run_begin(&run));
    assert_true(data_number(run.data, "later", "counter", &again, run.error));
    assert_int_equal(again, number + 1);
    data_number_undo(run.data, "later");
    assert_true(data_run_end(&run));
    assert_true(data_run_begin(&run));
    assert_true(data_run_end(&run));
}

static void add_third(const char *name)
{
    run.settings.spaces[2] = run.settings.spaces[0];
    strcpy(run.settings.spaces[2].name, name);
    snprintf(run.settings.spaces[2].key, sizeof(run.settings.spaces[2].key), "%s:{id}", name);
    run.settings.space_count = 3;
}

/* A manifest older than a space, as a copy may have that was taken while it was added: the journal
 * says what the space is, or what is to be put back. */
static void test_space_of_the_journal(void **state)
{
    (void)state;
    fill();
    char *before = read_file(MANIFEST_NAME);

    add_third("c");
    assert_true(data_run_begin(&run));
    uint32_t number = data_run_engine(&run, 2)->space;

    data_run_kill(&run);
    write_file(MANIFEST_NAME, before);
    run.settings.space_count = 2;
    refused("space c, of kind counter, begins with the number 3", "lacks it: put it back");
    add_third("d"); /* another name is another space */
    refused("space c, of kind counter", "lacks it");
    add_third("c");
    run.settings.spaces[2].kind = SPACE_PHANTOM;
    refused("space c, of kind counter", "of another kind");
    add_third("c");
    assert_true(data_run_begin(&run));
    assert_int_equal(data_run_engine(&run, 2)->space, number);
    data_run_check(&run);
    data_run_restart(&run);
    assert_int_equal(data_run_engine(&run, 2)->space, number);
    assert_true(data_run_end(&run));
    free(before);
}

/* Gives a manifest's text the checksum it should have. */
static void sign(char *text)
{
    char *last = strstr(text, "checksum ");

    assert_non_null(last);
    snprintf(last, strlen(last) + 1, "checksum %016llx\n",
             (unsigned long long)hash_bytes(text, (size_t)(last - text), CHECKSUM_SEED));
}

/* A manifest that gives two spaces each other's numbers: their events say so. */
static void test_numbers_exchanged(void **state)
{
    (void)state;
    static const char first[] = "space a number 1", second[] = "space b number 2";

    assert_true(data_run_begin(&run));
    data_run_kill(&run);
    char *text = read_file(MANIFEST_NAME);
    char *a = strstr(text, first);
    char *b = strstr(text, second);

    assert_true(a != NULL && b != NULL);
    a[strlen(first) - 1] = '2';
    b[strlen(second) - 1] = '1';
    sign(text);
    write_file(MANIFEST_NAME, text);
    refused("journal record at ", "it is of another space than the manifest says");
    free(text);
}

/* A later version's record: its type is named, and nothing is given up. */
static void test_unknown_record(void **state)
{
    (void)state;
    const uint64_t payload = 7;
    struct journal_writer writer;

    assert_true(data_run_begin(&run));
    journal_writer_init(&writer, data_journal(run.data));
    assert_true(journal_reserve(&writer, JOURNAL_HEADER_BYTES + sizeof(payload)));
    (void)journal_put(&writer, 99, 0, 0, &payload, sizeof(payload));
    assert_true(journal_commit(&writer));
    assert_true(journal_sync_now(data_journal(run.data)));
    journal_writer_fini(&writer);
    data_run_kill(&run);
    refused("journal record at ", "of type 99");
}

static void test_leftovers(void **state)
{
    (void)state;
    fill();
    unsigned tables = data_run_files(&run, ".table");

    write_file("a-9-0-9.table", "half of one");
    write_file("MANIFEST.tmp", "half of one");
    write_file("notes", "not ours");
    assert_true(data_run_begin(&run));
    assert_int_equal(data_run_files(&run, ".table"), tables);
    assert_int_equal(data_run_files(&run, "MANIFEST.tmp"), 0);
    assert_int_equal(data_run_files(&run, "notes"), 1);
    data_run_check(&run);
    assert_true(data_run_end(&run));
}

static void *stop_later(void *context)
{
    (void)context;
    DATA_RUN_WAIT_FOR(data_run_stats(&run).load_total_bytes > 0);
    run.stop = true;
    return NULL;
}

/* Asked to stop while it loads: soon, without an error, with nothing changed. */
static void test_stop_while_loading(void **state)
{
    (void)state;
    pthread_t thread;

    fill();
    assert_true(data_run_open(&run));
    char *manifest = read_file(MANIFEST_NAME);
    uint64_t written = vfs_sim_calls(run.sim, VFS_SIM_PWRITE, NULL);
    uint64_t unlinked = vfs_sim_calls(run.sim, VFS_SIM_UNLINK, NULL);

    toy_load_for_ever(data_run_engine(&run, 0));
    assert_int_equal(pthread_create(&thread, NULL, stop_later, NULL), 0);
    assert_false(data_run_recover(&run));
    assert_string_equal(run.error, "");
    pthread_join(thread, NULL);
    data_run_wind_up(&run);
    assert_int_equal(vfs_sim_calls(run.sim, VFS_SIM_PWRITE, NULL), written);
    assert_int_equal(vfs_sim_calls(run.sim, VFS_SIM_UNLINK, NULL), unlinked);
    char *now = read_file(MANIFEST_NAME);

    assert_string_equal(now, manifest);
    free(now);
    free(manifest);
    assert_true(data_run_begin(&run));
    data_run_check(&run);
    assert_true(data_run_end(&run));
}

/* A second recovery after a first that changed nothing: what was replayed is not lost with it. */
static void test_kill_behind_recovery(void **state)
{
    (void)state;
    fill();
    assert_true(data_run_begin(&run));
    assert_true(data_run_set(&run, 1, 70, 71));
    data_run_kill(&run);
    data_run_start(&run);
    assert_true(data_run_checkpoint(&run)); /* of what replay has changed, too */
    data_run_restart(&run);
    assert_true(data_run_end(&run));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DATA_RUN_TEST(test_in_use, &run),
        DATA_RUN_TEST(test_no_manifest, &run),
        DATA_RUN_TEST(test_damaged_manifest, &run),
        DATA_RUN_TEST(test_newer_manifest, &run),
        DATA_RUN_TEST(test_other_spaces, &run),
        DATA_RUN_TEST(test_unwritable, &run),
        DATA_RUN_TEST(test_full_at_start, &run),
        DATA_RUN_TEST(test_rounds_on_a_full_disk, &run),
        DATA_RUN_TEST(test_missing_table, &run),
        DATA_RUN_TEST(test_swapped_tables, &run),
        DATA_RUN_TEST(test_damaged_table, &run),
        DATA_RUN_TEST(test_damaged_journal, &run),
        DATA_RUN_TEST(test_journal_too_short, &run),
        DATA_RUN_TEST(test_new_directory, &run),
        DATA_RUN_TEST(test_new_directory_again, &run),
        DATA_RUN_TEST(test_kill, &run),
        DATA_RUN_TEST(test_clean_stop, &run),
        DATA_RUN_TEST(test_numbers, &run),
        DATA_RUN_TEST(test_number_while_running, &run),
        DATA_RUN_TEST(test_space_of_the_journal, &run),
        DATA_RUN_TEST(test_numbers_exchanged, &run),
        DATA_RUN_TEST(test_unknown_record, &run),
        DATA_RUN_TEST(test_leftovers, &run),
        DATA_RUN_TEST(test_stop_while_loading, &run),
        DATA_RUN_TEST(test_kill_behind_recovery, &run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
