/* Bytes as letters, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/base64.h"

static void test_base64(void **unused)
{
    (void)unused;
    static const char *const pairs[][2] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"a\xff\xfe?", "Yf/+Pw=="}};
    static const char *const none[] = {"Zg", "Zg=", "Z===", "Zg==Zg==", "Zm9v!", "=m9v", "Zm=v"};
    char text[16], bytes[16];
    size_t length;

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        base64_encode(pairs[i][0], strlen(pairs[i][0]), text);
        assert_string_equal(text, pairs[i][1]);
        assert_true(base64_decode(text, bytes, sizeof(bytes), &length));
        assert_int_equal(length, strlen(pairs[i][0]));
        assert_memory_equal(bytes, pairs[i][0], length);
    }
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_false(base64_decode(none[i], bytes, sizeof(bytes), &length));
    }
    assert_false(base64_decode("Zm9v", bytes, 2, &length));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
