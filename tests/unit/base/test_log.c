/* test_log.c: what reaches stderr, by a pipe in its place; and how often, by a clock of the test's.
 */
#include "base/log.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#define SECOND_US 1000000u

static uint64_t now_us = 5000 * (uint64_t)SECOND_US;

uint64_t clock_monotonic_us(void)
{
    return now_us;
}

/* Nothing is left behind by a failing test but the process's own stderr, which cmocka shares. */
static struct capture {
    int saved;
    int pipe[2];
    char text[8192];
} capture;

static void capture_begin(void)
{
    assert_int_equal(pipe(capture.pipe), 0);
    capture.saved = dup(STDERR_FILENO);
    dup2(capture.pipe[1], STDERR_FILENO);
    close(capture.pipe[1]);
}

static const char *capture_end(void)
{
    dup2(capture.saved, STDERR_FILENO);
    close(capture.saved);
    ssize_t length;
    size_t total = 0;
    while ((length = read(capture.pipe[0], capture.text + total,
                          sizeof(capture.text) - 1 - total)) > 0) {
        total += (size_t)length;
    }
    close(capture.pipe[0]);
    capture.text[total] = '\0';
    return capture.text;
}

static void test_lines(void **unused)
{
    (void)unused;
    log_setup("rollcalld", LOG_LEVEL_INFO);
    assert_int_equal(log_level(), LOG_LEVEL_INFO);
    capture_begin();
    log_error("%s:%d: no", "file", 3);
    log_warning("careful");
    log_info("listening");
    log_debug("unseen");
    assert_string_equal(capture_end(), "rollcalld: file:3: no\n"
                                       "rollcalld: warning: careful\n"
                                       "rollcalld: listening\n");
}

static void test_levels(void **unused)
{
    (void)unused;
    log_setup("tool", LOG_LEVEL_ERROR);
    capture_begin();
    log_error("seen");
    log_warning("unseen");
    assert_string_equal(capture_end(), "tool: seen\n");
    log_setup("tool", LOG_LEVEL_DEBUG);
    capture_begin();
    log_debug("seen");
    assert_string_equal(capture_end(), "tool: debug: seen\n");
}

static void test_hostile(void **unused)
{
    (void)unused;
    char text[5000];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    log_setup("rollcalld", LOG_LEVEL_INFO);
    capture_begin();
    log_error("%s", text);
    log_error("one\nrollcalld: two");
    const char *lines = capture_end();
    const char *end = strchr(lines, '\n');
    assert_non_null(end);
    assert_in_range(end - lines, 1000, 1023);
    assert_string_equal(end + 1, "rollcalld: one?rollcalld: two\n");
}

static void test_due(void **unused)
{
    (void)unused;
    _Atomic uint64_t last_us = 0;
    assert_true(log_is_due(&last_us));
    uint64_t first_us = last_us;
    assert_false(log_is_due(&last_us));
    assert_int_equal(last_us, first_us);
    last_us -= LOG_AGAIN_US;
    assert_true(log_is_due(&last_us));
    assert_in_range(last_us, first_us, first_us + LOG_AGAIN_US);
}

static unsigned passed(struct log_limit *limit, unsigned lines)
{
    unsigned count = 0;
    for (unsigned i = 0; i < lines; i++) {
        count += log_limit_pass(limit);
    }
    return count;
}

/* Some lines a second; how many were missed is told once, when the second is over. */
static void test_limit(void **unused)
{
    (void)unused;
    struct log_limit limit = {0};
    assert_int_equal(log_limit_missed(&limit), 0);
    assert_int_equal(passed(&limit, 1000), LOG_LINES_PER_S);
    assert_int_equal(log_limit_missed(&limit), 0);
    now_us += SECOND_US;
    assert_int_equal(log_limit_missed(&limit), 1000 - LOG_LINES_PER_S);
    assert_int_equal(log_limit_missed(&limit), 0);
    assert_int_equal(passed(&limit, LOG_LINES_PER_S), LOG_LINES_PER_S);
    now_us += SECOND_US;
    assert_int_equal(log_limit_missed(&limit), 0);
    for (int second = 0; second < 10; second++) {
        assert_int_equal(passed(&limit, 100), LOG_LINES_PER_S);
        now_us += SECOND_US;
    }
    assert_int_equal(log_limit_missed(&limit), 10 * (100 - LOG_LINES_PER_S));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines), cmocka_unit_test(test_levels), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_due),   cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
