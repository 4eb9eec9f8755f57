/* row.c: a row begins, ends, forgets, is given another configuration. */
#include "row/row.h"

#include "base/memory.h"
#include "row/row_data.h"
#include "row/row_fold.h"
#include "row/row_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static double late_room_at_start(const struct row_config *config)
{
    return config->late_room < 0.0 ? config->late_start : config->late_room;
}

static void take_config(struct row *row, const struct row_config *config)
{
    row->config = *config;
    if (config->any_ids) {
        row->config.tables = 1;
        row->config.recycle = false;
        row->config.dump = config->dump && row->parted;
        row->config.dumps_max = 0; /* no part is the oldest */
    }
    CHECK(row->config.tables >= 1 && row->config.tables <= ROW_TABLES_MAX);
    CHECK(config->any_ids ||
          (config->sample >= ROW_SAMPLE_MIN && config->sample <= ROW_SAMPLE_MAX));
}

bool row_init(struct row *row, const struct row_config *config, const struct table_kind *kind,
              struct engine *engine)
{
    memset(row, 0, sizeof(*row));
    row->parted = config->any_ids && kind->part_move != NULL;
    take_config(row, config);
    row->kind = kind;
    row->engine = engine;
    row->keeper = &engine->keeper;
    row->imager = &engine->imager;
    row->late_room = late_room_at_start(config);
    row->fold_records = ROW_FOLD_RECORDS;
    row_stream_forget(row);
    CHECK(pthread_mutex_init(&row->lock, NULL) == 0);
    if (!row_regions_init(row)) {
        goto no_regions;
    }
    struct row_region *region = row_region_take(row);
    if (region == NULL || row_first_table(row, region) == NULL) {
        errno = ENOMEM;
        goto no_table;
    }
    if (!row_apart_begin(row)) {
        errno = ENOMEM;
        goto no_apart;
    }
    return true;

no_apart:
    row_retire_all(row);
    row_dispose(row);
no_table:
    row_regions_fini(row);
no_regions:
    pthread_mutex_destroy(&row->lock);
    return false;
}

void row_fini(struct row *row)
{
    row_parts_share(row, NULL);
    row_retire_all(row);
    row_apart_end(row);
    row_dispose(row);
    row_regions_fini(row);
    free(row->waiters.tickets);
    pthread_mutex_destroy(&row->lock);
}

void row_clear(struct row *row)
{
    struct row_region *region = row_region_take(row);
    if (region == NULL && !row->parted) { /* one too many until the keeper has cleared the others */
        region = row_region_obtain(row, row->config.table_bytes);
    }
    row_retire_all(row);
    if (region == NULL) { /* memory is refused: what is given back is enough */
        row_dispose(row);
        region = row->parted ? row_region_take(row) : row_region_take_for(row, 1);
    }
    row_lock(row);
    row->sample_count = 0;
    row->ahead_count = 0;
    row->unseen_count = 0;
    row_unlock(row);
    row_stream_forget(row);
    (void)row_apart_forget(row, 0, ROW_ID_MAX);
    if (row_first_table(row, region) == NULL) {
        row_dispose(row); /* what the old ones held is enough for one */
        CHECK(row_first_table(row, region) != NULL);
    }
    if (row->kind->reopened != NULL) {
        row->kind->reopened(row->engine);
    }
    row_log_first(row);
    row_parts_charge(row);
    row_cold_try(row);
    row_wake(row);
    row_ask(row);
}

/* The newest table is followed by one of the new configuration, or gives way to it if it is empty.
 */
static void renew_newest(struct row *row)
{
    struct row_table *newest = row->tables[row->count - 1];
    if (row->count == 1 && row_count_of(newest) == 0 && row_count_of(row->apart) == 0) {
        row_clear(row);
    } else if (newest->settled) { /* else the first opening will do it */
        atomic_fetch_or(&newest->wants, ROW_WANT_RENEW);
    }
}

/* Where tables are not dumped any more, those whose dump has not begun stay. */
static void stay_all(struct row *row)
{
    for (size_t i = 0; i < row->count && !row->config.dump; i++) {
        row_cold_stay(row->tables[i]);
    }
    row_cold_see(row);
}

void row_reconfigure(struct row *row, const struct row_config *config, bool renew)
{
    if (row->config.any_ids) {
        return;
    }
    CHECK(!config->any_ids);
    row->stored = (struct row_bounds){0};
    bool was_auto = row->config.late_room < 0.0;
    row->apart_old = row->apart_old || renew || config->table_bytes != row->config.table_bytes ||
                     config->tables != row->config.tables;
    row_lock(row); /* the keeper reads it outside the stop */
    take_config(row, config);
    row_unlock(row);
    if (!was_auto || config->late_room >= 0.0) {
        row->late_room = late_room_at_start(config);
    }
    for (size_t i = 0; i < row->count; i++) {
        row_allow(row->tables[i]);
        row->tables[i]->awaiting = false;
        row->tables[i]->warned = false;
        row->tables[i]->cluster_from = 0;
        row->tables[i]->bulk_from = 0;
    }
    row->untidy = true;
    stay_all(row);
    if (renew) {
        renew_newest(row);
    }
    row_look_again(row);
    row_ask(row);
}

void row_each(const struct row *row, row_visit *visit, void *context)
{
    for (size_t i = 0; i < row->count; i++) {
        visit(context, row->tables[i], false);
        struct row_table *layer = row->tables[i]->further;
        for (; layer != NULL; layer = layer->further) {
            visit(context, layer, true);
        }
    }
    if (row->apart != NULL) {
        visit(context, row->apart, false);
    }
}

struct serial_visit {
    engine_table_visit *visit;
    void *context;
};

static void visit_serial(void *context, struct row_table *table, bool layer)
{
    const struct serial_visit *to = context;
    (void)layer;
    to->visit(to->context, table->serial, table->layer);
}

void row_each_serial(const struct row *row, engine_table_visit *visit, void *context)
{
    struct serial_visit to = {visit, context};
    row_each(row, visit_serial, &to);
}
