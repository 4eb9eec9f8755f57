/* row_fold.c: whose overlays become one again, a step at a time. */
#include "row/row_fold.h"

#include "base/clock.h"
#include "base/log.h"
#include "row/row_cold.h"
#include "row/row_data.h"
#include "row/row_private.h"

#define FOLD_STEP    64u /* entries of one step of the walk, or buckets */
#define FOLD_EMPTIES 16u /* so many buckets without an entry cost as much as one */

void row_fold_begin(struct row *row, struct row_table *table)
{
    CHECK(table->merging && !table->folding);
    table->folding = true;
    table->fold_waits = false;
    row->folds++;
}

void row_fold_forget(struct row *row, struct row_table *table)
{
    CHECK(!table->folding || table->merging);
    row->folds -= table->folding && !table->fold_waits;
    row->folds_put_off -= table->fold_waits;
    table->folding = table->fold_waits = false;
}

static void row_fold_again(void *context, struct row_table *table, bool layer)
{
    struct row *row = context;
    (void)layer;
    if (table->fold_waits && row_merge_may(table)) {
        table->fold_waits = false;
        row->folds_put_off--;
        row->folds++;
    }
}

void row_fold_see(struct row *row)
{
    if (row->folds_put_off > 0) {
        row_each(row, row_fold_again, row);
    }
}

static void row_fold_put_off(struct row *row, struct row_table *table)
{
    log_warning("no memory for the changes of a dumped table in one overlay: it is tried again "
                "space=%s first_id=%llu",
                row_space_name(row), (unsigned long long)table->base);
    table->fold_waits = true;
    row->folds--;
    row->folds_put_off++;
    row->merge_paused = true;
    row_merge_pause(row, table);
    atomic_store(&row->wake_due, true); /* the wait is long now */
}

static void row_fold_end(struct row *row, struct row_table *table)
{
    row_fold_forget(row, table);
    table->merging = false;
    CHECK(row->merges > 0);
    row->merges--;
    atomic_store(&row->wake_due, true);
    if (row->parted) { /* it may come back */
        row_ask(row);
    }
}

static void row_fold_find(void *context, struct row_table *table, bool layer)
{
    struct row_table **found = context;
    (void)layer;
    if (*found == NULL && table->folding && !table->fold_waits) {
        *found = table;
    }
}

enum row_fold row_fold_step(struct row *row, bool stopped)
{
    struct row_table *table = NULL;
    if (row->folds > 0) {
        row_each(row, row_fold_find, &table);
    }
    CHECK((row->folds > 0) == (table != NULL));
    if (table == NULL) {
        return ROW_FOLD_DONE;
    }
    enum row_fold next = row->kind->fold(table, stopped ? row->fold_records : 0);
    if (next == ROW_FOLD_COPY || !stopped) {
        return next == ROW_FOLD_REFUSED ? ROW_FOLD_MOVE : next; /* what it takes to put it off */
    }
    if (next == ROW_FOLD_REFUSED) {
        row_fold_put_off(row, table);
    } else if (next == ROW_FOLD_DONE) {
        row_fold_end(row, table);
    }
    return next == ROW_FOLD_MOVE ? next : ROW_FOLD_COPY;
}

void row_fold_all(struct row *row)
{
    enum row_fold next = ROW_FOLD_COPY;
    while (next != ROW_FOLD_DONE) {
        next = row_fold_step(row, next == ROW_FOLD_MOVE);
    }
}

/* ---- for kinds of tables ---- */

/* Well below what a dict takes. */
bool row_fold_has_room(const struct dict *into, const struct dict *from)
{
    uint64_t more = from != NULL ? dict_count(from) : 0;
    return more == 0 || 4 * (dict_count(into) + more) <= 3 * dict_places(into);
}

/* A little more, for what comes while they move. */
bool row_fold_keeps_room(const struct dict *into, const struct dict *from)
{
    return 5 * (dict_count(into) + dict_count(from)) < 4 * dict_places(into);
}

uint64_t row_fold_pool_bytes(const struct dict *like, uint64_t entries)
{
    uint64_t bytes = dict_pool_bytes(like);
    bytes += bytes / 15; /* its levels: 15/16 of a power of two, which a dict takes */
    for (uint64_t places = dict_places(like); places < 2 * entries; places *= 2) {
        bytes *= 2;
    }
    return bytes;
}

bool row_fold_move(const struct dict *from, uint64_t *at, unsigned most, dict_visit *visit,
                   void *context, const struct row_fold_moved *moved)
{
    unsigned steps = 0;
    while (!moved->refused && dict_count(from) > 0 &&
           moved->entries + steps * FOLD_STEP / FOLD_EMPTIES < most) {
        size_t step = most - moved->entries < FOLD_STEP ? most - moved->entries : FOLD_STEP;
        if (!dict_walk(from, at, step, visit, context)) {
            *at = 0; /* where a replay has grown it, some were passed over */
        }
        steps++;
    }
    return !moved->refused;
}
