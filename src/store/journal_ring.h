/*
 * journal_ring.h: the journal's records in memory, from put until they need not be kept, and the
 * room for more. Part of journal; used by journal*.c only.
 *
 * The byte with LSN x lies at x modulo the ring's size; a record may wrap at any unit of 8.
 *
 * A put takes its LSN with one compare-and-swap on `head`, and the rest of the segment with it, as
 * a pad, if its record would cross the segment's end: these ends are `origin` plus multiples of
 * `capacity`. It then fills the record and stores its first 8 bytes, never zero, last. What lies
 * after the last gapless record is zero, so the writing thread finds the stream's end by walking
 * from header to header (journal_ring_walk).
 *
 * Room: every byte of the stream that may be put is promised before. `promised` is the head plus
 * all credit that is out; it never passes `limit`, which is set from what was cleared and from what
 * is allocated on the disk. Pads are promised by nobody: the limit is lower by as much as they may
 * take, and by one record more, for the clean end (`margin`).
 *
 * Cost: a put of a one-slot record about 17 ns.
 * Thread rule: take, give, put, head by any thread; walk and limit under the journal's write lock;
 * clear by one thread for a range that is at or below what was walked.
 */
#ifndef ROLLCALL_STORE_JOURNAL_RING_H
#define ROLLCALL_STORE_JOURNAL_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/words.h"
#include "store/journal_format.h"

struct journal_ring {
    shared_word *words;
    uint64_t bytes; /* a power of two */
    uint64_t origin;
    uint64_t capacity; /* LSNs of a segment */
    uint64_t margin;
    uint64_t piece; /* of room that is taken at once, at most, if less is needed */
    _Alignas(MEMORY_LINE_BYTES) _Atomic uint64_t head;
    _Alignas(MEMORY_LINE_BYTES) _Atomic uint64_t promised;
    _Alignas(MEMORY_LINE_BYTES) _Atomic uint64_t limit;
    _Atomic uint64_t window; /* where a segment begins, the head's as a rule: saves a division */
};

/* Returns the margin of a ring of so many bytes over segments that hold `capacity` each. */
uint64_t journal_ring_margin(uint64_t bytes, uint64_t capacity);

/* Empty, at `origin`, without room. False with errno: no memory. */
bool journal_ring_init(struct journal_ring *ring, uint64_t bytes, uint64_t origin,
                       uint64_t capacity);
/* Nothing is put yet: the first segment ends so soon, the others after `capacity` each. */
void journal_ring_first(struct journal_ring *ring, uint64_t capacity);
/* The next segment begins at the head. Nobody puts meanwhile. */
void journal_ring_restart(struct journal_ring *ring);
void journal_ring_fini(struct journal_ring *ring);

/* Credit of at least `least` bytes, or 0. */
uint64_t journal_ring_take(struct journal_ring *ring, uint64_t least);
void journal_ring_give(struct journal_ring *ring, uint64_t bytes);

uint64_t journal_ring_left(struct journal_ring *ring); /* what could be taken now */

/* Appends a record with a payload of this many words, for which there is credit. Returns its LSN.
 */
uint64_t journal_ring_put(struct journal_ring *ring, uint8_t type, uint8_t a, uint8_t b,
                          const uint64_t *payload, size_t words);
/* The same of two words, as one slot of an id is: nearly all records. */
uint64_t journal_ring_put_two(struct journal_ring *ring, uint8_t type, uint8_t a, uint8_t b,
                              uint64_t first, uint64_t second);
/* Appends this many words of whole records as they are, for which there is credit. They end at or
 * below the segment's end. Nobody else puts. */
void journal_ring_append(struct journal_ring *ring, const uint64_t *records, size_t words);
/* Returns the bytes of the stream that a record takes with a payload of this many words. */
static inline uint64_t journal_ring_record_bytes(size_t words)
{
    return (words + 1) * JOURNAL_UNIT;
}

static inline uint64_t journal_ring_head(const struct journal_ring *ring)
{
    return atomic_load_explicit(&ring->head, memory_order_acquire);
}

/* LSN where the segment ends that holds the byte at lsn. */
uint64_t journal_ring_segment_end(struct journal_ring *ring, uint64_t lsn);

/* How far a walk over the stream has come. */
struct journal_run {
    uint64_t end;
    uint64_t sum;     /* the running sum of the segment it is in */
    uint64_t records; /* walked over, pads and the like not counted */
};
/* Goes on over records that are filled, as far as they begin below `until`. */
void journal_ring_walk(const struct journal_ring *ring, struct journal_run *run, uint64_t until);

/* The bytes from lsn on: *bytes is what there is in one piece, at most what it was. */
const void *journal_ring_at(const struct journal_ring *ring, uint64_t lsn, uint64_t *bytes);

/* Zeroes what is not needed any more; only then may the limit rise by it. */
void journal_ring_clear(struct journal_ring *ring, uint64_t from, uint64_t until);
/* Cleared up to `cleared`, allocated on the disk up to `allocated`. */
void journal_ring_limit(struct journal_ring *ring, uint64_t cleared, uint64_t allocated);

#endif
