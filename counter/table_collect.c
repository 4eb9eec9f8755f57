/*
 * table_collect.c: ids of tables for lists. A page of memory is copied first, as records move
 * within it. A file is read a piece of pages at a time into a table that is never whole, whose
 * memory is given back after each, as a merge does it (table_merge.c).
 */
#include "counter/table_collect.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "counter/table_private.h"
#include "row/row_log.h"
#include "store/table_file.h"

#define FILE_PIECE_PAGES (TABLE_FILE_BLOCK_BYTES / TABLE_FILE_PAGE_BYTES)
#define GROUP_WORDS(t)   ((t)->shape.group_bytes / sizeof(uint64_t))

_Static_assert(TABLE_COLLECT_PAGES *(TABLE_PAGE_BYTES / TABLE_GROUP_BYTES) * TABLE_NARROW_PLACES <=
                   ENGINE_COLLECT_STEP,
               "a step has room for all ids of its pages");
_Static_assert(TABLE_COLLECT_PAGES *(TABLE_PAGE_BYTES / TABLE_WIDE_BYTES) * TABLE_PLACES_MAX <=
                   ENGINE_COLLECT_STEP,
               "with wide groups, too");

/* ---- in memory ---- */

static void collect_group(const struct counter_table *t, uint64_t group, const shared_word *words,
                          struct engine_collect *collect)
{
    uint32_t word = *group_lock(t, words);
    uint32_t count = group_count(t, word);
    for (uint32_t place = 0; place < count; place++) {
        uint64_t id = table_words_id(t, words, group, place, word);
        if (engine_collect_wants(collect, id)) {
            engine_collect_add(collect, id);
        }
    }
}

void counter_table_collect_pages(const struct counter_table *t, uint64_t first, unsigned count,
                                 struct engine_collect *collect)
{
    uint64_t page[TABLE_PAGE_BYTES / sizeof(uint64_t)];
    CHECK(count <= TABLE_COLLECT_PAGES);
    for (uint64_t at = first; at < first + count; at++) {
        counter_table_copy_pages(t, at, 1, page);
        for (unsigned i = 0; i < t->page_groups; i++) {
            collect_group(t, at * t->page_groups + i, page + i * GROUP_WORDS(t), collect);
        }
    }
}

static void collect_dict_entry(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct engine_collect *collect = context;
    (void)sub;
    (void)value;
    if (engine_collect_wants(collect, id)) {
        engine_collect_add(collect, id);
    }
}

bool counter_table_collect_dict(const struct dict *dict, uint64_t *at,
                                struct engine_collect *collect)
{
    return dict_walk(dict, at, TABLE_COLLECT_ENTRIES, collect_dict_entry, collect);
}

const struct dict *counter_table_extend(const struct counter_table *t)
{
    return t->extend;
}

void counter_table_overlays(const struct counter_table *t, const struct dict **overlay,
                            const struct dict **older)
{
    *overlay = t->overlay->extend;
    *older = t->older ? t->older->extend : NULL;
}

const struct table_file *counter_table_file(const struct counter_table *t)
{
    return t->file ? t->file->file : NULL;
}

/* ---- in a file ---- */

struct reading {
    const struct table_file *file;
    struct engine_collect *collect;
    struct counter_table *table; /* as the file describes it, looked at by the configuration */
    void *memory;
    uint64_t bytes;
    bool whole; /* role cache: a record that lacks a slot is not there */
};

static void add_record(struct reading *reading, uint64_t id, const uint64_t *payload)
{
    const struct counter_table *t = reading->table;
    struct table_record record;
    struct counter_values values;
    char text[ENGINE_VALUE_MAX];
    if (!engine_collect_wants(reading->collect, id)) {
        return;
    }
    table_record_read(t, id, payload, &record);
    table_record_tidy(&t->schema, &record, table_subs_all(&t->schema));
    table_record_decode(&t->view, &record, counter_view_all(&t->view), &values);
    bool there = reading->whole ? values.set == counter_view_all(&t->view) : values.set != 0;
    if (there) {
        size_t length = counter_record_print(text, &values, t->view.slot_count);
        engine_collect_add_text(reading->collect, id, text, length);
    }
}

static void add_group(struct reading *reading, uint64_t group)
{
    const struct counter_table *t = reading->table;
    const shared_word *words = group_words(t, group);
    uint32_t word = *group_lock(t, words);
    uint32_t count = group_count(t, word);
    size_t bytes = t->shape.payload_bytes;
    for (uint32_t place = 0; place < count && place < t->shape.places; place++) {
        uint64_t payload[SCHEMA_PAYLOAD_WORDS] = {0};
        words_copy_out(words, (size_t)place * bytes, bytes, payload);
        add_record(reading, table_words_id(t, words, group, place, word), payload);
    }
}

static void add_entry(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    (void)sub;
    add_record(context, id, value);
}

static void take_base(void *context, const char *name, uint64_t value)
{
    if (strcmp(name, "base") == 0) {
        *(uint64_t *)context = value;
    }
}

static bool reading_refuse(struct reading *reading, const char *why)
{
    return fail_with(reading->collect->error, ENGINE_COLLECT_ERROR, "%.400s: %s",
                     table_file_path(reading->file), why);
}

static bool reading_begin(struct reading *reading, const struct counter_config *config)
{
    const struct table_file_info *info = table_file_info(reading->file);
    struct table_description is;
    size_t at = 0;
    uint64_t base = 0;
    bool read = row_state_read(info->description, info->description_bytes, take_base, &base, &at);
    const char *description = (const char *)info->description + at;
    size_t length = info->description_bytes - at;
    if (!read || !table_description_read(&is, description, length) ||
        info->pages != is.shape.table_bytes / TABLE_PAGE_BYTES) {
        return reading_refuse(reading, "it does not describe its table");
    }
    struct counter_config viewed = *config;
    viewed.row.any_ids = is.origin != TABLE_NO_WINDOW;
    reading->bytes = is.shape.table_bytes;
    reading->memory = memory_region_create(reading->bytes);
    const struct row_want want = {.first = !viewed.row.any_ids,
                                  .description = description,
                                  .description_bytes = length,
                                  .region = reading->memory,
                                  .region_bytes = reading->bytes};
    reading->table = reading->memory ? counter_table_create(&viewed, &want, NULL) : NULL;
    if (!reading->table || !counter_table_can_view(reading->table, &viewed)) {
        return reading_refuse(reading, "no memory for a list of it");
    }
    reading->table->row.base = base;
    counter_table_set_view(reading->table, &viewed);
    return table_load_sections(reading->table, reading->file, reading->collect->error);
}

static bool read_piece(struct reading *reading, uint64_t first, uint64_t count)
{
    struct counter_table *t = reading->table;
    char *memory = (char *)reading->memory + first * TABLE_PAGE_BYTES;
    if (table_file_load_pages(reading->file, first, count, memory, NULL, NULL,
                              reading->collect->error) != TABLE_FILE_DONE) {
        return false;
    }
    for (uint64_t i = 0; i < count * t->page_groups; i++) {
        add_group(reading, first * t->page_groups + i);
    }
    memory_region_clear(memory, count * TABLE_PAGE_BYTES);
    atomic_fetch_add(&reading->collect->steps, 1);
    return true;
}

static enum engine_collect_end read_all(struct reading *reading)
{
    uint64_t pages = reading->bytes / TABLE_PAGE_BYTES;
    for (uint64_t at = 0; at < pages; at += FILE_PIECE_PAGES) {
        uint64_t count = pages - at < FILE_PIECE_PAGES ? pages - at : FILE_PIECE_PAGES;
        if (*reading->collect->stop) {
            return ENGINE_COLLECT_STOPPED;
        }
        if (!read_piece(reading, at, count)) {
            return ENGINE_COLLECT_FAILED;
        }
    }
    dict_each(reading->table->extend, add_entry, reading); /* after the groups: those are newer */
    return ENGINE_COLLECT_DONE;
}

enum engine_collect_end counter_table_collect_file(const struct table_file *file,
                                                   const struct counter_config *config,
                                                   struct engine_collect *collect)
{
    struct reading reading = {.file = file, .collect = collect, .whole = config->role_cache};
    enum engine_collect_end end =
        reading_begin(&reading, config) ? read_all(&reading) : ENGINE_COLLECT_FAILED;
    counter_table_destroy(reading.table);
    memory_region_destroy(reading.memory, reading.bytes);
    return end;
}
