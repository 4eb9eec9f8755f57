/* The kit for comparisons: its options, what is refused, the keys of its layouts, its draws. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "tests/load/kit.h"
#include "tests/unit/tools/bench_case.h"

#define MIX          "--workload mix "
#define HEADER_BYTES 24u /* of the binary protocol */

static bool parse(const char *line, struct load_options *options)
{
    return bench_line_parse_with(&load_kit, line, &options->common);
}

static void test_zipf(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        uint64_t hundredths;
    } right[] = {{"", 0},
                 {"--zipf 0.99", 99},
                 {"--zipf 1", 100},
                 {"--zipf 0.5", 50},
                 {"--zipf 0.01", 1},
                 {"--zipf 2.00", 200}};
    struct load_options options;

    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        assert_true(parse(right[i].line, &options));
        assert_int_equal(options.zipf, right[i].hundredths);
    }
}

static void test_taken(void **state)
{
    (void)state;
    static const char *const right[] = {
        "--protocol binary",
        "--protocol binary --layout slots --workload page",
        "--protocol redis --layout slots",
        "--protocol redis --layout hash",
        "--protocol redis --layout hash-all --workload slot",
        "--protocol redis --load --requests 0",
        "--protocol redis --workload exist",
        "--protocol redis --workload exist --layout sets",
        "--workload mix",
    };
    struct load_options options;

    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        if (!parse(right[i], &options)) {
            fail_msg("refused: %s", right[i]);
        }
    }
    assert_string_equal(options.common.address, "127.0.0.1:11211");
    assert_string_equal(load_kit.protocols[options.common.protocol], "text");
    assert_int_equal(options.layout, LOAD_RECORDS);
    assert_true(parse("--protocol redis --workload exist --layout sets", &options));
    assert_string_equal(options.common.address, "127.0.0.1:6379");
    assert_string_equal(options.common.record.head, "liked:");
    assert_string_equal(options.common.record.tail, "");
    assert_string_equal(load_kit.protocols[options.common.protocol], "redis");
    assert_int_equal(options.layout, LOAD_SETS);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "--zipf 0",
        "--zipf 0.00",
        "--zipf 2.01",
        "--zipf 0.999",
        "--zipf 1.",
        "--zipf .5",
        "--zipf x",
        "--zipf 1.x",
        "--zipf 18446744073709551615",
        "--rounds 0",
        "--rounds 101",
        "--cpus x",
        "--cpus 1-",
        "--protocol resp",
        "--layout hash --workload record",
        "--layout hash --protocol binary",
        "--layout sets --workload exist",
        "--layout sets --protocol redis --workload page",
        "--layout hash --protocol redis --workload exist",
        "--layout slots --workload exist",
        "--protocol redis",
        "--protocol redis --workload slot",
        MIX "--layout slots",
        MIX "--protocol binary",
        MIX "--zipf 0.99",
    };
    struct load_options options;

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (parse(lines[i], &options)) {
            fail_msg("taken: %s", lines[i]);
        }
    }
}

/* Threads are kept on the processors of the list; without one they stay where they may run. */
static void test_threads_are_pinned(void **state)
{
    (void)state;
    struct load_options options;
    cpu_set_t before, after;
    char line[32];
    size_t cpu = 0;

    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    while (!CPU_ISSET(cpu, &before)) {
        cpu++;
    }
    assert_true(parse("", &options));
    assert_int_equal(load_kit.begin_thread(&options.common, 0), 0);
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    snprintf(line, sizeof(line), "--cpus %zu", cpu);
    assert_true(parse(line, &options));
    assert_int_equal(load_kit.begin_thread(&options.common, 5), 0);
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_int_equal(CPU_COUNT(&after), 1);
    assert_true(CPU_ISSET(cpu, &after));
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

static void test_slots_take_turns(void **state)
{
    (void)state;
    struct bench_case fixture;
    char wanted[128];

    bench_case_start_with(&load_kit, &fixture, "--ids 3 --first 10 --layout slots --slots a,b",
                          true);
    assert_int_equal(bench_workload_load_requests(fixture.workload), 6);
    for (int i = 0; i < 6; i++) {
        uint64_t id = 10 + (uint64_t)i / 2;
        int value = (int)bench_workload_value(id, (size_t)i % 2);
        int digits = snprintf(NULL, 0, "%d", value);
        snprintf(wanted, sizeof(wanted), "set feed:%d.%c 0 0 %d\r\n%d\r\n", (int)id, "ab"[i % 2],
                 digits, value);
        fixture.request[fixture.request_length] = '\0';
        assert_string_equal(fixture.request, wanted);
        if (i < 5) {
            fixture.request_length =
                bench_workload_compose(fixture.workload, 0, fixture.request, fixture.ids);
        }
    }
    bench_workload_destroy(fixture.workload);
}

/* In the binary dialect: a quiet get a slot, and the NOOP that ends them. */
static void test_binary_slots(void **state)
{
    (void)state;
    static const struct {
        char opcode;
        const char *key;
    } wanted[] = {{0x0d, "feed:7.a"}, {0x0d, "feed:7.b"}, {0x0a, ""}};
    struct bench_case fixture;
    size_t at = 0;

    bench_case_start_with(&load_kit, &fixture,
                          "--protocol binary --slots a,b --ids 1 --first 7 --workload record "
                          "--layout slots",
                          false);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        size_t length = strlen(wanted[i].key);
        assert_true(at + HEADER_BYTES + length <= fixture.request_length);
        assert_int_equal(fixture.request[at + 1], wanted[i].opcode);
        assert_int_equal(fixture.request[at + 3], length);
        assert_memory_equal(fixture.request + at + HEADER_BYTES, wanted[i].key, length);
        at += HEADER_BYTES + length;
    }
    assert_int_equal(at, fixture.request_length);
    bench_workload_destroy(fixture.workload);
}

static void test_draws(void **state)
{
    (void)state;
    assert_in_range(bench_case_commonest(&load_kit, "--workload record --ids 1000", 0), 2, 20);
    assert_in_range(bench_case_commonest(&load_kit, "--workload record --ids 1000 --zipf 0.99", 0),
                    200, 350);
    assert_in_range(bench_case_commonest(&load_kit, "--workload record --ids 1000 --zipf 0.99", 1),
                    200, 350);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zipf),
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_threads_are_pinned),
        cmocka_unit_test(test_slots_take_turns),
        cmocka_unit_test(test_binary_slots),
        cmocka_unit_test(test_draws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
