/* How long an address waits after wrong passwords. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>

#include "request/auth_delay.h"

#define SECOND_US 1000000ull
#define BEGAN_US  (3600 * SECOND_US)

static struct auth_delay *delay;

static int make(void **state)
{
    (void)state;
    delay = auth_delay_create();
    return 0;
}

static int drop(void **state)
{
    (void)state;
    auth_delay_destroy(delay);
    return 0;
}

static bool try(uint64_t origin, uint64_t now_us, bool right)
{
    bool may = auth_delay_begin(delay, origin, 0, now_us);

    if (may) {
        auth_delay_end(delay, origin, now_us, right);
    }
    return may;
}

/* Asks once, as one that has waited since then does each second. */
static bool waits(uint64_t since_us, uint64_t now_us)
{
    bool may = auth_delay_begin(delay, 1, since_us, now_us);

    if (may) {
        auth_delay_end(delay, 1, now_us, false);
    }
    return !may;
}

static void fail_free(uint64_t origin, uint64_t now_us)
{
    for (int i = 0; i < AUTH_DELAY_FREE + 1; i++) {
        assert_true(try(origin, now_us, false));
    }
}

/* 1, 2, 4, 8, 8 … seconds, to the microsecond. */
static void test_grows(void **state)
{
    static const unsigned seconds[] = {1, 2, 4, 8, 8, 8};
    uint64_t now_us = BEGAN_US;

    (void)state;
    assert_int_equal(seconds[0], AUTH_DELAY_FIRST_S);
    assert_int_equal(seconds[5], AUTH_DELAY_MAX_S);
    fail_free(1, now_us);
    for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
        assert_false(try(1, now_us, false));
        assert_false(try(1, now_us + seconds[i] * SECOND_US - 1, false));
        now_us += seconds[i] * SECOND_US;
        assert_true(try(1, now_us, false));
    }
}

/* Who waits is not looked at, right or wrong, and waits no longer for having asked. */
static void test_waits(void **state)
{
    (void)state;
    fail_free(1, BEGAN_US);
    for (int i = 0; i < 1000; i++) {
        assert_false(try(1, BEGAN_US + 1, i % 2 != 0));
    }
    assert_true(try(1, BEGAN_US + SECOND_US, true));
}

/* Whoever came first has the next turn, in whatever order they ask; one who does not wait is last.
 */
static void test_line(void **state)
{
    const uint64_t one = BEGAN_US + 1, two = BEGAN_US + 2, three = BEGAN_US + 3;
    uint64_t free_us = BEGAN_US + SECOND_US;

    (void)state;
    fail_free(1, BEGAN_US);
    assert_true(waits(two, BEGAN_US + 2));
    assert_true(waits(one, BEGAN_US + 2));
    assert_true(waits(three, BEGAN_US + 3));
    assert_true(waits(three, free_us));
    assert_true(waits(two, free_us));
    assert_true(waits(0, free_us));
    assert_false(waits(one, free_us));
    assert_true(waits(three, free_us));
    assert_true(waits(two, free_us));
    free_us += 2 * SECOND_US;
    assert_true(waits(three, free_us));
    assert_false(waits(two, free_us));
}

/* One who has gone holds the others up, but not for long. */
static void test_gone(void **state)
{
    const uint64_t free_us = BEGAN_US + SECOND_US;

    (void)state;
    fail_free(1, BEGAN_US);
    assert_true(waits(BEGAN_US, BEGAN_US));
    assert_true(waits(BEGAN_US + 1, free_us));
    assert_true(waits(BEGAN_US + 1, free_us + AUTH_DELAY_HELD_S * SECOND_US - 1));
    assert_false(waits(BEGAN_US + 1, free_us + AUTH_DELAY_HELD_S * SECOND_US));
    assert_false(waits(0, free_us + 10 * SECOND_US)); /* nobody waits */
}

/* One that leaves holds nobody up; that another one leaves changes nothing. */
static void test_leaves(void **state)
{
    const uint64_t one = BEGAN_US + 1, two = BEGAN_US + 2, three = BEGAN_US + 3;
    const uint64_t free_us = BEGAN_US + SECOND_US;

    (void)state;
    fail_free(1, BEGAN_US);
    assert_true(waits(one, one));
    assert_true(waits(two, two));
    auth_delay_leave(delay, 1, two);
    auth_delay_leave(delay, 2, one);
    assert_true(waits(three, free_us));
    auth_delay_leave(delay, 1, one);
    assert_true(waits(three, free_us - 1));
    assert_false(waits(three, free_us));
}

static void test_forgives(void **state)
{
    uint64_t now_us = BEGAN_US + SECOND_US;

    (void)state;
    fail_free(1, BEGAN_US);
    assert_true(try(1, now_us, true));
    fail_free(1, now_us);
    assert_false(try(1, now_us, true));
    now_us += AUTH_DELAY_FORGET_S * SECOND_US; /* not yet */
    assert_true(try(1, now_us, false));
    assert_false(try(1, now_us, false));
    now_us += AUTH_DELAY_FORGET_S * SECOND_US + 1;
    fail_free(1, now_us);
    assert_false(try(1, now_us, false));
}

/* A worker's time may be older than what another has noted. */
static void test_older_time(void **state)
{
    (void)state;
    assert_true(try(1, BEGAN_US, false));
    assert_true(try(1, BEGAN_US - 1000, false));
    assert_true(try(1, BEGAN_US - 2000, false));
    assert_false(try(1, BEGAN_US, false));
}

/* Others do not wait; but so many addresses that all slots are taken wait like one. */
static void test_addresses(void **state)
{
    unsigned let = 0;

    (void)state;
    fail_free(1, BEGAN_US);
    for (uint64_t origin = 2; origin < 20; origin++) {
        let += try(origin, BEGAN_US, true);
    }
    assert_in_range(let, 16, 18); /* seldom one shares the slot */
    let = 0;
    for (uint64_t origin = 100; origin < 100 + 40 * AUTH_DELAY_SLOTS; origin++) {
        let += try(origin, BEGAN_US, false);
    }
    assert_in_range(let, AUTH_DELAY_SLOTS, (AUTH_DELAY_FREE + 1) * AUTH_DELAY_SLOTS);
}

enum { THREADS = 4, ROUNDS = 20000 };

static void *guess(void *context)
{
    unsigned *looked_at = context;

    for (int i = 0; i < ROUNDS; i++) {
        *looked_at += try(7, BEGAN_US, false);
    }
    return NULL;
}

/* At once is one after another: no more are looked at than of one thread. */
static void test_threads(void **state)
{
    pthread_t threads[THREADS];
    unsigned looked_at[THREADS] = {0};
    unsigned sum = 0;

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, guess, &looked_at[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += looked_at[i];
    }
    assert_int_equal(sum, AUTH_DELAY_FREE + 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        TEST(test_grows),      TEST(test_waits),     TEST(test_line),
        TEST(test_gone),       TEST(test_leaves),    TEST(test_forgives),
        TEST(test_older_time), TEST(test_addresses), TEST(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
