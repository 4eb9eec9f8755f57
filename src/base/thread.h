/*
 * thread.h: threads besides the main one, and timed waits. Any thread.
 */
#ifndef ROLLCALL_BASE_THREAD_H
#define ROLLCALL_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/*
 * Starts a thread that gets no signals: those are the main thread's. `name`: up to 15 characters.
 * False with errno: there is no thread. Logs nothing.
 */
bool thread_start(pthread_t *thread, void *(*run)(void *context), void *context, const char *name);

/* A condition whose timed waits go by CLOCK_MONOTONIC: nobody sleeps on when the clock is set. */
void thread_cond_init(pthread_cond_t *cond);

/* Between two looks at a word that another thread is about to change. */
static inline void thread_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

#endif
