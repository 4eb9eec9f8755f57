/*
 * table_insert.c: storing a new record, and taking one out. Under the locks of a struct table_hold.
 */
#include "counter/table_private.h"

struct table_held *table_hold_group(const struct counter_table *t, struct table_hold *hold,
                                    uint64_t group)
{
    CHECK(hold->count < TABLE_HOLD_MAX);
    struct table_held *held = &hold->held[hold->count];
    held->words = group_words(t, group);
    held->lock = group_lock(t, held->words);
    held->word = __atomic_load_n(held->lock, __ATOMIC_ACQUIRE);
    held->version_one = t->version_one;
    held->changed = false;
    held->group = group;
    if ((held->word & VERLOCK_LOCKED) || !verlock_try(held->lock, held->word)) {
        return NULL;
    }
    hold->count++;
    return held;
}

static void set_choice(const struct counter_table *t, struct table_held *held, uint32_t place,
                       bool alternate)
{
    if (t->wide) {
        size_t at = t->shape.group_bytes - 8;
        uint64_t choices = words_load(held->words, at, 4);
        choices = (choices & ~(1ull << place)) | (uint64_t)alternate << place;
        words_store(held->words, at, 4, choices);
        return;
    }
    uint32_t bit = 1u << (GROUP_CHOICE_SHIFT + place);
    held->word = alternate ? held->word | bit : held->word & ~bit;
}

static void store_record(const struct counter_table *t, struct table_held *held, uint32_t place,
                         uint64_t rem, bool alternate, const uint64_t *payload)
{
    const struct counter_shape *shape = &t->shape;
    words_copy_in(held->words, (size_t)place * shape->payload_bytes, shape->payload_bytes, payload);
    words_store(held->words, t->rem_offset + place * shape->rem_bytes, shape->rem_bytes, rem);
    set_choice(t, held, place, alternate);
    held->changed = true;
}

static bool has_room(const struct counter_table *t, uint32_t word)
{
    return group_count(t, word) < t->shape.places;
}

/* Copies a record to place `to_place` of another held group (or the same). */
static void copy_record(const struct counter_table *t, const struct table_held *from,
                        uint32_t place, struct table_held *to, uint32_t to_place, bool alternate)
{
    uint64_t payload[SCHEMA_PAYLOAD_WORDS];
    size_t bytes = t->shape.payload_bytes;
    words_copy_out(from->words, place * bytes, bytes, payload);
    store_record(t, to, to_place, group_rem(t, from->words, place), alternate, payload);
    table_shadow_move(t, from->group, place, to->group, to_place);
}

void table_remove(const struct counter_table *t, struct table_held *held, uint32_t place)
{
    uint32_t last = group_count(t, held->word) - 1;
    if (place != last) {
        bool alternate = group_choices(t, held->words, held->word) >> last & 1;
        copy_record(t, held, last, held, place, alternate);
    }
    set_choice(t, held, last, false);
    held->word -= GROUP_COUNT_ONE;
    held->changed = true;
}

/* Tries to move one record to its other group, which must be a third one and have room. */
static bool move_away(const struct counter_table *t, struct table_hold *hold,
                      struct table_held *from, uint32_t place)
{
    uint64_t rem = group_rem(t, from->words, place);
    uint64_t hash = rem_hash(t, rem);
    uint64_t other = group_other(t, from->group, hash);
    if (other == hold->held[0].group || other == hold->held[1].group) {
        return false; /* held, and full */
    }
    uint32_t seen = __atomic_load_n(group_lock(t, group_words(t, other)), __ATOMIC_RELAXED);
    struct table_held *to = has_room(t, seen) ? table_hold_group(t, hold, other) : NULL;
    if (!to) {
        return false;
    }
    if (!has_room(t, to->word)) {
        verlock_release(to->lock, to->word);
        hold->count--;
        return false;
    }
    bool at_home = !(group_choices(t, from->words, from->word) >> place & 1);
    copy_record(t, from, place, to, group_count(t, to->word), at_home);
    to->word += GROUP_COUNT_ONE;
    if (at_home) {
        from->word |= rem_mark(hash);
    }
    from->changed = true;
    return true;
}

/* Home and alternate are full: makes a hole in one of them. */
static struct table_held *make_hole(const struct counter_table *t, struct table_hold *hold,
                                    uint32_t *place)
{
    for (unsigned i = 0; i < 2; i++) {
        for (uint32_t at = 0; at < t->shape.places; at++) {
            if (move_away(t, hold, &hold->held[i], at)) {
                *place = at;
                return &hold->held[i];
            }
        }
    }
    return NULL;
}

static void store_new(const struct counter_table *t, const struct counter_locus *locus,
                      struct table_hold *hold, struct table_held *held, uint32_t place,
                      const uint64_t *payload)
{
    struct table_held *home = &hold->held[0];
    bool alternate = held != home;
    store_record(t, held, place, locus->rem, alternate, payload);
    table_shadow_set(t, held->group, place, locus->id);
    if (alternate) {
        home->word |= rem_mark(rem_hash(t, locus->rem));
    }
    home->changed = true;
}

static void store_behind(const struct counter_table *t, const struct counter_locus *locus,
                         struct table_hold *hold, struct table_held *held, const uint64_t *payload)
{
    store_new(t, locus, hold, held, group_count(t, held->word), payload);
    held->word += GROUP_COUNT_ONE;
}

/* Returns whether the dict has room that is not kept for a restart. What is counted already may use
 * that room too. */
static bool extend_takes(const struct counter_table *t)
{
    return dict_count(t->extend) < t->extend_max;
}

static bool insert_extend(struct counter_table *t, const struct counter_locus *locus,
                          struct table_hold *hold, const uint64_t *payload, bool counted)
{
    if ((!counted && !extend_takes(t)) || !dict_put(t->extend, locus->id, 0, payload)) {
        return false;
    }
    struct table_held *home = &hold->held[0];
    if (home->words) {
        home->word |= GROUP_SPILLED;
    }
    home->changed = true;
    return true;
}

/* The home is full: takes the alternate's lock too. False: somebody has it. */
static bool hold_alternate(const struct counter_table *t, const struct counter_locus *locus,
                           struct table_hold *hold)
{
    const struct table_held *home = &hold->held[0];
    if (!home->words || has_room(t, home->word) || hold->count > 1) {
        return true;
    }
    return table_hold_group(t, hold, group_other(t, locus->group, rem_hash(t, locus->rem)));
}

/* Inserts in place: home, alternate, or extend dict. What hold_alternate() takes is held. */
static bool insert_in_place(struct counter_table *t, const struct counter_locus *locus,
                            struct table_hold *hold, const uint64_t *payload, bool counted)
{
    struct table_held *home = &hold->held[0];
    if (!home->words) {
        return insert_extend(t, locus, hold, payload, counted);
    }
    if (has_room(t, home->word)) {
        store_behind(t, locus, hold, home, payload);
        return true;
    }
    if (has_room(t, hold->held[1].word)) {
        store_behind(t, locus, hold, &hold->held[1], payload);
        return true;
    }
    uint32_t place = 0;
    struct table_held *held = make_hole(t, hold, &place);
    if (held) {
        store_new(t, locus, hold, held, place, payload);
        return true;
    }
    return insert_extend(t, locus, hold, payload, counted);
}

/* A table on its own takes what its capacity allows. */
static enum row_verdict admit_alone(struct counter_table *t, uint64_t id)
{
    if (atomic_load_explicit(&t->row.count, memory_order_relaxed) >= t->row.capacity) {
        return ROW_NO_TABLE;
    }
    atomic_fetch_add_explicit(&t->row.count, 1, memory_order_relaxed);
    id_span_note(&t->row.ids, id);
    return ROW_INSIDE;
}

/* Returns whether a new id may be stored, and says where; then it is counted. */
static enum row_verdict ask_row(struct counter_table *t, uint64_t id, enum table_ask ask)
{
    if (ask == TABLE_ASK_PLACE) {
        return row_place(t->in_row, &t->root->row, id) ? ROW_INSIDE : ROW_NO_TABLE;
    }
    if (table_is_replayed(ask) || ask == TABLE_ASK_APART) {
        return ROW_INSIDE;
    }
    return t->in_row ? row_admit(t->in_row, &t->root->row, id) : admit_alone(t, id);
}

enum table_insert_result table_verdict_result(enum row_verdict verdict)
{
    static const enum table_insert_result results[] = {
        [ROW_INSIDE] = TABLE_INSERTED,        [ROW_APART] = TABLE_INSERT_APART,
        [ROW_WAIT] = TABLE_INSERT_WAIT,       [ROW_NO_TABLE] = TABLE_INSERT_NO_TABLE,
        [ROW_TOO_FAR] = TABLE_INSERT_TOO_FAR, [ROW_BUSY] = TABLE_INSERT_LATER,
    };
    return results[verdict];
}

enum table_insert_result table_insert_full(struct counter_table *t, bool anew)
{
    bool may_change =
        t->in_row && !t->row.is_apart && (t->in_row->parted || !t->in_row->config.any_ids);
    enum row_verdict verdict =
        may_change ? row_no_memory(t->in_row, &t->root->row, anew) : ROW_NO_TABLE;
    return verdict == ROW_NO_TABLE ? TABLE_INSERT_FULL : table_verdict_result(verdict);
}

enum table_insert_result table_insert(struct counter_table *t, const struct counter_locus *locus,
                                      struct table_hold *hold, const uint64_t *payload,
                                      enum table_ask ask, enum change_place *place)
{
    if (!hold_alternate(t, locus, hold)) {
        return TABLE_INSERT_AGAIN;
    }
    enum row_verdict verdict = ask_row(t, locus->id, ask);
    if (verdict != ROW_INSIDE) {
        return table_verdict_result(verdict);
    }
    *place = ask == TABLE_ASK_APART ? CHANGE_APART : CHANGE_INSIDE;
    if (insert_in_place(t, locus, hold, payload, false)) {
        return TABLE_INSERTED;
    }
    if (ask == TABLE_ASK_ADMIT || ask == TABLE_ASK_PLACE) {
        row_removed(&t->root->row, &t->row, locus->id);
    }
    return ask == TABLE_ASK_ADMIT ? table_insert_full(t, true) : TABLE_INSERT_FULL;
}

bool table_insert_counted(struct counter_table *t, const struct counter_locus *locus,
                          struct table_hold *hold, const uint64_t *payload)
{
    bool held = hold_alternate(t, locus, hold);
    CHECK(held); /* nobody else is there */
    return insert_in_place(t, locus, hold, payload, true);
}
