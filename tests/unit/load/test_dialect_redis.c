/* The load generator's Redis dialect: its requests, and right, missing, wrong and broken replies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/hash.h"
#include "tests/load/kit.h"
#include "tests/unit/tools/bench_case.h"

#define REDIS  "--protocol redis --slots a,b --ids 1 --first 7 "
#define RECORD REDIS "--workload record "
#define PAGE   REDIS "--workload page --page-ids 2 "
#define EXIST  REDIS "--workload exist --page-ids 2 "
#define LIKED  EXIST "--hits 100 "
#define HASH   "--layout hash "
#define ALL    "--layout hash-all "
#define SLOTS  "--layout slots "
#define SETS   "--layout sets "
#define KEY    "$6\r\nfeed:7\r\n"
#define FIELD  "$1\r\na\r\n"
#define OTHER  "$1\r\nb\r\n"
#define NIL    "$-1\r\n"
#define ERROR  "-WRONGTYPE x\r\n"

static char *put_bulk(char *at, const char *text)
{
    return at + sprintf(at, "$%d\r\n%s\r\n", (int)strlen(text), text);
}

/* As written, but for bulk strings: @a @b the loaded slots, @r the record, @u @f the members. */
static const char *expand(const char *text)
{
    static char out[1024];
    char value[64], *at = out;
    int a = (int)bench_workload_value(7, 0), b = (int)bench_workload_value(7, 1);

    for (; *text != '\0'; text++) {
        if (*text != '@') {
            *at++ = *text;
            continue;
        }
        switch (*++text) {
        case 'a':
        case 'b':
            sprintf(value, "%d", *text == 'a' ? a : b);
            break;
        case 'r':
            sprintf(value, "%d,%d", a, b);
            break;
        default:
            sprintf(value, "%c%u", *text, (unsigned)(hash_u64(7) >> 34));
            break;
        }
        at = put_bulk(at, value);
    }
    *at = '\0';
    return out;
}

static void expect_request(const char *line, bool load, const char *wanted)
{
    struct bench_case fixture;

    bench_case_start_with(&load_kit, &fixture, line, load);
    fixture.request[fixture.request_length] = '\0';
    assert_string_equal(fixture.request, expand(wanted));
    bench_workload_destroy(fixture.workload);
}

static void test_loads(void **state)
{
    (void)state;
    expect_request(RECORD, true, "*3\r\n$3\r\nSET\r\n" KEY "@r");
    expect_request(RECORD SLOTS, true, "*3\r\n$3\r\nSET\r\n$8\r\nfeed:7.a\r\n@a");
    expect_request(RECORD HASH, true, "*6\r\n$4\r\nHSET\r\n" KEY FIELD "@a" OTHER "@b");
    expect_request(PAGE ALL, true, "*6\r\n$4\r\nHSET\r\n" KEY FIELD "@a" OTHER "@b");
    expect_request(EXIST SETS, true, "*3\r\n$4\r\nSADD\r\n$7\r\nliked:7\r\n@u");
}

static void test_reads(void **state)
{
    (void)state;
    struct bench_case fixture;

    expect_request(RECORD, false, "*2\r\n$3\r\nGET\r\n" KEY);
    expect_request(PAGE, false, "*3\r\n$4\r\nMGET\r\n" KEY KEY);
    expect_request(REDIS SLOTS "--workload slot --slot b", false,
                   "*2\r\n$3\r\nGET\r\n$8\r\nfeed:7.b\r\n");
    expect_request(RECORD SLOTS, false, "*3\r\n$4\r\nMGET\r\n$8\r\nfeed:7.a\r\n$8\r\nfeed:7.b\r\n");
    expect_request(REDIS HASH "--workload slot --slot b", false, "*3\r\n$4\r\nHGET\r\n" KEY OTHER);
    expect_request(PAGE HASH, false,
                   "*4\r\n$5\r\nHMGET\r\n" KEY FIELD OTHER "*4\r\n$5\r\nHMGET\r\n" KEY FIELD OTHER);
    expect_request(RECORD ALL, false, "*2\r\n$7\r\nHGETALL\r\n" KEY);
    expect_request(LIKED SETS, false,
                   "*3\r\n$9\r\nSISMEMBER\r\n$7\r\nliked:7\r\n@u"
                   "*3\r\n$9\r\nSISMEMBER\r\n$7\r\nliked:7\r\n@u");
    expect_request(EXIST SETS "--page-ids 1 --hits 0 --key l{id}x", false,
                   "*3\r\n$9\r\nSISMEMBER\r\n$3\r\nl7x\r\n@f");
    bench_case_start_with(&load_kit, &fixture, LIKED, false);
    fixture.request[fixture.request_length] = '\0';
    assert_int_equal(strncmp(fixture.request, "*3\r\n$4\r\nMGET\r\n$", 15), 0);
    assert_non_null(strstr(fixture.request, "liked:7:u"));
    bench_workload_destroy(fixture.workload);
}

static void test_increments(void **state)
{
    (void)state;
    expect_request(REDIS SLOTS "--slot a", false, "*2\r\n$4\r\nINCR\r\n$8\r\nfeed:7.a\r\n");
    expect_request(REDIS HASH "--slot b", false, "*4\r\n$7\r\nHINCRBY\r\n" KEY OTHER "$1\r\n1\r\n");
}

struct outcome {
    const char *options;
    const char *reply;
    uint64_t hits;
    uint64_t misses;
    uint64_t errors;
    uint64_t mismatches;
};

/* Whole and byte by byte; what came is complete to the last byte, or broken. */
static void expect_outcome(const struct outcome *outcome, bool load, bool broken)
{
    for (int bytewise = 0; bytewise <= 1; bytewise++) {
        struct bench_case fixture;
        const char *reply = expand(outcome->reply);

        bench_case_start_with(&load_kit, &fixture, outcome->options, load);
        size_t taken = bench_case_feed(&fixture, reply, strlen(reply), bytewise != 0);
        if (fixture.tally.hits != outcome->hits || fixture.tally.misses != outcome->misses ||
            fixture.tally.errors != outcome->errors ||
            fixture.tally.mismatches != outcome->mismatches || fixture.reply.broken != broken) {
            fail_msg("%s: %s: hits %d misses %d errors %d mismatches %d broken %d (%s)",
                     outcome->options, outcome->reply, (int)fixture.tally.hits,
                     (int)fixture.tally.misses, (int)fixture.tally.errors,
                     (int)fixture.tally.mismatches, fixture.reply.broken,
                     fixture.tally.first_mismatch);
        }
        assert_true(broken || (fixture.reply.done && taken == strlen(reply)));
        bench_workload_destroy(fixture.workload);
    }
}

static void expect_outcomes(const struct outcome *outcomes, size_t count, bool load)
{
    for (size_t i = 0; i < count; i++) {
        expect_outcome(&outcomes[i], load, false);
    }
}
#define EXPECT(outcomes, load)                                                                     \
    expect_outcomes(outcomes, sizeof(outcomes) / sizeof((outcomes)[0]), load)

static void test_strings(void **state)
{
    (void)state;
    static const struct outcome outcomes[] = {
        {RECORD, "@r", 1, 0, 0, 0},
        {RECORD, NIL, 0, 1, 0, 0},
        {RECORD, "$3\r\n1,2\r\n", 1, 0, 0, 1},
        {RECORD, ERROR, 0, 0, 1, 0},
        {RECORD "--verify form", "$3\r\n1,2\r\n", 1, 0, 0, 0},
        {RECORD "--verify form", "$3\r\n1x2\r\n", 1, 0, 0, 1},
        {RECORD "--verify off", "$1\r\nx\r\n", 1, 0, 0, 0},
        {PAGE, "*2\r\n@r@r", 2, 0, 0, 0},
        {PAGE, "*2\r\n" NIL "@r", 1, 1, 0, 0},
        {PAGE, "*2\r\n@r" NIL, 1, 1, 0, 0},
        {PAGE, "*2\r\n@r@a", 2, 0, 0, 1},
        {PAGE, ERROR, 0, 0, 1, 0},
        {RECORD SLOTS, "*2\r\n@a@b", 2, 0, 0, 0},
        {RECORD SLOTS, "*2\r\n@b@a", 2, 0, 0, 2}, /* another order */
        {REDIS HASH "--workload slot --slot b", "@b", 1, 0, 0, 0},
        {REDIS HASH "--workload slot --slot b", "@a", 1, 0, 0, 1},
    };
    EXPECT(outcomes, false);
}

static void test_hashes(void **state)
{
    (void)state;
    static const struct outcome outcomes[] = {
        {RECORD HASH, "*2\r\n@a@b", 1, 0, 0, 0},
        {RECORD HASH, "*2\r\n@b@a", 1, 0, 0, 2},
        {RECORD HASH, "*2\r\n" NIL NIL, 0, 1, 0, 0},
        {RECORD HASH, "*2\r\n" NIL "@b", 1, 0, 0, 1},
        {RECORD HASH "--verify form", "*2\r\n" NIL "$4\r\n1234\r\n", 1, 0, 0, 0},
        {RECORD HASH "--verify form", "*2\r\n@a$1\r\nx\r\n", 1, 0, 0, 1},
        {RECORD HASH, ERROR, 0, 0, 1, 0},
        {PAGE HASH, "*2\r\n@a@b*2\r\n" NIL NIL, 1, 1, 0, 0},
        {PAGE HASH, "*2\r\n" NIL NIL "*2\r\n@a@b", 1, 1, 0, 0},
        {PAGE HASH, ERROR "*2\r\n@a@b", 1, 0, 1, 0},
        {PAGE HASH, ERROR ERROR, 0, 0, 2, 0},
        {RECORD ALL, "*4\r\n" FIELD "@a" OTHER "@b", 1, 0, 0, 0},
        {RECORD ALL, "*4\r\n" OTHER "@b" FIELD "@a", 1, 0, 0, 0}, /* in any order */
        {RECORD ALL, "*4\r\n" OTHER "@a" FIELD "@b", 1, 0, 0, 2},
        {RECORD ALL, "*0\r\n", 0, 1, 0, 0},
        {RECORD ALL, "*2\r\n" OTHER "@b", 1, 0, 0, 1},
        {RECORD ALL, "*4\r\n" OTHER "@b" OTHER "@b", 1, 0, 0, 2},
        {RECORD ALL, "*6\r\n" FIELD "@a" OTHER "@b" KEY "@b", 1, 0, 0, 1},
        {RECORD ALL "--verify form", "*2\r\n" OTHER "$1\r\n1\r\n", 1, 0, 0, 0},
        {RECORD ALL "--verify off", "*2\r\n" KEY KEY, 1, 0, 0, 0},
        {PAGE ALL, "*0\r\n*4\r\n" OTHER "@b" FIELD "@a", 1, 1, 0, 0},
    };
    EXPECT(outcomes, false);
}

static void test_exist(void **state)
{
    (void)state;
    struct bench_case fixture;
    static const struct outcome outcomes[] = {
        {LIKED, "*2\r\n$1\r\n1\r\n$1\r\n1\r\n", 2, 0, 0, 0},
        {LIKED, "*2\r\n" NIL "$1\r\n1\r\n", 1, 1, 0, 1},
        {LIKED "--verify form", "*2\r\n" NIL "$1\r\n1\r\n", 1, 1, 0, 0},
        {LIKED, "*2\r\n$1\r\n2\r\n$1\r\n1\r\n", 2, 0, 0, 1},
        {EXIST "--hits 0", "*2\r\n" NIL NIL, 0, 2, 0, 0},
        {LIKED SETS, ":1\r\n:1\r\n", 2, 0, 0, 0},
        {LIKED SETS, ":0\r\n:1\r\n", 1, 1, 0, 1},
        {LIKED SETS, ":2\r\n:1\r\n", 2, 0, 0, 1},
        {EXIST SETS "--hits 0", ":0\r\n:0\r\n", 0, 2, 0, 0},
    };
    EXPECT(outcomes, false);
    bench_case_start_with(&load_kit, &fixture, EXIST SETS "--hits 0", false);
    bench_case_feed(&fixture, ":1\r\n:0\r\n", 8, false);
    assert_int_equal(fixture.tally.foreign, 2);
    assert_int_equal(fixture.tally.wrong, 1);
    bench_workload_destroy(fixture.workload);
}

static void test_changes(void **state)
{
    (void)state;
    static const struct outcome increments[] = {
        {REDIS HASH, ":12\r\n", 1, 0, 0, 0},
        {REDIS HASH, ":-12\r\n", 1, 0, 0, 1},
        {REDIS HASH "--load", ":0\r\n", 1, 0, 0, 1},
        {REDIS HASH "--load", ":1000\r\n", 1, 0, 0, 0},
        {REDIS SLOTS, "-ERR value is not an integer\r\n", 0, 0, 1, 0},
    };
    static const struct outcome loads[] = {
        {RECORD, "+OK\r\n", 1, 0, 0, 0},      {RECORD, "+QUEUED\r\n", 1, 0, 0, 1},
        {RECORD HASH, ":2\r\n", 1, 0, 0, 0},  {RECORD HASH, ":0\r\n", 1, 0, 0, 0},
        {RECORD HASH, ":3\r\n", 1, 0, 0, 1},  {EXIST SETS, ":1\r\n", 1, 0, 0, 0},
        {RECORD, "-OOM too\r\n", 0, 0, 1, 0},
    };
    EXPECT(increments, false);
    EXPECT(loads, true);
}

static void test_broken(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        const char *reply;
    } broken[] = {
        {RECORD, "+OK\r\n"},
        {RECORD, ":1\r\n"},
        {RECORD, "*1\r\n@r"},
        {RECORD, "END\r\n"},
        {RECORD, "\r\n"},
        {RECORD, "$3\n1,2\r\n"},
        {RECORD, "$x\r\n"},
        {RECORD, "$99999999\r\n"},
        {RECORD, "$-2\r\n"},
        {RECORD, "$3\r\n1,2xx"},
        {PAGE, "*3\r\n@r@r@r"},
        {PAGE, "*1\r\n@r"},
        {PAGE, "*-1\r\n"},
        {PAGE, NIL},
        {PAGE, "*2\r\n:1\r\n"},
        {PAGE, "*2\r\n*1\r\n"},
        {RECORD HASH, "*3\r\n@a@b@b"},
        {RECORD ALL, "*3\r\n" FIELD "@a" OTHER},
        {RECORD ALL, "*4\r\n" FIELD NIL},
        {RECORD ALL, "*4\r\n:1\r\n"},
        {REDIS HASH, "$1\r\n1\r\n"},
        {LIKED SETS, "+OK\r\n"},
    };

    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct outcome outcome = {broken[i].options, broken[i].reply, 0, 0, 0, 1};
        expect_outcome(&outcome, false, true);
    }
}

static void test_error_texts(void **state)
{
    (void)state;
    struct bench_case fixture;

    bench_case_start_with(&load_kit, &fixture, PAGE HASH "--allow MOVED", false);
    bench_case_feed(&fixture, "-MOVED 1 a:1\r\n-ERR no\r\n", 23, true);
    assert_true(fixture.reply.done);
    assert_int_equal(fixture.tally.errors, 1);
    assert_int_equal(fixture.tally.expected, 1);
    assert_string_equal(fixture.tally.error_lines[0].text, "MOVED 1 a:1");
    assert_string_equal(fixture.tally.error_lines[1].text, "ERR no");
    assert_int_equal(fixture.tally.requests, 1);
    assert_int_equal(fixture.tally.operations, 2);
    bench_workload_destroy(fixture.workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads),       cmocka_unit_test(test_reads),
        cmocka_unit_test(test_strings),     cmocka_unit_test(test_increments),
        cmocka_unit_test(test_hashes),      cmocka_unit_test(test_exist),
        cmocka_unit_test(test_changes),     cmocka_unit_test(test_broken),
        cmocka_unit_test(test_error_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
