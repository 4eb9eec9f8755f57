/*
 * test_journal_rewind.c: a start that takes back what was durable, as a follower does with what its
 * leader does not have. The stream then ends there, whenever the process dies, and is no damage.
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

#define CAPACITY   (RUN_SEGMENT_BYTES - JOURNAL_PAGE_BYTES)
#define LARGE      (JOURNAL_PAYLOAD_MAX - 32)
#define RECORDS    1000 /* more than fill a segment */
#define CLOSED     (2 * JOURNAL_UNIT)
#define CALLS_MAX  1000
#define POWER_CUTS 3

/* A stream, and the LSN after each record of it. */
struct stream {
    struct run_world world;
    uint64_t ends[RECORDS + 1];
    unsigned in_first; /* records of the first segment */
};

static void add_record(struct stream *stream)
{
    struct run_world *world = &stream->world;
    assert_true(run_write(&world->writer, 0, ++world->number, 0, LARGE));
    stream->ends[world->number] = world->writer.end;
}

static uint64_t end_of(const struct stream *stream)
{
    return stream->ends[stream->world.number];
}

/* All of it durable, and ended. A leader's has its clean end, and a start has gone on from there,
 * to which nothing came; a follower's has neither. */
static void begin_stream(struct stream *stream, uint64_t seed, bool led)
{
    struct run_world *world = &stream->world;
    *stream = (struct stream){.in_first = 0};
    run_world_begin(world, seed, JOURNAL_SYNC_EVERYSEC);
    if (!led) {
        run_world_end(world, true);
        world->config.follows = true;
        world->journal = run_open(&world->config, NULL);
        journal_writer_init(&world->writer, world->journal);
    }
    journal_keep_room(world->journal);
    RUN_WAIT_FOR(journal_ballast_bytes(world->vfs, RUN_DIRECTORY) == RUN_SEGMENT_BYTES);
    while (end_of(stream) < CAPACITY + CAPACITY / 2) {
        assert_true(world->number < RECORDS);
        add_record(stream);
        stream->in_first += end_of(stream) <= CAPACITY;
    }
    assert_true(journal_sync_now(world->journal));
    run_world_end(world, false);
    struct recovered recovered = run_world_scan(world);
    if (!led) {
        assert_int_equal(recovered.end, JOURNAL_SCAN_TORN);
        return;
    }
    assert_int_equal(recovered.end, JOURNAL_SCAN_CLEAN);
    assert_int_equal(recovered.scan.end, end_of(stream) + CLOSED);
    world->journal = run_open(&world->config, &recovered);
    journal_writer_init(&world->writer, world->journal);
    run_world_end(world, true);
}

/* Opens it where so many of its records end. False: the process died meanwhile. */
static bool take_back(struct stream *stream, uint64_t records)
{
    char error[JOURNAL_ERROR_MAX];
    struct run_world *world = &stream->world;
    world->config.start_lsn = stream->ends[records];
    world->config.sum = 0;
    world->config.follows = true;
    world->journal = journal_open(&world->config, error);
    if (!world->journal) {
        return false;
    }
    journal_writer_init(&world->writer, world->journal);
    return true;
}

static void expect_records(struct stream *stream, uint64_t records)
{
    struct recovered recovered = run_world_scan(&stream->world);
    if (recovered.end != JOURNAL_SCAN_TORN || recovered.count[0] != records ||
        recovered.scan.end != stream->ends[records]) {
        fail_msg("%llu records to LSN %llu instead of %llu to %llu: %d %s",
                 (unsigned long long)recovered.count[0], (unsigned long long)recovered.scan.end,
                 (unsigned long long)records, (unsigned long long)stream->ends[records],
                 (int)recovered.end, recovered.scan.error);
    }
}

/* ---- tests ---- */

/* The end alone, as a leader leaves it that has lost its lease; some records; all of the second
 * segment; of the first as well. A kill follows before anything else came. */
static void test_nothing_came(void **state)
{
    (void)state;
    struct stream stream;
    begin_stream(&stream, 1, true);
    uint64_t all = stream.world.number;
    uint64_t first = stream.in_first;
    const uint64_t least[] = {all, all - 1, first + 2, first + 1, first, first - 1, 1};
    vfs_sim_destroy(stream.world.sim);
    for (size_t i = 0; i < 2 * sizeof(least) / sizeof(*least); i++) {
        uint64_t left = least[i / 2];
        begin_stream(&stream, 1, i % 2 > 0);
        assert_true(take_back(&stream, left));
        run_world_end(&stream.world, true);
        expect_records(&stream, left);
        vfs_sim_destroy(stream.world.sim);
    }
}

/* Nor is it once more, or after what came since, which is less than was there before. */
static void test_again(void **state)
{
    (void)state;
    struct stream stream;
    begin_stream(&stream, 1, true);
    uint64_t left = stream.world.number;
    for (unsigned i = 0; i < 3; i++) {
        left -= 10;
        assert_true(take_back(&stream, left));
        stream.world.number = left;
        add_record(&stream);
        run_world_end(&stream.world, true);
        expect_records(&stream, ++left);
    }
    vfs_sim_destroy(stream.world.sim);
}

/* What is left is marked, and no more; a turned bit in it is damage. */
static void test_what_is_left_is_marked(void **state)
{
    (void)state;
    char path[64];
    char name[JOURNAL_NAME_MAX];
    struct stream stream;
    begin_stream(&stream, 1, true);
    uint64_t start = CAPACITY;
    uint64_t left = stream.world.number - 1;
    assert_true(take_back(&stream, left));
    run_world_end(&stream.world, true);
    assert_int_equal(run_check_seals(stream.world.vfs), 2);
    journal_name(name, start);
    snprintf(path, sizeof(path), RUN_DIRECTORY "/%s", name);
    assert_true(vfs_sim_flip(stream.world.sim, path,
                             JOURNAL_PAGE_BYTES + stream.ends[left] - start - LARGE / 2, 3));
    struct recovered recovered = run_world_scan(&stream.world);
    assert_int_equal(recovered.end, JOURNAL_SCAN_DAMAGED);
    vfs_sim_destroy(stream.world.sim);
}

/* What ends, and of which stream. */
struct end {
    struct run_doom doom;
    bool led, full; /* the stream is a leader's; the disk is */
};

/* Then the stream ends where it did before, or where it was to. */
static void expect_either(struct stream *stream, uint64_t left)
{
    struct recovered recovered = run_world_scan(&stream->world);
    uint64_t end = recovered.scan.end;
    bool before = recovered.count[0] == stream->world.number && end >= end_of(stream) &&
                  end <= end_of(stream) + CLOSED;
    bool after = recovered.count[0] == left && end == stream->ends[left];
    if (recovered.end > JOURNAL_SCAN_TORN || (!before && !after)) {
        fail_msg("%llu records to LSN %llu: %d %s", (unsigned long long)recovered.count[0],
                 (unsigned long long)end, (int)recovered.end, recovered.scan.error);
    }
}

/* It dies before that call of the start. False: that makes fewer. */
static bool dies(struct end *end, uint64_t back)
{
    struct run_doom *doom = &end->doom;
    struct stream stream;
    begin_stream(&stream, doom->at, end->led);
    uint64_t left = stream.world.number - back;
    doom->sim = stream.world.sim;
    if (end->full) {
        struct vfs *vfs = stream.world.vfs;
        vfs->functions->unlink(vfs, RUN_DIRECTORY "/" JOURNAL_SPARE_NAME);
        vfs_sim_set_capacity(doom->sim, vfs_sim_used(doom->sim));
    }
    vfs_sim_hook(doom->sim, run_die_at, doom);
    bool begun = take_back(&stream, left);
    vfs_sim_hook(doom->sim, NULL, NULL);
    bool died = doom->calls >= doom->at;
    assert_true(begun || died);
    if (begun) {
        run_world_end(&stream.world, true);
    }
    stream.world.vfs = stream.world.config.vfs = vfs_sim_vfs(doom->sim);
    expect_either(&stream, left);
    vfs_sim_destroy(doom->sim);
    return died;
}

static void dies_when_it_starts(bool led, bool full)
{
    for (uint64_t seed = 0; seed <= POWER_CUTS; seed++) { /* the first is a kill */
        uint64_t call = 1;
        struct end end = {.doom = {.at = call, .cut_seed = seed}, .led = led, .full = full};
        while (dies(&end, seed % 2 * 10)) {
            end.doom = (struct run_doom){.at = ++call, .cut_seed = seed};
            assert_true(call < CALLS_MAX);
        }
        assert_true(call > 5);
    }
}

static void test_dies_when_it_starts(void **state)
{
    (void)state;
    dies_when_it_starts(true, false);
    dies_when_it_starts(false, false);
}

/* Then the room of a first segment is that of the ballast. */
static void test_dies_on_a_full_disk(void **state)
{
    (void)state;
    dies_when_it_starts(true, true);
    dies_when_it_starts(false, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_came),           cmocka_unit_test(test_again),
        cmocka_unit_test(test_what_is_left_is_marked), cmocka_unit_test(test_dies_when_it_starts),
        cmocka_unit_test(test_dies_on_a_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
