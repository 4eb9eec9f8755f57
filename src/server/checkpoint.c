/* checkpoint.c: the thread of checkpoints: when one is made, and what follows if it fails. */
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "server/checkpoint_private.h"
#include "server/process.h"

#define LOOK_MS  500       /* at the clock and the journal */
#define AGAIN_US 10000000u /* after one that failed */

struct checkpoint {
    struct data *data;
    struct barrier *barrier;
    struct barrier_member *member;
    struct spaces *const *spaces;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    bool asked;
    _Atomic bool ending;
    /* The thread's own. */
    uint64_t last_us;  /* when the last one began; at first: the thread */
    uint64_t again_us; /* not before; 0: none has failed */
};

/* ---- one ---- */

static void note_success(struct data *data, const struct checkpoint_round *round, uint64_t began_us)
{
    uint64_t took_us = clock_monotonic_us() - began_us;

    data->figures.checkpoints++;
    data->figures.last_checkpoint_s = clock_wall_s();
    data->figures.last_checkpoint_us = took_us;
    data->figures.images += round->images;
    data->figures.image_bytes += round->image_bytes;
    log_info("checkpoint: %llu tables, %.1f MiB in %.2f s", (unsigned long long)round->images,
             (double)round->image_bytes / 1048576, (double)took_us / 1e6);
}

/* False: round->error, "" if it was stopped. */
static bool make(struct checkpoint_round *round, struct spaces *const *spaces)
{
    struct data *data = round->data;
    uint64_t began_us = clock_monotonic_us();

    data->figures.checkpoint_running = true;
    bool done = checkpoint_round(round, spaces);

    data->figures.checkpoint_running = false;
    if (done) {
        note_success(data, round, began_us);
    } else if (round->error[0] != '\0') {
        data->figures.checkpoint_failures++;
    }
    return done;
}

bool checkpoint_last(struct data *data, const struct spaces *spaces)
{
    static const _Atomic bool never = false;
    struct spaces *all = (struct spaces *)spaces; /* it only looks */
    struct checkpoint_round round = {.data = data, .stop = &never};

    if (make(&round, &all)) {
        return true;
    }
    log_error("checkpoint: %s; the next start replays the journal", round.error);
    return false;
}

/* ---- the thread ---- */

static bool is_due(const struct checkpoint *checkpoint, uint64_t now_us)
{
    struct data *data = checkpoint->data;
    uint64_t every_us = data->checkpoint_every_ms * 1000;
    uint64_t behind = journal_head(data->journal) - data->figures.checkpoint_lsn;

    if (now_us < checkpoint->again_us) {
        return false;
    }
    if (checkpoint->again_us > 0) {
        return true;
    }
    return behind > 0 &&
           ((every_us > 0 && now_us - checkpoint->last_us >= every_us) ||
            (data->checkpoint_journal_bytes > 0 && behind >= data->checkpoint_journal_bytes));
}

static void run_one(struct checkpoint *checkpoint)
{
    struct data *data = checkpoint->data;
    struct checkpoint_round round = {.data = data,
                                     .barrier = checkpoint->barrier,
                                     .member = checkpoint->member,
                                     .stop = &checkpoint->ending};
    bool first = checkpoint->again_us == 0;

    checkpoint->last_us = data->vfs->functions->now_us(data->vfs);
    if (make(&round, checkpoint->spaces)) {
        checkpoint->again_us = 0;
    } else if (round.error[0] != '\0') {
        checkpoint->again_us = data->vfs->functions->now_us(data->vfs) + AGAIN_US;
        if (first) {
            log_error("checkpoint: %s; the one before holds, and it is tried again", round.error);
        }
    }
}

static void wait_a_while(struct checkpoint *checkpoint)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&checkpoint->work, &checkpoint->lock, &until);
}

static void *run(void *context)
{
    struct checkpoint *checkpoint = context;
    struct vfs *vfs = checkpoint->data->vfs;

    pthread_mutex_lock(&checkpoint->lock);
    while (!checkpoint->ending) {
        if (!checkpoint->asked && !is_due(checkpoint, vfs->functions->now_us(vfs))) {
            wait_a_while(checkpoint);
            continue;
        }
        checkpoint->asked = false;
        pthread_mutex_unlock(&checkpoint->lock);
        run_one(checkpoint);
        pthread_mutex_lock(&checkpoint->lock);
    }
    pthread_mutex_unlock(&checkpoint->lock);
    return NULL;
}

static void destroy(struct checkpoint *checkpoint)
{
    barrier_resign(checkpoint->member);
    pthread_cond_destroy(&checkpoint->work);
    pthread_mutex_destroy(&checkpoint->lock);
    free(checkpoint);
}

bool data_start(struct data *data, struct barrier *barrier, struct spaces *const *spaces)
{
    struct checkpoint *checkpoint = memory_zalloc(sizeof(*checkpoint));

    CHECK(data->journal != NULL && data->checkpoint == NULL);
    checkpoint->data = data;
    checkpoint->barrier = barrier;
    checkpoint->spaces = spaces;
    checkpoint->last_us = data->vfs->functions->now_us(data->vfs);
    CHECK(pthread_mutex_init(&checkpoint->lock, NULL) == 0);
    CHECK(pthread_cond_init(&checkpoint->work, NULL) == 0);
    checkpoint->member = barrier_join(barrier);
    if (checkpoint->member == NULL ||
        !process_thread(&checkpoint->thread, run, checkpoint, "checkpoint")) {
        destroy(checkpoint);
        return false;
    }
    data->checkpoint = checkpoint;
    return true;
}

void data_checkpoint(struct data *data)
{
    struct checkpoint *checkpoint = data->checkpoint;

    if (checkpoint == NULL) {
        return;
    }
    pthread_mutex_lock(&checkpoint->lock);
    checkpoint->asked = true;
    pthread_cond_signal(&checkpoint->work);
    pthread_mutex_unlock(&checkpoint->lock);
}

void data_stop(struct data *data)
{
    struct checkpoint *checkpoint = data->checkpoint;

    if (checkpoint == NULL) {
        return;
    }
    pthread_mutex_lock(&checkpoint->lock);
    checkpoint->ending = true;
    pthread_cond_signal(&checkpoint->work);
    pthread_mutex_unlock(&checkpoint->lock);
    pthread_join(checkpoint->thread, NULL);
    data->checkpoint = NULL;
    destroy(checkpoint);
}
