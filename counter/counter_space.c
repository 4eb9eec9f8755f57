/*
 * counter_space.c: what a space needs to come back, as bytes: the event SPACE, and the first part
 * of a state (row/row_data.h).
 *
 *     size  meaning
 *     8     STATE_MAGIC and, in the low byte, the version of this format
 *     1     1: ids: any
 *     8     max-id, 0 if ids grow
 *     8     numbers of slots given so far
 *           slots, in the configuration's order: how many; of each bits, number (2), length of
 *           name, name
 *           slots that are not named any more and not forgotten, likewise
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/fail.h"
#include "counter/counter_private.h"
#include "counter/encode.h"

#define STATE_MAGIC     0x6563617073746300u /* "ctspace" and the version */
#define STATE_VERSION   2u
#define SPACE_BYTES_MAX (25 + 2 * ENCODE_SLOTS_BYTES_MAX)

_Static_assert(SPACE_BYTES_MAX <= ROW_KIND_SPACE_MAX, "a state and an event have room for it");

size_t counter_write_space(const struct engine *engine, unsigned char bytes[ROW_KIND_SPACE_MAX])
{
    const struct counter *counter = counter_of_const(engine);
    const struct counter_config *config = &counter->config;
    struct encoder to = encode_to(bytes, SPACE_BYTES_MAX);
    encode_u64(&to, STATE_MAGIC | STATE_VERSION);
    encode_u8(&to, config->row.any_ids);
    encode_u64(&to, config->row.any_ids ? config->max_id : 0);
    encode_u64(&to, counter->slot_numbers);
    encode_slots(&to, config->slots, config->slot_count);
    encode_slots(&to, counter->left.at, counter->left.count);
    return (size_t)(to.at - bytes);
}

static const char *ids_name(bool any_ids)
{
    return any_ids ? "any" : "growing";
}

/* What cannot change while the ids are there. */
static bool same_ids(const struct counter_config *config, bool any_ids, uint64_t max_id,
                     char *error)
{
    if (any_ids != config->row.any_ids) {
        snprintf(error, ENGINE_ERROR_MAX,
                 "the directory holds this space with ids: %s, the configuration says ids: %s",
                 ids_name(any_ids), ids_name(config->row.any_ids));
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

/* Takes the slots, for the engine itself. */
static bool decode_space(struct counter *counter, struct decoder *from, char *error)
{
    struct counter_config is = counter->config;
    if (decode_u64(from) != (STATE_MAGIC | STATE_VERSION)) {
        return fail_with(error, ENGINE_ERROR_MAX,
                         "the state of the space is not one of this version");
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
    if (!decode_ended(from) || numbers > COUNTER_SLOT_NUMBER_MAX) {
        return fail_with(error, ENGINE_ERROR_MAX, "the state of the space is damaged");
    }
    if (!same_ids(&counter->config, any_ids, max_id, error)) {
        return false;
    }
    counter->slot_numbers = (unsigned)numbers;
    counter->left = left;
    counter_take_slots(counter, &is);
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

bool counter_take_space(struct engine *engine, uint64_t lsn, const void *bytes, size_t length,
                        char error[ENGINE_ERROR_MAX])
{
    struct counter *counter = counter_of(engine);
    struct decoder from = decode_from(bytes, length);
    if (!decode_space(counter, &from, error)) {
        return false;
    }
    struct viewing viewing = {&counter->config, lsn, true};
    row_each(&counter->row, view_anew, &viewing);
    return viewing.can ||
           fail_with(error, ENGINE_ERROR_MAX, "a table has no room for the slots of the journal");
}
