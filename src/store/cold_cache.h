/*
 * cold_cache.h: the bounded cache of cold.h: copies of pages, the least recently used go first.
 *
 * It is cut into parts by the hash of a page's key, so that workers seldom meet at a lock; a small
 * cache has one part and so an exact order. All memory is reserved at creation and resident as far
 * as it was used.
 *
 * Cost: a hash, a lock, a copy of 4096 bytes. Thread rule: all but create and destroy by any
 * thread.
 */
#ifndef ROLLCALL_STORE_COLD_CACHE_H
#define ROLLCALL_STORE_COLD_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "store/table_file.h"

#define COLD_CACHE_SHARDS      16 /* parts, at most */
#define COLD_CACHE_SHARD_PAGES 64 /* a part has at least this many, if there are several parts */

/* A page of a file. The identity keeps an old page from being taken for one of a file that was
 * opened later and lies at the same address. */
struct cold_key {
    const struct table_file *file;
    uint64_t identity;
    uint64_t number;
};

static inline bool cold_key_equal(const struct cold_key *a, const struct cold_key *b)
{
    return a->number == b->number && a->identity == b->identity && a->file == b->file;
}

static inline uint64_t cold_key_hash(const struct cold_key *key)
{
    return hash_u64(key->identity ^ hash_u64(key->number + 1));
}

struct cold_cache;

/* bytes: of pages and bookkeeping; too little for a page: nothing is ever kept. NULL with errno. */
struct cold_cache *cold_cache_create(uint64_t bytes);
void cold_cache_destroy(struct cold_cache *cache); /* NULL: no-op */

/* Copies the page out; it is then the most recently used. False: not there. */
bool cold_cache_get(struct cold_cache *cache, const struct cold_key *key, void *page);
/* Copies it in, evicting another if need be; once more: it is the most recently used. */
void cold_cache_put(struct cold_cache *cache, const struct cold_key *key, const void *page);
/* Drops all pages of the file. O(pages of the cache). */
void cold_cache_forget(struct cold_cache *cache, const struct table_file *file);

struct cold_cache_stats {
    uint64_t hits, pages, bytes, evicted;
};
void cold_cache_stats(struct cold_cache *cache, struct cold_cache_stats *stats);
void cold_cache_check(struct cold_cache *cache); /* C4 of cold.h */

#endif
