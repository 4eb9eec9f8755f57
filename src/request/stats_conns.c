/* stats conns: the connections of the worker that answers, under their descriptors. */
#include <stdio.h>

#include "request/stats_private.h"

static void emit_conn(void *context, const struct net_conn *conn)
{
    struct stats_out *out = context;
    char peer[128];
    char prefix[16];

    snprintf(prefix, sizeof(prefix), "%d", net_conn_fd(conn));
    out->prefix = prefix;
    stats_text(out, "addr", net_conn_peer(conn, peer));
    stats_number(out, "held_bytes", net_conn_held_bytes(conn));
    stats_number(out, "secs_since_last_cmd", net_conn_idle_s(conn));
    out->prefix = NULL;
}

void stats_conns(struct stats_out *out)
{
    struct net_metrics sum;

    net_metrics_sum(out->worker->server->net, &sum);
    stats_number(out, "curr_connections", metric_read(&sum.curr_connections));
    stats_number(out, "worker", out->worker->index);
    net_worker_each(out->worker->net, emit_conn, out);
}
