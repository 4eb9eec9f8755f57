/*
 * give_way.h: a thread that looks again and again lets the one it waits for run in between.
 *
 * By sched_yield(), until one yield takes as long as another's slice: beside other work of the
 * machine a thousand of them would take minutes. The next GIVE_WAY_SLEEPS times the thread sleeps
 * for a moment instead, which costs more where nothing else runs. Any thread.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_GIVE_WAY_H
#define ROLLCALL_TESTS_SUPPORT_GIVE_WAY_H

#include <sched.h>
#include <stdint.h>
#include <time.h>

#define GIVE_WAY_DEAR_US 500
#define GIVE_WAY_SLEEPS  100

/* Not of base/clock.h: a simulation has its own. */
static inline int64_t give_way_now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static inline void give_way(void)
{
    static _Thread_local unsigned sleeps;
    if (sleeps > 0) {
        sleeps--;
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
        return;
    }
    int64_t since_us = give_way_now_us();
    (void)sched_yield();
    sleeps = give_way_now_us() - since_us > GIVE_WAY_DEAR_US ? GIVE_WAY_SLEEPS : 0;
}

/*
 * For a program of whose threads one runs while the others wait for it: on one processor nobody
 * spins beside it, and of a batch nobody who is woken takes over at once, only to wait for the lock
 * that the other still has. Call before any thread is started. Refused: it takes longer.
 */
static inline void give_way_on_one_processor(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((unsigned)sched_getcpu(), &one);
    (void)sched_setaffinity(0, sizeof(one), &one);
    (void)sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
}

#endif
