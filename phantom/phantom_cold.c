/*
 * phantom_cold.c: tables that leave memory (row/row_cold.h), as the engine sees them: which
 * overlay is merged when, what becomes of images that are durable or were not kept, and dumped
 * tables taken up again.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "phantom/phantom_private.h"
#include "phantom/table_private.h"
#include "row/row_cold.h"
#include "store/table_file.h"

/* From one part in so many of engine_cold.overlay_bytes_max on the largest overlays are merged; if
 * of what dumped tables may have less than one part in so many is left, small ones too. */
#define BUDGET_CROWDED 2
#define BUDGET_SCARCE  8
/* An overlay is small that has less than one part in so many. */
#define BUDGET_SMALL 64

static struct phantom *phantom_of(struct engine *engine)
{
    struct phantom *phantom = (struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    return phantom;
}

void phantom_set_cold(struct engine *engine, struct engine_cold *cold)
{
    struct phantom *phantom = phantom_of(engine);
    phantom->cold = cold;
    phantom->row.config.dump = phantom_dumps(phantom);
}

/* ---- when to merge ---- */

static bool budget_above(const struct engine_cold *cold, uint64_t off, uint64_t limit)
{
    uint64_t bytes = atomic_load_explicit(&cold->overlay_bytes, memory_order_relaxed);
    return bytes > off && bytes - off > limit;
}

static uint64_t bytes_of(const struct dict *dict)
{
    return dict ? dict_count(dict) * PHANTOM_OVERLAY_LINE_BYTES : 0;
}

/* For its own size, or as all together have too much; `off`: bytes that are being merged already.
 */
static bool is_worth_it(const struct phantom *phantom, const struct phantom_dump *dump,
                        uint64_t off)
{
    uint64_t max = phantom->cold->overlay_bytes_max;
    uint64_t most = engine_overlay_most(phantom->cold, true);
    uint64_t own = bytes_of(phantom_dump_overlay(dump, 1));
    return phantom_dump_crowded(dump) ||
           (own >= max / BUDGET_SMALL && budget_above(phantom->cold, off, max / BUDGET_CROWDED)) ||
           budget_above(phantom->cold, off, most - most / BUDGET_SCARCE);
}

static void want_merge(struct phantom *phantom)
{
    const struct engine_keeper *imager = &phantom->engine.imager;
    if (!atomic_exchange(&phantom->merges, true) && imager->notify) {
        imager->notify(imager->context);
    }
}

void phantom_overlay_grew(struct phantom *phantom, const struct phantom_table *t)
{
    const struct phantom_dump *dump = phantom_table_holder((struct phantom_table *)t)->dump;
    if (dump && phantom_dump_can_merge(dump) && !phantom_dump_failed(dump) &&
        !atomic_load_explicit(&phantom->merges, memory_order_relaxed) &&
        is_worth_it(phantom, dump, 0)) {
        want_merge(phantom);
    }
}

bool phantom_images_wanted(const struct engine *engine)
{
    const struct phantom *phantom = (const struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    return atomic_load(&phantom->merges) || row_cold_merge_again(&phantom->row) ||
           row_cold_wanted(&phantom->row);
}

struct choosing {
    uint64_t older_bytes; /* of merges under way */
    struct phantom_table *largest;
    uint64_t largest_bytes;
};

static void look_at(void *context, struct row_table *row, bool layer)
{
    struct choosing *choosing = context;
    struct phantom_table *t = phantom_table_of(row);
    (void)layer;
    if (!t->dump) {
        return;
    }
    choosing->older_bytes += bytes_of(phantom_dump_overlay(t->dump, 0));
    uint64_t bytes = bytes_of(phantom_dump_overlay(t->dump, 1));
    if (bytes > choosing->largest_bytes && phantom_dump_can_merge(t->dump) &&
        row_cold_may_merge(row)) {
        choosing->largest = t;
        choosing->largest_bytes = bytes;
    }
}

bool phantom_merge_next(struct phantom *phantom, uint64_t now, struct row_image *image)
{
    struct choosing choosing = {0};
    if (!phantom->cold || phantom->row.merge_paused) {
        return false;
    }
    row_each(&phantom->row, look_at, &choosing);
    struct phantom_table *t = choosing.largest;
    if (!t || !is_worth_it(phantom, t->dump, choosing.older_bytes)) {
        atomic_store(&phantom->merges, false);
        row_cold_no_merge(&phantom->row);
        return false;
    }
    row_cold_merge(&phantom->row, &t->row, now, image);
    phantom_dump_merge(t->dump);
    return true;
}

/* ---- what becomes of images ---- */

static struct phantom_table *root_of(const struct phantom *phantom, const struct row_image *image)
{
    struct row_table *row = row_find(&phantom->row, image->base);
    return row && row->serial == image->serial ? phantom_table_of(row) : NULL;
}

/* The table or layer, be it touched since. NULL: it is gone. */
static struct phantom_table *imaged(const struct phantom *phantom, const struct row_image *image)
{
    struct phantom_table *t = root_of(phantom, image);
    return t && image->layer ? phantom_table_of(t->row.further) : t;
}

void phantom_tap(struct phantom *phantom, const struct row_image *image)
{
    struct phantom_table *t = imaged(phantom, image);
    CHECK(phantom->cold && t);
    phantom_table_untap(t); /* one that came to nothing */
    phantom_table_tap(t, phantom->cold, phantom->row.overruns);
}

bool phantom_cold_overran(const struct phantom *phantom, const struct row_image *image)
{
    const struct phantom_table *t = imaged(phantom, image);
    return image->kind == ROW_IMAGE_DUMP && t && t->dump && phantom_dump_given_up(t->dump);
}

void phantom_cold_image_failed(struct phantom *phantom, const struct row_image *image)
{
    struct phantom_table *t = imaged(phantom, image);
    if (!t || !t->dump) {
        return;
    }
    if (image->kind == ROW_IMAGE_DUMP && !phantom_table_is_cold(t) && !t->row.tapped) {
        phantom_table_untap(t);
    } else if (image->kind == ROW_IMAGE_MERGE && phantom_dump_merging(t->dump)) {
        phantom_dump_unmerge(t->dump);
        row_cold_merge_failed(&phantom->row, &t->row);
        atomic_store(&phantom->merges, true); /* the next round looks at the others */
    }
}

/* A merge's file is right even if its table was touched, and imaged, since: replay goes on from its
 * S, and that of its overlay's image holds the older overlay as well. */
static struct table_file *merged(struct phantom_table *t, struct table_file *file)
{
    return t && t->dump && phantom_dump_merging(t->dump) ? phantom_dump_merged(t->dump, file)
                                                         : file;
}

struct table_file *phantom_image_done(struct engine *engine, const struct row_image *image,
                                      struct table_file *file)
{
    struct phantom *phantom = phantom_of(engine);
    struct phantom_table *t = imaged(phantom, image);
    if (image->kind == ROW_IMAGE_MERGE) {
        return merged(t, file);
    }
    if (image->kind != ROW_IMAGE_DUMP) {
        return NULL;
    }
    if (!t || !row_cold_imaged(&phantom->row, image)) {
        phantom_cold_image_failed(phantom, image);
        return file;
    }
    phantom_table_leave(root_of(phantom, image), t, file);
    row_cold_dumped(&phantom->row, &t->row);
    return NULL;
}

/* ---- restoring ---- */

static bool refuse(const char *text, char error[ENGINE_ERROR_MAX])
{
    snprintf(error, ENGINE_ERROR_MAX, "%s", text);
    return false;
}

/* `layer` of a file: 0 a table, 1 a layer, and the same + 2 of their overlays. */
static bool is_layer(const struct table_file_info *info)
{
    return (info->layer & 1) != 0;
}

/* Of a file and an overlay: are they of one table of this kind? */
static bool belong_together(const struct engine *engine, const struct table_file_info *file,
                            const struct table_file_info *overlay)
{
    return strcmp(file->kind, engine->functions->kind) == 0 &&
           strcmp(overlay->kind, engine->functions->kind) == 0 && file->serial == overlay->serial &&
           is_layer(file) == is_layer(overlay);
}

bool phantom_restore_dumped(struct engine *engine, struct table_file *file,
                            const struct table_file *overlay, char error[ENGINE_ERROR_MAX])
{
    struct phantom *phantom = phantom_of(engine);
    const struct table_file_info *info = table_file_info(overlay ? overlay : file);
    if (!phantom->cold) {
        return refuse("it was dumped, and nothing is set up to read it from there", error);
    }
    if (!belong_together(engine, table_file_info(file), info)) {
        return refuse("it is not a table of a phantom space, or its overlay is another's", error);
    }
    struct row_table *row =
        row_cold_restore(&phantom->row, info->description, info->description_bytes, is_layer(info),
                         info->start_lsn, error);
    if (!row) {
        return false;
    }
    if (row->serial != info->serial) {
        return refuse("it is described as another table than its header says", error);
    }
    struct phantom_table *root = phantom_table_of(row_find(&phantom->row, row->base));
    bool loaded =
        phantom_table_load_dumped(phantom_table_of(row), phantom->cold, file, overlay, error);
    phantom_table_note_away(root);
    return loaded;
}

static void see_overlay(void *context, struct row_table *row, bool layer)
{
    struct phantom *phantom = context;
    const struct phantom_dump *dump = phantom_table_of(row)->dump;
    (void)layer;
    if (dump && phantom_dump_can_merge(dump) && is_worth_it(phantom, dump, 0)) {
        want_merge(phantom);
    }
}

void phantom_cold_restored(struct phantom *phantom)
{
    row_each(&phantom->row, see_overlay, phantom);
}
