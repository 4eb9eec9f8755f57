/* The options of the comparisons: which go together, and what they change in the common part. */
#include "tests/load/kit.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "tools/rollcall/bench_random.h"

#define HUNDREDTHS 100u
#define AT(field)  offsetof(struct load_options, field)

static const char *const layouts[] = {"records", "slots", "hash", "hash-all", "sets", NULL};

static const char *const protocols[] = {"text", "binary", "redis", NULL};

static const struct option_row rows[] = {
    {"protocol", ARGUMENTS_WORD(struct load_options, common.protocol, protocols), .initial = "text",
     .help = "dialect of the requests; mix: text only"},
    {"layout", ARGUMENTS_WORD(struct load_options, layout, layouts), .initial = "records",
     .help = "records: a key an id; slots: a key a slot, to load and read other servers; with "
             "--protocol redis also hash: a hash an id, a field a slot; hash-all: the same, read "
             "by HGETALL; sets: exist, a set an id"},
    {"zipf", BENCH_STRING(struct load_options, theta),
     .help = "draw ids by Zipf's law, with a theta of 0.01 to 2.00; without, all alike; not mix"},
    {"cpus", BENCH_STRING(struct load_options, cpus),
     .help = "processors the threads are kept on, in turns, like 1 or 0,2-5"},
    {"rounds", ARGUMENTS_NUMBER(struct load_options, rounds, 1, LOAD_ROUNDS_MAX),
     .help = "cold: so often --seconds without and --seconds with reads of old ids (5), --old per "
             "cent of --rate (8000); the others are of the newest --window"},
    {.name = NULL},
};

static const struct bench_dialect *const dialects[] = {
    &bench_dialect_text,
    &bench_dialect_binary,
    &load_dialect_redis,
};

const struct load_options *load_options_of(const struct bench_options *common)
{
    CHECK(common->kit == &load_kit);
    return (const struct load_options *)common;
}

/* Do the protocol, the layout and the workload go together? */
static bool fits_protocol(const struct load_options *options)
{
    const struct bench_options *common = &options->common;
    bool redis = dialects[common->protocol] == &load_dialect_redis;
    bool one_slot = common->workload == BENCH_INCR || common->workload == BENCH_SLOT;
    bool exist = common->workload == BENCH_EXIST || common->workload == BENCH_MIX;
    const char *layout = layouts[options->layout];

    if (options->layout >= LOAD_HASH && !redis) {
        return bench_bad("--layout %s: with --protocol redis only", layout);
    }
    if (options->layout == LOAD_SETS && common->workload != BENCH_EXIST) {
        return bench_bad("--layout sets: for the workload exist only");
    }
    if (exist && options->layout != LOAD_RECORDS && options->layout != LOAD_SETS) {
        return bench_bad("--layout %s: existence keys have no slots", layout);
    }
    if (redis && one_slot && options->layout == LOAD_RECORDS && common->requests != 0) {
        return bench_bad("--layout records: with --protocol redis a record is a string, whose "
                         "numbers incr and slot cannot reach");
    }
    if (common->workload == BENCH_MIX && options->zipf != 0) {
        return bench_bad("--zipf: the workload mix draws ids in its own way");
    }
    return true;
}

/* A number with up to two digits after the point, in hundredths. */
static bool take_theta(struct load_options *options)
{
    const char *text = options->theta;
    size_t length = strcspn(text, ".");
    const char *after = text[length] == '.' ? text + length + 1 : "0";
    size_t digits = strlen(after);
    uint64_t whole = 0, part = 0;
    bool ok = num_parse(text, length, &whole) && digits <= 2 && num_parse(after, digits, &part) &&
              whole <= LOAD_ZIPF_MAX / HUNDREDTHS;

    options->zipf = ok ? whole * HUNDREDTHS + (digits == 1 ? part * 10 : part) : 0;
    return (options->zipf >= 1 && options->zipf <= LOAD_ZIPF_MAX) ||
           bench_bad("--zipf: \"%s\" is not a number from 0.01 to %.2f with at most two decimals",
                     text, (double)LOAD_ZIPF_MAX / HUNDREDTHS);
}

static bool complete(struct bench_options *common)
{
    struct load_options *options = (struct load_options *)common;
    char error[LOAD_CPUS_ERROR_MAX];

    if ((*options->theta != '\0' && !take_theta(options)) || !fits_protocol(options)) {
        return false;
    }
    if (*options->cpus != '\0' && !load_cpus_parse_here(options->cpus, &options->pins, error)) {
        return bench_bad("--cpus: %s", error);
    }
    if (options->zipf != 0) {
        load_zipf_init(&options->draws, options->zipf, common->ids);
    }
    common->members_apart = options->layout == LOAD_SETS;
    return true;
}

/* By slots an id has a key for each; in a hash the slot that is asked for is no part of the key. */
static bool add_keys(struct bench_workload *workload, bool load)
{
    const struct bench_options *common = workload->options;
    const struct load_options *options = load_options_of(common);
    bool hash = options->layout == LOAD_HASH || options->layout == LOAD_HASH_ALL;
    bool one_slot = !load && (common->workload == BENCH_INCR || common->workload == BENCH_SLOT);

    if (hash && one_slot) {
        bench_workload_add_key(workload, (int)common->slot_chosen, "", "");
        return true;
    }
    if (options->layout != LOAD_SLOTS || one_slot) {
        return false;
    }
    for (size_t i = 0; i < common->slot_count; i++) {
        bench_workload_add_key(workload, (int)i, ".", common->slot_names[i]);
    }
    return true;
}

static uint64_t draw(const struct bench_options *common, uint64_t drawn, uint64_t *random)
{
    const struct load_options *options = load_options_of(common);

    if (options->zipf == 0) {
        return bench_scale(drawn, common->ids);
    }
    return load_zipf_place(&options->draws, load_zipf_rank(&options->draws, random));
}

static int begin_thread(const struct bench_options *common, uint64_t thread)
{
    return load_cpus_pin(&load_options_of(common)->pins, thread);
}

static void report(const struct bench_options *common, json_t *object)
{
    const struct load_options *options = load_options_of(common);

    json_object_set_new(object, "layout", json_string(layouts[options->layout]));
    json_object_set_new(object, "zipf", json_real((double)options->zipf / HUNDREDTHS));
    if (*options->cpus != '\0') {
        json_object_set_new(object, "cpus", json_string(options->cpus));
    }
}

const struct bench_kit load_kit = {
    .dialects = dialects,
    .protocols = protocols,
    .options_bytes = sizeof(struct load_options),
    .options = rows,
    .complete = complete,
    .add_keys = add_keys,
    .draw = draw,
    .begin_thread = begin_thread,
    .report = report,
    .watch = &load_watch,
};
