/* row_admit.c: what workers ask the row for. */
#include "row/row_private.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"

#define WAITED_PAUSE_US 1000000u
#define COLD_FILL_PART  64 /* a dumped part takes 1/64 more than its fill while it waits to grow */
#define PLACE_ONE_IN    8u /* ids apart: where the frontier has passed one the room is looked at */

void row_lock(const struct row *row)
{
    CHECK(pthread_mutex_lock((pthread_mutex_t *)&row->lock) == 0);
}

void row_unlock(const struct row *row)
{
    CHECK(pthread_mutex_unlock((pthread_mutex_t *)&row->lock) == 0);
}

void row_ask(struct row *row)
{
    if (!atomic_exchange(&row->asked, true)) {
        row_notify(row->keeper);
    }
}

void row_want(struct row *row, struct row_table *table, uint32_t bits)
{
    if ((atomic_fetch_or(&table->wants, bits) & bits) != bits) {
        row_ask(row);
    }
}

bool row_asked(const struct row *row)
{
    return atomic_load(&row->asked);
}

static bool wants_any(const struct row_table *table, uint32_t bits)
{
    return (atomic_load_explicit(&table->wants, memory_order_relaxed) & bits) != 0;
}

/*
 * Notes an id that came in. With several threads a round may miss one, which does no harm: all are
 * recent. At its end the table takes late ids alone, whether the keeper has closed it yet or not:
 * replay, which cannot know when it did, says the same.
 */
void row_pass(struct row_table *table, uint64_t id)
{
    if (row_frontier_of(table) == table->last) {
        return;
    }
    row_raise_to(&table->frontier, id);
    if (id <= atomic_load_explicit(&table->trusted, memory_order_relaxed)) {
        return;
    }
    row_lower_to(&table->newer_least, id);
    if (atomic_fetch_add(&table->newer, 1) + 1 == ROW_CLUSTER) {
        uint64_t least = atomic_exchange(&table->newer_least, UINT64_MAX);
        atomic_store(&table->newer, 0);
        row_raise_to(&table->trusted, least == UINT64_MAX ? 0 : least);
    }
}

/* Returns whether a request may have the keeper try again. All may once the pause is over, until
 * the keeper has tried and sets the next one: it is one try, which row_ask() tells it of once. */
static bool may_ask(struct row *row, const _Atomic uint64_t *from_us)
{
    bool due = row_is_due(from_us);
    if (due) {
        row_ask(row);
    }
    return due;
}

/*
 * The row is to change first: ROW_WAIT. While the log has no room for that, or the last change did
 * not come in time, it is refused instead: a waiting request would be woken only to wait again, and
 * keep the keeper busy. Whether a table is free nobody has looked.
 */
static enum row_verdict wait_for(struct row *row, struct row_table *table, uint32_t bits)
{
    bool denied = atomic_load(&row->denied) && !may_ask(row, &row->denied_us);
    bool waited = atomic_load(&row->waited_us) != 0 && !may_ask(row, &row->waited_us);
    if (UNLIKELY(denied || waited)) {
        return ROW_BUSY;
    }
    row_want(row, table, bits);
    return ROW_WAIT;
}

/* A closed one is dumped out of turn if it is not going yet: its file takes more. */
static enum row_verdict row_leave_full(struct row *row, struct row_table *table,
                                       const struct row_table *holder)
{
    bool grows = row->cold != NULL && holder->grows_to > holder->capacity && !holder->cold;
    if (!grows || !(row->config.dump || table->leaving)) {
        return ROW_NO_TABLE;
    }
    if (row->dump_failed) {
        (void)may_ask(row, &row->again_us);
        return ROW_NO_TABLE;
    }
    return wait_for(row, table, row_is_going(table) ? 0 : ROW_WANT_LEAVE);
}

static enum row_verdict full(struct row *row, struct row_table *table, uint32_t bit)
{
    bool refused = table->refused || (bit == ROW_WANT_LAYER && table->refused_layer);
    if (refused && !may_ask(row, &row->again_us)) {
        return ROW_NO_TABLE;
    }
    return wait_for(row, table, bit);
}

enum row_verdict row_no_memory(struct row *row, struct row_table *table, bool anew)
{
    if (row->parted) {
        return full(row, table, ROW_WANT_GROW_NOW);
    }
    struct row_table *holder = row_last_layer(table);
    bool late = row_is_late(table) || (table->settled && row_is_going(table));
    if (late && anew && row_may_layer(row, table)) {
        atomic_store(&holder->starved, true);
        return full(row, table, ROW_WANT_LAYER);
    }
    return late ? row_leave_full(row, table, holder) : ROW_NO_TABLE;
}

/* A part is nearly full: it is to grow before somebody has to wait for it. */
static void part_filled(struct row *row, struct row_table *part)
{
    if (!part->refused || may_ask(row, &row->again_us)) {
        row_want(row, part, ROW_WANT_GROW);
    }
}

static enum row_verdict admit_any(struct row *row, struct row_table *table, uint64_t id)
{
    uint64_t count;
    if (!row_take_place(table, &count)) {
        return ROW_NO_TABLE;
    }
    if (UNLIKELY(table->cold) && count > table->fill + table->fill / COLD_FILL_PART) {
        atomic_fetch_sub_explicit(&table->count, 1, memory_order_relaxed);
        return full(row, table, ROW_WANT_GROW_NOW);
    }
    if (!row->parted) {
        row_raise_to(&table->frontier, id);
    } else if (UNLIKELY(count >= table->fill)) {
        part_filled(row, table);
    }
    id_span_note(&table->ids, id);
    return ROW_INSIDE;
}

static enum row_verdict admit_unsettled(struct row *row, struct row_table *table, uint64_t id)
{
    row_lock(row);
    bool taken = row->sample_count < row->config.sample;
    if (taken) {
        row->sample[row->sample_count++] = id;
    }
    bool is_full = row->sample_count >= row->config.sample; /* it may have been larger */
    row_unlock(row);
    if (!taken) {
        return wait_for(row, table, ROW_WANT_SETTLE);
    }
    if (is_full) {
        row_want(row, table, ROW_WANT_SETTLE);
    }
    row_apart_note(row, table, id);
    return ROW_APART;
}

static enum row_verdict admit_late(struct row *row, struct row_table *table, uint64_t id)
{
    uint64_t count;
    struct row_table *holder = row_last_layer(table);
    if (!row_take_place(holder, &count)) {
        return row_may_layer(row, table) ? full(row, table, ROW_WANT_LAYER)
                                         : row_leave_full(row, table, holder);
    }
    atomic_fetch_add_explicit(&table->late, 1, memory_order_relaxed);
    row_stream_note(row, table, id, row_came(table) + atomic_load(&table->late));
    id_span_note(&table->ids, id);
    return ROW_INSIDE;
}

/*
 * While a table is about to open for ahead ids, no more are looked at. A dump may have to come
 * first, and many may come that lie above what opens: by the newest of them the stream is known.
 */
static void admit_ahead(struct row *row, struct row_table *table, uint64_t id)
{
    if (atomic_load(&table->apart) % PLACE_ONE_IN == 0) {
        row_lower_to(&table->place_at, id);
    }
    row_apart_note(row, table, id);
    if (table->refused || wants_any(table, ROW_WANT_CLUSTER | ROW_WANT_BULK)) {
        row_ahead_put_off(row, id, row_admitted(table));
        return;
    }
    uint32_t bits = row_ahead_note(row, table, id, row_admitted(table));
    if (bits != 0) {
        row_want(row, table, bits);
    }
}

/*
 * Up to clear_to an id is neither ahead nor near the table's end: limits only rise until the row
 * changes, which sets it to 0, where it is known how dense ids are.
 */
static void see_clear(struct row_table *table)
{
    uint64_t limit = row_limit(table);
    uint64_t near = row_end(table) - table->range / ROW_NEAR_PART;
    uint64_t clear_to = table->range == 0 ? 0 : limit < near ? limit : near;
    atomic_store_explicit(&table->clear_to, clear_to, memory_order_relaxed);
}

/* Returns whether another table is to open, or this one to close. */
static bool is_left(const struct row *row, const struct row_table *table, uint64_t count,
                    bool clear)
{
    bool look = count >= table->fill || row_frontier_of(table) == table->last;
    return (UNLIKELY(look) && row_is_filled(table, count)) || (!clear && row_ends(row, table));
}

/* Returns whether the stream will be there before all tables are full, so that it is worth trying
 * again. */
static bool is_within_row(const struct row *row, const struct row_table *table, uint64_t id)
{
    uint64_t limit = row_limit(table);
    return id <= limit || (id - limit) / row->config.tables < row_reach(table);
}

/* True: the next table is about to open, and may be that of this id: it need not go apart first. */
static bool is_next(const struct row *row, const struct row_table *table, uint64_t id)
{
    return !table->refused && wants_any(table, ROW_WANT_OPEN) && is_within_row(row, table, id);
}

static enum row_verdict admit_open(struct row *row, struct row_table *table, uint64_t id)
{
    uint64_t count = row_count_of(table);
    enum row_verdict verdict = ROW_INSIDE;
    bool clear = id <= atomic_load_explicit(&table->clear_to, memory_order_relaxed);
    if (UNLIKELY(!clear)) {
        see_clear(table);
    }
    bool ahead = !clear && id > row_frontier_of(table) && id > row_limit(table);
    if (ahead && is_next(row, table, id)) {
        return wait_for(row, table, ROW_WANT_OPEN);
    }
    if (ahead && count < table->capacity) { /* a full one waits for the next, whatever comes */
        admit_ahead(row, table, id);
        verdict = ROW_APART;
    } else if (!ahead && row_take_place(table, &count)) {
        row_pass(table, id);
        id_span_note(&table->ids, id);
    } else {
        return full(row, table, ROW_WANT_OPEN);
    }
    row_stream_note(row, table, id, row_came(table));
    if (UNLIKELY(is_left(row, table, count, clear)) && !table->refused &&
        !wants_any(table, ROW_WANT_OPEN)) {
        row_want(row, table, ROW_WANT_OPEN);
    }
    return verdict;
}

/* Admits an id to a table that leaves or is dumped: an id above it would have to be apart, or to
 * move. */
static enum row_verdict admit_going(struct row *row, struct row_table *table, uint64_t id)
{
    uint64_t count;
    if (id > row_frontier_of(table)) {
        return full(row, table, ROW_WANT_OPEN);
    }
    if (!row_take_place(table, &count)) {
        return row_leave_full(row, table, table);
    }
    row_pass(table, id);
    id_span_note(&table->ids, id);
    return ROW_INSIDE;
}

enum row_verdict row_admit(struct row *row, struct row_table *table, uint64_t id)
{
    if (row->config.any_ids) {
        return admit_any(row, table, id);
    }
    CHECK(table->base <= id && id <= table->last);
    if (UNLIKELY(!table->settled)) {
        return admit_unsettled(row, table, id);
    }
    if (LIKELY(!table->closed && table->further == NULL)) {
        return row_is_going(table) ? admit_going(row, table, id) : admit_open(row, table, id);
    }
    /* A layered one that took over the range above it takes none of that: another opens for it. */
    bool late = table->closed || id <= row_frontier_of(table);
    return late ? admit_late(row, table, id) : full(row, table, ROW_WANT_OPEN);
}

enum row_verdict row_admit_again(struct row *row, uint64_t id)
{
    struct row_table *table = row_find(row, id);
    bool reached = table != NULL && id > row_frontier_of(table) &&
                   row_dropped_next(&table->dropped, row_frontier_of(table)) <= id &&
                   row_stream_comes_to(row, table, id);
    return reached ? full(row, table, ROW_WANT_REACH) : ROW_BELOW;
}

void row_removed(struct row_table *table, struct row_table *holder, uint64_t id)
{
    CHECK(holder == table || holder->base == table->base);
    CHECK(atomic_fetch_sub_explicit(&holder->count, 1, memory_order_relaxed) > 0);
    if (table->is_apart) {
        row_apart_removed(table, id);
    } else {
        atomic_fetch_add_explicit(&table->gone, 1, memory_order_relaxed);
    }
}

static enum row_verdict unsettled_too_far(struct row *row, struct row_table *table)
{
    row_lock(row);
    bool enough = row->sample_count >= ROW_SAMPLE_MIN;
    row_unlock(row);
    if (!enough) {
        return ROW_TOO_FAR;
    }
    return wait_for(row, table, ROW_WANT_SETTLE);
}

enum row_verdict row_too_far(struct row *row, struct row_table *table, uint64_t id)
{
    if (!table->settled) {
        return unsettled_too_far(row, table);
    }
    if (wants_any(table, ROW_WANT_CLUSTER | ROW_WANT_BULK | ROW_WANT_OPEN)) {
        return wait_for(row, table, 0);
    }
    struct row_table *passed = row_apart_passed(row);
    if (passed != NULL) {
        return wait_for(row, passed, ROW_WANT_PLACE);
    }
    if (table->refused || table->refused_jump) { /* what is ahead may be the stream itself */
        (void)may_ask(row, &row->again_us);
        return ROW_NO_TABLE;
    }
    row_stream_refused(row, id);
    uint32_t wants = row_ahead_wants(row, table);
    if (wants != 0) {
        return wait_for(row, table, wants);
    }
    bool helps = is_within_row(row, table, id) || row_stream_is_above(row, table) ||
                 row_ahead_may_open(row, table, id);
    return helps ? ROW_NO_TABLE : ROW_TOO_FAR;
}

void row_wait(struct row *row, const struct ticket *ticket)
{
    row_lock(row);
    struct row_waiters *waiters = &row->waiters;
    waiters->tickets =
        array_room(waiters->tickets, waiters->count, &waiters->room, sizeof(*waiters->tickets));
    waiters->tickets[waiters->count++] = *ticket;
    row->waits++;
    row_unlock(row);
}

void row_wake(struct row *row)
{
    row_lock(row);
    struct row_waiters woken = row->waiters;
    row->waiters = (struct row_waiters){0};
    row_unlock(row);
    for (size_t i = 0; i < woken.count; i++) {
        if (woken.tickets[i].wake != NULL) {
            ticket_wake(&woken.tickets[i]);
        }
    }
    free(woken.tickets);
}

void row_waited(struct row *row)
{
    atomic_store(&row->waited_us, clock_monotonic_us() + WAITED_PAUSE_US);
    row_wake(row);
}
