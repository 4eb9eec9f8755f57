/* test_text_list.c: keys as lists show them: escaped, in base64, as they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/text.h"

static void expect(enum listing listing, const struct listed_key *key, const char *text)
{
    struct buf out;
    buf_init(&out, 4096, NULL);
    assert_true(text_codec()->list_key(&out, listing, key));
    assert_int_equal(out.length, strlen(text));
    assert_memory_equal(out.data, text, strlen(text));
    buf_fini(&out);
}

static void test_keys(void **state)
{
    (void)state;
    struct listed_key key = {.bytes = "a/%-._~Z9",
                             .length = 9,
                             .value_length = 5,
                             .cas = 7,
                             .accessed_at = 1700000000,
                             .flags = 3,
                             .item_bytes = 48,
                             .class = 6};
    expect(LISTING_META, &key,
           "key=a%2F%25-._~Z9 exp=-1 la=1700000000 cas=7 fetch=no cls=6 size=48 flags=3\n");
    expect(LISTING_GETS, &key, "mg a/%-._~Z9\r\n");
    expect(LISTING_ITEMS, &key, "ITEM a/%-._~Z9 [5 b; 0 s]\r\n");
    key.expires_at = 1700000100;
    key.fetched = true;
    key.bytes = "\xff";
    key.length = 1;
    expect(LISTING_META, &key,
           "key=%FF exp=1700000100 la=1700000000 cas=7 fetch=yes cls=6 size=48 flags=3\n");
    expect(LISTING_ITEMS, &key, "ITEM \xff [5 b; 1700000100 s]\r\n");
}

static void test_base64(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        const char *line;
    } rows[] = {{"\n", "mg Cg== b\r\n"},
                {" \xff", "mg IP8= b\r\n"},
                {"a b", "mg YSBi b\r\n"},
                {"a b\x7f", "mg YSBifw== b\r\n"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct listed_key key = {.bytes = rows[i].key, .length = strlen(rows[i].key)};
        expect(LISTING_GETS, &key, rows[i].line);
    }
}

/* Where a key or an end does not fit nothing is written. */
static void test_room(void **state)
{
    (void)state;
    const struct listed_key key = {.bytes = "k", .length = 1};
    struct buf out;
    buf_init(&out, 128, NULL);
    assert_false(text_codec()->list_key(&out, LISTING_META, &key));
    assert_int_equal(out.length, 0);
    assert_true(text_codec()->list_end(&out, LISTING_GETS));
    assert_memory_equal(out.data, "EN\r\n", 4);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_keys), cmocka_unit_test(test_base64),
                                       cmocka_unit_test(test_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
