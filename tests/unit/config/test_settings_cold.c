/* test_settings_cold.c: how cold.cache is divided between pages and records below the tables. */
#include "config/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/cold.h"
#include "tests/unit/config/settings_run.h"

#define KIB 1024ull

static uint64_t pages_of(const struct settings *settings)
{
    struct cold_config config;

    settings_cold_config(settings, &config);
    return config.cache_bytes;
}

/* A share each for those of role cache that drop tables, and for the pages, if there are any. */
static void test_shares(void **unused)
{
    static const char spaces[] =
        "data: /x\ncold: {cache: 9M}\nspaces:\n"
        "  store: {kind: counter, slots: {a: 9}, oldest: recycle}\n"
        "  dumps: {kind: counter, slots: {a: 9}, role: cache}\n"
        "  some: {kind: counter, slots: {a: 9}, role: cache, dumps-max: 3}\n"
        "  small: {kind: counter, slots: {a: 9}, role: cache, oldest: recycle,\n"
        "          table-size: 64K}\n"
        "  full: {kind: counter, slots: {a: 9}, role: cache, oldest: refuse}\n"
        "  any: {kind: counter, slots: {a: 9}, role: cache, ids: any}\n"
        "  seen: {kind: phantom, role: cache, oldest: recycle}\n";
    struct run run;

    (void)unused;
    good(&run, spaces, "");
    const struct space_settings *space = run.settings->spaces;

    for (size_t i = 0; i < run.settings->space_count; i++) {
        uint64_t wanted = i == 2 ? 3 * MIB : i == 3 ? 64 * KIB : 0;
        assert_int_equal(space[i].below_bytes, wanted);
    }
    assert_int_equal(pages_of(run.settings), 6 * MIB - 64 * KIB);
    finish(&run);
    good(&run, spaces, "--set cold.cache=0");
    assert_int_equal(run.settings->spaces[2].below_bytes, 0);
    assert_int_equal(pages_of(run.settings), 0);
    finish(&run);
}

/* Without pages the spaces have all of it; it counts in the sum once. */
static void test_sum(void **unused)
{
    struct run with, without;
    struct counter_config config;

    (void)unused;
    good(&without, "spaces: {s: {kind: counter, slots: {a: 9}, role: cache}}",
         "-t 2 --set cold.cache=0");
    good(&with, "spaces: {s: {kind: counter, slots: {a: 9}, role: cache}}",
         "-t 2 --set cold.cache=5M");
    assert_int_equal(with.settings->spaces[0].below_bytes, 5 * MIB);
    settings_counter_config(&with.settings->spaces[0], 0, &config);
    assert_int_equal(config.below_bytes, 5 * MIB);
    assert_true(settings_memory_sum(with.settings, NULL) ==
                settings_memory_sum(without.settings, NULL) + 5 * MIB);
    assert_true(settings_space_bytes(&with.settings->spaces[0]) ==
                settings_space_bytes(&without.settings->spaces[0]) + 5 * MIB);
    finish(&with);
    good(&with, "spaces: {s: {kind: counter, slots: {a: 9}}}", "-t 2");
    assert_int_equal(with.settings->spaces[0].below_bytes, 0);
    finish(&with);
    finish(&without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_sum),
    };
    return cmocka_run_group_tests(tests, settings_run_enter, settings_run_leave);
}
