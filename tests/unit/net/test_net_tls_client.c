/* The client's end of TLS: whom it believes, whom it does not, and that bytes go both ways. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tls_rig.h"

#define TURNS 100 /* a handshake takes less */

/* Both ends of a connection in one thread. */
struct pair {
    int fds[2];
    struct net_tls_context *contexts[2];
    struct net_tls *client, *server;
};

static void pair_begin(struct pair *pair, const struct tls_party *server,
                       enum net_tls_verify verify, const char *host)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair->fds), 0);
    pair->contexts[0] = tls_context_of(&tls_rig.client, NET_TLS_VERIFY_NONE);
    pair->contexts[1] = tls_context_of(server, verify);
    pair->client = net_tls_create_client(pair->contexts[0], pair->fds[0], host);
    pair->server = net_tls_create(pair->contexts[1], pair->fds[1]);
    assert_true(pair->client != NULL && pair->server != NULL);
}

static void pair_end(struct pair *pair)
{
    net_tls_destroy(pair->client);
    net_tls_destroy(pair->server);
    for (size_t i = 0; i < 2; i++) {
        net_tls_context_release(pair->contexts[i]);
        close(pair->fds[i]);
    }
}

/* False: one of the two has ended it. */
static bool pair_agree(struct pair *pair)
{
    char bytes[16];

    for (unsigned i = 0; i < TURNS; i++) {
        if (net_tls_read(pair->client, bytes, sizeof(bytes)) < 0 ||
            net_tls_read(pair->server, bytes, sizeof(bytes)) < 0) {
            return false;
        }
    }
    return net_tls_established(pair->client) && net_tls_established(pair->server);
}

static void test_believed(void **unused)
{
    static const char *const hosts[] = {"localhost", "127.0.0.1"};

    (void)unused;
    for (size_t i = 0; i < 2; i++) {
        struct pair pair;
        char bytes[16];

        pair_begin(&pair, &tls_rig.server, NET_TLS_VERIFY_REQUIRE, hosts[i]);
        assert_true(pair_agree(&pair));
        assert_null(net_tls_refused(pair.client));
        assert_int_equal(net_tls_write(pair.client, "follow", 6), 6);
        assert_int_equal(net_tls_read(pair.server, bytes, sizeof(bytes)), 6);
        assert_int_equal(net_tls_write(pair.server, "STREAM", 6), 6);
        assert_int_equal(net_tls_read(pair.client, bytes, sizeof(bytes)), 6);
        assert_memory_equal(bytes, "STREAM", 6);
        pair_end(&pair);
    }
}

static void test_refused(void **unused)
{
    static const struct {
        const struct tls_party *server;
        const char *host, *why;
    } rows[] = {
        {&tls_rig.server, "127.0.0.2", "IP address mismatch"},
        {&tls_rig.server, "other", "hostname mismatch"},
        {&tls_rig.stranger, "localhost", "unable to get local issuer certificate"},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct pair pair;

        pair_begin(&pair, rows[i].server, NET_TLS_VERIFY_NONE, rows[i].host);
        assert_false(pair_agree(&pair));
        assert_false(net_tls_established(pair.client));
        assert_non_null(net_tls_refused(pair.client));
        assert_non_null(strstr(net_tls_refused(pair.client), rows[i].why));
        pair_end(&pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_believed),
        cmocka_unit_test(test_refused),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, tls_rig_make, tls_rig_delete);
}
