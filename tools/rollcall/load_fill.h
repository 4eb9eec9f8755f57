/*
 * load_fill.h: a data directory filled without a daemon: its spaces, keeper and checkpoints run
 * here, with nobody else in them. Changes are in no journal (data/fill.h): tables that are full are
 * dumped as ever, the last checkpoint writes the others, and then the directory is what a daemon
 * that was stopped has left.
 *
 * Thread rule: one thread, which may wait for the disk.
 */
#ifndef ROLLCALL_TOOLS_LOAD_FILL_H
#define ROLLCALL_TOOLS_LOAD_FILL_H

#include "config/settings.h"
#include "engine/engine.h"

#define FILL_OPS       256u /* changes prepared together */
#define FILL_ERROR_MAX 1024

struct fill;

struct fill_options {
    const char *directory; /* new or empty, or one that a fill was killed in */
    const char *config;    /* as rollcalld's --config */
    const char *space;     /* of kind counter or phantom */
    unsigned patience_ms;  /* the longest wait for a table or the disk */
};

/* NULL: it was said. */
struct fill *fill_open(const struct fill_options *options);
const struct space_settings *fill_space(const struct fill *fill);
/* Room for FILL_OPS operations, to be filled before each fill_carry_out. */
struct engine_op *fill_ops(struct fill *fill);
/*
 * Carries out the first `count` of them in their order: each is DONE, EXISTS or ERROR, which is not
 * BUSY. False: the disk does not keep up, or rows that were stored are gone: fill_error().
 */
bool fill_carry_out(struct fill *fill, size_t count);
const char *fill_error(const struct fill *fill);
/*
 * Ends it. whole: writes what is in memory, and the directory is one to start a daemon with; false:
 * it is not, and it was said. NULL: no-op.
 */
bool fill_close(struct fill *fill, bool whole);

#endif
