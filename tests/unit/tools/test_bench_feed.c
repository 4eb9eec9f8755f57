/* The ids of a feed: each is created once, late ones later; most draws are new. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tools/rollcall/bench_feed.h"
#include "tools/rollcall/bench_random.h"

#define START  1000u
#define WINDOW 400u
#define COUNT  20000u
#define DRAWS  1000000u

static void start(struct bench_feed *feed, uint64_t late, uint64_t old)
{
    bench_feed_init(feed, START, START + COUNT, WINDOW);
    feed->late = late;
    feed->old = old;
    feed->seed = 7;
}

static void test_dense_without_late(void **state)
{
    (void)state;
    struct bench_feed feed;

    start(&feed, 0, 0);
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_int_equal(bench_feed_next(&feed), START + i);
    }
    assert_int_equal(bench_feed_next(&feed), START + COUNT - 1); /* the clock has stopped */
    assert_int_equal(feed.clock, START + COUNT);
}

static void test_late(void **state)
{
    (void)state;
    struct bench_feed feed;
    unsigned char *seen = calloc(COUNT, 1);
    uint64_t late = 0, newest = 0;

    assert_non_null(seen);
    start(&feed, 50, 0);
    while (feed.clock < START + COUNT) {
        uint64_t index = bench_feed_next(&feed);
        assert_in_range(index, START, START + COUNT - 1);
        assert_int_equal(seen[index - START]++, 0);
        assert_true(index + feed.window >= feed.clock); /* among the newest */
        if (bench_feed_late(&feed, index)) {
            assert_int_equal(feed.clock - 1 - index, WINDOW / 2);
            late++;
        } else {
            assert_true(index > newest);
            newest = index;
        }
    }
    for (uint64_t i = 0; i < COUNT - WINDOW; i++) {
        assert_int_equal(seen[i], 1); /* none is forgotten */
    }
    assert_in_range(late, COUNT * 45 / 100, COUNT * 55 / 100);
    free(seen);
}

/* Counts of draws with that share of old ones: among all, in the window, in its newest eighth. */
static void draw(uint64_t old, uint64_t *recent, uint64_t *newest)
{
    struct bench_feed feed;
    uint64_t random = bench_random_state(3);

    start(&feed, 0, old);
    feed.clock = START + COUNT;
    *recent = *newest = 0;
    for (unsigned i = 0; i < DRAWS; i++) {
        uint64_t index = bench_feed_draw(&feed, bench_random_next(&random));
        assert_true(index < feed.clock);
        *recent += index + WINDOW >= feed.clock;
        *newest += index + WINDOW / 8 >= feed.clock;
    }
}

static void test_draws_are_new(void **state)
{
    (void)state;
    uint64_t recent, newest;

    draw(0, &recent, &newest);
    assert_int_equal(recent, DRAWS);
    assert_in_range(newest, DRAWS * 45 / 100, DRAWS * 55 / 100);
    draw(40, &recent, &newest); /* of the old ones one in fifty is in the window by chance */
    assert_in_range(recent, DRAWS * 58 / 100, DRAWS * 63 / 100);
    draw(100, &recent, &newest);
    assert_true(recent < DRAWS * 3 / 100);
}

static void test_young_feed(void **state)
{
    (void)state;
    struct bench_feed feed;

    bench_feed_init(&feed, 0, 10, WINDOW);
    assert_int_equal(bench_feed_draw(&feed, UINT64_MAX), 0);
    assert_int_equal(bench_feed_next(&feed), 0);
    assert_int_equal(bench_feed_draw(&feed, UINT64_MAX), 0);
    assert_int_equal(bench_feed_next(&feed), 1);
    assert_int_equal(bench_feed_draw(&feed, 0), 1);
    assert_int_equal(bench_feed_draw(&feed, UINT64_MAX), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense_without_late),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_draws_are_new),
        cmocka_unit_test(test_young_feed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
