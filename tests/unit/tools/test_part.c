/* Parts of the hash range: what is none, that of each id, and that an id is of one part of N. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tools/rollcall/part.h"

#define IDS 20000u

static void test_what_is_no_part(void **state)
{
    static const char *const none[] = {"",
                                       "1",
                                       "/",
                                       "1/",
                                       "/2",
                                       "0/2",
                                       "3/2",
                                       "1/0",
                                       "-1/2",
                                       "1/2/3",
                                       "1/2 ",
                                       " 1/2",
                                       "a/b",
                                       "1/x",
                                       "+1/2",
                                       "1/65537",
                                       "4294967297/4294967298"};
    struct part part = {.number = 7, .count = 9};

    (void)state;
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_false(part_parse(none[i], &part));
        assert_true(part.number == 7 && part.count == 9);
    }
    assert_true(part_parse("2/2", &part));
    assert_true(part.number == 2 && part.count == 2);
    assert_true(part_parse("65536/65536", &part));
}

/* The parts as Debian's twemproxy chose them; tests/repl/split.py asks it again. */
static void test_ids_of_twemproxy(void **state)
{
    static const struct {
        const char *digits;
        uint32_t number;
    } known[] = {
        {"0", 20758},
        {"42", 1321},
        {"123", 32573},
        {"1001", 56325},
        {"71303", 9966},
        {"7130316800000", 26222},
        {"9223372036854775807", 33733},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct part part = {.number = known[i].number, .count = PART_COUNT_MAX};

        assert_true(part_has(&part, known[i].digits, strlen(known[i].digits)));
        part.number = part.number % PART_COUNT_MAX + 1;
        assert_false(part_has(&part, known[i].digits, strlen(known[i].digits)));
    }
}

static void test_each_id_is_of_one_part(void **state)
{
    static const uint32_t counts[] = {1, 2, 3, 4, 7};
    const struct part whole = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        uint32_t found[7] = {0};

        for (uint64_t id = 0; id < IDS; id++) {
            char digits[24];
            size_t length = (size_t)snprintf(digits, sizeof(digits), "%llu",
                                             (unsigned long long)(id * id * id));
            struct part part = {.count = counts[i]};
            uint32_t of = 0;

            for (part.number = 1; part.number <= part.count; part.number++) {
                bool has = part_has(&part, digits, length);

                of += has;
                found[part.number - 1] += has;
            }
            assert_true(of == 1 && part_has(&whole, digits, length));
        }
        for (uint32_t at = 0; at < counts[i]; at++) { /* even to a twentieth */
            assert_in_range(found[at], IDS / counts[i] * 19 / 20, IDS / counts[i] * 21 / 20 + 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_no_part),
        cmocka_unit_test(test_ids_of_twemproxy),
        cmocka_unit_test(test_each_id_is_of_one_part),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
