/*
 * table_add.c: what nearly every increment is, by a fifth of the way of counter_table_edit(): of
 * one slot that holds a number, of a record that lies at home. Whatever else there is to think of
 * goes that way, and finds nothing changed.
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

static void add_hand_over(const struct counter_add *add, uint64_t id)
{
    struct change change;
    change.type = CHANGE_SLOTS;
    change.space = add->space;
    change.place = CHANGE_THERE;
    change.id = id;
    change.named = change.set = 1u << add->slot;
    change.values[add->slot] = add->now;
    POINT("in the lock, before the LSN");
    add->sink->functions->put(add->sink, &change);
    POINT("in the lock, behind the LSN");
}

/* Under the home's lock. False: not so simple, nothing was changed. */
static bool add_held(struct counter_table *t, const struct counter_locus *locus,
                     struct table_held *home, struct counter_add *add)
{
    const struct counter_view_slot *slot = &t->view.slots[add->slot];
    int place = table_match(t, home->words, home->word, locus->rem, false);
    if (place < 0) {
        return false;
    }
    table_shadow_check(t, home->group, (uint32_t)place, locus->id);
    size_t at = table_packed_at(t, home->words, (uint32_t)place).at;
    uint64_t raw = field_load(home->words, at, &slot->field);
    if (raw == 0 || raw == slot->field.mask) {
        return false;
    }
    add->now = sum_of(add, raw - 1);
    if (add->now >= slot->aux_from) {
        return false;
    }
    row_changed(&t->row);
    field_store(home->words, at, &slot->field, add->now + 1);
    home->changed = true;
    add_hand_over(add, locus->id);
    return true;
}

bool counter_table_add(struct counter_table *t, const struct counter_locus *locus,
                       struct counter_add *add)
{
    bool here = t->memory && !table_is_whole(t) && locus->group != TABLE_OUTSIDE;
    if (UNLIKELY(!here) || !add->sink->functions->reserve(add->sink)) {
        return false;
    }
    struct table_hold hold;
    table_hold_home(t, locus, &hold);
    bool added = add_held(t, locus, &hold.held[0], add);
    table_release(&hold);
    if (UNLIKELY(!added)) {
        add->sink->functions->cancel(add->sink);
    }
    return added;
}
