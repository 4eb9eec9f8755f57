/*
 * bench_feed.h: a feed's traffic, for the workload mix: how often each kind of request comes (its
 * share: so many of as many as all shares are together), which ids are created next, and which are
 * looked at. Ids go by index, which rises with the id (bench_workload_id()).
 *
 *     0 ................ clock - window .......... clock ->
 *     |  old: now and then  |  recent: the newer the more often  |  not there yet
 *
 * The clock goes on by one with each id created. It passes the late ones, a share of the ids chosen
 * by hash, which are created when it is late_by further. Draws: `old` per cent uniformly from all
 * ids, the rest at clock - window * u^3: half of them from the window's newest eighth. A few ns. A
 * feed belongs to one thread.
 */
#ifndef ROLLCALL_TOOLS_BENCH_FEED_H
#define ROLLCALL_TOOLS_BENCH_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_FEED_LATE_MAX    90u /* per cent */
#define BENCH_SHARE_MAX        1000000u
#define BENCH_SHARES_ERROR_MAX 200u

enum bench_kind {
    BENCH_KIND_PAGE,    /* get of many records */
    BENCH_KIND_RECORD,  /* get of one */
    BENCH_KIND_SLOT,    /* get of one slot */
    BENCH_KIND_INCR,    /* incr of one slot */
    BENCH_KIND_SEVERAL, /* incr of several slots of an id in one step */
    BENCH_KIND_CREATE,  /* set of the record of a new id */
    BENCH_KIND_DELETE,  /* delete of a record */
    BENCH_KIND_EXIST,   /* get of many existence keys */
    BENCH_KIND_LIKE,    /* add of a member */
    BENCH_KIND_UNLIKE,  /* delete of a member */
    BENCH_KINDS
};

struct bench_shares {
    uint64_t of[BENCH_KINDS];
    uint64_t total;
};

const char *bench_kind_name(enum bench_kind kind);

/* A social feed's, of 100 requests. */
struct bench_shares bench_shares_default(void);

/*
 * Reads "page=50,like=0": the kinds named get that weight, the others keep theirs. False with
 * `error`: it is none of that, or nothing is left to send; shares is then undefined.
 */
bool bench_shares_parse(const char *text, struct bench_shares *shares,
                        char error[BENCH_SHARES_ERROR_MAX]);

/* The kind that 64 random bits say. */
enum bench_kind bench_shares_draw(const struct bench_shares *shares, uint64_t random);

struct bench_feed {
    uint64_t start;   /* ids below were there before */
    uint64_t end;     /* the clock stops here */
    uint64_t clock;   /* ids below have been passed */
    uint64_t window;  /* newest ids */
    uint64_t late_by; /* how far the clock goes on before a late id is created */
    uint64_t late;    /* per cent */
    uint64_t old;     /* per cent */
    uint64_t seed;
    bool looks_back; /* next: whether the id late_by below the clock is due */
};

/* An empty feed with its clock at `start`. window: 2 or more; late: BENCH_FEED_LATE_MAX at most. */
void bench_feed_init(struct bench_feed *feed, uint64_t start, uint64_t end, uint64_t window);

/* Returns whether this is one of the late ids. */
bool bench_feed_late(const struct bench_feed *feed, uint64_t index);

/* The id to create now: each once, in rising order but for the late ones. At the end: the last. */
uint64_t bench_feed_next(struct bench_feed *feed);

/* An id to look at, from 64 random bits: below the clock; 0 while there is none. */
uint64_t bench_feed_draw(const struct bench_feed *feed, uint64_t random);

#endif
