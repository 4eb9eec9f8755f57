/* row_tables.c: tables are made, stand in the row in the order of their bases, and leave it; all
 * with the world stopped. */
#include "row/row_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "row/row_fold.h"

static uint64_t fill_of(const struct row *row, uint64_t capacity)
{
    if (row->config.any_ids) {
        return capacity;
    }
    double fill = (double)capacity * (1.0 - row->late_room);
    return fill < 1.0 ? 1 : (uint64_t)fill;
}

void row_start_at(struct row_table *table, uint64_t id)
{
    atomic_store(&table->frontier, id);
    atomic_store(&table->trusted, id);
    atomic_store(&table->newer_least, UINT64_MAX);
}

struct row_table *row_make_table(struct row *row, struct row_want *want, uint64_t last,
                                 struct row_region *region)
{
    want->region = region ? region->memory : NULL;
    want->region_bytes = region ? region->bytes : want->region_bytes;
    struct row_table *table = row->kind->create(row->engine, want);
    if (table == NULL) {
        return NULL;
    }
    CHECK(table->capacity > 0);
    table->base = want->base;
    table->last = last;
    table->low = want->base;
    table->range = want->range;
    table->reach_min = ROW_REACH_MIN;
    table->fill = fill_of(row, table->capacity);
    table->opened_s = clock_wall_s();
    table->region = region;
    table->owner = row;
    CHECK(table->is_apart == want->apart);
    table->cold = region == NULL && !want->apart;
    table->settled = !want->first;
    CHECK(atomic_load(&table->apart_first) == UINT64_MAX);
    atomic_store(&table->place_at, UINT64_MAX);
    table->touched = true;
    row_start_at(table, want->base == 0 ? 0 : want->base - 1);
    id_span_clear(&table->ids);
    if (row->config.any_ids || want->apart) {
        table->window_last = ROW_ID_MAX;
    }
    if (row->parted && want->description == NULL) {
        table->fill = row->kind->part_fill(table, table->base, table->last, region->bytes);
    }
    return table;
}

/* Parts are alike, so the one is near where it would be if they were equal. */
struct row_table *row_find_part(const struct row *row, uint64_t id)
{
    if (row->count <= 1) {
        return row->count == 1 ? row->tables[0] : NULL;
    }
    const struct row_table *first = row->tables[0];
    uint64_t key = row_part_key(first, id);
    double share = (double)key / ((double)first->keys->mask + 1);
    size_t at = (size_t)(share * (double)row->count);
    at = at < row->count ? at : row->count - 1;
    while (key < row->bases[at]) {
        at--;
    }
    while (at + 1 < row->count && key >= row->bases[at + 1]) {
        at++;
    }
    return row->tables[at];
}

void row_stand(struct row *row, struct row_table *table)
{
    CHECK(row->count < ROW_ROUTES_MAX);
    size_t at = row_rank(row, table->base, row->count);
    size_t behind = row->count - at;
    memmove(row->tables + at + 1, row->tables + at, behind * sizeof(row->tables[0]));
    memmove(row->bases + at + 1, row->bases + at, behind * sizeof(row->bases[0]));
    row->tables[at] = table;
    row->bases[at] = table->base;
    row->count++;
    row->dropped_ranges += table->dropped.count;
}

void row_insert(struct row *row, struct row_table *table)
{
    table->serial = row->serials++;
    row_stand(row, table);
}

size_t row_index_of(const struct row *row, const struct row_table *table)
{
    size_t at = row_rank(row, table->base, row->count);
    CHECK(at > 0 && row->tables[at - 1] == table);
    return at - 1;
}

struct row_table *row_first_table(struct row *row, struct row_region *region)
{
    CHECK(row->count == 0);
    struct row_want want = {.first = !row->config.any_ids};
    struct row_table *table = row_make_table(row, &want, ROW_ID_MAX, region);
    if (table != NULL) {
        row_insert(row, table);
    }
    return table;
}

void row_note_closed(struct row *row, struct row_table *table)
{
    if (!table->closed && table->settled && row_frontier_of(table) == table->last &&
        !row->config.any_ids) {
        table->closed = true;
        table->closed_serial = row->serials;
    }
}

void row_count_dropped(struct row *row)
{
    row->dropped_ranges = 0;
    for (size_t i = 0; i < row->count; i++) {
        row->dropped_ranges += row->tables[i]->dropped.count;
    }
}

void row_retire_one(struct row *row, struct row_table *table)
{
    row_fold_forget(row, table);
    row->merges -= table->merging; /* its end will find no table */
    table->merging = false;
    row_lock(row);
    table->further = row->retired;
    row->retired = table;
    row_unlock(row);
    row->untidy = true;
}

/* Takes it off the row, its layer is retired. */
static void take_off(struct row *row, const struct row_table *table)
{
    size_t at = row_index_of(row, table);
    size_t behind = row->count - at - 1;
    memmove(row->tables + at, row->tables + at + 1, behind * sizeof(row->tables[0]));
    memmove(row->bases + at, row->bases + at + 1, behind * sizeof(row->bases[0]));
    row->count--;
    row->dropped_ranges -= table->dropped.count;
    for (struct row_table *layer = table->further; layer != NULL;) {
        struct row_table *next = layer->further;
        row_retire_one(row, layer);
        layer = next;
    }
}

void row_retire(struct row *row, struct row_table *table)
{
    take_off(row, table);
    row_retire_one(row, table);
}

void row_retire_all(struct row *row)
{
    while (row->count > 0) {
        row_retire(row, row->tables[0]);
    }
}

/* What kinds have no use for any more. */
struct row_discarded {
    struct row_discarded *next;
    void *object;
    void (*destroy)(void *object);
};

void row_discard(struct row *row, void *object, void (*destroy)(void *object))
{
    struct row_discarded *add = memory_zalloc(sizeof(*add));
    row_lock(row);
    *add = (struct row_discarded){row->discarded, object, destroy};
    row->discarded = add;
    row_unlock(row);
}

void row_destroy_discarded(struct row *row)
{
    row_lock(row);
    struct row_discarded *at = row->discarded;
    row->discarded = NULL;
    row_unlock(row);
    while (at != NULL) {
        struct row_discarded *next = at->next;
        at->destroy(at->object);
        free(at);
        at = next;
    }
}
