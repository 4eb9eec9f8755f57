/* clock_random.c: random bits from the kernel. The file stands alone because tests link another
 * one, whose bits a seed repeats. */
#include "base/clock.h"

#include <errno.h>
#include <sys/random.h>

#include "base/check.h"

uint64_t clock_random(void)
{
    uint64_t bits;
    ssize_t got;
    do {
        got = getrandom(&bits, sizeof(bits), 0);
    } while (got < 0 && errno == EINTR);
    CHECK(got == (ssize_t)sizeof(bits));
    return bits;
}
