/*
 * counter_stats.c: what the engine tells of itself.
 */
#include "counter/counter_private.h"
#include "engine/emit.h"

void counter_stats_space(const struct engine *engine, engine_stat_fn *emit, void *context)
{
    const struct counter *counter = (const struct counter *)engine;
    struct emitter to = {emit, context};
    struct counter_table_stats stats;
    counter_table_stats(counter->table, &stats);
    emit_text(&to, "kind", "counter");
    emit_text(&to, "ids", counter->config.any_ids ? "any" : "growing");
    emit_text(&to, "role", engine->role_cache ? "cache" : "store");
    emit_u64(&to, "slots", counter->view.slot_count);
    emit_u64(&to, "tables", 1);
    emit_u64(&to, "records", stats.records);
    emit_u64(&to, "capacity", counter_table_shape(counter->table)->capacity);
    emit_u64(&to, "frontier", stats.last_id);
    emit_u64(&to, "ahead_ids", 0);
}

void counter_stats_tables(const struct engine *engine, engine_stat_fn *emit, void *context)
{
    const struct counter *counter = (const struct counter *)engine;
    const struct counter_shape *shape = counter_table_shape(counter->table);
    struct emitter to = {emit, context};
    struct counter_table_stats stats;
    counter_table_stats(counter->table, &stats);
    emit_u64(&to, "0:base", 0);
    emit_u64(&to, "0:window_first", stats.anchored ? stats.origin : 0);
    emit_u64(&to, "0:window_bits", shape->window_bits);
    emit_u64(&to, "0:first_id", stats.records ? stats.first_id : 0);
    emit_u64(&to, "0:last_id", stats.last_id);
    emit_u64(&to, "0:records", stats.records);
    emit_u64(&to, "0:capacity", shape->capacity);
    emit_share(&to, "0:load", stats.records, shape->groups * shape->places);
    emit_share(&to, "0:late_share", 0, 0); /* no later table: nothing comes late */
    emit_u64(&to, "0:places_a_group", shape->places);
    emit_u64(&to, "0:group_bytes", shape->group_bytes);
    emit_u64(&to, "0:aux", stats.aux);
    emit_u64(&to, "0:aux_bytes", stats.aux_pool_bytes);
    emit_u64(&to, "0:extend", stats.extend);
    emit_u64(&to, "0:extend_bytes", stats.extend_pool_bytes);
    emit_u64(&to, "0:exceptions", 0);
    emit_u64(&to, "0:bytes", shape->table_bytes);
    emit_text(&to, "0:state", "open");
    emit_u64(&to, "0:opened_at", counter->opened_s);
}

void counter_memory(const struct engine *engine, struct engine_memory kinds[ENGINE_MEMORY_KINDS])
{
    const struct counter *counter = (const struct counter *)engine;
    const struct counter_shape *shape = counter_table_shape(counter->table);
    struct counter_table_stats stats;
    counter_table_stats(counter->table, &stats);
    uint64_t in_groups =
        stats.records - (stats.extend < stats.records ? stats.extend : stats.records);
    uint64_t place_bytes = shape->payload_bytes + shape->rem_bytes;
    struct engine_memory *tables = &kinds[ENGINE_MEMORY_TABLES];
    tables->items += in_groups; /* the rest is counted below */
    tables->item_bytes = place_bytes;
    tables->used_bytes += in_groups * place_bytes;
    tables->held_bytes += shape->table_bytes;
    kinds[ENGINE_MEMORY_AUX].items += stats.aux;
    kinds[ENGINE_MEMORY_AUX].item_bytes = stats.aux_entry_bytes;
    kinds[ENGINE_MEMORY_AUX].used_bytes += stats.aux * stats.aux_entry_bytes;
    kinds[ENGINE_MEMORY_AUX].held_bytes += stats.aux_pool_bytes;
    kinds[ENGINE_MEMORY_EXTEND].items += stats.extend;
    kinds[ENGINE_MEMORY_EXTEND].item_bytes = stats.extend_entry_bytes;
    kinds[ENGINE_MEMORY_EXTEND].used_bytes += stats.extend * stats.extend_entry_bytes;
    kinds[ENGINE_MEMORY_EXTEND].held_bytes += stats.extend_pool_bytes;
}
