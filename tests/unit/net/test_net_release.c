/*
 * test_net_release.c: a release at any moment after its commit; the end of all releases: what waits
 * is closed, now and later; a wake, and the end, while a connection's turn is to come again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "echo.h"
#include "tests/support/give_way.h"
#include "tests/support/step.h"

#define BUDGET (16u << 20)

static const char *const any_port[] = {"127.0.0.1:0"};

/* One worker, all of whose answers wait. */
static void start(struct echo *echo)
{
    struct net_options options = echo_options(echo, any_port);
    options.threads = 1;
    echo->budget.bytes_max = BUDGET;
    echo->holds = true;
    atomic_store(&echo->verdict, NET_COMMIT_LATER);
    assert_true(echo_start(echo, &options));
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
    client_expect(released, "a\n");
    close(client_ready(&echo)); /* the worker sleeps again: it has to be told */
    net_release_no_more(worker);
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

/* What is released before its commit has returned leaves; no later release takes that back. */
static void test_released_leaves(void **unused)
{
    struct echo echo;
    (void)unused;
    start(&echo);
    struct net_worker *worker = atomic_load(&echo.workers[0]);
    int fd = client_ready(&echo);
    net_release(worker, 2);
    net_release(worker, 1);
    net_release_no_more(worker);
    client_say(fd, "hold a\n");
    client_expect(fd, "a\n");
    client_say(fd, "hold b\n");
    client_expect(fd, "b\n");
    client_say(fd, "hold c\n");
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

/* A wake is for nothing, and the end comes, while connections are on the run list. */
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
            give_way();
        }
        net_wake(atomic_load(&echo.waiting_worker), atomic_load(&echo.waiting_serial));
    }
    close(client_ready(&echo)); /* after the last wake */
    wait_for(&echo.closed, 1);
    echo_stop(&echo);
    assert_int_equal(echo.closed, 4);
    for (int i = 0; i < 3; i++) {
        client_expect_end(fds[i]);
        close(fds[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_waits_is_closed),
        cmocka_unit_test(test_released_leaves),
        cmocka_unit_test(test_released_at_any_moment),
        cmocka_unit_test(test_end_while_queued),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
