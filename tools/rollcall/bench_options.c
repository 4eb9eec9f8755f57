#include "tools/rollcall/bench_options_private.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "tools/rollcall/bench_dialect.h"
#include "tools/rollcall/bench_feed.h"

#define PER_SECOND_MAX     1000000u
#define PID_MAX            4194304u
#define LOCAL_OPTIONS_FROM 256 /* getopt's values for the rows of the tables */
#define OPTIONS_MAX        64u /* rows of both tables */
#define PROTOCOLS_MAX      8u

static const char *const shapes[] = {"dense", "seconds", "ms", "random", NULL};
static const char *const workloads[] = {"incr", "slot", "record", "page", "exist", "mix", NULL};
static const char *const verifies[] = {"values", "form", "off", NULL};

#define AT(field) offsetof(struct bench_options, field)

static const struct bench_option rows[] = {
    {"connections", "N", BENCH_OPTION_NUMBER, AT(connections), 1, BENCH_CONNECTIONS_MAX, NULL,
     "connections at once (50)"},
    {"pipeline", "N", BENCH_OPTION_NUMBER, AT(pipeline), 1, BENCH_PIPELINE_MAX, NULL,
     "requests sent together on a connection (1)"},
    {"requests", "N", BENCH_OPTION_NUMBER, AT(requests), 0, 1000000000000ull, NULL,
     "end after N requests; 0 with --load: only load"},
    {"seconds", "N", BENCH_OPTION_NUMBER, AT(seconds), 1, BENCH_SECONDS_MAX, NULL,
     "end after N seconds (5)"},
    {"ids", "N", BENCH_OPTION_NUMBER, AT(ids), 1, BENCH_IDS_MAX, NULL, "population (1000000)"},
    {"shape", "SHAPE", BENCH_OPTION_CHOICE, AT(shape), 0, 0, shapes,
     "dense (default); seconds: <<22|sequence; ms: <<22|machine<<12|sequence; random: below 2^40"},
    {"first", "ID", BENCH_OPTION_NUMBER, AT(first), 0, BENCH_ID_MAX, NULL,
     "smallest id (1; the shapes of time: November 2023; random: 0)"},
    {"per-second", "N", BENCH_OPTION_NUMBER, AT(per_second), 1, PER_SECOND_MAX, NULL,
     "ids born in a second, for the shapes of time (1000)"},
    {"space", "NAME", BENCH_OPTION_TEXT, AT(space), 0, 0, NULL,
     "space the keys belong to (feed; exist: liked)"},
    {"key", "PATTERN", BENCH_OPTION_TEXT, AT(key), 0, 0, NULL,
     "key pattern with {id} (<space>:{id}); exist: with {id} and, at its end, {member}"},
    {"slots", "NAMES", BENCH_OPTION_TEXT, AT(slots), 0, 0, NULL,
     "slot names, comma separated, or how many (repost,comment,like,read)"},
    {"slot", "NAME", BENCH_OPTION_TEXT, AT(slot), 0, 0, NULL,
     "slot that incr and slot use (like, else the first)"},
    {"workload", "NAME", BENCH_OPTION_CHOICE, AT(workload), 0, 0, workloads,
     "incr (default): incr ID.slot 1; slot: get ID.slot; record: get ID; page: one get of many "
     "ids; exist: one get of many existence keys; mix: a feed's traffic on growing ids"},
    {"page-ids", "N", BENCH_OPTION_NUMBER, AT(page_ids), 1, BENCH_PAGE_IDS_MAX, NULL,
     "ids of a page, checks of an exist (20)"},
    {"hits", "PERCENT", BENCH_OPTION_NUMBER, AT(hits), 0, 100, NULL,
     "exist: checks that ask for a member --load added (10)"},
    {"one-in", "N", BENCH_OPTION_NUMBER, AT(one_in), 2, 1000000000ull, NULL,
     "exist, mix: wrong answers the server plans, one in N (1000); a few times as many fail"},
    {"mix", "SHARES", BENCH_OPTION_TEXT, AT(mix), 0, 0, NULL,
     "mix: requests of each kind, as weights (page=40,record=8,slot=8,incr=10,several=3,create=4,"
     "delete=1,exist=20,like=5,unlike=1); those named change"},
    {"window", "N", BENCH_OPTION_NUMBER, AT(window), BENCH_WINDOW_MIN, BENCH_WINDOW_MAX, NULL,
     "mix: newest ids, which most requests are for and which the server must still have (10000)"},
    {"old", "PERCENT", BENCH_OPTION_NUMBER, AT(old), 0, 100, NULL,
     "mix: ids drawn from all there ever were, not from the window (5)"},
    {"rate", "N", BENCH_OPTION_NUMBER, AT(rate), 1, BENCH_RATE_MAX, NULL,
     "requests a second, not as many as are answered"},
    {"late", "PERCENT", BENCH_OPTION_NUMBER, AT(late), 0, BENCH_FEED_LATE_MAX, NULL,
     "mix: ids that are created only when half a window of newer ones was (5)"},
    {"members", "N", BENCH_OPTION_NUMBER, AT(members), 1, BENCH_MEMBERS_MAX, NULL,
     "mix: different members that like an id (8)"},
    {"exist-space", "NAME", BENCH_OPTION_TEXT, AT(exist_space), 0, 0, NULL,
     "mix: space of the existence keys (liked)"},
    {"exist-key", "PATTERN", BENCH_OPTION_TEXT, AT(exist_key), 0, 0, NULL,
     "mix: pattern of the existence keys (<exist-space>:{id}:{member})"},
    {"allow", "TEXT", BENCH_OPTION_TEXT, AT(allow), 0, 0, NULL,
     "error lines that begin so are counted but do not fail the run"},
    {"protocol", "PROTOCOL", BENCH_OPTION_PROTOCOL, AT(protocol), 0, 0, NULL,
     "dialect of the requests (text); mix: text only"},
    {"threads", "N", BENCH_OPTION_NUMBER, AT(threads), 1, BENCH_THREADS_MAX, NULL,
     "threads that share out the connections (1); mix: 1 only"},
    {"load", NULL, BENCH_OPTION_FLAG, AT(load), 0, 0, NULL,
     "first set all ids, in rising order, to known values"},
    {"verify", "HOW", BENCH_OPTION_CHOICE, AT(verify), 0, 0, verifies,
     "values (default): as --load set them, mix: as it wrote them itself; form: right keys, "
     "numbers; off: count replies"},
    {"seed", "N", BENCH_OPTION_NUMBER, AT(seed), 0, UINT64_MAX, NULL, "of the drawn ids (1)"},
    {"pid", "PID", BENCH_OPTION_NUMBER, AT(pid), 1, PID_MAX, NULL,
     "the server's process: report its processor time a request"},
    {"json", NULL, BENCH_OPTION_FLAG, AT(json), 0, 0, NULL, "results as one JSON object"},
    {"progress", NULL, BENCH_OPTION_FLAG, AT(progress), 0, 0, NULL,
     "a line each second on stderr (default on a terminal)"},
    {"help", NULL, BENCH_OPTION_FLAG, AT(help), 0, 0, NULL, "this text"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

const char *bench_shape_name(uint64_t shape)
{
    return shapes[shape];
}

const char *bench_workload_name(uint64_t workload)
{
    return workloads[workload];
}

const char *bench_protocol_name(const struct bench_options *options)
{
    return options->kit->dialects[options->protocol]->name;
}

const char *bench_verify_name(uint64_t verify)
{
    return verifies[verify];
}

bool bench_bad(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s bench: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return false;
}

static bool take_number(const struct bench_option *row, const char *text, uint64_t *value)
{
    uint64_t number = 0;
    bool ok = num_parse(text, strlen(text), &number);

    if (!ok || number < row->minimum || number > row->maximum) {
        return bench_bad("--%s: \"%s\" is not a number from %" PRIu64 " to %" PRIu64, row->name,
                         text, row->minimum, row->maximum);
    }
    *value = number;
    return true;
}

/* A number with up to two digits behind the point, in hundredths. */
static bool take_hundredths(const struct bench_option *row, const char *text, uint64_t *value)
{
    size_t length = strcspn(text, ".");
    const char *behind = text[length] == '.' ? text + length + 1 : "0";
    size_t digits = strlen(behind);
    uint64_t whole = 0, part = 0;
    bool ok = num_parse(text, length, &whole) && digits <= 2 && num_parse(behind, digits, &part) &&
              whole <= row->maximum / 100;

    if (digits == 1) {
        part *= 10;
    }
    whole = ok ? whole * 100 + part : 0;
    if (whole < row->minimum || whole > row->maximum) {
        return bench_bad("--%s: \"%s\" is not a number from %.2f to %.2f with at most two decimals",
                         row->name, text, (double)row->minimum / 100, (double)row->maximum / 100);
    }
    *value = whole;
    return true;
}

static bool take_choice(const struct bench_option *row, const char *text, uint64_t *value)
{
    char known[128] = "";

    for (size_t i = 0; row->choices[i] != NULL; i++) {
        if (strcmp(text, row->choices[i]) == 0) {
            *value = i;
            return true;
        }
        strncat(known, i == 0 ? "" : ", ", sizeof(known) - strlen(known) - 1);
        strncat(known, row->choices[i], sizeof(known) - strlen(known) - 1);
    }
    return bench_bad("--%s: \"%s\" is none of %s", row->name, text, known);
}

static bool take_protocol(const struct bench_kit *kit, const struct bench_option *row,
                          const char *text, uint64_t *value)
{
    const char *names[PROTOCOLS_MAX + 1] = {NULL};
    struct bench_option named = *row;

    for (size_t i = 0; kit->dialects[i] != NULL; i++) {
        CHECK(i < PROTOCOLS_MAX);
        names[i] = kit->dialects[i]->name;
    }
    named.choices = names;
    return take_choice(&named, text, value);
}

static bool take_option(const struct bench_option *row, const char *text,
                        struct bench_options *options)
{
    void *field = (char *)options + row->offset;

    switch (row->kind) {
    case BENCH_OPTION_NUMBER:
        return take_number(row, text, field);
    case BENCH_OPTION_HUNDREDTHS:
        return take_hundredths(row, text, field);
    case BENCH_OPTION_CHOICE:
        return take_choice(row, text, field);
    case BENCH_OPTION_PROTOCOL:
        return take_protocol(options->kit, row, text, field);
    case BENCH_OPTION_TEXT:
        *(const char **)field = text;
        return true;
    case BENCH_OPTION_FLAG:
        *(bool *)field = true;
        return true;
    }
    return false;
}

static const struct bench_options defaults = {
    .slots = "repost,comment,like,read",
    .connections = 50,
    .pipeline = 1,
    .requests = UINT64_MAX,
    .first = UINT64_MAX,
    .ids = 1000000,
    .per_second = 1000,
    .page_ids = 20,
    .hits = 10,
    .one_in = 1000,
    .exist_space = "liked",
    .window = 10000,
    .late = 5,
    .old = 5,
    .members = 8,
    .threads = 1,
    .seed = 1,
};

/* The common rows, then the kit's own. Returns how many. */
static size_t list_rows(const struct bench_kit *kit, const struct bench_option *all[OPTIONS_MAX])
{
    size_t count = 0;

    for (; count < ROWS; count++) {
        all[count] = &rows[count];
    }
    for (const struct bench_option *row = kit->options; row != NULL && row->name != NULL; row++) {
        CHECK(count < OPTIONS_MAX);
        all[count++] = row;
    }
    return count;
}

static bool take_all(int argc, char **argv, struct bench_options *options)
{
    const struct bench_option *all[OPTIONS_MAX];
    struct option known[OPTIONS_MAX + 1] = {{0}};
    size_t count = list_rows(options->kit, all);

    for (size_t i = 0; i < count; i++) {
        known[i].name = all[i]->name;
        known[i].has_arg = all[i]->argument != NULL ? required_argument : no_argument;
        known[i].val = LOCAL_OPTIONS_FROM + (int)i;
    }
    opterr = 0;
    optind = 1;
    for (int got; (got = getopt_long(argc, argv, ":", known, NULL)) != -1;) {
        if (got == ':') {
            return bench_bad("%s needs an argument", argv[optind - 1]);
        }
        if (got == '?') {
            return bench_bad("unknown option %s; see %s bench --help", argv[optind - 1],
                             program_invocation_short_name);
        }
        CHECK(got >= LOCAL_OPTIONS_FROM && got < LOCAL_OPTIONS_FROM + (int)count);
        if (!take_option(all[got - LOCAL_OPTIONS_FROM], optarg, options)) {
            return false;
        }
    }
    if (optind < argc) {
        options->address = argv[optind++];
    }
    return optind >= argc || bench_bad("one address only: what is \"%s\"?", argv[optind]);
}

bool bench_options_parse(const struct bench_kit *kit, int argc, char **argv,
                         struct bench_options *options)
{
    CHECK(kit->options_bytes >= sizeof(*options));
    memset(options, 0, kit->options_bytes);
    *options = defaults;
    options->kit = kit;
    if (!take_all(argc, argv, options)) {
        return false;
    }
    return options->help || bench_options_complete(options);
}

static void print_row(const struct bench_kit *kit, const struct bench_option *row)
{
    char left[40];

    snprintf(left, sizeof(left), "--%s%s%s", row->name, row->argument ? " " : "",
             row->argument ? row->argument : "");
    printf("  %-16s %s", left, row->help);
    if (row->kind == BENCH_OPTION_NUMBER) {
        printf("; %" PRIu64 " to %" PRIu64, row->minimum, row->maximum);
    }
    if (row->kind == BENCH_OPTION_HUNDREDTHS) {
        printf("; %.2f to %.2f", (double)row->minimum / 100, (double)row->maximum / 100);
    }
    for (size_t i = 0; row->kind == BENCH_OPTION_PROTOCOL && kit->dialects[i] != NULL; i++) {
        printf("%s%s", i == 0 ? "; " : ", ", kit->dialects[i]->name);
    }
    putchar('\n');
}

void bench_options_help(const struct bench_kit *kit)
{
    const struct bench_option *all[OPTIONS_MAX];
    const char *program = program_invocation_short_name;
    size_t count = list_rows(kit, all);

    printf("usage: %s bench [options] [host:port | /path.sock]   (", program);
    for (size_t i = 0; kit->dialects[i] != NULL; i++) {
        if (i == 0 || strcmp(kit->dialects[i]->address, kit->dialects[0]->address) != 0) {
            printf("%s%s%s%s", i == 0 ? "" : "; ", i == 0 ? "" : kit->dialects[i]->name,
                   i == 0 ? "" : ": ", kit->dialects[i]->address);
        }
    }
    puts(")\nSends requests, checks every reply and prints rates and latencies.\n"
         "Exit status: 0, 1 for wrong or failed replies, 2 for bad options.\n");
    for (size_t i = 0; i < count; i++) {
        print_row(kit, all[i]);
    }
    printf("\nExample: %s bench --load --workload page --pid $(pidof rollcalld)\n"
           "         %s bench --workload mix --seconds 60 --window 100000\n",
           program, program);
}
