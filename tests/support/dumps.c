/* dumps.c: a counter space whose tables leave memory. */
#include "tests/support/dumps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "counter/counter_private.h"
#include "row/row_data.h"
#include "row/row_fold.h"
#include "row/row_private.h"
#include "store/table_file.h"
#include "tests/support/counters.h"
#include "tests/support/image_file.h"

#define DIRECTORY "/d"
#define THREADS   3u
#define QUEUE     4096u

static void start_cold(struct dumps *d, uint64_t cache_bytes)
{
    struct cold_config config = {
        .vfs = d->vfs, .threads = THREADS, .queue = QUEUE, .cache_bytes = cache_bytes};
    d->cold.cold = cold_create(&config);
    CHECK(d->cold.cold);
}

void dumps_init(struct dumps *d, uint64_t overlay_bytes_max, uint64_t cache_bytes, uint64_t seed)
{
    memset(d, 0, sizeof(*d));
    d->sim = vfs_sim_create(seed);
    d->vfs = vfs_sim_vfs(d->sim);
    CHECK(d->vfs->functions->mkdir(d->vfs, DIRECTORY) == 0);
    recorder_init(&d->recorder);
    woken_init(&d->woken);
    d->random.state = seed;
    d->cold.overlay_bytes_max = overlay_bytes_max;
    start_cold(d, cache_bytes);
}

static void end_engine(struct dumps *d)
{
    if (d->engine) {
        d->engine->functions->destroy(d->engine);
        CHECK(d->cold.overlay_bytes == 0);
    }
    d->engine = NULL;
}

void dumps_fini(struct dumps *d)
{
    end_engine(d);
    cold_destroy(d->cold.cold);
    woken_fini(&d->woken);
    recorder_fini(&d->recorder);
    vfs_sim_destroy(d->sim);
}

void dumps_create(struct dumps *d, const struct counter_config *config)
{
    d->engine = counters_create(config);
    row_set_cold(d->engine->row, &d->cold);
    row_set_log(d->engine->row, &d->recorder.log);
    CHECK(d->recorder.log.reserve(&d->recorder.log));
    row_log_begin(d->engine->row);
}

/* ---- the row ---- */

static struct row *row_of(const struct dumps *d)
{
    return &((struct counter *)d->engine)->row;
}

bool dumps_leave(struct dumps *d, size_t table)
{
    struct row_table *leaves = row_of(d)->tables[table];
    bool may = leaves->settled && leaves->closed && !leaves->cold && !leaves->leaving;
    if (may) {
        if (!leaves->whole && d->engine->row->log != NULL) {
            CHECK(d->recorder.log.reserve(&d->recorder.log));
        }
        row_cold_go_whole(row_of(d), leaves);
        leaves->leaving = true;
        for (struct row_table *layer = leaves->further; layer; layer = layer->further) {
            layer->leaving = !layer->cold;
        }
    }
    return may;
}

size_t dumps_tables(const struct dumps *d)
{
    return row_of(d)->count;
}

size_t dumps_layers(const struct dumps *d)
{
    size_t layers = 0;
    for (size_t i = 0; i < row_of(d)->count; i++) {
        layers += row_of(d)->tables[i]->cold && row_of(d)->tables[i]->further;
    }
    return layers;
}

size_t dumps_cold(const struct dumps *d)
{
    size_t cold = 0;
    for (size_t i = 0; i < row_of(d)->count; i++) {
        cold += row_of(d)->tables[i]->cold;
    }
    return cold;
}

/* ---- a round ---- */

static void stop(struct barrier *barrier)
{
    if (barrier) {
        barrier_stop(barrier);
    }
}

static void go(struct barrier *barrier)
{
    if (barrier) {
        barrier_go(barrier);
    }
}

static struct image_file file_of(const struct dumps *d, const char *name)
{
    return (struct image_file){d->vfs, DIRECTORY, name};
}

static enum engine_image write_image(struct dumps *d, struct dumps_image *image,
                                     struct barrier_member *member)
{
    static const _Atomic bool never = false;
    snprintf(image->name, sizeof(image->name), "file-%" PRIu64, ++d->numbers);
    const struct image_file file = file_of(d, image->name);
    return image_file_write(&file, d->engine, &image->image, member, &never, d->error);
}

/* Of two of one table the later one counts. */
static void supersede(struct dumps *d, const struct dumps_image *by)
{
    for (size_t i = 0; i < d->image_count; i++) {
        struct dumps_image *image = &d->images[i];
        image->superseded =
            image->superseded || (image->image.serial == by->image.serial &&
                                  image_file_layer(&image->image) == image_file_layer(&by->image));
    }
}

static enum row_fold fold_inside(struct dumps *d, struct barrier_member *member)
{
    if (member) {
        barrier_enter(member);
    }
    enum row_fold next = row_fold_step(d->engine->row, false);
    if (member) {
        barrier_leave(member);
    }
    return next;
}

static enum row_fold fold_in_stop(struct dumps *d, struct barrier *barrier)
{
    stop(barrier);
    enum row_fold next = row_fold_step(d->engine->row, true);
    go(barrier);
    row_images_settle(d->engine->row);
    d->stops++;
    return next;
}

static void fold(struct dumps *d, struct barrier *barrier, struct barrier_member *member)
{
    enum row_fold next = ROW_FOLD_COPY;
    row_images_settle(d->engine->row);
    while (next != ROW_FOLD_DONE) {
        next = next == ROW_FOLD_MOVE ? fold_in_stop(d, barrier) : fold_inside(d, member);
        if (d->folds && next != ROW_FOLD_DONE) {
            d->folds(d->context);
        }
    }
}

static void take_images(struct dumps *d, struct barrier *barrier, struct barrier_member *member)
{
    for (;;) {
        CHECK(d->image_count < DUMPS_FILES_MAX);
        struct dumps_image *image = &d->images[d->image_count];
        memset(image, 0, sizeof(*image));
        stop(barrier);
        bool more = row_image_next(d->engine->row, d->next.c, d->recorder.head, &image->image);
        d->next.m = d->recorder.head;
        go(barrier);
        row_images_settle(d->engine->row);
        if (!more) {
            return;
        }
        enum engine_image result = write_image(d, image, member);
        if (result == ENGINE_IMAGE_DONE) {
            d->kinds[image->image.kind]++;
            supersede(d, image);
            d->image_count++;
            continue;
        }
        d->gone += result == ENGINE_IMAGE_GONE;
        d->failed += result == ENGINE_IMAGE_FAILED;
        stop(barrier);
        row_image_failed(d->engine->row, &image->image);
        go(barrier);
        fold(d, barrier, member);
    }
}

static void throw_away(struct dumps *d, struct barrier *barrier, struct barrier_member *member)
{
    stop(barrier);
    for (size_t i = 0; i < d->image_count; i++) {
        row_image_failed(d->engine->row, &d->images[i].image);
    }
    go(barrier);
    fold(d, barrier, member);
    for (size_t i = 0; i < d->image_count; i++) {
        const struct image_file file = file_of(d, d->images[i].name);
        image_file_unlink(&file);
    }
}

static bool is_there(const struct dumps *d, uint64_t serial, unsigned layer)
{
    const struct row *row = row_of(d);
    if (row->apart && row->apart->serial == serial) {
        return true;
    }
    for (size_t i = 0; i < row->count; i++) {
        if (row->tables[i]->serial == serial && row_layer_of(row->tables[i], layer)) {
            return true;
        }
    }
    return false;
}

static void forget_file(struct dumps_set *set, uint64_t serial, unsigned layer)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (set->files[i].serial != serial || set->files[i].layer != layer) {
            set->files[kept++] = set->files[i];
        }
    }
    set->count = kept;
}

static void name_image(struct dumps *d, const struct dumps_image *image)
{
    const struct row_image *of = &image->image;
    struct dumps_set *set = &d->next;
    forget_file(set, of->serial, image_file_layer(of));
    /* An overlay's image that a merge has overtaken may be named on: it is not to be believed. */
    bool keeps = of->kind == ROW_IMAGE_OVERLAY ||
                 (of->kind == ROW_IMAGE_MERGE && test_random_below(&d->random, 2) == 0);
    if (!keeps) {
        forget_file(set, of->serial, row_file_number(of->layer, true));
    }
    CHECK(set->count < DUMPS_FILES_MAX);
    struct dumps_file *file = &set->files[set->count++];
    file->serial = of->serial;
    file->layer = image_file_layer(of);
    file->dump = of->kind == ROW_IMAGE_DUMP || of->kind == ROW_IMAGE_MERGE;
    memcpy(file->name, image->name, sizeof(file->name));
}

static void publish(struct dumps *d)
{
    struct dumps_set *set = &d->next;
    for (size_t i = 0; i < d->image_count; i++) {
        if (!d->images[i].superseded) {
            name_image(d, &d->images[i]);
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (is_there(d, set->files[i].serial, row_file_layer(set->files[i].layer))) {
            set->files[kept++] = set->files[i];
        }
    }
    set->count = kept;
    d->last = *set;
}

static struct table_file *open_file(struct dumps *d, const char *name, bool direct)
{
    const struct image_file named = file_of(d, name);
    struct table_file *file = image_file_open(&named, direct, d->error);
    CHECK(file);
    return file;
}

static void tell_done(struct dumps *d, struct dumps_image *image, struct barrier *barrier)
{
    enum row_image_kind kind = image->image.kind;
    bool opens = kind == ROW_IMAGE_DUMP || kind == ROW_IMAGE_MERGE;
    struct table_file *file = opens ? open_file(d, image->name, true) : NULL;
    stop(barrier);
    struct table_file *old = row_image_done(d->engine->row, &image->image, file);
    go(barrier);
    row_images_settle(d->engine->row);
    if (old) {
        cold_forget(d->cold.cold, old);
        table_file_close(old);
    }
}

void dumps_round(struct dumps *d, struct barrier *barrier, struct barrier_member *member,
                 bool fails)
{
    stop(barrier);
    d->next = d->last;
    d->next.c = d->recorder.head;
    row_images_begin(d->engine->row);
    d->next.state_bytes = row_state_write(d->engine->row, d->next.state);
    go(barrier);
    fold(d, barrier, member);
    d->image_count = 0;
    take_images(d, barrier, member);
    if (fails) {
        throw_away(d, barrier, member);
        return;
    }
    stop(barrier);
    publish(d);
    go(barrier);
    for (size_t i = 0; i < d->image_count; i++) {
        if (!d->images[i].superseded) {
            tell_done(d, &d->images[i], barrier);
        }
    }
}

/* ---- restarting ---- */

/* False: refused. */
static bool restore_file(struct dumps *d, const struct dumps_file *named)
{
    struct table_file *file = open_file(d, named->name, named->dump);
    if (named->dump) {
        struct table_file *overlay = NULL;
        for (size_t i = 0; i < d->last.count; i++) {
            const struct dumps_file *other = &d->last.files[i];
            if (other->serial == named->serial && other->layer == named->layer + ROW_FILE_OVERLAY) {
                overlay = open_file(d, other->name, false);
            }
        }
        bool restored = row_restore_dumped(d->engine->row, file, overlay, d->error);
        table_file_close(overlay);
        if (!restored) {
            table_file_close(file);
        }
        return restored;
    }
    struct row_table *table;
    _Atomic uint64_t done = 0;
    _Atomic bool never = false;
    CHECK((table = row_restore_file(d->engine->row, file, d->error)) != NULL);
    CHECK(row_restore_load(d->engine->row, table, file, &done, &never, d->error));
    table_file_close(file);
    return true;
}

bool dumps_restore(struct dumps *d, const struct counter_config *config)
{
    end_engine(d);
    d->engine = counters_create(config);
    row_set_cold(d->engine->row, &d->cold);
    CHECK(row_restore_begin(d->engine->row, d->last.state, d->last.state_bytes, d->error));
    for (unsigned layer = 0; layer <= ROW_LAYERS_MAX; layer++) {
        for (size_t i = 0; i < d->last.count; i++) {
            if (d->last.files[i].layer == row_file_number(layer, false) &&
                !restore_file(d, &d->last.files[i])) {
                return false;
            }
        }
    }
    return row_restore_complete(d->engine->row, d->error);
}

void dumps_restart(struct dumps *d, const struct counter_config *config)
{
    bool restored = dumps_restore(d, config);
    CHECK(restored);
    bool replayed = recorder_replay(&d->recorder, d->engine, d->last.c, d->last.m, 100);
    if (!replayed) {
        printf("%s\n", d->recorder.error);
    }
    CHECK(replayed);
    row_set_log(d->engine->row, &d->recorder.log);
    CHECK(d->recorder.log.reserve(&d->recorder.log));
    CHECK(row_restore_end(d->engine->row));
    counters_reconfigure(d->engine, config);
    counter_check(d->engine);
}

/* ---- operations ---- */

void dumps_run(struct dumps *d, struct engine_op *op, struct change_sink *sink)
{
    op->value_length = 0;
    d->engine->functions->prepare(d->engine, &op, 1);
    if (op->verb == ENGINE_READ || op->verb == ENGINE_TOUCH) {
        d->engine->functions->read(d->engine, &op, 1);
    } else {
        d->engine->functions->change(d->engine, op, sink);
    }
    if (op->status == ENGINE_PENDING && op->error == ENGINE_E_BUSY && !d->waits) {
        op->status = ENGINE_ERROR; /* as when a merge takes too long */
    }
    if (op->status != ENGINE_PENDING) {
        struct ticket ticket = {op->ticket.wake, op->ticket.target, op->ticket.serial};
        cold_release(d->cold.cold, &ticket);
    }
}
