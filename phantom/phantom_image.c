/*
 * phantom_image.c: images of tables as they are written to disk, of all kinds (row/row_log.h).
 *
 *     TABLE, DUMP   pages of the filter as it is in memory, copied a piece at a time inside the
 *                   barrier; exceptions, of a table; of the one for pairs apart these alone
 *     OVERLAY       exceptions; the lines of the overlays
 *     MERGE         pages of the present file with the older overlay's lines, read with nothing
 *                   held; exceptions, of a table
 */
#include <stdlib.h>
#include <string.h>

#include "base/barrier.h"
#include "base/check.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/point.h"
#include "phantom/phantom_private.h"
#include "phantom/table_private.h"
#include "row/row_cold.h"
#include "store/dict_image.h"
#include "store/table_file.h"

#define PAGES_A_PIECE 64 /* copied at a time inside the barrier: some 50 us */
#define PAGES_A_READ  (TABLE_FILE_BLOCK_BYTES / TABLE_FILE_PAGE_BYTES)

_Static_assert((int)PHANTOM_OVERLAY_SECTIONS <= ROW_IMAGE_SECTIONS_MAX, "sections fit");

static const uint32_t section_value_bytes[PHANTOM_OVERLAY_SECTIONS] = {
    [PHANTOM_SECTION_EXCEPTIONS] = sizeof(uint64_t),
    [PHANTOM_SECTION_APART] = PHANTOM_APART_VALUE_BYTES,
    [PHANTOM_SECTION_LINES] = PHANTOM_LINE_BYTES,
};

/* ---- beginning and failing ---- */

/* All, even if there is no such dict yet: deletes may be turned on meanwhile. */
static unsigned sections_of(const struct row_image *image)
{
    return image->kind == ROW_IMAGE_OVERLAY ? PHANTOM_OVERLAY_SECTIONS
           : image->layer                   ? 0
                                            : PHANTOM_SECTIONS;
}

void phantom_images_begin(struct engine *engine)
{
    struct phantom *phantom = (struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    row_images_begin(&phantom->row);
}

bool phantom_image_next(struct engine *engine, uint64_t since, uint64_t now,
                        struct row_image *image)
{
    struct phantom *phantom = (struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    if (!phantom_merge_next(phantom, now, image)) {
        if (!row_image_next(&phantom->row, since, now, image)) {
            return false;
        }
        if (image->kind == ROW_IMAGE_DUMP) {
            phantom_tap(phantom, image);
        }
    }
    image->sections = sections_of(image);
    memcpy(image->section_value_bytes, section_value_bytes, sizeof(section_value_bytes));
    return true;
}

void phantom_image_failed(struct engine *engine, const struct row_image *image)
{
    struct phantom *phantom = (struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    row_image_failed(&phantom->row, image, phantom_cold_overran(phantom, image));
    phantom_cold_image_failed(phantom, image);
}

void phantom_images_failed(struct engine *engine)
{
    struct phantom *phantom = (struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    row_cold_round_failed(&phantom->row);
}

/* ---- writing ---- */

struct writing {
    const struct phantom *phantom;
    const struct row_image *image;
    struct barrier_member *member;
    struct table_file_writer *writer;
    const _Atomic bool *stop;
};

static void go_out(const struct writing *w)
{
    if (w->member) {
        barrier_leave(w->member);
    }
}

/* DONE: inside the barrier, with the table, until go_out(). */
static enum engine_image come_in(const struct writing *w, const struct phantom_table **t)
{
    if (atomic_load(w->stop)) {
        return ENGINE_IMAGE_STOPPED;
    }
    if (w->member) {
        barrier_enter(w->member);
    }
    *t = phantom_table_of(row_image_table(&w->phantom->row, w->image));
    if (!*t || ((*t)->dump && phantom_dump_given_up((*t)->dump))) {
        go_out(w);
        return ENGINE_IMAGE_GONE;
    }
    return ENGINE_IMAGE_DONE;
}

/* Copies the pages from *page on; *left: how many are left. */
static enum engine_image copy_piece(const struct writing *w, uint64_t page, uint64_t *copied,
                                    uint64_t *left, uint64_t *to)
{
    const struct phantom_table *t;
    enum engine_image result = come_in(w, &t);
    if (result == ENGINE_IMAGE_DONE) {
        uint64_t rest = phantom_table_pages(t) - page;
        *copied = rest < PAGES_A_PIECE ? rest : PAGES_A_PIECE;
        *left = rest - *copied;
        POINT("filter half copied");
        if (*copied > 0) {
            phantom_table_copy_pages(t, page, *copied, to);
        }
        go_out(w);
    }
    return result;
}

static enum engine_image write_pages(const struct writing *w)
{
    uint64_t *pages = memory_zalloc(PAGES_A_PIECE * TABLE_FILE_PAGE_BYTES);
    enum engine_image result = ENGINE_IMAGE_DONE;
    uint64_t copied = 0;
    uint64_t left = 1;
    for (uint64_t page = 0; left > 0 && result == ENGINE_IMAGE_DONE; page += copied) {
        result = copy_piece(w, page, &copied, &left, pages);
        if (result == ENGINE_IMAGE_DONE && copied > 0 &&
            !table_file_append_pages(w->writer, pages, copied)) {
            result = ENGINE_IMAGE_FAILED;
        }
    }
    free(pages);
    return result;
}

/* ---- a merge ---- */

/* Pages of the file that is there, with the older overlay. Outside; the caller holds the dump. */
static enum engine_image merge_piece(const struct writing *w, const struct phantom_dump *dump,
                                     uint64_t page, uint64_t count, uint64_t *pages)
{
    char error[TABLE_FILE_ERROR_MAX];
    const struct phantom_table *t;
    enum engine_image result = come_in(w, &t); /* it may be gone: then it ends early */
    if (result != ENGINE_IMAGE_DONE) {
        return result;
    }
    go_out(w);
    if (phantom_dump_load(dump, page, count, pages, error) != TABLE_FILE_DONE) {
        log_warning("%s", error);
        return ENGINE_IMAGE_FAILED;
    }
    return table_file_append_pages(w->writer, pages, count) ? ENGINE_IMAGE_DONE
                                                            : ENGINE_IMAGE_FAILED;
}

static enum engine_image merge_all(const struct writing *w, const struct phantom_dump *dump)
{
    uint64_t pages = table_file_info(phantom_dump_file(dump))->pages;
    uint64_t *block = memory_region_create(TABLE_FILE_BLOCK_BYTES);
    enum engine_image result = block ? ENGINE_IMAGE_DONE : ENGINE_IMAGE_FAILED;
    for (uint64_t page = 0; page < pages && result == ENGINE_IMAGE_DONE; page += PAGES_A_READ) {
        uint64_t rest = pages - page;
        result = merge_piece(w, dump, page, rest < PAGES_A_READ ? rest : PAGES_A_READ, block);
    }
    memory_region_destroy(block, TABLE_FILE_BLOCK_BYTES);
    return result;
}

static enum engine_image merge_pages(const struct writing *w)
{
    const struct phantom_table *t;
    enum engine_image result = come_in(w, &t);
    if (result != ENGINE_IMAGE_DONE) {
        return result;
    }
    struct phantom_dump *dump = t->dump;
    phantom_dump_hold(dump);
    go_out(w);
    result = merge_all(w, dump);
    phantom_dump_release(dump);
    return result;
}

/* ---- sections ---- */

/* The dicts a section is of; NULL: none now. Deletes may be turned off and on meanwhile: that makes
 * an empty dict of it. */
static const struct dict *section_dict(const struct phantom_table *t, unsigned section,
                                       unsigned part)
{
    if (section == PHANTOM_SECTION_LINES) {
        return phantom_dump_overlay(t->dump, part);
    }
    return part > 0 ? NULL : section == PHANTOM_SECTION_EXCEPTIONS ? t->exceptions : t->apart;
}

static enum engine_image collect(const struct writing *w, unsigned section, unsigned part,
                                 struct dict_image *entries)
{
    enum engine_image result;
    bool more;
    entries->at = 0;
    do {
        const struct phantom_table *t;
        result = come_in(w, &t);
        more = false;
        if (result == ENGINE_IMAGE_DONE) {
            const struct dict *dict = section_dict(t, section, part);
            more = dict && dict_image_collect(entries, dict);
            POINT("entries half copied");
            go_out(w);
        }
    } while (more);
    return result;
}

static enum engine_image write_section(const struct writing *w, unsigned section)
{
    struct dict_image entries;
    dict_image_init(&entries, section_value_bytes[section]);
    enum engine_image result = ENGINE_IMAGE_DONE;
    for (unsigned part = 0; part < PHANTOM_SECTION_PARTS && result == ENGINE_IMAGE_DONE; part++) {
        result = collect(w, section, part, &entries);
    }
    if (result == ENGINE_IMAGE_DONE && !dict_image_write(&entries, w->writer, section)) {
        result = ENGINE_IMAGE_FAILED;
    }
    dict_image_fini(&entries);
    return result;
}

/* From here on what finds no room in the overlay waits: the image is whole. */
static enum engine_image dump_whole(const struct writing *w)
{
    const struct phantom_table *t;
    enum engine_image result = come_in(w, &t);
    if (result == ENGINE_IMAGE_DONE) {
        result = phantom_dump_written(t->dump) ? ENGINE_IMAGE_DONE : ENGINE_IMAGE_GONE;
        go_out(w);
    }
    return result;
}

enum engine_image phantom_image_write(struct engine *engine, const struct row_image *image,
                                      struct barrier_member *member,
                                      struct table_file_writer *writer, const _Atomic bool *stop)
{
    struct writing w = {(struct phantom *)engine, image, member, writer, stop};
    enum engine_image result = image->kind == ROW_IMAGE_OVERLAY ? ENGINE_IMAGE_DONE
                               : image->kind == ROW_IMAGE_MERGE ? merge_pages(&w)
                                                                : write_pages(&w);
    for (unsigned i = 0; i < image->sections && result == ENGINE_IMAGE_DONE; i++) {
        result = write_section(&w, i);
    }
    if (result == ENGINE_IMAGE_DONE && image->kind == ROW_IMAGE_DUMP) {
        result = dump_whole(&w);
    }
    return result;
}
