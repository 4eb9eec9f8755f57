/*
 * test_net_tls.c: bytes under TLS: net with the line service of echo.h and the client of
 * tls_peer.h.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/pem.h>

#include "echo.h"
#include "net/private.h"
#include "tls_peer.h"
#include "tls_rig.h"

static void test_echo(void **unused)
{
    struct echo echo;
    struct tls_peer peer;
    (void)unused;
    tls_start_usual(&echo);
    tls_open_peer(&echo, &peer);
    tls_peer_say(&peer, "alpha\nbeta\ngam");
    tls_peer_expect(&peer, "alpha\nbeta\n");
    tls_peer_say(&peer, "ma\nquit\n");
    tls_peer_expect(&peer, "gamma\nbye\n");
    char byte;
    assert_int_equal(tls_peer_read(&peer, &byte, 1), 0); /* the goodbye of TLS */
    tls_peer_fini(&peer);
    wait_for(&echo.closed, 1);
    assert_int_equal(FIGURE(&echo, bytes_read), 22);
    assert_int_equal(FIGURE(&echo, ssl_handshake_errors), 0);
    echo_stop(&echo);
}

/* The only worker has seen all that was sent before: it answered twice since. */
static void pass_by(struct tls_peer *other)
{
    for (int i = 0; i < 2; i++) {
        tls_peer_say(other, "pass\n");
        tls_peer_expect(other, "pass\n");
    }
}

/* Sends what the peer has for the wire in two pieces. Returns false if it is not that long. */
static bool send_cut(struct tls_peer *peer, struct tls_peer *other, size_t at)
{
    char wire[16384];
    size_t length = tls_peer_wire(peer, wire, sizeof(wire));
    if (at >= length) {
        client_send(peer->fd, wire, length);
        return false;
    }
    client_send(peer->fd, wire, at);
    pass_by(other);
    client_send(peer->fd, wire + at, length - at);
    return true;
}

static void start_one_worker(struct echo *echo, struct tls_peer *other)
{
    struct net_options options = echo_options(echo, tls_any_port);
    options.threads = 1;
    tls_start(echo, &options, NET_TLS_VERIFY_NONE);
    tls_open_peer(echo, other);
}

static void test_any_split(void **unused)
{
    struct echo echo;
    struct tls_peer peer;
    struct tls_peer other;
    (void)unused;
    start_one_worker(&echo, &other);
    tls_open_peer(&echo, &peer);
    bool cut = true;
    for (size_t at = 1; cut; at++) {
        tls_peer_compose(&peer, "two rec", 7);
        tls_peer_compose(&peer, "ords\nhalf a", 11);
        tls_peer_compose(&peer, " line\n", 6);
        cut = send_cut(&peer, &other, at);
        tls_peer_expect(&peer, "two records\nhalf a line\n");
    }
    tls_peer_fini(&peer);
    tls_peer_fini(&other);
    echo_stop(&echo);
}

static void test_split_handshake(void **unused)
{
    enum { STEP = 23 };
    struct echo echo;
    struct tls_peer other;
    (void)unused;
    start_one_worker(&echo, &other);
    bool cut = true;
    for (size_t at = 1; cut; at += STEP) {
        struct tls_peer peer;
        tls_peer_init(&peer, client_open(&echo), &tls_rig.ca, NULL);
        assert_int_equal(SSL_do_handshake(peer.tls), -1); /* composes its first words */
        cut = send_cut(&peer, &other, at);
        assert_true(tls_peer_agree(&peer));
        tls_peer_say(&peer, "agreed\n");
        tls_peer_expect(&peer, "agreed\n");
        tls_peer_fini(&peer);
    }
    assert_int_equal(FIGURE(&echo, ssl_handshake_errors), 0);
    tls_peer_fini(&other);
    echo_stop(&echo);
}

/* More than the worker reads at once lies decrypted in the session: no event tells of it. */
static void test_large_line(void **unused)
{
    enum { LINE = 1000000 };
    struct echo echo;
    struct tls_peer peer;
    (void)unused;
    tls_start_usual(&echo);
    tls_open_peer(&echo, &peer);
    char *text = malloc(LINE + 1);
    assert_non_null(text);
    memset(text, 'b', LINE);
    text[LINE] = '\n';
    for (int i = 0; i < 3; i++) {
        tls_peer_compose(&peer, text, LINE + 1);
        tls_peer_flush(&peer);
        tls_peer_expect_big(&peer, LINE);
    }
    free(text);
    assert_int_equal(atomic_load(&echo.budget.used_bytes), 0);
    tls_peer_fini(&peer);
    echo_stop(&echo);
}

static void test_pipelined(void **unused)
{
    enum { LINES = 20000, LINE = 8 };
    struct echo echo;
    struct tls_peer peer;
    char line[LINE + 1];
    (void)unused;
    tls_start_usual(&echo);
    tls_open_peer(&echo, &peer);
    for (int i = 0; i < LINES; i++) { /* a record each */
        snprintf(line, sizeof(line), "%07d\n", i);
        tls_peer_compose(&peer, line, LINE);
    }
    tls_peer_flush(&peer);
    for (int i = 0; i < LINES; i++) {
        snprintf(line, sizeof(line), "%07d\n", i);
        tls_peer_expect(&peer, line);
    }
    tls_peer_fini(&peer);
    echo_stop(&echo);
}

static void test_slow_reader(void **unused)
{
    enum { ANSWERS = 20, ANSWER = 900000 };
    struct echo echo;
    struct tls_peer peer;
    (void)unused;
    tls_start_usual(&echo);
    tls_open_peer(&echo, &peer);
    for (int i = 0; i < ANSWERS; i++) {
        tls_peer_say(&peer, "big 900000\n");
    }
    wait_for_held(&echo, 1);
    tls_peer_say(&peer, "last\n");
    for (int i = 0; i < ANSWERS; i++) {
        tls_peer_expect_big(&peer, ANSWER);
    }
    tls_peer_expect(&peer, "last\n");
    tls_peer_fini(&peer);
    echo_stop(&echo);
}

static void test_held(void **unused)
{
    struct echo echo;
    struct tls_peer peer;
    (void)unused;
    struct net_options options = echo_options(&echo, tls_any_port);
    echo.holds = true;
    atomic_store(&echo.verdict, NET_COMMIT_LATER);
    options.threads = 1;
    tls_start(&echo, &options, NET_TLS_VERIFY_NONE);
    tls_open_peer(&echo, &peer);
    tls_peer_say(&peer, "hold big 900000\nnext\n");
    wait_for(&echo.commits, 1);
    client_expect_nothing(peer.fd);
    net_release(atomic_load(&echo.workers[0]), 1);
    tls_peer_expect_big(&peer, 900000);
    tls_peer_expect(&peer, "next\n");
    atomic_store(&echo.verdict, NET_COMMITTED);
    tls_peer_say(&peer, "hold at once\n");
    tls_peer_expect(&peer, "at once\n");
    tls_peer_fini(&peer);
    echo_stop(&echo);
}

static void test_suspended(void **unused)
{
    struct echo echo;
    struct tls_peer peer;
    (void)unused;
    tls_start_usual(&echo);
    tls_open_peer(&echo, &peer);
    tls_peer_say(&peer, "a\nwait\nb\n");
    tls_peer_expect(&peer, "a\n");
    wait_for(&echo.waiting, 1);
    tls_peer_say(&peer, "c\n");
    atomic_store(&echo.released, true);
    net_wake(echo.waiting_worker, echo.waiting_serial);
    tls_peer_expect(&peer, "done\nb\nc\n");
    tls_peer_fini(&peer);
    echo_stop(&echo);
}

/* The end of the socket without that of TLS, right after a request. */
static void test_end_behind_request(void **unused)
{
    struct echo echo;
    struct tls_peer peer;
    char byte;
    (void)unused;
    tls_start_usual(&echo);
    for (int goodbye = 0; goodbye < 2; goodbye++) {
        tls_open_peer(&echo, &peer);
        tls_peer_compose(&peer, "last\nhalf", 9);
        if (goodbye) {
            (void)SSL_shutdown(peer.tls);
        }
        tls_peer_flush(&peer);
        assert_int_equal(shutdown(peer.fd, SHUT_WR), 0);
        tls_peer_expect(&peer, "last\n");
        assert_int_equal(tls_peer_read(&peer, &byte, 1), 0);
        tls_peer_fini(&peer);
    }
    wait_for(&echo.closed, 2);
    echo_stop(&echo);
}

static void test_goodbye_without_end(void **unused)
{
    struct echo echo;
    struct tls_peer peer;
    char byte;
    (void)unused;
    tls_start_usual(&echo);
    tls_open_peer(&echo, &peer);
    tls_peer_compose(&peer, "last\n", 5);
    (void)SSL_shutdown(peer.tls); /* the socket stays open */
    tls_peer_flush(&peer);
    tls_peer_expect(&peer, "last\n");
    assert_int_equal(tls_peer_read(&peer, &byte, 1), 0);
    wait_for(&echo.closed, 1);
    tls_peer_fini(&peer);
    echo_stop(&echo);
}

static void test_unread_at_close(void **unused)
{
    struct echo echo;
    struct tls_peer peer;
    char byte;
    (void)unused;
    tls_start_usual(&echo);
    tls_open_peer(&echo, &peer);
    tls_peer_say(&peer, "quit\nunread\n");
    tls_peer_expect(&peer, "bye\n");
    assert_int_equal(tls_peer_read(&peer, &byte, 1), 0);
    tls_peer_say(&peer, "nor this\n"); /* lingers: no reset comes back */
    tls_peer_fini(&peer);
    wait_for(&echo.closed, 1);
    echo_stop(&echo);
}

/* A few changes of keys are nothing; hundreds at once without a byte between them are an attack. */
static void test_key_updates(void **unused)
{
    enum { FEW = 10, MANY = 200 };
    struct echo echo;
    struct tls_peer peer;
    char byte;
    (void)unused;
    tls_start_usual(&echo);
    tls_open_peer(&echo, &peer);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(SSL_key_update(peer.tls, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        assert_int_equal(SSL_do_handshake(peer.tls), 1);
        if (i < FEW) {
            tls_peer_say(&peer, "line\n");
            tls_peer_expect(&peer, "line\n");
        }
    }
    tls_peer_flush(&peer);
    assert_true(tls_peer_read(&peer, &byte, 1) <= 0);
    wait_for(&echo.closed, 1);
    tls_peer_fini(&peer);
    echo_stop(&echo);
}

/* The server's certificate and many others behind it. */
static void write_chain(const struct tls_party *party, int count)
{
    FILE *file = fopen(party->certificate, "we");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, party->x509), 1);
    for (int i = 0; i < count; i++) {
        assert_int_equal(PEM_write_X509(file, tls_rig.other_ca.x509), 1);
    }
    fclose(file);
}

/* Its certificate is longer than the socket takes: reading the handshake waits to write. */
static void test_narrow_socket(void **unused)
{
    enum { CHAIN = 60, SMALL = 4096 };
    struct echo echo;
    struct tls_party chain = tls_rig.server;
    struct tls_peer peer;
    int fds[2];
    (void)unused;
    snprintf(chain.certificate, TLS_PATH_MAX, "%s/chain.crt", tls_rig.folder);
    write_chain(&chain, CHAIN);
    tls_start_usual(&echo);
    const int size = SMALL;
    const struct timeval timeout = {.tv_sec = ECHO_TIMEOUT_S};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
    assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), 0);
    struct net_worker *worker = atomic_load(&echo.workers[0]);
    atomic_fetch_add(&worker->common->connections, 1);
    net_worker_adopt(worker, fds[0], 1, tls_context_of(&chain, NET_TLS_VERIFY_NONE));
    tls_peer_init(&peer, fds[1], &tls_rig.ca, NULL);
    assert_true(tls_peer_agree(&peer));
    tls_peer_say(&peer, "big 900000\nlast\n");
    tls_peer_expect_big(&peer, 900000);
    tls_peer_expect(&peer, "last\n");
    tls_peer_fini(&peer);
    echo_stop(&echo);
    assert_int_equal(unlink(chain.certificate), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_echo),
        cmocka_unit_test(test_any_split),
        cmocka_unit_test(test_split_handshake),
        cmocka_unit_test(test_large_line),
        cmocka_unit_test(test_pipelined),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_suspended),
        cmocka_unit_test(test_end_behind_request),
        cmocka_unit_test(test_goodbye_without_end),
        cmocka_unit_test(test_unread_at_close),
        cmocka_unit_test(test_key_updates),
        cmocka_unit_test(test_narrow_socket),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, tls_rig_make, tls_rig_delete);
}
