/*
 * test_net_gather.c: short answers of a wake-up, which leave together. A commit that waits at its
 * gate makes the worker find many clients at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "echo.h"

#define CONNS    100u /* more than leave together */
#define LONG     5000u
#define FOR_EVER 1000000u /* permits */

static const char *const any_port[] = {"127.0.0.1:0"};

struct crowd {
    struct echo echo;
    int holder; /* its answer is what the worker waits with */
    int fds[CONNS];
};

/* One worker, which is not looking at its sockets. */
static void begin(struct crowd *crowd)
{
    struct net_options options = echo_options(&crowd->echo, any_port);
    options.threads = 1;
    crowd->echo.holds = true;
    atomic_store(&crowd->echo.verdict, NET_COMMITTED);
    assert_true(echo_start(&crowd->echo, &options));
    crowd->holder = client_ready(&crowd->echo);
    for (unsigned i = 0; i < CONNS; i++) {
        crowd->fds[i] = client_ready(&crowd->echo);
    }
    atomic_store(&crowd->echo.gated, true);
    client_say(crowd->holder, "hold h\n");
    wait_for(&crowd->echo.at_gate, 1);
}

static void go_on(struct crowd *crowd)
{
    atomic_store(&crowd->echo.permits, FOR_EVER);
    client_expect(crowd->holder, "h\n");
}

static void end(struct crowd *crowd)
{
    for (unsigned i = 0; i < CONNS; i++) {
        close(crowd->fds[i]);
    }
    close(crowd->holder);
    echo_stop(&crowd->echo);
}

static const char *name(unsigned i)
{
    static char text[16];
    snprintf(text, sizeof(text), "%u\n", i);
    return text;
}

/* Short, long, held and last answers, each to whom it belongs. */
static void test_everybody(void **unused)
{
    struct crowd crowd;
    char text[64];
    (void)unused;
    begin(&crowd);
    for (unsigned i = 0; i < CONNS; i++) {
        static const char *const forms[] = {"%u\n", "%u\nbig 5000\n", "%u\nquit\n", "hold %u\n"};
        snprintf(text, sizeof(text), forms[i % 4], i);
        client_say_taken(crowd.fds[i], text);
    }
    go_on(&crowd);
    for (unsigned i = 0; i < CONNS; i++) {
        client_expect(crowd.fds[i], name(i));
        if (i % 4 == 1) {
            client_expect_big(crowd.fds[i], LONG);
        } else if (i % 4 == 2) {
            client_expect(crowd.fds[i], "bye\n");
            client_expect_end(crowd.fds[i]);
        } else {
            client_say(crowd.fds[i], "more\n");
            client_expect(crowd.fds[i], "more\n");
        }
    }
    wait_for(&crowd.echo.closed, CONNS / 4);
    end(&crowd);
}

/* More lines than a turn takes: the next turn comes after the answers of the first. */
static void test_order(void **unused)
{
    enum { LINES = 5 * ECHO_LINES_PER_TURN };
    struct crowd crowd;
    char text[8 * LINES] = "";
    (void)unused;
    begin(&crowd);
    for (unsigned line = 0; line < LINES; line++) {
        strcat(text, name(line));
    }
    for (unsigned i = 0; i < CONNS; i++) {
        client_say_taken(crowd.fds[i], text);
    }
    go_on(&crowd);
    for (unsigned i = 0; i < CONNS; i++) {
        client_expect(crowd.fds[i], text);
    }
    end(&crowd);
}

/* Some are gone by the time their answers leave: the others get theirs. */
static void test_gone(void **unused)
{
    struct crowd crowd;
    (void)unused;
    begin(&crowd);
    for (unsigned i = 0; i < CONNS; i++) {
        client_say_taken(crowd.fds[i], name(i));
    }
    for (unsigned i = 0; i < CONNS; i += 3) {
        client_reset(crowd.fds[i]);
        crowd.fds[i] = client_socket(&crowd.echo);
    }
    go_on(&crowd);
    for (unsigned i = 0; i < CONNS; i++) {
        if (i % 3 != 0) {
            client_expect(crowd.fds[i], name(i));
        }
    }
    wait_for(&crowd.echo.closed, (CONNS + 2) / 3);
    end(&crowd);
}

/* An answer before a suspension does not wait for its end, and a wake is not lost. */
static void test_suspended(void **unused)
{
    struct crowd crowd;
    (void)unused;
    begin(&crowd);
    client_say_taken(crowd.fds[0], "before\nwait\nbehind\n");
    client_say_taken(crowd.fds[1], "early\n");
    go_on(&crowd);
    client_expect(crowd.fds[0], "before\n");
    client_expect(crowd.fds[1], "early\n");
    wait_for(&crowd.echo.waiting, 1);
    atomic_store(&crowd.echo.released, true);
    net_wake(crowd.echo.waiting_worker, crowd.echo.waiting_serial);
    client_expect(crowd.fds[0], "done\nbehind\n");
    end(&crowd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everybody),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_suspended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
