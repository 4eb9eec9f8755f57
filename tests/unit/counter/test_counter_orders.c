/*
 * test_counter_orders.c: how many ids a row of tables in memory alone takes before it refuses one,
 * in random, falling and rising order over an empty row, and rising with strays: as many as in
 * rising order, whose tables are full but for their late room.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "row/row_private.h"
#include "tests/support/random.h"
#include "tests/support/rows.h"

#define STRAYS_ONE_IN  16u
#define NO_ID          UINT64_MAX
#define DENSE_PERCENT  98u /* of what rising ids fill */
#define LEAST_PERCENT  92u /* where layers need a wider window, as ids may go on to fall */
#define STRAYS_PERCENT 75u /* of ids in seconds, where strays below fill a table of their own */

/* Ids in the order they come. */
struct order {
    const char *name;
    void (*arrange)(uint64_t *ids, uint64_t n, struct test_random *random);
};

static void rise(uint64_t *ids, uint64_t n, struct test_random *random)
{
    (void)ids;
    (void)n;
    (void)random;
}

static void swap(uint64_t *ids, uint64_t i, uint64_t with)
{
    uint64_t id = ids[i];
    ids[i] = ids[with];
    ids[with] = id;
}

static void shuffle(uint64_t *ids, uint64_t n, struct test_random *random)
{
    for (uint64_t i = n; i > 1; i--) {
        swap(ids, i - 1, test_random_below(random, i));
    }
}

static void turn_round(uint64_t *ids, uint64_t n, struct test_random *random)
{
    (void)random;
    for (uint64_t i = 0; i < n / 2; i++) {
        swap(ids, i, n - 1 - i);
    }
}

static void scatter_strays(uint64_t *ids, uint64_t n, struct test_random *random)
{
    for (uint64_t i = STRAYS_ONE_IN - 1; i < n; i += STRAYS_ONE_IN) {
        ids[i] = test_random_below(random, ROW_ID_MAX) | 1;
    }
}

static const struct order RISING = {"rising", rise};
static const struct order RANDOM = {"random", shuffle};
static const struct order FALLING = {"falling", turn_round};
static const struct order STRAYS = {"rising, strays", scatter_strays};

static bool is_stray(uint64_t id)
{
    return id % 2 != 0; /* all others are even */
}

/* Puts ids until one that is no stray is refused, and reads all again. Returns how many there are.
 */
static uint64_t fill(const struct rows_ids *shape, unsigned tables, uint64_t n,
                     const struct order *order)
{
    struct test_random random = {17};
    struct counter_config config;
    struct counters_call call;
    struct engine *engine = rows_open(&config, tables, false);
    uint64_t stored = 0;
    uint64_t *ids = calloc(n, sizeof(*ids));
    assert_non_null(ids);
    for (uint64_t i = 0; i < n; i++) {
        ids[i] = shape->id(i);
    }
    order->arrange(ids, n, &random);
    uint64_t end = 0;
    for (; end < n; end++) {
        rows_put(engine, &call, ids[end], ids[end]);
        bool done = call.op.status == ENGINE_DONE;
        if (!done && !is_stray(ids[end])) {
            assert_int_equal(call.op.error, ENGINE_E_NO_TABLE_FREE);
            break;
        }
        stored += done;
        ids[end] = done ? ids[end] : NO_ID;
    }
    for (uint64_t i = 0; i < end; i++) {
        assert_true(ids[i] == NO_ID || rows_expect(engine, ids[i], ids[i]));
    }
    printf("%-16s %-14s %2u tables: %6" PRIu64 " of %6" PRIu64 "\n", shape->name, order->name,
           tables, stored, n);
    rows_close(engine);
    free(ids);
    return stored;
}

/* More than fit. */
static uint64_t too_many(unsigned tables)
{
    return (uint64_t)(tables + 1) * ROWS_TABLE_WORTH;
}

static void test_all_orders_fill_a_row(void **unused)
{
    static const unsigned counts[] = {2, 3, 5, 8};
    (void)unused;
    for (size_t i = 0; i < ROWS_SHAPES * sizeof(counts) / sizeof(counts[0]); i++) {
        const struct rows_ids *shape = &rows_shapes[i % ROWS_SHAPES];
        unsigned tables = counts[i / ROWS_SHAPES];
        bool dense = shape->id == rows_dense;
        uint64_t least = dense ? DENSE_PERCENT : LEAST_PERCENT;
        uint64_t strays = dense ? DENSE_PERCENT : STRAYS_PERCENT;
        uint64_t most = fill(shape, tables, too_many(tables), &RISING);
        assert_true(fill(shape, tables, most, &RANDOM) * 100 >= most * least);
        assert_true(fill(shape, tables, most, &FALLING) * 100 >= most * least);
        assert_true(fill(shape, tables, most, &STRAYS) * 100 >= most * strays);
    }
}

/* The bound: a table and its layers, each of which is looked at for an id. */
static void test_no_more_than_layers_are_filled(void **unused)
{
    const struct rows_ids *dense = &rows_shapes[0];
    unsigned tables = ROW_LAYERS_MAX + 1;
    (void)unused;
    uint64_t most = fill(dense, tables, too_many(tables), &RISING);
    assert_true(fill(dense, tables + 4, too_many(tables + 4), &RANDOM) >= most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_orders_fill_a_row),
        cmocka_unit_test(test_no_more_than_layers_are_filled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
