/*
 * test_counter_merge.c: a full overlay of a dumped table of the counter engine, and the merge that
 * empties it, also of values beside; where it fails.
 */
#include "row/row_data.h"
#include "tests/unit/counter/dumped_space.h"

#include <stdio.h>

#include "row/row_private.h"

static void pass_time(struct dumped_space *f)
{
    struct row *row = space_row(f);
    for (size_t i = 0; i < row->count; i++) {
        row->tables[i]->merge_us = row->tables[i]->merge_us > 0 ? 1 : 0;
    }
    row->merges_us = 1;
}

static void a_full_overlay_refuses_until_it_is_merged(void **state)
{
    struct dumped_space *f = *state;
    unsigned changed = 0;
    while (space_run(f, ENGINE_INCR, 0, FIRST + changed, "1") == ENGINE_DONE) {
        changed++;
        assert_true(changed < SEEN);
    }
    assert_int_equal(f->call.op.error, ENGINE_E_BUSY);
    space_expect(f, FIRST + changed, changed % 10 == 0 ? "7," LARGE : "7,8");
    assert_true(row_images_wanted(f->dumps.engine->row));
    dumps_round(&f->dumps, NULL, NULL, true); /* fails: both overlays are one again */
    space_expect(f, FIRST, "8," LARGE);
    assert_int_equal(space_run(f, ENGINE_INCR, 0, FIRST + changed, "1"), ENGINE_ERROR);
    for (unsigned i = 0; i < 3; i++) { /* not yet: rounds do without */
        space_round(f);
        assert_int_equal(f->dumps.kinds[ROW_IMAGE_MERGE], 1);
    }
    assert_int_equal(space_run(f, ENGINE_INCR, 0, FIRST + changed, "1"), ENGINE_ERROR);
    assert_false(row_images_wanted(f->dumps.engine->row));
    pass_time(f);
    assert_true(row_images_wanted(f->dumps.engine->row));
    space_round(f);
    assert_int_equal(f->dumps.kinds[ROW_IMAGE_MERGE], 2);
    assert_int_equal(space_run(f, ENGINE_INCR, 0, FIRST + changed, "1"), ENGINE_DONE);
    for (unsigned i = 0; i <= changed; i++) {
        space_expect(f, FIRST + i, i % 10 == 0 ? "8," LARGE : "8,8");
    }
    space_expect(f, BEYOND, NULL);
}

/* A file holds more values beside than the pool of a table in memory does: they come by merges. */
static void merges_make_room_beside(void **state)
{
    struct dumped_space *f = *state;
    const struct row *row = space_row(f);
    uint64_t last = row->tables[0]->last;
    unsigned merges = 0;
    for (uint64_t id = FIRST; id <= last; id++) {
        const char *text = LARGE "," LARGE;
        enum engine_status status = space_run(f, ENGINE_SET, ENGINE_SLOT_RECORD, id, text);
        if (status == ENGINE_ERROR && f->call.op.error == ENGINE_E_BUSY) {
            space_round(f);
            assert_int_equal(f->dumps.kinds[ROW_IMAGE_MERGE], ++merges);
            status = space_run(f, ENGINE_SET, ENGINE_SLOT_RECORD, id, text);
        }
        assert_int_equal(status, ENGINE_DONE);
    }
    assert_true(merges > 0);
    space_restart(f);
    for (uint64_t id = FIRST; id <= last; id++) {
        space_expect(f, id, LARGE "," LARGE);
    }
}

/* Flips a bit in a page of every dumped file. */
static void damage(struct dumped_space *f)
{
    char path[64];
    const struct dumps_set *set = &f->dumps.last;
    for (size_t i = 0; i < set->count; i++) {
        snprintf(path, sizeof(path), "/d/%s", set->files[i].name);
        if (set->files[i].dump) {
            assert_true(vfs_sim_flip(f->dumps.sim, path, 2 * 4096 + 100, 3));
        }
    }
}

/* So many ids from `id` on, one of every `step`, are changed; those on a bad page cannot be. */
static void change_some(struct dumped_space *f, uint64_t id, unsigned step, unsigned count)
{
    for (uint64_t i = 0; i < SEEN && count > 0; i++) {
        count -= space_run(f, ENGINE_INCR, 0, id + i * step, "1") == ENGINE_DONE;
    }
    assert_int_equal(count, 0);
}

static uint64_t overlay_bytes(struct row_table *table)
{
    struct row_overlay_size size;
    counter_table_overlay_size(counter_table_of(table), &size);
    return size.bytes;
}

/* The largest overlay is that of a file which cannot be merged: others are merged all the same. */
static void a_bad_page_stops_no_other_merge(void **state)
{
    struct dumped_space *f = *state;
    struct row *row = space_row(f);
    const uint64_t second = FIRST + IDS; /* it has no value beside, nor have those after it */
    for (uint64_t i = IDS; i < 2 * IDS + IDS / 2; i++) {
        space_set(f, FIRST + i, "7,8");
        row_maintain(f->dumps.engine->row, NULL);
    }
    damage(f);
    assert_true(dumps_leave(&f->dumps, 1));
    space_round(f);
    assert_int_equal(dumps_cold(&f->dumps), 2);
    assert_ptr_equal(row_find(row, second), row->tables[1]);
    change_some(f, second, 1, 1);
    change_some(f, FIRST, 10, 1); /* with a value beside: as much again */
    assert_true(overlay_bytes(row->tables[0]) > overlay_bytes(row->tables[1]));
    assert_int_equal(space_run(f, ENGINE_INCR, 0, second + 1, "1"), ENGINE_ERROR);
    assert_int_equal(f->call.op.error, ENGINE_E_BUSY);
    for (unsigned i = 1; i <= 3; i++) { /* each time with the bad one tried again */
        space_round(f);
        space_round(f);
        assert_int_equal(f->dumps.kinds[ROW_IMAGE_MERGE], i);
        assert_int_equal(f->dumps.failed, i);
        assert_int_equal(space_run(f, ENGINE_INCR, 0, second + i, "1"), ENGINE_DONE);
        pass_time(f);
    }
}

struct rushing {
    struct dumped_space *space;
    bool done;
};

/* As a dump's image begins more is changed than its overlay takes. */
static void change_many(void *context, enum vfs_sim_op op, const char *path)
{
    struct rushing *rushing = context;
    (void)path;
    if (op == VFS_SIM_OPEN && !rushing->done) {
        rushing->done = true;
        for (unsigned i = 0; i < 4; i++) {
            change_some(rushing->space, FIRST + i * SEEN, 1, SEEN);
        }
    }
}

/* The next try of a dump that was overrun has more room for that. */
static void an_overrun_dump_gets_more_room(void **state)
{
    struct dumped_space *f = *state;
    struct row *row = space_begin_dense(f);
    struct rushing rushing = {f, false};
    row_cold_leave(row, row->tables[0]);
    vfs_sim_hook(f->dumps.sim, change_many, &rushing);
    space_round(f);
    assert_true(rushing.done);
    assert_int_equal(dumps_cold(&f->dumps), 0);
    assert_int_equal(row->overruns, 1);
    assert_true(row_images_wanted(f->dumps.engine->row));
    rushing.done = false;
    space_round(f);
    assert_true(rushing.done);
    vfs_sim_hook(f->dumps.sim, NULL, NULL);
    assert_int_equal(dumps_cold(&f->dumps), 1);
    assert_int_equal(row->overruns, 0);
    space_restart(f);
    for (uint64_t i = 0; i < 4 * SEEN; i++) {
        space_expect(f, FIRST + i, "3,2");
    }
}

struct flushing {
    struct dumped_space *space;
    bool done;
};

/* As a merge reads its table's file everything is forgotten, and the table destroyed. */
static void flush_all(void *context, enum vfs_sim_op op, const char *path)
{
    struct flushing *flushing = context;
    struct dumped_space *f = flushing->space;
    struct row *row = space_row(f);
    (void)path;
    if (op == VFS_SIM_PREAD && !flushing->done && row->merges > 0) {
        flushing->done = true;
        assert_true(row->log->reserve(row->log));
        row_flush(f->dumps.engine->row);
        row_maintain(f->dumps.engine->row, NULL);
        assert_null(row->retired);
    }
}

/* What it reads stays until it has ended, and counts as long. */
static void a_merge_outlives_its_table(void **state)
{
    struct dumped_space *f = *state;
    struct flushing flushing = {f, false};
    unsigned changed = 0;
    while (space_run(f, ENGINE_INCR, 0, FIRST + changed, "1") == ENGINE_DONE) {
        changed++;
        assert_true(changed < SEEN);
    }
    vfs_sim_hook(f->dumps.sim, flush_all, &flushing);
    space_round(f);
    vfs_sim_hook(f->dumps.sim, NULL, NULL);
    assert_true(flushing.done);
    assert_int_equal(dumps_cold(&f->dumps), 0);
    assert_int_equal(f->dumps.cold.overlay_bytes, 0);
    space_expect(f, FIRST, NULL);
    space_set(f, FIRST, "7,8");
}

#define TIGHT(name) cmocka_unit_test_setup_teardown(name, space_create_tight, space_destroy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TIGHT(a_full_overlay_refuses_until_it_is_merged),
        cmocka_unit_test_setup_teardown(merges_make_room_beside, space_create_small, space_destroy),
        TIGHT(a_bad_page_stops_no_other_merge),
        TIGHT(a_merge_outlives_its_table),
        cmocka_unit_test_setup_teardown(an_overrun_dump_gets_more_room, space_create,
                                        space_destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
