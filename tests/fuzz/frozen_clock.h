/* frozen_clock.h: a clock that stands still. One thread. */
#ifndef ROLLCALL_TESTS_FUZZ_FROZEN_CLOCK_H
#define ROLLCALL_TESTS_FUZZ_FROZEN_CLOCK_H

void frozen_clock_reset(void); /* clock_random() begins again */

#endif
