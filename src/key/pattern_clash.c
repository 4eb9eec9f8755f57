/*
 * pattern_clash.c: finds a key that two spaces would own.
 *
 * If there is, the shorter leading text begins the longer one. Call its space A, the other B. A key
 * of B is prefix, id, suffix and the end (tail or member); only the id and the end are free, and
 * what A asks of them is written in A's own text:
 *  - B's id lies inside A's id (2 will do: if any digit keeps A's id below 2^63, which ends in 7,
 *    then 2 does), inside A's end (any will do), or against digits in A's suffix (then it is
 * those);
 *  - B's end must supply what of A's suffix is left, and then whatever both allow: nothing, or '.',
 *    or a byte of a member.
 * So a few candidates decide, and each is tried on both spaces.
 */
#include "key/pattern_tree.h"

#include "base/check.h"

#include <string.h>

#define CLASH_KEY_BYTES 512 /* two patterns and an id: more than a key may have */

struct candidate {
    char text[CLASH_KEY_BYTES];
    size_t length;
};

static void pattern_clash_add(struct candidate *key, const char *bytes, size_t length)
{
    CHECK(length <= sizeof(key->text) - key->length);
    memcpy(key->text + key->length, bytes, length);
    key->length += length;
}

static size_t digits_at(const char *text, size_t length, size_t from)
{
    size_t at = from;
    while (at < length && text[at] >= '0' && text[at] <= '9') {
        at++;
    }
    return at - from;
}

/* Bytes of A's suffix that the key, read by A, has not reached yet. */
static size_t missing_suffix(const struct pattern_space *a, const struct candidate *key)
{
    size_t id_at = a->prefix.length;
    size_t behind_id = id_at + digits_at(key->text, key->length, id_at);
    size_t there = key->length - behind_id;
    return there < a->suffix.length ? a->suffix.length - there : 0;
}

/* Tries the ends that could suit both, after a key that goes to B's suffix. */
static bool try_ends(const struct pattern_space *a, const struct pattern_space *b,
                     struct candidate *key)
{
    static const char *const ends[] = {"", "u", ".", ".u"};
    size_t missing = missing_suffix(a, key);
    pattern_clash_add(key, a->suffix.bytes + a->suffix.length - missing, missing);
    size_t length = key->length;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        key->length = length;
        pattern_clash_add(key, ends[i], strlen(ends[i]));
        if (pattern_space_owns(a, key->text, key->length) &&
            pattern_space_owns(b, key->text, key->length)) {
            return true;
        }
    }
    return false;
}

static bool try_id(const struct pattern_space *a, const struct pattern_space *b, const char *id,
                   size_t id_length, struct candidate *key)
{
    key->length = 0;
    pattern_clash_add(key, b->prefix.bytes, b->prefix.length);
    pattern_clash_add(key, id, id_length);
    pattern_clash_add(key, b->suffix.bytes, b->suffix.length);
    return try_ends(a, b, key);
}

/* The digits of A's suffix that would stand where B's id does. */
static size_t forced_id(const struct pattern_space *a, const struct pattern_space *b,
                        const char **id)
{
    size_t id_at = a->prefix.length;
    size_t behind_id = id_at + digits_at(b->prefix.bytes, b->prefix.length, id_at);
    size_t reached = b->prefix.length - behind_id;
    *id = a->suffix.bytes + reached;
    return reached < a->suffix.length ? digits_at(a->suffix.bytes, a->suffix.length, reached) : 0;
}

bool pattern_spaces_clash(const struct pattern_space *a, const struct pattern_space *b,
                          char text[PATTERN_KEY_MAX + 1])
{
    if (a->prefix.length > b->prefix.length) {
        return pattern_spaces_clash(b, a, text);
    }
    if (memcmp(a->prefix.bytes, b->prefix.bytes, a->prefix.length) != 0) {
        return false;
    }
    struct candidate key;
    const char *forced;
    size_t forced_length = forced_id(a, b, &forced);
    if (!try_id(a, b, "2", 1, &key) &&
        !(forced_length > 0 && try_id(a, b, forced, forced_length, &key))) {
        return false;
    }
    memcpy(text, key.text, key.length);
    text[key.length] = '\0';
    return true;
}
