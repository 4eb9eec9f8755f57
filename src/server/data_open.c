/* data_open.c: takes a data directory, or says why not. Reads no table. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "base/memory.h"
#include "server/data_private.h"
#include "server/process.h"

#define PID_TEXT_MAX 32
#define PROBE_NAME   "probe" VFS_TEMPORARY

bool data_stores(const struct space_settings *space)
{
    return space->kind != SPACE_PLAIN;
}

static bool refuse_errno(const struct data *data, const char *what, char error[DATA_ERROR_MAX])
{
    return data_refuse(error, "data directory %s: %s: %s", data->directory, what, strerror(errno));
}

/* ---- the directory and its lock ---- */

/* The directory a path lies in, into parent[]. */
static void parent_of(const char *path, char parent[VFS_PATH_MAX])
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    while (length > 0 && path[length - 1] != '/') {
        length--;
    }
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    snprintf(parent, VFS_PATH_MAX, "%.*s", length > 0 ? (int)length : 1, length > 0 ? path : ".");
}

/* Its name is durable, too, before anything in it counts. */
static bool make_directory(struct data *data, char error[DATA_ERROR_MAX])
{
    const struct vfs_functions *file = data->vfs->functions;
    char parent[VFS_PATH_MAX];

    if (strlen(data->directory) + MANIFEST_FILE_NAME_MAX + 2 > VFS_PATH_MAX) {
        return data_refuse(error, "data directory %.80s...: the name is too long", data->directory);
    }
    if (file->mkdir(data->vfs, data->directory) != 0) {
        return errno == EEXIST || refuse_errno(data, "cannot be made", error);
    }
    parent_of(data->directory, parent);
    return file->sync_dir(data->vfs, parent) == 0 ||
           refuse_errno(data, "its directory cannot be synced", error);
}

/* Can files be made in it? Else it would only be found out when tables have been read. */
static bool probe(struct data *data, char error[DATA_ERROR_MAX])
{
    const struct vfs_functions *file = data->vfs->functions;
    char path[VFS_PATH_MAX];

    CHECK(vfs_path(path, data->directory, PROBE_NAME));
    int fd = file->open(data->vfs, path, O_RDWR | O_CREAT);

    if (fd < 0) {
        return refuse_errno(data, "cannot be written", error);
    }
    file->close(data->vfs, fd);
    return file->unlink(data->vfs, path) == 0 || refuse_errno(data, "cannot be written", error);
}

static void write_pid(struct data *data)
{
    char text[PID_TEXT_MAX];
    int length = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

    /* for messages alone */
    if (data->vfs->functions->truncate(data->vfs, data->lock_fd, 0) != 0 ||
        !vfs_write_all(data->vfs, data->lock_fd, text, (size_t)length, 0)) {
        log_warning("%s/" MANIFEST_LOCK_NAME ": %s", data->directory, strerror(errno));
    }
}

static bool refuse_in_use(struct data *data, char error[DATA_ERROR_MAX])
{
    char text[PID_TEXT_MAX] = "";
    ssize_t length = vfs_read_all(data->vfs, data->lock_fd, text, sizeof(text) - 1, 0);
    long pid = length > 0 ? strtol(text, NULL, 10) : 0;

    return pid > 0
               ? data_refuse(error, "data directory %s is in use by another rollcalld (pid %ld)",
                             data->directory, pid)
               : data_refuse(error, "data directory %s is in use by another rollcalld",
                             data->directory);
}

static bool take_lock(struct data *data, char error[DATA_ERROR_MAX])
{
    const struct vfs_functions *file = data->vfs->functions;
    char path[VFS_PATH_MAX];

    CHECK(vfs_path(path, data->directory, MANIFEST_LOCK_NAME));
    data->lock_fd = file->open(data->vfs, path, O_RDWR | O_CREAT);
    if (data->lock_fd < 0) {
        return refuse_errno(data, "cannot be written", error);
    }
    if (file->lock(data->vfs, data->lock_fd) != 0) {
        return errno == EWOULDBLOCK || errno == EACCES
                   ? refuse_in_use(data, error)
                   : refuse_errno(data, MANIFEST_LOCK_NAME, error);
    }
    return true;
}

/* ---- the manifest ---- */

/* Keeps the name of a file that a new directory would not have. */
static void find_content(void *context, const char *name)
{
    char *found = context;
    size_t length = strlen(name);
    size_t suffix = strlen(MANIFEST_TABLE_SUFFIX);
    bool table = length > suffix && strcmp(name + length - suffix, MANIFEST_TABLE_SUFFIX) == 0;

    if (table || strncmp(name, DATA_JOURNAL_PREFIX, strlen(DATA_JOURNAL_PREFIX)) == 0) {
        snprintf(found, VFS_PATH_MAX, "%s", name);
    }
}

static bool begin_new(struct data *data, char error[DATA_ERROR_MAX])
{
    char found[VFS_PATH_MAX] = "";

    if (data->vfs->functions->list(data->vfs, data->directory, find_content, found) != 0) {
        return refuse_errno(data, "cannot be read", error);
    }
    if (found[0] != '\0') {
        return data_refuse(error,
                           "%s/" MANIFEST_NAME " is missing but %s is there; it is not a new "
                           "directory; see: rollcall verify %s",
                           data->directory, found, data->directory);
    }
    data->manifest = manifest_create();
    return true;
}

static bool read_manifest(struct data *data, char error[DATA_ERROR_MAX])
{
    char why[MANIFEST_ERROR_MAX];

    switch (manifest_load(data->vfs, data->directory, &data->manifest, why)) {
    case MANIFEST_SOUND:
        /* what it names must not depend on a rename that a power cut takes back */
        return data->vfs->functions->sync_dir(data->vfs, data->directory) == 0 ||
               refuse_errno(data, "cannot be synced", error);
    case MANIFEST_NONE:
        return begin_new(data, error);
    case MANIFEST_DAMAGED:
        return data_refuse(error, "%s; see: rollcall verify %s", why, data->directory);
    default:
        return data_refuse(error, "%s", why);
    }
}

/* ---- the configuration ---- */

static const struct space_settings *wanted_for(const struct settings *settings, const char *name)
{
    for (size_t i = 0; i < settings->space_count; i++) {
        if (strcmp(settings->spaces[i].name, name) == 0) {
            return &settings->spaces[i];
        }
    }
    return NULL;
}

static bool compare(struct data *data, const struct settings *settings, char error[DATA_ERROR_MAX])
{
    static const char *const kinds[] = {
        [SPACE_COUNTER] = "counter", [SPACE_PHANTOM] = "phantom", [SPACE_PLAIN] = "plain"};

    for (size_t i = 0; i < data->manifest->spaces_count; i++) {
        const struct manifest_space *space = &data->manifest->spaces[i];
        const struct space_settings *wanted = wanted_for(settings, space->name);

        if (wanted == NULL) {
            return data_refuse(error,
                               "space %s is in the data directory %s and not in the "
                               "configuration: put it back, or begin with another directory",
                               space->name, data->directory);
        }
        if (strcmp(kinds[wanted->kind], space->kind) != 0) {
            return data_refuse(error, "space %s is of kind %s in the data directory %s, not %s",
                               space->name, space->kind, data->directory, kinds[wanted->kind]);
        }
        if (space->number > CHANGE_SPACE_MAX) {
            return data_refuse(error, "%s/" MANIFEST_NAME ": space %s has the number %llu",
                               data->directory, space->name, (unsigned long long)space->number);
        }
    }
    return true;
}

/* Names of table files go on behind all there were. */
static void note_generation(struct data *data)
{
    for (size_t i = 0; i < data->manifest->spaces_count; i++) {
        const struct manifest_space *space = &data->manifest->spaces[i];

        for (size_t k = 0; k < space->files_count; k++) {
            if (space->files[k].generation > data->generation) {
                data->generation = space->files[k].generation;
            }
        }
    }
}

struct data *data_open_with(struct vfs *vfs, const struct settings *settings,
                            char error[DATA_ERROR_MAX])
{
    struct data *data = memory_zalloc(sizeof(*data));

    CHECK(settings->data != NULL);
    CHECK(pthread_mutex_init(&data->lock, NULL) == 0);
    CHECK(pthread_mutex_init(&data->bell_lock, NULL) == 0);
    process_cond_init(&data->bell);
    data->vfs = vfs;
    data->directory = memory_strdup(settings->data);
    data->lock_fd = -1;
    data->threads = settings->threads;
    data->sync = settings->journal.sync;
    data->segment_bytes = settings->journal.segment_bytes;
    data->buffer_bytes = settings->journal.buffer_bytes;
    data->figures.loading = true;
    data_reconfigure(data, settings);
    data_cold_configure(data, settings);
    if (!make_directory(data, error) || !take_lock(data, error) || !probe(data, error) ||
        !read_manifest(data, error) || !compare(data, settings, error)) {
        data_destroy(data);
        return NULL;
    }
    write_pid(data);
    note_generation(data);
    data_count_files(data);
    return data;
}

struct data *data_open(const struct settings *settings, char error[DATA_ERROR_MAX])
{
    return data_open_with(vfs_real(), settings, error);
}
