/* test_watch.c: times in buckets, the hottest of a skewed stream, the last slow requests. */
#include "request/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random.h"

#define WORKERS 3

/* A quantile is the end of the bucket that holds it: never below, at most an eighth above. */
static void test_quantiles(void **unused)
{
    struct watch *watches = watch_create(WORKERS);
    struct watch_times times;

    (void)unused;
    watch_times(watches, WORKERS, WATCH_CLASSES, WATCH_MEMORY, &times);
    assert_int_equal(watch_quantile(&times, 0.5), 0);
    for (uint64_t us = 1; us <= 100000; us++) {
        watch_took(&watches[us % WORKERS], us % 2 ? WATCH_GET : WATCH_INCR, WATCH_MEMORY, us, 1);
    }
    watch_took(&watches[0], WATCH_GET, WATCH_DISK, 7, 1);
    watch_times(watches, WORKERS, WATCH_CLASSES, WATCH_MEMORY, &times);
    assert_int_equal(times.count, 100000);
    assert_int_equal(times.sum_us, 100000ull * 100001 / 2);
    for (uint64_t share = 1; share <= 100; share++) {
        uint64_t us = watch_quantile(&times, (double)share / 100);

        assert_true(us >= share * 1000 && us <= share * 1000 * 9 / 8 + 1);
    }
    for (unsigned power = 0; power <= 16; power++) {
        assert_int_equal(watch_below(&times, power), (1u << power) - 1);
    }
    watch_times(watches, WORKERS, WATCH_GET, WATCH_MEMORY, &times);
    assert_int_equal(times.count, 50000);
    watch_destroy(watches, WORKERS);
}

static void test_extremes(void **unused)
{
    struct watch *watches = watch_create(1);
    struct watch_times times;

    (void)unused;
    watch_took(watches, WATCH_GET, WATCH_SYNC, 0, 5);
    watch_took(watches, WATCH_GET, WATCH_SYNC, UINT64_MAX, 1);
    watch_times(watches, 1, WATCH_GET, WATCH_SYNC, &times);
    assert_int_equal(times.count, 6);
    assert_int_equal(watch_quantile(&times, 0.5), 0);
    assert_int_equal(watch_quantile(&times, 1), (1u << 27) - 1);
    assert_int_equal(watch_below(&times, 26), 5);
    watch_destroy(watches, 1);
}

/* One id has a fifth of one worker's keys, among a million others. */
static void test_hot(void **unused)
{
    struct watch *watches = watch_create(WORKERS);
    struct watch_top tops[4];
    double worst;
    struct test_random random = {.state = 1};

    (void)unused;
    assert_int_equal(watch_hottest(watches, WORKERS, WATCH_IDS, tops, 4, &worst), 0);
    assert_true(worst == 0);
    for (unsigned i = 0; i < 60000; i++) {
        unsigned worker = i % WORKERS;
        bool hot = worker == 1 && test_random_below(&random, 5) == 0;

        watch_saw(&watches[worker], WATCH_IDS, "feed",
                  hot ? 42 : test_random_below(&random, 1000000), NULL, 0);
    }
    size_t count = watch_hottest(watches, WORKERS, WATCH_IDS, tops, 4, &worst);

    assert_true(count >= 1);
    assert_string_equal(tops[0].key, "feed:42");
    assert_true(tops[0].share > 0.05 && tops[0].share < 0.09);
    assert_true(worst > 0.18 && worst < 0.22);
    assert_true(count < 2 || tops[1].share < 0.01);
    /* it is forgotten when others come */
    for (unsigned i = 0; i < 200000; i++) {
        watch_saw(&watches[1], WATCH_IDS, "feed", test_random_below(&random, 1000000), NULL, 0);
    }
    (void)watch_hottest(watches, WORKERS, WATCH_IDS, tops, 4, &worst);
    assert_true(worst < 0.01);
    watch_destroy(watches, WORKERS);
}

static void test_names(void **unused)
{
    struct watch *watches = watch_create(1);
    struct watch_top tops[8];
    char longest[300];
    double worst;

    (void)unused;
    memset(longest, 'a', sizeof(longest));
    for (unsigned i = 0; i < 400; i++) {
        watch_saw(watches, WATCH_MEMBERS, "liked", i, "<b>\n\xff", 5);
        watch_saw(watches, WATCH_IDS, "rest", 0, longest, sizeof(longest));
    }
    assert_int_equal(watch_hottest(watches, 1, WATCH_MEMBERS, tops, 8, &worst), 1);
    assert_string_equal(tops[0].key, "liked:*:<b>\?\?");
    assert_true(worst == 1);
    assert_int_equal(watch_hottest(watches, 1, WATCH_IDS, tops, 8, &worst), 1);
    assert_int_equal(strlen(tops[0].key), WATCH_KEY_MAX - 1);
    watch_destroy(watches, 1);
}

static void test_slow(void **unused)
{
    struct watch *watches = watch_create(2);
    struct watch_request slow[WATCH_SLOW];

    (void)unused;
    assert_int_equal(watch_slowest(watches, 2, slow), 0);
    for (uint64_t i = 0; i < 500; i++) {
        struct watch_request request = {.at_s = i, .took_us = i, .class = WATCH_GET};

        watch_slow(&watches[i % 2], &request);
    }
    assert_int_equal(watch_slowest(watches, 2, slow), WATCH_SLOW);
    for (uint64_t i = 0; i < WATCH_SLOW; i++) {
        assert_int_equal(slow[i].at_s, 499 - i);
    }
    watch_destroy(watches, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantiles), cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_hot),       cmocka_unit_test(test_names),
        cmocka_unit_test(test_slow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
