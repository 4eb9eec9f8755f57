/*
 * row_cold.h: dumped tables, `oldest: dump`.
 *
 * A dumped table stays in its row: ids are routed to it as before. It has no region; its records
 * are in a file, which the engine reads page by page (store/cold.h), and later changes are in the
 * engine's overlay in memory.
 *
 *     in memory --- leaving (a table needs its region) --- DUMP image begins at S: tapped
 *         ^              |  image failed, or touched: not tapped, later again
 *         '--------------'
 *     file durable, named by the manifest --- world stopped: cold, region given back
 *
 * Whole changes. Before a table leaves for the first time, the event WHOLE says so. From there on
 * every change of it and of its layers is journaled whole (all slots named), for good: also in
 * another process, and on a machine that replays this journal and dumps the table when it likes.
 * The event touches the table: an image from before it must not go on to hold, or a start would
 * not know (tests/litmus/whole.py finds both).
 *
 * The tap. From S on every change of a tapped table also goes into the overlay as a whole record.
 * The file is right for all that did not change since S, so file and overlay together are the
 * table, and replay never reads the disk. Until the switch the table is read and changed in memory
 * as any other. The overlay begins empty at each DUMP image, also at a second one in a row.
 *
 * Which table. The row dumps the table it would have recycled (row.h) when the next opening would
 * find no free region, and no more tables than are needed. Ids apart stay in memory. Requests that
 * need a region meanwhile wait for the dump (ROW_WAIT). If the last dump failed, new ids are
 * refused until one succeeds: the next round of images tries again, or, some seconds later, the
 * first request that needs it does, and then requests wait again. A dump whose overlay had no room
 * for the changes meanwhile has not failed yet: the next round begins it again at once, with a
 * wider overlay, ROW_OVERRUNS_MAX times in all. If no table may be dumped, or ROW_ROUTES_MAX tables
 * are there, new ids are refused; the log says so in the second case.
 *
 * Layers are dumped with their table, and a layer's image begins first: replay leaves out changes
 * below the table's S and cannot tell without the disk whether an id is the table's or the layer's,
 * so all changes of both must be whole from there on. If the layer changed between the two
 * beginnings it is imaged once more. If its image fails, its table's tap is taken off as well:
 * code that drops an overlay looks at both.
 *
 * What it takes. A leaving or dumped table takes late ids, and no layer. One that is not closed
 * takes no id above its frontier: another table opens there, once the dump has ended. The kind's
 * files grow (row_table.grows_to): the overlay takes what comes, and the next merge writes a file
 * that is large enough. A change that finds no room in the overlay waits for the merge that is
 * under way or about to be, so its client hears `busy` only where merges fail or take too long.
 *
 * After a merge failed, both overlays become one again, in short stops (row/row_fold.h), and the
 * round of images goes on without a further merge: a file that cannot be read, or a full disk,
 * stops no checkpoint. For some seconds the next rounds pass over that table and merge others.
 *
 * With dumps_max the keeper recycles the dumped table opened longest ago when there are more. No
 * event says that a table was dumped: the manifest does, by the role of its file. A dumped table
 * that changed or was touched needs an image of its overlay; the state in that image holds, not the
 * one in the dumped file.
 *
 * Thread rule: row_cold_wanted: any thread; what says "inside": any thread inside the barrier; the
 * rest with the world stopped.
 */
#ifndef ROLLCALL_ROW_ROW_COLD_H
#define ROLLCALL_ROW_ROW_COLD_H

#include "row/row_log.h"

#define ROW_OVERRUNS_MAX  3
#define ROW_OVERRUN_WIDER 4 /* times the room of the overlay, at each overrun */

/*
 * Returns the room of an overlay after this many overruns: `usual` without any, never more than
 * `most`.
 */
static inline uint64_t row_cold_wider(uint64_t usual, unsigned overruns, uint64_t most)
{
    uint64_t wide = usual;
    for (; overruns > 0 && wide < most; overruns--) {
        wide = wide < most / ROW_OVERRUN_WIDER ? wide * ROW_OVERRUN_WIDER : most;
    }
    return wide;
}

/*
 * True: a table is to be dumped, and the next round of images would begin with its dump. False
 * after a dump failed, until it is tried again. row->imager is told when this becomes true.
 */
bool row_cold_wanted(const struct row *row);
/*
 * The image of kind DUMP of `table` (or layer) is durable and named: the table is dumped now, and
 * its region is free once the keeper has cleared it. The engine has switched to the file. If a
 * table's layer was dumped too, its call comes in the same stop.
 */
void row_cold_dumped(struct row *row, struct row_table *table);
/*
 * The dump failed: the tap is off, and requests that wait for the dump are refused; not so if
 * changes overran it and it begins again. The table stays leaving. row_image_failed() calls this,
 * unless the table was only touched.
 */
void row_cold_failed(struct row *row, struct row_table *table, bool overran);
/* Makes a dumped table again, without a region; otherwise as row_restore_table. */
struct row_table *row_cold_restore(struct row *row, const void *table_bytes, size_t length,
                                   unsigned layer, uint64_t start_lsn, char error[ROW_ERROR_MAX]);

/*
 * Returns the table of a DUMP image that became durable, whether it was touched since or not: all
 * changes since S are in the overlay, so it may be dumped. NULL: the table is recycled, or another
 * image of it has begun; the file is of no use.
 */
struct row_table *row_cold_imaged(const struct row *row, const struct row_image *image);

/* ---- overlays ---- */

/* Whether the image of a tapped table may become a dump (row_table.tap). */
enum row_tap {
    ROW_TAP_NONE,
    ROW_TAP_WRITING, /* it is being written */
    ROW_TAP_WRITTEN, /* it is whole */
    ROW_TAP_OVERRUN, /* given up: a change found no room in the overlay */
};

/*
 * A change of a tapped table finds no room in the overlay. True: the dump is given up, the change
 * goes on. False: the image is whole, or the table is dumped; the change must wait. Inside.
 */
static inline bool row_tap_give_up(struct row_table *table)
{
    uint8_t writing = ROW_TAP_WRITING;
    return atomic_compare_exchange_strong(&table->tap, &writing, ROW_TAP_OVERRUN) ||
           writing == ROW_TAP_OVERRUN;
}
/* The same of a change that was made already: whole or not, the image is of no use. */
static inline void row_tap_overran(struct row_table *table)
{
    atomic_store(&table->tap, ROW_TAP_OVERRUN);
}
static inline bool row_tap_is_given_up(const struct row_table *table)
{
    return atomic_load(&table->tap) == ROW_TAP_OVERRUN;
}
/* The image is whole. False: it was given up. Inside. */
static inline bool row_tap_written(struct row_table *table)
{
    uint8_t writing = ROW_TAP_WRITING;
    return atomic_compare_exchange_strong(&table->tap, &writing, ROW_TAP_WRITTEN);
}

/* Called when a dumped table (or layer) was changed, or could not be: looks whether a merge is due.
 * Inside. */
void row_cold_changed(struct row *row, const struct row_table *holder);
/*
 * A change of a dumped or tapped table (or layer) found no room, and row_cold_changed() was told.
 * True: a merge, or the end of a dump, makes room soon: row_wait(), pending with BUSY. Inside.
 */
bool row_cold_awaits(const struct row *row, const struct row_table *holder);

#endif
