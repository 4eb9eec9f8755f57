/*
 * table_overlay.h: what changed of a table that is dumped, or is about to be (counter/table.h).
 *
 * Thread rule: get and put under the id's lock, where readers look whether it was taken meanwhile;
 * create and destroy by any thread; the rest with the world stopped, or nobody else there.
 */
#ifndef ROLLCALL_COUNTER_TABLE_OVERLAY_H
#define ROLLCALL_COUNTER_TABLE_OVERLAY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

struct counter_table;
struct dict;
struct engine_cold;
struct table_file;
struct table_record;

struct table_overlay {
    struct dict *extend; /* id -> payload: what it became, or nothing set: gone */
    struct dict *aux;
    struct engine_cold *cold; /* whose budget it counts in */
    uint64_t pool_bytes;      /* as `extend` was asked for: at least what its levels have */
    _Atomic uint64_t bytes;   /* as counted there */
    _Atomic unsigned users;   /* its table, and a merge that reads it */
};

/* NULL: memory is refused. It takes at least this many entries. */
struct table_overlay *table_overlay_create(const struct counter_table *t, struct engine_cold *cold,
                                           uint64_t extend_entries, uint64_t aux_entries);
/* Makes the overlay in front of a merge: wider than the one before, if that got half full. */
struct table_overlay *table_overlay_create_next(const struct counter_table *t);
/* So, of a table that is to be dumped, and was in vain for so many overruns. */
struct table_overlay *table_overlay_create_tap(const struct counter_table *t,
                                               struct engine_cold *cold, unsigned overruns);
/* As wide as that one at least, with room for the entries of both. */
struct table_overlay *table_overlay_create_wide(const struct counter_table *t,
                                                const struct table_overlay *like,
                                                const struct table_overlay *more);
bool table_overlay_is_half(const struct table_overlay *overlay); /* of its places */
void table_overlay_destroy(struct table_overlay *overlay); /* with its last user. NULL: no-op */
/* The same with the world stopped: it counts no more, and is destroyed later. NULL: no-op. */
void table_overlay_discard(const struct counter_table *t, struct table_overlay *overlay);
/* False: it says nothing of the id. Values beside: of `subs`. Readers look at the stripe. */
bool table_overlay_get(const struct counter_table *t, const struct table_overlay *overlay,
                       uint64_t id, uint64_t subs, struct table_record *record);
/*
 * Returns whether the overlay says that the id was deleted. A record whose only values lie beside
 * is not gone, even if an image was made while they moved and lacks them: table_overlay_get() then
 * shows nothing set.
 */
bool table_overlay_says_gone(const struct counter_table *t, const struct table_overlay *overlay,
                             uint64_t id);
/* Under the id's lock. False, nothing changed: no room. */
bool table_overlay_put(const struct counter_table *t, struct table_overlay *overlay, uint64_t id,
                       const struct table_record *record);
/* Nobody else there: the overlay says nothing of the id any more; what it used counts on. */
void table_overlay_forget(const struct counter_table *t, struct table_overlay *overlay,
                          uint64_t id);
void table_overlay_account(struct table_overlay *overlay); /* what it uses counts from now on */
/* Returns whether the budget lets an id in that is new to it (engine_overlay_most). */
bool table_overlay_open(const struct table_overlay *overlay, bool dumped);
/* The same, and it grows for it, whatever the budget says; nobody else there. False: memory. */
bool table_overlay_put_grow(const struct counter_table *t, struct table_overlay *overlay,
                            uint64_t id, const struct table_record *record);
/* Fills it from the file of its image. */
bool table_overlay_load(const struct counter_table *t, struct table_overlay *overlay,
                        const struct table_file *file, char error[ENGINE_ERROR_MAX]);

/* ---- both overlays become one again (row/row_fold.h, table_fold.c) ---- */

/* What is done before anything moves: memory is made resident; where there is no room, copied. */
enum table_fold_stage {
    TABLE_FOLD_EXTEND_MEMORY,
    TABLE_FOLD_AUX_MEMORY,
    TABLE_FOLD_EXTEND,
    TABLE_FOLD_AUX,
    TABLE_FOLD_READY,
};

struct table_fold {
    struct table_overlay
        *wider; /* a copy of the older one, to take its place; NULL: there is none */
    enum table_fold_stage stage;
    uint64_t at;  /* in the dict that is made resident, copied, or moved out of */
    bool refused; /* memory */
    bool moves;   /* the older one changes: table_overlay_of() */
};

#endif
