/*
 * tls_peer.h: the client's end of TLS for the tests of net, and the certificates both ends need.
 *
 * The peer's bytes go through memory, so that a test may cut what goes over the wire as it likes.
 * Certificates are made anew by each run, in a folder of its own.
 */
#ifndef ROLLCALL_TESTS_UNIT_NET_TLS_PEER_H
#define ROLLCALL_TESTS_UNIT_NET_TLS_PEER_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#include "net/tls.h"

#define TLS_PATH_MAX 64

/* Somebody with a key and a certificate, both as files. */
struct tls_party {
    char certificate[TLS_PATH_MAX];
    char key[TLS_PATH_MAX];
    X509 *x509;
    EVP_PKEY *pair;
};

/* `name` in `folder`; signed by issuer, or by itself if that is NULL: then it may sign others. */
void tls_party_init(struct tls_party *party, const char *folder, const char *name,
                    const struct tls_party *issuer);
void tls_party_fini(struct tls_party *party); /* and deletes its files */

struct tls_peer {
    int fd;
    SSL_CTX *context;
    SSL *tls;
    BIO *in;  /* from the wire */
    BIO *out; /* to the wire */
};

/* Talks over fd, which it closes. It believes `ca` and shows `self` (NULL: nothing). */
void tls_peer_init(struct tls_peer *peer, int fd, const struct tls_party *ca,
                   const struct tls_party *self);
void tls_peer_fini(struct tls_peer *peer);

/* What is to go over the wire: at most `max` bytes, taken out. Returns how many. */
size_t tls_peer_wire(struct tls_peer *peer, char *bytes, size_t max);
void tls_peer_flush(struct tls_peer *peer); /* sends it */
bool tls_peer_fill(struct tls_peer *peer);  /* waits for more from the wire. False: it has ended */

bool tls_peer_agree(struct tls_peer *peer); /* the handshake. False: refused */
void tls_peer_compose(struct tls_peer *peer, const char *bytes, size_t length); /* not sent yet */
void tls_peer_say(struct tls_peer *peer, const char *text);
/* Up to length bytes; 0: the server said goodbye; -1: it ended otherwise. */
ssize_t tls_peer_read(struct tls_peer *peer, char *bytes, size_t length);
void tls_peer_expect(struct tls_peer *peer, const char *text);
void tls_peer_expect_big(struct tls_peer *peer, size_t letters);

#endif
