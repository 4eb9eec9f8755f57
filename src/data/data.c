/* data.c: the data directory of a running server: numbers, figures, the end. */
#include "data/data.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "data/data_private.h"
#include "data/follow.h"

#define NOTE_DISK_US 1000000u

/* ---- numbers ---- */

bool data_number(struct data *data, const char *space, const char *kind, uint32_t *number,
                 char error[DATA_ERROR_MAX])
{
    pthread_mutex_lock(&data->lock);
    bool known = manifest_find_space(data->manifest, space) != NULL;
    bool given = data_give_number(data, space, kind, number, error);

    if (given && !known && data->journal != NULL) {
        journal_log_name(&data->log, *number, space, kind);
        given = data_store(data, error);
    }
    pthread_mutex_unlock(&data->lock);
    if (!given && !known) {
        data_number_undo(data, space);
    }
    return given;
}

/* A manifest without one space. It has begun with nothing: no files are named for it. */
static struct manifest *without(const struct manifest *manifest, const char *space)
{
    struct manifest *copy = manifest_create();

    manifest_copy_head(copy, manifest);
    copy->clean_stop = manifest->clean_stop;
    for (size_t i = 0; i < manifest->spaces_count; i++) {
        const struct manifest_space *from = &manifest->spaces[i];

        if (strcmp(from->name, space) == 0) {
            continue;
        }
        struct manifest_space *to = data_copy_space(copy, from);

        CHECK(to != NULL);
        for (size_t k = 0; k < from->files_count; k++) {
            CHECK(manifest_add_file(copy, to, &from->files[k]));
        }
    }
    return copy;
}

void data_number_undo(struct data *data, const char *space)
{
    char error[DATA_ERROR_MAX];

    pthread_mutex_lock(&data->lock);
    const struct manifest_space *given = manifest_find_space(data->manifest, space);

    if (given != NULL) {
        CHECK(given->files_count == 0 && given->data_count == 0);
        struct manifest *fewer = without(data->manifest, space);

        manifest_destroy(data->manifest);
        data->manifest = fewer;
        if (data->journal != NULL && !data_store(data, error)) {
            log_warning("%s", error); /* the next checkpoint stores it */
        }
    }
    pthread_mutex_unlock(&data->lock);
}

/* ---- while it runs ---- */

size_t data_history(struct data *data, uint64_t stream[MANIFEST_STREAM_WORDS],
                    struct manifest_reign reigns[MANIFEST_HISTORY_MAX])
{
    pthread_mutex_lock(&data->lock);
    const struct manifest *manifest = data->manifest;
    size_t count = manifest->history_count;

    memcpy(stream, manifest->stream, sizeof(manifest->stream));
    memcpy(reigns, manifest->history, count * sizeof(*reigns));
    pthread_mutex_unlock(&data->lock);
    return count;
}

struct vfs *data_vfs(const struct data *data)
{
    return data->vfs;
}

uint64_t data_identity(const struct data *data)
{
    return data->identity;
}

struct journal *data_journal(struct data *data)
{
    return data->journal;
}

struct journal_log *data_log(struct data *data)
{
    return data->journal != NULL ? &data->log : NULL;
}

bool data_log_room(struct data *data, size_t events)
{
    return journal_log_room(&data->log, events);
}

void data_reconfigure(struct data *data, const struct settings *settings)
{
    data->checkpoint_every_ms = settings->checkpoint.every_ms;
    data->checkpoint_journal_bytes = settings->checkpoint.journal_bytes;
    data->keep_bytes = settings->replication.name != NULL ? settings->replication.keep_bytes : 0;
}

void data_stats(const struct data *data, struct data_stats *stats)
{
    const struct data_figures *from = &data->figures;

    *stats = (struct data_stats){
        .load_done_bytes = from->load_done_bytes,
        .load_total_bytes = from->load_total_bytes,
        .checkpoints = from->checkpoints,
        .checkpoint_failures = from->checkpoint_failures,
        .last_checkpoint_s = from->last_checkpoint_s,
        .last_checkpoint_us = from->last_checkpoint_us,
        .checkpoint_lsn = from->checkpoint_lsn,
        .checkpoint_running = from->checkpoint_running,
        .images = from->images,
        .image_bytes = from->image_bytes,
        .table_files = from->table_files,
        .table_file_bytes = from->table_file_bytes,
        .recovery_us = from->recovery_us,
        .recovered_records = from->recovered_records,
        .cut_bytes = from->cut_bytes,
        .dumps = from->dumps,
        .merges = from->merges,
        .dump_failures = from->dump_failures,
        .dump_files = from->dump_files,
        .dump_file_bytes = from->dump_file_bytes,
        .disk_bytes = from->disk_bytes,
        .disk_free_bytes = from->disk_free_bytes,
    };
}

void data_note_disk(struct data *data)
{
    uint64_t now_us = data->vfs->functions->now_us(data->vfs), all = 0;

    if (data->noted_us != 0 && now_us < data->noted_us + NOTE_DISK_US) {
        return;
    }
    data->noted_us = now_us;
    data->figures.disk_free_bytes =
        data->vfs->functions->free_bytes(data->vfs, data->directory, &all);
    data->figures.disk_bytes = all;
}

/* ---- the end ---- */

/* True if all that was ever put is on the disk for sure. */
static bool close_journal(struct data *data)
{
    struct journal_stats stats;
    bool sound = journal_log_commit(&data->log);

    journal_log_fini(&data->log);
    sound = journal_sync_now(data->journal) && sound;
    journal_stats(data->journal, &stats);
    if (!sound || stats.failed) {
        log_error("journal: %s", stats.error[0] != '\0' ? stats.error : "cannot be synced");
        sound = false;
    }
    journal_close(data->journal);
    data->journal = NULL;
    return sound;
}

static bool end_cleanly(struct data *data, const struct spaces *spaces)
{
    char error[DATA_ERROR_MAX];
    bool whole = !data_may_store(data) || checkpoint_last(data, spaces);

    if (!close_journal(data) || !whole) {
        return false;
    }
    pthread_mutex_lock(&data->lock);
    data->manifest->clean_stop = !data_follows(data); /* who followed begins a reign to lead */
    whole = data_store(data, error);
    pthread_mutex_unlock(&data->lock);
    if (!whole) {
        log_error("%s", error);
    }
    return whole;
}

bool data_close(struct data *data, struct spaces *spaces, bool clean)
{
    bool ended = true;

    if (data == NULL) {
        return true;
    }
    CHECK(data->checkpoint == NULL);
    if (data->journal != NULL && clean) {
        ended = end_cleanly(data, spaces);
    } else if (data->journal != NULL) {
        ended = close_journal(data);
    }
    return ended;
}

void data_destroy(struct data *data)
{
    if (data == NULL) {
        return;
    }
    CHECK(data->checkpoint == NULL && data->journal == NULL && data->pins == NULL);
    checkpoint_pending_drop(data);
    free(data->kept);
    follow_destroy(data);
    cold_destroy(data->engine_cold.cold);
    open_files_destroy(data->files);
    dir_lock_give(&data->dir_lock);
    manifest_destroy(data->manifest);
    pthread_mutex_destroy(&data->lock);
    pthread_cond_destroy(&data->bell);
    pthread_mutex_destroy(&data->bell_lock);
    free(data->directory);
    free(data);
}
