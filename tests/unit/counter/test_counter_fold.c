/*
 * test_counter_fold.c: a merge of a dumped table of the counter engine came to nothing: its
 * overlays become one again in steps, with reads and changes between them, and whatever else may
 * come.
 */
#include "row/row_fold.h"

#include <stdio.h>
#include <string.h>

#include "row/row_cold.h"
#include "row/row_data.h"
#include "row/row_private.h"
#include "tests/unit/counter/dumped_space.h"

#define MOST   2200u /* ids that are changed at all */
#define A_STOP 16u   /* records that move in one stop */
#define OLD    520u  /* in the older overlay: more than half of its places */
#define NEW    350u  /* in the newer one: together, more than there is room for */
#define FEW    40u

/* What a record should be. */
struct wanted {
    unsigned a; /* 0: it is not there */
    bool large; /* the value beside is LARGE, else 8 */
};

struct scene {
    struct dumped_space *space;
    struct wanted wanted[MOST];
    unsigned old, young, step; /* ids of the overlays: 0 .. old, old / 2 .. old / 2 + young */
    void (*between)(struct scene *scene);
    unsigned betweens;
    bool merged; /* the newer overlay has got its part */
};

static struct scene scene;

static struct counter_table *oldest(void)
{
    return counter_table_of(space_row(scene.space)->tables[0]);
}

/* ---- changes, and what they make ---- */

static void change(unsigned i)
{
    struct wanted *wanted = &scene.wanted[i];
    char text[40];
    assert_true(i < MOST && FIRST + i <= oldest()->row.last);
    wanted->a++;
    wanted->large = i % 3 == 0;
    snprintf(text, sizeof(text), "%u,%s", wanted->a, wanted->large ? LARGE : "8");
    space_set(scene.space, FIRST + i, text);
}

static void erase(unsigned i)
{
    enum engine_status was = scene.wanted[i].a > 0 ? ENGINE_DONE : ENGINE_ABSENT;
    assert_int_equal(space_run(scene.space, ENGINE_DELETE, ENGINE_SLOT_RECORD, FIRST + i, NULL),
                     was);
    scene.wanted[i].a = 0;
}

static void expect(unsigned i)
{
    const struct wanted *wanted = &scene.wanted[i];
    char text[40];
    snprintf(text, sizeof(text), "%u,%s", wanted->a, wanted->large ? LARGE : "8");
    space_expect(scene.space, FIRST + i, wanted->a > 0 ? text : NULL);
}

static void expect_all(void)
{
    for (unsigned i = 0; i < MOST; i++) {
        expect(i);
    }
}

/* What counts is what the tables' overlays use, and what is about to be destroyed counts no more.
 */
static void check_bytes(void)
{
    const struct row *row = space_row(scene.space);
    uint64_t bytes = 0;
    for (size_t i = 0; i < row->count; i++) {
        const struct counter_table *t = counter_table_of(row->tables[i]);
        const struct table_overlay *overlays[] = {t->overlay, t->older};
        for (unsigned k = 0; k < 2; k++) {
            const struct table_overlay *overlay = overlays[k];
            bytes += overlay ? atomic_load(&overlay->bytes) : 0;
            bool any = overlay && dict_count(overlay->extend) > 0;
            assert_true(!any || atomic_load(&overlay->bytes) >= dict_used_bytes(overlay->extend));
        }
    }
    assert_int_equal(scene.space->dumps.cold.overlay_bytes, bytes);
}

/* ---- a merge that comes to nothing ---- */

/* While it is written the newer overlay gets its part: half of it is in the older one, too. */
static void amid_merge(void *context, enum vfs_sim_op op, const char *path)
{
    (void)context, (void)path;
    if (op != VFS_SIM_PREAD || scene.merged || space_row(scene.space)->merges == 0) {
        return;
    }
    scene.merged = true;
    for (unsigned i = scene.old / 2; i < scene.old / 2 + scene.young; i++) {
        change(i);
    }
    for (unsigned i = scene.old / 2; i < scene.old / 2 + scene.young; i += 7) {
        erase(i);
    }
}

static void between_steps(void *context)
{
    (void)context;
    scene.betweens++;
    counter_check(scene.space->dumps.engine);
    check_bytes();
    if (scene.between) {
        scene.between(&scene);
    }
}

static void scene_begin(void **state, unsigned old, unsigned young)
{
    scene = (struct scene){.space = *state, .old = old, .young = young};
    struct row *row = space_row(scene.space);
    row->fold_records = A_STOP;
    scene.space->dumps.folds = between_steps;
    for (unsigned i = 0; i < MOST; i++) {
        scene.wanted[i] = (struct wanted){7, i % 10 == 0};
    }
    for (unsigned i = 0; i < old; i++) {
        change(i);
    }
    atomic_store(&row->merge_wanted, true);
}

/* All images of the round are thrown away, the merge's, too. */
static void fail_round(void)
{
    struct dumps *d = &scene.space->dumps;
    uint64_t before = d->kinds[ROW_IMAGE_MERGE];
    vfs_sim_hook(d->sim, amid_merge, NULL);
    dumps_round(d, NULL, NULL, true);
    vfs_sim_hook(d->sim, NULL, NULL);
    assert_int_equal(d->kinds[ROW_IMAGE_MERGE], before + 1);
    assert_true(scene.merged);
}

static void expect_one_overlay(void)
{
    const struct row *row = space_row(scene.space);
    assert_null(oldest()->older);
    assert_null(oldest()->fold.wider);
    assert_false(oldest()->fold.moves);
    assert_false(oldest()->row.merging || oldest()->row.folding);
    assert_int_equal(row->merges, 0);
    assert_int_equal(row->folds, 0);
    check_bytes();
    counter_check(scene.space->dumps.engine);
}

/* It comes back from the disk as it is, and its overlay is merged in the end. */
static void expect_later(void)
{
    expect_all();
    space_restart(scene.space);
    expect_all();
}

/* ---- tests ---- */

/* Of both overlays, of one of them, and of neither; some come twice. */
static void work(struct scene *s)
{
    unsigned i = s->betweens;
    change(i % s->old);
    change(s->old / 2 + i * 3 % s->young);
    change(s->old + s->young + i % 100);
    erase((s->old / 2 + i * 5) % s->old);
    for (unsigned k = 0; k < MOST; k += 13) {
        expect(k);
    }
}

static void a_fold_takes_several_stops(void **state)
{
    scene_begin(state, OLD, NEW);
    scene.between = work;
    const struct table_overlay *older = oldest()->overlay;
    fail_round();
    assert_true(scene.space->dumps.stops > NEW / A_STOP / 2);
    assert_true(scene.space->dumps.stops < NEW);
    assert_true(oldest()->overlay != older); /* it had no room for both */
    expect_one_overlay();
    expect_later();
}

static void what_fits_is_not_copied(void **state)
{
    scene_begin(state, OLD, FEW);
    scene.between = work;
    const struct table_overlay *older = oldest()->overlay;
    fail_round();
    assert_ptr_equal(oldest()->overlay, older);
    assert_true(scene.space->dumps.stops > 1);
    expect_one_overlay();
    expect_later();
}

/* From the first stop on the newer overlay only becomes less, whatever is changed. */
static void fill_then_work(struct scene *s)
{
    const struct counter_table *t = oldest();
    static uint64_t left;
    if (t->fold.moves) {
        assert_true(dict_count(t->overlay->extend) <= left);
    }
    work(s);
    left = dict_count(t->overlay->extend);
}

static void changes_do_not_outrun_it(void **state)
{
    scene_begin(state, OLD, NEW);
    space_row(scene.space)->fold_records = 1; /* and four ids are changed after each stop */
    scene.between = fill_then_work;
    fail_round();
    assert_true(scene.space->dumps.stops <= NEW + 2 * 4);
    expect_one_overlay();
    expect_later();
}

/* The copy is whole, and too narrow for what came meanwhile. */
static void fill(struct scene *s)
{
    const struct counter_table *t = oldest();
    if (s->step > 0 || t->fold.stage != TABLE_FOLD_READY) {
        return;
    }
    assert_non_null(t->fold.wider);
    uint64_t places = dict_places(t->fold.wider->extend);
    uint64_t more = 3 * places / 4 - dict_count(t->older->extend);
    for (unsigned i = s->old; dict_count(t->overlay->extend) <= more; i++) {
        change(i);
    }
    s->step = (unsigned)places;
}

static void a_copy_that_is_too_narrow_is_made_again(void **state)
{
    scene_begin(state, OLD, OLD / 2);
    scene.between = fill;
    fail_round();
    assert_true(scene.step > 0);
    assert_true(dict_places(oldest()->overlay->extend) > scene.step);
    expect_one_overlay();
    expect_later();
}

/* False: there is no room, and it would wait. */
static bool try_change(unsigned i, const char *beside)
{
    struct wanted *wanted = &scene.wanted[i];
    char text[40];
    snprintf(text, sizeof(text), "%u,%s", wanted->a + 1, beside);
    enum engine_status status =
        space_run(scene.space, ENGINE_SET, ENGINE_SLOT_RECORD, FIRST + i, text);
    if (status == ENGINE_DONE) {
        *wanted = (struct wanted){wanted->a + 1, strcmp(beside, LARGE) == 0};
        return true;
    }
    assert_int_equal(scene.space->call.op.error, ENGINE_E_BUSY);
    return false;
}

/* While records move, what is new takes no place that those need: else the older one would have to
 * grow in a stop, whole. What is there already is changed on. */
static void fill_amid_moves(struct scene *s)
{
    const struct counter_table *t = oldest();
    static uint64_t places[2];
    if (!t->fold.moves) {
        return;
    }
    if (s->step == 0) {
        places[0] = dict_places(t->older->extend);
        places[1] = dict_places(t->older->aux);
        s->step = s->old + s->young;
        while (s->step < MOST && try_change(s->step, "8")) {
            s->step++;
        }
        for (unsigned i = 0; i < s->step; i++) {
            (void)try_change(i, LARGE);
        }
        assert_true(try_change(1, "8"));
    }
    assert_int_equal(dict_places(t->older->extend), places[0]);
    assert_int_equal(dict_places(t->older->aux), places[1]);
}

static void room_is_kept_for_what_moves(void **state)
{
    scene_begin(state, OLD, NEW);
    scene.between = fill_amid_moves;
    fail_round();
    assert_true(scene.step > 0 && scene.step < MOST);
    expect_one_overlay();
    expect_later();
}

static void flush_once(struct scene *s)
{
    struct row *row = space_row(s->space);
    bool ready = oldest()->fold.stage == TABLE_FOLD_READY;
    if (oldest()->row.folding && (s->step > 0 ? oldest()->fold.moves : ready)) {
        assert_true(row->log->reserve(row->log));
        row_flush(s->space->dumps.engine->row);
        row_maintain(s->space->dumps.engine->row, NULL);
        memset(s->wanted, 0, sizeof(s->wanted));
    }
}

/* step 0: before the first stop, with the copy made. */
static void flushed(void **state, unsigned step)
{
    scene_begin(state, OLD, NEW);
    scene.between = flush_once;
    scene.step = step;
    fail_round();
    const struct row *row = space_row(scene.space);
    assert_false(oldest()->row.cold);
    assert_int_equal(row->merges, 0);
    assert_int_equal(row->folds, 0);
    assert_int_equal(scene.space->dumps.cold.overlay_bytes, 0);
    expect_all();
    space_set(scene.space, FIRST, "7,8");
}

static void a_table_goes_before_the_first_stop(void **state)
{
    flushed(state, 0);
}

static void a_table_goes_between_two_stops(void **state)
{
    flushed(state, 1);
}

static void refuse(struct scene *s)
{
    struct counter_table *t = oldest();
    if (s->step > 0) {
        t->fold.refused = true;
        s->step--;
    }
}

/* Refused memory is tried again some seconds later; till then rounds write images of both. */
static void refused_memory_is_asked_for_again(void **state)
{
    scene_begin(state, OLD, NEW);
    struct row *row = space_row(scene.space);
    scene.between = refuse;
    scene.step = 1;
    fail_round();
    assert_true(oldest()->row.merging && oldest()->row.fold_waits);
    assert_non_null(oldest()->older);
    assert_int_equal(row->folds, 0);
    expect_all();
    space_round(scene.space);
    assert_true(oldest()->row.fold_waits);
    assert_false(row_images_wanted(row));
    assert_false(row_cold_awaits(row, &oldest()->row)); /* nothing makes room soon */
    change(3);
    space_restart(scene.space);
    expect_all();
    expect_one_overlay();
}

static void what_was_refused_goes_on_in_a_later_round(void **state)
{
    scene_begin(state, OLD, NEW);
    struct row *row = space_row(scene.space);
    scene.between = refuse;
    scene.step = 1;
    fail_round();
    assert_true(oldest()->row.fold_waits);
    oldest()->row.merge_us = 1;
    row->merges_us = 1;
    assert_true(row_images_wanted(row));
    scene.space->dumps.stops = 0;
    space_round(scene.space);
    assert_true(scene.space->dumps.stops > NEW / A_STOP / 2);
    expect_all();
    space_round(scene.space);
    assert_null(oldest()->older);
    assert_int_equal(row->merges, 0);
    expect_later();
}

/* Who waits for room is not sent away before the fold has ended. */
static void wait_for_room(struct scene *s)
{
    const struct row *row = space_row(s->space);
    assert_true(row->merge_paused);
    assert_int_equal(row_cold_awaits(row, &oldest()->row), row->folds > 0);
    s->step++;
}

static void who_waits_waits_on(void **state)
{
    scene_begin(state, OLD, NEW);
    scene.between = wait_for_room;
    fail_round();
    assert_true(scene.step > 1);
    assert_false(row_cold_awaits(space_row(scene.space), &oldest()->row));
    expect_one_overlay();
}

/* An empty newer overlay goes in one stop. */
static void nothing_came_meanwhile(void **state)
{
    scene_begin(state, OLD, 0);
    fail_round();
    assert_int_equal(scene.space->dumps.stops, 1);
    expect_one_overlay();
    expect_later();
}

#define SPACE(name) cmocka_unit_test_setup_teardown(name, space_create, space_destroy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPACE(a_fold_takes_several_stops),
        SPACE(what_fits_is_not_copied),
        SPACE(changes_do_not_outrun_it),
        SPACE(a_copy_that_is_too_narrow_is_made_again),
        SPACE(room_is_kept_for_what_moves),
        SPACE(a_table_goes_before_the_first_stop),
        SPACE(a_table_goes_between_two_stops),
        SPACE(refused_memory_is_asked_for_again),
        SPACE(what_was_refused_goes_on_in_a_later_round),
        SPACE(who_waits_waits_on),
        SPACE(nothing_came_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
