/* What a connection may say before it is authenticated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/binary.h"
#include "protocol/text.h"

struct row {
    const char *text;
    enum auth_wish wish;
    const char *user; /* NULL: could not be read */
    const char *password;
};

static const struct row texts[] = {
    {"set a 0 0 8\r\njoe pass\r\n", AUTH_TRY, "joe", "pass"},
    {"set a 0 0 8 noreply\r\njoe pass\r\n", AUTH_TRY, "joe", "pass"},
    {"set a b c 8\njoe pass\r\n", AUTH_TRY, "joe", "pass"},
    {"set a 0 0 10\r\njoe pass x\r\n", AUTH_TRY, "joe", "pass x"},
    {"set a 0 0 4\r\njoe \r\n", AUTH_TRY, "joe", ""},
    {"set a 0 0 3\r\njoe\r\n", AUTH_TRY, NULL, NULL},
    {"set a 0 0 0\r\n\r\n", AUTH_TRY, NULL, NULL},
    {"set a 0 0 3\r\njoe pass\r\n", AUTH_CLOSE, NULL, NULL},
    {"set a 0 0 1025\r\n", AUTH_CLOSE, NULL, NULL},
    {"set a 0 0 18446744073709551615\r\n", AUTH_CLOSE, NULL, NULL},
    {"set a 0 0 -1\r\n", AUTH_OTHER, NULL, NULL},
    {"set a 0 0\r\n", AUTH_OTHER, NULL, NULL},
    {"get a\r\n", AUTH_OTHER, NULL, NULL},
    {"\r\n", AUTH_OTHER, NULL, NULL},
    {"\n", AUTH_OTHER, NULL, NULL},
    {"version", AUTH_MORE, NULL, NULL},
};

static void expect(const struct row *row, const struct codec *codec, const char *bytes,
                   size_t length)
{
    struct auth_request request;

    assert_int_equal(codec->read_auth(bytes, length, &request), row->wish);
    if (row->wish == AUTH_MORE || row->wish == AUTH_CLOSE) {
        return;
    }
    assert_in_range(request.end, 1, length);
    assert_int_equal(request.user != NULL, row->user != NULL);
    if (row->user != NULL) {
        assert_int_equal(request.user_length, strlen(row->user));
        assert_memory_equal(request.user, row->user, request.user_length);
        assert_int_equal(request.password_length, strlen(row->password));
        assert_memory_equal(request.password, row->password, request.password_length);
    }
}

/* Before its last byte a request that can be answered is never anything but not whole. */
static void expect_split(enum auth_wish wish, const struct codec *codec, const char *bytes,
                         size_t length)
{
    struct auth_request request;

    for (size_t n = 1; n < length && wish == AUTH_TRY; n++) {
        char *part = malloc(n); /* no byte after it may be looked at */

        assert_non_null(part);
        memcpy(part, bytes, n);
        assert_int_equal(codec->read_auth(part, n, &request), AUTH_MORE);
        free(part);
    }
}

static void test_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        size_t length = strlen(texts[i].text);

        expect(&texts[i], text_codec(), texts[i].text, length);
        expect_split(texts[i].wish, text_codec(), texts[i].text, length);
    }
}

static void test_long_line(void **state)
{
    char line[AUTH_REQUEST_MAX + 1];
    struct auth_request request;

    (void)state;
    memset(line, 'x', sizeof(line));
    assert_int_equal(text_codec()->read_auth(line, AUTH_REQUEST_MAX - 1, &request), AUTH_MORE);
    assert_int_equal(text_codec()->read_auth(line, AUTH_REQUEST_MAX, &request), AUTH_CLOSE);
    line[AUTH_REQUEST_MAX] = '\n';
    assert_int_equal(text_codec()->read_auth(line, AUTH_REQUEST_MAX + 1, &request), AUTH_CLOSE);
}

static size_t packet(unsigned char opcode, const char *key, const char *value, size_t value_length,
                     char *out)
{
    size_t key_length = strlen(key);
    size_t body = key_length + value_length;

    memset(out, 0, BINARY_HEADER_BYTES);
    out[0] = (char)BINARY_MAGIC;
    out[1] = (char)opcode;
    out[3] = (char)key_length;
    out[10] = (char)(body >> 8);
    out[11] = (char)body;
    memcpy(out + 12, "oPaq", 4);
    memcpy(out + BINARY_HEADER_BYTES, key, key_length);
    memcpy(out + BINARY_HEADER_BYTES + key_length, value, value_length);
    return BINARY_HEADER_BYTES + body;
}

static void test_binary(void **state)
{
    static const struct {
        unsigned char opcode;
        const char *key;
        const char *value;
        size_t value_length;
        struct row row;
    } rows[] = {
        {0x21, "PLAIN", "\0joe\0pass", 9, {NULL, AUTH_TRY, "joe", "pass"}},
        {0x21, "PLAIN", "me\0joe\0pass", 11, {NULL, AUTH_TRY, "joe", "pass"}},
        {0x21, "PLAIN", "\0joe\0", 5, {NULL, AUTH_TRY, "joe", ""}},
        {0x21, "PLAIN", "\0joe", 4, {NULL, AUTH_TRY, NULL, NULL}},
        {0x21, "PLAIN", "", 0, {NULL, AUTH_TRY, NULL, NULL}},
        {0x21, "CRAM-MD5", "\0joe\0pass", 9, {NULL, AUTH_TRY, NULL, NULL}},
        {0x21, "PLAINER", "\0joe\0pass", 9, {NULL, AUTH_TRY, NULL, NULL}},
        {0x22, "PLAIN", "\0joe\0pass", 9, {NULL, AUTH_TRY, "joe", "pass"}},
        {0x20, "", "", 0, {NULL, AUTH_LIST, NULL, NULL}},
        {0x0b, "", "", 0, {NULL, AUTH_OTHER, NULL, NULL}},
        {0x07, "", "", 0, {NULL, AUTH_CLOSE, NULL, NULL}},
        {0x00, "foo", "", 0, {NULL, AUTH_OTHER, NULL, NULL}},
        {0xff, "foo", "", 0, {NULL, AUTH_OTHER, NULL, NULL}},
    };
    char bytes[256];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t length =
            packet(rows[i].opcode, rows[i].key, rows[i].value, rows[i].value_length, bytes);

        expect(&rows[i].row, binary_codec(), bytes, length);
        expect_split(rows[i].row.wish, binary_codec(), bytes, length);
    }
}

static void test_binary_headers(void **state)
{
    static const struct row closed = {NULL, AUTH_CLOSE, NULL, NULL};
    char bytes[256];
    size_t length = packet(0x21, "PLAIN", "\0joe\0pass", 9, bytes);
    struct auth_request request;

    (void)state;
    bytes[3] = 15; /* a key longer than the body */
    expect(&closed, binary_codec(), bytes, length);
    bytes[3] = 5;
    bytes[4] = 20; /* extras likewise */
    expect(&closed, binary_codec(), bytes, length);
    bytes[4] = 0;
    memset(bytes + 8, 0xff, 4); /* a body of 4 GiB */
    expect(&closed, binary_codec(), bytes, length);
    length = packet(0x21, "PLAIN", "\0joe\0pass", 9, bytes);
    assert_int_equal(binary_codec()->read_auth(bytes, length, &request), AUTH_TRY);
    assert_memory_equal(&request.request.binary.opaque, "oPaq", 4);
    assert_int_equal(request.request.binary.opcode, 0x21);
    bytes[0] = 'g';
    expect(&closed, binary_codec(), bytes, length);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_binary_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
