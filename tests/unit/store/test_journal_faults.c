/* test_journal_faults.c: one fault at a time, and what the journal makes of it. */
#include "store/journal_private.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random.h"
#include "tests/support/vfs_sim.h"
#include "tests/unit/store/journal_run.h"

#define WHAT_TO_DO   "; check the disk, then restart the daemon"
#define RECORD_BYTES 1000u /* in the stream */
#define PAYLOAD      (RECORD_BYTES - JOURNAL_HEADER_BYTES)
#define SECOND_US    1000000u

struct world {
    struct vfs_sim *sim;
    struct journal_config config;
    struct journal *journal;
    struct journal_writer writer;
    uint64_t number; /* put last */
};

static void begin(struct world *world, enum journal_sync sync)
{
    *world = (struct world){.sim = vfs_sim_create(test_seed())};
    vfs_sim_set_clock(world->sim, SECOND_US);
    world->config = run_config(vfs_sim_vfs(world->sim), sync);
    run_make_directory(world->config.vfs);
    world->journal = run_open(&world->config, NULL);
    journal_writer_init(&world->writer, world->journal);
}

static bool write_one(struct world *world)
{
    return run_write(&world->writer, 0, ++world->number, 0, PAYLOAD);
}

static void write_some(struct world *world, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        assert_true(write_one(world));
    }
}

static struct journal_stats stats_of(struct world *world)
{
    struct journal_stats stats;
    journal_stats(world->journal, &stats);
    return stats;
}

static void close_journal(struct world *world)
{
    journal_writer_fini(&world->writer);
    journal_close(world->journal);
}

/* Everything from record 1 to `number` is there. */
static void expect_recovered(struct world *world, enum journal_scan_end end, uint64_t number)
{
    struct recovered recovered = {0};
    run_scan(vfs_sim_vfs(world->sim), 0, &recovered);
    assert_string_equal(recovered.scan.error, "");
    assert_int_equal(recovered.end, end);
    assert_int_equal(recovered.count[0], number);
}

static void end(struct world *world)
{
    vfs_sim_destroy(world->sim);
}

/* ---- a full disk ---- */

static void test_no_space_for_the_next(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_ALWAYS);
    vfs_sim_set_capacity(world.sim, RUN_SEGMENT_BYTES * 3 / 2);
    while (journal_reserve(&world.writer, RECORD_BYTES)) {
        run_put(&world.writer, 0, ++world.number, 0, PAYLOAD);
        assert_true(journal_commit(&world.writer));
        RUN_WAIT_FOR(journal_durable(world.journal) == world.writer.end);
        RUN_WAIT_FOR(stats_of(&world).buffer_used_bytes == 0);
    }
    assert_true(world.number * RECORD_BYTES > RUN_SEGMENT_BYTES * 9 / 10);
    RUN_WAIT_FOR(stats_of(&world).full);
    struct journal_stats stats = stats_of(&world);
    assert_false(stats.failed);
    assert_non_null(strstr(stats.error, "cannot allocate the next segment"));
    assert_non_null(strstr(stats.error, strerror(ENOSPC)));
    /* what has room is still written */
    assert_true(journal_commit(&world.writer));
    assert_true(journal_sync_now(world.journal));

    vfs_sim_set_capacity(world.sim, UINT64_MAX);
    assert_false(journal_reserve(&world.writer, RECORD_BYTES));
    vfs_sim_advance(world.sim, SECOND_US);
    write_some(&world, 10);
    stats = stats_of(&world);
    assert_false(stats.full);
    assert_string_equal(stats.error, "");
    close_journal(&world);
    expect_recovered(&world, JOURNAL_SCAN_CLEAN, world.number);
    end(&world);
}

/* What nobody needs goes for the next segment, and writers never see a full disk. */
static void test_no_space_but_what_may_go(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_ALWAYS);
    vfs_sim_set_capacity(world.sim, RUN_SEGMENT_BYTES * 7 / 2);
    while (world.number * RECORD_BYTES < RUN_SEGMENT_BYTES * 10) {
        write_some(&world, 1);
        RUN_WAIT_FOR(journal_durable(world.journal) == world.writer.end);
        RUN_WAIT_FOR(stats_of(&world).buffer_used_bytes == 0);
        journal_may_drop(world.journal, journal_durable(world.journal));
        assert_false(stats_of(&world).full);
        assert_true(journal_reserve(&world.writer, RECORD_BYTES));
    }
    assert_true(stats_of(&world).oldest > RUN_SEGMENT_BYTES * 6);
    close_journal(&world);
    end(&world);
}

/* Full to the last byte that is promised: there is room for the clean end. */
static void test_clean_end_on_a_full_disk(void **state)
{
    (void)state;
    for (unsigned bytes = 8; bytes <= 1032; bytes += 256) {
        struct world world;
        begin(&world, JOURNAL_SYNC_NEVER);
        vfs_sim_set_capacity(world.sim, RUN_SEGMENT_BYTES * 3 / 2);
        while (journal_reserve(&world.writer, bytes + RUN_PAYLOAD_MIN)) {
            run_put(&world.writer, 0, ++world.number, 0, bytes - 8 + RUN_PAYLOAD_MIN);
            assert_true(journal_commit(&world.writer));
        }
        close_journal(&world);
        expect_recovered(&world, JOURNAL_SCAN_CLEAN, world.number);
        end(&world);
    }
}

static void test_no_space_at_open(void **state)
{
    (void)state;
    struct vfs_sim *sim = vfs_sim_create(1);
    char error[JOURNAL_ERROR_MAX];
    struct journal_config config = run_config(vfs_sim_vfs(sim), JOURNAL_SYNC_NEVER);
    run_make_directory(config.vfs);
    vfs_sim_set_capacity(sim, JOURNAL_SMALL_BYTES); /* not even a small one */
    assert_null(journal_open(&config, error));
    assert_non_null(strstr(error, strerror(ENOSPC)));
    assert_int_equal(vfs_sim_used(sim), 0);
    vfs_sim_destroy(sim);
}

/* What a start needs is there: then it starts, whatever its segments and its buffer are. */
static void test_start_bytes(void **state)
{
    (void)state;
    static const struct {
        uint64_t segment, buffer;
    } sizes[] = {{1, 1}, {1, 128}, {4, 1}, {64, 1}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct vfs_sim *sim = vfs_sim_create(1);
        struct journal_config config = run_config(vfs_sim_vfs(sim), JOURNAL_SYNC_NEVER);
        config.segment_bytes = sizes[i].segment << 20;
        config.buffer_bytes = sizes[i].buffer << 20;
        uint64_t bytes = journal_start_bytes(config.segment_bytes, config.buffer_bytes);
        assert_true(bytes <= config.segment_bytes + JOURNAL_PAGE_BYTES);
        run_make_directory(config.vfs);
        vfs_sim_set_capacity(sim, bytes);
        journal_close(run_open(&config, NULL));
        vfs_sim_destroy(sim);
    }
}

/* From now on nothing more fits on the disk. */
static void fill_up(struct world *world)
{
    vfs_sim_set_capacity(world->sim, vfs_sim_used(world->sim));
}

/* A disk that is full at each start, and whatever a start leaves free is somebody else's: there is
 * the ballast. */
static void test_starts_on_a_full_disk(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_NEVER);
    journal_keep_room(world.journal);
    RUN_WAIT_FOR(vfs_sim_used(world.sim) >= 3 * RUN_SEGMENT_BYTES);
    assert_true(journal_room(world.journal) == JOURNAL_ROOM);
    write_some(&world, 1500); /* past the segment's end */
    for (unsigned starts = 0; starts < 4; starts++) {
        struct recovered recovered = {0};
        vfs_sim_kill(world.sim);
        close_journal(&world);
        world.config.vfs = vfs_sim_vfs(world.sim);
        run_scan(world.config.vfs, 0, &recovered);
        assert_int_equal(recovered.count[0], world.number);
        world.config.vfs->functions->unlink(world.config.vfs, RUN_DIRECTORY "/" JOURNAL_SPARE_NAME);
        fill_up(&world);
        world.journal = run_open(&world.config, &recovered);
        journal_writer_init(&world.writer, world.journal);
        assert_true(stats_of(&world).segment_bytes < (2 + 2 * starts + 2) * RUN_SEGMENT_BYTES);
        for (unsigned i = 0; i < 10; i++) {
            assert_true(run_write(&world.writer, 0, ++world.number, 0, PAYLOAD));
        }
    }
    /* with room it goes on, in segments as large as ever */
    uint64_t used = vfs_sim_used(world.sim);
    vfs_sim_set_capacity(world.sim, UINT64_MAX);
    vfs_sim_advance(world.sim, SECOND_US);
    RUN_WAIT_FOR(vfs_sim_used(world.sim) >= used + RUN_SEGMENT_BYTES);
    write_some(&world, 3000);
    close_journal(&world);
    expect_recovered(&world, JOURNAL_SCAN_CLEAN, world.number);
    end(&world);
}

/* Two segments and no ballast: that serves, as long as checkpoints follow. */
static void test_no_space_for_the_ballast(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_NEVER);
    vfs_sim_set_capacity(world.sim, RUN_SEGMENT_BYTES * 5 / 2);
    journal_keep_room(world.journal);
    RUN_WAIT_FOR(vfs_sim_used(world.sim) >= 2 * RUN_SEGMENT_BYTES);
    for (unsigned i = 0; i < 3; i++) {
        write_some(&world, 1200); /* into the next segment, not half of it */
        assert_true(journal_sync_now(world.journal));
        RUN_WAIT_FOR((journal_trim(world.journal, journal_durable(world.journal)),
                      stats_of(&world).segments == 1));
        journal_go_on(world.journal);
    }
    RUN_WAIT_FOR(!stats_of(&world).full);
    assert_true(journal_room(world.journal) == JOURNAL_ROOM);
    close_journal(&world);
    end(&world);
}

/* Room that comes back is not the writers' before the checkpoint was made. */
static void test_room_is_held(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_NEVER);
    journal_keep_room(world.journal);
    RUN_WAIT_FOR(vfs_sim_used(world.sim) >= 3 * RUN_SEGMENT_BYTES);
    fill_up(&world);
    while (journal_room(world.journal) == JOURNAL_ROOM ||
           journal_reserve(&world.writer, RECORD_BYTES)) {
        if (journal_reserve(&world.writer, RECORD_BYTES)) {
            run_put(&world.writer, 0, ++world.number, 0, PAYLOAD);
        }
        assert_true(journal_commit(&world.writer));
    }
    assert_true(journal_room(world.journal) == JOURNAL_ROOM_NONE);
    vfs_sim_set_capacity(world.sim, UINT64_MAX);
    vfs_sim_advance(world.sim, SECOND_US);
    assert_false(journal_reserve(&world.writer, RECORD_BYTES));
    RUN_WAIT_FOR(journal_room(world.journal) == JOURNAL_ROOM_HELD);
    assert_true(stats_of(&world).full);
    assert_false(journal_reserve(&world.writer, RECORD_BYTES));
    /* it was looked for, not taken: a checkpoint has it */
    struct vfs *vfs = vfs_sim_vfs(world.sim);
    assert_int_equal(vfs->functions->open(vfs, RUN_DIRECTORY "/" JOURNAL_SPARE_NAME, O_RDONLY), -1);
    journal_go_on(world.journal);
    RUN_WAIT_FOR(!stats_of(&world).full);
    assert_true(journal_room(world.journal) == JOURNAL_ROOM);
    write_some(&world, 1500);
    close_journal(&world);
    expect_recovered(&world, JOURNAL_SCAN_CLEAN, world.number);
    end(&world);
}

/* A file system that breaks its promise. */
static void no_space_when_written(int error)
{
    struct world world;
    begin(&world, JOURNAL_SYNC_EVERYSEC);
    write_some(&world, 3);
    struct vfs_sim_fault fault = {.op = VFS_SIM_PWRITE, .error = error};
    unsigned rule = vfs_sim_fault(world.sim, &fault);
    uint64_t committed = journal_written(world.journal);
    assert_false(write_one(&world));
    assert_false(journal_commit(&world.writer));
    assert_false(journal_reserve(&world.writer, RECORD_BYTES));
    assert_int_equal(journal_written(world.journal), committed);
    struct journal_stats stats = stats_of(&world);
    assert_true(stats.full && !stats.failed);
    assert_non_null(strstr(stats.error, "cannot write"));
    assert_null(strstr(stats.error, WHAT_TO_DO)); /* it goes on by itself */
    vfs_sim_fault_end(world.sim, rule);
    /* the sync thread writes it, without anybody's asking */
    vfs_sim_advance(world.sim, SECOND_US);
    RUN_WAIT_FOR(journal_written(world.journal) == journal_head(world.journal));
    RUN_WAIT_FOR(!stats_of(&world).full);
    write_some(&world, 3);
    assert_string_equal(stats_of(&world).error, "");
    close_journal(&world);
    expect_recovered(&world, JOURNAL_SCAN_CLEAN, world.number);
    end(&world);
}

static void test_no_space_when_written(void **state)
{
    (void)state;
    no_space_when_written(ENOSPC);
    no_space_when_written(EDQUOT);
}

/* ---- a write that fails ---- */

static void test_write_error_once(void **state)
{
    (void)state;
    for (unsigned sync = JOURNAL_SYNC_NEVER; sync <= JOURNAL_SYNC_ALWAYS; sync++) {
        struct world world;
        begin(&world, sync);
        write_some(&world, 3);
        struct vfs_sim_fault fault = {.op = VFS_SIM_PWRITE, .times = 1, .path = "journal-0"};
        unsigned rule = vfs_sim_fault(world.sim, &fault);
        write_some(&world, 1500); /* past the segment's end */
        assert_int_equal(vfs_sim_fault_hits(world.sim, rule), 1);
        assert_false(stats_of(&world).failed);
        /* under always it may have hit a mark, which costs nothing */
        assert_true(stats_of(&world).segments >= (sync == JOURNAL_SYNC_ALWAYS ? 2 : 3));
        assert_true(journal_sync_now(world.journal));
        RUN_WAIT_FOR(vfs_sim_calls(world.sim, VFS_SIM_CLOSE, "journal-0000000000000000") > 0);
        vfs_sim_kill(world.sim);
        close_journal(&world);
        assert_true(run_check_seals(vfs_sim_vfs(world.sim)) > 0);
        expect_recovered(&world, JOURNAL_SCAN_TORN, world.number);
        end(&world);
    }
}

static void test_write_error(void **state)
{
    (void)state;
    struct world world;
    struct run_listener listener;
    begin(&world, JOURNAL_SYNC_EVERYSEC);
    run_listen(&listener, world.journal);
    write_some(&world, 3);
    struct vfs_sim_fault fault = {.op = VFS_SIM_PWRITE};
    vfs_sim_fault(world.sim, &fault);
    assert_false(write_one(&world));
    assert_false(run_wait_moved(&listener, world.journal, true, world.writer.end));
    assert_false(journal_commit(&world.writer));
    assert_false(journal_reserve(&world.writer, RECORD_BYTES));
    assert_false(journal_sync_now(world.journal));
    struct journal_stats stats = stats_of(&world);
    assert_true(stats.failed);
    assert_non_null(strstr(stats.error, RUN_DIRECTORY "/journal-0000000000000000: offset 7096: "));
    assert_non_null(strstr(stats.error, strerror(EIO)));
    assert_non_null(strstr(stats.error, WHAT_TO_DO));
    close_journal(&world);
    vfs_sim_faults_end(world.sim);
    expect_recovered(&world, JOURNAL_SCAN_TORN, 3);
    end(&world);
}

/* The next segment cannot be begun in the file that was made for it. */
static void test_spare_error(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_EVERYSEC);
    struct vfs_sim_fault fault = {.op = VFS_SIM_RENAME, .times = 1};
    unsigned rule = vfs_sim_fault(world.sim, &fault);
    write_some(&world, 3000);
    assert_int_equal(vfs_sim_fault_hits(world.sim, rule), 1);
    close_journal(&world);
    expect_recovered(&world, JOURNAL_SCAN_CLEAN, world.number);
    end(&world);
}

/* ---- a sync that fails ---- */

/* Not everything was durable when the power went; but all that the journal said was. */
static void cut(struct world *world, uint64_t durable_number)
{
    vfs_sim_power_cut(world->sim, test_seed());
    close_journal(world);
    struct recovered recovered = {0};
    run_scan(vfs_sim_vfs(world->sim), 0, &recovered);
    assert_string_equal(recovered.scan.error, "");
    assert_true(recovered.count[0] >= durable_number);
    assert_true(recovered.count[0] <= world->number);
}

static void test_sync_error_once(void **state)
{
    (void)state;
    for (unsigned partly = 0; partly < 2; partly++) {
        for (unsigned call = 1; call <= 8; call++) {
            struct world world;
            begin(&world, call % 2 ? JOURNAL_SYNC_EVERYSEC : JOURNAL_SYNC_ALWAYS);
            struct vfs_sim_fault fault = {
                .op = VFS_SIM_FDATASYNC,
                .first = call,
                .times = 1,
                .path = "journal-0",
                .kind = partly ? VFS_SIM_SYNC_PARTLY_LOST : VFS_SIM_SYNC_LOST,
            };
            unsigned rule = vfs_sim_fault(world.sim, &fault);
            while (vfs_sim_fault_hits(world.sim, rule) == 0) {
                write_some(&world, 150);
                assert_true(journal_sync_now(world.journal));
            }
            assert_false(stats_of(&world).failed);
            assert_int_equal(journal_durable(world.journal), world.writer.end);
            uint64_t durable = world.number;
            write_some(&world, 10);
            cut(&world, durable);
            end(&world);
        }
    }
}

/* What was rewritten is deleted as usual, and the stream goes on over its end. */
static void test_life_after_a_sync_error(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_EVERYSEC);
    write_some(&world, 100);
    assert_true(journal_sync_now(world.journal));
    write_some(&world, 100);
    struct vfs_sim_fault fault = {.op = VFS_SIM_FDATASYNC, .times = 1, .kind = VFS_SIM_SYNC_LOST};
    vfs_sim_fault(world.sim, &fault);
    assert_true(journal_sync_now(world.journal));
    assert_int_equal(stats_of(&world).segments, 2);
    write_some(&world, 3000);
    assert_true(journal_sync_now(world.journal));
    expect_recovered(&world, JOURNAL_SCAN_TORN, world.number);
    RUN_WAIT_FOR((journal_trim(world.journal, journal_durable(world.journal)),
                  stats_of(&world).segments == 1));
    close_journal(&world);
    end(&world);
}

static void test_sync_error(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_ALWAYS);
    write_some(&world, 3);
    assert_true(journal_sync_now(world.journal));
    struct vfs_sim_fault fault = {.op = VFS_SIM_FDATASYNC, .kind = VFS_SIM_SYNC_LOST};
    vfs_sim_fault(world.sim, &fault);
    assert_true(write_one(&world)); /* written it is */
    assert_false(journal_sync_now(world.journal));
    assert_true(stats_of(&world).failed);
    assert_non_null(strstr(stats_of(&world).error, "offset 7096: cannot make durable"));
    assert_non_null(strstr(stats_of(&world).error, WHAT_TO_DO));
    assert_false(journal_reserve(&world.writer, RECORD_BYTES));
    assert_false(journal_commit(&world.writer));
    vfs_sim_faults_end(world.sim);
    /* it is only in the system's memory: the next start makes it durable */
    close_journal(&world);
    struct recovered recovered = {0};
    run_scan(world.config.vfs, 0, &recovered);
    assert_int_equal(recovered.end, JOURNAL_SCAN_TORN);
    assert_int_equal(recovered.count[0], 4);
    world.journal = run_open(&world.config, &recovered);
    journal_writer_init(&world.writer, world.journal);
    cut(&world, 4);
    end(&world);
}

/* never: the ring keeps nothing, so it cannot be written again. */
static void test_sync_error_never(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_NEVER);
    write_some(&world, 3);
    struct vfs_sim_fault fault = {.op = VFS_SIM_FDATASYNC, .times = 1};
    vfs_sim_fault(world.sim, &fault);
    assert_false(journal_sync_now(world.journal));
    assert_true(stats_of(&world).failed);
    close_journal(&world);
    expect_recovered(&world, JOURNAL_SCAN_TORN, 3);
    end(&world);
}

/* ---- the rest ---- */

static void test_directory_error(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_EVERYSEC);
    write_some(&world, 1100); /* a second segment */
    struct vfs_sim_fault fault = {.op = VFS_SIM_SYNC_DIR, .times = 1};
    unsigned rule = vfs_sim_fault(world.sim, &fault);
    assert_true(journal_sync_now(world.journal));
    write_some(&world, 1100);
    assert_true(journal_sync_now(world.journal));
    assert_int_equal(vfs_sim_fault_hits(world.sim, rule), 1);
    cut(&world, world.number);
    end(&world);
}

static void test_trim_error(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_EVERYSEC);
    write_some(&world, 1100);
    assert_true(journal_sync_now(world.journal));
    struct vfs_sim_fault fault = {.op = VFS_SIM_UNLINK, .error = EACCES, .path = "journal-0"};
    vfs_sim_fault(world.sim, &fault);
    RUN_WAIT_FOR(!journal_trim(world.journal, journal_durable(world.journal)));
    assert_int_equal(errno, EACCES);
    assert_int_equal(stats_of(&world).segments, 2);
    vfs_sim_faults_end(world.sim);
    assert_true(journal_trim(world.journal, journal_durable(world.journal)));
    assert_int_equal(stats_of(&world).segments, 1);
    close_journal(&world);
    end(&world);
}

static void test_read_error(void **state)
{
    (void)state;
    struct world world;
    begin(&world, JOURNAL_SYNC_EVERYSEC);
    write_some(&world, 1100);
    close_journal(&world);
    for (unsigned call = 1; call <= 4; call++) {
        struct vfs_sim_fault fault = {.op = VFS_SIM_PREAD, .first = call, .times = 1};
        struct recovered recovered = {0};
        vfs_sim_fault(world.sim, &fault);
        run_scan(world.config.vfs, 0, &recovered);
        assert_int_equal(recovered.end, JOURNAL_SCAN_FAILED);
        assert_non_null(strstr(recovered.scan.error, RUN_DIRECTORY "/journal-0"));
        assert_non_null(strstr(recovered.scan.error, strerror(EIO)));
    }
    expect_recovered(&world, JOURNAL_SCAN_CLEAN, world.number);
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_space_for_the_next),
        cmocka_unit_test(test_no_space_but_what_may_go),
        cmocka_unit_test(test_clean_end_on_a_full_disk),
        cmocka_unit_test(test_no_space_at_open),
        cmocka_unit_test(test_start_bytes),
        cmocka_unit_test(test_starts_on_a_full_disk),
        cmocka_unit_test(test_no_space_for_the_ballast),
        cmocka_unit_test(test_room_is_held),
        cmocka_unit_test(test_no_space_when_written),
        cmocka_unit_test(test_write_error_once),
        cmocka_unit_test(test_write_error),
        cmocka_unit_test(test_spare_error),
        cmocka_unit_test(test_sync_error_once),
        cmocka_unit_test(test_life_after_a_sync_error),
        cmocka_unit_test(test_sync_error),
        cmocka_unit_test(test_sync_error_never),
        cmocka_unit_test(test_directory_error),
        cmocka_unit_test(test_trim_error),
        cmocka_unit_test(test_read_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
