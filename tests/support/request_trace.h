/*
 * request_trace.h: what a codec's parse makes of bytes, as text: one line a request, with all it
 * says. Two ways of giving the bytes to a codec (at once, in pieces and with cuts) are compared by
 * their traces.
 *
 * A trace parses with a batch of its own. Every parse sees an own copy of exactly the bytes a
 * server would hold, so that the sanitizer finds reading beyond them; what a batch must always hold
 * is asserted after each. Uses cmocka's asserts. A trace belongs to one thread.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_REQUEST_TRACE_H
#define ROLLCALL_TESTS_SUPPORT_REQUEST_TRACE_H

#include <stddef.h>

#include "protocol/codec.h"
#include "tests/support/random.h"

struct request_trace {
    char *text; /* NUL-terminated */
    size_t length;
    const struct codec *codec;
    struct request_batch *batch; /* of the last parse; its value_max may be set */
};

/* codec may be NULL for a trace that only collects text with request_trace_say(). */
void request_trace_open(struct request_trace *trace, const struct codec *codec);
void request_trace_close(struct request_trace *trace);

__attribute__((format(printf, 2, 3))) void request_trace_say(struct request_trace *trace,
                                                             const char *format, ...);

/* One parse of the codec, its batch checked. The bytes are parsed where they are. */
enum protocol_result request_trace_parse(struct request_trace *trace,
                                         const struct protocol_state *state, const char *bytes,
                                         size_t length);

/*
 * Parses all of it, batch by batch, as a server does that gets everything at once, and says every
 * request. *consumed: the bytes the codec is done with. Returns the last parse's result.
 */
enum protocol_result request_trace_whole(struct request_trace *trace, const char *bytes,
                                         size_t length, size_t *consumed);

/* The same as a server that gets the first `split` bytes, then the others. */
void request_trace_split(struct request_trace *trace, const char *bytes, size_t length,
                         size_t split);

/*
 * The same as a server that gets the bytes in pieces of 1 to piece_max and cuts batches where it
 * likes. The bytes must not be ones that close.
 */
void request_trace_pieces(struct request_trace *trace, const char *bytes, size_t length,
                          struct test_random *random, uint32_t piece_max);

/* The input, parsed whole, ends with `result`, *consumed as told, and its trace is `expected`. */
void request_trace_expect(const struct codec *codec, const char *input, const char *expected,
                          enum protocol_result result, size_t consumed);

/* The text of `input` means the same whole, which ends with PROTOCOL_MORE, and in pieces. */
void request_trace_expect_same_in_pieces(const struct codec *codec,
                                         const struct request_trace *input,
                                         struct test_random *random, uint32_t piece_max);

#endif
