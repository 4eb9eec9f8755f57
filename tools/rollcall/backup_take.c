/*
 * backup_take.c: opens what belongs together. First the segments of the journal, so that what the
 * manifest needs is there still when that is read; then the manifest, the files it names, and the
 * segments that came meanwhile. A checkpoint between may have deleted some of the files, and then a
 * newer manifest is there. Once all are open they stay, whatever is deleted.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/point.h"
#include "store/vfs.h"
#include "tools/rollcall/backup_private.h"
#include "tools/rollcall/verify.h"

#define TAKES_MAX 1000 /* one right after the other: each needs a checkpoint in between */

void backup_let_go(struct backup_set *set)
{
    for (size_t i = 0; i < set->table_count; i++) {
        copy_unpin(&set->tables[i]);
    }
    backup_journal_close(set);
    free(set->tables);
    manifest_destroy(set->manifest);
    free(set->manifest_text);
    *set = (struct backup_set){.manifest = NULL};
}

static bool take_fail(struct copy *copy, const char *what)
{
    return fail_with(copy->error, sizeof(copy->error), "%.400s: %.500s", copy->from, what);
}

static bool take_manifest(struct copy *copy, struct backup_set *set)
{
    char path[VFS_PATH_MAX];
    char why[MANIFEST_ERROR_MAX];

    if (!vfs_path(path, copy->from, MANIFEST_NAME)) {
        return take_fail(copy, strerror(errno));
    }
    set->manifest_text = vfs_read_file(vfs_real(), path, MANIFEST_BYTES_MAX, &set->manifest_length);
    if (set->manifest_text == NULL) {
        return take_fail(copy, errno == ENOENT ? "no MANIFEST is there: no data directory"
                                               : strerror(errno));
    }
    if (manifest_parse(set->manifest_text, set->manifest_length, path, &set->manifest, why) !=
        MANIFEST_SOUND) {
        return take_fail(copy, why);
    }
    return true;
}

static enum backup_found open_tables(struct copy *copy, struct backup_set *set)
{
    size_t count = manifest_count_files(set->manifest);
    struct manifest_at at = {0};
    const struct manifest_file *file;

    if (!copy_allow_files(copy, count)) {
        return BACKUP_FAILED;
    }
    set->tables = memory_zalloc((count + 1) * sizeof(*set->tables));
    while ((file = manifest_next_file(set->manifest, &at)) != NULL) {
        switch (copy_pin(copy, file->name, &set->tables[set->table_count])) {
        case COPY_ABSENT:
            snprintf(copy->error, sizeof(copy->error), "%.400s/%.200s: it is missing", copy->from,
                     file->name);
            return BACKUP_AGAIN;
        case COPY_FAILED:
            return BACKUP_FAILED;
        default:
            set->table_count++;
        }
    }
    return BACKUP_FOUND;
}

static enum backup_found take_once(struct copy *copy, struct backup_set *set)
{
    if (!backup_journal_hold(copy, set) || !take_manifest(copy, set)) {
        return BACKUP_FAILED;
    }
    POINT(BACKUP_POINT_MANIFEST);
    enum backup_found found = open_tables(copy, set);

    if (found != BACKUP_FOUND) {
        return found;
    }
    found = backup_journal_open(copy, set, set->manifest->journal_lsn);
    if (found == BACKUP_AGAIN) {
        (void)take_fail(copy, "the journal does not reach back to the manifest");
    }
    return found;
}

bool backup_take(struct copy *copy, struct backup_set *set)
{
    enum backup_found found = BACKUP_AGAIN;

    *set = (struct backup_set){.manifest = NULL};
    for (unsigned i = 0; i < TAKES_MAX && found == BACKUP_AGAIN; i++) {
        backup_let_go(set);
        found = take_once(copy, set);
    }
    return found == BACKUP_FOUND;
}

uint64_t backup_bytes(const struct backup_set *set)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < set->table_count; i++) {
        bytes += set->tables[i].bytes;
    }
    for (size_t i = 0; i < set->segment_count; i++) {
        bytes += set->segments[i].pin.bytes;
    }
    return bytes;
}

bool backup_copy_tables(struct copy *copy, const struct backup_set *set)
{
    for (size_t i = 0; i < set->table_count; i++) {
        if (!copy_file(copy, &set->tables[i], true)) {
            return false;
        }
        progress_tell(&copy->progress, copy->done, copy->whole, NULL);
    }
    return true;
}

/* ---- what is left over ---- */

static bool is_of(const struct backup_set *set, const char *name)
{
    for (size_t i = 0; i < set->segment_count; i++) {
        if (strcmp(set->segments[i].pin.name, name) == 0) {
            return true;
        }
    }
    return manifest_find_file(set->manifest, name) != NULL;
}

/* A name only a daemon, or a copy, gives. */
static bool is_left_over(const struct backup_set *set, const char *name)
{
    uint64_t start;
    bool ours = manifest_name_ours(name) || journal_name_parse(name, &start) ||
                verb_ends_with(name, COPY_PART);

    return ours && strcmp(name, MANIFEST_NAME) != 0 && !is_of(set, name);
}

bool backup_sweep(struct copy *copy, const struct backup_set *set)
{
    DIR *directory = opendir(copy->to);
    bool good = directory != NULL;

    for (struct dirent *entry; good && (entry = readdir(directory)) != NULL;) {
        if (is_left_over(set, entry->d_name)) {
            good = copy_remove(copy, entry->d_name);
        }
    }
    if (directory == NULL) {
        return copy_fail(copy, NULL, strerror(errno));
    }
    closedir(directory);
    return good;
}

/* ---- judging ---- */

bool backup_verify(const struct copy *copy, bool quiet)
{
    const struct verify_options options = {
        .directory = copy->to, .quiet = true, .progress = !quiet && copy->progress.terminal};

    return verify_locked(vfs_real(), &options, stderr, stderr) == VERB_SOUND;
}
