/* A connection's first byte names its codec, and each codec's table is whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protocol/binary.h"
#include "protocol/text.h"

static void test_first_bytes(void **state)
{
    (void)state;
    for (unsigned first = 0; first <= UINT8_MAX; first++) {
        const struct codec *expected = text_codec();

        if (first == BINARY_MAGIC) {
            expected = binary_codec();
        } else if (first == 0x16) { /* a hello of TLS */
            expected = NULL;
        }
        assert_ptr_equal(codec_of((unsigned char)first), expected);
    }
}

static void test_tables(void **state)
{
    const struct codec *const codecs[] = {text_codec(), binary_codec()};

    (void)state;
    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++) {
        assert_non_null(codecs[i]->read_auth);
        assert_non_null(codecs[i]->parse);
        assert_non_null(codecs[i]->reply_bytes_max);
        assert_non_null(codecs[i]->compose_value);
        assert_non_null(codecs[i]->compose_end);
        assert_non_null(codecs[i]->compose_stat);
        assert_non_null(codecs[i]->compose_stats_end);
        assert_non_null(codecs[i]->compose);
        assert_non_null(codecs[i]->cut);
    }
    assert_true(text_codec()->has_meta);
    assert_false(binary_codec()->has_meta);
    assert_true(binary_codec()->initial_in_every);
    assert_false(text_codec()->initial_in_every);
}

/* What a client hears of a login that succeeded. */
static void test_login(void **state)
{
    static const struct reply reply = {
        .status = REPLY_LOGIN, .value = "Authenticated", .value_length = 13};
    struct auth_request asked;
    struct buf out;

    (void)state;
    assert_int_equal(text_codec()->read_auth("set a 0 0 3\r\na b\r\n", 18, &asked), AUTH_TRY);
    buf_init(&out, 256, NULL);
    text_codec()->compose(&out, &asked.request, &reply);
    assert_int_equal(out.length, 8);
    assert_memory_equal(out.data, "STORED\r\n", 8);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_bytes),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_login),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
