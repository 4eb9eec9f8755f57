/*
 * kit.h: the kit of the load generator for comparisons: beside what `rollcall bench` has, the
 * dialect of Redis, layouts of the data in other servers, draws by Zipf's law, pinned threads and
 * an exact judge of mix.
 */
#ifndef ROLLCALL_TESTS_LOAD_KIT_H
#define ROLLCALL_TESTS_LOAD_KIT_H

#include <stddef.h>
#include <stdint.h>

#include "tests/load/cpus.h"
#include "tests/load/zipf.h"
#include "tools/rollcall/bench_mix.h"

#define LOAD_ROUNDS_MAX 100u
#define LOAD_ZIPF_MAX   200u /* hundredths */

#define LOAD_CPUS_TEXT_MAX 4096u
#define LOAD_THETA_MAX     24u

enum load_layout {
    LOAD_RECORDS,  /* a key an id */
    LOAD_SLOTS,    /* a key a slot */
    LOAD_HASH,     /* redis: a hash an id, a field a slot */
    LOAD_HASH_ALL, /* redis: the same, read by HGETALL */
    LOAD_SETS      /* redis: a set an id, of members */
};

struct load_options {
    struct bench_options common;   /* first: the kit's functions are given a pointer to it */
    char cpus[LOAD_CPUS_TEXT_MAX]; /* list of processors for the threads; "": any */
    char theta[LOAD_THETA_MAX];    /* of Zipf's law; "": all ids alike */
    uint64_t layout;               /* enum load_layout */
    uint64_t rounds;               /* cold: of both kinds; 0: not said */

    /* Derived. */
    uint64_t zipf; /* theta in hundredths; 0: all ids alike */
    struct load_cpus pins;
    struct load_zipf draws; /* if zipf is not 0 */
};

extern const struct bench_kit load_kit;
extern const struct bench_dialect load_dialect_redis;
extern const struct bench_watch load_watch; /* with --verify values */

/* The load_kit's options of which these are the common part. */
const struct load_options *load_options_of(const struct bench_options *common);

#endif
