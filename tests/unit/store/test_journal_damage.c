/*
 * test_journal_damage.c: bits turned over, segments gone or swapped, torn ends. Below the durable
 * mark a scan says so and names file and offset; above it (test_journal_break.c) it may cut, and
 * counts; nothing wrong is ever given.
 */
#include "store/journal.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/journal_chain.h"
#include "store/journal_format.h"
#include "tests/support/random.h"
#include "tests/support/vfs_sim.h"
#include "tests/unit/store/journal_run.h"

#define FIRST_FILE    RUN_DIRECTORY "/journal-0000000000000000"
#define RECORD_100    112 /* bytes of a record with a payload of 100 */
#define CAPACITY      (RUN_SEGMENT_BYTES - JOURNAL_PAGE_BYTES)
#define LARGE         (JOURNAL_PAYLOAD_MAX - 32) /* segments end in a pad */
#define PATH_MAX_TEST 64
#define AWAY          RUN_DIRECTORY "/away"

static void begin(struct run_world *world)
{
    run_world_begin(world, 1, JOURNAL_SYNC_EVERYSEC);
}

static void write_some(struct run_world *world, unsigned count, size_t bytes)
{
    for (unsigned i = 0; i < count; i++) {
        assert_true(run_write(&world->writer, 0, ++world->number, world->life, bytes));
        if (world->number <= RUN_WORLD_ENDS) {
            world->ends[world->number] = world->writer.end;
        }
    }
}

static void fill_segments(struct run_world *world, unsigned segments)
{
    uint64_t until = journal_head(world->journal) + segments * CAPACITY;
    while (journal_head(world->journal) <= until) {
        write_some(world, 1, LARGE);
    }
    assert_true(journal_sync_now(world->journal));
}

static void expect_sound(struct run_world *world, enum journal_scan_end end)
{
    struct recovered recovered = run_world_scan(world);
    assert_string_equal(recovered.scan.error, "");
    assert_int_equal(recovered.end, end);
    assert_int_equal(recovered.count[0], world->number);
}

/* `file`: without the directory. offset UINT64_MAX: any. */
static void expect_damaged(struct run_world *world, const char *file, uint64_t offset)
{
    char text[JOURNAL_ERROR_MAX];
    struct recovered recovered = run_world_scan(world);
    assert_int_equal(recovered.end, JOURNAL_SCAN_DAMAGED);
    int length = snprintf(text, sizeof(text), RUN_DIRECTORY "/%s: offset ", file);
    if (offset != UINT64_MAX) {
        snprintf(text + length, sizeof(text) - (size_t)length,
                 "%llu: ", (unsigned long long)offset);
    }
    if (!strstr(recovered.scan.error, text)) {
        fail_msg("\"%s\" does not say \"%s\"", recovered.scan.error, text);
    }
    assert_non_null(strstr(recovered.scan.error, "see: rollcall repair " RUN_DIRECTORY));
}

static void segment_name(char name[JOURNAL_NAME_MAX], unsigned index)
{
    journal_name(name, index * CAPACITY);
}

static void segment_path(char path[PATH_MAX_TEST], unsigned index)
{
    char name[JOURNAL_NAME_MAX];
    segment_name(name, index);
    snprintf(path, PATH_MAX_TEST, RUN_DIRECTORY "/%s", name);
}

/* ---- bits ---- */

static uint64_t offset_of_record(const struct run_world *world, uint64_t offset)
{
    for (uint64_t n = 1; n <= RUN_WORLD_ENDS; n++) {
        if (offset < JOURNAL_PAGE_BYTES + world->ends[n]) {
            return JOURNAL_PAGE_BYTES + world->ends[n - 1];
        }
    }
    return JOURNAL_PAGE_BYTES + world->ends[RUN_WORLD_ENDS]; /* the clean end */
}

/* A mark is damaged: the one before holds. It is never wrong, only older. */
static bool in_a_mark(uint64_t offset)
{
    return (offset >= 1024 && offset < 1024 + JOURNAL_MARK_BYTES) ||
           (offset >= 2048 && offset < 2048 + JOURNAL_MARK_BYTES);
}

static void flip_each(struct run_world *world, uint64_t bytes, enum journal_scan_end end)
{
    for (uint64_t offset = 0; offset < bytes; offset++) {
        for (unsigned bit = 0; bit < 8; bit += test_long() ? 1 : 3) {
            if (!test_chosen(3 * offset + bit / 3)) {
                continue;
            }
            assert_true(vfs_sim_flip(world->sim, FIRST_FILE, offset, (bit + offset) % 8));
            if (in_a_mark(offset)) {
                expect_sound(world, end);
            } else {
                bool header = offset < JOURNAL_PAGE_BYTES;
                expect_damaged(world, "journal-0000000000000000",
                               header ? 0 : offset_of_record(world, offset));
            }
            assert_true(vfs_sim_flip(world->sim, FIRST_FILE, offset, (bit + offset) % 8));
        }
    }
}

static void write_small(struct run_world *world)
{
    for (unsigned i = 0; i < RUN_WORLD_ENDS / 2; i++) {
        write_some(world, 1, RUN_PAYLOAD_MIN + i);
    }
    assert_true(journal_sync_now(world->journal));
    for (unsigned i = RUN_WORLD_ENDS / 2; i < RUN_WORLD_ENDS; i++) {
        write_some(world, 1, RUN_PAYLOAD_MIN + i);
    }
    assert_true(journal_sync_now(world->journal));
}

static void test_flip_closed(void **state)
{
    (void)state;
    struct run_world world;
    begin(&world);
    write_small(&world);
    run_world_end(&world, false);
    struct recovered recovered = run_world_scan(&world);
    flip_each(&world, JOURNAL_PAGE_BYTES + recovered.scan.end, JOURNAL_SCAN_CLEAN);
    vfs_sim_destroy(world.sim);
}

/* The mark that covers all is one of two that are sound; the other covers half. */
static void test_flip_killed(void **state)
{
    (void)state;
    struct run_world world;
    begin(&world);
    write_small(&world);
    uint64_t end = journal_head(world.journal);
    uint64_t written = JOURNAL_PAGE_BYTES * 1ull + end;
    RUN_WAIT_FOR(vfs_sim_bytes(world.sim, VFS_SIM_PWRITE, NULL) >=
                 written + 2 * JOURNAL_MARK_BYTES);
    run_world_end(&world, true);
    flip_each(&world, JOURNAL_PAGE_BYTES + end, JOURNAL_SCAN_TORN);
    vfs_sim_destroy(world.sim);
}

/* In any of several segments, as in the last. */
static void test_flip_in_many(void **state)
{
    (void)state;
    struct run_world world;
    struct test_random random = {.state = test_seed()};
    begin(&world);
    fill_segments(&world, 3);
    uint64_t durable = journal_durable(world.journal);
    run_world_end(&world, false);
    for (uint64_t i = 0; i < test_scaled(200); i++) {
        char path[PATH_MAX_TEST];
        char name[JOURNAL_NAME_MAX];
        uint64_t lsn = test_random_below(&random, durable);
        unsigned bit = (unsigned)test_random_below(&random, 8);
        segment_path(path, (unsigned)(lsn / CAPACITY));
        segment_name(name, (unsigned)(lsn / CAPACITY));
        assert_true(vfs_sim_flip(world.sim, path, JOURNAL_PAGE_BYTES + lsn % CAPACITY, bit));
        expect_damaged(&world, name, UINT64_MAX);
        assert_true(vfs_sim_flip(world.sim, path, JOURNAL_PAGE_BYTES + lsn % CAPACITY, bit));
    }
    expect_sound(&world, JOURNAL_SCAN_CLEAN);
    vfs_sim_destroy(world.sim);
}

/* ---- segments ---- */

static void move(struct run_world *world, const char *from, const char *to)
{
    assert_int_equal(world->vfs->functions->rename(world->vfs, from, to), 0);
}

/* Waits until the last segment but one is known to have a successor. */
static void wait_for_seal(struct run_world *world, unsigned segments)
{
    char path[PATH_MAX_TEST];
    segment_path(path, segments - 2);
    RUN_WAIT_FOR(vfs_sim_calls(world->sim, VFS_SIM_CLOSE, path) > 0);
}

static void segments_world(struct run_world *world, bool kill)
{
    begin(world);
    fill_segments(world, 3);
    wait_for_seal(world, 4);
    run_world_end(world, kill);
    expect_sound(world, kill ? JOURNAL_SCAN_TORN : JOURNAL_SCAN_CLEAN);
}

/* The first, any in the middle, the last. */
static void test_removed(void **state)
{
    (void)state;
    for (unsigned kill = 0; kill < 2; kill++) {
        struct run_world world;
        segments_world(&world, kill);
        for (unsigned i = 0; i < 4; i++) {
            char path[PATH_MAX_TEST];
            char name[JOURNAL_NAME_MAX];
            segment_path(path, i);
            segment_name(name, i);
            move(&world, path, AWAY);
            expect_damaged(&world, name, 0);
            move(&world, AWAY, path);
        }
        expect_sound(&world, kill ? JOURNAL_SCAN_TORN : JOURNAL_SCAN_CLEAN);
        vfs_sim_destroy(world.sim);
    }
}

static void test_swapped(void **state)
{
    (void)state;
    struct run_world world;
    segments_world(&world, true);
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned k = i + 1; k < 4; k++) {
            char one[PATH_MAX_TEST];
            char other[PATH_MAX_TEST];
            char name[JOURNAL_NAME_MAX];
            segment_path(one, i);
            segment_path(other, k);
            segment_name(name, i);
            move(&world, one, AWAY);
            move(&world, other, one);
            move(&world, AWAY, other);
            expect_damaged(&world, name, 0);
            move(&world, one, AWAY);
            move(&world, other, one);
            move(&world, AWAY, other);
        }
    }
    expect_sound(&world, JOURNAL_SCAN_TORN);
    vfs_sim_destroy(world.sim);
}

/* The segment of another start, one that was empty when this one ended cleanly. */
static void test_last_of_a_later_start(void **state)
{
    (void)state;
    struct run_world world;
    char path[PATH_MAX_TEST];
    char name[JOURNAL_NAME_MAX];
    begin(&world);
    write_some(&world, 10, 100);
    run_world_end(&world, false);
    struct recovered recovered = run_world_scan(&world);
    world.journal = run_open(&world.config, &recovered);
    journal_writer_init(&world.writer, world.journal);
    write_some(&world, 10, 100);
    run_world_end(&world, true);
    expect_sound(&world, JOURNAL_SCAN_TORN);
    journal_name(name, recovered.scan.end);
    snprintf(path, sizeof(path), RUN_DIRECTORY "/%s", name);
    move(&world, path, AWAY);
    expect_damaged(&world, "journal-0000000000000000", JOURNAL_PAGE_BYTES + recovered.scan.end);
    vfs_sim_destroy(world.sim);
}

/* The same when the one before is full to the last byte. */
static void test_last_behind_a_full_one(void **state)
{
    (void)state;
    struct run_world world;
    char path[PATH_MAX_TEST];
    char name[JOURNAL_NAME_MAX];
    begin(&world);
    assert_int_equal(CAPACITY % JOURNAL_RECORD_MAX, 0);
    write_some(&world, CAPACITY / JOURNAL_RECORD_MAX, JOURNAL_PAYLOAD_MAX);
    run_world_end(&world, true);
    struct recovered recovered = run_world_scan(&world);
    assert_int_equal(recovered.scan.end, CAPACITY);
    world.journal = run_open(&world.config, &recovered);
    journal_writer_init(&world.writer, world.journal);
    write_some(&world, 1, 100);
    run_world_end(&world, true);
    expect_sound(&world, JOURNAL_SCAN_TORN);
    segment_path(path, 1);
    segment_name(name, 1);
    move(&world, path, AWAY);
    expect_damaged(&world, name, 0);
    vfs_sim_destroy(world.sim);
}

static void copy_file(struct run_world *from, struct run_world *to, const char *path)
{
    size_t length;
    char *bytes = vfs_read_file(from->vfs, path, RUN_SEGMENT_BYTES, &length);
    assert_non_null(bytes);
    int fd = to->vfs->functions->open(to->vfs, path, O_RDWR | O_CREAT | O_TRUNC);
    assert_true(fd >= 0);
    assert_true(vfs_write_all(to->vfs, fd, bytes, length, 0));
    to->vfs->functions->close(to->vfs, fd);
    free(bytes);
}

/* A segment of the same place in another history of this journal: a backup that was put back. */
static void test_from_another_history(void **state)
{
    (void)state;
    struct run_world world;
    struct run_world other;
    char path[PATH_MAX_TEST];
    char name[JOURNAL_NAME_MAX];
    segments_world(&world, false);
    begin(&other);
    other.life = 1;
    fill_segments(&other, 3);
    run_world_end(&other, false);
    for (unsigned i = 0; i < 3; i++) {
        segment_path(path, i);
        segment_name(name, i == 0 ? 1 : i); /* the first of two that do not belong together */
        copy_file(&other, &world, path);
        expect_damaged(&world, name, 0);
        vfs_sim_destroy(world.sim);
        segments_world(&world, false);
    }
    vfs_sim_destroy(other.sim);
    vfs_sim_destroy(world.sim);
}

/* ---- the rest ---- */

static void resize(struct run_world *world, const char *path, uint64_t bytes)
{
    int fd = world->vfs->functions->open(world->vfs, path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(world->vfs->functions->truncate(world->vfs, fd, bytes), 0);
    world->vfs->functions->close(world->vfs, fd);
}

/* A file that became shorter. */
static void test_shortened(void **state)
{
    (void)state;
    struct run_world world;
    begin(&world);
    write_some(&world, RUN_WORLD_ENDS, 100);
    assert_true(journal_sync_now(world.journal));
    run_world_end(&world, false);
    resize(&world, FIRST_FILE, JOURNAL_PAGE_BYTES + world.ends[RUN_WORLD_ENDS] + 8);
    expect_damaged(&world, "journal-0000000000000000",
                   JOURNAL_PAGE_BYTES + world.ends[RUN_WORLD_ENDS]);
    resize(&world, FIRST_FILE, JOURNAL_PAGE_BYTES + world.ends[7]);
    expect_damaged(&world, "journal-0000000000000000", JOURNAL_PAGE_BYTES + world.ends[7]);
    resize(&world, FIRST_FILE, 100);
    expect_damaged(&world, "journal-0000000000000000", 0);
    resize(&world, FIRST_FILE, 0);
    expect_damaged(&world, "journal-0000000000000000", 0);
    vfs_sim_destroy(world.sim);
}

/* The mark after a sync is made after whoever waited for the sync goes on: it must not speak of
 * what is written next. */
static uint64_t marked(struct run_world *world)
{
    struct journal_found found = {.name_start = 0};
    int fd = world->vfs->functions->open(world->vfs, FIRST_FILE, O_RDONLY);
    assert_int_equal(journal_page_read(world->vfs, fd, &found), 0);
    world->vfs->functions->close(world->vfs, fd);
    return found.mark.durable;
}

/* A tail that holds anything, above the mark. */
static void test_torn(void **state)
{
    (void)state;
    struct test_random random = {.state = test_seed()};
    for (uint64_t i = 0; i < test_scaled(50); i++) {
        struct run_world world;
        begin(&world);
        write_some(&world, 10, 100);
        assert_true(journal_sync_now(world.journal));
        RUN_WAIT_FOR(marked(&world) >= world.ends[10]);
        write_some(&world, 10, 100);
        run_world_end(&world, true);
        unsigned char rubbish[3000];
        for (size_t k = 0; k < sizeof(rubbish); k++) {
            rubbish[k] = (unsigned char)test_random_next(&random);
        }
        uint64_t from =
            world.ends[10] + test_random_below(&random, world.ends[20] - world.ends[10]);
        int fd = world.vfs->functions->open(world.vfs, FIRST_FILE, O_RDWR);
        assert_true(
            vfs_write_all(world.vfs, fd, rubbish, sizeof(rubbish), JOURNAL_PAGE_BYTES + from));
        world.vfs->functions->close(world.vfs, fd);
        struct recovered recovered = run_world_scan(&world);
        assert_int_equal(recovered.end, JOURNAL_SCAN_TORN);
        assert_true(recovered.scan.end <= from && recovered.scan.end + RECORD_100 > from);
        assert_true(recovered.count[0] >= 10 && recovered.count[0] < 20);
        assert_true(recovered.scan.end + recovered.scan.torn_bytes > from + sizeof(rubbish) - 8);
        /* it is never appended to: the next start goes on beside it, and it stays cut */
        world.number = recovered.count[0];
        world.journal = run_open(&world.config, &recovered);
        journal_writer_init(&world.writer, world.journal);
        write_some(&world, 30, 100);
        run_world_end(&world, false);
        expect_sound(&world, JOURNAL_SCAN_CLEAN);
        vfs_sim_destroy(world.sim);
    }
}

static void count_entry(void *context, const char *name)
{
    (void)name;
    ++*(unsigned *)context;
}

/* Cut in the first of two segments of which nothing was durable, as with three a sync is due: the
 * next start deletes what it cut off. */
static void test_torn_over_segments(void **state)
{
    (void)state;
    struct run_world world;
    unsigned files = 0;
    run_world_begin(&world, 1, JOURNAL_SYNC_NEVER);
    while (journal_head(world.journal) < CAPACITY + CAPACITY / 2) {
        write_some(&world, 1, LARGE);
    }
    uint64_t head = journal_head(world.journal);
    run_world_end(&world, true);
    assert_true(vfs_sim_flip(world.sim, FIRST_FILE, JOURNAL_PAGE_BYTES + 30000, 5));
    expect_damaged(&world, "journal-0000000000000000", UINT64_MAX);
    vfs_sim_forget_boot(world.sim);
    struct recovered recovered = run_world_scan(&world);
    assert_int_equal(recovered.end, JOURNAL_SCAN_TORN);
    assert_true(recovered.scan.end > 20000 && recovered.scan.end <= 30000);
    assert_true(recovered.scan.lost_records > world.number - recovered.count[0] - 2);
    assert_true(recovered.scan.lost_first < 30000 + 2 * JOURNAL_RECORD_MAX);
    /* the pads at the segments' ends are zeroes, which nobody counts */
    assert_true(recovered.scan.end + recovered.scan.torn_bytes <= head);
    assert_true(recovered.scan.end + recovered.scan.torn_bytes + 3 * JOURNAL_RECORD_MAX > head);
    world.number = recovered.count[0];
    world.journal = run_open(&world.config, &recovered);
    journal_writer_init(&world.writer, world.journal);
    world.vfs->functions->list(world.vfs, RUN_DIRECTORY, count_entry, &files);
    assert_int_equal(files, 2);
    write_some(&world, 2000, LARGE);
    run_world_end(&world, false);
    expect_sound(&world, JOURNAL_SCAN_CLEAN);
    vfs_sim_destroy(world.sim);
}

static void test_newer(void **state)
{
    (void)state;
    struct run_world world;
    begin(&world);
    write_some(&world, 10, 100);
    run_world_end(&world, false);
    _Alignas(uint64_t) unsigned char page[JOURNAL_PAGE_BYTES];
    int fd = world.vfs->functions->open(world.vfs, FIRST_FILE, O_RDWR);
    assert_int_equal(vfs_read_all(world.vfs, fd, page, sizeof(page), 0), sizeof(page));
    page[8]++;
    uint64_t checksum = hash_bytes(page, 504, JOURNAL_MAGIC);
    memcpy(page + 504, &checksum, sizeof(checksum));
    assert_true(vfs_write_all(world.vfs, fd, page, sizeof(page), 0));
    world.vfs->functions->close(world.vfs, fd);
    struct recovered recovered = run_world_scan(&world);
    char error[JOURNAL_ERROR_MAX];
    assert_int_equal(recovered.end, JOURNAL_SCAN_FAILED);
    assert_non_null(strstr(recovered.scan.error, "another version"));
    assert_null(journal_open(&world.config, error));
    assert_non_null(strstr(error, "another version"));
    vfs_sim_destroy(world.sim);
}

/* It cannot go on where nothing is. */
static void test_open_behind_the_end(void **state)
{
    (void)state;
    struct run_world world;
    char error[JOURNAL_ERROR_MAX];
    begin(&world);
    write_some(&world, 10, 100);
    run_world_end(&world, false);
    world.config.start_lsn = CAPACITY + 8;
    assert_null(journal_open(&world.config, error));
    assert_non_null(strstr(error, "journal-0000000000000000"));
    expect_sound(&world, JOURNAL_SCAN_CLEAN);
    vfs_sim_destroy(world.sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flip_closed),
        cmocka_unit_test(test_flip_killed),
        cmocka_unit_test(test_flip_in_many),
        cmocka_unit_test(test_removed),
        cmocka_unit_test(test_swapped),
        cmocka_unit_test(test_last_of_a_later_start),
        cmocka_unit_test(test_last_behind_a_full_one),
        cmocka_unit_test(test_from_another_history),
        cmocka_unit_test(test_shortened),
        cmocka_unit_test(test_torn),
        cmocka_unit_test(test_torn_over_segments),
        cmocka_unit_test(test_newer),
        cmocka_unit_test(test_open_behind_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
