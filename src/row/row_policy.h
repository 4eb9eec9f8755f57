/*
 * row_policy.h: the arithmetic of the row's decisions, on plain numbers: where ids begin and end in
 * a sample with strays, how far above the frontier an id is still believed, what is a cluster, and
 * how much room late ids get. Pure functions, any thread.
 */
#ifndef ROLLCALL_ROW_ROW_POLICY_H
#define ROLLCALL_ROW_ROW_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROW_LATE_ROOM_MIN 0.02
#define ROW_LATE_ROOM_MAX 0.6

uint64_t row_policy_add(uint64_t a, uint64_t b); /* at most ROW_ID_MAX; both are too */

void row_policy_sort(uint64_t *ids, size_t n);
bool row_policy_holds(const uint64_t *sorted, size_t n, uint64_t id); /* is it one of them? */

/*
 * Where most of some ids lie, which are given in the order they came: the shortest span that more
 * than half of them are in (the "shorth" of robust statistics), which strays that are fewer cannot
 * move, wherever they lie; from those of the first and to those of the second half, as a stream
 * goes on from clump to clump, if they are about as short.
 */
struct row_span {
    uint64_t low;    /* the smallest not below that by more than 4 of its lengths */
    uint64_t high;   /* the largest not above it by more than 4 */
    uint64_t spread; /* its length */
    uint64_t most;   /* the largest in it */
};
struct row_span row_policy_span(const uint64_t *ids, size_t n); /* 0 < n <= ROW_SAMPLE_MAX */

/*
 * The shortest distance from an id to the one `steps` further on, of n sorted ones; steps < n.
 * Where fewer than n - steps of them are strays ahead of the others, it is of the others.
 */
uint64_t row_policy_shortest(const uint64_t *sorted, size_t n, size_t steps);

/* Ids a full table spans, when `count` of `capacity` span so many; ROW_ID_MAX at most. */
uint64_t row_policy_range(uint64_t spanned, uint64_t count, uint64_t capacity);

/*
 * How far above what the stream has passed an id is not ahead. With a known range: one range.
 * Without: four times what the table spans by now; but from a quarter of its capacity on not above
 * what it will span when it is full, as it shows by now, and a quarter more: the ids up to there
 * fit into the table and one layer.
 */
uint64_t row_policy_reach(uint64_t range, uint64_t reach_min, uint64_t spanned, uint64_t count,
                          uint64_t capacity);

/*
 * The first `wanted` ids of n sorted distinct ones that lie within reach of each other, among those
 * the id `with` belongs to (UINT64_MAX: any). False: there are none.
 */
bool row_policy_cluster(const uint64_t *sorted, size_t n, size_t wanted, uint64_t reach,
                        uint64_t with, size_t *first);

/* The next late room, after a table of `count` ids of which `late` came late. */
double row_policy_late_room(double present, uint64_t late, uint64_t count);

#endif
