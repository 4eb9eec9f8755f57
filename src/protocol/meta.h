/*
 * meta.h: the meta commands mg, ms, md, ma, me of the text dialect: how their lines become
 * requests, and their replies.
 *
 * They are part of the text codec: text_commands.c has their verbs, text_compose.c hands over the
 * replies of requests whose meta.line is set. protocol.md is the contract (flags, messages), the
 * order of return flags is that of the request. A key in base64 (flag b) is decoded into the
 * batch's scratch and goes back as it was sent. Pure; any thread.
 */
#ifndef ROLLCALL_PROTOCOL_META_H
#define ROLLCALL_PROTOCOL_META_H

#include "protocol/text_private.h"

#define META_TOKENS_MAX 20 /* of a line, the verb counted */
#define META_OPAQUE_MAX 32 /* bytes of an opaque */

/* The parse functions of text_command rows: the line is whole, its key is there (but for me). */
enum text_step meta_parse_get(struct text_parser *parser, const struct text_command *command,
                              const struct text_line *line); /* mg, me */
enum text_step meta_parse_set(struct text_parser *parser, const struct text_command *command,
                              const struct text_line *line);
enum text_step meta_parse_delete(struct text_parser *parser, const struct text_command *command,
                                 const struct text_line *line);
enum text_step meta_parse_arithmetic(struct text_parser *parser, const struct text_command *command,
                                     const struct text_line *line);

/*
 * A line that begins at parser->at: mn, or mg, ma or ms with flags that are each a letter alone, as
 * most are,
 * in one walk; with batch->joins the mg that follow and end alike, too. False: it is none, or not
 * whole, and nothing was done: it is read as any line.
 */
bool meta_parse_short(struct text_parser *parser);

/* As those of struct codec, of meta requests: */
void meta_part(const struct request_batch *batch, const struct request *joined, uint32_t number,
               const char *bytes, struct request *one);
size_t meta_compose_bytes_max(const struct request *request);
void meta_compose_value(struct buf *out, const struct request *request,
                        const struct request_key *key, const struct hit *hit);
void meta_compose_values(struct buf *out, const struct request *request,
                         const struct request_key *keys, const struct found *found, size_t count,
                         size_t value_bytes, uint32_t flags);
bool meta_compose_alike(struct buf *out, const struct request *request,
                        const struct request_key *keys, const struct found *found, size_t count);
void meta_compose_miss(struct buf *out, const struct request *request,
                       const struct request_key *key);
/* Any reply but the three errors. */
void meta_compose(struct buf *out, const struct request *request, const struct reply *reply);
/* Writes the same of a bare increment's number (of an ma with v) at `to`. Returns the end. */
char *meta_put_number(char *to, const struct request *request, uint64_t number);

#endif
