/* row_check.c: what must hold of a row, numbered as in row.h. */
#include "row/row_private.h"

static void check_region(const struct row_table *table)
{
    const struct row_region *region = table->region;
    CHECK(table->cold == (region == NULL));                                        /* R9 */
    CHECK(region == NULL || (region->used && !region->left && region->bytes > 0)); /* R5 */
    CHECK(!table->cold || (!table->leaving && !table->tapped));                    /* R9 */
    CHECK(table->leaving || !table->tapped);                                       /* R9 */
    CHECK(table->whole || (!table->leaving && !table->cold));                      /* R9 */
}

static void check_table(const struct row *row, size_t i)
{
    const struct row_table *table = row->tables[i];
    bool newest = i + 1 == row->count;
    uint64_t frontier = row_frontier_of(table);
    CHECK(row->bases[i] == table->base && table->base <= table->last);                   /* R1 */
    CHECK(table->last == (newest ? ROW_ID_MAX : row->bases[i + 1] - 1));                 /* R1 */
    CHECK(frontier <= table->last && (table->base == 0 || frontier >= table->base - 1)); /* R2 */
    CHECK(!table->closed || (table->settled && frontier == table->last));                /* R3 */
    CHECK(table->settled || row->count == 1);                                            /* R3 */
    CHECK(table->trusted <= frontier);                                                   /* R2 */
    uint64_t clear_to = atomic_load(&table->clear_to);
    CHECK(clear_to == 0 || clear_to + table->range / ROW_NEAR_PART <= row_end(table)); /* R2 */
    uint64_t count = row_count_of(table);
    CHECK(count <= row_most_of(table) || table->whole); /* R6 */
    check_region(table);
    CHECK(table->settled || !table->leaving);                            /* R9 */
    CHECK(!table->awaiting || atomic_load(&table->wants) != 0);          /* R9 */
    CHECK(row_dropped_sound(&table->dropped, table->base, table->last)); /* R10 */
}

static void check_layer(const struct row_table *table, const struct row_table *layer)
{
    CHECK(table->settled && layer->serial == table->serial); /* R4, R8 */
    check_region(layer);
    CHECK(layer->cold || layer->region != table->region);             /* R5 */
    CHECK(layer->cold || !table->tapped || layer->tapped);            /* R9 */
    CHECK(layer->base == table->base && layer->last == table->last);  /* R4 */
    CHECK(row_count_of(layer) <= row_most_of(layer) || table->whole); /* R6 */
}

/* Returns how many of it and its layers are in memory. */
static size_t check_layers(const struct row_table *table)
{
    size_t layers = 0;
    unsigned before = 0;
    size_t near = !table->cold;
    for (const struct row_table *layer = table->further; layer != NULL; layer = layer->further) {
        check_layer(table, layer);
        CHECK(layer->layer > before); /* R4 */
        before = layer->layer;
        near += !layer->cold;
        layers++;
    }
    CHECK(table->layer == 0 && layers <= ROW_LAYERS_MAX); /* R4 */
    return near;
}

static size_t regions_used(const struct row *row)
{
    size_t used = 0;
    row_lock(row);
    for (size_t i = 0; i < row->region_count; i++) {
        used += row->regions[i]->used && !row->regions[i]->left;
    }
    row_unlock(row);
    return used;
}

/* Retired ones are the keeper's: it takes them off the list before it gives their memory back. */
static size_t retired_count(const struct row *row)
{
    size_t retired = 0;
    row_lock(row);
    for (const struct row_table *table = row->retired; table != NULL; table = table->further) {
        retired += table->region != NULL;
    }
    row_unlock(row);
    return retired;
}

static void check_serials(const struct row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        const struct row_table *table = row->tables[i];
        CHECK(table->serial < row->serials); /* R8 */
        CHECK(!table->layer_due);            /* R8 */
        for (size_t j = 0; j < i; j++) {
            CHECK(row->tables[j]->serial != table->serial); /* R8 */
        }
    }
}

static void check_id_apart(void *context, uint64_t id)
{
    const struct row *row = context;
    const struct row_table *table = row_route(row, id);
    CHECK(table != NULL && row_may_be_apart(table, id)); /* R6 */
}

static void check_apart(const struct row *row)
{
    const struct row_table *apart = row->apart;
    CHECK((apart == NULL) == row->config.any_ids);
    if (apart != NULL) {
        CHECK(apart->is_apart && apart->further == NULL &&
              apart->serial >= ROW_APART_SERIALS); /* R8 */
        row_apart_each(row, check_id_apart, (void *)row);
    }
}

void row_check(const struct row *row)
{
    CHECK(row->count >= 1 && row->count <= ROW_ROUTES_MAX);
    size_t tables = 0;
    uint64_t dropped = 0;
    for (size_t i = 0; i < row->count; i++) {
        dropped += row->tables[i]->dropped.count;
        CHECK(i == 0 || row->bases[i - 1] < row->bases[i]); /* R1 */
        check_table(row, i);
        tables += check_layers(row->tables[i]);
    }
    check_serials(row);
    check_apart(row);
    CHECK(dropped == row->dropped_ranges);                                  /* R10 */
    CHECK(row->parted || regions_used(row) >= tables + retired_count(row)); /* R5 */
    CHECK(row->tables[0]->settled || row->sample_count <= ROW_SAMPLE_MAX);  /* R7 */
    CHECK(!row->tables[0]->settled || row->sample_count == 0);              /* R7 */
}
