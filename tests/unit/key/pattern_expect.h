/*
 * pattern_expect.h: what the pattern tests share: an expected match and its comparison.
 */
#ifndef ROLLCALL_TESTS_UNIT_KEY_PATTERN_EXPECT_H
#define ROLLCALL_TESTS_UNIT_KEY_PATTERN_EXPECT_H

#include "key/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_ROOM     1024
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { FEED, LIKED, COUNT_CONTENT, BARE, POST, POST_MEMBER, WRAPPED, FEED_HOT };

/* A set with every shape of pattern, by the numbers above. */
static const char *const spaces[] = {
    "feed:{id}", "liked:{id}:{member}", "count_content_{id}", "{id}",
    "post:{id}", "post:{id}:{member}",  "v1/{id}/n",          "feed:hot:{id}",
};

struct expected {
    enum pattern_result result;
    uint32_t space;
    uint64_t id;
    char rest[KEY_ROOM];
};

/* A set that must not be refused. */
static inline struct pattern_set *build(const char *const *texts, size_t n)
{
    char error[PATTERN_ERROR_MAX] = "";
    uint32_t first;
    uint32_t second;
    struct pattern_set *set = pattern_set_create(texts, n, error, &first, &second);
    if (set == NULL) {
        fail_msg("set refused: %s", error);
    }
    return set;
}

typedef enum pattern_result match_fn(const struct pattern_set *set, const char *key, size_t length,
                                     struct pattern_match *match);

/* Matches a copy of exactly that length, so that a sanitizer sees a read beyond it. */
static inline void assert_match_by(match_fn *match_by, const struct pattern_set *set,
                                   const char *key, size_t length, struct pattern_match *match,
                                   const struct expected *expected)
{
    char *copy = malloc(length);
    assert_non_null(copy);
    memcpy(copy, key, length);
    enum pattern_result result = match_by(set, copy, length, match);
    bool same = result == expected->result;
    if (result != PATTERN_NONE) {
        same = same && match->space == expected->space;
    }
    if (same && (result == PATTERN_RECORD || result == PATTERN_MEMBER)) {
        same = match->id == expected->id && match->rest_length == strlen(expected->rest) &&
               memcmp(match->rest, expected->rest, match->rest_length) == 0;
    }
    if (!same) {
        fail_msg("key %.*s: result %d space %u id %" PRIu64 ", expected %d %u %" PRIu64 " '%s'",
                 (int)length, key, (int)result, match->space, match->id, (int)expected->result,
                 expected->space, expected->id, expected->rest);
    }
    free(copy);
}

static inline void assert_match(const struct pattern_set *set, const char *key, size_t length,
                                const struct expected *expected)
{
    struct pattern_match match;
    memset(&match, 0x5a, sizeof(match));
    assert_match_by(pattern_match, set, key, length, &match, expected);
}

#endif
