/*
 * backup_private.h: what the files of backup and restore share. Included by backup*.c and restore.c
 * only.
 *
 *     backup.c           the verb: where from, the order of steps
 *     backup_take.c      what belongs together: a manifest, its files, the journal up to one LSN
 *     backup_journal.c   segments of the journal, cut at the last whole record
 *     backup_list.c      the file BACKUP
 *     restore.c          the verb restore
 *
 * A backup is a data directory, and BACKUP beside it, which lists its files and is written last: a
 * directory without it is none. BACKUP.begun is there from the beginning until then, and makes it
 * one that may be gone on with.
 */
#ifndef ROLLCALL_TOOLS_BACKUP_PRIVATE_H
#define ROLLCALL_TOOLS_BACKUP_PRIVATE_H

#include "store/dir_lock.h"
#include "store/journal_format.h"
#include "tools/rollcall/copy.h"
#include "tools/rollcall/verb.h"

#define BACKUP_NAME     "BACKUP"
#define BACKUP_BEGUN    "BACKUP.begun"
#define BACKUP_NOTE_MAX 4096        /* bytes of that */
#define BACKUP_LIST_MAX (64u << 20) /* of BACKUP, which may name as many files as a manifest */
/* Points (base/point.h) of a test: a manifest was read; before each segment is opened. */
#define BACKUP_POINT_MANIFEST "backup manifest read"
#define BACKUP_POINT_SEGMENT  "backup segment"

/* A segment, and its header page as it was when it was opened: its marks are older than the data.
 */
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

/* Copies the set's tables to copy->to, and tells how far it is. False with copy->error. */
bool backup_copy_tables(struct copy *copy, const struct backup_set *set);
/* Removes what is in copy->to and belongs to no file of the set. */
bool backup_sweep(struct copy *copy, const struct backup_set *set);

/* Returns whether the directory is sound, and the journal up to lsn. Prints what is not. */
bool backup_verify(const struct copy *copy, bool quiet);

/* ---- BACKUP ---- */

struct backup_listed {
    char name[MANIFEST_FILE_NAME_MAX + 1];
    uint64_t bytes;
    uint64_t sum;
    bool summed; /* else the file was not read when the backup was made */
};

struct backup_list {
    uint64_t lsn; /* up to which the backup goes */
    uint64_t sum; /* of the list: tells one backup from another */
    struct backup_listed *files;
    size_t count;
};

enum backup_state {
    BACKUP_NONE, /* no such file, or none that can be read */
    BACKUP_WHOLE,
    BACKUP_DAMAGED, /* not as it was written, or of another version */
};

/* Only WHOLE needs a fini; after another the list is empty. */
enum backup_state backup_list_read(const char *directory, struct backup_list *list);
void backup_list_fini(struct backup_list *list);
/* Lists what is in copy->to. all: files that are links, too, are read. False with copy->error. */
bool backup_list_write(struct copy *copy, const struct backup_set *set, uint64_t lsn, bool all);
/* NULL: it is not listed. Valid as long as the list. */
const struct backup_listed *backup_list_find(const struct backup_list *list, const char *name);
/* Reads all that is listed in copy->to. False with copy->error; a file that differs is removed. */
bool backup_list_check(struct copy *copy, const struct backup_list *list);

#endif
