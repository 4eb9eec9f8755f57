#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "base/check.h"
#include "net/tls_private.h"

#define READ_RECORDS_MAX 256 /* in one read: small ones must not keep the worker */
#define READ_UPDATES_MAX 64  /* changes of keys in one read: nobody needs so many */
#define HANDSHAKE_UPDATE 24  /* RFC 8446: the message key_update */

struct net_tls {
    SSL *library;
    unsigned updates; /* in this read */
    bool agreed;      /* the library forgets it when a session fails */
    bool failed;      /* see net_tls_failed() */
    bool over;        /* nothing more comes */
    bool broken;      /* nor can anything be said, goodbye neither */
    bool pending;     /* see net_tls_pending() */
    bool turned;      /* see net_tls_turned() */
    bool half;        /* a record has begun */
};

/*
 * Each message of the peer. The library goes on reading through changes of keys for as long as they
 * come, and each costs more to take than to send: too many of them end the connection.
 */
static void on_message(int writing, int version, int type, const void *bytes, size_t length,
                       SSL *library, void *argument)
{
    struct net_tls *tls = argument;
    (void)version;
    if (writing || type != SSL3_RT_HANDSHAKE || length == 0 ||
        *(const unsigned char *)bytes != HANDSHAKE_UPDATE) {
        return;
    }
    if (++tls->updates > READ_UPDATES_MAX) {
        SSL_set_shutdown(library, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    }
}

/* Neither end yet. NULL: no memory. */
static struct net_tls *tls_new(const struct net_tls_context *context, int fd)
{
    struct net_tls *tls = calloc(1, sizeof(*tls));
    if (tls == NULL) {
        return NULL;
    }
    ERR_clear_error();
    tls->library = SSL_new(context->library);
    if (tls->library == NULL || SSL_set_fd(tls->library, fd) != 1) {
        ERR_clear_error();
        SSL_free(tls->library);
        free(tls);
        return NULL;
    }
    SSL_set_msg_callback(tls->library, on_message);
    SSL_set_msg_callback_arg(tls->library, tls);
    return tls;
}

struct net_tls *net_tls_create(const struct net_tls_context *context, int fd)
{
    struct net_tls *tls = tls_new(context, fd);
    if (tls != NULL) {
        SSL_set_accept_state(tls->library);
    }
    return tls;
}

/* Sets whose certificate the other must have: an address, or a name, which is asked for as well. */
static bool tls_expect(SSL *library, const char *host)
{
    X509_VERIFY_PARAM *rules = SSL_get0_param(library);

    if (X509_VERIFY_PARAM_set1_ip_asc(rules, host) == 1) {
        return true;
    }
    ERR_clear_error();
    return SSL_set1_host(library, host) == 1 && SSL_set_tlsext_host_name(library, host) == 1;
}

struct net_tls *net_tls_create_client(const struct net_tls_context *context, int fd,
                                      const char *host)
{
    struct net_tls *tls = tls_new(context, fd);
    if (tls == NULL) {
        return NULL;
    }
    if (!tls_expect(tls->library, host)) {
        net_tls_destroy(tls);
        return NULL;
    }
    SSL_set_verify(tls->library, SSL_VERIFY_PEER, NULL);
    SSL_set_connect_state(tls->library);
    return tls;
}

const char *net_tls_refused(const struct net_tls *tls)
{
    long result = SSL_get_verify_result(tls->library);

    return result == X509_V_OK ? NULL : X509_verify_cert_error_string(result);
}

void net_tls_destroy(struct net_tls *tls)
{
    if (tls == NULL) {
        return;
    }
    if (!tls->broken && SSL_is_init_finished(tls->library)) {
        ERR_clear_error();
        (void)SSL_shutdown(tls->library); /* the peer's is not waited for */
    }
    ERR_clear_error();
    SSL_free(tls->library);
    free(tls);
}

/* After a call that did nothing: notes what it waits for. `own`: the library's word for its own
 * direction. */
static void note_failure(struct net_tls *tls, int result, int own)
{
    int code = SSL_get_error(tls->library, result);
    tls->failed = tls->agreed && code == SSL_ERROR_SSL;
    tls->agreed = tls->agreed || SSL_is_init_finished(tls->library) == 1;
    if (code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE) {
        tls->turned = code != own;
        return;
    }
    tls->over = true;
    tls->broken =
        code != SSL_ERROR_ZERO_RETURN; /* a client that said goodbye may still be answered */
}

ssize_t net_tls_read(struct net_tls *tls, char *bytes, size_t length)
{
    size_t got = 0;
    tls->updates = 0;
    tls->pending = false;
    tls->turned = false;
    for (unsigned n = 0; got < length && n < READ_RECORDS_MAX && !tls->over; n++) {
        size_t some = 0;
        ERR_clear_error();
        int result = SSL_read_ex(tls->library, bytes + got, length - got, &some);
        if (result != 1) {
            note_failure(tls, result, SSL_ERROR_WANT_READ);
            tls->half = SSL_has_pending(tls->library) == 1;
            tls->pending = tls->over && got > 0; /* the next call tells the end */
            break;
        }
        got += some;
        tls->agreed = true;
        tls->half = false;
        tls->pending = SSL_has_pending(tls->library) == 1;
    }
    return got == 0 && tls->over ? -1 : (ssize_t)got;
}

ssize_t net_tls_write(struct net_tls *tls, const char *bytes, size_t length)
{
    size_t sent = 0;
    tls->turned = false;
    while (sent < length && !tls->broken) {
        size_t some = 0;
        ERR_clear_error();
        int result = SSL_write_ex(tls->library, bytes + sent, length - sent, &some);
        if (result != 1) {
            note_failure(tls, result, SSL_ERROR_WANT_WRITE);
            break;
        }
        sent += some;
        tls->agreed = true;
    }
    return tls->broken ? -1 : (ssize_t)sent;
}

bool net_tls_established(const struct net_tls *tls)
{
    return tls->agreed;
}

bool net_tls_failed(const struct net_tls *tls)
{
    return tls->failed;
}

bool net_tls_pending(const struct net_tls *tls)
{
    return tls->pending;
}

bool net_tls_turned(const struct net_tls *tls)
{
    return tls->turned;
}

bool net_tls_half(const struct net_tls *tls)
{
    return tls->half || !net_tls_established(tls);
}
