/*
 * phantom_space.c: what a space needs to come back, as bytes: the event SPACE, and the first part
 * of a state (row/row_data.h).
 *
 * In the machine's byte order (offset, size, meaning):
 *      0  4  version: 2 (1, never released, hashed short members in another way)
 *      4  4  1: ids are `any`; 2: deletes are on
 *      8  8  max-id, where ids are `any`
 *     16  8  exceptions-memory as configured, 0: the usual part of a table
 *     24  8  secret of the hash that filters use
 *     32  8  secret of the second hash
 */
#include <string.h>

#include "base/check.h"
#include "base/fail.h"
#include "phantom/phantom_private.h"

#define VERSION      2
#define FLAG_ANY_IDS 1u
#define FLAG_DELETES 2u
#define FLAGS        (FLAG_ANY_IDS | FLAG_DELETES)

struct space {
    uint32_t version, flags;
    uint64_t max_id, exceptions_bytes;
    struct phantom_secrets secrets;
};
_Static_assert(sizeof(struct space) == 40, "as the table above");
_Static_assert(sizeof(struct space) <= ROW_KIND_SPACE_MAX, "a state and an event have room for it");

size_t phantom_write_space(const struct engine *engine, unsigned char bytes[ROW_KIND_SPACE_MAX])
{
    const struct phantom *phantom = phantom_of_const(engine);
    const struct phantom_config *config = &phantom->config;
    struct space space = {
        .version = VERSION,
        .flags = (config->row.any_ids ? FLAG_ANY_IDS : 0) | (config->deletes ? FLAG_DELETES : 0),
        .max_id = config->row.any_ids ? config->max_id : 0,
        .exceptions_bytes = config->exceptions_bytes,
        .secrets = phantom->secrets,
    };
    memcpy(bytes, &space, sizeof(space));
    return sizeof(space);
}

static void take_secrets(void *context, struct row_table *table, bool layer)
{
    (void)layer;
    phantom_table_of(table)->secrets = *(const struct phantom_secrets *)context;
}

/* False, nothing changed: these are no space's, or another kind of space's. */
static bool phantom_space_take(struct phantom *phantom, const void *bytes, size_t length,
                               char error[ENGINE_ERROR_MAX])
{
    struct space space;
    if (length != sizeof(space)) {
        return fail_with(error, ENGINE_ERROR_MAX,
                         "what was stored of the space is not of a phantom space");
    }
    memcpy(&space, bytes, sizeof(space));
    if (space.version != VERSION || (space.flags & ~FLAGS) != 0 ||
        (space.exceptions_bytes != 0 && (space.exceptions_bytes < PHANTOM_EXCEPTIONS_BYTES_MIN ||
                                         space.exceptions_bytes > ROW_REGION_BYTES_MAX))) {
        return fail_with(error, ENGINE_ERROR_MAX,
                         "what was stored of the space is of no version this program knows");
    }
    bool any_ids = (space.flags & FLAG_ANY_IDS) != 0;
    if (any_ids != phantom->config.row.any_ids) {
        return fail_with(error, ENGINE_ERROR_MAX, "%s",
                         any_ids
                             ? "it was stored with `ids: any`: keep that, or give the space "
                               "another name"
                             : "it was stored with `ids: growing`: keep that, or give the space "
                               "another name");
    }
    phantom->config.deletes = (space.flags & FLAG_DELETES) != 0;
    phantom->config.exceptions_bytes = space.exceptions_bytes;
    phantom_shape_deletes(&phantom->shape, phantom->config.deletes, space.exceptions_bytes);
    phantom->secrets = space.secrets;
    row_each(&phantom->row, take_secrets, &phantom->secrets);
    return true;
}

/* Tables in memory have exceptions, or none, as the space says; those to come as they are loaded.
 */
bool phantom_take_space(struct engine *engine, uint64_t lsn, const void *bytes, size_t length,
                        char error[ENGINE_ERROR_MAX])
{
    struct phantom *phantom = phantom_of(engine);
    const struct phantom_config *config = &phantom->config;
    (void)lsn;
    return phantom_space_take(phantom, bytes, length, error) &&
           (phantom_turn_deletes(phantom, config->deletes, config->exceptions_bytes) ||
            fail_with(error, ENGINE_ERROR_MAX, "the system refuses the memory for exceptions"));
}
