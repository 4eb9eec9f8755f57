/*
 * auth.h: what a connection may say before it is authenticated.
 *
 * A codec reads it with a parser of its own (codec.h: read_auth), which takes very little: of text
 * a `set` of any key, whose data is "user password" (memcached's -Y); of binary SASL with mechanism
 * PLAIN (RFC 4616) and the list of mechanisms. Not VERSION, which memcached answers. A line or body
 * has at most AUTH_REQUEST_MAX bytes. The parser is pure, runs in any thread and keeps no state:
 * what is not whole is parsed again from its first byte.
 */
#ifndef ROLLCALL_PROTOCOL_AUTH_H
#define ROLLCALL_PROTOCOL_AUTH_H

#include "protocol/protocol.h"

#define AUTH_REQUEST_MAX 1024 /* bytes of a line, of its data, of a binary body */
#define AUTH_MECHANISM   "PLAIN"

enum auth_wish {
    AUTH_MORE,  /* it is not whole */
    AUTH_CLOSE, /* nothing that follows can be answered */
    AUTH_TRY,   /* user and password are filled; NULL: they could not be read */
    AUTH_LIST,  /* the mechanisms */
    AUTH_OTHER, /* anything else: unauthenticated */
};

struct auth_request {
    const char *user;
    size_t user_length;
    const char *password;
    size_t password_length;
    size_t end;             /* of its bytes */
    struct request request; /* to compose the answer of */
};

static inline void auth_fill(struct auth_request *request, const char *user, size_t user_length,
                             const char *password, size_t password_length)
{
    request->user = user;
    request->user_length = user_length;
    request->password = password;
    request->password_length = password_length;
}

#endif
