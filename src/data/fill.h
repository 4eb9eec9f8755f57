/*
 * fill.h: a new data directory that is filled before any daemon starts with it.
 *
 * Changes of a fill are in no journal: what it has done is nothing until its last checkpoint. So
 * DIR/FILLING stands from before the first file until after that checkpoint, durable, and whatever
 * reads a data directory refuses one that has it. A fill that was killed begins anew.
 *
 * Order: data_open_to_fill, data_recover, data_start; changes without a journal; data_stop,
 * data_fill_ends, data_close, data_filled, data_destroy.
 *
 * Thread rule: one thread.
 */
#ifndef ROLLCALL_DATA_FILL_H
#define ROLLCALL_DATA_FILL_H

#include "data/data.h"

#define DATA_FILLING_NAME "FILLING"

/* What is wrong with such a directory, and what to do about it. %s: it. */
#define DATA_FILLING_WORDS                                                                         \
    "%s: an offline load into it has not ended; make it again, or empty the directory"

/* Is the directory being filled, or was it left so by a kill? */
bool data_is_filling(struct vfs *vfs, const char *directory);

/*
 * As data_open, for a directory that is new or empty, or that a fill had begun: what that fill made
 * is deleted. NULL with `error`.
 */
struct data *data_open_to_fill(struct vfs *vfs, const struct settings *settings,
                               char error[DATA_ERROR_MAX]);

/*
 * Called when all is in memory or dumped: moves the journal's head, with events of this space, into
 * another segment. So the last checkpoint writes each table that has an image of before, and deletes
 * the journal of the fill: a follower cannot replay it, as it lacks the changes, but is given a
 * copy. False: the journal cannot be written.
 */
bool data_fill_ends(struct data *data, const struct engine *engine);
/* After a data_close that said true: from here on a daemon starts with it. False with `error`. */
bool data_filled(struct data *data, char error[DATA_ERROR_MAX]);

#endif
