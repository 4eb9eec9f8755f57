/*
 * table_print.c: what nearly every read asks for: a record that lies at home, or one slot of it, as
 * text at once, without its values in between. Whatever is otherwise is for counter_table_look().
 */
#include "base/num.h"
#include "counter/table_private.h"

/* A number that is none of the short ones: `value` is what was read, less 1. Returns its end, `to`
 * if it is unset, NULL if it lies in the aux dict or is not read so quickly. Cold only so that the
 * loop around it keeps its registers. */
static __attribute__((noinline, cold)) char *print_odd(const struct words_near *near,
                                                       uint64_t value, char *to)
{
    if (value == near->mask - 1) {
        return NULL;
    }
    return value == UINT64_MAX ? to : to + num_print(to, value);
}

/* The text of the payload at a byte; 0: nothing is set, or a value is not had so quickly. */
static inline size_t print_packed(const struct counter_view *view, const shared_word *words,
                                  size_t at, char *text, bool *whole)
{
    const struct counter_view_slot *end = &view->slots[view->slot_count];
    unsigned unset = 0;
    char *to = text;
    for (const struct counter_view_slot *slot = view->slots; slot < end; slot++) {
        uint64_t value = near_load(words, at, &slot->near) - 1;
        if (LIKELY(value < slot->short_end)) {
            to += num_print_short(to, value);
        } else {
            const char *before = to;
            to = print_odd(&slot->near, value, to);
            if (to == NULL) {
                return 0;
            }
            unset += to == before;
        }
        *to++ = ',';
    }
    *whole = unset == 0;
    return unset < view->slot_count ? (size_t)(to - text) - 1 : 0; /* without the last comma */
}

size_t counter_table_print(const struct counter_table *t, const struct counter_locus *locus,
                           char *text, bool *whole)
{
    if (UNLIKELY(locus->group == TABLE_OUTSIDE || !t->memory)) {
        return 0;
    }
    const shared_word *words = group_words(t, locus->group);
    const verlock *lock = group_lock(t, words);
    uint32_t word = verlock_read(lock);
    int place = table_match(t, words, word, locus->rem, false);
    if (place < 0) {
        return 0;
    }
    size_t at = (size_t)place * t->shape.payload_bytes;
    size_t length = print_packed(&t->view, words, at, text, whole);
    return LIKELY(verlock_unchanged(lock, word)) ? length : 0;
}

size_t counter_table_print_one(const struct counter_table *t, const struct counter_locus *locus,
                               unsigned slot, char *text)
{
    if (UNLIKELY(locus->group == TABLE_OUTSIDE || !t->memory)) {
        return 0;
    }
    const shared_word *words = group_words(t, locus->group);
    const verlock *lock = group_lock(t, words);
    uint32_t word = verlock_read(lock);
    int place = table_match(t, words, word, locus->rem, false);
    if (place < 0) {
        return 0;
    }
    const struct words_near *near = &t->view.slots[slot].near;
    uint64_t raw = near_load(words, (size_t)place * t->shape.payload_bytes, near);
    bool printed = raw != 0 && raw != near->mask && verlock_unchanged(lock, word);
    return LIKELY(printed) ? num_print(text, raw - 1) : 0;
}
