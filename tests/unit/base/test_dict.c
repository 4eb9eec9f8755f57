/* test_dict.c: the dict against a plain array, full, growing, and with threads. */
#include "base/dict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "tests/support/give_way.h"
#include "tests/support/random.h"
#include "tests/support/step.h"

#define KEYS         512u /* of the plain array: id and sub-key follow from the number */
#define SUBS         4u
#define ROUNDS       300000u
#define CHECK_ROUNDS 5000u
#define POOL_SMALL   8192u
#define THREADS      4u
#define THREAD_KEYS  200u
#define THREAD_OPS   60000u

struct plain {
    bool there[KEYS];
    uint64_t value[KEYS][DICT_VALUE_WORDS];
    uint64_t count;
};

static uint64_t key_id(uint64_t key)
{
    /* Small, large and in the middle: all bits of an id count. */
    uint64_t number = key / SUBS;
    return number % 3 == 0 ? number : number % 3 == 1 ? UINT64_MAX - number : number << 40;
}

static uint8_t key_sub(uint64_t key)
{
    return (uint8_t)(key % SUBS == 3 ? 255 : key % SUBS);
}

static void make_value(struct test_random *random, size_t bytes, uint64_t *value)
{
    memset(value, 0, DICT_VALUE_WORDS * sizeof(*value));
    for (size_t i = 0; i < (bytes + 7) / 8; i++) {
        value[i] = test_random_next(random);
    }
    memset((char *)value + bytes, 0, DICT_VALUE_WORDS * sizeof(*value) - bytes);
}

static void expect_key(const struct dict *dict, const struct plain *plain, uint64_t key)
{
    uint64_t value[DICT_VALUE_WORDS] = {0};
    assert_true(dict_get(dict, key_id(key), key_sub(key), value) == plain->there[key]);
    assert_true(dict_get(dict, key_id(key), key_sub(key), NULL) == plain->there[key]);
    if (plain->there[key]) {
        assert_memory_equal(value, plain->value[key], sizeof(value));
    }
}

static void random_put(struct dict *dict, struct plain *plain, struct test_random *random,
                       size_t bytes, uint64_t key)
{
    uint64_t value[DICT_VALUE_WORDS];
    make_value(random, bytes, value);
    bool put = dict_put(dict, key_id(key), key_sub(key), value);
    assert_true(put || !plain->there[key]); /* what is there has its place */
    if (put) {
        plain->count += !plain->there[key];
        plain->there[key] = true;
        memcpy(plain->value[key], value, sizeof(value));
    }
}

static void random_step(struct dict *dict, struct plain *plain, struct test_random *random,
                        size_t bytes)
{
    uint64_t key = test_random_below(random, KEYS);
    switch (test_random_below(random, 4)) {
    case 0:
    case 1:
        random_put(dict, plain, random, bytes, key);
        break;
    case 2:
        assert_true(dict_delete(dict, key_id(key), key_sub(key)) == plain->there[key]);
        plain->count -= plain->there[key];
        plain->there[key] = false;
        break;
    default:
        expect_key(dict, plain, key);
    }
}

static void random_values_of(size_t bytes, size_t pool, struct test_random *random)
{
    static struct plain plain; /* large for a stack */
    memset(&plain, 0, sizeof(plain));
    struct dict *dict = dict_create(bytes, pool, test_random_next(random));
    assert_non_null(dict);
    uint64_t rounds = test_scaled(ROUNDS);
    for (uint64_t round = 0; round < rounds; round++) {
        random_step(dict, &plain, random, bytes);
        if (round % CHECK_ROUNDS == 0) {
            dict_check(dict);
            assert_int_equal(dict_count(dict), plain.count);
        }
    }
    dict_check(dict);
    for (uint64_t key = 0; key < KEYS; key++) {
        expect_key(dict, &plain, key);
    }
    dict_destroy(dict);
}

static void test_random_against_plain(void **unused)
{
    (void)unused;
    static const size_t value_bytes[] = {1, 4, 8, 10, 11, 33, DICT_VALUE_MAX};
    struct test_random random = {test_seed()};
    for (size_t i = 0; i < sizeof(value_bytes) / sizeof(*value_bytes); i++) {
        random_values_of(value_bytes[i], 4 * POOL_SMALL, &random);
    }
    random_values_of(8, DICT_POOL_MIN, &random); /* full most of the time */
    random_values_of(DICT_VALUE_MAX, DICT_POOL_MIN, &random);
    random_values_of(DICT_VALUE_MAX, 8 * DICT_POOL_MIN, &random);
}

/* Fills it up; every refusal leaves all as it was; a freed place can be used again. */
static void test_full(void **unused)
{
    (void)unused;
    struct dict *dict = dict_create(8, POOL_SMALL, 42);
    uint64_t value = 7;
    uint64_t id = 0;
    while (dict_put(dict, id, 0, &value)) {
        id++;
    }
    dict_check(dict);
    assert_int_equal(dict_count(dict), id);
    assert_false(dict_get(dict, id, 0, NULL));
    uint64_t places = dict_pool_bytes(dict) / 64 * 3;
    assert_true(id > places * 3 / 4); /* two choices a level and four levels fill well */
    assert_true(dict_used_bytes(dict) == dict_pool_bytes(dict));
    value = 8;
    assert_true(dict_put(dict, 0, 0, &value)); /* a known key is no insert */
    assert_true(dict_get(dict, 0, 0, &value) && value == 8);
    for (uint64_t i = 0; i < id; i++) {
        assert_true(dict_delete(dict, i, 0));
        assert_false(dict_delete(dict, i, 0));
    }
    assert_int_equal(dict_count(dict), 0);
    assert_true(dict_put(dict, id, 0, &value));
    dict_check(dict);
    dict_destroy(dict);
}

static void test_grows_by_levels(void **unused)
{
    (void)unused;
    struct dict *dict = dict_create(8, 16 * POOL_SMALL, 42);
    uint64_t value = 1;
    uint64_t used = dict_used_bytes(dict);
    uint64_t first = used;
    unsigned levels = 1;
    for (uint64_t id = 0; dict_put(dict, id, 1, &value); id++) {
        if (dict_used_bytes(dict) != used) {
            levels++;
            used = dict_used_bytes(dict);
            assert_int_equal(used, first * ((1u << levels) - 1));
            dict_check(dict);
        }
        assert_true(dict_get(dict, id / 2, 1, NULL)); /* the old ones stay where they are */
    }
    assert_int_equal(levels, DICT_LEVELS);
    assert_true(dict_count(dict) > dict_places(dict) * 85 / 100);
    dict_destroy(dict);
}

static void count_visit(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    uint64_t *sum = context;
    assert_true(*value == id * 10 + sub);
    *sum += *value;
}

static void test_each(void **unused)
{
    (void)unused;
    struct dict *dict = dict_create(8, POOL_SMALL, 1);
    uint64_t expected = 0;
    for (uint64_t id = 0; id < 20; id++) {
        for (uint8_t sub = 0; sub < 3; sub++) {
            uint64_t value = id * 10 + sub;
            expected += value;
            assert_true(dict_put(dict, id, sub, &value));
        }
    }
    uint64_t sum = 0;
    dict_each(dict, count_visit, &sum);
    assert_true(sum == expected);
    dict_destroy(dict);
}

static void test_grow(void **unused)
{
    (void)unused;
    struct dict *dict = dict_create(8, POOL_SMALL, 42);
    uint64_t value = 0;
    uint64_t id = 0;
    for (unsigned turn = 0; turn < 4; turn++) {
        uint64_t places = dict_places(dict);
        while (dict_put(dict, id, 3, &value)) {
            value = ++id * 7;
        }
        assert_true(id > places / 2 && id <= places);
        assert_true(dict_grow(&dict));
        assert_int_equal(dict_places(dict), 2 * places);
        assert_int_equal(dict_count(dict), id);
        dict_check(dict);
        for (uint64_t i = 0; i < id; i++) {
            assert_true(dict_get(dict, i, 3, &value) && value == i * 7);
        }
        value = id * 7;
        assert_true(dict_put(dict, id, 3, &value)); /* what found no room does now */
    }
    dict_destroy(dict);
}

static void test_resize(void **unused)
{
    (void)unused;
    struct dict *dict = dict_create(8, 4 * POOL_SMALL, 42);
    uint64_t small = dict_places(dict) / 4;
    for (uint64_t id = 0; id < small / 2; id++) {
        assert_true(dict_put(dict, id, 1, &id));
    }
    assert_true(dict_resize(&dict, POOL_SMALL));
    assert_int_equal(dict_places(dict), small);
    assert_true(dict_resize(&dict, 4 * POOL_SMALL));
    for (uint64_t id = small / 2; id < 2 * small; id++) {
        assert_true(dict_put(dict, id, 1, &id));
    }
    errno = 0;
    assert_false(dict_resize(&dict, POOL_SMALL));
    assert_int_equal(errno, ENOSPC);
    dict_check(dict);
    for (uint64_t id = 0; id < 2 * small; id++) {
        uint64_t value;
        assert_true(dict_get(dict, id, 1, &value) && value == id);
    }
    dict_destroy(dict);
}

struct worker {
    pthread_t thread;
    struct dict *dict;
    uint64_t number;
    uint64_t seed;
    bool wrong;
};

/* A value that tells its key and generation, so that a torn one is seen. */
static void thread_value(uint64_t id, uint64_t generation, uint64_t value[3])
{
    value[0] = generation;
    value[1] = generation ^ id;
    value[2] = generation * 3;
}

static bool value_whole(uint64_t id, const uint64_t value[3])
{
    return value[1] == (value[0] ^ id) && value[2] == value[0] * 3;
}

/* Changes its own keys and reads everybody's. */
static void *work(void *context)
{
    struct worker *worker = context;
    struct test_random random = {worker->seed};
    bool there[THREAD_KEYS] = {false};
    uint64_t generation[THREAD_KEYS] = {0};
    uint64_t value[DICT_VALUE_WORDS];
    uint64_t ops = test_scaled(THREAD_OPS);
    for (uint64_t i = 1; i <= ops && !worker->wrong; i++) {
        uint64_t key = test_random_below(&random, THREAD_KEYS);
        uint64_t id = worker->number * THREAD_KEYS + key;
        bool found = dict_get(worker->dict, id, 0, value);
        worker->wrong = found != there[key] || (found && value[0] != generation[key]);
        if (test_random_once_in(&random, 2)) {
            thread_value(id, i, value);
            there[key] = dict_put(worker->dict, id, 0, value) || there[key];
            generation[key] = i;
        } else if (there[key]) {
            worker->wrong |= !dict_delete(worker->dict, id, 0);
            there[key] = false;
        }
        uint64_t other = test_random_below(&random, THREADS * THREAD_KEYS);
        found = dict_get(worker->dict, other, 0, value);
        worker->wrong |= found && !value_whole(other, value);
    }
    return NULL;
}

static void test_threads_on_their_own_keys(void **unused)
{
    (void)unused;
    uint64_t seed = test_seed();
    struct worker workers[THREADS];
    struct dict *dict = dict_create(3 * sizeof(uint64_t), 16 * POOL_SMALL, seed);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.dict = dict, .number = i, .seed = seed + i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_false(workers[i].wrong);
    }
    dict_check(dict);
    dict_destroy(dict);
    dict_destroy(NULL);
}

/* ---- two that want the last place ---- */

#define FIRST_NEW    (1u << 20)
#define RACE_STEPS   300u /* instructions at the end of a put: its look at the places is there */
#define RACE_STRIDE  6u
#define RACE_WAIT_US 10000u
#define RACE_OVER    UINT32_MAX

struct race {
    struct dict *dict;
    _Atomic uint32_t begun, ended; /* rounds, by the test and by the other */
    bool mine, others;             /* who found a place */
};

static void *put_others(void *context)
{
    struct race *race = context;
    uint64_t value[DICT_VALUE_WORDS] = {0};
    for (uint32_t round = 1;; round++) {
        while (atomic_load(&race->begun) < round) {
            give_way();
        }
        if (atomic_load(&race->begun) == RACE_OVER) {
            return NULL;
        }
        race->others = dict_put(race->dict, FIRST_NEW, 0, value);
        atomic_store(&race->ended, round);
    }
}

static void put_mine(void *context)
{
    struct race *race = context;
    uint64_t value[DICT_VALUE_WORDS] = {0};
    race->mine = dict_put(race->dict, FIRST_NEW + 1, 0, value);
}

/* The other goes first, unless it has to wait for a lock that is held here. */
static void let_other(void *context)
{
    struct race *race = context;
    uint64_t since_us = clock_monotonic_us();
    uint32_t round = atomic_fetch_add(&race->begun, 1) + 1;
    while (atomic_load(&race->ended) != round && clock_monotonic_us() - since_us < RACE_WAIT_US) {
        give_way();
    }
}

static void let_nobody(void *context)
{
    (void)context;
}

/* So many instructions a put of mine takes; a place is left as before. */
static uint64_t put_steps(struct race *race)
{
    uint64_t low = 0;
    for (uint64_t step = 1u << 14; step > 0; step /= 2) {
        low += step_run(low + step, put_mine, let_nobody, race) ? step : 0;
        assert_true(race->mine && dict_delete(race->dict, FIRST_NEW + 1, 0));
    }
    return low;
}

/* Leaves one place, in the bucket that each key may lie in: the first level has but one. */
static void leave_one_place(struct dict *dict)
{
    uint64_t value[DICT_VALUE_WORDS] = {0};
    uint64_t ids = 0;
    unsigned refused = 0;
    while (refused < 1000) {
        refused = dict_put(dict, ids++, 0, value) ? 0 : refused + 1;
    }
    for (uint64_t id = 0; id < ids; id++) {
        unsigned fit = 0;
        if (!dict_delete(dict, id, 0)) {
            continue;
        }
        for (uint64_t other = FIRST_NEW; other < FIRST_NEW + 100; other++) {
            fit += dict_put(dict, other, 0, value);
            (void)dict_delete(dict, other, 0);
        }
        if (fit == 100) {
            return;
        }
        assert_true(dict_put(dict, id, 0, value));
    }
    fail_msg("no key was in the first level");
}

static void race_at(struct race *race, uint64_t step)
{
    uint64_t count = dict_count(race->dict);
    assert_true(step_run(step, put_mine, let_other, race));
    while (atomic_load(&race->ended) != atomic_load(&race->begun)) {
        give_way();
    }
    assert_true(race->mine != race->others);
    assert_true(dict_delete(race->dict, race->mine ? FIRST_NEW + 1 : FIRST_NEW, 0));
    assert_int_equal(dict_count(race->dict), count);
}

static void test_race_for_the_last_place(void **unused)
{
    (void)unused;
    struct race race = {.dict = dict_create(DICT_VALUE_MAX, DICT_POOL_MIN, 42)};
    pthread_t thread;
    if (!step_works()) {
        print_message("this build cannot step\n");
        dict_destroy(race.dict);
        skip();
    }
    leave_one_place(race.dict);
    uint64_t steps = put_steps(&race);
    assert_int_equal(pthread_create(&thread, NULL, put_others, &race), 0);
    for (uint64_t back = 0; back < RACE_STEPS && back < steps; back += RACE_STRIDE) {
        race_at(&race, steps - back);
    }
    atomic_store(&race.begun, RACE_OVER);
    pthread_join(thread, NULL);
    dict_check(race.dict);
    dict_destroy(race.dict);
}

/* ---- a reader, and a change after each of its instructions ---- */

struct meeting {
    struct dict *dict;
    uint64_t number; /* all words of the value; it rises with each change */
    bool found;
    uint64_t value[DICT_VALUE_WORDS];
};

#define MET_ID 7u

static void put_next(void *context)
{
    struct meeting *meeting = context;
    uint64_t value[DICT_VALUE_WORDS];
    meeting->number++;
    for (size_t i = 0; i < DICT_VALUE_WORDS; i++) {
        value[i] = meeting->number;
    }
    CHECK(dict_put(meeting->dict, MET_ID, 0, value));
}

/* The bucket is as full as before, and the key in the same place. */
static void delete_and_put(void *context)
{
    struct meeting *meeting = context;
    CHECK(dict_delete(meeting->dict, MET_ID, 0));
    put_next(meeting);
}

static void get_met(void *context)
{
    struct meeting *meeting = context;
    meeting->found = dict_get(meeting->dict, MET_ID, 0, meeting->value);
}

static void note_met(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct meeting *meeting = context;
    meeting->found = id == MET_ID && sub == 0;
    memcpy(meeting->value, value, sizeof(meeting->value));
}

static void walk_met(void *context)
{
    struct meeting *meeting = context;
    meeting->found = false;
    dict_each(meeting->dict, note_met, meeting);
}

/* Each instruction before the n-th is a trap: as there are many times more under a sanitizer, each
 * place is not tried there. */
#ifdef __SANITIZE_ADDRESS__
#define MEETING_STRIDE 7u
#else
#define MEETING_STRIDE 1u
#endif

/* What is read is all of the value before the change, or all of the one after it. */
static void read_meets(step_fn *get, step_fn *change)
{
    struct meeting meeting = {.dict = dict_create(DICT_VALUE_MAX, DICT_POOL_MIN, 42)};
    uint64_t steps = 0;
    if (!step_works()) {
        print_message("this build cannot step\n");
        dict_destroy(meeting.dict);
        skip();
    }
    put_next(&meeting);
    while (step_run(steps, get, change, &meeting)) {
        assert_true(meeting.found);
        assert_in_range(meeting.value[0], meeting.number - 1, meeting.number);
        for (size_t i = 1; i < DICT_VALUE_WORDS; i++) {
            assert_int_equal(meeting.value[i], meeting.value[0]);
        }
        steps += MEETING_STRIDE;
    }
    assert_true(steps > 2 * DICT_VALUE_WORDS);
    dict_check(meeting.dict);
    dict_destroy(meeting.dict);
}

static void test_put_while_read(void **unused)
{
    (void)unused;
    read_meets(get_met, put_next);
    read_meets(walk_met, put_next);
}

static void test_deleted_and_put_while_read(void **unused)
{
    (void)unused;
    read_meets(get_met, delete_and_put);
    read_meets(walk_met, delete_and_put);
}

/* Returns how much of a pool of 64 MiB is resident once so many entries may come. */
static uint64_t populated(uint64_t entries)
{
    struct dict *dict = dict_create(8, 64u << 20, 42);
    uint64_t at = 0;
    uint64_t steps = 1;
    assert_non_null(dict);
    uint64_t before = memory_resident_bytes();
    for (; dict_populate(dict, entries, &at, 1u << 20); steps++) {
        assert_int_equal(at, steps << 20);
    }
    uint64_t bytes = memory_resident_bytes() - before;
    assert_true(bytes + (1u << 20) > steps << 20 && bytes < (steps + 2) << 20);
    assert_int_equal(dict_count(dict), 0);
    assert_false(dict_populate(dict, entries, &at, 1u << 20)); /* nor does it go on by itself */
    dict_destroy(dict);
    return bytes;
}

static void test_populate(void **unused)
{
    (void)unused;
    uint64_t places = (64u << 20) / 64 * 3;
    assert_true(populated(1) < 6u << 20); /* the first level */
    assert_true(populated(places / 5) < 34u << 20);
    assert_true(populated(places / 5) > 26u << 20); /* three levels of four */
    assert_true(populated(places / 2) > 58u << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_against_plain),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_grows_by_levels),
        cmocka_unit_test(test_each),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_populate),
        cmocka_unit_test(test_threads_on_their_own_keys),
        cmocka_unit_test(test_race_for_the_last_place),
        cmocka_unit_test(test_put_while_read),
        cmocka_unit_test(test_deleted_and_put_while_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
