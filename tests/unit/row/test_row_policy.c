/* test_row_policy.c: the row's arithmetic on plain numbers. */
#include "row/row_policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "row/row.h"

#define SAMPLE 100

static void test_add(void **unused)
{
    (void)unused;
    assert_int_equal(row_policy_add(1, 2), 3);
    assert_int_equal(row_policy_add(ROW_ID_MAX, 0), ROW_ID_MAX);
    assert_int_equal(row_policy_add(ROW_ID_MAX - 1, 5), ROW_ID_MAX);
}

static void fill(uint64_t ids[SAMPLE])
{
    for (size_t i = 0; i < SAMPLE; i++) {
        ids[i] = 10000 + i * 10;
    }
}

static void test_span(void **unused)
{
    (void)unused;
    uint64_t ids[SAMPLE];
    fill(ids);
    struct row_span span = row_policy_span(ids, SAMPLE);
    assert_int_equal(span.low, 10000);
    assert_int_equal(span.high, 10990);
    assert_int_equal(span.spread, 750); /* half of the first half to half of the second */
    assert_int_equal(span.most, 10750);
    /* One in three may be anywhere. */
    for (size_t i = 1; i < SAMPLE; i += 3) {
        ids[i] = i % 2 == 0 ? i : ROW_ID_MAX - i;
    }
    span = row_policy_span(ids, SAMPLE);
    assert_int_equal(span.low, 10000);
    assert_int_equal(span.high, 10990);
    assert_true(span.spread <= 990);
    /* Four spreads around, and no further. */
    uint64_t spread = span.spread;
    uint64_t middle = span.most;
    ids[1] = middle + 4 * spread;
    ids[4] = middle + 4 * spread + 1;
    span = row_policy_span(ids, SAMPLE);
    assert_int_equal(span.high, middle + 4 * spread);
}

/* A stream that goes on from clump to clump; strays are as dense nowhere. */
static void test_span_clumps(void **unused)
{
    (void)unused;
    uint64_t ids[SAMPLE];
    for (size_t i = 0; i < SAMPLE; i++) {
        ids[i] = 10000 + i / 40 * 4000000 + i % 40;
    }
    struct row_span span = row_policy_span(ids, SAMPLE);
    assert_int_equal(span.low, 10000);
    assert_int_equal(span.high, 10000 + 8000000 + 19);
}

static void test_span_edges(void **unused)
{
    (void)unused;
    const uint64_t one[] = {7};
    struct row_span span = row_policy_span(one, 1);
    assert_int_equal(span.low, 7);
    assert_int_equal(span.high, 7);
    assert_int_equal(span.spread, 0);
    const uint64_t wide[] = {0, ROW_ID_MAX};
    span = row_policy_span(wide, 2);
    assert_int_equal(span.low, 0);
    assert_int_equal(span.high, ROW_ID_MAX);
}

static void test_range(void **unused)
{
    (void)unused;
    assert_int_equal(row_policy_range(1000, 500, 600), 1200);
    assert_int_equal(row_policy_range(ROW_ID_MAX, 1, 1000), ROW_ID_MAX);
    assert_int_equal(row_policy_range((uint64_t)1 << 50, 1000, 1000), (uint64_t)1 << 50);
}

static void test_reach(void **unused)
{
    (void)unused;
    assert_int_equal(row_policy_reach(5000, 1024, 1, 1, 1000), 5000);
    assert_int_equal(row_policy_reach(5, 1024, 1, 1, 1000), 1024);
    assert_int_equal(row_policy_reach(0, 1024, 10000, 250, 1000), 40000);
    assert_int_equal(row_policy_reach(0, 1024, 10000, 500, 1000), 15000);
    assert_int_equal(row_policy_reach(0, 1024, 10000, 1000, 1000), 2500);
    assert_int_equal(row_policy_reach(0, 1024, 100, 250, 1000), 1024);
    assert_int_equal(row_policy_reach(0, 1, ROW_ID_MAX / 2, 1, 1000), ROW_ID_MAX - ROW_ID_MAX / 2);
}

static void test_cluster(void **unused)
{
    (void)unused;
    const uint64_t ids[] = {10, 100, 200, 210, 220, 300, 310, 320};
    size_t first = 99;
    assert_false(row_policy_cluster(ids, 8, 3, 19, UINT64_MAX, &first));
    assert_true(row_policy_cluster(ids, 8, 3, 20, UINT64_MAX, &first));
    assert_int_equal(first, 2);
    assert_true(row_policy_cluster(ids, 8, 3, 20, 310, &first));
    assert_int_equal(first, 5);
    assert_false(row_policy_cluster(ids, 8, 3, 20, 100, &first));
    assert_false(row_policy_cluster(ids, 2, 3, 1000, UINT64_MAX, &first));
    assert_false(row_policy_cluster(ids, 0, 3, 1000, UINT64_MAX, &first));
}

static bool is_near(double a, double b)
{
    return a - b < 1e-9 && b - a < 1e-9;
}

static void test_late_room(void **unused)
{
    (void)unused;
    /* More room at once, less of it by halves. */
    assert_true(is_near(row_policy_late_room(0.1, 400, 1000), 0.5 + 1.0 / 64));
    assert_true(is_near(row_policy_late_room(0.1, 0, 1000), (0.1 + 0.02) / 2));
    assert_true(is_near(row_policy_late_room(0.1, 900, 1000), 0.6));
    assert_true(is_near(row_policy_late_room(0.1, 0, 0), 0.06));
    assert_true(is_near(row_policy_late_room(0.6, 900, 1000), 0.6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add),         cmocka_unit_test(test_span),
        cmocka_unit_test(test_span_clumps), cmocka_unit_test(test_range),
        cmocka_unit_test(test_span_edges),  cmocka_unit_test(test_reach),
        cmocka_unit_test(test_cluster),     cmocka_unit_test(test_late_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
