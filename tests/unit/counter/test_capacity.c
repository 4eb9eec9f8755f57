/*
 * test_capacity.c: fills tables until they refuse and prints what a record costs; and looks at what
 * has spilled at the capacity of every number of places. ROLLCALL_TEST_LONG=1 adds a table of 1
 * GiB.
 */
#include "counter/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/counters.h"
#include "tests/support/random.h"

#define MIB             (1ull << 20)
#define FIRST_SECOND    1700000000ull
#define SECOND_SHIFT    22
#define A_SECOND        2000u
#define SPILLED_AIM     0.010
#define SPILLED_MOST    0.011 /* at 16 MiB: the constants are rounded down */
#define UNLUCKY_MAX     3     /* in some millions of ids */
#define SPILLED_SMALL   0.040 /* at 64 KiB: a page more or less full tells */
#define REACHED_LEAST   0.96
#define BYTES_MAX_4X20  15.0
#define BYTES_MAX_2X16  7.5
#define PLACES_SEEN_MIN 12u
#define CHECK_BYTES_MAX (64 * MIB)

struct ids {
    const char *name;
    uint64_t (*id)(uint64_t index);
    uint64_t spacing;
};

static uint64_t dense(uint64_t index)
{
    return 1000000 + index;
}

static uint64_t seconds(uint64_t index)
{
    return (FIRST_SECOND + index / A_SECOND) << SECOND_SHIFT | index % A_SECOND;
}

static const struct ids shapes[] = {
    {"dense", dense, 1},
    {"seconds<<22", seconds, (1u << SECOND_SHIFT) / A_SECOND},
};

/* Every slot becomes 1. */
static enum engine_status decide_ones(const struct counter_edit *edit, bool present,
                                      const struct counter_values *before,
                                      struct counter_values *after)
{
    (void)present;
    (void)before;
    after->set = edit->named;
    for (unsigned i = 0; i < edit->view->slot_count; i++) {
        after->value[i] = 1;
    }
    return ENGINE_DONE;
}

/*
 * Inserts ids 0 .. until the table refuses or `most` were tried; returns why it refused. `unlucky`
 * of them may find all buckets of the extend dict full that their hashes allow.
 */
static enum engine_error fill(struct counter_table *table, uint64_t (*id)(uint64_t), uint64_t most,
                              unsigned unlucky)
{
    uint32_t all = counter_view_all(counter_table_view(table));
    enum engine_error error = ENGINE_E_NONE;
    for (uint64_t i = 0; i < most; i++) {
        struct counter_locus locus;
        counter_table_locate(table, id(i), true, &locus);
        struct counter_edit edit = {.named = all, .decide = decide_ones};
        if (counter_table_edit(table, &locus, &edit, 0, change_sink_null(), &error) !=
            ENGINE_DONE) {
            if (error != ENGINE_E_OUT_OF_MEMORY || unlucky-- == 0) {
                return error;
            }
        }
    }
    return ENGINE_E_NONE;
}

static void fill_and_print(const char *slots, uint64_t table_bytes, const struct ids *ids,
                           double bytes_max)
{
    struct counter_config config;
    counters_config(&config, slots);
    config.row.table_bytes = table_bytes;
    config.id_spacing = ids->spacing;
    struct counters_table opened;
    counters_table_open(&opened, &config, ids->id(0));
    struct counter_table *table = opened.table;
    const struct counter_shape *shape = counter_table_shape(table);
    enum engine_error error = fill(table, ids->id, UINT64_MAX, 0);
    assert_int_equal(error, ENGINE_E_NO_TABLE_FREE);
    struct counter_table_stats stats;
    counter_table_stats(table, &stats);
    double bytes = (double)table_bytes / (double)stats.records;
    double spilled = (double)stats.extend / (double)stats.records;
    printf("%-10s %-11s %8" PRIu64 " KiB: %9" PRIu64 " records, %5.2f bytes each (%5.2f with "
           "pools), %.2f %% spilled\n",
           slots[1] == ':' && shape->payload_bytes == 4 ? "2 x 16" : "4 x 20", ids->name,
           table_bytes >> 10, stats.records, bytes,
           bytes + (double)(stats.extend_pool_bytes + stats.aux_pool_bytes) / (double)stats.records,
           100 * spilled);
    /* A small table may meet a full extend dict first. */
    assert_true((double)stats.records >= REACHED_LEAST * (double)shape->capacity);
    assert_true(stats.records <= shape->capacity);
    assert_true(bytes <= bytes_max);
    assert_true(spilled < SPILLED_SMALL);
    if (table_bytes <= CHECK_BYTES_MAX) {
        counter_table_check(table);
    }
    counters_table_close(&opened);
}

/* Large tables are numbered so that, where few are chosen, they are of both layouts. */
static void fill_size(uint64_t table_bytes)
{
    const size_t count = sizeof(shapes) / sizeof(*shapes);
    for (size_t i = 0; i < count; i++) {
        if (table_bytes < MIB || test_chosen(i)) {
            fill_and_print("a:20 b:20 c:20 d:20", table_bytes, &shapes[i], BYTES_MAX_4X20);
        }
        if (table_bytes < MIB || test_chosen(2 * count - 1 - i)) {
            fill_and_print("a:16 b:16", table_bytes, &shapes[i], BYTES_MAX_2X16);
        }
    }
}

static void test_64_kib(void **unused)
{
    (void)unused;
    fill_size(64u << 10);
}

static void test_16_mib(void **unused)
{
    (void)unused;
    fill_size(16 * MIB);
}

static void test_1_gib(void **unused)
{
    (void)unused;
    if (!test_long()) {
        print_message("1 GiB only with ROLLCALL_TEST_LONG=1\n");
        skip();
    }
    fill_size(1024 * MIB);
}

static void slots_of_bytes(struct counter_config *config, unsigned bytes)
{
    config->slot_count = 0;
    for (unsigned left = 8 * bytes; left > 0; config->slot_count++) {
        struct counter_slot *slot = &config->slots[config->slot_count];
        snprintf(slot->name, sizeof(slot->name), "s%zu", config->slot_count);
        slot->bits = left > 64 ? 64 : left;
        left -= slot->bits;
    }
}

static uint64_t scattered(uint64_t index)
{
    return index * 7 + (hash_u64(index) & 3);
}

/* About 1 % have spilled at the capacity the shape promises, however many places a group has. */
static void expect_spilled(const struct counter_config *config, const struct counter_shape *shape)
{
    struct counters_table opened;
    counters_table_open(&opened, config, scattered(0));
    assert_int_equal(fill(opened.table, scattered, shape->capacity, UNLUCKY_MAX), ENGINE_E_NONE);
    struct counter_table_stats stats;
    counter_table_stats(opened.table, &stats);
    double spilled = (double)stats.extend / (double)stats.records;
    printf("%3u bytes, %2u places: %.3f full, %.2f %% spilled\n", shape->group_bytes, shape->places,
           (double)shape->capacity / (double)(shape->groups * shape->places), 100 * spilled);
    assert_true(spilled <= SPILLED_MOST);
    assert_true(spilled >= SPILLED_AIM / 2 || shape->places > 16);
    counters_table_close(&opened);
}

static void test_spilled_at_capacity(void **unused)
{
    (void)unused;
    bool seen[2][64] = {{false}};
    unsigned count = 0;
    for (unsigned bytes = 1; bytes <= COUNTER_RECORD_BITS_MAX / 8; bytes++) {
        struct counter_config config;
        struct counter_shape shape;
        counters_config(&config, "a:2");
        slots_of_bytes(&config, bytes);
        config.row.table_bytes = 16 * MIB;
        config.id_spacing = 8;
        counter_shape_init(&shape, &config, 0);
        bool *this = &seen[shape.group_bytes == TABLE_WIDE_BYTES][shape.places];
        if (!*this && test_chosen(count++)) {
            expect_spilled(&config, &shape);
        }
        *this = true;
    }
    assert_true(count >= PLACES_SEEN_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_64_kib),
        cmocka_unit_test(test_16_mib),
        cmocka_unit_test(test_1_gib),
        cmocka_unit_test(test_spilled_at_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
