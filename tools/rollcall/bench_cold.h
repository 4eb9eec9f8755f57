/*
 * bench_cold.h: the workload cold: do reads of ids in memory suffer from reads of ids on the disk?
 *
 * Rounds of two equal halves: in the first only the newest `window` ids are read, each record with
 * a request of its own; in the second `old` per cent of the requests, on connections of their own,
 * read the older half of the ids beside that. Both kinds come at a fixed rate, so that the new ones
 * are asked for equally often in both halves. What is judged is the latency of the new ones: the
 * medians over the rounds, and with / without. Rounds follow each other, because machines change
 * their speed from minute to minute.
 *
 * The older half must be dumped, and what is read of it not be in the server's cache: that is the
 * user's to see to (its latency is reported).
 */
#ifndef ROLLCALL_TOOLS_BENCH_COLD_H
#define ROLLCALL_TOOLS_BENCH_COLD_H

#include <stdbool.h>

#include "tools/rollcall/bench_cpus.h"
#include "tools/rollcall/bench_options.h"

/*
 * Runs and reports on stdout. False: replies were wrong or failed, which was said. Two threads, on
 * the first two of the processors.
 */
bool bench_cold(const struct bench_options *options, const struct bench_cpus *cpus);

#endif
