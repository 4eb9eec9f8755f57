/* The options of `load cold`: what is taken, what is refused, what follows from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/load/cold.h"
#include "tests/unit/tools/bench_line.h"

static bool parse(const char *line, struct load_options *options)
{
    char *arguments[BENCH_LINE_WORDS_MAX];
    int count = bench_line_split(line, arguments);

    return load_cold_parse(count, arguments, options);
}

static void test_taken(void **state)
{
    (void)state;
    struct load_options options;

    assert_true(parse("", &options));
    assert_int_equal(options.common.rate, LOAD_COLD_RATE);
    assert_int_equal(options.common.old, 5);
    assert_int_equal(options.rounds, LOAD_COLD_ROUNDS);
    assert_true(parse("--rate 500 --old 99 --rounds 3 --window 500 --ids 1000", &options));
    assert_int_equal(options.common.rate, 500);
    assert_int_equal(options.rounds, 3);
    assert_true(parse("--rate 320 --pipeline 16", &options));
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "--window 501 --ids 1000",
        "--old 0",
        "--old 100",
        "--shape ms",
        "--rate 0",
        "--rounds 101",
        "--rate 319 --pipeline 16",
        "--protocol redis --layout slots",
        "--protocol binary",
        "--layout slots --workload record",
        "--zipf 0.99",
        "--threads 2",
        "--load",
        "--requests 5",
    };
    struct load_options options;

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (parse(lines[i], &options)) {
            fail_msg("taken: %s", lines[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
