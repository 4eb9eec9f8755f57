#include "space/keeper.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/thread.h"
#include "row/row.h"
#include "space/spaces.h"

/*
 * Invariants, under the lock: 1. running only outside brackets and holds: both begin with waiting
 * for its end. 2. every job of `jobs` belongs to a space that lives.
 */
struct keeper {
    struct barrier *barrier;
    pthread_mutex_t lock; /* a leaf; never held while an engine is run */
    pthread_cond_t
        work; /* wakes the keeper: a flag was raised, or a bracket, a hold or everything ended */
    pthread_cond_t changed; /* for those: the step, or another bracket, is over */
    keeper_errand_fn *errand;
    void *errand_context;
    bool errand_asked;
    bool bracketed;
    unsigned holders;
    bool running;
    bool ending;
    bool started;
    pthread_t thread;
    size_t next; /* where the search for work begins */
    size_t count;
    struct keeper_job *jobs[SETTINGS_SPACES_MAX];
};

/* The flag is raised before the lock is taken: a keeper that missed it is not asleep yet. */
static void keeper_notify(void *context)
{
    struct keeper_job *job = context;

    if (atomic_exchange(&job->asked, true)) {
        return;
    }
    pthread_mutex_lock(&job->keeper->lock);
    pthread_cond_signal(&job->keeper->work);
    pthread_mutex_unlock(&job->keeper->lock);
}

/* Under the lock. The next engine that asked, its flag taken down; NULL: none. */
static struct keeper_job *keeper_take(struct keeper *keeper)
{
    for (size_t i = 0; i < keeper->count; i++) {
        struct keeper_job *job = keeper->jobs[keeper->next++ % keeper->count];

        if (atomic_exchange(&job->asked, false)) {
            return job;
        }
    }
    return NULL;
}

/* Under the lock, which is let go meanwhile. */
static void keeper_maintain(struct keeper *keeper, const struct keeper_job *job)
{
    keeper->running = true;
    pthread_mutex_unlock(&keeper->lock);
    row_maintain(job->engine->row, keeper->barrier);
    pthread_mutex_lock(&keeper->lock);
    keeper->running = false;
    pthread_cond_broadcast(&keeper->changed);
}

/* Called under the lock, which is let go meanwhile. Nothing is maintained meanwhile, as this is the
 * thread that maintains. */
static void run_errand(struct keeper *keeper)
{
    keeper->errand_asked = false;
    keeper->bracketed = true;
    pthread_mutex_unlock(&keeper->lock);
    keeper->errand(keeper->errand_context);
    pthread_mutex_lock(&keeper->lock);
    keeper->bracketed = false;
    pthread_cond_broadcast(&keeper->changed);
}

static void *keeper_run(void *context)
{
    struct keeper *keeper = context;

    pthread_mutex_lock(&keeper->lock);
    while (!keeper->ending) {
        bool paused = keeper->bracketed || keeper->holders > 0;
        bool errand = keeper->errand_asked && !keeper->bracketed;
        struct keeper_job *job = paused || errand ? NULL : keeper_take(keeper);

        if (errand) {
            run_errand(keeper);
        } else if (job != NULL) {
            keeper_maintain(keeper, job);
        } else {
            pthread_cond_wait(&keeper->work, &keeper->lock);
        }
    }
    pthread_mutex_unlock(&keeper->lock);
    return NULL;
}

struct keeper *keeper_create(struct barrier *barrier, keeper_errand_fn *errand, void *context)
{
    struct keeper *keeper = memory_zalloc(sizeof(*keeper));

    keeper->barrier = barrier;
    keeper->errand = errand;
    keeper->errand_context = context;
    CHECK(pthread_mutex_init(&keeper->lock, NULL) == 0);
    CHECK(pthread_cond_init(&keeper->work, NULL) == 0);
    CHECK(pthread_cond_init(&keeper->changed, NULL) == 0);
    return keeper;
}

void keeper_destroy(struct keeper *keeper)
{
    if (keeper == NULL) {
        return;
    }
    keeper_end(keeper);
    CHECK(!keeper->bracketed && keeper->holders == 0);
    pthread_cond_destroy(&keeper->changed);
    pthread_cond_destroy(&keeper->work);
    pthread_mutex_destroy(&keeper->lock);
    free(keeper);
}

void keeper_attach(struct keeper *keeper, struct spaces *spaces)
{
    for (size_t i = 0; i < spaces->count; i++) {
        struct space *space = spaces->at[i];

        if (space->job.keeper != NULL) {
            CHECK(space->job.keeper == keeper);
            continue;
        }
        space->job.keeper = keeper;
        space->job.engine = space->engine;
        space->engine->keeper = (struct engine_keeper){keeper_notify, &space->job};
    }
}

/* Under the lock. */
static void set_jobs(struct keeper *keeper, const struct spaces *spaces)
{
    keeper->count = 0;
    for (size_t i = 0; i < spaces->count; i++) {
        CHECK(spaces->at[i]->job.keeper == keeper);
        keeper->jobs[keeper->count++] = &spaces->at[i]->job;
    }
}

bool keeper_start(struct keeper *keeper, const struct spaces *spaces)
{
    CHECK(!keeper->started);
    pthread_mutex_lock(&keeper->lock);
    set_jobs(keeper, spaces);
    pthread_mutex_unlock(&keeper->lock);
    keeper->started = thread_start(&keeper->thread, keeper_run, keeper, "keeper");
    return keeper->started;
}

void keeper_end(struct keeper *keeper)
{
    if (keeper == NULL || !keeper->started) {
        return;
    }
    pthread_mutex_lock(&keeper->lock);
    keeper->ending = true;
    pthread_cond_signal(&keeper->work);
    pthread_mutex_unlock(&keeper->lock);
    pthread_join(keeper->thread, NULL);
    keeper->started = false;
}

void keeper_ask_errand(struct keeper *keeper)
{
    CHECK(keeper->errand != NULL);
    pthread_mutex_lock(&keeper->lock);
    keeper->errand_asked = true;
    pthread_cond_signal(&keeper->work);
    pthread_mutex_unlock(&keeper->lock);
}

/* Under the lock, when a bracket or hold keeps the next step from beginning. */
static void await_step(struct keeper *keeper)
{
    while (keeper->running) {
        pthread_cond_wait(&keeper->changed, &keeper->lock);
    }
}

void keeper_hold(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    keeper->holders++;
    await_step(keeper);
    pthread_mutex_unlock(&keeper->lock);
}

void keeper_release(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    CHECK(keeper->holders > 0);
    keeper->holders--;
    pthread_cond_signal(&keeper->work);
    pthread_mutex_unlock(&keeper->lock);
}

void keeper_stop(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    while (keeper->bracketed) {
        pthread_cond_wait(&keeper->changed, &keeper->lock);
    }
    keeper->bracketed = true;
    await_step(keeper);
    pthread_mutex_unlock(&keeper->lock);
}

void keeper_go(struct keeper *keeper, const struct spaces *spaces)
{
    pthread_mutex_lock(&keeper->lock);
    CHECK(keeper->bracketed);
    if (spaces != NULL) {
        set_jobs(keeper, spaces);
    }
    keeper->bracketed = false;
    pthread_cond_broadcast(&keeper->changed);
    pthread_cond_signal(&keeper->work);
    pthread_mutex_unlock(&keeper->lock);
}
