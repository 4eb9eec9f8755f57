/*
 * phantom_private.h: the phantom engine's own struct, shared by phantom*.c alone.
 */
#ifndef ROLLCALL_PHANTOM_PHANTOM_PRIVATE_H
#define ROLLCALL_PHANTOM_PHANTOM_PRIVATE_H

#include "phantom/phantom.h"
#include "phantom/table.h"
#include "row/row_cold.h"
#include "row/row_data.h"

#define PHANTOM_MAGIC       0x7068616eu /* "phan" */
#define PHANTOM_MEMBER_TEXT '1'         /* what a member that is there reads as */

struct phantom {
    struct engine engine; /* first: an engine is a phantom */
    uint32_t magic;
    struct phantom_config config;
    struct phantom_shape shape; /* of the next table */
    struct phantom_secrets secrets;
    struct row row;
};

static inline struct phantom *phantom_of(struct engine *engine)
{
    struct phantom *phantom = (struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    return phantom;
}

static inline const struct phantom *phantom_of_const(const struct engine *engine)
{
    const struct phantom *phantom = (const struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    return phantom;
}

/* phantom.c: turns deletes on or off in all tables, or in none: false, memory is refused. Stopped.
 */
bool phantom_turn_deletes(const struct phantom *phantom, bool on, uint64_t exceptions_bytes);

/* phantom_ops.c */
bool phantom_slots_of(const struct engine *engine, const char *tail, size_t length,
                      struct engine_op *op);
void phantom_prepare(struct engine *engine, struct engine_op *const *ops, size_t n);
void phantom_read(struct engine *engine, struct engine_op *const *ops, size_t n);
void phantom_change(struct engine *engine, struct engine_op *op, struct change_sink *sink);

/* phantom_stats.c */
void phantom_stats_space(const struct engine *engine, engine_stat_fn *emit, void *context);
uint64_t phantom_stats_table(const struct engine *engine, uint64_t from, engine_stat_fn *emit,
                             void *context);
void phantom_figures(const struct engine *engine, struct engine_figures *figures);

/* phantom_config.c */
struct row_config phantom_row_config(const struct phantom_config *config);

/* phantom_kind.c */
extern const struct table_kind phantom_kind;

/* phantom_space.c, phantom_replay.c: as in struct table_kind. */
size_t phantom_write_space(const struct engine *engine, unsigned char bytes[ROW_KIND_SPACE_MAX]);
bool phantom_take_space(struct engine *engine, uint64_t lsn, const void *bytes, size_t length,
                        char error[ENGINE_ERROR_MAX]);
bool phantom_replay(struct engine *engine, const struct engine_replay *changes, size_t n,
                    char error[ENGINE_ERROR_MAX]);

#endif
