/* recovery_tables.c: table files into engines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/point.h"
#include "base/thread.h"
#include "data/recovery_private.h"
#include "store/table_file.h"

#define LOOK_MS 50 /* at what the loaders have done, and whether to stop */

struct job {
    struct engine *engine;
    struct row_table *table; /* of a table in memory */
    const struct manifest_space *space;
    const struct manifest_file *file;
    const struct manifest_file *overlay; /* of a dumped table; NULL: none */
};

struct loading {
    struct data *data;
    size_t count;
    struct job *jobs;
    uint64_t total_bytes;
    _Atomic size_t next; /* job nobody has taken */
    _Atomic bool quit;   /* asked to stop, or one has failed */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned running;
    char error[DATA_ERROR_MAX]; /* of the first that failed */
};

/* ---- one file ---- */

/* Returns whether this is the file the manifest means. */
static bool recovery_tables_is_meant(const struct manifest_space *space,
                                     const struct manifest_file *file,
                                     const struct table_file_info *info)
{
    return strcmp(info->space, space->name) == 0 && strcmp(info->kind, space->kind) == 0 &&
           info->serial == file->serial && info->layer == file->layer &&
           info->generation == file->generation && info->start_lsn == file->start_lsn &&
           info->end_lsn == file->end_lsn && info->file_bytes == file->bytes;
}

static struct table_file *open_file(struct data *data, const struct job *job,
                                    const struct manifest_file *named, char error[DATA_ERROR_MAX])
{
    bool stays = named->role == MANIFEST_DUMP; /* it is read where it lies: page by page */
    char path[VFS_PATH_MAX];
    char why[TABLE_FILE_ERROR_MAX];
    struct table_file *file = NULL;

    CHECK(vfs_path(path, data->directory, named->name));
    enum table_file_result result = table_file_open(data->vfs, path, stays, &file, why);

    if (result == TABLE_FILE_ABSENT) {
        data_refuse(error, "%s is missing, and the manifest names it; see: rollcall repair %s",
                    path, data->directory);
    } else if (result != TABLE_FILE_DONE) {
        data_refuse(error, "%s; see: rollcall repair %s", why, data->directory);
    } else if (!recovery_tables_is_meant(job->space, named, table_file_info(file))) {
        data_refuse(error, "%s is not the file the manifest names; see: rollcall repair %s", path,
                    data->directory);
        table_file_close(file);
        file = NULL;
    }
    return file;
}

/* What is wrong in a file names it; what is wrong with the table does not. */
static bool refuse_table(const struct data *data, const struct job *job, const char *why,
                         char error[DATA_ERROR_MAX])
{
    if (strstr(why, data->directory) == why) {
        return data_refuse(error, "space %s: %s; see: rollcall repair %s", job->space->name, why,
                           data->directory);
    }
    return data_refuse(error, "space %s: %s/%s: %s; see: rollcall repair %s", job->space->name,
                       data->directory, job->file->name, why, data->directory);
}

/* The engine keeps the file, but not its descriptor. */
static bool restore_dumped(struct data *data, const struct job *job, char error[DATA_ERROR_MAX])
{
    char why[ENGINE_ERROR_MAX] = "";
    struct table_file *overlay = NULL;
    struct table_file *file = open_file(data, job, job->file, error);

    if (file == NULL) {
        return false;
    }
    table_file_share(file, data->files);
    if (job->overlay != NULL) {
        overlay = open_file(data, job, job->overlay, error);
    }
    bool opened = job->overlay == NULL || overlay != NULL;
    bool made = opened && row_restore_dumped(job->engine->row, file, overlay, why);

    table_file_close(overlay);
    if (made) {
        return true;
    }
    table_file_close(file);
    return opened ? refuse_table(data, job, why, error) : false;
}

/* The table, empty; a dumped one is whole. */
static bool recovery_tables_prepare(struct data *data, struct job *job, char error[DATA_ERROR_MAX])
{
    if (job->file->role == MANIFEST_DUMP) {
        data->figures.load_done_bytes += job->overlay != NULL ? job->overlay->bytes : 0;
        return restore_dumped(data, job, error);
    }
    char why[ENGINE_ERROR_MAX] = "";
    struct table_file *file = open_file(data, job, job->file, error);

    if (file == NULL) {
        return false;
    }
    job->table = row_restore_file(job->engine->row, file, why);

    table_file_close(file); /* not all may be open: its loader opens it again */
    return job->table != NULL || refuse_table(data, job, why, error);
}

static bool recovery_tables_load(struct loading *loading, struct job *job,
                                 char error[DATA_ERROR_MAX])
{
    if (job->file->role == MANIFEST_DUMP) {
        return true;
    }
    char why[ENGINE_ERROR_MAX] = "";
    struct table_file *file = open_file(loading->data, job, job->file, error);

    if (file == NULL) {
        return false;
    }
    POINT_SLOW("recovery look");
    bool loaded = row_restore_load(job->engine->row, job->table, file,
                                   &loading->data->figures.load_done_bytes, &loading->quit, why);

    table_file_close(file);
    if (!loaded && why[0] != '\0') {
        refuse_table(loading->data, job, why, error);
    }
    return loaded;
}

/* ---- several at once ---- */

static void *run_loader(void *context)
{
    struct loading *loading = context;
    char error[DATA_ERROR_MAX] = "";
    bool loaded = true;

    while (loaded && !loading->quit) {
        size_t next = atomic_fetch_add(&loading->next, 1);

        if (next >= loading->count) {
            break;
        }
        loaded = recovery_tables_load(loading, &loading->jobs[next], error);
    }
    pthread_mutex_lock(&loading->lock);
    if (!loaded && loading->error[0] == '\0') {
        memcpy(loading->error, error, sizeof(error));
    }
    if (!loaded) {
        loading->quit = true;
    }
    loading->running--;
    pthread_cond_signal(&loading->changed);
    pthread_mutex_unlock(&loading->lock);
    return NULL;
}

/* Waits for the loaders, tells what they have done, and has them stop. */
static void attend(struct recovery *recovery, struct loading *loading)
{
    pthread_mutex_lock(&loading->lock);
    while (loading->running > 0) {
        struct timespec until;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&loading->changed, &loading->lock, &until);
        pthread_mutex_unlock(&loading->lock);
        if (*recovery->stop) {
            loading->quit = true;
        }
        recovery_tell_loading(recovery, recovery->data->figures.load_done_bytes,
                              loading->total_bytes);
        pthread_mutex_lock(&loading->lock);
    }
    pthread_mutex_unlock(&loading->lock);
}

static bool load_all(struct recovery *recovery, struct loading *loading)
{
    unsigned wanted = recovery->data->threads < loading->count ? recovery->data->threads
                                                               : (unsigned)loading->count;
    pthread_t *threads = memory_zalloc((wanted + 1) * sizeof(*threads));
    unsigned begun = 0;

    loading->running = wanted;
    while (begun < wanted && thread_start(&threads[begun], run_loader, loading, "loader")) {
        begun++;
    }
    pthread_mutex_lock(&loading->lock);
    loading->running -= wanted - begun; /* fewer do, too */
    pthread_mutex_unlock(&loading->lock);
    attend(recovery, loading);
    for (unsigned i = 0; i < begun; i++) {
        pthread_join(threads[i], NULL);
    }
    free(threads);
    if (begun == 0 && wanted > 0) {
        return data_refuse(recovery->error, "cannot start a thread: %s", strerror(errno));
    }
    if (loading->error[0] != '\0') {
        memcpy(recovery->error, loading->error, sizeof(loading->error));
    }
    return !loading->quit;
}

/* ---- all files ---- */

/* The files of a space by serial and layer number: there may be tens of thousands. */
struct by_table {
    size_t count;
    const struct manifest_file **files;
};

static int compare_tables(const void *left, const void *right)
{
    const struct manifest_file *a = *(const struct manifest_file *const *)left;
    const struct manifest_file *b = *(const struct manifest_file *const *)right;

    if (a->serial != b->serial) {
        return a->serial < b->serial ? -1 : 1;
    }
    return a->layer != b->layer ? (a->layer < b->layer ? -1 : 1) : 0;
}

/* The caller frees its list. */
static void sort_by_table(const struct manifest_space *space, struct by_table *sorted)
{
    sorted->count = space->files_count;
    sorted->files = memory_zalloc((sorted->count + 1) * sizeof(*sorted->files));
    for (size_t i = 0; i < sorted->count; i++) {
        sorted->files[i] = &space->files[i];
    }
    qsort(sorted->files, sorted->count, sizeof(*sorted->files), compare_tables);
}

static const struct manifest_file *find_file(const struct by_table *sorted, uint64_t serial,
                                             uint64_t layer)
{
    const struct manifest_file wanted = {.serial = serial, .layer = layer};
    const struct manifest_file *key = &wanted;
    const struct manifest_file **found =
        bsearch(&key, sorted->files, sorted->count, sizeof(*sorted->files), compare_tables);

    return found != NULL ? *found : NULL;
}

static void add_job(struct loading *loading, const struct recovery_space *space,
                    const struct by_table *sorted, const struct manifest_file *file)
{
    struct job *job = &loading->jobs[loading->count++];

    *job = (struct job){.engine = space->space->engine, .space = space->known, .file = file};
    if (file->role == MANIFEST_IMAGE) {
        loading->total_bytes += file->bytes;
        return;
    }
    job->overlay = find_file(sorted, file->serial, file->layer + ROW_FILE_OVERLAY);
    loading->total_bytes += job->overlay != NULL ? job->overlay->bytes : 0;
}

/* An overlay lies over a dumped table. */
static bool is_known(const struct by_table *sorted, const struct manifest_file *file)
{
    if (!row_file_is_overlay(file->layer)) {
        return row_file_is_known(file->layer);
    }
    const struct manifest_file *below =
        find_file(sorted, file->serial, row_file_under(file->layer));

    return file->role == MANIFEST_IMAGE && below != NULL && below->role == MANIFEST_DUMP &&
           row_file_is_known(file->layer);
}

static bool recovery_tables_look_at(struct recovery *recovery, const struct by_table *sorted)
{
    for (size_t i = 0; i < sorted->count; i++) {
        const struct manifest_file *file = sorted->files[i];

        if (!is_known(sorted, file)) {
            return data_refuse(recovery->error,
                               "%s/%s: of a role this program does not know; a newer one has "
                               "written it",
                               recovery->data->directory, file->name);
        }
        if (file->end_lsn > recovery->needed_lsn) {
            recovery->needed_lsn = file->end_lsn;
        }
    }
    return true;
}

/* Layers after the tables they are of, overlays with theirs. */
static bool add_files_of(struct recovery *recovery, struct loading *loading,
                         const struct recovery_space *space)
{
    struct by_table sorted;

    sort_by_table(space->known, &sorted);
    bool known = recovery_tables_look_at(recovery, &sorted);

    for (size_t k = 0; known && k < (ROW_LAYERS_MAX + 1) * sorted.count; k++) {
        const struct manifest_file *file = sorted.files[k % sorted.count];

        if (file->layer == row_file_number((unsigned)(k / sorted.count), false)) {
            add_job(loading, space, &sorted, file);
        }
    }
    free(sorted.files);
    return known;
}

static bool recovery_tables_add_files(struct recovery *recovery, struct loading *loading)
{
    for (size_t i = 0; i < recovery->count; i++) {
        const struct recovery_space *space = recovery->spaces[i];

        if (space->known != NULL && !add_files_of(recovery, loading, space)) {
            return false;
        }
    }
    return true;
}

static size_t count_files(const struct recovery *recovery)
{
    size_t files = 0;

    for (size_t i = 0; i < recovery->count; i++) {
        files += recovery->spaces[i]->known != NULL ? recovery->spaces[i]->known->files_count : 0;
    }
    return files;
}

static bool recovery_tables_begin_spaces(struct recovery *recovery)
{
    char why[ENGINE_ERROR_MAX];

    for (size_t i = 0; i < recovery->count; i++) {
        const struct recovery_space *space = recovery->spaces[i];
        struct engine *engine = space->space->engine;

        if (space->known == NULL) {
            continue;
        }
        const struct manifest_data *state = manifest_find_data(space->known, DATA_LABEL_STATE);

        if (!row_restore_begin(engine->row, state != NULL ? state->bytes : NULL,
                               state != NULL ? state->length : 0, why)) {
            return data_refuse(recovery->error, "space %s: %s", space->space->name, why);
        }
    }
    return true;
}

static bool end_spaces(struct recovery *recovery)
{
    char why[ENGINE_ERROR_MAX];

    for (size_t i = 0; i < recovery->count; i++) {
        const struct recovery_space *space = recovery->spaces[i];
        struct engine *engine = space->space->engine;

        if (space->known != NULL && space->known->files_count > 0 &&
            !row_restore_complete(engine->row, why)) {
            return data_refuse(recovery->error, "space %s: %s; see: rollcall repair %s",
                               space->space->name, why, recovery->data->directory);
        }
    }
    return true;
}

static bool prepare_all(struct recovery *recovery, struct loading *loading)
{
    for (size_t i = 0; i < loading->count; i++) {
        if (*recovery->stop ||
            !recovery_tables_prepare(recovery->data, &loading->jobs[i], recovery->error)) {
            return false;
        }
        recovery_tell_loading(recovery, 0, loading->total_bytes);
    }
    return true;
}

bool recovery_tables(struct recovery *recovery)
{
    struct loading loading = {.data = recovery->data};

    pthread_mutex_init(&loading.lock, NULL);
    thread_cond_init(&loading.changed);
    loading.jobs = memory_zalloc((count_files(recovery) + 1) * sizeof(*loading.jobs));
    bool loaded =
        recovery_tables_begin_spaces(recovery) && recovery_tables_add_files(recovery, &loading);

    recovery->data->figures.load_total_bytes = loading.total_bytes;
    loaded = loaded && prepare_all(recovery, &loading) && load_all(recovery, &loading) &&
             end_spaces(recovery);
    free(loading.jobs);
    pthread_cond_destroy(&loading.changed);
    pthread_mutex_destroy(&loading.lock);
    return loaded;
}
