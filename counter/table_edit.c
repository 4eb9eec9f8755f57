/*
 * table_edit.c: one change: lock, find, decide, take dict places, write, hand to the sink, unlock.
 */
#include <string.h>

#include "base/point.h"
#include "counter/table_private.h"

/* An edit under way. */
struct work {
    struct table_change c;
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
    enum table_ask ask;
    bool handed_over; /* it was stored apart, and the sink has it */
};

static inline bool match_held(struct work *w, struct table_held *held, bool alternate)
{
    const struct counter_table *t = w->c.table;
    int place = table_match(t, held->words, held->word, w->c.locus->rem, alternate);
    if (place < 0) {
        return false;
    }
    w->held = held;
    w->place = (uint32_t)place;
    table_shadow_check(t, held->group, w->place, w->c.locus->id);
    w->packed = table_packed_at(t, held->words, w->place);
    return true;
}

/* No record yet. */
static void set_nothing(struct work *w)
{
    memset(w->payload, 0, sizeof(w->payload));
    w->packed = (struct table_packed){w->payload, 0};
}

/* Finds a record that is not at home: in the alternate, in the extend dict, or nowhere. False:
 * begin again. */
static __attribute__((noinline)) bool find_further(struct work *w)
{
    struct counter_table *t = w->c.table;
    struct table_held *home = &w->hold.held[0];
    set_nothing(w);
    if (home->words) {
        uint64_t hash = rem_hash(t, w->c.locus->rem);
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
    w->present = dict_get(t->extend, w->c.locus->id, 0, w->payload);
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
    size_t bytes = w->c.table->shape.payload_bytes;
    if (w->held) {
        words_copy_out(w->held->words, w->place * bytes, bytes, w->payload);
    }
    return w->payload;
}

/* A value never moves back into its place while it is set. */
static bool to_aux(const struct work *w, unsigned i)
{
    const struct counter_values *after = &w->c.edit->after;
    bool in_aux = w->in_aux >> i & 1;
    return (after->set >> i & 1) &&
           (in_aux || after->value[i] >= w->c.table->view.slots[i].aux_from);
}

/* Aux entries of the named slots, to make, set or drop. */
static void plan_aux(struct work *w)
{
    uint32_t aux = 0;
    for (uint32_t named = w->c.edit->named; named; named &= named - 1) {
        unsigned i = (unsigned)__builtin_ctz(named);
        aux |= (uint32_t)to_aux(w, i) << i;
    }
    w->aux_new = aux & ~w->in_aux;
    w->aux_changed = aux & w->in_aux;
    w->aux_freed = w->in_aux & w->c.edit->named & ~w->c.edit->after.set;
}

/* The named slots' bits, where the record lies. */
static void set_slots(const struct work *w, shared_word *words)
{
    const struct counter_values *after = &w->c.edit->after;
    uint32_t aux = w->aux_new | w->aux_changed;
    for (uint32_t named = w->c.edit->named; named; named &= named - 1) {
        unsigned i = (unsigned)__builtin_ctz(named);
        const struct words_field *field = &w->c.table->view.slots[i].field;
        uint64_t raw = UNLIKELY(aux >> i & 1) ? field->mask : after->value[i] + 1;
        field_store(words, w->packed.at, field, after->set >> i & 1 ? raw : 0);
    }
}

static void drop_aux(struct work *w, uint32_t slots)
{
    for (; slots; slots &= slots - 1) {
        unsigned i = (unsigned)__builtin_ctz(slots);
        dict_delete(w->c.table->aux, w->c.locus->id, w->c.table->view.slots[i].sub);
        w->hold.held[0].changed = true;
    }
}

static bool put_aux(struct work *w, uint32_t slots)
{
    for (uint32_t left = slots; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        if (!dict_put(w->c.table->aux, w->c.locus->id, w->c.table->view.slots[i].sub,
                      &w->c.edit->after.value[i])) {
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
    bool stored = dict_put(w->c.table->extend, w->c.locus->id, 0, w->payload);
    CHECK(stored); /* it has its place */
    w->hold.held[0].changed = true;
}

/* Makes the aux entries that are new. A restored table keeps some room for the next restart. */
static bool put_aux_new(struct work *w)
{
    const struct counter_table *t = w->c.table;
    if (UNLIKELY(table_is_replayed(w->ask))) {
        w->aux_new |= w->aux_changed; /* an image may lack what its record speaks of */
        w->aux_changed = 0;
    }
    bool full = w->aux_new && dict_count(t->aux) >= t->aux_max;
    return !full && put_aux(w, w->aux_new);
}

static void edit_begun(struct work *w);

/*
 * Stores a record apart, where it has been counted. The home stays locked, so that nobody else
 * creates it.
 */
static enum table_insert_result store_apart(struct work *w)
{
    struct row *row = w->c.table->in_row;
    struct counter_table *apart = counter_table_of(row->apart);
    struct counter_locus locus;
    struct counter_edit copy = {
        .named = w->c.edit->named, .decide = table_decide_copy, .context = &w->c.edit->after};
    struct work in = {.c = {.table = apart,
                            .locus = &locus,
                            .edit = &copy,
                            .space = w->c.space,
                            .sink = w->c.sink},
                      .ask = TABLE_ASK_APART};
    copy.view = &apart->view;
    counter_table_locate(apart, w->c.locus->id, true, &locus);
    edit_begun(&in);
    w->handed_over = in.c.done;
    if (w->handed_over) {
        return TABLE_INSERTED;
    }
    row_removed(row->apart, row->apart, w->c.locus->id);
    return table_verdict_result(row_too_far(row, &w->c.table->root->row, w->c.locus->id));
}

static enum table_insert_result store(struct work *w)
{
    plan_aux(w);
    if (UNLIKELY(w->aux_new | w->aux_changed) && !put_aux_new(w)) {
        return w->ask == TABLE_ASK_ADMIT ? table_insert_full(w->c.table, !w->present)
                                         : TABLE_INSERT_FULL;
    }
    enum table_insert_result result = TABLE_INSERTED;
    w->c.put = CHANGE_THERE;
    set_slots(w, w->held ? w->held->words : w->payload);
    if (w->present) {
        store_present(w);
    } else {
        result = table_insert(w->c.table, w->c.locus, &w->hold, w->payload, w->ask, &w->c.put);
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
    struct counter_table *t = w->c.table;
    table_free_aux(t, w->c.locus->id, payload_of(w));
    if (w->held) {
        table_remove(t, w->held, w->place);
    } else {
        dict_delete(t->extend, w->c.locus->id, 0);
    }
    w->hold.held[0].changed = true;
}

static void erase(struct work *w)
{
    struct counter_table *t = w->c.table;
    take_out(w);
    row_removed(&t->root->row, &t->row, w->c.locus->id);
}

/* The values that are in the aux dict; in_aux becomes what is there. */
static __attribute__((noinline)) void set_before_aux(struct work *w)
{
    const struct counter_table *t = w->c.table;
    table_read_aux(t, w->c.locus->id, w->in_aux, &w->before);
    w->in_aux &= ~t->view.aux_only | w->before.set;
}

/* What the record is before the edit, and `after` as if nothing were decided. */
static void set_before(struct work *w)
{
    const struct counter_table *t = w->c.table;
    struct counter_values *after = &w->c.edit->after;
    uint32_t slots = w->c.edit->named | t->view.aux_only;
    if (UNLIKELY(table_is_whole(t))) {
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

/* Returns whether a slot is set, of `known` or of those the edit does not name. */
static bool any_set(const struct work *w, uint32_t known)
{
    const struct counter_view *view = &w->c.table->view;
    return LIKELY(known != 0) ||
           (w->present && table_others_set(view, w->packed, w->c.edit->named));
}

/*
 * Replay: what an image has of a record that a change makes is of no account, not even its hidden
 * slots. False: the change is of one that is not there any more.
 */
static bool decide_replayed(struct work *w)
{
    w->c.edit->created = !w->present;
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
    const struct counter_table *t = w->c.table;
    return row_may_be_apart(&t->root->row, w->c.locus->id) && w->ask == TABLE_ASK_ADMIT &&
           table_is_apart(t, w->c.locus->id);
}

/* Locks, finds and decides. False: begin again (nothing is held). */
static bool decide(struct work *w)
{
    table_hold_home(w->c.table, w->c.locus, &w->hold);
    if (!find_held(w)) {
        table_release(&w->hold);
        return false;
    }
    POINT("found, nothing changed");
    set_before(w);
    if (UNLIKELY(!w->present && (w->c.table->row.further || w->ask == TABLE_ASK_THERE))) {
        w->c.edit->elsewhere = true; /* for good: nothing new comes here */
        w->c.status = ENGINE_ABSENT;
        return true;
    }
    if (UNLIKELY(!w->present && lies_apart(w))) {
        w->c.edit->apart = true; /* somebody has put it there meanwhile */
        w->c.status = ENGINE_ABSENT;
        return true;
    }
    if (UNLIKELY(table_is_replayed(w->ask)) && !decide_replayed(w)) {
        w->c.status = ENGINE_ABSENT;
        return true;
    }
    w->c.status =
        w->c.edit->decide(w->c.edit, any_set(w, w->before.set), &w->before, &w->c.edit->after);
    return true;
}

/* Makes what was decided so and unlocks. True: there was something to change, and it is done. */
static bool carry_out(struct work *w)
{
    /* In replay a record may for a while have nothing set: an image's is of no single time. */
    bool emptied = !any_set(w, w->c.edit->after.set) && !table_is_replayed(w->ask);
    bool erased = w->c.edit->deleted_hidden || emptied;
    bool changes = w->c.status == ENGINE_DONE && (!erased || w->present);
    w->c.result = TABLE_INSERTED;
    if (changes) {
        row_changed(&w->c.table->row);
    }
    if (changes && erased) {
        erase(w);
    } else if (changes) {
        w->c.result = store(w);
    }
    bool put = changes && w->c.result == TABLE_INSERTED;
    bool here = put && !w->handed_over;
    if (UNLIKELY(w->c.table->overlay) && here) {
        table_tap(w->c.table, w->c.locus->id, erased ? NULL : payload_of(w));
    }
    if (here) {
        /* Whole, so that replay need not look into the file (row/row_cold.h). */
        uint32_t named = UNLIKELY(table_is_whole(w->c.table)) ? counter_view_all(&w->c.table->view)
                                                              : w->c.edit->named;
        table_change_hand_over(&w->c, named, erased);
    }
    table_release(&w->hold);
    return put;
}

/* Makes an edit with the sink's room, which it uses if it is `done`. */
static void edit_begun(struct work *w)
{
    unsigned spins = 0;
    w->handed_over = false;
    for (;;) {
        if (LIKELY(decide(w))) {
            w->c.done = carry_out(w);
            if (LIKELY(w->c.result != TABLE_INSERT_AGAIN)) {
                break;
            }
        }
        verlock_pause(&spins); /* the holder of the further lock may need this processor */
    }
}

enum engine_status table_edit(const struct table_change *change, enum table_ask ask,
                              enum engine_error *error)
{
    struct work w; /* not zeroed: most of it is set by decide() and plan() */
    w.c = *change;
    w.ask = ask;
    if (UNLIKELY(!table_change_begin(&w.c, error))) {
        return ENGINE_ERROR;
    }
    edit_begun(&w);
    return table_change_end(&w.c, error);
}

bool table_put_record(struct counter_table *t, const struct counter_locus *locus,
                      const struct table_record *record)
{
    struct work w = {.c = {.table = t, .locus = locus}};
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
    struct table_change change = {
        .table = t, .locus = locus, .edit = edit, .space = space, .sink = sink};
    return table_edit(&change, TABLE_ASK_ADMIT, error);
}

enum engine_status counter_table_edit_apart(struct counter_table *apart,
                                            const struct counter_locus *locus,
                                            struct counter_edit *edit, uint32_t space,
                                            struct change_sink *sink, enum engine_error *error)
{
    struct table_change change = {
        .table = apart, .locus = locus, .edit = edit, .space = space, .sink = sink};
    return table_edit(&change, TABLE_ASK_THERE, error);
}
