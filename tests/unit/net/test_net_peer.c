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
#include <sys/un.h>
#include <sys/wait.h>
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

static int connect_unix(const struct sockaddr_un *to)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return fd >= 0 && connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0 ? fd : -1;
}

/* The user counts, not the process. */
static void test_unix_processes(void **unused)
{
    (void)unused;
    char folder[] = "/tmp/rollcall-net-XXXXXX";
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int status = -1;
    assert_non_null(mkdtemp(folder));
    snprintf(name.sun_path, sizeof(name.sun_path), "%s/socket", folder);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&name, sizeof(name)), 0);
    assert_int_equal(listen(listener, 2), 0);
    pid_t child = fork();
    if (child == 0) {
        _exit(connect_unix(&name) >= 0 ? 0 : 1);
    }
    assert_true(waitpid(child, &status, 0) == child && status == 0);
    int fd = connect_unix(&name);
    int of_child = accept(listener, NULL, NULL), of_parent = accept(listener, NULL, NULL);
    assert_true(fd >= 0 && of_child >= 0 && of_parent >= 0);
    assert_int_equal(net_peer_origin(of_child), net_peer_origin(of_parent));
    close(of_child);
    close(of_parent);
    close(fd);
    close(listener);
    unlink(name.sun_path);
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

/* Of an IPv6 address its network counts, the upper half: here that of all written as IPv4. */
static void test_origin_v6(void **unused)
{
    (void)unused;
    struct sockaddr_in6 name = {.sin6_family = AF_INET6};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(name);
    int listener = socket(AF_INET6, SOCK_STREAM, 0), off = 0;
    if (listener < 0) {
        skip(); /* no IPv6 here */
    }
    memcpy(&name.sin6_addr, (const unsigned char[]){[10] = 0xff, 0xff, 127, 0, 0, 1}, 16);
    assert_int_equal(setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)), 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&name, sizeof(name)), 0);
    assert_int_equal(listen(listener, 2), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &length), 0);
    to.sin_port = name.sin6_port;
    int clients[2], servers[2];
    for (unsigned i = 0; i < 2; i++) {
        clients[i] = connect_from(listener, &to, 0x7f000101 + i, &servers[i]);
    }
    assert_int_equal(net_peer_origin(servers[0]), net_peer_origin(servers[1]));
    for (unsigned i = 0; i < 2; i++) {
        close(clients[i]);
        close(servers[i]);
    }
    close(listener);
}

/* Whether the other side, all of it or what it sends, was closed: unread bytes do not hide it. */
static void test_ended(void **unused)
{
    (void)unused;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct linger at_once = {.l_onoff = 1};
    socklen_t length = sizeof(to);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(listen(listener, 3), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&to, &length), 0);
    int clients[3], servers[3];
    for (unsigned i = 0; i < 3; i++) {
        clients[i] = connect_from(listener, &to, 0x7f000001, &servers[i]);
        assert_int_equal(send(clients[i], "x", 1, 0), 1);
        assert_false(net_peer_ended(servers[i]));
    }
    assert_int_equal(shutdown(clients[0], SHUT_WR), 0);
    assert_int_equal(setsockopt(clients[2], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(clients[1]);
    close(clients[2]);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(net_peer_ended(servers[i]));
        close(servers[i]);
    }
    close(clients[0]);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unix_owner),     cmocka_unit_test(test_unix_origin),
        cmocka_unit_test(test_unix_processes), cmocka_unit_test(test_origin),
        cmocka_unit_test(test_origin_v6),      cmocka_unit_test(test_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
