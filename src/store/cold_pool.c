/* cold_pool.c: the threads that read, ending them, and waiting for them when a file goes. */
#include <stdio.h>

#include "base/point.h"
#include "base/thread.h"
#include "store/cold_private.h"

#define WAKE_BATCH 64

/* Wakes all that are to be. Not under the lock. */
static void cold_wake(struct cold *cold)
{
    struct ticket tickets[WAKE_BATCH];
    size_t count = WAKE_BATCH;
    while (count == WAKE_BATCH) {
        pthread_mutex_lock(&cold->lock);
        count = cold_take_waking(cold, tickets, WAKE_BATCH);
        pthread_mutex_unlock(&cold->lock);
        for (size_t i = 0; i < count; i++) {
            ticket_wake(&tickets[i]);
        }
    }
}

/* ---- reading ---- */

static unsigned cold_pool_bucket_of(uint64_t us)
{
    unsigned bucket = us == 0 ? 0 : 64 - (unsigned)__builtin_clzll(us);
    return bucket < COLD_LATENCY_BUCKETS ? bucket : COLD_LATENCY_BUCKETS - 1;
}

/* Under the lock. `error`: malloc'd; NULL if it went well. */
static void end_read(struct cold *cold, struct cold_read *read, enum table_file_result result,
                     uint64_t us, char *error)
{
    bool forgotten = read->forgotten;
    cold->stats.reads++;
    cold->stats.latency_us[cold_pool_bucket_of(us)]++;
    cold->stats.bad_pages += result == TABLE_FILE_DAMAGED;
    cold->stats.failed += error && result != TABLE_FILE_DAMAGED;
    read->error = error;
    read->failed_us = error ? cold_now(cold) : 0;
    cold_read_end(cold, read, error ? COLD_BAD : COLD_THERE);
    if (forgotten) {
        pthread_cond_broadcast(&cold->ended);
    }
}

/* Key and page of a READING read are this thread's, and nobody changes them. */
static void do_read(struct cold *cold, struct cold_read *read)
{
    char text[TABLE_FILE_ERROR_MAX];
    char *error = NULL;
    uint64_t begin_us = cold_now(cold);
    POINT_SLOW("cold read");
    enum table_file_result result =
        table_file_read_page(read->key.file, read->key.number, read->page, text);
    uint64_t us = cold_now(cold) - begin_us;
    if (result == TABLE_FILE_DONE) {
        cold_cache_put(cold->cache, &read->key, read->page);
    } else {
        error = memory_strdup(text);
    }
    if (error && cold->config.failed) {
        cold->config.failed(cold->config.context, text);
    }
    pthread_mutex_lock(&cold->lock);
    end_read(cold, read, result, us, error);
    pthread_mutex_unlock(&cold->lock);
    cold_wake(cold);
}

bool cold_calls(struct cold *cold)
{
    bool calls = !cold->called && cold->resting > 0 && !cold_list_empty(&cold->queue);
    cold->called = cold->called || calls;
    return calls;
}

/* The oldest of the queue; NULL: it is the end. */
static struct cold_read *next_read(struct cold *cold)
{
    struct cold_read *read = NULL;
    pthread_mutex_lock(&cold->lock);
    while (cold_list_empty(&cold->queue) && !cold->stopping) {
        cold->resting++;
        pthread_cond_wait(&cold->work, &cold->lock);
        cold->resting--;
        cold->called = false;
    }
    if (!cold_list_empty(&cold->queue)) {
        read = COLD_OWNER(struct cold_read, link, cold->queue.next);
        CHECK(read->state == COLD_READ_QUEUED);
        cold_list_remove(&read->link);
        read->state = COLD_READING;
    }
    bool call = cold_calls(cold);
    pthread_mutex_unlock(&cold->lock);
    if (call) {
        pthread_cond_signal(&cold->work);
    }
    return read;
}

static void *read_main(void *context)
{
    struct cold *cold = context;
    struct cold_read *read;
    while ((read = next_read(cold)) != NULL) {
        do_read(cold, read);
    }
    return NULL;
}

/* ---- begin and end ---- */

bool cold_pool_start(struct cold *cold)
{
    for (; cold->threads < cold->config.threads; cold->threads++) {
        char name[16];
        snprintf(name, sizeof(name), "cold-%u", cold->threads);
        if (!thread_start(&cold->thread[cold->threads], read_main, cold, name)) {
            return false;
        }
    }
    return true;
}

void cold_stop(struct cold *cold)
{
    CHECK(cold->class == COLD_CLASS);
    pthread_mutex_lock(&cold->lock);
    cold->stopping = true;
    while (!cold_list_empty(&cold->queue)) {
        cold_read_drop(cold, COLD_OWNER(struct cold_read, link, cold->queue.next));
    }
    pthread_cond_broadcast(&cold->work);
    pthread_mutex_unlock(&cold->lock);
    cold_wake(cold);
    for (; cold->threads > 0; cold->threads--) {
        pthread_join(cold->thread[cold->threads - 1], NULL);
    }
}

/* ---- a file goes ---- */

/* Whether it is under way: then it is marked, else dropped. */
static bool forget_read(struct cold *cold, struct cold_read *read)
{
    if (read->state == COLD_READING) {
        read->forgotten = true;
        return true;
    }
    cold_read_drop(cold, read);
    return false;
}

/* Under the lock. How many are under way. All files of a space may go at once, and be small. */
static unsigned forget_reads(struct cold *cold, const struct table_file *file)
{
    uint64_t pages = table_file_pages(file);
    struct cold_key key = {file, table_file_info(file)->identity, 0};
    unsigned under_way = 0;
    for (; pages < cold->config.queue && key.number < pages; key.number++) {
        struct cold_read *read = cold_read_find(cold, &key);
        under_way += read && forget_read(cold, read);
    }
    for (unsigned i = 0; pages >= cold->config.queue && i < cold->config.queue; i++) {
        struct cold_read *read = &cold->reads[i];
        if (read->state != COLD_READ_FREE && read->key.file == file) {
            under_way += forget_read(cold, read);
        }
    }
    return under_way;
}

void cold_forget(struct cold *cold, const struct table_file *file)
{
    CHECK(cold->class == COLD_CLASS);
    pthread_mutex_lock(&cold->lock);
    unsigned under_way = forget_reads(cold, file);
    pthread_mutex_unlock(&cold->lock);
    cold_wake(cold);
    pthread_mutex_lock(&cold->lock);
    while (under_way > 0 && (under_way = forget_reads(cold, file)) > 0) {
        pthread_cond_wait(&cold->ended, &cold->lock);
    }
    pthread_mutex_unlock(&cold->lock);
    /* Last: a read that was under way has put its page there. */
    cold_cache_forget(cold->cache, file);
}
