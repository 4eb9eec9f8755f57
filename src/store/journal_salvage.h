/*
 * journal_salvage.h: one segment of a journal, record by record, over bad places too.
 * journal_scan() stops at the first record that is not sound, because all that follows is worth
 * nothing to a recovery; a search for the extent of damage wants to know where sound records go on.
 *
 * After a bad place each multiple of 8 is tried: a record's LSN is part of its checksum, so what
 * fits is one that was written there, but for a chance of one in 2^32 a place.
 *
 * Thread rule: a salvage belongs to one thread.
 */
#ifndef ROLLCALL_STORE_JOURNAL_SALVAGE_H
#define ROLLCALL_STORE_JOURNAL_SALVAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/journal.h"
#include "store/journal_format.h"

struct salvage {
    struct vfs *vfs;
    int fd;
    uint64_t size; /* of the file */
    enum journal_page_state state;
    const char *why; /* the header is not sound; static */
    /* the rest only if it is sound */
    struct journal_header header;
    struct journal_mark mark;
    uint64_t end; /* LSN where reading ends: where it is full; the caller may lower it */
    uint64_t at;  /* LSN of what comes next */
    unsigned char *window;
    uint64_t window_lsn, window_bytes;
};

enum salvage_step {
    SALVAGE_RECORD, /* a sound one; the journal's own are given too */
    SALVAGE_GAP,    /* what is no record */
    SALVAGE_END,    /* nothing but zeroes follows, or it is full */
    SALVAGE_FAILED, /* cannot be read: errno */
};

struct salvage_item {
    uint64_t lsn, bytes;
    const char *why;              /* GAP; static */
    bool resumes;                 /* GAP: sound records follow it */
    uint64_t word;                /* RECORD: its first, which running sums are made of */
    struct journal_record record; /* RECORD: valid until the next call */
};

/* Reads the header. False with errno: it could not be read. True: fini, whatever the state. */
bool salvage_init(struct salvage *salvage, struct vfs *vfs, const char *path);
void salvage_fini(struct salvage *salvage);

/* Reads what stands at salvage->at, and goes on after it. The header is sound. */
enum salvage_step salvage_next(struct salvage *salvage, struct salvage_item *item);

/* Reads a segment whose own header may not be sound by another one. */
void salvage_trust(struct salvage *salvage, const struct journal_header *header);

/* Goes on from `lsn`, in a segment that begins there or below it. */
static inline void salvage_seek(struct salvage *salvage, uint64_t lsn)
{
    salvage->at = lsn;
}

/* Sound records. */
struct salvage_found {
    uint64_t records, bytes; /* the journal's own records too */
    uint64_t first;          /* LSN; if there are any */
};
/* Adds all records that follow to *found; `first` is the lowest. False with errno. */
bool salvage_count(struct salvage *salvage, struct salvage_found *found);

/* Everything below this LSN was on the disk once, by what this segment says of itself. */
uint64_t salvage_durable(const struct salvage *salvage);
/* The same, or written in this run of the system: then a kill has not taken it back. */
uint64_t salvage_reach(const struct salvage *salvage);

#endif
