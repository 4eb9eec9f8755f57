/* repair_private.h: what the files of the verb repair share. Included by repair*.c only. */
#ifndef ROLLCALL_TOOLS_REPAIR_PRIVATE_H
#define ROLLCALL_TOOLS_REPAIR_PRIVATE_H

#include "store/journal_chain.h"
#include "store/manifest.h"
#include "store/table_rescue.h"
#include "tools/rollcall/repair.h"

struct repair {
    struct vfs *vfs;
    const struct repair_options *options;
    FILE *out, *errors;
    struct manifest *manifest;
    uint64_t repairs;  /* done, or to be done */
    uint64_t hopeless; /* what cannot be repaired */
    bool failed;       /* a write failed, and was said: nothing further is tried */
};

/* ---- repair.c ---- */

/* A line of what is wrong and what is, or would be, done about it. */
__attribute__((format(printf, 2, 3))) void repair_say(struct repair *repair, const char *format,
                                                      ...);
/* And of what cannot be repaired. */
__attribute__((format(printf, 2, 3))) void repair_cannot(struct repair *repair, const char *format,
                                                         ...);
/* A call failed: `doing` a file, errno says why. Returns false. */
bool repair_fail(struct repair *repair, const char *name, const char *doing);
/* DIR/name moves to DIR/lost. */
bool repair_keep(struct repair *repair, const char *name);
/* A copy of some bytes of a file goes there, as NAME.OFFSET. */
bool repair_keep_bytes(struct repair *repair, const char *name, uint64_t offset, const void *bytes,
                       size_t length);

/* ---- repair_tables.c ---- */

/* One file of a space. */
struct repair_work {
    struct repair *repair;
    struct manifest_space *space;
    struct manifest_file file; /* as MANIFEST is to have it, but for its name, generation, bytes */
    const void *description;   /* of the same length as before; NULL: as it was */
    uint64_t *generation;      /* the highest of all */
};

void repair_tables(struct repair *repair);

/* The new file, and its line in place of the old one's. False, and said: it cannot be written. */
bool repair_write_anew(struct repair_work *work, struct table_rescue *rescue,
                       const struct table_rescue_told *told);

/* ---- repair_lost.c: files that have nothing left ---- */

/* Leaves the file out, or says that the space cannot go without it; `why` says what is wrong. */
void repair_give_up(struct repair_work *work, const char *why);
/* What is left of the space fits together again; `before`: all the files it had. */
void repair_close_gaps(struct repair *repair, struct manifest_space *space,
                       const struct manifest_file *before, size_t count, uint64_t *generation);

/* ---- repair_segments.c: which segments there are, or must be ---- */

struct repair_segment {
    char name[JOURNAL_NAME_MAX];
    struct journal_header header;
    struct journal_mark mark;
    uint64_t end; /* of the stream in it */
    bool there;   /* there is such a file */
    bool sound;   /* and its header can be trusted */
    bool changed; /* the header page is to be written */
    uint64_t sum; /* of the records that it keeps, once it was read (journal_sum) */
};

struct repair_plan {
    struct repair_segment *segments; /* in the order of the stream, without a gap */
    size_t count, room;
    uint64_t reach; /* the stream must go on to here: marks and tables say so */
};

/* Plans all segments that hold the stream from where replay begins up to `reach`. False, with the
 * reason printed: it cannot be. */
bool repair_plan_make(struct repair *repair, const struct journal_chain *chain,
                      struct repair_plan *plan);
void repair_plan_free(struct repair_plan *plan);
/* Lets a segment follow the one before it, which may have been changed. */
void repair_plan_link(struct repair_plan *plan, size_t index);

/* ---- repair_journal.c ---- */

void repair_journal(struct repair *repair);

#endif
