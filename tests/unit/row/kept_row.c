/* kept_row.c: what is kept, and a row made again of it. */
#include "tests/unit/row/kept_row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "row/row_data.h"
#include "tests/support/row_equal.h"

#define BATCH     64
#define APART_MAX (KEPT_CAPACITY / 4) /* else a table could be full of what is apart */

void kept_begin_with(struct kept *kept, const struct row_config *config)
{
    memset(kept, 0, sizeof(*kept));
    kept->config = *config;
    recorder_init(&kept->recorder);
    fake_init(&kept->rows, &kept->config, KEPT_CAPACITY);
    kept->rows.apart_max = APART_MAX;
    fake_keep(&kept->rows, &kept->recorder);
    row_log_first(&kept->rows.row);
}

void kept_row_begin(struct kept *kept, unsigned tables, bool recycle)
{
    struct row_config config = fake_config(tables, recycle);
    config.late_room = 0.1;
    kept_begin_with(kept, &config);
}

void kept_row_end(struct kept *kept)
{
    fake_fini(&kept->rows);
    recorder_fini(&kept->recorder);
    free(kept->ids);
}

void kept_replace(struct kept *kept)
{
    fake_fini(&kept->rows);
    fake_init(&kept->rows, &kept->config, KEPT_CAPACITY);
    kept->rows.apart_max = APART_MAX;
    row_restore_clear(&kept->rows.row);
}

void kept_note(struct kept *kept, uint64_t id)
{
    if (kept->count == kept->room) {
        kept->room = kept->room ? 2 * kept->room : 1024;
        kept->ids = realloc(kept->ids, kept->room * sizeof(*kept->ids));
        assert_non_null(kept->ids);
    }
    kept->ids[kept->count++] = id;
}

enum fake_answer kept_add_one(struct kept *kept, uint64_t id)
{
    enum fake_answer answer = fake_add(&kept->rows, id);
    if (answer == FAKE_ADDED) {
        kept_note(kept, id);
    }
    if (row_asked(&kept->rows.row)) {
        fake_maintain(&kept->rows);
    }
    return answer;
}

void kept_add(struct kept *kept, uint64_t from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(kept_add_one(kept, from + i), FAKE_ADDED);
    }
}

size_t kept_events(const struct kept *kept, enum change_event event)
{
    size_t n = 0;
    for (size_t i = 0; i < kept->recorder.count; i++) {
        const struct recorder_record *record = &kept->recorder.records[i];
        n += record->type == CHANGE_RECORD_EVENT && record->b == event;
    }
    return n;
}

struct row_table *kept_table(struct kept *kept, size_t i)
{
    assert_true(i < kept->rows.row.count);
    return kept->rows.row.tables[i];
}

/* ---- made again ---- */

void again_begin(struct kept *kept)
{
    fake_init(&kept->again, &kept->config, KEPT_CAPACITY);
    kept->again.window = kept->rows.window;
    row_restore_clear(&kept->again.row);
    assert_null(row_find(&kept->again.row, KEPT_FIRST));
}

void again_replay(struct kept *kept, uint64_t from, uint64_t rows_from)
{
    if (!recorder_replay(&kept->recorder, &kept->again.engine, from, rows_from, BATCH)) {
        fail_msg("replay: %s", kept->recorder.error);
    }
}

void again_same(struct kept *kept, bool exact)
{
    row_equal(&kept->rows.row, &kept->again.row, exact);
    for (size_t i = 0; i < kept->count; i++) {
        uint64_t id = kept->ids[i];
        assert_int_equal(fake_has(&kept->rows, id), fake_has(&kept->again, id));
        assert_int_equal(fake_is_apart(&kept->rows, id), fake_is_apart(&kept->again, id));
    }
    assert_true(row_restore_end(&kept->again.row));
    fake_check(&kept->again);
}

/* Of the whole journal. */
void expect_again(struct kept *kept)
{
    again_begin(kept);
    again_replay(kept, 0, 0);
    again_same(kept, true);
    fake_maintain(&kept->again); /* it may do at once what the other had not come to */
    fake_fini(&kept->again);
}

/* ---- checkpoints ---- */

static void drop_image(struct checkpoint *point, size_t i)
{
    fake_image_fini(&point->images[i]);
    point->images[i] = point->images[--point->count];
}

static bool of_same(const struct row_image *a, const struct row_image *b)
{
    return a->serial == b->serial && a->layer == b->layer;
}

/* Those of the same table, of before, are replaced; but that of an overlay leaves the file. */
static void drop_same(struct checkpoint *point, const struct row_image *as)
{
    size_t i = 0;
    while (i < point->count) {
        const struct row_image *image = &point->images[i].image;
        bool stays = as->kind == ROW_IMAGE_OVERLAY && image->kind == ROW_IMAGE_DUMP;
        if (of_same(image, as) && !stays) {
            drop_image(point, i);
        } else {
            i++;
        }
    }
}

/* Of a dumped table's overlay. NULL: it has none. */
static const struct fake_image *overlay_of(const struct checkpoint *point, size_t file)
{
    for (size_t i = 0; i < point->count; i++) {
        const struct row_image *image = &point->images[i].image;
        if (image->kind == ROW_IMAGE_OVERLAY && of_same(image, &point->images[file].image)) {
            return &point->images[i];
        }
    }
    return NULL;
}

static struct row_table *table_of(const struct row *row, const struct row_image *image)
{
    struct row_table *table = row_find(row, image->base);
    if (image->serial == row->apart->serial) {
        return row->apart;
    }
    return row_layer_of(table, image->layer);
}

/* The manifest is there: who was to leave has left. */
static void complete(struct checkpoint *point, struct kept *kept)
{
    point->m = kept->recorder.head;
    for (size_t i = 0; i < point->count; i++) {
        const struct fake_image *image = &point->images[i];
        const struct row_table *table = table_of(&kept->rows.row, &image->image);
        if (image->image.kind == ROW_IMAGE_DUMP && !table->cold) {
            assert_true(fake_image_dumped(&kept->rows, image));
        }
    }
}

static bool stands(const struct row *row, const struct row_image *image)
{
    const struct row_table *own = row_find(row, image->base);
    if (image->serial == row->apart->serial) {
        return true;
    }
    return own != NULL && own->serial == image->serial &&
           row_layer_of((struct row_table *)own, image->layer) != NULL;
}

/* Images of tables that are no more. */
static void drop_gone(struct checkpoint *point, const struct row *row)
{
    size_t i = 0;
    while (i < point->count) {
        if (!stands(row, &point->images[i].image)) {
            drop_image(point, i);
        } else {
            i++;
        }
    }
}

void checkpoint_fini(struct checkpoint *point)
{
    while (point->count > 0) {
        drop_image(point, 0);
    }
}

void checkpoint_begin(struct checkpoint *point, struct kept *kept)
{
    point->since = kept->recorder.head;
    row_describe(&kept->rows.row, point->space);
    row_images_begin(&kept->rows.row);
}

/* The next image, with work() between its parts. False: there was none to be made. */
typedef void work_fn(struct kept *kept, void *context);

bool checkpoint_step(struct checkpoint *point, struct kept *kept, work_fn *work, void *context)
{
    struct fake_image image;
    drop_gone(point, &kept->rows.row);
    if (!fake_image_begin(&kept->rows, point->since, &image)) {
        complete(point, kept);
        return false;
    }
    bool good = true;
    for (unsigned part = 0; good && part < FAKE_IMAGE_PARTS; part++) {
        work(kept, context);
        good = fake_image_copy(&kept->rows, &image, part);
    }
    if (good) {
        work(kept, context);
    }
    if (!good || point->fail) {
        point->fail = false;
        row_image_failed(&kept->rows.row, &image.image);
        fake_image_fini(&image);
        return true;
    }
    drop_same(point, &image.image);
    assert_true(point->count < KEPT_IMAGES);
    point->images[point->count++] = image;
    return true;
}

/* Layers after their tables, which come in any order. */
void checkpoint_load(const struct checkpoint *point, struct fake *rows)
{
    char error[ROW_ERROR_MAX] = "";
    assert_true(row_restore_space(&rows->row, point->space, sizeof(point->space), error));
    for (unsigned layer = 0; layer <= ROW_LAYERS_MAX; layer++) {
        for (size_t i = 0; i < point->count; i++) {
            const struct row_image *image = &point->images[i].image;
            if (image->layer == layer && image->kind != ROW_IMAGE_OVERLAY &&
                !fake_load(rows, &point->images[i], overlay_of(point, i), error)) {
                fail_msg("load: %s", error);
            }
        }
    }
    if (!row_restore_complete(&rows->row, error)) {
        fail_msg("complete: %s", error);
    }
}

void again_load(struct kept *kept, const struct checkpoint *point)
{
    again_begin(kept);
    checkpoint_load(point, &kept->again);
}
