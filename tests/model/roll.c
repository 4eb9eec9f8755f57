/* roll.c: spaces whose ids roll on, for tests. */
#include "tests/model/roll.h"
#include "row/table_kind.h"
#include "tests/support/table_figures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "counter/counter_private.h"
#include "phantom/phantom_private.h"
#include "row/row.h"
#include "row/row_policy.h"

#define FIRST_DENSE   5000u
#define FIRST_SECOND  1700000000ull
#define FIRST_MS      1700000000000ull
#define YEAR_S        31536000ull
#define PER_SECOND    200u
#define SEQUENCE_BITS 22 /* below the second or millisecond */
#define MACHINES      3u
#define MACHINE_BITS  12
#define PER_MS        2u   /* ids of a machine */
#define BLOCK         512u /* random ids come a block at a time, each over a span of its own */
#define BLOCK_BITS    9
#define SPAN_BITS     32
#define FIRST_SPAN    1000u
#define WOKEN_IN_S    60 /* a ticket that is not woken by then never is */
/* Rounds of the keeper until an operation must have ended: half of the tables may open for it. */
#define TRIES_ALONE    16
#define TRIES_THREADED 100

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED true
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

/* ---- ids ---- */

static uint64_t dense_id(uint64_t index)
{
    return FIRST_DENSE + index;
}

static uint64_t seconds_id(uint64_t index)
{
    return (FIRST_SECOND + index / PER_SECOND) << SEQUENCE_BITS | index % PER_SECOND;
}

static uint64_t milliseconds_id(uint64_t index)
{
    uint64_t ms = FIRST_MS + index / (MACHINES * PER_MS);
    uint64_t machine = index % MACHINES;
    return ms << SEQUENCE_BITS | machine << MACHINE_BITS | index / MACHINES % PER_MS;
}

/* A block's ids are spread over its span in no order: the number in the block is turned about. */
static uint64_t random_id(uint64_t index)
{
    uint64_t block = index / BLOCK;
    uint64_t part = (index * 0x9e37u + hash_u64(block)) % BLOCK;
    uint64_t noise = hash_u64(index) >> (64 - (SPAN_BITS - BLOCK_BITS));
    return (FIRST_SPAN + block) << SPAN_BITS | part << (SPAN_BITS - BLOCK_BITS) | noise;
}

_Static_assert(1u << BLOCK_BITS == BLOCK, "parts of a span");

/* random_id multiplies by an odd number below: every part of a span is used once. */
const struct roll_shape roll_shapes[ROLL_SHAPES] = {
    {"dense", dense_id, 1, 1000000000},
    {"seconds", seconds_id, (1ull << SEQUENCE_BITS) / PER_SECOND, YEAR_S << SEQUENCE_BITS},
    {"milliseconds", milliseconds_id, (1ull << SEQUENCE_BITS) / (MACHINES * PER_MS),
     (1000 * YEAR_S) << SEQUENCE_BITS},
    {"random", random_id, (1ull << SPAN_BITS) / BLOCK, YEAR_S << SPAN_BITS},
};

/* ---- the keeper ---- */

static void notify(void *context)
{
    struct roll *roll = context;
    pthread_mutex_lock(&roll->lock);
    roll->asked = true;
    pthread_cond_signal(&roll->wanted);
    pthread_mutex_unlock(&roll->lock);
}

/* Was anything asked for? It no longer is. */
static bool take_asked(struct roll *roll)
{
    pthread_mutex_lock(&roll->lock);
    bool asked = roll->asked;
    roll->asked = false;
    pthread_mutex_unlock(&roll->lock);
    return asked;
}

static void maintain(struct roll *roll)
{
    roll->maintained++;
    row_maintain(roll->engine->row, roll->threaded ? roll->barrier : NULL);
}

static void *keep(void *context)
{
    struct roll *roll = context;
    pthread_mutex_lock(&roll->lock);
    while (!roll->stop) {
        if (!roll->asked) {
            pthread_cond_wait(&roll->wanted, &roll->lock);
            continue;
        }
        roll->asked = false;
        pthread_mutex_unlock(&roll->lock);
        maintain(roll);
        pthread_mutex_lock(&roll->lock);
    }
    pthread_mutex_unlock(&roll->lock);
    return NULL;
}

static void init(struct roll *roll, struct engine *engine, bool threaded)
{
    roll->engine = engine;
    roll->threaded = threaded;
    roll->lazy = 1;
    roll->barrier = barrier_create();
    pthread_mutex_init(&roll->lock, NULL);
    pthread_cond_init(&roll->wanted, NULL);
    engine->keeper = (struct engine_keeper){notify, roll};
    if (threaded) {
        CHECK(pthread_create(&roll->keeper, NULL, keep, roll) == 0);
    }
}

void roll_init_counter(struct roll *roll, const struct counter_config *config, bool threaded)
{
    struct counter_size size;
    memset(roll, 0, sizeof(*roll));
    counter_config_size(config, &size);
    roll->capacity = size.records / size.tables;
    init(roll, counters_create(config), threaded);
}

void roll_init_phantom(struct roll *roll, const struct phantom_config *config, bool threaded)
{
    struct phantom_size size;
    memset(roll, 0, sizeof(*roll));
    phantom_config_size(config, &size);
    roll->phantom = true;
    roll->capacity = size.members / size.tables;
    init(roll, phantoms_create(config), threaded);
}

void roll_settle(struct roll *roll)
{
    if (roll->threaded) {
        pthread_mutex_lock(&roll->lock);
        roll->stop = true;
        pthread_cond_signal(&roll->wanted);
        pthread_mutex_unlock(&roll->lock);
        pthread_join(roll->keeper, NULL);
        roll->threaded = false;
    }
    while (take_asked(roll)) {
        maintain(roll);
    }
}

void roll_fini(struct roll *roll)
{
    roll_settle(roll);
    roll_check(roll);
    roll->engine->functions->destroy(roll->engine);
    barrier_destroy(roll->barrier);
    pthread_cond_destroy(&roll->wanted);
    pthread_mutex_destroy(&roll->lock);
}

/* ---- figures ---- */

struct search {
    const char *name;
    bool found;
    uint64_t value;
};

static void see_figure(void *context, const char *name, const char *text)
{
    struct search *search = context;
    if (strcmp(name, search->name) == 0) {
        search->found = true;
        search->value = strtoull(text, NULL, 10);
    }
}

uint64_t roll_figure(const struct roll *roll, const char *name)
{
    struct search search = {.name = name};
    roll->engine->functions->stats_space(roll->engine, see_figure, &search);
    if (!search.found) {
        fail_msg("no figure %s", name);
    }
    return search.value;
}

static const struct row *row_of(const struct roll *roll)
{
    return roll->phantom ? &((const struct phantom *)roll->engine)->row
                         : &((const struct counter *)roll->engine)->row;
}

/* Taken from the row itself: a table's figures also count the bits of its filter. */
size_t roll_ranges(const struct roll *roll, struct roll_range list[ROW_TABLES_MAX])
{
    const struct row *row = row_of(roll);
    CHECK(row->count > 0);
    for (size_t i = 0; i < row->count; i++) {
        const struct row_table *table = row->tables[i];
        list[i] =
            (struct roll_range){table->serial, table->base, table->last, table->dropped.count};
    }
    return row->count;
}

uint64_t roll_recycled(const struct roll *roll)
{
    return row_of(roll)->recycled_tables;
}

struct ranges {
    struct roll_range list[ROW_TABLES_MAX];
    size_t count;
};

static void see_table(void *context, const char *name, const char *text)
{
    struct ranges *ranges = context;
    char *figure;
    uint64_t serial = strtoull(name, &figure, 10);
    uint64_t value = strtoull(text, NULL, 10);
    if (strcmp(figure, ":base") == 0) {
        CHECK(ranges->count < ROW_TABLES_MAX);
        ranges->list[ranges->count++] = (struct roll_range){.serial = serial, .base = value};
    } else if (strcmp(figure, ":range_last") == 0) {
        CHECK(ranges->count > 0 && ranges->list[ranges->count - 1].serial == serial);
        ranges->list[ranges->count - 1].last = value;
    } else if (strcmp(figure, ":dropped_ranges") == 0) {
        ranges->list[ranges->count - 1].dropped = value;
    }
}

/* The figures of the tables are what the row says. */
static void check_figures(const struct roll *roll)
{
    static struct ranges ranges;
    static struct roll_range list[ROW_TABLES_MAX];
    ranges.count = 0;
    stats_of_tables(roll->engine, see_table, &ranges);
    CHECK(ranges.count == roll_ranges(roll, list));
    CHECK(memcmp(ranges.list, list, ranges.count * sizeof(*list)) == 0);
    CHECK(roll_figure(roll, "recycled_tables") == roll_recycled(roll));
}

void roll_check(const struct roll *roll)
{
    if (roll->phantom) {
        phantom_check(roll->engine);
    } else {
        counter_check(roll->engine);
    }
    check_figures(roll);
}

struct apart_ids {
    size_t count;
    uint64_t *list;
};

static void note_apart(void *context, uint64_t id)
{
    struct apart_ids *ids = context;
    ids->list[ids->count++] = id;
}

uint64_t *roll_apart(const struct roll *roll, size_t *count)
{
    const struct row *row = row_of(roll);
    struct apart_ids ids = {.list = memory_zalloc((row->apart->count + 1) * sizeof(uint64_t))};
    row_apart_each(row, note_apart, &ids);
    row_policy_sort(ids.list, ids.count);
    *count = ids.count;
    return ids.list;
}

uint64_t roll_opened(const struct roll *roll)
{
    struct roll_range ranges[ROW_TABLES_MAX];
    size_t n = roll_ranges(roll, ranges);
    uint64_t last = 0;
    for (size_t i = 0; i < n; i++) {
        last = ranges[i].serial > last ? ranges[i].serial : last;
    }
    return last + 1;
}

uint64_t roll_oldest(const struct roll *roll)
{
    struct roll_range ranges[ROW_TABLES_MAX];
    roll_ranges(roll, ranges);
    return ranges[0].base;
}

static void print_figure(void *context, const char *name, const char *text)
{
    (void)context;
    printf("    %s %s\n", name, text);
}

void roll_print(const struct roll *roll)
{
    roll->engine->functions->stats_space(roll->engine, print_figure, NULL);
    stats_of_tables(roll->engine, print_figure, NULL);
    fflush(stdout);
}

/* ---- requests ---- */

void roll_worker_init(struct roll_worker *worker, struct roll *roll)
{
    memset(worker, 0, sizeof(*worker));
    worker->roll = roll;
    worker->sink = change_sink_null();
    worker->member = barrier_join(roll->barrier);
    CHECK(worker->member);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->woken, NULL);
}

void roll_worker_fini(struct roll_worker *worker)
{
    barrier_resign(worker->member);
    pthread_cond_destroy(&worker->woken);
    pthread_mutex_destroy(&worker->lock);
}

static void wake(void *target, uint64_t serial)
{
    struct roll_worker *worker = target;
    pthread_mutex_lock(&worker->lock);
    worker->woken_serial = serial > worker->woken_serial ? serial : worker->woken_serial;
    pthread_cond_signal(&worker->woken);
    pthread_mutex_unlock(&worker->lock);
}

/* Fails if nobody wakes the ticket: the row has forgotten who waits. */
static void wait_woken(struct roll_worker *worker)
{
    struct timespec until;
    int error = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WOKEN_IN_S;
    pthread_mutex_lock(&worker->lock);
    while (worker->woken_serial < worker->serial && error != ETIMEDOUT) {
        error = pthread_cond_timedwait(&worker->woken, &worker->lock, &until);
    }
    bool woken = worker->woken_serial >= worker->serial;
    pthread_mutex_unlock(&worker->lock);
    CHECK(woken);
}

static void wait_for_row(struct roll_worker *worker)
{
    struct roll *roll = worker->roll;
    worker->waits.pending++;
    if (!roll->threaded) {
        CHECK(take_asked(roll)); /* what a request waits for has been asked for */
        maintain(roll);
    }
    wait_woken(worker);
}

static bool is_read(const struct engine_op *op)
{
    return op->verb == ENGINE_READ || op->verb == ENGINE_TOUCH;
}

/* Runs prepared ops in order; returns how many came to an end before one was pending. */
static size_t run_turn(struct roll_worker *worker, struct engine_op *const *ops, size_t n)
{
    struct engine *engine = worker->roll->engine;
    size_t at = 0;
    while (at < n) {
        size_t run = 0;
        while (at + run < n && is_read(ops[at + run])) {
            run++;
        }
        if (run > 0) {
            engine->functions->read(engine, ops + at, run);
        } else {
            engine->functions->change(engine, ops[at], worker->sink);
            run = 1;
        }
        for (; run > 0; run--, at++) {
            if (ops[at]->status == ENGINE_PENDING) {
                return at;
            }
        }
    }
    return at;
}

static void note_wait(struct roll_waits *waits, uint64_t us)
{
    unsigned bucket = 0;
    while (bucket + 1 < ROLL_WAIT_BUCKETS && us >> bucket > 0) {
        bucket++;
    }
    waits->buckets[bucket]++;
    waits->requests++;
    waits->longest_us = us > waits->longest_us ? us : waits->longest_us;
}

/* In tests of one thread: the keeper's turn comes a few requests late. */
static void keep_now_and_then(struct roll_worker *worker)
{
    struct roll *roll = worker->roll;
    if (roll->threaded || !roll->asked || ++worker->since_asked < roll->lazy) {
        return;
    }
    worker->since_asked = 0;
    take_asked(roll);
    maintain(roll);
}

static void give_ticket(struct roll_worker *worker, struct engine_op *const *ops, size_t n)
{
    pthread_mutex_lock(&worker->lock);
    worker->serial++;
    pthread_mutex_unlock(&worker->lock);
    for (size_t i = 0; i < n; i++) {
        ops[i]->ticket = (struct ticket){wake, worker, worker->serial};
        ops[i]->value_length = 0;
    }
}

/* Other threads may take what a table opened for: then it takes more rounds. */
static void check_tries(const struct roll_worker *worker, const struct engine_op *op,
                        unsigned tries)
{
    unsigned most = worker->roll->threaded ? TRIES_THREADED : TRIES_ALONE;
    if (tries > most) {
        roll_print(worker->roll);
        fail_msg("id %" PRIu64 " waits for the row for ever", op->id);
    }
}

void roll_run(struct roll_worker *worker, struct engine_op *const *ops, size_t n)
{
    struct engine *engine = worker->roll->engine;
    bool timed = worker->roll->threaded; /* else nobody asks how long it took */
    uint64_t start_us = timed ? clock_monotonic_us() : 0;
    size_t done = 0;
    keep_now_and_then(worker); /* before, so that the row is as the last operation saw it */
    for (unsigned tries = 0; done < n; tries++) {
        check_tries(worker, ops[done], tries);
        give_ticket(worker, ops + done, n - done);
        barrier_enter(worker->member);
        engine->functions->prepare(engine, ops + done, n - done);
        size_t ended = run_turn(worker, ops + done, n - done);
        done += ended;
        tries = ended > 0 ? 0 : tries;
        barrier_leave(worker->member);
        if (done < n) {
            wait_for_row(worker);
        }
    }
    if (timed) {
        note_wait(&worker->waits, clock_monotonic_us() - start_us);
    }
}

void roll_waits_add(struct roll_waits *sum, const struct roll_waits *more)
{
    for (unsigned i = 0; i < ROLL_WAIT_BUCKETS; i++) {
        sum->buckets[i] += more->buckets[i];
    }
    sum->requests += more->requests;
    sum->pending += more->pending;
    sum->longest_us = more->longest_us > sum->longest_us ? more->longest_us : sum->longest_us;
}

void roll_waits_print(const struct roll_waits *waits, const char *name)
{
    printf("%s: %" PRIu64 " requests, %" PRIu64 " waits for the row; longest %" PRIu64 " us\n",
           name, waits->requests, waits->pending, waits->longest_us);
    for (unsigned i = 0; i < ROLL_WAIT_BUCKETS; i++) {
        if (waits->buckets[i]) {
            printf("    below %8llu us: %" PRIu64 "\n", 1ull << i, waits->buckets[i]);
        }
    }
    fflush(stdout);
}

bool roll_waits_matter(void)
{
    const char *text = getenv("ROLLCALL_TEST_WAITS");
    return text && strcmp(text, "1") == 0 && !SANITIZED;
}
