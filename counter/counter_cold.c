/*
 * counter_cold.c: which tables leave memory, come to lie in files, and get new files.
 *
 * When to merge: as soon as half of an overlay's places are taken, or half of what all overlays may
 * hold is; then the largest first, until enough is on its way out. One that failed is passed over
 * for some seconds.
 */
#include <stdio.h>

#include "base/check.h"
#include "counter/counter_private.h"
#include "row/row_cold.h"
#include "store/table_file.h"

#define LAYER_BIT 1u /* of table_file_info.layer; the other says that it is an overlay's image */

static struct counter *counter_of(const struct engine *engine)
{
    struct counter *counter = (struct counter *)engine;
    CHECK(counter->magic == COUNTER_MAGIC);
    return counter;
}

void counter_set_cold(struct engine *engine, struct engine_cold *cold)
{
    counter_of(engine)->cold = cold;
}

struct counter_reader counter_reader_of(const struct counter *counter, const struct engine_op *op)
{
    CHECK(counter->cold && counter->cold->cold);
    return (struct counter_reader){.cold = counter->cold->cold, .ticket = op->ticket};
}

/* ---- when ---- */

static bool budget_is_half(const struct engine_cold *cold, uint64_t leaving)
{
    return 2 * (atomic_load(&cold->overlay_bytes) - leaving) > cold->overlay_bytes_max;
}

void counter_cold_changed(struct counter *counter, const struct counter_table *table)
{
    struct counter_overlay_size size;
    counter_table_overlay_size(table, &size);
    const struct row_table *in_row = counter_table_in_row((struct counter_table *)table);
    bool wanted = (size.half || budget_is_half(counter->cold, 0)) && row_cold_may_merge(in_row);
    const struct engine_keeper *imager = &counter->engine.imager;
    if (wanted && !atomic_load_explicit(&counter->merge_wanted, memory_order_relaxed) &&
        !atomic_exchange(&counter->merge_wanted, true) && imager->notify) {
        imager->notify(imager->context);
    }
}

bool counter_images_wanted(const struct engine *engine)
{
    const struct counter *counter = counter_of(engine);
    return atomic_load(&counter->merge_wanted) || row_cold_merge_again(&counter->row) ||
           row_cold_wanted(&counter->row);
}

/* The one whose merging frees most. */
struct choosing {
    struct row_table *table;
    uint64_t bytes;   /* of its overlay */
    uint64_t leaving; /* of all that are being merged, or dumped: no merge frees these */
    bool half;        /* an overlay that is half full goes before those that are not */
};

static void choose(void *context, struct row_table *table, bool layer)
{
    struct choosing *choosing = context;
    struct counter_overlay_size size;
    (void)layer;
    counter_table_overlay_size(counter_table_of(table), &size);
    choosing->leaving += table->cold ? size.older_bytes : size.bytes;
    if (!table->cold) {
        return;
    }
    bool better = size.half != choosing->half ? size.half : size.bytes > choosing->bytes;
    if (size.older_bytes == 0 && size.merges && better && row_cold_may_merge(table)) {
        choosing->table = table;
        choosing->bytes = size.bytes;
        choosing->half = size.half;
    }
}

bool counter_merge_next(struct counter *counter, uint64_t now, struct row_image *image)
{
    struct choosing choosing = {0};
    bool asked = atomic_load(&counter->merge_wanted) || row_cold_merge_again(&counter->row);
    if (!counter->cold || counter->row.merge_paused || !asked) {
        return false;
    }
    row_each(&counter->row, choose, &choosing);
    bool due = choosing.table && (choosing.half || budget_is_half(counter->cold, choosing.leaving));
    if (!due || !counter_table_merge_begin(counter_table_of(choosing.table), now)) {
        atomic_store(&counter->merge_wanted, false); /* the next change asks again */
        row_cold_no_merge(&counter->row);
        return false;
    }
    row_cold_merge(&counter->row, choosing.table, now, image);
    return true;
}

/* ---- what became of images ---- */

/* The row gives up a dump by itself where that of the layer fails. */
static void untap(void *context, struct row_table *table, bool layer)
{
    (void)context;
    (void)layer;
    if (!table->cold && !table->tapped) {
        counter_table_untap(counter_table_of(table));
    }
}

void counter_image_began(struct counter *counter, struct row_table *table,
                         const struct row_image *image)
{
    row_each(&counter->row, untap, NULL);
    if (image->kind == ROW_IMAGE_DUMP) {
        CHECK(counter->cold); /* no table leaves memory without */
        counter_table_tap(counter_table_of(table), counter->cold, counter->row.overruns);
    }
}

/* The table or layer, be it touched since. NULL: it is gone. */
static struct counter_table *imaged(const struct counter *counter, const struct row_image *image)
{
    struct row_table *table = row_find(&counter->row, image->base);
    bool same = table && table->serial == image->serial;
    return same ? counter_table_of(image->layer ? table->further : table) : NULL;
}

/* The table that this merge is of; NULL: it is gone. An image of its overlay may have begun since.
 */
static struct counter_table *merging(const struct counter *counter, const struct row_image *image)
{
    struct counter_table *this = image->kind == ROW_IMAGE_MERGE ? imaged(counter, image) : NULL;
    return this && counter_table_merges(this, image->start_lsn) ? this : NULL;
}

/* Did changes find no room beside the table while it was dumped? */
static bool overran(const struct counter *counter, const struct row_image *image)
{
    const struct counter_table *this =
        image->kind == ROW_IMAGE_DUMP ? imaged(counter, image) : NULL;
    return this && !counter_table_tapped(this);
}

void counter_image_failed(struct engine *engine, const struct row_image *image)
{
    struct counter *counter = counter_of(engine);
    struct counter_table *merged = merging(counter, image);
    if (merged) {
        counter_table_merge_failed(merged);
        row_cold_merge_failed(&counter->row, counter_table_in_row(merged));
        atomic_store(&counter->merge_wanted, true); /* the next round looks at the others */
    }
    row_image_failed(&counter->row, image, overran(counter, image));
    row_each(&counter->row, untap, NULL);
}

void counter_images_failed(struct engine *engine)
{
    row_cold_round_failed(&counter_of(engine)->row);
}

static struct table_file *dump_done(struct counter *counter, const struct row_image *image,
                                    struct table_file *file)
{
    struct row_table *table = row_cold_imaged(&counter->row, image);
    if (!table) {
        return file;
    }
    struct counter_table *this = counter_table_of(table);
    if (!counter_table_tapped(this)) {
        row_cold_failed(&counter->row, table, true);
        row_each(&counter->row, untap, NULL);
        return file;
    }
    counter_table_dumped(this, file);
    row_cold_dumped(&counter->row, table);
    return NULL;
}

struct table_file *counter_image_done(struct engine *engine, const struct row_image *image,
                                      struct table_file *file)
{
    struct counter *counter = counter_of(engine);
    if (image->kind == ROW_IMAGE_DUMP) {
        return dump_done(counter, image, file);
    }
    if (image->kind != ROW_IMAGE_MERGE) {
        return NULL;
    }
    struct counter_table *merged = merging(counter, image);
    return merged ? counter_table_merged(merged, file) : file;
}

/* ---- recovery ---- */

/* An overlay's image that is older than the file is all in it: a merge has overtaken it. */
static const struct table_file *overlay_in_front(const struct table_file *file,
                                                 const struct table_file *overlay)
{
    bool newer = overlay && table_file_info(overlay)->start_lsn >= table_file_info(file)->start_lsn;
    return newer ? overlay : NULL;
}

bool counter_restore_dumped(struct engine *engine, struct table_file *file,
                            const struct table_file *overlay, char error[ENGINE_ERROR_MAX])
{
    struct counter *counter = counter_of(engine);
    overlay = overlay_in_front(file, overlay);
    const struct table_file_info *info = table_file_info(overlay ? overlay : file);
    char why[ROW_ERROR_MAX];
    if (!counter->cold) {
        snprintf(error, ENGINE_ERROR_MAX, "%s: a dumped table, but nothing reads such",
                 table_file_path(file));
        return false;
    }
    bool layer = table_file_info(file)->layer & LAYER_BIT;
    struct row_table *table = row_cold_restore(
        &counter->row, info->description, info->description_bytes, layer, info->start_lsn, why);
    if (!table) {
        snprintf(error, ENGINE_ERROR_MAX, "%.*s: %s", ENGINE_ERROR_MAX - ROW_ERROR_MAX - 4,
                 table_file_path(file), why);
        return false;
    }
    return counter_table_restore_cold(counter_table_of(table), counter->cold, file, overlay, error);
}
