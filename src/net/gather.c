/* gather.c: short answers of many connections, gathered in one buffer until the wake-up ends. */
#include "base/check.h"
#include "net/private.h"

void net_gather_init(struct net_gathered *gathered)
{
    /* As the worker's output: not from the budget. */
    buf_init(&gathered->bytes, (size_t)NET_GATHER_CONNS * NET_GATHER_BYTES, NULL);
    TAILQ_INIT(&gathered->conns);
    gathered->count = 0;
}

void net_gather_fini(struct net_gathered *gathered)
{
    CHECK(TAILQ_EMPTY(&gathered->conns) && gathered->count == 0);
    buf_fini(&gathered->bytes);
}

bool net_gather_keep(struct net_conn *conn)
{
    struct net_gathered *gathered = &conn->worker->gathered;
    const struct buf *out = &conn->worker->out;
    if (out->length == 0 || out->length > NET_GATHER_BYTES) {
        return false;
    }
    CHECK(conn->hold == NET_HOLD_NONE && conn->out.length == 0 && !conn->queued);
    conn->held.begin = (uint32_t)gathered->bytes.length;
    conn->held.length = (uint32_t)out->length;
    if (!buf_append(&gathered->bytes, out->data, out->length)) {
        return false; /* no memory: as it is */
    }
    conn->hold = NET_HOLD_GATHERED;
    TAILQ_INSERT_TAIL(&gathered->conns, conn, run);
    if (++gathered->count == NET_GATHER_CONNS) {
        net_gather_send(conn->worker);
    }
    return true;
}

void net_gather_leave(struct net_conn *conn)
{
    struct net_gathered *gathered = &conn->worker->gathered;
    TAILQ_REMOVE(&gathered->conns, conn, run);
    gathered->count--;
    conn->hold = NET_HOLD_NONE;
}

void net_gather_send(struct net_worker *worker)
{
    struct net_gathered *gathered = &worker->gathered;
    for (struct net_conn *conn; (conn = TAILQ_FIRST(&gathered->conns)) != NULL;) {
        net_gather_leave(conn);
        net_conn_answer(conn, gathered->bytes.data + conn->held.begin, conn->held.length);
    }
    buf_truncate(&gathered->bytes, 0);
}
