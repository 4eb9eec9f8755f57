/*
 * test_table.c: one table through its own interface: slot edges and the aux dict, unsetting, groups
 * and extend dict, full tables and dicts, windows, settling and moving, the sink.
 */
#include "counter/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "counter/record.h"
#include "tests/support/counters.h"
#include "tests/support/random.h"

#define UNSET     0x5bad5bad5bad5badu /* in a list of values; no test stores it */
#define MANY      6000u               /* more than a table of 64 KiB holds */
#define SAMPLE    50u
#define FAR_ABOVE (1ull << 62)

struct fixture {
    struct counter_config config;
    struct counters_table opened;
    struct counter_table *table;
    struct counters_sink sink;
    enum engine_error error;
};

static void open_table(struct fixture *f, uint64_t first_id)
{
    counters_table_open(&f->opened, &f->config, first_id);
    f->table = f->opened.table;
    counters_sink_init(&f->sink);
}

static void open_slots(struct fixture *f, const char *slots)
{
    counters_config(&f->config, slots);
    open_table(f, 0);
}

static void close_table(struct fixture *f)
{
    counter_table_check(f->table);
    counters_table_close(&f->opened);
    assert_int_equal(f->sink.reserved, f->sink.put + f->sink.cancelled);
}

struct wish {
    const struct counter_values *values;
    enum engine_status status;
};

static enum engine_status decide_wish(const struct counter_edit *edit, bool present,
                                      const struct counter_values *before,
                                      struct counter_values *after)
{
    const struct wish *wish = edit->context;
    (void)present;
    after->set = (before->set & ~edit->named) | (wish->values->set & edit->named);
    for (unsigned i = 0; i < edit->view->slot_count; i++) {
        if (wish->values->set & edit->named & 1u << i) {
            after->value[i] = wish->values->value[i];
        }
    }
    return wish->status;
}

/* The slots of `named` become those of values. */
static enum engine_status edit_slots(struct fixture *f, uint64_t id, uint32_t named,
                                     const struct counter_values *values)
{
    struct wish wish = {values, ENGINE_DONE};
    struct counter_edit edit = {.named = named, .decide = decide_wish, .context = &wish};
    struct counter_locus locus;
    counter_table_locate(f->table, id, true, &locus);
    f->error = ENGINE_E_NONE;
    return counter_table_edit(f->table, &locus, &edit, 3, &f->sink.sink, &f->error);
}

static enum engine_status set_slot(struct fixture *f, uint64_t id, unsigned slot, uint64_t value)
{
    struct counter_values values = {.set = 1u << slot};
    values.value[slot] = value;
    return edit_slots(f, id, 1u << slot, &values);
}

static enum engine_status unset_slots(struct fixture *f, uint64_t id, uint32_t slots)
{
    struct counter_values none = {0};
    return edit_slots(f, id, slots, &none);
}

/* The text of a record that is asked for at once is that of its values. */
static void expect_printed(struct fixture *f, const struct counter_locus *locus,
                           const struct counter_values *values)
{
    char text[ENGINE_VALUE_MAX], printed[ENGINE_VALUE_MAX];
    bool whole = false;
    unsigned count = counter_table_view(f->table)->slot_count;
    size_t length = counter_table_print(f->table, locus, printed, &whole);
    if (length > 0) {
        assert_int_equal(length, counter_record_print(text, values, count));
        assert_memory_equal(text, printed, length);
        assert_int_equal(whole, values->set == (1u << count) - 1);
    }
    for (unsigned slot = 0; slot < count; slot++) {
        size_t digits = counter_table_print_one(f->table, locus, slot, printed);
        if (digits > 0) {
            assert_true((values->set >> slot & 1) != 0);
            assert_int_equal(digits, num_print(text, values->value[slot]));
            assert_memory_equal(text, printed, digits);
        }
    }
}

static bool read_record(struct fixture *f, uint64_t id, struct counter_values *values)
{
    struct counter_locus locus;
    counter_table_locate(f->table, id, false, &locus);
    uint32_t all = counter_view_all(counter_table_view(f->table));
    enum counter_look first = counter_table_look(f->table, &locus, all, values);
    enum counter_look look = counter_table_read(f->table, &locus, all, values);
    assert_true(look == first || first == COUNTER_FURTHER);
    expect_printed(f, &locus, values);
    return look == COUNTER_FOUND;
}

static void expect_slot(struct fixture *f, uint64_t id, unsigned slot, uint64_t value)
{
    struct counter_values values = {0};
    bool found = read_record(f, id, &values);
    if (value == UNSET) {
        assert_false(found && values.set >> slot & 1);
        return;
    }
    assert_true(found && values.set >> slot & 1);
    assert_true(values.value[slot] == value);
}

static struct counter_table_stats stats_of(const struct fixture *f)
{
    struct counter_table_stats stats;
    counter_table_stats(f->table, &stats);
    return stats;
}

/* One slot between two neighbours that must not feel it, over its edges and back. */
static void over_the_edges(unsigned bits)
{
    char slots[64];
    struct fixture f;
    snprintf(slots, sizeof(slots), "a:7 b:%u c:9", bits);
    open_slots(&f, slots);
    uint64_t in_place_max = bits == 64 ? UINT64_MAX - 2 : (1ull << bits) - 3;
    const uint64_t values[] = {0, in_place_max, in_place_max + 1, in_place_max + 2, UINT64_MAX, 0};
    const bool in_aux[] = {false, false, true, true, true, true};
    assert_int_equal(set_slot(&f, 5, 0, 100), ENGINE_DONE);
    assert_int_equal(set_slot(&f, 5, 2, 509), ENGINE_DONE);
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        assert_int_equal(set_slot(&f, 5, 1, values[i]), ENGINE_DONE);
        expect_slot(&f, 5, 1, values[i]);
        expect_slot(&f, 5, 0, 100);
        expect_slot(&f, 5, 2, 509);
        assert_int_equal(stats_of(&f).aux, in_aux[i]); /* and it never moves back */
        counter_table_check(f.table);
    }
    assert_int_equal(unset_slots(&f, 5, 2), ENGINE_DONE);
    expect_slot(&f, 5, 1, UNSET);
    assert_int_equal(stats_of(&f).aux, 0);
    assert_int_equal(set_slot(&f, 5, 1, 1), ENGINE_DONE); /* in place again once it was unset */
    assert_int_equal(stats_of(&f).aux, 0);
    assert_int_equal(set_slot(&f, 5, 1, UINT64_MAX), ENGINE_DONE);
    assert_int_equal(unset_slots(&f, 5, 7), ENGINE_DONE);
    assert_int_equal(stats_of(&f).aux, 0);
    assert_int_equal(stats_of(&f).records, 0);
    close_table(&f);
}

static void test_slot_edges(void **unused)
{
    (void)unused;
    for (unsigned bits = COUNTER_SLOT_BITS_MIN; bits <= COUNTER_SLOT_BITS_MAX; bits++) {
        over_the_edges(bits);
    }
}

static void test_unset(void **unused)
{
    (void)unused;
    struct fixture f;
    open_slots(&f, "a:10 b:10");
    assert_int_equal(unset_slots(&f, 1, 3), ENGINE_DONE); /* of nothing: nothing */
    assert_int_equal(stats_of(&f).records, 0);
    assert_int_equal(f.sink.put, 0);
    assert_int_equal(set_slot(&f, 1, 0, 0), ENGINE_DONE);
    expect_slot(&f, 1, 0, 0); /* 0 is not unset */
    expect_slot(&f, 1, 1, UNSET);
    assert_int_equal(unset_slots(&f, 1, 2), ENGINE_DONE);
    assert_int_equal(stats_of(&f).records, 1);
    assert_int_equal(unset_slots(&f, 1, 1), ENGINE_DONE);
    assert_int_equal(stats_of(&f).records, 0); /* the last slot takes the record with it */
    assert_int_equal(f.sink.last.type, CHANGE_DELETE);
    close_table(&f);
}

/* Ids until the table refuses. Returns how many are there; id i has slot 0 = i. */
static uint64_t fill(struct fixture *f, uint64_t first)
{
    for (uint64_t i = 0; i < MANY; i++) {
        if (set_slot(f, first + i, 0, i) != ENGINE_DONE) {
            return i;
        }
    }
    fail_msg("a table of 64 KiB took %u records", MANY);
    return 0;
}

static void expect_filled(struct fixture *f, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        expect_slot(f, first + i, 0, i);
    }
}

static void test_full_growing(void **unused)
{
    (void)unused;
    struct fixture f;
    counters_config(&f.config, "a:20 b:20 c:20 d:20");
    f.config.id_spacing = 1;
    open_table(&f, 1000);
    uint64_t count = fill(&f, 1000);
    assert_int_equal(f.error, ENGINE_E_NO_TABLE_FREE);
    struct counter_table_stats full = stats_of(&f);
    assert_int_equal(full.records, count);
    unsigned put = f.sink.put;
    for (uint64_t id = 1000 + count; id < 1000 + count + 100; id++) {
        /* Large: its aux entry, made first, must go again. */
        if (set_slot(&f, id, 1, UINT64_MAX) == ENGINE_DONE) {
            continue; /* full is what one id found: another's groups may have room */
        }
        assert_int_equal(f.error, ENGINE_E_NO_TABLE_FREE);
        expect_slot(&f, id, 1, UNSET);
    }
    struct counter_table_stats now = stats_of(&f);
    assert_int_equal(now.aux, now.records - full.records);
    assert_int_equal(f.sink.put - put, now.records - full.records);
    counter_table_check(f.table);
    expect_filled(&f, 1000, count);
    assert_int_equal(set_slot(&f, 1001, 3, 9), ENGINE_DONE); /* known ids go on */
    assert_int_equal(unset_slots(&f, 1001, 15), ENGINE_DONE);
    close_table(&f);
}

static void test_full_any(void **unused)
{
    (void)unused;
    struct fixture f;
    counters_config(&f.config, "a:20 b:20 c:20 d:20");
    f.config.row.any_ids = true;
    f.config.max_id = 1u << 20;
    open_table(&f, 0);
    uint64_t count = fill(&f, 0);
    assert_int_equal(f.error, ENGINE_E_OUT_OF_MEMORY);
    assert_true(count >= counter_table_shape(f.table)->capacity * 9 / 10);
    expect_slot(&f, count, 0, UNSET);
    assert_int_equal(stats_of(&f).records, count);
    counter_table_check(f.table);
    expect_filled(&f, 0, count);
    close_table(&f);
}

/* Records leave and come back, in whatever of home, alternate and extend dict has room. */
static void test_delete_and_create_again(void **unused)
{
    (void)unused;
    struct fixture f;
    struct test_random random = {test_seed()};
    counters_config(&f.config, "a:20 b:20 c:20 d:20");
    f.config.row.any_ids = true;
    f.config.max_id = 1u << 20;
    open_table(&f, 0);
    uint64_t count = fill(&f, 0);
    assert_true(stats_of(&f).extend > 0);
    for (unsigned round = 0; round < 8; round++) {
        for (uint64_t id = 0; id < count; id++) {
            if (test_random_once_in(&random, 3)) {
                assert_int_equal(unset_slots(&f, id, 1), ENGINE_DONE);
            }
        }
        counter_table_check(f.table);
        for (uint64_t id = count; id-- > 0;) { /* the other way round: other ids spill */
            struct counter_values values;
            if (!read_record(&f, id, &values) && set_slot(&f, id, 0, id) != ENGINE_DONE) {
                assert_int_equal(f.error, ENGINE_E_OUT_OF_MEMORY);
                uint64_t other = (id + 1) % count;
                assert_int_equal(unset_slots(&f, other, 1), ENGINE_DONE);
            }
        }
        counter_table_check(f.table);
    }
    for (uint64_t id = 0; id < count; id++) {
        assert_int_equal(unset_slots(&f, id, 1), ENGINE_DONE);
    }
    assert_int_equal(stats_of(&f).records, 0);
    assert_int_equal(stats_of(&f).extend, 0);
    close_table(&f);
}

/* Fills the aux dict by slot 1 of new ids; returns the first id that was refused. */
static uint64_t fill_aux(struct fixture *f)
{
    for (uint64_t id = 0;; id++) {
        assert_true(id < MANY);
        if (set_slot(f, id, 1, UINT64_MAX) != ENGINE_DONE) {
            assert_int_equal(f->error, ENGINE_E_OUT_OF_MEMORY);
            return id;
        }
    }
}

static void test_aux_full(void **unused)
{
    (void)unused;
    struct fixture f;
    open_slots(&f, "a:20 b:20 c:20 d:20");
    uint64_t refused = fill_aux(&f);
    assert_int_equal(stats_of(&f).records, refused); /* nothing was made of it */
    expect_slot(&f, refused, 1, UNSET);
    counter_table_check(f.table);
    assert_int_equal(set_slot(&f, refused, 1, 5), ENGINE_DONE); /* in place there is room */
    if (set_slot(&f, refused, 1, 1u << 20) != ENGINE_DONE) {
        expect_slot(&f, refused, 1, 5);
    }
    assert_int_equal(set_slot(&f, 0, 1, UINT64_MAX - 5), ENGINE_DONE); /* it has its entry */
    expect_slot(&f, 0, 1, UINT64_MAX - 5);
    close_table(&f);
}

/* Every slot large: some entry finds no place, and then none may stay. */
static void test_several_slots_all_or_none(void **unused)
{
    (void)unused;
    struct fixture f;
    open_slots(&f, "a:20 b:20 c:20 d:20");
    uint64_t known = 1u << 20;
    struct counter_values small = {.set = 15, .value = {1, 2, 3, 4}};
    struct counter_values large = {.set = 15, .value = {1u << 30, 1u << 30, 1u << 30, 1u << 30}};
    for (uint64_t i = 0; i < 200; i++) {
        assert_int_equal(edit_slots(&f, known + i, 15, &small), ENGINE_DONE);
    }
    fill_aux(&f);
    unsigned refusals = 0;
    for (uint64_t i = 0; i < 400; i++) { /* half of them new */
        uint64_t aux = stats_of(&f).aux;
        uint64_t records = stats_of(&f).records;
        unsigned put = f.sink.put;
        if (edit_slots(&f, known + i, 15, &large) == ENGINE_DONE) {
            continue;
        }
        refusals++;
        assert_int_equal(f.error, ENGINE_E_OUT_OF_MEMORY);
        assert_int_equal(stats_of(&f).aux, aux);
        assert_int_equal(stats_of(&f).records, records);
        assert_int_equal(f.sink.put, put);
        for (unsigned slot = 0; slot < 4; slot++) {
            expect_slot(&f, known + i, slot, i < 200 ? slot + 1 : UNSET);
        }
    }
    assert_true(refusals > 300);
    close_table(&f);
}

/* With the spacing given settling anchors a window; ids outside it live in the extend dict. */
static void test_window(void **unused)
{
    (void)unused;
    struct fixture f;
    counters_config(&f.config, "a:20 b:20 c:20 d:20");
    f.config.id_spacing = 1;
    uint64_t first = 1ull << 50;
    open_table(&f, first);
    uint64_t window = 1ull << counter_table_shape(f.table)->window_bits;
    uint64_t origin = stats_of(&f).window_first;
    assert_true(stats_of(&f).settled && origin == first - window / 4);
    assert_true(counter_table_in_row(f.table)->window_last == origin + window - 1);
    const uint64_t inside[] = {origin, first + 1, origin + window - 1};
    const uint64_t outside[] = {0, 1, origin - 1, origin + window, FAR_ABOVE, INT64_MAX};
    for (size_t i = 0; i < sizeof(inside) / sizeof(*inside); i++) {
        assert_int_equal(set_slot(&f, inside[i], 0, i), ENGINE_DONE);
    }
    assert_int_equal(stats_of(&f).extend, 0);
    for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++) {
        assert_int_equal(set_slot(&f, outside[i], 1, UINT64_MAX), ENGINE_DONE);
        assert_int_equal(stats_of(&f).extend, i + 1);
        expect_slot(&f, outside[i], 1, UINT64_MAX);
        expect_slot(&f, outside[i], 0, UNSET);
    }
    counter_table_check(f.table);
    for (size_t i = 0; i < sizeof(outside) / sizeof(*outside); i++) {
        assert_int_equal(unset_slots(&f, outside[i], 2), ENGINE_DONE);
        expect_slot(&f, outside[i], 1, UNSET);
    }
    assert_int_equal(stats_of(&f).extend, 0);
    close_table(&f);
    open_table(&f, 3);
    assert_int_equal(stats_of(&f).window_first, 0); /* near zero the window begins there */
    close_table(&f);
}

/* Nobody knows where the window is before it settles; then ids outside of it go to the dict. */
static void settle_some(uint64_t spacing, uint64_t first)
{
    struct fixture f;
    counters_config(&f.config, "a:20 b:20");
    f.config.id_spacing = spacing;
    open_table(&f, COUNTERS_UNSETTLED);
    assert_false(stats_of(&f).settled);
    expect_slot(&f, first + 1, 0, UNSET);
    counters_table_settle(&f.opened, first, first + (SAMPLE - 1) * 3);
    assert_true(stats_of(&f).settled);
    for (uint64_t i = 0; i < SAMPLE; i++) {
        assert_int_equal(set_slot(&f, first + i * 3, 0, i % 4 ? i : UINT64_MAX - i), ENGINE_DONE);
    }
    const uint64_t strays[] = {0, FAR_ABOVE, INT64_MAX};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(set_slot(&f, strays[i], 1, UINT64_MAX), ENGINE_DONE);
    }
    /* Without a spacing the window holds every id. */
    assert_int_equal(stats_of(&f).extend, spacing ? 3 : 0);
    for (uint64_t i = 0; i < SAMPLE; i++) {
        expect_slot(&f, first + i * 3, 0, i % 4 ? i : UINT64_MAX - i);
    }
    for (size_t i = 0; i < 3; i++) {
        expect_slot(&f, strays[i], 1, UINT64_MAX);
        assert_int_equal(set_slot(&f, strays[i], 0, 9), ENGINE_DONE);
        assert_int_equal(unset_slots(&f, strays[i], 2), ENGINE_DONE);
        expect_slot(&f, strays[i], 0, 9);
    }
    assert_int_equal(stats_of(&f).records, SAMPLE + 3);
    counter_table_check(f.table);
    close_table(&f);
}

static void test_settle(void **unused)
{
    (void)unused;
    settle_some(0, 1ull << 40);
    settle_some(1, 1ull << 40);
}

/* Ids apart go to another table for such: numbers by name, whatever the schemas. */
static void test_place(void **unused)
{
    (void)unused;
    struct counters_table from, to;
    struct counter_config config, next;
    counters_config(&config, "a:20 b:4 c:20");
    counters_apart_open(&from, &config);
    for (uint64_t i = 0; i < 20; i++) {
        struct counter_locus locus;
        bool created = false;
        struct change change = {.type = CHANGE_SLOTS,
                                .place = CHANGE_APART,
                                .id = FAR_ABOVE + i,
                                .named = 7,
                                .set = 7,
                                .values = {i, 100 + i, UINT64_MAX - i}};
        counter_table_locate(from.table, change.id, true, &locus);
        counter_table_replay(from.table, &locus, &change, &created);
        assert_true(created);
    }
    counters_config(&next, "c:30 d:9 a:3"); /* b is not named any more */
    counter_table_set_view(from.table, &next);
    counters_apart_open(&to, &next);
    assert_true(counter_table_place(from.table, to.table, 0, change_sink_null()));
    assert_int_equal(counter_table_in_row(to.table)->count, 20);
    for (uint64_t i = 0; i < 20; i++) {
        struct counter_values values;
        struct counter_locus locus;
        counter_table_locate(to.table, FAR_ABOVE + i, false, &locus);
        assert_int_equal(counter_table_read(to.table, &locus, 7, &values), COUNTER_FOUND);
        assert_int_equal(values.set, 5);
        assert_true(values.value[0] == UINT64_MAX - i && values.value[2] == i);
    }
    counter_table_check(to.table);
    counters_table_close(&from);
    counters_table_close(&to);
}

static void test_window_of_all_ids(void **unused)
{
    (void)unused;
    struct fixture f;
    open_slots(&f, "a:20 b:20 c:20 d:20");
    const uint64_t ids[] = {0, 1, 1ull << 40, FAR_ABOVE, INT64_MAX};
    assert_true(stats_of(&f).settled);
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        assert_int_equal(set_slot(&f, ids[i], 0, i), ENGINE_DONE);
    }
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        expect_slot(&f, ids[i], 0, i);
    }
    assert_int_equal(stats_of(&f).extend, 0);
    assert_true(stats_of(&f).first_id == 0 && stats_of(&f).last_id == INT64_MAX);
    close_table(&f);
}

static void test_sink(void **unused)
{
    (void)unused;
    struct fixture f;
    open_slots(&f, "a:20 b:20 c:20 d:20");
    f.sink.full = true;
    assert_int_equal(set_slot(&f, 1, 0, 7), ENGINE_ERROR);
    assert_int_equal(f.error, ENGINE_E_JOURNAL_BUSY);
    assert_int_equal(stats_of(&f).records, 0);
    assert_int_equal(f.sink.put + f.sink.cancelled, 0); /* no room was given, none comes back */
    counters_sink_init(&f.sink);
    struct counter_values values = {.set = 5, .value = {7, 0, UINT64_MAX}};
    assert_int_equal(edit_slots(&f, 1, 7, &values), ENGINE_DONE);
    assert_int_equal(f.sink.put, 1); /* one record for several slots */
    assert_int_equal(f.sink.last.type, CHANGE_SLOTS);
    assert_int_equal(f.sink.last.space, 3);
    assert_int_equal(f.sink.last.id, 1);
    assert_int_equal(f.sink.last.named, 7);
    assert_int_equal(f.sink.last.set, 5);
    assert_true(f.sink.last.values[0] == 7 && f.sink.last.values[2] == UINT64_MAX);
    struct wish wish = {&values, ENGINE_EXISTS};
    struct counter_edit edit = {.named = 7, .decide = decide_wish, .context = &wish};
    struct counter_locus locus;
    counter_table_locate(f.table, 1, true, &locus);
    assert_int_equal(counter_table_edit(f.table, &locus, &edit, 3, &f.sink.sink, &f.error),
                     ENGINE_EXISTS);
    assert_int_equal(f.sink.put, 1);
    assert_int_equal(f.sink.cancelled, 1);
    close_table(&f);
}

/* Of a tapped table the sink gets the whole record, whatever was changed of it. */
static void test_sink_tapped(void **unused)
{
    (void)unused;
    struct fixture f;
    open_slots(&f, "a:20 b:20 c:20 d:20");
    struct engine_cold cold = {.overlay_bytes_max = 1u << 20};
    struct counter_values values = {.set = 7, .value = {7, 8, UINT64_MAX}};
    assert_int_equal(edit_slots(&f, 1, 7, &values), ENGINE_DONE);
    assert_true(counter_table_file_begin(f.table, &cold, 0));
    assert_int_equal(set_slot(&f, 1, 0, 9), ENGINE_DONE);
    assert_int_equal(f.sink.last.named, 15);
    assert_int_equal(f.sink.last.set, 7);
    assert_true(f.sink.last.values[0] == 9 && f.sink.last.values[1] == 8);
    assert_true(f.sink.last.values[2] == UINT64_MAX);
    assert_null(counter_table_file_end(f.table, NULL));
    assert_int_equal(set_slot(&f, 1, 1, 3), ENGINE_DONE);
    assert_int_equal(f.sink.last.named, 2);
    counter_table_in_row(f.table)->whole = true; /* for good, tapped or not */
    assert_int_equal(set_slot(&f, 1, 1, 5), ENGINE_DONE);
    assert_int_equal(f.sink.last.named, 15);
    assert_true(f.sink.last.values[0] == 9 && f.sink.last.values[1] == 5);
    close_table(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slot_edges),
        cmocka_unit_test(test_unset),
        cmocka_unit_test(test_full_growing),
        cmocka_unit_test(test_full_any),
        cmocka_unit_test(test_delete_and_create_again),
        cmocka_unit_test(test_aux_full),
        cmocka_unit_test(test_several_slots_all_or_none),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_settle),
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_window_of_all_ids),
        cmocka_unit_test(test_sink),
        cmocka_unit_test(test_sink_tapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
