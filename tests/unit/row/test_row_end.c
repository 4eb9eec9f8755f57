/* test_row_end.c: where a table's range ends, and what opens when the stream, or a stray, gets
 * there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "row/row_data.h"
#include "row/row_room.h"
#include "tests/unit/row/kept_row.h"

#define CAPACITY KEPT_CAPACITY
#define FILL     KEPT_FILL
#define FIRST    KEPT_FIRST
#define FAR      KEPT_FAR
#define TABLES   8
#define SPARSE   3u
#define REPLAYED 64u /* records at once */

/* A full table has shown how dense ids are; the stream is in the second. Returns the next id. */
static uint64_t begin_few(struct kept *kept, unsigned tables)
{
    kept_row_begin(kept, tables, false);
    kept_add(kept, FIRST, 2 * FILL);
    assert_int_equal(kept->rows.row.count, 3);
    return FIRST + 2 * FILL;
}

static uint64_t begin(struct kept *kept)
{
    return begin_few(kept, TABLES);
}

static void no_work(struct kept *kept, void *context)
{
    (void)kept;
    (void)context;
}

static void end(struct kept *kept)
{
    expect_again(kept);
    kept_row_end(kept);
}

/* The stream leaves a table that is not full: ids are sparser, and the next table knows. */
static void test_sparser(void **unused)
{
    (void)unused;
    struct kept kept;
    uint64_t id = begin(&kept);
    struct row_table *table = kept_table(&kept, 2);
    assert_int_equal(row_end(table), table->low + table->range + table->range / ROW_END_PART);
    for (; kept.rows.row.count == 3; id += SPARSE) {
        assert_int_equal(kept_add_one(&kept, id), FAKE_ADDED);
    }
    const struct row_table *next = kept_table(&kept, 3);
    assert_int_equal(next->base, row_end(table) + 1);
    assert_true(row_count_of(table) < FILL / 2);
    assert_in_range(next->range, table->range * (SPARSE - 1), table->range * (SPARSE + 1));
    end(&kept);
}

/* The stream leaves the third table for a fourth, with a little of its range behind it. */
static struct row_table *leave_a_little(struct kept *kept, unsigned tables)
{
    uint64_t id = begin_few(kept, tables);
    struct row_table *table = kept_table(kept, 2);
    for (; kept->rows.row.count == 3; id += SPARSE) {
        assert_int_equal(kept_add_one(kept, id), FAKE_ADDED);
    }
    assert_true(table->last > row_frontier_of(table) + 1);
    assert_null(table->further);
    return table;
}

/* With late ids. */
static void fill_up(struct kept *kept, const struct row_table *table)
{
    for (uint64_t late = table->low + 1; row_count_of(table) < CAPACITY; late++) {
        assert_int_not_equal(kept_add_one(kept, late), FAKE_NO_TABLE);
    }
}

/* A table between this one and the next would get next to nothing: a layer does. */
static void test_little_left(void **unused)
{
    (void)unused;
    struct kept kept;
    struct row_table *table = leave_a_little(&kept, TABLES);
    size_t tables = kept.rows.row.count;
    fill_up(&kept, table);
    assert_int_equal(kept_add_one(&kept, table->last), FAKE_ADDED);
    assert_int_equal(kept.rows.row.count, tables);
    assert_non_null(table->further);
    assert_true(table->closed);
    end(&kept);
}

/* None is free for the layer: that it is closed is told all the same, for replay closes it, too. */
static void test_little_left_alone(void **unused)
{
    (void)unused;
    struct kept kept;
    struct row_table *table = leave_a_little(&kept, 4);
    fill_up(&kept, table);
    assert_int_equal(kept_add_one(&kept, table->last - 1), FAKE_NO_TABLE);
    assert_null(table->further);
    assert_true(table->closed);
    end(&kept);
}

/* The rest has ids of a table that was recycled: a table opens, and they may be created again. */
static void test_dropped_is_left(void **unused)
{
    (void)unused;
    struct kept kept;
    struct row_table *table = leave_a_little(&kept, TABLES);
    struct row_table *short_one = kept_table(&kept, 3);
    uint64_t dropped = short_one->base;
    for (uint64_t i = 0; i < 4; i++) {
        assert_in_range(kept_add_one(&kept, dropped + i), FAKE_ADDED, FAKE_THERE);
    }
    uint64_t next = row_frontier_of(short_one) + 1;
    struct row_opening opening = {.base = next, .low = next};
    assert_false(row_open(&kept.rows.row, short_one, &opening));
    kept_add(&kept, next, 1);
    row_recycle(&kept.rows.row, short_one);
    fake_maintain(&kept.rows);
    assert_int_equal(table->last, next - 1);
    assert_int_equal(kept_add_one(&kept, dropped + 1), FAKE_BELOW);
    fill_up(&kept, table);
    assert_int_equal(kept_add_one(&kept, row_frontier_of(table) + 1), FAKE_ADDED);
    assert_int_equal(kept_add_one(&kept, dropped + 1), FAKE_ADDED);
    end(&kept);
}

/* The row goes, and comes back from a checkpoint of just now. */
static void restart(struct kept *kept)
{
    struct checkpoint point = {0};
    checkpoint_begin(&point, kept);
    while (checkpoint_step(&point, kept, no_work, NULL)) {
    }
    kept_replace(kept);
    checkpoint_load(&point, &kept->rows);
    assert_true(
        recorder_replay(&kept->recorder, &kept->rows.engine, point.since, point.m, REPLAYED));
    fake_keep(&kept->rows, &kept->recorder);
    assert_true(kept->recorder.log.reserve(&kept->recorder.log));
    assert_true(row_restore_end(&kept->rows.row));
    fake_maintain(&kept->rows);
    checkpoint_fini(&point);
}

/* Fewer may stay after a restart. One that nothing ever came to is dropped, and replay is told. */
static void test_dropped_at_restart(void **unused)
{
    (void)unused;
    struct kept kept;
    struct row_config config = fake_config(TABLES, false);
    config.dump = true;
    kept_begin_with(&kept, &config);
    kept_add(&kept, FIRST, 2 * FILL);
    struct row_opening opening = {.base = FAR, .low = FAR, .jump = true};
    size_t newest = kept.rows.row.count - 1;
    assert_false(row_open(&kept.rows.row, kept_table(&kept, newest), &opening));
    kept_add(&kept, FIRST + 2 * FILL, 2 * FILL);
    size_t drops = kept_events(&kept, CHANGE_EVENT_DROP);
    kept.config.tables = 2;
    restart(&kept);
    assert_int_equal(kept_events(&kept, CHANGE_EVENT_DROP), drops + 1);
    assert_int_equal(kept.rows.row.recycled_tables, 1);
    kept_row_end(&kept);
}

/* What was sampled since a restart says nothing of the ids before it: no range gets too short. */
static void test_range_after_restart(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, TABLES, false);
    uint64_t id = FIRST;
    for (; row_count_of(kept_table(&kept, 0)) < FILL * 3 / 4; id += SPARSE) {
        assert_int_equal(kept_add_one(&kept, id), FAKE_ADDED);
    }
    restart(&kept);
    for (; kept.rows.row.count == 1; id += SPARSE) {
        assert_int_equal(kept_add_one(&kept, id), FAKE_ADDED);
    }
    assert_in_range(kept_table(&kept, 1)->range, CAPACITY * (SPARSE - 1), CAPACITY * (SPARSE + 1));
    end(&kept);
}

/* Strays come to the end of the table that opened for them before the stream has come to it. */
static void test_strays_at_end(void **unused)
{
    (void)unused;
    struct kept kept;
    uint64_t id = begin(&kept);
    for (uint64_t i = 0; i < ROW_CLUSTER; i++) {
        assert_int_equal(kept_add_one(&kept, FAR + i), FAKE_ADDED);
    }
    assert_int_equal(kept.rows.row.count, 4);
    const struct row_table *ahead = kept_table(&kept, 3);
    assert_true(ahead->jumped);
    for (uint64_t i = 0; i < ROW_CLUSTER + 4; i++) {
        kept_add(&kept, id, 20);
        id += 20;
        assert_int_equal(kept_add_one(&kept, row_end(ahead) - i), FAKE_ADDED);
    }
    assert_true(row_nears_end(ahead));
    assert_false(row_ends(&kept.rows.row, ahead));
    assert_int_equal(kept.rows.row.count, 4);
    end(&kept);
}

/* One id in so many lies most of a table ahead, in place, and such ids come in bursts: that says
 * nothing of how dense ids are. */
static void expect_range(unsigned one_in, unsigned burst, uint64_t least, uint64_t most)
{
    struct kept kept;
    kept_row_begin(&kept, TABLES, false);
    kept_add(&kept, FIRST, FILL / 4);
    for (uint64_t i = FILL / 4; kept.rows.row.count == 1; i++) {
        uint64_t ahead = i / burst % one_in == one_in - 1 ? CAPACITY * 9 / 10 : 0;
        enum fake_answer answer = kept_add_one(&kept, FIRST + i + ahead);
        assert_true(answer == FAKE_ADDED || answer == FAKE_THERE);
    }
    const struct row_table *table = kept_table(&kept, 0);
    assert_true(row_frontier_of(table) > FIRST + CAPACITY * 4 / 3);
    assert_in_range(kept_table(&kept, 1)->range, least, most);
    end(&kept);
}

static void test_strays_in_place(void **unused)
{
    (void)unused;
    expect_range(10, 1, CAPACITY * 9 / 10, CAPACITY * 5 / 4);
    expect_range(3, 2 * ROW_CLUSTER, CAPACITY * 9 / 10, CAPACITY * 8 / 5);
}

/* What finds no room apart may be tried again where the stream comes to it before long. */
static void test_refused(void **unused)
{
    (void)unused;
    struct kept kept;
    begin(&kept);
    kept.rows.apart_max = 0;
    const struct row_table *table = kept_table(&kept, 2);
    uint64_t limit = row_limit(table);
    assert_int_equal(kept_add_one(&kept, limit + table->range), FAKE_NO_TABLE);
    assert_int_equal(kept_add_one(&kept, limit + (TABLES - 1) * table->range), FAKE_NO_TABLE);
    assert_int_equal(kept_add_one(&kept, limit + (TABLES + 1) * table->range), FAKE_TOO_FAR);
    end(&kept);
}

/* Once the row was changed, or might have been, no id is admitted by what was seen before. */
static void test_seen_anew(void **unused)
{
    (void)unused;
    struct kept kept;
    uint64_t id = begin(&kept);
    struct row *row = &kept.rows.row;
    const struct row_table *table = kept_table(&kept, 2);
    kept_add_one(&kept, id++);
    kept_add_one(&kept, id++);
    assert_true(atomic_load(&table->clear_to) >= id);
    row_ask(row);
    fake_maintain(&kept.rows);
    assert_int_equal(atomic_load(&table->clear_to), 0);
    kept_add_one(&kept, id++);
    assert_true(atomic_load(&table->clear_to) >= id);
    end(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sparser),
        cmocka_unit_test(test_dropped_at_restart),
        cmocka_unit_test(test_little_left),
        cmocka_unit_test(test_strays_at_end),
        cmocka_unit_test(test_strays_in_place),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_little_left_alone),
        cmocka_unit_test(test_dropped_is_left),
        cmocka_unit_test(test_range_after_restart),
        cmocka_unit_test(test_seen_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
