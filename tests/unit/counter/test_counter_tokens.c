/*
 * test_counter_tokens.c: cas tokens of changes, wherever a record may lie: a token that is compared
 * before, and the one that is handed out after; threads that compare and swap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "row/row.h"
#include "tests/support/dumps.h"
#include "tests/support/give_way.h"
#include "tests/support/rows.h"

#define REC        ENGINE_SLOT_RECORD
#define SLOTS      4
#define AUX_BYTES  (64u << 10)
#define ROLLED     (3u * ROWS_TABLE_WORTH) /* ids after which the first ones have left */
#define ID         (rows_dense(0))
#define SETTLED    2000u /* ids after which they lie in groups */
#define SEEN       120u  /* of a file, one by one */
#define DUMPED     7000u /* more than a table takes */
#define ROUNDS     20000u
#define THREADS    4
#define INCREMENTS 3000u /* of each */

/* Where the record of ID lies. */
struct place {
    struct engine *engine;
    struct counter_config config;
    struct dumps dumps; /* of a dumped table alone */
    bool dumped;
    bool zeroes; /* role store: incr makes what is absent from 0 */
};

/* Whoever runs operations there: a thread. */
struct runner {
    struct place *place;
    uint64_t id;
    struct recorder_sink sink;
    uint64_t serial;
    struct counters_call call;
};

static void no_wake(void *target, uint64_t serial)
{
    (void)target;
    (void)serial;
}

static void runner_init(struct runner *runner, struct place *place)
{
    memset(runner, 0, sizeof(*runner));
    runner->place = place;
    runner->id = ID;
    runner->serial = (uintptr_t)runner; /* no other's */
    if (place->dumped) {
        recorder_sink_init(&runner->sink, &place->dumps.recorder);
    }
}

static enum engine_status run_dumped(struct runner *runner)
{
    struct engine_op *op = &runner->call.op;
    op->ticket = (struct ticket){no_wake, runner, ++runner->serial};
    for (;;) {
        dumps_run(&runner->place->dumps, op, &runner->sink.sink);
        if (op->status != ENGINE_PENDING) {
            break;
        }
        give_way();
    }
    runner->call.value[op->value_length] = '\0';
    return op->status;
}

/* The call as it was filled. */
static enum engine_status run(struct runner *runner)
{
    runner->call.value[0] = '\0';
    return runner->place->dumped
               ? run_dumped(runner)
               : counters_run(runner->place->engine, &runner->call, change_sink_null());
}

static void fill(struct runner *runner, enum engine_verb verb, int slot, const char *text)
{
    counters_call_init(&runner->call, verb, slot, runner->id, text);
    runner->call.op.want_cas = true;
    runner->call.op.cas_now = UINT64_MAX; /* of nothing */
}

static enum engine_status plain(struct runner *runner, enum engine_verb verb, int slot,
                                const char *text)
{
    fill(runner, verb, slot, text);
    return run(runner);
}

static enum engine_status compared(struct runner *runner, enum engine_verb verb, int slot,
                                   const char *text, uint64_t token)
{
    fill(runner, verb, slot, text);
    runner->call.op.compare = true;
    runner->call.op.cas = token;
    return run(runner);
}

/* 0: it is absent. */
static uint64_t token(struct runner *runner, int slot)
{
    enum engine_status status = plain(runner, ENGINE_READ, slot, NULL);
    CHECK(status == ENGINE_DONE || status == ENGINE_ABSENT);
    CHECK(status == ENGINE_ABSENT || runner->call.op.cas_now != 0);
    return status == ENGINE_DONE ? runner->call.op.cas_now : 0;
}

/* ---- places ---- */

static void fill_row(struct place *place)
{
    struct runner runner;
    char text[ENGINE_VALUE_MAX + 1];
    runner_init(&runner, place);
    for (uint64_t i = 0; i < DUMPED; i++) {
        runner.id = rows_dense(i);
        fill(&runner, ENGINE_SET, REC, rows_value(i, text));
        struct engine_op *op = &runner.call.op;
        do {
            row_maintain(place->engine->row, NULL);
            dumps_run(&place->dumps, op, &runner.sink.sink);
        } while (op->status == ENGINE_PENDING);
        assert_int_equal(op->status, ENGINE_DONE);
    }
}

static void config_init(struct place *place, bool cache)
{
    memset(place, 0, sizeof(*place));
    counters_config(&place->config, ROWS_SLOTS);
    place->config.aux_bytes = AUX_BYTES;
    place->config.role_cache = cache;
    place->zeroes = !cache;
}

static void open_table(struct place *place, bool cache)
{
    config_init(place, cache);
    place->engine = counters_create(&place->config);
    for (uint64_t i = 0; i < SETTLED; i++) {
        rows_put_done(place->engine, rows_dense(i), i);
    }
}

static void open_below(struct place *place)
{
    config_init(place, true);
    place->config.row.tables = 3;
    place->config.row.recycle = true;
    place->config.below_bytes = AUX_BYTES;
    place->engine = counters_create(&place->config);
    for (uint64_t i = 0; i < ROLLED; i++) {
        rows_put_done(place->engine, rows_dense(i), i);
    }
    assert_false(rows_expect(place->engine, ID, 0));
}

static void open_dumped(struct place *place, bool cache)
{
    config_init(place, cache);
    place->config.row.tables = 4;
    place->config.row.dump = true;
    place->dumped = true;
    dumps_init(&place->dumps, 1u << 20, 0, 7);
    dumps_create(&place->dumps, &place->config);
    place->engine = place->dumps.engine;
    fill_row(place);
    assert_true(dumps_leave(&place->dumps, 0));
    dumps_round(&place->dumps, NULL, NULL, false);
    assert_int_equal(dumps_cold(&place->dumps), 1);
}

static void close_place(struct place *place)
{
    counter_check(place->engine);
    if (place->dumped) {
        dumps_fini(&place->dumps);
    } else {
        place->engine->functions->destroy(place->engine);
    }
}

enum where { TABLE_STORE, TABLE_CACHE, BELOW, DUMPED_STORE, DUMPED_CACHE, PLACES };

static void open_place(struct place *place, enum where where)
{
    switch (where) {
    case BELOW:
        open_below(place);
        break;
    case DUMPED_STORE:
    case DUMPED_CACHE:
        open_dumped(place, where == DUMPED_CACHE);
        break;
    default:
        open_table(place, where == TABLE_CACHE);
        break;
    }
}

static void in_each_place(void (*body)(struct runner *runner))
{
    for (enum where where = 0; where < PLACES; where++) {
        static struct place place;
        static struct runner runner;
        open_place(&place, where);
        runner_init(&runner, &place);
        body(&runner);
        close_place(&place);
    }
}

/* ---- one by one ---- */

#define RECORD  "5,6,,99999999999"
#define ALL_NEW "6,6,2,99999999999"

/* As it is read: a cache has 0 for an empty field. */
static const char *record_of(const struct runner *runner)
{
    return runner->place->zeroes ? RECORD : "5,6,0,99999999999";
}

static void expect_record(struct runner *runner, const char *text)
{
    enum engine_status status = plain(runner, ENGINE_READ, REC, NULL);
    assert_int_equal(status, text ? ENGINE_DONE : ENGINE_ABSENT);
    assert_string_equal(runner->call.value, text ? text : "");
}

/* Tokens that are not this key's now. */
static void refuse_others(struct runner *runner, enum engine_verb verb, int slot)
{
    const char *text = slot == REC ? "1,1,,1" : "1";
    const uint64_t others[] = {0, 1, token(runner, slot) + 1, token(runner, slot == REC ? 0 : REC),
                               token(runner, slot == 1 ? 3 : 1)};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        assert_int_equal(compared(runner, verb, slot, text, others[i]), ENGINE_EXISTS);
        expect_record(runner, record_of(runner));
    }
    uint64_t earlier = token(runner, slot);
    assert_int_equal(plain(runner, ENGINE_INCR, 0, "1"), ENGINE_DONE);
    enum engine_status status = compared(runner, verb, slot, text, earlier);
    bool same = slot > 0; /* that slot is as it was */
    assert_int_equal(status, same ? ENGINE_DONE : ENGINE_EXISTS);
    assert_int_equal(plain(runner, ENGINE_SET, REC, RECORD), ENGINE_DONE);
}

static void compare_slots(struct runner *runner, int slot, const char *more, const char *less)
{
    refuse_others(runner, ENGINE_INCR, slot);
    refuse_others(runner, ENGINE_DECR, slot);
    refuse_others(runner, ENGINE_DELETE, slot);
    assert_int_equal(compared(runner, ENGINE_INCR, slot, "1", token(runner, slot)), ENGINE_DONE);
    assert_string_equal(runner->call.value, more);
    uint64_t now = runner->call.op.cas_now;
    assert_int_equal(compared(runner, ENGINE_DECR, slot, "2", now), ENGINE_DONE);
    assert_string_equal(runner->call.value, less);
    now = runner->call.op.cas_now;
    assert_true(now == token(runner, slot));
    assert_int_equal(compared(runner, ENGINE_DELETE, slot, NULL, now), ENGINE_DONE);
    assert_true(runner->call.op.cas_now == 0 && token(runner, slot) == 0);
    assert_int_equal(compared(runner, ENGINE_DELETE, slot, NULL, now), ENGINE_ABSENT);
    assert_int_equal(compared(runner, ENGINE_INCR, slot, "1", now), ENGINE_ABSENT);
    assert_int_equal(compared(runner, ENGINE_DECR, slot, "1", 0), ENGINE_ABSENT);
    assert_true(token(runner, slot) == 0);
    fill(runner, ENGINE_INCR, slot, "1");
    runner->call.op.compare = runner->call.op.create_initial = true;
    runner->call.op.initial = 40;
    assert_int_equal(run(runner), ENGINE_DONE); /* as memcached does it */
    assert_string_equal(runner->call.value, "40");
    now = runner->call.op.cas_now;
    assert_true(now == token(runner, slot));
    assert_int_equal(plain(runner, ENGINE_SET, REC, RECORD), ENGINE_DONE);
}

static void body_slots(struct runner *runner)
{
    assert_int_equal(plain(runner, ENGINE_SET, REC, RECORD), ENGINE_DONE);
    compare_slots(runner, 0, "6", "4");
    compare_slots(runner, 3, "100000000000", "99999999998");
    assert_int_equal(compared(runner, ENGINE_DELETE, 2, NULL, token(runner, REC)),
                     runner->place->zeroes ? ENGINE_ABSENT : ENGINE_EXISTS);
    expect_record(runner, record_of(runner));
}

static void test_slots(void **unused)
{
    (void)unused;
    in_each_place(body_slots);
}

static void body_record(struct runner *runner)
{
    assert_int_equal(plain(runner, ENGINE_SET, REC, RECORD), ENGINE_DONE);
    refuse_others(runner, ENGINE_INCR, REC);
    refuse_others(runner, ENGINE_DECR, REC);
    refuse_others(runner, ENGINE_DELETE, REC);
    uint64_t now = token(runner, REC);
    assert_int_equal(compared(runner, ENGINE_INCR, REC, "1,,2,", now), ENGINE_DONE);
    expect_record(runner, ALL_NEW);
    now = token(runner, REC);
    assert_int_equal(compared(runner, ENGINE_DECR, REC, "1,,,9", now), ENGINE_DONE);
    assert_string_equal(runner->call.value, "5,6,2,99999999990");
    now = runner->call.op.cas_now;
    assert_true(now == token(runner, REC));
    assert_int_equal(compared(runner, ENGINE_DELETE, REC, NULL, now), ENGINE_DONE);
    assert_true(runner->call.op.cas_now == 0);
    expect_record(runner, NULL);
    assert_int_equal(compared(runner, ENGINE_DELETE, REC, NULL, now), ENGINE_ABSENT);
    assert_int_equal(compared(runner, ENGINE_INCR, REC, "1,1,1,1", now), ENGINE_ABSENT);
    expect_record(runner, NULL);
    assert_int_equal(plain(runner, ENGINE_SET, REC, ",,,"), ENGINE_DONE);
    assert_true((runner->call.op.cas_now == 0) == runner->place->zeroes); /* stores nothing */
}

/* A cache: a record that lacks a slot has no token, and what would have changed of it goes. */
static void body_incomplete(struct runner *runner)
{
    if (runner->place->zeroes) {
        return;
    }
    assert_int_equal(plain(runner, ENGINE_SET, REC, RECORD), ENGINE_DONE);
    uint64_t now = token(runner, REC);
    assert_int_equal(plain(runner, ENGINE_DELETE, 2, NULL), ENGINE_DONE);
    assert_true(token(runner, REC) == 0 && token(runner, 0) != 0);
    assert_int_equal(compared(runner, ENGINE_INCR, REC, "1,,2,", now), ENGINE_ABSENT);
    assert_true(token(runner, 0) == 0 && token(runner, 1) != 0);
    assert_int_equal(compared(runner, ENGINE_CAS, REC, "1,2,3,4", now), ENGINE_ABSENT);
    assert_true(token(runner, 1) == 0 && token(runner, 3) == 0);
    assert_int_equal(plain(runner, ENGINE_SET, 3, "99999999999"), ENGINE_DONE);
    assert_int_equal(compared(runner, ENGINE_DELETE, REC, NULL, now), ENGINE_ABSENT);
    assert_true(token(runner, 3) == 0);
    assert_int_equal(plain(runner, ENGINE_SET, 0, "1"), ENGINE_DONE);
    assert_int_equal(plain(runner, ENGINE_ADD, REC, ",2,,"), ENGINE_DONE);
    now = runner->call.op.cas_now;
    expect_record(runner, "0,2,0,0");
    assert_true(now == token(runner, REC));
}

static void test_incomplete(void **unused)
{
    (void)unused;
    in_each_place(body_incomplete);
}

static void test_record(void **unused)
{
    (void)unused;
    in_each_place(body_record);
}

/* Below the oldest table with nothing kept there: a token finds nothing. */
static void test_nothing_below(void **unused)
{
    (void)unused;
    static struct place place;
    static struct runner runner;
    open_below(&place);
    runner_init(&runner, &place);
    place.config.role_cache = false;
    counters_reconfigure(place.engine, &place.config);
    assert_int_equal(compared(&runner, ENGINE_INCR, 0, "1", 7), ENGINE_ABSENT);
    assert_int_equal(compared(&runner, ENGINE_DELETE, REC, NULL, 7), ENGINE_ABSENT);
    assert_int_equal(plain(&runner, ENGINE_INCR, 0, "1"), ENGINE_ERROR);
    close_place(&place);
}

/* Records that are in the file alone, until they change. */
static void test_from_the_file(void **unused)
{
    (void)unused;
    static struct place place;
    static struct runner runner;
    char text[ENGINE_VALUE_MAX + 1];
    open_dumped(&place, false);
    runner_init(&runner, &place);
    for (uint64_t i = 0; i < SEEN; i++) {
        int slot = i % 3 == 0 ? 0 : i % 3 == 1 ? 2 : REC;
        const char *delta = slot == REC ? "1,,1," : "1";
        runner.id = rows_dense(i);
        uint64_t now = token(&runner, slot);
        assert_int_equal(compared(&runner, ENGINE_DELETE, slot, NULL, now + 1), ENGINE_EXISTS);
        assert_int_equal(compared(&runner, ENGINE_INCR, slot, delta, now + 1), ENGINE_EXISTS);
        expect_record(&runner, rows_value(i, text));
        enum engine_verb verb = i % 2 ? ENGINE_DELETE : ENGINE_INCR;
        assert_int_equal(compared(&runner, verb, slot, delta, now), ENGINE_DONE);
        now = runner.call.op.cas_now;
        assert_true(now == token(&runner, slot) && (now == 0) == (verb == ENGINE_DELETE));
    }
    close_place(&place);
}

/* ---- any verb, any token ---- */

static void any_text(struct test_random *random, int slot, char text[ENGINE_VALUE_MAX])
{
    char *at = text;
    for (unsigned i = 0; i < (slot == REC ? SLOTS : 1); i++) {
        uint64_t value = test_random_next(random) >> test_random_below(random, 64);
        bool empty = slot == REC && test_random_once_in(random, 2);
        if (i > 0) {
            *at++ = ',';
        }
        at += empty ? 0 : num_print(at, value);
    }
    *at = '\0';
}

static bool adds(enum engine_verb verb)
{
    return verb == ENGINE_INCR || verb == ENGINE_DECR;
}

/* What a verb with a token must answer to a key of that token; 0: it is absent. */
static enum engine_status judge(const struct engine_op *op, uint64_t before)
{
    if (before == 0) {
        return adds(op->verb) && op->create_initial ? ENGINE_DONE : ENGINE_ABSENT;
    }
    return op->cas == before ? ENGINE_DONE : ENGINE_EXISTS;
}

/* Returns whether it was carried out. */
static bool any_change(struct runner *runner, struct test_random *random)
{
    static const enum engine_verb verbs[] = {ENGINE_SET,  ENGINE_ADD,  ENGINE_REPLACE, ENGINE_CAS,
                                             ENGINE_INCR, ENGINE_DECR, ENGINE_DELETE};
    struct engine_op *op = &runner->call.op;
    char text[ENGINE_VALUE_MAX], was[ENGINE_VALUE_MAX + 1];
    enum engine_verb verb = verbs[test_random_below(random, sizeof(verbs) / sizeof(*verbs))];
    int slot = (int)test_random_below(random, SLOTS + 1) - 1;
    any_text(random, slot, text);
    token(runner, REC);
    memcpy(was, runner->call.value, sizeof(was));
    uint64_t before = token(runner, slot);
    fill(runner, verb, slot, text);
    op->compare = (adds(verb) || verb == ENGINE_DELETE) && test_random_once_in(random, 2);
    op->cas = before + test_random_once_in(random, 3);
    op->create_initial = test_random_once_in(random, 3);
    op->initial = test_random_below(random, 1u << 21);
    enum engine_status status = run(runner);
    uint64_t now = op->cas_now;
    if (op->compare || verb == ENGINE_CAS) {
        /* role cache: not all slots may be there */
        bool part = slot == REC && adds(verb) && status == ENGINE_ABSENT;
        assert_true(part || status == judge(op, before));
    }
    if (status == ENGINE_DONE) {
        assert_true(now == token(runner, slot));
        return true;
    }
    token(runner, REC);
    assert_string_equal(runner->call.value, was);
    return false;
}

static void body_any(struct runner *runner)
{
    struct test_random random = {test_seed()};
    uint64_t rounds = test_scaled(ROUNDS), done = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        done += any_change(runner, &random);
    }
    assert_true(done > rounds / 4 && done < rounds);
}

static void test_any(void **unused)
{
    (void)unused;
    in_each_place(body_any);
}

/* ---- threads ---- */

struct adder {
    struct runner runner;
    pthread_t thread;
    uint64_t refused;
};

/* One more, by a write or by an addition; the token is that of the value. False: it was another. */
static bool add_one(struct runner *runner, uint64_t value, uint64_t token_of_value, bool by_write)
{
    char text[NUM_DIGITS_MAX + 1];
    text[by_write ? num_print(text, value + 1) : num_print(text, 1)] = '\0';
    enum engine_status status =
        compared(runner, by_write ? ENGINE_CAS : ENGINE_INCR, 0, text, token_of_value);
    CHECK(status == ENGINE_DONE || status == ENGINE_EXISTS);
    CHECK(status == ENGINE_EXISTS || by_write ||
          strtoull(runner->call.value, NULL, 10) == value + 1);
    return status == ENGINE_DONE;
}

static void *add_many(void *argument)
{
    struct adder *adder = argument;
    struct runner *runner = &adder->runner;
    uint64_t now = token(runner, 0);
    uint64_t value = strtoull(runner->call.value, NULL, 10);
    for (unsigned left = INCREMENTS; left > 0;) {
        give_way(); /* between token and change, so that others come in between */
        if (add_one(runner, value, now, left % 2)) {
            now = runner->call.op.cas_now; /* of what it made, whoever came since */
            value++;
            left--;
            continue;
        }
        adder->refused++;
        now = token(runner, 0);
        value = strtoull(runner->call.value, NULL, 10);
    }
    return NULL;
}

static void body_threads(struct runner *runner)
{
    static struct adder adders[THREADS];
    uint64_t refused = 0;
    assert_int_equal(plain(runner, ENGINE_SET, REC, "1048000,1,1,1"), ENGINE_DONE); /* to aux */
    for (unsigned i = 0; i < THREADS; i++) {
        adders[i] = (struct adder){0};
        runner_init(&adders[i].runner, runner->place);
        assert_int_equal(pthread_create(&adders[i].thread, NULL, add_many, &adders[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(adders[i].thread, NULL);
        refused += adders[i].refused;
    }
    assert_true(refused > 0);
    uint64_t total = 1048000 + THREADS * INCREMENTS;
    assert_int_equal(plain(runner, ENGINE_READ, 0, NULL), ENGINE_DONE);
    assert_true(strtoull(runner->call.value, NULL, 10) == total);
    printf("%llu of %llu refused\n", (unsigned long long)refused,
           (unsigned long long)(refused + THREADS * INCREMENTS));
}

static void test_threads(void **unused)
{
    (void)unused;
    in_each_place(body_threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots),         cmocka_unit_test(test_record),
        cmocka_unit_test(test_incomplete),    cmocka_unit_test(test_nothing_below),
        cmocka_unit_test(test_from_the_file), cmocka_unit_test(test_any),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
