/*
 * filter.h: a blocked Bloom filter: all bits of a member lie in one cache line, so a check costs
 * one line of memory.
 *
 * A member is a 64-bit hash: a high multiply of it gives the line, its low 32 bits the places of
 * `bits` bits among the 512 of the line. Bits are set and never cleared. Lines fill unevenly (a
 * Poisson load), so such a filter needs a tenth more bits a member than a classical one for the
 * same rate of wrong answers; phantom_filter_plan() finds the number of bits and the load for a
 * rate by a small search over the blocked formula. See Putze, Sanders, Singler, "Cache-, hash- and
 * space-efficient Bloom filters", 2007.
 *
 * Cost: a check in a prefetched batch about 20 ns. Memory: 9.9, 15.5 and 22.0 bits a member at
 * capacity for 1 %, 0.1 % and 0.01 % wrong.
 * Thread rule: checks by any thread at any time, without a lock; setting under a lock of the line.
 */
#ifndef ROLLCALL_PHANTOM_FILTER_H
#define ROLLCALL_PHANTOM_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/words.h"

#define PHANTOM_LINE_BYTES   64
#define PHANTOM_LINE_BITS    512
#define PHANTOM_LINE_WORDS   (PHANTOM_LINE_BYTES / 8)
#define PHANTOM_BITS_MAX     32          /* of a member; the search ends well below */
#define PHANTOM_BITS_USUAL   9           /* of a rate of one in a thousand */
#define PHANTOM_BIT_STEP     0x9e3779b9u /* 2^32 / golden ratio: odd */
#define PHANTOM_SAMPLE_LINES 16384       /* lines looked at for the present rate: 1 MiB */

/* How full a filter may be, and how many bits its members have, for a rate of wrong answers. */
struct phantom_plan {
    unsigned bits; /* of a member */
    double load;   /* members a line at capacity */
    double rate;   /* what share of foreign members is answered wrongly then */
};

/* The plan that holds most members with at most `rate` (above 0, below 1) wrong. About 1 ms. */
void phantom_filter_plan(double rate, struct phantom_plan *plan);

/* The share of wrong answers with `load` members a line of `bits` bits each. */
double phantom_filter_rate_at(unsigned bits, double load);

struct phantom_filter {
    shared_word *words; /* zeroed memory of lines * PHANTOM_LINE_BYTES, the owner's. NULL: they
                         * are in a file (phantom/dump.h), and only the line is asked for */
    uint64_t lines;
    unsigned bits; /* of a member */
};

/* The line a hash belongs to. */
static inline uint64_t phantom_filter_line(const struct phantom_filter *filter, uint64_t hash)
{
    return (uint64_t)((unsigned __int128)hash * filter->lines >> 64);
}

static inline shared_word *phantom_filter_words(const struct phantom_filter *filter, uint64_t hash)
{
    return filter->words + phantom_filter_line(filter, hash) * PHANTOM_LINE_WORDS;
}

/* Asks for the line of a hash, and returns it. */
static inline const shared_word *phantom_filter_prefetch(const struct phantom_filter *filter,
                                                         uint64_t hash)
{
    const shared_word *line = phantom_filter_words(filter, hash);
    __builtin_prefetch(line, 0, 3);
    /* Without this GCC takes an inline function that only prefetches for one that does nothing. */
    __asm__ volatile("");
    return line;
}

/* Looks at the next bit of a member: the lowest of *all stays set if that one is. x: its hash at
 * first. */
static inline void phantom_line_bit(const shared_word *line, uint32_t *x, uint64_t *all)
{
    *all &= word_load(line, *x >> 29) >> (*x >> 23 & 63);
    *x *= PHANTOM_BIT_STEP;
    /* Else GCC loads the words of all bits first, and has not the registers for that. */
    __asm__("" : "+r"(*x), "+r"(*all));
}

/* Returns whether all bits of a member are set in a line of PHANTOM_LINE_WORDS. */
static inline bool phantom_line_holds(const shared_word *line, unsigned bits, uint64_t hash)
{
    uint32_t x = (uint32_t)hash;
    uint64_t all = 1;
    __asm__("" : "+r"(line)); /* else GCC adds its parts up again for each bit */
    if (LIKELY(bits == PHANTOM_BITS_USUAL)) {
#pragma GCC unroll 16
        for (unsigned i = 0; i < PHANTOM_BITS_USUAL; i++) { /* is laid out, without a loop */
            phantom_line_bit(line, &x, &all);
        }
        return all;
    }
    for (unsigned i = 0; i < bits; i++) {
        phantom_line_bit(line, &x, &all);
    }
    return all;
}

/* Returns whether the member was set: true also for some that were not, never false for one that
 * was. */
static inline bool phantom_filter_holds(const struct phantom_filter *filter, uint64_t hash)
{
    return phantom_line_holds(phantom_filter_words(filter, hash), filter->bits, hash);
}

/* Sets the bits of a member in a line. Under a lock of it. */
void phantom_line_set(shared_word *line, unsigned bits, uint64_t hash);

/* Sets the bits of a member. Under a lock of its line. */
void phantom_filter_set(struct phantom_filter *filter, uint64_t hash);

/* The share of foreign members answered wrongly now, from PHANTOM_SAMPLE_LINES lines at most. */
double phantom_filter_rate(const struct phantom_filter *filter);

/* How many bits are set: walks all lines. */
uint64_t phantom_filter_count(const struct phantom_filter *filter);

#endif
