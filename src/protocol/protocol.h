/*
 * protocol.h: the one request and the one reply that text, meta and binary share (codec.h).
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
#include <string.h>

#include "base/buf.h"
#include "base/check.h"

#define PROTOCOL_KEY_MAX         250        /* bytes of a key */
#define PROTOCOL_LINE_MAX        2048       /* bytes of a command line, its end included */
#define PROTOCOL_GET_LINE_MAX    (1u << 20) /* bytes of a line that begins "get " or "gets " */
#define PROTOCOL_VALUE_MAX       4096       /* bytes of a value that engines of ids take */
#define PROTOCOL_GET_KEYS_BLOCK  1024       /* keys of one get resolved and answered together */
#define PROTOCOL_BATCH_REQUESTS  256
#define PROTOCOL_JOINED_MAX      32 /* requests that are joined in one */
#define PROTOCOL_BATCH_KEYS      4096
#define PROTOCOL_ERROR_MAX       78    /* bytes of an error line, its end included */
#define PROTOCOL_REPLY_VALUE_MAX 512   /* bytes of a value as engines of ids hold it */
#define PROTOCOL_NUMBER_MAX      32    /* of that to a bare increment */
#define PROTOCOL_REPLY_BYTES_MAX 4096  /* of the reply to one key, with a value as above */
#define PROTOCOL_SCRATCH_BYTES   16384 /* of a batch, for what requests do not hold as such */

/* Which answers a request wants to be spared. */
enum request_quiet {
    QUIET_NO,
    QUIET_ALL,   /* noreply: every one, errors too */
    QUIET_USUAL, /* quiet opcodes of binary, meta's q: the codec knows which; never an error */
};

/* What incr and decr do with a number that is not there. */
enum request_create {
    CREATE_ROLE,    /* as the space's role says */
    CREATE_INITIAL, /* it becomes `initial`, the delta is not applied */
    CREATE_NEVER,
};

enum verb {
    VERB_ERROR, /* the codec refused it: `refusal` and `text` are the answer. With detail TOO_LARGE
                   and a key: a set, whose older value is out of date */
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
    VERB_CRAWLER, /* lru_crawler: `value` is what stands after it */
    VERB_NOOP,    /* mn */
    VERB_QUIT,
    VERB_FEED, /* follow, copy, promote, follow-to: the rest of the line, and all that comes later,
                  is src/repl's */
    VERB_SASL_LIST, /* binary alone; without authentication they are unknown commands */
    VERB_SASL,      /* start and step, after a successful one */
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
    REPLY_QUIT,         /* text says nothing */
    REPLY_SASL_LIST,    /* `value`: the mechanisms */
    REPLY_LOGIN,        /* `value`: what SASL says of it; detail AUTH: it failed */
    REPLY_RESET,        /* stats reset */
    REPLY_WORDS,        /* `value` */
    REPLY_ERROR,        /* "ERROR" and, right after it, `value` if there is one */
    REPLY_CLIENT_ERROR, /* `value` is the text after it */
    REPLY_SERVER_ERROR,
    REPLY_NONE /* nothing is said */
};

/* What an error is about, for dialects that have a number for it. */
enum reply_detail {
    DETAIL_NONE,
    DETAIL_NON_NUMERIC,
    DETAIL_TOO_LARGE,
    DETAIL_OUT_OF_MEMORY,
    DETAIL_BUSY, /* the same request may do better later */
    DETAIL_UNKNOWN_COMMAND,
    DETAIL_AUTH,
};

/* The state of a connection's parser between turns. All zero at first. Copied freely. */
struct protocol_state {
    uint32_t swallow_bytes; /* of a refused data block still to be dropped */
    uint32_t line_seen;     /* of an unfinished get line: bytes known to hold no newline */
    uint8_t in_get;         /* inside a get whose earlier blocks were answered: text_get.c */
    uint8_t in_get_cas;     /* that get wants tokens */
    uint8_t in_get_verb;    /* enum verb of it: VERB_GET or VERB_GAT */
    uint8_t spare;
    int32_t in_get_exptime; /* VERB_GAT: as sent */
};

/* Returns how many of `left` bytes belong to a refused data block: they are dropped. */
static inline size_t protocol_swallow(struct protocol_state *state, size_t left)
{
    size_t dropped = state->swallow_bytes < left ? state->swallow_bytes : left;
    state->swallow_bytes -= (uint32_t)dropped;
    return dropped;
}

struct request_key {
    const char *bytes;
    uint32_t length; /* 1..PROTOCOL_KEY_MAX */
};

/* What answers need of a meta request: its line after the verb, from the key to the last token. */
struct request_meta {
    const char *line; /* NULL: no meta request */
    uint32_t length;
    uint16_t key_length; /* as sent */
    bool info;           /* me: what is known of the key, no value */
    bool letters_alone;  /* each of its flags is a letter alone, after one space */
    uint64_t letters;    /* the flags it has, a bit each (meta_private.h) */
};

/* What answers need of a binary request. */
struct request_binary {
    uint32_t opaque; /* as sent: it is echoed, never read */
    uint8_t opcode;
};

/* What meta commands ask of plain values alone. Its times are as sent. */
struct request_extended {
    bool vivify;        /* mg N, ms N of an append: what is not there comes to be */
    bool vivify_first;  /* N stands before T */
    bool recache;       /* mg R */
    bool recache_first; /* R stands before T */
    bool unnoticed;     /* mg u, me: it does not count as read */
    bool invalidate;    /* md I, ms I */
    bool empty;         /* md x */
    bool touch;         /* md T */
    bool gives_token;   /* E */
    int32_t vivify_exptime;
    int32_t recache_exptime;
    uint64_t token;
};

struct request {
    enum verb verb;
    enum request_quiet quiet : 8;
    enum request_create create : 8; /* INCR, DECR */
    bool want_cas;      /* the answer needs the token: gets, gats; of a write: the token after it */
    bool compare;       /* INCR DECR DELETE APPEND PREPEND: only if `cas` is the token */
    bool touch;         /* INCR DECR: what is there gets touch_exptime */
    bool plain_only;    /* it asks for what only plain values can do: refused for others */
    bool more;          /* a block of a get that goes on in the next request: no END yet */
    bool joined;        /* it is several of one key each, alike in all else but what codec.part()
                           fills: each is answered for itself */
    bool swallow_after; /* informative: a refused data block follows */
    bool bare;          /* a change that asks for nothing more, its one key, a value for ids, the
                           token and never to create apart (flags are plain values'): a codec
                           that knows may say so */
    enum reply_status refusal : 8; /* VERB_ERROR: REPLY_ERROR, _CLIENT_ERROR or _SERVER_ERROR … */
    enum reply_detail detail : 8;  /* … what it is about … */
    const char *text;              /* … and the text after it (static) */
    const struct request_extended *extended; /* into the batch; NULL: nothing of it is asked */
    uint32_t first_key;                      /* index into the batch's keys */
    uint32_t keys;                           /* how many */
    const char *value; /* SET ADD REPLACE APPEND PREPEND CAS: data; INCR DECR: the delta as
                          sent, or in digits; STATS VERBOSITY: the arguments */
    uint32_t value_length;
    uint32_t flags;  /* of a write */
    int64_t exptime; /* as sent; negative: already past; GET: not looked at */
    uint64_t cas;
    int64_t touch_exptime;
    union {
        uint64_t delay;   /* FLUSH_ALL */
        uint64_t initial; /* INCR, DECR: with CREATE_INITIAL */
    };
    size_t begin; /* offset of its first byte in the parsed bytes … */
    size_t end;   /* … and of the first byte after it */
    union {
        struct request_meta meta;
        struct request_binary binary;
    };
    struct protocol_state before; /* the parser's state in front of it */
};

struct request_batch {
    uint32_t value_max; /* set by the server before parse: data longer than that is refused */
    bool joins;         /* likewise: gets of one key each may be joined */
    bool any_meta;      /* not by the server: one of its requests has `meta` */
    uint32_t request_count;
    uint32_t key_count;
    uint32_t scratch_used;       /* of scratch: decoded keys, deltas as digits */
    size_t consumed;             /* bytes that need not be seen again if all requests are run */
    struct protocol_state after; /* the state after the last request and the consumed bytes */
    struct request requests[PROTOCOL_BATCH_REQUESTS];
    struct request_key keys[PROTOCOL_BATCH_KEYS];
    char scratch[PROTOCOL_SCRATCH_BYTES];
    struct request_extended extended[PROTOCOL_BATCH_REQUESTS]; /* apart: hardly ever touched */
};

/* Returns whether it has no room for one more request of a key. */
static inline bool protocol_is_full(const struct request_batch *batch)
{
    return batch->request_count == PROTOCOL_BATCH_REQUESTS ||
           batch->key_count == PROTOCOL_BATCH_KEYS;
}

#define PROTOCOL_CLEAR_BYTES 64 /* more at once become a string instruction, much slower */

/* Returns the batch's next request, for which there is room, empty but for this. */
static inline struct request *protocol_push(struct request_batch *batch, enum verb verb,
                                            size_t begin, size_t end,
                                            const struct protocol_state *before)
{
    CHECK(batch->request_count < PROTOCOL_BATCH_REQUESTS);
    struct request *request = &batch->requests[batch->request_count++];
    _Static_assert(offsetof(struct request, begin) <= 2 * PROTOCOL_CLEAR_BYTES, "in two parts");
    memset(request, 0, PROTOCOL_CLEAR_BYTES);
    memset((char *)request + PROTOCOL_CLEAR_BYTES, 0,
           offsetof(struct request, begin) - PROTOCOL_CLEAR_BYTES);
    request->verb = verb;
    request->first_key = batch->key_count;
    request->begin = begin;
    request->end = end;
    request->meta = (struct request_meta){.line = NULL};
    request->before = *before;
    return request;
}

/* Returns the batch's next request, for which there is room, as its last one but for its key and
 * its bytes. */
static inline struct request *protocol_push_alike(struct request_batch *batch,
                                                  const struct request_key *key, size_t begin,
                                                  size_t end)
{
    CHECK(batch->request_count - 1 < PROTOCOL_BATCH_REQUESTS - 1);
    struct request *request = &batch->requests[batch->request_count++];
    *request = request[-1];
    request->first_key = batch->key_count;
    request->begin = begin;
    request->end = end;
    batch->keys[batch->key_count++] = *key;
    return request;
}

/* Returns how many requests of the client end with it; a block of a longer get is none. */
static inline uint32_t protocol_asked(const struct request *request)
{
    return request->joined ? request->keys : !request->more;
}

/* Returns the bytes of keys that were parsed one after the other, and of what is between them. */
static inline size_t protocol_keys_span(const struct request_key *keys, size_t count)
{
    const struct request_key *last = &keys[count - 1];
    return (size_t)(last->bytes + last->length - keys[0].bytes);
}

/* Where the keys end at the latest that may be joined to the batch's last request, of one key. */
static inline const struct request_key *protocol_joined_end(const struct request_batch *batch,
                                                            const struct request *request)
{
    uint32_t room = PROTOCOL_BATCH_KEYS - request->first_key;
    return &batch->keys[request->first_key] +
           (room < PROTOCOL_JOINED_MAX ? room : PROTOCOL_JOINED_MAX);
}

/* Joins the requests to it whose keys end there, and their bytes at offset `end`. */
static inline void protocol_join(struct request_batch *batch, struct request *request,
                                 const struct request_key *keys_end, size_t end)
{
    request->keys = (uint32_t)(keys_end - &batch->keys[request->first_key]);
    request->joined = request->keys > 1;
    request->end = end;
    batch->key_count = request->first_key + request->keys;
}

/* What codec.part() does for all: fills the request of one key of a joined one, which was parsed
 * from `bytes`, but for what else it has of its own. Returns the key. */
static inline const struct request_key *protocol_part(const struct request_batch *batch,
                                                      const struct request *joined, uint32_t number,
                                                      const char *bytes, struct request *one)
{
    const struct request_key *keys = &batch->keys[joined->first_key];
    const struct request_key *last = &keys[joined->keys - 1];
    size_t before = (size_t)(keys[0].bytes - bytes) - joined->begin;
    size_t after = joined->end - (size_t)(last->bytes + last->length - bytes);
    CHECK(joined->joined && number < joined->keys);
    *one = *joined;
    one->joined = false;
    one->first_key += number;
    one->keys = 1;
    one->begin = (size_t)(keys[number].bytes - bytes) - before;
    one->end = (size_t)(keys[number].bytes + keys[number].length - bytes) + after;
    return &keys[number];
}

enum protocol_result {
    PROTOCOL_MORE,  /* what is left is no whole request: more bytes are needed */
    PROTOCOL_FULL,  /* the batch is full: run it and parse again */
    PROTOCOL_CLOSE, /* the bytes after the batch's last request cannot be answered: run it, then
                       close */
};

struct reply {
    enum reply_status status;
    enum reply_detail detail; /* of the three errors */
    const char *value;        /* see the status */
    size_t value_length;
    uint64_t cas;   /* STORED, NUMBER, TOUCHED of a request with want_cas: the token now, never 0 */
    uint32_t flags; /* TOUCHED: of what was touched */
    bool created;   /* NUMBER: nothing was there, it is the request's `initial` */
    int32_t ttl_s;  /* NUMBER: seconds it had left as the request came; -1: it does not expire */
    int32_t ttl_touched_s; /* NUMBER: that a T gives it … */
    int32_t ttl_made_s;    /* … and an N, if it was created */
    uint64_t size; /* STORED of an append: bytes of the whole value; 0: those that were sent */
};

/* How keys are listed. */
enum listing {
    LISTING_META,    /* lru_crawler metadump */
    LISTING_GETS,    /* lru_crawler mgdump */
    LISTING_ITEMS,   /* stats cachedump */
    LISTING_RECORDS, /* lru_crawler export: ids with their records */
};

/* A key of a list. Its times are seconds since 1970. */
struct listed_key {
    const char *bytes;
    size_t length;
    const char *value; /* RECORDS alone */
    size_t value_length;
    uint64_t cas;
    uint64_t expires_at; /* 0: never */
    uint64_t accessed_at;
    uint32_t flags;
    uint32_t item_bytes; /* with key, value and what it costs */
    unsigned class;      /* as in stats slabs */
    bool fetched;        /* it was read since it was stored */
};

/* A key that was found, of a get of many: what may differ between them. */
struct found {
    const char *value;
    size_t value_length;
    uint64_t cas; /* of a request with want_cas */
};

/* A key that was found. */
struct hit {
    const char *value;
    size_t value_length;
    uint64_t cas; /* of a request with want_cas */
    uint32_t flags;
    int32_t ttl_s; /* seconds it had left as the request came; -1: it does not expire */
    /* Plain values alone: */
    int32_t ttl_touched_s; /* that a T gives it … */
    int32_t ttl_made_s;    /* … and an N, if it made it */
    uint32_t item_bytes;   /* with key and what it costs; 0: no plain value */
    uint32_t idle_s;       /* since it was stored or read … */
    bool fetched;          /* … which it was, */
    bool vivified;         /* it was not there: the request made it */
    bool stale;            /* it was invalidated */
    bool sent;             /* somebody was told earlier to renew it … */
    bool won;              /* … or is now, by this answer */
};

#endif
