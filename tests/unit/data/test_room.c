/* A disk that is full: what would need room to go on is refused while it can be, and tried again.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "data/data_private.h"
#include "data/follow_private.h"
#include "data_run.h"

#define BALLAST      DATA_RUN_DIRECTORY "/" JOURNAL_BALLAST_NAME
#define CATCH_UP_S   20u
#define LOOKS        5u
#define LITTLE_BYTES (16u << 20) /* enough for a promotion, and not plenty */

static struct data_run run;

static void moved(void *context)
{
    (void)context;
}

static uint64_t ballast(void)
{
    return journal_ballast_bytes(vfs_sim_vfs(run.sim), DATA_RUN_DIRECTORY);
}

/* What the sum of `memory` needs to know of a space, beside what toys are. */
static void describe(struct space_settings *space)
{
    space->slot_count = 1;
    space->slots[0].bits = 8;
    space->false_positives = 0.01;
    space->row.table_bytes = 64u << 10;
    space->row.tables = 1;
}

/* A leader's directory goes on as a follower's, with a ballast. */
static void begin(void)
{
    static char leader[] = "127.0.0.1:1";

    data_run_start(&run);
    data_run_fill(&run, 1, 1);
    DATA_RUN_WAIT_FOR(ballast() > 0);
    data_run_kill(&run);
    run.settings.replication.follow = leader;
    run.settings.memory_bytes = 1ull << 30;
    for (size_t i = 0; i < DATA_RUN_SPACES; i++) {
        describe(&run.settings.spaces[i]);
    }
    data_run_start(&run);
}

static void follow(void)
{
    begin();
    assert_true(data_follow(run.data, run.barrier, &run.spaces, moved, NULL));
}

static enum data_promoted promote(void)
{
    return data_promote(run.data, 0, false, clock_monotonic_us() + CATCH_UP_S * 1000000, run.error);
}

/* The lock is held, as the file that the applier makes to know of room is there only under it. */
static void fill_disk(void)
{
    pthread_mutex_lock(&run.data->lock);
    vfs_sim_set_capacity(run.sim, vfs_sim_used(run.sim));
    pthread_mutex_unlock(&run.data->lock);
}

static void test_promotion(void **state)
{
    (void)state;
    follow();
    fill_disk();
    assert_int_equal(promote(), DATA_PROMOTE_REFUSED);
    assert_non_null(strstr(run.error, "the disk is full"));
    assert_true(data_follows(run.data));
    data_run_check(&run); /* reads */
    vfs_sim_set_capacity(run.sim, UINT64_MAX);
    assert_int_equal(promote(), DATA_PROMOTED);
    assert_true(data_run_set(&run, 0, 1, 99));
    assert_true(data_run_end(&run));
}

/* The ballast is for starts, as long as it is there. */
static void test_start(void **state)
{
    (void)state;
    follow();
    assert_true(data_has_room(run.data, false, run.error));
    fill_disk();
    assert_true(data_has_room(run.data, true, run.error));
    assert_false(data_has_room(run.data, false, run.error));
    data_run_kill(&run);
    assert_true(data_run_begin(&run)); /* it took what it needed of it */
    assert_true(ballast() > 0);
    fill_disk();
    assert_true(journal_ballast_give(vfs_sim_vfs(run.sim), DATA_RUN_DIRECTORY, UINT64_MAX));
    fill_disk();
    assert_false(data_has_room(run.data, true, run.error));
    assert_non_null(strstr(run.error, "the disk is full"));
    assert_int_equal(data_run_files(&run, MANIFEST_PROBE_NAME), 0);
    vfs_sim_set_capacity(run.sim, UINT64_MAX);
    assert_true(data_has_room(run.data, true, run.error));
    data_run_check(&run);
    data_run_kill(&run);
}

static bool look(void)
{
    run.data->follow->room_us = 0;
    promote_look(run.data);
    return data_can_lead(run.data);
}

static uint64_t tries(void)
{
    return vfs_sim_calls(run.sim, VFS_SIM_ALLOCATE, MANIFEST_PROBE_NAME);
}

/* Whether it can lead is known at the next look, which makes a file only where little is free. */
static void test_look(void **state)
{
    const struct vfs_sim_fault quota = {
        .op = VFS_SIM_ALLOCATE, .path = MANIFEST_PROBE_NAME, .error = EDQUOT};

    (void)state;
    begin();
    uint64_t before = tries();

    for (unsigned i = 0; i < LOOKS; i++) {
        assert_true(look());
    }
    assert_int_equal(tries(), before + 1);
    fill_disk();
    assert_false(look());
    vfs_sim_set_capacity(run.sim, vfs_sim_used(run.sim) + LITTLE_BYTES);
    before = tries();
    for (unsigned i = 0; i < LOOKS; i++) {
        assert_true(look());
    }
    assert_int_equal(tries(), before + LOOKS);
    vfs_sim_set_capacity(run.sim, UINT64_MAX);
    assert_true(look());
    assert_int_equal(tries(), before + LOOKS);
    (void)vfs_sim_fault(run.sim, &quota);
    assert_true(look());
    run.data->follow->tried_us = 1; /* long ago */
    assert_false(look());
    vfs_sim_faults_end(run.sim);
    assert_true(look());
    data_run_kill(&run);
}

/* ---- what is noted of a disk ---- */

#define GIB      (1ull << 30)
#define BEGAN_US 3600000000ull

/* Files of tables opened in a round; what is noted of the disk as the last of them is. */
struct opened {
    unsigned files;
    uint64_t disk_bytes;
};

static void on_open(void *context, enum vfs_sim_op op, const char *path)
{
    struct opened *opened = context;

    if (op != VFS_SIM_OPEN || strstr(path, ".table") == NULL) {
        return;
    }
    if (opened->files++ == 0) {
        vfs_sim_advance(run.sim, 1000000);
        vfs_sim_set_capacity(run.sim, 4 * GIB);
    }
    opened->disk_bytes = data_run_stats(&run).disk_bytes;
}

/* From the start on, each second, also during a round. Who looks does not ask the disk. */
static void test_noted(void **state)
{
    struct opened opened = {0};

    (void)state;
    vfs_sim_set_clock(run.sim, BEGAN_US);
    vfs_sim_set_capacity(run.sim, GIB);
    assert_true(data_run_begin(&run));
    struct data_stats stats = data_run_stats(&run);

    assert_int_equal(stats.disk_bytes, GIB);
    assert_in_range(stats.disk_free_bytes, GIB / 2, GIB - 1);
    vfs_sim_set_capacity(run.sim, 2 * GIB);
    vfs_sim_advance(run.sim, 999999);
    data_note_disk(run.data);
    assert_int_equal(data_run_stats(&run).disk_bytes, GIB);
    vfs_sim_advance(run.sim, 1);
    data_note_disk(run.data);
    assert_int_equal(data_run_stats(&run).disk_bytes, 2 * GIB);
    vfs_sim_advance(run.sim, 1000000);
    vfs_sim_set_capacity(run.sim, 3 * GIB);
    assert_int_equal(data_run_stats(&run).disk_bytes, 2 * GIB);
    data_run_checkpoints(&run);
    DATA_RUN_WAIT_FOR(data_run_stats(&run).disk_bytes == 3 * GIB);
    data_run_fill(&run, 2, 1);
    vfs_sim_hook(run.sim, on_open, &opened);
    assert_true(data_run_checkpoint(&run));
    vfs_sim_hook(run.sim, NULL, NULL);
    assert_true(opened.files > 1);
    assert_int_equal(opened.disk_bytes, 4 * GIB);
    assert_true(data_run_end(&run));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DATA_RUN_TEST(test_promotion, &run),
        DATA_RUN_TEST(test_start, &run),
        DATA_RUN_TEST(test_look, &run),
        DATA_RUN_TEST(test_noted, &run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
