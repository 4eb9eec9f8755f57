/* test_table_file_faults.c: a power cut, a kill, a full or failing disk at every step of writing.
 */
#include "store/table_file.h"

#include "tests/unit/store/files.h"

#include <stdio.h>

#include "tests/support/random.h"
#include "tests/unit/store/table_run.h"

#define SEEDS_A_STEP 60
#define STEPS_MAX    100

/* Several blocks: so many calls, but not many sectors. */
static const struct table_shape shape = {
    .pages = 520,
    .sections = 2,
    .section = {{.value_bytes = 64, .entries = 100}, {.value_bytes = 8, .entries = 400}},
};

static bool write_it(struct vfs_sim *sim, char *error)
{
    error[0] = '\0';
    return table_write(vfs_sim_vfs(sim), TABLE_DIRECTORY, TABLE_NAME, &shape, error);
}

/* ---- the end of the process ---- */

struct ender {
    struct vfs_sim *sim;
    unsigned calls_left;
    bool cut; /* else a kill */
    uint64_t seed;
    enum vfs_sim_op op; /* before which it came */
};

static void end_at(void *context, enum vfs_sim_op op, const char *path)
{
    (void)path;
    struct ender *ender = context;
    if (ender->calls_left == 0 || --ender->calls_left > 0) {
        return;
    }
    ender->op = op;
    if (ender->cut) {
        vfs_sim_power_cut(ender->sim, ender->seed);
    } else {
        vfs_sim_kill(ender->sim);
    }
}

struct outcomes {
    unsigned absent, refused, whole;
};

/* One life that ends before call number `step`. False: it took fewer calls. */
static bool end_one(unsigned step, bool cut, uint64_t seed, struct outcomes *outcomes)
{
    struct vfs_sim *sim = table_sim_create(seed);
    struct ender ender = {.sim = sim, .calls_left = step, .cut = cut, .seed = seed};
    char error[TABLE_FILE_ERROR_MAX];
    vfs_sim_hook(sim, end_at, &ender);
    bool written = write_it(sim, error);
    vfs_sim_hook(sim, NULL, NULL);
    bool ended = ender.calls_left == 0;
    assert_true(ended || written);
    if (ended) {
        enum table_file_result result = table_read_all(vfs_sim_vfs(sim), TABLE_PATH, &shape, error);
        outcomes->absent += result == TABLE_FILE_ABSENT;
        outcomes->refused += result == TABLE_FILE_DAMAGED;
        outcomes->whole += result == TABLE_FILE_DONE;
        assert_true(result != TABLE_FILE_FAILED && result != TABLE_FILE_NEWER);
    }
    vfs_sim_destroy(sim);
    return ended;
}

/* Before both ends are written it is refused by open, whatever a cut has left of the rest. */
static void end_at_every_step(bool cut)
{
    struct outcomes all = {0};
    unsigned steps = 0;
    bool ended = true;
    for (unsigned step = 1; ended; step++) {
        struct outcomes outcomes = {0};
        uint64_t seeds = cut ? test_scaled(SEEDS_A_STEP) : 1;
        for (uint64_t seed = 0; seed < seeds && ended; seed++) {
            ended = end_one(step, cut, seed * STEPS_MAX + step, &outcomes);
        }
        assert_true(step < STEPS_MAX);
        steps += ended;
        all.absent += outcomes.absent;
        all.refused += outcomes.refused;
        all.whole += outcomes.whole;
        /* The calls at the end: footer, header, fdatasync, sync_dir, close. */
        assert_true(outcomes.whole == 0 || step >= 10);
    }
    printf("%s: %u steps; %u absent, %u refused, %u whole\n", cut ? "cut" : "kill", steps,
           all.absent, all.refused, all.whole);
    assert_true(all.absent > 0 && all.refused > 0 && all.whole > 0);
}

static void test_power_cut(void **state)
{
    (void)state;
    end_at_every_step(true);
}

static void test_kill(void **state)
{
    (void)state;
    end_at_every_step(false);
}

/* Opening it is enough to know: what open takes is whole in every page. */
static void test_open_is_enough(void **state)
{
    (void)state;
    unsigned opened = 0, refused = 0;
    for (uint64_t seed = 0; seed < test_scaled(600); seed++) {
        struct vfs_sim *sim = table_sim_create(seed);
        struct ender ender = {
            .sim = sim, .calls_left = 8 + (unsigned)(seed % 6), .cut = true, .seed = seed};
        char error[TABLE_FILE_ERROR_MAX];
        struct table_file *file = NULL;
        vfs_sim_hook(sim, end_at, &ender);
        write_it(sim, error);
        vfs_sim_hook(sim, NULL, NULL);
        struct vfs *vfs = vfs_sim_vfs(sim);
        if (table_file_open(vfs, TABLE_PATH, true, &file, error) == TABLE_FILE_DONE) {
            opened++;
            assert_int_equal(table_read_all(vfs, TABLE_PATH, &shape, error), TABLE_FILE_DONE);
        } else {
            refused++;
        }
        table_file_close(file);
        vfs_sim_destroy(sim);
    }
    printf("%u opened, %u refused\n", opened, refused);
    assert_true(opened > 0 && refused > 0);
}

static void test_committed_stays(void **state)
{
    (void)state;
    char error[TABLE_FILE_ERROR_MAX];
    for (uint64_t seed = 0; seed < test_scaled(SEEDS_A_STEP); seed++) {
        struct vfs_sim *sim = table_sim_create(seed);
        assert_true(write_it(sim, error));
        vfs_sim_power_cut(sim, seed);
        table_check(vfs_sim_vfs(sim), TABLE_PATH, true, &shape);
        vfs_sim_destroy(sim);
    }
}

/* ---- failing calls ---- */

static const char *text_of(int error)
{
    return error == ENOSPC ? "make room" : "check the d"; /* isk, irectory */
}

/* Call number `first` of an operation fails. False: there are fewer. */
static bool fail_one(enum vfs_sim_op op, unsigned first, int number, enum vfs_sim_fault_kind kind)
{
    struct vfs_sim *sim = table_sim_create(first);
    char error[TABLE_FILE_ERROR_MAX];
    unsigned fault = vfs_sim_fault(
        sim, &(struct vfs_sim_fault){
                 .op = op, .first = first, .times = 1, .kind = kind, .error = number});
    bool written = write_it(sim, error);
    bool hit = vfs_sim_fault_hits(sim, fault) > 0;
    assert_int_equal(written, !hit);
    if (hit) {
        assert_int_equal(errno, number);
        assert_non_null(strstr(error, TABLE_PATH));
        assert_non_null(strstr(error, strerror(number)));
        assert_non_null(strstr(error, op == VFS_SIM_OPEN ? "cannot create" : " at offset "));
        assert_non_null(strstr(error, op == VFS_SIM_OPEN ? "check" : text_of(number)));
        assert_true(op == VFS_SIM_OPEN || vfs_sim_calls(sim, VFS_SIM_CLOSE, TABLE_NAME) == 1);
        assert_false(files_exist(vfs_sim_vfs(sim), TABLE_PATH));
        assert_int_equal(vfs_sim_used(sim), 0);
        assert_true(write_it(sim, error)); /* once it is over, it works */
        table_check(vfs_sim_vfs(sim), TABLE_PATH, false, &shape);
    }
    vfs_sim_destroy(sim);
    return hit;
}

static void test_failing_calls(void **state)
{
    (void)state;
    static const struct {
        enum vfs_sim_op op;
        unsigned calls;
    } ops[] = {
        {VFS_SIM_OPEN, 1}, {VFS_SIM_PWRITE, 5}, {VFS_SIM_FDATASYNC, 2}, {VFS_SIM_SYNC_DIR, 1}};
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
        for (unsigned first = 1; first <= ops[i].calls; first++) {
            assert_true(fail_one(ops[i].op, first, EIO, VFS_SIM_FAIL));
            assert_true(fail_one(ops[i].op, first, ENOSPC, VFS_SIM_FAIL));
        }
        assert_false(fail_one(ops[i].op, ops[i].calls + 1, EIO, VFS_SIM_FAIL));
    }
    for (unsigned first = 1; first <= 2; first++) {
        assert_true(fail_one(VFS_SIM_FDATASYNC, first, EIO, VFS_SIM_SYNC_LOST));
        assert_true(fail_one(VFS_SIM_FDATASYNC, first, EIO, VFS_SIM_SYNC_PARTLY_LOST));
    }
}

/* Writing back is advice, closing after the sync changes nothing. */
static void test_no_matter(void **state)
{
    (void)state;
    static const enum vfs_sim_op ops[] = {VFS_SIM_WRITEBACK, VFS_SIM_CLOSE};
    for (size_t i = 0; i < 2; i++) {
        struct vfs_sim *sim = table_sim_create(i);
        char error[TABLE_FILE_ERROR_MAX];
        vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = ops[i]});
        assert_true(write_it(sim, error));
        vfs_sim_faults_end(sim);
        table_check(vfs_sim_vfs(sim), TABLE_PATH, false, &shape);
        vfs_sim_destroy(sim);
    }
}

static void test_disk_full(void **state)
{
    (void)state;
    struct vfs_sim *sim = table_sim_create(1);
    char error[TABLE_FILE_ERROR_MAX];
    const uint64_t step = 16 * TABLE_FILE_PAGE_BYTES;
    uint64_t capacity = 0;
    vfs_sim_set_capacity(sim, capacity);
    while (!write_it(sim, error)) {
        assert_int_equal(errno, ENOSPC);
        assert_non_null(strstr(error, "make room"));
        assert_false(files_exist(vfs_sim_vfs(sim), TABLE_PATH));
        assert_int_equal(vfs_sim_used(sim), 0);
        capacity += step;
        assert_true(capacity < 1000 * step);
        vfs_sim_set_capacity(sim, capacity);
    }
    assert_true(capacity - step < vfs_sim_used(sim) && vfs_sim_used(sim) <= capacity);
    table_check(vfs_sim_vfs(sim), TABLE_PATH, false, &shape);
    vfs_sim_destroy(sim);
}

/* Pages go on coming after a failure: nothing is done, nothing is made again. */
static void test_after_failure(void **state)
{
    (void)state;
    struct vfs_sim *sim = table_sim_create(1);
    struct vfs *vfs = vfs_sim_vfs(sim);
    struct table_file_info info = table_info_of(&shape);
    static const unsigned char pages[300 * TABLE_FILE_PAGE_BYTES];
    char error[TABLE_FILE_ERROR_MAX] = "", first[TABLE_FILE_ERROR_MAX];
    struct table_file_writer *writer =
        table_file_create(vfs, TABLE_DIRECTORY, TABLE_NAME, &info, error);
    assert_non_null(writer);
    vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = VFS_SIM_PWRITE, .times = 1, .error = EIO});
    assert_false(table_file_append_pages(writer, pages, 300));
    snprintf(first, sizeof(first), "%s", table_file_writer_error(writer));
    assert_false(files_exist(vfs, TABLE_PATH)); /* before it is abandoned */
    vfs_sim_counts_clear(sim);
    assert_false(table_file_append_pages(writer, pages, 300));
    assert_false(table_file_append_entry(writer, 0, 1, 1, pages));
    assert_string_equal(table_file_writer_error(writer), first);
    assert_false(table_file_commit(writer, TABLE_END_LSN, NULL, error));
    assert_string_equal(error, first);
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_ANY, NULL), 0);
    vfs_sim_destroy(sim);
}

static void test_long_name(void **state)
{
    (void)state;
    struct vfs_sim *sim = table_sim_create(1);
    char name[VFS_PATH_MAX + 1], error[TABLE_FILE_ERROR_MAX] = "";
    memset(name, 'n', VFS_PATH_MAX);
    name[VFS_PATH_MAX] = '\0';
    assert_false(table_write(vfs_sim_vfs(sim), TABLE_DIRECTORY, name, &shape, error));
    assert_int_equal(errno, ENAMETOOLONG);
    assert_non_null(strstr(error, "data/nnn"));
    vfs_sim_destroy(sim);
}

/* ---- short and failing reads and writes ---- */

static void test_short(void **state)
{
    (void)state;
    struct vfs_sim *sim = table_sim_create(1);
    char error[TABLE_FILE_ERROR_MAX];
    struct vfs_sim_fault fault = {.op = VFS_SIM_PWRITE, .kind = VFS_SIM_SHORT, .bytes = 4097};
    vfs_sim_fault(sim, &fault);
    fault.op = VFS_SIM_PREAD;
    fault.bytes = 3001;
    vfs_sim_fault(sim, &fault);
    assert_true(write_it(sim, error));
    table_check(vfs_sim_vfs(sim), TABLE_PATH, false, &shape);
    vfs_sim_destroy(sim);
}

/* A disk that says it wrote and did not: the checksums see it. */
static void test_lost_write(void **state)
{
    (void)state;
    for (unsigned first = 1; first <= 5; first++) {
        struct vfs_sim *sim = table_sim_create(first);
        char error[TABLE_FILE_ERROR_MAX];
        vfs_sim_fault(sim,
                      &(struct vfs_sim_fault){
                          .op = VFS_SIM_PWRITE, .first = first, .times = 1, .kind = VFS_SIM_LOSE});
        assert_true(write_it(sim, error));
        assert_int_equal(table_read_all(vfs_sim_vfs(sim), TABLE_PATH, &shape, error),
                         TABLE_FILE_DAMAGED);
        vfs_sim_destroy(sim);
    }
}

static bool count_finding(void *context, const char *finding)
{
    (void)finding;
    ++*(unsigned *)context;
    return true;
}

static void test_failing_reads(void **state)
{
    (void)state;
    struct vfs_sim *sim = table_sim_create(1);
    struct vfs *vfs = vfs_sim_vfs(sim);
    char error[TABLE_FILE_ERROR_MAX];
    assert_true(write_it(sim, error));
    for (unsigned first = 1; first <= 8; first++) { /* 3 of open, 3 of pages, 1 a section */
        unsigned fault = vfs_sim_fault(
            sim, &(struct vfs_sim_fault){.op = VFS_SIM_PREAD, .first = first, .times = 1});
        assert_int_equal(table_read_all(vfs, TABLE_PATH, &shape, error), TABLE_FILE_FAILED);
        assert_int_equal(vfs_sim_fault_hits(sim, fault), 1);
        assert_non_null(strstr(error, TABLE_PATH ": cannot read "));
        assert_non_null(strstr(error, " at offset "));
        assert_non_null(strstr(error, "check the disk"));
    }
    vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = VFS_SIM_SIZE, .times = 1});
    assert_int_equal(table_read_all(vfs, TABLE_PATH, &shape, error), TABLE_FILE_FAILED);
    vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = VFS_SIM_OPEN, .times = 1, .error = EACCES});
    assert_int_equal(table_read_all(vfs, TABLE_PATH, &shape, error), TABLE_FILE_FAILED);
    assert_non_null(strstr(error, "cannot open"));

    /* One page in a block cannot be read: verify names it, and looks at all others. */
    unsigned findings = 0;
    vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = VFS_SIM_PREAD, .first = 4, .times = 2});
    assert_true(vfs_sim_flip(sim, TABLE_PATH, 400 * TABLE_FILE_PAGE_BYTES, 0));
    assert_int_equal(table_file_verify(vfs, TABLE_PATH, true, count_finding, &findings),
                     TABLE_FILE_DAMAGED);
    assert_int_equal(findings, 2);
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_OPEN, TABLE_NAME) - 1, /* the one that failed */
                     vfs_sim_calls(sim, VFS_SIM_CLOSE, TABLE_NAME));
    vfs_sim_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_power_cut),      cmocka_unit_test(test_kill),
        cmocka_unit_test(test_open_is_enough), cmocka_unit_test(test_committed_stays),
        cmocka_unit_test(test_failing_calls),  cmocka_unit_test(test_no_matter),
        cmocka_unit_test(test_disk_full),      cmocka_unit_test(test_after_failure),
        cmocka_unit_test(test_long_name),      cmocka_unit_test(test_short),
        cmocka_unit_test(test_lost_write),     cmocka_unit_test(test_failing_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
