/*
 * woken.h: who waits for a page sleeps until the thread that read it wakes it, as a worker does. To
 * look again and again, and give way in between, takes a slice of all that runs beside at each
 * look.
 *
 * Thread rule: woken_wake() by any thread, woken_wait() by one.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_WOKEN_H
#define ROLLCALL_TESTS_SUPPORT_WOKEN_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define WOKEN_MS 100 /* the longest wait: what woke it may have been another page */

struct woken {
    pthread_mutex_t lock;
    pthread_cond_t came;
    unsigned count; /* of wakes nobody has waited for */
};

#define WOKEN_INIT                                                                                 \
    (struct woken)                                                                                 \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER                        \
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

static inline void woken_wait(struct woken *woken)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WOKEN_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&woken->lock);
    while (woken->count == 0 && pthread_cond_timedwait(&woken->came, &woken->lock, &until) == 0) {
    }
    woken->count = 0;
    pthread_mutex_unlock(&woken->lock);
}

#endif
