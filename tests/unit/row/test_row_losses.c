/* test_row_losses.c: what a smaller memory would have a row lose, where tables have layers. */
#include "row/row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "row/row_private.h"
#include "tests/support/fake_row.h"

#define TABLES   6
#define CAPACITY 1000
#define FILL     900
#define FIRST    100000
#define LATE     200 /* more than the first table has room for */

static void add(struct fake *rows, uint64_t from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(fake_add(rows, from + i), FAKE_ADDED);
        if (row_asked(&rows->row)) {
            fake_maintain(rows);
        }
    }
}

/* Two tables, the older one with a layer: three regions. */
static void begin(struct fake *rows)
{
    struct row_config config = fake_config(TABLES, false);
    config.late_room = 0.1;
    fake_init(rows, &config, CAPACITY);
    add(rows, FIRST, FILL + 10);
    add(rows, 0, LATE);
    assert_int_equal(rows->row.count, 2);
    assert_non_null(rows->row.tables[0]->further);
    assert_null(rows->row.tables[0]->further->further);
    assert_null(rows->row.tables[1]->further);
}

/* Of a row that recycles, with so many tables of so many times the memory. */
static size_t losses_of(const struct fake *rows, unsigned tables, unsigned times,
                        struct engine_loss *loss)
{
    struct engine_loss losses[ENGINE_LOSSES_MAX] = {0};
    struct row_config next = rows->row.config;
    size_t count = 0;
    next.recycle = true;
    next.tables = tables;
    next.table_bytes *= times;
    row_losses(&rows->row, &next, losses, &count);
    *loss = losses[0];
    return count;
}

static void expect_loss(const struct fake *rows, unsigned tables, unsigned times, uint64_t lost,
                        uint64_t records)
{
    struct engine_loss loss;
    assert_int_equal(losses_of(rows, tables, times, &loss), 1);
    assert_string_equal(loss.name, ENGINE_LOSS_TABLES);
    assert_false(loss.slot);
    assert_int_equal(loss.tables, lost);
    assert_int_equal(loss.records, records);
}

/* A layer's memory counts as that of its table, and goes with it; so do its records. One more table
 * is opened besides. */
static void test_layers(void **unused)
{
    (void)unused;
    struct fake rows;
    struct engine_loss loss;
    begin(&rows);
    const uint64_t second = rows.row.tables[1]->count;
    const uint64_t first = FILL + 10 + LATE - second;
    assert_int_equal(losses_of(&rows, 4, 1, &loss), 0);
    expect_loss(&rows, 3, 1, 1, first);
    expect_loss(&rows, 2, 1, 1, first);
    expect_loss(&rows, 1, 1, 2, first + second);
    assert_int_equal(losses_of(&rows, 3, 2, &loss), 0); /* five of six */
    expect_loss(&rows, 2, 2, 1, first);                 /* five of four */
    fake_fini(&rows);
}

/* What a restart's memory was too small for is lost anyway. */
static void test_lost_anyway(void **unused)
{
    (void)unused;
    struct fake rows;
    struct engine_loss loss;
    begin(&rows);
    const uint64_t second = rows.row.tables[1]->count;
    rows.row.stored = (struct row_bounds){.tables = 3, .table_bytes = rows.row.config.table_bytes};
    assert_int_equal(losses_of(&rows, 3, 1, &loss), 0);
    assert_int_equal(losses_of(&rows, 2, 1, &loss), 0);
    expect_loss(&rows, 1, 1, 1, second);
    fake_fini(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_lost_anyway),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
