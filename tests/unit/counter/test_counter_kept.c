/*
 * test_counter_kept.c: what a dumped table of the counter engine keeps apart above its frontier:
 * it moves when another table opens there, whatever happened to its file.
 */
#include "tests/unit/counter/dumped_space.h"

#include <stdio.h>
#include <string.h>

#include "row/row_private.h"
#include "store/table_file.h"

/* Another table opens behind the dumped one; returns the frontier it opens at. */
static uint64_t open_behind(struct dumped_space *f)
{
    uint64_t frontier = atomic_load(&space_row(f)->tables[0]->frontier);
    assert_int_equal(space_run(f, ENGINE_SET, 0, frontier + 1, "5"), ENGINE_DONE);
    assert_int_equal(dumps_tables(&f->dumps), 2);
    return frontier;
}

/* What it keeps apart moves to the table that opens behind it, though the table is a file by then:
 * changed there or not, with a value beside, and found in the file alone by a start. */
static void what_is_far_ahead_moves_from_a_file(void **state)
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

/* A merge writes what is apart so that a start finds it, be it within the window. */
static void what_is_apart_stays_so_in_a_merge(void **state)
{
    struct dumped_space *f = *state;
    struct row *row = space_begin_dense(f);
    uint64_t ahead = row->tables[0]->window_last;
    space_set(f, ahead, "3,4");
    assert_true(atomic_load(&row->tables[0]->frontier) < ahead);
    row_cold_leave(row, row->tables[0]);
    space_round(f);
    for (uint64_t id = FIRST; f->dumps.kinds[ROW_IMAGE_MERGE] < 2; id++) {
        assert_true(id < FIRST + 4 * SEEN);
        space_set(f, id, "5,6");
        space_round(f);
        if (id == FIRST) {
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

static void flip(struct dumped_space *f, uint64_t page)
{
    char path[64];
    const struct dumps_set *set = &f->dumps.last;
    for (size_t i = 0; i < set->count; i++) {
        snprintf(path, sizeof(path), "/d/%s", set->files[i].name);
        if (set->files[i].dump) { /* its header is before its pages */
            assert_true(vfs_sim_flip(f->dumps.sim, path, (1 + page) * TABLE_FILE_PAGE_BYTES, 3));
        }
    }
}

/* What it has of them would be out of reach once a table opened behind: no start goes on without.
 */
static void what_is_apart_and_cannot_be_read_refuses_a_start(void **state)
{
    struct dumped_space *f = *state;
    struct row *row = space_begin_dense(f);
    space_set(f, FAR, "3," LARGE);
    row_cold_leave(row, row->tables[0]);
    space_round(f);
    uint64_t behind = atomic_load(&row->tables[0]->frontier);
    space_set(f, behind + 1, "5,"); /* moves it */
    const struct table_file *file = counter_table_of(row->tables[0])->file->file;
    uint64_t pages[2];
    assert_true(table_file_entry_page(file, COUNTER_TABLE_EXTEND, FAR, 0, &pages[0]));
    assert_true(table_file_entry_page(file, COUNTER_TABLE_AUX, FAR, 1, &pages[1]));
    for (size_t i = 0; i < 2; i++) {
        flip(f, pages[i]);
        assert_false(dumps_restore(&f->dumps, &f->config));
        assert_non_null(strstr(f->dumps.error, f->dumps.last.files[0].name));
        flip(f, pages[i]);
        space_restart(f);
        space_expect(f, FAR, "3," LARGE);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, space_create, space_destroy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_far_ahead_moves_from_a_file),
        TEST(what_is_apart_stays_so_in_a_merge),
        TEST(what_is_apart_and_cannot_be_read_refuses_a_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
