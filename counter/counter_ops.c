/* counter_ops.c: reads: from the tables to text. */
#include <string.h>

#include "base/hash.h"
#include "base/num.h"
#include "counter/counter_private.h"

void counter_op_scatter(const struct engine_op *op, const struct counter_values *ordered,
                        struct counter_values *values)
{
    values->set = 0;
    for (uint32_t left = ordered->set; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        unsigned slot = counter_op_slot_at(op, i);
        values->set |= 1u << slot;
        values->value[slot] = ordered->value[i];
    }
}

size_t counter_print_some(const struct engine_op *op, const struct counter_values *values,
                          char *text)
{
    struct counter_values ordered = {.set = 0};
    unsigned count = (unsigned)__builtin_popcount(op->some);
    for (unsigned i = 0; i < count; i++) {
        unsigned slot = counter_op_slot_at(op, i);
        ordered.set |= (values->set >> slot & 1) << i;
        ordered.value[i] = values->value[slot];
    }
    return counter_record_print(text, &ordered, count);
}

static void prepare_below(const struct counter *counter, const struct engine_op *op)
{
    if (counter_below_of(counter)) {
        counter_below_prefetch(counter_below_of(counter), op->id);
    }
}

/*
 * scratch: [0] to [2] the locus in the op's table, [3] the table.
 * All of it holds for the turn: the row changes with the world stopped.
 */
void counter_prepare(struct engine *engine, struct engine_op *const *ops, size_t n)
{
    const struct counter *counter = (const struct counter *)engine;
    uint64_t newest_from;
    struct row_table *newest = row_newest(&counter->row, &newest_from);
    for (size_t i = 0; i < n; i++) {
        struct engine_op *op = ops[i];
        struct row_table *table =
            LIKELY(op->id >= newest_from) ? newest : row_route(&counter->row, op->id);
        op->scratch[3] = (uintptr_t)table;
        if (UNLIKELY(!table)) {
            prepare_below(counter, op);
            continue;
        }
        counter_table_locate(counter_table_of(table), op->id, op->verb > ENGINE_TOUCH,
                             counter_op_locus(op));
    }
}

/* Returns the hash of several slots: made of their names in the key's order, so the same on every
 * replica. */
static __attribute__((noinline)) uint64_t hash_of_several(const struct counter *counter,
                                                          const struct engine_op *op)
{
    uint64_t hash = 0;
    unsigned count = (unsigned)__builtin_popcount(op->some);
    for (unsigned i = 0; i < count; i++) {
        hash = hash_u64(hash ^ counter->names.hashes[counter_op_slot_at(op, i)]);
    }
    return hash;
}

static uint64_t values_token(const struct counter *counter, const struct engine_op *op,
                             const char *text, size_t length)
{
    uint64_t name = 0; /* of a whole record */
    if (op->slot >= 0) {
        name = counter->names.hashes[op->slot];
    } else if (UNLIKELY(op->slot == ENGINE_SLOT_SOME)) {
        name = hash_of_several(counter, op);
    }
    return counter_record_token(op->id, name, text, length);
}

/* Found, but not what the key names; in a cache not all of it. */
static bool op_lacks(const struct counter *counter, uint32_t wanted, uint32_t set)
{
    uint32_t unset = wanted & ~set;
    return unset && (unset == wanted || counter->engine.role_cache);
}

/* Apart, so that changes without a token pay nothing for it. */
__attribute__((noinline)) uint64_t counter_token_of(const struct counter *counter,
                                                    const struct engine_op *op,
                                                    const struct counter_values *values)
{
    char text[ENGINE_VALUE_MAX];
    if (op_lacks(counter, counter_op_slots(counter, op), values->set)) {
        return 0;
    }
    return values_token(counter, op, text, counter_print_values(counter, op, values, text));
}

/* Prints into the op's own room: an array here would be guarded. */
__attribute__((noinline)) uint64_t
counter_token_of_number(const struct counter *counter, const struct engine_op *op, uint64_t number)
{
    return counter_record_token(op->id, counter->names.hashes[op->slot], op->value,
                                num_print(op->value, number));
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
    uint32_t wanted = counter_op_slots(counter, op);
    if (look == COUNTER_ABSENT) {
        miss(op, ENGINE_MISS_ABSENT);
        return;
    }
    if (op_lacks(counter, wanted, values->set)) {
        miss(op, values->set & wanted ? ENGINE_MISS_INCOMPLETE : ENGINE_MISS_UNSET);
        return;
    }
    op->status = ENGINE_DONE;
    if (op->verb == ENGINE_READ || op->want_cas) {
        op->value_length = (uint32_t)counter_print_values(counter, op, values, op->value);
    }
    if (op->want_cas) {
        op->cas_now = values_token(counter, op, op->value, op->value_length);
    }
}

/*
 * Reads of a batch that are put off (PENDING until then), as a small Bloom filter of their ids: a
 * later read of the same id is put off too, so that the reads of one id keep their order and a
 * counter never seems to run backwards within a batch. An id that only looks the same costs a
 * little time.
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
    op->status = ENGINE_PENDING;
}

static void read_below(const struct counter *counter, struct engine_op *op)
{
    struct counter_values values;
    op->error = ENGINE_E_NONE;
    if (counter_below_of(counter) &&
        counter_below_look(counter_below_of(counter), op->id, &values)) {
        finish_read(counter, op, COUNTER_FOUND, &values);
    } else {
        miss(op, ENGINE_MISS_BELOW);
    }
}

/* The value is there, as text. */
static inline void end_printed(const struct counter *counter, struct engine_op *op, size_t length)
{
    op->status = ENGINE_DONE;
    op->error = ENGINE_E_NONE;
    op->value_length = (uint32_t)length;
    if (op->want_cas) {
        op->cas_now = values_token(counter, op, op->value, length);
    }
}

/* A whole record, the short way. False: nothing was done. */
static inline bool read_printed(const struct counter *counter, struct engine_op *op,
                                const struct counter_table *table)
{
    bool whole;
    size_t length = counter_table_print(table, counter_op_locus(op), op->value, &whole);
    if (length == 0 || UNLIKELY(!whole && counter->engine.role_cache)) {
        return false;
    }
    end_printed(counter, op, length);
    return true;
}

/* The same of one slot. */
static inline bool read_one_printed(const struct counter *counter, struct engine_op *op,
                                    const struct counter_table *table)
{
    size_t length =
        counter_table_print_one(table, counter_op_locus(op), (unsigned)op->slot, op->value);
    if (length == 0) {
        return false;
    }
    end_printed(counter, op, length);
    return true;
}

/* Reads an op as nearly all are read. False: nothing was done. */
static inline bool read_short(const struct counter *counter, struct engine_op *op)
{
    const struct counter_table *table = counter_op_table(op);
    if (UNLIKELY(!table) || op->verb != ENGINE_READ || op->slot == ENGINE_SLOT_SOME) {
        return false;
    }
    return op->slot == ENGINE_SLOT_RECORD ? read_printed(counter, op, table)
                                          : read_one_printed(counter, op, table);
}

/* Reads one op, which is not read the short way, if its record lies at home; else puts it off.
 * Apart, so that pages keep their registers. */
static __attribute__((noinline)) void read_at_home(const struct counter *counter,
                                                   struct engine_op *op, struct put_off *off)
{
    struct counter_table *table = counter_op_table(op);
    if (UNLIKELY(!table)) {
        read_below(counter, op);
        return;
    }
    struct counter_values values;
    enum counter_look look = COUNTER_FURTHER;
    const struct counter_locus *locus = counter_op_locus(op);
    if (off->count == 0 || !is_put_off(off, op->id)) {
        look = counter_table_look(table, locus, counter_op_slots(counter, op), &values);
    }
    if (look == COUNTER_ABSENT && UNLIKELY(counter_layer_of(table))) {
        struct counter_locus further;
        counter_table_locate(counter_layer_of(table), op->id, false,
                             &further); /* asks for its line */
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

/* Reads a record in memory or dumped. UNKNOWN: the op has its status already. */
static enum counter_look read_one(const struct counter *counter, struct engine_op *op,
                                  struct counter_table *table, const struct counter_locus *locus,
                                  struct counter_values *values)
{
    uint32_t slots = counter_op_slots(counter, op);
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

/* Reads in the table for ids apart. True: the id is there, and the op has been read. */
static bool read_apart(const struct counter *counter, struct engine_op *op)
{
    struct counter_table *apart = counter_table_of(counter->row.apart);
    struct counter_values values;
    struct counter_locus locus;
    counter_table_locate(apart, op->id, false, &locus);
    bool found =
        counter_table_read(apart, &locus, counter_op_slots(counter, op), &values) == COUNTER_FOUND;
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
    struct counter_locus locus = *counter_op_locus(op);
    if (UNLIKELY(counter_may_be_apart(table, op->id)) && read_apart(counter, op)) {
        return;
    }
    enum counter_look look = read_one(counter, op, table, &locus, &values);
    for (struct counter_table *layer = counter_layer_of(table); look == COUNTER_ABSENT && layer;
         layer = counter_layer_of(layer)) {
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
        bool short_way = LIKELY(off.count == 0) || !is_put_off(&off, ops[i]->id);
        if (UNLIKELY(!short_way) || UNLIKELY(!read_short(counter, ops[i]))) {
            read_at_home(counter, ops[i], &off);
        }
    }
    for (size_t i = 0; off.count > 0; i++) {
        if (ops[i]->status == ENGINE_PENDING) {
            off.count--;
            read_further(counter, ops[i]);
        }
    }
}
