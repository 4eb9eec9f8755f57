/* random.c: what the environment says about random tests. */
#include "tests/support/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"

#define SEED_USUAL  1
#define SCALE_USUAL 100
#define SCALE_LONG  1000

/* Not clock_random(): tests have one of their own, which begins with this seed. */
static uint64_t new_seed(void)
{
    uint32_t bits;
    CHECK(getrandom(&bits, sizeof(bits), 0) == (ssize_t)sizeof(bits));
    return bits;
}

static void print_seed(uint64_t seed)
{
    printf("ROLLCALL_TEST_SEED=%" PRIu64 "\n", seed);
    fflush(stdout); /* it is wanted most when the test aborts */
}

static uint64_t drawn; /* and printed; 0: none */

uint64_t test_seed_of_run(void)
{
    const char *text = getenv("ROLLCALL_TEST_SEED");

    if (text == NULL || *text == '\0') {
        return SEED_USUAL;
    }
    if (strcmp(text, "random") != 0) {
        return strtoull(text, NULL, 0);
    }
    if (drawn == 0) {
        drawn = new_seed();
        print_seed(drawn);
    }
    return drawn;
}

uint64_t test_seed(void)
{
    uint64_t seed = test_seed_of_run();
    if (drawn == 0) {
        print_seed(seed);
    }
    return seed;
}

bool test_long(void)
{
    const char *text = getenv("ROLLCALL_TEST_LONG");
    return text && strcmp(text, "1") == 0;
}

static uint64_t scale_of_run(void)
{
    const char *text = getenv("ROLLCALL_TEST_SCALE");
    uint64_t scale = text && *text ? strtoull(text, NULL, 10) : SCALE_USUAL;
    return test_long() && scale < SCALE_LONG ? SCALE_LONG : scale;
}

uint64_t test_scaled(uint64_t usual)
{
    uint64_t scaled = usual * scale_of_run() / SCALE_USUAL;
    return scaled ? scaled : 1;
}

/* Multiples of the golden ratio, one after the other, spread evenly over all 64 bits, and those
 * that are chosen over each period but a few (Knuth, The Art of Computer Programming, 6.4). */
bool test_chosen(uint64_t number)
{
    uint64_t spread = number * 0x9e3779b97f4a7c15u;
    return number == 0 ||
           (uint64_t)((unsigned __int128)spread * SCALE_USUAL >> 64) < scale_of_run();
}
