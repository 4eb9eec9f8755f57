/*
 * cold.h: `load cold` measures whether reads of ids in memory suffer from reads of ids on the disk.
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
#ifndef ROLLCALL_TESTS_LOAD_COLD_H
#define ROLLCALL_TESTS_LOAD_COLD_H

#include <stdbool.h>

#include "tests/load/kit.h"

#define LOAD_COLD_RATE   8000u /* requests a second, unless it is said */
#define LOAD_COLD_ROUNDS 5u    /* likewise */

/*
 * Reads the options of `load cold`, those of load_kit, and completes them. False: they make no
 * sense, or do not go together; it was said.
 */
bool load_cold_parse(int argc, char **argv, struct load_options *options);

/*
 * Runs and reports on stdout, with two threads, on the first two of the processors. argv[0] is the
 * verb. Returns the exit status: 0, 1 when replies were wrong or failed, which was said, 2 for
 * options that make no sense.
 */
int load_cold_main(int argc, char **argv);

#endif
