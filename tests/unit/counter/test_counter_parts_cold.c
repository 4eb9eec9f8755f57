/*
 * test_counter_parts_cold.c: a space of any ids with more ids than memory for them: its parts go to
 * files and come back, under random operations, rounds that fail, and restarts. What it holds is
 * looked at against a plain map.
 */
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
#include "counter/counter_private.h"
#include "row/row_private.h"
#include "tests/support/counters.h"
#include "tests/support/dumps.h"
#include "tests/support/give_way.h"
#include "tests/support/random.h"

#define MAX_ID    ((1ull << 40) - 1)
#define KIB       1024u
#define PART      (64u * KIB)
#define MOST      (256u * KIB) /* of parts, beyond what is set aside */
#define OVERLAYS  (512u * KIB)
#define LARGE     (1ull << 50) /* a value that lies beside */
#define NOTHING   UINT64_MAX
#define TRIES     100u /* of a change that would stop its own test */
#define CHANGES   8u
#define TRIES_MAX 20000000u /* of an operation: threads that read for it may have to wait long */

struct world {
    struct counter_config config;
    struct engine_growth growth;
    struct dumps dumps;
    struct recorder_sink sink;
    struct test_random random;
    struct counters_call call;
    uint64_t serial, ids, came, back, between;
    bool maintaining; /* the keeper is at work: reads of its files have changes in between */
    pthread_t thread;
    uint64_t *held; /* by index: what slot a holds; NOTHING: there is no record */
};

/* No two indices have one id: the factor is odd. */
static uint64_t id_of(uint64_t index)
{
    return (index * 0x9e3779b97f4a7c15u) & MAX_ID;
}

static struct row *row_of(struct world *w)
{
    return &counter_of(w->dumps.engine)->row;
}

static void attach(struct world *w)
{
    w->dumps.engine->growth = &w->growth;
    recorder_sink_init(&w->sink, &w->dumps.recorder);
    row_ask(row_of(w));
}

static void between_reads(void *context, enum vfs_sim_op op, const char *path);

static void world_open(struct world *w, const char *slots, uint64_t ids, uint64_t seed)
{
    memset(w, 0, sizeof(*w));
    counters_config(&w->config, slots);
    w->config.row.any_ids = true;
    w->config.row.dump = true;
    w->config.max_id = MAX_ID;
    w->config.row.part_bytes = PART;
    atomic_store(&w->growth.most, MOST);
    w->random.state = seed;
    w->ids = ids;
    w->held = memory_zalloc(ids * sizeof(*w->held));
    for (uint64_t i = 0; i < ids; i++) {
        w->held[i] = NOTHING;
    }
    dumps_init(&w->dumps, OVERLAYS, 64u * KIB, seed);
    w->dumps.waits = true;
    w->thread = pthread_self();
    vfs_sim_hook(w->dumps.sim, between_reads, w);
    dumps_create(&w->dumps, &w->config);
    attach(w);
}

static void world_close(struct world *w)
{
    dumps_fini(&w->dumps);
    free(w->held);
    assert_int_equal(atomic_load(&w->growth.used), 0);
}

static void no_wake(void *target, uint64_t serial)
{
    (void)target;
    (void)serial;
}

/* As after a while. */
static void try_again(struct world *w)
{
    struct row *row = row_of(w);
    for (size_t i = 0; i < row->count; i++) {
        row->tables[i]->merge_us = 0;
    }
    if (atomic_load(&row->again_us) != 0) {
        atomic_store(&row->again_us, 1);
        row_ask(row);
    }
}

/* False: it would wait for the row. */
static bool add_meanwhile(struct world *w, uint64_t index)
{
    struct counters_call call;
    counters_call_init(&call, ENGINE_INCR, 0, id_of(index), "1");
    call.op.ticket = (struct ticket){no_wake, w, ++w->serial};
    call.op.status = ENGINE_PENDING;
    for (unsigned tries = 0; tries < TRIES && call.op.status == ENGINE_PENDING; tries++) {
        dumps_run(&w->dumps, &call.op, &w->sink.sink);
        give_way();
    }
    cold_release(w->dumps.cold.cold, &call.op.ticket);
    bool done = call.op.status == ENGINE_DONE;
    w->held[index] += done; /* it was there */
    return done;
}

/* The keeper reads a part that comes back: what changes meanwhile is to be in it. */
static void between_reads(void *context, enum vfs_sim_op op, const char *path)
{
    struct world *w = context;
    (void)path;
    if (op != VFS_SIM_PREAD || !pthread_equal(pthread_self(), w->thread) || !w->maintaining) {
        return;
    }
    w->maintaining = false;
    for (unsigned i = 0; i < CHANGES; i++) {
        uint64_t index = test_random_below(&w->random, w->came + 1);
        w->between += index < w->came && w->held[index] != NOTHING && add_meanwhile(w, index);
    }
    w->maintaining = true;
}

/* As keeper and checkpoint do it beside the workers. */
static void go_on(struct world *w)
{
    size_t cold = dumps_cold(&w->dumps);
    w->maintaining = true;
    w->dumps.engine->functions->maintain(w->dumps.engine, NULL);
    w->maintaining = false;
    w->back += cold > dumps_cold(&w->dumps) ? cold - dumps_cold(&w->dumps) : 0;
    if (row_images_wanted(w->dumps.engine->row)) {
        dumps_round(&w->dumps, NULL, NULL, test_random_below(&w->random, 8) == 0);
    }
}

/* As while dumps and merges fail. */
static bool is_refused(const struct engine_op *op)
{
    return op->status == ENGINE_ERROR &&
           (op->error == ENGINE_E_BUSY || op->error == ENGINE_E_OUT_OF_MEMORY);
}

static enum engine_status run(struct world *w, enum engine_verb verb, int slot, uint64_t index,
                              const char *text)
{
    counters_call_init(&w->call, verb, slot, id_of(index), text);
    w->call.op.ticket = (struct ticket){no_wake, w, ++w->serial};
    for (unsigned tries = 0;; tries++) {
        assert_true(tries < TRIES_MAX);
        dumps_run(&w->dumps, &w->call.op, &w->sink.sink);
        if (w->call.op.status != ENGINE_PENDING && !is_refused(&w->call.op)) {
            break;
        }
        try_again(w);
        go_on(w);
        give_way();
    }
    w->call.value[w->call.op.value_length] = '\0';
    if (row_asked(row_of(w))) {
        go_on(w);
    }
    return w->call.op.status;
}

static void expect(struct world *w, uint64_t index)
{
    char text[24];
    enum engine_status status = run(w, ENGINE_READ, 0, index, NULL);
    assert_int_equal(status, w->held[index] == NOTHING ? ENGINE_ABSENT : ENGINE_DONE);
    if (status == ENGINE_DONE) {
        snprintf(text, sizeof(text), "%" PRIu64, w->held[index]);
        assert_string_equal(w->call.value, text);
    }
}

static void add(struct world *w, uint64_t index, uint64_t n)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, n);
    enum engine_status status = run(w, ENGINE_INCR, 0, index, text);
    assert_int_equal(status, ENGINE_DONE);
    w->held[index] = (w->held[index] == NOTHING ? 0 : w->held[index]) + n;
}

static void erase(struct world *w, uint64_t index)
{
    enum engine_status status = run(w, ENGINE_DELETE, ENGINE_SLOT_RECORD, index, NULL);
    assert_int_equal(status, w->held[index] == NOTHING ? ENGINE_ABSENT : ENGINE_DONE);
    w->held[index] = NOTHING;
}

/* Of the ids that came so far, or the next one. */
static void step(struct world *w)
{
    uint64_t index = test_random_below(&w->random, w->came + 1);
    switch (test_random_below(&w->random, 8)) {
    case 0:
        erase(w, index);
        break;
    case 1:
        expect(w, index);
        break;
    case 2:
        add(w, index, test_random_below(&w->random, 16) == 0 ? LARGE : 1);
        break;
    default:
        index = w->came;
        add(w, index, 1 + index % 1000);
    }
    w->came += index == w->came && w->held[index] != NOTHING;
}

static void check_all(struct world *w)
{
    uint64_t records = 0;
    counter_check(w->dumps.engine);
    for (uint64_t i = 0; i < w->ids; i++) {
        expect(w, i);
        records += w->held[i] != NOTHING;
    }
    uint64_t counted = 0;
    for (size_t i = 0; i < row_of(w)->count; i++) {
        counted += atomic_load(&row_of(w)->tables[i]->count);
    }
    assert_int_equal(counted, records);
}

static void restart(struct world *w)
{
    dumps_restart(&w->dumps, &w->config);
    attach(w);
}

/* ---- tests ---- */

static void try_exact(const char *slots, uint64_t ids)
{
    static struct world w;
    size_t most = 0;
    world_open(&w, slots, ids, test_seed());
    while (w.came < ids - 1) {
        step(&w);
        most = dumps_cold(&w.dumps) > most ? dumps_cold(&w.dumps) : most;
        if (test_random_below(&w.random, ids / 16) == 0) {
            dumps_round(&w.dumps, NULL, NULL, false);
        }
        if (test_random_below(&w.random, ids / 8) == 0) {
            restart(&w);
            check_all(&w);
        }
    }
    check_all(&w);
    restart(&w);
    check_all(&w);
    printf("%s: %zu of %zu parts in files, %" PRIu64 " came back, %" PRIu64 " changes meanwhile; "
           "merges %" PRIu64 "\n",
           slots, most, row_of(&w)->count, w.back, w.between, w.dumps.kinds[ROW_IMAGE_MERGE]);
    assert_true((most > 3 && w.back > 3 && w.between > 10) || test_scaled(100) < 100);
    world_close(&w);
}

static void test_all_is_exact(void **unused)
{
    (void)unused;
    try_exact("a:20 b:20", test_scaled(40000));
    try_exact("a:12 b:3", test_scaled(70000));
    try_exact("a:64 b:64 c:64 d:64", test_scaled(12000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
