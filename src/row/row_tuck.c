/*
 * row_tuck.c: ids apart that are not ahead any more go in place, so that the room apart is there
 * for those that are.
 */
#include "row/row_policy.h"
#include "row/row_private.h"

#define PASSED_PART 8 /* of what is apart, which the frontier passes before it is worth a stop */

struct above {
    uint64_t frontier;
    size_t count;
    uint64_t ids[ROW_SAMPLE_MAX]; /* the first that were found */
};

static void note_above(void *context, uint64_t id)
{
    struct above *above = context;
    if (id > above->frontier) {
        if (above->count < ROW_SAMPLE_MAX) {
            above->ids[above->count] = id;
        }
        above->count++;
    }
}

static void find_above(const struct row *row, const struct row_table *table, struct above *above)
{
    above->frontier = row_frontier_of(table);
    above->count = 0;
    row->functions->each_apart(table, note_above, above);
}

static size_t noted_in(const struct above *above)
{
    return above->count < ROW_SAMPLE_MAX ? above->count : ROW_SAMPLE_MAX;
}

void row_tuck(struct row *row, struct row_table *table)
{
    struct above above;
    CHECK(table->settled && row_can_move(table) && !table->cold);
    row->functions->settle(row->engine, table);
    find_above(row, table, &above);
    atomic_store(&table->apart, above.count);
    row_policy_sort(above.ids, noted_in(&above));
    uint64_t next = above.count > 0 ? above.ids[noted_in(&above) / PASSED_PART] : UINT64_MAX;
    atomic_store(&table->tuck_at, next);
    row_touch(table);
    row_log_put(row, CHANGE_EVENT_SETTLE, table);
}

bool row_holds_passed(const struct row_table *table)
{
    return row_frontier_of(table) >= atomic_load_explicit(&table->tuck_at, memory_order_relaxed);
}

bool row_has_none_in_place(const struct row_table *table)
{
    return row_frontier_of(table) < table->base && row_count_of(table) > 0;
}

void row_put_in_place(struct row *row, struct row_table *table)
{
    struct above above;
    CHECK(row_has_none_in_place(table) && !row_is_going(table));
    find_above(row, table, &above);
    if (above.count == 0) {
        return;
    }
    struct row_span span = row_policy_span(above.ids, noted_in(&above));
    uint64_t high = span.high < table->window_last ? span.high : table->window_last;
    row_start_at(table, high);
    row_tuck(row, table);
}
