/*
 * test_counter_late.c: more ids come late than a table was shaped for: of a dumped one, whose file
 * becomes larger by merges, with what had spilled and with values beside; of one in memory, which
 * is dumped out of turn; in rising, falling and random order, and after restarts at any moment.
 */
#include "row/row_data.h"
#include "tests/support/give_way.h"
#include "tests/unit/counter/dumped_space.h"

#include <stdlib.h>

#include "row/row_private.h"

#define STEP    8u    /* from an id of the stream to the next */
#define STREAM  9000u /* ids of the stream: the first table is closed by them */
#define TIMES   3u    /* as many come late as the table held */
#define MERGES  24u   /* are enough for that: bound by count, since overlays become wider */
#define TRIES   64u   /* of one change: each after the keeper and a round */
#define BESIDE  13u   /* every so manyth has a value beside */
#define DELETED 11u   /* every so manyth is deleted, every other of these put back */

struct late {
    struct dumped_space *space;
    struct row_table *table; /* the first */
    uint64_t held;           /* by it, before any came late */
    uint64_t count;          /* ids that come late */
    uint64_t *ids;
    uint64_t rounds; /* made since a change waited */
};

static const char *text_of(uint64_t id)
{
    return id % BESIDE == 0 ? "3," LARGE : id % 2 == 0 ? "1,2" : "5,";
}

/* What the server does: a change that waits is run again when rounds and keeper have been there. */
static void late_run(struct late *late, enum engine_verb verb, uint64_t id, const char *text)
{
    struct dumped_space *space = late->space;
    enum engine_status status = ENGINE_PENDING;
    space->serial++; /* one ticket for all tries: pages are promised to it */
    for (unsigned tries = 0; status == ENGINE_PENDING;) {
        counters_call_init(&space->call, verb, ENGINE_SLOT_RECORD, id, text);
        space->call.op.ticket = (struct ticket){woken_wake, &space->dumps.woken, space->serial};
        dumps_run(&space->dumps, &space->call.op, &space->sink.sink);
        status = space->call.op.status;
        if (status == ENGINE_PENDING && space->call.op.wants_table) {
            assert_true(++tries < TRIES);
            row_maintain(space->dumps.engine->row, NULL);
            if (row_images_wanted(space->dumps.engine->row)) {
                space_round(space);
                late->rounds++;
            }
        } else {
            woken_await(&space->dumps.woken, &space->call.op);
        }
    }
    assert_int_equal(status, ENGINE_DONE);
}

/* A page of the file is awaited, too: without it no change of a dumped table is decided. */
static void late_set(struct late *late, uint64_t id)
{
    late->space->dumps.waits = true;
    late_run(late, ENGINE_SET, id, text_of(id));
}

/* A space of a stream whose ids lie STEP apart, so that others may come between them. */
static void late_begin(struct late *late, struct dumped_space *space, bool dumped)
{
    *late = (struct late){.space = space};
    space_begin_anew(space);
    for (uint64_t i = 0; i < STREAM; i++) {
        space_set(space, FIRST + STEP * i, "7,8");
        row_maintain(space->dumps.engine->row, NULL);
    }
    late->table = space_row(space)->tables[0];
    assert_true(late->table->closed);
    if (dumped) {
        assert_true(dumps_leave(&space->dumps, 0));
        space_round(space);
        late->table = space_row(space)->tables[0];
        assert_true(late->table->cold);
    }
    late->held = row_count_of(late->table);
    late->count = TIMES * (late->held - 1);
    late->ids = calloc(late->count, sizeof(*late->ids));
    assert_non_null(late->ids);
    assert_true(late->table->last >= FIRST + STEP * (late->held - 1));
    for (uint64_t i = 0; i < late->count; i++) {
        late->ids[i] = FIRST + STEP * (i / TIMES) + 1 + 2 * (i % TIMES);
    }
}

static void late_end(struct late *late)
{
    free(late->ids);
}

static void turn_round(struct late *late)
{
    for (uint64_t i = 0; i < late->count / 2; i++) {
        uint64_t id = late->ids[i];
        late->ids[i] = late->ids[late->count - 1 - i];
        late->ids[late->count - 1 - i] = id;
    }
}

static void shuffle(struct late *late, struct test_random *random)
{
    for (uint64_t i = late->count; i > 1; i--) {
        uint64_t with = test_random_below(random, i);
        uint64_t id = late->ids[i - 1];
        late->ids[i - 1] = late->ids[with];
        late->ids[with] = id;
    }
}

/* All of them are there as they were put, those of the stream too, and nothing else is. */
static void expect_all(const struct late *late, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        space_expect(late->space, late->ids[i], text_of(late->ids[i]));
    }
    for (uint64_t i = 0; i < STREAM; i++) {
        space_expect(late->space, FIRST + STEP * i, "7,8");
        space_expect(late->space, FIRST + STEP * i + 2, NULL);
    }
    counter_check(late->space->dumps.engine);
}

static void put_all(struct late *late)
{
    for (uint64_t i = 0; i < late->count; i++) {
        late_set(late, late->ids[i]);
    }
}

/* Merged once more, so that the last of them are in the file, too. */
static void see_grown(struct late *late)
{
    struct row *row = space_row(late->space);
    assert_int_equal(row_count_of(late->table), late->held + late->count);
    assert_true(late->rounds > 0);
    assert_in_range(late->space->dumps.kinds[ROW_IMAGE_MERGE], 2, MERGES);
    assert_true(late->table->capacity > late->held + late->count / 2);
    assert_true(counter_table_file_bytes(counter_table_of(late->table)) >
                2 * row->config.table_bytes);
}

static void come_late(struct dumped_space *space, bool falling, uint64_t seed)
{
    struct late late;
    struct test_random random = {seed};
    late_begin(&late, space, true);
    if (falling) {
        turn_round(&late);
    }
    if (seed != 0) {
        shuffle(&late, &random);
    }
    put_all(&late);
    see_grown(&late);
    expect_all(&late, late.count);
    uint64_t capacity = late.table->capacity;
    space_restart(space);
    late.table = space_row(space)->tables[0];
    assert_int_equal(late.table->capacity, capacity);
    assert_int_equal(row_count_of(late.table), late.held + late.count);
    expect_all(&late, late.count);
    late_end(&late);
}

static void a_dumped_table_takes_ids_that_rise(void **state)
{
    come_late(*state, false, 0);
}

static void a_dumped_table_takes_ids_that_fall(void **state)
{
    come_late(*state, true, 0);
}

static void a_dumped_table_takes_ids_in_random_order(void **state)
{
    come_late(*state, false, 5);
}

/* Ids that merges have put into a larger file go, come back, and go on as others do. */
static void what_is_deleted_stays_deleted(void **state)
{
    struct late late;
    struct test_random random = {11};
    late_begin(&late, *state, true);
    shuffle(&late, &random);
    put_all(&late);
    uint64_t gone = 0;
    for (uint64_t i = 0; i < late.count; i += DELETED) {
        late_run(&late, ENGINE_DELETE, late.ids[i], NULL);
        gone++;
        if (i % 2 == 0) {
            late_set(&late, late.ids[i]);
            gone--;
        }
    }
    assert_int_equal(row_count_of(late.table), late.held + late.count - gone);
    for (unsigned again = 0; again < 2; again++) {
        for (uint64_t i = 0; i < late.count; i++) {
            bool there = i % DELETED != 0 || i % 2 == 0;
            space_expect(late.space, late.ids[i], there ? text_of(late.ids[i]) : NULL);
        }
        space_restart(late.space);
    }
    late_end(&late);
}

/* After each of a few crashes all that was journaled is there, whatever shape the file has. */
static void a_restart_finds_any_shape(void **state)
{
    struct late late;
    struct test_random random = {23};
    late_begin(&late, *state, true);
    shuffle(&late, &random);
    uint64_t part = late.count / 7;
    for (uint64_t i = 0; i < late.count; i++) {
        late_set(&late, late.ids[i]);
        if (i % part == part - 1) {
            space_restart(late.space);
            late.table = space_row(late.space)->tables[0];
            assert_int_equal(row_count_of(late.table), late.held + i + 1);
            expect_all(&late, i + 1);
        }
    }
    late_end(&late);
}

struct meanwhile {
    struct late *late;
    uint64_t next, until;
    bool begun;
};

/* While a round writes: so the overlay's image is described by the shape of before the merge. */
static void come_meanwhile(void *context, enum vfs_sim_op op, const char *path)
{
    struct meanwhile *meanwhile = context;
    struct late *late = meanwhile->late;
    (void)path;
    if (op != VFS_SIM_OPEN || meanwhile->begun ||
        late->space->dumps.kinds[ROW_IMAGE_MERGE] != meanwhile->until || !late->table->merging) {
        return;
    }
    meanwhile->begun = true;
    for (unsigned i = 0; i < SEEN / 4; i++) {
        late_set(late, late->ids[meanwhile->next++]);
    }
    row_touch(late->table); /* so that an image of the overlay follows in this round */
}

static void an_overlay_of_the_shape_before_fits(void **state)
{
    struct late late;
    late_begin(&late, *state, true);
    struct dumps *d = &late.space->dumps;
    uint64_t i = 0;
    while (row_count_of(late.table) <= late.table->capacity || !row_images_wanted(d->engine->row)) {
        late_set(&late, late.ids[i++]);
        if (row_images_wanted(d->engine->row) && row_count_of(late.table) <= late.table->capacity) {
            space_round(late.space);
        }
    }
    uint64_t capacity = late.table->capacity;
    struct meanwhile meanwhile = {&late, i, d->kinds[ROW_IMAGE_MERGE], false};
    vfs_sim_hook(d->sim, come_meanwhile, &meanwhile);
    uint64_t overlays = d->kinds[ROW_IMAGE_OVERLAY];
    space_round(late.space);
    vfs_sim_hook(d->sim, NULL, NULL);
    assert_true(meanwhile.begun);
    assert_true(d->kinds[ROW_IMAGE_OVERLAY] > overlays);
    assert_int_equal(late.table->capacity, 2 * capacity);
    uint64_t held = row_count_of(late.table);
    space_restart(late.space);
    late.table = space_row(late.space)->tables[0];
    assert_int_equal(late.table->capacity, 2 * capacity);
    assert_int_equal(row_count_of(late.table), held);
    expect_all(&late, meanwhile.next);
    late_end(&late);
}

/* The file stays as it is, and all that came meanwhile goes into the next one. */
static void a_larger_file_that_fails_is_written_again(void **state)
{
    struct late late;
    late_begin(&late, *state, true);
    struct row *row = space_row(late.space);
    uint64_t i = 0;
    while (row_count_of(late.table) <= late.table->capacity ||
           !row_images_wanted(late.space->dumps.engine->row)) {
        late_set(&late, late.ids[i++]);
    }
    uint64_t capacity = late.table->capacity;
    dumps_round(&late.space->dumps, NULL, NULL, true);
    assert_int_equal(late.table->capacity, capacity);
    assert_int_equal(row->merges, 0);
    expect_all(&late, i);
    late.table->merge_us = 1;
    row->merges_us = 1;
    space_round(late.space);
    assert_int_equal(late.table->capacity, 2 * capacity);
    expect_all(&late, i);
    late_end(&late);
}

static void note_wake(void *target, uint64_t serial)
{
    (void)serial;
    (*(_Atomic unsigned *)target)++; /* also by a disk thread */
}

/* Waits until so many pages have woken who waited; true. */
static bool page_came(_Atomic unsigned *woken, unsigned pages)
{
    while (*woken < pages) {
        give_way();
    }
    return true;
}

/* Not busy: pending until a merge has begun, and woken once. */
static void a_change_waits_for_the_merge(void **state)
{
    struct late late;
    _Atomic unsigned woken = 0;
    unsigned pages = 0;
    enum engine_status status = ENGINE_DONE;
    late_begin(&late, *state, true);
    struct dumped_space *space = late.space;
    struct engine_op *op = &space->call.op;
    space->dumps.waits = true;
    for (uint64_t i = 0; status == ENGINE_DONE; i++) {
        assert_true(i < late.count);
        do {
            counters_call_init(&space->call, ENGINE_SET, ENGINE_SLOT_RECORD, late.ids[i], "1,2");
            op->ticket = (struct ticket){note_wake, &woken, 1};
            dumps_run(&space->dumps, op, &space->sink.sink);
            status = op->status;
        } while (status == ENGINE_PENDING && !op->wants_table && page_came(&woken, ++pages));
    }
    assert_int_equal(status, ENGINE_PENDING);
    assert_int_equal(op->error, ENGINE_E_BUSY);
    assert_true(row_images_wanted(space->dumps.engine->row));
    struct row *row = space_row(space);
    assert_int_equal(row->waiters.count, 1);
    assert_int_equal(woken, pages);
    space_round(space);
    assert_int_equal(woken, pages + 1);
    assert_int_equal(row->waiters.count, 0);
    late_set(&late, op->id);
    late_end(&late);
}

/* A round that fails makes no room: who would wait is busy at once, until the next round. */
static void nobody_waits_for_a_round_that_failed(void **state)
{
    struct late late;
    late_begin(&late, *state, true);
    struct dumped_space *space = late.space;
    struct row *row = space_row(space);
    uint64_t waits = row->waits;
    uint64_t i = 0;
    while (!row_images_wanted(row)) {
        late_set(&late, late.ids[i++]);
    }
    row_images_failed(row);
    while (space_run(space, ENGINE_SET, ENGINE_SLOT_RECORD, late.ids[i], "1,2") == ENGINE_DONE) {
        assert_true(++i < late.count);
    }
    assert_int_equal(space->call.op.error, ENGINE_E_BUSY);
    assert_int_equal(row->waits, waits);
    space_round(space);
    late_set(&late, late.ids[i]);
    late_end(&late);
}

/* Table and layer are full: both leave memory, and the layer's file takes the rest. */
static void a_full_table_in_memory_is_dumped_out_of_turn(void **state)
{
    struct late late;
    struct test_random random = {3};
    late_begin(&late, *state, false);
    shuffle(&late, &random);
    assert_int_equal(dumps_cold(&late.space->dumps), 0);
    put_all(&late);
    assert_true(late.table->cold && late.table->further != NULL && late.table->further->cold);
    assert_int_equal(dumps_cold(&late.space->dumps), 1);
    expect_all(&late, late.count);
    space_restart(late.space);
    expect_all(&late, late.count);
    late_end(&late);
}

#define LATE(name) cmocka_unit_test_setup_teardown(name, space_create, space_destroy)

int main(void)
{
    give_way_on_one_processor();
    const struct CMUnitTest tests[] = {
        LATE(a_dumped_table_takes_ids_that_rise),
        LATE(a_dumped_table_takes_ids_that_fall),
        LATE(a_dumped_table_takes_ids_in_random_order),
        LATE(what_is_deleted_stays_deleted),
        LATE(a_restart_finds_any_shape),
        LATE(an_overlay_of_the_shape_before_fits),
        LATE(a_larger_file_that_fails_is_written_again),
        LATE(a_change_waits_for_the_merge),
        LATE(nobody_waits_for_a_round_that_failed),
        LATE(a_full_table_in_memory_is_dumped_out_of_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
