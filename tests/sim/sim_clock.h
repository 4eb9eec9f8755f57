/*
 * sim_clock.h: base's clock for a simulation: its random bits follow from a seed, and time goes on
 * by a microsecond a look. Link it instead of base/clock.c. Thread rule: any thread.
 */
#ifndef ROLLCALL_TESTS_SIM_CLOCK_H
#define ROLLCALL_TESTS_SIM_CLOCK_H

#include <stdint.h>

void sim_clock_seed(uint64_t seed);
void sim_clock_to(uint64_t us); /* no earlier than that */
/* Time stands still, but for threads that have joined: theirs goes on, and before each look of
 * theirs looks() is called. NULL: for all, as at first. */
void sim_clock_hold(void (*looks)(void));
void sim_clock_join(void);

#endif
