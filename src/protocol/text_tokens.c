/*
 * text_tokens.c: a line as tokens, a token as a number.
 */
#include "base/num.h"
#include "protocol/text_marks.h"
#include "protocol/text_private.h"

const char *text_tokens_end(const char *from, const char *end)
{
    struct text_marks marks = text_marks_begin(from, end);
    return text_marks_next(&marks);
}

static inline void add_token(struct text_line *line, const char *from, const char *end)
{
    if (from == end) {
        return; /* spaces in a row, or at the line's end */
    }
    if (line->count < TEXT_TOKENS_MAX) {
        line->tokens[line->count] =
            (struct text_token){.bytes = from, .length = (size_t)(end - from)};
    }
    line->count++;
    line->text_end = end;
}

const char *text_tokens_split(struct text_line *line, const char *from, const char *end)
{
    struct text_marks marks = text_marks_begin(from, end);
    const char *mark;
    line->count = 0;
    line->text_end = from;
    for (; (mark = text_marks_next(&marks)) < end && *mark == ' '; from = mark + 1) {
        add_token(line, from, mark);
    }
    if (mark == end) {
        return NULL;
    }
    add_token(line, from, text_tokens_line_end(from, mark));
    return mark + 1;
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
