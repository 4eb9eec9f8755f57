/*
 * table_cold.c: tables of which the filter, or the layer's, is not in memory: questions that may
 * need the disk, and how a table leaves.
 *
 * A question asks the exact parts and the overlays first, which may answer it without the disk.
 * They are read before the page, and bits are only ever added, so a member that was there when the
 * question began is found whatever is added meanwhile.
 */
#include <string.h>

#include "base/check.h"
#include "phantom/table_private.h"

bool phantom_table_is_cold(const struct phantom_table *holder)
{
    return holder->dump && phantom_dump_file(holder->dump);
}

/* ---- questions ---- */

/* Returns whether a table or a layer says yes: `words` is what is known of its line, if it is away.
 */
static bool holder_says(const struct phantom_table *holder, uint64_t hash, const uint64_t *words)
{
    if (!phantom_table_is_cold(holder)) {
        return phantom_filter_holds(&holder->filter, hash);
    }
    uint64_t line[DICT_VALUE_WORDS];
    memcpy(line, words, sizeof(line));
    phantom_dump_line(holder->dump, phantom_filter_line(&holder->filter, hash), line);
    return phantom_line_holds(line, holder->filter.bits, hash);
}

bool phantom_table_filtered_by(const struct phantom_table *t, uint64_t hash,
                               const struct phantom_lines *lines)
{
    if (LIKELY(!lines)) {
        return phantom_table_filtered(t, hash);
    }
    bool says = false;
    unsigned i = 0;
    for (const struct row_table *row = &t->row; row && !says; row = row->further, i++) {
        says = holder_says((const struct phantom_table *)row, hash, lines->words[i]);
    }
    return says;
}

/* YES: the page says so. NO: it is here, and says no. Else as cold_get. */
static enum phantom_answer ask_page(const struct phantom_table *holder, uint64_t hash,
                                    const struct ticket *ticket, uint64_t *words)
{
    static const enum phantom_answer answers[] = {[COLD_PENDING] = PHANTOM_PENDING,
                                                  [COLD_BUSY] = PHANTOM_BUSY,
                                                  [COLD_FAILED] = PHANTOM_FAILED};
    uint64_t line = phantom_filter_line(&holder->filter, hash);
    enum cold_result result = phantom_dump_page(holder->dump, line, ticket, words);
    if (result != COLD_HIT) {
        return answers[result];
    }
    return holder_says(holder, hash, words) ? PHANTOM_YES : PHANTOM_NO;
}

/* Asks for all pages in one pass, so that they are read together. A YES ends the pass unless
 * something is pending: then the ticket waits, and its owner must know. */
enum phantom_answer phantom_table_look(const struct phantom_table *t, uint64_t hash,
                                       const struct ticket *ticket, struct phantom_lines *lines)
{
    memset(lines, 0, sizeof(*lines));
    if (phantom_table_filtered_by(t, hash, lines)) {
        return PHANTOM_YES;
    }
    enum phantom_answer all = PHANTOM_NO;
    unsigned i = 0;
    for (const struct row_table *row = &t->row; row; row = row->further, i++) {
        const struct phantom_table *holder = (const struct phantom_table *)row;
        enum phantom_answer one = PHANTOM_NO;
        if (phantom_table_is_cold(holder)) {
            one = ask_page(holder, hash, ticket, lines->words[i]);
        }
        if (one == PHANTOM_YES) {
            return all == PHANTOM_PENDING ? PHANTOM_PENDING : PHANTOM_YES;
        }
        all = one > all ? one : all;
    }
    return all;
}

enum phantom_answer phantom_table_ask(const struct phantom_table *t,
                                      const struct phantom_member *member,
                                      const struct ticket *ticket)
{
    struct phantom_lines lines;
    if (phantom_apart_holds(t, member)) {
        return PHANTOM_YES;
    }
    if (!phantom_table_confirms(t, member)) {
        return PHANTOM_NO;
    }
    return phantom_table_look(t, member->hash, ticket, &lines);
}

bool phantom_table_holds_by(const struct phantom_table *t, const struct phantom_member *member,
                            const struct phantom_lines *lines)
{
    if (LIKELY(!lines)) {
        return phantom_table_holds(t, member);
    }
    return phantom_apart_holds(t, member) ||
           (phantom_table_filtered_by(t, member->hash, lines) && phantom_table_confirms(t, member));
}

bool phantom_table_room(struct phantom_table *t, const struct phantom_member *member)
{
    struct phantom_table *holder = phantom_table_holder(t);
    if (LIKELY(!holder->dump) || phantom_exception_stands(t, member->hash, member->second) ||
        row_tap_is_given_up(&holder->row)) {
        return true;
    }
    return phantom_dump_room(holder->dump, phantom_filter_line(&t->filter, member->hash)) ||
           row_tap_give_up(&holder->row);
}

/* ---- leaving ---- */

struct dict *phantom_table_file_begin(struct phantom_table *holder, struct engine_cold *cold,
                                      unsigned overruns)
{
    if (phantom_table_is_cold(holder)) {
        phantom_dump_merge(holder->dump);
        return NULL;
    }
    CHECK(holder->filter.words);
    struct dict *spent = phantom_table_stay(holder);
    holder->dump = phantom_dump_create(cold, holder->shape.table_bytes, overruns);
    return spent;
}

void phantom_table_note_away(struct phantom_table *t)
{
    t->away = false;
    for (const struct row_table *row = &t->row; row; row = row->further) {
        t->away = t->away || phantom_table_is_cold((const struct phantom_table *)row);
    }
}

struct dict *phantom_table_stay(struct phantom_table *holder)
{
    struct dict *spent = holder->dump ? phantom_dump_give_up(holder->dump) : NULL;
    phantom_dump_release(holder->dump);
    holder->dump = NULL;
    return spent;
}

void phantom_table_leave(struct phantom_table *t, struct phantom_table *holder,
                         struct table_file *file)
{
    phantom_dump_open(holder->dump, file);
    holder->filter.words = NULL;
    phantom_table_note_away(t);
}
