/* seeded_random.c: in place of base's clock_random(): what tables draw is the same again, too. */
#include <stdatomic.h>

#include "base/clock.h"
#include "base/hash.h"
#include "tests/support/random.h"

#define STEP 0x9e3779b97f4a7c15u

uint64_t clock_random(void)
{
    static _Atomic uint64_t drawn;
    return hash_u64(test_seed_of_run() + STEP * (1 + atomic_fetch_add(&drawn, 1)));
}
