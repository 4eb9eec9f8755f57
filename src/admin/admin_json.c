/* admin_json.c: /status.json. README.md has its schema. */
#include <jansson.h>
#include <stdlib.h>

#include "admin/admin_attention.h"
#include "base/check.h"
#include "base/memory.h"

#define SCHEMA_VERSION 1

/* jansson's numbers are signed. */
static json_int_t figure_number(uint64_t value)
{
    return value <= INT64_MAX ? (json_int_t)value : INT64_MAX;
}

/* Sets name: figure for each of a list of figures. */
#define SET(into, from, name)                                                                      \
    json_object_set_new(into, #name, json_integer(figure_number((from)->name)));

static json_t *json_make_table(const struct admin_space *space, const struct admin_table *table)
{
    static const char *const states[ADMIN_STATES] = {"open", "full", "dumping", "on_disk"};
    json_t *object = json_pack("{s:I, s:s}", "serial", figure_number(table->serial), "state",
                               states[table->state]);

#define FIELD(name) SET(object, table, name)
    ADMIN_TABLE_FIGURES(FIELD)
#undef FIELD
    if (space->kind == SPACE_PHANTOM) {
        json_object_set_new(object, "false_positives", json_real(table->rate));
    }
    return object;
}

static json_t *make_memory(const struct admin_space *space)
{
    static const char *const kinds[ENGINE_MEMORY_KINDS] = {NULL,   "tables",  "aux",  "extend",
                                                           "cold", "filters", "plain"};
    json_t *object = json_object();

    for (size_t kind = 1; kind < ENGINE_MEMORY_KINDS; kind++) {
        json_object_set_new(object, kinds[kind],
                            json_integer(figure_number(space->memory[kind].held_bytes)));
    }
    return object;
}

static json_t *make_refused(const struct admin_space *space, const struct admin_trend *trend)
{
    json_t *object = json_object();

    for (unsigned i = 0; i < ADMIN_REFUSALS_N; i++) {
        json_object_set_new(object, admin_refusal_names[i],
                            json_pack("{s:I, s:I}", "total", figure_number(admin_refused(space, i)),
                                      "ten_minutes", figure_number(trend->refused[i])));
    }
    return object;
}

static json_t *make_space(const struct admin_view *view, const struct admin_space *space)
{
    static const char *const kinds[] = {"counter", "phantom", "plain"};
    static const char *const oldest[] = {"default", "dump", "recycle", "refuse"};
    struct admin_trend trend;
    uint64_t places = admin_space_places(space);

    admin_history_trend(view->history, view->figures, space, &trend);
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:f, s:I, s:o, s:o, s:I}", "name",
        space->name, "kind", kinds[space->kind], "role",
        space->role == SPACE_CACHE ? "cache" : "store", "oldest", oldest[space->oldest], "slots",
        space->slots, "any_ids", space->any_ids, "held", figure_number(space->held), "recycled",
        figure_number(space->recycled), "held_bytes", figure_number(admin_space_held_bytes(space)),
        "bytes_each", admin_space_bytes_each(space), "free_ids", figure_number(places),
        "memory_bytes", make_memory(space), "refused", make_refused(space, &trend),
        "tables_left_out", figure_number(space->tables_left_out));

    CHECK(object != NULL);
#define FIELD(name) SET(object, space, name)
    ADMIN_SPACE_FIGURES(FIELD)
#undef FIELD
#define COUNT(name, meaning) SET(object, &space->counts, name)
    SPACE_METRICS(COUNT)
#undef COUNT
    json_object_set_new(object, "added_each_s",
                        trend.known ? json_real(trend.added_each_s) : json_null());
    double full_in_s = admin_full_in_s(space, &trend);

    json_object_set_new(object, "full_in_s", full_in_s >= 0 ? json_real(full_in_s) : json_null());
    if (space->kind == SPACE_PHANTOM) {
        json_object_set_new(object, "false_positives_target", json_real(space->target));
    }
    json_t *tables = json_array();

    for (size_t i = 0; i < space->table_count; i++) {
        json_array_append_new(tables, json_make_table(space, &space->at[i]));
    }
    json_object_set_new(object, "table_list", tables);
    return object;
}

static json_t *make_rates(const struct admin_history *history)
{
    static const char *const lines[ADMIN_LINES] = {"reads", "changes", "disk_reads"};
    json_t *object = json_object();

    for (int line = 0; line < ADMIN_LINES; line++) {
        double last[ADMIN_SECONDS / 10]; /* the newest covers ten seconds */
        double rate =
            admin_history_rates(history, false, (enum admin_line)line, last, ADMIN_SECONDS / 10);

        json_object_set_new(object, lines[line], json_real(rate));
    }
    return object;
}

static json_t *make_latency(const struct admin_view *view)
{
    json_t *object = json_object();

    for (int tier = 0; tier < WATCH_TIERS; tier++) {
        struct watch_times times;

        admin_history_lately(view->history, (enum watch_tier)tier, view->figures, &times);
        json_object_set_new(object, watch_tier_names[tier],
                            json_pack("{s:I, s:I, s:I, s:I, s:I}", "requests",
                                      figure_number(times.count), "p50_us",
                                      figure_number(watch_quantile(&times, 0.5)), "p99_us",
                                      figure_number(watch_quantile(&times, 0.99)), "p999_us",
                                      figure_number(watch_quantile(&times, 0.999)), "p9999_us",
                                      figure_number(watch_quantile(&times, 0.9999))));
    }
    return object;
}

static json_t *make_hot(const struct admin_figures *figures)
{
    static const char *const kinds[WATCH_KINDS] = {"ids", "members"};
    json_t *object = json_object();

    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        json_t *list = json_array();

        for (size_t i = 0; i < figures->hot[kind].count; i++) {
            json_array_append_new(list,
                                  json_pack("{s:s, s:f}", "key", figures->hot[kind].tops[i].key,
                                            "share", figures->hot[kind].tops[i].share));
        }
        json_object_set_new(object, kinds[kind], list);
    }
    return object;
}

static json_t *make_disk(const struct admin_figures *figures)
{
    const struct journal_stats *journal = &figures->journal;
    const struct data_stats *data = &figures->data;

    return json_pack(
        "{s:I, s:I, s:I, s:I, s:b, s:b, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
        "journal_head", figure_number(journal->head), "journal_durable",
        figure_number(journal->durable), "journal_unsynced_us", figure_number(journal->unsynced_us),
        "journal_buffer_used_bytes", figure_number(journal->buffer_used_bytes), "journal_full",
        journal->full, "journal_failed", journal->failed, "journal_error", journal->error,
        "checkpoints", figure_number(data->checkpoints), "checkpoint_failures",
        figure_number(data->checkpoint_failures), "last_checkpoint",
        figure_number(data->last_checkpoint_s), "dumps", figure_number(data->dumps),
        "dump_failures", figure_number(data->dump_failures), "disk_reads",
        figure_number(figures->cold.reads), "disk_read_queue", figure_number(figures->cold.depth),
        "damaged_pages", figure_number(figures->cold.bad_pages), "filesystem_bytes",
        figure_number(figures->disk_bytes), "filesystem_free_bytes",
        figure_number(figures->disk_free_bytes));
}

static json_t *make_attention(const struct admin_view *view)
{
    struct admin_attention *attention = memory_zalloc(sizeof(*attention));
    json_t *list = json_array();

    admin_attention_collect(view, attention);
    for (size_t i = 0; i < attention->count; i++) {
        json_array_append_new(list, json_string(attention->sentences[i]));
    }
    free(attention);
    return list;
}

static void add_all(const struct admin_view *view, json_t *root)
{
    const struct admin_figures *figures = view->figures;
    json_t *commands = json_object();
    json_t *net = json_object();
    json_t *spaces = json_array();

#define COUNT(name, meaning) SET(commands, &figures->commands, name)
    COMMAND_METRICS(COUNT)
#undef COUNT
#define COUNT(name, meaning)                                                                       \
    json_object_set_new(net, #name, json_integer(figure_number(metric_read(&figures->net.name))));
    NET_METRICS(COUNT)
#undef COUNT
    for (size_t i = 0; i < figures->space_count; i++) {
        json_array_append_new(spaces, make_space(view, &figures->spaces[i]));
    }
    json_object_set_new(root, "address", json_string(figures->address));
    json_object_set_new(root, "time", json_integer(figure_number(figures->now_s)));
    json_object_set_new(root, "uptime_s", json_integer(figure_number(figures->uptime_s)));
    json_object_set_new(root, "memory_limit_bytes",
                        json_integer(figure_number(figures->memory_bytes)));
    json_object_set_new(root, "resident_bytes",
                        json_integer(figure_number(figures->resident_bytes)));
    json_object_set_new(root, "max_connections", json_integer(figures->max_connections));
    json_object_set_new(root, "attention", make_attention(view));
    json_object_set_new(root, "rates_each_s", make_rates(view->history));
    json_object_set_new(root, "latency", make_latency(view));
    json_object_set_new(root, "hot", make_hot(figures));
    json_object_set_new(root, "commands", commands);
    json_object_set_new(root, "connections", net);
    json_object_set_new(root, "spaces", spaces);
    json_object_set_new(root, "disk", figures->has_data ? make_disk(figures) : json_null());
}

void admin_make_json(const struct admin_view *view, struct evbuffer *out)
{
    json_t *root =
        json_pack("{s:i, s:s, s:s, s:f, s:b}", "schema_version", SCHEMA_VERSION, "version",
                  PACKAGE_VERSION, "state", view->serving ? "serving" : "loading", "loaded_ratio",
                  view->serving ? 1.0 : admin_loaded_share(view->data), "last_reload_successful",
                  !view->reload_failed);

    CHECK(root != NULL);
    if (view->serving) {
        add_all(view, root);
    }
    char *text = json_dumps(root, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));

    CHECK(text != NULL);
    evbuffer_add_printf(out, "%s\n", text);
    free(text);
    json_decref(root);
}
