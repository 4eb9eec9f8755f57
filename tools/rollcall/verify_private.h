/* verify_private.h: what the files of the verb verify share. Included by verify*.c only. */
#ifndef ROLLCALL_TOOLS_VERIFY_PRIVATE_H
#define ROLLCALL_TOOLS_VERIFY_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "store/manifest.h"
#include "tools/rollcall/verify.h"

#define VERIFY_FINDINGS_MAX 100 /* printed of one file; all are counted */

struct verify {
    struct vfs *vfs;
    const struct verify_options *options;
    FILE *out, *errors;
    bool running; /* a daemon holds the lock */

    char **names; /* of the directory, sorted */
    size_t names_count, names_room;
    enum manifest_state manifest_state;
    struct manifest *manifest; /* NULL: there is none that can be read */
    bool journal_known;        /* its end is known */
    uint64_t journal_end;

    unsigned renewals; /* of the manifest, beside a daemon */
    struct verify_count {
        uint64_t findings, file_findings; /* in all; in the present file */
        uint64_t unjudged;                /* files of a newer version */
        uint64_t files, bytes, records;
    } count;
};

/* What is said of a part that may have to be looked at again. */
struct verify_part {
    FILE *out; /* what it is said to in the end */
    FILE *memory;
    char *text;
    size_t length;
    struct verify_count count; /* before it */
};

/* ---- verify.c ---- */

/* The next file; name "" if it is the directory. Ends the one before. */
void verify_begin(struct verify *verify, const char *name);
/* Damage: a line. */
__attribute__((format(printf, 2, 3))) void verify_finding(struct verify *verify, const char *format,
                                                          ...);
/* What a newer version wrote: a line. */
void verify_unjudged(struct verify *verify, const char *text);
/* What is worth knowing and no damage. */
__attribute__((format(printf, 2, 3))) void verify_note(struct verify *verify, const char *format,
                                                       ...);
/* What is being looked at. */
__attribute__((format(printf, 2, 3))) void verify_progress(struct verify *verify,
                                                           const char *format, ...);
void verify_count_file(struct verify *verify, const char *name); /* among what was checked */
/* Beside a daemon all that is said is held back, until it is said or counts for nothing. */
void verify_part_begin(struct verify *verify, struct verify_part *part);
void verify_part_end(struct verify *verify, struct verify_part *part, bool said);
/* Beside a daemon: MANIFEST as it is now, if that is sound and another look at it may be taken.
 * NULL: it does not help. The caller destroys it, or gives it to verify_renew(). */
struct manifest *verify_manifest_now(struct verify *verify);
void verify_renew(struct verify *verify, struct manifest *now); /* it is what is looked at */
/* DIR/name into path; too long is a finding. */
bool verify_path(struct verify *verify, char path[VFS_PATH_MAX], const char *name);

/* ---- verify_journal.c ---- */

void verify_journal(struct verify *verify);

/* ---- verify_files.c ---- */

bool verify_is_table(struct verify *verify, const char *name); /* by its header's magic, or name */
/* The tables the manifest names, or all there are without one; then what is left over. */
void verify_tables(struct verify *verify);
void verify_leftovers(struct verify *verify);

#endif
