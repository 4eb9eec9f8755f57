/* test_space_words.c: the refusals that name a space's slots, and those with more than a line has
 * room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "space/spaces.h"

static struct space space; /* large */

static void make(const char *name, size_t slots, const char *const names[])
{
    memset(&space, 0, sizeof(space));
    snprintf(space.settings.name, sizeof(space.settings.name), "%s", name);
    space.settings.slot_count = slots;
    for (size_t i = 0; i < slots; i++) {
        snprintf(space.settings.slots[i].name, sizeof(space.settings.slots[i].name), "%s",
                 names[i]);
    }
    space_words_make(&space);
}

static void test_words(void **state)
{
    static const char *const names[] = {"repost", "comment", "like", "read"};
    (void)state;
    make("feed", 4, names);
    assert_string_equal(space.bad_key_words, "bad key for space feed");
    assert_string_equal(space.slot_words, "bad key for space feed: slots repost,comment,like,read");
    assert_string_equal(space.delta_words,
                        "needs 4 numbers: repost,comment,like,read, or name a slot");
    assert_string_equal(space.record_words,
                        "record needs 4 numbers: repost,comment,like,read, or NAME=N");
    make("one", 1, names);
    assert_string_equal(space.slot_words, "bad key for space one: slots repost");
    assert_string_equal(space.record_words, "record needs 1 number");
}

static void test_unknown(void **state)
{
    static const char *const names[] = {"repost", "comment", "like", "read"};
    static const char long_name[] = "abcdefghijklmnopqrstuvwxyz012345=1";
    char words[SPACES_WORDS_MAX];
    (void)state;
    make("feed", 4, names);
    assert_true(space_words_unknown(&space, "like=3,liek=4,raed=1", 20, words));
    assert_string_equal(words, "no slot liek: repost,comment,like,read");
    assert_true(space_words_unknown(&space, long_name, strlen(long_name), words));
    assert_string_equal(words, "no slot abcdefghijklmnopqrstuvwxyz012345: repost,comment,...");
    /* no name, none that is wrong, or none that can be shown */
    static const char *const others[] = {
        "",     "1,2,3,4", "like=3", "=3", "li\r\nke=3", "abcdefghijklmnopqrstuvwxyz0123456=1",
        "x,y,", "like"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_false(space_words_unknown(&space, others[i], strlen(others[i]), words));
    }
}

/* They fit an error line, cut between names. */
static void test_long_names(void **state)
{
    static const char long_name[] = "abcdefghijklmnopqrstuvwxyz012345";
    const char *const names[] = {"likes_of_all", "reposts", "comments_of_friends", long_name};
    (void)state;
    make("s", 4, names);
    assert_string_equal(space.delta_words,
                        "needs 4 numbers: likes_of_all,reposts,..., or name a slot");
    make(long_name, 4, names);
    assert_string_equal(space.slot_words,
                        "bad key for space abcdefghijklmnopqrstuvwxyz012345: slots ...");
    for (size_t length = 1; length <= 32; length++) {
        char name[33];
        snprintf(name, sizeof(name), "%.*s", (int)length, long_name);
        const char *const two[] = {name, name};
        make(name, 2, two);
        assert_true(strlen(space.slot_words) < SPACES_WORDS_MAX - 1 ||
                    space.slot_words[SPACES_WORDS_MAX - 1] == '\0');
        assert_non_null(strstr(space.delta_words, ", or name a slot"));
        assert_non_null(strstr(space.record_words, ", or NAME=N"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words), cmocka_unit_test(test_unknown),
                                       cmocka_unit_test(test_long_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
