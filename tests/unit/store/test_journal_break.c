/*
 * test_journal_break.c: the stream breaks off above its durable mark. What follows the break, and
 * whether the system has ended since, tells damage from a torn end.
 */
#include "store/journal.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/journal_format.h"
#include "tests/support/random.h"
#include "tests/support/vfs_sim.h"
#include "tests/unit/store/journal_run.h"

#define FIRST_NAME   "journal-0000000000000000"
#define FIRST_FILE   RUN_DIRECTORY "/" FIRST_NAME
#define CAPACITY     (RUN_SEGMENT_BYTES - JOURNAL_PAGE_BYTES)
#define HEADER_BYTES 512u
#define IN_SECOND    5 /* records of a second segment */
#define SECOND_BYTES (IN_SECOND * (JOURNAL_PAYLOAD_MAX + JOURNAL_HEADER_BYTES))

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

/* Above the mark, in the run of the system that wrote it: with sound records after it no kill has
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

/* The last records come while they are looked at: nothing comes after a break then. */
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

/* ---- a segment without a sound header ---- */

struct second {
    struct run_world world;
    char file[64];
    unsigned records; /* in both */
};

/* A full segment, a second one, and a kill before a mark says anything of either. */
static void begin_second(struct second *second)
{
    struct run_world *world = &second->world;
    char name[JOURNAL_NAME_MAX];
    run_world_begin(world, 1, JOURNAL_SYNC_NEVER);
    assert_int_equal(CAPACITY % JOURNAL_RECORD_MAX, 0);
    second->records = CAPACITY / JOURNAL_RECORD_MAX + IN_SECOND;
    for (unsigned i = 1; i <= second->records; i++) {
        assert_true(run_write(&world->writer, 0, i, 0, JOURNAL_PAYLOAD_MAX));
    }
    run_world_end(world, true);
    journal_name(name, CAPACITY);
    snprintf(second->file, sizeof(second->file), RUN_DIRECTORY "/%s", name);
}

static void write_over(struct second *second, uint64_t offset, const void *bytes, size_t length)
{
    struct vfs *vfs = second->world.vfs;
    int fd = vfs->functions->open(vfs, second->file, O_RDWR);
    assert_true(fd >= 0);
    assert_true(vfs_write_all(vfs, fd, bytes, length, offset));
    vfs->functions->close(vfs, fd);
}

/* No byte of the header was written: a power cut may leave the name of the file alone. */
static void blank_header(struct second *second)
{
    write_over(second, 0, (char[HEADER_BYTES]){0}, HEADER_BYTES);
}

static void expect_second_damaged(struct second *second)
{
    char text[JOURNAL_ERROR_MAX];
    struct recovered recovered = run_world_scan(&second->world);
    assert_int_equal(recovered.end, JOURNAL_SCAN_DAMAGED);
    assert_int_equal(recovered.scan.end, CAPACITY);
    snprintf(text, sizeof(text), "%s: offset 0: ", second->file);
    assert_non_null(strstr(recovered.scan.error, text));
}

static struct recovered expect_second_cut(struct second *second, uint64_t lost)
{
    struct recovered recovered = run_world_scan(&second->world);
    assert_string_equal(recovered.scan.error, "");
    assert_int_equal(recovered.end, JOURNAL_SCAN_TORN);
    assert_int_equal(recovered.scan.lost_records, lost);
    return recovered;
}

/* One bit of it: in whatever run of the system, neither a kill nor a power cut has left it so. */
static void test_header_flipped(void **state)
{
    (void)state;
    struct second second;
    begin_second(&second);
    for (unsigned boot = 0; boot < 2; boot++) {
        for (uint64_t offset = 0; offset < HEADER_BYTES; offset++) {
            unsigned bit = (unsigned)(offset + boot) % 8;
            if (offset != 20 && !test_chosen(offset)) {
                continue;
            }
            assert_true(vfs_sim_flip(second.world.sim, second.file, offset, bit));
            expect_second_damaged(&second);
            assert_true(vfs_sim_flip(second.world.sim, second.file, offset, bit));
        }
        assert_int_equal(expect_second_cut(&second, 0).count[0], second.records);
        vfs_sim_forget_boot(second.world.sim);
    }
    vfs_sim_destroy(second.world.sim);
}

/* Without any byte of it: so a power cut may leave it, and a kill may not. */
static void test_header_blank(void **state)
{
    (void)state;
    struct second second;
    begin_second(&second);
    blank_header(&second);
    expect_second_damaged(&second);
    vfs_sim_forget_boot(second.world.sim);
    struct recovered recovered = expect_second_cut(&second, IN_SECOND);
    assert_int_equal(recovered.scan.end, CAPACITY);
    assert_int_equal(recovered.scan.lost_first, CAPACITY);
    assert_int_equal(recovered.scan.lost_bytes, SECOND_BYTES);
    assert_true(recovered.scan.torn_bytes <= SECOND_BYTES);
    assert_true(recovered.scan.torn_bytes + 8 > SECOND_BYTES);
    write_over(&second, JOURNAL_PAGE_BYTES, (char[SECOND_BYTES]){0}, SECOND_BYTES);
    assert_int_equal(expect_second_cut(&second, 0).scan.torn_bytes, 0);
    vfs_sim_destroy(second.world.sim);
}

/* The files as they are now are what the power leaves. */
static void cut_power(struct second *second)
{
    struct run_world *world = &second->world;
    const char *const files[] = {FIRST_FILE, second->file};
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        int fd = world->vfs->functions->open(world->vfs, files[i], O_RDWR);
        assert_int_equal(world->vfs->functions->fdatasync(world->vfs, fd), 0);
        world->vfs->functions->close(world->vfs, fd);
    }
    assert_int_equal(world->vfs->functions->sync_dir(world->vfs, RUN_DIRECTORY), 0);
    vfs_sim_power_cut(world->sim, 1);
    world->vfs = world->config.vfs = vfs_sim_vfs(world->sim);
}

static void kill_at_unlink(void *context, enum vfs_sim_op op, const char *path)
{
    struct second *second = context;
    if (op == VFS_SIM_UNLINK && strcmp(path, second->file) == 0) {
        vfs_sim_kill(second->world.sim);
    }
}

/* After a cut the end of the first one is not there either. A start that is killed before it has
 * deleted the second leaves a segment of this run beside it. */
static void test_header_blank_and_a_killed_start(void **state)
{
    (void)state;
    struct second second;
    char error[JOURNAL_ERROR_MAX];
    begin_second(&second);
    struct run_world *world = &second.world;
    blank_header(&second);
    assert_true(vfs_sim_flip(world->sim, FIRST_FILE, RUN_SEGMENT_BYTES - 8, 0));
    cut_power(&second);
    struct recovered recovered = expect_second_cut(&second, IN_SECOND);
    uint64_t end = recovered.scan.end;
    assert_true(end < CAPACITY);
    world->config.start_lsn = end;
    world->config.sum = recovered.scan.sum;
    vfs_sim_hook(world->sim, kill_at_unlink, &second);
    assert_null(journal_open(&world->config, error));
    vfs_sim_hook(world->sim, NULL, NULL);
    world->vfs = world->config.vfs = vfs_sim_vfs(world->sim);
    recovered = expect_second_cut(&second, 0);
    assert_int_equal(recovered.scan.end, end);
    world->journal = run_open(&world->config, &recovered);
    journal_writer_init(&world->writer, world->journal);
    assert_true(run_write(&world->writer, 0, recovered.count[0] + 1, 0, 100));
    run_world_end(world, true);
    assert_int_equal(expect_second_cut(&second, 0).count[0], recovered.count[0] + 1);
    vfs_sim_destroy(world->sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flip_above_the_mark),
        cmocka_unit_test(test_flip_in_another_run),
        cmocka_unit_test(test_written_meanwhile),
        cmocka_unit_test(test_marked_as_written),
        cmocka_unit_test(test_mark_is_synced),
        cmocka_unit_test(test_header_flipped),
        cmocka_unit_test(test_header_blank),
        cmocka_unit_test(test_header_blank_and_a_killed_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
