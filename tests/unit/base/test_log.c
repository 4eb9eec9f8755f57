/* test_log.c: what reaches stderr, by a pipe in its place; and how often, by a clock of the test's.
 */
#include "base/log.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* A daemon's lines: time and level; in systemd's journal, which notes the time, the level's number.
 */
static void test_stamped(void **unused)
{
    (void)unused;
    struct stat stat;
    char stream[64];
    log_setup("rollcalld", LOG_LEVEL_STATES);
    capture_begin();
    log_stamp();
    log_warning("careful");
    log_at(LOG_LEVEL_COMMANDS, "<5 get %s", "a");
    const char *text = capture_end();
    int year, length = 0;
    assert_int_equal(sscanf(text, "%4d-%*2d-%*2dT%*2d:%*2d:%*2d.%*3dZ %n", &year, &length), 1);
    assert_int_equal(length, strlen("2026-01-01T00:00:00.000Z "));
    const char *second = strchr(text, '\n') + 1;
    assert_memory_equal(text + length, "rollcalld: warning: careful\n", 28);
    assert_string_equal(second + length, "rollcalld: debug: <5 get a\n");
    capture_begin();
    assert_int_equal(fstat(STDERR_FILENO, &stat), 0);
    snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)stat.st_dev,
             (unsigned long long)stat.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_stamp();
    log_error("no");
    log_info("yes");
    assert_string_equal(capture_end(), "<3>rollcalld: no\n<6>rollcalld: yes\n");
    setenv("JOURNAL_STREAM", "1:1", 1); /* another file */
    capture_begin();
    log_stamp();
    log_info("yes");
    assert_memory_equal(capture_end() + length, "rollcalld: info: yes\n", 21);
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

/* Lines of one place; `kind` of another. */
static void say(unsigned lines, bool other)
{
    for (unsigned i = 0; i < lines; i++) {
        if (other) {
            log_warning("another place n=%u", i);
        } else {
            log_info("a thing happened n=%u path=%s", i, "x");
        }
    }
}

static unsigned count(const char *text, const char *words)
{
    unsigned found = 0;
    while ((text = strstr(text, words)) != NULL) {
        found++;
        text++;
    }
    return found;
}

/* So many lines of a place at once, then one a second; each that is left out is told of once. */
static void test_limit(void **unused)
{
    (void)unused;
    log_setup("rollcalld", LOG_LEVEL_INFO);
    capture_begin();
    say(100, false);
    say(3, true); /* has a limit of its own */
    const char *text = capture_end();
    assert_int_equal(count(text, "a thing happened n="), LOG_BURST);
    assert_int_equal(count(text, "another place"), 3);
    assert_null(strstr(text, "left_out"));
    now_us += LOG_INTERVAL_US;
    capture_begin();
    say(2, false);
    assert_string_equal(capture_end(), "rollcalld: a thing happened n=0 path=x left_out=80\n");
    /* nothing more comes: somebody else says it */
    capture_begin();
    log_tick();
    assert_string_equal(capture_end(), "");
    now_us += LOG_INTERVAL_US;
    capture_begin();
    log_tick();
    log_tick();
    assert_string_equal(capture_end(), "rollcalld: lines like this were left out: "
                                       "\"a thing happened\" left_out=1\n");
    now_us += LOG_BURST * LOG_INTERVAL_US;
    capture_begin();
    say(LOG_BURST, false);
    for (unsigned i = 0; i < 2 * LOG_BURST; i++) {
        log_at(LOG_LEVEL_INFO, "a list");
    }
    text = capture_end();
    assert_int_equal(count(text, "a thing happened n="), LOG_BURST);
    assert_int_equal(count(text, "a list"), 2 * LOG_BURST);
}

static void test_quoted(void **unused)
{
    (void)unused;
    char quoted[LOG_QUOTED_MAX], text[2 * LOG_QUOTED_MAX];
    assert_string_equal(log_quoted("a b", 3, quoted), "\"a b\"");
    assert_string_equal(log_quoted("", 0, quoted), "\"\"");
    assert_string_equal(log_quoted("x\" y=\"\\", 7, quoted), "\"x\\\" y=\\\"\\\\\"");
    assert_string_equal(log_quoted("a\0b", 3, quoted), "\"a?b\"");
    memset(text, '"', sizeof(text));
    size_t length = strlen(log_quoted(text, sizeof(text), quoted));
    assert_in_range(length, LOG_QUOTED_MAX - 4, LOG_QUOTED_MAX - 1);
    assert_int_equal(quoted[length - 1], '"');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),   cmocka_unit_test(test_levels),
        cmocka_unit_test(test_hostile), cmocka_unit_test(test_due),
        cmocka_unit_test(test_limit),   cmocka_unit_test(test_quoted),
        cmocka_unit_test(test_stamped), /* the last: it stays so */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
