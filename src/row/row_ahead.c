/* row_ahead.c: ahead ids, remembered in the order they came, and whether they are no typos. */
#include "row/row_private.h"

#include <string.h>

static bool in_range(const struct row_table *table, uint64_t id)
{
    return table->base <= id && id <= table->last;
}

/* Takes those of the range from a list that are at or below the limit. */
static void drop_from(struct row_ahead *list, size_t *count, const struct row_table *table,
                      uint64_t limit)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (!in_range(table, list[i].id) || list[i].id > limit) {
            list[kept++] = list[i];
        }
    }
    *count = kept;
}

/* Under the lock: forgets those of the range that are at or below the limit. */
static void ahead_drop(struct row *row, const struct row_table *table, uint64_t limit)
{
    drop_from(row->ahead, &row->ahead_count, table, limit);
    drop_from(row->unseen, &row->unseen_count, table, limit);
}

static struct row_ahead *find(struct row_ahead *list, size_t count, uint64_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].id == id) {
            return &list[i];
        }
    }
    return NULL;
}

/* The oldest of a list makes room for one more. */
static void push(struct row_ahead *list, size_t *count, size_t most, uint64_t id, uint64_t placed)
{
    if (*count == most) {
        memmove(list, list + 1, (most - 1) * sizeof(list[0]));
        --*count;
    }
    list[(*count)++] = (struct row_ahead){id, placed, 1};
}

/* Under the lock: appends it, if it is not there. */
static void append(struct row *row, uint64_t id, uint64_t placed)
{
    struct row_ahead *there = find(row->ahead, row->ahead_count, id);
    if (there != NULL) {
        there->times++;
        return;
    }
    push(row->ahead, &row->ahead_count, ROW_AHEAD_KEPT, id, placed);
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

/* Under the lock: those within a reach of the id, itself too; to ids if that is not NULL. */
static size_t pick_near(const struct row *row, const struct row_table *table, uint64_t id,
                        uint64_t *ids)
{
    uint64_t reach = row_reach(table);
    return pick(row, table, id > reach ? id - reach : 0, row_policy_add(id, reach), ids);
}

static bool is_clustered(const struct row *row, const struct row_table *table, uint64_t id)
{
    uint64_t ids[ROW_AHEAD_KEPT];
    size_t n = pick_near(row, table, id, ids);
    if (n < ROW_CLUSTER) {
        return false;
    }
    row_policy_sort(ids, n);
    size_t first;
    return row_policy_cluster(ids, n, ROW_CLUSTER, row_reach(table), id, &first);
}

/* Returns whether the newest `least` ids ahead of the table were three in four of what came to it.
 * Under the lock. */
static bool are_most(const struct row *row, const struct row_table *table, uint64_t least)
{
    uint64_t n = 0;
    uint64_t ids = 0;
    uint64_t oldest = 0;
    for (size_t i = row->ahead_count; i > 0 && (n < least || ids < ROW_CLUSTER); i--) {
        if (in_range(table, row->ahead[i - 1].id)) {
            oldest = row->ahead[i - 1].placed;
            n += row->ahead[i - 1].times;
            ids++;
        }
    }
    int64_t others = (int64_t)(row_admitted(table) - oldest);
    return n >= least && ids >= ROW_CLUSTER && others * 3 <= (int64_t)n;
}

/*
 * Returns whether the stream has left the table for ids ahead of it: most new ids of the row belong
 * to its range, and nearly all of the newest were ahead. Strays that are a third of all ids never
 * come together in such numbers. Under the lock.
 */
static bool leaps(const struct row *row, const struct row_table *table)
{
    return are_most(row, table, ROW_LEAP) && row_stream_is_in(row, table);
}

bool row_ahead_leaps(struct row *row, const struct row_table *table)
{
    row_lock(row);
    bool leap = leaps(row, table);
    row_unlock(row);
    return leap;
}

/* Returns whether a table may open for ahead ids that are near each other. Under the lock. */
static bool may_cluster(const struct row *row, const struct row_table *table)
{
    return row_clusters(row) && row->noted >= table->cluster_from;
}

/* The same where the next one would be refused: it may be the stream, which is seen by so many. */
static bool must_cluster(const struct row *row, const struct row_table *table)
{
    return row_clusters(row) && row->noted + ROW_CLUSTER_AGAIN >= table->cluster_from + ROW_CLUSTER;
}

/* Under the lock: as is_clustered, any of those from `low` on. */
static bool any_clustered(const struct row *row, const struct row_table *table, uint64_t low)
{
    uint64_t ids[ROW_AHEAD_KEPT];
    size_t first;
    size_t n = pick(row, table, low, ROW_ID_MAX, ids);
    row_policy_sort(ids, n);
    return row_policy_cluster(ids, n, ROW_CLUSTER, row_reach(table), UINT64_MAX, &first);
}

uint32_t row_ahead_note(struct row *row, const struct row_table *table, uint64_t id,
                        uint64_t placed)
{
    uint32_t wants = 0;
    row_lock(row);
    ahead_drop(row, table, row_limit(table));
    append(row, id, placed);
    if (may_cluster(row, table) && is_clustered(row, table, id)) {
        wants |= ROW_WANT_CLUSTER;
    }
    if (row->noted >= table->bulk_from && pick(row, table, 0, ROW_ID_MAX, NULL) >= ROW_BULK &&
        leaps(row, table)) {
        wants |= ROW_WANT_BULK;
    }
    row_unlock(row);
    return wants;
}

void row_ahead_put_off(struct row *row, uint64_t id, uint64_t placed)
{
    row_lock(row);
    if (find(row->unseen, row->unseen_count, id) == NULL) {
        push(row->unseen, &row->unseen_count, ROW_LEAP, id, placed);
    }
    row_unlock(row);
}

/* Under the lock: remembers those of the range that were put off. */
static void append_unseen(struct row *row, const struct row_table *table)
{
    for (size_t i = 0; i < row->unseen_count; i++) {
        if (in_range(table, row->unseen[i].id)) {
            append(row, row->unseen[i].id, row->unseen[i].placed);
        }
    }
    drop_from(row->unseen, &row->unseen_count, table, UINT64_MAX);
}

uint32_t row_ahead_wants(struct row *row, const struct row_table *table)
{
    uint32_t wants = 0;
    row_lock(row);
    ahead_drop(row, table, row_limit(table));
    append_unseen(row, table);
    if (must_cluster(row, table) && any_clustered(row, table, 0)) {
        wants |= ROW_WANT_CLUSTER;
    }
    if (row->noted >= table->bulk_from && leaps(row, table)) {
        wants |= ROW_WANT_BULK;
    }
    row_unlock(row);
    return wants;
}

/*
 * Returns whether the newest ids ahead of the table, two at least, were three in four of what came
 * to it: so a stream begins that has left it. Each counts once, however often a client tries it
 * again. Under the lock.
 */
static bool may_leap(const struct row *row, const struct row_table *table)
{
    uint64_t n = 0;
    for (size_t i = row->ahead_count; i > 0 && n < ROW_LEAP; i--) {
        const struct row_ahead *ahead = &row->ahead[i - 1];
        if (!in_range(table, ahead->id)) {
            continue;
        }
        int64_t others = (int64_t)(row_admitted(table) - ahead->placed);
        n++;
        if (n > 1 && others * 3 <= (int64_t)n) {
            return true;
        }
    }
    return false;
}

bool row_ahead_may_open(struct row *row, const struct row_table *table, uint64_t id)
{
    row_lock(row);
    bool leap = may_leap(row, table);
    bool near = pick_near(row, table, id, NULL) > 1;
    bool may = near ? leap || may_cluster(row, table) : leap && any_clustered(row, table, id);
    row_unlock(row);
    return may;
}

void row_ahead_restore(struct row *row, const struct row_table *table, uint64_t id)
{
    CHECK(in_range(table, id));
    row_lock(row);
    append(row, id, 0);
    row_unlock(row);
}

size_t row_ahead_ids(struct row *row, const struct row_table *table, uint64_t ids[ROW_AHEAD_KEPT])
{
    row_lock(row);
    ahead_drop(row, table, row_limit(table));
    size_t n = pick(row, table, 0, ROW_ID_MAX, ids);
    row_unlock(row);
    return n;
}

size_t row_ahead_newest(struct row *row, const struct row_table *table,
                        uint64_t ids[ROW_AHEAD_NEWEST])
{
    size_t n = 0;
    row_lock(row);
    ahead_drop(row, table, row_limit(table));
    for (size_t i = row->ahead_count; i > 0 && n < ROW_AHEAD_NEWEST; i--) {
        const struct row_ahead *ahead = &row->ahead[i - 1];
        for (uint64_t j = 0; in_range(table, ahead->id) && j < ahead->times; j++) {
            if (n < ROW_AHEAD_NEWEST) {
                ids[n++] = ahead->id;
            }
        }
    }
    row_unlock(row);
    return n;
}

void row_ahead_drop(struct row *row, const struct row_table *table)
{
    row_lock(row);
    ahead_drop(row, table, row_limit(table));
    row_unlock(row);
}

void row_ahead_forget(struct row *row, const struct row_table *table)
{
    row_lock(row);
    ahead_drop(row, table, UINT64_MAX);
    row_unlock(row);
}

static void shift(struct row_ahead *list, size_t count, const struct row_table *table,
                  uint64_t more)
{
    for (size_t i = 0; i < count; i++) {
        list[i].placed += in_range(table, list[i].id) ? more : 0;
    }
}

void row_ahead_shift(struct row *row, const struct row_table *table, uint64_t more)
{
    row_lock(row);
    shift(row->ahead, row->ahead_count, table, more);
    shift(row->unseen, row->unseen_count, table, more);
    row_unlock(row);
}

/* Takes those from a list that are answered as recycled ones are. */
static void drop_gone(struct row_ahead *list, size_t *count, const struct row_dropped *dropped)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (!row_dropped_has(dropped, list[i].id)) {
            list[kept++] = list[i];
        }
    }
    *count = kept;
}

void row_ahead_hand_over(struct row *row, const struct row_table *gone,
                         const struct row_table *below)
{
    row_ahead_shift(row, gone, row_admitted(below) - row_admitted(gone));
    row_lock(row);
    drop_gone(row->ahead, &row->ahead_count, &below->dropped);
    drop_gone(row->unseen, &row->unseen_count, &below->dropped);
    row_unlock(row);
}
