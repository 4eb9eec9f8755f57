/* dict_image.c: a dict as a section of a table file. */
#include "store/dict_image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* An entry in memory: id, sub, value, filled up to whole words. */
#define ID_BYTES sizeof(uint64_t)

static size_t stride(const struct dict_image *image)
{
    return (DICT_KEY_BYTES + image->value_bytes + 7) / 8 * 8;
}

void dict_image_init(struct dict_image *image, size_t value_bytes)
{
    CHECK(value_bytes >= 1 && value_bytes <= DICT_VALUE_MAX);
    *image = (struct dict_image){.value_bytes = value_bytes};
}

void dict_image_fini(struct dict_image *image)
{
    free(image->entries);
    *image = (struct dict_image){.value_bytes = image->value_bytes};
}

/* ---- collecting ---- */

static bool dict_image_make_room(struct dict_image *image, size_t room)
{
    unsigned char *entries = realloc(image->entries, room * stride(image));
    if (!entries) {
        image->failed = true;
        return false;
    }
    image->entries = entries;
    image->room = room;
    return true;
}

struct collecting {
    struct dict_image *image;
    const struct dict *front;
};

static void collect_entry(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    const struct collecting *collecting = context;
    struct dict_image *image = collecting->image;
    if (collecting->front != NULL && dict_get(collecting->front, id, 0, NULL)) {
        return;
    }
    if (image->count == image->room && !dict_image_make_room(image, 2 * image->room)) {
        return;
    }
    unsigned char *entry = image->entries + image->count++ * stride(image);
    memcpy(entry, &id, ID_BYTES);
    entry[ID_BYTES] = sub;
    memcpy(entry + DICT_KEY_BYTES, value, image->value_bytes);
}

bool dict_image_collect(struct dict_image *image, const struct dict *dict, const struct dict *front)
{
    struct collecting collecting = {image, front};
    CHECK(dict_entry_bytes(dict) == DICT_KEY_BYTES + image->value_bytes);
    /* All of it at once, so that the others need not wait for a copy as it grows. */
    if (!image->entries &&
        !dict_image_make_room(image, (size_t)dict_count(dict) + DICT_IMAGE_PIECE)) {
        return false;
    }
    return dict_walk(dict, &image->at, DICT_IMAGE_PIECE, collect_entry, &collecting) &&
           !image->failed;
}

/* ---- sifting ---- */

static bool is_wanted(const struct dict_image *image, const unsigned char *entry,
                      dict_image_wanted *wanted, void *context)
{
    uint64_t id;
    uint64_t value[DICT_VALUE_WORDS] = {0};
    memcpy(&id, entry, ID_BYTES);
    memcpy(value, entry + DICT_KEY_BYTES, image->value_bytes);
    return wanted(context, id, entry[ID_BYTES], value);
}

bool dict_image_sift(struct dict_image *image, dict_image_wanted *wanted, void *context)
{
    size_t bytes = stride(image);
    size_t left = image->count - image->sifted;
    size_t end = image->sifted + (left < DICT_IMAGE_SIFT ? left : DICT_IMAGE_SIFT);
    for (; image->sifted < end; image->sifted++) {
        const unsigned char *entry = image->entries + image->sifted * bytes;
        if (is_wanted(image, entry, wanted, context)) {
            memmove(image->entries + image->kept++ * bytes, entry, bytes);
        }
    }
    bool more = image->sifted < image->count;
    if (!more) {
        image->count = image->sifted = image->kept;
    }
    return more;
}

/* ---- writing ---- */

static uint64_t entry_id(const unsigned char *entry)
{
    uint64_t id;
    memcpy(&id, entry, ID_BYTES);
    return id;
}

static int compare_keys(const void *left, const void *right)
{
    const unsigned char *a = left, *b = right;
    uint64_t a_id = entry_id(a), b_id = entry_id(b);
    if (a_id != b_id) {
        return a_id < b_id ? -1 : 1;
    }
    return (int)a[ID_BYTES] - (int)b[ID_BYTES];
}

bool dict_image_write(struct dict_image *image, struct table_file_writer *writer, unsigned section)
{
    if (image->failed) {
        errno = ENOMEM;
        return false;
    }
    size_t bytes = stride(image);
    if (image->count > 0) {
        qsort(image->entries, image->count, bytes, compare_keys);
    }
    for (size_t i = 0; i < image->count; i++) {
        const unsigned char *entry = image->entries + i * bytes;
        /* A key that was deleted and put again during the walk may have been met twice; it is as
         * it was once in that time either way. */
        if (i > 0 && compare_keys(entry - bytes, entry) == 0) {
            continue;
        }
        if (!table_file_append_entry(writer, section, entry_id(entry), entry[ID_BYTES],
                                     entry + DICT_KEY_BYTES)) {
            return false;
        }
    }
    return true;
}

/* ---- reading ---- */

struct load {
    struct dict *dict;
    size_t value_bytes;
    dict_image_wanted *wanted;
    void *context;
    bool full;
};

static bool dict_image_load_entry(void *context, uint64_t id, uint8_t sub, const void *bytes)
{
    struct load *load = context;
    uint64_t value[DICT_VALUE_WORDS] = {0};
    memcpy(value, bytes, load->value_bytes);
    if (load->wanted && !load->wanted(load->context, id, sub, value)) {
        return true;
    }
    load->full = !dict_put(load->dict, id, sub, value);
    return !load->full;
}

enum table_file_result dict_image_load(const struct table_file *file, unsigned section,
                                       struct dict *dict, dict_image_wanted *wanted, void *context,
                                       char error[TABLE_FILE_ERROR_MAX])
{
    const struct table_file_info *info = table_file_info(file);
    struct load load = {dict, dict_entry_bytes(dict) - DICT_KEY_BYTES, wanted, context, false};
    if (section >= info->sections || info->section[section].value_bytes != load.value_bytes) {
        snprintf(error, TABLE_FILE_ERROR_MAX,
                 "%s: section %u of entries is not one of %zu bytes a value, as its table needs",
                 table_file_path(file), section, load.value_bytes);
        return TABLE_FILE_DAMAGED;
    }
    enum table_file_result result =
        table_file_each_entry(file, section, dict_image_load_entry, &load, error);
    if (load.full) {
        snprintf(error, TABLE_FILE_ERROR_MAX,
                 "%s: the %" PRIu64 " entries of section %u do not fit in the memory its table has "
                 "for them",
                 table_file_path(file), info->section[section].entries, section);
        return TABLE_FILE_DAMAGED;
    }
    return result;
}
