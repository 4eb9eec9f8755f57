/* fake_barrier.c: a barrier that holds nobody up. */
#include "tests/support/fake_barrier.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"

struct barrier {
    bool stopped;
};

struct barrier *barrier_create(void)
{
    return memory_zalloc(sizeof(struct barrier));
}

void barrier_destroy(struct barrier *barrier)
{
    free(barrier);
}

bool fake_barrier_is_stopped(const struct barrier *barrier)
{
    return barrier->stopped;
}

struct barrier_member *barrier_join(struct barrier *barrier)
{
    (void)barrier;
    return memory_zalloc(sizeof(struct barrier_member));
}

void barrier_resign(struct barrier_member *member)
{
    free(member);
}

void barrier_enter(struct barrier_member *member)
{
    CHECK(!member->inside);
    member->inside = true;
}

void barrier_leave(struct barrier_member *member)
{
    CHECK(member->inside);
    member->inside = false;
    if (member->left) {
        member->left(member->context);
    }
}

void barrier_stop(struct barrier *barrier)
{
    CHECK(!barrier->stopped);
    barrier->stopped = true;
}

void barrier_go(struct barrier *barrier)
{
    CHECK(barrier->stopped);
    barrier->stopped = false;
}
