/*
 * row_apart.c: the table of ids apart: made, made anew, what of it goes in place, and what other
 * tables know of it.
 */
#include "base/dict.h"
#include "base/log.h"
#include "base/point.h"
#include "row/row_policy.h"
#include "row/row_private.h"

#define PASSED_PART 8 /* a stop is worth it when this many of a table's ids apart are passed */

/* ---- its life ---- */

struct row_table *row_apart_make(struct row *row, const void *description, size_t bytes)
{
    struct row_want want = {.apart = true,
                            .description = description,
                            .description_bytes = bytes,
                            .region_bytes = row->config.table_bytes};
    return row_make_table(row, &want, ROW_ID_MAX, NULL);
}

bool row_apart_begin(struct row *row)
{
    if (row->config.any_ids || row->apart != NULL) {
        return true;
    }
    row->apart = row_apart_make(row, NULL, 0);
    if (row->apart != NULL) {
        row->apart->serial = ROW_APART_SERIALS;
    }
    return row->apart != NULL;
}

void row_apart_end(struct row *row)
{
    if (row->apart != NULL) {
        row->kind->destroy(row->apart);
        row->apart = NULL;
    }
    row->apart_old = false;
}

bool row_apart_replace(struct row *row, struct row_table *next)
{
    struct row_table *before = row->apart;
    if (!row->kind->place(row->engine, before, next, change_sink_null())) {
        row->kind->destroy(next);
        return false;
    }
    next->serial = next->serial == 0 ? before->serial + 1 : next->serial; /* replay has its own */
    row->apart = next;
    row_retire_one(row, before);
    row_apart_see(row);
    return true;
}

void row_apart_renew(struct row *row)
{
    row->apart_old = false;
    struct row_table *next = row_apart_make(row, NULL, 0);
    if (next == NULL || !row_apart_replace(row, next)) {
        log_warning("ids apart stay as they are: " ROW_REFUSED_MEMORY " space=%s",
                    row_space_name(row));
        return;
    }
    row_log_put(row, CHANGE_EVENT_APART, next);
}

uint64_t row_apart_forget(struct row *row, uint64_t first, uint64_t last)
{
    uint64_t forgotten = row->apart ? row->kind->forget(row->apart, first, last) : 0;
    if (forgotten > 0) {
        uint64_t count = row_count_of(row->apart);
        atomic_store(&row->apart->count, count > forgotten ? count - forgotten : 0);
        row_touch(row->apart); /* an image begun before may have them */
    }
    return forgotten;
}

/* ---- what other tables know of it ---- */

struct row_apart_visit {
    void (*visit)(void *context, uint64_t id);
    void *context;
    bool in_value;
};

static void row_apart_visit_entry(void *context, uint64_t key, uint8_t sub, const uint64_t *value)
{
    const struct row_apart_visit *to = context;
    (void)sub;
    to->visit(to->context, to->in_value ? value[0] : key);
}

void row_apart_each(const struct row *row, void (*visit)(void *context, uint64_t id), void *context)
{
    struct row_apart_visit to = {visit, context, row->kind->apart_in_value};
    const struct dict *front;
    dict_each(row->kind->section(row->apart, row->kind->apart_section, 0, &front),
              row_apart_visit_entry, &to);
}

void row_apart_note(struct row *row, struct row_table *table, uint64_t id)
{
    atomic_fetch_add(&row->apart->count, 1);
    atomic_fetch_add(&table->apart, 1);
    row_lower_to(&table->apart_first, id);
    id_span_note(&table->ids, id);
    id_span_note(&row->apart->ids, id);
}

void row_apart_removed(struct row_table *apart, uint64_t id)
{
    struct row_table *table = apart->owner ? row_find(apart->owner, id) : NULL;
    uint64_t left = table ? atomic_load(&table->apart) : 0;
    while (left > 0 && !atomic_compare_exchange_weak(&table->apart, &left, left - 1)) {
    }
}

static void see_id(void *context, uint64_t id)
{
    struct row_table *table = row_find(context, id);
    if (table != NULL) {
        atomic_fetch_add(&table->apart, 1);
        row_lower_to(&table->apart_first, id);
    }
}

void row_apart_see(struct row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        atomic_store(&row->tables[i]->apart, 0);
        atomic_store(&row->tables[i]->apart_first, UINT64_MAX);
    }
    if (row->apart != NULL && row_count_of(row->apart) > 0) {
        row_apart_each(row, see_id, row);
    }
    for (size_t i = 0; i < row->count; i++) {
        row_stream_moved(row->tables[i]); /* ids apart left its range, or came to it */
    }
}

/* ---- going in place ---- */

/* Puts changes into the row's log, in the room it was asked for. */
struct log_sink {
    struct change_sink sink; /* first */
    struct change_log *log;
};

static bool log_sink_reserve(struct change_sink *sink)
{
    (void)sink;
    return true; /* row_place() counts them */
}

static uint64_t log_sink_put(struct change_sink *sink, const struct change *change)
{
    struct change_log *log = ((struct log_sink *)sink)->log;
    if (log != NULL) {
        log->change(log, change);
    }
    return 0;
}

static void log_sink_cancel(struct change_sink *sink)
{
    (void)sink;
}

static const struct change_sink_functions log_sink_functions = {
    .reserve = log_sink_reserve, .put = log_sink_put, .cancel = log_sink_cancel};

bool row_place(struct row *row, struct row_table *to, uint64_t id)
{
    if (to->is_apart) {
        atomic_fetch_add(&to->count, 1);
        id_span_note(&to->ids, id);
        return true;
    }
    bool late = to->closed || to->further != NULL;
    bool reached = late || row_is_going(to) ? id <= row_frontier_of(to) : id <= row_limit(to);
    uint64_t count;
    if (row->places_left == 0 || !reached || !row_take_place(row_last_layer(to), &count)) {
        return false;
    }
    row->places_left--;
    if (late) {
        atomic_fetch_add_explicit(&to->late, 1, memory_order_relaxed);
    } else {
        row_pass(to, id);
    }
    id_span_note(&to->ids, id);
    return true;
}

bool row_place_drop(struct row *row)
{
    bool room = row->places_left > 0;
    row->places_left -= room;
    return room;
}

struct above {
    const struct row_table *table;
    uint64_t frontier;
    size_t count;
    uint64_t ids[ROW_SAMPLE_MAX]; /* the first that were found */
};

static void note_above(void *context, uint64_t id)
{
    struct above *above = context;
    if (id > above->frontier && id <= above->table->last && above->count < ROW_SAMPLE_MAX) {
        above->ids[above->count++] = id;
    }
}

/* The frontier at which the next look is worth it. */
static void set_place_at(struct row *row, struct row_table *table)
{
    struct above above = {.table = table, .frontier = row_frontier_of(table)};
    row_apart_each(row, note_above, &above);
    row_policy_sort(above.ids, above.count);
    uint64_t next = above.count > 0 ? above.ids[above.count / PASSED_PART] : UINT64_MAX;
    atomic_store(&table->place_at, next);
}

/*
 * The table knows its ids, and neither it nor a layer is a file.
 */
static bool is_in_memory(const struct row_table *table)
{
    bool near = table->settled;
    for (; table != NULL && near; table = table->further) {
        near = !table->cold;
    }
    return near;
}

void row_apart_place(struct row *row, struct row_table *table)
{
    struct log_sink sink = {{&log_sink_functions}, row->log};
    if (atomic_load(&table->apart) == 0 && row_may_be_apart(table, ROW_ID_MAX)) {
        row_apart_see(
            row); /* the last piece took all there were: no id of the table is asked for there */
    }
    if (!is_in_memory(table) || atomic_load(&table->apart) == 0) {
        return;
    }
    POINT("ids apart, not in place");
    uint64_t came = row_admitted(table);
    row->places_left = CHANGE_STOPPED_MAX;
    (void)row->kind->place(row->engine, row->apart, table, &sink.sink);
    row_ahead_shift(row, table, row_admitted(table) - came);
    table->seen += row_admitted(table) - came; /* nobody has come there by that */
    row_ahead_drop(row, table);
    if (row->places_left == 0) { /* the last piece looks at what is left */
        atomic_fetch_or(&table->wants, ROW_WANT_PLACE);
        return;
    }
    row_apart_see(row);
    set_place_at(row, table);
}

void row_apart_put_off(struct row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        struct row_table *table = row->tables[i];
        if ((atomic_fetch_and(&table->wants, ~ROW_WANT_PLACE) & ROW_WANT_PLACE) != 0) {
            row_lower_to(&table->place_at, atomic_load(&table->apart_first));
        }
    }
}

/* True: enough of its ids apart have been passed, as far as the last look saw. Any thread. */
static bool row_apart_is_passed(const struct row_table *table)
{
    return is_in_memory(table) &&
           row_frontier_of(table) >= atomic_load_explicit(&table->place_at, memory_order_relaxed) &&
           atomic_load_explicit(&table->apart, memory_order_relaxed) > 0;
}

struct row_table *row_apart_passed(const struct row *row)
{
    size_t looked = row->count > ROW_TABLES_MAX ? row->count - ROW_TABLES_MAX : 0;
    for (size_t i = row->count; i > looked; i--) {
        if (row_apart_is_passed(row->tables[i - 1])) {
            return row->tables[i - 1];
        }
    }
    return NULL;
}
