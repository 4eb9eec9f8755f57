/*
 * Threads on one phantom space, with a keeper that changes the row under them: of all that add a
 * pair at once exactly one is told it was new.
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/barrier.h"
#include "engine/row.h"
#include "tests/support/phantoms.h"
#include "tests/support/random.h"

#define THREADS       4
#define PAIRS         100000u
#define PAIRS_MAX     1000000u
#define PAIRS_A_ROUND 1000u
#define LAYERED_BYTES (256u << 10) /* a table takes two thirds of PAIRS at one in a million */
#define TAKEN_FOR     2 /* pairs one in a million may take for there at their first add */
#define ROLL_MEMBERS  10u
#define ROLL_TABLES   4u
#define ROLL_STEP     500u
#define ROLL_WORTH    10u

/* ---- a keeper ---- */

struct keeper {
    struct engine *engine;
    struct barrier *barrier;
    pthread_t thread;
    sem_t asked;
    _Atomic bool stop;
};

static void keeper_notify(void *context)
{
    sem_post(context);
}

static void *keep(void *context)
{
    struct keeper *keeper = context;
    for (;;) {
        while (sem_wait(&keeper->asked) != 0) {
        }
        if (atomic_load(&keeper->stop)) {
            return NULL;
        }
        keeper->engine->functions->maintain(keeper->engine, keeper->barrier);
    }
}

static void keeper_start(struct keeper *keeper, struct engine *engine)
{
    *keeper = (struct keeper){.engine = engine, .barrier = barrier_create()};
    assert_non_null(keeper->barrier);
    sem_init(&keeper->asked, 0, 0);
    engine->keeper = (struct engine_keeper){keeper_notify, &keeper->asked};
    assert_int_equal(pthread_create(&keeper->thread, NULL, keep, keeper), 0);
}

static void keeper_end(struct keeper *keeper)
{
    atomic_store(&keeper->stop, true);
    sem_post(&keeper->asked);
    pthread_join(keeper->thread, NULL);
    keeper->engine->keeper = (struct engine_keeper){NULL, NULL};
    barrier_destroy(keeper->barrier);
    sem_destroy(&keeper->asked);
}

/* ---- races ---- */

struct race {
    struct keeper *keeper;
    struct barrier_member *turn;
    pthread_barrier_t *start;
    sem_t woken;
    unsigned number;
    uint64_t ids; /* pairs are spread over so many */
    uint64_t pairs;
    uint64_t done;
    uint64_t denied;
    uint64_t below;
    _Atomic unsigned *wins; /* a pair */
};

static void wake(void *target, uint64_t serial)
{
    (void)serial;
    sem_post(target);
}

/* An operation in a turn of its own, again for as long as it is pending. */
static struct engine_op act(struct race *race, enum engine_verb verb, uint64_t id,
                            const char *member)
{
    struct phantoms_call call;
    for (;;) {
        phantoms_call_init(&call, verb, id, member, "1");
        call.op.ticket = (struct engine_ticket){wake, &race->woken, 0};
        barrier_enter(race->turn);
        enum engine_status status = phantoms_try(race->keeper->engine, &call, change_sink_null());
        barrier_leave(race->turn);
        if (status != ENGINE_PENDING) {
            call.op.value = NULL; /* it ends here */
            return call.op;
        }
        while (sem_wait(&race->woken) != 0) {
        }
    }
}

/* All threads add the same pairs in the same order, from a common start each round. */
static void *race_adds(void *context)
{
    struct race *race = context;
    for (uint64_t i = 0; i < race->pairs; i++) {
        char member[32];
        if (i % PAIRS_A_ROUND == 0) {
            pthread_barrier_wait(race->start);
        }
        snprintf(member, sizeof member, "u%llu", (unsigned long long)i);
        if (act(race, ENGINE_ADD, i % race->ids, member).status == ENGINE_DONE) {
            atomic_fetch_add(&race->wins[i], 1);
        }
        race->denied += act(race, ENGINE_READ, i % race->ids, member).status != ENGINE_DONE;
    }
    return NULL;
}

/* A few pairs, added and deleted by all: adds that were done less deletes that were. */
static void *race_deletes(void *context)
{
    struct race *race = context;
    pthread_barrier_wait(race->start);
    for (uint64_t i = 0; i < race->pairs; i++) {
        char member[2] = {(char)('a' + i % 8), '\0'};
        bool deletes = (i / 8 + race->number) % 2;
        uint64_t id = i % 3 ? 1 : ROW_ID_MAX; /* in place, and apart */
        enum engine_verb verb = deletes ? ENGINE_DELETE : ENGINE_ADD;
        bool done = act(race, verb, id, member).status == ENGINE_DONE;
        race->done += done ? (deletes ? UINT64_MAX : 1) : 0;
    }
    return NULL;
}

/*
 * Ids roll through the row; each thread has members of its own and looks back at them. They go
 * about in step: of a thread far behind, more would be late than a table and its layer take.
 */
static void *race_rolls(void *context)
{
    struct race *race = context;
    for (uint64_t i = 0; i < race->pairs; i++) {
        if (i % ROLL_STEP == 0) {
            pthread_barrier_wait(race->start);
        }
        char member[32];
        snprintf(member, sizeof member, "u%u.%llu", race->number,
                 (unsigned long long)(i % ROLL_MEMBERS));
        uint64_t id = i / ROLL_MEMBERS;
        race->denied += act(race, ENGINE_SET, id, member).status != ENGINE_DONE;
        struct engine_op op = act(race, ENGINE_READ, id - id / 4 * (i % 2), member);
        bool below = op.status == ENGINE_ABSENT && op.miss == ENGINE_MISS_BELOW;
        race->below += below;
        race->denied += op.status != ENGINE_DONE && !below;
    }
    return NULL;
}

static struct race run_race(struct engine *engine, void *(*body)(void *), struct race plan)
{
    struct race races[THREADS];
    struct race sum = {0};
    struct keeper keeper;
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    keeper_start(&keeper, engine);
    pthread_barrier_init(&start, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        races[i] = plan;
        races[i].keeper = &keeper;
        races[i].turn = barrier_join(keeper.barrier);
        races[i].start = &start;
        races[i].number = i;
        sem_init(&races[i].woken, 0, 0);
        assert_int_equal(pthread_create(&threads[i], NULL, body, &races[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        barrier_resign(races[i].turn);
        sum.done += races[i].done;
        sum.below += races[i].below;
        assert_int_equal(races[i].denied, 0);
    }
    keeper_end(&keeper);
    for (unsigned i = 0; i < THREADS; i++) {
        sem_destroy(&races[i].woken);
    }
    pthread_barrier_destroy(&start);
    phantom_check(engine);
    return sum;
}

static uint64_t pairs_to_race(void)
{
    uint64_t pairs = test_scaled(PAIRS);
    return pairs < PAIRS_MAX ? pairs : PAIRS_MAX;
}

static _Atomic unsigned wins[PAIRS_MAX];

/* Nobody won twice. Returns how many pairs nobody won: they were taken for there. */
static uint64_t check_wins(uint64_t pairs)
{
    uint64_t taken = 0;
    for (uint64_t i = 0; i < pairs; i++) {
        assert_true(wins[i] <= 1);
        taken += wins[i] == 0;
    }
    return taken;
}

static void test_one_winner(void **unused)
{
    (void)unused;
    struct phantom_config config = phantoms_config(false);
    /* So strict and so empty that no pair is taken for there at its first add. */
    config.false_positives = PHANTOM_FALSE_POSITIVES_MIN;
    config.table_bytes = 16 << 20;
    struct engine *engine = phantoms_create(&config);
    uint64_t pairs = pairs_to_race();
    memset(wins, 0, sizeof wins);
    (void)run_race(engine, race_adds, (struct race){.ids = 1000, .pairs = pairs, .wins = wins});
    assert_int_equal(check_wins(pairs), 0);
    assert_int_equal(phantoms_members(engine), pairs);
    phantoms_destroy(engine);
}

/* The same while a table opens, the first closes and takes a layer. */
static void test_one_winner_across_layers(void **unused)
{
    (void)unused;
    struct phantom_config config = phantoms_config(true);
    config.false_positives = PHANTOM_FALSE_POSITIVES_MIN;
    config.table_bytes = LAYERED_BYTES;
    config.tables = 3;
    struct phantom_size size;
    phantom_config_size(&config, &size);
    struct engine *engine = phantoms_create(&config);
    uint64_t capacity = size.members / size.tables;
    uint64_t pairs = PAIRS;
    assert_true(pairs > capacity && pairs < 2 * capacity);
    memset(wins, 0, sizeof wins);
    (void)run_race(engine, race_adds, (struct race){.ids = 10, .pairs = pairs, .wins = wins});
    assert_true(check_wins(pairs) <= TAKEN_FOR);
    assert_int_equal(phantoms_table_number(engine, 0, "layers"), 2);
    phantoms_destroy(engine);
}

static void test_racing_deletes(void **unused)
{
    (void)unused;
    struct phantom_config config = phantoms_config(true);
    struct engine *engine = phantoms_create(&config);
    phantoms_settle(engine, 1);
    struct race sum = run_race(engine, race_deletes, (struct race){.pairs = test_scaled(PAIRS)});
    uint64_t found = 0;
    for (char c = 'a'; c < 'a' + 8; c++) {
        found += phantoms_hold(engine, 1, (char[2]){c, '\0'});
        found += phantoms_hold(engine, ROW_ID_MAX, (char[2]){c, '\0'});
    }
    assert_int_equal(sum.done, found);
    phantoms_destroy(engine);
}

static void test_rolling(void **unused)
{
    (void)unused;
    struct phantom_config config = phantoms_config(true);
    config.tables = ROLL_TABLES + 1;
    config.recycle = true;
    struct phantom_size size;
    phantom_config_size(&config, &size);
    struct engine *engine = phantoms_create(&config);
    uint64_t pairs = ROLL_WORTH * size.members / size.tables / THREADS;
    struct race sum = run_race(engine, race_rolls, (struct race){.pairs = pairs});
    printf("rolling: %llu members recycled, %llu checks below\n",
           (unsigned long long)engine->functions->recycled(engine), (unsigned long long)sum.below);
    assert_true(engine->functions->recycled(engine) > size.members);
    phantoms_destroy(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_winner),
        cmocka_unit_test(test_one_winner_across_layers),
        cmocka_unit_test(test_racing_deletes),
        cmocka_unit_test(test_rolling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
