/*
 * fuzz.h: what all fuzz targets share. A target is one function over bytes; what must hold is
 * CHECKed, so a mistake ends the process in a release build as well.
 *
 * A target is linked twice: with the fuzzer's main (`make fuzz`), and with replay.c, which runs the
 * files of a folder (`make check`: those of tests/fuzz/corpus/<target>). Which splits and flips a
 * target tries follows from its input alone, so an input that fails fails again.
 */
#ifndef ROLLCALL_TESTS_FUZZ_FUZZ_H
#define ROLLCALL_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/memory.h"
#include "tests/support/random.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* The target. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline struct test_random fuzz_random(const void *bytes, size_t length)
{
    return (struct test_random){hash_bytes(bytes, length, 1)};
}

/* A copy of exactly these bytes, to be freed: the sanitizer sees reading beyond them. */
static inline char *fuzz_copy(const char *bytes, size_t length)
{
    char *copy = malloc(length > 0 ? length : 1);

    CHECK(copy != NULL);
    if (length > 0) {
        memcpy(copy, bytes, length);
    }
    return copy;
}

#endif
