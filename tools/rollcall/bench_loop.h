/*
 * bench_loop.h: one thread's part of a run: its share of the connections, driven by one epoll loop,
 * its workload, and what it counts.
 *
 * create, add, destroy and the rest are for the thread that runs the plan, before and after the
 * loop's own thread is at work; connect and run are for that one. Figures and latency may be read
 * by any thread at any time: they are published at each turn of the loop, which costs four stores.
 */
#ifndef ROLLCALL_TOOLS_BENCH_LOOP_H
#define ROLLCALL_TOOLS_BENCH_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/rollcall/bench_run.h"

struct bench_loop;

/* What a progress line shows. */
struct bench_figures {
    uint64_t requests;
    uint64_t misses;
    uint64_t errors;
    uint64_t mismatches;
};

/* Called in the loop's thread about once a second. */
typedef void bench_loop_second(void *context, uint64_t seconds);

/*
 * The part of thread number `thread` of the plan. All loops of a run share `stop`: who fails sets
 * it, and who sees it ends. Plan and stop outlive it. Never NULL.
 */
struct bench_loop *bench_loop_create(const struct bench_plan *plan, uint64_t thread,
                                     atomic_bool *stop);
void bench_loop_destroy(struct bench_loop *loop); /* closes the connections. NULL: no-op */

void bench_loop_connect(struct bench_loop *loop); /* blocks while it does; may fail */

/* Asks and judges until its part is done or *stop. each_second may be NULL. */
void bench_loop_run(struct bench_loop *loop, bench_loop_second *each_second, void *context);

/* Sets *stop. If it was not set before, `what` is the reason of the run's failure. */
void bench_loop_fail(struct bench_loop *loop, const char *what);

/* Why the run failed, if it was this loop that failed first; else NULL. */
const char *bench_loop_reason(const struct bench_loop *loop);

void bench_loop_add_figures(const struct bench_loop *loop, struct bench_figures *figures);
const struct histogram *bench_loop_latency(const struct bench_loop *loop); /* ns */
const struct bench_tally *bench_loop_tally(const struct bench_loop *loop);

/* When it began and when its last reply came, by the monotonic clock; false: it never began. */
bool bench_loop_span(const struct bench_loop *loop, uint64_t *begun_ns, uint64_t *last_ns);

#endif
