/*
 * counter_ops.c: operations of the engine on the table: text to numbers, the decision of each verb,
 * numbers to text.
 */
#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "counter/counter_private.h"

bool counter_slot_of(const struct engine *engine, const char *tail, size_t length, int *slot)
{
    const struct counter *counter = (const struct counter *)engine;
    *slot = ENGINE_SLOT_RECORD;
    if (length == 0 || (length == 1 && tail[0] == '.')) {
        return true;
    }
    if (tail[0] != '.') {
        return false;
    }
    *slot = counter_names_find(&counter->names, tail + 1, length - 1);
    return *slot >= 0;
}

static bool may_create(const struct counter *counter, const struct engine_op *op)
{
    switch (op->verb) {
    case ENGINE_SET:
    case ENGINE_ADD:
        return true;
    case ENGINE_INCR:
    case ENGINE_DECR:
        return !counter->engine.role_cache || op->create_initial;
    default:
        return false;
    }
}

static bool out_of_range(const struct counter *counter, uint64_t id)
{
    return counter->config.any_ids && id > counter->config.max_id;
}

/* Where records below the oldest table are kept; NULL: nowhere. */
static struct counter_below *below_of(const struct counter *counter)
{
    return counter->engine.role_cache ? counter->below : NULL;
}

static void prepare_below(const struct counter *counter, const struct engine_op *op)
{
    if (below_of(counter)) {
        counter_below_prefetch(below_of(counter), op->id);
    }
}

/*
 * scratch: [0] and [1] the locus in the op's table, [2] a read that was put off, [3] the table.
 * All of it holds for the turn: the row changes with the world stopped.
 */
void counter_prepare(struct engine *engine, struct engine_op *const *ops, size_t n)
{
    const struct counter *counter = (const struct counter *)engine;
    for (size_t i = 0; i < n; i++) {
        struct engine_op *op = ops[i];
        struct row_table *table = row_route(&counter->row, op->id);
        op->scratch[3] = (uintptr_t)table;
        if (UNLIKELY(!table)) {
            prepare_below(counter, op);
            continue;
        }
        struct counter_locus locus;
        counter_table_locate(counter_table_of(table), op->id, op->verb > ENGINE_TOUCH, &locus);
        op->scratch[0] = locus.group;
        op->scratch[1] = locus.rem;
    }
}

static uint32_t op_slots(const struct counter *counter, const struct engine_op *op)
{
    return op->slot == ENGINE_SLOT_RECORD ? counter->names.all : 1u << op->slot;
}

static size_t print_values(const struct counter *counter, const struct engine_op *op,
                           const struct counter_values *values, char *text)
{
    if (op->slot == ENGINE_SLOT_RECORD) {
        return counter_record_print(text, values, counter->names.count);
    }
    return num_print(text, values->value[op->slot]);
}

static uint64_t values_token(const struct counter *counter, const struct engine_op *op,
                             const char *text, size_t length)
{
    uint64_t name = op->slot == ENGINE_SLOT_RECORD ? 0 : counter->names.hashes[op->slot];
    return counter_record_token(op->id, name, text, length);
}

/* Of what the op's key is with these values; 0: nothing is there. Apart, so that changes without a
 * token pay nothing for it. */
static __attribute__((noinline)) uint64_t token_of(const struct counter *counter,
                                                   const struct engine_op *op,
                                                   const struct counter_values *values)
{
    char text[ENGINE_VALUE_MAX];
    if (!(values->set & op_slots(counter, op))) {
        return 0;
    }
    return values_token(counter, op, text, print_values(counter, op, values, text));
}

static void miss(struct engine_op *op, enum engine_miss why)
{
    op->status = ENGINE_ABSENT;
    op->miss = why;
}

static void finish_read(const struct counter *counter, struct engine_op *op, enum counter_look look,
                        const struct counter_values *values)
{
    op->error = ENGINE_E_NONE;
    uint32_t wanted = op_slots(counter, op);
    if (look == COUNTER_ABSENT || !(values->set & wanted)) {
        miss(op, look == COUNTER_ABSENT ? ENGINE_MISS_ABSENT : ENGINE_MISS_UNSET);
        return;
    }
    op->status = ENGINE_DONE;
    if (op->verb == ENGINE_READ || op->want_cas) {
        op->value_length = (uint32_t)print_values(counter, op, values, op->value);
    }
    if (op->want_cas) {
        op->cas_now = values_token(counter, op, op->value, op->value_length);
    }
}

/*
 * Reads of a batch that are put off, as a small Bloom filter of their ids: a later read of the same
 * id is put off too, so that the reads of one id keep their order and a counter never seems to run
 * backwards within a batch. An id that only looks the same costs a little time.
 */
struct put_off {
    uint64_t bits[4];
    size_t count;
};

static unsigned put_off_hash(uint64_t id)
{
    return (unsigned)(id * 0x9e3779b97f4a7c15u >> 56); /* Knuth's multiplicative hash, 8 bits */
}

static bool is_put_off(const struct put_off *off, uint64_t id)
{
    unsigned hash = put_off_hash(id);
    return off->bits[hash / 64] >> hash % 64 & 1;
}

static void put_off(struct put_off *off, struct engine_op *op)
{
    unsigned hash = put_off_hash(op->id);
    off->bits[hash / 64] |= 1ull << hash % 64;
    off->count++;
    op->scratch[2] = true;
}

static void read_below(const struct counter *counter, struct engine_op *op)
{
    struct counter_values values;
    op->error = ENGINE_E_NONE;
    if (below_of(counter) && counter_below_look(below_of(counter), op->id, &values)) {
        finish_read(counter, op, COUNTER_FOUND, &values);
    } else {
        miss(op, ENGINE_MISS_BELOW);
    }
}

/* Reads one op if its record lies at home; else puts it off. */
static void read_at_home(const struct counter *counter, struct engine_op *op, struct put_off *off)
{
    struct counter_table *table = counter_op_table(op);
    op->scratch[2] = false;
    if (UNLIKELY(!table)) {
        read_below(counter, op);
        return;
    }
    struct counter_values values;
    enum counter_look look = COUNTER_FURTHER;
    struct counter_locus locus = counter_op_locus(op);
    if (LIKELY(off->count == 0) || !is_put_off(off, op->id)) {
        look = counter_table_look(table, &locus, op_slots(counter, op), &values);
    }
    if (look == COUNTER_ABSENT && UNLIKELY(counter_layer_of(table))) {
        counter_table_locate(counter_layer_of(table), op->id, false,
                             &locus); /* asks for its line */
        look = COUNTER_FURTHER;
    }
    if (look == COUNTER_ABSENT && UNLIKELY(counter_may_be_apart(table, op->id))) {
        look = COUNTER_FURTHER;
    }
    if (look == COUNTER_FURTHER) {
        put_off(off, op);
        return;
    }
    finish_read(counter, op, look, &values);
}

/* In memory or not. UNKNOWN: the op has its status already. */
static enum counter_look read_one(const struct counter *counter, struct engine_op *op,
                                  struct counter_table *table, const struct counter_locus *locus,
                                  struct counter_values *values)
{
    uint32_t slots = op_slots(counter, op);
    if (LIKELY(!counter_is_cold(table))) {
        return counter_table_read(table, locus, slots, values);
    }
    struct counter_reader reader = counter_reader_of(counter, op);
    enum counter_look look = counter_table_read_cold(table, locus, slots, values, &reader);
    if (look == COUNTER_UNKNOWN) {
        op->error = reader.error;
        op->status = reader.error == ENGINE_E_NONE ? ENGINE_PENDING : ENGINE_ERROR;
        op->wants_table = false;
    }
    return look;
}

/* In the table for ids apart. True: it is there, and the op has been read. */
static bool read_apart(const struct counter *counter, struct engine_op *op)
{
    struct counter_table *apart = counter_table_of(counter->row.apart);
    struct counter_values values;
    struct counter_locus locus;
    counter_table_locate(apart, op->id, false, &locus);
    bool found = counter_table_read(apart, &locus, op_slots(counter, op), &values) == COUNTER_FOUND;
    if (found) {
        finish_read(counter, op, COUNTER_FOUND, &values);
    }
    return found;
}

/* Reads one op wherever its record lies. Of a dumped table each op asks for its page here, and the
 * next one does not wait for it. */
static void read_further(const struct counter *counter, struct engine_op *op)
{
    struct counter_table *table = counter_op_table(op);
    struct counter_values values;
    struct counter_locus locus = counter_op_locus(op);
    if (UNLIKELY(counter_may_be_apart(table, op->id)) && read_apart(counter, op)) {
        return;
    }
    enum counter_look look = read_one(counter, op, table, &locus, &values);
    struct counter_table *layer = counter_layer_of(table);
    if (look == COUNTER_ABSENT && layer) {
        counter_table_locate(layer, op->id, false, &locus);
        look = read_one(counter, op, layer, &locus, &values);
    }
    if (look != COUNTER_UNKNOWN) {
        finish_read(counter, op, look, &values);
    }
}

void counter_read(struct engine *engine, struct engine_op *const *ops, size_t n)
{
    const struct counter *counter = (const struct counter *)engine;
    struct put_off off = {{0}, 0};
    for (size_t i = 0; i < n; i++) {
        read_at_home(counter, ops[i], &off);
    }
    for (size_t i = 0; off.count > 0; i++) {
        if (ops[i]->scratch[2]) {
            off.count--;
            read_further(counter, ops[i]);
        }
    }
}

/* What a change intends, parsed before any lock. */
struct intent {
    const struct counter *counter;
    const struct engine_op *op;
    bool *created;                 /* INCR DECR: what it answers became `initial` */
    struct counter_values operand; /* new values, or deltas of the slots in `set` */
};

static bool is_there(const struct counter_edit *edit, const struct engine_op *op, bool present,
                     const struct counter_values *before)
{
    return op->slot == ENGINE_SLOT_RECORD ? present : (before->set & edit->named) != 0;
}

static enum engine_status decide_condition(const struct intent *intent, bool there,
                                           const struct counter_values *before)
{
    const struct engine_op *op = intent->op;
    if (op->verb == ENGINE_SET) {
        return ENGINE_DONE;
    }
    if (op->verb == ENGINE_ADD) {
        return there ? ENGINE_EXISTS : ENGINE_DONE;
    }
    if (!there) {
        return ENGINE_ABSENT;
    }
    bool compares = op->verb == ENGINE_CAS || op->compare;
    bool other = compares && token_of(intent->counter, op, before) != op->cas;
    return other ? ENGINE_EXISTS : ENGINE_DONE;
}

/* SET ADD REPLACE CAS DELETE: the named slots become the operand's. */
static enum engine_status decide_write(const struct counter_edit *edit, bool present,
                                       const struct counter_values *before,
                                       struct counter_values *after)
{
    const struct intent *intent = edit->context;
    bool there = is_there(edit, intent->op, present, before);
    enum engine_status status = decide_condition(intent, there, before);
    if (status != ENGINE_DONE) {
        return status;
    }
    after->set = (before->set & ~edit->named) | intent->operand.set;
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
static enum engine_status decide_token(const struct counter_edit *edit, bool present,
                                       const struct counter_values *before)
{
    const struct intent *intent = edit->context;
    if (!is_there(edit, intent->op, present, before)) {
        return intent->op->create_initial ? ENGINE_DONE : ENGINE_ABSENT;
    }
    bool same = token_of(intent->counter, intent->op, before) == intent->op->cas;
    return same ? ENGINE_DONE : ENGINE_EXISTS;
}

/* INCR DECR: each slot of the operand by its delta; all or none. */
static enum engine_status decide_add(const struct counter_edit *edit, bool present,
                                     const struct counter_values *before,
                                     struct counter_values *after)
{
    const struct intent *intent = edit->context;
    const struct engine_op *op = intent->op;
    uint32_t adds = intent->operand.set;
    enum engine_status status =
        UNLIKELY(op->compare) ? decide_token(edit, present, before) : ENGINE_DONE;
    if (status != ENGINE_DONE) {
        return status;
    }
    if (!adds && !present) {
        return ENGINE_ABSENT;
    }
    uint32_t creates = adds & ~before->set;
    if (creates && (op->create_never || !may_create(intent->counter, op))) {
        return ENGINE_ABSENT;
    }
    after->set = before->set | adds;
    *intent->created = op->create_initial && creates;
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

/* The delta, or the deltas, of INCR and DECR. */
static enum engine_error parse_delta(const struct counter *counter, const struct engine_op *op,
                                     struct counter_values *operand)
{
    unsigned slots = counter->names.count;
    uint64_t delta;
    bool number = num_parse(op->text, op->text_length, &delta);
    if (op->slot != ENGINE_SLOT_RECORD || slots == 1) {
        unsigned slot = op->slot == ENGINE_SLOT_RECORD ? 0 : (unsigned)op->slot;
        operand->set = 1u << slot;
        operand->value[slot] = delta;
        return number ? ENGINE_E_NONE : ENGINE_E_BAD_DELTA;
    }
    if (number) {
        return ENGINE_E_NON_NUMERIC;
    }
    bool fields = counter_record_parse(op->text, op->text_length, slots, operand);
    return fields ? ENGINE_E_NONE : ENGINE_E_BAD_DELTA;
}

static enum engine_error parse_operand(const struct counter *counter, struct engine_op *op,
                                       struct counter_values *operand)
{
    operand->set = 0;
    switch (op->verb) {
    case ENGINE_INCR:
    case ENGINE_DECR:
        return parse_delta(counter, op, operand);
    case ENGINE_DELETE:
        return ENGINE_E_NONE;
    default:
        break;
    }
    if (op->slot != ENGINE_SLOT_RECORD) {
        operand->set = 1u << op->slot;
        bool number = counter_number_parse(op->text, op->text_length, &operand->value[op->slot]);
        return number ? ENGINE_E_NONE : ENGINE_E_NOT_A_NUMBER;
    }
    bool fields = counter_record_parse(op->text, op->text_length, counter->names.count, operand);
    return fields ? ENGINE_E_NONE : ENGINE_E_RECORD_FIELDS;
}

static void fail(struct engine_op *op, enum engine_error error)
{
    op->status = ENGINE_ERROR;
    op->error = error;
}

/* May a table open for an id that was dropped? Then the op has its status. */
static bool admit_again(struct counter *counter, struct engine_op *op)
{
    enum row_verdict verdict =
        may_create(counter, op) ? row_admit_again(&counter->row, op->id) : ROW_BELOW;
    if (verdict == ROW_WAIT) {
        op->status = ENGINE_PENDING;
        row_wait(&counter->row, &op->ticket);
    } else if (verdict != ROW_BELOW) {
        fail(op, ENGINE_E_NO_TABLE_FREE);
    }
    return verdict != ROW_BELOW;
}

/* Where nothing is kept below the oldest table nothing is there, and nothing can be created. */
static void change_below(struct counter *counter, struct engine_op *op, struct counter_edit *edit)
{
    if (admit_again(counter, op)) {
        return;
    }
    if (below_of(counter)) {
        op->status = counter_below_edit(below_of(counter), op->id, edit);
        return;
    }
    struct counter_values none = {0};
    edit->after = none;
    op->status = edit->decide(edit, false, &none, &edit->after);
    if (op->status == ENGINE_DONE) {
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
        counter->config.any_ids) {
        op->error = ENGINE_E_OUT_OF_MEMORY; /* it has no tables to wait for */
    }
}

static void carry_out(struct counter *counter, struct engine_op *op, struct intent *intent,
                      struct change_sink *sink)
{
    bool adds = op->verb == ENGINE_INCR || op->verb == ENGINE_DECR;
    struct counter_edit edit;
    edit.named = op_slots(counter, op);
    edit.decide = adds ? decide_add : decide_write;
    edit.context = intent;
    edit.deleted_hidden = op->verb == ENGINE_DELETE && op->slot == ENGINE_SLOT_RECORD;
    op->error = ENGINE_E_NONE;
    if (UNLIKELY(!counter_op_table(op))) {
        change_below(counter, op, &edit);
    } else {
        change_in_table(counter, op, &edit, sink);
    }
    if (op->status == ENGINE_DONE && adds) {
        op->value_length = (uint32_t)print_values(counter, op, &edit.after, op->value);
    }
    if (op->status == ENGINE_DONE && UNLIKELY(op->want_cas)) {
        op->cas_now = token_of(counter, op, &edit.after);
    }
}

void counter_change(struct engine *engine, struct engine_op *op, struct change_sink *sink)
{
    struct counter *counter = (struct counter *)engine;
    CHECK(counter->magic == COUNTER_MAGIC && op->verb != ENGINE_READ && op->verb != ENGINE_TOUCH);
    struct intent intent; /* not zeroed: what `operand` has is in its `set` */
    intent.counter = counter;
    intent.op = op;
    intent.created = &op->created;
    enum engine_error error = parse_operand(counter, op, &intent.operand);
    if (error == ENGINE_E_NONE && out_of_range(counter, op->id)) {
        error = ENGINE_E_ID_TOO_LARGE;
    }
    if (error != ENGINE_E_NONE) {
        fail(op, error);
        return;
    }
    carry_out(counter, op, &intent, sink);
}
