/*
 * pattern.c: which space, id and rest a key names.
 *
 * First the key is read as it is. Only if that fails and it holds a brace or |#| is it read once
 * more with those taken out. The order does no harm: fixed text holds neither, so a key that reads
 * plainly has them in its tail or member, where they stay.
 */
#include "key/pattern.h"

#include "base/check.h"
#include "base/digits.h"
#include "base/num.h"
#include "base/text_word.h"
#include "key/pattern_tree.h"

#include <string.h>

#define ID_DIGITS_MAX 19
#define HASH_MARK     "|#|"
#define HASH_LENGTH   3
#define NOWHERE       SIZE_MAX

static bool is_digit(char byte)
{
    return (unsigned char)byte - (unsigned)'0' <= 9;
}

static inline bool begins_with(const char *at, const char *end, const struct pattern_text *text)
{
    size_t length = (size_t)(end - at);
    return length >= text->length && ((text_word(at, length) ^ text->head) & text->mask) == 0 &&
           (LIKELY(text->length <= TEXT_WORD_BYTES) || memcmp(at, text->bytes, text->length) == 0);
}

/* The id [at, end) begins with; returns its digits, 0 if there is none that is allowed. */
static inline size_t read_id(const char *at, const char *end, uint64_t *id)
{
    size_t length = (size_t)(end - at);
    size_t digits = num_read(at, length, id);
    if (digits < 2) {
        return digits;
    }
    bool too_large = digits == ID_DIGITS_MAX &&
                     (*id > PATTERN_ID_MAX || (length > digits && is_digit(at[digits])));
    return at[0] == '0' || too_large ? 0 : digits;
}

/* Reads what stands after the id. Returns the tail or member, NULL if the space's suffix is not
 * there. */
static inline const char *read_suffix(const struct pattern_space *space, const char *at,
                                      const char *end)
{
    size_t suffix = space->suffix.length;
    if (LIKELY(suffix == 1)) { /* a ':' before the member, as a rule */
        if (at == end || *at != space->suffix.bytes[0]) {
            return NULL;
        }
    } else if (suffix > 0 && !begins_with(at, end, &space->suffix)) {
        return NULL;
    }
    at += suffix;
    return space->with_member || at == end || *at == '.' ? at : NULL;
}

/* Returns where the front of a key of this space ends; NULL: as it stands it is no key of this
 * space. */
static inline const char *read_front(const struct pattern_space *space, const char *key,
                                     const char *end, uint64_t *id, size_t *digits)
{
    if (!begins_with(key, end, &space->prefix)) {
        return NULL;
    }
    const char *at = key + space->prefix.length;
    *digits = read_id(at, end, id);
    return *digits > 0 ? read_suffix(space, at + *digits, end) : NULL;
}

bool pattern_space_owns(const struct pattern_space *space, const char *key, size_t length)
{
    uint64_t id;
    size_t digits;
    const char *end = key + length;
    const char *rest = length <= PATTERN_KEY_MAX ? read_front(space, key, end, &id, &digits) : NULL;
    return rest != NULL && (!space->with_member || rest < end);
}

/* The deepest terminal whose text the key begins with. */
static inline uint8_t find_terminal(const struct pattern_set *set, const char *key, const char *end)
{
    const struct pattern_node *node = &set->nodes[0];
    while (key < end) {
        uint8_t child = node->child[(unsigned char)*key];
        const struct pattern_node *next = &set->nodes[child];
        if (child == 0 || !begins_with(key, end, &next->text)) {
            break;
        }
        key += next->text.length;
        node = next;
    }
    return node->terminal;
}

/* Tries the spaces of one terminal. Returns PATTERN_NONE if none of them fits. */
static inline enum pattern_result match_terminal(const struct pattern_set *set,
                                                 const struct pattern_node *node, const char *key,
                                                 const char *end, struct pattern_match *match)
{
    const char *at = key + node->depth;
    size_t digits = read_id(at, end, &match->id);
    if (digits == 0) {
        return PATTERN_NONE;
    }
    for (uint8_t i = node->first_space; i != PATTERN_NO_SPACE; i = set->spaces[i].next) {
        const struct pattern_space *space = &set->spaces[i];
        const char *rest = read_suffix(space, at + digits, end);
        if (LIKELY(rest != NULL)) {
            match->space = i;
            match->rest = rest;
            match->rest_length = (uint32_t)(end - rest);
            return space->with_member ? PATTERN_MEMBER : PATTERN_RECORD;
        }
    }
    return PATTERN_NONE;
}

/*
 * Reads a key up to its tail or member; a member may still turn out empty. At most one space fits
 * (pattern_set_create saw to it), though not always the deepest.
 */
__attribute__((always_inline)) static inline enum pattern_result
match_front(const struct pattern_set *set, const char *key, size_t length,
            struct pattern_match *match)
{
    const char *end = key + length;
    uint8_t deepest = find_terminal(set, key, end);
    for (uint8_t i = deepest; i != PATTERN_NO_NODE; i = set->nodes[i].above) {
        enum pattern_result result = match_terminal(set, &set->nodes[i], key, end, match);
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
__attribute__((cold)) static enum pattern_result match_stripped(const struct pattern_set *set,
                                                                const char *key, size_t length,
                                                                struct pattern_match *match)
{
    struct stripped stripped = {.text = match->scratch};
    strip(&stripped, key, length);
    if (stripped.length == 0) {
        return PATTERN_NONE;
    }
    enum pattern_result result = match_front(set, stripped.text, stripped.length, match);
    if (result != PATTERN_RECORD && result != PATTERN_MEMBER) {
        return result;
    }
    size_t end = (size_t)(match->rest - stripped.text);
    size_t front = result == PATTERN_MEMBER ? stripped.from[end - 1] + (size_t)1 : length;
    if (stripped.open < front && stripped.close >= front) {
        return PATTERN_BAD; /* a brace without its fellow */
    }
    if (result == PATTERN_RECORD) {
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

/* Notes the head of a key whose digits, the id in match, end there. */
static void note_head(const struct pattern_set *set, const struct pattern_space *space,
                      const char *key, size_t digits_end, struct pattern_match *match)
{
    struct pattern_head *head = &match->head;
    uint64_t first_digits = match->id / DIGITS_SIXTEEN;
    if (first_digits == 0 || digits_end - 16 > PATTERN_HEAD_MAX || space->suffix.length > 1) {
        return;
    }
    head->set = set->number.number;
    head->length = (uint32_t)digits_end - 16;
    head->with_member = space->with_member;
    head->with_suffix = space->suffix.length > 0;
    head->suffix = space->suffix.bytes[0];
    head->id = first_digits * DIGITS_SIXTEEN;
    for (size_t i = 0; i < PATTERN_HEAD_MAX / TEXT_WORD_BYTES; i++) {
        size_t begin = i * TEXT_WORD_BYTES;
        head->mask[i] = text_word_mask(head->length > begin ? head->length - begin : 0);
        head->text[i] = text_word(key + begin, TEXT_WORD_BYTES) & head->mask[i];
    }
}

/* It is of the space before, as a rule. */
enum pattern_result pattern_match_anew(const struct pattern_set *set, const char *key,
                                       size_t length, struct pattern_match *match)
{
    const char *end = key + length;
    match->head.set = 0;
    if (match->space < set->spaces_count) {
        const struct pattern_space *space = &set->spaces[match->space];
        size_t digits = 0;
        const char *rest = read_front(space, key, end, &match->id, &digits);
        if (rest != NULL && (!space->with_member || rest < end)) {
            note_head(set, space, key, space->prefix.length + digits, match);
            match->rest = rest;
            match->rest_length = (uint32_t)(end - rest);
            return space->with_member ? PATTERN_MEMBER : PATTERN_RECORD;
        }
    }
    return pattern_match(set, key, length, match);
}

enum pattern_result pattern_match(const struct pattern_set *set, const char *key, size_t length,
                                  struct pattern_match *match)
{
    CHECK(length > 0 && length <= PATTERN_KEY_MAX);
    enum pattern_result result = match_front(set, key, length, match);
    if (LIKELY(result == PATTERN_RECORD || result == PATTERN_MEMBER)) {
        return result == PATTERN_MEMBER && match->rest_length == 0 ? PATTERN_BAD : result;
    }
    return UNLIKELY(has_marks(key, length)) ? match_stripped(set, key, length, match) : result;
}
