/*
 * pattern_similar.c: keys that are of no space and look as if they were meant for one: their text
 * before the first ':' or '.' is that of a space, or differs from it by one letter more, less or
 * other, or by two neighbours that changed places.
 */
#include "key/pattern.h"

#include "key/pattern_tree.h"

#include <string.h>

#define SIMILAR_NAME_MIN 3 /* letters: of a shorter name most short words differ by one */

/* Bytes before the first ':' or '.', or all of them. */
static size_t similar_name_length(const char *bytes, size_t length)
{
    size_t n = 0;
    while (n < length && bytes[n] != ':' && bytes[n] != '.') {
        n++;
    }
    return n;
}

static bool similar_is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Returns whether one letter differs, or two neighbours changed places, or nothing differs. */
static bool near_same_length(const char *a, const char *b, size_t length)
{
    size_t i = 0;
    while (i < length && a[i] == b[i]) {
        i++;
    }
    if (i == length) {
        return true;
    }
    bool swapped = i + 1 < length && a[i] == b[i + 1] && a[i + 1] == b[i];
    size_t from = i + (swapped ? 2 : 1);
    return memcmp(a + from, b + from, length - from) == 0;
}

/* Returns whether `longer` is the other text with one letter more. */
static bool near_one_more(const char *longer, const char *shorter, size_t length)
{
    size_t i = 0;
    while (i < length && longer[i] == shorter[i]) {
        i++;
    }
    return memcmp(longer + i + 1, shorter + i, length - i) == 0;
}

static bool similar_is_near(const char *a, size_t a_length, const char *b, size_t b_length)
{
    if (a_length == b_length) {
        return near_same_length(a, b, a_length);
    }
    if (a_length == b_length + 1) {
        return near_one_more(a, b, b_length);
    }
    return b_length == a_length + 1 && near_one_more(b, a, a_length);
}

bool pattern_similar(const struct pattern_set *set, const char *key, size_t length, uint32_t *space)
{
    size_t brace = key[0] == '{';
    size_t name = similar_name_length(key + brace, length - brace);
    if (brace + name == length) {
        return false; /* neither ':' nor '.' */
    }
    size_t letters = name; /* where the id follows the text at once */
    while (letters > 0 && similar_is_digit(key[brace + letters - 1])) {
        letters--;
    }
    for (uint32_t i = 0; i < set->spaces_count; i++) {
        const struct pattern_text *prefix = &set->spaces[i].prefix;
        size_t own = similar_name_length(prefix->bytes, prefix->length);
        size_t other = own == prefix->length ? letters : name;
        if (own >= SIMILAR_NAME_MIN && similar_is_near(prefix->bytes, own, key + brace, other)) {
            *space = i;
            return true;
        }
    }
    return false;
}
