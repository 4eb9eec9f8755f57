/* row_config.c: checks a configuration. */
#include "row/row_config.h"

#include <stddef.h>

const char *row_config_wrong(const struct row_config *config, uint64_t max_id)
{
    uint64_t bytes = config->table_bytes;
    double late = config->late_room;
    if (bytes < ROW_REGION_BYTES_MIN || bytes > ROW_REGION_BYTES_MAX ||
        (bytes & (bytes - 1)) != 0) {
        return "table-size is a power of two from 64 KiB to 1 TiB";
    }
    if (config->any_ids) {
        return max_id < 1 || max_id > INT64_MAX ? "max-id is 1 to 9223372036854775807" : NULL;
    }
    if (config->tables < 1 || config->tables > ROW_TABLES_MAX) {
        return "tables is 1 to 1024";
    }
    if (config->dump && config->recycle) {
        return "the oldest is recycled or dumped, not both";
    }
    if (config->tables <= row_config_spare(config)) {
        return config->dump ? "tables is 2 to 1024 where the oldest is dumped: one is the spare"
                            : "tables is 2 to 1024 where the oldest is recycled: one is the spare";
    }
    bool share = late >= 0 && late <= ROW_LATE_ROOM_LIMIT;
    return late == ROW_LATE_AUTO || share ? NULL : "late-room is auto or 0 to 0.9";
}
