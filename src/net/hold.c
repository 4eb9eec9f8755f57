/* hold.c: replies held back until the journal has what they say. */
#include <stdatomic.h>

#include "base/check.h"
#include "net/peer.h"
#include "net/private.h"

#define NO_NUMBER UINT64_MAX

static const char not_taken[] = "the journal did not take what it changed";

void net_hold_init(struct net_hold *hold)
{
    /* The last turn before a commit comes on top. Like the worker's output the hold is not in the
     * budget. */
    buf_init(&hold->bytes, NET_HOLD_BYTES + NET_OUTPUT_MAX, NULL);
    TAILQ_INIT(&hold->held);
    TAILQ_INIT(&hold->waiting);
    TAILQ_INIT(&hold->sealed);
    atomic_init(&hold->released, 0);
    atomic_init(&hold->wake_at, NO_NUMBER);
    atomic_init(&hold->no_more, false);
}

void net_hold_fini(struct net_hold *hold)
{
    CHECK(TAILQ_EMPTY(&hold->held) && TAILQ_EMPTY(&hold->waiting) && TAILQ_EMPTY(&hold->sealed));
    buf_fini(&hold->bytes);
}

void net_hold_keep(struct net_conn *conn)
{
    struct net_worker *worker = conn->worker;
    struct net_hold *hold = &worker->hold;
    const struct buf *out = &worker->out;
    CHECK(conn->hold == NET_HOLD_NONE && conn->out.length == 0 && !conn->queued);
    CHECK(out->length <= NET_OUTPUT_MAX);
    conn->held.begin = (uint32_t)hold->bytes.length;
    conn->held.length = (uint32_t)out->length;
    if (!buf_append(&hold->bytes, out->data, out->length)) {
        net_conn_close_for_budget(conn); /* no memory */
        return;
    }
    conn->hold = NET_HOLD_HELD;
    TAILQ_INSERT_TAIL(&hold->held, conn, run);
    if (hold->bytes.length >= NET_HOLD_BYTES) {
        net_hold_commit(worker);
    }
}

void net_hold_leave(struct net_conn *conn)
{
    struct net_hold *hold = &conn->worker->hold;
    struct net_conns *list = conn->hold == NET_HOLD_HELD      ? &hold->held
                             : conn->hold == NET_HOLD_WAITING ? &hold->waiting
                                                              : &hold->sealed;
    TAILQ_REMOVE(list, conn, run);
    conn->hold = NET_HOLD_NONE;
}

/* The bytes go when nobody's answers are among them any more. */
static void let_go(struct net_hold *hold)
{
    if (TAILQ_EMPTY(&hold->held) && TAILQ_EMPTY(&hold->waiting)) {
        buf_truncate(&hold->bytes, 0);
    }
}

/* The commit. */

/* Sends the answers of a connection that was held or waited. */
static void hold_answer(struct net_hold *hold, struct net_conn *conn)
{
    net_hold_leave(conn);
    net_conn_answer(conn, hold->bytes.data + conn->held.begin, conn->held.length);
}

static void hold_close(struct net_conn *conn, const char *why)
{
    net_hold_leave(conn);
    net_peer_log_closed(conn->fd, why);
    net_conn_close(conn);
}

static void wait_all(struct net_hold *hold, uint64_t wait)
{
    struct net_conn *conn;
    CHECK(wait >= hold->wait_last && wait != NO_NUMBER);
    hold->wait_last = wait;
    TAILQ_FOREACH(conn, &hold->held, run)
    {
        conn->hold = NET_HOLD_WAITING;
        conn->wait = wait;
    }
    TAILQ_CONCAT(&hold->waiting, &hold->held, run);
}

static void end_held(struct net_hold *hold, enum net_commit verdict)
{
    for (struct net_conn *conn; (conn = TAILQ_FIRST(&hold->held)) != NULL;) {
        if (verdict == NET_COMMITTED) {
            hold_answer(hold, conn);
        } else {
            hold_close(conn, not_taken);
        }
    }
}

/* Moves answers that wait into their connections' own output, so that the hold is empty. */
static void seal_all(struct net_hold *hold)
{
    for (struct net_conn *conn; (conn = TAILQ_FIRST(&hold->waiting)) != NULL;) {
        net_hold_leave(conn);
        if (!net_conn_keep(conn, &conn->out, hold->bytes.data + conn->held.begin,
                           conn->held.length)) {
            net_conn_close_for_budget(conn);
            continue;
        }
        conn->hold = NET_HOLD_SEALED;
        TAILQ_INSERT_TAIL(&hold->sealed, conn, run);
    }
}

void net_hold_commit(struct net_worker *worker)
{
    struct net_hold *hold = &worker->hold;
    uint64_t wait = 0;
    hold->uncommitted = false;
    enum net_commit verdict = worker->common->service.commit(worker->state, &wait);
    if (verdict == NET_COMMIT_LATER) {
        wait_all(hold, wait);
    } else {
        end_held(hold, verdict);
    }
    net_hold_release(worker); /* it may have come already */
    if (hold->bytes.length >= NET_HOLD_BYTES) {
        seal_all(hold);
        let_go(hold);
    }
}

/* Sends what was released. Sealed answers came before those that wait in the hold. */

static struct net_conn *first_waiting(const struct net_hold *hold)
{
    struct net_conn *conn = TAILQ_FIRST(&hold->sealed);
    return conn != NULL ? conn : TAILQ_FIRST(&hold->waiting);
}

/* Sends what was released, or closes what may not leave any more. */
static void release_some(struct net_worker *worker)
{
    const struct net_service *service = &worker->common->service;
    struct net_hold *hold = &worker->hold;
    uint64_t released = atomic_load(&hold->released);
    struct net_conn *conn;
    while ((conn = first_waiting(hold)) != NULL && conn->wait <= released) {
        if (service->may_leave != NULL && !service->may_leave(worker->state)) {
            hold_close(conn, "its answer came too late");
        } else if (conn->hold == NET_HOLD_WAITING) {
            hold_answer(hold, conn);
        } else {
            net_hold_leave(conn);
            net_conn_unseal(conn);
        }
    }
    let_go(hold);
}

/* A thread that sets no_more after this look wakes the worker to look again. */
void net_hold_release(struct net_worker *worker)
{
    struct net_hold *hold = &worker->hold;
    bool no_more = atomic_load(&hold->no_more);
    release_some(worker);
    for (struct net_conn *conn; no_more && (conn = first_waiting(hold)) != NULL;) {
        hold_close(conn, not_taken);
    }
    let_go(hold);
}

/*
 * The number waited for is told before `released` is looked at again, and net_release() does it the
 * other way round: so one of the two sees the other. A worker that is awake is told nothing: it
 * looks before it sleeps.
 */
void net_hold_sleep_waiting(struct net_worker *worker)
{
    struct net_hold *hold = &worker->hold;
    for (const struct net_conn *conn; (conn = first_waiting(hold)) != NULL;) {
        atomic_store(&hold->wake_at, conn->wait);
        if (conn->wait > atomic_load(&hold->released)) {
            return;
        }
        net_hold_release(worker);
    }
}

void net_hold_awake(struct net_worker *worker)
{
    struct net_hold *hold = &worker->hold;
    if (atomic_load_explicit(&hold->wake_at, memory_order_relaxed) != NO_NUMBER) {
        atomic_store(&hold->wake_at, NO_NUMBER);
    }
}

static void raise_to(_Atomic uint64_t *number, uint64_t value)
{
    uint64_t seen = atomic_load(number);
    while (seen < value && !atomic_compare_exchange_weak(number, &seen, value)) {
    }
}

void net_release(void *worker, uint64_t upto)
{
    struct net_hold *hold = &((struct net_worker *)worker)->hold;
    raise_to(&hold->released, upto);
    uint64_t wake_at = atomic_load(&hold->wake_at);
    while (wake_at <= upto && wake_at != NO_NUMBER) {
        if (atomic_compare_exchange_weak(&hold->wake_at, &wake_at, NO_NUMBER)) {
            net_worker_signal(worker);
            return;
        }
    }
}

void net_release_no_more(void *worker)
{
    atomic_store(&((struct net_worker *)worker)->hold.no_more, true);
    net_worker_signal(worker);
}
