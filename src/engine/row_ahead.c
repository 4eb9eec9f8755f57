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
        uint64_t id = row->ahead[i].id;
        if (!in_range(table, id) || id > limit) {
            row->ahead[kept++] = row->ahead[i];
        }
    }
    row->ahead_count = kept;
}

/* Under the lock: appends it, if it is not there. */
static void append(struct row *row, uint64_t id, uint64_t admitted)
{
    for (size_t i = 0; i < row->ahead_count; i++) {
        if (row->ahead[i].id == id) {
            return;
        }
    }
    if (row->ahead_count == ROW_AHEAD_KEPT) {
        memmove(row->ahead, row->ahead + 1, (ROW_AHEAD_KEPT - 1) * sizeof row->ahead[0]);
        row->ahead_count--;
    }
    row->ahead[row->ahead_count++] = (struct row_ahead){id, admitted};
    row->noted++;
}

/* Under the lock: those of the range that lie in low .. high, to ids if that is not NULL. */
static size_t pick(const struct row *row, const struct row_table *table, uint64_t low,
                   uint64_t high, uint64_t *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < row->ahead_count; i++) {
        uint64_t id = row->ahead[i].id;
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

/*
 * Under the lock: are ahead ids a real share of what came since the oldest of them? Of the newest
 * ROW_BULK, at least `least`: of single typos any number comes together in time.
 */
static bool is_bulk(const struct row *row, const struct row_table *table, size_t least)
{
    size_t n = 0;
    uint64_t oldest = 0;
    for (size_t i = row->ahead_count; i > 0 && n < ROW_BULK; i--) {
        if (in_range(table, row->ahead[i - 1].id)) {
            oldest = row->ahead[i - 1].admitted;
            n++;
        }
    }
    int64_t since = (int64_t)(row_admitted(table) - oldest);
    return row->noted >= table->bulk_from && n >= least && (int64_t)n * ROW_BULK_SHARE >= since;
}

uint32_t row_ahead_note(struct row *row, const struct row_table *table, uint64_t id)
{
    uint32_t wants = 0;
    row_lock(row);
    drop(row, table, row_limit(table));
    append(row, id, row_admitted(table));
    if (row_clusters(row) && row->noted >= table->cluster_from && is_clustered(row, table, id)) {
        wants |= ROW_WANT_CLUSTER;
    }
    if (is_bulk(row, table, ROW_BULK)) {
        wants |= ROW_WANT_BULK;
    }
    row_unlock(row);
    return wants;
}

void row_ahead_restore(struct row *row, const struct row_table *table, uint64_t id)
{
    CHECK(in_range(table, id));
    row_lock(row);
    append(row, id, 0);
    row_unlock(row);
}

bool row_ahead_is_bulk(struct row *row, const struct row_table *table, size_t least)
{
    row_lock(row);
    drop(row, table, row_limit(table));
    bool bulk = is_bulk(row, table, least);
    row_unlock(row);
    return bulk;
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

void row_ahead_forget(struct row *row, const struct row_table *table)
{
    row_lock(row);
    drop(row, table, UINT64_MAX);
    row_unlock(row);
}

void row_ahead_shift(struct row *row, const struct row_table *table, uint64_t more)
{
    row_lock(row);
    for (size_t i = 0; i < row->ahead_count; i++) {
        if (in_range(table, row->ahead[i].id)) {
            row->ahead[i].admitted += more;
        }
    }
    row_unlock(row);
}
