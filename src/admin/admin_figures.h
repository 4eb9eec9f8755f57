/*
 * admin_figures.h: all figures, read once: the page, the metrics and status.json are made from one
 * struct admin_figures.
 *
 * Spaces and tables are asked with the functions that `stats spaces` and `stats tables` use, and
 * what they say is taken by name. Of each space the newest ADMIN_TABLES_MAX tables are kept.
 *
 * Cost: about 3 us a table. Thread rule: the admin's thread, outside the barrier.
 */
#ifndef ROLLCALL_ADMIN_ADMIN_FIGURES_H
#define ROLLCALL_ADMIN_ADMIN_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/huge.h"
#include "config/forecast.h"
#include "data/data.h"
#include "repl/feed.h"
#include "repl/receiver.h"
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
    X(waits)                                                                                       \
    X(growth_left_bytes)

#define ADMIN_FIELD(name)                uint64_t name;
#define ADMIN_COUNT_FIELD(name, meaning) uint64_t name;

/* What the chart shows. */
enum admin_line { ADMIN_READS, ADMIN_CHANGES, ADMIN_DISK_READS, ADMIN_LINES };

/* What happened lately, if it grew: ten minutes ago, and now. */
#define ADMIN_EVENTS(X)                                                                            \
    X(rejected_connections)                                                                        \
    X(checkpoint_failures)                                                                         \
    X(dump_failures)                                                                               \
    X(cold_failed)                                                                                 \
    X(cold_busy)                                                                                   \
    X(journal_refusals)                                                                            \
    X(failed_logins)
struct admin_events {
    ADMIN_EVENTS(ADMIN_FIELD)
};

/* Why a space refused; the first ones an operator can do something about. */
#define ADMIN_REFUSALS(X)                                                                          \
    X(no_table, "no table free")                                                                   \
    X(memory, "no place left")                                                                     \
    X(busy, "disk queue or journal full")                                                          \
    X(read, "a disk read failed, or took five seconds")                                            \
    X(id_large, "id above max-id")                                                                 \
    X(id_far, "id too far ahead")                                                                  \
    X(id_below, "id below the oldest table")                                                       \
    X(value, "not a number, or not as many as slots")                                              \
    X(delta, "no number to increment")                                                             \
    X(append, "append or prepend")                                                                 \
    X(deletes_off, "deletes are off")
#define ADMIN_REFUSAL_COUNT(name, words) +1
#define ADMIN_REFUSALS_N                 (0 ADMIN_REFUSALS(ADMIN_REFUSAL_COUNT))
#define ADMIN_REFUSALS_OURS              7 /* the first of them */

#define ADMIN_REFUSAL_ENUM(name, words) ADMIN_REASON_##name,
enum admin_reason { ADMIN_REFUSALS(ADMIN_REFUSAL_ENUM) };
extern const char *const admin_refusal_words[ADMIN_REFUSALS_N];

/* Trends of a space in the last minutes and the last day. */
struct admin_trend {
    bool known; /* it was watched for ADMIN_RATE_S_MIN */
    double
        added_each_s; /* ids or members, over the last day or since the start; negative: unknown */
    double watched_s; /* how long that was */
    uint64_t refused[ADMIN_REFUSALS_N]; /* in the last ten minutes */
};

/* Times of the requests of a tier in the last minute, or since the start. */
struct admin_latency {
    uint64_t requests, p50_us, p90_us, p99_us, p999_us, p9999_us;
};

enum admin_state { ADMIN_OPEN, ADMIN_FULL, ADMIN_DUMPING, ADMIN_DUMPED, ADMIN_FREE, ADMIN_STATES };

struct admin_table {
    uint64_t serial;
    enum admin_state state;
    double rate;   /* of wrong answers, now; filters only */
    uint64_t held; /* records or members */
    ADMIN_TABLE_FIGURES(ADMIN_FIELD)
};

/* Of a slot, as of the last look at its space's values (admin_survey.h). */
struct admin_slot {
    char name[ENGINE_SPACE_NAME_MAX + 1];
    unsigned bits, enough_bits; /* this many bits would hold `enough_for` of those beside */
    uint64_t largest;
    uint64_t beside; /* numbers too large for it, in memory */
    uint64_t enough_for;
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
    uint64_t misses;
    uint64_t held_bytes; /* of memory, all kinds together */
    uint64_t places;   /* new ids or members that fit before a table must go, or they are refused */
    double bytes_each; /* of full tables, or as planned if there is none; 0: unknown */
    struct forecast_room room;
    struct admin_space_counts counts;
    uint64_t refused[ADMIN_REFUSALS_N]; /* since the start */
    struct admin_trend trend;
    double full_in_s; /* until there is no place; negative: it does not fill, or nobody knows */
    uint64_t states[ADMIN_STATES]; /* tables in each */
    struct engine_memory memory[ENGINE_MEMORY_KINDS];
    uint64_t reach[ENGINE_REACHES]; /* records by how far one looks for them */
    size_t slot_count;              /* 0: its values were not looked at yet */
    struct admin_slot slot_list[ENGINE_SLOTS_MAX];
    size_t table_count, tables_left_out; /* kept; older ones that are not */
    struct admin_table *at;              /* [table_count], by their ids */
};

enum admin_role { ADMIN_ROLE_SINGLE, ADMIN_ROLE_LEADER, ADMIN_ROLE_FOLLOWER, ADMIN_ROLES };

struct admin_replication {
    unsigned role; /* enum admin_role */
    bool role_is[ADMIN_ROLES];
    /* of a follower */
    unsigned state; /* enum repl_receiver_state */
    bool state_is[REPL_RECEIVER_STATES];
    bool readable;    /* reads are answered */
    bool applies;     /* what comes is carried out */
    bool grown;       /* the tables take more than `memory`: `trouble` says how much */
    char leader[320]; /* its address */
    char trouble[REPL_TEXT_MAX + 1];
    struct repl_receiver_stats receiver; /* but for its pointer */
    /* of who can be followed */
    bool has_feeds;
    bool waits;        /* answers to writes wait for a follower */
    bool fenced;       /* it leads by the word of an agent, which has ended */
    bool leased;       /* it leads by an agent's word … */
    uint64_t lease_us; /* … for so long; 0: fenced */
    uint64_t followers;
    uint64_t epoch, reign; /* it leads or follows in; of its last record */
    char waits_for[REPL_WAITS_TEXT_MAX];
    struct repl_feeds_stats feeds;
};

struct admin_figures {
    uint64_t now_us; /* clock_monotonic_us */
    uint64_t now_s;  /* wall clock */
    uint64_t uptime_s, started_s;
    bool serving;     /* else nothing but the next two is known */
    double loaded;    /* share */
    bool reload_well; /* the last one, if there was any */
    bool has_data, has_journal, has_cold;
    unsigned threads, max_connections;
    uint64_t memory_bytes, resident_bytes;
    struct huge_bytes huge; /* of tables, as of the last look */
    double cpu_s;
    uint64_t log_lost; /* lines */
    enum journal_sync sync;
    char address[128];
    struct admin_command_counts commands;
    uint64_t keys_incr, keys_delete; /* sums of them */
    struct net_metrics net;
    struct journal_stats journal;
    struct data_stats data;
    struct cold_stats cold;
    struct open_files_stats files;
    struct admin_replication repl;
    uint64_t overlay_bytes_max;
    struct watch_times times[WATCH_TIERS]; /* of all classes */
    struct watch_times of_class[WATCH_CLASSES][WATCH_TIERS];
    struct {
        size_t count;
        struct watch_top tops[ADMIN_HOT_MAX];
        double worst;
    } hot[WATCH_KINDS];
    struct admin_latency lately[WATCH_TIERS];
    double rates[ADMIN_LINES];  /* each second, now */
    struct admin_events events; /* of the last ten minutes */
    uint64_t clock_jumps;
    size_t slow_count;
    struct watch_request slow[WATCH_SLOW];
    size_t space_count;
    struct admin_space spaces[SETTINGS_SPACES_MAX];
};

/*
 * Reads all but what comes from the past (admin_history_tell); tables: the spaces' tables too.
 * Frees what `figures` held: it is zero at first, or was read before.
 */
void admin_figures_read(struct admin_figures *figures, struct server *server,
                        struct barrier_member *member, bool tables);
void admin_figures_free(struct admin_figures *figures); /* NULL: no-op */

/* Reads the node that is followed and the followers (admin_replication.c). Zero at first. */
void admin_replication_read(struct admin_replication *repl, const struct server *server);

/* Reads what all workers together have counted since the start. Any thread. */
void admin_commands_sum(const struct server *server, struct admin_command_counts *sum);

/* Likewise the times of their requests. */
void admin_times_sum(const struct server *server, struct watch_times times[WATCH_TIERS]);

#endif
