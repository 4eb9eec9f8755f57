/* phantom_kind.c: filters as a kind of table of a row. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/point.h"
#include "phantom/phantom_private.h"
#include "phantom/table_private.h"
#include "row/row_image.h"
#include "row/table_kind.h"
#include "store/table_file.h"

#define PAGES_A_READ (TABLE_FILE_BLOCK_BYTES / TABLE_FILE_PAGE_BYTES)

_Static_assert((int)PHANTOM_OVERLAY_SECTIONS <= ROW_IMAGE_SECTIONS_MAX, "sections fit");
_Static_assert(PHANTOM_DESCRIPTION_BYTES <= ROW_DESCRIPTION_MAX, "a description fits");

static const struct phantom_table *phantom_kind_table(const struct row_table *table)
{
    return (const struct phantom_table *)table;
}

/* ---- a table ---- */

static struct row_table *phantom_kind_create(struct engine *engine, const struct row_want *want)
{
    const struct phantom *phantom = phantom_of(engine);
    return (struct row_table *)phantom_table_create(&phantom->shape, &phantom->secrets, want);
}

static void phantom_kind_destroy(struct row_table *table)
{
    phantom_table_destroy(phantom_table_of(table));
}

static size_t phantom_kind_describe(const struct row_table *table, unsigned char *bytes,
                                    unsigned *doubles)
{
    (void)doubles; /* a file is never larger than the one before */
    phantom_shape_describe(phantom_table_shape(phantom_kind_table(table)), bytes);
    return PHANTOM_DESCRIPTION_BYTES;
}

static uint64_t phantom_kind_described_bytes(const void *description, size_t bytes)
{
    struct phantom_shape shape;
    return phantom_shape_read(&shape, description, bytes) ? shape.table_bytes : 0;
}

/* ---- pairs apart ---- */

static bool phantom_kind_place(struct engine *engine, struct row_table *apart, struct row_table *to,
                               struct change_sink *sink)
{
    return phantom_table_place(engine->row, phantom_table_of(apart), phantom_table_of(to), sink);
}

static uint64_t phantom_kind_forget(struct row_table *apart, uint64_t first, uint64_t last)
{
    return phantom_table_forget(phantom_table_of(apart), first, last);
}

/* ---- images ---- */

static uint64_t phantom_kind_copy_pages(const struct row_table *table, uint64_t first,
                                        uint64_t most, void *to)
{
    uint64_t left = phantom_table_pages(phantom_kind_table(table)) - first;
    uint64_t count = left < most ? left : most;
    POINT("filter half copied");
    if (count > 0) {
        phantom_table_copy_pages(phantom_kind_table(table), first, count, to);
    }
    return count;
}

/* Deletes may be turned off and on meanwhile: that makes an empty dict of it. */
static const struct dict *phantom_kind_section(const struct row_table *table, unsigned section,
                                               unsigned part, const struct dict **front)
{
    const struct phantom_table *t = phantom_kind_table(table);
    (void)front;
    if (section == PHANTOM_SECTION_LINES) {
        return phantom_dump_overlay(t->dump, part);
    }
    return part > 0 ? NULL : section == PHANTOM_SECTION_EXCEPTIONS ? t->exceptions : t->apart;
}

/* The image may be of a time before deletes were turned on, or off. */
static bool phantom_kind_turn_deletes(const struct engine *engine, struct phantom_table *t,
                                      char error[ENGINE_ERROR_MAX])
{
    const struct phantom_config *config = &phantom_of_const(engine)->config;
    if (phantom_table_is_layer(t) ||
        phantom_table_deletes(t, config->deletes, config->exceptions_bytes)) {
        return true;
    }
    strcpy(error, "the system refuses the memory for exceptions");
    return false;
}

static bool phantom_kind_load(struct engine *engine, struct row_table *table,
                              const struct table_file *file, _Atomic uint64_t *done,
                              const _Atomic bool *stop, char error[ENGINE_ERROR_MAX])
{
    struct phantom_table *t = phantom_table_of(table);
    return phantom_table_load(t, file, done, stop, error) &&
           phantom_kind_turn_deletes(engine, t, error);
}

/* ---- dumps ---- */

static void phantom_kind_destroy_dict(void *dict)
{
    dict_destroy(dict);
}

/* NULL: no-op. */
static void phantom_kind_discard(const struct row_table *table, struct dict *spent)
{
    if (spent) {
        row_discard(table->owner, spent, phantom_kind_destroy_dict);
    }
}

static bool phantom_kind_file_begin(struct row_table *table, struct engine_cold *cold,
                                    unsigned overruns)
{
    phantom_kind_discard(table, phantom_table_file_begin(phantom_table_of(table), cold, overruns));
    return true;
}

static struct phantom_table *phantom_kind_root(const struct row_table *table)
{
    return phantom_table_of(row_find(table->owner, table->base));
}

static struct table_file *phantom_kind_file_end(struct row_table *table, struct table_file *file)
{
    struct phantom_table *holder = phantom_table_of(table);
    struct table_file *before = NULL;
    struct dict *spent = NULL;
    if (phantom_table_is_cold(holder)) {
        before = phantom_dump_merged(holder->dump, file, &spent);
    } else if (file) {
        phantom_table_leave(phantom_kind_root(table), holder, file);
    } else {
        spent = phantom_table_stay(holder);
    }
    phantom_kind_discard(table, spent);
    return before;
}

static enum row_fold phantom_kind_fold(struct row_table *table, unsigned most)
{
    struct phantom_dump *dump = phantom_table_of(table)->dump;
    struct dict *spent[2];
    if (most == 0) {
        return phantom_dump_fold_prepare(dump);
    }
    enum row_fold next = phantom_dump_fold(dump, most, spent);
    phantom_kind_discard(table, spent[0]);
    phantom_kind_discard(table, spent[1]);
    return next;
}

static bool phantom_kind_load_dumped(struct engine *engine, struct row_table *table,
                                     struct engine_cold *cold, struct table_file *file,
                                     const struct table_file *overlay, char error[ENGINE_ERROR_MAX])
{
    struct phantom_table *t = phantom_table_of(table);
    bool loaded = phantom_kind_turn_deletes(engine, t, error) &&
                  phantom_table_load_dumped(t, cold, file, overlay, error);
    phantom_table_note_away(phantom_kind_root(table));
    return loaded;
}

static void phantom_kind_overlay_size(const struct row_table *table, struct row_overlay_size *size)
{
    const struct phantom_dump *dump = phantom_kind_table(table)->dump;
    *size = (struct row_overlay_size){0};
    if (dump != NULL) {
        phantom_dump_size(dump, size);
    }
}

/* Pages of the file that is there, with the older overlay. Outside; the caller holds the dump. */
static enum engine_image phantom_kind_merge_piece(const struct row_writing *w,
                                                  const struct phantom_dump *dump, uint64_t page,
                                                  uint64_t count, uint64_t *pages)
{
    char error[TABLE_FILE_ERROR_MAX];
    struct row_table *table;
    enum engine_image result = row_writing_enter(w, &table); /* gone: then it ends early */
    if (result != ENGINE_IMAGE_DONE) {
        return result;
    }
    row_writing_leave(w);
    if (phantom_dump_load(dump, page, count, pages, error) != TABLE_FILE_DONE) {
        log_warning("%s", error);
        return ENGINE_IMAGE_FAILED;
    }
    return table_file_append_pages(w->writer, pages, count) ? ENGINE_IMAGE_DONE
                                                            : ENGINE_IMAGE_FAILED;
}

static enum engine_image phantom_kind_merge_pages(const struct row_writing *w,
                                                  const struct phantom_dump *dump)
{
    uint64_t pages = table_file_info(phantom_dump_file(dump))->pages;
    uint64_t *block = memory_region_create(TABLE_FILE_BLOCK_BYTES);
    enum engine_image result = block ? ENGINE_IMAGE_DONE : ENGINE_IMAGE_FAILED;
    for (uint64_t page = 0; page < pages && result == ENGINE_IMAGE_DONE; page += PAGES_A_READ) {
        uint64_t rest = pages - page;
        uint64_t count = rest < PAGES_A_READ ? rest : PAGES_A_READ;
        result = phantom_kind_merge_piece(w, dump, page, count, block);
    }
    memory_region_destroy(block, TABLE_FILE_BLOCK_BYTES);
    return result;
}

/* The exceptions are those of now: they are in memory. */
static enum engine_image phantom_kind_merge_write(const struct row_writing *w)
{
    struct row_table *table;
    enum engine_image result = row_writing_enter(w, &table);
    if (result != ENGINE_IMAGE_DONE) {
        return result;
    }
    struct phantom_dump *dump = phantom_table_of(table)->dump;
    phantom_dump_hold(dump);
    row_writing_leave(w);
    result = phantom_kind_merge_pages(w, dump);
    phantom_dump_release(dump);
    return result == ENGINE_IMAGE_DONE ? row_writing_sections(w) : result;
}

const struct table_kind phantom_kind = {
    .name = "phantom",
    .apart_section = PHANTOM_SECTION_APART,
    .apart_in_value = true,
    .overlay_sections = PHANTOM_OVERLAY_SECTIONS,
    .excepted = 1u << PHANTOM_SECTION_EXCEPTIONS,
    .create = phantom_kind_create,
    .destroy = phantom_kind_destroy,
    .place = phantom_kind_place,
    .forget = phantom_kind_forget,
    .write_space = phantom_write_space,
    .take_space = phantom_take_space,
    .describe = phantom_kind_describe,
    .described_bytes = phantom_kind_described_bytes,
    .replay = phantom_replay,
    .copy_pages = phantom_kind_copy_pages,
    .section = phantom_kind_section,
    .load = phantom_kind_load,
    .file_begin = phantom_kind_file_begin,
    .file_end = phantom_kind_file_end,
    .fold = phantom_kind_fold,
    .load_dumped = phantom_kind_load_dumped,
    .overlay_size = phantom_kind_overlay_size,
    .merge_write = phantom_kind_merge_write,
};
