/* test_schema.c: layout of a record, views of changed configurations, what is no configuration. */
#include "counter/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "counter/table.h"
#include "tests/support/counters.h"

static void make(struct counter_schema *schema, const char *slots)
{
    struct counter_config config;
    counters_config(&config, slots);
    counter_schema_init(schema, &config);
}

static bool view(struct counter_view *view, struct counter_schema *schema, const char *slots)
{
    struct counter_config config;
    counters_config(&config, slots);
    return counter_view_make(view, schema, &config);
}

static void test_layout(void **unused)
{
    (void)unused;
    struct counter_schema schema;
    make(&schema, "repost:20 comment:20 like:20 read:20");
    assert_int_equal(schema.payload_bytes, 10);
    assert_int_equal(schema.offset[3], 60);
    make(&schema, "a:2");
    assert_int_equal(schema.payload_bytes, 1);
    make(&schema, "a:64 b:64 c:64 d:64 e:64 f:64 g:64 h:64");
    assert_int_equal(schema.payload_bytes, COUNTER_RECORD_BITS_MAX / 8);
    make(&schema, "a:3 b:6");
    assert_int_equal(schema.payload_bytes, 2);
}

static void test_edges_of_bits(void **unused)
{
    (void)unused;
    for (unsigned bits = COUNTER_SLOT_BITS_MIN; bits <= COUNTER_SLOT_BITS_MAX; bits++) {
        char text[32];
        snprintf(text, sizeof(text), "a:%u", bits);
        struct counter_schema schema;
        struct counter_view v;
        make(&schema, text);
        assert_true(view(&v, &schema, text));
        uint64_t all_ones = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
        assert_true(counter_slot_in_aux(bits) == all_ones);
        assert_true(v.slots[0].aux_from == all_ones - 1); /* 2^b - 2 */
    }
}

static void test_view_by_name(void **unused)
{
    (void)unused;
    struct counter_schema schema;
    struct counter_view before, after;
    make(&schema, "a:10 b:20 c:30");
    assert_true(view(&before, &schema, "a:10 b:20 c:30"));
    assert_int_equal(counter_view_all(&before), 7);
    assert_int_equal(before.aux_only, 0);
    assert_true(view(&after, &schema, "new:5 c:60 a:10"));
    assert_int_equal(after.slot_count, 3);
    assert_int_equal(after.aux_only, 1);
    assert_int_equal(after.slots[0].physical, SCHEMA_AUX_ONLY);
    assert_int_equal(after.slots[0].sub, ENGINE_SLOTS_MAX);
    assert_int_equal(after.slots[1].physical, 2);
    assert_true(after.slots[1].field.mask ==
                (1u << 30) - 1); /* the table's, whatever the configuration says */
    assert_int_equal(after.slots[1].field.first, 30);
    assert_int_equal(after.slots[1].field.last, 59);
    assert_int_equal(schema.extra_count, 1);
    /* A name keeps its sub-key, and comes back to it. */
    assert_true(view(&after, &schema, "other:5 a:9 new:64"));
    assert_int_equal(after.slots[0].sub, ENGINE_SLOTS_MAX + 1);
    assert_int_equal(after.slots[2].sub, ENGINE_SLOTS_MAX);
    assert_int_equal(after.aux_only, 5);
}

static bool same_slots(const struct counter_schema *schema, const char *slots)
{
    struct counter_config config;
    counters_config(&config, slots);
    return counter_schema_is(schema, &config);
}

static void test_same_slots(void **unused)
{
    (void)unused;
    struct counter_schema schema;
    make(&schema, "a:10 b:20 c:30");
    assert_true(same_slots(&schema, "a:10 b:20 c:30"));
    assert_true(same_slots(&schema, "c:30 a:10 b:20"));
    assert_false(same_slots(&schema, "a:10 b:20"));
    assert_false(same_slots(&schema, "a:10 b:20 c:31"));
    assert_false(same_slots(&schema, "a:10 b:20 d:30"));
    assert_false(same_slots(&schema, "a:10 b:20 c:30 d:5"));
}

static void test_extras_run_out(void **unused)
{
    (void)unused;
    struct counter_schema schema;
    struct counter_view v;
    make(&schema, "a:10");
    for (unsigned i = 0; i < SCHEMA_EXTRAS_MAX - 1; i++) {
        char text[32];
        snprintf(text, sizeof(text), "x%u:8", i);
        assert_true(view(&v, &schema, text));
    }
    struct counter_schema kept = schema;
    assert_false(view(&v, &schema, "y:8 z:8")); /* room for one */
    assert_memory_equal(&schema, &kept, sizeof(kept));
    assert_true(view(&v, &schema, "x3:8 a:10 y:8"));
    assert_false(view(&v, &schema, "z:8"));
    assert_true(view(&v, &schema, "y:8 x20:3"));
}

static void expect_refused(const struct counter_config *config, const char *word)
{
    char error[COUNTER_ERROR_MAX] = "";
    assert_false(counter_config_valid(config, error));
    if (!strstr(error, word)) {
        fail_msg("'%s' does not name '%s'", error, word);
    }
}

static void test_slots_that_are_none(void **unused)
{
    (void)unused;
    struct counter_config config;
    counters_config(&config, "a:10 b:20");
    config.slots[1].bits = 1;
    expect_refused(&config, "slot b has 1 bits");
    config.slots[1].bits = 65;
    expect_refused(&config, "65");
    config.slots[1].bits = 20;
    strcpy(config.slots[1].name, "a");
    expect_refused(&config, "slot a is given twice");
    config.slot_count = 0;
    expect_refused(&config, "1 to 16 slots");
    config.slot_count = ENGINE_SLOTS_MAX + 1;
    expect_refused(&config, "1 to 16 slots");
    counters_config(&config, "a:64 b:64 c:64 d:64 e:64 f:64 g:64 h:62 i:2");
    config.slots[7].bits = 63;
    expect_refused(&config, "513 bits");
}

static void test_tables_that_are_none(void **unused)
{
    (void)unused;
    struct counter_config config;
    counters_config(&config, "a:10");
    config.row.table_bytes = 3u << 20;
    expect_refused(&config, "power of two");
    config.row.table_bytes = 32u << 10;
    expect_refused(&config, "64 KiB");
    config.row.table_bytes = 1u << 20;
    config.id_spacing = 1ull << 63;
    expect_refused(&config, "id-spacing");
    config.id_spacing = 0;
    config.row.tables = 0;
    expect_refused(&config, "tables");
    config.row.tables = ROW_TABLES_MAX + 1;
    expect_refused(&config, "tables");
    config.row.tables = 1;
    config.row.late_room = 1;
    expect_refused(&config, "late-room");
    config.row.any_ids = true; /* which knows nothing of these */
    config.id_spacing = 1ull << 63;
    config.row.tables = 0;
    config.max_id = 0;
    expect_refused(&config, "max-id");
    config.max_id = 1ull << 63;
    expect_refused(&config, "max-id");
}

/* Every shape a configuration can give holds its bytes, its window and some records. */
static void expect_shape(const struct counter_config *config, uint64_t range)
{
    struct counter_shape shape;
    counter_shape_init(&shape, config, range);
    assert_true(shape.groups * shape.group_bytes == shape.table_bytes);
    assert_true(1ull << shape.group_bits == shape.groups);
    unsigned place = shape.payload_bytes + shape.rem_bytes;
    assert_true(shape.places * place + shape.meta_bytes <= shape.group_bytes);
    assert_true(shape.window_bits > shape.group_bits && shape.window_bits <= 63);
    assert_true(shape.window_bits - shape.group_bits <= 8 * shape.rem_bytes);
    assert_true(shape.capacity > 0 && shape.capacity < shape.groups * shape.places);
}

/* A later table, that knows the range of the one before, holds twice as much. */
static void expect_range_shape(const struct counter_config *config, uint64_t range)
{
    struct counter_shape shape, next;
    struct counter_config denser = *config;
    counter_shape_init(&shape, config, range);
    expect_shape(config, range);
    assert_true(shape.window_bits == 63 || 1ull << shape.window_bits >= 2 * range);
    denser.id_spacing = 0; /* the range says more than the spacing */
    counter_shape_init(&next, &denser, range);
    assert_int_equal(next.window_bits, shape.window_bits);
    assert_int_equal(next.places, shape.places);
}

static void test_shapes(void **unused)
{
    (void)unused;
    for (unsigned bits = 2; bits <= COUNTER_RECORD_BITS_MAX; bits++) {
        struct counter_config config;
        counters_config(&config, "a:2");
        config.slot_count = 0;
        for (unsigned left = bits; left > 0; config.slot_count++) {
            unsigned part = left > 64 ? 64 : left;
            part -= left - part == 1; /* no slot has one bit */
            struct counter_slot *slot = &config.slots[config.slot_count];
            snprintf(slot->name, sizeof(slot->name), "s%zu", config.slot_count);
            slot->bits = part;
            left -= part;
        }
        for (unsigned size = 16; size <= 40; size += 6) {
            config.row.table_bytes = 1ull << size;
            config.row.any_ids = false;
            for (unsigned spacing = 0; spacing < 63; spacing += 7) {
                config.id_spacing = spacing ? 1ull << spacing : 0;
                expect_shape(&config, 0);
            }
            for (unsigned range = 0; range < 63; range += 7) {
                expect_range_shape(&config, 1ull << range);
            }
            config.row.any_ids = true;
            for (unsigned id = 0; id < 63; id += 7) {
                config.max_id = 1ull << id;
                expect_shape(&config, 0);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_edges_of_bits),
        cmocka_unit_test(test_view_by_name),
        cmocka_unit_test(test_same_slots),
        cmocka_unit_test(test_extras_run_out),
        cmocka_unit_test(test_slots_that_are_none),
        cmocka_unit_test(test_tables_that_are_none),
        cmocka_unit_test(test_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
