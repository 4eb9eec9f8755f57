/*
 * text.c: the text codec: its table of functions, the loop of steps, and lines.
 */
#include "protocol/text.h"

#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "protocol/meta.h"
#include "protocol/text_marks.h"
#include "protocol/text_private.h"

enum text_step text_refuse(struct text_parser *parser, const struct text_line *line,
                           enum reply_status status, const char *text)
{
    struct request *request = text_push(parser, VERB_ERROR, line->begin, line->end);
    request->quiet = text_quiet(line);
    request->refusal = status;
    request->text = text;
    return TEXT_NEXT;
}

/* What a request of HTTP asks for: a path, an address, all of the server. */
static bool is_http_target(const struct text_token *token)
{
    static const char scheme[] = "://";
    return token->bytes[0] == '/' || token->bytes[0] == '*' ||
           memmem(token->bytes, token->length, scheme, sizeof(scheme) - 1) != NULL;
}

/* Returns whether the line begins with a method of HTTP; a method that is a verb of ours in
 * capitals counts only before a target of HTTP. */
static bool begins_http(const struct text_line *line)
{
    static const struct {
        const char *name;
        bool verb;
    } methods[] = {{"GET", true},      {"DELETE", true},   {"POST", false},
                   {"PUT", false},     {"HEAD", false},    {"PATCH", false},
                   {"OPTIONS", false}, {"CONNECT", false}, {"TRACE", false}};
    const struct text_token *verb = &line->tokens[0];
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strlen(methods[i].name) == verb->length &&
            memcmp(methods[i].name, verb->bytes, verb->length) == 0) {
            return !methods[i].verb || (line->count > 1 && is_http_target(&line->tokens[1]));
        }
    }
    return false;
}

static bool is_capitals(const struct text_token *token)
{
    for (size_t i = 0; i < token->length; i++) {
        if (token->bytes[i] < 'A' || token->bytes[i] > 'Z') {
            return false;
        }
    }
    return true;
}

/* Returns whether the last word, however many there are, is a version of HTTP. */
static bool ends_in_http(const struct text_line *line)
{
    static const char version[] = " HTTP/";
    const size_t length = sizeof(version) - 1;
    const char *start = line->tokens[0].bytes;
    const char *last = memrchr(start, ' ', (size_t)(line->text_end - start));
    return last != NULL && (size_t)(line->text_end - last) >= length &&
           memcmp(last, version, length) == 0;
}

/* Returns whether a browser or a probe speaks HTTP, which is refused: answering it line by line
 * would let it send commands. */
static bool is_http(const struct text_line *line)
{
    return line->count > 0 &&
           (begins_http(line) || (is_capitals(&line->tokens[0]) && ends_in_http(line)));
}

static bool ends_in_noreply(const struct text_line *line, const struct text_command *command)
{
    static const char noreply[] = " noreply"; /* a whole token */
    const size_t length = sizeof(noreply) - 1;
    if (command->noreply_from == 0 || line->count <= command->noreply_from ||
        (size_t)(line->text_end - line->tokens[0].bytes) < length) {
        return false;
    }
    return memcmp(line->text_end - length, noreply, length) == 0;
}

static enum text_step run_line(struct text_parser *parser, struct text_line *line)
{
    const struct text_command *command = NULL;
    if (line->count > 0) {
        command = text_commands_find(&line->tokens[0]);
    }
    if (command == NULL) {
        return is_http(line) ? TEXT_CLOSE : text_refuse(parser, line, REPLY_ERROR, NULL);
    }
    line->noreply = ends_in_noreply(line, command);
    if (line->count < command->tokens_min ||
        (command->tokens_max > 0 && line->count > command->tokens_max)) {
        return text_refuse(parser, line, REPLY_ERROR, NULL);
    }
    return command->parse(parser, command, line);
}

#define INCREMENT_VERB 5 /* bytes of "incr " and "decr " */

/* Returns what a line begins with. VERB_ERROR: neither of them. */
static inline enum verb increment_verb(const char *start, const char *limit)
{
    static const char incr[] = "incr ";
    static const char decr[] = "decr ";
    if (limit - start <= INCREMENT_VERB) {
        return VERB_ERROR;
    }
    if (LIKELY(memcmp(start, incr, INCREMENT_VERB) == 0)) {
        return VERB_INCR;
    }
    return memcmp(start, decr, INCREMENT_VERB) == 0 ? VERB_DECR : VERB_ERROR;
}

/*
 * Reads an increment as clients send it, "incr KEY DELTA" and no word or space more: a short way,
 * since most changes are such lines. Returns where the next line begins. NULL: this one is to be
 * read by parse_line(). The result is the same.
 */
static inline const char *parse_increment(const struct text_parser *parser, const char *start,
                                          const char *limit)
{
    enum verb verb = increment_verb(start, limit);
    const char *end = limit - start < PROTOCOL_LINE_MAX ? limit : start + PROTOCOL_LINE_MAX;
    const char *key = start + INCREMENT_VERB;
    if (verb == VERB_ERROR) {
        return NULL;
    }
    const char *space = text_marks_near(key, end);
    if (space == end || *space != ' ') {
        return NULL;
    }
    const char *delta = space + 1;
    const char *delta_end = delta;
    while (delta_end < end && (unsigned char)*delta_end > ' ') { /* one digit, as a rule */
        delta_end++;
    }
    const char *newline = delta_end + (delta_end < end && *delta_end == '\r');
    if (newline == end || *newline != '\n') {
        return NULL;
    }
    struct text_token token = {.bytes = key, .length = (size_t)(space - key)};
    if (token.length - 1 >= PROTOCOL_KEY_MAX || delta_end == delta || *delta == 'n') {
        return NULL; /* the last: of noreply, maybe */
    }
    struct request *request = protocol_push(parser->batch, verb, (size_t)(start - parser->bytes),
                                            (size_t)(newline + 1 - parser->bytes), &parser->state);
    text_push_key(parser, request, &token);
    request->value = delta;
    request->value_length = (uint32_t)(delta_end - delta);
    request->bare = true;
    return newline + 1;
}

/* Takes the increments that come next, from `at` on, as long as they have the verb and the ending
 * of the one that was just read. Returns where they end. */
static inline const char *take_like_it(const struct text_parser *parser, const char *at,
                                       const char *limit)
{
    struct request_batch *batch = parser->batch;
    const struct request *first = &batch->requests[batch->request_count - 1];
    const uint64_t verb_mask = text_word_mask(INCREMENT_VERB);
    uint64_t verb = text_word(parser->bytes + first->begin, TEXT_WORD_BYTES) & verb_mask;
    const struct text_ending ending =
        text_ending_of(first->value - 1, (size_t)(at + 1 - first->value));
    if (ending.mask == 0) {
        return at;
    }
    while (limit - at >= INCREMENT_VERB + (ptrdiff_t)TEXT_WORD_BYTES &&
           (text_word(at, TEXT_WORD_BYTES) & verb_mask) == verb && !protocol_is_full(batch)) {
        const char *bytes = at + INCREMENT_VERB;
        const char *space = text_marks_near(bytes, limit);
        const struct request_key key = {bytes, (uint32_t)(space - bytes)};
        if (key.length - 1 >= PROTOCOL_KEY_MAX || !text_ends_alike(space, limit, &ending)) {
            break;
        }
        const char *next = space + ending.length;
        struct request *request = protocol_push_alike(batch, &key, (size_t)(at - parser->bytes),
                                                      (size_t)(next - parser->bytes));
        request->value = space + 1;
        at = next;
    }
    return at;
}

/* Reads as many increments as follow each other. False: there is none. Apart, so that they have the
 * registers to themselves. */
static __attribute__((noinline)) bool parse_increments(struct text_parser *parser)
{
    const char *first = parser->bytes + parser->at;
    const char *limit = parser->bytes + parser->length;
    const char *at = first;
    const char *next;
    while (!protocol_is_full(parser->batch) &&
           (next = parse_increment(parser, at, limit)) != NULL) {
        at = next < limit ? take_like_it(parser, next, limit) : next;
    }
    parser->at = (size_t)(at - parser->bytes);
    return at != first;
}

/* The same of a get of one key, "get KEY", after which nothing has come. */
static bool parse_lone_get(struct text_parser *parser)
{
    static const char get[] = "get ";
    const char *start = parser->bytes + parser->at;
    size_t left = parser->length - parser->at;
    const char *newline = start + left - 1;
    if (left > TEXT_MARKS_BLOCK || left < sizeof(get) || *newline != '\n' ||
        memcmp(start, get, sizeof(get) - 1) != 0) {
        return false;
    }
    const char *key = start + sizeof(get) - 1;
    const char *key_end = text_tokens_line_end(key, newline);
    struct text_token token = {.bytes = key, .length = (size_t)(key_end - key)};
    if (token.length == 0 || text_marks_block(key, (size_t)(newline - key)) != 0) {
        return false;
    }
    parser->state.line_seen = 0;
    struct request *request = text_push(parser, VERB_GET, parser->at, parser->length);
    text_push_key(parser, request, &token);
    return true;
}

/* The number between two marks. False: there is none, or it is larger. */
static inline bool read_between(const char *mark, const char *end, uint64_t max, uint64_t *number)
{
    return num_parse(mark + 1, (size_t)(end - mark - 1), number) && *number <= max;
}

/* The same of a set, "set KEY FLAGS EXPTIME BYTES", whose block is there. */
static bool parse_set(struct text_parser *parser)
{
    const char *start = parser->bytes + parser->at;
    size_t left = parser->length - parser->at;
    const char *end = start + (left < PROTOCOL_LINE_MAX ? left : PROTOCOL_LINE_MAX);
    const char *key = start + sizeof("set ") - 1;
    struct text_marks marks = text_marks_begin(key, end);
    const char *key_end = text_marks_next(&marks);
    const char *flags_end = text_marks_next(&marks);
    const char *exptime_end = text_marks_next(&marks);
    const char *newline = text_marks_next(&marks);
    struct text_token token = {.bytes = key, .length = (size_t)(key_end - key)};
    uint64_t flags, exptime, bytes;
    if (UNLIKELY(newline == end || *newline != '\n' || *key_end != ' ' || *flags_end != ' ' ||
                 *exptime_end != ' ' || token.length - 1 >= PROTOCOL_KEY_MAX) ||
        !read_between(key_end, flags_end, UINT32_MAX, &flags) ||
        !read_between(flags_end, exptime_end, INT32_MAX, &exptime) ||
        !read_between(exptime_end, text_tokens_line_end(exptime_end + 1, newline),
                      parser->batch->value_max, &bytes)) {
        return false;
    }
    const char *data = newline + 1;
    size_t rest = left - (size_t)(data - start);
    if (UNLIKELY(rest < 2 || bytes > rest - 2 || data[bytes] != '\r' || data[bytes + 1] != '\n')) {
        return false;
    }
    struct request *request =
        text_push(parser, VERB_SET, parser->at, (size_t)(data + bytes + 2 - parser->bytes));
    text_push_key(parser, request, &token);
    request->value = data;
    request->value_length = (uint32_t)bytes;
    request->flags = (uint32_t)flags;
    request->exptime = (int64_t)exptime;
    request->bare = exptime == 0 && bytes <= PROTOCOL_VALUE_MAX;
    return true;
}

static bool begins_set(const struct text_parser *parser)
{
    static const char set[] = "set ";
    return parser->length - parser->at >= sizeof(set) - 1 &&
           memcmp(parser->bytes + parser->at, set, sizeof(set) - 1) == 0;
}

static enum text_step parse_line(struct text_parser *parser)
{
    const char *start = parser->bytes + parser->at;
    size_t left = parser->length - parser->at;
    size_t window = left < PROTOCOL_LINE_MAX ? left : PROTOCOL_LINE_MAX;
    struct text_line line;
    const char *next = text_tokens_split(&line, start, start + window);
    if (next == NULL) {
        return left >= PROTOCOL_LINE_MAX ? TEXT_CLOSE : TEXT_MORE;
    }
    line.begin = parser->at;
    line.end = (size_t)(next - parser->bytes);
    line.noreply = false;
    return run_line(parser, &line);
}

/* get and gets are met before their newline is looked for: their lines may be long. */
static bool begins_get(const struct text_parser *parser, struct text_get *get)
{
    static const char plain[] = "get ";
    static const char with_cas[] = "gets ";
    const char *start = parser->bytes + parser->at;
    size_t left = parser->length - parser->at;
    get->verb = VERB_GET;
    get->exptime = 0;
    if (left >= sizeof(plain) - 1 && memcmp(start, plain, sizeof(plain) - 1) == 0) {
        get->keys_at = parser->at + sizeof(plain) - 1;
        get->want_cas = false;
        return true;
    }
    if (left >= sizeof(with_cas) - 1 && memcmp(start, with_cas, sizeof(with_cas) - 1) == 0) {
        get->keys_at = parser->at + sizeof(with_cas) - 1;
        get->want_cas = true;
        return true;
    }
    return false;
}

/* Apart, so that gets and increments keep their registers. */
static __attribute__((noinline)) enum text_step parse_other(struct text_parser *parser)
{
    return begins_set(parser) && parse_set(parser) ? TEXT_NEXT : parse_line(parser);
}

static enum text_step step(struct text_parser *parser)
{
    struct text_get get;
    if (UNLIKELY(parser->state.swallow_bytes > 0)) {
        parser->at += protocol_swallow(&parser->state, parser->length - parser->at);
    }
    if (parser->at == parser->length) {
        return TEXT_MORE;
    }
    if (protocol_is_full(parser->batch)) {
        return TEXT_FULL;
    }
    if (UNLIKELY(parser->state.in_get)) {
        return text_get_resume(parser);
    }
    switch (parser->bytes[parser->at]) {
    case 'g':
        if (parse_lone_get(parser)) {
            return TEXT_NEXT;
        }
        return begins_get(parser, &get) ? text_get_begin(parser, &get) : parse_line(parser);
    case 'i':
    case 'd':
        return parse_increments(parser) ? TEXT_NEXT : parse_line(parser);
    case 'm':
        return meta_parse_short(parser) ? TEXT_NEXT : parse_line(parser);
    default:
        return parse_other(parser);
    }
}

static enum protocol_result text_parse(const struct protocol_state *state, const char *bytes,
                                       size_t length, struct request_batch *batch)
{
    static const enum protocol_result results[] = {
        [TEXT_MORE] = PROTOCOL_MORE,
        [TEXT_FULL] = PROTOCOL_FULL,
        [TEXT_CLOSE] = PROTOCOL_CLOSE,
    };
    struct text_parser parser = {
        .bytes = bytes, .length = length, .at = 0, .state = *state, .batch = batch};
    enum text_step last;
    batch->any_meta = false;
    batch->request_count = 0;
    batch->key_count = 0;
    batch->scratch_used = 0;
    do {
        last = step(&parser);
    } while (last == TEXT_NEXT);
    batch->consumed = parser.at;
    batch->after = parser.state;
    return results[last];
}

const struct codec *text_codec(void)
{
    static const struct codec codec = {
        .first_byte = CODEC_FIRST_ANY,
        .has_meta = true,
        .says_whose = true,
        .read_auth = text_auth_read,
        .parse = text_parse,
        .reply_bytes_max = text_compose_bytes_max,
        .compose_value = text_compose_value,
        .compose_values = text_compose_values,
        .compose_alike = text_compose_alike,
        .compose_miss = text_compose_miss,
        .compose_end = text_compose_end,
        .compose_stat = text_compose_stat,
        .compose_stats_end = text_compose_stats_end,
        .list_key = text_list_key,
        .list_end = text_list_end,
        .compose = text_compose,
        .compose_numbers = text_compose_numbers,
        .part = meta_part,
        .cut = text_get_cut,
    };
    return &codec;
}
