/*
 * test_journal_marks.c: what the journal knows of its own length when a part of it is gone: by the
 * seal of a segment, by the mark in the next one's header, by where a start wants to begin.
 */
#include "store/journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/journal_format.h"
#include "tests/support/vfs_sim.h"
#include "tests/unit/store/journal_run.h"

#define CAPACITY    (RUN_SEGMENT_BYTES - JOURNAL_PAGE_BYTES)
#define FIRST_FILE  RUN_DIRECTORY "/journal-0000000000000000"
#define LARGE       (JOURNAL_PAYLOAD_MAX - 32)
#define POWER_CUTS  12
#define MARK_OFFSET 1024 /* of the first of the two marks of a segment … */
#define MARK_STEP   1024 /* … and of the other after it: journal_format.c */

static void write_until(struct run_world *world, uint64_t lsn)
{
    while (journal_head(world->journal) <= lsn) {
        assert_true(run_write(&world->writer, 0, ++world->number, 0, LARGE));
    }
    assert_true(journal_sync_now(world->journal));
}

static enum journal_scan_end scan(struct run_world *world, uint64_t from)
{
    struct recovered recovered = {0};
    if (from > 0) {
        recovered.count[0] = world->number; /* nothing is to be given */
    }
    run_scan(world->config.vfs, from, &recovered);
    return recovered.end;
}

/* A segment that was followed says so after any power cut: its successor is missed. */
static void test_seal_survives_power_cuts(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < POWER_CUTS; seed++) {
        struct run_world world;
        char name[JOURNAL_NAME_MAX];
        char path[64];
        run_world_begin(&world, seed, JOURNAL_SYNC_EVERYSEC);
        write_until(&world, CAPACITY);
        RUN_WAIT_FOR(vfs_sim_calls(world.sim, VFS_SIM_CLOSE, FIRST_FILE) > 0);
        vfs_sim_power_cut(world.sim, seed);
        run_world_end(&world, false);
        assert_int_equal(scan(&world, 0), JOURNAL_SCAN_TORN);
        journal_name(name, CAPACITY);
        snprintf(path, sizeof(path), RUN_DIRECTORY "/%s", name);
        assert_int_equal(world.config.vfs->functions->unlink(world.config.vfs, path), 0);
        assert_int_equal(scan(&world, 0), JOURNAL_SCAN_DAMAGED);
        vfs_sim_destroy(world.sim);
    }
}

static void flip_marks(struct run_world *world, const char *path)
{
    for (unsigned i = 0; i < JOURNAL_MARKS; i++) {
        assert_true(vfs_sim_flip(world->sim, path, MARK_OFFSET + i * MARK_STEP, 3));
    }
}

/* With all marks gone, and after the power went, the header of the second segment still says what
 * was durable by then. */
static void test_header_says_what_was_durable(void **state)
{
    (void)state;
    struct run_world world;
    char name[JOURNAL_NAME_MAX];
    char path[64];
    run_world_begin(&world, 1, JOURNAL_SYNC_EVERYSEC);
    write_until(&world, CAPACITY / 2);
    write_until(&world, CAPACITY);
    vfs_sim_power_cut(world.sim, 1);
    run_world_end(&world, false);
    journal_name(name, CAPACITY);
    snprintf(path, sizeof(path), RUN_DIRECTORY "/%s", name);
    flip_marks(&world, FIRST_FILE);
    flip_marks(&world, path);
    assert_int_equal(scan(&world, 0), JOURNAL_SCAN_TORN);
    assert_true(
        vfs_sim_flip(world.sim, FIRST_FILE, JOURNAL_PAGE_BYTES + CAPACITY / 2 - LARGE / 2, 3));
    assert_int_equal(scan(&world, 0), JOURNAL_SCAN_DAMAGED);
    vfs_sim_destroy(world.sim);
}

/* A start that wants to begin above the end: what files hold came after it. */
static void test_ends_below_where_it_is_wanted(void **state)
{
    (void)state;
    struct run_world world;
    run_world_begin(&world, 1, JOURNAL_SYNC_EVERYSEC);
    write_until(&world, 0);
    uint64_t end = journal_head(world.journal);
    vfs_sim_kill(world.sim);
    run_world_end(&world, false);
    flip_marks(&world, FIRST_FILE); /* or it were below what was durable, too */
    assert_int_equal(scan(&world, end), JOURNAL_SCAN_TORN);
    assert_true(
        vfs_sim_flip(world.sim, FIRST_FILE, JOURNAL_PAGE_BYTES + JOURNAL_HEADER_BYTES + 8, 3));
    assert_int_equal(scan(&world, end), JOURNAL_SCAN_DAMAGED);
    vfs_sim_destroy(world.sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seal_survives_power_cuts),
        cmocka_unit_test(test_header_says_what_was_durable),
        cmocka_unit_test(test_ends_below_where_it_is_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
