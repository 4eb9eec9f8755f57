/*
 * fuzz_pattern.c: key patterns. The input's lines up to the first empty one are patterns, the
 * others keys. What a pattern is made of, with numbers and words filled in, must belong to its
 * space; what belongs to one must be its fixed text, an id and the rest.
 */
#include <inttypes.h>
#include <stdio.h>

#include "key/pattern.h"
#include "tests/fuzz/fuzz.h"

#define ID        "{id}"
#define MEMBER    "{member}"
#define MEMBER_IS "m.1"

struct patterns {
    char *texts[PATTERN_SPACES_MAX];
    size_t count;
    struct pattern_set *set;
};

static bool has_member(const char *text)
{
    return strstr(text, MEMBER) != NULL;
}

/* Takes a line as a pattern, if it may be one. */
static void take(struct patterns *patterns, const char *line, size_t length)
{
    char *text = memory_strndup(line, length);
    char error[PATTERN_ERROR_MAX] = "";
    size_t at = SIZE_MAX;

    if (pattern_valid(text, has_member(text), error, &at) &&
        patterns->count < LENGTH(patterns->texts)) {
        CHECK(strlen(text) <= PATTERN_TEXT_MAX);
        patterns->texts[patterns->count++] = text;
        return;
    }
    CHECK(patterns->count == LENGTH(patterns->texts) ||
          (at <= strlen(text) && error[0] != '\0' && memchr(error, '\0', sizeof(error)) != NULL));
    free(text);
}

static bool build(struct patterns *patterns)
{
    char error[PATTERN_ERROR_MAX] = "";
    uint32_t first = UINT32_MAX;
    uint32_t second = UINT32_MAX;

    patterns->set = pattern_set_create((const char *const *)patterns->texts, patterns->count, error,
                                       &first, &second);
    if (patterns->set != NULL) {
        return true;
    }
    CHECK(error[0] != '\0' && memchr(error, '\0', sizeof(error)) != NULL);
    CHECK(first < patterns->count && second < patterns->count && first != second);
    return false;
}

/* Fixed text, id and suffix of a pattern as a key. Returns its length, 0 if it is too long. */
static size_t fill(const char *text, uint64_t id, char key[PATTERN_KEY_MAX + 1])
{
    const char *hole = strstr(text, ID);
    const char *member = strstr(text, MEMBER);
    int suffix =
        member != NULL ? (int)(member - hole) - (int)strlen(ID) : (int)strlen(hole + strlen(ID));
    int length = snprintf(key, PATTERN_KEY_MAX + 1, "%.*s%" PRIu64 "%.*s", (int)(hole - text), text,
                          id, suffix, hole + strlen(ID));

    return length > PATTERN_KEY_MAX ? 0 : (size_t)length;
}

/* Does the key read as fixed text, id, suffix, rest? */
static void check_match(const struct patterns *patterns, const char *key, size_t length,
                        enum pattern_result result, const struct pattern_match *match)
{
    char filled[PATTERN_KEY_MAX + 1];
    const char *text = patterns->texts[match->space];
    size_t before = fill(text, match->id, filled);

    CHECK(match->id <= PATTERN_ID_MAX && match->rest_length <= length);
    CHECK(has_member(text) == (result == PATTERN_MEMBER));
    CHECK(result == PATTERN_RECORD || match->rest_length > 0);
    CHECK(result == PATTERN_MEMBER || match->rest_length == 0 || match->rest[0] == '.');
    CHECK(match->rest_length == 0 ||
          (match->rest >= key && match->rest + match->rest_length <= key + length) ||
          (match->rest >= match->scratch &&
           match->rest + match->rest_length <= match->scratch + sizeof(match->scratch)));
    if (memchr(key, '{', length) == NULL && memchr(key, '|', length) == NULL) {
        CHECK(before + match->rest_length == length && memcmp(filled, key, before) == 0);
    }
}

static void look_up(const struct patterns *patterns, const char *line, size_t length)
{
    if (length == 0 || length > PATTERN_KEY_MAX) {
        return;
    }
    struct pattern_match match;
    char *key = fuzz_copy(line, length);
    enum pattern_result result = pattern_match(patterns->set, key, length, &match);

    CHECK(result <= PATTERN_MEMBER);
    CHECK(result == PATTERN_NONE || match.space < patterns->count);
    if (result == PATTERN_RECORD || result == PATTERN_MEMBER) {
        check_match(patterns, key, length, result, &match);
    }
    free(key);
}

/* A key made of a pattern belongs to its space. */
static void look_up_own(const struct patterns *patterns, uint32_t space, uint64_t id)
{
    char key[PATTERN_KEY_MAX + 1];
    struct pattern_match match;
    size_t length = fill(patterns->texts[space], id, key);
    bool member = has_member(patterns->texts[space]);

    if (member) {
        memcpy(key + length, MEMBER_IS, strlen(MEMBER_IS));
        length += strlen(MEMBER_IS);
    }
    enum pattern_result result = pattern_match(patterns->set, key, length, &match);

    CHECK(result == (member ? PATTERN_MEMBER : PATTERN_RECORD));
    CHECK(match.space == space && match.id == id);
}

static void look_up_all(const struct patterns *patterns, const char *at, const char *end)
{
    static const uint64_t ids[] = {0, 7, 10, 123456789012345678, PATTERN_ID_MAX};

    for (uint32_t i = 0; i < patterns->count; i++) {
        for (size_t k = 0; k < LENGTH(ids); k++) {
            look_up_own(patterns, i, ids[k]);
        }
    }
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline != NULL ? newline : end;

        look_up(patterns, at, (size_t)(stop - at));
        at = newline != NULL ? newline + 1 : end;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = memory_zalloc(size + 1);
    const char *at = text;
    const char *end = text + size;
    struct patterns patterns = {.count = 0};

    memcpy(text, data, size);
    text[size] = '\n';
    while (at < end && *at != '\n') {
        const char *newline = memchr(at, '\n', (size_t)(end + 1 - at));

        take(&patterns, at, (size_t)(newline - at));
        at = newline + 1;
    }
    if (patterns.count > 0 && build(&patterns)) {
        look_up_all(&patterns, at < end ? at + 1 : end, end);
        pattern_set_destroy(patterns.set);
    }
    for (size_t i = 0; i < patterns.count; i++) {
        free(patterns.texts[i]);
    }
    free(text);
    return 0;
}
