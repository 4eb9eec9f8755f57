/*
 * bench_random.h: random numbers that a seed repeats. A few ns each; a state belongs to one thread.
 */
#ifndef ROLLCALL_TOOLS_BENCH_RANDOM_H
#define ROLLCALL_TOOLS_BENCH_RANDOM_H

#include <stdint.h>

#include "base/hash.h"

#define BENCH_WEYL 0x9e3779b97f4a7c15ull /* 2^64 / golden ratio */

static inline uint64_t bench_random_state(uint64_t seed)
{
    return hash_u64(seed + BENCH_WEYL);
}

/* The next 64 bits. */
static inline uint64_t bench_random_next(uint64_t *state)
{
    *state += BENCH_WEYL;
    return hash_u64(*state);
}

/* x * y / 2^64: a number below y from 64 random bits. */
static inline uint64_t bench_scale(uint64_t x, uint64_t y)
{
    return (uint64_t)((unsigned __int128)x * y >> 64);
}

#endif
