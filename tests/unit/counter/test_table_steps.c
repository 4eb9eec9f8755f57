/*
 * test_table_steps.c: a reader of a table, and one change after each of its instructions: what it
 * reads was there as a whole before the change, or is after it.
 */
#include "counter/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "counter/record.h"
#include "tests/support/counters.h"
#include "tests/support/step.h"

#define SLOTS      3u
#define ALL        ((1u << SLOTS) - 1)
#define STRIDE     4 /* instructions between two moments tried, where a reader takes many */
#define PLACES_MAX 64u
#define LARGE      (1ull << 40) /* of a value: it lies beside its record */

typedef enum counter_look look_fn(const struct counter_table *table,
                                  const struct counter_locus *locus, uint32_t wanted,
                                  struct counter_values *values);

struct meeting {
    struct counter_config config;
    struct counters_table opened;
    look_fn *look_with;
    uint64_t id; /* is read */
    struct counter_locus locus;
    uint64_t number; /* its values: number, number + base[1], number + base[2] */
    const uint64_t *base;
    uint64_t first, another; /* of its group: the one goes, the other comes */
    enum counter_look look;
    struct counter_values values;
};

struct wish {
    uint32_t set;
    uint64_t number;
    const uint64_t *base;
};

static enum engine_status decide(const struct counter_edit *edit, bool present,
                                 const struct counter_values *before, struct counter_values *after)
{
    const struct wish *wish = edit->context;
    (void)present;
    (void)before;
    after->set = wish->set;
    for (unsigned i = 0; i < SLOTS; i++) {
        after->value[i] = wish->number + wish->base[i];
    }
    return ENGINE_DONE;
}

static void edit(struct meeting *meeting, uint64_t id, uint32_t set, uint64_t number)
{
    struct wish wish = {set, number, meeting->base};
    struct counter_edit edit = {.named = ALL, .decide = decide, .context = &wish};
    struct counter_locus locus;
    enum engine_error error = ENGINE_E_NONE;
    counter_table_locate(meeting->opened.table, id, true, &locus);
    enum engine_status status =
        counter_table_edit(meeting->opened.table, &locus, &edit, 0, change_sink_null(), &error);
    CHECK(status == ENGINE_DONE);
}

static void look(void *context)
{
    struct meeting *meeting = context;
    meeting->look =
        meeting->look_with(meeting->opened.table, &meeting->locus, ALL, &meeting->values);
}

static void prepare(struct meeting *meeting, uint64_t id)
{
    meeting->id = id;
    counter_table_locate(meeting->opened.table, id, false, &meeting->locus);
}

static void set_all_slots(void *context)
{
    struct meeting *meeting = context;
    edit(meeting, meeting->id, ALL, ++meeting->number);
}

/* The same by increments. */
static void add_to_all_slots(void *context)
{
    struct meeting *meeting = context;
    struct counter_add add = {.delta = 1, .sink = change_sink_null()};
    struct counter_locus locus;
    counter_table_locate(meeting->opened.table, meeting->id, true, &locus);
    for (add.slot = 0; add.slot < SLOTS; add.slot++) {
        CHECK(counter_table_add(meeting->opened.table, &locus, &add));
    }
    meeting->number++;
}

/* The same at once, by the short way of sets. */
static void put_all_slots(void *context)
{
    struct meeting *meeting = context;
    uint64_t values[SLOTS];
    struct counter_put put = {.named = ALL, .values = values, .sink = change_sink_null()};
    struct counter_locus locus;
    meeting->number++;
    for (unsigned i = 0; i < SLOTS; i++) {
        values[i] = meeting->base[i] + meeting->number;
    }
    counter_table_locate(meeting->opened.table, meeting->id, true, &locus);
    CHECK(counter_table_put(meeting->opened.table, &locus, &put));
}

/* The last record takes the place of the first one, and another comes to where it lay. */
static void replace_first(void *context)
{
    struct meeting *meeting = context;
    edit(meeting, meeting->first, 0, 0);
    edit(meeting, meeting->another, ALL, 0);
}

static void begin(struct meeting *meeting, look_fn *look_with, const uint64_t *base,
                  const char *slots, uint64_t spacing)
{
    if (!step_works()) {
        print_message("this build cannot step\n");
        skip();
    }
    *meeting = (struct meeting){.look_with = look_with, .base = base};
    counters_config(&meeting->config, slots);
    meeting->config.id_spacing = spacing;
    counters_table_open(&meeting->opened, &meeting->config, 0);
}

static void end(struct meeting *meeting)
{
    counter_table_check(meeting->opened.table);
    counters_table_close(&meeting->opened);
}

static void expect_whole(const struct meeting *meeting)
{
    const struct counter_values *values = &meeting->values;
    assert_int_equal(meeting->look, COUNTER_FOUND);
    assert_int_equal(values->set, ALL);
    assert_in_range(values->value[0], meeting->number - 1, meeting->number);
    for (unsigned i = 1; i < SLOTS; i++) {
        assert_int_equal(values->value[i] - meeting->base[i], values->value[0]);
    }
}

/* All slots of a record change while it is read. FURTHER, from the look: somebody else answers. */
static void read_while_changed(look_fn *look_with, step_fn *change, const uint64_t *base,
                               uint64_t stride)
{
    struct meeting meeting;
    uint64_t whole = 0;
    begin(&meeting, look_with, base, "a:20 b:20 c:20", 1);
    prepare(&meeting, 5);
    set_all_slots(&meeting);
    for (uint64_t n = 0; step_run(n, look, change, &meeting); n += stride) {
        if (meeting.look != COUNTER_FURTHER) {
            expect_whole(&meeting);
            whole++;
        }
    }
    assert_true(whole > 0);
    end(&meeting);
}

static void test_look_while_changed(void **unused)
{
    static const uint64_t base[SLOTS] = {0, 100, 200};
    (void)unused;
    read_while_changed(counter_table_look, set_all_slots, base, 1);
    read_while_changed(counter_table_look, add_to_all_slots, base, 1);
    read_while_changed(counter_table_look, put_all_slots, base, 1);
}

/* As text at once. */
static enum counter_look look_printed(const struct counter_table *table,
                                      const struct counter_locus *locus, uint32_t wanted,
                                      struct counter_values *values)
{
    char text[ENGINE_VALUE_MAX];
    bool whole;
    size_t length = counter_table_print(table, locus, text, &whole);
    (void)wanted;
    if (length == 0) {
        return COUNTER_FURTHER;
    }
    CHECK(whole && counter_record_parse(text, length, SLOTS, values));
    return COUNTER_FOUND;
}

static void test_print_while_changed(void **unused)
{
    static const uint64_t base[SLOTS] = {0, 100, 200};
    (void)unused;
    read_while_changed(look_printed, set_all_slots, base, 1);
}

static void test_read_while_changed(void **unused)
{
    static const uint64_t base[SLOTS] = {0, 100, 200};
    (void)unused;
    read_while_changed(counter_table_read, set_all_slots, base, STRIDE);
}

/* Two values lie in the dict beside, each in a bucket of its own, one in the record. */
static void test_read_while_changed_beside(void **unused)
{
    static const uint64_t base[SLOTS] = {0, LARGE, 2 * LARGE};
    (void)unused;
    read_while_changed(counter_table_read, set_all_slots, base, STRIDE);
}

/* As many ids as a group has places, and one more, all with their home in one group. */
static size_t find_ids(const struct meeting *meeting, uint64_t ids[PLACES_MAX])
{
    const size_t places = counter_table_shape(meeting->opened.table)->places;
    struct counter_locus locus;
    size_t count = 0;
    CHECK(places > 4 && places < PLACES_MAX); /* their remainders lie in several words */
    for (uint64_t id = 0; count <= places; id++) {
        counter_table_locate(meeting->opened.table, id, false, &locus);
        if (locus.group == 1) {
            ids[count++] = id;
        }
    }
    return places;
}

/* The group has the first `count` of these, in this order. */
static void put_in_order(struct meeting *meeting, const uint64_t *ids, size_t count)
{
    for (size_t i = 0; i <= count; i++) {
        edit(meeting, ids[i], 0, 0);
    }
    for (size_t i = 0; i < count; i++) {
        edit(meeting, ids[i], ALL, 0);
    }
}

/* spacing: known, remainders are compared several at once; 0: not known, one by one. */
static void find_while_moved(look_fn *look_with, uint64_t spacing, uint64_t stride)
{
    static const uint64_t base[SLOTS] = {0};
    struct meeting meeting;
    uint64_t ids[PLACES_MAX];
    uint64_t found = 0;
    begin(&meeting, look_with, base, "a:4 b:4 c:4", spacing);
    size_t count = find_ids(&meeting, ids);
    meeting.first = ids[0];
    meeting.another = ids[count];
    prepare(&meeting, ids[count - 1]);
    put_in_order(&meeting, ids, count);
    for (uint64_t n = 0; step_run(n, look, replace_first, &meeting); n += stride) {
        assert_int_not_equal(meeting.look, COUNTER_ABSENT);
        found += meeting.look == COUNTER_FOUND;
        put_in_order(&meeting, ids, count);
    }
    assert_true(found > 0);
    end(&meeting);
}

static void test_look_while_moved(void **unused)
{
    (void)unused;
    find_while_moved(counter_table_look, 0, 1);
    find_while_moved(counter_table_look, 1, 1);
}

static void test_read_while_moved(void **unused)
{
    (void)unused;
    find_while_moved(counter_table_read, 1, STRIDE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_look_while_changed), cmocka_unit_test(test_print_while_changed),
        cmocka_unit_test(test_read_while_changed), cmocka_unit_test(test_read_while_changed_beside),
        cmocka_unit_test(test_look_while_moved),   cmocka_unit_test(test_read_while_moved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
