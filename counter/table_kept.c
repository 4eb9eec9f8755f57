/*
 * table_kept.c: what a dumped table keeps apart above its frontier stays in memory, in its overlay.
 *
 * It has to move when another table opens there, with the world stopped, when no file can be read.
 * So it is put in front of the file whenever the overlay would not have it: when the table leaves
 * memory, when its overlay goes with a merge, and at a start, from the file. It is little (ids that
 * were mistyped, or those of a gap), and counts in nobody's budget.
 */
#include <stdlib.h>
#include <string.h>

#include "counter/table_private.h"
#include "row/row_policy.h"
#include "store/table_file.h"

_Static_assert(TABLE_FILE_ERROR_MAX <= ENGINE_ERROR_MAX, "an error of a file has room");

#define KEPT_FIRST 64u /* ids a list of them begins with room for */

/* Has it a range above its frontier, where another table may open? */
static bool is_open(const struct counter_table *t)
{
    return !t->row.further && atomic_load(&t->row.frontier) < t->row.last;
}

static bool is_above(const struct counter_table *t, uint64_t id)
{
    return id > atomic_load(&t->row.frontier) && id <= t->row.last;
}

static bool is_told(const struct table_overlay *overlay, uint64_t id)
{
    return overlay && dict_get(overlay->extend, id, 0, NULL);
}

static void keep(struct counter_table *t, uint64_t id, const struct table_record *record)
{
    bool put = table_overlay_put_grow(t, t->overlay, id, record);
    CHECK(put); /* as wherever memory for little is refused */
    t->overlay->kept++;
}

/* ---- it leaves memory ---- */

static void keep_entry(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct counter_table *t = context;
    (void)sub;
    if (is_above(t, id) && !is_told(t->overlay, id)) {
        struct table_record record;
        table_record_read(t, id, value, &record);
        keep(t, id, &record);
    }
}

void table_keep_leaving(struct counter_table *t)
{
    if (is_open(t)) {
        dict_each(t->extend, keep_entry, t);
        table_overlay_kept(t->overlay);
    }
}

/* ---- its overlay has been merged ---- */

static bool read_set(const struct counter_table *t, const struct table_overlay *overlay,
                     uint64_t id, struct table_record *record)
{
    return table_overlay_get(t, overlay, id, table_subs_all(&t->schema), record) &&
           table_record_is_set(record);
}

static void keep_older(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct counter_table *t = context;
    struct table_record record;
    (void)sub;
    (void)value;
    if (is_above(t, id) && !is_told(t->overlay, id) && read_set(t, t->older, id, &record)) {
        keep(t, id, &record);
    }
}

void table_keep_merged(struct counter_table *t)
{
    if (is_open(t)) {
        dict_each(t->older->extend, keep_older, t);
        table_overlay_kept(t->overlay);
    }
}

/* ---- at a start ---- */

struct keeping {
    struct counter_table *t;
    uint64_t *ids; /* rising, as entries are in a file */
    size_t count, room;
};

static void note(struct keeping *keeping, uint64_t id)
{
    if (keeping->count == keeping->room) {
        size_t room = keeping->room ? 2 * keeping->room : KEPT_FIRST;
        uint64_t *ids = memory_zalloc(room * sizeof(*ids));
        if (keeping->count > 0) {
            memcpy(ids, keeping->ids, keeping->count * sizeof(*ids));
        }
        free(keeping->ids);
        keeping->ids = ids;
        keeping->room = room;
    }
    keeping->ids[keeping->count++] = id;
}

static bool keep_stored(void *context, uint64_t id, uint8_t sub, const void *value)
{
    struct keeping *keeping = context;
    struct counter_table *t = keeping->t;
    (void)sub;
    if (is_above(t, id) && !is_told(t->overlay, id)) {
        struct table_record record = {0};
        memcpy(record.payload, value, t->shape.payload_bytes);
        keep(t, id, &record);
        note(keeping, id);
    }
    return true;
}

static bool keep_value(void *context, uint64_t id, uint8_t sub, const void *value)
{
    struct keeping *keeping = context;
    struct dict **aux = &keeping->t->overlay->aux;
    uint64_t word;
    memcpy(&word, value, sizeof(word));
    if (!row_policy_holds(keeping->ids, keeping->count, id)) {
        return true;
    }
    while (!dict_put(*aux, id, sub, &word)) {
        bool grown = dict_grow(aux);
        CHECK(grown); /* as above */
    }
    return true;
}

static bool read_stored(struct keeping *keeping, char *error)
{
    const struct table_file *file = keeping->t->file->file;
    return table_file_each_entry(file, COUNTER_TABLE_EXTEND, keep_stored, keeping, error) ==
               TABLE_FILE_DONE &&
           (keeping->count == 0 || table_file_each_entry(file, COUNTER_TABLE_AUX, keep_value,
                                                         keeping, error) == TABLE_FILE_DONE);
}

static void count_kept(void *context, uint64_t id)
{
    (void)id;
    ((struct table_overlay *)context)->kept++;
}

/*
 * What cannot be read would be lost without a word once another table opens behind this one, be it
 * in replay or later: the start is refused, as for any other table that it has to load.
 */
bool counter_table_keep_stored(struct counter_table *t, char error[ENGINE_ERROR_MAX])
{
    struct keeping keeping = {.t = t};
    CHECK(!t->memory && !t->older);
    if (!is_open(t)) {
        return true;
    }
    bool read = read_stored(&keeping, error);
    free(keeping.ids);
    t->overlay->kept = 0; /* those of the overlay's image are some, too */
    table_each_kept(t, t->row.last, count_kept, t->overlay);
    table_overlay_kept(t->overlay);
    return read;
}

/* ---- what is kept ---- */

struct visiting {
    const struct counter_table *t;
    uint64_t last;
    const struct table_overlay *overlay, *front; /* front: NULL, or what stands before it */
    void (*visit)(void *context, uint64_t id);
    void *context;
};

static void visit_kept(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    const struct visiting *visiting = context;
    struct table_record record;
    (void)sub;
    (void)value;
    bool above = id > atomic_load(&visiting->t->row.frontier) && id <= visiting->last;
    if (above && !is_told(visiting->front, id) &&
        read_set(visiting->t, visiting->overlay, id, &record)) {
        visiting->visit(visiting->context, id);
    }
}

void table_each_kept(const struct counter_table *t, uint64_t last,
                     void (*visit)(void *context, uint64_t id), void *context)
{
    struct visiting visiting = {t, last, t->overlay, NULL, visit, context};
    dict_each(t->overlay->extend, visit_kept, &visiting);
    if (t->older) {
        visiting.overlay = t->older;
        visiting.front = t->overlay;
        dict_each(t->older->extend, visit_kept, &visiting);
    }
}
