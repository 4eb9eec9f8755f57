/* load.c: the verb load: its command line, and the loop over all lines. */
#include "tools/rollcall/load.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/num.h"
#include "tools/rollcall/load_private.h"
#include "tools/rollcall/verb.h"

#define ASKED_MAX     5 /* times a space is asked for, where the connection is lost meanwhile */
#define SAVE_EVERY_US 1000000u
#define PATIENCE_MAX  86400u
#define REQUESTS_MAX  (1u << 30) /* bytes of a batch's commands, or lines */
#define FORMATS       "csv, tsv or ndjson"

/* ---- the command line ---- */

static void load_help(void)
{
    puts(
        "usage: rollcall load [options] SPACE [FILE...]\n"
        "Loads counters, or members of existence keys, into a running daemon: from files, or from\n"
        "stdin (-). A line is a row; rows of one id are taken in their order.\n"
        "\n"
        "  -s, --server ADDRESS   host:port, [v6]:port or /path.sock (" WIRE_SERVER ")\n"
        "  -f, --format FORMAT    csv, tsv, ndjson; else what the file's name ends in\n"
        "  -c, --columns NAMES    id,like,read  id,member  - skips one; else the first line has\n"
        "                         them; ndjson: of other names nothing is taken\n"
        "  -m, --mode MODE        set; add: what is there stays; max: the larger number stays\n"
        "      --checkpoint FILE  a run that was killed goes on where it was; a whole one ends\n"
        "      --max-errors N     lines that may be refused before it gives up (0)\n"
        "      --reject FILE      refused lines are added to it\n"
        "      --batch N          rows acknowledged together (4096)\n"
        "      --timeout SECONDS  the longest wait for the daemon, busy or away (60)\n"
        "  -q, --quiet            no progress\n"
        "  -h, --help             this text\n"
        "\n"
        "A row that names all slots sets the whole record: an empty field leaves its slot to the\n"
        "daemon's rule for records. A row that names some sets those alone, empty ones not.\n"
        "Exit status: 0 all rows are in, 1 it failed, 2 bad options, 5 all but some refused rows\n"
        "are, 6 given up as too many were refused.");
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
    uint64_t number;

    switch (option) {
    case 's':
        options->server = text;
        return true;
    case 'f':
    case 'm':
        return take_word_option(options, option, text);
    case 'c':
        options->columns = text;
        return true;
    case 'C':
        options->checkpoint = text;
        return true;
    case 'e':
        return load_number("--max-errors", text, 0, UINT64_MAX, &options->max_errors);
    case 'r':
        options->reject = text;
        return true;
    case 'b':
        return load_number("--batch", text, 1, LOAD_BATCH_MAX, &options->batch);
    case 'n':
        return load_number("--connections", text, 1, LOAD_CONNECTIONS_MAX, &options->connections);
    case 'q':
        options->quiet = true;
        return true;
    default:
        if (!load_number("--timeout", text, 1, PATIENCE_MAX, &number)) {
            return false;
        }
        options->patience_s = (unsigned)number;
        return true;
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

static bool complete(struct load_options *options, int count, char **words)
{
    if (count < 1 || strlen(words[0]) >= LOAD_NAME_MAX || strchr(words[0], ' ') != NULL) {
        verb_complain(stderr, "load takes a space and files; see rollcall load --help");
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

/* -1: go on. */
static int load_arguments(struct load_options *options, int argc, char **argv)
{
    static const struct option known[] = {{"server", required_argument, NULL, 's'},
                                          {"format", required_argument, NULL, 'f'},
                                          {"columns", required_argument, NULL, 'c'},
                                          {"mode", required_argument, NULL, 'm'},
                                          {"checkpoint", required_argument, NULL, 'C'},
                                          {"max-errors", required_argument, NULL, 'e'},
                                          {"reject", required_argument, NULL, 'r'},
                                          {"batch", required_argument, NULL, 'b'},
                                          {"connections", required_argument, NULL, 'n'},
                                          {"timeout", required_argument, NULL, 't'},
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

/* ---- lines ---- */

static void batch_init(struct load_batch *batch, size_t rows)
{
    *batch = (struct load_batch){.items = memory_zalloc(rows * sizeof(*batch->items))};
    buf_init(&batch->lines, REQUESTS_MAX, NULL);
    for (unsigned part = 0; part < LOAD_CONNECTIONS_MAX; part++) {
        buf_init(&batch->requests[part], REQUESTS_MAX, NULL);
    }
}

static void batch_fini(struct load_batch *batch)
{
    free(batch->items);
    buf_fini(&batch->lines);
    for (unsigned part = 0; part < LOAD_CONNECTIONS_MAX; part++) {
        buf_fini(&batch->requests[part]);
    }
}

/* The names of the columns, from the first line of a file. False with input.error. */
static bool read_names(struct load *load, const char *line, size_t length)
{
    char separator = load->options->format == LOAD_CSV ? ',' : '\t';
    char why[LOAD_WHY_MAX];

    if (load_columns_read(&load->columns, &load->space, line, length, separator, why)) {
        return true;
    }
    snprintf(load->input.error, sizeof(load->input.error),
             "%.200s: its first line does not name the columns: %s; see --columns",
             load->options->files[load->input.place.file], why);
    return false;
}

static void batch_add_line(struct load *load, struct load_batch *batch, char *line, size_t length)
{
    struct load_item *item = &batch->items[batch->count++];

    *item = (struct load_item){
        .line = load->input.place.line, .line_at = batch->lines.length, .line_length = length};
    CHECK(buf_append(&batch->lines, line, length));
    if (load_parse(load->options->format, &load->columns, line, length, &item->row, item->why)) {
        item->part = (unsigned)(hash_u64(item->row.id) % load->options->connections);
        struct buf *requests = &batch->requests[item->part];

        item->request_at = requests->length;
        item->commands = load_space_compose(load, &item->row, requests, item->why);
        item->request_length = requests->length - item->request_at;
    }
    item->row.member = NULL; /* it was in the line */
    item->result = item->commands > 0 ? LOAD_PENDING : LOAD_REFUSED;
}

/* False with input.error. An empty batch: the end. */
static bool batch_fill(struct load *load, struct load_batch *batch)
{
    bool by_line = load->options->columns == NULL && load->options->format != LOAD_NDJSON;

    batch->count = 0;
    buf_truncate(&batch->lines, 0);
    for (unsigned part = 0; part < load->options->connections; part++) {
        buf_truncate(&batch->requests[part], 0);
    }
    while (batch->count < load->options->batch) {
        bool first;
        size_t length;
        char *line = load_input_line(&load->input, &length, &first);

        bool failed = line == NULL ? load->input.error[0] != '\0'
                                   : first && by_line && !read_names(load, line, length);

        if (failed) {
            batch->count = 0;
            return false;
        }
        if (line == NULL) {
            break;
        }
        if (!(first && by_line) && length > 0) {
            batch_add_line(load, batch, line, length);
        }
    }
    batch->end = load->input.place;
    return true;
}

/* ---- the run ---- */

static uint64_t rows_of(const struct load *load)
{
    return load->stored + load->kept + load->refused;
}

static void load_tell(struct load *load)
{
    uint64_t bytes = load->input.bytes_before + load->input.place.offset;
    uint64_t rows = rows_of(load);
    uint64_t whole = 0;

    if (load->input.bytes_whole > 0 && bytes > 0) {
        double times = (double)load->input.bytes_whole / (double)bytes;

        whole = times < 1 ? rows : (uint64_t)((double)rows * times);
    }
    progress_tell(&load->progress, rows, whole, NULL);
}

/* The batch is answered. False: no further one. */
static bool batch_settle(struct load *load, struct load_batch *batch)
{
    load_count(load, batch);
    load->done = batch->end;
    batch->count = 0;
    load_tell(load);
    bool due = clock_monotonic_us() - load->saved_us > SAVE_EVERY_US;

    return (!due || load_life_see(load)) && load_state_write(load, due) &&
           load->refused <= load->options->max_errors;
}

static bool raises(const struct load *load)
{
    return load->options->mode == LOAD_MAX && !load->space.members;
}

/* max: one batch at a time. */
static bool run_raising(struct load *load)
{
    struct load_batch *batch = &load->batches[0];

    bool more = batch_fill(load, batch);

    while (batch->count > 0) {
        if (!load_raise(load, batch) || !batch_settle(load, batch)) {
            return false;
        }
        more = batch_fill(load, batch);
    }
    return more;
}

/* Two batches on their way. */
static bool run_streaming(struct load *load)
{
    struct load_batch *now = &load->batches[0];
    struct load_batch *next = &load->batches[1];

    bool more = batch_fill(load, now);

    if (!load_batch_send(load, now)) { /* mended at the answers */
        load_disconnect(load);
    }
    while (now->count > 0) {
        more = more && batch_fill(load, next);
        next->count = more ? next->count : 0;
        if (load_is_connected(load) && !load_batch_send(load, next)) {
            load_disconnect(load);
        }
        if (!load_batch_finish(load, now, next->count > 0 ? next : NULL) ||
            !batch_settle(load, now)) {
            return false;
        }
        struct load_batch *done = now;

        now = next;
        next = done;
    }
    return more;
}

/* A daemon that goes away in the middle of it is asked again. */
static bool ask_space(struct load *load)
{
    struct wire *wire = &load->wires[0];

    for (unsigned asked = 1; load_connect(load); asked++) {
        if (load_space_ask(&load->space, wire, load->options->space)) {
            return true;
        }
        if (!wire->lost || asked == ASKED_MAX) {
            snprintf(load->why_failed, sizeof(load->why_failed), "%s", wire->error);
            return false;
        }
    }
    return false;
}

/* Columns, places, files. False: it was said, or why_failed. */
static bool load_begin(struct load *load)
{
    const struct load_options *options = load->options;
    char why[LOAD_WHY_MAX];

    if (!ask_space(load)) {
        return false;
    }
    if (options->columns != NULL &&
        !load_columns_read(&load->columns, &load->space, options->columns, strlen(options->columns),
                           ',', why)) {
        snprintf(load->why_failed, sizeof(load->why_failed), "--columns %.200s: %s",
                 options->columns, why);
        return false;
    }
    if (options->columns == NULL && options->format == LOAD_NDJSON) {
        load_columns_all(&load->columns, &load->space);
    }
    return true;
}

/* The names of the columns of a file that a run before had begun. */
static bool read_names_again(struct load *load)
{
    const struct load_place start = {.file = load->done.file};
    struct load_place place = load->done;
    bool first;
    size_t length;

    if (load->options->columns != NULL || load->options->format == LOAD_NDJSON ||
        place.offset == 0) {
        return true;
    }
    if (strcmp(load->options->files[place.file], "-") == 0) {
        snprintf(load->input.error, sizeof(load->input.error),
                 "stdin with a first line of names cannot be taken up again: give --columns");
        return false;
    }
    const char *line = load_input_seek(&load->input, &start)
                           ? load_input_line(&load->input, &length, &first)
                           : NULL;

    if (line == NULL || !read_names(load, line, length)) {
        return false;
    }
    load_input_fini(&load->input);
    load_input_init(&load->input, load->options->files, load->options->file_count);
    return true;
}

static bool load_run(struct load *load)
{
    if (!load_begin(load) || !read_names_again(load)) {
        return false;
    }
    if (!load_input_seek(&load->input, &load->done)) {
        return false;
    }
    progress_init(&load->progress, load->options->quiet ? NULL : stderr, "rows", load->before);
    return raises(load) ? run_raising(load) : run_streaming(load);
}

static int load_end(struct load *load, bool done)
{
    const struct load_options *options = load->options;
    bool too_many = load->refused > options->max_errors;

    progress_clear(&load->progress);
    if (load->rejects != NULL && fclose(load->rejects) != 0 && done) {
        snprintf(load->why_failed, sizeof(load->why_failed), "%.200s: cannot be written",
                 options->reject);
        done = false;
    }
    if (!(done ? load_life_see(load) : true) || !load_state_write(load, true)) {
        done = false;
    }
    if (!options->quiet) {
        fprintf(stderr,
                "%" PRIu64 " stored, %" PRIu64 " kept as they were, %" PRIu64
                " refused; %.0f rows a second\n",
                load->stored, load->kept, load->refused,
                load->progress.began_us != 0 ? progress_rate(&load->progress, rows_of(load)) : 0);
    }
    if (too_many) {
        verb_complain(stderr,
                      "given up: %" PRIu64 " lines were refused, and --max-errors is %" PRIu64,
                      load->refused, options->max_errors);
        return EXIT_STATUS_TOO_MANY;
    }
    if (!done) {
        bool input = load->input.error[0] != '\0';

        verb_complain(stderr, "%s", input ? load->input.error : load->why_failed);
        return EXIT_STATUS_FAILED;
    }
    return load->refused > 0 ? EXIT_STATUS_SOME_LINES : EXIT_STATUS_DONE;
}

int load_main(int argc, char **argv)
{
    struct load_options options = {.server = WIRE_SERVER,
                                   .batch = LOAD_BATCH,
                                   .connections = LOAD_CONNECTIONS,
                                   .patience_s = WIRE_PATIENCE_S};
    int status = load_arguments(&options, argc, argv);

    if (status >= 0) {
        return status;
    }
    struct load load = {.options = &options};

    if (!load_state_read(&load) || !load_rejects_open(&load)) {
        return EXIT_STATUS_USAGE;
    }
    for (unsigned part = 0; part < LOAD_CONNECTIONS_MAX; part++) {
        wire_init(&load.wires[part], options.server, options.patience_s);
    }
    wire_init(&load.life_wire, options.server, options.patience_s);
    load_input_init(&load.input, options.files, options.file_count);
    batch_init(&load.batches[0], options.batch);
    batch_init(&load.batches[1], options.batch);
    buf_init(&load.scratch, REQUESTS_MAX, NULL);
    status = load_end(&load, load_run(&load));
    batch_fini(&load.batches[0]);
    batch_fini(&load.batches[1]);
    buf_fini(&load.scratch);
    load_input_fini(&load.input);
    for (unsigned part = 0; part < LOAD_CONNECTIONS_MAX; part++) {
        wire_fini(&load.wires[part]);
    }
    wire_fini(&load.life_wire);
    return status;
}
