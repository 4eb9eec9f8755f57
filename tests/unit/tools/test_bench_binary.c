/* The load generator's binary dialect: its requests, and right, missing, wrong, broken answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/unit/tools/bench_case.h"

#define BINARY       "--protocol binary --slots a,b --ids 1 --first 7 "
#define RECORD       BINARY "--workload record "
#define PAGE         BINARY "--workload page --page-ids 3 "
#define EXIST        BINARY "--workload exist --page-ids 3 "
#define HEADER_BYTES 24
#define GET          0x00
#define SET          0x01
#define INCREMENT    0x05
#define NOOP         0x0a
#define GETKQ        0x0d
#define OPAQUE_AT    12

/* Answers under way. */
struct answers {
    char bytes[2048];
    size_t length;
};

/* The packet of a request at its bytes; the next one's place. */
static const uint8_t *packet_at(const struct bench_case *fixture, size_t number)
{
    const uint8_t *at = (const uint8_t *)fixture->request;

    while (number-- > 0) {
        at += HEADER_BYTES + at[10] * 256 + at[11];
    }
    assert_true(at < (const uint8_t *)fixture->request + fixture->request_length);
    return at;
}

/* Answers packet `number` of the request, with its opcode and opaque. */
static uint8_t *answer(struct answers *answers, const struct bench_case *fixture, size_t number,
                       uint16_t status, const char *extras, size_t extras_length, const char *key,
                       const char *value)
{
    const uint8_t *request = packet_at(fixture, number);
    uint8_t *at = (uint8_t *)answers->bytes + answers->length;
    size_t body = extras_length + strlen(key) + strlen(value);

    memset(at, 0, HEADER_BYTES);
    at[0] = 0x81;
    at[1] = request[1];
    at[3] = (uint8_t)strlen(key);
    at[4] = (uint8_t)extras_length;
    at[7] = (uint8_t)status;
    at[10] = (uint8_t)(body >> 8);
    at[11] = (uint8_t)body;
    memcpy(at + OPAQUE_AT, request + OPAQUE_AT, 4);
    at[23] = 9; /* a cas */
    memcpy(at + HEADER_BYTES, extras, extras_length);
    memcpy(at + HEADER_BYTES + extras_length, key, strlen(key));
    memcpy(at + HEADER_BYTES + extras_length + strlen(key), value, strlen(value));
    answers->length += HEADER_BYTES + body;
    return at;
}

static const char *record(void)
{
    static char text[16];

    snprintf(text, sizeof(text), "%d,%d", (int)bench_workload_value(7, 0),
             (int)bench_workload_value(7, 1));
    return text;
}

static uint8_t *found(struct answers *answers, const struct bench_case *fixture, size_t number,
                      const char *value)
{
    bool quiet = packet_at(fixture, number)[1] == GETKQ;
    return answer(answers, fixture, number, 0, "\0\0\0", 4, quiet ? "feed:7" : "", value);
}

static void expect(struct bench_case *fixture, const struct answers *answers, uint64_t hits,
                   uint64_t misses, uint64_t errors, uint64_t mismatches)
{
    for (int bytewise = 0; bytewise <= 1; bytewise++) {
        memset(&fixture->reply, 0, sizeof(fixture->reply));
        memset(&fixture->tally, 0, sizeof(fixture->tally));
        size_t taken = bench_case_feed(fixture, answers->bytes, answers->length, bytewise != 0);
        assert_true(fixture->reply.done && !fixture->reply.broken);
        assert_int_equal(taken, answers->length);
        assert_int_equal(fixture->tally.hits, hits);
        assert_int_equal(fixture->tally.misses, misses);
        assert_int_equal(fixture->tally.errors, errors);
        assert_int_equal(fixture->tally.mismatches, mismatches);
        assert_int_equal(fixture->tally.requests, 1);
    }
    bench_workload_destroy(fixture->workload);
}

static void expect_broken(struct bench_case *fixture, const struct answers *answers)
{
    bench_case_feed(fixture, answers->bytes, answers->length, true);
    assert_true(fixture->reply.broken && !fixture->reply.done);
    assert_int_equal(fixture->tally.mismatches, 1);
    assert_true(fixture->tally.first_mismatch[0] != '\0');
    bench_workload_destroy(fixture->workload);
}

/* A packet is: magic, opcode, key length, extras, body length; then its body. */
static void check_packet(const struct bench_case *fixture, size_t number, uint8_t opcode,
                         const void *extras, uint8_t extras_length, const char *key,
                         const char *value)
{
    const uint8_t *at = packet_at(fixture, number);
    size_t body = extras_length + strlen(key) + strlen(value);
    const uint8_t start[] = {0x80, opcode, 0, (uint8_t)strlen(key), extras_length, 0, 0, 0,
                             0,    0,      0, (uint8_t)body};

    assert_memory_equal(at, start, sizeof(start));
    assert_memory_equal(at + 16, "\0\0\0\0\0\0\0", 8);
    assert_memory_equal(at + HEADER_BYTES, extras, extras_length);
    assert_memory_equal(at + HEADER_BYTES + extras_length, key, strlen(key));
    assert_memory_equal(at + HEADER_BYTES + extras_length + strlen(key), value, strlen(value));
}

static void test_requests(void **state)
{
    (void)state;
    struct bench_case fixture;
    static const uint8_t extras[20] = {[7] = 1, [16] = 0xff, 0xff, 0xff, 0xff};

    bench_case_start(&fixture, BINARY "--slot b", false);
    check_packet(&fixture, 0, INCREMENT, extras, sizeof(extras), "feed:7.b", "");
    bench_workload_destroy(fixture.workload);
    bench_case_start(&fixture, RECORD, false);
    check_packet(&fixture, 0, GET, "", 0, "feed:7", "");
    assert_int_equal(fixture.request_length, HEADER_BYTES + 6);
    bench_workload_destroy(fixture.workload);
    bench_case_start(&fixture, RECORD, true);
    check_packet(&fixture, 0, SET, "\0\0\0\0\0\0\0", 8, "feed:7", record());
    bench_workload_destroy(fixture.workload);
    bench_case_start(&fixture, PAGE, false);
    for (size_t i = 0; i < 3; i++) {
        check_packet(&fixture, i, GETKQ, "", 0, "feed:7", "");
    }
    check_packet(&fixture, 3, NOOP, "", 0, "", "");
    assert_int_equal(fixture.request_length, 4 * HEADER_BYTES + 18);
    bench_workload_destroy(fixture.workload);
}

static void test_gets(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        const char *value;
        uint64_t mismatches;
    } values[] = {{RECORD, "1,1000", 1},
                  {RECORD "--verify form", "1,1000", 0},
                  {RECORD "--verify form", "1;1000", 1},
                  {RECORD "--verify off", "x", 0}};
    struct bench_case fixture;

    bench_case_start(&fixture, RECORD, false);
    struct answers right = {.length = 0};
    found(&right, &fixture, 0, record());
    expect(&fixture, &right, 1, 0, 0, 0);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct answers answers = {.length = 0};
        bench_case_start(&fixture, values[i].options, false);
        found(&answers, &fixture, 0, values[i].value);
        expect(&fixture, &answers, 1, 0, 0, values[i].mismatches);
    }
    bench_case_start(&fixture, RECORD, false);
    struct answers missing = {.length = 0};
    answer(&missing, &fixture, 0, 1, "", 0, "", "Not found");
    expect(&fixture, &missing, 0, 1, 0, 0);
    bench_case_start(&fixture, RECORD, false);
    struct answers error = {.length = 0};
    answer(&error, &fixture, 0, 0x84, "", 0, "", "");
    expect(&fixture, &error, 0, 0, 1, 0);
    assert_string_equal(fixture.tally.error_lines[0].text, "status 0x0084");
}

static void test_pages(void **state)
{
    (void)state;
    struct bench_case fixture;
    struct answers all = {.length = 0}, some = {.length = 0}, error = {.length = 0},
                   swapped = {.length = 0}, loud = {.length = 0}, other = {.length = 0};

    bench_case_start(&fixture, PAGE, false);
    for (size_t i = 0; i < 3; i++) {
        found(&all, &fixture, i, record());
    }
    answer(&all, &fixture, 3, 0, "", 0, "", "");
    expect(&fixture, &all, 3, 0, 0, 0);

    bench_case_start(&fixture, PAGE, false);
    found(&some, &fixture, 1, record());
    answer(&some, &fixture, 3, 0, "", 0, "", "");
    expect(&fixture, &some, 1, 2, 0, 0);

    bench_case_start(&fixture, PAGE, false);
    answer(&error, &fixture, 1, 0x84, "", 0, "", "disk read failed");
    found(&error, &fixture, 2, record());
    answer(&error, &fixture, 3, 0, "", 0, "", "");
    expect(&fixture, &error, 1, 1, 1, 0);
    assert_string_equal(fixture.tally.error_lines[0].text, "disk read failed");

    bench_case_start(&fixture, PAGE, false);
    found(&swapped, &fixture, 1, record());
    found(&swapped, &fixture, 0, record());
    answer(&swapped, &fixture, 3, 0, "", 0, "", "");
    expect(&fixture, &swapped, 1, 2, 0, 1);

    bench_case_start(&fixture, PAGE, false);
    answer(&loud, &fixture, 0, 1, "", 0, "", "");
    answer(&loud, &fixture, 3, 0, "", 0, "", "");
    expect(&fixture, &loud, 0, 3, 0, 1);

    bench_case_start(&fixture, PAGE, false);
    answer(&other, &fixture, 0, 0, "\0\0\0", 4, "feed:8", record());
    answer(&other, &fixture, 3, 0, "", 0, "", "");
    expect(&fixture, &other, 0, 3, 0, 1);
}

static void test_exist(void **state)
{
    (void)state;
    struct bench_case fixture;
    struct answers none = {.length = 0}, denied = {.length = 0};

    bench_case_start(&fixture, EXIST "--hits 0", false);
    answer(&none, &fixture, 3, 0, "", 0, "", "");
    expect(&fixture, &none, 0, 3, 0, 0);
    assert_int_equal(fixture.tally.foreign, 3);
    bench_case_start(&fixture, EXIST "--hits 100", false);
    answer(&denied, &fixture, 3, 0, "", 0, "", "");
    expect(&fixture, &denied, 0, 3, 0, 3);
}

static void test_changes(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        char last;
        uint64_t mismatches;
    } numbers[] = {{BINARY, 5, 0}, {BINARY "--load", 0, 1}};
    struct bench_case fixture;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct answers answers = {.length = 0};
        bench_case_start(&fixture, numbers[i].options, false);
        answer(&answers, &fixture, 0, 0, "", 0, "", "12345678");
        memset(answers.bytes + HEADER_BYTES, 0, 8);
        answers.bytes[HEADER_BYTES + 7] = numbers[i].last;
        expect(&fixture, &answers, 1, 0, 0, numbers[i].mismatches);
    }
    struct answers missing = {.length = 0}, stored = {.length = 0}, full = {.length = 0};
    bench_case_start(&fixture, BINARY, false);
    answer(&missing, &fixture, 0, 1, "", 0, "", "Not found");
    expect(&fixture, &missing, 0, 1, 0, 0);
    bench_case_start(&fixture, RECORD, true);
    answer(&stored, &fixture, 0, 0, "", 0, "", "");
    expect(&fixture, &stored, 1, 0, 0, 0);
    bench_case_start(&fixture, RECORD "--allow Out", true);
    answer(&full, &fixture, 0, 0x82, "", 0, "", "Out of memory");
    expect(&fixture, &full, 0, 0, 0, 0);
    assert_int_equal(fixture.tally.expected, 1);
}

/* A right answer to a request, but for one byte of its header. */
static void expect_spoilt(const char *options, bool load, size_t at, uint8_t byte)
{
    struct bench_case fixture;
    struct answers answers = {.length = 0};

    bench_case_start(&fixture, options, load);
    if (load) {
        answer(&answers, &fixture, 0, 0, "", 0, "", "");
    } else {
        found(&answers, &fixture, 0, record());
    }
    answers.bytes[at] = (char)byte;
    expect_broken(&fixture, &answers);
}

static void test_broken(void **state)
{
    (void)state;
    struct bench_case fixture;
    struct answers text = {.bytes = "ERROR\r\n", .length = 7}, noop = {.length = 0};

    expect_spoilt(RECORD, false, 0, 0x80);
    expect_spoilt(RECORD, false, 1, INCREMENT);
    expect_spoilt(RECORD, false, 4, 5);
    expect_spoilt(RECORD, false, 3, 1);
    expect_spoilt(RECORD, false, 3, 200);
    expect_spoilt(RECORD, false, 9, 1);
    expect_spoilt(RECORD, false, OPAQUE_AT + 3, 77);
    expect_spoilt(RECORD, true, OPAQUE_AT + 3, 77);
    expect_spoilt(RECORD, true, 1, GET);
    expect_spoilt(PAGE, false, 1, GET);
    expect_spoilt(PAGE, false, 0, 'V');
    expect_spoilt(PAGE, false, 3, 200); /* a key longer than the body */
    bench_case_start(&fixture, RECORD, false);
    expect_broken(&fixture, &text);
    bench_case_start(&fixture, PAGE, false);
    uint8_t *at = answer(&noop, &fixture, 3, 0, "", 0, "", "");
    at[OPAQUE_AT + 3] ^= 1;
    expect_broken(&fixture, &noop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests), cmocka_unit_test(test_gets),
        cmocka_unit_test(test_pages),    cmocka_unit_test(test_exist),
        cmocka_unit_test(test_changes),  cmocka_unit_test(test_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
