/*
 * hash.h: the one place that knows xxHash (XXH3, 64 bits).
 * Pure functions, any thread.
 */
#ifndef ROLLCALL_BASE_HASH_H
#define ROLLCALL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* XXH3 of length bytes with a seed. */
uint64_t hash_bytes(const void *bytes, size_t length, uint64_t seed);
/* The same for two words as they lie in memory, in a third of the time. */
uint64_t hash_words2(uint64_t first, uint64_t second, uint64_t seed);

/*
 * Mixes one 64-bit number: the finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable
 * pseudorandom number generators", 2014). A bijection, about 2 ns.
 */
static inline uint64_t hash_u64(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

#endif
