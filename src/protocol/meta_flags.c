/*
 * meta_flags.c: the flags of a meta line and their arguments, and keys in base64.
 */
#include "base/num.h"
#include "protocol/meta_private.h"

static bool read_exptime(struct meta_flags *flags, const struct text_token *argument)
{
    return text_tokens_int32(argument, &flags->exptime);
}

static bool read_touch(struct meta_flags *flags, const struct text_token *argument)
{
    flags->before_touch = flags->letters;
    return text_tokens_int32(argument, &flags->touch_exptime);
}

static bool read_recache(struct meta_flags *flags, const struct text_token *argument)
{
    return text_tokens_int32(argument, &flags->recache_exptime);
}

static bool read_token(struct meta_flags *flags, const struct text_token *argument)
{
    return text_tokens_unsigned(argument, UINT64_MAX, &flags->token);
}

static bool read_cas(struct meta_flags *flags, const struct text_token *argument)
{
    return text_tokens_unsigned(argument, UINT64_MAX, &flags->cas);
}

static bool read_initial(struct meta_flags *flags, const struct text_token *argument)
{
    return text_tokens_unsigned(argument, UINT64_MAX, &flags->initial);
}

static bool read_client_flags(struct meta_flags *flags, const struct text_token *argument)
{
    uint64_t number;
    if (!text_tokens_unsigned(argument, UINT32_MAX, &number)) {
        return false;
    }
    flags->client_flags = (uint32_t)number;
    return true;
}

/* Kept as digits: the engines read deltas themselves. */
static bool read_delta(struct meta_flags *flags, const struct text_token *argument)
{
    uint64_t number;
    size_t sign = argument->bytes[0] == '+';
    flags->delta.bytes = argument->bytes + sign;
    flags->delta.length = argument->length - sign;
    return num_parse(flags->delta.bytes, flags->delta.length, &number);
}

/* The command knows which modes there are; what stands after the letter is not looked at. */
static bool read_mode(struct meta_flags *flags, const struct text_token *argument)
{
    flags->mode = argument->bytes[0];
    return true;
}

static bool read_opaque(struct meta_flags *flags, const struct text_token *argument)
{
    (void)flags;
    return argument->length <= META_OPAQUE_MAX;
}

static const char bad_token[] = "bad token in command line format";

/* Flags whose argument is read, and the words for a bad one. */
static const struct {
    bool (*read)(struct meta_flags *flags, const struct text_token *argument);
    const char *refusal;
} arguments[META_LETTERS] = {
    ['C' - META_LETTER_FIRST] = {read_cas, bad_token},
    ['D' - META_LETTER_FIRST] = {read_delta, "invalid numeric delta value"},
    ['E' - META_LETTER_FIRST] = {read_token, bad_token},
    ['F' - META_LETTER_FIRST] = {read_client_flags, "bad command line format"},
    ['J' - META_LETTER_FIRST] = {read_initial, "invalid numeric initial value"},
    ['M' - META_LETTER_FIRST] = {read_mode, bad_token},
    ['N' - META_LETTER_FIRST] = {read_exptime, bad_token},
    ['O' - META_LETTER_FIRST] = {read_opaque, "opaque token too long"},
    ['R' - META_LETTER_FIRST] = {read_recache, bad_token},
    ['T' - META_LETTER_FIRST] = {read_touch, bad_token},
};

const char *meta_flags_read(const char *from, const char *end, uint64_t taken,
                            struct meta_flags *flags)
{
    const char *refusal = NULL;
    struct text_token token;
    *flags = (struct meta_flags){.delta = {.bytes = "1", .length = 1}};
    while (meta_next(&from, end, &token)) {
        char letter = token.bytes[0];
        if (!meta_is_letter(letter) || (taken & META_LETTER(letter)) == 0) {
            return "invalid flag";
        }
        if ((flags->letters & META_LETTER(letter)) != 0) {
            return "duplicate flag";
        }
        flags->letters |= META_LETTER(letter);
        size_t index = (size_t)(letter - META_LETTER_FIRST);
        /* may be empty: then its first byte is the space or line end after it */
        const struct text_token argument = {.bytes = token.bytes + 1, .length = token.length - 1};
        if (arguments[index].read != NULL && !arguments[index].read(flags, &argument)) {
            refusal = arguments[index].refusal;
        }
    }
    return refusal;
}

/* 0 to 63, or 64: none of base64's. */
static uint32_t digit_of(char byte)
{
    if (byte >= 'A' && byte <= 'Z') {
        return (uint32_t)(byte - 'A');
    }
    if (byte >= 'a' && byte <= 'z') {
        return (uint32_t)(byte - 'a') + 26;
    }
    if (byte >= '0' && byte <= '9') {
        return (uint32_t)(byte - '0') + 52;
    }
    return byte == '+' ? 62 : byte == '/' ? 63 : 64;
}

size_t meta_key_decode(const struct text_token *sent, char *to)
{
    size_t digits = sent->length;
    if (digits % 4 != 0) {
        return 0;
    }
    for (int padding = 0; padding < 2 && digits > 0 && sent->bytes[digits - 1] == '='; padding++) {
        digits--;
    }
    uint32_t bits = 0; /* the last ones read; enough of them for any byte */
    size_t length = 0;
    for (size_t i = 0; i < digits; i++) {
        uint32_t digit = digit_of(sent->bytes[i]);
        if (digit == 64) {
            return 0;
        }
        bits = bits << 6 | digit;
        if (i % 4 != 0) {
            to[length++] = (char)(unsigned char)(bits >> (6 - 2 * (i % 4)));
        }
    }
    return length;
}
