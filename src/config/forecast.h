/*
 * forecast.h: what a space will cost and hold, and when it has no place for new ids.
 *
 * The engines' own figures (counter_config_size, phantom_config_size), in one shape: the memory
 * sum, the start-up line, "full in" of the status page, and `rollcall plan` come from here, so they
 * cannot disagree. Pure; any thread.
 */
#ifndef ROLLCALL_CONFIG_FORECAST_H
#define ROLLCALL_CONFIG_FORECAST_H

#include "config/settings.h"

struct forecast {
    uint64_t bytes;        /* of memory: all tables and pools; plain: the option memory */
    unsigned tables;       /* that hold ids at a time; plain: 0 */
    unsigned spare;        /* 1 or 0 more */
    uint64_t holds;        /* ids or members in all that hold some, at capacity */
    double bytes_each;     /* of an id or member, at capacity */
    uint64_t table_holds;  /* one of them */
    uint64_t table_memory; /* one of them with its pools */
    double late_room;      /* share of a table that waits for late ids, at first */
};

/* number: the space's place among all (what engines call `space`). */
void forecast_space(const struct space_settings *space, uint32_t number, struct forecast *forecast);

/* Where new ids go, now. */
struct forecast_room {
    uint64_t capacity, held; /* of the newest table; capacity 0: there is none yet */
    uint64_t free_tables;
    bool any_ids; /* no further tables; counters with any ids grow: forecast_growing() */
    bool refuses; /* new ids when all is full; else the oldest table makes room */
};

/*
 * The room of a space that grows in parts: what all of them hold and are made for, as many bytes as
 * they may grow by, and what a record costs where a part is full.
 */
void forecast_growing(struct forecast_room *room, uint64_t held, uint64_t capacity,
                      uint64_t left_bytes, double bytes_each);

/* New ids or members that fit before a table must go, or they are refused. */
uint64_t forecast_places(const struct forecast_room *room);
/* Seconds until then; 0: new ids are refused now; negative: it does not fill. */
double forecast_full_in_s(const struct forecast_room *room, double added_each_s);

#endif
