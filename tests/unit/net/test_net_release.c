/*
 * test_net_release.c: a release at any moment after its commit; the end of all releases: what waits
 * is closed, now and later; what else may not be closed, and what is at the end.
 */
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "echo.h"
#include "tests/support/step.h"

#define BUDGET (16u << 20)

static const char *const any_port[] = {"127.0.0.1:0"};

/* One worker, all of whose answers wait. */
static void start_with(struct echo *echo, uint64_t budget)
{
    struct net_options options = echo_options(echo, any_port);
    options.threads = 1;
    echo->budget.bytes_max = budget;
    echo->holds = true;
    atomic_store(&echo->verdict, NET_COMMIT_LATER);
    assert_true(echo_start(echo, &options));
}

static void start(struct echo *echo)
{
    start_with(echo, BUDGET);
}

/* A client whose answer waits for the number `commit`. */
static int client_waiting(struct echo *echo, const char *text, unsigned commit)
{
    int fd = client_ready(echo);
    client_say(fd, text);
    wait_for(&echo->commits, commit);
    close(client_ready(echo)); /* the worker has been through that wake-up */
    client_expect_nothing(fd);
    return fd;
}

static void test_what_waits_is_closed(void **unused)
{
    struct echo echo;
    (void)unused;
    start(&echo);
    struct net_worker *worker = atomic_load(&echo.workers[0]);
    int released = client_waiting(&echo, "hold a\n", 1);
    int first = client_waiting(&echo, "hold b\nc\n", 2);
    int second = client_waiting(&echo, "hold quit\n", 3);
    int idle = client_ready(&echo);
    net_release(worker, 1);
    net_release_no_more(worker);
    client_expect(released, "a\n");
    client_expect_end(first);
    client_expect_end(second);
    client_say(idle, "d\n"); /* who waits for nothing goes on … */
    client_expect(idle, "d\n");
    client_say(idle, "hold e\n"); /* … until it does */
    client_expect_end(idle);
    client_say(released, "f\n");
    client_expect(released, "f\n");
    close(released);
    close(first);
    close(second);
    close(idle);
    echo_stop(&echo);
}

/* What is released before its commit has returned still leaves. */
static void test_released_leaves(void **unused)
{
    struct echo echo;
    (void)unused;
    start(&echo);
    struct net_worker *worker = atomic_load(&echo.workers[0]);
    int fd = client_ready(&echo);
    net_release(worker, 1);
    net_release_no_more(worker);
    client_say(fd, "hold a\n");
    client_expect(fd, "a\n");
    client_say(fd, "hold b\n");
    client_expect_end(fd);
    close(fd);
    echo_stop(&echo);
}

/* Whenever the one release of a number comes, what waits for it leaves. */
static void test_released_at_any_moment(void **unused)
{
    struct echo echo;
    uint64_t tried = 0;
    (void)unused;
    if (!step_works()) {
        print_message("this build cannot step\n");
        skip();
    }
    start(&echo);
    int fd = client_ready(&echo);
    for (uint64_t n = 1; n == 1 || atomic_load(&echo.steps) > 0; n++) {
        atomic_store(&echo.steps, n);
        client_say(fd, "hold a\n");
        client_expect(fd, "a\n");
        tried++;
    }
    assert_true(tried > 100);
    close(fd);
    echo_stop(&echo);
}

/* What waits for a release is promised: it is not closed to make room for another. */
static void test_sealed_is_no_hoarder(void **unused)
{
    enum { LETTERS = 300000 };
    struct echo echo;
    (void)unused;
    start_with(&echo, LETTERS / 3 * 4);
    int sealed = client_waiting(&echo, "hold big 300000\n", 1);
    int other = client_ready(&echo);
    char *half = malloc(LETTERS);
    assert_non_null(half);
    memset(half, 'h', LETTERS);
    (void)!send(other, half, LETTERS, MSG_NOSIGNAL); /* with half a line of it all room is taken */
    unsigned looks = 0;
    while (FIGURE(&echo, budget_closed) == 0 && looks++ < ECHO_TIMEOUT_S * 1000) {
        (void)!send(other, half, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(FIGURE(&echo, budget_closed), 1);
    net_release(atomic_load(&echo.workers[0]), 1);
    client_expect_big(sealed, LETTERS);
    client_say(sealed, "x\n");
    client_expect(sealed, "x\n");
    free(half);
    close(sealed);
    close(other);
    echo_stop(&echo);
}

/* The end comes while connections are on the run list. */
static void test_end_while_queued(void **unused)
{
    struct echo echo;
    int fds[3];
    (void)unused;
    start(&echo);
    for (int i = 0; i < 3; i++) {
        fds[i] = client_ready(&echo);
        client_say(fds[i], "again\n");
        unsigned before = atomic_load(&echo.again);
        while (atomic_load(&echo.again) < before + 2) {
            sched_yield();
        }
    }
    echo_stop(&echo);
    assert_int_equal(echo.closed, 3);
    for (int i = 0; i < 3; i++) {
        client_expect_end(fds[i]);
        close(fds[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_waits_is_closed),   cmocka_unit_test(test_released_leaves),
        cmocka_unit_test(test_released_at_any_moment), cmocka_unit_test(test_sealed_is_no_hoarder),
        cmocka_unit_test(test_end_while_queued),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
