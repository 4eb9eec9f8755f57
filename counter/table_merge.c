/*
 * table_merge.c: the next file of a dumped table, from its file and its older overlay.
 *
 * Records move only within a page, so the groups are read, changed and written a piece at a time,
 * in a table that is never whole: its memory is given back behind the writer. Its dicts are loaded
 * whole; they hold little.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "counter/table_private.h"
#include "row/row_log.h"
#include "store/dict_image.h"

#define MERGE_PIECE_PAGES (TABLE_FILE_BLOCK_BYTES / TABLE_FILE_PAGE_BYTES)
#define MERGE_TAKE        4096u /* entries looked at in one piece of take */
#define MERGE_OUTSIDE     UINT64_MAX

/* An id of the overlay, and the page its home lies in. */
struct place {
    uint64_t page, id;
};

struct counter_merge {
    struct counter_file *file;
    struct counter_table *table; /* that is written */
    void *memory;                /* of its groups */
    uint64_t bytes;
    struct table_overlay *overlay; /* a copy of the older one */
    struct place *places;
    size_t count, room;
    uint64_t at[COUNTER_TABLE_SECTIONS]; /* of the walks that copy */
    unsigned section;
    bool failed; /* memory was refused */
    unsigned char *piece;
};

/* ---- what is taken from the table ---- */

static struct counter_table *make_table(const struct counter_table *t, void *memory)
{
    unsigned char description[ROW_DESCRIPTION_MAX];
    struct counter_config config = {0};
    bool unsettled = t->origin == TABLE_NO_WINDOW;
    for (size_t i = 0; i < t->schema.slot_count; i++) {
        config.slots[i] = t->schema.slots[i];
    }
    config.slot_count = t->schema.slot_count;
    config.row.any_ids = !unsettled;
    struct row_want want = {
        .first = unsettled,
        .description = description,
        .description_bytes = counter_table_describe(t, description),
        .region = memory,
        .region_bytes = t->shape.table_bytes,
    };
    struct counter_table *table = counter_table_create(&config, &want, NULL);
    if (table) {
        table->row.last = ROW_ID_MAX;
    }
    return table;
}

struct counter_merge *counter_merge_create(const struct counter_table *t)
{
    struct counter_merge *merge = memory_zalloc(sizeof(*merge));
    CHECK(t->older && t->file);
    merge->file = t->file;
    atomic_fetch_add(&merge->file->users, 1);
    merge->bytes = t->shape.table_bytes;
    merge->memory = memory_region_create(merge->bytes);
    merge->table = merge->memory ? make_table(t, merge->memory) : NULL;
    merge->overlay =
        table_overlay_create(t, NULL, dict_count(t->older->extend), dict_count(t->older->aux));
    merge->room = dict_count(t->older->extend);
    merge->places = memory_zalloc(merge->room * sizeof(*merge->places));
    merge->piece = memory_zalloc(MERGE_PIECE_PAGES * TABLE_PAGE_BYTES);
    merge->failed = !merge->table || !merge->overlay;
    return merge;
}

void counter_merge_destroy(struct counter_merge *merge)
{
    if (!merge) {
        return;
    }
    counter_table_destroy(merge->table);
    memory_region_destroy(merge->memory, merge->bytes);
    table_overlay_destroy(merge->overlay);
    table_file_let_go(merge->file);
    free(merge->places);
    free(merge->piece);
    free(merge);
}

static void copy_entry(struct dict **dict, struct counter_merge *merge, uint64_t id, uint8_t sub,
                       const uint64_t *value)
{
    while (!merge->failed && !dict_put(*dict, id, sub, value)) {
        merge->failed = !dict_grow(dict);
    }
}

static void take_record(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct counter_merge *merge = context;
    struct counter_locus locus;
    const struct counter_table *t = merge->table;
    counter_table_locate(t, id, false, &locus);
    CHECK(merge->count < merge->room); /* it does not change */
    bool outside = locus.group == TABLE_OUTSIDE;
    merge->places[merge->count++] =
        (struct place){outside ? MERGE_OUTSIDE : locus.group / t->page_groups, id};
    copy_entry(&merge->overlay->extend, merge, id, sub, value);
}

static void take_value(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct counter_merge *merge = context;
    copy_entry(&merge->overlay->aux, merge, id, sub, value);
}

bool counter_merge_take(struct counter_merge *merge, const struct counter_table *t)
{
    static dict_visit *const visits[COUNTER_TABLE_SECTIONS] = {
        [COUNTER_TABLE_EXTEND] = take_record,
        [COUNTER_TABLE_AUX] = take_value,
    };
    if (merge->failed) {
        return false;
    }
    unsigned section = merge->section;
    const struct dict *dict = section == COUNTER_TABLE_EXTEND ? t->older->extend : t->older->aux;
    if (!dict_walk(dict, &merge->at[section], MERGE_TAKE, visits[section], merge)) {
        merge->section++;
    }
    return !merge->failed && merge->section < COUNTER_TABLE_SECTIONS;
}

/* ---- writing ---- */

static int by_page(const void *a, const void *b)
{
    const struct place *left = a;
    const struct place *right = b;
    return (left->page > right->page) - (left->page < right->page);
}

/* The records whose home lies in pages up to this one; *next: the first whose does not. */
static bool put_up_to(struct counter_merge *merge, uint64_t page, size_t *next)
{
    struct counter_table *t = merge->table;
    for (; *next < merge->count && merge->places[*next].page <= page; (*next)++) {
        uint64_t id = merge->places[*next].id;
        struct table_record record;
        struct counter_locus locus;
        table_overlay_get(t, merge->overlay, id, table_subs_all(&t->schema), &record);
        counter_table_locate(t, id, true, &locus);
        while (!table_put_record(t, &locus, &record)) {
            if (!table_dicts_grow(t)) {
                log_warning("no memory for merging the changes of a dumped table");
                return false;
            }
        }
    }
    return true;
}

struct loading {
    struct counter_table *table;
    struct dict **dict;
    bool refused;
};

static bool load_entry(void *context, uint64_t id, uint8_t sub, const void *bytes)
{
    struct loading *loading = context;
    uint64_t value[DICT_VALUE_WORDS] = {0};
    memcpy(value, bytes, dict_entry_bytes(*loading->dict) - DICT_KEY_BYTES);
    while (!loading->refused && !dict_put(*loading->dict, id, sub, value)) {
        loading->refused = !table_dicts_grow(loading->table);
    }
    return !loading->refused;
}

static bool load_dict(struct counter_table *t, const struct table_file *file, unsigned section,
                      struct dict **dict, char *error)
{
    struct loading loading = {t, dict, false};
    bool loaded =
        table_file_each_entry(file, section, load_entry, &loading, error) == TABLE_FILE_DONE;
    if (loading.refused) {
        snprintf(error, ENGINE_ERROR_MAX, "%s: no memory for its entries", table_file_path(file));
    }
    return loaded;
}

bool table_load_sections(struct counter_table *t, const struct table_file *file, char *error)
{
    return load_dict(t, file, COUNTER_TABLE_EXTEND, &t->extend, error) &&
           load_dict(t, file, COUNTER_TABLE_AUX, &t->aux, error);
}

static enum engine_image write_piece(struct counter_merge *merge, uint64_t first, unsigned count,
                                     size_t *next, struct table_file_writer *writer)
{
    struct counter_table *t = merge->table;
    char error[TABLE_FILE_ERROR_MAX];
    char *memory = (char *)t->memory + first * TABLE_PAGE_BYTES;
    if (table_file_load_pages(merge->file->file, first, count, memory, NULL, NULL, error) !=
        TABLE_FILE_DONE) {
        log_warning("%s", error);
        return ENGINE_IMAGE_FAILED;
    }
    for (uint64_t i = 0; i < (uint64_t)count * t->page_groups; i++) { /* in tests alone */
        uint64_t group = first * t->page_groups + i;
        table_shadow_group(t, group, *group_lock(t, group_words(t, group)));
    }
    if (!put_up_to(merge, first + count - 1, next)) {
        return ENGINE_IMAGE_FAILED;
    }
    counter_table_copy_pages(t, first, count, merge->piece);
    memory_region_clear(memory, (size_t)count * TABLE_PAGE_BYTES);
    return table_file_append_pages(writer, merge->piece, count) ? ENGINE_IMAGE_DONE
                                                                : ENGINE_IMAGE_FAILED;
}

static bool write_section(struct counter_merge *merge, unsigned section,
                          struct table_file_writer *writer)
{
    struct dict_image entries;
    const struct dict *dict = counter_table_section(merge->table, section);
    dict_image_init(&entries, dict_entry_bytes(dict) - DICT_KEY_BYTES);
    while (dict_image_collect(&entries, dict)) {
    }
    bool written = dict_image_write(&entries, writer, section);
    dict_image_fini(&entries);
    return written;
}

static enum engine_image write_pages(struct counter_merge *merge, struct table_file_writer *writer,
                                     const _Atomic bool *stop, size_t *next)
{
    uint64_t pages = merge->table->shape.table_bytes / TABLE_PAGE_BYTES;
    enum engine_image result = ENGINE_IMAGE_DONE;
    for (uint64_t at = 0; at < pages && result == ENGINE_IMAGE_DONE;) {
        uint64_t left = pages - at;
        unsigned count = left < MERGE_PIECE_PAGES ? (unsigned)left : MERGE_PIECE_PAGES;
        result = *stop ? ENGINE_IMAGE_STOPPED : write_piece(merge, at, count, next, writer);
        at += count;
    }
    return result;
}

enum engine_image counter_merge_write(struct counter_merge *merge, struct table_file_writer *writer,
                                      const _Atomic bool *stop)
{
    char error[ENGINE_ERROR_MAX];
    size_t next = 0;
    if (merge->failed) {
        log_warning("no memory for merging the changes of a dumped table");
        return ENGINE_IMAGE_FAILED;
    }
    if (merge->count > 0) {
        qsort(merge->places, merge->count, sizeof(*merge->places), by_page);
    }
    if (!table_load_sections(merge->table, merge->file->file, error)) {
        log_warning("%s", error);
        return ENGINE_IMAGE_FAILED;
    }
    enum engine_image result = write_pages(merge, writer, stop, &next);
    if (result != ENGINE_IMAGE_DONE) {
        return result;
    }
    bool done = put_up_to(merge, MERGE_OUTSIDE, &next);
    for (unsigned i = 0; i < COUNTER_TABLE_SECTIONS && done; i++) {
        done = write_section(merge, i, writer);
    }
    return done ? ENGINE_IMAGE_DONE : ENGINE_IMAGE_FAILED;
}

/* ---- what the table does with it ---- */

bool counter_table_merge_begin(struct counter_table *t)
{
    CHECK(!t->memory && t->file);
    if (t->older) {
        return false;
    }
    struct table_overlay *front = table_overlay_create(t, t->overlay->cold, 0, 0);
    if (!front) {
        return false;
    }
    t->older = t->overlay;
    t->overlay = front;
    return true;
}

static struct table_file *merged(struct counter_table *t, struct table_file *file)
{
    CHECK(atomic_load(&t->file->users) == 1);
    struct table_file *before = t->file->file;
    t->file->file = file;
    table_overlay_destroy(t->older);
    t->older = NULL;
    return before;
}

static void fold_entry(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct counter_table *t = context;
    struct table_record record;
    (void)sub;
    (void)value;
    table_overlay_get(t, t->overlay, id, table_subs_all(&t->schema), &record);
    bool put = table_overlay_put_grow(t, t->older, id, &record);
    CHECK(put); /* as wherever memory for little is refused */
}

struct table_file *counter_table_merge_end(struct counter_table *t, struct table_file *file)
{
    CHECK(t->older);
    if (file) {
        return merged(t, file);
    }
    dict_each(t->overlay->extend, fold_entry, t);
    table_overlay_destroy(t->overlay);
    t->overlay = t->older;
    t->older = NULL;
    return NULL;
}
