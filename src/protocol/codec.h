/*
 * codec.h: what a codec is: all that sets one dialect apart from another is a field of its table.
 *
 * A codec is pure: bytes to requests, replies to bytes. It opens no socket, knows no engine and
 * allocates nothing. The server gives it the bytes it has; the codec parses as many whole requests
 * as the batch takes; the server runs them and has every reply composed by the codec that parsed
 * it.
 *
 *     parse:    bytes -> struct request[] + struct request_key[]
 *     compose:  struct reply -> bytes, at the end of a struct buf
 */
#ifndef ROLLCALL_PROTOCOL_CODEC_H
#define ROLLCALL_PROTOCOL_CODEC_H

#include "protocol/auth.h"
#include "protocol/protocol.h"

#define CODEC_FIRST_ANY (-1)

struct codec {
    int first_byte;  /* first byte of its connections; CODEC_FIRST_ANY: any that is no other codec's
                      */
    bool has_meta;   /* its requests have `meta`; else they have `binary` */
    bool says_whose; /* its errors say in words whether the client or the server is at fault */
    bool initial_in_every; /* its clients send `initial` with every incr, wanted or not: a space
                              may decline it (binary_create) */
    /*
     * Before the connection is authenticated, in the place of parse: reads the first request of
     * bytes[0..length), length > 0. AUTH_MORE, AUTH_CLOSE: `request` means nothing.
     */
    enum auth_wish (*read_auth)(const char *bytes, size_t length, struct auth_request *request);
    /*
     * Parses bytes[0..length) from state into an empty batch (the batch's counts are reset here,
     * value_max is not). Returns which of the three reasons ended it; the batch may hold requests
     * with any of them.
     */
    enum protocol_result (*parse)(const struct protocol_state *state, const char *bytes,
                                  size_t length, struct request_batch *batch);
    /*
     * Returns the most bytes that the replies to a request can take, with values of up to
     * PROTOCOL_REPLY_VALUE_MAX bytes, for the check of the output's room. The server counts longer
     * values.
     */
    size_t (*reply_bytes_max)(const struct request *request);
    /* A hit of a get: value with its flags and token. */
    void (*compose_value)(struct buf *out, const struct request *request,
                          const struct request_key *key, const struct hit *hit);
    /*
     * The same of several keys of a request of several, one after the other; their values have so
     * many bytes in all.
     */
    void (*compose_values)(struct buf *out, const struct request *request,
                           const struct request_key *keys, const struct found *found, size_t count,
                           size_t value_bytes, uint32_t flags);
    /* The same of keys that have all the same value, of one byte, and token. False: nothing was
     * done, this request is for compose_values(). */
    bool (*compose_alike)(struct buf *out, const struct request *request,
                          const struct request_key *keys, const struct found *found, size_t count,
                          uint32_t flags);
    /* Composes the answer for a key of a get that was not found. NULL: it has none. */
    void (*compose_miss)(struct buf *out, const struct request *request,
                         const struct request_key *key);
    /* The end of a get or of one of its blocks (nothing is said then). */
    void (*compose_end)(struct buf *out, const struct request *request);
    /* One figure of stats, and the end of stats. False: no room in out. */
    bool (*compose_stat)(struct buf *out, const struct request *request, const char *name,
                         const char *text);
    void (*compose_stats_end)(struct buf *out, const struct request *request);
    /* One key of a list, and the end of one. False: no room in out. NULL: it has no lists. */
    bool (*list_key)(struct buf *out, enum listing listing, const struct listed_key *key);
    bool (*list_end)(struct buf *out, enum listing listing);
    /* Composes any other reply, also of quiet requests: the codec knows what they are to hear. */
    void (*compose)(struct buf *out, const struct request *request, const struct reply *reply);
    /*
     * The same of `count` bare requests INCR or DECR, whose numbers are these, and whose tokens,
     * where a request wants it: in PROTOCOL_NUMBER_MAX bytes each.
     */
    void (*compose_numbers)(struct buf *out, const struct request *requests,
                            const uint64_t *numbers, const uint64_t *tokens, size_t count);
    /*
     * Fills the request of one key of a joined one, which was parsed from `bytes`: what it was
     * before it was joined.
     */
    void (*part)(const struct request_batch *batch, const struct request *joined, uint32_t number,
                 const char *bytes, struct request *one);
    /*
     * Says where a get of several keys that is not joined goes on when only its first `answered`
     * keys are answered: fills the parser's state there and the offset in the parsed bytes. 0 <
     * answered < keys.
     */
    void (*cut)(const struct request_batch *batch, const struct request *request, uint32_t answered,
                const char *bytes, struct protocol_state *state, size_t *offset);
};

/* Returns the codec of a connection that begins with this byte. NULL: the byte begins a hello of
 * TLS. Static. */
const struct codec *codec_of(unsigned char first);

#endif
