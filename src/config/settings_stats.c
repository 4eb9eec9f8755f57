/* settings_stats.c: a configuration as statistics, and compared with the next. */
#include "config/settings_draft.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "net/net.h"
#include "protocol/auth.h"

/* Where statistics go. */
struct sink {
    const struct settings *settings;
    engine_stat_fn *emit;
    void *context;
};

__attribute__((format(printf, 3, 4))) static void emit(const struct sink *sink, const char *name,
                                                       const char *format, ...)
{
    char text[ENGINE_STAT_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    sink->emit(sink->context, name, text);
}

/* ---- memcached's names ---- */

/* Host and port of the first TCP address; "" and 0 if there is none. */
static void first_tcp(const struct settings *settings, char host[ENGINE_STAT_TEXT_MAX],
                      const char **port)
{
    host[0] = '\0';
    *port = "0";
    for (size_t i = 0; i < settings->listen_count; i++) {
        const char *address = settings->listen[i];
        size_t prefix = strlen(NET_PLAIN_PREFIX);

        address += strncmp(address, NET_PLAIN_PREFIX, prefix) == 0 ? prefix : 0;
        const char *colon = strrchr(address, ':');
        if (*address == '/' || colon == NULL) {
            continue;
        }
        snprintf(host, ENGINE_STAT_TEXT_MAX, "%.*s", (int)(colon - address), address);
        *port = colon + 1;
        return;
    }
}

static const char *first_socket(const struct settings *settings)
{
    for (size_t i = 0; i < settings->listen_count; i++) {
        if (settings->listen[i][0] == '/') {
            return settings->listen[i];
        }
    }
    return "NULL";
}

/* Returns whether anything is ever thrown away to make room. */
static bool evicts(const struct settings *settings)
{
    for (size_t i = 0; i < settings->space_count; i++) {
        const struct space_settings *space = &settings->spaces[i];
        if (space->kind == SPACE_PLAIN || space->role == SPACE_CACHE ||
            space->oldest == SPACE_OLDEST_RECYCLE) {
            return true;
        }
    }
    return false;
}

static uint64_t largest_value(const struct settings *settings)
{
    uint64_t most = SETTINGS_ITEM_BYTES_MAX;

    for (size_t i = 0; i < settings->space_count; i++) {
        const struct space_settings *space = &settings->spaces[i];

        if (space->kind == SPACE_PLAIN && space->item_bytes_max > most) {
            most = space->item_bytes_max;
        }
    }
    return most;
}

static const char *or_null(const char *text)
{
    return text != NULL ? text : "NULL";
}

static void emit_tls(const struct sink *sink)
{
    static const int modes[] = {[SETTINGS_VERIFY_NONE] = 0,
                                [SETTINGS_VERIFY_REQUEST] = 1,
                                [SETTINGS_VERIFY_REQUIRE] = 3,
                                [SETTINGS_VERIFY_ONCE] = 7}; /* bits of OpenSSL's */
    static const char *const versions[] = {[NET_TLS_1_2] = "tlsv1.2", [NET_TLS_1_3] = "tlsv1.3"};
    const struct settings *settings = sink->settings;

    emit(sink, "ssl_enabled", "%s", settings->tls.enabled ? "yes" : "no");
    emit(sink, "ssl_chain_cert", "%s", or_null(settings->tls.certificate));
    emit(sink, "ssl_key", "%s", or_null(settings->tls.key));
    emit(sink, "ssl_verify_mode", "%d", modes[settings->tls.verify]);
    emit(sink, "ssl_keyformat", "%d", settings->tls.key_format == SETTINGS_KEY_DER ? 2 : 1);
    emit(sink, "ssl_ciphers", "%s", or_null(settings->tls.ciphers));
    emit(sink, "ssl_ca_cert", "%s", or_null(settings->tls.ca));
    emit(sink, "ssl_min_version", "%s", versions[settings->tls.version_min]);
}

static void emit_memcached(const struct sink *sink)
{
    const struct settings *settings = sink->settings;
    unsigned level = settings->log_level;
    char host[ENGINE_STAT_TEXT_MAX];
    const char *port;

    first_tcp(settings, host, &port);
    emit(sink, "maxbytes", "%llu", (unsigned long long)settings->memory_bytes);
    emit(sink, "maxconns", "%u", settings->max_connections);
    emit(sink, "tcpport", "%s", port);
    emit(sink, "udpport", "0");
    emit(sink, "inter", "%s", *host ? host : "NULL");
    emit(sink, "verbosity", "%u", level > LOG_LEVEL_INFO ? level - LOG_LEVEL_INFO : 0);
    emit(sink, "oldest", "0");
    emit(sink, "evictions", "%s", evicts(settings) ? "on" : "off");
    emit(sink, "domain_socket", "%s", first_socket(settings));
    emit(sink, "umask", "%o", settings->unix_mode);
    emit(sink, "stat_key_prefix", ":");
    emit(sink, "detail_enabled", "no");
    emit(sink, "num_threads", "%u", settings->threads);
    emit(sink, "reqs_per_event", "%u", settings->requests_per_turn);
    emit(sink, "cas_enabled", "yes");
    emit(sink, "client_flags_size", "4");
    emit(sink, "tcp_backlog", "%u", settings->backlog);
    emit(sink, "binding_protocol", "auto-negotiate");
    emit(sink, "auth_enabled_sasl", "%s", settings->auth != NULL ? "yes" : "no");
    emit(sink, "auth_enabled_ascii", "%s",
         settings->auth_file != NULL ? settings->auth_file : "no");
    emit(sink, "item_size_max", "%llu", (unsigned long long)largest_value(settings));
    emit(sink, "maxconns_fast", "yes");
    emit(sink, "flush_enabled", "%s", settings->flush_all ? "yes" : "no");
    emit(sink, "dump_enabled", "%s", settings->list_keys ? "yes" : "no");
    emit_tls(sink);
}

/* Figures that exporters look for and nothing here has: a crawler, slabs, segments of an LRU. */
static void emit_foreign(const struct sink *sink)
{
    static const struct {
        const char *name;
        const char *text;
    } foreign[] = {
        {"growth_factor", "1.00"},   {"chunk_size", "0"},          {"slab_reassign", "no"},
        {"slab_automove", "0"},      {"slab_chunk_max", "0"},      {"hash_algorithm", "xxh3"},
        {"hashpower_init", "0"},     {"tail_repair_time", "0"},    {"lru_crawler", "no"},
        {"lru_crawler_sleep", "0"},  {"lru_crawler_tocrawl", "0"}, {"lru_maintainer_thread", "no"},
        {"lru_segmented", "no"},     {"hot_lru_pct", "0"},         {"warm_lru_pct", "0"},
        {"hot_max_factor", "0.00"},  {"warm_max_factor", "0.00"},  {"temp_lru", "no"},
        {"temporary_ttl", "0"},      {"track_sizes", "no"},        {"watcher_logbuf_size", "0"},
        {"worker_logbuf_size", "0"},
    };
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        emit(sink, foreign[i].name, "%s", foreign[i].text);
    }
}

/* ---- what is no option ---- */

static void emit_limits(const struct sink *sink)
{
    static const struct {
        const char *name;
        unsigned value;
    } limits[] = {
        {"key_max", PROTOCOL_KEY_MAX},           {"line_max", PROTOCOL_LINE_MAX},
        {"get_line_max", PROTOCOL_GET_LINE_MAX}, {"get_keys_block", PROTOCOL_GET_KEYS_BLOCK},
        {"id_value_max", PROTOCOL_VALUE_MAX},    {"auth_request_max", AUTH_REQUEST_MAX},
        {"read_buffer", NET_READ_BYTES},         {"input_max", NET_INPUT_MAX},
        {"output_max", NET_OUTPUT_MAX},          {"write_stall", NET_WRITE_STALL_S},
        {"hold_stall", NET_HOLD_STALL_S},
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        emit(sink, limits[i].name, "%u", limits[i].value);
    }
}

/* ---- ours ---- */

#define SPACES_PREFIX "spaces." /* of keys … */
#define STATS_PREFIX  "space_"  /* … and of statistics, whose names are letters, digits and '_' */

void settings_stat_name(const char *key, char name[SETTINGS_STAT_NAME_MAX])
{
    bool of_space = strncmp(key, SPACES_PREFIX, strlen(SPACES_PREFIX)) == 0;

    snprintf(name, SETTINGS_STAT_NAME_MAX, "%s%s", of_space ? STATS_PREFIX : "",
             key + (of_space ? strlen(SPACES_PREFIX) : 0));
    for (char *at = name; *at != '\0'; at++) {
        if (*at == '-' || *at == '.') {
            *at = '_';
        }
    }
}

static void emit_row(const struct sink *sink, const struct space_settings *space,
                     const struct settings_row *row)
{
    char *text = settings_print_value(sink->settings, space, row, false);
    char key[SETTINGS_STAT_NAME_MAX];

    snprintf(key, sizeof(key), "%s%s%s%s", space ? SPACES_PREFIX : "", space ? space->name : "",
             space ? "." : "", row->option.name);
    emit(sink, key, "%s", *text ? text : "NULL");
    free(text);
}

static bool is_spaces(const struct settings_row *row)
{
    return strcmp(row->option.name, "spaces") == 0;
}

void settings_each_key(const struct settings *settings, engine_stat_fn *emit_stat, void *context)
{
    struct sink sink = {settings, emit_stat, context};

    for (size_t i = 0; i < settings_top_rows.count; i++) {
        const struct settings_row *row = &settings_top_rows.rows[i];
        if (settings_row_valued(row) && !is_spaces(row)) {
            emit_row(&sink, NULL, row);
        }
    }
    for (size_t i = 0; i < settings->space_count; i++) {
        for (size_t j = 0; j < settings_space_rows.count; j++) {
            const struct settings_row *row = &settings_space_rows.rows[j];
            if (settings_row_applies(row, &settings->spaces[i])) {
                emit_row(&sink, &settings->spaces[i], row);
            }
        }
    }
}

/* A key as a statistic. */
static void emit_key(void *context, const char *key, const char *text)
{
    const struct sink *sink = context;
    char name[SETTINGS_STAT_NAME_MAX];

    settings_stat_name(key, name);
    sink->emit(sink->context, name, text);
}

void settings_each(const struct settings *settings, engine_stat_fn *emit_stat, void *context)
{
    struct sink sink = {settings, emit_stat, context};

    emit_memcached(&sink);
    emit_foreign(&sink);
    emit_limits(&sink);
    settings_each_key(settings, emit_key, &sink);
}

/* ---- what a reload changes, and what it cannot ---- */

/* One value before and after; of the top level when both spaces are NULL. */
struct comparison {
    char *before, *after;
    bool differ;
};

static void settings_stats_compare(struct comparison *comparison, const struct settings_row *row,
                                   const struct settings *now,
                                   const struct space_settings *now_space,
                                   const struct settings *next,
                                   const struct space_settings *next_space)
{
    comparison->before = settings_print_value(now, now_space, row, false);
    comparison->after = settings_print_value(next, next_space, row, false);
    comparison->differ = strcmp(comparison->before, comparison->after) != 0;
}

/* A value for the log: in quotes if it would not be one word without. */
static const char *value_text(const char *value, char quoted[LOG_QUOTED_MAX])
{
    size_t length = strlen(value);

    if (length == 0 || strcspn(value, " \"\\") < length) {
        return log_quoted(value, length, quoted);
    }
    return value;
}

/* Emits what differs, and frees it. Returns how many: 0 or 1. */
static size_t tell(struct comparison *comparison, const struct sink *to, const char *name,
                   const char *more)
{
    char before[LOG_QUOTED_MAX], after[LOG_QUOTED_MAX];

    if (comparison->differ && to->emit != NULL) {
        emit(to, name, "old=%.100s new=%.100s%s", value_text(comparison->before, before),
             value_text(comparison->after, after), more);
    }
    free(comparison->before);
    free(comparison->after);
    return comparison->differ;
}

static bool applies(const struct settings_row *row, const struct space_settings *now,
                    const struct space_settings *next)
{
    return settings_row_applies(row, now) && settings_row_applies(row, next);
}

/* Compares the rows that can change while running, or the others. */
static size_t top_differs(const struct sink *now, const struct settings *next,
                          const struct settings_row *row, bool reloadable)
{
    struct comparison comparison;
    bool reloads = (row->option.flags & ROW_RELOADABLE) != 0;

    if (!settings_row_valued(row) || is_spaces(row) || reloads != reloadable) {
        return 0;
    }
    settings_stats_compare(&comparison, row, now->settings, NULL, next, NULL);
    return tell(&comparison, now, row->option.name, "");
}

static size_t space_needs_restart(const struct sink *now, const struct space_settings *space,
                                  const struct space_settings *next, const struct settings_row *row)
{
    struct comparison comparison;
    char name[SETTINGS_STAT_NAME_MAX];

    if (!applies(row, space, next) || settings_row_reloads(row, space, next)) {
        return 0;
    }
    snprintf(name, sizeof(name), "spaces.%s.%s", space->name, row->option.name);
    settings_stats_compare(&comparison, row, NULL, space, NULL, next);
    return tell(&comparison, now, name, "");
}

static const struct space_settings *find_space(const struct settings *settings, const char *name)
{
    for (size_t i = 0; i < settings->space_count; i++) {
        if (strcmp(settings->spaces[i].name, name) == 0) {
            return &settings->spaces[i];
        }
    }
    return NULL;
}

size_t settings_need_restart(const struct settings *now, const struct settings *next,
                             engine_stat_fn *emit_stat, void *context)
{
    struct sink sink = {now, emit_stat, context};
    size_t count = 0; /* spaces come and go without one */

    for (size_t i = 0; i < settings_top_rows.count; i++) {
        count += top_differs(&sink, next, &settings_top_rows.rows[i], false);
    }
    for (size_t i = 0; i < now->space_count; i++) {
        const struct space_settings *space = &now->spaces[i];
        const struct space_settings *other = find_space(next, space->name);
        for (size_t j = 0; other != NULL && j < settings_space_rows.count; j++) {
            count += space_needs_restart(&sink, space, other, &settings_space_rows.rows[j]);
        }
    }
    return count;
}

size_t settings_changes(const struct settings *now, const struct settings *next,
                        engine_stat_fn *emit_stat, void *context)
{
    struct sink sink = {now, emit_stat, context};
    size_t count = 0;

    for (size_t i = 0; i < settings_top_rows.count; i++) {
        count += top_differs(&sink, next, &settings_top_rows.rows[i], true);
    }
    return count;
}

/* Since when a reloaded value holds. */
static const char *since(const struct settings_row *row, const struct space_settings *space)
{
    if ((row->option.flags & ROW_NEXT_TABLE) != 0) {
        return " since=next_table";
    }
    if ((row->option.flags & ROW_NEW_TABLE) != 0 && space->ids == SPACE_IDS_GROWING) {
        return " since=new_table";
    }
    return "";
}

size_t settings_space_changes(const struct space_settings *now, const struct space_settings *next,
                              engine_stat_fn *emit_stat, void *context)
{
    struct sink sink = {NULL, emit_stat, context};
    size_t count = 0;

    for (size_t i = 0; i < settings_space_rows.count; i++) {
        const struct settings_row *row = &settings_space_rows.rows[i];
        struct comparison comparison;

        if (!applies(row, now, next) || !settings_row_reloads(row, now, next)) {
            continue;
        }
        settings_stats_compare(&comparison, row, NULL, now, NULL, next);
        count += tell(&comparison, &sink, row->option.name, since(row, now));
    }
    return count;
}

void settings_space_next(const struct space_settings *now, const struct space_settings *next,
                         struct space_settings *taken)
{
    *taken = *next;
    for (size_t i = 0; i < settings_space_rows.count; i++) {
        const struct settings_row *row = &settings_space_rows.rows[i];
        struct option_value value;

        if (row->option.type == OPTION_CUSTOM || settings_row_reloads(row, now, next)) {
            continue;
        }
        options_load(&row->option, now, &value);
        options_store(&row->option, taken, &value);
    }
}
