/* conn.c: one connection: its reads, its writes, the turns it gets, its end. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "net/direct.h"
#include "net/peer.h"
#include "net/private.h"
#include "net/tls.h"

static void on_event(void *owner);

/* Asks for other socket events than now. False: the kernel refused, the connection must be closed.
 */
static bool want(struct net_conn *conn, uint32_t events)
{
    return net_poll_want(&conn->worker->poll, &conn->watcher, conn->fd, events);
}

/* No memory for it. */
static void conn_refuse(struct net_worker *worker, int fd)
{
    close(fd);
    atomic_fetch_sub(&worker->common->connections, 1);
}

void net_conn_open(struct net_worker *worker, int fd, uint64_t serial, struct net_tls_context *tls)
{
    struct net_conn *conn = calloc(1, sizeof(*conn));
    struct net_tls *session = conn != NULL && tls != NULL ? net_tls_create(tls, fd) : NULL;
    bool lacking = conn == NULL || (tls != NULL && session == NULL);
    net_tls_context_release(tls);
    if (lacking) {
        conn_refuse(worker, fd);
        free(conn);
        return;
    }
    conn->magic = NET_CONN_MAGIC;
    conn->fd = fd;
    conn->watcher = (struct net_watcher){.ready = on_event, .owner = conn};
    conn->serial = serial;
    conn->worker = worker;
    conn->tls = session;
    conn->next = NET_WAIT;
    conn->progress_us = worker->now_us;
    buf_init(&conn->in, NET_INPUT_MAX, &worker->budget);
    buf_init(&conn->out, NET_OUTPUT_MAX, &worker->budget);
    net_worker_enter(worker, conn);
    if (!want(conn, EPOLLIN)) {
        net_conn_close(conn);
    }
}

void net_conn_close(struct net_conn *conn)
{
    struct net_worker *worker = conn->worker;
    CHECK(conn->magic == NET_CONN_MAGIC);
    metric_add(&worker->metrics.ssl_proto_errors, conn->tls != NULL && net_tls_failed(conn->tls));
    (void)want(conn, 0);
    net_worker_leave(worker, conn);
    net_worker_turns(worker); /* `closed` may touch what turns touch */
    worker->common->service.closed(worker->state, conn);
    net_tls_destroy(conn->tls);
    buf_fini(&conn->in);
    buf_fini(&conn->out);
    /* The place is given back before the socket is closed: a client that saw the end may come again
     * at once. */
    atomic_fetch_sub(&worker->common->connections, 1);
    close(conn->fd);
    conn->magic = 0;
    free(conn);
}

/* why NULL: as it was configured, which is no news. */
static void conn_close_counted(struct net_conn *conn, metric *reason, const char *why)
{
    metric_add(reason, 1);
    if (why != NULL) {
        net_peer_log_closed(conn->fd, why);
    }
    net_conn_close(conn);
}

void net_conn_close_for_budget(struct net_conn *conn)
{
    conn_close_counted(conn, &conn->worker->metrics.budget_closed, "no buffer is left");
}

/* Returns the connection that holds most of the budget, and more than `least`, among those that
 * only wait for their client: closing one of these changes no list. NULL: there is none. */
static struct net_conn *find_hoarder(const struct net_worker *worker, size_t least)
{
    struct net_conn *hoarder = NULL;
    for (size_t i = 0; i < worker->bucket_count; i++) {
        for (struct net_conn *conn = worker->buckets[i]; conn != NULL; conn = conn->bucket_next) {
            bool waits = conn->hold == NET_HOLD_NONE && !conn->queued &&
                         (conn->out.length > 0 || conn->next == NET_WAIT);
            if (waits && net_conn_held_bytes(conn) > least) {
                hoarder = conn;
                least = net_conn_held_bytes(conn);
            }
        }
    }
    return hoarder;
}

bool net_conn_keep(struct net_conn *conn, struct buf *buf, const char *bytes, size_t length)
{
    while (!buf_append(buf, bytes, length)) {
        bool fits = length <= buf->length_max - buf->length;
        struct net_conn *hoarder =
            fits ? find_hoarder(conn->worker, net_conn_held_bytes(conn) + length) : NULL;
        if (hoarder == NULL) {
            return false;
        }
        net_conn_close_for_budget(hoarder); /* not conn: it holds less than that */
    }
    return true;
}

/*
 * Ends a connection when all is sent and the service is done with it. A close with unread input
 * would be a reset, which may overtake the last answer: then only our side ends, and what comes is
 * thrown away for a while.
 */
static void conn_finish(struct net_conn *conn)
{
    char byte;
    if (!conn->unread && recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0) {
        net_conn_close(conn);
        return;
    }
    net_tls_destroy(conn->tls); /* says goodbye; what comes is not even decrypted */
    conn->tls = NULL;
    buf_fini(&conn->in);
    conn->in_done = 0;
    conn->lingering = true;
    conn->progress_us = conn->worker->now_us;
    if (shutdown(conn->fd, SHUT_WR) != 0 || !want(conn, EPOLLIN)) {
        net_conn_close(conn);
    }
}

static bool is_turned(const struct net_conn *conn)
{
    return UNLIKELY(conn->tls != NULL) && net_tls_turned(conn->tls);
}

/* Returns whether there are bytes to be read for which no event will come. */
static bool holds_more(const struct net_conn *conn)
{
    return UNLIKELY(conn->tls != NULL) && net_tls_pending(conn->tls);
}

static inline bool want_to_read(struct net_conn *conn)
{
    return want(conn, is_turned(conn) ? EPOLLOUT : EPOLLIN);
}

/* conn_settle() where there is something to decide. */
static __attribute__((noinline)) void settle_anew(struct net_conn *conn)
{
    if (conn->out.length > 0) {
        if (!want(conn, is_turned(conn) ? EPOLLIN : EPOLLOUT)) {
            net_conn_close(conn);
        }
        return;
    }
    /*
     * A queued or suspended connection goes on asking for EPOLLIN: as a rule nothing comes, and two
     * system calls are saved. See on_event.
     */
    if ((conn->watcher.events == EPOLLOUT || conn->next == NET_WAIT) && !want_to_read(conn)) {
        net_conn_close(conn);
        return;
    }
    switch ((enum net_next)conn->next) {
    case NET_WAIT:
        if (conn->in.length - conn->in_done >= NET_INPUT_MAX) {
            net_peer_log_closed(conn->fd, "no request is that large");
            net_conn_close(conn);
        } else if (holds_more(conn)) {
            net_worker_queue(conn->worker, conn);
        }
        return;
    case NET_AGAIN:
        net_worker_queue(conn->worker, conn);
        return;
    case NET_SUSPENDED:
        return;
    case NET_CLOSE:
        conn_finish(conn);
        return;
    case NET_LEAVE: /* it is gone */
        break;
    }
    CHECK(false);
}

/* Decides what the connection waits for, once its turn's output is sent or kept. */
static inline void conn_settle(struct net_conn *conn)
{
    bool is_reading = conn->next == NET_WAIT && conn->watcher.events == EPOLLIN;
    if (LIKELY(is_reading && conn->out.length == 0 && conn->in.length == 0 && conn->tls == NULL)) {
        return; /* as most: it goes on so */
    }
    settle_anew(conn);
}

/* After a turn on private input: lets go of memory that is not needed any more. */
static void keep_private(struct net_conn *conn, size_t consumed)
{
    conn->in_done += (uint32_t)consumed;
    size_t left = conn->in.length - conn->in_done;
    if (left == 0) {
        buf_fini(&conn->in);
        conn->in_done = 0;
        return;
    }
    if (conn->in.capacity <= NET_IN_SLACK_BYTES || left > conn->in.capacity / 4) {
        return;
    }
    struct buf smaller;
    buf_init(&smaller, NET_INPUT_MAX, &conn->worker->budget);
    if (buf_append(&smaller, conn->in.data + conn->in_done, left)) {
        buf_fini(&conn->in);
        conn->in = smaller;
        conn->in_done = 0;
    } /* else it stays large for a while */
}

static ssize_t send_plain(int fd, const char *bytes, size_t length)
{
    ssize_t sent = direct_send(fd, bytes, length, MSG_NOSIGNAL);
    return sent < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : sent;
}

/* Sends bytes. Returns how many the socket took, or -1 when it is broken. */
static inline ssize_t send_some(struct net_conn *conn, const char *bytes, size_t length)
{
    ssize_t sent = UNLIKELY(conn->tls != NULL) ? net_tls_write(conn->tls, bytes, length)
                                               : send_plain(conn->fd, bytes, length);
    if (sent > 0) {
        metric_add(&conn->worker->metrics.bytes_written, (uint64_t)sent);
    }
    return sent;
}

/* Of these answers the socket took that much, or it is broken (-1): keeps the rest. False: it was
 * closed. */
static __attribute__((noinline)) bool keep_unsent(struct net_conn *conn, const char *bytes,
                                                  size_t length, ssize_t sent)
{
    if (sent < 0) {
        net_conn_close(conn);
        return false;
    }
    size_t left = length - (size_t)sent;
    conn->progress_us = conn->worker->now_us;
    if (!net_conn_keep(conn, &conn->out, bytes + sent, left)) {
        net_conn_close_for_budget(conn);
        return false;
    }
    return true;
}

/* Sends answers and keeps what the socket does not take. False: it was closed. */
static inline bool send_output(struct net_conn *conn, const char *bytes, size_t length)
{
    CHECK(length <= NET_OUTPUT_MAX && conn->out.length == 0);
    if (length == 0) {
        return true;
    }
    ssize_t sent = send_some(conn, bytes, length);
    return LIKELY(sent == (ssize_t)length) || keep_unsent(conn, bytes, length, sent);
}

void net_conn_answer(struct net_conn *conn, const char *bytes, size_t length)
{
    if (send_output(conn, bytes, length)) {
        conn_settle(conn);
    }
}

/* After a turn: its output leaves now, or with that of others, or is held. `kept`: the input that
 * is left was stored. */
static inline __attribute__((always_inline)) void end_turn(struct net_conn *conn, bool hold,
                                                           bool kept)
{
    struct net_worker *worker = conn->worker;
    if (UNLIKELY(hold && worker->common->service.commit != NULL)) {
        worker->hold.uncommitted = true;
        if (kept && worker->out.length > 0) {
            net_hold_keep(conn);
            return;
        }
        buf_truncate(&worker->out, 0); /* it is closed: what is not committed is not said */
    } else if (kept && !net_gather_is_alone(worker) && net_gather_keep(conn)) {
        return;
    }
    if (!send_output(conn, worker->out.data, worker->out.length)) {
        return;
    }
    if (!kept) {
        net_conn_close_for_budget(conn);
        return;
    }
    conn_settle(conn);
}

/* Runs one turn on bytes of the worker's shared buffer, or of the connection's own. */
static inline __attribute__((always_inline)) void
conn_take_turn(struct net_conn *conn, const char *bytes, size_t length, bool shared)
{
    struct net_worker *worker = conn->worker;
    struct net_turn *turn = &worker->turn;
    *turn = (struct net_turn){.in = bytes, .in_length = length, .out = &worker->out};
    net_worker_turns(worker);
    buf_truncate(&worker->out, 0);
    conn->next = (uint8_t)worker->common->service.turn(worker->state, conn, turn);
    size_t consumed = turn->consumed;
    CHECK(consumed <= length);
    if (consumed > 0) {
        conn->progress_us = worker->now_us;
    }
    if (conn->next == NET_AGAIN) {
        metric_add(&worker->metrics.conn_yields, 1);
    }
    size_t left = length - consumed;
    if (UNLIKELY(conn->next == NET_LEAVE)) {
        net_conn_leave(conn, bytes + consumed, left);
        return;
    }
    conn->unread = conn->next == NET_CLOSE && left > 0;
    bool kept = true;
    if (!shared) {
        keep_private(conn, consumed);
    } else if (left > 0 && !conn->unread) {
        kept = net_conn_keep(conn, &conn->in, bytes + consumed, left);
    }
    end_turn(conn, turn->hold, kept);
}

static __attribute__((noinline)) void turn_on_private(struct net_conn *conn)
{
    size_t length = conn->in.length - conn->in_done;
    conn_take_turn(conn, length > 0 ? conn->in.data + conn->in_done : "", length, false);
}

void net_conn_woken(struct net_conn *conn)
{
    if (conn->next != NET_SUSPENDED) {
        return; /* it runs anyway, or was woken for something it no longer waits for */
    }
    conn->next = NET_AGAIN;
    if (conn->out.length == 0 && conn->hold == NET_HOLD_NONE) {
        net_worker_queue(conn->worker, conn);
    } /* else when all is sent */
}

/* TLS has ended. If that was during the handshake the client is told why, and a reset could
 * overtake the words. */
static void end_tls(struct net_conn *conn)
{
    if (net_tls_established(conn->tls)) {
        net_conn_close(conn);
        return;
    }
    metric_add(&conn->worker->metrics.ssl_handshake_errors, 1);
    if (net_tls_half(conn->tls)) { /* else it said nothing: somebody looks whether we are there */
        net_peer_log_refused(conn->fd, "TLS was not agreed upon");
    }
    conn->next = NET_CLOSE;
    conn->unread = true;
    conn_finish(conn);
}

/* The handshake is done, and we have nothing to say: the client's first request may wait for this
 * (Nagle's rule) as long as the kernel delays it. */
static void acknowledge(int fd)
{
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

/* receive() under TLS. */
static ssize_t receive_tls(struct net_conn *conn, size_t length_max)
{
    bool half = net_tls_half(conn->tls);
    bool agreed = net_tls_established(conn->tls);
    ssize_t got = net_tls_read(conn->tls, conn->worker->read, length_max);
    metric_add(&conn->worker->metrics.ssl_new_sessions, !agreed && net_tls_established(conn->tls));
    if (got > 0) {
        metric_add(&conn->worker->metrics.bytes_read, (uint64_t)got);
        return got;
    }
    if (got < 0) {
        end_tls(conn);
        return -1;
    }
    if (half != net_tls_half(conn->tls)) {
        conn->progress_us = conn->worker->now_us;
        acknowledge(conn->fd);
    }
    if (!want_to_read(conn)) {
        net_conn_close(conn);
        return -1;
    }
    return 0;
}

/* Reads into the worker's shared buffer. Returns the bytes, 0 if none; closed, -1, if over. */
static inline ssize_t receive(struct net_conn *conn, size_t length_max)
{
    if (UNLIKELY(conn->tls != NULL)) {
        return receive_tls(conn, length_max);
    }
    ssize_t got = direct_recv(conn->fd, conn->worker->read, length_max, 0);
    if (got > 0) {
        metric_add(&conn->worker->metrics.bytes_read, (uint64_t)got);
        return got;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    net_conn_close(conn); /* whatever it asked for is answered; half a request is not */
    return -1;
}

static inline void on_readable(struct net_conn *conn)
{
    struct net_worker *worker = conn->worker;
    size_t held = conn->in.length - conn->in_done;
    size_t room = NET_INPUT_MAX - held;
    ssize_t got = receive(conn, room < NET_READ_BYTES ? room : NET_READ_BYTES);
    if (got <= 0) {
        return;
    }
    if (held == 0) {
        conn->progress_us = worker->now_us;
        conn_take_turn(conn, worker->read, (size_t)got, true);
        return;
    }
    if (conn->in_done > 0) {
        buf_consume(&conn->in, conn->in_done);
        conn->in_done = 0;
    }
    if (!net_conn_keep(conn, &conn->in, worker->read, (size_t)got)) {
        net_conn_close_for_budget(conn);
        return;
    }
    turn_on_private(conn);
}

void net_conn_run(struct net_conn *conn)
{
    CHECK(conn->magic == NET_CONN_MAGIC && conn->out.length == 0);
    if (UNLIKELY(conn->next == NET_WAIT)) {
        on_readable(conn);
        return;
    }
    CHECK(conn->next == NET_AGAIN);
    turn_on_private(conn);
}

/* Sends private output as far as the socket takes it, then goes on as the turn had said. */
static void drain(struct net_conn *conn)
{
    const struct buf *out = &conn->out;
    ssize_t sent = send_some(conn, out->data + conn->out_done, out->length - conn->out_done);
    if (sent < 0) {
        net_conn_close(conn);
        return;
    }
    if (sent > 0) {
        conn->progress_us = conn->worker->now_us;
    }
    conn->out_done += (uint32_t)sent;
    if (conn->out_done == out->length) {
        buf_fini(&conn->out);
        conn->out_done = 0;
    }
    conn_settle(conn);
}

void net_conn_unseal(struct net_conn *conn)
{
    conn->progress_us = conn->worker->now_us; /* its client did not make it wait */
    drain(conn);
}

/* A connection that must wait became readable: it is gone, or sends more than is wanted now. Not
 * inlined: else every event would guard the stack for its variable. */
static __attribute__((noinline)) void look_while_waiting(struct net_conn *conn)
{
    char byte;
    ssize_t got = recv(conn->fd, &byte, 1, MSG_PEEK);
    if (got < 0 && errno != EAGAIN && errno != EINTR) {
        net_conn_close(conn);
        return;
    }
    (void)want(conn, 0); /* a FIN is no reason to close: its requests will be answered */
}

static bool is_draining(const struct net_conn *conn)
{
    return conn->out.length > 0 && conn->hold == NET_HOLD_NONE;
}

static void on_event(void *owner)
{
    struct net_conn *conn = owner;
    CHECK(conn->magic == NET_CONN_MAGIC);
    if (is_draining(conn)) {
        drain(conn);
    } else if (conn->lingering) {
        (void)receive(conn, NET_READ_BYTES);
    } else if (conn->next == NET_SUSPENDED || conn->hold != NET_HOLD_NONE) {
        look_while_waiting(conn);
    } else if (!conn->queued) {
        on_readable(conn);
    } /* queued: what came waits in the socket; the loop does not sleep now anyway */
}

/* Reading: idle, or with half a request. */
static void sweep_reading(struct net_conn *conn, uint64_t age_s)
{
    struct net_worker *worker = conn->worker;
    unsigned idle_s = atomic_load_explicit(&worker->common->idle_timeout_s, memory_order_relaxed);
    unsigned request_s =
        atomic_load_explicit(&worker->common->request_timeout_s, memory_order_relaxed);
    bool half = conn->in.length > 0 || (conn->tls != NULL && net_tls_half(conn->tls));
    if (half && request_s > 0) {
        if (age_s >= request_s) {
            conn_close_counted(conn, &worker->metrics.request_timeouts, "half a request");
        }
    } else if (idle_s > 0 && age_s >= idle_s) {
        conn_close_counted(conn, &worker->metrics.idle_closed, NULL);
    }
}

void net_conn_sweep(struct net_conn *conn)
{
    net_conn_check(conn);
    uint64_t age_s = net_conn_idle_s(conn);
    if (conn->hold != NET_HOLD_NONE) { /* it waits for us, not we for it */
        if (age_s >= conn->worker->common->hold_stall_s) {
            conn_close_counted(conn, &conn->worker->metrics.hold_stalls,
                               "what it changed was not stored in time");
        }
        return;
    }
    if (conn->out.length > 0) {
        if (age_s >= NET_WRITE_STALL_S) {
            conn_close_counted(conn, &conn->worker->metrics.write_stalls,
                               "it does not read its answers");
        }
    } else if (conn->lingering) {
        if (age_s >= NET_LINGER_S) {
            net_conn_close(conn);
        }
    } else if (conn->next == NET_WAIT) {
        sweep_reading(conn, age_s);
    }
}

void net_conn_check(const struct net_conn *conn)
{
    bool waits = conn->hold != NET_HOLD_NONE;
    bool draining = is_draining(conn);
    bool more = conn->next == NET_AGAIN || (conn->next == NET_WAIT && holds_more(conn));
    CHECK(conn->magic == NET_CONN_MAGIC);
    CHECK(conn->in.length == 0 ? conn->in_done == 0 : conn->in_done < conn->in.length);
    CHECK(conn->out.length == 0 ? conn->out_done == 0 : conn->out_done < conn->out.length);
    CHECK(conn->tls != NULL || (conn->watcher.events == EPOLLOUT) == draining);
    CHECK(conn->queued == (more && !draining && !waits));
    CHECK(!waits || (conn->out.length > 0) == (conn->hold == NET_HOLD_SEALED));
}
