/*
 * test_net_stall.c: a minute without progress, by a clock of the test's: a client that takes
 * nothing is closed, one that waits for us is not.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "echo.h"

#define BUDGET (16u << 20)

static const char *const any_port[] = {"127.0.0.1:0"};

/* ---- in place of base/clock.c ---- */

static _Atomic uint64_t ahead_us;

uint64_t clock_monotonic_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000 + atomic_load(&ahead_us);
}

uint64_t clock_wall_s(void)
{
    return (uint64_t)time(NULL);
}

uint64_t clock_random(void)
{
    return 4; /* nobody here draws */
}

/* ---- the tests ---- */

/* Its socket takes little. */
static int client_small(const struct echo *echo)
{
    int bytes = 4096;
    int fd = client_socket(echo);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
    client_connect(echo, fd);
    return fd;
}

static void test_stalled_is_closed_and_sealed_is_not(void **unused)
{
    struct echo echo;
    (void)unused;
    struct net_options options = echo_options(&echo, any_port);
    options.threads = 1;
    echo.budget.bytes_max = BUDGET;
    echo.holds = true;
    options.hold_stall_s = UINT32_MAX; /* however often the clock leaps */
    atomic_store(&echo.verdict, NET_COMMIT_LATER);
    assert_true(echo_start(&echo, &options));
    int sealed = client_ready(&echo);
    client_say(sealed, "hold a\n");
    int filler = client_ready(&echo);
    client_say(filler, "hold big 1100000\n"); /* with it the hold is full, and is sealed */
    wait_for_held(&echo, 1100000);
    int idle = client_ready(&echo);
    int stalled = client_small(&echo);
    for (int i = 0; i < 8; i++) { /* more than the server's socket takes */
        client_say(stalled, "big 1000000\n");
    }
    for (unsigned looks = 0; atomic_load(&echo.closed) == 0; looks++) {
        assert_true(looks < ECHO_TIMEOUT_S * 100);
        atomic_fetch_add(&ahead_us, NET_WRITE_STALL_S * 1000000ull);
        (void)poll(NULL, 0, 10); /* its socket may have taken a last piece meanwhile */
    }
    assert_int_equal(FIGURE(&echo, write_stalls), 1);
    net_release(atomic_load(&echo.workers[0]), 2);
    client_expect(sealed, "a\n");
    client_expect_big(filler, 1100000);
    client_say(idle, "b\n");
    client_expect(idle, "b\n");
    close(sealed);
    close(filler);
    close(idle);
    close(stalled);
    echo_stop(&echo);
}

/* What the socket does not take at once comes later, and is what it was. */
static void test_rest_comes_later(void **unused)
{
    enum { ANSWERS = 8, LETTERS = 1000000 };
    struct echo echo;
    (void)unused;
    struct net_options options = echo_options(&echo, any_port);
    echo.budget.bytes_max = BUDGET;
    assert_true(echo_start(&echo, &options));
    int fd = client_small(&echo);
    for (int i = 0; i < ANSWERS; i++) {
        client_say(fd, "big 1000000\n");
    }
    wait_for_held(&echo, 1);
    for (int i = 0; i < ANSWERS; i++) {
        client_expect_big(fd, LETTERS);
    }
    close(fd);
    echo_stop(&echo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rest_comes_later),
        cmocka_unit_test(test_stalled_is_closed_and_sealed_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
