/* row_equal.c: table by table. */
#include "tests/support/row_equal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "row/id_span.h"

/* Closed or about to be: the keeper notes it at the table's next want. */
static bool at_end(const struct row_table *table)
{
    return table->settled && table->frontier == table->last;
}

static void same_shape(const struct row_table *live, const struct row_table *again)
{
    assert_int_equal(live->serial, again->serial);
    assert_int_equal(live->base, again->base);
    assert_int_equal(live->last, again->last);
    assert_int_equal(live->window_last, again->window_last);
    assert_int_equal(live->low, again->low);
    assert_int_equal(live->step, again->step);
    assert_int_equal(live->range, again->range);
    assert_int_equal(live->reach_min, again->reach_min);
    assert_int_equal(live->capacity, again->capacity);
    assert_int_equal(live->fill, again->fill);
    assert_int_equal(live->opened_s, again->opened_s);
    assert_int_equal(live->cold, again->cold);
    if (!live->cold) {
        assert_int_equal(live->region->bytes, again->region->bytes);
    }
    assert_int_equal(live->settled, again->settled);
    assert_int_equal(live->jumped, again->jumped);
    assert_int_equal(live->whole, again->whole);
    assert_int_equal(at_end(live), at_end(again));
    assert_int_equal(live->dropped.count, again->dropped.count);
    assert_memory_equal(live->dropped.at, again->dropped.at,
                        live->dropped.count * sizeof(live->dropped.at[0]));
}

static void same_progress(const struct row_table *live, const struct row_table *again)
{
    assert_int_equal(live->frontier, again->frontier);
    assert_int_equal(live->trusted, again->trusted);
    assert_int_equal(live->newer, again->newer);
    assert_int_equal(live->newer_least, again->newer_least);
    assert_int_equal(live->count, again->count);
}

/* The span of ids: one that found no place is in the live one's. */
static void same_history(const struct row_table *live, const struct row_table *again)
{
    assert_int_equal(live->late, again->late);
    assert_int_equal(live->gone, again->gone);
    assert_true(id_span_first(&live->ids) <= id_span_first(&again->ids));
    assert_true(id_span_last(&live->ids) >= id_span_last(&again->ids));
}

static void same_table(const struct row_table *live, const struct row_table *again, bool exact)
{
    same_shape(live, again);
    same_progress(live, again);
    if (exact) {
        same_history(live, again);
    }
}

void row_equal(const struct row *live, const struct row *again, bool exact)
{
    assert_int_equal(live->count, again->count);
    for (size_t i = 0; i < live->count; i++) {
        const struct row_table *a = live->tables[i];
        const struct row_table *b = again->tables[i];
        for (; a != NULL && b != NULL; a = a->further, b = b->further) {
            same_table(a, b, exact);
            assert_int_equal(a->layer, b->layer);
        }
        assert_true(a == NULL && b == NULL);
    }
    assert_true(again->serials <= live->serials); /* of one that came and went nothing is left */
    if (exact) {
        assert_int_equal(live->serials, again->serials);
        assert_int_equal(live->recycled_tables, again->recycled_tables);
        assert_int_equal(live->recycled_ids, again->recycled_ids);
    }
}
