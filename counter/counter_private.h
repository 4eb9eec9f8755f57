/*
 * counter_private.h: the counter engine's own struct, shared by counter*.c alone.
 */
#ifndef ROLLCALL_COUNTER_COUNTER_PRIVATE_H
#define ROLLCALL_COUNTER_COUNTER_PRIVATE_H

#include "counter/below.h"
#include "counter/counter.h"
#include "counter/table.h"
#include "row/row.h"

#define COUNTER_MAGIC 0x636e7472u

struct counter {
    struct engine engine; /* first: an engine is a counter */
    uint32_t magic;
    struct counter_names names; /* of the config's slots */
    struct counter_config config;
    unsigned slot_numbers; /* given so far */
    struct counter_slots {
        struct counter_slot at[ENGINE_SLOTS_MAX];
        size_t count;
    } before, /* of the configuration before, for undo */
        left; /* not named any more, and not forgotten */
    struct row row;
    struct engine_cold *cold;    /* NULL: no table leaves memory */
    struct counter_below *below; /* NULL: nothing is kept below the oldest table */
    uint64_t below_evicted;      /* by those that are gone */
    _Atomic bool merge_wanted;   /* of some overlay that is too large */
};

/* counter_ops.c */
bool counter_slot_of(const struct engine *engine, const char *tail, size_t length, int *slot);
void counter_prepare(struct engine *engine, struct engine_op *const *ops, size_t n);
void counter_read(struct engine *engine, struct engine_op *const *ops, size_t n);
void counter_change(struct engine *engine, struct engine_op *op, struct change_sink *sink);

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

static inline struct counter_locus counter_op_locus(const struct engine_op *op)
{
    return (struct counter_locus){op->id, op->scratch[0], op->scratch[1]};
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

/* counter_row.c: what the row needs of the engine. */
extern const struct row_functions counter_row_functions;
void counter_row_config(const struct counter_config *config, struct row_config *row);

/* counter.c: the slots of a configuration, for the engine itself; its tables have views. */
void counter_take_slots(struct counter *counter, const struct counter_config *config);
void counter_forget_below(struct counter *counter); /* what is kept below the oldest table */

/* counter_keep.c */
extern const struct engine_keeping counter_keeping;
void counter_log_space(const struct counter *counter); /* puts SPACE; without a log: nothing */

/* counter_image.c */
enum engine_image counter_image_write(struct engine *engine, const struct row_image *image,
                                      struct barrier_member *member,
                                      struct table_file_writer *writer, const _Atomic bool *stop);

/* counter_cold.c: as struct engine_keeping has them. */
void counter_set_cold(struct engine *engine, struct engine_cold *cold);
bool counter_images_wanted(const struct engine *engine);
void counter_image_failed(struct engine *engine, const struct row_image *image);
void counter_images_failed(struct engine *engine);
struct table_file *counter_image_done(struct engine *engine, const struct row_image *image,
                                      struct table_file *file);
bool counter_restore_dumped(struct engine *engine, struct table_file *file,
                            const struct table_file *overlay, char error[ENGINE_ERROR_MAX]);
struct counter_reader counter_reader_of(const struct counter *counter, const struct engine_op *op);
/* A dumped table was changed, or could not be: is a merge due? Any thread inside. */
void counter_cold_changed(struct counter *counter, const struct counter_table *table);
/* Begins the image of a merge that is due; false: none is. Stopped. */
bool counter_merge_next(struct counter *counter, uint64_t now, struct row_image *image);
/* An image of the row begins, of this table. Stopped. */
void counter_image_began(struct counter *counter, struct row_table *table,
                         const struct row_image *image);

/* counter_stats.c */
/* Of records below the oldest table; nothing is kept there: zeros, but what was evicted. */
struct counter_below_stats counter_below_figures(const struct counter *counter);
void counter_stats_space(const struct engine *engine, engine_stat_fn *emit, void *context);
uint64_t counter_stats_table(const struct engine *engine, uint64_t from, engine_stat_fn *emit,
                             void *context);
void counter_memory(const struct engine *engine, struct engine_memory kinds[ENGINE_MEMORY_KINDS]);

#endif
