/* frozen_clock.c: in place of base's: time stands still, and random bits are the same again from
 * each fuzz_clock_reset(). */
#include "tests/fuzz/frozen_clock.h"

#include "base/clock.h"
#include "base/hash.h"

#define WALL_S       1700000000u
#define MONOTONIC_US 1000000000u

static uint64_t drawn;

void frozen_clock_reset(void)
{
    drawn = 0;
}

uint64_t clock_monotonic_us(void)
{
    return MONOTONIC_US;
}

uint64_t clock_wall_s(void)
{
    return WALL_S;
}

uint64_t clock_random(void)
{
    return hash_u64(++drawn);
}
