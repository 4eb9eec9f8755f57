/*
 * meta.c: meta lines to requests.
 *
 * The order of the checks is memcached's: key, number of tokens, flags, mode, size. It takes every
 * flag it knows with every command, and so do plain values. Spaces of ids refuse those that they
 * cannot honour there (request.plain_only), rather than take and ignore them; P and L are hints to
 * proxies and no more.
 */
#include <string.h>

#include "base/num.h"
#include "base/text_word.h"
#include "protocol/meta_private.h"
#include "protocol/text_marks.h"

#define HINTS (META_LETTER('P') | META_LETTER('L'))
#define COMMON                                                                                     \
    (META_LETTER('k') | META_LETTER('O') | META_LETTER('q') | META_LETTER('b') |                   \
     META_LETTER('C') | HINTS)
/* All there are. */
#define KNOWN                                                                                      \
    (GET_FLAGS | SET_FLAGS | ARITHMETIC_FLAGS | EXTENDED | META_LETTER('l') | META_LETTER('h'))
/* The flags of struct request_extended; T and N are extended for some commands. */
#define EXTENDED                                                                                   \
    (META_LETTER('R') | META_LETTER('E') | META_LETTER('I') | META_LETTER('x') | META_LETTER('u'))
/* What ids honour: */
#define GET_FLAGS                                                                                  \
    (COMMON | META_LETTER('v') | META_LETTER('s') | META_LETTER('f') | META_LETTER('c') |          \
     META_LETTER('t') | META_LETTER('T') | META_LETTER('u'))
#define SET_FLAGS                                                                                  \
    (COMMON | META_LETTER('M') | META_LETTER('F') | META_LETTER('T') | META_LETTER('c') |          \
     META_LETTER('s'))
#define DELETE_FLAGS COMMON
#define ARITHMETIC_FLAGS                                                                           \
    (COMMON | META_LETTER('N') | META_LETTER('J') | META_LETTER('D') | META_LETTER('M') |          \
     META_LETTER('v') | META_LETTER('c') | META_LETTER('t') | META_LETTER('T'))

#define INFO_NAME "me"

static const char bad_format[] = "bad command line format";

/* A meta line that was read. */
struct meta_line {
    struct meta_flags flags;
    struct text_token key;  /* as sent, or decoded at the end of the batch's used scratch … */
    uint32_t scratch_bytes; /* … which it takes so many of, if it becomes a request */
};

static bool has(const struct meta_line *meta, char letter)
{
    return (meta->flags.letters & META_LETTER(letter)) != 0;
}

/* A key in base64 finds room in what is left of the batch. */
static bool scratch_fits(const struct text_parser *parser)
{
    return PROTOCOL_SCRATCH_BYTES - parser->batch->scratch_used >= PROTOCOL_KEY_MAX;
}

static bool decode_key(const struct text_parser *parser, struct meta_line *meta)
{
    char *to = parser->batch->scratch + parser->batch->scratch_used;
    size_t length = meta_key_decode(&meta->key, to);
    meta->key = (struct text_token){.bytes = to, .length = length};
    meta->scratch_bytes = (uint32_t)length;
    return length > 0;
}

/*
 * Reads key and flags; the flags begin after the token `before_flags`. Returns NULL or the static
 * words of a refusal.
 */
static const char *read_line(const struct text_parser *parser, const struct text_line *line,
                             const struct text_token *before_flags, struct meta_line *meta)
{
    meta->key = line->tokens[1];
    meta->scratch_bytes = 0;
    if (meta->key.length > PROTOCOL_KEY_MAX) {
        return bad_format;
    }
    if (line->count > META_TOKENS_MAX) {
        return "options flags are too long";
    }
    const char *refusal = meta_flags_read(before_flags->bytes + before_flags->length,
                                          line->text_end, KNOWN, &meta->flags);
    if (refusal == NULL && has(meta, 'b') && !decode_key(parser, meta)) {
        refusal = "error decoding key";
    }
    return refusal;
}

/* extended: the letters that make this command an extended one. */
static void extend(struct text_parser *parser, struct request *request,
                   const struct meta_line *meta, uint64_t extended)
{
    struct request_batch *batch = parser->batch;
    const struct meta_flags *flags = &meta->flags;
    if ((flags->letters & extended) == 0) {
        return;
    }
    struct request_extended *asked = &batch->extended[request - batch->requests];
    request->extended = asked;
    *asked = (struct request_extended){
        .vivify = has(meta, 'N'),
        .vivify_first = (flags->before_touch & META_LETTER('N')) != 0,
        .recache = has(meta, 'R'),
        .recache_first = (flags->before_touch & META_LETTER('R')) != 0,
        .unnoticed = has(meta, 'u'),
        .invalidate = has(meta, 'I'),
        .empty = has(meta, 'x'),
        .touch = has(meta, 'T'),
        .gives_token = has(meta, 'E'),
        .vivify_exptime = (int32_t)flags->exptime,
        .recache_exptime = (int32_t)flags->recache_exptime,
        .token = flags->token,
    };
}

/* of_ids: the letters that this command honours where a space holds ids. */
static void dress(struct text_parser *parser, struct request *request, const struct text_line *line,
                  const struct meta_line *meta, uint64_t of_ids)
{
    parser->batch->any_meta = true;
    parser->batch->scratch_used += meta->scratch_bytes;
    request->quiet = has(meta, 'q') ? QUIET_USUAL : QUIET_NO;
    request->want_cas = has(meta, 'c');
    request->exptime = meta->flags.touch_exptime;
    request->plain_only = (meta->flags.letters & ~of_ids) != 0;
    request->meta.line = line->tokens[1].bytes;
    request->meta.length = (uint32_t)(line->text_end - line->tokens[1].bytes);
    request->meta.key_length = (uint16_t)line->tokens[1].length;
    request->meta.letters = meta->flags.letters;
}

static struct request *meta_push(struct text_parser *parser, enum verb verb,
                                 const struct text_line *line, const struct meta_line *meta,
                                 uint64_t of_ids)
{
    struct request *request = text_push(parser, verb, line->begin, line->end);
    text_push_key(parser, request, &meta->key);
    dress(parser, request, line, meta, of_ids);
    return request;
}

/* me key [b]; what else there is on the line was never looked at */
static enum text_step parse_info(struct text_parser *parser, const struct text_line *line)
{
    struct meta_line meta = {.flags = {.letters = META_LETTER('u')}}; /* no read */
    if (line->count < 2 || line->tokens[1].length > PROTOCOL_KEY_MAX) {
        return text_refuse(parser, line, REPLY_CLIENT_ERROR, bad_format);
    }
    meta.key = line->tokens[1];
    if (line->count > 2 && line->tokens[2].length == 1 && line->tokens[2].bytes[0] == 'b' &&
        !decode_key(parser, &meta)) {
        return text_refuse(parser, line, REPLY_CLIENT_ERROR, bad_format);
    }
    struct request *request = meta_push(parser, VERB_GET, line, &meta, GET_FLAGS);
    extend(parser, request, &meta, EXTENDED);
    request->want_cas = true;
    request->meta.info = true;
    return TEXT_NEXT;
}

enum text_step meta_parse_get(struct text_parser *parser, const struct text_command *command,
                              const struct text_line *line)
{
    struct meta_line meta;
    if (!scratch_fits(parser)) {
        return TEXT_FULL;
    }
    if (memcmp(command->name, INFO_NAME, sizeof(INFO_NAME)) == 0) {
        return parse_info(parser, line);
    }
    const char *refusal = read_line(parser, line, &line->tokens[1], &meta);
    if (refusal != NULL) {
        return text_refuse(parser, line, REPLY_CLIENT_ERROR, refusal);
    }
    enum verb verb = has(&meta, 'T') ? VERB_GAT : VERB_GET;
    struct request *request = meta_push(parser, verb, line, &meta, GET_FLAGS);
    extend(parser, request, &meta, EXTENDED | META_LETTER('N'));
    request->cas = meta.flags.cas;
    request->want_cas = has(&meta, 'c') || has(&meta, 'C'); /* the answer compares it */
    return TEXT_NEXT;
}

/* The verb of a mode, with or without a token; VERB_ERROR: no such mode. */
static enum verb set_verb(const struct meta_line *meta)
{
    switch (meta->flags.mode) {
    case 0:
    case 'S':
        return has(meta, 'C') ? VERB_CAS : VERB_SET;
    case 'R':
        return has(meta, 'C') ? VERB_CAS : VERB_REPLACE;
    case 'E': /* what is not there has no token */
        return VERB_ADD;
    case 'A':
        return VERB_APPEND;
    case 'P':
        return VERB_PREPEND;
    default:
        return VERB_ERROR;
    }
}

/* Sets the token of a write that is no cas; 0 never was a token and compares nothing, as in
 * memcached. */
static void meta_compare(struct request *request, const struct meta_line *meta)
{
    request->cas = meta->flags.cas;
    request->compare = request->cas != 0;
}

/* A refusal of what is too large holds the key; one that was decoded must stay where it is. */
static void keep_key(struct text_parser *parser, const struct meta_line *meta, enum text_step step)
{
    const struct request_batch *batch = parser->batch;
    if (step == TEXT_NEXT && batch->requests[batch->request_count - 1].keys > 0) {
        parser->batch->scratch_used += meta->scratch_bytes;
    }
}

/* ms key bytes flags* */
enum text_step meta_parse_set(struct text_parser *parser, const struct text_command *command,
                              const struct text_line *line)
{
    struct meta_line meta;
    struct request *request;
    uint64_t data_length;
    (void)command;
    if (!scratch_fits(parser)) {
        return TEXT_FULL;
    }
    if (line->count < 3 || !text_tokens_unsigned(&line->tokens[2], TEXT_LENGTH_MAX, &data_length)) {
        return text_refuse(parser, line, REPLY_CLIENT_ERROR, bad_format);
    }
    const char *refusal = read_line(parser, line, &line->tokens[2], &meta);
    enum verb verb = refusal == NULL ? set_verb(&meta) : VERB_ERROR;
    if (refusal == NULL && verb == VERB_ERROR) {
        refusal = "invalid mode for ms M token";
    }
    if (refusal != NULL) {
        return text_refuse_block(parser, line, data_length, REPLY_CLIENT_ERROR, refusal);
    }
    enum text_step step = text_take_block(parser, line, verb, &meta.key, data_length, &request);
    if (request == NULL) {
        keep_key(parser, &meta, step);
        return step;
    }
    dress(parser, request, line, &meta, SET_FLAGS);
    extend(parser, request, &meta, EXTENDED | META_LETTER('N'));
    request->flags = meta.flags.client_flags;
    if (verb == VERB_CAS) {
        request->cas = meta.flags.cas;
    } else if (verb == VERB_APPEND || verb == VERB_PREPEND) {
        meta_compare(request, &meta);
    }
    return step;
}

/* md key flags* */
enum text_step meta_parse_delete(struct text_parser *parser, const struct text_command *command,
                                 const struct text_line *line)
{
    struct meta_line meta;
    if (!scratch_fits(parser)) {
        return TEXT_FULL;
    }
    const char *refusal = read_line(parser, line, &line->tokens[1], &meta);
    if (refusal != NULL) {
        return text_refuse(parser, line, REPLY_CLIENT_ERROR, refusal);
    }
    struct request *request = meta_push(parser, command->verb, line, &meta, DELETE_FLAGS);
    extend(parser, request, &meta, EXTENDED);
    request->flags = meta.flags.client_flags;
    request->compare = has(&meta, 'C'); /* by 0 too: never equal */
    request->cas = meta.flags.cas;
    return TEXT_NEXT;
}

/* VERB_ERROR: no such mode. */
static enum verb arithmetic_verb(char mode)
{
    switch (mode) {
    case 0:
    case 'I':
    case '+':
        return VERB_INCR;
    case 'D':
    case '-':
        return VERB_DECR;
    default:
        return VERB_ERROR;
    }
}

/* ma key flags* */
enum text_step meta_parse_arithmetic(struct text_parser *parser, const struct text_command *command,
                                     const struct text_line *line)
{
    struct meta_line meta;
    (void)command;
    if (!scratch_fits(parser)) {
        return TEXT_FULL;
    }
    const char *refusal = read_line(parser, line, &line->tokens[1], &meta);
    enum verb verb = refusal == NULL ? arithmetic_verb(meta.flags.mode) : VERB_ERROR;
    if (refusal == NULL && verb == VERB_ERROR) {
        refusal = "invalid mode for ma M token";
    }
    if (refusal != NULL) {
        return text_refuse(parser, line, REPLY_CLIENT_ERROR, refusal);
    }
    struct request *request = meta_push(parser, verb, line, &meta, ARITHMETIC_FLAGS);
    extend(parser, request, &meta, has(&meta, 'N') ? EXTENDED | META_LETTER('T') : EXTENDED);
    request->value = meta.flags.delta.bytes;
    request->value_length = (uint32_t)meta.flags.delta.length;
    request->create = has(&meta, 'N') ? CREATE_INITIAL : CREATE_ROLE;
    request->initial = has(&meta, 'N') ? meta.flags.initial : 0;
    request->exptime = meta.flags.exptime; /* of what it creates */
    request->touch = has(&meta, 'T');
    request->touch_exptime = meta.flags.touch_exptime;
    meta_compare(request, &meta);
    return TEXT_NEXT;
}

/* Flags without an argument that ids honour, and plain values do not treat apart. */
#define LETTERS                                                                                    \
    (META_LETTER('v') | META_LETTER('k') | META_LETTER('q') | META_LETTER('c') | META_LETTER('t'))
#define GET_LETTERS (LETTERS | META_LETTER('s') | META_LETTER('f'))
#define SET_LETTERS (META_LETTER('k') | META_LETTER('q') | META_LETTER('c') | META_LETTER('s'))

static const char delta_one[] = "1"; /* the delta of an ma that names none */

/* The flags from the space at `at` on. Returns the end of the last, in front of the line's; NULL:
 * there is another than a letter of `known` alone, or twice the same, or no end. */
static inline const char *read_letters(const char *at, const char *end, uint64_t known,
                                       uint64_t *letters)
{
    uint64_t left = known;
    for (; *at == ' '; at += 2) {
        uint64_t letter = end - at >= 3 && meta_is_letter(at[1]) ? META_LETTER(at[1]) : 0;
        if ((letter & left) == 0) {
            return NULL;
        }
        left ^= letter;
    }
    *letters = known ^ left;
    return at;
}

/* Reads what stands after a key, from the space at `at` on. False: it is not such letters alone. */
static bool read_ending(const char *at, const char *end, bool is_get, struct text_letters *read)
{
    uint64_t letters;
    const char *text_end = read_letters(at, end, is_get ? GET_LETTERS : LETTERS, &letters);
    if (text_end == NULL) {
        return false;
    }
    const char *newline = text_end + (*text_end == '\r');
    if (newline == end || *newline != '\n') {
        return false;
    }
    read->ending = text_ending_of(at, (size_t)(newline + 1 - at));
    read->letters = letters;
    read->length = (uint8_t)(text_end - at); /* two bytes a letter, each once */
    read->is_get = is_get;
    return true;
}

#define VERB_BYTES (sizeof("mg ") - 1)

/* Joins the gets to this one that come after it, as far as their lines are whole and end alike. */
static __attribute__((noinline)) void join_gets(struct text_parser *parser, struct request *request)
{
    const struct text_ending *ending = &parser->letters.ending;
    const char *end = parser->bytes + parser->length;
    const char *at = parser->bytes + parser->at;
    struct request_key *key = &parser->batch->keys[request->first_key + 1];
    const struct request_key *keys_end = protocol_joined_end(parser->batch, request);
    while (key < keys_end && end - at > (ptrdiff_t)TEXT_WORD_BYTES &&
           memcmp(at, "mg ", VERB_BYTES) == 0) {
        const char *bytes = at + VERB_BYTES;
        const char *space = text_marks_near(bytes, end);
        size_t length = (size_t)(space - bytes);
        if (length - 1 >= PROTOCOL_KEY_MAX || !text_ends_alike(space, end, ending)) {
            break;
        }
        *key++ = (struct request_key){.bytes = bytes, .length = (uint32_t)length};
        at = space + ending->length;
    }
    parser->at = (size_t)(at - parser->bytes);
    protocol_join(parser->batch, request, key, parser->at);
}

void meta_part(const struct request_batch *batch, const struct request *joined, uint32_t number,
               const char *bytes, struct request *one)
{
    meta_fill_line(one, protocol_part(batch, joined, number, bytes, one));
}

/* Fills what the letters of a line ask for, and where it is, from the key to the last of them. */
static inline void dress_letters(const struct text_parser *parser, struct request *request,
                                 const struct text_token *key, size_t length, uint64_t letters)
{
    parser->batch->any_meta = true;
    request->quiet = (letters & META_LETTER('q')) != 0 ? QUIET_USUAL : QUIET_NO;
    request->want_cas = (letters & META_LETTER('c')) != 0;
    request->meta.line = key->bytes;
    request->meta.length = (uint32_t)length;
    request->meta.key_length = (uint16_t)key->length;
    request->meta.letters = letters;
}

/* ms: its block is there. */
static bool parse_set(struct text_parser *parser, const char *end)
{
    struct text_token key = {.bytes = parser->bytes + parser->at + VERB_BYTES};
    struct text_marks marks = text_marks_begin(key.bytes, end);
    const char *key_end = text_marks_next(&marks);
    const char *size_end = text_marks_next(&marks);
    uint64_t letters, bytes;
    key.length = (size_t)(key_end - key.bytes);
    if (size_end == end || *key_end != ' ' || key.length - 1 >= PROTOCOL_KEY_MAX) {
        return false;
    }
    const char *size = key_end + 1;
    size_end = text_tokens_word_end(size, size_end);
    const char *text_end = read_letters(size_end, end, SET_LETTERS, &letters);
    if (text_end == NULL || !num_parse(size, (size_t)(size_end - size), &bytes) ||
        bytes > parser->batch->value_max) {
        return false;
    }
    const char *newline = text_end + (*text_end == '\r');
    const char *limit = parser->bytes + parser->length;
    const char *data = newline + 1;
    if (newline == end || *newline != '\n' || (size_t)(limit - data) < bytes + 2 ||
        data[bytes] != '\r' || data[bytes + 1] != '\n') {
        return false;
    }
    struct request *request =
        text_push(parser, VERB_SET, parser->at, (size_t)(data + bytes + 2 - parser->bytes));
    text_push_key(parser, request, &key);
    dress_letters(parser, request, &key, (size_t)(text_end - key.bytes), letters);
    request->value = data;
    request->value_length = (uint32_t)bytes;
    request->bare = bytes <= PROTOCOL_VALUE_MAX;
    return true;
}

/* Adds the increment at parser->at, of this key; its line ends as parser->letters says. */
static inline void push_increment(struct text_parser *parser, const struct text_token *key)
{
    const struct text_letters *read = &parser->letters;
    size_t end = (size_t)(key->bytes + key->length + read->ending.length - parser->bytes);
    struct request *request = text_push(parser, VERB_INCR, parser->at, end);
    text_push_key(parser, request, key);
    dress_letters(parser, request, key, key->length + read->length, read->letters);
    request->meta.letters_alone = true;
    request->value = delta_one;
    request->value_length = sizeof(delta_one) - 1;
    request->bare = (read->letters & ~META_LETTER('q')) == META_LETTER('v');
}

/* Takes the increments that come after it, as far as their lines are whole and end alike. Apart, so
 * that they have the registers to themselves. */
static __attribute__((noinline)) void take_increments(struct text_parser *parser)
{
    const struct text_ending ending = parser->letters.ending;
    const uint32_t flags_length = parser->letters.length;
    const char *end = parser->bytes + parser->length;
    const char *at = parser->bytes + parser->at;
    while (!protocol_is_full(parser->batch) && end - at > (ptrdiff_t)TEXT_WORD_BYTES &&
           memcmp(at, "ma ", VERB_BYTES) == 0) {
        const char *bytes = at + VERB_BYTES;
        const char *space = text_marks_near(bytes, end);
        const struct request_key key = {bytes, (uint32_t)(space - bytes)};
        if (key.length - 1 >= PROTOCOL_KEY_MAX || !text_ends_alike(space, end, &ending)) {
            break;
        }
        const char *next = space + ending.length;
        struct request *request = protocol_push_alike(
            parser->batch, &key, (size_t)(at - parser->bytes), (size_t)(next - parser->bytes));
        request->meta.line = bytes;
        request->meta.length = key.length + flags_length;
        request->meta.key_length = (uint16_t)key.length;
        at = next;
    }
    parser->at = (size_t)(at - parser->bytes);
}

/* mg, ma */
static bool parse_letters(struct text_parser *parser, bool is_get, const char *end)
{
    struct text_token key = {.bytes = parser->bytes + parser->at + VERB_BYTES};
    const char *space = text_marks_near(key.bytes, end);
    struct text_letters *letters = &parser->letters;
    key.length = (size_t)(space - key.bytes);
    if (space == end || *space != ' ' || key.length - 1 >= PROTOCOL_KEY_MAX) {
        return false;
    }
    bool alike = letters->is_get == is_get && text_ends_alike(space, end, &letters->ending);
    if (!alike && !read_ending(space, end, is_get, letters)) {
        return false;
    }
    if (!is_get) {
        push_increment(parser, &key);
        if (parser->at < parser->length) {
            take_increments(parser);
        }
        return true;
    }
    size_t line_end = (size_t)(space + letters->ending.length - parser->bytes);
    struct request *request = text_push(parser, VERB_GET, parser->at, line_end);
    text_push_key(parser, request, &key);
    dress_letters(parser, request, &key, key.length + letters->length, letters->letters);
    request->meta.letters_alone = true;
    if (parser->at < parser->length && parser->batch->joins) {
        join_gets(parser, request);
    }
    return true;
}

bool meta_parse_short(struct text_parser *parser)
{
    static const char noop[] = "mn\r\n";
    const char *start = parser->bytes + parser->at;
    size_t left = parser->length - parser->at;
    const char *end = start + (left < PROTOCOL_LINE_MAX ? left : PROTOCOL_LINE_MAX);
    if (left < sizeof(noop) - 1) {
        return false;
    }
    if (memcmp(start, noop, sizeof(noop) - 1) == 0) {
        text_push(parser, VERB_NOOP, parser->at, parser->at + sizeof(noop) - 1);
        return true;
    }
    if (start[2] != ' ') {
        return false;
    }
    switch (start[1]) {
    case 'g':
        return parse_letters(parser, true, end);
    case 'a':
        return parse_letters(parser, false, end);
    case 's':
        return parse_set(parser, end);
    default:
        return false;
    }
}
