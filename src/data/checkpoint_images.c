/* checkpoint_images.c: the images of one space. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/notify.h"
#include "base/point.h"
#include "base/wait.h"
#include "data/checkpoint_private.h"
#include "row/row_fold.h"
#include "store/table_file.h"

#define FOLD_GAP_US 200u /* without a stop, at least */

_Static_assert(ROW_TABLE_BYTES_MAX <= TABLE_FILE_DESCRIPTION_MAX, "a file holds any description");
_Static_assert(ROW_IMAGE_SECTIONS_MAX <= TABLE_FILE_SECTIONS_MAX, "and any sections");

/* ---- what there is ---- */

static void checkpoint_images_add_table(void *context, uint64_t serial, unsigned layer)
{
    struct checkpoint_space *space = context;

    space->tables =
        array_room(space->tables, space->table_count, &space->table_room, sizeof(*space->tables));
    space->tables[space->table_count++] =
        (struct checkpoint_table){.serial = serial, .layer = layer};
}

static int by_serial(const void *left, const void *right)
{
    const struct checkpoint_table *a = left;
    const struct checkpoint_table *b = right;

    return a->serial != b->serial ? (a->serial < b->serial ? -1 : 1)
                                  : (int)a->layer - (int)b->layer;
}

/* Returns whether the images are sorted: by base they are, where the stream did not jump. */
static bool are_sorted(const struct checkpoint_space *space)
{
    size_t i = 1;

    while (i < space->table_count && by_serial(&space->tables[i - 1], &space->tables[i]) < 0) {
        i++;
    }
    return i >= space->table_count;
}

void checkpoint_list_tables(struct checkpoint_space *space)
{
    struct engine *engine = space->space->engine;

    space->table_count = 0;
    row_each_serial(engine->row, checkpoint_images_add_table, space);
    if (!are_sorted(space)) {
        qsort(space->tables, space->table_count, sizeof(*space->tables), by_serial);
    }
}

/* The number its file has. */
static uint32_t checkpoint_layer(const struct row_image *image)
{
    return row_file_number(image->layer, image->kind == ROW_IMAGE_OVERLAY);
}

/* ---- one image ---- */

static void fill_info(const struct checkpoint_space *space, const struct row_image *image,
                      uint64_t generation, struct table_file_info *info)
{
    *info = (struct table_file_info){
        .serial = image->serial,
        .generation = generation,
        .layer = checkpoint_layer(image),
        .start_lsn = image->start_lsn,
        .sections = image->sections,
        .description = image->table,
        .description_bytes = image->table_bytes,
    };
    snprintf(info->kind, sizeof(info->kind), "%s", space->space->engine->functions->kind);
    snprintf(info->space, sizeof(info->space), "%s", space->space->name);
    for (unsigned i = 0; i < image->sections; i++) {
        info->section[i].value_bytes = image->section_value_bytes[i];
    }
}

static void name_file(const struct checkpoint_space *space, const struct row_image *image,
                      uint64_t generation, struct manifest_file *file)
{
    *file = (struct manifest_file){
        .role = checkpoint_is_dump(image) ? MANIFEST_DUMP : MANIFEST_IMAGE,
        .serial = image->serial,
        .layer = checkpoint_layer(image),
        .generation = generation,
        .start_lsn = image->start_lsn,
        .first_id = image->base,
        .last_id = image->last,
    };
    manifest_table_name(file->name, space->space->name, image->serial, checkpoint_layer(image),
                        generation);
}

/* Returns where the image stands, or would stand. There may be one of each of very many tables. */
static size_t checkpoint_images_place_of(const struct checkpoint_space *space, uint64_t serial,
                                         uint64_t layer)
{
    size_t low = 0;
    size_t high = space->image_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct manifest_file *file = &space->images[middle]->file;
        bool below = file->serial < serial || (file->serial == serial && file->layer < layer);

        low = below ? middle + 1 : low;
        high = below ? high : middle;
    }
    return low;
}

static bool stands_at(const struct checkpoint_space *space, size_t at, uint64_t serial,
                      uint64_t layer)
{
    return at < space->image_count && space->images[at]->file.serial == serial &&
           space->images[at]->file.layer == layer;
}

struct checkpoint_image *checkpoint_find_image(const struct checkpoint_space *space,
                                               uint64_t serial, uint64_t layer)
{
    size_t at = checkpoint_images_place_of(space, serial, layer);

    return stands_at(space, at, serial, layer) ? space->images[at] : NULL;
}

void checkpoint_free_images(struct checkpoint_space *space)
{
    for (size_t i = 0; i < space->image_count; i++) {
        free(space->images[i]);
    }
    free(space->images);
}

/* What the file holds already: the overlay image of this round, if there is one. */
static void leave_overlay_out(struct checkpoint_round *round, struct checkpoint_space *space,
                              const struct manifest_file *file)
{
    uint64_t layer = file->layer + ROW_FILE_OVERLAY;
    size_t at = checkpoint_images_place_of(space, file->serial, layer);

    if (stands_at(space, at, file->serial, layer)) {
        data_delete_file(round->data, space->images[at]->file.name);
        free(space->images[at]);
        space->image_count--;
        memmove(space->images + at, space->images + at + 1,
                (space->image_count - at) * sizeof(*space->images));
    }
}

static struct checkpoint_image *add_image(struct checkpoint_space *space, size_t at)
{
    space->images =
        array_room(space->images, space->image_count, &space->image_room, sizeof(*space->images));
    memmove(space->images + at + 1, space->images + at,
            (space->image_count - at) * sizeof(*space->images));
    space->images[at] = memory_zalloc(sizeof(*space->images[at]));
    space->image_count++;
    return space->images[at];
}

/* Keeps an image in the place of an older one of the same table: nothing names that one. */
static void checkpoint_images_replace(struct checkpoint_round *round,
                                      struct checkpoint_space *space, const struct row_image *image,
                                      const struct manifest_file *file)
{
    if (checkpoint_is_dump(image)) {
        leave_overlay_out(round, space, file);
    }
    size_t at = checkpoint_images_place_of(space, file->serial, file->layer);
    bool replaces = stands_at(space, at, file->serial, file->layer);

    if (replaces) {
        data_delete_file(round->data, space->images[at]->file.name);
    }
    struct checkpoint_image *kept = replaces ? space->images[at] : add_image(space, at);

    *kept = (struct checkpoint_image){.image = *image, .file = *file};
    round->images++;
    round->image_bytes += file->bytes;
}

/* A step in a stop; as long goes by afterwards, or those who read would not get between two. */
static enum row_fold fold_in_stop(struct checkpoint_round *round, struct row *row)
{
    uint64_t began_us = clock_monotonic_us();

    checkpoint_stop_world(round);
    enum row_fold next = row_fold_step(row, true);

    checkpoint_go(round);
    uint64_t took_us = clock_monotonic_us() - began_us;

    row_images_settle(row);
    POINT("overlays half one");
    if (round->barrier != NULL && next == ROW_FOLD_MOVE) {
        wait_us(took_us > FOLD_GAP_US ? took_us : FOLD_GAP_US);
    }
    return next;
}

static enum row_fold fold_inside(struct checkpoint_round *round, struct row *row)
{
    if (round->member != NULL) {
        barrier_enter(round->member);
    }
    enum row_fold next = row_fold_step(row, false);

    if (round->member != NULL) {
        barrier_leave(round->member);
    }
    return next;
}

/* Not while openings wait for the keeper: at the end of the round, then. To the end, also where the
 * thread is to end: what is left takes some seconds, if at all. */
void checkpoint_fold(struct checkpoint_round *round, struct row *row)
{
    enum row_fold next = round->keeper == CHECKPOINT_KEEPER_FREE ? ROW_FOLD_COPY : ROW_FOLD_DONE;

    while (next != ROW_FOLD_DONE) {
        next = next == ROW_FOLD_MOVE ? fold_in_stop(round, row) : fold_inside(round, row);
    }
}

/* The image was not kept: its table is as if it were changed. */
static void checkpoint_images_give_up(struct checkpoint_round *round,
                                      struct checkpoint_space *space, const struct row_image *image)
{
    struct engine *engine = space->space->engine;

    checkpoint_stop_world(round);
    row_image_failed(engine->row, image);
    checkpoint_go(round);
    row_images_settle(engine->row);
    checkpoint_fold(round, engine->row);
}

/* True: the file is whole and durable. GONE: *gone, there is none. */
static bool write_file(struct checkpoint_round *round, struct checkpoint_space *space,
                       const struct row_image *image, struct manifest_file *file, bool *gone)
{
    struct data *data = round->data;
    struct engine *engine = space->space->engine;
    struct table_file_info info;
    char why[TABLE_FILE_ERROR_MAX];

    *gone = false;
    fill_info(space, image, file->generation, &info);
    struct table_file_writer *writer =
        table_file_create(data->vfs, data->directory, file->name, &info, why);

    if (writer == NULL) {
        return data_refuse(round->error, "%s", why);
    }
    enum engine_image result =
        row_image_write(engine->row, image, round->member, writer, round->stop);

    if (result != ENGINE_IMAGE_DONE) {
        *gone = result == ENGINE_IMAGE_GONE;
        if (result == ENGINE_IMAGE_FAILED) {
            const char *error = table_file_writer_error(writer); /* "": it was not the writing */

            data_refuse(round->error, "%s",
                        error[0] != '\0' ? error : "it cannot be made, see the line before");
        }
        table_file_abandon(writer);
        return false;
    }
    file->end_lsn = data_head(data);
    return table_file_commit(writer, file->end_lsn, &file->bytes, why) ||
           data_refuse(round->error, "%s", why);
}

/* A merge frees memory and may be made later: a file that cannot be read stops no round. */
static bool goes_without(struct checkpoint_round *round, const struct row_image *image)
{
    if (image->kind != ROW_IMAGE_MERGE || round->error[0] == '\0') {
        return false;
    }
    round->data->figures.dump_failures++;
    if (!round->data->merge_failed) {
        log_error("changes of a dumped table cannot be put into its file: %s; it is tried again",
                  round->error);
    }
    round->data->merge_failed = true;
    round->error[0] = '\0';
    return true;
}

static bool write_image(struct checkpoint_round *round, struct checkpoint_space *space,
                        const struct row_image *image)
{
    struct manifest_file file;
    bool gone;

    if (round->barrier == NULL) { /* the end: the service manager is to wait for it */
        notify_manager("STATUS=writing tables\nEXTEND_TIMEOUT_USEC=" DATA_EXTEND_US);
    }
    data_note_disk(round->data);
    name_file(space, image, ++round->data->generation, &file);
    space->written++;
    if (write_file(round, space, image, &file, &gone)) {
        checkpoint_images_replace(round, space, image, &file);
        round->data->merge_failed = round->data->merge_failed && image->kind != ROW_IMAGE_MERGE;
        return true;
    }
    checkpoint_images_give_up(round, space, image);
    return gone || goes_without(round, image);
}

/* ---- all ---- */

static bool next_image(struct checkpoint_round *round, struct checkpoint_space *space,
                       struct row_image *image)
{
    struct engine *engine = space->space->engine;

    checkpoint_stop_world(round);
    bool found = row_image_next(engine->row, round->c, round->reached, image);

    if (!found) {
        space->m = round->reached;
        checkpoint_list_tables(space);
    }
    checkpoint_go(round);
    row_images_settle(engine->row);
    return found;
}

/* What it takes to come to an end, after so many images. */
static enum checkpoint_keeper keeper_for(const struct checkpoint_space *space)
{
    size_t many = CHECKPOINT_IMAGES_TABLES * space->table_count + CHECKPOINT_IMAGES_MORE;

    return space->written < many       ? CHECKPOINT_KEEPER_FREE
           : space->written < 2 * many ? CHECKPOINT_KEEPER_HELD
                                       : CHECKPOINT_KEEPER_STOPPED;
}

/* A bracket becomes a hold, unless that has not sufficed. */
static void set_keeper(struct checkpoint_round *round, const struct checkpoint_space *space)
{
    enum checkpoint_keeper is = round->keeper;
    enum checkpoint_keeper least = keeper_for(space);
    enum checkpoint_keeper most = is < CHECKPOINT_KEEPER_HELD ? is : CHECKPOINT_KEEPER_HELD;

    if (least > is && round->barrier != NULL) {
        log_info("a space opens tables faster than they are written, and waits space=%s",
                 space->space->name);
    }
    checkpoint_set_keeper(round, least > most ? least : most);
}

bool checkpoint_images(struct checkpoint_round *round, struct checkpoint_space *space)
{
    enum checkpoint_keeper before = round->keeper;
    bool done = true;
    struct row_image image;

    while (done && next_image(round, space, &image)) {
        set_keeper(round, space);
        done = write_image(round, space, &image);
    }
    if (before == CHECKPOINT_KEEPER_FREE) {
        checkpoint_set_keeper(round, CHECKPOINT_KEEPER_FREE);
    }
    return done;
}
