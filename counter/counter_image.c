/*
 * counter_image.c: a table written to its file while it is used: pages first, then the dicts, so
 * that an aux entry which a record speaks of is in the image, or gone by a change that is replayed.
 *
 * Of a dumped table the overlay alone is written: its two dicts, in the same way. A merge reads the
 * file and writes the next one (table_merge.c).
 *
 * What is in the aux dict for a moment only, for a change that finds no room in the end, is sifted
 * out: no journal tells of it. All is copied in pieces inside the barrier and written outside. Each
 * piece looks the table up anew: it may be gone, or hold other ids.
 */
#include <stdlib.h>

#include "base/barrier.h"
#include "base/check.h"
#include "base/memory.h"
#include "base/point.h"
#include "counter/counter_private.h"
#include "row/row_log.h"
#include "store/dict_image.h"

#define PIECE_PAGES 64u /* 256 KiB: some tens of microseconds */

struct writing {
    const struct counter *counter;
    const struct row_image *image;
    struct barrier_member *member; /* NULL: nobody else is there */
    struct table_file_writer *writer;
    const _Atomic bool *stop;
};

/* The table, inside the barrier; NULL: GONE, and outside. */
static const struct counter_table *enter(const struct writing *w)
{
    if (w->member) {
        barrier_enter(w->member);
    }
    struct row_table *table = row_image_table(&w->counter->row, w->image);
    bool dumps = w->image->kind == ROW_IMAGE_DUMP;
    if (table && dumps && !counter_table_tapped(counter_table_of(table))) {
        table = NULL; /* more changes than its overlay takes */
    }
    if (!table && w->member) {
        barrier_leave(w->member);
    }
    return table ? counter_table_of(table) : NULL;
}

static void leave(const struct writing *w)
{
    if (w->member) {
        barrier_leave(w->member);
    }
}

static enum engine_image write_pages(const struct writing *w, unsigned char *piece)
{
    uint64_t pages;
    uint64_t at = 0;
    do {
        const struct counter_table *table = enter(w);
        if (!table) {
            return ENGINE_IMAGE_GONE;
        }
        pages = counter_table_pages(table);
        unsigned count = pages - at < PIECE_PAGES ? (unsigned)(pages - at) : PIECE_PAGES;
        counter_table_copy_pages(table, at, count, piece);
        leave(w);
        if (count > 0 && !table_file_append_pages(w->writer, piece, count)) {
            return ENGINE_IMAGE_FAILED;
        }
        if (*w->stop) {
            return ENGINE_IMAGE_STOPPED;
        }
        at += count;
    } while (at < pages);
    return ENGINE_IMAGE_DONE;
}

static enum engine_image collect(const struct writing *w, unsigned section,
                                 struct dict_image *entries)
{
    bool more;
    do {
        const struct counter_table *table = enter(w);
        if (!table) {
            return ENGINE_IMAGE_GONE;
        }
        more = dict_image_collect(entries, counter_table_section(table, section));
        POINT("entries half copied");
        leave(w);
        if (*w->stop) {
            return ENGINE_IMAGE_STOPPED;
        }
    } while (more);
    return ENGINE_IMAGE_DONE;
}

static bool owns(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    (void)value;
    return counter_table_owns_aux(context, id, sub);
}

static enum engine_image sift(const struct writing *w, struct dict_image *entries)
{
    bool more;
    do {
        const struct counter_table *table = enter(w);
        if (!table) {
            return ENGINE_IMAGE_GONE;
        }
        more = dict_image_sift(entries, owns, (void *)table);
        leave(w);
        if (*w->stop) {
            return ENGINE_IMAGE_STOPPED;
        }
    } while (more);
    return ENGINE_IMAGE_DONE;
}

static enum engine_image write_section(const struct writing *w, unsigned section)
{
    struct dict_image entries;
    dict_image_init(&entries, w->image->section_value_bytes[section]);
    enum engine_image result = collect(w, section, &entries);
    if (result == ENGINE_IMAGE_DONE && section == COUNTER_TABLE_AUX) {
        result = sift(w, &entries);
    }
    if (result == ENGINE_IMAGE_DONE && !dict_image_write(&entries, w->writer, section)) {
        result = ENGINE_IMAGE_FAILED;
    }
    dict_image_fini(&entries);
    return result;
}

static enum engine_image write_groups(const struct writing *w)
{
    unsigned char *piece = memory_zalloc(PIECE_PAGES * TABLE_PAGE_BYTES);
    enum engine_image result = write_pages(w, piece);
    free(piece);
    return result;
}

/* The older overlay is copied in pieces, as all is; the files are read and written outside. */
static enum engine_image write_merge(const struct writing *w)
{
    const struct counter_table *table = enter(w);
    if (!table) {
        return ENGINE_IMAGE_GONE;
    }
    struct counter_merge *merge = counter_merge_create(table);
    leave(w);
    bool more = true;
    while (more && (table = enter(w))) {
        more = counter_merge_take(merge, table);
        leave(w);
    }
    enum engine_image result =
        table ? counter_merge_write(merge, w->writer, w->stop) : ENGINE_IMAGE_GONE;
    counter_merge_destroy(merge);
    return result;
}

enum engine_image counter_image_write(struct engine *engine, const struct row_image *image,
                                      struct barrier_member *member,
                                      struct table_file_writer *writer, const _Atomic bool *stop)
{
    const struct counter *counter = (const struct counter *)engine;
    CHECK(counter->magic == COUNTER_MAGIC);
    struct writing w = {counter, image, member, writer, stop};
    if (image->kind == ROW_IMAGE_MERGE) {
        return write_merge(&w);
    }
    enum engine_image result =
        image->kind == ROW_IMAGE_OVERLAY ? ENGINE_IMAGE_DONE : write_groups(&w);
    for (unsigned i = 0; i < COUNTER_TABLE_SECTIONS && result == ENGINE_IMAGE_DONE; i++) {
        result = write_section(&w, i);
    }
    return result;
}
