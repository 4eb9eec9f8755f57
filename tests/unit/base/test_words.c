/* test_words.c: bytes and bit fields against a plain byte copy and a bit at a time. */
#include "base/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/support/random.h"

#define WORDS      10
#define BYTES      (WORDS * 8)
#define COPY_MAX   73 /* the longest entry of a dict */
#define BIT_WORDS  8  /* nothing behind a field is touched */
#define BIT_FIELDS (8u * 64)

struct pair {
    uint64_t words[WORDS];
    unsigned char bytes[BYTES];
};

static void fill(struct pair *pair, struct test_random *random)
{
    for (unsigned i = 0; i < WORDS; i++) {
        pair->words[i] = test_random_next(random);
    }
    memcpy(pair->bytes, pair->words, BYTES);
}

static void test_load_store(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    struct pair pair;
    for (size_t bytes = 1; bytes <= 8; bytes++) {
        for (size_t offset = 0; offset + bytes <= BYTES; offset++) {
            fill(&pair, &random);
            uint64_t plain = 0;
            memcpy(&plain, pair.bytes + offset, bytes);
            assert_true(words_load(pair.words, offset, bytes) == plain);
            uint64_t value = test_random_next(&random);
            words_store(pair.words, offset, bytes, value); /* its higher bytes are dropped */
            memcpy(pair.bytes + offset, &value, bytes);
            assert_memory_equal(pair.words, pair.bytes, BYTES);
        }
    }
}

/* Only the words that hold the bytes are touched: the last bytes of exactly sized memory. */
static void test_no_word_beyond(void **unused)
{
    (void)unused;
    for (size_t bytes = 1; bytes <= 8; bytes++) {
        uint64_t *one = test_malloc(8); /* a sanitizer sees a word more */
        *one = 0;
        words_store(one, 8 - bytes, bytes, UINT64_MAX);
        assert_true(words_load(one, 8 - bytes, bytes) == words_low_mask(bytes));
        test_free(one);
    }
}

static void test_copies(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    struct pair pair;
    for (size_t bytes = 1; bytes <= COPY_MAX; bytes++) {
        for (size_t offset = 0; offset + bytes <= BYTES; offset++) {
            fill(&pair, &random);
            uint64_t local[WORDS];
            memset(local, 0xee, sizeof(local));
            words_copy_out(pair.words, offset, bytes, local);
            assert_memory_equal(local, pair.bytes + offset, bytes);
            for (size_t i = bytes; i < (bytes + 7) / 8 * 8; i++) {
                assert_int_equal(((unsigned char *)local)[i], 0);
            }
            fill(&pair, &random);
            words_copy_in(pair.words, offset, bytes, local);
            memcpy(pair.bytes + offset, local, bytes);
            assert_memory_equal(pair.words, pair.bytes, BYTES);
        }
    }
}

static uint64_t plain_bits(const uint64_t *words, unsigned offset, unsigned bits)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bits; i++) {
        unsigned at = offset + i;
        value |= (words[at / 64] >> at % 64 & 1) << i;
    }
    return value;
}

static void one_bit_field(struct test_random *random, unsigned offset, unsigned bits)
{
    uint64_t words[BIT_WORDS];
    uint64_t before[BIT_WORDS];
    for (unsigned i = 0; i < BIT_WORDS; i++) {
        before[i] = words[i] = test_random_next(random);
    }
    assert_true(bits_get(words, offset, bits) == plain_bits(words, offset, bits));
    uint64_t value = test_random_next(random);
    bits_set(words, offset, bits, value);
    assert_true(bits_get(words, offset, bits) == (value & UINT64_MAX >> (64 - bits)));
    for (unsigned at = 0; at < BIT_WORDS * 64; at++) {
        if (at < offset || at >= offset + bits) {
            assert_true(plain_bits(words, at, 1) == plain_bits(before, at, 1));
        }
    }
}

/* The same field of a record that begins at a bit. */
static void one_field_at(struct test_random *random, unsigned at, unsigned offset, unsigned bits)
{
    uint64_t words[BIT_WORDS];
    uint64_t same[BIT_WORDS];
    struct words_field field = field_of(offset - at, bits);
    struct words_field none = {0, 0, 0};
    uint64_t value = test_random_next(random);
    for (unsigned i = 0; i < BIT_WORDS; i++) {
        same[i] = words[i] = test_random_next(random);
    }
    assert_true(field_load(words, at, &field) == plain_bits(words, offset, bits));
    assert_true(field_load(words, at, &none) == 0);
    field_store(words, at, &none, value);
    assert_memory_equal(words, same, sizeof(words));
    field_store(words, at, &field, value);
    bits_set(same, offset, bits, value);
    assert_memory_equal(words, same, sizeof(words));
}

static void test_bits(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    for (unsigned bits = 1; bits <= 64; bits++) {
        for (unsigned offset = 0; offset + bits <= BIT_FIELDS; offset++) {
            one_bit_field(&random, offset, bits);
            one_field_at(&random, offset / 3, offset, bits);
        }
    }
}

static void test_eight(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    struct pair pair;
    fill(&pair, &random);
    for (size_t offset = 0; offset + 8 <= BYTES; offset++) {
        uint64_t plain;
        memcpy(&plain, pair.bytes + offset, sizeof(plain));
        assert_true(words_eight(pair.words, offset) == plain);
    }
    uint64_t *one = test_malloc(8); /* a sanitizer sees a byte more */
    *one = test_random_next(&random);
    assert_true(words_eight(one, 0) == *one);
    test_free(one);
}

/* Each field of a record of so many bytes that lies behind another of the same size. */
static void near_fields(const uint64_t *words, unsigned record_bytes)
{
    size_t at = record_bytes;
    for (unsigned bits = 1; bits <= 64; bits++) {
        for (unsigned offset = 0; offset + bits <= 8 * record_bytes; offset++) {
            struct words_field field = field_of(offset, bits);
            struct words_near near = near_of(&field, record_bytes);
            size_t end = at + near.byte + 8;
            assert_true(end <= at + record_bytes || (record_bytes < 8 && near.byte == 0));
            if (near.mask == 0) { /* there are eight bytes but for fields across nine */
                assert_true(offset / 8 + 8 <= (offset + bits - 1) / 8);
                assert_true(near_load(words, at, &near) == 0);
                continue;
            }
            assert_true(near.mask == field.mask);
            assert_true(near_load(words, at, &near) ==
                        plain_bits(words, (unsigned)at * 8 + offset, bits));
            uint64_t stored[WORDS], expected[WORDS]; /* as field_store() does */
            memcpy(stored, words, BYTES);
            memcpy(expected, words, BYTES);
            near_store(stored, at, &near, ~words[0]);
            field_store(expected, at * 8, &field, ~words[0]);
            assert_memory_equal(stored, expected, BYTES);
        }
    }
}

static void test_near(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    struct pair pair;
    for (unsigned record_bytes = 1; record_bytes <= BYTES / 2; record_bytes++) {
        fill(&pair, &random);
        near_fields(pair.words, record_bytes);
    }
    const struct words_field none = {0, 0, 0};
    struct words_near near = near_of(&none, 10);
    assert_true(near_load(pair.words, 0, &near) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load_store), cmocka_unit_test(test_no_word_beyond),
        cmocka_unit_test(test_copies),     cmocka_unit_test(test_bits),
        cmocka_unit_test(test_eight),      cmocka_unit_test(test_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
