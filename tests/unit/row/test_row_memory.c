/* test_row_memory.c: layers, recycling, late room, another configuration, forgetting. */
#include "row/row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/support/fake_row.h"

#define CAPACITY    1000
#define FIRST       100000
#define FAR         ((uint64_t)1000000000000u)
#define SAMPLE      64
#define TABLE_BYTES 4096

static void begin(struct fake *rows, unsigned tables, bool recycle)
{
    struct row_config config = fake_config(tables, recycle);
    config.late_room = 0.1;
    fake_init(rows, &config, CAPACITY);
}

/* With a keeper that comes at once. */
static void add(struct fake *rows, uint64_t from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(fake_add(rows, from + i), FAKE_ADDED);
        if (row_asked(&rows->row)) {
            fake_maintain(rows);
        }
    }
}

/* Even ids on end, so that odd ones can come late; the keeper comes when one waits. */
static void add_even(struct fake *rows, uint64_t from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(fake_add(rows, from + 2 * i), FAKE_ADDED);
    }
}

static struct row_table *table(struct fake *rows, size_t i)
{
    assert_true(i < rows->row.count);
    return rows->row.tables[i];
}

/* The first table is closed at 900 even ids; odd ones fill it. */
static void close_first(struct fake *rows)
{
    add_even(rows, FIRST, 900);
    fake_maintain(rows);
    assert_int_equal(rows->row.count, 2);
    assert_true(table(rows, 0)->closed);
}

/* -- layers -- */

static void test_layer(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 4, false);
    close_first(&rows);
    struct row_table *first = table(&rows, 0);
    for (uint64_t i = 0; i < 100; i++) {
        add(&rows, FIRST + 2 * i + 1, 1);
    }
    assert_int_equal(first->count, CAPACITY);
    assert_null(first->further);
    add(&rows, FIRST + 201, 1);
    assert_non_null(first->further);
    assert_int_equal(first->further->count, 1);
    assert_int_equal(first->further->capacity, CAPACITY);
    assert_int_equal(first->late, 101);
    assert_int_equal(rows.row.count, 2);
    assert_ptr_equal(row_find(&rows.row, FIRST), first);
    /* Once it has a layer it takes nothing new, even with room again. */
    fake_remove(&rows, FIRST);
    add(&rows, FIRST, 1);
    assert_int_equal(first->count, CAPACITY - 1);
    assert_int_equal(first->further->count, 2);
    /* The layer is full: another one, for all that is new. */
    for (uint64_t i = 101; i < 898; i++) {
        add(&rows, FIRST + 2 * i + 1, 1);
    }
    add(&rows, 1, 201);
    assert_int_equal(first->further->count, CAPACITY);
    assert_null(first->further->further);
    add(&rows, 202, 1);
    const struct row_table *second = first->further->further;
    assert_non_null(second);
    assert_int_equal(second->count, 1);
    assert_int_equal(second->serial, first->serial);
    fake_remove(&rows, 201);
    add(&rows, 201, 1);
    assert_int_equal(first->further->count, CAPACITY - 1);
    assert_int_equal(second->count, 2);
    fake_check(&rows);
    /* For a third one the table above gives its memory, as nothing came there. */
    add(&rows, 203, CAPACITY - 2);
    assert_int_equal(second->count, CAPACITY);
    assert_null(second->further);
    add(&rows, 5000, 1);
    assert_non_null(second->further);
    assert_int_equal(rows.row.count, 1);
    assert_int_equal(first->last, ROW_ID_MAX);
    assert_int_equal(fake_add(&rows, FIRST + 1801), FAKE_NO_TABLE); /* above the frontier */
    add(&rows, 5001, CAPACITY - 1);
    assert_int_equal(fake_add(&rows, 9000), FAKE_NO_TABLE);
    fake_check(&rows);
    fake_fini(&rows);
}

/* One id in the table above: it stays. */
static void test_no_layer(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 2, false);
    close_first(&rows);
    add(&rows, FIRST + 1801, 1);
    for (uint64_t i = 0; i < 100; i++) {
        add(&rows, FIRST + 2 * i + 1, 1);
    }
    assert_int_equal(fake_add(&rows, FIRST + 201), FAKE_NO_TABLE);
    assert_true(table(&rows, 0)->refused_layer);
    assert_int_equal(fake_add(&rows, FIRST + 203), FAKE_NO_TABLE);
    add_even(&rows, FIRST + 1803, 999); /* the newest goes on, to its capacity */
    assert_int_equal(fake_add(&rows, FIRST + 3800), FAKE_NO_TABLE);
    fake_remove(&rows, FIRST);
    add(&rows, FIRST + 201, 1);
    fake_fini(&rows);
}

/* -- recycling -- */

static void test_recycle(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 4, true);
    add(&rows, FIRST, 900 * 10);
    fake_maintain(&rows);
    const struct row *row = &rows.row;
    assert_int_equal(row->count, 3);
    assert_int_equal(row->serials, 11);
    assert_int_equal(row->recycled_tables, 8);
    assert_int_equal(row->recycled_ids, 7200);
    assert_int_equal(table(&rows, 0)->base, FIRST + 7200);
    assert_int_equal(fake_add(&rows, FIRST + 7199), FAKE_BELOW);
    assert_true(fake_has(&rows, FIRST + 7200));
    assert_int_equal(row_held_bytes(row), 4 * TABLE_BYTES);
    assert_int_equal(rows.live, 4); /* and the one for ids apart */
    fake_fini(&rows);
}

/* The oldest just got its layer: it is not dropped for the spare. */
static void test_recycle_not_the_layered(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 3, true);
    close_first(&rows);
    for (uint64_t i = 0; i < 101; i++) {
        add(&rows, FIRST + 2 * i + 1, 1);
    }
    assert_int_equal(rows.row.count, 2);
    assert_non_null(table(&rows, 0)->further);
    /* There is no spare now: the next opening drops it, then goes on. */
    add_even(&rows, FIRST + 1801, CAPACITY + 1);
    assert_int_equal(rows.row.count, 2);
    assert_int_equal(rows.row.recycled_tables, 1);
    assert_int_equal(rows.row.recycled_ids, 1001);
    assert_int_equal(fake_add(&rows, FIRST), FAKE_BELOW);
    fake_fini(&rows);
}

/* What one opening recycles is there for a layer asked for meanwhile. */
static void test_recycle_for_layer(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 4, true);
    uint64_t next = FIRST;
    for (; rows.row.count < 3; next += 20) {
        add_even(&rows, next, 10);
        fake_maintain(&rows);
    }
    enum row_verdict verdict = ROW_INSIDE;
    for (uint64_t odd = (table(&rows, 1)->base | 1) + 2; verdict != ROW_WAIT; odd += 2) {
        assert_true(fake_try(&rows, odd, &verdict));
        assert_true(odd < table(&rows, 1)->last);
    }
    for (uint64_t i = 0; i < 900; i++) {
        assert_true(fake_try(&rows, next + i, &verdict));
    }
    const struct row_table *second = table(&rows, 1);
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 3);
    assert_ptr_equal(table(&rows, 0), second);
    assert_non_null(second->further);
    fake_fini(&rows);
}

/* One table at a time and a spare. */
static void test_recycle_two(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 2, true);
    add(&rows, FIRST, 2000);
    assert_int_equal(rows.row.count, 1);
    assert_int_equal(rows.row.recycled_tables, 2);
    /* Sixteen typos do not drop it, nor do more; where the ids go on from there drops the other. */
    uint64_t kept = table(&rows, 0)->base;
    add(&rows, FAR, ROW_BULK - 1);
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 1);
    add(&rows, FAR + ROW_BULK, 1);
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 2); /* there is no spare one now */
    assert_int_equal(table(&rows, 0)->base, kept);
    add(&rows, FAR + ROW_BULK + 1, CAPACITY);
    fake_maintain(&rows);
    assert_true(table(&rows, 0)->base > FAR);
    assert_int_equal(rows.row.count, 1);
    fake_fini(&rows);

    begin(&rows, 2, true); /* or, if it does not, the one opened for them */
    add(&rows, FIRST, 1000);
    add(&rows, FAR, ROW_BULK);
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 2);
    add(&rows, FIRST + 1000, CAPACITY);
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 1);
    assert_true(table(&rows, 0)->base < FAR);
    assert_false(fake_has(&rows, FAR));
    fake_fini(&rows);
}

static void test_one_table(void **unused)
{
    (void)unused;
    for (unsigned recycle = 0; recycle < 2; recycle++) {
        struct fake rows;
        begin(&rows, 1, recycle != 0);
        add(&rows, FIRST, CAPACITY);
        assert_int_equal(fake_add(&rows, FIRST + CAPACITY), FAKE_NO_TABLE);
        assert_int_equal(fake_add(&rows, FAR), FAKE_NO_TABLE);
        fake_remove(&rows, FIRST + 1);
        assert_int_equal(fake_add(&rows, FIRST + CAPACITY), FAKE_ADDED);
        fake_fini(&rows);
    }
}

static void test_refuse(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 3, false);
    add(&rows, FIRST, 2800);
    assert_int_equal(fake_add(&rows, FIRST + 2800), FAKE_NO_TABLE);
    assert_int_equal(fake_add(&rows, FIRST + 5), FAKE_THERE);
    assert_int_equal(rows.row.recycled_tables, 0);
    fake_fini(&rows);
}

/* -- late room -- */

static void test_late_room(void **unused)
{
    (void)unused;
    struct fake rows;
    struct row_config config = fake_config(32, false);
    fake_init(&rows, &config, CAPACITY);
    add_even(&rows, FIRST, 900);
    fake_maintain(&rows);
    assert_int_equal(table(&rows, 1)->fill, 900); /* nothing is known yet */
    /* As many come late as in time: seen when the second closes. */
    for (uint64_t i = 0; i < 900; i++) {
        add(&rows, FIRST + 2 * i + 1, 1);
    }
    add_even(&rows, FIRST + 1801, 900);
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 3);
    assert_true(rows.row.late_room > 0.599);
    assert_int_equal(table(&rows, 2)->fill, 400);
    /* None any more: half way back each time. */
    add_even(&rows, FIRST + 3600, 400);
    fake_maintain(&rows);
    assert_true(rows.row.late_room > 0.309 && rows.row.late_room < 0.311);
    fake_fini(&rows);

    begin(&rows, 32, false); /* fixed */
    close_first(&rows);
    for (uint64_t i = 0; i < 900; i++) {
        add(&rows, FIRST + 2 * i + 1, 1);
    }
    add_even(&rows, FIRST + 1801, 900);
    fake_maintain(&rows);
    assert_int_equal(table(&rows, 2)->fill, 900);
    fake_fini(&rows);
}

/* One that closed while another was open already says nothing about the life of that. */
static void test_late_room_of_a_life(void **unused)
{
    (void)unused;
    struct fake rows;
    struct row_config config = fake_config(32, false);
    fake_init(&rows, &config, CAPACITY);
    add(&rows, FIRST, 600);
    add(&rows, FAR, ROW_CLUSTER);
    add(&rows, FIRST + 600, 300);
    assert_int_equal(rows.row.count, 3);
    assert_true(table(&rows, 0)->closed);
    add(&rows, FAR + ROW_CLUSTER, 900 - ROW_CLUSTER);
    assert_int_equal(rows.row.count, 4);
    assert_true(rows.row.late_room > 0.099);
    fake_fini(&rows);
}

/* -- forgetting -- */

static void test_clear(void **unused)
{
    (void)unused;
    for (unsigned recycle = 0; recycle < 2; recycle++) {
        struct fake rows;
        begin(&rows, 3, recycle != 0);
        add(&rows, FIRST, 2500);
        add(&rows, FAR, 2);
        uint64_t serials = rows.row.serials;
        row_clear(&rows.row);
        row_check(&rows.row);
        assert_int_equal(rows.row.count, 1);
        assert_int_equal(table(&rows, 0)->serial, serials);
        assert_false(table(&rows, 0)->settled);
        assert_int_equal(rows.row.ahead_count, 0);
        assert_false(fake_has(&rows, FIRST + 2000));
        fake_maintain(&rows);
        assert_int_equal(rows.live, 2);
        assert_int_equal(row_held_bytes(&rows.row), 3 * TABLE_BYTES);
        add(&rows, 5, 2500); /* and all memory is there */
        fake_fini(&rows);
    }
}

/* Where no memory is free the first table gets other memory: nothing is cleared in the call. */
static void test_clear_full(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 2, false);
    add(&rows, FIRST, 1800);
    assert_int_equal(rows.row.count, 2);
    size_t live = rows.live;
    row_clear(&rows.row);
    row_check(&rows.row);
    assert_int_equal(rows.live, live + 1);
    assert_int_equal(row_held_bytes(&rows.row), 3 * TABLE_BYTES);
    fake_maintain(&rows);
    assert_int_equal(rows.live, live - 1);
    assert_int_equal(row_held_bytes(&rows.row), 2 * TABLE_BYTES);
    add(&rows, 5, 1800);
    fake_fini(&rows);
}

/* That memory is there before the world stops, and only where none is free. */
static void test_clear_ready(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 2, false);
    row_flush_ready(&rows.row);
    assert_int_equal(row_held_bytes(&rows.row), 2 * TABLE_BYTES);
    add(&rows, FIRST, 1800);
    row_flush_ready(&rows.row);
    row_flush_ready(&rows.row);
    assert_int_equal(row_held_bytes(&rows.row), 3 * TABLE_BYTES);
    row_check(&rows.row);
    row_clear(&rows.row);
    assert_int_equal(row_held_bytes(&rows.row), 3 * TABLE_BYTES);
    fake_maintain(&rows);
    assert_int_equal(row_held_bytes(&rows.row), 2 * TABLE_BYTES);
    fake_fini(&rows);
}

/* The system has no memory for a table of the size that is configured by now. */
static void test_clear_no_memory(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 2, false);
    add(&rows, FIRST, 1800);
    size_t live = rows.live;
    rows.row.config.table_bytes = 1ull << 60;
    row_clear(&rows.row);
    rows.row.config.table_bytes = TABLE_BYTES;
    row_check(&rows.row);
    assert_int_equal(rows.live, live - 1);
    fake_maintain(&rows);
    add(&rows, 5, 1800);
    fake_fini(&rows);
}

/* -- another configuration -- */

static void test_grow(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 2, false);
    add(&rows, FIRST, 1900);
    assert_int_equal(fake_add(&rows, FIRST + 1900), FAKE_NO_TABLE);
    struct row_config config = rows.row.config;
    config.tables = 4;
    row_reconfigure(&rows.row, &config, false);
    add(&rows, FIRST + 1900, 1900);
    assert_int_equal(row_held_bytes(&rows.row), 4 * TABLE_BYTES);
    fake_fini(&rows);
}

static void test_shrink(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 6, true);
    add(&rows, FIRST, 900 * 4 + 100);
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 5);
    struct row_config config = rows.row.config;
    config.tables = 3;
    row_reconfigure(&rows.row, &config, false);
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 5); /* what is there stays until the next opening */
    assert_int_equal(row_held_bytes(&rows.row), 5 * TABLE_BYTES); /* the spare went */
    add(&rows, FIRST + 900 * 4 + 100, 900);
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 2);
    assert_int_equal(row_held_bytes(&rows.row), 3 * TABLE_BYTES);
    fake_fini(&rows);
}

static void test_larger_tables(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 4, true);
    add(&rows, FIRST, 900 + 100);
    struct row_config config = rows.row.config;
    config.table_bytes = 2 * TABLE_BYTES;
    row_reconfigure(&rows.row, &config, true);
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 3); /* renewed: a new one at once */
    assert_int_equal(table(&rows, 2)->region->bytes, 2 * TABLE_BYTES);
    assert_int_equal(table(&rows, 2)->base, FIRST + 1000);
    assert_true(row_held_bytes(&rows.row) <= 8 * TABLE_BYTES);
    for (uint64_t i = 0; i < 10; i++) {
        add(&rows, FIRST + 1000 + i * 900, 900);
        fake_maintain(&rows);
        assert_true(row_held_bytes(&rows.row) <= 8 * TABLE_BYTES);
    }
    assert_int_equal(rows.row.count, 3);
    assert_int_equal(row_held_bytes(&rows.row), 8 * TABLE_BYTES);
    fake_fini(&rows);
}

static void test_smaller_tables(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 4, true);
    add(&rows, FIRST, 900 * 2 + 100);
    struct row_config config = rows.row.config;
    config.table_bytes = TABLE_BYTES / 2;
    row_reconfigure(&rows.row, &config, true);
    fake_maintain(&rows);
    const struct row_table *newest = table(&rows, rows.row.count - 1);
    assert_int_equal(newest->region->bytes, TABLE_BYTES / 2);
    for (uint64_t i = 0; i < 10; i++) {
        add(&rows, FIRST + 1900 + i * 900, 900);
        fake_maintain(&rows);
    }
    assert_int_equal(rows.row.count, 3);
    assert_int_equal(row_held_bytes(&rows.row), 2 * TABLE_BYTES);
    fake_fini(&rows);
}

static void test_renew_empty(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 3, false);
    struct row_config config = rows.row.config;
    row_reconfigure(&rows.row, &config, true); /* the first, with nothing in it */
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 1);
    assert_int_equal(table(&rows, 0)->serial, 1);
    add(&rows, FIRST, SAMPLE - 1);
    row_reconfigure(&rows.row, &config, true); /* unsettled: left alone */
    fake_maintain(&rows);
    assert_int_equal(table(&rows, 0)->serial, 1);
    add(&rows, FIRST + SAMPLE - 1, 900 - SAMPLE + 1);
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 2);
    uint64_t base = table(&rows, 1)->base;
    row_reconfigure(&rows.row, &config, true); /* empty, not the only one: made anew */
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 2);
    assert_int_equal(table(&rows, 1)->base, base);
    assert_int_equal(table(&rows, 1)->serial, 3);
    add(&rows, FAR, 1);
    table(&rows, 1)->reach_min = 5000;
    row_reconfigure(&rows.row, &config, true); /* nothing but a stray in it: it moves */
    fake_maintain(&rows);
    assert_int_equal(rows.row.count, 2);
    assert_int_equal(table(&rows, 1)->base, base);
    assert_int_equal(table(&rows, 1)->serial, 4);
    assert_int_equal(table(&rows, 1)->reach_min, 5000);
    assert_true(fake_is_apart(&rows, FAR));
    add(&rows, base, 899);
    fake_check(&rows);
    fake_fini(&rows);
}

/* -- memory -- */

static void test_populate(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 3, false);
    _Atomic bool stop = true;
    row_populate(&rows.row, &stop);
    assert_int_equal(rows.row.regions[0]->resident, 0);
    stop = false;
    row_populate(&rows.row, &stop);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(rows.row.regions[i]->resident, TABLE_BYTES);
        assert_int_equal(rows.row.regions[i]->pins, 0);
    }
    fake_fini(&rows);
}

static void count_notice(void *context)
{
    ++*(unsigned *)context;
}

/* What was cleared is made resident by the keeper, step by step. */
static void test_resident_again(void **unused)
{
    (void)unused;
    struct fake rows;
    unsigned notices = 0;
    _Atomic bool stop = false;
    begin(&rows, 3, true);
    add(&rows, FIRST, 2000);
    row_populate(&rows.row, &stop);
    rows.keeper = (struct engine_keeper){.notify = count_notice, .context = &notices};
    fake_maintain(&rows);
    assert_int_equal(notices, 0);
    add(&rows, FIRST + 2000, 800);
    assert_int_equal(notices, 2); /* asked to open, and for more to make resident */
    fake_maintain(&rows);
    assert_int_equal(notices, 2);
    fake_fini(&rows);
}

/* The system refuses the memory, or the engine the first table: nothing is left. */
static void test_init_refused(void **unused)
{
    (void)unused;
    struct fake rows;
    memset(&rows, 0, sizeof(rows));
    begin(&rows, 2, false);
    struct row_config config = rows.row.config;
    struct row other;
    config.table_bytes = (uint64_t)1 << 60;
    assert_false(row_init(&other, &config, rows.row.kind, &rows.engine));
    config = rows.row.config;
    rows.refuse_create = true;
    assert_false(row_init(&other, &config, rows.row.kind, &rows.engine));
    rows.refuse_create = false;
    fake_fini(&rows);
}

/* -- figures -- */

static void count_visits(void *context, struct row_table *visited, bool layer)
{
    unsigned *visits = context;
    assert_non_null(visited);
    visits[layer]++;
}

static void test_figures(void **unused)
{
    (void)unused;
    struct fake rows;
    begin(&rows, 4, false);
    close_first(&rows);
    for (uint64_t i = 0; i < 101; i++) {
        add(&rows, FIRST + 2 * i + 1, 1);
    }
    struct fake_seen seen = {.length = 0};
    struct emitter to = {fake_see, &seen};
    row_emit_space(&rows.row, &to);
    assert_non_null(strstr(seen.text, "tables=2\nlayers=1\ntables_max=4\nspare=1\n"));
    assert_non_null(strstr(seen.text, "oldest=refuse\n"));
    row_emit_table(&rows.row, table(&rows, 0), &to);
    assert_non_null(strstr(seen.text, "0:base=0\n"));
    assert_non_null(strstr(seen.text, "0:late=101\n"));
    assert_non_null(strstr(seen.text, "0:late_share=0.1009\n"));
    assert_non_null(strstr(seen.text, "0:layers=2\n"));
    assert_non_null(strstr(seen.text, "0:state=closed\n"));
    unsigned visits[2] = {0, 0};
    row_each(&rows.row, count_visits, visits);
    assert_int_equal(visits[0], 3); /* and the one for ids apart */
    assert_int_equal(visits[1], 1);
    fake_fini(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layer),         cmocka_unit_test(test_no_layer),
        cmocka_unit_test(test_recycle),       cmocka_unit_test(test_recycle_not_the_layered),
        cmocka_unit_test(test_recycle_two),   cmocka_unit_test(test_recycle_for_layer),
        cmocka_unit_test(test_one_table),     cmocka_unit_test(test_refuse),
        cmocka_unit_test(test_late_room),     cmocka_unit_test(test_late_room_of_a_life),
        cmocka_unit_test(test_clear),         cmocka_unit_test(test_clear_full),
        cmocka_unit_test(test_clear_ready),   cmocka_unit_test(test_clear_no_memory),
        cmocka_unit_test(test_grow),          cmocka_unit_test(test_shrink),
        cmocka_unit_test(test_larger_tables), cmocka_unit_test(test_smaller_tables),
        cmocka_unit_test(test_renew_empty),   cmocka_unit_test(test_populate),
        cmocka_unit_test(test_init_refused),  cmocka_unit_test(test_resident_again),
        cmocka_unit_test(test_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
