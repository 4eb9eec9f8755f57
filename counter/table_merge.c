/*
 * table_merge.c: the next file of a dumped table, from its file and its older overlay.
 *
 * Records move only within a page, so the groups are read, changed and written a piece at a time,
 * in a table that is never whole: its memory is given back after the writer. Its dicts are loaded
 * whole; they hold little.
 *
 * A table that holds more than its file is shaped for gets a file of 2^doubles times as many
 * groups. A group's number is longer by so many bits of the same permuted id, so the records of a
 * page are those of the 2^doubles pages that take its place, and no other page has any: the piece
 * is as before, but each record is put in anew, and so is what had spilled.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "counter/table_private.h"
#include "row/row_log.h"
#include "store/dict_image.h"

#define MERGE_PIECE_PAGES (TABLE_FILE_BLOCK_BYTES / TABLE_FILE_PAGE_BYTES)
#define MERGE_PIECE_BYTES (MERGE_PIECE_PAGES * TABLE_PAGE_BYTES)
#define MERGE_OUTSIDE     UINT64_MAX

/* An id of the overlay, or one that had spilled, and the page its home lies in. */
struct place {
    uint64_t page, id;
};

struct places {
    struct place *at;
    size_t count, room, next; /* next: the first whose page is still to come */
};

struct counter_merge {
    struct counter_file *file;
    struct counter_table *table; /* that is written */
    void *memory;                /* of its groups */
    uint64_t bytes;
    struct counter_shape from;     /* of the file that is read */
    unsigned doubles;              /* the file that is written has 2^doubles times as many groups */
    struct table_overlay *overlay; /* the older one */
    struct places changed;         /* its ids */
    struct places spilled;         /* ids of the extend section, where their homes are others now */
    bool failed;                   /* memory was refused */
    unsigned char *piece;
};

/* ---- what is taken from the table ---- */

static struct counter_table *make_table(const struct counter_table *t, void *memory, uint64_t bytes)
{
    unsigned char description[ROW_DESCRIPTION_MAX];
    unsigned doubles;
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
        .description_bytes = counter_table_describe(t, description, &doubles),
        .region = memory,
        .region_bytes = bytes,
    };
    struct counter_table *table = counter_table_create(&config, &want, NULL);
    if (table) {
        table->row.base = t->row.base; /* which of a part's keys all have */
        table->row.last = ROW_ID_MAX;
    }
    return table;
}

static void places_init(struct places *places, uint64_t room)
{
    *places = (struct places){.room = room};
    places->at = memory_zalloc((room + 1) * sizeof(*places->at));
}

static void places_add(struct places *places, const struct counter_table *t,
                       const struct counter_locus *locus)
{
    CHECK(places->count < places->room);
    uint64_t page = locus->group == TABLE_OUTSIDE ? MERGE_OUTSIDE : locus->group / t->page_groups;
    places->at[places->count++] = (struct place){page, locus->id};
}

struct counter_merge *counter_merge_create(const struct counter_table *t)
{
    struct counter_merge *merge = memory_zalloc(sizeof(*merge));
    CHECK(t->older && t->file);
    merge->file = t->file;
    atomic_fetch_add(&merge->file->users, 1);
    merge->from = t->shape;
    merge->doubles = t->doubles;
    merge->bytes = t->shape.table_bytes << t->doubles;
    merge->memory = memory_region_create(merge->bytes);
    merge->table = merge->memory ? make_table(t, merge->memory, merge->bytes) : NULL;
    merge->overlay = t->older;
    atomic_fetch_add(&merge->overlay->users, 1);
    merge->piece = memory_region_create(MERGE_PIECE_BYTES);
    merge->failed = !merge->table || !merge->piece;
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
    free(merge->changed.at);
    free(merge->spilled.at);
    memory_region_destroy(merge->piece, MERGE_PIECE_BYTES);
    free(merge);
}

/* ---- writing ---- */

static int by_page(const void *a, const void *b)
{
    const struct place *left = a;
    const struct place *right = b;
    return (left->page > right->page) - (left->page < right->page);
}

static void places_sort(struct places *places)
{
    if (places->count > 0) {
        qsort(places->at, places->count, sizeof(*places->at), by_page);
    }
}

/* Returns the next one whose home lies in pages up to this one; NULL: there is none. */
static const struct place *places_next(struct places *places, uint64_t page)
{
    bool more = places->next < places->count && places->at[places->next].page <= page;
    return more ? &places->at[places->next++] : NULL;
}

static bool grow_dicts(struct counter_merge *merge)
{
    if (table_dicts_grow(merge->table)) {
        return true;
    }
    log_warning("no memory for merging the changes of a dumped table");
    return false;
}

static void note_changed(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct counter_merge *merge = context;
    struct counter_locus locus;
    (void)sub;
    (void)value;
    counter_table_locate(merge->table, id, false, &locus);
    places_add(&merge->changed, merge->table, &locus);
}

/* The older overlay does not change: it is read where it lies, outside the barrier. */
static void find_changed(struct counter_merge *merge)
{
    places_init(&merge->changed, dict_count(merge->overlay->extend));
    dict_each(merge->overlay->extend, note_changed, merge);
    places_sort(&merge->changed);
}

/* The changed records whose home lies in pages up to this one. */
static bool put_up_to(struct counter_merge *merge, uint64_t page)
{
    struct counter_table *t = merge->table;
    for (const struct place *at; (at = places_next(&merge->changed, page)) != NULL;) {
        struct table_record record;
        struct counter_locus locus;
        table_overlay_get(t, merge->overlay, at->id, table_subs_all(&t->schema), &record);
        counter_table_locate(t, at->id, true, &locus);
        while (!table_put_record(t, &locus, &record)) {
            if (!grow_dicts(merge)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- into more groups ---- */

static bool put_in_anew(struct counter_merge *merge, uint64_t id, const uint64_t *payload)
{
    struct counter_locus locus;
    bool done = false;
    counter_table_locate(merge->table, id, true, &locus);
    CHECK(locus.group != TABLE_OUTSIDE);
    while (!done) {
        struct table_hold hold;
        table_hold_home(merge->table, &locus, &hold);
        done = table_insert_counted(merge->table, &locus, &hold, payload);
        table_release(&hold);
        if (!done && !grow_dicts(merge)) {
            return false;
        }
    }
    return true;
}

static bool split_group(struct counter_merge *merge, const shared_word *words, uint64_t group)
{
    const struct counter_table *t = merge->table;
    uint32_t word = *group_lock(t, words);
    uint32_t count = group_count(t, word);
    size_t bytes = t->shape.payload_bytes;
    bool done = true;
    for (uint32_t place = 0; place < count && place < t->shape.places && done; place++) {
        uint64_t payload[SCHEMA_PAYLOAD_WORDS] = {0};
        words_copy_out(words, place * bytes, bytes, payload);
        uint64_t id = table_words_id_of(t, merge->from.group_bits, words, group, place, word);
        done = put_in_anew(merge, id, payload);
    }
    return done;
}

/* What had spilled from these pages: the dict has it under no home's mark. */
static bool take_spilled_up_to(struct counter_merge *merge, uint64_t page)
{
    struct counter_table *t = merge->table;
    bool done = true;
    for (const struct place *at; done && (at = places_next(&merge->spilled, page)) != NULL;) {
        uint64_t payload[SCHEMA_PAYLOAD_WORDS] = {0};
        bool there = dict_get(t->extend, at->id, 0, payload);
        CHECK(there);
        dict_delete(t->extend, at->id, 0);
        done = put_in_anew(merge, at->id, payload);
    }
    return done;
}

static void note_spilled(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct counter_merge *merge = context;
    struct counter_locus locus;
    (void)sub;
    (void)value;
    counter_table_locate(merge->table, id, false, &locus);
    if (locus.group != TABLE_OUTSIDE) {
        places_add(&merge->spilled, merge->table, &locus);
    }
}

static void find_spilled(struct counter_merge *merge)
{
    places_init(&merge->spilled, dict_count(merge->table->extend));
    dict_each(merge->table->extend, note_spilled, merge);
    places_sort(&merge->spilled);
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

static bool read_pages(struct counter_merge *merge, uint64_t first, unsigned count, void *to)
{
    char error[TABLE_FILE_ERROR_MAX];
    if (table_file_load_pages(merge->file->file, first, count, to, NULL, NULL, error) ==
        TABLE_FILE_DONE) {
        return true;
    }
    log_warning("%s", error);
    return false;
}

/* Pages of the file as they are. */
static bool merge_as_it_is(struct counter_merge *merge, uint64_t first, unsigned count)
{
    struct counter_table *t = merge->table;
    char *memory = (char *)t->memory + first * TABLE_PAGE_BYTES;
    if (!read_pages(merge, first, count, memory)) {
        return false;
    }
    for (uint64_t i = 0; i < (uint64_t)count * t->page_groups; i++) { /* in tests alone */
        uint64_t group = first * t->page_groups + i;
        table_shadow_group(t, group, *group_lock(t, group_words(t, group)));
    }
    return true;
}

/* Pages of the file, each as 2^doubles. */
static bool merge_split(struct counter_merge *merge, uint64_t first, unsigned count)
{
    const struct counter_table *t = merge->table;
    size_t words = t->shape.group_bytes / sizeof(shared_word);
    bool done = read_pages(merge, first, count, merge->piece);
    for (uint64_t i = 0; i < (uint64_t)count * t->page_groups && done; i++) {
        const shared_word *group = (const shared_word *)(const void *)merge->piece + i * words;
        done = split_group(merge, group, first * t->page_groups + i);
    }
    return done && take_spilled_up_to(merge, ((first + count) << merge->doubles) - 1);
}

static bool append_pages(struct counter_merge *merge, uint64_t first, uint64_t count,
                         struct table_file_writer *writer)
{
    struct counter_table *t = merge->table;
    bool done = true;
    for (uint64_t at = first; at < first + count && done; at += MERGE_PIECE_PAGES) {
        uint64_t left = first + count - at;
        unsigned some = left < MERGE_PIECE_PAGES ? (unsigned)left : MERGE_PIECE_PAGES;
        counter_table_copy_pages(t, at, some, merge->piece);
        done = table_file_append_pages(writer, merge->piece, some);
    }
    memory_region_clear((char *)t->memory + first * TABLE_PAGE_BYTES, count * TABLE_PAGE_BYTES);
    return done;
}

/* Some pages of the file, with what changed of them. */
static bool write_piece(struct counter_merge *merge, uint64_t first, unsigned count,
                        struct table_file_writer *writer)
{
    uint64_t to = first << merge->doubles;
    uint64_t pages = (uint64_t)count << merge->doubles;
    bool taken =
        merge->doubles > 0 ? merge_split(merge, first, count) : merge_as_it_is(merge, first, count);
    return taken && put_up_to(merge, to + pages - 1) && append_pages(merge, to, pages, writer);
}

static bool write_section(struct counter_merge *merge, unsigned section,
                          struct table_file_writer *writer)
{
    struct dict_image entries;
    const struct dict *dict =
        section == COUNTER_TABLE_EXTEND ? merge->table->extend : merge->table->aux;
    dict_image_init(&entries, dict_entry_bytes(dict) - DICT_KEY_BYTES);
    while (dict_image_collect(&entries, dict, NULL)) {
    }
    bool written = dict_image_write(&entries, writer, section);
    dict_image_fini(&entries);
    return written;
}

static enum engine_image write_pages(struct counter_merge *merge, struct table_file_writer *writer,
                                     const _Atomic bool *stop)
{
    uint64_t pages = merge->from.table_bytes / TABLE_PAGE_BYTES;
    for (uint64_t at = 0; at < pages; at += MERGE_PIECE_PAGES) {
        uint64_t left = pages - at;
        unsigned count = left < MERGE_PIECE_PAGES ? (unsigned)left : MERGE_PIECE_PAGES;
        if (*stop) {
            return ENGINE_IMAGE_STOPPED;
        }
        if (!write_piece(merge, at, count, writer)) {
            return ENGINE_IMAGE_FAILED;
        }
    }
    return ENGINE_IMAGE_DONE;
}

enum engine_image counter_merge_write(struct counter_merge *merge, struct table_file_writer *writer,
                                      const _Atomic bool *stop)
{
    char error[ENGINE_ERROR_MAX];
    if (merge->failed) {
        log_warning("no memory for merging the changes of a dumped table");
        return ENGINE_IMAGE_FAILED;
    }
    find_changed(merge);
    if (!table_load_sections(merge->table, merge->file->file, error)) {
        log_warning("%s", error);
        return ENGINE_IMAGE_FAILED;
    }
    if (merge->doubles > 0) {
        find_spilled(merge);
    }
    enum engine_image result = write_pages(merge, writer, stop);
    if (result != ENGINE_IMAGE_DONE) {
        return result;
    }
    bool done = put_up_to(merge, MERGE_OUTSIDE);
    for (unsigned i = 0; i < COUNTER_TABLE_SECTIONS && done; i++) {
        done = write_section(merge, i, writer);
    }
    return done ? ENGINE_IMAGE_DONE : ENGINE_IMAGE_FAILED;
}

/* ---- what the table does with it ---- */

/* A table that just fits is as full as one in memory may be. */
static unsigned doubles_for(const struct counter_table *t)
{
    uint64_t count = atomic_load(&t->row.count);
    bool grows = t->row.grows_to > t->shape.capacity; /* a part comes back to grow */
    unsigned most = grows ? table_shape_doubles_max(&t->shape) : 0;
    unsigned doubles = 0;
    while (doubles < most && count > t->shape.capacity << doubles) {
        doubles++;
    }
    return doubles;
}

bool counter_table_file_begin(struct counter_table *t, struct engine_cold *cold, unsigned overruns)
{
    bool merges = !t->extend;
    CHECK(!merges || t->file);
    if (t->older) {
        return false;
    }
    struct table_overlay *front =
        merges ? table_overlay_create_next(t) : table_overlay_create_tap(t, cold, overruns);
    if (merges && !front) {
        return false;
    }
    if (merges) {
        t->older = t->overlay;
        t->doubles = doubles_for(t);
    } else {
        table_overlay_discard(t, t->overlay);
    }
    t->overlay = front;
    return front != NULL;
}

static struct table_file *table_dumped(struct counter_table *t, struct table_file *file)
{
    CHECK(t->memory && t->overlay);
    table_leave_memory(t);
    t->file = table_file_hold(file, t->overlay->cold);
    t->row.file = file;
    return NULL;
}

static struct table_file *table_merged(struct counter_table *t, struct table_file *file)
{
    CHECK(t->older && atomic_load(&t->file->users) == 1);
    struct table_file *before = t->file->file;
    t->file->file = t->row.file = file;
    table_overlay_discard(t, t->older);
    t->older = NULL;
    table_reshape(t, t->doubles);
    t->doubles = 0;
    return before;
}

struct table_file *counter_table_file_end(struct counter_table *t, struct table_file *file)
{
    if (file) {
        return t->extend ? table_dumped(t, file) : table_merged(t, file);
    }
    CHECK(t->extend);
    table_overlay_discard(t, t->overlay);
    t->overlay = NULL;
    return NULL;
}

/* ---- a part comes back ---- */

/* What changed since its file was written. */
struct recalling {
    struct counter_table *table;
    const struct table_overlay *from;
    bool refused; /* memory */
};

static void recall_record(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct recalling *recalling = context;
    struct counter_table *t = recalling->table;
    struct table_record record;
    struct counter_locus locus;
    (void)sub;
    (void)value;
    table_overlay_get(t, recalling->from, id, table_subs_all(&t->schema), &record);
    counter_table_locate(t, id, true, &locus);
    while (!recalling->refused && !table_put_record(t, &locus, &record)) {
        recalling->refused = !table_dicts_grow(t);
    }
}

static bool recall_overlay(struct counter_table *t, const struct table_overlay *overlay)
{
    struct recalling recalling = {t, overlay, false};
    dict_each(overlay->extend, recall_record, &recalling);
    return !recalling.refused;
}

bool counter_table_recall_older(const struct counter_table *t, struct counter_table *loaded)
{
    return recall_overlay(loaded, t->older);
}

void counter_table_recall(struct counter_table *t, struct counter_table *loaded)
{
    struct table_overlay *overlay = t->overlay;
    struct table_overlay *older = t->older;
    CHECK(!t->memory && older && loaded->memory);
    t->memory = loaded->memory;
    t->extend = loaded->extend;
    t->aux = loaded->aux;
    t->extend_times = loaded->extend_times;
    t->aux_times = loaded->aux_times;
    t->shadow = loaded->shadow;
    loaded->memory = NULL;
    loaded->extend = loaded->aux = NULL;
    loaded->shadow = NULL;
    loaded->file = t->file; /* closing it may block */
    t->file = NULL;
    t->row.file = NULL;
    t->overlay = t->older = NULL;
    bool put = recall_overlay(t, overlay);
    CHECK(put); /* as wherever memory for little is refused */
    table_overlay_discard(t, older);
    table_overlay_discard(t, overlay);
    table_dicts_note(t);
    atomic_store(&t->row.count, table_count_records(t));
}
