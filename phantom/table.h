/*
 * table.h: a filter with its exceptions, its locks and its count of members.
 *
 * A member is there if the filter says so and no exception stands for it. Adding sets bits, or
 * takes an exception away; removing makes an exception. Exceptions are exact: the dict's key is the
 * hash the filter uses and the low byte of a second hash of its own seed, its value the whole
 * second hash: two members are taken for one with a probability of 2^-128 a pair.
 *
 * Invariants, held whenever no lock is taken (phantom_table_check):
 *   T1 no stripe is locked
 *   T2 members put into the filter are at most the capacity
 *   T3 set bits are at most `bits` a member put in, and some if there is a member
 *   T4 the filter says yes to every exception
 *   T5 the exceptions are a sound dict
 *
 * Thread rule: hash, prefetch, holds, stats by any thread at any time; add and remove between
 * phantom_table_lock() and unlock of that member; the rest with the world stopped.
 */
#ifndef ROLLCALL_PHANTOM_TABLE_H
#define ROLLCALL_PHANTOM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phantom/filter.h"
#include "phantom/phantom.h"

#define PHANTOM_STRIPES 8192 /* locks; a power of two */

struct phantom_table;

struct phantom_shape {
    uint64_t table_bytes;
    uint64_t exceptions_bytes; /* of the pool, 0 without deletes */
    uint64_t capacity;         /* members */
    struct phantom_plan plan;
};
void phantom_shape_init(struct phantom_shape *shape, const struct phantom_config *config);

/* Who it is about. `bytes` are the caller's and live as long as it. */
struct phantom_member {
    uint64_t id;
    uint64_t hash; /* phantom_table_hash() of the rest */
    const char *bytes;
    size_t length;
};

/* NULL with errno when memory is refused. */
struct phantom_table *phantom_table_create(const struct phantom_config *config);
void phantom_table_destroy(struct phantom_table *table); /* NULL: no-op */
void phantom_table_clear(struct phantom_table *table);   /* world stopped */

const struct phantom_shape *phantom_table_shape(const struct phantom_table *table);

/*
 * Turns removing on or off, world stopped. Exceptions that stand go on standing. False, nothing
 * changed, when the memory is refused.
 */
bool phantom_table_deletes(struct phantom_table *table, bool on, uint64_t exceptions_bytes);

/* The hash of a member at an id, and a second, independent one. */
uint64_t phantom_table_hash(const struct phantom_table *table, uint64_t id, const char *bytes,
                            size_t length);
uint64_t phantom_table_second_hash(const struct phantom_table *table,
                                   const struct phantom_member *member);
void phantom_table_prefetch(const struct phantom_table *table, uint64_t hash);

/* Is it there? */
bool phantom_table_holds(const struct phantom_table *table, const struct phantom_member *member);

void phantom_table_lock(struct phantom_table *table, const struct phantom_member *member);
void phantom_table_unlock(struct phantom_table *table, const struct phantom_member *member);

/* Under the lock: adds one that is not there. False, nothing changed: the table is at capacity. */
bool phantom_table_add(struct phantom_table *table, const struct phantom_member *member);
/* Under the lock: removes one that is there. False, nothing changed: no room for an exception. */
bool phantom_table_remove(struct phantom_table *table, const struct phantom_member *member);

struct phantom_table_stats {
    uint64_t members;    /* put in, less the exceptions */
    uint64_t put;        /* into the filter: what capacity counts */
    uint64_t exceptions; /* standing */
    uint64_t exception_used_bytes;
    uint64_t exception_pool_bytes;
    uint64_t first_id; /* smallest and largest with a member; UINT64_MAX and 0 when empty */
    uint64_t last_id;
};
void phantom_table_stats(const struct phantom_table *table, struct phantom_table_stats *stats);

/* The present share of wrong answers, from a sample of lines: up to a millisecond or two. */
double phantom_table_rate(const struct phantom_table *table);

/* Makes the filter resident. Blocks; ends early once *stop is true. */
void phantom_table_populate(struct phantom_table *table, const _Atomic bool *stop);

void phantom_table_check(const struct phantom_table *table);

#endif
