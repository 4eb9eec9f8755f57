/*
 * recovery_history.c: who reigned since when. The manifest names a reign before the journal has its
 * record, so of the two the manifest is ahead, unless it is of an older copy.
 */
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "data/recovery_private.h"

bool recovery_take_reign(void *context, const struct journal_reign *reign)
{
    struct recovery *recovery = context;

    if (recovery_replay_is_cut(recovery, reign->lsn)) {
        return false;
    }
    recovery->reigns = array_room(recovery->reigns, recovery->reign_count, &recovery->reign_room,
                                  sizeof(*recovery->reigns));
    recovery->reigns[recovery->reign_count++] = *reign;
    return true;
}

static bool refuse_reign(struct recovery *recovery, const struct journal_reign *reign)
{
    return data_refuse(recovery->error,
                       "%s: journal record at %llu: epoch %llu begins there, and the history in "
                       "%s/" MANIFEST_NAME " says otherwise: the two are not of one directory",
                       recovery->data->directory, (unsigned long long)reign->lsn,
                       (unsigned long long)reign->epoch, recovery->data->directory);
}

/* The journal's record of it; NULL: it has none. */
static const struct journal_reign *record_of(const struct recovery *recovery,
                                             const struct manifest_reign *line)
{
    for (size_t i = 0; i < recovery->reign_count; i++) {
        if (recovery->reigns[i].lsn == line->lsn) {
            return &recovery->reigns[i];
        }
    }
    return NULL;
}

/*
 * Takes the manifest's line of a reign. A reign that began where the journal ends, or above, has no
 * record that counts. A record that should be there and is not was lost in a gap that was mended,
 * and its reign began all the same.
 */
static bool take_line(struct recovery *recovery, const struct manifest_reign *line)
{
    struct manifest *manifest = recovery->data->manifest;
    const struct journal_reign *record = record_of(recovery, line);

    if (line->lsn >= recovery->scan.end) {
        return true;
    }
    if (record != NULL && record->epoch != line->epoch) {
        return refuse_reign(recovery, record);
    }
    if (record == NULL && line->lsn >= manifest->journal_lsn) {
        log_warning("the journal lacks the record with which a reign began epoch=%llu lsn=%llu",
                    (unsigned long long)line->epoch, (unsigned long long)line->lsn);
    }
    return manifest_add_reign(manifest, line->epoch, line->lsn);
}

bool recovery_parts(const struct recovery *recovery, uint64_t epoch, uint64_t lsn)
{
    return recovery->follows && lsn < recovery->needed_lsn &&
           epoch > recovery->data->manifest->epoch;
}

/* Takes the journal's record of a reign, which the manifest has, or is too old to have. One below
 * what tables hold does not count: the leader then says that this node is to go back. */
static bool take_begun(struct recovery *recovery, const struct journal_reign *record)
{
    struct manifest *manifest = recovery->data->manifest;

    for (size_t i = 0; i < manifest->history_count; i++) {
        if (manifest->history[i].lsn == record->lsn) {
            return true;
        }
    }
    if (recovery_parts(recovery, record->epoch, record->lsn)) {
        recovery->parted = true;
        return true;
    }
    return manifest_add_reign(manifest, record->epoch, record->lsn) ||
           refuse_reign(recovery, record);
}

bool recovery_history(struct recovery *recovery)
{
    struct manifest *manifest = recovery->data->manifest;
    struct manifest_reign lines[MANIFEST_HISTORY_MAX];
    size_t count = manifest->history_count;

    memcpy(lines, manifest->history, count * sizeof(*lines));
    manifest->history_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!take_line(recovery, &lines[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < recovery->reign_count; i++) {
        if (!take_begun(recovery, &recovery->reigns[i])) {
            return false;
        }
    }
    return true;
}

bool recovery_begin_reign(struct recovery *recovery)
{
    struct manifest *manifest = recovery->data->manifest;
    uint64_t seen = recovery->scan.epoch;
    uint64_t epoch = (seen > manifest->epoch ? seen : manifest->epoch) + 1;

    manifest->epoch = epoch;
    recovery->reign_begins = true;
    return manifest_add_reign(manifest, epoch, recovery->scan.end) ||
           data_refuse(recovery->error,
                       "%s/" MANIFEST_NAME ": epoch %llu cannot begin at LSN %llu: the last one "
                       "of its history begins there or above",
                       recovery->data->directory, (unsigned long long)epoch,
                       (unsigned long long)recovery->scan.end);
}

bool recovery_put_reign(struct recovery *recovery)
{
    struct data *data = recovery->data;
    struct journal_reign reign = {.epoch = data->manifest->epoch, .unix_s = clock_wall_s()};

    if (!recovery->reign_begins) {
        return true;
    }
    bool begun = journal_begin_reign(data->journal, &reign) && journal_sync_now(data->journal);

    return (begun && reign.lsn == recovery->scan.end) ||
           data_refuse(recovery->error, "%s: the journal cannot be written", data->directory);
}
