/*
 * row_cold.h: tables that leave memory, `oldest: dump`.
 *
 * A dumped table stays in its row: ids are routed to it as before. It has no region; what it held
 * is in a file, which the engine reads page by page (store/cold.h), and what has changed since is
 * in the engine's overlay in memory.
 *
 *     in memory --- leaving (a table needs its region) --- DUMP image begins at S: tapped
 *         ^              |  image failed, or touched: not tapped, later again
 *         '--------------'
 *     file durable, named by the manifest --- world stopped: cold, region given back
 *
 * From S on every change of a tapped table is also put, whole, into the overlay, and is journaled
 * whole (all slots named), so the file, right for all that did not change since S, with the overlay
 * in front of it is the table, and replay never reads the disk. Until then the table is read and
 * changed in memory as any other: there is no state between the two. A cold table's changes are
 * whole as well. The overlay begins empty at each DUMP image: one may follow another of the same
 * table without the tap having been off.
 *
 * Who leaves is who would have been recycled (row.h), when the next opening would find no free
 * region. What it keeps apart above its frontier stays in memory (row_functions.each_apart), for it
 * moves when another table opens there. No more leave than are needed. Who needs a region meanwhile
 * waits for the dump (ROW_WAIT) unless the last one failed: then new ids are refused until one
 * succeeds. It is tried again by the next round of images; or some seconds later, if somebody needs
 * it: then those wait again. Where what changed meanwhile found no room in the overlay, which may
 * be a matter of a moment, it has not failed yet: the next round begins at once, with more room
 * there, ROW_OVERRUNS_MAX times in all. If none may leave, or ROW_ROUTES_MAX tables are there, new
 * ids are refused.
 *
 * A layer leaves with its table. Its image begins first: as replay leaves out what lies below the
 * table's S, and cannot tell without the disk whose an id is, all changes of both must be whole
 * from there on. If the layer changed between the two it is imaged once more. If its image fails,
 * the tap of its table is taken off as well: whoever drops an overlay looks at both.
 *
 * A leaving or cold table takes late ids up to its capacity, and no (further) layer. One that is
 * not closed takes no id above its frontier: another table opens there, once it has left.
 *
 * With dumps_max the one opened longest ago of the cold tables is dropped when there are more, by
 * the keeper. No event says that a table went cold: the manifest does, by the role of its file.
 * A merge that failed is left out: the round of images goes on without a further one, so that a
 * file that cannot be read, or a full disk, stops no checkpoint. The next ones pass over that table
 * and merge others, as room in their overlays is what changes wait for, until some seconds have
 * gone.
 *
 * A cold table that changed or was touched needs an image of its overlay; its state is the table's
 * then, not what the dumped file says.
 *
 * Thread rule: row_cold_wanted, row_cold_merge_again any thread; row_cold_may_merge inside the
 * barrier; the rest with the world stopped.
 */
#ifndef ROLLCALL_ROW_ROW_COLD_H
#define ROLLCALL_ROW_ROW_COLD_H

#include "row/row_log.h"

#define ROW_OVERRUNS_MAX  3
#define ROW_OVERRUN_WIDER 4 /* times the room of the overlay, each time */

/* The room of an overlay that usually is `usual`, after so many overruns: at most `most` then. */
static inline uint64_t row_cold_wider(uint64_t usual, unsigned overruns, uint64_t most)
{
    uint64_t wide = usual;
    for (; overruns > 0 && wide < most; overruns--) {
        wide = wide < most / ROW_OVERRUN_WIDER ? wide * ROW_OVERRUN_WIDER : most;
    }
    return wide;
}

/*
 * Is there a table that is to leave, and would the next round of images begin with that? Not after
 * one has failed, until it is tried again. row->imager is told when this becomes true.
 */
bool row_cold_wanted(const struct row *row);
/*
 * The image of kind DUMP of `table` (or layer) is durable and named: it is cold now, its region is
 * free once the keeper has cleared it. The engine has switched to the file. In the same stop: the
 * layer of a table, if it was dumped too.
 */
void row_cold_dumped(struct row *row, struct row_table *table);
/*
 * The dump could not be made: the tap is off, who waits for it is refused; not if changes overran
 * it and it is begun again. It stays leaving. Called by row_image_failed(), unless the table was
 * only touched.
 */
void row_cold_failed(struct row *row, struct row_table *table, bool overran);
/*
 * A round of images failed after it had begun: requests that wait for a dump are refused, as after
 * row_cold_failed(), until it is tried again. The taps stay: the manifest that names a dump may be
 * on the disk. No table is leaving: no-op.
 */
void row_cold_round_failed(struct row *row);
/* Makes a dumped table again, without a region; else as row_restore_table. */
struct row_table *row_cold_restore(struct row *row, const void *table_bytes, size_t length,
                                   bool layer, uint64_t start_lsn, char error[ROW_ERROR_MAX]);

/*
 * The table of a DUMP image that became durable, whether it was touched since or not: as all
 * changes since S are in the overlay it may go cold. NULL: it is gone, or another image of it has
 * begun; the file is of no use.
 */
struct row_table *row_cold_imaged(const struct row *row, const struct row_image *image);
/* The image of kind MERGE of a cold table begins now: as one that row_image_next() gave. */
void row_cold_merge(struct row *row, struct row_table *table, uint64_t now,
                    struct row_image *image);
/*
 * The image of kind MERGE of `table` (or layer) that was begun was not kept: row->merge_paused
 * until the round is over, and none of this table for some seconds.
 */
void row_cold_merge_failed(struct row *row, struct row_table *table);
/* Have they gone, or has none failed? */
bool row_cold_may_merge(const struct row_table *table);
/* Has the time come to try one that failed again? */
bool row_cold_merge_again(const struct row *row);
/* No table that may be merged needs it: the time is now that of the next one that failed, if any.
 */
void row_cold_no_merge(struct row *row);

#endif
