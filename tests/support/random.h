/*
 * random.h: numbers for random tests, the same again from the same seed, and how many rounds to do.
 *
 * ROLLCALL_TEST_SEED sets the seed: a number (unset: 1), or "random" for a new one. The seed of a
 * run is printed. ROLLCALL_TEST_SCALE sets the operations, and how many of cases that are alike, in
 * per cent of the usual (100); ROLLCALL_TEST_LONG=1 makes them ten times as many and adds what
 * takes long. What the product draws by clock_random() follows from the seed, too
 * (seeded_random.c). Thread rule: a struct test_random belongs to one thread.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_RANDOM_H
#define ROLLCALL_TESTS_SUPPORT_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

struct test_random {
    uint64_t state;
};

/* The seed of this run; test_seed() prints it, and whoever draws one. Any thread, once one call has
 * returned. */
uint64_t test_seed(void);
uint64_t test_seed_of_run(void);
/* `usual` scaled as the environment says, at least 1. */
uint64_t test_scaled(uint64_t usual);
/* Of cases that are much alike, whose numbers follow one another: whether this one is run. Below a
 * scale of 100 as many are, spread evenly over all of them, number 0 always; from 100 on each is.
 */
bool test_chosen(uint64_t number);
bool test_long(void);

static inline uint64_t test_random_next(struct test_random *random)
{
    random->state += 0x9e3779b97f4a7c15u;
    return hash_u64(random->state);
}

/* 0 .. bound - 1 */
static inline uint64_t test_random_below(struct test_random *random, uint64_t bound)
{
    return (uint64_t)((unsigned __int128)test_random_next(random) * bound >> 64);
}

/* True once in `times`. */
static inline bool test_random_once_in(struct test_random *random, uint64_t times)
{
    return test_random_below(random, times) == 0;
}

#endif
