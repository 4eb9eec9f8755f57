/* Who is at the other end of a socket, and to whom a unix socket belongs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "echo.h"
#include "net/peer.h"

#define STRANGER 12345u /* a user and group by number: they need no name */

/* A socket in `folder`, which it makes. */
static void start_unix(struct echo *echo, char *folder, char path[64],
                       const struct net_owner *owner)
{
    assert_non_null(mkdtemp(folder));
    snprintf(path, 64, "%s/socket", folder);
    const char *const address[] = {path};
    struct net_options options = echo_options(echo, address);
    options.unix_owner = owner;
    options.unix_mode = 0720;
    assert_true(echo_start(echo, &options));
}

static void test_unix_owner(void **unused)
{
    (void)unused;
    if (geteuid() != 0) {
        skip(); /* nobody else can give a file away */
    }
    const struct net_owner owner = {.user = STRANGER, .group = STRANGER + 1};
    char folder[] = "/tmp/rollcall-net-XXXXXX";
    char path[64];
    struct echo echo;
    struct stat file;
    start_unix(&echo, folder, path, &owner);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_uid, STRANGER);
    assert_int_equal(file.st_gid, STRANGER + 1);
    assert_int_equal(file.st_mode & 07777, 0720);
    echo_stop(&echo);
    assert_int_equal(rmdir(folder), 0); /* it was still its own, and is unlinked */
}

static void test_unix_origin(void **unused)
{
    (void)unused;
    char folder[] = "/tmp/rollcall-net-XXXXXX";
    char path[64];
    char text[NET_ADDRESS_TEXT_MAX];
    struct echo echo;
    start_unix(&echo, folder, path, NULL);
    int first = client_open(&echo), second = client_open(&echo);
    assert_int_equal(net_peer_origin(first), net_peer_origin(second));
    assert_string_equal(net_peer_print(first, text), path);
    close(first);
    close(second);
    echo_stop(&echo);
    assert_int_equal(rmdir(folder), 0);
}

/* A connection from this address; *server: its other end. */
static int connect_from(int listener, const struct sockaddr_in *to, uint32_t from, int *server)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(from)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&name, sizeof(name)), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)to, sizeof(*to)), 0);
    *server = accept(listener, NULL, NULL);
    assert_true(*server >= 0);
    return fd;
}

/* The address alone counts, not the port. */
static void test_origin(void **unused)
{
    (void)unused;
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(name);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int clients[3], servers[3];
    assert_int_equal(bind(listener, (const struct sockaddr *)&name, sizeof(name)), 0);
    assert_int_equal(listen(listener, 3), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &length), 0);
    for (unsigned i = 0; i < 3; i++) {
        clients[i] = connect_from(listener, &name, 0x7f000101 + i / 2, &servers[i]);
    }
    assert_int_equal(net_peer_origin(servers[0]), net_peer_origin(servers[1]));
    assert_int_not_equal(net_peer_origin(servers[0]), net_peer_origin(servers[2]));
    for (unsigned i = 0; i < 3; i++) {
        close(clients[i]);
        close(servers[i]);
    }
    char text[NET_ADDRESS_TEXT_MAX];
    assert_string_equal(net_peer_print(listener, text), "gone");
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unix_owner),
        cmocka_unit_test(test_unix_origin),
        cmocka_unit_test(test_origin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
