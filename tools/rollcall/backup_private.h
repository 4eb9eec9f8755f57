/*
 * backup_private.h: what the files of backup and restore share. Included by backup*.c and restore.c
 * only.
 *
 *     backup.c           the verb: where from, the order of steps
 *     backup_take.c      what belongs together: a manifest, its files, the journal up to one LSN
 *     backup_journal.c   segments of the journal, cut at the last whole record
 *     restore.c          the verb restore
 *
 * A backup is a data directory, and BACKUP beside it, which says up to which LSN it goes and is
 * written last: a directory without it is none. BACKUP.begun is there from the beginning until
 * then, and makes it one that may be gone on with.
 */
#ifndef ROLLCALL_TOOLS_BACKUP_PRIVATE_H
#define ROLLCALL_TOOLS_BACKUP_PRIVATE_H

#include "store/dir_lock.h"
#include "store/journal_format.h"
#include "tools/rollcall/copy.h"
#include "tools/rollcall/verb.h"

#define BACKUP_NAME  "BACKUP"
#define BACKUP_BEGUN "BACKUP.begun"
#define BACKUP_MAX   4096 /* bytes of either */
/* Points (base/point.h) of a test: a manifest was read; before each segment is opened. */
#define BACKUP_POINT_MANIFEST "backup manifest read"
#define BACKUP_POINT_SEGMENT  "backup segment"

/* A segment, and its header page as it was when it was opened: marks in it are behind the data. */
struct backup_segment {
    struct copy_pin pin;
    _Alignas(8) unsigned char page[JOURNAL_PAGE_BYTES];
    struct journal_header header;
    struct journal_mark mark;
};

/* What belongs together, all of it open. */
struct backup_set {
    char *manifest_text;
    size_t manifest_length;
    struct manifest *manifest;
    struct copy_pin *tables;
    size_t table_count;
    struct backup_segment *segments; /* by number */
    size_t segment_count;
};

enum backup_found { BACKUP_FOUND, BACKUP_AGAIN, BACKUP_FAILED };

/* Opens all of copy->from. False with copy->error. */
bool backup_take(struct copy *copy, struct backup_set *set);
void backup_let_go(struct backup_set *set);
/* All bytes of it. */
uint64_t backup_bytes(const struct backup_set *set);

/* Opens the segments that are there, whatever they reach back to. False with copy->error. */
bool backup_journal_hold(struct copy *copy, struct backup_set *set);
/*
 * Opens those that came since, and lets go of what lies before a gap. AGAIN: the rest does not
 * reach back to `from`. FAILED with copy->error.
 */
enum backup_found backup_journal_open(struct copy *copy, struct backup_set *set, uint64_t from);
void backup_journal_close(struct backup_set *set);
/* Copies them. *lsn: where the last whole record ends. False with copy->error. */
bool backup_journal_copy(struct copy *copy, const struct backup_set *set, uint64_t *lsn);

/* Removes what is in copy->to and belongs to no file of the set. */
bool backup_sweep(struct copy *copy, const struct backup_set *set);

/* Is the directory sound, the journal up to lsn? Says what is not. */
bool backup_verify(const struct copy *copy, bool quiet);

/* Does DIR hold a whole backup? Its LSN. */
bool backup_is_whole(const char *directory, uint64_t *lsn);

#endif
