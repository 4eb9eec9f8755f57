/*
 * settings_memory.c: what a configuration holds of memory at most, part by part; and what cold
 * reads are told of it.
 */
#include <string.h>

#include "base/check.h"
#include "base/size.h"
#include "config/forecast.h"
#include "config/settings_draft.h"
#include "row/row.h"

#define BUFFERS_SHARE     16 /* connections' buffers: this part of memory */
#define BUFFERS_BYTES_MIN (16ull << 20)
#define MIB               1048576.0

uint64_t settings_buffer_bytes(const struct settings *settings)
{
    uint64_t share = settings->memory_bytes / BUFFERS_SHARE;

    return share < BUFFERS_BYTES_MIN ? BUFFERS_BYTES_MIN : share;
}

uint64_t settings_space_bytes(const struct space_settings *space)
{
    struct forecast forecast;

    forecast_space(space, 0, &forecast);
    return forecast.bytes;
}

/* One line of the sum: what, and how much. */
static uint64_t add_part(FILE *out, uint64_t bytes, const char *what)
{
    if (out != NULL) {
        fprintf(out, "    %-52s %10.1f MiB\n", what, (double)bytes / MIB);
    }
    return bytes;
}

static uint64_t add_space(FILE *out, const struct space_settings *space, uint32_t number)
{
    char table[SIZE_TEXT_MAX], what[OPTIONS_TEXT_MAX + 80];
    struct forecast forecast;

    forecast_space(space, number, &forecast);
    size_exact(table, space->row.table_bytes);
    if (space->kind == SPACE_PLAIN) {
        snprintf(what, sizeof(what), "space %s", space->name);
    } else {
        snprintf(what, sizeof(what), "space %s: %u x %s and pools%s", space->name,
                 forecast.tables + forecast.spare, table,
                 space->below_bytes > 0 ? ", of cold.cache" : "");
    }
    return add_part(out, forecast.bytes, what);
}

bool settings_dumps(const struct settings *settings)
{
    for (size_t i = 0; settings->data != NULL && i < settings->space_count; i++) {
        if (settings->spaces[i].oldest == SPACE_OLDEST_DUMP) {
            return true;
        }
    }
    return false;
}

void settings_cold_config(const struct settings *settings, struct cold_config *config)
{
    uint64_t pages = settings->cold.cache_bytes;

    for (size_t i = 0; i < settings->space_count; i++) {
        pages -= settings->spaces[i].below_bytes;
    }
    *config = (struct cold_config){
        .threads = settings->cold.threads,
        .queue = settings->cold.queue,
        .cache_bytes = pages,
    };
}

uint64_t settings_cold_bytes(const struct settings *settings)
{
    struct cold_config config;

    if (!settings_dumps(settings)) {
        return 0;
    }
    settings_cold_config(settings, &config);
    return cold_memory_bytes(&config) + settings->cold.overlay_bytes;
}

uint64_t settings_memory_sum(const struct settings *settings, FILE *out)
{
    char what[64];
    uint64_t sum = 0;

    for (size_t i = 0; i < settings->space_count; i++) {
        sum += add_space(out, &settings->spaces[i], (uint32_t)i);
    }
    sum += add_part(out, settings_buffer_bytes(settings), "buffers of connections");
    snprintf(what, sizeof(what), "%u worker%s", settings->threads,
             settings->threads == 1 ? "" : "s");
    sum += add_part(out, settings->threads * SETTINGS_WORKER_BYTES, what);
    if (settings->admin != NULL) {
        sum += add_part(out, SETTINGS_ADMIN_BYTES, "status page and metrics");
    }
    if (settings->tls.enabled) {
        sum += add_part(out, (uint64_t)settings->max_connections * NET_TLS_SESSION_BYTES,
                        "TLS of idle connections");
    }
    if (settings->data != NULL) {
        sum += add_part(out, settings->journal.buffer_bytes, "buffer of the journal");
    }
    if (settings->replication.name != NULL) {
        snprintf(what, sizeof(what), "%u followers%s", SETTINGS_FEEDS_MAX,
                 settings->replication.follow != NULL ? ", and following" : "");
        sum += add_part(out,
                        SETTINGS_FEEDS_MAX * SETTINGS_FEED_BYTES +
                            (settings->replication.follow != NULL ? SETTINGS_FOLLOW_BYTES : 0),
                        what);
    }
    if (settings_dumps(settings)) {
        sum += add_part(out, settings_cold_bytes(settings), "cold reads and overlays");
    }
    add_part(out, sum, "together");
    return sum;
}
