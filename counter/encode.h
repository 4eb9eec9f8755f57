/*
 * encode.h: numbers and slots as the bytes that a file or a journal keeps of a counter space.
 *
 * An encoder's room is the caller's to suffice (CHECKed). A decoder takes foreign bytes: once they
 * are too few, or say what cannot be, it is `bad`, gives zeroes and stays so. Numbers are
 * little-endian. Thread rule: none, the structs are the caller's.
 */
#ifndef ROLLCALL_COUNTER_ENCODE_H
#define ROLLCALL_COUNTER_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counter/counter.h"

#define ENCODE_NAME_BYTES_MAX  (1 + ENGINE_SPACE_NAME_MAX)
#define ENCODE_SLOT_BYTES_MAX  (1 + 2 + ENCODE_NAME_BYTES_MAX)
#define ENCODE_SLOTS_BYTES_MAX (1 + ENGINE_SLOTS_MAX * ENCODE_SLOT_BYTES_MAX)

struct encoder {
    unsigned char *at, *end;
};

struct decoder {
    const unsigned char *at, *end;
    bool bad;
};

static inline struct encoder encode_to(void *bytes, size_t room)
{
    return (struct encoder){bytes, (unsigned char *)bytes + room};
}

static inline struct decoder decode_from(const void *bytes, size_t length)
{
    return (struct decoder){bytes, (const unsigned char *)bytes + length, false};
}

void encode_u8(struct encoder *to, unsigned value); /* CHECKs that it fits */
void encode_u64(struct encoder *to, uint64_t value);
/* Its bits, its number (2 bytes), its name. */
void encode_slot(struct encoder *to, const struct counter_slot *slot);
/* How many, then each. */
void encode_slots(struct encoder *to, const struct counter_slot *slots, size_t count);

unsigned decode_u8(struct decoder *from);
uint64_t decode_u64(struct decoder *from);
void decode_slot(struct decoder *from, struct counter_slot *slot);
/* Fills slots and slot_count alone, if they are those of a configuration; else it is bad. */
void decode_slots(struct decoder *from, struct counter_config *config);
/* Nothing was bad and nothing is left. */
bool decode_ended(const struct decoder *from);

#endif
