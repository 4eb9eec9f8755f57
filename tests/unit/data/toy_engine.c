#include "toy_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/barrier.h"
#include "base/check.h"
#include "base/memory.h"
#include "row/row_fold.h"
#include "row/row_follow.h"
#include "store/table_file.h"
#include "tests/support/give_way.h"

#define TOY_MAGIC   0x746f79u
#define TOY_OPEN    (2 * TOY_TABLES_KEPT)
#define TABLE_PAGES (TOY_RANGE * sizeof(uint64_t) / TABLE_FILE_PAGE_BYTES)

struct table {
    uint64_t serial, base, start_lsn;
    bool touched, changed;
    bool wanted;             /* to be dumped, or merged: an image of that kind is to begin */
    bool going;              /* it has begun: so will those after it, until one is handed over */
    struct table_file *file; /* dumped: values are what is in it and its overlay */
    uint64_t values[TOY_RANGE];
};

struct toy {
    struct engine engine;
    struct change_log *log;
    uint64_t serials;
    size_t count;
    struct table *tables[TOY_OPEN];
    toy_image_fn *begun;
    void *context;
    bool load_for_ever;
    _Atomic bool image_for_ever;
    bool restored;
    uint64_t replayed, reconfigured;
    uint64_t replayed_lsn; /* of the last record given: changes and events come in their order */
    _Atomic uint64_t images, maintained, failed_rounds;
};

/* A table as an event or description says it. */
struct about {
    uint64_t serial, base;
};

static struct toy *toy_of(const struct engine *engine)
{
    return (struct toy *)engine;
}

/* What the engine calls its row is the toy. */
static struct toy *toy_in(const struct row *row)
{
    return (struct toy *)(void *)row;
}

/* ---- tables ---- */

static struct table *table_of(const struct toy *toy, uint64_t id)
{
    for (size_t i = 0; i < toy->count; i++) {
        if (toy->tables[i]->base == id - id % TOY_RANGE) {
            return toy->tables[i];
        }
    }
    return NULL;
}

static struct table *by_serial(const struct toy *toy, uint64_t serial)
{
    for (size_t i = 0; i < toy->count; i++) {
        if (toy->tables[i]->serial == serial) {
            return toy->tables[i];
        }
    }
    return NULL;
}

static struct table *add(struct toy *toy, struct about about)
{
    struct table *table = memory_zalloc(sizeof(*table));

    CHECK(toy->count < TOY_OPEN);
    table->serial = about.serial;
    table->base = about.base;
    table->touched = true;
    toy->tables[toy->count++] = table;
    toy->serials = about.serial >= toy->serials ? about.serial + 1 : toy->serials;
    return table;
}

static void drop(struct toy *toy, struct table *table)
{
    size_t i = 0;

    while (toy->tables[i] != table) {
        i++;
    }
    toy->tables[i] = toy->tables[--toy->count];
    table_file_close(table->file);
    free(table);
}

static void drop_all(struct toy *toy)
{
    while (toy->count > 0) {
        drop(toy, toy->tables[0]);
    }
}

static struct table *lowest(const struct toy *toy)
{
    struct table *low = toy->tables[0];

    for (size_t i = 1; i < toy->count; i++) {
        low = toy->tables[i]->base < low->base ? toy->tables[i] : low;
    }
    return low;
}

static void put(struct toy *toy, enum change_event event, const struct table *table)
{
    const struct about about = {table->serial, table->base};

    if (toy->log != NULL) {
        toy->log->put(toy->log, toy->engine.space, event, &about, sizeof(about));
    }
}

static bool open_table(struct toy *toy, uint64_t id)
{
    if (toy->log != NULL && !toy->log->reserve(toy->log)) {
        return false;
    }
    put(toy, CHANGE_EVENT_OPEN, add(toy, (struct about){toy->serials, id - id % TOY_RANGE}));
    if (toy->count > TOY_TABLES_KEPT) {
        put(toy, CHANGE_EVENT_DROP, lowest(toy));
        drop(toy, lowest(toy));
    }
    return true;
}

/* ---- what tests do ---- */

uint64_t toy_get(const struct engine *engine, uint64_t id)
{
    const struct table *table = table_of(toy_of(engine), id);

    return table != NULL ? table->values[id % TOY_RANGE] : 0;
}

bool toy_set(struct engine *engine, struct change_sink *sink, uint64_t id, uint64_t value)
{
    struct toy *toy = toy_of(engine);
    struct change change = {
        .type = CHANGE_SLOTS, .space = engine->space, .id = id, .named = 1, .set = 1};

    change.values[0] = value;
    if (sink != NULL && !sink->functions->reserve(sink)) {
        return false;
    }
    if (table_of(toy, id) == NULL && !open_table(toy, id)) {
        return false;
    }
    struct table *table = table_of(toy, id);

    table->values[id % TOY_RANGE] = value;
    table->changed = true;
    if (sink != NULL) {
        sink->functions->put(sink, &change);
    }
    return true;
}

void toy_touch(struct engine *engine, uint64_t id)
{
    table_of(toy_of(engine), id)->touched = true;
}

static void want(struct engine *engine, uint64_t id)
{
    table_of(toy_of(engine), id)->wanted = true;
    engine->imager.notify(engine->imager.context);
}

void toy_leave(struct engine *engine, uint64_t id)
{
    CHECK(!toy_dumped(engine, id));
    want(engine, id);
}

void toy_merge(struct engine *engine, uint64_t id)
{
    CHECK(toy_dumped(engine, id));
    want(engine, id);
}

bool toy_dumped(const struct engine *engine, uint64_t id)
{
    return toy_file(engine, id) != NULL;
}

const struct table_file *toy_file(const struct engine *engine, uint64_t id)
{
    return table_of(toy_of(engine), id)->file;
}

void toy_on_image(struct engine *engine, toy_image_fn *begun, void *context)
{
    toy_of(engine)->begun = begun;
    toy_of(engine)->context = context;
}

void toy_load_for_ever(struct engine *engine)
{
    toy_of(engine)->load_for_ever = true;
}

void toy_image_for_ever(struct engine *engine, bool on)
{
    toy_of(engine)->image_for_ever = on;
}

uint64_t toy_maintained(const struct engine *engine)
{
    return toy_of(engine)->maintained;
}

uint64_t toy_failed_rounds(const struct engine *engine)
{
    return toy_of(engine)->failed_rounds;
}

uint64_t toy_images(const struct engine *engine)
{
    return toy_of(engine)->images;
}

uint64_t toy_replayed(const struct engine *engine)
{
    return toy_of(engine)->replayed;
}

uint64_t toy_reconfigured(const struct engine *engine)
{
    return toy_of(engine)->reconfigured;
}

/* ---- in place of src/row: storing ---- */

size_t row_state_write(const struct row *row, unsigned char bytes[ENGINE_STATE_MAX])
{
    memcpy(bytes, &toy_in(row)->serials, sizeof(uint64_t));
    return sizeof(uint64_t);
}

void row_set_log(struct row *row, struct change_log *log)
{
    toy_in(row)->log = log;
}

void row_log_space(struct row *row)
{
    struct toy *toy = toy_in(row);
    const uint64_t magic = TOY_MAGIC;

    toy->log->put(toy->log, toy->engine.space, CHANGE_EVENT_SPACE, &magic, sizeof(magic));
}

void row_log_begin(struct row *row)
{
    struct toy *toy = toy_in(row);

    drop_all(toy);
    row_log_space(row);
    put(toy, CHANGE_EVENT_FIRST, add(toy, (struct about){toy->serials, 0}));
}

static enum row_image_kind kind_of(const struct table *table)
{
    if (table->wanted || table->going) {
        return table->file == NULL ? ROW_IMAGE_DUMP : ROW_IMAGE_MERGE;
    }
    return table->file == NULL ? ROW_IMAGE_TABLE : ROW_IMAGE_OVERLAY;
}

void row_images_begin(struct row *row)
{
    (void)row;
}

void row_set_cold(struct row *row, struct engine_cold *cold)
{
    (void)row, (void)cold; /* its overlays are in the tables */
}

bool row_image_next(struct row *row, uint64_t since, uint64_t now, struct row_image *image)
{
    struct toy *toy = toy_in(row);

    for (size_t i = 0; i < toy->count; i++) {
        struct table *table = toy->tables[i];
        const struct about about = {table->serial, table->base};

        if (!table->wanted && !table->touched && !(table->changed && table->start_lsn < since)) {
            continue;
        }
        enum row_image_kind kind = kind_of(table);

        table->going = table->going || table->wanted;
        table->touched = table->changed = table->wanted = false;
        table->start_lsn = now;
        *image = (struct row_image){.kind = kind,
                                    .serial = table->serial,
                                    .base = table->base,
                                    .last = table->base + TOY_RANGE - 1,
                                    .start_lsn = now,
                                    .table_bytes = sizeof(about),
                                    .sections = 0};
        memcpy(image->table, &about, sizeof(about));
        return true;
    }
    return false;
}

enum engine_image row_image_write(const struct row *row, const struct row_image *image,
                                  struct barrier_member *member, struct table_file_writer *writer,
                                  const _Atomic bool *stop)
{
    struct toy *toy = toy_in(row);
    uint64_t values[TOY_RANGE];

    toy->images++;
    if (toy->begun != NULL) {
        toy->begun(toy->context, &toy->engine, image->serial);
    }
    while (toy->image_for_ever && !*stop) {
        give_way();
    }
    if (*stop) {
        return ENGINE_IMAGE_STOPPED;
    }
    if (member != NULL) {
        barrier_enter(member);
    }
    const struct table *table = by_serial(toy, image->serial);
    bool gone = table == NULL || table->touched;
    if (!gone) {
        memcpy(values, table->values, sizeof(values));
    }
    if (member != NULL) {
        barrier_leave(member);
    }
    if (gone) {
        return ENGINE_IMAGE_GONE;
    }
    bool bad = image->kind == ROW_IMAGE_MERGE && values[0] == TOY_BAD;
    return !bad && table_file_append_pages(writer, values, TABLE_PAGES) ? ENGINE_IMAGE_DONE
                                                                        : ENGINE_IMAGE_FAILED;
}

void row_image_failed(struct row *row, const struct row_image *image)
{
    struct table *table = by_serial(toy_in(row), image->serial);

    if (table != NULL && table->start_lsn == image->start_lsn) {
        table->touched = true;
        table->wanted = table->wanted || (table->going && image->kind != ROW_IMAGE_MERGE);
        table->going = false;
    }
}

void row_images_settle(struct row *row)
{
    (void)row;
}

enum row_fold row_fold_step(struct row *row, bool stopped)
{
    (void)row, (void)stopped;
    return ROW_FOLD_DONE;
}

void row_images_failed(struct row *row)
{
    toy_in(row)->failed_rounds++;
}

bool row_images_wanted(const struct row *row)
{
    for (size_t i = 0; i < toy_in(row)->count; i++) {
        if (toy_in(row)->tables[i]->wanted) {
            return true;
        }
    }
    return false;
}

struct table_file *row_image_done(struct row *row, const struct row_image *image,
                                  struct table_file *file)
{
    struct table *table = by_serial(toy_in(row), image->serial);

    CHECK(table != NULL && !table->touched && table->going && file != NULL &&
          (image->kind == ROW_IMAGE_MERGE) == (table->file != NULL));
    struct table_file *before = table->file;

    table->file = file;
    table->going = false;
    return before;
}

void row_each_serial(const struct row *row, engine_table_visit *visit, void *context)
{
    for (size_t i = 0; i < toy_in(row)->count; i++) {
        visit(context, toy_in(row)->tables[i]->serial, 0);
    }
}

/* ---- restoring ---- */

static bool fail(char error[ROW_ERROR_MAX], const char *why)
{
    snprintf(error, ROW_ERROR_MAX, "%s", why);
    return false;
}

bool row_restore_begin(struct row *row, const void *state, size_t length,
                       char error[ENGINE_ERROR_MAX])
{
    struct toy *toy = toy_in(row);

    drop_all(toy);
    if (length != 0 && length != sizeof(toy->serials)) {
        return fail(error, "no toy");
    }
    memcpy(&toy->serials, length > 0 ? state : &toy->serials, sizeof(toy->serials));
    return true;
}

struct row_table *row_restore_file(struct row *row, const struct table_file *file,
                                   char error[ENGINE_ERROR_MAX])
{
    const struct table_file_info *info = table_file_info(file);
    struct about about;

    if (info->description_bytes != sizeof(about)) {
        fail(error, "no table of a toy");
        return NULL;
    }
    memcpy(&about, info->description, sizeof(about));
    struct table *made = add(toy_in(row), about);

    made->touched = false;
    made->start_lsn = info->start_lsn;
    return (struct row_table *)made;
}

bool row_restore_load(struct row *row, struct row_table *table, const struct table_file *file,
                      _Atomic uint64_t *done, const _Atomic bool *stop,
                      char error[ENGINE_ERROR_MAX])
{
    struct table *into = (struct table *)table;
    void *pages = aligned_alloc(TABLE_FILE_PAGE_BYTES, TABLE_PAGES * TABLE_FILE_PAGE_BYTES);

    CHECK(pages != NULL);
    while (toy_in(row)->load_for_ever && !*stop) {
        give_way();
    }
    bool loaded = !*stop;

    if (loaded) {
        loaded = table_file_load_pages(file, 0, TABLE_PAGES, pages, NULL, NULL, error) ==
                 TABLE_FILE_DONE;
        memcpy(into->values, pages, sizeof(into->values));
        *done += sizeof(into->values);
    }
    free(pages);
    return loaded;
}

bool row_restore_dumped(struct row *row, struct table_file *file, const struct table_file *overlay,
                        char error[ENGINE_ERROR_MAX])
{
    static const _Atomic bool never = false;
    const struct table_file *last = overlay != NULL ? overlay : file;
    _Atomic uint64_t done = 0;
    struct row_table *table = row_restore_file(row, last, error);

    if (table == NULL || !row_restore_load(row, table, last, &done, &never, error)) {
        return false;
    }
    ((struct table *)table)->file = file;
    return true;
}

bool row_restore_complete(struct row *row, char error[ROW_ERROR_MAX])
{
    return toy_in(row)->count > 0 || fail(error, "no tables");
}

bool row_replay(struct row *row, const struct engine_replay *changes, size_t n,
                char error[ENGINE_ERROR_MAX])
{
    struct toy *toy = toy_in(row);

    for (size_t i = 0; i < n; i++) {
        struct table *table = table_of(toy, changes[i].change.id);

        toy->replayed++;
        CHECK(changes[i].lsn >= toy->replayed_lsn);
        toy->replayed_lsn = changes[i].lsn;
        if (changes[i].change.type != CHANGE_SLOTS) {
            return fail(error, "not a toy's change");
        }
        if (table != NULL && table->start_lsn <= changes[i].lsn) {
            table->values[changes[i].change.id % TOY_RANGE] = changes[i].change.values[0];
            table->changed = true;
        }
    }
    return true;
}

bool row_replay_event(struct row *row, enum change_event event, uint64_t lsn, bool rows,
                      const void *bytes, size_t length, char error[ENGINE_ERROR_MAX])
{
    struct toy *toy = toy_in(row);
    struct about about = {0, 0};

    CHECK(lsn >= toy->replayed_lsn);
    toy->replayed_lsn = lsn;
    memcpy(&about, bytes, length < sizeof(about) ? length : sizeof(about));
    if (event == CHANGE_EVENT_SPACE) {
        return about.serial == TOY_MAGIC || fail(error, "no toy's space");
    }
    if (!rows) {
        return true;
    }
    if (event == CHANGE_EVENT_DROP) {
        struct table *table = by_serial(toy, about.serial);

        CHECK(table != NULL);
        drop(toy, table);
        return true;
    }
    if (event == CHANGE_EVENT_FIRST) {
        drop_all(toy);
    }
    CHECK(by_serial(toy, about.serial) == NULL);
    add(toy, about)->start_lsn = lsn;
    return true;
}

/* It has no memory that another table could need. */
void row_follow_begin(struct row *row)
{
    (void)row; /* a toy is no row: there is no such field */
}

bool row_follow_ready(struct row *row, enum change_event event, const void *bytes, size_t length,
                      bool dumps)
{
    (void)dumps;
    (void)bytes;
    (void)length;
    (void)row;
    (void)event;
    return true;
}

bool row_follow_dumped(const struct row *row)
{
    (void)row;
    return false; /* no change of a toy needs its file */
}

bool row_follow_reads(struct row *row, const struct engine_replay *replay,
                      const struct ticket *ticket)
{
    (void)row;
    (void)replay;
    (void)ticket;
    return false;
}

enum row_replayed row_follow_replay(struct row *row, const struct engine_replay *replay,
                                    const struct ticket *ticket, char error[ENGINE_ERROR_MAX])
{
    (void)ticket;
    return row_replay(row, replay, 1, error) ? ROW_REPLAYED : ROW_REPLAY_FAILED;
}

uint64_t row_stored_bytes(const void *state, size_t length)
{
    (void)state;
    (void)length;
    return 0;
}

uint64_t row_held_bytes(const struct row *row)
{
    (void)row;
    return 0;
}

void row_parts_share(struct row *row, struct engine_growth *growth)
{
    (void)row;
    (void)growth;
}

void row_follow_see(struct row *row)
{
    (void)row;
}

bool row_restore_end(struct row *row)
{
    struct toy *toy = toy_in(row);

    CHECK(toy->log != NULL);
    return toy->count > 0;
}

/* ---- the engine ---- */

void row_maintain(struct row *row, struct barrier *barrier)
{
    struct toy *toy = toy_in(row);

    if (barrier != NULL) {
        barrier_stop(barrier);
    }
    for (size_t i = 0; i < toy->count; i++) {
        toy->tables[i]->touched = true;
    }
    if (barrier != NULL) {
        barrier_go(barrier);
    }
    toy->maintained++;
}

static void toy_destroy(struct engine *engine)
{
    drop_all(toy_of(engine));
    free(engine);
}

static const struct engine_functions functions[] = {
    [SPACE_COUNTER] = {.kind = "counter", .destroy = toy_destroy},
    [SPACE_PHANTOM] = {.kind = "phantom", .destroy = toy_destroy},
};

struct engine *toy_create(const struct space_settings *settings, uint32_t number,
                          char error[SPACES_ERROR_MAX])
{
    struct toy *toy = memory_zalloc(sizeof(*toy));

    (void)error;
    toy->engine.functions = &functions[settings->kind];
    toy->engine.space = number;
    toy->engine.row = (struct row *)(void *)toy;
    add(toy, (struct about){0, 0});
    return &toy->engine;
}

/* ---- instead of space/spaces_engine.c ---- */

struct engine *space_engine_create(const struct space_settings *settings, uint32_t number,
                                   char error[SPACES_ERROR_MAX])
{
    return toy_create(settings, number, error);
}

bool space_reconfigure(struct space *space, const struct space_settings *next,
                       char error[SPACES_ERROR_MAX])
{
    (void)next;
    (void)error;
    CHECK(toy_of(space->engine)->log != NULL);
    toy_of(space->engine)->reconfigured++;
    return true;
}

bool space_undo(struct space *space, const struct space_settings *before,
                char error[SPACES_ERROR_MAX])
{
    return space_reconfigure(space, before, error);
}

size_t space_losses(const struct space *space, const struct space_settings *next,
                    struct engine_loss losses[ENGINE_LOSSES_MAX])
{
    (void)space;
    (void)next;
    (void)losses;
    return 0;
}

void space_describe(const struct space_settings *settings, char *text, size_t size)
{
    snprintf(text, size, "%s: a toy", settings->name);
}
