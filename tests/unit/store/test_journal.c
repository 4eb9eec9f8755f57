/* test_journal.c: the journal when nothing goes wrong: all that is put comes back. */
#include "store/journal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/journal_private.h"
#include "tests/support/give_way.h"
#include "tests/support/random.h"
#include "tests/support/vfs_sim.h"
#include "tests/unit/store/journal_run.h"

#define ROUND_TRIP_BYTES (8u << 20)
#define COMMIT_ONCE_IN   20
#define LIVES            5
#define SLOW_TURNS       1000u
#define SEGMENTS         JOURNAL_OPEN_SEGMENTS
#define LONG             1000u /* bytes of a payload */

/* A world for one test: a disk, a directory. */
static struct vfs_sim *begin(struct vfs **vfs)
{
    struct vfs_sim *sim = vfs_sim_create(test_seed());
    *vfs = vfs_sim_vfs(sim);
    run_make_directory(*vfs);
    return sim;
}

/* Writes at least `bytes` of records of all sizes. Returns how many writer 0 has put. */
static uint64_t write_many(struct journal *journal, struct test_random *random, uint64_t number,
                           uint64_t life, uint64_t bytes)
{
    struct journal_writer writer;
    uint64_t until = journal_head(journal) + bytes;
    journal_writer_init(&writer, journal);
    while (journal_head(journal) < until) {
        size_t size = test_random_once_in(random, 4)
                          ? RUN_PAYLOAD_MIN +
                                test_random_below(random, JOURNAL_PAYLOAD_MAX - RUN_PAYLOAD_MIN + 1)
                          : RUN_PAYLOAD_MIN + test_random_below(random, 32);
        run_reserve(&writer, size + 16);
        uint64_t lsn = run_put(&writer, 0, ++number, life, size);
        assert_int_equal(lsn % 8, 0);
        assert_true(writer.end > lsn + size && writer.end <= journal_head(journal));
        if (test_random_once_in(random, COMMIT_ONCE_IN)) {
            assert_true(journal_commit(&writer));
            assert_true(journal_written(journal) >= writer.end);
            assert_int_equal(writer.credit, 0);
        }
    }
    assert_true(journal_commit(&writer));
    assert_int_equal(journal_written(journal), journal_head(journal));
    journal_writer_fini(&writer);
    return number;
}

static void check_figures(struct journal *journal, uint64_t records)
{
    struct journal_stats stats;
    journal_stats(journal, &stats);
    assert_int_equal(stats.records, records);
    assert_int_equal(stats.head, journal_head(journal));
    assert_int_equal(stats.written, journal_written(journal));
    assert_true(stats.writes > 0 && stats.segments > 0);
    assert_true(stats.segment_bytes >= stats.segments * RUN_SEGMENT_BYTES);
    assert_false(stats.full || stats.failed);
    assert_string_equal(stats.error, "");
}

/* Several lives over many segments, under every sync setting. */
static void test_round_trip(void **state)
{
    (void)state;
    for (unsigned sync = JOURNAL_SYNC_NEVER; sync <= JOURNAL_SYNC_ALWAYS; sync++) {
        struct vfs *vfs;
        struct vfs_sim *sim = begin(&vfs);
        struct test_random random = {.state = sync};
        struct recovered recovered = {0};
        uint64_t number = 0;
        for (uint64_t life = 0; life < LIVES; life++) {
            struct journal_config config = run_config(vfs, sync);
            config.segment_bytes += 4096 * test_random_below(&random, 100);
            struct journal *journal = run_open(&config, life > 0 ? &recovered : NULL);
            uint64_t before = number;
            number = write_many(journal, &random, number, life, ROUND_TRIP_BYTES / LIVES);
            check_figures(journal, number - before);
            journal_close(journal);
            recovered = (struct recovered){0};
            run_scan(vfs, 0, &recovered);
            assert_string_equal(recovered.scan.error, "");
            assert_int_equal(recovered.end, JOURNAL_SCAN_CLEAN);
            assert_int_equal(recovered.count[0], number);
            assert_int_equal(recovered.scan.durable, recovered.scan.end);
            assert_int_equal(recovered.scan.torn_bytes, 0);
            assert_int_equal(recovered.scan.epoch, 1);
        }
        vfs_sim_destroy(sim);
    }
}

/* A stream that begins far from 0, and an end that is not clean. */
static void test_any_start(void **state)
{
    (void)state;
    struct vfs *vfs;
    struct vfs_sim *sim = begin(&vfs);
    struct test_random random = {.state = 1};
    struct journal_config config = run_config(vfs, JOURNAL_SYNC_EVERYSEC);
    config.start_lsn = 123456789012345608;
    struct journal *journal = run_open(&config, NULL);
    uint64_t number = write_many(journal, &random, 0, 0, 3 * RUN_SEGMENT_BYTES);
    uint64_t head = journal_head(journal);
    vfs_sim_kill(sim);
    journal_close(journal);

    vfs = vfs_sim_vfs(sim);
    struct recovered recovered = {0};
    run_scan(vfs, config.start_lsn, &recovered);
    assert_int_equal(recovered.end, JOURNAL_SCAN_TORN);
    assert_int_equal(recovered.count[0], number);
    assert_int_equal(recovered.scan.first, config.start_lsn);
    assert_int_equal(recovered.scan.end, head);
    assert_int_equal(recovered.scan.torn_bytes, 0);
    recovered = (struct recovered){0};
    run_scan(vfs, JOURNAL_FROM_OLDEST, &recovered);
    assert_int_equal(recovered.count[0], number);
    run_scan(vfs, config.start_lsn - 8, &recovered);
    assert_int_equal(recovered.end, JOURNAL_SCAN_DAMAGED);
    run_scan(vfs, head + 8, &recovered);
    assert_int_equal(recovered.end, JOURNAL_SCAN_DAMAGED);
    vfs_sim_destroy(sim);
}

static void test_empty(void **state)
{
    (void)state;
    struct vfs *vfs;
    struct vfs_sim *sim = begin(&vfs);
    struct recovered recovered = {0};
    run_scan(vfs, 0, &recovered);
    assert_int_equal(recovered.end, JOURNAL_SCAN_CLEAN);
    assert_true(recovered.scan.empty);
    assert_int_equal(recovered.scan.end, 0);
    run_scan(vfs, 8, &recovered);
    assert_int_equal(recovered.end, JOURNAL_SCAN_DAMAGED);

    /* opened and left without a record; a kill leaves it as good as empty */
    struct journal_config config = run_config(vfs, JOURNAL_SYNC_EVERYSEC);
    struct journal *journal = run_open(&config, NULL);
    vfs_sim_kill(sim);
    journal_close(journal);
    vfs = config.vfs = vfs_sim_vfs(sim);
    recovered = (struct recovered){0};
    run_scan(vfs, 0, &recovered);
    assert_int_equal(recovered.end, JOURNAL_SCAN_TORN);
    assert_false(recovered.scan.empty);
    assert_int_equal(recovered.scan.end, 0);
    journal = run_open(&config, &recovered);
    journal_close(journal);
    run_scan(vfs, 0, &recovered);
    assert_int_equal(recovered.end, JOURNAL_SCAN_CLEAN);
    vfs_sim_destroy(sim);
}

static bool stop_after_ten(void *context, const struct journal_record *record)
{
    (void)record;
    return ++*(unsigned *)context < 10;
}

/* From the middle, and not to the end. */
static void test_part(void **state)
{
    (void)state;
    struct vfs *vfs;
    struct vfs_sim *sim = begin(&vfs);
    struct test_random random = {.state = 2};
    struct journal_config config = run_config(vfs, JOURNAL_SYNC_NEVER);
    struct journal *journal = run_open(&config, NULL);
    uint64_t number = write_many(journal, &random, 0, 0, 2 * RUN_SEGMENT_BYTES);
    uint64_t middle = journal_head(journal);
    uint64_t last = write_many(journal, &random, number, 0, 2 * RUN_SEGMENT_BYTES);
    journal_close(journal);

    struct recovered recovered = {.count = {number}};
    vfs_sim_counts_clear(sim);
    run_scan(vfs, middle, &recovered);
    assert_int_equal(recovered.end, JOURNAL_SCAN_CLEAN);
    assert_int_equal(recovered.count[0], last);
    /* of the older segments only the header page */
    assert_int_equal(vfs_sim_bytes(sim, VFS_SIM_PREAD, "journal-0000000000000000"), 4096);
    unsigned seen = 0;
    struct journal_scan scan = {.from = 0};
    assert_int_equal(journal_scan(vfs, RUN_DIRECTORY, &scan, stop_after_ten, &seen),
                     JOURNAL_SCAN_STOPPED);
    assert_int_equal(seen, 10);
    vfs_sim_destroy(sim);
}

/* Whoever waits for a sync goes on before its thread has sealed the segments. */
static void be_slow(void *context, enum vfs_sim_op op, const char *path)
{
    (void)context;
    for (unsigned i = 0; i < SLOW_TURNS && op == VFS_SIM_FDATASYNC && path != NULL; i++) {
        give_way();
    }
}

/* Trimmed segments go, the oldest first, as soon as they are durable; none before it is. */
static void test_trim(void **state)
{
    (void)state;
    struct vfs *vfs;
    struct vfs_sim *sim = begin(&vfs);
    struct test_random random = {.state = 3};
    struct journal_stats stats;
    struct journal_config config = run_config(vfs, JOURNAL_SYNC_NEVER);
    struct journal *journal = run_open(&config, NULL);
    uint64_t number = write_many(journal, &random, 0, 0, (SEGMENTS - 1) * RUN_SEGMENT_BYTES);
    assert_true(journal_trim(journal, UINT64_MAX)); /* nothing is durable yet */
    journal_stats(journal, &stats);
    assert_int_equal(stats.oldest, 0);
    assert_true(stats.segments >= SEGMENTS - 1);
    vfs_sim_hook(sim, be_slow, NULL);
    assert_true(journal_sync_now(journal));
    assert_int_equal(journal_durable(journal), journal_head(journal));
    assert_true(journal_trim(journal, RUN_SEGMENT_BYTES - 4096));
    journal_stats(journal, &stats);
    assert_int_equal(stats.oldest, RUN_SEGMENT_BYTES - 4096);
    uint64_t middle = journal_head(journal);
    assert_true(journal_trim(journal, middle));
    journal_stats(journal, &stats);
    assert_int_equal(stats.segments, 1);
    vfs_sim_hook(sim, NULL, NULL);
    uint64_t last = write_many(journal, &random, number, 0, RUN_SEGMENT_BYTES);
    journal_close(journal);
    struct recovered recovered = {.count = {number}};
    run_scan(vfs, middle, &recovered);
    assert_int_equal(recovered.end, JOURNAL_SCAN_CLEAN);
    assert_int_equal(recovered.count[0], last);
    run_scan(vfs, 0, &recovered);
    assert_int_equal(recovered.end, JOURNAL_SCAN_DAMAGED);
    vfs_sim_destroy(sim);
}

/* ---- few files are open ---- */

/* Files of the journal that are open; `closed` is read last, so at the least. */
static uint64_t open_files(struct vfs_sim *sim)
{
    uint64_t opened = vfs_sim_calls(sim, VFS_SIM_OPEN, "journal-");
    uint64_t closed = vfs_sim_calls(sim, VFS_SIM_CLOSE, "journal-");
    return opened > closed ? opened - closed : 0;
}

/* However many segments are written, and with no checkpoint to have them synced: also under never.
 */
static void test_few_are_open(void **state)
{
    (void)state;
    for (unsigned sync = JOURNAL_SYNC_NEVER; sync <= JOURNAL_SYNC_ALWAYS; sync++) {
        struct vfs *vfs;
        struct vfs_sim *sim = begin(&vfs);
        struct test_random random = {.state = 5};
        struct journal_config config = run_config(vfs, sync);
        uint64_t number = 0;
        vfs_sim_set_clock(sim, 5000000); /* no second passes */
        struct journal *journal = run_open(&config, NULL);
        for (unsigned i = 0; i < 8 * SEGMENTS; i++) {
            number = write_many(journal, &random, number, 0, RUN_SEGMENT_BYTES / 4);
            assert_true(open_files(sim) <= JOURNAL_FILES_MAX);
        }
        assert_true(vfs_sim_calls(sim, VFS_SIM_OPEN, "journal-") >= 2 * SEGMENTS);
        journal_close(journal);
        assert_int_equal(open_files(sim), 0);
        struct recovered recovered = {0};
        run_scan(vfs, 0, &recovered);
        assert_int_equal(recovered.end, JOURNAL_SCAN_CLEAN);
        assert_int_equal(recovered.count[0], number);
        vfs_sim_destroy(sim);
    }
}

/* What a sync has made durable whole is not open any more. */
static void test_open_are_counted(void **state)
{
    (void)state;
    struct vfs *vfs;
    struct vfs_sim *sim = begin(&vfs);
    struct test_random random = {.state = 6};
    struct journal_stats stats;
    struct journal_config config = run_config(vfs, JOURNAL_SYNC_NEVER);
    struct journal *journal = run_open(&config, NULL);
    assert_int_equal(journal->open, 1);
    write_many(journal, &random, 0, 0, (SEGMENTS - 1) * RUN_SEGMENT_BYTES);
    RUN_WAIT_FOR(journal_written(journal) == journal_head(journal));
    journal_stats(journal, &stats);
    assert_in_range(stats.segments, 2, SEGMENTS); /* so nothing was synced */
    assert_int_equal(journal->open, stats.segments);
    assert_true(journal_sync_now(journal));
    assert_int_equal(journal->open, 1);
    journal_close(journal);
    vfs_sim_destroy(sim);
}

/* A sync of the first segment, which takes as long as the test wants. */
struct hang {
    _Atomic bool hangs, over;
};

static void hang(void *context, enum vfs_sim_op op, const char *path)
{
    struct hang *sync = context;
    if (op == VFS_SIM_FDATASYNC && strstr(path, "journal-0000000000000000") != NULL) {
        sync->hangs = true;
        RUN_WAIT_FOR(sync->over);
    }
}

/* While that sync hangs, writes have the room that was made before, as of a full buffer. */
static void test_few_are_open_while_a_sync_hangs(void **state)
{
    (void)state;
    struct vfs *vfs;
    struct vfs_sim *sim = begin(&vfs);
    struct hang sync = {.hangs = false};
    struct journal_config config = run_config(vfs, JOURNAL_SYNC_NEVER);
    struct journal_writer writer;
    struct recovered recovered = {0};
    uint64_t number = 0;
    struct journal *journal = run_open(&config, NULL);
    journal_writer_init(&writer, journal);
    vfs_sim_hook(sim, hang, &sync);
    bool room = true;
    while (room) {
        RUN_WAIT_FOR((room = journal_reserve(&writer, 2 * LONG)) || sync.hangs);
        if (room) {
            run_put(&writer, 0, ++number, 0, LONG);
            assert_true(journal_commit(&writer));
        }
        assert_true(number * LONG < 2 * SEGMENTS * RUN_SEGMENT_BYTES);
    }
    assert_true(open_files(sim) <= JOURNAL_FILES_MAX);
    assert_false(journal_failed(journal));
    sync.over = true;
    for (unsigned i = 0; i < RUN_SEGMENT_BYTES / LONG; i++) { /* it goes on */
        assert_true(run_write(&writer, 0, ++number, 0, LONG));
    }
    journal_writer_fini(&writer);
    journal_close(journal);
    run_scan(vfs, 0, &recovered);
    assert_int_equal(recovered.end, JOURNAL_SCAN_CLEAN);
    assert_int_equal(recovered.count[0], number);
    vfs_sim_destroy(sim);
}

/* always: what is submitted becomes durable by itself; the others: when it is asked for. Whoever
 * waits is told of both. */
static void test_wait(void **state)
{
    (void)state;
    for (unsigned sync = JOURNAL_SYNC_NEVER; sync <= JOURNAL_SYNC_ALWAYS; sync++) {
        struct vfs *vfs;
        struct vfs_sim *sim = begin(&vfs);
        struct journal_config config = run_config(vfs, sync);
        struct journal *journal = run_open(&config, NULL);
        struct run_listener listener;
        struct journal_writer writer;
        run_listen(&listener, journal);
        journal_writer_init(&writer, journal);
        uint64_t rounds = sync == JOURNAL_SYNC_EVERYSEC ? 1 : 10; /* it takes its second */
        for (uint64_t number = 1; number <= rounds; number++) {
            run_reserve(&writer, 200);
            run_put(&writer, 0, number, 0, 100);
            assert_int_equal(journal_submit(&writer), writer.end);
            assert_true(run_wait_moved(&listener, journal, false, writer.end));
            if (sync == JOURNAL_SYNC_NEVER) {
                assert_true(journal_durable(journal) < writer.end);
                assert_true(journal_sync_now(journal));
            }
            assert_true(run_wait_moved(&listener, journal, true, writer.end));
        }
        journal_writer_fini(&writer);
        journal_close(journal);
        vfs_sim_destroy(sim);
    }
}

/* Who waits for room is told when somebody gives it back, and not before. */
static void test_wait_for_room(void **state)
{
    (void)state;
    struct vfs *vfs;
    struct vfs_sim *sim = begin(&vfs);
    struct journal_config config = run_config(vfs, JOURNAL_SYNC_NEVER);
    struct journal *journal = run_open(&config, NULL);
    struct run_listener listener;
    struct journal_writer hog;
    struct journal_writer writer;
    run_listen(&listener, journal);
    journal_writer_init(&hog, journal);
    journal_writer_init(&writer, journal);
    journal_want_room(journal, 100); /* there is some */
    run_wait_room(&listener, 1);
    for (size_t bytes = RUN_BUFFER_BYTES; bytes >= 8; bytes -= 8) { /* to the last byte */
        (void)journal_reserve(&hog, hog.credit + bytes);
    }
    assert_false(journal_reserve(&writer, 100));
    journal_want_room(journal, 100);
    assert_true(journal_sync_now(journal)); /* what comes by is none */
    assert_int_equal(run_room_told(&listener), 1);
    journal_give_back(&hog, 0);
    run_wait_room(&listener, 2);
    assert_true(journal_reserve(&writer, 100));
    journal_give_back(&writer, 0); /* nobody waits any more */
    journal_want_room(journal, 100);
    run_wait_room(&listener, 3);
    journal_writer_fini(&hog);
    journal_writer_fini(&writer);
    journal_close(journal);
    vfs_sim_destroy(sim);
}

/* everysec by its clock: no sync before the second is over, one after it. */
static void test_everysec(void **state)
{
    (void)state;
    struct vfs *vfs;
    struct vfs_sim *sim = begin(&vfs);
    struct journal_stats stats;
    vfs_sim_set_clock(sim, 5000000);
    struct journal_config config = run_config(vfs, JOURNAL_SYNC_EVERYSEC);
    struct journal *journal = run_open(&config, NULL);
    struct journal_writer writer;
    journal_writer_init(&writer, journal);
    assert_true(run_write(&writer, 0, 1, 0, 100));
    vfs_sim_advance(sim, 999000);
    journal_stats(journal, &stats);
    assert_int_equal(stats.unsynced_us, 999000);
    assert_int_equal(stats.durable, 0);
    vfs_sim_advance(sim, 1000);
    RUN_WAIT_FOR(journal_durable(journal) == writer.end);
    RUN_WAIT_FOR((journal_stats(journal, &stats), stats.buffer_used_bytes == 0));
    assert_int_equal(stats.unsynced_us, 0);
    assert_int_equal(stats.syncs, 1);
    journal_writer_fini(&writer);
    journal_close(journal);
    vfs_sim_destroy(sim);
}

#define PIECE_BYTES    (128u << 10) /* of pages asked for: journal_pages.c */
#define PIECES_AHEAD   128u
#define PIECES_WRITTEN 16u

/* Writes so many pieces of the file, and waits until the thread asked for more. */
static void write_pieces(struct vfs_sim *sim, struct journal_writer *writer, uint64_t *number,
                         uint64_t pieces)
{
    uint64_t until = writer->end + pieces * PIECE_BYTES;
    uint64_t before = vfs_sim_calls(sim, VFS_SIM_READAHEAD, "journal-");
    while (writer->end < until) {
        run_reserve(writer, 1000);
        assert_true(run_write(writer, 0, ++*number, 0, 990));
    }
    RUN_WAIT_FOR(vfs_sim_calls(sim, VFS_SIM_READAHEAD, "journal-") >= before + pieces);
}

/* The pages that are written next are asked for, some and not the whole file, those that were
 * written are sent out; that it fails is nobody's trouble. */
static void test_pages(void **state)
{
    (void)state;
    struct vfs *vfs;
    struct vfs_sim *sim = begin(&vfs);
    struct journal_config config = run_config(vfs, JOURNAL_SYNC_NEVER);
    config.segment_bytes = 64u << 20;
    struct journal *journal = run_open(&config, NULL);
    struct journal_writer writer;
    journal_writer_init(&writer, journal);
    uint64_t number = 0;
    RUN_WAIT_FOR(vfs_sim_bytes(sim, VFS_SIM_READAHEAD, "journal-") == PIECES_AHEAD * PIECE_BYTES);
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_READAHEAD, "journal-"), PIECES_AHEAD);
    write_pieces(sim, &writer, &number, PIECES_WRITTEN);
    RUN_WAIT_FOR(vfs_sim_calls(sim, VFS_SIM_WRITEBACK, "journal-") >= 1);
    vfs_sim_fault(
        sim, &(struct vfs_sim_fault){.op = VFS_SIM_READAHEAD, .kind = VFS_SIM_FAIL, .error = EIO});
    write_pieces(sim, &writer, &number, PIECES_WRITTEN);
    assert_true(vfs_sim_calls(sim, VFS_SIM_READAHEAD, "journal-") <=
                PIECES_AHEAD + 2 * PIECES_WRITTEN + 1);
    struct journal_stats stats;
    journal_stats(journal, &stats);
    assert_false(stats.failed);
    assert_string_equal(stats.error, "");
    assert_int_equal(stats.written, writer.end);
    journal_writer_fini(&writer);
    journal_close(journal);
    vfs_sim_destroy(sim);
}

/* The last piece ends with its segment; the next segment's come when it is begun. */
static void test_pages_of_segments(void **state)
{
    (void)state;
    struct vfs *vfs;
    struct vfs_sim *sim = begin(&vfs);
    struct journal_config config = run_config(vfs, JOURNAL_SYNC_EVERYSEC);
    struct journal *journal = run_open(&config, NULL);
    struct journal_writer writer;
    uint64_t number = 0;
    const uint64_t full = RUN_SEGMENT_BYTES - 4096;
    const uint64_t pieces = (full + PIECE_BYTES - 1) / PIECE_BYTES;
    journal_writer_init(&writer, journal);
    RUN_WAIT_FOR(vfs_sim_bytes(sim, VFS_SIM_READAHEAD, "journal-") == full);
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_READAHEAD, "journal-"), pieces);
    while (writer.end <= full) {
        assert_int_equal(vfs_sim_calls(sim, VFS_SIM_READAHEAD, "journal-"), pieces);
        run_reserve(&writer, 1000);
        assert_true(run_write(&writer, 0, ++number, 0, 990));
    }
    /* all but what was written before the thread could look */
    RUN_WAIT_FOR(vfs_sim_bytes(sim, VFS_SIM_READAHEAD, "journal-") == full + 2 * full - writer.end);
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_READAHEAD, "journal-"), 2 * pieces);
    journal_writer_fini(&writer);
    journal_close(journal);
    vfs_sim_destroy(sim);
}

/* The ring is full until it is written (never) or durable (the others); no record is lost. */
static void test_full_ring(void **state)
{
    (void)state;
    struct vfs *vfs;
    struct vfs_sim *sim = begin(&vfs);
    struct journal_stats stats;
    vfs_sim_set_clock(sim, 0);
    struct journal_config config = run_config(vfs, JOURNAL_SYNC_NEVER);
    struct journal *journal = run_open(&config, NULL);
    struct journal_writer writer;
    journal_writer_init(&writer, journal);
    uint64_t number = 0;
    while (journal_reserve(&writer, 1000)) {
        run_put(&writer, 0, ++number, 0, 992);
    }
    assert_true(number * 1000 > RUN_BUFFER_BYTES * 9 / 10);
    assert_true(number * 1000 <= RUN_BUFFER_BYTES);
    journal_stats(journal, &stats);
    assert_true(stats.reserve_failures > 0);
    assert_int_equal(stats.buffer_used_bytes, number * 1000);
    assert_true(journal_commit(&writer));
    assert_true(journal_reserve(&writer, 1000));
    run_put(&writer, 0, ++number, 0, 992);
    assert_true(journal_commit(&writer));
    journal_writer_fini(&writer);
    journal_close(journal);
    struct recovered recovered = {0};
    run_scan(vfs, 0, &recovered);
    assert_int_equal(recovered.end, JOURNAL_SCAN_CLEAN);
    assert_int_equal(recovered.count[0], number);
    vfs_sim_destroy(sim);
}

/* On the system's own files. */
static void test_real_files(void **state)
{
    (void)state;
    char directory[] = "/tmp/test_journal.XXXXXX";
    char error[JOURNAL_ERROR_MAX];
    char command[64];
    assert_non_null(mkdtemp(directory));
    struct test_random random = {.state = 4};
    struct journal_config config = run_config(vfs_real(), JOURNAL_SYNC_ALWAYS);
    config.directory = directory;
    struct journal *journal = journal_open(&config, error);
    assert_non_null(journal);
    write_many(journal, &random, 0, 0, 3 * RUN_SEGMENT_BYTES);
    uint64_t head = journal_head(journal);
    journal_close(journal);
    unsigned seen = 0;
    struct journal_scan scan = {.from = 0};
    assert_int_equal(journal_scan(vfs_real(), directory, &scan, stop_after_ten, &seen),
                     JOURNAL_SCAN_STOPPED);
    scan.from = head;
    assert_int_equal(journal_scan(vfs_real(), directory, &scan, stop_after_ten, &seen),
                     JOURNAL_SCAN_CLEAN);
    assert_int_equal(scan.end, head + 16);
    snprintf(command, sizeof(command), "rm -r '%s'", directory);
    assert_int_equal(system(command), 0);
    config.directory = "/nowhere";
    assert_null(journal_open(&config, error));
    assert_non_null(strstr(error, "/nowhere"));
    journal_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_any_start),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_part),
        cmocka_unit_test(test_trim),
        cmocka_unit_test(test_few_are_open),
        cmocka_unit_test(test_open_are_counted),
        cmocka_unit_test(test_few_are_open_while_a_sync_hangs),
        cmocka_unit_test(test_wait),
        cmocka_unit_test(test_wait_for_room),
        cmocka_unit_test(test_everysec),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_pages_of_segments),
        cmocka_unit_test(test_full_ring),
        cmocka_unit_test(test_real_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
