/* counter_config.c: what a configuration says: is it sound, what takes how much memory. */
#include "base/dict.h"
#include "base/fail.h"
#include "counter/counter_private.h"

#define SAMPLE_SHARE 4u  /* of the room of the extend dict, for the first table's sample */
#define DENSE_RANGE  1   /* of ids: any that two bytes of remainder hold */
#define PARTS_USED   0.9 /* of what several parts hold when full: each is between two sizes */

bool counter_config_valid(const struct counter_config *config, char error[COUNTER_ERROR_MAX])
{
    const char *wrong = row_config_wrong(&config->row, config->max_id);
    if (wrong != NULL) {
        return fail_with(error, COUNTER_ERROR_MAX, "%s", wrong);
    }
    if (!config->row.any_ids && config->id_spacing > INT64_MAX) {
        return fail_with(error, COUNTER_ERROR_MAX, "id-spacing is at most 9223372036854775807");
    }
    return counter_slots_valid(config, error);
}

static uint64_t counter_config_bytes(const struct counter_shape *shape)
{
    return shape->table_bytes + shape->extend_bytes + shape->aux_bytes;
}

uint64_t counter_below_bytes(const struct counter_config *config)
{
    bool wanted = config->role_cache && !config->row.any_ids;
    return wanted && config->below_bytes >= COUNTER_BELOW_BYTES_MIN ? config->below_bytes : 0;
}

static uint64_t apart_bytes(const struct counter_config *config, const struct counter_shape *shape)
{
    struct counter_shape apart = *shape;
    counter_shape_apart(&apart, config);
    return apart.extend_bytes + apart.aux_bytes;
}

/* Sizes parts: as many as what is set aside has room for, and one more while records go to it. */
static void size_of_parts(const struct counter_config *config, struct counter_size *size)
{
    struct counter_shape part;
    counter_shape_init(&part, config, 0);
    uint64_t aside = config->row.table_bytes;
    uint64_t held = counter_config_bytes(&part);
    bool several = aside > part.table_bytes;
    for (uint64_t bytes = part.table_bytes; bytes < aside && part.part_bits > 1; bytes *= 2) {
        counter_shape_part(&part,
                           part.part_bits - 1); /* a part of fewer keys stores less of each */
    }
    *size = (struct counter_size){.tables = 1, .bytes = row_part_aside_bytes(&config->row)};
    size->bytes = several ? size->bytes + held : held > size->bytes ? held : size->bytes;
    double parts = (double)aside / (double)part.table_bytes;
    double used = several ? PARTS_USED : 1;
    size->records = (uint64_t)(parts * used * (double)part.capacity);
    size->bytes_per_record = (double)row_part_with_pools(aside) / (double)size->records;
}

void counter_config_size(const struct counter_config *config, struct counter_size *size)
{
    struct counter_shape first, later;
    if (config->row.any_ids) {
        size_of_parts(config, size);
        return;
    }
    /* Later tables of dense ids; by id-spacing they all are alike. */
    counter_shape_init(&first, config, 0);
    counter_shape_init(&later, config, config->id_spacing ? 0 : DENSE_RANGE);
    unsigned tables = config->row.tables;
    size->spare = row_config_spare(&config->row);
    size->tables = tables - size->spare;
    size->records = size->tables * later.capacity;
    uint64_t bytes = size->tables * counter_config_bytes(&later);
    if (!size->spare) { /* the first is never recycled */
        size->records += first.capacity - later.capacity;
        bytes += counter_config_bytes(&first) - counter_config_bytes(&later);
    }
    size->bytes_per_record = (double)bytes / (double)size->records;
    uint64_t larger = counter_config_bytes(&first) > counter_config_bytes(&later)
                          ? counter_config_bytes(&first)
                          : counter_config_bytes(&later);
    size->bytes = tables * larger + apart_bytes(config, &first) + counter_below_bytes(config);
}

void counter_row_config(const struct counter_config *config, struct row_config *row)
{
    struct counter_shape shape;
    counter_shape_init(&shape, config, 0);
    uint64_t sample = shape.extend_bytes / (SAMPLE_SHARE * (DICT_KEY_BYTES + shape.payload_bytes));
    if (sample < ROW_SAMPLE_MIN) {
        sample = ROW_SAMPLE_MIN;
    }
    if (sample > ROW_SAMPLE_MAX) {
        sample = ROW_SAMPLE_MAX;
    }
    *row = config->row;
    row->ids_once = true;
    row->late_start = COUNTER_LATE_START;
    row->sample = (unsigned)sample;
}
