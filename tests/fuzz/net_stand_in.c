/* net_stand_in.c: see net_stand_in.h. */
#include "tests/fuzz/net_stand_in.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"

#define SERIAL 1
#define PEER   "nobody"

void net_stand_in_open(struct net_worker *worker, struct net_conn *conn)
{
    memset(conn, 0, sizeof(*conn));
    conn->worker = worker;
    worker->conn = conn;
}

void *net_conn_state(struct net_conn *conn)
{
    return conn->state;
}

uint64_t net_conn_serial(const struct net_conn *conn)
{
    (void)conn;
    return SERIAL;
}

const char *net_conn_peer(const struct net_conn *conn, char text[128])
{
    (void)conn;
    snprintf(text, 128, "%s", PEER);
    return text;
}

uint64_t net_conn_origin(const struct net_conn *conn)
{
    (void)conn;
    return SERIAL;
}

bool net_conn_ended(const struct net_conn *conn)
{
    (void)conn;
    return false;
}

int net_conn_fd(const struct net_conn *conn)
{
    (void)conn;
    return 0;
}

size_t net_conn_held_bytes(const struct net_conn *conn)
{
    (void)conn;
    return 0;
}

uint64_t net_conn_idle_s(const struct net_conn *conn)
{
    (void)conn;
    return 0;
}

void net_wake(void *worker, uint64_t serial)
{
    struct net_worker *net = worker;

    CHECK(serial == SERIAL && net->conn != NULL);
    net->conn->woken = true;
}

void net_release(void *worker, uint64_t upto)
{
    (void)worker;
    (void)upto;
}

void net_release_no_more(void *worker)
{
    (void)worker;
}

void net_worker_each(struct net_worker *worker, net_conn_visit *visit, void *context)
{
    if (worker->conn != NULL) {
        visit(context, worker->conn);
    }
}

unsigned net_worker_index(const struct net_worker *worker)
{
    (void)worker;
    return 0;
}

uint64_t net_worker_now_us(const struct net_worker *worker)
{
    (void)worker;
    return clock_monotonic_us();
}

const char *net_library_version(void)
{
    return "none";
}

void net_metrics_sum(const struct net *net, struct net_metrics *sum)
{
    (void)net;
    memset(sum, 0, sizeof(*sum));
}

void net_stop(struct net *net)
{
    (void)net;
}

void net_reconfigure(struct net *net, unsigned max_connections, unsigned idle_timeout_s,
                     unsigned request_timeout_s)
{
    (void)net;
    (void)max_connections;
    (void)idle_timeout_s;
    (void)request_timeout_s;
}

void net_renew_tls(struct net *net, struct net_tls_context *tls)
{
    (void)net;
    (void)tls;
}
