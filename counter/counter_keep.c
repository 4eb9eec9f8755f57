/*
 * counter_keep.c: the engine keeps itself and comes back (struct engine_keeping).
 *
 * The state of a space, which is also the SPACE event but for the row's part:
 *
 *     size  meaning
 *     8     STATE_MAGIC and, in the low byte, the version of this format
 *     1     1: ids: any
 *     8     max-id, 0 if ids grow
 *     8     numbers of slots given so far
 *           slots, in the configuration's order: how many; of each bits, number (2), length of
 *           name, name
 *           slots that are not named any more and not forgotten, likewise
 *           what row_describe gives
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "counter/counter_private.h"
#include "counter/encode.h"
#include "row/row_log.h"
#include "store/table_file.h"

#define STATE_MAGIC     0x6563617073746300u /* "ctspace" and the version */
#define STATE_VERSION   2u
#define SPACE_BYTES_MAX (25 + 2 * ENCODE_SLOTS_BYTES_MAX)
#define REPLAY_BATCH    64u /* changes prefetched together */

_Static_assert(SPACE_BYTES_MAX <= CHANGE_EVENT_BYTES_MAX, "an event has room for it");
_Static_assert(SPACE_BYTES_MAX + ROW_SPACE_BYTES <= ENGINE_STATE_MAX, "a state has room for it");

static struct counter *counter_of(const struct engine *engine)
{
    struct counter *counter = (struct counter *)engine;
    CHECK(counter->magic == COUNTER_MAGIC);
    return counter;
}

/* ---- the space ---- */

/* Returns its bytes: at most SPACE_BYTES_MAX. */
static size_t encode_space(const struct counter *counter, unsigned char *bytes)
{
    const struct counter_config *config = &counter->config;
    struct encoder to = encode_to(bytes, SPACE_BYTES_MAX);
    encode_u64(&to, STATE_MAGIC | STATE_VERSION);
    encode_u8(&to, config->any_ids);
    encode_u64(&to, config->any_ids ? config->max_id : 0);
    encode_u64(&to, counter->slot_numbers);
    encode_slots(&to, config->slots, config->slot_count);
    encode_slots(&to, counter->left.at, counter->left.count);
    return (size_t)(to.at - bytes);
}

static bool refuse(char *error, const char *what)
{
    snprintf(error, ENGINE_ERROR_MAX, "%s", what);
    return false;
}

static const char *ids_name(bool any_ids)
{
    return any_ids ? "any" : "growing";
}

/* What cannot change while the ids are there. */
static bool same_ids(const struct counter_config *config, bool any_ids, uint64_t max_id,
                     char *error)
{
    if (any_ids != config->any_ids) {
        snprintf(error, ENGINE_ERROR_MAX,
                 "the directory holds this space with ids: %s, the configuration says ids: %s",
                 ids_name(any_ids), ids_name(config->any_ids));
        return false;
    }
    if (any_ids && max_id != config->max_id) {
        snprintf(error, ENGINE_ERROR_MAX,
                 "the directory holds this space with max-id %" PRIu64
                 ", the configuration says max-id %" PRIu64,
                 max_id, config->max_id);
        return false;
    }
    return true;
}

/* Takes the slots, for the engine itself; what follows stays with `from`. */
static bool decode_space(struct counter *counter, struct decoder *from, char *error)
{
    struct counter_config is = counter->config;
    if (decode_u64(from) != (STATE_MAGIC | STATE_VERSION)) {
        return refuse(error, "the state of the space is not one of this version");
    }
    bool any_ids = decode_u8(from) != 0;
    uint64_t max_id = decode_u64(from);
    uint64_t numbers = decode_u64(from);
    decode_slots(from, &is);
    struct counter_slots left = {.count = decode_u8(from)};
    from->bad = from->bad || left.count > ENGINE_SLOTS_MAX;
    for (size_t i = 0; i < left.count && !from->bad; i++) {
        decode_slot(from, &left.at[i]);
    }
    if (from->bad || numbers > COUNTER_SLOT_NUMBER_MAX) {
        return refuse(error, "the state of the space is damaged");
    }
    if (!same_ids(&counter->config, any_ids, max_id, error)) {
        return false;
    }
    counter->slot_numbers = (unsigned)numbers;
    counter->left = left;
    counter_take_slots(counter, &is);
    return true;
}

static size_t state(const struct engine *engine, unsigned char bytes[ENGINE_STATE_MAX])
{
    const struct counter *counter = counter_of(engine);
    size_t length = encode_space(counter, bytes);
    row_describe(&counter->row, bytes + length);
    return length + ROW_SPACE_BYTES;
}

void counter_log_space(const struct counter *counter)
{
    struct change_log *log = counter->row.log;
    if (log) {
        unsigned char bytes[SPACE_BYTES_MAX];
        size_t length = encode_space(counter, bytes);
        log->put(log, counter->engine.space, CHANGE_EVENT_SPACE, bytes, length);
    }
}

static void set_log(struct engine *engine, struct change_log *log)
{
    struct counter *counter = counter_of(engine);
    counter->row.log = log;
    counter->row.space = engine->space;
}

static void begin(struct engine *engine)
{
    struct counter *counter = counter_of(engine);
    counter_log_space(counter);
    row_log_first(&counter->row);
}

/* ---- images ---- */

static void images_begin(struct engine *engine)
{
    row_images_begin(&counter_of(engine)->row);
}

static bool image_next(struct engine *engine, uint64_t since, uint64_t now, struct row_image *image)
{
    struct counter *counter = counter_of(engine);
    bool merges = counter_merge_next(counter, now, image);
    if (!merges && !row_image_next(&counter->row, since, now, image)) {
        return false;
    }
    struct row_table *table = row_image_table(&counter->row, image);
    CHECK(table);
    if (!merges) {
        counter_image_began(counter, table, image);
    }
    image->sections = COUNTER_TABLE_SECTIONS;
    image->section_value_bytes[COUNTER_TABLE_EXTEND] =
        counter_table_shape(counter_table_of(table))->payload_bytes;
    image->section_value_bytes[COUNTER_TABLE_AUX] = sizeof(uint64_t);
    return true;
}

/* ---- recovery ---- */

static bool restore_begin(struct engine *engine, const void *bytes, size_t length,
                          char error[ENGINE_ERROR_MAX])
{
    struct counter *counter = counter_of(engine);
    char why[ROW_ERROR_MAX];
    CHECK(!counter->row.log);
    row_restore_begin(&counter->row);
    if (length == 0) {
        return true; /* SPACE will say */
    }
    struct decoder from = decode_from(bytes, length);
    if (!decode_space(counter, &from, error)) {
        return false;
    }
    return row_restore_space(&counter->row, from.at, (size_t)(from.end - from.at), why) ||
           refuse(error, why);
}

static bool restore_table(struct engine *engine, const struct table_file *file, void **table,
                          char error[ENGINE_ERROR_MAX])
{
    struct counter *counter = counter_of(engine);
    const struct table_file_info *info = table_file_info(file);
    char why[ROW_ERROR_MAX];
    *table = row_restore_table(&counter->row, info->description, info->description_bytes,
                               info->layer != 0, info->start_lsn, why);
    if (!*table) {
        snprintf(error, ENGINE_ERROR_MAX, "%.*s: %s", ENGINE_ERROR_MAX - ROW_ERROR_MAX - 4,
                 table_file_path(file), why);
    }
    return *table != NULL;
}

static bool load(struct engine *engine, void *table, const struct table_file *file,
                 _Atomic uint64_t *done, const _Atomic bool *stop, char error[ENGINE_ERROR_MAX])
{
    (void)engine;
    return counter_table_load(counter_table_of(table), file, done, stop, error);
}

static bool restore_tables(struct engine *engine, char error[ENGINE_ERROR_MAX])
{
    char why[ROW_ERROR_MAX];
    return row_restore_complete(&counter_of(engine)->row, why) || refuse(error, why);
}

static void take_part(void *context, struct row_table *table, bool layer)
{
    struct counter *counter = context;
    struct counter_table *this = counter_table_of(table);
    (void)layer;
    if (counter_table_is_previewed(this)) {
        counter_table_set_view(this, &counter->config);
    }
    counter_table_restored(this);
    if (table->cold) {
        counter_cold_changed(counter, this);
    }
}

static bool restore_end(struct engine *engine)
{
    struct counter *counter = counter_of(engine);
    row_each(&counter->row, take_part, counter);
    return row_restore_end(&counter->row);
}

/* ---- replay ---- */

/* A change, and where it belongs. */
struct target {
    struct row_table *table; /* NULL: it is left out */
    struct counter_locus locus;
};

/* What an image has learned of slots is not told by those before it (counter_table_preview). */
static struct counter_table *taking_part(const struct counter *counter, struct row_table *table)
{
    struct counter_table *this = counter_table_of(table);
    if (UNLIKELY(counter_table_is_previewed(this))) {
        counter_table_set_view(this, &counter->config);
    }
    return this;
}

static bool change_valid(const struct counter *counter, const struct change *change)
{
    bool slots = change->type == CHANGE_SLOTS && (change->named & ~counter->names.all) == 0 &&
                 (change->set & ~change->named) == 0 && change->place <= CHANGE_THERE_APART;
    bool deletes = change->type == CHANGE_DELETE && change->place <= CHANGE_APART;
    return change->id <= ROW_ID_MAX && (slots || deletes);
}

/* A dumped table is counted by what changes say: each once, those below its own S not. */
static bool is_counted(const struct row_table *holder, const struct engine_replay *replay)
{
    return holder->cold && replay->lsn >= holder->start_lsn;
}

/*
 * Off that of which it was, wherever what is left of it was found: an image may show what was
 * deleted while it was written. (None is left to count: a journal that does not say which it was.)
 */
static void count_deleted(struct row_table *table, const struct engine_replay *replay)
{
    bool layer = replay->change.place == CHANGE_INSIDE;
    struct row_table *holder = layer ? table->further : table;
    if (holder && is_counted(holder, replay) && atomic_load(&holder->count) > 0) {
        row_removed(table, holder, replay->change.id);
    }
}

static enum counter_replayed replay_on(struct row_table *holder, const struct counter_locus *locus,
                                       const struct engine_replay *replay, bool *created)
{
    struct counter_table *table = counter_table_of(holder);
    if (LIKELY(!holder->cold)) {
        return counter_table_replay(table, locus, &replay->change, created);
    }
    enum counter_replayed replayed =
        counter_table_replay_cold(table, locus, &replay->change, created);
    *created = *created && is_counted(holder, replay);
    return replayed;
}

/* The row counts what came and went. */
static void count_replayed(struct counter *counter, const struct target *target,
                           struct row_table *holder, const struct engine_replay *replay,
                           bool created)
{
    const struct change *change = &replay->change;
    if (target->table->is_apart) {
        row_replay_apart(&counter->row, change->id, created);
    } else if (change->type == CHANGE_DELETE) {
        count_deleted(target->table, replay);
    } else if (change->place != CHANGE_THERE) {
        row_replay_created(&counter->row, target->table, holder, change->id, created);
    }
}

static bool replay_one(struct counter *counter, const struct target *target,
                       const struct engine_replay *replay, char *error)
{
    const struct change *change = &replay->change;
    struct row_table *holder = target->table;
    struct counter_locus locus = target->locus;
    bool created = false;
    enum counter_replayed replayed = replay_on(holder, &locus, replay, &created);
    if (UNLIKELY(replayed == COUNTER_REPLAY_FURTHER)) {
        holder = holder->further;
        struct counter_table *layer = taking_part(counter, holder);
        counter_table_locate(layer, change->id, true, &locus);
        replayed = replay_on(holder, &locus, replay, &created);
    }
    if (replayed >= COUNTER_REPLAY_FULL) {
        snprintf(error, ENGINE_ERROR_MAX, "%s the change of id %" PRIu64 " at %" PRIu64,
                 replayed == COUNTER_REPLAY_FULL ? "no memory for"
                                                 : "a file of a dumped table cannot be read for",
                 change->id, replay->lsn);
        return false;
    }
    count_replayed(counter, target, holder, replay, created);
    return true;
}

static struct row_table *target_of(const struct counter *counter, const struct change *change,
                                   uint64_t lsn)
{
    bool apart = change->place == CHANGE_APART ||
                 (change->type == CHANGE_SLOTS && change->place == CHANGE_THERE_APART);
    return apart ? row_replay_find_apart(&counter->row, lsn)
                 : row_replay_find(&counter->row, change->id, lsn);
}

/* What was put in place is not apart any more. */
static void leave_apart(struct counter *counter, const struct engine_replay *replay)
{
    const struct change *change = &replay->change;
    bool placed = change->type == CHANGE_SLOTS && change->place == CHANGE_INSIDE;
    struct row_table *apart =
        placed ? row_replay_was_apart(&counter->row, change->id, replay->lsn) : NULL;
    if (UNLIKELY(apart != NULL)) {
        counter_table_drop_apart(taking_part(counter, apart), change->id);
    }
}

/* At most REPLAY_BATCH: all their lines are asked for before the first is used. */
static bool replay_batch(struct counter *counter, const struct engine_replay *changes, size_t n,
                         char *error)
{
    struct target targets[REPLAY_BATCH];
    for (size_t i = 0; i < n; i++) {
        const struct change *change = &changes[i].change;
        if (!change_valid(counter, change)) {
            snprintf(error, ENGINE_ERROR_MAX, "the change at %" PRIu64 " is none of this space",
                     changes[i].lsn);
            return false;
        }
        targets[i].table = target_of(counter, change, changes[i].lsn);
        if (targets[i].table) {
            counter_table_locate(taking_part(counter, targets[i].table), change->id, true,
                                 &targets[i].locus);
        }
    }
    for (size_t i = 0; i < n; i++) {
        leave_apart(counter, &changes[i]);
        if (targets[i].table && !replay_one(counter, &targets[i], &changes[i], error)) {
            return false;
        }
    }
    return true;
}

static bool replay(struct engine *engine, const struct engine_replay *changes, size_t n,
                   char error[ENGINE_ERROR_MAX])
{
    struct counter *counter = counter_of(engine);
    for (size_t at = 0; at < n; at += REPLAY_BATCH) {
        size_t count = n - at < REPLAY_BATCH ? n - at : REPLAY_BATCH;
        if (!replay_batch(counter, changes + at, count, error)) {
            return false;
        }
    }
    return true;
}

struct viewing {
    const struct counter_config *config;
    uint64_t lsn;
    bool can;
};

/* Tables whose time has come learn the slots. */
static void view_anew(void *context, struct row_table *table, bool layer)
{
    struct viewing *viewing = context;
    struct counter_table *this = counter_table_of(table);
    (void)layer;
    if (table->start_lsn > viewing->lsn) {
        counter_table_preview(this, viewing->config);
    } else if (counter_table_can_view(this, viewing->config)) {
        counter_table_set_view(this, viewing->config);
    } else {
        viewing->can = false;
    }
}

static bool replay_space(struct counter *counter, uint64_t lsn, const void *bytes, size_t length,
                         char *error)
{
    struct decoder from = decode_from(bytes, length);
    if (!decode_space(counter, &from, error)) {
        return false;
    }
    struct viewing viewing = {&counter->config, lsn, decode_ended(&from)};
    row_each(&counter->row, view_anew, &viewing);
    return viewing.can || refuse(error, "a table has no room for the slots of the journal");
}

static bool replay_event(struct engine *engine, enum change_event event, uint64_t lsn, bool rows,
                         const void *bytes, size_t length, char error[ENGINE_ERROR_MAX])
{
    struct counter *counter = counter_of(engine);
    char why[ROW_ERROR_MAX];
    if (event == CHANGE_EVENT_SPACE) {
        return replay_space(counter, lsn, bytes, length, error);
    }
    return !rows || row_replay_event(&counter->row, event, lsn, bytes, length, why) ||
           refuse(error, why);
}

static void each_table(const struct engine *engine, engine_table_visit *visit, void *context)
{
    row_each_serial(&counter_of(engine)->row, visit, context);
}

const struct engine_keeping counter_keeping = {
    .state = state,
    .set_log = set_log,
    .begin = begin,
    .images_begin = images_begin,
    .image_next = image_next,
    .image_write = counter_image_write,
    .image_failed = counter_image_failed,
    .images_failed = counter_images_failed,
    .restore_begin = restore_begin,
    .restore_table = restore_table,
    .load = load,
    .restore_tables = restore_tables,
    .replay = replay,
    .replay_event = replay_event,
    .restore_end = restore_end,
    .each_table = each_table,
    .set_cold = counter_set_cold,
    .images_wanted = counter_images_wanted,
    .image_done = counter_image_done,
    .restore_dumped = counter_restore_dumped,
};
