/*
 * wire_peer.h: whom a tool talks to and as whom: the address, the login, TLS. Options that all
 * verbs of a daemon share.
 *
 * A password stands in a file, never on a command line. The certificate of the other side must be
 * signed by `tls_ca`, or one the system believes in, and be of the address; unix sockets and the
 * status page are without TLS.
 *
 * Thread rule: any thread once it is made.
 */
#ifndef ROLLCALL_TOOLS_WIRE_PEER_H
#define ROLLCALL_TOOLS_WIRE_PEER_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/rollcall/arguments.h"

#define WIRE_SERVER    "127.0.0.1:11211"
#define WIRE_ERROR_MAX 512
#define WIRE_AUTH_FILE "ROLLCALL_AUTH_FILE" /* in the environment */
#define WIRE_LOGIN_MAX 600

#define WIRE_PATIENCE_MS     60000u /* --timeout of load and export */
#define WIRE_PATIENCE_MS_MAX 86400000u

/* As the options say it; each text is owned. */
struct wire_target {
    char *server;    /* host:port, [v6]:port or /path; NULL: WIRE_SERVER */
    char *auth_file; /* its first line is name:password; NULL: none */
    bool tls;
    char *tls_ca;   /* PEM; NULL: the system's */
    char *tls_cert; /* PEM, shown if it is asked for; NULL: none */
    char *tls_key;  /* NULL: it is in tls_cert */
};

/* Rows (arguments.h) of the options for all of `in`'s target but the server. */
#define WIRE_ROWS(in, target)                                                                      \
    {"auth-file", ARGUMENTS_TEXT(in, target.auth_file),                                            \
     .help = "file whose first line, name:password, is who we are (" WIRE_AUTH_FILE ")"},          \
        {"tls", ARGUMENTS_FLAG(in, target.tls), .help = "speak TLS; a unix socket is without"},    \
        {"tls-ca", ARGUMENTS_TEXT(in, target.tls_ca),                                              \
         .help = "who signed the daemon's certificate; else whom the system believes"},            \
        {"tls-cert", ARGUMENTS_TEXT(in, target.tls_cert),                                          \
         .help = "our own certificate, where the daemon asks for one"},                            \
    {                                                                                              \
        "tls-key", ARGUMENTS_TEXT(in, target.tls_key),                                             \
            .help = "its key; else it is in the same file"                                         \
    }

/* Nothing but the auth_file that the environment names, if it does. */
void wire_target_init(struct wire_target *target);

/* ---- the peer ---- */

struct net_tls_context;
/* Only read. */
struct wire_peer {
    char *address, *port;        /* the port where the address has none */
    char *auth_file;             /* NULL: none */
    char host[WIRE_ERROR_MAX];   /* that the certificate must be of */
    char login[WIRE_LOGIN_MAX];  /* name:password; "": none */
    struct net_tls_context *tls; /* NULL: none */
};

/* Reads the files. NULL with `error`: an option or a file is wrong. */
struct wire_peer *wire_peer_create(const struct wire_target *target, const char *port,
                                   char error[WIRE_ERROR_MAX]);
void wire_peer_destroy(struct wire_peer *peer); /* NULL: no-op */

#endif
