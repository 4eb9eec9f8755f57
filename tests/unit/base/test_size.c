/* Sizes as text: for people, and to be read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define KIB 1024ull

static void test_text(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {
        {0, "0 bytes"},
        {17, "17 bytes"},
        {1023, "1023 bytes"},
        {KIB, "1 KiB"},
        {KIB + KIB / 2, "1.5 KiB"},
        {10 * KIB, "10 KiB"},
        {10 * KIB - 1, "10 KiB"},
        {10 * KIB + KIB / 2, "11 KiB"},
        {345 * KIB * KIB, "345 MiB"},
        {(1ull << 30) + (205ull << 20), "1.2 GiB"},
        {1ull << 40, "1 TiB"},
        {UINT64_MAX, "16777216 TiB"},
    };
    char text[SIZE_TEXT_MAX];

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        assert_string_equal(size_text(text, sizes[i].bytes), sizes[i].text);
    }
}

/* What is printed reads back as the same number. */
static void test_exact(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {
        {0, "0"},
        {1000, "1000"},
        {64 * KIB, "64KiB"},
        {KIB * KIB, "1MiB"},
        {KIB * KIB + KIB, "1025KiB"},
        {3ull << 30, "3GiB"},
        {2048ull << 40, "2048TiB"},
        {UINT64_MAX, "18446744073709551615"},
    };
    char text[SIZE_TEXT_MAX];

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *unit = NULL;
        assert_string_equal(size_exact(text, sizes[i].bytes), sizes[i].text);
        uint64_t number = strtoull(text, &unit, 10);
        assert_true(number * size_factor(unit) == sizes[i].bytes);
    }
}

static void test_factors(void **state)
{
    (void)state;
    static const struct {
        const char *unit;
        uint64_t factor;
    } units[] = {
        {"", 1},           {"B", 1},     {"b", 1},         {"K", KIB},
        {"kb", KIB},       {"KiB", KIB}, {"m", KIB * KIB}, {"GIB", 1ull << 30},
        {"T", 1ull << 40}, {"KK", 0},    {"i", 0},         {"bytes", 0},
        {"X", 0},          {"KiBs", 0},
    };

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        assert_int_equal(size_factor(units[i].unit), units[i].factor);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_factors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
