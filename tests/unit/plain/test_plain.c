/* The plain engine: what each verb does to a value, expiry, flushes, shards, threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/clock.h"
#include "plain/ring.h"
#include "plain_run.h"
#include "tests/support/random.h"

/* ---- in place of base/clock.c: time passes when a test says so ---- */

static _Atomic uint64_t now_us = 1000000000;

uint64_t clock_monotonic_us(void)
{
    return atomic_load(&now_us);
}

uint64_t clock_wall_s(void)
{
    return 1700000000;
}

static void pass_s(uint64_t seconds)
{
    atomic_fetch_add(&now_us, seconds * 1000000);
}

/* ---- the tests ---- */

static struct engine *engine;
static char seen[PLAIN_RUN_ITEM_MAX];
static struct plain_hit hit;

static void run(struct engine_op *op)
{
    engine->functions->prepare(engine, &op, 1);
    engine->functions->change(engine, op, NULL);
}

static enum engine_status change(enum engine_verb verb, const char *key, const char *text)
{
    struct engine_op op = plain_run_op(verb, key, text);

    run(&op);
    return op.status;
}

static bool note(void *context, const struct plain_hit *found)
{
    assert_true(found->value_length < sizeof(seen));
    memcpy(seen, found->value, found->value_length);
    seen[found->value_length] = '\0';
    hit = *found;
    return *(const bool *)context;
}

static enum engine_status look(const char *key, bool room)
{
    struct engine_op op = plain_run_op(ENGINE_READ, key, "");
    struct engine_op *ops = &op;

    engine->functions->prepare(engine, &ops, 1);
    plain_visit(engine, &op, false, note, &room);
    return op.status;
}

static void expect(const char *key, const char *value)
{
    if (value == NULL) {
        assert_int_equal(look(key, true), ENGINE_ABSENT);
        return;
    }
    assert_int_equal(look(key, true), ENGINE_DONE);
    assert_string_equal(seen, value);
}

static void test_storing(void **state)
{
    (void)state;
    expect("k", NULL);
    assert_int_equal(change(ENGINE_REPLACE, "k", "a"), ENGINE_ABSENT);
    assert_int_equal(change(ENGINE_APPEND, "k", "a"), ENGINE_ABSENT);
    assert_int_equal(change(ENGINE_DELETE, "k", ""), ENGINE_ABSENT);
    assert_int_equal(change(ENGINE_TOUCH, "k", ""), ENGINE_ABSENT);
    assert_int_equal(change(ENGINE_ADD, "k", "b"), ENGINE_DONE);
    assert_int_equal(change(ENGINE_ADD, "k", "c"), ENGINE_EXISTS);
    expect("k", "b");
    assert_int_equal(change(ENGINE_REPLACE, "k", "dd"), ENGINE_DONE);
    assert_int_equal(change(ENGINE_APPEND, "k", "e"), ENGINE_DONE);
    assert_int_equal(change(ENGINE_PREPEND, "k", "_"), ENGINE_DONE);
    expect("k", "_dde");
    assert_int_equal(change(ENGINE_SET, "k", ""), ENGINE_DONE);
    expect("k", "");
    assert_int_equal(change(ENGINE_DELETE, "k", ""), ENGINE_DONE);
    expect("k", NULL);
}

static void test_tokens(void **state)
{
    struct engine_op op = plain_run_op(ENGINE_CAS, "k", "b");

    (void)state;
    op.cas = 1;
    run(&op);
    assert_int_equal(op.status, ENGINE_ABSENT);
    assert_int_equal(change(ENGINE_SET, "k", "a"), ENGINE_DONE);
    assert_int_equal(look("k", true), ENGINE_DONE);
    for (int other = -1; other <= 1; other += 2) {
        op.cas = hit.cas + (uint64_t)other;
        run(&op);
        assert_int_equal(op.status, ENGINE_EXISTS);
    }
    op.cas = hit.cas;
    run(&op);
    assert_int_equal(op.status, ENGINE_DONE);
    assert_int_equal(look("k", true), ENGINE_DONE);
    assert_int_equal(op.cas_now, hit.cas);
    for (enum engine_verb verb = ENGINE_DELETE; verb <= ENGINE_PREPEND; verb++) {
        struct engine_op compared = plain_run_op(verb, "k", "c");

        compared.compare = true;
        compared.cas = hit.cas + 1;
        run(&compared);
        assert_int_equal(compared.status, ENGINE_EXISTS);
    }
    expect("k", "b");
}

static void test_numbers(void **state)
{
    struct engine_op op = plain_run_op(ENGINE_INCR, "n", "5");

    (void)state;
    assert_int_equal(change(ENGINE_INCR, "n", "1"), ENGINE_ABSENT);
    op.create_initial = true;
    op.initial = 10;
    run(&op);
    assert_int_equal(op.status, ENGINE_DONE);
    expect("n", "10");
    assert_int_equal(change(ENGINE_DECR, "n", "1"), ENGINE_DONE);
    expect("n", "9 "); /* as memcached */
    assert_int_equal(change(ENGINE_INCR, "n", "90"), ENGINE_DONE);
    expect("n", "99");
    assert_int_equal(change(ENGINE_DECR, "n", "100"), ENGINE_DONE);
    expect("n", "0 ");
    assert_int_equal(change(ENGINE_SET, "n", "18446744073709551615"), ENGINE_DONE);
    assert_int_equal(change(ENGINE_INCR, "n", "2"), ENGINE_DONE);
    expect("n", "1                   ");
    assert_int_equal(change(ENGINE_SET, "n", "016219049507383003320"), ENGINE_DONE);
    assert_int_equal(change(ENGINE_INCR, "n", "1"), ENGINE_DONE);
    expect("n", "16219049507383003321 ");
    char front[2000];
    snprintf(front, sizeof(front), "%01500d", 7); /* more zeros than are looked behind */
    assert_int_equal(change(ENGINE_SET, "n", front), ENGINE_DONE);
    op = plain_run_op(ENGINE_INCR, "n", "1");
    run(&op);
    assert_int_equal(op.error, ENGINE_E_NON_NUMERIC);
    assert_int_equal(change(ENGINE_SET, "n", " +000"), ENGINE_DONE);
    assert_int_equal(change(ENGINE_INCR, "n", "5"), ENGINE_DONE);
    expect("n", "5    ");
    op = plain_run_op(ENGINE_INCR, "n", "x");
    run(&op);
    assert_int_equal(op.error, ENGINE_E_BAD_DELTA);
    assert_int_equal(change(ENGINE_SET, "n", "1x"), ENGINE_DONE);
    op = plain_run_op(ENGINE_INCR, "n", "1");
    run(&op);
    assert_int_equal(op.error, ENGINE_E_NON_NUMERIC);
    expect("n", "1x");
    assert_int_equal(change(ENGINE_SET, "n", "100000000000000000000"), ENGINE_DONE);
    op = plain_run_op(ENGINE_INCR, "n", "1");
    run(&op);
    assert_int_equal(op.error, ENGINE_E_NON_NUMERIC);
}

/* A count may set when its value expires. */
static void test_count_touches(void **state)
{
    struct engine_op op = plain_run_op(ENGINE_INCR, "k", "1");

    (void)state;
    assert_int_equal(change(ENGINE_SET, "k", "5"), ENGINE_DONE);
    op.touch = true;
    op.touch_s = clock_monotonic_s() + 1000;
    run(&op);
    assert_int_equal(op.status, ENGINE_DONE);
    expect("k", "6");
    assert_in_range(hit.ttl_s, 900, 1000);
    assert_int_equal(change(ENGINE_INCR, "k", "1"), ENGINE_DONE);
    expect("k", "7");
    assert_in_range(hit.ttl_s, 900, 1000); /* it stays */
}

static void test_expiry(void **state)
{
    struct engine_op op = plain_run_op(ENGINE_SET, "k", "a");

    (void)state;
    op.expires_s = clock_monotonic_s() + 100;
    op.flags = 7;
    run(&op);
    expect("k", "a");
    assert_int_equal(hit.flags, 7);
    assert_in_range(hit.ttl_s, 90, 100);
    assert_int_equal(change(ENGINE_APPEND, "k", "b"), ENGINE_DONE); /* keeps both */
    expect("k", "ab");
    assert_int_equal(hit.flags, 7);
    assert_in_range(hit.ttl_s, 90, 100);
    op = plain_run_op(ENGINE_TOUCH, "k", "");
    run(&op);
    expect("k", "ab");
    assert_int_equal(hit.ttl_s, -1);
    op.expires_s = clock_monotonic_s();
    run(&op);
    assert_int_equal(op.status, ENGINE_DONE);
    expect("k", NULL);
    assert_int_equal(change(ENGINE_ADD, "k", "c"), ENGINE_DONE);
}

static void test_no_room_for_an_answer(void **state)
{
    (void)state;
    assert_int_equal(change(ENGINE_SET, "k", "a"), ENGINE_DONE);
    assert_int_equal(look("k", false), ENGINE_EXISTS);
    expect("k", "a");
    struct engine_op op = plain_run_op(ENGINE_READ, "k", "");
    struct engine_op *ops = &op;
    bool room = false;

    op.expires_s = 1;
    engine->functions->prepare(engine, &ops, 1);
    plain_visit(engine, &op, true, note, &room); /* not answered: not touched */
    assert_int_equal(op.status, ENGINE_EXISTS);
    expect("k", "a");
}

/* To the byte. */
static void test_largest(void **state)
{
    static char large[PLAIN_RUN_ITEM_MAX];
    size_t length = PLAIN_RUN_ITEM_MAX - sizeof(struct ring_item) - strlen("k");

    (void)state;
    memset(large, 'x', length);
    assert_int_equal(change(ENGINE_SET, "k", large), ENGINE_DONE);
    expect("k", large);
    large[length] = 'x';
    assert_int_equal(change(ENGINE_SET, "k", large), ENGINE_ERROR);
}

static void test_too_large(void **state)
{
    static char large[PLAIN_RUN_ITEM_MAX + 1];
    struct engine_op op;

    (void)state;
    memset(large, 'x', PLAIN_RUN_ITEM_MAX);
    assert_int_equal(change(ENGINE_SET, "k", "a"), ENGINE_DONE);
    op = plain_run_op(ENGINE_REPLACE, "k", large);
    run(&op);
    assert_int_equal(op.status, ENGINE_ERROR);
    assert_int_equal(op.error, ENGINE_E_TOO_LARGE);
    expect("k", "a");
    assert_int_equal(change(ENGINE_APPEND, "k", large),
                     ENGINE_ABSENT); /* what is called not stored */
    assert_int_equal(change(ENGINE_PREPEND, "k", large), ENGINE_ABSENT);
    expect("k", "a");
    assert_int_equal(change(ENGINE_SET, "k", large), ENGINE_ERROR);
    expect("k", NULL); /* what stood there is out of date */
}

static void test_flushes(void **state)
{
    (void)state;
    assert_int_equal(change(ENGINE_SET, "k", "a"), ENGINE_DONE);
    plain_clear(engine);
    expect("k", NULL);
    assert_int_equal(change(ENGINE_SET, "k", "a"), ENGINE_DONE);
    plain_clear_later(engine, clock_monotonic_s() + 1000);
    expect("k", "a");
    plain_clear_later(engine, clock_monotonic_s());
    expect("k", NULL);
    assert_int_equal(change(ENGINE_SET, "k", "b"), ENGINE_DONE);
    expect("k", "b"); /* stored since */
    assert_int_equal(change(ENGINE_SET, "k", "c"), ENGINE_DONE);
    plain_clear_later(engine, clock_monotonic_s() - 1);
    plain_clear_later(engine, clock_monotonic_s() + 1000); /* the one before was due */
    expect("k", NULL);
}

/* A flush that was asked for comes in its second, once, and before a later one takes its place. */
static void test_flushes_when_due(void **state)
{
    (void)state;
    assert_int_equal(change(ENGINE_SET, "k", "a"), ENGINE_DONE);
    plain_clear_later(engine, clock_monotonic_s() + 10);
    pass_s(9);
    expect("k", "a");
    pass_s(1);
    expect("k", NULL);
    assert_int_equal(change(ENGINE_SET, "k", "b"), ENGINE_DONE);
    expect("k", "b");
    plain_clear_later(engine, clock_monotonic_s() + 10);
    pass_s(11);
    plain_clear_later(engine, clock_monotonic_s() + 1000);
    expect("k", NULL);
}

/* An item costs at most 64 bytes beside its key and value. */
static void test_cost(void **state)
{
    struct engine_figures figures = {0};
    char key[16], value[16];
    uint64_t count = 0, bytes = 0;

    (void)state;
    do {
        snprintf(key, sizeof(key), "key%llu", (unsigned long long)count);
        snprintf(value, sizeof(value), "%llu", (unsigned long long)count++);
        assert_int_equal(change(ENGINE_SET, key, value), ENGINE_DONE);
        bytes += strlen(key) + strlen(value);
    } while (engine_recycled(engine) == 0);
    engine->functions->figures(engine, &figures);
    assert_true(figures.memory[ENGINE_MEMORY_PLAIN].held_bytes <= PLAIN_RUN_MEMORY_BYTES);
    assert_true((PLAIN_RUN_MEMORY_BYTES - bytes) / count <= 64);
}

enum { THREADS = 4, ROUNDS = 20000, COUNTERS = 64 };

static void *count_up(void *context)
{
    char room[ENGINE_VALUE_MAX];
    char key[16] = "";

    (void)context;
    for (uint64_t i = 0; i < test_scaled(ROUNDS); i++) {
        struct engine_op op = plain_run_op(ENGINE_INCR, key, "1");

        snprintf(key, sizeof(key), "%llu", (unsigned long long)(i % COUNTERS));
        op.member_length = (uint32_t)strlen(key);
        op.create_initial = true;
        op.initial = 1;
        op.value = room;
        run(&op);
        assert_int_equal(op.status, ENGINE_DONE);
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[THREADS];
    uint64_t sum = 0;

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < COUNTERS; i++) {
        char key[16];
        unsigned long long number = 0;

        snprintf(key, sizeof(key), "%d", i);
        if (look(key, true) == ENGINE_DONE) {
            assert_int_equal(sscanf(seen, "%llu", &number), 1);
        }
        sum += number;
    }
    assert_int_equal(sum, THREADS * test_scaled(ROUNDS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAIN_RUN_TEST(test_storing, &engine),
        PLAIN_RUN_TEST(test_tokens, &engine),
        PLAIN_RUN_TEST(test_numbers, &engine),
        PLAIN_RUN_TEST(test_expiry, &engine),
        PLAIN_RUN_TEST(test_no_room_for_an_answer, &engine),
        PLAIN_RUN_TEST(test_too_large, &engine),
        PLAIN_RUN_TEST(test_largest, &engine),
        PLAIN_RUN_TEST(test_count_touches, &engine),
        PLAIN_RUN_TEST(test_flushes, &engine),
        PLAIN_RUN_TEST(test_flushes_when_due, &engine),
        PLAIN_RUN_TEST(test_cost, &engine),
        PLAIN_RUN_TEST(test_threads, &engine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
