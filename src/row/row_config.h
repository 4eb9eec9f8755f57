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

#define ROW_TABLES_MAX       1024                 /* in memory, of a space, layers included */
#define ROW_REGIONS_MAX      (ROW_TABLES_MAX + 1) /* after flush_all one more, for a moment */
#define ROW_ROUTES_MAX       32768                /* of a space, dumped ones included, layers not */
#define ROW_DUMPS_MAX        (ROW_ROUTES_MAX - ROW_TABLES_MAX) /* beside all in memory */
#define ROW_LATE_AUTO        (-1.0) /* late_room: follows what earlier tables received */
#define ROW_SAMPLE_MAX       1024   /* creations the first table looks at */
#define ROW_SAMPLE_MIN       16
#define ROW_LATE_ROOM_LIMIT  0.9
#define ROW_REGION_BYTES_MIN (64u << 10)
#define ROW_REGION_BYTES_MAX (1ull << 40)
#define ROW_PART_BYTES_MAX   (4u << 20) /* of a part of a row of any ids: as much as a stop moves */
#define ROW_PART_BYTES_MIN   (8u << 10)
#define ROW_PART_POOLS       16 /* a part's pools take 1/16 of it at most, as a rule */

struct row_config {
    bool any_ids;         /* over all ids, in parts (row/row_parts.h): nothing else but table_bytes
                             applies, which is what is set aside for them */
    bool recycle;         /* a table is recycled when one is needed; else new ids are refused */
    bool dump;            /* instead of refusing: a table is dumped (row/row_cold.h), where
                             row_set_cold() said who reads it; else as without */
    unsigned dumps_max;   /* dumped tables, ROW_DUMPS_MAX at most; 0: as many as there can be, then
                             new ids are refused */
    unsigned routes;      /* tables in all; 0: ROW_ROUTES_MAX. Tests have fewer */
    unsigned tables;      /* 1 to ROW_TABLES_MAX, the spare included */
    uint64_t table_bytes; /* of one region */
    uint64_t part_bytes;  /* of a part at most; 0: ROW_PART_BYTES_MAX. Tests have less */
    double late_room;     /* share of a capacity kept for late ids, or ROW_LATE_AUTO */
    double late_start;    /* what ROW_LATE_AUTO begins with */
    unsigned sample;      /* ROW_SAMPLE_MIN to ROW_SAMPLE_MAX: as many fit apart in a table */
    bool ids_once;        /* an id counts once: a table takes at least `capacity` ids on end */
};

/*
 * Returns what is wrong and what would be right; NULL: nothing. max_id: with any_ids alone.
 */
const char *row_config_wrong(const struct row_config *config, uint64_t max_id);

/* Returns how many tables there may be, dumped ones included: no further one opens. */
static inline unsigned row_routes_max(const struct row_config *config)
{
    return config->routes != 0 ? config->routes : ROW_ROUTES_MAX;
}

/* Returns the bytes of the largest part of a row of any ids, and of its first one. */
static inline uint64_t row_part_bytes_max(const struct row_config *config)
{
    return config->part_bytes != 0 ? config->part_bytes : ROW_PART_BYTES_MAX;
}

static inline uint64_t row_part_first_bytes(const struct row_config *config)
{
    uint64_t most = row_part_bytes_max(config);
    return config->table_bytes < most ? config->table_bytes : most;
}

/* Returns the bytes of parts of so many bytes with their pools. */
static inline uint64_t row_part_with_pools(uint64_t bytes)
{
    return bytes + bytes / ROW_PART_POOLS;
}

/*
 * Returns what is set aside for such a row. Where parts are dumped that is as much at least as one
 * needs that comes back and grows while all others are dumped: twice the largest.
 */
static inline uint64_t row_part_aside_bytes(const struct row_config *config)
{
    uint64_t aside = row_part_with_pools(config->table_bytes);
    uint64_t least = config->dump ? 2 * row_part_with_pools(row_part_bytes_max(config)) : 0;
    return aside > least ? aside : least;
}

/* Returns how many tables one is the spare of: 1 or 0. */
static inline unsigned row_config_spare(const struct row_config *config)
{
    return !config->any_ids && (config->recycle || config->dump);
}

#endif
