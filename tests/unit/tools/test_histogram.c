/* Percentiles of the histogram against a sorted array of the same values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "tools/rollcall/histogram.h"

#define VALUES 100000u

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The exact percentile by the same definition: the value at the rounded up rank. */
static uint64_t exact(const uint64_t *sorted, double percent)
{
    double wanted = percent / 100 * VALUES;
    size_t rank = (size_t)wanted;
    if ((double)rank < wanted) {
        rank++;
    }
    return sorted[rank == 0 ? 0 : rank - 1];
}

static void assert_within_one_percent(uint64_t got, uint64_t wanted)
{
    uint64_t off = got > wanted ? got - wanted : wanted - got;
    assert_true(off <= wanted / 100);
}

/* Values spread evenly over the orders of magnitude below 2^bits. */
static void compare(unsigned bits, uint64_t seed)
{
    static const double percents[] = {0.001, 1, 25, 50, 90, 99, 99.9, 99.99, 100};
    struct histogram *histogram = histogram_create();
    uint64_t *values = malloc(VALUES * sizeof(*values));

    assert_non_null(values);
    for (uint64_t i = 0; i < VALUES; i++) {
        uint64_t random = hash_u64(seed + i * 0x9e3779b97f4a7c15u);
        values[i] = (random >> (64 - bits)) >> hash_u64(random) % bits;
        histogram_record(histogram, values[i]);
    }
    qsort(values, VALUES, sizeof(*values), by_value);
    for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
        assert_within_one_percent(histogram_percentile(histogram, percents[i]),
                                  exact(values, percents[i]));
    }
    assert_int_equal(histogram_count(histogram), VALUES);
    assert_int_equal(histogram_max(histogram), values[VALUES - 1]);
    free(values);
    histogram_destroy(histogram);
}

static void test_random_data(void **state)
{
    (void)state;
    for (unsigned bits = 4; bits <= 64; bits += 4) {
        compare(bits, bits);
        compare(bits, bits + 1000);
    }
}

static void test_every_power_of_two(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++) {
        for (uint64_t near = 0; near < 3; near++) {
            struct histogram *histogram = histogram_create();
            uint64_t value = (1ull << bit) + near - 1;
            histogram_record(histogram, value);
            histogram_record(histogram, UINT64_MAX);
            assert_within_one_percent(histogram_percentile(histogram, 50), value);
            assert_true(histogram_max(histogram) == UINT64_MAX);
            histogram_destroy(histogram);
        }
    }
}

static void test_small_values_are_exact(void **state)
{
    (void)state;
    struct histogram *histogram = histogram_create();
    for (uint64_t value = 1; value <= 200; value++) {
        histogram_record(histogram, value);
    }
    assert_int_equal(histogram_percentile(histogram, 0.5), 1);
    assert_int_equal(histogram_percentile(histogram, 50), 100);
    assert_int_equal(histogram_percentile(histogram, 99), 198);
    assert_int_equal(histogram_percentile(histogram, 100), 200);
    histogram_destroy(histogram);
}

static void test_never_above_max(void **state)
{
    (void)state;
    struct histogram *histogram = histogram_create();
    histogram_record(histogram, 1000001);
    assert_int_equal(histogram_percentile(histogram, 99.9), 1000001);
    histogram_destroy(histogram);
}

/* Merged are exactly the values of both, as if one histogram had recorded them. */
static void test_merge(void **state)
{
    struct histogram *parts[3], *all = histogram_create(), *merged = histogram_create();

    (void)state;
    for (size_t part = 0; part < 3; part++) {
        parts[part] = histogram_create();
    }
    for (uint64_t i = 0; i < VALUES; i++) {
        uint64_t value = hash_u64(i) >> hash_u64(i + VALUES) % 64;
        histogram_record(parts[value % 2], value); /* the third stays empty */
        histogram_record(all, value);
    }
    for (size_t part = 0; part < 3; part++) {
        histogram_merge(merged, parts[part]);
    }
    assert_int_equal(histogram_count(merged), VALUES);
    assert_true(histogram_max(merged) == histogram_max(all));
    for (double percent = 0.5; percent <= 100; percent += 0.5) {
        assert_true(histogram_percentile(merged, percent) == histogram_percentile(all, percent));
    }
    for (size_t part = 0; part < 3; part++) {
        histogram_destroy(parts[part]);
    }
    histogram_destroy(all);
    histogram_destroy(merged);
}

static void test_empty(void **state)
{
    (void)state;
    struct histogram *histogram = histogram_create();
    assert_int_equal(histogram_percentile(histogram, 99), 0);
    assert_int_equal(histogram_max(histogram), 0);
    assert_int_equal(histogram_count(histogram), 0);
    histogram_destroy(histogram);
    histogram_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_data),
        cmocka_unit_test(test_every_power_of_two),
        cmocka_unit_test(test_small_values_are_exact),
        cmocka_unit_test(test_never_above_max),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
