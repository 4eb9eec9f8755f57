/* The blocked filter: its plan, its rate of wrong answers at capacity, and the rate it shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/memory.h"
#include "phantom/filter.h"
#include "tests/support/random.h"

#define TABLE_BYTES   (4u << 20)
#define LINES         (TABLE_BYTES / PHANTOM_LINE_BYTES)
#define FOREIGN       10000000u
#define FOREIGN_FIRST (1ull << 40) /* members are counted from 0 */
#define LIKES         20u          /* members of an id */
#define ALLOWED       1.1          /* times the target */
#define SHOWN_WITHIN  0.1
#define SIGMAS        4               /* what a count smaller than FOREIGN may stray */
#define SEED          0x6c696b6564ull /* always the same: a rate is no matter of luck */

static const double rates[] = {0.01, 0.001, 0.0001};
#define RATES (sizeof(rates) / sizeof(rates[0]))

static uint64_t member(uint64_t i)
{
    return hash_bytes(&i, sizeof(i), SEED);
}

/* Pairs as they come: ids of seconds << 22, a few members each, that hardly differ. */
static uint64_t like(uint64_t i)
{
    char text[HASH_SHORT_MAX];
    int length = snprintf(text, sizeof(text), "u%llu", (unsigned long long)(i % LIKES));
    return hash_short(text, (size_t)length, i / LIKES << 22, SEED);
}

static double square_root(double x)
{
    double root = x > 1 ? x : 1;
    for (int i = 0; i < 64; i++) {
        root = (root + x / root) / 2;
    }
    return root;
}

/* A filter with `members` of them. */
typedef uint64_t hash_fn(uint64_t i);
static void open_filter_of(struct phantom_filter *filter, const struct phantom_plan *plan,
                           uint64_t members, hash_fn *hash)
{
    filter->lines = LINES;
    filter->bits = plan->bits;
    filter->words = memory_region_create(TABLE_BYTES);
    assert_non_null(filter->words);
    for (uint64_t i = 0; i < members; i++) {
        phantom_filter_set(filter, hash(i));
    }
}

static void open_filter(struct phantom_filter *filter, const struct phantom_plan *plan,
                        uint64_t members)
{
    open_filter_of(filter, plan, members, member);
}

static void close_filter(struct phantom_filter *filter)
{
    memory_region_destroy(filter->words, TABLE_BYTES);
}

static uint64_t count_wrong(const struct phantom_filter *filter, uint64_t asked, hash_fn *hash)
{
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < asked; i++) {
        wrong += phantom_filter_holds(filter, hash(FOREIGN_FIRST + i));
    }
    return wrong;
}

static void test_rate_at_capacity(void **unused)
{
    (void)unused;
    uint64_t asked = test_scaled(FOREIGN);
    for (size_t i = 0; i < RATES; i++) {
        struct phantom_filter filter;
        struct phantom_plan plan;
        phantom_filter_plan(rates[i], &plan);
        uint64_t capacity = (uint64_t)(LINES * plan.load);
        open_filter(&filter, &plan, capacity);
        for (uint64_t j = 0; j < capacity; j += 7) {
            assert_true(phantom_filter_holds(&filter, member(j)));
        }
        double wrong = (double)count_wrong(&filter, asked, member);
        double target = rates[i] * (double)asked;
        double shown = phantom_filter_rate(&filter);
        printf("%g: %u bits set, %.2f bits a member, wrong %.3g (planned %.3g, shown %.3g)\n",
               rates[i], plan.bits, PHANTOM_LINE_BITS / plan.load, wrong / (double)asked, plan.rate,
               shown);
        double stray = asked < FOREIGN ? SIGMAS * square_root(target) : 0;
        assert_true(wrong <= ALLOWED * target + stray);
        assert_true(shown > rates[i] * (1 - SHOWN_WITHIN) && shown < rates[i] * (1 + SHOWN_WITHIN));
        close_filter(&filter);
    }
}

/* The rate does not suffer from pairs that are alike. */
static void test_rate_of_likes(void **unused)
{
    (void)unused;
    uint64_t asked = test_scaled(FOREIGN);
    struct phantom_filter filter;
    struct phantom_plan plan;
    phantom_filter_plan(0.001, &plan);
    uint64_t capacity = (uint64_t)(LINES * plan.load);
    open_filter_of(&filter, &plan, capacity, like);
    for (uint64_t j = 0; j < capacity; j += 7) {
        assert_true(phantom_filter_holds(&filter, like(j)));
    }
    double wrong = (double)count_wrong(&filter, asked, like);
    double target = 0.001 * (double)asked;
    double stray = asked < FOREIGN ? SIGMAS * square_root(target) : 0;
    printf("likes: wrong %.3g\n", wrong / (double)asked);
    assert_true(wrong <= ALLOWED * target + stray);
    close_filter(&filter);
}

/* Half full and nearly empty, too, the shown rate is the true one. */
static void test_shown_rate(void **unused)
{
    (void)unused;
    struct phantom_plan plan;
    struct phantom_filter filter;
    phantom_filter_plan(0.01, &plan);
    open_filter(&filter, &plan, 0);
    assert_true(phantom_filter_rate(&filter) == 0);
    assert_int_equal(phantom_filter_count(&filter), 0);
    close_filter(&filter);
    for (unsigned part = 2; part <= 4; part++) {
        open_filter(&filter, &plan, (uint64_t)(LINES * plan.load) / part);
        double planned = phantom_filter_rate_at(plan.bits, plan.load / part);
        double shown = phantom_filter_rate(&filter);
        assert_true(shown > planned * (1 - SHOWN_WITHIN) && shown < planned * (1 + SHOWN_WITHIN));
        close_filter(&filter);
    }
}

static void test_plans(void **unused)
{
    (void)unused;
    /* Bits a member: the figures of the design, to 1 %. */
    static const double bits[RATES] = {9.93, 15.57, 22.06};
    for (size_t i = 0; i < RATES; i++) {
        struct phantom_plan plan;
        phantom_filter_plan(rates[i], &plan);
        double a_member = PHANTOM_LINE_BITS / plan.load;
        assert_true(a_member > bits[i] * 0.99 && a_member < bits[i] * 1.01);
        assert_true(plan.rate <= rates[i] && plan.rate > rates[i] * 0.999);
    }
    struct phantom_plan loosest, strictest;
    phantom_filter_plan(0.5, &loosest);
    phantom_filter_plan(0.000001, &strictest);
    assert_int_equal(loosest.bits, 1);
    assert_true(loosest.load < PHANTOM_LINE_BITS && strictest.bits < PHANTOM_BITS_MAX);
    assert_true(phantom_filter_rate_at(1, 0) == 0);
}

/* With one member exactly its bits are set, all in its line. */
static void test_one_member(void **unused)
{
    (void)unused;
    struct phantom_plan plan;
    phantom_filter_plan(0.001, &plan);
    for (uint64_t i = 0; i < 100; i++) {
        struct phantom_filter filter;
        open_filter(&filter, &plan, 0);
        assert_false(phantom_filter_holds(&filter, member(i)));
        phantom_filter_set(&filter, member(i));
        assert_true(phantom_filter_holds(&filter, member(i)));
        uint64_t set = phantom_filter_count(&filter);
        assert_true(set >= plan.bits - 3u && set <= plan.bits);
        filter.words = phantom_filter_words(&filter, member(i));
        filter.lines = 1;
        assert_int_equal(phantom_filter_count(&filter), set);
        filter.words -= phantom_filter_line(&(struct phantom_filter){NULL, LINES, 1}, member(i)) *
                        (PHANTOM_LINE_BYTES / 8);
        close_filter(&filter);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),      cmocka_unit_test(test_rate_of_likes),
        cmocka_unit_test(test_one_member), cmocka_unit_test(test_rate_at_capacity),
        cmocka_unit_test(test_shown_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
