/* server_round: the service manager hears from the daemon as long as every worker goes round. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/notify.h"
#include "harness.h"

#define THREADS     3
#define WATCHDOG_US 400000u

/* The manager's socket, in a folder of its own. */
static struct manager {
    int fd;
    char folder[32];
    char path[64];
} manager;

static void manager_begin(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    strcpy(manager.folder, "/tmp/rollcall-notify-XXXXXX");
    assert_non_null(mkdtemp(manager.folder));
    snprintf(manager.path, sizeof(manager.path), "%s/notify", manager.folder);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", manager.path);
    manager.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_true(manager.fd >= 0);
    assert_int_equal(bind(manager.fd, (struct sockaddr *)&address, sizeof(address)), 0);
    setenv("NOTIFY_SOCKET", manager.path, 1);
}

static void manager_end(void)
{
    unsetenv("NOTIFY_SOCKET");
    close(manager.fd);
    unlink(manager.path);
    rmdir(manager.folder);
}

/* How often it was told that the daemon lives, since the last call. */
static unsigned manager_told(void)
{
    char text[64];
    unsigned count = 0;
    ssize_t length;

    while ((length = recv(manager.fd, text, sizeof(text) - 1, 0)) > 0) {
        text[length] = '\0';
        assert_string_equal(text, "WATCHDOG=1");
        count++;
    }
    return count;
}

static void test_watchdog_asked(void **unused)
{
    char pid[16];

    (void)unused;
    unsetenv("WATCHDOG_USEC");
    assert_int_equal(notify_watchdog_us(), 0);
    setenv("WATCHDOG_USEC", "5000000", 1);
    assert_int_equal(notify_watchdog_us(), 5000000);
    setenv("WATCHDOG_PID", "1", 1); /* another process */
    assert_int_equal(notify_watchdog_us(), 0);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("WATCHDOG_PID", pid, 1);
    assert_int_equal(notify_watchdog_us(), 5000000);
    setenv("WATCHDOG_USEC", "soon", 1);
    assert_int_equal(notify_watchdog_us(), 0);
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

/* No worker runs here: the test goes round for them. */
static void test_rounds(void **unused)
{
    struct settings settings = {.threads = THREADS};
    struct spaces spaces = {.count = 0};
    struct server *server;

    (void)unused;
    manager_begin();
    server = server_create(&settings, &spaces);
    server->watchdog_us = WATCHDOG_US;
    for (unsigned i = THREADS; i-- > 0;) {
        server_round(server, i);
    }
    assert_int_equal(manager_told(), 1);
    server_round(server, 0); /* so often is enough */
    assert_int_equal(manager_told(), 0);
    server->watched_us = 0;
    atomic_store(&server->rounds_us[THREADS - 1], clock_monotonic_us() - WATCHDOG_US);
    server_round(server, 0); /* one hangs */
    assert_int_equal(manager_told(), 0);
    server_round(server, THREADS - 1);
    server_round(server, 0);
    assert_int_equal(manager_told(), 1);
    server->watched_us = 0;
    server->watchdog_us = 0; /* nobody asks */
    server_round(server, 0);
    assert_int_equal(manager_told(), 0);
    server_destroy(server);
    manager_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watchdog_asked),
        cmocka_unit_test(test_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
