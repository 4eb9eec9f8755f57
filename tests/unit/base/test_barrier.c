/*
 * test_barrier.c: nobody is inside while the world is stopped. The shared figure is a plain
 * variable: a race detector sees a barrier that does not order its accesses.
 */
#include "base/barrier.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tests/support/give_way.h"

#define READERS        3
#define STOPPERS       2
#define STOPS          300
#define READS_A_TURN   50
#define STOPPED_WRITES 20

struct world {
    struct barrier *barrier;
    atomic_bool over;
    atomic_int torn;
    atomic_ulong turns;
    uint64_t left;  /* written only while stopped; always equal to right */
    uint64_t right; /* of every turn */
};

static void *read_turns(void *argument)
{
    struct world *world = argument;
    struct barrier_member *member = barrier_join(world->barrier);
    uint64_t last = 0;
    while (!atomic_load(&world->over)) {
        barrier_enter(member);
        uint64_t left = world->left;
        for (int i = 0; i < READS_A_TURN; i++) {
            if (world->right != left || left < last) {
                atomic_fetch_add(&world->torn, 1);
            }
        }
        last = left;
        barrier_leave(member);
        atomic_fetch_add(&world->turns, 1);
    }
    barrier_resign(member);
    return NULL;
}

static void *stop_often(void *argument)
{
    struct world *world = argument;
    for (int i = 0; i < STOPS; i++) {
        barrier_stop(world->barrier);
        for (int j = 0; j < STOPPED_WRITES; j++) {
            world->left++;
            world->right++;
        }
        barrier_go(world->barrier);
    }
    return NULL;
}

static void test_stops_all(void **unused)
{
    (void)unused;
    struct world world = {.barrier = barrier_create()};
    pthread_t readers[READERS];
    pthread_t stoppers[STOPPERS];
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(pthread_create(&readers[i], NULL, read_turns, &world), 0);
    }
    while (atomic_load(&world.turns) < READERS) {
        give_way();
    }
    for (int i = 0; i < STOPPERS; i++) {
        assert_int_equal(pthread_create(&stoppers[i], NULL, stop_often, &world), 0);
    }
    for (int i = 0; i < STOPPERS; i++) {
        pthread_join(stoppers[i], NULL);
    }
    atomic_store(&world.over, true);
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i], NULL);
    }
    assert_int_equal(atomic_load(&world.torn), 0);
    assert_int_equal(world.left, STOPPERS * STOPS * STOPPED_WRITES);
    assert_int_equal(world.right, world.left);
    barrier_destroy(world.barrier);
}

struct handover {
    struct barrier *barrier;
    struct barrier_member *member;
    atomic_int step;
};

static void wait_for(atomic_int *step, int value)
{
    while (atomic_load(step) < value) {
        give_way();
    }
}

static void *stop_once(void *argument)
{
    struct handover *handover = argument;
    atomic_store(&handover->step, 1);
    barrier_stop(handover->barrier);
    atomic_store(&handover->step, 2);
    barrier_go(handover->barrier);
    return NULL;
}

/* A stop outlasts a long turn: it sleeps until the member leaves. */
static void test_waits_for_the_turn(void **unused)
{
    (void)unused;
    struct handover handover = {.barrier = barrier_create()};
    handover.member = barrier_join(handover.barrier);
    for (int round = 0; round < 20; round++) {
        atomic_store(&handover.step, 0);
        barrier_enter(handover.member);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, stop_once, &handover), 0);
        wait_for(&handover.step, 1);
        for (int i = 0; i < 1000; i++) {
            give_way();
            assert_int_equal(atomic_load(&handover.step), 1);
        }
        barrier_leave(handover.member);
        wait_for(&handover.step, 2);
        pthread_join(thread, NULL);
    }
    barrier_resign(handover.member);
    barrier_destroy(handover.barrier);
}

static void *enter_once(void *argument)
{
    struct handover *handover = argument;
    atomic_store(&handover->step, 1);
    barrier_enter(handover->member);
    atomic_store(&handover->step, 2);
    barrier_leave(handover->member);
    return NULL;
}

/* An entering member waits until the world goes on; one that is asleep outside holds up nobody. */
static void test_holds_up_entering(void **unused)
{
    (void)unused;
    struct handover handover = {.barrier = barrier_create()};
    handover.member = barrier_join(handover.barrier);
    struct barrier_member *asleep = barrier_join(handover.barrier);
    barrier_stop(handover.barrier);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, enter_once, &handover), 0);
    wait_for(&handover.step, 1);
    for (int i = 0; i < 1000; i++) {
        give_way();
        assert_int_equal(atomic_load(&handover.step), 1);
    }
    barrier_go(handover.barrier);
    wait_for(&handover.step, 2);
    pthread_join(thread, NULL);
    barrier_resign(asleep);
    barrier_resign(handover.member);
    barrier_destroy(handover.barrier);
}

static void test_members_limit(void **unused)
{
    (void)unused;
    struct barrier *barrier = barrier_create();
    struct barrier_member *members[BARRIER_MEMBERS_MAX];
    for (int i = 0; i < BARRIER_MEMBERS_MAX; i++) {
        members[i] = barrier_join(barrier);
        assert_non_null(members[i]);
    }
    assert_null(barrier_join(barrier));
    barrier_resign(members[5]);
    members[5] = barrier_join(barrier);
    assert_non_null(members[5]);
    barrier_stop(barrier);
    barrier_go(barrier);
    for (int i = 0; i < BARRIER_MEMBERS_MAX; i++) {
        barrier_resign(members[i]);
    }
    barrier_resign(NULL);
    barrier_destroy(barrier);
    barrier_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stops_all),
        cmocka_unit_test(test_waits_for_the_turn),
        cmocka_unit_test(test_holds_up_entering),
        cmocka_unit_test(test_members_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
