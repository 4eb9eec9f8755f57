/*
 * test_counter_cold.c: one dumped table of the counter engine: what a read costs, what a bad page
 * is answered with, slots that come and go, deletes, a full overlay.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "counter/counter_private.h"
#include "counter/table_private.h"
#include "engine/row_private.h"
#include "tests/support/counters.h"
#include "tests/support/dumps.h"

#define FIRST  1000u
#define IDS    7000u /* more than a table takes */
#define AUX    (64u << 10)
#define LARGE  "1000000000000"
#define SEEN   300u /* ids that are looked at one by one */
#define FAR    (1ull << 40)
#define BEYOND (FIRST + 2 * IDS)

struct fixture {
    struct dumps dumps;
    struct counter_config config;
    struct recorder_sink sink;
    struct counters_call call;
    uint64_t serial;
};

static void no_wake(void *target, uint64_t serial)
{
    (void)target;
    (void)serial;
}

/* Runs it until it ends. */
static enum engine_status run(struct fixture *f, enum engine_verb verb, int slot, uint64_t id,
                              const char *text)
{
    struct dumps *d = &f->dumps;
    counters_call_init(&f->call, verb, slot, id, text);
    f->call.op.ticket = (struct engine_ticket){no_wake, f, ++f->serial};
    for (;;) {
        dumps_run(d, &f->call.op, &f->sink.sink);
        if (f->call.op.status != ENGINE_PENDING) {
            break;
        }
        d->engine->functions->maintain(d->engine, NULL);
        sched_yield();
    }
    f->call.value[f->call.op.value_length] = '\0';
    return f->call.op.status;
}

static void expect(struct fixture *f, uint64_t id, const char *text)
{
    enum engine_status status = run(f, ENGINE_READ, ENGINE_SLOT_RECORD, id, NULL);
    assert_int_equal(status, text ? ENGINE_DONE : ENGINE_ABSENT);
    if (text) {
        assert_string_equal(f->call.value, text);
    }
}

static uint64_t preads(struct fixture *f)
{
    struct cold_stats stats;
    cold_stats(f->dumps.cold.cold, &stats);
    return stats.reads;
}

/* The first of two tables is dumped; every so manyth id has a large value, beside. */
static int set_up(void **state, uint64_t overlay_bytes, uint64_t aux_bytes, unsigned every)
{
    static struct fixture fixture;
    struct fixture *f = &fixture;
    memset(f, 0, sizeof *f);
    counters_config(&f->config, "a:20 b:20");
    f->config.tables = 4;
    f->config.aux_bytes = aux_bytes;
    f->config.dump = true;
    dumps_init(&f->dumps, overlay_bytes, 0, 7);
    dumps_create(&f->dumps, &f->config);
    recorder_sink_init(&f->sink, &f->dumps.recorder);
    for (uint64_t i = 0; i < IDS; i++) {
        const char *text = i % every == 0 ? "7," LARGE : "7,8";
        assert_int_equal(run(f, ENGINE_SET, ENGINE_SLOT_RECORD, FIRST + i, text), ENGINE_DONE);
    }
    f->dumps.engine->functions->maintain(f->dumps.engine, NULL);
    assert_true(dumps_leave(&f->dumps, 0));
    dumps_round(&f->dumps, NULL, NULL, false);
    assert_int_equal(dumps_cold(&f->dumps), 1);
    *state = f;
    return 0;
}

static int create(void **state)
{
    return set_up(state, 1u << 20, AUX, 10);
}

static int create_tight(void **state)
{
    return set_up(state, 4096, AUX, 10);
}

static int create_small(void **state)
{
    return set_up(state, 4096, 4096, IDS);
}

static int destroy(void **state)
{
    struct fixture *f = *state;
    counter_check(f->dumps.engine);
    dumps_fini(&f->dumps);
    return 0;
}

static void restart(struct fixture *f)
{
    dumps_restart(&f->dumps, &f->config);
    recorder_sink_init(&f->sink, &f->dumps.recorder);
}

/* A page for the record, a second one for what lies beside or spilled; none from the overlay. */
static void a_read_is_one_page(void **state)
{
    struct fixture *f = *state;
    unsigned twice = 0;
    for (uint64_t i = 0; i < SEEN; i++) {
        uint64_t before = preads(f);
        expect(f, FIRST + i, i % 10 == 0 ? "7," LARGE : "7,8");
        uint64_t read = preads(f) - before;
        assert_in_range(read, i % 10 == 0 ? 2 : 1, i % 10 == 0 ? 3 : 2);
        twice += i % 10 != 0 && read == 2;
    }
    assert_true(twice < SEEN / 10); /* those that spilled */
    uint64_t before = preads(f);
    expect(f, FIRST + IDS - 1, "7,8"); /* of the table in memory */
    assert_int_equal(preads(f), before);
    assert_int_equal(run(f, ENGINE_SET, 0, FIRST + 1, "9"), ENGINE_DONE);
    before = preads(f);
    expect(f, FIRST + 1, "9,8");
    assert_int_equal(run(f, ENGINE_INCR, 0, FIRST + 1, "1"), ENGINE_DONE);
    assert_string_equal(f->call.value, "10");
    assert_int_equal(preads(f), before);
}

static void a_slot_beside_is_read_only_if_it_is_wanted(void **state)
{
    struct fixture *f = *state;
    uint64_t before = preads(f);
    assert_int_equal(run(f, ENGINE_READ, 0, FIRST + 10, NULL), ENGINE_DONE);
    assert_string_equal(f->call.value, "7");
    assert_in_range(preads(f) - before, 1, 2);
}

static void what_is_deleted_stays_so(void **state)
{
    struct fixture *f = *state;
    for (unsigned round = 0; round < 3; round++) {
        uint64_t id = FIRST + 20 + round;
        assert_int_equal(run(f, ENGINE_DELETE, ENGINE_SLOT_RECORD, id, NULL), ENGINE_DONE);
        assert_int_equal(run(f, ENGINE_DELETE, ENGINE_SLOT_RECORD, id, NULL), ENGINE_ABSENT);
        expect(f, id, NULL);
        assert_int_equal(run(f, ENGINE_REPLACE, 0, id, "3"), ENGINE_ABSENT);
        assert_int_equal(run(f, ENGINE_SET, 0, id + 100, "3"), ENGINE_DONE);
        assert_int_equal(run(f, ENGINE_DELETE, ENGINE_SLOT_RECORD, id + 200, NULL), ENGINE_DONE);
        assert_int_equal(run(f, ENGINE_ADD, 0, id + 200, "4"), ENGINE_DONE);
        if (round > 0) {
            dumps_round(&f->dumps, NULL, NULL, false); /* the second with its overlay's image */
        }
        restart(f);
        expect(f, id, NULL);
        expect(f, id + 200, "4,");
    }
}

static void slots_come_and_go(void **state)
{
    struct fixture *f = *state;
    counters_config_slots(&f->config, "b:20 c:20");
    counters_reconfigure(f->dumps.engine, &f->config);
    expect(f, FIRST + 1, "8,");
    assert_int_equal(run(f, ENGINE_SET, 1, FIRST + 1, "5"), ENGINE_DONE);
    expect(f, FIRST + 1, "8,5");
    assert_int_equal(run(f, ENGINE_SET, 0, FIRST + 2, LARGE), ENGINE_DONE);
    restart(f); /* changed while a slot was hidden: that is found in the file */
    expect(f, FIRST + 1, "8,5");
    counters_config_slots(&f->config, "a:20 b:20 c:20");
    counters_reconfigure(f->dumps.engine, &f->config);
    expect(f, FIRST + 1, "7,8,5");
    expect(f, FIRST + 2, "7," LARGE ",");
    /* Of learned names alone: such a record is no deleted one. */
    assert_int_equal(run(f, ENGINE_DELETE, 0, FIRST + 1, NULL), ENGINE_DONE);
    assert_int_equal(run(f, ENGINE_DELETE, 1, FIRST + 1, NULL), ENGINE_DONE);
    expect(f, FIRST + 1, ",,5");
    dumps_round(&f->dumps, NULL, NULL, false);
    restart(f);
    expect(f, FIRST + 1, ",,5");
    expect(f, FIRST + 2, "7," LARGE ",");
}

static void a_bad_page_is_an_error(void **state)
{
    struct fixture *f = *state;
    char path[64];
    const struct dumps_set *set = &f->dumps.last;
    for (size_t i = 0; i < set->count; i++) {
        snprintf(path, sizeof path, "/d/%s", set->files[i].name);
        for (uint64_t page = 1; set->files[i].dump && page < 17; page++) { /* behind the header */
            assert_true(vfs_sim_flip(f->dumps.sim, path, page * 4096 + 100, 3));
        }
    }
    unsigned failed = 0;
    for (uint64_t i = 1; i < SEEN; i++) {
        enum engine_status status = run(f, ENGINE_READ, 0, FIRST + i, NULL);
        if (status == ENGINE_ERROR) {
            assert_int_equal(f->call.op.error, ENGINE_E_READ_FAILED);
            failed++;
            assert_int_equal(run(f, ENGINE_INCR, 0, FIRST + i, "1"), ENGINE_ERROR);
            assert_int_equal(f->call.op.error, ENGINE_E_READ_FAILED);
            continue;
        }
        assert_int_equal(status, ENGINE_DONE);
        assert_string_equal(f->call.value, "7");
    }
    assert_true(failed > 0);
}

static void pass_time(struct fixture *f)
{
    struct row *row = &((struct counter *)f->dumps.engine)->row;
    for (size_t i = 0; i < row->count; i++) {
        row->tables[i]->merge_us = row->tables[i]->merge_us > 0 ? 1 : 0;
    }
    row->merges_us = 1;
}

static void a_full_overlay_refuses_until_it_is_merged(void **state)
{
    struct fixture *f = *state;
    unsigned changed = 0;
    while (run(f, ENGINE_INCR, 0, FIRST + changed, "1") == ENGINE_DONE) {
        changed++;
        assert_true(changed < SEEN);
    }
    assert_int_equal(f->call.op.error, ENGINE_E_BUSY);
    expect(f, FIRST + changed, changed % 10 == 0 ? "7," LARGE : "7,8");
    assert_true(f->dumps.engine->functions->keeping->images_wanted(f->dumps.engine));
    dumps_round(&f->dumps, NULL, NULL, true); /* fails: both overlays are one again */
    expect(f, FIRST, "8," LARGE);
    assert_int_equal(run(f, ENGINE_INCR, 0, FIRST + changed, "1"), ENGINE_ERROR);
    for (unsigned i = 0; i < 3; i++) { /* not yet: rounds do without */
        dumps_round(&f->dumps, NULL, NULL, false);
        assert_int_equal(f->dumps.kinds[ROW_IMAGE_MERGE], 1);
    }
    assert_int_equal(run(f, ENGINE_INCR, 0, FIRST + changed, "1"), ENGINE_ERROR);
    assert_false(f->dumps.engine->functions->keeping->images_wanted(f->dumps.engine));
    pass_time(f);
    assert_true(f->dumps.engine->functions->keeping->images_wanted(f->dumps.engine));
    dumps_round(&f->dumps, NULL, NULL, false);
    assert_int_equal(f->dumps.kinds[ROW_IMAGE_MERGE], 2);
    assert_int_equal(run(f, ENGINE_INCR, 0, FIRST + changed, "1"), ENGINE_DONE);
    for (unsigned i = 0; i <= changed; i++) {
        expect(f, FIRST + i, i % 10 == 0 ? "8," LARGE : "8,8");
    }
    expect(f, BEYOND, NULL);
}

/* A file holds more values beside than the pool of a table in memory does: they come by merges. */
static void merges_make_room_beside(void **state)
{
    struct fixture *f = *state;
    const struct row *row = &((struct counter *)f->dumps.engine)->row;
    uint64_t last = row->tables[0]->last;
    unsigned merges = 0;
    for (uint64_t id = FIRST; id <= last; id++) {
        const char *text = LARGE "," LARGE;
        enum engine_status status = run(f, ENGINE_SET, ENGINE_SLOT_RECORD, id, text);
        if (status == ENGINE_ERROR && f->call.op.error == ENGINE_E_BUSY) {
            dumps_round(&f->dumps, NULL, NULL, false);
            assert_int_equal(f->dumps.kinds[ROW_IMAGE_MERGE], ++merges);
            status = run(f, ENGINE_SET, ENGINE_SLOT_RECORD, id, text);
        }
        assert_int_equal(status, ENGINE_DONE);
    }
    assert_true(merges > 0);
    restart(f);
    for (uint64_t id = FIRST; id <= last; id++) {
        expect(f, id, LARGE "," LARGE);
    }
}

/* Flips a bit in a page of every dumped file. */
static void damage(struct fixture *f)
{
    char path[64];
    const struct dumps_set *set = &f->dumps.last;
    for (size_t i = 0; i < set->count; i++) {
        snprintf(path, sizeof path, "/d/%s", set->files[i].name);
        if (set->files[i].dump) {
            assert_true(vfs_sim_flip(f->dumps.sim, path, 2 * 4096 + 100, 3));
        }
    }
}

/* Ids of a table from `id` on, as long as they can be read and there is room. */
static void change_some(struct fixture *f, uint64_t id, unsigned count)
{
    for (uint64_t i = 0; i < SEEN && count > 0; i++) {
        count -= run(f, ENGINE_INCR, 0, id + i, "1") == ENGINE_DONE;
    }
    assert_int_equal(count, 0);
}

/* Changes ids of a table from `id` on until there is no more room; returns the one that had none.
 */
static uint64_t fill_overlay(struct fixture *f, uint64_t id)
{
    for (uint64_t most = id + SEEN; id < most; id++) {
        (void)run(f, ENGINE_INCR, 0, id, "1");
        if (f->call.op.status == ENGINE_ERROR && f->call.op.error == ENGINE_E_BUSY) {
            return id;
        }
    }
    fail();
    return id;
}

/* The largest overlay is that of a file which cannot be merged: others are merged all the same. */
static void a_bad_page_stops_no_other_merge(void **state)
{
    struct fixture *f = *state;
    struct row *row = &((struct counter *)f->dumps.engine)->row;
    for (uint64_t i = IDS; i < 2 * IDS + IDS / 2; i++) {
        assert_int_equal(run(f, ENGINE_SET, ENGINE_SLOT_RECORD, FIRST + i, "7,8"), ENGINE_DONE);
        f->dumps.engine->functions->maintain(f->dumps.engine, NULL);
    }
    damage(f);
    assert_true(dumps_leave(&f->dumps, 1));
    dumps_round(&f->dumps, NULL, NULL, false);
    assert_int_equal(dumps_cold(&f->dumps), 2);
    uint64_t second = row->tables[1]->base;
    change_some(f, second, 2);
    fill_overlay(f, FIRST);
    second = fill_overlay(f, second + SEEN); /* it is full: the first id not on a bad page */
    for (unsigned i = 0; i < 3; i++) {       /* each time with the bad one tried again */
        dumps_round(&f->dumps, NULL, NULL, false);
        dumps_round(&f->dumps, NULL, NULL, false);
        assert_int_equal(run(f, ENGINE_INCR, 0, second, "1"), ENGINE_DONE);
        pass_time(f);
    }
    assert_true(f->dumps.kinds[ROW_IMAGE_MERGE] > 0);
    assert_true(f->dumps.failed > 0);
}

/* Every second id first, then those between: they come late, and more than the table takes. */
static void fill_twice(struct fixture *f)
{
    for (uint64_t late = 0; late < 2; late++) {
        for (uint64_t i = 0; i < IDS; i++) {
            uint64_t id = FIRST + 2 * i + late;
            assert_int_equal(run(f, ENGINE_SET, ENGINE_SLOT_RECORD, id, "1,2"), ENGINE_DONE);
        }
    }
    f->dumps.engine->functions->maintain(f->dumps.engine, NULL);
}

static void check_layered(struct fixture *f)
{
    for (uint64_t i = 0; i < SEEN; i++) {
        static const char *const texts[] = {NULL, "9,", "1,3", "1,2"};
        expect(f, FIRST + i, texts[i % 4]);
    }
}

/* Another space, of nothing. */
static void begin_anew(struct fixture *f)
{
    dumps_fini(&f->dumps);
    memset(&f->dumps, 0, sizeof f->dumps);
    f->config.tables = 8;
    dumps_init(&f->dumps, 1u << 20, 0, 7);
    dumps_create(&f->dumps, &f->config);
    recorder_sink_init(&f->sink, &f->dumps.recorder);
}

static void a_layer_leaves_with_its_table(void **state)
{
    struct fixture *f = *state;
    begin_anew(f);
    fill_twice(f);
    assert_true(dumps_leave(&f->dumps, 0));
    dumps_round(&f->dumps, NULL, NULL, false);
    assert_int_equal(dumps_layers(&f->dumps), 1);
    restart(f);
    for (uint64_t i = 0; i < SEEN; i++) {
        uint64_t id = FIRST + i;
        if (i % 4 < 2) {
            assert_int_equal(run(f, ENGINE_DELETE, ENGINE_SLOT_RECORD, id, NULL), ENGINE_DONE);
        }
        if (i % 4 == 1) {
            enum engine_status status = run(f, ENGINE_SET, 0, id, "9");
            assert_int_equal(status, ENGINE_DONE);
        }
        if (i % 4 == 2) {
            assert_int_equal(run(f, ENGINE_SET, 1, id, "3"), ENGINE_DONE);
        }
    }
    check_layered(f);
    restart(f);
    check_layered(f);
    dumps_round(&f->dumps, NULL, NULL, false);
    restart(f);
    check_layered(f);
}

struct deleting {
    struct fixture *fixture;
    uint64_t ids[4];
    size_t count, done;
    uint64_t again; /* that of them which comes to the layer and goes once more */
};

/* Before the first byte of an image: its S was noted, what changed is not collected yet. */
static void delete_some(void *context, enum vfs_sim_op op, const char *path)
{
    struct deleting *deleting = context;
    (void)path;
    while (op == VFS_SIM_OPEN && deleting->done < deleting->count) {
        uint64_t id = deleting->ids[deleting->done++];
        struct fixture *f = deleting->fixture;
        assert_int_equal(run(f, ENGINE_DELETE, ENGINE_SLOT_RECORD, id, NULL), ENGINE_DONE);
        if (id == deleting->again) {
            assert_int_equal(run(f, ENGINE_ADD, 0, id, "1"), ENGINE_DONE);
            assert_int_equal(run(f, ENGINE_DELETE, ENGINE_SLOT_RECORD, id, NULL), ENGINE_DONE);
        }
    }
}

/* An image may show that an id of the table is gone, which the layer never had: replay of that
 * takes it off the table's count, not off the layer's, whose own image began later. */
static void what_is_deleted_while_an_image_is_written_counts_once(void **state)
{
    struct fixture *f = *state;
    begin_anew(f);
    struct row *row = &((struct counter *)f->dumps.engine)->row;
    fill_twice(f);
    assert_true(dumps_leave(&f->dumps, 0));
    dumps_round(&f->dumps, NULL, NULL, false);
    assert_int_equal(dumps_layers(&f->dumps), 1);
    uint64_t of_layer = (row->tables[0]->last - 100) | 1;
    struct deleting deleting = {f, {FIRST, FIRST + 2, of_layer, FIRST + 6}, 4, 0, FIRST + 6};
    assert_int_equal(run(f, ENGINE_INCR, 0, FIRST + 4, "1"), ENGINE_DONE);
    assert_int_equal(run(f, ENGINE_INCR, 0, of_layer - 2, "1"), ENGINE_DONE);
    uint64_t table = row->tables[0]->count;
    uint64_t layer = row->tables[0]->further->count;
    vfs_sim_hook(f->dumps.sim, delete_some, &deleting);
    dumps_round(&f->dumps, NULL, NULL, false);
    vfs_sim_hook(f->dumps.sim, NULL, NULL);
    assert_int_equal(f->dumps.kinds[ROW_IMAGE_OVERLAY], 2);
    for (unsigned round = 0; round < 2; round++) {
        row = &((struct counter *)f->dumps.engine)->row;
        assert_int_equal(row->tables[0]->count, table - 3);
        assert_int_equal(row->tables[0]->further->count, layer - 1);
        restart(f);
    }
}

struct moving {
    struct fixture *fixture;
    uint64_t id;
    bool done;
};

/*
 * The image takes the record while its only value lies beside; then that value becomes small enough
 * for its place, and the image finds nothing beside.
 */
static void move_in_place(void *context, enum vfs_sim_op op, const char *path)
{
    struct moving *moving = context;
    struct fixture *f = moving->fixture;
    (void)path;
    if (op != VFS_SIM_OPEN || moving->done) {
        return;
    }
    moving->done = true;
    struct row *row = &((struct counter *)f->dumps.engine)->row;
    struct table_overlay *overlay = counter_table_of(row->tables[0])->overlay;
    uint64_t before[SCHEMA_PAYLOAD_WORDS];
    assert_true(dict_get(overlay->extend, moving->id, 0, before));
    assert_int_equal(run(f, ENGINE_SET, 1, moving->id, "5"), ENGINE_DONE);
    assert_false(dict_get(overlay->aux, moving->id, 1, NULL));
    assert_true(dict_put(overlay->extend, moving->id, 0, before));
}

/* A record that an image shows without any value is not gone: what changed it is replayed. */
static void what_moves_while_an_image_is_written_is_not_gone(void **state)
{
    struct fixture *f = *state;
    struct moving moving = {f, FIRST, false};
    assert_int_equal(run(f, ENGINE_DELETE, 0, FIRST, NULL), ENGINE_DONE);
    expect(f, FIRST, "," LARGE);
    vfs_sim_hook(f->dumps.sim, move_in_place, &moving);
    dumps_round(&f->dumps, NULL, NULL, false);
    vfs_sim_hook(f->dumps.sim, NULL, NULL);
    assert_true(moving.done);
    assert_int_equal(f->dumps.kinds[ROW_IMAGE_OVERLAY], 1);
    restart(f);
    expect(f, FIRST, ",5");
}

/* Another space, of one table that ids come to in their order. */
static struct row *begin_dense(struct fixture *f)
{
    begin_anew(f);
    for (uint64_t id = FIRST; id < FIRST + 4 * SEEN; id++) {
        assert_int_equal(run(f, ENGINE_SET, ENGINE_SLOT_RECORD, id, "1,2"), ENGINE_DONE);
    }
    return &((struct counter *)f->dumps.engine)->row;
}

/* What it keeps apart moves to the table that opens behind it, though the table is a file by then:
 * changed there or not, with a value beside, and found in the file alone by a start. */
static void what_is_far_ahead_moves_from_a_file(void **state)
{
    struct fixture *f = *state;
    struct row *row = begin_dense(f);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(run(f, ENGINE_SET, ENGINE_SLOT_RECORD, FAR + i, "3," LARGE), ENGINE_DONE);
    }
    row_cold_leave(row, row->tables[0]); /* open as it is */
    dumps_round(&f->dumps, NULL, NULL, false);
    assert_int_equal(dumps_cold(&f->dumps), 1);
    uint64_t before = preads(f);
    assert_int_equal(run(f, ENGINE_INCR, 0, FAR, "1"), ENGINE_DONE);
    assert_int_equal(run(f, ENGINE_DELETE, ENGINE_SLOT_RECORD, FAR + 1, NULL), ENGINE_DONE);
    assert_int_equal(preads(f), before);
    restart(f);
    row = &((struct counter *)f->dumps.engine)->row;
    uint64_t behind = atomic_load(&row->tables[0]->frontier);
    assert_int_equal(run(f, ENGINE_SET, 0, behind + 1, "5"), ENGINE_DONE);
    assert_int_equal(dumps_tables(&f->dumps), 2);
    for (unsigned round = 0; round < 2; round++) {
        counter_check(f->dumps.engine);
        before = preads(f);
        expect(f, FAR, "4," LARGE);
        expect(f, FAR + 1, NULL);
        expect(f, FAR + 2, "3," LARGE);
        expect(f, behind + 1, "5,");
        assert_int_equal(preads(f), before); /* they are in memory */
        expect(f, behind, "1,2");
        restart(f); /* by the journal, then by images */
        expect(f, FAR, "4," LARGE);
        dumps_round(&f->dumps, NULL, NULL, false);
        restart(f);
    }
    assert_int_equal(run(f, ENGINE_ADD, 0, FAR + 1, "6"), ENGINE_DONE);
    assert_int_equal(run(f, ENGINE_ADD, 0, FAR, "6"), ENGINE_EXISTS);
}

/* A merge writes what is apart so that a start finds it, be it within the window. */
static void what_is_apart_stays_so_in_a_merge(void **state)
{
    struct fixture *f = *state;
    struct row *row = begin_dense(f);
    uint64_t ahead = row->tables[0]->window_last;
    assert_int_equal(run(f, ENGINE_SET, ENGINE_SLOT_RECORD, ahead, "3,4"), ENGINE_DONE);
    assert_true(atomic_load(&row->tables[0]->frontier) < ahead);
    row_cold_leave(row, row->tables[0]);
    dumps_round(&f->dumps, NULL, NULL, false);
    for (uint64_t id = FIRST; f->dumps.kinds[ROW_IMAGE_MERGE] < 2; id++) {
        assert_true(id < FIRST + 4 * SEEN);
        assert_int_equal(run(f, ENGINE_SET, ENGINE_SLOT_RECORD, id, "5,6"), ENGINE_DONE);
        dumps_round(&f->dumps, NULL, NULL, false);
        if (id == FIRST) {
            assert_int_equal(run(f, ENGINE_INCR, 0, ahead, "1"), ENGINE_DONE);
        }
    }
    uint64_t before = preads(f);
    expect(f, ahead, "4,4");
    assert_int_equal(preads(f), before);
    restart(f);
    row = &((struct counter *)f->dumps.engine)->row;
    uint64_t behind = atomic_load(&row->tables[0]->frontier);
    assert_int_equal(run(f, ENGINE_SET, 0, behind + 1, "5"), ENGINE_DONE);
    assert_int_equal(dumps_tables(&f->dumps), 2);
    expect(f, ahead, "4,4");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create, destroy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_read_is_one_page),
        TEST(a_slot_beside_is_read_only_if_it_is_wanted),
        TEST(what_is_deleted_stays_so),
        TEST(slots_come_and_go),
        TEST(a_bad_page_is_an_error),
        TEST(a_layer_leaves_with_its_table),
        TEST(what_is_deleted_while_an_image_is_written_counts_once),
        TEST(what_moves_while_an_image_is_written_is_not_gone),
        TEST(what_is_far_ahead_moves_from_a_file),
        TEST(what_is_apart_stays_so_in_a_merge),
        cmocka_unit_test_setup_teardown(merges_make_room_beside, create_small, destroy),
        cmocka_unit_test_setup_teardown(a_bad_page_stops_no_other_merge, create_tight, destroy),
        cmocka_unit_test_setup_teardown(a_full_overlay_refuses_until_it_is_merged, create_tight,
                                        destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
