/*
 * watch.c: remembers what mix wrote, so that its answers are judged exactly.
 *
 * One created id in KEPT_ONE_IN is *kept*, which a hash of the id says: only the connection that
 * created it changes it, and the newest of each connection are remembered with all they hold.
 * Requests of a connection are carried out in their order and judged in it, so each answer to a
 * kept id must be exactly what was remembered when it is judged: a value off by one, a record that
 * is gone, a member denied or deleted in vain is a mismatch. A kept id is asked for only while it
 * is among the newest of the window: older ones a server may have recycled. A member of a kept id
 * that was never added and is found is counted as wrong, as in the workload exist.
 *
 * Nobody else may write to these ids, and they must be new to the server: members are not unset by
 * creating an id again. Memory: window / KEPT_ONE_IN kept ids of 160 bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/num.h"
#include "tests/load/kit.h"
#include "tools/rollcall/bench_random.h"

#define KEPT_ONE_IN       16u
#define KEPT_DRAWN_ONE_IN 8u /* one in so many keys is a kept one */
#define KEPT_A_LANE_MIN   4u
#define VALUES_TEXT_MAX   (BENCH_SLOTS_MAX * (NUM_DIGITS_MAX + 1))

/* An id that one lane alone changes, and what it holds. */
struct kept {
    uint64_t id;
    uint32_t set;     /* bits of slots that are set */
    uint32_t added;   /* bits of members that are there */
    uint32_t deleted; /* bits of members that were deleted and not added since */
    bool used;
    uint64_t values[BENCH_SLOTS_MAX];
};

/* The kept ids of each connection, each in the place that its hash says. */
struct watcher {
    const struct bench_mix *mix;
    uint64_t random;
    uint64_t kept_a_lane;
    struct kept *kept;
};

static void *watch_create(const struct bench_mix *mix)
{
    const struct bench_options *options = mix->options;

    if (options->verify != BENCH_VALUES) {
        return NULL;
    }
    struct watcher *watcher = memory_zalloc(sizeof(*watcher));
    watcher->mix = mix;
    watcher->random = bench_random_state(~options->seed);
    watcher->kept_a_lane = options->window / KEPT_ONE_IN / options->connections;
    if (watcher->kept_a_lane < KEPT_A_LANE_MIN) {
        watcher->kept_a_lane = KEPT_A_LANE_MIN;
    }
    watcher->kept =
        memory_zalloc(options->connections * watcher->kept_a_lane * sizeof(*watcher->kept));
    return watcher;
}

static void watch_destroy(void *context)
{
    struct watcher *watcher = context;

    free(watcher->kept);
    free(watcher);
}

static bool is_kept(uint64_t id)
{
    return bench_scale(hash_u64(id), KEPT_ONE_IN) == 0;
}

static struct kept *place_of(const struct watcher *watcher, uint64_t lane, uint64_t place)
{
    CHECK(lane < watcher->mix->options->connections && place < watcher->kept_a_lane);
    return &watcher->kept[lane * watcher->kept_a_lane + place];
}

static struct kept *home_of(const struct watcher *watcher, uint64_t lane, uint64_t id)
{
    return place_of(watcher, lane, hash_u64(~id) % watcher->kept_a_lane);
}

/* A kept id of the lane, now and then, if the place drawn holds one that is new enough. */
static const struct kept *draw_kept(struct watcher *watcher, uint64_t lane)
{
    const struct bench_feed *feed = &watcher->mix->feed;
    uint64_t random = bench_random_next(&watcher->random);

    if (random % KEPT_DRAWN_ONE_IN != 0) {
        return NULL;
    }
    const struct kept *kept = place_of(watcher, lane, bench_scale(random, watcher->kept_a_lane));
    uint64_t oldest = feed->clock > feed->window ? feed->clock - feed->window : 0;
    return kept->used && kept->id >= bench_workload_id(watcher->mix->options, oldest) ? kept : NULL;
}

/* Only kept ids of the lane's own are changed. */
static uint64_t watch_pick(void *context, const struct bench_asked *asked, uint64_t index)
{
    struct watcher *watcher = context;
    const struct bench_options *options = watcher->mix->options;
    enum bench_kind kind = asked->kind;
    bool reads = kind == BENCH_KIND_PAGE || kind == BENCH_KIND_RECORD || kind == BENCH_KIND_SLOT ||
                 kind == BENCH_KIND_EXIST;
    uint64_t id = bench_workload_id(options, index);

    if (kind == BENCH_KIND_CREATE) {
        return id;
    }
    const struct kept *kept = draw_kept(watcher, asked->lane);
    if (kept != NULL) {
        return kept->id;
    }
    while (!reads && is_kept(id)) {
        id = bench_workload_id(options, ++index);
    }
    return id;
}

static void mismatch(const struct bench_judged *judged, const char *what)
{
    bench_tally_mismatch(judged->tally, what, judged->item.line, judged->item.line_length);
}

/* The answer to a kept id must have been as it says. */
static void demand(const struct bench_judged *judged, bool right, const char *what)
{
    judged->tally->checked++;
    if (!right) {
        mismatch(judged, what);
    }
}

/* Is that what a get answers: the values of some slots? An unset one is empty. */
static bool holds(const struct kept *kept, size_t from, size_t to, const char *bytes, size_t length)
{
    char text[VALUES_TEXT_MAX], *at = text;

    for (size_t i = from; i < to; i++) {
        if (kept->set >> i & 1) {
            at += num_print(at, kept->values[i]);
        }
        *at++ = ',';
    }
    return length == (size_t)(at - text) - 1 && memcmp(bytes, text, length) == 0;
}

/* A member of a kept id that was never added may be found now and then. */
static void judge_member(const struct bench_judged *judged, const struct kept *kept, uint32_t bit,
                         bool found)
{
    if (kept->added & bit) {
        demand(judged, found, "a member that was added is denied: ");
    } else if (kept->deleted & bit) {
        demand(judged, !found, "a deleted member is found: ");
    } else {
        judged->tally->foreign++;
        judged->tally->wrong += found;
    }
}

static void judge_slot(const struct bench_judged *judged, const struct kept *kept, uint32_t slot,
                       bool found)
{
    const struct bench_item *item = &judged->item;
    bool set = (kept->set >> slot & 1) != 0;

    demand(judged, found == set, found ? "an unset slot: " : "a slot that was set is missing: ");
    if (found && set) {
        demand(judged, holds(kept, slot, slot + 1, item->data, item->data_length), "wrong value: ");
    }
}

static void judge_record(const struct bench_judged *judged, const struct kept *kept, bool found)
{
    const struct bench_item *item = &judged->item;
    size_t slots = judged->workload->options->slot_count;

    demand(judged, found == (kept->set != 0),
           found ? "a deleted record: " : "a record is missing: ");
    if (found) {
        demand(judged, holds(kept, 0, slots, item->data, item->data_length), "wrong record: ");
    }
}

/* Increments of the slots from `from` up to `to`: each by its delta, or one alone by 1. */
static void judge_incr(const struct bench_judged *judged, struct kept *kept, size_t from, size_t to,
                       bool yes)
{
    const struct bench_item *item = &judged->item;
    bool several = judged->asked->kind == BENCH_KIND_SEVERAL;
    uint32_t named = (uint32_t)((1ull << to) - (1ull << from));

    if (!yes) {
        demand(judged, (kept->set & named) != named, "incr: what was set is missing: ");
        return;
    }
    for (size_t i = from; i < to; i++) {
        uint64_t before = kept->set >> i & 1 ? kept->values[i] : 0;
        kept->values[i] = before + (several ? bench_mix_delta(i) : 1);
    }
    kept->set |= named;
    demand(judged, holds(kept, several ? 0 : from, to, item->line, item->line_length),
           "incr: wrong value: ");
}

/* What was created is remembered, in place of an older one. */
static void remember(const struct watcher *watcher, const struct bench_judged *judged)
{
    uint64_t id = judged->ids[0];
    size_t slots = watcher->mix->options->slot_count;
    struct kept *kept = home_of(watcher, judged->asked->lane, id);

    if (!is_kept(id)) {
        return;
    }
    *kept = (struct kept){.id = id, .set = (uint32_t)((1ull << slots) - 1), .used = true};
    for (size_t i = 0; i < slots; i++) {
        kept->values[i] = bench_workload_value(id, i);
    }
}

static void judge_kept(const struct bench_judged *judged, struct kept *kept, bool yes)
{
    uint32_t about = judged->asked->about, bit = 1u << about;

    switch (judged->asked->kind) {
    case BENCH_KIND_PAGE:
    case BENCH_KIND_RECORD:
        judge_record(judged, kept, yes);
        break;
    case BENCH_KIND_SLOT:
        judge_slot(judged, kept, about, yes);
        break;
    case BENCH_KIND_INCR:
        judge_incr(judged, kept, about, about + 1, yes);
        break;
    case BENCH_KIND_SEVERAL:
        judge_incr(judged, kept, about, judged->workload->options->slot_count, yes);
        break;
    case BENCH_KIND_DELETE:
        demand(judged, yes == (kept->set != 0), "delete: wrong answer: ");
        kept->set = 0;
        break;
    case BENCH_KIND_EXIST:
        judge_member(judged, kept, bit, yes);
        break;
    case BENCH_KIND_LIKE: /* yes: it was not there before */
        judge_member(judged, kept, bit, !yes);
        kept->added |= bit;
        kept->deleted &= ~bit;
        break;
    case BENCH_KIND_UNLIKE:
        judge_member(judged, kept, bit, yes);
        kept->deleted |= yes ? bit : 0;
        kept->added &= ~bit;
        break;
    case BENCH_KIND_CREATE:
    case BENCH_KINDS:
        break;
    }
}

static void watch_answered(void *context, const struct bench_judged *judged, uint64_t key, bool yes)
{
    const struct watcher *watcher = context;
    uint64_t id = bench_id_at(judged, key);
    struct kept *kept = home_of(watcher, judged->asked->lane, id);

    if (judged->asked->kind == BENCH_KIND_CREATE) {
        remember(watcher, judged);
    } else if (kept->used && kept->id == id) {
        judge_kept(judged, kept, yes);
    }
}

const struct bench_watch load_watch = {
    .create = watch_create,
    .destroy = watch_destroy,
    .pick = watch_pick,
    .answered = watch_answered,
};
