/*
 * bench_loop.h: what one thread of a run does: some of the connections, served by an event loop,
 * its workload, and what it counts. Included by bench_run.c only, whose thread calls init, and fini
 * when the loop's own thread has ended; run is for that one.
 */
#ifndef ROLLCALL_TOOLS_BENCH_LOOP_H
#define ROLLCALL_TOOLS_BENCH_LOOP_H

#include <stdatomic.h>

#include "tools/rollcall/bench_run.h"
#include "tools/rollcall/dial.h"

struct bench_lane;

struct bench_loop {
    const struct bench_plan *plan;
    atomic_bool *stop;                /* all of the run: who fails sets it */
    char reason[DIAL_ERROR_MAX + 64]; /* of the failure of the run, if it was this loop's */
    bool unanswered;                  /* the reason: no connection, or no answer */
    struct bench_workload *workload;
    struct bench_tally tally;
    struct histogram *latency_ns;
    struct bench_lane *lanes;
    uint64_t lane_count;
    size_t words_a_request;
    int epoll;
    uint64_t busy;           /* lanes with a batch under way */
    struct bench_lane *idle; /* lanes for which it is not yet time */
    uint64_t interval_ns;    /* from batch to batch; 0: none */
    uint64_t due_after_ns;   /* the first batch, after the loop begins */
    uint64_t due_ns;         /* the next batch */
    uint64_t pipeline;
    uint64_t requests_left; /* not yet begun; without a bound: more than there will ever be */
    uint64_t begun_ns;      /* by the monotonic clock; 0: not yet */
    uint64_t deadline_ns;
    uint64_t last_reply_ns;
    uint64_t quiet_since_ns; /* while busy: the last reply, or what was asked then */
    uint64_t next_tick_ns;
};

/* The part of thread number `thread` of the plan: connects, and blocks while it does; may fail. */
void bench_loop_init(struct bench_loop *loop, const struct bench_plan *plan, uint64_t thread,
                     atomic_bool *stop);
void bench_loop_fini(struct bench_loop *loop); /* closes the connections */

/* Asks and judges until its part is done or *stop; shows: tells each second on stderr how far. */
void bench_loop_run(struct bench_loop *loop, bool shows);

/* Sets *stop. If it was not set before, `what` is the reason of the run's failure. */
void bench_loop_fail(struct bench_loop *loop, const char *what);

#endif
