/* test_admin_history.c: rates and trends from samples, also when there are few, or spaces change.
 */
#include "admin/admin_history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND_US 1000000ull
#define MINUTE_US (60 * SECOND_US)
#define START_US  (5 * SECOND_US)

static void tick(struct admin_history *history, uint64_t second, uint64_t reads, uint64_t wall_s)
{
    struct admin_sample sample = {.at_us = START_US + second * SECOND_US,
                                  .counted = {[ADMIN_READS] = reads}};

    admin_history_second(history, &sample, wall_s);
}

static void test_rates(void **unused)
{
    struct admin_history *history = admin_history_create();
    double rates[6];

    (void)unused;
    assert_true(admin_history_rates(history, false, ADMIN_READS, rates, 6) == 0);
    for (uint64_t second = 0; second <= 20; second++) {
        tick(history, second, 50 * second, second);
    }
    /* less than a part of the ten minutes: what there is */
    assert_true(admin_history_rates(history, false, ADMIN_READS, rates, 6) == 50);
    assert_true(rates[5] < 0);
    for (uint64_t second = 21; second <= 1500; second++) {
        tick(history, second, 1000 + 10 * (second - 20), second);
    }
    assert_true(admin_history_rates(history, false, ADMIN_READS, rates, 6) == 10);
    for (size_t i = 0; i < 6; i++) {
        assert_true(rates[i] == 10);
    }
    admin_history_destroy(history);
}

static void test_jump(void **unused)
{
    struct admin_history *history = admin_history_create();
    int64_t by_s;
    uint64_t ago_s;

    (void)unused;
    tick(history, 0, 0, 1000);
    tick(history, 1, 0, 1001);
    tick(history, 2, 0, 1003); /* a second late is none */
    assert_false(admin_history_jump(history, START_US + 2 * SECOND_US, &by_s, &ago_s));
    tick(history, 3, 0, 904);
    assert_true(admin_history_jump(history, START_US + 8 * SECOND_US, &by_s, &ago_s));
    assert_int_equal(by_s, -100);
    assert_int_equal(ago_s, 5);
    static struct admin_figures figures;
    admin_history_tell(history, &figures);
    assert_int_equal(figures.clock_jumps, 1);
    assert_false(admin_history_jump(history, START_US + 90000 * SECOND_US, &by_s, &ago_s));
    admin_history_destroy(history);
}

static struct admin_figures *figures_of(uint64_t minute, const char *name)
{
    struct admin_figures *figures = calloc(1, sizeof(*figures));

    assert_non_null(figures);
    figures->now_us = START_US + minute * MINUTE_US;
    figures->space_count = 1;
    strcpy(figures->spaces[0].name, name);
    return figures;
}

static void minute(struct admin_history *history, uint64_t at, uint64_t held, uint64_t refused)
{
    struct admin_figures *figures = figures_of(at, "feed");

    figures->spaces[0].held = held;
    figures->spaces[0].recycled = 7;
    figures->spaces[0].refused[ADMIN_REASON_no_table] = refused;
    figures->data.dump_failures = at;
    assert_true(admin_history_minute_due(history, figures->now_us));
    admin_history_minute(history, figures);
    assert_false(admin_history_minute_due(history, figures->now_us + 1));
    free(figures);
}

static struct admin_trend trend_of(const struct admin_history *history, uint64_t at, uint64_t held,
                                   uint64_t refused)
{
    struct admin_figures *figures = figures_of(at, "feed");
    struct admin_trend trend;

    figures->spaces[0].held = held;
    figures->spaces[0].recycled = 7;
    figures->spaces[0].refused[ADMIN_REASON_no_table] = refused;
    admin_history_trend(history, figures, &figures->spaces[0], &trend);
    free(figures);
    return trend;
}

static void test_trend(void **unused)
{
    struct admin_history *history = admin_history_create();

    (void)unused;
    assert_false(trend_of(history, 0, 100, 0).known);
    for (uint64_t at = 0; at <= 100; at++) {
        minute(history, at, 6000 * at, at < 50 ? 0 : 3 * (at - 50));
    }
    struct admin_trend trend = trend_of(history, 100, 600000, 150);

    assert_true(trend.known && trend.added_each_s == 100);
    assert_int_equal(trend.refused[0], 27); /* nine minutes */
    assert_int_equal(trend.refused[1], 0);
    /* more was deleted than added: no forecast, and no nonsense */
    assert_true(trend_of(history, 101, 0, 150).added_each_s == 0);
    /* a new space of that name has refused less than the old one */
    assert_int_equal(trend_of(history, 100, 0, 4).refused[0], 4);
    admin_history_destroy(history);
}

static void test_events(void **unused)
{
    struct admin_history *history = admin_history_create();
    struct admin_figures *figures = figures_of(30, "feed");
    struct admin_events grown;

    (void)unused;
    admin_history_events(history, figures, &grown);
    assert_int_equal(grown.dump_failures, 0);
    for (uint64_t at = 0; at <= 30; at++) {
        minute(history, at, 0, 0);
    }
    figures->data.dump_failures = 31;
    admin_history_events(history, figures, &grown);
    assert_int_equal(grown.dump_failures, 31 - 21);
    free(figures);
    admin_history_destroy(history);
}

/* A day of a space, and spaces that come and go. */
static void test_rings(void **unused)
{
    struct admin_history *history = admin_history_create();
    char name[16];

    (void)unused;
    for (uint64_t at = 0; at < 3000; at++) {
        minute(history, at, at < 1500 ? 0 : 600 * (at - 1500), 0);
    }
    struct admin_trend trend = trend_of(history, 2999, 600 * 1499, 0);

    assert_true(trend.watched_s <= 86400 && trend.watched_s > 85000);
    assert_true(trend.added_each_s > 9.9 && trend.added_each_s <= 10.1);
    for (uint64_t at = 0; at < 200; at++) {
        snprintf(name, sizeof(name), "s%llu", (unsigned long long)at);
        struct admin_figures *figures = figures_of(3000 + at, name);

        admin_history_minute(history, figures);
        free(figures);
    }
    assert_false(trend_of(history, 3300, 0, 0).known);
    admin_history_destroy(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),  cmocka_unit_test(test_jump),  cmocka_unit_test(test_trend),
        cmocka_unit_test(test_events), cmocka_unit_test(test_rings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
