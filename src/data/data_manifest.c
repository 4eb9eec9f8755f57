/* data_manifest.c: the manifest of a running server, and the files it does not name. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/data_private.h"

bool data_refuse(char error[DATA_ERROR_MAX], const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error, DATA_ERROR_MAX, format, arguments);
    va_end(arguments);
    return false;
}

uint64_t data_label(const struct manifest_space *space, const char *label, uint64_t otherwise)
{
    const struct manifest_data *data = manifest_find_data(space, label);
    uint64_t value = otherwise;

    if (data != NULL && data->length == sizeof(value)) {
        memcpy(&value, data->bytes, sizeof(value));
    }
    return value;
}

struct manifest_space *data_copy_space(struct manifest *to, const struct manifest_space *space)
{
    struct manifest_space *copy = manifest_add_space(to, space->name, space->number, space->kind);

    for (size_t i = 0; copy != NULL && i < space->data_count; i++) {
        const struct manifest_data *data = &space->data[i];

        CHECK(manifest_set_data(copy, data->label, data->bytes, data->length));
    }
    return copy;
}

void data_name_stream(struct manifest *manifest)
{
    manifest->stream[0] = clock_random();
    manifest->stream[1] = clock_random() | 1; /* never all zero */
}

/* ---- numbers ---- */

static uint64_t free_number(const struct manifest *manifest)
{
    uint64_t number = DATA_NUMBER_FIRST;

    for (size_t i = 0; i < manifest->spaces_count; i++) {
        if (manifest->spaces[i].number >= number) {
            number = manifest->spaces[i].number + 1;
        }
    }
    return number;
}

bool data_give_number(struct data *data, const char *space, const char *kind, uint32_t *number,
                      char error[DATA_ERROR_MAX])
{
    const struct manifest_space *known = manifest_find_space(data->manifest, space);

    if (known == NULL) {
        uint64_t next = free_number(data->manifest);

        if (next > CHANGE_SPACE_MAX) {
            return data_refuse(error, "space %s: %s has had %d spaces, and no number is left",
                               space, data->directory, CHANGE_SPACE_MAX);
        }
        known = manifest_add_space(data->manifest, space, next, kind);
    }
    if (known == NULL) {
        return data_refuse(error, "space %s: %s holds %d spaces at most", space, data->directory,
                           MANIFEST_SPACES_MAX);
    }
    if (strcmp(known->kind, kind) != 0) {
        return data_refuse(error, "space %s is of kind %s in %s, not %s", space, known->kind,
                           data->directory, kind);
    }
    *number = (uint32_t)known->number;
    return true;
}

/* ---- the file ---- */

/* The directory is used wherever it is; but the next start looks for it at its path. */
static void warn_if_moved(struct data *data)
{
    bool moved = !vfs_is_in_place(data->vfs);

    if (moved && !data->moved) {
        log_warning("%s: the data directory was moved away; it is used where it is now, and not "
                    "found there by a restart: move it back, or stop and change `data`",
                    data->directory);
    }
    data->moved = moved;
}

bool data_store(struct data *data, char error[DATA_ERROR_MAX])
{
    char why[MANIFEST_ERROR_MAX];

    warn_if_moved(data);
    return manifest_store(data->vfs, data->directory, data->manifest, why) ||
           data_refuse(error, "%s", why);
}

static uint64_t kept_bytes(const struct data *data)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < data->kept_count; i++) {
        bytes += data->kept[i].bytes;
    }
    return bytes;
}

void data_count_files(struct data *data)
{
    struct manifest_at at = {0};
    const struct manifest_file *file;
    uint64_t bytes = kept_bytes(data);
    uint64_t dumps = 0;
    uint64_t dump_bytes = 0;

    while ((file = manifest_next_file(data->manifest, &at)) != NULL) {
        bytes += file->bytes;
        if (file->role == MANIFEST_DUMP) {
            dumps++;
            dump_bytes += file->bytes;
        }
    }
    data->figures.table_files = manifest_count_files(data->manifest) + data->kept_count;
    data->figures.table_file_bytes = bytes;
    data->figures.dump_files = dumps;
    data->figures.dump_file_bytes = dump_bytes;
    data->figures.checkpoint_lsn = data->manifest->journal_lsn;
}

/* ---- what is left over ---- */

struct leftovers {
    const struct manifest *manifest;
    size_t count, room;
    char **names;
};

/* The journal looks after its own. */
static void collect_leftover(void *context, const char *name)
{
    struct leftovers *left = context;

    if (!manifest_name_ours(name) || manifest_find_file(left->manifest, name) != NULL) {
        return;
    }
    left->names = array_room(left->names, left->count, &left->room, sizeof(*left->names));
    left->names[left->count++] = memory_strdup(name);
}

void data_delete_file(struct data *data, const char *name)
{
    if (vfs_unlink_in(data->vfs, data->directory, name) != 0) {
        log_debug("a file stays for now path=%s/%s", data->directory, name);
    }
}

/* Both are sorted by name. */
static void delete_missing(struct data *data, const struct manifest_space *before,
                           const struct manifest_space *now)
{
    size_t at = 0;

    for (size_t i = 0; i < before->files_count; i++) {
        const char *name = before->files[i].name;

        while (at < now->files_count && strcmp(now->files[at].name, name) < 0) {
            at++;
        }
        if (at == now->files_count || strcmp(now->files[at].name, name) != 0) {
            data_discard_file(data, name);
        }
    }
}

void data_delete_replaced(struct data *data, const struct manifest *before)
{
    for (size_t i = 0; i < before->spaces_count; i++) {
        const struct manifest_space *now =
            manifest_find_space(data->manifest, before->spaces[i].name);

        if (now != NULL) { /* else a reload took it back: it had none */
            delete_missing(data, &before->spaces[i], now);
        }
    }
}

void data_sweep(struct data *data)
{
    struct leftovers left = {.manifest = data->manifest};

    data->kept_count = 0; /* they are found again */
    (void)data->vfs->functions->list(data->vfs, data->directory, collect_leftover, &left);
    for (size_t i = 0; i < left.count; i++) {
        data_discard_file(data, left.names[i]);
        free(left.names[i]);
    }
    free(left.names);
    if (data->kept_count > 0) {
        log_info("table files stay for a copy files=%zu bytes=%llu", data->kept_count,
                 (unsigned long long)kept_bytes(data));
    }
}
