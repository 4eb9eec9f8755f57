/*
 * test_counter_cold.c: one dumped table of the counter engine: what a read costs, what a bad page
 * is answered with, slots that come and go, deletes, a layer, what changes during an image.
 */
#include "row/row.h"
#include "tests/support/image_file.h"
#include "tests/unit/counter/dumped_space.h"

#include <stdio.h>
#include <string.h>

/* A page for the record, a second one for what lies beside or spilled; none from the overlay. */
static void a_read_is_one_page(void **state)
{
    struct dumped_space *f = *state;
    unsigned twice = 0;
    for (uint64_t i = 0; i < SEEN; i++) {
        uint64_t before = space_preads(f);
        space_expect(f, FIRST + i, i % 10 == 0 ? "7," LARGE : "7,8");
        uint64_t read = space_preads(f) - before;
        assert_in_range(read, i % 10 == 0 ? 2 : 1, i % 10 == 0 ? 3 : 2);
        twice += i % 10 != 0 && read == 2;
    }
    assert_true(twice < SEEN / 10); /* those that spilled */
    uint64_t before = space_preads(f);
    space_expect(f, FIRST + IDS - 1, "7,8"); /* of the table in memory */
    assert_int_equal(space_preads(f), before);
    assert_int_equal(space_run(f, ENGINE_SET, 0, FIRST + 1, "9"), ENGINE_DONE);
    before = space_preads(f);
    space_expect(f, FIRST + 1, "9,8");
    assert_int_equal(space_run(f, ENGINE_INCR, 0, FIRST + 1, "1"), ENGINE_DONE);
    assert_string_equal(f->call.value, "10");
    assert_int_equal(space_preads(f), before);
}

static void a_slot_beside_is_read_only_if_it_is_wanted(void **state)
{
    struct dumped_space *f = *state;
    uint64_t before = space_preads(f);
    assert_int_equal(space_run(f, ENGINE_READ, 0, FIRST + 10, NULL), ENGINE_DONE);
    assert_string_equal(f->call.value, "7");
    assert_in_range(space_preads(f) - before, 1, 2);
}

static void what_is_deleted_stays_so(void **state)
{
    struct dumped_space *f = *state;
    for (unsigned round = 0; round < 3; round++) {
        uint64_t id = FIRST + 20 + round;
        assert_int_equal(space_run(f, ENGINE_DELETE, ENGINE_SLOT_RECORD, id, NULL), ENGINE_DONE);
        assert_int_equal(space_run(f, ENGINE_DELETE, ENGINE_SLOT_RECORD, id, NULL), ENGINE_ABSENT);
        space_expect(f, id, NULL);
        assert_int_equal(space_run(f, ENGINE_REPLACE, 0, id, "3"), ENGINE_ABSENT);
        assert_int_equal(space_run(f, ENGINE_SET, 0, id + 100, "3"), ENGINE_DONE);
        assert_int_equal(space_run(f, ENGINE_DELETE, ENGINE_SLOT_RECORD, id + 200, NULL),
                         ENGINE_DONE);
        assert_int_equal(space_run(f, ENGINE_ADD, 0, id + 200, "4"), ENGINE_DONE);
        if (round > 0) {
            space_round(f); /* the second with its overlay's image */
        }
        space_restart(f);
        space_expect(f, id, NULL);
        space_expect(f, id + 200, "4,");
    }
}

static void slots_come_and_go(void **state)
{
    struct dumped_space *f = *state;
    counters_config_slots(&f->config, "b:20 c:20");
    strcpy(f->config.forget[0], "a");
    f->config.forget_count = 1;
    counters_reconfigure(f->dumps.engine, &f->config);
    space_expect(f, FIRST + 1, "8,");
    assert_int_equal(space_run(f, ENGINE_SET, 1, FIRST + 1, "5"), ENGINE_DONE);
    space_expect(f, FIRST + 1, "8,5");
    assert_int_equal(space_run(f, ENGINE_SET, 0, FIRST + 2, LARGE), ENGINE_DONE);
    space_restart(f); /* changed while a slot was hidden: that is found in the file */
    space_expect(f, FIRST + 1, "8,5");
    counters_config_slots(&f->config, "a:20 b:20 c:20");
    f->config.forget_count = 0;
    counters_reconfigure(f->dumps.engine, &f->config);
    space_expect(f, FIRST + 1, ",8,5"); /* it is another slot of that name */
    space_expect(f, FIRST + 2, "," LARGE ",");
    assert_int_equal(space_run(f, ENGINE_SET, 0, FIRST + 1, "4"), ENGINE_DONE);
    space_expect(f, FIRST + 1, "4,8,5");
    /* Of learned names alone: such a record is no deleted one. */
    assert_int_equal(space_run(f, ENGINE_DELETE, 0, FIRST + 1, NULL), ENGINE_DONE);
    assert_int_equal(space_run(f, ENGINE_DELETE, 1, FIRST + 1, NULL), ENGINE_DONE);
    space_expect(f, FIRST + 1, ",,5");
    space_round(f);
    space_restart(f);
    space_expect(f, FIRST + 1, ",,5");
    space_expect(f, FIRST + 2, "," LARGE ",");
}

/* A change that a start finds in the journal, of one slot of an id that was there. */
static void what_one_slot_does_not_say_is_read_in_the_file(void **state)
{
    struct dumped_space *f = *state;
    char error[ENGINE_ERROR_MAX] = "";
    const struct engine_replay replay = {.lsn = UINT64_MAX,
                                         .change = {.type = CHANGE_SLOTS,
                                                    .place = CHANGE_THERE,
                                                    .id = FIRST + 1,
                                                    .named = 1,
                                                    .set = 1,
                                                    .values = {9}}};
    if (!row_replay(space_row(f), &replay, 1, error)) {
        fail_msg("%s", error);
    }
    space_expect(f, FIRST + 1, "9,8");
}

static void a_bad_page_is_an_error(void **state)
{
    struct dumped_space *f = *state;
    char path[64];
    const struct dumps_set *set = &f->dumps.last;
    for (size_t i = 0; i < set->count; i++) {
        snprintf(path, sizeof(path), "/d/%s", set->files[i].name);
        for (uint64_t page = 1; set->files[i].dump && page < 17; page++) { /* after the header */
            assert_true(vfs_sim_flip(f->dumps.sim, path, page * 4096 + 100, 3));
        }
    }
    unsigned failed = 0;
    for (uint64_t i = 1; i < SEEN; i++) {
        enum engine_status status = space_run(f, ENGINE_READ, 0, FIRST + i, NULL);
        if (status == ENGINE_ERROR) {
            assert_int_equal(f->call.op.error, ENGINE_E_READ_FAILED);
            failed++;
            assert_int_equal(space_run(f, ENGINE_INCR, 0, FIRST + i, "1"), ENGINE_ERROR);
            assert_int_equal(f->call.op.error, ENGINE_E_READ_FAILED);
            continue;
        }
        assert_int_equal(status, ENGINE_DONE);
        assert_string_equal(f->call.value, "7");
    }
    assert_true(failed > 0);
}

/* Every second id first, then those between: they come late, and more than the table takes. */
static void fill_twice(struct dumped_space *f)
{
    for (uint64_t late = 0; late < 2; late++) {
        for (uint64_t i = 0; i < IDS; i++) {
            uint64_t id = FIRST + 2 * i + late;
            space_set(f, id, "1,2");
        }
    }
    row_maintain(f->dumps.engine->row, NULL);
}

static void check_layered(struct dumped_space *f)
{
    for (uint64_t i = 0; i < SEEN; i++) {
        static const char *const texts[] = {NULL, "9,", "1,3", "1,2"};
        space_expect(f, FIRST + i, texts[i % 4]);
    }
}

static void a_layer_leaves_with_its_table(void **state)
{
    struct dumped_space *f = *state;
    space_begin_anew(f);
    fill_twice(f);
    assert_true(dumps_leave(&f->dumps, 0));
    space_round(f);
    assert_int_equal(dumps_layers(&f->dumps), 1);
    space_restart(f);
    for (uint64_t i = 0; i < SEEN; i++) {
        uint64_t id = FIRST + i;
        if (i % 4 < 2) {
            assert_int_equal(space_run(f, ENGINE_DELETE, ENGINE_SLOT_RECORD, id, NULL),
                             ENGINE_DONE);
        }
        if (i % 4 == 1) {
            enum engine_status status = space_run(f, ENGINE_SET, 0, id, "9");
            assert_int_equal(status, ENGINE_DONE);
        }
        if (i % 4 == 2) {
            assert_int_equal(space_run(f, ENGINE_SET, 1, id, "3"), ENGINE_DONE);
            assert_int_equal(f->call.op.copied_bytes, ENGINE_COPIED_COLD); /* others get a turn */
        }
    }
    check_layered(f);
    space_restart(f);
    check_layered(f);
    space_round(f);
    space_restart(f);
    check_layered(f);
}

struct deleting {
    struct dumped_space *fixture;
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
        struct dumped_space *f = deleting->fixture;
        assert_int_equal(space_run(f, ENGINE_DELETE, ENGINE_SLOT_RECORD, id, NULL), ENGINE_DONE);
        if (id == deleting->again) {
            assert_int_equal(space_run(f, ENGINE_ADD, 0, id, "1"), ENGINE_DONE);
            assert_int_equal(space_run(f, ENGINE_DELETE, ENGINE_SLOT_RECORD, id, NULL),
                             ENGINE_DONE);
        }
    }
}

/* An image may show that an id of the table is gone, which the layer never had: replay of that
 * takes it off the table's count, not off the layer's, whose own image began later. */
static void what_is_deleted_while_an_image_is_written_counts_once(void **state)
{
    struct dumped_space *f = *state;
    space_begin_anew(f);
    struct row *row = space_row(f);
    fill_twice(f);
    assert_true(dumps_leave(&f->dumps, 0));
    space_round(f);
    assert_int_equal(dumps_layers(&f->dumps), 1);
    uint64_t of_layer = (row->tables[0]->last - 100) | 1;
    struct deleting deleting = {f, {FIRST, FIRST + 2, of_layer, FIRST + 6}, 4, 0, FIRST + 6};
    assert_int_equal(space_run(f, ENGINE_INCR, 0, FIRST + 4, "1"), ENGINE_DONE);
    assert_int_equal(space_run(f, ENGINE_INCR, 0, of_layer - 2, "1"), ENGINE_DONE);
    uint64_t table = row->tables[0]->count;
    uint64_t layer = row->tables[0]->further->count;
    vfs_sim_hook(f->dumps.sim, delete_some, &deleting);
    space_round(f);
    vfs_sim_hook(f->dumps.sim, NULL, NULL);
    assert_int_equal(f->dumps.kinds[ROW_IMAGE_OVERLAY], 2);
    for (unsigned round = 0; round < 2; round++) {
        row = space_row(f);
        assert_int_equal(row->tables[0]->count, table - 3);
        assert_int_equal(row->tables[0]->further->count, layer - 1);
        space_restart(f);
    }
}

#define LAYERS 2u
#define KNOWN  8u

/* A table and layers, all dumped; some ids of each. */
static struct row_table *dump_many_layers(struct dumped_space *f, uint64_t ids[][KNOWN])
{
    f->config.row.dump = false; /* else there is one layer */
    space_begin_anew(f);
    struct row *row = space_row(f);
    for (uint64_t i = 0; i < (LAYERS + 1) * IDS; i++) {
        uint64_t id = FIRST + i % IDS * (LAYERS + 1) + i / IDS;
        space_set(f, id, "1,2");
        unsigned last = row_last_layer(row->tables[0])->layer;
        if (last <= LAYERS && id <= row->tables[0]->last) {
            ids[last][i % KNOWN] = id;
        }
    }
    f->config.row.dump = true;
    counters_reconfigure(f->dumps.engine, &f->config);
    assert_true(dumps_leave(&f->dumps, 0));
    space_round(f);
    assert_true(row->tables[0]->cold && row_last_layer(row->tables[0])->layer >= LAYERS);
    return row->tables[0];
}

/* Layers whose images began before the change and after it: each counts what it lost itself. */
static void what_is_deleted_of_one_of_many_layers_counts_there(void **state)
{
    struct dumped_space *f = *state;
    uint64_t ids[LAYERS + 1][KNOWN];
    struct row_table *table = dump_many_layers(f, ids);
    uint64_t counts[LAYERS + 1];
    for (unsigned layer = 0; layer <= LAYERS; layer++) {
        counts[layer] = row_layer_of(table, layer)->count;
    }
    for (unsigned imaged = 0; imaged < LAYERS; imaged++) { /* first, and then the deletes come */
        struct deleting deleting = {f, {ids[1][imaged], ids[2][imaged]}, imaged + 1, 0, 0};
        assert_int_equal(space_run(f, ENGINE_INCR, 0, ids[imaged][KNOWN - 1], "1"), ENGINE_DONE);
        vfs_sim_hook(f->dumps.sim, delete_some, &deleting);
        space_round(f);
        vfs_sim_hook(f->dumps.sim, NULL, NULL);
        assert_int_equal(deleting.done, imaged + 1);
        counts[1]--;
        counts[2] -= imaged;
        space_restart(f);
        for (unsigned layer = 0; layer <= LAYERS; layer++) {
            assert_int_equal(row_layer_of(space_row(f)->tables[0], layer)->count, counts[layer]);
        }
    }
}

/* What is deleted while its table's dump is written is gone when that is read. */
static void what_is_deleted_while_a_dump_is_written_is_gone(void **state)
{
    struct dumped_space *f = *state;
    space_begin_anew(f);
    for (uint64_t i = 0; i < IDS; i++) {
        space_set(f, FIRST + i, "7,8");
    }
    row_maintain(f->dumps.engine->row, NULL);
    assert_true(dumps_leave(&f->dumps, 0));
    struct deleting deleting = {f, {FIRST, FIRST + 1, FIRST + 2, FIRST + 100}, 4, 0, FIRST + 2};
    vfs_sim_hook(f->dumps.sim, delete_some, &deleting);
    space_round(f);
    vfs_sim_hook(f->dumps.sim, NULL, NULL);
    assert_int_equal(dumps_cold(&f->dumps), 1);
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < deleting.count; i++) {
            space_expect(f, deleting.ids[i], NULL);
        }
        space_expect(f, FIRST + 3, "7,8");
        space_restart(f);
    }
}

/* What changed of one table is not taken for what changed of another. */
static void an_overlay_of_another_table_is_refused(void **state)
{
    struct dumped_space *f = *state;
    struct dumps_file *overlays[2];
    size_t found = 0;
    space_begin_anew(f);
    for (uint64_t i = 0; i < 3 * IDS; i++) {
        space_set(f, FIRST + i, "7,8");
    }
    row_maintain(f->dumps.engine->row, NULL);
    assert_true(dumps_leave(&f->dumps, 0) && dumps_leave(&f->dumps, 1));
    space_round(f);
    assert_int_equal(dumps_cold(&f->dumps), 2);
    for (size_t i = 0; i < 2; i++) {
        uint64_t id = space_row(f)->tables[i]->last;
        assert_int_equal(space_run(f, ENGINE_INCR, 0, id, "1"), ENGINE_DONE);
    }
    space_round(f);
    for (size_t i = 0; i < f->dumps.last.count; i++) {
        if (row_file_is_overlay(f->dumps.last.files[i].layer)) {
            assert_true(found < 2);
            overlays[found++] = &f->dumps.last.files[i];
        }
    }
    assert_int_equal(found, 2);
    for (unsigned swap = 0; swap < 2; swap++) {
        uint64_t serial = overlays[0]->serial;
        overlays[0]->serial = overlays[1]->serial;
        overlays[1]->serial = serial;
        assert_true(dumps_restore(&f->dumps, &f->config) == (swap == 1));
    }
    space_restart(f);
}

struct moving {
    struct dumped_space *fixture;
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
    struct dumped_space *f = moving->fixture;
    (void)path;
    if (op != VFS_SIM_OPEN || moving->done) {
        return;
    }
    moving->done = true;
    struct row *row = space_row(f);
    struct table_overlay *overlay = counter_table_of(row->tables[0])->overlay;
    uint64_t before[SCHEMA_PAYLOAD_WORDS];
    assert_true(dict_get(overlay->extend, moving->id, 0, before));
    assert_int_equal(space_run(f, ENGINE_SET, 1, moving->id, "5"), ENGINE_DONE);
    assert_false(dict_get(overlay->aux, moving->id, 1, NULL));
    assert_true(dict_put(overlay->extend, moving->id, 0, before));
}

/* A record that an image shows without any value is not gone: what changed it is replayed. */
static void what_moves_while_an_image_is_written_is_not_gone(void **state)
{
    struct dumped_space *f = *state;
    struct moving moving = {f, FIRST, false};
    assert_int_equal(space_run(f, ENGINE_DELETE, 0, FIRST, NULL), ENGINE_DONE);
    space_expect(f, FIRST, "," LARGE);
    vfs_sim_hook(f->dumps.sim, move_in_place, &moving);
    space_round(f);
    vfs_sim_hook(f->dumps.sim, NULL, NULL);
    assert_true(moving.done);
    assert_int_equal(f->dumps.kinds[ROW_IMAGE_OVERLAY], 1);
    space_restart(f);
    space_expect(f, FIRST, ",5");
}

struct overtaking {
    struct dumped_space *fixture;
    uint64_t id;
    unsigned left;  /* changes that are still to overtake */
    uint64_t after; /* the value after the last one carried out */
};

static enum engine_status decide_incr(const struct counter_edit *edit, bool present,
                                      const struct counter_values *before,
                                      struct counter_values *after)
{
    struct overtaking *overtaking = edit->context;
    assert_true(present);
    after->value[0] = before->value[0] + 1;
    overtaking->after = after->value[0];
    return ENGINE_DONE;
}

/* Reads the disk itself: what happens while it does is before its change is decided. */
static void incr_first_slot(struct overtaking *overtaking)
{
    struct dumped_space *f = overtaking->fixture;
    struct counter_table *table = counter_table_of(space_row(f)->tables[0]);
    struct counter_edit edit = {.named = 1, .decide = decide_incr, .context = overtaking};
    struct counter_reader reader = {.cold = NULL};
    struct counter_locus locus;
    enum engine_error error = ENGINE_E_NONE;
    counter_table_locate(table, overtaking->id, true, &locus);
    assert_int_equal(
        counter_table_edit_cold(table, &locus, &edit, 0, change_sink_null(), &reader, &error),
        ENGINE_DONE);
}

static void overtake(void *context, enum vfs_sim_op op, const char *path)
{
    struct overtaking *overtaking = context;
    (void)path;
    if (op == VFS_SIM_PREAD && overtaking->left > 0) {
        overtaking->left--;
        incr_first_slot(overtaking);
    }
}

/* While the page of one change is read others change the same record, the first ones of all. */
static void what_changed_while_a_page_was_read_is_not_lost(void **state)
{
    struct dumped_space *f = *state;
    for (unsigned others = 0; others < 3; others++) {
        struct overtaking overtaking = {f, FIRST + 1 + others, others, 0};
        vfs_sim_hook(f->dumps.sim, overtake, &overtaking);
        incr_first_slot(&overtaking);
        vfs_sim_hook(f->dumps.sim, NULL, NULL);
        assert_int_equal(overtaking.left, 0);
        assert_int_equal(overtaking.after, 7 + others + 1);
    }
    space_expect(f, FIRST + 3, "10,8");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, space_create, space_destroy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_read_is_one_page),
        TEST(a_slot_beside_is_read_only_if_it_is_wanted),
        TEST(what_is_deleted_stays_so),
        TEST(slots_come_and_go),
        TEST(what_one_slot_does_not_say_is_read_in_the_file),
        TEST(a_bad_page_is_an_error),
        TEST(a_layer_leaves_with_its_table),
        TEST(what_is_deleted_while_an_image_is_written_counts_once),
        TEST(what_is_deleted_of_one_of_many_layers_counts_there),
        TEST(what_is_deleted_while_a_dump_is_written_is_gone),
        TEST(an_overlay_of_another_table_is_refused),
        TEST(what_changed_while_a_page_was_read_is_not_lost),
        TEST(what_moves_while_an_image_is_written_is_not_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
