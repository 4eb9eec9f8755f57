/*
 * promote.c: a directory that followed goes on by itself: what a start does at its end is done
 * here, with requests going on.
 *
 * Once the record of the new epoch is on the disk there is no way back. So all that can be refused
 * is asked before, and afterwards only the journal can fail, as at any start.
 */
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/wait.h"
#include "data/follow_private.h"

#define STEP_US 1000u    /* from one look at the applier to the next */
#define ROOM_US 1000000u /* from one look at the disk to the next */
/* A look makes a file where the disk has less than this beyond what it needs; else seldom, for what
 * the file system's figures leave out: a quota. */
#define PLENTY_BYTES  (64ull << 20)
#define ROOM_TRIED_US 30000000u
/*
 * Starts of a leader count epochs by one, and nobody may have heard of the last ones: promotions by
 * hand take the next multiple of this, or two would reign under one epoch.
 */
#define EPOCH_STEP    1000u
#define RECORDS_BYTES (2 * CHANGE_EVENTS_BYTES_MAX) /* with which a reign and its spaces begin */

/* Waits until all that was taken is carried out. False: that takes too long. If nothing was taken,
 * it begins a stream. */
static bool promote_catch_up(struct data *data, uint64_t until_us, char error[DATA_ERROR_MAX])
{
    char why[DATA_ERROR_MAX];

    while (data_applied(data) < journal_head(data->journal) || atomic_load(&data->follow->failed)) {
        data_follow_trouble(data, why);
        if (why[0] != '\0') {
            return data_refuse(error, "what was received is not carried out: %.*s",
                               DATA_ERROR_MAX - 64, why);
        }
        if (clock_monotonic_us() >= until_us) {
            return data_refuse(
                error, "%llu bytes of what was received are not carried out yet: try again",
                (unsigned long long)(journal_head(data->journal) - data_applied(data)));
        }
        wait_us(STEP_US);
    }
    return data_readable(data) || journal_head(data->journal) == 0 ||
           data_refuse(error, "what is here is not of one moment of the leader: its copy came, and "
                              "of its journal too little");
}

/* Returns whether nothing that comes next will lack room. A journal that has failed is not full:
 * that it cannot begin a reign ends the daemon, and the next start opens it anew. */
static bool promote_has_room(struct data *data, char error[DATA_ERROR_MAX])
{
    struct journal_writer writer;

    journal_writer_init(&writer, data->journal);
    bool has =
        data_has_room(data, false, error) &&
        ((journal_sync_now(data->journal) && journal_reserve(&writer, RECORDS_BYTES)) ||
         data_refuse(error, "%s: the journal has no room: make some on the disk", data->directory));

    journal_writer_fini(&writer);
    return has || journal_failed(data->journal);
}

/* Returns whether the disk has so much that no file needs to be made to know, and did have room. */
static bool promote_has_plenty(const struct data *data, uint64_t now_us)
{
    const struct follow *follow = data->follow;
    uint64_t least = PLENTY_BYTES + journal_start_bytes(data->segment_bytes, data->buffer_bytes);
    uint64_t all;

    return follow->tried_us != 0 && now_us < follow->tried_us + ROOM_TRIED_US &&
           atomic_load(&follow->has_room) && journal_room(data->journal) == JOURNAL_ROOM &&
           data->vfs->functions->free_bytes(data->vfs, data->directory, &all) >= least;
}

/* The file that is made for it takes room from nobody for longer than a moment. */
void promote_look(struct data *data)
{
    struct follow *follow = data->follow;
    uint64_t now_us = clock_monotonic_us();
    char error[DATA_ERROR_MAX];

    if (follow->room_us != 0 && now_us < follow->room_us + ROOM_US) {
        return;
    }
    follow->room_us = now_us;
    if (promote_has_plenty(data, now_us)) {
        return;
    }
    follow->tried_us = now_us;
    atomic_store(&follow->has_room, data_has_room(data, false, error));
}

bool data_can_lead(struct data *data)
{
    char why[DATA_ERROR_MAX];

    data_follow_trouble(data, why);
    return why[0] == '\0' && atomic_load(&data->follow->has_room) && !journal_failed(data->journal);
}

/* The epoch's line is in the manifest before the journal has its record: as at a start. So is the
 * stream's new name: a node that is killed in between follows nobody (another stream), and is to be
 * promoted once more. */
static bool promote_begin_reign(struct data *data, uint64_t epoch, bool new_stream,
                                char error[DATA_ERROR_MAX])
{
    struct recovery *recovery = &data->follow->recovery;
    struct journal_reign reign = {.unix_s = clock_wall_s()};

    recovery->error = error;
    if (!journal_stop_following(data->journal)) {
        return data_refuse(error, "%s: the journal cannot be written", data->directory);
    }
    recovery->scan.end = journal_head(data->journal);
    pthread_mutex_lock(&data->lock);
    if (epoch == 0) {
        epoch = (data->manifest->epoch / EPOCH_STEP + 1) * EPOCH_STEP;
    }
    if (epoch > data->manifest->epoch + 1) {
        data->manifest->epoch = epoch - 1;
    }
    if (new_stream) {
        data_name_stream(data->manifest);
    }
    bool named = recovery_begin_reign(recovery) && recovery_store_manifest(recovery);

    reign.epoch = data->manifest->epoch;
    pthread_mutex_unlock(&data->lock);
    if (!named) {
        return false;
    }
    if (!journal_begin_reign(data->journal, &reign) || !journal_sync_now(data->journal)) {
        return data_refuse(error, "%s: the journal cannot be written", data->directory);
    }
    CHECK(reign.lsn == recovery->scan.end);
    atomic_store(&data->reign, reign.epoch);
    return true;
}

/* Each space in a stop of its own: between them the log finds room again. */
static bool promote_spaces(struct data *data, struct barrier *barrier, char error[DATA_ERROR_MAX])
{
    struct recovery *recovery = &data->follow->recovery;
    bool begun = true;

    for (size_t i = 0; i < recovery->count && begun; i++) {
        barrier_stop(barrier);
        begun = recovery_begin_space(recovery, recovery->spaces[i]);
        barrier_go(barrier);
        if (!journal_log_commit(&data->log)) {
            begun = data_refuse(error, "%s: the journal cannot be written", data->directory);
        }
    }
    return begun;
}

/* A reload publishes other spaces in a stop, and frees these after it. */
static struct keeper *promote_keeper(const struct follow *follow)
{
    barrier_stop(follow->barrier);
    const struct spaces *spaces = *follow->spaces;
    struct keeper *keeper = spaces->count > 0 ? spaces->at[0]->job.keeper : NULL;

    barrier_go(follow->barrier);
    return keeper;
}

/* Promotes, in the keeper's bracket. REFUSED: nothing was changed. */
static enum data_promoted promote_now(struct data *data, uint64_t epoch, bool new_stream,
                                      char error[DATA_ERROR_MAX])
{
    struct recovery *recovery = &data->follow->recovery;

    recovery->error = error;
    if (!recovery_check_losses(recovery) || !promote_has_room(data, error)) {
        return DATA_PROMOTE_REFUSED;
    }
    if (!promote_begin_reign(data, epoch, new_stream, error)) {
        return DATA_PROMOTE_FAILED;
    }
    for (size_t i = 0; i < data->manifest->spaces_count; i++) {
        const struct manifest_space *space = &data->manifest->spaces[i];

        journal_log_name(&data->log, (uint32_t)space->number, space->name, space->kind);
    }
    atomic_store(&data->follow->over, true);
    return promote_spaces(data, data->follow->barrier, error) ? DATA_PROMOTED : DATA_PROMOTE_FAILED;
}

/* Rounds of images begin again, and if it was refused the applier. */
static bool promote_go_on(struct data *data, char error[DATA_ERROR_MAX])
{
    struct follow *follow = data->follow;
    bool started = data_start(data, follow->barrier, follow->spaces) &&
                   (!data_follows(data) || data_follow(data, follow->barrier, follow->spaces,
                                                       follow->moved, follow->context));

    return started || data_refuse(error, "a thread cannot be started");
}

enum data_promoted data_promote(struct data *data, uint64_t epoch, bool new_stream,
                                uint64_t until_us, char error[DATA_ERROR_MAX])
{
    struct follow *follow = data->follow;
    struct keeper *keeper = promote_keeper(follow);

    error[0] = '\0';
    if (!promote_catch_up(data, until_us, error)) {
        return DATA_PROMOTE_REFUSED;
    }
    follow_end(data);
    checkpoint_end(data);
    if (keeper != NULL) {
        keeper_stop(keeper);
    }
    follow_see_spaces(follow);
    enum data_promoted promoted = promote_now(data, epoch, new_stream, error);

    if (keeper != NULL) {
        keeper_go(keeper, NULL);
    }
    if (promoted != DATA_PROMOTE_FAILED && !promote_go_on(data, error)) {
        promoted = DATA_PROMOTE_FAILED;
    }
    return promoted;
}

uint64_t data_reign_lsn(struct data *data)
{
    pthread_mutex_lock(&data->lock);
    size_t count = data->manifest->history_count;
    uint64_t lsn = count > 0 ? data->manifest->history[count - 1].lsn : 0;

    pthread_mutex_unlock(&data->lock);
    return lsn;
}
