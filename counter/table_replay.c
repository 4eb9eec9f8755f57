/*
 * table_replay.c: a change that a journal kept is made again. The image it is made on is blurred
 * (row/row_log.h): what the change says holds, not what is found.
 */
#include "counter/table_private.h"

static enum engine_status decide_slots(const struct counter_edit *edit, bool present,
                                       const struct counter_values *before,
                                       struct counter_values *after)
{
    const struct change *change = edit->context;
    (void)present;
    after->set = (before->set & ~change->named) | change->set;
    for (uint32_t set = change->set; set; set &= set - 1) {
        unsigned i = (unsigned)__builtin_ctz(set);
        after->value[i] = change->values[i];
    }
    return ENGINE_DONE;
}

static enum engine_status decide_delete(const struct counter_edit *edit, bool present,
                                        const struct counter_values *before,
                                        struct counter_values *after)
{
    (void)edit;
    (void)present;
    (void)before;
    (void)after;
    return ENGINE_DONE;
}

static enum table_ask ask_for(const struct change *change)
{
    static const enum table_ask asks[] = {
        [CHANGE_THERE] = TABLE_REPLAY_THERE,
        [CHANGE_INSIDE] = TABLE_REPLAY_INSIDE,
        [CHANGE_APART] = TABLE_REPLAY_INSIDE,
        [CHANGE_THERE_APART] = TABLE_REPLAY_THERE,
    };
    CHECK(change->place <= CHANGE_THERE_APART);
    return change->type == CHANGE_DELETE ? TABLE_REPLAY_THERE : asks[change->place];
}

enum counter_replayed counter_table_replay(struct counter_table *t,
                                           const struct counter_locus *locus,
                                           const struct change *change, bool *created)
{
    bool deletes = change->type == CHANGE_DELETE;
    CHECK(deletes || change->type == CHANGE_SLOTS);
    CHECK(!t->previewed);
    struct counter_edit edit = {
        .named = deletes ? 0 : change->named,
        .decide = deletes ? decide_delete : decide_slots,
        .context = (void *)change,
        .deleted_hidden = deletes,
    };
    enum engine_error error;
    enum table_ask ask = ask_for(change);
    struct table_change again = {
        .table = t, .locus = locus, .edit = &edit, .space = 0, .sink = change_sink_null()};
    enum engine_status status = table_edit(&again, ask, &error);
    if (edit.elsewhere) {
        return COUNTER_REPLAY_FURTHER;
    }
    *created = edit.created && !deletes && status != ENGINE_ABSENT;
    while (UNLIKELY(status == ENGINE_ERROR) && table_dicts_grow(t)) {
        status = table_edit(&again, ask, &error);
    }
    return status == ENGINE_ERROR ? COUNTER_REPLAY_FULL : COUNTER_REPLAYED;
}
