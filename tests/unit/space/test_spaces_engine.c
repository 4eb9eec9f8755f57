/* What the log says a space holds, and that it is what the engine is asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "space/spaces.h"

#define MIB (1ull << 20)

static struct space_settings counter(const char *name, unsigned tables, enum space_oldest oldest)
{
    struct space_settings settings = {
        .kind = SPACE_COUNTER,
        .slot_count = 4,
        .row.table_bytes = 16 * MIB,
        .row.tables = tables,
        .oldest = oldest,
        .row.late_room = -1,
        .max_id = COUNTER_MAX_ID_DEFAULT,
    };
    static const char *const slots[] = {"repost", "comment", "like", "read"};

    strcpy(settings.name, name);
    for (size_t i = 0; i < settings.slot_count; i++) {
        strcpy(settings.slots[i].name, slots[i]);
        settings.slots[i].bits = 20;
    }
    return settings;
}

static struct space_settings phantom(const char *name, unsigned tables, enum space_oldest oldest)
{
    struct space_settings settings = counter(name, tables, oldest);

    settings.kind = SPACE_PHANTOM;
    settings.false_positives = 0.001;
    return settings;
}

/* The line is the form with the numbers the engine gives, and the end. */
static void expect_counter_ending(const struct space_settings *settings, const char *form,
                                  const char *end)
{
    struct counter_config config;
    struct counter_size size;
    char wanted[256];
    char line[256];

    settings_counter_config(settings, 0, &config);
    counter_config_size(&config, &size);
    snprintf(wanted, sizeof(wanted), "%s about %.1f million ids, %.1f bytes each%s", form,
             (double)size.records / 1e6, size.bytes_per_record, end);
    space_describe(settings, line, sizeof(line));
    assert_string_equal(line, wanted);
}

static void expect_counter(const struct space_settings *settings, const char *form)
{
    expect_counter_ending(settings, form, "");
}

static void test_counters(void **state)
{
    struct space_settings rolling = counter("feed", 5, SPACE_OLDEST_RECYCLE);
    struct space_settings refusing = counter("feed", 5, SPACE_OLDEST_REFUSE);
    struct space_settings two = counter("feed", 2, SPACE_OLDEST_RECYCLE);
    struct space_settings lone = counter("feed", 1, SPACE_OLDEST_REFUSE);
    struct space_settings any = counter("user", 5, SPACE_OLDEST_REFUSE);

    (void)state;
    any.ids = SPACE_IDS_ANY;
    any.row.table_bytes = 1024 * MIB;
    expect_counter(&rolling, "feed: 4 + 1 tables x 16 MiB,");
    expect_counter(&refusing, "feed: 5 tables x 16 MiB,");
    expect_counter(&two, "feed: 1 + 1 tables x 16 MiB,");
    lone.row.table_bytes = 64 * MIB;
    expect_counter(&lone, "feed: 1 table x 64 MiB,");
    expect_counter_ending(&any, "user: 1 GiB set aside, for",
                          "; it grows as far as `memory` allows");
}

static void test_phantoms(void **state)
{
    struct space_settings rolling = phantom("liked", 5, SPACE_OLDEST_RECYCLE);
    struct space_settings any = phantom("seen", 5, SPACE_OLDEST_REFUSE);
    struct phantom_config config;
    struct phantom_size size;
    char wanted[256];
    char line[256];

    (void)state;
    settings_phantom_config(&rolling, 0, &config);
    phantom_config_size(&config, &size);
    snprintf(wanted, sizeof(wanted),
             "liked: 4 + 1 tables x 16 MiB, about %.1f million members, %.1f bits each, 1 in 1000 "
             "wrong",
             (double)size.members / 1e6, size.bits_per_member);
    space_describe(&rolling, line, sizeof(line));
    assert_string_equal(line, wanted);
    any.ids = SPACE_IDS_ANY;
    space_describe(&any, line, sizeof(line));
    assert_int_equal(strncmp(line, "seen: 1 table x 16 MiB, ", 24), 0);
}

/* Memory grows with the tables, and the records with those that are not spare. */
static void test_sizes(void **state)
{
    struct space_settings five = counter("feed", 5, SPACE_OLDEST_RECYCLE);
    struct space_settings ten = counter("feed", 10, SPACE_OLDEST_RECYCLE);
    struct counter_config config;
    struct counter_size small;
    struct counter_size large;

    (void)state;
    settings_counter_config(&five, 0, &config);
    counter_config_size(&config, &small);
    settings_counter_config(&ten, 0, &config);
    counter_config_size(&config, &large);
    assert_in_range(large.bytes, 2 * small.bytes - small.bytes / 32, 2 * small.bytes);
    assert_true(large.tables == 9 && large.spare == 1);
    assert_int_equal(large.records * 4, small.records * 9);
    assert_true(small.bytes >= 5 * 16 * MIB && small.bytes < 5 * 20 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_phantoms),
        cmocka_unit_test(test_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
