/*
 * table_find.c: looking up a record without a lock.
 */
#include "counter/table_private.h"

#define LANES     4 /* two-byte remainders in a word */
#define LANE_ONES 0x0001000100010001u
#define LANE_REST 0x7fff7fff7fff7fffu

/* A bit (15 of each lane) where the two-byte lanes of x are zero; exact, no carry crosses a lane.
 */
static uint64_t zero_lanes(uint64_t x)
{
    return ~(((x & LANE_REST) + LANE_REST) | x | LANE_REST);
}

/* Remainders of two bytes, the common ones: four at a time. */
static int match_lanes(const struct counter_table *t, const shared_word *words, uint32_t candidates,
                       uint64_t rem)
{
    uint64_t wanted = rem * LANE_ONES;
    uint32_t places = t->shape.places;
    for (uint32_t first = 0; first < places; first += LANES) {
        uint32_t lanes = places - first < LANES ? places - first : LANES;
        uint64_t found =
            zero_lanes(words_load(words, t->rem_offset + 2 * first, 2 * lanes) ^ wanted);
        for (; found; found &= found - 1) {
            uint32_t place = first + (uint32_t)__builtin_ctzll(found) / 16;
            if (place < places && candidates >> place & 1) {
                return (int)place;
            }
        }
    }
    return -1;
}

int table_match(const struct counter_table *t, const shared_word *words, uint32_t word,
                uint64_t rem, bool alternate)
{
    uint32_t count = group_count(t, word);
    uint32_t choices = group_choices(t, words, word);
    uint32_t candidates = (alternate ? choices : ~choices) & (uint32_t)((1ull << count) - 1);
    if (t->shape.rem_bytes == 2) {
        return match_lanes(t, words, candidates, rem);
    }
    for (; candidates; candidates &= candidates - 1) {
        uint32_t place = (uint32_t)__builtin_ctz(candidates);
        if (group_rem(t, words, place) == rem) {
            return (int)place;
        }
    }
    return -1;
}

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

uint32_t table_decode(const struct counter_view *view, const uint64_t *payload,
                      struct counter_values *values)
{
    uint32_t set = 0;
    uint32_t in_aux = view->aux_only;
    for (unsigned i = 0; i < view->slot_count; i++) {
        const struct counter_view_slot *slot = &view->slots[i];
        if (UNLIKELY(slot->physical == SCHEMA_AUX_ONLY)) {
            continue;
        }
        uint64_t raw = bits_get(payload, slot->offset, slot->bits);
        set |= (uint32_t)(raw != 0) << i;
        in_aux |= (uint32_t)(raw == counter_slot_in_aux(slot->bits)) << i;
        values->value[i] = raw - 1;
    }
    values->set = set;
    return in_aux;
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

/* Which of the slots in aux a reader must fetch: wanted ones, and aux-only ones to know if set. */
static uint32_t aux_needed(const struct counter_view *view, uint32_t in_aux, uint32_t wanted)
{
    return in_aux & (wanted | view->aux_only);
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
    uint64_t payload[SCHEMA_PAYLOAD_WORDS];
    size_t bytes = t->shape.payload_bytes;
    words_copy_out(words, (size_t)place * bytes, bytes, payload);
    if (!verlock_unchanged(lock, word)) {
        return COUNTER_FURTHER;
    }
    payload[(bytes + 7) / 8] = 0;
    uint32_t in_aux = table_decode(&t->view, payload, values);
    if (UNLIKELY(aux_needed(&t->view, in_aux, wanted))) {
        return COUNTER_FURTHER;
    }
    return values->set ? COUNTER_FOUND : COUNTER_ABSENT;
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
        uint32_t word = verlock_read(home);
        struct find find = find_record(t, locus, home, word, payload);
        uint32_t in_aux = 0;
        values->set = 0;
        if (find.found) {
            in_aux = table_decode(&t->view, payload, values);
            table_read_aux(t, locus->id, aux_needed(&t->view, in_aux, wanted), values);
        }
        if (verlock_unchanged(find.lock, find.word) && verlock_unchanged(home, word)) {
            return values->set ? COUNTER_FOUND : COUNTER_ABSENT;
        }
    }
}
