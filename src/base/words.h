/*
 * words.h: bytes and bit fields in memory that other threads read meanwhile.
 *
 * Shared memory (a group of a table, a bucket of a dict) is only touched as aligned 64-bit words
 * with relaxed atomic loads and stores, so a reader sees whole words, old or new, and its version
 * check (verlock.h) tells it when they do not belong together. Byte offsets are little-endian:
 * configure refuses other machines. Storing to a part of a word rewrites the rest of it with what
 * it holds, so the writer must hold the lock of all of it.
 */
#ifndef ROLLCALL_BASE_WORDS_H
#define ROLLCALL_BASE_WORDS_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t __attribute__((may_alias)) shared_word; /* always through the functions below */

static inline uint64_t words_low_mask(size_t bytes) /* 1 .. 8 */
{
    return UINT64_MAX >> (64 - 8 * bytes);
}

/* The `bytes` (1 to 8) bytes at a byte offset; touches only the words they lie in. */
static inline uint64_t words_load(const shared_word *words, size_t offset, size_t bytes)
{
    const shared_word *word = words + offset / 8;
    size_t shift = offset % 8 * 8;
    uint64_t value = __atomic_load_n(word, __ATOMIC_RELAXED) >> shift;
    if (shift + 8 * bytes > 64) {
        value |= __atomic_load_n(word + 1, __ATOMIC_RELAXED) << (64 - shift);
    }
    return value & words_low_mask(bytes);
}

/* Stores the low `bytes` (1 to 8) bytes of value at a byte offset. Under the lock of those words.
 */
static inline void words_store(shared_word *words, size_t offset, size_t bytes, uint64_t value)
{
    shared_word *word = words + offset / 8;
    size_t shift = offset % 8 * 8;
    uint64_t mask = words_low_mask(bytes);
    value &= mask;
    uint64_t low = __atomic_load_n(word, __ATOMIC_RELAXED);
    __atomic_store_n(word, (low & ~(mask << shift)) | value << shift, __ATOMIC_RELAXED);
    if (shift + 8 * bytes > 64) {
        uint64_t high = __atomic_load_n(word + 1, __ATOMIC_RELAXED);
        high = (high & ~(mask >> (64 - shift))) | value >> (64 - shift);
        __atomic_store_n(word + 1, high, __ATOMIC_RELAXED);
    }
}

/* Copies `bytes` bytes at an offset to local words, the last one filled up with zeros. */
static inline void words_copy_out(const shared_word *words, size_t offset, size_t bytes,
                                  uint64_t *local)
{
    for (; bytes > 8; bytes -= 8, offset += 8) {
        *local++ = words_load(words, offset, 8);
    }
    *local = words_load(words, offset, bytes);
}

/* The other way. Under the lock. */
static inline void words_copy_in(shared_word *words, size_t offset, size_t bytes,
                                 const uint64_t *local)
{
    for (; bytes > 8; bytes -= 8, offset += 8) {
        words_store(words, offset, 8, *local++);
    }
    words_store(words, offset, bytes, *local);
}

/* A field of `bits` (1 to 64) bits in local words; one word behind the field's first must exist. */
static inline uint64_t bits_get(const uint64_t *local, unsigned offset, unsigned bits)
{
    unsigned shift = offset % 64;
    uint64_t value = local[offset / 64] >> shift;
    if (shift + bits > 64) {
        value |= local[offset / 64 + 1] << (64 - shift);
    }
    return value & (UINT64_MAX >> (64 - bits));
}

static inline void bits_set(uint64_t *local, unsigned offset, unsigned bits, uint64_t value)
{
    unsigned shift = offset % 64;
    uint64_t mask = UINT64_MAX >> (64 - bits);
    uint64_t *word = local + offset / 64;
    *word = (*word & ~(mask << shift)) | (value & mask) << shift;
    if (shift + bits > 64) {
        word[1] = (word[1] & ~(mask >> (64 - shift))) | (value & mask) >> (64 - shift);
    }
}

#endif
