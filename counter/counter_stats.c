/*
 * counter_stats.c: what the engine tells of itself.
 */
#include "counter/counter_private.h"
#include "engine/emit.h"

/* Figures of some tables, added up. */
struct sums {
    uint64_t records, capacity, places;
    uint64_t aux, aux_used_bytes, aux_pool_bytes, aux_entry_bytes;
    uint64_t extend, extend_used_bytes, extend_pool_bytes, extend_entry_bytes;
    uint64_t table_bytes;
    uint64_t in_groups, in_groups_bytes;
    uint64_t dumped, dumped_bytes; /* tables and layers, and their files */
    uint64_t overlay, overlay_bytes, overlay_held_bytes;
};

struct counter_below_stats counter_below_figures(const struct counter *counter)
{
    struct counter_below_stats below = {0};
    if (counter->below) {
        counter_below_stats(counter->below, &below);
    }
    below.evicted += counter->below_evicted;
    return below;
}

/* What it has in memory for what changed: of a dumped table, or of one about to be. */
static void add_overlay(struct sums *sums, const struct counter_table *table)
{
    struct row_overlay_size size;
    counter_table_overlay_size(table, &size);
    sums->overlay += size.entries;
    sums->overlay_bytes += size.bytes + size.older_bytes;
    sums->overlay_held_bytes += size.held_bytes;
}

static void add(struct sums *sums, const struct row_table *row_table)
{
    struct counter_table *table = counter_table_of((struct row_table *)row_table);
    const struct counter_shape *shape = counter_table_shape(table);
    struct counter_table_stats stats;
    counter_table_stats(table, &stats);
    add_overlay(sums, table);
    sums->records += stats.records;
    sums->capacity += row_table->is_apart ? 0 : shape->capacity;
    if (stats.cold) {
        sums->dumped++;
        sums->dumped_bytes += counter_table_file_bytes(table);
        return;
    }
    uint64_t in_groups = stats.records > stats.extend ? stats.records - stats.extend : 0;
    sums->places += row_table->is_apart ? 0 : shape->groups * shape->places;
    sums->aux += stats.aux;
    sums->aux_used_bytes += stats.aux_used_bytes;
    sums->aux_pool_bytes += stats.aux_pool_bytes;
    sums->aux_entry_bytes = stats.aux_entry_bytes;
    sums->extend += stats.extend;
    sums->extend_used_bytes += stats.extend_used_bytes;
    sums->extend_pool_bytes += stats.extend_pool_bytes;
    sums->extend_entry_bytes = stats.extend_entry_bytes;
    sums->table_bytes += row_table->is_apart ? 0 : shape->table_bytes;
    sums->in_groups += in_groups;
    sums->in_groups_bytes += in_groups * (shape->payload_bytes + shape->rem_bytes);
}

static void add_visited(void *context, struct row_table *table, bool layer)
{
    (void)layer;
    add(context, table);
}

static void emit_below(const struct emitter *to, const struct counter *counter)
{
    struct counter_below_stats below = counter_below_figures(counter);
    emit_u64(to, "below_records", below.records);
    emit_u64(to, "below_bytes", below.used_bytes);
    emit_u64(to, "below_bytes_max", below.held_bytes);
    emit_u64(to, "below_hits", below.hits);
    emit_u64(to, "below_evicted", below.evicted);
}

void counter_stats_space(const struct engine *engine, engine_stat_fn *emit, void *context)
{
    const struct counter *counter = (const struct counter *)engine;
    struct emitter to = {emit, context};
    struct sums sums = {0};
    row_each(&counter->row, add_visited, &sums);
    emit_text(&to, "kind", "counter");
    emit_text(&to, "ids", counter->config.row.any_ids ? "any" : "growing");
    emit_text(&to, "role", engine->role_cache ? "cache" : "store");
    emit_u64(&to, "slots", counter->names.count);
    emit_u64(&to, "records", sums.records);
    emit_u64(&to, "capacity", sums.capacity);
    emit_u64(&to, "dumped_tables", sums.dumped);
    emit_u64(&to, "dumped_bytes", sums.dumped_bytes);
    emit_u64(&to, "overlay_bytes", sums.overlay_bytes);
    emit_below(&to, counter);
    row_emit_space(&counter->row, &to);
}

static void emit_table(const struct counter *counter, const struct row_table *table,
                       const struct emitter *to)
{
    struct counter_table *this = counter_table_of((struct row_table *)table);
    const struct counter_shape *shape = counter_table_shape(this);
    struct counter_table_stats stats;
    struct sums sums = {0};
    struct emit_numbered numbered;
    struct emitter own = emit_numbered(&numbered, to, table->serial);
    counter_table_stats(this, &stats);
    for (const struct row_table *layer = table; layer; layer = layer->further) {
        add(&sums, layer);
    }
    row_emit_table(&counter->row, table, to);
    emit_u64(&own, "window_first", stats.settled ? stats.window_first : 0);
    emit_u64(&own, "window_bits", shape->window_bits);
    emit_u64(&own, "records", sums.records + atomic_load(&table->apart));
    emit_u64(&own, "capacity", sums.capacity);
    emit_share(&own, "load", sums.records, sums.places);
    emit_u64(&own, "places_a_group", shape->places);
    emit_u64(&own, "group_bytes", shape->group_bytes);
    emit_u64(&own, "aux", sums.aux);
    emit_u64(&own, "aux_bytes", sums.aux_used_bytes);
    emit_u64(&own, "aux_pool_bytes", sums.aux_pool_bytes);
    emit_u64(&own, "extend", sums.extend);
    emit_u64(&own, "extend_bytes", sums.extend_used_bytes);
    emit_u64(&own, "extend_pool_bytes", sums.extend_pool_bytes);
    emit_u64(&own, "exceptions", 0);
    emit_u64(&own, "bytes", sums.table_bytes);
    emit_u64(&own, "overlay", sums.overlay);
    emit_u64(&own, "file_bytes", sums.dumped_bytes);
}

uint64_t counter_stats_table(const struct engine *engine, uint64_t from, engine_stat_fn *emit,
                             void *context)
{
    const struct counter *counter = (const struct counter *)engine;
    struct emitter to = {emit, context};
    const struct row_table *table = row_find_from(&counter->row, from);
    emit_table(counter, table, &to);
    return row_next_base(table);
}

/* The table, layer, or at last that of ids apart which the look has come to; NULL: it is over. */
static struct row_table *survey_table(const struct row *row, struct engine_survey *survey)
{
    while (!survey->apart) {
        struct row_table *table = row_find_from(row, survey->from);
        struct row_table *layer = table;
        for (unsigned i = 0; layer && i < survey->layer; i++) {
            layer = layer->further;
        }
        if (layer) {
            return layer;
        }
        survey->from = row_next_base(table);
        survey->layer = 0;
        survey->apart = survey->from == 0;
    }
    return survey->layer == 0 ? row->apart : NULL;
}

bool counter_survey(const struct engine *engine, struct engine_survey *survey)
{
    const struct counter *counter = (const struct counter *)engine;
    struct row_table *table = survey_table(&counter->row, survey);
    if (!table) {
        return false;
    }
    if (!counter_table_survey(counter_table_of(table), counter->config.slots, survey)) {
        survey->layer++;
        survey->part = 0;
        survey->at = 0;
    }
    return true;
}

static void add_cold(struct engine_memory *cold, const struct sums *sums,
                     struct counter_below_stats below)
{
    uint64_t items = sums->overlay + below.records;
    uint64_t bytes = sums->overlay_bytes + below.used_bytes;
    cold->items += items;
    cold->item_bytes = items ? bytes / items : 0;
    cold->used_bytes += bytes;
    cold->held_bytes += sums->overlay_held_bytes + below.held_bytes;
}

void counter_figures(const struct engine *engine, struct engine_figures *figures)
{
    const struct counter *counter = (const struct counter *)engine;
    struct sums sums = {0};
    row_each(&counter->row, add_visited, &sums);
    struct engine_memory *kinds = figures->memory;
    struct engine_memory *tables = &kinds[ENGINE_MEMORY_TABLES];
    tables->items += sums.in_groups; /* the rest is counted below */
    tables->item_bytes = sums.in_groups ? sums.in_groups_bytes / sums.in_groups : 0;
    tables->used_bytes += sums.in_groups_bytes;
    tables->held_bytes += row_held_bytes(&counter->row);
    kinds[ENGINE_MEMORY_AUX].items += sums.aux;
    kinds[ENGINE_MEMORY_AUX].item_bytes = sums.aux_entry_bytes;
    kinds[ENGINE_MEMORY_AUX].used_bytes += sums.aux * sums.aux_entry_bytes;
    kinds[ENGINE_MEMORY_AUX].held_bytes += sums.aux_pool_bytes;
    kinds[ENGINE_MEMORY_EXTEND].items += sums.extend;
    kinds[ENGINE_MEMORY_EXTEND].item_bytes = sums.extend_entry_bytes;
    kinds[ENGINE_MEMORY_EXTEND].used_bytes += sums.extend * sums.extend_entry_bytes;
    kinds[ENGINE_MEMORY_EXTEND].held_bytes += sums.extend_pool_bytes;
    struct counter_below_stats below = counter_below_figures(counter);
    add_cold(&kinds[ENGINE_MEMORY_COLD], &sums, below);
    figures->recycled = counter->row.recycled_ids + below.evicted;
}
