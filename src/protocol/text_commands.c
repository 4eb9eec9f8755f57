/*
 * text_commands.c: the verbs of the text dialect and how the arguments of each are read.
 *
 * The order of the checks is memcached's: number of tokens, then key, then numbers.
 */
#include <string.h>

#include "base/check.h"
#include "base/text_word.h"
#include "protocol/meta.h"
#include "protocol/text_private.h"

static const char bad_format[] = "bad command line format";
static const char bad_exptime[] = "invalid exptime argument";

static bool key_fits(const struct text_token *token)
{
    return token->length <= PROTOCOL_KEY_MAX;
}

static enum text_step client_error(struct text_parser *parser, const struct text_line *line,
                                   const char *text)
{
    return text_refuse(parser, line, REPLY_CLIENT_ERROR, text);
}

enum text_step text_refuse_block(struct text_parser *parser, const struct text_line *line,
                                 uint64_t data_length, enum reply_status status, const char *text)
{
    text_refuse(parser, line, status, text);
    parser->batch->requests[parser->batch->request_count - 1].swallow_after = true;
    parser->state.swallow_bytes = (uint32_t)data_length + 2;
    return TEXT_NEXT;
}

enum text_step text_take_block(struct text_parser *parser, const struct text_line *line,
                               enum verb verb, const struct text_token *key, uint64_t data_length,
                               struct request **taken)
{
    *taken = NULL;
    if (data_length > parser->batch->value_max) {
        text_refuse_block(parser, line, data_length, REPLY_SERVER_ERROR,
                          "object too large for cache");
        struct request *refused = &parser->batch->requests[parser->batch->request_count - 1];
        refused->detail = DETAIL_TOO_LARGE;
        if (verb == VERB_SET) {
            text_push_key(parser, refused, key);
        }
        return TEXT_NEXT;
    }
    size_t end = line->end + data_length + 2;
    if (parser->length < end) {
        return TEXT_MORE;
    }
    const char *data = parser->bytes + line->end;
    if (data[data_length] != '\r' || data[data_length + 1] != '\n') {
        struct text_line both = *line;
        both.end = end;
        return client_error(parser, &both, "bad data chunk");
    }
    struct request *request = text_push(parser, verb, line->begin, end);
    text_push_key(parser, request, key);
    request->value = data;
    request->value_length = (uint32_t)data_length;
    *taken = request;
    return TEXT_NEXT;
}

static bool read_cas_word(const struct text_line *line, uint64_t *cas)
{
    return line->count > 5 && text_tokens_unsigned(&line->tokens[5], UINT64_MAX, cas);
}

/* <verb> key flags exptime bytes [cas] [noreply]; words beyond are not looked at: a block follows
 * whatever they are, and must not be read as commands */
static enum text_step parse_storage(struct text_parser *parser, const struct text_command *command,
                                    const struct text_line *line)
{
    const struct text_token *tokens = line->tokens;
    struct request *request;
    uint64_t data_length;
    uint64_t flags;
    int64_t exptime;
    uint64_t cas = 0;
    if (!text_tokens_unsigned(&tokens[4], TEXT_LENGTH_MAX, &data_length)) {
        return client_error(parser, line, bad_format);
    }
    if (!key_fits(&tokens[1]) || !text_tokens_unsigned(&tokens[2], UINT32_MAX, &flags) ||
        !text_tokens_int32(&tokens[3], &exptime) ||
        (command->verb == VERB_CAS && !read_cas_word(line, &cas))) {
        return text_refuse_block(parser, line, data_length, REPLY_CLIENT_ERROR, bad_format);
    }
    enum text_step step =
        text_take_block(parser, line, command->verb, &tokens[1], data_length, &request);
    if (request == NULL) {
        return step;
    }
    request->quiet = text_quiet(line);
    request->flags = (uint32_t)flags;
    request->exptime = exptime;
    request->cas = cas;
    return step;
}

/* incr|decr key delta [noreply]; what a delta may be, the engine knows */
static enum text_step parse_arithmetic(struct text_parser *parser,
                                       const struct text_command *command,
                                       const struct text_line *line)
{
    const struct text_token *delta = &line->tokens[2];
    if (!key_fits(&line->tokens[1])) {
        return client_error(parser, line, bad_format);
    }
    struct request *request = text_push(parser, command->verb, line->begin, line->end);
    text_push_key(parser, request, &line->tokens[1]);
    request->quiet = text_quiet(line);
    request->value = delta->bytes;
    request->value_length = (uint32_t)delta->length;
    return TEXT_NEXT;
}

/* delete key [hold time] [noreply]; what is neither is ignored, too: memcached's proxy makes
 * noreplY of a noreply it answers itself */
static enum text_step parse_delete(struct text_parser *parser, const struct text_command *command,
                                   const struct text_line *line)
{
    if (!key_fits(&line->tokens[1])) {
        return client_error(parser, line, bad_format);
    }
    struct request *request = text_push(parser, command->verb, line->begin, line->end);
    text_push_key(parser, request, &line->tokens[1]);
    request->quiet = text_quiet(line);
    return TEXT_NEXT;
}

/* touch key exptime [noreply] */
static enum text_step parse_touch(struct text_parser *parser, const struct text_command *command,
                                  const struct text_line *line)
{
    int64_t exptime;
    if (!key_fits(&line->tokens[1])) {
        return client_error(parser, line, bad_format);
    }
    if (!text_tokens_int32(&line->tokens[2], &exptime)) {
        return client_error(parser, line, bad_exptime);
    }
    struct request *request = text_push(parser, command->verb, line->begin, line->end);
    text_push_key(parser, request, &line->tokens[1]);
    request->quiet = text_quiet(line);
    request->exptime = exptime;
    return TEXT_NEXT;
}

/* get|gets key+, where spaces stand in front of it: else text.c has met it earlier */
static enum text_step parse_get(struct text_parser *parser, const struct text_command *command,
                                const struct text_line *line)
{
    const struct text_get get = {
        .keys_at = (size_t)(line->tokens[1].bytes - parser->bytes),
        .verb = command->verb,
        .want_cas = command->length == strlen("gets"),
    };
    return text_get_begin(parser, &get);
}

/* gat|gats exptime key+; a line of PROTOCOL_LINE_MAX has fewer keys than a block */
static enum text_step parse_gat(struct text_parser *parser, const struct text_command *command,
                                const struct text_line *line)
{
    struct text_get get = {
        .keys_at = (size_t)(line->tokens[2].bytes - parser->bytes),
        .verb = command->verb,
        .want_cas = command->length == strlen("gats"),
    };
    if (!text_tokens_int32(&line->tokens[1], &get.exptime)) {
        return client_error(parser, line, bad_exptime);
    }
    return text_get_begin(parser, &get);
}

/* flush_all [delay] [noreply]; a delay below 0 is none */
static enum text_step parse_flush_all(struct text_parser *parser,
                                      const struct text_command *command,
                                      const struct text_line *line)
{
    int64_t delay = 0;
    if (line->count - line->noreply > 1 && !text_tokens_int32(&line->tokens[1], &delay)) {
        return client_error(parser, line, bad_exptime);
    }
    struct request *request = text_push(parser, command->verb, line->begin, line->end);
    request->quiet = text_quiet(line);
    request->delay = delay > 0 ? (uint64_t)delay : 0;
    return TEXT_NEXT;
}

/* Verbs that take any words, or none: all of them as one text. */
static enum text_step parse_words(struct text_parser *parser, const struct text_command *command,
                                  const struct text_line *line)
{
    struct request *request = text_push(parser, command->verb, line->begin, line->end);
    request->quiet = text_quiet(line);
    if (line->count > 1) {
        request->value = line->tokens[1].bytes;
        request->value_length = (uint32_t)(line->text_end - request->value);
    }
    return TEXT_NEXT;
}

/* verbosity level [noreply] */
static enum text_step parse_verbosity(struct text_parser *parser,
                                      const struct text_command *command,
                                      const struct text_line *line)
{
    uint64_t level;
    if (!text_tokens_unsigned(&line->tokens[1], UINT32_MAX, &level)) {
        return client_error(parser, line, bad_format);
    }
    return parse_words(parser, command, line);
}

#define COMMAND(name, ...)                                                                         \
    {                                                                                              \
        name, sizeof(name) - 1, __VA_ARGS__                                                        \
    }

/* Sorted by their first letter, and by use within a letter. */
static const struct text_command commands[] = {
    COMMAND("add", VERB_ADD, 5, 0, 2, parse_storage),
    COMMAND("append", VERB_APPEND, 5, 0, 2, parse_storage),
    COMMAND("cas", VERB_CAS, 5, 0, 2, parse_storage),
    COMMAND("copy", VERB_FEED, 1, 0, 0, parse_words),
    COMMAND("delete", VERB_DELETE, 2, 4, 2, parse_delete),
    COMMAND("decr", VERB_DECR, 3, 4, 2, parse_arithmetic),
    COMMAND("flush_all", VERB_FLUSH_ALL, 1, 3, 1, parse_flush_all),
    COMMAND("follow", VERB_FEED, 1, 0, 0, parse_words),
    COMMAND("follow-to", VERB_FEED, 1, 0, 0, parse_words),
    COMMAND("get", VERB_GET, 2, 0, 0, parse_get),
    COMMAND("gets", VERB_GET, 2, 0, 0, parse_get),
    COMMAND("gat", VERB_GAT, 3, 0, 0, parse_gat),
    COMMAND("gats", VERB_GAT, 3, 0, 0, parse_gat),
    COMMAND("incr", VERB_INCR, 3, 4, 2, parse_arithmetic),
    COMMAND("lead", VERB_FEED, 1, 0, 0, parse_words),
    COMMAND("lru_crawler", VERB_CRAWLER, 1, 0, 0, parse_words),
    COMMAND("mg", VERB_GET, 2, 0, 0, meta_parse_get),
    COMMAND("ma", VERB_INCR, 2, 0, 0, meta_parse_arithmetic),
    COMMAND("ms", VERB_SET, 2, 0, 0, meta_parse_set),
    COMMAND("mn", VERB_NOOP, 1, 0, 0, parse_words),
    COMMAND("md", VERB_DELETE, 2, 0, 0, meta_parse_delete),
    COMMAND("me", VERB_GET, 1, 0, 0, meta_parse_get), /* alone: refused in other words */
    COMMAND("prepend", VERB_PREPEND, 5, 0, 2, parse_storage),
    COMMAND("promote", VERB_FEED, 1, 0, 0, parse_words),
    COMMAND("quit", VERB_QUIT, 1, 0, 0, parse_words),
    COMMAND("replace", VERB_REPLACE, 5, 0, 2, parse_storage),
    COMMAND("set", VERB_SET, 5, 0, 2, parse_storage),
    COMMAND("stats", VERB_STATS, 1, 0, 0, parse_words),
    COMMAND("shutdown", VERB_SHUTDOWN, 1, 0, 0, parse_words),
    COMMAND("touch", VERB_TOUCH, 3, 4, 2, parse_touch),
    COMMAND("version", VERB_VERSION, 1, 0, 0, parse_words),
    COMMAND("verbosity", VERB_VERBOSITY, 2, 4, 1, parse_verbosity),
};

#define LETTERS 26

/* Where the commands of each letter begin, and where those of 'z' would end. A test sees to it that
 * every command is found. */
static const uint8_t begins[LETTERS + 1] = {0,  2,  2,  4,  6,  6,  9,  13, 13, 14, 14, 14, 16, 22,
                                            22, 22, 24, 25, 26, 29, 30, 30, 32, 32, 32, 32, 32};

_Static_assert(sizeof(commands) / sizeof(commands[0]) == 32, "begins[] goes with the table");

const struct text_command *text_commands_find(const struct text_token *verb)
{
    CHECK(verb->length > 0);
    uint64_t head = text_word(verb->bytes, verb->length);
    unsigned letter = (unsigned char)verb->bytes[0] - (unsigned)'a';
    if (letter >= LETTERS) {
        return NULL;
    }
    for (size_t i = begins[letter]; i < begins[letter + 1]; i++) {
        const struct text_command *command = &commands[i];
        if (text_word(command->name, TEXT_WORD_BYTES) == head && command->length == verb->length &&
            (LIKELY(verb->length <= TEXT_WORD_BYTES) ||
             memcmp(command->name, verb->bytes, verb->length) == 0)) {
            return command;
        }
    }
    return NULL;
}
