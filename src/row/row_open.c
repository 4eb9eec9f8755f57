/*
 * row_open.c: a table is opened, with the world stopped: what it begins with, and what becomes of
 * the one it follows. Replay (row_replay.c) goes the same way.
 */
#include "row/row_private.h"
#include "row/row_room.h"

#include "base/log.h"
#include "base/point.h"

/* A jump of up to this many times what a table spans is the stream's own step, such as a second. */
#define STEP_SPREADS_MAX 65536u
#define STEPS_REACHED    2 /* one may be missing */
#define CLUMPS_PART      8 /* samples that show a range so much smaller are of one clump */

/* Once of a table, until one opens or the configuration changes. */
static void warn_refused(const struct row *row, struct row_table *table, const char *why)
{
    if (!table->warned) {
        table->warned = true;
        log_warning("no table can follow another: %s space=%s first_id=%llu", why,
                    row_space_name(row), (unsigned long long)table->base);
    }
}

void row_give_up(struct row *row, struct row_table *table, struct row_region *region,
                 const char *why)
{
    row_region_give(row, region);
    if (why != NULL) {
        row_pause(row);
    }
    if (why != NULL && table->refused) {
        warn_refused(row, table, why);
    }
}

/*
 * What a full table spans, as this one shows: by all of its ids, but where some that lie ahead of
 * the stream widen that, by what most of them show. That says less than it is where ids come in
 * clumps.
 */
static uint64_t shown_range(const struct row *row, const struct row_table *table)
{
    uint64_t count = row_larger(row_count_of(table), 1);
    uint64_t all = row_policy_range(row_spanned(table) + 1, count, table->capacity);
    uint64_t most = row_shown_range(row, table);
    bool agree = most >= all / CLUMPS_PART;
    uint64_t wide = row_policy_add(most, most / 4);
    uint64_t range = most != 0 && agree && wide < all ? wide : all;
    return row->config.ids_once ? row_larger(range, table->capacity) : range;
}

/* What the next table's range will be, as this one shows; 0: it cannot be known. */
static uint64_t next_range(const struct row *row, const struct row_table *table,
                           const struct row_opening *opening)
{
    uint64_t count = row_count_of(table);
    if (count >= table->capacity / 2) {
        return shown_range(row, table);
    }
    /* The stream has come to its end before it was full: ids are sparser than its range says. */
    bool sparser = opening->end && table->range != 0 && count > 1;
    return sparser ? row_larger(shown_range(row, table), table->range) : table->range;
}

static uint64_t next_reach_min(const struct row_table *from, const struct row_opening *opening,
                               const struct row_table *to)
{
    if (from->base == to->base) {
        return row_larger(to->reach_min, from->reach_min);
    }
    uint64_t reach = row_larger(to->reach_min, opening->reach_min);
    if (to->range != 0) {
        return reach;
    }
    uint64_t frontier = row_frontier_of(from);
    uint64_t spanned = frontier > from->low ? frontier - from->low : 0;
    uint64_t gap = opening->low - frontier;
    reach = row_larger(reach, spanned);
    bool again = gap / STEPS_REACHED <= from->step; /* such a jump for the second time */
    bool own = again || gap / STEP_SPREADS_MAX <= spanned;
    return own ? row_larger(reach, STEPS_REACHED * gap) : reach;
}

/* An engine's window may be too small for ids so far apart. */
static bool takes_enough(const struct row_opening *opening, const struct row_table *next)
{
    size_t taken = 0;
    for (size_t i = 0; opening->bulk && i < opening->count; i++) {
        uint64_t id = opening->bulk[i];
        taken += opening->base <= id && id <= next->window_last;
    }
    return opening->bulk == NULL || taken >= ROW_CLUSTER;
}

/* A full one of `table` spans `range`; what the new one holds may be more or less. */
static struct row_table *make_for_range(struct row *row, const struct row_table *table,
                                        uint64_t base, uint64_t range, struct row_region *region)
{
    struct row_want want = {.base = base, .range = range};
    if (table->region != NULL && table->region->bytes != region->bytes) {
        want.range = row_policy_range(range, table->region->bytes, region->bytes);
    }
    struct row_table *next = row_make_table(row, &want, table->last, region);
    if (next != NULL) {
        next->range = row_policy_range(range, table->capacity, next->capacity);
    }
    return next;
}

/*
 * For ahead ids: the window must hold those it opens for, however dense ids were said to be. Then
 * it is as wide as a full table of these ids would be.
 */
static struct row_table *make_next(struct row *row, const struct row_table *table,
                                   const struct row_opening *opening, struct row_region *region)
{
    uint64_t range = opening->bulk ? 0 : next_range(row, table, opening);
    struct row_table *next = make_for_range(row, table, opening->base, range, region);
    if (next == NULL || !opening->jump || opening->high <= next->window_last) {
        return next;
    }
    row->kind->destroy(next);
    row_region_clear(row, region);
    uint64_t spanned = opening->high - opening->base + 1;
    uint64_t shown = row_policy_range(spanned, opening->count, table->capacity);
    return make_for_range(row, table, opening->base, row_larger(range, shown), region);
}

/*
 * NULL: it was refused, and *why says by what, or is of no use; the region is the caller's, not
 * zeroed.
 */
static struct row_table *open_in(struct row *row, struct row_table *table,
                                 const struct row_opening *opening, struct row_region *region,
                                 const char **why)
{
    struct row_table *next = make_next(row, table, opening, region);
    *why = ROW_REFUSED_MEMORY;
    if (next == NULL) {
        table->refused = true;
        return NULL;
    }
    if (!takes_enough(opening, next)) {
        *why = NULL;
        table->bulk_from = row->noted + ROW_BULK;
        row->kind->destroy(next);
        return NULL;
    }
    next->reach_min = next_reach_min(table, opening, next);
    next->low = opening->low;
    next->step = opening->low - row_frontier_of(table);
    next->jumped = opening->jump;
    row_start_at(next, opening->low > 0 ? opening->low - 1 : 0);
    return next;
}

/* Its ahead ids stay apart. Not asked again for each that comes, but the row may change. */
void row_leave_apart(struct row *row, struct row_table *table)
{
    table->cluster_from = row->noted + ROW_CLUSTER_AGAIN;
    table->bulk_from = row->noted + ROW_BULK;
    row_see_activity(row);
}

/* Refuses a table what it wants; it may have that once an awaited dump has ended. */
static void row_open_refuse(struct row *row, struct row_table *table, bool jump)
{
    if (jump) {
        row_leave_apart(row, table);
        table->refused_jump = true;
    } else {
        table->refused = !table->awaiting;
    }
}

/* True: no further table can stand in the row, though memory is free. Where a dump is awaited for
 * that, others may have to go after it. */
static bool is_full_of_tables(const struct row *row, struct row_table *table)
{
    bool full = row->count >= row_routes_max(&row->config) && row_regions_free(row) > 0;
    if (full) {
        warn_refused(row, table,
                     "the space has as many as there can be, with those on the disk; "
                     "set dumps-max, so that the oldest are dropped");
    }
    return full;
}

void row_allow(struct row_table *table)
{
    table->refused = false;
    table->refused_layer = false;
    if (table->refused_jump) {
        table->refused_jump = false;
        table->cluster_from = 0;
        table->bulk_from = 0;
    }
}

/* As row_serve. */
static bool need_room(struct row *row, struct row_table *table, bool jump)
{
    enum row_room room = row_make_room(row, table, jump ? ROW_NEED_JUMP : ROW_NEED_NEXT);
    if (room == ROW_ROOM_NONE) {
        row_open_refuse(row, table, jump);
    }
    return room == ROW_ROOM_AGAIN;
}

/* Ids that were dropped at the table's base may be created again. */
static void reopen_dropped(struct row *row, struct row_table *table, uint64_t base)
{
    struct row_dropped above;
    uint64_t again = row_dropped_above(&table->dropped, base, &above);
    row_dropped_cut(&table->dropped, base);
    row_count_dropped(row);
    if (again > 0 && row->kind->reopened != NULL) {
        row->kind->reopened(row->engine);
    }
}

/*
 * What a table shows that is followed holds for those, too, that were opened for strays when less
 * was known. By what an event says alone: replay does the same.
 */
static void tell_range(struct row *row, const struct row_table *table, const struct row_table *next)
{
    bool known = !next->jumped && next->range != 0 && row_count_of(table) >= table->capacity / 2;
    for (size_t i = 0; i < row->count && known; i++) {
        struct row_table *other = row->tables[i];
        bool little = row_count_of(other) < other->capacity / 2;
        uint64_t range = row_policy_range(next->range, next->capacity, other->capacity);
        if (other->jumped && !other->closed && little && other->range != range) {
            other->range = range;
            row_touch(other);
        }
    }
}

void row_put_in(struct row *row, struct row_table *table, struct row_table *next)
{
    row_touch(table);
    table->last = next->base - 1; /* if it stays */
    (void)row_dropped_above(&table->dropped, next->base, &next->dropped);
    row_follow_layer(table);
    reopen_dropped(row, table, next->base);
    tell_range(row, table, next);
    if (next->base == table->base) {
        CHECK(row_count_of(table) == 0);
        next->jumped = next->jumped || table->jumped;
        row_retire(row, table); /* all it ever had is apart, or gone */
    } else {
        row_note_closed(row, table);
    }
    row_insert(row, next);
    row_note_closed(row, next);
    row_apart_see(row);
    row_ahead_drop(row, next);
    row_see_table(next);
    for (size_t i = 0; i < row->count; i++) {
        row->tables[i]->warned = false;
    }
}

bool row_open(struct row *row, struct row_table *table, const struct row_opening *opening)
{
    CHECK(opening->base <= table->last);
    CHECK(opening->base > row_frontier_of(table) || row_count_of(table) == 0);
    CHECK(opening->low >= opening->base && opening->low <= table->last);
    bool leap = opening->leap && row_stream_is_in(row, table);
    if (opening->jump && !leap && (row_jumps_enough(row) || row_needs_all(row))) {
        row_leave_apart(row, table);
        return false;
    }
    table->awaiting = table->leaving && !row->dump_failed; /* to leave comes first */
    if (table->leaving || is_full_of_tables(row, table)) {
        row_open_refuse(row, table, opening->jump);
        return false;
    }
    struct row_region *region = row_region_take(row);
    if (region == NULL) {
        return need_room(row, table, opening->jump);
    }
    POINT("opening");
    const char *why;
    uint64_t came = row_admitted(table);
    struct row_table *next = open_in(row, table, opening, region, &why);
    if (next == NULL) {
        row_give_up(row, table, region, why);
        return false;
    }
    row_ahead_shift(row, next, row_admitted(next) - came);
    bool stays = next->base != table->base;
    row_put_in(row, table, next);
    row_log_put(row, CHANGE_EVENT_OPEN, next);
    atomic_fetch_or(&next->wants, ROW_WANT_PLACE);
    atomic_fetch_or(&table->wants, stays ? ROW_WANT_PLACE : 0);
    POINT("opened, nothing inserted");
    row_keep_spare(row, table, opening->jump ? ROW_NEED_JUMP : ROW_NEED_NEXT);
    row_see_activity(row);
    return false;
}
