/*
 * text_private.h: what the files of the text codec share.
 *
 * A parse is a loop of steps. Each step looks at the bytes at parser->at, adds at most one request
 * to the batch and moves `at` after it. A step that cannot go on changes nothing but what it says.
 * Pure; any thread; everything lives in the caller's structs.
 */
#ifndef ROLLCALL_PROTOCOL_TEXT_PRIVATE_H
#define ROLLCALL_PROTOCOL_TEXT_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text_word.h"
#include "protocol/codec.h"

#define TEXT_TOKENS_MAX 7           /* tokens of the longest command: cas with noreply */
#define TEXT_VERB_MAX   11          /* bytes of the longest verb: lru_crawler */
#define TEXT_LENGTH_MAX 0x7ffffffeu /* bytes a data block may claim to have */

enum text_step {
    TEXT_NEXT, /* a request was added: look again */
    TEXT_MORE,
    TEXT_FULL,
    TEXT_CLOSE,
};

/* What stands after the key of a line, to the newline, if that takes at most a word: lines that
 * follow each other are alike there. */
struct text_ending {
    uint64_t text, mask; /* mask 0: none was read yet, or it is longer */
    size_t length;
};

static inline struct text_ending text_ending_of(const char *at, size_t length)
{
    uint64_t mask = length <= TEXT_WORD_BYTES ? text_word_mask(length) : 0;
    return (struct text_ending){.text = text_word(at, length), .mask = mask, .length = length};
}

/* Returns whether a line that goes on at `at` ends so. */
static inline bool text_ends_alike(const char *at, const char *end,
                                   const struct text_ending *ending)
{
    size_t left = (size_t)(end - at);
    uint64_t text = text_word(at, LIKELY(left >= TEXT_WORD_BYTES) ? TEXT_WORD_BYTES : left);
    return ((text ^ ending->text) & ending->mask) == 0 && left >= ending->length &&
           ending->mask != 0;
}

/* That of a meta line whose flags are letters alone. */
struct text_letters {
    struct text_ending ending;
    uint64_t letters;
    uint8_t length; /* of the flags */
    bool is_get;
};

struct text_parser {
    const char *bytes; /* as given to parse … */
    size_t length;
    size_t at;                   /* … and how far they are done with */
    struct protocol_state state; /* at `at` */
    struct request_batch *batch;
    struct text_letters letters; /* of a line before */
};

struct text_token {
    const char *bytes;
    size_t length; /* never 0, but as the argument of a meta flag */
};

struct text_line {
    size_t begin;         /* offset of its first byte … */
    size_t end;           /* … and of the first after its newline */
    bool noreply;         /* its last token is a noreply of its command */
    const char *text_end; /* after its last token */
    size_t count;         /* tokens, also those that were not kept */
    struct text_token tokens[TEXT_TOKENS_MAX];
};

struct text_command {
    char name[TEXT_VERB_MAX + 1]; /* zeros after it */
    uint8_t length;
    enum verb verb : 8;
    uint8_t tokens_min;   /* the verb counted; any other number is answered ERROR */
    uint8_t tokens_max;   /* 0: no limit */
    uint8_t noreply_from; /* first token that may be a noreply; 0: none may */
    enum text_step (*parse)(struct text_parser *parser, const struct text_command *command,
                            const struct text_line *line);
};

/* A get to be parsed, from its first key or from the first key of a later block. */
struct text_get {
    size_t keys_at; /* offset where its keys begin */
    enum verb verb; /* VERB_GET or VERB_GAT */
    bool want_cas;
    int64_t exptime; /* VERB_GAT */
};

/* text.c */

static inline enum request_quiet text_quiet(const struct text_line *line)
{
    return line->noreply ? QUIET_ALL : QUIET_NO;
}

/*
 * Adds the request bytes[begin..end) to the batch, with nothing but verb, offsets and state filled,
 * and moves the parser after it. The batch has room: the loop saw to it. The request is the
 * batch's.
 */
static inline struct request *text_push(struct text_parser *parser, enum verb verb, size_t begin,
                                        size_t end)
{
    struct request *request = protocol_push(parser->batch, verb, begin, end, &parser->state);
    parser->at = end;
    return request;
}

/* Adds a key of 1 .. PROTOCOL_KEY_MAX bytes to the last request; the batch has room for it. */
static inline void text_push_key(const struct text_parser *parser, struct request *request,
                                 const struct text_token *token)
{
    struct request_batch *batch = parser->batch;
    CHECK(batch->key_count < PROTOCOL_BATCH_KEYS);
    CHECK(token->length <= PROTOCOL_KEY_MAX);
    batch->keys[batch->key_count++] =
        (struct request_key){.bytes = token->bytes, .length = (uint32_t)token->length};
    request->keys++;
}

/* Adds a refusal of the line: status and static text are its answer. Always TEXT_NEXT. */
enum text_step text_refuse(struct text_parser *parser, const struct text_line *line,
                           enum reply_status status, const char *text);

/* text_tokens.c */

/* The first space or newline in [from, end), or end. */
const char *text_tokens_end(const char *from, const char *end);
/*
 * Splits the line that begins at `from` into line->tokens, count and text_end. Returns the place
 * after its newline, or NULL, with nothing of use in *line: there is no newline in [from, end).
 */
const char *text_tokens_split(struct text_line *line, const char *from, const char *end);
/* Returns where the last token of a line ends, before its CRLF; the token begins at `from` and may
 * be empty. */
static inline const char *text_tokens_line_end(const char *from, const char *newline)
{
    return newline > from && newline[-1] == '\r' ? newline - 1 : newline;
}
/* Where the word ends that begins at `from` and is ended by a mark; at `from`: it is none. */
static inline const char *text_tokens_word_end(const char *from, const char *mark)
{
    return *mark == '\n' ? text_tokens_line_end(from, mark) : mark;
}
/* Reads a token as a decimal number 0 .. max, one leading '+' allowed. False: it is something else.
 */
bool text_tokens_unsigned(const struct text_token *token, uint64_t max, uint64_t *value);
/* Reads a token as a decimal number -2^31 .. 2^31-1. False: it is something else. */
bool text_tokens_int32(const struct text_token *token, int64_t *value);

/* text_get.c */

/*
 * Parses the get whose line begins at parser->at and need not be whole. TEXT_MORE when its newline
 * is not there yet; TEXT_FULL when the batch has no room for its next block.
 */
enum text_step text_get_begin(struct text_parser *parser, const struct text_get *get);
/* Parses the next block of a get whose earlier blocks were taken (state.in_get). */
enum text_step text_get_resume(struct text_parser *parser);

/* text_commands.c */

/* The command of that name, or NULL. Static. */
const struct text_command *text_commands_find(const struct text_token *verb);
/* As text_refuse(), of a storage command: its block, which the line says the length of, is dropped
 * as it comes and not read as commands. data_length: 0 .. TEXT_LENGTH_MAX. */
enum text_step text_refuse_block(struct text_parser *parser, const struct text_line *line,
                                 uint64_t data_length, enum reply_status status, const char *text);
/*
 * Takes the data block after the line of a storage command that is good: adds a request with verb,
 * key and value, for the caller to fill with the rest. *taken is NULL when there is none: a block
 * that is too long or does not end in CRLF was refused (TEXT_NEXT), or is not whole (TEXT_MORE).
 */
enum text_step text_take_block(struct text_parser *parser, const struct text_line *line,
                               enum verb verb, const struct text_token *key, uint64_t data_length,
                               struct request **taken);

/* text_auth.c, text_compose.c, text_list.c: the functions of struct codec. */

enum auth_wish text_auth_read(const char *bytes, size_t length, struct auth_request *request);

size_t text_compose_bytes_max(const struct request *request);
void text_compose_value(struct buf *out, const struct request *request,
                        const struct request_key *key, const struct hit *hit);
void text_compose_values(struct buf *out, const struct request *request,
                         const struct request_key *keys, const struct found *found, size_t count,
                         size_t value_bytes, uint32_t flags);
bool text_compose_alike(struct buf *out, const struct request *request,
                        const struct request_key *keys, const struct found *found, size_t count,
                        uint32_t flags);
void text_compose_miss(struct buf *out, const struct request *request,
                       const struct request_key *key);
void text_compose_end(struct buf *out, const struct request *request);
bool text_compose_stat(struct buf *out, const struct request *request, const char *name,
                       const char *text);
void text_compose_stats_end(struct buf *out, const struct request *request);
bool text_list_key(struct buf *out, enum listing listing, const struct listed_key *key);
bool text_list_end(struct buf *out, enum listing listing);
void text_get_cut(const struct request_batch *batch, const struct request *request,
                  uint32_t answered, const char *bytes, struct protocol_state *state,
                  size_t *offset); /* text_get.c */
void text_compose(struct buf *out, const struct request *request, const struct reply *reply);
void text_compose_numbers(struct buf *out, const struct request *requests, const uint64_t *numbers,
                          const uint64_t *tokens, size_t count);

#endif
