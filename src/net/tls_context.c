/* tls_context.c: certificates and keys as OpenSSL's context, and its replacement at a reload. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fail.h"
#include "net/tls_private.h"

/* One attempt: what is made, and where its error goes. */
struct making {
    const struct net_tls_options *options;
    SSL_CTX *library;
    bool passphrase; /* the key asked for one */
    char *error;
};

static bool tls_context_fail(const struct making *making, const char *what, const char *file,
                             const char *why)
{
    return fail_with(making->error, NET_TLS_ERROR_MAX, "%s %.280s: %.160s", what, file, why);
}

/* With what the library has to say. */
static bool fail_library(const struct making *making, const char *what, const char *file)
{
    const char *why = ERR_reason_error_string(ERR_peek_error()); /* the first: the cause */
    return tls_context_fail(making, what, file, why != NULL ? why : "refused by the TLS library");
}

/* What the system says of a file is clearer than what the library makes of it. */
static bool readable(const struct making *making, const char *what, const char *file)
{
    char byte;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && read(fd, &byte, 1) >= 0;
    int saved = errno;
    if (fd >= 0) {
        close(fd);
    }
    return good || tls_context_fail(making, what, file, strerror(saved));
}

/* Instead of the library's question on the terminal. */
static int refuse_passphrase(char *buffer, int size, int writing, void *argument)
{
    struct making *making = argument;
    (void)buffer;
    (void)size;
    (void)writing;
    making->passphrase = true;
    return -1;
}

static bool load_certificate(struct making *making)
{
    const char *file = making->options->certificate;
    if (file == NULL) {
        return true;
    }
    if (!readable(making, "certificate", file)) {
        return false;
    }
    return SSL_CTX_use_certificate_chain_file(making->library, file) == 1 ||
           fail_library(making, "certificate", file);
}

static bool load_key(struct making *making)
{
    const struct net_tls_options *options = making->options;
    int type = options->key_der ? SSL_FILETYPE_ASN1 : SSL_FILETYPE_PEM;
    if (options->certificate == NULL) {
        return true;
    }
    if (!readable(making, "key", options->key)) {
        return false;
    }
    bool used = SSL_CTX_use_PrivateKey_file(making->library, options->key, type) == 1;
    if (making->passphrase) {
        return tls_context_fail(making, "key", options->key, "it has a passphrase");
    }
    bool other = ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH;
    if (!used && !other) {
        return fail_library(making, "key", options->key);
    }
    return (used && SSL_CTX_check_private_key(making->library) == 1) ||
           tls_context_fail(making, "key", options->key, "it is not that of the certificate");
}

static bool load_system_ca(struct making *making)
{
    return !making->options->ca_system || SSL_CTX_set_default_verify_paths(making->library) == 1 ||
           fail_library(making, "ca", "of the system");
}

static bool load_ca(struct making *making)
{
    const char *file = making->options->ca;
    if (file == NULL) {
        return true;
    }
    if (!readable(making, "ca", file)) {
        return false;
    }
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(file);
    if (names == NULL || SSL_CTX_load_verify_file(making->library, file) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return fail_library(making, "ca", file);
    }
    SSL_CTX_set_client_CA_list(making->library, names); /* takes them over */
    return true;
}

static bool set_ciphers(struct making *making)
{
    const char *ciphers = making->options->ciphers;
    return ciphers == NULL || SSL_CTX_set_cipher_list(making->library, ciphers) == 1 ||
           fail_library(making, "ciphers", ciphers);
}

static bool set_version(struct making *making)
{
    bool newest = making->options->version_min == NET_TLS_1_3;
    return SSL_CTX_set_min_proto_version(making->library,
                                         newest ? TLS1_3_VERSION : TLS1_2_VERSION) == 1 ||
           fail_library(making, "min-version", newest ? "1.3" : "1.2");
}

static void set_modes(struct making *making)
{
    static const int verify[] = {
        [NET_TLS_VERIFY_NONE] = SSL_VERIFY_NONE,
        [NET_TLS_VERIFY_REQUEST] = SSL_VERIFY_PEER,
        [NET_TLS_VERIFY_REQUIRE] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
    };
    SSL_CTX *library = making->library;
    SSL_CTX_set_default_passwd_cb(library, refuse_passphrase);
    SSL_CTX_set_default_passwd_cb_userdata(library, making);
    SSL_CTX_set_verify(library, verify[making->options->verify], NULL);
    /* An end without goodbye is an end: whole requests are known without it. */
    SSL_CTX_set_options(library, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    /* What is resumed was verified by files that may have been replaced since. */
    SSL_CTX_set_session_cache_mode(library, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(library, 0);
    SSL_CTX_set_mode(library, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(library, 1); /* a record, or several, with one read */
}

struct net_tls_context *net_tls_context_create(const struct net_tls_options *options,
                                               char error[NET_TLS_ERROR_MAX])
{
    struct making making = {.options = options, .error = error};
    struct net_tls_context *context = malloc(sizeof(*context));
    making.library = SSL_CTX_new(TLS_method());
    snprintf(error, NET_TLS_ERROR_MAX, "out of memory");
    ERR_clear_error();
    if (context == NULL || making.library == NULL) {
        goto failed;
    }
    set_modes(&making);
    if (!set_version(&making) || !load_certificate(&making) || !load_key(&making) ||
        !load_ca(&making) || !load_system_ca(&making) || !set_ciphers(&making)) {
        goto failed;
    }
    SSL_CTX_set_default_passwd_cb_userdata(making.library, NULL); /* `making` ends here */
    context->library = making.library;
    context->made_us = clock_monotonic_us();
    atomic_init(&context->references, 1);
    return context;
failed:
    ERR_clear_error();
    SSL_CTX_free(making.library);
    free(context);
    return NULL;
}

struct net_tls_context *net_tls_context_share(struct net_tls_context *context)
{
    unsigned before = atomic_fetch_add(&context->references, 1);
    CHECK(before > 0);
    return context;
}

void net_tls_context_release(struct net_tls_context *context)
{
    if (context == NULL) {
        return;
    }
    unsigned before = atomic_fetch_sub(&context->references, 1);
    CHECK(before > 0);
    if (before == 1) {
        SSL_CTX_free(context->library);
        free(context);
    }
}

uint64_t net_tls_context_age_s(const struct net_tls_context *context)
{
    return (clock_monotonic_us() - context->made_us) / 1000000;
}
