/*
 * text_get.c: lines of many keys.
 *
 * A get becomes one request of up to PROTOCOL_GET_KEYS_BLOCK keys, or several with `more` on all
 * but the last; between them state.in_get says that `at` stands at the first key of the next one. A
 * bad key refuses the whole line, so a line of several blocks is looked through once, to its
 * newline, before its first block is given away; later blocks are not checked again. A line that is
 * not whole yet is remembered by state.line_seen, so that the pieces of a long one are searched for
 * the newline once.
 */
#include <string.h>

#include "base/check.h"
#include "protocol/text_marks.h"
#include "protocol/text_private.h"

enum keys_end {
    KEYS_LINE,  /* the line is at its end */
    KEYS_BLOCK, /* as many keys as a block takes, and at least one more */
    KEYS_ROOM,  /* more keys than the batch has room for */
    KEYS_LONG,  /* a key that is too long */
    KEYS_CUT,   /* the bytes ended before the line */
};

/*
 * Appends the keys from *at on to the batch's own until the block, the room, the line or the bytes
 * end. *at becomes where it goes on: the first key not put, or the place after the newline.
 */
static enum keys_end text_get_collect(const struct text_parser *parser, const char **at,
                                      const char *limit, uint32_t *count)
{
    struct request_key *keys = parser->batch->keys + parser->batch->key_count;
    uint32_t room = PROTOCOL_BATCH_KEYS - parser->batch->key_count;
    uint32_t most = room < PROTOCOL_GET_KEYS_BLOCK ? room : PROTOCOL_GET_KEYS_BLOCK;
    struct request_key *key = keys;
    struct text_marks marks = text_marks_begin(*at, limit);
    const char *from = *at;
    const char *mark;
    enum keys_end end = KEYS_CUT;
    for (; end == KEYS_CUT && (mark = text_marks_next(&marks)) < limit; from = mark + 1) {
        size_t length = (size_t)(text_tokens_word_end(from, mark) - from);
        if (LIKELY(length - 1 < PROTOCOL_KEY_MAX) && LIKELY(key < keys + most)) {
            *key++ = (struct request_key){.bytes = from, .length = (uint32_t)length};
        } else if (length > 0) {
            end = length > PROTOCOL_KEY_MAX        ? KEYS_LONG
                  : most < PROTOCOL_GET_KEYS_BLOCK ? KEYS_ROOM
                                                   : KEYS_BLOCK;
            break;
        }
        end = *mark == '\n' ? KEYS_LINE : KEYS_CUT;
    }
    *count = (uint32_t)(key - keys);
    *at = from;
    return end;
}

/* Looks through the keys from `at` to the newline. KEYS_LINE: all are good. */
static enum keys_end look_through(const char *at, const char *limit)
{
    struct text_marks marks = text_marks_begin(at, limit);
    const char *mark;
    for (; (mark = text_marks_next(&marks)) < limit; at = mark + 1) {
        if (text_tokens_word_end(at, mark) - at > PROTOCOL_KEY_MAX) {
            return KEYS_LONG;
        }
        if (*mark == '\n') {
            return KEYS_LINE;
        }
    }
    return KEYS_CUT;
}

static const char *limit_of(const struct text_parser *parser)
{
    size_t left = parser->length - parser->at;
    return parser->bytes + parser->at +
           (left < PROTOCOL_GET_LINE_MAX ? left : PROTOCOL_GET_LINE_MAX);
}

static enum text_step text_get_refuse(struct text_parser *parser, const char *end,
                                      enum reply_status status, const char *text)
{
    struct text_line line = {.begin = parser->at, .end = (size_t)(end - parser->bytes)};
    return text_refuse(parser, &line, status, text);
}

/* No newline up to limit. */
static enum text_step unfinished(struct text_parser *parser, const char *limit)
{
    size_t seen = (size_t)(limit - parser->bytes) - parser->at;
    if (seen < PROTOCOL_GET_LINE_MAX) {
        parser->state.line_seen = (uint32_t)seen;
        return TEXT_MORE;
    }
    text_get_refuse(parser, limit, REPLY_CLIENT_ERROR, "line too long");
    return TEXT_CLOSE;
}

static enum text_step refuse_key(struct text_parser *parser, const char *at, const char *limit)
{
    const char *newline = memchr(at, '\n', (size_t)(limit - at));
    if (newline == NULL) {
        return unfinished(parser, limit);
    }
    return text_get_refuse(parser, newline + 1, REPLY_CLIENT_ERROR, "bad command line format");
}

/* Gives away the `count` keys after the batch's own, which end at `end`. */
static enum text_step text_get_give(struct text_parser *parser, const struct text_get *get,
                                    const char *end, uint32_t count, bool more)
{
    struct request *request =
        text_push(parser, get->verb, parser->at, (size_t)(end - parser->bytes));
    request->keys = count;
    request->want_cas = get->want_cas;
    request->exptime = get->exptime;
    request->more = more;
    parser->batch->key_count += count;
    if (UNLIKELY(more || parser->state.in_get)) {
        parser->state.in_get = more;
        parser->state.in_get_cas = more && get->want_cas;
        parser->state.in_get_verb = more ? (uint8_t)get->verb : 0;
        parser->state.in_get_exptime = more ? (int32_t)get->exptime : 0;
    }
    return TEXT_NEXT;
}

enum text_step text_get_begin(struct text_parser *parser, const struct text_get *get)
{
    const char *limit = limit_of(parser);
    const char *at = parser->bytes + get->keys_at;
    if (parser->state.line_seen > 0) {
        const char *unseen = parser->bytes + parser->at + parser->state.line_seen;
        CHECK(unseen <= limit);
        if (memchr(unseen, '\n', (size_t)(limit - unseen)) == NULL) {
            return unfinished(parser, limit);
        }
        parser->state.line_seen = 0;
    }
    uint32_t count;
    enum keys_end end = text_get_collect(parser, &at, limit, &count);
    bool more = end == KEYS_BLOCK;
    if (more) {
        end = look_through(at, limit);
    }
    switch (end) {
    case KEYS_ROOM:
        return TEXT_FULL;
    case KEYS_LONG:
        return refuse_key(parser, at, limit);
    case KEYS_CUT:
        return unfinished(parser, limit);
    default:
        break;
    }
    if (count == 0) {
        return text_get_refuse(parser, at, REPLY_ERROR, NULL);
    }
    return text_get_give(parser, get, at, count, more);
}

enum text_step text_get_resume(struct text_parser *parser)
{
    const struct text_get get = {
        .keys_at = parser->at,
        .verb = (enum verb)parser->state.in_get_verb,
        .want_cas = parser->state.in_get_cas,
        .exptime = parser->state.in_get_exptime,
    };
    const char *at = parser->bytes + parser->at;
    const char *limit = limit_of(parser);
    uint32_t count;
    enum keys_end end = text_get_collect(parser, &at, limit, &count);
    CHECK(end != KEYS_LONG); /* the first block would not have been given away */
    if (end == KEYS_CUT || end == KEYS_ROOM) {
        return end == KEYS_CUT ? TEXT_MORE : TEXT_FULL;
    }
    return text_get_give(parser, &get, at, count, end == KEYS_BLOCK);
}

/* The line was looked through to its end before its first block was given away. */
void text_get_cut(const struct request_batch *batch, const struct request *request,
                  uint32_t answered, const char *bytes, struct protocol_state *state,
                  size_t *offset)
{
    CHECK(answered > 0 && answered < request->keys);
    *state = request->before;
    state->line_seen = 0;
    state->in_get = true;
    state->in_get_cas = request->want_cas;
    state->in_get_verb = (uint8_t)request->verb;
    state->in_get_exptime = (int32_t)request->exptime;
    *offset = (size_t)(batch->keys[request->first_key + answered].bytes - bytes);
}
