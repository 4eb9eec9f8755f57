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
 * changed in memory as any other: there is no state between the two.
 *
 * Who leaves is who would have been recycled (row.h), when the next opening would find no free
 * region; who needs a region meanwhile waits for the dump (ROW_WAIT) unless the last one failed:
 * then new ids are refused until one succeeds. A layer leaves with its table.
 * A cold table takes late ids up to its capacity, and no (further) layer.
 * With dumps_max the one opened longest ago of the cold tables is dropped when there are more.
 *
 * Thread rule: row_cold_wanted any thread; the rest with the world stopped.
 */
#ifndef ROLLCALL_ENGINE_ROW_COLD_H
#define ROLLCALL_ENGINE_ROW_COLD_H

#include "engine/row_log.h"

/* Is there a table that is to leave? */
bool row_cold_wanted(const struct row *row);
/*
 * The image of kind DUMP of `table` (or layer) is durable and named: it is cold now, its region is
 * free once the keeper has cleared it. The engine has switched to the file.
 */
void row_cold_dumped(struct row *row, struct row_table *table);
/* The dump could not be made: it is no more leaving, and for a while nobody waits for it. */
void row_cold_failed(struct row *row, struct row_table *table);
/* Makes a dumped table again, without a region; else as row_restore_table. */
struct row_table *row_cold_restore(struct row *row, const void *table_bytes, size_t length,
                                   bool layer, uint64_t start_lsn, char error[ROW_ERROR_MAX]);

#endif
