/*
 * test_counter_below.c: the engine below the oldest table, in a space of role cache: as in a table,
 * but for what is forgotten; nothing of it is left where ids come back; threads while tables go.
 */
#include "counter/counter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/barrier.h"
#include "base/check.h"
#include "row/row_data.h"
#include "tests/support/give_way.h"
#include "tests/support/random.h"
#include "tests/support/rows.h"

#define REC         ENGINE_SLOT_RECORD
#define BELOW_BYTES (64u << 10)
#define ROLLED      (3u * ROWS_TABLE_WORTH) /* ids after which the first ones lie below */
#define ROUNDS      100000u
#define CLIENTS     2
#define CLIENT_IDS  200u

static struct engine *open_rolled(struct counter_config *config)
{
    counters_config(config, ROWS_SLOTS);
    config->row.tables = 3;
    config->row.recycle = true;
    config->role_cache = true;
    config->aux_bytes = 64u << 10;
    config->below_bytes = BELOW_BYTES;
    struct engine *engine = counters_create(config);
    for (uint64_t i = 0; i < ROLLED; i++) {
        rows_put_done(engine, rows_dense(i), i);
    }
    assert_false(rows_expect(engine, rows_dense(0), 0));
    return engine;
}

static void expect(struct engine *engine, uint64_t id, const char *text)
{
    struct counters_call call;
    assert_int_equal(counters_do(engine, &call, ENGINE_READ, REC, id, NULL), ENGINE_DONE);
    assert_string_equal(call.value, text);
}

static void expect_below(struct engine *engine, uint64_t id)
{
    struct counters_call call;
    counters_do(engine, &call, ENGINE_READ, REC, id, NULL);
    assert_true(rows_is_below(&call));
}

static void set(struct engine *engine, uint64_t id, const char *text)
{
    struct counters_call call;
    assert_int_equal(counters_do(engine, &call, ENGINE_SET, REC, id, text), ENGINE_DONE);
}

/* ---- as in a table ---- */

struct pair {
    struct engine *engine;
    struct test_random random;
    uint64_t in_table, below;
    uint64_t tokens[2]; /* last seen, of either */
};

static void any_text(struct test_random *random, int slot, char text[ENGINE_VALUE_MAX])
{
    char *at = text;
    unsigned fields = slot == REC ? 4 : 1;
    *at = '\0';
    if (test_random_once_in(random, 20)) {
        strcpy(text, "1,x");
        return;
    }
    for (unsigned i = 0; i < fields; i++) {
        uint64_t value = test_random_next(random) >> test_random_below(random, 64);
        bool empty = fields > 1 && test_random_once_in(random, 2);
        at += sprintf(at, i ? "," : "");
        at += empty ? 0 : sprintf(at, "%llu", (unsigned long long)value);
    }
}

/* Returns what it answers; `other`: of the pair's ids, the one in no table. */
static void run_one(struct pair *pair, struct counters_call *call, bool other)
{
    struct counters_sink sink;
    counters_sink_init(&sink);
    call->op.id = other ? pair->below : pair->in_table;
    call->op.value = call->value;
    call->op.cas = pair->tokens[other];
    counters_run(pair->engine, call, &sink.sink);
    assert_true(!other || sink.reserved == 0);
    if (call->op.want_cas && call->op.status == ENGINE_DONE) {
        pair->tokens[other] = call->op.cas_now;
    }
}

static void expect_alike(const struct counters_call *a, const struct counters_call *b)
{
    assert_int_equal(a->op.status, b->op.status);
    assert_int_equal(a->op.error, b->op.error);
    assert_string_equal(a->value, b->value);
    bool missed = a->op.verb <= ENGINE_TOUCH && a->op.status == ENGINE_ABSENT;
    if (missed) {
        assert_int_equal(b->op.miss,
                         a->op.miss == ENGINE_MISS_ABSENT ? ENGINE_MISS_BELOW : a->op.miss);
    }
}

static void run_both(struct pair *pair)
{
    static const enum engine_verb verbs[] = {
        ENGINE_READ, ENGINE_READ, ENGINE_TOUCH,   ENGINE_SET, ENGINE_ADD, ENGINE_CAS,   ENGINE_INCR,
        ENGINE_DECR, ENGINE_INCR, ENGINE_REPLACE, ENGINE_SET, ENGINE_CAS, ENGINE_DELETE};
    struct test_random *random = &pair->random;
    struct counters_call in_table, below;
    char text[ENGINE_VALUE_MAX];
    int slot = (int)test_random_below(random, 5) - 1;
    any_text(random, slot, text);
    enum engine_verb verb = verbs[test_random_below(random, sizeof(verbs) / sizeof(*verbs))];
    counters_call_init(&in_table, verb, slot, 0, text);
    in_table.op.want_cas = verb == ENGINE_READ;
    in_table.op.create_initial = test_random_once_in(random, 4);
    in_table.op.create_never = test_random_once_in(random, 8);
    in_table.op.initial = 9;
    below = in_table;
    run_one(pair, &in_table, false);
    run_one(pair, &below, true);
    expect_alike(&in_table, &below);
}

static void test_as_in_a_table(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct counters_call call;
    struct pair pair = {.random = {test_seed()}};
    pair.engine = open_rolled(&config);
    pair.in_table = rows_dense(ROLLED - 1);
    pair.below = rows_dense(0);
    counters_do(pair.engine, &call, ENGINE_DELETE, REC, pair.in_table, NULL);
    uint64_t rounds = test_scaled(ROUNDS);
    for (uint64_t round = 0; round < rounds; round++) {
        run_both(&pair);
    }
    set(pair.engine, pair.below, "1,2,,18446744073709551615");
    expect(pair.engine, pair.below, "1,2,0,18446744073709551615");
    counters_call_init(&call, ENGINE_READ, REC, pair.below, NULL);
    call.op.want_cas = true;
    counters_run(pair.engine, &call, change_sink_null());
    assert_true(call.op.cas_now ==
                counter_record_token(pair.below, 0, call.value, call.op.value_length));
    rows_close(pair.engine);
}

/* ---- figures ---- */

static void test_figures(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct counter_size with, without;
    struct engine *engine = open_rolled(&config);
    counter_config_size(&config, &with);
    config.below_bytes = 0;
    counter_config_size(&config, &without);
    assert_true(with.bytes == without.bytes + BELOW_BYTES && with.records == without.records);
    assert_true(rows_held_bytes(engine) <= with.bytes);
    assert_true(rows_figure(engine, "below_bytes_max") == BELOW_BYTES);
    uint64_t recycled = engine_recycled(engine);
    double records = rows_figure(engine, "records");
    uint64_t puts = 0, there = 0;
    for (; rows_figure(engine, "below_evicted") < 100; puts++) {
        set(engine, puts, "7,,,");
    }
    for (uint64_t id = 0; id < puts; id++) {
        struct counters_call call;
        there += counters_do(engine, &call, ENGINE_READ, 0, id, NULL) == ENGINE_DONE;
    }
    assert_true(there == puts - 100 && rows_figure(engine, "below_records") == (double)there);
    assert_true(rows_figure(engine, "below_hits") == (double)there);
    assert_true(rows_figure(engine, "records") == records);
    assert_true(engine_recycled(engine) == recycled + 100);
    struct engine_figures figures = {0};
    engine->functions->figures(engine, &figures);
    const struct engine_memory *cold = &figures.memory[ENGINE_MEMORY_COLD];
    assert_true(cold->items == there && cold->held_bytes == BELOW_BYTES);
    assert_true(cold->used_bytes == (uint64_t)rows_figure(engine, "below_bytes"));
    assert_true(cold->item_bytes >= 40 && cold->item_bytes < 60);
    rows_close(engine);
}

/* ---- ids of a table that went before an older one ---- */

#define NEAR     (1u << 20) /* of the stream; it is rows_dense() of half of it */
#define FARTHER  1000000000000u
#define JUMP_IDS 20u

/* They are kept as those below the oldest are, until the stream comes there. */
static void test_dropped(void **unused)
{
    (void)unused;
    struct counter_config config;
    counters_config(&config, ROWS_SLOTS);
    config.row.tables = 5;
    config.row.recycle = true;
    config.role_cache = true;
    config.below_bytes = BELOW_BYTES;
    struct engine *engine = counters_create(&config);
    uint64_t first = rows_dense(0);
    uint64_t near = first + NEAR;
    uint64_t id = first;
    while (id < first + 2000) {
        rows_put_done(engine, id++, 1);
    }
    for (uint64_t jump = 0; jump < 3; jump++) {
        for (uint64_t i = 0; i < JUMP_IDS; i++) {
            rows_put_done(engine, near + jump * FARTHER + i, 1);
        }
    }
    expect_below(engine, near + 10);
    set(engine, near + 10, "1,2,3,4");
    expect(engine, near + 10, "1,2,3,4");
    assert_true(rows_figure(engine, "below_records") == 1);
    counter_check(engine);
    for (; id < near + 10; id++) { /* none of the stream is refused */
        rows_put_done(engine, id, 1);
    }
    rows_expect_absent(engine, near + 10);
    assert_true(rows_figure(engine, "below_records") == 0);
    rows_put_done(engine, near + 10, 1);
    rows_close(engine);
}

/* ---- nothing is left of it ---- */

static void test_cleared(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct engine *engine = open_rolled(&config);
    uint64_t id = rows_dense(0);
    set(engine, id, "1,2,3,4");
    row_flush(engine->row);
    counter_check(engine);
    rows_expect_absent(engine, id);
    set(engine, id, ",,5,");
    expect(engine, id, "0,0,5,0");
    assert_true(rows_figure(engine, "below_records") == 0);
    for (uint64_t i = 1; i < ROLLED; i++) {
        rows_put_done(engine, rows_dense(i), i);
    }
    expect_below(engine, id); /* what was in a table went with it */
    rows_close(engine);
}

static void test_reconfigured(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct counters_call call;
    struct engine *engine = open_rolled(&config);
    uint64_t id = rows_dense(0);
    set(engine, id, "1,2,3,4");
    config.value_flags = 3;
    config.below_bytes /= 2;
    counters_reconfigure(engine, &config);
    expect(engine, id, "1,2,3,4");
    assert_true(rows_figure(engine, "below_bytes_max") == BELOW_BYTES);
    counters_config_slots(&config, "d:20 a:20");
    counters_reconfigure(engine, &config);
    expect_below(engine, id);
    set(engine, id, "8,9");
    expect(engine, id, "8,9");
    config.role_cache = false;
    counters_reconfigure(engine, &config);
    expect_below(engine, id);
    assert_int_equal(counters_do(engine, &call, ENGINE_SET, 0, id, "1"), ENGINE_ERROR);
    assert_int_equal(call.op.error, ENGINE_E_ID_BELOW);
    assert_int_equal(rows_figure(engine, "below_bytes_max"), 0);
    config.role_cache = true;
    counters_reconfigure(engine, &config);
    expect_below(engine, id);
    set(engine, id, "8,");
    expect(engine, id, "8,0");
    assert_true(rows_figure(engine, "below_bytes_max") == BELOW_BYTES / 2);
    config.below_bytes = ROW_REGION_BYTES_MIN / 32; /* too little for any */
    counters_reconfigure(engine, &config);
    assert_int_equal(counters_do(engine, &call, ENGINE_SET, 0, id, "1"), ENGINE_ERROR);
    rows_close(engine);
}

/* ---- threads ---- */

struct client {
    struct engine *engine;
    struct barrier *barrier;
    const _Atomic bool *stop;
    struct test_random random;
    uint64_t first_id, spread;
    uint64_t has[CLIENT_IDS]; /* 0: absent */
    uint64_t below, found_below;
};

/* Until it is not pending. Another thread is the keeper. */
static void run_inside(const struct client *client, struct barrier_member *member,
                       struct counters_call *call)
{
    struct engine_op *op = &call->op;
    for (bool again = true; again;) {
        barrier_enter(member);
        op->value_length = 0;
        client->engine->functions->prepare(client->engine, &op, 1);
        if (op->verb == ENGINE_READ) {
            client->engine->functions->read(client->engine, &op, 1);
        } else {
            client->engine->functions->change(client->engine, op, change_sink_null());
        }
        again = op->status == ENGINE_PENDING;
        barrier_leave(member);
        if (again) {
            give_way();
        }
    }
    call->value[op->value_length] = '\0';
}

/* It is as it was written last, or absent; and once absent it stays so. */
static void check_own(struct client *client, struct barrier_member *member, unsigned index)
{
    struct counters_call call;
    char text[32];
    uint64_t id = client->first_id + index * client->spread;
    uint64_t *has = &client->has[index];
    counters_call_init(&call, ENGINE_READ, 0, id, NULL);
    run_inside(client, member, &call);
    if (call.op.status == ENGINE_ABSENT) {
        client->below += call.op.miss == ENGINE_MISS_BELOW;
        *has = 0;
    } else {
        CHECK(call.op.status == ENGINE_DONE && strtoull(call.value, NULL, 10) == *has);
    }
    uint64_t next = 1 + (test_random_next(&client->random) >> 20);
    sprintf(text, "%llu", (unsigned long long)next);
    counters_call_init(&call, *has ? ENGINE_INCR : ENGINE_ADD, 0, id, text);
    run_inside(client, member, &call);
    if (call.op.status == ENGINE_DONE) {
        CHECK(!*has || strtoull(call.value, NULL, 10) == *has + next);
        *has += next;
    } else {
        /* Its table went in between, or there is no room; but nothing came back. */
        CHECK(call.op.status == (*has ? ENGINE_ABSENT : ENGINE_ERROR));
        *has = 0;
    }
}

static void *run_client(void *argument)
{
    struct client *client = argument;
    struct barrier_member *member = barrier_join(client->barrier);
    while (!atomic_load(client->stop)) {
        check_own(client, member, (unsigned)test_random_below(&client->random, CLIENT_IDS));
    }
    for (unsigned i = 0; i < CLIENT_IDS; i++) {
        check_own(client, member, i);
        client->found_below += client->has[i] != 0;
    }
    barrier_resign(member);
    return NULL;
}

/* The stream, and the keeper. */
static void run_stream(struct engine *engine, struct barrier *barrier, uint64_t from, uint64_t to)
{
    struct barrier_member *member = barrier_join(barrier);
    for (uint64_t i = from; i < to; i++) {
        struct counters_call call;
        counters_call_init(&call, ENGINE_SET, 0, rows_dense(i), "1");
        barrier_enter(member);
        struct engine_op *op = &call.op;
        engine->functions->prepare(engine, &op, 1);
        engine->functions->change(engine, op, change_sink_null());
        barrier_leave(member);
        if (op->status == ENGINE_PENDING || i % 16 == 0) {
            row_maintain(engine->row, barrier);
        }
        i -= op->status == ENGINE_PENDING;
    }
    barrier_resign(member);
}

static void *run_keeper(void *argument)
{
    struct client *keeper = argument;
    while (!atomic_load(keeper->stop)) {
        row_maintain(keeper->engine->row, keeper->barrier);
        give_way();
    }
    return NULL;
}

static void test_while_tables_go(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct engine *engine = open_rolled(&config);
    struct barrier *barrier = barrier_create();
    struct client clients[CLIENTS];
    pthread_t threads[CLIENTS], keeper;
    _Atomic bool stop = false, keep = false;
    struct client keeping = {.engine = engine, .barrier = barrier, .stop = &keep};
    uint64_t to = 3 * ROLLED, seed = test_seed();
    for (unsigned i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.engine = engine,
                                     .barrier = barrier,
                                     .stop = &stop,
                                     .random = {seed + i},
                                     .first_id = rows_dense(0) + 1 + 2 * i, /* odd: no other's */
                                     .spread = 2 * (to / CLIENT_IDS)};
        assert_int_equal(pthread_create(&threads[i], NULL, run_client, &clients[i]), 0);
    }
    run_stream(engine, barrier, ROLLED, to);
    assert_int_equal(pthread_create(&keeper, NULL, run_keeper, &keeping), 0);
    atomic_store(&stop, true);
    for (unsigned i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        printf("client %u: %llu of %u there at the end, %llu reads below found nothing\n", i,
               (unsigned long long)clients[i].found_below, CLIENT_IDS,
               (unsigned long long)clients[i].below);
        assert_true(clients[i].below > 0 && clients[i].found_below > CLIENT_IDS / 4);
    }
    atomic_store(&keep, true);
    pthread_join(keeper, NULL);
    barrier_destroy(barrier);
    rows_close(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_in_a_table), cmocka_unit_test(test_figures),
        cmocka_unit_test(test_dropped),       cmocka_unit_test(test_cleared),
        cmocka_unit_test(test_reconfigured),  cmocka_unit_test(test_while_tables_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
