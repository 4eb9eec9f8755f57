/*
 * row_private.h: what the files of the row share. Thread rules: "stopped" is with the world stopped
 * (or nobody else there), "keeper" is the one thread of row_maintain, outside.
 */
#ifndef ROLLCALL_ROW_ROW_PRIVATE_H
#define ROLLCALL_ROW_ROW_PRIVATE_H

#include "base/clock.h"
#include "row/row_cold.h"
#include "row/row_policy.h"
#include "row/table_kind.h"

#define ROW_LITTLE_PART    4  /* 1/4 of its range left, or less: not worth another table */
#define ROW_END_PART       8  /* a table's end lies 1/8 of its range above the range */
#define ROW_AHEAD_END_PART 16 /* 1/16 below, if the table opened for ahead ids */
#define ROW_NEAR_PART      32 /* 1/32 of its range before the end the stream is about to leave */
#define ROW_CLUSTER_AGAIN  64 /* ahead ids from one look for a cluster to the next */

/* A const row may be locked: the lock is no part of its value. Any thread. */
void row_lock(const struct row *row);
void row_unlock(const struct row *row);

/* The name of the space, for the log; a row alone has none. */
static inline const char *row_space_name(const struct row *row)
{
    return row->engine->name != NULL ? row->engine->name : "?";
}

static inline void row_notify(const struct engine_keeper *who)
{
    if (who != NULL && who->notify != NULL) {
        who->notify(who->context);
    }
}
/* Tells the keeper, once until it looks, that it has something to do. Any thread. */
void row_ask(struct row *row);
/* True: the moment *at_us has come. 0: no moment is set. Any thread. */
static inline bool row_is_due(const _Atomic uint64_t *at_us)
{
    uint64_t at = atomic_load(at_us);
    return at != 0 && clock_monotonic_us() >= at;
}
/* Notes what a table wants: ROW_WANT_*. Any thread inside. */
void row_want(struct row *row, struct row_table *table, uint32_t bits);
/* Wakes all requests that wait for the row to change. Any thread. */
void row_wake(struct row *row);

static inline uint64_t row_count_of(const struct row_table *table) /* without its layer */
{
    return atomic_load_explicit(&table->count, memory_order_relaxed);
}

static inline uint64_t row_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t row_frontier_of(const struct row_table *table)
{
    return atomic_load_explicit(&table->frontier, memory_order_relaxed);
}

/* Returns how many ids lie from low to what the stream passed. */
static inline uint64_t row_spanned(const struct row_table *table)
{
    uint64_t trusted = atomic_load_explicit(&table->trusted, memory_order_relaxed);
    return trusted > table->low ? trusted - table->low : 0;
}

static inline uint64_t row_reach(const struct row_table *table)
{
    return row_policy_reach(table->range, table->reach_min, row_spanned(table), row_count_of(table),
                            table->capacity);
}

/* Returns whether tables are dumped: not where nobody reads them from the disk (row_set_cold). */
static inline bool row_dumps(const struct row *row)
{
    return row->config.dump && row->cold != NULL;
}

/* True: tables give their memory to others, and one region is spare for that. */
static inline bool row_keeps_spare(const struct row *row)
{
    return row->config.recycle || row_dumps(row);
}

/*
 * True: ROW_CLUSTER ahead ids may open a table. Not where that would recycle the table they are
 * ahead of.
 */
static inline bool row_clusters(const struct row *row)
{
    return row->config.tables > (row_keeps_spare(row) ? 2 : 1);
}

/* row_stream.c: where the stream is, and how dense; any thread inside */

/* An id was admitted to the table, in place or apart, as the `admitted`th. */
void row_stream_note(struct row *row, struct row_table *table, uint64_t id, uint64_t admitted);
/* An id ahead was refused: else a stream that finds the room apart full would never be seen. */
void row_stream_refused(struct row *row, uint64_t id);
/* True: most new ids belong to the range of this table; ids ahead of it count as its own. */
bool row_stream_is_in(const struct row *row, const struct row_table *table);
/* True: most new ids lie above its range, as far as is known, and so above what is ahead of it. */
bool row_stream_is_above(const struct row *row, const struct row_table *table);
/* True: most new ids, maybe strays alone, lie near row_end() or above it, as far as is known. */
bool row_stream_may_end(const struct row *row, const struct row_table *table);
/* True: the newest ids of its range lie all over what it spans, or fall. */
bool row_stream_is_scattered(const struct row *row, const struct row_table *table);
/* True: the table's stream has come near this id, which was recycled: no stray writes it. */
bool row_stream_comes_to(const struct row *row, const struct row_table *table, uint64_t id);
/* Forgets all that came. */
void row_stream_forget(struct row *row);
/* Fewer ids of its range have come than was counted: some lie in another one. Stopped. */
void row_stream_moved(struct row_table *table);
/*
 * Returns how many ids a full table spans at the density of the stream in this one; 0: too few ids
 * have come.
 */
uint64_t row_shown_range(const struct row *row, const struct row_table *table);

/*
 * Returns the largest id a table is to hold: a little above where it is full if ids are as dense as
 * was known, since its fill comes first. In a table that opened for strays, which get to its end
 * before the stream: a little below.
 */
static inline uint64_t row_end(const struct row_table *table)
{
    if (table->range == 0) {
        return ROW_ID_MAX;
    }
    uint64_t end =
        table->jumped
            ? row_policy_add(table->base, table->range - table->range / ROW_AHEAD_END_PART)
            : row_policy_add(table->low, row_policy_add(table->range, table->range / ROW_END_PART));
    /* A small rest gets no table, unless it has recycled ids: those are to be told from new ones.
     */
    bool rest = end < table->last && table->last - end < table->range / ROW_AHEAD_END_PART &&
                table->dropped.count == 0;
    return rest ? table->last : end;
}

/* True: the stream has nearly reached row_end(), however full the table is. Any thread inside. */
static inline bool row_nears_end(const struct row_table *table)
{
    uint64_t trusted = atomic_load_explicit(&table->trusted, memory_order_relaxed);
    uint64_t end = row_end(table);
    return table->range != 0 && end < table->last && trusted >= end - table->range / ROW_NEAR_PART;
}

/*
 * True: the stream is about to leave the table. Where no table opens for ahead ids, all ids are the
 * stream.
 */
static inline bool row_ends(const struct row *row, const struct row_table *table)
{
    return row_nears_end(table) && (!row_clusters(row) || row_stream_may_end(row, table));
}

/* True: another table has opened above, and at most 1/part of the range is left. */
static inline bool row_has_little_left(const struct row_table *table, uint64_t part)
{
    return table->last - row_frontier_of(table) <= table->range / part;
}

/*
 * True: the table is so full that the stream goes on to another one. A table with little left of
 * its range first takes what it can hold, and one with nothing left takes half of that. Any thread
 * inside.
 */
static inline bool row_is_filled(const struct row_table *table, uint64_t count)
{
    if (table->last == row_frontier_of(table)) {
        return count >= table->capacity / 2;
    }
    return count >= (row_has_little_left(table, ROW_LITTLE_PART) ? table->capacity : table->fill);
}

/* Returns how far its stream reaches, whatever ids were recycled there. Any thread inside. */
static inline uint64_t row_reaches(const struct row_table *table)
{
    uint64_t trusted = atomic_load_explicit(&table->trusted, memory_order_relaxed);
    uint64_t limit = row_policy_add(trusted, row_reach(table));
    uint64_t end =
        table->refused ? ROW_ID_MAX : row_end(table); /* no other table takes the ids above */
    limit = limit < end ? limit : end;
    limit = limit < table->window_last ? limit : table->window_last;
    limit = limit < table->last ? limit : table->last;
    uint64_t frontier = row_frontier_of(table);
    return limit > frontier ? limit : frontier;
}

/*
 * Ids above the limit are ahead. It stays below recycled ids: a table opens there when new ones
 * come. Any thread inside.
 */
static inline uint64_t row_limit(const struct row_table *table)
{
    uint64_t limit = row_reaches(table);
    if (UNLIKELY(table->dropped.count > 0)) {
        uint64_t next = row_dropped_next(&table->dropped, row_frontier_of(table));
        limit = next <= limit ? next - 1 : limit;
    }
    return limit;
}

/* Raises a number that many threads raise at once. Any thread. */
static inline void row_raise_to(_Atomic uint64_t *highest, uint64_t id)
{
    uint64_t now = atomic_load_explicit(highest, memory_order_relaxed);
    while (now < id && !atomic_compare_exchange_weak(highest, &now, id)) {
    }
}
/* The same for one that many lower. Any thread. */
static inline void row_lower_to(_Atomic uint64_t *least, uint64_t id)
{
    uint64_t now = atomic_load_explicit(least, memory_order_relaxed);
    while (id < now && !atomic_compare_exchange_weak(least, &now, id)) {
    }
}

/* row_admit.c: an id came in place: the frontier follows. Any thread inside. */
void row_pass(struct row_table *table, uint64_t id);

/* Returns how many ids came in place so far. */
static inline uint64_t row_admitted(const struct row_table *table)
{
    return row_count_of(table) + atomic_load_explicit(&table->gone, memory_order_relaxed);
}

/* Returns how many ids of its range came so far, those apart included. */
static inline uint64_t row_came(const struct row_table *table)
{
    return row_admitted(table) + atomic_load_explicit(&table->apart, memory_order_relaxed);
}

/* Returns how many ids it may hold: a dumped one as many as merges write files for. */
static inline uint64_t row_most_of(const struct row_table *holder)
{
    return holder->cold ? row_larger(holder->capacity, holder->grows_to) : holder->capacity;
}

/* Takes a place in `holder`, a table or layer; *count: with this one. False: it is full. Any thread
 * inside. */
static inline bool row_take_place(struct row_table *holder, uint64_t *count)
{
    *count = atomic_fetch_add_explicit(&holder->count, 1, memory_order_relaxed) + 1;
    if (LIKELY(*count <= holder->capacity) || *count <= row_most_of(holder)) {
        return true;
    }
    atomic_fetch_sub_explicit(&holder->count, 1, memory_order_relaxed);
    return false;
}

/* True: the table is dumped or is to be: it takes only ids up to its frontier, and no layer. */
static inline bool row_is_going(const struct row_table *table)
{
    return table->cold || table->leaving;
}

/* True: it is closed, or took over a range and has a layer, or will: what it takes is late. */
static inline bool row_is_late(const struct row_table *table)
{
    return table->closed || table->further != NULL || table->layer_first;
}

/* row_ahead.c: the ahead ids remembered */

/*
 * Remembers an ahead id of a settled table, which came when `placed` ids were in place, and returns
 * what the table may want now. Any thread inside.
 */
uint32_t row_ahead_note(struct row *row, const struct row_table *table, uint64_t id,
                        uint64_t placed);
/*
 * Likewise, while a table is about to open, or none can be had: it changes nothing of what opens.
 * The newest of these are remembered when there is no room for more (row_ahead_wants()).
 */
void row_ahead_put_off(struct row *row, uint64_t id, uint64_t placed);
/* Returns what the remembered ids may want when there is no room for more. Any thread inside. */
uint32_t row_ahead_wants(struct row *row, const struct row_table *table);
/*
 * True: others near this remembered id are remembered, too, and a table may open for them once
 * there are ROW_CLUSTER, or ROW_LEAP if they are the stream. Any thread inside.
 */
bool row_ahead_may_open(struct row *row, const struct row_table *table, uint64_t id);
/* True: the stream has left the table for ids ahead of it. Any thread inside. */
bool row_ahead_leaps(struct row *row, const struct row_table *table);
/* Copies the remembered ids of its range to ids, in the order they came. Any thread inside. */
size_t row_ahead_ids(struct row *row, const struct row_table *table, uint64_t ids[ROW_AHEAD_KEPT]);
/* Copies the newest of them, the newest first, each as often as it came. Any thread inside. */
#define ROW_AHEAD_NEWEST 512
size_t row_ahead_newest(struct row *row, const struct row_table *table,
                        uint64_t ids[ROW_AHEAD_NEWEST]);
/*
 * Forgets the remembered ids of the range that are not ahead of the table any more. Any thread
 * inside.
 */
void row_ahead_drop(struct row *row, const struct row_table *table);
/* Forgets all remembered ids of its range. Stopped. */
void row_ahead_forget(struct row *row, const struct row_table *table);
/* Those of the range of a table that is dropped are ahead of the one below now. Stopped. */
void row_ahead_hand_over(struct row *row, const struct row_table *gone,
                         const struct row_table *below);
/*
 * Remembers an ahead id of before a restart, as if it came when the table was empty. Nobody else
 * there.
 */
void row_ahead_restore(struct row *row, const struct row_table *table, uint64_t id);
/*
 * The remembered ids of its range came `more` admissions later than was noted (modulo 2^64).
 * Stopped.
 */
void row_ahead_shift(struct row *row, const struct row_table *table, uint64_t more);

/* row_regions.c: memory */

bool row_regions_init(struct row *row); /* false with errno, nothing left */
void row_regions_fini(struct row *row);
/* A free region of the configured size, or NULL. Stopped. */
struct row_region *row_region_take(struct row *row);
/* A free region of at least this many bytes, or NULL. Stopped. */
struct row_region *row_region_take_for(struct row *row, uint64_t bytes);
/*
 * Returns a region of exactly this many bytes, beyond the budget if need be. NULL: memory is
 * refused. Restoring.
 */
struct row_region *row_region_obtain(struct row *row, uint64_t bytes);
/* Zeroes a region that stays taken. Stopped or keeper. */
void row_region_clear(struct row *row, struct row_region *region);
/*
 * Takes back a region that no table uses any more, zeroed here. region NULL: nothing. Stopped or
 * keeper.
 */
void row_region_give(struct row *row, struct row_region *region);
/* Gives back free regions of another size and above the budget, makes what is missing. Keeper. */
void row_regions_tidy(struct row *row);
/* Makes a part of a region resident. False: there was nothing left to do. Any thread outside. */
bool row_populate_step(struct row *row);
/* Takes back the regions of dumped tables. Stopped or keeper. */
void row_regions_give_left(struct row *row);
/* True: `more` regions fit beside those of tables that are not about to be dumped. Stopped. */
bool row_fits(const struct row *row, size_t more);
size_t row_regions_free(const struct row *row); /* of the configured size; any thread */

/* row_tables.c: tables come and go; all stopped */

/*
 * Makes a table in a region, over want->base .. last; want gets the region. The table has no serial
 * and stands nowhere yet. NULL: refused; the region stays the caller's.
 */
struct row_table *row_make_table(struct row *row, struct row_want *want, uint64_t last,
                                 struct row_region *region);
/* The table begins at id: nothing above it has come yet. */
void row_start_at(struct row_table *table, uint64_t id);
/* Puts a table between the others. row_insert gives it the next serial, row_stand keeps its own. */
void row_insert(struct row *row, struct row_table *table);
void row_stand(struct row *row, struct row_table *table);
size_t row_index_of(const struct row *row, const struct row_table *table); /* it stands there */
/* Makes the only table of an empty row, in this region. NULL: memory is refused. */
struct row_table *row_first_table(struct row *row, struct row_region *region);
void row_note_closed(struct row *row, struct row_table *table);
/* Counts the ranges of recycled ids again, after they changed. */
void row_count_dropped(struct row *row);
void row_retire(struct row *row, struct row_table *table); /* and its layer: the keeper disposes */
void row_retire_all(struct row *row);
void row_retire_one(struct row *row, struct row_table *table); /* it stands nowhere */
void row_destroy_discarded(struct row *row); /* row_discard()'s. Any thread outside */

/* Returns whether it or a layer of it is to be dumped. */
static inline bool row_any_leaving(const struct row_table *table)
{
    while (table != NULL && !table->leaving) {
        table = table->further;
    }
    return table != NULL;
}

/* Its layers are to be dumped as well, those that are not. */
static inline void row_layers_leave(struct row_table *table)
{
    for (struct row_table *layer = table->further; layer != NULL; layer = layer->further) {
        layer->leaving = !layer->cold;
    }
}

/* Gives its layers all of the range of a table. */
static inline void row_follow_layer(struct row_table *table)
{
    for (struct row_table *layer = table->further; layer != NULL; layer = layer->further) {
        layer->last = table->last;
        atomic_store(&layer->frontier, table->last);
    }
}

/* Returns how many ids (pairs) it and its layers hold. */
static inline uint64_t row_count_all(const struct row_table *table)
{
    uint64_t count = 0;
    for (; table != NULL; table = table->further) {
        count += row_count_of(table);
    }
    return count;
}

/*
 * True: it may have one layer more, while it is in memory. Where its file would grow, one in all,
 * as it is dumped out of turn instead (row_admit.c). Any thread inside.
 */
static inline bool row_may_layer(const struct row *row, struct row_table *table)
{
    bool leaves = row->log != NULL && row_dumps(row) && table->grows_to > table->capacity;
    return !row_is_going(table) && row_last_layer(table)->layer < (leaves ? 1 : ROW_LAYERS_MAX);
}

/* row_apart.c: ids apart; all stopped, but row_apart_note, _removed, _is_passed and _passed */

/* Makes a table for ids apart, as described if that is not NULL. NULL: memory is refused. */
struct row_table *row_apart_make(struct row *row, const void *description, size_t bytes);
/* Makes that of a row which has none and needs one. False: memory is refused. */
bool row_apart_begin(struct row *row);
/* Destroys it. Nobody else there. */
void row_apart_end(struct row *row);
/* All ids apart go to `next`, which takes its place. False, `next` destroyed: memory is refused. */
bool row_apart_replace(struct row *row, struct row_table *next);
/* The same with one of the configuration of now. Puts APART. */
void row_apart_renew(struct row *row);
/* Forgets ids apart from first to last; returns how many records or pairs they were. */
uint64_t row_apart_forget(struct row *row, uint64_t first, uint64_t last);
/* An id of the range of `table` is to be put apart: counts it. Any thread inside. */
void row_apart_note(struct row *row, struct row_table *table, uint64_t id);
/* An id apart was removed from `apart`, which has counted that. Any thread inside. */
void row_apart_removed(struct row_table *apart, uint64_t id);
/* Counts anew what of it lies in which table's range. */
void row_apart_see(struct row *row);
/*
 * Puts in place what is not ahead of the table any more, as far as there is room in it. The log has
 * been asked for room; if there is more than that has room for, the table wants it again.
 */
void row_apart_place(struct row *row, struct row_table *table);
/* The log has no room for what the tables want so: the next id that lacks room apart asks again. */
void row_apart_put_off(struct row *row);
/* Returns a table for which that is true; NULL: there is none. Any thread inside. */
struct row_table *row_apart_passed(const struct row *row);

/* row_open.c: opening; all stopped */

#define ROW_REFUSED_MEMORY "memory was refused"

struct row_opening {
    uint64_t base;
    uint64_t low;       /* the smallest id expected; at least base */
    uint64_t reach_min; /* of the new table at least; 0: derived from the old one */
    bool jump;          /* for ahead ids */
    bool leap;          /* for ahead ids that are the stream, gone on elsewhere */
    bool end;           /* above the end of the table, which the stream is about to leave */
    /* For the bulk of these ids, however far apart: the known range does not hold. */
    const uint64_t *bulk;
    /* The ids of a jump. */
    size_t count;
    uint64_t high; /* the largest of them, strays left out */
};

/* Opens a table above `table`, or in its place where no id came in. Returns as row_serve. */
bool row_open(struct row *row, struct row_table *table, const struct row_opening *opening);
/* Leaves the ids ahead of it apart: the row does not ask again for each that comes. */
void row_leave_apart(struct row *row, struct row_table *table);
/* Lets the table ask again for what was refused for want of memory. */
void row_allow(struct row_table *table);
/* `next` stands above `table` from now on, or takes its place. */
void row_put_in(struct row *row, struct row_table *table, struct row_table *next);
/*
 * A table could not be made: frees its region and logs why, once; the request that needs the table
 * asks again after a while. why NULL: nothing is logged, and nothing is asked again.
 */
void row_give_up(struct row *row, struct row_table *table, struct row_region *region,
                 const char *why);

/* row_wants.c: what tables want; all stopped */

/*
 * Does or refuses what a table wants. True: call again once retired tables have been disposed of.
 */
bool row_serve(struct row *row, struct row_table *table);
void row_attach_layer(struct row_table *table, struct row_table *layer);

/* row_log.c: events; all stopped */

/*
 * Reserves room for the events of one row_serve. False: the log has none, and nothing may be
 * changed.
 */
bool row_log_room(struct row *row);
void row_log_await(struct row *row); /* takes that room before the world stops, waits for it */
/*
 * Puts an event; the table (or layer) is in its state after the event. Without a log: nothing; so
 * below.
 */
void row_log_put(struct row *row, enum change_event event, const struct row_table *table);
void row_log_drop(struct row *row, const struct row_table *table,
                  const struct row_dropped *dropped);
void row_log_whole(struct row *row, const struct row_table *table);

/*
 * Returns the table (or layer) of the image, touched or not. NULL: it is recycled. Stopped, or
 * inside.
 */
struct row_table *row_image_owner(const struct row *row, const struct row_image *image);

/* row_keep.c */

/* The same room, and new ids are refused for a while if there is none. Stopped. */
bool row_keep_log_room(struct row *row);
/* Destroys retired tables and frees their memory. Keeper, or nobody else there. */
void row_dispose(struct row *row);
/* Has every table's limits and ends worked out again: they may have changed. Stopped. */
void row_look_again(struct row *row);

/* row_cold.c: dumps; all stopped */

/* The table is to be dumped, with its layer. */
void row_cold_leave(struct row *row, struct row_table *table);
/* Its changes, and those of its layer, are whole from here on: WHOLE was put, or replayed. */
void row_cold_make_whole(struct row_table *table);
/* The same, and puts WHOLE, unless it is so already. */
void row_cold_go_whole(struct row *row, struct row_table *table);
/* The image of its dump begins. */
void row_cold_tap(struct row *row, struct row_table *table);
/* The table is not to be dumped any more, unless its image has begun; nor is its layer. */
void row_cold_stay(struct row_table *table);
/*
 * Gives up its image, so that another one may begin; requests that wait for it are looked at again.
 */
void row_cold_untap(struct row *row, struct row_table *table);
/* Tries again what failed or was refused; a dump by the next round. */
void row_cold_try(struct row *row);
/*
 * Sets the time before which nothing is tried again; the request that needs it asks then.
 * row_keep.c
 */
void row_pause(struct row *row);
/* Looks again at which tables are to be dumped. */
void row_cold_see(struct row *row);

/* row_follow.c: all stopped */

/* An event was replayed on a row that follows. */
void row_follow_carried(struct row *row, enum change_event event);
/* The keeper's part of a row that follows. */
void row_follow_maintain(struct row *row);

/* row_merge.c: all stopped */

/* A round begins: overlays of tables that nobody changes count, too, where all hold too much. */
void row_merge_see(struct row *row);
/* Begins the merge that is due, and returns its table; NULL: none is. */
struct row_table *row_merge_next(struct row *row);
/* True: this merge of the table is under way. table NULL: false. */
bool row_merge_is(const struct row_table *table, const struct row_image *image);
/* As table_kind.file_end, with a file. */
struct table_file *row_merge_end(struct row *row, struct row_table *table, struct table_file *file);
/*
 * Called after a merge failed: its overlays are to become one again (row/row_fold.h),
 * row->merge_paused is set until the round is over, and this table is not merged for some seconds.
 */
void row_merge_failed(struct row *row, struct row_table *table);
/* For some seconds the table is not merged: row_merge_may() is false, and then a round is wanted.
 */
void row_merge_pause(struct row *row, struct row_table *table);
bool row_merge_may(const struct row_table *table); /* inside */

/* row_restore.c: as row_restore_table and row_cold_restore. */
struct row_restoring {
    unsigned layer; /* 0: a table */
    bool cold;
    uint64_t start_lsn;
};
struct row_table *row_restore_as(struct row *row, const void *table_bytes, size_t length,
                                 const struct row_restoring *restoring, char error[ROW_ERROR_MAX]);

/* row_replay.c: makes it a row of no tables, with nothing noted; ids apart stay. Nobody else there.
 */
void row_replay_forget(struct row *row);

/*
 * Call when the ids it (or its layer) holds have changed: an image that was begun is of no use.
 * Stopped.
 */
void row_touch(struct row_table *table);

/* Returns the bounds the tables were made by: in a row that follows, the other node's. */
struct row_bounds row_bounds(const struct row *row);

#endif
