/* What an exptime means while the wall clock is set, for a key of kind plain; by clocks of the
 * test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "plain/plain.h"
#include "request/command.h"

#define SECOND_US 1000000u
#define WALL_S    1700000000u
#define HOUR_S    3600u

static uint64_t wall_s;
static uint64_t monotonic_us;

uint64_t clock_wall_s(void)
{
    return wall_s;
}

uint64_t clock_monotonic_us(void)
{
    return monotonic_us;
}

uint64_t clock_random(void)
{
    return 1;
}

/* Both clocks go on. */
static void pass(uint64_t seconds)
{
    wall_s += seconds;
    monotonic_us += seconds * SECOND_US;
}

static struct engine *engine;

static int make(void **state)
{
    const struct plain_config config = {.memory_bytes = 1u << 20, .item_bytes_max = 4096};

    (void)state;
    wall_s = WALL_S;
    monotonic_us = 5; /* just booted: the first second of all */
    engine = plain_create(&config);
    return engine == NULL;
}

static int drop(void **state)
{
    (void)state;
    plain_check(engine);
    engine->functions->destroy(engine);
    return 0;
}

static struct engine_op op_on(enum engine_verb verb)
{
    return (struct engine_op){
        .verb = verb, .member = "k", .member_length = 1, .text = "1", .text_length = 1};
}

static void store(int64_t exptime)
{
    struct engine_op op = op_on(ENGINE_SET);
    struct engine_op *ops = &op;

    op.expires_s = command_exptime_at(exptime);
    engine->functions->prepare(engine, &ops, 1);
    engine->functions->change(engine, &op, NULL);
    assert_int_equal(op.status, ENGINE_DONE);
}

static bool note(void *context, const struct plain_hit *hit)
{
    *(int32_t *)context = hit->ttl_s;
    return true;
}

/* The seconds left; -1: for ever; -2: it is not there. */
static int32_t left(void)
{
    struct engine_op op = op_on(ENGINE_READ);
    struct engine_op *ops = &op;
    int32_t ttl_s = -2;

    engine->functions->prepare(engine, &ops, 1);
    plain_visit(engine, &op, false, note, &ttl_s);
    return ttl_s;
}

/* 100 seconds are left; whatever the wall clock is set to, they stay. */
static void expect_steady(void)
{
    assert_int_equal(left(), 100);
    wall_s += HOUR_S;
    assert_int_equal(left(), 100);
    wall_s -= 2 * HOUR_S;
    assert_int_equal(left(), 100);
    pass(99);
    assert_int_equal(left(), 1);
    wall_s = 0;
    assert_int_equal(left(), 1);
    pass(1);
    wall_s = 1; /* long before it was stored: it does not come back */
    assert_int_equal(left(), -2);
}

static void test_relative(void **state)
{
    (void)state;
    store(100);
    expect_steady();
}

static void test_date(void **state)
{
    (void)state;
    store(WALL_S + 100);
    expect_steady();
}

static void test_values(void **state)
{
    (void)state;
    pass(1000);
    store(0);
    assert_int_equal(left(), -1);
    store(-1);
    assert_int_equal(left(), -2);
    store((int64_t)wall_s);
    assert_int_equal(left(), -2);
    store((int64_t)wall_s + 1);
    assert_int_equal(left(), 1);
    store(1);
    assert_int_equal(left(), 1);
    store(COMMAND_EXPTIME_RELATIVE_MAX);
    assert_int_equal(left(), COMMAND_EXPTIME_RELATIVE_MAX);
    store(COMMAND_EXPTIME_RELATIVE_MAX + 1); /* a date in 1970 */
    assert_int_equal(left(), -2);
}

/* In the first second since the boot, too, what is past is past. */
static void test_booted(void **state)
{
    (void)state;
    store(-1);
    assert_int_equal(left(), -2);
    assert_int_equal(command_exptime_at(0), 0);
    assert_int_equal(command_exptime_at(-1), 1);
    assert_int_equal(clock_monotonic_s(), 1);
}

static void test_flush(void **state)
{
    (void)state;
    store(0);
    plain_clear_later(engine, command_exptime_at(100));
    wall_s += HOUR_S;
    assert_int_equal(left(), -1);
    pass(100);
    wall_s = 1;
    assert_int_equal(left(), -2);
    wall_s = WALL_S;
    for (int i = 0; i < 3; i++) { /* one of the past is done now, each time */
        store(0);
        plain_clear_later(engine, command_exptime_at(COMMAND_EXPTIME_RELATIVE_MAX + 1));
        assert_int_equal(left(), -2);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        TEST(test_relative), TEST(test_date),  TEST(test_values),
        TEST(test_booted),   TEST(test_flush),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
