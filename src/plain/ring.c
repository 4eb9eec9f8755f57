/*
 * Invariants (ring_check):
 * 1. From tail to head lie items whose units add up to `used`; one that fills the end is dead.
 * 2. Each live one is in the bucket of its hash once, and nothing else is in any bucket.
 * 3. live_units and items are those of the live ones.
 */
#include "plain/ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

#define HEADER_UNITS     (sizeof(struct ring_item) / RING_UNIT)
#define BYTES_A_BUCKET   128 /* of the ring: about one item of usual size */
#define LARGEST_SHARE    4   /* an item takes at most this part of the ring */
#define RING_BUCKETS_MIN 16

_Static_assert(sizeof(struct ring_item) % RING_UNIT == 0, "items are whole units");

struct ring {
    char *units;      /* a region of unit_count * RING_UNIT bytes */
    uint32_t *bucket; /* a region of bucket_count words */
    uint32_t unit_count;
    uint32_t bucket_count; /* a power of two */
    uint32_t head;         /* where the next item goes … */
    uint32_t tail;         /* … and the oldest lies */
    uint32_t used;         /* units from tail to head */
    uint32_t live_units;
    uint64_t items;
    uint64_t evicted;
    uint64_t moved;
};

static struct ring_item *at(const struct ring *ring, uint32_t unit)
{
    return (struct ring_item *)(void *)(ring->units + (size_t)unit * RING_UNIT);
}

static uint32_t unit_of(const struct ring *ring, const struct ring_item *item)
{
    return (uint32_t)(((const char *)item - ring->units) / RING_UNIT);
}

static uint32_t units_for(size_t key_length, size_t value_length)
{
    size_t bytes = sizeof(struct ring_item) + key_length + value_length;

    return (uint32_t)((bytes + RING_UNIT - 1) / RING_UNIT);
}

static uint32_t *ring_bucket_of(const struct ring *ring, uint32_t hash)
{
    return &ring->bucket[hash & (ring->bucket_count - 1)];
}

/* ---- life ---- */

static size_t ring_bucket_bytes(const struct ring *ring)
{
    return ring->bucket_count * sizeof(*ring->bucket);
}

static size_t unit_bytes(const struct ring *ring)
{
    return (size_t)ring->unit_count * RING_UNIT;
}

struct ring *ring_create(uint64_t bytes)
{
    CHECK(bytes >= RING_BYTES_MIN && bytes <= RING_BYTES_MAX);
    struct ring *ring = memory_zalloc(sizeof(*ring));

    ring->bucket_count = RING_BUCKETS_MIN;
    while ((uint64_t)ring->bucket_count * 2 * BYTES_A_BUCKET <= bytes) {
        ring->bucket_count *= 2;
    }
    ring->unit_count = (uint32_t)((bytes - ring_bucket_bytes(ring)) / RING_UNIT);
    ring->units = memory_region_create(unit_bytes(ring));
    ring->bucket = memory_region_create(ring_bucket_bytes(ring));
    if (ring->units == NULL || ring->bucket == NULL) {
        ring_destroy(ring);
        return NULL;
    }
    ring_clear(ring);
    return ring;
}

void ring_destroy(struct ring *ring)
{
    if (ring == NULL) {
        return;
    }
    memory_region_destroy(ring->units, unit_bytes(ring));
    memory_region_destroy(ring->bucket, ring_bucket_bytes(ring));
    free(ring);
}

void ring_clear(struct ring *ring)
{
    memset(ring->bucket, 0xff, ring_bucket_bytes(ring)); /* RING_NONE */
    ring->head = ring->tail = ring->used = ring->live_units = 0;
    ring->items = 0;
}

void ring_populate(struct ring *ring, const _Atomic bool *stop)
{
    memory_populate_until(ring->units, unit_bytes(ring), stop);
}

/* ---- the table ---- */

static void link_item(struct ring *ring, struct ring_item *item)
{
    uint32_t *bucket = ring_bucket_of(ring, item->hash);

    item->next = *bucket;
    *bucket = unit_of(ring, item);
    item->state = RING_LIVE;
    ring->items++;
    ring->live_units += item->units;
}

void ring_remove(struct ring *ring, struct ring_item *item)
{
    CHECK(item->state == RING_LIVE);
    uint32_t unit = unit_of(ring, item);
    uint32_t *link = ring_bucket_of(ring, item->hash);

    while (*link != unit) {
        CHECK(*link != RING_NONE);
        link = &at(ring, *link)->next;
    }
    *link = item->next;
    item->state = RING_DEAD;
    ring->items--;
    ring->live_units -= item->units;
}

struct ring_item *ring_find(struct ring *ring, const struct ring_key *key)
{
    uint32_t unit = *ring_bucket_of(ring, (uint32_t)key->hash);

    while (unit != RING_NONE) {
        struct ring_item *item = at(ring, unit);

        if (item->hash == (uint32_t)key->hash && item->key_length == key->length &&
            memcmp(item->bytes, key->bytes, key->length) == 0) {
            return item;
        }
        unit = item->next;
    }
    return NULL;
}

uint32_t ring_buckets(const struct ring *ring)
{
    return ring->bucket_count;
}

void ring_each(const struct ring *ring, uint32_t bucket, ring_visit *visit, void *context)
{
    CHECK(bucket < ring->bucket_count);
    for (uint32_t unit = ring->bucket[bucket]; unit != RING_NONE; unit = at(ring, unit)->next) {
        visit(context, at(ring, unit));
    }
}

/* ---- the ring ---- */

static uint32_t next_unit(const struct ring *ring, uint32_t unit, uint32_t units)
{
    unit += units;
    return unit == ring->unit_count ? 0 : unit;
}

/* Units at the head that are free and lie together. */
static uint32_t free_run(const struct ring *ring)
{
    if (ring->used == ring->unit_count) {
        return 0;
    }
    return ring->head >= ring->tail ? ring->unit_count - ring->head : ring->tail - ring->head;
}

/* Takes the units at the head, where the run is long enough. What is left before the end, if it is
 * too short for an item, is taken too. */
static struct ring_item *ring_take(struct ring *ring, uint32_t units)
{
    struct ring_item *item = at(ring, ring->head);
    uint32_t to_end = ring->unit_count - ring->head;

    CHECK(units <= free_run(ring));
    if (to_end - units < HEADER_UNITS) {
        units = to_end;
    }
    item->units = units;
    item->state = RING_DEAD;
    ring->head = next_unit(ring, ring->head, units);
    ring->used += units;
    return item;
}

/* Passes over the run before the end if it is too short. True: there is a run of `units` now. */
static bool make_run(struct ring *ring, uint32_t units)
{
    if (ring->used == 0) {
        ring->head = ring->tail = 0;
    }
    uint32_t run = free_run(ring);

    if (run < units && run > 0 && ring->head >= ring->tail) {
        (void)ring_take(ring, run);
        run = free_run(ring);
    }
    return run >= units;
}

static bool expired(const struct ring_item *item, uint64_t now_s)
{
    return item->expires_s != 0 && item->expires_s <= now_s;
}

static bool may_stay(const struct ring *ring, const struct ring_item *item)
{
    return item->referenced != 0 ||
           (uint64_t)ring->live_units < (uint64_t)ring->unit_count * RING_LIVE_SHARE;
}

/* The oldest, just freed, goes to the head: there is a run for it, if only where it lies. */
static void move_to_head(struct ring *ring, const struct ring_item *oldest)
{
    uint32_t units = units_for(oldest->key_length, oldest->value_length);
    bool fits = make_run(ring, units);

    CHECK(fits);
    uint32_t head = ring->head;

    /* ring_take() may write into the item, so the copy is made first. */
    memmove(at(ring, head), oldest, (size_t)units * RING_UNIT);
    struct ring_item *item = ring_take(ring, units);

    item->referenced = 0;
    link_item(ring, item);
    ring->moved++;
}

/* Frees the units of the oldest item. Returns the units stored once more; 0: it went. */
static uint32_t free_oldest(struct ring *ring, bool keep, uint64_t now_s)
{
    struct ring_item *oldest = at(ring, ring->tail);
    uint32_t units = oldest->units;
    bool live = oldest->state == RING_LIVE;
    bool stays = live && keep && !expired(oldest, now_s) && may_stay(ring, oldest);

    if (live) {
        ring->evicted += !stays && !expired(oldest, now_s);
        ring_remove(ring, oldest);
    }
    ring->tail = next_unit(ring, ring->tail, units);
    ring->used -= units;
    if (stays) {
        move_to_head(ring, oldest);
    }
    return stays ? units : 0;
}

/* ---- storing ---- */

static uint32_t units_max(const struct ring *ring)
{
    return ring->unit_count / LARGEST_SHARE;
}

size_t ring_value_max(const struct ring *ring, size_t key_length)
{
    return (size_t)units_max(ring) * RING_UNIT - sizeof(struct ring_item) - key_length;
}

static struct ring_item *ring_place(struct ring *ring, uint32_t units, uint64_t now_s)
{
    uint32_t most = RING_MOVED_MAX / RING_UNIT > units ? RING_MOVED_MAX / RING_UNIT : units;
    uint32_t moved = 0;

    while (!make_run(ring, units)) {
        moved += free_oldest(ring, moved < most, now_s);
    }
    return ring_take(ring, units);
}

struct ring_item *ring_store(struct ring *ring, const struct ring_key *key, size_t value_length,
                             uint64_t now_s)
{
    CHECK(key->length >= 1 && key->length <= RING_KEY_MAX);
    if (value_length > ring_value_max(ring, key->length)) {
        return NULL;
    }
    uint32_t units = units_for(key->length, value_length);
    struct ring_item *item = ring_find(ring, key);
    bool same = item != NULL && item->units == units;

    if (item != NULL) {
        ring_remove(ring, item);
    }
    if (!same) {
        item = ring_place(ring, units, now_s);
    }
    units = item->units;
    *item = (struct ring_item){.hash = (uint32_t)key->hash,
                               .units = units,
                               .value_length = (uint32_t)value_length,
                               .key_length = (uint8_t)key->length,
                               .referenced = same}; /* it lies where older ones do */
    memcpy(item->bytes, key->bytes, key->length);
    link_item(ring, item);
    return item;
}

/* ---- looking ---- */

void ring_stats(const struct ring *ring, struct ring_stats *stats)
{
    *stats = (struct ring_stats){.items = ring->items,
                                 .live_bytes = (uint64_t)ring->live_units * RING_UNIT,
                                 .bytes = unit_bytes(ring) + ring_bucket_bytes(ring),
                                 .evicted = ring->evicted,
                                 .moved = ring->moved};
}

/* How often the item is in its bucket. */
static unsigned times_linked(const struct ring *ring, uint32_t unit)
{
    unsigned times = 0;

    for (uint32_t i = *ring_bucket_of(ring, at(ring, unit)->hash); i != RING_NONE;
         i = at(ring, i)->next) {
        CHECK(i < ring->unit_count && at(ring, i)->state == RING_LIVE);
        times += i == unit;
    }
    return times;
}

void ring_check(const struct ring *ring)
{
    uint32_t unit = ring->tail;
    uint32_t live_units = 0;
    uint32_t used = 0;
    uint64_t items = 0;

    while (used < ring->used) {
        const struct ring_item *item = at(ring, unit);

        CHECK(item->units >= HEADER_UNITS && item->units <= ring->unit_count - unit);
        if (item->state == RING_LIVE) {
            CHECK(times_linked(ring, unit) == 1);
            CHECK(item->units >= units_for(item->key_length, item->value_length));
            live_units += item->units;
            items++;
        }
        used += item->units;
        unit = next_unit(ring, unit, item->units);
    }
    CHECK(used == ring->used && unit == ring->head);
    CHECK(items == ring->items && live_units == ring->live_units);
}
