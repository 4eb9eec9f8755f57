/* leave.c: a connection that goes on without net: its socket and its session are the service's. */
#include <stdlib.h>

#include "base/check.h"
#include "net/private.h"

void net_conn_leave(struct net_conn *conn, const char *bytes, size_t length)
{
    struct net_worker *worker = conn->worker;
    const struct net_left left = {
        .fd = conn->fd, .tls = conn->tls, .in = bytes, .in_length = length};

    CHECK(worker->out.length == 0 && conn->out.length == 0 && conn->hold == NET_HOLD_NONE);
    (void)net_poll_want(&worker->poll, &conn->watcher, conn->fd, 0);
    net_worker_leave(worker, conn);
    worker->common->service.left(worker->state, conn, &left);
    worker->common->service.closed(worker->state, conn);
    buf_fini(&conn->in);
    buf_fini(&conn->out);
    atomic_fetch_sub(&worker->common->connections, 1);
    conn->magic = 0;
    free(conn);
}
