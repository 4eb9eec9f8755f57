/*
 * row_dropped.h: ranges of ids whose table was dropped while tables of smaller ids stayed.
 *
 * The table below takes over the range of a table that is dropped (row.h), and keeps in such a list
 * which part of it had held ids. Those ids are answered as ids below the oldest table are, for a
 * count that began again from 1 would be wrong, until a table opens in the range.
 *
 * Where there are more ranges than one table can know, two that nothing lives between become one
 * (row_room.c): ids that never were are refused then, too, which is better than a count from 1.
 *
 * A value, copied by assignment: ranges rise, and neither overlap nor touch. Thread rule: changed
 * with the world stopped; read by any thread inside the barrier.
 */
#ifndef ROLLCALL_ROW_ROW_DROPPED_H
#define ROLLCALL_ROW_ROW_DROPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROW_DROPPED_MAX 16 /* ranges of one table */

struct row_dropped {
    uint64_t count;
    struct row_range {
        uint64_t first, last;
    } at[ROW_DROPPED_MAX];
};

/* What two tables and what was dropped between them know, as one list. */
#define ROW_DROPPED_LIST_MAX (2 * ROW_DROPPED_MAX + 1)

struct row_dropped_list {
    uint64_t count;
    struct row_range at[ROW_DROPPED_LIST_MAX];
};

bool row_dropped_has(const struct row_dropped *dropped, uint64_t id);

/*
 * Adds first .. last; ranges that meet become one. Where there would be more than ROW_DROPPED_MAX
 * the one of fewest ids is left out: returns the ids of that, else 0.
 */
uint64_t row_dropped_add(struct row_dropped *dropped, uint64_t first, uint64_t last);

/* Add to a list, which has room: ranges that meet become one. */
void row_dropped_list_add(struct row_dropped_list *list, uint64_t first, uint64_t last);
void row_dropped_list_add_all(struct row_dropped_list *list, const struct row_dropped *dropped);
/*
 * Sets `added` to the ranges of the list that are not known just so: what makes `known` the list,
 * added one after the other. Returns the ids left out, where they are more than ROW_DROPPED_MAX.
 */
uint64_t row_dropped_new(const struct row_dropped_list *list, const struct row_dropped *known,
                         struct row_dropped *added);

/*
 * What of `from` lies at or above base, for the table that opens there; not the rest of a range
 * that base lies in: those ids may be created again. Returns how many ids of it there are.
 */
uint64_t row_dropped_above(const struct row_dropped *from, uint64_t base,
                           struct row_dropped *above);
/* Takes away what lies at or above base. */
void row_dropped_cut(struct row_dropped *dropped, uint64_t base);

/*
 * The first id above the frontier of a range that the stream may come to; UINT64_MAX: there is
 * none. Single ids are none: they were strays, and the stream goes past them.
 */
uint64_t row_dropped_next(const struct row_dropped *dropped, uint64_t frontier);
/* The smallest base of a table for ids from `low` on such that no range lies at or above it and
 * below low. */
uint64_t row_dropped_floor(const struct row_dropped *dropped, uint64_t low);

/* Returns whether the ranges rise, do not touch, lie inside first .. last, and are not too many. */
bool row_dropped_sound(const struct row_dropped *dropped, uint64_t first, uint64_t last);

#endif
