/* The load generator's requests, and its judgement of right, missing, wrong and broken replies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/tools/bench_case.h"

#define PAGE_IDS BENCH_CASE_IDS

static size_t feed(struct bench_case *fixture, const char *text, bool bytewise)
{
    return bench_case_feed(fixture, text, strlen(text), bytewise);
}

static void page_item(const struct bench_case *fixture, size_t i, char *out)
{
    char value[64];
    int length =
        snprintf(value, sizeof(value), "%d,%d", (int)bench_workload_value(fixture->ids[i], 0),
                 (int)bench_workload_value(fixture->ids[i], 1));
    sprintf(out + strlen(out), "VALUE feed:%llu 0 %d\r\n%s\r\n",
            (unsigned long long)fixture->ids[i], length, value);
}

#define PAGE "--workload page --page-ids 3 --slots a,b"

static void check_page(bool bytewise)
{
    struct bench_case fixture;
    char reply[1024] = "";

    bench_case_start(&fixture, PAGE, false);
    for (size_t i = 0; i < PAGE_IDS; i++) {
        page_item(&fixture, i, reply);
    }
    strcat(reply, "END\r\n");
    assert_int_equal(feed(&fixture, reply, bytewise), strlen(reply));
    assert_true(fixture.reply.done && !fixture.reply.broken);
    assert_int_equal(fixture.tally.hits, 3);
    assert_int_equal(fixture.tally.misses, 0);
    assert_int_equal(fixture.tally.mismatches, 0);
    bench_workload_destroy(fixture.workload);
}

static void test_right_page(void **state)
{
    (void)state;
    check_page(false);
    check_page(true);
}

static void test_missing_are_counted(void **state)
{
    (void)state;
    struct bench_case fixture;
    char reply[1024] = "";

    bench_case_start(&fixture, PAGE, false);
    page_item(&fixture, 1, reply);
    strcat(reply, "END\r\n");
    feed(&fixture, reply, true);
    assert_true(fixture.reply.done);
    assert_int_equal(fixture.tally.hits, 1);
    assert_int_equal(fixture.tally.misses, 2);
    assert_int_equal(fixture.tally.mismatches, 0);
    bench_workload_destroy(fixture.workload);
}

/* One reply to a request of PAGE with other keys, order or values. */
static void expect_mismatch(const char *reply, uint64_t mismatches, bool broken)
{
    struct bench_case fixture;

    bench_case_start(&fixture, PAGE " --ids 1 --first 7", false);
    feed(&fixture, reply, true);
    assert_int_equal(fixture.tally.mismatches, mismatches);
    assert_int_equal(fixture.reply.broken, broken);
    assert_true(mismatches == 0 || fixture.tally.first_mismatch[0] != '\0');
    bench_workload_destroy(fixture.workload);
}

static void test_wrong_replies(void **state)
{
    (void)state;
    expect_mismatch("END\r\n", 0, false);
    expect_mismatch("VALUE feed:7 0 9\r\n1000,1000\r\nEND\r\n", 1, false);
    expect_mismatch("VALUE feed:8 0 3\r\n1,2\r\nEND\r\n", 1, false);
    expect_mismatch("VALUE feed:7\r\nEND\r\n", 1, true);
    expect_mismatch("VALUE feed:7 0 x\r\nEND\r\n", 1, true);
    expect_mismatch("VALUE feed:7 0 3\r\n1,2xxEND\r\n", 1, true);
    expect_mismatch("VALUE feed:7 0 99999999999\r\n", 1, true);
    expect_mismatch("STORED\r\n", 1, true);
    expect_mismatch("END\n", 1, true);
    expect_mismatch("\r\n", 1, true);
}

static void test_order_is_checked(void **state)
{
    (void)state;
    struct bench_case fixture;
    char reply[1024] = "";

    bench_case_start(&fixture, PAGE, false);
    page_item(&fixture, 1, reply);
    page_item(&fixture, 0, reply);
    strcat(reply, "END\r\n");
    feed(&fixture, reply, false);
    assert_int_equal(fixture.tally.mismatches, 1);
    bench_workload_destroy(fixture.workload);
}

static void test_form_and_off(void **state)
{
    (void)state;
    struct bench_case fixture;

    bench_case_start(&fixture, PAGE " --ids 1 --first 7 --verify form", false);
    feed(&fixture, "VALUE feed:7 5 5\r\n1000,\r\nVALUE feed:7 0 3\r\n1,x\r\nEND\r\n", true);
    assert_int_equal(fixture.tally.mismatches, 1);
    assert_int_equal(fixture.tally.hits, 2);
    bench_workload_destroy(fixture.workload);

    bench_case_start(&fixture, PAGE " --ids 1 --first 7 --verify off", false);
    feed(&fixture, "VALUE other 0 1\r\nx\r\nEND\r\n", true);
    assert_int_equal(fixture.tally.mismatches, 0);
    assert_true(fixture.reply.done);
    bench_workload_destroy(fixture.workload);
}

#define EXIST "--workload exist --page-ids 3 --ids 1 --first 7"

/* Feeds "VALUE … 1" for the keys of a bit set, then END, to a request of EXIST. */
static void expect_exist(const char *options, unsigned found, uint64_t hits, uint64_t wrong,
                         uint64_t mismatches)
{
    struct bench_case fixture;
    char reply[1024] = "", request[256] = "";

    bench_case_start(&fixture, options, false);
    memcpy(request, fixture.request, fixture.request_length);
    strtok(request, " \r");
    for (unsigned i = 0; i < PAGE_IDS; i++) {
        const char *key = strtok(NULL, " \r");
        if (found >> i & 1) {
            sprintf(reply + strlen(reply), "VALUE %s 0 1\r\n1\r\n", key);
        }
    }
    strcat(reply, "END\r\n");
    feed(&fixture, reply, true);
    assert_true(fixture.reply.done && !fixture.reply.broken);
    assert_int_equal(fixture.tally.hits, hits);
    assert_int_equal(fixture.tally.misses, PAGE_IDS - hits);
    assert_int_equal(fixture.tally.wrong, wrong);
    assert_int_equal(fixture.tally.mismatches, mismatches);
    bench_workload_destroy(fixture.workload);
}

static void test_exist(void **state)
{
    (void)state;
    struct bench_case fixture;

    expect_exist(EXIST " --hits 100", 7, 3, 0, 0);
    expect_exist(EXIST " --hits 0", 0, 0, 0, 0);
    expect_exist(EXIST " --hits 0 --ids 1000000", 2, 1, 1, 0); /* a foreign one may be found … */
    expect_exist(EXIST " --hits 100", 0, 0, 0, 3);             /* a loaded one never denied */
    expect_exist(EXIST " --hits 100 --ids 1000000", 5, 2, 0, 1);
    expect_exist(EXIST " --hits 100 --verify form", 0, 0, 0, 0);
    struct bench_tally tally = {.foreign = 100000, .wrong = 200};
    bench_case_start(&fixture, EXIST, true);
    assert_true(bench_workload_wrong_few(&fixture.options, &tally));
    tally.wrong = 1000; /* … but not so often */
    assert_false(bench_workload_wrong_few(&fixture.options, &tally));
    fixture.request[fixture.request_length] = '\0';
    assert_int_equal(strncmp(fixture.request, "set liked:7:u", 13), 0);
    assert_non_null(strstr(fixture.request, " 0 0 1\r\n1\r\n"));
    bench_workload_destroy(fixture.workload);
    bench_case_start(&fixture, EXIST " --hits 0 --key likes_{id}_by_{member}", false);
    assert_int_equal(strncmp(fixture.request, "get likes_7_by_f", 16), 0);
    bench_workload_destroy(fixture.workload);
}

static void test_error_line(void **state)
{
    (void)state;
    struct bench_case fixture;

    bench_case_start(&fixture, PAGE, false);
    feed(&fixture, "SERVER_ERROR disk read failed\r\n", true);
    assert_true(fixture.reply.done);
    assert_int_equal(fixture.tally.errors, 1);
    assert_int_equal(fixture.tally.expected, 0);
    assert_int_equal(fixture.tally.requests, 1);
    assert_string_equal(fixture.tally.error_lines[0].text, "SERVER_ERROR disk read failed");
    bench_workload_destroy(fixture.workload);

    bench_case_start(&fixture, PAGE " --allow SERVER_ERROR", false);
    feed(&fixture, "SERVER_ERROR disk read failed\r\n", true);
    assert_int_equal(fixture.tally.errors, 0);
    assert_int_equal(fixture.tally.expected, 1);
    assert_true(fixture.tally.error_lines[0].expected);
    bench_workload_destroy(fixture.workload);
}

static void expect_incr(const char *options, const char *reply, uint64_t hits, uint64_t misses,
                        uint64_t mismatches)
{
    struct bench_case fixture;

    bench_case_start(&fixture, options, false);
    feed(&fixture, reply, true);
    assert_int_equal(fixture.tally.hits, hits);
    assert_int_equal(fixture.tally.misses, misses);
    assert_int_equal(fixture.tally.mismatches, mismatches);
    bench_workload_destroy(fixture.workload);
}

static void test_incr(void **state)
{
    (void)state;
    struct bench_case fixture;

    bench_case_start(&fixture, "--ids 1 --first 5", false);
    assert_int_equal(fixture.request_length, strlen("incr feed:5.like 1\r\n"));
    assert_memory_equal(fixture.request, "incr feed:5.like 1\r\n", fixture.request_length);
    bench_workload_destroy(fixture.workload);
    expect_incr("", "12\r\n", 1, 0, 0);
    expect_incr("", "NOT_FOUND\r\n", 0, 1, 0);
    expect_incr("", "12x\r\n", 1, 0, 1);
    expect_incr("--load", "0\r\n", 1, 0, 1); /* no answer to an increment is below 1 */
    expect_incr("--load", "1000\r\n", 1, 0, 0);
}

static void test_load_rises(void **state)
{
    (void)state;
    struct bench_case fixture;
    char wanted[128];

    bench_case_start(&fixture, "--ids 3 --first 10 --slots a,b", true);
    assert_int_equal(bench_workload_load_requests(fixture.workload), 3);
    for (uint64_t id = 10; id < 13; id++) {
        int a = (int)bench_workload_value(id, 0), b = (int)bench_workload_value(id, 1);
        int digits = snprintf(NULL, 0, "%d,%d", a, b);
        snprintf(wanted, sizeof(wanted), "set feed:%d 0 0 %d\r\n%d,%d\r\n", (int)id, digits, a, b);
        fixture.request[fixture.request_length] = '\0';
        assert_string_equal(fixture.request, wanted);
        if (id < 12) {
            fixture.request_length =
                bench_workload_compose(fixture.workload, 0, fixture.request, fixture.ids);
        }
    }
    feed(&fixture, "STORED\r\n", true);
    assert_int_equal(fixture.tally.hits, 1);
    bench_workload_destroy(fixture.workload);
}

static void test_draws(void **state)
{
    (void)state;
    struct bench_case one, other;

    assert_in_range(bench_case_commonest(&bench_kit_product, "--workload record --ids 1000", 0), 2,
                    20);
    bench_case_start(&one, PAGE, false);
    bench_case_start(&other, PAGE, false);
    bench_workload_stream(other.workload, 0);
    bench_workload_compose(one.workload, 0, one.request, one.ids);
    bench_workload_compose(other.workload, 0, other.request, other.ids);
    assert_memory_equal(one.ids, other.ids, sizeof(one.ids));
    bench_workload_stream(other.workload, 1);
    bench_workload_compose(one.workload, 0, one.request, one.ids);
    bench_workload_compose(other.workload, 0, other.request, other.ids);
    assert_memory_not_equal(one.ids, other.ids, sizeof(one.ids));
    bench_workload_destroy(one.workload);
    bench_workload_destroy(other.workload);
}

/* Every shape gives rising ids, none above 2^63-1, as its bits say. */
static void check_shape(const char *options, uint64_t last_max)
{
    struct bench_case fixture;
    uint64_t before = 0;

    bench_case_start(&fixture, options, false);
    for (uint64_t i = 0; i < fixture.options.ids; i++) {
        uint64_t id = bench_workload_id(&fixture.options, i);
        assert_true(i == 0 || id > before);
        before = id;
    }
    assert_true(before <= last_max);
    bench_workload_destroy(fixture.workload);
}

static void test_shapes_rise(void **state)
{
    (void)state;
    check_shape("--ids 100000", 100000);
    check_shape("--ids 100000 --shape random", (1ull << 40) - 1);
    check_shape("--ids 100000 --shape seconds", BENCH_ID_MAX);
    check_shape("--ids 100000 --shape seconds --first 0", 100ull << 22);
    check_shape("--ids 100000 --shape ms --first 0", 100000ull << 22);
    check_shape("--ids 100000 --shape ms --first 0 --per-second 7", 14285715ull << 22);
    check_shape("--ids 100000 --shape ms --first 0 --per-second 1000000", 100ull << 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_page),    cmocka_unit_test(test_missing_are_counted),
        cmocka_unit_test(test_wrong_replies), cmocka_unit_test(test_order_is_checked),
        cmocka_unit_test(test_form_and_off),  cmocka_unit_test(test_error_line),
        cmocka_unit_test(test_incr),          cmocka_unit_test(test_load_rises),
        cmocka_unit_test(test_shapes_rise),   cmocka_unit_test(test_exist),
        cmocka_unit_test(test_draws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
