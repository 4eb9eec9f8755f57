/*
 * test_text_parse.c: bytes to requests: every verb, every row of the limits, any split, any cut.
 *
 * Requests are compared as a trace: one line a request, with what the request says. The meta
 * commands are tested in test_meta_parse.c; any_split has some of them too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/text.h"
#include "tests/support/random.h"
#include "tests/support/request_trace.h"

#define KEY_250                                                                                    \
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"  \
    "1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901"  \
    "23456789012345678901234567890123456789012345678901234567890123456789"
#define KEY_251    KEY_250 "k"
#define BAD_FORMAT "refuse client [bad command line format]"

static struct request_batch batch; /* too large for a stack */

static enum protocol_result parse(const struct protocol_state *state, const char *bytes,
                                  size_t length)
{
    struct request_trace trace = {.codec = text_codec(), .batch = &batch};
    batch.value_max = PROTOCOL_VALUE_MAX;
    return request_trace_parse(&trace, state, bytes, length);
}

struct row {
    const char *input;
    const char *trace;
};

static void expect(const char *input, const char *expected, enum protocol_result result,
                   size_t consumed)
{
    request_trace_expect(text_codec(), input, expected, result, consumed);
}

static void expect_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        expect(rows[i].input, rows[i].trace, PROTOCOL_MORE, strlen(rows[i].input));
    }
}

#define EXPECT_ROWS(rows) expect_rows(rows, sizeof(rows) / sizeof(rows)[0])

static void test_reads(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"get a\r\n", "get a\n"},
        {"get a\n", "get a\n"},
        {"get  a   bc \r\n", "get a bc\n"},
        {"  get a\r\n", "get a\n"},
        {"get a\r\r\n", "get a\r\n"},
        {"get \t\x01\x80 b\r\n", "get \t\x01\x80 b\n"},
        {"get noreply\r\n", "get noreply\n"},
        {"gets a b c\r\n", "get a b c +cas\n"},
        {" gets a\r\n", "get a +cas\n"},
        {"get " KEY_250 "\r\n", "get " KEY_250 "\n"},
        {"get a\r\nget b\r\n", "get a\nget b\n"},
        {"gat 5 a b\r\n", "gat a b exptime=5\n"},
        {"gat 0 a\r\n", "gat a\n"},
        {"gats -1 a\r\n", "gat a exptime=-1 +cas\n"},
        {"gat x a\r\n", "refuse client [invalid exptime argument]\n"},
        {"gat 2147483648 a\r\n", "refuse client [invalid exptime argument]\n"},
        {"gat 0 a " KEY_251 "\r\n", BAD_FORMAT "\n"},
        {"gat\r\n", "refuse error\n"},
        {"gat 0\r\n", "refuse error\n"},
        {"touch a 0\r\n", "touch a\n"},
        {"touch a 10 noreply\r\n", "touch a exptime=10 quiet\n"},
        {"touch a 10 x\r\n", "touch a exptime=10\n"},
        {"touch a b\r\n", "refuse client [invalid exptime argument]\n"},
        {"touch a b noreply\r\n", "refuse client [invalid exptime argument] quiet\n"},
        {"touch " KEY_251 " 0\r\n", BAD_FORMAT "\n"},
        {"touch\r\n", "refuse error\n"},
        {"touch a\r\n", "refuse error\n"},
        {"touch a 0 0 0\r\n", "refuse error\n"},
    };
    EXPECT_ROWS(rows);
}

static void test_storage(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"set a 0 0 1\r\nx\r\n", "set a (x)\n"},
        {"set a 0 0 1\nx\r\n", "set a (x)\n"},
        {" set  a 0 0  1 \r\nx\r\n", "set a (x)\n"},
        {"set a 0 0 0\r\n\r\n", "set a ()\n"},
        {"set a 4294967295 -1 3\r\na\nb\r\n", "set a (a\nb) flags=4294967295 exptime=-1\n"},
        {"set a +5 +7 +1\r\nx\r\n", "set a (x) flags=5 exptime=7\n"},
        {"set a 0 -2147483648 01\r\nx\r\n", "set a (x) exptime=-2147483648\n"},
        {"set a 0 2147483647 1 noreply\r\nx\r\n", "set a (x) exptime=2147483647 quiet\n"},
        {"set a 0 0 1 foo\r\nx\r\n", "set a (x)\n"},
        {"set " KEY_250 " 0 0 1\r\nx\r\n", "set " KEY_250 " (x)\n"},
        {"add a 0 0 1\r\nx\r\n", "add a (x)\n"},
        {"replace a 0 0 1 noreply\r\nx\r\n", "replace a (x) quiet\n"},
        {"append a 0 0 1\r\nx\r\n", "append a (x)\n"},
        {"prepend a 0 0 1\r\nx\r\n", "prepend a (x)\n"},
        {"cas a 0 0 1 5\r\nx\r\n", "cas a (x) cas=5\n"},
        {"cas a 0 0 1 18446744073709551615 noreply\r\nx\r\n",
         "cas a (x) cas=18446744073709551615 quiet\n"},
        {"cas a 0 0 1 5 6\r\nx\r\n", "cas a (x) cas=5\n"},
        /* words too many: not looked at, but for a noreply at the end */
        {"set a 0 0 1 noreply foo\r\nx\r\n", "set a (x)\n"},
        {"set a 0 0 1 2 noreply\r\nx\r\n", "set a (x) quiet\n"},
        {"set a 0 0 1 2 3 4 5 6 7 8 noreply\r\nx\r\n", "set a (x) quiet\n"},
        {"cas a 0 0 1 5 6 7 8\r\nx\r\n", "cas a (x) cas=5\n"},
        /* too few: nothing says how long a block would be */
        {"set\r\n", "refuse error\n"},
        {"set a 0 0\r\n", "refuse error\n"},
        {"cas a 0 0\r\n", "refuse error\n"},
    };
    EXPECT_ROWS(rows);
}

static void test_storage_refused(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"set " KEY_251 " 0 0 1\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"set " KEY_251 " 0 0 1 noreply\r\nx\r\nmn\r\n", BAD_FORMAT " quiet +swallow\nnoop\n"},
        {"set a -1 0 1\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"set a 4294967296 0 1\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"set a 1x 0 1\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"set a + 0 1\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"add a 0 x 1\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"add a 0 2147483648 1\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"add a 0 -2147483649 1\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"cas a 0 0 1\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"cas a 0 0 1 x\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"cas a 0 0 1 -5\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"cas a 0 0 1 18446744073709551616\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"cas a 0 0 1 noreply\r\nx\r\nmn\r\n", BAD_FORMAT " quiet +swallow\nnoop\n"},
        /* a length nobody can read: nothing is swallowed */
        {"set a 0 0 x\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        {"set a 0 0 -1\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        {"set a 0 0 1x\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        {"set a 0 0 2147483647\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        {"set a 0 0 99999999999999999999999\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        {"set " KEY_251 " 0 0 x\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        {"set a 0 0 -1 noreply\r\nmn\r\n", BAD_FORMAT " quiet\nnoop\n"},
        {"cas a 0 0 x 5\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        /* a block that does not end in CRLF: its length and two bytes are taken */
        {"set a 0 0 1\r\nxyz\r\n", "refuse client [bad data chunk]\nrefuse error\n"},
        {"set a 0 0 1\r\nxyzmn\r\n", "refuse client [bad data chunk]\nnoop\n"},
        {"set a 0 0 1\r\nx\nymn\r\n", "refuse client [bad data chunk]\nnoop\n"},
        {"set a 0 0 1 noreply\r\nxyzmn\r\n", "refuse client [bad data chunk] quiet\nnoop\n"},
        {"set a 0 0 2\r\nx\r\nymn\r\n", "refuse client [bad data chunk]\nnoop\n"},
    };
    EXPECT_ROWS(rows);
}

static void test_numbers_and_delete(void **unused)
{
    (void)unused;
    const struct row rows[] = {
        {"incr a 1\r\n", "incr a (1)\n"},
        {"decr a 18446744073709551616\r\n", "decr a (18446744073709551616)\n"},
        {"incr a 1,,3,\r\n", "incr a (1,,3,)\n"},
        {"incr a x noreply\r\n", "incr a (x) quiet\n"},
        {"incr a noreply\r\n", "incr a (noreply) quiet\n"},
        {"incr a 1 2\r\n", "incr a (1)\n"},
        {"incr " KEY_251 " 1\r\n", BAD_FORMAT "\n"},
        {"decr " KEY_251 " 1 noreply\r\n", BAD_FORMAT " quiet\n"},
        {"incr\r\n", "refuse error\n"},
        {"incr a\r\n", "refuse error\n"},
        {"incr a 1 2 3\r\n", "refuse error\n"},
        {"incr a 1 noreply x\r\n", "refuse error\n"},
        {"set a 1\n", "refuse error\n"},
        {"delete a\r\n", "delete a\n"},
        {"delete noreply\r\n", "delete noreply\n"},
        {"delete a 0\r\n", "delete a\n"},
        {"delete a noreply\r\n", "delete a quiet\n"},
        {"delete a 0 noreply\r\n", "delete a quiet\n"},
        {"delete a 10\r\n", "delete a\n"},
        {"delete a noreplY\r\n", "delete a\n"},
        {"delete a 0 0\r\n", "delete a\n"},
        {"delete a 10 noreply\r\n", "delete a quiet\n"},
        {"delete a b c\r\n", "delete a\n"},
        {"delete a b c d\r\n", "refuse error\n"},
        {"delete " KEY_251 "\r\n", BAD_FORMAT "\n"},
        {"delete\r\n", "refuse error\n"},
    };
    EXPECT_ROWS(rows);
}

static void test_other_verbs(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"flush_all\r\n", "flush_all\n"},
        {"flush_all 0\r\n", "flush_all\n"},
        {"flush_all -1\r\n", "flush_all\n"},
        {"flush_all 10 noreply\r\n", "flush_all delay=10 quiet\n"},
        {"flush_all noreply\r\n", "flush_all quiet\n"},
        {"flush_all 1 2\r\n", "flush_all delay=1\n"},
        {"flush_all x\r\n", "refuse client [invalid exptime argument]\n"},
        {"flush_all x noreply\r\n", "refuse client [invalid exptime argument] quiet\n"},
        {"flush_all 1 2 3\r\n", "refuse error\n"},
        {"verbosity\r\n", "refuse error\n"},
        {"verbosity 1\r\n", "verbosity (1)\n"},
        {"verbosity 1 noreply\r\n", "verbosity (1 noreply) quiet\n"},
        {"verbosity 1 2\r\n", "verbosity (1 2)\n"},
        {"verbosity x\r\n", BAD_FORMAT "\n"},
        {"verbosity noreply\r\n", BAD_FORMAT " quiet\n"},
        {"verbosity 1 2 3 4\r\n", "refuse error\n"},
        {"version\r\n", "version\n"},
        {"version noreply\r\n", "version (noreply)\n"},
        {"stats\r\n", "stats\n"},
        {"stats \r\n", "stats\n"},
        {"stats  settings x \r\n", "stats (settings x)\n"},
        {"stats noreply\r\n", "stats (noreply)\n"},
        {"mn\r\n", "noop\n"},
        {"quit\r\n", "quit\n"},
        {"quit foo\r\n", "quit (foo)\n"},
        {"lru_crawler metadump all\r\n", "crawler (metadump all)\n"},
        {"lru_crawler\r\n", "crawler\n"},
        {"shutdown\r\n", "shutdown\n"},
        {"shutdown graceful\r\n", "shutdown (graceful)\n"},
    };
    EXPECT_ROWS(rows);
}

static void test_unknown(void **unused)
{
    (void)unused;
    static const char *const lines[] = {
        "",           " ",
        "get",        "get ",
        "gets",       "gets ",
        "GET a",      "GET",
        "Get a",      "SET a",
        "geta",       "gett",
        "ge",         "setx",
        "incrx a 1",  "xx noreply",
        "\x80xyz",    "lru x",
        "slabs",      "watch",
        "extstore",   "cache_memlimit 64",
        "mg",         "ms",
        "md",         "ma",
        "mx a",       "get\ta",
        "verbosit 1", "get_all HTTP/1.1 x",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        char line[64];
        snprintf(line, sizeof(line), "%s\r\nmn\r\n", lines[i]);
        expect(line, "refuse error\nnoop\n", PROTOCOL_MORE, strlen(line));
        snprintf(line, sizeof(line), "%s\nmn\n", lines[i]);
        expect(line, "refuse error\nnoop\n", PROTOCOL_MORE, strlen(line));
    }
}

static void test_bad_keys_of_a_get(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"get " KEY_251 "\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        {"get a " KEY_251 " b\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        {"gets " KEY_251 " " KEY_251 "\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        {"get a " KEY_250 " " KEY_251 "\nmn\r\n", BAD_FORMAT "\nnoop\n"},
    };
    EXPECT_ROWS(rows);
}

static void test_http_closes(void **unused)
{
    (void)unused;
    static const char *const lines[] = {
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /x HTTP/1.0\r\n",
        "HEAD / HTTP/1.1\n",
        "PUT /y HTTP/1.1\r\n",
        "PRI * HTTP/2.0\r\n\r\n",
        "GET /\r\n",
        "GET http://a/b c\r\n",
        "POST\r\n",
        "PUT a\r\n",
        "OPTIONS a b c d e f g h i j k HTTP/1.1\r\n",
        "PROPFIND a b c d e f g h i j k HTTP/1.1 \r\n",
        "DELETE /a b c d e f g h i j k\r\n",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        char input[128];
        expect(lines[i], "", PROTOCOL_CLOSE, 0);
        snprintf(input, sizeof(input), "mn\r\n%s", lines[i]);
        expect(input, "noop\n", PROTOCOL_CLOSE, 4);
    }
    expect("get / HTTP/1.1\r\n", "get / HTTP/1.1\n", PROTOCOL_MORE, 16);
    expect("LIST HTTP/ 1\r\n", "refuse error\n", PROTOCOL_MORE, 14);
    expect("HTTP/1.1 GET\r\n", "refuse error\n", PROTOCOL_MORE, 14);
    expect("List / HTTP/1.1\r\n", "refuse error\n", PROTOCOL_MORE, 17);
}

static void test_incomplete(void **unused)
{
    (void)unused;
    static const char *const inputs[] = {
        "",
        "g",
        "get",
        "get ",
        "get a",
        "get a\r",
        "gets a b ",
        "get " KEY_251 " ",
        "incr a 1",
        "set a 0 0 3\r\n",
        "set a 0 0 3\r\nab",
        "set a 0 0 3\r\nabc",
        "set a 0 0 3\r\nabc\r",
        "set a 0 0 1\r\nxy",
    };
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        char both[512];
        expect(inputs[i], "", PROTOCOL_MORE, 0);
        snprintf(both, sizeof(both), "mn\r\n%s", inputs[i]);
        expect(both, "noop\n", PROTOCOL_MORE, 4);
    }
}

/* A line of `length` bytes, its end included: `begin`, then filler. The caller frees it. */
static char *long_line(const char *begin, const char *filler, size_t length, const char *end)
{
    char *line = malloc(length + 1);
    assert_non_null(line);
    size_t at = strlen(begin);
    memcpy(line, begin, at);
    while (at < length - strlen(end)) {
        line[at] = filler[at % strlen(filler)];
        at++;
    }
    memcpy(line + at, end, strlen(end) + 1);
    return line;
}

static void test_long_lines(void **unused)
{
    (void)unused;
    char *line = long_line("xx ", "a ", PROTOCOL_LINE_MAX, "\r\n");
    expect(line, "refuse error\n", PROTOCOL_MORE, PROTOCOL_LINE_MAX);
    free(line);
    line = long_line("xx ", "a ", PROTOCOL_LINE_MAX + 1, "\r\n");
    expect(line, "", PROTOCOL_CLOSE, 0);
    free(line);
    line = long_line("xx ", "a ", PROTOCOL_LINE_MAX, "");
    expect(line, "", PROTOCOL_CLOSE, 0);
    free(line);
    line = long_line("xx ", "a ", PROTOCOL_LINE_MAX - 1, "");
    expect(line, "", PROTOCOL_MORE, 0);
    free(line);
    line = long_line("gat 0 ", "a ", PROTOCOL_LINE_MAX + 1, "\r\n");
    expect(line, "", PROTOCOL_CLOSE, 0);
    free(line);
    line = long_line(" get ", "a ", PROTOCOL_LINE_MAX + 1, "\r\n");
    expect(line, "", PROTOCOL_CLOSE, 0);
    free(line);
}

static void test_long_get_lines(void **unused)
{
    (void)unused;
    static const char *const begins[] = {"get ", "gets "};
    static const char too_long[] = "refuse client [line too long]\n";
    for (size_t i = 0; i < 2; i++) {
        char *line = long_line(begins[i], "a", PROTOCOL_GET_LINE_MAX, "\r\n");
        expect(line, BAD_FORMAT "\n", PROTOCOL_MORE, PROTOCOL_GET_LINE_MAX);
        free(line);
        line = long_line(begins[i], "a", PROTOCOL_GET_LINE_MAX + 1, "\r\n");
        expect(line, too_long, PROTOCOL_CLOSE, PROTOCOL_GET_LINE_MAX);
        free(line);
        line = long_line(begins[i], "a ", PROTOCOL_GET_LINE_MAX + 1, "\n");
        expect(line, too_long, PROTOCOL_CLOSE, PROTOCOL_GET_LINE_MAX);
        free(line);
        line = long_line(begins[i], "a", PROTOCOL_GET_LINE_MAX - 1, "");
        expect(line, "", PROTOCOL_MORE, 0);
        free(line);
    }
}

/* One byte at a time up to the limit: quadratic work would take minutes here. */
static void test_long_get_line_bytewise(void **unused)
{
    (void)unused;
    char *line = long_line("get ", "key123456 ", PROTOCOL_GET_LINE_MAX, "");
    struct protocol_state state = {0};
    for (size_t length = 1; length < PROTOCOL_GET_LINE_MAX; length++) {
        assert_int_equal(text_codec()->parse(&state, line, length, &batch), PROTOCOL_MORE);
        assert_int_equal(batch.request_count, 0);
        assert_int_equal(batch.consumed, 0);
        state = batch.after;
    }
    assert_int_equal(parse(&state, line, PROTOCOL_GET_LINE_MAX), PROTOCOL_CLOSE);
    assert_int_equal(batch.request_count, 1);
    assert_string_equal(batch.requests[0].text, "line too long");
    free(line);
}

static char *get_of(size_t keys, const char *last, size_t *length)
{
    char *line = malloc(keys * 16 + 512);
    assert_non_null(line);
    size_t at = (size_t)sprintf(line, "gets");
    for (size_t i = 0; i < keys; i++) {
        at += (size_t)sprintf(line + at, " feed:%zu", i);
    }
    at += (size_t)sprintf(line + at, "%s\r\nmn\r\n", last);
    *length = at;
    return line;
}

static void test_get_of_10000_keys(void **unused)
{
    (void)unused;
    size_t length;
    char *line = get_of(10000, "", &length);
    struct protocol_state state = {0};
    size_t at = 0;
    size_t keys = 0;
    size_t blocks = 0;
    enum protocol_result result;
    do {
        result = parse(&state, line + at, length - at);
        for (uint32_t i = 0; i < batch.request_count; i++) {
            const struct request *request = &batch.requests[i];
            if (request->verb == VERB_NOOP) {
                assert_int_equal(keys, 10000);
                continue;
            }
            assert_int_equal(request->verb, VERB_GET);
            assert_true(request->want_cas);
            assert_int_equal(request->before.in_get, blocks > 0);
            blocks++;
            assert_int_equal(request->more, blocks < 10);
            assert_int_equal(request->keys, blocks < 10 ? PROTOCOL_GET_KEYS_BLOCK
                                                        : 10000 - 9 * PROTOCOL_GET_KEYS_BLOCK);
            for (uint32_t k = 0; k < request->keys; k++) {
                char expected[16];
                const struct request_key *key = &batch.keys[request->first_key + k];
                int n = sprintf(expected, "feed:%zu", keys++);
                assert_int_equal(key->length, n);
                assert_memory_equal(key->bytes, expected, (size_t)n);
            }
        }
        at += batch.consumed;
        state = batch.after;
    } while (result == PROTOCOL_FULL);
    assert_int_equal(result, PROTOCOL_MORE);
    assert_int_equal(at, length);
    assert_int_equal(blocks, 10);
    assert_int_equal(state.in_get, 0);
    free(line);
}

static void test_get_blocks_are_exact(void **unused)
{
    (void)unused;
    static const size_t counts[] = {1023, 1024, 1025, 2048, 2049, 4096, 4097};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        size_t length;
        char *line = get_of(counts[i], "  ", &length);
        struct protocol_state state = {0};
        size_t at = 0;
        size_t blocks = 0;
        bool more = true;
        while (more) {
            parse(&state, line + at, length - at);
            assert_true(batch.request_count > 0);
            more = batch.requests[0].more;
            blocks++;
            at += batch.requests[0].end;
            state = batch.request_count > 1 ? batch.requests[1].before : batch.after;
        }
        assert_int_equal(blocks, (counts[i] + 1023) / 1024);
        free(line);
    }
}

/* The last key of a long line is too long: one refusal, and nothing was given away before it. */
static void test_bad_key_in_a_late_block(void **unused)
{
    (void)unused;
    size_t length;
    char *line = get_of(5000, " " KEY_251, &length);
    expect(line, BAD_FORMAT "\nnoop\n", PROTOCOL_MORE, length);
    free(line);
}

static void test_swallow(void **unused)
{
    (void)unused;
    static const char head[] = "set a 0 0 2147483646 noreply\r\n";
    static char piece[1u << 16];
    struct protocol_state state = {0};
    assert_int_equal(parse(&state, head, sizeof(head) - 1), PROTOCOL_MORE);
    assert_int_equal(batch.request_count, 1);
    assert_true(batch.requests[0].quiet);
    assert_int_equal(batch.requests[0].refusal, REPLY_SERVER_ERROR);
    assert_string_equal(batch.requests[0].text, "object too large for cache");
    assert_int_equal(batch.after.swallow_bytes, 2147483648u);
    state = batch.after;
    uint64_t left = 2147483648u;
    while (left > 0) {
        size_t length = left < sizeof(piece) ? (size_t)left : sizeof(piece);
        assert_int_equal(parse(&state, piece, length), PROTOCOL_MORE);
        assert_int_equal(batch.request_count, 0);
        assert_int_equal(batch.consumed, length);
        state = batch.after;
        left -= length;
    }
    assert_int_equal(state.swallow_bytes, 0);
    assert_int_equal(parse(&state, "mn\r\n", 4), PROTOCOL_MORE);
    assert_int_equal(batch.request_count, 1);
}

static void test_value_limit(void **unused)
{
    (void)unused;
    for (size_t over = 0; over < 2; over++) {
        char head[64];
        size_t n = PROTOCOL_VALUE_MAX + over;
        sprintf(head, "set a 0 0 %zu\r\n", n);
        char *input = long_line(head, "x", strlen(head) + n + 2 + 4, "\r\nmn\r\n");
        size_t length = strlen(input);
        struct protocol_state state = {0};
        assert_int_equal(parse(&state, input, length), PROTOCOL_MORE);
        assert_int_equal(batch.request_count, 2);
        assert_int_equal(batch.consumed, length);
        assert_int_equal(batch.requests[0].verb, over ? VERB_ERROR : VERB_SET);
        assert_int_equal(batch.requests[0].swallow_after, over);
        if (!over) {
            assert_int_equal(batch.requests[0].value_length, PROTOCOL_VALUE_MAX);
        }
        assert_int_equal(batch.requests[1].verb, VERB_NOOP);
        assert_int_equal(batch.requests[1].before.swallow_bytes, 0);
        free(input);
    }
}

static void test_batch_is_full(void **unused)
{
    (void)unused;
    static char input[(PROTOCOL_BATCH_REQUESTS + 1) * 4 + 1];
    for (size_t i = 0; i <= PROTOCOL_BATCH_REQUESTS; i++) {
        memcpy(input + 4 * i, "mn\r\n", 4);
    }
    struct protocol_state state = {0};
    assert_int_equal(parse(&state, input, 4 * PROTOCOL_BATCH_REQUESTS), PROTOCOL_MORE);
    assert_int_equal(batch.request_count, PROTOCOL_BATCH_REQUESTS);
    assert_int_equal(parse(&state, input, 4 * PROTOCOL_BATCH_REQUESTS + 4), PROTOCOL_FULL);
    assert_int_equal(batch.request_count, PROTOCOL_BATCH_REQUESTS);
    assert_int_equal(batch.consumed, 4 * PROTOCOL_BATCH_REQUESTS);
    /* keys: 40 gets of 100 fit 4096, the 41st waits */
    struct request_trace trace;
    size_t length;
    request_trace_open(&trace, NULL);
    for (size_t i = 0; i < 42; i++) {
        char *line = get_of(100, "", &length);
        request_trace_say(&trace, "%.*s", (int)(length - 4), line);
        free(line);
    }
    assert_int_equal(parse(&state, trace.text, trace.length), PROTOCOL_FULL);
    assert_int_equal(batch.request_count, 40);
    request_trace_close(&trace);
}

static uint32_t below(struct test_random *random, uint32_t bound)
{
    return (uint32_t)test_random_below(random, bound);
}

static void say_random_get(struct request_trace *out, struct test_random *random)
{
    uint32_t n = below(random, 8) == 0 ? below(random, 3000) : below(random, 30);
    request_trace_say(out, below(random, 2) ? "get" : "gets");
    for (uint32_t i = 0; i < n; i++) {
        request_trace_say(out, "%s%u", below(random, 16) ? " " : "   ",
                          (uint32_t)test_random_next(random));
    }
    request_trace_say(out, below(random, 64) ? "" : " " KEY_251);
    request_trace_say(out, below(random, 4) ? "\r\n" : "\n");
}

static void say_random_storage(struct request_trace *out, struct test_random *random)
{
    static const char *const verbs[] = {"set", "add", "replace", "append", "prepend", "cas"};
    static const char *const keys[] = {"feed:1", "feed:2.like", "k", KEY_250, KEY_251};
    static const char *const flags[] = {"0", "0", "0", "4294967295", "x"};
    uint32_t verb = below(random, 6);
    uint32_t length = below(random, 16) ? below(random, 40) : below(random, 9000);
    request_trace_say(out, "%s %s %s 0 %u%s%s\r\n", verbs[verb], keys[below(random, 5)],
                      flags[below(random, 5)], length, verb == 5 ? " 77" : "",
                      below(random, 4) ? "" : " noreply");
    for (uint32_t i = 0; i < length; i++) {
        request_trace_say(out, "%c", "0123456789,\r\n "[below(random, 14)]);
    }
    request_trace_say(out, below(random, 8) ? "\r\n" : "x\r\n");
}

/* A bare request is what a line without anything more asks for. */
static void test_bare(void **unused)
{
    (void)unused;
    static const struct {
        const char *line;
        bool bare;
    } lines[] = {
        {"incr a 1\r\n", true},
        {"decr a 1\n", true},
        {"incr a 1,,3\r\n", true},
        {"incr a 1 noreply\r\n", false},
        {"ma a v\r\n", true},
        {"ma a q v\r\n", true},
        {"ma a v k\r\n", false},
        {"ma a v c\r\n", false},
        {"ms a 1\r\n1\r\n", true},
        {"ma a N0\r\n", false},
        {"ma a q\r\n", false},
        {"ma a\r\n", false},
        {"delete a\r\n", false},
        {"set a 7 0 1\r\n1\r\n", true},
        {"set a 0 1 1\r\n1\r\n", false},
        {"set a 0 -1 1\r\n1\r\n", false},
        {"add a 0 0 1\r\n1\r\n", false},
        {"get a\r\n", false},
    };
    static const struct protocol_state state;
    batch.value_max = PROTOCOL_VALUE_MAX;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        (void)text_codec()->parse(&state, lines[i].line, strlen(lines[i].line), &batch);
        assert_int_equal(batch.request_count, 1);
        assert_int_equal(batch.requests[0].bare, lines[i].bare);
    }
}

/* Increments that follow each other are what each is alone, however they begin and end; and no more
 * than a batch has room for. */
static void test_increments_in_a_row(void **unused)
{
    static const char mixed[] =
        "incr a 1\r\nincr bb 1\r\nincr ccc 1\r\ndecr d 1\r\ndecr e 1\r\ndecr f 10\r\n"
        "decr g 1\ndecr h 1\nincr i 1 \nincr j 1\nincr k 1 noreply\nincr l 123456789\r\n"
        "incr m 123456789\r\nincr n 12345\r\nincr " KEY_250 " 12345\r\nincr " KEY_251
        " 12345\r\nincr o 12345\r\nincr  12345\r\nincr p 12345\r\nincr q 12346\r\nincr r 12";
    (void)unused;
    expect(mixed,
           "incr a (1)\nincr bb (1)\nincr ccc (1)\ndecr d (1)\ndecr e (1)\ndecr f (10)\n"
           "decr g (1)\ndecr h (1)\nincr i (1)\nincr j (1)\nincr k (1) quiet\n"
           "incr l (123456789)\nincr m (123456789)\nincr n (12345)\nincr " KEY_250
           " (12345)\n" BAD_FORMAT "\nincr o (12345)\nrefuse error\nincr p (12345)\n"
           "incr q (12346)\n",
           PROTOCOL_MORE, sizeof(mixed) - sizeof("incr r 12"));
    static const char line[] = "incr a 1\r\n";
    enum { LINE = sizeof(line) - 1, COUNT = PROTOCOL_BATCH_REQUESTS + 1 };
    static char lines[COUNT * LINE];
    static const struct protocol_state state;
    for (size_t i = 0; i < COUNT; i++) {
        memcpy(&lines[i * LINE], line, LINE);
    }
    assert_int_equal(parse(&state, lines, sizeof(lines)), PROTOCOL_FULL);
    assert_int_equal(batch.consumed, sizeof(lines) - LINE);
    const struct request *last = &batch.requests[PROTOCOL_BATCH_REQUESTS - 1];
    assert_true(last->bare && last->begin == sizeof(lines) - 2 * LINE);
    assert_ptr_equal(last->value, &lines[last->begin + LINE - sizeof("1\r\n") + 1]);
}

/* A set whose value is none of an id's space is not. */
static void test_long_value_is_not_bare(void **unused)
{
    (void)unused;
    static const struct protocol_state state;
    static char set[PROTOCOL_VALUE_MAX + 64];
    batch.value_max = 2 * PROTOCOL_VALUE_MAX;
    for (int more = 0; more < 2; more++) {
        int bytes = PROTOCOL_VALUE_MAX + more;
        int length = snprintf(set, sizeof(set), "set a 0 0 %d\r\n", bytes);
        memset(set + length, '1', (size_t)bytes);
        memcpy(set + length + bytes, "\r\n", 2);
        (void)text_codec()->parse(&state, set, (size_t)(length + bytes + 2), &batch);
        assert_int_equal(batch.request_count, 1);
        assert_int_equal(batch.requests[0].bare, more == 0);
    }
}

static void say_random(struct request_trace *out, struct test_random *random)
{
    static const char *const lines[] = {
        "incr feed:1 5\r\n",
        "decr feed:1 1,,3, noreply\r\n",
        "delete a\r\n",
        "delete a 10\r\n",
        "touch a 0\r\n",
        "gat 5 a b c\r\n",
        "stats spaces\r\n",
        "mn\r\n",
        "\r\n",
        "NOPE\n",
        "flush_all noreply\r\n",
        "verbosity\r\n",
        "set a 0 0 99999999999\r\n",
        "version\r\n",
        "mg feed:1.like v c k O77 q\r\n",
        "mg ZmVlZDoxLmxpa2U= b T-1 k\r\n",
        "mg k\r\n",
        "mg k v v\r\n",
        "ms ZmVlZDo= 3 b C7 c\r\n1,2\r\n",
        "ms k 3\r\n1\n2x\r\n",
        "ms k 4 Z\r\nmn\r\n\r\n",
        "md k C1 q\r\n",
        "ma k N0 J5 D7 v\n",
        "me k\r\n",
    };
    switch (below(random, 3)) {
    case 0:
        say_random_get(out, random);
        break;
    case 1:
        say_random_storage(out, random);
        break;
    default:
        request_trace_say(out, "%s", lines[below(random, sizeof(lines) / sizeof(lines[0]))]);
    }
}

static void test_any_split(void **unused)
{
    (void)unused;
    static const uint32_t pieces[] = {1, 7, 100, 1500, 65536};
    const uint64_t first = test_seed();
    for (uint64_t round = 0; round < 60; round++) {
        struct test_random random = {first + round};
        struct request_trace input;
        request_trace_open(&input, NULL);
        uint32_t piece_max = pieces[round % 5];
        uint32_t commands = piece_max < 8 ? 12 : 200;
        for (uint32_t i = 0; i < commands; i++) {
            say_random(&input, &random);
        }
        request_trace_expect_same_in_pieces(text_codec(), &input, &random, piece_max);
        request_trace_close(&input);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_storage),
        cmocka_unit_test(test_storage_refused),
        cmocka_unit_test(test_numbers_and_delete),
        cmocka_unit_test(test_other_verbs),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_bad_keys_of_a_get),
        cmocka_unit_test(test_http_closes),
        cmocka_unit_test(test_incomplete),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_long_get_lines),
        cmocka_unit_test(test_long_get_line_bytewise),
        cmocka_unit_test(test_get_of_10000_keys),
        cmocka_unit_test(test_get_blocks_are_exact),
        cmocka_unit_test(test_bad_key_in_a_late_block),
        cmocka_unit_test(test_swallow),
        cmocka_unit_test(test_value_limit),
        cmocka_unit_test(test_batch_is_full),
        cmocka_unit_test(test_bare),
        cmocka_unit_test(test_increments_in_a_row),
        cmocka_unit_test(test_long_value_is_not_bare),
        cmocka_unit_test(test_any_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
