/*
 * table_place.c: ids apart, which lie in a table that is a dict alone: they go in place, or to
 * another table for ids apart, or are forgotten; all with the world stopped. And what spilled of a
 * table goes back to its groups.
 */
#include <stdlib.h>

#include "counter/table_private.h"
#include "row/row_policy.h"

/* Ids of the extend dict, to be moved when all of them have been seen. */
struct entries {
    uint64_t first, last;
    size_t count, room;
    uint64_t *ids;
};

static void note_entry(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct entries *entries = context;
    (void)sub;
    (void)value;
    if (id < entries->first || id > entries->last) {
        return;
    }
    CHECK(entries->count < entries->room);
    entries->ids[entries->count++] = id;
}

/* Collects the entries from first to last, in rising order. */
static void entries_init(struct entries *entries, const struct counter_table *t, uint64_t first,
                         uint64_t last)
{
    *entries = (struct entries){.first = first, .last = last, .room = dict_count(t->extend)};
    entries->ids = memory_zalloc((entries->room + 1) * sizeof(*entries->ids));
    dict_each(t->extend, note_entry, entries);
    row_policy_sort(entries->ids, entries->count);
}

static void entries_fini(struct entries *entries)
{
    free(entries->ids);
}

void counter_table_settle(struct counter_table *t)
{
    CHECK(t->magic == TABLE_MAGIC && t->origin == TABLE_NO_WINDOW);
    table_set_window(t, t->row.low);
}

/* ---- what spilled ---- */

static void take_back(struct counter_table *t, const struct counter_locus *locus,
                      struct table_hold *hold)
{
    uint64_t payload[SCHEMA_PAYLOAD_WORDS] = {0};
    bool there = dict_get(t->extend, locus->id, 0, payload);
    CHECK(there);
    dict_delete(t->extend, locus->id, 0);
    bool stored = table_insert_counted(t, locus, hold, payload);
    CHECK(stored); /* the dict has at least the place it had */
}

void table_take_back_spilled(struct counter_table *t)
{
    struct entries entries;
    entries_init(&entries, t, 0, ROW_ID_MAX);
    for (size_t i = 0; i < entries.count; i++) {
        struct counter_locus locus;
        struct table_hold hold;
        counter_table_locate(t, entries.ids[i], true, &locus);
        if (locus.group != TABLE_OUTSIDE) {
            table_hold_home(t, &locus, &hold);
            take_back(t, &locus, &hold);
            table_release(&hold);
        }
    }
    entries_fini(&entries);
}

/* ---- ids apart ---- */

bool table_is_apart(const struct counter_table *t, uint64_t id)
{
    const struct counter_table *apart = counter_table_of(t->in_row->apart);
    return dict_get(apart->extend, id, 0, NULL);
}

void counter_table_drop_apart(struct counter_table *apart, uint64_t id)
{
    uint64_t payload[SCHEMA_PAYLOAD_WORDS] = {0};
    if (dict_get(apart->extend, id, 0, payload)) {
        row_changed(&apart->row);
        table_free_aux(apart, id, payload);
        dict_delete(apart->extend, id, 0);
        row_removed(&apart->row, &apart->row, id);
    }
}

enum engine_status table_decide_copy(const struct counter_edit *edit, bool present,
                                     const struct counter_values *before,
                                     struct counter_values *after)
{
    CHECK(!present);
    (void)before;
    *after = *(const struct counter_values *)edit->context;
    after->set &= edit->named;
    return ENGINE_DONE;
}

/* Into the table or its layer. */
static enum engine_status copy_to(struct counter_table *to, uint64_t id,
                                  struct counter_values *values, uint32_t space,
                                  struct change_sink *sink)
{
    enum engine_error error;
    enum engine_status status;
    struct counter_locus locus;
    struct counter_edit edit = {
        .named = counter_view_all(&to->view), .decide = table_decide_copy, .context = values};
    struct table_change change = {
        .table = to, .locus = &locus, .edit = &edit, .space = space, .sink = sink};
    counter_table_locate(to, id, true, &locus);
    do {
        status = table_edit(&change, TABLE_ASK_PLACE, &error);
    } while (UNLIKELY(status == ENGINE_ERROR) && to->row.is_apart && table_dicts_grow(to));
    while (edit.elsewhere) {
        change.table = counter_table_of(change.table->row.further);
        counter_table_locate(change.table, id, true, &locus);
        status = table_edit(&change, TABLE_ASK_PLACE, &error);
    }
    return status;
}

/* A record of hidden slots alone is lost where it should go in place; the journal hears of it, or
 * replay would have it apart still. */
static bool drop_hidden(struct counter_table *apart, struct row *row, uint64_t id, uint32_t space,
                        struct change_sink *sink)
{
    if (!row_place_drop(row) || !sink->functions->reserve(sink)) {
        return false;
    }
    struct change change;
    change.type = CHANGE_DELETE;
    change.space = space;
    change.place = table_delete_place(apart);
    change.layer = 0;
    change.id = id;
    change.named = counter_view_all(&apart->view);
    change.set = 0;
    sink->functions->put(sink, &change);
    return true;
}

bool counter_table_place(struct counter_table *apart, struct counter_table *to, uint32_t space,
                         struct change_sink *sink)
{
    CHECK(apart->row.is_apart && apart->magic == TABLE_MAGIC && to->extend);
    struct entries entries;
    entries_init(&entries, apart, to->row.base, to->row.last);
    bool done = true;
    for (size_t i = 0; done && i < entries.count; i++) {
        struct counter_values values;
        struct counter_locus locus;
        counter_table_locate(apart, entries.ids[i], false, &locus);
        if (counter_table_read(apart, &locus, counter_view_all(&apart->view), &values) ==
            COUNTER_FOUND) {
            done = copy_to(to, entries.ids[i], &values, space, sink) == ENGINE_DONE;
        } else if (!to->row.is_apart) {
            done = drop_hidden(apart, to->in_row, entries.ids[i], space, sink);
        }
        if (done && !to->row.is_apart) {
            counter_table_drop_apart(apart, entries.ids[i]);
        }
    }
    entries_fini(&entries);
    return done;
}

uint64_t counter_table_forget(struct counter_table *apart, uint64_t first, uint64_t last)
{
    struct entries entries;
    entries_init(&entries, apart, first, last);
    for (size_t i = 0; i < entries.count; i++) {
        uint64_t payload[SCHEMA_PAYLOAD_WORDS] = {0};
        CHECK(dict_get(apart->extend, entries.ids[i], 0, payload));
        table_free_aux(apart, entries.ids[i], payload);
        dict_delete(apart->extend, entries.ids[i], 0);
    }
    uint64_t forgotten = entries.count;
    entries_fini(&entries);
    return forgotten;
}
