/* test_change.c: the null sink always has room and keeps nothing. */
#include "engine/change.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_null(void **unused)
{
    (void)unused;
    struct change_sink *sink = change_sink_null();
    assert_non_null(sink);
    assert_ptr_equal(sink, change_sink_null());
    struct change change = {.type = CHANGE_DELETE, .space = 1, .id = 2};
    for (int i = 0; i < 1000; i++) {
        assert_true(sink->functions->reserve(sink));
        assert_int_equal(sink->functions->put(sink, &change), 0);
        assert_true(sink->functions->reserve(sink));
        sink->functions->cancel(sink);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_null)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
