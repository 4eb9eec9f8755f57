/* cold.c: pages that are on the disk: asking for them, giving them up, figures. */
#include "store/cold.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/cold_private.h"

struct cold *cold_create(const struct cold_config *config)
{
    CHECK(config->vfs && config->threads >= 1 && config->threads <= COLD_THREADS_MAX);
    CHECK(config->queue >= 1 && config->queue <= COLD_QUEUE_MAX);
    struct cold *cold = memory_zalloc(sizeof(*cold));
    cold->class = COLD_CLASS;
    cold->config = *config;
    cold->cache = cold_cache_create(config->cache_bytes);
    if (!cold->cache) {
        goto fail_cache;
    }
    cold->pages = memory_region_create((size_t)config->queue * TABLE_FILE_PAGE_BYTES);
    if (!cold->pages) {
        goto fail_pages;
    }
    cold_promise_setup(cold);
    CHECK(pthread_mutex_init(&cold->lock, NULL) == 0);
    CHECK(pthread_cond_init(&cold->work, NULL) == 0);
    CHECK(pthread_cond_init(&cold->ended, NULL) == 0);
    if (!cold_pool_start(cold)) {
        int error = errno;
        cold_destroy(cold);
        errno = error;
        return NULL;
    }
    return cold;
fail_pages:
    cold_cache_destroy(cold->cache);
fail_cache:
    free(cold);
    return NULL;
}

void cold_destroy(struct cold *cold)
{
    if (!cold) {
        return;
    }
    cold_stop(cold);
    pthread_cond_destroy(&cold->ended);
    pthread_cond_destroy(&cold->work);
    pthread_mutex_destroy(&cold->lock);
    cold_promise_teardown(cold);
    memory_region_destroy(cold->pages, (size_t)cold->config.queue * TABLE_FILE_PAGE_BYTES);
    cold_cache_destroy(cold->cache);
    cold->class = 0;
    free(cold);
}

uint64_t cold_memory_bytes(const struct cold_config *config)
{
    return sizeof(struct cold) + config->cache_bytes + cold_promise_bytes(config->queue) +
           (uint64_t)config->queue * TABLE_FILE_ERROR_MAX;
}

/* ---- asking ---- */

/* Returns whether a failure is no longer told: a ticket that waited for the page finds it however
 * late it comes, others for a while. */
static bool failure_over(const struct cold *cold, const struct cold_read *read,
                         const struct cold_waiter *waiter)
{
    return read->state == COLD_BAD && !(waiter && cold_promised(cold, read, waiter)) &&
           cold_now(cold) - read->failed_us >= COLD_HOLD_US;
}

/* The page is not here, nor has it failed; read: the one under way. */
static enum cold_result cold_wait_for(struct cold *cold, struct cold_read *read,
                                      const struct cold_key *key, const struct ticket *ticket)
{
    struct cold_stats *stats = &cold->stats;
    struct cold_waiter *waiter = cold_waiter_find(cold, ticket);
    if (read && waiter && cold_promised(cold, read, waiter)) {
        stats->again++;
        return COLD_PENDING;
    }
    /* The waiter will be woken for other pages. Its state is read now, as an idle one may be taken
     * for lost below. */
    bool waits = waiter && waiter->state != COLD_IDLE;
    bool first = ticket_same(ticket, &cold->config.first);
    bool may = !cold->stopping && (first || !cold->first_waits);
    if (may && cold_promise(cold, read, key, ticket)) {
        cold->first_waits = cold->first_waits && !first;
        stats->joined += read != NULL;
        return COLD_PENDING;
    }
    if (!cold->stopping && waits) {
        stats->put_off++;
        return COLD_PENDING;
    }
    cold->first_waits = cold->first_waits || first;
    stats->busy++;
    return COLD_BUSY;
}

/* Under the lock. */
static enum cold_result get(struct cold *cold, const struct cold_key *key,
                            const struct ticket *ticket, void *page, char *error)
{
    struct cold_read *read = cold_read_find(cold, key);
    struct cold_waiter *waiter = cold_waiter_find(cold, ticket);
    if (waiter) {
        cold_waiter_seen(cold, waiter);
    }
    if (read && failure_over(cold, read, waiter)) {
        cold_read_drop(cold, read);
        read = NULL;
    }
    if (!read && cold_cache_get(cold->cache, key, page)) {
        return COLD_HIT;
    }
    if (read && read->state == COLD_THERE) {
        memcpy(page, read->page, TABLE_FILE_PAGE_BYTES);
        cold->stats.hits++;
        return COLD_HIT;
    }
    cold->stats.misses++;
    if (read && read->state == COLD_BAD) {
        snprintf(error, TABLE_FILE_ERROR_MAX, "%s", read->error);
        return COLD_FAILED;
    }
    return cold_wait_for(cold, read, key, ticket);
}

enum cold_result cold_get(struct cold *cold, const struct table_file *file, uint64_t number,
                          const struct ticket *ticket, void *page, char error[TABLE_FILE_ERROR_MAX])
{
    CHECK(cold->class == COLD_CLASS && ticket->wake);
    struct cold_key key = {file, table_file_info(file)->identity, number};
    if (cold_cache_get(cold->cache, &key, page)) {
        return COLD_HIT;
    }
    pthread_mutex_lock(&cold->lock);
    enum cold_result result = get(cold, &key, ticket, page, error);
    bool call = cold_calls(cold);
    pthread_mutex_unlock(&cold->lock);
    if (call) {
        pthread_cond_signal(&cold->work);
    }
    return result;
}

unsigned cold_spare(struct cold *cold)
{
    pthread_mutex_lock(&cold->lock);
    unsigned half = cold->config.queue / 2;
    unsigned spare = cold->stats.promised < half ? half - (unsigned)cold->stats.promised : 0;
    pthread_mutex_unlock(&cold->lock);
    return spare;
}

void cold_release(struct cold *cold, const struct ticket *ticket)
{
    CHECK(cold->class == COLD_CLASS);
    pthread_mutex_lock(&cold->lock);
    struct cold_waiter *waiter = cold_waiter_find(cold, ticket);
    cold->first_waits = cold->first_waits && !ticket_same(ticket, &cold->config.first);
    if (waiter) {
        cold_waiter_drop(cold, waiter);
    }
    pthread_mutex_unlock(&cold->lock);
}

/* ---- looking ---- */

void cold_stats(struct cold *cold, struct cold_stats *stats)
{
    struct cold_cache_stats cache;
    cold_cache_stats(cold->cache, &cache);
    pthread_mutex_lock(&cold->lock);
    *stats = cold->stats;
    pthread_mutex_unlock(&cold->lock);
    stats->hits += cache.hits;
    stats->cached_pages = cache.pages;
    stats->cached_bytes = cache.bytes;
    stats->evicted = cache.evicted;
}

void cold_check(struct cold *cold)
{
    CHECK(cold->class == COLD_CLASS);
    pthread_mutex_lock(&cold->lock);
    cold_promise_check(cold);
    cold_cache_check(cold->cache);
    pthread_mutex_unlock(&cold->lock);
}
