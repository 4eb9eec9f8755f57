/*
 * tls_rig.h: what the tests of net under TLS have in common: parties with certificates, made by
 * each run, and the start of a server that is one of them.
 */
#ifndef ROLLCALL_TESTS_UNIT_NET_TLS_RIG_H
#define ROLLCALL_TESTS_UNIT_NET_TLS_RIG_H

#include "echo.h"
#include "tls_peer.h"

struct tls_rig {
    char folder[TLS_PATH_MAX / 2];
    struct tls_party ca;       /* signs the next three */
    struct tls_party server;   /* what tls_start() is */
    struct tls_party renewed;  /* its successor */
    struct tls_party client;   /* whom a server may ask for */
    struct tls_party other_ca; /* nobody believes it */
    struct tls_party stranger; /* signed by it */
};

extern struct tls_rig tls_rig;
extern const char *const tls_any_port[1];

/* Around all tests of a program. */
int tls_rig_make(void **unused);
int tls_rig_delete(void **unused);

/* The caller's reference. */
struct net_tls_context *tls_context_of(const struct tls_party *party, enum net_tls_verify verify);
/* After echo_options(): the last address at least has TLS. */
void tls_start(struct echo *echo, struct net_options *options, enum net_tls_verify verify);
void tls_start_usual(struct echo *echo);
/* A client without a certificate that has agreed. */
void tls_open_peer(const struct echo *echo, struct tls_peer *peer);

#endif
