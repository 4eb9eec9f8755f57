/*
 * barrier.c: a flag of the barrier against a state of each member.
 *
 * A member writes its state and then reads the flag; a stop writes the flag and then reads the
 * states. All four are sequentially consistent, so at least one of the two sees the other: a member
 * that read "not stopped" is seen inside. A stop that finds a member inside marks it AWAITED; the
 * member that steps out of that state wakes the stop. Both sleep under the one lock, so no wake is
 * lost.
 */
#include "base/barrier.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

/*
 * Looks at a member inside, some tens of microseconds, before the stop sleeps until it is woken.
 * The stop does not yield instead: beside other work of the machine each yield may last as long as
 * another's slice, with the world stopped and the member gone long since.
 */
#define BARRIER_SPINS 1000

enum member_state { OUTSIDE, INSIDE, AWAITED };

struct barrier_member {
    _Alignas(MEMORY_LINE_BYTES) atomic_int state; /* enum member_state */
    bool taken;                                   /* under the barrier's lock */
    struct barrier *barrier;
};

struct barrier {
    _Alignas(MEMORY_LINE_BYTES) atomic_bool stopped; /* written under lock */
    _Alignas(MEMORY_LINE_BYTES) pthread_mutex_t lock;
    pthread_cond_t gone;     /* an AWAITED member stepped out */
    pthread_cond_t going_on; /* stopped fell */
    struct barrier_member members[BARRIER_MEMBERS_MAX];
};

struct barrier *barrier_create(void)
{
    struct barrier *barrier = aligned_alloc(MEMORY_LINE_BYTES, sizeof(*barrier));
    CHECK(barrier != NULL);
    atomic_init(&barrier->stopped, false);
    CHECK(pthread_mutex_init(&barrier->lock, NULL) == 0);
    CHECK(pthread_cond_init(&barrier->gone, NULL) == 0);
    CHECK(pthread_cond_init(&barrier->going_on, NULL) == 0);
    for (size_t i = 0; i < BARRIER_MEMBERS_MAX; i++) {
        struct barrier_member *member = &barrier->members[i];
        atomic_init(&member->state, OUTSIDE);
        member->taken = false;
        member->barrier = barrier;
    }
    return barrier;
}

void barrier_destroy(struct barrier *barrier)
{
    if (barrier == NULL) {
        return;
    }
    CHECK(!atomic_load(&barrier->stopped));
    for (size_t i = 0; i < BARRIER_MEMBERS_MAX; i++) {
        CHECK(!barrier->members[i].taken);
    }
    pthread_cond_destroy(&barrier->going_on);
    pthread_cond_destroy(&barrier->gone);
    pthread_mutex_destroy(&barrier->lock);
    free(barrier);
}

struct barrier_member *barrier_join(struct barrier *barrier)
{
    struct barrier_member *member = NULL;
    pthread_mutex_lock(&barrier->lock);
    for (size_t i = 0; i < BARRIER_MEMBERS_MAX && member == NULL; i++) {
        if (!barrier->members[i].taken) {
            member = &barrier->members[i];
            member->taken = true;
        }
    }
    pthread_mutex_unlock(&barrier->lock);
    return member;
}

void barrier_resign(struct barrier_member *member)
{
    if (member == NULL) {
        return;
    }
    struct barrier *barrier = member->barrier;
    pthread_mutex_lock(&barrier->lock);
    CHECK(member->taken && atomic_load(&member->state) == OUTSIDE);
    member->taken = false;
    pthread_mutex_unlock(&barrier->lock);
}

static void step_out(struct barrier_member *member)
{
    int state = atomic_exchange(&member->state, OUTSIDE);
    CHECK(state != OUTSIDE);
    if (UNLIKELY(state == AWAITED)) {
        struct barrier *barrier = member->barrier;
        pthread_mutex_lock(&barrier->lock);
        pthread_cond_signal(&barrier->gone);
        pthread_mutex_unlock(&barrier->lock);
    }
}

/* Steps in. False: a stop had begun, and the member is to step out again. */
static inline bool step_in(struct barrier_member *member)
{
    CHECK(atomic_exchange(&member->state, INSIDE) == OUTSIDE);
    return LIKELY(!atomic_load(&member->barrier->stopped));
}

/* Not inlined, so that an enter without a stop saves no registers. */
static __attribute__((noinline)) void enter_later(struct barrier_member *member)
{
    struct barrier *barrier = member->barrier;
    do {
        step_out(member);
        pthread_mutex_lock(&barrier->lock);
        while (atomic_load(&barrier->stopped)) {
            pthread_cond_wait(&barrier->going_on, &barrier->lock);
        }
        pthread_mutex_unlock(&barrier->lock);
    } while (!step_in(member));
}

void barrier_enter(struct barrier_member *member)
{
    if (UNLIKELY(!step_in(member))) {
        enter_later(member);
    }
}

void barrier_leave(struct barrier_member *member)
{
    step_out(member);
}

/* Waits a moment for a member inside to step out by itself. Returns whether it did. */
static bool left_soon(struct barrier_member *member)
{
    for (int i = 0; i < BARRIER_SPINS; i++) {
        if (atomic_load(&member->state) == OUTSIDE) {
            return true;
        }
        thread_pause();
    }
    return false;
}

/* Called under the barrier's lock, which is let go while asleep. */
static void wait_until_out(struct barrier *barrier, struct barrier_member *member)
{
    int inside = INSIDE;
    if (!atomic_compare_exchange_strong(&member->state, &inside, AWAITED)) {
        return; /* OUTSIDE: if it enters again, it sees the flag */
    }
    while (atomic_load(&member->state) == AWAITED) {
        pthread_cond_wait(&barrier->gone, &barrier->lock);
    }
}

void barrier_stop(struct barrier *barrier)
{
    pthread_mutex_lock(&barrier->lock);
    while (atomic_load(&barrier->stopped)) {
        pthread_cond_wait(&barrier->going_on, &barrier->lock);
    }
    atomic_store(&barrier->stopped, true);
    pthread_mutex_unlock(&barrier->lock);
    for (size_t i = 0; i < BARRIER_MEMBERS_MAX; i++) {
        struct barrier_member *member = &barrier->members[i];
        if (!left_soon(member)) {
            pthread_mutex_lock(&barrier->lock);
            wait_until_out(barrier, member);
            pthread_mutex_unlock(&barrier->lock);
        }
    }
}

void barrier_go(struct barrier *barrier)
{
    pthread_mutex_lock(&barrier->lock);
    CHECK(atomic_load(&barrier->stopped));
    atomic_store(&barrier->stopped, false);
    pthread_cond_broadcast(&barrier->going_on);
    pthread_mutex_unlock(&barrier->lock);
}
