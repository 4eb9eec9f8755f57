/*
 * phantom_ops.c: operations of the engine on its tables: one table says what each verb does with a
 * member that is there and with one that is not.
 *
 * scratch[0] of an op: the member's hash; scratch[1]: its table, NULL below the oldest, or where
 * the id was dropped with its own; scratch[2]: its line of the table's filter, if that is in
 * memory.
 */
#include <string.h>

#include "base/check.h"
#include "base/point.h"
#include "phantom/phantom_private.h"

#define MEMBER_TOKEN 1 /* the cas token of a member that is there */

static struct phantom_member member_of(const struct engine_op *op)
{
    return (struct phantom_member){
        .id = op->id, .hash = op->scratch[0], .bytes = op->member, .length = op->member_length};
}

/* The table of a prepared op; NULL: its id lies below the oldest, or was dropped. */
static struct phantom_table *phantom_ops_table(const struct engine_op *op)
{
    return phantom_table_of((struct row_table *)(uintptr_t)op->scratch[1]);
}

void phantom_prepare(struct engine *engine, struct engine_op *const *ops, size_t n)
{
    const struct phantom *phantom = (const struct phantom *)engine;
    uint64_t newest_from;
    struct row_table *newest = row_newest(&phantom->row, &newest_from);
    for (size_t i = 0; i < n; i++) {
        struct engine_op *op = ops[i];
        struct row_table *table =
            LIKELY(op->id >= newest_from) ? newest : row_route(&phantom->row, op->id);
        uint64_t hash = phantom_hash(&phantom->secrets, op->id, op->member, op->member_length);
        op->scratch[0] = hash;
        op->scratch[1] = (uintptr_t)table;
        if (LIKELY(table != NULL)) {
            op->scratch[2] = (uintptr_t)phantom_table_prefetch(phantom_table_of(table), hash);
        }
    }
}

static bool out_of_range(const struct phantom *phantom, uint64_t id)
{
    return phantom->config.row.any_ids && id > phantom->config.max_id;
}

/* Returns whether the member is there. */
static inline enum phantom_answer phantom_ops_ask(const struct phantom_table *table,
                                                  const struct engine_op *op)
{
    struct phantom_member member = member_of(op);
    if (UNLIKELY(table->away)) {
        return phantom_table_ask(table, &member, &op->ticket);
    }
    return phantom_table_holds(table, &member) ? PHANTOM_YES : PHANTOM_NO;
}

/* The op of an answer that is neither yes nor no. */
static void phantom_ops_put_off(struct engine_op *op, enum phantom_answer answer)
{
    op->status = answer == PHANTOM_PENDING ? ENGINE_PENDING : ENGINE_ERROR;
    op->wants_table = false;
    op->error = answer == PHANTOM_PENDING ? ENGINE_E_NONE
                : answer == PHANTOM_BUSY  ? ENGINE_E_BUSY
                                          : ENGINE_E_READ_FAILED;
}

static inline void read_as(struct engine_op *op, bool there)
{
    op->cas_now = MEMBER_TOKEN;
    if (there) {
        op->status = ENGINE_DONE;
        op->error = ENGINE_E_NONE;
        op->value[0] = PHANTOM_MEMBER_TEXT; /* a touch does not look at it */
        op->value_length = 1;
    } else {
        op->status = ENGINE_ABSENT;
        op->error = ENGINE_E_NONE;
        op->miss = phantom_ops_table(op) ? ENGINE_MISS_ABSENT : ENGINE_MISS_BELOW;
    }
}

/* Apart, so that other reads pay nothing for it. */
static __attribute__((noinline)) void read_odd(const struct phantom *phantom, struct engine_op *op)
{
    if (!phantom_ops_table(op) || out_of_range(phantom, op->id)) {
        read_as(op, false);
        return;
    }
    enum phantom_answer answer = phantom_ops_ask(phantom_ops_table(op), op);
    if (answer == PHANTOM_YES || answer == PHANTOM_NO) {
        read_as(op, answer == PHANTOM_YES);
    } else {
        phantom_ops_put_off(op, answer);
    }
}

/* Ids below this have their answer from the filter of the table alone; NULL: none. */
static uint64_t decided_below(const struct phantom *phantom, const struct phantom_table *table)
{
    if (table == NULL) {
        return 0;
    }
    uint64_t below = phantom_filter_decides_below(table);
    bool bounded = phantom->config.row.any_ids && phantom->config.max_id < below;
    return bounded ? phantom->config.max_id + 1 : below;
}

void phantom_read(struct engine *engine, struct engine_op *const *ops, size_t n)
{
    const struct phantom *phantom = (const struct phantom *)engine;
    const struct phantom_table *table = NULL; /* of the operation before: of a page, of all */
    uint64_t below = 0;
    unsigned bits = 0;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    for (size_t i = 0; i < n; i++) {
        struct engine_op *op = ops[i];
        if (UNLIKELY(phantom_ops_table(op) != table)) {
            table = phantom_ops_table(op);
            below = decided_below(phantom, table);
            bits = table != NULL ? table->filter.bits : 0;
        }
        if (LIKELY(op->id < below)) {
            const shared_word *line = (const shared_word *)(uintptr_t)op->scratch[2];
            read_as(op, phantom_line_holds(line, bits, op->scratch[0]));
        } else {
            read_odd(phantom, op);
        }
    }
}

/* What is done with a member, and what that is called. */
enum act { ACT_NOTHING, ACT_ADD, ACT_REMOVE };
struct rule {
    enum act there;
    enum engine_status there_is;
    enum act absent;
    enum engine_status absent_is;
};

/* A write that expires at once leaves nothing: what it would add is not added, what is there goes.
 */
static const struct rule rules[][2] = {
    /* clang-format off */
    /*                   lasting                                             expired */
    [ENGINE_SET]     = {{ACT_NOTHING, ENGINE_DONE,   ACT_ADD,     ENGINE_DONE},
                        {ACT_REMOVE,  ENGINE_DONE,   ACT_NOTHING, ENGINE_DONE}},
    [ENGINE_ADD]     = {{ACT_NOTHING, ENGINE_EXISTS, ACT_ADD,     ENGINE_DONE},
                        {ACT_NOTHING, ENGINE_EXISTS, ACT_NOTHING, ENGINE_DONE}},
    [ENGINE_REPLACE] = {{ACT_NOTHING, ENGINE_DONE,   ACT_NOTHING, ENGINE_ABSENT},
                        {ACT_REMOVE,  ENGINE_DONE,   ACT_NOTHING, ENGINE_ABSENT}},
    [ENGINE_CAS]     = {{ACT_NOTHING, ENGINE_DONE,   ACT_NOTHING, ENGINE_ABSENT},
                        {ACT_REMOVE,  ENGINE_DONE,   ACT_NOTHING, ENGINE_ABSENT}},
    [ENGINE_DELETE]  = {{ACT_REMOVE,  ENGINE_DONE,   ACT_NOTHING, ENGINE_ABSENT},
                        {ACT_REMOVE,  ENGINE_DONE,   ACT_NOTHING, ENGINE_ABSENT}},
    /* clang-format on */
};

/* A delete with a token that is no member's. */
static const struct rule refused_token = {ACT_NOTHING, ENGINE_EXISTS, ACT_NOTHING, ENGINE_ABSENT};

static const struct rule *rule_of(const struct engine_op *op)
{
    bool other = op->verb == ENGINE_DELETE && op->compare && op->cas != MEMBER_TOKEN;
    return UNLIKELY(other) ? &refused_token : &rules[op->verb][op->expires];
}

/* Returns whether a value is `1`, with blanks after it or none. */
static bool is_member_text(const char *text, uint32_t length)
{
    if (length == 0 || text[0] != PHANTOM_MEMBER_TEXT) {
        return false;
    }
    for (uint32_t i = 1; i < length; i++) {
        if (text[i] != ' ') {
            return false;
        }
    }
    return true;
}

static enum engine_error refusal_of(const struct phantom *phantom, const struct engine_op *op)
{
    bool deletes = op->verb == ENGINE_DELETE;
    /* An add of nothing that expires at once is how libmemcached asks whether a key exists. */
    bool asks = op->verb == ENGINE_ADD && op->expires && op->text_length == 0;
    if (!deletes && !asks && !is_member_text(op->text, op->text_length)) {
        return ENGINE_E_NOT_MEMBER;
    }
    if (deletes && !op->expires && !phantom->config.deletes) {
        return ENGINE_E_DELETES_OFF;
    }
    return out_of_range(phantom, op->id) ? ENGINE_E_ID_TOO_LARGE : ENGINE_E_NONE;
}

/* What a refused admission is called. */
static enum engine_error refusal_by_row(const struct phantom *phantom, enum row_verdict verdict)
{
    if (verdict == ROW_TOO_FAR) {
        return ENGINE_E_ID_TOO_FAR;
    }
    if (verdict == ROW_BUSY) {
        return ENGINE_E_BUSY;
    }
    return phantom->config.row.any_ids ? ENGINE_E_OUT_OF_MEMORY : ENGINE_E_NO_TABLE_FREE;
}

/* What is to be done with a member of a prepared op. */
struct edit {
    struct phantom *phantom;
    struct engine_op *op;
    struct phantom_table *table;
    struct phantom_member member;
    const struct phantom_lines *lines; /* NULL: all is in memory */
    enum act act;
    enum change_place place; /* what was changed */
    bool full;               /* a dumped table has no room for it before a merge */
};

/* Under the lock. True: done; else the op's status and error say why not. */
static bool phantom_ops_add(struct edit *edit)
{
    struct phantom *phantom = edit->phantom;
    struct engine_op *op = edit->op;
    if (!phantom_table_room(edit->table, &edit->member)) {
        op->error = ENGINE_E_BUSY;
        edit->full = true;
        return false;
    }
    enum row_verdict verdict =
        phantom_table_add(&phantom->row, edit->table, &edit->member, &edit->place);
    if (verdict == ROW_INSIDE || verdict == ROW_APART) {
        return true;
    }
    bool waits = verdict == ROW_WAIT;
    op->status = waits ? ENGINE_PENDING : ENGINE_ERROR;
    op->error = waits ? ENGINE_E_NONE : refusal_by_row(phantom, verdict);
    return false;
}

/* Likewise. */
static bool phantom_ops_carry_out(struct edit *edit)
{
    if (edit->act == ACT_ADD) {
        return phantom_ops_add(edit);
    }
    edit->op->error = !edit->phantom->config.deletes ? ENGINE_E_DELETES_OFF
                      : phantom_table_remove(edit->table, &edit->member, edit->lines, &edit->place)
                          ? ENGINE_E_NONE
                          : ENGINE_E_OUT_OF_MEMORY;
    return edit->op->error == ENGINE_E_NONE;
}

static void hand_over(const struct edit *edit, struct change_sink *sink)
{
    struct change change;
    change.type = edit->act == ACT_ADD ? CHANGE_MEMBER_ADD : CHANGE_MEMBER_DELETE;
    change.space = edit->phantom->engine.space;
    change.place = edit->place;
    change.id = edit->member.id;
    change.named = 0;
    change.set = 0;
    change.member[0] = edit->member.hash;
    change.member[1] = edit->member.second;
    POINT("member changed, before the LSN");
    (void)sink->functions->put(sink, &change);
    POINT("member changed, after the LSN");
}

/* Carries out a rule with the sink's room, which it uses or gives back. */
static void carry_out_rule(struct edit *edit, const struct rule *rule, struct change_sink *sink)
{
    struct engine_op *op = edit->op;
    phantom_table_lock(edit->table, &edit->member);
    bool there = phantom_table_holds_by(edit->table, &edit->member, edit->lines);
    POINT("member looked for, nothing changed");
    edit->act = there ? rule->there : rule->absent;
    op->status = there ? rule->there_is : rule->absent_is;
    if (edit->act != ACT_NOTHING) {
        edit->member.second = phantom_second_hash(&edit->phantom->secrets, &edit->member);
    }
    if (edit->act != ACT_NOTHING && phantom_ops_carry_out(edit)) {
        hand_over(edit, sink);
    } else {
        sink->functions->cancel(sink);
    }
    phantom_table_unlock(edit->table, &edit->member);
    if (op->status == ENGINE_PENDING && op->error == ENGINE_E_NONE) {
        op->wants_table = true;
        row_wait(&edit->phantom->row, &op->ticket);
    }
}

/* What it needs of the disk is asked for first, with nothing locked and nothing reserved. */
static void edit(struct phantom *phantom, struct engine_op *op, const struct rule *rule,
                 struct change_sink *sink)
{
    struct phantom_lines lines;
    struct edit edit = {
        .phantom = phantom, .op = op, .table = phantom_ops_table(op), .member = member_of(op)};
    if (UNLIKELY(edit.table->away)) {
        enum phantom_answer answer =
            phantom_table_look(edit.table, edit.member.hash, &op->ticket, &lines);
        if (answer != PHANTOM_YES && answer != PHANTOM_NO) {
            phantom_ops_put_off(op, answer);
            return;
        }
        edit.lines = &lines;
        op->copied_bytes = ENGINE_COPIED_COLD;
    }
    if (!sink->functions->reserve(sink)) {
        op->error = ENGINE_E_JOURNAL_BUSY;
        return;
    }
    carry_out_rule(&edit, rule, sink);
    struct row_table *holder = &phantom_table_holder(edit.table)->row;
    if (UNLIKELY(edit.lines != NULL)) {
        row_cold_changed(&phantom->row, holder);
    }
    if (UNLIKELY(edit.full) && row_cold_awaits(&phantom->row, holder)) {
        op->status = ENGINE_PENDING; /* and BUSY, if that takes too long */
        op->wants_table = true;
        row_wait(&phantom->row, &op->ticket);
    }
}

/* Its table was recycled: nothing is there, and nothing can be put there unless one opens again. */
static void change_below(struct phantom *phantom, struct engine_op *op, const struct rule *rule)
{
    op->status = rule->absent_is;
    if (rule->absent != ACT_ADD) {
        return;
    }
    enum row_verdict verdict = row_admit_again(&phantom->row, op->id);
    if (verdict == ROW_WAIT) {
        op->status = ENGINE_PENDING;
        op->wants_table = true;
        row_wait(&phantom->row, &op->ticket);
        return;
    }
    op->error = verdict == ROW_BELOW ? ENGINE_E_ID_BELOW : refusal_by_row(phantom, verdict);
}

/* A verb that changes nothing. */
static void look(struct engine_op *op, const struct rule *rule)
{
    enum phantom_answer answer = phantom_ops_ask(phantom_ops_table(op), op);
    if (answer == PHANTOM_YES || answer == PHANTOM_NO) {
        op->status = answer == PHANTOM_YES ? rule->there_is : rule->absent_is;
    } else {
        phantom_ops_put_off(op, answer);
    }
}

static void change(struct phantom *phantom, struct engine_op *op, const struct rule *rule,
                   struct change_sink *sink)
{
    if (!phantom_ops_table(op)) {
        change_below(phantom, op, rule);
    } else if (rule->there == ACT_NOTHING && rule->absent == ACT_NOTHING) {
        look(op, rule);
    } else {
        edit(phantom, op, rule, sink);
    }
}

void phantom_change(struct engine *engine, struct engine_op *op, struct change_sink *sink)
{
    struct phantom *phantom = (struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    CHECK(op->verb == ENGINE_SET || op->verb == ENGINE_ADD || op->verb == ENGINE_REPLACE ||
          op->verb == ENGINE_CAS || op->verb == ENGINE_DELETE);
    op->error = refusal_of(phantom, op);
    op->cas_now = op->verb == ENGINE_DELETE || op->expires ? 0 : MEMBER_TOKEN;
    if (op->error == ENGINE_E_NONE) {
        change(phantom, op, rule_of(op), sink);
    }
    bool waits = op->status == ENGINE_PENDING && op->error == ENGINE_E_BUSY;
    if (op->error != ENGINE_E_NONE && !waits) {
        op->status = ENGINE_ERROR;
    }
}
