/*
 * test_binary_compose.c: replies to packets, byte for byte: statuses, hits, misses, stats, silence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/binary.h"

#define OUT_MAX 4096

/* An answer as it must be: the header's fields, then the body. */
struct expected {
    uint8_t opcode;
    uint16_t status;
    uint8_t extras_length;
    uint16_t key_length;
    uint64_t cas;
    const char *body;
    size_t body_length;
};

#define BODY(literal) literal, sizeof(literal) - 1

static void put_number(char **to, uint64_t number, size_t bytes)
{
    while (bytes-- > 0) {
        *(*to)++ = (char)(number >> (8 * bytes));
    }
}

/* The first packet in out is that one; it is taken off. */
static void expect(struct buf *out, const struct expected *expected)
{
    char bytes[OUT_MAX];
    char *to = bytes;
    put_number(&to, 0x81, 1);
    put_number(&to, expected->opcode, 1);
    put_number(&to, expected->key_length, 2);
    put_number(&to, expected->extras_length, 1);
    put_number(&to, 0, 1);
    put_number(&to, expected->status, 2);
    put_number(&to, expected->body_length, 4);
    put_number(&to, 0xdeadbeef, 4);
    put_number(&to, expected->cas, 8);
    memcpy(to, expected->body, expected->body_length);
    size_t length = (size_t)(to - bytes) + expected->body_length;
    assert_true(out->length >= length);
    assert_memory_equal(out->data, bytes, length);
    buf_consume(out, length);
}

static void expect_nothing(struct buf *out)
{
    assert_int_equal(out->length, 0);
}

static struct request request_of(enum verb verb, uint8_t opcode)
{
    struct request request = {.verb = verb, .keys = 1};
    memcpy(&request.binary.opaque, "\xde\xad\xbe\xef", 4);
    request.binary.opcode = opcode;
    return request;
}

struct row {
    enum verb verb;
    enum reply_status status;
    enum reply_detail detail;
    const char *value;
    uint16_t code;
    const char *body;
};

static const struct row rows[] = {
    {VERB_FLUSH_ALL, REPLY_OK, 0, NULL, 0, ""},
    {VERB_SET, REPLY_STORED, 0, NULL, 0, ""},
    {VERB_DELETE, REPLY_DELETED, 0, NULL, 0, ""},
    {VERB_NOOP, REPLY_NOOP, 0, NULL, 0, ""},
    {VERB_QUIT, REPLY_QUIT, 0, NULL, 0, ""},
    {VERB_STATS, REPLY_RESET, 0, NULL, 0, ""},
    {VERB_VERSION, REPLY_VERSION, 0, "1.6.45", 0, "1.6.45"},
    {VERB_SASL_LIST, REPLY_SASL_LIST, 0, "PLAIN", 0, "PLAIN"},
    {VERB_SASL, REPLY_LOGIN, 0, "Authenticated", 0, "Authenticated"},
    {VERB_SASL, REPLY_LOGIN, DETAIL_AUTH, NULL, 0x20, "Auth failure."},
    {VERB_SASL, REPLY_ERROR, DETAIL_UNKNOWN_COMMAND, NULL, 0x81, "Unknown command"},
    {VERB_INCR, REPLY_NUMBER, 0, "12,,30", 6, "Non-numeric server-side value for incr or decr"},
    {VERB_CAS, REPLY_NOT_FOUND, 0, NULL, 1, "Not found"},
    {VERB_DELETE, REPLY_NOT_FOUND, 0, NULL, 1, "Not found"},
    {VERB_CAS, REPLY_EXISTS, 0, NULL, 2, "Data exists for key."},
    {VERB_ADD, REPLY_NOT_STORED, 0, NULL, 2, "Data exists for key."},
    {VERB_REPLACE, REPLY_NOT_STORED, 0, NULL, 1, "Not found"},
    {VERB_APPEND, REPLY_NOT_STORED, 0, NULL, 5, "Not stored."},
    {VERB_PREPEND, REPLY_NOT_STORED, 0, NULL, 5, "Not stored."},
    {VERB_SET, REPLY_NOT_STORED, 0, NULL, 5, "Not stored."},
    {VERB_ERROR, REPLY_CLIENT_ERROR, 0, NULL, 4, "Invalid arguments"},
    {VERB_ERROR, REPLY_SERVER_ERROR, DETAIL_TOO_LARGE, NULL, 3, "Too large."},
    {VERB_ERROR, REPLY_ERROR, DETAIL_UNKNOWN_COMMAND, NULL, 0x81, "Unknown command"},
    {VERB_STATS, REPLY_ERROR, 0, NULL, 1, "Not found"},
    {VERB_VERBOSITY, REPLY_ERROR, 0, NULL, 0x81, "Unknown command"},
    {VERB_SET, REPLY_CLIENT_ERROR, 0, "no space for key", 4, "no space for key"},
    {VERB_INCR, REPLY_CLIENT_ERROR, DETAIL_NON_NUMERIC, "non-numeric", 6,
     "Non-numeric server-side value for incr or decr"},
    {VERB_INCR, REPLY_CLIENT_ERROR, DETAIL_NON_NUMERIC, NULL, 6,
     "Non-numeric server-side value for incr or decr"},
    {VERB_SET, REPLY_SERVER_ERROR, DETAIL_OUT_OF_MEMORY, NULL, 0x82, "Out of memory"},
    {VERB_SET, REPLY_SERVER_ERROR, DETAIL_OUT_OF_MEMORY, "no memory", 0x82, "no memory"},
    {VERB_SET, REPLY_SERVER_ERROR, DETAIL_TOO_LARGE, "too long", 3, "Too large."},
    {VERB_SET, REPLY_SERVER_ERROR, DETAIL_BUSY, "journal busy", 0x85, "journal busy"},
    {VERB_SET, REPLY_SERVER_ERROR, DETAIL_BUSY, NULL, 0x85, "Busy"},
    {VERB_GET, REPLY_SERVER_ERROR, 0, "disk read failed", 0x84, "disk read failed"},
    {VERB_GET, REPLY_SERVER_ERROR, 0, NULL, 0x84, "Internal error"},
    {VERB_FLUSH_ALL, REPLY_CLIENT_ERROR, DETAIL_AUTH, NULL, 0x20, "Auth failure."},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* Each loud and quiet, with a token that only a success of a request that wants it shows. */
static void test_statuses(void **unused)
{
    (void)unused;
    struct buf out;
    buf_init(&out, OUT_MAX, NULL);
    for (size_t i = 0; i < 4 * ROWS; i++) {
        const struct row *row = &rows[i / 4];
        struct request request = request_of(row->verb, 0x42);
        bool good = row->code == 0;
        request.want_cas = i % 2 != 0;
        request.quiet = i % 4 < 2 ? QUIET_NO : QUIET_USUAL;
        const struct reply reply = {.status = row->status,
                                    .detail = row->detail,
                                    .value = row->value,
                                    .value_length = row->value == NULL ? 0 : strlen(row->value),
                                    .cas = 77};
        binary_codec()->compose(&out, &request, &reply);
        if (!good || request.quiet == QUIET_NO) {
            expect(&out,
                   &(struct expected){0x42, row->code, 0, 0, good && request.want_cas ? 77 : 0,
                                      row->body, strlen(row->body)});
        }
        expect_nothing(&out);
    }
    buf_fini(&out);
}

static void test_numbers(void **unused)
{
    (void)unused;
    static const struct {
        const char *digits;
        const char *bytes;
    } numbers[] = {
        {"0", "\0\0\0\0\0\0\0\0"},
        {"72623859790382856", "\1\2\3\4\5\6\7\x8"},
        {"18446744073709551615", "\xff\xff\xff\xff\xff\xff\xff\xff"},
    };
    struct request request = request_of(VERB_INCR, 0x05);
    struct buf out;
    buf_init(&out, OUT_MAX, NULL);
    request.want_cas = true;
    for (size_t i = 0; i < 3; i++) {
        const char *digits = numbers[i].digits;
        const struct reply reply = {
            .status = REPLY_NUMBER, .value = digits, .value_length = strlen(digits), .cas = i + 1};
        binary_codec()->compose(&out, &request, &reply);
        expect(&out, &(struct expected){0x05, 0, 0, 0, i + 1, numbers[i].bytes, 8});
        request.quiet = QUIET_USUAL;
        binary_codec()->compose(&out, &request, &reply);
        expect_nothing(&out);
        request.quiet = QUIET_NO;
    }
    buf_fini(&out);
}

/* Numbers of several requests are what each reply alone would be. */
static void test_numbers_together(void **unused)
{
    (void)unused;
    struct request requests[] = {request_of(VERB_INCR, 0x05), request_of(VERB_INCR, 0x15),
                                 request_of(VERB_INCR, 0x05)};
    static const uint64_t numbers[] = {258, 7, UINT64_MAX};
    static const uint64_t tokens[] = {77, 0, 88};
    const struct expected first = {0x05, 0, 0, 0, 77, BODY("\0\0\0\0\0\0\1\2")};
    const struct expected last = {0x05, 0, 0, 0, 88, BODY("\xff\xff\xff\xff\xff\xff\xff\xff")};
    struct buf out;
    requests[0].want_cas = requests[2].want_cas = true;
    requests[1].quiet = QUIET_USUAL;
    buf_init(&out, 3 * PROTOCOL_NUMBER_MAX, NULL);
    binary_codec()->compose_numbers(&out, requests, numbers, tokens, 3);
    expect(&out, &first);
    expect(&out, &last);
    expect_nothing(&out);
    buf_fini(&out);
    buf_init(&out, PROTOCOL_NUMBER_MAX, NULL);
    binary_codec()->compose_numbers(&out, requests, numbers, tokens, 3);
    expect_nothing(&out);
    buf_fini(&out);
}

/* Hits of one value and token are what each reply alone would be. */
static void test_values_alike(void **unused)
{
    (void)unused;
    enum { GET = BINARY_HEADER_BYTES + 6 };
    char asked[2 * GET + 1] = "____________\1\2\3\4________feed:1"
                              "____________\5\6\7\x8________feed:2";
    const struct request_key keys[] = {{&asked[GET - 6], 6}, {&asked[2 * GET - 6], 6}};
    const struct hit hit = {.value = "1", .value_length = 1, .cas = 99, .flags = 0x01020304};
    const struct found found = {.value = "1", .value_length = 1, .cas = 99};
    struct request request = request_of(VERB_GET, 0x0d);
    struct buf out, single;
    request.joined = request.want_cas = true;
    for (int k = 0; k < 2; k++) {
        request.binary.opcode = k == 0 ? 0x0d : 0x09; /* with the key, and without */
        asked[1] = asked[GET + 1] = (char)request.binary.opcode;
        buf_init(&out, OUT_MAX, NULL);
        buf_init(&single, OUT_MAX, NULL);
        assert_true(binary_codec()->compose_alike(&out, &request, keys, &found, 2, hit.flags));
        binary_codec()->compose_value(&single, &request, &keys[0], &hit);
        binary_codec()->compose_value(&single, &request, &keys[1], &hit);
        assert_int_equal(out.length, single.length);
        assert_memory_equal(out.data, single.data, out.length);
        buf_fini(&out);
        buf_fini(&single);
    }
}

static void test_touched(void **unused)
{
    (void)unused;
    const struct request request = request_of(VERB_TOUCH, 0x1c);
    const struct reply reply = {.status = REPLY_TOUCHED};
    struct buf out;
    buf_init(&out, OUT_MAX, NULL);
    binary_codec()->compose(&out, &request, &reply);
    expect(&out, &(struct expected){0x1c, 0, 4, 0, 0, BODY("\0\0\0\0")});
    expect_nothing(&out);
    buf_fini(&out);
}

/* The opcodes that answer with the key, and those that do not. */
static void test_hits_and_misses(void **unused)
{
    (void)unused;
    static const struct {
        uint8_t opcode;
        bool key;
        bool quiet;
    } gets[] = {
        {0x00, false, false}, {0x09, false, true}, {0x0c, true, false}, {0x0d, true, true},
        {0x1d, false, false}, {0x1e, false, true}, {0x23, true, false}, {0x24, true, true},
        {0x48, false, false}, {0x49, false, true},
    };
    const struct request_key key = {"feed:1", 6};
    const struct hit hit = {.value = "12,,30", .value_length = 6, .cas = 99, .flags = 0x01020304};
    struct buf out;
    buf_init(&out, OUT_MAX, NULL);
    for (size_t i = 0; i < sizeof(gets) / sizeof(gets[0]); i++) {
        uint8_t opcode = gets[i].opcode;
        struct request request = request_of(VERB_GET, opcode);
        request.want_cas = true;
        request.quiet = gets[i].quiet ? QUIET_USUAL : QUIET_NO;
        binary_codec()->compose_value(&out, &request, &key, &hit);
        binary_codec()->compose_end(&out, &request);
        if (gets[i].key) {
            expect(&out, &(struct expected){opcode, 0, 4, 6, 99, BODY("\1\2\3\4feed:112,,30")});
        } else {
            expect(&out, &(struct expected){opcode, 0, 4, 0, 99,
                                            BODY("\1\2\3\4"
                                                 "12,,30")});
        }
        expect_nothing(&out);
        binary_codec()->compose_miss(&out, &request, &key);
        binary_codec()->compose_end(&out, &request);
        if (!gets[i].quiet && gets[i].key) {
            expect(&out, &(struct expected){opcode, 1, 0, 6, 0, BODY("feed:1")});
        } else if (!gets[i].quiet) {
            expect(&out, &(struct expected){opcode, 1, 0, 0, 0, BODY("Not found")});
        }
        expect_nothing(&out);
    }
    buf_fini(&out);
}

static void test_empty_hit(void **unused)
{
    (void)unused;
    const struct request request = request_of(VERB_GET, 0x00);
    const struct request_key key = {"k", 1};
    const struct hit hit = {0};
    struct buf out;
    buf_init(&out, OUT_MAX, NULL);
    binary_codec()->compose_value(&out, &request, &key, &hit);
    expect(&out, &(struct expected){0x00, 0, 4, 0, 0, BODY("\0\0\0\0")});
    expect_nothing(&out);
    buf_fini(&out);
}

static void test_stats(void **unused)
{
    (void)unused;
    const struct request request = request_of(VERB_STATS, 0x10);
    struct buf out;
    buf_init(&out, 512, NULL);
    assert_true(binary_codec()->compose_stat(&out, &request, "pid", "77"));
    assert_true(binary_codec()->compose_stat(&out, &request, "empty", ""));
    binary_codec()->compose_stats_end(&out, &request);
    expect(&out, &(struct expected){0x10, 0, 0, 3, 0, BODY("pid77")});
    expect(&out, &(struct expected){0x10, 0, 0, 5, 0, BODY("empty")});
    expect(&out, &(struct expected){0x10, 0, 0, 0, 0, BODY("")});
    expect_nothing(&out);
    size_t packets = 0;
    while (binary_codec()->compose_stat(&out, &request, "pid", "77")) {
        packets++;
        assert_true(packets < 100);
    }
    assert_int_equal(packets, 512 / (BINARY_HEADER_BYTES + 5));
    assert_int_equal(out.length, packets * (BINARY_HEADER_BYTES + 5));
    buf_fini(&out);
}

/* REPLY_NONE says nothing; without room nothing is said, never half a packet. */
static void test_silence(void **unused)
{
    (void)unused;
    const struct request request = request_of(VERB_GET, 0x00);
    const struct request_key key = {"k", 1};
    const struct reply none = {.status = REPLY_NONE};
    const struct reply absent = {.status = REPLY_NOT_FOUND};
    const struct hit hit = {.value = "12", .value_length = 2};
    struct buf out;
    buf_init(&out, BINARY_HEADER_BYTES + 4 + 1, NULL);
    binary_codec()->compose(&out, &request, &none);
    expect_nothing(&out);
    binary_codec()->compose(&out, &request, &absent);
    binary_codec()->compose_value(&out, &request, &key, &hit);
    binary_codec()->compose_miss(&out, &request, &key);
    expect_nothing(&out);
    buf_fini(&out);
}

/* The largest replies fit what bytes_max says, in a buffer of exactly that. */
static void test_bytes_max(void **unused)
{
    (void)unused;
    char key_bytes[PROTOCOL_KEY_MAX];
    char value[2 * PROTOCOL_REPLY_VALUE_MAX];
    memset(key_bytes, 'k', sizeof(key_bytes));
    memset(value, '9', sizeof(value));
    const struct request request = request_of(VERB_GET, 0x0c);
    const struct request_key key = {key_bytes, sizeof(key_bytes)};
    const struct hit hit = {.value = value, .value_length = PROTOCOL_REPLY_VALUE_MAX};
    const struct reply reply = {
        .status = REPLY_CLIENT_ERROR, .value = value, .value_length = sizeof(value)};
    size_t max = binary_codec()->reply_bytes_max(&request);
    struct buf out;
    buf_init(&out, max, NULL);
    binary_codec()->compose_value(&out, &request, &key, &hit);
    assert_int_equal(out.length, max);
    buf_truncate(&out, 0);
    binary_codec()->compose(&out, &request, &reply);
    assert_int_equal(out.length, BINARY_HEADER_BYTES + PROTOCOL_REPLY_VALUE_MAX);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses),         cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_touched),          cmocka_unit_test(test_hits_and_misses),
        cmocka_unit_test(test_empty_hit),        cmocka_unit_test(test_stats),
        cmocka_unit_test(test_silence),          cmocka_unit_test(test_bytes_max),
        cmocka_unit_test(test_numbers_together), cmocka_unit_test(test_values_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
