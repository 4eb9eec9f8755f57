/* data_cold.c: what reads dumped tables, and is told that one is to be dumped. */
#include "base/check.h"
#include "base/log.h"
#include "data/data_private.h"

/* ---- what cold says ---- */

static void data_cold_complain(void *context, const char *error)
{
    struct data *data = context;

    if (log_is_due(&data->complained_us)) {
        log_error("%s; stop the daemon and see: rollcall repair %s", error, data->directory);
    }
}

/* ---- its life ---- */

static bool data_cold_has_dumps(const struct manifest *manifest)
{
    struct manifest_at at = {0};
    const struct manifest_file *file;

    while ((file = manifest_next_file(manifest, &at)) != NULL) {
        if (file->role == MANIFEST_DUMP) {
            return true;
        }
    }
    return false;
}

void data_cold_configure(struct data *data, const struct settings *settings)
{
    settings_cold_config(settings, &data->cold_config);
    data->cold_config.vfs = data->vfs;
    data->cold_config.failed = data_cold_complain;
    data->cold_config.context = data;
    data->cold_wanted = settings_dumps(settings);
    data->engine_cold.overlay_bytes_max = settings->cold.overlay_bytes;
    data->files = open_files_create(data->vfs, settings->cold.open_files > 0
                                                   ? settings->cold.open_files
                                                   : settings->cold.threads + DATA_OPEN_FILES_MORE);
}

bool data_cold_create(struct data *data, char error[DATA_ERROR_MAX])
{
    if (!data->cold_wanted && !data_cold_has_dumps(data->manifest)) {
        return true;
    }
    data->engine_cold.cold = cold_create(&data->cold_config);
    return data->engine_cold.cold != NULL ||
           data_refuse(error, "cannot start the threads that read tables in %s: %m",
                       data->directory);
}

struct cold *data_cold(const struct data *data)
{
    return data->engine_cold.cold;
}

void data_files_stats(const struct data *data, struct open_files_stats *stats)
{
    open_files_stats(data->files, stats);
}

/* ---- engines ---- */

/* The flag is raised in front of the lock: a thread that missed it is not asleep yet. */
static void data_cold_notify(void *context)
{
    struct data *data = context;

    if (!atomic_exchange(&data->dumps_asked, true)) {
        pthread_mutex_lock(&data->bell_lock);
        pthread_cond_signal(&data->bell);
        pthread_mutex_unlock(&data->bell_lock);
    }
}

void data_attach(struct data *data, struct engine *engine)
{
    engine->imager = (struct engine_keeper){data_cold_notify, data};
    if (data->engine_cold.cold != NULL && engine->row != NULL) {
        row_set_cold(engine->row, &data->engine_cold);
    }
}

void data_share_memory(struct engine *engine, struct engine_growth *growth)
{
    if (engine->row != NULL) {
        row_parts_share(engine->row, growth);
    }
}

void data_begin_space(struct data *data, struct engine *engine)
{
    data_attach(data, engine);
    row_set_log(engine->row, &data->log.log);
    row_log_begin(engine->row);
}
