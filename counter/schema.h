/*
 * schema.h: how the slots of a record lie in its payload, and how a configuration looks at them.
 *
 * A table keeps the schema it was created with. Each slot of b bits stores v + 1, so that 0 is
 * unset; all ones says that the value is in the aux dict. In place: 0 .. 2^b - 3.
 *
 * The configuration may change later: a view holds its slots, in its order, each matched by name
 * and number with one of the table's (physical) or, if the table lacks it, kept in the aux dict
 * alone under a sub-key that the table remembers for it. A slot of the table that no view slot
 * names is hidden, for good: if its name comes again that is a slot of another number.
 *
 * What concerns the configuration's slots alone, whatever the table, is in engine/slots.h.
 *
 * Immutable but for counter_view_make, which runs with the world stopped.
 */
#ifndef ROLLCALL_COUNTER_SCHEMA_H
#define ROLLCALL_COUNTER_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/words.h"
#include "counter/counter.h"

#define SCHEMA_PAYLOAD_WORDS (COUNTER_RECORD_BITS_MAX / 64)
#define SCHEMA_EXTRAS_MAX    24   /* names a table may learn after its creation */
#define SCHEMA_AUX_ONLY      (-1) /* a view slot that is no physical slot */

struct counter_schema {
    struct counter_slot slots[ENGINE_SLOTS_MAX]; /* physical: number j has aux sub-key j */
    unsigned slot_count;
    unsigned offset[ENGINE_SLOTS_MAX];             /* bits, from the payload's first */
    unsigned payload_bytes;                        /* P */
    struct counter_slot extras[SCHEMA_EXTRAS_MAX]; /* sub-key ENGINE_SLOTS_MAX + i */
    unsigned extra_count;
};

struct counter_view_slot {
    int physical; /* or SCHEMA_AUX_ONLY */
    uint8_t sub;  /* of the aux dict */
    /* In a payload: 0 is unset, all ones (the mask) in the aux dict, else value + 1. Aux only:
     * none, so that it loads as its mask and storing it does nothing. */
    struct words_field field;
    struct words_near near; /* the same, to be read quickly; none where it is not in one piece */
    uint64_t short_end;     /* numbers below it that are read so are short and no marks */
    uint64_t aux_from;      /* smallest value kept in the aux dict */
};

struct counter_view {
    struct counter_view_slot slots[ENGINE_SLOTS_MAX]; /* in the configuration's order */
    unsigned slot_count;
    uint32_t aux_only; /* bit a slot: those that are no physical slot */
};

/* Returns whether these are slots of a record. On false `error` says what is wrong. */
bool counter_slots_valid(const struct counter_config *config, char error[COUNTER_ERROR_MAX]);

void counter_schema_init(struct counter_schema *schema, const struct counter_config *config);

/*
 * The view of a configuration on a schema; names the schema lacks are added to its extras. False,
 * with the schema unchanged, if it has no room for them.
 */
bool counter_view_make(struct counter_view *view, struct counter_schema *schema,
                       const struct counter_config *config);

/* Returns whether a slot was added to the schema since its creation (1) or made with it (0); -1:
 * the schema has no such slot. */
int counter_schema_sub(const struct counter_schema *schema, const struct counter_slot *slot);

/* Bit a slot of the view. */
static inline uint32_t counter_view_all(const struct counter_view *view)
{
    return (uint32_t)((1u << view->slot_count) - 1);
}

/* Returns whether its physical slots are those of the configuration, in any order. */
bool counter_schema_is(const struct counter_schema *schema, const struct counter_config *config);

/* Returns all ones of a slot of that many bits: the mark of a value in the aux dict. */
static inline uint64_t counter_slot_in_aux(unsigned bits)
{
    return UINT64_MAX >> (64 - bits);
}

#endif
