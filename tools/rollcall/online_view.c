#include "tools/rollcall/online_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/num.h"

#define NAME_MAX_BYTES 128
#define COMMAND_MAX    128
#define SCHEMA_VERSION 1

/* ---- reading ---- */

uint64_t online_number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (json_is_real(value)) {
        return json_real_value(value) > 0 ? (uint64_t)json_real_value(value) : 0;
    }
    return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
}

double online_real(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_number(value) ? json_number_value(value) : -1;
}

const char *online_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL ? text : "";
}

json_t *online_find_space(const json_t *view, const char *name)
{
    json_t *space;
    size_t i;

    json_array_foreach(json_object_get(view, "spaces"), i, space)
    {
        if (strcmp(online_text(space, "name"), name) == 0) {
            return space;
        }
    }
    return NULL;
}

json_t *online_newest(const json_t *space)
{
    const json_t *tables = json_object_get(space, "table_list");
    size_t count = json_array_size(tables);

    return count > 0 ? json_array_get(tables, count - 1) : NULL;
}

/* ---- stats as JSON ---- */

/* A number if it is written like one. */
static json_t *value_of(const char *text, size_t length)
{
    uint64_t number;
    char *end;

    if (num_parse(text, length, &number) && number <= INT64_MAX) {
        return json_integer((json_int_t)number);
    }
    double real = strtod(text, &end);

    if (length > 0 && end == text + length && strspn(text, "0123456789.") == length) {
        return json_real(real);
    }
    return json_stringn(text, length);
}

struct view_stats {
    json_t *figures;
    char error[ONLINE_ERROR_MAX]; /* the line that was none; "": all were */
};

/* "STAT name value" */
static void take_stat(void *context, const char *line, size_t length)
{
    struct view_stats *stats = context;
    const char *name = line + strlen("STAT ");
    char key[NAME_MAX_BYTES];

    if (strncmp(line, "STAT ", strlen("STAT ")) != 0) {
        if (strcmp(line, "END") != 0) {
            snprintf(stats->error, sizeof(stats->error), "%.*s", (int)length, line);
        }
        return;
    }
    size_t name_length = strcspn(name, " ");
    const char *value = name + name_length + (name[name_length] == ' ');

    snprintf(key, sizeof(key), "%.*s", (int)name_length, name);
    json_t *made = value_of(value, (size_t)(line + length - value));

    json_object_set_new(stats->figures, key, made != NULL ? made : json_null()); /* no UTF-8 */
}

json_t *online_stats(struct online_link *link, const char *command)
{
    struct view_stats stats = {.figures = json_object()};
    char line[COMMAND_MAX];
    bool good;

    snprintf(line, sizeof(line), "%s\r\n", command);
    good = online_ask(link, line, take_stat, &stats);
    if (good && *stats.error != '\0') {
        good = online_fail(link, EXIT_STATUS_REFUSED, "`%s` is answered %.200s: is it a rollcalld?",
                           command, stats.error);
    }
    if (!good) {
        json_decref(stats.figures);
        return NULL;
    }
    return stats.figures;
}

/* "a:b" of names: the object a, made if it is new, and the rest of the name. */
static json_t *object_in(json_t *into, const char *name, const char **rest)
{
    const char *colon = strchr(name, ':');
    char key[NAME_MAX_BYTES];

    if (colon == NULL) {
        return NULL;
    }
    snprintf(key, sizeof(key), "%.*s", (int)(colon - name), name);
    if (json_object_get(into, key) == NULL) {
        json_object_set_new(into, key, json_object());
    }
    *rest = colon + 1;
    return json_object_get(into, key);
}

/* Figures "a:name" as objects by a, in the order they came. */
static json_t *grouped(const json_t *stats)
{
    json_t *groups = json_object();
    const char *name, *rest;
    json_t *value;

    json_object_foreach((json_t *)stats, name, value)
    {
        json_t *group = object_in(groups, name, &rest);

        if (group != NULL) {
            json_object_set(group, rest, value);
        }
    }
    return groups;
}

/* ---- a space ---- */

/* Appends the tables of one answer. Returns the id to go on with; 0: that was all. */
static uint64_t add_tables(const char *space, const json_t *stats, json_t *list)
{
    const char *rest, *name, *serial;
    json_t *value, *table;
    json_t *tables = json_object();
    uint64_t more = 0;

    json_object_foreach((json_t *)stats, name, value)
    {
        if (strncmp(name, space, strlen(space)) != 0 || name[strlen(space)] != ':') {
            continue;
        }
        const char *own = name + strlen(space) + 1;

        if (strcmp(own, "more") == 0) {
            more = (uint64_t)json_integer_value(value);
        } else if ((table = object_in(tables, own, &rest)) != NULL) {
            json_object_set(table, rest, value);
        }
    }
    json_object_foreach(tables, serial, table)
    {
        json_object_set_new(table, "serial", value_of(serial, strlen(serial)));
        json_array_append(list, table);
    }
    json_decref(tables);
    return more;
}

/* Names states as /status.json does: closed is full, and the oldest of these are being dumped. */
static void name_states(json_t *space, json_t *list)
{
    uint64_t leaving = online_number(space, "leaving_tables");
    json_t *table;
    size_t i;

    json_array_foreach(list, i, table)
    {
        const char *state = online_text(table, "state");
        const char *word = "open";

        if (online_number(table, "cold") != 0) {
            word = "on_disk";
        } else if (strcmp(state, "closed") == 0) {
            word = leaving > 0 ? "dumping" : "full";
            leaving -= leaving > 0;
        }
        json_object_set_new(table, "state", json_string(word));
    }
}

static bool view_tables(struct online_link *link, json_t *space, enum online_depth depth)
{
    json_t *list = json_array();
    uint64_t from = depth == ONLINE_NEWEST ? INT64_MAX : 0;
    char command[COMMAND_MAX];

    json_object_set_new(space, "table_list", list);
    if (strcmp(online_text(space, "kind"), "plain") == 0) {
        return true;
    }
    do {
        snprintf(command, sizeof(command), "stats tables %s %" PRIu64, online_text(space, "name"),
                 from);
        json_t *stats = online_stats(link, command);

        if (stats == NULL) {
            return false;
        }
        from = add_tables(online_text(space, "name"), stats, list);
        json_decref(stats);
    } while (from != 0 && depth == ONLINE_TABLES);
    name_states(space, list);
    return true;
}

/* What `stats settings` says of the space: its names have '_' where the space's has '-'. */
static const char *setting_of(const json_t *settings, const char *space, const char *key)
{
    char name[NAME_MAX_BYTES];

    snprintf(name, sizeof(name), "space_%s_%s", space, key);
    for (char *at = name; *at != '\0'; at++) {
        *at = *at == '-' ? '_' : *at;
    }
    return online_text(settings, name);
}

/* "{repost:20,like:20}" as "repost:20 like:20" */
static void add_slots(json_t *space, const char *slots)
{
    char text[NAME_MAX_BYTES * 8] = "";
    size_t length = strlen(slots);

    if (length >= 2) {
        snprintf(text, sizeof(text), "%.*s", (int)length - 2, slots + 1);
    }
    for (char *at = text; *at != '\0'; at++) {
        *at = *at == ',' ? ' ' : *at;
    }
    json_object_set_new(space, "slots", json_string(text));
}

/* Bytes an id, as the status page has it, or by the newest table, which is planned like others. */
static double bytes_each(const json_t *space, const json_t *newest)
{
    uint64_t bytes = online_number(newest, "bytes") + online_number(newest, "aux_pool_bytes") +
                     online_number(newest, "extend_pool_bytes");
    uint64_t capacity = online_number(newest, "capacity");

    return online_real(space, "bytes_each") >= 0 ? online_real(space, "bytes_each")
           : capacity > 0                        ? (double)bytes / (double)capacity
                                                 : 0;
}

struct forecast_room online_room(const json_t *space, const json_t *newest)
{
    struct forecast_room room = {
        .capacity = online_number(newest, "capacity"),
        .held = online_number(newest, "records") + online_number(newest, "members"),
        .free_tables = online_number(space, "spare"),
        .any_ids = json_is_true(json_object_get(space, "any_ids")),
        .refuses = strcmp(online_text(space, "oldest"), "refuse") == 0,
    };

    if (room.any_ids && strcmp(online_text(space, "kind"), "counter") == 0) {
        forecast_growing(&room, online_number(space, "records"), online_number(space, "capacity"),
                         online_number(space, "growth_left_bytes"), bytes_each(space, newest));
    }
    return room;
}

/* What follows from the newest table: room, a rate, and when it is full. */
static void add_forecast(json_t *space, const json_t *newest, uint64_t now_s)
{
    uint64_t opened_s = online_number(newest, "opened_at");
    double added = -1;

    if (newest == NULL) {
        return;
    }
    struct forecast_room room = online_room(space, newest);
    if (now_s >= opened_s + ONLINE_RATE_S_MIN) {
        added = (double)room.held / (double)(now_s - opened_s);
    }
    double full_in_s = forecast_full_in_s(&room, added);

    json_object_set_new(space, "free_ids", json_integer((json_int_t)forecast_places(&room)));
    json_object_set_new(space, "added_each_s", added >= 0 ? json_real(added) : json_null());
    json_object_set_new(space, "full_in_s", full_in_s >= 0 ? json_real(full_in_s) : json_null());
}

static bool complete_space(struct online_link *link, json_t *space, const json_t *settings,
                           enum online_depth depth, uint64_t now_s)
{
    const char *name = online_text(space, "name");
    const char *target = setting_of(settings, name, "false_positives");
    bool plain = json_object_get(space, "items") != NULL;

    if (plain) {
        json_object_set_new(space, "kind", json_string("plain"));
    }
    add_slots(space, setting_of(settings, name, "slots"));
    json_object_set_new(space, "any_ids",
                        json_boolean(strcmp(online_text(space, "ids"), "any") == 0));
    json_object_set_new(space, "held",
                        json_integer((json_int_t)(online_number(space, "records") +
                                                  online_number(space, "members") +
                                                  online_number(space, "items"))));
    json_object_set_new(
        space, "recycled",
        json_integer((json_int_t)online_number(space, plain ? "evicted" : "recycled_ids")));
    if (*target != '\0') {
        json_object_set_new(space, "false_positives_target", json_real(strtod(target, NULL)));
    }
    if (!view_tables(link, space, depth)) {
        return false;
    }
    add_forecast(space, online_newest(space), now_s);
    return true;
}

/* ---- the daemon ---- */

/* N:id, N:id_share as a list. */
static json_t *hot_list(const json_t *stats, const char *kind)
{
    json_t *list = json_array();
    char name[NAME_MAX_BYTES];

    for (unsigned i = 1;; i++) {
        snprintf(name, sizeof(name), "%u:%s", i, kind);
        json_t *key = json_object_get(stats, name);

        if (key == NULL) {
            return list;
        }
        snprintf(name, sizeof(name), "%u:%s_share", i, kind);
        json_t *top = json_object();

        json_object_set(top, "key", key);
        json_object_set(top, "share", json_object_get(stats, name));
        json_array_append_new(list, top);
    }
}

static void add_disk(json_t *view, const json_t *stats)
{
    static const char *const names[][2] = {
        {"journal_head", "journal_head"},
        {"journal_durable", "journal_durable"},
        {"journal_unsynced_us", "journal_unsynced_us"},
        {"journal_buffer_used_bytes", "journal_buffer_used_bytes"},
        {"checkpoints", "checkpoints"},
        {"checkpoint_failures", "checkpoint_failures"},
        {"last_checkpoint", "last_checkpoint"},
        {"dumps", "dumps"},
        {"dump_failures", "dump_failures"},
        {"disk_reads", "cold_reads"},
        {"disk_read_queue", "cold_queue"},
        {"damaged_pages", "cold_bad_pages"},
    };
    json_t *disk = json_object_get(stats, "journal_head") != NULL ? json_object() : json_null();

    for (size_t i = 0; json_is_object(disk) && i < sizeof(names) / sizeof(names[0]); i++) {
        json_object_set_new(disk, names[i][0],
                            json_integer((json_int_t)online_number(stats, names[i][1])));
    }
    if (json_is_object(disk)) {
        json_object_set_new(disk, "journal_full",
                            json_boolean(online_number(stats, "journal_full")));
        json_object_set_new(disk, "journal_failed",
                            json_boolean(online_number(stats, "journal_failed")));
    }
    json_object_set_new(view, "disk", disk);
}

static void add_connections(json_t *view, const json_t *stats)
{
    static const char *const names[] = {"curr_connections", "total_connections",
                                        "rejected_connections", "bytes_read", "bytes_written"};
    json_t *connections = json_object();

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        json_object_set(connections, names[i], json_object_get(stats, names[i]));
    }
    json_object_set_new(view, "connections", connections);
}

/* As the page has it: `stats` tells a follower's state with what it is, and no trouble as `none`.
 */
static void add_replication(json_t *view, const json_t *stats)
{
    static const char *const names[] = {"role",  "leader", "lag_bytes", "lag_us",   "followers",
                                        "epoch", "reign",  "lease_us",  "waits_for"};
    static const char *const flags[] = {"readable", "in_sync"};
    const char *dash = strchr(online_text(stats, "state"), '-');
    const char *trouble = online_text(stats, "trouble");
    json_t *replication = json_object();

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (json_object_get(stats, names[i]) != NULL) {
            json_object_set(replication, names[i], json_object_get(stats, names[i]));
        }
    }
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (json_object_get(stats, flags[i]) != NULL) {
            json_object_set_new(replication, flags[i],
                                json_boolean(online_number(stats, flags[i]) != 0));
        }
    }
    if (json_is_string(json_object_get(replication, "lease_us"))) { /* none: it has no agent */
        json_object_del(replication, "lease_us");
    }
    if (dash != NULL) {
        json_object_set_new(replication, "state", json_string(dash + 1));
        json_object_set_new(replication, "trouble",
                            json_string(strcmp(trouble, "none") == 0 ? "" : trouble));
    }
    json_object_set_new(view, "replication", replication);
}

/* The view without its spaces. */
static json_t *begin_view(const char *server, const json_t *stats, json_t *hot, json_t *latency)
{
    json_t *view = json_object();

    json_object_set_new(view, "schema_version", json_integer(SCHEMA_VERSION));
    json_object_set(view, "version", json_object_get(stats, "server_version"));
    json_object_set_new(view, "state", json_string("serving"));
    json_object_set_new(view, "address", json_string(server));
    json_object_set(view, "time", json_object_get(stats, "time"));
    json_object_set(view, "uptime_s", json_object_get(stats, "uptime"));
    json_object_set(view, "memory_limit_bytes", json_object_get(stats, "limit_maxbytes"));
    json_object_set(view, "resident_bytes", json_object_get(stats, "resident_bytes"));
    json_object_set(view, "max_connections", json_object_get(stats, "max_connections"));
    json_object_set(view, "commands", (json_t *)stats);
    add_connections(view, stats);
    json_object_set_new(
        view, "hot",
        json_pack("{s:o, s:o}", "ids", hot_list(hot, "id"), "members", hot_list(hot, "member")));
    json_object_set_new(view, "latency_since_start", grouped(latency));
    add_disk(view, stats);
    return view;
}

static bool add_spaces(struct online_link *link, json_t *view, const json_t *spaces,
                       const json_t *settings, enum online_depth depth)
{
    json_t *groups = grouped(spaces);
    json_t *list = json_array();
    uint64_t now_s = online_number(view, "time");
    const char *name;
    json_t *space;
    bool good = true;

    json_object_set_new(view, "spaces", list);
    json_object_foreach(groups, name, space)
    {
        json_object_set_new(space, "name", json_string(name));
        json_array_append(list, space);
        good = good && complete_space(link, space, settings, depth, now_s);
    }
    json_decref(groups);
    return good;
}

/* NULL: told. */
static json_t *view_of_stats(struct online_link *link, const char *server, enum online_depth depth)
{
    static const char *const commands[] = {"stats",        "stats hot",      "stats latency",
                                           "stats spaces", "stats settings", "stats replication"};
    json_t *answers[sizeof(commands) / sizeof(commands[0])] = {NULL};
    size_t count = 0;
    json_t *view = NULL;

    while (count < sizeof(commands) / sizeof(commands[0])) {
        answers[count] = online_stats(link, commands[count]);
        if (answers[count] == NULL) {
            break;
        }
        count++;
    }
    if (count == sizeof(commands) / sizeof(commands[0])) {
        view = begin_view(server, answers[0], answers[1], answers[2]);
        add_replication(view, answers[5]);
        if (!add_spaces(link, view, answers[3], answers[4], depth)) {
            json_decref(view);
            view = NULL;
        }
    }
    for (size_t i = 0; i < count; i++) {
        json_decref(answers[i]);
    }
    return view;
}

static json_t *view_of_page(struct online_link *link)
{
    char *body = online_get(link, "/status.json");
    json_t *view = body != NULL ? json_loads(body, 0, NULL) : NULL;

    bool answered = body != NULL;

    free(body);
    if (answered && online_number(view, "schema_version") != SCHEMA_VERSION) {
        online_fail(link, EXIT_STATUS_NO_ANSWER,
                    "its /status.json is not of schema %d: is it the status page of a rollcalld of "
                    "this version?",
                    SCHEMA_VERSION);
        json_decref(view);
        return NULL;
    }
    return view;
}

json_t *online_view(const struct online_target *target, enum online_depth depth, bool quiet,
                    enum exit_status *status, char error[ONLINE_ERROR_MAX])
{
    struct online_link *link = online_open(target, quiet);
    json_t *view = NULL;

    if (online_status(link) == EXIT_STATUS_DONE) {
        view = online_is_http(target) ? view_of_page(link)
                                      : view_of_stats(link, target->wire.server, depth);
    }
    *status = online_status(link);
    snprintf(error, ONLINE_ERROR_MAX, "%s", online_error(link));
    online_close(link);
    return view;
}
