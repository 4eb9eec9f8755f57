/*
 * test_counter.c: the engine through its functions: every verb on slots and records with every
 * status, tokens, roles, several-slot changes, reconfiguring.
 */
#include "counter/counter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "counter/schema.h"
#include "row/row_data.h"
#include "tests/support/counters.h"
#include "tests/support/table_figures.h"

#define SLOTS     "repost:20 comment:20 like:20 read:20"
#define REC       ENGINE_SLOT_RECORD
#define NO_TEXT   NULL
#define BATCH     300u
#define AUX_BYTES (64u << 10) /* room for every number of a batch */

/* One step of a script: an operation and what it must answer. */
struct step {
    enum engine_verb verb;
    int slot;
    uint64_t id;
    const char *text;
    enum engine_status status;
    enum engine_error error;
    const char *value; /* NULL: not looked at */
};

static void play(struct engine *engine, const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct step *step = &steps[i];
        struct counters_call call;
        counters_do(engine, &call, step->verb, step->slot, step->id, step->text);
        bool same = !step->value || strcmp(call.value, step->value) == 0;
        if (call.op.status != step->status || call.op.error != step->error || !same) {
            fail_msg("step %zu: status %d error %d value '%s'", i, (int)call.op.status,
                     (int)call.op.error, call.value);
        }
        counter_check(engine);
    }
}

#define PLAY(engine, steps) play(engine, steps, sizeof(steps) / sizeof(*(steps)))

static struct engine *open_space(const char *slots, bool role_cache)
{
    struct counter_config config;
    counters_config(&config, slots);
    config.role_cache = role_cache;
    return counters_create(&config);
}

static void close_space(struct engine *engine)
{
    counter_check(engine);
    engine->functions->destroy(engine);
}

static const struct step slot_steps[] = {
    {ENGINE_READ, 0, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_TOUCH, 0, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_REPLACE, 0, 1, "5", ENGINE_ABSENT, 0, NULL},
    {ENGINE_CAS, 0, 1, "5", ENGINE_ABSENT, 0, NULL},
    {ENGINE_DELETE, 0, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_ADD, 0, 1, "5", ENGINE_DONE, 0, NULL},
    {ENGINE_ADD, 0, 1, "6", ENGINE_EXISTS, 0, NULL},
    {ENGINE_READ, 0, 1, NO_TEXT, ENGINE_DONE, 0, "5"},
    {ENGINE_TOUCH, 0, 1, NO_TEXT, ENGINE_DONE, 0, ""},
    {ENGINE_READ, 1, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_REPLACE, 1, 1, "5", ENGINE_ABSENT, 0, NULL}, /* the id is there, the slot is not */
    {ENGINE_CAS, 1, 1, "5", ENGINE_ABSENT, 0, NULL},
    {ENGINE_ADD, 1, 1, "0", ENGINE_DONE, 0, NULL},
    {ENGINE_READ, 1, 1, NO_TEXT, ENGINE_DONE, 0, "0"},
    {ENGINE_REPLACE, 0, 1, "0007  ", ENGINE_DONE, 0, NULL},
    {ENGINE_READ, 0, 1, NO_TEXT, ENGINE_DONE, 0, "7"},
    {ENGINE_CAS, 0, 1, "8", ENGINE_EXISTS, 0, NULL}, /* token 0 is nobody's */
    {ENGINE_SET, 0, 1, "18446744073709551615", ENGINE_DONE, 0, NULL},
    {ENGINE_READ, 0, 1, NO_TEXT, ENGINE_DONE, 0, "18446744073709551615"},
    {ENGINE_SET, 0, 1, "18446744073709551616", ENGINE_ERROR, ENGINE_E_NOT_A_NUMBER, NULL},
    {ENGINE_SET, 0, 1, "", ENGINE_ERROR, ENGINE_E_NOT_A_NUMBER, NULL},
    {ENGINE_SET, 0, 1, "x", ENGINE_ERROR, ENGINE_E_NOT_A_NUMBER, NULL},
    {ENGINE_ADD, 0, 1, "-1", ENGINE_ERROR, ENGINE_E_NOT_A_NUMBER, NULL},
    {ENGINE_READ, 0, 1, NO_TEXT, ENGINE_DONE, 0, "18446744073709551615"},
    {ENGINE_DELETE, 0, 1, NO_TEXT, ENGINE_DONE, 0, NULL},
    {ENGINE_DELETE, 0, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_READ, 1, 1, NO_TEXT, ENGINE_DONE, 0, "0"},
    {ENGINE_DELETE, 1, 1, NO_TEXT, ENGINE_DONE, 0, NULL},
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL}, /* the last slot took the record */
};

static const struct step record_steps[] = {
    {ENGINE_REPLACE, REC, 1, "1,2,3,4", ENGINE_ABSENT, 0, NULL},
    {ENGINE_CAS, REC, 1, "1,2,3,4", ENGINE_ABSENT, 0, NULL},
    {ENGINE_DELETE, REC, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_SET, REC, 1, ",,,", ENGINE_DONE, 0, NULL},
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_ADD, REC, 1, "12,,30,400", ENGINE_DONE, 0, NULL},
    {ENGINE_ADD, REC, 1, "1,2,3,4", ENGINE_EXISTS, 0, NULL},
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_DONE, 0, "12,,30,400"},
    {ENGINE_TOUCH, REC, 1, NO_TEXT, ENGINE_DONE, 0, ""},
    {ENGINE_SET, REC, 1, "1,2,3", ENGINE_ERROR, ENGINE_E_RECORD_FIELDS, NULL},
    {ENGINE_SET, REC, 1, "1,2,3,4,5", ENGINE_ERROR, ENGINE_E_RECORD_FIELDS, NULL},
    {ENGINE_SET, REC, 1, "1,2,3,x", ENGINE_ERROR, ENGINE_E_RECORD_FIELDS, NULL},
    {ENGINE_SET, REC, 1, "", ENGINE_ERROR, ENGINE_E_RECORD_FIELDS, NULL},
    {ENGINE_SET, REC, 1, ",7,,99999999999", ENGINE_DONE, 0, NULL}, /* an empty field unsets */
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_DONE, 0, ",7,,99999999999"},
    {ENGINE_REPLACE, REC, 1, "1,1,1,1", ENGINE_DONE, 0, NULL},
    {ENGINE_CAS, REC, 1, "1,2,3,4", ENGINE_EXISTS, 0, NULL},
    {ENGINE_SET, REC, 1, ",,,", ENGINE_DONE, 0, NULL},
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_ADD, REC, 1, "1,2,3,4", ENGINE_DONE, 0, NULL},
    {ENGINE_DELETE, REC, 1, NO_TEXT, ENGINE_DONE, 0, NULL},
    {ENGINE_TOUCH, REC, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
};

/* keep_empty: an empty field leaves its slot. */
static const struct step keep_steps[] = {
    {ENGINE_SET, REC, 1, ",,,", ENGINE_DONE, 0, NULL},
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_ADD, REC, 1, "12,,30,99999999999", ENGINE_DONE, 0, NULL},
    {ENGINE_SET, REC, 1, ",7,31,", ENGINE_DONE, 0, NULL},
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_DONE, 0, "12,7,31,99999999999"},
    {ENGINE_REPLACE, REC, 1, ",,,5", ENGINE_DONE, 0, NULL},
    {ENGINE_SET, REC, 1, ",,,", ENGINE_DONE, 0, NULL},
    {ENGINE_CAS, REC, 1, ",,,", ENGINE_EXISTS, 0, NULL},
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_DONE, 0, "12,7,31,5"},
    {ENGINE_DELETE, 1, 1, NO_TEXT, ENGINE_DONE, 0, NULL},
    {ENGINE_SET, REC, 1, "1,,,", ENGINE_DONE, 0, NULL},
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_DONE, 0, "1,,31,5"},
    {ENGINE_INCR, REC, 1, "1,,,", ENGINE_DONE, 0, "2,,31,5"},
    {ENGINE_DELETE, REC, 1, NO_TEXT, ENGINE_DONE, 0, NULL},
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
};

/* A cache: one with an unset slot is absent; what would have changed of it goes. */
static const struct step incomplete_steps[] = {
    {ENGINE_SET, 0, 1, "5", ENGINE_DONE, 0, NULL},
    {ENGINE_SET, 1, 1, "6", ENGINE_DONE, 0, NULL},
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_TOUCH, REC, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_READ, 1, 1, NO_TEXT, ENGINE_DONE, 0, "6"}, /* a slot that is set is there */
    {ENGINE_INCR, 1, 1, "1", ENGINE_DONE, 0, "7"},
    {ENGINE_INCR, 2, 1, "1", ENGINE_ABSENT, 0, NULL},
    {ENGINE_INCR, REC, 1, ",,,", ENGINE_ABSENT, 0, NULL}, /* names nothing: nothing goes */
    {ENGINE_READ, 0, 1, NO_TEXT, ENGINE_DONE, 0, "5"},
    {ENGINE_INCR, REC, 1, ",1,1,", ENGINE_ABSENT, 0, NULL},
    {ENGINE_READ, 0, 1, NO_TEXT, ENGINE_DONE, 0, "5"},
    {ENGINE_READ, 1, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL}, /* it was to be 8: the store has that */
    {ENGINE_DECR, REC, 1, "1,,,", ENGINE_ABSENT, 0, NULL},
    {ENGINE_READ, 0, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_SET, 0, 1, "5", ENGINE_DONE, 0, NULL},
    {ENGINE_REPLACE, REC, 1, "1,2,3,4", ENGINE_ABSENT, 0, NULL},
    {ENGINE_READ, 0, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_SET, 0, 1, "5", ENGINE_DONE, 0, NULL},
    {ENGINE_CAS, REC, 1, "1,2,3,4", ENGINE_ABSENT, 0, NULL},
    {ENGINE_READ, 0, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_SET, 0, 1, "99999999999", ENGINE_DONE, 0, NULL},
    {ENGINE_ADD, REC, 1, ",2,,4", ENGINE_DONE, 0, NULL}, /* it stores, and 0 for what is empty */
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_DONE, 0, "0,2,0,4"},
    {ENGINE_ADD, REC, 1, "1,2,3,4", ENGINE_EXISTS, 0, NULL},
    {ENGINE_INCR, 2, 1, "1", ENGINE_DONE, 0, "1"},
    {ENGINE_SET, REC, 1, ",,,9", ENGINE_DONE, 0, NULL},
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_DONE, 0, "0,0,0,9"},
    {ENGINE_DELETE, 1, 1, NO_TEXT, ENGINE_DONE, 0, NULL},
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_SET, 1, 1, "3", ENGINE_DONE, 0, NULL}, /* the last slot that lacked */
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_DONE, 0, "0,3,0,9"},
    {ENGINE_DELETE, 1, 1, NO_TEXT, ENGINE_DONE, 0, NULL},
    {ENGINE_DELETE, REC, 1, NO_TEXT, ENGINE_DONE, 0, NULL},
    {ENGINE_READ, 3, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_SET, REC, 1, ",,,", ENGINE_DONE, 0, NULL},
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_DONE, 0, "0,0,0,0"},
};

static const struct step store_steps[] = {
    {ENGINE_DECR, 0, 1, "3", ENGINE_DONE, 0, "0"}, /* role store creates from 0 */
    {ENGINE_INCR, 0, 1, "5", ENGINE_DONE, 0, "5"},
    {ENGINE_INCR, 1, 1, "7", ENGINE_DONE, 0, "7"},
    {ENGINE_DECR, 0, 1, "2", ENGINE_DONE, 0, "3"},
    {ENGINE_DECR, 0, 1, "4", ENGINE_DONE, 0, "0"}, /* it stops there */
    {ENGINE_INCR, 0, 1, "18446744073709551615", ENGINE_DONE, 0, "18446744073709551615"},
    {ENGINE_INCR, 0, 1, "2", ENGINE_DONE, 0, "1"}, /* it wraps */
    {ENGINE_INCR, 0, 1, "0", ENGINE_DONE, 0, "1"},
    {ENGINE_INCR, 0, 1, "", ENGINE_ERROR, ENGINE_E_BAD_DELTA, NULL},
    {ENGINE_INCR, 0, 1, "-1", ENGINE_ERROR, ENGINE_E_BAD_DELTA, NULL},
    {ENGINE_DECR, 0, 1, "18446744073709551616", ENGINE_ERROR, ENGINE_E_BAD_DELTA, NULL},
    {ENGINE_INCR, 0, 1, "1,2", ENGINE_ERROR, ENGINE_E_BAD_DELTA, NULL},
    {ENGINE_INCR, REC, 1, "1", ENGINE_ERROR, ENGINE_E_NON_NUMERIC, NULL},
    {ENGINE_INCR, REC, 1, "1,1", ENGINE_ERROR, ENGINE_E_BAD_DELTA, NULL},
    {ENGINE_INCR, REC, 1, "1,,3,", ENGINE_DONE, 0, "2,7,3,"},
    {ENGINE_DECR, REC, 1, "1,8,,1", ENGINE_DONE, 0, "1,0,3,0"},
    {ENGINE_INCR, REC, 1, ",,,", ENGINE_DONE, 0, "1,0,3,0"},
    {ENGINE_INCR, REC, 2, ",,,", ENGINE_ABSENT, 0, NULL},
    {ENGINE_INCR, REC, 2, ",9,,", ENGINE_DONE, 0, ",9,,"},
    {ENGINE_READ, REC, 2, NO_TEXT, ENGINE_DONE, 0, ",9,,"},
};

static const struct step cache_steps[] = {
    {ENGINE_INCR, 0, 1, "5", ENGINE_ABSENT, 0, NULL},
    {ENGINE_DECR, 0, 1, "5", ENGINE_ABSENT, 0, NULL},
    {ENGINE_INCR, REC, 1, "1,,,", ENGINE_ABSENT, 0, NULL},
    {ENGINE_TOUCH, REC, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_SET, REC, 1, "1,,3,4", ENGINE_DONE, 0, NULL},
    {ENGINE_INCR, 0, 1, "5", ENGINE_DONE, 0, "6"},
    {ENGINE_INCR, 1, 1, "5", ENGINE_DONE, 0, "5"},
    {ENGINE_INCR, REC, 1, "1,,1,1", ENGINE_DONE, 0, "7,5,4,5"},
};

static const struct step one_slot_steps[] = {
    {ENGINE_INCR, REC, 1, "5", ENGINE_DONE, 0, "5"}, /* a record of one slot is as the slot */
    {ENGINE_INCR, 0, 1, "5", ENGINE_DONE, 0, "10"},
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_DONE, 0, "10"},
    {ENGINE_SET, REC, 1, "", ENGINE_DONE, 0, NULL}, /* one empty field */
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
};

static void test_slot_verbs(void **unused)
{
    (void)unused;
    struct engine *store = open_space(SLOTS, false);
    struct engine *cache = open_space(SLOTS, true);
    PLAY(store, slot_steps);
    PLAY(cache, slot_steps);
    close_space(store);
    close_space(cache);
}

static void test_record_verbs(void **unused)
{
    (void)unused;
    struct engine *store = open_space(SLOTS, false);
    struct engine *cache = open_space(SLOTS, true);
    PLAY(store, record_steps);
    PLAY(cache, incomplete_steps);
    close_space(store);
    close_space(cache);
    struct counter_config config;
    counters_config(&config, SLOTS);
    config.keep_empty = true;
    store = counters_create(&config);
    PLAY(store, keep_steps);
    close_space(store);
}

static void test_incr_by_role(void **unused)
{
    (void)unused;
    struct engine *store = open_space(SLOTS, false);
    struct engine *cache = open_space(SLOTS, true);
    struct engine *one = open_space("n:20", false);
    PLAY(store, store_steps);
    PLAY(cache, cache_steps);
    PLAY(one, one_slot_steps);
    close_space(store);
    close_space(cache);
    close_space(one);
}

/* What meta and binary ask of incr: an initial value, or never to create. */
static void test_incr_creates(void **unused)
{
    (void)unused;
    struct engine *engine = open_space(SLOTS, true);
    struct counters_call call;
    counters_call_init(&call, ENGINE_INCR, 2, 1, "5");
    call.op.create_initial = true;
    call.op.initial = 1000;
    assert_int_equal(counters_run(engine, &call, change_sink_null()), ENGINE_DONE);
    assert_string_equal(call.value, "1000"); /* the delta is not applied */
    assert_int_equal(counters_run(engine, &call, change_sink_null()), ENGINE_DONE);
    assert_string_equal(call.value, "1005");
    close_space(engine);
    engine = open_space(SLOTS, false);
    counters_call_init(&call, ENGINE_DECR, 2, 1, "5");
    call.op.create_never = true;
    assert_int_equal(counters_run(engine, &call, change_sink_null()), ENGINE_ABSENT);
    close_space(engine);
}

static uint64_t token_of(struct engine *engine, int slot, uint64_t id)
{
    struct counters_call call;
    counters_call_init(&call, ENGINE_READ, slot, id, NULL);
    call.op.want_cas = true;
    assert_int_equal(counters_run(engine, &call, change_sink_null()), ENGINE_DONE);
    assert_true(call.op.cas_now != 0);
    return call.op.cas_now;
}

static enum engine_status cas(struct engine *engine, int slot, const char *text, uint64_t token)
{
    struct counters_call call;
    counters_call_init(&call, ENGINE_CAS, slot, 1, text);
    call.op.cas = token;
    return counters_run(engine, &call, change_sink_null());
}

static void test_cas(void **unused)
{
    (void)unused;
    struct engine *engine = open_space(SLOTS, false);
    struct counters_call call;
    counters_do(engine, &call, ENGINE_SET, REC, 1, "1,1,3,99999999999");
    uint64_t slot = token_of(engine, 0, 1);
    uint64_t record = token_of(engine, REC, 1);
    assert_true(slot != record);
    assert_true(slot != token_of(engine, 1, 1)); /* the same number in another slot */
    assert_int_equal(cas(engine, 0, "2", slot), ENGINE_DONE);
    assert_int_equal(cas(engine, 0, "3", slot), ENGINE_EXISTS);
    assert_int_equal(cas(engine, REC, "9,9,9,9", record), ENGINE_EXISTS);
    assert_int_equal(cas(engine, 0, "1", token_of(engine, 0, 1)), ENGINE_DONE);
    assert_true(slot == token_of(engine, 0, 1)); /* an earlier value has its earlier token */
    assert_int_equal(cas(engine, REC, "9,,9,5", record), ENGINE_DONE);
    counters_do(engine, &call, ENGINE_READ, REC, 1, NULL);
    assert_string_equal(call.value, "9,,9,5");
    assert_int_equal(cas(engine, REC, ",,,", token_of(engine, REC, 1)), ENGINE_DONE);
    assert_int_equal(cas(engine, REC, "1,1,1,1", record), ENGINE_ABSENT);
    close_space(engine);
}

static void look_for_misses(struct engine *engine)
{
    struct counters_call call;
    counters_do(engine, &call, ENGINE_SET, 0, 1, "1");
    counters_do(engine, &call, ENGINE_READ, 1, 1, NULL);
    assert_int_equal(call.op.miss, ENGINE_MISS_UNSET);
    counters_do(engine, &call, ENGINE_READ, 1, 2, NULL);
    assert_int_equal(call.op.miss, ENGINE_MISS_ABSENT);
    counters_do(engine, &call, ENGINE_READ, REC, 1, NULL);
    assert_true(!engine->role_cache || call.op.miss == ENGINE_MISS_INCOMPLETE);
}

static void test_misses(void **unused)
{
    (void)unused;
    struct counters_call call;
    struct engine *engine = open_space(SLOTS, false);
    look_for_misses(engine);
    counters_do(engine, &call, ENGINE_SET, REC, 2, "1");
    close_space(engine);
    engine = open_space(SLOTS, true);
    look_for_misses(engine);
    close_space(engine);
    /* in the group its id says, as soon as that is known */
    struct counter_config config;
    counters_config(&config, SLOTS);
    config.row.any_ids = true;
    engine = counters_create(&config);
    look_for_misses(engine);
    close_space(engine);
}

/* Runs an operation on slots 3 and 0, in this order, of id 1. */
static enum engine_status some(struct engine *engine, struct counters_call *call,
                               struct counters_sink *sink, enum engine_verb verb, const char *text)
{
    counters_call_init(call, verb, ENGINE_SLOT_SOME, 1, text);
    call->op.some = 1u << 3 | 1u << 0;
    call->op.order = 0x03;
    call->op.want_cas = true;
    counters_sink_init(sink);
    return counters_run(engine, call, &sink->sink);
}

static void expect_first(struct engine *engine, const char *text)
{
    struct counters_call call;
    counters_do(engine, &call, ENGINE_READ, REC, 1, NULL);
    assert_string_equal(call.value, text);
}

/* What several slots become is one change; one number for all of them answers the first's. */
static void test_some(void **unused)
{
    (void)unused;
    struct engine *engine = open_space(SLOTS, false);
    struct counters_call call;
    struct counters_sink sink;
    assert_int_equal(some(engine, &call, &sink, ENGINE_READ, NULL), ENGINE_ABSENT);
    assert_int_equal(some(engine, &call, &sink, ENGINE_INCR, "7"), ENGINE_DONE);
    assert_string_equal(call.value, "7");
    assert_true(sink.put == 1 && sink.last.type == CHANGE_SLOTS && sink.last.named == 9);
    assert_true(sink.last.values[0] == 7 && sink.last.values[3] == 7);
    assert_int_equal(some(engine, &call, &sink, ENGINE_INCR, "99999999999,1"), ENGINE_DONE);
    assert_string_equal(call.value, "100000000006,8");
    assert_true(sink.put == 1 && sink.last.named == 9);
    uint64_t token = call.op.cas_now;
    assert_int_equal(some(engine, &call, &sink, ENGINE_READ, NULL), ENGINE_DONE);
    assert_string_equal(call.value, "100000000006,8");
    assert_true(call.op.cas_now == token && token != token_of(engine, REC, 1));
    assert_int_equal(some(engine, &call, &sink, ENGINE_SET, "5,"), ENGINE_DONE);
    expect_first(engine, ",,,5"); /* without keep_empty */
    assert_int_equal(some(engine, &call, &sink, ENGINE_SET, "5"), ENGINE_ERROR);
    assert_int_equal(call.op.error, ENGINE_E_SOME_FIELDS);
    assert_int_equal(some(engine, &call, &sink, ENGINE_INCR, "1,2,3"), ENGINE_ERROR);
    assert_int_equal(call.op.error, ENGINE_E_BAD_DELTA);
    assert_int_equal(some(engine, &call, &sink, ENGINE_ADD, "1,1"), ENGINE_EXISTS);
    assert_int_equal(some(engine, &call, &sink, ENGINE_DELETE, NULL), ENGINE_DONE);
    assert_int_equal(some(engine, &call, &sink, ENGINE_DELETE, NULL), ENGINE_ABSENT);
    close_space(engine);
}

/* A cache has all the slots of a key, or what would have changed of them goes. */
static void test_some_of_cache(void **unused)
{
    (void)unused;
    struct engine *engine = open_space(SLOTS, true);
    struct counters_call call;
    struct counters_sink sink;
    counters_do(engine, &call, ENGINE_SET, 1, 1, "2");
    counters_do(engine, &call, ENGINE_SET, 0, 1, "1");
    assert_int_equal(some(engine, &call, &sink, ENGINE_READ, NULL), ENGINE_ABSENT);
    assert_int_equal(call.op.miss, ENGINE_MISS_INCOMPLETE);
    assert_int_equal(some(engine, &call, &sink, ENGINE_INCR, "7"), ENGINE_ABSENT);
    assert_int_equal(counters_do(engine, &call, ENGINE_READ, 0, 1, NULL), ENGINE_ABSENT);
    assert_int_equal(counters_do(engine, &call, ENGINE_READ, 1, 1, NULL), ENGINE_DONE);
    assert_int_equal(some(engine, &call, &sink, ENGINE_ADD, ",4"), ENGINE_DONE);
    assert_int_equal(some(engine, &call, &sink, ENGINE_READ, NULL), ENGINE_DONE);
    assert_string_equal(call.value, "0,4");
    assert_int_equal(some(engine, &call, &sink, ENGINE_INCR, "7"), ENGINE_DONE);
    assert_string_equal(call.value, "7");
    counters_do(engine, &call, ENGINE_SET, 2, 1, "3");
    expect_first(engine, "11,2,3,7");
    close_space(engine);
}

static const struct step named_steps[] = {
    {ENGINE_SET, REC, 1, "like=3", ENGINE_DONE, 0, NULL},
    {ENGINE_SET, REC, 1, "read=99999999999,repost=1  ", ENGINE_DONE, 0, NULL},
    {ENGINE_READ, 3, 1, NO_TEXT, ENGINE_DONE, 0, "99999999999"},
    {ENGINE_READ, 2, 1, NO_TEXT, ENGINE_DONE, 0, "3"},
    {ENGINE_READ, 1, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
    {ENGINE_SET, REC, 1, "share=1", ENGINE_ERROR, ENGINE_E_RECORD_FIELDS, NULL},
    {ENGINE_SET, REC, 1, "repost=1,repost=2", ENGINE_ERROR, ENGINE_E_RECORD_FIELDS, NULL},
    {ENGINE_SET, REC, 1, "repost=", ENGINE_ERROR, ENGINE_E_RECORD_FIELDS, NULL},
    {ENGINE_SET, REC, 1, "repost=1,", ENGINE_ERROR, ENGINE_E_RECORD_FIELDS, NULL},
    {ENGINE_SET, REC, 1, "repost=1,2", ENGINE_ERROR, ENGINE_E_RECORD_FIELDS, NULL},
    {ENGINE_SET, REC, 1, "=1", ENGINE_ERROR, ENGINE_E_RECORD_FIELDS, NULL},
    {ENGINE_SET, REC, 1, "comment=2", ENGINE_DONE, 0, NULL},
    {ENGINE_READ, REC, 1, NO_TEXT, ENGINE_DONE, 0, "1,2,3,99999999999"},
    {ENGINE_ADD, REC, 1, "comment=2", ENGINE_EXISTS, 0, NULL},
    {ENGINE_REPLACE, REC, 1, "comment=4", ENGINE_DONE, 0, NULL},
    {ENGINE_INCR, REC, 1, "read=1,comment=5", ENGINE_DONE, 0, "1,9,3,100000000000"},
    {ENGINE_DECR, REC, 1, "repost=1", ENGINE_DONE, 0, "0,9,3,100000000000"},
    {ENGINE_INCR, REC, 1, "repost=1,share=1", ENGINE_ERROR, ENGINE_E_BAD_DELTA, NULL},
    {ENGINE_DELETE, 1, 1, NO_TEXT, ENGINE_DONE, 0, NULL},
    {ENGINE_SET, REC, 1, "repost=7", ENGINE_DONE, 0, NULL},
    {ENGINE_READ, 3, 1, NO_TEXT, ENGINE_DONE, 0, "100000000000"}, /* not 0, nor unset */
    {ENGINE_READ, 1, 1, NO_TEXT, ENGINE_ABSENT, 0, NULL},
};

static void test_named_fields(void **unused)
{
    (void)unused;
    struct engine *store = open_space(SLOTS, false);
    struct engine *cache = open_space(SLOTS, true);
    PLAY(store, named_steps);
    PLAY(cache, named_steps);
    close_space(store);
    close_space(cache);
}

static void test_ids_any(void **unused)
{
    (void)unused;
    struct counter_config config;
    counters_config(&config, SLOTS);
    config.row.any_ids = true;
    config.max_id = 1000;
    struct engine *engine = counters_create(&config);
    static const struct step steps[] = {
        {ENGINE_SET, 0, 1000, "5", ENGINE_DONE, 0, NULL},
        {ENGINE_SET, 0, 1001, "5", ENGINE_ERROR, ENGINE_E_ID_TOO_LARGE, NULL},
        {ENGINE_INCR, 0, INT64_MAX, "5", ENGINE_ERROR, ENGINE_E_ID_TOO_LARGE, NULL},
        {ENGINE_READ, 0, 1001, NO_TEXT, ENGINE_ABSENT, 0, NULL},
        {ENGINE_READ, 0, INT64_MAX, NO_TEXT, ENGINE_ABSENT, 0, NULL},
        {ENGINE_READ, 0, 1000, NO_TEXT, ENGINE_DONE, 0, "5"},
    };
    PLAY(engine, steps);
    close_space(engine);
}

static uint64_t items(const struct engine *engine, enum engine_memory_kind kind)
{
    struct engine_figures figures = {0};
    engine->functions->figures(engine, &figures);
    return figures.memory[kind].items;
}

/* Reads of many keys at once, the same id several times, hits between misses. */
static void test_batches(void **unused)
{
    (void)unused;
    static struct counters_call calls[BATCH];
    struct engine_op *ops[BATCH];
    struct counter_config config;
    counters_config(&config, SLOTS);
    config.aux_bytes = AUX_BYTES;
    struct engine *engine = counters_create(&config);
    for (uint64_t id = 0; id < BATCH; id += 2) {
        char text[32];
        snprintf(text, sizeof(text), "%" PRIu64, id * (id % 4 ? 1 : 1000000000));
        struct counters_call call;
        assert_int_equal(counters_do(engine, &call, ENGINE_SET, 1, id, text), ENGINE_DONE);
    }
    for (uint64_t i = 0; i < BATCH; i++) {
        counters_call_init(&calls[i], ENGINE_READ, 1, i / 3 * 3, NULL);
        ops[i] = &calls[i].op;
    }
    engine->functions->prepare(engine, ops, BATCH);
    engine->functions->read(engine, ops, BATCH);
    for (uint64_t i = 0; i < BATCH; i++) {
        uint64_t id = i / 3 * 3;
        assert_int_equal(ops[i]->status, id % 2 ? ENGINE_ABSENT : ENGINE_DONE);
        if (id % 2 == 0) {
            char text[32];
            int length = snprintf(text, sizeof(text), "%" PRIu64, id * (id % 4 ? 1 : 1000000000));
            assert_int_equal(ops[i]->value_length, length);
            assert_memory_equal(ops[i]->value, text, (size_t)length);
        }
    }
    close_space(engine);
}

/* What comes before the first that is not simple is done, each as change() would. */
static void test_adds(void **unused)
{
    (void)unused;
    static const struct {
        enum engine_verb verb;
        int slot;
        uint64_t id;
        const char *text;
        uint64_t now;
    } adds[] = {
        {ENGINE_INCR, 1, 7, "5", 15},    {ENGINE_INCR, 1, 8, "1", 11},
        {ENGINE_INCR, 1, 7, "100", 115}, {ENGINE_DECR, 1, 7, "200", 0},
        {ENGINE_INCR, 2, 7, "1", 0}, /* unset */
        {ENGINE_INCR, 1, 7, "1", 0},
    };
    enum { COUNT = sizeof(adds) / sizeof(*adds), SIMPLE = 4 };
    static struct counters_call calls[COUNT];
    struct engine_op *ops[COUNT];
    uint64_t now[COUNT] = {0};
    uint64_t tokens[COUNT] = {0};
    struct counters_sink sink;
    struct counters_call call;
    struct counter_config config;
    counters_config(&config, SLOTS);
    config.row.any_ids = true; /* else the first ids are in no group, and nothing is simple */
    struct engine *engine = counters_create(&config);
    counters_sink_init(&sink);
    assert_int_equal(counters_do(engine, &call, ENGINE_SET, 1, 7, "10"), ENGINE_DONE);
    assert_int_equal(counters_do(engine, &call, ENGINE_SET, 1, 8, "10"), ENGINE_DONE);
    for (size_t i = 0; i < COUNT; i++) {
        counters_call_init(&calls[i], adds[i].verb, adds[i].slot, adds[i].id, adds[i].text);
        ops[i] = &calls[i].op;
        ops[i]->want_cas = i == 1;
    }
    engine->functions->prepare(engine, ops, COUNT);
    assert_int_equal(counter_add(engine, ops, COUNT, &sink.sink, now, tokens), SIMPLE);
    for (size_t i = 0; i < SIMPLE; i++) {
        assert_int_equal(now[i], adds[i].now);
    }
    assert_true(sink.put == SIMPLE && sink.last.id == 7 && sink.last.values[1] == 0);
    assert_int_equal(counters_do(engine, &call, ENGINE_READ, 1, 7, NO_TEXT), ENGINE_DONE);
    assert_string_equal(call.value, "0");
    assert_int_equal(counters_do(engine, &call, ENGINE_READ, 1, 8, NO_TEXT), ENGINE_DONE);
    assert_string_equal(call.value, "11");
    counters_call_init(&call, ENGINE_READ, 1, 8, NULL);
    call.op.want_cas = true;
    ops[0] = &call.op;
    engine->functions->prepare(engine, ops, 1);
    engine->functions->read(engine, ops, 1);
    assert_true(tokens[0] == 0 && tokens[1] == call.op.cas_now && tokens[1] != 0);
    ops[0] = &calls[0].op;
    sink.full = true; /* then it is for change() to say why */
    assert_int_equal(counter_add(engine, ops, 1, &sink.sink, now, tokens), 0);
    assert_int_equal(sink.put, SIMPLE);
    close_space(engine);
}

static void expect_record(struct engine *engine, uint64_t id, const char *text)
{
    struct counters_call call;
    assert_int_equal(counters_do(engine, &call, ENGINE_READ, REC, id, NULL), ENGINE_DONE);
    assert_string_equal(call.value, text);
    counter_check(engine);
}

static void take(struct engine *engine, struct counter_config *config, const char *slots)
{
    counters_config_slots(config, slots);
    counters_reconfigure(engine, config);
}

static void test_reconfigure(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct counters_call call;
    counters_config(&config, "a:4 b:20");
    struct engine *engine = counters_create(&config);
    counters_do(engine, &call, ENGINE_SET, REC, 1, "1,2");
    counters_do(engine, &call, ENGINE_SET, REC, 2, "100,");
    take(engine, &config, "a:4 b:20 c:20"); /* added */
    expect_record(engine, 1, "1,2,");
    counters_do(engine, &call, ENGINE_INCR, 2, 1, "5");
    expect_record(engine, 1, "1,2,5");
    take(engine, &config, "c:20 b:20 a:4"); /* in another order */
    expect_record(engine, 1, "5,2,1");
    expect_record(engine, 2, ",,100");
    take(engine, &config, "c:20 b:20 a:40"); /* widened */
    counters_do(engine, &call, ENGINE_SET, 2, 1, "1000000");
    expect_record(engine, 1, "5,2,1000000");
    strcpy(config.forget[0], "a");
    strcpy(config.forget[1], "c");
    config.forget_count = 2;
    take(engine, &config, "b:20"); /* removed */
    expect_record(engine, 1, "2");
    assert_int_equal(counters_do(engine, &call, ENGINE_READ, REC, 2, NULL), ENGINE_ABSENT);
    assert_int_equal(counters_do(engine, &call, ENGINE_ADD, REC, 2, "7"), ENGINE_DONE);
    config.forget_count = 0;
    take(engine, &config, "a:4 b:20 c:20"); /* of those names, and others: what was is gone */
    expect_record(engine, 1, ",2,");
    expect_record(engine, 2, ",7,");
    counters_do(engine, &call, ENGINE_INCR, 0, 1, "1");
    expect_record(engine, 1, "1,2,");
    config.forget_count = 0;
    take(engine, &config, "b:20 d:8");
    take(engine, &config, "a:4 b:20 c:20"); /* what was not let go comes back */
    expect_record(engine, 1, "1,2,");
    take(engine, &config, "b:20 d:8");
    counters_do(engine, &call, ENGINE_DELETE, REC, 1, NULL); /* hidden ones go with the record */
    counters_do(engine, &call, ENGINE_DELETE, 0, 2, NULL);
    counter_check(engine);
    counters_do(engine, &call, ENGINE_SET, 1, 1, "3");
    take(engine, &config, "a:4 b:20 c:20 d:8");
    expect_record(engine, 1, ",,,3");
    assert_int_equal(counters_do(engine, &call, ENGINE_READ, REC, 2, NULL), ENGINE_ABSENT);
    close_space(engine);
}

static void test_reconfigure_role_and_refusal(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct counters_call call;
    char error[COUNTER_ERROR_MAX] = "";
    counters_config(&config, "a:4 b:20");
    struct engine *engine = counters_create(&config);
    config.role_cache = true;
    config.value_flags = 5;
    counters_reconfigure(engine, &config);
    assert_int_equal(engine->flags, 5);
    assert_int_equal(counters_do(engine, &call, ENGINE_INCR, 0, 1, "1"), ENGINE_ABSENT);
    config.slots[1].bits = 1;
    config.role_cache = false;
    assert_false(counter_reconfigure(engine, &config, error));
    assert_true(error[0] != '\0');
    assert_int_equal(counters_do(engine, &call, ENGINE_INCR, 0, 1, "1"), ENGINE_ABSENT);
    assert_int_equal(counters_do(engine, &call, ENGINE_SET, REC, 1, "1,2"), ENGINE_DONE);
    config.slots[1].bits = 20;
    counters_reconfigure(engine, &config);
    assert_int_equal(counters_do(engine, &call, ENGINE_INCR, 0, 2, "1"), ENGINE_DONE);
    for (unsigned i = 0; i < 40; i++) { /* more names than a table learns */
        snprintf(config.slots[0].name, sizeof(config.slots[0].name), "x%u", i);
        bool taken = counter_reconfigure(engine, &config, error);
        assert_true(taken == (i < SCHEMA_EXTRAS_MAX));
    }
    assert_int_equal(counters_do(engine, &call, ENGINE_READ, 1, 1, NULL), ENGINE_DONE);
    close_space(engine);
}

struct seen {
    unsigned count;
    char records[32];
};

static void see(void *context, const char *name, const char *text)
{
    struct seen *seen = context;
    seen->count++;
    assert_int_equal(strspn(name, "0123456789:abcdefghijklmnopqrstuvwxyz_"), strlen(name));
    if (strcmp(name, "records") == 0 || strcmp(name, "0:records") == 0) {
        snprintf(seen->records, sizeof(seen->records), "%s", text);
    }
}

static void test_stats_and_size(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct counter_size size;
    struct counters_call call;
    counters_config(&config, SLOTS);
    counter_config_size(&config, &size);
    assert_true(size.bytes >= config.row.table_bytes && size.records > 3000);
    assert_true(size.tables == 1 && size.spare == 0);
    const struct counter_size one = size;
    config.row.tables = 4;
    counter_config_size(&config, &size);
    assert_true(size.tables == 4 && size.spare == 0);
    const uint64_t four = size.bytes; /* and ids apart, of small tables a pool for each */
    assert_in_range(four, 4 * config.row.table_bytes, 4 * one.bytes + config.row.table_bytes);
    const uint64_t later = (size.records - one.records) / 3; /* it knows the range of its ids */
    assert_true(later > one.records);
    config.row.recycle = true;
    counter_config_size(&config, &size);
    assert_true(size.tables == 3 && size.spare == 1 && size.bytes == four);
    assert_true(size.records == 3 * later && size.bytes_per_record < one.bytes_per_record);
    config.row.any_ids = true;
    counter_config_size(&config, &size);
    assert_true(size.tables == 1 && size.spare == 0 && size.records < later);
    counters_config(&config, SLOTS);
    struct engine *engine = counters_create(&config);
    for (uint64_t id = 0; id < 5; id++) {
        counters_do(engine, &call, ENGINE_SET, REC, id, "1,2,3,99999999");
    }
    struct seen space = {0};
    struct seen tables = {0};
    engine->functions->stats_space(engine, see, &space);
    stats_of_tables(engine, see, &tables);
    assert_true(space.count > 5 && tables.count > 10);
    assert_string_equal(space.records, "5");
    assert_string_equal(tables.records,
                        "5"); /* of its range, though it does not know its ids yet */
    struct engine_figures figures = {0};
    engine->functions->figures(engine, &figures);
    assert_int_equal(figures.memory[ENGINE_MEMORY_EXTEND].items, 5); /* it has not settled yet */
    assert_int_equal(figures.memory[ENGINE_MEMORY_TABLES].held_bytes, config.row.table_bytes);
    assert_int_equal(figures.memory[ENGINE_MEMORY_AUX].items, 5);
    _Atomic bool stop = false;
    row_populate(engine->row, &stop);
    row_flush(engine->row);
    engine->functions->stats_space(engine, see, &space);
    assert_string_equal(space.records, "0");
    close_space(engine);
}

/* What lies in the extend dict is no second record. */
static void test_spilled_counted_once(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct counter_size size;
    struct counters_call call;
    counters_config(&config, SLOTS);
    config.id_spacing = 1;
    counter_config_size(&config, &size);
    struct engine *engine = counters_create(&config);
    for (uint64_t id = 0; id < size.records; id++) {
        assert_int_equal(counters_do(engine, &call, ENGINE_SET, 0, id, "1"), ENGINE_DONE);
    }
    assert_true(items(engine, ENGINE_MEMORY_EXTEND) > 0);
    assert_int_equal(items(engine, ENGINE_MEMORY_TABLES) + items(engine, ENGINE_MEMORY_EXTEND),
                     size.records);
    assert_int_equal(counters_do(engine, &call, ENGINE_SET, 0, size.records, "1"), ENGINE_ERROR);
    assert_int_equal(call.op.error, ENGINE_E_NO_TABLE_FREE);
    close_space(engine);
}

static uint64_t token_there(struct engine *engine, int slot)
{
    struct counters_call call;
    counters_call_init(&call, ENGINE_READ, slot, 1, NO_TEXT);
    call.op.want_cas = true;
    return counters_run(engine, &call, change_sink_null()) == ENGINE_DONE ? call.op.cas_now : 0;
}

/* A write that expires, of a record or of its first slot, with the token that is there or another.
 */
static void expire(struct engine *engine, enum engine_verb verb, int slot, bool other,
                   enum engine_status expected)
{
    struct counters_call call;
    struct counters_sink sink;
    const uint64_t before = token_there(engine, slot);
    counters_call_init(&call, verb, slot, 1, slot == REC ? "5,6,7,8" : "5");
    call.op.expires = call.op.want_cas = true;
    call.op.cas = before + other;
    counters_sink_init(&sink);
    sink.full = true;
    assert_int_equal(counters_run(engine, &call, &sink.sink), ENGINE_ERROR);
    assert_true(token_there(engine, slot) == before);
    sink.full = false;
    assert_int_equal(counters_run(engine, &call, &sink.sink), expected);
    const bool goes = expected == ENGINE_DONE && before != 0 && verb != ENGINE_ADD;
    assert_int_equal(sink.put, goes); /* one change, so no half of it can be refused */
    assert_true(token_there(engine, slot) == (goes ? 0 : before));
    assert_true(expected != ENGINE_DONE || call.op.cas_now == 0);
    counter_check(engine);
}

/* Judged as any other write; what its key names is gone at once, and nothing comes to be. */
static void test_expiring(void **unused)
{
    static const struct {
        enum engine_verb verb;
        bool other;
        enum engine_status there, absent;
    } rows[] = {
        {ENGINE_SET, false, ENGINE_DONE, ENGINE_DONE},
        {ENGINE_ADD, false, ENGINE_EXISTS, ENGINE_DONE},
        {ENGINE_REPLACE, false, ENGINE_DONE, ENGINE_ABSENT},
        {ENGINE_CAS, false, ENGINE_DONE, ENGINE_ABSENT},
        {ENGINE_CAS, true, ENGINE_EXISTS, ENGINE_ABSENT},
    };
    (void)unused;
    for (size_t i = 0; i < 4 * sizeof(rows) / sizeof(rows[0]); i++) {
        const int slot = i & 1 ? REC : 0;
        struct engine *engine = open_space(SLOTS, i & 2);
        struct counters_call call;
        expire(engine, rows[i / 4].verb, slot, rows[i / 4].other, rows[i / 4].absent);
        assert_int_equal(items(engine, ENGINE_MEMORY_TABLES), 0);
        assert_int_equal(items(engine, ENGINE_MEMORY_EXTEND), 0);
        counters_do(engine, &call, ENGINE_SET, REC, 1, "1,2,3,4");
        expire(engine, rows[i / 4].verb, slot, rows[i / 4].other, rows[i / 4].there);
        counters_do(engine, &call, ENGINE_READ, 1, 1, NO_TEXT);
        assert_true(call.op.status == ENGINE_DONE || slot == REC); /* no other slot goes */
        close_space(engine);
    }
    struct engine *engine = open_space(SLOTS, false);
    struct counters_call call;
    counters_call_init(&call, ENGINE_SET, 0, 1, "x");
    call.op.expires = true;
    assert_int_equal(counters_run(engine, &call, change_sink_null()), ENGINE_ERROR);
    assert_int_equal(call.op.error, ENGINE_E_NOT_A_NUMBER);
    counters_call_init(&call, ENGINE_INCR, REC, 1, "5,,,");
    call.op.expires = true; /* which it is not asked for */
    assert_int_equal(counters_run(engine, &call, change_sink_null()), ENGINE_DONE);
    assert_true(token_there(engine, 0) != 0);
    close_space(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slot_verbs),
        cmocka_unit_test(test_record_verbs),
        cmocka_unit_test(test_incr_by_role),
        cmocka_unit_test(test_incr_creates),
        cmocka_unit_test(test_cas),
        cmocka_unit_test(test_misses),
        cmocka_unit_test(test_some),
        cmocka_unit_test(test_some_of_cache),
        cmocka_unit_test(test_named_fields),
        cmocka_unit_test(test_ids_any),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_adds),
        cmocka_unit_test(test_reconfigure),
        cmocka_unit_test(test_reconfigure_role_and_refusal),
        cmocka_unit_test(test_stats_and_size),
        cmocka_unit_test(test_spilled_counted_once),
        cmocka_unit_test(test_expiring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
