/* table_change.c: what every edit of a record does, wherever the record lies. */
#include "base/point.h"
#include "counter/table_private.h"

/* Why a new record could not be stored, as the operation says it. */
static enum engine_error table_insert_error(enum table_insert_result result)
{
    static const enum engine_error errors[] = {
        [TABLE_INSERT_FULL] = ENGINE_E_OUT_OF_MEMORY,
        [TABLE_INSERT_NO_TABLE] = ENGINE_E_NO_TABLE_FREE,
        [TABLE_INSERT_TOO_FAR] = ENGINE_E_ID_TOO_FAR,
        [TABLE_INSERT_BUSY] = ENGINE_E_BUSY,
        [TABLE_INSERT_LATER] = ENGINE_E_BUSY,
        [TABLE_INSERT_AGAIN] = ENGINE_E_NONE,
    };
    return errors[result];
}

bool table_change_begin(struct table_change *c, enum engine_error *error)
{
    struct counter_edit *edit = c->edit;
    CHECK(c->table->magic == TABLE_MAGIC);
    edit->view = &c->table->view;
    edit->elsewhere = false;
    edit->apart = false;
    c->done = false;
    c->result = TABLE_INSERTED;
    if (LIKELY(c->sink->functions->reserve(c->sink))) {
        return true;
    }
    *error = ENGINE_E_JOURNAL_BUSY;
    return false;
}

void table_change_hand_over(const struct table_change *c, uint32_t named, bool erased)
{
    const struct counter_table *t = c->table;
    const struct counter_values *after = &c->edit->after;
    bool there_apart = c->put == CHANGE_THERE && UNLIKELY(t->row.is_apart);
    struct change change;
    change.type = erased ? CHANGE_DELETE : CHANGE_SLOTS;
    change.space = c->space;
    change.place = erased ? table_delete_place(t) : there_apart ? CHANGE_THERE_APART : c->put;
    change.layer = t->row.layer;
    change.id = c->locus->id;
    change.named = named;
    change.set = after->set & named;
    for (uint32_t set = change.set; set; set &= set - 1) {
        unsigned i = (unsigned)__builtin_ctz(set);
        change.values[i] = after->value[i];
    }
    POINT("in the lock, before the LSN");
    c->sink->functions->put(c->sink, &change);
    POINT("in the lock, after the LSN");
}

enum engine_status table_change_end(const struct table_change *c, enum engine_error *error)
{
    if (UNLIKELY(!c->done)) {
        c->sink->functions->cancel(c->sink);
    }
    if (LIKELY(c->result == TABLE_INSERTED)) {
        return c->status;
    }
    *error = table_insert_error(c->result);
    return c->result == TABLE_INSERT_WAIT ? ENGINE_PENDING : ENGINE_ERROR;
}
