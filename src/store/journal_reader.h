/*
 * journal_reader.h: the journal of a running daemon, read from its files from an LSN on, for as
 * long as it grows: whole, sound records in the order of the stream.
 *
 * Files are read with pread, mostly from the system's memory. A segment may be replaced or deleted
 * meanwhile; an open one stays readable, and holds the same records as what replaces it.
 *
 * Thread rule: a reader belongs to one thread, which may block on the disk.
 */
#ifndef ROLLCALL_STORE_JOURNAL_READER_H
#define ROLLCALL_STORE_JOURNAL_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/journal_format.h"

#define JOURNAL_READER_FRONT 64u        /* bytes before the records, for the caller: a line's */
#define JOURNAL_READER_BYTES (1u << 20) /* of records at a time */
#define JOURNAL_BEFORE_BYTES (256u << 10)

enum journal_read {
    JOURNAL_READ_RECORDS,
    JOURNAL_READ_NOTHING, /* there is no whole record below the limit */
    JOURNAL_READ_GONE,    /* the journal begins later now */
    JOURNAL_READ_BAD,     /* no sound record begins there: error */
};

struct journal_reader {
    struct vfs *vfs;
    const char *directory;
    uint64_t at; /* the next record begins there */
    int fd;      /* of the segment that holds `at`; -1: none */
    struct journal_header header;
    uint64_t end; /* of the stream in it */
    bool began;   /* `at` is where a segment begins whose predecessor's sum is known: header */
    char *front;  /* JOURNAL_READER_FRONT bytes and JOURNAL_READER_BYTES of records */
    uint64_t *records;
    size_t length; /* bytes of records that were read last */
    char error[JOURNAL_ERROR_MAX];
};

/* Nothing is read yet. */
void journal_reader_init(struct journal_reader *reader, struct vfs *vfs, const char *directory,
                         uint64_t lsn);
void journal_reader_fini(struct journal_reader *reader);

/* RECORDS: `length` bytes at `records`, of one segment, and `at` is after them; nothing at or above
 * limit, which the journal says is written. */
enum journal_read journal_reader_next(struct journal_reader *reader, uint64_t limit);

/* The records of one segment that begin below an LSN, by at most JOURNAL_BEFORE_BYTES. */
struct journal_before {
    uint64_t from, sum;      /* the first of them; the running sum of all */
    uint64_t last, last_sum; /* the last one */
    bool crosses;            /* it ends beyond the LSN: no record begins there */
};

/* RECORDS: `before` tells what there is. NOTHING: the journal begins there, or is empty. BAD: they
 * cannot be read. limit: as above. */
enum journal_read journal_reader_before(struct vfs *vfs, const char *directory, uint64_t lsn,
                                        uint64_t limit, struct journal_before *before);

/* Returns whether the open segment was deleted: then it takes room on the disk only for this
 * reader. */
bool journal_reader_is_last(const struct journal_reader *reader);

#endif
