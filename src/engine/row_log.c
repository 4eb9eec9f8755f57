/* row_log.c: events as they happen, and the images of a checkpoint. */
#include "engine/row_log.h"

#include <string.h>

#include "engine/row_private.h"
#include "engine/row_state.h"

#define SPACE_VERSION 1

/* ---- events ---- */

bool row_log_room(struct row *row)
{
    return row->log == NULL || row->log->reserve(row->log);
}

void row_log_put(struct row *row, enum change_event event, const struct row_table *table)
{
    unsigned char bytes[ROW_TABLE_BYTES_MAX];
    if (row->log != NULL) {
        size_t length = row_describe_table(row, table, bytes);
        row->log->put(row->log, row->space, event, bytes, length);
    }
}

void row_log_drop(struct row *row, const struct row_table *table)
{
    uint64_t words[ROW_DROP_BYTES / sizeof(uint64_t)] = {table->serial, table->base};
    if (row->log != NULL) {
        row->log->put(row->log, row->space, CHANGE_EVENT_DROP, words, sizeof words);
    }
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

/* Never imaged means touched. A table comes before its layer. */
static bool needs_image(const struct row_table *table, uint64_t since)
{
    return table->touched || (atomic_load(&table->changed) && table->start_lsn < since);
}

static struct row_table *next_needing(const struct row *row, uint64_t since)
{
    for (size_t i = 0; i < row->count; i++) {
        struct row_table *table = row->tables[i];
        if (needs_image(table, since)) {
            return table;
        }
        if (table->further != NULL && needs_image(table->further, since)) {
            return table->further;
        }
    }
    return NULL;
}

bool row_image_next(struct row *row, uint64_t since, uint64_t now, struct row_image *image)
{
    struct row_table *table = next_needing(row, since);
    if (table == NULL) {
        return false;
    }
    table->touched = false;
    atomic_store(&table->changed, false);
    table->start_lsn = now;
    if (table->further != NULL && atomic_load(&table->further->changed)) {
        table->further->touched = true; /* what it has begun below this S would be left out */
    }
    memset(image, 0, sizeof *image);
    image->serial = table->serial;
    image->base = table->base;
    image->last = table->last;
    image->start_lsn = now;
    image->touches = table->touches;
    image->layer = row_find(row, table->base) != table;
    image->table_bytes = row_describe_table(row, table, image->table);
    return true;
}

/* NULL: it is gone. A range that was taken over has another serial. */
static struct row_table *imaged(const struct row *row, const struct row_image *image)
{
    struct row_table *table = row_find(row, image->base);
    if (table == NULL || table->serial != image->serial) {
        return NULL;
    }
    return image->layer ? table->further : table;
}

struct row_table *row_image_table(const struct row *row, const struct row_image *image)
{
    struct row_table *table = imaged(row, image);
    return table != NULL && table->touches == image->touches ? table : NULL;
}

void row_image_failed(struct row *row, const struct row_image *image)
{
    struct row_table *table = imaged(row, image);
    if (table != NULL) {
        table->touched = true;
    }
}

/* ---- the row ---- */

void row_describe(const struct row *row, unsigned char bytes[ROW_SPACE_BYTES])
{
    uint64_t words[ROW_SPACE_BYTES / sizeof(uint64_t)] = {SPACE_VERSION, row->serials,
                                                          row->recycled_tables, row->recycled_ids};
    memcpy(bytes, words, sizeof words);
}

bool row_restore_space(struct row *row, const void *bytes, size_t length, char error[ROW_ERROR_MAX])
{
    uint64_t words[ROW_SPACE_BYTES / sizeof(uint64_t)];
    if (length != sizeof words) {
        return row_fail(error, "%zu bytes are no row of tables", length);
    }
    memcpy(words, bytes, sizeof words);
    if (words[0] != SPACE_VERSION || words[1] >= ROW_ID_MAX) {
        return row_fail(error, "no row of tables of this version");
    }
    row->serials = words[1] > row->serials ? words[1] : row->serials;
    row->recycled_tables = words[2];
    row->recycled_ids = words[3];
    return true;
}
