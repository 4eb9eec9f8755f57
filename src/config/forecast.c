#include "config/forecast.h"

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
    };
}

void forecast_space(const struct space_settings *space, uint32_t number, struct forecast *forecast)
{
    switch (space->kind) {
    case SPACE_COUNTER:
        forecast_counters(space, number, forecast);
        break;
    case SPACE_PHANTOM:
        forecast_members(space, number, forecast);
        break;
    case SPACE_PLAIN:
        *forecast = (struct forecast){.bytes = space->memory_bytes};
        return;
    }
    if (space->ids == SPACE_IDS_GROWING) {
        double at_first = space->kind == SPACE_COUNTER ? COUNTER_LATE_START : PHANTOM_LATE_START;

        forecast->late_room = space->row.late_room < 0 ? at_first : space->row.late_room;
    }
    forecast->table_holds = forecast->holds / forecast->tables;
    forecast->table_memory = forecast->bytes / (forecast->tables + forecast->spare);
}

uint64_t forecast_places(const struct forecast_room *room)
{
    /* a row that rolls always keeps one free */
    uint64_t kept = room->refuses || room->free_tables == 0 ? 0 : 1;
    uint64_t left = room->capacity > room->held ? room->capacity - room->held : 0;

    return left + (room->any_ids ? 0 : (room->free_tables - kept) * room->capacity);
}

void forecast_growing(struct forecast_room *room, uint64_t held, uint64_t capacity,
                      uint64_t left_bytes, double bytes_each)
{
    room->held = held;
    room->capacity = capacity + (bytes_each > 0 ? (uint64_t)((double)left_bytes / bytes_each) : 0);
}

double forecast_full_in_s(const struct forecast_room *room, double added_each_s)
{
    uint64_t places = forecast_places(room);

    if (places == 0 && room->capacity > 0 && room->refuses) {
        return 0;
    }
    return added_each_s > 0 ? (double)places / added_each_s : -1;
}
