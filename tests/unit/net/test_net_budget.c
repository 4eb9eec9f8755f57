/*
 * test_net_budget.c: who is closed when the memory for connections is used up: of those that only
 * wait for their client the one that holds most, and only if that is more than who needs it; and
 * what one worker's clients cannot have.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "echo.h"

#define HOLDERS 6

static const char *const any_port[] = {"127.0.0.1:0"};

static void start_workers(struct echo *echo, uint64_t budget, unsigned threads)
{
    struct net_options options = echo_options(echo, any_port);
    options.threads = threads;
    echo->budget.bytes_max = budget;
    echo->holds = true;
    atomic_store(&echo->verdict, NET_COMMIT_LATER);
    assert_true(echo_start(echo, &options));
}

static void start(struct echo *echo, uint64_t budget)
{
    start_workers(echo, budget, 1);
}

/* A line without its end: it is kept. */
static void say_half(int fd, size_t length)
{
    char *half = malloc(length);
    assert_non_null(half);
    memset(half, 'h', length);
    client_send(fd, half, length);
    free(half);
}

/* Says more of a line, piece by piece, until somebody is closed for it. */
static void say_until_closed(struct echo *echo, int fd, size_t piece)
{
    char half[4096];
    unsigned looks = 0;
    assert_true(piece <= sizeof(half));
    memset(half, 'h', piece);
    while (FIGURE(echo, budget_closed) == 0) {
        uint64_t read = FIGURE(echo, bytes_read);
        (void)!send(fd, half, piece, MSG_NOSIGNAL);
        while (FIGURE(echo, bytes_read) == read && FIGURE(echo, budget_closed) == 0) {
            assert_true(looks++ < ECHO_TIMEOUT_S * 1000);
            (void)poll(NULL, 0, 1);
        }
    }
    wait_for(&echo->closed, 1);
    assert_int_equal(FIGURE(echo, budget_closed), 1);
}

static bool is_open(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
}

static void test_who_holds_most_is_closed(void **unused)
{
    enum { SMALL = 8000, LARGE = 30000, LEFT = 5000 };
    (void)unused;
    for (int large = 0; large < HOLDERS; large++) {
        struct echo echo;
        int fds[HOLDERS];
        start(&echo, (HOLDERS - 1) * SMALL + LARGE + LEFT);
        for (int i = 0; i < HOLDERS; i++) {
            uint64_t before = atomic_load(&echo.budget.used_bytes);
            size_t length = i == large ? LARGE : SMALL;
            fds[i] = client_ready(&echo);
            say_half(fds[i], length);
            wait_for_held(&echo, before + length);
        }
        int other = client_ready(&echo);
        say_until_closed(&echo, other, LEFT / 2);
        client_expect_end(fds[large]);
        assert_true(is_open(other));
        for (int i = 0; i < HOLDERS; i++) {
            assert_true(i == large || is_open(fds[i]));
            close(fds[i]);
        }
        close(other);
        echo_stop(&echo);
    }
}

/* Who needs more than anybody holds goes itself. */
static void test_who_needs_most_is_closed(void **unused)
{
    enum { HELD = 8000, NEEDS = 7000, MORE = 2000 };
    struct echo echo;
    (void)unused;
    start(&echo, HELD + NEEDS + MORE / 2);
    int holder = client_ready(&echo);
    say_half(holder, HELD);
    wait_for_held(&echo, HELD);
    int other = client_ready(&echo);
    say_half(other, NEEDS);
    wait_for_held(&echo, HELD + NEEDS);
    say_until_closed(&echo, other, MORE);
    assert_true(is_open(holder));
    close(other);
    close(holder);
    echo_stop(&echo);
}

/* One worker's clients never have all: the other's need not be closed for want of a hoarder. */
static void test_each_worker_has_its_share(void **unused)
{
    enum { BUDGET = 1 << 16, LARGE = 45000, MORE = 18000, OTHERS = 10000 };
    struct echo echo;
    (void)unused;
    start_workers(&echo, BUDGET, 2);
    int holder = client_ready(&echo);
    int other = client_ready(&echo); /* connections are dealt in turn */
    int second = client_ready(&echo);
    say_half(holder, LARGE);
    wait_for_held(&echo, LARGE);
    say_half(second, MORE);
    wait_for(&echo.closed, 1);
    client_expect_end(holder);
    wait_for_held(&echo, MORE);
    say_half(other, OTHERS);
    wait_for_held(&echo, MORE + OTHERS);
    assert_true(is_open(second) && is_open(other));
    close(second);
    close(other);
    close(holder);
    echo_stop(&echo);
}

/* What waits for a release is promised: it is not closed to make room for another. Answers count
 * once they left the worker's hold, which takes a mebibyte of them. */
static void test_sealed_is_no_hoarder(void **unused)
{
    enum { LETTERS = 300000, SEALED = 4 };
    struct echo echo;
    int sealed[SEALED];
    (void)unused;
    start(&echo, SEALED * LETTERS + LETTERS / 2); /* each holds more than the other one can */
    for (int i = 0; i < SEALED; i++) {
        sealed[i] = client_ready(&echo);
        client_say(sealed[i], "hold big 300000\n");
    }
    wait_for_held(&echo, SEALED * LETTERS);
    int other = client_ready(&echo);
    say_until_closed(&echo, other, 4096);
    net_release(atomic_load(&echo.workers[0]), SEALED);
    for (int i = 0; i < SEALED; i++) {
        client_expect_big(sealed[i], LETTERS);
        client_say(sealed[i], "x\n");
        client_expect(sealed[i], "x\n");
        close(sealed[i]);
    }
    close(other);
    echo_stop(&echo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_holds_most_is_closed),
        cmocka_unit_test(test_who_needs_most_is_closed),
        cmocka_unit_test(test_each_worker_has_its_share),
        cmocka_unit_test(test_sealed_is_no_hoarder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
