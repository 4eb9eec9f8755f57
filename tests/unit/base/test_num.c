/* test_num.c: numbers against printf and strtoull. */
#include "base/num.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANDOM_ROUNDS 200000

static void assert_round(uint64_t value)
{
    char expected[NUM_DIGITS_MAX + 1];
    char text[NUM_DIGITS_MAX + 4]; /* what is behind the room must not change */
    memset(text, '#', sizeof(text));
    size_t length = (size_t)snprintf(expected, sizeof(expected), "%" PRIu64, value);
    assert_int_equal(num_print(text, value), length);
    assert_memory_equal(text, expected, length);
    assert_memory_equal(text + NUM_DIGITS_MAX, "####", 4);
    uint64_t back = ~value;
    assert_true(num_parse(text, length, &back));
    assert_true(back == value);
}

static void test_edges(void **unused)
{
    (void)unused;
    assert_round(0);
    assert_round(UINT64_MAX);
    for (uint64_t power = 1; power <= UINT64_MAX / 10; power *= 10) {
        assert_round(power - 1);
        assert_round(power);
        assert_round(power + 1);
        assert_round(power * 10 - 1);
    }
    assert_round(10000000000000000000u);
    for (unsigned bit = 0; bit < 64; bit++) {
        assert_round((uint64_t)1 << bit);
        assert_round(((uint64_t)1 << bit) - 1);
    }
}

static void test_random(void **unused)
{
    (void)unused;
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < RANDOM_ROUNDS; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        assert_round(x >> (x % 64));
    }
}

static void assert_refused(const char *text, size_t length)
{
    uint64_t value = 77;
    assert_false(num_parse(text, length, &value));
    assert_int_equal(value, 77);
}

static void test_parse_limits(void **unused)
{
    (void)unused;
    static const char *const wrong[] = {
        "",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1.0",
        "0x1",
        "18446744073709551616",
        "28446744073709551615",
        "a",
        "1a",
        "1\n",
        "99999999999999999999",
        "000000000000000000001",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_refused(wrong[i], strlen(wrong[i]));
    }
    uint64_t value;
    assert_true(num_parse("00000000000000000017", 20, &value));
    assert_int_equal(value, 17);
    assert_true(num_parse("123456", 3, &value));
    assert_int_equal(value, 123);
}

/* Every byte at every place of every length. */
static void test_parse_bytes(void **unused)
{
    (void)unused;
    for (size_t length = 1; length <= NUM_DIGITS_MAX; length++) {
        for (size_t at = 0; at < length; at++) {
            for (int byte = 0; byte < 256; byte++) {
                char text[NUM_DIGITS_MAX];
                memset(text, '1', sizeof(text));
                text[at] = (char)byte;
                uint64_t value;
                bool digit = byte >= '0' && byte <= '9';
                bool too_large =
                    length == NUM_DIGITS_MAX && (at == 0 ? byte > '1' : at == 1 && byte == '9');
                assert_int_equal(num_parse(text, length, &value), digit && !too_large);
            }
        }
    }
}

/* Numbers with other bytes behind them, each in memory of just its length: to be run with ASan too.
 */
static void test_read(void **unused)
{
    (void)unused;
    static const char digits[] = "1234567890123456789012345";
    static const char others[] = {'/', ':', ' ', '.', '\0', '\x7f', '\x80', '\xba', '\xff'};
    for (size_t length = 0; length < sizeof(digits); length++) {
        for (size_t read = 0; read <= length; read++) {
            char *text = malloc(length + (length == 0));
            memcpy(text, digits, length);
            if (read < length) {
                text[read] = others[(length + read) % sizeof(others)];
            }
            char expected[NUM_DIGITS_SAFE + 1];
            size_t most = read < NUM_DIGITS_SAFE ? read : NUM_DIGITS_SAFE;
            snprintf(expected, sizeof(expected), "%.*s", (int)most, digits);
            uint64_t value = 77;
            assert_int_equal(num_read(text, length, &value), most);
            assert_true(value == (most == 0 ? 77 : strtoull(expected, NULL, 10)));
            free(text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges),        cmocka_unit_test(test_random),
        cmocka_unit_test(test_parse_limits), cmocka_unit_test(test_parse_bytes),
        cmocka_unit_test(test_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
