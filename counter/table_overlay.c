/*
 * table_overlay.c: what changed of a table that is dumped, or is about to be: whole records in two
 * small dicts. An id that was deleted has an entry with nothing set; entries go with a merge alone.
 *
 * Order of a put: new values beside, the record, the other values, those that are no more. So what
 * a collected record speaks of was there when its values are collected, or is gone by a later
 * change (row/row_image.h): of values, maybe of all it had (table_overlay_says_gone).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "counter/table_private.h"
#include "row/row_cold.h"
#include "row/row_fold.h"
#include "store/dict_image.h"

#define OVERLAY_SHARE     32u         /* of the table's bytes: each of both dicts */
#define OVERLAY_POOL_MIN  (16u << 10) /* bytes */
#define OVERLAY_WIDER     2u          /* times the one before, where that was half full */
#define OVERLAY_MOST_PART 8u          /* an overlay has at most this part of what all may have */
#define OVERLAY_SPARE     3u          /* a pool takes entries of a third of its bytes for sure */

static uint64_t usual_bytes(const struct counter_table *t)
{
    uint64_t bytes = t->shape.table_bytes / OVERLAY_SHARE;
    return bytes > OVERLAY_POOL_MIN ? bytes : OVERLAY_POOL_MIN;
}

static uint64_t overlay_pool_bytes(const struct counter_table *t, size_t value_bytes,
                                   uint64_t entries)
{
    uint64_t bytes = usual_bytes(t);
    /* A dict's levels are a power of two, which may be half of what was asked for. */
    uint64_t needed = 2 * OVERLAY_SPARE * entries * (DICT_KEY_BYTES + value_bytes);
    return bytes > needed ? bytes : needed;
}

static struct table_overlay *create(const struct counter_table *t, struct engine_cold *cold,
                                    uint64_t extend_bytes, uint64_t aux_bytes)
{
    struct table_overlay *overlay = memory_zalloc(sizeof(*overlay));
    overlay->cold = cold;
    overlay->pool_bytes = extend_bytes;
    overlay->users = 1;
    overlay->extend = dict_create(t->shape.payload_bytes, extend_bytes, clock_random());
    overlay->aux = dict_create(sizeof(uint64_t), aux_bytes, clock_random());
    if (overlay->extend && overlay->aux) {
        return overlay;
    }
    table_overlay_destroy(overlay);
    return NULL;
}

struct table_overlay *table_overlay_create(const struct counter_table *t, struct engine_cold *cold,
                                           uint64_t extend_entries, uint64_t aux_entries)
{
    return create(t, cold, overlay_pool_bytes(t, t->shape.payload_bytes, extend_entries),
                  overlay_pool_bytes(t, sizeof(uint64_t), aux_entries));
}

/*
 * An overlay that fills quickly is followed by a wider one: much comes late to its table, and each
 * merge writes the whole file, so there should be few merges. An overlay takes memory as far as it
 * is used, and counts as much.
 */
struct table_overlay *table_overlay_create_next(const struct counter_table *t)
{
    struct engine_cold *cold = t->overlay->cold;
    uint64_t bytes = usual_bytes(t);
    uint64_t wider = OVERLAY_WIDER * t->overlay->pool_bytes;
    uint64_t most = cold->overlay_bytes_max / OVERLAY_MOST_PART;
    wider = wider < most ? wider : most;
    bool half = table_overlay_is_half(t->overlay);
    bytes = half && wider > bytes ? wider : bytes;
    return create(t, cold, bytes, bytes);
}

struct table_overlay *table_overlay_create_tap(const struct counter_table *t,
                                               struct engine_cold *cold, unsigned overruns)
{
    uint64_t bytes = row_cold_wider(usual_bytes(t), overruns, cold->overlay_bytes_max);
    return create(t, cold, bytes, bytes);
}

struct table_overlay *table_overlay_create_wide(const struct counter_table *t,
                                                const struct table_overlay *like,
                                                const struct table_overlay *more)
{
    uint64_t extend = dict_count(like->extend) + dict_count(more->extend);
    uint64_t aux = dict_count(like->aux) + dict_count(more->aux);
    struct table_overlay *overlay = create(t, like->cold, row_fold_pool_bytes(like->extend, extend),
                                           row_fold_pool_bytes(like->aux, aux));
    if (overlay) {
        overlay->pool_bytes = like->pool_bytes; /* the next one need not be wider for that */
    }
    return overlay;
}

static uint64_t used_bytes(const struct table_overlay *overlay)
{
    uint64_t extend = dict_count(overlay->extend) > 0 ? dict_used_bytes(overlay->extend) : 0;
    uint64_t aux = dict_count(overlay->aux) > 0 ? dict_used_bytes(overlay->aux) : 0;
    return extend + aux;
}

/* What is used counts, as long as there is anything. */
static void account(struct table_overlay *overlay, bool any)
{
    uint64_t bytes = any ? used_bytes(overlay) : 0;
    if (bytes != atomic_load_explicit(&overlay->bytes, memory_order_relaxed)) {
        uint64_t before = atomic_exchange(&overlay->bytes, bytes);
        atomic_fetch_add(&overlay->cold->overlay_bytes, bytes - before);
    }
}

void table_overlay_account(struct table_overlay *overlay)
{
    account(overlay, true);
}

void table_overlay_destroy(struct table_overlay *overlay)
{
    if (!overlay || atomic_fetch_sub(&overlay->users, 1) > 1) {
        return;
    }
    if (overlay->extend && overlay->aux) {
        account(overlay, false);
    }
    dict_destroy(overlay->aux);
    dict_destroy(overlay->extend);
    free(overlay);
}

static void table_overlay_drop(void *overlay)
{
    table_overlay_destroy(overlay);
}

/* Giving back its memory takes longer than the world may be stopped. */
void table_overlay_discard(const struct counter_table *t, struct table_overlay *overlay)
{
    if (!overlay) {
        return;
    }
    account(overlay, false);
    if (t->in_row) {
        row_discard(t->in_row, overlay, table_overlay_drop);
    } else {
        table_overlay_destroy(overlay);
    }
}

bool table_overlay_get(const struct counter_table *t, const struct table_overlay *overlay,
                       uint64_t id, uint64_t subs, struct table_record *record)
{
    memset(record, 0, sizeof(*record));
    if (!overlay || !dict_get(overlay->extend, id, 0, record->payload)) {
        return false;
    }
    if (!table_record_is_set(record)) {
        subs |= table_subs_extra(&t->schema); /* whether it is gone, or has learned names alone */
    }
    subs = table_subs_marked(&t->schema, record->payload, subs);
    table_record_read_aux(record, overlay->aux, id, subs);
    table_record_tidy(&t->schema, record, subs);
    return true;
}

bool table_overlay_says_gone(const struct counter_table *t, const struct table_overlay *overlay,
                             uint64_t id)
{
    struct table_record record = {0};
    if (!overlay || !dict_get(overlay->extend, id, 0, record.payload)) {
        return false;
    }
    table_record_read_aux(&record, overlay->aux, id, table_subs_extra(&t->schema));
    return !table_record_is_set(&record);
}

static void drop_values(struct table_overlay *overlay, uint64_t id, uint64_t subs)
{
    for (; subs; subs &= subs - 1) {
        dict_delete(overlay->aux, id, (uint8_t)__builtin_ctzll(subs));
    }
}

static bool put_values(struct table_overlay *overlay, uint64_t id,
                       const struct table_record *record, uint64_t subs)
{
    for (uint64_t left = subs; left; left &= left - 1) {
        unsigned sub = (unsigned)__builtin_ctzll(left);
        if (!dict_put(overlay->aux, id, (uint8_t)sub, &record->aux[sub])) {
            drop_values(overlay, id, subs & ~left);
            return false;
        }
    }
    return true;
}

bool table_overlay_put(const struct counter_table *t, struct table_overlay *overlay, uint64_t id,
                       const struct table_record *record)
{
    struct table_record old = {0}; /* in an image's overlay there may be values of no record */
    table_record_read_aux(&old, overlay->aux, id, table_subs_all(&t->schema));
    uint64_t added = record->subs & ~old.subs;
    if (!put_values(overlay, id, record, added)) {
        return false;
    }
    if (!dict_put(overlay->extend, id, 0, record->payload)) {
        drop_values(overlay, id, added);
        return false;
    }
    bool stored = put_values(overlay, id, record, record->subs & old.subs);
    CHECK(stored); /* they have their places */
    drop_values(overlay, id, old.subs & ~record->subs);
    account(overlay, true);
    return true;
}

void table_overlay_forget(const struct counter_table *t, struct table_overlay *overlay, uint64_t id)
{
    dict_delete(overlay->extend, id, 0);
    if (dict_count(overlay->aux) > 0) {
        drop_values(overlay, id, table_subs_all(&t->schema));
    }
}

static bool is_half(const struct dict *dict)
{
    return 2 * dict_count(dict) > dict_places(dict);
}

bool table_overlay_is_half(const struct table_overlay *overlay)
{
    return is_half(overlay->extend) || is_half(overlay->aux);
}

bool table_overlay_open(const struct table_overlay *overlay, bool dumped)
{
    const struct engine_cold *cold = overlay->cold;
    return atomic_load_explicit(&cold->overlay_bytes, memory_order_relaxed) <
           engine_overlay_most(cold, dumped);
}

/* The fuller one becomes larger. */
static bool grow(struct table_overlay *overlay)
{
    double extend = (double)dict_count(overlay->extend) / (double)dict_places(overlay->extend);
    double aux = (double)dict_count(overlay->aux) / (double)dict_places(overlay->aux);
    return dict_grow(extend >= aux ? &overlay->extend : &overlay->aux);
}

bool table_overlay_put_grow(const struct counter_table *t, struct table_overlay *overlay,
                            uint64_t id, const struct table_record *record)
{
    while (!table_overlay_put(t, overlay, id, record)) {
        if (!grow(overlay)) {
            return false;
        }
    }
    return true;
}

/* ---- restoring ---- */

struct loading {
    const struct counter_table *table;
    bool bad;
};

static bool overlay_wants_record(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct loading *loading = context;
    (void)value;
    loading->bad = loading->bad || sub != 0 || id > ROW_ID_MAX;
    return !loading->bad;
}

/* A name learned since the image began: replay learns it again, and what it holds. */
static bool overlay_wants_value(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    const struct loading *loading = context;
    (void)id;
    (void)value;
    return sub < TABLE_SUBS && (table_subs_all(&loading->table->schema) >> sub & 1);
}

bool table_overlay_load(const struct counter_table *t, struct table_overlay *overlay,
                        const struct table_file *file, char error[ENGINE_ERROR_MAX])
{
    struct loading loading = {t, false};
    bool loaded = dict_image_load(file, COUNTER_TABLE_EXTEND, overlay->extend, overlay_wants_record,
                                  &loading, error) == TABLE_FILE_DONE &&
                  dict_image_load(file, COUNTER_TABLE_AUX, overlay->aux, overlay_wants_value,
                                  &loading, error) == TABLE_FILE_DONE;
    account(overlay, true);
    if (loaded && loading.bad) {
        snprintf(error, ENGINE_ERROR_MAX, "%s: an entry is of no id", table_file_path(file));
    }
    return loaded && !loading.bad;
}

/* ---- tapping ---- */

void table_tap(struct counter_table *t, uint64_t id, const uint64_t *payload)
{
    struct table_record record = {0};
    if (row_tap_is_given_up(&t->row)) {
        return;
    }
    if (payload) {
        table_record_read(t, id, payload, &record);
    }
    bool room = table_overlay_open(t->overlay, false) || dict_get(t->overlay->extend, id, 0, NULL);
    if (!room || !table_overlay_put(t, t->overlay, id, &record)) {
        row_tap_overran(&t->row);
    }
}
