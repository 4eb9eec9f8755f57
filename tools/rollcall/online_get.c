/* online_get.c: rollcall get: all slots of an id, or a member's answer, and the table it is in. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "engine/engine.h"
#include "tools/rollcall/online.h"
#include "tools/rollcall/online_view.h"
#include "tools/rollcall/verb.h"

#define KEY_MAX_BYTES 250

/* [SPACE:]ID[:MEMBER] */
struct get_word {
    char space[ENGINE_SPACE_NAME_MAX + 1]; /* "": all */
    uint64_t id;
    const char *member; /* NULL: none */
};

struct get_run {
    const struct online_options *options;
    struct online_link *link;
    json_t *view;
    json_t *answers; /* array */
    bool missing;
};

static bool get_parse_word(const char *text, struct get_word *word)
{
    const char *colon = strchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : strlen(text);

    memset(word, 0, sizeof(*word));
    if (!num_parse(text, length, &word->id)) { /* the first part names a space */
        if (colon == NULL || length > ENGINE_SPACE_NAME_MAX) {
            return false;
        }
        memcpy(word->space, text, length);
        text = colon + 1;
        colon = strchr(text, ':');
        length = colon != NULL ? (size_t)(colon - text) : strlen(text);
        if (!num_parse(text, length, &word->id)) {
            return false;
        }
    }
    word->member = colon != NULL ? colon + 1 : NULL;
    return word->id <= INT64_MAX;
}

/* The key by the space's pattern. False: it is too long, or cannot be sent. */
static bool get_compose_key(const char *pattern, const struct get_word *word,
                            char key[KEY_MAX_BYTES + 1])
{
    size_t used = 0;

    while (*pattern != '\0') {
        int written;

        if (strncmp(pattern, "{id}", 4) == 0) {
            written = snprintf(key + used, KEY_MAX_BYTES + 1 - used, "%" PRIu64, word->id);
            pattern += 4;
        } else if (strncmp(pattern, "{member}", 8) == 0) {
            written = snprintf(key + used, KEY_MAX_BYTES + 1 - used, "%s", word->member);
            pattern += 8;
        } else {
            written = snprintf(key + used, KEY_MAX_BYTES + 1 - used, "%c", *pattern++);
        }
        used += (size_t)written;
        if (used > KEY_MAX_BYTES) {
            return false;
        }
    }
    return strpbrk(key, " \t\r\n") == NULL;
}

/* ---- one answer ---- */

struct get_value {
    bool is_value, found;
    char text[512];
    char error[ONLINE_ERROR_MAX];
};

static void get_take_line(void *context, const char *line, size_t length)
{
    struct get_value *value = context;

    if (value->is_value) {
        snprintf(value->text, sizeof(value->text), "%.*s", (int)length, line);
        value->is_value = false;
        value->found = true;
    } else if (strncmp(line, "VALUE ", 6) == 0) {
        value->is_value = true;
    } else if (strncmp(line, "END", 3) != 0) {
        snprintf(value->error, sizeof(value->error), "%.*s", (int)length, line);
    }
}

/* "5,,117" by the names of "repost:14 like:18 …" */
static json_t *get_slots(const char *slots, const char *record)
{
    json_t *object = json_object();

    while (*slots != '\0') {
        char name[ENGINE_SPACE_NAME_MAX + 1];
        size_t length = strcspn(record, ",");
        uint64_t number;

        snprintf(name, sizeof(name), "%.*s", (int)strcspn(slots, ":"), slots);
        slots += strcspn(slots, " ");
        slots += strspn(slots, " ");
        json_object_set_new(object, name,
                            num_parse(record, length, &number)
                                ? number <= INT64_MAX ? json_integer((json_int_t)number)
                                                      : json_stringn(record, length)
                                : json_null());
        record += length + (record[length] == ',');
    }
    return object;
}

/* The table whose range the id is in, as the daemon tells it; NULL: none. */
static json_t *get_table(struct get_run *run, const json_t *space, uint64_t id)
{
    const char *name = online_text(space, "name");
    const char *figure, *rest;
    char command[128], serial[32] = "";
    json_t *value, *table;

    snprintf(command, sizeof(command), "stats tables %s %" PRIu64, name, id);
    json_t *stats = online_stats(run->link, command);

    if (stats == NULL) {
        return NULL;
    }
    table = json_object();
    json_object_foreach(stats, figure, value)
    {
        rest = strncmp(figure, name, strlen(name)) == 0 ? figure + strlen(name) + 1 : "";
        size_t length = strspn(rest, "0123456789");

        if (rest[length] != ':' || length == 0 || length >= sizeof(serial) ||
            (*serial != '\0' && (strncmp(serial, rest, length) != 0 || serial[length] != '\0'))) {
            continue; /* of a later table */
        }
        snprintf(serial, sizeof(serial), "%.*s", (int)length, rest);
        json_object_set(table, rest + length + 1, value);
    }
    json_decref(stats);
    if (json_object_size(table) == 0 || online_number(table, "base") > id) {
        json_decref(table);
        return NULL;
    }
    json_t *found =
        json_pack("{s:I, s:s, s:I, s:I}", "serial", (json_int_t)strtoull(serial, NULL, 10), "state",
                  online_number(table, "cold") != 0                    ? "on_disk"
                  : strcmp(online_text(table, "state"), "closed") == 0 ? "full"
                                                                       : "open",
                  "first_id", (json_int_t)online_number(table, "first_id"), "last_id",
                  (json_int_t)online_number(table, "last_id"));

    json_decref(table);
    return found;
}

static bool get_one(struct get_run *run, const json_t *space, const struct get_word *word)
{
    char key[KEY_MAX_BYTES + 1], command[KEY_MAX_BYTES + 8];
    struct get_value value = {0};
    bool counters = strcmp(online_text(space, "kind"), "counter") == 0;

    if (!get_compose_key(online_text(space, "key"), word, key)) {
        verb_complain(stderr, "%s: that makes no key of at most %d bytes without blanks",
                      online_text(space, "name"), KEY_MAX_BYTES);
        return false;
    }
    snprintf(command, sizeof(command), "get %s\r\n", key);
    if (!online_ask(run->link, command, get_take_line, &value)) {
        return false;
    }
    if (*value.error != '\0') {
        return online_fail(run->link, EXIT_STATUS_REFUSED, "%s: %s", key, value.error);
    }
    run->missing |= !value.found;
    json_t *table = get_table(run, space, word->id);
    json_t *answer = json_pack("{s:s, s:O, s:I, s:b, s:o}", "key", key, "space",
                               json_object_get(space, "name"), "id", (json_int_t)word->id, "found",
                               value.found, "table", table != NULL ? table : json_null());

    if (word->member != NULL) {
        json_object_set_new(answer, "member", json_string(word->member));
    }
    if (counters) {
        json_object_set_new(answer, "slots",
                            value.found ? get_slots(online_text(space, "slots"), value.text)
                                        : json_null());
    }
    json_array_append_new(run->answers, answer);
    return online_status(run->link) == EXIT_STATUS_DONE;
}

/* Counters for an id; existence keys for an id and a member. */
static bool get_word(struct get_run *run, const char *text)
{
    struct get_word word;
    json_t *space;
    size_t i;
    bool any = false;

    if (!get_parse_word(text, &word)) {
        verb_complain(stderr, "\"%s\" is no id: [SPACE:]ID or [SPACE:]ID:MEMBER", text);
        return false;
    }
    json_array_foreach(json_object_get(run->view, "spaces"), i, space)
    {
        const char *kind = word.member != NULL ? "phantom" : "counter";
        bool named = *word.space == '\0' || strcmp(word.space, online_text(space, "name")) == 0;

        if (named && strcmp(online_text(space, "kind"), kind) == 0) {
            any = true;
            if (!get_one(run, space, &word)) {
                return false;
            }
        }
    }
    if (!any) {
        verb_complain(stderr, "%s: there is no %sspace of %s%s%s", text,
                      *word.space != '\0' ? "such " : "",
                      word.member != NULL ? "existence keys" : "counters",
                      *word.space != '\0' ? ": " : "", word.space);
    }
    return any;
}

/* ---- printing ---- */

static void get_put(const json_t *answer)
{
    const json_t *table = json_object_get(answer, "table");
    const char *name;
    json_t *value;

    printf("%s", online_text(answer, "key"));
    if (!json_is_true(json_object_get(answer, "found"))) {
        printf("  not there");
    } else if (json_object_get(answer, "slots") == NULL) {
        printf("  there");
    }
    json_object_foreach(json_object_get(answer, "slots"), name, value)
    {
        if (json_is_string(value)) {
            printf("  %s=%s", name, json_string_value(value));
        } else if (json_is_integer(value)) {
            printf("  %s=%" JSON_INTEGER_FORMAT, name, json_integer_value(value));
        } else {
            printf("  %s=-", name);
        }
    }
    if (json_is_object(table)) {
        printf("  (table %" PRIu64 ", %s, ids %" PRIu64 " to %" PRIu64 ")\n",
               online_number(table, "serial"), online_text(table, "state"),
               online_number(table, "first_id"), online_number(table, "last_id"));
    } else {
        printf("  (no table)\n");
    }
}

static int get_print(const struct get_run *run)
{
    json_t *answer;
    size_t i;

    if (run->options->json) {
        json_t *object = json_pack("{s:i, s:O}", "schema_version", 1, "keys", run->answers);

        online_put_json(run->options, object);
        json_decref(object);
    } else {
        json_array_foreach(run->answers, i, answer)
        {
            get_put(answer);
        }
    }
    return run->missing && run->options->fail_missing ? EXIT_STATUS_FAILED : EXIT_STATUS_DONE;
}

static int get_run(const struct online_options *options)
{
    struct get_run run = {.options = options};
    char error[ONLINE_ERROR_MAX];
    enum exit_status status;
    bool good = true;

    if (online_is_http(&options->target)) {
        return (int)verb_complain(stderr, "the status page has no keys: give -s the address that "
                                          "memcached clients use");
    }
    run.view = online_view(&options->target, ONLINE_NEWEST, false, &status, error);
    if (run.view == NULL) {
        return (int)status;
    }
    run.link = online_open(&options->target, false);
    run.answers = json_array();
    for (size_t i = 0; good && i < options->word_count; i++) {
        good = get_word(&run, options->words[i]);
    }
    status = online_status(run.link);
    if (!good && status == EXIT_STATUS_DONE) {
        status = EXIT_STATUS_USAGE;
    }
    if (good) {
        status = (enum exit_status)get_print(&run);
    }
    online_close(run.link);
    json_decref(run.answers);
    json_decref(run.view);
    return (int)status;
}

static const char *const get_takes[] = {"json", "json-safe-ids", "fail-missing", NULL};

const struct online_verb verb_get = {
    .name = "get",
    .words = "[SPACE:]ID[:MEMBER] ...",
    .does = "Prints all slots of an id, in all spaces of counters or in one; or whether a "
            "member has been at\nan id; and the table that has it.",
    .examples = "  rollcall get 123\n"
                "  rollcall get feed:123 liked:123:u9\n"
                "  rollcall get --fail-missing --json 123 124\n",
    .takes = get_takes,
    .words_least = 1,
    .words_most = ONLINE_WORDS_MAX,
    .run = get_run,
};
