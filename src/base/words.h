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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ThreadSanitizer must see every access as an atomic one, AddressSanitizer must see it at all: the
 * compilers do not tell them of assembly. */
#if defined(__SANITIZE_THREAD__)
#define WORDS_ATOMIC_ONLY
#elif defined(__SANITIZE_ADDRESS__)
#define WORDS_SEEN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WORDS_ATOMIC_ONLY
#elif __has_feature(address_sanitizer)
#define WORDS_SEEN
#endif
#endif

typedef uint64_t __attribute__((may_alias)) shared_word; /* always through the functions below */

static inline uint64_t words_low_mask(size_t bytes) /* 1 .. 8 */
{
    return UINT64_MAX >> (64 - 8 * bytes);
}

/* One whole word. */
static inline uint64_t word_load(const shared_word *words, size_t index)
{
    return __atomic_load_n(words + index, __ATOMIC_RELAXED);
}

/* Returns the 64 bits from bit `shift` (0 to 63) of `low` on, of two words side by side. */
static inline uint64_t words_funnel(uint64_t low, uint64_t high, unsigned shift)
{
    return low >> shift | high << 1 << (63 - shift); /* in two steps, as a shift by 64 is none */
}

/*
 * The eight bytes at any byte offset, in one load where the machine has such: of a reader who looks
 * at a version afterwards, so that it does not matter whether they were loaded at one moment.
 */
static inline uint64_t words_eight(const shared_word *words, size_t offset)
{
#ifdef WORDS_ATOMIC_ONLY
    uint64_t low = word_load(words, offset / 8);
    return words_funnel(low, word_load(words, (offset + 7) / 8), offset % 8 * 8);
#else
    typedef struct __attribute__((packed, may_alias)) {
        uint64_t bytes;
    } eight;
    const eight *from = (const eight *)((const char *)words + offset);
#if defined(__x86_64__) && !defined(WORDS_SEEN)
    uint64_t bytes; /* volatile would keep the address from being a part of the load */
    __asm__("mov %1, %0" : "=r"(bytes) : "m"(*from));
    return bytes;
#else
    return ((const volatile eight *)from)->bytes;
#endif
#endif
}

/* Stores eight bytes at any byte offset, in one store where the machine has such. Under the lock of
 * all of them. */
static inline void words_eight_put(shared_word *words, size_t offset, uint64_t value)
{
#ifdef WORDS_ATOMIC_ONLY
    unsigned shift = offset % 8 * 8;
    shared_word *low = words + offset / 8;
    shared_word *high = words + (offset + 7) / 8;
    uint64_t rest = __atomic_load_n(low, __ATOMIC_RELAXED) & ~(UINT64_MAX << shift);
    __atomic_store_n(low, rest | value << shift, __ATOMIC_RELAXED);
    rest = __atomic_load_n(high, __ATOMIC_RELAXED) & ~(UINT64_MAX >> 1 >> (63 - shift));
    __atomic_store_n(high, rest | value >> 1 >> (63 - shift), __ATOMIC_RELAXED);
#else
    typedef struct __attribute__((packed, may_alias)) {
        uint64_t bytes;
    } eight;
    ((volatile eight *)((char *)words + offset))->bytes = value;
#endif
}

/*
 * Loads `bytes` (1 to 8) bytes at a byte offset; touches only the words they lie in. It has no
 * branch: a single word is loaded twice, and what is too much is masked.
 */
static inline uint64_t words_load(const shared_word *words, size_t offset, size_t bytes)
{
    uint64_t low = word_load(words, offset / 8);
    uint64_t high = word_load(words, (offset + bytes - 1) / 8);
    return words_funnel(low, high, offset % 8 * 8) & words_low_mask(bytes);
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
    const uint64_t *last = local + (bytes - 1) / 8;
    size_t at = offset / 8;
    unsigned shift = offset % 8 * 8;
    uint64_t low = word_load(words, at);
    while (local < last) {
        uint64_t high = word_load(words, ++at);
        *local++ = words_funnel(low, high, shift);
        low = high;
    }
    uint64_t high = word_load(words, (offset + bytes - 1) / 8);
    *local = words_funnel(low, high, shift) & words_low_mask((bytes - 1) % 8 + 1);
}

/* Copies words back, each word written once. Under the lock. */
static inline void words_copy_in(shared_word *words, size_t offset, size_t bytes,
                                 const uint64_t *local)
{
    const uint64_t *end = local + (bytes + 7) / 8;
    shared_word *word = words + offset / 8;
    unsigned shift = offset % 8 * 8;
    size_t bits = shift + 8 * bytes; /* from the first of *word on; what is carried goes there */
    uint64_t carried = __atomic_load_n(word, __ATOMIC_RELAXED) & ~(UINT64_MAX << shift);
    for (; bits > 64; bits -= 64) {
        __atomic_store_n(word++, carried | *local << shift, __ATOMIC_RELAXED);
        carried = *local++ >> 1 >> (63 - shift);
    }
    uint64_t mask = UINT64_MAX >> (64 - bits);
    uint64_t value = local < end ? carried | *local << shift : carried;
    uint64_t before = __atomic_load_n(word, __ATOMIC_RELAXED);
    __atomic_store_n(word, (before & ~mask) | (value & mask), __ATOMIC_RELAXED);
}

/* A field of bits: its first and its last one, and all ones of its width. A mask of 0: no field,
 * which loads as 0 and stores nothing. */
struct words_field {
    uint32_t first, last;
    uint64_t mask;
};

/* Loads a field of a record that begins at bit `at`, as words_load does. */
static inline uint64_t field_load(const shared_word *words, size_t at,
                                  const struct words_field *field)
{
    size_t first = at + field->first;
    uint64_t low = word_load(words, first / 64);
    uint64_t high = word_load(words, (at + field->last) / 64);
    return words_funnel(low, high, first % 64) & field->mask;
}

/*
 * A field as words_eight() reads it: which eight bytes of the record hold it. A mask of 0: no field
 * or one that no eight bytes hold, which loads as 0.
 */
struct words_near {
    uint64_t mask;
    uint32_t byte;
    uint32_t shift;
};

/* That of a field in a record of so many bytes; beyond them is read only where those are less than
 * eight. */
static inline struct words_near near_of(const struct words_field *field, unsigned record_bytes)
{
    unsigned last = record_bytes > 8 ? record_bytes - 8 : 0;
    unsigned byte = field->first / 8 < last ? field->first / 8 : last;
    bool is_held = field->last - 8 * byte < 64;
    return (struct words_near){is_held ? field->mask : 0, byte, field->first - 8 * byte};
}

/* Of a record that begins at byte `at`. */
static inline uint64_t near_load(const shared_word *words, size_t at, const struct words_near *near)
{
    return words_eight(words, at + near->byte) >> near->shift & near->mask;
}

/* Stores the low bits of value there. Under the lock of those eight bytes. */
static inline void near_store(shared_word *words, size_t at, const struct words_near *near,
                              uint64_t value)
{
    uint64_t rest = words_eight(words, at + near->byte) & ~(near->mask << near->shift);
    words_eight_put(words, at + near->byte, rest | (value & near->mask) << near->shift);
}

/* Stores the low bits of value there; a single word is stored twice. Under the lock of those words.
 */
static inline void field_store(shared_word *words, size_t at, const struct words_field *field,
                               uint64_t value)
{
    uint64_t mask = field->mask;
    shared_word *low = words + (at + field->first) / 64;
    shared_word *high = words + (at + field->last) / 64;
    unsigned shift = (at + field->first) % 64;
    value &= mask;
    uint64_t rest = __atomic_load_n(low, __ATOMIC_RELAXED) & ~(mask << shift);
    __atomic_store_n(low, rest | value << shift, __ATOMIC_RELAXED);
    rest = __atomic_load_n(high, __ATOMIC_RELAXED) & ~(mask >> 1 >> (63 - shift));
    __atomic_store_n(high, rest | value >> 1 >> (63 - shift), __ATOMIC_RELAXED);
}

/* A field of `bits` (1 to 64) bits in local words. */
static inline struct words_field field_of(unsigned offset, unsigned bits)
{
    return (struct words_field){offset, offset + bits - 1, UINT64_MAX >> (64 - bits)};
}

static inline uint64_t bits_get(const uint64_t *local, unsigned offset, unsigned bits)
{
    struct words_field field = field_of(offset, bits);
    return field_load(local, 0, &field);
}

static inline void bits_set(uint64_t *local, unsigned offset, unsigned bits, uint64_t value)
{
    struct words_field field = field_of(offset, bits);
    field_store(local, 0, &field, value);
}

#endif
