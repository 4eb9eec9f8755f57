/* test_row_end.c: where a table's range ends, and what opens when the stream, or a stray, gets
 * there. */
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
#define TABLES   8
#define SPARSE   3u

/* A full table has shown how dense ids are; the stream is in the second. Returns the next id. */
static uint64_t begin(struct kept *kept)
{
    kept_row_begin(kept, TABLES, false);
    kept_add(kept, FIRST, 2 * FILL);
    assert_int_equal(kept->rows.row.count, 3);
    return FIRST + 2 * FILL;
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

/* A table between this one and the next would get next to nothing: a layer does. */
static void test_little_left(void **unused)
{
    (void)unused;
    struct kept kept;
    uint64_t id = begin(&kept);
    struct row_table *table = kept_table(&kept, 2);
    uint64_t base = id;
    for (; kept.rows.row.count == 3; id += SPARSE) {
        assert_int_equal(kept_add_one(&kept, id), FAKE_ADDED);
    }
    id -= SPARSE;
    assert_true(table->last > row_frontier_of(table));
    assert_null(table->further);
    size_t tables = kept.rows.row.count;
    for (uint64_t late = base + 1; row_count_of(table) < CAPACITY; late++) {
        assert_int_not_equal(kept_add_one(&kept, late), FAKE_NO_TABLE);
    }
    assert_int_equal(kept_add_one(&kept, table->last), FAKE_ADDED);
    assert_int_equal(kept.rows.row.count, tables);
    assert_non_null(table->further);
    assert_true(table->closed);
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

/* One id in ten lies most of a table ahead, in place: that says nothing of how dense ids are. */
static void test_strays_in_place(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, TABLES, false);
    kept_add(&kept, FIRST, FILL / 4);
    for (uint64_t i = FILL / 4; kept.rows.row.count == 1; i++) {
        uint64_t ahead = i % 10 == 9 ? CAPACITY * 6 / 10 : 0;
        enum fake_answer answer = kept_add_one(&kept, FIRST + i + ahead);
        assert_true(answer == FAKE_ADDED || answer == FAKE_THERE);
    }
    const struct row_table *table = kept_table(&kept, 0);
    assert_true(row_frontier_of(table) > FIRST + CAPACITY * 4 / 3);
    assert_in_range(kept_table(&kept, 1)->range, CAPACITY * 9 / 10, CAPACITY * 5 / 4);
    end(&kept);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sparser),       cmocka_unit_test(test_little_left),
        cmocka_unit_test(test_strays_at_end), cmocka_unit_test(test_strays_in_place),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
