/*
 * protocol.h: the one request and the one reply that text, meta and binary share, and what a codec is.
 *
 * A codec is pure: bytes to requests, replies to bytes. It opens no socket, knows no engine and
 * allocates nothing. The server gives it the bytes it has; the codec parses as many whole requests as
 * the batch takes; the server runs them and has every reply composed by the codec that parsed it.
 *
 *     parse:    bytes -> struct request[] + struct request_key[]
 *     compose:  struct reply -> bytes, at the end of a struct buf
 *
 * Keys, values and opaque data are pointers into the bytes given to parse: valid until those bytes
 * are consumed, i.e. during the turn. Keys are opaque here.
 *
 * A batch may be cut short by the server at any request (a full output, a pending read): it puts
 * `before` of that request back as the parser's state, consumes the bytes in front of `begin`, and
 * later parses again from there. So parsing has no effect beyond the state it is given.
 */
#ifndef ROLLCALL_PROTOCOL_PROTOCOL_H
#define ROLLCALL_PROTOCOL_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define PROTOCOL_KEY_MAX        250         /* bytes of a key */
#define PROTOCOL_LINE_MAX       2048        /* bytes of a command line, its end included */
#define PROTOCOL_GET_LINE_MAX   (1u << 20)  /* bytes of a line that begins "get " or "gets " */
#define PROTOCOL_VALUE_MAX      4096        /* bytes of a value */
#define PROTOCOL_GET_KEYS_BLOCK 1024        /* keys of one get resolved and answered together */
#define PROTOCOL_BATCH_REQUESTS 256
#define PROTOCOL_BATCH_KEYS     4096
#define PROTOCOL_ERROR_MAX      78          /* bytes of an error line, its end included */

enum verb {
    VERB_ERROR, /* the codec refused it: `refusal` and `text` are the answer */
    VERB_GET,   /* one or more keys; block of a longer get when `more` is set */
    VERB_GAT,
    VERB_TOUCH,
    VERB_SET,
    VERB_ADD,
    VERB_REPLACE,
    VERB_APPEND,
    VERB_PREPEND,
    VERB_CAS,
    VERB_INCR,
    VERB_DECR,
    VERB_DELETE,
    VERB_FLUSH_ALL,
    VERB_VERSION,
    VERB_VERBOSITY,
    VERB_STATS,
    VERB_SHUTDOWN,
    VERB_NOOP, /* mn */
    VERB_QUIT,
    VERB_COUNT
};

enum reply_status {
    REPLY_OK,
    REPLY_STORED,
    REPLY_NOT_STORED,
    REPLY_EXISTS,
    REPLY_NOT_FOUND,
    REPLY_DELETED,
    REPLY_TOUCHED,
    REPLY_NUMBER,  /* incr, decr: `value` is the text of the result */
    REPLY_VERSION, /* `value` */
    REPLY_NOOP,
    REPLY_RESET,        /* stats reset */
    REPLY_ERROR,        /* "ERROR" and, right behind it, `value` if there is one */
    REPLY_CLIENT_ERROR, /* `value` is the text behind it */
    REPLY_SERVER_ERROR,
    REPLY_NONE /* nothing is said */
};

/* The state of a connection's parser between turns. All zero at first. Copied freely. */
struct protocol_state {
    uint32_t swallow_bytes; /* of a refused data block still to be dropped */
    uint32_t line_seen;     /* of an unfinished get line: bytes known to hold no newline */
    uint8_t in_get;         /* inside a get whose earlier blocks were answered: text_get.c */
    uint8_t in_get_cas;     /* that get wants tokens */
    uint8_t in_get_verb;    /* enum verb of it: VERB_GET or VERB_GAT */
    uint8_t spare;
};

struct request_key {
    const char *bytes;
    uint32_t length; /* 1..PROTOCOL_KEY_MAX */
};

struct request {
    enum verb verb;
    bool quiet;             /* noreply, and the quiet binary opcodes: successes are not answered */
    bool want_cas;          /* gets, gats */
    bool more;              /* a block of a get that goes on in the next request: no END yet */
    bool swallow_after;     /* informative: a refused data block follows */
    enum reply_status refusal; /* VERB_ERROR: REPLY_ERROR, _CLIENT_ERROR or _SERVER_ERROR … */
    const char *text;       /* … and the text behind it (static) */
    uint32_t first_key;     /* index into the batch's keys */
    uint32_t keys;          /* how many */
    const char *value;      /* SET ADD REPLACE APPEND PREPEND CAS: data; INCR DECR: the delta as sent;
                               STATS VERBOSITY: the arguments */
    uint32_t value_length;
    uint32_t flags;         /* of a write */
    int64_t exptime;        /* as sent; negative: already past */
    uint64_t cas;
    uint64_t delay;         /* FLUSH_ALL */
    size_t begin;           /* offset of its first byte in the parsed bytes … */
    size_t end;             /* … and of the first byte behind it */
    struct protocol_state before; /* the parser's state in front of it */
};

struct request_batch {
    struct request requests[PROTOCOL_BATCH_REQUESTS];
    struct request_key keys[PROTOCOL_BATCH_KEYS];
    uint32_t request_count;
    uint32_t key_count;
    size_t consumed;              /* bytes that need not be seen again if all requests are run */
    struct protocol_state after;  /* the state behind the last request and the consumed bytes */
};

enum protocol_result {
    PROTOCOL_MORE,  /* what is left is no whole request: more bytes are needed */
    PROTOCOL_FULL,  /* the batch is full: run it and parse again */
    PROTOCOL_CLOSE, /* the bytes behind the batch's last request cannot be answered: run it, then close */
};

struct reply {
    enum reply_status status;
    const char *value; /* see the status */
    size_t value_length;
};

struct codec {
    const char *name; /* "text" */
    /*
     * Parses bytes[0..length) from state into an empty batch (the batch's counts are reset here).
     * Returns which of the three reasons ended it; the batch may hold requests with any of them.
     */
    enum protocol_result (*parse)(const struct protocol_state *state, const char *bytes,
                                  size_t length, struct request_batch *batch);
    /*
     * The most bytes that the replies to a request can take, for the check of the output's room.
     */
    size_t (*reply_bytes_max)(const struct request *request);
    /* A hit of a get: value with its flags and token. */
    void (*compose_value)(struct buf *out, const struct request *request,
                          const struct request_key *key, const char *value, size_t value_length,
                          uint32_t flags, uint64_t cas);
    /* The end of a get or of one of its blocks (nothing is said then). */
    void (*compose_end)(struct buf *out, const struct request *request);
    /* One figure of stats, and the end of stats. False: no room in out. */
    bool (*compose_stat)(struct buf *out, const struct request *request, const char *name,
                         const char *text);
    void (*compose_stats_end)(struct buf *out, const struct request *request);
    /* Any other reply. Quiet requests are not answered: the server does not call it for them. */
    void (*compose)(struct buf *out, const struct request *request, const struct reply *reply);
};

#endif
