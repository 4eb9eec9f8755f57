/*
 * phantom_stats.c: what the engine tells of itself.
 */
#include "engine/emit.h"
#include "phantom/phantom_private.h"

#define LOAD_DIGITS 4
#define RATE_DIGITS 8

/* ---- of the space ---- */

static void add_table(void *context, struct row_table *table, bool layer)
{
    struct phantom_table_stats *sum = context;
    struct phantom_table_stats stats;
    if (layer) {
        return; /* its table speaks for it */
    }
    phantom_table_stats(phantom_table_of(table), &stats);
    sum->members += stats.members;
    sum->put += stats.put;
    sum->capacity += stats.capacity;
    sum->exceptions += stats.exceptions;
    sum->pools_used_bytes += stats.pools_used_bytes;
    sum->pools_bytes += stats.pools_bytes;
    sum->cold += stats.cold;
    sum->put_cold += stats.put_cold;
    sum->overlay_lines += stats.overlay_lines;
    sum->overlay_pools_bytes += stats.overlay_pools_bytes;
    sum->file_bytes += stats.file_bytes;
    sum->files_held_bytes += stats.files_held_bytes;
}

static struct phantom_table_stats sum_tables(const struct phantom *phantom)
{
    struct phantom_table_stats sum = {0};
    row_each(&phantom->row, add_table, &sum);
    return sum;
}

void phantom_stats_space(const struct engine *engine, engine_stat_fn *emit, void *context)
{
    const struct phantom *phantom = (const struct phantom *)engine;
    struct emitter to = {emit, context};
    struct phantom_table_stats sum = sum_tables(phantom);
    emit_text(&to, "kind", "phantom");
    emit_text(&to, "ids", phantom->config.row.any_ids ? "any" : "growing");
    emit_text(&to, "role", engine->role_cache ? "cache" : "store");
    emit_text(&to, "deletes", phantom->config.deletes ? "yes" : "no");
    emit_u64(&to, "members", sum.members);
    emit_u64(&to, "capacity", sum.capacity);
    emit_u64(&to, "exceptions", sum.exceptions);
    emit_u64(&to, "dumped_tables", sum.cold);
    emit_u64(&to, "dumped_bytes", sum.file_bytes);
    emit_u64(&to, "overlay_bytes", sum.overlay_lines * PHANTOM_OVERLAY_LINE_BYTES);
    row_emit_space(&phantom->row, &to);
}

/* ---- of a table ---- */

static void phantom_emit_table(const struct row *row, struct row_table *row_table,
                               const struct emitter *whole)
{
    const struct phantom_table *table = phantom_table_of(row_table);
    const struct phantom_shape *shape = phantom_table_shape(table);
    struct emit_numbered numbered;
    struct emitter to = emit_numbered(&numbered, whole, row_table->serial);
    struct phantom_table_stats stats;
    phantom_table_stats(table, &stats);
    emit_u64(&to, "members", stats.members + atomic_load(&row_table->apart));
    emit_u64(&to, "capacity", stats.capacity);
    emit_real(&to, "load", LOAD_DIGITS, (double)stats.put / (double)stats.capacity);
    emit_u64(&to, "bits_set_a_member", shape->plan.bits);
    emit_real(&to, "false_positives_at_capacity", RATE_DIGITS, shape->plan.rate);
    emit_real(&to, "false_positives", RATE_DIGITS, phantom_table_rate(table));
    emit_u64(&to, "exceptions", stats.exceptions);
    emit_u64(&to, "exceptions_bytes", stats.exceptions_bytes);
    emit_u64(&to, "bytes", (stats.layers - stats.cold) * shape->table_bytes);
    emit_u64(&to, "file_bytes", stats.file_bytes);
    emit_u64(&to, "overlay_lines", stats.overlay_lines);
    row_emit_table(row, row_table, whole);
}

uint64_t phantom_stats_table(const struct engine *engine, uint64_t from, engine_stat_fn *emit,
                             void *context)
{
    const struct phantom *phantom = (const struct phantom *)engine;
    struct emitter to = {emit, context};
    struct row_table *table = row_find_from(&phantom->row, from);
    phantom_emit_table(&phantom->row, table, &to);
    return row_next_base(table);
}

/* ---- memory ---- */

void phantom_figures(const struct engine *engine, struct engine_figures *figures)
{
    const struct phantom *phantom = (const struct phantom *)engine;
    struct engine_memory *filters = &figures->memory[ENGINE_MEMORY_FILTERS];
    struct phantom_table_stats sum = sum_tables(phantom);
    double bytes = (double)phantom->shape.table_bytes / (double)phantom->shape.capacity;
    filters->items += sum.members > sum.put_cold ? sum.members - sum.put_cold : 0;
    filters->item_bytes = (uint64_t)bytes + 1;
    filters->used_bytes +=
        (uint64_t)((double)(sum.put - sum.put_cold) * bytes) + sum.pools_used_bytes;
    filters->held_bytes += row_held_bytes(&phantom->row) + sum.pools_bytes;
    struct engine_memory *cold = &figures->memory[ENGINE_MEMORY_COLD];
    cold->items += sum.overlay_lines;
    cold->item_bytes = PHANTOM_OVERLAY_LINE_BYTES;
    cold->used_bytes += sum.overlay_lines * PHANTOM_OVERLAY_LINE_BYTES + sum.files_held_bytes;
    cold->held_bytes += sum.overlay_pools_bytes + sum.files_held_bytes;
    figures->recycled = phantom->row.recycled_ids;
}
