/*
 * text_tokens.c: a line as tokens, a token as a number.
 */
#include <string.h>

#include "base/num.h"
#include "protocol/text_private.h"

#define BYTES_OF(byte) (0x0101010101010101u * (uint64_t)(byte))

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* A word whose lowest set bit is in the first byte of `word` that is `byte`; 0: there is none. */
static inline uint64_t first_of(uint64_t word, unsigned char byte)
{
    uint64_t zero = word ^ BYTES_OF(byte);
    return (zero - BYTES_OF(1)) & ~zero & BYTES_OF(0x80);
}
#endif

const char *text_tokens_end(const char *from, const char *end)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while (end - from >= 8) {
        uint64_t word;
        memcpy(&word, from, sizeof word);
        uint64_t found = first_of(word, ' ') | first_of(word, '\n');
        if (found != 0) {
            return from + __builtin_ctzll(found) / 8;
        }
        from += 8;
    }
#endif
    while (from < end && *from != ' ' && *from != '\n') {
        from++;
    }
    return from;
}

void text_tokens_split(struct text_line *line, const char *from, const char *end)
{
    line->count = 0;
    line->text_end = from;
    for (;;) {
        while (from < end && *from == ' ') {
            from++;
        }
        if (from == end) {
            return;
        }
        const char *behind = text_tokens_end(from, end);
        if (line->count < TEXT_TOKENS_MAX) {
            line->tokens[line->count] =
                (struct text_token){.bytes = from, .length = (size_t)(behind - from)};
        }
        line->count++;
        line->text_end = behind;
        from = behind;
    }
}

bool text_tokens_unsigned(const struct text_token *token, uint64_t max, uint64_t *value)
{
    size_t sign = token->bytes[0] == '+';
    uint64_t number;
    if (!num_parse(token->bytes + sign, token->length - sign, &number) || number > max) {
        return false;
    }
    *value = number;
    return true;
}

bool text_tokens_int32(const struct text_token *token, int64_t *value)
{
    bool negative = token->bytes[0] == '-';
    size_t sign = negative || token->bytes[0] == '+';
    uint64_t max = (uint64_t)INT32_MAX + negative;
    uint64_t number;
    if (!num_parse(token->bytes + sign, token->length - sign, &number) || number > max) {
        return false;
    }
    *value = negative ? -(int64_t)number : (int64_t)number;
    return true;
}
