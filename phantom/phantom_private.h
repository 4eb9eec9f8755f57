/*
 * phantom_private.h: the phantom engine's own struct, shared by phantom*.c alone.
 */
#ifndef ROLLCALL_PHANTOM_PHANTOM_PRIVATE_H
#define ROLLCALL_PHANTOM_PHANTOM_PRIVATE_H

#include "engine/row.h"
#include "phantom/phantom.h"
#include "phantom/table.h"

#define PHANTOM_MAGIC 0x7068616eu /* "phan" */

struct phantom {
    struct engine engine; /* first: an engine is a phantom */
    uint32_t magic;
    struct phantom_config config;
    struct phantom_shape shape; /* of the next table */
    struct phantom_secrets secrets;
    struct row row;
};

/* phantom.c: turns deletes on or off in all tables, or in none: false, memory is refused. Stopped.
 */
bool phantom_turn_deletes(const struct phantom *phantom, bool on, uint64_t exceptions_bytes);

/* phantom_ops.c */
bool phantom_slot_of(const struct engine *engine, const char *tail, size_t length, int *slot);
void phantom_prepare(struct engine *engine, struct engine_op *const *ops, size_t n);
void phantom_read(struct engine *engine, struct engine_op *const *ops, size_t n);
void phantom_change(struct engine *engine, struct engine_op *op, struct change_sink *sink);

/* phantom_stats.c */
void phantom_stats_space(const struct engine *engine, engine_stat_fn *emit, void *context);
void phantom_stats_tables(const struct engine *engine, engine_stat_fn *emit, void *context);
void phantom_memory(const struct engine *engine, struct engine_memory kinds[ENGINE_MEMORY_KINDS]);

/* phantom_keep.c */
extern const struct engine_keeping phantom_keeping;
void phantom_log_space(const struct phantom *phantom); /* puts SPACE, with a log. Stopped */

#endif
