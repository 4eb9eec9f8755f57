/*
 * test_net_tls_agree.c: who is let in under TLS: certificates, versions, time-outs, renewal; what a
 * start says of its files.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "echo.h"
#include "tls_peer.h"
#include "tls_rig.h"

/* False if the server did not want to talk; else it has answered. */
static bool greets(const struct echo *echo, const struct tls_party *self)
{
    struct tls_peer peer;
    char got[3];
    tls_peer_init(&peer, client_open(echo), &tls_rig.ca, self);
    bool agreed = tls_peer_agree(&peer);
    if (agreed) { /* in TLS 1.3 the client learns later what became of its certificate */
        tls_peer_say(&peer, "hi\n");
        agreed = tls_peer_read(&peer, got, sizeof(got)) == (ssize_t)sizeof(got);
    }
    tls_peer_fini(&peer);
    return agreed;
}

static void test_clients_verified(void **unused)
{
    static const struct {
        enum net_tls_verify verify;
        const struct tls_party *self;
        bool good;
    } cases[] = {
        {NET_TLS_VERIFY_NONE, NULL, true},
        {NET_TLS_VERIFY_NONE, &tls_rig.stranger, true},
        {NET_TLS_VERIFY_REQUEST, NULL, true},
        {NET_TLS_VERIFY_REQUEST, &tls_rig.client, true},
        {NET_TLS_VERIFY_REQUEST, &tls_rig.stranger, false},
        {NET_TLS_VERIFY_REQUIRE, NULL, false},
        {NET_TLS_VERIFY_REQUIRE, &tls_rig.client, true},
        {NET_TLS_VERIFY_REQUIRE, &tls_rig.stranger, false},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct echo echo;
        struct net_options options = echo_options(&echo, tls_any_port);
        tls_start(&echo, &options, cases[i].verify);
        assert_int_equal(greets(&echo, cases[i].self), cases[i].good);
        wait_for(&echo.closed, 1);
        assert_int_equal(FIGURE(&echo, ssl_handshake_errors), !cases[i].good);
        assert_true(FIGURE(&echo, ssl_new_sessions) == 1 || !cases[i].good);
        assert_int_equal(FIGURE(&echo, ssl_proto_errors), 0);
        echo_stop(&echo);
    }
}

/* The server of a stranger is one that this client does not believe. */
static void test_client_refuses(void **unused)
{
    struct echo echo;
    struct tls_peer peer;
    (void)unused;
    tls_start_usual(&echo);
    tls_peer_init(&peer, client_open(&echo), &tls_rig.other_ca, NULL);
    assert_false(tls_peer_agree(&peer));
    tls_peer_fini(&peer);
    wait_for(&echo.closed, 1);
    assert_int_equal(FIGURE(&echo, ssl_handshake_errors), 1);
    echo_stop(&echo);
}

/* An agreed session that goes on in something else is no refused handshake. */
static void test_broken_later(void **unused)
{
    struct echo echo;
    struct tls_peer peer;
    (void)unused;
    tls_start_usual(&echo);
    tls_open_peer(&echo, &peer);
    tls_peer_say(&peer, "alive\n");
    tls_peer_expect(&peer, "alive\n");
    client_say(peer.fd, "get x\r\n");
    wait_for(&echo.closed, 1);
    tls_peer_fini(&peer);
    assert_int_equal(FIGURE(&echo, ssl_new_sessions), 1);
    assert_int_equal(FIGURE(&echo, ssl_proto_errors), 1);
    assert_int_equal(FIGURE(&echo, ssl_handshake_errors), 0);
    echo_stop(&echo);
}

static void test_plain_client(void **unused)
{
    static const char *const words[] = {"get x\r\n", "GET / HTTP/1.1\r\n\r\n", "\x80\x01\x02",
                                        "\x16\x03\x01\x40\xff\x01\xff\xff\xff"};
    struct echo echo;
    struct tls_peer peer;
    char got[256];
    (void)unused;
    tls_start_usual(&echo);
    tls_open_peer(&echo, &peer);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        int fd = client_open(&echo);
        client_say(fd, words[i]);
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        while (recv(fd, got, sizeof(got), 0) > 0) {
            assert_null(memchr(got, '\n', 2)); /* an alert at most */
        }
        close(fd);
    }
    client_reset(client_open(&echo));
    wait_for(&echo.closed, sizeof(words) / sizeof(words[0]) + 1);
    assert_int_equal(FIGURE(&echo, bytes_read), 0);
    tls_peer_say(&peer, "alive\n");
    tls_peer_expect(&peer, "alive\n");
    tls_peer_fini(&peer);
    echo_stop(&echo);
}

static void test_addresses_without(void **unused)
{
    static const char *const addresses[] = {NET_PLAIN_PREFIX "127.0.0.1:0", "127.0.0.1:0"};
    struct echo echo;
    (void)unused;
    struct net_options options = echo_options(&echo, addresses);
    options.address_count = 2;
    tls_start(&echo, &options, NET_TLS_VERIFY_NONE);
    assert_false(net_address_tls(echo.net, 0));
    assert_memory_equal(net_address(echo.net, 0), "127.0.0.1:", 10);
    int fd = client_open(&echo); /* of the first */
    client_say(fd, "plain\n");
    client_expect(fd, "plain\n");
    close(fd);
    echo_stop(&echo);
}

static void expect_party(const struct tls_peer *peer, const struct tls_party *party)
{
    X509 *shown = SSL_get1_peer_certificate(peer->tls);
    assert_non_null(shown);
    assert_int_equal(X509_cmp(shown, party->x509), 0);
    X509_free(shown);
}

static void test_renewed(void **unused)
{
    static const int signals[] = {SIGHUP};
    struct echo echo;
    struct tls_peer before;
    struct tls_peer after;
    (void)unused;
    struct net_options options = echo_options(&echo, tls_any_port);
    echo_take_signals(&echo, signals, 1);
    echo.renewal = tls_context_of(&tls_rig.renewed, NET_TLS_VERIFY_NONE);
    tls_start(&echo, &options, NET_TLS_VERIFY_NONE);
    tls_open_peer(&echo, &before);
    expect_party(&before, &tls_rig.server);
    assert_int_equal(kill(getpid(), SIGHUP), 0);
    wait_for(&echo.signalled, 1);
    tls_open_peer(&echo, &after);
    expect_party(&after, &tls_rig.renewed);
    tls_peer_say(&before, "still here\n");
    tls_peer_expect(&before, "still here\n");
    tls_peer_fini(&before);
    tls_peer_fini(&after);
    echo_stop(&echo);
    net_tls_context_release(echo.renewal);
}

/* A handshake, and a record, that stop halfway; who is just silent may be so. */
static void test_halves_time_out(void **unused)
{
    struct echo echo;
    struct tls_peer idle;
    struct tls_peer half;
    char wire[4096];
    (void)unused;
    struct net_options options = echo_options(&echo, tls_any_port);
    options.request_timeout_s = 1;
    tls_start(&echo, &options, NET_TLS_VERIFY_NONE);
    tls_open_peer(&echo, &idle);
    int mute = client_open(&echo);
    int stopped = client_open(&echo);
    client_send(stopped, "\x16\x03\x01", 3);
    tls_open_peer(&echo, &half);
    tls_peer_compose(&half, "never sent whole\n", 17);
    client_send(half.fd, wire, tls_peer_wire(&half, wire, 10));
    client_expect_end(mute);
    client_expect_end(stopped);
    wait_for(&echo.closed, 3);
    assert_int_equal(FIGURE(&echo, request_timeouts), 3);
    tls_peer_say(&idle, "alive\n");
    tls_peer_expect(&idle, "alive\n");
    close(mute);
    close(stopped);
    tls_peer_fini(&half);
    tls_peer_fini(&idle);
    echo_stop(&echo);
}

/* What a start says of files that do not do. */
static void test_context_errors(void **unused)
{
    char nowhere[TLS_PATH_MAX];
    char error[NET_TLS_ERROR_MAX];
    (void)unused;
    snprintf(nowhere, sizeof(nowhere), "%s/nowhere", tls_rig.folder);
    const struct {
        struct net_tls_options options;
        const char *about;
        const char *file;
        const char *why;
    } cases[] = {
        {{.certificate = nowhere, .key = tls_rig.server.key},
         "certificate",
         nowhere,
         "No such file"},
        {{.certificate = tls_rig.server.key, .key = tls_rig.server.key},
         "certificate",
         tls_rig.server.key,
         "no start line"},
        {{.certificate = tls_rig.folder, .key = tls_rig.server.key},
         "certificate",
         tls_rig.folder,
         "Is a directory"},
        {{.certificate = tls_rig.server.certificate, .key = nowhere},
         "key",
         nowhere,
         "No such file"},
        {{.certificate = tls_rig.server.certificate, .key = tls_rig.client.key},
         "key",
         tls_rig.client.key,
         "not that of"},
        {{.certificate = tls_rig.server.certificate, .key = tls_rig.server.key, .key_der = true},
         "key",
         tls_rig.server.key,
         ""},
        {{.certificate = tls_rig.server.certificate, .key = tls_rig.server.key, .ca = nowhere},
         "ca",
         nowhere,
         "No such file"},
        {{.certificate = tls_rig.server.certificate,
          .key = tls_rig.server.key,
          .ciphers = "NONE-SUCH"},
         "ciphers",
         "NONE-SUCH",
         "no cipher match"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_null(net_tls_context_create(&cases[i].options, error));
        assert_memory_equal(error, cases[i].about, strlen(cases[i].about));
        assert_non_null(strstr(error, cases[i].file));
        assert_non_null(strstr(error, cases[i].why));
    }
}

static void test_versions(void **unused)
{
    struct echo echo;
    struct tls_peer peer;
    (void)unused;
    tls_start_usual(&echo);
    static const int versions[] = {TLS1_1_VERSION, TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        tls_peer_init(&peer, client_open(&echo), &tls_rig.ca, NULL);
        SSL_set_security_level(peer.tls, 0); /* or it would not even offer 1.1 */
        assert_int_equal(SSL_set_max_proto_version(peer.tls, versions[i]), 1);
        assert_int_equal(tls_peer_agree(&peer), versions[i] >= TLS1_2_VERSION);
        tls_peer_fini(&peer);
    }
    echo_stop(&echo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clients_verified),  cmocka_unit_test(test_client_refuses),
        cmocka_unit_test(test_broken_later),      cmocka_unit_test(test_plain_client),
        cmocka_unit_test(test_addresses_without), cmocka_unit_test(test_renewed),
        cmocka_unit_test(test_halves_time_out),   cmocka_unit_test(test_context_errors),
        cmocka_unit_test(test_versions),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, tls_rig_make, tls_rig_delete);
}
