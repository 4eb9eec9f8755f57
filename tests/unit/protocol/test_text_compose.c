/*
 * test_text_compose.c: replies to bytes: every status, values, blocks, stats, and no room.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/text.h"
#include "tests/support/random.h"

static void expect(struct buf *out, const char *text)
{
    assert_int_equal(out->length, strlen(text));
    if (out->length > 0) {
        assert_memory_equal(out->data, text, out->length);
    }
    buf_truncate(out, 0);
}

static void compose_value(struct buf *out, const struct request *request,
                          const struct request_key *key, const char *value, uint32_t flags,
                          uint64_t cas)
{
    const struct hit hit = {
        .value = value, .value_length = strlen(value), .cas = cas, .flags = flags, .ttl_s = -1};
    text_codec()->compose_value(out, request, key, &hit);
}

static void test_statuses(void **unused)
{
    (void)unused;
    static const struct {
        enum reply_status status;
        const char *value;
        const char *text;
    } rows[] = {
        {REPLY_OK, NULL, "OK\r\n"},
        {REPLY_STORED, NULL, "STORED\r\n"},
        {REPLY_NOT_STORED, NULL, "NOT_STORED\r\n"},
        {REPLY_EXISTS, NULL, "EXISTS\r\n"},
        {REPLY_NOT_FOUND, NULL, "NOT_FOUND\r\n"},
        {REPLY_DELETED, NULL, "DELETED\r\n"},
        {REPLY_TOUCHED, NULL, "TOUCHED\r\n"},
        {REPLY_NUMBER, "12,,30,400", "12,,30,400\r\n"},
        {REPLY_VERSION, "1.6.45", "VERSION 1.6.45\r\n"},
        {REPLY_NOOP, NULL, "MN\r\n"},
        {REPLY_RESET, NULL, "RESET\r\n"},
        {REPLY_ERROR, NULL, "ERROR\r\n"},
        {REPLY_ERROR, ": shutdown not enabled", "ERROR: shutdown not enabled\r\n"},
        {REPLY_CLIENT_ERROR, "bad data chunk", "CLIENT_ERROR bad data chunk\r\n"},
        {REPLY_SERVER_ERROR, "busy", "SERVER_ERROR busy\r\n"},
        {REPLY_QUIT, NULL, ""},
        {REPLY_NONE, NULL, ""},
    };
    const struct request request = {.verb = VERB_SET};
    const struct request noreply = {.verb = VERB_SET, .quiet = QUIET_ALL};
    struct buf out;
    buf_init(&out, 4096, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *value = rows[i].value;
        const struct reply reply = {.status = rows[i].status,
                                    .value = value,
                                    .value_length = value == NULL ? 0 : strlen(value)};
        text_codec()->compose(&out, &request, &reply);
        expect(&out, rows[i].text);
        text_codec()->compose(&out, &noreply, &reply);
        expect(&out, "");
    }
    buf_fini(&out);
}

static void test_error_lines_are_short(void **unused)
{
    (void)unused;
    char words[200];
    memset(words, 'w', sizeof(words));
    const struct request request = {.verb = VERB_SET};
    const enum reply_status errors[] = {REPLY_CLIENT_ERROR, REPLY_SERVER_ERROR};
    struct buf out;
    buf_init(&out, 4096, NULL);
    for (size_t i = 0; i < 2; i++) {
        const struct reply reply = {
            .status = errors[i], .value = words, .value_length = sizeof(words)};
        text_codec()->compose(&out, &request, &reply);
        assert_int_equal(out.length, PROTOCOL_ERROR_MAX - 1);
        assert_memory_equal(out.data + out.length - 3, "w\r\n", 3);
        buf_truncate(&out, 0);
    }
    buf_fini(&out);
}

static void test_values(void **unused)
{
    (void)unused;
    struct request request = {.verb = VERB_GET};
    const struct request_key key = {"feed:123", 8};
    struct buf out;
    buf_init(&out, 4096, NULL);
    compose_value(&out, &request, &key, "12,,30", 0, 99);
    text_codec()->compose_end(&out, &request);
    expect(&out, "VALUE feed:123 0 6\r\n12,,30\r\nEND\r\n");
    request.want_cas = true;
    compose_value(&out, &request, &key, "0123456789", UINT32_MAX, UINT64_MAX);
    compose_value(&out, &request, &key, "", 10, 9);
    text_codec()->compose_miss(&out, &request, &key);
    expect(&out, "VALUE feed:123 4294967295 10 18446744073709551615\r\n0123456789\r\n"
                 "VALUE feed:123 10 0 9\r\n\r\n");
    request.more = true;
    text_codec()->compose_end(&out, &request);
    expect(&out, "");
    buf_fini(&out);
}

/* Values of any length and token, each of a key of any length: together as one by one. */
static void test_values_together(void **unused)
{
    (void)unused;
    enum { KEYS = 40 };
    static const char bytes[] = "012345678901234567890123456789012345678901234567890123456789";
    char line[KEYS * sizeof(bytes)];
    struct request_key keys[KEYS];
    struct found found[KEYS];
    struct test_random random = {test_seed()};
    for (unsigned round = 0; round < 200; round++) {
        struct request request = {.verb = VERB_GET, .want_cas = round % 2};
        uint32_t flags = UINT32_MAX >> test_random_below(&random, 32);
        size_t count = 1 + test_random_below(&random, KEYS);
        size_t value_bytes = 0;
        char *at = line;
        struct buf out, single;
        buf_init(&out, 1 << 20, NULL);
        buf_init(&single, 1 << 20, NULL);
        for (size_t i = 0; i < count; i++) {
            uint32_t length = (uint32_t)(1 + test_random_below(&random, sizeof(bytes) - 1));
            memcpy(at, bytes, length);
            keys[i] = (struct request_key){at, length};
            at += length + 1;
            found[i].value = bytes + test_random_below(&random, 3);
            found[i].value_length = test_random_below(&random, 50);
            found[i].cas = UINT64_MAX >> test_random_below(&random, 64);
            value_bytes += found[i].value_length;
            const struct hit hit = {.value = found[i].value,
                                    .value_length = found[i].value_length,
                                    .cas = found[i].cas,
                                    .flags = flags};
            text_codec()->compose_value(&single, &request, &keys[i], &hit);
        }
        text_codec()->compose_values(&out, &request, keys, found, count, value_bytes, flags);
        assert_int_equal(out.length, single.length);
        assert_memory_equal(out.data, single.data, out.length);
        buf_fini(&out);
        buf_fini(&single);
    }
}

/* Of one value alone: as if each key had been composed by itself. */
static void test_values_alike(void **unused)
{
    (void)unused;
    char line[PROTOCOL_KEY_MAX * 2];
    memset(line, 'k', sizeof(line));
    for (uint32_t length = 1; length <= PROTOCOL_KEY_MAX; length++) {
        const struct request request = {.verb = VERB_GET};
        const struct request_key keys[] = {{line, length}, {line + length, PROTOCOL_KEY_MAX}};
        const struct hit hit = {
            .value = "1", .value_length = 1, .flags = UINT32_MAX >> length % 32};
        struct buf out, single;
        buf_init(&out, 1 << 20, NULL);
        buf_init(&single, 1 << 20, NULL);
        const struct found found = {.value = "1", .value_length = 1};
        assert_true(text_codec()->compose_alike(&out, &request, keys, &found, 2, hit.flags));
        text_codec()->compose_value(&single, &request, &keys[0], &hit);
        text_codec()->compose_value(&single, &request, &keys[1], &hit);
        assert_int_equal(out.length, single.length);
        assert_memory_equal(out.data, single.data, out.length);
        const struct request tokens = {.verb = VERB_GET, .want_cas = true};
        assert_false(text_codec()->compose_alike(&out, &tokens, keys, &found, 2, hit.flags));
        assert_int_equal(out.length, single.length);
        buf_fini(&out);
        buf_fini(&single);
    }
}

static void test_stats(void **unused)
{
    (void)unused;
    const struct request request = {.verb = VERB_STATS};
    struct buf out;
    buf_init(&out, 512, NULL);
    assert_true(text_codec()->compose_stat(&out, &request, "pid", "77"));
    text_codec()->compose_stats_end(&out, &request);
    expect(&out, "STAT pid 77\r\nEND\r\n");
    size_t lines = 0;
    while (text_codec()->compose_stat(&out, &request, "pid", "77")) {
        lines++;
        assert_true(lines < 100);
    }
    assert_int_equal(lines, 512 / 13);
    assert_int_equal(out.length, lines * 13);
    buf_fini(&out);
}

/* Where there is no room, nothing is said: never half a reply. */
static void test_no_room(void **unused)
{
    (void)unused;
    const struct request request = {.verb = VERB_GET};
    const struct request_key key = {"feed:123", 8};
    const struct reply reply = {.status = REPLY_NOT_STORED};
    struct buf out;
    buf_init(&out, 11, NULL);
    compose_value(&out, &request, &key, "12", 0, 0);
    text_codec()->compose(&out, &request, &reply);
    expect(&out, "");
    buf_fini(&out);
}

/* Numbers of several requests are what each reply alone would be. */
static void test_numbers_together(void **unused)
{
    (void)unused;
    const struct request requests[] = {
        {.verb = VERB_INCR}, {.verb = VERB_INCR, .quiet = QUIET_ALL}, {.verb = VERB_INCR}};
    const uint64_t numbers[] = {0, 77, UINT64_MAX};
    static const char expected[] = "0\r\n18446744073709551615\r\n";
    struct buf out;
    buf_init(&out, 3 * PROTOCOL_NUMBER_MAX, NULL);
    text_codec()->compose_numbers(&out, requests, numbers, NULL, 3);
    assert_int_equal(out.length, sizeof(expected) - 1);
    assert_memory_equal(out.data, expected, out.length);
    text_codec()->compose_numbers(&out, requests, numbers, NULL, 3); /* no room */
    assert_int_equal(out.length, sizeof(expected) - 1);
    buf_fini(&out);
}

/* The largest replies fit what bytes_max says, in a buffer of exactly that. */
static void test_bytes_max(void **unused)
{
    (void)unused;
    char key_bytes[PROTOCOL_KEY_MAX];
    char value[PROTOCOL_REPLY_VALUE_MAX + 1];
    memset(key_bytes, 'k', sizeof(key_bytes));
    memset(value, '9', sizeof(value));
    value[PROTOCOL_REPLY_VALUE_MAX] = '\0';
    const struct request_key key = {key_bytes, sizeof(key_bytes)};
    const struct request get = {.verb = VERB_GET,
                                .keys = 3,
                                .want_cas = true,
                                .begin = 10,
                                .end = 10 + 5 + 3 * (PROTOCOL_KEY_MAX + 1) + 1};
    struct buf out;
    size_t max = text_codec()->reply_bytes_max(&get);
    assert_true(max < 4096);
    buf_init(&out, max, NULL);
    for (size_t i = 0; i < 3; i++) {
        size_t before = out.length;
        compose_value(&out, &get, &key, value, UINT32_MAX, UINT64_MAX);
        assert_true(out.length > before + sizeof(key_bytes) + PROTOCOL_REPLY_VALUE_MAX);
    }
    text_codec()->compose_end(&out, &get);
    assert_memory_equal(out.data + out.length - 5, "END\r\n", 5);
    buf_fini(&out);

    const struct request incr = {.verb = VERB_INCR};
    const struct reply reply = {
        .status = REPLY_NUMBER, .value = value, .value_length = PROTOCOL_REPLY_VALUE_MAX};
    buf_init(&out, text_codec()->reply_bytes_max(&incr), NULL);
    text_codec()->compose(&out, &incr, &reply);
    assert_int_equal(out.length, PROTOCOL_REPLY_VALUE_MAX + 2);
    buf_fini(&out);

    const struct request stats = {.verb = VERB_STATS};
    assert_true(text_codec()->reply_bytes_max(&stats) >= 64u << 10);
    assert_true(text_codec()->reply_bytes_max(&stats) <= 1u << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses),         cmocka_unit_test(test_error_lines_are_short),
        cmocka_unit_test(test_values),           cmocka_unit_test(test_values_together),
        cmocka_unit_test(test_values_alike),     cmocka_unit_test(test_stats),
        cmocka_unit_test(test_no_room),          cmocka_unit_test(test_bytes_max),
        cmocka_unit_test(test_numbers_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
