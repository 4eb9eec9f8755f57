/* journal_ring.c: records in memory and the room for them. */
#include "store/journal_ring.h"

#include <string.h>

#include "base/check.h"
#include "base/point.h"
#include "store/journal.h"
#include "store/journal_format.h"

#define PIECE_BYTES (64u << 10)
#define PIECE_SHARE 16 /* of a small ring */
#define TAKE_SHARE  4  /* of the room left, if less was asked for */

#define WORD_BYTES sizeof(shared_word)

_Static_assert(JOURNAL_BUFFER_BYTES_MIN >= 16 * JOURNAL_RECORD_MAX, "room beside the margin");

uint64_t journal_ring_margin(uint64_t bytes, uint64_t capacity)
{
    /* ends of segments within the ring, one each side, and the clean end */
    return (bytes / capacity + 3) * JOURNAL_RECORD_MAX;
}

bool journal_ring_init(struct journal_ring *ring, uint64_t bytes, uint64_t origin,
                       uint64_t capacity)
{
    CHECK((bytes & (bytes - 1)) == 0 && origin % JOURNAL_UNIT == 0);
    CHECK(capacity % JOURNAL_UNIT == 0 && capacity > JOURNAL_RECORD_MAX);
    ring->words = memory_region_create(bytes);
    if (!ring->words) {
        return false;
    }
    memory_populate(ring->words, bytes); /* no put shall wait for a page; advice only */
    ring->bytes = bytes;
    ring->origin = origin;
    ring->capacity = capacity;
    ring->margin = journal_ring_margin(bytes, capacity);
    ring->piece = bytes / PIECE_SHARE < PIECE_BYTES ? bytes / PIECE_SHARE : PIECE_BYTES;
    atomic_init(&ring->head, origin);
    atomic_init(&ring->promised, origin);
    atomic_init(&ring->limit, origin);
    atomic_init(&ring->window, origin);
    return true;
}

/* Sets the capacity of the first segment as if the origin were as far below; what is below 0 is
 * right modulo 2^64. */
void journal_ring_first(struct journal_ring *ring, uint64_t capacity)
{
    CHECK(capacity % JOURNAL_UNIT == 0 && capacity <= ring->capacity);
    ring->origin = journal_ring_head(ring) + capacity - ring->capacity;
    atomic_store_explicit(&ring->window, ring->origin, memory_order_relaxed);
}

void journal_ring_restart(struct journal_ring *ring)
{
    ring->origin = journal_ring_head(ring);
    atomic_store_explicit(&ring->window, ring->origin, memory_order_relaxed);
}

void journal_ring_fini(struct journal_ring *ring)
{
    memory_region_destroy(ring->words, ring->bytes);
    ring->words = NULL;
}

/* ---- room ---- */

uint64_t journal_ring_take(struct journal_ring *ring, uint64_t least)
{
    uint64_t promised = atomic_load_explicit(&ring->promised, memory_order_relaxed);
    for (;;) {
        uint64_t limit = atomic_load_explicit(&ring->limit, memory_order_acquire);
        uint64_t left = limit > promised ? limit - promised : 0;
        if (left < least) {
            return 0;
        }
        uint64_t more = left / TAKE_SHARE < ring->piece ? left / TAKE_SHARE : ring->piece;
        uint64_t taken = (more > least ? more : least) & ~(uint64_t)(JOURNAL_UNIT - 1);
        if (atomic_compare_exchange_weak_explicit(&ring->promised, &promised, promised + taken,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            return taken;
        }
    }
}

void journal_ring_give(struct journal_ring *ring, uint64_t bytes)
{
    if (bytes > 0) {
        atomic_fetch_sub(&ring->promised, bytes); /* seq_cst: journal_want_room */
    }
}

uint64_t journal_ring_left(struct journal_ring *ring)
{
    uint64_t promised = atomic_load(&ring->promised);
    uint64_t limit = atomic_load(&ring->limit);
    return limit > promised ? limit - promised : 0;
}

void journal_ring_limit(struct journal_ring *ring, uint64_t cleared, uint64_t allocated)
{
    uint64_t limit = cleared + ring->bytes;
    limit = limit < allocated ? limit : allocated;
    atomic_store(&ring->limit, limit - ring->margin); /* likewise */
}

/* ---- put ---- */

/* Bytes from lsn to the end of its segment, at least 8. */
static uint64_t left_in_segment(struct journal_ring *ring, uint64_t lsn)
{
    uint64_t inside = lsn - atomic_load_explicit(&ring->window, memory_order_relaxed);
    if (UNLIKELY(inside >= ring->capacity)) {
        inside = (lsn - ring->origin) % ring->capacity;
        atomic_store_explicit(&ring->window, lsn - inside, memory_order_relaxed);
    }
    return ring->capacity - inside;
}

uint64_t journal_ring_segment_end(struct journal_ring *ring, uint64_t lsn)
{
    return lsn + left_in_segment(ring, lsn);
}

/* The swap is also what makes visible to this thread that the place was cleared: a thread that had
 * room up to here saw the limit that said so. */
static uint64_t claim(struct journal_ring *ring, uint64_t bytes, uint64_t *pad)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    do {
        uint64_t left = left_in_segment(ring, head);
        *pad = bytes > left ? left : 0;
    } while (!atomic_compare_exchange_weak_explicit(&ring->head, &head, head + *pad + bytes,
                                                    memory_order_acq_rel, memory_order_relaxed));
    return head + *pad;
}

/* Bytes to be put next that are prefetched: the ring is larger than the caches, and was cleared by
 * another core. */
#define PREFETCHED_BYTES 512u

static uint64_t word_index(const struct journal_ring *ring, uint64_t lsn)
{
    return (lsn & (ring->bytes - 1)) / WORD_BYTES;
}

static __attribute__((noinline)) void copy_many(struct journal_ring *ring, uint64_t index,
                                                const uint64_t *from, uint64_t count)
{
    uint64_t straight = ring->bytes / WORD_BYTES - index;
    if (count <= straight) {
        memcpy(ring->words + index, from, count * WORD_BYTES);
        return;
    }
    memcpy(ring->words + index, from, straight * WORD_BYTES);
    memcpy(ring->words, from + straight, (count - straight) * WORD_BYTES);
}

/* word: the first, with its checksum. */
static inline __attribute__((always_inline)) void fill(struct journal_ring *ring, uint64_t lsn,
                                                       uint64_t word, const uint64_t *payload,
                                                       uint64_t count)
{
    shared_word *const words = ring->words; /* else it is loaded anew for each */
    const uint64_t mask = ring->bytes / WORD_BYTES - 1;
    const uint64_t at = lsn / WORD_BYTES;
    POINT("record unfilled");
    if (LIKELY(count == 2)) { /* one slot of an id: cheaper than a call */
        words[(at + 1) & mask] = payload[0];
        words[(at + 2) & mask] = payload[1];
    } else {
        copy_many(ring, (at + 1) & mask, payload, count);
    }
    shared_word *first = words + (at & mask);
    CHECK(__atomic_load_n(first, __ATOMIC_RELAXED) == 0); /* else room was given twice */
    __atomic_store_n(first, word, __ATOMIC_RELEASE);
    __builtin_prefetch(words + ((at + PREFETCHED_BYTES / WORD_BYTES) & mask), 1);
}

static __attribute__((cold, noinline)) void put_pad(struct journal_ring *ring, uint64_t lsn,
                                                    uint64_t bytes)
{
    static const uint64_t zeroes[JOURNAL_RECORD_MAX / WORD_BYTES];
    uint64_t units = bytes / JOURNAL_UNIT;
    uint64_t word = journal_record_word(0, JOURNAL_PAD, (uint8_t)units, 0, 0);
    CHECK(bytes <= sizeof(zeroes));
    atomic_fetch_add_explicit(&ring->promised, bytes, memory_order_relaxed);
    word |= journal_checksum(journal_hash(word, zeroes, units - 1), lsn);
    fill(ring, lsn, word, zeroes, units - 1);
}

/* The payload is hashed before there is an LSN, since everybody waits for what is done after the
 * swap. */
static inline __attribute__((always_inline)) uint64_t put(struct journal_ring *ring, uint8_t type,
                                                          uint8_t a, uint8_t b,
                                                          const uint64_t *payload, size_t words)
{
    uint64_t word = journal_record_word(0, type, (uint8_t)(words + 1), a, b);
    uint64_t hash = journal_hash(word, payload, words);
    uint64_t pad;
    uint64_t lsn = claim(ring, journal_ring_record_bytes(words), &pad);
    if (UNLIKELY(pad > 0)) {
        put_pad(ring, lsn - pad, pad);
    }
    fill(ring, lsn, word | journal_checksum(hash, lsn), payload, words);
    return lsn;
}

uint64_t journal_ring_put(struct journal_ring *ring, uint8_t type, uint8_t a, uint8_t b,
                          const uint64_t *payload, size_t words)
{
    return put(ring, type, a, b, payload, words);
}

uint64_t journal_ring_put_two(struct journal_ring *ring, uint8_t type, uint8_t a, uint8_t b,
                              uint64_t first, uint64_t second)
{
    const uint64_t payload[] = {first, second};
    return put(ring, type, a, b, payload, 2);
}

/* The first word comes last: until it is there a walk sees none of them. */
void journal_ring_append(struct journal_ring *ring, const uint64_t *records, size_t words)
{
    uint64_t lsn = journal_ring_head(ring);
    CHECK(words > 0 && words * WORD_BYTES <= left_in_segment(ring, lsn));
    atomic_store_explicit(&ring->head, lsn + words * WORD_BYTES, memory_order_release);
    fill(ring, lsn, records[0], records + 1, words - 1);
}

/* ---- writing out ---- */

void journal_ring_walk(const struct journal_ring *ring, struct journal_run *run, uint64_t until)
{
    /* Nothing at or above the head is looked at: it may be about to be cleared, or filled. */
    uint64_t head = journal_ring_head(ring);
    until = until < head ? until : head;
    struct journal_run at = *run; /* in registers: a sum through memory takes twice as long */
    uint64_t same = 0; /* most records are as long as the one before: the next load need not wait */
    while (at.end < until) {
        uint64_t word = __atomic_load_n(ring->words + word_index(ring, at.end), __ATOMIC_ACQUIRE);
        if (word == 0) {
            break;
        }
        uint64_t bytes = journal_word_bytes(word);
        if (LIKELY(bytes == same)) {
            __asm__("" : "+r"(same)); /* else the compiler sees that `bytes` would do */
            at.end += same;
        } else {
            at.end += same = bytes;
        }
        at.sum = journal_sum(at.sum, word);
        at.records += journal_word_type(word) >= JOURNAL_TYPES_RESERVED;
    }
    *run = at;
}

const void *journal_ring_at(const struct journal_ring *ring, uint64_t lsn, uint64_t *bytes)
{
    uint64_t offset = lsn & (ring->bytes - 1);
    uint64_t straight = ring->bytes - offset;
    *bytes = *bytes < straight ? *bytes : straight;
    return (const char *)ring->words + offset;
}

void journal_ring_clear(struct journal_ring *ring, uint64_t from, uint64_t until)
{
    CHECK(from <= until && until - from <= ring->bytes);
    while (from < until) {
        uint64_t bytes = until - from;
        uint64_t offset = from & (ring->bytes - 1);
        bytes = bytes < ring->bytes - offset ? bytes : ring->bytes - offset;
        memset((char *)ring->words + offset, 0, bytes);
        from += bytes;
    }
}
