/*
 * histogram.h: counts of 64-bit values in log-linear buckets, for percentiles of latencies.
 *
 * Each power of two is cut into 128 buckets of equal width, so a value is known to within 1/128 of
 * itself and a percentile, answered by the middle of its bucket, to within 0.4 %. Values below 256
 * and the maximum are exact. All of 0 .. 2^64-1 fits; 59 KiB whatever the number of values.
 * Cost: recording is a few instructions and one cache line. One thread.
 */
#ifndef ROLLCALL_TOOLS_HISTOGRAM_H
#define ROLLCALL_TOOLS_HISTOGRAM_H

#include <stdint.h>

struct histogram;

struct histogram *histogram_create(void);            /* empty; never NULL */
void histogram_destroy(struct histogram *histogram); /* NULL: no-op */

void histogram_record(struct histogram *histogram, uint64_t value);

/* Adds what `from` holds. 5 us. */
void histogram_merge(struct histogram *into, const struct histogram *from);

uint64_t histogram_count(const struct histogram *histogram); /* values recorded */
uint64_t histogram_max(const struct histogram *histogram);   /* the largest, exact; 0 when empty */

/*
 * The smallest value that at least `percent` of the recorded ones do not exceed; percent is above 0
 * and at most 100. 0 when empty.
 */
uint64_t histogram_percentile(const struct histogram *histogram, double percent);

#endif
