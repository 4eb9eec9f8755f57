/*
 * private.h: a worker and its connections, as worker.c, conn.c, gather.c and hold.c know them. Only
 * src/net includes it.
 *
 * A connection is always in exactly one of these places, and the event that moves it on is the one
 * named:
 *     reading     next WAIT, nothing to send      its socket is readable
 *     queued      next AGAIN, nothing to send     its turn on the run list; also with next WAIT
 *                                                 while its TLS session holds bytes to be read
 *     suspended   next SUSPENDED, nothing to send a wake
 *     gathered    an answer waits, any next       the end of the wake-up, or earlier
 *     held        answers held, any next          the commit at the end of the wake-up
 *     waiting     committed, any next             net_release
 *     sealed      the same, in its own output     net_release
 *     draining    something to send, any next     its socket is writable
 *     lingering   next CLOSE, all sent            the peer's FIN, or NET_LINGER_S
 * Under TLS reading may wait for the socket to be writable, and draining for it to be readable.
 *
 * Everything here runs on the worker's thread unless said otherwise.
 */
#ifndef ROLLCALL_NET_PRIVATE_H
#define ROLLCALL_NET_PRIVATE_H

#include <pthread.h>
#include <semaphore.h>
#include <sys/queue.h>

#include "base/log.h"
#include "net/net.h"
#include "net/poll.h"

#define NET_CONN_MAGIC     0x6e636f6eu
#define NET_SWEEP_S        1    /* how often time-outs are looked at */
#define NET_SWEEP_BUCKETS  1024 /* of the connection table in one wake-up */
#define NET_TABLE_BUCKETS  64   /* of an empty connection table; a power of two */
#define NET_LINGER_S       2    /* for a client that is still sending when it is closed */
#define NET_IN_SLACK_BYTES 4096 /* a private input larger than this is cut to what it holds */
#define NET_OUT_KEEP_BYTES (256u << 10) /* a worker's output buffer keeps this much */
#define NET_GATHER_CONNS   32           /* answers that are sent together at most */
#define NET_GATHER_BYTES   (4u << 10)   /* a longer answer is sent at once, not copied first */

/* What all workers share. */
struct net_common {
    struct net_service service;
    struct budget *budget;
    _Atomic unsigned connections; /* open: raised by the main thread, lowered by the workers */
    _Atomic unsigned idle_timeout_s;
    _Atomic unsigned request_timeout_s;
    unsigned hold_stall_s;
};

enum net_hold_place {
    NET_HOLD_NONE,
    NET_HOLD_GATHERED,
    NET_HOLD_HELD,
    NET_HOLD_WAITING,
    NET_HOLD_SEALED,
};

/*
 * Invariants (net_conn_check):
 * 1. in_done <= in.length, out_done <= out.length, and a buffer that is used up holds nothing.
 * 2. without TLS its events are EPOLLOUT exactly while draining.
 * 3. queued exactly while next is AGAIN, or WAIT with bytes in the TLS session, and nothing is to
 * be sent, gathered, held, waiting or sealed.
 * 4. `out` holds nothing while gathered, held or waiting, and all the answers while sealed.
 */
struct net_conn {
    uint32_t magic;
    int fd;
    uint64_t serial;
    struct net_worker *worker;
    struct net_watcher watcher;   /* of its socket */
    struct net_tls *tls;          /* NULL: no TLS, or none any more: lingering */
    struct net_conn *bucket_next; /* in the worker's table */
    TAILQ_ENTRY(net_conn) run;    /* while in one of the lists of its worker */
    struct buf in;                /* private input; the first in_done bytes are done with */
    struct buf out;               /* private output; the first out_done bytes are sent */
    uint32_t in_done;
    uint32_t out_done;
    uint64_t progress_us; /* when a request last began or ended, or output was taken */
    uint8_t next;         /* enum net_next */
    uint8_t hold;         /* enum net_hold_place */
    bool queued;
    bool lingering;
    bool unread; /* CLOSE left input over */
    struct {
        uint32_t begin; /* gathered, held, waiting: its answers among the worker's */
        uint32_t length;
    } held;
    uint64_t wait; /* waiting, sealed: the number that lets them go */
    uint64_t state[NET_STATE_BYTES_MAX / sizeof(uint64_t)];
};

_Static_assert(sizeof(struct net_conn) <= 1024, "an idle connection costs at most 1 KiB");

/* A letter from another thread to a worker: a socket to adopt, or (fd -1) a connection to wake. */
struct net_letter {
    uint64_t serial;
    int fd;
    struct net_tls_context *tls; /* to adopt with; a reference. NULL: without TLS */
};

struct net_letters {
    struct net_letter *items;
    size_t count;
    size_t room;
};

TAILQ_HEAD(net_conns, net_conn);

/* Answers of several connections that leave together, at the end of the wake-up or earlier. */
struct net_gathered {
    struct buf bytes;
    struct net_conns conns;
    unsigned count;
};

/* Answers that may not leave yet. */
struct net_hold {
    struct buf bytes;         /* of all that are held or waiting */
    struct net_conns held;    /* since the last commit */
    struct net_conns waiting; /* in the order of `wait`; none is below the last that is sealed */
    struct net_conns sealed;  /* their answers are in their `out`; in the order of `wait` */
    bool uncommitted;         /* a turn was to be held since the last commit */
    uint64_t wait_last;
    _Atomic uint64_t released; /* the highest number released */
    /* While the worker sleeps: a release of this number or more has to wake it, and sets it to
     * none. */
    _Atomic uint64_t wake_at;
    _Atomic bool no_more; /* what was not released by now never will be */
};

struct net_worker {
    struct net_common *common;
    struct net_metrics metrics;
    unsigned index;
    void *state;               /* the service's */
    struct budget_part budget; /* of the private buffers of its connections */
    uint64_t now_us;           /* when the last wake-up began */
    bool in_turns;             /* turns_begin was called */
    char *read;                /* NET_READ_BYTES */
    struct buf out;
    struct net_turn turn; /* the one under way */
    struct net_conns run_list;
    size_t run_count;
    struct net_gathered gathered;
    struct net_hold hold;

    struct net_conn **buckets; /* by serial */
    size_t bucket_count;       /* a power of two */
    size_t conn_count;
    size_t sweep_next; /* bucket the sweep goes on with; bucket_count: none is running */

    uint64_t tick_us; /* when the next tick is due */
    struct net_watcher mail_watcher;
    int mail_fd; /* eventfd: written when `mail` stops being empty, for a release, and to stop */
    _Atomic bool has_mail;       /* raised with each letter, before the signal */
    pthread_mutex_t mail_lock;   /* of `mail` */
    struct net_letters mail;     /* arriving */
    struct net_letters mail_now; /* being read */
    _Atomic bool stopping;
    pthread_t thread;
    bool started;
    sem_t opened; /* posted when worker_open has returned */
    struct net_poll poll;
};

/* worker.c */
struct net_worker *net_worker_create(struct net_common *common, unsigned index); /* NULL: errno */
bool net_worker_start(struct net_worker *worker); /* returns when worker_open has. False: errno */
/* Ends every connection and the thread; a second call does nothing. By the creator. */
void net_worker_stop(struct net_worker *worker);
/* Stops it and frees all. NULL: no-op. */
void net_worker_destroy(struct net_worker *worker);
/* Any thread. Takes the reference `tls` over (NULL: no TLS), as it does fd. */
void net_worker_adopt(struct net_worker *worker, int fd, uint64_t serial,
                      struct net_tls_context *tls);

/* Called before a turn or `closed`: turns_begin, once a wake-up. */
static inline void net_worker_turns(struct net_worker *worker)
{
    if (!worker->in_turns) {
        worker->in_turns = true;
        worker->common->service.turns_begin(worker->state);
    }
}
void net_worker_queue(struct net_worker *worker, struct net_conn *conn); /* to the run list */
void net_worker_enter(struct net_worker *worker, struct net_conn *conn); /* into the table */
void net_worker_leave(struct net_worker *worker, struct net_conn *conn); /* table and any list */
void net_worker_signal(struct net_worker *worker); /* any thread: wakes it up */

/* conn.c. After any of these but check, the connection may be gone. */
/* Takes fd and the reference `tls` over. */
void net_conn_open(struct net_worker *worker, int fd, uint64_t serial, struct net_tls_context *tls);
void net_conn_close(struct net_conn *conn);
void net_conn_run(struct net_conn *conn);   /* from the run list */
void net_conn_woken(struct net_conn *conn); /* by net_wake */
void net_conn_answer(struct net_conn *conn, const char *bytes, size_t length); /* gathered, held */
void net_conn_unseal(struct net_conn *conn); /* sends what was sealed */
void net_conn_sweep(struct net_conn *conn);  /* closes it if its time is up */
void net_conn_check(const struct net_conn *conn);
void net_conn_close_for_budget(struct net_conn *conn);
/*
 * Appends to a private buffer of conn. When the budget is used up, connections of its worker that
 * hold more than conn then would are closed, the largest first. False: there is no room.
 */
bool net_conn_keep(struct net_conn *conn, struct buf *buf, const char *bytes, size_t length);

/* leave.c */
/* After NET_LEAVE: hands socket, session and the bytes that are left to the service. It is gone. */
void net_conn_leave(struct net_conn *conn, const char *bytes, size_t length);

/* gather.c */
void net_gather_init(struct net_gathered *gathered);
void net_gather_fini(struct net_gathered *gathered);
/* Returns whether no other connection has or had a turn in this wake-up, so that there is nothing
 * to gather. */
static inline bool net_gather_is_alone(const struct net_worker *worker)
{
    return worker->gathered.count == 0 && worker->run_count == 0 && net_poll_is_last(&worker->poll);
}
/* Puts the worker's output off, if it is short. May send: any connection may then be gone. False:
 * nothing was done. */
bool net_gather_keep(struct net_conn *conn);
void net_gather_leave(struct net_conn *conn); /* off the list; what was gathered is dropped */
void net_gather_send(struct net_worker *worker);

/* hold.c */
void net_hold_init(struct net_hold *hold);
void net_hold_fini(struct net_hold *hold);
/* Holds the worker's output for this connection. May commit: any connection may then be gone. */
void net_hold_keep(struct net_conn *conn);
void net_hold_leave(struct net_conn *conn); /* off the list it is on; what was held is dropped */
void net_hold_commit(struct net_worker *worker);
void net_hold_release(struct net_worker *worker); /* sends what was released */
/* Called before and after the event loop: a release wakes the worker only in between. The first
 * sends what was released until then. */
void net_hold_sleep_waiting(struct net_worker *worker); /* for net_hold_sleep() alone */
static inline void net_hold_sleep(struct net_worker *worker)
{
    const struct net_hold *hold = &worker->hold;
    if (UNLIKELY(!TAILQ_EMPTY(&hold->waiting) || !TAILQ_EMPTY(&hold->sealed))) {
        net_hold_sleep_waiting(worker);
    }
}
void net_hold_awake(struct net_worker *worker);

#endif
