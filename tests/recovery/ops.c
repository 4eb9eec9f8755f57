/* ops.c: requests, the answers that must come, and what they change in the model. */
#include "tests/recovery/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BELOW_OLDEST "CLIENT_ERROR id below the oldest table"
#define CLIENT_ERROR "CLIENT_ERROR "
#define SERVER_ERROR "SERVER_ERROR "
#define TOO_FAR      "CLIENT_ERROR id too far ahead" /* no table for it, and strays are full */

static const char *const slot_names[SLOTS] = {"repost", "comment", "like", "read"};

static const struct {
    const char *name;
    const char *command;
} verbs[VERBS] = {
    [VERB_INCR] = {"incr", "incr"},
    [VERB_DECR] = {"decr", "decr"},
    [VERB_SET] = {"set", "set"},
    [VERB_RECORD] = {"record", "set"},
    [VERB_UNSET] = {"unset", "delete"},
    [VERB_DELETE] = {"delete", "delete"},
    [VERB_GET] = {"get", "get"},
    [VERB_ADD_MEMBER] = {"add", "add"},
    [VERB_DELETE_MEMBER] = {"remove", "delete"},
};

bool op_is_member(const struct op *op)
{
    return op->verb >= VERB_ADD_MEMBER;
}

const char *op_kind(const struct op *op)
{
    return op_is_member(op) ? "member" : "counter";
}

const char *op_name(const struct op *op)
{
    return verbs[op->verb].name;
}

/* One number, or all joined by commas, those that are unset empty. */
static size_t numbers_text(const int64_t *values, int slot, char *out)
{
    size_t length = 0;
    if (slot != WHOLE) {
        return (size_t)sprintf(out, "%" PRId64, values[slot]);
    }
    for (int i = 0; i < SLOTS; i++) {
        if (i > 0) {
            out[length++] = ',';
        }
        if (values[i] != UNSET_VALUE) {
            length += (size_t)sprintf(out + length, "%" PRId64, values[i]);
        }
    }
    out[length] = '\0';
    return length;
}

static size_t key_text(const struct op *op, char *out)
{
    if (op_is_member(op)) {
        return (size_t)sprintf(out, "liked:%" PRIu64 ":u%d", op->id, op->slot);
    }
    if (op->slot == WHOLE) {
        return (size_t)sprintf(out, "feed:%" PRIu64, op->id);
    }
    return (size_t)sprintf(out, "feed:%" PRIu64 ".%s", op->id, slot_names[op->slot]);
}

size_t op_compose(const struct op *op, char *out)
{
    char numbers[OP_BYTES_MAX / 2];
    size_t length = (size_t)sprintf(out, "%s ", verbs[op->verb].command);
    length += key_text(op, out + length);
    switch (op->verb) {
    case VERB_INCR:
    case VERB_DECR:
        out[length++] = ' ';
        length += numbers_text(op->values, op->slot, out + length);
        break;
    case VERB_SET:
    case VERB_RECORD:
        length += (size_t)sprintf(out + length, " 0 0 %zu\r\n",
                                  numbers_text(op->values, op->slot, numbers));
        length += numbers_text(op->values, op->slot, out + length);
        break;
    case VERB_ADD_MEMBER:
        length += (size_t)sprintf(out + length, " 0 0 1\r\n1");
        break;
    default:
        break;
    }
    return length + (size_t)sprintf(out + length, "\r\n");
}

static bool is_absent(const struct model_entry *entry)
{
    for (int i = 0; i < SLOTS; i++) {
        if (entry->slots[i] != UNSET_VALUE) {
            return false;
        }
    }
    return true;
}

static int64_t changed(enum verb verb, int64_t value, int64_t delta)
{
    int64_t from = value == UNSET_VALUE ? 0 : value;
    if (verb == VERB_INCR) {
        return from + delta;
    }
    return from > delta ? from - delta : 0;
}

static size_t apply_delta(const struct op *op, struct model_entry *entry, char *answer)
{
    for (int i = 0; i < SLOTS; i++) {
        if (op->values[i] != UNSET_VALUE) {
            entry->slots[i] = changed(op->verb, entry->slots[i], op->values[i]);
        }
    }
    size_t length = numbers_text(entry->slots, op->slot, answer);
    return length + (size_t)sprintf(answer + length, "\r\n");
}

static size_t apply_set(const struct op *op, struct model_entry *entry, char *answer)
{
    if (op->slot == WHOLE) {
        memcpy(entry->slots, op->values, sizeof(entry->slots));
    } else {
        entry->slots[op->slot] = op->values[op->slot];
    }
    return (size_t)sprintf(answer, "STORED\r\n");
}

static size_t apply_delete(const struct op *op, struct model_entry *entry, char *answer)
{
    bool was;
    if (op->slot == WHOLE) {
        was = !is_absent(entry);
        for (int i = 0; i < SLOTS; i++) {
            entry->slots[i] = UNSET_VALUE;
        }
    } else {
        was = entry->slots[op->slot] != UNSET_VALUE;
        entry->slots[op->slot] = UNSET_VALUE;
    }
    return (size_t)sprintf(answer, was ? "DELETED\r\n" : "NOT_FOUND\r\n");
}

static size_t apply_get(const struct op *op, const struct model_entry *entry, char *answer)
{
    char key[OP_BYTES_MAX / 2], record[OP_BYTES_MAX / 2];
    if (is_absent(entry)) {
        return (size_t)sprintf(answer, "END\r\n");
    }
    key_text(op, key);
    size_t length = numbers_text(entry->slots, WHOLE, record);
    return (size_t)sprintf(answer, "VALUE %s 0 %zu\r\n%s\r\nEND\r\n", key, length, record);
}

/* Of MEMBER_UNKNOWN the filter says yes, unless it has forgotten what made it so: see op_other. */
static size_t apply_member(const struct op *op, struct model_entry *entry, char *answer)
{
    enum member_state state = member_get(entry, op->slot);
    bool there = state == MEMBER_THERE || state == MEMBER_UNKNOWN;
    bool judged = state != MEMBER_UNKNOWN;
    if (op->verb == VERB_ADD_MEMBER) {
        member_put(entry, op->slot, judged ? MEMBER_THERE : state);
        return (size_t)sprintf(answer, there ? "NOT_STORED\r\n" : "STORED\r\n");
    }
    member_put(entry, op->slot, there && judged ? MEMBER_DELETED : state);
    return (size_t)sprintf(answer, there ? "DELETED\r\n" : "NOT_FOUND\r\n");
}

size_t op_apply(const struct op *op, struct model_entry *entry, char *answer)
{
    switch (op->verb) {
    case VERB_INCR:
    case VERB_DECR:
        return apply_delta(op, entry, answer);
    case VERB_SET:
    case VERB_RECORD:
        return apply_set(op, entry, answer);
    case VERB_UNSET:
    case VERB_DELETE:
        return apply_delete(op, entry, answer);
    case VERB_GET:
        return apply_get(op, entry, answer);
    default:
        return apply_member(op, entry, answer);
    }
}

/* An answer that a recycled id gives and a live one that holds something does not. */
static bool says_gone(const struct op *op, const char *line)
{
    if (strcmp(line, BELOW_OLDEST) == 0) {
        return true;
    }
    switch (op->verb) {
    case VERB_UNSET:
    case VERB_DELETE:
    case VERB_DELETE_MEMBER:
        return strcmp(line, "NOT_FOUND") == 0;
    case VERB_GET:
        return strcmp(line, "END") == 0;
    default:
        return false;
    }
}

enum outcome op_other(const struct op *op, struct model_entry *entry, const char *line,
                      bool recycles)
{
    if (strncmp(line, SERVER_ERROR, strlen(SERVER_ERROR)) == 0 ||
        (!recycles && strcmp(line, TOO_FAR) == 0)) {
        return OUTCOME_REFUSED;
    }
    if (recycles && says_gone(op, line)) {
        entry->gone = (uint8_t)(entry->gone | (op_is_member(op) ? GONE_LIKED : GONE_FEED));
        return OUTCOME_GONE;
    }
    if (op_is_member(op) && strncmp(line, CLIENT_ERROR, strlen(CLIENT_ERROR)) != 0 &&
        (member_get(entry, op->slot) == MEMBER_NEVER ||
         member_get(entry, op->slot) == MEMBER_UNKNOWN)) {
        member_put(entry, op->slot, MEMBER_UNKNOWN);
        return OUTCOME_FALSE_POSITIVE;
    }
    return OUTCOME_WRONG;
}
