/* The load generator's options: what is taken, what is refused, what follows from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/unit/tools/bench_line.h"
#include "tools/rollcall/bench_options.h"

#define MIX "--workload mix "

static void test_defaults(void **state)
{
    (void)state;
    struct bench_options options;

    assert_true(bench_line_parse("", &options));
    assert_int_equal(options.workload, BENCH_INCR);
    assert_string_equal(options.record.head, "feed:");
    assert_string_equal(options.record.tail, "");
    assert_int_equal(options.seconds, BENCH_SECONDS_DEFAULT);
    assert_true(bench_line_parse(MIX, &options));
    assert_string_equal(options.record.head, "feed:");
    assert_string_equal(options.member.head, "liked:");
    assert_string_equal(options.member.tail, ":");
    assert_int_equal(options.shares.total, 100);
    assert_int_equal(options.window, 10000);
}

static void test_rate(void **state)
{
    (void)state;
    struct bench_options options;

    assert_true(bench_line_parse("", &options));
    assert_int_equal(options.rate, 0);
    assert_true(bench_line_parse("--rate 16 --pipeline 16", &options));
    assert_int_equal(options.rate, 16);
    assert_false(bench_line_parse("--rate 15 --pipeline 16", &options));
    assert_false(bench_line_parse("--rate 0", &options));
}

static void test_exist(void **state)
{
    (void)state;
    struct bench_options options;

    assert_true(bench_line_parse("--workload exist --page-ids 50 --hits 35", &options));
    assert_int_equal(options.page_ids, 50);
    assert_int_equal(options.hits, 35);
    assert_string_equal(options.record.head, "liked:");
    assert_string_equal(options.record.tail, ":");
    assert_true(bench_line_parse("--workload exist --key by_{id}_of_{member}", &options));
    assert_string_equal(options.record.head, "by_");
    assert_string_equal(options.record.tail, "_of_");
}

static void test_mix(void **state)
{
    (void)state;
    struct bench_options options;

    assert_true(bench_line_parse(MIX "--mix page=1,like=0 --window 500 --late 50 --old 0 "
                                     "--members 32 --space a --exist-space b",
                                 &options));
    assert_int_equal(options.shares.of[BENCH_KIND_PAGE], 1);
    assert_int_equal(options.shares.of[BENCH_KIND_LIKE], 0);
    assert_int_equal(options.shares.of[BENCH_KIND_EXIST], 20);
    assert_int_equal(options.shares.total, 56);
    assert_int_equal(options.window, 500);
    assert_int_equal(options.late, 50);
    assert_int_equal(options.old, 0);
    assert_int_equal(options.members, 32);
    assert_string_equal(options.record.head, "a:");
    assert_string_equal(options.member.head, "b:");
    assert_true(bench_line_parse(MIX "--key n{id} --exist-key x{id}y{member}", &options));
    assert_string_equal(options.record.head, "n");
    assert_string_equal(options.member.head, "x");
    assert_string_equal(options.member.tail, "y");
}

static void test_protocols(void **state)
{
    (void)state;
    struct bench_options options;

    assert_true(bench_line_parse("--protocol binary --workload page", &options));
    assert_string_equal(options.kit->protocols[options.protocol], "binary");
    assert_string_equal(options.address, "127.0.0.1:11211");
    assert_true(bench_line_parse("--threads 64 --connections 64", &options));
    assert_int_equal(options.threads, 64);
    assert_string_equal(options.kit->protocols[options.protocol], "text");
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "--workload mixed",
        "--hits 101 --workload exist",
        "--page-ids 0",
        "--window 1",
        "--late 91",
        "--old 101",
        "--members 33",
        "--exist-space UPPER",
        "--exist-key {id}",
        "--exist-key {id}{member}",
        "--exist-key {id}:{member}x",
        "--workload exist --key a{id}",
        MIX "--mix page",
        MIX "--mix page=x",
        MIX "--mix page=1000001",
        MIX "--mix pages=1",
        MIX "--mix page=1,,slot=2",
        MIX "--shape random",
        MIX "--first 9223372036854775000",
        MIX "--requests 5 --seconds 5",
        MIX "--protocol binary",
        MIX "--threads 2",
        "--threads 65 --connections 100",
        "--threads 3 --connections 2",
        "--protocol resp",
        "--protocol redis",
        "--workload cold",
        "--layout slots",
        "--zipf 0.99",
        "--cpus 0",
    };
    struct bench_options options;

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (bench_line_parse(lines[i], &options)) {
            fail_msg("taken: %s", lines[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),  cmocka_unit_test(test_rate),
        cmocka_unit_test(test_exist),     cmocka_unit_test(test_mix),
        cmocka_unit_test(test_protocols), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
