/*
 * server.h: a running server: what workers share, and the service it is to net.
 *
 * The daemon (daemon.c) makes one from settings and spaces, hands its service to net and runs;
 * tests do the same with an engine of their own. Settings and spaces are read by workers inside the
 * barrier and replaced with the world stopped (reload.c, and flush_all from a worker's own turn).
 *
 * Thread rule: create, attach, publish, destroy on the main thread; fields marked (barrier) are
 * read inside it; figures are written by their worker and read by anyone.
 */
#ifndef ROLLCALL_SERVER_SERVER_H
#define ROLLCALL_SERVER_SERVER_H

#include <pthread.h>
#include <stdint.h>

#include "base/barrier.h"
#include "engine/change.h"
#include "net/net.h"
#include "server/command.h"
#include "server/keeper.h"
#include "server/settings.h"
#include "server/spaces.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.0.0"
#endif

#define SERVER_NAME "rollcalld"

struct server {
    const struct settings *settings; /* (barrier) owned by the creator */
    struct spaces *spaces;           /* (barrier) owned by the creator */
    struct barrier *barrier;
    struct change_sink *sink;
    struct populate *populate; /* idle at first */
    struct keeper *keeper;     /* has the spaces' engines; started by the creator */
    struct net *net;           /* NULL before server_attach */
    unsigned threads;
    uint64_t memory_bytes;           /* the limit it was started with: a reload cannot raise it */
    struct command_metrics *metrics; /* [threads]; one more: what `stats reset` subtracts */
    struct net_metrics net_base;     /* likewise */
    metric recycled_gone;            /* by engines that are gone. Main thread */
    metric recycled_base;            /* likewise what `stats reset` subtracts */
    uint64_t started_s;              /* monotonic */
    /* Acts on a signal (main thread); returns false to stop. NULL: any signal stops. */
    bool (*signalled)(void *context, int signal_number);
    void *signalled_context;
};

/* A server for settings->threads workers. Settings and spaces stay the caller's. Never NULL. */
struct server *server_create(const struct settings *settings, struct spaces *spaces);
/* After keeper_end and net_destroy, before the spaces are dropped. NULL: no-op */
void server_destroy(struct server *server);

/* The service to give to net_create; server outlives net. */
void server_service(struct server *server, struct net_service *service);

/* The net that runs the service; before net_run. */
void server_attach(struct server *server, struct net *net);

/* With the world stopped: what workers read from their next turn on. */
void server_publish(struct server *server, const struct settings *settings, struct spaces *spaces);

/*
 * Empties every space with the world stopped, and nothing maintained or populated meanwhile. By a
 * worker in its turn: `member` steps out, so two workers that do it at once take turns; nothing
 * read inside the barrier before is valid after.
 */
void server_clear(struct server *server, struct barrier_member *member);

#endif
