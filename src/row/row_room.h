/*
 * row_room.h: whose memory is used again when no region is free, and what becomes of the ids that
 * go. Thread rule: stopped, as row_private.h says it.
 */
#ifndef ROLLCALL_ROW_ROW_ROOM_H
#define ROLLCALL_ROW_ROW_ROOM_H

#include "row/row_private.h"

/* What needs a region. */
enum row_need { ROW_NEED_NEXT, ROW_NEED_JUMP, ROW_NEED_LAYER };

/*
 * True, without recycling: a table for ahead ids would take one that the ids below it need.
 */
bool row_needs_all(const struct row *row);
/* True: a table for ahead ids is one too many, and no jump can give way. */
bool row_jumps_enough(const struct row *row);
/*
 * Makes room when no region is free. ROW_ROOM_AGAIN: a region is free once the keeper has cleared
 * it. LATER: a region is free once a dump has ended; the table asks again then (table->awaiting is
 * set). NONE: no table may go.
 */
enum row_room { ROW_ROOM_NONE, ROW_ROOM_AGAIN, ROW_ROOM_LATER };
enum row_room row_make_room(struct row *row, struct row_table *table, enum row_need need);
/*
 * The table (NULL: none) has what it needed: recycles or dumps others until a region is spare, or
 * will be.
 */
void row_keep_spare(struct row *row, const struct row_table *table, enum row_need need);
/* Returns how many records or members are lost with a table and its layer. */
uint64_t row_held(const struct row *row, const struct row_table *table);
/* Recycles it; the table below takes over its range. Puts DROP. */
void row_recycle(struct row *row, struct row_table *table);
/* The same in replay: `dropped` is what DROP says of its ids. */
void row_drop(struct row *row, struct row_table *table, const struct row_dropped *dropped);
/* From here on the row counts where most ids come in: for every table, or for this one. */
void row_see_activity(struct row *row);
void row_see_table(struct row_table *table);

#endif
