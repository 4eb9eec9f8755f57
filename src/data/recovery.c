/* recovery.c: from a directory to a running journal: the order of things is at the top of data.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/follow_private.h"
#include "data/forget.h"
#include "row/row_follow.h"

/* ---- who takes part ---- */

void recovery_add_space(struct recovery *recovery, struct space *space)
{
    struct recovery_space *add = memory_zalloc(sizeof(*add));

    CHECK(space->engine->row != NULL);
    add->space = space;
    data_attach(recovery->data, space->engine);
    add->known = manifest_find_space(recovery->data->manifest, space->name);
    add->begun = add->known != NULL;
    if (add->begun) {
        add->c = data_label(add->known, DATA_LABEL_C, 0);
        add->m = data_label(add->known, DATA_LABEL_M, 0);
        space->engine->space = (uint32_t)add->known->number;
        recovery->by_number[add->known->number] = add;
        if (add->m > recovery->needed_lsn) {
            recovery->needed_lsn = add->m;
        }
    }
    recovery->spaces[recovery->count++] = add;
}

static void init(struct recovery *recovery, struct spaces *spaces)
{
    recovery->begun_us = clock_monotonic_us();
    recovery->told_us = recovery->begun_us;
    recovery->logged_us = recovery->begun_us;
    for (size_t i = 0; i < spaces->count; i++) {
        if (data_stores(&spaces->at[i]->settings)) {
            recovery_add_space(recovery, spaces->at[i]);
        }
    }
}

void recovery_fini(struct recovery *recovery)
{
    for (size_t i = 0; i < recovery->count; i++) {
        free(recovery->spaces[i]);
    }
    free(recovery->reigns);
}

/* ---- the manifest of this start ---- */

static bool ended_cleanly(const struct recovery *recovery)
{
    return recovery->data->manifest->clean_stop && recovery->scan_end == JOURNAL_SCAN_CLEAN &&
           recovery->data->figures.recovered_records == 0;
}

bool recovery_store_manifest(struct recovery *recovery)
{
    struct data *data = recovery->data;
    struct manifest *manifest = data->manifest;
    uint32_t number;

    manifest->clean_stop = false;
    for (size_t i = 0; i < recovery->count; i++) {
        struct space *space = recovery->spaces[i]->space;

        if (!data_give_number(data, space->name, space->engine->functions->kind, &number,
                              recovery->error)) {
            return false;
        }
        space->engine->space = number;
    }
    if (!data_store(data, recovery->error)) {
        return false;
    }
    data_sweep(data);
    return true;
}

/* ---- the journal ---- */

static bool open_journal(struct recovery *recovery)
{
    struct data *data = recovery->data;
    const struct journal_config config = {
        .vfs = data->vfs,
        .directory = data->directory,
        .segment_bytes = data->segment_bytes,
        .buffer_bytes = data->buffer_bytes,
        .sync = data->sync,
        .epoch = data->manifest->epoch,
        .start_lsn = recovery->scan.end,
        .sum = recovery->scan.sum,
        .follows = recovery->follows,
    };
    char why[JOURNAL_ERROR_MAX];

    data->journal = journal_open(&config, why);
    if (data->journal == NULL) {
        return data_refuse(recovery->error, "%s", why);
    }
    journal_log_init(&data->log, data->journal);
    for (size_t i = 0; i < data->manifest->spaces_count; i++) {
        const struct manifest_space *space = &data->manifest->spaces[i];

        journal_log_name(&data->log, (uint32_t)space->number, space->name, space->kind);
    }
    return recovery_put_reign(recovery);
}

static bool refuse_room(const struct recovery *recovery)
{
    return data_refuse(recovery->error, "%s: the journal has no room to begin with",
                       recovery->data->directory);
}

/* Makes the configuration the one of now: it may have changed since. */
bool recovery_begin_space(struct recovery *recovery, const struct recovery_space *begun)
{
    struct space *space = begun->space;
    struct engine *engine = space->engine;
    struct change_log *log = &recovery->data->log.log;
    char why[SPACES_ERROR_MAX];

    row_set_log(engine->row, log);
    if (!log->reserve(log)) {
        return refuse_room(recovery);
    }
    if (!begun->begun || !row_restore_end(engine->row)) {
        row_log_begin(engine->row);
        return true;
    }
    if (!log->reserve(log)) {
        return refuse_room(recovery);
    }
    return space_reconfigure(space, &space->settings, why) ||
           data_refuse(recovery->error, "%s", why);
}

static bool recovery_begin_spaces(struct recovery *recovery)
{
    for (size_t i = 0; i < recovery->count; i++) {
        if (!recovery_begin_space(recovery, recovery->spaces[i])) {
            return false;
        }
        if (!journal_log_commit(&recovery->data->log)) {
            return data_refuse(recovery->error, "%s: the journal cannot be written",
                               recovery->data->directory);
        }
    }
    return true;
}

/* Asked before anything is written. */
bool recovery_check_losses(struct recovery *recovery)
{
    char why[SPACES_ERROR_MAX];

    for (size_t i = 0; i < recovery->count; i++) {
        const struct space *space = recovery->spaces[i]->space;

        if (recovery->spaces[i]->begun && !forget_allowed(space, &space->settings, why)) {
            return data_refuse(recovery->error, "%s", why);
        }
    }
    return true;
}

/* ---- one that follows ---- */

/* What the other node has begun goes on; nothing else begins. */
static bool recovery_follow(struct recovery *recovery)
{
    struct data *data = recovery->data;

    data->manifest->clean_stop = false;
    if (!recovery_history(recovery) || !data_store(data, recovery->error)) {
        return false;
    }
    data_sweep(data);
    for (size_t i = 0; i < recovery->count; i++) {
        struct recovery_space *space = recovery->spaces[i];

        space->known = NULL; /* the manifest is replaced as it goes on */
        if (space->begun) {
            row_follow_begin(space->space->engine->row);
        }
    }
    recovery->live = true;
    follow_slots_begin(data);
    data->follow->readable_lsn = recovery->parted ? UINT64_MAX : recovery->needed_lsn;
    atomic_store(&data->follow->applied, recovery->scan.end);
    return open_journal(recovery);
}

/* ---- the whole ---- */

static bool recovery_lead(struct recovery *recovery)
{
    return recovery_check_losses(recovery) && recovery_history(recovery) &&
           (ended_cleanly(recovery) || recovery_begin_reign(recovery)) &&
           recovery_store_manifest(recovery) && open_journal(recovery) &&
           recovery_begin_spaces(recovery);
}

static bool recovery_run(struct recovery *recovery)
{
    return recovery_tables(recovery) && !*recovery->stop && recovery_replay(recovery) &&
           !*recovery->stop &&
           (recovery->follows ? recovery_follow(recovery) : recovery_lead(recovery));
}

bool data_recover(struct data *data, struct spaces *spaces, const _Atomic bool *stop,
                  char error[DATA_ERROR_MAX])
{
    struct recovery own = {.count = 0};
    struct recovery *recovery = data->follow != NULL ? &data->follow->recovery : &own;

    CHECK(data->journal == NULL);
    recovery->data = data;
    recovery->stop = stop;
    recovery->error = error;
    recovery->follows = data->follow != NULL;
    if (recovery->follows) {
        data->cold_config.first = follow_pages_ticket(data);
    }
    error[0] = '\0';
    pthread_mutex_lock(&data->lock);
    bool recovered = data_cold_create(data, error);

    if (recovered) {
        init(recovery, spaces);
        recovered = recovery_run(recovery);
    }

    pthread_mutex_unlock(&data->lock);
    if (recovered) {
        struct data_position position;

        data_position(data, &position);
        atomic_store(&data->reign, position.epoch);
        data_count_files(data);
        data_note_disk(data);
        data->figures.recovery_us = clock_monotonic_us() - recovery->begun_us;
    }
    if (data->follow == NULL) {
        recovery_fini(recovery);
    }
    return recovered;
}
