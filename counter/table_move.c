/*
 * table_move.c: records that change their place with the world stopped: an unsettled table's when
 * it settles, and those of another one kept apart that belong to a new table.
 */
#include <stdlib.h>

#include "counter/table_private.h"
#include "row/row_policy.h"

/* Ids of the extend dict, to be moved when all of them have been seen. */
struct entries {
    uint64_t least;
    size_t count, room;
    uint64_t *ids;
};

static void note_entry(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct entries *entries = context;
    (void)sub;
    (void)value;
    if (id < entries->least) {
        return;
    }
    CHECK(entries->count < entries->room);
    entries->ids[entries->count++] = id;
}

static void note_id(void *context, uint64_t id)
{
    note_entry(context, id, 0, NULL);
}

static size_t entries_most(const struct counter_table *t)
{
    return t->memory
               ? dict_count(t->extend)
               : dict_count(t->overlay->extend) + (t->older ? dict_count(t->older->extend) : 0);
}

/* Those from `least` to `last`, in rising order. */
static void entries_init(struct entries *entries, const struct counter_table *t, uint64_t least,
                         uint64_t last)
{
    entries->least = least;
    entries->count = 0;
    entries->room = entries_most(t);
    entries->ids = memory_zalloc((entries->room + 1) * sizeof(*entries->ids));
    if (t->memory) {
        dict_each(t->extend, note_entry, entries);
    } else {
        table_each_kept(t, last, note_id, entries);
    }
    row_policy_sort(entries->ids, entries->count);
}

static void entries_fini(struct entries *entries)
{
    free(entries->ids);
}

/* An entry that is not ahead: into the groups, or back to the dict as a spilled one. */
static void settle_inside(struct counter_table *t, const struct counter_locus *locus,
                          struct table_hold *hold)
{
    uint64_t payload[SCHEMA_PAYLOAD_WORDS] = {0};
    bool there = dict_get(t->extend, locus->id, 0, payload);
    CHECK(there);
    dict_delete(t->extend, locus->id, 0);
    bool stored = table_insert_counted(t, locus, hold, payload);
    CHECK(stored); /* the dict has at least the place it had */
}

void counter_table_settle(struct counter_table *t)
{
    CHECK(t->magic == TABLE_MAGIC && t->origin == TABLE_NO_WINDOW);
    table_set_window(t, t->row.low);
    uint64_t frontier = atomic_load(&t->row.frontier);
    struct entries entries;
    entries_init(&entries, t, 0, ROW_ID_MAX);
    for (size_t i = 0; i < entries.count; i++) {
        struct counter_locus locus;
        struct table_hold hold;
        counter_table_locate(t, entries.ids[i], true, &locus);
        if (locus.group == TABLE_OUTSIDE) {
            continue;
        }
        table_hold_home(t, &locus, &hold);
        if (locus.id <= frontier) {
            settle_inside(t, &locus, &hold);
        } else {
            hold.held[0].word |= GROUP_SPILLED;
        }
        table_release(&hold);
    }
    entries_fini(&entries);
}

bool counter_table_tuck(struct counter_table *t)
{
    bool settled = t->origin != TABLE_NO_WINDOW;
    if (settled) {
        table_tuck_in(t);
    }
    return settled;
}

/* Above the frontier they are kept apart. */
void table_tuck_in(struct counter_table *t)
{
    uint64_t frontier = atomic_load(&t->row.frontier);
    struct entries entries;
    entries_init(&entries, t, 0, ROW_ID_MAX);
    for (size_t i = 0; i < entries.count && entries.ids[i] <= frontier; i++) {
        struct counter_locus locus;
        struct table_hold hold;
        counter_table_locate(t, entries.ids[i], true, &locus);
        if (locus.group != TABLE_OUTSIDE) {
            table_hold_home(t, &locus, &hold);
            settle_inside(t, &locus, &hold);
            table_release(&hold);
        }
    }
    entries_fini(&entries);
}

static enum engine_status decide_copy(const struct counter_edit *edit, bool present,
                                      const struct counter_values *before,
                                      struct counter_values *after)
{
    CHECK(!present);
    (void)before;
    *after = *(const struct counter_values *)edit->context;
    return ENGINE_DONE;
}

/* As the configuration's slots show it. False: of hidden slots alone. */
static bool read_values(const struct counter_table *t, uint64_t id, uint32_t slots,
                        struct counter_values *values)
{
    struct counter_locus locus;
    struct table_record record;
    if (t->memory) {
        counter_table_locate(t, id, false, &locus);
        return counter_table_read(t, &locus, slots, values) == COUNTER_FOUND;
    }
    bool there = table_overlaid(t, id, table_subs_all(&t->schema), &record);
    CHECK(there);
    table_record_decode(&t->view, &record, slots, values);
    return values->set != 0;
}

/* Puts a record into another table, whose dicts grow if they must. False: memory is refused. */
static bool copy_record(const struct counter_table *from, uint64_t id, struct counter_table *to)
{
    struct counter_values values = {0};
    struct counter_locus locus;
    enum engine_error error;
    uint32_t all = counter_view_all(&to->view);
    if (!read_values(from, id, all, &values)) {
        return true;
    }
    struct counter_edit edit = {.named = all, .decide = decide_copy, .context = &values};
    counter_table_locate(to, id, true, &locus);
    enum engine_status status;
    do {
        status = table_edit(to, &locus, &edit, 0, change_sink_null(), TABLE_ASK_PLACE, &error);
    } while (UNLIKELY(status == ENGINE_ERROR) && table_dicts_grow(to));
    return status == ENGINE_DONE;
}

/* A dumped table's file has it still: the overlay says that it is gone. */
static void hide_record(struct counter_table *t, uint64_t id)
{
    static const struct table_record nothing;
    bool put = table_overlay_put_grow(t, t->overlay, id, &nothing);
    CHECK(put); /* as wherever memory for little is refused */
}

static void drop_record(struct counter_table *t, uint64_t id)
{
    uint64_t payload[SCHEMA_PAYLOAD_WORDS] = {0};
    bool there = dict_get(t->extend, id, 0, payload);
    CHECK(there);
    table_free_aux(t, id, payload);
    dict_delete(t->extend, id, 0);
}

bool counter_table_move(struct counter_table *from, struct counter_table *to)
{
    CHECK(from->magic == TABLE_MAGIC && to->magic == TABLE_MAGIC && !from->row.further);
    CHECK(to->memory);
    struct entries entries;
    entries_init(&entries, from, to->row.base, to->row.last);
    bool fits = true;
    for (size_t i = 0; fits && i < entries.count; i++) {
        fits = copy_record(from, entries.ids[i], to);
    }
    if (!to->row.placing) { /* replay takes what comes, until all is there */
        table_dicts_bound(to);
    }
    for (size_t i = 0; fits && i < entries.count; i++) {
        if (from->memory) {
            drop_record(from, entries.ids[i]);
        } else {
            hide_record(from, entries.ids[i]);
        }
    }
    /* The row takes away what has been counted in `to`; of the rest nothing shows. */
    for (uint64_t i = atomic_load(&to->row.count); fits && i < entries.count; i++) {
        row_removed(&from->row, &from->row, entries.ids[i]);
    }
    entries_fini(&entries);
    return fits;
}
