/* row_replay.c: events and creations happen again, nobody else there. What decided them is not
 * asked any more; what follows from them goes through the functions it went through before. */
#include <string.h>

#include "row/row_parts.h"
#include "row/row_room.h"
#include "row/row_state.h"

void row_replay_forget(struct row *row)
{
    row_retire_all(row);
    if (!row->follows) {
        row_dispose(row);
    }
    row_lock(row);
    row->sample_count = 0;
    row->ahead_count = 0;
    row->unseen_count = 0;
    row->noted = 0;
    row_unlock(row);
    row_stream_forget(row);
}

/* ---- events ---- */

/*
 * Its file was lost, and a repair gave it up: the lowest one as if it had been the oldest, another
 * one with its range to the table below (row_state_amend). What is told of it since then concerns
 * nobody.
 */
static bool was_lost(const struct row *row, uint64_t base)
{
    const struct row_table *table = row_find(row, base);
    bool below = row->count > 0 && base < row->bases[0] && !row->config.any_ids;
    return below ||
           (table != NULL && table->base != base && row_dropped_has(&table->dropped, base));
}

/* A new table has a serial that none had. */
static bool take_serial(struct row *row, const struct row_state *state, char error[ROW_ERROR_MAX])
{
    if (state->serial < row->serials) {
        return row_fail(error, "table %llu is opened after table %llu",
                        (unsigned long long)state->serial, (unsigned long long)row->serials - 1);
    }
    row->serials = state->serial;
    return true;
}

static bool replay_first(struct row *row, const struct row_described *described, uint64_t lsn,
                         char error[ROW_ERROR_MAX])
{
    const struct row_state *state = &described->state;
    bool settled = row_state_has(state, ROW_STATE_SETTLED);
    if (settled != row->config.any_ids || state->count != 0 || state->base != 0 ||
        state->last != ROW_ID_MAX) {
        return row_fail(error, "table %llu is no first one", (unsigned long long)state->serial);
    }
    bool had_apart = row->apart != NULL;
    row_replay_forget(row);
    (void)row_apart_forget(row, 0, ROW_ID_MAX);
    if (!take_serial(row, state, error)) {
        return false;
    }
    struct row_table *table = row_state_make(row, described, NULL, error);
    if (table == NULL) {
        return false;
    }
    table->start_lsn = lsn;
    row_insert(row, table);
    if (!row_apart_begin(row)) {
        return row_fail(error, "no memory for ids apart");
    }
    if (!had_apart && row->apart != NULL) {
        row->apart->start_lsn = lsn;
    }
    return true;
}

/* One that had settled before has come to its end. */
static bool replay_end(struct row *row, const struct row_state *state, char error[ROW_ERROR_MAX])
{
    struct row_table *table = row_find(row, state->base);
    if (was_lost(row, state->base)) {
        return true;
    }
    if (table == NULL || table->serial != state->serial || state->frontier > table->last ||
        row->config.any_ids) {
        return row_fail(error, "table %llu ends, but is not there to do so",
                        (unsigned long long)state->serial);
    }
    row_raise_to(&table->trusted, state->trusted);
    row_raise_to(&table->frontier, state->frontier);
    row_note_closed(row, table);
    row_touch(table);
    return true;
}

/* The frontier it ended with says what goes in place; the window follows from `low`. */
static bool replay_settle(struct row *row, const struct row_described *described, uint64_t lsn,
                          char error[ROW_ERROR_MAX])
{
    (void)lsn;
    const struct row_state *state = &described->state;
    struct row_table *table = row->count == 1 ? row->tables[0] : NULL;
    if (table == NULL || table->settled) {
        return replay_end(row, state, error);
    }
    if (table->serial != state->serial || !row_state_has(state, ROW_STATE_SETTLED)) {
        return row_fail(error, "table %llu settles, but is not there to do so",
                        (unsigned long long)state->serial);
    }
    table->low = state->low;
    table->settled = true;
    row_start_at(table, state->trusted);
    atomic_store(&table->frontier, state->frontier);
    if (row->kind->settle != NULL) {
        row->kind->settle(row->engine, table);
    }
    table->range = state->range;
    table->reach_min = state->reach_min;
    row_note_closed(row, table);
    row_touch(table);
    return true;
}

/* As row_open() made it. */
static void start_table(struct row_table *next, const struct row_state *state)
{
    atomic_store(&next->count, 0);
    atomic_store(&next->apart, 0);
    atomic_store(&next->gone, 0);
    atomic_store(&next->late, 0);
    id_span_clear(&next->ids);
    next->closed = false;
    next->jumped = row_state_has(state, ROW_STATE_JUMPED);
}

/* The table it was opened from; NULL: there is none that it could be. */
static struct row_table *opened_from(const struct row *row, const struct row_state *state)
{
    struct row_table *from = row_find(row, state->base);
    bool sound =
        from != NULL && from->settled && !row->config.any_ids &&
        row_state_has(state, ROW_STATE_SETTLED) && from->last == state->last &&
        row->count < ROW_ROUTES_MAX &&
        (state->flags & (ROW_STATE_LAYER | ROW_STATE_LAYERED)) == 0 &&
        (state->base == from->base ? row_count_of(from) == 0 : state->base > row_frontier_of(from));
    return sound ? from : NULL;
}

/*
 * A live table's frontier may have gone further than what was created: an id that found no place
 * left it so. The step says how far it had come; where it is its whole range, it closes.
 */
static void catch_up(struct row_table *from, const struct row_state *state)
{
    uint64_t reached = state->low - state->step;
    if (state->step <= state->low && reached < state->base) {
        row_raise_to(&from->frontier, reached);
    }
}

static bool replay_open(struct row *row, const struct row_described *described, uint64_t lsn,
                        char error[ROW_ERROR_MAX])
{
    const struct row_state *state = &described->state;
    struct row_table *from = opened_from(row, state);
    if (from == NULL) {
        return row_fail(error, "table %llu is opened at %llu, where no table can be followed",
                        (unsigned long long)state->serial, (unsigned long long)state->base);
    }
    struct row_table *next =
        take_serial(row, state, error) ? row_state_make(row, described, NULL, error) : NULL;
    if (next == NULL) {
        return false;
    }
    start_table(next, state);
    catch_up(from, state);
    next->start_lsn = lsn;
    row_put_in(row, from, next);
    row_see_activity(row);
    return true;
}

static bool replay_layer(struct row *row, const struct row_described *described, uint64_t lsn,
                         char error[ROW_ERROR_MAX])
{
    if (was_lost(row, described->state.base)) {
        return true;
    }
    struct row_table *layer = row_state_make_layer(row, described, error);
    if (layer == NULL) {
        return false;
    }
    struct row_table *table = row_find(row, layer->base);
    layer->start_lsn = lsn;
    /* Only a closed one gets its first layer; after that it may take a range over. */
    if (table->further == layer) {
        atomic_store(&table->frontier, table->last);
        row_note_closed(row, table);
    }
    return true;
}

static bool replay_apart(struct row *row, const struct row_described *described, uint64_t lsn,
                         char error[ROW_ERROR_MAX])
{
    unsigned long long serial = described->state.serial;
    if (row->apart == NULL || !row_state_has(&described->state, ROW_STATE_APART) ||
        serial <= row->apart->serial) {
        return row_fail(error, "table %llu is none for ids apart", serial);
    }
    struct row_table *next = row_state_make_apart(row, described, error);
    if (next == NULL) {
        return false;
    }
    atomic_store(&next->count, 0);
    next->start_lsn = lsn;
    return row_apart_replace(row, next) ||
           row_fail(error, "table %llu does not take the ids apart", serial);
}

static bool replay_drop(struct row *row, const void *bytes, size_t length,
                        char error[ROW_ERROR_MAX])
{
    uint64_t serial;
    uint64_t base;
    struct row_dropped dropped;
    if (!row_drop_read(bytes, length, &serial, &base, &dropped)) {
        return row_fail(error, "%zu bytes name no table", length);
    }
    if (was_lost(row, base)) {
        return true;
    }
    struct row_table *table = row_find(row, base);
    bool there = table != NULL && table->base == base && table->serial == serial;
    size_t at = there ? row_index_of(row, table) : 0;
    uint64_t first = at > 0 ? row->tables[at - 1]->base : base;
    if (!there || row->count == 1 || !row_dropped_sound(&dropped, first, table->last)) {
        return row_fail(error, "table %llu is dropped, but is not there",
                        (unsigned long long)serial);
    }
    row_drop(row, table, &dropped);
    return true;
}

static bool replay_whole(struct row *row, const void *bytes, size_t length,
                         char error[ROW_ERROR_MAX])
{
    uint64_t words[ROW_WHOLE_BYTES / sizeof(uint64_t)];
    if (length != sizeof(words)) {
        return row_fail(error, "%zu bytes name no table", length);
    }
    memcpy(words, bytes, sizeof(words));
    if (was_lost(row, words[1])) {
        return true;
    }
    struct row_table *table = row_find(row, words[1]);
    if (table == NULL || table->base != words[1] || table->serial != words[0] || !table->settled) {
        return row_fail(error, "table %llu is to be whole, but is not there",
                        (unsigned long long)words[0]);
    }
    row_cold_make_whole(table);
    return true;
}

typedef bool replay_fn(struct row *row, const struct row_described *described, uint64_t lsn,
                       char error[ROW_ERROR_MAX]);

static replay_fn *const REPLAYS[] = {
    [CHANGE_EVENT_FIRST] = replay_first, [CHANGE_EVENT_SETTLE] = replay_settle,
    [CHANGE_EVENT_OPEN] = replay_open,   [CHANGE_EVENT_LAYER] = replay_layer,
    [CHANGE_EVENT_APART] = replay_apart, [CHANGE_EVENT_PART] = row_parts_replay,
};

static bool replay_table(struct row *row, enum change_event event, uint64_t lsn, const void *bytes,
                         size_t length, char error[ROW_ERROR_MAX])
{
    struct row_described described;
    replay_fn *replay =
        (size_t)event < sizeof(REPLAYS) / sizeof(REPLAYS[0]) ? REPLAYS[event] : NULL;
    if (replay == NULL) {
        return row_fail(error, "event %d is none of tables", (int)event);
    }
    return row_state_parse(row, bytes, length, &described, error) &&
           replay(row, &described, lsn, error);
}

bool row_replay_table(struct row *row, enum change_event event, uint64_t lsn, const void *bytes,
                      size_t length, char error[ROW_ERROR_MAX])
{
    CHECK(row->log == NULL);
    bool done = event == CHANGE_EVENT_DROP    ? replay_drop(row, bytes, length, error)
                : event == CHANGE_EVENT_WHOLE ? replay_whole(row, bytes, length, error)
                                              : replay_table(row, event, lsn, bytes, length, error);
    if (row->follows) {
        row_follow_carried(row, event);
    } else {
        row_dispose(row);
    }
    return done;
}

/* ---- creations ---- */

/* As row_admit() went on when it had decided. */
static void came_inside(struct row *row, struct row_table *table, uint64_t id, bool counted)
{
    bool late = table->closed || table->further != NULL;
    if (late || row->config.any_ids) {
        row_raise_to(&table->frontier, row->parted ? 0 : id);
        atomic_fetch_add(&table->late, late && counted);
        return;
    }
    row_pass(table, id);
    if (row_is_filled(table, row_count_of(table))) {
        row_note_closed(row, table);
    }
}

void row_replay_created(struct row *row, struct row_table *table, struct row_table *holder,
                        uint64_t id, bool counted)
{
    CHECK(row->config.any_ids || (table->base <= id && id <= table->last));
    CHECK(holder == table || holder->base == table->base);
    row_changed(holder);
    atomic_fetch_add(&holder->count, counted);
    id_span_note(&table->ids, id);
    came_inside(row, table, id, counted);
}

void row_replay_apart(struct row *row, uint64_t id, bool counted)
{
    struct row_table *table = row_find(row, id);
    row_changed(row->apart);
    atomic_fetch_add(&row->apart->count, counted);
    id_span_note(&row->apart->ids, id);
    if (table != NULL) {
        id_span_note(&table->ids, id);
        atomic_fetch_add(&table->apart, counted);
        row_lower_to(&table->apart_first, id); /* who reads meanwhile looks there */
    }
}
