/*
 * checkpoint_dumps.c: images that engines go on to read where they lie.
 *
 * They are opened before the manifest, so that what cannot be read is not named, and handed over
 * once it is durable. If nobody knows whether it is, they wait in data->pending for the next one:
 * the engine has not given its table up yet, and must not believe that the image is void, as a
 * start may find it named.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/point.h"
#include "data/checkpoint_private.h"

struct checkpoint_pending {
    struct checkpoint_pending *next;
    struct space *space;
    struct checkpoint_image image;
};

bool checkpoint_is_dump(const struct row_image *image)
{
    return image->kind == ROW_IMAGE_DUMP || image->kind == ROW_IMAGE_MERGE;
}

bool checkpoint_has_dumps(const struct checkpoint_space *space)
{
    for (size_t i = 0; i < space->image_count; i++) {
        if (checkpoint_is_dump(&space->images[i]->image)) {
            return true;
        }
    }
    return false;
}

bool checkpoint_waits(const struct data *data, const struct space *space)
{
    const struct checkpoint_pending *at = data->pending;

    while (at != NULL && at->space != space) {
        at = at->next;
    }
    return at != NULL;
}

/* ---- before the manifest ---- */

static bool open_dump(struct checkpoint_round *round, struct checkpoint_image *image)
{
    struct data *data = round->data;
    char path[VFS_PATH_MAX];
    char why[TABLE_FILE_ERROR_MAX] = "";

    CHECK(vfs_path(path, data->directory, image->file.name));
    enum table_file_result result = table_file_open(data->vfs, path, true, &image->opened, why);

    if (result == TABLE_FILE_DONE) {
        table_file_share(image->opened, data->files);
        return true;
    }
    image->opened = NULL;
    return data_refuse(round->error, "%s", result == TABLE_FILE_ABSENT ? path : why);
}

bool checkpoint_open_dumps(struct checkpoint_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        struct checkpoint_space *space = round->spaces[i];

        for (size_t k = 0; k < space->image_count; k++) {
            if (checkpoint_is_dump(&space->images[k]->image) &&
                !open_dump(round, space->images[k])) {
                return false;
            }
        }
    }
    return true;
}

void checkpoint_close_dumps(struct checkpoint_space *space)
{
    for (size_t i = 0; i < space->image_count; i++) {
        table_file_close(space->images[i]->opened);
        space->images[i]->opened = NULL;
    }
}

/* ---- after the manifest ---- */

/* The dumps of this round join those that wait, and are the round's no more. */
void checkpoint_pend_dumps(struct checkpoint_round *round)
{
    struct data *data = round->data;

    for (size_t i = 0; i < round->count; i++) {
        struct checkpoint_space *space = round->spaces[i];

        for (size_t k = 0; k < space->image_count; k++) {
            if (space->images[k]->opened == NULL) {
                continue;
            }
            struct checkpoint_pending *add = memory_zalloc(sizeof(*add));

            *add = (struct checkpoint_pending){data->pending, space->space, *space->images[k]};
            data->pending = add;
            space->images[k]->opened = NULL;
        }
    }
}

/* Leaves out dumps that a later image has replaced, or whose table is gone. */
static void leave_out_unnamed(struct data *data)
{
    struct checkpoint_pending **at = &data->pending;

    pthread_mutex_lock(&data->lock);
    while (*at != NULL) {
        struct checkpoint_pending *pending = *at;

        if (manifest_find_file(data->manifest, pending->image.file.name) != NULL) {
            at = &pending->next;
            continue;
        }
        *at = pending->next;
        table_file_close(pending->image.opened);
        free(pending);
    }
    pthread_mutex_unlock(&data->lock);
}

/* World stopped: what the engines read from now on; then `opened` is what they have read so far. */
static void checkpoint_dumps_hand_over(struct data *data)
{
    for (struct checkpoint_pending *at = data->pending; at != NULL; at = at->next) {
        struct engine *engine = at->space->engine;

        if (at->image.image.kind == ROW_IMAGE_MERGE) {
            POINT("merge switch");
        }
        at->image.opened = row_image_done(engine->row, &at->image.image, at->image.opened);
    }
}

static void checkpoint_dumps_settle(const struct data *data)
{
    for (const struct checkpoint_pending *at = data->pending; at != NULL; at = at->next) {
        const struct engine *engine = at->space->engine;

        row_images_settle(engine->row);
    }
}

static void checkpoint_dumps_count(struct data *data, const struct row_image *image)
{
    if (image->kind == ROW_IMAGE_DUMP) {
        data->figures.dumps++;
    } else {
        data->figures.merges++;
    }
}

static void close_replaced(struct data *data)
{
    while (data->pending != NULL) {
        struct checkpoint_pending *pending = data->pending;

        if (pending->image.opened != NULL) {
            if (data->engine_cold.cold != NULL) {
                cold_forget(data->engine_cold.cold, pending->image.opened);
            }
            table_file_close(pending->image.opened);
        }
        checkpoint_dumps_count(data, &pending->image.image);
        data->pending = pending->next;
        free(pending);
    }
}

void checkpoint_finish_dumps(struct checkpoint_round *round)
{
    struct data *data = round->data;

    checkpoint_pend_dumps(round);
    leave_out_unnamed(data);
    if (data->pending != NULL) {
        /* else a reload may be reading a table that leaves memory */
        CHECK(round->barrier == NULL || round->keeper == CHECKPOINT_KEEPER_STOPPED);
        POINT("dumps stored, not handed over");
        checkpoint_stop_world(round);
        checkpoint_dumps_hand_over(data);
        checkpoint_go(round);
        checkpoint_dumps_settle(data);
        POINT("handed over, not yet forgotten");
    }
    checkpoint_set_keeper(round, CHECKPOINT_KEEPER_FREE);
    close_replaced(data);
}

void checkpoint_pending_drop(struct data *data)
{
    while (data->pending != NULL) {
        struct checkpoint_pending *pending = data->pending;

        table_file_close(pending->image.opened);
        data->pending = pending->next;
        free(pending);
    }
}
