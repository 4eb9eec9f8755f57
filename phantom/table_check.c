/*
 * table_check.c: the invariants of a table.
 */
#include "base/check.h"
#include "phantom/table_private.h"

#define CHECKED_WHOLE_BYTES_MAX (1ull << 30)

static bool says_yes(const struct row_table *table, uint64_t hash)
{
    for (; table; table = table->further) {
        if (phantom_filter_holds(&((const struct phantom_table *)table)->filter, hash)) {
            return true;
        }
    }
    return false;
}

/* T9 */
static void check_added(void *context, uint64_t line, uint8_t sub, const uint64_t *value)
{
    const struct phantom_filter *filter = context;
    (void)sub;
    for (size_t i = 0; i < PHANTOM_LINE_WORDS; i++) {
        uint64_t set = words_load(filter->words, line * PHANTOM_LINE_BYTES + i * 8, 8);
        CHECK((value[i] & ~set) == 0);
    }
}

static void check_dump(const struct phantom_table *t)
{
    const struct dict *overlay = phantom_dump_overlay(t->dump, 1);
    CHECK((phantom_dump_file(t->dump) != NULL) == (t->filter.words == NULL)); /* T10 */
    phantom_dump_check(t->dump, t->filter.lines);
    if (t->filter.words && overlay) {
        dict_each(overlay, check_added, (void *)&t->filter);
    }
}

static void check_exception(void *context, uint64_t hash, uint8_t sub, const uint64_t *value)
{
    const struct phantom_table *t = context;
    CHECK((uint8_t)*value == sub);
    CHECK(t->away || says_yes(&t->row, hash)); /* T4 */
}

/* Of a table or a layer. */
static void check_filter(const struct phantom_table *t)
{
    CHECK(t->magic == PHANTOM_TABLE_MAGIC);
    uint64_t put = atomic_load(&t->row.count);
    CHECK(put <= t->shape.capacity || t->row.whole); /* T2, R6 */
    CHECK(t->row.capacity == t->shape.capacity);
    CHECK(t->filter.words || t->dump);
    if (t->dump) {
        check_dump(t);
    }
    if (t->filter.words && t->shape.table_bytes <= CHECKED_WHOLE_BYTES_MAX) {
        uint64_t set = phantom_filter_count(&t->filter);
        CHECK(set <= put * t->filter.bits && (put == 0) == (set == 0)); /* T3 */
    }
}

static void phantom_check_layer(const struct phantom_table *t, const struct phantom_table *layer)
{
    check_filter(layer);
    CHECK(!layer->apart && !layer->exceptions && !layer->stripes); /* T8 */
    CHECK(layer->filter.lines == t->filter.lines && layer->filter.bits == t->filter.bits);
}

void phantom_table_check(const struct phantom_table *t)
{
    if (t->apart) {
        phantom_apart_check(t);
        return;
    }
    check_filter(t);
    const struct phantom_table *layer = (const struct phantom_table *)t->row.further;
    CHECK(t->away == (!t->filter.words || (layer && !layer->filter.words))); /* T10 */
    for (size_t i = 0; i < PHANTOM_STRIPES; i++) {
        CHECK(!(__atomic_load_n(&t->stripes[i], __ATOMIC_ACQUIRE) & VERLOCK_LOCKED)); /* T1 */
    }
    for (; layer; layer = (const struct phantom_table *)layer->row.further) {
        phantom_check_layer(t, layer);
    }
    if (t->exceptions) {
        dict_each(t->exceptions, check_exception, (void *)t);
        dict_check(t->exceptions); /* T5 */
    }
}
