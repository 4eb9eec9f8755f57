/* row_keep.c: the keeper's round. */
#include "base/clock.h"
#include "base/log.h"
#include "base/point.h"
#include "row/row_data.h"
#include "row/row_parts.h"
#include "row/row_room.h"

#define DENIED_PAUSE_US 100000u /* until the log is asked again whether it has room */
#define AGAIN_PAUSE_US  (10u * 1000000u)
#define ROW_WANT_PARTS  (ROW_WANT_GROW | ROW_WANT_GROW_NOW) /* row_parts_maintain() */

void row_dispose(struct row *row)
{
    row_lock(row);
    struct row_table *table = row->retired;
    row->retired = NULL;
    row_unlock(row);
    while (table != NULL) {
        struct row_table *next = table->further;
        struct row_region *region = table->region;
        row->kind->destroy(table);
        row_region_give(row, region);
        table = next;
    }
    row_regions_give_left(row);
    row_destroy_discarded(row);
}

/* Returns the dumped table opened longest ago if there are too many. */
static struct row_table *dumped_too_many(const struct row *row)
{
    struct row_table *found = NULL;
    size_t cold = 0;
    for (size_t i = 0; i < row->count; i++) {
        struct row_table *table = row->tables[i];
        cold += table->cold;
        if (table->cold && (found == NULL || table->serial < found->serial)) {
            found = table;
        }
    }
    bool many = row->config.dumps_max > 0 && cold > row->config.dumps_max && row->count > 1;
    return many ? found : NULL;
}

/* The newest is served first: it may recycle the oldest. */
static struct row_table *next_wanting(const struct row *row, uint32_t bits)
{
    for (size_t i = row->count; i > 0; i--) {
        struct row_table *table = row->tables[i - 1];
        if ((atomic_load(&table->wants) & bits) != 0 && !table->awaiting) {
            return table;
        }
    }
    return NULL;
}

static void allow_all(struct row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        row_allow(row->tables[i]);
    }
}

void row_pause(struct row *row)
{
    atomic_store(&row->again_us, clock_monotonic_us() + AGAIN_PAUSE_US);
}

/* Lets tables that were refused ask again, as there is memory. */
static void allow_again(struct row *row)
{
    bool dumped = row->parted && atomic_load(&row->again_us) == 0;
    if (row_regions_free(row) > 0 || dumped) {
        allow_all(row);
    }
}

/* Room for events, awaited before the world stopped. False: new ids are refused for a while, and
 * all stays as it is. */
bool row_keep_log_room(struct row *row)
{
    bool room = row_log_room(row);
    atomic_store(&row->denied_us, room ? 0 : clock_monotonic_us() + DENIED_PAUSE_US);
    atomic_store(&row->denied, !room);
    atomic_store(&row->waited_us, 0);
    return room;
}

/* False: there is more to do, and the log has no more room. */
static bool drop_dumped(struct row *row)
{
    struct row_table *table = dumped_too_many(row);
    while (table != NULL) {
        if (!row_log_room(row)) {
            return false;
        }
        row_recycle(row, table);
        POINT("dumped table dropped");
        table = dumped_too_many(row);
    }
    return true;
}

void row_look_again(struct row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        atomic_store_explicit(&row->tables[i]->clear_to, 0, memory_order_relaxed);
    }
}

/* Puts ids in place that may be. Without room in the log nobody is refused, and they stay apart for
 * now. */
static bool place_what_may(struct row *row)
{
    struct row_table *table = next_wanting(row, ROW_WANT_PLACE);
    while (table != NULL && row_log_room(row)) {
        (void)row_serve(row, table);
        table = next_wanting(row, ROW_WANT_PLACE);
    }
    if (table != NULL) {
        row_apart_put_off(row);
    }
    return table == NULL;
}

/* False: there is more to do. */
static bool serve_all(struct row *row, uint32_t bits)
{
    struct row_table *table = next_wanting(row, bits);
    while (table != NULL) {
        if (!row_log_room(row) || row_serve(row, table)) {
            return false;
        }
        table = next_wanting(row, bits);
    }
    return true;
}

static bool renew_apart(struct row *row)
{
    bool renews = row->apart_old && row_log_room(row);
    if (renews) {
        row_apart_renew(row);
    }
    return renews || !row->apart_old;
}

/* What is apart goes in place when nothing else is wanted, and before its table is followed. */
static bool keep_all(struct row *row)
{
    bool done = drop_dumped(row) && renew_apart(row) &&
                serve_all(row, ~(ROW_WANT_PLACE | ROW_WANT_RENEW | ROW_WANT_PARTS));
    if (done && place_what_may(row)) {
        done = serve_all(row, ROW_WANT_RENEW);
        (void)(done && place_what_may(row));
    }
    return done;
}

/*
 * With the world stopped. True: there is more to do, after retired tables have been disposed of, or
 * the log has room again: what it had has sufficed for a part.
 */
static bool act(struct row *row)
{
    if (row_is_due(&row->again_us)) {
        row_cold_try(row);
        allow_all(row);
    }
    allow_again(row);
    bool again = row_keep_log_room(row) && !keep_all(row);
    row_cold_see(row);
    row_look_again(row);
    return again;
}

static bool act_stopped(struct row *row, struct barrier *barrier)
{
    row_log_await(row); /* else new ids were refused for a full buffer */
    if (barrier != NULL) {
        barrier_stop(barrier);
    }
    bool again = false;
    if (row->follows) {
        row_follow_maintain(row);
    } else {
        again = act(row);
    }
    if (barrier != NULL) {
        barrier_go(barrier);
    }
    return again;
}

void row_clean_up(struct row *row)
{
    row_dispose(row);
    row_regions_tidy(row);
}

void row_maintain(struct row *row, struct barrier *barrier)
{
    bool asked = atomic_exchange(&row->asked, false);
    row_clean_up(row);
    while (asked && act_stopped(row, barrier)) {
        row_clean_up(row);
    }
    if (asked && row->parted) {
        row_parts_maintain(row, barrier);
    }
    if (asked) {
        row_wake(row);
        row_clean_up(row);
    }
    const struct engine_keeper *keeper = row->keeper;
    if (row_populate_step(row) && keeper != NULL && keeper->notify != NULL) {
        keeper->notify(keeper->context); /* a step at a time: other rows wait for the keeper too */
    }
}
