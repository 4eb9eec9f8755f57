/*
 * woken.h: who waits for a page sleeps until the thread that read it wakes it, as a worker does. To
 * look again and again, and give way in between, takes a slice of all that runs beside at each
 * look.
 *
 * Thread rule: woken_wake() by any thread, the others by one.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_WOKEN_H
#define ROLLCALL_TESTS_SUPPORT_WOKEN_H

#include <pthread.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/wait.h"
#include "engine/engine.h"

#define WOKEN_US 100000u /* the longest wait: what woke it may have been another page */

struct woken {
    pthread_mutex_t lock;
    pthread_cond_t came;
    unsigned count; /* of wakes nobody has waited for */
};

static inline void woken_init(struct woken *woken)
{
    woken->count = 0;
    pthread_mutex_init(&woken->lock, NULL);
    thread_cond_init(&woken->came);
}

static inline void woken_fini(struct woken *woken)
{
    pthread_cond_destroy(&woken->came);
    pthread_mutex_destroy(&woken->lock);
}

/* For a ticket whose target is a struct woken. */
static inline void woken_wake(void *target, uint64_t serial)
{
    struct woken *woken = target;
    (void)serial;
    pthread_mutex_lock(&woken->lock);
    woken->count++;
    pthread_cond_signal(&woken->came);
    pthread_mutex_unlock(&woken->lock);
}

/* Of an operation that waits for no page: returns at once. */
static inline void woken_await(struct woken *woken, const struct engine_op *op)
{
    if (op->status != ENGINE_PENDING || op->wants_table) {
        return;
    }
    uint64_t until_us = clock_monotonic_us() + WOKEN_US;
    pthread_mutex_lock(&woken->lock);
    while (woken->count == 0 && wait_until(&woken->came, &woken->lock, until_us)) {
    }
    woken->count = 0;
    pthread_mutex_unlock(&woken->lock);
}

#endif
