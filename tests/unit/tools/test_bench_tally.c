/* Tallies: error lines by their text, and adding up those of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tools/rollcall/bench_tally.h"

static void count_line(struct bench_tally *tally, const char *line, bool expected, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        bench_tally_error(tally, line, strlen(line), expected);
    }
}

static uint64_t lines_of(const struct bench_tally *tally, const char *text, bool expected)
{
    uint64_t count = 0;

    for (size_t i = 0; i < BENCH_ERROR_LINES; i++) {
        if (strcmp(tally->error_lines[i].text, text) == 0 &&
            tally->error_lines[i].expected == expected) {
            count += tally->error_lines[i].count;
        }
    }
    return count;
}

/* A number of its own in each counter, from `first`. */
static struct bench_tally filled(uint64_t first)
{
    struct bench_tally tally = {
        .requests = first,
        .operations = first + 1,
        .hits = first + 2,
        .misses = first + 3,
        .errors = first + 4,
        .expected = first + 5,
        .mismatches = first + 6,
        .foreign = first + 7,
        .wrong = first + 8,
        .checked = first + 9,
        .bytes_sent = first + 10,
        .bytes_received = first + 11,
    };

    for (size_t kind = 0; kind < BENCH_KINDS; kind++) {
        uint64_t base = first + 100 * (kind + 1);
        tally.kinds[kind] = (struct bench_kind_tally){base, base + 1, base + 2, base + 3, base + 4};
    }
    return tally;
}

/* All counters in front of the lines are numbers, so none that is new is forgotten here. */
static void test_every_counter_is_added(void **state)
{
    struct bench_tally into = filled(1000), from = filled(50000);
    const struct bench_tally one = into;
    const uint64_t *sums = (const uint64_t *)&into;
    const uint64_t *ones = (const uint64_t *)&one, *others = (const uint64_t *)&from;

    (void)state;
    bench_tally_add(&into, &from);
    for (size_t i = 0; i < offsetof(struct bench_tally, error_lines) / sizeof(uint64_t); i++) {
        assert_int_not_equal(ones[i], 0);
        assert_int_equal(sums[i], ones[i] + others[i]);
    }
}

static void test_lines_by_text(void **state)
{
    struct bench_tally into = {0}, from = {0};

    (void)state;
    count_line(&into, "ERROR", false, 2);
    count_line(&into, "SERVER_ERROR busy", true, 1);
    count_line(&from, "SERVER_ERROR busy", true, 4);
    count_line(&from, "CLIENT_ERROR bad", false, 3);
    count_line(&from, "ERROR", true, 5);
    bench_tally_add(&into, &from);
    assert_int_equal(lines_of(&into, "ERROR", false), 2);
    assert_int_equal(lines_of(&into, "ERROR", true), 5);
    assert_int_equal(lines_of(&into, "SERVER_ERROR busy", true), 5);
    assert_int_equal(lines_of(&into, "CLIENT_ERROR bad", false), 3);
    assert_int_equal(into.error_lines[3].count, 5);
    assert_int_equal(into.error_lines[4].count, 0);
    assert_int_equal(into.errors, 5);
    assert_int_equal(into.expected, 10);
}

static void test_no_room_for_lines(void **state)
{
    struct bench_tally into = {0}, from = {0};
    char line[32];
    uint64_t all = 0;

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        snprintf(line, sizeof(line), "ERROR %u", i);
        count_line(i % 2 == 0 ? &into : &from, line, false, 1);
        snprintf(line, sizeof(line), "ERROR other %u", i);
        count_line(&from, line, false, 1);
    }
    bench_tally_add(&into, &from);
    for (size_t i = 0; i < BENCH_ERROR_LINES; i++) {
        all += into.error_lines[i].count;
    }
    assert_int_equal(all, 40);
    assert_int_equal(into.errors, 40);
    assert_int_equal(into.error_lines[0].count, 1);
    assert_string_equal(into.error_lines[BENCH_ERROR_LINES - 1].text, "others");
    assert_int_equal(lines_of(&into, "others", false), 25);
}

static void test_first_mismatch(void **state)
{
    struct bench_tally into = {0}, from = {0}, third = {0};

    (void)state;
    bench_tally_mismatch(&from, "wrong key: ", "VALUE a", 7);
    bench_tally_mismatch(&from, "wrong order: ", "VALUE c", 7);
    bench_tally_mismatch(&third, "wrong value: ", "VALUE b", 7);
    bench_tally_add(&into, &from);
    assert_string_equal(into.first_mismatch, "wrong key: VALUE a");
    bench_tally_add(&into, &third);
    assert_string_equal(into.first_mismatch, "wrong key: VALUE a");
    assert_int_equal(into.mismatches, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_counter_is_added),
        cmocka_unit_test(test_lines_by_text),
        cmocka_unit_test(test_no_room_for_lines),
        cmocka_unit_test(test_first_mismatch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
