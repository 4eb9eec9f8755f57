/* row_image.c: the one writer of images. */
#include "row/row_image.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/point.h"
#include "row/row_cold.h"
#include "row/row_data.h"
#include "row/row_private.h"
#include "store/dict_image.h"
#include "store/table_file.h"

#define PAGES_A_PIECE 64u /* 256 KiB: copied at a time inside the barrier, some 50 us */
#define SECTION_PARTS 2u  /* dicts that a section is made of, at most */

enum engine_image row_writing_enter(const struct row_writing *w, struct row_table **table)
{
    if (atomic_load(w->stop)) {
        return ENGINE_IMAGE_STOPPED;
    }
    if (w->member != NULL) {
        barrier_enter(w->member);
    }
    *table = row_image_table(w->row, w->image);
    if (*table == NULL || (w->image->kind == ROW_IMAGE_DUMP && row_tap_is_given_up(*table))) {
        row_writing_leave(w);
        return ENGINE_IMAGE_GONE;
    }
    return ENGINE_IMAGE_DONE;
}

void row_writing_leave(const struct row_writing *w)
{
    if (w->member != NULL) {
        barrier_leave(w->member);
    }
}

/* ---- pages ---- */

static enum engine_image row_image_copy(const struct row_writing *w, uint64_t first,
                                        uint64_t *copied, void *to)
{
    struct row_table *table;
    enum engine_image result = row_writing_enter(w, &table);
    if (result == ENGINE_IMAGE_DONE) {
        *copied = w->row->kind->copy_pages(table, first, PAGES_A_PIECE, to);
        row_writing_leave(w);
    }
    return result;
}

static enum engine_image row_image_pages(const struct row_writing *w)
{
    void *piece = memory_zalloc(PAGES_A_PIECE * TABLE_FILE_PAGE_BYTES);
    enum engine_image result = ENGINE_IMAGE_DONE;
    uint64_t copied = 1;
    for (uint64_t first = 0; copied > 0 && result == ENGINE_IMAGE_DONE; first += copied) {
        result = row_image_copy(w, first, &copied, piece);
        if (result == ENGINE_IMAGE_DONE && copied > 0 &&
            !table_file_append_pages(w->writer, piece, copied)) {
            result = ENGINE_IMAGE_FAILED;
        }
    }
    free(piece);
    return result;
}

/* ---- sections ---- */

/*
 * A dict that has grown in between has its entries in another order: they are collected anew. It
 * does where changes of a leader are carried out, which has the room for them.
 */
static enum engine_image row_image_collect(const struct row_writing *w, unsigned section,
                                           unsigned part, struct dict_image *entries)
{
    enum engine_image result;
    bool more = false;
    size_t before = entries->count;
    uint64_t places = 0;
    entries->at = 0;
    do {
        struct row_table *table;
        result = row_writing_enter(w, &table);
        if (result == ENGINE_IMAGE_DONE) {
            const struct dict *front = NULL;
            const struct dict *dict = w->row->kind->section(table, section, part, &front);
            if (dict != NULL && dict_places(dict) != places) {
                places = dict_places(dict);
                entries->count = before;
                entries->at = 0;
            }
            more = dict != NULL && dict_image_collect(entries, dict, front);
            POINT("entries half copied");
            row_writing_leave(w);
        }
    } while (more && result == ENGINE_IMAGE_DONE);
    return result;
}

struct row_image_owner_of {
    const struct table_kind *kind;
    const struct row_table *table;
};

static bool row_image_owns(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    const struct row_image_owner_of *of = context;
    (void)value;
    return of->kind->owns(of->table, id, sub);
}

static enum engine_image row_image_sift(const struct row_writing *w, struct dict_image *entries)
{
    enum engine_image result;
    bool more = false;
    do {
        struct row_table *table;
        result = row_writing_enter(w, &table);
        if (result == ENGINE_IMAGE_DONE) {
            struct row_image_owner_of of = {w->row->kind, table};
            more = dict_image_sift(entries, row_image_owns, &of);
            row_writing_leave(w);
        }
    } while (more && result == ENGINE_IMAGE_DONE);
    return result;
}

static enum engine_image row_image_section(const struct row_writing *w, unsigned section)
{
    struct dict_image entries;
    dict_image_init(&entries, w->image->section_value_bytes[section]);
    enum engine_image result = ENGINE_IMAGE_DONE;
    for (unsigned part = 0; part < SECTION_PARTS && result == ENGINE_IMAGE_DONE; part++) {
        result = row_image_collect(w, section, part, &entries);
    }
    if (result == ENGINE_IMAGE_DONE && (w->row->kind->sifted >> section & 1) != 0) {
        result = row_image_sift(w, &entries);
    }
    if (result == ENGINE_IMAGE_DONE && !dict_image_write(&entries, w->writer, section)) {
        result = ENGINE_IMAGE_FAILED;
    }
    dict_image_fini(&entries);
    return result;
}

enum engine_image row_writing_sections(const struct row_writing *w)
{
    enum engine_image result = ENGINE_IMAGE_DONE;
    for (unsigned i = 0; i < w->image->sections && result == ENGINE_IMAGE_DONE; i++) {
        result = row_image_section(w, i);
    }
    return result;
}

/* ---- all ---- */

/* Called when the image is whole: from here on a change that finds no room in the overlay waits. */
static enum engine_image row_image_whole(const struct row_writing *w)
{
    struct row_table *table;
    enum engine_image result = row_writing_enter(w, &table);
    if (result == ENGINE_IMAGE_DONE) {
        result = row_tap_written(table) ? ENGINE_IMAGE_DONE : ENGINE_IMAGE_GONE;
        row_writing_leave(w);
    }
    return result;
}

enum engine_image row_image_write(const struct row *row, const struct row_image *image,
                                  struct barrier_member *member, struct table_file_writer *writer,
                                  const _Atomic bool *stop)
{
    struct row_writing w = {row, image, member, writer, stop};
    if (image->kind == ROW_IMAGE_MERGE) {
        return row->kind->merge_write(&w);
    }
    enum engine_image result =
        image->kind == ROW_IMAGE_OVERLAY ? ENGINE_IMAGE_DONE : row_image_pages(&w);
    result = result == ENGINE_IMAGE_DONE ? row_writing_sections(&w) : result;
    bool whole = result == ENGINE_IMAGE_DONE && image->kind == ROW_IMAGE_DUMP;
    return whole ? row_image_whole(&w) : result;
}
