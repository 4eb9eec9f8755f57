/*
 * test_journal_break.c: the stream breaks off above its durable mark. What follows the break, and
 * whether the system has ended since, tells damage from a torn end.
 */
#include "store/journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/journal_format.h"
#include "tests/support/random.h"
#include "tests/support/vfs_sim.h"
#include "tests/unit/store/journal_run.h"

#define FIRST_NAME "journal-0000000000000000"
#define FIRST_FILE RUN_DIRECTORY "/" FIRST_NAME

static void write_all(struct run_world *world)
{
    for (unsigned i = 1; i <= RUN_WORLD_ENDS; i++) {
        assert_true(run_write(&world->writer, 0, i, 0, RUN_PAYLOAD_MIN + i));
        world->ends[i] = world->writer.end;
    }
}

static void expect_whole(struct run_world *world)
{
    struct recovered recovered = run_world_scan(world);
    assert_string_equal(recovered.scan.error, "");
    assert_int_equal(recovered.end, JOURNAL_SCAN_TORN);
    assert_int_equal(recovered.count[0], RUN_WORLD_ENDS);
}

/* Damage, at this record; `part` is said of it. */
static void expect_damaged(struct run_world *world, unsigned record, const char *part)
{
    char text[JOURNAL_ERROR_MAX];
    struct recovered recovered = run_world_scan(world);
    assert_int_equal(recovered.end, JOURNAL_SCAN_DAMAGED);
    assert_int_equal(recovered.scan.end, world->ends[record - 1]);
    snprintf(text, sizeof(text), FIRST_FILE ": offset %llu: ",
             (unsigned long long)(JOURNAL_PAGE_BYTES + world->ends[record - 1]));
    if (!strstr(recovered.scan.error, text) || !strstr(recovered.scan.error, part)) {
        fail_msg("\"%s\" does not say \"%s\" and \"%s\"", recovered.scan.error, text, part);
    }
}

/* Records of which nothing is durable, and a kill. */
static void begin_unsynced(struct run_world *world)
{
    run_world_begin(world, 1, JOURNAL_SYNC_EVERYSEC);
    write_all(world);
    run_world_end(world, true);
}

static unsigned record_at(const struct run_world *world, uint64_t lsn)
{
    unsigned number = 1;
    while (world->ends[number] <= lsn) {
        number++;
    }
    return number;
}

/* Above the mark, in the run of the system that wrote it: with sound records behind it no kill has
 * left it so; without, it is cut. */
static void test_flip_above_the_mark(void **state)
{
    (void)state;
    struct run_world world;
    char follow[96];
    begin_unsynced(&world);
    uint64_t end = world.ends[RUN_WORLD_ENDS];
    for (uint64_t lsn = 0; lsn < end; lsn++) {
        if (!test_chosen(lsn)) {
            continue;
        }
        uint64_t offset = JOURNAL_PAGE_BYTES + lsn;
        unsigned record = record_at(&world, lsn);
        assert_true(vfs_sim_flip(world.sim, FIRST_FILE, offset, lsn % 8));
        if (record < RUN_WORLD_ENDS) {
            snprintf(follow, sizeof(follow), "and %u sound records (%llu bytes) of the same stream",
                     RUN_WORLD_ENDS - record, (unsigned long long)(end - world.ends[record]));
            expect_damaged(&world, record, follow);
        } else {
            struct recovered recovered = run_world_scan(&world);
            assert_int_equal(recovered.scan.end, world.ends[record - 1]);
            assert_int_equal(recovered.end, JOURNAL_SCAN_TORN);
            assert_int_equal(recovered.scan.lost_records, 0);
        }
        assert_true(vfs_sim_flip(world.sim, FIRST_FILE, offset, lsn % 8));
    }
    expect_whole(&world);
    vfs_sim_destroy(world.sim);
}

/* After a power cut, which may have written in any order: cut there, and counted. */
static void test_flip_in_another_run(void **state)
{
    (void)state;
    struct run_world world;
    begin_unsynced(&world);
    vfs_sim_forget_boot(world.sim);
    uint64_t end = world.ends[RUN_WORLD_ENDS];
    for (uint64_t lsn = 0; lsn < end; lsn++) {
        if (!test_chosen(lsn)) {
            continue;
        }
        uint64_t offset = JOURNAL_PAGE_BYTES + lsn;
        unsigned record = record_at(&world, lsn);
        assert_true(vfs_sim_flip(world.sim, FIRST_FILE, offset, lsn % 8));
        struct recovered recovered = run_world_scan(&world);
        assert_int_equal(recovered.end, JOURNAL_SCAN_TORN);
        assert_int_equal(recovered.scan.end, world.ends[record - 1]);
        assert_int_equal(recovered.scan.lost_records, RUN_WORLD_ENDS - record);
        assert_int_equal(recovered.scan.lost_bytes, end - world.ends[record]);
        assert_true(record == RUN_WORLD_ENDS || recovered.scan.lost_first == world.ends[record]);
        assert_true(recovered.scan.torn_bytes <= end - recovered.scan.end);
        assert_true(recovered.scan.torn_bytes + 8 > end - recovered.scan.end);
        assert_true(vfs_sim_flip(world.sim, FIRST_FILE, offset, lsn % 8));
    }
    expect_whole(&world);
    vfs_sim_destroy(world.sim);
}

/* The last records come while they are looked at: nothing is behind a break then. */
struct late {
    struct vfs_sim *sim;
    uint64_t offset;
    unsigned opens;
};

static void come_late(void *context, enum vfs_sim_op op, const char *path)
{
    struct late *late = context;
    if (op == VFS_SIM_OPEN && strcmp(path, FIRST_FILE) == 0 && ++late->opens == 3) {
        assert_true(vfs_sim_flip(late->sim, FIRST_FILE, late->offset, 0)); /* header, scan, look */
    }
}

static void test_written_meanwhile(void **state)
{
    (void)state;
    struct run_world world;
    begin_unsynced(&world);
    struct late late = {.sim = world.sim, .offset = JOURNAL_PAGE_BYTES + world.ends[10] + 8};
    assert_true(vfs_sim_flip(world.sim, FIRST_FILE, late.offset, 0));
    vfs_sim_hook(world.sim, come_late, &late);
    struct recovered recovered = run_world_scan(&world);
    vfs_sim_hook(world.sim, NULL, NULL);
    assert_true(late.opens >= 3);
    assert_int_equal(recovered.end, JOURNAL_SCAN_TORN);
    assert_int_equal(recovered.scan.end, world.ends[10]);
    assert_int_equal(recovered.scan.lost_records, 0);
    vfs_sim_destroy(world.sim);
}

/* What was written a second before is marked so, synced or not: in this run of the system it must
 * be there, the last record too. */
static void test_marked_as_written(void **state)
{
    (void)state;
    for (unsigned sync = JOURNAL_SYNC_NEVER; sync <= JOURNAL_SYNC_EVERYSEC; sync++) {
        struct run_world world;
        run_world_begin(&world, 1, sync);
        write_all(&world);
        vfs_sim_advance(world.sim, 1000000);
        journal_want_room(world.journal, 1); /* the thread looks at the clock */
        RUN_WAIT_FOR(vfs_sim_bytes(world.sim, VFS_SIM_PWRITE, NULL) >=
                     JOURNAL_PAGE_BYTES + world.ends[RUN_WORLD_ENDS] + JOURNAL_MARK_BYTES);
        run_world_end(&world, true);
        uint64_t offset = JOURNAL_PAGE_BYTES + world.ends[RUN_WORLD_ENDS] - 8;
        assert_true(vfs_sim_flip(world.sim, FIRST_FILE, offset, 3));
        expect_damaged(&world, RUN_WORLD_ENDS,
                       sync == JOURNAL_SYNC_NEVER ? "written up to " : "durable up to ");
        if (sync == JOURNAL_SYNC_NEVER) {
            vfs_sim_forget_boot(world.sim);
            assert_int_equal(run_world_scan(&world).end, JOURNAL_SCAN_TORN);
        }
        vfs_sim_destroy(world.sim);
    }
}

/* The mark of a sync is durable a second later, though nothing comes after it. */
static void test_mark_is_synced(void **state)
{
    (void)state;
    struct run_world world;
    run_world_begin(&world, 1, JOURNAL_SYNC_EVERYSEC);
    write_all(&world);
    assert_true(journal_sync_now(world.journal));
    uint64_t syncs = vfs_sim_calls(world.sim, VFS_SIM_FDATASYNC, FIRST_FILE);
    vfs_sim_advance(world.sim, 1000000);
    journal_want_room(world.journal, 1);
    RUN_WAIT_FOR(vfs_sim_calls(world.sim, VFS_SIM_FDATASYNC, FIRST_FILE) > syncs);
    vfs_sim_power_cut(world.sim, 0);
    run_world_end(&world, false);
    struct recovered recovered = run_world_scan(&world);
    assert_int_equal(recovered.scan.durable, world.ends[RUN_WORLD_ENDS]);
    vfs_sim_destroy(world.sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flip_above_the_mark), cmocka_unit_test(test_flip_in_another_run),
        cmocka_unit_test(test_written_meanwhile),   cmocka_unit_test(test_marked_as_written),
        cmocka_unit_test(test_mark_is_synced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
