/* Threads on one phantom space: of all that add a pair at once exactly one is told it was new. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/support/phantoms.h"
#include "tests/support/random.h"

#define THREADS       4
#define PAIRS         100000u
#define PAIRS_MAX     1000000u
#define PAIRS_A_ROUND 1000u

struct race {
    struct engine *engine;
    pthread_barrier_t *start;
    unsigned number;
    uint64_t pairs;
    uint64_t done;
    uint64_t denied;
    _Atomic unsigned *wins; /* a pair */
};

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
        if (phantoms_do(race->engine, ENGINE_ADD, i % 1000, member) == ENGINE_DONE) {
            atomic_fetch_add(&race->wins[i], 1);
        }
        race->denied += !phantoms_hold(race->engine, i % 1000, member);
    }
    return NULL;
}

/* One pair, added and deleted by all: adds that were done less deletes that were. */
static void *race_deletes(void *context)
{
    struct race *race = context;
    pthread_barrier_wait(race->start);
    for (uint64_t i = 0; i < race->pairs; i++) {
        char member[2] = {(char)('a' + i % 8), '\0'};
        bool deletes = (i / 8 + race->number) % 2;
        bool done = phantoms_do(race->engine, deletes ? ENGINE_DELETE : ENGINE_ADD, 1, member) ==
                    ENGINE_DONE;
        race->done += done ? (deletes ? UINT64_MAX : 1) : 0;
    }
    return NULL;
}

static uint64_t run_race(struct engine *engine, void *(*body)(void *), uint64_t pairs,
                         _Atomic unsigned *wins)
{
    struct race races[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    uint64_t done = 0;
    pthread_barrier_init(&start, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        races[i] = (struct race){
            .engine = engine, .start = &start, .number = i, .pairs = pairs, .wins = wins};
        assert_int_equal(pthread_create(&threads[i], NULL, body, &races[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        done += races[i].done;
        assert_int_equal(races[i].denied, 0);
    }
    pthread_barrier_destroy(&start);
    return done;
}

static void test_one_winner(void **unused)
{
    (void)unused;
    static _Atomic unsigned wins[PAIRS_MAX];
    struct phantom_config config = phantoms_config(false);
    /* So strict and so empty that no pair is taken for there at its first add. */
    config.false_positives = PHANTOM_FALSE_POSITIVES_MIN;
    config.table_bytes = 16 << 20;
    struct engine *engine = phantoms_create(&config);
    uint64_t pairs = test_scaled(PAIRS);
    pairs = pairs < PAIRS_MAX ? pairs : PAIRS_MAX;
    (void)run_race(engine, race_adds, pairs, wins);
    for (uint64_t i = 0; i < pairs; i++) {
        assert_int_equal(wins[i], 1);
    }
    assert_int_equal(phantoms_members(engine), pairs);
    phantoms_destroy(engine);
}

static void test_racing_deletes(void **unused)
{
    (void)unused;
    struct phantom_config config = phantoms_config(true);
    struct engine *engine = phantoms_create(&config);
    uint64_t there = run_race(engine, race_deletes, test_scaled(PAIRS), NULL);
    uint64_t found = 0;
    for (char c = 'a'; c < 'a' + 8; c++) {
        found += phantoms_hold(engine, 1, (char[2]){c, '\0'});
    }
    assert_int_equal(there, found);
    phantoms_destroy(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_winner),
        cmocka_unit_test(test_racing_deletes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
