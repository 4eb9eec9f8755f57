/* settings_kind.c: what the configuration knows of the kinds of spaces: their words, what each
 * one's engine is made with, and what it will cost and hold. */
#include <string.h>

#include "base/check.h"
#include "config/forecast.h"
#include "config/settings_draft.h"
#include "row/row.h"

const char *const settings_kind_words[] = {
    [SPACE_COUNTER] = "counter", [SPACE_PHANTOM] = "phantom", [SPACE_PLAIN] = "plain", NULL};

_Static_assert(PHANTOM_ERROR_MAX <= COUNTER_ERROR_MAX, "one room for the error of any engine");

static struct row_config settings_kind_row(const struct space_settings *from)
{
    struct row_config row = from->row;

    row.any_ids = from->ids == SPACE_IDS_ANY;
    row.recycle = !row.any_ids && from->oldest == SPACE_OLDEST_RECYCLE;
    row.dump = from->oldest == SPACE_OLDEST_DUMP;
    row.tables = row.any_ids ? 1 : row.tables;
    row.late_room = row.any_ids ? 0 : row.late_room < 0 ? ROW_LATE_AUTO : row.late_room;
    return row;
}

void settings_counter_config(const struct space_settings *from, uint32_t space,
                             struct counter_config *config)
{
    CHECK(from->kind == SPACE_COUNTER);
    *config = (struct counter_config){
        .space = space,
        .slot_count = from->slot_count,
        .row = settings_kind_row(from),
        .max_id = from->max_id,
        .id_spacing = from->id_spacing,
        .role_cache = from->role == SPACE_CACHE,
        .keep_empty = from->empty_fields == SPACE_EMPTY_KEEP,
        .value_flags = from->value_flags,
        .extend_bytes = from->extend_bytes,
        .aux_bytes = from->aux_bytes,
        .below_bytes = from->below_bytes,
    };
    memcpy(config->forget, from->forget, sizeof(config->forget));
    config->forget_count = from->forget_count;
    for (size_t i = 0; i < from->slot_count; i++) {
        strcpy(config->slots[i].name, from->slots[i].name);
        config->slots[i].bits = from->slots[i].bits;
    }
}

void settings_phantom_config(const struct space_settings *from, uint32_t space,
                             struct phantom_config *config)
{
    CHECK(from->kind == SPACE_PHANTOM);
    *config = (struct phantom_config){
        .space = space,
        .row = settings_kind_row(from),
        .max_id = from->max_id,
        .role_cache = from->role == SPACE_CACHE,
        .value_flags = from->value_flags,
        .false_positives = from->false_positives,
        .deletes = from->deletes,
        .exceptions_bytes = from->exceptions_bytes,
    };
}

bool settings_kind_valid(const struct space_settings *space, uint32_t number,
                         char error[COUNTER_ERROR_MAX])
{
    struct counter_config counter;
    struct phantom_config phantom;

    switch (space->kind) {
    case SPACE_COUNTER:
        settings_counter_config(space, number, &counter);
        return counter_config_valid(&counter, error);
    case SPACE_PHANTOM:
        settings_phantom_config(space, number, &phantom);
        return phantom_config_valid(&phantom, error);
    case SPACE_PLAIN:
        break;
    }
    return true;
}

static void forecast_counters(const struct space_settings *space, uint32_t number,
                              struct forecast *forecast)
{
    struct counter_config config;
    struct counter_size size;

    settings_counter_config(space, number, &config);
    counter_config_size(&config, &size);
    *forecast = (struct forecast){
        .bytes = size.bytes,
        .tables = size.tables,
        .spare = size.spare,
        .holds = size.records,
        .bytes_each = size.bytes_per_record,
        .late_room = COUNTER_LATE_START,
    };
}

static void forecast_members(const struct space_settings *space, uint32_t number,
                             struct forecast *forecast)
{
    struct phantom_config config;
    struct phantom_size size;

    settings_phantom_config(space, number, &config);
    phantom_config_size(&config, &size);
    *forecast = (struct forecast){
        .bytes = size.bytes,
        .tables = size.tables,
        .spare = size.spare,
        .holds = size.members,
        .bytes_each = size.bits_per_member / 8,
        .late_room = PHANTOM_LATE_START,
    };
}

void settings_kind_forecast(const struct space_settings *space, uint32_t number,
                            struct forecast *forecast)
{
    switch (space->kind) {
    case SPACE_COUNTER:
        forecast_counters(space, number, forecast);
        return;
    case SPACE_PHANTOM:
        forecast_members(space, number, forecast);
        return;
    case SPACE_PLAIN:
        *forecast = (struct forecast){.bytes = space->memory_bytes};
        return;
    }
}
