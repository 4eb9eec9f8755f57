/*
 * kick.h: a thread that rests until others kick it.
 *
 * Who kicks says that there is something to do, and what was done before is seen by the thread when
 * its wait ends. Kicks while it is not at rest are one kick, at once at the next wait. Apart from a
 * condition because each side of that takes a lock and some 250 instructions besides: a kick of a
 * thread that is busy is one exchange, and one of a thread at rest a system call more.
 */
#ifndef ROLLCALL_BASE_KICK_H
#define ROLLCALL_BASE_KICK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum kick_state { KICK_BUSY, KICK_RESTS, KICK_KICKED };

struct kick {
    _Atomic uint32_t state; /* enum kick_state; what the kernel waits on */
};

static inline void kick_init(struct kick *kick) /* busy */
{
    atomic_init(&kick->state, KICK_BUSY);
}

void kick_thread(struct kick *kick); /* any thread */
void kick_await(struct kick *kick);  /* the thread itself: rests until it is kicked */

/* Returns whether it waits, and nobody has kicked it. Any thread. */
static inline bool kick_rests(const struct kick *kick)
{
    return atomic_load(&kick->state) == KICK_RESTS;
}

#endif
