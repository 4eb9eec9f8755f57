/* pattern_text.c: what a pattern's text may be, and its parts. */
#include "key/pattern.h"

#include "base/check.h"
#include "base/text_word.h"
#include "key/pattern_tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char id_mark[] = "{id}";
static const char member_mark[] = "{member}";

#define ID_MARK_LENGTH     (sizeof(id_mark) - 1)
#define MEMBER_MARK_LENGTH (sizeof(member_mark) - 1)

/* A fault found: where, and what to say. */
struct fault {
    char *error;
    size_t *at;
};

__attribute__((format(printf, 3, 4))) static bool refuse(const struct fault *fault, size_t at,
                                                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->error, PATTERN_ERROR_MAX, format, arguments);
    va_end(arguments);
    *fault->at = at;
    return false;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Fixed text is printable and holds none of the marks that a key's reader drops. */
static bool fixed_valid(const char *text, size_t from, size_t to, const struct fault *fault)
{
    for (size_t i = from; i < to; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < 0x21 || byte > 0x7e) {
            return refuse(fault, i, "byte 0x%02x in a pattern: only printable ASCII without spaces",
                          byte);
        }
        if (byte == '{' && starts_with(text + i, id_mark)) {
            return refuse(fault, i, "a second {id}: a pattern has one");
        }
        if (byte == '{' || byte == '}') {
            return refuse(fault, i, "'%c' in a pattern: only as part of {id} or {member}", byte);
        }
        if (byte == '|') {
            return refuse(fault, i, "'|' in a pattern: it is kept for the mark |#|");
        }
    }
    return true;
}

static bool behind_id_valid(const char *text, size_t at, const struct fault *fault)
{
    if (text[at] >= '0' && text[at] <= '9') {
        return refuse(fault, at, "a digit after {id}: it would be read as part of the id");
    }
    if (text[at] == '.') {
        return refuse(fault, at, "'.' after {id}: it begins the name of a slot");
    }
    return true;
}

/* Finds where the fixed text ends: at {member}, or at the end. */
static bool member_valid(const char *text, size_t behind_id, bool with_member, size_t *end,
                         const struct fault *fault)
{
    size_t length = strlen(text);
    const char *found = strstr(text, member_mark);
    size_t at = found == NULL ? length : (size_t)(found - text);
    *end = at;
    if (found == NULL) {
        return with_member ? refuse(fault, length, "no {member}: write it like liked:{id}:{member}")
                           : true;
    }
    if (!with_member) {
        return refuse(fault, at, "{member} in a space of counters: write it like feed:{id}");
    }
    if (at < behind_id) {
        return refuse(fault, at, "{member} before {id}: write it like liked:{id}:{member}");
    }
    if (at == behind_id) {
        return refuse(fault, at,
                      "nothing between {id} and {member}: write it like liked:{id}:{member}");
    }
    if (at + MEMBER_MARK_LENGTH != length) {
        return refuse(fault, at + MEMBER_MARK_LENGTH, "text after {member}: it ends a pattern");
    }
    return true;
}

bool pattern_valid(const char *text, bool with_member, char error[PATTERN_ERROR_MAX], size_t *at)
{
    struct fault fault = {.error = error, .at = at};
    const char *example = with_member ? "liked:{id}:{member}" : "feed:{id}";
    size_t length = strlen(text);
    if (length > PATTERN_TEXT_MAX) {
        return refuse(&fault, PATTERN_TEXT_MAX, "pattern too long: at most %d bytes",
                      PATTERN_TEXT_MAX);
    }
    const char *id = strstr(text, id_mark);
    if (id == NULL) {
        size_t wrong = strcspn(text, "{}|");
        bool fixed = wrong == length || starts_with(text + wrong, member_mark);
        return fixed ? refuse(&fault, length, "no {id}: write it like %s", example)
                     : refuse(&fault, wrong, "'%c' without an {id}: write it like %s", text[wrong],
                              example);
    }
    size_t id_at = (size_t)(id - text);
    size_t behind_id = id_at + ID_MARK_LENGTH;
    size_t end;
    return member_valid(text, behind_id, with_member, &end, &fault) &&
           fixed_valid(text, 0, id_at, &fault) && behind_id_valid(text, behind_id, &fault) &&
           fixed_valid(text, behind_id, end, &fault);
}

void pattern_text_set(struct pattern_text *text, const char *bytes, size_t length)
{
    CHECK(length <= PATTERN_TEXT_MAX);
    memmove(text->bytes, bytes, length);
    text->length = (uint8_t)length;
    text->head = text_word(text->bytes, length);
    text->mask = text_word_mask(length);
}

void pattern_space_init(struct pattern_space *space, const char *text)
{
    const char *id = strstr(text, id_mark);
    CHECK(id != NULL && strlen(text) <= PATTERN_TEXT_MAX);
    const char *suffix = id + ID_MARK_LENGTH;
    const char *member = strstr(suffix, member_mark);
    size_t prefix_length = (size_t)(id - text);
    size_t suffix_length = member == NULL ? strlen(suffix) : (size_t)(member - suffix);
    space->next = PATTERN_NO_SPACE;
    space->with_member = member != NULL;
    pattern_text_set(&space->prefix, text, prefix_length);
    pattern_text_set(&space->suffix, suffix, suffix_length);
}
