/*
 * row_parts.h: a row of any ids grows in parts.
 *
 *     key 0                                                                    2^w - 1
 *     | part, 3.6 MiB | part, 2.1 MiB | part, 2.4 MiB    | part, 3.1 MiB       |
 *
 * Such a row has no frontier and no late ids. Its tables are *parts*: each holds the ids whose
 * *key* lies in its range, and the key is the id permuted (row_part_key), so all parts fill
 * alike. base, last and the row's bases are keys here, not ids. A new row has one part, of
 * `table_bytes` or ROW_PART_BYTES_MAX.
 *
 * Growing. A part that has come to its fill, or whose pools are full, is replaced by a larger one,
 * or, if that would be larger than its largest size, by two, each of half the keys. That happens in
 * one stop for each new part: the records of its range go from the old part into the new one. So a
 * stop moves what one part holds at most, and requests go on between the stops. What finds no room
 * meanwhile waits (ROW_WAIT), most do not: a part is asked for at its fill, when its pool for what
 * spills has room still.
 *
 * Sizes. A part's sizes are its largest one, times 8/9, times 8/9 of that, and so on. The largest
 * is between 8/9 of ROW_PART_BYTES_MAX and that, and differs from part to part, in the order of
 * the bits of the range's number, backwards: so neighbours are at different points between two
 * sizes, only a few parts grow at a time, and memory an id hardly changes as the space grows.
 *
 * Memory. A space may hold what was set aside at the start (row_part_aside_bytes), and beyond that
 * what all spaces share (struct engine_growth): what the others leave of `memory`. If neither
 * is left new ids are refused; it is tried again every ten seconds, when somebody needs it.
 *
 * Files. Where parts are dumped (config.dump) a growth without memory has others leave first, the
 * emptiest, and waits for them; so do requests that wait for the growth. One in PARTS_SPARE_SHARE
 * (row_parts_cold.c) of the memory of parts is spare. A dumped part is as any dumped table
 * (row/row_cold.h), but that its file does not grow: at its fill it comes back, and grows as ever.
 * What its file has is read outside the stop into a table beside it, while changes go into a new
 * overlay, as in a merge; what both overlays have is put in with the world stopped. If there is
 * room for all, dumped parts come back one after the other.
 *
 * A table of a version that knew no parts is the part of all keys. It gives its records up a part
 * at a time, from the smallest key on.
 *
 * Events. PART is a new part, after its records came in (row/row_log.h): it takes all of its range
 * from the part with the same base, which is gone if nothing is left of it, and begins above
 * otherwise. Replay moves the same records; where they lie in the part may differ.
 *
 * Thread rule: as row_private.h.
 */
#ifndef ROLLCALL_ROW_ROW_PARTS_H
#define ROLLCALL_ROW_ROW_PARTS_H

#include "row/row_private.h"
#include "row/row_state.h"

/* Memory of a part, resident: of nobody's list. NULL: it is refused. Any thread. */
struct row_region *row_part_region(struct row *row, uint64_t bytes);
/* The same of memory that there is. Any thread. */
struct row_region *row_part_region_of(struct row *row, void *memory, uint64_t bytes);
/* Gives it back to the system. Any thread. */
void row_part_region_give(struct row *row, struct row_region *region);

/* Its table, a part or not, was dumped: row_regions_give_left() takes it back. Stopped. */
void row_region_leave(struct row *row, struct row_region *region);

/* Returns the bytes of a part and its pools, and of all; of those that are dumped: 0. */
uint64_t row_part_bytes(const struct row_table *part);
uint64_t row_parts_bytes(const struct row *row);

/*
 * Has parts that are full grow, one in each stop, until none wants to or memory is not to be had.
 * Keeper.
 */
void row_parts_maintain(struct row *row, struct barrier *barrier);

/* Replays PART. Nobody else there. False with `error`. */
bool row_parts_replay(struct row *row, const struct row_described *described, uint64_t lsn,
                      char error[ROW_ERROR_MAX]);

/* Returns how many bytes of parts and pools the row may hold more. Any thread inside. */
uint64_t row_parts_left(const struct row *row);

/* Counts what the row holds beyond what was set aside for it. Stopped, or nobody else there. */
void row_parts_charge(struct row *row);

/* row_parts_cold.c: stopped, but for what says else */

/*
 * Has parts but `needed` (NULL: any) leave until so many bytes of memory are on their way. False:
 * none are.
 */
bool row_parts_leave(struct row *row, const struct row_table *needed, uint64_t bytes);
/* So, where little memory is left. */
void row_parts_keep_spare(struct row *row);

/* A part that comes back. */
struct row_recall {
    uint64_t serial, base;
    struct row_table *part;
    struct row_table *loaded; /* its file is read into it; NULL: none comes */
    const struct table_file *file;
    bool read;
};

/* Returns the memory it takes for it to come back, and to grow. */
uint64_t row_recall_needs(const struct row *row, const struct row_table *part);
/* The part is dumped, and no merge of it is under way. False: memory is refused. */
bool row_recall_begin(struct row *row, struct row_table *part, struct row_recall *recall);
/* Reads what its file has, and its older overlay. Outside the stop, by whoever alone disposes of
 * tables; blocks. */
void row_recall_read(const struct row *row, struct row_recall *recall);
/* True: it is in memory. False: it is gone, or could not be read, and is as it was. What was read
 * into is retired. */
bool row_recall_end(struct row *row, const struct row_recall *recall);
/* All of it at once. Nobody else there. */
bool row_recall_now(struct row *row, struct row_table *part);
/* Returns the part that may come back as there is room for all; NULL: none may. */
struct row_table *row_recall_due(const struct row *row);

#endif
