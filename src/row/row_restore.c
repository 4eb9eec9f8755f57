/* row_restore.c: a row of tables that were stored, and what it decides by, found again. */
#include <stdlib.h>

#include "base/memory.h"
#include "row/row_policy.h"
#include "row/row_private.h"
#include "row/row_state.h"

/* ---- tables ---- */

void row_restore_begin(struct row *row)
{
    row_replay_forget(row);
    row->serials = 0;
    row->recycled_tables = 0;
    row->recycled_ids = 0;
    row->stored = (struct row_bounds){0};
}

/* Does nothing else lie in its range? */
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
                                       char error[ROW_ERROR_MAX])
{
    struct row_table *layer = row_state_make_layer(row, described, error);
    if (layer != NULL) {
        struct row_table *table = row_find(row, layer->base);
        table->layer_due = false;
        table->touched = false; /* their images are of the same two */
    }
    return layer;
}

struct row_table *row_restore_as(struct row *row, const void *table_bytes, size_t length,
                                 const struct row_restoring *restoring, char error[ROW_ERROR_MAX])
{
    struct row_described described;
    if (!row_state_parse(row, table_bytes, length, &described, error)) {
        return NULL;
    }
    described.cold = restoring->cold;
    struct row_table *table = restoring->layer ? restore_layer(row, &described, error)
                                               : restore_table(row, &described, error);
    if (table != NULL) {
        table->touched = false;
        table->start_lsn = restoring->start_lsn;
    }
    return table;
}

struct row_table *row_restore_table(struct row *row, const void *table_bytes, size_t length,
                                    bool layer, uint64_t start_lsn, char error[ROW_ERROR_MAX])
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

/* Of all at once: there may be tens of thousands. */
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

bool row_restore_complete(const struct row *row, char error[ROW_ERROR_MAX])
{
    for (size_t i = 0; i < row->count; i++) {
        const struct row_table *table = row->tables[i];
        uint64_t meets = i + 1 == row->count ? ROW_ID_MAX : row->bases[i + 1] - 1;
        if (table->last != meets) {
            return row_fail(error, "no table of ids from %llu to %llu",
                            (unsigned long long)table->last + 1, (unsigned long long)meets);
        }
        if (table->layer_due) {
            return row_fail(error, "table %llu lacks its layer", (unsigned long long)table->serial);
        }
    }
    return serials_differ(row, error);
}

/* ---- what it decides by ---- */

struct gathering {
    struct row *row;
    const struct row_table *table;
    uint64_t frontier, limit;
    uint64_t apart;
};

static void gather(void *context, uint64_t id)
{
    struct gathering *gathering = context;
    struct row *row = gathering->row;
    if (!gathering->table->settled) {
        gathering->apart++;
        if (row->sample_count < ROW_SAMPLE_MAX) {
            row->sample[row->sample_count++] = id;
        }
        return;
    }
    gathering->apart += id > gathering->frontier;
    if (id > gathering->limit) {
        row_ahead_restore(row, gathering->table, id);
    }
}

/* Open or unsettled: what lies apart is gathered, and what it wants follows. */
static uint32_t gather_apart(struct row *row, struct row_table *table)
{
    struct gathering gathering = {.row = row, .table = table};
    if (table->settled) {
        gathering.frontier = row_frontier_of(table);
        gathering.limit = row_limit(table);
    }
    row->functions->each_apart(table, gather, &gathering);
    atomic_store(&table->apart, gathering.apart);
    if (!table->settled) {
        return row->sample_count >= row->config.sample ? ROW_WANT_SETTLE : 0;
    }
    uint32_t wants = row_count_of(table) >= table->fill ? ROW_WANT_OPEN : 0;
    return wants | row_ahead_wants(row, table);
}

/* Where settling found that the slots had changed (RENEW) that stays so. */
static void find_again(struct row *row, struct row_table *table)
{
    uint32_t wants = atomic_load(&table->wants) & ROW_WANT_RENEW;
    if (!table->closed && table->further == NULL && !table->cold) {
        wants |= gather_apart(row, table);
    }
    atomic_store(&table->wants, wants);
    uint64_t count = row_count_of(table);
    uint64_t beyond = count > table->capacity ? count - table->capacity : 0;
    if (atomic_load(&table->apart) < beyond) {
        atomic_store(&table->apart, beyond);
    }
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
    CHECK(region != NULL && row_first_table(row, region) != NULL);
    return false;
}

/* Replay opens tables beyond what may be in memory; and one region is spare. */
static void leave_more(struct row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        struct row_table *layer = row->tables[i]->further;
        if (layer != NULL && row->tables[i]->cold) {
            layer->leaving = !layer->cold;
        }
    }
    row_keep_spare(row, NULL, ROW_NEED_NEXT);
    row_cold_see(row);
}

bool row_restore_end(struct row *row)
{
    row->untidy = true;
    row_ask(row);
    if (row->count == 0) {
        return restore_first(row);
    }
    for (size_t i = 0; i < row->count && !row->config.any_ids; i++) {
        find_again(row, row->tables[i]);
    }
    find_late_room(row);
    row_see_activity(row);
    if (row->config.dump && !row->config.any_ids) {
        leave_more(row);
    }
    return true;
}
