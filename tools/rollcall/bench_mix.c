#include "tools/rollcall/bench_mix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "tools/rollcall/bench_random.h"

#define KIND_BITS   8
#define ABOUT_BITS  8
#define DELTA_BYTES 4u /* ",16" */
#define FORMS       ((size_t)BENCH_KINDS * BENCH_ABOUT_MAX)
#define TOO_OLD     "CLIENT_ERROR id below the oldest table"

/* What requests of a kind are about, beside their ids. */
enum about { ABOUT_RECORD, ABOUT_SLOT, ABOUT_SLOTS, ABOUT_MEMBER };

static const struct kind {
    enum bench_verb verb;
    enum about about;
    bool many; /* ids */
} kinds[BENCH_KINDS] = {
    [BENCH_KIND_PAGE] = {BENCH_VERB_GET, ABOUT_RECORD, true},
    [BENCH_KIND_RECORD] = {BENCH_VERB_GET, ABOUT_RECORD, false},
    [BENCH_KIND_SLOT] = {BENCH_VERB_GET, ABOUT_SLOT, false},
    [BENCH_KIND_INCR] = {BENCH_VERB_INCR, ABOUT_SLOT, false},
    [BENCH_KIND_SEVERAL] = {BENCH_VERB_INCR, ABOUT_SLOTS, false},
    [BENCH_KIND_CREATE] = {BENCH_VERB_SET, ABOUT_RECORD, false},
    [BENCH_KIND_DELETE] = {BENCH_VERB_DELETE, ABOUT_RECORD, false},
    [BENCH_KIND_EXIST] = {BENCH_VERB_GET, ABOUT_MEMBER, true},
    [BENCH_KIND_LIKE] = {BENCH_VERB_ADD, ABOUT_MEMBER, false},
    [BENCH_KIND_UNLIKE] = {BENCH_VERB_DELETE, ABOUT_MEMBER, false},
};

/* How many slots or members requests of a kind are about. */
static uint64_t abouts(const struct bench_options *options, enum bench_kind kind)
{
    switch (kinds[kind].about) {
    case ABOUT_SLOT:
    case ABOUT_SLOTS:
        return options->slot_count;
    case ABOUT_MEMBER:
        return options->members;
    case ABOUT_RECORD:
        break;
    }
    return 1;
}

/* " ,,3,4\r\n": what each slot grows by, from `first` on. Freed with the form. */
static char *deltas_from(const struct bench_options *options, size_t first)
{
    size_t bytes = options->slot_count * DELTA_BYTES + sizeof(" \r\n");
    char *text = memory_zalloc(bytes), *at = text;

    for (size_t i = 0; i < options->slot_count; i++) {
        *at++ = i == 0 ? ' ' : ',';
        if (i >= first) {
            at += snprintf(at, DELTA_BYTES, "%u", (unsigned)bench_mix_delta(i));
        }
    }
    memcpy(at, "\r\n", 2);
    return text;
}

static struct bench_workload *form_create(const struct bench_options *options, enum bench_kind kind,
                                          size_t about)
{
    const struct kind *of = &kinds[kind];
    const struct bench_pattern *pattern =
        of->about == ABOUT_MEMBER ? &options->member : &options->record;
    struct bench_workload *form =
        bench_workload_begin(options, of->verb, pattern, of->many ? options->page_ids : 1);
    char number[BENCH_NUMBER_TEXT_MAX + 1];

    form->verify = options->verify == BENCH_OFF ? BENCH_OFF : BENCH_FORM;
    snprintf(number, sizeof(number), "%zu", about);
    if (of->about == ABOUT_SLOT) {
        bench_workload_add_key(form, (int)about, ".", options->slot_names[about]);
    } else if (of->about == ABOUT_MEMBER) {
        bench_workload_add_key(form, 0, "u", number);
    } else {
        bench_workload_add_key(form, BENCH_SLOT_WHOLE, "", "");
    }
    if (of->about == ABOUT_SLOTS) {
        form->end = form->state = deltas_from(options, about);
    }
    return form;
}

struct bench_mix *bench_mix_create(const struct bench_options *options)
{
    struct bench_mix *mix = memory_zalloc(sizeof(*mix));
    uint64_t start = options->load ? options->ids : 0;

    mix->options = options;
    mix->random = bench_random_state(options->seed);
    bench_feed_init(&mix->feed, start, start + BENCH_MIX_IDS_MAX, options->window);
    mix->feed.late = options->late;
    mix->feed.old = options->old;
    mix->feed.seed = options->seed;
    for (enum bench_kind kind = 0; kind < BENCH_KINDS; kind++) {
        for (size_t about = 0; about < abouts(options, kind); about++) {
            mix->forms[kind][about] = form_create(options, kind, about);
        }
    }
    if (options->kit->watch != NULL) {
        mix->watcher = options->kit->watch->create(mix);
    }
    return mix;
}

/* NULL: requests of this kind are about fewer. */
static struct bench_workload *form_at(const struct bench_mix *mix, size_t i)
{
    return mix->forms[i / BENCH_ABOUT_MAX][i % BENCH_ABOUT_MAX];
}

void bench_mix_destroy(struct bench_mix *mix)
{
    if (mix == NULL) {
        return;
    }
    if (mix->watcher != NULL) {
        mix->options->kit->watch->destroy(mix->watcher);
    }
    for (size_t i = 0; i < FORMS; i++) {
        bench_workload_destroy(form_at(mix, i));
    }
    free(mix);
}

size_t bench_mix_words(const struct bench_mix *mix)
{
    return 1 + mix->options->page_ids;
}

size_t bench_mix_bytes_max(const struct bench_mix *mix)
{
    size_t most = 0;

    for (size_t i = 0; i < FORMS; i++) {
        const struct bench_workload *form = form_at(mix, i);
        size_t bytes = form != NULL ? bench_workload_bytes_max(form) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

static uint64_t pick_id(struct bench_mix *mix, const struct bench_asked *asked)
{
    uint64_t index = asked->kind == BENCH_KIND_CREATE
                         ? bench_feed_next(&mix->feed)
                         : bench_feed_draw(&mix->feed, bench_random_next(&mix->random));

    return mix->watcher != NULL ? mix->options->kit->watch->pick(mix->watcher, asked, index)
                                : bench_workload_id(mix->options, index);
}

size_t bench_mix_compose(struct bench_mix *mix, uint64_t lane, char *out, uint64_t *words)
{
    struct bench_asked asked = {.mix = mix, .lane = lane};

    asked.kind = bench_shares_draw(&mix->options->shares, bench_random_next(&mix->random));
    asked.about =
        (uint32_t)bench_scale(bench_random_next(&mix->random), abouts(mix->options, asked.kind));
    const struct bench_workload *form = mix->forms[asked.kind][asked.about];
    words[0] = asked.kind | (uint64_t)asked.about << KIND_BITS | lane << (KIND_BITS + ABOUT_BITS);
    for (uint64_t i = 1; i <= form->ids; i++) {
        words[i] = pick_id(mix, &asked);
    }
    char *end = form->verb == BENCH_VERB_SET
                    ? form->dialect->set(form, &form->keys[0], words[1], out)
                    : form->dialect->ask(form, words + 1, out);
    return (size_t)(end - out);
}

size_t bench_mix_judge(struct bench_mix *mix, const uint64_t *words, const char *bytes,
                       size_t length, struct bench_reply *reply, struct bench_tally *tally)
{
    const struct bench_asked asked = {
        .mix = mix,
        .kind = (enum bench_kind)(words[0] & ((1u << KIND_BITS) - 1)),
        .about = (uint32_t)(words[0] >> KIND_BITS & ((1u << ABOUT_BITS) - 1)),
        .lane = words[0] >> (KIND_BITS + ABOUT_BITS),
    };
    struct bench_judged judged = {
        .workload = mix->forms[asked.kind][asked.about],
        .ids = words + 1,
        .asked = &asked,
        .item = {.line = bytes},
        .reply = reply,
        .tally = tally,
    };
    struct bench_kind_tally *kind = &tally->kinds[asked.kind];
    const struct bench_kind_tally before = bench_tally_sums(tally);
    size_t taken = bench_judge(&judged, bytes, length);
    const struct bench_kind_tally after = bench_tally_sums(tally);

    kind->requests += after.requests - before.requests;
    kind->operations += after.operations - before.operations;
    kind->hits += after.hits - before.hits;
    kind->misses += after.misses - before.misses;
    kind->errors += after.errors - before.errors;
    return taken;
}

void bench_mix_answered(const struct bench_judged *judged, uint64_t key, bool yes)
{
    const struct bench_mix *mix = judged->asked->mix;

    if (mix->watcher != NULL) {
        mix->options->kit->watch->answered(mix->watcher, judged, key, yes);
    }
}

bool bench_mix_expects(const struct bench_judged *judged)
{
    const struct bench_feed *feed = &judged->asked->mix->feed;

    return feed->clock > feed->window && bench_item_is(&judged->item, TOO_OLD) &&
           judged->ids[0] <
               bench_workload_id(judged->workload->options, feed->clock - feed->window);
}
