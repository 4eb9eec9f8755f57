/*
 * wire.h: what a follower and the node it follows say to each other: lines of text, each with its
 * CR LF, some with bytes after it. Both sides parse and compose every line here.
 *
 * The conversation is on an ordinary connection of the text protocol, after TLS and a login where
 * these are asked for. C is the follower, S the node it follows (itself the leader, or a follower).
 *
 *     C  follow 1 GROUP NAME STREAM EPOCH LSN    I have all records below LSN; EPOCH: of the last
 *                                                of them. STREAM: `-` with 0 0: nothing yet
 *     S  STREAM ID EPOCH LSN      same history, and EPOCH reigns here now: records from LSN follow
 *      | REWIND EPOCH LSN         your history leaves mine at LSN, where EPOCH ended here
 *      | COPY REASON              other stream, or the journal before LSN is gone: fetch a copy
 *      | BUSY SECONDS             come back then, plus jitter: copies are being served and you
 *                                 need one, or all feeds are taken
 *      | SERVER_ERROR TEXT
 *   After STREAM, until somebody closes:
 *     S  D LSN BYTES + bytes      whole records of the journal that begin at LSN, pads too; the
 *                                 next D begins where this one ends. BYTES: 8 to REPL_DATA_MAX
 *     S  T WRITTEN DURABLE EPOCH UNIX_US   at once, then each REPL_TICK_MS, idle or not, and
 *                                 before a D when it is due. WRITTEN may be above what was sent
 *     S  V FROM LSN SUM           the running sum (journal_sum) of all records from FROM to LSN,
 *                                 one segment of S. After the D that ends at LSN. FROM may lie
 *                                 below where the stream began: a follower that lacks records
 *                                 from FROM on skips the line. A sum that is not known is not sent.
 *                                 Right after STREAM, too: of JOURNAL_BEFORE_BYTES or less before
 *                                 that LSN, and of the last record before it; if that ends beyond
 *                                 it here, then SERVER_ERROR
 *     S  COPY REASON              you are more than `keep` behind, the rest is gone. S closes
 *     S  SERVER_ERROR TEXT        S closes
 *     C  A WRITTEN DURABLE APPLIED   after each write of its own, and each REPL_TICK_MS at the
 *                                 latest. Nothing else may come. None of them ever falls, and
 *                                 neither DURABLE nor APPLIED is above WRITTEN
 *
 *     C  copy 1 GROUP NAME
 *     S  MANIFEST BYTES + text    its files stay while this connection lives: an unlink does not
 *                                 take them. The journal from its `journal` LSN on stays as far
 *                                 as `keep` goes: if that was too little, follow says COPY again
 *      | BUSY SECONDS | SERVER_ERROR TEXT
 *     C  file NAME OFFSET         any number, pipelined, of files the manifest names
 *     S  FILE NAME OFFSET BYTES + bytes   from OFFSET to the file's end. In the order asked for
 *     C  follow ...               on the same connection, with the LSN of the manifest's `journal`
 *                                 line and the EPOCH of its last `history` line at or below that
 *
 * After REWIND, COPY (as an answer) and all answers to copy and file but SERVER_ERROR and BUSY the
 * next follow, copy or file may come on the same connection. Who hears a SERVER_ERROR or BUSY is
 * closed.
 *
 * Silence: either side closes when nothing came for REPL_SILENCE_S of a stream, or a write made no
 * progress for so long. In a copy (a disk syncs, a file is read once more) it is REPL_PAUSE_S.
 *
 * Words are separated by one space. Numbers are decimal without sign; ID and STREAM are
 * REPL_STREAM_DIGITS hex digits, lower-case, not all 0; SUM is 16. GROUP and NAME: repl_name_good.
 * REASON and TEXT are the rest of the line: one sentence.
 *
 * The first number of follow and copy is REPL_VERSION; another is refused with a sentence that
 * names both, whatever stands after it.
 *
 * Pure functions, any thread.
 */
#ifndef ROLLCALL_REPL_WIRE_H
#define ROLLCALL_REPL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/manifest.h"

#define REPL_VERSION       1u
#define REPL_LINE_MAX      320u /* bytes of a line with its CR LF */
#define REPL_TEXT_MAX      256u /* of a REASON or TEXT */
#define REPL_NAME_MAX      64u  /* of a GROUP or NAME */
#define REPL_STREAM_DIGITS 32u
#define REPL_DATA_MAX      (1u << 20) /* bytes of a D */
#define REPL_TICK_MS       200u
#define REPL_SILENCE_S     5u
#define REPL_PAUSE_S       60u
#define REPL_BUSY_MAX      3600u /* SECONDS of a BUSY */
#define REPL_CHANGE_BYTES  24u /* of a change of one slot in the journal: what a loss is told by */

enum repl_side { REPL_OF_FOLLOWER, REPL_OF_LEADER }; /* who says it */

enum repl_kind {
    /* a follower's */
    REPL_FOLLOW,
    REPL_COPY_REQUEST,
    REPL_FILE_REQUEST,
    REPL_ACK,
    /* a leader's */
    REPL_STREAM,
    REPL_REWIND,
    REPL_COPY,
    REPL_BUSY,
    REPL_ERROR,
    REPL_DATA,
    REPL_TIME,
    REPL_SUM,
    REPL_MANIFEST,
    REPL_FILE,
    REPL_KINDS
};

/* A line. Of the fields only those hold something that the kind has. */
struct repl_line {
    enum repl_kind kind;
    char group[REPL_NAME_MAX + 1], name[REPL_NAME_MAX + 1];
    uint64_t stream[MANIFEST_STREAM_WORDS]; /* all 0: none yet */
    uint64_t epoch, lsn;
    uint64_t from, sum;                 /* SUM */
    uint64_t written, durable, applied; /* ACK, TIME */
    uint64_t unix_us;                   /* TIME */
    uint64_t bytes;                     /* DATA, MANIFEST, FILE: that follow the line */
    uint64_t offset;                    /* FILE, FILE_REQUEST */
    uint64_t seconds;                   /* BUSY */
    char file[MANIFEST_FILE_NAME_MAX + 1];
    char text[REPL_TEXT_MAX + 1]; /* COPY, ERROR */
};

/* Letters a to z, digits, `_`, `-` and `.`, 1 to REPL_NAME_MAX, a letter or digit in front. */
bool repl_name_good(const char *name, size_t length);

/*
 * Reads a line of `side`: text[0..length) without its end. False, with one sentence in `error` that
 * may follow SERVER_ERROR: it is none, or a limit above is broken.
 */
bool repl_parse(enum repl_side side, const char *text, size_t length, struct repl_line *line,
                char error[REPL_TEXT_MAX + 1]);

/*
 * Composes a line with its CR LF; no NUL. Returns its length. A text that is too long is cut, and
 * what is not printable in it becomes `?`; all other fields must be as repl_parse gives them.
 */
size_t repl_compose(const struct repl_line *line, char text[REPL_LINE_MAX]);

#endif
