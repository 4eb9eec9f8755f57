/* counter_config.c: what a configuration says: is it sound, what takes how much memory. */
#include <stdio.h>

#include "base/dict.h"
#include "counter/counter_private.h"

#define SAMPLE_SHARE 4u /* of the room of the extend dict, for the first table's sample */
#define DENSE_RANGE  1  /* of ids: any that two bytes of remainder hold */

static bool refuse(char error[COUNTER_ERROR_MAX], const char *text)
{
    snprintf(error, COUNTER_ERROR_MAX, "%s", text);
    return false;
}

bool counter_config_valid(const struct counter_config *config, char error[COUNTER_ERROR_MAX])
{
    const char *wrong = row_config_wrong(&config->row, config->max_id);
    if (wrong != NULL) {
        return refuse(error, wrong);
    }
    if (!config->row.any_ids && config->id_spacing > INT64_MAX) {
        return refuse(error, "id-spacing is at most 9223372036854775807");
    }
    return counter_slots_valid(config, error);
}

static uint64_t held_bytes(const struct counter_shape *shape)
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
    return config->row.any_ids ? 0 : apart.extend_bytes + apart.aux_bytes;
}

void counter_config_size(const struct counter_config *config, struct counter_size *size)
{
    struct counter_shape first, later;
    /* Later tables of dense ids; by id-spacing they all are alike. */
    counter_shape_init(&first, config, 0);
    counter_shape_init(&later, config, config->row.any_ids || config->id_spacing ? 0 : DENSE_RANGE);
    unsigned tables = config->row.any_ids ? 1 : config->row.tables;
    size->spare = row_config_spare(&config->row);
    size->tables = tables - size->spare;
    size->records = size->tables * later.capacity;
    uint64_t bytes = size->tables * held_bytes(&later);
    if (!size->spare) { /* the first is never recycled */
        size->records += first.capacity - later.capacity;
        bytes += held_bytes(&first) - held_bytes(&later);
    }
    size->bytes_per_record = (double)bytes / (double)size->records;
    uint64_t larger =
        held_bytes(&first) > held_bytes(&later) ? held_bytes(&first) : held_bytes(&later);
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
