/*
 * counter_change.c: changes: text to numbers, the decision of each verb, and what is answered.
 */
#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "counter/counter_private.h"

static bool may_create(const struct counter *counter, const struct engine_op *op)
{
    switch (op->verb) {
    case ENGINE_SET:
    case ENGINE_ADD:
        return !op->expires;
    case ENGINE_INCR:
    case ENGINE_DECR:
        return !counter->engine.role_cache || op->create_initial;
    default:
        return false;
    }
}

static bool counter_out_of_range(const struct counter *counter, uint64_t id)
{
    return counter->config.row.any_ids && id > counter->config.max_id;
}

/* What a change intends, parsed before any lock. */
struct intent {
    const struct counter *counter;
    const struct engine_op *op;
    bool *created;                 /* INCR DECR: what it answers became `initial` */
    struct counter_values operand; /* new values, or deltas of the slots in `set` */
    uint32_t written;              /* bit a slot: those it would change */
    bool first_alone; /* one delta for several slots: the first slot's number is the answer */
    bool forgets; /* decided: DONE, and answered as ABSENT, since part of it was there and goes */
};

/* Returns whether what the key names is there: all of it in a cache, any of it in a store. */
static bool is_there(const struct counter_edit *edit, const struct counter_values *before)
{
    const struct intent *intent = edit->context;
    uint32_t set = before->set & edit->named;
    return intent->counter->engine.role_cache ? set == edit->named : set != 0;
}

/* Nothing is there, or in a cache only a part: then the slots that would have changed are
 * forgotten, since they change in the store. */
static enum engine_status find_nothing(const struct counter_edit *edit,
                                       const struct counter_values *before,
                                       struct counter_values *after)
{
    struct intent *intent = edit->context;
    uint32_t stale = intent->counter->engine.role_cache ? before->set & intent->written : 0;
    intent->forgets = stale != 0;
    after->set = before->set & ~stale;
    return intent->forgets ? ENGINE_DONE : ENGINE_ABSENT;
}

/* ABSENT: find_nothing() is next. */
static enum engine_status decide_condition(const struct counter_edit *edit,
                                           const struct counter_values *before)
{
    const struct intent *intent = edit->context;
    const struct engine_op *op = intent->op;
    bool compares = op->verb == ENGINE_CAS || op->compare;
    if (op->verb == ENGINE_SET) {
        return ENGINE_DONE;
    }
    if (op->verb == ENGINE_DELETE && !compares) {
        return before->set & edit->named ? ENGINE_DONE : ENGINE_ABSENT;
    }
    bool there = is_there(edit, before);
    if (op->verb == ENGINE_ADD) {
        return there ? ENGINE_EXISTS : ENGINE_DONE;
    }
    if (!there) {
        return ENGINE_ABSENT;
    }
    bool other = compares && counter_token_of(intent->counter, op, before) != op->cas;
    return other ? ENGINE_EXISTS : ENGINE_DONE;
}

/* SET ADD REPLACE CAS DELETE: the written slots become the operand's. */
static enum engine_status decide_write(const struct counter_edit *edit, bool present,
                                       const struct counter_values *before,
                                       struct counter_values *after)
{
    struct intent *intent = edit->context;
    enum engine_status status = decide_condition(edit, before);
    (void)present;           /* it may be of other slots alone */
    intent->forgets = false; /* it may be decided again */
    if (status != ENGINE_DONE) {
        return status == ENGINE_ABSENT ? find_nothing(edit, before, after) : status;
    }
    after->set = (before->set & ~intent->written) | intent->operand.set;
    for (uint32_t set = intent->operand.set; set; set &= set - 1) {
        unsigned i = (unsigned)__builtin_ctz(set);
        after->value[i] = intent->operand.value[i];
    }
    return ENGINE_DONE;
}

static uint64_t add_delta(enum engine_verb verb, uint64_t value, uint64_t delta)
{
    if (verb == ENGINE_INCR) {
        return value + delta; /* wraps, as memcached's */
    }
    return value > delta ? value - delta : 0;
}

/* INCR DECR with a token: an absent one has none, yet it becomes `initial`, as in memcached. */
static enum engine_status decide_token(const struct counter_edit *edit,
                                       const struct counter_values *before)
{
    const struct intent *intent = edit->context;
    if (!is_there(edit, before)) {
        return intent->op->create_initial ? ENGINE_DONE : ENGINE_ABSENT;
    }
    bool same = counter_token_of(intent->counter, intent->op, before) == intent->op->cas;
    return same ? ENGINE_DONE : ENGINE_EXISTS;
}

/* Whether all that is to be counted is there, or comes to be. ABSENT: find_nothing() is next. */
static enum engine_status decide_creation(const struct counter_edit *edit,
                                          const struct counter_values *before)
{
    const struct intent *intent = edit->context;
    const struct engine_op *op = intent->op;
    uint32_t lacking = intent->written & ~before->set;
    if (LIKELY(!lacking && intent->written == edit->named)) {
        return ENGINE_DONE;
    }
    bool creates = !op->create_never && may_create(intent->counter, op);
    bool nothing = !intent->written && !is_there(edit, before);
    bool part = intent->counter->engine.role_cache && !is_there(edit, before);
    return nothing || ((lacking || part) && !creates) ? ENGINE_ABSENT : ENGINE_DONE;
}

/* INCR DECR: each slot of the operand by its delta; all or none. */
static enum engine_status decide_add(const struct counter_edit *edit, bool present,
                                     const struct counter_values *before,
                                     struct counter_values *after)
{
    struct intent *intent = edit->context;
    const struct engine_op *op = intent->op;
    enum engine_status status = UNLIKELY(op->compare) ? decide_token(edit, before) : ENGINE_DONE;
    (void)present;
    intent->forgets = false;
    if (status == ENGINE_DONE) {
        status = decide_creation(edit, before);
    }
    if (status != ENGINE_DONE) {
        return status == ENGINE_ABSENT ? find_nothing(edit, before, after) : status;
    }
    uint32_t adds = intent->written;
    after->set = before->set | adds;
    *intent->created = op->create_initial && (adds & ~before->set);
    for (; adds; adds &= adds - 1) {
        unsigned i = (unsigned)__builtin_ctz(adds);
        bool set = before->set >> i & 1;
        uint64_t from = set ? before->value[i] : 0;
        after->value[i] = !set && op->create_initial
                              ? op->initial
                              : add_delta(op->verb, from, intent->operand.value[i]);
    }
    return ENGINE_DONE;
}

/* `name=number` fields, each of another slot. */
static bool parse_names(const struct counter *counter, const struct engine_op *op,
                        struct counter_values *operand)
{
    const char *at = op->text, *end = op->text + op->text_length;
    operand->set = 0;
    while (at <= end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        const char *equals = memchr(at, '=', (size_t)(stop - at));
        uint64_t value;
        if (!equals || !counter_number_parse(equals + 1, (size_t)(stop - equals - 1), &value)) {
            return false;
        }
        int slot = engine_slots_find(&counter->names, at, (size_t)(equals - at));
        if (slot < 0 || (operand->set >> slot & 1)) {
            return false;
        }
        operand->set |= 1u << slot;
        operand->value[slot] = value;
        at = stop + 1;
    }
    return true;
}

/* One field for each slot of a key that names several. Apart, because its variables are in memory:
 * inlined, every change would guard the stack for them. */
static __attribute__((noinline)) bool parse_some(const struct engine_op *op,
                                                 struct counter_values *operand)
{
    struct counter_values ordered;
    unsigned count = (unsigned)__builtin_popcount(op->some);
    operand->set = 0;
    if (!counter_record_parse(op->text, op->text_length, count, &ordered)) {
        return false;
    }
    counter_op_scatter(op, &ordered, operand);
    return true;
}

/* The fields of a record or of several slots. *named: each said its slot, others are not meant. */
static inline bool parse_fields(const struct counter *counter, const struct engine_op *op,
                                struct counter_values *operand, bool *named)
{
    *named = false;
    if (op->slot == ENGINE_SLOT_SOME) {
        return parse_some(op, operand);
    }
    if (LIKELY(counter_record_parse(op->text, op->text_length, counter->names.count, operand))) {
        return true;
    }
    *named = true;
    return parse_names(counter, op, operand);
}

/* The same delta for all slots of a key that names several. */
static void spread_delta(const struct engine_op *op, uint64_t delta, struct counter_values *operand)
{
    operand->set = op->some;
    for (uint32_t left = op->some; left; left &= left - 1) {
        operand->value[__builtin_ctz(left)] = delta;
    }
}

/* The delta, or the deltas, of INCR and DECR. */
static enum engine_error parse_delta(const struct counter *counter, const struct engine_op *op,
                                     struct intent *intent)
{
    struct counter_values *operand = &intent->operand;
    unsigned slots = counter->names.count;
    uint64_t delta;
    bool named;
    operand->set = 0;
    bool number = num_parse(op->text, op->text_length, &delta);
    if (op->slot >= 0 || (op->slot == ENGINE_SLOT_RECORD && slots == 1)) {
        unsigned slot = op->slot == ENGINE_SLOT_RECORD ? 0 : (unsigned)op->slot;
        operand->set = 1u << slot;
        operand->value[slot] = delta;
        return number ? ENGINE_E_NONE : ENGINE_E_BAD_DELTA;
    }
    if (number && op->slot == ENGINE_SLOT_SOME) {
        spread_delta(op, delta, operand);
        intent->first_alone = true;
        return ENGINE_E_NONE;
    }
    if (number) {
        return ENGINE_E_NON_NUMERIC;
    }
    return parse_fields(counter, op, operand, &named) ? ENGINE_E_NONE : ENGINE_E_BAD_DELTA;
}

/* The numbers of a record or of several slots: what an empty field means is the role's, or the
 * space's. */
static enum engine_error parse_values(const struct counter *counter, const struct engine_op *op,
                                      struct intent *intent)
{
    struct counter_values *operand = &intent->operand;
    bool named;
    if (!parse_fields(counter, op, operand, &named)) {
        return op->slot == ENGINE_SLOT_RECORD ? ENGINE_E_RECORD_FIELDS : ENGINE_E_SOME_FIELDS;
    }
    uint32_t all = counter_op_slots(counter, op);
    if (counter->engine.role_cache && !named) {
        for (uint32_t empty = all & ~operand->set; empty; empty &= empty - 1) {
            operand->value[__builtin_ctz(empty)] = 0;
        }
        operand->set = all;
    }
    intent->written = named || counter->config.keep_empty ? operand->set : all;
    return ENGINE_E_NONE;
}

static bool adds(const struct engine_op *op)
{
    return op->verb == ENGINE_INCR || op->verb == ENGINE_DECR;
}

/* Leaves nothing of what its key names, if it is carried out. */
static bool deletes(const struct engine_op *op)
{
    return op->verb == ENGINE_DELETE || (op->expires && !adds(op));
}

static enum engine_error parse_operand(const struct counter *counter, const struct engine_op *op,
                                       struct intent *intent)
{
    struct counter_values *operand = &intent->operand;
    enum engine_error error;
    intent->first_alone = false;
    if (adds(op)) {
        error = parse_delta(counter, op, intent);
        intent->written = operand->set;
        return error;
    }
    intent->written = counter_op_slots(counter, op);
    operand->set = 0;
    if (op->verb == ENGINE_DELETE) {
        return ENGINE_E_NONE;
    }
    if (op->slot < 0) {
        return parse_values(counter, op, intent);
    }
    operand->set = 1u << op->slot;
    bool number = counter_number_parse(op->text, op->text_length, &operand->value[op->slot]);
    return number ? ENGINE_E_NONE : ENGINE_E_NOT_A_NUMBER;
}

static void fail(struct engine_op *op, enum engine_error error)
{
    op->status = ENGINE_ERROR;
    op->error = error;
}

/* Returns whether a table may open for an id that was recycled; if so the op has its status. */
static bool admit_again(struct counter *counter, struct engine_op *op)
{
    enum row_verdict verdict =
        may_create(counter, op) ? row_admit_again(&counter->row, op->id) : ROW_BELOW;
    if (verdict == ROW_WAIT) {
        op->status = ENGINE_PENDING;
        op->wants_table = true;
        row_wait(&counter->row, &op->ticket);
    } else if (verdict != ROW_BELOW) {
        fail(op, verdict == ROW_BUSY ? ENGINE_E_BUSY : ENGINE_E_NO_TABLE_FREE);
    }
    return verdict != ROW_BELOW;
}

/* Changes a record below the oldest table. Without memory for those nothing is there, and nothing
 * can be created. */
static void counter_change_below(struct counter *counter, struct engine_op *op,
                                 struct counter_edit *edit)
{
    if (admit_again(counter, op)) {
        return;
    }
    if (counter_below_of(counter)) {
        op->status = counter_below_edit(counter_below_of(counter), op->id, edit);
        return;
    }
    struct counter_values none = {0};
    edit->after = none;
    op->status = edit->decide(edit, false, &none, &edit->after);
    if (op->status == ENGINE_DONE && edit->after.set != 0) {
        fail(op, ENGINE_E_ID_BELOW);
    }
}

static void change_in_table(struct counter *counter, struct engine_op *op,
                            struct counter_edit *edit, struct change_sink *sink)
{
    struct counter_changing changing = {counter, op, edit, sink, true};
    op->status = counter_edit_record(&changing);
    if (UNLIKELY(op->status == ENGINE_PENDING)) {
        op->wants_table = changing.waits;
        if (changing.waits) {
            row_wait(&counter->row, &op->ticket);
        }
    }
    if (op->status == ENGINE_ERROR && op->error == ENGINE_E_NO_TABLE_FREE &&
        counter->config.row.any_ids) {
        op->error = ENGINE_E_OUT_OF_MEMORY; /* it has no tables to wait for */
    }
}

static void counter_change_edit(struct counter *counter, struct engine_op *op,
                                struct intent *intent, struct change_sink *sink)
{
    struct counter_edit edit;
    edit.named = counter_op_slots(counter, op);
    edit.decide = adds(op) ? decide_add : decide_write;
    edit.context = intent;
    edit.deleted_hidden = deletes(op) && op->slot == ENGINE_SLOT_RECORD;
    op->error = ENGINE_E_NONE;
    if (UNLIKELY(!counter_op_table(op))) {
        counter_change_below(counter, op, &edit);
    } else {
        change_in_table(counter, op, &edit, sink);
    }
    if (op->status == ENGINE_DONE && UNLIKELY(intent->forgets)) {
        op->status = ENGINE_ABSENT;
    }
    if (op->status == ENGINE_DONE && adds(op)) {
        op->value_length =
            LIKELY(!intent->first_alone)
                ? (uint32_t)counter_print_values(counter, op, &edit.after, op->value)
                : (uint32_t)num_print(op->value, edit.after.value[counter_op_slot_at(op, 0)]);
    }
    if (op->status == ENGINE_DONE && UNLIKELY(op->want_cas)) {
        op->cas_now = counter_token_of(counter, op, &edit.after);
    }
}

/* What nearly every increment is. `add` has space and sink. False: it is something else, and
 * nothing was changed. */
static inline bool add_simply(const struct counter *counter, struct engine_op *op,
                              struct counter_add *add)
{
    struct counter_table *table = counter_op_table(op);
    bool simple = op->slot >= 0 && !op->compare;
    if (!simple || !num_parse(op->text, op->text_length, &add->delta) ||
        counter_out_of_range(counter, op->id) || UNLIKELY(!table) ||
        UNLIKELY(counter_may_be_apart(table, op->id))) {
        return false;
    }
    add->slot = (unsigned)op->slot;
    add->down = op->verb == ENGINE_DECR;
    return counter_table_add(table, counter_op_locus(op), add);
}

size_t counter_add(struct engine *engine, struct engine_op *const *ops, size_t n,
                   struct change_sink *sink, uint64_t *now, uint64_t *tokens)
{
    const struct counter *counter = (const struct counter *)engine;
    struct counter_add add;
    size_t done = 0;
    add.space = counter->engine.space;
    add.sink = sink;
    CHECK(counter->magic == COUNTER_MAGIC);
    while (done < n && add_simply(counter, ops[done], &add)) {
        if (ops[done]->want_cas) {
            tokens[done] = counter_token_of_number(counter, ops[done], add.now);
        }
        now[done++] = add.now;
    }
    return done;
}

/* An increment alone, and its answer. False: nothing was changed. */
static __attribute__((noinline)) bool add_alone(struct counter *counter, struct engine_op *op,
                                                struct change_sink *sink)
{
    struct counter_add add;
    add.space = counter->engine.space;
    add.sink = sink;
    if (!add_simply(counter, op, &add)) {
        return false;
    }
    op->status = ENGINE_DONE;
    op->error = ENGINE_E_NONE;
    op->value_length = (uint32_t)num_print(op->value, add.now);
    if (op->want_cas) {
        op->cas_now = counter_token_of_number(counter, op, add.now);
    }
    return true;
}

/* What nearly every set is, of one slot or of all: it asks for nothing and leaves no slot empty.
 * False: it is something else, and nothing was changed. */
static bool set_simply(struct counter *counter, struct engine_op *op, const struct intent *intent,
                       struct change_sink *sink)
{
    struct counter_table *table = counter_op_table(op);
    const struct counter_values *operand = &intent->operand;
    if (op->verb != ENGINE_SET || operand->set != counter_op_slots(counter, op) ||
        UNLIKELY(!table) || UNLIKELY(counter_may_be_apart(table, op->id))) {
        return false;
    }
    struct counter_put put = {operand->set, counter->engine.space, operand->value, sink};
    if (!counter_table_put(table, counter_op_locus(op), &put)) {
        return false;
    }
    op->status = ENGINE_DONE;
    op->error = ENGINE_E_NONE;
    if (UNLIKELY(op->want_cas)) {
        op->cas_now = counter_token_of(counter, op, operand);
    }
    return true;
}

/* Any change, by way of a decision under the lock. Apart: an increment does without its frame. */
static __attribute__((noinline)) void change_edit(struct counter *counter, struct engine_op *op,
                                                  struct change_sink *sink)
{
    struct intent intent; /* not zeroed: what `operand` has is in its `set` */
    intent.counter = counter;
    intent.op = op;
    intent.created = &op->created;
    enum engine_error error = parse_operand(counter, op, &intent);
    if (error == ENGINE_E_NONE && counter_out_of_range(counter, op->id)) {
        error = ENGINE_E_ID_TOO_LARGE;
    }
    if (error != ENGINE_E_NONE) {
        fail(op, error);
        return;
    }
    if (UNLIKELY(deletes(op))) { /* the values of a write that expires are only judged */
        intent.written = counter_op_slots(counter, op);
        intent.operand.set = 0;
    }
    if (!set_simply(counter, op, &intent, sink)) {
        counter_change_edit(counter, op, &intent, sink);
    }
}

void counter_change(struct engine *engine, struct engine_op *op, struct change_sink *sink)
{
    struct counter *counter = (struct counter *)engine;
    CHECK(counter->magic == COUNTER_MAGIC && op->verb != ENGINE_READ && op->verb != ENGINE_TOUCH);
    if (!adds(op) || !add_alone(counter, op, sink)) {
        change_edit(counter, op, sink);
    }
}
