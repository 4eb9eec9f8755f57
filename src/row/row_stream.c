/*
 * row_stream.c: where the stream is, and how dense its ids are: by samples of what comes, so that
 * strays that are fewer than half of it do not count.
 */
#include "base/hash.h"
#include "row/row_private.h"

#include <string.h>

#define ARRIVALS_ONE_IN 4u /* ids that a table admits */
/* This many in a hundred belong to one table: strays, a third of all ids, are never so many. */
#define STREAM_PERCENT    50u
#define ARRIVALS_LEAST    16u
#define ARRIVALS_PART     50u /* this many of a table's ids say whether the stream is at its end */
#define END_PERCENT       62u /* and more of them, for strays that come in bursts may be half */
#define NEARING_PART      4u /* of a table's range, before its end: what comes near that lies there */
#define SCATTERED_PERCENT 88u /* at most, of the newest ids of a table, in its upper half */
#define SCATTERED_LEAST   8u  /* times what the newest stand for: fewer ids show nothing */
#define SAMPLES_LEAST     16u /* of a table's ids, until they show how dense they are */
#define BEGAN_PART        8u /* of what it admitted, before the first sample: more since a restart */
/* Sixteenths of a table's samples: the stream's are two thirds of them at least. */
#define DENSITY_PART 7u
#define COMES_PART   16u /* of what a table spans: nearer to an id its stream comes there */

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

/* Sets the next samples, so that further ids are sampled as before. */
void row_stream_moved(struct row_table *table)
{
    row_lower_to(&table->samples.next, row_came(table) + table->samples.stride);
    row_lower_to(&table->samples.arrival, row_came(table) + ARRIVALS_ONE_IN);
}

bool row_stream_is_in(const struct row *row, const struct row_table *table)
{
    unsigned inside;
    unsigned all = arrivals(row, ROW_ARRIVALS, table->base, table->last, &inside);
    return all >= ARRIVALS_LEAST && inside * 100 >= all * STREAM_PERCENT;
}

bool row_stream_is_above(const struct row *row, const struct row_table *table)
{
    unsigned above;
    if (table->last == ROW_ID_MAX) {
        return false;
    }
    unsigned all = arrivals(row, ARRIVALS_LEAST, table->last + 1, ROW_ID_MAX, &above);
    return all < ARRIVALS_LEAST || above * 100 >= all * STREAM_PERCENT;
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

bool row_stream_is_scattered(const struct row *row, const struct row_table *table)
{
    unsigned all;
    unsigned upper;
    uint64_t first = id_span_first(&table->ids);
    uint64_t frontier = row_frontier_of(table);
    uint64_t half = first < frontier ? first + (frontier - first) / 2 : frontier;
    (void)arrivals(row, ARRIVALS_LEAST, table->base, table->last, &all);
    (void)arrivals(row, ARRIVALS_LEAST, half, table->last, &upper);
    bool few = row_came(table) < (uint64_t)SCATTERED_LEAST * ARRIVALS_LEAST * ARRIVALS_ONE_IN;
    return !few && all == ARRIVALS_LEAST && upper * 100 <= all * SCATTERED_PERCENT;
}

/* ---- density ---- */

/* Under the lock: half of them are enough, from here on half as often. */
static void thin(struct row_samples *samples)
{
    for (size_t i = 0; i < ROW_SAMPLES / 2; i++) {
        samples->ids[i] = samples->ids[2 * i + 1];
    }
    samples->count = ROW_SAMPLES / 2;
    samples->stride *= 2;
}

static void sample(struct row *row, struct row_table *table, uint64_t id, uint64_t admitted)
{
    struct row_samples *samples = &table->samples;
    row_lock(row);
    if (admitted >= atomic_load(&samples->next)) {
        if (samples->count == ROW_SAMPLES) {
            thin(samples);
        }
        samples->stride = samples->stride ? samples->stride : 1;
        samples->began = samples->count ? samples->began : admitted;
        samples->ids[samples->count++] = id;
        /* One in each stride, but not at the same place of each. */
        uint64_t next = admitted / samples->stride + 1;
        uint64_t noise = hash_u64(next + table->serial) % samples->stride;
        atomic_store(&samples->next, next * samples->stride + noise);
    }
    row_unlock(row);
}

static void note_arrival(struct row *row, uint64_t id)
{
    uint32_t at = atomic_fetch_add(&row->arrivals_at, 1);
    atomic_store(&row->arrivals[at % ROW_ARRIVALS], id);
}

/* What was refused after all and comes again is admitted under the same number. */
void row_stream_note(struct row *row, struct row_table *table, uint64_t id, uint64_t admitted)
{
    struct row_samples *samples = &table->samples;
    uint64_t next = atomic_load_explicit(&samples->next, memory_order_relaxed);
    uint64_t arrival = atomic_load_explicit(&samples->arrival, memory_order_relaxed);
    if (UNLIKELY(admitted >= next) && id <= row_frontier_of(table)) {
        sample(row, table, id, admitted);
    }
    if (UNLIKELY(admitted >= arrival) &&
        atomic_compare_exchange_strong(&samples->arrival, &arrival, admitted + ARRIVALS_ONE_IN)) {
        note_arrival(row, id);
    }
}

/* A client tries what is refused again: an id is noted once among those remembered. */
void row_stream_refused(struct row *row, uint64_t id)
{
    unsigned there;
    (void)arrivals(row, ROW_ARRIVALS, id, id, &there);
    if (there == 0 && atomic_fetch_add(&row->arrivals_refused, 1) % ARRIVALS_ONE_IN == 0) {
        note_arrival(row, id);
    }
}

uint64_t row_shown_range(const struct row *row, const struct row_table *table)
{
    uint64_t ids[ROW_SAMPLES];
    row_lock(row);
    size_t n = table->samples.count;
    bool whole = table->samples.began <= row_came(table) / BEGAN_PART;
    memcpy(ids, table->samples.ids, n * sizeof(ids[0]));
    row_unlock(row);
    uint64_t placed = row_count_of(table);
    size_t steps = n * DENSITY_PART / 16;
    if (n < SAMPLES_LEAST || placed < SAMPLES_LEAST || !whole) {
        return 0;
    }
    row_policy_sort(ids, n);
    uint64_t count = placed * steps / n;
    uint64_t spanned = row_policy_shortest(ids, n, steps);
    return row_policy_range(spanned + 1, count > 0 ? count : 1, table->capacity);
}

/* ---- recycled ids ---- */

/*
 * Returns the second largest distance between neighbours of the samples: the stream's own step,
 * such as a second, where it has shown that twice. The largest may be that to a stray.
 */
static uint64_t shown_step(const struct row *row, const struct row_table *table)
{
    uint64_t ids[ROW_SAMPLES];
    uint64_t largest = 0;
    uint64_t second = 0;
    row_lock(row);
    size_t n = table->samples.count;
    memcpy(ids, table->samples.ids, n * sizeof(ids[0]));
    row_unlock(row);
    row_policy_sort(ids, n);
    for (size_t i = 1; i < n; i++) {
        uint64_t step = ids[i] - ids[i - 1];
        second = step > largest ? largest : row_larger(step, second);
        largest = row_larger(step, largest);
    }
    return second;
}

bool row_stream_comes_to(const struct row *row, const struct row_table *table, uint64_t id)
{
    uint64_t came = row_admitted(table);
    uint64_t trusted = atomic_load_explicit(&table->trusted, memory_order_relaxed);
    if (came == 0 || id > row_reaches(table)) {
        return false;
    }
    uint64_t spanned = row_spanned(table);
    uint64_t near = row_larger(table->range, spanned) / COMES_PART;
    near = row_larger(near, row_policy_range(spanned + 1, came, 2 * ROW_CLUSTER));
    near = row_larger(near, table->jumped ? 0 : table->step);
    return id <= row_policy_add(trusted, near) ||
           id <= row_policy_add(trusted, shown_step(row, table));
}
