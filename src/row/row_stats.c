/* row_stats.c: figures, and the check of what must hold. */
#include "base/huge.h"
#include "row/row_parts.h"

#define SHARE_DIGITS 4

static uint64_t waits_of(const struct row *row)
{
    row_lock(row);
    uint64_t waits = row->waits;
    row_unlock(row);
    return waits;
}

static const char *oldest_of(const struct row *row)
{
    if (row->config.recycle) {
        return "recycle";
    }
    return row_dumps(row) ? "dump" : "refuse";
}

static uint64_t frontier_of(const struct row *row)
{
    uint64_t last = 0;
    for (size_t i = 0; row->parted && i < row->count; i++) { /* the largest id, in whichever part */
        last = row_larger(last, id_span_last(&row->tables[i]->ids));
    }
    bool one = row->count > 0 && !row->parted;
    return one ? row_frontier_of(row->tables[row->count - 1]) : last;
}

void row_emit_space(const struct row *row, const struct emitter *to)
{
    uint64_t layers = 0;
    uint64_t cold = 0;
    uint64_t leaving = 0;
    for (size_t i = 0; i < row->count; i++) {
        const struct row_table *layer = row->tables[i]->further;
        for (; layer != NULL; layer = layer->further) {
            layers++;
        }
        cold += row->tables[i]->cold;
        leaving += row->tables[i]->leaving;
    }
    emit_u64(to, "tables", row->count);
    emit_u64(to, "layers", layers);
    emit_u64(to, "tables_max", row->config.tables);
    emit_u64(to, "spare", row_regions_free(row));
    emit_u64(to, "frontier", frontier_of(row));
    emit_u64(to, "ahead_ids", row->apart ? row_count_of(row->apart) : 0);
    emit_real(to, "late_room", SHARE_DIGITS, row->late_room);
    emit_text(to, "oldest", oldest_of(row));
    emit_u64(to, "cold_tables", cold);
    emit_u64(to, "leaving_tables", leaving);
    emit_u64(to, "recycled_tables", row->recycled_tables);
    emit_u64(to, "recycled_ids", row->recycled_ids);
    emit_u64(to, "dropped_ranges", row->dropped_ranges);
    emit_u64(to, "waits", waits_of(row));
    emit_u64(to, "growth_left_bytes", row->parted ? row_parts_left(row) : 0);
}

static const char *state_of(const struct row_table *table)
{
    if (!table->settled) {
        return "sampling";
    }
    return table->closed ? "closed" : "open";
}

/* Of the table and its layers. */
static struct huge_bytes huge_bytes_of(const struct row_table *table)
{
    struct huge_bytes sum = {0, 0};
    for (; table != NULL; table = table->further) {
        if (table->region != NULL) {
            struct huge_bytes own = huge_of(table->region->memory, table->region->bytes);
            sum.resident += own.resident;
            sum.huge += own.huge;
        }
    }
    return sum;
}

void row_emit_table(const struct row *row, const struct row_table *table, const struct emitter *to)
{
    CHECK(row->count > 0);
    struct emit_numbered numbered;
    struct emitter own = emit_numbered(&numbered, to, table->serial);
    uint64_t first = id_span_first(&table->ids);
    uint64_t late = atomic_load(&table->late);
    uint64_t count = row_count_all(table);
    uint64_t layers = 0;
    for (const struct row_table *layer = table; layer != NULL; layer = layer->further) {
        layers++;
    }
    uint64_t reach = table->settled ? row_reach(table) : 0;
    emit_u64(&own, "base", table->base);
    emit_u64(&own, "range_last", table->last);
    emit_u64(&own, "first_id", first == UINT64_MAX ? 0 : first);
    emit_u64(&own, "last_id", id_span_last(&table->ids));
    emit_u64(&own, "frontier", row_frontier_of(table));
    emit_u64(&own, "late", late);
    emit_u64(&own, "apart", atomic_load(&table->apart));
    emit_u64(&own, "dropped_ranges", table->dropped.count);
    emit_u64(&own, "layers", layers);
    emit_u64(&own, "opened_at", table->opened_s);
    if (!row->config.any_ids) {
        emit_u64(&own, "reach", reach < ROW_ID_MAX ? reach : ROW_ID_MAX);
        emit_u64(&own, "fill", table->fill);
    }
    struct huge_bytes huge = huge_bytes_of(table);
    emit_u64(&own, "resident_bytes", huge.resident);
    emit_u64(&own, "huge_page_bytes", huge.huge);
    emit_share(&own, "late_share", late < count ? late : count, count);
    emit_u64(&own, "cold", table->cold);
    emit_text(&own, "state", state_of(table));
}
