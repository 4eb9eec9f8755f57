/*
 * phantom_ops.c: operations of the engine on the table: one table says what each verb does with a
 * member that is there and with one that is not.
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
    return (struct phantom_member){op->id, op->scratch[0], op->member, op->member_length};
}

void phantom_prepare(struct engine *engine, struct engine_op *const *ops, size_t n)
{
    const struct phantom *phantom = (const struct phantom *)engine;
    for (size_t i = 0; i < n; i++) {
        struct engine_op *op = ops[i];
        op->scratch[0] = phantom_table_hash(phantom->table, op->id, op->member, op->member_length);
        phantom_table_prefetch(phantom->table, op->scratch[0]);
    }
}

static bool out_of_range(const struct phantom *phantom, uint64_t id)
{
    return phantom->config.any_ids && id > phantom->config.max_id;
}

static void read_one(const struct phantom *phantom, struct engine_op *op)
{
    struct phantom_member member = member_of(op);
    op->error = ENGINE_E_NONE;
    op->cas_now = MEMBER_TOKEN;
    if (out_of_range(phantom, op->id) || !phantom_table_holds(phantom->table, &member)) {
        op->status = ENGINE_ABSENT;
        op->miss = ENGINE_MISS_ABSENT;
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

/* Under the lock. */
static enum engine_error carry_out(struct phantom *phantom, enum act act,
                                   const struct phantom_member *member)
{
    if (act == ACT_ADD) {
        bool any = phantom->config.any_ids;
        bool added = phantom_table_add(phantom->table, member);
        return added ? ENGINE_E_NONE : any ? ENGINE_E_OUT_OF_MEMORY : ENGINE_E_NO_TABLE_FREE;
    }
    if (!phantom->config.deletes) {
        return ENGINE_E_DELETES_OFF;
    }
    bool removed = phantom_table_remove(phantom->table, member);
    return removed ? ENGINE_E_NONE : ENGINE_E_OUT_OF_MEMORY;
}

static void hand_over(const struct phantom *phantom, enum act act,
                      const struct phantom_member *member, struct change_sink *sink)
{
    struct change change;
    change.type = act == ACT_ADD ? CHANGE_MEMBER_ADD : CHANGE_MEMBER_DELETE;
    change.space = phantom->engine.space;
    change.id = member->id;
    change.named = 0;
    change.set = 0;
    change.member[0] = member->hash;
    change.member[1] = phantom_table_second_hash(phantom->table, member);
    (void)sink->functions->put(sink, &change);
}

/* With the sink's room, which it uses or gives back. */
static void edit(struct phantom *phantom, struct engine_op *op, const struct rule *rule,
                 struct change_sink *sink)
{
    struct phantom_member member = member_of(op);
    phantom_table_lock(phantom->table, &member);
    bool there = phantom_table_holds(phantom->table, &member);
    enum act act = there ? rule->there : rule->absent;
    op->status = there ? rule->there_is : rule->absent_is;
    if (act != ACT_NOTHING) {
        op->error = carry_out(phantom, act, &member);
    }
    if (act != ACT_NOTHING && op->error == ENGINE_E_NONE) {
        hand_over(phantom, act, &member, sink);
    } else {
        sink->functions->cancel(sink);
    }
    phantom_table_unlock(phantom->table, &member);
}

void phantom_change(struct engine *engine, struct engine_op *op, struct change_sink *sink)
{
    struct phantom *phantom = (struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    CHECK(op->verb == ENGINE_SET || op->verb == ENGINE_ADD || op->verb == ENGINE_REPLACE ||
          op->verb == ENGINE_CAS || op->verb == ENGINE_DELETE);
    const struct rule *rule = &rules[op->verb][op->expires];
    op->error = refusal_of(phantom, op);
    if (op->error == ENGINE_E_NONE) {
        if (rule->there == ACT_NOTHING && rule->absent == ACT_NOTHING) {
            struct phantom_member member = member_of(op);
            bool there = phantom_table_holds(phantom->table, &member);
            op->status = there ? rule->there_is : rule->absent_is;
        } else if (sink->functions->reserve(sink)) {
            edit(phantom, op, rule, sink);
        } else {
            op->error = ENGINE_E_JOURNAL_BUSY;
        }
    }
    if (op->error != ENGINE_E_NONE) {
        op->status = ENGINE_ERROR;
    }
}
