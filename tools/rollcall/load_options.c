/* load_options.c: the command line of the verb load. */
#include <string.h>

#include "tools/rollcall/load_private.h"
#include "tools/rollcall/verb.h"

#define FORMATS "csv, tsv or ndjson"

/* As enum load_format, enum load_mode and enum load_progress. */
static const char *const formats[] = {"name", "csv", "tsv", "ndjson", NULL};
static const char *const modes[] = {"set", "add", "max", NULL};
static const char *const progresses[] = {"line", "json", NULL};

static const struct option_row rows[] = {
    {"server", ARGUMENTS_TEXT(struct load_options, target.server), .initial = WIRE_SERVER,
     .help = "host:port, [v6]:port or /path.sock"},
    WIRE_ROWS(struct load_options, target),
    {"format", ARGUMENTS_WORD(struct load_options, format, formats), .initial = "name",
     .help = "of the lines; name: as the file's name ends"},
    {"columns", ARGUMENTS_TEXT(struct load_options, columns),
     .help = "id,like,read or id,member; - skips one; else the first line has them; ndjson: of "
             "other names nothing is taken"},
    {"mode", ARGUMENTS_WORD(struct load_options, mode, modes), .initial = "set",
     .help = "add: what is there stays; max: the larger number stays"},
    {"checkpoint", ARGUMENTS_TEXT(struct load_options, checkpoint),
     .help = "file by which a run that was killed goes on where it was"},
    {"max-errors", ARGUMENTS_NUMBER(struct load_options, max_errors, 0, UINT64_MAX), .initial = "0",
     .help = "lines that may be refused before it gives up"},
    {"reject", ARGUMENTS_TEXT(struct load_options, reject),
     .help = "file that refused lines are added to"},
    {"batch", ARGUMENTS_NUMBER(struct load_options, batch, 1, LOAD_BATCH_MAX), .initial = "4096",
     .help = "rows acknowledged together"},
    {"connections", ARGUMENTS_NUMBER(struct load_options, connections, 1, LOAD_CONNECTIONS_MAX),
     .initial = "8", /* pages of dumped tables are read side by side */
     .help = "that rows are spread over, by their ids"},
    {"timeout", ARGUMENTS_SECONDS(struct load_options, patience_ms, 1, WIRE_PATIENCE_MS_MAX),
     .initial = "60", .help = "the longest wait for the daemon, busy or away: 0.2, 5min"},
    {"offline", ARGUMENTS_TEXT(struct load_options, offline),
     .help = "no daemon: makes this data directory, new or empty, out of rows in the order of "
             "their ids; needs --config"},
    {"config", ARGUMENTS_TEXT(struct load_options, config),
     .help = "rollcalld's, for --offline: it has the space"},
    {"progress", ARGUMENTS_WORD(struct load_options, progress, progresses), .initial = "line",
     .help = "on stderr; json: an object a second, and one at the end, between other lines, which "
             "begin with rollcall:"},
    {"quiet", ARGUMENTS_FLAG(struct load_options, quiet), .help = "no progress"},
    {.name = NULL},
};

const struct arguments load_arguments = {
    .name = "load",
    .words = "SPACE [FILE...]",
    .examples = "  rollcall load feed --columns id,like --checkpoint counts.state counts.csv\n"
                "  rollcall load feed --offline data --config rollcall.yaml counts.csv\n",
    .does =
        "Loads counters, or members of existence keys, into a running daemon: from files, or from\n"
        "stdin (-). A line is a row; rows of one id are taken in their order.",
    .ends =
        "A row that names all slots sets the whole record: an empty field leaves its slot to the\n"
        "daemon's rule for records. A row that names some sets those alone, empty ones not.\n"
        "Exit status: 0 all rows are in, 1 it failed, 2 bad options, or no such file, space or\n"
        "column, 3 no answer, 4 the daemon refuses the user, 5 all but some refused rows are in,\n"
        "6 given up as too many were refused.",
    .rows = rows,
    .words_least = 1,
    .words_most = SIZE_MAX,
};

/* LOAD_BY_NAME: it does not say. */
static enum load_format load_format_of(const char *name)
{
    return verb_ends_with(name, ".csv")      ? LOAD_CSV
           : verb_ends_with(name, ".tsv")    ? LOAD_TSV
           : verb_ends_with(name, ".ndjson") ? LOAD_NDJSON
           : verb_ends_with(name, ".jsonl")  ? LOAD_NDJSON
                                             : LOAD_BY_NAME;
}

/* False: it was said. */
static bool load_offline_fits(const struct load_options *options)
{
    if ((options->offline == NULL) != (options->config == NULL)) {
        verb_complain(stderr, options->config == NULL ? "--offline needs --config FILE: it has the "
                                                        "space"
                                                      : "--config is for --offline");
        return false;
    }
    if (options->offline != NULL && options->checkpoint != NULL) {
        verb_complain(stderr, "--offline takes no --checkpoint: what was killed begins anew");
        return false;
    }
    if (options->offline != NULL && options->mode == LOAD_MAX) {
        verb_complain(stderr, "--offline takes --mode set or add: nothing is there to be raised");
        return false;
    }
    return true;
}

bool load_options_complete(struct load_options *options, int count, char **words)
{
    if (strlen(words[0]) >= LOAD_NAME_MAX || strchr(words[0], ' ') != NULL) {
        verb_complain(stderr, "\"%s\" is no name of a space", words[0]);
        return false;
    }
    if (options->checkpoint != NULL && *options->checkpoint == '\0') {
        verb_complain(stderr, "--checkpoint needs the name of a file");
        return false;
    }
    if (!load_offline_fits(options)) {
        return false;
    }
    options->space = words[0];
    options->only_stdin[0] = '-';
    options->stdin_files[0] = options->only_stdin;
    options->files = count > 1 ? words + 1 : options->stdin_files;
    options->file_count = count > 1 ? (size_t)count - 1 : 1;
    for (size_t i = 0; i < options->file_count && options->format == LOAD_BY_NAME; i++) {
        options->format = load_format_of(options->files[i]);
        if (options->format == LOAD_BY_NAME) {
            verb_complain(stderr, "%s: its name does not say what it is; --format " FORMATS,
                          options->files[i]);
            return false;
        }
    }
    return true;
}
