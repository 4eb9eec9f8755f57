/*
 * table_print.c: what a page asks of nearly every id: a whole record that lies at home, as text at
 * once, without its values in between. Whatever is otherwise is for counter_table_look().
 */
#include "base/num.h"
#include "counter/table_private.h"

/* The text of a payload; 0: nothing is set, or a value lies in the aux dict. */
static inline size_t print_packed(const struct counter_view *view, struct table_packed packed,
                                  char *text, bool *whole)
{
    char *to = text;
    uint64_t any = 0;
    *whole = true;
    for (unsigned i = 0; i < view->slot_count; i++) {
        const struct words_field *field = &view->slots[i].field;
        uint64_t raw = field_load(packed.words, packed.at, field);
        if (UNLIKELY(raw == field->mask)) {
            return 0;
        }
        if (LIKELY(raw != 0)) {
            to += num_print(to, raw - 1);
        } else {
            *whole = false;
        }
        any |= raw;
        *to++ = ',';
    }
    return any ? (size_t)(to - text) - 1 : 0; /* without the last comma */
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
    size_t length = print_packed(&t->view, table_packed_at(t, words, (uint32_t)place), text, whole);
    return LIKELY(verlock_unchanged(lock, word)) ? length : 0;
}
