/* phantom_config.c: what a configuration says: is it sound, what takes how much memory. */
#include "base/fail.h"
#include "phantom/phantom_private.h"

bool phantom_config_valid(const struct phantom_config *config, char error[PHANTOM_ERROR_MAX])
{
    const char *row = row_config_wrong(&config->row, config->max_id);
    double wrong = config->false_positives;
    uint64_t exceptions = config->exceptions_bytes;
    if (row != NULL) {
        return fail_with(error, PHANTOM_ERROR_MAX, "%s", row);
    }
    if (!(wrong >= PHANTOM_FALSE_POSITIVES_MIN && wrong <= PHANTOM_FALSE_POSITIVES_MAX)) {
        return fail_with(error, PHANTOM_ERROR_MAX, "false-positives is 0.000001 to 0.5");
    }
    if (exceptions != 0 &&
        (exceptions < PHANTOM_EXCEPTIONS_BYTES_MIN || exceptions > ROW_REGION_BYTES_MAX)) {
        return fail_with(error, PHANTOM_ERROR_MAX, "exceptions-memory is 4 KiB to 1 TiB");
    }
    return true;
}

static unsigned all_tables(const struct phantom_config *config)
{
    return config->row.any_ids ? 1 : config->row.tables;
}

void phantom_config_size(const struct phantom_config *config, struct phantom_size *size)
{
    struct phantom_shape shape;
    phantom_shape_init(&shape, config);
    size->spare = row_config_spare(&config->row);
    size->tables = all_tables(config) - size->spare;
    size->bytes = all_tables(config) * phantom_shape_bytes(&shape) + phantom_apart_bytes(config);
    size->members = size->tables * shape.capacity;
    size->bits_per_member = 8.0 * (double)shape.table_bytes / (double)shape.capacity;
}

struct row_config phantom_row_config(const struct phantom_config *config)
{
    struct row_config row = config->row;
    row.late_start = PHANTOM_LATE_START;
    row.sample = phantom_apart_sample(config);
    return row;
}
