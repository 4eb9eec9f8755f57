/* tls_private.h: a context, as tls.c and tls_context.c know it. */
#ifndef ROLLCALL_NET_TLS_PRIVATE_H
#define ROLLCALL_NET_TLS_PRIVATE_H

#include <openssl/ssl.h>

#include "net/tls.h"

struct net_tls_context {
    SSL_CTX *library;
    _Atomic unsigned references;
    uint64_t made_us; /* by clock_monotonic_us() */
};

#endif
