/* checkpoints.c: checkpoints of one space for tests. */
#include "tests/support/checkpoints.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "row/row_data.h"
#include "row/row_fold.h"
#include "store/table_file.h"
#include "tests/support/image_file.h"

void checkpoints_init(struct checkpoints *cp, struct vfs *vfs, const char *directory)
{
    memset(cp, 0, sizeof(*cp));
    cp->vfs = vfs;
    cp->directory = directory;
}

/* ---- taking one ---- */

void checkpoints_begin(struct checkpoints *cp, struct engine *engine, uint64_t head)
{
    cp->next = cp->last;
    cp->next.any = true;
    cp->next.c = head;
    row_images_begin(engine->row);
    cp->next.state_bytes = row_state_write(engine->row, cp->next.state);
    CHECK(cp->next.state_bytes <= ENGINE_STATE_MAX);
}

static struct checkpoints_file *find(struct checkpoints_set *set, uint64_t serial, unsigned layer)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->files[i].serial == serial && set->files[i].layer == layer) {
            return &set->files[i];
        }
    }
    return NULL;
}

static void keep_table(void *context, uint64_t serial, unsigned layer)
{
    struct checkpoints_file *file = find(context, serial, layer);
    CHECK(file); /* every table has an image */
    file->kept = true;
}

static void unlink_file(struct checkpoints *cp, const char *name)
{
    image_file_unlink(&(struct image_file){cp->vfs, cp->directory, name});
}

static bool is_named(const struct checkpoints_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++) {
        if (strcmp(set->files[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void complete(struct checkpoints *cp, const struct engine *engine, uint64_t head)
{
    struct checkpoints_set *next = &cp->next;
    size_t kept = 0;
    for (size_t i = 0; i < next->count; i++) {
        next->files[i].kept = false;
    }
    row_each_serial(engine->row, keep_table, next);
    for (size_t i = 0; i < next->count; i++) {
        if (next->files[i].kept) {
            next->files[kept++] = next->files[i];
        } else if (!is_named(&cp->last, next->files[i].name)) {
            unlink_file(cp, next->files[i].name);
        }
    }
    next->count = kept;
    next->m = head;
    for (size_t i = 0; i < cp->last.count; i++) {
        if (!is_named(next, cp->last.files[i].name)) {
            unlink_file(cp, cp->last.files[i].name);
        }
    }
    cp->last = *next;
}

bool checkpoints_next(struct checkpoints *cp, struct engine *engine, uint64_t head)
{
    if (row_image_next(engine->row, cp->next.c, head, &cp->image)) {
        return true;
    }
    complete(cp, engine, head);
    return false;
}

enum engine_image checkpoints_write(struct checkpoints *cp, struct engine *engine,
                                    struct barrier_member *member, const _Atomic bool *stop)
{
    char name[CHECKPOINTS_NAME_MAX];
    snprintf(name, sizeof(name), "image-%" PRIu64, ++cp->numbers);
    const struct image_file file = {cp->vfs, cp->directory, name};
    return image_file_write(&file, engine, &cp->image, member, stop, cp->error);
}

void checkpoints_wrote(struct checkpoints *cp, struct engine *engine, enum engine_image result)
{
    if (result != ENGINE_IMAGE_DONE) {
        cp->gone += result == ENGINE_IMAGE_GONE;
        row_image_failed(engine->row, &cp->image);
        row_fold_all(engine->row);
        return;
    }
    cp->images++;
    struct checkpoints_file *file = find(&cp->next, cp->image.serial, cp->image.layer);
    if (!file) {
        CHECK(cp->next.count < CHECKPOINTS_TABLES_MAX);
        file = &cp->next.files[cp->next.count++];
    } else if (!is_named(&cp->last, file->name)) {
        unlink_file(cp, file->name); /* of this checkpoint already */
    }
    file->serial = cp->image.serial;
    file->layer = cp->image.layer;
    snprintf(file->name, sizeof(file->name), "image-%" PRIu64, cp->numbers);
}

/* ---- restoring ---- */

struct load {
    struct engine *engine;
    struct table_file *file;
    struct row_table *table;
    _Atomic uint64_t *done;
    const _Atomic bool *stop;
    bool loaded;
    pthread_t thread;
    char error[ENGINE_ERROR_MAX];
};

static void *load_table(void *context)
{
    struct load *load = context;
    load->loaded = row_restore_load(load->engine->row, load->table, load->file, load->done,
                                    load->stop, load->error);
    return NULL;
}

static bool open_file(struct checkpoints *cp, struct engine *engine, size_t i, struct load *load)
{
    const struct image_file file = {cp->vfs, cp->directory, cp->last.files[i].name};
    load->file = image_file_open(&file, false, cp->error);
    return load->file != NULL &&
           (load->table = row_restore_file(engine->row, load->file, cp->error)) != NULL;
}

/* Tables before layers; then all at once. */
static bool load_all(struct checkpoints *cp, struct engine *engine, struct load *loads)
{
    bool opened = true;
    size_t started = 0;
    for (unsigned layer = 0; layer <= ROW_LAYERS_MAX; layer++) {
        for (size_t i = 0; opened && i < cp->last.count; i++) {
            opened = cp->last.files[i].layer != layer || open_file(cp, engine, i, &loads[i]);
        }
    }
    for (; opened && started < cp->last.count; started++) {
        CHECK(pthread_create(&loads[started].thread, NULL, load_table, &loads[started]) == 0);
    }
    bool loaded = opened;
    for (size_t i = 0; i < started; i++) {
        pthread_join(loads[i].thread, NULL);
        if (!loads[i].loaded) {
            memcpy(cp->error, loads[i].error, sizeof(cp->error));
            loaded = false;
        }
    }
    return loaded;
}

static bool restore_tables(struct checkpoints *cp, struct engine *engine)
{
    static struct load loads[CHECKPOINTS_TABLES_MAX];
    _Atomic uint64_t done = 0;
    _Atomic bool stop = false;
    uint64_t bytes = 0;
    for (size_t i = 0; i < cp->last.count; i++) {
        loads[i] = (struct load){.engine = engine, .done = &done, .stop = &stop};
    }
    bool loaded = load_all(cp, engine, loads);
    for (size_t i = 0; i < cp->last.count; i++) {
        bytes += loads[i].file ? table_file_info(loads[i].file)->file_bytes : 0;
        table_file_close(loads[i].file);
    }
    CHECK(!loaded || done == bytes);
    return loaded && row_restore_complete(engine->row, cp->error);
}

bool checkpoints_restore(struct checkpoints *cp, struct engine *engine, struct recorder *recorder,
                         size_t batch, bool *fresh)
{
    size_t bytes = cp->last.any ? cp->last.state_bytes : 0;
    if (!row_restore_begin(engine->row, cp->last.state, bytes, cp->error) ||
        !restore_tables(cp, engine)) {
        return false;
    }
    if (!recorder_replay(recorder, engine, cp->last.c, cp->last.m, batch)) {
        memcpy(cp->error, recorder->error, sizeof(cp->error));
        return false;
    }
    *fresh = !row_restore_end(engine->row);
    return true;
}
