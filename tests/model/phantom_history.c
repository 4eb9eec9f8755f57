/* phantom_history.c: a random life of a phantom space. */
#include "tests/model/phantom_history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/dict.h"
#include "phantom/phantom_private.h"
#include "row/row.h"
#include "row/row_data.h"
#include "tests/support/row_equal.h"

#define PHASE_STEPS   4000u
#define ID_STEP       20u /* the stream's id rises once in so many adds */
#define ID_JITTER     64u
#define HOT_IDS       50u
#define FAR           (1ull << 30)
#define JUMP_ADDS     40u /* of a cluster ahead */
#define TURN_ONCE_IN  15000u
#define CLEAR_ONCE_IN 60000u
#define FOREIGN       20000u
#define FOREIGN_TRIES 8u
#define ANY_ID_MAX    100000u

static uint64_t below(struct phantom_history *h, uint64_t bound)
{
    return test_random_below(&h->random, bound);
}

static void start(struct phantom_history *h, struct engine *engine)
{
    h->engine = engine;
    recorder_sink_init(&h->sink, h->recorder);
}

void phantom_history_init(struct phantom_history *h, struct engine *engine,
                          const struct phantom_config *config, struct recorder *recorder,
                          uint64_t seed)
{
    *h = (struct phantom_history){.recorder = recorder, .config = *config, .random = {seed}};
    start(h, engine);
    row_set_log(engine->row, &recorder->log);
    row_log_begin(engine->row);
}

void phantom_history_fini(struct phantom_history *h)
{
    free(h->pairs);
}

void phantom_history_move(struct phantom_history *h, struct engine *engine)
{
    char error[PHANTOM_ERROR_MAX];
    start(h, engine);
    row_set_log(engine->row, &h->recorder->log);
    CHECK(h->recorder->log.reserve(&h->recorder->log));
    assert_true(phantom_reconfigure(engine, &h->config, error)); /* as a server does */
}

/* ---- operations ---- */

static enum engine_status run(struct phantom_history *h, enum engine_verb verb,
                              const struct phantom_pair *pair)
{
    char member[32];
    struct phantoms_call call;
    snprintf(member, sizeof(member), "m%llu", (unsigned long long)pair->member);
    phantoms_call_init(&call, verb, pair->id, member, "1");
    return phantoms_run(h->engine, &call, &h->sink.sink);
}

bool phantom_history_holds(struct engine *engine, const struct phantom_pair *pair)
{
    char member[32];
    snprintf(member, sizeof(member), "m%llu", (unsigned long long)pair->member);
    return phantoms_hold(engine, pair->id, member);
}

static void remember(struct phantom_history *h, const struct phantom_pair *pair)
{
    if (h->count == h->room) {
        h->room = h->room ? 2 * h->room : 1024;
        h->pairs = realloc(h->pairs, h->room * sizeof(h->pairs[0]));
        CHECK(h->pairs != NULL);
    }
    h->pairs[h->count++] = *pair;
}

static void add(struct phantom_history *h, uint64_t id)
{
    struct phantom_pair pair = {id, h->members++};
    remember(h, &pair);
    (void)run(h, ENGINE_ADD, &pair); /* may be refused: too far, no table, below */
}

static uint64_t stream_id(struct phantom_history *h)
{
    if (h->config.row.any_ids) {
        return below(h, ANY_ID_MAX);
    }
    h->top += test_random_once_in(&h->random, ID_STEP);
    uint64_t jitter = below(h, ID_JITTER);
    return h->top > jitter ? h->top - jitter : h->top;
}

static void add_next(struct phantom_history *h)
{
    add(h, stream_id(h));
}

/* A few ids far behind, again and again: their table gets a layer. */
static void add_late(struct phantom_history *h)
{
    uint64_t behind = h->top > ID_JITTER * 8 ? ID_JITTER * 8 : h->top;
    add(h, h->config.row.any_ids ? stream_id(h) : h->top - behind + below(h, HOT_IDS));
}

/* One that was used, deleted or added again, or added twice. */
static void change_used(struct phantom_history *h)
{
    if (h->count > 0) {
        size_t from = h->count > 20000 ? h->count - 20000 : 0; /* in tables that are there */
        struct phantom_pair pair = h->pairs[from + below(h, h->count - from)];
        (void)run(h, below(h, 2) ? ENGINE_DELETE : ENGINE_SET, &pair);
    }
}

/* A pair that was never added but is said to be there is deleted. */
static void delete_foreign(struct phantom_history *h)
{
    struct phantom_pair pair = {stream_id(h), 0};
    bool holds = false;
    for (unsigned i = 0; i < FOREIGN_TRIES && !holds; i++) {
        pair.member = UINT64_MAX / 2 + below(h, UINT64_MAX / 4);
        holds = phantom_history_holds(h->engine, &pair);
    }
    if (holds) {
        remember(h, &pair);
        h->false_deletes += run(h, ENGINE_DELETE, &pair) == ENGINE_DONE;
    }
}

static void add_stray(struct phantom_history *h)
{
    add(h, h->config.row.any_ids ? stream_id(h) : h->top + FAR + below(h, 10 * FAR));
}

/* The stream goes on far away. */
static void jump(struct phantom_history *h)
{
    if (!h->config.row.any_ids && test_random_once_in(&h->random, 1000)) {
        h->top += FAR / 8;
        for (unsigned i = 0; i < JUMP_ADDS; i++) {
            add(h, h->top + i);
        }
    }
}

static void turn_deletes(struct phantom_history *h)
{
    char error[PHANTOM_ERROR_MAX];
    h->config.deletes = !h->config.deletes;
    CHECK(h->recorder->log.reserve(&h->recorder->log));
    assert_true(phantom_reconfigure(h->engine, &h->config, error));
}

static void clear(struct phantom_history *h)
{
    CHECK(h->recorder->log.reserve(&h->recorder->log));
    row_flush(h->engine->row);
    row_maintain(h->engine->row, NULL);
    h->count = h->count > 1000 ? 1000 : h->count;
}

typedef void act_fn(struct phantom_history *history);

/* What is done, and how often of a hundred times, by phase. */
static const struct {
    act_fn *act;
    unsigned share[4];
} acts[] = {
    {add_next, {80, 10, 30, 60}},    {add_late, {2, 80, 5, 5}}, {change_used, {10, 5, 50, 10}},
    {delete_foreign, {7, 4, 14, 5}}, {add_stray, {1, 1, 1, 5}}, {jump, {0, 0, 0, 15}},
};

static void step(struct phantom_history *h)
{
    if (h->steps++ % PHASE_STEPS == 0) {
        h->phase = (unsigned)below(h, 4);
    }
    if (test_random_once_in(&h->random, TURN_ONCE_IN)) {
        turn_deletes(h);
    }
    if (h->clears && test_random_once_in(&h->random, CLEAR_ONCE_IN)) {
        clear(h);
    }
    uint64_t left = below(h, 100);
    size_t i = 0;
    while (left >= acts[i].share[h->phase]) {
        left -= acts[i++].share[h->phase];
    }
    acts[i].act(h);
}

void phantom_history_go_on(struct phantom_history *h, uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++) {
        step(h);
    }
}

/* ---- comparison ---- */

static uint64_t count_of(const struct dict *dict)
{
    return dict ? dict_count(dict) : 0;
}

static void compare_tables(const struct row_table *left, const struct row_table *right)
{
    const struct phantom_table *a = (const struct phantom_table *)left;
    const struct phantom_table *b = (const struct phantom_table *)right;
    assert_int_equal(left->serial, right->serial);
    assert_int_equal(left->base, right->base);
    assert_int_equal(left->last, right->last);
    assert_int_equal(left->frontier, right->frontier);
    assert_int_equal(left->count, right->count);
    assert_int_equal(a->shape.table_bytes, b->shape.table_bytes);
    assert_int_equal(a->filter.lines, b->filter.lines);
    assert_int_equal(a->filter.bits, b->filter.bits);
    assert_memory_equal(&a->secrets, &b->secrets, sizeof(a->secrets));
    assert_memory_equal((const void *)a->filter.words, (const void *)b->filter.words,
                        a->shape.table_bytes);
    assert_int_equal(count_of(a->exceptions), count_of(b->exceptions));
    assert_int_equal(count_of(a->apart), count_of(b->apart));
}

static void compare_answers(const struct phantom_history *h, struct engine *live,
                            struct engine *again)
{
    struct test_random random = {h->members};
    for (size_t i = 0; i < h->count; i++) {
        assert_true(phantom_history_holds(live, &h->pairs[i]) ==
                    phantom_history_holds(again, &h->pairs[i]));
    }
    for (uint64_t i = 0; i < FOREIGN && h->count > 0; i++) {
        struct phantom_pair pair = {h->pairs[test_random_below(&random, h->count)].id,
                                    ~test_random_below(&random, 1u << 30)};
        assert_true(phantom_history_holds(live, &pair) == phantom_history_holds(again, &pair));
    }
}

void phantom_history_contents(const struct phantom_history *h, struct engine *live,
                              struct engine *again)
{
    const struct row *left = &((struct phantom *)live)->row;
    const struct row *right = &((struct phantom *)again)->row;
    phantom_check(live);
    phantom_check(again);
    assert_int_equal(left->count, right->count);
    for (size_t i = 0; i < left->count; i++) {
        const struct row_table *a = left->tables[i];
        const struct row_table *b = right->tables[i];
        for (; a && b; a = a->further, b = b->further) {
            compare_tables(a, b);
        }
        assert_true(!a && !b);
    }
    assert_int_equal(phantoms_members(live), phantoms_members(again));
    compare_answers(h, live, again);
}

void phantom_history_compare(const struct phantom_history *h, struct engine *live,
                             struct engine *again)
{
    row_equal(&((struct phantom *)live)->row, &((struct phantom *)again)->row, false);
    phantom_history_contents(h, live, again);
}
