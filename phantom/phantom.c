/*
 * phantom.c: the engine's life: configuration, creation, reconfiguration, and its part of the row.
 */
#include "phantom/phantom.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "phantom/phantom_private.h"

#define LATE_START    0.50 /* members of an id go on arriving long after it */
#define LATE_ROOM_MAX 0.9

static bool refuse(char error[PHANTOM_ERROR_MAX], const char *text)
{
    snprintf(error, PHANTOM_ERROR_MAX, "%s", text);
    return false;
}

/* What only a row of tables needs. */
static bool row_settings_valid(const struct phantom_config *config, char error[PHANTOM_ERROR_MAX])
{
    if (config->tables < 1 || config->tables > ROW_TABLES_MAX) {
        return refuse(error, "tables is 1 to 1024");
    }
    if (config->dump && (config->recycle || config->tables < 2)) {
        return refuse(error, config->recycle
                                 ? "the oldest is recycled or dumped, not both"
                                 : "tables is 2 to 1024 where the oldest is dumped: one is the "
                                   "spare");
    }
    if (config->recycle && config->tables < 2) {
        return refuse(error, "tables is 2 to 1024 where the oldest is recycled: one is the spare");
    }
    if (config->late_room != ROW_LATE_AUTO &&
        !(config->late_room >= 0 && config->late_room <= LATE_ROOM_MAX)) {
        return refuse(error, "late-room is auto or 0 to 0.9");
    }
    return true;
}

bool phantom_config_valid(const struct phantom_config *config, char error[PHANTOM_ERROR_MAX])
{
    uint64_t bytes = config->table_bytes;
    double wrong = config->false_positives;
    uint64_t exceptions = config->exceptions_bytes;
    if (bytes < PHANTOM_TABLE_BYTES_MIN || bytes > PHANTOM_TABLE_BYTES_MAX ||
        (bytes & (bytes - 1)) != 0) {
        return refuse(error, "table-size is a power of two from 64 KiB to 1 TiB");
    }
    if (!(wrong >= PHANTOM_FALSE_POSITIVES_MIN && wrong <= PHANTOM_FALSE_POSITIVES_MAX)) {
        return refuse(error, "false-positives is 0.000001 to 0.5");
    }
    if (config->any_ids && (config->max_id < 1 || config->max_id > INT64_MAX)) {
        return refuse(error, "max-id is 1 to 9223372036854775807");
    }
    if (exceptions != 0 &&
        (exceptions < PHANTOM_EXCEPTIONS_BYTES_MIN || exceptions > PHANTOM_TABLE_BYTES_MAX)) {
        return refuse(error, "exceptions-memory is 4 KiB to 1 TiB");
    }
    return config->any_ids || row_settings_valid(config, error);
}

static unsigned spare_tables(const struct phantom_config *config)
{
    return !config->any_ids && (config->recycle || config->dump);
}

static unsigned all_tables(const struct phantom_config *config)
{
    return config->any_ids ? 1 : config->tables;
}

void phantom_config_size(const struct phantom_config *config, struct phantom_size *size)
{
    struct phantom_shape shape;
    phantom_shape_init(&shape, config);
    size->spare = spare_tables(config);
    size->tables = all_tables(config) - size->spare;
    size->bytes = all_tables(config) * phantom_shape_bytes(&shape) + phantom_apart_bytes(config);
    size->members = size->tables * shape.capacity;
    size->bits_per_member = 8.0 * (double)shape.table_bytes / (double)shape.capacity;
}

/* ---- the row's tables ---- */

static struct row_table *create_table(void *engine, const struct row_want *want)
{
    const struct phantom *phantom = engine;
    return (struct row_table *)phantom_table_create(&phantom->shape, &phantom->secrets, want);
}

static void destroy_table(struct row_table *table)
{
    phantom_table_destroy(phantom_table_of(table));
}

static void settle_table(void *engine, struct row_table *table)
{
    (void)engine, (void)table; /* a filter takes any ids */
}

static bool place_pairs(void *engine, struct row_table *apart, struct row_table *to,
                        struct change_sink *sink)
{
    struct phantom *phantom = engine;
    return phantom_table_place(&phantom->row, phantom_table_of(apart), phantom_table_of(to), sink);
}

static uint64_t forget_pairs(struct row_table *apart, uint64_t first, uint64_t last)
{
    return phantom_table_forget(phantom_table_of(apart), first, last);
}

static uint64_t held_members(const struct row_table *table)
{
    struct phantom_table_stats stats;
    phantom_table_stats(phantom_table_of((struct row_table *)table), &stats);
    return stats.members;
}

static size_t describe_table(const struct row_table *table, unsigned char *bytes)
{
    const struct phantom_table *t = phantom_table_of((struct row_table *)table);
    phantom_shape_describe(phantom_table_shape(t), bytes);
    return PHANTOM_DESCRIPTION_BYTES;
}

static uint64_t described_bytes(const void *description, size_t bytes)
{
    struct phantom_shape shape;
    return phantom_shape_read(&shape, description, bytes) ? shape.table_bytes : 0;
}

static void each_pair_apart(const struct row_table *apart,
                            void (*visit)(void *context, uint64_t id), void *context)
{
    phantom_table_each_apart(phantom_table_of((struct row_table *)apart), visit, context);
}

static const struct row_functions row_functions = {
    .held = held_members,
    .create = create_table,
    .destroy = destroy_table,
    .settle = settle_table,
    .place = place_pairs,
    .forget = forget_pairs,
    .describe = describe_table,
    .described_bytes = described_bytes,
    .each_apart = each_pair_apart,
};

bool phantom_dumps(const struct phantom *phantom)
{
    return phantom->cold && phantom->config.dump && !phantom->config.any_ids;
}

static struct row_config row_config_of(const struct phantom *phantom)
{
    const struct phantom_config *config = &phantom->config;
    return (struct row_config){
        .any_ids = config->any_ids,
        .recycle = config->recycle && !config->any_ids,
        .dump = phantom_dumps(phantom),
        .dumps_max = config->dumps_max,
        .tables = all_tables(config),
        .table_bytes = config->table_bytes,
        .late_room = config->late_room,
        .late_start = LATE_START,
        .sample = phantom_apart_sample(config),
    };
}

/* ---- reconfiguration ---- */

struct deletes {
    bool on;
    uint64_t exceptions_bytes;
    bool refused;
};

static void turn_deletes(void *context, struct row_table *table, bool layer)
{
    struct deletes *deletes = context;
    if (!layer &&
        !phantom_table_deletes(phantom_table_of(table), deletes->on, deletes->exceptions_bytes)) {
        deletes->refused = true;
    }
}

/* What was made in vain is empty, and turning deletes off drops it. */
bool phantom_turn_deletes(const struct phantom *phantom, bool on, uint64_t exceptions_bytes)
{
    struct deletes next = {on, exceptions_bytes, false};
    struct deletes off = {false, 0, false};
    row_each(&phantom->row, turn_deletes, &next);
    if (next.refused) {
        row_each(&phantom->row, turn_deletes, &off);
    }
    return !next.refused;
}

/* The configuration that holds from now on: what needs a restart stays as it is. */
static void take_config(struct phantom *phantom, const struct phantom_config *config)
{
    struct phantom_config now = phantom->config;
    phantom->config = *config;
    phantom->config.space = now.space;
    phantom->config.any_ids = now.any_ids;
    phantom->config.max_id = now.max_id;
    if (now.any_ids) {
        phantom->config.table_bytes = now.table_bytes;
        phantom->config.false_positives = now.false_positives;
    } else if (config->any_ids) { /* says nothing of a row */
        phantom->config.tables = now.tables;
        phantom->config.recycle = now.recycle;
        phantom->config.dump = now.dump;
        phantom->config.dumps_max = now.dumps_max;
        phantom->config.late_room = now.late_room;
    }
    phantom->engine.role_cache = config->role_cache;
    phantom->engine.flags = config->value_flags;
    phantom_shape_init(&phantom->shape, &phantom->config);
}

bool phantom_reconfigure(struct engine *engine, const struct phantom_config *config,
                         char error[PHANTOM_ERROR_MAX])
{
    struct phantom *phantom = (struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    if (!phantom_turn_deletes(phantom, config->deletes, config->exceptions_bytes)) {
        return refuse(error, "the system refuses the memory for exceptions");
    }
    bool turned = config->deletes != phantom->config.deletes ||
                  config->exceptions_bytes != phantom->config.exceptions_bytes;
    take_config(phantom, config);
    if (turned) {
        phantom_log_space(phantom);
    }
    struct row_config row = row_config_of(phantom);
    row_reconfigure(&phantom->row, &row, false);
    return true;
}

size_t phantom_losses(const struct engine *engine, const struct phantom_config *config,
                      struct engine_loss losses[ENGINE_LOSSES_MAX])
{
    const struct phantom *phantom = (const struct phantom *)engine;
    struct row_config row = {.recycle = config->recycle,
                             .dumps_max = config->dumps_max,
                             .tables = config->tables,
                             .table_bytes = config->table_bytes};
    size_t count = 0;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    row_losses(&phantom->row, &row, losses, &count);
    return count;
}

/* ---- life ---- */

static void phantom_clear(struct engine *engine)
{
    struct phantom *phantom = (struct phantom *)engine;
    phantom_log_space(phantom); /* a reader of the journal may begin here */
    row_clear(&phantom->row);
}

static void phantom_populate(struct engine *engine, const _Atomic bool *stop)
{
    row_populate(&((struct phantom *)engine)->row, stop);
}

static void phantom_maintain(struct engine *engine, struct barrier *barrier)
{
    row_maintain(&((struct phantom *)engine)->row, barrier);
}

static void phantom_waited(struct engine *engine)
{
    row_waited(&((struct phantom *)engine)->row);
}

static uint64_t phantom_recycled(const struct engine *engine)
{
    return ((const struct phantom *)engine)->row.recycled_ids;
}

static void phantom_destroy(struct engine *engine)
{
    struct phantom *phantom = (struct phantom *)engine;
    if (!phantom) {
        return;
    }
    CHECK(phantom->magic == PHANTOM_MAGIC);
    row_fini(&phantom->row);
    phantom->magic = 0;
    free(phantom);
}

static const struct engine_functions phantom_functions = {
    .kind = "phantom",
    .slot = phantom_slot_of,
    .prepare = phantom_prepare,
    .read = phantom_read,
    .change = phantom_change,
    .clear = phantom_clear,
    .stats_space = phantom_stats_space,
    .stats_table = phantom_stats_table,
    .memory = phantom_memory,
    .populate = phantom_populate,
    .maintain = phantom_maintain,
    .waited = phantom_waited,
    .recycled = phantom_recycled,
    .destroy = phantom_destroy,
    .keeping = &phantom_keeping,
};

struct engine *phantom_create(const struct phantom_config *config, char error[PHANTOM_ERROR_MAX])
{
    CHECK(phantom_config_valid(config, error));
    struct phantom *phantom = memory_zalloc(sizeof(*phantom));
    phantom->magic = PHANTOM_MAGIC;
    phantom->engine.functions = &phantom_functions;
    phantom->engine.space = config->space;
    phantom->secrets.first = clock_random();
    phantom->secrets.second = clock_random();
    phantom->config = *config;
    take_config(phantom, config);
    struct row_config row = row_config_of(phantom);
    if (!row_init(&phantom->row, &row, &row_functions, phantom, &phantom->engine.keeper)) {
        snprintf(error, PHANTOM_ERROR_MAX, "the system refuses %llu bytes of memory for tables",
                 (unsigned long long)row.table_bytes * row.tables);
        free(phantom);
        return NULL;
    }
    phantom->row.imager = &phantom->engine.imager;
    return &phantom->engine;
}

static void check_table(void *context, struct row_table *table, bool layer)
{
    (void)context;
    if (!layer) {
        phantom_table_check(phantom_table_of(table));
    }
}

void phantom_check(const struct engine *engine)
{
    const struct phantom *phantom = (const struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    row_check(&phantom->row);
    row_each(&phantom->row, check_table, NULL);
}
