/* checkpoint.c: the thread of checkpoints: when one is made, and what follows if it fails. */
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/size.h"
#include "base/thread.h"
#include "data/checkpoint_private.h"
#include "data/follow.h"

#define LOOK_MS  500       /* at the clock and the journal */
#define AGAIN_US 10000000u /* after one that failed */

struct checkpoint {
    struct data *data;
    struct barrier *barrier;
    struct barrier_member *member;
    struct spaces *const *spaces;
    pthread_t thread;
    _Atomic bool ending;
    /* The thread's own. */
    uint64_t last_us;       /* when the last one began; at first: the thread */
    uint64_t round_us;      /* when the last one began; 0: none has */
    uint64_t again_us;      /* not before; 0: none has failed */
    uint64_t dump_again_us; /* likewise a round for dumps alone */
    bool dump_failed;       /* the last of them: it was said */
    bool dumped;            /* the last round was one for dumps: others have their turn */
    enum journal_room room; /* as it was looked at last */
};

enum work { WORK_NONE, WORK_DUMPS, WORK_ALL };

/* ---- one ---- */

static void note_success(struct data *data, const struct checkpoint_round *round, uint64_t began_us)
{
    uint64_t took_us = clock_monotonic_us() - began_us;

    data->figures.images += round->images;
    data->figures.image_bytes += round->image_bytes;
    if (round->dumps_only) {
        log_debug("tables dumped files=%llu bytes=%llu seconds=%.3f",
                  (unsigned long long)round->images, (unsigned long long)round->image_bytes,
                  (double)took_us / 1e6);
        return;
    }
    data->figures.checkpoints++;
    data->figures.last_checkpoint_s = clock_wall_s();
    data->figures.last_checkpoint_us = took_us;
    log_info("checkpoint done tables=%llu bytes=%llu seconds=%.3f",
             (unsigned long long)round->images, (unsigned long long)round->image_bytes,
             (double)took_us / 1e6);
}

/* False: round->error, "" if it was stopped. */
static bool make(struct checkpoint_round *round, struct spaces *const *spaces)
{
    struct data *data = round->data;
    uint64_t began_us = clock_monotonic_us();

    data->figures.checkpoint_running = !round->dumps_only;
    bool done = checkpoint_round(round, spaces);

    data->figures.checkpoint_running = false;
    if (done) {
        note_success(data, round, began_us);
    } else if (round->error[0] != '\0' && round->dumps_only) {
        data->figures.dump_failures++;
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
    uint64_t behind = data_head(data) - data->figures.checkpoint_lsn;

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

/* Returns whether an engine wants a round for its dumps. */
static bool wants_dumps(const struct checkpoint *checkpoint)
{
    bool wanted = false;

    barrier_enter(checkpoint->member);
    const struct spaces *spaces = *checkpoint->spaces;

    for (size_t i = 0; i < spaces->count && !wanted; i++) {
        const struct engine *engine = spaces->at[i]->engine;

        wanted = data_stores(&spaces->at[i]->settings) && row_images_wanted(engine->row);
    }
    barrier_leave(checkpoint->member);
    return wanted;
}

/* A space without a state has had no checkpoint: its files could not be loaded without one. */
static bool all_have_states(struct data *data)
{
    bool all = true;

    pthread_mutex_lock(&data->lock);
    for (size_t i = 0; i < data->manifest->spaces_count; i++) {
        all = all && manifest_find_data(&data->manifest->spaces[i], DATA_LABEL_STATE) != NULL;
    }
    pthread_mutex_unlock(&data->lock);
    return all;
}

/*
 * A full disk has room after a checkpoint, as older segments go; a disk that has room again gives
 * it to a checkpoint first. So a checkpoint is tried at once in both cases. A disk that is full
 * after one would be full again in a moment, so that is not noted for a while.
 */
static void look_at_room(struct checkpoint *checkpoint, uint64_t now_us)
{
    enum journal_room room = journal_room(checkpoint->data->journal);

    if (room == JOURNAL_ROOM_NONE && checkpoint->round_us > 0 &&
        now_us < checkpoint->round_us + AGAIN_US) {
        return;
    }
    if (room != checkpoint->room && room != JOURNAL_ROOM) {
        checkpoint->data->asked = true;
    }
    checkpoint->room = room;
}

/* A round of all makes dumps, too. Nothing is locked: an engine may notify within a stop. */
static enum work checkpoint_look(struct checkpoint *checkpoint)
{
    struct data *data = checkpoint->data;
    uint64_t now_us = data->vfs->functions->now_us(data->vfs);

    if (!data_may_store(data)) {
        return WORK_NONE;
    }
    look_at_room(checkpoint, now_us);
    bool all = data->asked || is_due(checkpoint, now_us);

    data->dumps_asked = false; /* what is asked for from here on is looked at again */
    if (now_us >= checkpoint->dump_again_us && !(all && checkpoint->dumped) &&
        wants_dumps(checkpoint)) {
        return all_have_states(data) ? WORK_DUMPS : WORK_ALL;
    }
    return all ? WORK_ALL : WORK_NONE;
}

static void checkpoint_run_all(struct checkpoint *checkpoint, struct checkpoint_round *round)
{
    struct data *data = checkpoint->data;
    bool first = checkpoint->again_us == 0;

    data->asked = false;
    checkpoint->last_us = checkpoint->round_us = data->vfs->functions->now_us(data->vfs);
    if (make(round, checkpoint->spaces)) {
        checkpoint->again_us = 0;
        checkpoint->dump_again_us = 0;
        checkpoint->room = JOURNAL_ROOM; /* full once more is full again */
        journal_go_on(data->journal);
    } else if (round->error[0] != '\0') {
        checkpoint->again_us = data->vfs->functions->now_us(data->vfs) + AGAIN_US;
        checkpoint->dump_again_us = checkpoint->again_us;
        if (first) {
            log_error("checkpoint: %s; the one before holds, and it is tried again", round->error);
        }
    }
}

static void run_dumps(struct checkpoint *checkpoint, struct checkpoint_round *round)
{
    struct data *data = checkpoint->data;
    bool first = !checkpoint->dump_failed;

    round->dumps_only = true;
    checkpoint->dump_failed = !make(round, checkpoint->spaces) && round->error[0] != '\0';
    if (checkpoint->dump_failed || round->images == 0) { /* 0: wanted, but not to be had yet */
        uint64_t wait_us = checkpoint->dump_failed ? AGAIN_US : LOOK_MS * 1000;

        checkpoint->dump_again_us = data->vfs->functions->now_us(data->vfs) + wait_us;
    }
    if (checkpoint->dump_failed && first) {
        log_error("a table cannot leave memory: %s; it is tried again", round->error);
    }
}

static void run_one(struct checkpoint *checkpoint, enum work work)
{
    struct checkpoint_round round = {.data = checkpoint->data,
                                     .barrier = checkpoint->barrier,
                                     .member = checkpoint->member,
                                     .stop = &checkpoint->ending};

    checkpoint->dumped = work == WORK_DUMPS;
    if (work == WORK_DUMPS) {
        run_dumps(checkpoint, &round);
    } else {
        checkpoint_run_all(checkpoint, &round);
    }
}

static void wait_a_while(struct checkpoint *checkpoint)
{
    struct data *data = checkpoint->data;
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&data->bell_lock);
    if (!data->asked && !data->dumps_asked && !checkpoint->ending) {
        pthread_cond_timedwait(&data->bell, &data->bell_lock, &until);
    }
    pthread_mutex_unlock(&data->bell_lock);
}

static void *checkpoint_run(void *context)
{
    struct checkpoint *checkpoint = context;

    while (!checkpoint->ending) {
        data_note_disk(checkpoint->data);
        enum work work = checkpoint_look(checkpoint);

        if (work == WORK_NONE) {
            wait_a_while(checkpoint);
        } else {
            run_one(checkpoint, work);
        }
    }
    return NULL;
}

static void checkpoint_destroy(struct checkpoint *checkpoint)
{
    barrier_resign(checkpoint->member);
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
    data->asked = false;
    checkpoint->member = barrier_join(barrier);
    if (checkpoint->member == NULL ||
        !thread_start(&checkpoint->thread, checkpoint_run, checkpoint, "checkpoint")) {
        checkpoint_destroy(checkpoint);
        return false;
    }
    data->checkpoint = checkpoint;
    journal_keep_room(data->journal);
    return true;
}

void data_checkpoint(struct data *data)
{
    pthread_mutex_lock(&data->bell_lock);
    data->asked = true;
    pthread_cond_signal(&data->bell);
    pthread_mutex_unlock(&data->bell_lock);
}

void checkpoint_end(struct data *data)
{
    struct checkpoint *checkpoint = data->checkpoint;

    if (checkpoint == NULL) {
        return;
    }
    pthread_mutex_lock(&data->bell_lock);
    checkpoint->ending = true;
    pthread_cond_signal(&data->bell);
    pthread_mutex_unlock(&data->bell_lock);
    pthread_join(checkpoint->thread, NULL);
    data->checkpoint = NULL;
    checkpoint_destroy(checkpoint);
}

void data_stop(struct data *data)
{
    follow_end(data);
    checkpoint_end(data);
    if (data->engine_cold.cold != NULL) {
        cold_stop(data->engine_cold.cold);
    }
}
