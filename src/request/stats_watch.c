/* stats hot, stats slow and stats latency: what workers have noted (request/watch.h). */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "request/stats_private.h"

#define HOT_SHOWN 20

static void emit_hot(struct stats_out *out, enum watch_kind kind, const char *name)
{
    const struct server *server = out->worker->server;
    struct watch_top tops[HOT_SHOWN];
    char prefix[32], share[32];
    double worst;
    size_t count = watch_hottest(server->watches, server->threads, kind, tops, HOT_SHOWN, &worst);

    for (size_t i = 0; i < count; i++) {
        snprintf(prefix, sizeof(prefix), "%zu:%s", i + 1, name);
        stats_text(out, prefix, tops[i].key);
        snprintf(prefix, sizeof(prefix), "%zu:%s_share", i + 1, name);
        snprintf(share, sizeof(share), "%.4f", tops[i].share);
        stats_text(out, prefix, share);
    }
}

/* N:id and N:member, the hottest first, each with its share of the keys lately. */
void stats_hot(struct stats_out *out)
{
    emit_hot(out, WATCH_IDS, "id");
    emit_hot(out, WATCH_MEMBERS, "member");
}

/* The newest first. */
void stats_slow(struct stats_out *out)
{
    const struct server *server = out->worker->server;
    struct watch_request *slow = memory_zalloc(WATCH_SLOW * sizeof(slow[0]));
    size_t count = watch_slowest(server->watches, server->threads, slow);
    uint64_t now_s = clock_monotonic_us() / 1000000;
    char prefix[32];

    for (size_t i = 0; i < count; i++) {
        snprintf(prefix, sizeof(prefix), "%zu", i + 1);
        out->prefix = prefix;
        stats_text(out, "command", watch_class_names[slow[i].class]);
        stats_text(out, "key", slow[i].key);
        stats_number(out, "took_us", slow[i].took_us);
        stats_text(out, "waited_for",
                   slow[i].tier == WATCH_MEMORY ? "worker" : watch_tier_names[slow[i].tier]);
        stats_number(out, "seconds_ago", now_s > slow[i].at_s ? now_s - slow[i].at_s : 0);
    }
    out->prefix = NULL;
    free(slow);
}

/* Emits, for each class and tier that had requests, how many, and quantiles in microseconds. */
void stats_latency(struct stats_out *out)
{
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {
        {"p50_us", 0.5},    {"p90_us", 0.9},      {"p99_us", 0.99},
        {"p999_us", 0.999}, {"p9999_us", 0.9999},
    };
    const struct server *server = out->worker->server;
    struct watch_times times;
    char prefix[32];

    for (int class = 0; class < WATCH_CLASSES; class ++) {
        for (int tier = 0; tier < WATCH_TIERS; tier++) {
            watch_times(server->watches, server->threads, (enum watch_class) class,
                        (enum watch_tier)tier, &times);
            if (times.count == 0) {
                continue;
            }
            snprintf(prefix, sizeof(prefix), "%s_%s", watch_class_names[class],
                     watch_tier_names[tier]);
            out->prefix = prefix;
            stats_number(out, "requests", times.count);
            for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
                stats_number(out, quantiles[i].name, watch_quantile(&times, quantiles[i].share));
            }
        }
    }
    out->prefix = NULL;
}
