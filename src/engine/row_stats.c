/* row_stats.c: figures, and the check of what must hold. */
#include "engine/row_private.h"

#include <inttypes.h>
#include <stdio.h>

#define NAME_BYTES      64
#define SHARE_DIGITS    4
#define GROWING_FIGURES 2 /* the last ones */

static uint64_t waits_of(const struct row *row)
{
    row_lock(row);
    uint64_t waits = row->waits;
    row_unlock(row);
    return waits;
}

void row_emit_space(const struct row *row, const struct emitter *to)
{
    uint64_t layers = 0;
    uint64_t apart = 0;
    for (size_t i = 0; i < row->count; i++) {
        layers += row->tables[i]->further != NULL;
        apart += atomic_load(&row->tables[i]->apart);
    }
    emit_u64(to, "tables", row->count);
    emit_u64(to, "layers", layers);
    emit_u64(to, "tables_max", row->config.tables);
    emit_u64(to, "spare", row_regions_free(row));
    emit_u64(to, "frontier", row_frontier_of(row->tables[row->count - 1]));
    emit_u64(to, "ahead_ids", apart);
    emit_real(to, "late_room", SHARE_DIGITS, row->late_room);
    emit_text(to, "oldest", row->config.recycle ? "recycle" : "refuse");
    emit_u64(to, "recycled_tables", row->recycled_tables);
    emit_u64(to, "recycled_ids", row->recycled_ids);
    emit_u64(to, "waits", waits_of(row));
}

static const char *state_of(const struct row_table *table)
{
    if (!table->settled) {
        return "sampling";
    }
    return table->closed ? "closed" : "open";
}

/* The figures of a table that are numbers. */
struct figure {
    const char *name;
    uint64_t value;
};

static void emit_of_table(const struct row_table *table, const char *name, const struct emitter *to,
                          const char *text)
{
    char full[NAME_BYTES];
    snprintf(full, sizeof full, "%" PRIu64 ":%s", table->serial, name);
    emit_text(to, full, text);
}

static void emit_number(const struct row_table *table, const struct emitter *to,
                        const struct figure *figure)
{
    char full[NAME_BYTES];
    snprintf(full, sizeof full, "%" PRIu64 ":%s", table->serial, figure->name);
    emit_u64(to, full, figure->value);
}

void row_emit_table(const struct row *row, const struct row_table *table, const struct emitter *to)
{
    CHECK(row->count > 0);
    uint64_t first = id_span_first(&table->ids);
    uint64_t late = atomic_load(&table->late);
    uint64_t count = row_count_of(table) + (table->further ? row_count_of(table->further) : 0);
    uint64_t reach = table->settled ? row_reach(table) : 0;
    const struct figure figures[] = {
        {"base", table->base},
        {"range_last", table->last},
        {"first_id", first == UINT64_MAX ? 0 : first},
        {"last_id", id_span_last(&table->ids)},
        {"frontier", row_frontier_of(table)},
        {"late", late},
        {"apart", atomic_load(&table->apart)},
        {"layers", table->further ? 2 : 1},
        {"opened_at", table->opened_s},
        /* Of growing ids. */
        {"reach", reach < ROW_ID_MAX ? reach : ROW_ID_MAX},
        {"fill", table->fill},
    };
    size_t shown = sizeof figures / sizeof figures[0] - (row->config.any_ids ? GROWING_FIGURES : 0);
    for (size_t i = 0; i < shown; i++) {
        emit_number(table, to, &figures[i]);
    }
    char full[NAME_BYTES];
    snprintf(full, sizeof full, "%" PRIu64 ":late_share", table->serial);
    emit_share(to, full, late < count ? late : count, count);
    emit_of_table(table, "state", to, state_of(table));
}
