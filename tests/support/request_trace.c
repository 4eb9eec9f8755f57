#include "tests/support/request_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_MAX (4u << 20)

static const char *const verb_names[VERB_COUNT] = {
    "refuse",  "get",      "gat",     "touch", "set",    "add",       "replace",   "append",
    "prepend", "cas",      "incr",    "decr",  "delete", "flush_all", "version",   "verbosity",
    "stats",   "shutdown", "crawler", "noop",  "quit",   "feed",      "sasl_list", "sasl",
};

void request_trace_open(struct request_trace *trace, const struct codec *codec)
{
    trace->text = malloc(TEXT_MAX);
    trace->batch = malloc(sizeof(*trace->batch));
    assert_non_null(trace->text);
    assert_non_null(trace->batch);
    trace->text[0] = '\0';
    trace->length = 0;
    trace->codec = codec;
    trace->batch->value_max = PROTOCOL_VALUE_MAX;
    trace->batch->joins = false;
}

void request_trace_close(struct request_trace *trace)
{
    free(trace->text);
    free(trace->batch);
}

void request_trace_say(struct request_trace *trace, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(trace->text + trace->length, TEXT_MAX - trace->length, format, arguments);
    va_end(arguments);
    assert_true(n >= 0 && (size_t)n < TEXT_MAX - trace->length);
    trace->length += (size_t)n;
}

static void say_refusal(struct request_trace *trace, const struct request *request)
{
    const char *kind = request->refusal == REPLY_ERROR          ? "error"
                       : request->refusal == REPLY_CLIENT_ERROR ? "client"
                                                                : "server";
    assert_true(request->refusal >= REPLY_ERROR && request->refusal <= REPLY_SERVER_ERROR);
    request_trace_say(trace, " %s", kind);
    if (request->text != NULL) {
        request_trace_say(trace, " [%s]", request->text);
    }
    assert_int_equal(request->text == NULL, request->refusal == REPLY_ERROR);
}

static void say_numbers(struct request_trace *trace, const struct request *request)
{
    static const char *const creates[] = {"", " create", " never"};
    if (request->flags != 0) {
        request_trace_say(trace, " flags=%u", request->flags);
    }
    if (request->exptime != 0) {
        request_trace_say(trace, " exptime=%lld", (long long)request->exptime);
    }
    if (request->touch) {
        request_trace_say(trace, " touch=%lld", (long long)request->touch_exptime);
    }
    if (request->cas != 0) {
        request_trace_say(trace, " cas=%llu", (unsigned long long)request->cas);
    }
    if (request->delay != 0) { /* or initial: the same word */
        request_trace_say(trace, request->verb == VERB_FLUSH_ALL ? " delay=%llu" : " initial=%llu",
                          (unsigned long long)request->delay);
    }
    request_trace_say(trace, "%s", creates[request->create]);
}

static void say_extended(struct request_trace *trace, const struct request *request)
{
    const struct request_extended *asked = request->extended;
    request_trace_say(trace, "%s", request->plain_only ? " +plain" : "");
    if (asked == NULL) {
        return;
    }
    if (asked->vivify) {
        request_trace_say(trace, " vivify=%d%s", asked->vivify_exptime,
                          asked->vivify_first ? "-first" : "");
    }
    if (asked->recache) {
        request_trace_say(trace, " recache=%d%s", asked->recache_exptime,
                          asked->recache_first ? "-first" : "");
    }
    if (asked->gives_token) {
        request_trace_say(trace, " token=%llu", (unsigned long long)asked->token);
    }
    request_trace_say(trace, "%s%s%s%s", asked->unnoticed ? " +unnoticed" : "",
                      asked->invalidate ? " +invalidate" : "", asked->empty ? " +empty" : "",
                      asked->touch ? " +touch" : "");
}

static void say_request(struct request_trace *trace, const struct request *request)
{
    static const char *const quiets[] = {"", " quiet", " usual"};
    request_trace_say(trace, "%s%s", verb_names[request->verb], request->joined ? " joined" : "");
    if (request->verb == VERB_ERROR) {
        say_refusal(trace, request);
    }
    for (uint32_t i = 0; i < request->keys; i++) {
        const struct request_key *key = &trace->batch->keys[request->first_key + i];
        assert_in_range(key->length, 1, PROTOCOL_KEY_MAX);
        request_trace_say(trace, " %.*s", (int)key->length, key->bytes);
    }
    if (request->value != NULL) {
        request_trace_say(trace, " (%.*s)", (int)request->value_length, request->value);
    }
    say_numbers(trace, request);
    request_trace_say(trace, "%s%s%s%s%s", request->want_cas ? " +cas" : "",
                      request->compare ? " +compare" : "", request->more ? " +more" : "",
                      quiets[request->quiet], request->swallow_after ? " +swallow" : "");
    say_extended(trace, request);
    if (trace->codec->has_meta && request->meta.line != NULL) {
        request_trace_say(trace, " <%.*s>%s", (int)request->meta.length, request->meta.line,
                          request->meta.info ? " +info" : "");
    }
    request_trace_say(trace, "\n");
}

/* The offsets of a batch go upwards and stay in the bytes. */
static void check_batch(const struct request_batch *batch, size_t length)
{
    size_t at = 0;
    uint32_t keys = 0;
    for (uint32_t i = 0; i < batch->request_count; i++) {
        const struct request *request = &batch->requests[i];
        assert_true(request->begin >= at && request->end > request->begin);
        assert_int_equal(request->first_key, keys);
        at = request->end;
        keys += request->keys;
    }
    assert_true(at <= batch->consumed && batch->consumed <= length);
    assert_int_equal(keys, batch->key_count);
    assert_true(batch->scratch_used <= PROTOCOL_SCRATCH_BYTES);
}

enum protocol_result request_trace_parse(struct request_trace *trace,
                                         const struct protocol_state *state, const char *bytes,
                                         size_t length)
{
    enum protocol_result result = trace->codec->parse(state, bytes, length, trace->batch);
    check_batch(trace->batch, length);
    assert_true(result != PROTOCOL_FULL || trace->batch->request_count > 0);
    return result;
}

/* An own copy of exactly these bytes; the caller frees it. One more, so that it is never empty. */
static char *copy_of(const char *bytes, size_t length)
{
    char *copy = malloc(length + 1);
    assert_non_null(copy);
    memcpy(copy + 1, bytes, length);
    return copy;
}

/* Parses bytes[*at..length) as they are there, batch by batch, and says every request. */
static enum protocol_result say_all(struct request_trace *trace, struct protocol_state *state,
                                    const char *bytes, size_t length, size_t *at)
{
    enum protocol_result result;
    do {
        char *copy = copy_of(bytes + *at, length - *at);
        result = request_trace_parse(trace, state, copy + 1, length - *at);
        for (uint32_t i = 0; i < trace->batch->request_count; i++) {
            say_request(trace, &trace->batch->requests[i]);
        }
        *at += trace->batch->consumed;
        *state = trace->batch->after;
        free(copy);
    } while (result == PROTOCOL_FULL);
    return result;
}

enum protocol_result request_trace_whole(struct request_trace *trace, const char *bytes,
                                         size_t length, size_t *consumed)
{
    struct protocol_state state = {0};
    *consumed = 0;
    return say_all(trace, &state, bytes, length, consumed);
}

void request_trace_split(struct request_trace *trace, const char *bytes, size_t length,
                         size_t split)
{
    struct protocol_state state = {0};
    size_t at = 0;
    if (say_all(trace, &state, bytes, split, &at) != PROTOCOL_CLOSE) {
        say_all(trace, &state, bytes, length, &at);
    }
}

void request_trace_pieces(struct request_trace *trace, const char *bytes, size_t length,
                          struct test_random *random, uint32_t piece_max)
{
    const struct request_batch *batch = trace->batch;
    struct protocol_state state = {0};
    size_t at = 0;
    size_t have = 0;
    while (have < length || at < have) {
        size_t piece = 1 + test_random_below(random, piece_max);
        size_t before = at;
        have = length - have < piece ? length : have + piece;
        char *copy = copy_of(bytes + at, have - at);
        enum protocol_result result = request_trace_parse(trace, &state, copy + 1, have - at);
        assert_int_not_equal(result, PROTOCOL_CLOSE);
        uint32_t run = batch->request_count;
        if (test_random_once_in(random, 3)) {
            run = (uint32_t)test_random_below(random, run + 1);
        }
        for (uint32_t i = 0; i < run; i++) {
            say_request(trace, &batch->requests[i]);
        }
        bool cut = run < batch->request_count;
        at += cut ? batch->requests[run].begin : batch->consumed;
        state = cut ? batch->requests[run].before : batch->after;
        free(copy);
        if (have == length && !cut && at == before && result == PROTOCOL_MORE) {
            break; /* an unfinished rest */
        }
    }
}

void request_trace_expect(const struct codec *codec, const char *input, const char *expected,
                          enum protocol_result result, size_t consumed)
{
    struct request_trace trace;
    size_t was_consumed;
    request_trace_open(&trace, codec);
    enum protocol_result got = request_trace_whole(&trace, input, strlen(input), &was_consumed);
    if (strcmp(trace.text, expected) != 0 || got != result) {
        print_error("input:\n%.200s\nexpected:\n%s\ngot (%d):\n%s\n", input, expected, (int)got,
                    trace.text);
    }
    assert_string_equal(trace.text, expected);
    assert_int_equal(got, result);
    assert_int_equal(was_consumed, consumed);
    request_trace_close(&trace);
}

/* Bytes of the first lines that both have. */
static size_t same_lines(const char *one, const char *other)
{
    size_t lines = 0;
    for (size_t i = 0; one[i] != '\0' && one[i] == other[i]; i++) {
        lines = one[i] == '\n' ? i + 1 : lines;
    }
    return lines;
}

void request_trace_expect_same_in_pieces(const struct codec *codec,
                                         const struct request_trace *input,
                                         struct test_random *random, uint32_t piece_max)
{
    struct request_trace whole, pieces;
    size_t consumed;
    request_trace_open(&whole, codec);
    request_trace_open(&pieces, codec);
    assert_int_equal(request_trace_whole(&whole, input->text, input->length, &consumed),
                     PROTOCOL_MORE);
    request_trace_pieces(&pieces, input->text, input->length, random, piece_max);
    if (strcmp(pieces.text, whole.text) != 0) {
        size_t from = same_lines(pieces.text, whole.text);
        fail_msg("in pieces of up to %u: %.200s\ninstead of: %.200s", piece_max, pieces.text + from,
                 whole.text + from);
    }
    request_trace_close(&whole);
    request_trace_close(&pieces);
}
