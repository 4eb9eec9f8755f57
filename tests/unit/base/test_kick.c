/*
 * test_kick.c: no kick is lost, and what was done before one is seen after it. The work is a plain
 * variable that two threads write in turn: a race detector sees kicks that do not order it.
 */
#include "base/kick.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>

#include "tests/support/give_way.h"

#define ROUNDS 20000

struct work {
    struct kick there, back;
    unsigned count; /* written by whoever was kicked last */
};

static void *answer(void *context)
{
    struct work *work = context;

    for (unsigned i = 0; i < ROUNDS; i++) {
        kick_await(&work->there);
        work->count++;
        kick_thread(&work->back);
    }
    return NULL;
}

static void work_begin(struct work *work, pthread_t *thread)
{
    kick_init(&work->there);
    kick_init(&work->back);
    work->count = 0;
    assert_int_equal(pthread_create(thread, NULL, answer, work), 0);
}

/* Whether the other is already at rest or not yet. */
static void test_every_kick(void **unused)
{
    struct work work;
    pthread_t thread;
    (void)unused;
    work_begin(&work, &thread);
    for (unsigned i = 1; i <= ROUNDS; i++) {
        kick_thread(&work.there);
        kick_await(&work.back);
        assert_int_equal(work.count, i);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Kicked each time only when it rests: then the kernel must wake it. */
static void test_at_rest(void **unused)
{
    struct work work;
    pthread_t thread;
    (void)unused;
    work_begin(&work, &thread);
    for (unsigned i = 1; i <= ROUNDS; i++) {
        while (i % 100 == 0 && !kick_rests(&work.there)) {
            give_way();
        }
        kick_thread(&work.there);
        kick_await(&work.back);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(work.count, ROUNDS);
}

/* A thread that is busy finds all of them as one. */
static void test_while_busy(void **unused)
{
    struct kick kick;
    (void)unused;
    kick_init(&kick);
    kick_thread(&kick);
    kick_thread(&kick);
    assert_false(kick_rests(&kick));
    kick_await(&kick);
    assert_int_equal(atomic_load(&kick.state), KICK_BUSY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kick),
        cmocka_unit_test(test_at_rest),
        cmocka_unit_test(test_while_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
