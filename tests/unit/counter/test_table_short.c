/*
 * test_table_short.c: the short way of increments and sets: what it makes of a record, what it says
 * to the journal, and what it leaves to counter_table_edit(), changing nothing.
 */
#include "counter/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/counters.h"

#define ID       5u
#define SPACE    3u
#define NIBBLE_A 13u /* the largest value in a place of four bits; 15 says that it is in aux */

struct fixture {
    struct counter_config config;
    struct counters_table opened;
    struct counters_sink sink;
};

static enum engine_status decide(const struct counter_edit *edit, bool present,
                                 const struct counter_values *before, struct counter_values *after)
{
    const struct counter_values *wanted = edit->context;
    (void)present;
    (void)before;
    *after = *wanted;
    return ENGINE_DONE;
}

/* One record, whose slots hold `value`, but for the last, which is unset. */
static void open_with(struct fixture *f, const char *slots, uint64_t value)
{
    struct counter_values values = {.set = 3, .value = {value, value}};
    struct counter_edit edit = {.named = 7, .decide = decide, .context = &values};
    struct counter_locus locus;
    enum engine_error error;
    counters_config(&f->config, slots);
    counters_table_open(&f->opened, &f->config, 0);
    counters_sink_init(&f->sink);
    counter_table_locate(f->opened.table, ID, true, &locus);
    assert_int_equal(
        counter_table_edit(f->opened.table, &locus, &edit, SPACE, &f->sink.sink, &error),
        ENGINE_DONE);
}

static void close_it(struct fixture *f)
{
    counter_table_check(f->opened.table);
    assert_int_equal(f->sink.reserved, f->sink.put + f->sink.cancelled);
    counters_table_close(&f->opened);
}

static bool add(struct fixture *f, uint64_t id, unsigned slot, bool down, uint64_t delta)
{
    struct counter_add add = {
        .slot = slot, .down = down, .space = SPACE, .delta = delta, .sink = &f->sink.sink};
    struct counter_locus locus;
    unsigned put = f->sink.put;
    counter_table_locate(f->opened.table, id, true, &locus);
    bool added = counter_table_add(f->opened.table, &locus, &add);
    assert_int_equal(f->sink.put, put + added);
    assert_true(!added || f->sink.last.values[slot] == add.now);
    return added;
}

static bool put(struct fixture *f, uint64_t id, uint32_t named, uint64_t value)
{
    uint64_t values[] = {value, value, value};
    struct counter_put put = {named, SPACE, values, &f->sink.sink};
    struct counter_locus locus;
    unsigned before = f->sink.put;
    counter_table_locate(f->opened.table, id, true, &locus);
    bool done = counter_table_put(f->opened.table, &locus, &put);
    assert_int_equal(f->sink.put, before + done);
    return done;
}

static void expect(struct fixture *f, uint32_t set, uint64_t first, uint64_t second)
{
    struct counter_values values;
    struct counter_locus locus;
    counter_table_locate(f->opened.table, ID, false, &locus);
    assert_int_equal(counter_table_read(f->opened.table, &locus, 7, &values), COUNTER_FOUND);
    assert_int_equal(values.set, set);
    assert_true(values.value[0] == first && values.value[1] == second);
}

static void test_adds(void **unused)
{
    (void)unused;
    struct fixture f;
    open_with(&f, "a:20 b:20 c:20", 10);
    struct row_table *row = counter_table_in_row(f.opened.table);
    atomic_store(&row->changed, false);
    assert_true(add(&f, ID, 1, false, 5));
    assert_true(atomic_load(&row->changed)); /* the next checkpoint writes it */
    assert_int_equal(f.sink.last.type, CHANGE_SLOTS);
    assert_int_equal(f.sink.last.space, SPACE);
    assert_int_equal(f.sink.last.place, CHANGE_THERE);
    assert_true(f.sink.last.id == ID);
    assert_int_equal(f.sink.last.named, 2);
    assert_int_equal(f.sink.last.set, 2);
    expect(&f, 3, 10, 15);
    assert_true(add(&f, ID, 1, true, 14));
    expect(&f, 3, 10, 1);
    assert_true(add(&f, ID, 1, true, 2));
    expect(&f, 3, 10, 0);
    assert_true(add(&f, ID, 0, false, UINT64_MAX)); /* around 2^64: one less */
    expect(&f, 3, 9, 0);
    assert_true(add(&f, ID, 0, false, 0));
    expect(&f, 3, 9, 0);
    close_it(&f);
}

static void test_leaves_what_is_not_there(void **unused)
{
    (void)unused;
    struct fixture f;
    open_with(&f, "a:20 b:20 c:20", 10);
    assert_false(add(&f, ID, 2, false, 1)); /* unset */
    assert_false(add(&f, ID + 1, 0, false, 1));
    f.sink.full = true;
    assert_false(add(&f, ID, 0, false, 1));
    counters_sink_init(&f.sink);
    expect(&f, 3, 10, 10);
    close_it(&f);
}

/* What does not fit its place lies beside, before or afterwards. */
static void test_leaves_what_is_large(void **unused)
{
    (void)unused;
    struct fixture f;
    open_with(&f, "a:4 b:4 c:4", NIBBLE_A - 1);
    assert_true(add(&f, ID, 0, false, 1));
    assert_false(add(&f, ID, 0, false, 1));
    expect(&f, 3, NIBBLE_A, NIBBLE_A - 1);
    close_it(&f);
    open_with(&f, "a:4 b:4 c:4", 100);
    assert_false(add(&f, ID, 0, true, 99));
    expect(&f, 3, 100, 100);
    close_it(&f);
}

static void test_puts(void **unused)
{
    (void)unused;
    struct fixture f;
    open_with(&f, "a:20 b:20 c:20", 10);
    struct row_table *row = counter_table_in_row(f.opened.table);
    atomic_store(&row->changed, false);
    assert_true(put(&f, ID, 2, 500000));
    assert_true(atomic_load(&row->changed)); /* the next checkpoint writes it */
    assert_int_equal(f.sink.last.type, CHANGE_SLOTS);
    assert_int_equal(f.sink.last.space, SPACE);
    assert_int_equal(f.sink.last.place, CHANGE_THERE);
    assert_true(f.sink.last.id == ID);
    assert_int_equal(f.sink.last.named, 2);
    assert_int_equal(f.sink.last.set, 2);
    assert_true(f.sink.last.values[1] == 500000);
    expect(&f, 3, 10, 500000);
    assert_true(put(&f, ID, 5, 0)); /* c is unset before */
    assert_int_equal(f.sink.last.set, 5);
    assert_true(f.sink.last.values[0] == 0 && f.sink.last.values[2] == 0);
    expect(&f, 7, 0, 500000);
    assert_false(put(&f, ID + 1, 7, 1));
    f.sink.full = true;
    assert_false(put(&f, ID, 7, 1));
    counters_sink_init(&f.sink);
    expect(&f, 7, 0, 500000);
    close_it(&f);
}

/* As soon as one number lies beside, or is to, no other is changed. */
static void test_puts_no_large(void **unused)
{
    (void)unused;
    struct fixture f;
    open_with(&f, "a:4 b:4 c:4", 1);
    assert_true(put(&f, ID, 3, NIBBLE_A));
    assert_false(put(&f, ID, 3, NIBBLE_A + 1));
    expect(&f, 3, NIBBLE_A, NIBBLE_A);
    close_it(&f);
    open_with(&f, "a:20 b:4 c:4", 100); /* b's lies beside */
    assert_false(put(&f, ID, 3, 1));
    expect(&f, 3, 100, 100);
    assert_true(put(&f, ID, 1, 1));
    expect(&f, 3, 1, 100);
    close_it(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adds),
        cmocka_unit_test(test_leaves_what_is_not_there),
        cmocka_unit_test(test_leaves_what_is_large),
        cmocka_unit_test(test_puts),
        cmocka_unit_test(test_puts_no_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
