/* test_row.c: routing, settling, ahead ids, opening; each rule of row.h by itself. */
#include "row/row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/fake_row.h"

#define CAPACITY 4000
#define TABLES   32
#define FIRST    1000 /* id of the dense streams */
#define SAMPLE   64
#define FAR      ((uint64_t)1000000000000u)

static void begin(struct fake *rows)
{
    struct row_config config = fake_config(TABLES, false);
    config.late_room = 0.1;
    fake_init(rows, &config, CAPACITY);
}

static void add(struct fake *rows, uint64_t from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(fake_add(rows, from + i), FAKE_ADDED);
    }
}

/* So far that the first table has settled at FIRST, with n ids on end. */
static void begin_dense(struct fake *rows, uint64_t n)
{
    begin(rows);
    add(rows, FIRST, n);
    fake_maintain(rows);
    assert_true(rows->row.tables[0]->settled);
}

static struct row_table *table(struct fake *rows, size_t i)
{
    assert_true(i < rows->row.count);
    return rows->row.tables[i];
}

/* -- routing -- */

static void test_find(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows);
    assert_ptr_equal(row_find(&rows.row, 0), rows.row.tables[0]);
    assert_ptr_equal(row_find(&rows.row, ROW_ID_MAX), rows.row.tables[0]);
    add(&rows, FIRST, (uint64_t)CAPACITY * 25);
    struct row *row = &rows.row;
    assert_true(row->count > ROW_LOOKED_AT + 4);
    for (size_t i = 0; i < row->count; i++) {
        assert_ptr_equal(row_find(row, row->bases[i]), row->tables[i]);
        assert_ptr_equal(row_find(row, row->tables[i]->last), row->tables[i]);
    }
    /* Below the oldest there is nothing. */
    row_check(row);
    uint64_t base = row->bases[0];
    row->bases[0] = 10;
    assert_null(row_find(row, 9));
    assert_ptr_equal(row_find(row, 10), row->tables[0]);
    row->bases[0] = base;
    fake_fini(&rows);
}

/* -- settling -- */

static void test_settle(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows);
    assert_int_equal(fake_add(&rows, FAR), FAKE_ADDED); /* the very first is a stray */
    assert_int_equal(fake_add(&rows, 3), FAKE_ADDED);
    add(&rows, FIRST, SAMPLE - 2);
    struct row_table *first = table(&rows, 0);
    assert_false(first->settled);
    assert_true(row_asked(&rows.row));
    assert_int_equal(first->apart, SAMPLE);
    assert_true(fake_is_apart(&rows, FIRST));
    /* The sample is full: the next waits. */
    enum row_verdict verdict;
    assert_true(fake_try(&rows, FIRST + 500, &verdict));
    assert_int_equal(verdict, ROW_WAIT);
    fake_maintain(&rows);
    assert_true(first->settled);
    assert_false(first->closed);
    assert_int_equal(first->frontier, FIRST + SAMPLE - 3);
    assert_int_equal(first->low, FIRST); /* 3 is a stray as well */
    assert_int_equal(first->apart, 1);
    assert_true(fake_is_apart(&rows, FAR));
    assert_false(fake_is_apart(&rows, FIRST));
    assert_int_equal(fake_add(&rows, FIRST + 500), FAKE_ADDED);
    assert_int_equal(first->frontier, FIRST + 500);
    fake_fini(&rows);
}

/* What was deleted meanwhile does no harm; an id may be created twice. */
static void test_settle_after_removals(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows);
    add(&rows, FIRST, SAMPLE / 2);
    for (uint64_t id = FIRST; id < FIRST + SAMPLE / 2; id++) {
        fake_remove(&rows, id);
    }
    assert_int_equal(table(&rows, 0)->apart, 0);
    add(&rows, FIRST, SAMPLE / 2);
    fake_maintain(&rows);
    assert_true(table(&rows, 0)->settled);
    assert_int_equal(table(&rows, 0)->count, SAMPLE / 2);
    assert_int_equal(table(&rows, 0)->frontier, FIRST + SAMPLE / 2 - 1);
    fake_fini(&rows);
}

/* The room apart is smaller than the sample: it settles with what it has. */
static void test_settle_early(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows);
    rows.apart_max = ROW_SAMPLE_MIN - 1;
    add(&rows, FIRST, ROW_SAMPLE_MIN - 1);
    add(&rows, FIRST + ROW_SAMPLE_MIN, SAMPLE);
    assert_true(table(&rows, 0)->settled);
    fake_fini(&rows);

    begin(&rows);
    rows.apart_max = 2;
    add(&rows, FIRST, 2);
    assert_int_equal(fake_add(&rows, FIRST + 2), FAKE_TOO_FAR);
    assert_false(table(&rows, 0)->settled);
    fake_fini(&rows);
}

/* A window that ends below the frontier bounds it; what lies behind is a stream: a table opens. */
static void test_settle_window(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows);
    rows.window = 100;
    for (uint64_t i = 0; i < SAMPLE; i++) {
        add(&rows, FIRST + i * 4, 1);
    }
    fake_maintain(&rows);
    assert_int_equal(table(&rows, 0)->window_last, FIRST + 99);
    assert_true(table(&rows, 0)->frontier <= FIRST + 99);
    assert_int_equal(rows.row.count, 2);
    assert_int_equal(table(&rows, 1)->base, FIRST + 100);
    assert_int_equal(table(&rows, 1)->frontier, FIRST + 196); /* again as far as its window */
    assert_true(fake_is_apart(&rows, FIRST + 252));
    fake_fini(&rows);
}

/* -- ahead -- */

static void test_ahead(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_dense(&rows, CAPACITY / 4 - 2);
    struct row_table *first = table(&rows, 0);
    uint64_t frontier = first->frontier;
    uint64_t passed = first->trusted - first->low;
    assert_true(frontier - first->trusted <= (uint64_t)2 * ROW_CLUSTER);
    uint64_t ahead = first->trusted + 4 * passed + 1;
    add(&rows, ahead, 1);
    assert_true(fake_is_apart(&rows, ahead));
    assert_int_equal(first->frontier, frontier);
    assert_int_equal(first->apart, 1);
    assert_int_equal(first->count, CAPACITY / 4 - 2);
    add(&rows, ahead - 1, 1);
    assert_false(fake_is_apart(&rows, ahead - 1));
    assert_int_equal(first->frontier, ahead - 1);
    fake_remove(&rows, ahead);
    assert_int_equal(first->apart, 0);
    fake_fini(&rows);
}

/* Strays that were taken in do not let further ones in, though the frontier moved. */
static void test_ahead_of_strays(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_dense(&rows, CAPACITY / 8);
    struct row_table *first = table(&rows, 0);
    uint64_t trusted = first->trusted;
    uint64_t limit = trusted + 4 * (trusted - first->low);
    for (uint64_t i = 0; i < 3; i++) {
        add(&rows, limit - 3 + i, 1);
        add(&rows, limit + 1 + i, 1);
        assert_true(fake_is_apart(&rows, limit + 1 + i));
        assert_int_equal(first->frontier, limit - 3 + i);
    }
    assert_int_equal(first->trusted, trusted);
    /* Nor one that ends a round of them. */
    uint64_t next = FIRST + CAPACITY / 8;
    while (first->newer + 1 < ROW_CLUSTER) {
        add(&rows, next++, 1);
    }
    add(&rows, limit, 1);
    assert_int_equal(first->newer, 0);
    assert_true(first->trusted > trusted && first->trusted < next);
    /* They do not show how dense the ids are, either. */
    for (uint64_t id = next; id < FIRST + CAPACITY; id++) {
        assert_int_not_equal(fake_add(&rows, id), FAKE_NO_TABLE);
    }
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 2);
    assert_true(table(&rows, 1)->range > CAPACITY - 50 && table(&rows, 1)->range <= CAPACITY);
    fake_fini(&rows);
}

/* Those the frontier has passed are forgotten. */
static void test_ahead_no_more(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_dense(&rows, CAPACITY / 8);
    const uint64_t ahead = FIRST + CAPACITY - 500;
    add(&rows, ahead, ROW_CLUSTER - 1);
    assert_int_equal(rows.row.ahead_count, ROW_CLUSTER - 1);
    add(&rows, FIRST + CAPACITY / 8, 2200);
    add(&rows, FAR, 1);
    assert_int_equal(rows.row.ahead_count, 1);
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 1);
    fake_fini(&rows);
}

/* Above the window an id is ahead however near it is. */
static void test_ahead_of_window(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows);
    rows.window = 2000;
    add(&rows, FIRST, SAMPLE);
    fake_maintain(&rows);
    uint64_t last = table(&rows, 0)->window_last;
    assert_int_equal(last, FIRST + 1999);
    add(&rows, FIRST + SAMPLE, 1900);
    assert_int_equal(fake_add(&rows, last), FAKE_ADDED);
    assert_int_equal(fake_add(&rows, last + 1), FAKE_ADDED);
    assert_false(fake_is_apart(&rows, last));
    assert_true(fake_is_apart(&rows, last + 1));
    fake_fini(&rows);
}

static void test_ids_once(void **unused)
{
    (void)unused;
    struct fake rows;
    struct row_config config = fake_config(TABLES, false);
    config.ids_once = true;
    fake_init(&rows, &config, CAPACITY);
    add(&rows, FIRST, CAPACITY + 1);
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 2);
    assert_int_equal(table(&rows, 1)->range, CAPACITY); /* however dense they seem to be */
    fake_fini(&rows);
}

/* -- opening -- */

static void test_open(void **unused)
{
    (void)unused;
    struct fake rows;
    uint64_t fill = CAPACITY * 9 / 10;
    begin_dense(&rows, fill - 1);
    assert_false(row_asked(&rows.row));
    add(&rows, FAR, 1);
    assert_false(row_asked(&rows.row)); /* a stray fills nothing */
    add(&rows, FIRST + fill - 1, 10);   /* goes on until the keeper comes */
    assert_true(row_asked(&rows.row));
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 2);
    struct row_table *first = table(&rows, 0);
    struct row_table *next = table(&rows, 1);
    assert_int_equal(next->base, FIRST + fill + 9);
    assert_int_equal(first->last, next->base - 1);
    assert_true(first->closed);
    assert_false(next->closed);
    assert_int_equal(next->serial, 1);
    /* The stray is of the next one's range. */
    assert_true(fake_is_apart(&rows, FAR));
    assert_int_equal(next->count, 0);
    assert_int_equal(next->apart, 1);
    assert_int_equal(first->count, fill + 9);
    assert_int_equal(first->apart, 0);
    assert_true(next->range > CAPACITY - 50 && next->range <= CAPACITY);
    /* Late ids go on to the first. */
    assert_int_equal(fake_add(&rows, FIRST - 1), FAKE_ADDED);
    assert_int_equal(first->late, 1);
    fake_fini(&rows);
}

/* At the capacity a creation waits; the keeper is told once. */
static void test_open_waits(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_dense(&rows, SAMPLE);
    enum row_verdict verdict;
    for (uint64_t i = SAMPLE; i < CAPACITY; i++) {
        assert_true(fake_try(&rows, FIRST + i, &verdict));
        assert_int_equal(verdict, ROW_INSIDE);
    }
    assert_true(fake_try(&rows, FIRST + CAPACITY, &verdict));
    assert_int_equal(verdict, ROW_WAIT);
    assert_false(fake_has(&rows, FIRST + CAPACITY));
    assert_int_equal(table(&rows, 0)->count, CAPACITY);
    add(&rows, FIRST + CAPACITY, 1);
    assert_int_equal(rows.row.count, 2);
    assert_int_equal(rows.row.waits, 1);
    fake_fini(&rows);
}

static void count_notice(void *context)
{
    ++*(unsigned *)context;
}

static void test_notify_once(void **unused)
{
    (void)unused;
    struct fake rows;
    unsigned notices = 0;
    begin_dense(&rows, SAMPLE);
    rows.keeper = (struct engine_keeper){.notify = count_notice, .context = &notices};
    for (uint64_t i = SAMPLE; i < CAPACITY - 1; i++) {
        enum row_verdict verdict;
        assert_true(fake_try(&rows, FIRST + i, &verdict));
    }
    assert_int_equal(notices, 1);
    rows.keeper.notify = NULL;
    fake_maintain(&rows);
    fake_fini(&rows);
}

static void test_cluster(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_dense(&rows, CAPACITY / 2);
    add(&rows, FAR, ROW_CLUSTER - 1);
    assert_false(row_asked(&rows.row));
    assert_int_equal(fake_add(&rows, FAR), FAKE_THERE);
    for (unsigned i = 0; i < ROW_CLUSTER; i++) { /* one that goes and comes is still one */
        fake_remove(&rows, FAR);
        add(&rows, FAR, 1);
        assert_false(row_asked(&rows.row));
    }
    add(&rows, FAR * 2, 1);
    assert_false(row_asked(&rows.row));
    add(&rows, FAR + 100, 1);
    assert_true(row_asked(&rows.row));
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 2);
    const struct row_table *next = table(&rows, 1);
    assert_int_equal(next->low, FAR);
    assert_int_equal(next->base, FAR - 100 / 4); /* lower by a part of what they are apart */
    assert_int_equal(next->frontier, FAR + 100);
    assert_int_equal(next->count, ROW_CLUSTER);
    assert_int_equal(next->apart, 1);
    assert_false(table(&rows, 0)->closed);
    assert_true(fake_is_apart(&rows, FAR * 2));
    assert_int_equal(rows.row.ahead_count, 1);
    /* The range is known: the gap is not taken for a step. */
    assert_true(next->range > CAPACITY - 100 && next->range <= CAPACITY);
    assert_int_equal(next->reach_min, ROW_REACH_MIN);
    /* Ids between go on to the older one, whose next table lies between. */
    add(&rows, FIRST + CAPACITY / 2, CAPACITY);
    assert_int_equal(rows.row.count, 3);
    assert_int_equal(table(&rows, 1)->serial, 2);
    assert_ptr_equal(table(&rows, 2), next);
    fake_fini(&rows);
}

/* Out of order behind a gap: one table, not one for each that is lower. */
static void test_cluster_shuffled(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_dense(&rows, CAPACITY / 2);
    for (uint64_t i = 0; i < ROW_CLUSTER; i++) {
        add(&rows, FAR + 50 + i * 20, 1);
    }
    fake_maintain(&rows);
    for (uint64_t i = 0; i < 50; i++) {
        add(&rows, FAR + i, 1);
        assert_false(fake_is_apart(&rows, FAR + i));
    }
    assert_false(row_asked(&rows.row));
    assert_int_equal(rows.row.count, 2);
    assert_int_equal(table(&rows, 1)->reach_min, 4 * 300);
    fake_fini(&rows);
}

static void test_bulk(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_dense(&rows, CAPACITY / 2);
    const uint64_t step = 10000000;
    for (uint64_t i = 0; i < ROW_BULK - 1; i++) {
        add(&rows, FAR + i * step, 1);
    }
    assert_false(row_asked(&rows.row));
    add(&rows, FAR + ROW_BULK * step, 1);
    assert_true(row_asked(&rows.row));
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 2);
    assert_int_equal(table(&rows, 1)->low, FAR);
    assert_int_equal(table(&rows, 1)->apart, 0);
    assert_int_equal(table(&rows, 1)->frontier, FAR + ROW_BULK * step);
    assert_true(table(&rows, 1)->reach_min >= ROW_BULK * step / 2);
    assert_int_equal(table(&rows, 1)->range, 0); /* what was known does not hold */
    fake_fini(&rows);
}

/* No window takes enough of them: no table. What was known of the range does not bind it, though.
 */
static void test_bulk_scattered(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_dense(&rows, CAPACITY / 2);
    rows.window = FAR;
    for (uint64_t i = 1; i <= ROW_BULK; i++) {
        add(&rows, FAR + i * FAR, 1);
    }
    assert_true(row_asked(&rows.row));
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 1);
    assert_int_equal(table(&rows, 0)->bulk_from, rows.row.noted + ROW_BULK);
    rows.apart_max = ROW_BULK;
    assert_int_equal(fake_add(&rows, FAR / 2), FAKE_TOO_FAR);
    add(&rows, FIRST + CAPACITY / 2, CAPACITY * 4 / 10);
    fake_maintain(&rows); /* the others go on */
    assert_int_equal(rows.row.count, 2);
    fake_fini(&rows);
}

/* The room apart is used up. */
static void test_too_far(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_dense(&rows, CAPACITY / 2);
    rows.apart_max = ROW_LEAP + 4;
    const uint64_t step = 10000000;
    for (uint64_t i = 0; i < ROW_LEAP + 4; i++) {
        add(&rows, FAR + i * step, 1);
    }
    assert_false(row_asked(&rows.row));
    add(&rows, FAR + 100 * step, 1);
    assert_int_equal(rows.row.count, 2); /* for the bulk of them */
    assert_int_equal(table(&rows, 1)->low, FAR);
    fake_fini(&rows);

    begin_dense(&rows, CAPACITY / 2);
    rows.apart_max = ROW_CLUSTER - 2;
    for (uint64_t i = 0; i < ROW_CLUSTER - 2; i++) {
        add(&rows, FAR + i * step, 1);
    }
    assert_int_equal(fake_add(&rows, FAR + 100 * step), FAKE_TOO_FAR);
    assert_false(fake_has(&rows, FAR + 100 * step));
    assert_int_equal(rows.row.count, 1);
    add(&rows, FIRST + CAPACITY / 2, 10); /* the others go on */
    fake_fini(&rows);
}

/* The first jump is taken for the stream's step: no table a second. */
static void test_step(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows);
    const uint64_t second = (uint64_t)1 << 22;
    for (uint64_t i = 0; i < CAPACITY; i++) {
        add(&rows, FIRST + i / 500 * second + i % 500, 1);
    }
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 2);
    assert_int_equal(table(&rows, 1)->reach_min, 2 * (second - 499));
    fake_fini(&rows);
}

static void test_refused(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_dense(&rows, CAPACITY / 2);
    add(&rows, FAR, 3);
    rows.refuse_create = true;
    add(&rows, FIRST + CAPACITY / 2, CAPACITY / 2);
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 1);
    assert_true(table(&rows, 0)->refused);
    assert_int_equal(table(&rows, 0)->last, ROW_ID_MAX);
    assert_int_equal(fake_add(&rows, FIRST + CAPACITY), FAKE_NO_TABLE);
    assert_true(fake_is_apart(&rows, FAR));
    /* A deletion makes room for one; another configuration lets it be tried again. */
    fake_remove(&rows, FIRST);
    add(&rows, FIRST + CAPACITY, 1);
    rows.refuse_create = false;
    struct row_config config = rows.row.config;
    row_reconfigure(&rows.row, &config, false);
    add(&rows, FIRST + CAPACITY + 1, 1);
    assert_int_equal(rows.row.count, 2);
    fake_fini(&rows);
}

/* While no table can be had an id that has no room apart may be one of the stream. */
static void test_refused_apart(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_dense(&rows, CAPACITY / 2);
    rows.apart_max = 3;
    add(&rows, FAR, 3);
    assert_int_equal(fake_add(&rows, 2 * FAR), FAKE_TOO_FAR);
    rows.refuse_create = true;
    add(&rows, FIRST + CAPACITY / 2, CAPACITY / 2 - 10);
    fake_maintain(&rows);
    assert_true(table(&rows, 0)->refused);
    assert_int_equal(fake_add(&rows, 2 * FAR), FAKE_NO_TABLE);
    fake_fini(&rows);
}

/* A stream leaps while strays have all the room apart: one id alone is far, more of them are not.
 */
static void test_refused_leap(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_dense(&rows, CAPACITY / 2);
    rows.apart_max = 3;
    for (uint64_t i = 1; i <= 3; i++) {
        add(&rows, i * FAR, 1);
    }
    assert_int_equal(fake_add(&rows, 10 * FAR), FAKE_TOO_FAR);
    uint64_t id = 10 * FAR + 1;
    for (; rows.row.count == 1; id++) {
        enum fake_answer answer = fake_add(&rows, id);
        assert_int_equal(answer, rows.row.count == 1 ? FAKE_NO_TABLE : FAKE_ADDED);
    }
    assert_true(id <= 10 * FAR + ROW_CLUSTER);
    add(&rows, 10 * FAR, id - 1 - 10 * FAR); /* tried again; the last one is there */
    fake_fini(&rows);
}

/* Refused, it may ask again once the row has changed where there is memory. */
static void test_refused_again(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_dense(&rows, CAPACITY / 2);
    add(&rows, FAR, ROW_CLUSTER);
    fake_maintain(&rows);
    rows.refuse_create = true;
    add(&rows, FIRST + CAPACITY / 2, CAPACITY / 2);
    assert_int_equal(fake_add(&rows, FIRST + CAPACITY), FAKE_NO_TABLE);
    rows.refuse_create = false;
    assert_int_equal(fake_add(&rows, FIRST + CAPACITY), FAKE_NO_TABLE);
    add(&rows, FAR + ROW_CLUSTER, CAPACITY);
    add(&rows, FIRST + CAPACITY, 1);
    assert_int_equal(rows.row.count, 4);
    fake_fini(&rows);
}

/* -- any ids -- */

static void test_any(void **unused)
{
    (void)unused;
    struct fake rows;
    struct row_config config = {.any_ids = true, .table_bytes = 4096};
    fake_init(&rows, &config, 5);
    assert_int_equal(row_held_bytes(&rows.row), 4096);
    assert_true(table(&rows, 0)->settled);
    const uint64_t ids[] = {ROW_ID_MAX, 0, FAR, 17, 4};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(fake_add(&rows, ids[i]), FAKE_ADDED);
        assert_false(fake_is_apart(&rows, ids[i]));
    }
    assert_int_equal(table(&rows, 0)->frontier, ROW_ID_MAX);
    assert_int_equal(fake_add(&rows, 5), FAKE_NO_TABLE);
    fake_remove(&rows, 17);
    assert_int_equal(fake_add(&rows, 5), FAKE_ADDED);
    fake_maintain(&rows);
    row_clear(&rows.row);
    assert_int_equal(fake_add(&rows, 5), FAKE_ADDED);
    assert_true(table(&rows, 0)->settled);
    fake_maintain(&rows);
    fake_fini(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_settle),
        cmocka_unit_test(test_settle_after_removals),
        cmocka_unit_test(test_settle_early),
        cmocka_unit_test(test_settle_window),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_ahead_of_strays),
        cmocka_unit_test(test_ahead_no_more),
        cmocka_unit_test(test_ahead_of_window),
        cmocka_unit_test(test_ids_once),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_open_waits),
        cmocka_unit_test(test_notify_once),
        cmocka_unit_test(test_cluster),
        cmocka_unit_test(test_cluster_shuffled),
        cmocka_unit_test(test_bulk),
        cmocka_unit_test(test_bulk_scattered),
        cmocka_unit_test(test_too_far),
        cmocka_unit_test(test_refused_leap),
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_apart),
        cmocka_unit_test(test_refused_again),
        cmocka_unit_test(test_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
