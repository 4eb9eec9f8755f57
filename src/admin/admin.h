/*
 * admin.h: what operators look at, over HTTP: the status page, metrics, and answers for those that
 * ask whether this daemon can be used.
 *
 *     /             the status page
 *     /metrics      Prometheus' text format (README.md has the table)
 *     /status.json  the figures of the page, for programs (README.md has the schema)
 *     /healthz      200 when requests are served, else 503 and why not
 *     /leader       200 when this daemon takes writes, else 503: a single daemon does
 *     /follower     the opposite
 *
 * A thread and an event loop of its own, on libevent's evhttp. It only reads: figures of workers
 * are atomics, those of spaces are read as a member of the barrier, in steps of a few tables, so
 * that who stops the world waits less than a millisecond for it. It touches no disk, which may
 * hang. Once a second it takes a sample of the counting figures: rates come from these.
 *
 * Limits: ADMIN_CONNECTIONS_MAX connections, others wait in the backlog. A connection has one
 * request and ADMIN_DEADLINE_S for all of it, from connecting to the last byte of the answer; while
 * all are taken, ADMIN_CROWDED_S. An answer is made at most once a second and shared by all who ask
 * meanwhile, so many requests cost little more than one.
 *
 * With admin-auth the page, the metrics and status.json want a user (HTTP Basic); wrong passwords
 * delay their address as those of the memcached port do (request/auth_delay.h).
 *
 * Thread rule: main thread, but for admin_reloaded.
 */
#ifndef ROLLCALL_ADMIN_ADMIN_H
#define ROLLCALL_ADMIN_ADMIN_H

#include <stdbool.h>

#define ADMIN_CONNECTIONS_MAX 64
#define ADMIN_DEADLINE_S      10
#define ADMIN_CROWDED_S       1
#define ADMIN_ERROR_MAX       384

struct admin;
struct data;
struct server;

/*
 * Binds `address`, host:port or [v6]:port: clients can connect and wait. data: what loads
 * meanwhile, whose progress is told; NULL: none. NULL with `error`, which begins with the address
 * when another program has it (*in_use).
 */
struct admin *admin_create(const char *address, struct server *server, struct data *data,
                           char error[ADMIN_ERROR_MAX], bool *in_use);
/* Answers from here on that the daemon loads. False with errno: there is no thread. */
bool admin_start(struct admin *admin);
/* Requests are served: server_loaded() and server_attach() came before. NULL: no-op. */
void admin_serving(struct admin *admin);
/* A reload has ended so. Any thread. NULL: no-op. */
void admin_reloaded(struct admin *admin, bool well);
/* Ends the thread and closes all. Before the keeper, the data and net end. NULL: no-op. */
void admin_destroy(struct admin *admin);

/* The address as bound, e.g. "127.0.0.1:43211". */
const char *admin_address(const struct admin *admin);

#endif
