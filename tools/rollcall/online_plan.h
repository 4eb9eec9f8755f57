/*
 * online_plan.h: how large a daemon has to be: tables, memory and disk for so many ids and pairs a
 * day. The sizes are the allocator's own (config/forecast.h): what is planned is a configuration
 * that was read and checked by the code that a daemon reads it with.
 */
#ifndef ROLLCALL_TOOLS_ONLINE_PLAN_H
#define ROLLCALL_TOOLS_ONLINE_PLAN_H

#include <jansson.h>

#include "config/forecast.h"
#include "tools/rollcall/online.h"

#define PLAN_SPACES        2
#define PLAN_DATES_MAX     10
#define PLAN_TEXT_MAX      4096
#define PLAN_FAILS_MAX     6
#define PLAN_ERROR_MAX     512
#define PLAN_TABLES_WANTED 12 /* about this many of a space */

/* One space of the plan. */
struct plan_space {
    char name[ENGINE_SPACE_NAME_MAX + 1];
    enum space_kind kind;
    double each_day; /* new ids or pairs */
    unsigned days;   /* they are kept */
    uint64_t table_bytes;
    unsigned tables;      /* in memory, the spare included */
    unsigned dumps_max;   /* on the disk; 0: none */
    double late_room;     /* share of a table that waits for late ids */
    struct forecast size; /* of the row in memory */
    double table_takes;   /* new ids or pairs that open the next one */
};

struct plan_date {
    unsigned day;
    double held[PLAN_SPACES];        /* ids or pairs */
    unsigned in_memory[PLAN_SPACES]; /* tables */
    unsigned on_disk[PLAN_SPACES];
    uint64_t used_bytes; /* of memory: by tables that hold something */
    uint64_t disk_bytes;
};

struct plan {
    const struct online_options *options;
    size_t space_count;
    struct plan_space spaces[PLAN_SPACES];
    char slots[SETTINGS_RECORD_BITS_MAX * 4]; /* {repost: 14, like: 18} */
    bool recycle;                             /* what is older is forgotten */
    uint64_t memory_bytes;                    /* the option memory of the configuration */
    uint64_t sum_bytes;                       /* what it comes to */
    uint64_t fixed_disk_bytes;                /* the journal's */
    char config[PLAN_TEXT_MAX];               /* the ready configuration */
    size_t date_count;
    struct plan_date dates[PLAN_DATES_MAX];
    size_t fail_count;
    struct {
        double day; /* 0: at once */
        char words[PLAN_ERROR_MAX];
    } fails[PLAN_FAILS_MAX]; /* the first one first */
};

/* Works all out. False: `error` says what is wrong. */
bool plan_make(const struct online_options *options, struct plan *plan, char error[PLAN_ERROR_MAX]);

/* Prints the plan as a configuration file whose comments are the report. */
void plan_print(const struct plan *plan);
json_t *plan_json(const struct plan *plan);

#endif
