/*
 * test_phantom_fold.c: a merge of a filter's table came to nothing: its overlays become one again
 * in steps, with members added between them, and whatever else may come.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/dict.h"
#include "row/row_data.h"
#include "row/row_private.h"
#include "tests/unit/phantom/cold_space.h"

#define OVERLAY_MAX (1u << 20)
#define CACHE       (1u << 20)
#define NEW         500000u /* numbers of members that come late */
#define AN_ID       3u
#define A_STOP      4u  /* lines that move in one stop */
#define AT_ONCE     60u /* members that are added while the merge is written */

struct scene {
    struct cold_space space;
    uint64_t ids;
    uint64_t next; /* number of a late member */
    void (*between)(struct scene *scene);
    unsigned betweens, later;
    bool copied; /* there was no room for both */
    bool flushed, moves, moved;
    const struct dict *older;
    uint64_t places; /* of the one that takes both */
};

static struct scene scene;

static struct phantom_dump *oldest(void)
{
    return cold_oldest(scene.space.engine)->dump;
}

static struct row *row_here(void)
{
    return &((struct phantom *)scene.space.engine)->row;
}

static void add(void)
{
    assert_int_equal(cold_run(&scene.space, ENGINE_SET, AN_ID, scene.next++), ENGINE_DONE);
}

static void check_bytes(void)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < row_here()->count; i++) {
        const struct phantom_dump *dump = phantom_table_of(row_here()->tables[i])->dump;
        lines += dump != NULL ? phantom_dump_lines(dump) : 0;
    }
    assert_int_equal(scene.space.dumps.cold.overlay_bytes, lines * PHANTOM_OVERLAY_LINE_BYTES);
}

static void expect_late(struct engine *engine)
{
    for (uint64_t n = NEW; n < scene.next; n++) {
        assert_true(cold_holds(&scene.space, engine, AN_ID, n));
    }
}

/* ---- a merge that fails ---- */

static void amid_merge(void *context, const struct row_image *image)
{
    (void)context;
    for (unsigned i = 0; image->kind == ROW_IMAGE_MERGE && i < scene.later; i++) {
        add();
    }
}

static void between_steps(void *context)
{
    (void)context;
    scene.betweens++;
    phantom_check(scene.space.engine);
    check_bytes();
    if (scene.between) {
        scene.between(&scene);
    }
}

static void scene_begin(unsigned later, void (*between)(struct scene *scene))
{
    struct phantom_config config = cold_config();
    memset(&scene, 0, sizeof(scene));
    cold_begin(&scene.space, &config, CACHE, OVERLAY_MAX);
    scene.ids = cold_roll(&scene.space, 2);
    scene.next = NEW;
    scene.later = later;
    scene.between = between;
    row_here()->fold_records = A_STOP;
    scene.space.dumps.written = amid_merge;
    scene.space.dumps.folds = between_steps;
    while (!row_images_wanted(scene.space.engine->row)) {
        add();
    }
}

static void fail_round(void)
{
    scene.space.dumps.fails[ROW_IMAGE_MERGE] = 1;
    (void)phantom_dumps_round(&scene.space.dumps, scene.space.engine);
    assert_int_equal(scene.space.dumps.images[ROW_IMAGE_MERGE], 0);
    assert_int_equal(scene.space.dumps.gone[ROW_IMAGE_MERGE], 1);
}

/* And the next merge takes it all. */
static void scene_end(void)
{
    phantom_check(scene.space.engine);
    check_bytes();
    assert_null(phantom_dump_overlay(oldest(), 0));
    assert_int_equal(row_here()->merges, 0);
    assert_int_equal(row_here()->folds, 0);
    struct engine *twin = cold_twin(&scene.space);
    struct engine *again = cold_restore(&scene.space);
    assert_non_null(again);
    cold_compare(&scene.space, scene.space.engine, twin, scene.ids);
    cold_compare(&scene.space, again, twin, scene.ids);
    expect_late(scene.space.engine);
    expect_late(again);
    phantoms_destroy(twin);
    phantoms_destroy(again);
    scene.later = 0;
    cold_oldest(scene.space.engine)->row.merge_us = 1;
    row_here()->merges_us = 1;
    while (phantom_dump_lines(oldest()) <= dict_places(phantom_dump_overlay(oldest(), 1)) / 2) {
        add();
    }
    cold_round(&scene.space);
    assert_int_equal(scene.space.dumps.images[ROW_IMAGE_MERGE], 1);
    assert_int_equal(phantom_dump_lines(oldest()), 0);
    expect_late(scene.space.engine);
    cold_end(&scene.space);
}

/* ---- tests ---- */

static void add_some(struct scene *s)
{
    for (unsigned i = 0; i < 3; i++) {
        add();
    }
    s->copied = s->copied || scene.space.dumps.stops == 0;
    expect_late(s->space.engine);
}

static void test_several_stops(void **unused)
{
    (void)unused;
    scene_begin(AT_ONCE, add_some);
    const struct dict *older = phantom_dump_overlay(oldest(), 1);
    fail_round();
    assert_true(scene.space.dumps.stops > AT_ONCE / A_STOP / 2);
    assert_true(scene.space.dumps.stops < AT_ONCE);
    assert_true(scene.copied);
    assert_true(phantom_dump_overlay(oldest(), 1) != older);
    scene_end();
}

static void test_nothing_came(void **unused)
{
    (void)unused;
    scene_begin(0, NULL);
    const struct dict *older = phantom_dump_overlay(oldest(), 1);
    fail_round();
    assert_int_equal(scene.space.dumps.stops, 1);
    assert_ptr_equal(phantom_dump_overlay(oldest(), 1), older);
    scene_end();
}

/* What is added goes to the newer overlay no more, once the first stop is over. */
static void add_many(struct scene *s)
{
    static uint64_t left;
    const struct dict *older = phantom_dump_overlay(oldest(), 0);
    bool moves = older != NULL && older != s->older; /* the copy stands */
    if (moves && s->moves) {
        s->moved = true;
        assert_true(dict_count(phantom_dump_overlay(oldest(), 1)) <= left);
    }
    s->moves = moves;
    for (unsigned i = 0; i < A_STOP; i++) {
        add();
    }
    left = dict_count(phantom_dump_overlay(oldest(), 1));
}

static void test_not_outrun(void **unused)
{
    (void)unused;
    scene_begin(AT_ONCE, add_many);
    scene.older = phantom_dump_overlay(oldest(), 1);
    fail_round();
    assert_true(scene.moved);
    assert_true(scene.space.dumps.stops > AT_ONCE / A_STOP / 2);
    scene_end();
}

/* Adds until the overlay that takes it is full. */
static void fill(void)
{
    struct engine_op op = {.status = ENGINE_DONE};
    while (op.status == ENGINE_DONE) {
        op = cold_op(&scene.space, scene.space.engine, ENGINE_SET, AN_ID, scene.next++);
    }
    assert_int_equal(op.error, ENGINE_E_BUSY);
    scene.next--;
}

static void fill_once(struct scene *s)
{
    if (s->betweens == 1) {
        fill();
    }
}

/* A copy that what came meanwhile has no room in is made again, wider: nothing grows in a stop. */
static void test_too_narrow(void **unused)
{
    (void)unused;
    scene_begin(A_STOP, fill_once);
    fill();
    uint64_t places = dict_places(phantom_dump_overlay(oldest(), 1));
    fail_round();
    assert_true(dict_places(phantom_dump_overlay(oldest(), 1)) > 4 * places - 4 * places / 16);
    assert_true(scene.space.dumps.stops >
                dict_count(phantom_dump_overlay(oldest(), 1)) / 4 / A_STOP);
    scene_end();
}

/* While lines move, what is new takes no place that those need: else the older one would have to
 * grow in a stop, whole. */
static void fill_amid_moves(struct scene *s)
{
    const struct dict *older = phantom_dump_overlay(oldest(), 0);
    if (older == NULL || (older == s->older && s->space.dumps.stops == 0)) {
        return;
    }
    if (!s->moved) {
        s->moved = true;
        s->places = dict_places(older);
        fill();
    }
    assert_int_equal(dict_places(older), s->places);
}

static void test_room_is_kept(void **unused)
{
    (void)unused;
    scene_begin(AT_ONCE, fill_amid_moves);
    scene.older = phantom_dump_overlay(oldest(), 1);
    fail_round();
    assert_true(scene.moved);
    assert_int_equal(dict_places(phantom_dump_overlay(oldest(), 1)), scene.places);
    scene_end();
}

static void flush_once(struct scene *s)
{
    struct row *row = row_here();
    if (!s->flushed && s->space.dumps.stops == 2) {
        s->flushed = true;
        assert_true(row->log == NULL || row->log->reserve(row->log));
        row_flush(s->space.engine->row);
        row_maintain(s->space.engine->row, NULL);
        assert_int_equal(s->space.dumps.cold.overlay_bytes, 0);
    }
}

static void test_a_table_goes(void **unused)
{
    (void)unused;
    scene_begin(AT_ONCE, flush_once);
    fail_round();
    assert_true(scene.flushed);
    assert_int_equal(row_here()->merges, 0);
    assert_int_equal(row_here()->folds, 0);
    assert_int_equal(scene.space.dumps.stops, 3); /* the last one finds none */
    phantom_check(scene.space.engine);
    cold_end(&scene.space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_several_stops), cmocka_unit_test(test_nothing_came),
        cmocka_unit_test(test_not_outrun),    cmocka_unit_test(test_too_narrow),
        cmocka_unit_test(test_room_is_kept),  cmocka_unit_test(test_a_table_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
