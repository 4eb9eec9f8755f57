/* tls_none.c: tls.h for a build without TLS: there is never a context, so there is no session. */
#include <stdio.h>

#include "base/check.h"
#include "net/tls.h"

struct net_tls_context *net_tls_context_create(const struct net_tls_options *options,
                                               char error[NET_TLS_ERROR_MAX])
{
    (void)options;
    snprintf(error, NET_TLS_ERROR_MAX, "this program was built without TLS");
    return NULL;
}

struct net_tls_context *net_tls_context_share(struct net_tls_context *context)
{
    CHECK(context == NULL);
    return NULL;
}

void net_tls_context_release(struct net_tls_context *context)
{
    CHECK(context == NULL);
}

uint64_t net_tls_context_age_s(const struct net_tls_context *context)
{
    CHECK(context == NULL);
    return 0;
}

struct net_tls *net_tls_create(const struct net_tls_context *context, int fd)
{
    (void)fd;
    CHECK(context == NULL);
    return NULL;
}

struct net_tls *net_tls_create_client(const struct net_tls_context *context, int fd,
                                      const char *host)
{
    (void)host;
    return net_tls_create(context, fd);
}

const char *net_tls_refused(const struct net_tls *tls)
{
    CHECK(tls == NULL);
    return NULL;
}

void net_tls_destroy(struct net_tls *tls)
{
    CHECK(tls == NULL);
}

ssize_t net_tls_read(struct net_tls *tls, char *bytes, size_t length)
{
    (void)bytes;
    (void)length;
    CHECK(tls == NULL);
    return -1;
}

ssize_t net_tls_write(struct net_tls *tls, const char *bytes, size_t length)
{
    (void)bytes;
    (void)length;
    CHECK(tls == NULL);
    return -1;
}

bool net_tls_established(const struct net_tls *tls)
{
    return tls != NULL;
}

bool net_tls_failed(const struct net_tls *tls)
{
    return tls != NULL;
}

bool net_tls_pending(const struct net_tls *tls)
{
    return tls != NULL;
}

bool net_tls_turned(const struct net_tls *tls)
{
    return tls != NULL;
}

bool net_tls_half(const struct net_tls *tls)
{
    return tls != NULL;
}
