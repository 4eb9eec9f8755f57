/* test_table_describe.c: what a table is, as bytes and back; what is damaged is refused. */
#include "counter/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/dict.h"
#include "base/memory.h"
#include "row/row_log.h"
#include "tests/support/counters.h"
#include "tests/support/random.h"

#define SLOTS "a:20 b:4 c:20"

/* The longest there is: all slots and extras, names of 32 characters. */
static void describe_longest(unsigned char *bytes, size_t *length)
{
    struct counter_config config;
    struct counters_table opened;
    counters_config(&config, "x:2");
    config.slot_count = ENGINE_SLOTS_MAX;
    unsigned named = ENGINE_SLOTS_MAX + SCHEMA_EXTRAS_MAX;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < ENGINE_SLOTS_MAX && round * ENGINE_SLOTS_MAX + i < named; i++) {
            config.slots[i].bits = 2 + i;
            snprintf(config.slots[i].name, sizeof(config.slots[i].name), "%0*u",
                     ENGINE_SPACE_NAME_MAX, round * ENGINE_SLOTS_MAX + i);
        }
        if (round == 0) {
            counters_table_open(&opened, &config, 1ull << 40);
        } else {
            assert_true(counter_table_can_view(opened.table, &config));
            counter_table_set_view(opened.table, &config);
        }
    }
    *length = counter_table_describe(opened.table, bytes, NULL);
    counters_table_close(&opened);
}

static struct counter_table *describe_back(const struct counter_config *config,
                                           const unsigned char *bytes, size_t length, void *region,
                                           bool first)
{
    struct row_want want = {.first = first,
                            .description = bytes,
                            .description_bytes = length,
                            .region = region,
                            .region_bytes = config->row.table_bytes};
    return counter_table_create(config, &want, NULL);
}

static void test_description(void **unused)
{
    (void)unused;
    unsigned char bytes[ROW_DESCRIPTION_MAX];
    unsigned char again[ROW_DESCRIPTION_MAX];
    size_t length;
    struct counter_config config;
    describe_longest(bytes, &length);
    assert_in_range(length, 1400, ROW_DESCRIPTION_MAX);
    counters_config(&config, SLOTS);
    assert_int_equal(counter_table_described_bytes(bytes, length), config.row.table_bytes);
    void *region = memory_region_create(config.row.table_bytes);
    assert_null(describe_back(&config, bytes, length, region, true)); /* it is settled */
    struct counter_table *table = describe_back(&config, bytes, length, region, false);
    assert_non_null(table);
    assert_true(counter_table_is_previewed(table)); /* it does not know these slots */
    assert_int_equal(counter_table_describe(table, again, NULL), length);
    assert_memory_equal(bytes, again, length);
    counter_table_destroy(table);
    memory_region_destroy(region, config.row.table_bytes);
}

/* What is taken for one must be one that can be made. */
static void test_damaged_description(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    struct counter_config config;
    unsigned char bytes[ROW_DESCRIPTION_MAX];
    unsigned char damaged[ROW_DESCRIPTION_MAX + 8];
    size_t length;
    counters_config(&config, SLOTS);
    describe_longest(bytes, &length);
    for (size_t cut = 0; cut < length; cut++) {
        assert_int_equal(counter_table_described_bytes(bytes, cut), 0);
    }
    memset(damaged, 0, sizeof(damaged));
    memcpy(damaged, bytes, length);
    assert_int_equal(counter_table_described_bytes(damaged, length + 1), 0); /* a byte too many */
    void *region = memory_region_create(config.row.table_bytes);
    uint64_t taken = 0;
    for (uint64_t i = test_scaled(100000); i > 0; i--) {
        memcpy(damaged, bytes, length);
        /* Mostly among the numbers: names may be any. */
        size_t at = test_random_below(&random, test_random_once_in(&random, 4) ? length : 130);
        damaged[at] = (unsigned char)test_random_next(&random);
        uint64_t wanted = counter_table_described_bytes(damaged, length);
        if (wanted != config.row.table_bytes) {
            continue;
        }
        struct counter_table *table = describe_back(&config, damaged, length, region, false);
        taken += table != NULL;
        counter_table_destroy(table);
    }
    assert_true(taken > 0);
    memory_region_destroy(region, config.row.table_bytes);
}

static void note_id(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    uint64_t *sum = context;
    (void)sub, (void)value;
    *sum += id;
}

/* What lies apart is told, and forgotten. */
static void test_apart(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct counters_table opened;
    counters_config(&config, SLOTS);
    counters_apart_open(&opened, &config);
    for (uint64_t id = 100; id < 105; id++) {
        struct counter_locus locus;
        struct change change = {.type = CHANGE_SLOTS,
                                .place = CHANGE_APART,
                                .id = id,
                                .named = 1,
                                .set = 1,
                                .values = {1}};
        bool created = false;
        counter_table_locate(opened.table, id, true, &locus);
        assert_int_equal(counter_table_replay(opened.table, &locus, &change, &created),
                         COUNTER_REPLAYED);
        assert_true(created);
    }
    const struct dict *front;
    uint64_t sum = 0;
    dict_each(counter_table_section(opened.table, COUNTER_TABLE_EXTEND, 0, &front), note_id, &sum);
    assert_int_equal(sum, 510);
    assert_int_equal(counter_table_forget(opened.table, 0, 102), 3);
    sum = 0;
    dict_each(counter_table_section(opened.table, COUNTER_TABLE_EXTEND, 0, &front), note_id, &sum);
    assert_int_equal(sum, 103 + 104);
    counters_table_close(&opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_description),
        cmocka_unit_test(test_damaged_description),
        cmocka_unit_test(test_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
