/* Ranks by Zipf's law, and their places in the population. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/load/zipf.h"
#include "tools/rollcall/bench_random.h"

#define DRAWS   400000
#define CLASSES 6   /* ranks 0, 1, 2-3, 4-7, 8-15 and all others */
#define ODDS    5.0 /* standard deviations; the draws are always the same */

static unsigned class_of(uint64_t rank)
{
    unsigned i = 0;

    while (i < CLASSES - 1 && rank >= 1ull << i) {
        i++;
    }
    return i;
}

/* Each class of ranks comes as often as the law says, within what chance allows. */
static void check_law(uint64_t hundredths, uint64_t n)
{
    struct load_zipf zipf;
    double wanted[CLASSES] = {0}, all = 0;
    unsigned seen[CLASSES] = {0};
    uint64_t random = bench_random_state(7);

    for (uint64_t rank = 0; rank < n; rank++) {
        double weight = pow((double)rank + 1, -(double)hundredths / 100);
        wanted[class_of(rank)] += weight;
        all += weight;
    }
    load_zipf_init(&zipf, hundredths, n);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t rank = load_zipf_rank(&zipf, &random);
        assert_true(rank < n);
        seen[class_of(rank)]++;
    }
    for (unsigned i = 0; i < CLASSES; i++) {
        double share = wanted[i] / all;
        double spread = sqrt(DRAWS * share * (1 - share)) + 1;
        if (fabs(seen[i] - DRAWS * share) > ODDS * spread) {
            fail_msg("theta %d/100, n %d, class %u: %u, not about %.0f", (int)hundredths, (int)n, i,
                     seen[i], DRAWS * share);
        }
    }
}

static void test_law(void **state)
{
    (void)state;
    static const uint64_t thetas[] = {1, 50, 99, 100, 101, 150, 200};

    for (size_t i = 0; i < sizeof(thetas) / sizeof(thetas[0]); i++) {
        check_law(thetas[i], 1);
        check_law(thetas[i], 2);
        check_law(thetas[i], 7);
        check_law(thetas[i], 100000);
    }
}

static void test_large(void **state)
{
    (void)state;
    struct load_zipf zipf;
    uint64_t random = bench_random_state(1), largest = 0, n = 1000000000000ull;

    load_zipf_init(&zipf, 50, n);
    for (int i = 0; i < 10000; i++) {
        uint64_t rank = load_zipf_rank(&zipf, &random);
        assert_true(rank < n && load_zipf_place(&zipf, rank) < n);
        largest = rank > largest ? rank : largest;
    }
    assert_true(largest > n / 2);
}

static void test_places_are_a_bijection(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 3000; n += n / 20 + 1) {
        struct load_zipf zipf;
        unsigned char *taken = calloc(n, 1);

        assert_non_null(taken);
        load_zipf_init(&zipf, 100, n);
        for (uint64_t rank = 0; rank < n; rank++) {
            uint64_t place = load_zipf_place(&zipf, rank);
            assert_true(place < n);
            assert_int_equal(taken[place], 0);
            taken[place] = 1;
        }
        free(taken);
    }
}

/* Of the most frequent no two are near each other, and they are all over the population. */
static void test_places_are_apart(void **state)
{
    (void)state;
    struct load_zipf zipf;
    uint64_t n = 1000000, halves[2] = {0};

    load_zipf_init(&zipf, 99, n);
    for (uint64_t i = 0; i < 16; i++) {
        uint64_t place = load_zipf_place(&zipf, i);
        halves[place >= n / 2]++;
        for (uint64_t j = 0; j < i; j++) {
            uint64_t other = load_zipf_place(&zipf, j);
            assert_true((place > other ? place - other : other - place) > 100);
        }
    }
    assert_true(halves[0] >= 4 && halves[1] >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_law),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_places_are_a_bijection),
        cmocka_unit_test(test_places_are_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
