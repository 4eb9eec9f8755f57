/* fake_row_kept.c: what the toy engine keeps: replay, images, tables that leave memory. */
#include <stdlib.h>
#include <string.h>

#include "row/row_cold.h"
#include "tests/support/fake_row_private.h"

void fake_keep(struct fake *fake, struct recorder *recorder)
{
    fake->recorder = recorder;
    fake->row.log = &recorder->log;
    fake->row.space = fake->engine.space;
    recorder_sink_init(&fake->sink, recorder);
}

static void replay_apart(struct fake *fake, struct row_table *apart, const struct change *change)
{
    bool there = fake_holds(apart, change->id);
    if (change->type == CHANGE_SLOTS) {
        if (!there) {
            fake_put(apart, change->id);
        }
        row_replay_apart(&fake->row, change->id, !there);
    } else if (there) {
        fake_take_out(apart, change->id);
    }
}

static void replay_created(struct fake *fake, struct row_table *table, const struct change *change)
{
    struct row_table *holder = fake_holder_of_new(table);
    bool counted = fake_holder_of(table, change->id) == NULL;
    if (counted) {
        fake_put(holder, change->id);
    }
    row_replay_created(&fake->row, table, holder, change->id, counted);
}

static void replay_in_place(struct fake *fake, const struct change *change, uint64_t lsn)
{
    struct row_table *table = row_replay_find(&fake->row, change->id, lsn);
    struct row_table *apart = row_replay_was_apart(&fake->row, change->id, lsn);
    if (change->type == CHANGE_SLOTS && apart != NULL && fake_holds(apart, change->id)) {
        fake_take_out(apart, change->id);
    }
    if (table != NULL && change->type == CHANGE_SLOTS) {
        replay_created(fake, table, change);
    } else if (fake_holder_of(table, change->id) != NULL) {
        fake_take_out(table, change->id);
    }
}

bool fake_replay(struct engine *engine, const struct engine_replay *changes, size_t n,
                 char error[ENGINE_ERROR_MAX])
{
    struct fake *fake = (struct fake *)engine;
    (void)error;
    for (size_t i = 0; i < n; i++) {
        const struct change *change = &changes[i].change;
        struct row_table *apart = row_replay_find_apart(&fake->row, changes[i].lsn);
        if (change->place != CHANGE_APART) {
            replay_in_place(fake, change, changes[i].lsn);
        } else if (apart != NULL) {
            replay_apart(fake, apart, change);
        }
    }
    return true;
}

bool fake_file_begin(struct row_table *table, struct engine_cold *cold, unsigned overruns)
{
    struct fake_table *mine = (struct fake_table *)table;
    (void)cold, (void)overruns;
    fake_set_fini(&mine->added);
    fake_set_fini(&mine->removed);
    return true;
}

/* Nothing came of it. */
struct table_file *fake_file_end(struct row_table *table, struct table_file *file)
{
    CHECK(file == NULL && fake_file_begin(table, NULL, 0));
    return NULL;
}

bool fake_image_begin(struct fake *fake, uint64_t since, struct fake_image *image)
{
    memset(image, 0, sizeof(*image));
    if (!row_image_next(&fake->row, since, fake->recorder->head, &image->image)) {
        return false;
    }
    const struct row_table *table = row_image_table(&fake->row, &image->image);
    CHECK(image->image.kind != ROW_IMAGE_DUMP || (table->tapped && !table->cold));
    return true;
}

static void copy_part(struct fake_set *to, const struct fake_set *from, unsigned part)
{
    for (size_t i = 0; i < from->places; i++) {
        if (from->ids[i] < FAKE_REMOVED && from->ids[i] % FAKE_IMAGE_PARTS == part) {
            fake_set_add(to, from->ids[i]);
        }
    }
}

static void copy_all(struct fake_set *to, const struct fake_set *from)
{
    for (unsigned part = 0; part < FAKE_IMAGE_PARTS; part++) {
        copy_part(to, from, part);
    }
}

bool fake_image_copy(const struct fake *fake, struct fake_image *image, unsigned part)
{
    const struct row_table *table = row_image_table(&fake->row, &image->image);
    const struct fake_table *mine = (const struct fake_table *)table;
    if (table == NULL) {
        return false;
    }
    if (image->image.kind == ROW_IMAGE_OVERLAY) {
        copy_part(&image->added, &mine->added, part);
        copy_part(&image->removed, &mine->removed, part);
    } else {
        copy_part(&image->placed, &mine->placed, part);
    }
    return true;
}

void fake_image_fini(struct fake_image *image)
{
    fake_set_fini(&image->placed);
    fake_set_fini(&image->added);
    fake_set_fini(&image->removed);
}

static void check_same(const struct fake_table *cold, const struct fake_set *held)
{
    for (size_t i = 0; i < held->places; i++) {
        CHECK(held->ids[i] >= FAKE_REMOVED || fake_holds(&cold->row, held->ids[i]));
    }
}

bool fake_image_dumped(struct fake *fake, const struct fake_image *image)
{
    struct row_table *table = row_cold_imaged(&fake->row, &image->image);
    struct fake_table *mine = (struct fake_table *)table;
    if (table == NULL) {
        return false;
    }
    struct fake_set placed = mine->placed;
    mine->placed = (struct fake_set){0};
    copy_all(&mine->file, &image->placed);
    row_cold_dumped(&fake->row, table);
    check_same(mine, &placed); /* all of it, and no more, as they are as many */
    CHECK(fake_count_cold(mine) == placed.count);
    fake_set_fini(&placed);
    return true;
}

static void load_cold(struct fake_table *mine, const struct fake_image *image,
                      const struct fake_image *overlay)
{
    copy_all(&mine->file, &image->placed);
    if (overlay != NULL) {
        copy_all(&mine->added, &overlay->added);
        copy_all(&mine->removed, &overlay->removed);
    }
    atomic_store(&mine->row.count, fake_count_cold(mine));
}

static void load_hot(struct fake_table *mine, const struct fake_image *image)
{
    copy_all(&mine->placed, &image->placed);
    atomic_store(&mine->row.count, mine->placed.count);
}

bool fake_load(struct fake *fake, const struct fake_image *image, const struct fake_image *overlay,
               char error[ROW_ERROR_MAX])
{
    const struct row_image *its = overlay != NULL ? &overlay->image : &image->image;
    bool cold = image->image.kind == ROW_IMAGE_DUMP;
    struct row_table *table = (cold ? row_cold_restore : row_restore_table)(
        &fake->row, its->table, its->table_bytes, its->layer, its->start_lsn, error);
    struct fake_table *mine = (struct fake_table *)table;
    if (table != NULL && cold) {
        load_cold(mine, image, overlay);
    } else if (table != NULL) {
        load_hot(mine, image);
    }
    return table != NULL;
}
