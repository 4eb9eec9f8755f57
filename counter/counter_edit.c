/*
 * counter_edit.c: an edit of a record wherever it lies: in its table, in memory or dumped, in the
 * table's layer, or apart.
 */
#include "base/check.h"
#include "counter/counter_private.h"

static enum engine_status edit_cold(struct counter_changing *c, struct counter_table *table,
                                    const struct counter_locus *locus)
{
    struct counter_reader reader = counter_reader_of(c->counter, c->op);
    enum engine_status status = counter_table_edit_cold(
        table, locus, c->edit, c->counter->engine.space, c->sink, &reader, &c->op->error);
    c->waits = !reader.pending;
    c->op->copied_bytes = ENGINE_COPIED_COLD;
    row_cold_changed(&c->counter->row, counter_table_in_row(table));
    bool full =
        status == ENGINE_ERROR && c->op->error == ENGINE_E_BUSY && reader.error == ENGINE_E_NONE;
    if (UNLIKELY(full) && row_cold_awaits(&c->counter->row, counter_table_in_row(table))) {
        status = ENGINE_PENDING; /* and BUSY, if that takes too long */
    }
    return status;
}

static enum engine_status edit_one(struct counter_changing *c, struct counter_table *table,
                                   const struct counter_locus *locus)
{
    c->waits = true;
    return LIKELY(!counter_is_cold(table))
               ? counter_table_edit(table, locus, c->edit, c->counter->engine.space, c->sink,
                                    &c->op->error)
               : edit_cold(c, table, locus);
}

/* Edits in the table or its layers: the last one has what no other has. */
static enum engine_status edit_in_place(struct counter_changing *c)
{
    struct counter_table *table = counter_op_table(c->op);
    struct counter_locus locus = *counter_op_locus(c->op);
    enum engine_status status = edit_one(c, table, &locus);
    while (UNLIKELY(c->edit->elsewhere)) {
        table = counter_layer_of(table);
        counter_table_locate(table, c->op->id, true, &locus);
        status = edit_one(c, table, &locus);
    }
    return status;
}

/* Edits in the table for ids apart; `elsewhere`: the id is not there. */
static enum engine_status edit_apart(struct counter_changing *c)
{
    struct counter_table *apart = counter_table_of(c->counter->row.apart);
    struct counter_locus locus;
    counter_table_locate(apart, c->op->id, true, &locus);
    return counter_table_edit_apart(apart, &locus, c->edit, c->counter->engine.space, c->sink,
                                    &c->op->error);
}

/* Again from the beginning, where somebody puts it apart, or deletes it there, meanwhile. */
enum engine_status counter_edit_record(struct counter_changing *c)
{
    enum engine_status status = ENGINE_ABSENT;
    bool elsewhere = true;
    do {
        if (UNLIKELY(counter_may_be_apart(counter_op_table(c->op), c->op->id))) {
            status = edit_apart(c);
            elsewhere = c->edit->elsewhere;
        }
        status = elsewhere ? edit_in_place(c) : status;
    } while (UNLIKELY(elsewhere && c->edit->apart));
    return status;
}
