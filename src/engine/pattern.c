/*
 * pattern.c: which space, id and rest a key names.
 *
 * First the key is read as it is. Only if that fails and it holds a brace or |#| is it read once
 * more with those taken out. The order does no harm: fixed text holds neither, so a key that reads
 * plainly has them in its tail or member, where they stay.
 */
#include "engine/pattern.h"

#include "base/check.h"
#include "base/num.h"
#include "engine/pattern_tree.h"

#include <string.h>

#define ID_DIGITS_MAX 19
#define HASH_MARK     "|#|"
#define HASH_LENGTH   3
#define NOWHERE       SIZE_MAX

static bool is_digit(char byte)
{
    return (unsigned char)byte - (unsigned)'0' <= 9;
}

/* The id at the start of text; returns its digits, 0 if there is none that is allowed. */
static size_t read_id(const char *text, size_t length, uint64_t *id)
{
    size_t digits = 0;
    while (digits < length && is_digit(text[digits])) {
        digits++;
    }
    if (digits == 0 || digits > ID_DIGITS_MAX || (text[0] == '0' && digits > 1)) {
        return 0;
    }
    return num_parse(text, digits, id) && *id <= PATTERN_ID_MAX ? digits : 0;
}

/* Reads what stands behind the id. *end becomes the offset of the tail or member. */
static bool read_suffix(const struct pattern_space *space, const char *key, size_t length,
                        size_t from, size_t *end)
{
    size_t suffix = space->suffix_length;
    if (suffix > 0 && (length - from < suffix || memcmp(key + from, space->suffix, suffix) != 0)) {
        return false;
    }
    *end = from + suffix;
    return space->with_member || *end == length || key[*end] == '.';
}

bool pattern_space_owns(const struct pattern_space *space, const char *key, size_t length)
{
    size_t prefix = space->prefix_length;
    if (length > PATTERN_KEY_MAX || length < prefix || memcmp(key, space->prefix, prefix) != 0) {
        return false;
    }
    uint64_t id;
    size_t end;
    size_t digits = read_id(key + prefix, length - prefix, &id);
    return digits > 0 && read_suffix(space, key, length, prefix + digits, &end) &&
           (!space->with_member || end < length);
}

/* The deepest terminal whose text the key begins with. */
static uint8_t find_terminal(const struct pattern_set *set, const char *key, size_t length)
{
    const struct pattern_node *node = &set->nodes[0];
    size_t at = 0;
    while (at < length) {
        uint8_t child = node->child[(unsigned char)key[at]];
        if (child == 0) {
            break;
        }
        const struct pattern_node *next = &set->nodes[child];
        size_t text = next->text_length;
        if (length - at < text || memcmp(key + at, next->text, text) != 0) {
            break;
        }
        at += text;
        node = next;
    }
    return node->terminal;
}

/* Tries the spaces of one terminal. Returns PATTERN_NONE if none of them fits. */
static enum pattern_result match_terminal(const struct pattern_set *set,
                                          const struct pattern_node *node, const char *key,
                                          size_t length, struct pattern_match *match, size_t *end)
{
    size_t depth = node->depth;
    size_t digits = read_id(key + depth, length - depth, &match->id);
    if (digits == 0) {
        return PATTERN_NONE;
    }
    for (uint8_t i = node->first_space; i != PATTERN_NO_SPACE; i = set->spaces[i].next) {
        const struct pattern_space *space = &set->spaces[i];
        if (read_suffix(space, key, length, depth + digits, end)) {
            match->space = i;
            return space->with_member ? PATTERN_MEMBER : PATTERN_RECORD;
        }
    }
    return PATTERN_NONE;
}

/*
 * Reads key up to its tail or member, which begins at *end; a member may still turn out empty. At
 * most one space fits (pattern_set_create saw to it), though not always the deepest.
 */
static enum pattern_result match_front(const struct pattern_set *set, const char *key,
                                       size_t length, struct pattern_match *match, size_t *end)
{
    uint8_t deepest = find_terminal(set, key, length);
    for (uint8_t i = deepest; i != PATTERN_NO_NODE; i = set->nodes[i].above) {
        enum pattern_result result = match_terminal(set, &set->nodes[i], key, length, match, end);
        if (LIKELY(result != PATTERN_NONE)) {
            return result;
        }
    }
    /* A space with no leading text claims what begins like an id, not everything. */
    if (deepest == PATTERN_NO_NODE || (set->nodes[deepest].depth == 0 && !is_digit(key[0]))) {
        return PATTERN_NONE;
    }
    match->space = set->nodes[deepest].first_space;
    return PATTERN_BAD;
}

/* A key without its marks, and where everything was. */
struct stripped {
    char *text; /* into the match's scratch */
    size_t length;
    size_t open;                   /* offset of the first brace in the key, or NOWHERE */
    size_t close;                  /* of the one that closes it, or NOWHERE */
    uint8_t from[PATTERN_KEY_MAX]; /* offset in the key of each byte of text */
};

static void strip(struct stripped *stripped, const char *key, size_t length)
{
    const char *hash = memmem(key, length, HASH_MARK, HASH_LENGTH);
    size_t hash_at = hash == NULL ? NOWHERE : (size_t)(hash - key);
    stripped->length = 0;
    stripped->open = NOWHERE;
    stripped->close = NOWHERE;
    for (size_t i = 0; i < length; i++) {
        bool brace = key[i] == '{' || key[i] == '}';
        if (i == hash_at) {
            i += HASH_LENGTH - 1;
        } else if (brace && stripped->open == NOWHERE) {
            stripped->open = i; /* one that is not an opening brace is never closed */
        } else if (key[i] == '}' && stripped->close == NOWHERE && key[stripped->open] == '{') {
            stripped->close = i;
        } else {
            stripped->text[stripped->length] = key[i];
            stripped->from[stripped->length++] = (uint8_t)i;
        }
    }
}

/* The second reading. A member is never stripped: it comes from the key itself. */
static enum pattern_result match_stripped(const struct pattern_set *set, const char *key,
                                          size_t length, struct pattern_match *match)
{
    struct stripped stripped = {.text = match->scratch};
    strip(&stripped, key, length);
    if (stripped.length == 0) {
        return PATTERN_NONE;
    }
    size_t end;
    enum pattern_result result = match_front(set, stripped.text, stripped.length, match, &end);
    if (result != PATTERN_RECORD && result != PATTERN_MEMBER) {
        return result;
    }
    size_t front = result == PATTERN_MEMBER ? stripped.from[end - 1] + (size_t)1 : length;
    if (stripped.open < front && stripped.close >= front) {
        return PATTERN_BAD; /* a brace without its fellow */
    }
    if (result == PATTERN_RECORD) {
        match->rest = stripped.text + end;
        match->rest_length = (uint32_t)(stripped.length - end);
        return result;
    }
    match->rest = key + front;
    match->rest_length = (uint32_t)(length - front);
    return front < length ? result : PATTERN_BAD;
}

static bool has_marks(const char *key, size_t length)
{
    return memchr(key, '{', length) != NULL || memchr(key, '}', length) != NULL ||
           memmem(key, length, HASH_MARK, HASH_LENGTH) != NULL;
}

enum pattern_result pattern_match(const struct pattern_set *set, const char *key, size_t length,
                                  struct pattern_match *match)
{
    CHECK(length > 0 && length <= PATTERN_KEY_MAX);
    size_t end;
    enum pattern_result result = match_front(set, key, length, match, &end);
    if (LIKELY(result == PATTERN_RECORD || result == PATTERN_MEMBER)) {
        match->rest = key + end;
        match->rest_length = (uint32_t)(length - end);
        return result == PATTERN_MEMBER && end == length ? PATTERN_BAD : result;
    }
    return UNLIKELY(has_marks(key, length)) ? match_stripped(set, key, length, match) : result;
}
