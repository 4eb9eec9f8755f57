/* sim_clock.c: a clock, and random bits, that are the same again. */
#include "tests/sim/sim_clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/hash.h"

#define BEGAN_S 1700000000u
#define STEP    0x9e3779b97f4a7c15u

static _Atomic uint64_t state;
static _Atomic uint64_t now_us;
static void (*looked)(void);
static _Thread_local bool joined;

void sim_clock_seed(uint64_t seed)
{
    state = hash_u64(seed);
    now_us = 1;
}

void sim_clock_to(uint64_t us)
{
    if (now_us < us) {
        now_us = us;
    }
}

void sim_clock_hold(void (*looks)(void))
{
    looked = looks;
}

void sim_clock_join(void)
{
    joined = true;
}

uint64_t clock_monotonic_us(void)
{
    if (looked != NULL && !joined) {
        return now_us;
    }
    if (looked != NULL) {
        looked();
    }
    return atomic_fetch_add(&now_us, 1);
}

uint64_t clock_wall_s(void)
{
    return BEGAN_S;
}

uint64_t clock_random(void)
{
    return hash_u64(atomic_fetch_add(&state, STEP));
}
