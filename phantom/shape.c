/* shape.c: what a table is made of, from a configuration. */
#include "phantom/table_private.h"

#define EXCEPTIONS_SHARE  32 /* default: this part of the table's size */
#define SAMPLE_POOL_SHARE 4  /* entries of the sample take at most this part of the pool */

uint64_t phantom_exceptions_pool(uint64_t table_bytes, uint64_t wanted)
{
    uint64_t bytes = wanted ? wanted : table_bytes / EXCEPTIONS_SHARE;
    return bytes < PHANTOM_EXCEPTIONS_BYTES_MIN ? PHANTOM_EXCEPTIONS_BYTES_MIN : bytes;
}

static uint64_t phantom_apart_pool(uint64_t table_bytes)
{
    uint64_t bytes = table_bytes / PHANTOM_APART_SHARE;
    return bytes < DICT_POOL_MIN ? DICT_POOL_MIN : bytes;
}

void phantom_shape_size(struct phantom_shape *shape, uint64_t table_bytes)
{
    shape->table_bytes = table_bytes;
    shape->capacity = (uint64_t)((double)(table_bytes / PHANTOM_LINE_BYTES) * shape->plan.load);
}

void phantom_shape_init(struct phantom_shape *shape, const struct phantom_config *config)
{
    shape->apart_bytes = phantom_apart_bytes(config);
    phantom_filter_plan(config->false_positives, &shape->plan);
    phantom_shape_size(shape, config->row.table_bytes);
    phantom_shape_deletes(shape, config->deletes, config->exceptions_bytes);
}

void phantom_shape_deletes(struct phantom_shape *shape, bool on, uint64_t exceptions_bytes)
{
    shape->exceptions_bytes =
        on ? phantom_exceptions_pool(shape->table_bytes, exceptions_bytes) : 0;
}

uint64_t phantom_shape_bytes(const struct phantom_shape *shape)
{
    return shape->table_bytes + shape->exceptions_bytes + PHANTOM_STRIPES_BYTES;
}

uint64_t phantom_apart_bytes(const struct phantom_config *config)
{
    uint64_t usual = phantom_apart_pool(config->row.table_bytes);
    return config->row.any_ids ? 0 : row_apart_pool(config->row.tables, usual, DICT_POOL_MIN);
}

unsigned phantom_apart_sample(const struct phantom_config *config)
{
    uint64_t fit = phantom_apart_pool(config->row.table_bytes) /
                   (SAMPLE_POOL_SHARE * (DICT_KEY_BYTES + PHANTOM_APART_VALUE_BYTES));
    fit = fit < ROW_SAMPLE_MIN ? ROW_SAMPLE_MIN : fit;
    return fit > ROW_SAMPLE_MAX ? ROW_SAMPLE_MAX : (unsigned)fit;
}
