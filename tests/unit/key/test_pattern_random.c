/*
 * test_pattern_random.c: random keys, and random sets of patterns, against a matcher that is naive
 * on purpose.
 */
#include "base/digits.h"
#include "tests/unit/key/pattern_expect.h"

#define RANDOM_KEYS    150000
#define RANDOM_SETS    300
#define EXHAUSTIVE_MAX 5 /* bytes of the keys tried on every random set */
#define ID_ROOM        20

/* --- the naive matcher ------------------------------------------------------------------- */

/* A pattern cut at its placeholders. */
struct parts {
    char prefix[PATTERN_TEXT_MAX + 1];
    char suffix[PATTERN_TEXT_MAX + 1];
    bool with_member;
};

static struct parts cut(const char *text)
{
    struct parts parts = {.with_member = false};
    const char *id = strstr(text, "{id}");
    assert_non_null(id);
    memcpy(parts.prefix, text, (size_t)(id - text));
    snprintf(parts.suffix, sizeof(parts.suffix), "%s", id + 4);
    char *member = strstr(parts.suffix, "{member}");
    if (member != NULL) {
        *member = '\0';
        parts.with_member = true;
    }
    return parts;
}

/* Is all of text prefix, a good id and suffix? Keys of the random tests hold no NUL. */
static bool is_front(const struct parts *parts, const char *text, uint64_t *id)
{
    size_t prefix = strlen(parts->prefix);
    if (strncmp(text, parts->prefix, prefix) != 0) {
        return false;
    }
    size_t digits = strspn(text + prefix, "0123456789");
    if (digits == 0 || digits > 19 || (digits > 1 && text[prefix] == '0')) {
        return false;
    }
    *id = strtoull(text + prefix, NULL, 10);
    return *id <= PATTERN_ID_MAX && strcmp(text + prefix + digits, parts->suffix) == 0;
}

static void erase(char *text, size_t at, size_t length)
{
    memmove(text + at, text + at + length, strlen(text + at + length) + 1);
}

/* Takes the first |#| and pair of braces out. False: the braces are no pair. */
static bool take_marks_out(char *text)
{
    char *hash = strstr(text, "|#|");
    if (hash != NULL) {
        erase(text, (size_t)(hash - text), 3);
    }
    size_t open = strcspn(text, "{}");
    if (text[open] == '\0') {
        return true;
    }
    bool good = text[open] == '{';
    erase(text, open, 1);
    char *close = strchr(text + open, '}');
    if (!good || close == NULL) {
        return false;
    }
    erase(text, (size_t)(close - text), 1);
    return true;
}

/* Tries every place where the front could end. */
static enum pattern_result naive_space(const struct parts *parts, const char *key, bool marks,
                                       struct expected *expected)
{
    char whole[KEY_ROOM];
    snprintf(whole, sizeof(whole), "%s", key);
    bool whole_paired = !marks || take_marks_out(whole);
    for (size_t at = 1; !parts->with_member && at <= strlen(whole); at++) {
        char front[KEY_ROOM];
        snprintf(front, sizeof(front), "%.*s", (int)at, whole);
        if ((whole[at] == '\0' || whole[at] == '.') && is_front(parts, front, &expected->id)) {
            snprintf(expected->rest, sizeof(expected->rest), "%s", whole + at);
            return whole_paired ? PATTERN_RECORD : PATTERN_BAD;
        }
    }
    for (size_t at = 1; parts->with_member && at <= strlen(key); at++) {
        char front[KEY_ROOM];
        snprintf(front, sizeof(front), "%.*s", (int)at, key);
        bool paired = !marks || take_marks_out(front);
        if (is_front(parts, front, &expected->id)) {
            snprintf(expected->rest, sizeof(expected->rest), "%s", key + at);
            return paired && key[at] != '\0' ? PATTERN_MEMBER : PATTERN_BAD;
        }
    }
    return PATTERN_NONE;
}

static bool claims(const struct parts *parts, const char *key)
{
    size_t prefix = strlen(parts->prefix);
    if (prefix == 0) {
        return key[0] >= '0' && key[0] <= '9';
    }
    return strncmp(key, parts->prefix, prefix) == 0;
}

/* Whose fixed text does a key begin with that is nobody's? */
static struct expected naive_claim(const struct parts *parts, size_t n, const char *key)
{
    struct expected expected = {.result = PATTERN_NONE};
    char bare[KEY_ROOM];
    snprintf(bare, sizeof(bare), "%s", key);
    take_marks_out(bare);
    size_t longest = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t prefix = strlen(parts[i].prefix);
        if (claims(&parts[i], bare) && (expected.result == PATTERN_NONE || prefix > longest)) {
            expected.result = PATTERN_BAD;
            expected.space = i;
            longest = prefix;
        }
    }
    return expected;
}

static struct expected naive(const char *const *texts, size_t n, const char *key)
{
    struct expected expected = {.result = PATTERN_NONE};
    struct parts parts[PATTERN_SPACES_MAX];
    for (size_t i = 0; i < n; i++) {
        parts[i] = cut(texts[i]);
    }
    for (int marks = 0; marks < 2; marks++) {
        for (uint32_t i = 0; i < n; i++) {
            enum pattern_result result = naive_space(&parts[i], key, marks, &expected);
            if (result == PATTERN_RECORD || result == PATTERN_MEMBER) {
                expected.result = result;
                expected.space = i;
                return expected;
            }
            if (result == PATTERN_BAD && expected.result == PATTERN_NONE) {
                expected.result = result; /* all but its end fits */
                expected.space = i;
            }
        }
    }
    return expected.result == PATTERN_BAD ? expected : naive_claim(parts, n, key);
}

/* How many of the spaces own the key, read plainly? */
static size_t naive_owners(const char *const *texts, size_t n, const char *key)
{
    size_t owners = 0;
    for (size_t i = 0; i < n; i++) {
        struct parts parts = cut(texts[i]);
        struct expected expected;
        enum pattern_result result = naive_space(&parts, key, false, &expected);
        owners += result == PATTERN_RECORD || result == PATTERN_MEMBER;
    }
    return owners;
}

/* A number of rounds, by ROLLCALL_TEST_SCALE (per cent), but enough to mean something. */
static int scaled(int rounds)
{
    const char *scale = getenv("ROLLCALL_TEST_SCALE");
    long percent = scale == NULL ? 100 : strtol(scale, NULL, 10);
    long result = rounds * percent / 100;
    return result < 100 ? 100 : (int)result;
}

static uint64_t random_state = 0x123456789abcdefu;

static uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 20) % limit;
}

/* --- random ----------------------------------------------------------------------------------- */

/* Puts a piece into the text at a random place. */
static void mutate(char *text)
{
    static const char *const pieces[] = {"{", "}", "|#|", "0", "1", ".", ":", "x", "{", "}", "|"};
    size_t length = strlen(text);
    size_t at = random_below((uint32_t)length + 1);
    if (random_below(5) == 0 && length > 1) {
        erase(text, at == length ? at - 1 : at, 1);
        return;
    }
    const char *piece = pieces[random_below(COUNT(pieces))];
    memmove(text + at + strlen(piece), text + at, length - at + 1);
    memcpy(text + at, piece, strlen(piece));
}

static void random_key(const char *const *texts, size_t n, char key[KEY_ROOM])
{
    static const char *const ends[] = {"", ".like", ".", "u9", "7", "{u}", ".a|#|", "}"};
    struct parts parts = cut(texts[random_below((uint32_t)n)]);
    char id[ID_ROOM + 1];
    snprintf(id, sizeof(id), "%" PRIu64, random_state >> random_below(64));
    snprintf(key, KEY_ROOM, "%s%s%s%s", parts.prefix, id, parts.suffix,
             ends[random_below(COUNT(ends))]);
    for (uint32_t i = random_below(6); i > 0; i--) {
        mutate(key);
    }
    if (key[0] == '\0') {
        key[0] = '1';
        key[1] = '\0';
    }
}

static void test_random_keys(void **unused)
{
    (void)unused;
    struct pattern_set *set = build(spaces, COUNT(spaces));
    size_t seen[PATTERN_MEMBER + 1] = {0};
    int keys = scaled(RANDOM_KEYS);
    for (int i = 0; i < keys; i++) {
        char key[KEY_ROOM];
        random_key(spaces, COUNT(spaces), key);
        struct expected expected = naive(spaces, COUNT(spaces), key);
        assert_match(set, key, strlen(key), &expected);
        seen[expected.result]++;
    }
    for (size_t i = 0; i < COUNT(seen); i++) {
        assert_true(seen[i] > (size_t)keys / 50); /* or the keys test nothing */
    }
    pattern_set_destroy(set);
}

/* An id near the one before: as on a page, though sometimes of another length. */
static void next_id(uint64_t *id)
{
    static const uint64_t far[] = {1000, 100000000, DIGITS_SIXTEEN / 10, DIGITS_SIXTEEN,
                                   PATTERN_ID_MAX};
    uint64_t by = far[random_below(COUNT(far))];
    *id = random_below(20) > 0 ? (*id / by * by + random_state % by) % PATTERN_ID_MAX
                               : random_state >> (1 + random_below(63));
}

/* Keys one after the other, whose heads are the same as a rule, by two sets in turns; one of them
 * is a new one now and then, and may lie where the one before it lay. */
static void test_pages(void **unused)
{
    (void)unused;
    static const char *const ends[] = {"", ".like", ":u9", "7", ":", "x"};
    const char *others[] = {"feed:{id}.x", "liked:{id}:{member}", "{id}"};
    struct pattern_set *set = build(spaces, COUNT(spaces));
    struct pattern_set *other = build(others, COUNT(others));
    struct pattern_match match = {0};
    uint64_t id = 1;
    struct parts parts = cut(spaces[0]);
    int keys = scaled(RANDOM_KEYS);
    for (int i = 0; i < keys; i++) {
        char key[KEY_ROOM];
        next_id(&id);
        if (random_below(5) == 0) {
            parts = cut(spaces[random_below(COUNT(spaces))]);
        }
        snprintf(key, sizeof(key), "%s%s%" PRIu64 "%s%s", parts.prefix,
                 random_below(20) == 0 ? "0" : "", id, parts.suffix,
                 ends[random_below(COUNT(ends))]);
        if (random_below(10) == 0) {
            mutate(key);
        }
        bool in_other = random_below(10) == 0;
        struct expected expected =
            in_other ? naive(others, COUNT(others), key) : naive(spaces, COUNT(spaces), key);
        assert_match_by(pattern_match_next, in_other ? other : set, key, strlen(key), &match,
                        &expected);
        if (random_below(50) == 0) {
            pattern_set_destroy(other);
            other = build(others, COUNT(others));
        }
    }
    pattern_set_destroy(other);
    pattern_set_destroy(set);
}

static void random_fixed(char *text, uint32_t length_max)
{
    static const char bytes[] = "aa11007:.";
    uint32_t length = random_below(length_max + 1);
    for (uint32_t i = 0; i < length; i++) {
        text[i] = bytes[random_below(sizeof(bytes) - 1)];
    }
    text[length] = '\0';
}

static void random_pattern(char text[KEY_ROOM])
{
    char error[PATTERN_ERROR_MAX];
    size_t at;
    bool with_member;
    do {
        char prefix[8];
        char suffix[8];
        random_fixed(prefix, 3);
        random_fixed(suffix, 3);
        with_member = random_below(2) == 0;
        snprintf(text, KEY_ROOM, "%s{id}%s%s", prefix, suffix, with_member ? "{member}" : "");
    } while (!pattern_valid(text, with_member, error, &at));
}

/* The key between the quotes of a refusal. */
static void check_example(const char *const *texts, uint32_t first, uint32_t second,
                          const char *error)
{
    const char *both[] = {texts[first], texts[second]};
    char key[PATTERN_ERROR_MAX];
    assert_int_equal(sscanf(error, "%*[^\"]\"%250[^\"]\"", key), 1);
    if (naive_owners(both, 2, key) != 2) {
        fail_msg("%s and %s do not share %s", both[0], both[1], key);
    }
}

/* Every short key, and random ones: at most one space owns it, and it is found. */
static void check_set(const struct pattern_set *set, const char *const *texts, size_t n)
{
    static const char bytes[] = "a107:.";
    static const uint32_t base = sizeof(bytes) - 1;
    uint32_t count = 1;
    for (size_t length = 1; length <= EXHAUSTIVE_MAX; length++) {
        count *= base;
        for (uint32_t number = random_below(7); number < count; number += 7) {
            char key[KEY_ROOM] = "";
            uint32_t rest = number;
            for (size_t i = 0; i < length; i++, rest /= base) {
                key[i] = bytes[rest % base];
            }
            struct expected expected = naive(texts, n, key);
            assert_true(naive_owners(texts, n, key) <= 1);
            assert_match(set, key, length, &expected);
        }
    }
    for (int i = 0; i < 200; i++) {
        char key[KEY_ROOM];
        random_key(texts, n, key);
        struct expected expected = naive(texts, n, key);
        assert_match(set, key, strlen(key), &expected);
    }
}

static void test_random_sets(void **unused)
{
    (void)unused;
    size_t accepted = 0;
    int sets = scaled(RANDOM_SETS);
    for (int round = 0; round < sets; round++) {
        char texts[3][KEY_ROOM];
        const char *pointers[] = {texts[0], texts[1], texts[2]};
        size_t n = 2 + random_below(2);
        for (size_t i = 0; i < n; i++) {
            random_pattern(texts[i]);
        }
        char error[PATTERN_ERROR_MAX] = "";
        uint32_t first;
        uint32_t second;
        struct pattern_set *set = pattern_set_create(pointers, n, error, &first, &second);
        if (set == NULL) {
            check_example(pointers, first, second, error);
        } else {
            accepted++;
            check_set(set, pointers, n);
        }
        pattern_set_destroy(set);
    }
    assert_in_range(accepted, sets / 10, sets * 19 / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_keys),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_random_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
