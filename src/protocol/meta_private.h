/*
 * meta_private.h: what the files of the meta commands share: the walk over a line's tokens, the
 * flags it holds, keys in base64.
 *
 * A flag is a letter, with its argument right after it. A line has a letter once at most, so a set
 * of letters is one word. Pure; any thread.
 */
#ifndef ROLLCALL_PROTOCOL_META_PRIVATE_H
#define ROLLCALL_PROTOCOL_META_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/meta.h"
#include "protocol/text_private.h"

#define META_LETTER_FIRST   '@' /* in front of 'A' */
#define META_LETTERS        64
#define META_LETTER(letter) (1ull << ((letter)-META_LETTER_FIRST))

static inline bool meta_is_letter(char byte)
{
    return byte >= META_LETTER_FIRST && (unsigned char)byte < META_LETTER_FIRST + META_LETTERS;
}

/* The flags of a line that were read. */
struct meta_flags {
    uint64_t letters;        /* META_LETTER of each */
    uint64_t before_touch;   /* of those that stand before T */
    int64_t exptime;         /* N; 0 without */
    int64_t touch_exptime;   /* T; 0 without */
    int64_t recache_exptime; /* R; 0 without */
    uint64_t cas;            /* C */
    uint64_t token;          /* E */
    uint64_t initial;        /* J; 0 without */
    uint32_t client_flags;   /* F; 0 without */
    char mode;               /* M; 0 without */
    struct text_token delta; /* D: its digits; "1" without */
};

/* Fills where the line of one key is, in the copy of a joined request. */
static inline void meta_fill_line(struct request *one, const struct request_key *key)
{
    uint32_t flags_length = one->meta.length - one->meta.key_length;
    one->meta.line = key->bytes;
    one->meta.length = key->length + flags_length;
    one->meta.key_length = (uint16_t)key->length;
}

/* Moves *from over one token. False: there is none up to end. */
static inline bool meta_next(const char **from, const char *end, struct text_token *token)
{
    const char *at = *from;
    while (at < end && *at == ' ') {
        at++;
    }
    token->bytes = at;
    bool is_letter = end - at == 1 || (end - at > 1 && at[1] == ' '); /* as most flags */
    *from = is_letter ? at + 1 : text_tokens_end(at, end);
    token->length = (size_t)(*from - at);
    return token->length > 0;
}

/*
 * Reads the flags in [from, end); letters not in `taken` are refused. Returns NULL, or the static
 * words of what is wrong: the first unknown or repeated flag, else the last bad argument.
 */
const char *meta_flags_read(const char *from, const char *end, uint64_t taken,
                            struct meta_flags *flags);

/*
 * Decodes base64 with its padding into `to`, which has room for 3 bytes of every 4 sent. Returns
 * the number of bytes, 0: it is no base64, or of nothing.
 */
size_t meta_key_decode(const struct text_token *sent, char *to);

#endif
