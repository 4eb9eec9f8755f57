#include "counter/schema.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/num.h"

bool counter_slots_valid(const struct counter_config *config, char error[COUNTER_ERROR_MAX])
{
    unsigned bits = 0;
    if (config->slot_count < 1 || config->slot_count > ENGINE_SLOTS_MAX) {
        return fail_with(error, COUNTER_ERROR_MAX, "a counter space needs 1 to 16 slots");
    }
    for (size_t i = 0; i < config->slot_count; i++) {
        const struct counter_slot *slot = &config->slots[i];
        if (slot->bits < COUNTER_SLOT_BITS_MIN || slot->bits > COUNTER_SLOT_BITS_MAX) {
            return fail_with(error, COUNTER_ERROR_MAX,
                             "slot %s has %u bits; a slot has %d to %d bits", slot->name,
                             slot->bits, COUNTER_SLOT_BITS_MIN, COUNTER_SLOT_BITS_MAX);
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(slot->name, config->slots[j].name) == 0) {
                return fail_with(error, COUNTER_ERROR_MAX, "slot %s is given twice", slot->name);
            }
        }
        bits += slot->bits;
    }
    if (bits > COUNTER_RECORD_BITS_MAX) {
        snprintf(error, COUNTER_ERROR_MAX,
                 "the slots have %u bits together; a record has at most %d", bits,
                 COUNTER_RECORD_BITS_MAX);
        return false;
    }
    return true;
}

void counter_schema_init(struct counter_schema *schema, const struct counter_config *config)
{
    CHECK(config->slot_count >= 1 && config->slot_count <= ENGINE_SLOTS_MAX);
    memset(schema, 0, sizeof(*schema));
    unsigned bits = 0;
    for (size_t i = 0; i < config->slot_count; i++) {
        schema->slots[i] = config->slots[i];
        schema->offset[i] = bits;
        bits += config->slots[i].bits;
    }
    CHECK(bits <= COUNTER_RECORD_BITS_MAX);
    schema->slot_count = (unsigned)config->slot_count;
    schema->payload_bytes = (bits + 7) / 8;
}

static int slot_among(const struct counter_slot *slots, unsigned count,
                      const struct counter_slot *wanted)
{
    for (unsigned i = 0; i < count; i++) {
        if (slots[i].number == wanted->number && strcmp(slots[i].name, wanted->name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int physical_slot(const struct counter_schema *schema, const struct counter_slot *wanted)
{
    int found = slot_among(schema->slots, schema->slot_count, wanted);
    return found >= 0 ? found : SCHEMA_AUX_ONLY;
}

/* Its place among the extras, added if new; -1 when there is no room. */
static int extra_slot(struct counter_schema *schema, const struct counter_slot *wanted)
{
    int found = slot_among(schema->extras, schema->extra_count, wanted);
    if (found >= 0 || schema->extra_count == SCHEMA_EXTRAS_MAX) {
        return found;
    }
    schema->extras[schema->extra_count] = *wanted;
    schema->extras[schema->extra_count].bits = 0;
    return (int)schema->extra_count++;
}

int counter_schema_sub(const struct counter_schema *schema, const struct counter_slot *slot)
{
    int physical = slot_among(schema->slots, schema->slot_count, slot);
    int extra = slot_among(schema->extras, schema->extra_count, slot);
    return physical >= 0 ? physical : extra >= 0 ? ENGINE_SLOTS_MAX + extra : -1;
}

static bool view_slot(struct counter_view_slot *slot, struct counter_schema *schema,
                      const struct counter_slot *wanted)
{
    slot->physical = physical_slot(schema, wanted);
    if (slot->physical != SCHEMA_AUX_ONLY) {
        slot->sub = (uint8_t)slot->physical;
        slot->field = field_of(schema->offset[slot->physical], schema->slots[slot->physical].bits);
        slot->near = near_of(&slot->field, schema->payload_bytes);
        slot->aux_from = slot->field.mask - 1;
        if (slot->near.mask != 0) {
            slot->short_end = slot->aux_from < NUM_SHORT ? slot->aux_from : NUM_SHORT;
        }
        return true;
    }
    int extra = extra_slot(schema, wanted);
    slot->sub = (uint8_t)(ENGINE_SLOTS_MAX + extra);
    return extra >= 0;
}

bool counter_view_make(struct counter_view *view, struct counter_schema *schema,
                       const struct counter_config *config)
{
    struct counter_schema learned = *schema;
    memset(view, 0, sizeof(*view));
    view->slot_count = (unsigned)config->slot_count;
    for (unsigned i = 0; i < view->slot_count; i++) {
        if (!view_slot(&view->slots[i], &learned, &config->slots[i])) {
            return false;
        }
        if (view->slots[i].physical == SCHEMA_AUX_ONLY) {
            view->aux_only |= 1u << i;
        }
    }
    *schema = learned;
    return true;
}

bool counter_schema_is(const struct counter_schema *schema, const struct counter_config *config)
{
    bool same = schema->slot_count == config->slot_count;
    for (unsigned i = 0; same && i < schema->slot_count; i++) {
        int slot = physical_slot(schema, &config->slots[i]);
        same = slot != SCHEMA_AUX_ONLY && schema->slots[slot].bits == config->slots[i].bits;
    }
    return same;
}
