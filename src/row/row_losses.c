/* row_losses.c: what another configuration would have the row drop. */
#include <stdio.h>
#include <string.h>

#include "row/row_private.h"
#include "row/row_room.h"

static struct row_bounds bounds_of(const struct row_config *config)
{
    return (struct row_bounds){config->dumps_max, config->tables, config->table_bytes};
}

struct row_bounds row_bounds(const struct row *row)
{
    return row->stored.tables > 0 ? row->stored : bounds_of(&row->config);
}

static uint64_t losses_bytes_of(const struct row_table *table)
{
    uint64_t bytes = 0;
    for (; table != NULL; table = table->further) {
        bytes += table->cold ? 0 : table->region->bytes;
    }
    return bytes;
}

/* The oldest of those in memory, or not, that was opened at `serial` or later. */
static const struct row_table *oldest_from(const struct row *row, bool cold, uint64_t serial)
{
    const struct row_table *found = NULL;
    for (size_t i = 0; i < row->count; i++) {
        const struct row_table *table = row->tables[i];
        bool wanted = table->cold == cold && table->serial >= serial;
        if (wanted && (found == NULL || table->serial < found->serial)) {
            found = table;
        }
    }
    return found;
}

static uint64_t cold_tables(const struct row *row)
{
    uint64_t cold = 0;
    for (size_t i = 0; i < row->count; i++) {
        cold += row->tables[i]->cold;
    }
    return cold;
}

/* How many go so that dumps_max holds. */
static uint64_t too_many_dumps(const struct row *row, const struct row_bounds *bounds)
{
    uint64_t cold = cold_tables(row);
    return bounds->dumps_max > 0 && cold > bounds->dumps_max ? cold - bounds->dumps_max : 0;
}

/* How many go so that the others, and one that is opened, are what the row may hold. */
static uint64_t too_many_tables(const struct row *row, const struct row_bounds *bounds)
{
    uint64_t most = bounds->tables * bounds->table_bytes;
    uint64_t held = bounds->table_bytes;
    uint64_t n = 0;
    for (size_t i = 0; i < row->count; i++) {
        held += losses_bytes_of(row->tables[i]);
    }
    const struct row_table *table = oldest_from(row, false, 0);
    for (; held > most && table != NULL; n++) {
        held -= losses_bytes_of(table);
        table = oldest_from(row, false, table->serial + 1);
    }
    return n;
}

/* The first n of them, oldest first, but for those that go anyway. */
static void lose(const struct row *row, bool cold, uint64_t anyway, uint64_t n,
                 struct engine_loss *loss)
{
    const struct row_table *table = oldest_from(row, cold, 0);
    *loss = (struct engine_loss){.tables = n - anyway};
    strcpy(loss->name, cold ? ENGINE_LOSS_DUMPS : ENGINE_LOSS_TABLES);
    for (uint64_t i = 0; i < n && table != NULL; i++) {
        loss->records += i >= anyway ? row_held(row, table) : 0;
        table = oldest_from(row, cold, table->serial + 1);
    }
}

void row_losses(const struct row *row, const struct row_config *next, struct engine_loss *losses,
                size_t *count)
{
    if (row->config.any_ids) {
        return;
    }
    struct row_bounds was = row_bounds(row);
    struct row_bounds is = bounds_of(next);
    uint64_t anyway = too_many_dumps(row, &was);
    uint64_t dumps = too_many_dumps(row, &is);
    if (dumps > anyway) {
        lose(row, true, anyway, dumps, &losses[(*count)++]);
    }
    anyway = too_many_tables(row, &was);
    uint64_t tables = next->recycle ? too_many_tables(row, &is) : 0;
    if (tables > anyway) {
        lose(row, false, anyway, tables, &losses[(*count)++]);
    }
}
