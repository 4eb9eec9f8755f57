/* change_record.c: changes and events to the words of a record, and back. */
#include "engine/change_record.h"

#include <string.h>

#include "base/check.h"

#define WORD         sizeof(uint64_t)
#define ALL_SLOTS    ((1u << CHANGE_SLOTS_MAX) - 1)
#define PLACE_MASK   ((1u << CHANGE_RECORD_PLACE_BITS) - 1)
#define SLOTS_SHIFT  16 /* where `set` stands after `named` */
#define MEMBER_WORDS 3  /* id and two hashes */

_Static_assert(CHANGE_SPACE_NAME_MAX + CHANGE_SPACE_KIND_MAX + 1 == CHANGE_SPACE_HEAD_BYTES,
               "a head is both words");
_Static_assert(CHANGE_SLOTS_MAX == 1 << CHANGE_RECORD_SLOT_BITS, "a slot's number fits its bits");

/* ---- to words ---- */

static void change_record_encode_slot(const struct change *change, struct change_record *record)
{
    unsigned slot = (unsigned)__builtin_ctz(change->named);
    bool set = (change->set & change->named) != 0;
    record->type = CHANGE_RECORD_SLOT;
    record->b = (uint8_t)(slot | (unsigned)change->place << CHANGE_RECORD_SLOT_BITS |
                          (unsigned)set << CHANGE_RECORD_SET_SHIFT);
    record->words[1] = set ? change->values[slot] : 0;
    record->bytes = 2 * WORD;
}

static void change_record_encode_slots(const struct change *change, struct change_record *record)
{
    uint32_t set = change->set & change->named;
    uint32_t words = 2;
    record->type = CHANGE_RECORD_SLOTS;
    record->words[1] = change->named | (uint64_t)set << SLOTS_SHIFT;
    for (uint32_t left = set; left != 0; left &= left - 1) {
        record->words[words++] = change->values[__builtin_ctz(left)];
    }
    record->bytes = words * (uint32_t)WORD;
}

static void encode_delete(const struct change *change, struct change_record *record)
{
    bool inside = change->place == CHANGE_INSIDE;
    CHECK(inside ? change->layer - 1 < CHANGE_LAYERS_MAX : change->layer == 0);
    unsigned further = inside ? change->layer - 1 : 0;
    record->type = CHANGE_RECORD_DELETE;
    record->b = (uint8_t)((unsigned)change->place | further << CHANGE_RECORD_PLACE_BITS);
    record->bytes = WORD;
}

static void encode_member(const struct change *change, struct change_record *record)
{
    bool add = change->type == CHANGE_MEMBER_ADD;
    record->type = add ? CHANGE_RECORD_MEMBER_ADD : CHANGE_RECORD_MEMBER_DELETE;
    record->words[1] = change->member[0];
    record->words[2] = change->member[1];
    record->bytes = MEMBER_WORDS * WORD;
}

void change_record_encode(const struct change *change, struct change_record *record)
{
    CHECK(change->space <= CHANGE_SPACE_MAX && (unsigned)change->place <= PLACE_MASK);
    CHECK((change->named & ~ALL_SLOTS) == 0);
    record->a = (uint8_t)change->space;
    record->b = (uint8_t)change->place;
    record->words[0] = change->id;
    if (change->type == CHANGE_DELETE) {
        encode_delete(change, record);
    } else if (change->type != CHANGE_SLOTS) {
        encode_member(change, record);
    } else if (change->named != 0 && (change->named & (change->named - 1)) == 0) {
        change_record_encode_slot(change, record);
    } else {
        change_record_encode_slots(change, record);
    }
}

size_t change_record_encode_event(uint64_t *words, const void *bytes, size_t length)
{
    CHECK(length <= CHANGE_EVENT_BYTES_MAX);
    size_t count = 1 + (length + WORD - 1) / WORD;
    words[count - 1] = 0; /* what follows the bytes */
    words[0] = length;
    if (length > 0) {
        memcpy(words + 1, bytes, length);
    }
    return count * WORD;
}

/* ---- the head of SPACE ---- */

static void change_record_put_word(char *to, const char *word, size_t most)
{
    size_t length = strlen(word);
    CHECK(length > 0 && length <= most);
    memcpy(to, word, length + 1);
}

void change_space_head_init(struct change_space_head *head, const char *name, const char *kind)
{
    memset(head, 0, sizeof(*head));
    change_record_put_word(head->name, name, CHANGE_SPACE_NAME_MAX);
    change_record_put_word(head->kind, kind, CHANGE_SPACE_KIND_MAX);
}

void change_space_head_encode(const struct change_space_head *head,
                              unsigned char bytes[CHANGE_SPACE_HEAD_BYTES])
{
    memcpy(bytes, head->name, CHANGE_SPACE_NAME_MAX);
    memcpy(bytes + CHANGE_SPACE_NAME_MAX, head->kind, sizeof(head->kind));
}

/* Writes a word, then zeroes, into a field of this many bytes. */
static bool change_record_is_word(const unsigned char *field, size_t bytes, size_t most)
{
    size_t length = strnlen((const char *)field, bytes);
    bool clean = length > 0 && length <= most;
    for (size_t i = length; i < bytes; i++) {
        clean = clean && field[i] == 0;
    }
    return clean;
}

bool change_space_head_decode(const void *bytes, size_t length, struct change_space_head *head)
{
    const unsigned char *name = bytes;
    const unsigned char *kind = name + CHANGE_SPACE_NAME_MAX;
    memset(head, 0, sizeof(*head));
    if (length < CHANGE_SPACE_HEAD_BYTES ||
        !change_record_is_word(name, CHANGE_SPACE_NAME_MAX, CHANGE_SPACE_NAME_MAX) ||
        !change_record_is_word(kind, sizeof(head->kind), CHANGE_SPACE_KIND_MAX)) {
        return false;
    }
    memcpy(head->name, name, CHANGE_SPACE_NAME_MAX);
    memcpy(head->kind, kind, sizeof(head->kind));
    return true;
}

/* ---- back ---- */

static bool change_record_decode_slot(uint8_t b, const uint64_t *words, size_t count,
                                      struct change *change)
{
    unsigned slot = b & (CHANGE_SLOTS_MAX - 1);
    unsigned set = b >> CHANGE_RECORD_SET_SHIFT;
    if (count != 2 || set > 1 || (set == 0 && words[1] != 0)) {
        return false;
    }
    change->place = (enum change_place)(b >> CHANGE_RECORD_SLOT_BITS & PLACE_MASK);
    change->named = 1u << slot;
    change->set = set << slot;
    change->values[slot] = words[1];
    return true;
}

static bool change_record_decode_slots(uint8_t b, const uint64_t *words, size_t count,
                                       struct change *change)
{
    if (count < 2 || words[1] >> (2 * SLOTS_SHIFT) != 0) {
        return false;
    }
    change->place = (enum change_place)b;
    change->named = (uint32_t)words[1] & ALL_SLOTS;
    change->set = (uint32_t)(words[1] >> SLOTS_SHIFT);
    size_t values = (size_t)__builtin_popcount(change->set);
    if ((change->set & ~change->named) != 0 || count != 2 + values) {
        return false;
    }
    const uint64_t *value = words + 2;
    for (uint32_t left = change->set; left != 0; left &= left - 1) {
        change->values[__builtin_ctz(left)] = *value++;
    }
    return true;
}

static bool decode_delete(uint8_t b, const uint64_t *words, size_t count, struct change *change)
{
    unsigned further = b >> CHANGE_RECORD_PLACE_BITS;
    (void)words;
    change->type = CHANGE_DELETE;
    change->place = (enum change_place)(b & PLACE_MASK);
    if (change->place == CHANGE_INSIDE) {
        change->layer = further + 1;
        return further < CHANGE_LAYERS_MAX && count == 1;
    }
    return b <= CHANGE_APART && count == 1;
}

static bool decode_member(uint8_t b, const uint64_t *words, size_t count, struct change *change)
{
    if (b > PLACE_MASK || count != MEMBER_WORDS) {
        return false;
    }
    change->place = (enum change_place)b;
    change->member[0] = words[1];
    change->member[1] = words[2];
    return true;
}

static bool decode_add(uint8_t b, const uint64_t *words, size_t count, struct change *change)
{
    change->type = CHANGE_MEMBER_ADD;
    return b < CHANGE_BOTH && decode_member(b, words, count, change);
}

static bool decode_remove(uint8_t b, const uint64_t *words, size_t count, struct change *change)
{
    change->type = CHANGE_MEMBER_DELETE;
    return decode_member(b, words, count, change);
}

static bool decode_any_slots(uint8_t b, const uint64_t *words, size_t count, struct change *change)
{
    change->type = CHANGE_SLOTS;
    return b <= PLACE_MASK && change_record_decode_slots(b, words, count, change);
}

static bool decode_one_slot(uint8_t b, const uint64_t *words, size_t count, struct change *change)
{
    change->type = CHANGE_SLOTS;
    return change_record_decode_slot(b, words, count, change);
}

typedef bool decode_fn(uint8_t b, const uint64_t *words, size_t count, struct change *change);

static decode_fn *const DECODERS[] = {
    [CHANGE_RECORD_SLOT] = decode_one_slot,        [CHANGE_RECORD_SLOTS] = decode_any_slots,
    [CHANGE_RECORD_DELETE] = decode_delete,        [CHANGE_RECORD_MEMBER_ADD] = decode_add,
    [CHANGE_RECORD_MEMBER_DELETE] = decode_remove,
};

static bool decode_event(uint8_t a, uint8_t b, const uint64_t *words, size_t count,
                         struct change_record_event *event)
{
    if (b < CHANGE_EVENT_SPACE || b > CHANGE_EVENT_PART || words[0] > CHANGE_EVENT_BYTES_MAX ||
        count != 1 + (words[0] + WORD - 1) / WORD) {
        return false;
    }
    *event = (struct change_record_event){a, (enum change_event)b, words + 1, (size_t)words[0]};
    return true;
}

enum change_record_kind change_record_decode(uint8_t type, uint8_t a, uint8_t b,
                                             const void *payload, size_t bytes,
                                             struct change *change,
                                             struct change_record_event *event)
{
    const uint64_t *words = payload;
    if (bytes % WORD != 0 || bytes < WORD) {
        return CHANGE_RECORD_IS_BAD;
    }
    if (type == CHANGE_RECORD_EVENT) {
        bool good = decode_event(a, b, words, bytes / WORD, event);
        return good ? CHANGE_RECORD_IS_EVENT : CHANGE_RECORD_IS_BAD;
    }
    decode_fn *decode = type < sizeof(DECODERS) / sizeof(DECODERS[0]) ? DECODERS[type] : NULL;
    change->space = a;
    change->place = CHANGE_THERE;
    change->layer = 0;
    change->id = words[0];
    change->named = change->set = 0;
    bool good = decode != NULL && decode(b, words, bytes / WORD, change);
    return good ? CHANGE_RECORD_IS_CHANGE : CHANGE_RECORD_IS_BAD;
}
