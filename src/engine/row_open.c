/*
 * row_open.c: tables come and go, with the world stopped: settling, opening, layers, retiring.
 *
 * A function of a want answers true where memory is needed that a table just retired holds: the
 * want stays, and is looked at again once the keeper has cleared that memory.
 */
#include "engine/row_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

#include <string.h>

/* A jump of up to so many times what a table spans is the stream's own step, such as a second. */
#define STEP_SPREADS_MAX 65536u
#define STEPS_REACHED    2 /* one may be missing */
#define LOWER_PART       4
#define CLUSTER_AGAIN    64 /* ahead ids, until it is asked again whether a table may open */
/* What is apart is hashed anew in each table: where it has no room in one, it may in another. */
#define MISFITS_MAX     4
#define SPREADS_REACHED 4 /* of those a table opens for: more than the trusted id lies behind */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* -- tables -- */

static uint64_t fill_of(const struct row *row, uint64_t capacity)
{
    if (row->config.any_ids) {
        return capacity;
    }
    double fill = (double)capacity * (1.0 - row->late_room);
    return fill < 1.0 ? 1 : (uint64_t)fill;
}

static uint64_t least_reach(const struct row *row, const struct row_table *table)
{
    return larger(ROW_REACH_MIN, row->config.ids_once ? table->capacity : 0);
}

static void retire_one(struct row *row, struct row_table *table)
{
    row_lock(row);
    table->further = row->retired;
    row->retired = table;
    row_unlock(row);
    row->untidy = true;
}

/* Nothing above an id has come yet. */
static void start_at(struct row_table *table, uint64_t id)
{
    atomic_store(&table->frontier, id);
    atomic_store(&table->trusted, id);
    atomic_store(&table->newer_least, UINT64_MAX);
}

/* A new table in a region, over base .. last. NULL: refused; the region is the caller's. */
static struct row_table *make_table(struct row *row, struct row_want *want, uint64_t last,
                                    struct row_region *region)
{
    want->region = region->memory;
    want->region_bytes = region->bytes;
    struct row_table *table = row->functions->create(row->engine, want);
    if (table == NULL) {
        return NULL;
    }
    CHECK(table->capacity > 0);
    table->base = want->base;
    table->last = last;
    table->low = want->base;
    table->range = want->range;
    table->reach_min = least_reach(row, table);
    table->fill = fill_of(row, table->capacity);
    table->opened_s = clock_wall_s();
    table->region = region;
    table->settled = !want->first;
    start_at(table, want->base == 0 ? 0 : want->base - 1);
    id_span_clear(&table->ids);
    return table;
}

static void insert(struct row *row, struct row_table *table)
{
    CHECK(row->count < ROW_TABLES_MAX);
    size_t at = row_rank(row, table->base, row->count);
    size_t behind = row->count - at;
    memmove(row->tables + at + 1, row->tables + at, behind * sizeof row->tables[0]);
    memmove(row->bases + at + 1, row->bases + at, behind * sizeof row->bases[0]);
    row->tables[at] = table;
    row->bases[at] = table->base;
    table->serial = row->serials++;
    row->count++;
}

static size_t index_of(const struct row *row, const struct row_table *table)
{
    size_t at = row_rank(row, table->base, row->count);
    CHECK(at > 0 && row->tables[at - 1] == table);
    return at - 1;
}

struct row_table *row_first_table(struct row *row, struct row_region *region)
{
    CHECK(row->count == 0);
    struct row_want want = {.first = !row->config.any_ids};
    struct row_table *table = make_table(row, &want, ROW_ID_MAX, region);
    if (table == NULL) {
        return NULL;
    }
    if (row->config.any_ids) {
        table->window_last = ROW_ID_MAX;
    }
    insert(row, table);
    return table;
}

void row_note_closed(struct row *row, struct row_table *table)
{
    if (!table->closed && table->settled && row_frontier_of(table) == table->last &&
        !row->config.any_ids) {
        table->closed = true;
        table->closed_serial = row->serials;
    }
}

/* -- memory -- */

/* Takes it off the row, its layer is retired. */
static void take_off(struct row *row, const struct row_table *table)
{
    size_t at = index_of(row, table);
    size_t behind = row->count - at - 1;
    memmove(row->tables + at, row->tables + at + 1, behind * sizeof row->tables[0]);
    memmove(row->bases + at, row->bases + at + 1, behind * sizeof row->bases[0]);
    row->count--;
    if (table->further != NULL) {
        retire_one(row, table->further);
    }
}

void row_retire(struct row *row, struct row_table *table)
{
    take_off(row, table);
    retire_one(row, table);
}

struct row_region *row_take_newest(struct row *row)
{
    struct row_table *table = row->tables[row->count - 1];
    struct row_region *region = table->region;
    take_off(row, table);
    row->functions->destroy(table);
    row_region_clear(row, region);
    return region;
}

static void give_up(struct row *row, struct row_table *table, struct row_region *region,
                    const char *why)
{
    row_region_give(row, region);
    if (why == NULL || !table->refused || table->warned) {
        return;
    }
    table->warned = true;
    log_warning("no table can follow the one of ids from %llu: %s", (unsigned long long)table->base,
                why);
}

/* -- opening -- */

struct opening {
    uint64_t base;
    uint64_t low;       /* the smallest id expected; base or more */
    uint64_t reach_min; /* of the new table at least; 0: as follows from the old one */
    bool jump;          /* for ahead ids */
    /* For the bulk of these, however far apart: what is known of the range does not hold. */
    const uint64_t *bulk;
    /* The ids of a jump. */
    size_t count;
    uint64_t high; /* the largest of them, strays left out */
};

static uint64_t placed_in(const struct row_table *table)
{
    uint64_t count = row_count_of(table);
    uint64_t apart = atomic_load(&table->apart);
    return count > apart ? count - apart : 0;
}

/* What the next table's range will be, as this one shows. */
static uint64_t next_range(const struct row_table *table, uint64_t low)
{
    uint64_t count = placed_in(table);
    /* Its window ended before it was full: ids are sparser than its range says. */
    bool sparser = table->range != 0 && low > table->window_last && count >= ROW_CLUSTER;
    if (count == 0 || (count < table->capacity / 2 && !sparser)) {
        return table->range;
    }
    uint64_t shown = row_policy_range(row_spanned(table) + 1, count, table->capacity);
    return sparser ? larger(shown, table->range) : shown;
}

static uint64_t next_reach_min(const struct row_table *from, const struct opening *opening,
                               const struct row_table *to)
{
    if (from->base == to->base) {
        return larger(to->reach_min, from->reach_min);
    }
    uint64_t reach = larger(to->reach_min, opening->reach_min);
    if (to->range != 0) {
        return reach;
    }
    uint64_t frontier = row_frontier_of(from);
    uint64_t spanned = frontier > from->low ? frontier - from->low : 0;
    uint64_t gap = opening->low - frontier;
    reach = larger(reach, spanned);
    bool again = gap / STEPS_REACHED <= from->step; /* such a jump for the second time */
    bool own = again || gap / STEP_SPREADS_MAX <= spanned;
    return own ? larger(reach, STEPS_REACHED * gap) : reach;
}

static void note_lost(struct row *row, const struct row_table *from, uint64_t lost)
{
    row->recycled_ids += lost;
    if (lost > 0) {
        log_warning("%llu ids far above %llu were dropped: the next table has no room for them",
                    (unsigned long long)lost, (unsigned long long)row_frontier_of(from));
    }
}

/*
 * Moves what lies at or above the new base. False, with nothing changed: it does not fit, and is to
 * be tried with another table. What does not fit into one of MISFITS_MAX is dropped: the stream
 * must not end for a few ids far ahead of it.
 */
static bool move_apart(struct row *row, struct row_table *from, struct row_table *to)
{
    uint64_t last = from->last;
    from->last = to->base - 1;
    if (from->further != NULL) {
        from->further->last = from->last;
        return true; /* it keeps nothing apart */
    }
    uint64_t before = row_count_of(from);
    bool all = ++from->misfits % MISFITS_MAX != 0;
    if (!row->functions->move(row->engine, from, to, all)) {
        from->last = last;
        return false;
    }
    from->misfits = 0;
    note_lost(row, from, all ? 0 : before - row_count_of(from));
    uint64_t moved = row_count_of(to);
    CHECK(moved <= row_count_of(from));
    atomic_fetch_sub(&from->count, moved);
    uint64_t apart = atomic_load(&from->apart);
    atomic_store(&from->apart, apart > moved ? apart - moved : 0);
    return true;
}

/* An engine's window may be too small for ids so far apart. */
static bool takes_enough(const struct opening *opening, const struct row_table *next)
{
    size_t taken = 0;
    for (size_t i = 0; opening->bulk && i < opening->count; i++) {
        uint64_t id = opening->bulk[i];
        taken += opening->base <= id && id <= next->window_last;
    }
    return opening->bulk == NULL || taken >= ROW_CLUSTER;
}

/*
 * For ahead ids: the window must hold those it opens for, however dense ids were said to be. Then
 * it is as wide as a full table of such would be.
 */
static struct row_table *make_next(struct row *row, const struct row_table *table,
                                   const struct opening *opening, struct row_region *region)
{
    struct row_want want = {.base = opening->base,
                            .range = opening->bulk ? 0 : next_range(table, opening->low)};
    struct row_table *next = make_table(row, &want, table->last, region);
    if (next == NULL || !opening->jump || opening->high <= next->window_last) {
        return next;
    }
    row->functions->destroy(next);
    row_region_clear(row, region);
    uint64_t spanned = opening->high - opening->base + 1;
    uint64_t shown = row_policy_range(spanned, opening->count, table->capacity);
    want.range = larger(want.range, shown);
    return make_table(row, &want, table->last, region);
}

static const char REFUSED_MEMORY[] = "memory was refused";
static const char REFUSED_MOVE[] = "no room in the next for what is kept apart";

/*
 * NULL: it was refused, and *why says by what, or is of no use; the region is the caller's, not
 * zeroed.
 */
static struct row_table *open_in(struct row *row, struct row_table *table,
                                 const struct opening *opening, struct row_region *region,
                                 const char **why)
{
    struct row_table *next = make_next(row, table, opening, region);
    *why = REFUSED_MEMORY;
    if (next == NULL) {
        table->refused = true;
        return NULL;
    }
    if (!takes_enough(opening, next)) {
        *why = NULL;
        table->bulk_from = row->noted + ROW_BULK;
        row->functions->destroy(next);
        return NULL;
    }
    next->reach_min = next_reach_min(table, opening, next);
    next->low = opening->low;
    next->step = opening->low - row_frontier_of(table);
    next->jumped = opening->jump;
    start_at(next, opening->low - 1);
    if (!move_apart(row, table, next)) {
        *why = REFUSED_MOVE;
        row->functions->destroy(next);
        return NULL;
    }
    return next;
}

/* Its ahead ids stay apart. Not asked again for each that comes, but the row may change. */
static void leave_apart(struct row *row, struct row_table *table)
{
    table->cluster_from = row->noted + CLUSTER_AGAIN;
    table->bulk_from = row->noted + ROW_BULK;
    row_see_activity(row);
}

/* As row_serve. */
static bool need_room(struct row *row, struct row_table *table, bool jump)
{
    if (row_make_room(row, table, jump ? ROW_NEED_JUMP : ROW_NEED_NEXT)) {
        return true;
    }
    if (jump) {
        leave_apart(row, table);
    } else {
        table->refused = true;
    }
    return false;
}

/* It lies above `table`, or takes its place. */
static void put_in(struct row *row, struct row_table *table, struct row_table *next)
{
    if (next->base == table->base) {
        CHECK(row_count_of(table) == 0);
        next->jumped = next->jumped || table->jumped;
        row_retire(row, table); /* all it had was apart */
    } else {
        row_note_closed(row, table);
    }
    insert(row, next);
    row_note_closed(row, next);
    row_ahead_drop(row, next);
    row_see_table(next);
    for (size_t i = 0; i < row->count; i++) {
        row->tables[i]->warned = false;
    }
}

static bool open_table(struct row *row, struct row_table *table, const struct opening *opening)
{
    CHECK(opening->base <= table->last);
    CHECK(opening->base > row_frontier_of(table) || row_count_of(table) == 0);
    CHECK(opening->low >= opening->base && opening->low <= table->last);
    if (opening->jump && row_jumps_enough(row)) {
        leave_apart(row, table);
        return false;
    }
    struct row_region *region = row_region_take(row);
    if (region == NULL) {
        return need_room(row, table, opening->jump);
    }
    const char *why;
    uint64_t admitted = row_admitted(table);
    struct row_table *next = open_in(row, table, opening, region, &why);
    if (next == NULL) {
        give_up(row, table, region, why);
        return why == REFUSED_MOVE && !table->refused;
    }
    row_ahead_shift(row, table, row_admitted(table) - admitted);
    row_ahead_shift(row, next, row_admitted(next) - admitted);
    put_in(row, table, next);
    row_keep_spare(row, table, opening->jump ? ROW_NEED_JUMP : ROW_NEED_NEXT);
    row_see_activity(row);
    return false;
}

/* The nearest table before this one that was closed for all of its life says how many come late. */
static void learn_late_room(struct row *row, const struct row_table *table)
{
    if (row->config.late_room >= 0.0) {
        return;
    }
    for (size_t i = index_of(row, table); i > 0; i--) {
        const struct row_table *before = row->tables[i - 1];
        if (before->closed && before->closed_serial <= table->serial) {
            uint64_t count = row_count_of(before);
            count += before->further ? row_count_of(before->further) : 0;
            row->late_room =
                row_policy_late_room(row->late_room, atomic_load(&before->late), count);
            return;
        }
    }
}

/* -- what tables want -- */

typedef bool want_fn(struct row *row, struct row_table *table);

/* Those that settling left ahead may be the stream already. */
static void note_sample(struct row *row, struct row_table *table)
{
    uint64_t apart = 0;
    uint64_t limit = row_limit(table);
    uint32_t wants = 0;
    for (size_t i = 0; i < row->sample_count; i++) {
        apart += row->sample[i] > row_frontier_of(table);
        if (row->sample[i] > limit) {
            wants |= row_ahead_note(row, table, row->sample[i]);
        }
    }
    uint64_t count = row_count_of(table);
    atomic_store(&table->apart, apart < count ? apart : count);
    atomic_fetch_or(&table->wants, wants);
}

static bool want_settle(struct row *row, struct row_table *table)
{
    if (table->settled || row->sample_count == 0) {
        return false;
    }
    row_policy_sort(row->sample, row->sample_count);
    struct row_span span = row_policy_span(row->sample, row->sample_count);
    table->low = larger(span.low, table->base);
    table->settled = true;
    start_at(table, span.most);
    atomic_store(&table->frontier, span.high);
    row->functions->settle(row->engine, table);
    if (span.high > table->window_last) {
        start_at(table, span.most < table->window_last ? span.most : table->window_last);
        atomic_store(&table->frontier, table->window_last);
    }
    note_sample(row, table);
    row->sample_count = 0;
    row_note_closed(row, table);
    return false;
}

/* Behind the frontier; in place of the table, where nothing ever came in. */
static bool open_behind(struct row *row, struct row_table *table)
{
    uint64_t base = row_count_of(table) == 0 ? table->base : row_frontier_of(table) + 1;
    struct opening opening = {.base = base, .low = base};
    return open_table(row, table, &opening);
}

static bool want_open(struct row *row, struct row_table *table)
{
    row_note_closed(row, table);
    bool full = row_count_of(table) >= table->fill || table->further != NULL;
    if (!table->settled || table->closed || !full) {
        return false;
    }
    if (row_regions_free(row) > 0) {
        learn_late_room(row, table);
    }
    return open_behind(row, table);
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

/*
 * Below the smallest id of a stream that goes on elsewhere there may be some more, which have not
 * arrived yet: the base lies lower by a part of what those seen are apart.
 */
static bool want_cluster(struct row *row, struct row_table *table)
{
    uint64_t ids[ROW_AHEAD_KEPT];
    size_t n = table->settled ? row_ahead_sorted(row, table, ids) : 0;
    size_t first;
    if (!row_policy_cluster(ids, n, ROW_CLUSTER, row_reach(table), UINT64_MAX, &first)) {
        return false;
    }
    uint64_t low = ids[first];
    uint64_t spread = ids[first + ROW_CLUSTER - 1] - low;
    uint64_t least = row_limit(table) + 1;
    uint64_t lower = spread / LOWER_PART;
    struct opening opening = {.base = low - least > lower ? low - lower : least,
                              .low = low,
                              .reach_min = spreads_reached(spread),
                              .jump = true,
                              .count = ROW_CLUSTER,
                              .high = low + spread};
    return open_table(row, table, &opening);
}

static bool want_bulk(struct row *row, struct row_table *table)
{
    uint64_t ids[ROW_AHEAD_KEPT];
    size_t n = table->settled ? row_ahead_sorted(row, table, ids) : 0;
    if (n < ROW_CLUSTER) {
        return false;
    }
    struct row_span span = row_policy_span(ids, n);
    struct opening opening = {.base = span.low,
                              .low = span.low,
                              .reach_min = spreads_reached(span.spread),
                              .jump = true,
                              .bulk = ids,
                              .count = n,
                              .high = span.high};
    return open_table(row, table, &opening);
}

static bool want_layer(struct row *row, struct row_table *table)
{
    if (!table->closed || table->further != NULL || row_count_of(table) < table->capacity) {
        return false;
    }
    struct row_region *region = row_region_take_for(row, table->region->bytes);
    if (region == NULL && table->region->bytes > row->config.table_bytes) {
        table->refused = true; /* tables are smaller now: recycling gives none of its size */
        return false;
    }
    if (region == NULL) {
        bool again = row_make_room(row, table, ROW_NEED_LAYER);
        table->refused = !again;
        return again;
    }
    struct row_want want = {.base = table->base, .range = table->range, .layer_of = table};
    struct row_table *layer = make_table(row, &want, table->last, region);
    if (layer == NULL) {
        table->refused = true;
        give_up(row, table, region, REFUSED_MEMORY);
        return false;
    }
    layer->serial = table->serial;
    layer->window_last = table->window_last;
    layer->low = table->low;
    layer->closed = true;
    atomic_store(&layer->frontier, table->last);
    table->further = layer;
    row_keep_spare(row, table, ROW_NEED_LAYER);
    return false;
}

static const struct {
    uint32_t bit;
    want_fn *serve;
} WANTS[] = {
    {ROW_WANT_SETTLE, want_settle}, {ROW_WANT_CLUSTER, want_cluster}, {ROW_WANT_BULK, want_bulk},
    {ROW_WANT_RENEW, want_renew},   {ROW_WANT_OPEN, want_open},       {ROW_WANT_LAYER, want_layer},
};

bool row_serve(struct row *row, struct row_table *table)
{
    uint32_t wants = atomic_load(&table->wants);
    for (size_t i = 0; i < sizeof WANTS / sizeof WANTS[0]; i++) {
        if ((wants & WANTS[i].bit) == 0) {
            continue;
        }
        /* Cleared first: a table that was recycled for its successor is left alone then. */
        atomic_fetch_and(&table->wants, ~WANTS[i].bit);
        bool again = WANTS[i].serve(row, table);
        if (again) {
            atomic_fetch_or(&table->wants, WANTS[i].bit);
        }
        return again;
    }
    return false;
}
