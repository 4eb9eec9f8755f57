/* test_options.c: every type's spelling, limits and words of refusal; names near to one another. */
#include "base/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define KIB           1024ull

struct things {
    bool truth;
    uint32_t half;
    uint64_t whole;
    double real;
    char *owned;
    char inside[8];
};

static const char *const words[] = {"store", "cache", "secret", "both", NULL};

static const struct option_row truth = {
    "truth", OPTION_BOOL, .offset = offsetof(struct things, truth), .bytes = sizeof(bool)};
static const struct option_row number = {
    "number", OPTION_NUMBER, .offset = offsetof(struct things, half), .bytes = sizeof(uint32_t),
    .min = 2, .max = 64};
static const struct option_row largest = {"largest", OPTION_NUMBER,
                                          .offset = offsetof(struct things, whole),
                                          .bytes = sizeof(uint64_t), .max = UINT64_MAX};
static const struct option_row threads = {"threads", OPTION_NUMBER, .bytes = sizeof(uint32_t),
                                          .min = 1,  .max = 64,     .automatic = "auto"};
static const struct option_row mode = {"mode", OPTION_OCTAL, .bytes = sizeof(uint32_t),
                                       .max = 0777};
static const struct option_row size = {
    "size",   OPTION_SIZE,      .offset = offsetof(struct things, whole), .bytes = sizeof(uint64_t),
    .min = 1, .max = UINT64_MAX};
static const struct option_row table = {"table-size",        OPTION_SIZE,
                                        OPTION_POWER_OF_TWO, .bytes = 8,
                                        .min = 64 * KIB,     .max = KIB * KIB * KIB * KIB};
static const struct option_row seconds = {"timeout", OPTION_DURATION, .bytes = sizeof(uint32_t),
                                          .max = 86400, .unit_ms = 1000};
static const struct option_row every = {"every",  OPTION_DURATION, .bytes = sizeof(uint64_t),
                                        .min = 1, .max = 3600000,  .unit_ms = 1};
static const struct option_row patience = {
    "timeout",    OPTION_DURATION, .bytes = sizeof(uint32_t), .min = 1, .max = 600000,
    .unit_ms = 1, .bare_ms = 1000};
static const struct option_row share = {"share",
                                        OPTION_REAL,
                                        .offset = offsetof(struct things, real),
                                        .bytes = sizeof(double),
                                        .real_min = 0.001,
                                        .real_max = 0.9,
                                        .automatic = "auto"};
static const struct option_row text = {
    "text",   OPTION_STRING, .offset = offsetof(struct things, owned), .bytes = sizeof(char *),
    .min = 1, .max = 20};
static const struct option_row inside = {"inside",      OPTION_STRING,
                                         OPTION_INLINE, .offset = offsetof(struct things, inside),
                                         .bytes = 8,    .max = 7};
static const struct option_row word = {"role", OPTION_WORD, .offset = offsetof(struct things, half),
                                       .bytes = sizeof(uint32_t), .words = words};

static const struct {
    const struct option_row *row;
    const char *text;
    uint64_t number;
    const char *printed;
} good[] = {
    {&truth, "yes", 1, "yes"},
    {&truth, "true", 1, "yes"},
    {&truth, "no", 0, "no"},
    {&truth, "false", 0, "no"},
    {&number, "2", 2, "2"},
    {&number, "064", 64, "64"},
    {&largest, "18446744073709551615", UINT64_MAX, "18446744073709551615"},
    {&threads, "auto", 0, "auto"},
    {&threads, "1", 1, "1"},
    {&mode, "0700", 0700, "0700"},
    {&mode, "777", 0777, "0777"},
    {&mode, "0", 0, "0"},
    {&size, "1", 1, "1"},
    {&size, "1b", 1, "1"},
    {&size, "64K", 64 * KIB, "64KiB"},
    {&size, "64kb", 64 * KIB, "64KiB"},
    {&size, "64 KiB", 64 * KIB, "64KiB"},
    {&size, "1.5MiB", 1536 * KIB, "1536KiB"},
    {&size, "0.125K", 128, "128"},
    {&size, "4g", 4 * KIB *KIB *KIB, "4GiB"},
    {&size, "4096GB", 4 * KIB *KIB *KIB *KIB, "4TiB"},
    {&size, "1001", 1001, "1001"},
    {&size, "16383TiB", 16383ull << 40, "16383TiB"},
    {&table, "64KiB", 64 * KIB, "64KiB"},
    {&table, "1T", KIB *KIB *KIB *KIB, "1TiB"},
    {&seconds, "0", 0, "0"},
    {&seconds, "30", 30, "30"},
    {&seconds, "30s", 30, "30"},
    {&seconds, "2000ms", 2, "2"},
    {&seconds, "10min", 600, "600"},
    {&seconds, "1.5h", 5400, "5400"},
    {&seconds, "24 h", 86400, "86400"},
    {&every, "1.5s", 1500, "1500"},
    {&every, "250", 250, "250"},
    {&patience, "3", 3000, "3s"},
    {&patience, "0.2", 200, "200ms"},
    {&patience, "200ms", 200, "200ms"},
    {&patience, "10min", 600000, "10min"},
    {&word, "store", 0, "store"},
    {&word, "both", 3, "both"},
    {&word, "secret", 2, "secret"},
};

static const struct {
    const struct option_row *row;
    const char *text;
    const char *error;
} bad[] = {
    {&truth, "on", "truth must be yes or no (or true, false), not 'on'"},
    {&truth, "Yes", "truth must be yes or no (or true, false), not 'Yes'"},
    {&truth, "", "truth has no value: it must be yes or no (or true, false)"},
    {&number, "1", "number must be 2 to 64, not '1'"},
    {&number, "65", "number must be 2 to 64, not '65'"},
    {&number, "99999999999999999999999", "number must be 2 to 64, not '99999999999999999999999'"},
    {&number, "-2", "number must be a number, not '-2'"},
    {&number, "0x10", "number must be a number, not '0x10'"},
    {&number, " 2", "number must be a number, not ' 2'"},
    {&number, "auto", "number must be a number, not 'auto'"},
    {&number, "", "number has no value: it must be a number"},
    {&largest, "18446744073709551616",
     "largest must be 0 to 18446744073709551615, not '18446744073709551616'"},
    {&threads, "0", "threads must be auto or 1 to 64, not '0'"},
    {&mode, "0800", "mode must be an octal number such as 0700, not '0800'"},
    {&mode, "01000", "mode must be 0 to 0777, not '01000'"},
    {&size, "lots", "size must be a size such as 64KiB, 16MiB or 4GiB, not 'lots'"},
    {&size, "4GiBs", "size must be a size such as 64KiB, 16MiB or 4GiB, not '4GiBs'"},
    {&size, "4 G B", "size must be a size such as 64KiB, 16MiB or 4GiB, not '4 G B'"},
    {&size, "4P", "size must be a size such as 64KiB, 16MiB or 4GiB, not '4P'"},
    {&size, "-1M", "size must be a size such as 64KiB, 16MiB or 4GiB, not '-1M'"},
    {&size, "0.0001K", "size must be a size such as 64KiB, 16MiB or 4GiB, not '0.0001K'"},
    {&size, "0.001K", "size must be a size such as 64KiB, 16MiB or 4GiB, not '0.001K'"},
    {&size, "0", "size must be 1 to 18446744073709551615, not '0'"},
    {&size, "16777216T", "size must be 1 to 18446744073709551615, not '16777216T'"},
    {&table, "32KiB", "table-size must be 64KiB to 1TiB, a power of two, not '32KiB'"},
    {&table, "3MiB", "table-size must be a power of two, not '3MiB'"},
    {&seconds, "1500ms", "timeout must be whole seconds, not '1500ms'"},
    {&seconds, "2d", "timeout must be a time such as 500ms, 30s, 10min or 1h, not '2d'"},
    {&seconds, "25h", "timeout must be 0 to 86400 seconds, not '25h'"},
    {&every, "0.0005s", "every must be a time such as 500ms, 30s, 10min or 1h, not '0.0005s'"},
    {&every, "0.5ms", "every must be whole milliseconds, not '0.5ms'"},
    {&patience, "0", "timeout must be 1ms to 10min, not '0'"},
    {&patience, "601", "timeout must be 1ms to 10min, not '601'"},
    {&patience, "0.0005", "timeout must be a time such as 500ms, 30s, 10min or 1h, not '0.0005'"},
    {&every, "0", "every must be 1 to 3600000 milliseconds, not '0'"},
    {&share, "nan", "share must be a fraction such as 0.1 or 10%, not 'nan'"},
    {&share, "0x1", "share must be a fraction such as 0.1 or 10%, not '0x1'"},
    {&share, "1e", "share must be a fraction such as 0.1 or 10%, not '1e'"},
    {&share, "5%%", "share must be a fraction such as 0.1 or 10%, not '5%%'"},
    {&share, "0", "share must be auto or 0.001 to 0.9, not '0'"},
    {&share, "91%", "share must be auto or 0.001 to 0.9, not '91%'"},
    {&share, "1e999", "share must be auto or 0.001 to 0.9, not '1e999'"},
    {&text, "", "text has no value: it must be text of 1 to 20 bytes"},
    {&text, "123456789012345678901",
     "text must be text of 1 to 20 bytes, not '123456789012345678901'"},
    {&text, "a\nb", "text must be text without control characters, not 'a?b'"},
    {&word, "Store", "role must be store, cache, secret or both, not 'Store'"},
    {&word, "", "role has no value: it must be store, cache, secret or both"},
};

static void test_good(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < LENGTH(good); i++) {
        struct option_value value = {.number = 4711};
        char error[OPTIONS_ERROR_MAX] = "", printed[OPTIONS_TEXT_MAX];
        if (!options_parse(good[i].row, good[i].text, &value, error)) {
            fail_msg("%s: %s", good[i].text, error);
        }
        assert_true(value.number == good[i].number);
        options_format(good[i].row, &value, printed);
        assert_string_equal(printed, good[i].printed);
        assert_true(options_parse(good[i].row, printed, &value, error));
        assert_true(value.number == good[i].number);
    }
}

static void test_bad(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct option_value value = {.number = 4711};
        char error[OPTIONS_ERROR_MAX] = "";
        if (options_parse(bad[i].row, bad[i].text, &value, error)) {
            fail_msg("%s %s was taken", bad[i].row->name, bad[i].text);
        }
        assert_string_equal(error, bad[i].error);
        assert_true(value.number == 4711);
    }
}

static void test_real(void **unused)
{
    static const struct {
        const char *text;
        double real;
        const char *printed;
    } reals[] = {{"0.001", 0.001, "0.001"},
                 {"10%", 0.1, "0.1"},
                 {"12.5 %", 0.125, "0.125"},
                 {"1e-2", 0.01, "0.01"},
                 {"0.30000000000000004", 0.1 + 0.2, "0.30000000000000004"},
                 {"auto", -1, "auto"},
                 {"0.9", 0.9, "0.9"}};

    (void)unused;
    for (size_t i = 0; i < LENGTH(reals); i++) {
        struct option_value value = {0};
        char error[OPTIONS_ERROR_MAX], printed[OPTIONS_TEXT_MAX];
        assert_true(options_parse(&share, reals[i].text, &value, error));
        assert_true(value.real == reals[i].real);
        options_format(&share, &value, printed);
        assert_string_equal(printed, reals[i].printed);
    }
}

/* A row's text goes into its field and no other, and comes out again. */
static void put(const struct option_row *row, struct things *things, const char *given)
{
    struct option_value value = {0};
    char error[OPTIONS_ERROR_MAX], printed[OPTIONS_TEXT_MAX];

    assert_true(options_parse(row, given, &value, error));
    options_store(row, things, &value);
    options_load(row, things, &value);
    options_format(row, &value, printed);
    assert_string_equal(printed, given);
}

static void test_store(void **unused)
{
    struct things things = {0};
    struct option_value none;

    (void)unused;
    put(&truth, &things, "yes");
    put(&number, &things, "17");
    put(&largest, &things, "18446744073709551614");
    put(&share, &things, "0.25");
    put(&text, &things, "first");
    put(&text, &things, "second");
    put(&inside, &things, "1234567");
    assert_true(things.truth);
    assert_int_equal(things.half, 17);
    assert_true(things.whole == UINT64_MAX - 1);
    assert_true(things.real == 0.25);
    assert_string_equal(things.owned, "second");
    assert_string_equal(things.inside, "1234567");
    put(&word, &things, "both");
    assert_int_equal(things.half, 3);
    options_clear(&text, &things);
    options_clear(&inside, &things);
    options_clear(&number, &things);
    assert_null(things.owned);
    assert_int_equal(things.half, 3);
    options_load(&text, &things, &none);
    assert_null(none.text);
}

static void test_quote(void **unused)
{
    char quoted[OPTIONS_QUOTE_MAX], longest[200];

    (void)unused;
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    assert_string_equal(options_quote("", quoted), "''");
    assert_string_equal(options_quote("a\tb\x1b", quoted), "'a?b?'");
    options_quote(longest, quoted);
    assert_int_equal(strlen(quoted), OPTIONS_QUOTE_MAX - 1);
    assert_string_equal(quoted + strlen(quoted) - 5, "x...'");
}

static void test_distance(void **unused)
{
    static const struct {
        const char *left, *right;
        unsigned distance;
    } pairs[] = {{"", "", 0},
                 {"threads", "threads", 0},
                 {"", "abc", 3},
                 {"abc", "", 3},
                 {"threads", "thraeds", 1},
                 {"threads", "thread", 1},
                 {"slots", "slosts", 1},
                 {"ab", "ba", 1},
                 {"kitten", "sitting", 3},
                 {"abc", "xyz", 3},
                 {"ca", "abc", 3},
                 {"role", "Role", 1}};

    (void)unused;
    for (size_t i = 0; i < LENGTH(pairs); i++) {
        assert_int_equal(options_distance(pairs[i].left, pairs[i].right), pairs[i].distance);
        assert_int_equal(options_distance(pairs[i].right, pairs[i].left), pairs[i].distance);
    }
}

static void test_nearest(void **unused)
{
    static const char *const names[] = {"threads", "memory", "role", "table-size", "tables"};
    char longest[500];

    (void)unused;
    memset(longest, 'm', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    assert_string_equal(options_nearest("thraeds", names, LENGTH(names)), "threads");
    assert_string_equal(options_nearest("tabels", names, LENGTH(names)), "tables");
    assert_string_equal(options_nearest("tablesize", names, LENGTH(names)), "table-size");
    assert_string_equal(options_nearest("rol", names, LENGTH(names)), "role");
    assert_null(options_nearest("r", names, LENGTH(names)));
    assert_null(options_nearest("connections", names, LENGTH(names)));
    assert_null(options_nearest("", names, LENGTH(names)));
    assert_null(options_nearest("threads", names, 0));
    assert_null(options_nearest(longest, names, LENGTH(names)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),    cmocka_unit_test(test_bad),
        cmocka_unit_test(test_real),    cmocka_unit_test(test_store),
        cmocka_unit_test(test_quote),   cmocka_unit_test(test_distance),
        cmocka_unit_test(test_nearest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
