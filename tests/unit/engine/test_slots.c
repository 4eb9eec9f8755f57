/* test_slots.c: slots are found by their names, alone and several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/slots.h"

static void add_all(struct engine_slots *slots, const char *const *names, size_t count)
{
    memset(slots, 0, sizeof(*slots));
    for (size_t i = 0; i < count; i++) {
        engine_slots_add(slots, names[i]);
    }
}

static void test_names(void **unused)
{
    static const char *const names[] = {"a", "b", "c"};
    static const char *const others[] = {"new", "c", "a"};
    struct engine_slots before, after;
    (void)unused;
    add_all(&before, names, 3);
    add_all(&after, others, 3);
    assert_true(before.count == 3 && before.all == 7);
    assert_string_equal(after.names[0], "new");
    assert_int_equal(after.lengths[0], 3);
    assert_true(after.hashes[1] == before.hashes[2]);
    assert_true(after.hashes[1] != after.hashes[2]);
}

static void test_names_found(void **unused)
{
    static const char *const names[] = {"a",        "b",         "abc",      "adc",
                                        "like",     "likes",     "comment",  "repost",
                                        "abcdefgh", "abcdefghi", "abcdefghj"};
    static const char *const others[] = {"",         "c",         "ab",      "aac",
                                         "abd",      "lake",      "lakes",   "comnent",
                                         "Abcdefgh", "abcdefghk", "abcdefg", "abcdefghij"};
    struct engine_slots slots;
    (void)unused;
    add_all(&slots, names, sizeof(names) / sizeof(*names));
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        assert_int_equal(engine_slots_find(&slots, names[i], strlen(names[i])), i);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        assert_int_equal(engine_slots_find(&slots, others[i], strlen(others[i])), -1);
    }
}

/* As many as there may be, of one to eight bytes: each has a place of its own. */
static void test_all_found(void **unused)
{
    struct engine_slots slots;
    char name[TEXT_WORD_BYTES + 1] = "";
    (void)unused;
    memset(&slots, 0, sizeof(slots));
    for (size_t i = 0; i < ENGINE_SLOTS_MAX; i++) {
        name[i % TEXT_WORD_BYTES] = (char)('a' + i);
        engine_slots_add(&slots, name);
    }
    for (size_t i = 0; i < ENGINE_SLOTS_MAX; i++) {
        assert_int_equal(engine_slots_find(&slots, slots.names[i], slots.lengths[i]), i);
        assert_int_equal(engine_slots_find(&slots, slots.names[i], slots.lengths[i] - 1u),
                         0 < i && i < TEXT_WORD_BYTES ? (int)i - 1 : -1);
    }
}

static const char *const three[] = {"a", "ab", "abc"};

static bool parse(const char *tail, struct engine_op *op)
{
    struct engine_slots slots;
    add_all(&slots, three, 3);
    return engine_slots_parse(&slots, tail, strlen(tail), op);
}

static void test_one(void **unused)
{
    static const char *const bad[] = {".abcd", ".b", "a", ".A"};
    struct engine_slots slots;
    struct engine_op op = {.slot = 7};
    char longest[ENGINE_SPACE_NAME_MAX + 3];
    (void)unused;
    assert_true(parse("", &op) && op.slot == ENGINE_SLOT_RECORD);
    assert_true(parse(".", &op) && op.slot == ENGINE_SLOT_RECORD);
    assert_true(parse(".a", &op) && op.slot == 0);
    assert_true(parse(".ab", &op) && op.slot == 1);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_false(parse(bad[i], &op));
    }
    add_all(&slots, three, 3);
    assert_true(engine_slots_parse(&slots, ".abcd", 4, &op) && op.slot == 2); /* by length */
    memset(longest, 'a', sizeof(longest));
    longest[0] = '.';
    assert_false(engine_slots_parse(&slots, longest, sizeof(longest), &op));
    assert_false(engine_slots_parse(&slots, longest, sizeof(longest) - 2, &op));
}

/* Several slots by one key. */
static void test_some(void **unused)
{
    static const char *const bad[] = {".a+",  ".+a",  ".+",       ".a++ab",
                                      ".a+a", ".a+b", ".a+abc+a", "a+ab"};
    struct engine_op op;
    (void)unused;
    assert_true(parse(".abc+a", &op));
    assert_true(op.slot == ENGINE_SLOT_SOME && op.some == 5 && op.order == 2);
    assert_true(parse(".ab+abc+a", &op));
    assert_true(op.slot == ENGINE_SLOT_SOME && op.some == 7 && op.order == 0x021);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_false(parse(bad[i], &op));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),     cmocka_unit_test(test_names_found),
        cmocka_unit_test(test_all_found), cmocka_unit_test(test_one),
        cmocka_unit_test(test_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
