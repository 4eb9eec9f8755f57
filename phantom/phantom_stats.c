/*
 * phantom_stats.c: what the engine tells of itself.
 */
#include "engine/emit.h"
#include "phantom/phantom_private.h"

void phantom_stats_space(const struct engine *engine, engine_stat_fn *emit, void *context)
{
    const struct phantom *phantom = (const struct phantom *)engine;
    struct emitter to = {emit, context};
    struct phantom_table_stats stats;
    phantom_table_stats(phantom->table, &stats);
    emit_text(&to, "kind", "phantom");
    emit_text(&to, "ids", phantom->config.any_ids ? "any" : "growing");
    emit_text(&to, "role", engine->role_cache ? "cache" : "store");
    emit_text(&to, "deletes", phantom->config.deletes ? "yes" : "no");
    emit_u64(&to, "tables", 1);
    emit_u64(&to, "members", stats.members);
    emit_u64(&to, "capacity", phantom_table_shape(phantom->table)->capacity);
    emit_u64(&to, "exceptions", stats.exceptions);
    emit_u64(&to, "frontier", stats.last_id);
    emit_u64(&to, "ahead_ids", 0);
}

void phantom_stats_tables(const struct engine *engine, engine_stat_fn *emit, void *context)
{
    const struct phantom *phantom = (const struct phantom *)engine;
    const struct phantom_shape *shape = phantom_table_shape(phantom->table);
    struct emitter to = {emit, context};
    struct phantom_table_stats stats;
    phantom_table_stats(phantom->table, &stats);
    emit_u64(&to, "0:base", 0);
    emit_u64(&to, "0:first_id", stats.put ? stats.first_id : 0);
    emit_u64(&to, "0:last_id", stats.last_id);
    emit_u64(&to, "0:members", stats.members);
    emit_u64(&to, "0:capacity", shape->capacity);
    emit_real(&to, "0:load", 4, (double)stats.put / (double)shape->capacity);
    emit_u64(&to, "0:bits_set_a_member", shape->plan.bits);
    emit_real(&to, "0:false_positives_at_capacity", 8, shape->plan.rate);
    emit_real(&to, "0:false_positives", 8, phantom_table_rate(phantom->table));
    emit_u64(&to, "0:exceptions", stats.exceptions);
    emit_u64(&to, "0:exceptions_bytes", stats.exception_pool_bytes);
    emit_u64(&to, "0:bytes", shape->table_bytes);
    emit_text(&to, "0:state", "open");
    emit_u64(&to, "0:opened_at", phantom->opened_s);
}

void phantom_memory(const struct engine *engine, struct engine_memory kinds[ENGINE_MEMORY_KINDS])
{
    const struct phantom *phantom = (const struct phantom *)engine;
    const struct phantom_shape *shape = phantom_table_shape(phantom->table);
    struct engine_memory *filters = &kinds[ENGINE_MEMORY_FILTERS];
    struct phantom_table_stats stats;
    phantom_table_stats(phantom->table, &stats);
    double bytes = (double)shape->table_bytes / (double)shape->capacity;
    filters->items += stats.members;
    filters->item_bytes = (uint64_t)bytes + 1;
    filters->used_bytes += (uint64_t)((double)stats.put * bytes) + stats.exception_used_bytes;
    filters->held_bytes += shape->table_bytes + stats.exception_pool_bytes;
}
