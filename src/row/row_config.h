/*
 * row_config.h: what is configured of a row, whatever its tables are. A space's settings and its
 * engine's configuration embed one.
 *
 * Thread rule: none, the structs are the caller's.
 */
#ifndef ROLLCALL_ROW_ROW_CONFIG_H
#define ROLLCALL_ROW_ROW_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define ROW_TABLES_MAX       1024   /* in memory, of a space, layers included */
#define ROW_LATE_AUTO        (-1.0) /* late_room: follows what earlier tables received */
#define ROW_SAMPLE_MAX       1024   /* creations the first table looks at */
#define ROW_SAMPLE_MIN       16
#define ROW_LATE_ROOM_LIMIT  0.9
#define ROW_REGION_BYTES_MIN (64u << 10)
#define ROW_REGION_BYTES_MAX (1ull << 40)

struct row_config {
    bool any_ids;         /* one table over all ids: nothing else but table_bytes applies */
    bool recycle;         /* a table is recycled when one is needed; else new ids are refused */
    bool dump;            /* instead of refusing: a table is dumped (row/row_cold.h) */
    unsigned dumps_max;   /* dumped tables, at most; 0: any number */
    unsigned tables;      /* 1 to ROW_TABLES_MAX, the spare included */
    uint64_t table_bytes; /* of one region */
    double late_room;     /* share of a capacity kept for late ids, or ROW_LATE_AUTO */
    double late_start;    /* what ROW_LATE_AUTO begins with */
    unsigned sample;      /* ROW_SAMPLE_MIN to ROW_SAMPLE_MAX: as many fit apart in a table */
    bool ids_once;        /* an id counts once: a table takes at least `capacity` ids on end */
};

/*
 * Returns what is wrong and what would be right; NULL: nothing. max_id: with any_ids alone.
 */
const char *row_config_wrong(const struct row_config *config, uint64_t max_id);

/* Returns how many tables one is the spare of: 1 or 0. */
static inline unsigned row_config_spare(const struct row_config *config)
{
    return !config->any_ids && (config->recycle || config->dump);
}

#endif
