/*
 * settings_flags.c: the command line. Letters, long names and meanings are those of memcached 1.6;
 * a flag that is a setting is put through its row, so it has the same limits and words as in a
 * file.
 */
#include "config/settings_draft.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"

#define GIVEN_MAX      512 /* flags of one command line */
#define LONG_BASE      256 /* getopt's value of a long name is this plus its row */
#define IGNORED_MAX    512 /* bytes of the warning's list */
#define LENGTH(array)  (sizeof(array) / sizeof((array)[0]))
#define COMMAND_LINE() ((struct settings_place){.given = true})

/* What has to be known while flags are taken one after another. */
struct taking {
    struct settings_draft *draft;
    bool listen_given;     /* -l: the list holds addresses of flags only */
    const char *unix_path; /* -s */
    size_t verbose;        /* how often -v was given */
    char ignored[IGNORED_MAX];
};

struct flag;
typedef void take_fn(struct taking *taking, const struct flag *flag, const char *argument);

enum flag_use {
    USE_PUT,     /* a setting: `key` gets `value`, or the argument */
    USE_TAKE,    /* has a function of its own */
    USE_NOTHING, /* asks for what is always so */
    USE_IGNORED, /* has no meaning here: one warning names all of them */
    USE_WISH,
    USE_CONFIG,
    USE_SET,
};

struct flag {
    const char *shown;    /* "-p", or "--config" when it has no letter */
    const char *name;     /* the long name without --; NULL: none */
    const char *argument; /* what it takes, for help; NULL: nothing; "[...]": it may be left out */
    enum flag_use use;
    const char *key; /* USE_PUT: a key of the top level */
    const char *value;
    take_fn *take;
    enum settings_wish wish;
    const char *help; /* NULL: not shown */
};

static void settings_flags_put(struct taking *taking, const struct flag *flag, const char *key,
                               const char *text)
{
    struct settings_place place = COMMAND_LINE();
    place.flag = flag->shown;
    settings_draft_put(taking->draft, settings_rows_find(&settings_top_rows, key), -1, text,
                       &place);
}

__attribute__((format(printf, 3, 4))) static void
refuse(struct taking *taking, const struct flag *flag, const char *format, ...)
{
    struct settings_place place = COMMAND_LINE();
    char text[OPTIONS_ERROR_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    place.flag = flag->shown;
    settings_error(taking->draft, &place, "%s", text);
}

static void take_port(struct taking *taking, const struct flag *flag, const char *argument)
{
    static const struct option_row row = {.name = "port", .type = OPTION_NUMBER, .max = 65535};
    struct option_value value;
    char error[OPTIONS_ERROR_MAX];
    if (!options_parse(&row, argument, &value, error)) {
        refuse(taking, flag, "%s", error);
        return;
    }
    free(taking->draft->port);
    taking->draft->port = memory_strdup(argument);
}

static void take_udp_port(struct taking *taking, const struct flag *flag, const char *argument)
{
    if (strcmp(argument, "0") != 0) {
        refuse(taking, flag, "there is no UDP here: it takes 0 only");
    }
}

/* Like memcached's, several -l add up; together they replace the list of the file. */
static void settings_flags_take_listen(struct taking *taking, const struct flag *flag,
                                       const char *argument)
{
    struct settings_place place = COMMAND_LINE();
    place.flag = flag->shown;
    if (!taking->listen_given) {
        settings_draft_listen_clear(taking->draft);
    }
    taking->listen_given = true;
    settings_draft_addresses(taking->draft, argument, &place);
}

static void take_unix_socket(struct taking *taking, const struct flag *flag, const char *argument)
{
    if (*argument == '\0') {
        refuse(taking, flag, "must be the path of a socket");
    } else {
        taking->unix_path = argument;
    }
}

/* A bare number is MiB; a size with its unit is taken too. Returns the text of a size. */
static const char *memory_text(const char *argument, char text[OPTIONS_QUOTE_MAX])
{
    size_t digits = strspn(argument, "0123456789");
    if (digits == 0 || argument[digits] != '\0' || digits + sizeof("MiB") > OPTIONS_QUOTE_MAX) {
        return argument;
    }
    strcpy(text, argument);
    return strcat(text, "MiB");
}

static void take_memory(struct taking *taking, const struct flag *flag, const char *argument)
{
    char text[OPTIONS_QUOTE_MAX];
    settings_flags_put(taking, flag, "memory", memory_text(argument, text));
}

static void take_evictions_off(struct taking *taking, const struct flag *flag, const char *argument)
{
    struct settings_place place = COMMAND_LINE();
    int row = settings_rows_find(&settings_space_rows, "oldest");

    (void)argument;
    place.flag = flag->shown;
    for (size_t i = 0; i < taking->draft->settings->space_count; i++) {
        if (settings_row_applies(&settings_space_rows.rows[row],
                                 &taking->draft->settings->spaces[i])) {
            settings_draft_put(taking->draft, row, (int)i, "refuse", &place);
        }
    }
}

static void take_protocol(struct taking *taking, const struct flag *flag, const char *argument)
{
    /* The first byte of a connection says which protocol it speaks, so all of these names are
     * right. */
    if (strcmp(argument, "auto") != 0 && strcmp(argument, "ascii") != 0 &&
        strcmp(argument, "binary") != 0) {
        refuse(taking, flag, "must be auto, ascii or binary");
    }
}

static void ignore(struct taking *taking, const char *what, const char *more)
{
    size_t length = strlen(taking->ignored);

    snprintf(taking->ignored + length, IGNORED_MAX - length, "%s%s%s%.32s", length ? ", " : "",
             what, *more ? " " : "", more);
}

/* Each -v, and each letter of --verbose=vv, is one level more. */
static void take_verbose(struct taking *taking, const struct flag *flag, const char *argument)
{
    static const char *const levels[] = {"info", "debug", "commands", "states"};
    taking->verbose += 1 + (argument != NULL ? strlen(argument) : 0);
    size_t at = taking->verbose < LENGTH(levels) ? taking->verbose : LENGTH(levels) - 1;
    settings_flags_put(taking, flag, "log-level", levels[at]);
}

/* The names of -o that are settings. Where memcached has numbers for words, both are taken. */
#define EXTENDED_WORDS_MAX 4

static const struct extended {
    const char *name;
    const char *key;
    const char *words[EXTENDED_WORDS_MAX]; /* of the numbers 0, 1, … */
} extended_rows[] = {
    {"idle_timeout", "idle-timeout", {0}},
    {"ssl_chain_cert", "tls.certificate", {0}},
    {"ssl_key", "tls.key", {0}},
    {"ssl_keyformat", "tls.key-format", {NULL, "pem", "der"}},
    {"ssl_ca_cert", "tls.ca", {0}},
    {"ssl_verify_mode", "tls.verify", {"none", "request", "require", "once"}},
    {"ssl_ciphers", "tls.ciphers", {0}},
    {"ssl_min_version", "tls.min-version", {"1.0", "1.1", "1.2", "1.3"}},
};

static const char *extended_text(const struct extended *row, const char *value)
{
    unsigned number = (unsigned)(*value - '0');
    bool known = *value != '\0' && value[1] == '\0' && number < EXTENDED_WORDS_MAX;

    return known && row->words[number] != NULL ? row->words[number] : value;
}

static const struct extended *find_extended(const char *name)
{
    for (size_t i = 0; i < LENGTH(extended_rows); i++) {
        if (strcmp(extended_rows[i].name, name) == 0) {
            return &extended_rows[i];
        }
    }
    return NULL;
}

/* -o name,name=value */
static void take_extended(struct taking *taking, const struct flag *flag, const char *argument)
{
    char *list = memory_strdup(argument);
    char *rest = list;

    for (char *item = strsep(&rest, ","); item != NULL; item = strsep(&rest, ",")) {
        char *name = strsep(&item, "=");
        const struct extended *row = find_extended(name);

        if (row != NULL && item == NULL) {
            refuse(taking, flag, "%s needs a value", name);
        } else if (row != NULL) {
            settings_flags_put(taking, flag, row->key, extended_text(row, item));
        } else if (*name != '\0') {
            ignore(taking, flag->shown, name);
        }
    }
    free(list);
}

#define PUT(k, v) .use = USE_PUT, .key = (k), .value = (v)
#define TAKE(f)   .use = USE_TAKE, .take = (f)
#define WISH(w)   .use = USE_WISH, .wish = (w)

static const struct flag flags[] = {
    {"--config", "config", "FILE", .use = USE_CONFIG, .help = "read this configuration"},
    {"--set", "set", "KEY=VALUE", .use = USE_SET,
     .help = "change a key of it, e.g. spaces.feed.table-size=1GiB"},
    {"--check-config", "check-config", NULL, WISH(WISH_CHECK_CONFIG),
     .help = "say whether the configuration is good, and stop"},
    {"--print-config", "print-config", NULL, WISH(WISH_PRINT_CONFIG),
     .help = "print the configuration with all defaults, and stop"},
    {"--print-sample", "print-sample", NULL, WISH(WISH_PRINT_SAMPLE)},
    {"--print-man", "print-man", NULL, WISH(WISH_PRINT_MAN)},
    {"--print-man-yaml", "print-man-yaml", NULL, WISH(WISH_PRINT_MAN_YAML)},
    {"-p", "port", "PORT", TAKE(take_port), .help = "TCP port (11211); 0: any free one"},
    {"-l", "listen", "ADDRESSES", TAKE(settings_flags_take_listen),
     .help = "host, host:port, [v6]:port, notls:host:port; several with commas"},
    {"-s", "unix-socket", "PATH", TAKE(take_unix_socket),
     .help = "listen on this unix socket and not on TCP"},
    {"-a", "unix-mask", "MODE", PUT("unix-mode", NULL), .help = "its permissions, octal (0700)"},
    {"--allow-open", "allow-open", NULL, PUT("allow-open", "yes"),
     .help = "listen beyond this machine without users"},
    {"-U", "udp-port", "PORT", TAKE(take_udp_port), .help = "0 only: there is no UDP"},
    {"-m", "memory-limit", "MIB", TAKE(take_memory),
     .help = "memory in MiB; without --config also sizes the built-in space"},
    {"-c", "conn-limit", "N", PUT("max-connections", NULL), .help = "connections at one time"},
    {"-t", "threads", "N", PUT("threads", NULL), .help = "worker threads"},
    {"-R", "max-reqs-per-event", "N", PUT("requests-per-turn", NULL),
     .help = "requests of a connection before others get their turn"},
    {"-b", "listen-backlog", "N", PUT("backlog", NULL),
     .help = "connections waiting to be accepted"},
    {"-B", "protocol", "NAME", TAKE(take_protocol),
     .help = "auto, ascii or binary: all are spoken"},
    {"-M", "disable-evictions", NULL, TAKE(take_evictions_off),
     .help = "refuse when full: oldest: refuse for all spaces"},
    {"-F", "disable-flush-all", NULL, PUT("flush-all", "no"), .help = "forbid flush_all"},
    {"-A", "enable-shutdown", NULL, PUT("shutdown-command", "yes"), .help = "obey shutdown"},
    {"-k", "lock-memory", NULL, PUT("lock-memory", "yes"), .help = "keep all memory from swapping"},
    {"-r", "enable-coredumps", NULL, PUT("core-files", "yes"), .help = "allow core files"},
    {"-u", "user", "NAME", PUT("user", NULL), .help = "become this user (when root)"},
    {"-d", "daemon", NULL, PUT("daemonize", "yes"), .help = "go to the background"},
    {"-P", "pidfile", "FILE", PUT("pidfile", NULL), .help = "write the process id to it"},
    {"-v", "verbose", "[v]", TAKE(take_verbose), .help = "log more; -vv: commands; -vvv: states"},
    {"-W", "disable-watch", NULL, .use = USE_NOTHING, .help = "always so: there is no watch"},
    {"-X", "disable-dumping", NULL, PUT("list-keys", "no"),
     .help = "forbid lru_crawler metadump and stats cachedump"},
    {"-o", "extended", "LIST", TAKE(take_extended),
     .help = "idle_timeout=SECONDS, ssl_chain_cert=FILE, ssl_key=FILE and the other ssl_ names of "
             "memcached; others are ignored with a warning"},
    {"-f", "slab-growth-factor", "FACTOR", .use = USE_IGNORED},
    {"-n", "slab-min-size", "BYTES", .use = USE_IGNORED},
    {"-L", "enable-largepages", NULL, .use = USE_IGNORED},
    {"-D", NULL, "CHARACTER", .use = USE_IGNORED},
    {"-I", "max-item-size", "SIZE", .use = USE_IGNORED},
    {"-C", "disable-cas", NULL, .use = USE_IGNORED},
    {"-e", "memory-file", "FILE", .use = USE_IGNORED},
    {"-S", "enable-sasl", NULL, .use = USE_NOTHING, .help = "so it is with -Y: SASL PLAIN"},
    {"-Y", "auth-file", "FILE", PUT("auth-file", NULL), .help = "users, a line name:password each"},
    {"-Z", "enable-ssl", NULL, PUT("tls.enabled", "yes"),
     .help = "TLS on TCP; certificate and key by -o"},
    {"-i", "license", NULL, WISH(WISH_LICENSE), .help = "print the license"},
    {"-V", "version", NULL, WISH(WISH_VERSION), .help = "print the version"},
    {"-h", NULL, NULL, WISH(WISH_USAGE), .help = "print a screen of help"},
    {"--help", "help", NULL, WISH(WISH_HELP), .help = "print this"},
};

static bool has_letter(const struct flag *flag)
{
    return flag->shown[1] != '-';
}

static bool may_lack(const struct flag *flag)
{
    return flag->argument != NULL && flag->argument[0] == '[';
}

static void flag_head(const struct flag *flag, char text[], size_t size)
{
    const char *long_join = flag->argument && !may_lack(flag) ? "=" : "";

    if (flag->name != NULL) {
        snprintf(text, size, "  %s%s--%s%s%s", has_letter(flag) ? flag->shown : "  ",
                 has_letter(flag) ? ", " : "  ", flag->name, may_lack(flag) ? "" : long_join,
                 flag->argument && !may_lack(flag) ? flag->argument : "");
    } else {
        snprintf(text, size, "  %s%s%s", flag->shown, flag->argument != NULL ? " " : "",
                 flag->argument != NULL ? flag->argument : "");
    }
}

void settings_flags_each(settings_flag_fn *emit, void *context)
{
    char head[128];

    for (size_t i = 0; i < LENGTH(flags); i++) {
        if (flags[i].help != NULL) {
            flag_head(&flags[i], head, sizeof(head));
            emit(context, head, flags[i].help);
        }
    }
}

void settings_flags_ignored(FILE *out)
{
    const char *join = "";

    for (size_t i = 0; i < LENGTH(flags); i++) {
        if (flags[i].use == USE_IGNORED) {
            fprintf(out, "%s%s", join, flags[i].shown);
            join = ", ";
        }
    }
}

/* ---- getopt ---- */

struct given {
    const struct flag *flag;
    const char *argument; /* NULL: none */
};

struct command_line {
    struct given given[GIVEN_MAX];
    size_t count;
    const char *config;
    enum settings_wish wish;
};

static void getopt_tables(struct option *longs, char *letters)
{
    *letters++ = ':'; /* tells a missing argument from an unknown flag */
    for (size_t i = 0; i < LENGTH(flags); i++) {
        int takes = may_lack(&flags[i])         ? optional_argument
                    : flags[i].argument != NULL ? required_argument
                                                : no_argument;
        if (flags[i].name != NULL) {
            *longs++ = (struct option){flags[i].name, takes, NULL, LONG_BASE + (int)i};
        }
        if (!has_letter(&flags[i])) {
            continue;
        }
        *letters++ = flags[i].shown[1];
        if (takes == required_argument) { /* -v takes nothing, only --verbose may */
            *letters++ = ':';
        }
    }
    *longs = (struct option){0};
    *letters = '\0';
}

static const struct flag *find_flag(int value)
{
    if (value >= LONG_BASE) {
        return &flags[value - LONG_BASE];
    }
    for (size_t i = 0; i < LENGTH(flags); i++) {
        if (has_letter(&flags[i]) && flags[i].shown[1] == value) {
            return &flags[i];
        }
    }
    return NULL;
}

static void refuse_unknown(struct settings_draft *draft, const char *word)
{
    const char *names[LENGTH(flags)];
    char wrong[OPTIONS_NAME_MAX];
    const char *nearest;
    size_t count = 0;

    if (optopt != 0 && find_flag(optopt) != NULL) {
        settings_error(draft, NULL, "%s takes no argument", find_flag(optopt)->shown);
        return;
    }
    if (optopt != 0) {
        settings_error(draft, NULL, "-%c: unknown flag; see --help", optopt);
        return;
    }
    for (size_t i = 0; i < LENGTH(flags); i++) {
        if (flags[i].name != NULL && flags[i].help != NULL) {
            names[count++] = flags[i].name;
        }
    }
    snprintf(wrong, sizeof(wrong), "%.*s", (int)strcspn(word + 2, "="), word + 2);
    nearest = options_nearest(wrong, names, count);
    if (nearest != NULL) {
        settings_error(draft, NULL, "--%s: unknown flag; did you mean --%s?", wrong, nearest);
    } else {
        settings_error(draft, NULL, "--%s: unknown or ambiguous flag; see --help", wrong);
    }
}

static void note_flag(struct command_line *line, const struct flag *flag, const char *argument)
{
    if (flag->use == USE_WISH) {
        line->wish = flag->wish;
    } else if (flag->use == USE_CONFIG) {
        line->config = argument;
    } else {
        line->given[line->count++] = (struct given){flag, argument};
    }
}

static bool wish_at_once(enum settings_wish wish)
{
    return wish == WISH_USAGE || wish == WISH_HELP || wish == WISH_VERSION ||
           wish == WISH_LICENSE || wish == WISH_PRINT_SAMPLE || wish == WISH_PRINT_MAN ||
           wish == WISH_PRINT_MAN_YAML;
}

/* Reads argv into `line`; stops at the first wish that needs nothing else. */
static void scan(struct settings_draft *draft, int argc, char **argv, struct command_line *line)
{
    struct option longs[LENGTH(flags) + 1];
    char letters[2 * LENGTH(flags) + 2];
    int value;

    getopt_tables(longs, letters);
    opterr = 0;
    optind = 0; /* glibc: begin anew, also on a reload */
    while ((value = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (line->count == GIVEN_MAX) {
            settings_error(draft, NULL, "too many flags: at most %d", GIVEN_MAX);
            return;
        }
        if (value == '?') {
            refuse_unknown(draft, argv[optind - 1]);
        } else if (value == ':') {
            settings_error(draft, NULL, "%s needs %s", find_flag(optopt)->shown,
                           find_flag(optopt)->argument);
        } else {
            note_flag(line, find_flag(value), optarg);
        }
        if (wish_at_once(line->wish)) {
            return;
        }
    }
    for (; optind < argc; optind++) {
        settings_error(draft, NULL, "'%.64s': not a flag; see --help", argv[optind]);
    }
}

/* ---- from flags to settings ---- */

static void settings_flags_apply(struct taking *taking, const struct given *given)
{
    const struct flag *flag = given->flag;

    switch (flag->use) {
    case USE_PUT:
        settings_flags_put(taking, flag, flag->key, flag->value ? flag->value : given->argument);
        break;
    case USE_TAKE:
        flag->take(taking, flag, given->argument);
        break;
    case USE_IGNORED:
        ignore(taking, flag->shown, "");
        break;
    case USE_NOTHING:
    case USE_WISH:
    case USE_CONFIG:
    case USE_SET:
        break;
    }
}

/* -s takes the place of every other address, as in memcached. */
static void apply_unix_path(struct taking *taking)
{
    struct settings_place place = {.flag = "-s", .given = true};
    char folder[PATH_MAX] = "";
    char *path;

    if (*taking->unix_path != '/' && getcwd(folder, sizeof(folder)) == NULL) {
        settings_error(taking->draft, &place, "the working directory: %s", strerror(errno));
        return;
    }
    CHECK(asprintf(&path, "%s%s%s", folder, *folder ? "/" : "", taking->unix_path) >= 0);
    settings_draft_listen_clear(taking->draft);
    settings_draft_listen(taking->draft, path, strlen(path), &place);
    free(path);
}

#define TABLE_SHARE 32 /* of the built-in spaces: this part of -m, as a power of two … */
#define PLAIN_SHARE 8  /* … and what kind plain has */

static void size_built_in(struct settings_draft *draft, uint64_t memory_bytes)
{
    uint64_t bytes = ROW_REGION_BYTES_MIN;

    while (bytes * 2 <= memory_bytes / TABLE_SHARE && bytes < ROW_REGION_BYTES_MAX) {
        bytes *= 2;
    }
    for (size_t i = 0; i < draft->settings->space_count; i++) {
        struct space_settings *space = &draft->settings->spaces[i];
        uint64_t plain = memory_bytes / PLAIN_SHARE;

        space->row.table_bytes = bytes;
        space->memory_bytes = plain > PLAIN_MEMORY_BYTES_MIN ? plain : PLAIN_MEMORY_BYTES_MIN;
    }
}

/* Without a file -m sizes the built-in spaces, before --set may change them. The last -m decides.
 */
static void size_by_memory(struct settings_draft *draft, const struct command_line *line)
{
    int row = settings_rows_find(&settings_top_rows, "memory");
    struct option_value value;
    char text[OPTIONS_QUOTE_MAX], error[OPTIONS_ERROR_MAX];

    for (size_t i = 0; i < line->count; i++) {
        if (line->given[i].flag->take != take_memory) {
            continue;
        }
        /* Its mistakes are reported when flags have their turn. */
        if (options_parse(&settings_top_rows.rows[row].option,
                          memory_text(line->given[i].argument, text), &value, error)) {
            size_built_in(draft, value.number);
        }
    }
}

static void apply_all(struct taking *taking, const struct command_line *line)
{
    struct settings_draft *draft = taking->draft;

    for (size_t i = 0; i < line->count; i++) {
        if (line->given[i].flag->use == USE_SET) {
            settings_yaml_set(draft, line->given[i].argument);
        }
    }
    for (size_t i = 0; i < line->count; i++) {
        settings_flags_apply(taking, &line->given[i]);
    }
    draft->port_replaces = draft->port != NULL && !taking->listen_given;
    if (taking->unix_path != NULL) {
        apply_unix_path(taking);
    }
    if (*taking->ignored != '\0') {
        settings_warning(draft, NULL, "ignored, without meaning here: %s", taking->ignored);
    }
}

enum settings_wish settings_flags_read(struct settings_draft *draft, int argc, char **argv)
{
    struct command_line *line = memory_zalloc(sizeof(*line));
    struct taking taking = {.draft = draft};
    enum settings_wish wish;

    scan(draft, argc, argv, line);
    if (!wish_at_once(line->wish)) {
        settings_yaml_read(draft, line->config);
        if (line->config == NULL) {
            size_by_memory(draft, line);
        }
        apply_all(&taking, line);
    }
    wish = line->wish;
    free(line);
    return wish;
}
