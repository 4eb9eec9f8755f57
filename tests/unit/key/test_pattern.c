/* test_pattern.c: every form of protocol.md "Keys", and the refusals of patterns and of sets. */
#include "tests/unit/key/pattern_expect.h"

/* --- every form ----------------------------------------------------------------------------- */

static const struct form {
    const char *key;
    enum pattern_result result;
    uint32_t space;
    uint64_t id;
    const char *rest;
} forms[] = {
    {"feed:123.like", PATTERN_RECORD, FEED, 123, ".like"},
    {"feed:123", PATTERN_RECORD, FEED, 123, ""},
    {"feed:123.", PATTERN_RECORD, FEED, 123, "."},
    {"{feed:123}.like", PATTERN_RECORD, FEED, 123, ".like"},
    {"{feed:123}", PATTERN_RECORD, FEED, 123, ""},
    {"feed:{123}.like", PATTERN_RECORD, FEED, 123, ".like"},
    {"{feed:123.like}", PATTERN_RECORD, FEED, 123, ".like"},
    {"feed:{123}", PATTERN_RECORD, FEED, 123, ""},
    {"{feed}:123.like", PATTERN_RECORD, FEED, 123, ".like"},
    {"feed:123|#|.like", PATTERN_RECORD, FEED, 123, ".like"},
    {"feed:123|#|", PATTERN_RECORD, FEED, 123, ""},
    {"{feed:123}|#|.like", PATTERN_RECORD, FEED, 123, ".like"},
    {"{feed:123|#|}.like", PATTERN_RECORD, FEED, 123, ".like"},
    {"feed:123|#|.li|#|ke", PATTERN_RECORD, FEED, 123, ".li|#|ke"},
    {"{feed:123}.{like}", PATTERN_RECORD, FEED, 123, ".{like}"},
    {"feed:123.{like}", PATTERN_RECORD, FEED, 123, ".{like}"},
    {"feed:123.a\x01\xff", PATTERN_RECORD, FEED, 123, ".a\x01\xff"},
    {"feed:0", PATTERN_RECORD, FEED, 0, ""},
    {"feed:9223372036854775807", PATTERN_RECORD, FEED, PATTERN_ID_MAX, ""},
    {"feed:9223372036854775808", PATTERN_BAD, FEED, 0, ""},
    {"feed:18446744073709551617", PATTERN_BAD, FEED, 0, ""},
    {"feed:01", PATTERN_BAD, FEED, 0, ""},
    {"feed:00", PATTERN_BAD, FEED, 0, ""},
    {"feed:-1", PATTERN_BAD, FEED, 0, ""},
    {"feed:", PATTERN_BAD, FEED, 0, ""},
    {"feed:x", PATTERN_BAD, FEED, 0, ""},
    {"feed:1x", PATTERN_BAD, FEED, 0, ""},
    {"feed:1:u", PATTERN_BAD, FEED, 0, ""},
    {"feed:1\x01", PATTERN_BAD, FEED, 0, ""},
    {"feed:\xc3\xa9", PATTERN_BAD, FEED, 0, ""},
    {"feed:1 ", PATTERN_BAD, FEED, 0, ""},
    {"{feed:123", PATTERN_BAD, FEED, 0, ""},
    {"{feed:123.like", PATTERN_BAD, FEED, 0, ""},
    {"feed:123}.like", PATTERN_BAD, FEED, 0, ""},
    {"}feed:123{.like", PATTERN_BAD, FEED, 0, ""},
    {"}feed:123", PATTERN_BAD, FEED, 0, ""},
    {"}feed:123}.like", PATTERN_BAD, FEED, 0, ""},
    {"{{feed:123}}", PATTERN_NONE, 0, 0, ""},
    {"feed:|#|1|#|", PATTERN_BAD, FEED, 0, ""},
    {"fee", PATTERN_NONE, 0, 0, ""},
    {"feed", PATTERN_NONE, 0, 0, ""},
    {"Feed:1", PATTERN_NONE, 0, 0, ""},
    {"other:1", PATTERN_NONE, 0, 0, ""},
    {"{other:1}", PATTERN_NONE, 0, 0, ""},
    {"{other:1", PATTERN_NONE, 0, 0, ""},
    {"}other:1", PATTERN_NONE, 0, 0, ""},
    {"{}", PATTERN_NONE, 0, 0, ""},
    {"{", PATTERN_NONE, 0, 0, ""},
    {"|#|", PATTERN_NONE, 0, 0, ""},
    {"\x80", PATTERN_NONE, 0, 0, ""},
    {"liked:123:u9", PATTERN_MEMBER, LIKED, 123, "u9"},
    {"{liked:123}:u9", PATTERN_MEMBER, LIKED, 123, "u9"},
    {"liked:{123}:u9", PATTERN_MEMBER, LIKED, 123, "u9"},
    {"liked:123|#|:u9", PATTERN_MEMBER, LIKED, 123, "u9"},
    {"{liked:123}|#|:u9", PATTERN_MEMBER, LIKED, 123, "u9"},
    {"liked:123{:}u9", PATTERN_BAD, LIKED, 0, ""},
    {"liked:123:{u9}", PATTERN_MEMBER, LIKED, 123, "{u9}"},
    {"liked:123:u|#|9", PATTERN_MEMBER, LIKED, 123, "u|#|9"},
    {"{liked:123}:{u9}|#|", PATTERN_MEMBER, LIKED, 123, "{u9}|#|"},
    {"liked:123|#|:|#|{", PATTERN_MEMBER, LIKED, 123, "|#|{"},
    {"{liked:123}:|#|", PATTERN_MEMBER, LIKED, 123, "|#|"},
    {"liked:{123}:}", PATTERN_MEMBER, LIKED, 123, "}"},
    {"liked:123::", PATTERN_MEMBER, LIKED, 123, ":"},
    {"liked:123:.", PATTERN_MEMBER, LIKED, 123, "."},
    {"liked:123:4", PATTERN_MEMBER, LIKED, 123, "4"},
    {"liked:123:\xff\x01 ", PATTERN_MEMBER, LIKED, 123, "\xff\x01 "},
    {"{liked:123:u9}", PATTERN_BAD, LIKED, 0, ""},
    {"{liked:123:}u9", PATTERN_BAD, LIKED, 0, ""},
    {"liked:123:", PATTERN_BAD, LIKED, 0, ""},
    {"{liked:123}:", PATTERN_BAD, LIKED, 0, ""},
    {"liked:123", PATTERN_BAD, LIKED, 0, ""},
    {"liked:123.x", PATTERN_BAD, LIKED, 0, ""},
    {"liked:01:u", PATTERN_BAD, LIKED, 0, ""},
    {"count_content_123", PATTERN_RECORD, COUNT_CONTENT, 123, ""},
    {"count_content_123.like", PATTERN_RECORD, COUNT_CONTENT, 123, ".like"},
    {"count_content", PATTERN_NONE, 0, 0, ""},
    {"123", PATTERN_RECORD, BARE, 123, ""},
    {"123.like", PATTERN_RECORD, BARE, 123, ".like"},
    {"{123}.like", PATTERN_RECORD, BARE, 123, ".like"},
    {"123|#|.like", PATTERN_RECORD, BARE, 123, ".like"},
    {"|#|123", PATTERN_RECORD, BARE, 123, ""},
    {"0123", PATTERN_BAD, BARE, 0, ""},
    {"12x", PATTERN_BAD, BARE, 0, ""},
    {"{12x", PATTERN_BAD, BARE, 0, ""},
    {"{12", PATTERN_BAD, BARE, 0, ""},
    {".like", PATTERN_NONE, 0, 0, ""},
    {"x12", PATTERN_NONE, 0, 0, ""},
    {"{x12}", PATTERN_NONE, 0, 0, ""},
    {"post:1.like", PATTERN_RECORD, POST, 1, ".like"},
    {"post:1", PATTERN_RECORD, POST, 1, ""},
    {"post:1:u", PATTERN_MEMBER, POST_MEMBER, 1, "u"},
    {"{post:1}:u", PATTERN_MEMBER, POST_MEMBER, 1, "u"},
    {"{post:1}.like", PATTERN_RECORD, POST, 1, ".like"},
    {"post:1:", PATTERN_BAD, POST_MEMBER, 0, ""},
    {"post:1-", PATTERN_BAD, POST, 0, ""},
    {"v1/77/n", PATTERN_RECORD, WRAPPED, 77, ""},
    {"v1/77/n.x", PATTERN_RECORD, WRAPPED, 77, ".x"},
    {"v1/{77}/n.x", PATTERN_RECORD, WRAPPED, 77, ".x"},
    {"v1/77/nn", PATTERN_BAD, WRAPPED, 0, ""},
    {"v1/77/", PATTERN_BAD, WRAPPED, 0, ""},
    {"v1/77.x", PATTERN_BAD, WRAPPED, 0, ""},
    {"feed:hot:9.x", PATTERN_RECORD, FEED_HOT, 9, ".x"},
    {"feed:hot:", PATTERN_BAD, FEED_HOT, 0, ""},
    {"feed:hot9", PATTERN_BAD, FEED, 0, ""},
};

static void test_forms(void **unused)
{
    (void)unused;
    struct pattern_set *set = build(spaces, COUNT(spaces));
    for (size_t i = 0; i < COUNT(forms); i++) {
        struct expected expected = {forms[i].result, forms[i].space, forms[i].id, ""};
        snprintf(expected.rest, sizeof(expected.rest), "%s", forms[i].rest);
        assert_match(set, forms[i].key, strlen(forms[i].key), &expected);
    }
    pattern_set_destroy(set);
    pattern_set_destroy(NULL);
}

static void test_long_keys(void **unused)
{
    (void)unused;
    struct pattern_set *set = build(spaces, COUNT(spaces));
    char key[PATTERN_KEY_MAX + 1];
    memset(key, 'm', sizeof(key));
    memcpy(key, "{liked:1}:", 10);
    struct expected expected = {PATTERN_MEMBER, LIKED, 1, ""};
    memset(expected.rest, 'm', PATTERN_KEY_MAX - 10);
    assert_match(set, key, PATTERN_KEY_MAX, &expected);
    memset(key, '{', sizeof(key));
    expected.result = PATTERN_NONE;
    assert_match(set, key, PATTERN_KEY_MAX, &expected);
    memset(key, '7', sizeof(key));
    expected = (struct expected){.result = PATTERN_BAD, .space = BARE};
    assert_match(set, key, PATTERN_KEY_MAX, &expected);
    memcpy(key, "feed:1.\0x", 9);
    struct pattern_match match;
    assert_int_equal(pattern_match(set, key, 9, &match), PATTERN_RECORD);
    assert_int_equal(match.rest_length, 3);
    assert_memory_equal(match.rest, ".\0x", 3);
    pattern_set_destroy(set);
}

/* Fixed text of every length up to what is compared as more than a word, with each byte wrong. */
static void test_fixed_texts(void **unused)
{
    (void)unused;
    for (int length = 1; length <= 20; length++) {
        char texts[2][64];
        static const char letters[] = "abcdefghijklmnopqrst";
        snprintf(texts[0], sizeof(texts[0]), "%.*s{id}", length, letters);
        snprintf(texts[1], sizeof(texts[1]), "{id}%.*s", length, letters);
        const char *const pointers[] = {texts[0], texts[1]};
        struct pattern_set *set = build(pointers, COUNT(pointers));
        for (int wrong = -1; wrong < length; wrong++) {
            char text[32];
            char key[KEY_ROOM];
            snprintf(text, sizeof(text), "%.*s", length, letters);
            if (wrong >= 0) {
                text[wrong] = '_';
            }
            struct expected expected = {wrong < 0 ? PATTERN_RECORD : PATTERN_NONE, 0, 45, ".x"};
            snprintf(key, sizeof(key), "%s45.x", text);
            assert_match(set, key, strlen(key), &expected);
            snprintf(key, sizeof(key), "45%s.x", text);
            expected.result = wrong < 0 ? PATTERN_RECORD : PATTERN_BAD;
            expected.space = 1;
            assert_match(set, key, strlen(key), &expected);
            snprintf(key, sizeof(key), "45%.*s", length - 1, text);
            expected.result = PATTERN_BAD;
            assert_match(set, key, strlen(key), &expected);
        }
        pattern_set_destroy(set);
    }
}

/* Where the deepest fixed text has no id behind it a shorter one may. */
static void test_shorter_text(void **unused)
{
    (void)unused;
    static const char *const texts[] = {"a{id}:", "a1:{id}"};
    struct pattern_set *set = build(texts, COUNT(texts));
    struct expected expected = {PATTERN_RECORD, 0, 1, ""};
    assert_match(set, "a1:", 3, &expected);
    expected = (struct expected){PATTERN_RECORD, 1, 2, ""};
    assert_match(set, "a1:2", 4, &expected);
    expected = (struct expected){PATTERN_BAD, 1, 0, ""};
    assert_match(set, "a1:x", 4, &expected);
    pattern_set_destroy(set);
}

/* What a key of one set began with says nothing of a set that differs in some text. */
static void test_another_set(void **unused)
{
    (void)unused;
    static const char *const texts[] = {"feed:{id}", "x{id}"};
    static const char *const others[] = {"food:{id}", "x{id}"};
    static const char key[] = "feed:9223372036854775807";
    struct pattern_set *set = build(texts, COUNT(texts)), *other = build(others, COUNT(others));
    struct pattern_match match = {.space = 0};
    struct expected expected = {PATTERN_RECORD, 0, PATTERN_ID_MAX, ""};
    assert_match_by(pattern_match_next, set, key, strlen(key), &match, &expected);
    expected.result = PATTERN_NONE;
    assert_match_by(pattern_match_next, other, key, strlen(key), &match, &expected);
    pattern_set_destroy(set);
    pattern_set_destroy(other);
}

/* The bound of ids holds, too, for a key that begins as the one before. */
static void test_largest_id_twice(void **unused)
{
    (void)unused;
    static const char *const keys[] = {"feed:9223372036854775807", "feed:9223372036854775808"};
    struct pattern_set *set = build(spaces, COUNT(spaces));
    struct pattern_match match = {.space = FEED};
    struct expected expected = {PATTERN_RECORD, FEED, PATTERN_ID_MAX, ""};
    assert_match_by(pattern_match_next, set, keys[0], strlen(keys[0]), &match, &expected);
    assert_match_by(pattern_match_next, set, keys[0], strlen(keys[0]), &match, &expected);
    expected = (struct expected){PATTERN_BAD, FEED, 0, ""};
    assert_match_by(pattern_match_next, set, keys[1], strlen(keys[1]), &match, &expected);
    pattern_set_destroy(set);
}

static void test_empty_set(void **unused)
{
    (void)unused;
    struct pattern_set *set = build(NULL, 0);
    struct pattern_match match;
    assert_int_equal(pattern_match(set, "feed:1", 6, &match), PATTERN_NONE);
    assert_int_equal(pattern_match(set, "{1}", 3, &match), PATTERN_NONE);
    pattern_set_destroy(set);
}

static void test_many_spaces(void **unused)
{
    (void)unused;
    char texts[PATTERN_SPACES_MAX][PATTERN_TEXT_MAX + 1];
    const char *pointers[PATTERN_SPACES_MAX];
    char prefix[PATTERN_TEXT_MAX + 1] = "";
    for (uint32_t i = 0; i < PATTERN_SPACES_MAX; i++) {
        /* Every second one branches off a text that grows: nodes with text, splits, depth. */
        snprintf(texts[i], sizeof(texts[i]), "%.*s%c:{id}", (int)(i / 2), prefix,
                 i % 2 == 0 ? 'x' : 'y');
        prefix[i / 2] = 'p';
        pointers[PATTERN_SPACES_MAX - 1 - i] = texts[i];
    }
    struct pattern_set *set = build(pointers, PATTERN_SPACES_MAX);
    for (uint32_t i = 0; i < PATTERN_SPACES_MAX; i++) {
        char key[KEY_ROOM];
        int length =
            snprintf(key, sizeof(key), "%.*s%u.a", (int)strlen(pointers[i]) - 4, pointers[i], i);
        struct expected expected = {PATTERN_RECORD, i, i, ".a"};
        assert_match(set, key, (size_t)length, &expected);
    }
    pattern_set_destroy(set);
}

/* --- patterns and sets that are refused ------------------------------------------------------ */

static const struct refusal {
    const char *text;
    bool with_member;
    size_t at;
    const char *says;
} refusals[] = {
    {"", false, 0, "no {id}"},
    {"feed", false, 4, "no {id}"},
    {"feed:{ID}", false, 5, "'{' without an {id}"},
    {"feed:{id", false, 5, "'{' without"},
    {"feed:{id}{id}", false, 9, "second {id}"},
    {"feed:{id}x{id}", false, 10, "second {id}"},
    {"feed:{id}{x}", false, 9, "'{'"},
    {"fe}ed:{id}", false, 2, "'}'"},
    {"fe|ed:{id}", false, 2, "'|'"},
    {"fe ed:{id}", false, 2, "0x20"},
    {"fe\ted:{id}", false, 2, "0x09"},
    {"fe\xc3\xa9:{id}", false, 2, "0xc3"},
    {"feed:{id}\x7f", false, 9, "0x7f"},
    {"feed:{id}.x", false, 9, "slot"},
    {"feed:{id}0", false, 9, "digit"},
    {"feed:{id}9", false, 9, "digit"},
    {"feed:{id}:{member}", false, 10, "{member} in a space of counters"},
    {"liked:{id}", true, 10, "no {member}"},
    {"liked:{id}:", true, 11, "no {member}"},
    {"liked:{id}{member}", true, 10, "nothing between"},
    {"liked:{member}:{id}", true, 6, "before {id}"},
    {"liked:{member}", true, 14, "no {id}"},
    {"liked:{id}:{member}x", true, 19, "text after {member}"},
    {"liked:{id}:{member}{member}", true, 19, "text after {member}"},
    {"liked:{id}1{member}", true, 10, "digit"},
    {"liked:{id}.{member}", true, 10, "slot"},
    {"liked:{id}:|{member}", true, 11, "'|'"},
};

static void test_pattern_refused(void **unused)
{
    (void)unused;
    char error[PATTERN_ERROR_MAX];
    for (size_t i = 0; i < COUNT(refusals); i++) {
        const struct refusal *refusal = &refusals[i];
        size_t at = SIZE_MAX;
        error[0] = '\0';
        assert_false(pattern_valid(refusal->text, refusal->with_member, error, &at));
        if (at != refusal->at || strstr(error, refusal->says) == NULL) {
            fail_msg("%s: '%s' at %zu", refusal->text, error, at);
        }
    }
    char text[PATTERN_TEXT_MAX + 2];
    memset(text, 'a', sizeof(text));
    memcpy(text, "{id}", 4);
    text[PATTERN_TEXT_MAX + 1] = '\0';
    size_t at = 0;
    assert_false(pattern_valid(text, false, error, &at));
    assert_int_equal(at, PATTERN_TEXT_MAX);
    text[PATTERN_TEXT_MAX] = '\0';
    assert_true(pattern_valid(text, false, error, &at));
}

static void test_pattern_accepted(void **unused)
{
    (void)unused;
    static const char *const counters[] = {"{id}", "a{id}", "a1{id}", "feed:{id}:x.1", "#{id}#~!"};
    static const char *const members[] = {"{id}:{member}", "a.b{id}::1{member}", "1{id}x{member}"};
    char error[PATTERN_ERROR_MAX];
    size_t at;
    for (size_t i = 0; i < COUNT(counters); i++) {
        assert_true(pattern_valid(counters[i], false, error, &at));
    }
    for (size_t i = 0; i < COUNT(members); i++) {
        assert_true(pattern_valid(members[i], true, error, &at));
    }
}

static const struct pair {
    const char *texts[2];
    const char *example; /* NULL: no clash */
} pairs[] = {
    {{"a{id}", "a1{id}"}, "a12"},
    {{"a1{id}", "a{id}"}, "a12"},
    {{"a{id}", "a{id}"}, "a2"},
    {{"a{id}", "{id}"}, NULL},
    {{"1{id}", "{id}"}, "12"},
    {{"0{id}", "{id}"}, NULL}, /* an id has no leading zero */
    {{"a{id}", "a0{id}"}, NULL},
    {{"a{id}", "a1x{id}"}, NULL},
    {{"post:{id}", "post:{id}:{member}"}, NULL},
    {{"post:{id}:", "post:{id}:{member}"}, "post:2:."},
    {{"post:{id}:{member}", "post:{id}:x"}, "post:2:x"},
    {{"post:{id}:{member}", "post:{id}::{member}"}, "post:2::u"},
    {{"post:{id}:x", "post:{id}:y"}, NULL},
    {{"post:{id}:x", "post:{id}:x.y"}, "post:2:x.y"},
    {{"post:{id}:x", "post:{id}:xy"}, NULL},
    {{"a{id}:{member}", "a1:{id}"}, "a1:2"},
    {{"a{id}:", "a1:{id}"}, NULL},
    {{"a{id}:7", "a1:{id}"}, "a1:7"},
    {{"a{id}:07", "a1:{id}"}, NULL},
    {{"a{id}:75x", "a1:{id}x"}, "a1:75x"},
    {{"a{id}x7y{member}", "a5x{id}y"}, "a5x7y."},
    {{"a{id}x7y{member}", "a5x{id}z"}, NULL},
    {{"a{id}", "a1.{id}"}, "a1.2"},
    {{"a{id}", "a922337203685477580{id}"}, "a9223372036854775802"},
    {{"a{id}", "a922337203685477581{id}"}, NULL},
    {{"a{id}:{member}", "a9223372036854775808:{id}"}, NULL},
    {{"feed:{id}", "food:{id}"}, NULL},
};

static void test_pairs(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        char error[PATTERN_ERROR_MAX] = "";
        char quoted[PATTERN_ERROR_MAX] = "";
        uint32_t first = 9;
        uint32_t second = 9;
        struct pattern_set *set = pattern_set_create(pairs[i].texts, 2, error, &first, &second);
        if (pairs[i].example != NULL) {
            snprintf(quoted, sizeof(quoted), "\"%s\"", pairs[i].example);
            assert_int_equal(first, 0);
            assert_int_equal(second, 1);
        }
        if ((set == NULL) != (pairs[i].example != NULL) || strstr(error, quoted) == NULL) {
            fail_msg("%s and %s: '%s'", pairs[i].texts[0], pairs[i].texts[1], error);
        }
        pattern_set_destroy(set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),           cmocka_unit_test(test_long_keys),
        cmocka_unit_test(test_fixed_texts),     cmocka_unit_test(test_shorter_text),
        cmocka_unit_test(test_another_set),     cmocka_unit_test(test_largest_id_twice),
        cmocka_unit_test(test_empty_set),       cmocka_unit_test(test_many_spaces),
        cmocka_unit_test(test_pattern_refused), cmocka_unit_test(test_pattern_accepted),
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
