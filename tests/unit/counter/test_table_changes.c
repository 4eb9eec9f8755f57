/*
 * test_table_changes.c: what a change says to the journal, and what it does when it is made again.
 */
#include "counter/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/counters.h"

#define ID 5u

/* Slots that a table learned lie beside its records: a change of others does not speak of them. */
static void test_says_only_what_it_names(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct counters_call call;
    struct counters_sink sink;
    counters_config(&config, "a:20");
    struct engine *engine = counters_create(&config);
    counters_sink_init(&sink);
    counters_do(engine, &call, ENGINE_SET, 0, ID, "1");
    counters_config_slots(&config, "a:20 b:20");
    counters_reconfigure(engine, &config);
    assert_int_equal(counters_do(engine, &call, ENGINE_SET, 1, ID, "7"), ENGINE_DONE);
    counters_call_init(&call, ENGINE_SET, 0, ID, "2");
    assert_int_equal(counters_run(engine, &call, &sink.sink), ENGINE_DONE);
    assert_int_equal(sink.last.named, 1);
    assert_int_equal(sink.last.set, 1);
    assert_int_equal(sink.last.values[0], 2);
    counters_do(engine, &call, ENGINE_READ, ENGINE_SLOT_RECORD, ID, NULL);
    assert_string_equal(call.value, "2,7");
    counter_check(engine);
    engine->functions->destroy(engine);
}

static bool replay(struct counters_table *opened, enum change_place place, uint32_t named,
                   uint64_t value)
{
    struct counter_locus locus;
    bool created = false;
    struct change change = {
        .type = CHANGE_SLOTS, .place = place, .id = ID, .named = named, .set = named};
    for (unsigned i = 0; i < 2; i++) {
        change.values[i] = value;
    }
    counter_table_locate(opened->table, ID, true, &locus);
    assert_int_equal(counter_table_replay(opened->table, &locus, &change, &created),
                     COUNTER_REPLAYED);
    return created;
}

static uint32_t read_slots(struct counters_table *opened, struct counter_values *values)
{
    struct counter_locus locus;
    counter_table_locate(opened->table, ID, false, &locus);
    values->set = 0;
    (void)counter_table_read(opened->table, &locus, 3, values);
    return values->set;
}

/*
 * A change that made a record: what an image has of one, made later or before, is of no account.
 * One of a record that was there leaves the slots it does not name.
 */
static void test_made_again(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct counters_table opened;
    struct counter_values values;
    counters_config(&config, "a:20 b:20");
    counters_table_open(&opened, &config, 0);
    assert_true(replay(&opened, CHANGE_INSIDE, 3, 10));
    assert_int_equal(read_slots(&opened, &values), 3);
    assert_false(replay(&opened, CHANGE_THERE, 2, 11));
    assert_int_equal(read_slots(&opened, &values), 3);
    assert_true(values.value[0] == 10 && values.value[1] == 11);
    assert_false(replay(&opened, CHANGE_INSIDE, 1, 12));
    assert_int_equal(read_slots(&opened, &values), 1);
    assert_true(values.value[0] == 12);
    counters_table_close(&opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_says_only_what_it_names),
        cmocka_unit_test(test_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
