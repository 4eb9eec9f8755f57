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
    struct counter_values before; /* of the named slots, and what is known of others */
    struct table_packed packed;   /* the record: in its group, or `payload` */
    uint64_t payload[SCHEMA_PAYLOAD_WORDS];
    uint32_t in_aux;                          /* bit a view slot: of before */
    uint32_t aux_new, aux_changed, aux_freed; /* bit a view slot: entry to make, set, drop */
    uint32_t space;
    struct change_sink *sink;
    enum table_ask ask;
    bool done;                       /* there was something to change, and it is made */
    bool handed_over;                /* it was stored apart, and the sink has it */
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

static inline bool match_held(struct work *w, struct table_held *held, bool alternate)
{
    const struct counter_table *t = w->table;
    int place = table_match(t, held->words, held->word, w->locus->rem, alternate);
    if (place < 0) {
        return false;
    }
    w->held = held;
    w->place = (uint32_t)place;
    table_shadow_check(t, held->group, w->place, w->locus->id);
    w->packed = table_packed_at(t, held->words, w->place);
    return true;
}

/* No record yet. */
static void set_nothing(struct work *w)
{
    memset(w->payload, 0, sizeof(w->payload));
    w->packed = (struct table_packed){w->payload, 0};
}

/* Not at home: in the alternate, in the extend dict, or nowhere. False: begin again. */
static __attribute__((noinline)) bool find_further(struct work *w)
{
    struct counter_table *t = w->table;
    struct table_held *home = &w->hold.held[0];
    set_nothing(w);
    if (home->words) {
        uint64_t hash = rem_hash(t, w->locus->rem);
        if (home->word & rem_mark(hash)) {
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

/* Finds the record under the home's lock. False: a further lock is taken, begin again. */
static bool find_held(struct work *w)
{
    struct table_held *home = &w->hold.held[0];
    w->held = NULL;
    w->present = home->words && match_held(w, home, false);
    return LIKELY(w->present) || find_further(w);
}

/* The record's payload, copied if it lies in a group. */
static const uint64_t *payload_of(struct work *w)
{
    size_t bytes = w->table->shape.payload_bytes;
    if (w->held) {
        words_copy_out(w->held->words, w->place * bytes, bytes, w->payload);
    }
    return w->payload;
}

/* A value never moves back into its place while it is set. */
static bool to_aux(const struct work *w, unsigned i)
{
    const struct counter_values *after = &w->edit->after;
    bool in_aux = w->in_aux >> i & 1;
    return (after->set >> i & 1) && (in_aux || after->value[i] >= w->table->view.slots[i].aux_from);
}

/* Aux entries of the named slots, to make, set or drop. */
static void plan_aux(struct work *w)
{
    uint32_t aux = 0;
    for (uint32_t named = w->edit->named; named; named &= named - 1) {
        unsigned i = (unsigned)__builtin_ctz(named);
        aux |= (uint32_t)to_aux(w, i) << i;
    }
    w->aux_new = aux & ~w->in_aux;
    w->aux_changed = aux & w->in_aux;
    w->aux_freed = w->in_aux & w->edit->named & ~w->edit->after.set;
}

/* The named slots' bits, where the record lies. */
static void set_slots(const struct work *w, shared_word *words)
{
    const struct counter_values *after = &w->edit->after;
    uint32_t aux = w->aux_new | w->aux_changed;
    for (uint32_t named = w->edit->named; named; named &= named - 1) {
        unsigned i = (unsigned)__builtin_ctz(named);
        const struct words_field *field = &w->table->view.slots[i].field;
        uint64_t raw = UNLIKELY(aux >> i & 1) ? field->mask : after->value[i] + 1;
        field_store(words, w->packed.at, field, after->set >> i & 1 ? raw : 0);
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

/* Changes a record that is there; its group has it already. */
static void store_present(struct work *w)
{
    if (LIKELY(w->held != NULL)) {
        w->held->changed = true;
        return;
    }
    bool stored = dict_put(w->table->extend, w->locus->id, 0, w->payload);
    CHECK(stored); /* it has its place */
    w->hold.held[0].changed = true;
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

static enum engine_status edit_in(struct counter_table *t, const struct counter_locus *locus,
                                  struct counter_edit *edit, struct work *w,
                                  enum engine_error *error);

/*
 * It belongs apart, where it has been counted. The home stays locked, so that nobody else creates
 * it.
 */
static enum table_insert_result store_apart(struct work *w)
{
    struct row *row = w->table->in_row;
    struct counter_table *apart = counter_table_of(row->apart);
    struct counter_locus locus;
    struct counter_edit copy = {
        .named = w->edit->named, .decide = table_decide_copy, .context = &w->edit->after};
    struct work in = {.space = w->space, .sink = w->sink, .ask = TABLE_ASK_APART};
    enum engine_error error;
    counter_table_locate(apart, w->locus->id, true, &locus);
    w->handed_over = edit_in(apart, &locus, &copy, &in, &error) == ENGINE_DONE;
    if (w->handed_over) {
        return TABLE_INSERTED;
    }
    row_removed(row->apart, row->apart, w->locus->id);
    return table_verdict_result(row_too_far(row, &w->table->root->row, w->locus->id));
}

static enum table_insert_result store(struct work *w)
{
    plan_aux(w);
    if (UNLIKELY(w->aux_new | w->aux_changed) && !put_aux_new(w)) {
        return TABLE_INSERT_FULL;
    }
    enum table_insert_result result = TABLE_INSERTED;
    w->put = CHANGE_THERE;
    set_slots(w, w->held ? w->held->words : w->payload);
    if (w->present) {
        store_present(w);
    } else {
        result = table_insert(w->table, w->locus, &w->hold, w->payload, w->ask, &w->put);
    }
    if (result != TABLE_INSERTED) {
        drop_aux(w, w->aux_new);
        return result == TABLE_INSERT_APART ? store_apart(w) : result;
    }
    bool stored = !w->aux_changed || put_aux(w, w->aux_changed);
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
    table_free_aux(t, w->locus->id, payload_of(w));
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
static void hand_over(const struct work *w, bool erased)
{
    const struct counter_table *t = w->table;
    bool there_apart = w->put == CHANGE_THERE && UNLIKELY(t->row.is_apart);
    struct change change;
    change.type = erased ? CHANGE_DELETE : CHANGE_SLOTS;
    change.space = w->space;
    change.place = erased ? table_delete_place(t) : there_apart ? CHANGE_THERE_APART : w->put;
    change.id = w->locus->id;
    /* Tapped: whole, so that replay need not look into the file (row/row_cold.h). */
    change.named = UNLIKELY(t->overlay) ? counter_view_all(&t->view) : w->edit->named;
    change.set = w->edit->after.set & change.named;
    for (uint32_t set = change.set; set; set &= set - 1) {
        unsigned i = (unsigned)__builtin_ctz(set);
        change.values[i] = w->edit->after.value[i];
    }
    POINT("in the lock, before the LSN");
    w->sink->functions->put(w->sink, &change);
    POINT("in the lock, behind the LSN");
}

/* The values that are in the aux dict; in_aux becomes what is there. */
static __attribute__((noinline)) void set_before_aux(struct work *w)
{
    const struct counter_table *t = w->table;
    table_read_aux(t, w->locus->id, w->in_aux, &w->before);
    w->in_aux &= ~t->view.aux_only | w->before.set;
}

/* What the record is before the edit, and `after` as if nothing were decided. */
static void set_before(struct work *w)
{
    const struct counter_table *t = w->table;
    struct counter_values *after = &w->edit->after;
    uint32_t slots = w->edit->named | t->view.aux_only;
    if (UNLIKELY(t->overlay)) {
        slots = counter_view_all(&t->view); /* the sink gets them all */
    }
    w->before.set = w->in_aux = 0;
    if (w->present) {
        w->in_aux = table_decode(&t->view, w->packed, slots, &w->before);
        if (UNLIKELY(w->in_aux)) {
            set_before_aux(w);
        }
    }
    after->set = w->before.set;
    for (; slots; slots &= slots - 1) {
        unsigned i = (unsigned)__builtin_ctz(slots);
        after->value[i] = w->before.value[i];
    }
}

/* Is a slot set, of `known` or of those the edit does not name? */
static bool any_set(const struct work *w, uint32_t known)
{
    const struct counter_view *view = &w->table->view;
    return LIKELY(known != 0) || (w->present && table_others_set(view, w->packed, w->edit->named));
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
        set_nothing(w);
        set_before(w);
    }
    return true;
}

static bool lies_apart(const struct work *w)
{
    const struct counter_table *t = w->table;
    return row_may_be_apart(&t->root->row, w->locus->id) && w->ask == TABLE_ASK_ADMIT &&
           table_is_apart(t, w->locus->id);
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
    if (UNLIKELY(!w->present && (w->table->row.further || w->ask == TABLE_ASK_THERE))) {
        w->edit->elsewhere = true; /* for good: nothing new comes here */
        w->status = ENGINE_ABSENT;
        return true;
    }
    if (UNLIKELY(!w->present && lies_apart(w))) {
        w->edit->apart = true; /* somebody has put it there meanwhile */
        w->status = ENGINE_ABSENT;
        return true;
    }
    if (UNLIKELY(table_is_replayed(w->ask)) && !decide_replayed(w)) {
        w->status = ENGINE_ABSENT;
        return true;
    }
    w->status = w->edit->decide(w->edit, any_set(w, w->before.set), &w->before, &w->edit->after);
    return true;
}

/* Makes what was decided so and unlocks. True: there was something to change, and it is done. */
static bool carry_out(struct work *w)
{
    /* In replay a record may for a while have nothing set: an image's is of no single time. */
    bool emptied = !any_set(w, w->edit->after.set) && !table_is_replayed(w->ask);
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
    bool here = put && !w->handed_over;
    if (UNLIKELY(w->table->overlay) && here) {
        table_tap(w->table, w->locus->id, erased ? NULL : payload_of(w));
    }
    if (here) {
        hand_over(w, erased);
    }
    table_release(&w->hold);
    return put;
}

/* With the sink's room, which it uses if it is `done`. `w` says who is asked, and the sink. */
static enum engine_status edit_in(struct counter_table *t, const struct counter_locus *locus,
                                  struct counter_edit *edit, struct work *w,
                                  enum engine_error *error)
{
    unsigned spins = 0;
    edit->view = &t->view;
    edit->elsewhere = false;
    edit->apart = false;
    w->table = t;
    w->locus = locus;
    w->edit = edit;
    w->done = false;
    w->handed_over = false;
    for (;;) {
        if (LIKELY(decide(w))) {
            w->done = carry_out(w);
            if (LIKELY(w->result != TABLE_INSERT_AGAIN)) {
                break;
            }
        }
        verlock_pause(&spins); /* the holder of the further lock may need this processor */
    }
    if (LIKELY(w->result == TABLE_INSERTED)) {
        return w->status;
    }
    *error = table_insert_error(w->result);
    return w->result == TABLE_INSERT_WAIT ? ENGINE_PENDING : ENGINE_ERROR;
}

enum engine_status table_edit(struct counter_table *t, const struct counter_locus *locus,
                              struct counter_edit *edit, uint32_t space, struct change_sink *sink,
                              enum table_ask ask, enum engine_error *error)
{
    CHECK(t->magic == TABLE_MAGIC);
    if (!sink->functions->reserve(sink)) {
        edit->elsewhere = false;
        edit->apart = false;
        *error = ENGINE_E_JOURNAL_BUSY;
        return ENGINE_ERROR;
    }
    struct work w; /* not zeroed: most of it is set by decide() and plan() */
    w.space = space;
    w.sink = sink;
    w.ask = ask;
    enum engine_status status = edit_in(t, locus, edit, &w, error);
    if (!w.done) {
        sink->functions->cancel(sink);
    }
    return status;
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

enum engine_status counter_table_edit_apart(struct counter_table *apart,
                                            const struct counter_locus *locus,
                                            struct counter_edit *edit, uint32_t space,
                                            struct change_sink *sink, enum engine_error *error)
{
    return table_edit(apart, locus, edit, space, sink, TABLE_ASK_THERE, error);
}
