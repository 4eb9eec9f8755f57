/* admin_metrics.c: /metrics, in Prometheus' text format. README.md has the table of the names. */
#include <inttypes.h>
#include <string.h>

#include "admin/admin_private.h"
#include "net/net.h"

#ifdef HAVE_JEMALLOC
#define ALLOCATOR "jemalloc"
#else
#define ALLOCATOR "libc"
#endif

#define US_PER_S 1e6

static void family(struct evbuffer *out, const char *name, const char *type, const char *help)
{
    evbuffer_add_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void whole(struct evbuffer *out, const char *name, uint64_t value)
{
    evbuffer_add_printf(out, "%s %" PRIu64 "\n", name, value);
}

/* A family of one sample. */
static void gauge(struct evbuffer *out, const char *name, uint64_t value, const char *help)
{
    family(out, name, "gauge", help);
    whole(out, name, value);
}

static void counter(struct evbuffer *out, const char *name, uint64_t value, const char *help)
{
    family(out, name, "counter", help);
    whole(out, name, value);
}

static void real(struct evbuffer *out, const char *name, const char *type, double value,
                 const char *help)
{
    family(out, name, type, help);
    evbuffer_add_printf(out, "%s %.9g\n", name, value);
}

/* ---- the daemon ---- */

static void put_build(const struct admin_view *view, struct evbuffer *out)
{
    family(out, "rollcall_build_info", "gauge", "Always 1; the labels tell the build.");
    evbuffer_add_printf(out,
                        "rollcall_build_info{version=\"%s\",libevent=\"%s\",allocator=\"%s\"} 1\n",
                        PACKAGE_VERSION, net_library_version(), ALLOCATOR);
    gauge(out, "rollcall_serving", view->serving, "1 when requests are served, 0 while it loads.");
    real(out, "rollcall_loaded_ratio", "gauge", view->serving ? 1 : admin_loaded_share(view->data),
         "Share of the data directory that is loaded.");
    gauge(out, "rollcall_config_last_reload_successful", !view->reload_failed,
          "0 when the last SIGHUP changed nothing, because of a mistake.");
}

static void put_process(const struct admin_figures *figures, struct evbuffer *out)
{
    gauge(out, "rollcall_start_time_seconds", figures->now_s - figures->uptime_s,
          "When it started, in seconds since 1970.");
    real(out, "process_cpu_seconds_total", "counter", figures->cpu_s,
         "Processor time used, user and system.");
    gauge(out, "process_resident_memory_bytes", figures->resident_bytes, "Resident memory.");
    gauge(out, "rollcall_memory_limit_bytes", figures->memory_bytes, "The option memory.");
    gauge(out, "rollcall_worker_threads", figures->threads, "The option threads.");
}

static void put_net(const struct admin_figures *figures, struct evbuffer *out)
{
    const struct net_metrics *net = &figures->net;

    gauge(out, "rollcall_connections", metric_read(&net->curr_connections),
          "Connections open now.");
    gauge(out, "rollcall_connections_limit", figures->max_connections,
          "The option max-connections.");
    counter(out, "rollcall_connections_accepted_total", metric_read(&net->total_connections),
            "Connections accepted.");
    counter(out, "rollcall_connections_rejected_total", metric_read(&net->rejected_connections),
            "Connections refused for max-connections or want of descriptors.");
    counter(out, "rollcall_received_bytes_total", metric_read(&net->bytes_read),
            "Bytes received from clients.");
    counter(out, "rollcall_sent_bytes_total", metric_read(&net->bytes_written),
            "Bytes sent to clients.");
    family(out, "rollcall_connections_closed_total", "counter",
           "Connections that the daemon closed, by why.");
#define CLOSED(why, figure)                                                                        \
    evbuffer_add_printf(out, "rollcall_connections_closed_total{reason=\"%s\"} %" PRIu64 "\n",     \
                        why, metric_read(&net->figure))
    CLOSED("idle", idle_closed);
    CLOSED("half_sent_request", request_timeouts);
    CLOSED("does_not_read", write_stalls);
    CLOSED("disk_stalled", hold_stalls);
    CLOSED("buffers_full", budget_closed);
    CLOSED("tls_handshake", ssl_handshake_errors);
#undef CLOSED
    counter(out, "rollcall_logins_failed_total", figures->commands.auth_errors,
            "Logins with a wrong user or password.");
}

/* ---- commands ---- */

static void put_commands(const struct admin_command_counts *counts, struct evbuffer *out)
{
    const struct {
        const char *command, *result;
        uint64_t value;
    } rows[] = {
        {"get", "hit", counts->get_hits},         {"get", "miss", counts->get_misses},
        {"touch", "hit", counts->touch_hits},     {"touch", "miss", counts->touch_misses},
        {"incr", "hit", counts->incr_hits},       {"incr", "miss", counts->incr_misses},
        {"decr", "hit", counts->decr_hits},       {"decr", "miss", counts->decr_misses},
        {"delete", "hit", counts->delete_hits},   {"delete", "miss", counts->delete_misses},
        {"cas", "stored", counts->cas_hits},      {"cas", "miss", counts->cas_misses},
        {"cas", "duplicate", counts->cas_badval}, {"all", "stored", counts->total_items},
    };

    family(out, "rollcall_commands_total", "counter",
           "What came of commands, key by key; get counts each of its keys.");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        evbuffer_add_printf(out,
                            "rollcall_commands_total{command=\"%s\",result=\"%s\"} %" PRIu64 "\n",
                            rows[i].command, rows[i].result, rows[i].value);
    }
    family(out, "rollcall_keys_total", "counter", "Keys asked for or written.");
    evbuffer_add_printf(out,
                        "rollcall_keys_total{command=\"get\"} %" PRIu64
                        "\nrollcall_keys_total{command=\"touch\"} %" PRIu64
                        "\nrollcall_keys_total{command=\"store\"} %" PRIu64
                        "\nrollcall_keys_total{command=\"incr\"} %" PRIu64
                        "\nrollcall_keys_total{command=\"delete\"} %" PRIu64 "\n",
                        counts->cmd_get, counts->cmd_touch, counts->cmd_set,
                        counts->incr_hits + counts->incr_misses + counts->decr_hits +
                            counts->decr_misses,
                        counts->delete_hits + counts->delete_misses);
    counter(out, "rollcall_keys_without_space_total", counts->no_space, "Keys of no space.");
    counter(out, "rollcall_refused_noreply_total", counts->refused_noreply,
            "Refusals that nobody was told of (noreply, quiet).");
    counter(out, "rollcall_requests_suspended_total", counts->suspensions,
            "Requests that waited for a table or a disk read.");
}

#define TIMES_POWERS 21 /* buckets to 2^20 us, about a second */

static void put_times(const struct watch_times *times, const char *class, const char *tier,
                      struct evbuffer *out)
{
    static const char name[] = "rollcall_command_duration_seconds";

    for (unsigned power = 0; power < TIMES_POWERS; power++) {
        evbuffer_add_printf(out, "%s_bucket{command=\"%s\",tier=\"%s\",le=\"%.6f\"} %" PRIu64 "\n",
                            name, class, tier, (double)(1u << power) / US_PER_S,
                            watch_below(times, power));
    }
    evbuffer_add_printf(out,
                        "%s_bucket{command=\"%s\",tier=\"%s\",le=\"+Inf\"} %" PRIu64
                        "\n%s_sum{command=\"%s\",tier=\"%s\"} %.6f\n"
                        "%s_count{command=\"%s\",tier=\"%s\"} %" PRIu64 "\n",
                        name, class, tier, times->count, name, class, tier,
                        (double)times->sum_us / US_PER_S, name, class, tier, times->count);
}

static void put_watches(const struct admin_figures *figures, struct evbuffer *out)
{
    family(out, "rollcall_command_duration_seconds", "histogram",
           "Time of requests from the wake-up that found them to their answer, by what they waited "
           "for.");
    for (int class = 0; class < WATCH_CLASSES; class ++) {
        for (int tier = 0; tier < WATCH_TIERS; tier++) {
            put_times(&figures->of_class[class][tier], watch_class_names[class],
                      watch_tier_names[tier], out);
        }
    }
    family(out, "rollcall_hot_key_share_ratio", "gauge",
           "The largest share that one id, or one member, has of a worker's keys lately.");
    evbuffer_add_printf(out,
                        "rollcall_hot_key_share_ratio{kind=\"id\"} %.4f\n"
                        "rollcall_hot_key_share_ratio{kind=\"member\"} %.4f\n",
                        figures->hot[WATCH_IDS].worst, figures->hot[WATCH_MEMBERS].worst);
}

/* ---- spaces ---- */

typedef uint64_t space_value_fn(const struct admin_space *space);

static void each_space(const struct admin_figures *figures, struct evbuffer *out, const char *name,
                       const char *type, space_value_fn *value, const char *help)
{
    family(out, name, type, help);
    for (size_t i = 0; i < figures->space_count; i++) {
        evbuffer_add_printf(out, "%s{space=\"%s\"} %" PRIu64 "\n", name, figures->spaces[i].name,
                            value(&figures->spaces[i]));
    }
}

#define SPACE_VALUE(function, expression)                                                          \
    static uint64_t function(const struct admin_space *space)                                      \
    {                                                                                              \
        return expression;                                                                         \
    }
SPACE_VALUE(value_held, space->held)
SPACE_VALUE(value_capacity, space->capacity)
SPACE_VALUE(value_places, admin_space_places(space))
SPACE_VALUE(value_recycled, space->recycled)
SPACE_VALUE(value_ahead, space->ahead_ids)
SPACE_VALUE(value_waits, space->waits)
SPACE_VALUE(value_changes, space->counts.changes)
SPACE_VALUE(value_hits, space->counts.hits)
SPACE_VALUE(value_bad_keys, space->counts.bad_keys)
SPACE_VALUE(value_aux, space->memory[ENGINE_MEMORY_AUX].items)
SPACE_VALUE(value_dumped_bytes, space->dumped_bytes)

static uint64_t value_misses(const struct admin_space *space)
{
    return space->counts.misses_absent + space->counts.misses_unset + space->counts.misses_below;
}

static void metrics_put_spaces(const struct admin_figures *figures, struct evbuffer *out)
{
    each_space(figures, out, "rollcall_records", "gauge", value_held,
               "Records, members or plain items that are there, on the disk too.");
    each_space(figures, out, "rollcall_capacity_records", "gauge", value_capacity,
               "Records or members that the tables there are were made for.");
    each_space(figures, out, "rollcall_free_records", "gauge", value_places,
               "New ids or members that fit before a table has to be dumped, recycled or refused.");
    each_space(figures, out, "rollcall_records_recycled_total", "counter", value_recycled,
               "Records that went with their tables, and plain items evicted.");
    each_space(figures, out, "rollcall_hits_total", "counter", value_hits, "Keys read and found.");
    each_space(figures, out, "rollcall_misses_total", "counter", value_misses,
               "Keys read and not found.");
    each_space(figures, out, "rollcall_changes_total", "counter", value_changes, "Changes made.");
    each_space(figures, out, "rollcall_bad_keys_total", "counter", value_bad_keys,
               "Keys that begin like the space's and do not parse.");
    each_space(figures, out, "rollcall_ids_ahead", "gauge", value_ahead,
               "Ids far ahead of all others, kept apart.");
    each_space(figures, out, "rollcall_table_waits", "gauge", value_waits,
               "Times that requests waited for a table.");
    each_space(figures, out, "rollcall_aux_records", "gauge", value_aux,
               "Numbers that are too large for their slots.");
    each_space(figures, out, "rollcall_dumped_bytes", "gauge", value_dumped_bytes,
               "Bytes of the files of dumped tables.");
    family(out, "rollcall_bytes_per_record", "gauge",
           "Bytes an id or member takes in full tables; planned, if none is full.");
    for (size_t i = 0; i < figures->space_count; i++) {
        const struct admin_space *space = &figures->spaces[i];

        if (space->kind != SPACE_PLAIN) {
            evbuffer_add_printf(out, "rollcall_bytes_per_record{space=\"%s\"} %.4g\n", space->name,
                                admin_space_bytes_each(space));
        }
    }
}

static void metrics_put_refusals(const struct admin_figures *figures, struct evbuffer *out)
{
    family(out, "rollcall_refused_total", "counter", "Operations refused, by why.");
    for (size_t i = 0; i < figures->space_count; i++) {
        for (unsigned reason = 0; reason < ADMIN_REFUSALS_N; reason++) {
            evbuffer_add_printf(out,
                                "rollcall_refused_total{space=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
                                figures->spaces[i].name, admin_refusal_names[reason],
                                admin_refused(&figures->spaces[i], reason));
        }
    }
}

static void metrics_put_memory(const struct admin_figures *figures, struct evbuffer *out)
{
    static const char *const kinds[ENGINE_MEMORY_KINDS] = {
        [ENGINE_MEMORY_TABLES] = "tables",   [ENGINE_MEMORY_AUX] = "aux",
        [ENGINE_MEMORY_EXTEND] = "extend",   [ENGINE_MEMORY_COLD] = "cold",
        [ENGINE_MEMORY_FILTERS] = "filters", [ENGINE_MEMORY_PLAIN] = "plain",
    };

    family(out, "rollcall_memory_bytes", "gauge", "Memory that a space holds, by kind.");
    for (size_t i = 0; i < figures->space_count; i++) {
        const struct admin_space *space = &figures->spaces[i];

        for (size_t kind = 1; kind < ENGINE_MEMORY_KINDS; kind++) {
            if (space->memory[kind].held_bytes > 0) {
                evbuffer_add_printf(out,
                                    "rollcall_memory_bytes{space=\"%s\",kind=\"%s\"} %" PRIu64 "\n",
                                    space->name, kinds[kind], space->memory[kind].held_bytes);
            }
        }
    }
}

/* ---- tables ---- */

static void put_states(const struct admin_figures *figures, struct evbuffer *out)
{
    static const char *const words[ADMIN_STATES] = {"open", "full", "dumping", "on_disk"};

    family(out, "rollcall_tables", "gauge", "Tables by their state; free: memory for one more.");
    for (size_t i = 0; i < figures->space_count; i++) {
        const struct admin_space *space = &figures->spaces[i];
        uint64_t counts[ADMIN_STATES] = {[ADMIN_DUMPED] = space->tables_left_out};

        if (space->kind == SPACE_PLAIN) {
            continue;
        }
        for (size_t k = 0; k < space->table_count; k++) {
            counts[space->at[k].state]++;
        }
        for (size_t state = 0; state < ADMIN_STATES; state++) {
            evbuffer_add_printf(out, "rollcall_tables{space=\"%s\",state=\"%s\"} %" PRIu64 "\n",
                                space->name, words[state], counts[state]);
        }
        evbuffer_add_printf(out, "rollcall_tables{space=\"%s\",state=\"free\"} %" PRIu64 "\n",
                            space->name, space->spare);
    }
}

/* False: the table has no such figure. */
typedef bool table_value_fn(const struct admin_space *space, const struct admin_table *table,
                            double *value);

#define TABLE_VALUE(function, expression, condition)                                               \
    static bool function(const struct admin_space *space, const struct admin_table *table,         \
                         double *value)                                                            \
    {                                                                                              \
        (void)space;                                                                               \
        *value = (double)(expression);                                                             \
        return condition;                                                                          \
    }
TABLE_VALUE(table_records, table->records + table->members, true)
TABLE_VALUE(table_capacity, table->capacity, true)
TABLE_VALUE(table_min, table->first_id, true)
TABLE_VALUE(table_max, table->last_id, true)
TABLE_VALUE(table_rate, table->rate, space->kind == SPACE_PHANTOM)
TABLE_VALUE(filter_members, table->members, space->kind == SPACE_PHANTOM)
TABLE_VALUE(filter_capacity, table->capacity, space->kind == SPACE_PHANTOM)

/* printf is slow with reals, and most are whole. */
static void metrics_put_value(struct evbuffer *out, double value)
{
    bool is_whole = value < (double)(1ull << 53) && value == (double)(uint64_t)value;

    if (is_whole) {
        evbuffer_add_printf(out, "%" PRIu64 "\n", (uint64_t)value);
    } else {
        evbuffer_add_printf(out, "%.17g\n", value);
    }
}

/*
 * Labels are the serial modulo ADMIN_TABLES_MAX, so that they do not grow without end; where two
 * tables have one, the newer has it.
 */
static void metrics_each_table(const struct admin_figures *figures, struct evbuffer *out,
                               const char *name, table_value_fn *value, const char *help)
{
    family(out, name, "gauge", help);
    for (size_t i = 0; i < figures->space_count; i++) {
        const struct admin_space *space = &figures->spaces[i];
        bool taken[ADMIN_TABLES_MAX] = {false};

        for (size_t k = space->table_count; k-- > 0;) {
            unsigned label = (unsigned)(space->at[k].serial % ADMIN_TABLES_MAX);
            double number;

            if (!taken[label] && value(space, &space->at[k], &number)) {
                evbuffer_add_printf(out, "%s{space=\"%s\",table=\"%u\"} ", name, space->name,
                                    label);
                metrics_put_value(out, number);
            }
            taken[label] = true;
        }
    }
}

static void put_tables(const struct admin_figures *figures, struct evbuffer *out)
{
    put_states(figures, out);
    metrics_each_table(figures, out, "rollcall_table_records", table_records,
                       "Records or members of a table.");
    metrics_each_table(figures, out, "rollcall_table_capacity_records", table_capacity,
                       "Records or members that a table was made for.");
    metrics_each_table(figures, out, "rollcall_table_id_min", table_min,
                       "The smallest id in a table.");
    metrics_each_table(figures, out, "rollcall_table_id_max", table_max,
                       "The largest id in a table.");
    metrics_each_table(figures, out, "rollcall_bloom_false_positive_ratio", table_rate,
                       "Share of wrong answers of a filter now, from its set bits.");
    metrics_each_table(figures, out, "rollcall_bloom_insertions", filter_members,
                       "Members of a filter.");
    metrics_each_table(figures, out, "rollcall_bloom_capacity", filter_capacity,
                       "Members that a filter holds at its target.");
    family(out, "rollcall_bloom_target_ratio", "gauge",
           "The share of wrong answers that is configured.");
    for (size_t i = 0; i < figures->space_count; i++) {
        if (figures->spaces[i].kind == SPACE_PHANTOM) {
            evbuffer_add_printf(out, "rollcall_bloom_target_ratio{space=\"%s\"} %.9g\n",
                                figures->spaces[i].name, figures->spaces[i].target);
        }
    }
}

/* ---- the disk ---- */

static void put_journal(const struct journal_stats *journal, struct evbuffer *out)
{
    counter(out, "rollcall_journal_bytes_total", journal->head,
            "Bytes of changes put into the journal, ever.");
    counter(out, "rollcall_journal_syncs_total", journal->syncs, "Times it was synced.");
    counter(out, "rollcall_journal_refusals_total", journal->reserve_failures,
            "Times it had no room for a change.");
    real(out, "rollcall_journal_fsync_lag_seconds", "gauge",
         (double)journal->unsynced_us / US_PER_S, "Age of the oldest change that is not durable.");
    gauge(out, "rollcall_journal_buffer_used_bytes", journal->buffer_used_bytes,
          "Changes that are not on the disk yet.");
    gauge(out, "rollcall_journal_segment_bytes", journal->segment_bytes,
          "Bytes of its files on the disk.");
    gauge(out, "rollcall_journal_failed", journal->failed,
          "1 when it takes no change before a restart.");
    gauge(out, "rollcall_journal_disk_full", journal->full,
          "1 when there is no room for a further file of it.");
}

static void metrics_put_data(const struct admin_figures *figures, struct evbuffer *out)
{
    const struct data_stats *data = &figures->data;

    counter(out, "rollcall_checkpoints_total", data->checkpoints, "Checkpoints made.");
    counter(out, "rollcall_checkpoint_failures_total", data->checkpoint_failures,
            "Checkpoints that failed.");
    gauge(out, "rollcall_checkpoint_last_time_seconds", data->last_checkpoint_s,
          "When the last one ended, in seconds since 1970; 0: none yet.");
    real(out, "rollcall_checkpoint_last_duration_seconds", "gauge",
         (double)data->last_checkpoint_us / US_PER_S, "How long it took.");
    counter(out, "rollcall_dumps_total", data->dumps, "Tables dumped.");
    counter(out, "rollcall_dump_failures_total", data->dump_failures, "Dumps that failed.");
    counter(out, "rollcall_merges_total", data->merges, "Files of dumped tables written anew.");
    gauge(out, "rollcall_table_files", data->table_files, "Files of tables in the directory.");
    gauge(out, "rollcall_table_file_bytes", data->table_file_bytes, "Their bytes.");
    gauge(out, "rollcall_data_filesystem_bytes", figures->disk_bytes,
          "Size of the file system of the data directory.");
    gauge(out, "rollcall_data_filesystem_free_bytes", figures->disk_free_bytes,
          "What is free of it.");
}

static void put_cold(const struct cold_stats *cold, struct evbuffer *out)
{
    counter(out, "rollcall_disk_reads_total", cold->reads, "Pages of dumped tables read.");
    counter(out, "rollcall_disk_read_errors_total", cold->failed, "Reads that failed.");
    counter(out, "rollcall_disk_damaged_pages_total", cold->bad_pages,
            "Pages that were not what had been written.");
    counter(out, "rollcall_disk_read_busy_total", cold->busy,
            "Reads refused because the queue was full.");
    gauge(out, "rollcall_disk_read_queue_depth", cold->depth, "Pages queued or being read.");
    counter(out, "rollcall_cold_cache_hits_total", cold->hits, "Pages found in memory.");
    counter(out, "rollcall_cold_cache_misses_total", cold->misses, "Pages not found there.");
    gauge(out, "rollcall_cold_cache_bytes", cold->cached_bytes, "Memory of pages that were read.");
}

void admin_make_metrics(const struct admin_view *view, struct evbuffer *out)
{
    const struct admin_figures *figures = view->figures;

    put_build(view, out);
    if (!view->serving) {
        return;
    }
    put_process(figures, out);
    put_net(figures, out);
    put_commands(&figures->commands, out);
    put_watches(figures, out);
    metrics_put_spaces(figures, out);
    metrics_put_refusals(figures, out);
    metrics_put_memory(figures, out);
    put_tables(figures, out);
    if (figures->has_journal) {
        put_journal(&figures->journal, out);
    }
    if (figures->has_data) {
        metrics_put_data(figures, out);
    }
    if (figures->has_cold) {
        put_cold(&figures->cold, out);
    }
    counter(out, "rollcall_clock_jumps_total", admin_history_jumps(view->history),
            "Times the wall clock was set by two seconds or more.");
}
