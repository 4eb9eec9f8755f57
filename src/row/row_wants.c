/*
 * row_wants.c: what tables want is done or refused, with the world stopped: settling, openings of
 * each kind, layers.
 *
 * A function of a want answers true where memory is needed that a table just retired holds: the
 * want stays, and is looked at again once the keeper has cleared that memory. It stays, too, where
 * the memory of a table that leaves is awaited.
 */
#include "row/row_private.h"
#include "row/row_room.h"

#include <string.h>

#define LOWER_PART     4
#define NEARLY_PART    16 /* of what a table holds or spans: less is worth no table of its own */
#define NEWEST         (2 * ROW_CLUSTER)
#define SCATTERED_PART 64u /* of what such ids span, as they come once more */
#define SPREADS_REACHED                                                                            \
    4 /* of the ids a table opens for: more than the trusted id lies behind them */

/* The nearest table before this one that was closed for all of its life says how many come late. */
static void learn_late_room(struct row *row, const struct row_table *table)
{
    if (row->config.late_room >= 0.0) {
        return;
    }
    for (size_t i = row_index_of(row, table); i > 0; i--) {
        const struct row_table *before = row->tables[i - 1];
        if (before->closed && before->closed_serial <= table->serial) {
            row->late_room = row_policy_late_room(row->late_room, atomic_load(&before->late),
                                                  row_count_all(before));
            return;
        }
    }
}

/* -- what tables want -- */

typedef bool want_fn(struct row *row, struct row_table *table);

/* Ids that settling left ahead may be the stream already. */
static void note_sample(struct row *row, struct row_table *table)
{
    uint64_t ahead = 0;
    uint64_t limit = row_limit(table);
    uint32_t wants = 0;
    for (size_t i = 0; i < row->sample_count; i++) {
        ahead += row->sample[i] > row_frontier_of(table);
        if (row->sample[i] > limit) {
            wants |= row_ahead_note(row, table, row->sample[i], i + 1 - ahead);
        }
    }
    atomic_fetch_or(&table->wants, wants | ROW_WANT_PLACE);
}

static bool want_settle(struct row *row, struct row_table *table)
{
    if (table->settled || row->sample_count == 0) {
        return false;
    }
    struct row_span span = row_policy_span(row->sample, row->sample_count);
    table->low = span.low > table->base ? span.low : table->base;
    table->settled = true;
    row_start_at(table, span.most);
    atomic_store(&table->frontier, span.high);
    if (row->kind->settle != NULL) {
        row->kind->settle(row->engine, table);
    }
    for (size_t i = 0; i < row->sample_count; i++) {
        row_stream_note(row, table, row->sample[i], i + 1);
    }
    if (span.high > table->window_last) {
        row_start_at(table, span.most < table->window_last ? span.most : table->window_last);
        atomic_store(&table->frontier, table->window_last);
    }
    note_sample(row, table);
    row->sample_count = 0;
    row_note_closed(row, table);
    row_touch(table);
    row_log_put(row, CHANGE_EVENT_SETTLE, table);
    return false;
}

/*
 * Ids that come in no order have shown nearly all of their range: the few that still come above
 * the frontier are worth no table. Where layers take them the table closes so much higher.
 */
static uint64_t rest_above(const struct row *row, const struct row_table *table)
{
    uint64_t first = id_span_first(&table->ids);
    uint64_t frontier = row_frontier_of(table);
    bool layers = row->log == NULL && !row->config.recycle;
    bool scattered = layers && first < frontier && row_stream_is_scattered(row, table);
    uint64_t rest = scattered ? (frontier - first) / SCATTERED_PART : 0;
    return rest < table->last - frontier ? rest : 0;
}

/* Opens a table above the frontier, or in place of this table if nothing ever came in. */
static bool open_behind(struct row *row, struct row_table *table)
{
    bool empty = row_count_of(table) == 0;
    uint64_t frontier = row_frontier_of(table) + (empty ? 0 : rest_above(row, table));
    uint64_t base = empty ? table->base : frontier + 1;
    struct row_opening opening = {.base = base, .low = base};
    bool again = row_open(row, table, &opening);
    if (!empty && table->last == frontier) {
        row_raise_to(&table->frontier, frontier);
        row_note_closed(row, table);
    }
    return again;
}

/* The stream leaves it before it is full: ids are sparser than was thought. */
static bool open_above_end(struct row *row, struct row_table *table)
{
    uint64_t base = row_larger(row_end(table), row_frontier_of(table)) + 1;
    struct row_opening opening = {.base = base, .low = base, .end = true};
    return row_open(row, table, &opening);
}

/* What it has of its range is worth no table of its own, and what comes there is little: a layer.
 */
static bool close_full(struct row *row, struct row_table *table)
{
    row_raise_to(&table->frontier, table->last);
    row_note_closed(row, table);
    row_touch(table);
    row_log_put(row, CHANGE_EVENT_SETTLE, table);
    atomic_fetch_or(&table->wants, ROW_WANT_LAYER | ROW_WANT_PLACE);
    return false;
}

/* Returns whether little of the range is left: not where ids were dropped, as a table opens when
 * they come again. */
static bool is_little_left(const struct row_table *table)
{
    bool dropped = row_dropped_next(&table->dropped, row_frontier_of(table)) != UINT64_MAX;
    return row_has_little_left(table, NEARLY_PART) && table->further == NULL &&
           !row_is_going(table) && !dropped;
}

static bool want_layer(struct row *row, struct row_table *table);

static bool want_open(struct row *row, struct row_table *table)
{
    if (table->layer_first) {
        return want_layer(row, table);
    }
    row_note_closed(row, table);
    uint64_t count = row_count_of(table);
    bool ends = row_ends(row, table);
    bool nearly = ends && count >= table->capacity - table->capacity / NEARLY_PART;
    bool full = row_is_filled(table, count) || nearly || table->further || row_is_going(table);
    if (!table->settled || table->closed || !(full || ends)) {
        return false;
    }
    if (count >= table->capacity && is_little_left(table)) {
        return close_full(row, table);
    }
    if (row_regions_free(row) > 0) {
        learn_late_room(row, table);
    }
    /* Where there is one table at a time it goes, and nothing may still come below the next. */
    return full || !row_clusters(row) ? open_behind(row, table) : open_above_end(row, table);
}

static bool want_renew(struct row *row, struct row_table *table)
{
    row_note_closed(row, table);
    bool newest = row->tables[row->count - 1] == table;
    bool is_first = table->base == 0 && row_count_of(table) == 0; /* emptied since it was asked */
    if (!newest || !table->settled || table->closed || is_first) {
        return false;
    }
    return open_behind(row, table);
}

static uint64_t spreads_reached(uint64_t spread)
{
    return spread > ROW_ID_MAX / SPREADS_REACHED ? ROW_ID_MAX : spread * SPREADS_REACHED;
}

static bool has_ahead(const struct row_table *table)
{
    return table->settled && !row_is_going(table);
}

/*
 * Sorts ids and finds the first ROW_CLUSTER of them near each other. After a leap the stream is
 * where most of the newest are, from the first one near them on.
 */
static bool find_cluster(uint64_t *ids, size_t n, uint64_t reach, bool leap, size_t *first)
{
    uint64_t newest[NEWEST];
    size_t last = n < NEWEST ? n : NEWEST;
    memcpy(newest, ids + n - last, last * sizeof(ids[0]));
    row_policy_sort(ids, n);
    row_policy_sort(newest, last);
    if (!leap || !row_policy_cluster(newest, last, ROW_CLUSTER, reach, UINT64_MAX, first)) {
        return row_policy_cluster(ids, n, ROW_CLUSTER, reach, UINT64_MAX, first);
    }
    uint64_t low = newest[*first];
    for (*first = 0; ids[*first] < low && low - ids[*first] > reach; ++*first) {
    }
    return *first + ROW_CLUSTER <= n;
}

/*
 * Below the smallest id of a stream that goes on elsewhere there may be some more, which have not
 * arrived yet: the base lies lower by a part of what those seen are apart.
 */
static bool want_cluster(struct row *row, struct row_table *table)
{
    uint64_t ids[ROW_AHEAD_KEPT];
    size_t n = has_ahead(table) ? row_ahead_ids(row, table, ids) : 0;
    size_t first;
    bool leap = row_ahead_leaps(row, table);
    if (!find_cluster(ids, n, row_reach(table), leap, &first)) {
        row_leave_apart(row, table);
        return false;
    }
    uint64_t low = ids[first];
    uint64_t spread = ids[first + ROW_CLUSTER - 1] - low;
    uint64_t floor = row_dropped_floor(&table->dropped, low);
    uint64_t least = row_limit(table) + 1;
    least = least > floor ? least : floor;
    uint64_t lower = row_larger(spread, table->range / 2) / LOWER_PART;
    bool next = row_stream_is_in(row, table) && low - least <= table->range / LOWER_PART;
    struct row_opening opening = {.base = low - least > lower ? low - lower : least,
                                  .low = low,
                                  .reach_min = spreads_reached(spread),
                                  .jump = !next,
                                  .leap = leap,
                                  .end = leap || (next && row_stream_may_end(row, table)),
                                  .count = ROW_CLUSTER,
                                  .high = low + spread};
    return row_open(row, table, &opening);
}

/* The stream has come to ids that were dropped: they may be created again from here on. */
static bool want_reach(struct row *row, struct row_table *table)
{
    uint64_t base = row_dropped_next(&table->dropped, row_frontier_of(table));
    if (!table->settled || !row_stream_comes_to(row, table, base)) {
        return false;
    }
    struct row_opening opening = {.base = base, .low = base};
    return row_open(row, table, &opening);
}

static bool want_place(struct row *row, struct row_table *table)
{
    row_apart_place(row, table);
    return false;
}

static bool want_bulk(struct row *row, struct row_table *table)
{
    uint64_t ids[ROW_AHEAD_NEWEST];
    size_t n = has_ahead(table) ? row_ahead_newest(row, table, ids) : 0;
    if (n < ROW_CLUSTER) {
        return false;
    }
    struct row_span span = row_policy_span(ids, n);
    struct row_opening opening = {.base = span.low,
                                  .low = span.low,
                                  .reach_min = spreads_reached(span.spread),
                                  .jump = true,
                                  .leap = true,
                                  .bulk = ids,
                                  .count = n,
                                  .high = span.high};
    return row_open(row, table, &opening);
}

void row_attach_layer(struct row_table *table, struct row_table *layer)
{
    layer->serial = table->serial;
    layer->window_last = table->window_last;
    layer->low = table->low;
    layer->closed = true;
    layer->whole = table->whole;
    layer->layer = row_last_layer(table)->layer + 1;
    row_last_layer(table)->further = layer;
    row_follow_layer(table);
    row_touch(table);
}

static bool want_layer(struct row *row, struct row_table *table)
{
    const struct row_table *last = row_last_layer(table);
    bool holds = row_count_of(last) < last->capacity && !atomic_load(&last->starved);
    if (!row_is_late(table) || holds || !row_may_layer(row, table)) {
        table->layer_first = false;
        return false;
    }
    struct row_region *region = row_region_take_for(row, table->region->bytes);
    if (region == NULL && table->region->bytes <= row->config.table_bytes) {
        enum row_room room = row_make_room(row, table, ROW_NEED_LAYER);
        table->refused_layer = room == ROW_ROOM_NONE;
        table->layer_first = table->layer_first && !table->refused_layer;
        return room == ROW_ROOM_AGAIN;
    }
    table->layer_first = false;
    if (region == NULL) {
        table->refused_layer = true; /* tables are smaller now: recycling gives none of its size */
        return false;
    }
    struct row_want want = {.base = table->base, .range = table->range, .layer_of = table};
    struct row_table *layer = row_make_table(row, &want, table->last, region);
    if (layer == NULL) {
        table->refused = true;
        row_give_up(row, table, region, ROW_REFUSED_MEMORY);
        return false;
    }
    row_attach_layer(table, layer);
    if (!table->closed) { /* for ids below the frontier, while it had no layer yet */
        atomic_fetch_and(&table->wants, ~ROW_WANT_OPEN);
    }
    atomic_fetch_or(&table->wants, ROW_WANT_PLACE); /* what had no room in the table */
    row_log_put(row, CHANGE_EVENT_LAYER, layer);
    row_keep_spare(row, table, ROW_NEED_LAYER);
    return false;
}

/* More ids of its range come than it can hold in memory. */
static bool want_leave(struct row *row, struct row_table *table)
{
    if (row_dumps(row) && row_is_late(table) && !row_is_going(table) && !row->dump_failed) {
        row_cold_leave(row, table);
    }
    return false;
}

static const struct {
    uint32_t bit;
    want_fn *serve;
} WANTS[] = {
    {ROW_WANT_SETTLE, want_settle}, {ROW_WANT_CLUSTER, want_cluster}, {ROW_WANT_BULK, want_bulk},
    {ROW_WANT_OPEN, want_open},     {ROW_WANT_LAYER, want_layer},     {ROW_WANT_REACH, want_reach},
    {ROW_WANT_LEAVE, want_leave},   {ROW_WANT_PLACE, want_place},     {ROW_WANT_RENEW, want_renew},
};

bool row_serve(struct row *row, struct row_table *table)
{
    uint32_t wants = atomic_load(&table->wants);
    for (size_t i = 0; i < sizeof(WANTS) / sizeof(WANTS[0]); i++) {
        if ((wants & WANTS[i].bit) == 0) {
            continue;
        }
        /* Cleared first: a table that was recycled for its successor is left alone then. */
        atomic_fetch_and(&table->wants, ~WANTS[i].bit);
        bool again = WANTS[i].serve(row, table);
        if (again || table->awaiting) {
            atomic_fetch_or(&table->wants, WANTS[i].bit);
        }
        return again;
    }
    return false;
}
