/* wait.c: waits by the kernel's clock. */
#include "base/wait.h"

#include <time.h>

#define US_A_S  1000000u
#define NS_A_US 1000u

static struct timespec wait_time(uint64_t us)
{
    return (struct timespec){.tv_sec = (time_t)(us / US_A_S),
                             .tv_nsec = (long)(us % US_A_S * NS_A_US)};
}

bool wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_us)
{
    const struct timespec until = wait_time(until_us);

    return pthread_cond_timedwait(cond, lock, &until) == 0;
}

void wait_us(uint64_t us)
{
    const struct timespec time = wait_time(us);

    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}
