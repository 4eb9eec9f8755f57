#include "tools/rollcall/bench_options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/rollcall/arguments.h"
#include "tools/rollcall/verb.h"

#define PER_SECOND_MAX 1000000u
#define PID_MAX        4194304u

const char *const bench_shapes[] = {"dense", "seconds", "ms", "random", NULL};
const char *const bench_workloads[] = {"incr", "slot", "record", "page", "exist", "mix", NULL};
const char *const bench_verifies[] = {"values", "form", "off", NULL};

#define NUMBER(field, least, most) ARGUMENTS_NUMBER(struct bench_options, field, least, most)
#define WORD(field, list)          ARGUMENTS_WORD(struct bench_options, field, list)
#define STRING(field)              BENCH_STRING(struct bench_options, field)
#define FLAG(field)                ARGUMENTS_FLAG(struct bench_options, field)

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
             "exist: one get of many existence keys; mix: a feed's traffic on growing ids, for an "
             "empty daemon with deletes and exceptions-memory"},
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
    {"seed", NUMBER(seed, 0, INT64_MAX), .initial = "1", .help = "of the drawn ids"},
    {"pid", NUMBER(pid, 1, PID_MAX),
     .help = "the server's process: report its processor time a request"},
    {"json", FLAG(json), .help = "the results, which are a JSON object, in one line"},
    {"progress", FLAG(progress), .help = "a line each second on stderr, as on a terminal"},
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

bool bench_options_parse(const struct bench_kit *kit, int argc, char **argv,
                         struct bench_options *options)
{
    struct option_row all[ARGUMENTS_ROWS_MAX + 1] = {{0}};
    const struct arguments arguments = {
        .name = "bench",
        .words = "[HOST:PORT | /PATH.SOCK]",
        .examples = "  rollcall bench --load --workload page --pid $(pidof rollcalld)\n"
                    "  rollcall bench --workload mix --seconds 60 --window 100000\n",
        .does = "Sends requests, checks every reply and prints rates and latencies.",
        .ends =
            "Exit status: 0, 1 for wrong or failed replies, 2 for bad options, 3 for no answer.",
        .rows = all,
        .words_most = 1,
    };
    size_t count = ROWS;

    CHECK(kit->options_bytes >= sizeof(*options));
    memcpy(all, rows, sizeof(rows));
    for (const struct option_row *row = kit->options; row->name != NULL; row++) {
        CHECK(count < ARGUMENTS_ROWS_MAX);
        all[count++] = *row;
    }
    memset(options, 0, kit->options_bytes);
    options->kit = kit;
    options->requests = UINT64_MAX;
    options->first = UINT64_MAX;
    int status = arguments_take(&arguments, argc, argv, options);

    options->help = status == EXIT_STATUS_DONE;
    options->address = status < 0 && optind < argc ? argv[optind] : NULL;
    return options->help || (status < 0 && bench_options_complete(options));
}
