/*
 * export.c: the verb export. The daemon sends the ids in their order (`lru_crawler export`), so
 * wherever it ends it can be taken up again: after the connection broke by itself, later with
 * --from or --resume.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/num.h"
#include "engine/engine.h"
#include "tools/rollcall/arguments.h"
#include "tools/rollcall/dial.h"
#include "tools/rollcall/part.h"
#include "tools/rollcall/progress.h"
#include "tools/rollcall/verb.h"
#include "tools/rollcall/wire.h"

#define ID_MAX        ((uint64_t)INT64_MAX)
#define HEAD          "EXPORT "
#define GO_ON         "; go on with --from %" PRIu64
#define OUT_BYTES     (1u << 20) /* of the output's buffer */
#define TAIL_BYTES    4096       /* the last line of a file is in these */
#define PART_LINE_MAX 160
#define SPACE_MAX     64
#define RECORD_FIELDS ENGINE_SLOTS_MAX

enum export_format { EXPORT_NDJSON, EXPORT_TSV };

struct export
{
    struct wire_target target;
    struct wire_peer *peer;
    const char *space;
    const char *output; /* NULL: stdout */
    enum export_format format;
    uint64_t from, to;
    struct part part;
    bool resume, quiet, safe_ids;
    bool headed;
    unsigned patience_ms;
    enum exit_status failure; /* DONE: what the wire says */
    FILE *out;
    struct wire wire;
    struct progress progress;
    uint64_t done, whole; /* records */
    size_t slot_count;
    char slots[RECORD_FIELDS][ENGINE_SPACE_NAME_MAX + 1];
};

/* ---- the file ---- */

static bool complain_file(const struct export *export, const char *what)
{
    verb_complain(stderr, "%s: %s", export->output != NULL ? export->output : "stdout", what);
    return false;
}

/* The id a line of ours begins with. */
static bool line_id(const struct export *export, const char *line, size_t length, uint64_t *id)
{
    static const char json[] = "{\"id\":";
    size_t skip = export->format == EXPORT_NDJSON ? sizeof(json) - 1 : 0;

    if (length < skip || memcmp(line, json, skip) != 0) {
        return false;
    }
    skip += skip > 0 && length > skip && line[skip] == '"'; /* --json-safe-ids */
    return num_read(line + skip, length - skip, id) > 0;
}

/* A part is named in the first line, which rollcall load skips; of the whole there is no such line.
 */
static size_t part_line(const struct export *export, char line[PART_LINE_MAX])
{
    return export->part.count == 0
               ? 0
               : (size_t)snprintf(line, PART_LINE_MAX, VERB_EXPORT_NOTE " %s --hash %u/%u\n",
                                  export->space, export->part.number, export->part.count);
}

/* Is the file of the part that is asked for? An empty one is of any. */
static bool part_is_of_file(const struct export *export, int fd)
{
    char line[PART_LINE_MAX];
    char first[PART_LINE_MAX] = "";
    size_t length = part_line(export, line);
    ssize_t got = pread(fd, first, sizeof(first) - 1, 0);
    size_t there = got > 0 ? (size_t)got : 0;
    bool same = length > 0 ? memcmp(first, line, there < length ? there : length) == 0
                           : first[0] != VERB_EXPORT_NOTE[0];

    if (!same) {
        first[strcspn(first, "\n")] = '\0';
        verb_complain(stderr, "%s: it is another export: it begins with \"%s\"", export->output,
                      first);
    }
    return same;
}

/* Cuts off a half line, and goes on after the last whole one. */
static bool find_end(struct export *export, int fd)
{
    char tail[TAIL_BYTES];
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
    ssize_t got = pread(fd, tail, sizeof(tail), from);
    const char *end = got > 0 ? memrchr(tail, '\n', (size_t)got) : NULL;
    uint64_t last;

    if (size < 0 || got < 0) {
        return complain_file(export, strerror(errno));
    }
    if (!part_is_of_file(export, fd)) {
        return false;
    }
    if (end == NULL) {
        return size == 0 || complain_file(export, "it ends in no line of an export");
    }
    const char *line = end > tail ? memrchr(tail, '\n', (size_t)(end - tail)) : NULL;
    off_t kept = from + (end - tail) + 1;

    line = line != NULL ? line + 1 : tail;
    export->headed = line[0] != VERB_EXPORT_NOTE[0];
    if (!export->headed) {
        kept = 0; /* after it a line of names may be missing */
    } else if (line_id(export, line, (size_t)(end - line), &last)) {
        export->from = last + 1;
    } else if (!(export->format == EXPORT_TSV && strncmp(line, "id\t", 3) == 0)) {
        return complain_file(export, "its last line is none of an export in this format");
    }
    if (ftruncate(fd, kept) != 0 || lseek(fd, 0, SEEK_END) < 0) {
        return complain_file(export, strerror(errno));
    }
    return true;
}

static bool open_output(struct export *export)
{
    if (export->output == NULL) {
        export->out = stdout;
        return setvbuf(stdout, NULL, _IOFBF, OUT_BYTES) == 0;
    }
    int flags = export->resume ? O_RDWR | O_CREAT : O_WRONLY | O_CREAT | O_EXCL;
    int fd = open(export->output, flags | O_CLOEXEC, 0600);

    if (fd < 0) {
        return complain_file(export, errno == EEXIST ? "it is there already; --resume goes on with "
                                                       "it"
                                                     : strerror(errno));
    }
    if (export->resume && !find_end(export, fd)) {
        close(fd);
        return false;
    }
    export->out = fdopen(fd, "w");
    CHECK(export->out != NULL);
    return setvbuf(export->out, NULL, _IOFBF, OUT_BYTES) == 0;
}

static bool close_output(struct export *export)
{
    bool written = fflush(export->out) == 0 && !ferror(export->out);

    if (export->output != NULL) {
        written = (fsync(fileno(export->out)) == 0 || errno == EINVAL) && written;
        written = fclose(export->out) == 0 && written;
    }
    return written || complain_file(export, strerror(errno));
}

/* ---- lines ---- */

/* "EXPORT feed repost,comment,like" */
static bool take_head(struct export *export, char *line)
{
    char *save = NULL;
    char *names = strchr(line + sizeof(HEAD) - 1, ' ');
    bool headed = export->slot_count > 0; /* of a connection before */
    size_t count = 0;

    for (char *name = names != NULL ? strtok_r(names, " ,", &save) : NULL; name != NULL;
         name = strtok_r(NULL, ",", &save)) {
        if (count == RECORD_FIELDS || strlen(name) > ENGINE_SPACE_NAME_MAX ||
            (headed && strcmp(export->slots[count], name) != 0)) {
            return false;
        }
        strcpy(export->slots[count++], name);
    }
    if (count == 0 || (headed && count != export->slot_count)) {
        return false;
    }
    export->slot_count = count;
    return true;
}

static void put_head(struct export *export)
{
    char line[PART_LINE_MAX];

    if (!export->headed) {
        fwrite(line, 1, part_line(export, line), export->out);
    }
    if (export->format == EXPORT_TSV && !export->headed) {
        fputs("id", export->out);
        for (size_t i = 0; i < export->slot_count; i++) {
            fprintf(export->out, "\t%s", export->slots[i]);
        }
        fputc('\n', export->out);
    }
    export->headed = true;
}

static void put_json(struct export *export, const char *id, size_t id_length, const char *record)
{
    const char *quote = export->safe_ids && strtoull(id, NULL, 10) > VERB_JSON_SAFE ? "\"" : "";

    fprintf(export->out, "{\"id\":%s%.*s%s", quote, (int)id_length, id, quote);
    for (size_t i = 0; i < export->slot_count; i++) {
        size_t length = strcspn(record, ",");

        if (length > 0) {
            fprintf(export->out, ",\"%s\":%.*s", export->slots[i], (int)length, record);
        }
        record += length + (record[length] == ',');
    }
    fputs("}\n", export->out);
}

static void put_tsv(struct export *export, const char *id, size_t id_length, char *record)
{
    for (char *at = record; (at = strchr(at, ',')) != NULL;) {
        *at++ = '\t';
    }
    fwrite(id, 1, id_length, export->out);
    fputc('\t', export->out);
    fputs(record, export->out);
    fputc('\n', export->out);
}

static void put_record(struct export *export, const char *id, size_t id_length, char *record)
{
    if (export->format == EXPORT_TSV) {
        put_tsv(export, id, id_length, record);
    } else {
        put_json(export, id, id_length, record);
    }
    export->done++;
}

/* "123 1,,3": False: it is none, or the last one that is wanted was before. */
static bool export_record(struct export *export, char *line, size_t length, bool *ended)
{
    uint64_t id;
    size_t digits = num_read(line, length, &id);

    if (digits == 0 || line[digits] != ' ') {
        return false;
    }
    *ended = id > export->to;
    if (*ended) {
        return false;
    }
    if (part_has(&export->part, line, digits)) {
        put_record(export, line, digits, line + digits + 1);
    }
    export->from = id + 1;
    *ended = id == export->to;
    return !*ended;
}

/* ---- the connection ---- */

enum export_end { EXPORT_DONE, EXPORT_LOST, EXPORT_REFUSED, EXPORT_BUSY };

/* A CLIENT_ERROR is about the space that was named. Once records came it is FAILED. */
static enum export_end export_refused(struct export *export, const char *line)
{
    static const char mistaken[] = "CLIENT_ERROR ";

    progress_clear(&export->progress);
    if (export->slot_count > 0) {
        export->failure = EXIT_STATUS_FAILED;
        verb_complain(stderr, "%s: %s" GO_ON, export->peer->address, line, export->from);
    } else if (wire_wants_login(&export->wire, line)) {
        verb_complain(stderr, "%s", export->wire.error);
    } else {
        export->failure = strncmp(line, mistaken, sizeof(mistaken) - 1) == 0 ? EXIT_STATUS_USAGE
                                                                             : EXIT_STATUS_REFUSED;
        verb_complain(stderr, "%s: %s", export->peer->address, line);
    }
    return EXPORT_REFUSED;
}

/* What comes is no longer the space that was begun. */
static enum export_end export_differs(struct export *export)
{
    progress_clear(&export->progress);
    export->failure = EXIT_STATUS_FAILED;
    verb_complain(stderr, "%s: the space has other slots than before; begin anew",
                  export->peer->address);
    return EXPORT_REFUSED;
}

/* All that this connection gives. */
static enum export_end export_take_all(struct export *export)
{
    char request[SPACE_MAX + 64];
    size_t length;
    bool ended = false;
    int bytes = snprintf(request, sizeof(request), "lru_crawler export %s %" PRIu64 "\r\n",
                         export->space, export->from);
    char *line =
        wire_send(&export->wire, request, (size_t)bytes) ? wire_line(&export->wire, &length) : NULL;

    if (line == NULL) {
        return EXPORT_LOST;
    }
    if (strncmp(line, "BUSY", 4) == 0) {
        return EXPORT_BUSY;
    }
    if (strncmp(line, HEAD, sizeof(HEAD) - 1) != 0) {
        return export_refused(export, line);
    }
    if (!take_head(export, line)) {
        return export_differs(export);
    }
    put_head(export);
    while ((line = wire_line(&export->wire, &length)) != NULL) {
        if (!export_record(export, line, length, &ended)) {
            break;
        }
        progress_tell(&export->progress, export->done, export->whole, NULL);
        if (ferror(export->out)) {
            return EXPORT_DONE; /* close_output says it */
        }
    }
    if (line == NULL) {
        return EXPORT_LOST;
    }
    return ended || strcmp(line, "END") == 0 ? EXPORT_DONE : export_refused(export, line);
}

static void tell_waits(void *context, const char *why)
{
    struct export *export = context;

    progress_tell(&export->progress, export->done, export->whole, why);
}

/* How many there will be, about. */
static void ask_whole(struct export *export)
{
    char name[SPACE_MAX + 16];
    char text[32];

    snprintf(name, sizeof(name), "%s:records", export->space);
    if (export->from == 0 && export->to == ID_MAX &&
        wire_stat(&export->wire, "spaces", name, text, sizeof(text))) {
        (void)num_parse(text, strlen(text), &export->whole);
        export->whole /= export->part.count > 0 ? export->part.count : 1;
    }
}

/* Goes on as long as there is something new from time to time. */
static bool run_export(struct export *export)
{
    enum export_end end = EXPORT_LOST;
    uint64_t before = UINT64_MAX;
    unsigned busy_s = 0;

    while (end == EXPORT_LOST || end == EXPORT_BUSY) {
        bool went_on = before != export->from;

        before = export->from;
        if (!wire_connect(&export->wire, tell_waits, export)) {
            end = EXPORT_LOST;
            break;
        }
        if (export->slot_count == 0) {
            ask_whole(export);
        }
        end = export_take_all(export);
        wire_close(&export->wire);
        if ((end == EXPORT_LOST && !went_on) || export->from > export->to) {
            break;
        }
        busy_s = end == EXPORT_BUSY && !went_on ? busy_s + 1 : 0;
        if (busy_s * 1000ull > export->patience_ms) {
            break;
        }
        if (end == EXPORT_BUSY) {
            sleep(1);
        }
    }
    progress_clear(&export->progress);
    bool whole = end == EXPORT_DONE || export->from > export->to;
    if (end == EXPORT_BUSY) {
        export->failure = EXIT_STATUS_NO_ANSWER;
    }
    if (!whole && end != EXPORT_REFUSED) {
        verb_complain(stderr, "%s" GO_ON,
                      end == EXPORT_BUSY ? "the daemon makes as many lists as it may"
                                         : export->wire.error,
                      export->from);
    }
    return whole;
}

/* ---- the command line ---- */

static const char *const export_formats[] = {"ndjson", "tsv", NULL}; /* as enum export_format */

static const struct option_row export_rows[] = {
    {"server", ARGUMENTS_TEXT(struct export, target.server), .initial = WIRE_SERVER,
     .help = "host:port, [v6]:port or /path.sock"},
    WIRE_ROWS(struct export, target),
    {"format", ARGUMENTS_WORD(struct export, format, export_formats), .initial = "ndjson",
     .help = "ndjson: {\"id\":7,\"like\":3}; tsv: a line of names, then numbers"},
    {"from", ARGUMENTS_NUMBER(struct export, from, 0, ID_MAX), .help = "begin at this id"},
    {"to", ARGUMENTS_NUMBER(struct export, to, 0, ID_MAX), .help = "end at this id"},
    {"hash", OPTION_CUSTOM, ARGUMENTS_AT(struct export, part),
     .help = "I/N: only part I, from 1 on, of N parts of the hash range: ids with hash % N = I - "
             "1, by twemproxy's `hash: murmur` of the id's digits"},
    {"output", ARGUMENTS_TEXT(struct export, output), .help = "a new file; else stdout"},
    {"resume", ARGUMENTS_FLAG(struct export, resume),
     .help = "go on after the last line of the output"},
    {"timeout", ARGUMENTS_SECONDS(struct export, patience_ms, 1, WIRE_PATIENCE_MS_MAX),
     .initial = "60", .help = "the longest wait for the daemon, in seconds: 0.2, 5min"},
    {"json-safe-ids", ARGUMENTS_FLAG(struct export, safe_ids),
     .help = "ndjson: ids above 2^53 as strings"},
    {"quiet", ARGUMENTS_FLAG(struct export, quiet), .help = "no progress"},
    {.name = NULL},
};

static bool export_take_part(const struct option_row *row, const char *text, void *into)
{
    struct export *export = into;

    if (part_parse(text, &export->part)) {
        return true;
    }
    verb_complain(stderr, "--%s must be I/N: part I of N, 1/N to N/N, with N up to %u, not \"%s\"",
                  row->name, PART_COUNT_MAX, text);
    return false;
}

static const struct arguments export_line = {
    .name = "export",
    .words = "SPACE",
    .examples = "  rollcall export feed --format tsv --output feed.tsv\n"
                "  rollcall export feed --from 5999998 | jq .like\n",
    .does =
        "Writes the records of a space of a running daemon in the order of their ids. An id that\n"
        "is there all the while is written once, with the counts it has at some time meanwhile.",
    .ends = "A slot that is unset is left out (tsv: empty). rollcall load reads both formats.\n"
            "Exit status: 0 all is written, 1 it is not, 2 bad options, or no such space, 3 no\n"
            "answer, 4 the daemon refuses.",
    .rows = export_rows,
    .words_least = 1,
    .words_most = 1,
    .take_custom = export_take_part,
};

static int export_begin(struct export *export, const char *space)
{
    char error[WIRE_ERROR_MAX];

    export->space = space;
    if (strlen(space) >= SPACE_MAX || strchr(space, ' ') != NULL) {
        return (int)verb_complain(stderr, "\"%s\" is no name of a space", space);
    }
    if (export->resume && export->output == NULL) {
        return (int)verb_complain(stderr, "--resume goes on with a file: it needs --output FILE");
    }
    export->peer = wire_peer_create(&export->target, DIAL_PORT, error);
    if (export->peer == NULL) {
        return (int)verb_complain(stderr, "%s", error);
    }
    if (!open_output(export)) {
        wire_peer_destroy(export->peer);
        return VERB_USAGE;
    }
    return -1;
}

static int export_all(struct export *export)
{
    wire_init(&export->wire, export->peer, export->patience_ms);
    progress_init(&export->progress, export->quiet ? NULL : stderr, "records", 0);
    bool done = export->from > export->to || run_export(export);

    wire_fini(&export->wire);
    wire_peer_destroy(export->peer);
    bool closed = close_output(export);

    if (!closed) {
        export->failure = EXIT_STATUS_FAILED;
    }
    done = closed && done;
    if (done && !export->quiet) {
        fprintf(stderr, "%" PRIu64 " records, %.0f a second\n", export->done,
                progress_rate(&export->progress, export->done));
    }
    if (done || export->failure != EXIT_STATUS_DONE) {
        return (int)export->failure;
    }
    return (int)wire_status(&export->wire);
}

int export_main(int argc, char **argv)
{
    struct export export = {.to = ID_MAX};

    wire_target_init(&export.target);
    int status = arguments_take(&export_line, argc, argv, &export);

    if (status < 0) {
        status = export_begin(&export, argv[optind]);
        status = status < 0 ? export_all(&export) : status;
    }
    arguments_clear(&export_line, &export);
    return status;
}
