/*
 * table_cold.c: a table that left memory: looked up, changed, changed again by a journal.
 *
 * Overlay, older overlay, file, in this order: the first that speaks of an id says all of it. Only
 * the overlay changes while others are there, under the stripe of the id; where a merge came to
 * nothing, one of both (table_overlay_of).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "counter/table_private.h"
#include "row/row_fold.h"
#include "row/row_log.h"
#include "store/cold.h"
#include "store/table_file.h"

/* A page of entries or of the table, as reads of the disk want it. */
struct page {
    _Alignas(TABLE_FILE_PAGE_BYTES) uint64_t words[TABLE_FILE_PAGE_BYTES / sizeof(uint64_t)];
};

/* ---- the file ---- */

struct counter_file *table_file_hold(struct table_file *file, struct engine_cold *cold)
{
    struct counter_file *held = memory_zalloc(sizeof(*held));
    *held = (struct counter_file){.file = file, .cold = cold, .users = 1};
    return held;
}

void table_file_let_go(struct counter_file *file)
{
    if (!file || atomic_fetch_sub(&file->users, 1) > 1) {
        return;
    }
    if (file->cold->cold) {
        cold_forget(file->cold->cold, file->file);
    }
    table_file_close(file->file);
    free(file);
}

/* False: it is not here, and the reader knows why. */
static bool get_page(const struct counter_table *t, uint64_t number, struct page *page,
                     struct counter_reader *reader)
{
    char error[TABLE_FILE_ERROR_MAX];
    const struct table_file *file = t->file->file;
    if (!reader->cold) {
        bool read = table_file_read_page(file, number, page->words, error) == TABLE_FILE_DONE;
        reader->error = read ? reader->error : ENGINE_E_READ_FAILED;
        return read;
    }
    switch (cold_get(reader->cold, file, number, &reader->ticket, page->words, error)) {
    case COLD_HIT:
        return true;
    case COLD_PENDING:
        reader->pending = true;
        return false;
    case COLD_BUSY:
        reader->error = ENGINE_E_BUSY;
        return false;
    default:
        reader->error = ENGINE_E_READ_FAILED;
        return false;
    }
}

/* Looks in the home's page: in the home, and in the alternate if it is marked. *spilled: if it was
 * not found it may be in the extend section. */
static bool find_in_page(const struct counter_table *t, const struct counter_locus *locus,
                         const struct page *page, uint64_t *payload, bool *spilled)
{
    size_t group_words_count = t->shape.group_bytes / sizeof(uint64_t);
    const shared_word *words = page->words + locus->group % t->page_groups * group_words_count;
    uint32_t home = *group_lock(t, words);
    uint64_t hash = rem_hash(t, locus->rem);
    int place = table_match(t, words, home, locus->rem, false);
    if (place < 0 && (home & rem_mark(hash))) {
        uint64_t other = group_other(t, locus->group, hash) % t->page_groups;
        words = page->words + other * group_words_count;
        place = table_match(t, words, *group_lock(t, words), locus->rem, true);
    }
    if (place >= 0) {
        size_t bytes = t->shape.payload_bytes;
        words_copy_out(words, (size_t)place * bytes, bytes, payload);
    }
    *spilled = home & GROUP_SPILLED;
    return place >= 0;
}

/* An entry of a section. False: the reader knows why; *there tells else. */
static bool file_entry(const struct counter_table *t, unsigned section, uint64_t id, uint8_t sub,
                       struct counter_reader *reader, uint64_t *value, bool *there)
{
    struct page page;
    uint64_t number;
    *there = false;
    if (!table_file_entry_page(t->file->file, section, id, sub, &number)) {
        return true;
    }
    if (!get_page(t, number, &page, reader)) {
        return false;
    }
    *there = table_file_search_page(t->file->file, section, number, page.words, id, sub, value);
    return true;
}

static bool file_payload(const struct counter_table *t, const struct counter_locus *locus,
                         struct counter_reader *reader, uint64_t *payload)
{
    struct page page;
    bool spilled = true;
    if (locus->group != TABLE_OUTSIDE) {
        if (!get_page(t, locus->group / t->page_groups, &page, reader)) {
            return false;
        }
        if (find_in_page(t, locus, &page, payload, &spilled)) {
            return true;
        }
    }
    bool there;
    return !spilled || file_entry(t, COUNTER_TABLE_EXTEND, locus->id, 0, reader, payload, &there);
}

/* The record in the file, with the values beside of `subs`; all their pages are asked for before
 * one is waited for. False: the reader knows why. */
static bool file_record(const struct counter_table *t, const struct counter_locus *locus,
                        uint64_t subs, struct counter_reader *reader, struct table_record *record)
{
    memset(record, 0, sizeof(*record));
    if (!file_payload(t, locus, reader, record->payload)) {
        return false;
    }
    bool all = true;
    uint64_t left = table_subs_marked(&t->schema, record->payload, subs);
    for (; left; left &= left - 1) {
        unsigned sub = (unsigned)__builtin_ctzll(left);
        bool there;
        all = file_entry(t, COUNTER_TABLE_AUX, locus->id, (uint8_t)sub, reader, &record->aux[sub],
                         &there) &&
              all;
        record->subs |= (uint64_t)there << sub;
    }
    table_record_tidy(&t->schema, record, subs);
    return all;
}

/* ---- looking up ---- */

/* What lies in front of a dumped table's file. False: nothing of this id. */
static bool table_overlaid(const struct counter_table *t, uint64_t id, uint64_t subs,
                           struct table_record *record)
{
    const verlock *stripe = stripe_lock(t, id);
    uint32_t word;
    bool there;
    do {
        word = verlock_read(stripe);
        there = table_overlay_get(t, t->overlay, id, subs, record) ||
                table_overlay_get(t, t->older, id, subs, record);
    } while (!verlock_unchanged(stripe, word));
    return there;
}

enum counter_look counter_table_read_cold(const struct counter_table *t,
                                          const struct counter_locus *locus, uint32_t wanted,
                                          struct counter_values *values,
                                          struct counter_reader *reader)
{
    struct table_record record;
    uint64_t subs = table_subs_of(&t->view, wanted | t->view.aux_only);
    if (!table_overlaid(t, locus->id, subs, &record) &&
        !file_record(t, locus, subs, reader, &record)) {
        return COUNTER_UNKNOWN;
    }
    table_record_decode(&t->view, &record, wanted, values);
    return values->set ? COUNTER_FOUND : COUNTER_ABSENT;
}

/* ---- changing ---- */

struct work {
    struct table_change c;
    struct table_record record; /* as it is, then as it becomes */
    bool present;
};

/* Under the stripe: what came into the overlay meanwhile is newer than what was fetched. */
static enum engine_status table_cold_decide(struct work *w)
{
    const struct counter_table *t = w->c.table;
    struct counter_edit *edit = w->c.edit;
    struct table_record newer;
    struct counter_values before;
    uint32_t all = counter_view_all(&t->view);
    const struct table_overlay *overlay = table_overlay_of(t, w->c.locus->id);
    if (table_overlay_get(t, overlay, w->c.locus->id, table_subs_all(&t->schema), &newer)) {
        w->record = newer;
    }
    w->present = table_record_is_set(&w->record);
    if (!w->present && t->row.further) {
        edit->elsewhere = true; /* for good: nothing new comes here */
        return ENGINE_ABSENT;
    }
    table_record_decode(&t->view, &w->record, all, &before);
    edit->after = before;
    return edit->decide(edit, before.set != 0, &before, &edit->after);
}

/* Asks the row to let a new record in, and counts it if it does. */
static enum table_insert_result admit(struct work *w)
{
    struct counter_table *t = w->c.table;
    enum row_verdict verdict = row_admit(t->in_row, &t->root->row, w->c.locus->id);
    CHECK(verdict != ROW_APART); /* a dumped table takes nothing above its frontier */
    w->c.put = CHANGE_INSIDE;
    return table_verdict_result(verdict);
}

/* While records move into the older overlay: returns whether that has room for what this one adds
 * to either, and for all that is to move. */
static bool fold_keeps_room(const struct work *w, const struct table_overlay *overlay)
{
    const struct counter_table *t = w->c.table;
    bool anew = !dict_get(overlay->extend, w->c.locus->id, 0, NULL);
    struct table_record old = {0};
    table_record_read_aux(&old, overlay->aux, w->c.locus->id, w->record.subs);
    bool adds = w->record.subs & ~old.subs;
    return (!anew || row_fold_keeps_room(t->older->extend, t->overlay->extend)) &&
           (!adds || row_fold_keeps_room(t->older->aux, t->overlay->aux));
}

static bool table_cold_put(struct work *w)
{
    struct counter_table *t = w->c.table;
    struct table_overlay *overlay = table_overlay_of(t, w->c.locus->id);
    bool open =
        table_overlay_open(overlay, true) || dict_get(overlay->extend, w->c.locus->id, 0, NULL);
    open = open && (LIKELY(!t->fold.moves) || fold_keeps_room(w, overlay));
    return open && table_overlay_put(t, overlay, w->c.locus->id, &w->record);
}

static enum table_insert_result table_cold_store(struct work *w, bool erased)
{
    struct counter_table *t = w->c.table;
    enum table_insert_result result = TABLE_INSERTED;
    w->c.put = CHANGE_THERE;
    if (erased) {
        memset(&w->record, 0, sizeof(w->record));
    } else {
        table_record_apply(&t->view, &w->record, w->c.edit->named, &w->c.edit->after);
        result = w->present ? TABLE_INSERTED : admit(w);
    }
    bool stored = result == TABLE_INSERTED && table_cold_put(w);
    if (result == TABLE_INSERTED && !stored && !w->present) {
        row_removed(&t->root->row, &t->row, w->c.locus->id);
    }
    if (stored && erased) {
        row_removed(&t->root->row, &t->row, w->c.locus->id);
    }
    return result == TABLE_INSERTED && !stored ? TABLE_INSERT_BUSY : result;
}

/* Under the stripe. True: there was something to change, and it is done. */
static bool table_cold_carry_out(struct work *w)
{
    w->c.status = table_cold_decide(w);
    bool erased = w->c.edit->deleted_hidden || w->c.edit->after.set == 0;
    if (w->c.status != ENGINE_DONE || (erased && !w->present)) {
        return false;
    }
    row_changed(&w->c.table->row);
    w->c.result = table_cold_store(w, erased);
    if (w->c.result != TABLE_INSERTED) {
        return false;
    }
    /* Whole: replay need not look into the file. */
    table_change_hand_over(&w->c, counter_view_all(&w->c.table->view), erased);
    return true;
}

/* What is to be changed, whole. False: the reader knows why. */
static bool fetch(struct work *w, struct counter_reader *reader)
{
    const struct counter_table *t = w->c.table;
    uint64_t subs = table_subs_all(&t->schema);
    return table_overlaid(t, w->c.locus->id, subs, &w->record) ||
           file_record(t, w->c.locus, subs, reader, &w->record);
}

enum engine_status counter_table_edit_cold(struct counter_table *t,
                                           const struct counter_locus *locus,
                                           struct counter_edit *edit, uint32_t space,
                                           struct change_sink *sink, struct counter_reader *reader,
                                           enum engine_error *error)
{
    struct work w = {.c = {.table = t, .locus = locus, .edit = edit, .space = space, .sink = sink}};
    CHECK(!t->memory);
    if (!table_change_begin(&w.c, error)) {
        return ENGINE_ERROR;
    }
    if (!fetch(&w, reader)) {
        sink->functions->cancel(sink);
        *error = reader->error;
        return reader->error == ENGINE_E_NONE ? ENGINE_PENDING : ENGINE_ERROR;
    }
    verlock *stripe = stripe_lock(t, locus->id);
    uint32_t word = verlock_take(stripe);
    w.c.done = table_cold_carry_out(&w);
    verlock_release(stripe, word + STRIPE_VERSION_ONE);
    if (UNLIKELY(w.c.result == TABLE_INSERT_LATER)) {
        reader->error = ENGINE_E_BUSY; /* not for want of room: no merge is to be waited for */
    }
    return table_change_end(&w.c, error);
}

/* ---- replay ---- */

/* Returns whether the change says all of the record, also what is hidden. */
static bool is_whole(const struct counter_table *t, const struct change *change)
{
    uint32_t all = counter_view_all(&t->view);
    return change->named == all && table_subs_of(&t->view, all) == table_subs_all(&t->schema);
}

/* What is known of the record without the file, or with it. */
struct known {
    struct table_record record;
    bool told; /* by an overlay or the file: it is as it says */
    bool gone; /* so told: it is not there */
};

/* The older overlay is there while a merge is under way: where replay goes on beside it. */
static void ask_overlays(const struct counter_table *t, uint64_t id, struct known *known)
{
    uint64_t subs = table_subs_all(&t->schema);
    const struct table_overlay *by = t->overlay;
    known->told = table_overlay_get(t, by, id, subs, &known->record);
    if (!known->told && t->older) {
        by = t->older;
        known->told = table_overlay_get(t, by, id, subs, &known->record);
    }
    known->gone = known->told && table_overlay_says_gone(t, by, id);
}

/* The change is of a record that is there, here or in the layer. */
static bool is_of_record(const struct change *change)
{
    return change->type == CHANGE_DELETE || change->place == CHANGE_THERE;
}

/* Returns whether only the file knows whether the change is for the table or its layer, or what it
 * leaves as it is. */
static bool needs_file(const struct counter_table *t, const struct change *change,
                       const struct known *known)
{
    bool slots = change->type == CHANGE_SLOTS;
    return !known->told && is_of_record(change) &&
           (t->row.further || (slots && !is_whole(t, change)));
}

/* Returns whether the change is for the layer: nothing new comes to a table that has one. */
static bool is_further(const struct counter_table *t, const struct change *change,
                       const struct known *known)
{
    return t->row.further && (known->told ? known->gone : !is_of_record(change));
}

static void apply(const struct counter_table *t, const struct change *change,
                  struct table_record *record)
{
    struct counter_values values = {.set = change->set};
    memcpy(values.value, change->values, sizeof(values.value));
    table_record_apply(&t->view, record, change->named, &values);
}

enum counter_replayed counter_table_replay_cold(struct counter_table *t,
                                                const struct counter_locus *locus,
                                                const struct change *change,
                                                struct counter_reader *reader, bool *created)
{
    struct known known;
    CHECK(!t->previewed && !t->memory);
    *created = false;
    ask_overlays(t, locus->id, &known);
    if (needs_file(t, change, &known)) {
        known.told = file_record(t, locus, table_subs_all(&t->schema), reader, &known.record);
        if (!known.told) {
            return reader->error == ENGINE_E_READ_FAILED ? COUNTER_REPLAY_UNREAD
                                                         : COUNTER_REPLAY_PENDING;
        }
        known.gone = !table_record_is_set(&known.record);
    }
    if (is_further(t, change, &known)) {
        return COUNTER_REPLAY_FURTHER;
    }
    bool deletes = change->type == CHANGE_DELETE;
    bool there = !deletes && change->place == CHANGE_THERE;
    if (!there) {
        memset(&known.record, 0, sizeof(known.record));
    }
    if (!deletes) {
        apply(t, change, &known.record);
    }
    row_changed(&t->row);
    if (!table_overlay_put_grow(t, table_overlay_of(t, locus->id), locus->id, &known.record)) {
        return COUNTER_REPLAY_FULL;
    }
    *created = !deletes && !there;
    return COUNTER_REPLAYED;
}

bool counter_table_replay_reads(const struct counter_table *t, const struct counter_locus *locus,
                                const struct change *change, struct counter_reader *reader)
{
    struct known known;
    ask_overlays(t, locus->id, &known);
    bool reads = needs_file(t, change, &known);
    if (reads && reader != NULL) {
        (void)file_record(t, locus, table_subs_all(&t->schema), reader, &known.record);
    }
    return reads;
}

/* ---- coming and going ---- */

/* False: it is of no table that merges could have made of this one. */
static bool read_shape(const struct counter_table *t, const struct table_file_info *info,
                       struct counter_shape *shape)
{
    struct table_description is;
    if (info->description_bytes < ROW_STATE_BYTES ||
        !table_description_read(&is, (const unsigned char *)info->description + ROW_STATE_BYTES,
                                info->description_bytes - ROW_STATE_BYTES)) {
        return false;
    }
    *shape = is.shape;
    return is.origin == t->origin && is.secret == t->secret &&
           memcmp(is.odd, t->permute.odd, sizeof(is.odd)) == 0 &&
           shape->window_bits == t->shape.window_bits && shape->places == t->shape.places &&
           shape->group_bytes == t->shape.group_bytes && shape->rem_bytes == t->shape.rem_bytes;
}

/*
 * Gives the table as many groups as its file has: the description is the overlay's, whose image may
 * have begun before the merge ended that wrote the file. False: it is no file of this table.
 */
static bool reshape_by(struct counter_table *t, const struct table_file *file)
{
    struct counter_shape shape;
    if (!read_shape(t, table_file_info(file), &shape) || shape.group_bits < t->shape.group_bits ||
        shape.group_bits - t->shape.group_bits > table_shape_doubles_max(&t->shape)) {
        return false;
    }
    table_reshape(t, shape.group_bits - t->shape.group_bits);
    return shape.capacity == t->shape.capacity;
}

/* Returns whether it is the file of this table. */
static bool file_fits(const struct counter_table *t, const struct table_file *file, uint64_t pages)
{
    const struct table_file_info *info = table_file_info(file);
    return info->pages == pages && info->sections == COUNTER_TABLE_SECTIONS &&
           info->section[COUNTER_TABLE_EXTEND].value_bytes == t->shape.payload_bytes &&
           info->section[COUNTER_TABLE_AUX].value_bytes == sizeof(uint64_t);
}

static bool table_cold_refuse(char *error, const struct table_file *file, const char *what)
{
    return fail_with(error, ENGINE_ERROR_MAX, "%s: %s", table_file_path(file), what);
}

bool counter_table_restore_cold(struct counter_table *t, struct engine_cold *cold,
                                struct table_file *file, const struct table_file *overlay,
                                char error[ENGINE_ERROR_MAX])
{
    uint64_t extend = 0;
    uint64_t aux = 0;
    CHECK(!t->memory && !t->overlay);
    if (!reshape_by(t, file) || !file_fits(t, file, t->shape.table_bytes / TABLE_PAGE_BYTES)) {
        return table_cold_refuse(error, file, "it is not as its description says");
    }
    if (overlay) {
        if (!file_fits(t, overlay, 0)) {
            return table_cold_refuse(error, overlay, "it is no overlay of its table");
        }
        extend = table_file_info(overlay)->section[COUNTER_TABLE_EXTEND].entries;
        aux = table_file_info(overlay)->section[COUNTER_TABLE_AUX].entries;
    }
    t->overlay = table_overlay_create(t, cold, extend, aux);
    if (!t->overlay) {
        return table_cold_refuse(error, file, "no memory for what changed since");
    }
    if (overlay && !table_overlay_load(t, t->overlay, overlay, error)) {
        return false;
    }
    t->file = table_file_hold(file, cold);
    t->row.file = file;
    return true;
}

uint64_t counter_table_file_bytes(const struct counter_table *t)
{
    return t->file ? table_file_info(t->file->file)->file_bytes : 0;
}

void counter_table_overlay_size(const struct counter_table *t, struct row_overlay_size *size)
{
    const struct table_overlay *overlay = t->overlay;
    const struct table_overlay *older = t->older;
    *size = (struct row_overlay_size){0};
    if (overlay) {
        size->entries = dict_count(overlay->extend);
        size->bytes = atomic_load(&overlay->bytes);
        size->half = table_overlay_is_half(overlay);
        size->merges = size->entries > 0;
        size->held_bytes = dict_pool_bytes(overlay->extend) + dict_pool_bytes(overlay->aux);
    }
    if (older) {
        size->older_bytes = atomic_load(&older->bytes);
        size->held_bytes += dict_pool_bytes(older->extend) + dict_pool_bytes(older->aux);
        size->entries += dict_count(older->extend);
    }
}
