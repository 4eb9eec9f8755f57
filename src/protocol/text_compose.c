/*
 * text_compose.c: replies of the text dialect.
 *
 * The server makes sure of room with text_compose_bytes_max(); where there is none all the same, a
 * reply is left out whole, never cut.
 */
#include <string.h>

#include "base/check.h"
#include "protocol/meta.h"
#include "protocol/text_private.h"
#include "protocol/text_put.h"

#define STATS_BYTES_MAX  (256u << 10) /* all lines of one stats */
#define VALUE_WORDS      (sizeof("VALUE ") - 1 + sizeof("    \r\n\r\n") - 1)
#define VALUE_WORD       "VALUE \0" /* eight bytes: put in one store */
#define VALUE_WORD_BYTES (sizeof("VALUE ") - 1)
#define FLAGS_BYTES      32 /* of flags and two spaces; copied whole: that is two moves */
/* A hit without its key, its value and their digits' slack: num_print wants room for the longest.
 */
#define HIT_BYTES_MAX (VALUE_WORDS + FLAGS_BYTES + 2 * NUM_DIGITS_MAX)

_Static_assert(2 + NUM_DIGITS_MAX + sizeof("1\r\n1\r\n") <= FLAGS_BYTES,
               "what is alike of keys fits");
_Static_assert(HIT_BYTES_MAX + PROTOCOL_KEY_MAX + PROTOCOL_REPLY_VALUE_MAX + PROTOCOL_ERROR_MAX <=
                   PROTOCOL_REPLY_BYTES_MAX,
               "of one key");

size_t text_compose_bytes_max(const struct request *request)
{
    switch (request->verb) {
    case VERB_GET:
    case VERB_GAT: /* the keys of a request are no longer than the request */
        if (UNLIKELY(request->meta.line != NULL)) {
            return meta_compose_bytes_max(request);
        }
        return request->keys * (HIT_BYTES_MAX + PROTOCOL_REPLY_VALUE_MAX) +
               (request->end - request->begin) + PROTOCOL_ERROR_MAX;
    case VERB_STATS:
        return STATS_BYTES_MAX;
    default:
        if (UNLIKELY(request->meta.line != NULL)) {
            return meta_compose_bytes_max(request);
        }
        return PROTOCOL_REPLY_VALUE_MAX + PROTOCOL_ERROR_MAX;
    }
}

/* Puts what stands in front of a key, and two bytes that what follows takes the place of. */
static inline char *put_word(char *to)
{
    memcpy(to, VALUE_WORD, sizeof(VALUE_WORD));
    return to + VALUE_WORD_BYTES;
}

/* Puts what stands after the flags of a key. */
static inline __attribute__((always_inline)) char *put_rest(char *to, const struct request *request,
                                                            const struct found *found)
{
    to = text_put_number(to, found->value_length);
    if (request->want_cas) {
        *to++ = ' ';
        to = text_put_number(to, found->cas);
    }
    to = TEXT_PUT(to, "\r\n");
    to = text_put_short(to, found->value, found->value_length);
    return TEXT_PUT(to, "\r\n");
}

/* The flags with a space on either side. Returns their bytes. */
static inline size_t put_flags(char text[FLAGS_BYTES], uint32_t flags)
{
    text[0] = ' ';
    char *end = text_put_number(text + 1, flags);
    *end++ = ' ';
    return (size_t)(end - text);
}

static __attribute__((noinline)) void compose_value(struct buf *out, const struct request *request,
                                                    const struct request_key *key,
                                                    const struct hit *hit)
{
    const struct found found = {hit->value, hit->value_length, hit->cas};
    char *start = buf_room(out, HIT_BYTES_MAX + key->length + hit->value_length);
    if (UNLIKELY(start == NULL)) {
        return;
    }
    char *to = text_put_short(put_word(start), key->bytes, key->length);
    *to++ = ' ';
    to = text_put_number(to, hit->flags);
    *to++ = ' ';
    to = put_rest(to, request, &found);
    buf_commit(out, (size_t)(to - start));
}

void text_compose_value(struct buf *out, const struct request *request,
                        const struct request_key *key, const struct hit *hit)
{
    if (request->meta.line != NULL) {
        meta_compose_value(out, request, key, hit);
    } else {
        compose_value(out, request, key, hit);
    }
}

void text_compose_values(struct buf *out, const struct request *request,
                         const struct request_key *keys, const struct found *found, size_t count,
                         size_t value_bytes, uint32_t flags)
{
    if (request->meta.line != NULL) {
        meta_compose_values(out, request, keys, found, count, value_bytes, flags);
        return;
    }
    size_t key_bytes = protocol_keys_span(keys, count);
    char words[FLAGS_BYTES] = {0};
    size_t words_length = put_flags(words, flags);
    char *start = buf_room(out, count * HIT_BYTES_MAX + key_bytes + value_bytes);
    if (UNLIKELY(start == NULL)) {
        return;
    }
    char *to = start;
    for (size_t i = 0; i < count; i++) {
        to = text_put_short(put_word(to), keys[i].bytes, keys[i].length);
        memcpy(to, words, sizeof(words));
        to = put_rest(to + words_length, request, &found[i]);
    }
    buf_commit(out, (size_t)(to - start));
}

bool text_compose_alike(struct buf *out, const struct request *request,
                        const struct request_key *keys, const struct found *found, size_t count,
                        uint32_t flags)
{
    if (request->meta.line != NULL) {
        return meta_compose_alike(out, request, keys, found, count);
    }
    if (request->want_cas) {
        return false;
    }
    size_t key_bytes = protocol_keys_span(keys, count);
    char rest[FLAGS_BYTES] = {0}; /* what stands after each key */
    char *rest_end = TEXT_PUT(rest + put_flags(rest, flags), "1\r\n");
    *rest_end++ = *found->value;
    size_t rest_length = (size_t)(TEXT_PUT(rest_end, "\r\n") - rest);
    char *start = buf_room(out, count * HIT_BYTES_MAX + key_bytes);
    if (UNLIKELY(start == NULL)) {
        return true;
    }
    char *to = start;
    for (size_t i = 0; i < count; i++) {
        to = text_put_short(put_word(to), keys[i].bytes, keys[i].length);
        memcpy(to, rest, sizeof(rest));
        to += rest_length;
    }
    buf_commit(out, (size_t)(to - start));
    return true;
}

void text_compose_miss(struct buf *out, const struct request *request,
                       const struct request_key *key)
{
    if (UNLIKELY(request->meta.line != NULL)) {
        meta_compose_miss(out, request, key);
    }
}

void text_compose_end(struct buf *out, const struct request *request)
{
    char *to;
    if (!request->more && request->meta.line == NULL && (to = buf_room(out, 5)) != NULL) {
        TEXT_PUT(to, "END\r\n");
        buf_commit(out, 5);
    }
}

bool text_compose_stat(struct buf *out, const struct request *request, const char *name,
                       const char *text)
{
    (void)request;
    size_t name_length = strlen(name);
    size_t text_length = strlen(text);
    char *start = buf_room(out, sizeof("STAT  \r\n") - 1 + name_length + text_length);
    if (start == NULL) {
        return false;
    }
    char *to = TEXT_PUT(start, "STAT ");
    to = text_put(to, name, name_length);
    *to++ = ' ';
    to = text_put(to, text, text_length);
    to = TEXT_PUT(to, "\r\n");
    buf_commit(out, (size_t)(to - start));
    return true;
}

void text_compose_stats_end(struct buf *out, const struct request *request)
{
    (void)request;
    buf_append(out, "END\r\n", 5);
}

#define WORDS_BYTES 16

/* What a status says: its line, or what stands before the reply's value. */
struct words {
    char text[WORDS_BYTES]; /* copied whole: two moves, since the length is small and fixed */
    uint8_t length;
    bool value; /* the reply's value follows, and the end of the line */
    bool error; /* an error line: kept below PROTOCOL_ERROR_MAX */
};

#define LINE(text)                                                                                 \
    {                                                                                              \
        text "\r\n", sizeof(text "\r\n") - 1, false, false                                         \
    }
#define BEFORE(text, is_error)                                                                     \
    {                                                                                              \
        text, sizeof(text) - 1, true, is_error                                                     \
    }
#define NOTHING                                                                                    \
    {                                                                                              \
        "", 0, false, false                                                                        \
    }

static const struct words words[] = {
    [REPLY_OK] = LINE("OK"),
    [REPLY_STORED] = LINE("STORED"),
    [REPLY_NOT_STORED] = LINE("NOT_STORED"),
    [REPLY_EXISTS] = LINE("EXISTS"),
    [REPLY_NOT_FOUND] = LINE("NOT_FOUND"),
    [REPLY_DELETED] = LINE("DELETED"),
    [REPLY_TOUCHED] = LINE("TOUCHED"),
    [REPLY_NUMBER] = BEFORE("", false),
    [REPLY_VERSION] = BEFORE("VERSION ", false),
    [REPLY_NOOP] = LINE("MN"),
    [REPLY_QUIT] = NOTHING,
    [REPLY_SASL_LIST] = BEFORE("", false), /* not of this dialect */
    [REPLY_LOGIN] = LINE("STORED"),
    [REPLY_RESET] = LINE("RESET"),
    [REPLY_WORDS] = BEFORE("", false),
    [REPLY_ERROR] = BEFORE("ERROR", true),
    [REPLY_CLIENT_ERROR] = BEFORE("CLIENT_ERROR ", true),
    [REPLY_SERVER_ERROR] = BEFORE("SERVER_ERROR ", true),
    [REPLY_NONE] = NOTHING,
};

/* The number of an incr or decr, or those of a record, alone in its line. */
static void compose_number(struct buf *out, const struct reply *reply)
{
    char *start = buf_room(out, reply->value_length + 2);
    if (LIKELY(start != NULL)) {
        char *to = TEXT_PUT(text_put_short(start, reply->value, reply->value_length), "\r\n");
        buf_commit(out, (size_t)(to - start));
    }
}

void text_compose_numbers(struct buf *out, const struct request *requests, const uint64_t *numbers,
                          const uint64_t *tokens, size_t count)
{
    char *start = buf_room(out, count * PROTOCOL_NUMBER_MAX);
    (void)tokens; /* no command asks for it */
    if (UNLIKELY(start == NULL)) {
        return;
    }
    char *to = start;
    for (size_t i = 0; i < count; i++) {
        if (requests[i].meta.line != NULL) {
            to = meta_put_number(to, &requests[i], numbers[i]);
            continue;
        }
        char *end = TEXT_PUT(to + num_print(to, numbers[i]), "\r\n");
        to = LIKELY(requests[i].quiet != QUIET_ALL) ? end : to;
    }
    buf_commit(out, (size_t)(to - start));
}

/* Words and the value that follows them, which may be NULL if it is empty. */
static __attribute__((noinline)) void compose_with_value(struct buf *out, const struct words *say,
                                                         const struct reply *reply)
{
    size_t value_length = reply->value_length;
    size_t error_max = PROTOCOL_ERROR_MAX - 1 - 2u - say->length;
    if (say->error && value_length > error_max) {
        value_length = error_max;
    }
    char *start = buf_room(out, WORDS_BYTES + value_length + 2);
    if (UNLIKELY(start == NULL)) {
        return;
    }
    memcpy(start, say->text, WORDS_BYTES);
    char *to = start + say->length;
    if (value_length > 0) {
        to = text_put_short(to, reply->value, value_length);
    }
    to = TEXT_PUT(to, "\r\n");
    buf_commit(out, (size_t)(to - start));
}

/* Any other reply, and those to meta. */
static inline void compose_words(struct buf *out, const struct request *request,
                                 const struct reply *reply)
{
    CHECK((size_t)reply->status < sizeof(words) / sizeof(words[0]));
    const struct words *say = &words[reply->status];
    if (UNLIKELY(request->meta.line != NULL) && reply->status < REPLY_ERROR) {
        meta_compose(out, request, reply);
        return;
    }
    if (say->value) {
        compose_with_value(out, say, reply);
        return;
    }
    char *start = buf_room(out, WORDS_BYTES);
    if (LIKELY(start != NULL)) {
        memcpy(start, say->text, WORDS_BYTES);
        buf_commit(out, say->length);
    }
}

void text_compose(struct buf *out, const struct request *request, const struct reply *reply)
{
    if (request->quiet == QUIET_ALL) {
        return;
    }
    if (reply->status != REPLY_NUMBER) {
        compose_words(out, request, reply);
    } else if (request->meta.line != NULL) {
        meta_compose(out, request, reply);
    } else {
        compose_number(out, reply);
    }
}
