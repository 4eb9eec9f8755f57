/*
 * table_apart.c: pairs a table keeps apart from its filter: those of ids far ahead, and all while
 * it does not know its ids. They go in place when it settles, or to a later table.
 */
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "phantom/table_private.h"

void phantom_apart_lower(struct phantom_table *t, uint64_t id)
{
    uint64_t first = atomic_load_explicit(&t->apart_first, memory_order_relaxed);
    while (id < first && !atomic_compare_exchange_weak(&t->apart_first, &first, id)) {
    }
}

/* A pair that is apart, or to be. */
struct pair {
    uint64_t id, hash, second;
};

static bool any_apart(const struct phantom_table *t)
{
    return t->apart && dict_count(t->apart) != 0;
}

static bool stands(const struct phantom_table *t, const struct pair *pair)
{
    uint64_t value[DICT_VALUE_WORDS];
    return dict_get(t->apart, pair->hash, (uint8_t)pair->second, value) && value[0] == pair->id &&
           value[1] == pair->second;
}

static bool put(struct phantom_table *t, const struct pair *pair)
{
    CHECK(t->apart);
    uint64_t value[DICT_VALUE_WORDS] = {pair->id, pair->second};
    if (dict_get(t->apart, pair->hash, (uint8_t)pair->second, NULL) || /* another pair's key */
        !dict_put(t->apart, pair->hash, (uint8_t)pair->second, value)) {
        return false;
    }
    phantom_apart_lower(t, pair->id);
    return true;
}

static struct pair pair_of(const struct phantom_member *member)
{
    return (struct pair){member->id, member->hash, member->second};
}

bool phantom_apart_holds(const struct phantom_table *t, const struct phantom_member *member)
{
    if (!any_apart(t)) {
        return false;
    }
    struct pair pair = {member->id, member->hash, phantom_second_hash(&t->secrets, member)};
    return stands(t, &pair);
}

bool phantom_apart_put(struct phantom_table *t, const struct phantom_member *member)
{
    struct pair pair = pair_of(member);
    row_changed(&t->row);
    return dict_count(t->apart) < t->apart_max && put(t, &pair);
}

bool phantom_apart_restore(struct phantom_table *t, const struct phantom_member *member)
{
    uint64_t value[DICT_VALUE_WORDS] = {member->id, member->second};
    while (!dict_put(t->apart, member->hash, (uint8_t)member->second, value)) {
        if (!dict_grow(&t->apart)) {
            return false;
        }
    }
    phantom_apart_lower(t, member->id);
    return true;
}

bool phantom_apart_remove(struct phantom_table *t, const struct phantom_member *member)
{
    struct pair pair = pair_of(member);
    return any_apart(t) && stands(t, &pair) &&
           dict_delete(t->apart, pair.hash, (uint8_t)pair.second);
}

/* ---- with the world stopped ---- */

struct pairs {
    uint64_t first, last; /* ids that are wanted */
    size_t count, room;
    struct pair *list;
};

static void gather_one(void *context, uint64_t hash, uint8_t sub, const uint64_t *value)
{
    struct pairs *pairs = context;
    CHECK((uint8_t)value[1] == sub);
    if (value[0] >= pairs->first && value[0] <= pairs->last) {
        CHECK(pairs->count < pairs->room);
        pairs->list[pairs->count++] = (struct pair){value[0], hash, value[1]};
    }
}

static int rising(const void *left, const void *right)
{
    uint64_t a = ((const struct pair *)left)->id;
    uint64_t b = ((const struct pair *)right)->id;
    return (a > b) - (a < b);
}

/* What is apart of ids first .. last, in rising order. The list is the caller's to free. */
static struct pairs gather(const struct phantom_table *t, uint64_t first, uint64_t last)
{
    struct pairs pairs = {.first = first, .last = last, .room = dict_count(t->apart)};
    pairs.list = memory_zalloc((pairs.room + 1) * sizeof(*pairs.list));
    dict_each(t->apart, gather_one, &pairs);
    qsort(pairs.list, pairs.count, sizeof(*pairs.list), rising);
    return pairs;
}

/* Deletes what was gathered, and finds the smallest id that is left. */
static void drop(struct phantom_table *t, const struct pairs *gone)
{
    for (size_t i = 0; i < gone->count; i++) {
        CHECK(dict_delete(t->apart, gone->list[i].hash, (uint8_t)gone->list[i].second));
    }
    struct pairs left = gather(t, 0, UINT64_MAX);
    atomic_store(&t->apart_first, left.count ? left.list[0].id : UINT64_MAX);
    free(left.list);
}

void phantom_table_settle(struct phantom_table *t)
{
    CHECK(t->magic == PHANTOM_TABLE_MAGIC && t->apart && !t->row.further && t->filter.words);
    struct pairs pairs = gather(t, 0, atomic_load(&t->row.frontier));
    for (size_t i = 0; i < pairs.count; i++) {
        phantom_filter_set(&t->filter, pairs.list[i].hash);
    }
    drop(t, &pairs);
    free(pairs.list);
}

/* False: memory is refused. */
static bool place(struct phantom_table *to, const struct pair *pair)
{
    if (row_place(&to->row, pair->id, true)) {
        phantom_filter_set(&to->filter, pair->hash);
        return true;
    }
    while (!put(to, pair)) { /* the keys are of one dict, so they differ: there is no place */
        if (!dict_grow(&to->apart)) {
            return false;
        }
    }
    return true;
}

bool phantom_table_move(struct phantom_table *from, struct phantom_table *to)
{
    CHECK(from->magic == PHANTOM_TABLE_MAGIC && from->apart && to->apart && to->filter.words);
    struct pairs pairs = gather(from, to->row.base, UINT64_MAX);
    bool fits = true;
    for (size_t i = 0; fits && i < pairs.count; i++) {
        fits = place(to, &pairs.list[i]);
    }
    if (fits) {
        drop(from, &pairs);
    }
    free(pairs.list);
    return fits;
}

/* ---- all of it ---- */

struct visiting {
    void (*visit)(void *context, uint64_t id);
    void *context;
};

static void visit_one(void *context, uint64_t hash, uint8_t sub, const uint64_t *value)
{
    (void)hash;
    (void)sub;
    const struct visiting *visiting = context;
    visiting->visit(visiting->context, value[0]);
}

void phantom_table_each_apart(const struct phantom_table *t,
                              void (*visit)(void *context, uint64_t id), void *context)
{
    struct visiting visiting = {visit, context};
    if (t->apart) {
        dict_each(t->apart, visit_one, &visiting);
    }
}

/* ---- invariants ---- */

static void check_one(void *context, uint64_t hash, uint8_t sub, const uint64_t *value)
{
    const struct phantom_table *t = context;
    CHECK((uint8_t)value[1] == sub);
    CHECK(value[0] >= t->row.base && value[0] <= t->row.last); /* T6 */
    CHECK(value[0] >= atomic_load(&t->apart_first));
    CHECK(!phantom_exception_stands(t, hash, value[1])); /* T7 */
}

void phantom_apart_check(const struct phantom_table *t)
{
    dict_each(t->apart, check_one, (void *)t);
    dict_check(t->apart); /* T5 */
}
