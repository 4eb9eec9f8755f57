#include "tools/rollcall/bench_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tools/rollcall/bench_dialect.h"

#define PER_SECOND_MAX 1000000u
#define PID_MAX        4194304u
#define GETOPT_FROM    256 /* getopt's values for the rows of the tables */
#define OPTIONS_MAX    64u /* rows of both tables */

const char *const bench_shapes[] = {"dense", "seconds", "ms", "random", NULL};
const char *const bench_workloads[] = {"incr", "slot", "record", "page", "exist", "mix", NULL};
const char *const bench_verifies[] = {"values", "form", "off", NULL};

#define NUMBER(field, least, most) BENCH_NUMBER(struct bench_options, field, least, most)
#define WORD(field, list)          BENCH_WORD(struct bench_options, field, list)
#define STRING(field)              BENCH_STRING(struct bench_options, field)
#define FLAG(field)                .type = OPTION_BOOL, BENCH_ROW(struct bench_options, field)

static const struct option_row rows[] = {
    {"connections", NUMBER(connections, 1, BENCH_CONNECTIONS_MAX), .initial = "50",
     .help = "connections at once"},
    {"pipeline", NUMBER(pipeline, 1, BENCH_PIPELINE_MAX), .initial = "1",
     .help = "requests sent together on a connection"},
    {"requests", NUMBER(requests, 0, 1000000000000ull),
     .help = "end after so many requests; 0 with --load: only load"},
    {"seconds", NUMBER(seconds, 1, BENCH_SECONDS_MAX), .help = "end after so many seconds (5)"},
    {"ids", NUMBER(ids, 1, BENCH_IDS_MAX), .initial = "1000000", .help = "population"},
    {"shape", WORD(shape, bench_shapes), .initial = "dense",
     .help = "seconds: <<22|sequence; ms: <<22|machine<<12|sequence; random: below 2^40"},
    {"first", NUMBER(first, 0, BENCH_ID_MAX),
     .help = "smallest id (1; the shapes of time: November 2023; random: 0)"},
    {"per-second", NUMBER(per_second, 1, PER_SECOND_MAX), .initial = "1000",
     .help = "ids born in a second, for the shapes of time"},
    {"space", STRING(space), .help = "space the keys belong to (feed; exist: liked)"},
    {"key", STRING(key),
     .help = "pattern with {id} (<space>:{id}); exist: with {id} and, at its end, {member}"},
    {"slots", STRING(slots), .initial = "repost,comment,like,read", .help = "their names"},
    {"slot", STRING(slot), .help = "slot that incr and slot use (like, else the first)"},
    {"workload", WORD(workload, bench_workloads), .initial = "incr",
     .help = "incr: incr ID.slot 1; slot: get ID.slot; record: get ID; page: one get of many ids; "
             "exist: one get of many existence keys; mix: a feed's traffic on growing ids"},
    {"page-ids", NUMBER(page_ids, 1, BENCH_PAGE_IDS_MAX), .initial = "20",
     .help = "ids of a page, checks of an exist"},
    {"hits", NUMBER(hits, 0, 100), .initial = "10",
     .help = "exist: per cent of the checks that ask for a member --load added"},
    {"one-in", NUMBER(one_in, 2, 1000000000ull), .initial = "1000",
     .help = "exist, mix: the server's planned wrong answers"},
    {"mix", STRING(mix),
     .help = "mix: requests of each kind, as weights (page=40,record=8,slot=8,incr=10,several=3,"
             "create=4,delete=1,exist=20,like=5,unlike=1); those named change"},
    {"window", NUMBER(window, BENCH_WINDOW_MIN, BENCH_WINDOW_MAX), .initial = "10000",
     .help = "mix: newest ids, which most requests are for and the server must still have"},
    {"old", NUMBER(old, 0, 100), .initial = "5",
     .help = "mix: per cent of the ids that are drawn from all there ever were"},
    {"rate", NUMBER(rate, 1, BENCH_RATE_MAX),
     .help = "requests a second, not as many as are answered"},
    {"late", NUMBER(late, 0, BENCH_FEED_LATE_MAX), .initial = "5",
     .help = "mix: per cent of the ids that are created half a window later"},
    {"members", NUMBER(members, 1, BENCH_MEMBERS_MAX), .initial = "8",
     .help = "mix: different members that like an id"},
    {"exist-space", STRING(exist_space), .initial = "liked",
     .help = "mix: space of the existence keys"},
    {"exist-key", STRING(exist_key),
     .help = "mix: pattern of the existence keys (<exist-space>:{id}:{member})"},
    {"allow", STRING(allow),
     .help = "error lines that begin so are counted but do not fail the run"},
    {"threads", NUMBER(threads, 1, BENCH_THREADS_MAX), .initial = "1",
     .help = "threads that share out the connections; mix: 1 only"},
    {"load", FLAG(load), .help = "first set all ids, in rising order, to known values"},
    {"verify", WORD(verify, bench_verifies), .initial = "values",
     .help = "values: as --load set them (mix: as form); form: right keys, numbers; off: count "
             "replies"},
    {"seed", NUMBER(seed, 0, UINT64_MAX), .initial = "1", .help = "of the drawn ids"},
    {"pid", NUMBER(pid, 1, PID_MAX),
     .help = "the server's process: report its processor time a request"},
    {"json", FLAG(json), .help = "results as one JSON object"},
    {"progress", FLAG(progress), .help = "a line each second on stderr, as on a terminal"},
    {"help", FLAG(help), .help = "this text"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

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

/* The common rows, then the kit's own. Returns how many. */
static size_t list_rows(const struct bench_kit *kit, const struct option_row *all[OPTIONS_MAX])
{
    size_t count = 0;

    for (; count < ROWS; count++) {
        all[count] = &rows[count];
    }
    for (const struct option_row *row = kit->options; row->name != NULL; row++) {
        CHECK(count < OPTIONS_MAX);
        all[count++] = row;
    }
    return count;
}

static bool bench_options_store(const struct option_row *row, const char *text,
                                struct bench_options *options)
{
    struct option_value value;
    char error[OPTIONS_ERROR_MAX];

    if (!options_parse(row, text, &value, error)) {
        return bench_bad("--%s", error);
    }
    options_store(row, options, &value);
    return true;
}

static bool take_all(int argc, char **argv, const struct option_row *const *all, size_t count,
                     struct bench_options *options)
{
    struct option known[OPTIONS_MAX + 1] = {{0}};

    for (size_t i = 0; i < count; i++) {
        known[i].name = all[i]->name;
        known[i].has_arg = all[i]->type == OPTION_BOOL ? no_argument : required_argument;
        known[i].val = GETOPT_FROM + (int)i;
    }
    opterr = 0;
    optind = 1;
    for (int got; (got = getopt_long(argc, argv, ":h", known, NULL)) != -1;) {
        if (got == ':') {
            return bench_bad("%s needs an argument", argv[optind - 1]);
        }
        if (got == '?') {
            return bench_bad("unknown option %s; see %s bench --help", argv[optind - 1],
                             program_invocation_short_name);
        }
        if (got == 'h') {
            options->help = true;
        } else if (!bench_options_store(all[got - GETOPT_FROM], optarg != NULL ? optarg : "yes",
                                        options)) {
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
    const struct option_row *all[OPTIONS_MAX];
    size_t count = list_rows(kit, all);

    CHECK(kit->options_bytes >= sizeof(*options));
    memset(options, 0, kit->options_bytes);
    options->kit = kit;
    options->requests = UINT64_MAX;
    options->first = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        if (all[i]->initial != NULL && !bench_options_store(all[i], all[i]->initial, options)) {
            return false;
        }
    }
    return take_all(argc, argv, all, count, options) &&
           (options->help || bench_options_complete(options));
}

static void bench_options_print_row(const struct option_row *row)
{
    char limits[OPTIONS_TEXT_MAX] = "";

    if (row->type == OPTION_NUMBER || row->type == OPTION_WORD) {
        options_format_limits(row, limits);
    }
    printf("  --%-14s %s%s%s%s%s%s\n", row->name, row->help, *limits != '\0' ? "; " : "", limits,
           row->initial != NULL ? " (" : "", row->initial != NULL ? row->initial : "",
           row->initial != NULL ? ")" : "");
}

void bench_options_help(const struct bench_kit *kit)
{
    const struct option_row *all[OPTIONS_MAX];
    const char *program = program_invocation_short_name;
    size_t count = list_rows(kit, all);

    printf("  %s bench --load --workload page --pid $(pidof rollcalld)\n"
           "  %s bench --workload mix --seconds 60 --window 100000\n\n"
           "usage: %s bench [options] [host:port | /path.sock]   (%s)\n"
           "Sends requests, checks every reply and prints rates and latencies.\n"
           "Exit status: 0, 1 for wrong or failed replies, 2 for bad options, 3 for no answer.\n\n",
           program, program, program, kit->dialects[0]->address);
    for (size_t i = 0; i < count; i++) {
        bench_options_print_row(all[i]);
    }
}
