/*
 * tls.h: TLS under a connection's bytes, by OpenSSL. Only tls.c and tls_context.c know the library;
 * built without it, tls_none.c stands for both and creates no context.
 *
 * A *context* is what the options' files say: certificate, key, trusted authorities. It never
 * changes; a reload makes another, and connections keep the one they began with. Contexts are
 * counted: each holder has a reference.
 *
 * A *session* is one connection's. It reads and writes the connection's socket, which does not
 * block, and does the handshake as part of the first reads. There are no renegotiation, tickets or
 * resumption, no early data, and nothing below TLS 1.2.
 *
 * What a socket's event says is not what a session waits for, hence:
 * - a read may have left bytes decrypted, for which no event will come: net_tls_pending().
 * - a read may have to write first, a write to read: net_tls_turned(). Then the other event than
 *   the usual one is to be waited for, and the same call made again.
 * - bytes of a write that was not taken must be the first of the next write; they may have moved.
 *
 * Thread rule: contexts by any thread, references are atomic; a session by one thread at a time.
 */
#ifndef ROLLCALL_NET_TLS_H
#define ROLLCALL_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NET_TLS_ERROR_MAX     512
#define NET_TLS_SESSION_BYTES (16u << 10) /* of an idle session, about: the library's memory */

enum net_tls_verify {
    NET_TLS_VERIFY_NONE,    /* a client's certificate is not asked for */
    NET_TLS_VERIFY_REQUEST, /* one that is shown must be good */
    NET_TLS_VERIFY_REQUIRE, /* it must be shown */
};

enum net_tls_version { NET_TLS_1_2, NET_TLS_1_3 };

struct net_tls_options {
    const char *certificate; /* file: PEM, its chain after it; NULL: none, of a client */
    const char *key;         /* file; without a passphrase */
    bool key_der;            /* it is DER, not PEM */
    const char *ca;          /* file: PEM, who signs clients' certificates; NULL: nobody */
    bool ca_system;          /* whom the system believes in, too: of a client */
    const char *ciphers;     /* of TLS 1.2, as OpenSSL writes them; NULL: its default */
    enum net_tls_verify verify;
    enum net_tls_version version_min;
};

struct net_tls_context;
struct net_tls;

/* Reads the files. NULL with `error`, which names the file and why. The caller has a reference. */
struct net_tls_context *net_tls_context_create(const struct net_tls_options *options,
                                               char error[NET_TLS_ERROR_MAX]);
struct net_tls_context *net_tls_context_share(struct net_tls_context *context); /* one more */
void net_tls_context_release(struct net_tls_context *context);                  /* NULL: no-op */
uint64_t net_tls_context_age_s(const struct net_tls_context *context);

/* The server's end on a connected socket that does not block; the socket stays the caller's. NULL:
 * no memory. */
struct net_tls *net_tls_create(const struct net_tls_context *context, int fd);
/*
 * The client's end: it shows the context's certificate if it is asked for one, and goes on only if
 * the other's is signed by the context's `ca`, for servers, and for `host`: a name or an address.
 * NULL: no memory.
 */
struct net_tls *net_tls_create_client(const struct net_tls_context *context, int fd,
                                      const char *host);
/* Returns why the other's certificate was refused, in the library's words; NULL: it was not. */
const char *net_tls_refused(const struct net_tls *tls);
/* Says goodbye if that does not block. NULL: no-op */
void net_tls_destroy(struct net_tls *tls);

/*
 * As recv and send: returns bytes, or -1 when the session is over: ended by the peer, broken, or
 * refused in the handshake. But 0 says that nothing could be done now. One call takes several
 * records, up to `length`.
 */
ssize_t net_tls_read(struct net_tls *tls, char *bytes, size_t length);
ssize_t net_tls_write(struct net_tls *tls, const char *bytes, size_t length);

bool net_tls_established(const struct net_tls *tls); /* the handshake was done */
bool net_tls_failed(const struct net_tls *tls); /* after that: what came was no TLS, or forged */
/* Another read will say something, without an event of the socket. */
bool net_tls_pending(const struct net_tls *tls);
/* The last call waits for the other direction than its own. */
bool net_tls_turned(const struct net_tls *tls);
/* A handshake or a record has begun, and its rest has not come. */
bool net_tls_half(const struct net_tls *tls);

#endif
