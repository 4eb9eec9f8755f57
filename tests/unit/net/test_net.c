/*
 * test_net.c: net through its sockets, with the line service of echo.h.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "echo.h"
#include "net/address.h"

static const char *const any_port[] = {"127.0.0.1:0"};

static void start(struct echo *echo)
{
    struct net_options options = echo_options(echo, any_port);
    assert_true(echo_start(echo, &options));
}

/* A client on its own thread, so that the test can read while it sends. */
struct sender {
    pthread_t thread;
    int fd;
    const char *bytes;
    size_t length;
};

static void *send_all(void *argument)
{
    const struct sender *sender = argument;
    client_send(sender->fd, sender->bytes, sender->length);
    return NULL;
}

static void test_any_split(void **unused)
{
    static const char text[] = "alpha\nbeta\n\ngamma delta\nlast\n";
    struct echo echo;
    (void)unused;
    start(&echo);
    int fd = client_open(&echo);
    uint64_t sent = 0;
    for (size_t at = 1; at + 1 < sizeof(text); at++) {
        client_send(fd, text, at);
        wait_for_read(&echo, sent + at); /* so that the rest comes by another read */
        client_send(fd, text + at, sizeof(text) - 1 - at);
        client_expect(fd, text);
        sent += sizeof(text) - 1;
    }
    for (size_t at = 0; at + 1 < sizeof(text); at++) {
        client_send(fd, text + at, 1);
        wait_for_read(&echo, ++sent);
    }
    client_expect(fd, text);
    assert_int_equal(FIGURE(&echo, bytes_written), sent);
    close(fd);
    echo_stop(&echo);
    assert_int_equal(echo.closed, 1);
}

static void test_pipelined(void **unused)
{
    enum { LINES = 100000, LINE = 8 };
    struct echo echo;
    (void)unused;
    start(&echo);
    char *text = malloc(LINES * LINE + 1);
    char *got = malloc(LINES * LINE);
    assert_true(text != NULL && got != NULL);
    for (int i = 0; i < LINES; i++) {
        snprintf(text + i * LINE, LINE + 1, "%07d\n", i);
    }
    struct sender sender = {.fd = client_open(&echo), .bytes = text, .length = LINES * LINE};
    assert_int_equal(pthread_create(&sender.thread, NULL, send_all, &sender), 0);
    client_receive(sender.fd, got, LINES * LINE);
    pthread_join(sender.thread, NULL);
    assert_memory_equal(got, text, LINES * LINE);
    assert_true(FIGURE(&echo, conn_yields) > LINES / ECHO_LINES_PER_TURN / 2);
    assert_int_equal(echo.budget.used_bytes, 0); /* idle again: no buffer held */
    free(text);
    free(got);
    close(sender.fd);
    echo_stop(&echo);
}

/* All with half a line at once, dealt to the workers evenly. */
static void test_many_connections(void **unused)
{
    enum { CONNS = 200 }; /* enough for the table of connections to grow */
    struct echo echo;
    int fds[CONNS];
    (void)unused;
    start(&echo);
    for (int i = 0; i < CONNS; i++) {
        fds[i] = client_open(&echo);
        client_say(fds[i], "half a li");
    }
    for (int i = CONNS - 1; i >= 0; i--) {
        client_say(fds[i], "ne\n");
        client_expect(fds[i], "half a line\n");
    }
    assert_int_equal(echo.conns_of[0], CONNS / 2);
    assert_int_equal(echo.conns_of[1], CONNS / 2);
    for (int i = 0; i < CONNS; i++) {
        close(fds[i]);
    }
    wait_for_open(&echo, 0);
    assert_int_equal(FIGURE(&echo, total_connections), CONNS);
    echo_stop(&echo);
    assert_int_equal(echo.closed, CONNS);
}

/* Reads and drops so many bytes. */
static void skip_bytes(int fd, uint64_t bytes)
{
    char got[65536];
    while (bytes > 0) {
        ssize_t n = recv(fd, got, bytes < sizeof(got) ? bytes : sizeof(got), 0);
        assert_true(n > 0);
        bytes -= (uint64_t)n;
    }
}

static void test_slow_reader(void **unused)
{
    enum { ANSWERS = 30, ANSWER = 900000 };
    struct echo echo;
    char got[65536];
    (void)unused;
    start(&echo);
    int fd = client_open(&echo);
    for (int i = 0; i < ANSWERS; i++) {
        client_say(fd, "big 900000\n");
    }
    wait_for_held(&echo, 1);
    client_say(fd, "x\n"); /* not read before the others are answered */
    uint64_t have = 0;
    const uint64_t total = (uint64_t)ANSWERS * (ANSWER + 1) + 2;
    while (have < total) {
        ssize_t n = recv(fd, got, sizeof(got), 0);
        assert_true(n > 0);
        have += (uint64_t)n;
        assert_true(echo.budget.used_bytes <= 2 * NET_OUTPUT_MAX);
    }
    assert_int_equal(have, total);
    close(fd);
    echo_stop(&echo);
}

static void test_budget_used_up(void **unused)
{
    struct echo echo;
    (void)unused;
    struct net_options options = echo_options(&echo, any_port);
    echo.budget.bytes_max = 16384;
    assert_true(echo_start(&echo, &options));
    int fd = client_open(&echo);
    int other = client_open(&echo);
    for (int i = 0; i < 30; i++) {
        client_say(fd, "big 900000\n");
    }
    wait_for(&echo.closed, 1);
    assert_int_equal(FIGURE(&echo, budget_closed), 1);
    client_say(other, "alive\n");
    client_expect(other, "alive\n");
    close(fd);
    close(other);
    echo_stop(&echo);
}

static void test_suspend_and_wake(void **unused)
{
    struct echo echo;
    (void)unused;
    start(&echo);
    int fd = client_open(&echo);
    client_say(fd, "a\nwait\nb\n");
    client_expect(fd, "a\n");
    wait_for(&echo.waiting, 1);
    client_say(fd, "c\n");
    net_wake(echo.waiting_worker, echo.waiting_serial); /* for nothing: it suspends again */
    wait_for(&echo.waiting, 2);
    net_wake(echo.waiting_worker, 123456789); /* nobody */
    int other = client_open(&echo);
    client_say(other, "others go on\n");
    client_expect(other, "others go on\n");
    atomic_store(&echo.released, true);
    net_wake(echo.waiting_worker, echo.waiting_serial);
    client_expect(fd, "done\nb\nc\n");
    net_wake(echo.waiting_worker, echo.waiting_serial); /* not suspended: ignored */
    client_say(fd, "d\n");
    client_expect(fd, "d\n");
    close(fd);
    close(other);
    echo_stop(&echo);
}

static void test_wake_before_suspended(void **unused)
{
    struct echo echo;
    (void)unused;
    start(&echo);
    int fd = client_open(&echo);
    for (int i = 0; i < 200; i++) {
        client_say(fd, "early\nafter\n");
        client_expect(fd, "early\nafter\n");
    }
    close(fd);
    echo_stop(&echo);
}

/* A unix socket takes far less than one turn's output: the wake comes while it drains. */
static void test_wake_while_draining(void **unused)
{
    char folder[] = "/tmp/rollcall-net-XXXXXX";
    char path[64];
    const char *const address[] = {path};
    struct echo echo;
    (void)unused;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/socket", folder);
    struct net_options options = echo_options(&echo, address);
    assert_true(echo_start(&echo, &options));
    int fd = client_open(&echo);
    client_say(fd, "big 1000000\nearly\nafter\n");
    wait_for_held(&echo, 500000);
    skip_bytes(fd, 1000001);
    client_expect(fd, "early\nafter\n");
    close(fd);
    echo_stop(&echo);
    assert_int_equal(rmdir(folder), 0);
}

/* A suspended connection with `more` sent after the suspension, ready for its end. */
static int suspend_one(struct echo *echo, const char *more)
{
    int fd = client_open(echo);
    unsigned before = atomic_load(&echo->waiting);
    client_say(fd, "wait\n");
    wait_for(&echo->waiting, before + 1);
    client_say(fd, more);
    return fd;
}

static void test_gone_while_suspended(void **unused)
{
    struct echo echo;
    (void)unused;
    start(&echo);
    client_reset(suspend_one(&echo, "")); /* noticed by itself */
    wait_for(&echo.closed, 1);
    net_wake(echo.waiting_worker, echo.waiting_serial); /* of a connection that is gone */

    client_reset(suspend_one(&echo, "more\n")); /* perhaps noticed by the next turn only */
    atomic_store(&echo.released, true);
    net_wake(echo.waiting_worker, echo.waiting_serial);
    wait_for(&echo.closed, 2);

    atomic_store(&echo.released, false);
    int fd = suspend_one(&echo, "more\n"); /* a FIN in order: everything is answered */
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    atomic_store(&echo.released, true);
    net_wake(echo.waiting_worker, echo.waiting_serial);
    client_expect(fd, "done\nmore\n");
    client_expect_end(fd);
    wait_for(&echo.closed, 3);
    close(fd);

    atomic_store(&echo.released, false);
    fd = suspend_one(&echo, "more\n"); /* the server ends meanwhile */
    echo_stop(&echo);
    assert_int_equal(echo.closed, 4);
    close(fd);
}

static void test_end_of_input(void **unused)
{
    enum { LINES = 3000 };
    struct echo echo;
    (void)unused;
    start(&echo);
    int fd = client_open(&echo);
    for (int i = 0; i < LINES; i++) {
        client_say(fd, "line\n");
    }
    client_say(fd, "half");
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    for (int i = 0; i < LINES; i++) {
        client_expect(fd, "line\n");
    }
    client_expect_end(fd);
    close(fd);
    wait_for(&echo.closed, 1);
    echo_stop(&echo);
}

static void test_quit(void **unused)
{
    struct echo echo;
    char *rest = calloc(1, 200000);
    (void)unused;
    assert_non_null(rest);
    start(&echo);
    int fd = client_open(&echo);
    client_say(fd, "a\nquit\n");
    client_expect(fd, "a\nbye\n");
    client_expect_end(fd);
    close(fd);
    wait_for(&echo.closed, 1);

    fd = client_open(&echo); /* one that goes on sending still gets the last words, no reset */
    memcpy(rest, "quit\n", 5);
    client_send(fd, rest, 200000);
    client_expect(fd, "bye\n");
    client_expect_end(fd);
    close(fd);
    wait_for(&echo.closed, 2);

    fd = client_open(&echo); /* all it sent was read, but it was not done sending */
    client_say(fd, "quit\nunread");
    client_expect(fd, "bye\n");
    client_expect_end(fd);
    client_say(fd, "more"); /* a reset would answer this */
    client_say(fd, "more"); /* and make this one fail */
    client_expect_end(fd);
    close(fd);
    wait_for(&echo.closed, 3);
    free(rest);
    echo_stop(&echo);
}

static void test_input_max(void **unused)
{
    struct echo echo;
    struct sender sender;
    (void)unused;
    start(&echo);
    char *text = malloc(NET_INPUT_MAX);
    assert_non_null(text);
    memset(text, 'x', NET_INPUT_MAX);
    text[NET_INPUT_MAX - 1] = '\n'; /* the largest that fits */
    sender.fd = client_open(&echo);
    sender.bytes = text;
    sender.length = 1000000;
    text[sender.length - 1] = '\n';
    assert_int_equal(pthread_create(&sender.thread, NULL, send_all, &sender), 0);
    char *got = malloc(sender.length);
    assert_non_null(got);
    client_receive(sender.fd, got, sender.length);
    pthread_join(sender.thread, NULL);
    assert_memory_equal(got, text, sender.length);

    memset(text, 'x', NET_INPUT_MAX); /* no newline: never a request */
    client_send(sender.fd, text, NET_INPUT_MAX);
    wait_for(&echo.closed, 1);
    close(sender.fd);
    free(text);
    free(got);
    echo_stop(&echo);
}

static void test_max_connections(void **unused)
{
    struct echo echo;
    (void)unused;
    struct net_options options = echo_options(&echo, any_port);
    options.max_connections = 2;
    assert_true(echo_start(&echo, &options));
    int first = client_open(&echo);
    int second = client_open(&echo);
    client_say(second, "in\n");
    client_expect(second, "in\n");
    int third = client_open(&echo);
    client_expect(third, "ERROR Too many open connections\r\n");
    client_expect_end(third);
    close(third);
    assert_int_equal(FIGURE(&echo, rejected_connections), 1);
    assert_int_equal(FIGURE(&echo, curr_connections), 2);
    close(first);
    wait_for_open(&echo, 1);
    third = client_open(&echo);
    client_say(third, "in now\n");
    client_expect(third, "in now\n");
    close(second);
    close(third);
    echo_stop(&echo);
}

/* Uses up every descriptor below the limit; returns how many it took. */
static size_t fill_descriptors(int *fds, size_t room)
{
    size_t n = 0;
    while (n < room && (fds[n] = dup(0)) >= 0) {
        n++;
    }
    return n;
}

/* More wait than are looked at in one event: each is told, and accepting never stops for it. */
static void test_no_descriptors(void **unused)
{
    enum { LIMIT = 1024, MANY = 200 };
    struct echo echo;
    struct rlimit before;
    int taken[LIMIT];
    (void)unused;
    start(&echo);
    int told[MANY];
    int later = client_socket(&echo);
    for (size_t i = 0; i < MANY; i++) {
        told[i] = client_socket(&echo);
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit lower = {.rlim_cur = LIMIT, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &lower), 0);
    size_t n = fill_descriptors(taken, LIMIT);
    for (size_t i = 0; i < MANY; i++) {
        client_connect(&echo, told[i]);
    }
    for (size_t i = 0; i < MANY; i++) {
        client_expect(told[i], "ERROR Too many open connections\r\n");
        client_expect_end(told[i]);
    }
    assert_int_equal(FIGURE(&echo, rejected_connections), MANY);
    assert_int_equal(FIGURE(&echo, listen_disabled_num), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    client_connect(&echo, later);
    client_say(later, "back\n");
    client_expect(later, "back\n");
    for (size_t i = 0; i < n; i++) {
        close(taken[i]);
    }
    for (size_t i = 0; i < MANY; i++) {
        close(told[i]);
    }
    close(later);
    echo_stop(&echo);
}

static void test_timeouts(void **unused)
{
    struct echo echo;
    (void)unused;
    struct net_options options = echo_options(&echo, any_port);
    options.request_timeout_s = 1;
    assert_true(echo_start(&echo, &options));
    int idle = client_open(&echo);
    int half = client_open(&echo);
    int suspended = suspend_one(&echo, "");
    client_say(half, "a\nhalf");
    client_expect(half, "a\n");
    client_expect_end(half);
    assert_int_equal(FIGURE(&echo, request_timeouts), 1);
    assert_int_equal(FIGURE(&echo, idle_closed), 0);
    client_say(idle, "not yet\n");
    client_expect(idle, "not yet\n");
    net_reconfigure(echo.net, 10, 1, 1);
    client_expect_end(idle);
    assert_int_equal(FIGURE(&echo, idle_closed), 1);
    assert_int_equal(FIGURE(&echo, curr_connections), 1); /* the suspended one */
    close(idle);
    close(half);
    close(suspended);
    echo_stop(&echo);
    assert_int_equal(echo.closed, 3);
}

static const char *folder_file(const char *folder, const char *name)
{
    static char path[64];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void test_unix_socket(void **unused)
{
    struct echo echo;
    struct echo second;
    char folder[] = "/tmp/rollcall-net-XXXXXX";
    char path[64];
    struct stat file;
    (void)unused;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/socket", folder);
    const char *const address[] = {path};
    for (int round = 0; round < 2; round++) {
        struct net_options options = echo_options(&echo, address);
        assert_true(echo_start(&echo, &options));
        assert_int_equal(stat(path, &file), 0);
        assert_int_equal(file.st_mode & 0777, 0700);
        int fd = client_open(&echo);
        client_say(fd, "unix\n");
        client_expect(fd, "unix\n");
        struct net_options again = echo_options(&second, address);
        assert_false(echo_start(&second, &again));
        assert_true(second.in_use);
        assert_memory_equal(second.error, path, strlen(path));
        close(fd);
        echo_stop(&echo);
        assert_int_equal(stat(path, &file), -1);
        /* What a killed server leaves: a socket nobody listens on. The second round replaces it. */
        int stale = socket(AF_UNIX, SOCK_STREAM, 0);
        struct sockaddr name = {.sa_family = AF_UNIX};
        assert_true(strlen(path) > sizeof(name.sa_data)); /* hence from inside the folder */
        assert_int_equal(chdir(folder), 0);
        strcpy(name.sa_data, "socket");
        assert_int_equal(bind(stale, &name, sizeof(name)), 0);
        close(stale);
        assert_int_equal(chdir("/"), 0);
    }
    assert_int_equal(unlink(path), 0);
    struct net_options own = echo_options(&echo, address);
    assert_true(echo_start(&echo, &own));
    assert_int_equal(rename(path, folder_file(folder, "moved")), 0);
    own = echo_options(&second, address);
    assert_true(echo_start(&second, &own));
    echo_stop(&echo); /* the name is another server's by now */
    assert_int_equal(stat(path, &file), 0);
    echo_stop(&second);
    assert_int_equal(unlink(folder_file(folder, "moved")), 0);
    int plain = open(path, O_CREAT | O_WRONLY, 0600);
    close(plain);
    struct net_options options = echo_options(&echo, address);
    assert_false(echo_start(&echo, &options)); /* never deletes what is no socket */
    assert_false(echo.in_use);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void test_address_in_use(void **unused)
{
    struct echo echo;
    struct echo second;
    (void)unused;
    start(&echo);
    const char *address[] = {net_address(echo.net, 0)};
    assert_null(net_address(echo.net, 1));
    struct net_options options = echo_options(&second, address);
    assert_false(echo_start(&second, &options));
    assert_true(second.in_use);
    assert_memory_equal(second.error, address[0], strlen(address[0]));
    echo_stop(&echo);

    static const char *const bad[] = {"127.0.0.1", "::1:5", "127.0.0.1:", "", "256.1.1.1:1:2"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        options = echo_options(&second, &bad[i]);
        assert_false(echo_start(&second, &options));
        assert_false(second.in_use);
        assert_true(second.error[0] != '\0');
    }
}

static void test_address_parts(void **unused)
{
    struct net_address_parts parts;
    (void)unused;
    assert_true(net_address_split("[::1]:11211", &parts));
    assert_string_equal(parts.host, "::1");
    assert_string_equal(parts.port, "11211");
    assert_true(net_address_split("*:1", &parts));
    assert_string_equal(parts.host, "");
    assert_true(net_address_split("/a:b", &parts));
    assert_true(parts.is_unix);
    assert_false(net_address_split("[::1]", &parts) && parts.host[0] != '\0');
}

static void test_signals(void **unused)
{
    static const int signals[] = {SIGHUP, SIGUSR2};
    struct echo echo;
    (void)unused;
    struct net_options options = echo_options(&echo, any_port);
    echo_take_signals(&echo, signals, 2);
    atomic_store(&echo.stop_signal, (unsigned)SIGUSR2);
    assert_true(echo_start(&echo, &options));
    int fd = client_open(&echo);
    client_say(fd, "up\n");
    client_expect(fd, "up\n");
    assert_int_equal(kill(getpid(), SIGHUP), 0);
    wait_for(&echo.signalled, 1);
    client_say(fd, "still\n");
    client_expect(fd, "still\n");
    assert_int_equal(kill(getpid(), SIGUSR2), 0);
    wait_for(&echo.signalled, 2);
    pthread_join(echo.thread, NULL); /* net_run returned by itself */
    net_destroy(echo.net);
    assert_int_equal(echo.closed, 1);
    close(echo.signal_fd);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_split),
        cmocka_unit_test(test_pipelined),
        cmocka_unit_test(test_many_connections),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_budget_used_up),
        cmocka_unit_test(test_suspend_and_wake),
        cmocka_unit_test(test_wake_before_suspended),
        cmocka_unit_test(test_wake_while_draining),
        cmocka_unit_test(test_gone_while_suspended),
        cmocka_unit_test(test_end_of_input),
        cmocka_unit_test(test_quit),
        cmocka_unit_test(test_input_max),
        cmocka_unit_test(test_max_connections),
        cmocka_unit_test(test_no_descriptors),
        cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_unix_socket),
        cmocka_unit_test(test_address_in_use),
        cmocka_unit_test(test_address_parts),
        cmocka_unit_test(test_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
