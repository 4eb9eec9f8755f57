/*
 * table_image.c: a table as it is kept: its shape as a description, its pages on their way out, its
 * contents on their way in.
 *
 * A description, in the machine's byte order (offset, size, meaning):
 *      0  4  version: 1
 *      4  4  bits of a member
 *      8  8  bytes of the filter, a power of two
 *     16  8  its lines: bytes / 64
 *     24  8  capacity: lines x load, rounded down
 *     32  8  bytes of the pool for exceptions, 0: none
 *     40  8  bytes of the pool for what is apart, 0: none
 *     48  8  members a line at capacity, a double
 *     56  8  the share of wrong answers then, a double
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/memory.h"
#include "phantom/table_private.h"
#include "store/dict_image.h"

#define VERSION 1

struct description {
    uint32_t version, bits;
    uint64_t table_bytes, lines, capacity, exceptions_bytes, apart_bytes;
    double load, rate;
};
_Static_assert(sizeof(struct description) == PHANTOM_DESCRIPTION_BYTES, "as the table above");

void phantom_shape_describe(const struct phantom_shape *shape,
                            unsigned char bytes[PHANTOM_DESCRIPTION_BYTES])
{
    struct description d = {
        .version = VERSION,
        .bits = shape->plan.bits,
        .table_bytes = shape->table_bytes,
        .lines = shape->table_bytes / PHANTOM_LINE_BYTES,
        .capacity = shape->capacity,
        .exceptions_bytes = shape->exceptions_bytes,
        .apart_bytes = shape->apart_bytes,
        .load = shape->plan.load,
        .rate = shape->plan.rate,
    };
    memcpy(bytes, &d, sizeof(d));
}

static bool within(uint64_t value, uint64_t least, uint64_t most)
{
    return value >= least && value <= most;
}

/* Returns whether one follows from the other, as it must. */
static bool sound(const struct description *d)
{
    return d->version == VERSION && within(d->bits, 1, PHANTOM_BITS_MAX) &&
           within(d->table_bytes, ROW_REGION_BYTES_MIN, ROW_REGION_BYTES_MAX) &&
           (d->table_bytes & (d->table_bytes - 1)) == 0 &&
           d->lines == d->table_bytes / PHANTOM_LINE_BYTES && d->load > 0 &&
           d->load <= PHANTOM_LINE_BITS && d->rate > 0 && d->rate < 1 && d->capacity > 0 &&
           d->capacity == (uint64_t)((double)d->lines * d->load) &&
           (d->exceptions_bytes == 0 ||
            within(d->exceptions_bytes, PHANTOM_EXCEPTIONS_BYTES_MIN, ROW_REGION_BYTES_MAX)) &&
           (d->apart_bytes == 0 || within(d->apart_bytes, DICT_POOL_MIN, ROW_REGION_BYTES_MAX));
}

bool phantom_shape_read(struct phantom_shape *shape, const void *bytes, size_t length)
{
    struct description d;
    if (length != sizeof(d)) {
        return false;
    }
    memcpy(&d, bytes, sizeof(d));
    if (!sound(&d)) {
        return false;
    }
    *shape = (struct phantom_shape){
        .table_bytes = d.table_bytes,
        .exceptions_bytes = d.exceptions_bytes,
        .apart_bytes = d.apart_bytes,
        .capacity = d.capacity,
        .plan = {.bits = d.bits, .load = d.load, .rate = d.rate},
    };
    return true;
}

bool phantom_shape_explain(const void *bytes, size_t length, row_state_field *field, void *context)
{
    struct phantom_shape shape;
    if (!phantom_shape_read(&shape, bytes, length)) {
        return false;
    }
    field(context, "filter_bytes", shape.table_bytes);
    field(context, "lines", shape.table_bytes / PHANTOM_LINE_BYTES);
    field(context, "bits_a_member", shape.plan.bits);
    field(context, "members_a_line", (uint64_t)(shape.plan.load + 0.5));
    field(context, "members_for_one_wrong_answer", (uint64_t)(1 / shape.plan.rate + 0.5));
    field(context, "exceptions_bytes", shape.exceptions_bytes);
    field(context, "apart_bytes", shape.apart_bytes);
    return true;
}

/* ---- out ---- */

uint64_t phantom_table_pages(const struct phantom_table *t)
{
    return t->filter.words ? t->shape.table_bytes / TABLE_FILE_PAGE_BYTES : 0;
}

void phantom_table_copy_pages(const struct phantom_table *t, uint64_t first, uint64_t count,
                              uint64_t *to)
{
    CHECK(t->magic == PHANTOM_TABLE_MAGIC);
    CHECK((first + count) * TABLE_FILE_PAGE_BYTES <= t->shape.table_bytes);
    words_copy_out(t->filter.words, first * TABLE_FILE_PAGE_BYTES, count * TABLE_FILE_PAGE_BYTES,
                   to);
}

/* ---- in ---- */

struct loading {
    struct phantom_table *t;
    const struct table_file *file;
    _Atomic uint64_t *done;
    const _Atomic bool *stop;
    uint64_t pages_done;
    bool foreign; /* an entry cannot be this table's */
    char *error;
};

static bool phantom_image_refuse(const struct loading *loading, const char *why)
{
    return fail_with(loading->error, ENGINE_ERROR_MAX, "%s", why);
}

static bool loaded_piece(void *context, uint64_t pages)
{
    struct loading *loading = context;
    atomic_fetch_add(loading->done, (pages - loading->pages_done) * TABLE_FILE_PAGE_BYTES);
    loading->pages_done = pages;
    return !atomic_load(loading->stop);
}

static bool load_pages(struct loading *loading)
{
    struct phantom_table *t = loading->t;
    uint64_t pages = table_file_info(loading->file)->pages;
    if (pages != phantom_table_pages(t)) {
        return phantom_image_refuse(loading, "it has not the pages its table needs");
    }
    if (pages == 0) {
        return true;
    }
    memory_populate_until((void *)t->filter.words, t->shape.table_bytes, loading->stop);
    enum table_file_result result = table_file_load_pages(
        loading->file, 0, pages, (void *)t->filter.words, loaded_piece, loading, loading->error);
    if (result == TABLE_FILE_STOPPED) {
        loading->error[0] = '\0';
    }
    return result == TABLE_FILE_DONE;
}

static bool exception_wanted(void *context, uint64_t hash, uint8_t sub, const uint64_t *value)
{
    struct loading *loading = context;
    (void)hash;
    loading->foreign |= (uint8_t)value[0] != sub;
    return !loading->foreign;
}

static bool apart_wanted(void *context, uint64_t hash, uint8_t sub, const uint64_t *value)
{
    struct loading *loading = context;
    (void)hash;
    loading->foreign |= (uint8_t)value[1] != sub || value[0] > ROW_ID_MAX;
    return !loading->foreign;
}

/* Entries come in another order than they once did: twice the places let each find one. */
static bool make_room(const struct loading *loading, struct dict **dict, uint64_t entries)
{
    while (dict_places(*dict) / 2 < entries) {
        if (!dict_grow(dict)) {
            return phantom_image_refuse(loading, "the system refuses the memory for its entries");
        }
    }
    return true;
}

static bool load_section(struct loading *loading, enum phantom_section section, struct dict **dict,
                         dict_image_wanted *wanted)
{
    uint64_t entries = table_file_info(loading->file)->section[section].entries;
    if (entries == 0) {
        return true;
    }
    if (!*dict) {
        return phantom_image_refuse(loading, "it has entries its table cannot have");
    }
    if (!make_room(loading, dict, entries) ||
        dict_image_load(loading->file, section, *dict, wanted, loading, loading->error) !=
            TABLE_FILE_DONE) {
        return false;
    }
    return !loading->foreign ||
           phantom_image_refuse(loading, "it has entries that are not its table's");
}

/* Exceptions, or what is apart. */
static bool load_own_parts(struct loading *loading)
{
    struct phantom_table *t = loading->t;
    const struct table_file_info *info = table_file_info(loading->file);
    if (phantom_table_is_layer(t)) {
        return true;
    }
    /* Deletes may have been turned on after the image was begun. */
    if (info->section[PHANTOM_SECTION_EXCEPTIONS].entries && !phantom_table_deletes(t, true, 0)) {
        return phantom_image_refuse(loading, "the system refuses the memory for its exceptions");
    }
    return load_section(loading, PHANTOM_SECTION_EXCEPTIONS, &t->exceptions, exception_wanted) &&
           load_section(loading, PHANTOM_SECTION_APART, &t->apart, apart_wanted);
}

static bool load_sections(struct loading *loading)
{
    unsigned sections = table_file_info(loading->file)->sections;
    if (sections != (phantom_table_is_layer(loading->t) ? 0 : PHANTOM_SECTIONS)) {
        return phantom_image_refuse(loading, "it has not the sections its table needs");
    }
    return load_own_parts(loading);
}

bool phantom_table_load(struct phantom_table *t, const struct table_file *file,
                        _Atomic uint64_t *done, const _Atomic bool *stop,
                        char error[ENGINE_ERROR_MAX])
{
    CHECK(t->magic == PHANTOM_TABLE_MAGIC);
    struct loading loading = {.t = t, .file = file, .done = done, .stop = stop, .error = error};
    error[0] = '\0';
    if (!load_pages(&loading) || !load_sections(&loading)) {
        return false;
    }
    uint64_t pages_bytes = phantom_table_pages(t) * TABLE_FILE_PAGE_BYTES;
    atomic_fetch_add(done, table_file_info(file)->file_bytes - pages_bytes);
    return true;
}

/* ---- dumped ---- */

static bool load_line(void *context, uint64_t line, uint8_t sub, const void *value)
{
    struct loading *loading = context;
    uint64_t words[DICT_VALUE_WORDS];
    (void)sub; /* the one of two overlays that it was of */
    memcpy(words, value, sizeof(words));
    if (line >= loading->t->filter.lines) {
        return phantom_image_refuse(loading, "it has lines that are not its table's");
    }
    return phantom_dump_restore(loading->t->dump, line, words) ||
           phantom_image_refuse(loading, "the system refuses the memory for its lines");
}

static bool load_overlay(struct loading *loading)
{
    const struct table_file_info *info = table_file_info(loading->file);
    if (info->pages != 0 || info->sections != PHANTOM_OVERLAY_SECTIONS ||
        info->section[PHANTOM_SECTION_LINES].value_bytes != PHANTOM_LINE_BYTES) {
        return phantom_image_refuse(loading, "it has not the sections an overlay needs");
    }
    return load_own_parts(loading) &&
           table_file_each_entry(loading->file, PHANTOM_SECTION_LINES, load_line, loading,
                                 loading->error) == TABLE_FILE_DONE;
}

bool phantom_table_load_dumped(struct phantom_table *t, struct engine_cold *cold,
                               struct table_file *file, const struct table_file *overlay,
                               char error[ENGINE_ERROR_MAX])
{
    CHECK(t->magic == PHANTOM_TABLE_MAGIC && !t->filter.words && !t->dump);
    struct loading loading = {.t = t, .file = overlay ? overlay : file, .error = error};
    error[0] = '\0';
    t->dump = phantom_dump_create(cold, t->shape.table_bytes, 0);
    phantom_dump_open(t->dump, file);
    bool loaded = table_file_info(file)->pages * TABLE_FILE_PAGE_BYTES == t->shape.table_bytes
                      ? (overlay ? load_overlay(&loading) : load_sections(&loading))
                      : phantom_image_refuse(&loading, "it has not the pages its table needs");
    if (!loaded) {
        phantom_dump_take_back(t->dump);
    }
    return loaded;
}
