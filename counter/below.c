/* below.c: buckets of records below the oldest table. */
#include "counter/below.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/verlock.h"

#define WAYS     COUNTER_BELOW_WAYS
#define STRIPES  16u /* of figures, so that workers seldom write to one line */
#define WAY_BITS 4u  /* of a way + 1 in an order */
#define WAY_MASK ((1u << WAY_BITS) - 1)

/* All zero: it is empty. */
struct head {
    verlock lock;
    uint32_t order;      /* the ways in use as way + 1, the one used last in the lowest bits */
    uint64_t keys[WAYS]; /* id + 1; 0: free */
};

_Static_assert(sizeof(struct head) == MEMORY_LINE_BYTES, "a head is one line");
_Static_assert(WAYS <= WAY_MASK && WAYS * WAY_BITS <= 32, "an order has room for all ways");

struct record {
    uint64_t set; /* bit a slot; never 0 while it is used */
    uint64_t value[];
};

struct stripe {
    _Alignas(MEMORY_LINE_BYTES) _Atomic uint64_t records;
    _Atomic uint64_t hits, evicted;
};

struct counter_below {
    unsigned slots;
    uint64_t bytes;  /* with this struct */
    uint64_t secret; /* nobody can aim at one bucket */
    uint64_t buckets;
    uint64_t record_bytes;
    void *region; /* heads, then records */
    struct head *heads;
    unsigned char *records;
    struct stripe stripes[STRIPES];
};

static uint64_t region_bytes(const struct counter_below *below)
{
    return below->bytes - sizeof(*below);
}

static uint64_t bucket_bytes(const struct counter_below *below)
{
    return sizeof(struct head) + WAYS * below->record_bytes;
}

static void lay_out(struct counter_below *below, unsigned slots)
{
    CHECK(slots >= 1 && slots <= ENGINE_SLOTS_MAX);
    below->slots = slots;
    below->record_bytes = sizeof(struct record) + slots * sizeof(uint64_t);
    below->buckets = region_bytes(below) / bucket_bytes(below);
    below->heads = below->region;
    below->records = (unsigned char *)(below->heads + below->buckets);
    CHECK(below->buckets > 0);
}

struct counter_below *counter_below_create(uint64_t bytes, unsigned slots)
{
    CHECK(bytes >= COUNTER_BELOW_BYTES_MIN);
    struct counter_below *below = aligned_alloc(MEMORY_LINE_BYTES, sizeof(*below));
    if (!below) {
        return NULL;
    }
    memset(below, 0, sizeof(*below));
    below->bytes = bytes;
    below->secret = clock_random();
    below->region = memory_region_create(region_bytes(below));
    if (!below->region) {
        free(below);
        return NULL;
    }
    lay_out(below, slots);
    return below;
}

void counter_below_destroy(struct counter_below *below)
{
    if (!below) {
        return;
    }
    memory_region_destroy(below->region, region_bytes(below));
    free(below);
}

void counter_below_reset(struct counter_below *below, unsigned slots)
{
    memory_region_clear(below->region, region_bytes(below));
    for (unsigned i = 0; i < STRIPES; i++) {
        atomic_store(&below->stripes[i].records, 0);
    }
    lay_out(below, slots);
}

/* ---- where an id is ---- */

static uint64_t bucket_of(const struct counter_below *below, uint64_t id)
{
    uint64_t hash = hash_u64(id ^ below->secret);
    return (uint64_t)((unsigned __int128)hash * below->buckets >> 64);
}

static struct record *record_at(const struct counter_below *below, uint64_t bucket, unsigned way)
{
    return (struct record *)(void *)(below->records + (bucket * WAYS + way) * below->record_bytes);
}

static struct stripe *below_stripe(struct counter_below *below, uint64_t bucket)
{
    return &below->stripes[bucket % STRIPES];
}

/* Returns the way of the id, or a free one with key 0. WAYS: there is none. */
static unsigned find_way(const struct head *head, uint64_t key)
{
    unsigned way = 0;
    while (way < WAYS && head->keys[way] != key) {
        way++;
    }
    return way;
}

static uint64_t key_of(uint64_t id)
{
    CHECK(id < UINT64_MAX);
    return id + 1;
}

/* ---- the order of use, under the lock ---- */

static uint32_t order_without(uint32_t order, unsigned way)
{
    unsigned at = 0;
    while ((order >> at & WAY_MASK) != way + 1) {
        at += WAY_BITS;
        CHECK(at < WAYS * WAY_BITS);
    }
    uint32_t newer = order & ((1u << at) - 1);
    uint32_t older = order >> at >> WAY_BITS;
    return newer | older << at;
}

static void order_add(struct head *head, unsigned way)
{
    head->order = head->order << WAY_BITS | (way + 1);
}

static void used_now(struct head *head, unsigned way)
{
    head->order = order_without(head->order, way);
    order_add(head, way);
}

static unsigned used_longest_ago(const struct head *head)
{
    CHECK(head->order != 0);
    unsigned highest = 31u - (unsigned)__builtin_clz(head->order);
    return (head->order >> highest / WAY_BITS * WAY_BITS) - 1;
}

/* ---- reading ---- */

void counter_below_prefetch(const struct counter_below *below, uint64_t id)
{
    __builtin_prefetch(&below->heads[bucket_of(below, id)], 1);
}

static void record_load(const struct counter_below *below, const struct record *record,
                        struct counter_values *values)
{
    values->set = (uint32_t)record->set;
    memcpy(values->value, record->value, below->slots * sizeof(*values->value));
}

bool counter_below_look(struct counter_below *below, uint64_t id, struct counter_values *values)
{
    uint64_t bucket = bucket_of(below, id);
    struct head *head = &below->heads[bucket];
    uint32_t word = verlock_take(&head->lock);
    unsigned way = find_way(head, key_of(id));
    bool found = way < WAYS;
    if (found) {
        record_load(below, record_at(below, bucket, way), values);
        used_now(head, way);
    }
    verlock_release(&head->lock, word);
    if (found) {
        atomic_fetch_add_explicit(&below_stripe(below, bucket)->hits, 1, memory_order_relaxed);
    }
    return found;
}

/* ---- changing, under the lock ---- */

static void drop(struct counter_below *below, uint64_t bucket, unsigned way)
{
    struct head *head = &below->heads[bucket];
    head->order = order_without(head->order, way);
    head->keys[way] = 0;
    atomic_fetch_sub_explicit(&below_stripe(below, bucket)->records, 1, memory_order_relaxed);
}

static unsigned place(struct counter_below *below, uint64_t bucket, uint64_t id)
{
    struct head *head = &below->heads[bucket];
    struct stripe *stripe = below_stripe(below, bucket);
    unsigned way = find_way(head, 0);
    if (way == WAYS) {
        way = used_longest_ago(head);
        drop(below, bucket, way);
        atomic_fetch_add_explicit(&stripe->evicted, 1, memory_order_relaxed);
    }
    head->keys[way] = key_of(id);
    order_add(head, way);
    atomic_fetch_add_explicit(&stripe->records, 1, memory_order_relaxed);
    return way;
}

/* way WAYS: it is not there yet. A record whose last slot is unset is gone. */
static void below_store(struct counter_below *below, uint64_t bucket, unsigned way, uint64_t id,
                        const struct counter_values *after)
{
    if (after->set == 0) {
        if (way < WAYS) {
            drop(below, bucket, way);
        }
        return;
    }
    if (way == WAYS) {
        way = place(below, bucket, id);
    }
    struct record *record = record_at(below, bucket, way);
    record->set = after->set;
    memcpy(record->value, after->value, below->slots * sizeof(*record->value));
}

enum engine_status counter_below_edit(struct counter_below *below, uint64_t id,
                                      struct counter_edit *edit)
{
    uint64_t bucket = bucket_of(below, id);
    struct head *head = &below->heads[bucket];
    struct counter_values before = {0};
    uint32_t word = verlock_take(&head->lock);
    unsigned way = find_way(head, key_of(id));
    if (way < WAYS) {
        record_load(below, record_at(below, bucket, way), &before);
        used_now(head, way);
    }
    edit->after = before;
    enum engine_status status = edit->decide(edit, way < WAYS, &before, &edit->after);
    if (status == ENGINE_DONE) {
        below_store(below, bucket, way, id, &edit->after);
    }
    verlock_release(&head->lock, word);
    return status;
}

/* ---- figures and checks ---- */

void counter_below_stats(const struct counter_below *below, struct counter_below_stats *stats)
{
    *stats = (struct counter_below_stats){.held_bytes = below->bytes};
    for (unsigned i = 0; i < STRIPES; i++) {
        const struct stripe *stripe = &below->stripes[i];
        stats->records += atomic_load_explicit(&stripe->records, memory_order_relaxed);
        stats->hits += atomic_load_explicit(&stripe->hits, memory_order_relaxed);
        stats->evicted += atomic_load_explicit(&stripe->evicted, memory_order_relaxed);
    }
    stats->used_bytes = stats->records * bucket_bytes(below) / WAYS;
}

static void check_order(const struct head *head)
{
    uint32_t named = 0;
    for (uint32_t order = head->order; order; order >>= WAY_BITS) {
        unsigned way = (order & WAY_MASK) - 1;
        CHECK(way < WAYS && !(named >> way & 1) && head->keys[way] != 0);
        named |= 1u << way;
    }
    for (unsigned way = 0; way < WAYS; way++) {
        CHECK((head->keys[way] != 0) == (named >> way & 1));
    }
}

static uint64_t check_bucket(const struct counter_below *below, uint64_t bucket, uint64_t end)
{
    const struct head *head = &below->heads[bucket];
    uint64_t records = 0;
    CHECK(!(head->lock & VERLOCK_LOCKED));
    check_order(head);
    for (unsigned way = 0; way < WAYS; way++) {
        if (head->keys[way] == 0) {
            continue;
        }
        const struct record *record = record_at(below, bucket, way);
        uint64_t id = head->keys[way] - 1;
        CHECK(id < end && bucket_of(below, id) == bucket);
        CHECK(find_way(head, head->keys[way]) == way);
        CHECK(record->set != 0 && record->set >> below->slots == 0);
        records++;
    }
    return records;
}

void counter_below_check(const struct counter_below *below, uint64_t end)
{
    struct counter_below_stats stats;
    uint64_t records = 0;
    for (uint64_t bucket = 0; bucket < below->buckets; bucket++) {
        records += check_bucket(below, bucket, end);
    }
    counter_below_stats(below, &stats);
    CHECK(records == stats.records);
}

void counter_below_each(const struct counter_below *below,
                        void (*visit)(const void *context, uint64_t id), const void *context)
{
    for (uint64_t bucket = 0; bucket < below->buckets; bucket++) {
        for (unsigned way = 0; way < WAYS; way++) {
            uint64_t key = below->heads[bucket].keys[way];
            if (key != 0) {
                visit(context, key - 1);
            }
        }
    }
}
