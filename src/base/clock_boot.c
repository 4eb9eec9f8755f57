/* clock_boot.c: time since the machine started. The file stands alone because tests link another
 * clock, which does not know this one. */
#include "base/clock.h"

#include "base/check.h"

#include <time.h>

uint64_t clock_boot_us(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_BOOTTIME, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}
