/*
 * load_private.h: what the files of the verb load share. Included by load*.c only.
 *
 *     load.c            the loop over all lines
 *     load_options.c    the command line
 *     load_input.c      lines out of files, and where they stand
 *     load_reader.c     a thread that does the two next for --offline
 *     load_parse.c      a line as a row: id, slots or member
 *     load_space.c      what the daemon says of the space; a row as commands
 *     load_batch.c      a batch of rows: sent, answered, sent again where the daemon was busy
 *     load_raise.c      the same for --mode max
 *     load_fill*.c      --offline: no daemon, but its tables
 *     load_life.c       whether the daemon still has what it acknowledged
 *     load_state.c      the checkpoint file and the file of rejected lines
 *
 * Two batches are on their way at one time: the next one is read and sent while the daemon answers
 * the one before. A batch is spread over connections by its ids; so all of one id is in the order
 * of the lines, also where some are sent again.
 */
#ifndef ROLLCALL_TOOLS_LOAD_PRIVATE_H
#define ROLLCALL_TOOLS_LOAD_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/num.h"
#include "engine/engine.h"
#include "tools/rollcall/load_fill.h"
#include "tools/rollcall/progress.h"
#include "tools/rollcall/wire.h"

#define LOAD_COLUMNS_MAX     64
#define LOAD_NAME_MAX        64          /* bytes of a column's or space's name, NUL included */
#define LOAD_LINE_MAX        (64u << 10) /* bytes of an input line */
#define LOAD_BATCH_MAX       65536u      /* rows */
#define LOAD_KEY_MAX         250u
#define LOAD_CONNECTIONS_MAX 64u
#define LOAD_WHY_MAX         128
#define LOAD_SHORTER         "it is shorter than the checkpoint says; not the same input?"
#define LOAD_LOSSES_MAX      5 /* connections lost one right after the other */
#define LOAD_ID_MAX          ((uint64_t)INT64_MAX)

enum load_format { LOAD_BY_NAME, LOAD_CSV, LOAD_TSV, LOAD_NDJSON };
enum load_mode { LOAD_SET, LOAD_ADD, LOAD_MAX };
enum load_progress { LOAD_LINES, LOAD_EVENTS };

struct load_options {
    struct wire_target target;
    const char *space;
    const char *columns; /* NULL: the first line of each file names them, or ndjson does */
    enum load_format format;
    enum load_mode mode;
    const char *checkpoint; /* NULL: none */
    const char *reject;     /* NULL: none */
    uint64_t max_errors;
    uint64_t batch; /* rows */
    uint64_t connections;
    unsigned patience_ms;
    bool quiet;
    enum load_progress progress;
    char **files; /* "-": stdin */
    size_t file_count;
    const char *offline; /* a directory; NULL: into a daemon */
    const char *config;
    char only_stdin[2]; /* "-" */
    char *stdin_files[1];
};

/* The command line, and what follows from it and its words. False: it was said. */
extern const struct arguments load_arguments;
bool load_options_complete(struct load_options *options, int count, char **words);

/* ---- the space ---- */

struct load_space {
    bool members;                                                           /* of kind phantom */
    char before[LOAD_KEY_MAX], between[LOAD_KEY_MAX], behind[LOAD_KEY_MAX]; /* of a key */
    size_t before_length, between_length, behind_length;
    size_t slot_count;
    char slots[ENGINE_SLOTS_MAX][ENGINE_SPACE_NAME_MAX + 1];
};

/* False: wire->error. */
bool load_space_ask(struct load_space *space, struct wire *wire, const char *name);

/* ---- rows ---- */

struct load_row {
    uint64_t id;
    uint32_t set;                      /* bit a slot that has a number */
    uint64_t values[ENGINE_SLOTS_MAX]; /* of these */
    const char *text;                  /* into the line: the record, as columns.straight; or NULL */
    size_t text_length;
    const char *member; /* into the line */
    size_t member_length;
};

enum load_column { LOAD_IGNORED = -3, LOAD_MEMBER = -2, LOAD_ID = -1 }; /* others: a slot */

struct load_columns {
    size_t count;
    int what[LOAD_COLUMNS_MAX];                  /* in the order of a line; ndjson: of names */
    char names[LOAD_COLUMNS_MAX][LOAD_NAME_MAX]; /* ndjson */
    bool others_ignored;                         /* ndjson: names that are not here */
    uint32_t named;                              /* bit a slot that is here */
    bool straight; /* the id, then all slots in their order: what is behind the id is the record */
};

/* Names with `separator` between. False with `why`. */
bool load_columns_read(struct load_columns *columns, const struct load_space *space,
                       const char *text, size_t length, char separator, char why[LOAD_WHY_MAX]);
/* Sets the columns of ndjson without --columns: id and all slots, or id and member. */
void load_columns_all(struct load_columns *columns, const struct load_space *space);

/* The line is changed (quotes, escapes). False with `why`. */
bool load_parse(enum load_format format, const struct load_columns *columns, char *line,
                size_t length, struct load_row *row, char why[LOAD_WHY_MAX]);

/* ---- input ---- */

struct load_place {
    uint64_t file, offset, line; /* lines and bytes before it; file: its index */
};

struct load_input {
    char **files;
    size_t count;
    struct load_place place;            /* of the next line */
    int fd;                             /* -1: none is open */
    uint64_t bytes_whole, bytes_before; /* of all files; of those before. 0 whole: not known */
    char *data;
    size_t at, length, room;
    bool file_ended, noted;     /* noted: its first line was an export's note, and is none of it */
    char error[WIRE_ERROR_MAX]; /* "" at the end of all */
    bool mistaken;              /* error: it cannot be opened, or does not name its columns */
};

/* Can all be opened? False: it was said which cannot. */
bool load_input_there(char **files, size_t count);
void load_input_init(struct load_input *input, char **files, size_t count);
void load_input_fini(struct load_input *input);
/* Goes on there. False with `error`. */
bool load_input_seek(struct load_input *input, const struct load_place *place);
/*
 * The next line without its end, NUL added, to be changed, valid until the next call. first: it is
 * the first of its file. NULL: the end, or `error`.
 */
char *load_input_line(struct load_input *input, size_t *length, bool *first);

/* ---- batches ---- */

enum load_result {
    LOAD_PENDING, /* not answered, or to be sent again */
    LOAD_STORED,
    LOAD_KEPT,    /* add: it was there; max: nothing was larger */
    LOAD_REFUSED, /* `why` of the item */
};

/* Small: each is gone over some times a row. */
struct load_item {
    uint64_t id;
    uint64_t line;        /* its number, for messages */
    size_t line_at;       /* in lines */
    size_t request_at;    /* in the part's requests */
    uint32_t line_length; /* up to LOAD_LINE_MAX */
    uint32_t request_length;
    uint32_t set;     /* as of its row */
    uint8_t part;     /* the connection of its id */
    uint8_t result;   /* enum load_result */
    uint8_t commands; /* answers to come */
    bool whole;       /* the record, or a member: one command */
    uint8_t tries;    /* that a full space has refused it */
};

struct load_batch {
    size_t count;
    struct load_item *items;    /* [options->batch], as the next two */
    char (*whys)[LOAD_WHY_MAX]; /* of those that are refused, or busy */
    struct load_row *rows;      /* NULL: nobody asks for them */
    bool sent;                  /* some are answered: what is pending lies here and there */
    struct buf lines;
    struct buf requests[LOAD_CONNECTIONS_MAX];
    struct load_place end; /* of what it was made of */
    uint64_t end_bytes;    /* of all files before there */
};

/* One life of a daemon, from its start on, and how far its journal was written. */
struct load_life {
    bool known, journal; /* journal: it has one */
    uint64_t pid, started_s;
    uint64_t written; /* an LSN: what was acknowledged until then is below it */
};

struct load {
    const struct load_options *options;
    struct load_space space;
    struct load_columns columns;
    struct load_input input;
    struct wire_peer *peer;                  /* NULL: --offline */
    struct wire wires[LOAD_CONNECTIONS_MAX]; /* closed all together; the first alone asks */
    struct wire life_wire;                   /* the others have batches on their way */
    struct load_life life;                   /* which acknowledged what is done */
    struct progress progress;
    struct load_batch batches[2];
    struct buf scratch;
    FILE *rejects;                       /* NULL: none */
    uint64_t stored, kept, refused;      /* rows, by this run and those before */
    uint64_t reject_bytes, reject_inode; /* of that file, at the checkpoint */
    uint64_t waits;                      /* times the daemon was busy */
    uint64_t before;                     /* rows of the runs before */
    struct load_place done;              /* all before it is answered */
    uint64_t done_bytes;                 /* of all files, likewise */
    uint64_t saved_us; /* when a checkpoint was last made durable, or would have been */
    unsigned complaints;
    bool begun;    /* rows are on their way, or carried out, by this run */
    bool mistaken; /* what failed is a mistake in the arguments, and nothing was begun */
    struct fill_options fill_options;
    struct fill *fill;  /* NULL: into a daemon */
    uint64_t fill_last; /* the largest id so far */
    char why_failed[WIRE_ERROR_MAX];
};

/* Appends a row's commands; how many. 0 with `why`: the key would be too long. */
unsigned load_space_compose(const struct load *load, const struct load_row *row, struct buf *to,
                            char why[LOAD_WHY_MAX]);
void load_put_number(struct buf *to, uint64_t number); /* appends it */
/* May such a row be sent? False with `why`. */
bool load_space_takes(const struct load *load, const struct load_row *row, char why[LOAD_WHY_MAX]);
/* Do the columns name all slots? */
bool load_space_is_whole(const struct load *load);
#define LOAD_RECORD_MAX (ENGINE_VALUE_MAX + NUM_DIGITS_MAX)
/* The record as text[LOAD_RECORD_MAX], without a NUL; how many bytes. */
size_t load_space_print(const struct load_space *space, const struct load_row *row, char *text);
/* Appends the key of a row's record. */
void load_space_key(const struct load_space *space, const struct load_row *row, struct buf *to);

/* Reads and composes the next one. False with input.error. An empty batch: the end. */
bool load_batch_fill(struct load *load, struct load_batch *batch);
bool load_fail(struct load *load, const char *what); /* why_failed says it; false */

/*
 * A thread that does so for both batches in turn, one ahead. next: NULL: the end, or it failed;
 * give: the batch is done with, before the next; stop: false: it failed, with input.error.
 */
struct load_reader;
struct load_reader *load_reader_start(struct load *load); /* NULL with why_failed */
struct load_batch *load_reader_next(struct load_reader *reader);
void load_reader_give(struct load_reader *reader);
bool load_reader_stop(struct load_reader *reader);

/* Sends what is pending of a batch; the load is begun. False with why_failed. */
bool load_batch_send(struct load *load, struct load_batch *batch);
/*
 * Takes the answers of `batch`; `next` (may be NULL) was sent after it. Where the daemon was busy,
 * both are answered when this returns. False with why_failed.
 */
bool load_batch_finish(struct load *load, struct load_batch *batch, struct load_batch *next);
/* The same for --mode max, sent and answered. */
bool load_raise(struct load *load, struct load_batch *batch);
/* Why an item is refused, or busy: to be written, or read. */
static inline char *load_why(const struct load_batch *batch, const struct load_item *item)
{
    return batch->whys[item - batch->items];
}
/* An answer of one command; false: it is none. busy: it is to be sent again. */
bool load_take_answer(const struct load_batch *batch, struct load_item *item, const char *line,
                      bool *busy);
/* Waits a moment; false with why_failed when the daemon has been busy for too long. */
bool load_pause(struct load *load, uint64_t *since_us, const char *why);
/* Connects, anew after a failure. False with why_failed. */
bool load_connect(struct load *load);
void load_disconnect(struct load *load);
bool load_is_connected(const struct load *load);

/* ---- offline ---- */

bool load_fill_open(struct load *load); /* load->fill, and what its space is. False: it was said */
/* As load_space_compose: the texts of operations. */
unsigned load_fill_compose(const struct load *load, const struct load_row *row, struct buf *to,
                           char why[LOAD_WHY_MAX]);
/* Carries out a batch. False with why_failed. */
bool load_fill_batch(struct load *load, struct load_batch *batch);

/* ---- life ---- */

/*
 * Looks at the daemon, which may be another one than before: started again, without what it had
 * acknowledged. False with why_failed; where it does not answer that is left for the next time.
 */
bool load_life_see(struct load *load);

/* ---- state ---- */

/* Reads the checkpoint, if there is one. False: said. */
bool load_state_read(struct load *load);
/* durable: it survives a power cut. False with why_failed. */
bool load_state_write(struct load *load, bool durable);
/* Opens and adds to the file of rejected lines. False: said. */
bool load_rejects_open(struct load *load);
/* The batch is answered: counts, complaints, rejects. */
void load_count(struct load *load, const struct load_batch *batch);

#endif
