/* online.c: options and help of the verbs that ask a daemon. */
#include "tools/rollcall/online.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/options.h"
#include "phantom/phantom.h"
#include "tools/rollcall/verb.h"

#define DAYS_MAX  36500u
#define A_DAY_MAX 1000000000000000ull
#define TTL_S_MAX 300u

const char *const online_sorts[] = {"name", "held", "memory", "reads", "changes", "full", NULL};

#define AT(field)                  ARGUMENTS_AT(struct online_options, field)
#define STRING(field)              ARGUMENTS_TEXT(struct online_options, field)
#define FLAG(field)                ARGUMENTS_FLAG(struct online_options, field)
#define NUMBER(field, least, most) ARGUMENTS_NUMBER(struct online_options, field, least, most)
#define MANY(field)                .type = OPTION_CUSTOM, AT(field) /* 200M, 1.5G: decimal */
#define SIZE(field)                .type = OPTION_SIZE, .max = 1ull << 60, AT(field)
#define SECONDS(field, least)                                                                      \
    ARGUMENTS_SECONDS(struct online_options, field, least, ONLINE_TIMEOUT_MS_MAX)

static const struct option_row rows[] = {
    {"server", STRING(target.wire.server), .initial = WIRE_SERVER,
     .help = "host:port, [v6]:port or /path of the daemon, or http://host:port of its status "
             "page"},
    WIRE_ROWS(struct online_options, target.wire),
    {"timeout", SECONDS(target.timeout_ms, 1), .initial = "3",
     .help = "seconds, 0.2 or 2min: wait no longer"},
    {"json", FLAG(json), .help = "JSON, one object; an error, too"},
    {"json-safe-ids", FLAG(json_safe_ids), .help = "ids above 2^53 as strings, in JSON"},
    {"fail-missing", FLAG(fail_missing), .help = "exit with 1 if one is not there"},
    {"force", FLAG(force), .help = "also where something is lost"},
    {"new-stream", FLAG(new_stream),
     .help = "of a shard of its own: neither can follow the other any more"},
    {"sort", .type = OPTION_WORD, .words = online_sorts, AT(sort), .initial = "full",
     .help = "the order of the spaces"},
    {"interval", SECONDS(interval_ms, ONLINE_INTERVAL_MS_MIN), .initial = "1",
     .help = "seconds between two looks"},
    {"looks", NUMBER(looks, 0, UINT32_MAX), .help = "end after so many; 0: when q is pressed"},
    {"ids-per-day", MANY(ids_per_day), .help = "new ids a day: 200M, 1.5G (decimal)"},
    {"days", NUMBER(days, 0, DAYS_MAX), .help = "days that ids are kept (30)"},
    {"slots", STRING(slots), .help = "counters of an id, with their bits: repost:14,like:18"},
    {"id-spacing", NUMBER(id_spacing, 0, UINT64_MAX >> 1),
     .help = "as in the configuration; 1: ids are a sequence; 0: not known"},
    {"pairs-per-day", MANY(pairs_per_day), .help = "new pairs of an id and a member a day"},
    {"pairs-days", NUMBER(pairs_days, 0, DAYS_MAX), .help = "days that pairs are kept (as --days)"},
    {"false-positives", .type = OPTION_REAL, .real_min = PHANTOM_FALSE_POSITIVES_MIN,
     .real_max = PHANTOM_FALSE_POSITIVES_MAX, AT(false_positives), .initial = "0.001",
     .help = "of existence keys"},
    {"deletes", FLAG(deletes), .help = "pairs can be deleted"},
    {"memory", SIZE(memory_bytes),
     .help = "of the machine, for the daemon: what does not fit goes to the disk; 0: as much as "
             "it takes"},
    {"disk", SIZE(disk_bytes), .help = "of the file system of data; 0: not known"},
    {"data", STRING(data),
     .help = "data directory of the configuration; \"\": none, all in memory"},
    {"recycle", FLAG(recycle), .help = "what is older is forgotten, not dumped to the disk"},
    {"from", STRING(from), .help = "a running daemon (as --server): what is not given is as there"},
    {"etcd", STRING(etcd), .initial = "http://127.0.0.1:2379",
     .help = "URLs of etcd's members, with commas between them"},
    {"etcd-auth", STRING(etcd_auth),
     .help = "file whose first line, name:password, is etcd's user"},
    {"etcd-ca", STRING(etcd_ca), .help = "PEM file of who signed etcd's certificates"},
    {"etcd-cert", STRING(etcd_cert), .help = "PEM file of the certificate that etcd is shown"},
    {"etcd-key", STRING(etcd_key), .help = "PEM file of its key"},
    {"address", STRING(address), .help = "HOST:PORT where other nodes can follow this one"},
    {"group", STRING(group), .help = "of nodes; of status alone, else the daemon says it"},
    {"ttl", .type = OPTION_DURATION, .min = 1, .max = TTL_S_MAX, .unit_ms = 1000, AT(ttl_s),
     .initial = "6s", .help = "without word of the leader's agent for so long another one leads"},
    {"on-change", STRING(on_change),
     .help = "program to run when another node leads: ROLE LEADER ADDRESS EPOCH GROUP"},
    {"follows-only", FLAG(follows_only), .help = "this node never leads, and nobody waits for it"},
    {"not-alone", FLAG(not_alone),
     .help = "with ack: replica: writes are refused while no follower is in sync"},
    {"init", FLAG(init), .help = "this node is the first to lead its group; once"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const char *const of_server[] = {"server",   "auth-file", "tls",     "tls-ca",
                                        "tls-cert", "tls-key",   "timeout", NULL};

bool online_colours(int fd)
{
    const char *term = getenv("TERM");
    const char *none = getenv("NO_COLOR");

    return isatty(fd) && (none == NULL || *none == '\0') && term != NULL &&
           strcmp(term, "dumb") != 0;
}

/* ---- which options a verb has ---- */

static bool online_is_in(const char *const *names, const char *name)
{
    for (; *names != NULL; names++) {
        if (strcmp(*names, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool online_takes(const struct online_verb *verb, const struct option_row *row)
{
    return online_is_in(verb->takes, row->name) ||
           (!verb->no_server && online_is_in(of_server, row->name));
}

const struct option_row *online_option(const char *word)
{
    const char *name = strcmp(word, "-s") == 0       ? "server"
                       : strncmp(word, "--", 2) == 0 ? word + 2
                                                     : "";

    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(name, rows[i].name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

/* A decimal number with K, M, G or T of a thousand each: 200M, 1.5G. */
static bool online_parse_many(const char *text, uint64_t *number)
{
    static const char units[] = "kmgt";
    char *end;
    double value = strtod(text, &end);

    if (end == text || *text == '-') {
        return false;
    }
    if (*end != '\0') {
        const char *unit = strchr(units, *end | 0x20);

        if (unit == NULL || end[1] != '\0') {
            return false;
        }
        for (const char *at = units; at <= unit; at++) {
            value *= 1000;
        }
    }
    *number = value >= 0 && value <= (double)A_DAY_MAX ? (uint64_t)value : 0;
    return *number > 0;
}

static bool online_take_many(const struct option_row *row, const char *text, void *into)
{
    char quoted[OPTIONS_QUOTE_MAX];

    if (online_parse_many(text, (uint64_t *)((char *)into + row->offset))) {
        return true;
    }
    verb_complain(stderr, "--%s must be a number like 200M or 1.5G, not %s", row->name,
                  options_quote(text, quoted));
    return false;
}

/* The words after the options, which arguments_take() has counted. */
static void online_take_words(const struct online_verb *verb, int argc, char **argv,
                              struct online_options *options)
{
    CHECK(verb->words_most <= ONLINE_WORDS_MAX);
    while (optind < argc) {
        options->words[options->word_count++] = argv[optind++];
    }
    if (verb->server_word && options->word_count == 1) {
        free(options->target.wire.server);
        options->target.wire.server = memory_strdup(options->words[0]);
    }
}

int online_main(const struct online_verb *verb, int argc, char **argv)
{
    struct online_options *options = memory_zalloc(sizeof(*options));
    struct option_row taken[ROWS + 1] = {{0}};
    const struct arguments arguments = {
        .name = verb->name,
        .words = verb->words,
        .examples = verb->examples,
        .does = verb->does,
        .ends = "Exit status: 0 done, 1 a negative answer, 2 a mistake in the arguments, 3 no "
                "answer,\n4 refused.",
        .rows = taken,
        .words_least = verb->words_least,
        .words_most = verb->words_most,
        .take_custom = online_take_many,
    };

    for (size_t i = 0, count = 0; i < ROWS; i++) {
        if (online_takes(verb, &rows[i])) {
            taken[count++] = rows[i];
        }
    }
    wire_target_init(&options->target.wire);
    int status = arguments_take(&arguments, argc, argv, options);

    if (status < 0) {
        online_take_words(verb, argc, argv, options);
        status = verb->run(options);
    }
    for (size_t i = 0; i < ROWS; i++) {
        options_clear(&rows[i], options);
    }
    free(options);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        verb_complain(stderr, "cannot write to stdout");
        return EXIT_STATUS_FAILED;
    }
    return status;
}

/* Returns the text instead of a number that readers would round; NULL: it stays. */
static json_t *json_safe_text(const json_t *value)
{
    if (!json_is_integer(value) || json_integer_value(value) <= (json_int_t)VERB_JSON_SAFE) {
        return NULL;
    }
    return json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
}

static void json_make_safe(json_t *within)
{
    const char *name;
    json_t *value, *text;
    size_t i;

    json_object_foreach(within, name, value)
    {
        text = json_safe_text(value);
        if (text != NULL) {
            json_object_set_new(within, name, text);
        } else {
            json_make_safe(value);
        }
    }
    json_array_foreach(within, i, value)
    {
        text = json_safe_text(value);
        if (text != NULL) {
            json_array_set_new(within, i, text);
        } else {
            json_make_safe(value);
        }
    }
}

void online_put_json(const struct online_options *options, json_t *object)
{
    if (options->json_safe_ids) {
        json_make_safe(object);
    }
    json_dumpf(object, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    putchar('\n');
}

int online_say_error(int status)
{
    static const char *const codes[] = {
        [EXIT_STATUS_FAILED] = "failed",         [EXIT_STATUS_USAGE] = "usage",
        [EXIT_STATUS_NO_ANSWER] = "no_answer",   [EXIT_STATUS_REFUSED] = "refused",
        [EXIT_STATUS_SOME_LINES] = "some_lines", [EXIT_STATUS_TOO_MANY] = "too_many",
    };
    json_t *message = json_string(verb_last_complaint());

    if (status == EXIT_STATUS_DONE || *verb_last_complaint() == '\0') {
        json_decref(message);
        return status;
    }
    json_t *error =
        json_pack("{s:i, s:{s:s, s:o}}", "schema_version", 1, "error", "code", codes[status],
                  "message", message != NULL ? message : json_string("not UTF-8: see stderr"));

    json_dumpf(error, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(error);
    return status;
}
