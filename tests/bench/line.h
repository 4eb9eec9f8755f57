/*
 * line.h: the yardstick of the micro-benchmarks: what one load of a random cache line costs whose
 * address depends on the load before, in memory laid out like a table's; and what they share to
 * measure against it.
 */
#ifndef ROLLCALL_TESTS_BENCH_LINE_H
#define ROLLCALL_TESTS_BENCH_LINE_H

#include <stdint.h>

#define LINE_OPS_A_ROUND (1u << 20)
#define LINE_ROUNDS      3 /* each figure is the best of them */
#define LINE_WEYL        0x9e3779b97f4a7c15ull

double line_now_ns(void); /* of the monotonic clock */

/* random, drawn from all 64-bit numbers, to 0 .. bound - 1. */
uint64_t line_scale_down(uint64_t random, uint64_t bound);

/* Nanoseconds a dependent load of a random line of so many bytes. Ends the process without memory.
 */
double line_measure(uint64_t bytes);

/* "64K", "16M", "1G" in bytes. Prints usage and ends the process with 2 if text is anything else.
 */
uint64_t line_parse_size(const char *text, const char *usage);

#endif
