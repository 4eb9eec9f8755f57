/* bench_connect.h: connects to a server. */
#ifndef ROLLCALL_TOOLS_BENCH_CONNECT_H
#define ROLLCALL_TOOLS_BENCH_CONNECT_H

#include <stddef.h>

#define BENCH_CONNECT_ERROR_MAX 256

#define BENCH_PORT "11211"

/*
 * Connects to host:port, [v6]:port, host (then `port`) or /path; blocks while it does, timeout_ms
 * for each address of a name. Returns a descriptor that does not block, to be closed; -1 with
 * `error` when it cannot.
 */
int bench_connect(const char *address, const char *port, unsigned timeout_ms,
                  char error[BENCH_CONNECT_ERROR_MAX]);
/* The host of such an address; "" if it has none, or is a path. */
void bench_connect_host(const char *address, char *host, size_t size);

#endif
