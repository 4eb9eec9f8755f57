/*
 * phantom.c: the engine's life: configuration, creation, reconfiguration.
 */
#include "phantom/phantom.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "phantom/phantom_private.h"

static bool refuse(char error[PHANTOM_ERROR_MAX], const char *text)
{
    snprintf(error, PHANTOM_ERROR_MAX, "%s", text);
    return false;
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
    return true;
}

void phantom_config_size(const struct phantom_config *config, struct phantom_size *size)
{
    struct phantom_shape shape;
    phantom_shape_init(&shape, config);
    size->bytes = shape.table_bytes + shape.exceptions_bytes;
    size->members = shape.capacity;
    size->bits_per_member = 8.0 * (double)shape.table_bytes / (double)shape.capacity;
}

static void take_small_settings(struct phantom *phantom, const struct phantom_config *config)
{
    phantom->engine.role_cache = config->role_cache;
    phantom->engine.flags = config->value_flags;
    phantom->config.role_cache = config->role_cache;
    phantom->config.value_flags = config->value_flags;
    phantom->config.deletes = config->deletes;
}

bool phantom_reconfigure(struct engine *engine, const struct phantom_config *config,
                         char error[PHANTOM_ERROR_MAX])
{
    struct phantom *phantom = (struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    struct phantom_shape shape;
    phantom_shape_init(&shape, config);
    if (!phantom_table_deletes(phantom->table, config->deletes, shape.exceptions_bytes)) {
        return refuse(error, "the system refuses the memory for exceptions");
    }
    take_small_settings(phantom, config);
    return true;
}

static void phantom_clear(struct engine *engine)
{
    struct phantom *phantom = (struct phantom *)engine;
    phantom_table_clear(phantom->table);
    phantom->opened_s = clock_wall_s();
}

static void phantom_populate(struct engine *engine, const _Atomic bool *stop)
{
    phantom_table_populate(((struct phantom *)engine)->table, stop);
}

static void phantom_destroy(struct engine *engine)
{
    struct phantom *phantom = (struct phantom *)engine;
    if (!phantom) {
        return;
    }
    CHECK(phantom->magic == PHANTOM_MAGIC);
    phantom_table_destroy(phantom->table);
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
    .stats_tables = phantom_stats_tables,
    .memory = phantom_memory,
    .populate = phantom_populate,
    .destroy = phantom_destroy,
};

struct engine *phantom_create(const struct phantom_config *config, char error[PHANTOM_ERROR_MAX])
{
    CHECK(phantom_config_valid(config, error));
    struct phantom *phantom = memory_zalloc(sizeof *phantom);
    phantom->magic = PHANTOM_MAGIC;
    phantom->config = *config;
    phantom->engine.functions = &phantom_functions;
    phantom->engine.space = config->space;
    phantom->opened_s = clock_wall_s();
    phantom->table = phantom_table_create(config);
    if (!phantom->table) {
        snprintf(error, PHANTOM_ERROR_MAX, "the system refuses %llu bytes of memory for a table",
                 (unsigned long long)config->table_bytes);
        free(phantom);
        return NULL;
    }
    take_small_settings(phantom, config);
    return &phantom->engine;
}

void phantom_check(const struct engine *engine)
{
    const struct phantom *phantom = (const struct phantom *)engine;
    CHECK(phantom->magic == PHANTOM_MAGIC);
    phantom_table_check(phantom->table);
}
