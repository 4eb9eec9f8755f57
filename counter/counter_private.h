/*
 * counter_private.h: the counter engine's own struct, shared by counter*.c alone.
 */
#ifndef ROLLCALL_COUNTER_COUNTER_PRIVATE_H
#define ROLLCALL_COUNTER_COUNTER_PRIVATE_H

#include "base/num.h"
#include "counter/below.h"
#include "counter/counter.h"
#include "counter/table.h"
#include "engine/slots.h"
#include "row/row_cold.h"
#include "row/row_data.h"

#define COUNTER_MAGIC 0x636e7472u

struct counter {
    struct engine engine; /* first: an engine is a counter */
    uint32_t magic;
    struct engine_slots names; /* of the config's slots */
    struct counter_config config;
    unsigned slot_numbers; /* given so far */
    struct counter_slots {
        struct counter_slot at[ENGINE_SLOTS_MAX];
        size_t count;
    } before, /* of the configuration before, for undo */
        left; /* not named any more, and not forgotten */
    struct row row;
    struct counter_below *below; /* NULL: nothing is kept below the oldest table */
    uint64_t below_evicted;      /* by those that are gone */
};

static inline struct counter *counter_of(struct engine *engine)
{
    struct counter *counter = (struct counter *)engine;
    CHECK(counter->magic == COUNTER_MAGIC);
    return counter;
}

static inline const struct counter *counter_of_const(const struct engine *engine)
{
    const struct counter *counter = (const struct counter *)engine;
    CHECK(counter->magic == COUNTER_MAGIC);
    return counter;
}

/* Returns what reads pages of a dumped table's file for an operation. */
static inline struct counter_reader counter_reader_of(const struct counter *counter,
                                                      const struct engine_op *op)
{
    CHECK(counter->row.cold != NULL);
    return (struct counter_reader){.cold = counter->row.cold->cold, .ticket = op->ticket};
}

/* counter_ops.c */
void counter_prepare(struct engine *engine, struct engine_op *const *ops, size_t n);
void counter_read(struct engine *engine, struct engine_op *const *ops, size_t n);
/* The token of what the op's key is with these values; 0: nothing is there. */
uint64_t counter_token_of(const struct counter *counter, const struct engine_op *op,
                          const struct counter_values *values);
/* The same of an op of one slot, which holds this; its value is overwritten. */
uint64_t counter_token_of_number(const struct counter *counter, const struct engine_op *op,
                                 uint64_t number);

/* counter_change.c */
void counter_change(struct engine *engine, struct engine_op *op, struct change_sink *sink);

/* Bit a slot: what the op's key names. */
static inline uint32_t counter_op_slots(const struct counter *counter, const struct engine_op *op)
{
    if (op->slot == ENGINE_SLOT_RECORD) {
        return counter->names.all;
    }
    return LIKELY(op->slot >= 0) ? 1u << op->slot : op->some;
}

/* The i-th slot of a key that names several. */
static inline unsigned counter_op_slot_at(const struct engine_op *op, unsigned i)
{
    return op->order >> i * ENGINE_ORDER_BITS & ((1u << ENGINE_ORDER_BITS) - 1);
}

/* Puts values that stand in the key's order to their slots. */
void counter_op_scatter(const struct engine_op *op, const struct counter_values *ordered,
                        struct counter_values *values);
size_t counter_print_some(const struct engine_op *op, const struct counter_values *values,
                          char *text);

/* Writes the text of what the op's key names, where some of it is set. Returns its length. */
static inline size_t counter_print_values(const struct counter *counter, const struct engine_op *op,
                                          const struct counter_values *values, char *text)
{
    if (op->slot == ENGINE_SLOT_RECORD) {
        return counter_record_print(text, values, counter->names.count);
    }
    return LIKELY(op->slot >= 0) ? num_print(text, values->value[op->slot])
                                 : counter_print_some(op, values, text);
}

/* Returns what holds records below the oldest table; NULL: nothing does. */
static inline struct counter_below *counter_below_of(const struct counter *counter)
{
    return counter->engine.role_cache ? counter->below : NULL;
}

/* counter_edit.c */

/* A change under way. `waits`: it is pending for the row, not for a page. */
struct counter_changing {
    struct counter *counter;
    struct engine_op *op;
    struct counter_edit *edit;
    struct change_sink *sink;
    bool waits;
};
/* As counter_table_edit(), of the prepared op's record wherever it lies. Any thread inside. */
enum engine_status counter_edit_record(struct counter_changing *c);

/* Returns the table of a prepared op; NULL: its id is below the oldest, or was dropped. */
static inline struct counter_table *counter_op_table(const struct engine_op *op)
{
    return counter_table_of((struct row_table *)(uintptr_t)op->scratch[3]);
}

_Static_assert(sizeof(struct counter_locus) == 3 * sizeof(uint64_t), "the table lies after it");

/* Its locus there, from prepare on. */
static inline struct counter_locus *counter_op_locus(struct engine_op *op)
{
    return (struct counter_locus *)op->scratch;
}

/* Returns the layer of a table; NULL: it has none. */
static inline struct counter_table *counter_layer_of(struct counter_table *table)
{
    return counter_table_of(counter_table_in_row(table)->further);
}

static inline bool counter_may_be_apart(struct counter_table *table, uint64_t id)
{
    return row_may_be_apart(counter_table_in_row(table), id);
}

static inline bool counter_is_cold(struct counter_table *table)
{
    return counter_table_in_row(table)->cold;
}

/* counter_kind.c */
extern const struct table_kind counter_kind;

/* counter_config.c */
void counter_row_config(const struct counter_config *config, struct row_config *row);
/* Returns the bytes for records below the oldest table; 0: none are kept. */
uint64_t counter_below_bytes(const struct counter_config *config);

/* counter.c: the slots of a configuration, for the engine itself; its tables have views. */
void counter_take_slots(struct counter *counter, const struct counter_config *config);
void counter_forget_below(struct counter *counter); /* what is kept below the oldest table */

/* counter_space.c, counter_replay.c: as in struct table_kind. */
size_t counter_write_space(const struct engine *engine, unsigned char bytes[ROW_KIND_SPACE_MAX]);
bool counter_take_space(struct engine *engine, uint64_t lsn, const void *bytes, size_t length,
                        char error[ENGINE_ERROR_MAX]);
bool counter_replay(struct engine *engine, const struct engine_replay *changes, size_t n,
                    char error[ENGINE_ERROR_MAX]);
bool counter_replay_reads(struct engine *engine, const struct engine_replay *replay,
                          const struct ticket *ticket);

/* counter_stats.c */
/* Returns the figures of records below the oldest table; without room for any: zeros, but what was
 * evicted. */
struct counter_below_stats counter_below_figures(const struct counter *counter);
void counter_stats_space(const struct engine *engine, engine_stat_fn *emit, void *context);
uint64_t counter_stats_table(const struct engine *engine, uint64_t from, engine_stat_fn *emit,
                             void *context);
void counter_figures(const struct engine *engine, struct engine_figures *figures);

#endif
