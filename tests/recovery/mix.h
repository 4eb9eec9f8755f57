/*
 * mix.h: what a writer of the recovery tests sends next.
 *
 * Mostly changes of ids it owns, half of them among its newest, the rest anywhere in the last
 * `window` ids; sometimes a new id, the next nobody has: so ids rise, tables roll, and old ones go
 * on changing. A new id and a delete are followed by a second op (a member; what makes it
 * again). The same seed gives the same ops as long as the writers' ids are the same.
 * Thread rule: a struct mix belongs to its writer; the model is shared (ops.h).
 */
#ifndef ROLLCALL_TESTS_RECOVERY_MIX_H
#define ROLLCALL_TESTS_RECOVERY_MIX_H

#include "tests/recovery/ops.h"
#include "tests/support/random.h"

#define MIX_OPS_MAX 2 /* that one call makes */

struct mix {
    struct model_header *model;
    struct model_entry *entries;
    struct test_random random;
    unsigned owner;         /* from 1 */
    uint64_t window;        /* ids back from the newest */
    uint64_t new_per_mille; /* calls in 1,000 that take a new id */
};

/* Fills ops[0 .. result-1], all but `end`; 1 to MIX_OPS_MAX. 0: it owns nothing and may take
 * nothing new. */
size_t mix_next(struct mix *mix, struct op *ops);

#endif
