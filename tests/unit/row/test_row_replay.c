/*
 * test_row_replay.c: a row that is made again of what was kept of it is the row it was: each kind
 * of event, images, what is found again, and what is refused.
 */
#include "row/row_cold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "row/row_data.h"
#include "row/row_room.h"
#include "row/row_state.h"
#include "tests/unit/row/kept_row.h"

#define BATCH    64
#define CAPACITY KEPT_CAPACITY
#define FILL     KEPT_FILL
#define FIRST    KEPT_FIRST
#define FAR      KEPT_FAR
#define SAMPLE   KEPT_SAMPLE

/* ---- each event ---- */

static void test_first(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 4, true);
    expect_again(&kept);
    kept_add(&kept, FIRST, 20);
    fake_remove(&kept.rows, FIRST + 3);
    expect_again(&kept);
    kept_add(&kept, FIRST + 20, 3 * FILL);
    row_clear(&kept.rows.row);
    fake_maintain(&kept.rows);
    expect_again(&kept);
    kept_add(&kept, FIRST, 2 * FILL);
    expect_again(&kept);
    kept_row_end(&kept);
}

static void test_settle(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 4, false);
    kept_add(&kept, FAR, 1); /* the very first are strays, at either end */
    kept_add(&kept, 3, 1);
    kept_add(&kept, FIRST, SAMPLE - 2);
    assert_true(kept_table(&kept, 0)->settled);
    expect_again(&kept);
    kept_add(&kept, FIRST + SAMPLE, 100);
    expect_again(&kept);
    kept_row_end(&kept);
}

/* The window ends before the sample does: what is outside stays apart. */
static void test_settle_window(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 4, false);
    kept.rows.window = 100;
    row_clear(&kept.rows.row); /* the first one knows it */
    for (uint64_t i = 0; i < SAMPLE; i++) {
        assert_int_equal(kept_add_one(&kept, FIRST + i * 2), FAKE_ADDED);
    }
    assert_true(kept_table(&kept, 0)->settled);
    assert_int_equal(kept_table(&kept, 0)->frontier, FIRST + 99);
    assert_true(fake_is_apart(&kept.rows, FIRST + 100));
    expect_again(&kept);
    kept_row_end(&kept);
}

static void test_open(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 8, false);
    kept_add(&kept, FIRST, FILL - 2);
    kept_add(&kept, FAR, 3); /* stay apart, and move on */
    kept_add(&kept, FIRST + FILL - 2, 2 + 10);
    assert_true(kept.rows.row.count >= 2 && kept_table(&kept, 0)->closed);
    expect_again(&kept);
    kept_add(&kept, FAR + 3, ROW_CLUSTER); /* a jump */
    assert_true(kept_table(&kept, kept.rows.row.count - 1)->jumped);
    expect_again(&kept);
    kept_add(&kept, FIRST + FILL + 10, 3 * FILL);
    kept_add(&kept, 7, 40); /* late */
    expect_again(&kept);
    kept_row_end(&kept);
}

/* In place of the one it was opened from: all that one had was apart, or it had nothing. */
static void open_in_place(unsigned apart)
{
    struct kept kept;
    kept_row_begin(&kept, 8, false);
    kept_add(&kept, FIRST, FILL);
    uint64_t serial = kept_table(&kept, 1)->serial;
    kept_add(&kept, FAR, apart);
    assert_int_equal(kept_table(&kept, 1)->count, 0);
    assert_int_equal(fake_apart(&kept.rows), apart);
    struct row_opening opening = {.base = kept_table(&kept, 1)->base, .low = FAR, .jump = true};
    if (apart > 0) {
        assert_false(row_open(&kept.rows.row, kept_table(&kept, 1), &opening));
    } else {
        row_reconfigure(&kept.rows.row, &kept.config, true);
    }
    fake_maintain(&kept.rows);
    assert_int_equal(kept.rows.row.count, 2);
    assert_int_equal(kept_table(&kept, 1)->base, FIRST + FILL);
    assert_true(kept_table(&kept, 1)->serial > serial);
    expect_again(&kept);
    kept_add(&kept, FIRST + FILL, 2 * FILL);
    expect_again(&kept);
    kept_row_end(&kept);
}

static void test_open_in_place(void **unused)
{
    (void)unused;
    open_in_place(0);
    open_in_place(3);
}

static void test_layer(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 8, false);
    kept_add(&kept, FIRST, FILL + 10);
    kept_add(&kept, 0, 200);
    assert_int_equal(fake_layers(&kept.rows), 1);
    for (uint64_t id = 0; id < 20; id++) {
        fake_remove(&kept.rows, id);
        fake_remove(&kept.rows, 150 + id);
    }
    kept_add(&kept, 0, 10); /* to the layer now */
    expect_again(&kept);
    kept_row_end(&kept);
}

/* With recycling; ranges that were taken over open again. */
static void test_drop(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 4, true);
    kept_add(&kept, FIRST, 500);
    kept_add(&kept, FAR, ROW_CLUSTER + 1);
    kept_add(&kept, 2 * FAR, 3);
    kept_add(&kept, FIRST + 500, 6 * FILL);
    assert_true(kept.rows.row.recycled_tables > 2);
    expect_again(&kept);
    again_begin(&kept);
    again_replay(&kept, 0, 0);
    assert_null(kept.again.row.retired); /* their memory is used again */
    assert_int_equal(kept.again.row.region_count, kept.config.tables);
    assert_true(row_restore_end(&kept.again.row));
    fake_fini(&kept.again);
    kept_row_end(&kept);
}

/* An id that found no place left the frontier where it had come to. */
static void test_frontier_ran_ahead(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 8, false);
    kept_add(&kept, FIRST, FILL - 1);
    struct row_table *first = kept_table(&kept, 0);
    assert_int_equal(row_admit(&kept.rows.row, first, FIRST + 2 * FILL), ROW_INSIDE);
    row_removed(first, first, FIRST + 2 * FILL);
    kept_add(&kept, FIRST + FILL - 1, 1);
    kept_add(&kept, FIRST + 3 * FILL, 5);
    assert_int_equal(kept.rows.row.count, 2);
    again_begin(&kept);
    again_replay(&kept, 0, 0);
    assert_true(kept.again.row.tables[0]->closed);
    assert_int_equal(kept.again.row.tables[0]->frontier, first->last);
    assert_true(row_restore_end(&kept.again.row));
    fake_fini(&kept.again);
    kept_row_end(&kept);
}

/* A table between two others, full up to its end. `last` is an id of its own or one that found no
 * place. */
static void full_between(struct kept *kept, bool stored)
{
    kept_row_begin(kept, 8, false);
    kept_add(kept, FIRST, FILL / 2);
    kept_add(kept, FIRST + CAPACITY * 3 / 2, ROW_CLUSTER); /* just too far to be believed */
    assert_int_equal(kept->rows.row.count, 2);
    struct row_table *first = kept_table(kept, 0);
    uint64_t last = first->last;
    kept_add(kept, FIRST + FILL / 2, FILL / 2 - 1);
    if (stored) {
        kept_add(kept, last, 1);
    } else {
        assert_int_equal(row_admit(&kept->rows.row, first, last), ROW_INSIDE);
        row_removed(first, first, last);
        kept_add(kept, FIRST + FILL - 1, 1);
    }
    assert_int_equal(first->count, FILL);
    assert_true(first->closed);
    assert_int_equal(kept->rows.row.count, 2);
    kept_add(kept, FIRST + FILL, 50); /* late now */
    assert_int_equal(first->late, 50);
}

static void test_closed_between(void **unused)
{
    (void)unused;
    struct kept kept;
    full_between(&kept, true);
    expect_again(&kept);
    kept_row_end(&kept);

    full_between(&kept, false);
    kept_add(&kept, FIRST + FILL + 50, 100);
    assert_int_equal(fake_layers(&kept.rows), 1);
    again_begin(&kept);
    again_replay(&kept, 0, 0);
    assert_int_equal(fake_layers(&kept.again), 1);
    assert_true(kept.again.row.tables[0]->closed);
    assert_true(row_restore_end(&kept.again.row));
    fake_check(&kept.again);
    fake_fini(&kept.again);
    kept_row_end(&kept);
}

static void test_any_ids(void **unused)
{
    (void)unused;
    struct kept kept;
    struct row_config config = fake_config(1, false);
    config.any_ids = true;
    kept_begin_with(&kept, &config);
    kept_add(&kept, FAR, 100);
    kept_add(&kept, 5, 100);
    fake_remove(&kept.rows, FAR + 99);
    expect_again(&kept);
    row_clear(&kept.rows.row);
    fake_maintain(&kept.rows);
    expect_again(&kept);
    /* Into a row that is not so. */
    kept.config = fake_config(2, false);
    again_begin(&kept);
    assert_false(recorder_replay(&kept.recorder, &kept.again.engine, 0, 0, BATCH));
    assert_false(row_restore_end(&kept.again.row));
    fake_fini(&kept.again);
    kept_row_end(&kept);
}

/* Whatever the configuration says by now, tables are what they were. */
static void test_other_config(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 6, true);
    kept_add(&kept, FIRST, 3 * FILL + 10);
    kept.config.tables = 2;
    kept.config.table_bytes *= 2;
    kept.config.late_room = ROW_LATE_AUTO;
    kept.config.late_start = 0.5;
    fake_init(&kept.again, &kept.config, 3 * CAPACITY);
    row_restore_clear(&kept.again.row);
    again_replay(&kept, 0, 0);
    again_same(&kept, true);
    assert_true(kept.again.row.late_room > 0.09 && kept.again.row.late_room < 0.11);
    fake_maintain(&kept.again);
    /* It goes on with tables of the new configuration, and comes down to that. */
    for (uint64_t i = 0; i < 6 * 3 * CAPACITY; i++) {
        assert_int_equal(fake_add(&kept.again, FIRST + 3 * FILL + 10 + i), FAKE_ADDED);
        if (row_asked(&kept.again.row)) {
            fake_maintain(&kept.again);
        }
    }
    const struct row *row = &kept.again.row;
    assert_int_equal(row->tables[row->count - 1]->capacity, 3 * CAPACITY);
    assert_int_equal(row_held_bytes(row), kept.config.tables * kept.config.table_bytes);
    fake_fini(&kept.again);
    kept_row_end(&kept);
}

/* ---- what cannot have happened ---- */

static void expect_refused(struct kept *kept, enum change_event event, const void *bytes,
                           size_t length)
{
    char error[ROW_ERROR_MAX] = "";
    struct row *row = &kept->again.row;
    size_t count = row->count;
    assert_false(row_replay_table(row, event, kept->recorder.head, bytes, length, error));
    assert_string_not_equal(error, "");
    assert_int_equal(row->count, count);
}

static void test_refused(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 8, false);
    kept_add(&kept, FIRST, FILL + 10);
    again_begin(&kept);
    again_replay(&kept, 0, 0);
    unsigned char bytes[ROW_TABLE_BYTES_MAX];
    size_t length = row_describe_table(&kept.rows.row, kept_table(&kept, 1), bytes);
    uint64_t drop[4] = {0, 5, 0, 0};
    expect_refused(&kept, CHANGE_EVENT_SPACE, bytes, length);
    expect_refused(&kept, (enum change_event)77, bytes, length);
    expect_refused(&kept, CHANGE_EVENT_FIRST, bytes, length);
    bytes[0]++; /* another serial */
    expect_refused(&kept, CHANGE_EVENT_SETTLE, bytes, length);
    bytes[0]--;
    expect_refused(&kept, CHANGE_EVENT_OPEN, bytes, length); /* a second time */
    expect_refused(&kept, CHANGE_EVENT_OPEN, bytes, 8);
    expect_refused(&kept, CHANGE_EVENT_LAYER, bytes, length);
    expect_refused(&kept, CHANGE_EVENT_DROP, drop, 16); /* at no base */
    drop[1] = 0;
    drop[0] = 9;
    expect_refused(&kept, CHANGE_EVENT_DROP, drop, 16); /* another serial */
    expect_refused(&kept, CHANGE_EVENT_DROP, drop, 24);
    expect_refused(&kept, CHANGE_EVENT_DROP, drop, 32); /* what was dropped lies below its base */
    uint64_t whole[3] = {9, 0, 0};
    expect_refused(&kept, CHANGE_EVENT_WHOLE, whole, 16); /* another serial */
    whole[1] = 5;
    expect_refused(&kept, CHANGE_EVENT_WHOLE, whole, 16); /* at no base */
    expect_refused(&kept, CHANGE_EVENT_WHOLE, whole, 24);
    struct row_state state;
    memcpy(&state, bytes, sizeof(state));
    state.serial = 5;
    memcpy(bytes, &state, sizeof(state));
    expect_refused(&kept, CHANGE_EVENT_OPEN, bytes, length); /* where one has ids in place */
    state.base += 1;
    memcpy(bytes, &state, sizeof(state));
    expect_refused(&kept, CHANGE_EVENT_OPEN, bytes, length);
    again_same(&kept, true);
    /* The next one, with a serial that was given before; then with one that was not. */
    state.base = state.low = kept_table(&kept, 1)->frontier + 1;
    state.frontier = state.trusted = state.base - 1;
    state.step = 1;
    state.count = 0;
    state.serial = 1;
    memcpy(bytes, &state, sizeof(state));
    expect_refused(&kept, CHANGE_EVENT_OPEN, bytes, length);
    state.serial = 2;
    memcpy(bytes, &state, sizeof(state));
    char error[ROW_ERROR_MAX] = "";
    assert_true(row_replay_table(&kept.again.row, CHANGE_EVENT_OPEN, kept.recorder.head, bytes,
                                 length, error));
    fake_fini(&kept.again);
    kept_row_end(&kept);
}

/* ---- images ---- */

static void nothing(struct kept *kept, void *context)
{
    (void)kept;
    (void)context;
}

/* Nothing happened while it was written. */
static void test_images(void **unused)
{
    (void)unused;
    struct kept kept;
    struct checkpoint point = {0};
    kept_row_begin(&kept, 8, true);
    kept_add(&kept, FIRST, FILL + 100);
    kept_add(&kept, FAR, 5);
    kept_add(&kept, 0, 200); /* a layer */
    checkpoint_begin(&point, &kept);
    while (checkpoint_step(&point, &kept, nothing, NULL)) {
    }
    assert_int_equal(point.count, 4);
    again_load(&kept, &point);
    struct row_image image;
    assert_false(row_image_next(&kept.again.row, 1, point.m, &image)); /* they have theirs */
    again_replay(&kept, point.since, point.m);
    again_same(&kept, true);
    /* What lies apart is known to be ahead: eleven more of them are a cluster. */
    assert_int_equal(kept.again.row.ahead_count, 5);
    for (uint64_t i = 0; i < ROW_CLUSTER - 5; i++) {
        assert_int_equal(fake_add(&kept.again, FAR + 5 + i), FAKE_ADDED);
    }
    size_t tables = kept.again.row.count;
    fake_maintain(&kept.again);
    assert_int_equal(kept.again.row.count, tables + 1);
    fake_fini(&kept.again);

    kept_add(&kept, FIRST + FILL + 100, 3 * FILL); /* later events */
    again_load(&kept, &point);
    again_replay(&kept, point.since, point.m);
    again_same(&kept, false);
    fake_fini(&kept.again);
    checkpoint_fini(&point);
    kept_row_end(&kept);
}

static void expect_of_images(struct kept *kept)
{
    struct checkpoint point = {0};
    row_touch(kept->rows.row.apart); /* else one of before would do */
    checkpoint_begin(&point, kept);
    while (checkpoint_step(&point, kept, nothing, NULL)) {
    }
    again_load(kept, &point);
    again_replay(kept, point.since, point.m);
    again_same(kept, true);
    fake_fini(&kept->again);
    checkpoint_fini(&point);
}

static void add_late(struct kept *kept, void *context)
{
    uint64_t *next = context;
    kept_add(kept, *next, 40);
    *next += 40;
    fake_remove(&kept->rows, *next - 1200); /* in an earlier layer */
}

/* More late ids than a table and its layer hold, while their images are made, too. */
static void test_many_layers(void **unused)
{
    (void)unused;
    struct kept kept;
    struct checkpoint point = {0};
    uint64_t next = 2500;
    kept_row_begin(&kept, 12, false);
    kept_add(&kept, FIRST, FILL + 10);
    kept_add(&kept, 0, next);
    assert_int_equal(row_last_layer(kept_table(&kept, 0))->layer, 3);
    expect_again(&kept);
    checkpoint_begin(&point, &kept);
    while (checkpoint_step(&point, &kept, next < 4000 ? add_late : nothing, &next)) {
    }
    assert_true(row_last_layer(kept_table(&kept, 0))->layer > 3);
    again_load(&kept, &point);
    again_replay(&kept, point.since, point.m);
    again_same(&kept, false);
    fake_fini(&kept.again);
    kept_add(&kept, next, CAPACITY); /* later events */
    again_load(&kept, &point);
    again_replay(&kept, point.since, point.m);
    again_same(&kept, false);
    fake_fini(&kept.again);
    checkpoint_fini(&point);
    kept_row_end(&kept);
}

/* The range of a layered table grows, and shrinks again when one opens in what it took over. */
static void test_layer_images(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 8, false);
    kept_add(&kept, FIRST, FILL + 10);
    kept_add(&kept, 0, 200);
    assert_true(kept.recorder.log.reserve(&kept.recorder.log));
    row_recycle(&kept.rows.row, kept_table(&kept, 1));
    fake_maintain(&kept.rows);
    assert_int_equal(kept.rows.row.count, 1);
    kept_add(&kept, 200, 10);
    expect_of_images(&kept);
    expect_again(&kept);
    assert_int_equal(kept_add_one(&kept, FIRST + FILL), FAKE_BELOW);
    kept_add(&kept, FIRST + FILL + 10, 20);
    assert_int_equal(kept.rows.row.count, 2);
    kept_add(&kept, 210, 10);
    expect_of_images(&kept);
    expect_again(&kept);
    kept_row_end(&kept);
}

/* What was dropped above a table that stayed is known again: from events, from images. */
static void test_dropped(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 5, true);
    kept_add(&kept, FIRST, 300);
    for (uint64_t i = 1; i <= 6; i++) {
        kept_add(&kept, (FAR << 2 * i), ROW_CLUSTER + 1);
        kept_add(&kept, (FAR << 2 * i) + 1000000, 1);
        kept_add(&kept, FIRST + 300 + i, 1);
    }
    assert_int_equal(kept_table(&kept, 0)->serial, 0);
    assert_int_equal(kept.rows.row.dropped_ranges, 4);
    expect_of_images(&kept);
    expect_again(&kept);
    kept_add(&kept, FIRST + 400, 2 * FILL); /* the table below goes on */
    assert_true(kept.rows.row.dropped_ranges >= 4);
    expect_again(&kept);
    again_begin(&kept);
    again_replay(&kept, 0, 0);
    again_same(&kept, true);
    for (uint64_t i = 1; i <= 4; i++) {
        assert_int_equal(fake_add(&kept.again, (FAR << 2 * i) + 3), FAKE_BELOW);
        assert_int_equal(fake_add(&kept.again, (FAR << 2 * i) + 1000000), FAKE_THERE);
    }
    fake_fini(&kept.again);
    kept_row_end(&kept);
}

/* A configuration with as many regions as there may be, all of another size. */
static void test_regions(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 6, false);
    kept_add(&kept, FIRST, 2 * FILL + 10);
    kept.config.tables = ROW_TABLES_MAX;
    kept.config.table_bytes *= 2;
    again_begin(&kept);
    again_replay(&kept, 0, 0);
    again_same(&kept, true);
    fake_maintain(&kept.again);
    fake_fini(&kept.again);
    kept_row_end(&kept);
}

/* The sample of an unsettled table is found again; the next one fills it. */
static void test_sample(void **unused)
{
    (void)unused;
    struct kept kept;
    struct checkpoint point = {0};
    kept_row_begin(&kept, 8, true);
    kept_add(&kept, FIRST, SAMPLE - 1);
    checkpoint_begin(&point, &kept);
    while (checkpoint_step(&point, &kept, nothing, NULL)) {
    }
    again_load(&kept, &point);
    again_same(&kept, true);
    assert_int_equal(kept.again.row.sample_count, SAMPLE - 1);
    fake_maintain(&kept.again);
    assert_false(kept.again.row.tables[0]->settled);
    assert_int_equal(fake_add(&kept.again, FIRST + SAMPLE - 1), FAKE_ADDED);
    fake_maintain(&kept.again);
    assert_true(kept.again.row.tables[0]->settled);
    fake_fini(&kept.again);
    /* With a smaller sample it settles at once. */
    kept.config.sample = SAMPLE / 2;
    again_load(&kept, &point);
    assert_true(row_restore_end(&kept.again.row));
    fake_maintain(&kept.again);
    assert_true(kept.again.row.tables[0]->settled);
    fake_fini(&kept.again);
    checkpoint_fini(&point);
    kept_row_end(&kept);
}

/* A fill that is reached, the wants of which nobody noted, opens the next one. */
static void test_wants(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 8, true);
    kept_add(&kept, FIRST, FILL - 1);
    assert_int_equal(fake_add(&kept.rows, FIRST + FILL - 1), FAKE_ADDED);
    kept_note(&kept, FIRST + FILL - 1);
    assert_int_equal(kept.rows.row.count, 1); /* the keeper has not come */
    again_begin(&kept);
    again_replay(&kept, 0, 0);
    again_same(&kept, true);
    fake_maintain(&kept.again);
    assert_int_equal(kept.again.row.count, 2);
    fake_fini(&kept.again);
    fake_maintain(&kept.rows);
    kept_row_end(&kept);
}

static void test_nothing(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 4, true);
    again_begin(&kept);
    assert_false(row_restore_end(&kept.again.row));
    fake_check(&kept.again);
    assert_int_equal(fake_add(&kept.again, FIRST), FAKE_ADDED);
    fake_fini(&kept.again);
    kept_row_end(&kept);
}

/* It opens beyond the memory there is: as many tables leave then. */
static void test_dumps(void **unused)
{
    (void)unused;
    struct kept kept;
    struct row_config config = fake_config(6, false);
    config.late_room = 0.1;
    config.dump = true;
    kept_begin_with(&kept, &config);
    kept_add(&kept, FIRST, 5 * FILL);
    kept.config.tables = 3;
    again_begin(&kept);
    const struct row *row = &kept.again.row;
    again_replay(&kept, 0, 0);
    assert_int_equal(row->count, 6);
    assert_false(row_cold_wanted(row));
    again_same(&kept, true);
    assert_true(row_cold_wanted(row));
    size_t leaving = 0;
    for (size_t i = 0; i < row->count; i++) {
        leaving += row->tables[i]->leaving;
    }
    assert_int_equal(leaving, 4); /* all but the newest, and the spare */
    fake_maintain(&kept.again);
    fake_fini(&kept.again);
    kept_row_end(&kept);
}

/* An id that an image had already is not counted again. */
static void test_created_and_there(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 4, false);
    kept_add(&kept, FIRST, 2 * FILL);
    struct row_table *table = kept_table(&kept, 0);
    assert_true(table->closed);
    const uint64_t before[] = {table->count, table->late, fake_apart(&kept.rows)};
    row_replay_created(&kept.rows.row, table, table, FIRST + 5, false);
    row_replay_apart(&kept.rows.row, FIRST + 6, false);
    assert_true(table->count == before[0] && table->late == before[1] &&
                fake_apart(&kept.rows) == before[2]);
    kept_row_end(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dumps),
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_created_and_there),
        cmocka_unit_test(test_settle),
        cmocka_unit_test(test_settle_window),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_open_in_place),
        cmocka_unit_test(test_layer),
        cmocka_unit_test(test_drop),
        cmocka_unit_test(test_frontier_ran_ahead),
        cmocka_unit_test(test_closed_between),
        cmocka_unit_test(test_any_ids),
        cmocka_unit_test(test_other_config),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_many_layers),
        cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_layer_images),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_wants),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
