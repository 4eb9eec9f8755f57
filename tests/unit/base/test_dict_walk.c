/* test_dict_walk.c: a walk through a dict in pieces, while it changes between them and in them. */
#include "base/dict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/support/random.h"

#define STAY        400u /* keys that are there all the time */
#define COME_AND_GO 400u
#define POOL        (1u << 16)
#define PIECE       8u
#define ROUNDS      200u
#define CHANGES     20u /* between two pieces */
#define THREADS     2u
#define WALKS       300u

/* Values tell their key and how often it was put, so that a torn one is seen. */
static void make_value(uint64_t id, uint64_t turn, uint64_t value[3])
{
    value[0] = turn;
    value[1] = turn ^ id << 7;
    value[2] = turn * 3 + id;
}

static bool value_whole(uint64_t id, const uint64_t value[3])
{
    return value[1] == (value[0] ^ id << 7) && value[2] == value[0] * 3 + id;
}

static bool put(struct dict *dict, uint64_t id, uint64_t turn)
{
    uint64_t value[3];
    make_value(id, turn, value);
    return dict_put(dict, id, (uint8_t)id, value);
}

struct seen {
    unsigned times[STAY + COME_AND_GO];
    uint64_t turn[STAY + COME_AND_GO];
    size_t in_piece;
    bool wrong; /* assertions belong to the test's own thread, but a walk is in it */
};

static void note(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct seen *seen = context;
    seen->in_piece++;
    if (id >= STAY + COME_AND_GO || sub != (uint8_t)id || !value_whole(id, value)) {
        seen->wrong = true;
        return;
    }
    seen->times[id]++;
    seen->turn[id] = value[0];
}

static void expect_stayed(const struct seen *seen)
{
    assert_false(seen->wrong);
    for (uint64_t id = 0; id < STAY; id++) {
        assert_int_equal(seen->times[id], 1);
    }
}

static struct dict *dict_of_those_that_stay(uint64_t seed)
{
    struct dict *dict = dict_create(3 * sizeof(uint64_t), POOL, seed);
    assert_non_null(dict);
    for (uint64_t id = 0; id < STAY; id++) {
        assert_true(put(dict, id, 1));
    }
    return dict;
}

static void test_nothing_changes(void **unused)
{
    (void)unused;
    struct dict *dict = dict_of_those_that_stay(test_seed());
    struct seen seen = {.wrong = false};
    uint64_t at = 0;
    unsigned pieces = 0;
    bool more = true;
    while (more) {
        seen.in_piece = 0;
        more = dict_walk(dict, &at, PIECE, note, &seen);
        assert_true(seen.in_piece <= PIECE);
        pieces++;
    }
    assert_true(pieces >= STAY / PIECE);
    expect_stayed(&seen);
    assert_false(dict_walk(dict, &at, PIECE, note, &seen)); /* the end stays the end */
    expect_stayed(&seen);
    at = 0;
    assert_false(dict_walk(dict, &at, SIZE_MAX, note, &seen)); /* all at once */
    assert_int_equal(seen.times[0], 2);
    dict_destroy(dict);
}

static void test_an_empty_one_comes_in_pieces_too(void **unused)
{
    (void)unused;
    struct dict *dict = dict_create(8, POOL, 1);
    struct seen seen = {.wrong = false};
    uint64_t at = 0;
    assert_true(dict_walk(dict, &at, PIECE, note, &seen));
    assert_true(at <= PIECE);
    at = 0;
    assert_false(dict_walk(dict, &at, SIZE_MAX, note, &seen));
    assert_int_equal(seen.in_piece, 0);
    dict_destroy(dict);
}

/* What stays is rewritten, the rest comes and goes; the dict grows by levels meanwhile. */
static void change_some(struct dict *dict, struct test_random *random, uint64_t turn)
{
    for (unsigned i = 0; i < CHANGES; i++) {
        uint64_t id = test_random_below(random, STAY + COME_AND_GO);
        if (id < STAY || test_random_once_in(random, 2)) {
            assert_true(put(dict, id, turn));
        } else {
            (void)dict_delete(dict, id, (uint8_t)id);
        }
    }
}

static void test_changes_between_pieces(void **unused)
{
    (void)unused;
    uint64_t seed = test_seed();
    struct test_random random = {seed};
    uint64_t turn = 1;
    uint64_t rounds = test_scaled(ROUNDS);
    for (uint64_t round = 0; round < rounds; round++) {
        struct dict *dict = dict_of_those_that_stay(seed + round);
        struct seen seen = {.wrong = false};
        uint64_t at = 0;
        uint64_t before = turn;
        while (dict_walk(dict, &at, PIECE, note, &seen)) {
            change_some(dict, &random, ++turn);
        }
        expect_stayed(&seen);
        for (uint64_t id = 0; id < STAY; id++) {
            assert_true(seen.turn[id] == 1 || seen.turn[id] > before);
        }
        dict_destroy(dict);
    }
}

struct writer {
    pthread_t thread;
    struct dict *dict;
    uint64_t number, seed;
    const _Atomic bool *stop;
    bool wrong;
};

/* Its own half of the keys. */
static void *write_on(void *context)
{
    struct writer *writer = context;
    struct test_random random = {writer->seed};
    for (uint64_t turn = 2; !atomic_load(writer->stop); turn++) {
        uint64_t id =
            test_random_below(&random, (STAY + COME_AND_GO) / THREADS) * THREADS + writer->number;
        if (id < STAY || test_random_once_in(&random, 2)) {
            writer->wrong |= !put(writer->dict, id, turn);
        } else {
            (void)dict_delete(writer->dict, id, (uint8_t)id);
        }
    }
    return NULL;
}

static void test_while_threads_write(void **unused)
{
    (void)unused;
    uint64_t seed = test_seed();
    struct dict *dict = dict_of_those_that_stay(seed);
    struct writer writers[THREADS];
    _Atomic bool stop = false;
    for (unsigned i = 0; i < THREADS; i++) {
        writers[i] = (struct writer){.dict = dict, .number = i, .seed = seed + i, .stop = &stop};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_on, &writers[i]), 0);
    }
    uint64_t walks = test_scaled(WALKS);
    for (uint64_t walk = 0; walk < walks; walk++) {
        struct seen seen = {.wrong = false};
        uint64_t at = 0;
        while (dict_walk(dict, &at, PIECE, note, &seen)) {
        }
        expect_stayed(&seen);
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(writers[i].thread, NULL);
        assert_false(writers[i].wrong);
    }
    dict_check(dict);
    dict_destroy(dict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_changes),
        cmocka_unit_test(test_an_empty_one_comes_in_pieces_too),
        cmocka_unit_test(test_changes_between_pieces),
        cmocka_unit_test(test_while_threads_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
