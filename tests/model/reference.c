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
    bool anew =
        r->records == 0 && !config->row.any_ids; /* an empty table is made of the new slots */
    bool opens = config->row.tables > 1 && !config->row.any_ids;
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

/* The slots that an operation's key names, in its order. Returns how many. */
static unsigned op_list(const struct reference *r, const struct engine_op *op,
                        unsigned slots[ENGINE_SLOTS_MAX])
{
    unsigned count = 0;
    uint64_t order = op->order;
    if (op->slot >= 0) {
        slots[count++] = (unsigned)op->slot;
    }
    while (op->slot == ENGINE_SLOT_RECORD && count < r->config.slot_count) {
        slots[count] = count;
        count++;
    }
    for (uint32_t left = op->slot == ENGINE_SLOT_SOME ? op->some : 0; left; left &= left - 1) {
        slots[count++] = order & 15;
        order >>= 4;
    }
    return count;
}

static size_t print(const struct reference *r, const struct engine_op *op,
                    const struct numbers *numbers, char *text)
{
    char whole[ENGINE_VALUE_MAX + 1] = "";
    unsigned slots[ENGINE_SLOTS_MAX];
    unsigned count = op_list(r, op, slots);
    size_t length = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned name = r->name_of[slots[i]];
        if (i > 0) {
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

static uint64_t token(const struct reference *r, const struct engine_op *op,
                      const struct numbers *numbers)
{
    char text[ENGINE_VALUE_MAX];
    unsigned slots[ENGINE_SLOTS_MAX];
    size_t length = print(r, op, numbers, text);
    unsigned count = op->slot == ENGINE_SLOT_RECORD ? 0 : op_list(r, op, slots);
    uint64_t name_hash = 0;
    for (unsigned i = 0; i < count; i++) {
        const char *name = r->config.slots[slots[i]].name;
        uint64_t hash = hash_bytes(name, strlen(name), 0);
        name_hash = op->slot >= 0 ? hash : hash_u64(name_hash ^ hash);
    }
    return counter_record_token(op->id, name_hash, text, length);
}

/* Bits of the names an operation speaks of. */
static uint64_t op_names(const struct reference *r, const struct engine_op *op)
{
    unsigned slots[ENGINE_SLOTS_MAX];
    uint64_t names = 0;
    for (unsigned left = op_list(r, op, slots); left > 0; left--) {
        names |= 1ull << r->name_of[slots[left - 1]];
    }
    return names;
}

/* Of the names an operation speaks of: is it there? In a cache what is there in part is not. */
static bool is_there(const struct reference *r, const struct numbers *numbers, uint64_t names)
{
    uint64_t set = numbers->set & names;
    return r->config.role_cache ? set == names : set != 0;
}

uint64_t reference_token(struct reference *r, const struct engine_op *op)
{
    struct node *node = *find(r, op->id);
    bool there = node && is_there(r, &node->numbers, op_names(r, op));
    return there ? token(r, op, &node->numbers) : 0;
}

static uint64_t names_of(const struct reference *r, uint32_t slots)
{
    uint64_t names = 0;
    for (unsigned i = 0; i < r->config.slot_count; i++) {
        names |= (uint64_t)(slots >> i & 1) << r->name_of[i];
    }
    return names;
}

static bool is_add(const struct engine_op *op)
{
    return op->verb == ENGINE_INCR || op->verb == ENGINE_DECR;
}

/* `name=number` fields, each of another slot. */
static bool parse_names(const struct reference *r, const struct engine_op *op, uint32_t *set,
                        uint64_t *values)
{
    char copy[ENGINE_VALUE_MAX + 1], *save = NULL;
    *set = 0;
    CHECK(op->text_length <= ENGINE_VALUE_MAX);
    memcpy(copy, op->text, op->text_length);
    copy[op->text_length] = '\0';
    bool whole =
        copy[0] && copy[0] != ',' && copy[op->text_length - 1] != ',' && !strstr(copy, ",,");
    for (char *field = strtok_r(copy, ",", &save); field; field = strtok_r(NULL, ",", &save)) {
        char *equals = strchr(field, '=');
        bool there = false;
        unsigned slot = 0;
        if (!equals) {
            return false;
        }
        *equals = '\0';
        while (slot < r->config.slot_count && strcmp(r->config.slots[slot].name, field) != 0) {
            slot++;
        }
        if (slot == r->config.slot_count || (*set >> slot & 1) ||
            !parse_field(equals + 1, strlen(equals + 1), &there, &values[slot]) || !there) {
            return false;
        }
        *set |= 1u << slot;
    }
    return whole;
}

/* Of a record or several slots: fields in the key's order, of a record also with names. */
static bool parse_several(const struct reference *r, const struct engine_op *op, uint32_t *set,
                          uint64_t *values, bool *named)
{
    unsigned slots[ENGINE_SLOTS_MAX];
    uint64_t ordered[ENGINE_SLOTS_MAX];
    uint32_t given;
    unsigned count = op_list(r, op, slots);
    *named = false;
    if (!parse_fields(op, count, &given, ordered)) {
        *named = true;
        return op->slot == ENGINE_SLOT_RECORD && parse_names(r, op, set, values);
    }
    *set = 0;
    for (unsigned i = 0; i < count; i++) {
        *set |= (given >> i & 1) << slots[i];
        values[slots[i]] = ordered[i];
    }
    return true;
}

/* A delta, or deltas. *first_alone: one for several slots. */
static enum engine_error operand_add(const struct reference *r, const struct engine_op *op,
                                     uint32_t *set, uint64_t *values, bool *first_alone)
{
    uint64_t number = 0;
    bool there = false, named;
    unsigned slots[ENGINE_SLOTS_MAX];
    unsigned count = op_list(r, op, slots);
    bool one = parse_field(op->text, op->text_length, &there, &number) && there &&
               op->text[op->text_length - 1] != ' '; /* a delta has no padding */
    *first_alone = one && op->slot == ENGINE_SLOT_SOME;
    if (one && op->slot == ENGINE_SLOT_RECORD && count > 1) {
        return ENGINE_E_NON_NUMERIC;
    }
    if (one || count == 1) {
        for (unsigned i = 0; i < count; i++) {
            *set |= 1u << slots[i];
            values[slots[i]] = number;
        }
        return one ? ENGINE_E_NONE : ENGINE_E_BAD_DELTA;
    }
    return parse_several(r, op, set, values, &named) ? ENGINE_E_NONE : ENGINE_E_BAD_DELTA;
}

/* The operand: bits and values by slot. *gone: names that it takes the numbers of. */
static enum engine_error operand(const struct reference *r, const struct engine_op *op,
                                 uint32_t *set, uint64_t *values, uint64_t *gone)
{
    bool named = false, there = false;
    *set = 0;
    *gone = op_names(r, op);
    if (op->verb == ENGINE_DELETE) {
        return ENGINE_E_NONE;
    }
    if (op->slot >= 0) {
        *set = 1u << op->slot;
        bool one = parse_field(op->text, op->text_length, &there, &values[op->slot]) && there;
        return one ? ENGINE_E_NONE : ENGINE_E_NOT_A_NUMBER;
    }
    if (!parse_several(r, op, set, values, &named)) {
        return op->slot == ENGINE_SLOT_RECORD ? ENGINE_E_RECORD_FIELDS : ENGINE_E_SOME_FIELDS;
    }
    if (named || (r->config.keep_empty && !r->config.role_cache)) {
        *gone = names_of(r, *set);
    } else if (r->config.role_cache) {
        *set = op->slot == ENGINE_SLOT_SOME ? op->some : (1u << r->config.slot_count) - 1;
    }
    return ENGINE_E_NONE;
}

/* Nothing was found to be changed: a cache forgets what would have been. */
static enum engine_status plan_nothing(struct reference *r, uint64_t names)
{
    r->planned = r->config.role_cache && (r->after.set & names) != 0;
    r->after.set &= r->planned ? ~names : UINT64_MAX;
    return ENGINE_ABSENT;
}

static enum engine_status plan_add(struct reference *r, const struct engine_op *op, uint32_t set,
                                   const uint64_t *values)
{
    bool creates = (!r->config.role_cache || op->create_initial) && !op->create_never;
    bool there = is_there(r, &r->after, op_names(r, op));
    if ((!set || (r->config.role_cache && !creates)) && !there) {
        return plan_nothing(r, names_of(r, set));
    }
    if ((names_of(r, set) & ~r->after.set) && !creates) {
        return plan_nothing(r, names_of(r, set));
    }
    for (unsigned i = 0; i < r->config.slot_count; i++) {
        unsigned name = r->name_of[i];
        if (!(set >> i & 1)) {
            continue;
        }
        there = r->after.set >> name & 1;
        uint64_t old = there ? r->after.value[name] : 0;
        uint64_t down = old < values[i] ? 0 : old - values[i];
        uint64_t next = op->verb == ENGINE_INCR ? old + values[i] : down;
        r->after.value[name] = !there && op->create_initial ? op->initial : next;
        r->after.set |= 1ull << name;
    }
    return ENGINE_DONE;
}

static enum engine_status plan_write(struct reference *r, const struct engine_op *op, uint32_t set,
                                     const uint64_t *values, uint64_t gone)
{
    uint64_t names = op_names(r, op);
    bool there = is_there(r, &r->after, names);
    if (op->verb == ENGINE_DELETE && !(r->after.set & names)) {
        return ENGINE_ABSENT;
    }
    if (op->verb == ENGINE_ADD && there) {
        return ENGINE_EXISTS;
    }
    if ((op->verb == ENGINE_REPLACE || op->verb == ENGINE_CAS) && !there) {
        return plan_nothing(r, gone);
    }
    if (op->verb == ENGINE_CAS && token(r, op, &r->after) != op->cas) {
        return ENGINE_EXISTS;
    }
    r->after.set &= ~gone;
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
    uint64_t names = op_names(r, op);
    if (!is_there(r, &r->after, names)) {
        answer->status = ENGINE_ABSENT;
        answer->miss = r->after.set & r->visible ? ENGINE_MISS_UNSET : ENGINE_MISS_ABSENT;
        answer->miss = r->after.set & names ? ENGINE_MISS_INCOMPLETE : answer->miss;
    } else if (op->verb == ENGINE_READ) {
        answer->length = print(r, op, &r->after, answer->text);
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
    uint64_t gone = 0;
    uint32_t set = 0;
    bool first_alone = false;
    answer->error = is_add(op) ? operand_add(r, op, &set, values, &first_alone)
                               : operand(r, op, &set, values, &gone);
    if (answer->error == ENGINE_E_NONE && r->config.row.any_ids && op->id > r->config.max_id) {
        answer->error = ENGINE_E_ID_TOO_LARGE;
    }
    if (answer->error != ENGINE_E_NONE) {
        answer->status = ENGINE_ERROR;
        return;
    }
    answer->status =
        is_add(op) ? plan_add(r, op, set, values) : plan_write(r, op, set, values, gone);
    r->planned = r->planned || answer->status == ENGINE_DONE;
    if (answer->status == ENGINE_DONE && is_add(op)) {
        struct engine_op first = {.slot = first_alone ? (int)(op->order & 15) : op->slot,
                                  .some = op->some,
                                  .order = op->order};
        answer->length = print(r, &first, &r->after, answer->text);
    }
    if (!(r->after.set & r->visible)) {
        r->after.set = 0; /* with its last visible slot the record goes, hidden ones too */
    }
    answer->grows = r->after.set && may_need_room(r, op_names(r, op), known);
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
