/* online_conf.c: rollcall conf diff: what a file says, and what a daemon runs with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "config/settings.h"
#include "tools/rollcall/online.h"
#include "tools/rollcall/online_view.h"
#include "tools/rollcall/verb.h"

/* The file's options by their keys (spaces.feed.tables), and by the names of `stats settings`. */
struct conf_file {
    json_t *by_key;
    json_t *keys; /* name: key */
};

static void conf_take(void *context, const char *key, const char *text)
{
    struct conf_file *file = context;
    char name[SETTINGS_STAT_NAME_MAX];

    settings_stat_name(key, name);
    json_object_set_new(file->by_key, key, json_string(text));
    json_object_set_new(file->keys, name, json_string(key));
}

/* False: told, with each mistake. */
static bool conf_read(const char *path, struct conf_file *file)
{
    char program[] = "rollcalld";
    char flag[] = "--config";
    char *copy = memory_strdup(path);
    char *argv[] = {program, flag, copy, NULL};
    struct settings *settings = settings_reload(3, argv, stderr);

    if (settings != NULL) {
        file->by_key = json_object();
        file->keys = json_object();
        settings_each_key(settings, conf_take, file);
        settings_destroy(settings);
    }
    free(copy);
    return settings != NULL;
}

/* ---- comparing ---- */

static void conf_differ(json_t *list, const char *key, const char *in_file, const char *running)
{
    json_array_append_new(
        list, json_pack("{s:s, s:s?, s:s?}", "key", key, "file", in_file, "running", running));
}

static void conf_keep_text(void *context, const char *line, size_t length)
{
    json_t *into = context;
    const char *name = line + strlen("STAT ");
    size_t name_length = length > strlen("STAT ") ? strcspn(name, " ") : 0;

    if (strncmp(line, "STAT ", strlen("STAT ")) == 0 && name[name_length] == ' ') {
        json_object_setn_new(into, name, name_length, json_string(name + name_length + 1));
    }
}

/* Options of spaces that only the daemon has. */
static void conf_compare_spaces(const struct conf_file *file, const json_t *running, json_t *list)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)running, name, value)
    {
        if (strncmp(name, "space_", strlen("space_")) == 0 &&
            json_object_get(file->keys, name) == NULL) {
            conf_differ(list, name, NULL, json_string_value(value));
        }
    }
}

/* NULL where it is not set, for which `stats settings` has the word memcached has. */
static const char *conf_set(const char *text)
{
    return text == NULL || *text == '\0' || strcmp(text, "NULL") == 0 ? NULL : text;
}

static json_t *conf_compare(const struct conf_file *file, const json_t *running)
{
    json_t *list = json_array();
    const char *name;
    json_t *key;

    json_object_foreach(file->keys, name, key)
    {
        const char *path = json_string_value(key);
        const char *said = conf_set(online_text(file->by_key, path));
        const char *runs = conf_set(json_string_value(json_object_get(running, name)));

        if (said == NULL ? runs != NULL : runs == NULL || strcmp(said, runs) != 0) {
            conf_differ(list, path, said, runs);
        }
    }
    conf_compare_spaces(file, running, list);
    return list;
}

static void conf_print(const struct online_options *options, const json_t *list)
{
    json_t *one;
    size_t i;

    if (options->json) {
        json_t *object = json_pack("{s:i, s:O}", "schema_version", 1, "differences", list);

        json_dumpf(object, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
        putchar('\n');
        json_decref(object);
        return;
    }
    json_array_foreach(list, i, one)
    {
        const char *in_file = json_string_value(json_object_get(one, "file"));
        const char *running = json_string_value(json_object_get(one, "running"));

        printf("%s\n  file:    %s\n  running: %s\n", online_text(one, "key"),
               in_file != NULL ? in_file : "(not set)", running != NULL ? running : "(not set)");
    }
}

static int conf_diff(const struct online_options *options, const struct conf_file *file)
{
    struct online_link *link = online_open(&options->target, false);
    json_t *running = json_object();
    int status = (int)online_status(link);

    if (online_ask(link, "stats settings\r\n", conf_keep_text, running)) {
        json_t *list = conf_compare(file, running);

        conf_print(options, list);
        status = json_array_size(list) > 0 ? EXIT_STATUS_FAILED : EXIT_STATUS_DONE;
        json_decref(list);
    } else {
        status = (int)online_status(link);
    }
    json_decref(running);
    online_close(link);
    return status;
}

static int conf_run(const struct online_options *options)
{
    struct conf_file file = {0};

    if (strcmp(options->words[0], "diff") != 0) {
        return (int)verb_complain(stderr, "unknown \"conf %s\"; there is: rollcall conf diff FILE",
                                  options->words[0]);
    }
    if (options->word_count < 2) {
        return (int)verb_complain(stderr, "a file is missing: rollcall conf diff FILE");
    }
    if (online_is_http(&options->target)) {
        return (int)verb_complain(stderr,
                                  "the status page has no settings: give -s the address that "
                                  "memcached clients use");
    }
    if (!conf_read(options->words[1], &file)) {
        return EXIT_STATUS_USAGE;
    }
    int status = conf_diff(options, &file);

    json_decref(file.by_key);
    json_decref(file.keys);
    return status;
}

static const char *const conf_takes[] = {"json", NULL};

const struct online_verb verb_conf = {
    .name = "conf",
    .words = "diff FILE",
    .does = "Prints the options that are not as in the configuration file: changed since, not "
            "reloaded,\nor given by a flag. `auto` in the file is what it comes to on this "
            "machine.\nExit status 1: some are not.",
    .examples = "  rollcall conf diff /etc/rollcall.yaml\n"
                "  rollcall conf diff new.yaml --json -s /run/rollcalld.sock\n",
    .takes = conf_takes,
    .words_least = 1,
    .words_most = 2,
    .run = conf_run,
};
