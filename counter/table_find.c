/*
 * table_find.c: looking up a record without a lock.
 */
#include "counter/table_private.h"

bool table_in_groups(const struct counter_table *t, const struct counter_locus *locus)
{
    uint64_t other = group_other(t, locus->group, rem_hash(t, locus->rem));
    const shared_word *home = group_words(t, locus->group);
    const shared_word *away = group_words(t, other);
    uint32_t home_word = verlock_read(group_lock(t, home));
    uint32_t away_word = verlock_read(group_lock(t, away));
    return table_match(t, home, home_word, locus->rem, false) >= 0 ||
           table_match(t, away, away_word, locus->rem, true) >= 0;
}

void table_read_aux(const struct counter_table *t, uint64_t id, uint32_t mask,
                    struct counter_values *values)
{
    for (; mask; mask &= mask - 1) {
        unsigned i = (unsigned)__builtin_ctz(mask);
        bool there = dict_get(t->aux, id, t->view.slots[i].sub, &values->value[i]);
        values->set = (values->set & ~(1u << i)) | (uint32_t)there << i;
    }
}

bool table_others_set(const struct counter_view *view, struct table_packed packed, uint32_t slots)
{
    struct counter_values values;
    table_decode(view, packed, counter_view_all(view) & ~slots & ~view->aux_only, &values);
    return values.set != 0;
}

enum counter_look counter_table_look(const struct counter_table *t,
                                     const struct counter_locus *locus, uint32_t wanted,
                                     struct counter_values *values)
{
    if (UNLIKELY(locus->group == TABLE_OUTSIDE || !t->memory)) {
        return COUNTER_FURTHER;
    }
    const shared_word *words = group_words(t, locus->group);
    const verlock *lock = group_lock(t, words);
    uint32_t word = verlock_read(lock);
    int place = table_match(t, words, word, locus->rem, false);
    if (place < 0) {
        uint64_t hash = rem_hash(t, locus->rem);
        if (word & rem_mark(hash)) {
            __builtin_prefetch(group_words(t, group_other(t, locus->group, hash)));
            return COUNTER_FURTHER;
        }
        bool sure = !(word & GROUP_SPILLED) && verlock_unchanged(lock, word);
        return sure ? COUNTER_ABSENT : COUNTER_FURTHER;
    }
    struct table_packed packed = table_packed_at(t, words, (uint32_t)place);
    uint32_t in_aux = table_decode(&t->view, packed, wanted | t->view.aux_only, values);
    bool is = LIKELY(values->set) || table_others_set(&t->view, packed, wanted);
    if (!verlock_unchanged(lock, word) || UNLIKELY(in_aux)) {
        return COUNTER_FURTHER;
    }
    return is ? COUNTER_FOUND : COUNTER_ABSENT;
}

/* Where a reader found a record: the lock word to look at again, beside the home's. */
struct find {
    const verlock *lock;
    uint32_t word;
    bool found;
};

/* Looks in one group for a record; its payload is copied. */
static bool find_in_group(const struct counter_table *t, uint64_t group, uint32_t word,
                          uint64_t rem, bool alternate, uint64_t *payload)
{
    const shared_word *words = group_words(t, group);
    int place = table_match(t, words, word, rem, alternate);
    if (place >= 0) {
        size_t bytes = t->shape.payload_bytes;
        words_copy_out(words, (size_t)place * bytes, bytes, payload);
    }
    return place >= 0;
}

/* Home, alternate, extend dict. home_word was read from the home's lock. */
static struct find find_record(const struct counter_table *t, const struct counter_locus *locus,
                               const verlock *home, uint32_t home_word, uint64_t *payload)
{
    struct find find = {home, home_word, false};
    if (locus->group != TABLE_OUTSIDE) {
        find.found = find_in_group(t, locus->group, home_word, locus->rem, false, payload);
        uint64_t hash = rem_hash(t, locus->rem);
        if (!find.found && (home_word & rem_mark(hash))) {
            uint64_t other = group_other(t, locus->group, hash);
            find.lock = group_lock(t, group_words(t, other));
            find.word = verlock_read(find.lock);
            find.found = find_in_group(t, other, find.word, locus->rem, true, payload);
        }
        if (!(home_word & GROUP_SPILLED)) {
            return find;
        }
    }
    if (!find.found) {
        find.found = dict_get(t->extend, locus->id, 0, payload);
    }
    return find;
}

enum counter_look counter_table_read(const struct counter_table *t,
                                     const struct counter_locus *locus, uint32_t wanted,
                                     struct counter_values *values)
{
    const verlock *home = table_home_lock(t, locus);
    for (;;) {
        uint64_t payload[SCHEMA_PAYLOAD_WORDS] = {0};
        struct table_packed packed = {payload, 0};
        uint32_t word = verlock_read(home);
        struct find find = find_record(t, locus, home, word, payload);
        values->set = 0;
        if (find.found) {
            uint32_t slots = wanted | t->view.aux_only; /* those, to know whether any is set */
            uint32_t in_aux = table_decode(&t->view, packed, slots, values);
            table_read_aux(t, locus->id, in_aux, values);
        }
        if (verlock_unchanged(find.lock, find.word) && verlock_unchanged(home, word)) {
            bool is = values->set || (find.found && table_others_set(&t->view, packed, wanted));
            return is ? COUNTER_FOUND : COUNTER_ABSENT;
        }
    }
}
