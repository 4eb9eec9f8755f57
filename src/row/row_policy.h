/*
 * row_policy.h: the arithmetic of the row's decisions, on plain numbers: where ids begin and end in
 * a sample with strays, how far above the frontier an id is not ahead, which ids are a cluster, and
 * how much room late ids get. Pure functions, any thread.
 */
#ifndef ROLLCALL_ROW_ROW_POLICY_H
#define ROLLCALL_ROW_ROW_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROW_LATE_ROOM_MIN 0.02
#define ROW_LATE_ROOM_MAX 0.6

uint64_t row_policy_add(uint64_t a, uint64_t b); /* a + b, at most ROW_ID_MAX; so are a, b */

void row_policy_sort(uint64_t *ids, size_t n);

/*
 * Says where most of n ids lie; ids has them in the order they came. First the shortest span that
 * more than half of the ids are in (the "shorth" of robust statistics): strays that are fewer
 * cannot move it, wherever they lie. A stream goes on from clump to clump, so the span is then
 * widened to the shortest spans of the first half of the ids and of the second, each if it is about
 * as short.
 */
struct row_span {
    uint64_t low;    /* the smallest id at most 4 lengths of the span below it */
    uint64_t high;   /* the largest id at most 4 lengths of the span above it */
    uint64_t spread; /* the length of the span */
    uint64_t most;   /* the largest id in the span */
};
struct row_span row_policy_span(const uint64_t *ids, size_t n); /* 0 < n <= ROW_SAMPLE_MAX */

/*
 * Returns the shortest distance from an id to the one `steps` after it, of n sorted ids; steps < n.
 * Where fewer than n - steps of the ids are strays ahead of the others, the distance is that of the
 * others.
 */
uint64_t row_policy_shortest(const uint64_t *sorted, size_t n, size_t steps);

/*
 * Returns how many ids a full table spans when `count` of `capacity` span `spanned`; at most
 * ROW_ID_MAX.
 */
uint64_t row_policy_range(uint64_t spanned, uint64_t count, uint64_t capacity);

/*
 * Returns how far above what the stream has passed an id is not ahead; never less than reach_min.
 * With a known range: one range. Without one: four times what the table spans by now; but from a
 * quarter of its capacity on at most what the table will span when it is full, judged by what it
 * spans now, and a quarter more: the ids up to there fit into the table and one layer.
 */
uint64_t row_policy_reach(uint64_t range, uint64_t reach_min, uint64_t spanned, uint64_t count,
                          uint64_t capacity);

/*
 * Finds the first `wanted` of n sorted distinct ids in a row that lie within reach of each other
 * and, unless `with` is UINT64_MAX, have `with` between the smallest and the largest of them.
 * *first is the index of the smallest. False: there are none.
 */
bool row_policy_cluster(const uint64_t *sorted, size_t n, size_t wanted, uint64_t reach,
                        uint64_t with, size_t *first);

/* Returns the next late room, after a table of `count` ids, `late` of which came late. */
double row_policy_late_room(double present, uint64_t late, uint64_t count);

#endif
