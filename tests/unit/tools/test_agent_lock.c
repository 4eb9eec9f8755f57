/* test_agent_lock.c: one agent beside a daemon, and what another user does about that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/rollcall/agent.h"

#define NOBODY 65534

static char identity[AGENT_IDENTITY_MAX + 1];

static int set_up(void **unused)
{
    (void)unused;
    snprintf(identity, sizeof(identity), "%08lx%08x", (unsigned long)getpid(), 7u);
    return 0;
}

static void test_one(void **unused)
{
    (void)unused;
    struct agent_lock first = {.fd = -1}, second = {.fd = -1};

    assert_int_equal(agent_lock_take(&first, identity), AGENT_LOCK_HAD);
    assert_int_equal(agent_lock_take(&first, identity), AGENT_LOCK_HAD);
    assert_int_equal(agent_lock_take(&second, identity), AGENT_LOCK_HELD);
    assert_int_equal(second.holder, getpid());
    agent_lock_end(&first);
    assert_int_equal(agent_lock_take(&second, identity), AGENT_LOCK_HAD);
    agent_lock_end(&second);
}

/* The daemon has begun anew in another directory: the lock is that one's. */
static void test_another_daemon(void **unused)
{
    (void)unused;
    struct agent_lock lock = {.fd = -1}, other = {.fd = -1};

    assert_int_equal(agent_lock_take(&lock, identity), AGENT_LOCK_HAD);
    assert_int_equal(agent_lock_take(&lock, "another"), AGENT_LOCK_HAD);
    assert_int_equal(agent_lock_take(&other, identity), AGENT_LOCK_HAD);
    assert_int_equal(agent_lock_take(&lock, identity), AGENT_LOCK_HELD);
    agent_lock_end(&lock);
    agent_lock_end(&other);
}

/* Binds the lock's name as another user, says so, and waits for its end. */
static _Noreturn void squat(int said)
{
    struct agent_lock lock = {.fd = -1};

    if (setuid(NOBODY) == 0 && agent_lock_take(&lock, identity) == AGENT_LOCK_HAD) {
        (void)!write(said, "1", 1);
        pause();
    }
    _exit(1);
}

static void test_another_user(void **unused)
{
    (void)unused;
    struct agent_lock lock = {.fd = -1};
    int said[2];
    char byte;

    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(pipe(said), 0);
    pid_t other = fork();

    assert_true(other >= 0);
    if (other == 0) {
        squat(said[1]);
    }
    close(said[1]);
    assert_int_equal(read(said[0], &byte, 1), 1);
    assert_int_equal(agent_lock_take(&lock, identity), AGENT_LOCK_NONE);
    assert_int_equal(kill(other, SIGKILL), 0);
    assert_int_equal(waitpid(other, NULL, 0), other);
    assert_int_equal(agent_lock_take(&lock, identity), AGENT_LOCK_HAD);
    agent_lock_end(&lock);
    close(said[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_one, set_up),
        cmocka_unit_test_setup(test_another_daemon, set_up),
        cmocka_unit_test_setup(test_another_user, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
