/*
 * server.h: a running server: what workers share, and the service it is to net.
 *
 * The daemon (daemon.c) makes one from settings and spaces, hands its service to net and runs;
 * tests do the same with an engine of their own. Settings and spaces are read by workers inside the
 * barrier and replaced with the world stopped (reload.c).
 *
 * With a data directory the engines are restored before any client can connect; then
 * server_loaded(): each worker takes a sink of the journal at its first turn. The answers of a turn
 * that changed something, or that may tell of a change nobody has written yet, are held until they
 * are written, under sync: always until they are durable (dispatch_journal.c).
 *
 * The order of an end: keeper_end and lister_end; data_stop, after which no read of a dumped table
 * wakes anybody (those wake net itself, so it has to live until then); net_destroy, which ends the
 * workers and gives their sinks and pages back; repl_feeds_stop; then the journal is closed
 * (data_close); then server_destroy; the spaces, with the files of dumped tables; data_destroy. The
 * journal wakes whom it was asked to wake until it is closed, which is after net is gone: so it
 * wakes a server_waker, which lives as long as the server and passes nothing on once its worker has
 * ended.
 *
 * Thread rule: create, attach, destroy on the main thread; publish by a reload; fields marked
 * (barrier) are read inside it; figures are written by their worker and read by anyone.
 */
#ifndef ROLLCALL_REQUEST_SERVER_H
#define ROLLCALL_REQUEST_SERVER_H

#include <pthread.h>
#include <stdint.h>

#include "base/barrier.h"
#include "base/log.h"
#include "config/settings.h"
#include "engine/change.h"
#include "net/net.h"
#include "request/command.h"
#include "space/keeper.h"
#include "space/spaces.h"
#include "store/journal.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.0.0"
#endif

#define SERVER_NAME           "rollcalld"
#define SERVER_WAIT_US        5000000u /* server.wait_us, but in tests */
#define SERVER_NOT_LEADER_MAX 320

struct auth_delay;
struct data;
struct repl_feeds;    /* repl/feed.h */
struct repl_receiver; /* repl/receiver.h */
struct watch;

/* What the journal wakes for a worker. */
struct server_waker {
    pthread_mutex_t lock;   /* of net and the serials, and while something is passed on */
    struct net_worker *net; /* NULL: there is no worker (any more) */
    uint64_t *serials;      /* connections that wait for room */
    size_t serials_count, serials_room;
    _Atomic uint64_t wanted;   /* the highest LSN whose answers wait; by the worker */
    _Atomic uint64_t given;    /* up to where the worker was told … */
    _Atomic uint64_t given_us; /* … and when, clock_monotonic_us */
};

struct server {
    const struct settings *settings; /* (barrier) owned by the creator */
    struct spaces *spaces;           /* (barrier) owned by the creator */
    struct barrier *barrier;
    struct data *data;              /* NULL: in memory only */
    struct journal *journal;        /* NULL: nothing is kept */
    struct change_log *log;         /* NULL with it */
    struct cold *cold;              /* NULL: no table is dumped */
    struct data *followed;          /* NULL: it began with a journal of its own */
    bool follows;                   /* (barrier) another node's records: no change is taken */
    struct repl_receiver *receiver; /* of whoever follows or did; NULL: nobody does */
    char not_leader[SERVER_NOT_LEADER_MAX]; /* what a change is told then */
    bool leased;                            /* an agent says until when it may take changes … */
    _Atomic uint64_t lease_us;              /* … by clock_boot_us; 0: never yet */
    uint64_t promoted_us;                   /* (barrier) since then it leads, likewise */
    bool fenced_said;                       /* worker 0's: the log has that it ended */
    struct repl_feeds *feeds;               /* NULL: nobody can follow */
    bool ack_replica; /* answers to writes wait for a follower: then there are feeds */
    enum journal_sync sync;
    struct server_waker *wakers; /* [threads] */
    struct journal_listener listener;
    _Atomic uint64_t complained_us; /* log_is_due: of the journal */
    struct populate *populate;      /* idle at first */
    struct keeper *keeper;          /* has the spaces' engines; started by the creator */
    struct flush *flush;            /* the keeper's errand */
    struct lister *lister;          /* idle until somebody wants a list */
    uint64_t wait_us;               /* the longest wait of a request (dispatch_wait.c) */
    struct net *net;                /* NULL before server_attach */
    struct auth_delay *auth_delay;
    unsigned threads;
    uint64_t memory_bytes;           /* the limit it was started with: a reload cannot raise it */
    struct engine_growth growth;     /* what of it the settings leave to spaces of any ids */
    struct command_metrics *metrics; /* [server_counting()]; one more: what a reset subtracts */
    struct watch *watches;           /* [threads] */
    struct net_metrics net_base;     /* likewise */
    metric recycled_gone;            /* by engines that are gone: who reloads */
    metric recycled_base;            /* likewise what `stats reset` subtracts */
    metric log_lost_base;            /* likewise */
    uint64_t started_s;              /* monotonic */
    uint64_t watchdog_us;            /* notify_watchdog_us() at the start */
    _Atomic uint64_t *rounds_us;     /* [threads]: the last server_round of each */
    uint64_t watched_us;             /* worker 0's: when the service manager was last told */
    /* Acts on a signal (main thread); returns false to stop. NULL: any signal stops. */
    bool (*signalled)(void *context, const struct signalfd_siginfo *signal);
    void *signalled_context;
};

/* How many count commands: the workers, and the admin listener after them. */
static inline unsigned server_counting(const struct server *server)
{
    return server->threads + 1;
}

/* Where the admin listener counts what its users send for passwords. */
static inline struct command_metrics *server_admin_metrics(struct server *server)
{
    return &server->metrics[server->threads];
}

/*
 * Shares what the settings leave of memory among the spaces' engines, which grow into it
 * (row/row_parts.h). Before the spaces are published, or while nothing is maintained.
 */
void server_share_memory(struct server *server, const struct settings *settings,
                         const struct spaces *spaces);

/* A server for settings->threads workers. Settings and spaces stay the caller's. Never NULL. */
struct server *server_create(const struct settings *settings, struct spaces *spaces);
/*
 * After keeper_end, net_destroy and the end of the journal, before the spaces are dropped. NULL:
 * no-op.
 */
void server_destroy(struct server *server);

/*
 * data_recover has said true: takes data's journal and log. Before net_listen. data: whose figures
 * stats shows; it outlives net, or is forgotten (server->data = NULL) when net is gone.
 */
void server_loaded(struct server *server, struct data *data);
/*
 * The same with any journal: changes are kept by it. log: of the spaces' events, whoever set it on
 * the engines. Before net_listen.
 */
void server_keep(struct server *server, struct journal *journal, struct change_log *log);

/* The service to give to net_create; server outlives net. */
void server_service(struct server *server, struct net_service *service);

/* The net that runs the service; before net_run. */
void server_attach(struct server *server, struct net *net);

/*
 * Worker number `worker` has gone round: once a second, on its thread. As long as each has done so
 * within half the time that the service manager's watchdog allows, worker 0 tells it that the
 * daemon lives.
 */
void server_round(struct server *server, unsigned worker);

/* Publishes what workers read from their next turn on. World stopped. */
void server_publish(struct server *server, const struct settings *settings, struct spaces *spaces);

/* Notes that the node follows that address from here on; "": no node, or it leads. World stopped,
 * or nobody runs. */
void server_set_leader(struct server *server, const char *address);
/* Does it lead, and takes no changes as its agent's word has ended? Any thread. */
bool server_is_fenced(const struct server *server);
/* How long its agent's word holds; 0: it has ended, or there is no agent. Any thread. */
uint64_t server_lease_left_us(const struct server *server);
/* Has the word of a leader's agent ended, or been missing, for so long (0: however long) that
 * another node may have taken changes for all that time? Within turns. */
bool server_is_stale(const struct server *server, unsigned after_s);

/* Logs an error about the journal, unless one was logged in the last LOG_AGAIN_US. Any thread. */
void server_complain(struct server *server, const char *text);

#endif
