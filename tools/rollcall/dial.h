/* dial.h: connects to a server. */
#ifndef ROLLCALL_TOOLS_DIAL_H
#define ROLLCALL_TOOLS_DIAL_H

#include <stddef.h>

#define DIAL_ERROR_MAX 256

#define DIAL_PORT "11211"

/*
 * Connects to host:port, [v6]:port, host (then `port`) or /path; blocks while it does, timeout_ms
 * for each address of a name. Returns a descriptor that does not block, to be closed; -1 with
 * `error` when it cannot.
 */
int dial_server(const char *address, const char *port, unsigned timeout_ms,
                char error[DIAL_ERROR_MAX]);
/* The host of such an address; "" if it has none, or is a path. */
void dial_host(const char *address, char *host, size_t size);

#endif
