/* online_status.c: rollcall status, tables, hot: what a daemon tells, on paper. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/readable.h"
#include "tools/rollcall/online.h"
#include "tools/rollcall/online_text.h"
#include "tools/rollcall/online_view.h"
#include "tools/rollcall/verb.h"

/* NULL: *status says why. */
static json_t *status_look(const struct online_options *options, enum online_depth depth,
                           enum exit_status *status)
{
    char error[ONLINE_ERROR_MAX];
    json_t *view = online_view(&options->target, depth, false, status, error);

    if (view != NULL && strcmp(online_text(view, "state"), "serving") != 0) {
        verb_complain(stderr, "%s is loading: %.0f %%", options->target.wire.server,
                      100 * online_real(view, "loaded_ratio"));
    }
    return view;
}

static int status_give(const struct online_options *options, json_t *view, json_t *part)
{
    if (options->json) {
        online_put_json(options, part);
    }
    json_decref(view);
    return EXIT_STATUS_DONE;
}

/* ---- status ---- */

static void status_put_attention(const json_t *view)
{
    const json_t *list = json_object_get(view, "attention");
    bool colours = online_colours(STDOUT_FILENO);
    json_t *sentence;
    size_t i;

    if (json_array_size(list) > 0) {
        printf("\n%sNeeds attention%s\n", colours ? "\033[1;31m" : "", colours ? "\033[0m" : "");
    }
    json_array_foreach(list, i, sentence)
    {
        printf("%3zu. %s\n", i + 1, json_string_value(sentence));
    }
}

static int status_run(const struct online_options *options)
{
    enum exit_status status;
    json_t *view = status_look(options, ONLINE_NEWEST, &status);
    char line[ONLINE_LINE_MAX];
    json_t *space;
    size_t i;

    if (view == NULL || options->json) {
        return view == NULL ? (int)status : status_give(options, view, view);
    }
    printf("%s\n", online_text_daemon(line, view));
    if (*online_text_nodes(line, view) != '\0') {
        printf("%s\n", line);
    }
    status_put_attention(view);
    printf("\n%s\n", online_text_heading(line));
    json_array_foreach(json_object_get(view, "spaces"), i, space)
    {
        printf("%s\n", online_text_space(line, space));
    }
    if (json_object_get(view, "attention") == NULL) {
        printf("\nNeeds attention: its status page alone tells: -s http://HOST:" ONLINE_ADMIN_PORT
               "\n");
    }
    return status_give(options, view, view);
}

static const char *const status_takes[] = {"json", "json-safe-ids", NULL};

const struct online_verb verb_status = {
    .name = "status",
    .words = "[SERVER]",
    .words_most = 1,
    .server_word = true,
    .does = "Prints how a daemon is and what each of its spaces holds.",
    .examples = "  rollcall status\n"
                "  rollcall status -s 10.0.0.5:11211 --auth-file ~/.rollcall\n"
                "  rollcall status -s http://127.0.0.1:11280     with what needs attention\n",
    .takes = status_takes,
    .run = status_run,
};

/* ---- tables ---- */

static void status_put_table(const json_t *space, const json_t *table)
{
    char line[ONLINE_LINE_MAX];

    printf("%s\n", online_text_table(line, space, table));
}

/* The spaces that are asked for, their tables alone. NULL: there is none of that name. */
static json_t *status_tables_of(const json_t *view, const char *name)
{
    json_t *list = json_array();
    json_t *space;
    size_t i;

    json_array_foreach(json_object_get(view, "spaces"), i, space)
    {
        if ((name == NULL && json_array_size(json_object_get(space, "table_list")) > 0) ||
            (name != NULL && strcmp(name, online_text(space, "name")) == 0)) {
            json_t *one = json_object();

            json_object_set(one, "name", json_object_get(space, "name"));
            json_object_set(one, "kind", json_object_get(space, "kind"));
            json_object_set(one, "table_list", json_object_get(space, "table_list"));
            json_array_append_new(list, one);
        }
    }
    return list;
}

static int tables_run(const struct online_options *options)
{
    const char *name = options->word_count > 0 ? options->words[0] : NULL;
    enum exit_status status;
    json_t *view = status_look(options, ONLINE_TABLES, &status);
    json_t *space, *table;
    char line[ONLINE_LINE_MAX];
    size_t i, k;

    if (view == NULL) {
        return (int)status;
    }
    json_t *spaces = status_tables_of(view, name);
    bool missing = name != NULL && json_array_size(spaces) == 0;

    if (missing) {
        verb_complain(stderr, "%s has no space \"%s\"", options->target.wire.server, name);
    } else if (options->json) {
        json_t *part = json_pack("{s:i, s:O}", "schema_version", 1, "spaces", spaces);

        status_give(options, part, part);
    } else {
        printf("%s\n", online_text_table_heading(line));
        json_array_foreach(spaces, i, space)
        {
            json_array_foreach(json_object_get(space, "table_list"), k, table)
            {
                status_put_table(space, table);
            }
        }
    }
    json_decref(spaces);
    json_decref(view);
    return missing ? EXIT_STATUS_USAGE : EXIT_STATUS_DONE;
}

static const char *const tables_takes[] = {"json", "json-safe-ids", NULL};

const struct online_verb verb_tables = {
    .name = "tables",
    .words = "[SPACE]",
    .does = "Prints the tables of all spaces, or of one, the oldest first.",
    .examples = "  rollcall tables\n"
                "  rollcall tables feed\n"
                "  rollcall tables feed --json | jq '.spaces[0].table_list[-1]'\n",
    .takes = tables_takes,
    .words_most = 1,
    .run = tables_run,
};

/* ---- hot ---- */

static int hot_run(const struct online_options *options)
{
    static const char *const kinds[][2] = {{"ids", "id"}, {"members", "member"}};
    enum exit_status status;
    json_t *view = status_look(options, ONLINE_NEWEST, &status);
    char share[READABLE_MAX];
    json_t *top;
    size_t i;

    if (view == NULL) {
        return (int)status;
    }
    json_t *hot = json_object_get(view, "hot");

    if (options->json) {
        json_object_set_new(hot, "schema_version", json_integer(1));
        return status_give(options, view, hot);
    }
    printf("%-8s %8s  %s\n", "KIND", "SHARE", "KEY");
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        json_array_foreach(json_object_get(hot, kinds[kind][0]), i, top)
        {
            printf("%-8s %8s  %s\n", kinds[kind][1],
                   readable_share(share, online_real(top, "share")), online_text(top, "key"));
        }
    }
    return status_give(options, view, view);
}

static const char *const hot_takes[] = {"json", "json-safe-ids", NULL};

const struct online_verb verb_hot = {
    .name = "hot",
    .words = "[SERVER]",
    .words_most = 1,
    .server_word = true,
    .does = "Prints the ids and members that are asked for most, of about the last million "
            "keys.",
    .examples = "  rollcall hot\n"
                "  rollcall hot --json | jq -r '.ids[0].key'\n",
    .takes = hot_takes,
    .run = hot_run,
};
