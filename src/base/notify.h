/*
 * notify.h: what the daemon tells the service manager that started it (sd_notify(3)).
 */
#ifndef ROLLCALL_BASE_NOTIFY_H
#define ROLLCALL_BASE_NOTIFY_H

/* Tells the service manager, if there is one (NOTIFY_SOCKET): e.g. "READY=1". Any thread. */
void notify_manager(const char *state);

#endif
