/* phantom_dumps.c: checkpoints of a phantom space whose tables leave memory. */
#include "tests/support/phantom_dumps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "phantom/phantom_private.h"
#include "row/row_data.h"
#include "row/row_fold.h"
#include "store/cold.h"
#include "store/table_file.h"
#include "tests/support/image_file.h"

#define POOL_THREADS 2u
#define POOL_QUEUE   64u
#define RUNS_MAX     10000u /* wakes of operations that did not wait for theirs are among them */

static const _Atomic bool never = false;

void phantom_dumps_init(struct phantom_dumps *dumps, struct vfs *vfs, const char *directory,
                        struct recorder *recorder, uint64_t cache_bytes, uint64_t overlay_max)
{
    struct cold_config config = {
        .vfs = vfs, .threads = POOL_THREADS, .queue = POOL_QUEUE, .cache_bytes = cache_bytes};
    memset(dumps, 0, sizeof(*dumps));
    dumps->vfs = vfs;
    dumps->directory = directory;
    dumps->recorder = recorder;
    dumps->cold.cold = cold_create(&config);
    dumps->cold.overlay_bytes_max = overlay_max;
    CHECK(dumps->cold.cold && sem_init(&dumps->woken, 0, 0) == 0);
}

void phantom_dumps_fini(struct phantom_dumps *dumps)
{
    CHECK(dumps->cold.overlay_bytes == 0);
    cold_destroy(dumps->cold.cold);
    sem_destroy(&dumps->woken);
}

static void stop(const struct phantom_dumps *dumps)
{
    if (dumps->barrier) {
        barrier_stop(dumps->barrier);
    }
}

static void go(const struct phantom_dumps *dumps)
{
    if (dumps->barrier) {
        barrier_go(dumps->barrier);
    }
}

/* ---- files ---- */

static struct phantom_dumps_table *find(struct phantom_dumps_set *set, uint64_t serial,
                                        unsigned layer)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->tables[i].serial == serial && set->tables[i].layer == layer) {
            return &set->tables[i];
        }
    }
    return NULL;
}

static struct image_file file_of(const struct phantom_dumps *dumps, const char *name)
{
    return (struct image_file){dumps->vfs, dumps->directory, name};
}

static void unlink_file(const struct phantom_dumps *dumps, const char *name)
{
    const struct image_file file = file_of(dumps, name);
    image_file_unlink(&file);
}

static struct table_file *open_file(struct phantom_dumps *dumps, const char *name, bool direct)
{
    const struct image_file file = file_of(dumps, name);
    return image_file_open(&file, direct, dumps->error);
}

static bool is_named(const struct phantom_dumps_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++) {
        if (strcmp(set->tables[i].file, name) == 0 || strcmp(set->tables[i].overlay, name) == 0) {
            return true;
        }
    }
    return name[0] == '\0';
}

static void unlink_unnamed(const struct phantom_dumps *dumps, const struct phantom_dumps_set *old,
                           const struct phantom_dumps_set *now)
{
    for (size_t i = 0; i < old->count; i++) {
        if (!is_named(now, old->tables[i].file)) {
            unlink_file(dumps, old->tables[i].file);
        }
        if (!is_named(now, old->tables[i].overlay)) {
            unlink_file(dumps, old->tables[i].overlay);
        }
    }
}

static void replace(const struct phantom_dumps *dumps, char *at, const char *name)
{
    if (!is_named(&dumps->last, at)) {
        unlink_file(dumps, at); /* of this round already */
    }
    snprintf(at, PHANTOM_DUMPS_NAME, "%s", name);
}

static void keep(struct phantom_dumps *dumps, const struct row_image *image, const char *name)
{
    struct phantom_dumps_table *table = find(&dumps->next, image->serial, image->layer);
    if (!table) {
        CHECK(dumps->next.count < PHANTOM_DUMPS_FILES);
        table = &dumps->next.tables[dumps->next.count++];
        *table = (struct phantom_dumps_table){.serial = image->serial, .layer = image->layer};
    }
    dumps->images[image->kind]++;
    if (image->kind == ROW_IMAGE_OVERLAY) {
        replace(dumps, table->overlay, name);
        return;
    }
    replace(dumps, table->file, name);
    replace(dumps, table->overlay, "");
    table->dumped = image->kind != ROW_IMAGE_TABLE;
    if (table->dumped) {
        CHECK(dumps->done_count < PHANTOM_DUMPS_FILES);
        struct phantom_dumps_done *done = &dumps->done[dumps->done_count++];
        done->image = *image;
        snprintf(done->file, sizeof(done->file), "%s", name);
    }
}

/* ---- rounds ---- */

static void fold(struct phantom_dumps *dumps, struct engine *engine)
{
    enum row_fold next = ROW_FOLD_COPY;
    row_images_settle(engine->row);
    while (next != ROW_FOLD_DONE) {
        bool stops = next == ROW_FOLD_MOVE;
        if (stops) {
            stop(dumps);
        } else if (dumps->member) {
            barrier_enter(dumps->member);
        }
        next = row_fold_step(engine->row, stops);
        if (stops) {
            go(dumps);
            row_images_settle(engine->row);
            dumps->stops++;
        } else if (dumps->member) {
            barrier_leave(dumps->member);
        }
        if (dumps->folds && next != ROW_FOLD_DONE) {
            dumps->folds(dumps->context);
        }
    }
}

/* Not stopped, but on the way out. */
static enum engine_image write_image(struct phantom_dumps *dumps, struct engine *engine,
                                     const struct row_image *image)
{
    char name[PHANTOM_DUMPS_NAME];
    snprintf(name, sizeof(name), "file-%" PRIu64, ++dumps->numbers);
    const struct image_file file = file_of(dumps, name);
    enum engine_image result =
        image_file_write(&file, engine, image, dumps->member, &never, dumps->error);
    if (result == ENGINE_IMAGE_DONE && dumps->fails[image->kind] > 0) {
        dumps->fails[image->kind]--;
        unlink_file(dumps, name);
        result = ENGINE_IMAGE_FAILED;
    }
    if (dumps->written) {
        dumps->written(dumps->context, image);
    }
    stop(dumps);
    if (result == ENGINE_IMAGE_DONE) {
        keep(dumps, image, name);
    } else {
        dumps->gone[image->kind]++;
        row_image_failed(engine->row, image);
        go(dumps);
        fold(dumps, engine);
        stop(dumps);
    }
    return result;
}

static void keep_table(void *context, uint64_t serial, unsigned layer)
{
    struct phantom_dumps_table *table = find(context, serial, layer);
    CHECK(table); /* every table has an image */
    table->kept = true;
}

/* M is here: what is gone by now is not named any more. Stopped. */
static void complete(struct phantom_dumps *dumps, const struct engine *engine)
{
    struct phantom_dumps_set *next = &dumps->next;
    static struct phantom_dumps_set before;
    before = *next;
    for (size_t i = 0; i < next->count; i++) {
        next->tables[i].kept = false;
    }
    row_each_serial(engine->row, keep_table, next);
    size_t kept = 0;
    for (size_t i = 0; i < next->count; i++) {
        if (next->tables[i].kept) {
            next->tables[kept++] = next->tables[i];
        }
    }
    next->count = kept;
    next->m = dumps->recorder->head;
    for (size_t i = 0; i < before.count; i++) { /* made in this round, and not of use */
        struct phantom_dumps_set one = {.count = 1, .tables = {before.tables[i]}};
        bool fresh = !is_named(&dumps->last, one.tables[0].file);
        if (fresh) {
            unlink_unnamed(dumps, &one, next);
        }
    }
    unlink_unnamed(dumps, &dumps->last, next);
    dumps->last = *next;
}

/* Files that are not named by now go unopened: their table was dropped. */
static void tell_done(struct phantom_dumps *dumps, struct engine *engine)
{
    for (size_t i = 0; i < dumps->done_count; i++) {
        const struct phantom_dumps_done *done = &dumps->done[i];
        if (!is_named(&dumps->last, done->file)) {
            stop(dumps);
            row_image_failed(engine->row, &done->image);
            go(dumps);
            fold(dumps, engine);
            continue;
        }
        struct table_file *file = open_file(dumps, done->file, true);
        CHECK(file);
        stop(dumps);
        file = row_image_done(engine->row, &done->image, file);
        go(dumps);
        row_images_settle(engine->row);
        if (file) {
            cold_forget(dumps->cold.cold, file);
            table_file_close(file);
        }
    }
    dumps->done_count = 0;
}

static void begin(struct phantom_dumps *dumps, struct engine *engine)
{
    dumps->next = dumps->last;
    dumps->next.any = true;
    dumps->next.c = dumps->recorder->head;
    row_images_begin(engine->row);
    dumps->next.state_bytes = row_state_write(engine->row, dumps->next.state);
    dumps->done_count = 0;
}

static bool next_image(struct phantom_dumps *dumps, struct engine *engine, struct row_image *image)
{
    return row_image_next(engine->row, dumps->next.c, dumps->recorder->head, image);
}

bool phantom_dumps_round(struct phantom_dumps *dumps, struct engine *engine)
{
    static struct row_image image;
    bool sound = true;
    CHECK(!dumps->in_round);
    dumps->in_round = true;
    stop(dumps);
    begin(dumps, engine);
    while (next_image(dumps, engine, &image)) {
        go(dumps);
        sound &= write_image(dumps, engine, &image) != ENGINE_IMAGE_FAILED;
    }
    complete(dumps, engine);
    go(dumps);
    tell_done(dumps, engine);
    dumps->in_round = false;
    return sound;
}

void phantom_dumps_cut_round(struct phantom_dumps *dumps, struct engine *engine, unsigned images)
{
    static struct row_image image;
    begin(dumps, engine);
    while (images-- > 0 && next_image(dumps, engine, &image)) {
        (void)write_image(dumps, engine, &image);
    }
}

/* ---- restoring ---- */

static bool open_dumped(struct phantom_dumps *dumps, struct engine *engine,
                        const struct phantom_dumps_table *table)
{
    struct table_file *overlay = NULL;
    struct table_file *file = open_file(dumps, table->file, true);
    bool opened = file != NULL;
    if (opened && table->overlay[0]) {
        overlay = open_file(dumps, table->overlay, false);
        opened = overlay != NULL;
    }
    opened = opened && row_restore_dumped(engine->row, file, overlay, dumps->error);
    table_file_close(overlay);
    if (!opened) {
        table_file_close(file);
    }
    return opened;
}

static bool load(struct phantom_dumps *dumps, struct engine *engine,
                 const struct phantom_dumps_table *table)
{
    _Atomic uint64_t done = 0;
    struct row_table *loaded;
    if (table->dumped) {
        return open_dumped(dumps, engine, table);
    }
    struct table_file *file = open_file(dumps, table->file, false);
    bool sound = file && (loaded = row_restore_file(engine->row, file, dumps->error)) != NULL &&
                 row_restore_load(engine->row, loaded, file, &done, &never, dumps->error);
    table_file_close(file);
    return sound;
}

bool phantom_dumps_restore(struct phantom_dumps *dumps, struct engine *engine, size_t batch)
{
    const struct phantom_dumps_set *set = &dumps->last;
    bool sound =
        row_restore_begin(engine->row, set->state, set->any ? set->state_bytes : 0, dumps->error);
    for (unsigned layer = 0; layer <= ROW_LAYERS_MAX; layer++) {
        for (size_t i = 0; sound && i < set->count; i++) {
            sound = set->tables[i].layer != layer || load(dumps, engine, &set->tables[i]);
        }
    }
    if (!sound || !row_restore_complete(engine->row, dumps->error)) {
        return false;
    }
    if (!recorder_replay(dumps->recorder, engine, set->c, set->m, batch)) {
        memcpy(dumps->error, dumps->recorder->error, sizeof(dumps->error));
        return false;
    }
    CHECK(row_restore_end(engine->row));
    return true;
}

/* ---- operations ---- */

static void wake(void *target, uint64_t serial)
{
    (void)serial;
    sem_post(target);
}

/* True: what it waits for may come. */
static bool work(struct phantom_dumps *dumps, struct engine *engine)
{
    const struct row *row = &((const struct phantom *)engine)->row;
    row_maintain(engine->row, NULL);
    if (row->waiters.count == 0) {
        return true; /* for a page */
    }
    if (dumps->in_round) {
        return false;
    }
    (void)phantom_dumps_round(dumps, engine);
    row_maintain(engine->row, NULL);
    return true;
}

enum engine_status phantom_dumps_run(struct phantom_dumps *dumps, struct engine *engine,
                                     struct phantoms_call *call, struct change_sink *sink)
{
    struct ticket ticket = {wake, &dumps->woken, 0};
    call->op.ticket = (struct ticket){wake, &dumps->woken, 0};
    enum engine_status status = phantoms_try(engine, call, sink);
    for (unsigned i = 0; status == ENGINE_PENDING && work(dumps, engine); i++) {
        CHECK(i < RUNS_MAX);
        sem_wait(&dumps->woken);
        status = phantoms_try(engine, call, sink);
    }
    row_maintain(engine->row, NULL);
    cold_release(dumps->cold.cold, &ticket);
    return status;
}
