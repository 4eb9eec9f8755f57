/*
 * feed_reader.h: the journal of a running daemon, read from its files from an LSN on, for as long
 * as it grows: whole, sound records in the order of the stream.
 *
 * Files are read with pread, mostly from the system's memory. A segment may be replaced or deleted
 * meanwhile; an open one stays readable, and holds the same records as what replaces it.
 *
 * Thread rule: a reader belongs to one thread, which may block on the disk.
 */
#ifndef ROLLCALL_REPL_FEED_READER_H
#define ROLLCALL_REPL_FEED_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "repl/wire.h"
#include "store/journal_format.h"

#define FEED_READER_FRONT 64u /* bytes before the records, for the caller: a line's */

enum feed_read {
    FEED_READ_RECORDS,
    FEED_READ_NOTHING, /* there is no whole record below the limit */
    FEED_READ_GONE,    /* the journal begins later now */
    FEED_READ_BAD,     /* no sound record begins there: error */
};

struct feed_reader {
    struct vfs *vfs;
    const char *directory;
    uint64_t at; /* the next record begins there */
    int fd;      /* of the segment that holds `at`; -1: none */
    struct journal_header header;
    uint64_t end; /* of the stream in it */
    bool began;   /* `at` is where a segment begins whose predecessor's sum is known: header */
    char *front;  /* FEED_READER_FRONT bytes and REPL_DATA_MAX of records */
    uint64_t *records;
    size_t length; /* bytes of records that were read last */
    char error[JOURNAL_ERROR_MAX];
};

/* Nothing is read yet. */
void feed_reader_init(struct feed_reader *reader, struct vfs *vfs, const char *directory,
                      uint64_t lsn);
void feed_reader_fini(struct feed_reader *reader);

/* RECORDS: `length` bytes at `records`, of one segment, and `at` is behind them; nothing at or
 * above limit, which the journal says is written. */
enum feed_read feed_reader_next(struct feed_reader *reader, uint64_t limit);

/* Was the open segment deleted? Then it takes room on the disk only for this reader. */
bool feed_reader_is_last(const struct feed_reader *reader);

#endif
