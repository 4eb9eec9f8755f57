/* The keeper: nothing asked for is lost, brackets hold, engines come and go. Engines of one
 * function.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <pthread.h>

#include "base/check.h"
#include "base/memory.h"
#include "row/row.h"
#include "space/keeper.h"
#include "space/spaces.h"
#include "tests/support/give_way.h"

#define PATIENCE_S 60 /* SIGALRM ends a test that waits for what never comes */
#define ENGINES    3

struct probe {
    struct engine engine;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t work; /* to be done, by notifications … */
    uint64_t done; /* … and what maintain has seen of it */
    uint64_t calls;
    bool gate_closed, inside, restless;
    char thread[16];
};

static struct barrier *barrier;
static struct keeper *keeper;
static struct probe probes[ENGINES];
static struct space space_of[ENGINES];
static struct spaces spaces;
static _Atomic bool bracketed, held;

/* In place of src/row: the row of a probe is the probe. */
void row_maintain(struct row *row, struct barrier *given)
{
    struct probe *probe = (struct probe *)(void *)row;

    CHECK(given == barrier && !bracketed && !held);
    barrier_stop(given);
    barrier_go(given);
    pthread_mutex_lock(&probe->lock);
    CHECK(!probe->inside);
    probe->inside = true;
    uint64_t work = probe->work; /* what comes after is another call's */

    pthread_cond_broadcast(&probe->changed);
    while (probe->gate_closed) {
        pthread_cond_wait(&probe->changed, &probe->lock);
    }
    probe->inside = false;
    probe->done = work;
    probe->calls++;
    pthread_getname_np(pthread_self(), probe->thread, sizeof(probe->thread));
    bool again = probe->restless;

    pthread_cond_broadcast(&probe->changed);
    pthread_mutex_unlock(&probe->lock);
    CHECK(!bracketed && !held);
    if (again) {
        probe->engine.keeper.notify(probe->engine.keeper.context);
    }
}

static void ask(struct probe *probe)
{
    pthread_mutex_lock(&probe->lock);
    probe->work++;
    pthread_mutex_unlock(&probe->lock);
    probe->engine.keeper.notify(probe->engine.keeper.context);
}

static void await_done(struct probe *probe)
{
    pthread_mutex_lock(&probe->lock);
    while (probe->done < probe->work) {
        pthread_cond_wait(&probe->changed, &probe->lock);
    }
    pthread_mutex_unlock(&probe->lock);
}

static void await_inside(struct probe *probe)
{
    pthread_mutex_lock(&probe->lock);
    while (!probe->inside) {
        pthread_cond_wait(&probe->changed, &probe->lock);
    }
    pthread_mutex_unlock(&probe->lock);
}

static void gate(struct probe *probe, bool closed)
{
    pthread_mutex_lock(&probe->lock);
    probe->gate_closed = closed;
    pthread_cond_broadcast(&probe->changed);
    pthread_mutex_unlock(&probe->lock);
}

static uint64_t calls(struct probe *probe)
{
    pthread_mutex_lock(&probe->lock);
    uint64_t count = probe->calls;

    pthread_mutex_unlock(&probe->lock);
    return count;
}

static int setup_idle(void **state)
{
    (void)state;
    alarm(PATIENCE_S);
    barrier = barrier_create();
    keeper = keeper_create(barrier, NULL, NULL);
    memset(probes, 0, sizeof(probes));
    memset(space_of, 0, sizeof(space_of));
    spaces.count = ENGINES;
    for (size_t i = 0; i < ENGINES; i++) {
        probes[i].engine.row = (struct row *)(void *)&probes[i];
        pthread_mutex_init(&probes[i].lock, NULL);
        pthread_cond_init(&probes[i].changed, NULL);
        space_of[i].engine = &probes[i].engine;
        spaces.at[i] = &space_of[i];
    }
    keeper_attach(keeper, &spaces);
    return 0;
}

static int setup(void **state)
{
    setup_idle(state);
    return keeper_start(keeper, &spaces) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    keeper_destroy(keeper);
    barrier_destroy(barrier);
    for (size_t i = 0; i < ENGINES; i++) {
        pthread_mutex_destroy(&probes[i].lock);
        pthread_cond_destroy(&probes[i].changed);
    }
    alarm(0);
    return 0;
}

static void stop(void)
{
    keeper_stop(keeper);
    CHECK(!bracketed);
    bracketed = true;
}

static void go(const struct spaces *set)
{
    bracketed = false;
    keeper_go(keeper, set);
}

static void *hold_often(void *context)
{
    (void)context;
    for (int i = 0; i < 500; i++) {
        keeper_hold(keeper);
        held = true;
        give_way();
        held = false;
        keeper_release(keeper);
    }
    return NULL;
}

static void *ask_often(void *context)
{
    (void)context;
    for (int i = 0; i < 5000; i++) {
        ask(&probes[i % ENGINES]);
    }
    return NULL;
}

enum { YIELDS = 20 };

static void *bracket_often(void *context)
{
    (void)context;
    for (int i = 0; i < 500; i++) {
        stop();
        for (int k = 0; k < YIELDS; k++) { /* time for another one to come in as well */
            give_way();
        }
        go(i % 2 == 0 ? &spaces : NULL);
    }
    return NULL;
}

/* Several threads ask, others stop and go, or hold: in the end everything asked for was seen. */
static void test_nothing_is_lost(void **state)
{
    enum { ASKING = 3, BRACKETS = 2, THREADS = ASKING + BRACKETS + 1 };
    pthread_t threads[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        void *(*what)(void *) = i < ASKING              ? ask_often
                                : i < ASKING + BRACKETS ? bracket_often
                                                        : hold_often;

        assert_int_equal(pthread_create(&threads[i], NULL, what, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < ENGINES; i++) {
        await_done(&probes[i]);
    }
    assert_string_equal(probes[0].thread, "keeper");
}

static void test_asked_before_the_start(void **state)
{
    (void)state;
    ask(&probes[1]);
    assert_true(keeper_start(keeper, &spaces));
    await_done(&probes[1]);
    assert_int_equal(calls(&probes[0]), 0);
}

/* Again and again, when the keeper has gone to sleep. */
static void test_asked_one_by_one(void **state)
{
    (void)state;
    for (int i = 0; i < 500; i++) {
        ask(&probes[i % ENGINES]);
        await_done(&probes[i % ENGINES]);
    }
}

/* What is asked for while an engine is maintained takes another call. */
static void test_asked_meanwhile(void **state)
{
    (void)state;
    gate(&probes[0], true);
    ask(&probes[0]);
    await_inside(&probes[0]);
    ask(&probes[0]);
    ask(&probes[0]);
    gate(&probes[0], false);
    await_done(&probes[0]);
    assert_int_equal(calls(&probes[0]), 2);
}

/* By a thread that has stopped the world: it does not wait for the keeper, which waits for it. */
static void test_asked_in_a_stopped_world(void **state)
{
    (void)state;
    barrier_stop(barrier);
    ask(&probes[0]);
    ask(&probes[1]);
    barrier_go(barrier);
    await_done(&probes[0]);
    await_done(&probes[1]);
}

static void *stop_and_count(void *context)
{
    uint64_t *seen = context;

    stop();
    *seen = calls(&probes[0]);
    return NULL;
}

static void test_stop_waits(void **state)
{
    uint64_t seen = 99;
    pthread_t thread;

    (void)state;
    gate(&probes[0], true);
    ask(&probes[0]);
    await_inside(&probes[0]);
    assert_int_equal(pthread_create(&thread, NULL, stop_and_count, &seen), 0);
    ask(&probes[1]);
    gate(&probes[0], false);
    pthread_join(thread, NULL);
    assert_int_equal(seen, 1);
    ask(&probes[0]);
    go(NULL);
    await_done(&probes[0]);
    await_done(&probes[1]);
}

static void *bracket_twice(void *context)
{
    (void)context;
    stop();
    go(NULL);
    stop();
    go(&spaces);
    return NULL;
}

static void *hold_and_count(void *context)
{
    uint64_t *seen = context;

    keeper_hold(keeper);
    *seen = calls(&probes[0]);
    held = true;
    return NULL;
}

static void test_hold_waits(void **state)
{
    uint64_t seen = 99;
    pthread_t thread;

    (void)state;
    gate(&probes[0], true);
    ask(&probes[0]);
    await_inside(&probes[0]);
    assert_int_equal(pthread_create(&thread, NULL, hold_and_count, &seen), 0);
    for (int i = 0; i < 10000 && !held; i++) { /* it has its chance to return too early */
        give_way();
    }
    gate(&probes[0], false);
    pthread_join(thread, NULL);
    assert_int_equal(seen, 1);
    held = false;
    keeper_release(keeper);
}

/* Brackets of others come and go while it is held; nothing is maintained, nothing is lost. */
static void test_held(void **state)
{
    pthread_t thread;

    (void)state;
    gate(&probes[0], true);
    ask(&probes[0]);
    await_inside(&probes[0]);
    gate(&probes[0], false);
    keeper_hold(keeper); /* waits for the step */
    assert_int_equal(calls(&probes[0]), 1);
    held = true;
    ask(&probes[0]);
    keeper_hold(keeper); /* by another holder */
    assert_int_equal(pthread_create(&thread, NULL, bracket_twice, NULL), 0);
    pthread_join(thread, NULL);
    stop(); /* its own, within */
    go(NULL);
    keeper_release(keeper);
    for (int i = 0; i < 1000; i++) {
        give_way();
    }
    assert_int_equal(calls(&probes[0]), 1);
    held = false;
    keeper_release(keeper);
    await_done(&probes[0]);
    assert_int_equal(calls(&probes[0]), 2);
}

/* One that always asks again does not starve the others. */
static void test_in_turn(void **state)
{
    (void)state;
    probes[0].restless = true;
    ask(&probes[0]);
    for (int i = 0; i < 100; i++) {
        ask(&probes[1]);
        ask(&probes[2]);
        await_done(&probes[1]);
        await_done(&probes[2]);
    }
    pthread_mutex_lock(&probes[0].lock);
    probes[0].restless = false;
    pthread_mutex_unlock(&probes[0].lock);
    await_done(&probes[0]);
}

static void test_dropped(void **state)
{
    struct spaces fewer = spaces;

    (void)state;
    fewer.count = ENGINES - 1;
    stop();
    ask(&probes[ENGINES - 1]); /* too late */
    go(&fewer);
    ask(&probes[0]);
    await_done(&probes[0]);
    stop();
    assert_int_equal(calls(&probes[ENGINES - 1]), 0);
    go(&spaces); /* back again, and its flag still up */
    await_done(&probes[ENGINES - 1]);
}

static void *end(void *context)
{
    keeper_end(context);
    return NULL;
}

static void test_end(void **state)
{
    pthread_t thread;

    (void)state;
    gate(&probes[0], true);
    ask(&probes[0]);
    await_inside(&probes[0]);
    assert_int_equal(pthread_create(&thread, NULL, end, keeper), 0);
    gate(&probes[0], false);
    pthread_join(thread, NULL);
    assert_int_equal(calls(&probes[0]), 1);
    ask(&probes[0]); /* a worker that is still there */
    stop();
    go(NULL);
    keeper_end(keeper);
    assert_int_equal(calls(&probes[0]), 1);
}

static void test_end_of_one_that_is_idle(void **state)
{
    (void)state;
    keeper_end(NULL);
    keeper_destroy(NULL);
}

int main(void)
{
#define TEST(name)      cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_IDLE(name) cmocka_unit_test_setup_teardown(name, setup_idle, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_is_lost),
        TEST_IDLE(test_asked_before_the_start),
        TEST(test_asked_one_by_one),
        TEST(test_asked_meanwhile),
        TEST(test_asked_in_a_stopped_world),
        TEST(test_stop_waits),
        TEST(test_hold_waits),
        TEST(test_held),
        TEST(test_in_turn),
        TEST(test_dropped),
        TEST(test_end),
        TEST(test_end_of_one_that_is_idle),
        TEST_IDLE(test_end_of_one_that_is_idle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
