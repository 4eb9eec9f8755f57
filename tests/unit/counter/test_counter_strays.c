/*
 * test_counter_strays.c: strays, typos and gaps in ids of several shapes: what is normal stays
 * exact and is never refused, no table opens for a stray, and what was ahead moves whole.
 */
#include "counter/counter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>

#include "tests/support/random.h"
#include "tests/support/rows.h"

/* How far above the newest id strays lie. */
static const uint64_t distances[] = {10, 1000000, 1000000000000ull, UINT64_MAX};
#define DISTANCES (sizeof(distances) / sizeof(*distances))

static uint64_t stray_of(uint64_t id, uint64_t distance)
{
    uint64_t left = ROW_ID_MAX - id;
    return id + (distance < left ? distance : left);
}

struct stray {
    uint64_t id, number;
};

struct strays {
    size_t count;
    struct stray list[64];
};

/* A stray may be refused, if that is said; where it is taken it has to stay. */
static void put_stray(struct engine *engine, struct strays *strays, uint64_t id)
{
    struct counters_call call;
    uint64_t number = ROWS_LARGE_ONE_IN * (1000 + strays->count); /* with a value in the aux dict */
    rows_put(engine, &call, id, number);
    if (call.op.status == ENGINE_DONE) {
        strays->list[strays->count++] = (struct stray){id, number};
    } else {
        assert_int_equal(call.op.error, ENGINE_E_ID_TOO_FAR);
    }
}

static void expect_strays(struct engine *engine, const struct strays *strays)
{
    for (size_t i = 0; i < strays->count; i++) {
        rows_expect(engine, strays->list[i].id, strays->list[i].number);
    }
}

/* Ids from first to last: exact afterwards, none refused. */
static void put_normal(struct engine *engine, const struct rows_ids *ids, uint64_t first,
                       uint64_t last)
{
    for (uint64_t i = first; i < last; i++) {
        rows_put_done(engine, ids->id(i), i);
    }
}

static uint64_t expect_normal(struct engine *engine, const struct rows_ids *ids, uint64_t count)
{
    uint64_t there = 0;
    for (uint64_t i = 0; i < count; i++) {
        there += rows_expect(engine, ids->id(i), i);
    }
    counter_check(engine);
    return there;
}

/* Normal ids with strays `at` some index (0: the very first); returns the tables made. */
static uint64_t run_strays(const struct rows_ids *ids, uint64_t at, const uint64_t *further,
                           size_t count, const char *what)
{
    struct counter_config config;
    struct strays strays = {0};
    struct engine *engine = rows_open(&config, 9, false);
    put_normal(engine, ids, 0, at);
    for (size_t i = 0; i < count; i++) {
        put_stray(engine, &strays, stray_of(ids->id(at), further[i]) | 1);
    }
    put_normal(engine, ids, at, at + 3 * ROWS_TABLE_WORTH);
    assert_true(expect_normal(engine, ids, at + 3 * ROWS_TABLE_WORTH) == at + 3 * ROWS_TABLE_WORTH);
    expect_strays(engine, &strays);
    uint64_t made = rows_tables_made(engine);
    printf("%-16s %-28s at %5" PRIu64 ": %2zu of %2zu kept, %" PRIu64 " tables, %.0f layers\n",
           ids->name, what, at, strays.count, count, made, rows_figure(engine, "layers"));
    rows_close(engine);
    return made;
}

static void strays_of(const struct rows_ids *ids)
{
    static const uint64_t moments[] = {
        0, 1, 40, 2000, 3000, 3900, 4200, 4230, 2 * ROWS_TABLE_WORTH};
    for (size_t i = 0; i < sizeof(moments) / sizeof(*moments); i++) {
        uint64_t plain = run_strays(ids, moments[i], NULL, 0, "no strays");
        for (size_t k = 0; k < DISTANCES; k++) {
            uint64_t made = run_strays(ids, moments[i], &distances[k], 1, "one stray");
            assert_true(made <= plain); /* no table opens for a stray */
        }
        assert_true(run_strays(ids, moments[i], distances, DISTANCES, "all strays") <= plain);
    }
}

static void test_strays(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ROWS_SHAPES; i++) {
        strays_of(&rows_shapes[i]);
    }
}

static uint64_t far_id(uint64_t index)
{
    return (1ull << 50) + (hash_u64(index) >> 4);
}

/* Sixteen typos are as many as a cluster has, but they lie anywhere. */
static void test_typos(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    for (size_t i = 0; i < ROWS_SHAPES; i++) {
        uint64_t typos[ROW_CLUSTER];
        for (size_t k = 0; k < ROW_CLUSTER; k++) {
            typos[k] = far_id(test_random_next(&random));
        }
        uint64_t plain = run_strays(&rows_shapes[i], 3000, NULL, 0, "no strays");
        uint64_t made = run_strays(&rows_shapes[i], 3000, typos, ROW_CLUSTER, "typos");
        assert_true(made <= plain);
    }
}

/* A year without any: the ids that follow are ahead at first, with what they have in aux dicts. */
static void gap_of(const struct rows_ids *ids, uint64_t before)
{
    struct counter_config config;
    struct engine *engine = rows_open(&config, 9, false);
    for (uint64_t i = 0; i < before; i++) {
        rows_put_done(engine, ids->id(i), i);
    }
    for (uint64_t i = before; i < before + 3 * ROWS_TABLE_WORTH; i++) {
        rows_put_done(engine, ids->id(i) + ids->a_year, i);
        if (i < before + 100) {
            counter_check(engine);
        }
    }
    for (uint64_t i = 0; i < before + 3 * ROWS_TABLE_WORTH; i++) {
        uint64_t id = ids->id(i) + (i < before ? 0 : ids->a_year);
        assert_true(rows_expect(engine, id, i));
    }
    rows_put_done(engine, ids->id(before), before); /* and the old ones go on where they were */
    assert_true(rows_expect(engine, ids->id(before), before));
    printf("%-16s a year after %5" PRIu64 ": %.0f tables, %.0f ahead\n", ids->name, before,
           rows_figure(engine, "tables"), rows_figure(engine, "ahead_ids"));
    assert_true(rows_figure(engine, "tables") <=
                (double)(before + 3 * ROWS_TABLE_WORTH) / 3200 + 2);
    rows_close(engine);
}

static void test_gap(void **unused)
{
    (void)unused;
    static const uint64_t moments[] = {200, 2000, 4700, 10000};
    for (size_t i = 0; i < ROWS_SHAPES; i++) {
        for (size_t k = 0; k < sizeof(moments) / sizeof(*moments); k++) {
            gap_of(&rows_shapes[i], moments[k]);
        }
    }
}

/* Strays take all the room there is for them, and no table can open for so many: then they are
 * refused, but nothing else is. */
static void test_room_for_strays(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct counters_call call;
    uint64_t count = 0, strays = 0;
    counters_config(&config, ROWS_SLOTS);
    config.row.table_bytes = 1u << 20;
    config.aux_bytes = 1u << 20;
    config.id_spacing = 1;
    struct engine *engine = counters_create(&config);
    for (; count < 1000; count++) {
        rows_put_done(engine, rows_dense(count), count);
    }
    for (rows_put(engine, &call, far_id(0), 0); call.op.status == ENGINE_DONE;) {
        strays++;
        rows_put(engine, &call, far_id(strays), strays);
    }
    assert_int_equal(call.op.error, ENGINE_E_NO_TABLE_FREE);
    for (rows_put(engine, &call, rows_dense(count), count); call.op.status == ENGINE_DONE;) {
        count++;
        rows_put(engine, &call, rows_dense(count), count);
    }
    assert_int_equal(call.op.error, ENGINE_E_NO_TABLE_FREE);
    assert_true(count == (uint64_t)rows_figure(engine, "capacity"));
    printf("room for %" PRIu64 " strays beside %" PRIu64 " ids\n", strays, count);
    assert_true(strays > ROW_CLUSTER);
    for (uint64_t i = 0; i < count; i++) {
        assert_true(rows_expect(engine, rows_dense(i), i));
    }
    for (uint64_t i = 0; i < strays; i++) {
        assert_true(rows_expect(engine, far_id(i), i));
    }
    rows_close(engine);
}

/* More than the dict of the next table has places for, as tables are smaller by then: none is lost.
 */
static void test_strays_outgrow_the_next_table(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct counters_call call;
    uint64_t count = 1000, strays = 0, places = 1u << 13; /* the least that a dict has in bytes */
    counters_config(&config, ROWS_SLOTS);
    config.row.table_bytes = 4u << 20;
    config.aux_bytes = 4u << 20;
    config.id_spacing = 1;
    struct engine *engine = counters_create(&config);
    put_normal(engine, &rows_shapes[0], 0, count);
    for (rows_put(engine, &call, far_id(0), 0); call.op.status == ENGINE_DONE;) {
        strays++;
        rows_put(engine, &call, far_id(strays), strays);
    }
    assert_true(strays * 20 > places); /* bytes of an entry, and some more */
    config.row.table_bytes = 64u << 10;
    config.row.tables = 80; /* in bytes, more than the first takes */
    counters_reconfigure(engine, &config);
    while (rows_figure(engine, "tables") < 3) {
        rows_put_done(engine, rows_shapes[0].id(count), count);
        count++;
    }
    counter_check(engine);
    for (uint64_t i = 0; i < strays; i++) {
        assert_true(rows_expect(engine, far_id(i), i));
    }
    assert_int_equal(rows_figure(engine, "recycled_ids"), 0);
    assert_int_equal(expect_normal(engine, &rows_shapes[0], count), count);
    rows_close(engine);
}

/* With the spacing given a stray as the very first id anchors no window. */
static void test_spacing_and_stray(void **unused)
{
    (void)unused;
    struct counter_config config;
    counters_config(&config, ROWS_SLOTS);
    config.aux_bytes = 64u << 10;
    config.id_spacing = 1;
    config.row.tables = 4;
    struct engine *engine = counters_create(&config);
    rows_put_done(engine, 1ull << 60, 77);
    for (uint64_t i = 0; i < 3 * ROWS_TABLE_WORTH; i++) {
        rows_put_done(engine, rows_dense(i), i);
    }
    for (uint64_t i = 0; i < 3 * ROWS_TABLE_WORTH; i++) {
        assert_true(rows_expect(engine, rows_dense(i), i));
    }
    assert_true(rows_expect(engine, 1ull << 60, 77));
    rows_print_tables(engine, &rows_shapes[0]);
    assert_true(rows_table_figure(engine, 0, "bytes") / rows_table_figure(engine, 0, "capacity") <=
                ROWS_BYTES_MOST);
    rows_close(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strays),
        cmocka_unit_test(test_typos),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_room_for_strays),
        cmocka_unit_test(test_strays_outgrow_the_next_table),
        cmocka_unit_test(test_spacing_and_stray),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
