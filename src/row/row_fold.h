/*
 * row_fold.h: after a merge came to nothing both overlays of its table become one again. There may
 * be tens of MiB of them, which nobody is to wait for, so it is done in steps, and the table is
 * used in between as during the merge: no other merge of it begins, and who waits for room waits.
 *
 * - Inside the barrier the older overlay, which does not change, is copied into a wider one, a
 *   piece at a time, unless it has room for both; and the memory that both will use is made
 *   resident, which took most of a stop.
 * - In a stop the wider one takes the older one's place, and from here on it changes: what is new
 *   comes to it, as far as that leaves room for both, and only an id that the newer overlay speaks
 *   of is changed there. So that one does not grow any more, and whatever comes meanwhile, the end
 *   comes.
 * - In stops of its own some of the newer one moves into the older one. In the last of them the
 *   newer one is empty, and goes.
 *
 * Readers ask the newer one first all the while. No file knows of it: an image has both overlays
 * (table_kind.section), and replay does not move anything.
 *
 * If memory is refused the table has both overlays, and no merge, until a round of images some
 * seconds later tries it again. Nobody waits for that one meanwhile.
 *
 * The thread that makes images takes the steps, so no image is made beside them.
 */
#ifndef ROLLCALL_ROW_ROW_FOLD_H
#define ROLLCALL_ROW_ROW_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dict.h"

struct row;
struct row_table;

/* What moves in one stop takes about a millisecond; what is copied inside the barrier, less. */
#define ROW_FOLD_RECORDS 256u
#define ROW_FOLD_COPIES  1024u
#define ROW_FOLD_BYTES   (256u << 10) /* of memory that is made resident at a time */

/* What comes next. */
enum row_fold {
    ROW_FOLD_DONE,    /* nothing: no table has a merge that came to nothing */
    ROW_FOLD_COPY,    /* a step inside the barrier */
    ROW_FOLD_MOVE,    /* a step in a stop */
    ROW_FOLD_REFUSED, /* of a kind of table alone: memory was refused, and all is as it was */
};

/*
 * Takes one step of the row's tables that need some, one after the other, found anew each time.
 * Begin with one inside the barrier, then do as it says; after each stop call row_images_settle().
 */
enum row_fold row_fold_step(struct row *row, bool stopped);
/* All steps. Nobody else there. */
void row_fold_all(struct row *row);

/* ---- for kinds of tables ---- */

/* Returns whether what a dict has goes into another, with room to spare. from NULL: yes. */
bool row_fold_has_room(const struct dict *into, const struct dict *from);
/*
 * While entries move: returns whether `into` has room for all that move to it, and for one that is
 * new. What is not let in waits: else `into` would have to grow in a stop, all of it at once.
 */
bool row_fold_keeps_room(const struct dict *into, const struct dict *from);
/* Bytes of a pool like that one, or wider: half of its places take so many entries. */
uint64_t row_fold_pool_bytes(const struct dict *like, uint64_t entries);

/* What a visit moves, kept by it: it stops where memory is refused. */
struct row_fold_moved {
    unsigned entries;
    bool refused;
};
/*
 * Has a visit move `most` entries out of a dict, from *at on, or look at so many buckets that it
 * takes as long. False: memory was refused. Stopped.
 */
bool row_fold_move(const struct dict *from, uint64_t *at, unsigned most, dict_visit *visit,
                   void *context, const struct row_fold_moved *moved);

/* ---- for the row; all stopped ---- */

/* The merge under way of this table came to nothing. */
void row_fold_begin(struct row *row, struct row_table *table);
/* A round of images begins: what was refused memory is tried again, once it is time. */
void row_fold_see(struct row *row);
/* The table goes. */
void row_fold_forget(struct row *row, struct row_table *table);

#endif
