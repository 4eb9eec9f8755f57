/* test_row_apart.c: ids apart that the frontier has passed give their room to others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "row/row_private.h"
#include "tests/unit/row/kept_row.h"

#define CAPACITY KEPT_CAPACITY
#define FILL     KEPT_FILL
#define FIRST    KEPT_FIRST
#define FAR      KEPT_FAR
#define STRAYS   (ROW_CLUSTER - 2) /* no table opens for them */
#define STEP     1000u             /* of a sparse stream */

static void stream(struct kept *kept, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        assert_int_equal(kept_add_one(kept, FIRST + i * STEP), FAKE_ADDED);
    }
}

/* The room apart is full of strays; the stream has not come to the first of them. */
static void fill_room(struct kept *kept)
{
    kept->rows.apart_max = KEPT_SAMPLE;
    stream(kept, 0, KEPT_SAMPLE);
    kept->rows.apart_max = STRAYS;
    for (uint64_t i = 0; i < STRAYS; i++) {
        assert_int_equal(kept_add_one(kept, FAR + i * FAR), FAKE_ADDED);
        assert_true(fake_is_apart(&kept->rows, FAR + i * FAR));
    }
}

static void begin_refusing(struct kept *kept)
{
    struct row_config config = fake_config(1, false); /* none opens for ahead ids */
    config.late_room = 0.1;
    kept_begin_with(kept, &config);
}

/* Where none was passed that is seen once, and the next are refused without a look. */
static void test_none_passed(void **unused)
{
    (void)unused;
    struct kept kept;
    begin_refusing(&kept);
    fill_room(&kept);
    assert_true(kept_add_one(&kept, FAR / 2) >= FAKE_NO_TABLE);
    uint64_t waits = kept.rows.row.waits;
    for (uint64_t i = 1; i < 3; i++) {
        assert_true(kept_add_one(&kept, FAR / 2 + i * 10000) >= FAKE_NO_TABLE);
        assert_int_equal(kept.rows.row.waits, waits);
    }
    assert_int_equal(fake_apart(&kept.rows), STRAYS);
    expect_again(&kept);
    kept_row_end(&kept);
}

static void test_passed(void **unused)
{
    (void)unused;
    struct kept kept;
    begin_refusing(&kept);
    kept.rows.apart_max = KEPT_SAMPLE;
    stream(&kept, 0, KEPT_SAMPLE);
    kept.rows.apart_max = STRAYS;
    struct row_table *table = kept_table(&kept, 0);
    uint64_t reach = row_limit(table) - FIRST;
    uint64_t first = FIRST + (reach / STEP + 1) * STEP;
    for (uint64_t i = 0; i < STRAYS; i++) {
        uint64_t id = first + 10 * i * STEP + 1;
        assert_int_equal(kept_add_one(&kept, id), FAKE_ADDED);
        assert_true(fake_is_apart(&kept.rows, id));
    }
    assert_true(kept_add_one(&kept, FAR) >= FAKE_NO_TABLE);
    /* All are passed, and nobody has asked for their room yet. */
    stream(&kept, KEPT_SAMPLE, (first - FIRST) / STEP + 10 * STRAYS);
    assert_true(fake_is_apart(&kept.rows, first + 1));
    assert_int_equal(kept_add_one(&kept, FAR), FAKE_ADDED);
    assert_true(fake_is_apart(&kept.rows, FAR));
    for (uint64_t i = 0; i < STRAYS; i++) {
        assert_false(fake_is_apart(&kept.rows, first + 10 * i * STEP + 1));
        assert_true(fake_has(&kept.rows, first + 10 * i * STEP + 1));
    }
    assert_int_equal(fake_apart(&kept.rows), 1);
    /* The room fills again, and is given back again. */
    uint64_t again = row_limit(table) + 1;
    again += STEP - (again - FIRST) % STEP;
    for (uint64_t i = 0; i + 1 < STRAYS; i++) {
        assert_int_equal(kept_add_one(&kept, again + i * STEP + 1), FAKE_ADDED);
    }
    assert_true(kept_add_one(&kept, FAR + 1) >= FAKE_NO_TABLE);
    uint64_t last = again + STRAYS * STEP;
    uint64_t step = (last - row_frontier_of(table)) / 64;
    for (uint64_t id = row_frontier_of(table) + step; id <= last + step; id += step) {
        assert_in_range(kept_add_one(&kept, id), FAKE_ADDED, FAKE_THERE);
    }
    assert_int_equal(kept_add_one(&kept, FAR + 1), FAKE_ADDED);
    expect_again(&kept);
    kept_row_end(&kept);
}

static struct row_config dumping(void)
{
    struct row_config config = fake_config(4, false);
    config.late_room = 0.1;
    config.dump = true;
    return config;
}

static void no_work(struct kept *kept, void *context)
{
    (void)kept;
    (void)context;
}

static void one_round(struct checkpoint *point, struct kept *kept)
{
    checkpoint_begin(point, kept);
    while (checkpoint_step(point, kept, no_work, NULL)) {
    }
    fake_maintain(&kept->rows);
}

/* A few ids in a gap, all far above the base of their table, must not hold memory for ever. */
static void test_all_apart(void **unused)
{
    (void)unused;
    struct kept kept;
    struct checkpoint point = {0};
    struct row_config config = dumping();
    kept_begin_with(&kept, &config);
    kept_add(&kept, FIRST, 200);
    kept_add(&kept, FAR, 5 * FILL / 2);
    one_round(&point, &kept);
    assert_true(kept_table(&kept, 0)->cold);
    for (uint64_t i = 0; i < STRAYS / 2; i++) {
        assert_int_equal(kept_add_one(&kept, FAR / 2 + i * (FAR / 100)), FAKE_ADDED);
    }
    const struct row_table *little = row_find(&kept.rows.row, FAR / 2);
    assert_int_equal(little->base, FIRST + 200);
    assert_int_equal(row_count_of(little), 0);
    for (uint64_t i = 0; i < 12; i++) {
        kept_add(&kept, FAR + 5 * FILL / 2 + i * FILL / 2, FILL / 2);
        one_round(&point, &kept);
    }
    const struct row_table *below = row_find(&kept.rows.row, FAR / 2);
    assert_true(below == kept_table(&kept, 0) && below->cold);
    for (uint64_t i = 0; i < STRAYS / 2; i++) {
        assert_true(fake_has(&kept.rows, FAR / 2 + i * (FAR / 100)));
    }
    again_load(&kept, &point);
    again_replay(&kept, point.since, point.m);
    again_same(&kept, false);
    fake_maintain(&kept.again);
    fake_fini(&kept.again);
    checkpoint_fini(&point);
    kept_row_end(&kept);
}

/* All of the sample goes in place in whole pieces: then no change looks among the ids apart. */
static void test_none_left(void **unused)
{
    (void)unused;
    struct kept kept;
    struct row_config config = fake_config(2, false);
    config.sample = 2 * CHANGE_STOPPED_MAX;
    kept_begin_with(&kept, &config);
    kept.rows.apart_max = config.sample;
    kept_add(&kept, FIRST, config.sample + 1);
    fake_maintain(&kept.rows);
    assert_int_equal(fake_apart(&kept.rows), 0);
    assert_false(row_may_be_apart(kept_table(&kept, 0), ROW_ID_MAX));
    kept_row_end(&kept);
}

/* A table was dropped that had none apart then: an image of before has one, which is gone. */
static void test_image_of_before(void **unused)
{
    (void)unused;
    static struct checkpoint point;
    struct kept kept;
    kept_row_begin(&kept, 4, false);
    kept_add(&kept, FIRST, KEPT_SAMPLE + 1);
    assert_int_equal(kept_add_one(&kept, FAR), FAKE_ADDED);
    assert_true(fake_is_apart(&kept.rows, FAR));
    checkpoint_begin(&point, &kept);
    while (checkpoint_step(&point, &kept, no_work, NULL)) {
    }
    again_load(&kept, &point);
    struct row *row = &kept.again.row;
    row_dropped_add(&row->tables[row->count - 1]->dropped, FAR - 1, FAR + 1);
    row_count_dropped(row);
    assert_true(fake_is_apart(&kept.again, FAR));
    assert_true(row_restore_end(row));
    assert_int_equal(fake_apart(&kept.again), 0);
    row_check(row);
    assert_true(row->apart->touched); /* the next image has it no more */
    checkpoint_fini(&point);
    fake_fini(&kept.again);
    kept_row_end(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none_passed),     cmocka_unit_test(test_passed),
        cmocka_unit_test(test_all_apart),       cmocka_unit_test(test_none_left),
        cmocka_unit_test(test_image_of_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
