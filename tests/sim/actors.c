/* actors.c: threads in turn. */
#include "tests/sim/actors.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/wait.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/give_way.h"

#define ACTORS_MAX 64

enum actor_state { ACTOR_NONE, ACTOR_RUNS, ACTOR_PARKED };

struct actor {
    enum actor_state state;
    const char *name;
    unsigned node;
    bool goes; /* it may */
    pthread_cond_t may_go;
    actors_ready_fn *is_ready;
    void *context;
    uint64_t until_us;
    /* of a wait for a condition: nobody knows what it waits for, so it looks once a change */
    const pthread_cond_t *cond;
    uint64_t looked;
    void *(*run)(void *context);
    void *run_context;
};

static pthread_mutex_t actors_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t actors_parked = PTHREAD_COND_INITIALIZER; /* one has, or has ended */
static struct actor actors[ACTORS_MAX];
static _Atomic uint64_t changes;
static const char *freed[ACTORS_NODES]; /* NULL: none; "": all; or of that name */
static unsigned owner;
static _Thread_local struct actor *self;

void actors_own(unsigned node)
{
    owner = node;
}

bool actors_is_one(void)
{
    return self != NULL;
}

void actors_changed(void)
{
    changes++;
}

/* ---- an actor ---- */

/* Under the lock. */
static bool is_free(const struct actor *actor)
{
    const char *only = freed[actor->node];

    return only != NULL && (only[0] == '\0' || strcmp(only, actor->name) == 0);
}

static void park(const pthread_cond_t *cond, uint64_t until_us)
{
    struct actor *actor = self;
    bool same = cond != NULL && cond == actor->cond && until_us == actor->until_us;

    if (!same) {
        changes++; /* it has done something */
    }
    actor->cond = cond;
    actor->until_us = until_us;
    pthread_mutex_lock(&actors_lock);
    actor->looked = changes;
    actor->state = ACTOR_PARKED;
    pthread_cond_broadcast(&actors_parked);
    while (!actor->goes && !is_free(actor)) {
        pthread_cond_wait(&actor->may_go, &actors_lock);
    }
    actor->goes = false;
    actor->state = ACTOR_RUNS;
    pthread_mutex_unlock(&actors_lock);
}

void actors_park(actors_ready_fn *is_ready, void *context, uint64_t until_us)
{
    self->is_ready = is_ready;
    self->context = context;
    park(NULL, until_us);
    self->is_ready = NULL;
    if (is_free(self)) {
        give_way();
    }
}

static void *actor_main(void *context)
{
    self = context;
    sim_clock_join();
    void *result = self->run(self->run_context);

    pthread_mutex_lock(&actors_lock);
    changes++;
    self->state = ACTOR_NONE;
    pthread_cond_broadcast(&actors_parked);
    pthread_mutex_unlock(&actors_lock);
    return result;
}

/* ---- in place of base ---- */

void thread_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    CHECK(pthread_cond_init(cond, &monotonic) == 0);
    pthread_condattr_destroy(&monotonic);
}

static bool is_actor(const char *name)
{
    return strcmp(name, "receiver") == 0 || strcmp(name, "applier") == 0 ||
           strcmp(name, "feed") == 0;
}

static struct actor *find_unused(void)
{
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        if (actors[i].state == ACTOR_NONE) {
            return &actors[i];
        }
    }
    CHECK(false);
    return NULL;
}

/* It runs as far as its first wait before anybody goes on. */
bool thread_start(pthread_t *thread, void *(*run)(void *context), void *context, const char *name)
{
    if (!is_actor(name)) {
        errno = pthread_create(thread, NULL, run, context);
        return errno == 0;
    }
    pthread_mutex_lock(&actors_lock);
    struct actor *actor = find_unused();

    *actor = (struct actor){.state = ACTOR_RUNS,
                            .name = name,
                            .node = owner,
                            .may_go = PTHREAD_COND_INITIALIZER,
                            .run = run,
                            .run_context = context};
    CHECK(pthread_create(thread, NULL, actor_main, actor) == 0);
    while (actor->state == ACTOR_RUNS) {
        pthread_cond_wait(&actors_parked, &actors_lock);
    }
    pthread_mutex_unlock(&actors_lock);
    return true;
}

bool wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_us)
{
    CHECK(self != NULL);
    pthread_mutex_unlock(lock);
    park(cond, until_us);
    if (is_free(self)) {
        give_way();
    }
    pthread_mutex_lock(lock);
    return clock_monotonic_us() < until_us;
}

void wait_us(uint64_t us)
{
    if (self != NULL) {
        park(NULL, clock_monotonic_us() + us);
    } else {
        sim_clock_to(clock_monotonic_us() + us);
    }
}

/* ---- turns ---- */

static bool may_go(const struct actor *actor, uint64_t now_us)
{
    return now_us >= actor->until_us ||
           (actor->is_ready != NULL && actor->is_ready(actor->context)) ||
           (actor->cond != NULL && actor->looked != changes);
}

static bool is_meant(const struct actor *actor, unsigned nodes, const char *only)
{
    return actor->state == ACTOR_PARKED && (nodes & 1u << actor->node) != 0 &&
           (only == NULL || strcmp(actor->name, only) == 0);
}

/* NULL: none can go on now; *next_us: when one can. */
static struct actor *draw(struct test_random *random, unsigned nodes, const char *only,
                          uint64_t *next_us)
{
    struct actor *drawn = NULL;
    uint64_t now_us = clock_monotonic_us();
    uint64_t count = 0;

    *next_us = UINT64_MAX;
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        struct actor *actor = &actors[i];

        if (!is_meant(actor, nodes, only)) {
            continue;
        }
        *next_us = actor->until_us < *next_us ? actor->until_us : *next_us;
        if (may_go(actor, now_us) && test_random_once_in(random, ++count)) {
            drawn = actor;
        }
    }
    return drawn;
}

static void take_turn(struct actor *actor)
{
    pthread_mutex_lock(&actors_lock);
    actor->goes = true;
    actor->state = ACTOR_RUNS;
    pthread_cond_signal(&actor->may_go);
    while (actor->state == ACTOR_RUNS) {
        pthread_cond_wait(&actors_parked, &actors_lock);
    }
    pthread_mutex_unlock(&actors_lock);
}

bool actors_step(struct test_random *random, unsigned nodes, const char *only, uint64_t until_us)
{
    uint64_t next_us;
    struct actor *actor = draw(random, nodes, only, &next_us);

    if (actor == NULL) {
        if (next_us > until_us) {
            return false;
        }
        sim_clock_to(next_us);
        actor = draw(random, nodes, only, &next_us);
    }
    take_turn(actor);
    return true;
}

/* ---- the end of a node ---- */

void actors_free(unsigned node, const char *only)
{
    pthread_mutex_lock(&actors_lock);
    freed[node] = only != NULL ? only : "";
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        if (actors[i].state == ACTOR_PARKED && is_free(&actors[i])) {
            pthread_cond_signal(&actors[i].may_go);
        }
    }
    pthread_mutex_unlock(&actors_lock);
}

bool actors_none(unsigned node)
{
    bool none = true;

    pthread_mutex_lock(&actors_lock);
    for (size_t i = 0; i < ACTORS_MAX; i++) {
        none = none && (actors[i].state == ACTOR_NONE || actors[i].node != node);
    }
    pthread_mutex_unlock(&actors_lock);
    return none;
}

void actors_hold(unsigned node)
{
    pthread_mutex_lock(&actors_lock);
    freed[node] = NULL;
    pthread_mutex_unlock(&actors_lock);
}
