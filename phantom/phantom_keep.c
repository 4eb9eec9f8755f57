/*
 * phantom_keep.c: what of a space survives a restart: its state, which is taken up again with its
 * tables and changes (row/row_log.h says why that is sound).
 *
 * What is kept for the space, and put as SPACE, in the machine's byte order (offset, size,
 * meaning):
 *      0  4  version: 1
 *      4  4  1: ids are `any`; 2: deletes are on
 *      8  8  max-id, where ids are `any`
 *     16  8  exceptions-memory as configured, 0: the usual part of a table
 *     24  8  secret of the hash that filters use
 *     32  8  secret of the second hash
 * A state is that and the row's part behind it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/barrier.h"
#include "base/check.h"
#include "base/dict.h"
#include "base/memory.h"
#include "phantom/phantom_private.h"
#include "phantom/table_private.h"
#include "row/row_log.h"
#include "store/dict_image.h"
#include "store/table_file.h"

#define VERSION         1
#define FLAG_ANY_IDS    1u
#define FLAG_DELETES    2u
#define FLAGS           (FLAG_ANY_IDS | FLAG_DELETES)
#define LINES_AHEAD_MAX 64 /* asked for before the first change of a batch is replayed */

struct space {
    uint32_t version, flags;
    uint64_t max_id, exceptions_bytes;
    struct phantom_secrets secrets;
};
_Static_assert(sizeof(struct space) == 40, "as the table above");
_Static_assert(sizeof(struct space) + ROW_SPACE_BYTES <= ENGINE_STATE_MAX, "a state fits");
_Static_assert(ROW_ERROR_MAX <= ENGINE_ERROR_MAX, "the row's errors fit");
_Static_assert(TABLE_FILE_ERROR_MAX <= ENGINE_ERROR_MAX, "the files' errors fit");
_Static_assert(PHANTOM_DESCRIPTION_BYTES <= ROW_DESCRIPTION_MAX, "a description fits");

static struct phantom *phantom_of(struct engine *engine)
{
    struct phantom *phantom = (struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    return phantom;
}

static bool refuse(const char *text, char error[ENGINE_ERROR_MAX])
{
    snprintf(error, ENGINE_ERROR_MAX, "%s", text);
    return false;
}

/* ---- the space ---- */

static struct space space_of(const struct phantom *phantom)
{
    const struct phantom_config *config = &phantom->config;
    return (struct space){
        .version = VERSION,
        .flags = (config->any_ids ? FLAG_ANY_IDS : 0) | (config->deletes ? FLAG_DELETES : 0),
        .max_id = config->any_ids ? config->max_id : 0,
        .exceptions_bytes = config->exceptions_bytes,
        .secrets = phantom->secrets,
    };
}

void phantom_log_space(const struct phantom *phantom)
{
    struct space space = space_of(phantom);
    struct change_log *log = phantom->row.log;
    if (log) {
        log->put(log, phantom->engine.space, CHANGE_EVENT_SPACE, &space, sizeof(space));
    }
}

static size_t state(const struct engine *engine, unsigned char bytes[ENGINE_STATE_MAX])
{
    const struct phantom *phantom = (const struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    struct space space = space_of(phantom);
    memcpy(bytes, &space, sizeof(space));
    row_describe(&phantom->row, bytes + sizeof(space));
    return sizeof(space) + ROW_SPACE_BYTES;
}

static void set_log(struct engine *engine, struct change_log *log)
{
    struct phantom *phantom = phantom_of(engine);
    phantom->row.log = log;
    phantom->row.space = engine->space;
}

static void begin(struct engine *engine)
{
    struct phantom *phantom = phantom_of(engine);
    phantom_log_space(phantom);
    row_log_first(&phantom->row);
}

/* ---- tables ---- */

static void each_table(const struct engine *engine, engine_table_visit *visit, void *context)
{
    row_each_serial(&((const struct phantom *)engine)->row, visit, context);
}

/* ---- restoring ---- */

static void take_secrets(void *context, struct row_table *table, bool layer)
{
    (void)layer;
    phantom_table_of(table)->secrets = *(const struct phantom_secrets *)context;
}

/* False, nothing changed: these are no space's, or another kind of space's. */
static bool take_space(struct phantom *phantom, const void *bytes, size_t length,
                       char error[ENGINE_ERROR_MAX])
{
    struct space space;
    if (length != sizeof(space)) {
        return refuse("what was stored of the space is not of a phantom space", error);
    }
    memcpy(&space, bytes, sizeof(space));
    if (space.version != VERSION || (space.flags & ~FLAGS) != 0 ||
        (space.exceptions_bytes != 0 && (space.exceptions_bytes < PHANTOM_EXCEPTIONS_BYTES_MIN ||
                                         space.exceptions_bytes > PHANTOM_TABLE_BYTES_MAX))) {
        return refuse("what was stored of the space is of no version this program knows", error);
    }
    bool any_ids = (space.flags & FLAG_ANY_IDS) != 0;
    if (any_ids != phantom->config.any_ids) {
        return refuse(any_ids ? "it was stored with `ids: any`: keep that, or give the space "
                                "another name"
                              : "it was stored with `ids: growing`: keep that, or give the space "
                                "another name",
                      error);
    }
    phantom->config.deletes = (space.flags & FLAG_DELETES) != 0;
    phantom->config.exceptions_bytes = space.exceptions_bytes;
    phantom_shape_deletes(&phantom->shape, phantom->config.deletes, space.exceptions_bytes);
    phantom->secrets = space.secrets;
    row_each(&phantom->row, take_secrets, &phantom->secrets);
    return true;
}

static bool turn_deletes(const struct phantom *phantom, char error[ENGINE_ERROR_MAX])
{
    const struct phantom_config *config = &phantom->config;
    return phantom_turn_deletes(phantom, config->deletes, config->exceptions_bytes) ||
           refuse("the system refuses the memory for exceptions", error);
}

/* Without a state (length 0) all comes from events. */
static bool restore_begin(struct engine *engine, const void *stored, size_t length,
                          char error[ENGINE_ERROR_MAX])
{
    struct phantom *phantom = phantom_of(engine);
    row_restore_begin(&phantom->row);
    if (length == 0) {
        return true;
    }
    if (length != sizeof(struct space) + ROW_SPACE_BYTES) {
        return refuse("what was stored of the space is not of a phantom space", error);
    }
    return take_space(phantom, stored, sizeof(struct space), error) &&
           row_restore_space(&phantom->row, (const unsigned char *)stored + sizeof(struct space),
                             ROW_SPACE_BYTES, error);
}

static bool restore_table(struct engine *engine, const struct table_file *file, void **table,
                          char error[ENGINE_ERROR_MAX])
{
    struct phantom *phantom = phantom_of(engine);
    const struct table_file_info *info = table_file_info(file);
    if (strcmp(info->kind, engine->functions->kind) != 0) {
        return refuse("it is not a table of a phantom space", error);
    }
    struct row_table *restored =
        row_restore_table(&phantom->row, info->description, info->description_bytes,
                          info->layer != 0, info->start_lsn, error);
    if (restored && restored->serial != info->serial) {
        return refuse("it is described as another table than its header says", error);
    }
    *table = restored;
    return restored != NULL;
}

static bool load(struct engine *engine, void *table, const struct table_file *file,
                 _Atomic uint64_t *done, const _Atomic bool *stop, char error[ENGINE_ERROR_MAX])
{
    (void)phantom_of(engine);
    return phantom_table_load(table, file, done, stop, error);
}

static bool restore_tables(struct engine *engine, char error[ENGINE_ERROR_MAX])
{
    struct phantom *phantom = phantom_of(engine);
    /* One that is older than the state may be from before deletes were turned on. */
    return row_restore_complete(&phantom->row, error) && turn_deletes(phantom, error);
}

/* ---- replay ---- */

static void ask_for_lines(const struct phantom *phantom, const struct engine_replay *changes,
                          size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct row_table *table = row_find(&phantom->row, changes[i].change.id);
        if (LIKELY(table != NULL)) {
            phantom_table_prefetch((const struct phantom_table *)table,
                                   changes[i].change.member[0]);
        }
    }
}

static bool replay_all(struct phantom *phantom, const struct engine_replay *changes, size_t n,
                       char error[ENGINE_ERROR_MAX])
{
    for (size_t i = 0; i < n; i++) {
        uint64_t id = changes[i].change.id;
        if (id > ROW_ID_MAX) {
            return refuse("the journal has a change of an id that cannot be", error);
        }
        struct row_table *table = row_find(&phantom->row, id);
        if (!phantom_table_replay(&phantom->row, phantom_table_of(table), &changes[i], error)) {
            return false;
        }
    }
    return true;
}

static bool replay(struct engine *engine, const struct engine_replay *changes, size_t n,
                   char error[ENGINE_ERROR_MAX])
{
    struct phantom *phantom = phantom_of(engine);
    for (size_t at = 0; at < n; at += LINES_AHEAD_MAX) {
        size_t piece = n - at < LINES_AHEAD_MAX ? n - at : LINES_AHEAD_MAX;
        ask_for_lines(phantom, changes + at, piece);
        if (!replay_all(phantom, changes + at, piece, error)) {
            return false;
        }
    }
    return true;
}

static bool replay_event(struct engine *engine, enum change_event event, uint64_t lsn, bool rows,
                         const void *bytes, size_t length, char error[ENGINE_ERROR_MAX])
{
    struct phantom *phantom = phantom_of(engine);
    if (event == CHANGE_EVENT_SPACE) {
        return take_space(phantom, bytes, length, error) && turn_deletes(phantom, error);
    }
    return !rows || row_replay_event(&phantom->row, event, lsn, bytes, length, error);
}

static bool restore_end(struct engine *engine)
{
    struct phantom *phantom = phantom_of(engine);
    bool restored = row_restore_end(&phantom->row);
    phantom_cold_restored(phantom);
    return restored;
}

const struct engine_keeping phantom_keeping = {
    .state = state,
    .set_log = set_log,
    .begin = begin,
    .images_begin = phantom_images_begin,
    .image_next = phantom_image_next,
    .image_write = phantom_image_write,
    .image_failed = phantom_image_failed,
    .images_failed = phantom_images_failed,
    .restore_begin = restore_begin,
    .restore_table = restore_table,
    .load = load,
    .restore_tables = restore_tables,
    .replay = replay,
    .replay_event = replay_event,
    .restore_end = restore_end,
    .each_table = each_table,
    .set_cold = phantom_set_cold,
    .images_wanted = phantom_images_wanted,
    .image_done = phantom_image_done,
    .restore_dumped = phantom_restore_dumped,
};
