/*
 * manifest.h: which files a data directory is made of: one small text file, MANIFEST, replaced as a
 * whole by vfs_replace_file. What it does not name is not part of the data.
 *
 * A file is named here only when it is durable, and unlinked only when a manifest without it is
 * durable: so whichever manifest a crash leaves, all it names is there.
 *
 * The text, line by line; words are separated by one space, numbers decimal, hex lower-case:
 *
 *     line                            times    meaning
 *     rollcall-manifest 2             1        format version
 *     epoch N                         1        of the start that wrote it
 *     stop clean | stop no            1        clean: the server ended whole, nothing came after
 *     table-event LSN                 1        of the last table event (open, dump, recycle) in it
 *     journal LSN                     1        replay begins here: the oldest S that is needed
 *     stream HEX                      1        32 digits, not all zero: made at random with the
 *                                              directory; the journal's records are of this stream
 *     history EPOCH LSN               any      \ from this LSN on that epoch reigned (journal.h);
 *                                              / both rise, EPOCH up to that of the second line
 *     space NAME number N kind KIND   a space  number: stable, never given to another space
 *     data LABEL HEX                  any      \ of the space above: opaque bytes (`-`: none);
 *     file NAME role R serial N       any      / a table file. role: image (loaded at a start) or
 *       layer N generation N start S             dump (read where it lies). The line goes on as
 *       end E first ID last ID bytes N           shown here
 *     checksum HEX                    1        16 digits: XXH3 of all lines before it
 *
 * The text always ends with the checksum's line and its newline; whatever the version, the first
 * line and the last stay so. A file that differs in a byte, or is cut short, is damaged.
 *
 * Thread rule: a struct manifest belongs to one thread; load and store may block on the disk.
 */
#ifndef ROLLCALL_STORE_MANIFEST_H
#define ROLLCALL_STORE_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/vfs.h"

#define MANIFEST_NAME           "MANIFEST"
#define MANIFEST_PROBE_NAME     "probe" VFS_TEMPORARY /* made and deleted by each start */
#define MANIFEST_TABLE_SUFFIX   ".table"              /* ends the names of table files */
#define MANIFEST_VERSION        2u                    /* 1: neither stream nor history */
#define MANIFEST_BYTES_MAX      (64u << 20)           /* of the text */
#define MANIFEST_STREAM_WORDS   2
#define MANIFEST_HISTORY_MAX    1024 /* lines: the oldest goes */
#define MANIFEST_SPACES_MAX     64
#define MANIFEST_DATA_MAX       8            /* labels of a space */
#define MANIFEST_DATA_BYTES_MAX (64u << 10)  /* of one label */
#define MANIFEST_FILES_MAX      (128u << 10) /* of a space */
#define MANIFEST_SPACE_NAME_MAX 32           /* characters: a-z 0-9 _ - ; so a kind and a label */
#define MANIFEST_WORD_MAX       15           /* characters of a kind, of a label */
#define MANIFEST_FILE_NAME_MAX  95 /* characters: letters, digits, _ - . ; no dot in front */
#define MANIFEST_ERROR_MAX      512

enum manifest_role { MANIFEST_IMAGE, MANIFEST_DUMP };

struct manifest_file {
    char name[MANIFEST_FILE_NAME_MAX + 1]; /* in the data directory */
    enum manifest_role role;
    uint64_t serial, layer, generation; /* of the table */
    uint64_t start_lsn, end_lsn;        /* S and E; start <= end */
    uint64_t first_id, last_id;         /* of its range; first <= last */
    uint64_t bytes;                     /* of the file */
};

struct manifest_data {
    char label[MANIFEST_WORD_MAX + 1];
    unsigned char *bytes;
    size_t length;
};

struct manifest_space {
    char name[MANIFEST_SPACE_NAME_MAX + 1];
    char kind[MANIFEST_WORD_MAX + 1];
    uint64_t number;
    struct manifest_data data[MANIFEST_DATA_MAX];
    size_t data_count;
    struct manifest_file *files; /* sorted by name */
    size_t files_count, files_room;
};

struct manifest_reign {
    uint64_t epoch, lsn;
};

/* Fields may be read freely, the plain numbers set; lists change through the functions below. */
struct manifest {
    uint64_t epoch;
    bool clean_stop;
    uint64_t table_event_lsn;
    uint64_t journal_lsn;
    uint64_t stream[MANIFEST_STREAM_WORDS]; /* both 0: none yet, so it cannot be stored */
    struct manifest_reign history[MANIFEST_HISTORY_MAX];
    size_t history_count;
    struct manifest_space spaces[MANIFEST_SPACES_MAX];
    size_t spaces_count;
};

/* Where a walk over all files is. */
struct manifest_at {
    size_t space; /* of the file last returned */
    size_t next;  /* its next one */
};

enum manifest_state {
    MANIFEST_SOUND,
    MANIFEST_NONE,    /* there is no such file */
    MANIFEST_DAMAGED, /* not as it was written */
    MANIFEST_NEWER,   /* sound, of another version than this program knows */
    MANIFEST_FAILED,  /* could not be read */
};

/* ---- the content ---- */

struct manifest *manifest_create(void);           /* empty; never NULL. Large: not for the stack */
void manifest_destroy(struct manifest *manifest); /* NULL: no-op */

/* Copies all but the spaces and the clean stop. */
void manifest_copy_head(struct manifest *to, const struct manifest *from);
/* False, nothing changed: epoch or LSN do not rise. The epoch of the manifest follows. */
bool manifest_add_reign(struct manifest *manifest, uint64_t epoch, uint64_t lsn);

/* NULL: there is none. Valid as long as the manifest. */
struct manifest_space *manifest_find_space(struct manifest *manifest, const char *name);
/* NULL, nothing changed: name, kind or number are not allowed, or taken, or no place is left. */
struct manifest_space *manifest_add_space(struct manifest *manifest, const char *name,
                                          uint64_t number, const char *kind);

/* Sets or replaces; `bytes` are copied. False, nothing changed: not allowed or no place left. */
bool manifest_set_data(struct manifest_space *space, const char *label, const void *bytes,
                       size_t length);
/* NULL: there is none. Valid until the label is set again. */
const struct manifest_data *manifest_find_data(const struct manifest_space *space,
                                               const char *label);

/* Copies `file`. False, nothing changed: something in it is not allowed, a space has a file of that
 * name, or no place is left. */
bool manifest_add_file(struct manifest *manifest, struct manifest_space *space,
                       const struct manifest_file *file);
bool manifest_remove_file(struct manifest_space *space, const char *name); /* false: not there */
/* Of all its spaces. */
size_t manifest_count_files(const struct manifest *manifest);
/* Returns the next file of all, space by space, or NULL after the last; `at` is zeroed at first.
 * No file may be added or removed meanwhile. */
const struct manifest_file *manifest_next_file(const struct manifest *manifest,
                                               struct manifest_at *at);
uint64_t manifest_generation(const struct manifest *manifest); /* the highest; 0: no files */
/* Finds a file in any space; NULL: it is not there. Valid until a file is added or removed. */
const struct manifest_file *manifest_find_file(const struct manifest *manifest, const char *name);

/* Names of table files: SPACE-SERIAL-LAYER-GENERATION.table. */
void manifest_table_name(char name[MANIFEST_FILE_NAME_MAX + 1], const char *space, uint64_t serial,
                         uint64_t layer, uint64_t generation);
/* Returns whether only a daemon gives such a name: that of a table file, or of a manifest or probe
 * not in place yet. Such files are deleted at a start unless the manifest names them, others never.
 * (The journal looks after its own: journal_name_parse, journal_name_temporary.) */
bool manifest_name_ours(const char *name);

/* ---- the text ---- */

/* Appends it. False: larger than MANIFEST_BYTES_MAX, or than the buffer may be. */
bool manifest_compose(const struct manifest *manifest, struct buf *text);
/* SOUND: *manifest is to be destroyed. DAMAGED, NEWER: `error` names the line (`name` is the file's
 * in it) and what to do. */
enum manifest_state manifest_parse(const char *text, size_t length, const char *name,
                                   struct manifest **manifest, char error[MANIFEST_ERROR_MAX]);

/* Returns whether its last line is the checksum of all before it. Then parse says DAMAGED only of
 * what no daemon wrote. */
bool manifest_checksum_fits(const char *text, size_t length);

/* ---- the file ---- */

/*
 * SOUND: as parse. DAMAGED, NEWER, FAILED: `error`. What was loaded may not be durable yet if the
 * process before ended between rename and sync: sync the directory, or store it again, before
 * anything is deleted because this manifest does not name it.
 */
enum manifest_state manifest_load(struct vfs *vfs, const char *directory,
                                  struct manifest **manifest, char error[MANIFEST_ERROR_MAX]);
/* True: it is durable. False with `error`: the old one or the new one is there, whole, and a power
 * cut may still decide between them; unlink nothing, store again. */
bool manifest_store(struct vfs *vfs, const char *directory, const struct manifest *manifest,
                    char error[MANIFEST_ERROR_MAX]);

#endif
