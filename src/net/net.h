/*
 * net.h: sockets. Listeners, worker threads with one event loop each, connections.
 *
 * net moves bytes; what they mean is the service's. For every connection that can go on, its worker
 * calls service->turn() with the bytes it has; the service consumes some of them, appends answers
 * to `out` and says how to go on. The worker then sends `out` in one write; short ones at the end
 * of its wake-up at the latest, those of several connections one right after the other.
 *
 * Memory: a worker reads into one buffer of its own (NET_READ_BYTES) and composes into another.
 * Only what a turn leaves over is copied to a private buffer of the connection, from one budget all
 * connections share, half of which is kept for the workers in equal parts; an idle connection holds
 * no buffer. A connection with private input that
 * could go on is put on its worker's run list: no socket event will come for it.
 *
 * Output beyond the socket's room is kept privately, and the connection is not read until it has
 * drained; NET_WRITE_STALL_S without progress closes it.
 *
 * Answers may have to wait until what they acknowledge is kept, and that costs a write which all
 * turns of a wake-up should share. So a turn may have its answers held: the worker keeps them and
 * calls service->commit() once at the end of the wake-up (earlier when it holds NET_HOLD_BYTES).
 * That says of all answers held by then: send them; or they wait for a number, and go when
 * net_release() has been called with it; or they must never be sent. A connection whose answers are
 * held or wait is not read and gets no turn, so its answers stay in order. Others do not wait. A
 * connection that has waited for NET_HOLD_STALL_S is closed: what became of the request is not
 * known then.
 *
 * With TLS (net/tls.h) all of this is the same: bytes are those inside it. What its sessions hold
 * is memory of the library, and not in the budget.
 *
 * Threads: net_create() starts `threads` workers; the caller's thread runs net_run(): signals and
 * the listeners. Accepted connections are dealt to the workers in turn. A connection belongs to one
 * worker for life; all service functions for it run on that worker's thread.
 */
#ifndef ROLLCALL_NET_NET_H
#define ROLLCALL_NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/metrics.h"

struct signalfd_siginfo; /* <sys/signalfd.h> */

#define NET_READ_BYTES       (64u << 10)                /* the worker's read buffer */
#define NET_INPUT_MAX        ((1u << 20) + (64u << 10)) /* a connection's private input */
#define NET_OUTPUT_MAX       ((1u << 20) + (64u << 10)) /* answers of one turn */
#define NET_HOLD_BYTES       (1u << 20) /* held answers of a worker that make it commit early */
#define NET_WRITE_STALL_S    60
#define NET_HOLD_STALL_S     60 /* answers wait for a release for so long at most */
#define NET_ACCEPTS_PER_TURN 64
#define NET_STATE_BYTES_MAX  64 /* the service's state embedded in a connection */
#define NET_THREADS_MAX      64
#define NET_LISTEN_MAX       64
#define NET_ERROR_MAX        256
#define NET_PLAIN_PREFIX     "notls:" /* before an address: without TLS, even if others have it */

/* One row a figure: see base/metrics.h. Counted per worker (per listener: on the main thread). */
#define NET_METRICS(X)                                                                             \
    X(total_connections, "connections accepted since the start")                                   \
    X(curr_connections, "connections open now")                                                    \
    X(rejected_connections, "connections refused for max-connections or want of descriptors")      \
    X(listen_disabled_num, "times accepting paused for want of descriptors or memory")             \
    X(bytes_read, "bytes received")                                                                \
    X(bytes_written, "bytes sent")                                                                 \
    X(idle_closed, "connections closed by idle-timeout")                                           \
    X(request_timeouts, "connections closed with a half-sent request")                             \
    X(write_stalls, "connections closed because they did not read")                                \
    X(hold_stalls, "connections closed because the disk did not take what they changed")           \
    X(conn_yields, "turns ended for fairness")                                                     \
    X(budget_closed, "connections closed because the buffers' budget was used up")                 \
    X(ssl_handshake_errors, "connections closed because TLS was not agreed upon")                  \
    X(ssl_proto_errors, "connections closed because what came was not TLS any more")               \
    X(ssl_new_sessions, "TLS sessions agreed upon")

struct net_metrics {
    NET_METRICS(METRIC_FIELD)
};

struct net;
struct net_tls;         /* net/tls.h */
struct net_tls_context; /* net/tls.h */
struct net_worker;
struct net_conn;

enum net_next {
    NET_WAIT,      /* what is left needs more bytes from the client */
    NET_AGAIN,     /* more can be done with what is left: fairness, or the output was full */
    NET_SUSPENDED, /* nothing until net_wake(); then turn() is called again with what is left */
    NET_CLOSE,     /* send what is in `out`, then close */
    NET_LEAVE,     /* `out` is empty, nothing is to be held: it is the service's from now on */
};

/* A connection that leaves net, by service->left. */
struct net_left {
    int fd;              /* does not block; the service's */
    struct net_tls *tls; /* its session, the service's; NULL: none */
    const char *in;      /* what was read of it and not consumed; valid during the call */
    size_t in_length;
};

struct net_turn {
    const char *in;   /* valid during the call */
    size_t in_length; /* may be 0 (after a wake) */
    size_t consumed;  /* set by the service: bytes of `in` that are done with */
    struct buf *out;  /* empty at the start of the call; at most NET_OUTPUT_MAX bytes */
    bool hold;        /* set by the service: `out` leaves only after a commit */
};

enum net_commit {
    NET_COMMITTED,     /* the held answers leave now */
    NET_COMMIT_LATER,  /* they leave when net_release() has been called with *wait or more */
    NET_COMMIT_FAILED, /* they are thrown away and their connections closed */
};

/* What the server is to net. */
struct net_service {
    void *context;
    /* A worker thread starts, ends. The state is handed to the others. */
    void *(*worker_open)(void *context, struct net_worker *worker);
    void (*worker_close)(void *worker_state);
    /* Called before and after all turns and `closed` of one wake-up: between the two the worker
     * does not sleep. */
    void (*turns_begin)(void *worker_state);
    void (*turns_end)(void *worker_state);
    enum net_next (*turn)(void *worker_state, struct net_conn *conn, struct net_turn *turn);
    /*
     * Called once for all turns since the last commit that set `hold` (also if they had no answer):
     * says what becomes of the held answers. Between turns_begin and turns_end. *wait: with
     * NET_COMMIT_LATER, below UINT64_MAX and never lower than the worker's last one. NULL: `hold`
     * is ignored.
     */
    enum net_commit (*commit)(void *worker_state, uint64_t *wait);
    /* Asked before held answers leave that were released: false closes their connections. May be
     * NULL: they may leave. */
    bool (*may_leave)(void *worker_state);
    /* Once a second (NET_SWEEP_S), not in a turn; net_worker_each and net_wake may be called. May
     * be NULL. */
    void (*tick)(void *worker_state);
    /* After NET_LEAVE, before `closed`: takes socket and session. NULL: there is no NET_LEAVE. */
    void (*left)(void *worker_state, struct net_conn *conn, const struct net_left *left);
    /* The connection is gone, for any reason: also while it is suspended, or its answers are held.
     */
    void (*closed)(void *worker_state, struct net_conn *conn);
    /* On the main thread: a signal of net_run's descriptor. Return false to stop. May be NULL. */
    bool (*signalled)(void *context, const struct signalfd_siginfo *signal);
    size_t state_bytes; /* of the service's state in each connection, zeroed at open */
};

/* A user and group by number. */
struct net_owner {
    uid_t user;
    gid_t group;
};

struct net_options {
    const char *const *addresses; /* host:port, [v6]:port, /path.sock; port 0: any free one */
    size_t address_count;
    unsigned unix_mode;                 /* permission bits of unix sockets, e.g. 0700 */
    const struct net_owner *unix_owner; /* whom they belong to; NULL: the user who makes them */
    unsigned threads;                   /* 1 .. NET_THREADS_MAX */
    unsigned max_connections;
    unsigned backlog;           /* of listen(2) */
    unsigned idle_timeout_s;    /* 0: never */
    unsigned request_timeout_s; /* 0: never */
    unsigned hold_stall_s;      /* 0: NET_HOLD_STALL_S */
    struct budget *budget;      /* of all private buffers */
    /* NULL: no TLS. Else on all addresses but unix sockets and those that begin with
     * NET_PLAIN_PREFIX. net takes a reference of its own. */
    struct net_tls_context *tls;
};

/*
 * Binds the addresses and starts the workers (asleep; every worker_open has returned). Nobody can
 * connect before net_listen, and nothing is accepted before net_run. Returns NULL with `error`
 * filled; *in_use is set when an address is taken (error then begins with that address). SIGPIPE is
 * ignored from here on.
 */
struct net *net_create(const struct net_options *options, const struct net_service *service,
                       char error[NET_ERROR_MAX], bool *in_use);
/* Opens the addresses: clients that connect from here on wait for net_run. False: as net_create. */
bool net_listen(struct net *net, char error[NET_ERROR_MAX], bool *in_use);
/*
 * Runs the listeners and signals on this thread until net_stop() or a signal asks it to end.
 * signal_fd: a signalfd(2) that does not block, whose signals all threads block; -1: none. It is
 * the caller's, and tells who sent a signal, which no handler of libevent's does.
 */
void net_run(struct net *net, int signal_fd);
void net_stop(struct net *net);    /* any thread */
void net_destroy(struct net *net); /* ends the workers, closes everything. NULL: no-op */

/* Changes options that may change while running. Any thread, one at a time; likewise net_renew_tls.
 */
void net_reconfigure(struct net *net, unsigned max_connections, unsigned idle_timeout_s,
                     unsigned request_timeout_s);

/* Connections accepted from now on have this TLS, those that are open keep theirs. Whether an
 * address has TLS does not change: without it at the start this does nothing. */
void net_renew_tls(struct net *net, struct net_tls_context *tls);

/* The address of listener i as bound, e.g. "127.0.0.1:43211"; NULL beyond the last. */
const char *net_address(const struct net *net, size_t i);
bool net_address_tls(const struct net *net, size_t i); /* whether it has TLS */

/* The version of the event library, for `stats`. Any thread. */
const char *net_library_version(void);

/* Sums of all workers' figures. Any thread. */
void net_metrics_sum(const struct net *net, struct net_metrics *sum);

/* Calls visit for each connection of a worker: on that worker's thread only. */
typedef void net_conn_visit(void *context, const struct net_conn *conn);
void net_worker_each(struct net_worker *worker, net_conn_visit *visit, void *context);
unsigned net_worker_index(const struct net_worker *worker);
uint64_t net_worker_now_us(const struct net_worker *worker); /* taken once a wake-up */

/* A connection: the service's state, its number (never used again), peer, descriptor, private
 * bytes. */
void *net_conn_state(struct net_conn *conn);
uint64_t net_conn_serial(const struct net_conn *conn);
const char *net_conn_peer(const struct net_conn *conn, char text[128]);
/*
 * The same number for all connections of one who could open any number of them: of an IPv4 address,
 * a network of 64 bits of IPv6, a user of this machine (unix sockets). A system call.
 */
uint64_t net_conn_origin(const struct net_conn *conn);
/* Whether the client has closed its side of the connection, or all of it: nothing tells which. What
 * it sent before may still be unread. A system call. */
bool net_conn_ended(const struct net_conn *conn);
int net_conn_fd(const struct net_conn *conn);
size_t net_conn_held_bytes(const struct net_conn *conn);
uint64_t net_conn_idle_s(const struct net_conn *conn);

/*
 * Any thread: the suspended connection `serial` of this worker can go on. A serial that is gone, or
 * not suspended yet in the turn that is running, is remembered or ignored: never lost, never wrong.
 * Its type is that of ticket_wake_fn.
 */
void net_wake(void *worker, uint64_t serial);

/*
 * Any thread: answers of this worker that wait for a number <= upto may leave; they do in the order
 * of their numbers. May come before the commit that names the number has returned: what was
 * released once stays so, the highest `upto` counts. Wakes the worker only if something waits for
 * it and the worker sleeps, once for all that wait. As with net_wake, no call may be under way or
 * come once net_destroy has returned. What waits at net_destroy is never sent.
 * Its type is that of ticket_wake_fn.
 */
void net_release(void *worker, uint64_t upto);

/*
 * Any thread: of this worker's answers only those that were released still leave; the connections
 * of all others that wait are closed, now and whenever one comes to wait. For ever. As to the time
 * of a call: as net_release.
 */
void net_release_no_more(void *worker);

#endif
