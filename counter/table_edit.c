/*
 * table_edit.c: one change: lock, find, decide, take dict places, write, hand to the sink, unlock.
 */
#include <string.h>

#include "base/point.h"
#include "counter/table_private.h"

/* An edit under way. */
struct work {
    struct counter_table *table;
    const struct counter_locus *locus;
    struct counter_edit *edit;
    struct table_hold hold;
    struct table_held
        *held; /* where the record lies in a group; NULL: in the extend dict or nowhere */
    uint32_t place;
    bool present;                 /* there is a record, maybe of hidden slots only */
    struct counter_values before; /* of the view */
    uint64_t payload[SCHEMA_PAYLOAD_WORDS];
    uint32_t aux_new, aux_changed, aux_freed; /* bit a view slot: entry to make, set, drop */
    enum table_ask ask;
    enum change_place put;           /* where it was stored */
    enum engine_status status;       /* as decided */
    enum table_insert_result result; /* of what was to be stored */
};

enum engine_error table_insert_error(enum table_insert_result result)
{
    static const enum engine_error errors[] = {
        [TABLE_INSERT_FULL] = ENGINE_E_OUT_OF_MEMORY,
        [TABLE_INSERT_NO_TABLE] = ENGINE_E_NO_TABLE_FREE,
        [TABLE_INSERT_TOO_FAR] = ENGINE_E_ID_TOO_FAR,
        [TABLE_INSERT_BUSY] = ENGINE_E_BUSY,
        [TABLE_INSERT_AGAIN] = ENGINE_E_NONE,
    };
    return errors[result];
}

static bool match_held(struct work *w, struct table_held *held, bool alternate)
{
    const struct counter_table *t = w->table;
    int place = table_match(t, held->words, held->word, w->locus->rem, alternate);
    if (place < 0) {
        return false;
    }
    w->held = held;
    w->place = (uint32_t)place;
    table_shadow_check(t, held->group, w->place, w->locus->id);
    words_copy_out(held->words, (size_t)w->place * t->shape.payload_bytes, t->shape.payload_bytes,
                   w->payload);
    return true;
}

/* Finds the record under the home's lock. False: a further lock is taken, begin again. */
static bool find_held(struct work *w)
{
    struct counter_table *t = w->table;
    struct table_held *home = &w->hold.held[0];
    w->held = NULL;
    w->present = false;
    for (unsigned i = 0; i <= (t->shape.payload_bytes + 7) / 8; i++) {
        w->payload[i] = 0;
    }
    if (home->words) {
        w->present = match_held(w, home, false);
        uint64_t hash = w->present ? 0 : rem_hash(t, w->locus->rem);
        if (!w->present && (home->word & rem_mark(hash))) {
            struct table_held *other =
                table_hold_group(t, &w->hold, group_other(t, home->group, hash));
            if (!other) {
                return false;
            }
            w->present = match_held(w, other, true);
        }
        if (w->present || !(home->word & GROUP_SPILLED)) {
            return true;
        }
    }
    w->present = dict_get(t->extend, w->locus->id, 0, w->payload);
    return true;
}

/* Sorts the named slots: new payload bits, and aux entries to make, set or drop. */
static void plan(struct work *w)
{
    const struct counter_view *view = &w->table->view;
    const struct counter_values *after = &w->edit->after;
    w->aux_new = w->aux_changed = w->aux_freed = 0;
    for (uint32_t named = w->edit->named; named; named &= named - 1) {
        unsigned i = (unsigned)__builtin_ctz(named);
        const struct counter_view_slot *slot = &view->slots[i];
        bool physical = slot->physical != SCHEMA_AUX_ONLY;
        uint64_t mark = physical ? counter_slot_in_aux(slot->bits) : 0;
        bool in_aux = physical ? bits_get(w->payload, slot->offset, slot->bits) == mark
                               : w->before.set >> i & 1;
        bool set = after->set >> i & 1;
        /* A value never moves back into its place while it is set. */
        bool to_aux = set && (in_aux || !physical || after->value[i] > slot->in_place_max);
        w->aux_new |= (uint32_t)(to_aux && !in_aux) << i;
        w->aux_changed |= (uint32_t)(to_aux && in_aux) << i;
        w->aux_freed |= (uint32_t)(!set && in_aux) << i;
        if (physical) {
            uint64_t raw = to_aux ? mark : after->value[i] + 1;
            bits_set(w->payload, slot->offset, slot->bits, set ? raw : 0);
        }
    }
}

static void drop_aux(struct work *w, uint32_t slots)
{
    for (; slots; slots &= slots - 1) {
        unsigned i = (unsigned)__builtin_ctz(slots);
        dict_delete(w->table->aux, w->locus->id, w->table->view.slots[i].sub);
        w->hold.held[0].changed = true;
    }
}

static bool put_aux(struct work *w, uint32_t slots)
{
    for (uint32_t left = slots; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        if (!dict_put(w->table->aux, w->locus->id, w->table->view.slots[i].sub,
                      &w->edit->after.value[i])) {
            drop_aux(w, slots & ~left);
            return false;
        }
        w->hold.held[0].changed = true;
    }
    return true;
}

/* Writes the payload of a record that is there. */
static void store_present(struct work *w)
{
    struct counter_table *t = w->table;
    if (!w->held) {
        bool stored = dict_put(t->extend, w->locus->id, 0, w->payload);
        CHECK(stored); /* it has its place */
        w->hold.held[0].changed = true;
        return;
    }
    words_copy_in(w->held->words, (size_t)w->place * t->shape.payload_bytes, t->shape.payload_bytes,
                  w->payload);
    w->held->changed = true;
}

/* Makes the aux entries that are new. A restored table keeps some room for the next restart. */
static bool put_aux_new(struct work *w)
{
    const struct counter_table *t = w->table;
    if (UNLIKELY(table_is_replayed(w->ask))) {
        w->aux_new |= w->aux_changed; /* an image may lack what its record speaks of */
        w->aux_changed = 0;
    }
    bool full = w->aux_new && dict_count(t->aux) >= t->aux_max;
    return !full && put_aux(w, w->aux_new);
}

static enum table_insert_result store(struct work *w)
{
    plan(w);
    if (!put_aux_new(w)) {
        return TABLE_INSERT_FULL;
    }
    enum table_insert_result result = TABLE_INSERTED;
    w->put = CHANGE_THERE;
    if (w->present) {
        store_present(w);
    } else {
        result = table_insert(w->table, w->locus, &w->hold, w->payload, w->ask, &w->put);
    }
    if (result != TABLE_INSERTED) {
        drop_aux(w, w->aux_new);
        return result;
    }
    bool stored = put_aux(w, w->aux_changed);
    CHECK(stored); /* they have their places */
    drop_aux(w, w->aux_freed);
    return TABLE_INSERTED;
}

void table_free_aux(const struct counter_table *t, uint64_t id, const uint64_t *payload)
{
    const struct counter_schema *schema = &t->schema;
    for (unsigned i = 0; i < schema->slot_count; i++) {
        unsigned bits = schema->slots[i].bits;
        if (bits_get(payload, schema->offset[i], bits) == counter_slot_in_aux(bits)) {
            dict_delete(t->aux, id, (uint8_t)i);
        }
    }
    for (unsigned i = 0; i < schema->extra_count; i++) {
        dict_delete(t->aux, id, (uint8_t)(ENGINE_SLOTS_MAX + i));
    }
}

/* Takes the whole record out, hidden slots and all their aux entries too. It stays counted. */
static void take_out(struct work *w)
{
    struct counter_table *t = w->table;
    table_free_aux(t, w->locus->id, w->payload);
    if (w->held) {
        table_remove(t, w->held, w->place);
    } else {
        dict_delete(t->extend, w->locus->id, 0);
    }
    w->hold.held[0].changed = true;
}

static void erase(struct work *w)
{
    struct counter_table *t = w->table;
    take_out(w);
    row_removed(&t->root->row, &t->row, w->locus->id);
}

/* Hands the change to the sink, under the lock. */
static void hand_over(const struct work *w, uint32_t space, struct change_sink *sink, bool erased)
{
    struct change change;
    change.type = erased ? CHANGE_DELETE : CHANGE_SLOTS;
    change.space = space;
    change.place = erased ? CHANGE_THERE : w->put;
    change.id = w->locus->id;
    /* Tapped: whole, so that replay need not look into the file (engine/row_cold.h). */
    const struct counter_table *t = w->table;
    change.named = UNLIKELY(t->overlay) ? counter_view_all(&t->view) : w->edit->named;
    change.set = w->edit->after.set & change.named;
    for (uint32_t set = change.set; set; set &= set - 1) {
        unsigned i = (unsigned)__builtin_ctz(set);
        change.values[i] = w->edit->after.value[i];
    }
    POINT("in the lock, before the LSN");
    sink->functions->put(sink, &change);
    POINT("in the lock, behind the LSN");
}

/* What the record is before the edit, and `after` as if nothing were decided. */
static void set_before(struct work *w)
{
    const struct counter_table *t = w->table;
    struct counter_values *after = &w->edit->after;
    if (w->present) {
        uint32_t in_aux = table_decode(&t->view, w->payload, &w->before);
        uint32_t needed = UNLIKELY(t->overlay) ? in_aux : w->edit->named | t->view.aux_only;
        table_read_aux(t, w->locus->id, in_aux & needed, &w->before);
    } else {
        w->before = (struct counter_values){0};
    }
    after->set = w->before.set;
    for (unsigned i = 0; i < t->view.slot_count; i++) {
        after->value[i] = w->before.value[i];
    }
}

/*
 * Replay: what an image has of a record that a change makes is of no account, not even its hidden
 * slots. False: the change is of one that is not there any more.
 */
static bool decide_replayed(struct work *w)
{
    w->edit->created = !w->present;
    if (w->ask == TABLE_REPLAY_THERE) {
        return w->present;
    }
    if (w->present) {
        take_out(w);
        w->present = false;
        w->held = NULL;
        memset(w->payload, 0, sizeof w->payload);
        set_before(w);
    }
    return true;
}

/* Locks, finds and decides. False: begin again (nothing is held). */
static bool decide(struct work *w)
{
    table_hold_home(w->table, w->locus, &w->hold);
    if (!find_held(w)) {
        table_release(&w->hold);
        return false;
    }
    POINT("found, nothing changed");
    set_before(w);
    if (UNLIKELY(!w->present && w->table->row.further)) {
        w->edit->elsewhere = true; /* for good: nothing new comes here */
        w->status = ENGINE_ABSENT;
        return true;
    }
    if (UNLIKELY(table_is_replayed(w->ask)) && !decide_replayed(w)) {
        w->status = ENGINE_ABSENT;
        return true;
    }
    w->status = w->edit->decide(w->edit, w->before.set != 0, &w->before, &w->edit->after);
    return true;
}

/* Makes what was decided so and unlocks. True: there was something to change, and it is done. */
static bool carry_out(struct work *w, uint32_t space, struct change_sink *sink)
{
    /* In replay a record may for a while have nothing set: an image's is of no single time. */
    bool emptied = w->edit->after.set == 0 && !table_is_replayed(w->ask);
    bool erased = w->edit->deleted_hidden || emptied;
    bool changes = w->status == ENGINE_DONE && (!erased || w->present);
    w->result = TABLE_INSERTED;
    if (changes) {
        row_changed(&w->table->row);
    }
    if (changes && erased) {
        erase(w);
    } else if (changes) {
        w->result = store(w);
    }
    bool put = changes && w->result == TABLE_INSERTED;
    if (UNLIKELY(w->table->overlay) && put) {
        table_tap(w->table, w->locus->id, erased ? NULL : w->payload);
    }
    if (put) {
        hand_over(w, space, sink, erased);
    }
    table_release(&w->hold);
    return put;
}

enum engine_status table_edit(struct counter_table *t, const struct counter_locus *locus,
                              struct counter_edit *edit, uint32_t space, struct change_sink *sink,
                              enum table_ask ask, enum engine_error *error)
{
    CHECK(t->magic == TABLE_MAGIC);
    edit->view = &t->view;
    edit->elsewhere = false;
    if (!sink->functions->reserve(sink)) {
        *error = ENGINE_E_JOURNAL_BUSY;
        return ENGINE_ERROR;
    }
    struct work w; /* not zeroed: most of it is set by decide() and plan() */
    w.table = t;
    w.locus = locus;
    w.edit = edit;
    w.ask = ask;
    bool put = false;
    unsigned spins = 0;
    for (;;) {
        if (LIKELY(decide(&w))) {
            put = carry_out(&w, space, sink);
            if (LIKELY(w.result != TABLE_INSERT_AGAIN)) {
                break;
            }
        }
        verlock_pause(&spins); /* the holder of the further lock may need this processor */
    }
    if (!put) {
        sink->functions->cancel(sink);
    }
    if (LIKELY(w.result == TABLE_INSERTED)) {
        return w.status;
    }
    *error = table_insert_error(w.result);
    return w.result == TABLE_INSERT_WAIT ? ENGINE_PENDING : ENGINE_ERROR;
}

bool table_put_record(struct counter_table *t, const struct counter_locus *locus,
                      const struct table_record *record)
{
    struct work w;
    w.table = t;
    w.locus = locus;
    table_hold_home(t, locus, &w.hold);
    bool found = find_held(&w);
    CHECK(found); /* nobody else is there */
    if (w.held) {
        table_remove(t, w.held, w.place);
    }
    dict_delete(t->extend, locus->id, 0); /* an image may have it twice */
    bool stored = true;
    for (uint64_t subs = table_subs_all(&t->schema); subs; subs &= subs - 1) {
        unsigned sub = (unsigned)__builtin_ctzll(subs);
        if (record->subs >> sub & 1) {
            stored = stored && dict_put(t->aux, locus->id, (uint8_t)sub, &record->aux[sub]);
        } else {
            dict_delete(t->aux, locus->id, (uint8_t)sub);
        }
    }
    if (stored && table_record_is_set(record)) {
        stored = table_insert_counted(t, locus, &w.hold, record->payload);
    }
    table_release(&w.hold);
    return stored;
}

enum engine_status counter_table_edit(struct counter_table *t, const struct counter_locus *locus,
                                      struct counter_edit *edit, uint32_t space,
                                      struct change_sink *sink, enum engine_error *error)
{
    return table_edit(t, locus, edit, space, sink, TABLE_ASK_ADMIT, error);
}
