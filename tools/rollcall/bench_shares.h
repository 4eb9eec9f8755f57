/*
 * bench_shares.h: the kinds of request that the workload mix sends, and how often each.
 *
 * A share is a weight: of as many requests as all weights are together, so many are of that kind.
 * Pure functions, any thread.
 */
#ifndef ROLLCALL_TOOLS_BENCH_SHARES_H
#define ROLLCALL_TOOLS_BENCH_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
