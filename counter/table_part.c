/*
 * table_part.c: a table that is a part of a space of any ids (row/row_parts.h): it holds the ids
 * whose key, which is the permuted id, lies in its range. All parts of a space have one permutation
 * and one secret, so a record that goes from one part to another needs its key alone.
 *
 * A part's number of groups need not be a power of two: the home is y * groups / 2^b, where y is
 * the low b bits of the key. The keys of one home are neighbours, so the low bits of y, as many as
 * their number takes, tell them apart: these are the remainder. A larger part has its groups in the
 * same order of keys, so records move from page to page in rising order.
 */
#include <stdlib.h>

#include "counter/table_private.h"

#define PAGE_GROUPS_MAX (TABLE_PAGE_BYTES / TABLE_GROUP_BYTES)

/* ---- where a key lies ---- */

/* The low bits of a key. */
static uint64_t part_low_bits(uint64_t key, unsigned bits)
{
    return key & (UINT64_MAX >> (64 - bits));
}

/* Returns the first y of a home, in a table of this many groups over 2^bits keys. */
static uint64_t part_start_of(uint64_t group, uint64_t groups, unsigned bits)
{
    return (uint64_t)((((unsigned __int128)group << bits) + groups - 1) / groups);
}

static uint64_t part_group_of(uint64_t y, uint64_t groups, unsigned bits)
{
    return (uint64_t)((unsigned __int128)y * groups >> bits);
}

void table_part_locate(const struct counter_table *t, uint64_t key, struct counter_locus *locus)
{
    uint64_t y = part_low_bits(key, t->shape.part_bits);
    locus->group = part_group_of(y, t->shape.groups, t->shape.part_bits);
    locus->rem = part_low_bits(y, 8 * t->shape.rem_bytes);
}

/* The y of a remainder, given the first one of its home. */
static uint64_t part_y_from(const struct counter_table *t, uint64_t start, uint64_t rem)
{
    return start + part_low_bits(rem - start, 8 * t->shape.rem_bytes);
}

static uint64_t part_prefix_of(const struct counter_table *t)
{
    return t->row.base >> t->shape.part_bits << t->shape.part_bits;
}

uint64_t table_part_key(const struct counter_table *t, uint64_t home, uint64_t rem)
{
    uint64_t start = part_start_of(home, t->shape.groups, t->shape.part_bits);
    return part_prefix_of(t) | part_y_from(t, start, rem);
}

unsigned counter_part_bits(uint64_t base, uint64_t last, unsigned window_bits)
{
    uint64_t top = UINT64_MAX >> (64 - window_bits);
    uint64_t keys = (last < top ? last : top) - base + 1;
    CHECK(base <= top && (keys & (keys - 1)) == 0 && (base & (keys - 1)) == 0);
    return (unsigned)__builtin_ctzll(keys);
}

/* ---- records go to another part ---- */

struct moving {
    const struct counter_table *from;
    struct counter_table *to;
    uint64_t base, last; /* of the keys that go */
    uint64_t moved;
    bool refused;                     /* memory */
    uint64_t starts[PAGE_GROUPS_MAX]; /* of the page's homes; of a part alone */
};

static bool part_goes(const struct moving *m, uint64_t key)
{
    return key >= m->base && key <= m->last;
}

static void part_put(struct moving *m, uint64_t key, uint64_t id, const uint64_t *payload)
{
    struct counter_table *to = m->to;
    struct counter_locus locus = {.id = id};
    struct table_hold hold;
    table_part_locate(to, key, &locus);
    bool stored = false;
    while (!stored && !m->refused) {
        table_hold_home(to, &locus, &hold);
        stored = table_insert_counted(to, &locus, &hold, payload);
        table_release(&hold);
        m->refused = !stored && !table_dicts_grow(to);
    }
    m->moved += stored;
}

/* The key of a place of a page whose `starts` are known. */
static uint64_t part_key_of(const struct moving *m, const shared_word *words, uint64_t group,
                            uint32_t place, uint32_t word)
{
    const struct counter_table *t = m->from;
    uint64_t rem = group_rem(t, words, place);
    bool alternate = group_choices(t, words, word) >> place & 1;
    uint64_t home = alternate ? group_other(t, group, rem_hash(t, rem)) : group;
    if (t->shape.part_bits == 0) { /* of a version that knew no parts */
        return home << (t->shape.window_bits - t->shape.group_bits) | rem;
    }
    return part_prefix_of(t) | part_y_from(t, m->starts[home % t->page_groups], rem);
}

static void part_move_group(struct moving *m, uint64_t group)
{
    const struct counter_table *t = m->from;
    const shared_word *words = group_words(t, group);
    uint32_t word = verlock_read(group_lock(t, words));
    uint32_t count = group_count(t, word);
    size_t bytes = t->shape.payload_bytes;
    for (uint32_t place = 0; place < count && !m->refused; place++) {
        uint64_t key = part_key_of(m, words, group, place, word);
        if (part_goes(m, key)) {
            uint64_t payload[SCHEMA_PAYLOAD_WORDS] = {0};
            words_copy_out(words, place * bytes, bytes, payload);
            part_put(m, key, permute_back(&t->permute, key) + t->origin, payload);
        }
    }
}

/* They are the table's no more. */
static void part_clear_group(const struct moving *m, uint64_t group)
{
    const struct counter_table *t = m->from;
    struct table_hold hold = {.count = 0};
    struct table_held *held = table_hold_group(t, &hold, group);
    CHECK(held != NULL); /* nobody else is there */
    for (uint32_t place = group_count(t, held->word); place-- > 0;) {
        if (part_goes(m, part_key_of(m, held->words, group, place, held->word))) {
            table_remove(t, held, place);
        }
    }
    table_release(&hold);
}

static uint64_t part_page_of(const struct counter_table *t, uint64_t key)
{
    unsigned bits = t->shape.part_bits != 0 ? t->shape.part_bits : t->shape.window_bits;
    return part_group_of(part_low_bits(key, bits), t->shape.groups, bits) / t->page_groups;
}

/* All groups where what goes may lie. */
static void part_each_group(struct moving *m, bool clears)
{
    const struct counter_table *t = m->from;
    uint64_t top = t->permute.mask;
    uint64_t last_page = part_page_of(t, m->last < top ? m->last : top);
    for (uint64_t page = part_page_of(t, m->base); page <= last_page && !m->refused; page++) {
        for (unsigned i = 0; t->shape.part_bits != 0 && i < t->page_groups; i++) {
            m->starts[i] =
                part_start_of(page * t->page_groups + i, t->shape.groups, t->shape.part_bits);
        }
        for (unsigned i = 0; i < t->page_groups; i++) {
            if (clears) {
                part_clear_group(m, page * t->page_groups + i);
            } else {
                part_move_group(m, page * t->page_groups + i);
            }
        }
    }
}

static void part_move_entry(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct moving *m = context;
    uint64_t key = row_part_key(&m->from->row, id);
    (void)sub;
    if (part_goes(m, key) && !m->refused) {
        uint64_t payload[SCHEMA_PAYLOAD_WORDS] = {0};
        for (unsigned i = 0; i < (m->from->shape.payload_bytes + 7) / 8; i++) {
            payload[i] = value[i];
        }
        part_put(m, key, id, payload);
    }
}

static void part_move_value(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct moving *m = context;
    bool stored = !part_goes(m, row_part_key(&m->from->row, id));
    while (!stored && !m->refused) {
        stored = dict_put(m->to->aux, id, sub, value);
        m->refused = !stored && !table_dicts_grow(m->to);
    }
}

struct leaving {
    const struct moving *moving;
    size_t count;
    struct leaving_entry {
        uint64_t id;
        uint8_t sub;
    } * entries;
};

static void note_leaving(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct leaving *leaving = context;
    (void)value;
    if (part_goes(leaving->moving, row_part_key(&leaving->moving->from->row, id))) {
        leaving->entries[leaving->count++] = (struct leaving_entry){id, sub};
    }
}

static void part_clear_dict(const struct moving *m, struct dict *dict)
{
    struct leaving leaving = {.moving = m};
    leaving.entries = memory_zalloc((dict_count(dict) + 1) * sizeof(*leaving.entries));
    dict_each(dict, note_leaving, &leaving);
    for (size_t i = 0; i < leaving.count; i++) {
        dict_delete(dict, leaving.entries[i].id, leaving.entries[i].sub);
    }
    free(leaving.entries);
}

bool counter_table_part_move(struct counter_table *from, struct counter_table *to)
{
    CHECK(from->magic == TABLE_MAGIC && to->shape.part_bits != 0 && from->secret == to->secret);
    CHECK(from->shape.payload_bytes == to->shape.payload_bytes && from->memory && to->memory);
    struct moving m = {.from = from, .to = to, .base = to->row.base, .last = to->row.last};
    dict_each(from->aux, part_move_value, &m);
    part_each_group(&m, false);
    dict_each(from->extend, part_move_entry, &m);
    if (m.refused) {
        return false;
    }
    atomic_store(&to->row.count, m.moved);
    if (m.last < from->row.last) {
        part_each_group(&m, true);
        part_clear_dict(&m, from->extend);
        part_clear_dict(&m, from->aux);
    }
    CHECK(atomic_fetch_sub(&from->row.count, m.moved) >= m.moved);
    return true;
}

/* ---- how large ---- */

uint64_t counter_table_part_fill(const struct counter_table *t, uint64_t base, uint64_t last,
                                 uint64_t bytes)
{
    struct counter_shape shape = {.table_bytes = bytes,
                                  .payload_bytes = t->shape.payload_bytes,
                                  .window_bits = t->shape.window_bits};
    counter_shape_part(&shape, counter_part_bits(base, last, t->shape.window_bits));
    return shape.capacity;
}

static double part_used(const struct dict *dict)
{
    return (double)dict_count(dict) / (double)dict_places(dict);
}

/* A pool that takes what such a dict holds; full: and as much again. */
static uint64_t part_pool_for(const struct dict *dict, uint64_t pool, double share, bool full)
{
    double entries = (double)dict_count(dict) * share;
    double least = full ? 2 * (double)dict_pool_bytes(dict) * share : 0;
    while ((double)pool < least ||
           (double)pool / (double)dict_entry_bytes(dict) * TABLE_DICT_TAKES / 100 < entries) {
        pool *= 2;
    }
    return pool;
}

void table_part_pools(struct counter_shape *shape, const struct counter_table *of)
{
    double share = (double)shape->table_bytes / (double)of->shape.table_bytes;
    share = share < 1 ? share : 1;
    /* The part grows before its time, so a pool is full: the pool grows too, or it would be full
     * again. */
    bool full = atomic_load(&of->row.count) < of->row.fill;
    bool aux = part_used(of->aux) > part_used(of->extend);
    if (full) { /* else less will spill: it is larger */
        shape->extend_bytes = part_pool_for(of->extend, shape->extend_bytes, share, !aux);
    }
    shape->aux_bytes = part_pool_for(of->aux, shape->aux_bytes, share, full && aux);
}
