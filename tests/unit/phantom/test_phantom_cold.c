/* test_phantom_cold.c: tables of a phantom space that have left memory: answers, changes, reads,
 * what fails. Merges and layers: test_phantom_merge.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "row/row_data.h"
#include "row/row_private.h"
#include "store/cold.h"
#include "store/table_file.h"
#include "tests/unit/phantom/cold_space.h"

#define OVERLAY_MAX (1u << 20)
#define CACHE       (1u << 20)
#define NEW         500000u /* numbers of members that come late */
#define LATE        40u
#define NEAR        100u    /* ids that come in */
#define FEW         500u    /* of the ids of the first table */
#define ASKED       200000u /* foreign members: about 90 are said to be there */
#define FAR         (1ull << 40)
#define APART       10u /* members of that id */

static uint64_t preads(struct cold_space *space)
{
    return vfs_sim_calls(space->sim, VFS_SIM_PREAD, NULL);
}

/* Of the file of the oldest table. */
static const char *oldest_file(const struct cold_space *space)
{
    static char path[VFS_PATH_MAX];
    const struct phantom_dumps_set *set = &space->dumps.last;
    for (size_t i = 0; i < set->count; i++) {
        if (set->tables[i].serial == cold_oldest(space->engine)->row.serial) {
            assert_true(vfs_path(path, COLD_DIRECTORY, set->tables[i].file));
            return path;
        }
    }
    fail();
    return NULL;
}

/* The first number from `number` on that the table says yes or no to. */
static uint64_t next_said(struct cold_space *space, uint64_t id, uint64_t number, bool said)
{
    while (cold_holds(space, space->engine, id, number) != said) {
        number++;
    }
    return number;
}

/* A number that was never added to the id: one the table says yes or no to. */
static uint64_t foreign(struct cold_space *space, uint64_t id, bool said)
{
    return next_said(space, id, 2 * NEW, said);
}

static void compare_all(struct cold_space *space, uint64_t ids)
{
    struct engine *twin = cold_twin(space);
    cold_compare(space, space->engine, twin, ids);
    struct engine *again = cold_restore(space);
    assert_non_null(again);
    assert_int_equal(cold_tables(again), cold_tables(space->engine));
    cold_compare(space, again, twin, ids);
    phantoms_destroy(again);
    phantoms_destroy(twin);
}

/* ---- answers ---- */

static void test_same_answers(void **unused)
{
    (void)unused;
    static struct cold_space space;
    struct phantom_config config = cold_config();
    cold_begin(&space, &config, CACHE, OVERLAY_MAX);
    uint64_t ids = cold_roll(&space, 2);
    assert_true(space.dumps.images[ROW_IMAGE_DUMP] == 2);
    compare_all(&space, ids);
    assert_int_equal(cold_run(&space, ENGINE_REPLACE, 1, 1), ENGINE_DONE);
    assert_int_equal(cold_run(&space, ENGINE_REPLACE, 1, foreign(&space, 1, false)), ENGINE_ABSENT);
    assert_int_equal(cold_run(&space, ENGINE_TOUCH, 1, 1), ENGINE_DONE);
    cold_end(&space);
}

static void expect_preads(struct cold_space *space, enum engine_verb verb, uint64_t id,
                          uint64_t number, enum engine_status status, unsigned reads)
{
    uint64_t before = preads(space);
    assert_int_equal(cold_run(space, verb, id, number), status);
    assert_int_equal(preads(space) - before, reads);
}

/* A page a question, and none where memory knows it. */
static void test_reads(void **unused)
{
    (void)unused;
    static struct cold_space space;
    struct phantom_config config = cold_config();
    cold_begin(&space, &config, 0, OVERLAY_MAX);
    uint64_t ids = cold_roll(&space, 1);
    uint64_t no = foreign(&space, 2, false);
    expect_preads(&space, ENGINE_READ, 2, 2, ENGINE_DONE, 1);
    expect_preads(&space, ENGINE_READ, 2, no, ENGINE_ABSENT, 1);
    expect_preads(&space, ENGINE_READ, ids - 1, 2, ENGINE_DONE, 0); /* of one in memory */
    expect_preads(&space, ENGINE_ADD, 2, 2, ENGINE_EXISTS, 1);
    expect_preads(&space, ENGINE_ADD, 2, no, ENGINE_DONE, 1);
    expect_preads(&space, ENGINE_READ, 2, no, ENGINE_DONE, 0); /* the overlay says yes */
    expect_preads(&space, ENGINE_ADD, 2, no, ENGINE_EXISTS, 0);
    struct engine_op op = cold_op(&space, space.engine, ENGINE_ADD, 2, no);
    assert_int_equal(op.copied_bytes, ENGINE_COPIED_COLD); /* others get a turn */
    expect_preads(&space, ENGINE_DELETE, 2, no, ENGINE_DONE, 0);
    expect_preads(&space, ENGINE_DELETE, 2, 2, ENGINE_DONE, 1);
    expect_preads(&space, ENGINE_READ, 2, 2, ENGINE_ABSENT, 0); /* an exception */
    expect_preads(&space, ENGINE_READ, 2, no, ENGINE_ABSENT, 0);
    assert_int_equal(vfs_sim_bytes(space.sim, VFS_SIM_PREAD, oldest_file(&space)) % 4096, 0);
    cold_end(&space);
}

static void wake_nobody(void *target, uint64_t serial)
{
    (void)target;
    (void)serial;
}

/* All pages a batch needs are asked for at once. */
static void test_batch(void **unused)
{
    (void)unused;
    static struct cold_space space;
    struct phantom_config config = cold_config();
    struct phantoms_call calls[LATE];
    struct engine_op *ops[LATE];
    cold_begin(&space, &config, CACHE, OVERLAY_MAX);
    (void)cold_roll(&space, 1);
    for (unsigned i = 0; i < LATE; i++) {
        phantoms_call_init(&calls[i], ENGINE_READ, i, "u1", "");
        calls[i].op.ticket = (struct ticket){wake_nobody, &space, 1};
        ops[i] = &calls[i].op;
    }
    struct cold_stats stats;
    cold_stats(space.dumps.cold.cold, &stats);
    uint64_t asked = stats.queued + stats.joined + stats.again + stats.hits;
    space.engine->functions->prepare(space.engine, ops, LATE);
    space.engine->functions->read(space.engine, ops, LATE);
    cold_stats(space.dumps.cold.cold, &stats);
    assert_int_equal(stats.queued + stats.joined + stats.again + stats.hits, asked + LATE);
    struct ticket ticket = {wake_nobody, &space, 1};
    cold_release(space.dumps.cold.cold, &ticket);
    for (unsigned i = 0; i < LATE; i++) {
        assert_true(ops[i]->status == ENGINE_PENDING || ops[i]->status == ENGINE_DONE);
        assert_int_equal(ops[i]->error, ENGINE_E_NONE);
    }
    cold_end(&space);
}

/* ---- changes ---- */

static void test_changes(void **unused)
{
    (void)unused;
    static struct cold_space space;
    struct phantom_config config = cold_config();
    cold_begin(&space, &config, CACHE, OVERLAY_MAX);
    uint64_t ids = cold_roll(&space, 2);
    uint64_t said = foreign(&space, 3, true);
    assert_int_equal(cold_run(&space, ENGINE_DELETE, 3, said), ENGINE_DONE); /* it was there */
    assert_false(cold_holds(&space, space.engine, 3, said));
    assert_int_equal(cold_run(&space, ENGINE_DELETE, 3, said), ENGINE_ABSENT);
    uint64_t members = phantoms_members(space.engine);
    for (unsigned i = 0; i < LATE; i++) {
        uint64_t id = i % 7;
        enum engine_status status = cold_run(&space, ENGINE_ADD, id, NEW + i);
        assert_true(status == ENGINE_DONE || status == ENGINE_EXISTS);
        members += status == ENGINE_DONE;
        assert_true(cold_holds(&space, space.engine, id, NEW + i));
        assert_int_equal(cold_run(&space, ENGINE_SET, id, NEW + i), ENGINE_DONE);
        assert_int_equal(cold_run(&space, ENGINE_ADD, id, NEW + i), ENGINE_EXISTS);
        assert_int_equal(phantoms_members(space.engine), members);
        if (i % 3 == 0) {
            assert_int_equal(cold_run(&space, ENGINE_DELETE, id, NEW + i), ENGINE_DONE);
            assert_int_equal(cold_run(&space, ENGINE_DELETE, id, NEW + i), ENGINE_ABSENT);
            assert_false(cold_holds(&space, space.engine, id, NEW + i));
            members--;
        }
        if (i % 6 == 0) {
            assert_int_equal(cold_run(&space, ENGINE_SET, id, NEW + i), ENGINE_DONE);
            assert_true(cold_holds(&space, space.engine, id, NEW + i));
            members++;
        }
    }
    assert_int_equal(cold_tables(space.engine), 2);
    compare_all(&space, ids); /* file and journal */
    cold_round(&space);
    assert_true(space.dumps.images[ROW_IMAGE_OVERLAY] > 0);
    compare_all(&space, ids); /* file, overlay's image */
    assert_int_equal(cold_run(&space, ENGINE_ADD, 5, 2 * NEW), ENGINE_DONE);
    assert_int_equal(cold_run(&space, ENGINE_DELETE, 5, 5), ENGINE_DONE);
    compare_all(&space, ids); /* all three */
    cold_end(&space);
}

/* A change that must wait has changed nothing, and took no room of the journal. */
static void test_pending_changes_nothing(void **unused)
{
    (void)unused;
    static struct cold_space space;
    struct phantom_config config = cold_config();
    struct phantoms_call call;
    struct phantoms_sink sink;
    cold_begin(&space, &config, 0, OVERLAY_MAX);
    (void)cold_roll(&space, 1);
    uint64_t members = phantoms_members(space.engine);
    phantoms_sink_init(&sink);
    phantoms_call_init(&call, ENGINE_ADD, 1, "new", "1");
    call.op.ticket = (struct ticket){wake_nobody, &space, 1};
    assert_int_equal(phantoms_try(space.engine, &call, &sink.sink), ENGINE_PENDING);
    assert_int_equal(call.op.error, ENGINE_E_NONE);
    assert_int_equal(sink.reserved + sink.put + sink.cancelled, 0);
    assert_int_equal(phantoms_members(space.engine), members);
    assert_string_equal(phantoms_space_figure(space.engine, "overlay_bytes").text, "0");
    struct ticket ticket = {wake_nobody, &space, 1};
    cold_release(space.dumps.cold.cold, &ticket);
    cold_end(&space);
}

/* ---- what fails ---- */

static void test_bad_page(void **unused)
{
    (void)unused;
    static struct cold_space space;
    struct phantom_config config = cold_config();
    cold_begin(&space, &config, 0, OVERLAY_MAX);
    (void)cold_roll(&space, 1);
    uint64_t no = foreign(&space, 2, false);
    const char *path = oldest_file(&space);
    for (uint64_t page = 0; page < config.row.table_bytes / 4096; page++) {
        assert_true(vfs_sim_flip(space.sim, path, (1 + page) * 4096 + 99, 3));
    }
    struct engine_op op = cold_op(&space, space.engine, ENGINE_READ, 2, 2);
    assert_int_equal(op.status, ENGINE_ERROR);
    assert_int_equal(op.error, ENGINE_E_READ_FAILED);
    op = cold_op(&space, space.engine, ENGINE_READ, 2, no); /* nor is it absent */
    assert_int_equal(op.error, ENGINE_E_READ_FAILED);
    op = cold_op(&space, space.engine, ENGINE_ADD, 2, no);
    assert_int_equal(op.error, ENGINE_E_READ_FAILED);
    op = cold_op(&space, space.engine, ENGINE_DELETE, 2, 2);
    assert_int_equal(op.error, ENGINE_E_READ_FAILED);
    assert_int_equal(op.status, ENGINE_ERROR);
    cold_end(&space);
}

/* Without room for what is added nothing is, until a merge has made some. */
static void test_no_room(void **unused)
{
    (void)unused;
    static struct cold_space space;
    struct phantom_config config = cold_config();
    cold_begin(&space, &config, CACHE, 10 * PHANTOM_OVERLAY_LINE_BYTES);
    (void)cold_roll(&space, 1);
    uint64_t number = NEW;
    while (cold_run(&space, ENGINE_SET, 1, number) == ENGINE_DONE) {
        number++;
    }
    uint64_t members = phantoms_members(space.engine);
    struct engine_op op = cold_op(&space, space.engine, ENGINE_SET, 1, number);
    assert_int_equal(op.status, ENGINE_ERROR);
    assert_int_equal(op.error, ENGINE_E_BUSY);
    assert_false(cold_holds(&space, space.engine, 1, number));
    assert_int_equal(phantoms_members(space.engine), members);
    assert_int_equal(cold_run(&space, ENGINE_DELETE, 1, NEW), ENGINE_DONE); /* needs none */
    assert_int_equal(cold_run(&space, ENGINE_SET, 1, NEW), ENGINE_DONE);
    assert_true(row_images_wanted(space.engine->row));
    cold_round(&space);
    assert_int_equal(space.dumps.images[ROW_IMAGE_MERGE], 1);
    assert_false(row_images_wanted(space.engine->row));
    assert_int_equal(cold_run(&space, ENGINE_SET, 1, number), ENGINE_DONE);
    for (uint64_t n = NEW; n <= number; n++) {
        assert_true(cold_holds(&space, space.engine, 1, n));
    }
    cold_end(&space);
}

/* ---- leaving ---- */

static void test_dump_fails(void **unused)
{
    (void)unused;
    static struct cold_space space;
    struct phantom_config config = cold_config();
    cold_begin(&space, &config, CACHE, OVERLAY_MAX);
    space.dumps.fails[ROW_IMAGE_DUMP] = 2;
    uint64_t id = 0;
    while (!row_images_wanted(space.engine->row)) {
        assert_int_equal(cold_run(&space, ENGINE_SET, id / COLD_MEMBERS, id % COLD_MEMBERS),
                         ENGINE_DONE);
        id++;
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_false(phantom_dumps_round(&space.dumps, space.engine));
        assert_int_equal(cold_tables(space.engine), 0);
        assert_null(cold_oldest(space.engine)->dump);
        phantom_check(space.engine);
    }
    cold_round(&space);
    assert_int_equal(cold_tables(space.engine), 1);
    compare_all(&space, id / COLD_MEMBERS);
    cold_end(&space);
}

struct late_members {
    struct cold_space *space;
    uint64_t numbers[LATE];
};

/* Members the table does not say yes to by mistake: those would stay in its file alone. */
static void add_to_oldest(void *context, const struct row_image *image)
{
    struct late_members *late = context;
    uint64_t number = NEW;

    for (unsigned i = 0; image->kind == ROW_IMAGE_DUMP && i < LATE; i++) {
        late->numbers[i] = next_said(late->space, image->base, number, false);
        number = late->numbers[i] + 1;
        (void)cold_run(late->space, ENGINE_SET, image->base, late->numbers[i]);
    }
}

/* What is added while the image is written is in the overlay. */
static void test_added_meanwhile(void **unused)
{
    (void)unused;
    static struct cold_space space;
    struct phantom_config config = cold_config();
    struct late_members late = {.space = &space};
    cold_begin(&space, &config, CACHE, OVERLAY_MAX);
    space.dumps.written = add_to_oldest;
    space.dumps.context = &late;
    uint64_t ids = cold_roll(&space, 1);
    uint64_t before = preads(&space);
    for (unsigned i = 0; i < LATE; i++) {
        assert_true(cold_holds(&space, space.engine, 0, late.numbers[i]));
    }
    assert_int_equal(preads(&space), before);
    compare_all(&space, ids);
    cold_end(&space);
}

/* Whoever adds does not wait because a dump has no room: it is written again another time. */
static void test_given_up(void **unused)
{
    (void)unused;
    static struct cold_space space;
    struct phantom_config config = cold_config();
    cold_begin(&space, &config, CACHE, OVERLAY_MAX);
    (void)cold_roll(&space, 1);
    struct phantom_table *hot = phantom_table_of(((struct phantom *)space.engine)->row.tables[1]);
    dict_destroy(phantom_table_file_begin(hot, &space.dumps.cold, 0));
    atomic_store(&hot->row.tap, ROW_TAP_WRITING);
    for (unsigned i = 0; i < 1000 && !row_tap_is_given_up(&hot->row); i++) {
        assert_int_equal(cold_run(&space, ENGINE_SET, hot->row.base, NEW + i), ENGINE_DONE);
    }
    assert_true(row_tap_is_given_up(&hot->row));
    assert_false(row_tap_written(&hot->row));
    assert_int_equal(cold_run(&space, ENGINE_SET, hot->row.base, NEW + 1000), ENGINE_DONE);
    phantom_check(space.engine);
    dict_destroy(phantom_table_file_begin(hot, &space.dumps.cold, 0));
    atomic_store(&hot->row.tap, ROW_TAP_WRITING);
    assert_true(row_tap_written(&hot->row)); /* too late to give up */
    struct engine_op op = {.error = ENGINE_E_NONE};
    for (unsigned i = 0; i < 1000 && op.error == ENGINE_E_NONE; i++) {
        op = cold_op(&space, space.engine, ENGINE_SET, hot->row.base, NEW + 2000 + i);
    }
    assert_int_equal(op.error, ENGINE_E_BUSY);
    dict_destroy(phantom_table_stay(hot));
    cold_end(&space);
}

static void test_figures(void **unused)
{
    (void)unused;
    static struct cold_space space;
    struct phantom_config config = cold_config();
    struct engine_figures figures = {0};
    cold_begin(&space, &config, CACHE, OVERLAY_MAX);
    (void)cold_roll(&space, 1);
    double before = phantom_table_rate(cold_oldest(space.engine));
    assert_true(before > 0 && before <= config.false_positives);
    uint64_t said = 0;
    for (unsigned i = 0; i < ASKED; i++) {
        said +=
            cold_holds(&space, space.engine, i % FEW, 2 * NEW + i); /* a page has its own rate */
    }
    assert_true((double)said > before * ASKED / 2 && (double)said < before * ASKED * 2);
    assert_int_equal(phantoms_table_number(space.engine, 0, "bytes"), 0);
    assert_true(phantoms_table_number(space.engine, 0, "file_bytes") > config.row.table_bytes);
    assert_int_equal(cold_run(&space, ENGINE_SET, 1, foreign(&space, 1, false)), ENGINE_DONE);
    assert_int_equal(phantoms_table_number(space.engine, 0, "overlay_lines"), 1);
    assert_string_equal(phantoms_space_figure(space.engine, "overlay_bytes").text, "86");
    space.engine->functions->figures(space.engine, &figures);
    assert_int_equal(figures.memory[ENGINE_MEMORY_COLD].items, 1);
    assert_true(figures.memory[ENGINE_MEMORY_FILTERS].items < phantoms_members(space.engine));
    cold_end(&space);
}

/* The oldest goes with its file and its overlay. */
static void test_dropped(void **unused)
{
    (void)unused;
    static struct cold_space space;
    struct phantom_config config = cold_config();
    config.row.dumps_max = 1;
    cold_begin(&space, &config, CACHE, OVERLAY_MAX);
    uint64_t id = cold_roll(&space, 1);
    assert_int_equal(cold_run(&space, ENGINE_SET, 0, NEW), ENGINE_DONE);
    uint64_t serial = cold_oldest(space.engine)->row.serial;
    for (; cold_oldest(space.engine)->row.serial == serial; id++) {
        for (unsigned m = 0; m < COLD_MEMBERS; m++) {
            assert_int_equal(cold_run(&space, ENGINE_SET, id, m), ENGINE_DONE);
        }
    }
    row_maintain(space.engine->row, NULL);
    assert_int_equal(space.dumps.cold.overlay_bytes, 0);
    assert_false(cold_holds(&space, space.engine, 0, NEW));
    cold_round(&space);
    cold_end(&space);
}

/* ---- what it keeps apart ---- */

static void expect_apart(struct cold_space *space, struct engine *engine)
{
    for (uint64_t m = 1; m < APART; m++) {
        assert_true(cold_holds(space, engine, FAR, m));
    }
    assert_false(cold_holds(space, engine, FAR, 0));
    assert_int_equal(phantoms_members(engine), phantoms_members(space->engine));
}

static void expect_apart_again(struct cold_space *space)
{
    struct engine *again = cold_restore(space);
    assert_non_null(again);
    expect_apart(space, again);
    phantoms_destroy(again);
}

/* It is in memory still, and moves to the table that opens behind a cold one. */
static void test_apart_moves(void **unused)
{
    (void)unused;
    static struct cold_space space;
    struct phantom_config config = cold_config();
    cold_begin(&space, &config, CACHE, OVERLAY_MAX);
    struct row *row = &((struct phantom *)space.engine)->row;
    for (uint64_t id = 0; id < NEAR; id++) {
        assert_int_equal(cold_run(&space, ENGINE_SET, id, id), ENGINE_DONE);
    }
    for (uint64_t m = 0; m < APART; m++) {
        assert_int_equal(cold_run(&space, ENGINE_SET, FAR, m), ENGINE_DONE);
    }
    uint64_t behind = atomic_load(&row->tables[0]->frontier) + 1;
    assert_in_range(behind, 1, FAR);
    row_cold_leave(row, row->tables[0]);
    cold_round(&space);
    assert_int_equal(cold_tables(space.engine), 1);
    assert_int_equal(cold_run(&space, ENGINE_DELETE, FAR, 0), ENGINE_DONE);
    assert_int_equal(cold_run(&space, ENGINE_SET, behind, 0), ENGINE_DONE);
    assert_int_equal(row->count, 2);
    assert_int_equal(row->bases[1], behind);
    phantom_check(space.engine);
    expect_apart(&space, space.engine);
    expect_apart_again(&space); /* by the journal */
    cold_round(&space);
    expect_apart_again(&space); /* by images */
    assert_int_equal(cold_run(&space, ENGINE_DELETE, FAR, 1), ENGINE_DONE);
    assert_false(cold_holds(&space, space.engine, FAR, 1));
    cold_end(&space);
}

/* ---- what cannot be taken up ---- */

static struct table_file *open_named(struct cold_space *space, const char *name)
{
    char path[VFS_PATH_MAX];
    char error[TABLE_FILE_ERROR_MAX];
    struct table_file *file;
    assert_true(vfs_path(path, COLD_DIRECTORY, name));
    assert_int_equal(table_file_open(space->dumps.vfs, path, true, &file, error), TABLE_FILE_DONE);
    return file;
}

static void expect_refused(struct cold_space *space, bool cold, const char *name,
                           const char *overlay_name, const char *why)
{
    char error[ENGINE_ERROR_MAX] = "";
    struct engine *engine = phantoms_create(&space->config);
    struct table_file *file = open_named(space, name);
    struct table_file *overlay = overlay_name ? open_named(space, overlay_name) : NULL;
    row_set_cold(engine->row, cold ? &space->dumps.cold : NULL);
    assert_true(row_restore_begin(engine->row, space->dumps.last.state,
                                  space->dumps.last.state_bytes, error));
    assert_false(row_restore_dumped(engine->row, file, overlay, error));
    assert_non_null(strstr(error, why));
    table_file_close(overlay);
    table_file_close(file); /* it stayed the caller's */
    engine->functions->destroy(engine);
}

static void test_refused(void **unused)
{
    (void)unused;
    static struct cold_space space;
    struct phantom_config config = cold_config();
    cold_begin(&space, &config, CACHE, OVERLAY_MAX);
    (void)cold_roll(&space, 2);
    uint64_t base = ((struct phantom *)space.engine)->row.bases[1];
    assert_int_equal(cold_run(&space, ENGINE_SET, 1, NEW), ENGINE_DONE);
    assert_int_equal(cold_run(&space, ENGINE_SET, base, NEW), ENGINE_DONE);
    cold_round(&space);
    const struct phantom_dumps_table *tables = space.dumps.last.tables;
    size_t first = 0;
    while (tables[first].overlay[0] == '\0') {
        first++;
    }
    size_t second = first + 1;
    while (tables[second].overlay[0] == '\0') {
        second++;
    }
    expect_refused(&space, false, tables[first].file, NULL, "none is read here");
    expect_refused(&space, true, tables[first].file, tables[second].overlay, "of another table");
    expect_refused(&space, true, tables[first].overlay, NULL, "pages");
    expect_refused(&space, true, tables[first].file, tables[first].file, "an overlay needs");
    cold_end(&space);
}

/* Pages of files that an engine has closed are not held any more. */
static void test_gone_is_forgotten(void **unused)
{
    (void)unused;
    static struct cold_space space;
    struct phantom_config config = cold_config();
    struct cold_stats before;
    struct cold_stats after;
    cold_begin(&space, &config, 1u << 20, OVERLAY_MAX);
    cold_roll(&space, 1);
    struct engine *again = cold_restore(&space);
    assert_non_null(again);
    cold_stats(space.dumps.cold.cold, &before);
    for (uint64_t id = 0; id < 20; id++) {
        assert_true(cold_holds(&space, again, id, 0));
    }
    cold_stats(space.dumps.cold.cold, &after);
    assert_true(after.cached_pages > before.cached_pages);
    phantoms_destroy(again);
    cold_stats(space.dumps.cold.cold, &after);
    assert_int_equal(after.cached_pages, before.cached_pages);
    cold_end(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_answers),      cmocka_unit_test(test_reads),
        cmocka_unit_test(test_gone_is_forgotten), cmocka_unit_test(test_batch),
        cmocka_unit_test(test_changes),           cmocka_unit_test(test_pending_changes_nothing),
        cmocka_unit_test(test_bad_page),          cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_dump_fails),        cmocka_unit_test(test_added_meanwhile),
        cmocka_unit_test(test_given_up),          cmocka_unit_test(test_figures),
        cmocka_unit_test(test_dropped),           cmocka_unit_test(test_apart_moves),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
