/*
 * table_record.c: a record as a whole, out of its table: payload and all values beside.
 */
#include <string.h>

#include "counter/table_private.h"

bool table_record_is_set(const struct table_record *record)
{
    uint64_t any = record->subs;
    for (unsigned i = 0; i < SCHEMA_PAYLOAD_WORDS; i++) {
        any |= record->payload[i];
    }
    return any != 0;
}

uint64_t table_subs_extra(const struct counter_schema *schema)
{
    return ((1ull << schema->extra_count) - 1) << ENGINE_SLOTS_MAX;
}

uint64_t table_subs_all(const struct counter_schema *schema)
{
    return ((1ull << schema->slot_count) - 1) | table_subs_extra(schema);
}

uint64_t table_subs_of(const struct counter_view *view, uint32_t slots)
{
    uint64_t subs = 0;
    for (; slots; slots &= slots - 1) {
        subs |= 1ull << view->slots[__builtin_ctz(slots)].sub;
    }
    return subs;
}

uint64_t table_subs_marked(const struct counter_schema *schema, const uint64_t *payload,
                           uint64_t subs)
{
    uint64_t marked = subs & table_subs_extra(schema);
    for (unsigned i = 0; i < schema->slot_count; i++) {
        unsigned bits = schema->slots[i].bits;
        bool in_aux = bits_get(payload, schema->offset[i], bits) == counter_slot_in_aux(bits);
        marked |= subs & (uint64_t)in_aux << i;
    }
    return marked;
}

void table_record_tidy(const struct counter_schema *schema, struct table_record *record,
                       uint64_t subs)
{
    uint64_t lacking = table_subs_marked(schema, record->payload, subs) & ~record->subs;
    for (unsigned i = 0; i < schema->slot_count; i++) {
        if (lacking >> i & 1) {
            bits_set(record->payload, schema->offset[i], schema->slots[i].bits, 0);
        }
    }
}

void table_record_decode(const struct counter_view *view, const struct table_record *record,
                         uint32_t slots, struct counter_values *values)
{
    uint32_t in_aux = table_decode(view, (struct table_packed){record->payload, 0},
                                   counter_view_all(view), values);
    for (uint32_t left = in_aux & (slots | view->aux_only); left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        unsigned sub = view->slots[i].sub;
        bool there = record->subs >> sub & 1;
        values->set = (values->set & ~(1u << i)) | (uint32_t)there << i;
        values->value[i] = record->aux[sub];
    }
}

static void apply_slot(const struct counter_view_slot *slot, struct table_record *record, bool set,
                       uint64_t value)
{
    bool beside = set && value >= slot->aux_from;
    uint64_t bit = 1ull << slot->sub;
    record->subs = beside ? record->subs | bit : record->subs & ~bit;
    record->aux[slot->sub] = value;
    uint64_t raw = beside ? slot->field.mask : value + 1;
    field_store(record->payload, 0, &slot->field, set ? raw : 0);
}

void table_record_apply(const struct counter_view *view, struct table_record *record,
                        uint32_t named, const struct counter_values *values)
{
    for (; named; named &= named - 1) {
        unsigned i = (unsigned)__builtin_ctz(named);
        bool set = values->set >> i & 1;
        apply_slot(&view->slots[i], record, set, set ? values->value[i] : 0);
    }
}

void table_record_read_aux(struct table_record *record, const struct dict *aux, uint64_t id,
                           uint64_t subs)
{
    for (; subs && dict_count(aux) > 0; subs &= subs - 1) { /* mostly there is none at all */
        unsigned sub = (unsigned)__builtin_ctzll(subs);
        if (dict_get(aux, id, (uint8_t)sub, &record->aux[sub])) {
            record->subs |= 1ull << sub;
        }
    }
}

void table_record_read(const struct counter_table *t, uint64_t id, const uint64_t *payload,
                       struct table_record *record)
{
    memset(record, 0, sizeof(*record));
    memcpy(record->payload, payload, (t->shape.payload_bytes + 7) / 8 * sizeof(*payload));
    uint64_t subs = table_subs_marked(&t->schema, payload, table_subs_all(&t->schema));
    table_record_read_aux(record, t->aux, id, subs);
}
