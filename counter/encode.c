#include "counter/encode.h"

#include <string.h>

#include "base/check.h"
#include "counter/schema.h"

static void encode_bytes(struct encoder *to, const void *bytes, size_t n)
{
    CHECK((size_t)(to->end - to->at) >= n);
    memcpy(to->at, bytes, n);
    to->at += n;
}

void encode_u8(struct encoder *to, unsigned value)
{
    CHECK(value <= UINT8_MAX);
    unsigned char byte = (unsigned char)value;
    encode_bytes(to, &byte, 1);
}

void encode_u64(struct encoder *to, uint64_t value)
{
    encode_bytes(to, &value, sizeof(value));
}

/* 1 to ENGINE_SPACE_NAME_MAX characters, after their number. */
static void encode_name(struct encoder *to, const char *name)
{
    size_t length = strlen(name);
    CHECK(length >= 1 && length <= ENGINE_SPACE_NAME_MAX);
    encode_u8(to, (unsigned)length);
    encode_bytes(to, name, length);
}

void encode_slot(struct encoder *to, const struct counter_slot *slot)
{
    CHECK(slot->number <= COUNTER_SLOT_NUMBER_MAX);
    encode_u8(to, slot->bits);
    encode_u8(to, slot->number & UINT8_MAX);
    encode_u8(to, slot->number >> 8);
    encode_name(to, slot->name);
}

void encode_slots(struct encoder *to, const struct counter_slot *slots, size_t count)
{
    encode_u8(to, (unsigned)count);
    for (size_t i = 0; i < count; i++) {
        encode_slot(to, &slots[i]);
    }
}

/* True: there were n bytes, and they were taken. */
static bool decode_bytes(struct decoder *from, void *bytes, size_t n)
{
    memset(bytes, 0, n);
    from->bad = from->bad || (size_t)(from->end - from->at) < n;
    if (from->bad) {
        return false;
    }
    memcpy(bytes, from->at, n);
    from->at += n;
    return true;
}

unsigned decode_u8(struct decoder *from)
{
    unsigned char byte;
    decode_bytes(from, &byte, 1);
    return byte;
}

uint64_t decode_u64(struct decoder *from)
{
    uint64_t value;
    decode_bytes(from, &value, sizeof(value));
    return value;
}

static void decode_name(struct decoder *from, char name[ENGINE_SPACE_NAME_MAX + 1])
{
    size_t length = decode_u8(from);
    memset(name, 0, ENGINE_SPACE_NAME_MAX + 1);
    if (length < 1 || length > ENGINE_SPACE_NAME_MAX) {
        from->bad = true;
        return;
    }
    decode_bytes(from, name, length);
    from->bad = from->bad || strlen(name) != length;
}

void decode_slot(struct decoder *from, struct counter_slot *slot)
{
    slot->bits = decode_u8(from);
    slot->number = decode_u8(from);
    slot->number |= decode_u8(from) << 8;
    decode_name(from, slot->name);
}

void decode_slots(struct decoder *from, struct counter_config *config)
{
    char error[COUNTER_ERROR_MAX];
    config->slot_count = decode_u8(from);
    memset(config->slots, 0, sizeof(config->slots));
    from->bad = from->bad || config->slot_count > ENGINE_SLOTS_MAX;
    for (size_t i = 0; i < config->slot_count && !from->bad; i++) {
        decode_slot(from, &config->slots[i]);
    }
    from->bad = from->bad || !counter_slots_valid(config, error);
}

bool decode_ended(const struct decoder *from)
{
    return !from->bad && from->at == from->end;
}
