/*
 * table_short.c: what nearly every change is, by a third of the way of counter_table_edit(): of a
 * record that lies at home, in slots whose numbers fit their places. Whatever else there is to
 * think of goes that way, and finds nothing changed.
 */
#include "base/point.h"
#include "counter/table_private.h"

static uint64_t sum_of(const struct counter_add *add, uint64_t value)
{
    if (!add->down) {
        return value + add->delta; /* wraps, as memcached's */
    }
    return value > add->delta ? value - add->delta : 0;
}

/* `change` has the values. */
static void short_hand_over(struct change *change, uint32_t named, uint32_t space, uint64_t id,
                            struct change_sink *sink)
{
    change->type = CHANGE_SLOTS;
    change->space = space;
    change->place = CHANGE_THERE;
    change->id = id;
    change->named = change->set = named;
    POINT("in the lock, before the LSN");
    sink->functions->put(sink, change);
    POINT("in the lock, after the LSN");
}

static bool is_in_reach(const struct counter_table *t, const struct counter_locus *locus)
{
    return LIKELY(t->memory && !table_is_whole(t) && locus->group != TABLE_OUTSIDE);
}

static inline const struct counter_view_slot *slot_at(const struct counter_view *view,
                                                      unsigned index)
{
    const struct counter_view_slot *slot = &view->slots[index];
    __asm__("" : "+r"(slot)); /* else GCC multiplies again for each field */
    return slot;
}

/* What a slot of the record at a byte holds. */
static inline uint64_t slot_load(const shared_word *words, size_t at,
                                 const struct counter_view_slot *slot)
{
    return LIKELY(slot->near.mask != 0) ? near_load(words, at, &slot->near)
                                        : field_load(words, at * 8, &slot->field);
}

static inline void slot_store(shared_word *words, size_t at, const struct counter_view_slot *slot,
                              uint64_t raw)
{
    if (LIKELY(slot->near.mask != 0)) {
        near_store(words, at, &slot->near, raw);
    } else {
        field_store(words, at * 8, &slot->field, raw);
    }
}

/* Under the home's lock. False: not so simple, nothing was changed. */
static bool add_held(struct counter_table *t, const struct counter_locus *locus,
                     struct table_held *home, struct counter_add *add)
{
    const struct counter_view_slot *slot = slot_at(&t->view, add->slot);
    int place = table_match(t, home->words, home->word, locus->rem, false);
    if (place < 0) {
        return false;
    }
    table_shadow_check(t, home->group, (uint32_t)place, locus->id);
    size_t at = (size_t)place * t->shape.payload_bytes;
    uint64_t raw = slot_load(home->words, at, slot);
    if (raw == 0 || raw == slot->field.mask) {
        return false;
    }
    add->now = sum_of(add, raw - 1);
    if (add->now >= slot->aux_from) {
        return false;
    }
    row_changed(&t->row);
    slot_store(home->words, at, slot, add->now + 1);
    home->changed = true;
    POINT("in the lock, before the LSN");
    change_sink_put_slot(add->sink, add->space, locus->id, add->slot, add->now);
    POINT("in the lock, after the LSN");
    return true;
}

bool counter_table_add(struct counter_table *t, const struct counter_locus *locus,
                       struct counter_add *add)
{
    if (!is_in_reach(t, locus) || !add->sink->functions->reserve(add->sink)) {
        return false;
    }
    struct table_hold hold;
    table_hold_inside(t, locus, &hold);
    bool added = add_held(t, locus, &hold.held[0], add);
    table_release(&hold);
    if (UNLIKELY(!added)) {
        add->sink->functions->cancel(add->sink);
    }
    return added;
}

/* Returns whether the values fit their places, and what they replace lies in place too. */
static bool put_fits(const struct counter_view *view, const shared_word *words, size_t at,
                     const struct counter_put *put)
{
    const uint64_t *values = put->values;
    for (uint32_t named = put->named; named; named &= named - 1) {
        unsigned i = (unsigned)__builtin_ctz(named);
        const struct counter_view_slot *slot = slot_at(view, i);
        uint64_t raw = slot_load(words, at, slot);
        if (raw == slot->field.mask || values[i] >= slot->aux_from) {
            return false;
        }
    }
    return true;
}

/* Under the home's lock. False: not so simple, nothing was changed. */
static bool put_held(struct counter_table *t, const struct counter_locus *locus,
                     struct table_held *home, const struct counter_put *put)
{
    int place = table_match(t, home->words, home->word, locus->rem, false);
    if (place < 0) {
        return false;
    }
    table_shadow_check(t, home->group, (uint32_t)place, locus->id);
    size_t at = (size_t)place * t->shape.payload_bytes;
    if (!put_fits(&t->view, home->words, at, put)) {
        return false;
    }
    row_changed(&t->row);
    struct change change;
    const uint64_t *values = put->values;
    for (uint32_t named = put->named; named; named &= named - 1) {
        unsigned i = (unsigned)__builtin_ctz(named);
        uint64_t value = values[i];
        slot_store(home->words, at, slot_at(&t->view, i), value + 1);
        change.values[i] = value;
    }
    home->changed = true;
    short_hand_over(&change, put->named, put->space, locus->id, put->sink);
    return true;
}

bool counter_table_put(struct counter_table *t, const struct counter_locus *locus,
                       const struct counter_put *put)
{
    if (!is_in_reach(t, locus) || !put->sink->functions->reserve(put->sink)) {
        return false;
    }
    struct table_hold hold;
    table_hold_inside(t, locus, &hold);
    bool done = put_held(t, locus, &hold.held[0], put);
    table_release(&hold);
    if (UNLIKELY(!done)) {
        put->sink->functions->cancel(put->sink);
    }
    return done;
}
