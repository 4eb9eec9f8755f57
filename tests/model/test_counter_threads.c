/*
 * test_counter_threads.c: threads on a small table so full that records move all the time.
 *
 * Kept ids are never deleted: every thread increments one slot of them alone and two slots in one
 * step, and every reader must find them, see the first never go back and the two never apart, over
 * the edge into the aux dict too. Own ids of each thread come and go; their thread knows exactly
 * what is there, the others may see them whole or not at all. At the end every increment is there.
 */
#include "counter/counter_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/support/counters.h"
#include "tests/support/random.h"

#define SLOTS       "a:20 b:20 c:20 d:20"
#define SLOT_EDGE   ((1u << 20) - 3)
#define THREADS_MIN 2u
#define THREADS_MAX 4u
#define KEPT        1500u
#define HOT         32u
#define OWN_ALL     6400u   /* with the kept ones far more than the table holds */
#define STEPS       300000u /* a thread */
#define BATCH       16u
#define OWN_FIRST   (1u << 20)
#define AUX_BYTES   (16u << 10)
#define LARGE       (1ull << 40)
#define CLOSE_TO    40u /* increments below the slot's edge where pairs begin */

struct shared {
    struct engine *engine;
    uint64_t own;   /* ids a thread has */
    unsigned count; /* threads */
    uint64_t steps;
};

struct worker {
    pthread_t thread;
    const struct shared *shared;
    unsigned number;
    struct test_random random;
    uint64_t alone[KEPT], paired[KEPT]; /* increments made */
    uint64_t seen[KEPT];                /* of slot a, last */
    bool *there;                        /* its own ids */
    uint64_t refused;
    const char *wrong; /* NULL: nothing */
    char detail[ENGINE_VALUE_MAX + 64];
    struct counters_call calls[BATCH];
};

static void wrong(struct worker *w, const char *what, const struct engine_op *op)
{
    if (!w->wrong) {
        w->wrong = what;
        snprintf(w->detail, sizeof(w->detail), "id %" PRIu64 " status %d error %d '%.*s'", op->id,
                 (int)op->status, (int)op->error, (int)op->value_length, op->value);
    }
}

/* Half of the time one of a few, so that threads meet. */
static uint64_t any_kept(struct worker *w)
{
    return test_random_below(&w->random, test_random_once_in(&w->random, 2) ? HOT : KEPT);
}

static uint64_t kept_id(uint64_t index)
{
    return index * 3;
}

static uint64_t own_id(uint64_t number, uint64_t index)
{
    return OWN_FIRST + number * OWN_ALL + index;
}

/* One that some thread has. */
static uint64_t any_own_id(struct worker *w)
{
    uint64_t number = test_random_below(&w->random, w->shared->count);
    return own_id(number, test_random_below(&w->random, w->shared->own));
}

/* Every eighth of the own ids has numbers for the aux dict. */
static uint64_t own_value(uint64_t id, uint64_t generation)
{
    return id % 8 == 0 ? LARGE + generation : generation % 1000000;
}

/* Reads the fields of a record's text; false if one of the first `count` is empty. */
static bool fields_of(const struct engine_op *op, unsigned count, uint64_t *fields)
{
    const char *at = op->value;
    for (unsigned i = 0; i < count; i++) {
        char *end;
        if (*at < '0' || *at > '9') {
            return false;
        }
        fields[i] = strtoull(at, &end, 10);
        at = end + 1;
    }
    return true;
}

/* Returns slot a. */
static uint64_t check_kept(struct worker *w, uint64_t index, const struct engine_op *op)
{
    uint64_t fields[4];
    if (op->status != ENGINE_DONE || !fields_of(op, 4, fields)) {
        wrong(w, "a kept id was not found", op);
        return 0;
    }
    if (fields[0] < w->seen[index]) {
        wrong(w, "a counter went back", op);
    }
    if (fields[1] != fields[3]) {
        wrong(w, "two slots came apart", op);
    }
    return fields[0];
}

static void note_seen(struct worker *w, uint64_t index, uint64_t value)
{
    if (value > w->seen[index]) {
        w->seen[index] = value;
    }
}

static void check_foreign(struct worker *w, const struct engine_op *op)
{
    uint64_t fields[4];
    if (op->status == ENGINE_ABSENT) {
        return;
    }
    if (op->status != ENGINE_DONE || !fields_of(op, 4, fields) || fields[1] != fields[0] + 1 ||
        fields[2] != fields[0] + 2 || fields[3] != fields[0] + 3) {
        wrong(w, "another thread's record is torn", op);
    }
}

/* A batch of reads: kept ids, and ids that others insert and delete meanwhile. */
static void read_some(struct worker *w)
{
    struct engine *engine = w->shared->engine;
    struct engine_op *ops[BATCH];
    uint64_t kept[BATCH];
    for (unsigned i = 0; i < BATCH; i++) {
        kept[i] = any_kept(w);
        uint64_t id = i % 2 ? kept_id(kept[i]) : any_own_id(w);
        counters_call_init(&w->calls[i], ENGINE_READ, ENGINE_SLOT_RECORD, id, NULL);
        ops[i] = &w->calls[i].op;
    }
    engine->functions->prepare(engine, ops, BATCH);
    engine->functions->read(engine, ops, BATCH);
    for (unsigned i = 0; i < BATCH; i++) {
        w->calls[i].value[ops[i]->status == ENGINE_DONE ? ops[i]->value_length : 0] = '\0';
        if (i % 2) {
            note_seen(w, kept[i], check_kept(w, kept[i], ops[i])); /* reads of one id keep order */
        } else {
            check_foreign(w, ops[i]);
        }
    }
}

static void add_one(struct worker *w)
{
    uint64_t index = any_kept(w);
    struct counters_call *call = &w->calls[0];
    counters_do(w->shared->engine, call, ENGINE_INCR, 0, kept_id(index), "1");
    w->alone[index]++;
    if (call->op.status != ENGINE_DONE || strtoull(call->value, NULL, 10) < w->seen[index]) {
        wrong(w, "an increment failed", &call->op);
    }
}

static void add_pair(struct worker *w)
{
    uint64_t index = any_kept(w);
    struct counters_call *call = &w->calls[0];
    counters_do(w->shared->engine, call, ENGINE_INCR, ENGINE_SLOT_RECORD, kept_id(index), ",1,,1");
    if (call->op.status == ENGINE_ERROR && call->op.error == ENGINE_E_OUT_OF_MEMORY) {
        w->refused++; /* no place in the aux dict: neither was changed */
        return;
    }
    w->paired[index]++;
    note_seen(w, index, check_kept(w, index, &call->op));
}

/* One of the own ids comes or goes; its state must be what this thread left. */
static void change_own(struct worker *w, uint64_t generation)
{
    uint64_t index = test_random_below(&w->random, w->shared->own);
    uint64_t id = own_id(w->number, index);
    struct counters_call *call = &w->calls[0];
    char text[96];
    counters_do(w->shared->engine, call, ENGINE_TOUCH, ENGINE_SLOT_RECORD, id, NULL);
    if ((call->op.status == ENGINE_DONE) != w->there[index]) {
        wrong(w, "an own id is not as it was left", &call->op);
    }
    if (w->there[index]) {
        counters_do(w->shared->engine, call, ENGINE_DELETE, ENGINE_SLOT_RECORD, id, NULL);
        w->there[index] = false;
        if (call->op.status != ENGINE_DONE) {
            wrong(w, "an own id could not be deleted", &call->op);
        }
        return;
    }
    uint64_t value = own_value(id, generation);
    snprintf(text, sizeof(text), "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, value, value + 1,
             value + 2, value + 3);
    counters_do(w->shared->engine, call, ENGINE_ADD, ENGINE_SLOT_RECORD, id, text);
    w->there[index] = call->op.status == ENGINE_DONE;
    w->refused += !w->there[index];
    if (!w->there[index] && call->op.error != ENGINE_E_OUT_OF_MEMORY) {
        wrong(w, "an own id could not be added", &call->op);
    }
}

static void *work(void *context)
{
    struct worker *w = context;
    for (uint64_t step = 0; step < w->shared->steps && !w->wrong; step++) {
        switch (test_random_below(&w->random, 8)) {
        case 0:
            read_some(w);
            break;
        case 1:
        case 2:
            add_one(w);
            break;
        case 3:
            add_pair(w);
            break;
        default:
            change_own(w, step);
        }
    }
    return NULL;
}

/* Pairs of every sixteenth kept id begin below the slot's edge and cross it. */
static uint64_t pair_start(uint64_t index)
{
    return index % 16 == 0 ? SLOT_EDGE - CLOSE_TO : 1;
}

static void insert_kept(struct engine *engine)
{
    for (uint64_t i = 0; i < KEPT; i++) {
        struct counters_call call;
        char text[64];
        uint64_t pair = pair_start(i);
        snprintf(text, sizeof(text), "0,%" PRIu64 ",7,%" PRIu64, pair, pair);
        counters_do(engine, &call, ENGINE_SET, ENGINE_SLOT_RECORD, kept_id(i), text);
        assert_int_equal(call.op.status, ENGINE_DONE);
    }
}

static void check_sums(struct engine *engine, const struct worker *workers, unsigned count)
{
    for (uint64_t i = 0; i < KEPT; i++) {
        uint64_t alone = 0;
        uint64_t paired = pair_start(i);
        uint64_t fields[4];
        struct counters_call call;
        for (unsigned k = 0; k < count; k++) {
            alone += workers[k].alone[i];
            paired += workers[k].paired[i];
        }
        counters_do(engine, &call, ENGINE_READ, ENGINE_SLOT_RECORD, kept_id(i), NULL);
        assert_int_equal(call.op.status, ENGINE_DONE);
        assert_true(fields_of(&call.op, 4, fields));
        assert_true(fields[0] == alone); /* none lost, none twice */
        assert_true(fields[1] == paired && fields[2] == 7 && fields[3] == paired);
    }
}

static void run_threads(unsigned count, uint64_t seed)
{
    struct counter_config config;
    counters_config(&config, SLOTS);
    config.row.any_ids =
        true; /* full only where no place is left: the table stays at its fullest */
    config.max_id = (1u << 26) - 1;
    config.aux_bytes = AUX_BYTES;
    struct shared shared = {counters_create(&config), OWN_ALL / count, count, test_scaled(STEPS)};
    counter_of(shared.engine)->row.tables[0]->refused = true; /* to grow: nobody waits for that */
    struct worker *workers = memory_zalloc(count * sizeof(*workers));
    uint64_t refused = 0;
    insert_kept(shared.engine);
    for (unsigned i = 0; i < count; i++) {
        workers[i].shared = &shared;
        workers[i].number = i;
        workers[i].random.state = seed + i;
        workers[i].there = memory_zalloc(shared.own * sizeof(bool));
    }
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        refused += workers[i].refused;
        free(workers[i].there);
    }
    for (unsigned i = 0; i < count; i++) {
        if (workers[i].wrong) {
            fail_msg("thread %u of %u: %s: %s", i, count, workers[i].wrong, workers[i].detail);
        }
    }
    counter_check(shared.engine);
    check_sums(shared.engine, workers, count);
    printf("%u threads, %" PRIu64 " steps each, %" PRIu64 " refused\n", count, shared.steps,
           refused);
    free(workers);
    shared.engine->functions->destroy(shared.engine);
}

static void test_threads(void **unused)
{
    (void)unused;
    uint64_t seed = test_seed();
    for (unsigned count = THREADS_MIN; count <= THREADS_MAX; count++) {
        run_threads(count, seed + 1000 * count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
