/* load_fill_engine.c: what runs in a daemon beside its connections, without one. */
#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "data/fill.h"
#include "space/keeper.h"
#include "space/spaces.h"
#include "store/vfs.h"
#include "tools/rollcall/load_fill.h"
#include "tools/rollcall/verb.h"

#define PAUSE_MS 20

struct fill {
    const struct fill_options *options;
    struct settings *settings;
    struct spaces *spaces;
    struct data *data;
    struct barrier *barrier;
    struct barrier_member *member;
    struct keeper *keeper;
    bool keeper_started, data_started;
    struct space *space;
    struct engine *engine;
    pthread_mutex_t lock; /* of the next two */
    pthread_cond_t woken;
    uid_t owner; /* of what is made, where this is root; 0: root */
    gid_t group;
    uint64_t wakes; /* of tickets */
    uint64_t waits; /* the serial of the next ticket */
    uint64_t gone;  /* rows that were recycled with their tables, so far */
    char error[FILL_ERROR_MAX];
    struct engine_op *list[FILL_OPS];
    struct engine_op ops[FILL_OPS];
    char values[ENGINE_VALUE_MAX];
};

__attribute__((format(printf, 2, 3))) static bool fill_fail(struct fill *fill, const char *format,
                                                            ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(fill->error, sizeof(fill->error), format, arguments);
    va_end(arguments);
    return false;
}

const char *fill_error(const struct fill *fill)
{
    return fill->error;
}

/* ---- the beginning ---- */

static char *fill_setting(const char *directory)
{
    char here[VFS_PATH_MAX] = "";
    char text[2 * VFS_PATH_MAX];

    if (directory[0] != '/' && getcwd(here, sizeof(here)) == NULL) {
        return NULL;
    }
    snprintf(text, sizeof(text), "data=%s%s%s", here, here[0] != '\0' ? "/" : "", directory);
    return memory_strdup(text);
}

/* Reads the configuration as a daemon does, but for the directory. False: the mistakes were
 * printed. */
static bool fill_configure(struct fill *fill)
{
    char program[] = "rollcall";
    char config[] = "--config";
    char set[] = "--set";
    char *file = memory_strdup(fill->options->config);
    char *data = fill_setting(fill->options->directory);
    char *argv[] = {program, config, file, set, data, NULL};

    fill->settings = data != NULL ? settings_reload(5, argv, stderr) : NULL;
    free(file);
    free(data);
    if (fill->settings == NULL) {
        return fill_fail(fill, "%s: no configuration to fill a directory by",
                         fill->options->config);
    }
    fill->settings->checkpoint.every_ms = 0; /* what is in memory is written once, at the end */
    fill->settings->checkpoint.journal_bytes = 0;
    fill->settings->journal.segment_bytes = JOURNAL_SEGMENT_BYTES_MIN; /* its end fills one */
    fill->settings->replication.keep_bytes = 0;
    return true;
}

static bool fill_find_space(struct fill *fill)
{
    const struct fill_options *options = fill->options;
    const struct settings *settings = fill->settings;
    const struct space_settings *found = NULL;

    for (size_t i = 0; i < settings->space_count; i++) {
        if (strcmp(settings->spaces[i].name, options->space) == 0) {
            found = &settings->spaces[i];
        }
    }
    if (found == NULL) {
        return fill_fail(fill, "%s: it has no space of the name %s", options->config,
                         options->space);
    }
    if (!data_stores(found)) {
        return fill_fail(fill,
                         "%s: only spaces of kind counter and phantom are loaded, and %s is plain",
                         options->config, options->space);
    }
    if (settings->replication.follow != NULL) {
        return fill_fail(fill,
                         "%s: the node follows %s, so its directory is a copy of that one's; fill "
                         "the leader's",
                         options->config, settings->replication.follow);
    }
    return true;
}

/* A directory that is there keeps its owner; a new one is the daemon's user's. */
static void fill_find_owner(struct fill *fill)
{
    const struct passwd *user =
        fill->settings->user != NULL ? getpwnam(fill->settings->user) : NULL;
    struct stat is;

    if (stat(fill->settings->data, &is) == 0) {
        fill->owner = is.st_uid;
        fill->group = is.st_gid;
    }
    if (fill->owner == 0 && user != NULL) {
        fill->owner = user->pw_uid;
        fill->group = user->pw_gid;
    }
}

static bool fill_start(struct fill *fill)
{
    static const _Atomic bool never = false;
    char error[DATA_ERROR_MAX];

    fill->data = data_open_to_fill(vfs_real(), fill->settings, error);
    if (fill->data == NULL) {
        return fill_fail(fill, "%s", error);
    }
    fill->spaces = spaces_create(fill->settings, NULL, 1, space_engine_create, error);
    if (fill->spaces == NULL) {
        return fill_fail(fill, "%s", error);
    }
    fill->barrier = barrier_create();
    fill->member = barrier_join(fill->barrier);
    fill->keeper = keeper_create(fill->barrier, NULL, NULL);
    keeper_attach(fill->keeper, fill->spaces);
    if (!data_recover(fill->data, fill->spaces, &never, error)) {
        return fill_fail(fill, "%s", error);
    }
    fill->keeper_started = keeper_start(fill->keeper, fill->spaces);
    fill->data_started =
        fill->keeper_started && data_start(fill->data, fill->barrier, &fill->spaces);
    if (!fill->data_started) {
        return fill_fail(fill, "cannot start a thread: %s", strerror(errno));
    }
    data_checkpoint(fill->data); /* dumps go alone once there has been one */
    fill->space = spaces_find(fill->spaces, fill->options->space);
    fill->engine = fill->space->engine;
    return true;
}

struct fill *fill_open(const struct fill_options *options)
{
    struct fill *fill = memory_zalloc(sizeof(*fill));

    log_setup("rollcall", LOG_LEVEL_WARNING);
    fill->options = options;
    CHECK(pthread_mutex_init(&fill->lock, NULL) == 0);
    thread_cond_init(&fill->woken);
    for (size_t i = 0; i < FILL_OPS; i++) {
        fill->list[i] = &fill->ops[i];
    }
    if (fill_configure(fill) && fill_find_space(fill)) {
        fill_find_owner(fill);
        if (fill_start(fill)) {
            return fill;
        }
    }
    verb_complain(stderr, "%s", fill->error);
    (void)fill_close(fill, false);
    return NULL;
}

const struct space_settings *fill_space(const struct fill *fill)
{
    return &fill->space->settings;
}

struct engine_op *fill_ops(struct fill *fill)
{
    return fill->ops;
}

/* ---- changes ---- */

static void fill_wake(void *target, uint64_t serial)
{
    struct fill *fill = target;

    pthread_mutex_lock(&fill->lock);
    if (serial == fill->waits) {
        fill->wakes = serial;
        pthread_cond_signal(&fill->woken);
    }
    pthread_mutex_unlock(&fill->lock);
}

/* Waits until a ticket of this serial is woken, or the deadline is over. */
static bool fill_await(struct fill *fill, uint64_t until_us)
{
    struct timespec until = {.tv_sec = (time_t)(until_us / 1000000),
                             .tv_nsec = (long)(until_us % 1000000) * 1000};
    int waited = 0;

    pthread_mutex_lock(&fill->lock);
    while (fill->wakes != fill->waits && waited == 0) {
        waited = pthread_cond_timedwait(&fill->woken, &fill->lock, &until);
    }
    fill->waits++;
    pthread_mutex_unlock(&fill->lock);
    return waited == 0;
}

/* Returns whether an op is to be tried again: no table is free while a dump has failed. */
static bool fill_is_busy(const struct fill *fill, const struct engine_op *op)
{
    bool dumps = fill->space->settings.oldest == SPACE_OLDEST_DUMP;

    return op->status == ENGINE_ERROR &&
           (op->error == ENGINE_E_BUSY || op->error == ENGINE_E_JOURNAL_BUSY ||
            (dumps && op->error == ENGINE_E_NO_TABLE_FREE));
}

/* The first of them wait: outside the barrier, until the keeper or a dump has gone on. */
static bool fill_wait(struct fill *fill, const struct engine_op *op, uint64_t until_us)
{
    const struct timespec pause = {0, PAUSE_MS * 1000000l};
    bool more = clock_monotonic_us() < until_us;

    if (op->status == ENGINE_PENDING) {
        more = fill_await(fill, until_us);
    } else {
        nanosleep(&pause, NULL);
    }
    return more || fill_fail(fill,
                             "no table came free in %g s: the disk does not keep up, or "
                             "is full (--timeout)",
                             fill->options->patience_ms / 1000.0);
}

/* Carries out what it can; how many. The next one has to wait, if any is left. */
static size_t fill_run(struct fill *fill, size_t from, size_t count)
{
    size_t i = from;

    barrier_enter(fill->member);
    fill->engine->functions->prepare(fill->engine, fill->list + from, count - from);
    while (i < count) {
        struct engine_op *op = &fill->ops[i];

        fill->engine->functions->change(fill->engine, op, change_sink_null());
        if (op->status == ENGINE_PENDING || fill_is_busy(fill, op)) {
            break;
        }
        i++;
    }
    fill->gone = engine_recycled(fill->engine);
    barrier_leave(fill->member);
    return i;
}

static bool fill_has_all(struct fill *fill)
{
    return fill->gone == 0 ||
           fill_fail(fill,
                     "space %s recycles its oldest tables, and %llu rows are gone with them: give "
                     "it more tables, or `oldest: dump`",
                     fill->space->name, (unsigned long long)fill->gone);
}

bool fill_carry_out(struct fill *fill, size_t count)
{
    uint64_t until_us = 0;
    size_t done = 0;

    CHECK(count <= FILL_OPS);
    for (size_t i = 0; i < count; i++) {
        fill->ops[i].value = fill->values;
    }
    while (done < count) {
        struct ticket ticket = {fill_wake, fill, fill->waits};

        for (size_t i = done; i < count; i++) {
            fill->ops[i].ticket = ticket;
        }
        size_t now = fill_run(fill, done, count);

        if (now > done || until_us == 0) {
            until_us = clock_monotonic_us() + fill->options->patience_ms * 1000ull;
        }
        done = now;
        if (done < count && !fill_wait(fill, &fill->ops[done], until_us)) {
            return false;
        }
    }
    return fill_has_all(fill);
}

/* ---- the end ---- */

static void fill_give_entry(void *context, const char *name)
{
    struct fill *fill = context;
    char path[VFS_PATH_MAX];

    /* The directory's owner may have put a link there meanwhile. */
    if (!vfs_path(path, fill->settings->data, name) ||
        lchown(path, fill->owner, fill->group) != 0) {
        (void)fill_fail(fill, "%s/%s: %s", fill->settings->data, name, strerror(errno));
    }
}

/* What root has made would not be the daemon's. */
static bool fill_give(struct fill *fill)
{
    struct vfs *vfs = vfs_real();

    if (geteuid() != 0 || fill->owner == 0) {
        return true;
    }
    fill->error[0] = '\0';
    if (vfs->functions->list(vfs, fill->settings->data, fill_give_entry, fill) != 0 ||
        chown(fill->settings->data, fill->owner, fill->group) != 0) {
        return fill_fail(fill, "%s: %s", fill->settings->data, strerror(errno));
    }
    return fill->error[0] == '\0';
}

static bool fill_finish(struct fill *fill, bool whole)
{
    char error[DATA_ERROR_MAX];

    if (fill->data_started) {
        data_stop(fill->data);
    }
    if (fill->keeper_started) {
        keeper_end(fill->keeper);
    }
    if (whole) {
        fill->gone = engine_recycled(fill->engine); /* the keeper may have gone on meanwhile */
    }
    bool complete = whole && fill_has_all(fill);
    bool ended = !complete || data_fill_ends(fill->data, fill->engine);

    if (!data_close(fill->data, fill->spaces, complete && ended) || !ended) {
        return fill_fail(fill, "%s: its tables cannot be written", fill->options->directory);
    }
    if (!complete) {
        return !whole;
    }
    return fill_give(fill) && (data_filled(fill->data, error) || fill_fail(fill, "%s", error));
}

bool fill_close(struct fill *fill, bool whole)
{
    if (fill == NULL) {
        return true;
    }
    bool done = fill_finish(fill, whole);

    if (!done) {
        verb_complain(stderr, "%s", fill->error);
    }
    keeper_destroy(fill->keeper);
    spaces_drop(fill->spaces, NULL);
    data_destroy(fill->data);
    barrier_resign(fill->member);
    barrier_destroy(fill->barrier);
    settings_destroy(fill->settings);
    pthread_cond_destroy(&fill->woken);
    pthread_mutex_destroy(&fill->lock);
    free(fill);
    return done;
}
