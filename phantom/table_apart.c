/*
 * table_apart.c: pairs apart, exactly, in the one table of the row that is a dict alone: those of
 * ids far ahead, and all while the row does not know its ids. They go in place as row.h says.
 */
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "phantom/table_private.h"

/* A pair that is apart, or to be. */
struct pair {
    uint64_t id, hash, second;
};

static bool stands(const struct phantom_table *apart, const struct pair *pair)
{
    uint64_t value[DICT_VALUE_WORDS];
    return dict_get(apart->apart, pair->hash, (uint8_t)pair->second, value) &&
           value[0] == pair->id && value[1] == pair->second;
}

static bool put_pair(struct phantom_table *apart, const struct pair *pair)
{
    uint64_t value[DICT_VALUE_WORDS] = {pair->id, pair->second};
    return !dict_get(apart->apart, pair->hash, (uint8_t)pair->second, NULL) && /* another's key */
           dict_put(apart->apart, pair->hash, (uint8_t)pair->second, value);
}

static struct pair pair_of(const struct phantom_member *member)
{
    return (struct pair){member->id, member->hash, member->second};
}

bool phantom_apart_holds(const struct phantom_table *t, const struct phantom_member *member)
{
    if (!row_may_be_apart(&t->row, member->id)) {
        return false;
    }
    struct pair pair = {member->id, member->hash, phantom_second_hash(&t->secrets, member)};
    return stands(phantom_apart_of(t), &pair);
}

bool phantom_apart_put(struct phantom_table *apart, const struct phantom_member *member)
{
    struct pair pair = pair_of(member);
    row_changed(&apart->row);
    return dict_count(apart->apart) < apart->apart_max && put_pair(apart, &pair);
}

bool phantom_apart_restore(struct phantom_table *apart, const struct phantom_member *member)
{
    uint64_t value[DICT_VALUE_WORDS] = {member->id, member->second};
    while (!dict_put(apart->apart, member->hash, (uint8_t)member->second, value)) {
        if (!dict_grow(&apart->apart)) {
            return false;
        }
    }
    return true;
}

bool phantom_apart_remove(struct phantom_table *apart, const struct phantom_member *member)
{
    struct pair pair = pair_of(member);
    if (!stands(apart, &pair)) {
        return false;
    }
    row_changed(&apart->row);
    return dict_delete(apart->apart, pair.hash, (uint8_t)pair.second);
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

/* Returns the pairs of ids first .. last, in rising order. The caller frees the list. */
static struct pairs gather_pairs(const struct phantom_table *apart, uint64_t first, uint64_t last)
{
    struct pairs pairs = {.first = first, .last = last, .room = dict_count(apart->apart)};
    pairs.list = memory_zalloc((pairs.room + 1) * sizeof(*pairs.list));
    dict_each(apart->apart, gather_one, &pairs);
    qsort(pairs.list, pairs.count, sizeof(*pairs.list), rising);
    return pairs;
}

static void drop_pair(struct phantom_table *apart, const struct pair *pair)
{
    row_changed(&apart->row);
    CHECK(dict_delete(apart->apart, pair->hash, (uint8_t)pair->second));
}

/* Puts a pair into another table for pairs apart. False: memory is refused. */
static bool put_grow(struct phantom_table *to, const struct pair *pair)
{
    while (!put_pair(to, pair)) { /* the keys are of one dict, so they differ: there is no place */
        if (!dict_grow(&to->apart)) {
            return false;
        }
    }
    return true;
}

static void hand_over_pair(const struct pair *pair, uint32_t space, struct change_sink *sink)
{
    struct change change = {.type = CHANGE_MEMBER_ADD,
                            .space = space,
                            .place = CHANGE_INSIDE,
                            .id = pair->id,
                            .member = {pair->hash, pair->second}};
    (void)sink->functions->put(sink, &change);
}

/* False: it stays apart. */
static bool place_one(struct row *row, struct phantom_table *apart, struct phantom_table *to,
                      const struct pair *pair, struct change_sink *sink)
{
    const struct phantom_member member = {
        .id = pair->id, .hash = pair->hash, .second = pair->second};
    bool room = to->row.is_apart || phantom_table_room(to, &member);
    if (!room || !row_place(row, &to->row, pair->id)) {
        return false;
    }
    if (to->row.is_apart) {
        return put_grow(to, pair);
    }
    phantom_table_set_bits(to, pair->hash);
    drop_pair(apart, pair);
    row_removed(&apart->row, &apart->row, pair->id);
    hand_over_pair(pair, row->space, sink);
    return true;
}

bool phantom_table_place(struct row *row, struct phantom_table *apart, struct phantom_table *to,
                         struct change_sink *sink)
{
    CHECK(apart->apart && to->magic == PHANTOM_TABLE_MAGIC);
    struct pairs pairs = gather_pairs(apart, to->row.base, to->row.last);
    bool placed = true;
    for (size_t i = 0; placed && i < pairs.count; i++) {
        placed = place_one(row, apart, to, &pairs.list[i], sink);
    }
    free(pairs.list);
    return placed;
}

uint64_t phantom_table_forget(struct phantom_table *apart, uint64_t first, uint64_t last)
{
    struct pairs pairs = gather_pairs(apart, first, last);
    for (size_t i = 0; i < pairs.count; i++) {
        drop_pair(apart, &pairs.list[i]);
    }
    free(pairs.list);
    return pairs.count;
}

/* ---- all of it ---- */

/* ---- invariants ---- */

static void check_one(void *context, uint64_t hash, uint8_t sub, const uint64_t *value)
{
    const struct phantom_table *apart = context;
    const struct row_table *table = row_find(apart->row.owner, value[0]);
    CHECK((uint8_t)value[1] == sub);
    CHECK(table && row_may_be_apart(table, value[0]));                                     /* T6 */
    CHECK(!phantom_exception_stands((const struct phantom_table *)table, hash, value[1])); /* T7 */
}

void phantom_apart_check(const struct phantom_table *apart)
{
    CHECK(dict_count(apart->apart) == atomic_load(&apart->row.count));
    dict_each(apart->apart, check_one, (void *)apart);
    dict_check(apart->apart); /* T5 */
}
