/* row_state.c: a table's state to bytes, back, and checked; tables made of it. */
#include "row/row_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "row/row_private.h"

_Static_assert(sizeof(struct row_state) == ROW_STATE_BYTES, "a state is words alone");

static const char *const NAMES[] = {
    "version",       "flags",
    "serial",        "base",
    "range_last",    "window_last",
    "low",           "step",
    "range",         "reach_least",
    "capacity",      "fill",
    "opened_at",     "description_bytes",
    "closed_serial", "frontier",
    "trusted",       "newer_least",
    "newer",         "count",
    "gone",          "late",
    "apart",         "first_id",
    "last_id",       "dropped_ranges",
};
#define NAMES_COUNT (sizeof(NAMES) / sizeof(NAMES[0]))

bool row_fail(char error[ROW_ERROR_MAX], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, ROW_ERROR_MAX, format, arguments);
    va_end(arguments);
    return false;
}

/* -- to bytes -- */

static uint64_t flags_of(const struct row *row, const struct row_table *table)
{
    uint64_t flags = 0;
    flags |= table->settled ? ROW_STATE_SETTLED : 0;
    flags |= table->closed ? ROW_STATE_CLOSED : 0;
    flags |= table->jumped ? ROW_STATE_JUMPED : 0;
    flags |= table->layer > 0 ? ROW_STATE_LAYER : 0;
    flags |= table->is_apart ? ROW_STATE_APART : 0;
    flags |= table->further != NULL ? ROW_STATE_LAYERED : 0;
    flags |= table->whole ? ROW_STATE_WHOLE : 0;
    flags |= row->config.any_ids ? ROW_STATE_ANY_IDS : 0;
    return flags;
}

/* Writes the state in front of the kind's `length` bytes. */
static size_t row_state_describe(const struct row *row, const struct row_table *table,
                                 unsigned doubles, unsigned char bytes[ROW_TABLE_BYTES_MAX],
                                 size_t length)
{
    CHECK(length <= ROW_DESCRIPTION_MAX);
    struct row_state state = {.version = ROW_STATE_VERSION,
                              .flags = flags_of(row, table),
                              .serial = table->serial,
                              .base = table->base,
                              .last = table->last,
                              .window_last = table->window_last,
                              .low = table->low,
                              .step = table->step,
                              .range = table->range,
                              .reach_min = table->reach_min,
                              .capacity = table->capacity << doubles,
                              .fill = table->fill << doubles,
                              .opened_s = table->opened_s,
                              .description_bytes = length,
                              .closed_serial = table->closed_serial,
                              .frontier = row_frontier_of(table),
                              .trusted = atomic_load(&table->trusted),
                              .newer_least = atomic_load(&table->newer_least),
                              .newer = atomic_load(&table->newer),
                              .count = row_count_of(table),
                              .gone = atomic_load(&table->gone),
                              .late = atomic_load(&table->late),
                              .apart = atomic_load(&table->apart),
                              .first_id = id_span_first(&table->ids),
                              .last_id = id_span_last(&table->ids)};
    for (uint64_t i = 0; i < table->dropped.count; i++) {
        state.dropped.at[i] = table->dropped.at[i];
    }
    state.dropped.count = table->dropped.count;
    memcpy(bytes, &state, sizeof(state));
    return ROW_STATE_BYTES + length;
}

size_t row_describe_table(const struct row *row, const struct row_table *table,
                          unsigned char bytes[ROW_TABLE_BYTES_MAX])
{
    return row_state_describe(row, table, 0, bytes,
                              row->kind->describe(table, bytes + ROW_STATE_BYTES, NULL));
}

size_t row_describe_next(const struct row *row, const struct row_table *table,
                         unsigned char bytes[ROW_TABLE_BYTES_MAX])
{
    unsigned doubles = 0;
    size_t length = row->kind->describe(table, bytes + ROW_STATE_BYTES, &doubles);
    return row_state_describe(row, table, doubles, bytes, length);
}

/* -- back -- */

/* Where no range is, nothing is. */
static bool dropped_is_clean(const struct row_dropped *dropped)
{
    bool clean = dropped->count <= ROW_DROPPED_MAX;
    for (uint64_t i = dropped->count; clean && i < ROW_DROPPED_MAX; i++) {
        clean = dropped->at[i].first == 0 && dropped->at[i].last == 0;
    }
    return clean;
}

/* Returns whether this is a state of this version, zero where it must be, with all of the
 * description. */
static bool is_state(const struct row_state *state, size_t length)
{
    return state->version == ROW_STATE_VERSION &&
           (state->flags & ~(uint64_t)ROW_STATE_FLAGS) == 0 && dropped_is_clean(&state->dropped) &&
           state->description_bytes == length - ROW_STATE_BYTES;
}

static bool read_state(const void *bytes, size_t length, struct row_state *state)
{
    if (length < ROW_STATE_BYTES || length > ROW_TABLE_BYTES_MAX) {
        return false;
    }
    memcpy(state, bytes, sizeof(*state));
    return is_state(state, length);
}

bool row_state_read(const void *bytes, size_t length, row_state_field *field, void *context,
                    size_t *description)
{
    struct row_state state;
    uint64_t words[ROW_STATE_WORDS];
    if (!read_state(bytes, length, &state)) {
        return false;
    }
    memcpy(words, &state, sizeof(words));
    for (size_t i = 0; i < NAMES_COUNT; i++) {
        field(context, NAMES[i], words[i]);
    }
    for (uint64_t i = 0; i < state.dropped.count; i++) {
        field(context, "dropped_first", state.dropped.at[i].first);
        field(context, "dropped_last", state.dropped.at[i].last);
    }
    *description = ROW_STATE_BYTES;
    return true;
}

/* Takes a range over as take_over() of row_room.c does it for a table that is dropped. */
static uint64_t reach_to(struct row_state *state, uint64_t last)
{
    uint64_t left_out = row_dropped_add(&state->dropped, state->last + 1, last);
    state->frontier = state->frontier == state->last ? last : state->frontier;
    state->last = last;
    return left_out;
}

bool row_state_amend(void *bytes, size_t length, const struct row_amend *amend, bool *changed,
                     uint64_t *left_out)
{
    struct row_state state;
    *changed = false;
    *left_out = 0;
    if (!read_state(bytes, length, &state) || amend->last < state.last ||
        row_state_has(&state, ROW_STATE_ANY_IDS) || row_state_has(&state, ROW_STATE_APART)) {
        return false;
    }
    if (row_state_has(&state, ROW_STATE_LAYERED) && !amend->layered) {
        state.flags &= ~(uint64_t)ROW_STATE_LAYERED;
        *changed = true;
    }
    if (amend->last > state.last) {
        *left_out = reach_to(&state, amend->last);
        *changed = true;
    }
    memcpy(bytes, &state, sizeof(state));
    return true;
}

static bool range_is_sound(const struct row_state *s)
{
    return s->base <= s->last && s->last <= ROW_ID_MAX && s->low >= s->base &&
           s->low <= ROW_ID_MAX && s->range <= ROW_ID_MAX && s->serial < ROW_ID_MAX &&
           row_dropped_sound(&s->dropped, s->base, s->last);
}

/* As row_check() wants it: R2, R3. */
static bool frontier_is_sound(const struct row_state *s)
{
    bool closed = row_state_has(s, ROW_STATE_CLOSED);
    return s->frontier <= s->last && (s->base == 0 || s->frontier >= s->base - 1) &&
           s->trusted <= s->frontier && s->newer < ROW_CLUSTER &&
           (!closed || (row_state_has(s, ROW_STATE_SETTLED) && s->frontier == s->last));
}

/* R6 */
static bool counts_are_sound(const struct row_state *s)
{
    return s->capacity > 0 && s->fill > 0 && s->fill <= s->capacity;
}

/*
 * R6; of a dumped table an image of its overlay may count more than its file is shaped for. So may
 * one of a follower's table in memory that the leader has dumped, and gives late ids.
 */
static bool row_state_holds(const struct row_described *described)
{
    const struct row_state *s = &described->state;
    return s->count <= s->capacity || described->cold || row_state_has(s, ROW_STATE_APART) ||
           row_state_has(s, ROW_STATE_WHOLE);
}

static bool kind_is_sound(const struct row_state *s)
{
    uint64_t layers = s->flags & (ROW_STATE_LAYER | ROW_STATE_LAYERED);
    bool apart = row_state_has(s, ROW_STATE_APART);
    bool layer = row_state_has(s, ROW_STATE_LAYER);
    bool settled = row_state_has(s, ROW_STATE_SETTLED);
    bool any = row_state_has(s, ROW_STATE_ANY_IDS);
    return (layers == 0 || (settled && !any)) && (!layer || row_state_has(s, ROW_STATE_CLOSED)) &&
           (settled || (s->base == 0 && s->last == ROW_ID_MAX && !any)) &&
           apart == (s->serial >= ROW_APART_SERIALS) &&
           (!apart || (s->flags == (ROW_STATE_APART | ROW_STATE_SETTLED) && s->base == 0 &&
                       s->last == ROW_ID_MAX));
}

bool row_state_parse(const struct row *row, const void *bytes, size_t length,
                     struct row_described *described, char error[ROW_ERROR_MAX])
{
    struct row_state *state = &described->state;
    if (!read_state(bytes, length, state)) {
        return row_fail(error, "%zu bytes are no table of this version", length);
    }
    described->description = (const unsigned char *)bytes + ROW_STATE_BYTES;
    described->bytes = length - ROW_STATE_BYTES;
    described->cold = false;
    if (!range_is_sound(state) || !frontier_is_sound(state) || !counts_are_sound(state) ||
        !kind_is_sound(state)) {
        return row_fail(error, "table %llu of ids from %llu cannot be as it is described",
                        (unsigned long long)state->serial, (unsigned long long)state->base);
    }
    if (row_state_has(state, ROW_STATE_ANY_IDS) != row->config.any_ids) {
        return row_fail(error, "table %llu was made %s `ids: any`, and the space is%s so",
                        (unsigned long long)state->serial, row->config.any_ids ? "without" : "for",
                        row->config.any_ids ? "" : " not");
    }
    return true;
}

/* -- tables -- */

static void take_state(struct row_table *table, const struct row_state *state)
{
    table->serial = state->serial;
    table->window_last = state->window_last;
    table->low = state->low;
    table->step = state->step;
    table->range = state->range;
    table->reach_min = state->reach_min;
    table->fill = state->fill;
    table->opened_s = state->opened_s;
    table->closed_serial = state->closed_serial;
    table->closed = row_state_has(state, ROW_STATE_CLOSED);
    table->jumped = row_state_has(state, ROW_STATE_JUMPED);
    table->whole = row_state_has(state, ROW_STATE_WHOLE);
    atomic_store(&table->frontier, state->frontier);
    atomic_store(&table->trusted, state->trusted);
    atomic_store(&table->newer_least, state->newer_least);
    atomic_store(&table->newer, (uint32_t)state->newer);
    atomic_store(&table->count, state->count);
    atomic_store(&table->gone, state->gone);
    atomic_store(&table->late, state->late);
    atomic_store(&table->apart, state->apart);
    atomic_store(&table->ids.first, state->first_id);
    atomic_store(&table->ids.last, state->last_id);
    table->dropped = state->dropped;
}

struct row_table *row_state_make_apart(struct row *row, const struct row_described *described,
                                       char error[ROW_ERROR_MAX])
{
    unsigned long long serial = described->state.serial;
    struct row_table *table = row_apart_make(row, described->description, described->bytes);
    if (table == NULL) {
        row_fail(error, "table %llu of ids apart cannot be made as it is described", serial);
        return NULL;
    }
    take_state(table, &described->state);
    return table;
}

struct row_table *row_state_make(struct row *row, const struct row_described *described,
                                 const struct row_table *layer_of, char error[ROW_ERROR_MAX])
{
    const struct row_state *state = &described->state;
    unsigned long long serial = state->serial;
    uint64_t bytes = row->kind->described_bytes(described->description, described->bytes);
    if (!row_state_holds(described)) {
        row_fail(error, "table %llu of ids from %llu cannot be as it is described", serial,
                 (unsigned long long)state->base);
        return NULL;
    }
    if (bytes == 0) {
        row_fail(error, "table %llu is described as none can be", serial);
        return NULL;
    }
    struct row_region *region = described->cold ? NULL : row_region_obtain(row, bytes);
    if (region == NULL && !described->cold) {
        row_fail(error, "table %llu: %llu bytes of memory were refused", serial,
                 (unsigned long long)bytes);
        return NULL;
    }
    struct row_want want = {.base = state->base,
                            .range = state->range,
                            .first = !row_state_has(state, ROW_STATE_SETTLED),
                            .layer_of = layer_of,
                            .description = described->description,
                            .description_bytes = described->bytes,
                            .region_bytes = bytes};
    struct row_table *table = row_make_table(row, &want, state->last, region);
    if (table == NULL) {
        row_region_give(row, region);
        row_fail(error, "table %llu cannot be made as it is described", serial);
        return NULL;
    }
    if (table->capacity != state->capacity) {
        row_fail(error, "table %llu holds %llu, but is described as of %llu", serial,
                 (unsigned long long)table->capacity, (unsigned long long)state->capacity);
        row_state_unmake(row, table);
        return NULL;
    }
    take_state(table, state);
    return table;
}

struct row_table *row_state_make_layer(struct row *row, const struct row_described *described,
                                       char error[ROW_ERROR_MAX])
{
    const struct row_state *state = &described->state;
    struct row_table *table = row_find(row, state->base);
    bool belongs = row_state_has(state, ROW_STATE_LAYER) && table != NULL &&
                   table->serial == state->serial && table->base == state->base &&
                   table->last == state->last && table->settled &&
                   row_last_layer(table)->layer < ROW_LAYERS_MAX;
    if (!belongs) {
        row_fail(error, "a layer of table %llu belongs to no table",
                 (unsigned long long)state->serial);
        return NULL;
    }
    struct row_table *layer = row_state_make(row, described, table, error);
    if (layer != NULL) {
        row_attach_layer(table, layer);
    }
    return layer;
}

void row_state_unmake(struct row *row, struct row_table *table)
{
    struct row_region *region = table->region;
    row->kind->destroy(table);
    row_region_give(row, region);
}
