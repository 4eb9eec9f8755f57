/*
 * test_journal_cut.c: a segment's file that lost its end, wherever that was, is damage; what the
 * journal itself shortens, and a kill or a power cut meanwhile, is none.
 */
#include "store/journal.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/journal_format.h"
#include "tests/support/vfs_sim.h"
#include "tests/unit/store/journal_run.h"

#define FIRST_FILE  RUN_DIRECTORY "/journal-0000000000000000"
#define MARK_OFFSET 1024 /* of the first of the two marks of a segment … */
#define MARK_STEP   1024 /* … and of the other after it: journal_format.c */
#define PAYLOAD     100
#define CALLS_MAX   1000
#define SEEDS       10

static void write_some(struct run_world *world, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        assert_true(run_write(&world->writer, 0, ++world->number, 0, PAYLOAD));
        world->ends[world->number] = world->writer.end;
    }
}

/* A record that ends in zeroes. */
static void write_zeroes(struct run_world *world)
{
    const uint64_t payload[PAYLOAD / sizeof(uint64_t)] = {1};
    run_reserve(&world->writer, JOURNAL_HEADER_BYTES + sizeof(payload));
    journal_put(&world->writer, JOURNAL_TYPES_RESERVED, 0, 0, payload, sizeof(payload));
    assert_true(journal_commit(&world->writer));
}

static uint64_t size_of(struct run_world *world)
{
    int64_t size = vfs_size(world->vfs, FIRST_FILE);
    assert_true(size >= 0);
    return (uint64_t)size;
}

static void resize(struct run_world *world, uint64_t bytes)
{
    int fd = world->vfs->functions->open(world->vfs, FIRST_FILE, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(world->vfs->functions->truncate(world->vfs, fd, bytes), 0);
    world->vfs->functions->close(world->vfs, fd);
}

static void forget_marks(struct run_world *world)
{
    for (unsigned i = 0; i < JOURNAL_MARKS; i++) {
        assert_true(vfs_sim_flip(world->sim, FIRST_FILE, MARK_OFFSET + i * MARK_STEP, 3));
    }
}

static enum journal_scan_end scan_all(struct run_world *world, struct journal_scan *scan)
{
    *scan = (struct journal_scan){.from = 0};
    return journal_scan(world->vfs, RUN_DIRECTORY, scan, NULL, NULL);
}

static void expect(struct run_world *world, enum journal_scan_end end, uint64_t lsn)
{
    struct journal_scan scan;
    if (scan_all(world, &scan) != end || scan.end != lsn) {
        fail_msg("%llu bytes: LSN %llu instead of %llu: %s", (unsigned long long)size_of(world),
                 (unsigned long long)scan.end, (unsigned long long)lsn, scan.error);
    }
}

static void expect_cut(struct run_world *world)
{
    char text[JOURNAL_ERROR_MAX];
    struct journal_scan scan;
    enum journal_scan_end end = scan_all(world, &scan);
    snprintf(text, sizeof(text), "the file is cut short: it has %llu bytes, its header says %llu (",
             (unsigned long long)size_of(world), (unsigned long long)RUN_SEGMENT_BYTES);
    if (end != JOURNAL_SCAN_DAMAGED || !strstr(scan.error, text)) {
        fail_msg("%d: \"%s\" does not say \"%s\"", (int)end, scan.error, text);
    }
    assert_non_null(strstr(scan.error, "see: rollcall repair " RUN_DIRECTORY));
}

/* ---- cut by others ---- */

/* Within records, between two, after all of them: of a file that a kill left, no mark says how far
 * it went; nor does one whose system has gone down since. */
static void test_any_size(void **state)
{
    (void)state;
    for (unsigned boot = 0; boot < 2; boot++) {
        struct run_world world;
        run_world_begin(&world, 1, JOURNAL_SYNC_EVERYSEC);
        write_some(&world, RUN_WORLD_ENDS);
        write_zeroes(&world);
        uint64_t end = world.writer.end;
        assert_true(journal_sync_now(world.journal));
        vfs_sim_kill(world.sim);
        run_world_end(&world, false);
        forget_marks(&world);
        if (boot > 0) {
            vfs_sim_forget_boot(world.sim);
        }
        expect(&world, JOURNAL_SCAN_TORN, end);
        resize(&world, RUN_SEGMENT_BYTES - 1);
        expect_cut(&world);
        uint64_t least = JOURNAL_PAGE_BYTES + world.ends[RUN_WORLD_ENDS - 3];
        for (uint64_t bytes = JOURNAL_PAGE_BYTES + end + 20; bytes >= least; bytes--) {
            resize(&world, bytes);
            expect_cut(&world);
        }
        resize(&world, JOURNAL_PAGE_BYTES - JOURNAL_UNIT);
        expect_cut(&world);
        resize(&world, RUN_SEGMENT_BYTES);
        expect(&world, JOURNAL_SCAN_TORN, 0);
        vfs_sim_destroy(world.sim);
    }
}

/* Two segments: the first cannot lose zeroes that its last record ends with, either. */
static void test_not_the_last(void **state)
{
    (void)state;
    struct run_world world;
    run_world_begin(&world, 1, JOURNAL_SYNC_EVERYSEC);
    while (journal_head(world.journal) <= RUN_SEGMENT_BYTES) {
        write_zeroes(&world);
    }
    uint64_t end = world.writer.end;
    assert_true(journal_sync_now(world.journal));
    run_world_end(&world, true);
    expect(&world, JOURNAL_SCAN_TORN, end);
    resize(&world, RUN_SEGMENT_BYTES - 1);
    expect_cut(&world);
    vfs_sim_destroy(world.sim);
}

/* ---- shortened by the journal ---- */

/* A follower puts no clean end: its stream ends where the leader's has come to. */
static void begin(struct run_world *world, bool follows)
{
    *world = (struct run_world){.sim = vfs_sim_create(1)};
    vfs_sim_set_clock(world->sim, 0);
    world->vfs = vfs_sim_vfs(world->sim);
    world->config = run_config(world->vfs, JOURNAL_SYNC_EVERYSEC);
    world->config.follows = follows;
    run_make_directory(world->vfs);
    world->journal = run_open(&world->config, NULL);
    journal_writer_init(&world->writer, world->journal);
}

/* The end is known by its record or by the mark, and nothing less will do. */
static void test_clean_end(void **state)
{
    (void)state;
    for (unsigned follows = 0; follows < 2; follows++) {
        struct run_world world;
        begin(&world, follows > 0);
        write_some(&world, 5);
        run_world_end(&world, false);
        uint64_t bytes = size_of(&world);
        uint64_t end = bytes - JOURNAL_PAGE_BYTES;
        assert_int_equal(end, world.ends[5] + (follows > 0 ? 0 : 2 * JOURNAL_UNIT));
        expect(&world, follows > 0 ? JOURNAL_SCAN_TORN : JOURNAL_SCAN_CLEAN, end);
        forget_marks(&world);
        if (follows > 0) {
            expect_cut(&world);
        } else {
            expect(&world, JOURNAL_SCAN_CLEAN, end);
        }
        forget_marks(&world); /* they are back */
        for (unsigned more = 1; more < 100; more += 40) {
            resize(&world, bytes + more);
            expect_cut(&world);
        }
        resize(&world, bytes - 1);
        expect_cut(&world);
        resize(&world, JOURNAL_PAGE_BYTES + world.ends[4]);
        expect_cut(&world);
        vfs_sim_destroy(world.sim);
    }
}

/* It dies before that call of a clean stop. False: it made fewer. */
static bool stops(struct run_doom *doom)
{
    struct run_world world;
    begin(&world, true);
    write_some(&world, 10);
    assert_true(journal_sync_now(world.journal));
    doom->sim = world.sim;
    vfs_sim_hook(world.sim, run_die_at, doom);
    run_world_end(&world, false);
    vfs_sim_hook(world.sim, NULL, NULL);
    world.vfs = vfs_sim_vfs(world.sim);
    expect(&world, JOURNAL_SCAN_TORN, world.ends[10]);
    vfs_sim_destroy(world.sim);
    return doom->calls >= doom->at;
}

/* Or of a start on a full disk, which takes the room after the stream's end. */
static bool starts(struct run_doom *doom)
{
    struct run_world world;
    char error[JOURNAL_ERROR_MAX];
    begin(&world, false);
    write_some(&world, 10);
    assert_true(journal_sync_now(world.journal));
    run_world_end(&world, true);
    forget_marks(&world);
    struct recovered recovered = run_world_scan(&world);
    world.config.start_lsn = recovered.scan.end;
    world.config.sum = recovered.scan.sum;
    world.config.follows = true;
    world.vfs->functions->unlink(world.vfs, RUN_DIRECTORY "/" JOURNAL_SPARE_NAME);
    vfs_sim_set_capacity(world.sim, vfs_sim_used(world.sim));
    doom->sim = world.sim;
    vfs_sim_hook(world.sim, run_die_at, doom);
    struct journal *journal = journal_open(&world.config, error);
    vfs_sim_hook(world.sim, NULL, NULL);
    bool died = doom->calls >= doom->at;
    assert_true(journal || died);
    assert_true(died || vfs_sim_calls(world.sim, VFS_SIM_TRUNCATE, FIRST_FILE) > 0);
    if (!died) {
        vfs_sim_kill(world.sim);
    }
    journal_close(journal);
    world.vfs = vfs_sim_vfs(world.sim);
    expect(&world, JOURNAL_SCAN_TORN, world.ends[10]);
    vfs_sim_destroy(world.sim);
    return died;
}

static void die_before_each(bool (*life)(struct run_doom *doom))
{
    for (uint64_t seed = 0; seed <= SEEDS; seed++) { /* the first is a kill */
        uint64_t call = 1;
        struct run_doom doom = {.at = call, .cut_seed = seed};
        while (life(&doom)) {
            doom = (struct run_doom){.at = ++call, .cut_seed = seed};
            assert_true(call < CALLS_MAX);
        }
        assert_true(call > 5);
    }
}

static void test_dies_when_it_stops(void **state)
{
    (void)state;
    die_before_each(stops);
}

static void test_dies_when_it_starts(void **state)
{
    (void)state;
    die_before_each(starts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_size),
        cmocka_unit_test(test_not_the_last),
        cmocka_unit_test(test_clean_end),
        cmocka_unit_test(test_dies_when_it_stops),
        cmocka_unit_test(test_dies_when_it_starts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
