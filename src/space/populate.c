#include "space/populate.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "base/thread.h"
#include "plain/plain.h"
#include "row/row.h"

struct populate {
    pthread_mutex_t bracket; /* held from stop to go */
    pthread_mutex_t lock;    /* of `running` */
    pthread_cond_t ended;
    bool running;
    _Atomic bool stop;
    bool started;
    pthread_t thread;
    size_t count;
    struct row *rows[SETTINGS_SPACES_MAX];
    struct engine *plain; /* NULL: there is none */
};

static void *populate_run(void *context)
{
    struct populate *populate = context;

    for (size_t i = 0; i < populate->count && !populate->stop; i++) {
        row_populate(populate->rows[i], &populate->stop);
    }
    if (populate->plain != NULL && !populate->stop) {
        plain_populate(populate->plain, &populate->stop);
    }
    pthread_mutex_lock(&populate->lock);
    populate->running = false;
    pthread_cond_broadcast(&populate->ended);
    pthread_mutex_unlock(&populate->lock);
    return NULL;
}

struct populate *populate_create(void)
{
    struct populate *populate = memory_zalloc(sizeof(*populate));

    pthread_mutex_init(&populate->bracket, NULL);
    pthread_mutex_init(&populate->lock, NULL);
    thread_cond_init(&populate->ended);
    return populate;
}

void populate_destroy(struct populate *populate)
{
    if (populate == NULL) {
        return;
    }
    populate_stop(populate);
    populate_go(populate, NULL);
    pthread_cond_destroy(&populate->ended);
    pthread_mutex_destroy(&populate->lock);
    pthread_mutex_destroy(&populate->bracket);
    free(populate);
}

void populate_stop(struct populate *populate)
{
    pthread_mutex_lock(&populate->bracket);
    populate->stop = true;
    if (populate->started) {
        pthread_join(populate->thread, NULL);
    }
    populate->started = false;
}

static void populate_begin(struct populate *populate, const struct spaces *spaces)
{
    populate->stop = false;
    populate->count = 0;
    for (size_t i = 0; i < spaces->count; i++) {
        if (spaces->at[i] != spaces->plain) {
            populate->rows[populate->count++] = spaces->at[i]->engine->row;
        }
    }
    populate->plain = spaces->plain != NULL ? spaces->plain->engine : NULL;
    /* without a thread the first use of each page faults, no more */
    pthread_mutex_lock(&populate->lock);
    populate->started = thread_start(&populate->thread, populate_run, populate, "populate");
    populate->running = populate->started;
    pthread_mutex_unlock(&populate->lock);
}

void populate_go(struct populate *populate, const struct spaces *spaces)
{
    if (spaces != NULL) {
        populate_begin(populate, spaces);
    }
    pthread_mutex_unlock(&populate->bracket);
}

void populate_wait(struct populate *populate, unsigned milliseconds)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&populate->lock);
    while (populate->running &&
           pthread_cond_timedwait(&populate->ended, &populate->lock, &until) == 0) {
    }
    pthread_mutex_unlock(&populate->lock);
}
