/*
 * test_counter_cold.c: a space of which most tables have left memory, against a plain map: random
 * changes and reads while tables are dumped, merged, fail to be, and after restarts at any moment;
 * and the same while threads go on, each with ids of its own and with some that all of them count.
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

#include "base/check.h"
#include "base/dict.h"
#include "base/memory.h"
#include "counter/counter_private.h"
#include "row/row_data.h"
#include "row/row_private.h"
#include "row/table_kind.h"
#include "tests/support/counters.h"
#include "tests/support/dumps.h"
#include "tests/support/give_way.h"
#include "tests/support/rows.h"

#define SLOTS       3u
#define FIRST_ID    5000u
#define IDS_MAX     80000u
#define WORKERS     3u
#define SHARED      (2 * WORKERS) /* the first ids: of no worker alone */
#define PENDING_MAX 1000000u      /* alone; with threads the bound is the limit of the test */
#define ROUND_EVERY 1000u         /* waits */
#define LARGE       (1ull << 40)
#define STEPS       60u
#define OPS_A_STEP  2000u

struct record {
    uint32_t set;
    uint64_t value[SLOTS];
};

/* What an id became, and where the recorder's end was then. */
struct past {
    uint64_t lsn, index;
    struct record record;
};

struct world {
    struct dumps dumps;
    struct counter_config config;
    struct record model[IDS_MAX];
    struct past *past; /* NULL: threads are there */
    size_t past_count, past_room;
    _Atomic uint64_t newest;
    _Atomic bool stop;
    _Atomic unsigned working; /* workers that have not ended */
    _Atomic uint64_t done;    /* operations */
    _Atomic uint64_t counted[SHARED];
    _Atomic bool failed;                        /* a round of images */
    _Atomic uint64_t busy, no_table, no_memory; /* refused for that */
    struct barrier *barrier;
    struct test_random random;
};

struct worker {
    struct world *world;
    struct recorder_sink sink;
    struct test_random random;
    struct barrier_member *member;
    unsigned number, of;
    pthread_t thread;
    uint64_t serial;
    uint64_t pending;
};

static void wake(void *target, uint64_t serial)
{
    (void)target;
    (void)serial;
}

static uint64_t id_of(uint64_t index)
{
    return FIRST_ID + index;
}

/* Alone, what it waits for has to be done here. */
static void wait_a_little(struct worker *w)
{
    struct world *world = w->world;
    struct dumps *d = &world->dumps;
    w->pending++;
    if (!world->barrier) {
        row_maintain(d->engine->row, NULL);
        /* After one that failed none is wanted until the next checkpoint, by the clock. */
        if (row_images_wanted(d->engine->row) || w->pending % ROUND_EVERY == 0) {
            dumps_round(d, NULL, NULL, false);
        }
    }
    give_way();
}

static void run(struct worker *w, struct counters_call *call)
{
    call->op.ticket = (struct ticket){wake, w, ++w->serial};
    for (unsigned tries = 0;; tries++) {
        CHECK(w->member || tries < PENDING_MAX);
        if (w->member) {
            barrier_enter(w->member);
        }
        dumps_run(&w->world->dumps, &call->op, &w->sink.sink);
        if (w->member) {
            barrier_leave(w->member);
        }
        if (call->op.status != ENGINE_PENDING) {
            break;
        }
        wait_a_little(w);
    }
    call->value[call->op.value_length] = '\0';
}

/* ---- what is expected ---- */

static void print_record(const struct record *record, char *text)
{
    struct counter_values values = {.set = record->set};
    memcpy(values.value, record->value, sizeof(record->value));
    text[counter_record_print(text, &values, SLOTS)] = '\0';
}

static void check_value(const struct counters_call *call, const struct record *expected)
{
    char text[ENGINE_VALUE_MAX + 1];
    if (!expected->set) {
        CHECK(call->op.status == ENGINE_ABSENT);
        return;
    }
    print_record(expected, text);
    if (call->op.status != ENGINE_DONE || strcmp(text, call->value) != 0) {
        printf("id %" PRIu64 ": '%s' is expected, it is '%s' (status %d, error %d)\n", call->op.id,
               text, call->value, (int)call->op.status, (int)call->op.error);
    }
    CHECK(call->op.status == ENGINE_DONE && strcmp(text, call->value) == 0);
}

static void read_back(struct worker *w, uint64_t index)
{
    struct counters_call call;
    counters_call_init(&call, ENGINE_READ, ENGINE_SLOT_RECORD, id_of(index), NULL);
    run(w, &call);
    check_value(&call, &w->world->model[index]);
}

static void keep_past(struct world *world, uint64_t index)
{
    if (!world->past) {
        return;
    }
    if (world->past_count == world->past_room) {
        world->past_room *= 2;
        world->past = realloc(world->past, world->past_room * sizeof(*world->past));
        CHECK(world->past);
    }
    world->past[world->past_count++] =
        (struct past){world->dumps.recorder.head, index, world->model[index]};
}

static void fill(struct worker *w, struct counters_call *call, uint64_t index, char *text)
{
    static const enum engine_verb verbs[] = {ENGINE_SET,  ENGINE_ADD,    ENGINE_INCR,
                                             ENGINE_INCR, ENGINE_DELETE, ENGINE_SET};
    enum engine_verb verb = verbs[test_random_below(&w->random, sizeof(verbs) / sizeof(*verbs))];
    bool whole = verb == ENGINE_DELETE ? test_random_once_in(&w->random, 2)
                                       : verb != ENGINE_INCR && test_random_once_in(&w->random, 3);
    int slot = whole ? ENGINE_SLOT_RECORD : (int)test_random_below(&w->random, SLOTS);
    for (unsigned i = 0, at = 0; i < (whole ? SLOTS : 1); i++) {
        uint64_t value = test_random_below(&w->random, 30);
        value += test_random_once_in(&w->random, 60) ? LARGE : 0;
        at += (unsigned)sprintf(text + at, i > 0 ? ",%" PRIu64 : "%" PRIu64, value);
    }
    counters_call_init(call, verb, slot, id_of(index), verb == ENGINE_DELETE ? NULL : text);
}

/* What an operation makes of a record that is there or not; false: nothing. */
static bool expect(const struct counters_call *call, struct record *record)
{
    const struct engine_op *op = &call->op;
    bool whole = op->slot == ENGINE_SLOT_RECORD;
    uint32_t named = whole ? (1u << SLOTS) - 1 : 1u << op->slot;
    bool there = (record->set & named) != 0;
    struct counter_values values = {0};
    if ((op->verb == ENGINE_ADD && there) || (op->verb == ENGINE_DELETE && !there)) {
        return false;
    }
    if (op->verb == ENGINE_DELETE) {
        record->set &= ~named;
        return true;
    }
    if (op->verb == ENGINE_INCR) {
        uint64_t before = there ? record->value[op->slot] : 0;
        record->value[op->slot] = before + strtoull(op->text, NULL, 10);
        record->set |= named;
        return true;
    }
    CHECK(counter_record_parse(op->text, op->text_length, whole ? SLOTS : 1, &values));
    for (unsigned i = 0; i < SLOTS; i++) {
        if (named >> i & 1) {
            record->value[i] = values.value[whole ? i : 0];
        }
    }
    record->set |= named;
    return true;
}

/* What was restored has twice the memory that it uses, and keeps some for the next restart. */
static bool aux_may_be_full(const struct row *row, const struct row_table *table)
{
    const struct dict *front;
    const struct dict *aux = row->kind->section(table, COUNTER_TABLE_AUX, 0, &front);
    return aux && dict_count(aux) * 3 >= dict_places(aux);
}

/*
 * Refused is a change of a dumped table whose overlay is full, a value that has no place beside its
 * table, and a new id after a dump failed. Ids are dense: none is too far. Where threads are nobody
 * can look at a table.
 */
static void expect_refusal(struct worker *w, const struct engine_op *op)
{
    struct world *world = w->world;
    const struct row *row = world->dumps.engine->row;
    const struct row_table *table = w->member ? NULL : row_find(row, op->id);
    switch (op->error) {
    case ENGINE_E_BUSY:
        CHECK(!table || row_is_going(table));
        world->busy++;
        break;
    case ENGINE_E_NO_TABLE_FREE:
        CHECK(world->failed && (!table || row_regions_free(row) == 0));
        world->no_table++;
        break;
    default:
        CHECK(op->error == ENGINE_E_OUT_OF_MEMORY);
        CHECK(!table || aux_may_be_full(row, table));
        world->no_memory++;
    }
}

static void change(struct worker *w, uint64_t index)
{
    struct counters_call call;
    char text[ENGINE_VALUE_MAX];
    struct record *is = &w->world->model[index];
    struct record becomes = *is;
    fill(w, &call, index, text);
    bool changes = expect(&call, &becomes);
    run(w, &call);
    if (call.op.status == ENGINE_ERROR) {
        expect_refusal(w, &call.op);
        return;
    }
    CHECK((call.op.status == ENGINE_DONE) == changes);
    if (changes) {
        *is = becomes;
        keep_past(w->world, index);
    }
}

/* Newer ids as a rule; sometimes any. Of those that are this worker's. (SHARED is a multiple of
 * WORKERS.) */
static uint64_t any_index(struct worker *w)
{
    struct world *world = w->world;
    if (world->newest + WORKERS < IDS_MAX && test_random_once_in(&w->random, 2)) {
        world->newest++;
    }
    uint64_t newest = world->newest;
    uint64_t most = newest - SHARED;
    uint64_t back = test_random_once_in(&w->random, 3) ? most : 1000;
    uint64_t index = newest - test_random_below(&w->random, back < most ? back : most);
    return index - index % w->of + w->number;
}

static void work(struct worker *w, unsigned operations)
{
    for (unsigned i = 0; i < operations; i++) {
        uint64_t index = any_index(w);
        if (test_random_once_in(&w->random, 3)) {
            read_back(w, index);
        } else {
            change(w, index);
        }
        w->world->done++;
    }
}

static void read_all(struct worker *w)
{
    uint64_t there = 0;
    for (uint64_t i = 0; i < w->world->newest + WORKERS && i < IDS_MAX; i++) {
        read_back(w, i);
        there += w->world->model[i].set != 0;
    }
    double counted = rows_figure(w->world->dumps.engine, "records");
    if (counted != (double)there) {
        printf("%" PRIu64 " records are counted as %.0f\n", there, counted);
    }
    CHECK(counted == (double)there);
}

/* ---- the space ---- */

static struct world *world_create(uint64_t seed, const char *slots, uint64_t overlay_bytes)
{
    struct world *world = memory_zalloc(sizeof(*world));
    counters_config(&world->config, slots);
    world->config.row.tables = 2;
    world->config.aux_bytes = 32u << 10;
    world->config.row.dump = true;
    world->config.row.late_room = 0.05;
    dumps_init(&world->dumps, overlay_bytes, 1u << 20, seed);
    dumps_create(&world->dumps, &world->config);
    world->random.state = seed;
    world->newest = 100;
    return world;
}

static void world_destroy(struct world *world)
{
    dumps_fini(&world->dumps);
    free(world->past);
    free(world);
}

static void worker_init(struct worker *w, struct world *world, unsigned number, unsigned of)
{
    *w = (struct worker){.world = world, .number = number, .of = of};
    w->random.state = test_random_next(&world->random);
    recorder_sink_init(&w->sink, &world->dumps.recorder);
}

static void print_world(const struct world *world, const struct worker *w)
{
    const struct dumps *d = &world->dumps;
    printf("%zu tables, %zu of them dumped, %zu with layers; images: %" PRIu64
           " of tables, %" PRIu64 " dumps, %" PRIu64 " of overlays, %" PRIu64 " merges, %" PRIu64
           " gone; %" PRIu64 " waits; refused: %" PRIu64 " busy, %" PRIu64 " no table, %" PRIu64
           " no memory\n",
           dumps_tables(d), dumps_cold(d), dumps_layers(d), d->kinds[ROW_IMAGE_TABLE],
           d->kinds[ROW_IMAGE_DUMP], d->kinds[ROW_IMAGE_OVERLAY], d->kinds[ROW_IMAGE_MERGE],
           d->gone, w->pending, world->busy, world->no_table, world->no_memory);
}

/* ---- alone ---- */

static void go_back_to(struct world *world, uint64_t lsn)
{
    memset(world->model, 0, sizeof(world->model));
    size_t kept = 0;
    while (kept < world->past_count && world->past[kept].lsn <= lsn) {
        world->model[world->past[kept].index] = world->past[kept].record;
        kept++;
    }
    world->past_count = kept;
}

/* A crash: what was recorded last is lost. Not below what the last round relies on. */
static void crash(struct world *world)
{
    struct dumps *d = &world->dumps;
    uint64_t least = d->last.m;
    uint64_t lost = test_random_below(&world->random, 2)
                        ? test_random_below(&world->random, d->recorder.head - least + 1)
                        : 0;
    recorder_cut(&d->recorder, d->recorder.head - lost);
    go_back_to(world, d->recorder.head);
    dumps_restart(d, &world->config);
}

static void one_step(struct world *world, struct worker *w)
{
    struct dumps *d = &world->dumps;
    work(w, OPS_A_STEP);
    row_maintain(d->engine->row, NULL);
    dumps_leave(d, test_random_below(&world->random, dumps_tables(d)));
    unsigned what = (unsigned)test_random_below(&world->random, 8);
    if (what < 4) {
        world->failed = world->failed || what == 0;
        dumps_round(d, NULL, NULL, what == 0);
    }
    if (what == 7) {
        crash(world);
        worker_init(w, world, 0, 1);
    }
    counter_check(d->engine);
}

static void run_alone(const char *slots, uint64_t overlay_bytes)
{
    uint64_t seed = test_seed();
    struct world *world = world_create(seed, slots, overlay_bytes);
    struct worker w;
    world->past_room = 1024;
    world->past = memory_zalloc(world->past_room * sizeof(*world->past));
    worker_init(&w, world, 0, 1);
    dumps_round(&world->dumps, NULL, NULL, false);
    uint64_t steps = test_scaled(STEPS);
    for (uint64_t i = 0; i < steps; i++) {
        one_step(world, &w);
        if (i % 10 == 9) {
            read_all(&w);
        }
    }
    read_all(&w);
    dumps_round(&world->dumps, NULL, NULL, false);
    dumps_restart(&world->dumps, &world->config);
    worker_init(&w, world, 0, 1);
    read_all(&w);
    print_world(world, &w);
    assert_true(dumps_cold(&world->dumps) >= 3 ||
                test_scaled(100) < 100); /* a short run may not get there */
    world_destroy(world);
}

static void all_is_exact(void **state)
{
    (void)state;
    run_alone("a:20 b:4 c:20", 1u << 20);
}

static void all_is_exact_in_a_small_overlay(void **state)
{
    (void)state;
    run_alone("a:20 b:4 c:20", 24u << 10);
}

static void all_is_exact_of_wide_records(void **state)
{
    (void)state;
    run_alone("a:64 b:4 c:60", 1u << 20);
}

/* ---- with threads ---- */

/* Adds to an id that the other workers add to, too. */
static void count_shared(struct worker *w)
{
    struct counters_call call;
    char text[32];
    uint64_t index = test_random_below(&w->random, SHARED);
    uint64_t more = 1 + test_random_below(&w->random, 30);
    snprintf(text, sizeof(text), "%" PRIu64, more);
    counters_call_init(&call, ENGINE_INCR, 0, id_of(index), text);
    run(w, &call);
    if (call.op.status == ENGINE_ERROR) {
        expect_refusal(w, &call.op);
        return;
    }
    CHECK(call.op.status == ENGINE_DONE);
    w->world->counted[index] += more;
}

/* Whatever came first, the sum is known. No worker works. */
static void expect_counted(struct world *world)
{
    for (uint64_t i = 0; i < SHARED; i++) {
        world->model[i] = (struct record){.set = 1, .value = {world->counted[i]}};
    }
}

static bool shared_are_dumped(const struct world *world)
{
    const struct row_table *oldest = ((const struct counter *)world->dumps.engine)->row.tables[0];
    return oldest->cold && id_of(SHARED) <= oldest->last;
}

static void *work_on(void *context)
{
    struct worker *w = context;
    while (!w->world->stop) {
        work(w, 20);
        for (unsigned i = 0; i < 20; i++) {
            count_shared(w);
        }
    }
    w->world->working--;
    return NULL;
}

static void start(struct world *world, struct worker *workers)
{
    world->stop = false;
    world->working = WORKERS;
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i].member = barrier_join(world->barrier);
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work_on, &workers[i]), 0);
    }
}

static void serve(struct world *world, struct barrier_member *member)
{
    if (row_images_wanted(world->dumps.engine->row)) {
        dumps_round(&world->dumps, world->barrier, member, false);
    }
    give_way();
}

static void go_on_for(struct world *world, struct barrier_member *member, uint64_t operations)
{
    uint64_t until = world->done + operations;
    while (world->done < until) {
        serve(world, member);
    }
}

/* Who waits for a table to leave is served until the last of them has ended. */
static void end(struct world *world, struct worker *workers, struct barrier_member *member)
{
    world->stop = true;
    while (world->working > 0) {
        serve(world, member);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        barrier_resign(workers[i].member);
        workers[i].member = NULL;
    }
}

struct keeper {
    struct world *world;
    pthread_t thread;
    _Atomic bool stop;
};

static void *keep(void *context)
{
    struct keeper *keeper = context;
    struct engine *engine = keeper->world->dumps.engine;
    while (!keeper->stop) {
        row_maintain(engine->row, keeper->world->barrier);
        give_way();
    }
    return NULL;
}

#define LEAVES 4u /* step: after the round that fails */

static void while_threads_go_on(void **state)
{
    (void)state;
    struct world *world = world_create(test_seed(), "a:20 b:4 c:20", 256u << 10);
    struct worker workers[WORKERS];
    world->barrier = barrier_create();
    for (unsigned i = 0; i < WORKERS; i++) {
        worker_init(&workers[i], world, i, WORKERS);
    }
    struct barrier_member *member = barrier_join(world->barrier);
    uint64_t rounds = test_scaled(4);
    for (uint64_t i = 0; i < rounds; i++) {
        struct keeper keeper = {.world = world};
        assert_int_equal(pthread_create(&keeper.thread, NULL, keep, &keeper), 0);
        start(world, workers);
        for (unsigned k = 0; k < 6; k++) {
            barrier_stop(world->barrier);
            uint64_t any = test_random_below(&world->random, dumps_tables(&world->dumps));
            dumps_leave(&world->dumps,
                        k == LEAVES ? 0 : any); /* the shared ids are in the oldest */
            barrier_go(world->barrier);
            go_on_for(world, member, OPS_A_STEP);
            world->failed = world->failed || k == 3;
            dumps_round(&world->dumps, world->barrier, member, k == 3);
        }
        end(world, workers, member);
        assert_true(shared_are_dumped(world));
        keeper.stop = true;
        pthread_join(keeper.thread, NULL);
        counter_check(world->dumps.engine);
        struct barrier *barrier = world->barrier;
        world->barrier = NULL;
        struct worker all;
        expect_counted(world);
        worker_init(&all, world, 0, 1);
        read_all(&all);
        dumps_restart(&world->dumps, &world->config);
        worker_init(&all, world, 0, 1);
        read_all(&all);
        world->barrier = barrier;
    }
    print_world(world, &workers[0]);
    barrier_resign(member);
    barrier_destroy(world->barrier);
    world->barrier = NULL;
    world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_exact),
        cmocka_unit_test(all_is_exact_in_a_small_overlay),
        cmocka_unit_test(all_is_exact_of_wide_records),
        cmocka_unit_test(while_threads_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
