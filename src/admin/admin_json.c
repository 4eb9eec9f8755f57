/* admin_json.c: /status.json, from the rows of admin_rows.h. README.md has its schema. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin_attention.h"
#include "admin/admin_rows.h"
#include "base/check.h"
#include "base/memory.h"

#define SCHEMA_VERSION 1
#define PART_MAX       40 /* bytes of a part of a row's name */

/* ---- rows ---- */

/* jansson's numbers are signed. */
static json_t *json_whole(uint64_t value)
{
    return json_integer(value <= INT64_MAX ? (json_int_t)value : INT64_MAX);
}

static json_t *json_value_of(const struct admin_row *row, const void *object)
{
    const char *at = (const char *)object + row->offset;

    switch (row->form) {
    case ADMIN_REAL:
        return *(const double *)at >= 0 ? json_real(*(const double *)at) : json_null();
    case ADMIN_BOOL:
        return row->words != NULL ? json_string(row->words[*(const bool *)at])
                                  : json_boolean(*(const bool *)at);
    case ADMIN_UNSIGNED:
        return row->words != NULL ? json_string(row->words[*(const unsigned *)at])
                                  : json_integer(*(const unsigned *)at);
    case ADMIN_TEXT:
        return json_string(at);
    default:
        return json_whole(*(const uint64_t *)at);
    }
}

/* Sets a.b.c: an object b in an object a, and so on. */
static void json_set_path(json_t *into, const char *path, json_t *value)
{
    const char *dot;

    while ((dot = strchr(path, '.')) != NULL) {
        char part[PART_MAX];

        CHECK((size_t)(dot - path) < sizeof(part));
        memcpy(part, path, (size_t)(dot - path));
        part[dot - path] = '\0';
        if (json_object_get(into, part) == NULL) {
            json_object_set_new(into, part, json_object());
        }
        into = json_object_get(into, part);
        path = dot + 1;
    }
    json_object_set_new(into, path, value);
}

/* `space`: of a space or a table of it. */
static void add_rows(enum admin_object of, const void *object, const struct admin_figures *figures,
                     const struct admin_space *space, json_t *into)
{
    for (size_t i = 0; i < admin_row_count; i++) {
        const struct admin_row *row = &admin_rows[i];

        if (row->of == of && row->json != NULL && admin_row_applies(row, figures, space)) {
            json_set_path(into, row->json, json_value_of(row, object));
        }
    }
}

/* ---- lists ---- */

static json_t *make_space(const struct admin_figures *figures, const struct admin_space *space)
{
    json_t *object = json_object();
    json_t *tables = json_array();
    json_t *slots = json_array();

    add_rows(ADMIN_SPACE, space, figures, space, object);
    for (size_t i = 0; i < space->slot_count; i++) {
        json_t *slot = json_object();

        add_rows(ADMIN_SLOT, &space->slot_list[i], figures, space, slot);
        json_array_append_new(slots, slot);
    }
    json_object_set_new(object, "slot_list", slots);
    for (size_t i = 0; i < space->table_count; i++) {
        json_t *table = json_object();

        add_rows(ADMIN_TABLE, &space->at[i], figures, space, table);
        json_array_append_new(tables, table);
    }
    json_object_set_new(object, "table_list", tables);
    return object;
}

static json_t *make_hot(const struct admin_figures *figures)
{
    static const char *const kinds[WATCH_KINDS] = {"ids", "members"};
    json_t *object = json_object();

    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        json_t *list = json_array();

        for (size_t i = 0; i < figures->hot[kind].count; i++) {
            const struct watch_top *top = &figures->hot[kind].tops[i];

            json_array_append_new(list,
                                  json_pack("{s:s, s:f}", "key", top->key, "share", top->share));
        }
        json_object_set_new(object, kinds[kind], list);
    }
    return object;
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

static json_t *json_make_followers(const struct repl_feeds_stats *feeds)
{
    json_t *list = json_array();

    for (size_t i = 0; i < feeds->count; i++) {
        const struct repl_feed_stats *feed = &feeds->feeds[i];

        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", feed->name, "peer", feed->peer,
                            "state", repl_feed_state_word(feed->state), "lag_bytes",
                            json_whole(feed->lag_bytes), "lag_us", json_whole(feed->lag_us)));
    }
    return list;
}

static void add_lists(const struct admin_view *view, json_t *root)
{
    const struct admin_figures *figures = view->figures;
    json_t *spaces = json_array();

    for (size_t i = 0; i < figures->space_count; i++) {
        json_array_append_new(spaces, make_space(figures, &figures->spaces[i]));
    }
    json_object_set_new(root, "attention", make_attention(view));
    json_object_set_new(root, "hot", make_hot(figures));
    json_object_set_new(root, "spaces", spaces);
    if (figures->repl.has_feeds) {
        json_object_set_new(json_object_get(root, "replication"), "follower_list",
                            json_make_followers(&figures->repl.feeds));
    }
    if (!figures->has_data) {
        json_object_set_new(root, "disk", json_null());
    }
}

void admin_make_json(const struct admin_view *view, struct evbuffer *out)
{
    json_t *root =
        json_pack("{s:i, s:s}", "schema_version", SCHEMA_VERSION, "version", PACKAGE_VERSION);

    CHECK(root != NULL);
    add_rows(ADMIN_DAEMON, view->figures, view->figures, NULL, root);
    if (view->figures->serving) {
        add_lists(view, root);
    }
    char *text = json_dumps(root, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));

    CHECK(text != NULL);
    evbuffer_add_printf(out, "%s\n", text);
    free(text);
    json_decref(root);
}
