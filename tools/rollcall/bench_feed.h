/*
 * bench_feed.h: which ids a feed creates next, and which it looks at; by index, which rises with
 * the id (bench_workload_id()).
 *
 *     0 ................ clock - window .......... clock ->
 *     |  old: now and then  |  recent: the newer the more often  |  not there yet
 *
 * The clock goes on by one with each id created, but for the late ones, a share of the ids chosen
 * by hash: the clock passes them, and they are created when it is late_by further. Nothing is
 * remembered but the clock. Draws: `old` per cent uniformly from all ids there ever were, the rest
 * from the window, at clock - window * u^3: half of them from its newest eighth.
 *
 * Cost: a few ns. A feed belongs to one thread.
 */
#ifndef ROLLCALL_TOOLS_BENCH_FEED_H
#define ROLLCALL_TOOLS_BENCH_FEED_H

#include <stdbool.h>
#include <stdint.h>

#define BENCH_FEED_LATE_MAX 90u /* per cent */

struct bench_feed {
    uint64_t start;   /* ids below were there before */
    uint64_t end;     /* the clock stops here */
    uint64_t clock;   /* ids below have been passed */
    uint64_t window;  /* newest ids */
    uint64_t late_by; /* how far the clock goes on before a late id is created */
    uint64_t late;    /* per cent */
    uint64_t old;     /* per cent */
    uint64_t seed;
    bool looks_back; /* next: is the id late_by below the clock due? */
};

/* An empty feed with its clock at `start`. window is at least 2; late at most BENCH_FEED_LATE_MAX.
 */
void bench_feed_init(struct bench_feed *feed, uint64_t start, uint64_t end, uint64_t window);

/* Is this one of the late ids? */
bool bench_feed_late(const struct bench_feed *feed, uint64_t index);

/* The id to create now: each once, in rising order but for the late ones. At the end: the last. */
uint64_t bench_feed_next(struct bench_feed *feed);

/* An id to look at, from 64 random bits: below the clock; 0 while there is none. */
uint64_t bench_feed_draw(const struct bench_feed *feed, uint64_t random);

/* Is it among the newest `window`? */
static inline bool bench_feed_recent(const struct bench_feed *feed, uint64_t index)
{
    return index + feed->window >= feed->clock;
}

#endif
