/* row_log.c: events as they happen, and the images of a checkpoint. */
#include "row/row_log.h"

#include <string.h>

#include "row/row_cold.h"
#include "row/row_data.h"
#include "row/row_fold.h"
#include "row/row_private.h"
#include "row/row_state.h"

#define SPACE_VERSION 2

_Static_assert(ROW_LAYERS_MAX == CHANGE_LAYERS_MAX, "a change names any layer");

/* ---- events ---- */

bool row_log_room(struct row *row)
{
    return row->log == NULL || row->log->reserve(row->log);
}

void row_log_await(struct row *row)
{
    change_log_await(row->log);
}

void row_log_put(struct row *row, enum change_event event, const struct row_table *table)
{
    unsigned char bytes[ROW_TABLE_BYTES_MAX];
    if (row->log != NULL) {
        size_t length = row_describe_table(row, table, bytes);
        row->log->put(row->log, row->space, event, bytes, length);
    }
}

void row_log_drop(struct row *row, const struct row_table *table, const struct row_dropped *dropped)
{
    uint64_t words[ROW_DROP_BYTES_MAX / sizeof(uint64_t)] = {table->serial, table->base};
    size_t ranges = dropped->count * sizeof(dropped->at[0]);
    memcpy(words + ROW_DROP_BYTES / sizeof(uint64_t), dropped->at, ranges);
    if (row->log != NULL) {
        row->log->put(row->log, row->space, CHANGE_EVENT_DROP, words, ROW_DROP_BYTES + ranges);
    }
}

void row_log_whole(struct row *row, const struct row_table *table)
{
    const uint64_t words[ROW_WHOLE_BYTES / sizeof(uint64_t)] = {table->serial, table->base};
    if (row->log != NULL) {
        row->log->put(row->log, row->space, CHANGE_EVENT_WHOLE, words, sizeof(words));
    }
}

bool row_drop_read(const void *bytes, size_t length, uint64_t *serial, uint64_t *base,
                   struct row_dropped *dropped)
{
    uint64_t words[ROW_DROP_BYTES / sizeof(uint64_t)];
    if (length < sizeof(words) || length > ROW_DROP_BYTES_MAX ||
        (length - sizeof(words)) % sizeof(dropped->at[0]) != 0) {
        return false;
    }
    memcpy(words, bytes, sizeof(words));
    *serial = words[0];
    *base = words[1];
    dropped->count = (length - sizeof(words)) / sizeof(dropped->at[0]);
    memcpy(dropped->at, (const unsigned char *)bytes + sizeof(words), length - sizeof(words));
    return row_dropped_sound(dropped, 0, ROW_ID_MAX);
}

void row_log_first(struct row *row)
{
    CHECK(row->count == 1);
    row_log_put(row, CHANGE_EVENT_FIRST, row->tables[0]);
}

/* ---- images ---- */

void row_touch(struct row_table *table)
{
    table->touched = true;
    table->touches++;
    if (table->further != NULL) {
        row_touch(table->further);
    }
}

/* Returns whether the table is to leave, and is tried in this round. */
static bool dumps(const struct row *row, const struct row_table *table)
{
    return table->leaving && !row->dump_paused;
}

/* Never imaged means touched. */
static bool needs_image(const struct row *row, const struct row_table *table, uint64_t since)
{
    return table->touched || (atomic_load(&table->changed) && table->start_lsn < since) ||
           (dumps(row, table) && !table->tapped);
}

/*
 * Returns what needs an image, of a table and its layers. The table comes first; for a dump, the
 * layers: from the table's S on all changes of them all must be whole, as replay without the disk
 * cannot tell whose they are.
 */
static struct row_table *needing_of(const struct row *row, struct row_table *table, uint64_t since)
{
    for (struct row_table *layer = table->further; layer != NULL; layer = layer->further) {
        if (dumps(row, layer) && !layer->tapped) {
            return layer;
        }
    }
    while (table != NULL && !needs_image(row, table, since)) {
        table = table->further;
    }
    return table;
}

static struct row_table *next_needing(const struct row *row, uint64_t since)
{
    struct row_table *found = NULL;
    for (size_t i = 0; i < row->count && found == NULL; i++) {
        found = needing_of(row, row->tables[i], since);
    }
    bool apart = found == NULL && row->apart != NULL && needs_image(row, row->apart, since);
    return apart ? row->apart : found;
}

static enum row_image_kind kind_of(const struct row *row, const struct row_table *table)
{
    if (table->cold) {
        return ROW_IMAGE_OVERLAY;
    }
    bool dump = dumps(row, table) || table->tapped; /* what has begun goes on */
    return dump ? ROW_IMAGE_DUMP : ROW_IMAGE_TABLE;
}

static void row_image_begin(const struct row *row, struct row_table *table,
                            enum row_image_kind kind, uint64_t now, struct row_image *image)
{
    table->touched = false;
    atomic_store(&table->changed, false);
    table->start_lsn = now;
    struct row_table *layer = table->layer == 0 ? table->further : NULL;
    for (; layer != NULL; layer = layer->further) {
        /* what it has begun below this S would be left out */
        layer->touched = layer->touched || atomic_load(&layer->changed);
    }
    memset(image, 0, sizeof(*image));
    image->kind = kind;
    image->serial = table->serial;
    image->base = table->base;
    image->last = table->last;
    image->start_lsn = now;
    image->touches = table->touches;
    image->layer = table->layer;
    image->table_bytes = kind == ROW_IMAGE_MERGE ? row_describe_next(row, table, image->table)
                                                 : row_describe_table(row, table, image->table);
    image->sections = kind == ROW_IMAGE_OVERLAY ? row->kind->overlay_sections : table->sections;
    memcpy(image->section_value_bytes, table->section_bytes, sizeof(table->section_bytes));
    if (kind == ROW_IMAGE_MERGE) {
        table->merge_lsn = now;
    }
}

void row_images_begin(struct row *row)
{
    row->dump_paused = false;
    row->merge_paused = false;
    row->round_failed = false;
    row_fold_see(row);
    row_merge_see(row);
}

bool row_image_next(struct row *row, uint64_t since, uint64_t now, struct row_image *image)
{
    struct row_table *table = row_merge_next(row);
    if (table != NULL) {
        row_image_begin(row, table, ROW_IMAGE_MERGE, now, image);
        return true;
    }
    table = next_needing(row, since);
    if (table == NULL) {
        return false;
    }
    enum row_image_kind kind = kind_of(row, table);
    if (kind == ROW_IMAGE_DUMP) {
        row_cold_tap(row, table);
    }
    row_image_begin(row, table, kind, now, image);
    row_cold_see(row);
    return true;
}

/* A range that was taken over has another serial. */
struct row_table *row_image_owner(const struct row *row, const struct row_image *image)
{
    if (row->apart != NULL && row->apart->serial == image->serial) {
        return row->apart;
    }
    struct row_table *table = row_find(row, image->base);
    if (table == NULL || table->serial != image->serial) {
        return NULL;
    }
    return row_layer_of(table, image->layer);
}

/* Returns whether it is still what the image shows. */
static bool is_of_kind(const struct row_table *table, const struct row_image *image)
{
    bool cold = image->kind == ROW_IMAGE_OVERLAY || image->kind == ROW_IMAGE_MERGE;
    return table->cold == cold && (image->kind != ROW_IMAGE_DUMP || table->tapped);
}

struct row_table *row_image_table(const struct row *row, const struct row_image *image)
{
    struct row_table *table = row_image_owner(row, image);
    if (table == NULL || !is_of_kind(table, image)) {
        return NULL;
    }
    bool touched = table->touches != image->touches && image->kind != ROW_IMAGE_MERGE;
    return !touched && table->start_lsn == image->start_lsn ? table : NULL;
}

void row_image_failed(struct row *row, const struct row_image *image)
{
    struct row_table *table = row_image_owner(row, image);
    if (row_merge_is(table, image)) {
        row_merge_failed(row, table);
    }
    if (table == NULL || table->start_lsn != image->start_lsn) {
        return; /* or another image has begun */
    }
    bool gone = row_image_table(row, image) == NULL;
    table->touched = true;
    if (image->kind != ROW_IMAGE_DUMP || !table->tapped) {
        return;
    }
    if (gone) {
        row_cold_untap(row, table);
    } else {
        row_cold_failed(row, table, row_tap_is_given_up(table));
    }
}

static struct table_file *dump_done(struct row *row, const struct row_image *image,
                                    struct table_file *file)
{
    struct row_table *table = row_cold_imaged(row, image);
    if (table == NULL) {
        return file;
    }
    if (row_tap_is_given_up(table)) {
        row_cold_failed(row, table, true);
        return file;
    }
    CHECK(row->kind->file_end(table, file) == NULL);
    row_cold_dumped(row, table);
    return NULL;
}

struct table_file *row_image_done(struct row *row, const struct row_image *image,
                                  struct table_file *file)
{
    if (image->kind == ROW_IMAGE_DUMP) {
        return dump_done(row, image, file);
    }
    if (image->kind != ROW_IMAGE_MERGE) {
        return NULL;
    }
    struct row_table *table = row_image_owner(row, image);
    return row_merge_is(table, image) ? row_merge_end(row, table, file) : file;
}

void row_images_settle(struct row *row)
{
    if (atomic_exchange(&row->wake_due, false)) {
        row_wake(row);
    }
    row_destroy_discarded(row);
}

/* ---- the row ---- */

void row_describe(const struct row *row, unsigned char bytes[ROW_SPACE_BYTES])
{
    const struct row_bounds bounds = row_bounds(row);
    uint64_t words[ROW_SPACE_BYTES / sizeof(uint64_t)] = {
        SPACE_VERSION,    row->serials,  row->recycled_tables, row->recycled_ids,
        bounds.dumps_max, bounds.tables, bounds.table_bytes,
    };
    memcpy(bytes, words, sizeof(words));
}

uint64_t row_stored_bytes(const void *state, size_t length)
{
    uint64_t words[ROW_SPACE_BYTES / sizeof(uint64_t)];
    uint64_t bytes = 0;
    if (length < sizeof(words)) {
        return 0;
    }
    memcpy(words, (const unsigned char *)state + length - sizeof(words), sizeof(words));
    bool known = words[0] == SPACE_VERSION && !__builtin_mul_overflow(words[5], words[6], &bytes);
    return known ? bytes : 0;
}

bool row_restore_space(struct row *row, const void *bytes, size_t length, char error[ROW_ERROR_MAX])
{
    uint64_t words[ROW_SPACE_BYTES / sizeof(uint64_t)];
    if (length != sizeof(words)) {
        return row_fail(error, "%zu bytes are no row of tables", length);
    }
    memcpy(words, bytes, sizeof(words));
    if (words[0] != SPACE_VERSION || words[1] >= ROW_ID_MAX) {
        return row_fail(error, "no row of tables of this version");
    }
    row->serials = words[1] > row->serials ? words[1] : row->serials;
    row->recycled_tables = words[2];
    row->recycled_ids = words[3];
    row->stored = (struct row_bounds){words[4], words[5], words[6]};
    return true;
}
