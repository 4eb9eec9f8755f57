/*
 * net_stand_in.h: a worker with one connection and no socket, in place of src/net: the functions of
 * net.h that the server calls, and how bytes come to a service. One thread.
 */
#ifndef ROLLCALL_TESTS_FUZZ_NET_STAND_IN_H
#define ROLLCALL_TESTS_FUZZ_NET_STAND_IN_H

#include <stdatomic.h>

#include "net/net.h"

struct net_worker {
    struct net_conn *conn; /* NULL: none */
};

struct net_conn {
    _Alignas(16) char state[NET_STATE_BYTES_MAX];
    struct net_worker *worker;
    _Atomic bool woken; /* by any thread */
};

void net_stand_in_open(struct net_worker *worker, struct net_conn *conn);

#endif
