/* stats without an argument: memcached's names, every one that a tool was seen to need. */
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/huge.h"
#include "base/log.h"
#include "base/memory.h"
#include "net/tls.h"
#include "request/stats_private.h"

/* Names that tools and exporters read and that mean nothing here: always 0. */
static const char *const zeros[] = {
    "response_obj_oom",
    "response_obj_count",
    "response_obj_bytes",
    "read_buf_count",
    "read_buf_bytes",
    "read_buf_bytes_free",
    "read_buf_oom",
    "reserved_fds",
    "get_flushed",
    "time_in_listen_disabled_us",
    "hash_power_level",
    "hash_bytes",
    "hash_is_expanding",
    "slab_reassign_rescues",
    "slab_reassign_chunk_rescues",
    "slab_reassign_evictions_nomem",
    "slab_reassign_inline_reclaim",
    "slab_reassign_busy_items",
    "slab_reassign_busy_deletes",
    "slab_reassign_busy_nomem",
    "slab_reassign_running",
    "slabs_moved",
    "lru_crawler_running",
    "lru_crawler_starts",
    "lru_maintainer_juggles",
    "malloc_fails",
    "log_worker_dropped",
    "log_worker_written",
    "log_watcher_skipped",
    "log_watcher_sent",
    "log_watchers",
    "unexpected_napi_ids",
    "round_robin_fallback",
    "slab_global_page_pool",
    "expired_unfetched",
    "evicted_unfetched",
    "evicted_active",
    "reclaimed",
    "crawler_reclaimed",
    "crawler_items_checked",
    "lrutail_reflocked",
    "moves_to_cold",
    "moves_to_warm",
    "moves_within_lru",
    "direct_reclaims",
    "lru_bumps_dropped",
};

struct figure {
    const char *name;
    size_t offset;
};

static void emit_time(struct stats_out *out, const char *name, const struct timeval *time)
{
    char text[48];

    snprintf(text, sizeof(text), "%lld.%06ld", (long long)time->tv_sec, (long)time->tv_usec);
    stats_text(out, name, text);
}

static void emit_process(struct stats_out *out)
{
    const struct server *server = out->worker->server;
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    stats_number(out, "pid", (uint64_t)getpid());
    stats_number(out, "uptime", clock_monotonic_us() / 1000000 - server->started_s);
    stats_number(out, "time", clock_wall_s());
    stats_text(out, "version", out->worker->settings->version_shown);
    stats_text(out, "server_name", SERVER_NAME);
    stats_text(out, "server_version", PACKAGE_VERSION);
    stats_text(out, "libevent", net_library_version());
    stats_number(out, "pointer_size", 8 * sizeof(void *));
    emit_time(out, "rusage_user", &usage.ru_utime);
    emit_time(out, "rusage_system", &usage.ru_stime);
    stats_number(out, "resident_bytes", memory_resident_bytes());
    struct huge_bytes huge = huge_sums();
    stats_number(out, "tables_resident_bytes", huge.resident);
    stats_number(out, "huge_page_bytes", huge.huge);
    stats_number(out, "log_lost", log_lost() - metric_read(&server->log_lost_base));
}

static void emit_connections(struct stats_out *out)
{
    static const struct figure figures[] = {
#define ROW(name, meaning) {#name, offsetof(struct net_metrics, name)},
        NET_METRICS(ROW)
#undef ROW
    };
    const struct server *server = out->worker->server;
    struct net_metrics both[2]; /* the sums, and what a reset subtracts */

    net_metrics_sum(server->net, &both[0]);
#define COPY(name, meaning) atomic_init(&both[1].name, metric_read(&server->net_base.name));
    NET_METRICS(COPY)
#undef COPY
    stats_number(out, "max_connections", out->worker->settings->max_connections);
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        stats_number(out, figures[i].name, stats_sum(both, sizeof(both[0]), 1, figures[i].offset));
    }
    if (out->worker->settings->tls.context != NULL) {
        stats_number(out, "time_since_server_cert_refresh",
                     net_tls_context_age_s(out->worker->settings->tls.context));
    }
    stats_number(out, "idle_kicks", /* memcached's name of idle_closed */
                 stats_sum(both, sizeof(both[0]), 1, offsetof(struct net_metrics, idle_closed)));
    stats_number(out, "connection_structures", metric_read(&both[0].curr_connections));
    stats_number(out, "accepting_conns",
                 metric_read(&both[0].curr_connections) < out->worker->settings->max_connections);
}

static void emit_commands(struct stats_out *out, uint64_t recycled)
{
    static const struct figure figures[] = {
#define ROW(name, meaning) {#name, offsetof(struct command_metrics, name)},
        COMMAND_METRICS(ROW)
#undef ROW
    };
    const struct server *server = out->worker->server;

    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        uint64_t sum = stats_sum(server->metrics, sizeof(server->metrics[0]),
                                 server_counting(server), figures[i].offset);

        if (figures[i].offset == offsetof(struct command_metrics, evictions)) {
            sum += recycled + metric_read(&server->recycled_gone) -
                   metric_read(&server->recycled_base);
        }
        stats_number(out, figures[i].name, sum);
    }
}

/* What the engines hold. */
static void emit_items(struct stats_out *out, const struct engine_memory *kinds)
{
    uint64_t bytes = 0;

    for (size_t i = 1; i < ENGINE_MEMORY_KINDS; i++) {
        bytes += kinds[i].used_bytes;
    }
    stats_number(out, "bytes", bytes);
    /* aux entries are numbers of records that are counted already */
    stats_number(out, "curr_items",
                 kinds[ENGINE_MEMORY_TABLES].items + kinds[ENGINE_MEMORY_EXTEND].items +
                     kinds[ENGINE_MEMORY_FILTERS].items + kinds[ENGINE_MEMORY_PLAIN].items);
}

static uint64_t refused_memory(const struct stats_out *out)
{
    const struct spaces *spaces = out->worker->spaces;
    uint64_t sum = 0;
    for (size_t i = 0; i < spaces->count; i++) {
        sum +=
            stats_sum(spaces->at[i]->metrics, sizeof(struct space_metrics),
                      out->worker->server->threads, offsetof(struct space_metrics, refused_memory));
    }
    return sum;
}

void stats_general(struct stats_out *out)
{
    struct engine_figures held;

    stats_engines(out->worker->spaces, &held);
    emit_process(out);
    emit_connections(out);
    emit_commands(out, held.recycled);
    stats_number(out, "limit_maxbytes", out->worker->server->memory_bytes);
    stats_number(out, "threads", out->worker->server->threads);
    stats_number(out, "spaces", out->worker->spaces->count);
    emit_items(out, held.memory);
    stats_number(out, "store_no_memory", refused_memory(out));
    for (size_t i = 0; i < sizeof(zeros) / sizeof(zeros[0]); i++) {
        stats_number(out, zeros[i], 0);
    }
    stats_text(out, "slab_reassign_last_busy_status", "none"); /* means nothing too */
    stats_data(out);
}
