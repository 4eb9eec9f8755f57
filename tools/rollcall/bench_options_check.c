/* What follows from the options, and whether they go together. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/rollcall/bench_dialect.h"
#include "tools/rollcall/bench_options.h"

#define RANDOM_SPAN   (1ull << 40)
#define STAMP_SHIFT   22 /* bits below the second or millisecond of an id */
#define FIRST_SECOND  1700000000ull
#define FIRST_MS      (FIRST_SECOND * 1000)
#define ID_DIGITS_MAX 19
#define PLACE         "{id}"
#define MEMBER        "{member}"
#define SLOT_DEFAULT  "like"

/* Letters that mean nothing to the protocol, its separators or a slot's dot. */
static bool name_valid(const char *name, size_t length)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    return length >= 1 && length <= BENCH_NAME_MAX && strspn(name, allowed) >= length;
}

static bool split_slots(struct bench_options *options)
{
    const char *at = options->slots;

    for (options->slot_count = 0;; at++) {
        size_t length = strcspn(at, ",");
        if (options->slot_count == BENCH_SLOTS_MAX) {
            return bench_bad("--slots: more than %u slots", BENCH_SLOTS_MAX);
        }
        if (!name_valid(at, length)) {
            return bench_bad("--slots: \"%.*s\" is not 1 to %u of a-z 0-9 _ -", (int)length, at,
                             BENCH_NAME_MAX);
        }
        memcpy(options->slot_names[options->slot_count], at, length);
        options->slot_names[options->slot_count++][length] = '\0';
        at += length;
        if (*at == '\0') {
            return true;
        }
    }
}

static bool choose_slot(struct bench_options *options)
{
    const char *wanted = *options->slot != '\0' ? options->slot : SLOT_DEFAULT;

    for (size_t i = 0; i < options->slot_count; i++) {
        if (strcmp(options->slot_names[i], wanted) == 0) {
            options->slot_chosen = i;
            return true;
        }
    }
    options->slot_chosen = 0;
    return *options->slot == '\0' || bench_bad("--slot: \"%s\" is not among --slots", wanted);
}

/* Cuts the text of an option, or what is usual of the space if it is "". A member is its end. */
static bool split_pattern(const char *option, const char *text, const char *space, bool member,
                          struct bench_pattern *pattern)
{
    char usual[BENCH_NAME_MAX + sizeof(":" PLACE ":" MEMBER)];

    snprintf(usual, sizeof(usual), "%s:" PLACE "%s", space, member ? ":" MEMBER : "");
    text = *text != '\0' ? text : usual;
    const char *place = strstr(text, PLACE);
    if (place == NULL || strstr(place + 1, PLACE) != NULL) {
        return bench_bad("--%s: \"%s\" has not exactly one {id}", option, text);
    }
    if (strchr(text, ' ') != NULL) {
        return bench_bad("--%s: \"%s\": a key holds no space", option, text);
    }
    if (strlen(text) + ID_DIGITS_MAX + 1 + BENCH_NAME_MAX > BENCH_KEY_MAX) {
        return bench_bad("--%s: keys would be longer than %u bytes", option, BENCH_KEY_MAX);
    }
    snprintf(pattern->head, sizeof(pattern->head), "%.*s", (int)(place - text), text);
    snprintf(pattern->tail, sizeof(pattern->tail), "%s", place + strlen(PLACE));
    if (!member) {
        return true;
    }
    size_t length = strlen(pattern->tail), between = length - strlen(MEMBER);
    if (length <= strlen(MEMBER) || strcmp(pattern->tail + between, MEMBER) != 0) {
        return bench_bad("--%s: \"%s\" has not {id}, something between and {member} at its end",
                         option, text);
    }
    pattern->tail[between] = '\0';
    return true;
}

static bool split_keys(struct bench_options *options)
{
    bool member = options->workload == BENCH_EXIST && !options->members_apart;

    return split_pattern("key", options->key, options->space, member, &options->record) &&
           split_pattern("exist-key", options->exist_key, options->exist_space, true,
                         &options->member);
}

/* The largest id of the population must be one. */
static bool place_ids(struct bench_options *options)
{
    static const uint64_t firsts[] = {1, FIRST_SECOND << STAMP_SHIFT, FIRST_MS << STAMP_SHIFT, 0};
    uint64_t stamps_a_second = options->shape == BENCH_MS ? 1000 : 1;
    bool mix = options->workload == BENCH_MIX;
    unsigned __int128 span = options->ids + (mix ? BENCH_MIX_IDS_MAX : 0);

    if (options->first == UINT64_MAX) {
        options->first = firsts[options->shape];
    }
    if (options->shape == BENCH_RANDOM) {
        span = RANDOM_SPAN;
    } else if (options->shape != BENCH_DENSE) {
        span = ((span * stamps_a_second / options->per_second) + 1) << STAMP_SHIFT;
    }
    if (options->shape == BENCH_RANDOM && options->ids > RANDOM_SPAN) {
        return bench_bad("--ids: more than 2^40 random ids below 2^40");
    }
    if (options->first + span > BENCH_ID_MAX) {
        return bench_bad("--first, --ids: the last id would be above 2^63-1");
    }
    return true;
}

static bool take_shares(struct bench_options *options)
{
    char error[BENCH_SHARES_ERROR_MAX];

    options->shares = bench_shares_default();
    return *options->mix == '\0' || bench_shares_parse(options->mix, &options->shares, error) ||
           bench_bad("--mix: %s", error);
}

static bool space_valid(const char *option, const char *name)
{
    return name_valid(name, strlen(name)) ||
           bench_bad("--%s: \"%s\" is not 1 to %u of a-z 0-9 _ -", option, name, BENCH_NAME_MAX);
}

/* Returns whether the options go together; what does not was said. */
static bool options_fit(const struct bench_options *options)
{
    bool mix = options->workload == BENCH_MIX;
    uint64_t batch_keys = options->pipeline * options->page_ids * options->slot_count;
    const struct {
        bool wrong;
        const char *what;
    } rules[] = {
        {mix && options->protocol != BENCH_TEXT, "--protocol: the workload mix is for text only"},
        {mix && options->threads != 1, "--threads: the workload mix has one only"},
        {mix && options->shape == BENCH_RANDOM,
         "--shape random: ids that grow are dense, seconds or ms"},
        {options->requests != UINT64_MAX && options->seconds != 0,
         "--requests and --seconds: only one of them"},
        {options->rate != 0 && options->rate < options->pipeline,
         "--rate: less than one batch a second"},
        {options->requests == 0 && !options->load, "--requests 0 without --load: nothing to do"},
        {options->threads > options->connections, "--threads: more than --connections to share"},
        {options->connections * batch_keys > BENCH_IN_FLIGHT_MAX,
         "--connections x --pipeline x --page-ids x slots: more than 10 million keys in flight"},
    };

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (rules[i].wrong) {
            return bench_bad("%s", rules[i].what);
        }
    }
    return true;
}

bool bench_options_complete(struct bench_options *options)
{
    const struct bench_kit *kit = options->kit;

    if (options->address == NULL) {
        options->address = kit->dialects[options->protocol]->address;
    }
    if (*options->space == '\0') {
        strcpy(options->space, options->workload == BENCH_EXIST ? "liked" : "feed");
    }
    if (options->requests == UINT64_MAX && options->seconds == 0) {
        options->seconds = BENCH_SECONDS_DEFAULT;
    }
    return (kit->complete == NULL || kit->complete(options)) &&
           space_valid("space", options->space) &&
           space_valid("exist-space", options->exist_space) && split_slots(options) &&
           choose_slot(options) && split_keys(options) && take_shares(options) &&
           options_fit(options) && place_ids(options);
}
