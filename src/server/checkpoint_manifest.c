/* checkpoint_manifest.c: the manifest of a round, and what goes once it is stored. */
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/point.h"
#include "server/checkpoint_private.h"

/* ---- files of a space ---- */

static const struct checkpoint_image *image_of(const struct checkpoint_space *space,
                                               uint64_t serial, uint64_t layer)
{
    for (size_t i = 0; i < space->image_count; i++) {
        if (space->images[i].file.serial == serial && space->images[i].file.layer == layer) {
            return &space->images[i];
        }
    }
    return NULL;
}

static const struct manifest_file *older_of(const struct manifest_space *space, uint64_t serial,
                                            uint64_t layer)
{
    for (size_t i = 0; i < space->files_count; i++) {
        if (space->files[i].serial == serial && space->files[i].layer == layer) {
            return &space->files[i];
        }
    }
    return NULL;
}

/* The image of this round, or what did not change since an older one. NULL: neither. */
static const struct manifest_file *file_of(const struct checkpoint_space *space,
                                           const struct manifest_space *before, uint64_t serial,
                                           uint64_t layer)
{
    const struct checkpoint_image *image = image_of(space, serial, layer);

    return image != NULL ? &image->file : older_of(before, serial, layer);
}

/* The overlay of a dumped table: an older one only if the file it lies over is older too. */
static const struct manifest_file *overlay_of(const struct checkpoint_space *space,
                                              const struct manifest_space *before,
                                              const struct manifest_file *file)
{
    uint64_t layer = file->layer + DATA_LAYERS;
    const struct checkpoint_image *image = image_of(space, file->serial, layer);

    if (file->role != MANIFEST_DUMP) {
        return NULL;
    }
    if (image != NULL) {
        return &image->file;
    }
    return image_of(space, file->serial, file->layer) == NULL
               ? older_of(before, file->serial, layer)
               : NULL;
}

static bool add_file(struct checkpoint_round *round, const struct manifest_space *before,
                     const struct manifest_file *file, struct manifest *next,
                     struct manifest_space *to)
{
    return manifest_add_file(next, to, file) ||
           data_refuse(round->error, "space %s: %s cannot be named", before->name, file->name);
}

static bool add_files(struct checkpoint_round *round, const struct checkpoint_space *space,
                      const struct manifest_space *before, struct manifest *next,
                      struct manifest_space *to)
{
    for (size_t i = 0; i < space->table_count; i++) {
        const struct checkpoint_table *table = &space->tables[i];
        const struct manifest_file *file = file_of(space, before, table->serial, table->layer);

        if (file == NULL) {
            return data_refuse(round->error, "space %s: %s %llu has no image", before->name,
                               table->layer ? "layer of table" : "table",
                               (unsigned long long)table->serial);
        }
        const struct manifest_file *overlay = overlay_of(space, before, file);

        if (!add_file(round, before, file, next, to) ||
            (overlay != NULL && !add_file(round, before, overlay, next, to))) {
            return false;
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

static const struct checkpoint_space *space_of(const struct checkpoint_round *round,
                                               const char *name)
{
    for (size_t i = 0; i < round->count; i++) {
        if (strcmp(round->spaces[i]->space->name, name) == 0) {
            return round->spaces[i];
        }
    }
    return NULL;
}

static bool add_space(struct checkpoint_round *round, const struct manifest_space *before,
                      struct manifest *next)
{
    const struct checkpoint_space *space = space_of(round, before->name);
    struct manifest_space *to = data_copy_space(next, before);

    CHECK(to != NULL);
    if (space == NULL) { /* it began behind C, or has no dumps */
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
    return add_files(round, space, before, next, to);
}

/* NULL: round->error. A space that is new since C has all its records above it. */
static struct manifest *build(struct checkpoint_round *round)
{
    const struct manifest *before = round->data->manifest;
    struct manifest *next = manifest_create();

    next->epoch = before->epoch;
    next->journal_lsn = round->dumps_only ? before->journal_lsn : round->c;
    next->table_event_lsn = round->dumps_only ? before->table_event_lsn : 0;
    for (size_t i = 0; i < before->spaces_count; i++) {
        if (!add_space(round, &before->spaces[i], next)) {
            manifest_destroy(next);
            return NULL;
        }
    }
    return next;
}

/* Under the lock, when it is stored: files and journal it does not need. */
static void delete_old(struct data *data)
{
    data_sweep(data);
    if (!journal_trim(data->journal, data->manifest->journal_lsn)) {
        log_debug("journal: a segment below %llu stays for now",
                  (unsigned long long)data->manifest->journal_lsn);
    }
    data_count_files(data);
}

/* Under the lock. */
static bool store(struct checkpoint_round *round, bool *taken)
{
    struct data *data = round->data;
    struct manifest *next = build(round);

    *taken = next != NULL;
    if (next == NULL) {
        return false;
    }
    manifest_destroy(data->manifest);
    data->manifest = next;
    POINT_SLOW("manifest store");
    return data_store(data, round->error);
}

bool checkpoint_publish(struct checkpoint_round *round, bool *taken)
{
    pthread_mutex_lock(&round->data->lock);
    bool stored = store(round, taken);

    pthread_mutex_unlock(&round->data->lock);
    if (stored) {
        POINT("manifest stored, nothing deleted");
        checkpoint_finish_dumps(round);
        pthread_mutex_lock(&round->data->lock);
        delete_old(round->data);
        pthread_mutex_unlock(&round->data->lock);
    }
    return stored;
}
