/* test_permute.c: forward and back are inverse, and a bijection of w-bit numbers. */
#include "row/permute.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "tests/support/random.h"

#define WIDTH_MAX      63u
#define WIDTH_ALL      12u /* up to here every number is tried */
#define ROUNDS_A_WIDTH 2000u
#define KEYS_A_WIDTH   8u
#define SPREAD_GROUPS  1024u
#define SPREAD_A_GROUP 5u
#define SPREAD_KEYS    1000u
#define SPREAD_MOST    1.4 /* nine standard deviations */

static void make(struct permute *p, unsigned bits, struct test_random *random)
{
    uint64_t keys[PERMUTE_ROUNDS];
    for (int i = 0; i < PERMUTE_ROUNDS; i++) {
        keys[i] = test_random_next(random);
    }
    permute_init(p, bits, keys);
}

static void assert_inverse(const struct permute *p, uint64_t x)
{
    uint64_t y = permute_forward(p, x);
    assert_true(y <= p->mask);
    assert_true(permute_back(p, y) == x);
    assert_true(permute_forward(p, permute_back(p, x)) == x);
}

static void test_inverse_of_every_width(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    for (unsigned bits = 1; bits <= WIDTH_MAX; bits++) {
        struct permute p;
        make(&p, bits, &random);
        assert_true(p.mask == (1ull << bits) - 1);
        assert_inverse(&p, 0);
        assert_inverse(&p, p.mask);
        for (unsigned i = 0; i < ROUNDS_A_WIDTH; i++) {
            assert_inverse(&p, test_random_next(&random) & p.mask);
        }
    }
}

static void test_bijection_of_small_widths(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    static bool hit[1u << WIDTH_ALL];
    for (unsigned bits = 1; bits <= WIDTH_ALL; bits++) {
        for (unsigned key = 0; key < KEYS_A_WIDTH; key++) {
            struct permute p;
            make(&p, bits, &random);
            memset(hit, 0, sizeof(hit));
            for (uint64_t x = 0; x <= p.mask; x++) {
                uint64_t y = permute_forward(&p, x);
                assert_false(hit[y]);
                hit[y] = true;
            }
        }
    }
}

static void test_odd_inverse(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    for (unsigned i = 0; i < ROUNDS_A_WIDTH; i++) {
        uint64_t odd = test_random_next(&random) | 1;
        assert_true(odd * permute_odd_inverse(odd) == 1);
    }
    assert_true(permute_odd_inverse(UINT64_MAX) == UINT64_MAX);
}

/*
 * Ids in a row meet in groups as random ones would, whatever the keys: the variance of the groups'
 * counts is their mean.
 */
static void test_spreads_dense_ids(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    for (unsigned key = 0; key < SPREAD_KEYS; key++) {
        static unsigned count[SPREAD_GROUPS];
        struct permute p;
        make(&p, 26, &random);
        memset(count, 0, sizeof(count));
        for (uint64_t id = 0; id < SPREAD_GROUPS * SPREAD_A_GROUP; id++) {
            count[permute_forward(&p, id) >> 16]++;
        }
        double squares = 0;
        for (unsigned i = 0; i < SPREAD_GROUPS; i++) {
            double off = (double)count[i] - SPREAD_A_GROUP;
            squares += off * off;
        }
        assert_true(squares / (SPREAD_GROUPS * SPREAD_A_GROUP) < SPREAD_MOST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inverse_of_every_width),
        cmocka_unit_test(test_bijection_of_small_widths),
        cmocka_unit_test(test_odd_inverse),
        cmocka_unit_test(test_spreads_dense_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
