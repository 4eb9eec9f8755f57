/*
 * meta_compose.c: replies to meta requests.
 *
 * The flags are read once more from the request's line, after its key, in their order: the line is
 * short, and so a request carries a set of flags and no list. Where there is no room a reply is
 * left out whole.
 */
#include "base/check.h"
#include "protocol/meta_private.h"
#include "protocol/text_put.h"

/* A reply without key, opaque and value, with the slack of its numbers. */
#define WORDS_MAX 256

_Static_assert(PROTOCOL_REPLY_VALUE_MAX + WORDS_MAX + PROTOCOL_LINE_MAX <= PROTOCOL_REPLY_BYTES_MAX,
               "it holds the line's flags");

#define ECHOES (META_LETTER('k') | META_LETTER('O')) /* of the request, whatever the answer */
#define HIT_ANSWERS                                                                                \
    (ECHOES | META_LETTER('s') | META_LETTER('t') | META_LETTER('c') | META_LETTER('f') |          \
     META_LETTER('l') | META_LETTER('h'))
#define SET_ANSWERS    (ECHOES | META_LETTER('s') | META_LETTER('c'))
#define NUMBER_ANSWERS (ECHOES | META_LETTER('t') | META_LETTER('c'))

/* What the flags of a line may ask for. */
struct known {
    uint64_t letters; /* those that are answered */
    size_t size;
    uint64_t cas;
    uint32_t flags;
    int32_t ttl_s;         /* of a t before all that changes it, … */
    int32_t ttl_touched_s; /* … after a T … */
    int32_t ttl_made_s;    /* … and after an N, if that made the value */
    bool made;
    uint32_t idle_s;
    bool fetched;
};

static const char *line_end(const struct request *request)
{
    return request->meta.line + request->meta.length;
}

static struct text_token sent_key(const struct request *request)
{
    return (struct text_token){.bytes = request->meta.line, .length = request->meta.key_length};
}

static bool asks(const struct request *request, char letter)
{
    return (request->meta.letters & META_LETTER(letter)) != 0;
}

static char *room(struct buf *out, const struct request *request, size_t value_length)
{
    return buf_room(out, WORDS_MAX + request->meta.length + value_length);
}

static char *put_key(char *to, const struct request *request)
{
    const struct text_token key = sent_key(request);
    to = text_put_short(TEXT_PUT(to, " k"), key.bytes, key.length);
    return asks(request, 'b') ? TEXT_PUT(to, " b") : to;
}

static char *put_ttl(char *to, int32_t ttl_s)
{
    return ttl_s < 0 ? TEXT_PUT(to, "-1") : text_put_number(to, (uint64_t)ttl_s);
}

static char *put_flag(char *to, const struct request *request, const struct text_token *flag,
                      const struct known *known)
{
    switch (flag->bytes[0]) {
    case 'k':
        return put_key(to, request);
    case 'O':
        *to++ = ' ';
        return text_put(to, flag->bytes, flag->length);
    case 's':
        return text_put_number(TEXT_PUT(to, " s"), known->size);
    case 't':
        return put_ttl(TEXT_PUT(to, " t"), known->ttl_s);
    case 'c':
        return text_put_number(TEXT_PUT(to, " c"), known->cas);
    case 'f':
        return text_put_number(TEXT_PUT(to, " f"), known->flags);
    case 'l':
        return text_put_number(TEXT_PUT(to, " l"), known->idle_s);
    case 'h':
        return text_put_number(TEXT_PUT(to, " h"), known->fetched);
    default:
        return to;
    }
}

/* The next flag of the line. False: there is none. */
static inline bool next_flag(const struct request *request, const char **at,
                             struct text_token *token)
{
    if (!request->meta.letters_alone) {
        return meta_next(at, line_end(request), token);
    }
    *token = (struct text_token){.bytes = *at + 1, .length = 1};
    *at += 2;
    return token->bytes < line_end(request);
}

/* The flags that are answered, in the order of the line. The size of an ms is no letter. */
static char *put_flags(char *to, const struct request *request, struct known *known)
{
    struct text_token token = sent_key(request);
    const char *at = token.bytes + token.length;
    if ((request->meta.letters & known->letters) == 0) {
        return to;
    }
    while (next_flag(request, &at, &token)) {
        char letter = token.bytes[0];
        if (letter == 'T') {
            known->ttl_s = known->ttl_touched_s;
        } else if (letter == 'N' && known->made) {
            known->ttl_s = known->ttl_made_s;
        }
        if (meta_is_letter(letter) && (known->letters & META_LETTER(letter)) != 0) {
            to = put_flag(to, request, &token, known);
        }
    }
    return to;
}

/* Z: somebody was told to renew it; X: it is stale; W: this reader is told to. */
static char *put_marks(char *to, const struct hit *hit)
{
    to = hit->sent ? TEXT_PUT(to, " Z") : to;
    to = hit->stale ? TEXT_PUT(to, " X") : to;
    return hit->won ? TEXT_PUT(to, " W") : to;
}

/* A reader whose C is the token has the value, and is spared it. */
static bool shows_value(const struct request *request, const struct hit *hit)
{
    bool has_it = hit != NULL && asks(request, 'C') && hit->cas == request->cas;
    return asks(request, 'v') && !has_it;
}

/* VA with the value, or HD, and the flags in between. hit: of a read; NULL: a number. */
static void compose_found(struct buf *out, const struct request *request, const char *value,
                          size_t value_length, const struct hit *hit, struct known *known)
{
    char *start = room(out, request, value_length);
    if (start == NULL) {
        return;
    }
    bool shown = shows_value(request, hit);
    char *to =
        shown ? text_put_number(TEXT_PUT(start, "VA "), value_length) : TEXT_PUT(start, "HD");
    to = put_flags(to, request, known);
    to = TEXT_PUT(hit != NULL ? put_marks(to, hit) : to, "\r\n");
    if (shown) {
        to = TEXT_PUT(text_put_short(to, value, value_length), "\r\n");
    }
    buf_commit(out, (size_t)(to - start));
}

static void compose_line(struct buf *out, const struct request *request, const char *status,
                         struct known *known)
{
    char *start = room(out, request, 0);
    if (start == NULL) {
        return;
    }
    char *to = put_flags(text_put(start, status, 2), request, known);
    to = TEXT_PUT(to, "\r\n");
    buf_commit(out, (size_t)(to - start));
}

/* Nobody knows when an id was last read: it is read now. Classes are those of stats slabs. */
static void compose_info(struct buf *out, const struct request *request, const struct hit *hit)
{
    const struct text_token key = sent_key(request);
    char *start = room(out, request, 0);
    if (start == NULL) {
        return;
    }
    char *to = text_put(TEXT_PUT(start, "ME "), key.bytes, key.length);
    to = put_ttl(TEXT_PUT(to, " exp="), hit->ttl_s);
    to = text_put_number(TEXT_PUT(to, " la="), hit->idle_s);
    to = text_put_number(TEXT_PUT(to, " cas="), hit->cas);
    bool plain = hit->item_bytes != 0;
    to = plain && !hit->fetched ? TEXT_PUT(to, " fetch=no") : TEXT_PUT(to, " fetch=yes");
    to = plain ? TEXT_PUT(to, " cls=6 size=") : TEXT_PUT(to, " cls=1 size=");
    to = text_put_number(to, plain ? hit->item_bytes : hit->value_length);
    to = TEXT_PUT(to, "\r\n");
    buf_commit(out, (size_t)(to - start));
}

size_t meta_compose_bytes_max(const struct request *request)
{
    if (request->joined) {
        return request->keys * (PROTOCOL_REPLY_VALUE_MAX + WORDS_MAX) +
               (request->end - request->begin);
    }
    return PROTOCOL_REPLY_VALUE_MAX + WORDS_MAX + request->meta.length;
}

/* The request of one key. A joined one is of letters alone, so the line holds the key as it is. */
static const struct request *alone(const struct request *request, const struct request_key *key,
                                   struct request *one)
{
    if (!request->joined) {
        return request;
    }
    *one = *request;
    meta_fill_line(one, key);
    return one;
}

/* Most hits of a page, and most numbers: of mg or ma with v, maybe with k and q, and no other flag.
 */
static inline __attribute__((always_inline)) char *put_page_hit(char *to, bool shows_key,
                                                                const struct request_key *key,
                                                                const char *value,
                                                                size_t value_length)
{
    to = text_put_number(TEXT_PUT(to, "VA "), value_length);
    if (shows_key) {
        to = text_put_short(TEXT_PUT(to, " k"), key->bytes, key->length);
    }
    if (value_length == 1) { /* as of existence keys */
        const char line[] = {'\r', '\n', *value, '\r', '\n'};
        return text_put(to, line, sizeof(line));
    }
    to = text_put_short(TEXT_PUT(to, "\r\n"), value, value_length);
    return TEXT_PUT(to, "\r\n");
}

static inline bool is_of_page(const struct request *request)
{
    const uint64_t others = ~(META_LETTER('v') | META_LETTER('k') | META_LETTER('q'));
    return request->meta.letters_alone && asks(request, 'v') &&
           (request->meta.letters & others) == 0;
}

static void compose_page_hit(struct buf *out, const struct request *request,
                             const struct request_key *key, const char *value, size_t value_length)
{
    char *start = buf_room(out, WORDS_MAX + key->length + value_length);
    if (LIKELY(start != NULL)) {
        char *to = put_page_hit(start, asks(request, 'k'), key, value, value_length);
        buf_commit(out, (size_t)(to - start));
    }
}

/* Any other hit. */
static __attribute__((noinline)) void compose_hit(struct buf *out, const struct request *request,
                                                  const struct request_key *key,
                                                  const struct hit *hit)
{
    struct request one;
    struct known known = {.letters = HIT_ANSWERS,
                          .size = hit->value_length,
                          .cas = hit->cas,
                          .flags = hit->flags,
                          .ttl_s = hit->ttl_s,
                          .ttl_touched_s = hit->ttl_touched_s,
                          .ttl_made_s = hit->ttl_made_s,
                          .made = hit->vivified,
                          .idle_s = hit->idle_s,
                          .fetched = hit->fetched};
    request = alone(request, key, &one);
    if (request->meta.info) {
        compose_info(out, request, hit);
    } else {
        compose_found(out, request, hit->value, hit->value_length, hit, &known);
    }
}

char *meta_put_number(char *to, const struct request *request, uint64_t number)
{
    if (request->quiet != QUIET_NO) {
        return to;
    }
    size_t digits = num_print(to + sizeof("VA 1\r\n") - 1, number);
    if (UNLIKELY(digits > 9)) { /* so is their number of two */
        to = TEXT_PUT(text_put_number(TEXT_PUT(to, "VA "), digits), "\r\n");
        return TEXT_PUT(text_put_number(to, number), "\r\n");
    }
    to = TEXT_PUT(TEXT_PUT(to, "VA "), "0\r\n");
    to[-3] = (char)('0' + digits);
    return TEXT_PUT(to + digits, "\r\n");
}

void meta_compose_value(struct buf *out, const struct request *request,
                        const struct request_key *key, const struct hit *hit)
{
    if (LIKELY(is_of_page(request)) && !hit->sent && !hit->stale && !hit->won) {
        compose_page_hit(out, request, key, hit->value, hit->value_length);
    } else {
        compose_hit(out, request, key, hit);
    }
}

void meta_compose_values(struct buf *out, const struct request *request,
                         const struct request_key *keys, const struct found *found, size_t count,
                         size_t value_bytes, uint32_t flags)
{
    if (!is_of_page(request)) {
        struct hit hit = {.flags = flags, .ttl_s = -1, .ttl_touched_s = -1, .ttl_made_s = -1};
        for (size_t i = 0; i < count; i++) {
            hit.value = found[i].value;
            hit.value_length = found[i].value_length;
            hit.cas = found[i].cas;
            meta_compose_value(out, request, &keys[i], &hit);
        }
        return;
    }
    char *start = buf_room(out, count * WORDS_MAX + protocol_keys_span(keys, count) + value_bytes);
    if (UNLIKELY(start == NULL)) {
        return;
    }
    bool shows_key = asks(request, 'k');
    char *to = start;
    for (size_t i = 0; i < count; i++) {
        to = put_page_hit(to, shows_key, &keys[i], found[i].value, found[i].value_length);
    }
    buf_commit(out, (size_t)(to - start));
}

bool meta_compose_alike(struct buf *out, const struct request *request,
                        const struct request_key *keys, const struct found *found, size_t count)
{
    if (!is_of_page(request)) {
        return false;
    }
    char *start = buf_room(out, count * WORDS_MAX + protocol_keys_span(keys, count));
    if (UNLIKELY(start == NULL)) {
        return true;
    }
    const char rest[8] = {'\r', '\n', *found->value, '\r', '\n'}; /* copied whole */
    const size_t rest_length = 5;
    bool shows_key = asks(request, 'k');
    char *to = start;
    for (size_t i = 0; i < count; i++) {
        to = TEXT_PUT(to, "VA 1");
        if (shows_key) {
            to = text_put_short(TEXT_PUT(to, " k"), keys[i].bytes, keys[i].length);
        }
        memcpy(to, rest, sizeof(rest));
        to += rest_length;
    }
    buf_commit(out, (size_t)(to - start));
    return true;
}

void meta_compose_miss(struct buf *out, const struct request *request,
                       const struct request_key *key)
{
    struct known known = {.letters = request->meta.info ? 0 : ECHOES};
    struct request one;
    if (request->quiet == QUIET_NO) {
        compose_line(out, alone(request, key, &one), "EN", &known);
    }
}

/* What a status is called; "HD" is what q silences. */
static const char names[][3] = {
    [REPLY_OK] = "HD",      [REPLY_STORED] = "HD",    [REPLY_NOT_STORED] = "NS",
    [REPLY_EXISTS] = "EX",  [REPLY_NOT_FOUND] = "NF", [REPLY_DELETED] = "HD",
    [REPLY_TOUCHED] = "HD", [REPLY_NUMBER] = "HD",
};

static uint64_t answers_of(const struct request *request)
{
    switch (request->verb) {
    case VERB_SET:
    case VERB_ADD:
    case VERB_REPLACE:
    case VERB_CAS:
    case VERB_APPEND:
    case VERB_PREPEND:
        return SET_ANSWERS;
    default:
        return ECHOES;
    }
}

/* Any reply but a number that is of a page. */
static __attribute__((noinline)) void compose_other(struct buf *out, const struct request *request,
                                                    const struct reply *reply)
{
    CHECK((size_t)reply->status < sizeof(names) / sizeof(names[0]));
    const char *name = names[reply->status];
    if (request->quiet != QUIET_NO && name[0] == 'H') {
        return;
    }
    struct known known = {.letters = answers_of(request),
                          .size = reply->size > 0 ? reply->size : request->value_length,
                          .cas = reply->cas,
                          .ttl_s = reply->ttl_s,
                          .ttl_touched_s = reply->ttl_touched_s,
                          .ttl_made_s = reply->ttl_made_s,
                          .made = reply->created};
    if (reply->status == REPLY_NUMBER) {
        known.letters = NUMBER_ANSWERS;
        compose_found(out, request, reply->value, reply->value_length, NULL, &known);
        return;
    }
    compose_line(out, request, name, &known);
}

void meta_compose(struct buf *out, const struct request *request, const struct reply *reply)
{
    bool number = reply->status == REPLY_NUMBER && request->quiet == QUIET_NO;
    if (number && LIKELY(is_of_page(request))) {
        const struct request_key key = {request->meta.line, request->meta.key_length};
        compose_page_hit(out, request, &key, reply->value, reply->value_length);
    } else {
        compose_other(out, request, reply);
    }
}
