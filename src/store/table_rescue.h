/*
 * table_rescue.h: what a damaged table file still has, for a new file that takes its place.
 *
 * Header and footer tell the same of the file, so one of them is enough; where the section of
 * checksums is damaged, and all pages are sound, the footer proves the one that is made of them;
 * the index follows from the entries. A page in which one bit has turned over is mended
 * (one_bit.h). What cannot be had is left out, page by page, and told. The damaged file is only
 * read.
 *
 * Thread rule: a rescue belongs to one thread.
 */
#ifndef ROLLCALL_STORE_TABLE_RESCUE_H
#define ROLLCALL_STORE_TABLE_RESCUE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/table_file.h"

#define TABLE_RESCUE_MENDS_MAX 1000u /* pages whose bits are tried: some ten seconds */

/* A page that is lost. */
struct table_rescue_lost {
    uint64_t page;
    bool of_entries;
    unsigned section; /* of entries */
    uint64_t entries; /* in it */
    /* Of ids in it; only if known. */
    bool has_first, has_last;
    uint64_t first_id, last_id;
};

struct table_rescue_told {
    /* Becomes what stands in place of a lost page of the table; it is all zero. */
    void (*blank)(void *context, const struct table_file_info *info, void *page);
    void (*lost)(void *context, const struct table_rescue_lost *lost);
    void *context;
};

/* What was wrong and costs nothing; and what is lost without a try. */
struct table_rescue_mended {
    bool header, footer, checksums, index;
    uint64_t pages;   /* in which a bit had turned over */
    uint64_t untried; /* damaged pages beyond TABLE_RESCUE_MENDS_MAX */
};

struct table_rescue;

/*
 * DONE: *rescue is to be closed. ABSENT; NEWER, DAMAGED, FAILED with `error`: nothing of it can be
 * had. `end_lsn`: E, which the footer may not tell.
 */
enum table_file_result table_rescue_open(struct vfs *vfs, const char *path, uint64_t end_lsn,
                                         struct table_rescue **rescue,
                                         char error[TABLE_FILE_ERROR_MAX]);
void table_rescue_close(struct table_rescue *rescue); /* NULL: no-op */

/* Returns what table_file_info() gave when the file was sound. */
const struct table_file_info *table_rescue_info(const struct table_rescue *rescue);
/*
 * Reads all of it, once; what can be had goes to the writer, which was created with this info
 * (NULL: nowhere). False: the writer has failed.
 */
bool table_rescue_run(struct table_rescue *rescue, struct table_file_writer *writer,
                      const struct table_rescue_told *told);
/* After a run. */
const struct table_rescue_mended *table_rescue_mended(const struct table_rescue *rescue);

#endif
