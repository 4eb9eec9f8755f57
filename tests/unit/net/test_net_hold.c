/*
 * test_net_hold.c: answers that are held until a commit, and those that wait for a release.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "echo.h"
#include "tests/support/give_way.h"

#define FOR_EVER 1000000u /* permits */
#define BUDGET   (16u << 20)

static const char *const any_port[] = {"127.0.0.1:0"};

static void start_threads(struct echo *echo, unsigned threads, enum net_commit verdict,
                          uint64_t budget)
{
    struct net_options options = echo_options(echo, any_port);
    options.threads = threads;
    echo->budget.bytes_max = budget;
    echo->holds = true;
    atomic_store(&echo->verdict, verdict);
    assert_true(echo_start(echo, &options));
}

/* One worker, so that a test knows what shares a wake-up. */
static void start(struct echo *echo, enum net_commit verdict)
{
    start_threads(echo, 1, verdict, BUDGET);
}

/* The worker has been through all that it was told before. */
static void pass(const struct echo *echo)
{
    close(client_ready(echo));
}

/* A client whose answer to `text` waits: the worker has been through the wake-up that sealed it. */
static int client_sealed(struct echo *echo, const char *text)
{
    int fd = client_ready(echo);
    unsigned before = atomic_load(&echo->commits);
    client_say(fd, text);
    wait_for(&echo->commits, before + 1);
    pass(echo);
    client_expect_nothing(fd);
    return fd;
}

static void release(struct echo *echo, uint64_t number)
{
    net_release(atomic_load(&echo->workers[0]), number);
}

static void test_no_commit_no_hold(void **unused)
{
    struct echo echo;
    (void)unused;
    struct net_options options = echo_options(&echo, any_port);
    assert_true(echo_start(&echo, &options));
    int fd = client_open(&echo);
    client_say(fd, "hold a\nb\nhold mute\nhold quit\n");
    client_expect(fd, "a\nb\nbye\n");
    client_expect_end(fd);
    close(fd);
    echo_stop(&echo);
    assert_int_equal(echo.commits, 0);
}

static void test_nothing_before_the_commit(void **unused)
{
    struct echo echo;
    (void)unused;
    start(&echo, NET_COMMITTED);
    int first = client_ready(&echo);
    int held = client_ready(&echo);
    int plain = client_ready(&echo);
    assert_int_equal(echo.commits, 0);
    atomic_store(&echo.gated, true);
    client_say(first, "hold first\n");
    wait_for(&echo.at_gate, 1);
    client_expect_nothing(first);
    client_say_taken(held, "a\nhold b\nc\n"); /* both in the next wake-up */
    client_say_taken(plain, "plain\n");
    atomic_store(&echo.permits, 1);
    client_expect(first, "first\n");
    wait_for(&echo.at_gate, 2);
    client_expect(plain, "plain\n");
    client_expect_nothing(held);
    atomic_store(&echo.permits, 2);
    client_expect(held, "a\nb\nc\n");
    close(first);
    close(held);
    close(plain);
    echo_stop(&echo);
    assert_int_equal(echo.commits, 2);
}

static void test_one_commit_a_wake_up(void **unused)
{
    enum { CONNS = 20 }; /* below what the event loop takes at once */
    struct echo echo;
    int fds[CONNS];
    char text[64];
    (void)unused;
    start(&echo, NET_COMMITTED);
    for (int i = 0; i < CONNS; i++) {
        fds[i] = client_ready(&echo);
    }
    atomic_store(&echo.gated, true);
    client_say(fds[0], "hold 0\n");
    wait_for(&echo.at_gate, 1);
    for (int i = 1; i < CONNS; i++) {
        snprintf(text, sizeof(text), "hold %d\n", i);
        client_say_taken(fds[i], text);
    }
    atomic_store(&echo.permits, FOR_EVER);
    for (int i = 0; i < CONNS; i++) {
        snprintf(text, sizeof(text), "%d\n", i);
        client_expect(fds[i], text);
        close(fds[i]);
    }
    echo_stop(&echo);
    assert_int_equal(echo.commits, 2);
}

static void test_early_commit(void **unused)
{
    enum { CONNS = 3, LETTERS = 600000 }; /* two of them fill the hold */
    struct echo echo;
    int fds[CONNS];
    (void)unused;
    start(&echo, NET_COMMITTED);
    int first = client_ready(&echo);
    for (int i = 0; i < CONNS; i++) {
        fds[i] = client_ready(&echo);
    }
    atomic_store(&echo.gated, true);
    client_say(first, "hold first\n");
    wait_for(&echo.at_gate, 1);
    for (int i = 0; i < CONNS; i++) {
        client_say_taken(fds[i], "hold big 600000\nafter\n");
    }
    atomic_store(&echo.permits, FOR_EVER);
    client_expect(first, "first\n");
    for (int i = 0; i < CONNS; i++) {
        client_expect_big(fds[i], LETTERS);
        client_expect(fds[i], "after\n");
        close(fds[i]);
    }
    close(first);
    echo_stop(&echo);
    assert_int_equal(echo.commits, 3);
}

/* Pipelines of several clients at once that mix held and other turns. */

enum { PIPE_CONNS = 6, PIPE_LINES = 6000, PIPE_LINE = 8 };

struct pipe_client {
    pthread_t thread;
    int fd;
    char *text;
    size_t length;
};

static void *pipe_send(void *argument)
{
    const struct pipe_client *client = argument;
    client_send(client->fd, client->text, client->length);
    return NULL;
}

static void pipe_start(struct pipe_client *client, const struct echo *echo, int seed)
{
    client->fd = client_open(echo);
    client->text = malloc(PIPE_LINES * (PIPE_LINE + 5) + 1);
    client->length = 0;
    assert_non_null(client->text);
    for (int i = 0; i < PIPE_LINES; i++) {
        bool hold = (i / ECHO_LINES_PER_TURN + seed) % 3 == 0 && i % 5 == 0;
        client->length +=
            (size_t)sprintf(client->text + client->length, "%s%07d\n", hold ? "hold " : "", i);
    }
    assert_int_equal(pthread_create(&client->thread, NULL, pipe_send, client), 0);
}

static void pipe_finish(struct pipe_client *client)
{
    char want[PIPE_LINE + 1];
    for (int i = 0; i < PIPE_LINES; i++) {
        snprintf(want, sizeof(want), "%07d\n", i);
        client_expect(client->fd, want);
    }
    pthread_join(client->thread, NULL);
    client_expect_nothing(client->fd);
    close(client->fd);
    free(client->text);
}

static void run_pipes(const struct echo *echo)
{
    struct pipe_client clients[PIPE_CONNS];
    for (int i = 0; i < PIPE_CONNS; i++) {
        pipe_start(&clients[i], echo, i);
    }
    for (int i = 0; i < PIPE_CONNS; i++) {
        pipe_finish(&clients[i]);
    }
}

static void test_order_committed(void **unused)
{
    struct echo echo;
    (void)unused;
    start_threads(&echo, 2, NET_COMMITTED, BUDGET);
    run_pipes(&echo);
    echo_stop(&echo);
    assert_true(echo.commits > 100);
}

struct releaser {
    pthread_t thread;
    struct echo *echo;
    _Atomic bool done;
};

/* Releases what was committed, again and again: as a thread that syncs. */
static void *release_all(void *argument)
{
    struct releaser *releaser = argument;
    struct echo *echo = releaser->echo;
    while (!atomic_load(&releaser->done)) {
        uint64_t number = atomic_load(&echo->number);
        for (unsigned i = 0; i < echo->threads; i++) {
            net_release(atomic_load(&echo->workers[i]), number);
        }
        give_way();
    }
    return NULL;
}

static void test_order_released(void **unused)
{
    struct echo echo;
    (void)unused;
    start_threads(&echo, 2, NET_COMMIT_LATER, BUDGET);
    struct releaser releasers[2];
    for (int i = 0; i < 2; i++) {
        releasers[i].echo = &echo;
        atomic_init(&releasers[i].done, false);
        assert_int_equal(pthread_create(&releasers[i].thread, NULL, release_all, &releasers[i]), 0);
    }
    run_pipes(&echo);
    for (int i = 0; i < 2; i++) {
        atomic_store(&releasers[i].done, true);
        pthread_join(releasers[i].thread, NULL);
    }
    assert_int_equal(echo.budget.used_bytes, 0); /* nothing sealed is left */
    echo_stop(&echo);
    assert_true(echo.commits > 100);
}

static void test_released_in_the_commit(void **unused)
{
    struct echo echo;
    (void)unused;
    start_threads(&echo, 2, NET_COMMIT_LATER, BUDGET);
    atomic_store(&echo.release_in_commit, true);
    run_pipes(&echo);
    echo_stop(&echo);
}

static void test_release_by_number(void **unused)
{
    struct echo echo;
    int fds[4];
    (void)unused;
    start(&echo, NET_COMMIT_LATER);
    for (int i = 0; i < 4; i++) {
        fds[i] = client_sealed(&echo, "hold x\n"); /* waits for i + 1 */
    }
    release(&echo, 0); /* nobody's */
    pass(&echo);
    client_expect_nothing(fds[0]);
    release(&echo, 1);
    client_expect(fds[0], "x\n");
    pass(&echo);
    client_expect_nothing(fds[1]);
    release(&echo, 3); /* two at once */
    release(&echo, 1); /* no step back */
    client_expect(fds[1], "x\n");
    client_expect(fds[2], "x\n");
    pass(&echo);
    client_expect_nothing(fds[3]);
    release(&echo, UINT64_MAX); /* whatever comes */
    client_expect(fds[3], "x\n");
    client_say(fds[0], "hold y\nz\n");
    client_expect(fds[0], "y\nz\n");
    for (int i = 0; i < 4; i++) {
        close(fds[i]);
    }
    echo_stop(&echo);
}

static void test_sealed_is_not_read(void **unused)
{
    struct echo echo;
    (void)unused;
    start(&echo, NET_COMMIT_LATER);
    int fd = client_sealed(&echo, "a\nhold b\n");
    int other = client_ready(&echo);
    uint64_t before = FIGURE(&echo, bytes_read);
    client_say_taken(fd, "c\n");
    client_say(other, "d\n");
    client_expect(other, "d\n");
    assert_int_equal(FIGURE(&echo, bytes_read), before + 2);
    release(&echo, 1);
    client_expect(fd, "a\nb\nc\n");
    close(fd);
    close(other);
    echo_stop(&echo);
}

static void test_failed(void **unused)
{
    struct echo echo;
    (void)unused;
    start(&echo, NET_COMMIT_FAILED);
    int held = client_ready(&echo);
    int again = client_ready(&echo);
    int mute = client_ready(&echo);
    int plain = client_ready(&echo);
    client_say(held, "a\nhold b\nc\n");
    client_expect_end(held);
    /* A whole turn of lines: it would go on. */
    client_say(again, "hold 1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n");
    client_expect_end(again);
    client_say(mute, "hold mute\n"); /* nothing was to be said: a commit, but no reason to close */
    wait_for(&echo.commits, 3);
    client_say(mute, "m\n");
    client_expect(mute, "m\n");
    client_say(plain, "p\n");
    client_expect(plain, "p\n");
    atomic_store(&echo.verdict, NET_COMMITTED);
    client_say(plain, "hold q\n");
    client_expect(plain, "q\n");
    close(held);
    close(again);
    close(mute);
    close(plain);
    wait_for(&echo.closed, 4);
    echo_stop(&echo);
}

/* The reset comes while the commit is under way. */
static void test_gone_while_held(void **unused)
{
    static const enum net_commit verdicts[] = {NET_COMMITTED, NET_COMMIT_LATER, NET_COMMIT_FAILED};
    struct echo echo;
    (void)unused;
    start(&echo, NET_COMMITTED);
    atomic_store(&echo.gated, true);
    for (unsigned i = 0; i < 3; i++) {
        int gone = client_ready(&echo);
        atomic_store(&echo.verdict, verdicts[i]);
        client_say(gone, "hold x\ny\n");
        wait_for(&echo.at_gate, i + 1);
        client_reset(gone);
        atomic_store(&echo.permits, i + 1);
        wait_for(&echo.closed, i + 1);
    }
    release(&echo, 3);
    int fd = client_ready(&echo);
    close(fd);
    echo_stop(&echo);
}

static void test_gone_while_sealed(void **unused)
{
    struct echo echo;
    (void)unused;
    start(&echo, NET_COMMIT_LATER);
    int before = client_sealed(&echo, "hold before\n");
    int gone = client_sealed(&echo, "hold gone\n");
    int more = client_sealed(&echo, "hold more\n");
    int after = client_sealed(&echo, "hold after\n");
    unsigned others = 4;
    wait_for(&echo.closed, others); /* of client_sealed */
    client_reset(gone);             /* noticed by itself */
    wait_for(&echo.closed, others + 1);
    client_say_taken(more, "unread\n");
    client_reset(more); /* noticed when its answer is sent, if not before */
    assert_int_equal(shutdown(after, SHUT_WR), 0); /* in order: answered */
    release(&echo, 4);
    client_expect(before, "before\n");
    client_expect(after, "after\n");
    client_expect_end(after);
    wait_for(&echo.closed, others + 3);
    close(before);
    close(after);
    echo_stop(&echo);
}

static void test_quit_while_held(void **unused)
{
    struct echo echo;
    (void)unused;
    start(&echo, NET_COMMITTED);
    int fd = client_ready(&echo);
    client_say(fd, "hold a\nquit\nunread\n");
    client_expect(fd, "a\nbye\n");
    client_expect_end(fd);
    close(fd);
    atomic_store(&echo.verdict, NET_COMMIT_LATER);
    fd = client_sealed(&echo, "hold b\nquit\n");
    release(&echo, 2);
    client_expect(fd, "b\nbye\n");
    client_expect_end(fd);
    close(fd);
    echo_stop(&echo);
}

static void test_suspended_while_sealed(void **unused)
{
    struct echo echo;
    (void)unused;
    start(&echo, NET_COMMIT_LATER);
    int wake_first = client_sealed(&echo, "hold a\nwait\nb\n");
    assert_int_equal(echo.waiting, 1);
    atomic_store(&echo.released, true);
    net_wake(echo.waiting_worker, echo.waiting_serial);
    int other = client_ready(&echo); /* past the wake */
    client_expect_nothing(wake_first);
    release(&echo, 1);
    client_expect(wake_first, "a\ndone\nb\n");

    atomic_store(&echo.released, false);
    int release_first = client_sealed(&echo, "hold c\nwait\nd\n");
    assert_int_equal(echo.waiting, 2);
    release(&echo, 2);
    client_expect(release_first, "c\n");
    client_say(other, "x\n");
    client_expect(other, "x\n");
    client_expect_nothing(release_first);
    atomic_store(&echo.released, true);
    net_wake(echo.waiting_worker, echo.waiting_serial);
    client_expect(release_first, "done\nd\n");

    int early = client_sealed(&echo, "hold e\nearly\nf\n"); /* woken in the turn itself */
    release(&echo, 3);
    client_expect(early, "e\nearly\nf\n");
    close(wake_first);
    close(release_first);
    close(early);
    close(other);
    echo_stop(&echo);
}

/* The wake is read in the wake-up of the turn that is held, before its commit. */
static void test_woken_while_held(void **unused)
{
    struct echo echo;
    (void)unused;
    start(&echo, NET_COMMITTED);
    int first = client_ready(&echo);
    int fd = client_ready(&echo);
    atomic_store(&echo.gated, true);
    client_say(first, "hold a\n");
    wait_for(&echo.at_gate, 1);
    client_say_taken(fd, "hold b\nearly\nc\n");
    net_wake(atomic_load(&echo.workers[0]), 123456789); /* nobody, but then the mail is looked at */
    atomic_store(&echo.permits, FOR_EVER);
    client_expect(fd, "b\nearly\nc\n");
    client_expect(first, "a\n");
    close(first);
    close(fd);
    echo_stop(&echo);
}

/* What the socket does not take goes the ordinary way, and the rest of the pipe after it. */
static void test_slow_reader(void **unused)
{
    enum { ANSWERS = 12, LETTERS = 1000000 };
    static const enum net_commit verdicts[] = {NET_COMMITTED, NET_COMMIT_LATER};
    struct echo echo;
    (void)unused;
    start(&echo, NET_COMMITTED);
    atomic_store(&echo.release_in_commit, true);
    for (int v = 0; v < 2; v++) {
        int fd = client_ready(&echo);
        atomic_store(&echo.verdict, verdicts[v]);
        for (int i = 0; i < ANSWERS; i++) {
            client_say(fd, i % 3 == 0 ? "big 1000000\n" : "hold big 1000000\n");
        }
        client_say(fd, "hold x\ny\n");
        wait_for_held(&echo, 1);
        for (int i = 0; i < ANSWERS; i++) {
            client_expect_big(fd, LETTERS);
        }
        client_expect(fd, "x\ny\n");
        close(fd);
        wait_for(&echo.closed, (unsigned)v + 1);
        assert_int_equal(echo.budget.used_bytes, 0);
    }
    echo_stop(&echo);
}

/* Answers that wait need none of the budget until the hold is full: then all that wait do. */
static void test_no_budget_to_seal(void **unused)
{
    struct echo echo;
    (void)unused;
    start_threads(&echo, 1, NET_COMMIT_LATER, 1);
    int fd = client_sealed(&echo, "hold big 600000\n");
    int second = client_ready(&echo);
    int other = client_ready(&echo);
    assert_int_equal(FIGURE(&echo, budget_closed), 0);
    client_say(second, "hold big 600000\n");
    client_expect_end(fd);
    client_expect_end(second);
    close(second);
    assert_int_equal(FIGURE(&echo, budget_closed), 2);
    atomic_store(&echo.verdict, NET_COMMITTED); /* needs none */
    client_say(other, "hold y\n");
    client_expect(other, "y\n");
    client_say(other, "hold z\nhalf"); /* nowhere to keep the half: gone, and nothing is said */
    client_expect_end(other);
    assert_int_equal(FIGURE(&echo, budget_closed), 3);
    close(fd);
    close(other);
    echo_stop(&echo);
}

static void test_sealed_outlives_time_outs(void **unused)
{
    struct echo echo;
    (void)unused;
    start(&echo, NET_COMMIT_LATER);
    int sealed = client_sealed(&echo, "hold a\nhalf");
    net_reconfigure(echo.net, 10, 1, 1);
    for (int i = 0; i < 2; i++) { /* each lives a second or more, and the sweep sees all */
        int idle = client_ready(&echo);
        client_expect_end(idle);
        close(idle);
    }
    net_reconfigure(echo.net, 10, 0, 0);
    release(&echo, 1);
    client_expect(sealed, "a\n");
    client_say(sealed, " line\n");
    client_expect(sealed, "half line\n");
    close(sealed);
    echo_stop(&echo);
}

/* A release that never comes: then it is not known what became of the request. */
static void test_waits_not_for_ever(void **unused)
{
    struct echo echo;
    (void)unused;
    struct net_options options = echo_options(&echo, any_port);
    options.threads = 1;
    options.hold_stall_s = 1;
    echo.holds = true;
    atomic_store(&echo.verdict, NET_COMMIT_LATER);
    assert_true(echo_start(&echo, &options));
    int first = client_sealed(&echo, "hold a\n");
    int idle = client_ready(&echo);
    int second = client_sealed(&echo, "hold big 1048576\n"); /* copied to its own output */
    client_expect_end(first);
    client_expect_end(second);
    assert_int_equal(FIGURE(&echo, hold_stalls), 2);
    assert_int_equal(echo.budget.used_bytes, 0);
    release(&echo, 2);
    client_say(idle, "x\n");
    client_expect(idle, "x\n");
    close(first);
    close(idle);
    close(second);
    echo_stop(&echo);
}

/* What waits is copied into the connections' own outputs when the hold is full, again and again,
 * and leaves in the order of its numbers with what waits in the hold. */
static void test_full_hold_waits(void **unused)
{
    enum { CONNS = 7, LETTERS = 300000 }; /* four of them fill the hold */
    struct echo echo;
    int fds[CONNS];
    (void)unused;
    start(&echo, NET_COMMIT_LATER);
    for (int i = 0; i < CONNS; i++) {
        fds[i] = client_sealed(&echo, "hold big 300000\nafter\n");
    }
    assert_in_range(echo.budget.used_bytes, 4 * LETTERS, 5 * LETTERS);
    for (int i = 0; i < CONNS; i++) {
        release(&echo, (uint64_t)i + 1);
        client_expect_big(fds[i], LETTERS);
        client_expect(fds[i], "after\n");
        pass(&echo);
        for (int later = i + 1; later < CONNS; later++) {
            client_expect_nothing(fds[later]);
        }
    }
    assert_int_equal(echo.budget.used_bytes, 0);
    for (int i = 0; i < CONNS; i++) {
        client_say(fds[i], "z\n");
        client_expect(fds[i], "z\n");
        close(fds[i]);
    }
    echo_stop(&echo);
}

static void test_end_while_sealed(void **unused)
{
    struct echo echo;
    (void)unused;
    start(&echo, NET_COMMIT_LATER);
    int first = client_sealed(&echo, "hold a\n");
    int second = client_sealed(&echo, "hold b\nwait\n");
    echo_stop(&echo); /* looks at the budget, too */
    assert_int_equal(echo.closed, 4);
    client_expect_end(first);
    client_expect_end(second);
    close(first);
    close(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_commit_no_hold),
        cmocka_unit_test(test_nothing_before_the_commit),
        cmocka_unit_test(test_one_commit_a_wake_up),
        cmocka_unit_test(test_early_commit),
        cmocka_unit_test(test_order_committed),
        cmocka_unit_test(test_order_released),
        cmocka_unit_test(test_released_in_the_commit),
        cmocka_unit_test(test_release_by_number),
        cmocka_unit_test(test_sealed_is_not_read),
        cmocka_unit_test(test_failed),
        cmocka_unit_test(test_gone_while_held),
        cmocka_unit_test(test_gone_while_sealed),
        cmocka_unit_test(test_quit_while_held),
        cmocka_unit_test(test_suspended_while_sealed),
        cmocka_unit_test(test_woken_while_held),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_no_budget_to_seal),
        cmocka_unit_test(test_full_hold_waits),
        cmocka_unit_test(test_waits_not_for_ever),
        cmocka_unit_test(test_sealed_outlives_time_outs),
        cmocka_unit_test(test_end_while_sealed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
