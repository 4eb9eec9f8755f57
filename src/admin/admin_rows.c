/* admin_rows.c: the list. README.md has the tables of both sorts of names. */
#include "admin/admin_rows.h"

#define FORM(type, field)                                                                          \
    _Generic(((type *)0)->field, double                                                            \
             : ADMIN_REAL, bool                                                                    \
             : ADMIN_BOOL, unsigned                                                                \
             : ADMIN_UNSIGNED, char *                                                              \
             : ADMIN_TEXT, default                                                                 \
             : ADMIN_WHOLE)
#define ROW(object, type, field, ...)                                                              \
    {                                                                                              \
        .of = object, .form = FORM(type, field), .offset = offsetof(type, field), __VA_ARGS__      \
    }
#define DAEMON(field, ...) ROW(ADMIN_DAEMON, struct admin_figures, field, __VA_ARGS__)
#define SPACE(field, ...)  ROW(ADMIN_SPACE, struct admin_space, field, __VA_ARGS__)
#define SLOT(field, ...)   ROW(ADMIN_SLOT, struct admin_slot, field, __VA_ARGS__)
#define TABLE(field, ...)  ROW(ADMIN_TABLE, struct admin_table, field, __VA_ARGS__)

#define JSON(name)          .json = name
#define GAUGE(name, text)   .metric = "rollcall_" name, .type = "gauge", .help = text
#define COUNTER(name, text) .metric = "rollcall_" name, .type = "counter", .help = text
/* A family of rows with labels, and one of these. */
#define FAMILY(object, ...)                                                                        \
    {                                                                                              \
        .of = object, .form = ADMIN_HEAD, __VA_ARGS__                                              \
    }
#define MORE(name, text)     .metric = "rollcall_" name, .labels = text
#define PROCESS(name, t, te) .metric = "process_" name, .type = t, .help = te
#define US                   .us = true
#define WHEN(condition)      .when = ADMIN_##condition

static const char *const states[] = {"open", "full", "dumping", "on_disk"};
static const char *const roles[] = {"store", "cache"};
static const char *const oldest[] = {"default", "dump", "recycle", "refuse"};
const char *const admin_role_words[ADMIN_ROLES] = {"single", "leader", "follower"};
const char *const admin_following_words[REPL_RECEIVER_STATES] = {
    "connecting", "copying", "behind", "streaming", "rewinding", "diverged"};
static const char *const serving[] = {"loading", "serving"};

/* ---- lists of rows ---- */

#define COMMAND_ROW(name, meaning) DAEMON(commands.name, JSON("commands." #name)),
#define NET_ROW(name, meaning)     DAEMON(net.name, JSON("connections." #name)),
#define COUNT_ROW(name, meaning)   SPACE(counts.name, JSON(#name)),
#define SPACE_ROW(name)            SPACE(name, JSON(#name)),
#define TABLE_ROW(name)            TABLE(name, JSON(#name)),

#define REFUSED_METRIC(name, words)                                                                \
    SPACE(refused[ADMIN_REASON_##name], JSON("refused." #name ".total"),                           \
          MORE("refused_total", "reason=\"" #name "\"")),
#define REFUSED_LATELY(name, words)                                                                \
    SPACE(trend.refused[ADMIN_REASON_##name], JSON("refused." #name ".ten_minutes")),
#define MEMORY(kind, name)                                                                         \
    SPACE(memory[ENGINE_MEMORY_##kind].held_bytes, JSON("memory_bytes." name), WHEN(NOT_ZERO),     \
          MORE("memory_bytes", "kind=\"" name "\""))
#define TABLES(state, name)                                                                        \
    SPACE(states[state], WHEN(NOT_PLAIN), MORE("tables", "state=\"" name "\""))
#define REACH(how, name)                                                                           \
    SPACE(reach[ENGINE_REACH_##how], WHEN(COUNTERS), JSON("reach." name),                          \
          MORE("probe_records", "probe=\"" name "\""))
#define COMMAND(field, command, result)                                                            \
    DAEMON(commands.field, MORE("commands_total", "command=\"" command "\",result=\"" result "\""))
#define KEYS(field, command) DAEMON(field, MORE("keys_total", "command=\"" command "\""))
#define NODE(role, name)     DAEMON(repl.role_is[role], MORE("replication_role", "role=\"" name "\""))
#define FOLLOWING(state, name)                                                                     \
    DAEMON(repl.state_is[REPL_RECEIVER_##state], WHEN(FOLLOWING),                                  \
           MORE("replication_state", "state=\"" name "\""))
#define CLOSED(field, reason)                                                                      \
    DAEMON(net.field, MORE("connections_closed_total", "reason=\"" reason "\""))
#define LATENCY(tier, name)                                                                        \
    DAEMON(lately[tier].requests, JSON("latency." name ".requests")),                              \
        DAEMON(lately[tier].p50_us, JSON("latency." name ".p50_us")),                              \
        DAEMON(lately[tier].p99_us, JSON("latency." name ".p99_us")),                              \
        DAEMON(lately[tier].p999_us, JSON("latency." name ".p999_us")),                            \
        DAEMON(lately[tier].p9999_us, JSON("latency." name ".p9999_us"))

const struct admin_row admin_rows[] = {
    DAEMON(serving, WHEN(ALWAYS), .words = serving, JSON("state")),
    DAEMON(serving, WHEN(ALWAYS),
           GAUGE("serving", "1 when requests are served, 0 while it loads.")),
    DAEMON(loaded, WHEN(ALWAYS), JSON("loaded_ratio"),
           GAUGE("loaded_ratio", "Share of the data directory that is loaded.")),
    DAEMON(reload_well, WHEN(ALWAYS), JSON("last_reload_successful"),
           GAUGE("config_last_reload_successful",
                 "0 when the last SIGHUP changed nothing, because of a mistake.")),
    /* the process */
    DAEMON(address, JSON("address")), DAEMON(now_s, JSON("time")),
    DAEMON(uptime_s, JSON("uptime_s")),
    DAEMON(started_s, GAUGE("start_time_seconds", "When it started, in seconds since 1970.")),
    DAEMON(cpu_s, PROCESS("cpu_seconds_total", "counter", "Processor time used, user and system.")),
    DAEMON(resident_bytes, JSON("resident_bytes"),
           PROCESS("resident_memory_bytes", "gauge", "Resident memory.")),
    DAEMON(huge.resident, JSON("tables_resident_bytes"),
           GAUGE("tables_resident_bytes", "Memory of tables in use, as of the last minute.")),
    DAEMON(huge.huge, JSON("huge_page_bytes"),
           GAUGE("huge_page_bytes", "Memory of tables in huge pages, as of the last minute.")),
    DAEMON(memory_bytes, JSON("memory_limit_bytes"),
           GAUGE("memory_limit_bytes", "The option memory.")),
    DAEMON(threads, GAUGE("worker_threads", "The option threads.")),
    DAEMON(clock_jumps,
           COUNTER("clock_jumps_total", "Times the wall clock was set by two seconds or more.")),
    DAEMON(log_lost, COUNTER("log_lines_lost_total", "Lines of the log that were lost.")),
    /* clients */
    DAEMON(net.curr_connections, GAUGE("connections", "Connections open now.")),
    DAEMON(max_connections, JSON("max_connections"),
           GAUGE("connections_limit", "The option max-connections.")),
    DAEMON(net.total_connections, COUNTER("connections_accepted_total", "Connections accepted.")),
    DAEMON(net.rejected_connections,
           COUNTER("connections_rejected_total",
                   "Connections refused for max-connections or want of descriptors.")),
    DAEMON(net.bytes_read, COUNTER("received_bytes_total", "Bytes received from clients.")),
    DAEMON(net.bytes_written, COUNTER("sent_bytes_total", "Bytes sent to clients.")),
    FAMILY(ADMIN_DAEMON,
           COUNTER("connections_closed_total", "Connections that the daemon closed, by why.")),
    CLOSED(idle_closed, "idle"), CLOSED(request_timeouts, "half_sent_request"),
    CLOSED(write_stalls, "does_not_read"), CLOSED(hold_stalls, "disk_stalled"),
    CLOSED(budget_closed, "buffers_full"), CLOSED(ssl_handshake_errors, "tls_handshake"),
    CLOSED(ssl_proto_errors, "tls_broken"),
    DAEMON(net.ssl_new_sessions, COUNTER("tls_sessions_total", "TLS sessions agreed upon.")),
    DAEMON(commands.auth_errors,
           COUNTER("logins_failed_total", "Logins with a wrong user or password.")),
    /* commands */
    DAEMON(rates[ADMIN_READS], JSON("rates_each_s.reads")),
    DAEMON(rates[ADMIN_CHANGES], JSON("rates_each_s.changes")),
    DAEMON(rates[ADMIN_DISK_READS], JSON("rates_each_s.disk_reads")),
    LATENCY(WATCH_MEMORY, "memory"), LATENCY(WATCH_DISK, "disk"), LATENCY(WATCH_TABLE, "table"),
    LATENCY(WATCH_SYNC, "sync"),
    FAMILY(ADMIN_DAEMON,
           COUNTER("commands_total",
                   "What came of commands, key by key; get counts each of its keys.")),
    COMMAND(get_hits, "get", "hit"), COMMAND(get_misses, "get", "miss"),
    COMMAND(touch_hits, "touch", "hit"), COMMAND(touch_misses, "touch", "miss"),
    COMMAND(incr_hits, "incr", "hit"), COMMAND(incr_misses, "incr", "miss"),
    COMMAND(decr_hits, "decr", "hit"), COMMAND(decr_misses, "decr", "miss"),
    COMMAND(delete_hits, "delete", "hit"), COMMAND(delete_misses, "delete", "miss"),
    COMMAND(cas_hits, "cas", "stored"), COMMAND(cas_misses, "cas", "miss"),
    COMMAND(cas_badval, "cas", "duplicate"), COMMAND(total_items, "all", "stored"),
    FAMILY(ADMIN_DAEMON, COUNTER("keys_total", "Keys asked for or written.")),
    KEYS(commands.cmd_get, "get"), KEYS(commands.cmd_touch, "touch"),
    KEYS(commands.cmd_set, "store"), KEYS(keys_incr, "incr"), KEYS(keys_delete, "delete"),
    DAEMON(commands.no_space, COUNTER("keys_without_space_total", "Keys of no space.")),
    DAEMON(commands.refused_noreply,
           COUNTER("refused_noreply_total", "Refusals that nobody was told of (noreply, quiet).")),
    DAEMON(commands.suspensions,
           COUNTER("requests_suspended_total", "Requests that waited for a table or a disk read.")),
    FAMILY(ADMIN_DAEMON,
           GAUGE("hot_key_share_ratio",
                 "The largest share that one id, or one member, has of a worker's keys lately.")),
    DAEMON(hot[WATCH_IDS].worst, MORE("hot_key_share_ratio", "kind=\"id\"")),
    DAEMON(hot[WATCH_MEMBERS].worst, MORE("hot_key_share_ratio", "kind=\"member\"")),
    COMMAND_METRICS(COMMAND_ROW) NET_METRICS(NET_ROW)
    /* the disk */
    DAEMON(journal.head, WHEN(WITH_JOURNAL), JSON("disk.journal_head"),
           COUNTER("journal_bytes_total", "Bytes of changes put into the journal, ever.")),
    DAEMON(journal.durable, WHEN(WITH_DATA), JSON("disk.journal_durable")),
    DAEMON(journal.unsynced_us, WHEN(WITH_DATA), JSON("disk.journal_unsynced_us")),
    DAEMON(journal.syncs, WHEN(WITH_JOURNAL),
           COUNTER("journal_syncs_total", "Times it was synced.")),
    DAEMON(journal.reserve_failures, WHEN(WITH_JOURNAL),
           COUNTER("journal_refusals_total", "Times it had no room for a change.")),
    DAEMON(journal.unsynced_us, WHEN(WITH_JOURNAL), US,
           GAUGE("journal_fsync_lag_seconds", "Age of the oldest change that is not durable.")),
    DAEMON(journal.buffer_used_bytes, WHEN(WITH_JOURNAL), JSON("disk.journal_buffer_used_bytes"),
           GAUGE("journal_buffer_used_bytes", "Changes that are not on the disk yet.")),
    DAEMON(journal.segment_bytes, WHEN(WITH_JOURNAL),
           GAUGE("journal_segment_bytes", "Bytes of its files on the disk.")),
    DAEMON(journal.failed, WHEN(WITH_JOURNAL), JSON("disk.journal_failed"),
           GAUGE("journal_failed", "1 when it takes no change before a restart.")),
    DAEMON(journal.full, WHEN(WITH_JOURNAL), JSON("disk.journal_full"),
           GAUGE("journal_disk_full", "1 when there is no room for a further file of it.")),
    DAEMON(journal.error, WHEN(WITH_DATA), JSON("disk.journal_error")),
    DAEMON(data.checkpoints, WHEN(WITH_DATA), JSON("disk.checkpoints"),
           COUNTER("checkpoints_total", "Checkpoints made.")),
    DAEMON(data.checkpoint_failures, WHEN(WITH_DATA), JSON("disk.checkpoint_failures"),
           COUNTER("checkpoint_failures_total", "Checkpoints that failed.")),
    DAEMON(data.last_checkpoint_s, WHEN(WITH_DATA), JSON("disk.last_checkpoint"),
           GAUGE("checkpoint_last_time_seconds",
                 "When the last one ended, in seconds since 1970; 0: none yet.")),
    DAEMON(data.last_checkpoint_us, WHEN(WITH_DATA), US,
           GAUGE("checkpoint_last_duration_seconds", "How long it took.")),
    DAEMON(data.dumps, WHEN(WITH_DATA), JSON("disk.dumps"),
           COUNTER("dumps_total", "Tables dumped.")),
    DAEMON(data.dump_failures, WHEN(WITH_DATA), JSON("disk.dump_failures"),
           COUNTER("dump_failures_total", "Dumps that failed.")),
    DAEMON(data.merges, WHEN(WITH_DATA),
           COUNTER("merges_total", "Files of dumped tables written anew.")),
    DAEMON(data.table_files, WHEN(WITH_DATA),
           GAUGE("table_files", "Files of tables in the directory.")),
    DAEMON(data.table_file_bytes, WHEN(WITH_DATA), GAUGE("table_file_bytes", "Their bytes.")),
    DAEMON(data.disk_bytes, WHEN(WITH_DATA), JSON("disk.filesystem_bytes"),
           GAUGE("data_filesystem_bytes", "Size of the file system of the data directory.")),
    DAEMON(data.disk_free_bytes, WHEN(WITH_DATA), JSON("disk.filesystem_free_bytes"),
           GAUGE("data_filesystem_free_bytes", "What is free of it.")),
    DAEMON(cold.reads, WHEN(WITH_DATA), JSON("disk.disk_reads")),
    DAEMON(cold.depth, WHEN(WITH_DATA), JSON("disk.disk_read_queue")),
    DAEMON(cold.bad_pages, WHEN(WITH_DATA), JSON("disk.damaged_pages")),
    DAEMON(cold.reads, WHEN(WITH_COLD),
           COUNTER("disk_reads_total", "Pages of dumped tables read.")),
    DAEMON(cold.failed, WHEN(WITH_COLD), COUNTER("disk_read_errors_total", "Reads that failed.")),
    DAEMON(cold.bad_pages, WHEN(WITH_COLD),
           COUNTER("disk_damaged_pages_total", "Pages that were not what had been written.")),
    DAEMON(cold.busy, WHEN(WITH_COLD),
           COUNTER("disk_read_busy_total", "Reads refused because the queue was full.")),
    DAEMON(cold.depth, WHEN(WITH_COLD),
           GAUGE("disk_read_queue_depth", "Pages queued or being read.")),
    DAEMON(cold.hits, WHEN(WITH_COLD), COUNTER("cold_cache_hits_total", "Pages found in memory.")),
    DAEMON(cold.misses, WHEN(WITH_COLD),
           COUNTER("cold_cache_misses_total", "Pages not found there.")),
    DAEMON(cold.cached_bytes, WHEN(WITH_COLD),
           GAUGE("cold_cache_bytes", "Memory of pages that were read.")),
    /* replication */
    DAEMON(repl.role, .words = admin_role_words, JSON("replication.role")),
    FAMILY(ADMIN_DAEMON, GAUGE("replication_role", "1 for what this node is to others.")),
    NODE(ADMIN_ROLE_SINGLE, "single"), NODE(ADMIN_ROLE_LEADER, "leader"),
    NODE(ADMIN_ROLE_FOLLOWER, "follower"),
    DAEMON(repl.epoch, WHEN(WITH_FEEDS), JSON("replication.epoch"),
           GAUGE("replication_epoch", "Number of the reign that it leads or follows in.")),
    DAEMON(repl.reign, WHEN(WITH_FEEDS), JSON("replication.reign"),
           GAUGE("replication_reign", "Number of the reign of its last record.")),
    DAEMON(repl.lease_us, WHEN(LEASED), US, JSON("replication.lease_us"),
           GAUGE("replication_lease_seconds",
                 "How long its agent's word holds that it leads; 0: it takes no changes.")),
    DAEMON(repl.state, WHEN(FOLLOWING), .words = admin_following_words, JSON("replication.state")),
    FAMILY(ADMIN_DAEMON, WHEN(FOLLOWING),
           GAUGE("replication_state", "1 for how it stands with the node that is followed.")),
    FOLLOWING(CONNECTING, "connecting"), FOLLOWING(COPYING, "copying"), FOLLOWING(BEHIND, "behind"),
    FOLLOWING(STREAMING, "streaming"), FOLLOWING(REWINDING, "rewinding"),
    FOLLOWING(DIVERGED, "diverged"),
    DAEMON(repl.leader, WHEN(FOLLOWING), JSON("replication.leader")),
    DAEMON(repl.trouble, WHEN(FOLLOWING), JSON("replication.trouble")),
    DAEMON(repl.readable, WHEN(FOLLOWING), JSON("replication.readable"),
           GAUGE("replication_readable", "1 when reads are answered.")),
    DAEMON(repl.receiver.lag_bytes, WHEN(FOLLOWING), JSON("replication.lag_bytes"),
           GAUGE("replication_lag_bytes", "Journal of the leader that is not in answers here.")),
    DAEMON(repl.receiver.lag_us, WHEN(FOLLOWING), JSON("replication.lag_us")),
    DAEMON(repl.receiver.lag_us, WHEN(FOLLOWING), US,
           GAUGE("replication_lag_seconds", "How old that is.")),
    DAEMON(repl.receiver.copies, WHEN(FOLLOWING), JSON("replication.fetched_copies"),
           COUNTER("replication_copies_fetched_total", "Copies of the leader that came whole.")),
    DAEMON(repl.receiver.rewinds, WHEN(FOLLOWING), JSON("replication.rewound"),
           COUNTER("replication_rewound_total",
                   "Times the journal was cut where the leader's history leaves it.")),
    DAEMON(repl.receiver.lost_bytes, WHEN(FOLLOWING), JSON("replication.lost_bytes"),
           COUNTER("replication_lost_bytes_total", "Bytes of journal that this cut off.")),
    DAEMON(repl.followers, WHEN(WITH_FEEDS), JSON("replication.followers"),
           GAUGE("replication_followers", "Followers that are connected.")),
    DAEMON(repl.feeds.in_sync, WHEN(WITH_FEEDS), JSON("replication.in_sync"),
           GAUGE("replication_in_sync", "1 when the follower of ack-by is there and level.")),
    DAEMON(repl.waits, WHEN(WITH_FEEDS), JSON("replication.waits"),
           GAUGE("replication_waits", "1 when answers to changes wait for that follower.")),
    DAEMON(repl.waits_for, WHEN(WITH_FEEDS), JSON("replication.waits_for")),
    DAEMON(repl.feeds.streams, WHEN(WITH_FEEDS), JSON("replication.streams"),
           COUNTER("replication_streams_total", "Streams that followers began.")),
    DAEMON(repl.feeds.copies, WHEN(WITH_FEEDS), JSON("replication.copies"),
           COUNTER("replication_copies_given_total", "Copies that followers began.")),
    DAEMON(repl.feeds.refused_copies, WHEN(WITH_FEEDS), JSON("replication.refused_copies"),
           COUNTER("replication_copies_refused_total", "Followers told to come again.")),
    DAEMON(repl.feeds.rewinds, WHEN(WITH_FEEDS), JSON("replication.rewinds"),
           COUNTER("replication_rewinds_told_total", "Followers told to go back.")),
    /* spaces */
    SPACE(name, JSON("name")), SPACE(kind, .words = settings_kind_words, JSON("kind")),
    SPACE(role, .words = roles, JSON("role")), SPACE(oldest, .words = oldest, JSON("oldest")),
    SPACE(slots, JSON("slots")), SPACE(any_ids, JSON("any_ids")),
    SPACE(held, JSON("held"),
          GAUGE("records", "Records, members or plain items that are there, on the disk too.")),
    SPACE(capacity,
          GAUGE("capacity_records", "Records or members that the tables there are were made for.")),
    SPACE(
        places, JSON("free_ids"),
        GAUGE("free_records",
              "New ids or members that fit before a table has to be dumped, recycled or refused.")),
    SPACE(recycled, JSON("recycled"),
          COUNTER("records_recycled_total",
                  "Records that went with their tables, and plain items evicted.")),
    SPACE(held_bytes, JSON("held_bytes")), SPACE(bytes_each, JSON("bytes_each")),
    SPACE(bytes_each, WHEN(NOT_PLAIN),
          GAUGE("bytes_per_record",
                "Bytes an id or member takes in full tables; planned, if none is full.")),
    SPACE(trend.added_each_s, JSON("added_each_s")), SPACE(full_in_s, JSON("full_in_s")),
    SPACE(counts.hits, COUNTER("hits_total", "Keys read and found.")),
    SPACE(misses, COUNTER("misses_total", "Keys read and not found.")),
    SPACE(counts.misses_incomplete,
          COUNTER("misses_incomplete_total",
                  "Of those, keys that are there only in part (role cache).")),
    SPACE(counts.changes, COUNTER("changes_total", "Changes made.")),
    SPACE(counts.bad_keys,
          COUNTER("bad_keys_total", "Keys that begin like the space's and do not parse.")),
    SPACE(ahead_ids, GAUGE("ids_ahead", "Ids far ahead of all others, kept apart.")),
    SPACE(waits, GAUGE("table_waits", "Times that requests waited for a table.")),
    SPACE(memory[ENGINE_MEMORY_AUX].items,
          GAUGE("aux_records", "Numbers that are too large for their slots.")),
    SPACE(dumped_bytes, GAUGE("dumped_bytes", "Bytes of the files of dumped tables.")),
    SPACE(target, WHEN(FILTERS), JSON("false_positives_target"),
          GAUGE("bloom_target_ratio", "The share of wrong answers that is configured.")),
    FAMILY(ADMIN_SPACE, COUNTER("refused_total", "Operations refused, by why.")),
    ADMIN_REFUSALS(REFUSED_METRIC) ADMIN_REFUSALS(REFUSED_LATELY)
        FAMILY(ADMIN_SPACE, GAUGE("memory_bytes", "Memory that a space holds, by kind.")),
    MEMORY(TABLES, "tables"), MEMORY(AUX, "aux"), MEMORY(EXTEND, "extend"), MEMORY(COLD, "cold"),
    MEMORY(FILTERS, "filters"), MEMORY(PLAIN, "plain"),
    FAMILY(ADMIN_SPACE, GAUGE("tables", "Tables by their state; free: memory for one more.")),
    TABLES(ADMIN_OPEN, "open"), TABLES(ADMIN_FULL, "full"), TABLES(ADMIN_DUMPING, "dumping"),
    TABLES(ADMIN_DUMPED, "on_disk"), TABLES(ADMIN_FREE, "free"),
    FAMILY(ADMIN_SPACE,
           GAUGE("probe_records", "Records by where they are found; as of the last look.")),
    REACH(HOME, "first"), REACH(OTHER, "second"), REACH(DICT, "beside"),
    SPACE(tables_left_out, JSON("tables_left_out")),
    ADMIN_SPACE_FIGURES(SPACE_ROW) SPACE_METRICS(COUNT_ROW)
    /* slots */
    SLOT(name, JSON("name")),
    SLOT(bits, JSON("bits"), GAUGE("slot_width", "Bits of a slot.")),
    SLOT(largest, JSON("largest"),
         GAUGE("slot_largest", "The largest number in memory; as of the last look.")),
    SLOT(beside, JSON("beside"),
         GAUGE("slot_overflow_records", "Numbers in memory too large for their slot.")),
    SLOT(enough_bits, JSON("enough_bits"),
         GAUGE("slot_enough_width", "Bits that would hold 99 in 100 of these.")),
    SLOT(enough_for, JSON("enough_for")),
    /* tables */
    TABLE(serial, JSON("serial")), TABLE(state, .words = states, JSON("state")),
    TABLE(held, GAUGE("table_records", "Records or members of a table.")),
    TABLE(capacity,
          GAUGE("table_capacity_records", "Records or members that a table was made for.")),
    TABLE(first_id, GAUGE("table_id_min", "The smallest id in a table.")),
    TABLE(last_id, GAUGE("table_id_max", "The largest id in a table.")),
    TABLE(rate, WHEN(FILTERS), JSON("false_positives"),
          GAUGE("bloom_false_positive_ratio",
                "Share of wrong answers of a filter now, from its set bits.")),
    TABLE(members, WHEN(FILTERS), GAUGE("bloom_insertions", "Members of a filter.")),
    TABLE(capacity, WHEN(FILTERS),
          GAUGE("bloom_capacity", "Members that a filter holds at its target.")),
    ADMIN_TABLE_FIGURES(TABLE_ROW)};
const size_t admin_row_count = sizeof(admin_rows) / sizeof(admin_rows[0]);

bool admin_row_applies(const struct admin_row *row, const struct admin_figures *figures,
                       const struct admin_space *space)
{
    if (!figures->serving) {
        return row->when == ADMIN_ALWAYS;
    }
    switch (row->when) {
    case ADMIN_WITH_JOURNAL:
        return figures->has_journal;
    case ADMIN_WITH_DATA:
        return figures->has_data;
    case ADMIN_WITH_COLD:
        return figures->has_cold;
    case ADMIN_WITH_FEEDS:
        return figures->repl.has_feeds;
    case ADMIN_FOLLOWING:
        return figures->repl.role == ADMIN_ROLE_FOLLOWER;
    case ADMIN_LEASED:
        return figures->repl.leased;
    case ADMIN_NOT_PLAIN:
        return space == NULL || space->kind != SPACE_PLAIN;
    case ADMIN_COUNTERS:
        return space == NULL || space->kind == SPACE_COUNTER;
    case ADMIN_FILTERS:
        return space == NULL || space->kind == SPACE_PHANTOM;
    default:
        return true;
    }
}
