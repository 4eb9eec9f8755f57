/* cold_cache.c: the bounded cache of pages. */
#include "store/cold_cache.h"

#include <pthread.h>
#include <string.h>

#include "store/cold_lists.h"

/* Places are in the order of use, the free ones at the front. */
struct place {
    struct cold_link order;
    struct cold_node by_key; /* in the map if used */
    struct cold_key key;     /* file NULL: free */
};

struct shard {
    _Alignas(MEMORY_LINE_BYTES) pthread_mutex_t lock; /* of all that follows */
    struct cold_map map;
    struct cold_link order; /* from the least recently used */
    uint64_t used, hits, evicted;
    struct place *places;
    unsigned char *pages; /* of the places, one after another */
};

struct cold_cache {
    uint64_t shards;       /* a power of two; 0: no cache */
    uint64_t shard_places; /* of each */
    unsigned char *pages;
    struct place *places;
    struct shard shard[COLD_CACHE_SHARDS];
};

/* The bytes of a place, its page, and its two words at most in a map. */
#define PLACE_BYTES (TABLE_FILE_PAGE_BYTES + sizeof(struct place) + 2 * sizeof(void *))

static uint64_t cache_places(const struct cold_cache *cache)
{
    return cache->shards * cache->shard_places;
}

static void shard_init(struct cold_cache *cache, uint64_t index)
{
    struct shard *shard = &cache->shard[index];
    uint64_t first = index * cache->shard_places;
    CHECK(pthread_mutex_init(&shard->lock, NULL) == 0);
    cold_map_init(&shard->map, cache->shard_places);
    cold_list_init(&shard->order);
    shard->places = cache->places + first;
    shard->pages = cache->pages + first * TABLE_FILE_PAGE_BYTES;
    for (uint64_t i = 0; i < cache->shard_places; i++) {
        cold_list_add(&shard->order, &shard->places[i].order);
    }
}

struct cold_cache *cold_cache_create(uint64_t bytes)
{
    struct cold_cache *cache = aligned_alloc(MEMORY_LINE_BYTES, sizeof(*cache));
    if (!cache) {
        return NULL;
    }
    memset(cache, 0, sizeof(*cache));
    uint64_t places = bytes / PLACE_BYTES;
    if (places == 0) {
        return cache;
    }
    cache->shards = 1;
    while (cache->shards < COLD_CACHE_SHARDS &&
           places / (2 * cache->shards) >= COLD_CACHE_SHARD_PAGES) {
        cache->shards *= 2;
    }
    cache->shard_places = places / cache->shards;
    places = cache_places(cache);
    cache->pages = memory_region_create(places * TABLE_FILE_PAGE_BYTES);
    if (!cache->pages) {
        free(cache);
        return NULL;
    }
    cache->places = memory_zalloc(places * sizeof(*cache->places));
    for (uint64_t i = 0; i < cache->shards; i++) {
        shard_init(cache, i);
    }
    return cache;
}

void cold_cache_destroy(struct cold_cache *cache)
{
    if (!cache) {
        return;
    }
    for (uint64_t i = 0; i < cache->shards; i++) {
        cold_map_fini(&cache->shard[i].map);
        pthread_mutex_destroy(&cache->shard[i].lock);
    }
    memory_region_destroy(cache->pages, cache_places(cache) * TABLE_FILE_PAGE_BYTES);
    free(cache->places);
    free(cache);
}

/* The high bits choose the part, the low ones the chain in it. */
static struct shard *shard_of(struct cold_cache *cache, uint64_t hash)
{
    return &cache->shard[(hash >> 48) & (cache->shards - 1)];
}

/* ---- one part, under its lock ---- */

static struct place *shard_find(const struct shard *shard, const struct cold_key *key,
                                uint64_t hash)
{
    struct cold_node *node = cold_map_chain(&shard->map, hash);
    for (; node; node = node->next) {
        struct place *place = COLD_OWNER(struct place, by_key, node);
        if (cold_key_equal(&place->key, key)) {
            return place;
        }
    }
    return NULL;
}

static unsigned char *page_of(const struct shard *shard, const struct place *place)
{
    return shard->pages + (size_t)(place - shard->places) * TABLE_FILE_PAGE_BYTES;
}

static void cold_cache_used_now(struct shard *shard, struct place *place)
{
    cold_list_remove(&place->order);
    cold_list_add(&shard->order, &place->order);
}

static void place_clear(struct shard *shard, struct place *place)
{
    cold_map_remove(&shard->map, &place->by_key);
    place->key = (struct cold_key){0};
    shard->used--;
}

/* ---- all of it ---- */

bool cold_cache_get(struct cold_cache *cache, const struct cold_key *key, void *page)
{
    if (cache->shards == 0) {
        return false;
    }
    uint64_t hash = cold_key_hash(key);
    struct shard *shard = shard_of(cache, hash);
    pthread_mutex_lock(&shard->lock);
    struct place *place = shard_find(shard, key, hash);
    if (place) {
        memcpy(page, page_of(shard, place), TABLE_FILE_PAGE_BYTES);
        cold_cache_used_now(shard, place);
        shard->hits++;
    }
    pthread_mutex_unlock(&shard->lock);
    return place != NULL;
}

void cold_cache_put(struct cold_cache *cache, const struct cold_key *key, const void *page)
{
    if (cache->shards == 0) {
        return;
    }
    uint64_t hash = cold_key_hash(key);
    struct shard *shard = shard_of(cache, hash);
    pthread_mutex_lock(&shard->lock);
    struct place *place = shard_find(shard, key, hash);
    if (!place) {
        place = COLD_OWNER(struct place, order, shard->order.next);
        if (place->key.file) {
            place_clear(shard, place);
            shard->evicted++;
        }
        place->key = *key;
        cold_map_add(&shard->map, &place->by_key, hash);
        shard->used++;
        memcpy(page_of(shard, place), page, TABLE_FILE_PAGE_BYTES);
    }
    cold_cache_used_now(shard, place);
    pthread_mutex_unlock(&shard->lock);
}

/* Free ones are in front. */
static void place_forget(struct shard *shard, struct place *place)
{
    place_clear(shard, place);
    cold_list_remove(&place->order);
    cold_list_add(shard->order.next, &place->order);
}

static void shard_forget(struct cold_cache *cache, struct shard *shard,
                         const struct table_file *file)
{
    pthread_mutex_lock(&shard->lock);
    for (uint64_t i = 0; i < cache->shard_places; i++) {
        struct place *place = &shard->places[i];
        if (place->key.file == file) {
            place_forget(shard, place);
        }
    }
    pthread_mutex_unlock(&shard->lock);
}

static void forget_page(struct cold_cache *cache, const struct cold_key *key)
{
    uint64_t hash = cold_key_hash(key);
    struct shard *shard = shard_of(cache, hash);
    pthread_mutex_lock(&shard->lock);
    struct place *place = shard_find(shard, key, hash);
    if (place) {
        place_forget(shard, place);
    }
    pthread_mutex_unlock(&shard->lock);
}

/* Forgets the pages of a file. All files of a space may go at once, and be small: then page by
 * page. */
void cold_cache_forget(struct cold_cache *cache, const struct table_file *file)
{
    uint64_t pages = table_file_pages(file);
    struct cold_key key = {file, table_file_info(file)->identity, 0};
    if (pages < cache->shards * cache->shard_places) {
        for (; key.number < pages; key.number++) {
            forget_page(cache, &key);
        }
        return;
    }
    for (uint64_t i = 0; i < cache->shards; i++) {
        shard_forget(cache, &cache->shard[i], file);
    }
}

void cold_cache_stats(struct cold_cache *cache, struct cold_cache_stats *stats)
{
    *stats = (struct cold_cache_stats){0};
    for (uint64_t i = 0; i < cache->shards; i++) {
        struct shard *shard = &cache->shard[i];
        pthread_mutex_lock(&shard->lock);
        stats->hits += shard->hits;
        stats->pages += shard->used;
        stats->evicted += shard->evicted;
        pthread_mutex_unlock(&shard->lock);
    }
    stats->bytes = stats->pages * PLACE_BYTES;
}

static void shard_check(struct cold_cache *cache, struct shard *shard)
{
    uint64_t used = 0, listed = 0;
    pthread_mutex_lock(&shard->lock);
    for (uint64_t i = 0; i < cache->shard_places; i++) {
        struct place *place = &shard->places[i];
        if (place->key.file) {
            uint64_t hash = cold_key_hash(&place->key);
            CHECK(shard_of(cache, hash) == shard && place->by_key.hash == hash);
            CHECK(shard_find(shard, &place->key, hash) == place);
            used++;
        }
    }
    bool free_ones = true; /* are in front */
    for (struct cold_link *link = shard->order.next; link != &shard->order; link = link->next) {
        bool is_free = COLD_OWNER(struct place, order, link)->key.file == NULL;
        CHECK(free_ones || !is_free);
        free_ones = is_free;
        listed++;
    }
    CHECK(used == shard->used && listed == cache->shard_places);
    pthread_mutex_unlock(&shard->lock);
}

void cold_cache_check(struct cold_cache *cache)
{
    for (uint64_t i = 0; i < cache->shards; i++) {
        shard_check(cache, &cache->shard[i]);
    }
}
