/* fill.c: the mark of a directory that is being filled. */
#include "data/fill.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "data/data_private.h"
#include "store/journal_format.h"

#define EVENTS_A_WRITE 32u /* small ones: they fill a segment */

static const char mark[] = "rollcall load --offline has not ended\n";

static bool filling_refuse(const struct data *data, const char *name, char error[DATA_ERROR_MAX])
{
    return data_refuse(error, "%s/%s: %s", data->directory, name, strerror(errno));
}

bool data_is_filling(struct vfs *vfs, const char *directory)
{
    char path[VFS_PATH_MAX];

    return vfs_path(path, directory, DATA_FILLING_NAME) && vfs->functions->mode(vfs, path) >= 0;
}

bool data_refuse_filling(const struct data *data, char error[DATA_ERROR_MAX])
{
    return !data_is_filling(data->vfs, data->directory) ||
           data_refuse(error, "data directory " DATA_FILLING_WORDS, data->directory);
}

/* ---- what is in it ---- */

struct fill_look {
    const struct data *data;
    bool delete;              /* what a fill has made; else it is in the way */
    int error;                /* 0: nothing went wrong */
    char found[VFS_PATH_MAX]; /* in the way; "": nothing */
};

static bool fill_made(const char *name)
{
    uint64_t start;

    return manifest_name_ours(name) || journal_name_parse(name, &start) ||
           journal_name_temporary(name) || strcmp(name, MANIFEST_NAME) == 0 ||
           strcmp(name, JOURNAL_BALLAST_NAME) == 0;
}

static void fill_look_entry(void *context, const char *name)
{
    struct fill_look *look = context;
    const struct data *data = look->data;

    if (strcmp(name, DIR_LOCK_NAME) == 0 || strcmp(name, DATA_FILLING_NAME) == 0 ||
        strcmp(name, DATA_FILLING_NAME VFS_TEMPORARY) == 0) {
        return;
    }
    if (!look->delete || !fill_made(name)) {
        snprintf(look->found, sizeof(look->found), "%s", name);
    } else if (vfs_unlink_in(data->vfs, data->directory, name) != 0) {
        look->error = errno;
    }
}

bool data_fill_begin(const struct data *data, char error[DATA_ERROR_MAX])
{
    struct fill_look look = {.data = data, .delete = data_is_filling(data->vfs, data->directory)};

    if (data->vfs->functions->list(data->vfs, data->directory, fill_look_entry, &look) != 0) {
        return filling_refuse(data, ".", error);
    }
    if (look.error != 0) {
        errno = look.error;
        return filling_refuse(data, "what a load before has left", error);
    }
    if (look.found[0] != '\0') {
        return data_refuse(error,
                           "%s: it is not empty, as it has %s; an offline load begins with a new "
                           "or empty directory",
                           data->directory, look.found);
    }
    return vfs_replace_file(data->vfs, data->directory, DATA_FILLING_NAME, mark,
                            sizeof(mark) - 1) ||
           filling_refuse(data, DATA_FILLING_NAME, error);
}

static bool fill_write_events(struct data *data, const struct engine *engine)
{
    change_log_await(&data->log.log);
    if (!data->log.log.reserve(&data->log.log)) {
        return false;
    }
    for (unsigned i = 0; i < EVENTS_A_WRITE; i++) {
        row_log_space(engine->row);
    }
    return journal_log_commit(&data->log);
}

bool data_fill_ends(struct data *data, const struct engine *engine)
{
    uint64_t from = journal_head(data->journal);
    bool written = true;

    while (written && journal_head(data->journal) - from <= data->segment_bytes) {
        written = fill_write_events(data, engine);
    }
    return written && journal_sync_now(data->journal); /* a trim deletes what is durable whole */
}

bool data_filled(struct data *data, char error[DATA_ERROR_MAX])
{
    return (vfs_unlink_in(data->vfs, data->directory, DATA_FILLING_NAME) == 0 &&
            data->vfs->functions->sync_dir(data->vfs, data->directory) == 0) ||
           filling_refuse(data, DATA_FILLING_NAME, error);
}
