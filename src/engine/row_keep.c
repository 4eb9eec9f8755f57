/* row_keep.c: the keeper's round. */
#include "engine/row_private.h"

void row_dispose(struct row *row)
{
    row_lock(row);
    struct row_table *table = row->retired;
    row->retired = NULL;
    row_unlock(row);
    while (table != NULL) {
        struct row_table *next = table->further;
        struct row_region *region = table->region;
        row->functions->destroy(table);
        row_region_give(row, region);
        table = next;
    }
}

/* The newest is served first: it may recycle the oldest. */
static struct row_table *next_wanting(const struct row *row)
{
    for (size_t i = row->count; i > 0; i--) {
        if (atomic_load(&row->tables[i - 1]->wants) != 0) {
            return row->tables[i - 1];
        }
    }
    return NULL;
}

/* Where there is memory again, those that were refused may ask again. */
static void allow_again(struct row *row)
{
    if (row_regions_free(row) == 0) {
        return;
    }
    for (size_t i = 0; i < row->count; i++) {
        row->tables[i]->refused = false;
        row->tables[i]->scattered = false;
    }
}

/* With the world stopped. True: again, after retired tables have been disposed of. */
static bool act(struct row *row)
{
    allow_again(row);
    struct row_table *table = next_wanting(row);
    while (table != NULL) {
        if (row_serve(row, table)) {
            return true;
        }
        table = next_wanting(row);
    }
    return false;
}

static bool act_stopped(struct row *row, struct barrier *barrier)
{
    if (barrier != NULL) {
        barrier_stop(barrier);
    }
    bool again = act(row);
    if (barrier != NULL) {
        barrier_go(barrier);
    }
    return again;
}

static void clean_up(struct row *row)
{
    row_dispose(row);
    row_regions_tidy(row);
}

void row_maintain(struct row *row, struct barrier *barrier)
{
    bool asked = atomic_exchange(&row->asked, false);
    clean_up(row);
    while (asked && act_stopped(row, barrier)) {
        clean_up(row);
    }
    if (asked) {
        row_wake(row);
        clean_up(row);
    }
    const struct engine_keeper *keeper = row->keeper;
    if (row_populate_step(row) && keeper != NULL && keeper->notify != NULL) {
        keeper->notify(keeper->context); /* a step at a time: other rows wait for the keeper too */
    }
}
