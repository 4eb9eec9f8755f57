/*
 * notify.h: what the daemon tells the service manager that started it (sd_notify(3)).
 */
#ifndef ROLLCALL_BASE_NOTIFY_H
#define ROLLCALL_BASE_NOTIFY_H

#include <stdint.h>

/* Tells the service manager, if there is one (NOTIFY_SOCKET): e.g. "READY=1". Any thread. */
void notify_manager(const char *state);

/*
 * Microseconds after which the service manager takes this process for dead unless it has said
 * "WATCHDOG=1" (sd_watchdog_enabled(3)); 0: it does not watch.
 */
uint64_t notify_watchdog_us(void);

#endif
