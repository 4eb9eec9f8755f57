#include "tls_peer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "echo.h"

#define DAY_S      86400
#define WIRE_BYTES 16384

static void set_names(X509 *x509, const char *name, const struct tls_party *issuer)
{
    X509_NAME *subject = X509_get_subject_name(x509);
    assert_int_equal(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                                (const unsigned char *)name, -1, -1, 0),
                     1);
    X509_NAME *by = issuer != NULL ? X509_get_subject_name(issuer->x509) : subject;
    assert_int_equal(X509_set_issuer_name(x509, by), 1);
}

/* It may sign others, or not. */
static void set_authority(X509 *x509, bool authority)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints,
                                                    authority ? "critical,CA:TRUE" : "CA:FALSE");
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(x509, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

/* Whom clients may meet under it. */
static void set_hosts(X509 *x509)
{
    X509_EXTENSION *extension =
        X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(x509, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static void sign(struct tls_party *party, const char *name, const struct tls_party *issuer)
{
    static long serial;
    X509 *x509 = party->x509;
    assert_int_equal(X509_set_version(x509, X509_VERSION_3), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(x509), ++serial), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(x509), -DAY_S));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(x509), DAY_S));
    assert_int_equal(X509_set_pubkey(x509, party->pair), 1);
    set_names(x509, name, issuer);
    set_authority(x509, issuer == NULL);
    set_hosts(x509);
    assert_true(X509_sign(x509, issuer != NULL ? issuer->pair : party->pair, EVP_sha256()) > 0);
}

void tls_party_init(struct tls_party *party, const char *folder, const char *name,
                    const struct tls_party *issuer)
{
    party->pair = EVP_EC_gen("P-256");
    party->x509 = X509_new();
    assert_true(party->pair != NULL && party->x509 != NULL);
    sign(party, name, issuer);
    snprintf(party->certificate, TLS_PATH_MAX, "%s/%s.crt", folder, name);
    snprintf(party->key, TLS_PATH_MAX, "%s/%s.key", folder, name);
    FILE *file = fopen(party->certificate, "we");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, party->x509), 1);
    fclose(file);
    file = fopen(party->key, "we");
    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, party->pair, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
}

void tls_party_fini(struct tls_party *party)
{
    unlink(party->certificate);
    unlink(party->key);
    X509_free(party->x509);
    EVP_PKEY_free(party->pair);
}

void tls_peer_init(struct tls_peer *peer, int fd, const struct tls_party *ca,
                   const struct tls_party *self)
{
    int on = 1;
    peer->fd = fd;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* it may be a unix socket */
    peer->context = SSL_CTX_new(TLS_client_method());
    assert_non_null(peer->context);
    SSL_CTX_set_verify(peer->context, SSL_VERIFY_PEER, NULL);
    assert_int_equal(SSL_CTX_load_verify_file(peer->context, ca->certificate), 1);
    if (self != NULL) {
        assert_int_equal(SSL_CTX_use_certificate(peer->context, self->x509), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(peer->context, self->pair), 1);
    }
    peer->tls = SSL_new(peer->context);
    peer->in = BIO_new(BIO_s_mem());
    peer->out = BIO_new(BIO_s_mem());
    assert_true(peer->tls != NULL && peer->in != NULL && peer->out != NULL);
    SSL_set_bio(peer->tls, peer->in, peer->out);
    SSL_set_connect_state(peer->tls);
}

void tls_peer_fini(struct tls_peer *peer)
{
    SSL_free(peer->tls); /* and both BIOs */
    SSL_CTX_free(peer->context);
    close(peer->fd);
    ERR_clear_error();
}

size_t tls_peer_wire(struct tls_peer *peer, char *bytes, size_t max)
{
    int some = BIO_read(peer->out, bytes, (int)max);
    return some > 0 ? (size_t)some : 0;
}

void tls_peer_flush(struct tls_peer *peer)
{
    char bytes[WIRE_BYTES];
    for (size_t some; (some = tls_peer_wire(peer, bytes, sizeof(bytes))) > 0;) {
        client_send(peer->fd, bytes, some);
    }
}

bool tls_peer_fill(struct tls_peer *peer)
{
    char bytes[WIRE_BYTES];
    ssize_t got = recv(peer->fd, bytes, sizeof(bytes), 0);
    if (got <= 0) {
        return false;
    }
    assert_int_equal(BIO_write(peer->in, bytes, (int)got), got);
    return true;
}

bool tls_peer_agree(struct tls_peer *peer)
{
    int result;
    while ((result = SSL_do_handshake(peer->tls)) != 1) {
        bool more = SSL_get_error(peer->tls, result) == SSL_ERROR_WANT_READ;
        tls_peer_flush(peer);
        if (!more || !tls_peer_fill(peer)) {
            return false;
        }
    }
    tls_peer_flush(peer);
    return true;
}

void tls_peer_compose(struct tls_peer *peer, const char *bytes, size_t length)
{
    size_t written = 0;
    assert_int_equal(SSL_write_ex(peer->tls, bytes, length, &written), 1);
    assert_int_equal(written, length);
}

void tls_peer_say(struct tls_peer *peer, const char *text)
{
    tls_peer_compose(peer, text, strlen(text));
    tls_peer_flush(peer);
}

ssize_t tls_peer_read(struct tls_peer *peer, char *bytes, size_t length)
{
    size_t got = 0;
    for (;;) {
        int result = SSL_read_ex(peer->tls, bytes, length, &got);
        if (result == 1) {
            return (ssize_t)got;
        }
        int code = SSL_get_error(peer->tls, result);
        if (code == SSL_ERROR_ZERO_RETURN) {
            return 0;
        }
        if (code != SSL_ERROR_WANT_READ || !tls_peer_fill(peer)) {
            ERR_clear_error();
            return -1;
        }
    }
}

static void receive(struct tls_peer *peer, char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t got = tls_peer_read(peer, bytes, length);
        assert_true(got > 0);
        bytes += got;
        length -= (size_t)got;
    }
}

void tls_peer_expect(struct tls_peer *peer, const char *text)
{
    char got[4096];
    size_t length = strlen(text);
    assert_true(length < sizeof(got));
    receive(peer, got, length);
    assert_memory_equal(got, text, length);
}

void tls_peer_expect_big(struct tls_peer *peer, size_t letters)
{
    char *got = malloc(letters + 1);
    assert_non_null(got);
    receive(peer, got, letters + 1);
    assert_null(memchr(got, '\n', letters));
    assert_int_equal(got[letters], '\n');
    free(got);
}
