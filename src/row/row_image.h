/*
 * row_image.h: a table written to its file while it is used (row/row_log.h), whatever its kind.
 *
 *     TABLE, DUMP   pages, then the sections: an entry which a page speaks of is in the image, or
 *                   gone by a change that is replayed
 *     OVERLAY       the sections alone
 *     MERGE         what the kind makes of the table's file and its older overlay
 *
 * All is copied in pieces of less than a millisecond inside the barrier and written outside. Each
 * piece looks the table up anew: it may be gone, or hold other ids.
 *
 * Thread rule: one thread an image, outside the barrier.
 */
#ifndef ROLLCALL_ROW_ROW_IMAGE_H
#define ROLLCALL_ROW_ROW_IMAGE_H

#include "row/row_log.h"

struct table_file_writer;

struct row_writing {
    const struct row *row;
    const struct row_image *image;
    struct barrier_member *member; /* NULL: nobody else is there */
    struct table_file_writer *writer;
    const _Atomic bool *stop;
};

/*
 * DONE: the caller is inside the barrier, with the table of the image, until row_writing_leave().
 * GONE, STOPPED: outside, and the image is to be given up.
 */
enum engine_image row_writing_enter(const struct row_writing *w, struct row_table **table);
void row_writing_leave(const struct row_writing *w);

/* Writes all sections from their dicts as the kind names them. For a kind's merge_write, too. */
enum engine_image row_writing_sections(const struct row_writing *w);

#endif
