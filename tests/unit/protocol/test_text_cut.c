/*
 * test_text_cut.c: a get that was answered in part goes on with its first key that was not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "protocol/text.h"
#include "tests/support/request_trace.h"

#define KEYS 5u

static void test_goes_on_where_it_was_cut(void **unused)
{
    static const char *const lines[] = {"get a bb  c dd e\r\nmn\r\n", "gets a bb c dd e \r\nmn\r\n",
                                        "gat 7 a bb c dd e\r\nmn\r\n"};
    static const char *const keys[KEYS] = {"a", "bb", "c", "dd", "e"};
    (void)unused;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        for (uint32_t answered = 1; answered < KEYS; answered++) {
            struct request_trace trace;
            struct protocol_state state = {0};
            size_t offset = 0;
            request_trace_open(&trace, text_codec());
            (void)request_trace_parse(&trace, &state, lines[i], strlen(lines[i]));
            const struct request whole = trace.batch->requests[0];
            assert_int_equal(whole.keys, KEYS);
            text_codec()->cut(trace.batch, &trace.batch->requests[0], answered, lines[i], &state,
                              &offset);
            const char *rest = lines[i] + offset;
            assert_int_equal(request_trace_parse(&trace, &state, rest, strlen(rest)),
                             PROTOCOL_MORE);
            const struct request *request = &trace.batch->requests[0];
            assert_int_equal(trace.batch->request_count, 2);
            assert_int_equal(request->keys, KEYS - answered);
            assert_int_equal(request->verb, whole.verb);
            assert_int_equal(request->want_cas, whole.want_cas);
            assert_int_equal(request->exptime, whole.exptime);
            for (uint32_t k = 0; k < request->keys; k++) {
                const char *key = keys[answered + k];
                assert_int_equal(trace.batch->keys[k].length, strlen(key));
                assert_memory_equal(trace.batch->keys[k].bytes, key, strlen(key));
            }
            request_trace_close(&trace);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goes_on_where_it_was_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
