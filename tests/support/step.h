/*
 * step.h: one thing happens after exactly n instructions of another, by the processor's trap flag.
 *
 * Readers without locks can be tried against every moment a change may come at: n is raised from 0
 * until the reader ends before its n-th instruction. What is built without barriers between the
 * two, such as a version that is not raised, is then found in every run, not once in a million.
 * A step costs some microseconds: what is stepped should take a few hundred instructions.
 *
 *     for (uint64_t n = 0; step_run(n, read, change, &context); n++) { judge; prepare anew; }
 *
 * Thread rule: one thread steps at a time. `meanwhile` runs in a signal handler on that thread: it
 * may wait for nothing that the stepped code holds, and allocates only if that does not.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_STEP_H
#define ROLLCALL_TESTS_SUPPORT_STEP_H

#include <stdbool.h>
#include <stdint.h>

typedef void step_fn(void *context);

/* False: this processor, or this build (TSan), cannot; a test says so and is skipped. */
bool step_works(void);

/* Runs `work`, and `meanwhile` once after its first n instructions. False: it was over before,
 * `meanwhile` was not run. */
bool step_run(uint64_t n, step_fn *work, step_fn *meanwhile, void *context);

/* The same for what begins and ends elsewhere on this thread: n instructions from here. */
void step_begin(uint64_t n, step_fn *meanwhile, void *context);
bool step_end(void); /* as step_run */

#endif
