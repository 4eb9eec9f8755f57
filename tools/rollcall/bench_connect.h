/* bench_connect.h: connects to a server. */
#ifndef ROLLCALL_TOOLS_BENCH_CONNECT_H
#define ROLLCALL_TOOLS_BENCH_CONNECT_H

#define BENCH_CONNECT_ERROR_MAX 256

/*
 * Connects to host:port, [v6]:port, host (port 11211) or /path; blocks while it does. Returns a
 * descriptor that does not block, to be closed; -1 with `error` when it cannot.
 */
int bench_connect(const char *address, char error[BENCH_CONNECT_ERROR_MAX]);

#endif
