/*
 * row_stream.c: where the stream is: by samples of what comes, so that strays that are fewer than
 * half of it do not count.
 */
#include "row/row_private.h"

#define ARRIVALS_ONE_IN 4u /* ids that a table admits */
/* This many in a hundred belong to one table: strays, a third of all ids, are never so many. */
#define STREAM_PERCENT 50u
#define ARRIVALS_LEAST 16u
#define ARRIVALS_PART  50u /* this many of a table's ids say whether the stream is at its end */
#define END_PERCENT    62u /* and more of them, for strays that come in bursts may be half */
#define NEARING_PART   4u  /* of a table's range, before its end: what comes near that lies there */

void row_stream_forget(struct row *row)
{
    for (size_t i = 0; i < ROW_ARRIVALS; i++) {
        atomic_store(&row->arrivals[i], UINT64_MAX);
    }
}

/* Counts the newest ids that were noted: all, and those from `low` to `high`. */
static unsigned arrivals(const struct row *row, unsigned newest, uint64_t low, uint64_t high,
                         unsigned *in)
{
    uint32_t at = atomic_load_explicit(&row->arrivals_at, memory_order_relaxed);
    unsigned all = 0;
    unsigned inside = 0;
    for (uint32_t i = 1; i <= newest; i++) {
        uint64_t id =
            atomic_load_explicit(&row->arrivals[(at - i) % ROW_ARRIVALS], memory_order_relaxed);
        all += id != UINT64_MAX;
        inside += low <= id && id <= high;
    }
    *in = inside;
    return all;
}

/* Sets the next sample, so that further ids are sampled as before. */
void row_stream_moved(struct row_table *table)
{
    row_lower_to(&table->arrival, row_came(table) + ARRIVALS_ONE_IN);
}

bool row_stream_is_in(const struct row *row, const struct row_table *table)
{
    unsigned inside;
    unsigned all = arrivals(row, ROW_ARRIVALS, table->base, table->last, &inside);
    return all >= ARRIVALS_LEAST && inside * 100 >= all * STREAM_PERCENT;
}

bool row_stream_may_end(const struct row *row, const struct row_table *table)
{
    unsigned inside;
    uint64_t from = row_end(table) - table->range / NEARING_PART;
    uint64_t some = row_larger(table->capacity / ARRIVALS_PART, ARRIVALS_LEAST);
    unsigned newest = some < ROW_ARRIVALS ? (unsigned)some : ROW_ARRIVALS;
    unsigned all = arrivals(row, newest, from, table->last, &inside);
    return all < ARRIVALS_LEAST || inside * 100 >= all * END_PERCENT;
}

/* What was refused after all and comes again is admitted under the same number. */
void row_stream_note(struct row *row, struct row_table *table, uint64_t id, uint64_t admitted)
{
    uint64_t arrival = atomic_load_explicit(&table->arrival, memory_order_relaxed);
    if (UNLIKELY(admitted >= arrival) &&
        atomic_compare_exchange_strong(&table->arrival, &arrival, admitted + ARRIVALS_ONE_IN)) {
        uint32_t at = atomic_fetch_add(&row->arrivals_at, 1);
        atomic_store(&row->arrivals[at % ROW_ARRIVALS], id);
    }
}
