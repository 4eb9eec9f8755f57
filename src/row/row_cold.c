/* row_cold.c: tables leave memory: who is to, what becomes of the images they leave with. */
#include "row/row_cold.h"

#include "base/log.h"
#include "base/point.h"
#include "row/row_data.h"
#include "row/row_parts.h"

bool row_cold_wanted(const struct row *row)
{
    return atomic_load(&row->dump_wanted);
}

static bool is_waiting(const struct row_table *table)
{
    return table->leaving && !table->tapped;
}

void row_cold_see(struct row *row)
{
    bool wanted = false;
    for (size_t i = 0; i < row->count && !row->dump_failed && !wanted; i++) {
        const struct row_table *table = row->tables[i];
        for (; table != NULL && !wanted; table = table->further) {
            wanted = is_waiting(table);
        }
    }
    if (!atomic_exchange(&row->dump_wanted, wanted) && wanted) {
        row_notify(row->imager);
    }
}

void row_cold_make_whole(struct row_table *table)
{
    for (struct row_table *layer = table; layer != NULL; layer = layer->further) {
        layer->whole = true;
    }
    row_touch(table);
}

void row_cold_go_whole(struct row *row, struct row_table *table)
{
    if (!table->whole) {
        row_cold_make_whole(table);
        row_log_whole(row, table);
    }
}

void row_cold_leave(struct row *row, struct row_table *table)
{
    CHECK(table->settled && !table->cold && row->cold != NULL);
    row_cold_go_whole(row, table);
    table->leaving = true;
    table->awaiting = false;
    row_layers_leave(table);
    atomic_fetch_and(&table->wants,
                     ~(ROW_WANT_CLUSTER | ROW_WANT_BULK | ROW_WANT_LAYER | ROW_WANT_LEAVE));
    if (row->apart != NULL) {
        atomic_fetch_or(&table->wants, ROW_WANT_PLACE); /* once it is dumped they stay apart */
    }
}

void row_cold_stay(struct row_table *table)
{
    table->leaving = table->leaving && table->tapped;
    if (table->further != NULL) {
        row_cold_stay(table->further);
    }
}

/* What waits for a dump is looked at again. */
static void ask_again(struct row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        row->tables[i]->awaiting = false;
    }
    row_cold_see(row);
    row_ask(row);
}

void row_cold_tap(struct row *row, struct row_table *table)
{
    table->tapped = true;
    atomic_store(&table->tap, ROW_TAP_WRITING);
    if (!row->kind->file_begin(table, row->cold, row->overruns)) {
        row_tap_overran(table);
    }
    POINT("frozen");
}

static void row_untap(const struct row *row, struct row_table *table)
{
    table->tapped = false;
    atomic_store(&table->tap, ROW_TAP_NONE);
    CHECK(row->kind->file_end(table, NULL) == NULL);
}

/*
 * From here on its changes are not whole any more. Replay goes by the S of its table, from which on
 * those of a layer must be whole too: that image is of no use either.
 */
void row_cold_untap(struct row *row, struct row_table *table)
{
    row_untap(row, table);
    table->touched = true;
    struct row_table *own = row_find(row, table->base);
    if (own != table && own->tapped) {
        row_untap(row, own);
        row_touch(own);
    }
    if (!row->config.dump) {
        row_cold_stay(own); /* the configuration has changed meanwhile */
    }
    ask_again(row);
}

/* Changes came faster than the disk took the table. */
static bool overran_too_often(struct row *row, const struct row_table *table)
{
    if (++row->overruns < ROW_OVERRUNS_MAX) {
        return false;
    }
    if (!row->overrun_told) {
        row->overrun_told = true;
        log_warning("a table cannot leave memory, as there was no room for what changed of it "
                    "meanwhile: set cold.overlay higher, or give it a faster disk space=%s "
                    "first_id=%llu times=%d",
                    row_space_name(row), (unsigned long long)table->base, ROW_OVERRUNS_MAX);
    }
    return true;
}

/* A dump is not tried twice in a round, or the round might never end. After an overrun the next
 * round tries at once. */
void row_cold_failed(struct row *row, struct row_table *table, bool overran)
{
    row->dump_paused = true;
    if (!overran || overran_too_often(row, table)) {
        row->overruns = 0;
        row->dump_failed = true;
        row_pause(row);
    }
    row_cold_untap(row, table);
}

void row_images_failed(struct row *row)
{
    bool leaving = false;
    row->round_failed = true;
    atomic_store(&row->wake_due, true);
    for (size_t i = 0; i < row->count && !leaving; i++) {
        leaving = row_any_leaving(row->tables[i]);
    }
    if (leaving) {
        row->dump_failed = true;
        row_pause(row);
        ask_again(row);
    }
}

void row_cold_try(struct row *row)
{
    row->dump_failed = false;
    atomic_store(&row->again_us, 0);
    row_cold_see(row);
}

void row_cold_dumped(struct row *row, struct row_table *table)
{
    CHECK(table->tapped && !table->cold);
    struct row_region *region = table->region;
    table->region = NULL;
    table->cold = true;
    table->leaving = false;
    table->tapped = false;
    atomic_store(&table->tap, ROW_TAP_NONE);
    table->refused = false;
    table->refused_layer = false;
    row_region_leave(row, region);
    row_parts_charge(row);
    POINT("left memory");
    row->overruns = 0;
    row->overrun_told = false;
    row_cold_try(row);
    ask_again(row);
}

struct row_table *row_cold_restore(struct row *row, const void *table_bytes, size_t length,
                                   unsigned layer, uint64_t start_lsn, char error[ROW_ERROR_MAX])
{
    struct row_restoring restoring = {.layer = layer, .cold = true, .start_lsn = start_lsn};
    return row_restore_as(row, table_bytes, length, &restoring, error);
}

struct row_table *row_cold_imaged(const struct row *row, const struct row_image *image)
{
    struct row_table *table = row_image_owner(row, image);
    bool same = table != NULL && table->tapped && table->start_lsn == image->start_lsn;
    return same && image->kind == ROW_IMAGE_DUMP ? table : NULL;
}
