/* test_phantom_keep.c: what is kept of a phantom space and taken up again: descriptions, places of
 * changes, states, images. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/dict.h"
#include "phantom/phantom_private.h"
#include "row/row.h"
#include "row/row_data.h"
#include "tests/unit/phantom/kept_space.h"

#define HALF_WRONG    0.5
#define REACHED       7000u
#define REACHED_PAIRS 60u
#define FAR           (1ull << 40)
#define EXCEPTIONS    1000u
#define GONE          5000u
#define GONE_MEMBER   1000u

static struct change last_change(const struct kept_space *space)
{
    struct change change = {0};
    struct change_record_event event;
    const struct recorder_record *record = &space->recorder.records[space->recorder.count - 1];
    assert_int_equal(change_record_decode(record->type, record->a, record->b, record->words,
                                          record->bytes, &change, &event),
                     CHANGE_RECORD_IS_CHANGE);
    return change;
}

/* ---- descriptions ---- */

static struct phantom_shape shape_of(bool any_ids, bool deletes, uint64_t exceptions_bytes)
{
    struct phantom_config config = phantoms_config(deletes);
    struct phantom_shape shape;
    config.row.any_ids = any_ids;
    config.exceptions_bytes = exceptions_bytes;
    config.row.table_bytes <<= any_ids;
    phantom_shape_init(&shape, &config);
    return shape;
}

static void test_description(void **unused)
{
    (void)unused;
    for (unsigned i = 0; i < 8; i++) {
        unsigned char bytes[PHANTOM_DESCRIPTION_BYTES];
        struct phantom_shape back;
        struct phantom_shape shape = shape_of(i & 1, i & 2, i & 4 ? 1 << 20 : 0);
        phantom_shape_describe(&shape, bytes);
        assert_true(phantom_shape_read(&back, bytes, sizeof(bytes)));
        assert_int_equal(back.table_bytes, shape.table_bytes);
        assert_int_equal(back.exceptions_bytes, shape.exceptions_bytes);
        assert_int_equal(back.apart_bytes, shape.apart_bytes);
        assert_int_equal(back.capacity, shape.capacity);
        assert_int_equal(back.plan.bits, shape.plan.bits);
        assert_true(back.plan.load == shape.plan.load && back.plan.rate == shape.plan.rate);
        assert_false(phantom_shape_read(&back, bytes, sizeof(bytes) - 1));
        assert_false(phantom_shape_read(&back, bytes, 0));
    }
}

/* ---- places ---- */

static void expect_place(struct kept_space *space, enum engine_verb verb, uint64_t id,
                         enum change_type type, enum change_place place)
{
    assert_int_equal(kept_run(space, verb, id, KEPT_MEMBERS), ENGINE_DONE);
    struct change change = last_change(space);
    assert_int_equal(change.type, type);
    assert_int_equal(change.place, place);
    assert_int_equal(change.id, id);
}

static void test_places(void **unused)
{
    (void)unused;
    static struct kept_space space;
    struct phantom_config config = phantoms_config(true);
    kept_begin(&space, &config);
    expect_place(&space, ENGINE_SET, 1, CHANGE_MEMBER_ADD, CHANGE_APART); /* ids not known yet */
    expect_place(&space, ENGINE_DELETE, 1, CHANGE_MEMBER_DELETE, CHANGE_APART);
    kept_roll(&space, 0, 1000);
    expect_place(&space, ENGINE_SET, 1, CHANGE_MEMBER_ADD, CHANGE_INSIDE);
    expect_place(&space, ENGINE_DELETE, 1, CHANGE_MEMBER_DELETE, CHANGE_INSIDE);
    expect_place(&space, ENGINE_SET, 1, CHANGE_MEMBER_ADD, CHANGE_THERE);
    expect_place(&space, ENGINE_SET, FAR, CHANGE_MEMBER_ADD, CHANGE_APART);
    expect_place(&space, ENGINE_DELETE, FAR, CHANGE_MEMBER_DELETE, CHANGE_APART);
    expect_place(&space, ENGINE_SET, FAR, CHANGE_MEMBER_ADD, CHANGE_APART);
    kept_end(&space);
}

/* Pairs that are apart, and that the filter takes for there once the frontier has reached them. */
static void test_both(void **unused)
{
    (void)unused;
    static struct kept_space space;
    struct phantom_config config = phantoms_config(true);
    config.false_positives = HALF_WRONG;
    config.row.late_room = 0.1;
    kept_begin(&space, &config);
    kept_roll(&space, 0, 1000);
    for (uint64_t m = 0; m < REACHED_PAIRS; m++) {
        assert_int_equal(kept_run(&space, ENGINE_SET, REACHED, 1000 + m), ENGINE_DONE);
        assert_int_equal(last_change(&space).place, CHANGE_APART);
    }
    kept_roll(&space, 1000, REACHED + 100);
    kept_checkpoint(&space);
    unsigned both = 0;
    for (uint64_t m = 0; m < REACHED_PAIRS; m += 2) {
        assert_int_equal(kept_run(&space, ENGINE_DELETE, REACHED, 1000 + m), ENGINE_DONE);
        both += last_change(&space).place == CHANGE_BOTH;
    }
    assert_true(both > 0);
    struct engine *again = kept_restore(&space);
    assert_non_null(again);
    for (uint64_t m = 0; m < REACHED_PAIRS; m++) {
        assert_true(kept_holds(again, REACHED, 1000 + m) == (m % 2 == 1));
    }
    assert_int_equal(phantoms_members(again), phantoms_members(space.engine));
    phantoms_destroy(again);
    kept_end(&space);
}

/* ---- the space ---- */

static void test_other_ids(void **unused)
{
    (void)unused;
    static struct kept_space space;
    struct phantom_config config = phantoms_config(true);
    kept_begin(&space, &config);
    kept_roll(&space, 0, 100);
    kept_checkpoint(&space);
    space.config.row.any_ids = true;
    space.config.max_id = 1000;
    assert_null(kept_restore(&space));
    assert_non_null(strstr(space.checkpoints.error, "`ids: growing`"));
    kept_end(&space);
    config = space.config;
    kept_begin(&space, &config);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(kept_run(&space, ENGINE_SET, i, i), ENGINE_DONE);
    }
    kept_checkpoint(&space);
    space.config.row.any_ids = false;
    assert_null(kept_restore(&space));
    assert_non_null(strstr(space.checkpoints.error, "`ids: any`"));
    space.config.row.any_ids = true;
    struct engine *again = kept_restore(&space);
    assert_non_null(again);
    assert_true(kept_holds(again, 999, 999));
    phantoms_destroy(again);
    kept_end(&space);
}

/* Nothing but the journal's beginning, or not even that. */
static void test_nothing_yet(void **unused)
{
    (void)unused;
    static struct kept_space space;
    bool fresh;
    struct phantom_config config = phantoms_config(true);
    kept_begin(&space, &config);
    struct engine *again = kept_restore(&space);
    assert_non_null(again);
    phantoms_destroy(again);
    recorder_cut(&space.recorder, space.recorder.records[1].lsn); /* SPACE alone */
    for (unsigned i = 0; i < 2; i++) {
        again = phantoms_create(&config);
        assert_true(
            checkpoints_restore(&space.checkpoints, again, &space.recorder, KEPT_BATCH, &fresh));
        assert_true(fresh);
        assert_int_equal(phantoms_do(again, ENGINE_SET, 1, "a"), ENGINE_DONE);
        phantoms_destroy(again);
        recorder_cut(&space.recorder, 0);
    }
    kept_end(&space);
}

/* Deletes that were turned on and off are so again, and what they need is there. */
static void test_deletes_turned(void **unused)
{
    (void)unused;
    static struct kept_space space;
    char error[PHANTOM_ERROR_MAX];
    struct phantom_config config = phantoms_config(false);
    kept_begin(&space, &config);
    kept_roll(&space, 0, 1000);
    kept_checkpoint(&space); /* its table has no room for exceptions */
    config.deletes = true;
    assert_true(phantom_reconfigure(space.engine, &config, error));
    struct engine *again = kept_restore(&space);
    assert_string_equal(phantoms_space_figure(again, "deletes").text, "yes");
    assert_int_equal(phantoms_do(again, ENGINE_DELETE, 4, "u4"), ENGINE_DONE);
    phantoms_destroy(again);
    checkpoints_begin(&space.checkpoints, space.engine, space.recorder.head);
    assert_false(checkpoints_next(&space.checkpoints, space.engine, space.recorder.head));
    again = kept_restore(&space); /* by the state now, the image is the old one */
    assert_int_equal(phantoms_do(again, ENGINE_DELETE, 4, "u4"), ENGINE_DONE);
    phantoms_destroy(again);
    assert_int_equal(kept_run(&space, ENGINE_DELETE, 5, 5), ENGINE_DONE);
    config.deletes = false;
    assert_true(phantom_reconfigure(space.engine, &config, error));
    again = kept_restore(&space);
    assert_string_equal(phantoms_space_figure(again, "deletes").text, "no");
    assert_false(kept_holds(again, 5, 5));
    assert_true(kept_holds(again, 6, 5));
    phantoms_destroy(again);
    kept_end(&space);
}

/* More exceptions than their pool takes by another hash, in the image and in the journal. */
static void test_many_exceptions(void **unused)
{
    (void)unused;
    static struct kept_space space;
    struct phantom_config config = phantoms_config(true);
    config.exceptions_bytes = PHANTOM_EXCEPTIONS_BYTES_MIN;
    kept_begin(&space, &config);
    kept_roll(&space, 0, 1000);
    struct dict *pool = dict_create(sizeof(uint64_t), config.exceptions_bytes, 1);
    uint64_t places = dict_places(pool);
    dict_destroy(pool);
    uint64_t deleted = 0;
    while (kept_run(&space, ENGINE_DELETE, deleted / KEPT_MEMBERS, deleted % KEPT_MEMBERS) ==
           ENGINE_DONE) {
        deleted++;
    }
    for (unsigned i = 0; i < 2; i++) {
        struct engine *again = kept_restore(&space); /* all from the journal, then from the image */
        assert_non_null(again);
        for (uint64_t n = 0; n < 1000 * KEPT_MEMBERS; n++) {
            assert_true(kept_holds(again, n / KEPT_MEMBERS, n % KEPT_MEMBERS) == (n >= deleted));
        }
        /* No more fit than fitted before, or they would not after the next start. */
        uint64_t more = deleted;
        char member[32];
        enum engine_status status = ENGINE_DONE;
        for (; status == ENGINE_DONE && more < EXCEPTIONS; more++) {
            snprintf(member, sizeof(member), "u%llu", (unsigned long long)(more % KEPT_MEMBERS));
            status = phantoms_do(again, ENGINE_DELETE, more / KEPT_MEMBERS, member);
        }
        assert_int_equal(status, ENGINE_ERROR);
        assert_true(more <= places + 1);
        phantoms_destroy(again);
        kept_checkpoint(&space);
    }
    kept_end(&space);
}

/* Replay does what a change says, whatever filter and frontier say at that moment. */
static void test_as_its_place_says(void **unused)
{
    (void)unused;
    char error[ENGINE_ERROR_MAX] = "";
    struct phantom_config config = phantoms_config(true);
    struct engine *engine = phantoms_create(&config);
    struct engine_replay change = {
        .lsn = 8,
        .change = {.type = CHANGE_MEMBER_DELETE, .place = CHANGE_INSIDE, .id = 9, .member = {1, 2}},
    };
    for (unsigned i = 0; i < 2; i++) { /* not twice */
        assert_true(row_replay(engine->row, &change, 1, error));
        assert_string_equal(phantoms_space_figure(engine, "exceptions").text, "1");
    }
    change.change.type = CHANGE_MEMBER_ADD;
    change.change.place = CHANGE_THERE;
    for (unsigned i = 0; i < 2; i++) {
        assert_true(row_replay(engine->row, &change, 1, error));
        assert_string_equal(phantoms_space_figure(engine, "exceptions").text, "0");
    }
    phantoms_destroy(engine);
}

/* ---- images ---- */

static void test_unchanged_needs_no_image(void **unused)
{
    (void)unused;
    static struct kept_space space;
    struct phantom_config config = phantoms_config(true);
    config.row.tables = 4;
    kept_begin(&space, &config);
    kept_roll(&space, 0, 3000);
    kept_checkpoint(&space);
    unsigned tables = phantoms_tables(space.engine);
    assert_true(tables > 1);
    assert_int_equal(space.checkpoints.images, tables + 1); /* and of ids apart */
    kept_checkpoint(&space);
    assert_int_equal(space.checkpoints.images, tables + 1);
    (void)kept_run(&space, ENGINE_SET, 2999, 1); /* it is there: no change */
    kept_checkpoint(&space);
    assert_int_equal(space.checkpoints.images, tables + 1);
    assert_int_equal(kept_run(&space, ENGINE_DELETE, 1, 1), ENGINE_DONE);
    kept_checkpoint(&space);
    assert_int_equal(space.checkpoints.images, tables + 2);
    assert_int_equal(kept_run(&space, ENGINE_SET, 1, 1), ENGINE_DONE);
    kept_checkpoint(&space);
    assert_int_equal(space.checkpoints.images, tables + 3);
    assert_int_equal(kept_run(&space, ENGINE_SET, FAR, 1), ENGINE_DONE); /* apart */
    kept_checkpoint(&space);
    assert_int_equal(space.checkpoints.images, tables + 4);
    kept_end(&space);
}

/* A change of a layer is none of its table. */
static void test_layers_have_their_own(void **unused)
{
    (void)unused;
    static struct kept_space space;
    struct phantom_config config = phantoms_config(true);
    config.row.tables = 4;
    kept_begin(&space, &config);
    uint64_t n = 0;
    while (phantoms_table_number(space.engine, 0, "layers") == 1) {
        assert_int_equal(kept_run(&space, ENGINE_SET, n % 50, n), ENGINE_DONE);
        n++;
    }
    kept_checkpoint(&space);
    uint64_t images = space.checkpoints.images;
    assert_int_equal(kept_run(&space, ENGINE_SET, 7, 7000000), ENGINE_DONE);
    kept_checkpoint(&space); /* of the layer alone */
    assert_int_equal(space.checkpoints.images, images + 1);
    assert_int_equal(kept_run(&space, ENGINE_DELETE, 7, 7000000), ENGINE_DONE);
    kept_checkpoint(&space); /* of the table alone */
    assert_int_equal(space.checkpoints.images, images + 2);
    struct engine *again = kept_restore(&space);
    assert_non_null(again);
    for (uint64_t i = 0; i < n; i++) {
        assert_true(kept_holds(again, i % 50, i));
    }
    assert_false(kept_holds(again, 7, 7000000));
    assert_int_equal(phantoms_members(again), phantoms_members(space.engine));
    phantoms_destroy(again);
    kept_end(&space);
}

/* A member of each of the ids first .. end - 1. */
static void add_members(struct kept_space *space, uint64_t first, uint64_t end)
{
    for (uint64_t id = first; id < end; id++) {
        assert_int_equal(kept_run(space, ENGINE_SET, id, GONE_MEMBER), ENGINE_DONE);
    }
}

/* What is apart goes in place, and that table is dropped for the next ids ahead. */
static void drop_table_ahead(struct kept_space *space)
{
    add_members(space, GONE + ROW_CLUSTER - 1, GONE + ROW_CLUSTER);
    assert_int_equal(phantoms_tables(space->engine), 2);
    assert_int_equal(space->engine->row->apart->count, 0);
    add_members(space, FAR, FAR + ROW_CLUSTER);
    assert_int_equal(space->engine->row->recycled_tables, 1);
    assert_int_equal(phantoms_tables(space->engine), 2);
}

/* An image of ids apart is of before they went in place, and their ids come again after its round.
 */
static void test_apart_before_a_drop(void **unused)
{
    (void)unused;
    static struct kept_space space;
    static const _Atomic bool never = false;
    struct phantom_config config = phantoms_config(true);
    config.row.tables = 4;
    config.row.recycle = true;
    kept_begin(&space, &config);
    kept_roll(&space, 0, 200);
    add_members(&space, GONE, GONE + ROW_CLUSTER - 1);
    struct checkpoints *checkpoints = &space.checkpoints;
    uint64_t apart = space.engine->row->apart->serial;
    unsigned apart_images = 0;
    checkpoints_begin(checkpoints, space.engine, space.recorder.head);
    while (checkpoints_next(checkpoints, space.engine, space.recorder.head)) {
        enum engine_image result = checkpoints_write(checkpoints, space.engine, NULL, &never);
        checkpoints_wrote(checkpoints, space.engine, result);
        if (checkpoints->image.serial == apart && apart_images++ == 0) {
            drop_table_ahead(&space);
        }
    }
    assert_int_equal(apart_images, 1);
    kept_roll(&space, 200, GONE + 2 * ROW_CLUSTER);
    struct engine *again = kept_restore(&space);
    assert_non_null(again);
    for (uint64_t id = GONE; id < GONE + ROW_CLUSTER; id++) {
        assert_false(kept_holds(space.engine, id, GONE_MEMBER));
        assert_false(kept_holds(again, id, GONE_MEMBER));
    }
    assert_int_equal(phantoms_members(again), phantoms_members(space.engine));
    phantoms_destroy(again);
    kept_end(&space);
}

static void test_failing_images(void **unused)
{
    (void)unused;
    static struct kept_space space;
    static const _Atomic bool always = true;
    static const _Atomic bool never = false;
    struct phantom_config config = phantoms_config(true);
    config.row.table_bytes = 4u << 20; /* more than a block of the file */
    kept_begin(&space, &config);
    kept_roll(&space, 0, 500);
    struct checkpoints *checkpoints = &space.checkpoints;
    checkpoints_begin(checkpoints, space.engine, space.recorder.head);
    assert_true(checkpoints_next(checkpoints, space.engine, space.recorder.head));
    enum engine_image result = checkpoints_write(checkpoints, space.engine, NULL, &always);
    assert_int_equal(result, ENGINE_IMAGE_STOPPED);
    checkpoints_wrote(checkpoints, space.engine, result);
    vfs_sim_fault(space.sim, &(struct vfs_sim_fault){.op = VFS_SIM_PWRITE, .error = 28});
    assert_true(checkpoints_next(checkpoints, space.engine, space.recorder.head));
    result = checkpoints_write(checkpoints, space.engine, NULL, &never);
    assert_int_equal(result, ENGINE_IMAGE_FAILED);
    checkpoints_wrote(checkpoints, space.engine, result);
    vfs_sim_faults_end(space.sim);
    assert_true(checkpoints_next(checkpoints, space.engine, space.recorder.head));
    row_flush(space.engine->row);
    result = checkpoints_write(checkpoints, space.engine, NULL, &never);
    assert_int_equal(result, ENGINE_IMAGE_GONE);
    checkpoints_wrote(checkpoints, space.engine, result);
    kept_checkpoint(&space);
    struct engine *again = kept_restore(&space);
    assert_non_null(again);
    assert_false(kept_holds(again, 1, 1));
    phantoms_destroy(again);
    kept_end(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_description),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_both),
        cmocka_unit_test(test_other_ids),
        cmocka_unit_test(test_nothing_yet),
        cmocka_unit_test(test_deletes_turned),
        cmocka_unit_test(test_many_exceptions),
        cmocka_unit_test(test_as_its_place_says),
        cmocka_unit_test(test_unchanged_needs_no_image),
        cmocka_unit_test(test_layers_have_their_own),
        cmocka_unit_test(test_apart_before_a_drop),
        cmocka_unit_test(test_failing_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
