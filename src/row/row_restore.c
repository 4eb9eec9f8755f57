/* row_restore.c: a row of tables that were stored, and what it decides by, found again. */
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "row/row_parts.h"
#include "row/row_policy.h"
#include "row/row_room.h"
#include "row/row_state.h"

/* ---- tables ---- */

void row_restore_clear(struct row *row)
{
    row_replay_forget(row);
    row_apart_end(row);
    row->serials = 0;
    row->recycled_tables = 0;
    row->recycled_ids = 0;
    row->stored = (struct row_bounds){0};
}

/* Returns whether nothing else lies in its range. */
static bool range_is_free(const struct row *row, const struct row_state *state)
{
    size_t at = row_rank(row, state->base, row->count);
    return (at == 0 || row->tables[at - 1]->last < state->base) &&
           (at == row->count || state->last < row->bases[at]);
}

static bool may_stand(const struct row *row, const struct row_state *state,
                      char error[ROW_ERROR_MAX])
{
    unsigned long long serial = state->serial;
    if (row_state_has(state, ROW_STATE_LAYER)) {
        return row_fail(error, "table %llu is described as a layer", serial);
    }
    if (row->count == ROW_ROUTES_MAX) {
        return row_fail(error, "more than %d tables", ROW_ROUTES_MAX);
    }
    if (!range_is_free(row, state)) {
        return row_fail(error, "table %llu of ids from %llu lies where another one does", serial,
                        (unsigned long long)state->base);
    }
    return true;
}

static struct row_table *restore_table(struct row *row, const struct row_described *described,
                                       char error[ROW_ERROR_MAX])
{
    const struct row_state *state = &described->state;
    struct row_table *table =
        may_stand(row, state, error) ? row_state_make(row, described, NULL, error) : NULL;
    if (table != NULL) {
        table->layer_due = row_state_has(state, ROW_STATE_LAYERED);
        row_stand(row, table);
        row->serials = table->serial >= row->serials ? table->serial + 1 : row->serials;
    }
    return table;
}

static struct row_table *restore_layer(struct row *row, const struct row_described *described,
                                       unsigned number, char error[ROW_ERROR_MAX])
{
    struct row_table *table = row_find(row, described->state.base);
    struct row_table *before = table != NULL ? row_last_layer(table) : NULL;
    if (number > ROW_LAYERS_MAX || (before != NULL && before->layer >= number)) {
        row_fail(error, "layer %u of table %llu is one too many", number,
                 (unsigned long long)described->state.serial);
        return NULL;
    }
    struct row_table *layer = row_state_make_layer(row, described, error);
    if (layer == NULL) {
        return NULL;
    }
    layer->layer = number; /* one before it may be lost */
    layer->layer_due = row_state_has(&described->state, ROW_STATE_LAYERED);
    before->layer_due = false;
    for (; table != layer; table = table->further) {
        table->touched = false; /* their images are of them all */
    }
    return layer;
}

static struct row_table *restore_apart(struct row *row, const struct row_described *described,
                                       char error[ROW_ERROR_MAX])
{
    if (row->apart != NULL || described->cold) {
        row_fail(error, "table %llu of ids apart is one too many",
                 (unsigned long long)described->state.serial);
        return NULL;
    }
    row->apart = row_state_make_apart(row, described, error);
    return row->apart;
}

struct row_table *row_restore_as(struct row *row, const void *table_bytes, size_t length,
                                 const struct row_restoring *restoring, char error[ROW_ERROR_MAX])
{
    struct row_described described;
    if (!row_state_parse(row, table_bytes, length, &described, error)) {
        return NULL;
    }
    described.cold = restoring->cold;
    struct row_table *table =
        row_state_has(&described.state, ROW_STATE_APART) ? restore_apart(row, &described, error)
        : restoring->layer > 0 ? restore_layer(row, &described, restoring->layer, error)
                               : restore_table(row, &described, error);
    if (table != NULL) {
        table->touched = false;
        table->start_lsn = restoring->start_lsn;
    }
    return table;
}

struct row_table *row_restore_table(struct row *row, const void *table_bytes, size_t length,
                                    unsigned layer, uint64_t start_lsn, char error[ROW_ERROR_MAX])
{
    struct row_restoring restoring = {.layer = layer, .start_lsn = start_lsn};
    return row_restore_as(row, table_bytes, length, &restoring, error);
}

static int compare_serials(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Returns whether all serials differ. It looks at all at once: there may be tens of thousands. */
static bool serials_differ(const struct row *row, char error[ROW_ERROR_MAX])
{
    uint64_t *serials = memory_zalloc((row->count + 1) * sizeof(*serials));
    uint64_t twice = 0;
    bool differ = true;
    for (size_t i = 0; i < row->count; i++) {
        serials[i] = row->tables[i]->serial;
    }
    qsort(serials, row->count, sizeof(*serials), compare_serials);
    for (size_t i = 1; i < row->count; i++) {
        if (serials[i] == serials[i - 1]) {
            twice = serials[i];
            differ = false;
        }
    }
    free(serials);
    return differ || row_fail(error, "table %llu is there twice", (unsigned long long)twice);
}

/* Changes from before the youngest image may be of ids that an event has forgotten since. */
static bool begin_apart(struct row *row)
{
    uint64_t start_lsn = 0;
    for (size_t i = 0; i < row->count; i++) {
        start_lsn = row_larger(start_lsn, row->tables[i]->start_lsn);
    }
    if (!row_apart_begin(row)) {
        return false;
    }
    row->apart->start_lsn = start_lsn;
    return true;
}

bool row_restore_complete(struct row *row, char error[ROW_ERROR_MAX])
{
    if (row->config.any_ids && row->count > 0 && row->bases[0] != 0) {
        return row_fail(error, "no part of `ids: any` below %llu",
                        (unsigned long long)row->bases[0]);
    }
    for (size_t i = 0; i < row->count; i++) {
        const struct row_table *table = row->tables[i];
        uint64_t meets = i + 1 == row->count ? ROW_ID_MAX : row->bases[i + 1] - 1;
        if (table->last != meets) {
            return row_fail(error, "no table of ids from %llu to %llu",
                            (unsigned long long)table->last + 1, (unsigned long long)meets);
        }
        while (table->further != NULL && !table->layer_due) {
            table = table->further;
        }
        if (table->layer_due) {
            return row_fail(error, "table %llu lacks its layer", (unsigned long long)table->serial);
        }
    }
    if (!serials_differ(row, error)) {
        return false;
    }
    if (row->count > 0 && !row->config.any_ids && row->apart == NULL) { /* a repair gave it up */
        log_warning("the table of ids apart is not there, and begins empty space=%s",
                    row_space_name(row));
        return begin_apart(row) || row_fail(error, "memory for ids apart was refused");
    }
    return true;
}

/* ---- what it decides by ---- */

/* Tells the table of an id apart what it must know, and notes whether the id belongs in place by
 * now. */
static void gather(void *context, uint64_t id)
{
    struct row *row = context;
    struct row_table *table = row_find(row, id);
    atomic_fetch_add(&row->apart->count, 1);
    if (table == NULL || table->cold) {
        return;
    }
    if (!table->settled && row->sample_count < ROW_SAMPLE_MAX) {
        row->sample[row->sample_count++] = id;
    } else if (table->settled && id <= row_limit(table)) {
        atomic_fetch_or(&table->wants, ROW_WANT_PLACE);
    } else if (table->settled) {
        row_ahead_restore(row, table, id);
    }
}

/*
 * Where none was apart any more when its table was dropped, the image of those apart may be of
 * before: it has the id, and what took it away is told of a table that is not there.
 */
static void forget_apart(struct row *row)
{
    if (row->bases[0] > 0) {
        (void)row_apart_forget(row, 0, row->bases[0] - 1);
    }
    for (size_t i = 0; i < row->count; i++) {
        const struct row_dropped *dropped = &row->tables[i]->dropped;
        for (uint64_t k = 0; k < dropped->count; k++) {
            (void)row_apart_forget(row, dropped->at[k].first, dropped->at[k].last);
        }
    }
}

/* An image's count is of another time than what it holds. */
static void gather_apart(struct row *row)
{
    forget_apart(row);
    atomic_store(&row->apart->count, 0);
    row_apart_each(row, gather, row);
    row_apart_see(row);
    for (size_t i = 0; i < row->count; i++) {
        atomic_store(&row->tables[i]->place_at, row->tables[i]->apart_first);
    }
}

/* What a table asked for when the row was stored it asks for again. */
static void find_again(struct row *row, struct row_table *table)
{
    uint32_t wants = atomic_load(&table->wants) & (ROW_WANT_RENEW | ROW_WANT_PLACE);
    bool open = !table->closed && table->further == NULL && !table->cold;
    if (!table->settled) {
        wants |= row->sample_count >= row->config.sample ? ROW_WANT_SETTLE : 0;
    } else if (open) {
        wants |= row_count_of(table) >= table->fill ? ROW_WANT_OPEN : 0;
        wants |= row_ahead_wants(row, table);
    }
    atomic_store(&table->wants, wants);
}

/* What the last table that was opened left free for late ids goes on. */
static void find_late_room(struct row *row)
{
    const struct row_table *newest = row->tables[0];
    for (size_t i = 1; i < row->count; i++) {
        newest = row->tables[i]->serial > newest->serial ? row->tables[i] : newest;
    }
    if (row->config.late_room >= 0.0 || row->config.any_ids) {
        return;
    }
    double room = 1.0 - (double)newest->fill / (double)newest->capacity;
    room = room > ROW_LATE_ROOM_MIN ? room : ROW_LATE_ROOM_MIN;
    row->late_room = room < ROW_LATE_ROOM_MAX ? room : ROW_LATE_ROOM_MAX;
}

static bool restore_first(struct row *row)
{
    struct row_region *region = row_region_take(row);
    CHECK(region != NULL && row_first_table(row, region) != NULL && row_apart_begin(row));
    row_parts_charge(row);
    return false;
}

/* Replay opens tables beyond what may be in memory; and one region is spare. */
static void leave_more(struct row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        if (row->tables[i]->cold) {
            row_layers_leave(row->tables[i]);
        }
    }
    row_keep_spare(row, NULL, ROW_NEED_NEXT);
    row_cold_see(row);
}

bool row_restore_decide(struct row *row)
{
    row->untidy = true;
    row_ask(row);
    if (row->count == 0) {
        return restore_first(row);
    }
    if (!row->config.any_ids) {
        gather_apart(row);
    }
    for (size_t i = 0; i < row->count && !row->config.any_ids; i++) {
        find_again(row, row->tables[i]);
    }
    find_late_room(row);
    row_see_activity(row);
    row_parts_charge(row);
    if (row_dumps(row) && !row->config.any_ids) {
        leave_more(row);
    }
    return true;
}
