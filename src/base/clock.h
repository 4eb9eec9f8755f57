/*
 * clock.h: time. Any thread. The request path does not call these: it reads its worker's time,
 * taken once a turn of the loop.
 */
#ifndef ROLLCALL_BASE_CLOCK_H
#define ROLLCALL_BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_monotonic_us(void); /* microseconds since some fixed moment; never goes back */
/* Microseconds since the machine started, those it slept included: the same for all processes. */
uint64_t clock_boot_us(void);
uint64_t clock_wall_s(void); /* seconds since 1970; somebody may set it */
uint64_t clock_random(void); /* 64 random bits from the kernel */

/* Returns the seconds of the monotonic clock, beginning with 1: 0 can mean never, and 1 is never in
 * the future. */
static inline uint64_t clock_monotonic_s(void)
{
    return clock_monotonic_us() / 1000000u + 1;
}

#endif
