/* test_forecast.c: what a space costs and holds is what the engines say, and when it is full. */
#include "config/forecast.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/unit/config/settings_run.h"

static void test_counters(void **unused)
{
    struct run run;
    struct settings *settings =
        good(&run,
             "spaces:\n  feed: {kind: counter, slots: {like: 20}, table-size: 1MiB, "
             "tables: 5, oldest: recycle}\n  users: {kind: counter, slots: {n: 8}, ids: any, "
             "table-size: 2MiB}\n",
             "-m 1024");
    struct counter_config config;
    struct counter_size size;
    struct forecast forecast;

    (void)unused;
    settings_counter_config(&settings->spaces[0], 0, &config);
    counter_config_size(&config, &size);
    forecast_space(&settings->spaces[0], 0, &forecast);
    assert_int_equal(forecast.bytes, size.bytes);
    assert_int_equal(forecast.tables, 4);
    assert_int_equal(forecast.spare, 1);
    assert_int_equal(forecast.holds, size.records);
    assert_int_equal(forecast.table_holds, size.records / 4);
    assert_int_equal(forecast.table_memory, size.bytes / 5);
    assert_true(forecast.late_room == COUNTER_LATE_START);
    assert_int_equal(settings_space_bytes(&settings->spaces[0]), size.bytes);
    forecast_space(&settings->spaces[1], 1, &forecast);
    assert_int_equal(forecast.tables + forecast.spare, 1);
    assert_true(forecast.late_room == 0);
    finish(&run);
}

static void test_others(void **unused)
{
    struct run run;
    struct settings *settings =
        good(&run,
             "spaces:\n  liked: {kind: phantom, table-size: 1MiB, tables: 3, late-room: 0.25, "
             "oldest: recycle}\n  other: {kind: plain, memory: 8MiB}\n",
             "-m 1024");
    struct phantom_config config;
    struct phantom_size size;
    struct forecast forecast;

    (void)unused;
    settings_phantom_config(&settings->spaces[0], 0, &config);
    phantom_config_size(&config, &size);
    forecast_space(&settings->spaces[0], 0, &forecast);
    assert_int_equal(forecast.bytes, size.bytes);
    assert_int_equal(forecast.holds, size.members);
    assert_true(forecast.bytes_each * 8 == size.bits_per_member);
    assert_true(forecast.late_room == 0.25);
    forecast_space(&settings->spaces[1], 1, &forecast);
    assert_int_equal(forecast.bytes, 8 << 20);
    assert_int_equal(forecast.tables, 0);
    finish(&run);
}

static void test_room(void **unused)
{
    struct forecast_room room = {.capacity = 1000, .held = 400, .free_tables = 2};

    (void)unused;
    /* one stays free where tables roll */
    assert_int_equal(forecast_places(&room), 600 + 1000);
    assert_true(forecast_full_in_s(&room, 100) == 16);
    assert_true(forecast_full_in_s(&room, 0) < 0);
    assert_true(forecast_full_in_s(&room, -1) < 0);
    room.refuses = true;
    assert_int_equal(forecast_places(&room), 600 + 2000);
    room.any_ids = true;
    assert_int_equal(forecast_places(&room), 600);
    room.held = 1001;
    assert_int_equal(forecast_places(&room), 0);
    assert_true(forecast_full_in_s(&room, 0) == 0); /* it refuses now, whatever the rate */
    room.refuses = false;
    assert_true(forecast_full_in_s(&room, 0) < 0);
    room = (struct forecast_room){.refuses = true};
    assert_true(forecast_full_in_s(&room, 0) < 0); /* no table yet */
}

struct pairs {
    size_t count, tables;
};

static void take_key(void *context, const char *key, const char *text)
{
    struct pairs *pairs = context;
    char name[SETTINGS_STAT_NAME_MAX];

    settings_stat_name(key, name);
    pairs->count++;
    if (strcmp(key, "spaces.a-b.table-size") == 0) {
        assert_string_equal(name, "space_a_b_table_size");
        assert_string_equal(text, "1MiB");
        pairs->tables++;
    }
    assert_null(strpbrk(name, "-."));
}

static void test_keys(void **unused)
{
    struct run run;
    struct settings *settings = good(
        &run, "spaces:\n  a-b: {kind: counter, slots: {like: 20}, table-size: 1MiB}\n", "-m 1024");
    struct pairs pairs = {0, 0};

    (void)unused;
    settings_each_key(settings, take_key, &pairs);
    assert_int_equal(pairs.tables, 1);
    assert_true(pairs.count > 40);
    finish(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_keys),
    };

    return cmocka_run_group_tests(tests, settings_run_enter, settings_run_leave);
}
