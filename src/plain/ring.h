/*
 * ring.h: one part of a plain space: keys with values of any length in a ring of bytes.
 *
 * Items lie one after the other, whole, in the order they were stored; a hash table of 32-bit
 * offsets finds them. A new item goes to the head. When the head reaches the oldest item, that one
 * goes, or, if it may stay, is stored once more at the head:
 *   - it was read since it was stored (second chance: CLOCK, an approximate LRU), or
 *   - less than RING_LIVE_SHARE of the ring is live: then what is in the way is mostly what was
 *     overwritten or deleted, and nobody's value needs to go for it.
 * What one new item may have moved is bounded, so that storing costs a bounded time.
 *
 * Cost: 40 bytes an item and at most 7 for alignment beside key and value, and one word of the
 * table; no allocation, no fragmentation: memory is what ring_create took, whatever comes.
 *
 * An item is valid until the next ring_store or ring_clear. Not thread-safe: its owner has the
 * lock.
 */
#ifndef ROLLCALL_PLAIN_RING_H
#define ROLLCALL_PLAIN_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_UNIT       8 /* bytes: items begin and end at multiples of it */
#define RING_LIVE_SHARE 7 / 8
#define RING_NONE       UINT32_MAX
#define RING_KEY_MAX    255
#define RING_BYTES_MIN  4096
#define RING_BYTES_MAX  (16ull << 30) /* offsets are 32 bits of RING_UNIT */
#define RING_MOVED_MAX  (128u << 10)  /* bytes stored once more for one new item */

struct ring;

struct ring_item {
    uint32_t next;  /* the next item of its bucket, in units; RING_NONE: none */
    uint32_t hash;  /* 32 bits of the key's */
    uint32_t units; /* all of it */
    uint32_t value_length;
    uint64_t cas;
    uint32_t flags;
    uint32_t expires_s; /* of clock_monotonic_s(); 0: it does not expire */
    uint8_t key_length;
    uint8_t state;       /* enum ring_state */
    uint8_t referenced;  /* it was read since it was stored or moved */
    uint8_t marks;       /* its owner's */
    uint32_t accessed_s; /* the owner's: clock_monotonic_s() of the last read, or of storing */
    char bytes[];        /* key, value */
};

enum ring_state {
    RING_DEAD, /* deleted, replaced; also what fills the ring's end */
    RING_LIVE,
};

struct ring_key {
    const char *bytes;
    size_t length; /* 1 .. RING_KEY_MAX */
    uint64_t hash;
};

struct ring_stats {
    uint64_t items;      /* live */
    uint64_t live_bytes; /* of them, with what they cost */
    uint64_t bytes;      /* held */
    uint64_t evicted;    /* live ones that had to go */
    uint64_t moved;      /* items stored once more */
};

/* bytes: all it holds, the table included. NULL with errno: the system refuses. */
struct ring *ring_create(uint64_t bytes);
void ring_destroy(struct ring *ring); /* NULL: no-op */
void ring_clear(struct ring *ring);   /* forgets all; the figures of what went stay */
/* Makes its memory resident. Any thread, also while the ring is used. */
void ring_populate(struct ring *ring, const _Atomic bool *stop);

/* The live item of a key, or NULL. */
struct ring_item *ring_find(struct ring *ring, const struct ring_key *key);
/*
 * Stores a new item of a key in place of the one it may have: live, with key and value_length, all
 * else 0; the caller fills the value. NULL: the item is larger than the ring takes, and nothing
 * changed. The old item's bytes are not the caller's any more.
 */
struct ring_item *ring_store(struct ring *ring, const struct ring_key *key, size_t value_length,
                             uint64_t now_s);
void ring_remove(struct ring *ring, struct ring_item *item); /* a live one */

/* All that an item takes of the ring. */
static inline uint32_t ring_item_bytes(const struct ring_item *item)
{
    return item->units * RING_UNIT;
}

static inline char *ring_value(struct ring_item *item)
{
    return item->bytes + item->key_length;
}

/* Calls visit for each item of a bucket; it must not change the ring. Buckets: 0 to ring_buckets().
 */
typedef void ring_visit(void *context, const struct ring_item *item);
void ring_each(const struct ring *ring, uint32_t bucket, ring_visit *visit, void *context);
uint32_t ring_buckets(const struct ring *ring);

/* The largest value with a key of that length. */
size_t ring_value_max(const struct ring *ring, size_t key_length);
void ring_stats(const struct ring *ring, struct ring_stats *stats);
/* Walks all of it; ends the process at a broken invariant (ring.c). */
void ring_check(const struct ring *ring);

#endif
