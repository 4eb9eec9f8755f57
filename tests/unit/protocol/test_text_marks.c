/*
 * test_text_marks.c: every space and newline is found, in order, and nothing beyond the text is
 * looked at (texts lie in memory of just their length: to be run with ASan too). Built twice, with
 * SSE2 and without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/text_marks.h"
#include "tests/support/random.h"

#define LENGTH_MAX 70
#define ROUNDS     200

static void assert_walk(const char *text, size_t length)
{
    struct text_marks marks = text_marks_begin(text, text + length);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == ' ' || text[i] == '\n') {
            assert_ptr_equal(text_marks_next(&marks), text + i);
        }
    }
    assert_ptr_equal(text_marks_next(&marks), text + length);
    assert_ptr_equal(text_marks_next(&marks), text + length);
}

/* Every byte at every place of every length, alone. */
static void test_alone(void **unused)
{
    (void)unused;
    for (size_t length = 1; length <= LENGTH_MAX; length++) {
        char *text = malloc(length);
        memset(text, 'a', length);
        for (size_t at = 0; at < length; at++) {
            for (int byte = 0; byte < 256; byte++) {
                text[at] = (char)byte;
                assert_walk(text, length);
            }
            text[at] = 'a';
        }
        free(text);
    }
}

static void test_random_texts(void **unused)
{
    (void)unused;
    static const char bytes[] = {' ',  '\n', '\r',   'a',    'b',   '!',
                                 '\v', '\0', '\x8a', '\xa0', '\xff'};
    struct test_random random = {test_seed()};
    for (size_t length = 0; length <= LENGTH_MAX; length++) {
        char *text = malloc(length + (length == 0));
        for (int round = 0; round < ROUNDS; round++) {
            for (size_t i = 0; i < length; i++) {
                text[i] = bytes[test_random_below(&random, sizeof(bytes))];
            }
            assert_walk(text, length);
        }
        free(text);
    }
}

/* Words of every length from memory of just that length, and what lies beyond eight left alone. */
static void test_words(void **unused)
{
    (void)unused;
    static const char letters[] = "\xff"
                                  "bcdefghijkl";
    for (size_t length = 0; length < sizeof(letters); length++) {
        char *text = malloc(length + (length == 0));
        memcpy(text, letters, length);
        uint64_t expected = 0;
        memcpy(&expected, letters, length < 8 ? length : 8);
        assert_true(text_word(text, length) == expected);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
