/*
 * row_state.h: the state of a table as it is stored: words in the machine's byte order, version 4.
 *
 *     word   what                        word   what
 *     0      version of the format       14     closed_serial
 *     1      flags: ROW_STATE_*          15     frontier
 *     2      serial                      16     trusted
 *     3, 4   base, last                  17     newer_least
 *     5      window_last                 18     newer
 *     6      low                         19     count
 *     7      step                        20     gone
 *     8      range                       21     late
 *     9      reach_min                   22     apart
 *     10     capacity                    23, 24 smallest and largest id ever
 *     11     fill                        25     ranges that were dropped
 *     12     opened_s                    26-57  first and last id of each, then zero
 *     13     bytes of the description after it
 *
 * What each means stands at struct row_table. A layer has the serial and the range of its table.
 * Thread rule: as row_log.h.
 */
#ifndef ROLLCALL_ROW_ROW_STATE_H
#define ROLLCALL_ROW_ROW_STATE_H

#include "row/row_log.h"

#define ROW_STATE_VERSION 4

#define ROW_STATE_SETTLED 1u
#define ROW_STATE_CLOSED  2u
#define ROW_STATE_JUMPED  4u
#define ROW_STATE_LAYER   8u   /* it is one */
#define ROW_STATE_LAYERED 16u  /* it has one */
#define ROW_STATE_ANY_IDS 32u  /* one table over all ids */
#define ROW_STATE_APART   64u  /* the one for ids apart */
#define ROW_STATE_WHOLE   128u /* its changes are journaled whole */
#define ROW_STATE_FLAGS   255u

struct row_state {
    uint64_t version, flags, serial, base, last, window_last, low, step, range, reach_min;
    uint64_t capacity, fill, opened_s, description_bytes, closed_serial, frontier, trusted;
    uint64_t newer_least, newer, count, gone, late, apart, first_id, last_id;
    struct row_dropped dropped;
};

/* A state that was read, with what the engine wrote after it. */
struct row_described {
    struct row_state state;
    const void *description;
    size_t bytes;
    bool cold; /* the caller's: it is to be made without memory */
};

/* Writes the reason and returns false. */
__attribute__((format(printf, 2, 3))) bool row_fail(char error[ROW_ERROR_MAX], const char *format,
                                                    ...);

/* Reads and checks it, by itself and against the row's kind. False with `error`. */
bool row_state_parse(const struct row *row, const void *bytes, size_t length,
                     struct row_described *described, char error[ROW_ERROR_MAX]);
static inline bool row_state_has(const struct row_state *state, uint64_t flag)
{
    return (state->flags & flag) != 0;
}

/*
 * A table as it is described, in memory of its own unless it is cold; it stands nowhere yet.
 * layer_of: NULL, or the table whose layer it is. NULL with `error`.
 */
struct row_table *row_state_make(struct row *row, const struct row_described *described,
                                 const struct row_table *layer_of, char error[ROW_ERROR_MAX]);
/* The table for ids apart that is described; it is not the row's yet. NULL with `error`. */
struct row_table *row_state_make_apart(struct row *row, const struct row_described *described,
                                       char error[ROW_ERROR_MAX]);
/* The layer that is described, at its table. NULL with `error`. */
struct row_table *row_state_make_layer(struct row *row, const struct row_described *described,
                                       char error[ROW_ERROR_MAX]);
/* Gives back a table that is not wanted after all. */
void row_state_unmake(struct row *row, struct row_table *table);

#endif
