/*
 * table_dicts.c: how large the dicts of a table are, and that none is ever too small for a table
 * which is being restored, or opened: what moves to it has found its place by another hash.
 *
 * An image is blurred (row/row_log.h): while it is replayed the table may hold ids that it never
 * held together, up to twice as many. What finds no place in a page goes to the extend dict, which
 * must take it, or the space could not start. So a full dict is copied to one twice as large:
 * nobody else is there. In the end only what the space really holds is left: what has its place in
 * the groups goes back there, and a dict that grew is copied to one of its usual size.
 */
#include "counter/table_private.h"

/* Entries a dict takes for sure, were it that many times smaller. */
static uint64_t table_dict_takes(const struct dict *dict, unsigned times)
{
    return dict_pool_bytes(dict) / times / dict_entry_bytes(dict) * TABLE_DICT_TAKES / 100;
}

void table_dicts_note(struct counter_table *t)
{
    t->row.pool_bytes = dict_pool_bytes(t->extend) + dict_pool_bytes(t->aux);
}

/* Makes it this many times as large as described. False: that cannot be. */
static bool resize(struct counter_table *t, struct dict **dict, uint64_t described_bytes,
                   unsigned *times, unsigned wanted)
{
    bool resized = dict_resize(dict, described_bytes * wanted);
    *times = resized ? wanted : *times;
    table_dicts_note(t);
    return resized;
}

static bool grow_extend(struct counter_table *t)
{
    return resize(t, &t->extend, t->shape.extend_bytes, &t->extend_times, 2 * t->extend_times);
}

static bool grow_aux(struct counter_table *t)
{
    return resize(t, &t->aux, t->shape.aux_bytes, &t->aux_times, 2 * t->aux_times);
}

static double share_used(const struct dict *dict)
{
    uint64_t bytes = dict_count(dict) * dict_entry_bytes(dict);
    return (double)bytes / (double)dict_pool_bytes(dict);
}

bool table_dicts_grow(struct counter_table *t)
{
    return share_used(t->aux) > share_used(t->extend) ? grow_aux(t) : grow_extend(t);
}

bool table_dicts_hold(struct counter_table *t, uint64_t extend, uint64_t aux)
{
    bool grown = true;
    while (grown && table_dict_takes(t->extend, 1) < extend) {
        grown = grow_extend(t);
    }
    while (grown && table_dict_takes(t->aux, 1) < aux) {
        grown = grow_aux(t);
    }
    return grown;
}

/* If they grew: what is new finds no more room in them than if they had not. */
static void table_dicts_bound(struct counter_table *t)
{
    if (t->extend_times > 1) {
        t->extend_max = table_dict_takes(t->extend, t->extend_times);
    }
    if (t->aux_times > 1) {
        t->aux_max = table_dict_takes(t->aux, t->aux_times);
    }
}

void table_dicts_trim(struct counter_table *t)
{
    table_dicts_bound(t);
    if (dict_count(t->extend) > t->extend_max) {
        table_take_back_spilled(t);
    }
    if (t->extend_times > TABLE_ROOMY) { /* if it does not fit it stays */
        resize(t, &t->extend, t->shape.extend_bytes, &t->extend_times, TABLE_ROOMY);
    }
    if (t->aux_times > TABLE_ROOMY) {
        resize(t, &t->aux, t->shape.aux_bytes, &t->aux_times, TABLE_ROOMY);
    }
}
