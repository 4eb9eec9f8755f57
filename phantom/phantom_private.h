/*
 * phantom_private.h: the phantom engine's own struct, shared by phantom*.c alone.
 */
#ifndef ROLLCALL_PHANTOM_PHANTOM_PRIVATE_H
#define ROLLCALL_PHANTOM_PHANTOM_PRIVATE_H

#include "phantom/phantom.h"
#include "phantom/table.h"
#include "row/row.h"

#define PHANTOM_MAGIC 0x7068616eu /* "phan" */

struct phantom {
    struct engine engine; /* first: an engine is a phantom */
    uint32_t magic;
    struct phantom_config config;
    struct phantom_shape shape; /* of the next table */
    struct phantom_secrets secrets;
    struct row row;
    struct engine_cold *cold; /* NULL: no table leaves memory */
    _Atomic bool merges;      /* some overlay is to be merged */
};

/* phantom.c: turns deletes on or off in all tables, or in none: false, memory is refused. Stopped.
 */
bool phantom_turn_deletes(const struct phantom *phantom, bool on, uint64_t exceptions_bytes);

/* phantom.c: may tables leave memory? */
bool phantom_dumps(const struct phantom *phantom);

/* phantom_ops.c */
bool phantom_slot_of(const struct engine *engine, const char *tail, size_t length, int *slot);
void phantom_prepare(struct engine *engine, struct engine_op *const *ops, size_t n);
void phantom_read(struct engine *engine, struct engine_op *const *ops, size_t n);
void phantom_change(struct engine *engine, struct engine_op *op, struct change_sink *sink);

/* phantom_stats.c */
void phantom_stats_space(const struct engine *engine, engine_stat_fn *emit, void *context);
uint64_t phantom_stats_table(const struct engine *engine, uint64_t from, engine_stat_fn *emit,
                             void *context);
void phantom_memory(const struct engine *engine, struct engine_memory kinds[ENGINE_MEMORY_KINDS]);

/* phantom_cold.c */
/* An overlay of this table may have grown: is a merge wanted now? Any thread inside. */
void phantom_overlay_grew(struct phantom *phantom, const struct phantom_table *table);
/* The next image of kind MERGE; false: none. Stopped. */
bool phantom_merge_next(struct phantom *phantom, uint64_t now, struct row_image *image);
/* The image of kind DUMP begins. Stopped, as all that follows. */
void phantom_tap(struct phantom *phantom, const struct row_image *image);
/* Is this a dump that was given up, as a line of its overlay found no place? */
bool phantom_cold_overran(const struct phantom *phantom, const struct row_image *image);
/* The row knows already. */
void phantom_cold_image_failed(struct phantom *phantom, const struct row_image *image);
void phantom_cold_restored(struct phantom *phantom); /* all was replayed */
/* As these of struct engine_keeping. */
void phantom_set_cold(struct engine *engine, struct engine_cold *cold);
bool phantom_images_wanted(const struct engine *engine);
struct table_file *phantom_image_done(struct engine *engine, const struct row_image *image,
                                      struct table_file *file);
bool phantom_restore_dumped(struct engine *engine, struct table_file *file,
                            const struct table_file *overlay, char error[ENGINE_ERROR_MAX]);

/* phantom_image.c: likewise. */
void phantom_images_begin(struct engine *engine);
bool phantom_image_next(struct engine *engine, uint64_t since, uint64_t now,
                        struct row_image *image);
enum engine_image phantom_image_write(struct engine *engine, const struct row_image *image,
                                      struct barrier_member *member,
                                      struct table_file_writer *writer, const _Atomic bool *stop);
void phantom_image_failed(struct engine *engine, const struct row_image *image);
void phantom_images_failed(struct engine *engine);

/* phantom_keep.c */
extern const struct engine_keeping phantom_keeping;
void phantom_log_space(const struct phantom *phantom); /* puts SPACE, with a log. Stopped */

#endif
