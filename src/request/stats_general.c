/* stats without an argument: memcached's names, every one that a tool was seen to need. */
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "request/stats_private.h"

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
    stats_number(out, "connection_structures", metric_read(&both[0].curr_connections));
    stats_number(out, "accepting_conns",
                 metric_read(&both[0].curr_connections) < out->worker->settings->max_connections);
}

static void emit_commands(struct stats_out *out)
{
    static const struct figure figures[] = {
#define ROW(name, meaning) {#name, offsetof(struct command_metrics, name)},
        COMMAND_METRICS(ROW)
#undef ROW
    };
    const struct server *server = out->worker->server;

    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        uint64_t sum = stats_sum(server->metrics, sizeof(server->metrics[0]), server->threads,
                                 figures[i].offset);

        if (figures[i].offset == offsetof(struct command_metrics, evictions)) {
            sum += stats_recycled(server) - metric_read(&server->recycled_base);
        }
        stats_number(out, figures[i].name, sum);
    }
    stats_number(out, "reclaimed", 0);
}

/* What the engines hold. */
static void emit_items(struct stats_out *out)
{
    struct engine_memory kinds[ENGINE_MEMORY_KINDS] = {0};
    uint64_t bytes = 0;

    stats_memory_sum(out->worker->spaces, kinds);
    for (size_t i = 1; i < ENGINE_MEMORY_KINDS; i++) {
        bytes += kinds[i].used_bytes;
    }
    stats_number(out, "bytes", bytes);
    /* aux entries are numbers of records that are counted already */
    stats_number(out, "curr_items",
                 kinds[ENGINE_MEMORY_TABLES].items + kinds[ENGINE_MEMORY_EXTEND].items +
                     kinds[ENGINE_MEMORY_FILTERS].items + kinds[ENGINE_MEMORY_PLAIN].items);
}

void stats_general(struct stats_out *out)
{
    emit_process(out);
    emit_connections(out);
    emit_commands(out);
    stats_number(out, "limit_maxbytes", out->worker->server->memory_bytes);
    stats_number(out, "threads", out->worker->server->threads);
    stats_number(out, "spaces", out->worker->spaces->count);
    emit_items(out);
    stats_data(out);
}
