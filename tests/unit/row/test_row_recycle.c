/* test_row_recycle.c: which table goes, what becomes of its range, and tables opened for strays. */
#include "row/row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "row/row_private.h"
#include "row/row_room.h"
#include "tests/support/fake_row.h"

#define CAPACITY 1000
#define FILL     900
#define FIRST    100000
#define FAR      ((uint64_t)1000000000000u)
#define SAMPLE   64

static void begin(struct fake *rows, unsigned tables, bool recycle)
{
    struct row_config config = fake_config(tables, recycle);
    config.late_room = 0.1;
    fake_init(rows, &config, CAPACITY);
}

/* With a keeper that comes at once. */
static void add_every(struct fake *rows, uint64_t from, uint64_t n, uint64_t step)
{
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(fake_add(rows, from + i * step), FAKE_ADDED);
        if (row_asked(&rows->row)) {
            fake_maintain(rows);
        }
    }
}

static void add(struct fake *rows, uint64_t from, uint64_t n)
{
    add_every(rows, from, n, 1);
}

static struct row_table *table(struct fake *rows, size_t i)
{
    assert_true(i < rows->row.count);
    return rows->row.tables[i];
}

static size_t jumps(const struct fake *rows)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->row.count; i++) {
        n += rows->row.tables[i]->jumped;
    }
    return n;
}

/* -- the one opened longest ago -- */

/* Tables for strays go in their turn, though they have the largest ids. */
static void test_oldest(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 5, true);
    add(&rows, FIRST, 500);
    add(&rows, FAR, ROW_CLUSTER + 1);
    add(&rows, 2 * FAR, ROW_CLUSTER + 1);
    add(&rows, 3 * FAR, 3);
    assert_int_equal(rows.row.count, 3);
    assert_int_equal(rows.row.ahead_count, 3);
    add(&rows, FIRST + 500, 400 + FILL + 100);
    assert_int_equal(rows.row.count, 4); /* the first has gone: opened before them */
    assert_true(table(&rows, 0)->base > 0);
    assert_int_equal(jumps(&rows), 2);
    add(&rows, FIRST + 900 + FILL + 100, 3 * FILL - 100);
    assert_int_equal(jumps(&rows), 0);
    assert_int_equal(rows.row.count, 4);
    /* Their ranges went to the newest; what was apart there stays. */
    assert_int_equal(table(&rows, 3)->last, ROW_ID_MAX);
    assert_false(fake_has(&rows, FAR));
    assert_true(fake_has(&rows, 3 * FAR));
    assert_int_equal(rows.row.ahead_count, 3);          /* and is known to be ahead */
    assert_int_equal(fake_add(&rows, FAR), FAKE_BELOW); /* it was there, and would count anew */
    assert_int_equal(fake_add(&rows, 3 * FAR + 2), FAKE_THERE);
    add(&rows, 3 * FAR + 3, 1);
    assert_true(fake_is_apart(&rows, 3 * FAR + 3));
    for (uint64_t id = FIRST + 900 + FILL; id < FIRST + 900 + 4 * FILL; id++) {
        assert_true(fake_has(&rows, id));
    }
    fake_fini(&rows);
}

/* The first is where most ids come in: the second goes, and the first takes over its range. */
static void begin_taken_over(struct fake *rows)
{
    begin(rows, 5, true);
    add_every(rows, FIRST, FILL, 2);
    add(rows, FIRST + 2 * FILL, FILL);
    assert_int_equal(rows->row.count, 3);
    add_every(rows, FIRST + 1, 890, 2); /* late ones: there is a layer */
    add(rows, 1, 200);
    assert_non_null(table(rows, 0)->further);
    add(rows, FIRST + 3 * FILL, FILL);
    assert_int_equal(rows->row.count, 3);
    assert_int_equal(table(rows, 0)->serial, 0);
    assert_int_equal(table(rows, 1)->serial, 2);
    assert_int_equal(table(rows, 0)->last, FIRST + 3 * FILL - 1);
}

static void test_take_over_layered(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_taken_over(&rows);
    /* The stream has passed what is gone: the table below stays closed, and takes late ids alone.
     */
    assert_true(table(&rows, 0)->closed);
    assert_int_equal(table(&rows, 0)->dropped.count, 1);
    assert_int_equal(table(&rows, 0)->dropped.at[0].first, FIRST + 2 * FILL - 1);
    assert_int_equal(table(&rows, 0)->dropped.at[0].last, FIRST + 3 * FILL - 1);
    enum row_verdict verdict;
    assert_true(fake_try(&rows, 400, &verdict));
    assert_int_equal(verdict, ROW_INSIDE);
    for (uint64_t id = FIRST + 2 * FILL; id < FIRST + 3 * FILL; id += 7) {
        assert_null(row_route(&rows.row, id));
        assert_int_equal(fake_add(&rows, id), FAKE_BELOW);
    }
    assert_int_equal(rows.row.count, 3);
    fake_fini(&rows);
}

/* A layered table has taken over the end of the row: the one above it was recycled. */
static void begin_end_taken_over(struct fake *rows)
{
    begin(rows, 5, true);
    add_every(rows, FIRST, FILL, 2);
    add(rows, FIRST + 2 * FILL, 100);
    add_every(rows, FIRST + 1, 890, 2);
    add(rows, 1, 200);
    assert_non_null(table(rows, 0)->further);
    row_recycle(&rows->row, table(rows, 1));
    fake_maintain(rows);
}

/* Above a layered one that took over the end of the row no more is in place: a table opens. */
static void test_take_over_end(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_end_taken_over(&rows);
    assert_false(table(&rows, 0)->closed);
    assert_int_equal(fake_add(&rows, FIRST + 2 * FILL + 5), FAKE_BELOW);
    add(&rows, FIRST + 2 * FILL + 100, 10);
    assert_int_equal(rows.row.count, 2);
    assert_int_equal(table(&rows, 1)->base, FIRST + 2 * FILL + 100);
    assert_true(table(&rows, 0)->closed);
    assert_int_equal(fake_add(&rows, FIRST + 2 * FILL + 5), FAKE_BELOW);
    fake_fini(&rows);
}

/*
 * Tables are smaller by now, and no layer of its size can be had: its range goes on in tables of
 * the new size.
 */
static void test_take_over_smaller(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_end_taken_over(&rows);
    struct row_config config = rows.row.config;
    config.table_bytes /= 2;
    config.tables *= 2;
    row_reconfigure(&rows.row, &config, false);
    fake_maintain(&rows);
    uint64_t id = 201;
    while (fake_add(&rows, id) == FAKE_ADDED) {
        id++;
    }
    assert_int_equal(fake_add(&rows, id), FAKE_NO_TABLE);
    assert_int_equal(row_last_layer(table(&rows, 0))->layer, 1);
    assert_true(row_regions_free(&rows.row) > 0);
    add(&rows, FIRST + 2 * FILL + 100, CAPACITY);
    assert_true(table(&rows, 0)->closed);
    fake_fini(&rows);
}

/* All of it deleted since: the next one opens at 0, in its place. */
static void test_take_over_emptied(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_end_taken_over(&rows);
    uint64_t serial = table(&rows, 0)->serial;
    for (uint64_t id = 0; id <= FIRST + 2 * FILL; id++) {
        if (fake_has(&rows, id)) {
            fake_remove(&rows, id);
        }
    }
    assert_int_equal(row_count_of(table(&rows, 0)), 0);
    add(&rows, FIRST + 2 * FILL + 100, 10);
    assert_int_equal(rows.row.count, 1);
    assert_int_equal(table(&rows, 0)->base, 0);
    assert_true(table(&rows, 0)->serial > serial);
    add(&rows, FIRST + 2 * FILL + 110, 2 * FILL);
    fake_fini(&rows);
}

/* A full one without a layer: its next opens behind its frontier. */
static void test_take_over_full(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 5, true);
    add(&rows, FIRST, FILL);
    add(&rows, FIRST + FILL, 100);
    struct row_table *first = table(&rows, 0);
    add(&rows, 1, CAPACITY - FILL);
    assert_int_equal(first->count, CAPACITY);
    assert_true(first->closed);
    row_recycle(&rows.row, table(&rows, 1));
    fake_maintain(&rows);
    assert_false(first->closed);
    assert_int_equal(first->last, ROW_ID_MAX);
    assert_int_equal(fake_add(&rows, FIRST + FILL + 1), FAKE_BELOW);
    add(&rows, FIRST + FILL + 100, 1);
    assert_int_equal(rows.row.count, 2);
    assert_int_equal(table(&rows, 1)->base, FIRST + FILL + 100);
    assert_true(first->closed);
    assert_int_equal(fake_add(&rows, FIRST + FILL + 1), FAKE_BELOW);
    fake_fini(&rows);
}

/* -- ids of tables that went before older ones -- */

static bool in_dropped(const struct fake *rows, uint64_t first, uint64_t n)
{
    bool all = true;
    for (uint64_t i = 0; i < n; i++) {
        all = all && row_route(&rows->row, first + i) == NULL;
    }
    return all;
}

/* Jumps above a slow stream, each recycled in its turn: what they had counted never begins anew. */
static void test_dropped(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 5, true);
    add(&rows, FIRST, 500);
    for (uint64_t i = 1; i <= 14; i++) {
        add(&rows, i * FAR, ROW_CLUSTER + 1);
        add(&rows, FIRST + 500 + i, 1);
    }
    assert_int_equal(rows.row.recycled_tables, 12);
    assert_int_equal(table(&rows, 0)->serial, 0);
    assert_int_equal(table(&rows, 0)->dropped.count, 12);
    for (uint64_t i = 1; i <= 12; i++) {
        assert_true(in_dropped(&rows, i * FAR, ROW_CLUSTER + 1));
        for (uint64_t j = 0; j <= ROW_CLUSTER; j++) {
            assert_int_equal(fake_add(&rows, i * FAR + j), FAKE_BELOW);
        }
    }
    /* What was never there may come, */
    add(&rows, 3 * FAR + 1000, 1);
    assert_true(fake_is_apart(&rows, 3 * FAR + 1000));
    /* in numbers too: no table opens among those that were. */
    add(&rows, 3 * FAR + 1001, ROW_CLUSTER);
    const struct row_table *opened = row_find(&rows.row, 3 * FAR + 1000);
    assert_true(opened->base > 3 * FAR + ROW_CLUSTER && opened->base <= 3 * FAR + 1000);
    assert_true(in_dropped(&rows, 3 * FAR, ROW_CLUSTER + 1));
    assert_true(in_dropped(&rows, 7 * FAR, ROW_CLUSTER + 1));
    /* The slow stream rolls: they are known on. */
    add(&rows, FIRST + 600, 3 * FILL);
    assert_true(table(&rows, 0)->serial > 0);
    assert_true(in_dropped(&rows, 3 * FAR, ROW_CLUSTER + 1));
    assert_true(in_dropped(&rows, 12 * FAR, ROW_CLUSTER + 1));
    fake_fini(&rows);
}

/* More of them than a table knows ranges: the nearest become one. Nothing is forgotten. */
static void test_dropped_many(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 5, true);
    add(&rows, FIRST, 500);
    for (uint64_t i = 1; i <= 30; i++) {
        uint64_t far = i * FAR + (i % 2) * FAR / 4; /* each second gap is smaller */
        add(&rows, far, ROW_CLUSTER + 1);
        add(&rows, FIRST + 500 + i, 1);
        if (i == 3) {
            add(&rows, FAR + FAR / 2, 1); /* it is apart in the first small gap */
        }
    }
    assert_int_equal(rows.row.recycled_tables, 28);
    assert_int_equal(table(&rows, 0)->serial, 0);
    assert_int_equal(table(&rows, 0)->dropped.count, ROW_DROPPED_MAX);
    for (uint64_t i = 1; i <= 28; i++) {
        uint64_t far = i * FAR + (i % 2) * FAR / 4;
        assert_true(in_dropped(&rows, far, ROW_CLUSTER + 1));
        assert_int_equal(fake_add(&rows, far + ROW_CLUSTER), FAKE_BELOW);
    }
    assert_int_equal(fake_add(&rows, FAR + FAR / 2), FAKE_THERE);
    assert_int_equal(fake_add(&rows, 9 * FAR + FAR / 2), FAKE_BELOW); /* in a gap that was closed */
    add(&rows, 8 * FAR + FAR / 2, 1);                                 /* in one that was not */
    add(&rows, FIRST + 600, 3 * FILL);
    assert_true(table(&rows, 0)->serial > 0);
    assert_true(in_dropped(&rows, FAR + FAR / 4, ROW_CLUSTER + 1));
    fake_fini(&rows);
}

/* The stream comes to them: a table opens there, and they may be created again. */
static void test_dropped_reached(void **unused)
{
    (void)unused;
    struct fake rows;
    uint64_t near = FIRST + 100000;
    begin(&rows, 5, true);
    add(&rows, FIRST, 500);
    for (uint64_t i = 0; i < 3; i++) {
        add(&rows, near + i * FAR, ROW_CLUSTER + 1);
    }
    assert_int_equal(rows.row.recycled_tables, 1);
    assert_true(in_dropped(&rows, near, ROW_CLUSTER + 1));
    uint64_t id = FIRST + 500;
    while (id < near - ROW_CLUSTER) {
        assert_true(in_dropped(&rows, near, ROW_CLUSTER + 1));
        add(&rows, id++, 1);
    }
    add(&rows, near, 10); /* none of the stream is refused */
    uint64_t base = row_find(&rows.row, near)->base;
    assert_true(base <= near && base > near - ROW_CLUSTER);
    assert_int_equal(table(&rows, 0)->dropped.count, 0);
    assert_non_null(row_route(&rows.row, near + ROW_CLUSTER));
    add(&rows, near + 10, 100);
    fake_fini(&rows);
}

/* A late write to one of them is no stream, however far the table below may reach. */
static void test_dropped_afar(void **unused)
{
    (void)unused;
    struct fake rows;
    uint64_t near = FIRST + FILL + 950;
    begin(&rows, 6, true);
    add(&rows, FIRST, 200);
    add(&rows, near, ROW_CLUSTER + 1);
    add(&rows, FIRST + 200, FILL - 200);
    for (uint64_t i = 1; i < 4; i++) {
        add(&rows, near + i * FAR, ROW_CLUSTER + 1);
    }
    fake_maintain(&rows);
    const struct row_table *below = row_find(&rows.row, near);
    assert_true(in_dropped(&rows, near, ROW_CLUSTER + 1));
    assert_int_equal(below->base, FIRST + FILL);
    assert_true(near <= row_reaches(below)); /* of a table that is empty */
    assert_int_equal(fake_add(&rows, near + 3), FAKE_BELOW);
    for (uint64_t id = FIRST + FILL; id < near; id++) {
        bool afar = id < FIRST + FILL + 800;
        if (afar) {
            assert_int_equal(fake_add(&rows, near + 3), FAKE_BELOW);
        }
        add(&rows, id, 1);
        assert_true(!afar || in_dropped(&rows, near, ROW_CLUSTER + 1));
    }
    add(&rows, near, ROW_CLUSTER); /* none of the stream is refused */
    fake_fini(&rows);
}

#define SECOND  100000u /* of ids */
#define BURST   200u    /* ids of one */
#define SECONDS 30u

static void add_second(struct fake *rows, uint64_t second)
{
    add(rows, FIRST + second * SECOND, BURST);
}

/* A stream of bursts comes there with one of its own steps. */
static void test_dropped_stepped_to(void **unused)
{
    (void)unused;
    struct fake rows;
    uint64_t near = FIRST + SECONDS * SECOND;
    begin(&rows, 6, true);
    add_second(&rows, 0);
    add_second(&rows, 1);
    for (uint64_t i = 0; i < 4; i++) {
        add(&rows, near + i * FAR, ROW_CLUSTER + 1);
    }
    for (uint64_t second = 2; second < SECONDS; second++) {
        assert_true(in_dropped(&rows, near, ROW_CLUSTER + 1));
        add_second(&rows, second);
    }
    assert_true(in_dropped(&rows, near, ROW_CLUSTER + 1));
    add_second(&rows, SECONDS);
    add_second(&rows, SECONDS + 1);
    fake_fini(&rows);
}

/* What was apart in its range, above its frontier, is there still, and takes part in what follows.
 */
static void test_dropped_apart(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 5, true);
    add(&rows, FIRST, 500);
    add(&rows, FAR, ROW_CLUSTER + 1);
    for (uint64_t i = 0; i < 3; i++) {
        add(&rows, FAR + 100000 * (i + 1), 1);
    }
    add(&rows, 2 * FAR, ROW_CLUSTER + 1);
    add(&rows, 3 * FAR, ROW_CLUSTER + 1);
    assert_int_equal(rows.row.recycled_tables, 1);
    assert_int_equal(table(&rows, 0)->dropped.count, 1);
    assert_int_equal(fake_add(&rows, FAR + 200000), FAKE_THERE);
    add(&rows, FAR + 199990, ROW_CLUSTER - 6);
    assert_int_equal(fake_add(&rows, FAR + 200000), FAKE_THERE);
    add(&rows, FAR + 200001, FILL);
    assert_false(fake_is_apart(&rows, FAR + 200000));
    assert_int_equal(fake_add(&rows, FAR + 200000), FAKE_THERE);
    fake_fini(&rows);
}

/* -- jumps -- */

static void test_jumps(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 5, true);
    add(&rows, FIRST, 500);
    for (uint64_t i = 1; i <= 6; i++) {
        add(&rows, i * FAR, ROW_CLUSTER + 1);
        assert_true(jumps(&rows) <= 2);
        assert_true(fake_has(&rows, i * FAR));
    }
    assert_int_equal(jumps(&rows), 2);
    assert_true(fake_has(&rows, 5 * FAR));
    assert_false(fake_has(&rows, 4 * FAR));
    assert_true(fake_has(&rows, FIRST));
    assert_int_equal(table(&rows, 0)->serial, 0);
    fake_fini(&rows);
}

/* One that holds a quarter is one of the others. */
static void test_no_jump_any_more(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 5, true);
    add(&rows, FIRST, 500);
    add(&rows, FAR, CAPACITY / 4);
    add(&rows, 2 * FAR, ROW_CLUSTER + 1);
    add(&rows, 3 * FAR, ROW_CLUSTER + 1);
    assert_true(fake_has(&rows, FAR));
    assert_int_equal(jumps(&rows), 3);
    fake_fini(&rows);
}

static void begin_refusing(struct fake *rows, uint64_t strays)
{
    begin(rows, 4, false);
    add(rows, FIRST, 500);
    add(rows, FAR, ROW_CLUSTER + 1);
    add(rows, 2 * FAR, ROW_CLUSTER + 1);
    add(rows, FAR / 2, ROW_CLUSTER + 1);
    assert_int_equal(rows->row.count, 3);
    assert_true(fake_is_apart(rows, FAR / 2));
    assert_false(table(rows, 0)->refused);
    rows->apart_max = 20;
    add(rows, FAR / 2 + ROW_CLUSTER + 1, 3);
    add(rows, FIRST + 500, 20);
    for (uint64_t i = 0; i < strays; i++) { /* with others between: else they are the stream */
        add(rows, FIRST + 520 + 2 * i, 2);
        assert_int_equal(fake_add(rows, FAR / 2 + 100 + i), FAKE_TOO_FAR);
    }
}

static void test_jumps_refusing(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_refusing(&rows, 500);
    add(&rows, FIRST + 1520, 2 * CAPACITY - 100 - 1520 - 40);
    fake_fini(&rows);
}

/* Of a stream that goes on elsewhere then only the first id looks like a stray. */
static void test_leap_refused(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_refusing(&rows, 100);
    assert_int_equal(rows.row.count, 3);
    uint64_t next = FAR / 4 * 3;
    add(&rows, FIRST + 720, 2);
    assert_int_equal(fake_add(&rows, next++), FAKE_TOO_FAR);
    while (rows.row.count == 3 && next < FAR / 4 * 3 + 2 * ROW_LEAP) {
        assert_int_not_equal(fake_add(&rows, next++), FAKE_TOO_FAR);
    }
    assert_int_equal(rows.row.count, 4);
    add(&rows, next, 100);
    fake_fini(&rows);
}

/*
 * More of a stream come than there is room for, while a table that its first ids opened has not
 * come yet. What lies above that one too is known as the stream by then: no id of it is refused.
 */
static void test_leaps_awaited(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 8, false);
    add(&rows, FIRST, 2 * FILL);
    rows.apart_max = 100;
    uint64_t next = FAR;
    enum row_verdict verdict = ROW_APART;
    for (unsigned i = 0; verdict == ROW_APART; i++) {
        next += i == ROW_CLUSTER ? FAR : 1; /* it leaps again */
        assert_true(fake_try(&rows, next, &verdict));
    }
    assert_int_equal(verdict, ROW_WAIT);
    assert_int_equal(rows.row.ahead_count, ROW_CLUSTER); /* what opens is for the first of them */
    fake_maintain(&rows);
    assert_int_equal(table(&rows, rows.row.count - 1)->low, FAR + 1);
    rows.apart_max = fake_apart(&rows); /* others have taken the room that this made */
    add(&rows, next, CAPACITY / 2);
    fake_fini(&rows);
}

static void put(struct fake *rows, uint64_t id, enum row_verdict expected)
{
    enum row_verdict verdict;
    assert_true(fake_try(rows, id, &verdict));
    assert_int_equal(verdict, expected);
}

/* No table could be had for them after all; the stream had left the table by then. */
static void test_leaps_put_off(void **unused)
{
    (void)unused;
    struct fake rows;
    begin_refusing(&rows, 0);
    rows.apart_max = 500;
    uint64_t stream = FIRST + 520;
    uint64_t next = FAR / 4 * 3;
    while (!row_asked(&rows.row)) {
        put(&rows, stream++, ROW_INSIDE);
        put(&rows, next++, ROW_APART);
    }
    for (unsigned i = 0; i < 10; i++) {
        put(&rows, stream++, ROW_INSIDE);
    }
    for (unsigned i = 0; i < 3; i++) {
        put(&rows, next++, ROW_APART);
    }
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 3);
    rows.apart_max = fake_apart(&rows);
    assert_int_equal(fake_add(&rows, next), FAKE_NO_TABLE);
    fake_fini(&rows);
}

/* A stream has left a table, which goes before another opens for it. */
static void test_leap_handed_over(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 5, true);
    add(&rows, FIRST, 500);
    add(&rows, FAR, ROW_CLUSTER + 1);
    rows.apart_max = 3;
    for (uint64_t i = 4; i < 7; i++) {
        add(&rows, i * FAR, 1);
    }
    assert_int_equal(fake_add(&rows, 2 * FAR), FAKE_TOO_FAR);
    assert_int_equal(fake_add(&rows, 2 * FAR + 1), FAKE_NO_TABLE);
    const struct row_ahead *newest = &rows.row.ahead[rows.row.ahead_count - 1];
    uint64_t since = row_admitted(table(&rows, 1)) - newest->placed;
    row_recycle(&rows.row, table(&rows, 1));
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 1);
    newest = &rows.row.ahead[rows.row.ahead_count - 1];
    assert_int_equal(newest->id, 2 * FAR + 1);
    /* Its age is by the table below now. */
    assert_int_equal(row_admitted(table(&rows, 0)) - newest->placed, since);
    assert_int_equal(fake_add(&rows, 2 * FAR + 2), FAKE_NO_TABLE);
    for (uint64_t i = 3; rows.row.count == 1 && i < ROW_LEAP; i++) {
        assert_int_not_equal(fake_add(&rows, 2 * FAR + i), FAKE_TOO_FAR);
    }
    assert_int_equal(rows.row.count, 2);
    fake_fini(&rows);
}

/* The stream has leapt, and too many tables are there that strays opened: none opens for it yet. */
static void try_late_before_table(void)
{
    struct fake rows;
    begin_refusing(&rows, 100);
    uint64_t next = FAR / 4 * 3;
    for (unsigned i = 0; i < 2 * ROW_CLUSTER; i++) {
        (void)fake_add(&rows, next++);
    }
    assert_int_equal(rows.row.count, 3);
    assert_int_equal(fake_add(&rows, FAR / 8), FAKE_NO_TABLE);
    fake_fini(&rows);
}

/* Late ids, far above the table they belong to: what the stream has passed is not ahead of it. */
static void test_late_refused(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 5, false);
    add(&rows, FIRST, 500);
    rows.apart_max = 3;
    for (uint64_t i = 4; i < 7; i++) {
        add(&rows, i * FAR, 1);
    }
    assert_int_equal(fake_add(&rows, FAR / 2), FAKE_TOO_FAR);
    uint64_t next = FAR;
    assert_int_equal(fake_add(&rows, next++), FAKE_TOO_FAR);
    for (unsigned i = 0; i < ROW_CLUSTER - 2; i++) {
        assert_int_equal(fake_add(&rows, next++), FAKE_NO_TABLE);
    }
    assert_int_equal(fake_add(&rows, next), FAKE_ADDED);
    assert_int_equal(rows.row.count, 2);
    add(&rows, next + 1, 100);
    assert_int_equal(fake_add(&rows, FAR / 4), FAKE_NO_TABLE);
    assert_int_equal(fake_add(&rows, 8 * FAR), FAKE_TOO_FAR);
    fake_fini(&rows);
    try_late_before_table();
}

/* Where only memory is missing what has no room apart may be the stream itself, gone on. */
static void test_jump_without_memory(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 3, false);
    add(&rows, FIRST, 2 * FILL + 100);
    assert_int_equal(rows.row.count, 3);
    rows.apart_max = 20;
    add(&rows, FAR, 20);
    assert_false(table(&rows, 2)->refused);
    assert_int_equal(fake_add(&rows, FAR + 20), FAKE_NO_TABLE);
    add(&rows, FIRST + 2 * FILL + 100, 100); /* the others go on */
    struct row_config config = rows.row.config;
    config.tables = 4;
    row_reconfigure(&rows.row, &config, false);
    fake_maintain(&rows);
    for (uint64_t i = 0; i < ROW_LEAP; i++) { /* the last table is for no strays */
        fake_add(&rows, FAR + 20 + i);
    }
    add(&rows, FAR + 20 + ROW_LEAP, 100);
    assert_int_equal(rows.row.count, 4);
    assert_int_equal(table(&rows, 3)->low, FAR);
    fake_fini(&rows);
}

/* The stream goes on above a table for strays, and there may be no more of such. */
static void test_gap_above_jump(void **unused)
{
    (void)unused;
    for (unsigned tables = 3; tables <= 5; tables++) {
        struct fake rows;
        begin(&rows, tables, true);
        rows.apart_max = 100;
        add(&rows, FIRST, 500);
        for (uint64_t i = 1; i < tables; i++) {
            add(&rows, i * FAR, ROW_CLUSTER + 1);
        }
        add(&rows, 10 * FAR, 5 * FILL);
        assert_true(table(&rows, rows.row.count - 1)->base > 10 * FAR);
        assert_true(fake_has(&rows, 10 * FAR + 5 * FILL - 1));
        fake_fini(&rows);
    }
}

/* Single strays go on for ever: they are no stream. */
static void try_share(uint64_t between, bool opens)
{
    struct fake rows;
    struct row_config config = fake_config(8, false);
    fake_init(&rows, &config, 10 * CAPACITY);
    add(&rows, FIRST, 500);
    uint64_t next = FIRST + 500;
    for (uint64_t i = 0; i < ROW_BULK; i++) {
        add(&rows, next, between);
        next += between;
        add(&rows, FAR + i * 10000000, 1);
    }
    assert_int_equal(rows.row.count, opens ? 2 : 1);
    if (!opens) {
        rows.apart_max = ROW_BULK;
        assert_int_equal(fake_add(&rows, 2 * FAR), FAKE_TOO_FAR);
        /* Those of the stream are, however many came before. */
        for (uint64_t i = 0; i < ROW_BULK && rows.row.count == 1; i++) {
            fake_add(&rows, 3 * FAR + i * 10000000);
        }
        assert_int_equal(rows.row.count, 2);
    }
    fake_fini(&rows);
}

static void test_share(void **unused)
{
    (void)unused;
    try_share(0, true);
    try_share(2, false);
}

/* What the table had when they came is remembered beyond its end. */
static void test_share_moved(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 8, false);
    uint64_t next = FIRST;
    add(&rows, next, 500);
    next += 500;
    for (uint64_t i = 0; i < ROW_BULK + 20; i++) {
        add(&rows, next, 8);
        next += 8;
        add(&rows, FAR + i * 10000000, 1);
    }
    assert_true(rows.row.count > 2);
    assert_int_equal(jumps(&rows), 0);
    fake_fini(&rows);
}

/* -- reviewed before -- */

/* Another configuration has a smaller sample than there is already. */
static void test_smaller_sample(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 4, true);
    add(&rows, FIRST, SAMPLE - 4);
    struct row_config config = rows.row.config;
    config.sample = SAMPLE / 2;
    row_reconfigure(&rows.row, &config, false);
    row_check(&rows.row);
    add(&rows, FIRST + SAMPLE - 4, 500);
    assert_true(table(&rows, 0)->settled);
    assert_int_equal(table(&rows, 0)->apart, 0);
    fake_fini(&rows);
}

/* What cannot go in place stays apart, and nothing is lost. */
static void test_not_placed(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 4, true);
    add(&rows, FIRST, 500);
    add(&rows, FAR, 3);
    rows.refuse_place = true;
    add(&rows, FAR + 3, ROW_CLUSTER - 3);
    assert_int_equal(rows.row.count, 2);
    for (uint64_t i = 0; i < ROW_CLUSTER; i++) {
        assert_true(fake_is_apart(&rows, FAR + i));
    }
    rows.refuse_place = false;
    add(&rows, FAR + ROW_CLUSTER, CAPACITY); /* its table closes */
    for (uint64_t i = 0; i < ROW_CLUSTER; i++) {
        assert_true(fake_has(&rows, FAR + i) && !fake_is_apart(&rows, FAR + i));
    }
    assert_int_equal(rows.row.recycled_ids, 0);
    fake_fini(&rows);
}

/* What is apart would fill the next table, which is so small by now: each id would open another. */
static void test_swamped(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 8, true);
    add(&rows, FIRST, 200);
    for (unsigned i = 0; i < 60; i++) {
        add(&rows, FAR + i * FAR / 64, 1); /* anywhere */
    }
    rows.capacity = 100;
    add(&rows, FIRST + 200, CAPACITY - 260);
    add(&rows, FIRST + CAPACITY - 60, 200);
    assert_in_range(rows.row.count, 2, 4);
    assert_int_equal(rows.row.recycled_ids, 0);
    for (unsigned i = 0; i < 60; i++) {
        assert_true(fake_is_apart(&rows, FAR + i * FAR / 64));
    }
    fake_fini(&rows);
}

/* Neither figures that mean nothing, nor numbers beyond all ids. */
static void test_figures(void **unused)
{
    (void)unused;
    struct fake rows;
    struct row_config config = {.any_ids = true, .table_bytes = 4096};
    fake_init(&rows, &config, CAPACITY);
    struct fake_seen seen = {.length = 0};
    struct emitter to = {fake_see, &seen};
    row_emit_table(&rows.row, table(&rows, 0), &to);
    assert_null(strstr(seen.text, "reach"));
    assert_null(strstr(seen.text, "fill"));
    assert_non_null(strstr(seen.text, "0:state=open\n"));
    fake_fini(&rows);

    begin(&rows, 4, false);
    add(&rows, FIRST, 500);
    table(&rows, 0)->reach_min = UINT64_MAX;
    seen.length = 0;
    row_emit_table(&rows.row, table(&rows, 0), &to);
    assert_non_null(strstr(seen.text, "0:reach=9223372036854775807\n"));
    assert_non_null(strstr(seen.text, "0:fill=900\n"));
    fake_fini(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oldest),
        cmocka_unit_test(test_take_over_layered),
        cmocka_unit_test(test_take_over_end),
        cmocka_unit_test(test_take_over_smaller),
        cmocka_unit_test(test_take_over_emptied),
        cmocka_unit_test(test_take_over_full),
        cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_dropped_many),
        cmocka_unit_test(test_dropped_reached),
        cmocka_unit_test(test_dropped_afar),
        cmocka_unit_test(test_dropped_stepped_to),
        cmocka_unit_test(test_dropped_apart),
        cmocka_unit_test(test_jumps),
        cmocka_unit_test(test_no_jump_any_more),
        cmocka_unit_test(test_jumps_refusing),
        cmocka_unit_test(test_leap_refused),
        cmocka_unit_test(test_leaps_awaited),
        cmocka_unit_test(test_leaps_put_off),
        cmocka_unit_test(test_leap_handed_over),
        cmocka_unit_test(test_late_refused),
        cmocka_unit_test(test_gap_above_jump),
        cmocka_unit_test(test_share),
        cmocka_unit_test(test_share_moved),
        cmocka_unit_test(test_smaller_sample),
        cmocka_unit_test(test_not_placed),
        cmocka_unit_test(test_swamped),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_jump_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
