/* load.c: the verb load: the loop over all lines. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "tools/rollcall/dial.h"
#include "tools/rollcall/load_private.h"
#include "tools/rollcall/verb.h"

#define ASKED_MAX     5 /* times a space is asked for, where the connection is lost meanwhile */
#define SAVE_EVERY_US 1000000u
#define REQUESTS_MAX  (1u << 30) /* bytes of a batch's commands, or lines */

/* ---- lines ---- */

static void batch_init(struct load_batch *batch, size_t rows, bool keeps_rows)
{
    *batch = (struct load_batch){.items = memory_zalloc(rows * sizeof(*batch->items)),
                                 .whys = memory_zalloc(rows * sizeof(*batch->whys))};
    if (keeps_rows) {
        batch->rows = memory_zalloc(rows * sizeof(*batch->rows));
    }
    buf_init(&batch->lines, REQUESTS_MAX, NULL);
    for (unsigned part = 0; part < LOAD_CONNECTIONS_MAX; part++) {
        buf_init(&batch->requests[part], REQUESTS_MAX, NULL);
    }
}

static void batch_fini(struct load_batch *batch)
{
    free(batch->items);
    free(batch->whys);
    free(batch->rows);
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
    load->input.mistaken = true;
    return false;
}

/* By a hash, so that it keeps the order of an id's rows. */
static uint8_t part_of(const struct load *load, uint64_t id)
{
    return (uint8_t)((hash_u64(id) >> 32) * load->options->connections >> 32);
}

static void batch_add_line(struct load *load, struct load_batch *batch, char *line, size_t length)
{
    char *why = batch->whys[batch->count];
    struct load_row own;
    struct load_row *row = batch->rows != NULL ? &batch->rows[batch->count] : &own;
    struct load_item *item = &batch->items[batch->count++];

    *item = (struct load_item){.line = load->input.place.line,
                               .line_at = batch->lines.length,
                               .line_length = (uint32_t)length};
    CHECK(buf_append(&batch->lines, line, length));
    if (load_parse(load->options->format, &load->columns, line, length, row, why)) {
        item->part = load->fill != NULL ? 0 : part_of(load, row->id);
        struct buf *requests = &batch->requests[item->part];

        item->id = row->id;
        item->set = row->set;
        item->whole = load->space.members || load_space_is_whole(load);
        item->request_at = requests->length;
        item->commands =
            (uint8_t)(load->fill != NULL ? load_fill_compose(load, row, requests, why)
                                         : load_space_compose(load, row, requests, why));
        item->request_length = (uint32_t)(requests->length - item->request_at);
    }
    item->result = item->commands > 0 ? LOAD_PENDING : LOAD_REFUSED;
}

bool load_batch_fill(struct load *load, struct load_batch *batch)
{
    bool by_line = load->options->columns == NULL && load->options->format != LOAD_NDJSON;

    batch->count = 0;
    batch->sent = false;
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
    batch->end_bytes = load->input.bytes_before + load->input.place.offset;
    return true;
}

/* ---- the run ---- */

static uint64_t rows_of(const struct load *load)
{
    return load->stored + load->kept + load->refused;
}

static void load_tell(struct load *load)
{
    uint64_t bytes = load->done_bytes;
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
    load->why_failed[0] = '\0'; /* a connection that was lost meanwhile is mended */
    load_count(load, batch);
    load->done = batch->end;
    load->done_bytes = batch->end_bytes;
    batch->count = 0;
    load_tell(load);
    if (load->fill != NULL) {
        return load->refused <= load->options->max_errors;
    }
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

    bool more = load_batch_fill(load, batch);

    while (batch->count > 0) {
        if (!load_raise(load, batch) || !batch_settle(load, batch)) {
            return false;
        }
        more = load_batch_fill(load, batch);
    }
    return more;
}

/* One thread reads, this one carries out. */
static bool run_filling(struct load *load)
{
    struct load_reader *reader = load_reader_start(load);
    struct load_batch *batch;
    bool good = reader != NULL;

    while (good && (batch = load_reader_next(reader)) != NULL) {
        good = load_fill_batch(load, batch) && batch_settle(load, batch);
        load_reader_give(reader);
    }
    bool read = reader != NULL && load_reader_stop(reader);

    return good && read;
}

/* Two batches on their way. */
static bool run_streaming(struct load *load)
{
    struct load_batch *now = &load->batches[0];
    struct load_batch *next = &load->batches[1];

    bool more = load_batch_fill(load, now);

    if (!load_batch_send(load, now)) { /* mended at the answers */
        load_disconnect(load);
    }
    while (now->count > 0) {
        more = more && load_batch_fill(load, next);
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
            load->mistaken = wire->answered;
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

    if (load->fill == NULL && !ask_space(load)) {
        return false;
    }
    if (options->columns != NULL &&
        !load_columns_read(&load->columns, &load->space, options->columns, strlen(options->columns),
                           ',', why)) {
        snprintf(load->why_failed, sizeof(load->why_failed), "--columns %.200s: %s",
                 options->columns, why);
        load->mistaken = true;
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
        load->input.mistaken = true;
        return false;
    }
    const char *line = load_input_seek(&load->input, &start)
                           ? load_input_line(&load->input, &length, &first)
                           : NULL;

    if (line == NULL && load->input.error[0] == '\0') { /* it has no line any more */
        snprintf(load->input.error, sizeof(load->input.error), "%.200s: " LOAD_SHORTER,
                 load->options->files[place.file]);
    }
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
    if (load->rejects != NULL && !load_state_write(load, false)) {
        return false; /* a kill in the first batch: where its rejected lines begin is known */
    }
    progress_init(&load->progress, load->options->quiet ? NULL : stderr, "rows", load->before);
    if (load->options->progress == LOAD_EVENTS) {
        progress_as_json(&load->progress);
    }
    return load->fill != NULL ? run_filling(load)
           : raises(load)     ? run_raising(load)
                              : run_streaming(load);
}

/* What is in memory is written, too. */
static bool end_filling(struct load *load, bool done)
{
    bool whole = done && load->refused <= load->options->max_errors;

    if (load->fill != NULL && whole && !load->options->quiet &&
        load->options->progress == LOAD_LINES) {
        progress_clear(&load->progress);
        fputs("writing the tables that are in memory\n", stderr);
    }
    bool closed = fill_close(load->fill, whole);

    if (done && !closed) {
        snprintf(load->why_failed, sizeof(load->why_failed), "%.200s: it is not filled",
                 load->options->offline);
    }
    return done && closed;
}

/* Of the connections: where none has failed, the failure is of another kind. */
static enum exit_status load_status(const struct load *load)
{
    enum exit_status worst = EXIT_STATUS_FAILED;

    for (unsigned part = 0; part < load->options->connections; part++) {
        enum exit_status status = wire_status(&load->wires[part]);

        worst = status > worst ? status : worst;
    }
    return worst;
}

static enum exit_status load_failure(const struct load *load)
{
    bool input = load->input.error[0] != '\0';

    if (input) {
        verb_complain(stderr, "%s", load->input.error);
    }
    if (!input || load->why_failed[0] != '\0') { /* both: the batch before failed, too */
        verb_complain(stderr, "%s", load->why_failed);
    }
    if (load->mistaken || (input && load->input.mistaken && !load->begun)) {
        return EXIT_STATUS_USAGE;
    }
    return load_status(load);
}

static int load_end(struct load *load, bool done)
{
    const struct load_options *options = load->options;
    bool too_many = load->refused > options->max_errors;

    progress_clear(&load->progress);
    if (done) {
        load->done = load->input.place; /* a last batch that was full had ended before the end */
    }
    done = end_filling(load, done);
    if (!(done && load->fill == NULL ? load_life_see(load) : true) ||
        !load_state_write(load, true)) {
        done = false;
    }
    if (load->rejects != NULL && fclose(load->rejects) != 0 && done) {
        snprintf(load->why_failed, sizeof(load->why_failed), "%.200s: cannot be written",
                 options->reject);
        done = false;
    }
    if (!options->quiet) {
        fprintf(stderr,
                options->progress == LOAD_EVENTS
                    ? "{\"event\":\"end\",\"stored\":%" PRIu64 ",\"kept\":%" PRIu64
                      ",\"refused\":%" PRIu64 ",\"each_s\":%.0f}\n"
                    : "%" PRIu64 " stored, %" PRIu64 " kept as they were, %" PRIu64
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
        return (int)load_failure(load);
    }
    return load->refused > 0 ? EXIT_STATUS_SOME_LINES : EXIT_STATUS_DONE;
}

/* Where the rows go. False: it was said. */
static bool load_reach(struct load *load)
{
    char error[WIRE_ERROR_MAX];

    if (load->options->offline != NULL) {
        return load_fill_open(load);
    }
    load->peer = wire_peer_create(&load->options->target, DIAL_PORT, error);
    if (load->peer == NULL) {
        verb_complain(stderr, "%s", error);
    }
    return load->peer != NULL;
}

static int load_with(const struct load_options *options)
{
    struct load load = {.options = options};

    if (!load_state_read(&load) ||
        !load_input_there(options->files + load.done.file, options->file_count - load.done.file) ||
        !load_rejects_open(&load) || !load_reach(&load)) {
        return EXIT_STATUS_USAGE;
    }
    for (unsigned part = 0; part < LOAD_CONNECTIONS_MAX; part++) {
        wire_init(&load.wires[part], load.peer, options->patience_ms);
    }
    wire_init(&load.life_wire, load.peer, options->patience_ms);
    load_input_init(&load.input, options->files, options->file_count);
    batch_init(&load.batches[0], options->batch, options->mode == LOAD_MAX);
    batch_init(&load.batches[1], options->batch, false);
    buf_init(&load.scratch, REQUESTS_MAX, NULL);
    int status = load_end(&load, load_run(&load));
    batch_fini(&load.batches[0]);
    batch_fini(&load.batches[1]);
    buf_fini(&load.scratch);
    load_input_fini(&load.input);
    for (unsigned part = 0; part < LOAD_CONNECTIONS_MAX; part++) {
        wire_fini(&load.wires[part]);
    }
    wire_fini(&load.life_wire);
    wire_peer_destroy(load.peer);
    return status;
}

int load_main(int argc, char **argv)
{
    struct load_options options = {.format = LOAD_BY_NAME};

    wire_target_init(&options.target);
    int status = arguments_take(&load_arguments, argc, argv, &options);

    if (status < 0) {
        status = load_options_complete(&options, argc - optind, argv + optind) ? load_with(&options)
                                                                               : EXIT_STATUS_USAGE;
    }
    arguments_clear(&load_arguments, &options);
    return status;
}
