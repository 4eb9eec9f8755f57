/* load_options.c: the command line of the verb load. */
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "tools/rollcall/load_private.h"
#include "tools/rollcall/verb.h"

#define FORMATS "csv, tsv or ndjson"

static void load_help(void)
{
    puts(
        "  rollcall load feed --columns id,like --checkpoint counts.state counts.csv\n"
        "  rollcall load feed --offline data --config rollcall.yaml counts.csv\n"
        "\n"
        "usage: rollcall load [options] SPACE [FILE...]\n"
        "Loads counters, or members of existence keys, into a running daemon: from files, or from\n"
        "stdin (-). A line is a row; rows of one id are taken in their order.\n"
        "\n"
        "  -s, --server ADDRESS   host:port, [v6]:port or /path.sock (" WIRE_SERVER
        ")\n" WIRE_OPTIONS_HELP
        "  -f, --format FORMAT    csv, tsv, ndjson; else what the file's name ends in\n"
        "  -c, --columns NAMES    id,like,read  id,member  - skips one; else the first line has\n"
        "                         them; ndjson: of other names nothing is taken\n"
        "  -m, --mode MODE        set; add: what is there stays; max: the larger number stays\n"
        "      --checkpoint FILE  a run that was killed goes on where it was; a whole one ends\n"
        "      --max-errors N     lines that may be refused before it gives up (0)\n"
        "      --reject FILE      refused lines are added to it\n"
        "      --batch N          rows acknowledged together (4096)\n"
        "      --connections N    that rows are spread over, by their ids (8)\n"
        "      --timeout SECONDS  the longest wait for the daemon, busy or away: 0.2, 5min (60)\n"
        "      --offline DIR      no daemon: makes the data directory DIR, new or empty, out of\n"
        "                         rows in the order of their ids; needs --config\n"
        "      --config FILE      rollcalld's, for --offline: it has the space\n"
        "      --progress=json    on stderr, an object a second, and one at the end; other lines\n"
        "                         there begin with rollcall:\n"
        "  -q, --quiet            no progress\n"
        "  -h, --help             this text\n"
        "\n"
        "A row that names all slots sets the whole record: an empty field leaves its slot to the\n"
        "daemon's rule for records. A row that names some sets those alone, empty ones not.\n"
        "Exit status: 0 all rows are in, 1 it failed, 2 bad options, or no such file, space or\n"
        "column, 3 no answer, 4 the daemon refuses the user, 5 all but some refused rows are in,\n"
        "6 given up as too many were refused.");
}

/* False: it was said. */
static bool load_number(const char *option, const char *text, uint64_t least, uint64_t most,
                        uint64_t *number)
{
    if (num_parse(text, strlen(text), number) && *number >= least && *number <= most) {
        return true;
    }
    verb_complain(stderr, "%s must be a number from %" PRIu64 " to %" PRIu64 ", not \"%s\"", option,
                  least, most, text);
    return false;
}

/* False: it was said. */
static bool load_word(const char *option, const char *text, const char *const *words, int *which)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], text) == 0) {
            *which = i;
            return true;
        }
    }
    verb_complain(stderr, "%s must be one of %s, %s, %s, not \"%s\"", option, words[0], words[1],
                  words[2], text);
    return false;
}

static bool take_word_option(struct load_options *options, int option, const char *text)
{
    static const char *const formats[] = {"csv", "tsv", "ndjson", NULL};
    static const char *const modes[] = {"set", "add", "max", NULL};
    int which;

    if (option == 'f') {
        bool known = load_word("--format", text, formats, &which);

        options->format = known ? (enum load_format)(LOAD_CSV + which) : LOAD_BY_NAME;
        return known;
    }
    bool known = load_word("--mode", text, modes, &which);

    options->mode = known ? (enum load_mode)which : LOAD_SET;
    return known;
}

static bool load_option(struct load_options *options, int option, const char *text)
{
    char error[OPTIONS_ERROR_MAX];

    if (wire_target_take(&options->target, option, optarg)) {
        return true;
    }
    switch (option) {
    case 's':
        options->target.server = optarg;
        return true;
    case 'f':
    case 'm':
        return take_word_option(options, option, text);
    case 'c':
        options->columns = text;
        return true;
    case 'C':
        options->checkpoint = text;
        return text[0] != '\0' ||
               (verb_complain(stderr, "--checkpoint needs the name of a file"), false);
    case 'e':
        return load_number("--max-errors", text, 0, UINT64_MAX, &options->max_errors);
    case 'r':
        options->reject = text;
        return true;
    case 'b':
        return load_number("--batch", text, 1, LOAD_BATCH_MAX, &options->batch);
    case 'n':
        return load_number("--connections", text, 1, LOAD_CONNECTIONS_MAX, &options->connections);
    case 'o':
        options->offline = text;
        return true;
    case 'g':
        options->config = text;
        return true;
    case 'p':
        options->events = true;
        return strcmp(text, "json") == 0 ||
               (verb_complain(stderr, "--progress must be json, not \"%s\"", text), false);
    case 'q':
        options->quiet = true;
        return true;
    default:
        if (wire_patience_parse(text, &options->patience_ms, error)) {
            return true;
        }
        verb_complain(stderr, "%s", error);
        return false;
    }
}

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

static bool complete(struct load_options *options, int count, char **words)
{
    if (count < 1 || strlen(words[0]) >= LOAD_NAME_MAX || strchr(words[0], ' ') != NULL) {
        verb_complain(stderr, "load takes a space and files; see rollcall load --help");
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

int load_arguments(struct load_options *options, int argc, char **argv)
{
    static const struct option known[] = {{"server", required_argument, NULL, 's'},
                                          WIRE_OPTIONS,
                                          {"format", required_argument, NULL, 'f'},
                                          {"columns", required_argument, NULL, 'c'},
                                          {"mode", required_argument, NULL, 'm'},
                                          {"checkpoint", required_argument, NULL, 'C'},
                                          {"max-errors", required_argument, NULL, 'e'},
                                          {"reject", required_argument, NULL, 'r'},
                                          {"batch", required_argument, NULL, 'b'},
                                          {"connections", required_argument, NULL, 'n'},
                                          {"timeout", required_argument, NULL, 't'},
                                          {"offline", required_argument, NULL, 'o'},
                                          {"config", required_argument, NULL, 'g'},
                                          {"progress", required_argument, NULL, 'p'},
                                          {"quiet", no_argument, NULL, 'q'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    int got;

    opterr = 0;
    while ((got = getopt_long(argc, argv, "s:f:c:m:qh", known, NULL)) != -1) {
        if (got == 'h') {
            load_help();
            return EXIT_STATUS_DONE;
        }
        if (got == '?') {
            return (int)verb_complain(
                stderr, "unknown option %s, or it lacks a value; see rollcall load --help",
                argv[optind - 1]);
        }
        if (!load_option(options, got, optarg)) {
            return EXIT_STATUS_USAGE;
        }
    }
    return complete(options, argc - optind, argv + optind) ? -1 : EXIT_STATUS_USAGE;
}
