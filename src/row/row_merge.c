/*
 * row_merge.c: which dumped table gets a new file, and when.
 *
 * When: half of an overlay's places are taken; or overlays of all spaces hold half of what they
 * may, and this one is not small; or they hold nearly all of it. Then the fullest first, until
 * enough is on its way out. A table whose merge failed is passed over for some seconds.
 */
#include "base/clock.h"
#include "base/point.h"
#include "row/row_cold.h"
#include "row/row_data.h"
#include "row/row_fold.h"
#include "row/row_private.h"

/* Longer than until a checkpoint that failed is tried again: that one does without the merge. */
#define MERGE_PAUSE_US (30u * 1000000u)
/* Above one part in this many of engine_cold.overlay_bytes_max overlays that are not small are
 * merged; when less than one part in this many of what dumped tables may have is left, all are. */
#define BUDGET_CROWDED 2
#define BUDGET_SCARCE  8
/* An overlay is small if it has less than one part in this many. */
#define BUDGET_SMALL 64

/* ---- when ---- */

/* off: bytes that are on their way out already. */
static bool row_merge_above(const struct engine_cold *cold, uint64_t off, uint64_t limit)
{
    uint64_t bytes = atomic_load_explicit(&cold->overlay_bytes, memory_order_relaxed);
    return bytes > off && bytes - off > limit;
}

static bool row_merge_is_due(const struct row *row, const struct row_overlay_size *size,
                             uint64_t off)
{
    uint64_t max = row->cold->overlay_bytes_max;
    uint64_t most = engine_overlay_most(row->cold, true);
    bool large = size->bytes >= max / BUDGET_SMALL;
    return size->half || (large && row_merge_above(row->cold, off, max / BUDGET_CROWDED)) ||
           row_merge_above(row->cold, off, most - most / BUDGET_SCARCE);
}

bool row_merge_may(const struct row_table *table)
{
    return table->merge_us == 0 || clock_monotonic_us() >= table->merge_us;
}

void row_cold_changed(struct row *row, const struct row_table *holder)
{
    struct row_overlay_size size;
    if (!holder->cold || atomic_load_explicit(&row->merge_wanted, memory_order_relaxed)) {
        return;
    }
    row->kind->overlay_size(holder, &size);
    bool wanted = size.merges && size.older_bytes == 0 && row_merge_is_due(row, &size, 0) &&
                  row_merge_may(holder);
    if (wanted && !atomic_exchange(&row->merge_wanted, true)) {
        row_notify(row->imager);
    }
}

bool row_cold_awaits(const struct row *row, const struct row_table *holder)
{
    bool due = atomic_load(&row->merge_wanted) && row_merge_may(holder);
    bool paused = row->merge_paused && row->folds == 0; /* what is folded is as good as merged */
    bool soon = row->cold != NULL && !paused && !row->round_failed;
    return soon && (holder->tapped || row->merges > row->folds_put_off || due);
}

bool row_images_wanted(const struct row *row)
{
    return atomic_load(&row->merge_wanted) || row_is_due(&row->merges_us) || row_cold_wanted(row);
}

/* ---- which ---- */

void row_merge_see(struct row *row)
{
    if (row->cold != NULL &&
        row_merge_above(row->cold, 0, row->cold->overlay_bytes_max / BUDGET_CROWDED)) {
        atomic_store(&row->merge_wanted, true);
    }
}

/* The one whose merging frees most. */
struct row_merge_choice {
    const struct row *row;
    struct row_table *table;
    struct row_overlay_size size;
    uint64_t leaving; /* bytes of overlays that are being merged, or dumped: no merge frees these */
};

static void row_merge_weigh(void *context, struct row_table *table, bool layer)
{
    struct row_merge_choice *choice = context;
    struct row_overlay_size size;
    (void)layer;
    choice->row->kind->overlay_size(table, &size);
    choice->leaving += table->folding ? 0 : table->cold ? size.older_bytes : size.bytes;
    bool better = size.half != choice->size.half ? size.half : size.bytes > choice->size.bytes;
    if (table->cold && size.merges && size.older_bytes == 0 && better && row_merge_may(table)) {
        choice->table = table;
        choice->size = size;
    }
}

static uint64_t row_merge_earlier(uint64_t least, const struct row_table *table)
{
    bool waits = !row_merge_may(table);
    return waits && (least == 0 || table->merge_us < least) ? table->merge_us : least;
}

/* None is to be merged now: the next time is that of the next table whose merge failed, if any. */
static void row_merge_none(struct row *row)
{
    uint64_t least = 0;
    atomic_store(&row->merge_wanted, false); /* the next change asks again */
    atomic_store(&row->wake_due, true);
    if (!row_is_due(&row->merges_us)) {
        return;
    }
    for (size_t i = 0; i < row->count; i++) {
        for (const struct row_table *table = row->tables[i]; table; table = table->further) {
            least = row_merge_earlier(least, table);
        }
    }
    atomic_store(&row->merges_us, least);
}

struct row_table *row_merge_next(struct row *row)
{
    struct row_merge_choice choice = {.row = row};
    bool asked = atomic_load(&row->merge_wanted) || row_is_due(&row->merges_us);
    if (row->cold == NULL || row->merge_paused || !asked) {
        return NULL;
    }
    row_each(row, row_merge_weigh, &choice);
    bool due = choice.table != NULL && row_merge_is_due(row, &choice.size, choice.leaving);
    if (!due || !row->kind->file_begin(choice.table, row->cold, 0)) {
        row_merge_none(row);
        return NULL;
    }
    POINT("merge begins");
    choice.table->merging = true;
    row->merges++;
    atomic_store(&row->wake_due, true); /* its new overlay has room */
    return choice.table;
}

/* ---- what became of it ---- */

bool row_merge_is(const struct row_table *table, const struct row_image *image)
{
    return image->kind == ROW_IMAGE_MERGE && table != NULL && table->merging && !table->folding &&
           table->merge_lsn == image->start_lsn;
}

struct table_file *row_merge_end(struct row *row, struct row_table *table, struct table_file *file)
{
    CHECK(row->merges > 0 && file != NULL && !table->folding);
    table->merging = false;
    row->merges--;
    atomic_store(&row->wake_due, true);
    struct table_file *before = row->kind->file_end(table, file);
    row_cold_changed(row, table); /* the new overlay may have filled meanwhile */
    if (row->parted) {            /* it may come back */
        row_ask(row);
    }
    return before;
}

void row_merge_pause(struct row *row, struct row_table *table)
{
    table->merge_us = clock_monotonic_us() + MERGE_PAUSE_US;
    if (atomic_load(&row->merges_us) == 0) {
        atomic_store(&row->merges_us, table->merge_us); /* else it is earlier */
    }
}

void row_merge_failed(struct row *row, struct row_table *table)
{
    row_fold_begin(row, table);
    row->merge_paused = true;
    row_merge_pause(row, table);
    atomic_store(&row->merge_wanted, true); /* the next round looks at the others */
}
