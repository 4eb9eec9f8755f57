#include "config/forecast.h"

#include "config/settings_draft.h"

void forecast_space(const struct space_settings *space, uint32_t number, struct forecast *forecast)
{
    settings_kind_forecast(space, number, forecast);
    if (space->kind == SPACE_PLAIN) {
        return;
    }
    if (space->ids != SPACE_IDS_GROWING) {
        forecast->late_room = 0;
    } else if (space->row.late_room >= 0) {
        forecast->late_room = space->row.late_room;
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
