/*
 * log_queue.h: the way of a line of the log to stderr or syslog: at once, or, while the queue's
 * thread runs, by a ring of bytes that the thread empties. Then nobody who logs, inside the barrier
 * or not, waits for a disk or for a pipe that nobody reads.
 *
 * A full ring loses lines: from the first one that has no room on, until half of the ring is free
 * again; a line in their place then says how many. All others stay in the order in which they came.
 * A process that a signal ends loses what is in the ring.
 *
 * Any thread; start and end by one. For log.c and check.c: all others call those. The state is of
 * the process.
 */
#ifndef ROLLCALL_BASE_LOG_QUEUE_H
#define ROLLCALL_BASE_LOG_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_LINE_BYTES  1024 /* a longer line is cut */
#define LOG_QUEUE_BYTES (1u << 20)
#define LOG_WAIT_S      2 /* the longest wait for the ring to be written */

/* A line with its newline. What stands before `start` is for stderr alone. */
struct log_entry {
    int priority; /* of syslog(3) */
    bool to_syslog;
    uint16_t start;
    uint16_t length;
    char text[LOG_LINE_BYTES];
};

/* Makes the line that says how many were lost. Called by the queue's thread under its lock: logs
 * nothing. */
typedef void log_lost_fn(struct log_entry *entry, uint64_t lost);

/* Starts the thread, if it does not run. False with errno: there is none, lines are written at
 * once.
 */
bool log_queue_start(log_lost_fn *tell_lost);

/*
 * Ends the thread once all is written; lines are then written at once again. If that takes longer
 * than LOG_WAIT_S the thread stays, and so does what it has not written. Not started: no-op.
 */
void log_queue_end(void);

/* Waits until all lines put before are written, for LOG_WAIT_S at most. */
void log_queue_wait(void);

void log_queue_put(const struct log_entry *entry);

/* Returns how many lines were lost in all, those that stderr refused among them. */
uint64_t log_queue_lost(void);

#endif
