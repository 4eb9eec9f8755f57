/* test_row_dropped.c: the list of ranges beside a plain set of ids. */
#include "row/row_dropped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/support/random.h"

#define IDS   400u
#define STEPS 200000u

static void expect(const struct row_dropped *dropped, const bool *ids)
{
    assert_true(row_dropped_sound(dropped, 0, IDS - 1));
    for (uint64_t id = 0; id < IDS; id++) {
        assert_int_equal(row_dropped_has(dropped, id), ids[id]);
    }
}

static uint64_t ranges_of(const bool *ids)
{
    uint64_t n = 0;
    for (uint64_t id = 0; id < IDS; id++) {
        n += ids[id] && (id == 0 || !ids[id - 1]);
    }
    return n;
}

/* What is left out is one range: the one of fewest ids. */
static void expect_left_out(const struct row_dropped *dropped, bool *ids, uint64_t left_out)
{
    uint64_t missing = 0;
    for (uint64_t id = 0; id < IDS; id++) {
        missing += ids[id] && !row_dropped_has(dropped, id);
        ids[id] = row_dropped_has(dropped, id);
    }
    assert_int_equal(missing, left_out);
    assert_int_equal(ranges_of(ids), ROW_DROPPED_MAX);
    for (uint64_t i = 0; i < dropped->count; i++) {
        assert_true(dropped->at[i].last - dropped->at[i].first + 1 >= left_out);
    }
}

static void split(struct row_dropped *dropped, bool *ids, uint64_t base)
{
    struct row_dropped above;
    uint64_t again = row_dropped_above(dropped, base, &above);
    uint64_t opened = base;
    while (again > 0 && opened < IDS && ids[opened]) {
        opened++;
    }
    assert_int_equal(opened - base, again);
    bool high[IDS] = {false};
    memcpy(high + opened, ids + opened, (IDS - opened) * sizeof(*ids));
    expect(&above, high);
    row_dropped_cut(dropped, base);
    memset(ids + base, false, (IDS - base) * sizeof(*ids));
    expect(dropped, ids);
    if (above.count > 0 && again > 0) { /* the one above goes on with what it got */
        *dropped = above;
        memcpy(ids, high, sizeof(high));
    }
}

static void look(const struct row_dropped *dropped, const bool *ids, uint64_t id)
{
    uint64_t next = id + 1;
    while (next + 1 < IDS && !(ids[next] && ids[next + 1] && !ids[next - 1])) {
        next++;
    }
    assert_int_equal(row_dropped_next(dropped, id), next + 1 < IDS ? next : UINT64_MAX);
    uint64_t floor = id;
    while (floor > 0 && !ids[floor - 1]) {
        floor--;
    }
    assert_true(ids[id] || row_dropped_floor(dropped, id) == floor);
    assert_true(row_dropped_floor(dropped, id) <= id);
}

static void test_random(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    struct row_dropped dropped = {0};
    bool ids[IDS] = {false};
    uint64_t left_outs = 0;
    for (unsigned step = 0; step < STEPS; step++) {
        uint64_t first = test_random_below(&random, IDS);
        if (test_random_once_in(&random, 40)) {
            split(&dropped, ids, first);
        }
        uint64_t most = IDS - first < 12 ? IDS - first : 12;
        uint64_t last = first + test_random_below(&random, most);
        uint64_t left_out = row_dropped_add(&dropped, first, last);
        memset(ids + first, true, last - first + 1);
        if (left_out > 0) {
            left_outs++;
            expect_left_out(&dropped, ids, left_out);
        }
        expect(&dropped, ids);
        look(&dropped, ids, test_random_below(&random, IDS - 1));
    }
    assert_true(left_outs > 0);
}

static void test_sound(void **unused)
{
    (void)unused;
    struct row_dropped dropped = {.count = 2, .at = {{10, 20}, {30, 30}}};
    assert_true(row_dropped_sound(&dropped, 10, 30));
    assert_false(row_dropped_sound(&dropped, 11, 30));
    assert_false(row_dropped_sound(&dropped, 10, 29));
    dropped.at[1].first = 21; /* it meets the first */
    assert_false(row_dropped_sound(&dropped, 10, 30));
    dropped.at[1] = (struct row_range){31, 30};
    assert_false(row_dropped_sound(&dropped, 10, 30));
    dropped.count = ROW_DROPPED_MAX + 1;
    assert_false(row_dropped_sound(&dropped, 10, 30));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
