/*
 * phantom_ops.c: operations of the engine on its tables: one table says what each verb does with a
 * member that is there and with one that is not.
 *
 * scratch[0] of an op: the member's hash; scratch[1]: its table, NULL below the oldest.
 */
#include <string.h>

#include "base/check.h"
#include "phantom/phantom_private.h"

#define MEMBER_TEXT  '1' /* what a member that is there reads as */
#define MEMBER_TOKEN 1   /* and its cas token */

bool phantom_slot_of(const struct engine *engine, const char *tail, size_t length, int *slot)
{
    (void)engine, (void)tail, (void)length, (void)slot;
    return false; /* a key names a member, never a slot */
}

static struct phantom_member member_of(const struct engine_op *op)
{
    return (struct phantom_member){
        .id = op->id, .hash = op->scratch[0], .bytes = op->member, .length = op->member_length};
}

/* The table of a prepared op; NULL: its id lies below the oldest. */
static struct phantom_table *table_of(const struct engine_op *op)
{
    return phantom_table_of((struct row_table *)(uintptr_t)op->scratch[1]);
}

void phantom_prepare(struct engine *engine, struct engine_op *const *ops, size_t n)
{
    const struct phantom *phantom = (const struct phantom *)engine;
    for (size_t i = 0; i < n; i++) {
        struct engine_op *op = ops[i];
        struct row_table *table = row_find(&phantom->row, op->id);
        op->scratch[1] = (uintptr_t)table;
        op->scratch[0] = phantom_hash(&phantom->secrets, op->id, op->member, op->member_length);
        if (LIKELY(table != NULL)) {
            phantom_table_prefetch(phantom_table_of(table), op->scratch[0]);
        }
    }
}

static bool out_of_range(const struct phantom *phantom, uint64_t id)
{
    return phantom->config.any_ids && id > phantom->config.max_id;
}

static void read_one(const struct phantom *phantom, struct engine_op *op)
{
    struct phantom_member member = member_of(op);
    const struct phantom_table *table = table_of(op);
    op->error = ENGINE_E_NONE;
    op->cas_now = MEMBER_TOKEN;
    if (!table || out_of_range(phantom, op->id) || !phantom_table_holds(table, &member)) {
        op->status = ENGINE_ABSENT;
        op->miss = table ? ENGINE_MISS_ABSENT : ENGINE_MISS_BELOW;
        return;
    }
    op->status = ENGINE_DONE;
    if (op->verb == ENGINE_READ) {
        op->value[0] = MEMBER_TEXT;
        op->value_length = 1;
    }
}

void phantom_read(struct engine *engine, struct engine_op *const *ops, size_t n)
{
    const struct phantom *phantom = (const struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    for (size_t i = 0; i < n; i++) {
        read_one(phantom, ops[i]);
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

/* `1`, and blanks behind it. */
static bool is_member_text(const char *text, uint32_t length)
{
    if (length == 0 || text[0] != MEMBER_TEXT) {
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

/* What a refused admission is called; ENGINE_PENDING has no error. */
static enum engine_error refusal_by_row(const struct phantom *phantom, enum row_verdict verdict)
{
    if (verdict == ROW_TOO_FAR) {
        return ENGINE_E_ID_TOO_FAR;
    }
    return phantom->config.any_ids ? ENGINE_E_OUT_OF_MEMORY : ENGINE_E_NO_TABLE_FREE;
}

/* Under the lock. True: done; else the op's status and error say why not. */
static bool carry_out(struct phantom *phantom, struct engine_op *op, enum act act,
                      const struct phantom_member *member, enum change_place *place)
{
    struct phantom_table *table = table_of(op);
    if (act == ACT_ADD) {
        enum row_verdict verdict = phantom_table_add(&phantom->row, table, member, place);
        if (verdict == ROW_INSIDE || verdict == ROW_APART) {
            return true;
        }
        op->status = ENGINE_PENDING;
        op->error = verdict == ROW_WAIT ? ENGINE_E_NONE : refusal_by_row(phantom, verdict);
        return false;
    }
    op->error = !phantom->config.deletes                     ? ENGINE_E_DELETES_OFF
                : phantom_table_remove(table, member, place) ? ENGINE_E_NONE
                                                             : ENGINE_E_OUT_OF_MEMORY;
    return op->error == ENGINE_E_NONE;
}

static void hand_over(const struct phantom *phantom, enum act act, enum change_place place,
                      const struct phantom_member *member, struct change_sink *sink)
{
    struct change change;
    change.type = act == ACT_ADD ? CHANGE_MEMBER_ADD : CHANGE_MEMBER_DELETE;
    change.space = phantom->engine.space;
    change.place = place;
    change.id = member->id;
    change.named = 0;
    change.set = 0;
    change.member[0] = member->hash;
    change.member[1] = member->second;
    (void)sink->functions->put(sink, &change);
}

/* With the sink's room, which it uses or gives back. */
static void edit(struct phantom *phantom, struct engine_op *op, const struct rule *rule,
                 struct change_sink *sink)
{
    struct phantom_member member = member_of(op);
    struct phantom_table *table = table_of(op);
    phantom_table_lock(table, &member);
    bool there = phantom_table_holds(table, &member);
    enum act act = there ? rule->there : rule->absent;
    op->status = there ? rule->there_is : rule->absent_is;
    if (act != ACT_NOTHING) {
        member.second = phantom_second_hash(&phantom->secrets, &member);
    }
    enum change_place place;
    if (act != ACT_NOTHING && carry_out(phantom, op, act, &member, &place)) {
        hand_over(phantom, act, place, &member, sink);
    } else {
        sink->functions->cancel(sink);
    }
    phantom_table_unlock(table, &member);
    if (op->status == ENGINE_PENDING && op->error == ENGINE_E_NONE) {
        row_wait(&phantom->row, &op->ticket);
    }
}

/* Its table was recycled: nothing is there, and nothing can be put there. */
static void change_below(struct engine_op *op, const struct rule *rule)
{
    op->status = rule->absent_is;
    op->error = rule->absent == ACT_ADD ? ENGINE_E_ID_BELOW : ENGINE_E_NONE;
}

static void change(struct phantom *phantom, struct engine_op *op, const struct rule *rule,
                   struct change_sink *sink)
{
    if (!table_of(op)) {
        change_below(op, rule);
    } else if (rule->there == ACT_NOTHING && rule->absent == ACT_NOTHING) {
        struct phantom_member member = member_of(op);
        bool there = phantom_table_holds(table_of(op), &member);
        op->status = there ? rule->there_is : rule->absent_is;
    } else if (sink->functions->reserve(sink)) {
        edit(phantom, op, rule, sink);
    } else {
        op->error = ENGINE_E_JOURNAL_BUSY;
    }
}

void phantom_change(struct engine *engine, struct engine_op *op, struct change_sink *sink)
{
    struct phantom *phantom = (struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    CHECK(op->verb == ENGINE_SET || op->verb == ENGINE_ADD || op->verb == ENGINE_REPLACE ||
          op->verb == ENGINE_CAS || op->verb == ENGINE_DELETE);
    op->error = refusal_of(phantom, op);
    if (op->error == ENGINE_E_NONE) {
        change(phantom, op, &rules[op->verb][op->expires], sink);
    }
    if (op->error != ENGINE_E_NONE) {
        op->status = ENGINE_ERROR;
    }
}
