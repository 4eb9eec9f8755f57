/*
 * row_follow.c: a row whose replay goes on while others read it: all that is decided was decided by
 * the node it follows, but for whose memory goes to the disk when.
 */
#include "row/row_follow.h"

#include "row/row_parts.h"
#include "row/row_state.h"

static void follow_restored(void *context, struct row_table *table, bool layer)
{
    struct row *row = context;
    (void)layer;
    if (row->kind->restored != NULL) {
        row->kind->restored(row->engine, table);
    }
}

/* A table that is whole may be dumped at any time, and at once is the right one: its room will be
 * wanted. */
static void follow_leave(struct row *row, struct row_table *table)
{
    if (!row_dumps(row) || !table->whole || !table->settled) {
        return;
    }
    if (!table->cold) {
        row_cold_leave(row, table);
    } else {
        row_layers_leave(table);
    }
}

static void follow_count_apart(void *context, uint64_t id)
{
    struct row *row = context;
    (void)id;
    atomic_fetch_add(&row->apart->count, 1);
}

void row_follow_begin(struct row *row)
{
    CHECK(row->log == NULL && !row->follows);
    row->follows = true;
    row->untidy = true;
    row_each(row, follow_restored, row);
    if (row->apart != NULL) { /* an image's count is of another time than what it holds */
        atomic_store(&row->apart->count, 0);
        row_apart_each(row, follow_count_apart, row);
        row_apart_see(row);
    }
    for (size_t i = 0; i < row->count; i++) {
        follow_leave(row, row->tables[i]);
    }
    row_parts_charge(row);
    row_follow_see(row);
}

static void follow_see_overlay(void *context, struct row_table *table, bool layer)
{
    (void)layer;
    if (table->cold) {
        row_cold_changed(context, table);
    }
}

void row_follow_see(struct row *row)
{
    if (row->cold != NULL) {
        row_each(row, follow_see_overlay, row);
    }
    row_cold_see(row);
    row_ask(row);
}

/* Returns whether memory is on its way: of a table that leaves, or must be cleared. */
static bool memory_comes(struct row *row, bool dumps)
{
    bool comes = dumps && row->dump_failed; /* it is tried again */
    row_lock(row);
    comes = comes || row->retired != NULL;
    for (size_t i = 0; i < row->region_count && !comes; i++) {
        comes = row->regions[i]->left;
    }
    row_unlock(row);
    for (size_t i = 0; i < row->count && dumps && !comes; i++) {
        comes = row_any_leaving(row->tables[i]);
    }
    return comes;
}

/* Is the part that has grown in memory? Else the keeper reads it back. */
static bool part_is_near(struct row *row, const void *bytes, size_t length)
{
    struct row_described described;
    char error[ROW_ERROR_MAX];
    bool part = row->parted && row_state_parse(row, bytes, length, &described, error);
    struct row_table *from = part ? row_find(row, described.state.base) : NULL;
    if (from == NULL || !from->cold) {
        return true; /* what is wrong the replay tells */
    }
    if (!from->refused || row_is_due(&row->again_us)) { /* a file that is not read is tried again */
        row_want(row, from, ROW_WANT_GROW_NOW);
        row_allow(from);
    }
    return false;
}

bool row_follow_ready(struct row *row, enum change_event event, const void *bytes, size_t length,
                      bool dumps)
{
    if (event == CHANGE_EVENT_PART) {
        return part_is_near(row, bytes, length);
    }
    bool opens = event == CHANGE_EVENT_OPEN || event == CHANGE_EVENT_LAYER;
    if (!opens || row->config.any_ids || row_regions_free(row) > 0 || !memory_comes(row, dumps)) {
        return true;
    }
    row_follow_see(row);
    return false;
}

bool row_follow_dumped(const struct row *row)
{
    bool dumped = false;
    for (size_t i = 0; i < row->count && !dumped; i++) {
        dumped = row->tables[i]->cold;
    }
    return dumped;
}

bool row_follow_reads(struct row *row, const struct engine_replay *replay,
                      const struct ticket *ticket)
{
    return row->kind->replay_reads != NULL && row->kind->replay_reads(row->engine, replay, ticket);
}

enum row_replayed row_follow_replay(struct row *row, const struct engine_replay *replay,
                                    const struct ticket *ticket, char error[ENGINE_ERROR_MAX])
{
    CHECK(row->follows);
    row->replay_ticket = ticket;
    row->replayed = ROW_REPLAY_FAILED;
    bool replayed = row_replay(row, replay, 1, error);
    row->replay_ticket = NULL;
    return replayed ? ROW_REPLAYED : row->replayed;
}

void row_follow_carried(struct row *row, enum change_event event)
{
    if (event == CHANGE_EVENT_WHOLE || event == CHANGE_EVENT_LAYER) {
        for (size_t i = 0; i < row->count; i++) {
            follow_leave(row, row->tables[i]);
        }
    }
    row_parts_charge(row);
    row_cold_see(row);
    row_ask(row); /* what was retired is disposed of outside the stop */
}

void row_follow_maintain(struct row *row)
{
    if (row_is_due(&row->again_us)) {
        row_cold_try(row);
    }
    row_cold_see(row);
}
