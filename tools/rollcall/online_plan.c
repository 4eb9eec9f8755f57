/* online_plan.c: the sizes: a configuration is written, read as a daemon reads it, and corrected.
 */
#include "tools/rollcall/online_plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/readable.h"
#include "base/size.h"
#include "row/row_config.h"

#define MEMORY_MOST    (1ull << 46) /* of the option memory */
#define MEMORY_STEP    (64ull << 20)
#define BUFFERS_SHARE  16            /* buffers of connections are this part of memory, or more */
#define WORKERS_BYTES  (64ull << 20) /* for a machine of more processors than this one */
#define TABLES_LEAST   3             /* in memory: one takes new ids, one is full, one is free */
#define TABLES_MOST    1024
#define HALVINGS_MAX   30
#define PATH_MAX_BYTES 64

/* ---- a configuration, written and read ---- */

__attribute__((format(printf, 2, 3))) static void plan_put(struct plan *plan, const char *format,
                                                           ...)
{
    size_t used = strlen(plan->config);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(plan->config + used, sizeof(plan->config) - used, format, arguments);
    va_end(arguments);
}

static bool plan_has_data(const struct plan *plan)
{
    return plan->options->data == NULL || *plan->options->data != '\0';
}

static void plan_put_space(struct plan *plan, const struct plan_space *space)
{
    const struct online_options *options = plan->options;
    char size[SIZE_TEXT_MAX];

    plan_put(plan, "  %s:\n    kind: %s\n", space->name,
             space->kind == SPACE_COUNTER ? "counter" : "phantom");
    if (space->kind == SPACE_COUNTER) {
        plan_put(plan, "    slots: %s\n", plan->slots);
        if (options->id_spacing > 0) {
            plan_put(plan, "    id-spacing: %" PRIu64 "\n", options->id_spacing);
        }
    } else {
        plan_put(plan, "    false-positives: %g\n%s", options->false_positives,
                 options->deletes ? "    deletes: yes\n" : "");
    }
    plan_put(plan, "    table-size: %s\n    tables: %u\n", size_exact(size, space->table_bytes),
             space->tables);
    if (space->dumps_max > 0 && !plan->recycle) {
        plan_put(plan, "    oldest: dump\n    dumps-max: %u\n", space->dumps_max);
    } else {
        plan_put(plan, "    oldest: recycle\n");
    }
}

static void plan_compose(struct plan *plan)
{
    char size[SIZE_TEXT_MAX];

    plan->config[0] = '\0';
    plan_put(plan, "memory: %s\nadmin: 127.0.0.1:%s\n", size_exact(size, plan->memory_bytes),
             ONLINE_ADMIN_PORT);
    if (plan_has_data(plan)) {
        plan_put(plan, "data: \"%s\"\n",
                 plan->options->data != NULL ? plan->options->data : "/var/lib/rollcall");
    }
    plan_put(plan, "spaces:\n");
    for (size_t i = 0; i < plan->space_count; i++) {
        plan_put_space(plan, &plan->spaces[i]);
    }
}

/* Reads the plan as the daemon would. NULL: `error` has the daemon's words. */
static struct settings *plan_load(struct plan *plan, char error[PLAN_ERROR_MAX])
{
    char path[PATH_MAX_BYTES], program[] = "rollcalld", flag[] = "--config";
    char *argv[] = {program, flag, path, NULL};
    int fd = memfd_create("plan", MFD_CLOEXEC);
    struct settings *settings;
    char *said = NULL;
    size_t length;
    FILE *err = open_memstream(&said, &length);

    CHECK(fd >= 0 && err != NULL);
    plan_compose(plan);
    CHECK(write(fd, plan->config, strlen(plan->config)) == (ssize_t)strlen(plan->config));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    settings = settings_reload(3, argv, err);
    fclose(err);
    close(fd);
    if (settings == NULL) {
        char *at = strstr(said, "error: ");

        fail_with(error, PLAN_ERROR_MAX, "%.*s", at != NULL ? (int)strcspn(at + 7, "\n") : 0,
                  at != NULL ? at + 7 : "");
    }
    free(said);
    return settings;
}

/* ---- sizes ---- */

/* Sets what the row of the space comes to, with the tables it has now. */
static void plan_measure(const struct settings *settings, struct plan *plan)
{
    for (size_t i = 0; i < plan->space_count; i++) {
        struct plan_space *space = &plan->spaces[i];

        forecast_space(&settings->spaces[i], (uint32_t)i, &space->size);
        space->late_room = space->size.late_room;
        space->table_takes = (double)space->size.table_holds * (1 - space->late_room);
    }
    plan->sum_bytes = settings_memory_sum(settings, NULL);
    if (plan_has_data(plan)) {
        plan->fixed_disk_bytes =
            3 * settings->journal.segment_bytes + settings->checkpoint.journal_bytes;
    }
}

static bool plan_try(struct plan *plan, char error[PLAN_ERROR_MAX])
{
    struct settings *settings = plan_load(plan, error);

    if (settings == NULL) {
        return false;
    }
    plan_measure(settings, plan);
    settings_destroy(settings);
    return true;
}

/* Tables that hold something when all of the days are there: the newest is not full yet, and the
 * oldest goes as a whole. */
static double plan_tables_held(const struct plan_space *space)
{
    return ceil(space->each_day * space->days / space->table_takes) + 1;
}

static uint64_t power_of_two(double bytes)
{
    uint64_t size = ROW_REGION_BYTES_MIN;

    while ((double)size < bytes && size < ROW_REGION_BYTES_MAX) {
        size *= 2;
    }
    return size;
}

/* A table that about PLAN_TABLES_WANTED of hold all, by what an id takes in one of a usual size. */
static bool plan_choose_tables(struct plan *plan, char error[PLAN_ERROR_MAX])
{
    plan->memory_bytes = MEMORY_MOST;
    if (!plan_try(plan, error)) {
        return false;
    }
    for (size_t i = 0; i < plan->space_count; i++) {
        struct plan_space *space = &plan->spaces[i];
        double all = space->each_day * space->days / (1 - space->late_room);

        space->table_bytes = power_of_two(all * space->size.bytes_each / PLAN_TABLES_WANTED);
    }
    return plan_try(plan, error);
}

/* Counts as many tables as all the days take, and in memory those that were asked for. */
static bool plan_count_tables(struct plan *plan, char error[PLAN_ERROR_MAX])
{
    for (size_t i = 0; i < plan->space_count; i++) {
        struct plan_space *space = &plan->spaces[i];
        double held = plan_tables_held(space);

        if (held + 1 > TABLES_MOST) {
            return fail_with(error, PLAN_ERROR_MAX,
                             "%s: %.0f tables of the largest size would be needed", space->name,
                             held);
        }
        space->tables = (unsigned)held + 1;
        space->dumps_max = 0;
    }
    return plan_try(plan, error);
}

/* The option memory for what all comes to now, in whole steps. */
static void plan_set_memory(struct plan *plan, uint64_t buffers_bytes)
{
    uint64_t rest = plan->sum_bytes - buffers_bytes + WORKERS_BYTES;
    uint64_t with_share = rest + rest / (BUFFERS_SHARE - 1) + 1;
    uint64_t least = rest + MEMORY_STEP;

    plan->memory_bytes = with_share > least ? with_share : least;
    plan->memory_bytes = (plan->memory_bytes + MEMORY_STEP - 1) / MEMORY_STEP * MEMORY_STEP;
}

static uint64_t plan_buffers(const struct plan *plan)
{
    struct settings settings = {.memory_bytes = plan->memory_bytes};

    return settings_buffer_bytes(&settings);
}

/* What all takes beside buffers, whose size follows from the option. */
static uint64_t plan_rest(const struct plan *plan)
{
    return plan->sum_bytes - plan_buffers(plan);
}

/* ---- a memory that is not enough ---- */

/* The space with the most in memory gives a table up. False: each has the least there can be. */
static bool plan_give_one(struct plan *plan)
{
    struct plan_space *most = NULL;

    for (size_t i = 0; i < plan->space_count; i++) {
        struct plan_space *space = &plan->spaces[i];

        if (space->tables > TABLES_LEAST &&
            (most == NULL || space->size.bytes > most->size.bytes)) {
            most = space;
        }
    }
    if (most == NULL) {
        return false;
    }
    most->tables--;
    most->dumps_max++;
    return true;
}

/* Halves the tables of the space that has the largest ones. False: they are as small as can be. */
static bool plan_halve(struct plan *plan)
{
    struct plan_space *largest = &plan->spaces[0];

    for (size_t i = 1; i < plan->space_count; i++) {
        if (plan->spaces[i].table_bytes > largest->table_bytes) {
            largest = &plan->spaces[i];
        }
    }
    largest->table_bytes /= 2;
    return largest->table_bytes >= ROW_REGION_BYTES_MIN;
}

/* Fits the plan to the machine's limit: what does not fit is dumped. */
static bool plan_fit(struct plan *plan, uint64_t limit_bytes, char error[PLAN_ERROR_MAX])
{
    uint64_t buffers = limit_bytes / BUFFERS_SHARE;
    uint64_t room = limit_bytes - buffers - WORKERS_BYTES;
    char least[READABLE_MAX];

    if (limit_bytes < 4 * MEMORY_STEP) {
        return fail_with(error, PLAN_ERROR_MAX, "--memory must be at least 256MiB");
    }
    for (unsigned halved = 0; halved < HALVINGS_MAX; halved++) {
        while (plan_rest(plan) > room && plan_give_one(plan)) {
            if (!plan_try(plan, error)) {
                return false;
            }
        }
        if (plan_rest(plan) <= room) {
            plan->memory_bytes = limit_bytes;
            return plan_try(plan, error);
        }
        if (!plan_halve(plan) || !plan_try(plan, error) || !plan_count_tables(plan, error)) {
            break;
        }
    }
    return fail_with(error, PLAN_ERROR_MAX, "--memory is too little: even small tables want %s",
                     readable_bytes(least, (double)plan->sum_bytes));
}

/* ---- dates ---- */

static void plan_add_date(struct plan *plan, unsigned day)
{
    struct plan_date *date = &plan->dates[plan->date_count++];
    uint64_t disk = plan->fixed_disk_bytes;

    *date = (struct plan_date){.day = day};
    for (size_t i = 0; i < plan->space_count; i++) {
        const struct plan_space *space = &plan->spaces[i];
        double most =
            space->table_takes * (space->tables - 1 + (plan->recycle ? 0 : space->dumps_max));
        double held = fmin(space->each_day * day, most);
        unsigned tables = (unsigned)ceil(held / space->table_takes);
        unsigned room = space->tables - 1;

        date->held[i] = held;
        date->in_memory[i] = tables < room ? tables : room;
        date->on_disk[i] = tables - date->in_memory[i];
        date->used_bytes += date->in_memory[i] * space->size.table_memory;
        /* images of what is in memory, and, while a checkpoint is made, the ones before too */
        disk += (2ull * date->in_memory[i] + date->on_disk[i]) * space->size.table_memory;
    }
    date->disk_bytes = plan_has_data(plan) ? disk : 0;
}

static void plan_add_dates(struct plan *plan)
{
    static const unsigned days[] = {0, 1, 7, 30, 90, 180, 365, 730};
    unsigned last = 0;

    for (size_t i = 0; i < plan->space_count; i++) {
        last = plan->spaces[i].days > last ? plan->spaces[i].days : last;
    }
    for (size_t i = 0; i < sizeof(days) / sizeof(days[0]); i++) {
        if (days[i] < last) {
            plan_add_date(plan, days[i]);
        }
    }
    plan_add_date(plan, last);
}

/* ---- what fails first ---- */

__attribute__((format(printf, 3, 4))) static void plan_add_fail(struct plan *plan, double day,
                                                                const char *format, ...)
{
    size_t at = plan->fail_count;
    va_list arguments;

    if (at == PLAN_FAILS_MAX) {
        return;
    }
    while (at > 0 && plan->fails[at - 1].day > day) {
        plan->fails[at] = plan->fails[at - 1];
        at--;
    }
    plan->fail_count++;
    plan->fails[at].day = day;
    va_start(arguments, format);
    vsnprintf(plan->fails[at].words, PLAN_ERROR_MAX, format, arguments);
    va_end(arguments);
}

/* The day on which the directory is larger than the disk; negative: it never is. */
static double plan_disk_full(const struct plan *plan, uint64_t limit_bytes)
{
    for (size_t i = 0; i < plan->date_count; i++) {
        const struct plan_date *date = &plan->dates[i];
        const struct plan_date *before = i > 0 ? &plan->dates[i - 1] : NULL;

        if (date->disk_bytes <= limit_bytes) {
            continue;
        }
        if (before == NULL || date->disk_bytes == before->disk_bytes) {
            return date->day;
        }
        return before->day + (double)(date->day - before->day) *
                                 (double)(limit_bytes - before->disk_bytes) /
                                 (double)(date->disk_bytes - before->disk_bytes);
    }
    return -1;
}

static void plan_find_fails(struct plan *plan)
{
    char have[READABLE_MAX], need[READABLE_MAX];
    uint64_t disk = plan->options->disk_bytes;
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    double full = disk > 0 ? plan_disk_full(plan, disk) : -1;

    if (plan->memory_bytes > machine && plan->options->memory_bytes == 0) {
        plan_add_fail(plan, 0,
                      "memory: it takes %s, and this machine has %s (give --memory for "
                      "another; what does not fit then goes to the disk)",
                      readable_bytes(need, (double)plan->memory_bytes),
                      readable_bytes(have, (double)machine));
    }
    if (full >= 0) {
        plan_add_fail(plan, full,
                      "the disk: %s are full, %s are needed; writes are then refused (out of disk "
                      "space)",
                      readable_bytes(have, (double)disk),
                      readable_bytes(need, (double)plan->dates[plan->date_count - 1].disk_bytes));
    }
    for (size_t i = 0; i < plan->space_count; i++) {
        const struct plan_space *space = &plan->spaces[i];
        double tables = space->tables - 1 + (plan->recycle ? 0 : space->dumps_max);
        double days = tables * space->table_takes / space->each_day;

        plan_add_fail(plan, days, "%s: its oldest table is forgotten%s", space->name,
                      days < space->days ? ", sooner than asked for" : ", as asked for");
    }
}

/* ---- the whole ---- */

bool plan_make(const struct online_options *options, struct plan *plan, char error[PLAN_ERROR_MAX])
{
    plan->options = options;
    plan->recycle = options->recycle;
    if (options->recycle == false && !plan_has_data(plan)) {
        plan->recycle = true;
    }
    if (!plan_choose_tables(plan, error) || !plan_count_tables(plan, error)) {
        return false;
    }
    if (options->memory_bytes > 0) {
        plan_set_memory(plan, plan_buffers(plan));
        uint64_t wanted = plan->memory_bytes;

        plan->memory_bytes = MEMORY_MOST;
        if (wanted > options->memory_bytes && !plan_fit(plan, options->memory_bytes, error)) {
            return false;
        }
        plan->memory_bytes = options->memory_bytes;
    } else {
        plan_set_memory(plan, plan_buffers(plan));
    }
    if (!plan_try(plan, error)) {
        return false;
    }
    plan_add_dates(plan);
    plan_find_fails(plan);
    return true;
}
