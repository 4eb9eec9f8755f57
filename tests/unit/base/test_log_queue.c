/* test_log_queue.c: the log's thread: what is logged while nobody reads the pipe that stderr is. */
#include "base/log_queue.h"

#include "base/check.h"
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS  4u
#define LINES    500u                   /* of each thread: a pipe takes all */
#define TOO_MANY (LOG_QUEUE_BYTES / 20) /* lines: more than the ring and a pipe take */

/* stderr is a pipe; an assertion that fails meanwhile would wait for its reader, which is the test.
 */
static struct stage {
    int saved;
    int read_fd;
    FILE *lines;
} stage;

static void stage_begin(void)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    stage.saved = dup(STDERR_FILENO);
    stage.read_fd = fds[0];
    stage.lines = fdopen(fds[0], "r");
    dup2(fds[1], STDERR_FILENO);
    close(fds[1]);
}

/* Fills the pipe, so that the next write waits. */
static void stage_fill(void)
{
    static const char zeros[4096];
    int flags = fcntl(STDERR_FILENO, F_GETFL);
    fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
    while (write(STDERR_FILENO, zeros, sizeof(zeros)) > 0) {
    }
    fcntl(STDERR_FILENO, F_SETFL, flags);
}

static void stage_drain(void)
{
    char byte = '\0';
    int flags = fcntl(stage.read_fd, F_GETFL);
    fcntl(stage.read_fd, F_SETFL, flags | O_NONBLOCK);
    while (read(stage.read_fd, &byte, 1) == 1 && byte == '\0') {
    }
    if (byte != '\0') {
        ungetc(byte, stage.lines);
    }
    fcntl(stage.read_fd, F_SETFL, flags);
}

static void stage_end(void)
{
    dup2(stage.saved, STDERR_FILENO);
    close(stage.saved);
}

/* Reads a line without its newline. */
static const char *next_line(char line[LOG_LINE_BYTES])
{
    if (fgets(line, LOG_LINE_BYTES, stage.lines) == NULL) {
        return "";
    }
    line[strcspn(line, "\n")] = '\0';
    return line;
}

static void *log_lines(void *context)
{
    for (unsigned i = 0; i < LINES; i++) {
        log_at(LOG_LEVEL_INFO, "%s %u", (const char *)context, i);
    }
    return NULL;
}

/* Each thread's lines are whole and in order, and so is what comes after the end. */
static void test_order(void **unused)
{
    char names[THREADS][2] = {"a", "b", "c", "d"};
    unsigned next[THREADS] = {0}, wrong = 0, number;
    char line[LOG_LINE_BYTES], name;
    pthread_t threads[THREADS];
    (void)unused;
    stage_begin();
    bool started = log_start();
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, log_lines, names[i]);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    log_end();
    log_info("after");
    stage_end();
    assert_true(started);
    for (unsigned i = 0; i < THREADS * LINES; i++) {
        const char *text = next_line(line);
        if (sscanf(text, "rollcalld: %c %u", &name, &number) != 2 || name < 'a' ||
            name >= (char)('a' + THREADS) || next[name - 'a']++ != number) {
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
    assert_string_equal(next_line(line), "rollcalld: after");
    assert_int_equal(log_lost(), 0);
    fclose(stage.lines);
}

/* Nobody reads: all is taken at once; later it is told, in its place, how much was lost. */
static void test_deaf(void **unused)
{
    char line[LOG_LINE_BYTES], wanted[LOG_LINE_BYTES];
    unsigned number, count = 0;
    (void)unused;
    stage_begin();
    stage_fill();
    bool started = log_start();
    for (unsigned i = 0; i < TOO_MANY; i++) {
        log_at(LOG_LEVEL_INFO, "line %u", i);
    }
    uint64_t lost = log_lost();
    stage_drain();
    const char *text = next_line(line);
    while (sscanf(text, "rollcalld: line %u", &number) == 1 && number == count) {
        count++;
        text = next_line(line);
    }
    log_info("after");
    log_end();
    stage_end();
    assert_true(started);
    assert_in_range(lost, 1, TOO_MANY - 1);
    snprintf(wanted, sizeof(wanted),
             "rollcalld: warning: lines of the log were lost: what it is written to does not take "
             "them lost=%llu",
             (unsigned long long)lost);
    assert_string_equal(text, wanted);
    assert_int_equal(count + lost, TOO_MANY);
    assert_string_equal(next_line(line), "rollcalld: after");
    assert_int_equal(log_lost(), lost);
    fclose(stage.lines);
}

/* What stderr refuses is lost, too. */
static void test_refused(void **unused)
{
    char line[LOG_LINE_BYTES];
    uint64_t before = log_lost();
    (void)unused;
    stage_begin();
    int kept = dup(STDERR_FILENO), full = open("/dev/full", O_WRONLY);
    bool started = full >= 0 && log_start();
    dup2(full, STDERR_FILENO);
    log_info("on a full disk");
    log_info("on a full disk, too");
    log_queue_wait();
    dup2(kept, STDERR_FILENO);
    log_info("there is room");
    log_end();
    stage_end();
    close(kept);
    close(full);
    assert_true(started);
    assert_string_equal(next_line(line), "rollcalld: there is room");
    assert_string_equal(next_line(line),
                        "rollcalld: warning: lines of the log were lost: what it is written to "
                        "does not take them lost=2");
    assert_int_equal(log_lost() - before, 2);
    fclose(stage.lines);
}

/* A broken invariant comes after what was logged; nobody has to read either. */
static void test_check(void **unused)
{
    char line[LOG_LINE_BYTES];
    int status[2];
    (void)unused;
    stage_begin();
    for (unsigned i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            (void)log_start();
            log_info("before");
            CHECK(i == 2);
        }
        waitpid(child, &status[i], 0);
        if (i == 0) {
            (void)next_line(line);
            assert_string_equal(line, "rollcalld: before");
            assert_non_null(strstr(next_line(line), "check failed: i == 2"));
            stage_fill();
        }
    }
    stage_end();
    assert_true(WIFSIGNALED(status[0]) && WTERMSIG(status[0]) == SIGABRT);
    assert_true(WIFSIGNALED(status[1]) && WTERMSIG(status[1]) == SIGABRT);
    fclose(stage.lines);
}

/* An end waits for a dead log no longer than it may; the last test, for the thread stays. */
static void test_dead(void **unused)
{
    (void)unused;
    stage_begin();
    stage_fill();
    bool started = log_start();
    log_info("nobody reads this");
    log_end();
    log_info("nor this");
    log_end();
    stage_end();
    assert_true(started);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order), cmocka_unit_test(test_deaf), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_check), cmocka_unit_test(test_dead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
