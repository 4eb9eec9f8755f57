/*
 * test_plain_stale.c: what meta commands ask of plain values: leases, stale values, tokens of the
 * caller, what counts as a read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "plain_run.h"

static struct engine *engine;
static struct plain_hit hit;

static struct engine_op op_on(enum engine_verb verb, const char *key, const char *text,
                              const struct engine_extended *extended)
{
    struct engine_op op = plain_run_op(verb, key, text);
    op.extended = extended;
    return op;
}

static enum engine_status run(struct engine_op *op)
{
    engine->functions->prepare(engine, &op, 1);
    engine->functions->change(engine, op, NULL);
    return op->status;
}

static enum engine_status change(enum engine_verb verb, const char *key, const char *text,
                                 const struct engine_extended *extended)
{
    struct engine_op op = op_on(verb, key, text, extended);
    return run(&op);
}

static bool note(void *context, const struct plain_hit *found)
{
    hit = *found;
    return *(const bool *)context;
}

static enum engine_status look(const char *key, const struct engine_extended *extended, bool room)
{
    struct engine_op op = op_on(ENGINE_READ, key, "", extended);
    struct engine_op *ops = &op;
    engine->functions->prepare(engine, &ops, 1);
    plain_visit(engine, &op, false, note, &room);
    return op.status;
}

/* What the next plain look says of a value that is there. */
static void expect(const char *key, bool stale, bool sent, bool won)
{
    assert_int_equal(look(key, NULL, true), ENGINE_DONE);
    assert_int_equal(hit.stale, stale);
    assert_int_equal(hit.sent, sent);
    assert_int_equal(hit.won, won);
}

static void test_lease(void **state)
{
    (void)state;
    const struct engine_extended lease = {.vivify = true, .vivify_s = clock_monotonic_s() + 50};
    assert_int_equal(look("k", &lease, false), ENGINE_EXISTS); /* no room: nobody was told */
    assert_int_equal(look("k", NULL, true), ENGINE_ABSENT);
    assert_int_equal(look("k", &lease, true), ENGINE_DONE);
    assert_true(hit.vivified && hit.won && !hit.sent);
    assert_int_equal(hit.value_length, 0);
    assert_int_equal(hit.ttl_s, -1);
    assert_in_range(hit.ttl_made_s, 48, 50);
    assert_int_equal(look("k", &lease, true), ENGINE_DONE);
    assert_true(!hit.vivified && !hit.won && hit.sent);
    assert_in_range(hit.ttl_s, 48, 50);
    assert_int_equal(change(ENGINE_SET, "k", "v", NULL), ENGINE_DONE);
    expect("k", false, false, false);
}

static void test_recache(void **state)
{
    (void)state;
    uint64_t now_s = clock_monotonic_s();
    const struct engine_extended near = {.recache = true, .recache_s = now_s + 30};
    const struct engine_extended far = {.recache = true, .recache_s = now_s + 3000};
    struct engine_op op = op_on(ENGINE_SET, "k", "v", NULL);
    op.expires_s = now_s + 300;
    assert_int_equal(run(&op), ENGINE_DONE);
    assert_int_equal(look("k", &near, true), ENGINE_DONE);
    assert_true(!hit.won && !hit.sent);
    assert_int_equal(look("k", &far, true), ENGINE_DONE);
    assert_true(hit.won && !hit.sent);
    assert_int_equal(look("k", &far, true), ENGINE_DONE);
    assert_true(!hit.won && hit.sent);
    assert_int_equal(change(ENGINE_SET, "e", "v", NULL), ENGINE_DONE); /* never expires */
    assert_int_equal(look("e", &far, true), ENGINE_DONE);
    assert_false(hit.won);
}

static void test_stale(void **state)
{
    (void)state;
    const struct engine_extended invalidate = {.invalidate = true};
    struct engine_op op;
    assert_int_equal(change(ENGINE_DELETE, "k", "", &invalidate), ENGINE_ABSENT);
    assert_int_equal(change(ENGINE_SET, "k", "v", NULL), ENGINE_DONE);
    assert_int_equal(change(ENGINE_DELETE, "k", "", &invalidate), ENGINE_DONE);
    assert_int_equal(look("k", NULL, false), ENGINE_EXISTS);
    expect("k", true, false, true);
    expect("k", true, true, false);
    uint64_t token = hit.cas;
    /* a later token, and none, are no older one */
    op = op_on(ENGINE_CAS, "k", "w", &invalidate);
    op.cas = token + 1;
    assert_int_equal(run(&op), ENGINE_EXISTS);
    op.cas = 0;
    assert_int_equal(run(&op), ENGINE_EXISTS);
    op.cas = token - 1;
    op.extended = NULL;
    assert_int_equal(run(&op), ENGINE_EXISTS);
    op.extended = &invalidate;
    assert_int_equal(run(&op), ENGINE_DONE);
    expect("k", true, true, false);
    assert_memory_equal(hit.value, "w", 1);
    /* stale once more: somebody else may renew it */
    assert_int_equal(change(ENGINE_DELETE, "k", "", &invalidate), ENGINE_DONE);
    expect("k", true, false, true);
    op.cas = hit.cas;
    assert_int_equal(run(&op), ENGINE_DONE);
    expect("k", false, false, false);
}

static void test_empty_and_tokens(void **state)
{
    (void)state;
    const struct engine_extended empty = {.empty = true};
    const struct engine_extended token = {.gives_token = true, .token = 4711};
    assert_int_equal(change(ENGINE_SET, "k", "v", &token), ENGINE_DONE);
    expect("k", false, false, false);
    assert_int_equal(hit.cas, 4711);
    struct engine_op op = op_on(ENGINE_DELETE, "k", "", &empty);
    op.flags = 9;
    assert_int_equal(run(&op), ENGINE_DONE);
    expect("k", false, false, false);
    assert_int_equal(hit.value_length, 0);
    assert_int_equal(hit.flags, 9);
    assert_int_equal(hit.cas, 4711); /* it keeps its token */
    assert_int_equal(change(ENGINE_INCR, "k", "1", NULL), ENGINE_ERROR);
}

static void test_reads(void **state)
{
    (void)state;
    const struct engine_extended unnoticed = {.unnoticed = true};
    assert_int_equal(change(ENGINE_SET, "k", "10", NULL), ENGINE_DONE);
    assert_int_equal(look("k", &unnoticed, true), ENGINE_DONE);
    assert_int_equal(look("k", NULL, true), ENGINE_DONE);
    assert_false(hit.fetched);
    assert_int_equal(look("k", &unnoticed, true), ENGINE_DONE);
    assert_true(hit.fetched);
    /* counted in place it stays the same value, grown it is another */
    assert_int_equal(change(ENGINE_DECR, "k", "1", NULL), ENGINE_DONE);
    assert_int_equal(look("k", &unnoticed, true), ENGINE_DONE);
    assert_true(hit.fetched);
    assert_int_equal(change(ENGINE_INCR, "k", "1000", NULL), ENGINE_DONE);
    assert_int_equal(look("k", &unnoticed, true), ENGINE_DONE);
    assert_false(hit.fetched);
}

static void count_key(void *context, const char *key, size_t length, const struct plain_hit *found)
{
    unsigned *seen = context;
    assert_int_equal(length, 3);
    assert_int_equal(found->value_length, 1);
    seen[(key[1] - '0') * 10 + key[2] - '0']++;
}

/* Each key once, what has expired not at all; past the end there is nothing more. */
static void test_walk(void **state)
{
    unsigned seen[100] = {0};
    uint64_t cursor = 0;
    char key[4] = "k00";
    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        key[1] = (char)('0' + i / 10);
        key[2] = (char)('0' + i % 10);
        struct engine_op op = op_on(ENGINE_SET, key, "v", NULL);
        op.expires_s = i == 42 ? 1 : 0;
        assert_int_equal(run(&op), ENGINE_DONE);
    }
    while (plain_walk(engine, &cursor, count_key, seen)) {
    }
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(seen[i], i != 42);
    }
    uint64_t end = cursor;
    assert_false(plain_walk(engine, &cursor, count_key, seen));
    assert_int_equal(cursor, end);
    assert_int_equal(seen[0], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAIN_RUN_TEST(test_lease, &engine), PLAIN_RUN_TEST(test_recache, &engine),
        PLAIN_RUN_TEST(test_stale, &engine), PLAIN_RUN_TEST(test_empty_and_tokens, &engine),
        PLAIN_RUN_TEST(test_reads, &engine), PLAIN_RUN_TEST(test_walk, &engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
