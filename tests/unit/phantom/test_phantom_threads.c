/*
 * Threads on one phantom space, with a keeper that changes the row under them: of all that add a
 * pair at once exactly one is told it was new.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "row/row.h"
#include "tests/support/phantom_threads.h"
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

/* ---- races ---- */

struct race {
    struct phantom_turn turn;
    pthread_barrier_t *start;
    unsigned number;
    uint64_t ids; /* pairs are spread over so many */
    uint64_t pairs;
    uint64_t done;
    uint64_t denied;
    uint64_t below;
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
        snprintf(member, sizeof(member), "u%llu", (unsigned long long)i);
        if (phantom_turn_run(&race->turn, ENGINE_ADD, i % race->ids, member).status ==
            ENGINE_DONE) {
            atomic_fetch_add(&race->wins[i], 1);
        }
        race->denied +=
            phantom_turn_run(&race->turn, ENGINE_READ, i % race->ids, member).status != ENGINE_DONE;
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
        bool done = phantom_turn_run(&race->turn, verb, id, member).status == ENGINE_DONE;
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
        snprintf(member, sizeof(member), "u%u.%llu", race->number,
                 (unsigned long long)(i % ROLL_MEMBERS));
        uint64_t id = i / ROLL_MEMBERS;
        race->denied += phantom_turn_run(&race->turn, ENGINE_SET, id, member).status != ENGINE_DONE;
        struct engine_op op =
            phantom_turn_run(&race->turn, ENGINE_READ, id - id / 4 * (i % 2), member);
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
    struct phantom_keeper keeper;
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    phantom_keeper_start(&keeper, engine);
    pthread_barrier_init(&start, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        races[i] = plan;
        phantom_turn_init(&races[i].turn, &keeper, change_sink_null());
        races[i].start = &start;
        races[i].number = i;
        assert_int_equal(pthread_create(&threads[i], NULL, body, &races[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        phantom_turn_fini(&races[i].turn);
        sum.done += races[i].done;
        sum.below += races[i].below;
        assert_int_equal(races[i].denied, 0);
    }
    phantom_keeper_end(&keeper);
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
    config.row.table_bytes = 16 << 20;
    struct engine *engine = phantoms_create(&config);
    uint64_t pairs = pairs_to_race();
    memset(wins, 0, sizeof(wins));
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
    config.row.table_bytes = LAYERED_BYTES;
    config.row.tables = 3;
    struct phantom_size size;
    phantom_config_size(&config, &size);
    struct engine *engine = phantoms_create(&config);
    uint64_t capacity = size.members / size.tables;
    uint64_t pairs = PAIRS;
    assert_true(pairs > capacity && pairs < 2 * capacity);
    memset(wins, 0, sizeof(wins));
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
    config.row.tables = ROLL_TABLES + 1;
    config.row.recycle = true;
    struct phantom_size size;
    phantom_config_size(&config, &size);
    struct engine *engine = phantoms_create(&config);
    uint64_t pairs = ROLL_WORTH * size.members / size.tables / THREADS;
    struct race sum = run_race(engine, race_rolls, (struct race){.pairs = pairs});
    printf("rolling: %llu members recycled, %llu checks below\n",
           (unsigned long long)engine_recycled(engine), (unsigned long long)sum.below);
    assert_true(engine_recycled(engine) > size.members);
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
