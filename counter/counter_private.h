/*
 * counter_private.h: the counter engine's own struct, shared by counter*.c alone.
 */
#ifndef ROLLCALL_COUNTER_COUNTER_PRIVATE_H
#define ROLLCALL_COUNTER_COUNTER_PRIVATE_H

#include "counter/counter.h"
#include "counter/table.h"

#define COUNTER_MAGIC 0x636e7472u

struct counter {
    struct engine engine; /* first: an engine is a counter */
    uint32_t magic;
    struct counter_config config;
    struct counter_view view; /* of config on the table's schema */
    struct counter_table *table;
    uint64_t opened_s; /* wall clock */
};

/* counter_ops.c */
bool counter_slot_of(const struct engine *engine, const char *tail, size_t length, int *slot);
void counter_prepare(struct engine *engine, struct engine_op *const *ops, size_t n);
void counter_read(struct engine *engine, struct engine_op *const *ops, size_t n);
void counter_change(struct engine *engine, struct engine_op *op, struct change_sink *sink);

/* counter_stats.c */
void counter_stats_space(const struct engine *engine, engine_stat_fn *emit, void *context);
void counter_stats_tables(const struct engine *engine, engine_stat_fn *emit, void *context);
void counter_memory(const struct engine *engine, struct engine_memory kinds[ENGINE_MEMORY_KINDS]);

#endif
