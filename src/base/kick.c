/* kick.c: the kernel's wait for a word (futex(2)), of which libc has no function. */
#include "base/kick.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

static void futex(struct kick *kick, int operation, uint32_t value)
{
    (void)syscall(SYS_futex, &kick->state, operation | FUTEX_PRIVATE_FLAG, value, NULL);
}

void kick_thread(struct kick *kick)
{
    if (atomic_exchange(&kick->state, KICK_KICKED) == KICK_RESTS) {
        futex(kick, FUTEX_WAKE, 1);
    }
}

/* The state is taken down by an exchange: so the thread sees all that was put before a kick that
 * found it up. */
void kick_await(struct kick *kick)
{
    uint32_t busy = KICK_BUSY;

    if (atomic_compare_exchange_strong(&kick->state, &busy, KICK_RESTS)) {
        do { /* the kernel may end a wait for no reason */
            futex(kick, FUTEX_WAIT, KICK_RESTS);
        } while (kick_rests(kick));
    }
    CHECK(atomic_exchange(&kick->state, KICK_BUSY) == KICK_KICKED);
}
