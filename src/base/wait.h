/*
 * wait.h: a thread's waits with an end, by clock_monotonic_us. Apart from clock.h, so that a
 * simulation of threads can decide who goes on. Any thread.
 */
#ifndef ROLLCALL_BASE_WAIT_H
#define ROLLCALL_BASE_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Waits for a signal to the condition (of thread_cond_init), as pthread_cond_timedwait: also for
 * no reason, so the caller looks again at what it waits for. False: until_us is there.
 */
bool wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_us);
void wait_us(uint64_t us); /* so long, at least */

#endif
