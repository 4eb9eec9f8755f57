/* Shares of kinds of request: reading them, drawing by them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tools/rollcall/bench_feed.h"
#include "tools/rollcall/bench_random.h"

#define DRAWS 1000000u

static void test_default(void **state)
{
    (void)state;
    struct bench_shares shares = bench_shares_default();
    uint64_t total = 0;

    for (size_t i = 0; i < BENCH_KINDS; i++) {
        assert_non_null(bench_kind_name((enum bench_kind)i));
        assert_true(shares.of[i] > 0);
        total += shares.of[i];
    }
    assert_int_equal(total, 100);
    assert_int_equal(shares.total, 100);
}

static void test_parse(void **state)
{
    (void)state;
    struct bench_shares shares = bench_shares_default();
    char error[BENCH_SHARES_ERROR_MAX];

    assert_true(bench_shares_parse("unlike=7,page=0", &shares, error));
    assert_int_equal(shares.of[BENCH_KIND_UNLIKE], 7);
    assert_int_equal(shares.of[BENCH_KIND_PAGE], 0);
    assert_int_equal(shares.total, 66);
    assert_false(bench_shares_parse("", &shares, error));
    assert_non_null(strstr(error, "page record slot"));
    shares = bench_shares_default();
    assert_false(bench_shares_parse("page=0,record=0,slot=0,incr=0,several=0,create=0,delete=0,"
                                    "exist=0,like=0,unlike=0",
                                    &shares, error));
    assert_string_equal(error, "no kind of request is left");
}

/* Each kind is drawn as often as its share says, one without a share never. */
static void test_draw(void **state)
{
    (void)state;
    struct bench_shares shares = bench_shares_default();
    char error[BENCH_SHARES_ERROR_MAX];
    uint64_t drawn[BENCH_KINDS] = {0}, random = bench_random_state(1);

    assert_true(bench_shares_parse("page=0,unlike=0", &shares, error));
    for (unsigned i = 0; i < DRAWS; i++) {
        drawn[bench_shares_draw(&shares, bench_random_next(&random))]++;
    }
    for (size_t i = 0; i < BENCH_KINDS; i++) {
        uint64_t wanted = DRAWS * shares.of[i] / shares.total;
        uint64_t off = drawn[i] > wanted ? drawn[i] - wanted : wanted - drawn[i];
        assert_true(shares.of[i] > 0 ? off < wanted / 20 : drawn[i] == 0);
    }
    assert_int_equal(bench_shares_draw(&shares, 0), BENCH_KIND_RECORD);
    assert_int_equal(bench_shares_draw(&shares, UINT64_MAX), BENCH_KIND_LIKE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_draw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
