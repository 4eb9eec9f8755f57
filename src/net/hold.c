#include <stdatomic.h>

#include "base/check.h"
#include "net/private.h"

#define NO_NUMBER UINT64_MAX

void net_hold_init(struct net_hold *hold)
{
    /* The last turn before a commit comes on top. As the worker's output: not from the budget. */
    buf_init(&hold->bytes, NET_HOLD_BYTES + NET_OUTPUT_MAX, NULL);
    TAILQ_INIT(&hold->held);
    TAILQ_INIT(&hold->sealed);
    atomic_init(&hold->released, 0);
    atomic_init(&hold->wake_at, NO_NUMBER);
    atomic_init(&hold->no_more, false);
}

void net_hold_fini(struct net_hold *hold)
{
    CHECK(TAILQ_EMPTY(&hold->held) && TAILQ_EMPTY(&hold->sealed));
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
    struct net_conns *list = conn->hold == NET_HOLD_HELD ? &hold->held : &hold->sealed;
    TAILQ_REMOVE(list, conn, run);
    conn->hold = NET_HOLD_NONE;
}

/* The commit. Each of these gets a connection that is on no list any more, and its answers. */

typedef void answer_fn(struct net_conn *conn, const char *bytes, size_t length);

static void seal(struct net_conn *conn, const char *bytes, size_t length)
{
    struct net_hold *hold = &conn->worker->hold;
    if (!net_conn_keep(conn, &conn->out, bytes, length)) {
        net_conn_close_for_budget(conn);
        return;
    }
    conn->hold = NET_HOLD_SEALED;
    conn->wait = hold->wait_last;
    TAILQ_INSERT_TAIL(&hold->sealed, conn, run);
}

static void discard(struct net_conn *conn, const char *bytes, size_t length)
{
    (void)bytes;
    (void)length;
    net_conn_close(conn);
}

static void note_wait(struct net_hold *hold, uint64_t wait)
{
    CHECK(wait >= hold->wait_last && wait != NO_NUMBER);
    hold->wait_last = wait;
}

void net_hold_commit(struct net_worker *worker)
{
    static answer_fn *const answers[] = {[NET_COMMITTED] = net_conn_answer,
                                         [NET_COMMIT_LATER] = seal,
                                         [NET_COMMIT_FAILED] = discard};
    struct net_hold *hold = &worker->hold;
    uint64_t wait = 0;
    hold->uncommitted = false;
    enum net_commit verdict = worker->common->service.commit(worker->state, &wait);
    if (verdict == NET_COMMIT_LATER) {
        note_wait(hold, wait);
    }
    for (struct net_conn *conn; (conn = TAILQ_FIRST(&hold->held)) != NULL;) {
        net_hold_leave(conn);
        answers[verdict](conn, hold->bytes.data + conn->held.begin, conn->held.length);
    }
    buf_truncate(&hold->bytes, 0);
    net_hold_release(worker); /* it may have come already */
}

/* The release. */

/* Sends what was released; returns the number the next waits for. */
static uint64_t release_first(struct net_hold *hold)
{
    uint64_t released = atomic_load(&hold->released);
    struct net_conn *conn;
    while ((conn = TAILQ_FIRST(&hold->sealed)) != NULL && conn->wait <= released) {
        net_hold_leave(conn);
        net_conn_unseal(conn);
    }
    return conn != NULL ? conn->wait : NO_NUMBER;
}

/*
 * The number waited for is told before `released` is looked at again, and net_release() does it the
 * other way round: so one of the two sees the other.
 */
static void release_all(struct net_hold *hold)
{
    while (!TAILQ_EMPTY(&hold->sealed)) {
        uint64_t next = release_first(hold);
        atomic_store(&hold->wake_at, next);
        if (next > atomic_load(&hold->released)) {
            return;
        }
    }
}

/* Whoever sets no_more after this has looked wakes the worker to look again. */
void net_hold_release(struct net_worker *worker)
{
    struct net_hold *hold = &worker->hold;
    bool no_more = atomic_load(&hold->no_more);
    release_all(hold);
    for (struct net_conn *conn; no_more && (conn = TAILQ_FIRST(&hold->sealed)) != NULL;) {
        net_hold_leave(conn);
        net_conn_close(conn);
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
