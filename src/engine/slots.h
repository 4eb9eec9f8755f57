/*
 * slots.h: the names of a space's slots, and what the tail of a key names of them.
 *
 * Thread rule: pure functions of a struct engine_slots, which changes with the world stopped.
 */
#ifndef ROLLCALL_ENGINE_SLOTS_H
#define ROLLCALL_ENGINE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/text_word.h"
#include "engine/engine.h"

#define ENGINE_SLOTS_PLACE_BITS                                                                    \
    6 /* four times as many places as slots: a few tries spread them                               \
       */

/* In the configuration's order. All zero at first. */
struct engine_slots {
    unsigned count;
    uint32_t all; /* bit a slot */
    char names[ENGINE_SLOTS_MAX][ENGINE_SPACE_NAME_MAX + 1];
    uint8_t lengths[ENGINE_SLOTS_MAX];
    uint64_t heads[ENGINE_SLOTS_MAX];  /* every slot key is compared with one: engine_slots_find */
    uint64_t hashes[ENGINE_SLOTS_MAX]; /* for tokens */
    /* A head times this number, its highest bits: the place of its slot, and of no other's. */
    uint64_t spread;
    uint8_t places[1 << ENGINE_SLOTS_PLACE_BITS];
};

/* At most ENGINE_SLOTS_MAX names, each at most ENGINE_SPACE_NAME_MAX long. */
void engine_slots_add(struct engine_slots *slots, const char *name);

/* engine_slots_find() of a name of more than eight bytes. */
int engine_slots_find_long(const struct engine_slots *slots, const char *name, size_t length);

/* The slot of a name, of any length; -1: none has it. Up to eight bytes of one length that have the
 * same head are the same. */
static inline int engine_slots_find(const struct engine_slots *slots, const char *name,
                                    size_t length)
{
    if (UNLIKELY(length > TEXT_WORD_BYTES)) {
        return engine_slots_find_long(slots, name, length);
    }
    uint64_t head = text_word(name, length);
    unsigned i = slots->places[head * slots->spread >> (64 - ENGINE_SLOTS_PLACE_BITS)];
    return slots->heads[i] == head && slots->lengths[i] == length ? (int)i : -1;
}

/*
 * Finds the slots that a key's tail names: the bytes after the id. "" and "." are the whole record,
 * ".like" a slot, ".like+read" several. Fills the operation's slot, and for several some and order.
 * False: a slot is not there (a bad key), or named twice.
 */
bool engine_slots_parse(const struct engine_slots *slots, const char *tail, size_t length,
                        struct engine_op *op);

#endif
