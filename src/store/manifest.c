/* manifest.c: the content of a manifest, and its file. */
#include "store/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "base/memory.h"

/* ---- what is allowed ---- */

static const char plain_characters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
static const char file_characters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

/* 1 .. length_max characters, all out of a set. */
static bool word_allowed(const char *word, size_t length_max, const char *characters)
{
    size_t length = strnlen(word, length_max + 1);
    return length > 0 && length <= length_max && strspn(word, characters) == length;
}

static bool file_allowed(const struct manifest_file *file)
{
    /* A dot in front would allow `..`; such names are nobody's business here. */
    return word_allowed(file->name, MANIFEST_FILE_NAME_MAX, file_characters) &&
           file->name[0] != '.' && strcmp(file->name, MANIFEST_NAME) != 0 &&
           file->role <= MANIFEST_DUMP && file->start_lsn <= file->end_lsn &&
           file->first_id <= file->last_id;
}

/* ---- names ---- */

#define TABLE_NAME_NUMBERS 3 /* serial, layer, generation, after the space */

void manifest_table_name(char name[MANIFEST_FILE_NAME_MAX + 1], const char *space, uint64_t serial,
                         uint64_t layer, uint64_t generation)
{
    snprintf(name, MANIFEST_FILE_NAME_MAX + 1,
             "%s-%" PRIu64 "-%" PRIu64 "-%" PRIu64 MANIFEST_TABLE_SUFFIX, space, serial, layer,
             generation);
}

static bool is_table_name(const char *name)
{
    size_t length = strlen(name);
    size_t suffix = strlen(MANIFEST_TABLE_SUFFIX);
    size_t numbers = 0;
    if (length <= suffix || strcmp(name + length - suffix, MANIFEST_TABLE_SUFFIX) != 0) {
        return false;
    }
    length -= suffix;
    for (size_t digits = 0; length > 0 && numbers < TABLE_NAME_NUMBERS; length--) {
        char byte = name[length - 1];
        if (byte == '-' && digits > 0) {
            numbers++;
            digits = 0;
        } else if (byte >= '0' && byte <= '9') {
            digits++;
        } else {
            return false;
        }
    }
    return numbers == TABLE_NAME_NUMBERS && length > 0 && length <= MANIFEST_SPACE_NAME_MAX &&
           strspn(name, plain_characters) >= length;
}

bool manifest_name_ours(const char *name)
{
    return strcmp(name, MANIFEST_NAME VFS_TEMPORARY) == 0 ||
           strcmp(name, MANIFEST_PROBE_NAME) == 0 || is_table_name(name);
}

/* ---- the content ---- */

struct manifest *manifest_create(void)
{
    return memory_zalloc(sizeof(struct manifest));
}

void manifest_destroy(struct manifest *manifest)
{
    for (size_t i = 0; manifest && i < manifest->spaces_count; i++) {
        struct manifest_space *space = &manifest->spaces[i];
        for (size_t k = 0; k < space->data_count; k++) {
            free(space->data[k].bytes);
        }
        free(space->files);
    }
    free(manifest);
}

void manifest_copy_head(struct manifest *to, const struct manifest *from)
{
    to->epoch = from->epoch;
    to->table_event_lsn = from->table_event_lsn;
    to->journal_lsn = from->journal_lsn;
    memcpy(to->stream, from->stream, sizeof(to->stream));
    memcpy(to->history, from->history, sizeof(to->history));
    to->history_count = from->history_count;
}

bool manifest_add_reign(struct manifest *manifest, uint64_t epoch, uint64_t lsn)
{
    size_t count = manifest->history_count;
    const struct manifest_reign *last = count > 0 ? &manifest->history[count - 1] : NULL;
    if (epoch == 0 || (last && (epoch <= last->epoch || lsn <= last->lsn))) {
        return false;
    }
    if (count == MANIFEST_HISTORY_MAX) {
        count--;
        memmove(manifest->history, manifest->history + 1, count * sizeof(*manifest->history));
    }
    manifest->history[count] = (struct manifest_reign){epoch, lsn};
    manifest->history_count = count + 1;
    manifest->epoch = epoch > manifest->epoch ? epoch : manifest->epoch;
    return true;
}

struct manifest_space *manifest_find_space(struct manifest *manifest, const char *name)
{
    for (size_t i = 0; i < manifest->spaces_count; i++) {
        if (strcmp(manifest->spaces[i].name, name) == 0) {
            return &manifest->spaces[i];
        }
    }
    return NULL;
}

struct manifest_space *manifest_add_space(struct manifest *manifest, const char *name,
                                          uint64_t number, const char *kind)
{
    bool allowed = word_allowed(name, MANIFEST_SPACE_NAME_MAX, plain_characters) &&
                   word_allowed(kind, MANIFEST_WORD_MAX, plain_characters) &&
                   manifest->spaces_count < MANIFEST_SPACES_MAX &&
                   !manifest_find_space(manifest, name);
    for (size_t i = 0; allowed && i < manifest->spaces_count; i++) {
        allowed = manifest->spaces[i].number != number;
    }
    if (!allowed) {
        return NULL;
    }
    struct manifest_space *space = &manifest->spaces[manifest->spaces_count++];
    *space = (struct manifest_space){.number = number};
    memcpy(space->name, name, strlen(name));
    memcpy(space->kind, kind, strlen(kind));
    return space;
}

static struct manifest_data *data_of(struct manifest_space *space, const char *label)
{
    for (size_t i = 0; i < space->data_count; i++) {
        if (strcmp(space->data[i].label, label) == 0) {
            return &space->data[i];
        }
    }
    return NULL;
}

const struct manifest_data *manifest_find_data(const struct manifest_space *space,
                                               const char *label)
{
    return data_of((struct manifest_space *)space, label); /* it only looks */
}

bool manifest_set_data(struct manifest_space *space, const char *label, const void *bytes,
                       size_t length)
{
    struct manifest_data *data = data_of(space, label);
    if (!word_allowed(label, MANIFEST_WORD_MAX, plain_characters) ||
        length > MANIFEST_DATA_BYTES_MAX || (!data && space->data_count == MANIFEST_DATA_MAX)) {
        return false;
    }
    if (!data) {
        data = &space->data[space->data_count++];
        *data = (struct manifest_data){.length = 0};
        memcpy(data->label, label, strlen(label));
    }
    unsigned char *copy = memory_zalloc(length + 1); /* never of nothing */
    if (length > 0) {
        memcpy(copy, bytes, length);
    }
    free(data->bytes);
    data->bytes = copy;
    data->length = length;
    return true;
}

/* Returns where the file of that name stands, or would stand: the list is sorted. Looks at the last
 * one first: most are added in their order, and names of another space lie before or after all. */
static size_t manifest_place_of(const struct manifest_space *space, const char *name, bool *found)
{
    size_t low = 0;
    size_t high = space->files_count;
    *found = false;
    if (high > 0 && strcmp(space->files[high - 1].name, name) < 0) {
        return high;
    }
    if (high > 0 && strcmp(space->files[0].name, name) > 0) {
        return low;
    }
    while (low < high && !*found) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(space->files[middle].name, name);
        *found = order == 0;
        low = order < 0 ? middle + 1 : order == 0 ? middle : low;
        high = order > 0 ? middle : high;
    }
    return low;
}

size_t manifest_count_files(const struct manifest *manifest)
{
    size_t count = 0;
    for (size_t i = 0; i < manifest->spaces_count; i++) {
        count += manifest->spaces[i].files_count;
    }
    return count;
}

const struct manifest_file *manifest_next_file(const struct manifest *manifest,
                                               struct manifest_at *at)
{
    while (at->space < manifest->spaces_count) {
        const struct manifest_space *space = &manifest->spaces[at->space];
        if (at->next < space->files_count) {
            return &space->files[at->next++];
        }
        *at = (struct manifest_at){.space = at->space + 1};
    }
    return NULL;
}

uint64_t manifest_generation(const struct manifest *manifest)
{
    struct manifest_at at = {0};
    const struct manifest_file *file;
    uint64_t highest = 0;
    while ((file = manifest_next_file(manifest, &at)) != NULL) {
        highest = file->generation > highest ? file->generation : highest;
    }
    return highest;
}

const struct manifest_file *manifest_find_file(const struct manifest *manifest, const char *name)
{
    for (size_t i = 0; i < manifest->spaces_count; i++) {
        bool found;
        size_t place = manifest_place_of(&manifest->spaces[i], name, &found);
        if (found) {
            return &manifest->spaces[i].files[place];
        }
    }
    return NULL;
}

bool manifest_add_file(struct manifest *manifest, struct manifest_space *space,
                       const struct manifest_file *file)
{
    bool found;
    CHECK(space >= manifest->spaces && space < manifest->spaces + manifest->spaces_count);
    if (!file_allowed(file) || space->files_count == MANIFEST_FILES_MAX ||
        manifest_find_file(manifest, file->name)) {
        return false;
    }
    space->files =
        array_room(space->files, space->files_count, &space->files_room, sizeof(*space->files));
    struct manifest_file *place = space->files + manifest_place_of(space, file->name, &found);
    size_t after = (size_t)(space->files + space->files_count - place);
    memmove(place + 1, place, after * sizeof(*place));
    *place = *file;
    space->files_count++;
    return true;
}

bool manifest_remove_file(struct manifest_space *space, const char *name)
{
    bool found;
    struct manifest_file *place = space->files + manifest_place_of(space, name, &found);
    if (found) {
        space->files_count--;
        size_t after = (size_t)(space->files + space->files_count - place);
        memmove(place, place + 1, after * sizeof(*place));
    }
    return found;
}

/* ---- the file ---- */

enum manifest_state manifest_load(struct vfs *vfs, const char *directory,
                                  struct manifest **manifest, char error[MANIFEST_ERROR_MAX])
{
    char path[VFS_PATH_MAX];
    char *text = NULL;
    size_t length = 0;
    if (vfs_path(path, directory, MANIFEST_NAME)) {
        text = vfs_read_file(vfs, path, MANIFEST_BYTES_MAX, &length);
    }
    if (!text && errno == ENOENT) {
        return MANIFEST_NONE;
    }
    if (!text) {
        snprintf(error, MANIFEST_ERROR_MAX, "%s/" MANIFEST_NAME ": cannot read: %s; check the disk",
                 directory, strerror(errno));
        return errno == EFBIG ? MANIFEST_DAMAGED : MANIFEST_FAILED;
    }
    enum manifest_state state = manifest_parse(text, length, path, manifest, error);
    free(text);
    return state;
}

bool manifest_store(struct vfs *vfs, const char *directory, const struct manifest *manifest,
                    char error[MANIFEST_ERROR_MAX])
{
    struct buf text;
    buf_init(&text, MANIFEST_BYTES_MAX, NULL);
    if (!manifest_compose(manifest, &text)) {
        snprintf(error, MANIFEST_ERROR_MAX,
                 "%s/" MANIFEST_NAME ": larger than %u bytes: fewer dumped tables, or no memory",
                 directory, MANIFEST_BYTES_MAX);
        buf_fini(&text);
        errno = EFBIG;
        return false;
    }
    bool stored = vfs_replace_file(vfs, directory, MANIFEST_NAME, text.data, text.length);
    int reason = errno;
    if (!stored) {
        snprintf(error, MANIFEST_ERROR_MAX, "%s/" MANIFEST_NAME ": cannot replace: %s; %s",
                 directory, strerror(reason),
                 reason == ENOSPC || reason == EDQUOT ? "make room" : "check the disk");
    }
    buf_fini(&text);
    errno = reason;
    return stored;
}
