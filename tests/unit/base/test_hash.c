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

/* A bit of the text, its length, the number or the secret changes each bit of a short hash with
 * probability 1/2. */
static void test_short_bits(void **unused)
{
    (void)unused;
    unsigned changed[64] = {0};
    unsigned all = 0;
    char text[HASH_SHORT_MAX + 1] = {0};
    for (size_t length = 0; length <= HASH_SHORT_MAX; length++) {
        for (uint64_t i = 0; i < 1000; i++) {
            uint64_t number = i << 22;
            uint64_t secret = hash_u64(i);
            uint64_t before = hash_short(text, length, number, secret);
            unsigned bit = (unsigned)(i % 64);
            uint64_t after[] = {hash_short(text, length, number ^ 1ull << bit, secret),
                                hash_short(text, length, number, secret ^ 1ull << bit), before};
            text[length > 0 ? i % length : 0] ^= (char)(1 << i % 7);
            after[2] = length > 0 ? hash_short(text, length, number, secret)
                                  : hash_short(text, 1, number, secret);
            for (size_t k = 0; k < 3; k++, all++) {
                for (unsigned at = 0; at < 64; at++) {
                    changed[at] += (before ^ after[k]) >> at & 1;
                }
            }
        }
    }
    for (unsigned at = 0; at < 64; at++) { /* six standard deviations: sqrt(all) / 2 = 113 */
        assert_in_range(changed[at], all / 2 - 680, all / 2 + 680);
    }
}

/* A zero more is another text. */
static void test_short_length(void **unused)
{
    (void)unused;
    static const char zeros[HASH_SHORT_MAX] = {0};
    for (size_t a = 0; a <= HASH_SHORT_MAX; a++) {
        for (size_t b = 0; b < a; b++) {
            assert_true(hash_short(zeros, a, 1, 2) != hash_short(zeros, b, 1, 2));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_two_words),
        cmocka_unit_test(test_every_bit_counts),
        cmocka_unit_test(test_short_bits),
        cmocka_unit_test(test_short_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
