/* test_hash.c: the hash is XXH3, and its seed and every byte count. */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* The published values of the empty input with seed 0, and of SplitMix64 from state 0. */
#define XXH3_OF_NOTHING  0x2d06800538d394c2u
#define SPLITMIX_STEP    0x9e3779b97f4a7c15u
#define SPLITMIX_FIRST_0 0xe220a8397b1dcdafu

static void test_known(void **unused)
{
    (void)unused;
    assert_true(hash_bytes("", 0, 0) == XXH3_OF_NOTHING);
    assert_true(hash_u64(SPLITMIX_STEP) == SPLITMIX_FIRST_0);
}

static void test_two_words(void **unused)
{
    (void)unused;
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t words[2] = {hash_u64(i), i};
        assert_true(hash_words2(words[0], words[1], i) == hash_bytes(words, sizeof(words), i));
    }
}

static void test_every_bit_counts(void **unused)
{
    (void)unused;
    char bytes[300];
    memset(bytes, 7, sizeof(bytes));
    for (size_t length = 1; length <= sizeof(bytes); length++) {
        uint64_t before = hash_bytes(bytes, length, 5);
        assert_true(before == hash_bytes(bytes, length, 5));
        assert_true(before != hash_bytes(bytes, length, 6));
        assert_true(before != hash_bytes(bytes, length - 1, 5));
        for (size_t at = 0; at < length; at += 17) {
            bytes[at] ^= 16;
            assert_true(before != hash_bytes(bytes, length, 5));
            bytes[at] ^= 16;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_two_words),
        cmocka_unit_test(test_every_bit_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
