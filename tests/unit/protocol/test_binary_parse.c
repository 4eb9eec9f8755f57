/*
 * test_binary_parse.c: packets to requests: every opcode, every wrong header, any split.
 *
 * Requests are compared as a trace: one line a request, with all that it says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/binary.h"
#include "tests/support/request_trace.h"

#define INPUT_MAX (1u << 20)
#define VALUE_MAX 100 /* of the batch: short, so that a value can be too long */
#define OPAQUE    0x01020304u
#define FLAGS_7   "\0\0\0\7"
#define EXPIRES_9 "\0\0\0\x9"
#define DELTA_3   "\0\0\0\0\0\0\0\3"
#define INITIAL_5 "\0\0\0\0\0\0\0\5"
#define NEVER     "\xff\xff\xff\xff"

/* ---- packets ---- */

struct input {
    char bytes[INPUT_MAX];
    size_t length;
};

static struct input input;

struct text {
    const char *bytes;
    size_t length;
};

#define NOTHING                                                                                    \
    {                                                                                              \
        "", 0                                                                                      \
    }
#define BYTES(literal)                                                                             \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }

struct wire {
    uint8_t opcode;
    struct text extras;
    struct text key;
    struct text value;
    uint64_t cas;
};

static void put(const void *bytes, size_t length)
{
    assert_true(length <= INPUT_MAX - input.length);
    memcpy(input.bytes + input.length, bytes, length);
    input.length += length;
}

static void put_number(uint64_t number, size_t bytes)
{
    while (bytes-- > 0) {
        unsigned char byte = (unsigned char)(number >> (8 * bytes));
        put(&byte, 1);
    }
}

static void put_header(uint8_t opcode, size_t extras, size_t key, size_t body, uint64_t cas)
{
    put_number(0x80, 1);
    put_number(opcode, 1);
    put_number(key, 2);
    put_number(extras, 1);
    put_number(0, 3);
    put_number(body, 4);
    put_number(OPAQUE, 4);
    put_number(cas, 8);
}

static void put_packet(const struct wire *wire)
{
    put_header(wire->opcode, wire->extras.length, wire->key.length,
               wire->extras.length + wire->key.length + wire->value.length, wire->cas);
    put(wire->extras.bytes, wire->extras.length);
    put(wire->key.bytes, wire->key.length);
    put(wire->value.bytes, wire->value.length);
}

static void put_noop(void)
{
    put_header(0x0a, 0, 0, 0, 0);
}

/* ---- requests as a trace ---- */

static struct request_trace trace;
static struct request_trace whole; /* what others are compared with */

static int open_traces(void **unused)
{
    (void)unused;
    request_trace_open(&trace, binary_codec());
    request_trace_open(&whole, binary_codec());
    trace.batch->value_max = VALUE_MAX;
    whole.batch->value_max = VALUE_MAX;
    return 0;
}

static int close_traces(void **unused)
{
    (void)unused;
    request_trace_close(&trace);
    request_trace_close(&whole);
    return 0;
}

static void trace_clear(struct request_trace *cleared)
{
    cleared->length = 0;
    cleared->text[0] = '\0';
}

/* All of the input at once; each answer will have the opcode and the opaque of its request. */
static enum protocol_result trace_all(size_t *consumed)
{
    trace_clear(&trace);
    enum protocol_result result = request_trace_whole(&trace, input.bytes, input.length, consumed);
    for (uint32_t i = 0; i < trace.batch->request_count; i++) {
        assert_memory_equal(&trace.batch->requests[i].binary.opaque, "\1\2\3\4", 4);
    }
    return result;
}

static void expect(const char *expected)
{
    size_t consumed;
    enum protocol_result result = trace_all(&consumed);
    assert_string_equal(trace.text, expected);
    assert_int_equal(result, PROTOCOL_MORE);
    assert_int_equal(consumed, input.length);
    input.length = 0;
}

/* ---- every opcode ---- */

struct row {
    struct wire wire;
    const char *trace;
};

static const struct row rows[] = {
    {{0x00, NOTHING, BYTES("k"), NOTHING, 0}, "get k +cas\n"},
    {{0x09, NOTHING, BYTES("k"), NOTHING, 0}, "get k +cas usual\n"},
    {{0x0c, NOTHING, BYTES("k"), NOTHING, 0}, "get k +cas\n"},
    {{0x0d, NOTHING, BYTES("k"), NOTHING, 0}, "get k +cas usual\n"},
    {{0x48, NOTHING, BYTES("k"), NOTHING, 0}, "get k +cas\n"},
    {{0x49, NOTHING, BYTES("k"), NOTHING, 0}, "get k +cas usual\n"},
    {{0x00, NOTHING, BYTES("k"), NOTHING, 7}, "get k +cas\n"},
    {{0x01, BYTES(FLAGS_7 EXPIRES_9), BYTES("k"), BYTES("12"), 0},
     "set k (12) flags=7 exptime=9 +cas\n"},
    {{0x01, BYTES("\xff\xff\xff\xff\x80\0\0\0"), BYTES("k"), NOTHING, 0},
     "set k () flags=4294967295 exptime=2147483648 +cas\n"},
    {{0x01, BYTES(FLAGS_7 EXPIRES_9), BYTES("k"), BYTES("12"), 0x0102030405060708},
     "cas k (12) flags=7 exptime=9 cas=72623859790382856 +cas\n"},
    {{0x02, BYTES(FLAGS_7 EXPIRES_9), BYTES("k"), BYTES("12"), 0},
     "add k (12) flags=7 exptime=9 +cas\n"},
    {{0x02, BYTES(FLAGS_7 EXPIRES_9), BYTES("k"), BYTES("12"), 1},
     "cas k (12) flags=7 exptime=9 cas=1 +cas\n"},
    {{0x03, BYTES(FLAGS_7 EXPIRES_9), BYTES("k"), BYTES("12"), 0},
     "replace k (12) flags=7 exptime=9 +cas\n"},
    {{0x03, BYTES(FLAGS_7 EXPIRES_9), BYTES("k"), BYTES("12"), 1},
     "cas k (12) flags=7 exptime=9 cas=1 +cas\n"},
    {{0x11, BYTES(FLAGS_7 EXPIRES_9), BYTES("k"), BYTES("12"), 0},
     "set k (12) flags=7 exptime=9 usual\n"},
    {{0x12, BYTES(FLAGS_7 EXPIRES_9), BYTES("k"), BYTES("12"), 0},
     "add k (12) flags=7 exptime=9 usual\n"},
    {{0x13, BYTES(FLAGS_7 EXPIRES_9), BYTES("k"), BYTES("12"), 1},
     "cas k (12) flags=7 exptime=9 cas=1 usual\n"},
    {{0x04, NOTHING, BYTES("k"), NOTHING, 0}, "delete k\n"},
    {{0x04, NOTHING, BYTES("k"), NOTHING, 1}, "delete k cas=1 +compare\n"},
    {{0x14, NOTHING, BYTES("k"), NOTHING, 0}, "delete k usual\n"},
    {{0x05, BYTES(DELTA_3 INITIAL_5 EXPIRES_9), BYTES("k"), NOTHING, 0},
     "incr k (3) exptime=9 initial=5 create +cas\n"},
    {{0x05, BYTES(DELTA_3 INITIAL_5 NEVER), BYTES("k"), NOTHING, 0},
     "incr k (3) never +cas\n"},
    {{0x05, BYTES(NEVER NEVER NEVER NEVER "\0\0\0\0"), BYTES("k"), NOTHING, 2},
     "incr k (18446744073709551615) cas=2 initial=18446744073709551615 create +cas +compare\n"},
    {{0x06, BYTES(DELTA_3 INITIAL_5 EXPIRES_9), BYTES("k"), NOTHING, 0},
     "decr k (3) exptime=9 initial=5 create +cas\n"},
    {{0x15, BYTES(DELTA_3 INITIAL_5 EXPIRES_9), BYTES("k"), NOTHING, 0},
     "incr k (3) exptime=9 initial=5 create usual\n"},
    {{0x16, BYTES(DELTA_3 INITIAL_5 EXPIRES_9), BYTES("k"), NOTHING, 0},
     "decr k (3) exptime=9 initial=5 create usual\n"},
    {{0x0e, NOTHING, BYTES("k"), BYTES("12"), 0}, "append k (12) +cas\n"},
    {{0x0f, NOTHING, BYTES("k"), BYTES("12"), 3}, "prepend k (12) cas=3 +cas +compare\n"},
    {{0x19, NOTHING, BYTES("k"), BYTES("12"), 3}, "append k (12) cas=3 +compare usual\n"},
    {{0x1a, NOTHING, BYTES("k"), BYTES("12"), 0}, "prepend k (12) usual\n"},
    {{0x07, NOTHING, NOTHING, NOTHING, 0}, "quit\n"},
    {{0x17, NOTHING, NOTHING, NOTHING, 0}, "quit usual\n"},
    {{0x08, NOTHING, NOTHING, NOTHING, 0}, "flush_all\n"},
    {{0x08, BYTES(EXPIRES_9), NOTHING, NOTHING, 0}, "flush_all delay=9\n"},
    {{0x18, BYTES(EXPIRES_9), NOTHING, NOTHING, 0}, "flush_all delay=9 usual\n"},
    {{0x0a, NOTHING, NOTHING, NOTHING, 0}, "noop\n"},
    {{0x0b, NOTHING, NOTHING, NOTHING, 0}, "version\n"},
    {{0x10, NOTHING, NOTHING, NOTHING, 0}, "stats\n"},
    {{0x10, NOTHING, BYTES("settings x"), NOTHING, 0}, "stats (settings x)\n"},
    {{0x1b, BYTES("\0\0\0\2"), NOTHING, NOTHING, 0}, "verbosity (2)\n"},
    {{0x1b, BYTES(NEVER), NOTHING, NOTHING, 0}, "verbosity (4294967295)\n"},
    {{0x1c, BYTES(EXPIRES_9), BYTES("k"), NOTHING, 0}, "touch k exptime=9 +cas\n"},
    {{0x1d, BYTES(EXPIRES_9), BYTES("k"), NOTHING, 0}, "gat k exptime=9 +cas\n"},
    {{0x1e, BYTES(EXPIRES_9), BYTES("k"), NOTHING, 0}, "gat k exptime=9 +cas usual\n"},
    {{0x23, BYTES(EXPIRES_9), BYTES("k"), NOTHING, 0}, "gat k exptime=9 +cas\n"},
    {{0x24, BYTES(EXPIRES_9), BYTES("k"), NOTHING, 0}, "gat k exptime=9 +cas usual\n"},
    {{0x20, NOTHING, NOTHING, NOTHING, 0}, "sasl_list\n"},
    {{0x21, NOTHING, BYTES("PLAIN"), BYTES("u:p"), 0}, "sasl PLAIN (u:p)\n"},
    {{0x22, NOTHING, BYTES("PLAIN"), NOTHING, 0}, "sasl PLAIN ()\n"},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void test_every_opcode(void **unused)
{
    (void)unused;
    bool seen[256] = {false};
    for (size_t i = 0; i < ROWS; i++) {
        put_packet(&rows[i].wire);
        expect(rows[i].trace);
        seen[rows[i].wire.opcode] = true;
    }
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        if (seen[opcode]) {
            continue;
        }
        put_header((uint8_t)opcode, 4, 3, 20, 0);
        put("eeeekey"
            "0123456789012",
            20);
        put_noop();
        expect("refuse error +swallow\nnoop\n");
        assert_int_equal(trace.batch->requests[0].binary.opcode, opcode);
        assert_int_equal(trace.batch->requests[0].detail, DETAIL_UNKNOWN_COMMAND);
    }
    put_header(0xff, 0, 0, 0, 0);
    expect("refuse error\n");
}

/* ---- wrong headers: each is answered, its body dropped, and the next packet found ---- */

struct header_row {
    uint8_t opcode;
    uint8_t extras;
    uint16_t key;
    uint32_t body;
};

static void test_wrong_headers(void **unused)
{
    (void)unused;
    static const struct header_row wrong[] = {
        {0x00, 0, 0, 0},     {0x00, 0, 251, 251}, {0x00, 4, 1, 5},      {0x00, 0, 1, 2},
        {0x00, 0, 2, 1},     {0x00, 0, 1, 0},     {0x00, 0, 65535, 0},  {0x00, 255, 1, 256},
        {0x00, 255, 1, 1},   {0x0d, 0, 0, 0},     {0x01, 8, 0, 8},      {0x01, 8, 251, 260},
        {0x01, 0, 1, 1},     {0x01, 7, 1, 9},     {0x01, 9, 1, 11},     {0x01, 255, 1, 300},
        {0x01, 8, 1, 8},     {0x01, 8, 1, 0},     {0x01, 8, 65535, 20}, {0x02, 4, 1, 9},
        {0x11, 0, 1, 3},     {0x04, 0, 0, 0},     {0x04, 0, 1, 2},      {0x04, 4, 1, 5},
        {0x05, 20, 0, 20},   {0x05, 20, 1, 22},   {0x05, 20, 1, 20},    {0x05, 19, 1, 20},
        {0x05, 0, 1, 1},     {0x15, 21, 1, 22},   {0x0e, 0, 0, 3},      {0x0e, 8, 1, 12},
        {0x0e, 0, 4, 3},     {0x07, 0, 0, 1},     {0x07, 0, 1, 1},      {0x07, 4, 0, 4},
        {0x08, 8, 0, 8},     {0x08, 4, 1, 5},     {0x08, 0, 0, 4},      {0x08, 3, 0, 3},
        {0x0a, 0, 0, 1},     {0x0b, 0, 1, 1},     {0x10, 4, 1, 5},      {0x10, 0, 1, 2},
        {0x10, 0, 251, 251}, {0x1b, 0, 0, 0},     {0x1b, 4, 1, 5},      {0x1c, 0, 1, 1},
        {0x1c, 4, 0, 4},     {0x1c, 4, 1, 6},     {0x23, 4, 1, 6},      {0x20, 0, 1, 1},
    };
    static const char body[300];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        put_header(wrong[i].opcode, wrong[i].extras, wrong[i].key, wrong[i].body, 0);
        put(body, wrong[i].body);
        put_noop();
        expect(wrong[i].body > 0 ? "refuse client [Invalid arguments] +swallow\nnoop\n"
                                 : "refuse client [Invalid arguments]\nnoop\n");
        assert_int_equal(trace.batch->requests[0].binary.opcode, wrong[i].opcode);
        assert_int_equal(trace.batch->requests[0].detail, DETAIL_NONE);
    }
}

/* A login of any shape is a login: who has logged in must not stay so for want of a key. */
static void test_wrong_logins(void **unused)
{
    (void)unused;
    static const struct header_row wrong[] = {
        {0x21, 0, 0, 0},
        {0x21, 0, 0, 3},
        {0x21, 4, 1, 5},
        {0x21, 0, 251, 255},
        {0x22, 0, 9, 3},
        {0x22, 255, 0, 0},
        {0x21, 0, 5, 5 + VALUE_MAX + 1},
    };
    static const char body[400];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        put_header(wrong[i].opcode, wrong[i].extras, wrong[i].key, wrong[i].body, 0);
        put(body, wrong[i].body);
        put_noop();
        expect(wrong[i].body > 0 ? "sasl +swallow\nnoop\n" : "sasl\nnoop\n");
        assert_int_equal(trace.batch->requests[0].binary.opcode, wrong[i].opcode);
    }
}

static void test_long_values(void **unused)
{
    (void)unused;
    static const struct header_row longs[] = {
        {0x01, 8, 1, 8 + 1 + VALUE_MAX + 1},
        {0x11, 8, 250, 8 + 250 + VALUE_MAX + 1},
        {0x12, 8, 250, 8 + 250 + VALUE_MAX + 1},
        {0x0e, 0, 1, 1 + VALUE_MAX + 1},
    };
    static char body[400];
    size_t consumed;
    memset(body, 'k', sizeof(body));
    for (size_t i = 0; i < sizeof(longs) / sizeof(longs[0]); i++) {
        put_header(longs[i].opcode, longs[i].extras, longs[i].key, longs[i].body, 0);
        put(body, longs[i].body);
        put_noop();
        char wanted[400];
        bool is_set = longs[i].opcode == 0x01 || longs[i].opcode == 0x11;
        snprintf(wanted, sizeof(wanted), "refuse server [Too large.]%s%.*s +swallow\nnoop\n",
                 is_set ? " " : "", is_set ? longs[i].key : 0, body); /* its key, to be forgotten */
        expect(wanted);
        assert_int_equal(trace.batch->requests[0].detail, DETAIL_TOO_LARGE);
    }
    put_header(0x0e, 0, 1, 1 + VALUE_MAX, 0);
    put("k", 1);
    put(body, VALUE_MAX);
    assert_int_equal(trace_all(&consumed), PROTOCOL_MORE);
    assert_int_equal(trace.batch->request_count, 1);
    assert_int_equal(trace.batch->requests[0].value_length, VALUE_MAX);
    input.length = 0;
}

/* A body of up to 4 GiB is dropped as it comes: nothing overflows, nothing is kept. */
static void expect_dropped(uint8_t opcode, uint32_t body_length)
{
    static const char junk[5000];
    struct protocol_state state = {0};
    struct request_batch *batch = trace.batch;
    input.length = 0;
    put_header(opcode, opcode == 0x01 ? 8 : 0, 1, body_length, 0);
    put(junk, sizeof(junk));
    assert_int_equal(request_trace_parse(&trace, &state, input.bytes, input.length), PROTOCOL_MORE);
    assert_int_equal(batch->consumed, input.length);
    assert_int_equal(batch->request_count, 1);
    assert_int_equal(batch->requests[0].verb, opcode == 0x21 ? VERB_SASL : VERB_ERROR);
    assert_int_equal(batch->after.swallow_bytes, body_length - sizeof(junk));
    /* as if all but the last byte had come */
    state = batch->after;
    state.swallow_bytes = 1;
    input.length = 0;
    put("x", 1);
    put_noop();
    assert_int_equal(request_trace_parse(&trace, &state, input.bytes, input.length), PROTOCOL_MORE);
    assert_int_equal(batch->request_count, 1);
    assert_int_equal(batch->requests[0].verb, VERB_NOOP);
    assert_int_equal(batch->after.swallow_bytes, 0);
    input.length = 0;
}

static void test_huge_bodies(void **unused)
{
    (void)unused;
    static const uint32_t lengths[] = {0x7fffffff, 0x80000000, 0xffffffe8, 0xffffffff};
    static const uint8_t opcodes[] = {0x00, 0x01, 0x05, 0x0e, 0x10, 0x21, 0x77};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        for (size_t j = 0; j < sizeof(opcodes); j++) {
            expect_dropped(opcodes[j], lengths[i]);
        }
    }
}

static void test_bad_magic(void **unused)
{
    (void)unused;
    static const unsigned char magics[] = {0x00, 'g', 0x7f, 0x81, 0xff};
    for (size_t i = 0; i < sizeof(magics); i++) {
        size_t consumed;
        put_noop();
        size_t first = input.length;
        put(&magics[i], 1);
        assert_int_equal(trace_all(&consumed), PROTOCOL_CLOSE);
        assert_string_equal(trace.text, "noop\n");
        assert_int_equal(consumed, first);
        input.length = 0;
    }
}

/* ---- splits, cuts, full batches ---- */

/* Every opcode, and refused packets between them. */
static void put_everything(void)
{
    static const char too_long[9 + VALUE_MAX + 1];
    input.length = 0;
    for (size_t i = 0; i < ROWS; i++) {
        put_packet(&rows[i].wire);
        if (i % 5 == 0) {
            put_header(0x77, 0, 3, 7, 0);
            put("unknown", 7);
        } else if (i % 5 == 2) {
            put_header(0x01, 8, 1, sizeof(too_long), 0);
            put(too_long, sizeof(too_long));
        }
    }
}

static void remember_whole(void)
{
    size_t consumed;
    put_everything();
    trace_clear(&whole);
    assert_int_equal(request_trace_whole(&whole, input.bytes, input.length, &consumed),
                     PROTOCOL_MORE);
    assert_int_equal(consumed, input.length);
}

/* In two pieces, cut at every place. */
static void test_any_split(void **unused)
{
    (void)unused;
    remember_whole();
    for (size_t first = 1; first < input.length; first++) {
        trace_clear(&trace);
        request_trace_split(&trace, input.bytes, input.length, first);
        assert_string_equal(trace.text, whole.text);
    }
    input.length = 0;
}

/* In pieces of any length; a server may stop at any request and parse again from there. */
static void test_any_cut(void **unused)
{
    (void)unused;
    struct test_random random = {test_seed()};
    remember_whole();
    for (uint32_t piece_max = 1; piece_max < 300; piece_max += 3) {
        trace_clear(&trace);
        request_trace_pieces(&trace, input.bytes, input.length, &random, piece_max);
        assert_string_equal(trace.text, whole.text);
    }
    input.length = 0;
}

/* More packets than a batch takes, each with a key and the longest number. */
static void test_full_batch(void **unused)
{
    (void)unused;
    static const struct wire wire = {0x05, BYTES(NEVER NEVER NEVER NEVER NEVER), BYTES("k"),
                                     NOTHING, 0};
    static const struct {
        enum protocol_result result;
        uint32_t requests;
    } parses[] = {{PROTOCOL_FULL, PROTOCOL_BATCH_REQUESTS},
                  {PROTOCOL_FULL, PROTOCOL_BATCH_REQUESTS},
                  {PROTOCOL_MORE, 3}};
    const struct request_batch *batch = trace.batch;
    struct protocol_state state = {0};
    size_t at = 0;
    for (size_t i = 0; i < PROTOCOL_BATCH_REQUESTS * 2 + 3; i++) {
        put_packet(&wire);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(request_trace_parse(&trace, &state, input.bytes + at, input.length - at),
                         parses[i].result);
        assert_int_equal(batch->request_count, parses[i].requests);
        assert_memory_equal(batch->requests[2].value, "18446744073709551615", 20);
        at += batch->consumed;
        state = batch->after;
    }
    assert_int_equal(at, input.length);
    input.length = 0;
}

/* Keys and values are the bytes given: nothing is copied. */
static void test_no_copies(void **unused)
{
    (void)unused;
    const struct request_batch *batch = trace.batch;
    const struct protocol_state state = {0};
    put_packet(&rows[7].wire);
    assert_int_equal(request_trace_parse(&trace, &state, input.bytes, input.length), PROTOCOL_MORE);
    assert_ptr_equal(batch->keys[0].bytes, input.bytes + BINARY_HEADER_BYTES + 8);
    assert_ptr_equal(batch->requests[0].value, input.bytes + BINARY_HEADER_BYTES + 8 + 1);
    assert_int_equal(batch->scratch_used, 0);
    input.length = 0;
}

static void put_get(uint8_t opcode, const char *key)
{
    const struct wire wire = {opcode, NOTHING, {key, strlen(key)}, NOTHING, 0};
    put_packet(&wire);
}

/* An increment that never creates and compares nothing is bare. */
static void test_bare(void **unused)
{
    (void)unused;
    static const struct {
        struct wire wire;
        bool bare;
    } increments[] = {
        {{0x05, BYTES(DELTA_3 INITIAL_5 NEVER), BYTES("k"), NOTHING, 0}, true},
        {{0x16, BYTES(DELTA_3 INITIAL_5 NEVER), BYTES("k"), NOTHING, 0}, true},
        {{0x05, BYTES(DELTA_3 INITIAL_5 NEVER), BYTES("k"), NOTHING, 1}, false},
        {{0x05, BYTES(DELTA_3 INITIAL_5 EXPIRES_9), BYTES("k"), NOTHING, 0}, false},
    };
    static const struct protocol_state state;
    static struct request_batch batch;
    for (size_t i = 0; i < sizeof(increments) / sizeof(*increments); i++) {
        input.length = 0;
        put_packet(&increments[i].wire);
        batch.value_max = VALUE_MAX;
        (void)binary_codec()->parse(&state, input.bytes, input.length, &batch);
        assert_int_equal(batch.request_count, 1);
        assert_int_equal(batch.requests[0].bare, increments[i].bare);
        assert_int_equal(batch.requests[0].create, i < 3 ? CREATE_NEVER : CREATE_INITIAL);
    }
}

/* Increments that follow each other are what each is alone: an initial value that none is made
 * with is none of it. One that is not whole is none. */
static void test_increments_in_a_row(void **unused)
{
    static const struct wire wires[] = {
        {0x05, BYTES(DELTA_3 INITIAL_5 NEVER), BYTES("a"), NOTHING, 0},
        {0x05, BYTES("\0\0\0\0\0\0\0\x9" INITIAL_5 NEVER), BYTES("b"), NOTHING, 0},
        {0x05, BYTES("\0\0\0\0\0\0\0\xa" DELTA_3 NEVER), BYTES("c"), NOTHING, 0},
        {0x05, BYTES(DELTA_3 INITIAL_5 NEVER), BYTES("d"), NOTHING, 7},
        {0x05, BYTES(DELTA_3 INITIAL_5 NEVER), BYTES("e"), NOTHING, 0},
        {0x05, BYTES(DELTA_3 INITIAL_5 EXPIRES_9), BYTES("f"), NOTHING, 0},
        {0x05, BYTES(DELTA_3 INITIAL_5 NEVER), BYTES("g"), NOTHING, 0},
        {0x05, BYTES(DELTA_3 INITIAL_5 NEVER), BYTES("hh"), NOTHING, 0},
        {0x16, BYTES(DELTA_3 INITIAL_5 NEVER), BYTES("ii"), NOTHING, 0},
        {0x16, BYTES(DELTA_3 INITIAL_5 NEVER), BYTES("jj"), NOTHING, 0},
        {0x16, BYTES(DELTA_3 INITIAL_5 NEVER), BYTES("kk"), NOTHING, 0},
    };
    struct request_trace row;
    size_t consumed;
    (void)unused;
    input.length = 0;
    for (size_t i = 0; i < sizeof(wires) / sizeof(*wires); i++) {
        put_packet(&wires[i]);
    }
    request_trace_open(&row, binary_codec());
    request_trace_whole(&row, input.bytes, input.length - 1, &consumed);
    assert_string_equal(row.text,
                        "incr a (3) never +cas\nincr b (9) never +cas\n"
                        "incr c (10) never +cas\n"
                        "incr d (3) cas=7 never +cas +compare\n"
                        "incr e (3) never +cas\n"
                        "incr f (3) exptime=9 initial=5 create +cas\n"
                        "incr g (3) never +cas\nincr hh (3) never +cas\n"
                        "decr ii (3) never usual\ndecr jj (3) never usual\n");
    static const uint32_t bare = 1 | 2 | 4 | 16 | 64 | 128 | 256 | 512;
    for (uint32_t i = 0; i < row.batch->request_count; i++) {
        const struct request *request = &row.batch->requests[i];
        assert_int_equal(request->bare, bare >> i & 1);
        assert_int_equal(request->binary.opcode, wires[i].opcode);
    }
    request_trace_close(&row);
    input.length = 0;
}

/* Gets of one opcode that are whole are one request, up to the most that are joined. */
static void test_joined(void **unused)
{
    (void)unused;
    trace.batch->joins = true;
    for (int i = 0; i < PROTOCOL_JOINED_MAX + 2; i++) {
        put_get(0x0d, "k");
    }
    put_get(0x0c, "a");
    put_get(0x0c, "bb");
    put_header(0x0c, 0, 1, 2, 0); /* with a value: refused */
    put("ab", 2);
    put_header(0x0c, 0, 250, 250, 0); /* unfinished */
    const struct protocol_state state = {0};
    assert_int_equal(request_trace_parse(&trace, &state, input.bytes, input.length), PROTOCOL_MORE);
    const struct request *requests = trace.batch->requests;
    assert_int_equal(trace.batch->request_count, 4);
    assert_int_equal(requests[0].keys, PROTOCOL_JOINED_MAX);
    assert_int_equal(requests[0].end, PROTOCOL_JOINED_MAX * 25);
    assert_true(requests[0].joined && requests[1].joined && requests[2].joined);
    assert_int_equal(requests[1].keys, 2);
    assert_int_equal(requests[2].keys, 2);
    struct request one;
    binary_codec()->part(trace.batch, &requests[2], 1, input.bytes, &one);
    assert_int_equal(one.begin, requests[2].begin + 25);
    assert_int_equal(one.end, requests[2].end);
    assert_int_equal(one.first_key, requests[2].first_key + 1);
    assert_int_equal(one.binary.opcode, 0x0c);
    assert_true(one.keys == 1 && !one.joined);
    trace.batch->joins = false;
    input.length = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_opcode),
        cmocka_unit_test(test_wrong_headers),
        cmocka_unit_test(test_wrong_logins),
        cmocka_unit_test(test_long_values),
        cmocka_unit_test(test_huge_bodies),
        cmocka_unit_test(test_bad_magic),
        cmocka_unit_test(test_any_split),
        cmocka_unit_test(test_any_cut),
        cmocka_unit_test(test_full_batch),
        cmocka_unit_test(test_no_copies),
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_bare),
        cmocka_unit_test(test_increments_in_a_row),
    };
    return cmocka_run_group_tests(tests, open_traces, close_traces);
}
