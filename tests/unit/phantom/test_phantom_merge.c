/* test_phantom_merge.c: files of tables that left memory are written again, with what was added
 * since; and layers, which leave with their tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "row/row_data.h"
#include "row/row_private.h"
#include "store/table_file.h"
#include "tests/unit/phantom/cold_space.h"

#define OVERLAY_MAX (1u << 20)
#define CACHE       (1u << 20)
#define NEW         500000u /* numbers of members that come late */
#define AN_ID       3u

struct scene {
    struct cold_space space;
    uint64_t ids;
    uint64_t next;  /* number of a late member */
    unsigned later; /* so many are added after each image */
};

static void begin(struct scene *scene, uint64_t overlay_max)
{
    struct phantom_config config = cold_config();
    memset(scene, 0, sizeof(*scene));
    cold_begin(&scene->space, &config, CACHE, overlay_max);
    scene->ids = cold_roll(&scene->space, 2);
    scene->next = NEW;
}

static uint64_t lines(const struct scene *scene)
{
    return phantom_dump_lines(cold_oldest(scene->space.engine)->dump);
}

static bool wanted(const struct scene *scene)
{
    return row_images_wanted(scene->space.engine->row);
}

static void add(struct scene *scene)
{
    assert_int_equal(cold_run(&scene->space, ENGINE_SET, AN_ID, scene->next++), ENGINE_DONE);
}

/* Adds to the oldest table until its overlay is to be merged. */
static void crowd(struct scene *scene)
{
    while (!wanted(scene)) {
        add(scene);
    }
}

static void add_later(void *context, const struct row_image *image)
{
    struct scene *scene = context;
    for (unsigned i = 0; image->kind == ROW_IMAGE_MERGE && i < scene->later; i++) {
        add(scene);
    }
}

/* All that was added is there, live and after a restart; all else is as in memory. */
static void compare(struct scene *scene)
{
    struct cold_space *space = &scene->space;
    struct engine *twin = cold_twin(space);
    struct engine *again = cold_restore(space);
    assert_non_null(again);
    cold_compare(space, space->engine, twin, scene->ids);
    cold_compare(space, again, twin, scene->ids);
    for (uint64_t n = NEW; n < scene->next; n++) {
        assert_true(cold_holds(space, space->engine, AN_ID, n));
        assert_true(cold_holds(space, again, AN_ID, n));
    }
    phantoms_destroy(twin);
    phantoms_destroy(again);
}

static void test_generations(void **unused)
{
    (void)unused;
    static struct scene scene;
    begin(&scene, OVERLAY_MAX);
    scene.space.dumps.written = add_later;
    scene.space.dumps.context = &scene;
    scene.later = 5;
    for (unsigned generation = 1; generation <= 3; generation++) {
        crowd(&scene);
        assert_int_equal(cold_run(&scene.space, ENGINE_DELETE, AN_ID, generation), ENGINE_DONE);
        cold_round(&scene.space);
        assert_int_equal(scene.space.dumps.images[ROW_IMAGE_MERGE], generation);
        assert_true(lines(&scene) <= scene.later);
        assert_true(scene.space.dumps.cold.overlay_bytes ==
                    lines(&scene) * PHANTOM_OVERLAY_LINE_BYTES);
        assert_false(wanted(&scene));
        compare(&scene);
        assert_false(cold_holds(&scene.space, scene.space.engine, AN_ID, generation));
    }
    cold_end(&scene.space);
}

/* An add that finds the overlay full leaves its ticket, which the merge wakes. */
static void test_full_waits(void **unused)
{
    (void)unused;
    static struct scene scene;
    begin(&scene, OVERLAY_MAX);
    struct row *row = &((struct phantom *)scene.space.engine)->row;
    crowd(&scene);
    uint64_t waits = row->waits;
    struct engine_op op;
    do {
        op = cold_op(&scene.space, scene.space.engine, ENGINE_SET, AN_ID, scene.next++);
    } while (op.status == ENGINE_DONE);
    assert_int_equal(op.error, ENGINE_E_BUSY); /* as if it took too long: phantoms_try() */
    assert_int_equal(row->waits, waits + 1);
    assert_int_equal(row->waiters.count, 1);
    cold_round(&scene.space);
    assert_int_equal(row->waiters.count, 0);
    scene.next--;
    add(&scene);
    compare(&scene);
    cold_end(&scene.space);
}

static void pass_time(struct scene *scene)
{
    struct row *row = &((struct phantom *)scene->space.engine)->row;
    for (size_t i = 0; i < row->count; i++) {
        row->tables[i]->merge_us = row->tables[i]->merge_us > 0 ? 1 : 0;
    }
    row->merges_us = 1;
}

/* What failed is put back, and asked for when time has passed; until then rounds do without. */
static void test_failed(void **unused)
{
    (void)unused;
    static struct scene scene;
    begin(&scene, OVERLAY_MAX);
    scene.space.dumps.written = add_later;
    scene.space.dumps.context = &scene;
    crowd(&scene);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t before = lines(&scene);
        scene.later = 5 * i; /* without and with a new overlay by then */
        scene.space.dumps.fails[ROW_IMAGE_MERGE] = 1;
        assert_false(phantom_dumps_round(&scene.space.dumps, scene.space.engine));
        phantom_check(scene.space.engine);
        assert_true(lines(&scene) >= before);
        assert_int_equal(scene.space.dumps.gone[ROW_IMAGE_MERGE], i + 1);
        assert_int_equal(scene.space.dumps.cold.overlay_bytes,
                         lines(&scene) * PHANTOM_OVERLAY_LINE_BYTES);
        add(&scene);
        for (unsigned k = 0; k < 3; k++) {
            cold_round(&scene.space);
            assert_int_equal(scene.space.dumps.images[ROW_IMAGE_MERGE], 0);
        }
        assert_false(wanted(&scene));
        compare(&scene);
        pass_time(&scene);
        assert_true(wanted(&scene));
    }
    scene.later = 0;
    cold_round(&scene.space);
    assert_int_equal(scene.space.dumps.images[ROW_IMAGE_MERGE], 1);
    assert_int_equal(lines(&scene), 0);
    compare(&scene);
    crowd(&scene); /* it is asked for again */
    cold_end(&scene.space);
}

static void touch_then(void *context, const struct row_image *image)
{
    struct scene *scene = context;
    if (image->kind == ROW_IMAGE_MERGE) {
        struct row_table *table = &cold_oldest(scene->space.engine)->row;
        add(scene);
        table->touched = true; /* as when it takes over a range */
        table->touches++;
    }
}

/* A table that was touched gets an image of its overlay in the round that merges it. */
static void test_touched(void **unused)
{
    (void)unused;
    static struct scene scene;
    begin(&scene, OVERLAY_MAX);
    scene.space.dumps.written = touch_then;
    scene.space.dumps.context = &scene;
    crowd(&scene);
    cold_round(&scene.space);
    assert_int_equal(scene.space.dumps.images[ROW_IMAGE_MERGE], 1);
    assert_int_equal(scene.space.dumps.images[ROW_IMAGE_OVERLAY], 1);
    assert_int_equal(lines(&scene), 1); /* the next file is in use */
    add(&scene);
    compare(&scene);
    cold_end(&scene.space);
}

/* A page that cannot be read is not written again as if it could. */
static void test_bad_page(void **unused)
{
    (void)unused;
    static struct scene scene;
    begin(&scene, OVERLAY_MAX);
    crowd(&scene);
    uint64_t before = lines(&scene);
    const struct table_file *file = phantom_dump_file(cold_oldest(scene.space.engine)->dump);
    assert_true(vfs_sim_flip(scene.space.sim, table_file_path(file), 7 * 4096 + 1, 0));
    assert_false(phantom_dumps_round(&scene.space.dumps, scene.space.engine));
    assert_int_equal(scene.space.dumps.images[ROW_IMAGE_MERGE], 0);
    assert_int_equal(lines(&scene), before);
    assert_ptr_equal(phantom_dump_file(cold_oldest(scene.space.engine)->dump), file);
    phantom_check(scene.space.engine);
    cold_end(&scene.space);
}

/* The largest overlay is that of a file which cannot be merged: the other is merged all the same.
 */
static void test_bad_page_of_one(void **unused)
{
    (void)unused;
    static struct scene scene;
    begin(&scene, 64 * PHANTOM_OVERLAY_LINE_BYTES);
    struct row *row = &((struct phantom *)scene.space.engine)->row;
    const struct phantom_table *other = phantom_table_of(row->tables[1]);
    const struct table_file *file = phantom_dump_file(cold_oldest(scene.space.engine)->dump);
    crowd(&scene);
    for (unsigned n = 0; phantom_dump_lines(other->dump) < 12; n++) {
        assert_int_equal(cold_run(&scene.space, ENGINE_SET, row->bases[1], NEW + n), ENGINE_DONE);
    }
    assert_true(phantom_dump_lines(other->dump) < lines(&scene));
    assert_true(vfs_sim_flip(scene.space.sim, table_file_path(file), 7 * 4096 + 1, 0));
    assert_false(phantom_dumps_round(&scene.space.dumps, scene.space.engine));
    cold_round(&scene.space); /* the round before did without more of them */
    cold_round(&scene.space);
    assert_int_equal(phantom_dump_lines(other->dump), 0);
    assert_true(lines(&scene) > 0);
    pass_time(&scene);
    assert_true(wanted(&scene)); /* it is tried again */
    assert_false(phantom_dumps_round(&scene.space.dumps, scene.space.engine));
    cold_end(&scene.space);
}

/* The program ends between a merge and the manifest: the one before is in force. */
static void test_cut(void **unused)
{
    (void)unused;
    static struct scene scene;
    begin(&scene, OVERLAY_MAX);
    crowd(&scene);
    cold_round(&scene.space);
    crowd(&scene);
    phantom_dumps_cut_round(&scene.space.dumps, scene.space.engine, 1);
    add(&scene);
    compare(&scene);
    cold_end(&scene.space);
}

/* All overlays together have too much: the largest goes first, small ones stay. */
static void test_budget(void **unused)
{
    (void)unused;
    static struct scene scene;
    begin(&scene, 64 * PHANTOM_OVERLAY_LINE_BYTES);
    crowd(&scene);
    assert_int_equal(lines(&scene), 33); /* more than half */
    uint64_t base = ((struct phantom *)scene.space.engine)->row.bases[1];
    assert_int_equal(cold_run(&scene.space, ENGINE_SET, base, NEW), ENGINE_DONE);
    cold_round(&scene.space);
    assert_int_equal(lines(&scene), 0);
    assert_int_equal(scene.space.dumps.images[ROW_IMAGE_MERGE], 1);
    assert_int_equal(scene.space.dumps.cold.overlay_bytes, PHANTOM_OVERLAY_LINE_BYTES);
    cold_end(&scene.space);
}

/* Many small ones fill what dumped tables may have: they are merged before one is refused for good.
 */
static void test_many_small(void **unused)
{
    (void)unused;
    static struct scene scene;
    struct phantom_config config = cold_config();
    memset(&scene, 0, sizeof(scene));
    cold_begin(&scene.space, &config, CACHE, OVERLAY_MAX);
    (void)cold_roll(&scene.space, 60);
    struct row *row = &((struct phantom *)scene.space.engine)->row;
    scene.space.dumps.cold.overlay_bytes_max = 640 * PHANTOM_OVERLAY_LINE_BYTES;
    for (unsigned i = 0; i < 60; i++) {
        const struct phantom_table *t = phantom_table_of(row->tables[i]);
        for (unsigned n = 0; phantom_dump_lines(t->dump) < 9; n++) { /* a 64th has ten */
            assert_int_equal(cold_run(&scene.space, ENGINE_SET, row->bases[i], NEW + n),
                             ENGINE_DONE);
        }
        if (wanted(&scene)) {
            cold_round(&scene.space);
        }
    }
    assert_true(scene.space.dumps.images[ROW_IMAGE_MERGE] > 0);
    cold_end(&scene.space);
}

/* An overlay that is crowded after a restart is merged then. */
static void test_crowded_again(void **unused)
{
    (void)unused;
    static struct scene scene;
    begin(&scene, OVERLAY_MAX);
    crowd(&scene);
    struct engine *again = cold_restore(&scene.space);
    assert_non_null(again);
    assert_true(row_images_wanted(again->row));
    phantoms_destroy(again);
    cold_end(&scene.space);
}

/* ---- layers ---- */

/* With as many tables as a layer needs beside those that go on. */
static void begin_layered(struct cold_space *space)
{
    struct phantom_config config = cold_config();
    config.row.tables = 4;
    cold_begin(space, &config, CACHE, OVERLAY_MAX);
}

/* Members of a few ids, until the first table has a layer; then others until it is cold. */
static uint64_t roll_layered(struct cold_space *space, uint64_t *late)
{
    uint64_t id = 0;
    while (phantoms_tables(space->engine) < 2) {
        for (unsigned m = 0; m < COLD_MEMBERS; m++) {
            assert_int_equal(cold_run(space, ENGINE_SET, id, m), ENGINE_DONE);
        }
        id++;
    }
    while (!cold_oldest(space->engine)->row.further) {
        assert_int_equal(cold_run(space, ENGINE_SET, AN_ID, NEW + (*late)++), ENGINE_DONE);
    }
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(cold_run(space, ENGINE_SET, AN_ID, NEW + (*late)++), ENGINE_DONE);
    }
    for (; cold_tables(space->engine) == 0; id++) {
        for (unsigned m = 0; m < COLD_MEMBERS; m++) {
            assert_int_equal(cold_run(space, ENGINE_SET, id, m), ENGINE_DONE);
        }
    }
    return id;
}

/* A layer whose table stays while it is away, and the other way round. */
static void fail_one(struct cold_space *space, const struct row_image *image)
{
    if (image->kind == ROW_IMAGE_DUMP && image->layer) {
        space->dumps.fails[ROW_IMAGE_DUMP] = 1; /* the table's, which is the next one */
    }
}

static void written(void *context, const struct row_image *image)
{
    fail_one(context, image);
}

static void compare_layered(struct cold_space *space, uint64_t ids, uint64_t late)
{
    struct engine *twin = cold_twin(space);
    struct engine *again = cold_restore(space);
    assert_non_null(again);
    cold_compare(space, space->engine, twin, ids);
    cold_compare(space, again, twin, ids);
    for (uint64_t i = 0; i < late; i++) {
        assert_true(cold_holds(space, space->engine, AN_ID, NEW + i));
        assert_true(cold_holds(space, again, AN_ID, NEW + i));
    }
    phantoms_destroy(again);
    phantoms_destroy(twin);
}

static void change_late(struct cold_space *space, uint64_t *late)
{
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(cold_run(space, ENGINE_SET, AN_ID, NEW + (*late)++), ENGINE_DONE);
        assert_int_equal(cold_run(space, ENGINE_ADD, AN_ID, NEW + *late - 1), ENGINE_EXISTS);
    }
    assert_int_equal(cold_run(space, ENGINE_DELETE, AN_ID, NEW + 1), ENGINE_DONE);
    assert_false(cold_holds(space, space->engine, AN_ID, NEW + 1));
    assert_int_equal(cold_run(space, ENGINE_SET, AN_ID, NEW + 1), ENGINE_DONE);
}

static bool is_half(const struct row_table *table)
{
    struct row_overlay_size size;
    phantom_dump_size(phantom_table_of((struct row_table *)table)->dump, &size);
    return size.half;
}

static void test_layer(void **unused)
{
    (void)unused;
    static struct cold_space space;
    uint64_t late = 0;
    begin_layered(&space);
    uint64_t ids = roll_layered(&space, &late);
    const struct phantom_table *t = cold_oldest(space.engine);
    assert_true(t->row.cold && t->row.further && t->row.further->cold && t->away);
    assert_int_equal(space.dumps.images[ROW_IMAGE_DUMP], 2);
    compare_layered(&space, ids, late);
    change_late(&space, &late);
    compare_layered(&space, ids, late);
    cold_round(&space);
    compare_layered(&space, ids, late);
    while (!is_half(t->row.further)) {
        assert_int_equal(cold_run(&space, ENGINE_SET, AN_ID, NEW + late++), ENGINE_DONE);
    }
    cold_round(&space);
    assert_int_equal(space.dumps.images[ROW_IMAGE_MERGE], 1);
    change_late(&space, &late);
    compare_layered(&space, ids, late);
    cold_end(&space);
}

/* What cannot be read of the one is not absent because the other says no. */
static void test_layer_beside_a_bad_file(void **unused)
{
    (void)unused;
    for (unsigned bad = 0; bad < 2; bad++) {
        static struct cold_space space;
        uint64_t late = 0;
        unsigned failed = 0;
        begin_layered(&space);
        (void)roll_layered(&space, &late);
        const struct phantom_table *t = cold_oldest(space.engine);
        const struct phantom_table *holder = bad == 0 ? t : phantom_table_of(t->row.further);
        const struct table_file *file = phantom_dump_file(holder->dump);
        for (uint64_t page = 0; page < table_file_info(file)->pages; page++) {
            assert_true(vfs_sim_flip(space.sim, table_file_path(file), (1 + page) * 4096 + 99, 3));
        }
        for (uint64_t i = 0; i < 100; i++) {
            struct engine_op op = cold_op(&space, space.engine, ENGINE_READ, AN_ID, 2 * NEW + i);
            assert_int_not_equal(op.status, ENGINE_ABSENT);
            failed += op.error == ENGINE_E_READ_FAILED;
        }
        assert_true(failed > 90);
        cold_end(&space);
    }
}

/* The first table has a layer, and both are to leave; returns the first id that was not used. */
static uint64_t roll_leaving(struct cold_space *space, uint64_t *late)
{
    uint64_t n = 0;
    while (phantoms_tables(space->engine) < 2) {
        assert_int_equal(cold_run(space, ENGINE_SET, n / COLD_MEMBERS, n % COLD_MEMBERS),
                         ENGINE_DONE);
        n++;
    }
    while (!cold_oldest(space->engine)->row.further) {
        assert_int_equal(cold_run(space, ENGINE_SET, AN_ID, NEW + (*late)++), ENGINE_DONE);
    }
    while (!row_images_wanted(space->engine->row)) {
        assert_int_equal(cold_run(space, ENGINE_SET, n / COLD_MEMBERS, n % COLD_MEMBERS),
                         ENGINE_DONE);
        n++;
    }
    return n / COLD_MEMBERS;
}

static void test_layer_alone(void **unused)
{
    (void)unused;
    static struct cold_space space;
    uint64_t late = 0;
    begin_layered(&space);
    space.dumps.written = written;
    space.dumps.context = &space;
    uint64_t ids = roll_leaving(&space, &late);
    assert_false(phantom_dumps_round(&space.dumps, space.engine));
    const struct phantom_table *t = cold_oldest(space.engine);
    assert_true(!t->row.cold && t->row.further->cold && t->away);
    change_late(&space, &late);
    compare_layered(&space, ids, late);
    space.dumps.written = NULL;
    cold_round(&space);
    assert_true(t->row.cold && t->row.further->cold);
    change_late(&space, &late);
    compare_layered(&space, ids, late);
    cold_end(&space);
}

/* A round whose manifest is on the disk, which nobody was told: so it is in force after a kill. */
static void round_untold(struct cold_space *space)
{
    struct phantom_dumps *dumps = &space->dumps;
    phantom_dumps_cut_round(dumps, space->engine, UINT32_MAX);
    dumps->next.m = dumps->recorder->head;
    dumps->last = dumps->next;
}

/* In both, what was there before the image and what came after it. */
static void change_all(struct cold_space *space, uint64_t *late, uint64_t member)
{
    change_late(space, late);
    assert_int_equal(cold_run(space, ENGINE_DELETE, AN_ID, member), ENGINE_DONE);
    assert_int_equal(cold_run(space, ENGINE_DELETE, AN_ID, member + 1), ENGINE_DONE);
    assert_int_equal(cold_run(space, ENGINE_ADD, AN_ID, member), ENGINE_DONE);
}

/* Tables that a start finds dumped while their process had them in memory: first tapped, then, as
 * the next image failed, changed without. */
static void test_untold(void **unused)
{
    (void)unused;
    static struct cold_space space;
    uint64_t late = 0;
    begin_layered(&space);
    uint64_t ids = roll_leaving(&space, &late);
    struct phantom_table *t = cold_oldest(space.engine);
    round_untold(&space);
    assert_int_equal(space.dumps.images[ROW_IMAGE_DUMP], 2);
    assert_true(t->row.tapped && !t->row.cold && !t->row.further->cold);
    change_all(&space, &late, 5);
    compare_layered(&space, ids, late);
    row_touch(&t->row); /* as when it takes over a range */
    space.dumps.fails[ROW_IMAGE_DUMP] = 1;
    phantom_dumps_cut_round(&space.dumps, space.engine, 1);
    assert_true(!t->row.tapped && t->row.leaving && !t->dump);
    change_all(&space, &late, 10);
    compare_layered(&space, ids, late);
    space.dumps.fails[ROW_IMAGE_DUMP] = 1;
    assert_false(phantom_dumps_round(&space.dumps, space.engine)); /* it goes on without dumps */
    assert_false(t->row.cold);
    compare_layered(&space, ids, late);
    cold_round(&space);
    assert_true(t->row.cold && t->row.further->cold);
    change_all(&space, &late, 15);
    compare_layered(&space, ids, late);
    cold_end(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_waits), cmocka_unit_test(test_generations),
        cmocka_unit_test(test_failed),     cmocka_unit_test(test_bad_page),
        cmocka_unit_test(test_cut),        cmocka_unit_test(test_bad_page_of_one),
        cmocka_unit_test(test_touched),    cmocka_unit_test(test_budget),
        cmocka_unit_test(test_many_small), cmocka_unit_test(test_crowded_again),
        cmocka_unit_test(test_layer),      cmocka_unit_test(test_layer_alone),
        cmocka_unit_test(test_untold),     cmocka_unit_test(test_layer_beside_a_bad_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
