/* online_plan_print.c: a plan as a configuration with its report as comments, and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/readable.h"
#include "base/size.h"
#include "tools/rollcall/online_plan.h"

#define DAY_S 86400

static const char *plan_noun(const struct plan_space *space)
{
    return space->kind == SPACE_COUNTER ? "ids" : "pairs";
}

static void plan_print_space(const struct plan *plan, const struct plan_space *space)
{
    char day[READABLE_MAX], size[SIZE_TEXT_MAX], memory[READABLE_MAX], holds[READABLE_MAX];

    printf("# %s: %s new %s a day, kept for %u days\n", space->name,
           readable_count(day, space->each_day), plan_noun(space), space->days);
    printf("#   %u tables x %s in memory (one of them free)", space->tables,
           size_text(size, space->table_bytes));
    if (space->dumps_max > 0 && !plan->recycle) {
        printf(" and %u on the disk", space->dumps_max);
    }
    printf(", %s of memory\n#   a table takes %s %s, %.1f days, and has room for late ones; ",
           readable_bytes(memory, (double)space->size.bytes),
           readable_count(holds, space->table_takes), plan_noun(space),
           space->table_takes / space->each_day);
    if (space->kind == SPACE_COUNTER) {
        printf("%.1f bytes an id\n", space->size.bytes_each);
    } else {
        printf("%.1f bits a pair\n", 8 * space->size.bytes_each);
    }
}

static void plan_print_dates(const struct plan *plan)
{
    char text[READABLE_MAX], date_text[32];
    time_t now = time(NULL);

    printf("#\n# %-10s %5s", "DATE", "DAY");
    for (size_t i = 0; i < plan->space_count; i++) {
        printf(" %9s %6s %7s", plan->spaces[i].name, "TABLES", "ON DISK");
    }
    printf(" %9s %9s\n", "MEMORY", "DISK");
    for (size_t k = 0; k < plan->date_count; k++) {
        const struct plan_date *date = &plan->dates[k];
        time_t then = now + (time_t)date->day * DAY_S;
        struct tm parts;

        strftime(date_text, sizeof(date_text), "%Y-%m-%d", gmtime_r(&then, &parts));
        printf("# %-10s %5u", date_text, date->day);
        for (size_t i = 0; i < plan->space_count; i++) {
            printf(" %9s %6u %7u", readable_count(text, date->held[i]), date->in_memory[i],
                   date->on_disk[i]);
        }
        printf(" %9s", readable_bytes(text, (double)date->used_bytes));
        printf(" %9s\n",
               date->disk_bytes > 0 ? readable_bytes(text, (double)date->disk_bytes) : "-");
    }
    printf("# MEMORY is what holds something; the daemon takes %s from the start. DISK is the most "
           "there is\n# while a checkpoint is made, %s of it the journal's.\n",
           readable_bytes(text, (double)plan->sum_bytes),
           readable_bytes(date_text, (double)plan->fixed_disk_bytes));
}

static void plan_print_fails(const struct plan *plan)
{
    printf("#\n# What comes first:\n");
    for (size_t i = 0; i < plan->fail_count; i++) {
        if (plan->fails[i].day <= 0) {
            printf("#   at once: %s\n", plan->fails[i].words);
        } else {
            printf("#   day %.1f: %s\n", plan->fails[i].day, plan->fails[i].words);
        }
    }
}

void plan_print(const struct plan *plan)
{
    for (size_t i = 0; i < plan->space_count; i++) {
        plan_print_space(plan, &plan->spaces[i]);
    }
    plan_print_dates(plan);
    plan_print_fails(plan);
    printf("\n%s", plan->config);
}

/* ---- JSON ---- */

static json_t *plan_json_space(const struct plan_space *space)
{
    return json_pack("{s:s, s:s, s:f, s:i, s:I, s:i, s:i, s:f, s:f, s:I}", "name", space->name,
                     "kind", space->kind == SPACE_COUNTER ? "counter" : "phantom", "added_each_day",
                     space->each_day, "days", (int)space->days, "table_bytes",
                     (json_int_t)space->table_bytes, "tables", (int)space->tables, "dumps_max",
                     (int)space->dumps_max, "table_takes", space->table_takes, "bytes_each",
                     space->size.bytes_each, "memory_bytes", (json_int_t)space->size.bytes);
}

static json_t *plan_json_date(const struct plan *plan, const struct plan_date *date)
{
    json_t *spaces = json_object();

    for (size_t i = 0; i < plan->space_count; i++) {
        json_object_set_new(spaces, plan->spaces[i].name,
                            json_pack("{s:f, s:i, s:i}", "held", date->held[i], "tables",
                                      (int)date->in_memory[i], "on_disk", (int)date->on_disk[i]));
    }
    return json_pack("{s:i, s:o, s:I, s:I}", "day", (int)date->day, "spaces", spaces,
                     "memory_bytes", (json_int_t)date->used_bytes, "disk_bytes",
                     (json_int_t)date->disk_bytes);
}

json_t *plan_json(const struct plan *plan)
{
    json_t *spaces = json_array();
    json_t *dates = json_array();
    json_t *fails = json_array();

    for (size_t i = 0; i < plan->space_count; i++) {
        json_array_append_new(spaces, plan_json_space(&plan->spaces[i]));
    }
    for (size_t i = 0; i < plan->date_count; i++) {
        json_array_append_new(dates, plan_json_date(plan, &plan->dates[i]));
    }
    for (size_t i = 0; i < plan->fail_count; i++) {
        json_array_append_new(fails, json_pack("{s:f, s:s}", "day", plan->fails[i].day, "what",
                                               plan->fails[i].words));
    }
    return json_pack("{s:i, s:I, s:I, s:o, s:o, s:o, s:s}", "schema_version", 1,
                     "memory_limit_bytes", (json_int_t)plan->memory_bytes, "memory_bytes",
                     (json_int_t)plan->sum_bytes, "spaces", spaces, "dates", dates, "first", fails,
                     "configuration", plan->config);
}
