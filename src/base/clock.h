/*
 * clock.h: time. Any thread. The request path does not call these: it reads its worker's time,
 * taken once a turn of the loop.
 */
#ifndef ROLLCALL_BASE_CLOCK_H
#define ROLLCALL_BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_monotonic_us(void); /* microseconds since some fixed moment; never goes back */
uint64_t clock_wall_s(void);       /* seconds since 1970 */
uint64_t clock_random(void);       /* 64 random bits from the kernel */

#endif
