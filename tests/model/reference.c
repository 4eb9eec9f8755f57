/* reference.c: counters in a chained hash map. */
#include "tests/model/reference.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/memory.h"
#include "counter/record.h"

#define BUCKETS       16384u
#define SMALLEST_EDGE 1u /* in a slot of two bits: larger may need the aux dict */
#define DIGITS_MAX    20u

struct numbers {
    uint64_t set; /* bit a name */
    uint64_t value[REFERENCE_NAMES_MAX];
};

struct node {
    struct node *next;
    uint64_t id;
    struct numbers numbers;
};

struct reference {
    struct node *buckets[BUCKETS];
    uint64_t records;
    char names[REFERENCE_NAMES_MAX][ENGINE_SPACE_NAME_MAX + 1];
    unsigned name_count;
    uint64_t in_place; /* bit a name: every table that may be there has a slot for it */
    struct counter_config config;
    unsigned name_of[ENGINE_SLOTS_MAX]; /* by slot */
    uint64_t visible;                   /* bit a name */
    /* what was planned */
    bool planned;
    uint64_t planned_id;
    struct numbers after; /* nothing set: the record goes */
};

static unsigned name_number(struct reference *r, const char *name)
{
    unsigned i = 0;
    while (i < r->name_count && strcmp(r->names[i], name) != 0) {
        i++;
    }
    if (i == r->name_count) {
        CHECK(i < REFERENCE_NAMES_MAX);
        strcpy(r->names[r->name_count++], name);
    }
    return i;
}

void reference_reconfigure(struct reference *r, const struct counter_config *config)
{
    r->config = *config;
    r->visible = 0;
    for (unsigned i = 0; i < config->slot_count; i++) {
        r->name_of[i] = name_number(r, config->slots[i].name);
        r->visible |= 1ull << r->name_of[i];
    }
    bool anew = r->records == 0 && !config->any_ids; /* an empty table is made of the new slots */
    bool opens = config->tables > 1 && !config->any_ids;
    if (anew || opens) {
        r->in_place = anew ? r->visible : r->in_place & r->visible;
    }
}

struct reference *reference_create(const struct counter_config *config)
{
    struct reference *r = memory_zalloc(sizeof(*r));
    reference_reconfigure(r, config);
    r->in_place = r->visible;
    return r;
}

static struct node **find(struct reference *r, uint64_t id)
{
    struct node **at = &r->buckets[hash_u64(id) % BUCKETS];
    while (*at && (*at)->id != id) {
        at = &(*at)->next;
    }
    return at;
}

static void drop(struct reference *r, struct node **at)
{
    struct node *node = *at;
    *at = node->next;
    free(node);
    r->records--;
}

void reference_clear(struct reference *r)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        while (r->buckets[i]) {
            drop(r, &r->buckets[i]);
        }
    }
    r->in_place = r->visible;
}

void reference_destroy(struct reference *r)
{
    if (r) {
        reference_clear(r);
        free(r);
    }
}

uint64_t reference_records(const struct reference *r)
{
    return r->records;
}

/* A field's number. False: neither empty nor a number. */
static bool parse_field(const char *text, size_t length, bool *set, uint64_t *value)
{
    char copy[DIGITS_MAX + 1];
    while (length > 0 && text[length - 1] == ' ') {
        length--;
    }
    *set = length > 0;
    if (length > DIGITS_MAX || strspn(text, "0123456789") < length) {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    errno = 0;
    *value = strtoull(copy, NULL, 10);
    return errno == 0;
}

/* The operand's numbers by slot. False: not `count` fields of numbers. */
static bool parse_fields(const struct engine_op *op, unsigned count, uint32_t *set,
                         uint64_t *values)
{
    const char *at = op->text;
    const char *end = op->text + op->text_length;
    *set = 0;
    for (unsigned i = 0; i < count; i++) {
        const char *stop = at;
        bool there;
        while (stop < end && *stop != ',') {
            stop++;
        }
        if (!parse_field(at, (size_t)(stop - at), &there, &values[i]) ||
            (stop < end) != (i + 1 < count)) {
            return false;
        }
        *set |= (uint32_t)there << i;
        at = stop + 1;
    }
    return true;
}

static size_t print(const struct reference *r, int slot, const struct numbers *numbers, char *text)
{
    char whole[ENGINE_VALUE_MAX + 1] = "";
    size_t length = 0;
    for (unsigned i = 0; i < r->config.slot_count; i++) {
        unsigned name = r->name_of[i];
        if (slot != ENGINE_SLOT_RECORD && slot != (int)i) {
            continue;
        }
        if (slot == ENGINE_SLOT_RECORD && i > 0) {
            whole[length++] = ',';
        }
        if (numbers->set >> name & 1) {
            length += (size_t)snprintf(whole + length, sizeof(whole) - length, "%" PRIu64,
                                       numbers->value[name]);
        }
    }
    memcpy(text, whole, length);
    return length;
}

static uint64_t token(const struct reference *r, int slot, uint64_t id,
                      const struct numbers *numbers)
{
    char text[ENGINE_VALUE_MAX];
    size_t length = print(r, slot, numbers, text);
    const char *name = slot == ENGINE_SLOT_RECORD ? "" : r->config.slots[slot].name;
    uint64_t name_hash = *name ? hash_bytes(name, strlen(name), 0) : 0;
    return counter_record_token(id, name_hash, text, length);
}

/* Bits of the names an operation speaks of. */
static uint64_t op_names(const struct reference *r, int slot)
{
    return slot == ENGINE_SLOT_RECORD ? r->visible : 1ull << r->name_of[slot];
}

uint64_t reference_token(struct reference *r, int slot, uint64_t id)
{
    struct node *node = *find(r, id);
    bool there = node && node->numbers.set & op_names(r, slot);
    return there ? token(r, slot, id, &node->numbers) : 0;
}

static bool is_add(const struct engine_op *op)
{
    return op->verb == ENGINE_INCR || op->verb == ENGINE_DECR;
}

/* The operand: bits and values by slot. */
static enum engine_error operand(const struct reference *r, const struct engine_op *op,
                                 uint32_t *set, uint64_t *values)
{
    unsigned slots = (unsigned)r->config.slot_count;
    bool whole = op->slot == ENGINE_SLOT_RECORD;
    uint64_t number = 0;
    bool there = false;
    *set = 0;
    if (op->verb == ENGINE_DELETE) {
        return ENGINE_E_NONE;
    }
    bool one = parse_field(op->text, op->text_length, &there, &number) && there;
    if (is_add(op) && one && op->text[op->text_length - 1] == ' ') {
        one = false; /* a delta has no padding */
    }
    if (!whole || (slots == 1 && is_add(op))) {
        unsigned slot = whole ? 0 : (unsigned)op->slot;
        *set = 1u << slot;
        values[slot] = number;
        return one ? ENGINE_E_NONE : is_add(op) ? ENGINE_E_BAD_DELTA : ENGINE_E_NOT_A_NUMBER;
    }
    if (is_add(op) && one) {
        return ENGINE_E_NON_NUMERIC;
    }
    bool fields = parse_fields(op, slots, set, values);
    return fields ? ENGINE_E_NONE : is_add(op) ? ENGINE_E_BAD_DELTA : ENGINE_E_RECORD_FIELDS;
}

static enum engine_status plan_add(struct reference *r, const struct engine_op *op, bool present,
                                   uint32_t set, const uint64_t *values)
{
    bool creates = (!r->config.role_cache || op->create_initial) && !op->create_never;
    if (!set && !present) {
        return ENGINE_ABSENT;
    }
    for (unsigned i = 0; i < r->config.slot_count; i++) {
        unsigned name = r->name_of[i];
        if (!(set >> i & 1)) {
            continue;
        }
        bool there = r->after.set >> name & 1;
        if (!there && !creates) {
            return ENGINE_ABSENT;
        }
        uint64_t old = there ? r->after.value[name] : 0;
        uint64_t down = old < values[i] ? 0 : old - values[i];
        uint64_t next = op->verb == ENGINE_INCR ? old + values[i] : down;
        r->after.value[name] = !there && op->create_initial ? op->initial : next;
        r->after.set |= 1ull << name;
    }
    return ENGINE_DONE;
}

static enum engine_status plan_write(struct reference *r, const struct engine_op *op, uint32_t set,
                                     const uint64_t *values)
{
    uint64_t names = op_names(r, op->slot);
    bool there = r->after.set & names;
    if (op->verb == ENGINE_ADD && there) {
        return ENGINE_EXISTS;
    }
    if (op->verb != ENGINE_SET && op->verb != ENGINE_ADD && !there) {
        return ENGINE_ABSENT;
    }
    if (op->verb == ENGINE_CAS && token(r, op->slot, op->id, &r->after) != op->cas) {
        return ENGINE_EXISTS;
    }
    r->after.set &= ~names;
    for (unsigned i = 0; i < r->config.slot_count; i++) {
        if (set >> i & 1) {
            r->after.set |= 1ull << r->name_of[i];
            r->after.value[r->name_of[i]] = values[i];
        }
    }
    return ENGINE_DONE;
}

static void plan_read(struct reference *r, const struct engine_op *op,
                      struct reference_answer *answer)
{
    if (!(r->after.set & op_names(r, op->slot))) {
        answer->status = ENGINE_ABSENT;
        answer->miss = r->after.set & r->visible ? ENGINE_MISS_UNSET : ENGINE_MISS_ABSENT;
    } else if (op->verb == ENGINE_READ) {
        answer->length = print(r, op->slot, &r->after, answer->text);
    }
}

/*
 * A new record may find no place, a number too large for a slot of two bits no aux entry, and the
 * same holds for any number in a slot that a table learned after its creation.
 */
static bool may_need_room(const struct reference *r, uint64_t names, bool known)
{
    bool large = false;
    for (unsigned i = 0; i < REFERENCE_NAMES_MAX; i++) {
        bool set = (r->after.set & names) >> i & 1;
        large = large || (set && (r->after.value[i] > SMALLEST_EDGE || !(r->in_place >> i & 1)));
    }
    return !known || large;
}

static void plan_change(struct reference *r, const struct engine_op *op, bool known,
                        struct reference_answer *answer)
{
    uint64_t values[ENGINE_SLOTS_MAX] = {0};
    uint32_t set;
    answer->error = operand(r, op, &set, values);
    if (answer->error == ENGINE_E_NONE && r->config.any_ids && op->id > r->config.max_id) {
        answer->error = ENGINE_E_ID_TOO_LARGE;
    }
    if (answer->error != ENGINE_E_NONE) {
        answer->status = ENGINE_ERROR;
        return;
    }
    bool present = r->after.set & r->visible;
    answer->status =
        is_add(op) ? plan_add(r, op, present, set, values) : plan_write(r, op, set, values);
    r->planned = answer->status == ENGINE_DONE;
    if (r->planned && is_add(op)) {
        answer->length = print(r, op->slot, &r->after, answer->text);
    }
    if (!(r->after.set & r->visible)) {
        r->after.set = 0; /* with its last visible slot the record goes, hidden ones too */
    }
    answer->grows = r->after.set && may_need_room(r, op_names(r, op->slot), known);
}

void reference_plan(struct reference *r, const struct engine_op *op,
                    struct reference_answer *answer)
{
    struct node *node = *find(r, op->id);
    *answer = (struct reference_answer){.status = ENGINE_DONE};
    r->planned = false;
    r->planned_id = op->id;
    r->after.set = 0;
    if (node) {
        r->after = node->numbers;
    }
    if (op->verb == ENGINE_READ || op->verb == ENGINE_TOUCH) {
        plan_read(r, op, answer);
    } else {
        plan_change(r, op, node != NULL, answer);
    }
}

void reference_commit(struct reference *r)
{
    if (!r->planned) {
        return;
    }
    r->planned = false;
    struct node **at = find(r, r->planned_id);
    if (!r->after.set) {
        if (*at) {
            drop(r, at);
        }
        return;
    }
    if (!*at) {
        *at = memory_zalloc(sizeof(**at));
        (*at)->id = r->planned_id;
        r->records++;
    }
    (*at)->numbers = r->after;
}
