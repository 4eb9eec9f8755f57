/*
 * test_counter_model.c: random operations on the counter engine and on the reference at once:
 * every status and text the same, the invariants on the way, and all ids at the end.
 *
 * Operations come in batches as the server makes them: all are prepared, then run in order, runs of
 * neighbouring reads together. The population swings between nearly empty and full; slots are
 * added, widened, removed, put in another order and the role changed on the way. Where the engine
 * is full it may refuse what needs room; then nothing may have changed.
 */
#include "counter/counter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "counter/counter_private.h"
#include "row/row_data.h"
#include "row/table_kind.h"
#include "tests/model/reference.h"
#include "tests/support/counters.h"
#include "tests/support/random.h"

#define OPS_ALL        2000000u
#define BATCH_MAX      80u
#define TEXT_MAX       (ENGINE_VALUE_MAX + 1)
#define NAMES          24u /* slot names a space may be given */
#define CHECK_EVERY    7919u
#define SHAPE_EVERY    25000u /* operations between reconfigurations */
#define SWING_EVERY    40000u /* between filling and emptying */
#define CLEAR_ONCE_IN  400000u
#define STRAYS         8u
#define NEWEST         300u /* ids that half of the operations of a row are about */
#define STRAY_ONCE_IN  200u
#define FIRST_SECOND   1700000000ull
#define FIRST_MS       1700000000000ull
#define SPAN_BITS      24
#define RANDOM_ID_BITS 40
#define REFUSED_ONE_IN 3u /* at most: a test of refusals alone would test little */

struct profile {
    const char *name;
    const char *slots;
    uint64_t (*id)(uint64_t index);
    uint64_t spacing;
    uint64_t indices; /* ids are those of 0 .. indices - 1 */
    bool any_ids;
    unsigned tables; /* that are never recycled; 0: one */
    bool same_slots; /* what moves to another table leaves hidden slots behind: none are hidden */
};

struct model {
    const struct profile *profile;
    struct test_random random;
    struct counter_config config;
    struct engine *engine;
    struct reference *reference;
    uint64_t strays[STRAYS];
    uint64_t done, refused;
    uint64_t ops_all;
    uint64_t checked, shaped; /* `done` when it last happened */
    bool filling;
    uint64_t large_one_in; /* values: how often for the aux dict */
    struct counters_call calls[BATCH_MAX];
    char texts[BATCH_MAX][TEXT_MAX];
    struct engine_op *ops[BATCH_MAX];
};

static uint64_t dense_id(uint64_t index)
{
    return 5000 + index;
}

static uint64_t seconds_id(uint64_t index)
{
    return (FIRST_SECOND + index / 2000) << 22 | index % 2000;
}

/* Two ids a millisecond and machine, three machines. */
static uint64_t milliseconds_id(uint64_t index)
{
    return (FIRST_MS + index / 6) << 22 | index % 3 << 12 | index % 2;
}

static uint64_t random_id(uint64_t index)
{
    return hash_u64(index) >> (64 - RANDOM_ID_BITS);
}

static uint64_t random_id_of_a_span(uint64_t index)
{
    return (1ull << 50) + (hash_u64(index) >> (64 - SPAN_BITS));
}

static const struct profile profiles[] = {
    {"dense, spacing given", "s0:20 s1:20 s2:20 s3:20", dense_id, 1, 7000, false, 0, false},
    {"dense", "s0:16 s1:16", dense_id, 0, 8000, false, 0, false},
    {"seconds", "s0:2 s1:7 s2:33 s3:64", seconds_id, 2097, 5000, false, 0, false},
    {"milliseconds", "s0:20 s1:12 s2:5", milliseconds_id, 1u << 20, 9000, false, 0, false},
    {"random", "s0:10 s1:64 s2:3", random_id, 0, 6000, true, 0, false},
    {"random in a span", "s0:16 s1:16", random_id_of_a_span, 1u << 10, 14000, false, 0, false},
    {"one slot", "s0:8", random_id, 0, 20000, true, 0, false},
    {"wide", "s0:64 s1:64 s2:64 s3:64 s4:2 s5:3 s6:30 s7:31 s8:32 s9:33 s10:4 s11:5 s12:6 s13:7",
     dense_id, 1, 1500, false, 0, false},
    {"dense, three tables", "s0:20 s1:12 s2:40", dense_id, 0, 13000, false, 3, true},
    {"seconds, five tables", "s0:20 s1:20 s2:20", seconds_id, 0, 24000, false, 5, true},
};

#define PROFILES (sizeof(profiles) / sizeof(*profiles))

/* ---- what to do ---- */

static uint64_t below(struct model *m, uint64_t bound)
{
    return test_random_below(&m->random, bound);
}

/* Where there are several tables the ids grow with time, and half of them are new ones. */
static uint64_t any_index(struct model *m)
{
    uint64_t indices = m->profile->indices;
    if (!m->profile->tables) {
        return below(m, indices);
    }
    uint64_t top = 1 + (indices - 1) * (m->done < m->ops_all ? m->done : m->ops_all) / m->ops_all;
    uint64_t newest = top < NEWEST ? top : NEWEST;
    return test_random_once_in(&m->random, 2) ? top - 1 - below(m, newest) : below(m, top);
}

static uint64_t any_id(struct model *m)
{
    if (!m->profile->any_ids && test_random_once_in(&m->random, STRAY_ONCE_IN)) {
        return m->strays[below(m, STRAYS)];
    }
    return m->profile->id(any_index(m));
}

/* Small, anything, or about the edge of a slot of some bits. */
static uint64_t any_value(struct model *m)
{
    unsigned bits = 2 + (unsigned)below(m, 63);
    uint64_t edge = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
    if (!test_random_once_in(&m->random, m->large_one_in)) {
        return below(m, 4);
    }
    switch (below(m, 4)) {
    case 0:
        return UINT64_MAX - below(m, 4);
    case 1:
        return test_random_next(&m->random) >> below(m, 64);
    default:
        return edge - 3 + below(m, 5);
    }
}

static size_t put_number(struct model *m, char *text, size_t room)
{
    static const char *const forms[] = {"%" PRIu64, "%" PRIu64, "%" PRIu64, "00%" PRIu64};
    uint64_t value = any_value(m);
    const char *form = forms[value < 1000 ? below(m, 4) : 0];
    return (size_t)snprintf(text, room, form, value);
}

/* The text of so many slots, or several deltas: some fields are empty. */
static void put_fields(struct model *m, size_t count, char *text)
{
    size_t length = 0;
    uint64_t empty_one_in = 1 + below(m, 4);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            text[length++] = ',';
        }
        if (!test_random_once_in(&m->random, empty_one_in)) {
            length += put_number(m, text + length, TEXT_MAX - length);
        }
    }
    text[length] = '\0';
}

/* Some fields of a record by their names. */
static void put_names(struct model *m, char *text)
{
    size_t length = 0;
    for (uint64_t left = 1 + below(m, 3); left > 0; left--) {
        uint64_t slot = below(m, m->config.slot_count);
        length += (size_t)sprintf(text + length, "%s%s=", length > 0 ? "," : "",
                                  m->config.slots[slot].name);
        length += put_number(m, text + length, TEXT_MAX - length);
    }
}

/* Several slots in any order; never one alone. */
static void name_some(struct model *m, struct engine_op *op)
{
    unsigned wanted = 2 + (unsigned)below(m, m->config.slot_count - 1);
    op->slot = ENGINE_SLOT_SOME;
    op->some = 0;
    op->order = 0;
    for (unsigned i = 0; i < wanted;) {
        unsigned slot = (unsigned)below(m, m->config.slot_count);
        if (!(op->some >> slot & 1)) {
            op->some |= 1u << slot;
            op->order |= (uint64_t)slot << i++ * ENGINE_ORDER_BITS;
        }
    }
}

static void put_text(struct model *m, const struct engine_op *op, char *text)
{
    static const char *const wrong[] = {
        "", "x", "-1", "1,", ",", "1 2", " 1", "18446744073709551616", "7  ", ",,,,,,,,,,,,,,,,,"};
    if (test_random_once_in(&m->random, 50)) {
        strcpy(text, wrong[below(m, sizeof(wrong) / sizeof(*wrong))]);
    } else if (op->slot == ENGINE_SLOT_RECORD && test_random_once_in(&m->random, 4)) {
        put_names(m, text);
    } else if (op->slot == ENGINE_SLOT_RECORD) {
        put_fields(m, m->config.slot_count, text);
    } else if (op->slot == ENGINE_SLOT_SOME && test_random_once_in(&m->random, 2)) {
        put_fields(m, (size_t)__builtin_popcount(op->some), text);
    } else {
        put_number(m, text, TEXT_MAX);
    }
}

static enum engine_verb any_verb(struct model *m)
{
    static const enum engine_verb filling[] = {
        ENGINE_READ, ENGINE_READ, ENGINE_TOUCH,   ENGINE_SET,    ENGINE_SET,
        ENGINE_ADD,  ENGINE_ADD,  ENGINE_REPLACE, ENGINE_CAS,    ENGINE_INCR,
        ENGINE_INCR, ENGINE_INCR, ENGINE_DECR,    ENGINE_DELETE,
    };
    static const enum engine_verb emptying[] = {
        ENGINE_READ, ENGINE_READ, ENGINE_TOUCH,  ENGINE_REPLACE, ENGINE_SET,
        ENGINE_CAS,  ENGINE_INCR, ENGINE_DELETE, ENGINE_DELETE,  ENGINE_DELETE,
    };
    if (m->filling) {
        return filling[below(m, sizeof(filling) / sizeof(*filling))];
    }
    return emptying[below(m, sizeof(emptying) / sizeof(*emptying))];
}

static void make_call(struct model *m, size_t i)
{
    enum engine_verb verb = any_verb(m);
    int slot = (int)below(m, m->config.slot_count);
    if (test_random_once_in(&m->random, 2)) {
        slot = ENGINE_SLOT_RECORD;
    }
    bool reads = verb == ENGINE_READ || verb == ENGINE_TOUCH || verb == ENGINE_DELETE;
    struct engine_op key = {.slot = slot};
    if (m->config.slot_count > 1 && test_random_once_in(&m->random, 4)) {
        name_some(m, &key);
    }
    m->texts[i][0] = '\0';
    if (!reads) {
        put_text(m, &key, m->texts[i]);
    }
    uint64_t id = i > 0 && test_random_once_in(&m->random, 8) ? m->calls[i - 1].op.id : any_id(m);
    counters_call_init(&m->calls[i], verb, key.slot, id, m->texts[i]);
    struct engine_op *op = &m->calls[i].op;
    op->some = key.some;
    op->order = key.order;
    op->want_cas = verb == ENGINE_READ && test_random_once_in(&m->random, 3);
    bool adds = verb == ENGINE_INCR || verb == ENGINE_DECR;
    if (adds && key.slot != ENGINE_SLOT_RECORD) {
        op->create_initial = test_random_once_in(&m->random, 8);
        op->create_never = test_random_once_in(&m->random, 8);
        op->initial = any_value(m);
    }
    m->ops[i] = op;
}

/* ---- compare ---- */

static void complain(const struct model *m, const struct engine_op *op,
                     const struct reference_answer *answer)
{
    fail_msg("%s, after %" PRIu64 ": verb %d slot %d id %" PRIu64 " text '%.*s': status %d error %d"
             " miss %d '%.*s', expected %d %d %d '%.*s'",
             m->profile->name, m->done, (int)op->verb, op->slot, op->id, (int)op->text_length,
             op->text, (int)op->status, (int)op->error, (int)op->miss, (int)op->value_length,
             op->value, (int)answer->status, (int)answer->error, (int)answer->miss,
             (int)answer->length, answer->text);
}

static bool was_refused(const struct model *m, const struct engine_op *op,
                        const struct reference_answer *answer)
{
    enum engine_error full = m->profile->any_ids ? ENGINE_E_OUT_OF_MEMORY : ENGINE_E_NO_TABLE_FREE;
    bool refused = op->error == full || op->error == ENGINE_E_OUT_OF_MEMORY ||
                   (op->error == ENGINE_E_ID_TOO_FAR && !m->profile->any_ids);
    return answer->status == ENGINE_DONE && answer->grows && op->status == ENGINE_ERROR && refused;
}

static void compare(struct model *m, const struct engine_op *op)
{
    struct reference_answer answer;
    reference_plan(m->reference, op, &answer);
    m->done++;
    if (was_refused(m, op, &answer)) {
        m->refused++;
        return; /* nothing may have changed: later reads tell */
    }
    bool miss = op->verb <= ENGINE_TOUCH && answer.status == ENGINE_ABSENT;
    bool text = answer.status == ENGINE_DONE && op->verb != ENGINE_TOUCH;
    if (op->status != answer.status || op->error != answer.error ||
        (miss && op->miss != answer.miss) || (text && op->value_length != answer.length) ||
        memcmp(op->value, answer.text, answer.length) != 0) {
        complain(m, op, &answer);
    }
    if (op->want_cas && op->status == ENGINE_DONE) {
        assert_true(op->cas_now == reference_token(m->reference, op));
    }
    reference_commit(m->reference);
}

/* ---- run ---- */

static bool is_read(const struct engine_op *op)
{
    return op->verb == ENGINE_READ || op->verb == ENGINE_TOUCH;
}

/* Runs and compares ops from `first`; returns how many: a run of reads, or one change. */
static size_t run_some(struct model *m, size_t first, size_t count)
{
    const struct engine_functions *functions = m->engine->functions;
    size_t n = 0;
    while (first + n < count && is_read(m->ops[first + n])) {
        n++;
    }
    if (n > 0) {
        functions->read(m->engine, m->ops + first, n);
    } else {
        struct engine_op *op = m->ops[first];
        if (op->verb == ENGINE_CAS && !test_random_once_in(&m->random, 4)) {
            op->cas = reference_token(m->reference, op);
        }
        functions->change(m->engine, op, change_sink_null());
        while (op->status == ENGINE_PENDING) {
            row_maintain(m->engine->row, NULL);
            functions->prepare(m->engine, m->ops + first, count - first);
            functions->change(m->engine, op, change_sink_null());
        }
        n = 1;
    }
    for (size_t i = 0; i < n; i++) {
        compare(m, m->ops[first + i]);
    }
    return n;
}

static void run_batch(struct model *m)
{
    size_t count = 1 + below(m, BATCH_MAX);
    for (size_t i = 0; i < count; i++) {
        make_call(m, i);
    }
    m->engine->functions->prepare(m->engine, m->ops, count);
    for (size_t at = 0; at < count;) {
        at += run_some(m, at, count);
    }
}

struct apart {
    size_t count;
    uint64_t *ids;
};

static void note_apart(void *context, uint64_t id)
{
    struct apart *apart = context;
    apart->ids[apart->count++] = id;
}

/* What is apart loses hidden slots when it goes in place: none shall be. */
static void delete_apart(struct model *m)
{
    const struct row *row = &((const struct counter *)m->engine)->row;
    if (row->apart == NULL) {
        return;
    }
    struct apart apart = {0, memory_zalloc((row->apart->count + 1) * sizeof(uint64_t))};
    row_apart_each(row, note_apart, &apart);
    for (size_t i = 0; i < apart.count; i++) {
        counters_call_init(&m->calls[0], ENGINE_DELETE, ENGINE_SLOT_RECORD, apart.ids[i], "");
        m->ops[0] = &m->calls[0].op;
        m->engine->functions->prepare(m->engine, m->ops, 1);
        run_some(m, 0, 1);
    }
    free(apart.ids);
}

/* Other slots, other widths, another order, maybe another role, another meaning of empty fields. */
static void reshape(struct model *m)
{
    struct counter_config next = m->config;
    unsigned bits_left = COUNTER_RECORD_BITS_MAX;
    uint64_t taken = 0;
    if (m->profile->same_slots) {
        return;
    }
    delete_apart(m);
    size_t wanted = 1 + below(m, ENGINE_SLOTS_MAX);
    memset(next.slots, 0, sizeof(next.slots));
    next.slot_count = 0;
    while (next.slot_count < wanted) {
        /* Mostly the first names: those are the table's own. */
        uint64_t name = below(m, test_random_once_in(&m->random, 3) ? NAMES : wanted);
        if (taken >> name & 1) {
            wanted--;
            continue;
        }
        taken |= 1ull << name;
        struct counter_slot *slot = &next.slots[next.slot_count++];
        snprintf(slot->name, sizeof(slot->name), "s%" PRIu64, name);
        slot->bits = 2 + (unsigned)below(m, bits_left / (ENGINE_SLOTS_MAX + 1));
        bits_left -= slot->bits;
    }
    next.role_cache = test_random_once_in(&m->random, 3);
    next.keep_empty = test_random_once_in(&m->random, 2);
    counters_reconfigure(m->engine, &next);
    reference_reconfigure(m->reference, &next);
    m->config = next;
}

/* The slots it was created with: most operations are to meet those. */
static void reshape_back(struct model *m)
{
    counters_config_slots(&m->config, m->profile->slots);
    counters_reconfigure(m->engine, &m->config);
    reference_reconfigure(m->reference, &m->config);
}

static void now_and_then(struct model *m)
{
    if (m->done - m->checked >= CHECK_EVERY) {
        counter_check(m->engine);
        m->checked = m->done;
    }
    if (m->done - m->shaped >= SHAPE_EVERY) {
        m->shaped = m->done;
        if (test_random_once_in(&m->random, 2)) {
            reshape(m);
        } else {
            reshape_back(m);
        }
        counter_check(m->engine);
    }
    static const uint64_t large[] = {2, 20, 500}; /* the aux dict full, at times, never */
    m->filling = m->done / SWING_EVERY % 3 != 2;
    m->large_one_in = large[m->done / SWING_EVERY / 3 % 3];
    if (test_random_once_in(&m->random, CLEAR_ONCE_IN)) {
        row_flush(m->engine->row);
        reference_clear(m->reference);
    }
}

static void compare_id(struct model *m, uint64_t id)
{
    counters_call_init(&m->calls[0], ENGINE_READ, ENGINE_SLOT_RECORD, id, NULL);
    counters_run(m->engine, &m->calls[0], change_sink_null());
    compare(m, &m->calls[0].op);
}

static void compare_all(struct model *m)
{
    for (uint64_t i = 0; i < m->profile->indices; i++) {
        compare_id(m, m->profile->id(i));
    }
    for (unsigned i = 0; i < STRAYS; i++) {
        compare_id(m, m->strays[i]);
    }
    struct engine_figures figures = {0};
    m->engine->functions->figures(m->engine, &figures);
    assert_true(figures.memory[ENGINE_MEMORY_TABLES].items +
                    figures.memory[ENGINE_MEMORY_EXTEND].items ==
                reference_records(m->reference));
}

static void start(struct model *m, const struct profile *profile, uint64_t seed)
{
    memset(m, 0, sizeof(*m));
    m->profile = profile;
    m->random.state = seed;
    m->large_one_in = 2;
    counters_config(&m->config, profile->slots);
    m->config.id_spacing = profile->spacing;
    m->config.row.any_ids = profile->any_ids;
    m->config.row.tables = profile->tables ? profile->tables : 1;
    uint64_t last = profile->id(profile->indices - 1);
    const uint64_t strays[STRAYS] = {
        0,        1, last + 10, last + 1000000, last + 1000000000000, 1ull << 62, INT64_MAX - 1,
        INT64_MAX};
    memcpy(m->strays, strays, sizeof(strays));
    m->engine = counters_create(&m->config);
    m->reference = reference_create(&m->config);
}

static void run_profile(const struct profile *profile, uint64_t seed, uint64_t ops)
{
    static struct model model; /* large for a stack */
    struct model *m = &model;
    start(m, profile, seed);
    m->ops_all = ops;
    uint64_t most = 0;
    while (m->done < ops) {
        run_batch(m);
        now_and_then(m);
        uint64_t records = reference_records(m->reference);
        most = records > most ? records : most;
    }
    counter_check(m->engine);
    compare_all(m);
    reshape_back(m);
    compare_all(m);
    printf("%-22s %8" PRIu64 " operations, %6" PRIu64 " records at most, %7" PRIu64 " refused\n",
           profile->name, m->done, most, m->refused);
    assert_true(m->refused < m->done / REFUSED_ONE_IN);
    m->engine->functions->destroy(m->engine);
    reference_destroy(m->reference);
}

static void test_against_reference(void **unused)
{
    (void)unused;
    uint64_t seed = test_seed();
    uint64_t ops = test_scaled(OPS_ALL) / PROFILES;
    for (size_t i = 0; i < PROFILES; i++) {
        run_profile(&profiles[i], seed + i, ops);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
