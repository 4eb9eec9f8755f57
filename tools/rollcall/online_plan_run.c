/* online_plan_run.c: rollcall plan: what was asked for, or is as a running daemon has it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/readable.h"
#include "tools/rollcall/online.h"
#include "tools/rollcall/online_plan.h"
#include "tools/rollcall/online_view.h"
#include "tools/rollcall/verb.h"

#define DAY_S             86400.0
#define DAYS_DEFAULT      30
#define TABLE_BYTES_FIRST (64ull << 20) /* for a first idea of what an id takes */
#define TABLES_FIRST      8

/* "repost:14,like:18" or "repost:14 like:18" as {repost: 14, like: 18}. */
static bool plan_take_slots(const char *text, struct plan *plan)
{
    size_t used = 0;
    size_t count = 0;

    while (*text != '\0') {
        size_t name = strcspn(text, ":, ");
        size_t bits = text[name] == ':' ? strcspn(text + name + 1, ", ") : 0;
        uint64_t number = 0;

        if (name == 0 || name > ENGINE_SPACE_NAME_MAX || count == ENGINE_SLOTS_MAX ||
            !num_parse(text + name + 1, bits, &number) || number < SETTINGS_SLOT_BITS_MIN ||
            number > SETTINGS_SLOT_BITS_MAX) {
            verb_complain(stderr,
                          "--slots must be at most %u of NAME:BITS with commas between, BITS from "
                          "%u to %u: look at \"%s\"",
                          ENGINE_SLOTS_MAX, SETTINGS_SLOT_BITS_MIN, SETTINGS_SLOT_BITS_MAX, text);
            return false;
        }
        used += (size_t)snprintf(plan->slots + used, sizeof(plan->slots) - used, "%s%.*s: %" PRIu64,
                                 count++ > 0 ? ", " : "{", (int)name, text, number);
        text += name + 1 + bits;
        text += *text != '\0';
    }
    snprintf(plan->slots + used, sizeof(plan->slots) - used, "}");
    return count > 0;
}

static void plan_add_space(struct plan *plan, const char *name, enum space_kind kind,
                           double each_day, unsigned days)
{
    struct plan_space *space = &plan->spaces[plan->space_count++];

    *space = (struct plan_space){.kind = kind,
                                 .each_day = each_day,
                                 .days = days > 0 ? days : DAYS_DEFAULT,
                                 .table_bytes = TABLE_BYTES_FIRST,
                                 .tables = TABLES_FIRST};
    snprintf(space->name, sizeof(space->name), "%s", name);
}

/* ---- from a daemon ---- */

/* The space of the kind that takes most new ids; NULL: none does, or it is not known yet. */
static const json_t *plan_find(const json_t *view, const char *kind)
{
    const json_t *found = NULL;
    json_t *space;
    size_t i;

    json_array_foreach(json_object_get(view, "spaces"), i, space)
    {
        if (strcmp(online_text(space, "kind"), kind) == 0 &&
            !json_is_true(json_object_get(space, "any_ids")) &&
            online_real(space, "added_each_s") > 0 &&
            (found == NULL ||
             online_real(space, "added_each_s") > online_real(found, "added_each_s"))) {
            found = space;
        }
    }
    return found;
}

/* A plan has one space of a kind: says which others the daemon has, so that nobody thinks they are
 * in it. */
static void plan_say_left_out(const json_t *view, const json_t *counters, const json_t *members)
{
    char rate[READABLE_MAX];
    json_t *space;
    size_t i;

    json_array_foreach(json_object_get(view, "spaces"), i, space)
    {
        double added = online_real(space, "added_each_s");

        if (space == counters || space == members || added == 0 || online_newest(space) == NULL) {
            continue;
        }
        if (added > 0) {
            verb_complain(stderr, "%s is not in the plan: it takes %s new ids a day",
                          online_text(space, "name"), readable_count(rate, added * DAY_S));
        } else {
            verb_complain(stderr,
                          "%s is not in the plan: how many new ids it takes is not known yet; its "
                          "status page knows a minute after the start",
                          online_text(space, "name"));
        }
    }
}

static double plan_rate(const json_t *space)
{
    return space != NULL ? online_real(space, "added_each_s") * DAY_S : 0;
}

/* NULL: told. */
static json_t *plan_ask(const struct online_options *options, enum exit_status *status)
{
    struct online_target target = options->target;
    char error[ONLINE_ERROR_MAX];

    target.wire.server = options->from;
    json_t *view = online_view(&target, ONLINE_NEWEST, false, status, error);

    if (view != NULL && plan_find(view, "counter") == NULL && plan_find(view, "phantom") == NULL &&
        options->ids_per_day == 0 && options->pairs_per_day == 0) {
        verb_complain(stderr,
                      "%s has no space that has taken new ids for some time: give "
                      "--ids-per-day or --pairs-per-day",
                      options->from);
        *status = EXIT_STATUS_FAILED;
        json_decref(view);
        return NULL;
    }
    return view;
}

/* What is planned: as given, else as the daemon has it. view: may be NULL. */
static bool plan_collect(const struct online_options *options, const json_t *view,
                         struct plan *plan)
{
    const json_t *counters = plan_find(view, "counter");
    const json_t *members = plan_find(view, "phantom");
    double ids = options->ids_per_day > 0 ? (double)options->ids_per_day : plan_rate(counters);
    double pairs = options->pairs_per_day > 0 ? (double)options->pairs_per_day : plan_rate(members);
    const char *slots = options->slots != NULL ? options->slots : online_text(counters, "slots");

    if (ids > 0 && *slots == '\0') {
        verb_complain(stderr,
                      "--ids-per-day needs the counters of an id: --slots repost:14,like:18");
        return false;
    }
    if (ids > 0) {
        if (!plan_take_slots(slots, plan)) {
            return false;
        }
        plan_add_space(plan, counters != NULL ? online_text(counters, "name") : "feed",
                       SPACE_COUNTER, ids, options->days);
    }
    if (pairs > 0) {
        plan_add_space(plan, members != NULL ? online_text(members, "name") : "liked",
                       SPACE_PHANTOM, pairs,
                       options->pairs_days > 0 ? options->pairs_days : options->days);
    }
    plan_say_left_out(view, counters, members);
    if (plan->space_count == 0) {
        verb_complain(stderr, "nothing to plan for: give --ids-per-day 200M --days 90 --slots "
                              "repost:14,like:18, or --from HOST");
    }
    return plan->space_count > 0;
}

static int plan_run_one(const struct online_options *options, const json_t *view, struct plan *plan)
{
    char error[PLAN_ERROR_MAX];

    if (!plan_collect(options, view, plan)) {
        return EXIT_STATUS_USAGE;
    }
    if (!plan_make(options, plan, error)) {
        return (int)verb_complain(stderr, "%s", error);
    }
    if (options->json) {
        json_t *json = plan_json(plan);

        json_dumpf(json, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
        putchar('\n');
        json_decref(json);
    } else {
        plan_print(plan);
    }
    return EXIT_STATUS_DONE;
}

static int plan_run(const struct online_options *options)
{
    struct plan *plan = memory_zalloc(sizeof(*plan));
    enum exit_status asked = EXIT_STATUS_DONE;
    json_t *view = options->from != NULL ? plan_ask(options, &asked) : NULL;
    int status = (int)asked;

    if (asked == EXIT_STATUS_DONE) {
        status = plan_run_one(options, view, plan);
    }
    json_decref(view);
    free(plan);
    return status;
}

static const char *const plan_takes[] = {"ids-per-day",
                                         "days",
                                         "slots",
                                         "id-spacing",
                                         "pairs-per-day",
                                         "pairs-days",
                                         "false-positives",
                                         "deletes",
                                         "memory",
                                         "disk",
                                         "data",
                                         "recycle",
                                         "from",
                                         "auth-file",
                                         "tls",
                                         "tls-ca",
                                         "tls-cert",
                                         "tls-key",
                                         "timeout",
                                         "json",
                                         NULL};

const struct online_verb verb_plan = {
    .name = "plan",
    .words = "",
    .does = "Prints how many tables, how much memory and disk so many new ids and pairs a day "
            "take, at which\ndate, what comes to its end first, and a configuration for it: "
            "the output is a file that\nrollcalld reads, the report its comments.",
    .examples = "  rollcall plan --ids-per-day 20M --days 30 --slots repost:14,like:18\n"
                "  rollcall plan --ids-per-day 200M --days 90 --slots repost:14,like:18 \\\n"
                "      --pairs-per-day 2G --pairs-days 7 --memory 64G --disk 2T >rollcall.yaml\n"
                "  rollcall plan --from 10.0.0.5:11211 --days 90\n",
    .takes = plan_takes,
    .run = plan_run,
    .no_server = true,
};
