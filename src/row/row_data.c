/* row_data.c: the state of a row, and how a row comes back from its files and its journal. */
#include "row/row_data.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "row/row_cold.h"
#include "row/row_private.h"
#include "store/table_file.h"

_Static_assert(ROW_KIND_SPACE_MAX + ROW_SPACE_BYTES <= ENGINE_STATE_MAX, "a state has room");
_Static_assert(ROW_ERROR_MAX <= ENGINE_ERROR_MAX, "an engine's error has room for a row's");

/* ---- storing ---- */

void row_set_log(struct row *row, struct change_log *log)
{
    row->log = log;
    row->space = row->engine->space;
}

void row_log_space(struct row *row)
{
    unsigned char bytes[ROW_KIND_SPACE_MAX];
    if (row->log != NULL) {
        size_t length = row->kind->write_space(row->engine, bytes);
        row->log->put(row->log, row->space, CHANGE_EVENT_SPACE, bytes, length);
    }
}

void row_log_begin(struct row *row)
{
    row_log_space(row);
    row_log_first(row);
}

void row_flush(struct row *row)
{
    row_log_space(row); /* a reader of the journal may begin here */
    row_clear(row);
}

size_t row_state_write(const struct row *row, unsigned char bytes[ENGINE_STATE_MAX])
{
    size_t length = row->kind->write_space(row->engine, bytes);
    CHECK(length <= ROW_KIND_SPACE_MAX);
    row_describe(row, bytes + length);
    return length + ROW_SPACE_BYTES;
}

void row_set_cold(struct row *row, struct engine_cold *cold)
{
    row->cold = cold;
}

/* ---- restoring ---- */

/* What is wrong in a file names it. */
static bool row_data_refuse_file(char error[ENGINE_ERROR_MAX], const struct table_file *file,
                                 const char *why)
{
    return fail_with(error, ENGINE_ERROR_MAX, "%.*s: %s", ENGINE_ERROR_MAX - ROW_ERROR_MAX - 4,
                     table_file_path(file), why);
}

bool row_restore_begin(struct row *row, const void *state, size_t length,
                       char error[ENGINE_ERROR_MAX])
{
    CHECK(row->log == NULL);
    row_restore_clear(row);
    if (length == 0) {
        return true;
    }
    if (length < ROW_SPACE_BYTES) {
        return fail_with(error, ENGINE_ERROR_MAX, "%zu bytes are no state of a space", length);
    }
    size_t own = length - ROW_SPACE_BYTES;
    return row->kind->take_space(row->engine, 0, state, own, error) &&
           row_restore_space(row, (const unsigned char *)state + own, ROW_SPACE_BYTES, error);
}

/* Asked first: nothing else of a file of another kind means anything here. */
static bool row_data_is_of_kind(const struct row *row, const struct table_file *file,
                                char error[ENGINE_ERROR_MAX])
{
    return strcmp(table_file_info(file)->kind, row->kind->name) == 0 ||
           row_data_refuse_file(error, file, "it is a table of another kind of space");
}

/* Of a file and what its table was made as. */
static bool row_data_fits(const struct row_table *table, const struct table_file *file,
                          char error[ENGINE_ERROR_MAX])
{
    return table_file_info(file)->serial == table->serial ||
           row_data_refuse_file(error, file, "its header names another table than it describes");
}

struct row_table *row_restore_file(struct row *row, const struct table_file *file,
                                   char error[ENGINE_ERROR_MAX])
{
    const struct table_file_info *info = table_file_info(file);
    char why[ROW_ERROR_MAX];
    if (!row_data_is_of_kind(row, file, error)) {
        return NULL;
    }
    struct row_table *table = row_restore_table(row, info->description, info->description_bytes,
                                                row_file_layer(info->layer), info->start_lsn, why);
    if (table == NULL) {
        row_data_refuse_file(error, file, why);
        return NULL;
    }
    return row_data_fits(table, file, error) ? table : NULL;
}

bool row_restore_load(struct row *row, struct row_table *table, const struct table_file *file,
                      _Atomic uint64_t *done, const _Atomic bool *stop,
                      char error[ENGINE_ERROR_MAX])
{
    return row->kind->load(row->engine, table, file, done, stop, error);
}

/* An overlay's image that is older than the file is all in it: a merge has overtaken it. */
static const struct table_file *overlay_in_front(const struct table_file *file,
                                                 const struct table_file *overlay)
{
    bool newer =
        overlay != NULL && table_file_info(overlay)->start_lsn >= table_file_info(file)->start_lsn;
    return newer ? overlay : NULL;
}

/* Returns whether a file and an overlay are of one table. */
static bool row_data_belong(const struct table_file_info *file,
                            const struct table_file_info *overlay)
{
    return strcmp(file->kind, overlay->kind) == 0 && file->serial == overlay->serial &&
           row_file_under(file->layer) == row_file_under(overlay->layer);
}

bool row_restore_dumped(struct row *row, struct table_file *file, const struct table_file *overlay,
                        char error[ENGINE_ERROR_MAX])
{
    const struct table_file *in_front = overlay_in_front(file, overlay);
    const struct table_file *last = in_front != NULL ? in_front : file;
    const struct table_file_info *info = table_file_info(last);
    char why[ROW_ERROR_MAX];
    if (row->cold == NULL) {
        return row_data_refuse_file(error, file, "it is a dumped table, and none is read here");
    }
    if (!row_data_is_of_kind(row, file, error)) {
        return false;
    }
    if (!row_data_belong(table_file_info(file), info)) {
        return row_data_refuse_file(error, last, "it is an overlay of another table");
    }
    struct row_table *table = row_cold_restore(row, info->description, info->description_bytes,
                                               row_file_layer(info->layer), info->start_lsn, why);
    if (table == NULL) {
        return row_data_refuse_file(error, last, why);
    }
    return row_data_fits(table, last, error) &&
           row->kind->load_dumped(row->engine, table, row->cold, file, in_front, error);
}

/* ---- replay ---- */

bool row_replay(struct row *row, const struct engine_replay *changes, size_t n,
                char error[ENGINE_ERROR_MAX])
{
    for (size_t at = 0; at < n; at += ROW_REPLAY_BATCH) {
        size_t count = n - at < ROW_REPLAY_BATCH ? n - at : ROW_REPLAY_BATCH;
        if (!row->kind->replay(row->engine, changes + at, count, error)) {
            return false;
        }
    }
    return true;
}

bool row_replay_event(struct row *row, enum change_event event, uint64_t lsn, bool rows,
                      const void *bytes, size_t length, char error[ENGINE_ERROR_MAX])
{
    if (event == CHANGE_EVENT_SPACE) {
        return row->kind->take_space(row->engine, lsn, bytes, length, error);
    }
    return !rows || row_replay_table(row, event, lsn, bytes, length, error);
}

/* The kind first: what it restores the row counts. */
static void row_data_restored(void *context, struct row_table *table, bool layer)
{
    struct row *row = context;
    (void)layer;
    row->kind->restored(row->engine, table);
}

static void row_data_see_overlay(void *context, struct row_table *table, bool layer)
{
    (void)layer;
    if (table->cold) {
        row_cold_changed(context, table);
    }
}

bool row_restore_end(struct row *row)
{
    row->follows = false;
    if (row->kind->restored != NULL) {
        row_each(row, row_data_restored, row);
    }
    bool restored = row_restore_decide(row);
    if (row->cold != NULL) {
        row_each(row, row_data_see_overlay, row);
    }
    return restored;
}
