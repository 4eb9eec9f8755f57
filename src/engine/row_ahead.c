/* row_ahead.c: ahead ids, remembered in the order they came, and whether they are no typos. */
#include "engine/row_private.h"

#include <string.h>

static bool in_range(const struct row_table *table, uint64_t id)
{
    return table->base <= id && id <= table->last;
}

/* Under the lock: forgets those of the range that are at or below the limit. */
static void drop(struct row *row, const struct row_table *table, uint64_t limit)
{
    size_t kept = 0;
    for (size_t i = 0; i < row->ahead_count; i++) {
        uint64_t id = row->ahead[i];
        if (!in_range(table, id) || id > limit) {
            row->ahead[kept++] = id;
        }
    }
    row->ahead_count = kept;
}

/* Under the lock: appends it, if it is not there. */
static void append(struct row *row, uint64_t id)
{
    for (size_t i = 0; i < row->ahead_count; i++) {
        if (row->ahead[i] == id) {
            return;
        }
    }
    if (row->ahead_count == ROW_AHEAD_KEPT) {
        memmove(row->ahead, row->ahead + 1, (ROW_AHEAD_KEPT - 1) * sizeof row->ahead[0]);
        row->ahead_count--;
    }
    row->ahead[row->ahead_count++] = id;
}

/* Under the lock: those of the range that lie in low .. high, to ids if that is not NULL. */
static size_t pick(const struct row *row, const struct row_table *table, uint64_t low,
                   uint64_t high, uint64_t *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < row->ahead_count; i++) {
        uint64_t id = row->ahead[i];
        if (in_range(table, id) && low <= id && id <= high) {
            if (ids != NULL) {
                ids[n] = id;
            }
            n++;
        }
    }
    return n;
}

static bool is_clustered(const struct row *row, const struct row_table *table, uint64_t id)
{
    uint64_t ids[ROW_AHEAD_KEPT];
    uint64_t reach = row_reach(table);
    uint64_t low = id > reach ? id - reach : 0;
    size_t n = pick(row, table, low, row_policy_add(id, reach), ids);
    if (n < ROW_CLUSTER) {
        return false;
    }
    row_policy_sort(ids, n);
    size_t first;
    return row_policy_cluster(ids, n, ROW_CLUSTER, reach, id, &first);
}

uint32_t row_ahead_note(struct row *row, const struct row_table *table, uint64_t id)
{
    uint32_t wants = 0;
    row_lock(row);
    drop(row, table, row_limit(table));
    append(row, id);
    if (row_clusters(row) && is_clustered(row, table, id)) {
        wants |= ROW_WANT_CLUSTER;
    }
    if (row->ahead_count >= ROW_BULK && pick(row, table, 0, ROW_ID_MAX, NULL) >= ROW_BULK) {
        wants |= ROW_WANT_BULK;
    }
    row_unlock(row);
    return wants;
}

size_t row_ahead_count(struct row *row, const struct row_table *table)
{
    row_lock(row);
    drop(row, table, row_limit(table));
    size_t n = pick(row, table, 0, ROW_ID_MAX, NULL);
    row_unlock(row);
    return n;
}

size_t row_ahead_sorted(struct row *row, const struct row_table *table,
                        uint64_t ids[ROW_AHEAD_KEPT])
{
    row_lock(row);
    drop(row, table, row_limit(table));
    size_t n = pick(row, table, 0, ROW_ID_MAX, ids);
    row_unlock(row);
    row_policy_sort(ids, n);
    return n;
}

void row_ahead_drop(struct row *row, const struct row_table *table)
{
    row_lock(row);
    drop(row, table, row_limit(table));
    row_unlock(row);
}
