/*
 * test_row_threads.c: workers roll many tables' worth of ids through a row of four while a keeper
 * changes it, memory is made resident, and somebody reconfigures it and forgets everything.
 */
#include "row/row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "tests/support/fake_row.h"
#include "tests/support/give_way.h"
#include "tests/support/random.h"

#define CAPACITY 4000
#define FIRST    1000
#define WORKERS  3
#define WORTH    30 /* tables' worth of ids, of all workers */
#define FAR      ((uint64_t)1000000000000u)
#define EVERY    700 /* ids, and something is disturbed */
#define STRAYS   500 /* one id in so many is a stray as well */

/* Something one thread waits for and others say. */
struct bell {
    pthread_mutex_t lock;
    pthread_cond_t rung;
    uint64_t rings, heard;
};

static void bell_init(struct bell *bell)
{
    memset(bell, 0, sizeof(*bell));
    assert_int_equal(pthread_mutex_init(&bell->lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&bell->rung, NULL), 0);
}

static void bell_fini(struct bell *bell)
{
    pthread_cond_destroy(&bell->rung);
    pthread_mutex_destroy(&bell->lock);
}

static void bell_ring(void *context)
{
    struct bell *bell = context;
    pthread_mutex_lock(&bell->lock);
    bell->rings++;
    pthread_cond_signal(&bell->rung);
    pthread_mutex_unlock(&bell->lock);
}

static void bell_await(struct bell *bell)
{
    pthread_mutex_lock(&bell->lock);
    while (bell->rings == bell->heard) {
        pthread_cond_wait(&bell->rung, &bell->lock);
    }
    bell->heard = bell->rings;
    pthread_mutex_unlock(&bell->lock);
}

struct shared {
    struct fake rows;
    struct barrier *barrier;
    struct bell work; /* the keeper's */
    _Atomic bool stop;
    uint64_t ids;
    _Atomic uint64_t next; /* of the ids: taken in turn */
    bool clears;           /* somebody forgets everything: counts are not compared */
};

struct worker {
    struct shared *shared;
    struct barrier_member *member;
    struct bell bell;
    uint64_t added, below, refused, waits, wait_us_max;
};

static void wake(void *target, uint64_t serial)
{
    (void)serial;
    bell_ring(target);
}

/* A turn; true: to be done again. */
static bool turn(struct worker *worker, uint64_t id)
{
    struct shared *shared = worker->shared;
    struct ticket ticket = {.wake = wake, .target = &worker->bell};
    enum row_verdict verdict;
    barrier_enter(worker->member);
    bool in_a_table = fake_try(&shared->rows, id, &verdict);
    if (in_a_table && verdict == ROW_WAIT) {
        row_wait(&shared->rows.row, &ticket);
    }
    barrier_leave(worker->member);
    bool kept = verdict == ROW_INSIDE || verdict == ROW_APART;
    worker->below += !in_a_table;
    worker->added += in_a_table && kept;
    worker->refused += in_a_table && !kept && verdict != ROW_WAIT;
    return in_a_table && verdict == ROW_WAIT;
}

static void add(struct worker *worker, uint64_t id)
{
    while (turn(worker, id)) {
        uint64_t from = clock_monotonic_us();
        bell_await(&worker->bell);
        uint64_t took = clock_monotonic_us() - from;
        worker->waits++;
        worker->wait_us_max = took > worker->wait_us_max ? took : worker->wait_us_max;
    }
}

static void *work(void *context)
{
    struct worker *worker = context;
    struct shared *shared = worker->shared;
    for (uint64_t i = shared->next++; i < shared->ids; i = shared->next++) {
        add(worker, FIRST + i);
        if (i % STRAYS == STRAYS - 1) {
            add(worker, FAR + i * FAR / 64);
        }
    }
    return NULL;
}

static void *keep(void *context)
{
    struct shared *shared = context;
    while (!shared->stop) {
        bell_await(&shared->work);
        row_maintain(&shared->rows.row, shared->barrier);
    }
    return NULL;
}

static void *populate(void *context)
{
    struct shared *shared = context;
    while (!shared->stop) {
        row_populate(&shared->rows.row, &shared->stop);
        give_way();
    }
    return NULL;
}

/* What a reload and flush_all do, until the workers are done. */
static void *disturb(void *context)
{
    struct shared *shared = context;
    for (unsigned i = 0; !shared->stop; i++) {
        while (!shared->stop && shared->next < i * EVERY) {
            give_way();
        }
        barrier_stop(shared->barrier);
        struct row_config config = shared->rows.row.config;
        config.table_bytes = i % 2 ? 4096 : 8192;
        row_reconfigure(&shared->rows.row, &config, i % 3 == 0);
        if (i % 8 == 7) {
            row_clear(&shared->rows.row);
        }
        fake_check(&shared->rows);
        barrier_go(shared->barrier);
    }
    return NULL;
}

static void check_end(struct shared *shared, const struct worker *workers)
{
    uint64_t added = 0;
    uint64_t below = 0;
    uint64_t refused = 0;
    uint64_t wait_us_max = 0;
    for (unsigned i = 0; i < WORKERS; i++) {
        added += workers[i].added;
        below += workers[i].below;
        refused += workers[i].refused;
        if (workers[i].wait_us_max > wait_us_max) {
            wait_us_max = workers[i].wait_us_max;
        }
    }
    struct row *row = &shared->rows.row;
    fake_check(&shared->rows);
    uint64_t held = fake_apart(&shared->rows);
    for (size_t i = 0; i < row->count; i++) {
        const struct row_table *table = row->tables[i];
        held += table->count + (table->further ? table->further->count : 0);
    }
    printf("%" PRIu64 " added, %" PRIu64 " below, %" PRIu64 " refused, %" PRIu64 " tables, %" PRIu64
           " waits, longest %" PRIu64 " us\n",
           added, below, refused, row->serials, row->waits, wait_us_max);
    if (!shared->clears) {
        assert_int_equal(held + row->recycled_ids, added);
        assert_int_equal(refused, 0);
        /* at most two of four regions hold one table and its layer */
        assert_true(3 * row->recycled_tables + 4 > added / CAPACITY);
    }
}

static void start(struct shared *shared, struct row_config *config)
{
    fake_init(&shared->rows, config, CAPACITY);
    shared->barrier = barrier_create();
    shared->stop = false;
    bell_init(&shared->work);
    shared->rows.keeper = (struct engine_keeper){.notify = bell_ring, .context = &shared->work};
}

static void run(bool clears)
{
    static struct shared shared; /* large */
    struct worker workers[WORKERS];
    pthread_t threads[WORKERS], others[3];
    struct row_config config = fake_config(4, true);
    start(&shared, &config);
    shared.clears = clears;
    shared.next = 0;
    shared.ids = test_scaled((uint64_t)WORTH * CAPACITY);
    pthread_create(&others[0], NULL, keep, &shared);
    pthread_create(&others[1], NULL, populate, &shared);
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.shared = &shared};
        workers[i].member = barrier_join(shared.barrier);
        bell_init(&workers[i].bell);
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    if (clears) {
        pthread_create(&others[2], NULL, disturb, &shared);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        barrier_resign(workers[i].member);
    }
    shared.stop = true;
    bell_ring(&shared.work);
    for (unsigned i = 0; i < 2u + clears; i++) {
        pthread_join(others[i], NULL);
    }
    fake_maintain(&shared.rows);
    check_end(&shared, workers);
    for (unsigned i = 0; i < WORKERS; i++) {
        bell_fini(&workers[i].bell);
    }
    fake_fini(&shared.rows);
    barrier_destroy(shared.barrier);
    bell_fini(&shared.work);
}

static void test_roll(void **unused)
{
    (void)unused;
    run(false);
}

static void test_roll_disturbed(void **unused)
{
    (void)unused;
    run(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roll),
        cmocka_unit_test(test_roll_disturbed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
