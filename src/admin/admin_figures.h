/*
 * admin_figures.h: all that there is to tell, read once: the page, the metrics and status.json are
 * made from one struct admin_figures.
 *
 * Spaces and tables are asked with the functions that `stats spaces` and `stats tables` use, and
 * what they say is taken by name. Of each space the newest ADMIN_TABLES_MAX tables are kept.
 *
 * Cost: about 5 us a table. Thread rule: the admin's thread, outside the barrier.
 */
#ifndef ROLLCALL_ADMIN_ADMIN_FIGURES_H
#define ROLLCALL_ADMIN_ADMIN_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "data/data.h"
#include "request/server.h"
#include "request/watch.h"
#include "store/cold.h"
#include "store/open_files.h"

#define ADMIN_TABLES_MAX  256 /* of a space: the newest */
#define ADMIN_HOT_MAX     10
#define ADMIN_TABLES_STEP 16 /* read in one stay inside the barrier */

/* Figures of `stats tables` and `stats spaces` by their names there. */
#define ADMIN_TABLE_FIGURES(X)                                                                     \
    X(base)                                                                                        \
    X(range_last)                                                                                  \
    X(first_id)                                                                                    \
    X(last_id)                                                                                     \
    X(late)                                                                                        \
    X(layers)                                                                                      \
    X(opened_at)                                                                                   \
    X(fill)                                                                                        \
    X(cold)                                                                                        \
    X(records)                                                                                     \
    X(members)                                                                                     \
    X(capacity)                                                                                    \
    X(aux)                                                                                         \
    X(aux_bytes)                                                                                   \
    X(aux_pool_bytes)                                                                              \
    X(extend_pool_bytes)                                                                           \
    X(exceptions)                                                                                  \
    X(exceptions_bytes)                                                                            \
    X(bytes)                                                                                       \
    X(file_bytes)

#define ADMIN_SPACE_FIGURES(X)                                                                     \
    X(records)                                                                                     \
    X(members)                                                                                     \
    X(items)                                                                                       \
    X(capacity)                                                                                    \
    X(exceptions)                                                                                  \
    X(dumped_tables)                                                                               \
    X(dumped_bytes)                                                                                \
    X(overlay_bytes)                                                                               \
    X(below_records)                                                                               \
    X(below_evicted)                                                                               \
    X(tables)                                                                                      \
    X(layers)                                                                                      \
    X(tables_max)                                                                                  \
    X(spare)                                                                                       \
    X(frontier)                                                                                    \
    X(ahead_ids)                                                                                   \
    X(cold_tables)                                                                                 \
    X(leaving_tables)                                                                              \
    X(recycled_tables)                                                                             \
    X(dropped_ranges)                                                                              \
    X(waits)

#define ADMIN_FIELD(name)                uint64_t name;
#define ADMIN_COUNT_FIELD(name, meaning) uint64_t name;

enum admin_state { ADMIN_OPEN, ADMIN_FULL, ADMIN_DUMPING, ADMIN_DUMPED, ADMIN_STATES };

struct admin_table {
    uint64_t serial;
    enum admin_state state;
    double rate; /* of wrong answers, now; filters only */
    ADMIN_TABLE_FIGURES(ADMIN_FIELD)
};

struct admin_space_counts {
    SPACE_METRICS(ADMIN_COUNT_FIELD)
};
struct admin_command_counts {
    COMMAND_METRICS(ADMIN_COUNT_FIELD)
};

struct admin_space {
    char name[ENGINE_SPACE_NAME_MAX + 1];
    enum space_kind kind;
    enum space_role role;
    enum space_oldest oldest;
    bool any_ids;
    double target; /* the rate of wrong answers that is configured; filters only */
    char slots[ENGINE_SLOTS_MAX * (ENGINE_SPACE_NAME_MAX + 6)]; /* "repost:20 like:20" */
    ADMIN_SPACE_FIGURES(ADMIN_FIELD)
    uint64_t held;     /* records, members or items that are there now */
    uint64_t recycled; /* those that were dropped since the start */
    struct admin_space_counts counts;
    struct engine_memory memory[ENGINE_MEMORY_KINDS];
    size_t table_count, tables_left_out; /* kept; older ones that are not */
    struct admin_table *at;              /* [table_count], by their ids */
};

struct admin_figures {
    uint64_t now_us; /* clock_monotonic_us */
    uint64_t now_s;  /* wall clock */
    uint64_t uptime_s;
    bool has_data, has_journal, has_cold;
    unsigned threads, max_connections;
    uint64_t memory_bytes, resident_bytes;
    double cpu_s;
    enum journal_sync sync;
    char address[128];
    struct admin_command_counts commands;
    struct net_metrics net;
    struct journal_stats journal;
    struct data_stats data;
    struct cold_stats cold;
    struct open_files_stats files;
    uint64_t disk_bytes, disk_free_bytes; /* of the file system of `data` */
    uint64_t overlay_bytes_max;
    struct watch_times times[WATCH_TIERS]; /* of all classes */
    struct watch_times of_class[WATCH_CLASSES][WATCH_TIERS];
    struct {
        size_t count;
        struct watch_top tops[ADMIN_HOT_MAX];
        double worst;
    } hot[WATCH_KINDS];
    size_t slow_count;
    struct watch_request slow[WATCH_SLOW];
    size_t space_count;
    struct admin_space spaces[SETTINGS_SPACES_MAX];
};

/* Reads all; tables: the spaces' tables too. Frees what `figures` held: it is zero at first, or
 * was read before. */
void admin_figures_read(struct admin_figures *figures, struct server *server,
                        struct barrier_member *member, bool tables);
void admin_figures_free(struct admin_figures *figures); /* NULL: no-op */

/* What all workers together have counted since the start. Any thread. */
void admin_commands_sum(const struct server *server, struct admin_command_counts *sum);

/* Likewise the times of their requests. */
void admin_times_sum(const struct server *server, struct watch_times times[WATCH_TIERS]);

/* All that a space holds of memory, in bytes. */
uint64_t admin_space_held_bytes(const struct admin_space *space);
/* Bytes an id or member takes: of its full tables, or, if there is none, as planned. 0: unknown. */
double admin_space_bytes_each(const struct admin_space *space);
/* Does it refuse new ids once it is full? Others dump or recycle their oldest table. */
bool admin_space_refuses(const struct admin_space *space);
/* Ids or members that fit before the next table is needed and there is none free. */
uint64_t admin_space_places(const struct admin_space *space);

#endif
