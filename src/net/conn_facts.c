/* conn_facts.c: what the service may know of a connection (net.h). */
#include "net/peer.h"
#include "net/private.h"

void *net_conn_state(struct net_conn *conn)
{
    return conn->state;
}

uint64_t net_conn_serial(const struct net_conn *conn)
{
    return conn->serial;
}

const char *net_conn_peer(const struct net_conn *conn, char text[128])
{
    _Static_assert(NET_ADDRESS_TEXT_MAX == 128, "net.h says how much room an address needs");
    return net_peer_print(conn->fd, text);
}

uint64_t net_conn_origin(const struct net_conn *conn)
{
    return net_peer_origin(conn->fd);
}

bool net_conn_ended(const struct net_conn *conn)
{
    return net_peer_ended(conn->fd);
}

int net_conn_fd(const struct net_conn *conn)
{
    return conn->fd;
}

size_t net_conn_held_bytes(const struct net_conn *conn)
{
    return conn->in.capacity + conn->out.capacity;
}

uint64_t net_conn_idle_s(const struct net_conn *conn)
{
    return (conn->worker->now_us - conn->progress_us) / 1000000;
}
