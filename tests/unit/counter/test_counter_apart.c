/*
 * test_counter_apart.c: what is apart of a dumped table's range, counters with values beside: it is
 * in memory, whatever happens to the table, its file, and those that open above.
 */
#include "tests/unit/counter/dumped_space.h"

#include "row/row.h"
#include "row/row_private.h"

/* Another table opens after the dumped one; returns the frontier it opens at. */
static uint64_t open_behind(struct dumped_space *f)
{
    uint64_t frontier = atomic_load(&space_row(f)->tables[0]->frontier);
    assert_int_equal(space_run(f, ENGINE_SET, 0, frontier + 1, "5"), ENGINE_DONE);
    assert_int_equal(dumps_tables(&f->dumps), 2);
    return frontier;
}

/* Neither a dump of its table nor one that opens above makes it read the disk. */
static void what_is_far_ahead_is_in_memory(void **state)
{
    struct dumped_space *f = *state;
    struct row *row = space_begin_dense(f);
    for (uint64_t i = 0; i < 4; i++) {
        space_set(f, FAR + i, "3," LARGE);
    }
    row_cold_leave(row, row->tables[0]); /* open as it is */
    space_round(f);
    assert_int_equal(dumps_cold(&f->dumps), 1);
    uint64_t before = space_preads(f);
    assert_int_equal(space_run(f, ENGINE_INCR, 0, FAR, "1"), ENGINE_DONE);
    assert_int_equal(space_run(f, ENGINE_DELETE, ENGINE_SLOT_RECORD, FAR + 1, NULL), ENGINE_DONE);
    assert_int_equal(space_preads(f), before);
    space_restart(f);
    uint64_t behind = open_behind(f);
    for (unsigned round = 0; round < 2; round++) {
        counter_check(f->dumps.engine);
        before = space_preads(f);
        space_expect(f, FAR, "4," LARGE);
        space_expect(f, FAR + 1, NULL);
        space_expect(f, FAR + 2, "3," LARGE);
        space_expect(f, behind + 1, "5,");
        assert_int_equal(space_preads(f), before); /* they are in memory */
        space_expect(f, behind, "1,2");
        space_restart(f); /* by the journal, then by images */
        space_expect(f, FAR, "4," LARGE);
        space_round(f);
        space_restart(f);
    }
    assert_int_equal(space_run(f, ENGINE_ADD, 0, FAR + 1, "6"), ENGINE_DONE);
    assert_int_equal(space_run(f, ENGINE_ADD, 0, FAR, "6"), ENGINE_EXISTS);
}

/* Merges know nothing of it, be it within the window. */
static void what_is_apart_stays_so_after_merges(void **state)
{
    struct dumped_space *f = *state;
    struct row *row = space_begin_dense(f);
    uint64_t ahead = row->tables[0]->window_last;
    space_set(f, ahead, "3,4");
    assert_true(atomic_load(&row->tables[0]->frontier) < ahead);
    row_cold_leave(row, row->tables[0]);
    space_round(f);
    for (uint64_t n = 0; f->dumps.kinds[ROW_IMAGE_MERGE] < 2; n++) {
        assert_true(n < 16 * SEEN); /* the second overlay is wider than the first */
        space_set(f, FIRST + n % (4 * SEEN), "5,6");
        space_round(f);
        if (n == 0) {
            assert_int_equal(space_run(f, ENGINE_INCR, 0, ahead, "1"), ENGINE_DONE);
        }
    }
    uint64_t before = space_preads(f);
    space_expect(f, ahead, "4,4");
    assert_int_equal(space_preads(f), before);
    space_restart(f);
    (void)open_behind(f);
    space_expect(f, ahead, "4,4");
}

/* Of another schema by then: it goes to a new table for such, and is there after a start. */
static void what_is_apart_takes_other_slots(void **state)
{
    struct dumped_space *f = *state;
    struct row *row = space_begin_dense(f);
    const struct row_table *before = row->apart;
    space_set(f, FAR, "3," LARGE);
    counters_config(&f->config, "b:20 c:9 a:20");
    f->config.row.tables = 4;
    f->config.row.dump = true;
    assert_true(row->log->reserve(row->log));
    counters_reconfigure(f->dumps.engine, &f->config);
    space_expect(f, FAR, LARGE ",,3");
    row_maintain(f->dumps.engine->row, NULL);
    assert_ptr_not_equal(row->apart, before);
    for (unsigned round = 0; round < 2; round++) {
        space_expect(f, FAR, LARGE ",,3");
        space_restart(f); /* by the journal, then by images */
        space_expect(f, FAR, LARGE ",,3");
        space_round(f);
        space_restart(f);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, space_create, space_destroy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_far_ahead_is_in_memory),
        TEST(what_is_apart_stays_so_after_merges),
        TEST(what_is_apart_takes_other_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
