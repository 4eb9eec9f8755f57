/* clock.c: time from the kernel. */
#include "base/clock.h"

#include "base/check.h"

#include <time.h>

/* Not guarded as others whose variables have addresses are: it is called twice a turn. */
__attribute__((no_stack_protector)) uint64_t clock_monotonic_us(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000u + (uint32_t)now.tv_nsec / 1000u;
}

uint64_t clock_wall_s(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
    return (uint64_t)now.tv_sec;
}
