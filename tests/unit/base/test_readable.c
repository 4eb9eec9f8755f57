/* test_readable.c: numbers with their units, where one unit ends and the next begins. */
#include "base/readable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_counts(void **unused)
{
    char text[READABLE_MAX];

    (void)unused;
    assert_string_equal(readable_count(text, 0), "0");
    assert_string_equal(readable_count(text, 999), "999");
    assert_string_equal(readable_count(text, 2.5), "2.5");
    assert_string_equal(readable_count(text, 1000), "1.00 k");
    assert_string_equal(readable_count(text, 41234), "41.2 k");
    assert_string_equal(readable_count(text, 999600), "1.00 M");
    assert_string_equal(readable_count(text, 1.8e19), "18000 P");
    assert_string_equal(readable_bytes(text, 1023), "1023 bytes");
    assert_string_equal(readable_bytes(text, 1024), "1.00 KiB");
    assert_string_equal(readable_bytes(text, 12.0 * (1 << 30)), "12.0 GiB");
    assert_string_equal(readable_share(text, 0), "0 %");
    assert_string_equal(readable_share(text, 0.0012), "0.12 %");
    assert_string_equal(readable_share(text, 0.5), "50 %");
    assert_string_equal(readable_many(text, 1, "table"), "1 table");
    assert_string_equal(readable_many(text, 2, "table"), "2 tables");
}

static void test_times(void **unused)
{
    char text[READABLE_MAX];

    (void)unused;
    assert_string_equal(readable_span(text, 1), "1 second");
    assert_string_equal(readable_span(text, 40), "40 seconds");
    assert_string_equal(readable_span(text, 100), "1.7 minutes");
    assert_string_equal(readable_span(text, 47 * 3600), "47 hours");
    assert_string_equal(readable_span(text, 3.1 * 86400), "3.1 days");
    assert_string_equal(readable_time(text, 41e-6), "41 µs");
    assert_string_equal(readable_time(text, 0.0012), "1.2 ms");
    assert_string_equal(readable_time(text, 2), "2.0 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts), cmocka_unit_test(test_times)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
