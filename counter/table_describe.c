/*
 * table_describe.c: all that a table is, but its records, as bytes, and back.
 *
 *     offset  size  meaning
 *     0       8     DESCRIPTION_MAGIC and, in the low byte, the version of this format
 *     8       8     origin of the window; 2^63: unsettled
 *     16      8     secret of the marks
 *     24      24    the permutation's three odd numbers
 *     48      8     bytes of the groups
 *     56      8     capacity
 *     64      16    bytes of the extend and of the aux dict, as they were made at first
 *     80      4     group bytes / 64, places, remainder bytes, window bits: a byte each
 *     84            slots: how many; of each bits, number (2), length of name, name
 *                   extras: how many; the same of each, bits 0
 *                   version 3 alone: b of a part (table_part.c), a byte
 *
 * All else follows from these. Nothing comes after them.
 */
#include <stdio.h>
#include <string.h>

#include "counter/encode.h"
#include "counter/table_private.h"
#include "row/row_log.h"

#define DESCRIPTION_MAGIC   0x7266746e756f6300u /* "counter" and the version */
#define DESCRIPTION_VERSION 2u
#define DESCRIPTION_PART    3u /* the version of a part's */
#define FIXED_BYTES         84u

_Static_assert(FIXED_BYTES + ENCODE_SLOTS_BYTES_MAX + 2 +
                       SCHEMA_EXTRAS_MAX * ENCODE_SLOT_BYTES_MAX <=
                   ROW_DESCRIPTION_MAX,
               "the longest description has its place");

static void encode_shape(struct encoder *to, const struct counter_shape *shape)
{
    encode_u64(to, shape->table_bytes);
    encode_u64(to, shape->capacity);
    encode_u64(to, shape->extend_bytes);
    encode_u64(to, shape->aux_bytes);
    encode_u8(to, shape->group_bytes / TABLE_GROUP_BYTES);
    encode_u8(to, shape->places);
    encode_u8(to, shape->rem_bytes);
    encode_u8(to, shape->window_bits);
}

static size_t describe_as(const struct counter_table *t, const struct counter_shape *shape,
                          unsigned char *bytes)
{
    CHECK(t->magic == TABLE_MAGIC);
    struct encoder to = encode_to(bytes, ROW_DESCRIPTION_MAX);
    bool part = t->shape.part_bits != 0;
    encode_u64(&to, DESCRIPTION_MAGIC | (part ? DESCRIPTION_PART : DESCRIPTION_VERSION));
    encode_u64(&to, t->origin);
    encode_u64(&to, t->secret);
    for (unsigned i = 0; i < PERMUTE_ROUNDS; i++) {
        encode_u64(&to, t->permute.odd[i]);
    }
    encode_shape(&to, shape);
    encode_slots(&to, t->schema.slots, t->schema.slot_count);
    encode_u8(&to, t->schema.extra_count);
    for (unsigned i = 0; i < t->schema.extra_count; i++) {
        encode_slot(&to, &t->schema.extras[i]);
    }
    if (part) {
        encode_u8(&to, t->shape.part_bits);
    }
    return (size_t)(to.at - bytes);
}

size_t counter_table_describe(const struct counter_table *t, unsigned char *bytes,
                              unsigned *doubles)
{
    struct counter_shape shape = t->shape;
    if (!doubles) {
        return describe_as(t, &shape, bytes);
    }
    CHECK(t->older);
    *doubles = t->doubles;
    table_shape_double(&shape, t->doubles);
    return describe_as(t, &shape, bytes);
}

static void decode_shape(struct decoder *from, struct counter_shape *shape)
{
    memset(shape, 0, sizeof(*shape));
    shape->table_bytes = decode_u64(from);
    shape->capacity = decode_u64(from);
    shape->extend_bytes = decode_u64(from);
    shape->aux_bytes = decode_u64(from);
    shape->group_bytes = decode_u8(from) * TABLE_GROUP_BYTES;
    shape->places = decode_u8(from);
    shape->rem_bytes = decode_u8(from);
    shape->window_bits = decode_u8(from);
}

static bool is_pool(uint64_t bytes)
{
    return bytes >= DICT_POOL_MIN && bytes <= ROW_REGION_BYTES_MAX;
}

/* Returns whether the remainders of a part tell the keys of one home apart. */
static bool part_tells(const struct counter_shape *shape)
{
    unsigned __int128 keys = (unsigned __int128)1 << shape->part_bits;
    return keys <= (unsigned __int128)shape->groups << (8 * (shape->rem_bytes & 15));
}

/* Returns whether this could be the description of a table. Sets what follows from it. */
static bool shape_valid(struct counter_shape *shape)
{
    uint64_t bytes = shape->table_bytes;
    bool part = shape->part_bits != 0;
    bool sized = part ? bytes >= ROW_PART_BYTES_MIN && bytes <= ROW_PART_BYTES_MAX &&
                            bytes % TABLE_PAGE_BYTES == 0 && shape->part_bits <= shape->window_bits
                      : bytes >= ROW_REGION_BYTES_MIN && bytes <= ROW_REGION_BYTES_MAX &&
                            (bytes & (bytes - 1)) == 0;
    bool grouped = shape->group_bytes == (part ? TABLE_PART_BYTES : TABLE_GROUP_BYTES) ||
                   shape->group_bytes == TABLE_WIDE_BYTES;
    if (!sized || !grouped || shape->places < 1 || shape->places > TABLE_PLACES_MAX) {
        return false;
    }
    table_shape_derive(shape);
    unsigned place_bytes = shape->payload_bytes + shape->rem_bytes;
    unsigned window = shape->window_bits;
    bool told =
        part ? part_tells(shape)
             : window > shape->group_bits && window - shape->group_bits <= 8 * shape->rem_bytes;
    bool held = window >= 1 && window <= TABLE_ID_BITS && told && shape->rem_bytes >= 1 &&
                shape->rem_bytes <= 8;
    return held && shape->places * place_bytes + shape->meta_bytes <= shape->group_bytes &&
           shape->capacity >= 1 && shape->capacity <= shape->groups * shape->places &&
           is_pool(shape->extend_bytes) && is_pool(shape->aux_bytes);
}

static void decode_schema(struct decoder *from, struct counter_schema *schema)
{
    struct counter_config config;
    decode_slots(from, &config);
    unsigned extras = decode_u8(from);
    from->bad = from->bad || extras > SCHEMA_EXTRAS_MAX;
    if (from->bad) {
        return;
    }
    counter_schema_init(schema, &config);
    for (; schema->extra_count < extras && !from->bad; schema->extra_count++) {
        decode_slot(from, &schema->extras[schema->extra_count]);
    }
}

bool table_description_read(struct table_description *is, const void *bytes, size_t length)
{
    struct decoder from = decode_from(bytes, length);
    uint64_t magic = decode_u64(&from);
    bool part = magic == (DESCRIPTION_MAGIC | DESCRIPTION_PART);
    if (!part && magic != (DESCRIPTION_MAGIC | DESCRIPTION_VERSION)) {
        return false;
    }
    is->origin = decode_u64(&from);
    is->secret = decode_u64(&from);
    bool odd = true;
    for (unsigned i = 0; i < PERMUTE_ROUNDS; i++) {
        is->odd[i] = decode_u64(&from);
        odd = odd && (is->odd[i] & 1);
    }
    decode_shape(&from, &is->shape);
    decode_schema(&from, &is->schema);
    is->shape.part_bits = part ? decode_u8(&from) : 0;
    if ((part && (is->shape.part_bits == 0 || is->origin != 0)) || !decode_ended(&from) || !odd ||
        is->origin > TABLE_NO_WINDOW) {
        return false;
    }
    is->shape.payload_bytes = is->schema.payload_bytes;
    return shape_valid(&is->shape);
}

uint64_t counter_table_described_bytes(const void *description, size_t length)
{
    struct table_description is;
    return table_description_read(&is, description, length) ? is.shape.table_bytes : 0;
}

bool counter_table_blank_page(const void *description, size_t length,
                              unsigned char page[TABLE_PAGE_BYTES])
{
    static const uint32_t word = GROUP_SPILLED;
    struct table_description is;
    if (!table_description_read(&is, description, length)) {
        return false;
    }
    memset(page, 0, TABLE_PAGE_BYTES);
    for (size_t end = is.shape.group_bytes; end <= TABLE_PAGE_BYTES; end += is.shape.group_bytes) {
        memcpy(page + end - sizeof(word), &word, sizeof(word)); /* where group_lock() finds it */
    }
    return true;
}

/* ---- for a reader of files ---- */

#define FIELD_NAME_MAX (ENGINE_SPACE_NAME_MAX + 16)

static void tell_schema(const struct counter_schema *schema, row_state_field *field, void *context)
{
    char name[FIELD_NAME_MAX];
    for (unsigned i = 0; i < schema->slot_count; i++) {
        snprintf(name, sizeof(name), "slot %s", schema->slots[i].name);
        field(context, name, schema->slots[i].bits);
    }
    for (unsigned i = 0; i < schema->extra_count; i++) { /* they came later, and lie in aux alone */
        snprintf(name, sizeof(name), "slot %s", schema->extras[i].name);
        field(context, name, 0);
    }
}

bool counter_table_explain(const void *description, size_t length, row_state_field *field,
                           void *context)
{
    struct table_description is;
    if (!table_description_read(&is, description, length)) {
        return false;
    }
    field(context, "origin", is.origin);
    field(context, "table_bytes", is.shape.table_bytes);
    field(context, "extend_bytes", is.shape.extend_bytes);
    field(context, "aux_bytes", is.shape.aux_bytes);
    field(context, "group_bytes", is.shape.group_bytes);
    field(context, "places", is.shape.places);
    field(context, "remainder_bytes", is.shape.rem_bytes);
    field(context, "window_bits", is.shape.window_bits);
    if (is.shape.part_bits != 0) {
        field(context, "part_bits", is.shape.part_bits);
    }
    tell_schema(&is.schema, field, context);
    return true;
}

static void tell_record(const struct counter_schema *schema, const uint64_t *payload,
                        row_state_field *field, void *context)
{
    char name[FIELD_NAME_MAX];
    for (unsigned i = 0; i < schema->slot_count; i++) {
        unsigned bits = schema->slots[i].bits;
        uint64_t raw = bits_get(payload, schema->offset[i], bits);
        bool aux = raw == counter_slot_in_aux(bits);
        snprintf(name, sizeof(name), "%s%s", schema->slots[i].name, aux ? " in aux" : "");
        if (raw != 0) {
            field(context, name, raw - 1);
        }
    }
}

/* NULL: no slot has this sub-key. */
static const char *name_of_sub(const struct counter_schema *schema, uint8_t sub)
{
    if (sub < schema->slot_count) {
        return schema->slots[sub].name;
    }
    unsigned extra = sub - ENGINE_SLOTS_MAX;
    return sub >= ENGINE_SLOTS_MAX && extra < schema->extra_count ? schema->extras[extra].name
                                                                  : NULL;
}

bool counter_table_explain_entry(const void *description, size_t length, unsigned section,
                                 uint8_t sub, const void *value, size_t value_bytes,
                                 row_state_field *field, void *context)
{
    struct table_description is;
    uint64_t words[SCHEMA_PAYLOAD_WORDS] = {0};
    if (!table_description_read(&is, description, length) || value_bytes > sizeof(words)) {
        return false;
    }
    memcpy(words, value, value_bytes);
    if (section == COUNTER_TABLE_EXTEND && value_bytes == is.shape.payload_bytes) {
        tell_record(&is.schema, words, field, context);
        return true;
    }
    const char *name = name_of_sub(&is.schema, sub);
    if (section != COUNTER_TABLE_AUX || value_bytes != sizeof(words[0]) || !name) {
        return false;
    }
    field(context, name, words[0]);
    return true;
}
