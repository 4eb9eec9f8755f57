/* load_reader.c: a thread that fills batches, one ahead of whoever carries them out. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "tools/rollcall/load_private.h"

#define BATCHES 2u

/* Under the lock: counts of batches. Those from `used` to `filled` are the other side's. */
struct load_reader {
    struct load *load;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t filled, used;
    bool ending;
    bool ended;  /* nothing is filled any more */
    bool failed; /* input.error has why */
};

/* False: nobody wants another one. */
static bool reader_await_room(struct load_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    while (!reader->ending && reader->filled - reader->used == BATCHES) {
        pthread_cond_wait(&reader->changed, &reader->lock);
    }
    bool wanted = !reader->ending;

    pthread_mutex_unlock(&reader->lock);
    return wanted;
}

static void *reader_run(void *context)
{
    struct load_reader *reader = context;
    bool more = true;

    while (more && reader_await_room(reader)) {
        struct load_batch *batch = &reader->load->batches[reader->filled % BATCHES];
        bool good = load_batch_fill(reader->load, batch);

        more = good && batch->count > 0;
        pthread_mutex_lock(&reader->lock);
        reader->filled += more;
        reader->ended = !more;
        reader->failed = !good;
        pthread_cond_signal(&reader->changed);
        pthread_mutex_unlock(&reader->lock);
    }
    return NULL;
}

struct load_reader *load_reader_start(struct load *load)
{
    struct load_reader *reader = memory_zalloc(sizeof(*reader));

    reader->load = load;
    CHECK(pthread_mutex_init(&reader->lock, NULL) == 0);
    thread_cond_init(&reader->changed);
    if (thread_start(&reader->thread, reader_run, reader, "reader")) {
        return reader;
    }
    snprintf(load->why_failed, sizeof(load->why_failed), "cannot start a thread: %s",
             strerror(errno));
    pthread_cond_destroy(&reader->changed);
    pthread_mutex_destroy(&reader->lock);
    free(reader);
    return NULL;
}

struct load_batch *load_reader_next(struct load_reader *reader)
{
    struct load_batch *batch = NULL;

    pthread_mutex_lock(&reader->lock);
    while (reader->filled == reader->used && !reader->ended) {
        pthread_cond_wait(&reader->changed, &reader->lock);
    }
    if (reader->filled > reader->used) {
        batch = &reader->load->batches[reader->used % BATCHES];
    }
    pthread_mutex_unlock(&reader->lock);
    return batch;
}

void load_reader_give(struct load_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    reader->used++;
    pthread_cond_signal(&reader->changed);
    pthread_mutex_unlock(&reader->lock);
}

bool load_reader_stop(struct load_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    reader->ending = true;
    pthread_cond_signal(&reader->changed);
    pthread_mutex_unlock(&reader->lock);
    pthread_join(reader->thread, NULL);
    bool good = !reader->failed;

    pthread_cond_destroy(&reader->changed);
    pthread_mutex_destroy(&reader->lock);
    free(reader);
    return good;
}
