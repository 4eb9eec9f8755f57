/* checkpoint_manifest.c: the manifest of a round, and what goes once it is stored. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/point.h"
#include "data/checkpoint_private.h"

/* ---- files of a space ---- */

/* NULL: it is gone. */
static struct checkpoint_table *checkpoint_manifest_table_of(const struct checkpoint_space *space,
                                                             uint64_t serial, unsigned layer)
{
    size_t low = 0;
    size_t high = space->table_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct checkpoint_table *table = &space->tables[middle];

        if (table->serial == serial && table->layer == layer) {
            return table;
        }
        bool below = table->serial < serial || (table->serial == serial && table->layer < layer);

        low = below ? middle + 1 : low;
        high = below ? high : middle;
    }
    return NULL;
}

/* Names the file of a table that there is; an overlay's only if the one below it is a dump. */
static bool add_file(struct checkpoint_round *round, const struct checkpoint_space *space,
                     const struct manifest_file *file, struct manifest *next,
                     struct manifest_space *to)
{
    struct checkpoint_table *table =
        checkpoint_manifest_table_of(space, file->serial, row_file_layer(file->layer));

    if (table == NULL) {
        return true;
    }
    if (!row_file_is_overlay(file->layer)) {
        table->named = file->role == MANIFEST_DUMP ? CHECKPOINT_NAMED_DUMP : CHECKPOINT_NAMED_IMAGE;
    } else if (table->named != CHECKPOINT_NAMED_DUMP) {
        return true;
    }
    return manifest_add_file(next, to, file) ||
           data_refuse(round->error, "space %s: %s cannot be named", to->name, file->name);
}

static int checkpoint_manifest_by_name(const void *left, const void *right)
{
    const struct manifest_file *const *a = left;
    const struct manifest_file *const *b = right;

    return strcmp((*a)->name, (*b)->name);
}

/* Returns the images of this round in the order of a manifest. The caller frees the list. */
static const struct manifest_file **sort_images(const struct checkpoint_space *space)
{
    const struct manifest_file **files = memory_zalloc((space->image_count + 1) * sizeof(*files));

    for (size_t i = 0; i < space->image_count; i++) {
        files[i] = &space->images[i]->file;
    }
    qsort(files, space->image_count, sizeof(*files), checkpoint_manifest_by_name);
    return files;
}

/* Returns whether an older file is still named: not if this round has an image of the same table,
 * nor an overlay if the round has one of the file below it. */
static bool checkpoint_manifest_holds(const struct checkpoint_space *space,
                                      const struct manifest_file *file)
{
    return checkpoint_find_image(space, file->serial, file->layer) == NULL &&
           checkpoint_find_image(space, file->serial, row_file_under(file->layer)) == NULL;
}

/*
 * Images of this round, and what did not change since an older one. One pass over both in the order
 * of names: each goes to the end of the list, and a table's file comes before its overlay's.
 */
static bool add_both(struct checkpoint_round *round, const struct checkpoint_space *space,
                     const struct manifest_space *before, struct manifest *next,
                     struct manifest_space *to)
{
    const struct manifest_file **images = sort_images(space);
    size_t i = 0;
    size_t k = 0;
    bool added = true;

    while (added && (i < before->files_count || k < space->image_count)) {
        bool older =
            k == space->image_count ||
            (i < before->files_count && strcmp(before->files[i].name, images[k]->name) < 0);
        const struct manifest_file *file = older ? &before->files[i++] : images[k++];

        added = (older && !checkpoint_manifest_holds(space, file)) ||
                add_file(round, space, file, next, to);
    }
    free(images);
    return added;
}

static bool checkpoint_manifest_add_files(struct checkpoint_round *round,
                                          const struct checkpoint_space *space,
                                          const struct manifest_space *before,
                                          struct manifest *next, struct manifest_space *to)
{
    if (!add_both(round, space, before, next, to)) {
        return false;
    }
    for (size_t i = 0; i < space->table_count; i++) {
        const struct checkpoint_table *table = &space->tables[i];

        if (table->named == CHECKPOINT_NAMED_NOT) {
            return data_refuse(round->error, "space %s: %s %llu has no image", before->name,
                               table->layer > 0 ? "layer of table" : "table",
                               (unsigned long long)table->serial);
        }
    }
    return true;
}

static void copy_files(const struct manifest_space *before, struct manifest *next,
                       struct manifest_space *to)
{
    for (size_t i = 0; i < before->files_count; i++) {
        CHECK(manifest_add_file(next, to, &before->files[i]));
    }
}

/* ---- the manifest ---- */

static const struct checkpoint_space *
checkpoint_manifest_space_of(const struct checkpoint_round *round, const char *name)
{
    for (size_t i = 0; i < round->count; i++) {
        if (strcmp(round->spaces[i]->space->name, name) == 0) {
            return round->spaces[i];
        }
    }
    return NULL;
}

static bool checkpoint_manifest_add_space(struct checkpoint_round *round,
                                          const struct manifest_space *before,
                                          struct manifest *next)
{
    const struct checkpoint_space *space = checkpoint_manifest_space_of(round, before->name);
    struct manifest_space *to = data_copy_space(next, before);

    CHECK(to != NULL);
    if (space == NULL) { /* it began after C, or has no dumps */
        copy_files(before, next, to);
        return true;
    }
    CHECK(round->dumps_only ||
          (manifest_set_data(to, DATA_LABEL_STATE, space->state, space->state_bytes) &&
           manifest_set_data(to, DATA_LABEL_C, &round->c, sizeof(round->c))));
    CHECK(manifest_set_data(to, DATA_LABEL_M, &space->m, sizeof(space->m)));
    if (space->m > next->table_event_lsn) {
        next->table_event_lsn = space->m;
    }
    return checkpoint_manifest_add_files(round, space, before, next, to);
}

/* NULL: round->error. A space that is new since C has all its records above it. */
static struct manifest *build(struct checkpoint_round *round)
{
    const struct manifest *before = round->data->manifest;
    struct manifest *next = manifest_create();

    manifest_copy_head(next, before);
    next->journal_lsn = round->dumps_only ? before->journal_lsn : round->c;
    next->table_event_lsn = round->dumps_only ? before->table_event_lsn : 0;
    for (size_t i = 0; i < before->spaces_count; i++) {
        if (!checkpoint_manifest_add_space(round, &before->spaces[i], next)) {
            manifest_destroy(next);
            return NULL;
        }
    }
    return next;
}

/* What a start does not need of the journal goes, but for what stays for followers, as long as the
 * disk has room for it. */
static void trim_journal(struct data *data)
{
    uint64_t needed = data->manifest->journal_lsn;
    uint64_t keep = data->keep_bytes;
    uint64_t from = needed > keep ? needed - keep : 0;

    journal_may_drop(data->journal, needed);
    if (!journal_trim(data->journal, journal_room(data->journal) == JOURNAL_ROOM ? from : needed)) {
        log_debug("a segment of the journal stays for now below_lsn=%llu",
                  (unsigned long long)needed);
    }
}

/*
 * Under the lock, when it is stored: files and journal it does not need. A round for dumps alone
 * deletes those that the manifest before has named, or there would be a look at every file of the
 * directory for each table that is dumped; what could not be deleted the next round of all does.
 */
static void delete_old(const struct checkpoint_round *round, const struct manifest *before)
{
    struct data *data = round->data;

    if (round->dumps_only && !data->leftovers) {
        data_delete_replaced(data, before);
    } else {
        data_sweep(data);
        data->leftovers = false;
    }
    trim_journal(data);
    data_count_files(data);
}

/* Under the lock. *before: the manifest until then, the caller's. NULL: nothing was taken. */
static bool checkpoint_manifest_store(struct checkpoint_round *round, struct manifest **before)
{
    struct data *data = round->data;
    struct manifest *next = build(round);

    if (next == NULL) {
        return false;
    }
    *before = data->manifest;
    data->manifest = next;
    POINT_SLOW("manifest store");
    bool stored = data_store(data, round->error);

    data->leftovers = data->leftovers || !stored; /* the disk may have either */
    return stored;
}

bool checkpoint_publish(struct checkpoint_round *round, bool *taken)
{
    struct manifest *before = NULL;

    pthread_mutex_lock(&round->data->lock);
    bool stored = checkpoint_manifest_store(round, &before);

    pthread_mutex_unlock(&round->data->lock);
    *taken = before != NULL;
    if (stored) {
        POINT("manifest stored, nothing deleted");
        checkpoint_finish_dumps(round);
        pthread_mutex_lock(&round->data->lock);
        delete_old(round, before);
        pthread_mutex_unlock(&round->data->lock);
    }
    manifest_destroy(before);
    return stored;
}
