/*
 * binary_compose.c: replies of the binary dialect.
 *
 * The server makes sure of room with binary_compose_bytes_max(); where there is none all the same,
 * a packet is left out whole, never cut.
 */
#include "base/check.h"
#include "base/num.h"
#include "protocol/binary_private.h"
#include "protocol/text_put.h"

#define ANSWER_MAGIC    0x81
#define STATS_BYTES_MAX (512u << 10) /* all packets of one stats */
#define PACKET_BYTES_MAX                                                                           \
    (BINARY_HEADER_BYTES + BINARY_FLAGS_BYTES + PROTOCOL_KEY_MAX + PROTOCOL_REPLY_VALUE_MAX)

_Static_assert(PACKET_BYTES_MAX <= PROTOCOL_REPLY_BYTES_MAX, "of one key");

/* A packet to be written. */
struct answer {
    const struct request_binary *asked;
    enum binary_status status;
    bool flagged; /* it has flags as its extras */
    uint32_t flags;
    uint64_t cas;
    const char *key;
    size_t key_length;
    const char *value;
    size_t value_length;
};

/* The bytes of none may be NULL. */
static inline __attribute__((always_inline)) char *binary_compose_put(char *to, const char *bytes,
                                                                      size_t length)
{
    return length > 0 ? text_put_short(to, bytes, length) : to;
}

static inline char *put16(char *to, uint16_t number)
{
    number = htobe16(number);
    return text_put(to, (const char *)&number, sizeof(number));
}

static inline char *put32(char *to, uint32_t number)
{
    number = htobe32(number);
    return text_put(to, (const char *)&number, sizeof(number));
}

static inline char *put64(char *to, uint64_t number)
{
    number = htobe64(number);
    return text_put(to, (const char *)&number, sizeof(number));
}

static inline __attribute__((always_inline)) bool put_packet(struct buf *out,
                                                             const struct answer *answer)
{
    size_t extras_length = answer->flagged ? BINARY_FLAGS_BYTES : 0;
    size_t body_length = extras_length + answer->key_length + answer->value_length;
    CHECK(answer->key_length <= UINT16_MAX && body_length <= UINT32_MAX);
    char *to = buf_room(out, BINARY_HEADER_BYTES + body_length);
    if (UNLIKELY(to == NULL)) {
        return false;
    }
    *to++ = (char)ANSWER_MAGIC;
    *to++ = (char)answer->asked->opcode;
    to = put16(to, (uint16_t)answer->key_length);
    *to++ = (char)extras_length;
    *to++ = 0; /* data type: plain bytes */
    to = put16(to, (uint16_t)answer->status);
    to = put32(to, (uint32_t)body_length);
    to = text_put(to, (const char *)&answer->asked->opaque, sizeof(answer->asked->opaque));
    to = put64(to, answer->cas);
    if (answer->flagged) {
        to = put32(to, answer->flags);
    }
    to = binary_compose_put(to, answer->key, answer->key_length);
    binary_compose_put(to, answer->value, answer->value_length);
    buf_commit(out, BINARY_HEADER_BYTES + body_length);
    return true;
}

/* put_packet() of any answer but a hit, of which there are most. */
static __attribute__((noinline)) bool put_answer(struct buf *out, const struct answer *answer)
{
    return put_packet(out, answer);
}

/* What memcached says of a status. NULL: nothing. */
static const char *binary_compose_text_of(enum binary_status status)
{
    switch (status) {
    case BINARY_OK:
        return NULL;
    case BINARY_NOT_FOUND:
        return "Not found";
    case BINARY_EXISTS:
        return "Data exists for key.";
    case BINARY_TOO_LARGE:
        return "Too large.";
    case BINARY_INVALID:
        return "Invalid arguments";
    case BINARY_NOT_STORED:
        return "Not stored.";
    case BINARY_NON_NUMERIC:
        return "Non-numeric server-side value for incr or decr";
    case BINARY_AUTH:
        return "Auth failure.";
    case BINARY_UNKNOWN_COMMAND:
        return "Unknown command";
    case BINARY_OUT_OF_MEMORY:
        return "Out of memory";
    case BINARY_INTERNAL:
        return "Internal error";
    case BINARY_BUSY:
        return "Busy";
    }
    return NULL;
}

/* Returns whether a reply's own words are sent: not where memcached has other words in binary. */
static bool has_words(const struct reply *reply)
{
    switch (reply->status) {
    case REPLY_VERSION:
    case REPLY_SASL_LIST:
    case REPLY_LOGIN:
        return true;
    case REPLY_ERROR:
    case REPLY_CLIENT_ERROR:
    case REPLY_SERVER_ERROR:
        return reply->detail != DETAIL_NON_NUMERIC && reply->detail != DETAIL_TOO_LARGE;
    default:
        return false;
    }
}

/* Writes the reply's own words, or else memcached's words for the status. */
static void binary_compose_fill_words(struct answer *answer, const struct reply *reply)
{
    const char *text = binary_compose_text_of(answer->status);
    if (has_words(reply) && reply->value_length > 0) {
        answer->value = reply->value;
        answer->value_length = reply->value_length < PROTOCOL_REPLY_VALUE_MAX
                                   ? reply->value_length
                                   : PROTOCOL_REPLY_VALUE_MAX;
    } else if (text != NULL) {
        answer->value = text;
        answer->value_length = strlen(text);
    }
}

/* Returns the status of something that was not stored: in memcached it follows from the verb. */
static enum binary_status not_stored(enum verb verb)
{
    switch (verb) {
    case VERB_ADD:
        return BINARY_EXISTS;
    case VERB_REPLACE:
        return BINARY_NOT_FOUND;
    default:
        return BINARY_NOT_STORED;
    }
}

static enum binary_status status_of_error(const struct request *request, const struct reply *reply)
{
    static const enum binary_status of_detail[] = {
        [DETAIL_NON_NUMERIC] = BINARY_NON_NUMERIC,         [DETAIL_TOO_LARGE] = BINARY_TOO_LARGE,
        [DETAIL_OUT_OF_MEMORY] = BINARY_OUT_OF_MEMORY,     [DETAIL_BUSY] = BINARY_BUSY,
        [DETAIL_UNKNOWN_COMMAND] = BINARY_UNKNOWN_COMMAND, [DETAIL_AUTH] = BINARY_AUTH,
    };
    CHECK((size_t)reply->detail < sizeof(of_detail) / sizeof(of_detail[0]));
    if (reply->detail != DETAIL_NONE) {
        return of_detail[reply->detail];
    }
    switch (reply->status) {
    case REPLY_CLIENT_ERROR:
        return BINARY_INVALID;
    case REPLY_SERVER_ERROR:
        return BINARY_INTERNAL;
    default: /* a verb we do not have, or a group of stats */
        return request->verb == VERB_STATS ? BINARY_NOT_FOUND : BINARY_UNKNOWN_COMMAND;
    }
}

static enum binary_status status_of(const struct request *request, const struct reply *reply)
{
    switch (reply->status) {
    case REPLY_NOT_STORED:
        return not_stored(request->verb);
    case REPLY_EXISTS:
        return BINARY_EXISTS;
    case REPLY_NOT_FOUND:
        return BINARY_NOT_FOUND;
    case REPLY_LOGIN:
        return reply->detail == DETAIL_NONE ? BINARY_OK : BINARY_AUTH;
    case REPLY_ERROR:
    case REPLY_CLIENT_ERROR:
    case REPLY_SERVER_ERROR:
        return status_of_error(request, reply);
    default:
        return BINARY_OK;
    }
}

/* Writes the number as 8 bytes. This dialect has no answer of several numbers. */
static void fill_number(struct answer *answer, const struct reply *reply, char *bytes)
{
    uint64_t number;
    if (!num_parse(reply->value, reply->value_length, &number)) {
        answer->status = BINARY_NON_NUMERIC;
        binary_compose_fill_words(answer, &(struct reply){.status = REPLY_CLIENT_ERROR});
        return;
    }
    put64(bytes, number);
    answer->value = bytes;
    answer->value_length = BINARY_NUMBER_BYTES;
}

/* The packet of an increment's number. */
static inline char *put_number(char *to, const struct request *request, uint64_t number,
                               uint64_t token)
{
    const struct request_binary *asked = &request->binary;
    to = put64(to, (uint64_t)ANSWER_MAGIC << 56 | (uint64_t)asked->opcode << 48);
    to = put32(to, BINARY_NUMBER_BYTES);
    to = text_put(to, (const char *)&asked->opaque, sizeof(asked->opaque));
    return put64(put64(to, token), number);
}

void binary_compose_numbers(struct buf *out, const struct request *requests,
                            const uint64_t *numbers, const uint64_t *tokens, size_t count)
{
    _Static_assert(BINARY_HEADER_BYTES + BINARY_NUMBER_BYTES <= PROTOCOL_NUMBER_MAX, "a packet");
    char *start = buf_room(out, count * (BINARY_HEADER_BYTES + BINARY_NUMBER_BYTES));
    if (UNLIKELY(start == NULL)) {
        return;
    }
    char *to = start;
    for (size_t i = 0; i < count; i++) {
        if (LIKELY(requests[i].quiet == QUIET_NO)) { /* so it wants the token */
            to = put_number(to, &requests[i], numbers[i], tokens[i]);
        }
    }
    buf_commit(out, (size_t)(to - start));
}

/* The number of an increment as most ask for it. False: it is none, and nothing was written. */
static bool compose_number(struct buf *out, const struct request *request,
                           const struct reply *reply)
{
    uint64_t number;
    char *to = buf_room(out, BINARY_HEADER_BYTES + BINARY_NUMBER_BYTES);
    if (to == NULL || !num_parse(reply->value, reply->value_length, &number)) {
        return false;
    }
    put_number(to, request, number, request->want_cas ? reply->cas : 0);
    buf_commit(out, BINARY_HEADER_BYTES + BINARY_NUMBER_BYTES);
    return true;
}

/* Quiet requests hear of errors; an absent key that was to be changed is an error. */
static inline void compose_other(struct buf *out, const struct request *request,
                                 const struct reply *reply)
{
    char number[BINARY_NUMBER_BYTES];
    if (reply->status == REPLY_NONE) {
        return;
    }
    struct answer answer = {.asked = &request->binary, .status = status_of(request, reply)};
    switch (reply->status) {
    case REPLY_NUMBER:
        fill_number(&answer, reply, number);
        break;
    case REPLY_TOUCHED:
        answer.flagged = true;
        answer.flags = reply->flags;
        break;
    default:
        binary_compose_fill_words(&answer, reply);
        break;
    }
    if (answer.status == BINARY_OK) {
        if (request->quiet != QUIET_NO) {
            return;
        }
        answer.cas = request->want_cas ? reply->cas : 0;
    }
    put_answer(out, &answer);
}

void binary_compose(struct buf *out, const struct request *request, const struct reply *reply)
{
    bool number = reply->status == REPLY_NUMBER && request->quiet == QUIET_NO;
    if (!number || !compose_number(out, request, reply)) {
        compose_other(out, request, reply);
    }
}

/* What the packet of a key asked; of those that are joined each is its own. */
static inline struct request_binary asked_of(const struct request *request,
                                             const struct request_key *key)
{
    struct request_binary asked = request->binary;
    if (request->joined) {
        binary_fill_asked(&asked, key->bytes - BINARY_HEADER_BYTES);
    }
    return asked;
}

static bool answers_key(const struct request *request)
{
    switch (request->binary.opcode) {
    case BINARY_GETK:
    case BINARY_GETKQ:
    case BINARY_GATK:
    case BINARY_GATKQ:
        return true;
    default:
        return false;
    }
}

void binary_compose_value(struct buf *out, const struct request *request,
                          const struct request_key *key, const struct hit *hit)
{
    const struct request_binary asked = asked_of(request, key);
    const struct answer answer = {
        .asked = &asked,
        .flagged = true,
        .flags = hit->flags,
        .cas = hit->cas,
        .key = key->bytes,
        .key_length = answers_key(request) ? key->length : 0,
        .value = hit->value,
        .value_length = hit->value_length,
    };
    put_packet(out, &answer);
}

/* What hits of a joined request share. */
struct alike {
    uint64_t first; /* word of the header, but for the key's length */
    uint32_t flags;
    bool shows_key;
};

static struct alike alike_of(const struct request *request, uint32_t flags)
{
    return (struct alike){.first = (uint64_t)ANSWER_MAGIC << 56 |
                                   (uint64_t)request->binary.opcode << 48 |
                                   (uint64_t)BINARY_FLAGS_BYTES << 24,
                          .flags = flags,
                          .shows_key = answers_key(request)};
}

/* The packet of such a hit, up to its value. */
static inline __attribute__((always_inline)) char *put_front(char *to, const struct alike *alike,
                                                             const struct request_key *key,
                                                             uint64_t cas, uint32_t value_length)
{
    uint32_t key_length = alike->shows_key ? key->length : 0;
    to = put64(to, alike->first | (uint64_t)key_length << 32);
    to = put32(to, BINARY_FLAGS_BYTES + key_length + value_length);
    to = text_put(to, key->bytes - BINARY_HEADER_BYTES + 12, sizeof(uint32_t)); /* opaque */
    to = put32(put64(to, cas), alike->flags);
    return alike->shows_key ? text_put_short(to, key->bytes, key_length) : to;
}

/* Room for that of `count` keys, and their values. */
static char *room_of_hits(struct buf *out, const struct request_key *keys, size_t count,
                          size_t value_bytes)
{
    size_t asked_bytes = protocol_keys_span(keys, count); /* with the headers between them */
    return buf_room(out,
                    BINARY_HEADER_BYTES + count * BINARY_FLAGS_BYTES + asked_bytes + value_bytes);
}

void binary_compose_values(struct buf *out, const struct request *request,
                           const struct request_key *keys, const struct found *found, size_t count,
                           size_t value_bytes, uint32_t flags)
{
    const struct alike alike = alike_of(request, flags);
    char *start = room_of_hits(out, keys, count, value_bytes);
    if (UNLIKELY(start == NULL)) {
        return;
    }
    char *to = start;
    for (size_t i = 0; i < count; i++) {
        to = put_front(to, &alike, &keys[i], found[i].cas, (uint32_t)found[i].value_length);
        to = binary_compose_put(to, found[i].value, found[i].value_length);
    }
    buf_commit(out, (size_t)(to - start));
}

bool binary_compose_alike(struct buf *out, const struct request *request,
                          const struct request_key *keys, const struct found *found, size_t count,
                          uint32_t flags)
{
    const struct alike alike = alike_of(request, flags);
    uint64_t cas = found->cas;
    char value = *found->value;
    char *start = room_of_hits(out, keys, count, count);
    if (UNLIKELY(start == NULL)) {
        return true;
    }
    char *to = start;
    for (size_t i = 0; i < count; i++) {
        to = put_front(to, &alike, &keys[i], cas, 1);
        *to++ = value;
    }
    buf_commit(out, (size_t)(to - start));
    return true;
}

/* Has the key in place of words, where a hit has it. */
void binary_compose_miss(struct buf *out, const struct request *request,
                         const struct request_key *key)
{
    const struct request_binary asked = asked_of(request, key);
    struct answer answer = {.asked = &asked, .status = BINARY_NOT_FOUND};
    if (request->quiet != QUIET_NO) {
        return;
    }
    if (answers_key(request)) {
        answer.key = key->bytes;
        answer.key_length = key->length;
    } else {
        binary_compose_fill_words(&answer, &(struct reply){.status = REPLY_NOT_FOUND});
    }
    put_answer(out, &answer);
}

void binary_compose_end(struct buf *out, const struct request *request)
{
    (void)out; /* each key was answered for itself */
    (void)request;
}

bool binary_compose_stat(struct buf *out, const struct request *request, const char *name,
                         const char *text)
{
    const struct answer answer = {
        .asked = &request->binary,
        .key = name,
        .key_length = strlen(name),
        .value = text,
        .value_length = strlen(text),
    };
    return put_answer(out, &answer);
}

void binary_compose_stats_end(struct buf *out, const struct request *request)
{
    put_answer(out, &(struct answer){.asked = &request->binary, .status = BINARY_OK});
}

size_t binary_compose_bytes_max(const struct request *request)
{
    if (request->verb == VERB_STATS) {
        return STATS_BYTES_MAX;
    }
    return request->joined ? request->keys * PACKET_BYTES_MAX : PACKET_BYTES_MAX;
}
