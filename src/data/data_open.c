/* data_open.c: takes a data directory, or says why not. Reads no table. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "data/adopt.h"
#include "data/data_private.h"
#include "data/fill.h"
#include "data/follow.h"

#define PROBE_BYTES                                                                                \
    (64u << 10)           /* of what a start stores before the journal opens, manifests besides */
#define MODE_OTHERS  0077 /* what a directory of ours gives to nobody else */
#define MODE_ANYBODY 0002 /* to write in it: what is in it cannot be trusted */

bool data_stores(const struct space_settings *space)
{
    return space->kind != SPACE_PLAIN;
}

/* Root may have started it and wonder who is not permitted. */
static bool refuse_errno(const struct data *data, const char *what, char error[DATA_ERROR_MAX])
{
    const char *why = strerror(errno);
    const struct passwd *user = errno == EACCES ? getpwuid(geteuid()) : NULL;

    if (user != NULL) {
        return data_refuse(error, "data directory %s: %s: %s for user %s", data->directory, what,
                           why, user->pw_name);
    }
    return data_refuse(error, "data directory %s: %s: %s", data->directory, what, why);
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

/* Refuses a directory that anybody may write in, and warns if others may use it. */
static bool check_mode(const struct data *data, char error[DATA_ERROR_MAX])
{
    int mode = data->vfs->functions->mode(data->vfs, data->directory);

    if (mode < 0) {
        return refuse_errno(data, "cannot be used", error);
    }
    if ((mode & MODE_ANYBODY) != 0) {
        return data_refuse(error,
                           "data directory %s: anybody may write in it (mode %04o); chmod 700 %s",
                           data->directory, (unsigned)mode, data->directory);
    }
    if ((mode & MODE_OTHERS) != 0) {
        log_warning("the data directory is open to others: chmod 700 %s mode=%04o", data->directory,
                    (unsigned)mode);
    }
    return true;
}

/*
 * Its name is durable before anything in it counts. One that was there may be of a start that was
 * killed before it had seen to that; or lie where this process may not look: then that was for
 * whoever has made it.
 */
static bool keep_name(const struct data *data, bool made, char error[DATA_ERROR_MAX])
{
    const struct vfs_functions *file = data->vfs->functions;
    char parent[VFS_PATH_MAX];

    parent_of(data->directory, parent);
    bool kept = file->sync_dir(data->vfs, parent) == 0 || (!made && errno != EIO);

    return kept || refuse_errno(data, "its directory cannot be synced", error);
}

static bool make_directory(struct data *data, char error[DATA_ERROR_MAX])
{
    const struct vfs_functions *file = data->vfs->functions;

    if (strlen(data->directory) + MANIFEST_FILE_NAME_MAX + 2 > VFS_PATH_MAX) {
        return data_refuse(error, "data directory %.80s...: the name is too long", data->directory);
    }
    bool made = file->mkdir(data->vfs, data->directory) == 0;

    if (!made && errno != EEXIST) {
        return refuse_errno(data, "cannot be made", error);
    }
    return (made || check_mode(data, error)) && keep_name(data, made, error);
}

/* Room for the next manifest beside the present one, twice as large. */
static uint64_t probe_bytes(const struct data *data)
{
    int64_t size = vfs_size_in(data->vfs, data->directory, MANIFEST_NAME);

    return PROBE_BYTES + 2 * (uint64_t)(size > 0 ? size : 0);
}

static bool disk_is_full(int error)
{
    return error == ENOSPC || error == EDQUOT;
}

/* False with errno: no file can be made. */
static bool make_probe(const struct data *data, const char *path, uint64_t bytes, bool *full)
{
    const struct vfs_functions *file = data->vfs->functions;
    int fd = file->open(data->vfs, path, O_RDWR | O_CREAT);

    if (fd < 0) {
        *full = disk_is_full(errno);
        return false;
    }
    *full = file->allocate(data->vfs, fd, bytes) != 0 && disk_is_full(errno);
    file->close(data->vfs, fd);
    return true;
}

/* Returns whether files can be made in the directory: else that would only be found out after
 * tables have been read. On a full disk the room of the ballast is used. */
static bool probe(struct data *data, char error[DATA_ERROR_MAX])
{
    uint64_t bytes = probe_bytes(data);
    char path[VFS_PATH_MAX];
    bool full;

    CHECK(vfs_path(path, data->directory, MANIFEST_PROBE_NAME));
    bool made = make_probe(data, path, bytes, &full);

    if (full) {
        bool given = journal_ballast_give(data->vfs, data->directory, bytes);

        log_warning("data directory %s: the disk is full%s", data->directory,
                    given ? "; starting in the room that was kept for it" : "");
        made = made || make_probe(data, path, bytes, &full);
    }
    return (made && data->vfs->functions->unlink(data->vfs, path) == 0) ||
           refuse_errno(data, "cannot be written", error);
}

bool data_has_room(struct data *data, bool starts, char error[DATA_ERROR_MAX])
{
    uint64_t bytes =
        journal_start_bytes(data->segment_bytes, data->buffer_bytes) + probe_bytes(data);
    char path[VFS_PATH_MAX];
    bool full;

    CHECK(vfs_path(path, data->directory, MANIFEST_PROBE_NAME));
    pthread_mutex_lock(&data->lock); /* nobody sweeps it away */
    bool made = make_probe(data, path, bytes, &full);
    int problem = errno;

    data->vfs->functions->unlink(data->vfs, path);
    pthread_mutex_unlock(&data->lock);
    if (made && !full) {
        return true;
    }
    if (!full) {
        errno = problem;
        return refuse_errno(data, "cannot be written", error);
    }
    return (starts && journal_ballast_bytes(data->vfs, data->directory) >= bytes) ||
           data_refuse(error, "data directory %s: the disk is full, and %llu KiB are needed first",
                       data->directory, (unsigned long long)(bytes >> 10));
}

static bool take_lock(struct data *data, char error[DATA_ERROR_MAX])
{
    const struct dir_lock *lock = &data->dir_lock;
    char words[DIR_LOCK_WORDS_MAX];

    switch (dir_lock_take(data->vfs, data->directory, &data->dir_lock)) {
    case DIR_LOCK_TAKEN:
        if (lock->weak) {
            log_warning(
                "data directory %s: its file system does not lock directories, so %s/" DIR_LOCK_NAME
                " is locked: never remove it",
                data->directory, data->directory);
        }
        data->vfs = lock->vfs;
        return true;
    case DIR_LOCK_HELD:
        return data_refuse(error, "data directory %s %s", data->directory,
                           dir_lock_words(lock, words));
    default:
        return refuse_errno(data, "cannot be locked", error);
    }
}

/* A copy of the directory is another one, and so it is on a machine that was copied, as that booted
 * by itself. */
static void identify(struct data *data)
{
    struct stat status = {0};

    (void)stat(data->directory, &status); /* it is open: only a simulated one is not there */
    data->identity =
        hash_words2(status.st_dev, status.st_ino, data->vfs->functions->boot(data->vfs));
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
                           "directory; see: rollcall repair %s",
                           data->directory, found, data->directory);
    }
    data->manifest = manifest_create();
    data_name_stream(data->manifest);
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
        return data_refuse(error, "%s; see: rollcall repair %s", why, data->directory);
    default:
        return data_refuse(error, "%s", why);
    }
}

/* ---- the configuration ---- */

static const struct space_settings *data_open_wanted_for(const struct settings *settings,
                                                         const char *name)
{
    for (size_t i = 0; i < settings->space_count; i++) {
        if (strcmp(settings->spaces[i].name, name) == 0) {
            return &settings->spaces[i];
        }
    }
    return NULL;
}

static bool data_open_compare(struct data *data, const struct settings *settings,
                              char error[DATA_ERROR_MAX])
{
    for (size_t i = 0; i < data->manifest->spaces_count; i++) {
        const struct manifest_space *space = &data->manifest->spaces[i];
        const struct space_settings *wanted = data_open_wanted_for(settings, space->name);

        if (wanted == NULL) {
            return data_refuse(error,
                               "space %s is in the data directory %s and not in the "
                               "configuration: put it back, or begin with another directory",
                               space->name, data->directory);
        }
        if (strcmp(settings_kind_words[wanted->kind], space->kind) != 0) {
            return data_refuse(error, "space %s is of kind %s in the data directory %s, not %s",
                               space->name, space->kind, data->directory,
                               settings_kind_words[wanted->kind]);
        }
        if (space->number > CHANGE_SPACE_MAX) {
            return data_refuse(error, "%s/" MANIFEST_NAME ": space %s has the number %llu",
                               data->directory, space->name, (unsigned long long)space->number);
        }
    }
    return true;
}

static struct data *open_directory(struct vfs *vfs, const struct settings *settings, bool fills,
                                   char error[DATA_ERROR_MAX])
{
    struct data *data = memory_zalloc(sizeof(*data));

    CHECK(settings->data != NULL);
    CHECK(pthread_mutex_init(&data->lock, NULL) == 0);
    CHECK(pthread_mutex_init(&data->bell_lock, NULL) == 0);
    thread_cond_init(&data->bell);
    data->vfs = vfs;
    data->directory = memory_strdup(settings->data);
    data->threads = settings->threads;
    data->sync = settings->journal.sync;
    data->segment_bytes = settings->journal.segment_bytes;
    data->buffer_bytes = settings->journal.buffer_bytes;
    if (settings->replication.follow != NULL) {
        follow_create(data, settings);
    }
    data_reconfigure(data, settings);
    if (!make_directory(data, error) || !take_lock(data, error)) {
        data_destroy(data);
        return NULL;
    }
    data_cold_configure(data, settings);
    if (!(fills ? data_fill_begin(data, error) : data_refuse_filling(data, error)) ||
        !probe(data, error) ||
        !data_adopt(data->vfs, data->directory, settings->replication.follow != NULL, error) ||
        !read_manifest(data, error) || !data_open_compare(data, settings, error) ||
        (data->follow != NULL && !data_has_memory(data, data->manifest, error))) {
        data_destroy(data);
        return NULL;
    }
    if (!dir_lock_sign(data->vfs, data->directory)) {
        log_warning("%s/" DIR_LOCK_NAME ": %s", data->directory, strerror(errno));
    }
    identify(data);
    data->generation = manifest_generation(data->manifest); /* names go on after all earlier ones */
    data_count_files(data);
    return data;
}

struct data *data_open_with(struct vfs *vfs, const struct settings *settings,
                            char error[DATA_ERROR_MAX])
{
    return open_directory(vfs, settings, false, error);
}

struct data *data_open_to_fill(struct vfs *vfs, const struct settings *settings,
                               char error[DATA_ERROR_MAX])
{
    return open_directory(vfs, settings, true, error);
}

struct data *data_open(const struct settings *settings, char error[DATA_ERROR_MAX])
{
    return data_open_with(vfs_real(), settings, error);
}
