/*
 * shape.c: what a table is made of: group size, places, remainder and window, from a configuration.
 */
#include "base/check.h"
#include "base/dict.h"
#include "counter/table_private.h"

#define LOCK_WORD_BYTES 4
#define META_WIDE_BYTES 8
#define WIDE_GAIN       0.75 /* wide groups read two lines a hit: only when they save this much */
#define ID_BITS         63
#define REM_BYTES_USUAL 2
#define RANGES_HELD     2 /* of a window: full tables as the last one was */
/* A small table's pages fill less evenly than thousands do: up to 4 % of 64 KiB have spilled. */
#define EXTEND_BYTES_LEAST (2 * DICT_POOL_MIN)
#define SPILLED_SHARE      60 /* 1 % have spilled, and a dict refuses its first key when 3/4 full */

/*
 * Share of the places in use when 1 % of the records have spilled, by places a group, in
 * thousandths: measured by filling tables of 16 MiB, rounded down; tests/unit/counter/test_capacity
 * looks at what has spilled there. A page has four times fewer wide groups, so its records spread
 * less evenly over pages.
 */
static const uint16_t narrow_thousandths[TABLE_PLACES_MAX + 1] = {
    0,   383, 699, 823, 884, 920, 940, 955, 964, 971, 976, 981, 984, 986, 988, 990, 991,
    993, 994, 994, 995, 995, 995, 996, 996, 996, 997, 997, 997, 997, 997, 997, 997,
};
static const uint16_t wide_thousandths[TABLE_PLACES_MAX + 1] = {
    0,   380, 690, 763, 825, 862, 887, 903, 917, 926, 932, 939, 944, 949, 951, 955, 958,
    961, 963, 965, 967, 969, 971, 972, 973, 974, 975, 976, 977, 978, 979, 980, 981,
};

/*
 * The same of parts, with groups of 128 bytes, when 1/2 % have spilled: above it a part grows.
 */
static const uint16_t part_thousandths[TABLE_PLACES_MAX + 1] = {
    0,   312, 632, 755, 832, 865, 893, 910, 919, 934, 939, 944, 946, 953, 956, 958, 959,
    964, 964, 967, 969, 970, 970, 972, 973, 974, 976, 977, 977, 978, 978, 979, 979,
};

static unsigned bits_of(uint64_t n)
{
    return n ? 64 - (unsigned)__builtin_clzll(n) : 0;
}

static unsigned places_of(unsigned group_bytes, unsigned place_bytes)
{
    unsigned places = (group_bytes - LOCK_WORD_BYTES) / place_bytes;
    if (places > TABLE_NARROW_PLACES) {
        places = (group_bytes - META_WIDE_BYTES) / place_bytes;
        places = places < TABLE_NARROW_PLACES ? TABLE_NARROW_PLACES : places;
    }
    return places < TABLE_PLACES_MAX ? places : TABLE_PLACES_MAX;
}

void table_shape_derive(struct counter_shape *shape)
{
    shape->groups = shape->table_bytes / shape->group_bytes;
    shape->group_bits = bits_of(shape->groups) - 1;
    shape->meta_bytes = shape->places > TABLE_NARROW_PLACES ? META_WIDE_BYTES : LOCK_WORD_BYTES;
}

void table_shape_double(struct counter_shape *shape, unsigned times)
{
    CHECK(times <= table_shape_doubles_max(shape));
    shape->table_bytes <<= times;
    shape->capacity <<= times;
    table_shape_derive(shape);
}

/* A bit of the remainder at least stays, and a file has no more groups than a table may have. */
unsigned table_shape_doubles_max(const struct counter_shape *shape)
{
    unsigned bits = shape->window_bits - shape->group_bits - 1;
    unsigned larger = bits_of(ROW_REGION_BYTES_MAX / shape->table_bytes) - 1;
    return bits < larger ? bits : larger;
}

/* Sets everything that follows from table bytes, payload, remainder and group size. */
static void set_groups(struct counter_shape *shape, unsigned group_bytes, unsigned rem_bytes)
{
    shape->group_bytes = group_bytes;
    shape->rem_bytes = rem_bytes;
    shape->places = places_of(group_bytes, shape->payload_bytes + rem_bytes);
    table_shape_derive(shape);
    const uint16_t *load = group_bytes == TABLE_WIDE_BYTES ? wide_thousandths : narrow_thousandths;
    shape->capacity = shape->groups * shape->places * load[shape->places] / 1000;
}

/* The remainder a window of that many bits needs. */
static unsigned rem_bytes_for(const struct counter_shape *shape, unsigned window_bits)
{
    unsigned bits = window_bits > shape->group_bits ? window_bits - shape->group_bits : 1;
    return (bits + 7) / 8;
}

/*
 * Two bytes, or as many as it takes for the window to hold so many ids, and then as many as cost no
 * place. A narrower window would send most ids to the dict. set_groups() has been called.
 */
static void set_fewest(struct counter_shape *shape, unsigned __int128 window)
{
    unsigned group_bytes = shape->group_bytes;
    unsigned rem_bytes = REM_BYTES_USUAL;
    while (shape->group_bits + 8 * rem_bytes < ID_BITS &&
           window > (unsigned __int128)1 << (shape->group_bits + 8 * rem_bytes)) {
        rem_bytes++;
    }
    set_groups(shape, group_bytes, rem_bytes);
    while (shape->group_bits + 8 * rem_bytes < ID_BITS &&
           places_of(group_bytes, shape->payload_bytes + rem_bytes + 1) == shape->places) {
        rem_bytes++;
    }
    set_groups(shape, group_bytes, rem_bytes);
    shape->window_bits = shape->group_bits + 8 * rem_bytes;
    if (shape->window_bits > ID_BITS) {
        shape->window_bits = ID_BITS;
    }
}

static void set_window(struct counter_shape *shape, unsigned group_bytes, unsigned window_bits)
{
    set_groups(shape, group_bytes, 1); /* for the number of groups */
    unsigned least = shape->group_bits + 1;
    shape->window_bits = window_bits > least ? window_bits : least;
    set_groups(shape, group_bytes, rem_bytes_for(shape, shape->window_bits));
}

static void set_size(struct counter_shape *shape, const struct counter_config *config,
                     uint64_t range, unsigned group_bytes)
{
    if (!range && !config->id_spacing) {
        set_window(shape, group_bytes, ID_BITS);
        return;
    }
    set_groups(shape, group_bytes, REM_BYTES_USUAL);
    /* By spacing: a full table fits into what is above the first id (counter_table_settle). */
    unsigned __int128 spaced =
        (unsigned __int128)shape->capacity * config->id_spacing / (WINDOW_BELOW - 1) * WINDOW_BELOW;
    set_fewest(shape, range ? (unsigned __int128)RANGES_HELD * range : spaced);
}

static uint64_t pool_at_least(uint64_t least, uint64_t bytes)
{
    return bytes < least ? least : bytes;
}

/* Pools are powers of two. One of small records needs twice its share to hold what spills. */
static uint64_t extend_share(const struct counter_shape *shape)
{
    uint64_t bytes = shape->table_bytes / TABLE_POOL_SHARE;
    uint64_t spilled = shape->capacity / SPILLED_SHARE * (shape->payload_bytes + DICT_KEY_BYTES);
    return bytes < spilled ? 2 * bytes : bytes;
}

static void set_pools(struct counter_shape *shape, const struct counter_config *config)
{
    uint64_t extend = config->extend_bytes ? pool_at_least(DICT_POOL_MIN, config->extend_bytes)
                                           : pool_at_least(EXTEND_BYTES_LEAST, extend_share(shape));
    uint64_t aux = config->aux_bytes ? config->aux_bytes : shape->table_bytes / TABLE_POOL_SHARE;
    shape->extend_bytes = extend;
    shape->aux_bytes = pool_at_least(DICT_POOL_MIN, aux);
}

/* ---- parts ---- */

/* Pools of a part: 1/2 % of its records spill, and few values are large. */
#define PART_EXTEND_SHARE 64
#define PART_AUX_SHARE    128

static uint64_t power_from(uint64_t bytes)
{
    return bytes <= 1 ? 1 : 1ull << bits_of(bytes - 1);
}

static void set_part(struct counter_shape *shape, unsigned group_bytes)
{
    shape->group_bytes = group_bytes;
    uint64_t groups = shape->table_bytes / group_bytes;
    unsigned __int128 keys = (unsigned __int128)1 << shape->part_bits;
    uint64_t home_keys = (uint64_t)((keys + groups - 1) / groups);
    shape->rem_bytes = home_keys <= 1 ? 1 : (bits_of(home_keys - 1) + 7) / 8;
    shape->places = places_of(group_bytes, shape->payload_bytes + shape->rem_bytes);
    table_shape_derive(shape);
    const uint16_t *load = group_bytes == TABLE_WIDE_BYTES ? wide_thousandths : part_thousandths;
    shape->capacity = shape->groups * shape->places * load[shape->places] / 1000;
}

void counter_shape_part(struct counter_shape *shape, unsigned part_bits)
{
    shape->part_bits = part_bits;
    struct counter_shape wide = *shape;
    set_part(shape, TABLE_PART_BYTES);
    set_part(&wide, TABLE_WIDE_BYTES);
    if ((double)shape->capacity < WIDE_GAIN * (double)wide.capacity) {
        *shape = wide;
    }
    shape->extend_bytes =
        pool_at_least(EXTEND_BYTES_LEAST, power_from(shape->table_bytes / PART_EXTEND_SHARE));
    shape->aux_bytes =
        pool_at_least(DICT_POOL_MIN, power_from(shape->table_bytes / PART_AUX_SHARE));
    CHECK(shape->places >= 1 && shape->rem_bytes <= 8 && shape->capacity >= 1);
}

/* The first part of a space of any ids. */
static void set_first_part(struct counter_shape *shape, const struct counter_config *config,
                           unsigned payload_bytes)
{
    *shape = (struct counter_shape){.table_bytes = row_part_first_bytes(&config->row),
                                    .payload_bytes = payload_bytes,
                                    .window_bits = bits_of(config->max_id)};
    /* A home's keys are told apart by a bit at least, as in every table. */
    unsigned least = bits_of(shape->table_bytes / TABLE_PART_BYTES) + 1;
    shape->window_bits = shape->window_bits > least ? shape->window_bits : least;
    counter_shape_part(shape, shape->window_bits);
    if (config->extend_bytes) {
        shape->extend_bytes = pool_at_least(DICT_POOL_MIN, config->extend_bytes);
    }
    if (config->aux_bytes) {
        shape->aux_bytes = pool_at_least(DICT_POOL_MIN, config->aux_bytes);
    }
}

void counter_shape_init(struct counter_shape *shape, const struct counter_config *config,
                        uint64_t range)
{
    struct counter_schema schema;
    counter_schema_init(&schema, config);
    if (config->row.any_ids) {
        set_first_part(shape, config, schema.payload_bytes);
        return;
    }
    struct counter_shape narrow = {.table_bytes = config->row.table_bytes,
                                   .payload_bytes = schema.payload_bytes};
    struct counter_shape wide = narrow;
    set_size(&wide, config, range, TABLE_WIDE_BYTES);
    bool fits = schema.payload_bytes + 8 + LOCK_WORD_BYTES <= TABLE_GROUP_BYTES;
    if (fits) {
        set_size(&narrow, config, range, TABLE_GROUP_BYTES);
    }
    /* Both have the same bytes: the capacities compare the bytes a record. */
    bool choose_wide = !fits || (double)narrow.capacity < WIDE_GAIN * (double)wide.capacity;
    *shape = choose_wide ? wide : narrow;
    set_pools(shape, config);
    CHECK(shape->places >= 1 && shape->rem_bytes <= 8);
}

void counter_shape_apart(struct counter_shape *shape, const struct counter_config *config)
{
    shape->extend_bytes =
        row_apart_pool(config->row.tables, shape->extend_bytes, EXTEND_BYTES_LEAST);
    shape->aux_bytes = row_apart_pool(config->row.tables, shape->aux_bytes, DICT_POOL_MIN);
}
