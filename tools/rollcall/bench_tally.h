/*
 * bench_tally.h: what was asked of a server and answered, counted.
 *
 * An operation is one key read or one change. Error lines are counted by their text; one that the
 * user or the workload expects (bench_options.h, bench_mix.h) is no fault of the run. Cost: a few
 * compares an error line, nothing otherwise. Plain data, one thread.
 */
#ifndef ROLLCALL_TOOLS_BENCH_TALLY_H
#define ROLLCALL_TOOLS_BENCH_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/rollcall/bench_feed.h"

#define BENCH_TEXT_MAX    200u /* bytes kept of an error or mismatch, NUL included */
#define BENCH_ERROR_LINES 16u  /* different error lines told apart; the others share the last */

/* Error lines of one text. */
struct bench_error {
    char text[BENCH_TEXT_MAX];
    bool expected;
    uint64_t count;
};

/* One kind of request of the workload mix. */
struct bench_kind_tally {
    uint64_t requests;
    uint64_t operations;
    uint64_t hits;
    uint64_t misses;
    uint64_t errors; /* expected ones too */
};

/* Up to the error lines all are sums. */
struct bench_tally {
    uint64_t requests;
    uint64_t operations;
    uint64_t hits;     /* keys answered, changes made */
    uint64_t misses;   /* keys not there, changes of nothing */
    uint64_t errors;   /* error lines nobody expects */
    uint64_t expected; /* the other error lines */
    uint64_t mismatches;
    uint64_t foreign; /* members asked for that were never added */
    uint64_t wrong;   /* of these, found */
    uint64_t checked; /* mix: answers compared with what they must be exactly */
    uint64_t bytes_sent;
    uint64_t bytes_received;
    struct bench_kind_tally kinds[BENCH_KINDS];
    struct bench_error error_lines[BENCH_ERROR_LINES];
    char first_mismatch[BENCH_TEXT_MAX];
};

/* Counts an error line; unprintable bytes are kept as dots. */
void bench_tally_error(struct bench_tally *tally, const char *line, size_t length, bool expected);

/* Counts a mismatch; the first one's text is kept: what, and the line it was seen in. */
void bench_tally_mismatch(struct bench_tally *tally, const char *what, const char *line,
                          size_t length);

/* What is counted of each kind, so far in all: what a reply adds is counted for its kind, too. */
struct bench_kind_tally bench_tally_sums(const struct bench_tally *tally);

/* Adds what another thread's tally holds: sums, error lines by their text, the first mismatch if
 * `into` has none. */
void bench_tally_add(struct bench_tally *into, const struct bench_tally *from);

#endif
