/* slots.c: what the tail of a key names. */
#include "engine/slots.h"

#include <string.h>

#include "base/hash.h"

#define SPREAD_TRIES_MAX 10000 /* one in six will do for as many slots as there may be */
#define SOME_MARK        '+'   /* between the names of a key that names several slots */

/* Gives each name of up to eight bytes its place. False: two meet in one. */
static bool slots_place(struct engine_slots *slots)
{
    memset(slots->places, 0, sizeof(slots->places));
    uint64_t taken = 0;
    for (unsigned i = 0; i < slots->count; i++) {
        uint64_t place = slots->heads[i] * slots->spread >> (64 - ENGINE_SLOTS_PLACE_BITS);
        bool is_short = slots->lengths[i] <= TEXT_WORD_BYTES;
        if (is_short && (taken >> place & 1) != 0) {
            return false;
        }
        if (is_short) {
            taken |= 1ull << place;
            slots->places[place] = (uint8_t)i;
        }
    }
    return true;
}

void engine_slots_add(struct engine_slots *slots, const char *name)
{
    unsigned i = slots->count++;
    size_t length = strlen(name);
    CHECK(i < ENGINE_SLOTS_MAX && length < sizeof(slots->names[i]));
    slots->all |= 1u << i;
    strcpy(slots->names[i], name);
    slots->lengths[i] = (uint8_t)length;
    slots->heads[i] = text_word(slots->names[i], length);
    slots->hashes[i] = hash_bytes(slots->names[i], length, 0);
    for (unsigned tries = 0; slots->spread == 0 || !slots_place(slots); tries++) {
        CHECK(tries < SPREAD_TRIES_MAX); /* no two names are the same */
        slots->spread = hash_u64(tries) | 1;
    }
}

int engine_slots_find_long(const struct engine_slots *slots, const char *name, size_t length)
{
    for (unsigned i = 0; i < slots->count; i++) {
        if (slots->lengths[i] == length && memcmp(slots->names[i], name, length) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* Names with SOME_MARK between them, each of another slot. */
static bool slots_some(const struct engine_slots *slots, const char *names, const char *end,
                       struct engine_op *op)
{
    op->slot = ENGINE_SLOT_SOME;
    op->some = 0;
    op->order = 0;
    for (unsigned i = 0; names <= end; i++) {
        const char *mark = memchr(names, SOME_MARK, (size_t)(end - names));
        const char *stop = mark ? mark : end;
        int slot = engine_slots_find(slots, names, (size_t)(stop - names));
        if (slot < 0 || (op->some >> slot & 1)) {
            return false;
        }
        op->some |= 1u << slot;
        op->order |= (uint64_t)slot << i * ENGINE_ORDER_BITS;
        names = stop + 1;
    }
    return true;
}

/* A long name, or several. Apart: most keys never come here. */
static __attribute__((noinline)) bool slots_odd(const struct engine_slots *slots, const char *names,
                                                size_t length, struct engine_op *op)
{
    op->slot = engine_slots_find(slots, names, length);
    return op->slot >= 0 || slots_some(slots, names, names + length, op);
}

bool engine_slots_parse(const struct engine_slots *slots, const char *tail, size_t length,
                        struct engine_op *op)
{
    op->slot = ENGINE_SLOT_RECORD;
    if (length == 0) {
        return true;
    }
    if (tail[0] != '.') {
        return false;
    }
    if (length == 1) {
        return true;
    }
    op->slot = length - 1 <= TEXT_WORD_BYTES ? engine_slots_find(slots, tail + 1, length - 1) : -1;
    return LIKELY(op->slot >= 0) || slots_odd(slots, tail + 1, length - 1, op);
}
