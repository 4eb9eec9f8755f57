/*
 * test_meta_compose.c: replies to meta requests: each status, each flag, what q silences, and room.
 *
 * A line is parsed by the codec, and the replies to its request composed by it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/text.h"

#define TEN       "0123456789"
#define FIFTY     TEN TEN TEN TEN TEN
#define KEY_248   FIFTY FIFTY FIFTY FIFTY TEN TEN TEN TEN "01234567"
#define OPAQUE_32 TEN TEN TEN "32"

static struct request_batch batch; /* too large for a stack */

/* The one request of a line. */
static const struct request *parse(const char *line)
{
    struct protocol_state state = {0};
    batch.value_max = PROTOCOL_VALUE_MAX;
    assert_int_equal(text_codec()->parse(&state, line, strlen(line), &batch), PROTOCOL_MORE);
    assert_int_equal(batch.request_count, 1);
    assert_int_not_equal(batch.requests[0].verb, VERB_ERROR);
    return &batch.requests[0];
}

static void expect(struct buf *out, const char *line, const char *text)
{
    if (out->length != strlen(text) ||
        (out->length > 0 && memcmp(out->data, text, out->length) != 0)) {
        print_error("to %s\nexpected: %s\ngot: %.*s\n", line, text, (int)out->length,
                    out->length > 0 ? out->data : "");
        fail();
    }
    buf_truncate(out, 0);
}

/* What a hit and a miss of a read are answered, the end of the get included. */
static void expect_read(const char *line, const struct hit *hit, const char *found,
                        const char *missed)
{
    struct buf out;
    const struct request *request = parse(line);
    buf_init(&out, 4096, NULL);
    text_codec()->compose_value(&out, request, &batch.keys[0], hit);
    text_codec()->compose_end(&out, request);
    assert_true(out.length <= text_codec()->reply_bytes_max(request));
    expect(&out, line, found);
    text_codec()->compose_miss(&out, request, &batch.keys[0]);
    text_codec()->compose_end(&out, request);
    expect(&out, line, missed);
    buf_fini(&out);
}

static void test_reads(void **unused)
{
    (void)unused;
    static const struct hit hit = {.value = "1234",
                                   .value_length = 4,
                                   .cas = 77,
                                   .flags = 9,
                                   .ttl_s = -1,
                                   .ttl_touched_s = -1};
    static const struct {
        const char *line;
        const char *found;
        const char *missed;
    } rows[] = {
        {"mg a\r\n", "HD\r\n", "EN\r\n"},
        {"mg a v\r\n", "VA 4\r\n1234\r\n", "EN\r\n"},
        {"mg a q\r\n", "HD\r\n", ""},
        {"mg a v q\r\n", "VA 4\r\n1234\r\n", ""},
        {"mg a k\r\n", "HD ka\r\n", "EN ka\r\n"},
        {"mg a Oxy v\r\n", "VA 4 Oxy\r\n1234\r\n", "EN Oxy\r\n"},
        {"mg a O\r\n", "HD O\r\n", "EN O\r\n"},
        {"mg a s\r\n", "HD s4\r\n", "EN\r\n"},
        {"mg a t\r\n", "HD t-1\r\n", "EN\r\n"},
        {"mg a f\r\n", "HD f9\r\n", "EN\r\n"},
        {"mg a c\r\n", "HD c77\r\n", "EN\r\n"},
        {"mg a s v t f c k O123\r\n", "VA 4 s4 t-1 f9 c77 ka O123\r\n1234\r\n", "EN ka O123\r\n"},
        {"mg a O123 k  c f t v s \r\n", "VA 4 O123 ka c77 f9 t-1 s4\r\n1234\r\n", "EN O123 ka\r\n"},
        {"mg a T30 t C5 P1 L2\r\n", "HD t-1\r\n", "EN\r\n"},
        {"mg a C77 v s c\r\n", "HD s4 c77\r\n", "EN\r\n"},
        {"mg a C77 s\r\n", "HD s4\r\n", "EN\r\n"},
        {"mg a v C76\r\n", "VA 4\r\n1234\r\n", "EN\r\n"},
        {"mg a C77 v k q\r\n", "HD ka\r\n", ""},
        {"mg YWI= b k v\r\n", "VA 4 kYWI= b\r\n1234\r\n", "EN kYWI= b\r\n"},
        {"mg YWI= k Ox b\r\n", "HD kYWI= b Ox\r\n", "EN kYWI= b Ox\r\n"},
        {"mg YWI= b\r\n", "HD\r\n", "EN\r\n"},
        {"mg v k\r\n", "HD kv\r\n", "EN kv\r\n"}, /* a key is no flag */
        {"mg b k\r\n", "HD kb\r\n", "EN kb\r\n"},
        {"me a\r\n", "ME a exp=-1 la=0 cas=77 fetch=yes cls=1 size=4\r\n", "EN\r\n"},
        {"me a k Ox q v\r\n", "ME a exp=-1 la=0 cas=77 fetch=yes cls=1 size=4\r\n", "EN\r\n"},
        {"me YWI= b\r\n", "ME YWI= exp=-1 la=0 cas=77 fetch=yes cls=1 size=4\r\n", "EN\r\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        expect_read(rows[i].line, &hit, rows[i].found, rows[i].missed);
    }
}

static void test_ttl_and_empty_value(void **unused)
{
    (void)unused;
    static const struct hit hit = {.value = "", .value_length = 0, .cas = 5, .ttl_s = 30};
    static const struct hit last = {.value = "", .value_length = 0, .cas = 5, .ttl_s = 0};
    expect_read("mg a v t s f\r\n", &hit, "VA 0 t30 s0 f0\r\n\r\n", "EN\r\n");
    expect_read("mg a t\r\n", &last, "HD t0\r\n", "EN\r\n");
    expect_read("me a\r\n", &hit, "ME a exp=30 la=0 cas=5 fetch=yes cls=1 size=0\r\n", "EN\r\n");
}

/* What plain values tell beside. */
static void test_plain(void **unused)
{
    (void)unused;
    struct hit hit = {.value = "x",
                      .value_length = 1,
                      .cas = 5,
                      .ttl_s = 30,
                      .ttl_touched_s = 60,
                      .ttl_made_s = 90,
                      .item_bytes = 48,
                      .idle_s = 4};
    expect_read("mg a t T60\r\n", &hit, "HD t30\r\n", "EN\r\n");
    expect_read("mg a T60 t\r\n", &hit, "HD t60\r\n", "EN\r\n");
    expect_read("mg a N90 t\r\n", &hit, "HD t30\r\n", "EN\r\n");
    expect_read("mg a l h v\r\n", &hit, "VA 1 l4 h0\r\nx\r\n", "EN\r\n");
    expect_read("me a\r\n", &hit, "ME a exp=30 la=4 cas=5 fetch=no cls=6 size=48\r\n", "EN\r\n");
    hit.fetched = true;
    hit.vivified = true;
    hit.won = true;
    expect_read("mg a h N90 t k\r\n", &hit, "HD h1 t90 ka W\r\n", "EN ka\r\n");
    expect_read("me a\r\n", &hit, "ME a exp=30 la=4 cas=5 fetch=yes cls=6 size=48\r\n", "EN\r\n");
    hit.stale = true;
    expect_read("mg a v\r\n", &hit, "VA 1 X W\r\nx\r\n", "EN\r\n");
    hit.won = false;
    hit.sent = true;
    expect_read("mg a v\r\n", &hit, "VA 1 Z X\r\nx\r\n", "EN\r\n");
}

struct change_row {
    const char *line;
    enum reply_status status;
    const char *text;
};

static void expect_changes(const struct change_row *rows, size_t n)
{
    struct buf out;
    buf_init(&out, 4096, NULL);
    for (size_t i = 0; i < n; i++) {
        bool number = rows[i].status == REPLY_NUMBER;
        bool changed = number || rows[i].status == REPLY_STORED;
        const struct reply reply = {.ttl_s = -1,
                                    .ttl_touched_s = -1,
                                    .ttl_made_s = -1,
                                    .status = rows[i].status,
                                    .value = number ? "14" : NULL,
                                    .value_length = number ? 2 : 0,
                                    .cas = changed ? 88 : 0};
        const struct request *request = parse(rows[i].line);
        text_codec()->compose(&out, request, &reply);
        assert_true(out.length <= text_codec()->reply_bytes_max(request));
        expect(&out, rows[i].line, rows[i].text);
    }
    buf_fini(&out);
}

#define EXPECT_CHANGES(rows) expect_changes(rows, sizeof(rows) / sizeof(rows)[0])

static void test_sets(void **unused)
{
    (void)unused;
    static const struct change_row rows[] = {
        {"ms a 3\r\nabc\r\n", REPLY_STORED, "HD\r\n"},
        {"ms a 3\r\nabc\r\n", REPLY_NOT_STORED, "NS\r\n"},
        {"ms a 3 C5\r\nabc\r\n", REPLY_EXISTS, "EX\r\n"},
        {"ms a 3 C5\r\nabc\r\n", REPLY_NOT_FOUND, "NF\r\n"},
        {"ms a 3 q\r\nabc\r\n", REPLY_STORED, ""},
        {"ms a 3 q k\r\nabc\r\n", REPLY_NOT_STORED, "NS ka\r\n"},
        {"ms a 3 q k\r\nabc\r\n", REPLY_EXISTS, "EX ka\r\n"},
        {"ms a 3 q O1\r\nabc\r\n", REPLY_NOT_FOUND, "NF O1\r\n"},
        {"ms a 3 k O1 c s F7 T0\r\nabc\r\n", REPLY_STORED, "HD ka O1 c88 s3\r\n"},
        {"ms a 3 s c O1 k\r\nabc\r\n", REPLY_NOT_STORED, "NS s3 c0 O1 ka\r\n"},
        {"ms YWI= 3 b k\r\nabc\r\n", REPLY_STORED, "HD kYWI= b\r\n"},
        {"ms a 3 MA k\r\nabc\r\n", REPLY_STORED, "HD ka\r\n"},
    };
    EXPECT_CHANGES(rows);
}

static void test_deletes(void **unused)
{
    (void)unused;
    static const struct change_row rows[] = {
        {"md a\r\n", REPLY_DELETED, "HD\r\n"},
        {"md a\r\n", REPLY_NOT_FOUND, "NF\r\n"},
        {"md a C5\r\n", REPLY_EXISTS, "EX\r\n"},
        {"md a q\r\n", REPLY_DELETED, ""},
        {"md a q\r\n", REPLY_NOT_FOUND, "NF\r\n"},
        {"md a q k C5\r\n", REPLY_EXISTS, "EX ka\r\n"},
        {"md YWI= O1 k b\r\n", REPLY_DELETED, "HD O1 kYWI= b\r\n"},
        {"md a k O1\r\n", REPLY_NOT_FOUND, "NF ka O1\r\n"},
    };
    EXPECT_CHANGES(rows);
}

static void test_arithmetic(void **unused)
{
    (void)unused;
    static const struct change_row rows[] = {
        {"ma a\r\n", REPLY_NUMBER, "HD\r\n"},
        {"ma a v\r\n", REPLY_NUMBER, "VA 2\r\n14\r\n"},
        {"ma a v k O1 t c D3 N0 J1 MI\r\n", REPLY_NUMBER, "VA 2 ka O1 t-1 c88\r\n14\r\n"},
        {"ma a c t\r\n", REPLY_NUMBER, "HD c88 t-1\r\n"},
        {"ma YWI= b v k\r\n", REPLY_NUMBER, "VA 2 kYWI= b\r\n14\r\n"},
        {"ma a q\r\n", REPLY_NUMBER, ""},
        {"ma a q v\r\n", REPLY_NUMBER, ""},
        {"ma a v t c k O1\r\n", REPLY_NOT_FOUND, "NF ka O1\r\n"},
        {"ma a v t c k O1 C5\r\n", REPLY_EXISTS, "EX ka O1\r\n"},
        {"ma a q\r\n", REPLY_NOT_FOUND, "NF\r\n"},
        {"ma a q C5\r\n", REPLY_EXISTS, "EX\r\n"},
    };
    EXPECT_CHANGES(rows);
}

/* Hits of one value are what each reply alone would be; with flags that ask for more: none. */
static void test_values_alike(void **unused)
{
    (void)unused;
    static const char *const lines[] = {"mg " KEY_248 " v k q\r\n", "mg a v k\r\n", "mg ab v\r\n"};
    const struct hit hit = {.value = "1", .value_length = 1, .ttl_s = -1};
    const struct found found = {.value = "1", .value_length = 1};
    struct buf out, single;
    buf_init(&out, 4096, NULL);
    buf_init(&single, 4096, NULL);
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        const struct request *request = parse(lines[i]);
        const struct request_key keys[] = {batch.keys[0], batch.keys[0]};
        assert_true(text_codec()->compose_alike(&out, request, keys, &found, 2, 0));
        text_codec()->compose_value(&single, request, &keys[0], &hit);
        text_codec()->compose_value(&single, request, &keys[1], &hit);
        assert_int_equal(out.length, single.length);
        assert_memory_equal(out.data, single.data, out.length);
    }
    size_t length = out.length;
    assert_false(
        text_codec()->compose_alike(&out, parse("mg a v c\r\n"), batch.keys, &found, 1, 0));
    assert_int_equal(out.length, length);
    buf_fini(&out);
    buf_fini(&single);
}

/* Numbers of several requests are what each reply alone would be, in any mix with text. */
static void test_numbers_together(void **unused)
{
    (void)unused;
    static const char lines[] = "ma a v\r\nma b v q\r\nincr c 1\r\nma d v\r\nma e v\r\nma f v\r\n";
    static const uint64_t numbers[] = {999999999, 5, 7, 1, 1000000000, UINT64_MAX};
    static const struct protocol_state state;
    enum { COUNT = sizeof(numbers) / sizeof(*numbers) };
    struct buf out;
    assert_int_equal(text_codec()->parse(&state, lines, strlen(lines), &batch), PROTOCOL_MORE);
    assert_int_equal(batch.request_count, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(batch.requests[i].bare);
    }
    buf_init(&out, COUNT * PROTOCOL_NUMBER_MAX, NULL);
    text_codec()->compose_numbers(&out, batch.requests, numbers, NULL, COUNT);
    expect(&out, lines,
           "VA 9\r\n999999999\r\n7\r\nVA 1\r\n1\r\nVA 10\r\n1000000000\r\nVA "
           "20\r\n18446744073709551615\r\n");
    buf_fini(&out);
}

/* Errors are lines of the text dialect, whatever the flags ask for; q silences none. */
static void test_errors(void **unused)
{
    (void)unused;
    static const char *const lines[] = {"mg a k Ox q\r\n", "ms a 3 k Ox q\r\nabc\r\n",
                                        "md a k Ox q\r\n", "ma a v k Ox q\r\n", "me a\r\n"};
    struct buf out;
    buf_init(&out, 4096, NULL);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        const struct request *request = parse(lines[i]);
        struct reply reply = {
            .status = REPLY_CLIENT_ERROR, .value = "no space for key", .value_length = 16};
        text_codec()->compose(&out, request, &reply);
        expect(&out, lines[i], "CLIENT_ERROR no space for key\r\n");
        reply.status = REPLY_SERVER_ERROR;
        text_codec()->compose(&out, request, &reply);
        expect(&out, lines[i], "SERVER_ERROR no space for key\r\n");
        assert_true(text_codec()->reply_bytes_max(request) >= PROTOCOL_ERROR_MAX);
    }
    buf_fini(&out);
}

/* The longest replies fit what bytes_max says; where there is no room, nothing is said. */
static void test_room(void **unused)
{
    (void)unused;
    static const char *const lines[] = {
        "mg " KEY_248 " b v s t f c k T5 O" OPAQUE_32 "\r\n",
        "ma " KEY_248 " b v t c k D5 O" OPAQUE_32 "\r\n",
        "me " KEY_248 " b\r\n",
    };
    char value[PROTOCOL_REPLY_VALUE_MAX];
    memset(value, '9', sizeof(value));
    const struct hit hit = {.value = value,
                            .value_length = sizeof(value),
                            .cas = UINT64_MAX,
                            .flags = UINT32_MAX,
                            .ttl_s = INT32_MAX};
    const struct reply reply = {
        .status = REPLY_NUMBER, .value = value, .value_length = sizeof(value), .cas = UINT64_MAX};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        const struct request *request = parse(lines[i]);
        size_t max = text_codec()->reply_bytes_max(request);
        const size_t rooms[] = {max, 64};
        assert_true(max < 2048);
        for (size_t k = 0; k < 2; k++) {
            struct buf out;
            buf_init(&out, rooms[k], NULL);
            if (request->verb == VERB_INCR) {
                text_codec()->compose(&out, request, &reply);
            } else {
                text_codec()->compose_value(&out, request, &batch.keys[0], &hit);
            }
            assert_int_equal(out.length > 248, k == 0);
            buf_truncate(&out, 0);
            text_codec()->compose_miss(&out, request, &batch.keys[0]);
            assert_int_equal(out.length > 0, k == 0);
            buf_fini(&out);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_ttl_and_empty_value),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_deletes),
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_numbers_together),
        cmocka_unit_test(test_values_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
