#include "base/dict.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/verlock.h"
#include "base/words.h"

#define DICT_MAGIC       0x64696374u /* "dict" */
#define BUCKET_PLACES    3           /* at least: fewer fill unevenly */
#define BUCKET_BYTES_MAX 256

/* The fields of a bucket's lock word: lock 1 bit, spare 1, count 6, version 24. */
#define COUNT_SHIFT 2
#define COUNT_MASK  0x3fu
#define COUNT_ONE   (1u << COUNT_SHIFT)
#define VERSION_ONE (1u << 8)

_Static_assert(DICT_POOL_MIN >= BUCKET_BYTES_MAX << DICT_LEVELS, "the first level has a bucket");

struct dict {
    uint32_t magic;
    uint32_t entry_bytes; /* key and value */
    uint32_t value_bytes;
    uint32_t bucket_bytes;
    uint32_t places;        /* entries of a bucket */
    uint64_t first_buckets; /* of level 0, a power of two; level k has 2^k times as many */
    uint64_t seed;
    size_t pool_bytes;
    unsigned char *pool;
    _Alignas(MEMORY_LINE_BYTES) _Atomic unsigned levels; /* in use, 1 .. DICT_LEVELS */
    _Atomic uint64_t count;
};

/* Where a key stands or could stand: a bucket, the word of its lock as it was read, a place. */
struct spot {
    shared_word *bucket;
    uint32_t word;
    uint32_t place;
};

static uint32_t word_count(uint32_t word)
{
    return word >> COUNT_SHIFT & COUNT_MASK;
}

static verlock *bucket_lock(const struct dict *dict, shared_word *bucket)
{
    return (verlock *)bucket + dict->bucket_bytes / sizeof(verlock) - 1;
}

static uint64_t key_hash(const struct dict *dict, uint64_t id, uint8_t sub)
{
    return hash_u64(id ^ dict->seed ^ (uint64_t)sub << 56);
}

static uint64_t level_buckets(const struct dict *dict, unsigned level)
{
    return dict->first_buckets << level;
}

/*
 * Returns the first or second bucket of a key in a level; the levels lie one after another in the
 * pool. Each level uses other bits of the hash, or a key whose buckets are full in one level would
 * find them full in all. The two buckets differ, unless the level has only one.
 */
static shared_word *key_bucket(const struct dict *dict, uint64_t hash, unsigned level,
                               unsigned which)
{
    uint64_t buckets = level_buckets(dict, level);
    uint64_t bits = level == 0 ? hash : hash_u64(hash + level);
    uint64_t in_level = (which ? bits ^ (bits >> 32 | 1) : bits) & (buckets - 1);
    uint64_t index = buckets - dict->first_buckets + in_level;
    return (shared_word *)(void *)(dict->pool + index * dict->bucket_bytes);
}

static bool entry_is(const struct dict *dict, const shared_word *bucket, uint32_t place,
                     uint64_t id, uint8_t sub)
{
    size_t at = (size_t)place * dict->entry_bytes;
    return words_load(bucket, at, 8) == id && words_load(bucket, at + 8, 1) == sub;
}

/* Returns the place of a key among the first `count` of a bucket, or `count`. */
static uint32_t bucket_match(const struct dict *dict, const shared_word *bucket, uint32_t count,
                             uint64_t id, uint8_t sub)
{
    uint32_t place = 0;
    while (place < count && !entry_is(dict, bucket, place, id, sub)) {
        place++;
    }
    return place;
}

/* Looks in one bucket, copying the value if value is not NULL. */
static bool bucket_get(const struct dict *dict, shared_word *bucket, uint64_t id, uint8_t sub,
                       uint64_t *value)
{
    const verlock *lock = bucket_lock(dict, bucket);
    for (;;) {
        uint32_t word = verlock_read(lock);
        uint32_t count = word_count(word);
        uint32_t place = bucket_match(dict, bucket, count, id, sub);
        if (place < count && value) {
            words_copy_out(bucket, (size_t)place * dict->entry_bytes + DICT_KEY_BYTES,
                           dict->value_bytes, value);
        }
        if (verlock_unchanged(lock, word)) {
            return place < count;
        }
    }
}

bool dict_get(const struct dict *dict, uint64_t id, uint8_t sub, uint64_t *value)
{
    CHECK(dict->magic == DICT_MAGIC);
    uint64_t hash = key_hash(dict, id, sub);
    for (unsigned level = atomic_load(&dict->levels); level-- > 0;) {
        if (bucket_get(dict, key_bucket(dict, hash, level, 0), id, sub, value) ||
            bucket_get(dict, key_bucket(dict, hash, level, 1), id, sub, value)) {
            return true;
        }
    }
    return false;
}

/* Finds a key that only the caller changes and takes the lock of its bucket. */
static bool lock_entry(const struct dict *dict, uint64_t id, uint8_t sub, struct spot *spot)
{
    uint64_t hash = key_hash(dict, id, sub);
    unsigned buckets = 2 * atomic_load(&dict->levels);
    for (unsigned i = 0; i < buckets; i++) {
        shared_word *bucket = key_bucket(dict, hash, i / 2, i % 2);
        if (!bucket_get(dict, bucket, id, sub, NULL)) {
            continue;
        }
        /* Others may move it inside its bucket, but not away. */
        uint32_t word = verlock_take(bucket_lock(dict, bucket));
        uint32_t place = bucket_match(dict, bucket, word_count(word), id, sub);
        CHECK(place < word_count(word));
        *spot = (struct spot){bucket, word, place};
        return true;
    }
    return false;
}

/*
 * Takes the lock of the emptiest bucket a key may lie in. False: all are full, or, while there are
 * further levels, about to be: a level that comes into use before the others are full keeps several
 * choices for the keys to come, and the dict is 85 % full when it refuses its first one, not 60 %.
 * Looking at all levels costs nothing, since the key was looked for in all of them.
 */
static bool lock_emptiest(const struct dict *dict, uint64_t hash, unsigned levels,
                          struct spot *spot)
{
    uint32_t places = dict->places - (levels < DICT_LEVELS ? 1 : 0);
    for (;;) {
        uint32_t least = places;
        for (unsigned i = 2 * levels; i-- > 0;) {
            shared_word *bucket = key_bucket(dict, hash, i / 2, i % 2);
            uint32_t count = word_count(verlock_read(bucket_lock(dict, bucket)));
            if (count < least) {
                spot->bucket = bucket;
                least = count;
            }
        }
        if (least == places) {
            return false;
        }
        spot->word = verlock_take(bucket_lock(dict, spot->bucket));
        spot->place = word_count(spot->word);
        if (spot->place < dict->places) {
            return true;
        }
        verlock_release(bucket_lock(dict, spot->bucket), spot->word); /* others filled it */
    }
}

/* Returns a free place in any level; a further level comes into use when places get scarce. */
static bool lock_any_place(struct dict *dict, uint64_t hash, struct spot *spot)
{
    unsigned levels = atomic_load(&dict->levels);
    while (!lock_emptiest(dict, hash, levels, spot)) {
        if (levels == DICT_LEVELS) {
            return false;
        }
        unsigned expected = levels++;
        atomic_compare_exchange_strong(&dict->levels, &expected, levels);
    }
    return true;
}

bool dict_put(struct dict *dict, uint64_t id, uint8_t sub, const uint64_t *value)
{
    CHECK(dict->magic == DICT_MAGIC);
    struct spot spot;
    uint32_t added = 0;
    if (!lock_entry(dict, id, sub, &spot)) {
        if (!lock_any_place(dict, key_hash(dict, id, sub), &spot)) {
            return false;
        }
        size_t at = (size_t)spot.place * dict->entry_bytes;
        words_store(spot.bucket, at, 8, id);
        words_store(spot.bucket, at + 8, 1, sub);
        added = COUNT_ONE;
        atomic_fetch_add_explicit(&dict->count, 1, memory_order_relaxed);
    }
    words_copy_in(spot.bucket, (size_t)spot.place * dict->entry_bytes + DICT_KEY_BYTES,
                  dict->value_bytes, value);
    verlock_release(bucket_lock(dict, spot.bucket), spot.word + added + VERSION_ONE);
    return true;
}

bool dict_delete(struct dict *dict, uint64_t id, uint8_t sub)
{
    CHECK(dict->magic == DICT_MAGIC);
    struct spot spot;
    if (!lock_entry(dict, id, sub, &spot)) {
        return false;
    }
    uint32_t last = word_count(spot.word) - 1;
    if (spot.place != last) {
        uint64_t entry[(DICT_KEY_BYTES + DICT_VALUE_MAX + 7) / 8];
        words_copy_out(spot.bucket, (size_t)last * dict->entry_bytes, dict->entry_bytes, entry);
        words_copy_in(spot.bucket, (size_t)spot.place * dict->entry_bytes, dict->entry_bytes,
                      entry);
    }
    atomic_fetch_sub_explicit(&dict->count, 1, memory_order_relaxed);
    verlock_release(bucket_lock(dict, spot.bucket), spot.word - COUNT_ONE + VERSION_ONE);
    return true;
}

static uint64_t power_of_two_at_most(uint64_t n)
{
    return 1ull << (63 - __builtin_clzll(n));
}

struct dict *dict_create(size_t value_bytes, size_t pool_bytes, uint64_t seed)
{
    CHECK(value_bytes >= 1 && value_bytes <= DICT_VALUE_MAX && pool_bytes >= DICT_POOL_MIN);
    struct dict *dict = NULL;
    if (posix_memalign((void **)&dict, MEMORY_LINE_BYTES, sizeof(*dict)) != 0) {
        errno = ENOMEM;
        return NULL;
    }
    *dict = (struct dict){.magic = DICT_MAGIC, .value_bytes = (uint32_t)value_bytes, .seed = seed};
    dict->entry_bytes = (uint32_t)(DICT_KEY_BYTES + value_bytes);
    dict->bucket_bytes = MEMORY_LINE_BYTES;
    while ((dict->bucket_bytes - sizeof(verlock)) / dict->entry_bytes < BUCKET_PLACES) {
        dict->bucket_bytes *= 2;
    }
    CHECK(dict->bucket_bytes <= BUCKET_BYTES_MAX);
    dict->places = (uint32_t)((dict->bucket_bytes - sizeof(verlock)) / dict->entry_bytes);
    /* 1 + 2 + 4 + 8 = 15 sixteenths of the pool. */
    dict->first_buckets =
        power_of_two_at_most(pool_bytes / dict->bucket_bytes / (1u << DICT_LEVELS));
    dict->pool_bytes =
        (level_buckets(dict, DICT_LEVELS) - dict->first_buckets) * dict->bucket_bytes;
    dict->pool = memory_region_create(dict->pool_bytes);
    if (!dict->pool) {
        free(dict);
        return NULL;
    }
    atomic_init(&dict->levels, 1);
    return dict;
}

void dict_destroy(struct dict *dict)
{
    if (!dict) {
        return;
    }
    CHECK(dict->magic == DICT_MAGIC);
    memory_region_destroy(dict->pool, dict->pool_bytes);
    dict->magic = 0;
    free(dict);
}

uint64_t dict_count(const struct dict *dict)
{
    return atomic_load_explicit(&dict->count, memory_order_relaxed);
}

uint64_t dict_entry_bytes(const struct dict *dict)
{
    return dict->entry_bytes;
}

uint64_t dict_used_bytes(const struct dict *dict)
{
    unsigned levels = atomic_load(&dict->levels);
    return (level_buckets(dict, levels) - dict->first_buckets) * dict->bucket_bytes;
}

uint64_t dict_pool_bytes(const struct dict *dict)
{
    return dict->pool_bytes;
}

uint64_t dict_places(const struct dict *dict)
{
    return dict->pool_bytes / dict->bucket_bytes * dict->places;
}

bool dict_populate(const struct dict *dict, uint64_t entries, uint64_t *at, size_t bytes)
{
    uint64_t buckets = 0; /* a level may come into use when those before are half full */
    for (unsigned level = 0; level < DICT_LEVELS && buckets * dict->places < 2 * entries; level++) {
        buckets += level_buckets(dict, level);
    }
    uint64_t end = buckets * dict->bucket_bytes;
    if (*at < end) {
        (void)memory_populate(dict->pool + *at, end - *at < bytes ? end - *at : bytes);
        *at += bytes;
    }
    return *at < end;
}

/* Copies the entries of a bucket as of one moment; returns how many there are. */
static uint32_t bucket_copy(const struct dict *dict, shared_word *bucket, uint64_t *local)
{
    const verlock *lock = bucket_lock(dict, bucket);
    for (;;) {
        uint32_t word = verlock_read(lock);
        uint32_t count = word_count(word);
        if (count > 0) {
            words_copy_out(bucket, 0, (size_t)count * dict->entry_bytes, local);
        }
        if (verlock_unchanged(lock, word)) {
            return count;
        }
    }
}

static uint32_t bucket_walk(const struct dict *dict, uint64_t index, dict_visit *visit,
                            void *context)
{
    uint64_t local[BUCKET_BYTES_MAX / sizeof(uint64_t)];
    uint32_t count =
        bucket_copy(dict, (shared_word *)(void *)(dict->pool + index * dict->bucket_bytes), local);
    for (uint32_t place = 0; place < count; place++) {
        const unsigned char *entry = (unsigned char *)local + (size_t)place * dict->entry_bytes;
        uint64_t value[DICT_VALUE_WORDS] = {0};
        uint64_t id;
        memcpy(&id, entry, sizeof(id));
        memcpy(value, entry + DICT_KEY_BYTES, dict->value_bytes);
        visit(context, id, entry[sizeof(id)], value);
    }
    return count;
}

bool dict_walk(const struct dict *dict, uint64_t *at, size_t entries, dict_visit *visit,
               void *context)
{
    CHECK(dict->magic == DICT_MAGIC);
    /* An entry that was there from the beginning lies in a level that was in use then, and does not
     * move. */
    uint64_t buckets = level_buckets(dict, atomic_load(&dict->levels)) - dict->first_buckets;
    size_t done = 0;
    while (*at < buckets && (done == 0 || done + dict->places <= entries)) {
        uint32_t count = bucket_walk(dict, (*at)++, visit, context);
        done += count > 0 ? count : 1; /* an empty one takes its time too */
    }
    return *at < buckets;
}

void dict_each(const struct dict *dict, dict_visit *visit, void *context)
{
    uint64_t at = 0;
    (void)dict_walk(dict, &at, SIZE_MAX, visit, context);
}

struct copying {
    struct dict *to;
    bool fits;
};

static void put_again(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct copying *copying = context;
    copying->fits = copying->fits && dict_put(copying->to, id, sub, value);
}

bool dict_resize(struct dict **dict, size_t pool_bytes)
{
    struct dict *from = *dict;
    struct copying copying = {
        .to = dict_create(from->value_bytes, pool_bytes, hash_u64(from->seed + 1)), .fits = true};
    if (!copying.to) {
        return false;
    }
    dict_each(from, put_again, &copying);
    if (!copying.fits) {
        dict_destroy(copying.to);
        errno = ENOSPC;
        return false;
    }
    dict_destroy(from);
    *dict = copying.to;
    return true;
}

bool dict_grow(struct dict **dict)
{
    /* The levels take 15/16 of a power of two: three times that are rounded down to twice. */
    size_t bytes = 3 * (*dict)->pool_bytes;
    while (!dict_resize(dict, bytes)) {
        if (errno != ENOSPC) {
            return false;
        }
        bytes *= 2;
    }
    return true;
}

/* Returns how often a key stands in all its buckets, each bucket counted once. */
static unsigned times_held(const struct dict *dict, uint64_t id, uint8_t sub)
{
    uint64_t hash = key_hash(dict, id, sub);
    unsigned times = 0;
    for (unsigned level = 0; level < atomic_load(&dict->levels); level++) {
        for (unsigned which = 0; which < 2; which++) {
            shared_word *bucket = key_bucket(dict, hash, level, which);
            if (which == 1 && bucket == key_bucket(dict, hash, level, 0)) {
                continue;
            }
            uint32_t count = word_count(verlock_read(bucket_lock(dict, bucket)));
            for (uint32_t place = 0; place < count; place++) {
                times += entry_is(dict, bucket, place, id, sub);
            }
        }
    }
    return times;
}

struct check_sum {
    const struct dict *dict;
    uint64_t entries;
};

static void dict_check_entry(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    (void)value;
    struct check_sum *sum = context;
    CHECK(times_held(sum->dict, id, sub) == 1); /* D3, D4 */
    sum->entries++;
}

void dict_check(const struct dict *dict)
{
    CHECK(dict->magic == DICT_MAGIC);
    uint64_t buckets = level_buckets(dict, DICT_LEVELS) - dict->first_buckets;
    for (uint64_t i = 0; i < buckets; i++) {
        shared_word *bucket = (shared_word *)(void *)(dict->pool + i * dict->bucket_bytes);
        uint32_t word = __atomic_load_n(bucket_lock(dict, bucket), __ATOMIC_ACQUIRE);
        CHECK(!(word & VERLOCK_LOCKED));         /* D1 */
        CHECK(word_count(word) <= dict->places); /* D2 */
    }
    struct check_sum sum = {dict, 0};
    dict_each(dict, dict_check_entry, &sum);
    CHECK(sum.entries == dict_count(dict)); /* D5 */
}
