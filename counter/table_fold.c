/*
 * table_fold.c: the newer overlay of a dumped table goes back into the older one, a step at a time
 * (row/row_fold.h).
 *
 * Records move whole, with the world stopped: put into the older one, then deleted from the newer
 * one. A list that is being made (counter_collect.c) looks through the newer one first, so it meets
 * each in at least one of them.
 */
#include "counter/table_private.h"
#include "row/row_fold.h"

/* ---- room for both ---- */

static bool table_fold_has_room(const struct table_overlay *into, const struct table_overlay *from)
{
    return row_fold_has_room(into->extend, from->extend) && row_fold_has_room(into->aux, from->aux);
}

/* ---- before anything moves ---- */

static struct table_overlay *table_fold_into(const struct counter_table *t)
{
    return t->fold.wider ? t->fold.wider : t->older;
}

static bool table_fold_populate(struct counter_table *t, struct dict *into,
                                const struct dict *older, const struct dict *newer)
{
    uint64_t entries = dict_count(older) + dict_count(newer);
    return dict_populate(into, entries, &t->fold.at, ROW_FOLD_BYTES);
}

static void table_fold_put_entry(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    bool put = dict_put(context, id, sub, value);
    CHECK(put); /* it is at most half full in the end */
}

/* Nobody sees the copy: it counts when it takes the older one's place. */
static bool table_fold_copy_dict(struct counter_table *t, struct dict *into,
                                 const struct dict *older)
{
    return t->fold.wider &&
           dict_walk(older, &t->fold.at, ROW_FOLD_COPIES, table_fold_put_entry, into);
}

/* True: there is more to do of this stage. */
static bool table_fold_piece(struct counter_table *t)
{
    const struct table_overlay *into = table_fold_into(t);
    switch (t->fold.stage) {
    case TABLE_FOLD_EXTEND_MEMORY:
        return table_fold_populate(t, into->extend, t->older->extend, t->overlay->extend);
    case TABLE_FOLD_AUX_MEMORY:
        return table_fold_populate(t, into->aux, t->older->aux, t->overlay->aux);
    case TABLE_FOLD_EXTEND:
        return table_fold_copy_dict(t, into->extend, t->older->extend);
    default:
        return table_fold_copy_dict(t, into->aux, t->older->aux);
    }
}

/* Inside the barrier. */
static enum row_fold table_fold_prepare(struct counter_table *t)
{
    struct table_fold *fold = &t->fold;
    if (fold->moves || fold->stage == TABLE_FOLD_READY) {
        return ROW_FOLD_MOVE;
    }
    if (!fold->wider && !table_fold_has_room(t->older, t->overlay)) {
        fold->wider = table_overlay_create_wide(t, t->older, t->overlay);
        fold->refused = !fold->wider;
        fold->stage = TABLE_FOLD_EXTEND_MEMORY;
        fold->at = 0;
    }
    if (!fold->refused && !table_fold_piece(t)) {
        fold->stage++;
        fold->at = 0;
    }
    return fold->refused || fold->stage == TABLE_FOLD_READY ? ROW_FOLD_MOVE : ROW_FOLD_COPY;
}

/* False: it is not ready, or more has come meanwhile than there is room for. At most all that the
 * newer one takes does, so there is soon a copy that is wide enough. */
static bool table_fold_begin(struct counter_table *t)
{
    struct table_fold *fold = &t->fold;
    bool begins =
        fold->stage == TABLE_FOLD_READY && table_fold_has_room(table_fold_into(t), t->overlay);
    struct table_overlay *spent = fold->wider;
    if (begins && fold->wider) {
        spent = t->older;
        t->older = fold->wider;
        table_overlay_account(t->older);
    }
    table_overlay_discard(t, spent);
    *fold = (struct table_fold){.moves = begins};
    return begins;
}

/* ---- moving ---- */

struct moving {
    struct counter_table *table;
    struct row_fold_moved moved;
};

static void table_fold_record(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct moving *moving = context;
    const struct counter_table *t = moving->table;
    struct table_record record;
    (void)sub;
    (void)value;
    if (moving->moved.refused) {
        return;
    }
    table_overlay_get(t, t->overlay, id, table_subs_all(&t->schema), &record);
    moving->moved.refused = !table_overlay_put_grow(t, t->older, id, &record);
    if (!moving->moved.refused) {
        table_overlay_forget(t, t->overlay, id);
        moving->moved.entries++;
    }
}

static bool table_fold_move(struct counter_table *t, unsigned most)
{
    struct moving moving = {.table = t};
    return row_fold_move(t->overlay->extend, &t->fold.at, most, table_fold_record, &moving,
                         &moving.moved);
}

static void table_fold_end(struct counter_table *t)
{
    table_overlay_discard(t, t->overlay);
    t->overlay = t->older;
    t->older = NULL;
    t->doubles = 0;
    t->fold = (struct table_fold){0};
}

enum row_fold counter_table_fold(struct counter_table *t, unsigned most)
{
    CHECK(t->older && t->overlay && !t->memory);
    if (most == 0) {
        return table_fold_prepare(t);
    }
    if (t->fold.refused) {
        t->fold.refused = false;
        return ROW_FOLD_REFUSED;
    }
    if (!t->fold.moves && !table_fold_begin(t)) {
        return ROW_FOLD_COPY;
    }
    if (!table_fold_move(t, most)) {
        return ROW_FOLD_REFUSED;
    }
    if (dict_count(t->overlay->extend) > 0) {
        return ROW_FOLD_MOVE;
    }
    table_fold_end(t);
    return ROW_FOLD_DONE;
}
