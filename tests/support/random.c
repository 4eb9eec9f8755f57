/* random.c: what the environment says about random tests. */
#include "tests/support/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define SCALE_USUAL 100
#define SCALE_LONG  1000

uint64_t test_seed(void)
{
    const char *text = getenv("ROLLCALL_TEST_SEED");
    uint64_t seed = text && *text ? strtoull(text, NULL, 0) : clock_random();
    printf("ROLLCALL_TEST_SEED=%" PRIu64 "\n", seed);
    fflush(stdout); /* it is wanted most when the test aborts */
    return seed;
}

bool test_long(void)
{
    const char *text = getenv("ROLLCALL_TEST_LONG");
    return text && strcmp(text, "1") == 0;
}

uint64_t test_scaled(uint64_t usual)
{
    const char *text = getenv("ROLLCALL_TEST_SCALE");
    uint64_t scale = text && *text ? strtoull(text, NULL, 10) : SCALE_USUAL;
    if (test_long() && scale < SCALE_LONG) {
        scale = SCALE_LONG;
    }
    uint64_t scaled = usual * scale / SCALE_USUAL;
    return scaled ? scaled : 1;
}
