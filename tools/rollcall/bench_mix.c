#include "tools/rollcall/bench_mix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/num.h"
#include "tools/rollcall/bench_mix_private.h"
#include "tools/rollcall/bench_random.h"
#include "tools/rollcall/bench_text.h"

#define KEPT_DRAWN_ONE_IN 8u /* one in so many keys is a kept one */
#define KEPT_A_LANE_MIN   4u

/* How a kind's request reads: verb, keys, what follows them. */
struct form {
    const char *verb;
    const char *end;
    bool writes;
    size_t (*argument)(const struct bench_mix *mix, uint64_t random);
    char *(*tail)(const struct bench_mix *mix, const uint64_t *words, char *out); /* not `end` */
};

static void around_init(struct bench_around *around, const char *head, const char *tail,
                        const char *slot)
{
    around->head_length = (size_t)snprintf(around->head, sizeof(around->head), "%s", head);
    around->tail_length = (size_t)snprintf(around->tail, sizeof(around->tail), "%s%s%s", tail,
                                           *slot != '\0' ? "." : "", slot);
    CHECK(around->head_length < sizeof(around->head) && around->tail_length < sizeof(around->tail));
}

static void keys_init(struct bench_mix *mix)
{
    const struct bench_options *options = mix->options;

    around_init(&mix->record, options->key_head, options->key_tail, "");
    around_init(&mix->member, options->exist_head, options->exist_tail, "");
    for (size_t i = 0; i < options->slot_count; i++) {
        around_init(&mix->slots[i], options->key_head, options->key_tail, options->slot_names[i]);
    }
}

static void lanes_init(struct bench_mix *mix)
{
    const struct bench_options *options = mix->options;

    mix->lanes = memory_zalloc(options->connections * sizeof(*mix->lanes));
    if (options->verify != BENCH_VALUES) {
        return;
    }
    mix->kept_a_lane = options->window / BENCH_KEPT_ONE_IN / options->connections;
    if (mix->kept_a_lane < KEPT_A_LANE_MIN) {
        mix->kept_a_lane = KEPT_A_LANE_MIN;
    }
    for (uint64_t i = 0; i < options->connections; i++) {
        mix->lanes[i].kept = memory_zalloc(mix->kept_a_lane * sizeof(struct bench_kept));
    }
}

struct bench_mix *bench_mix_create(const struct bench_options *options)
{
    struct bench_mix *mix = memory_zalloc(sizeof(*mix));
    uint64_t start = options->load ? options->ids : 0;

    mix->mark = BENCH_MIX_MARK;
    mix->options = options;
    mix->random = bench_random_state(options->seed);
    bench_feed_init(&mix->feed, start, start + BENCH_MIX_IDS_MAX, options->window);
    mix->feed.late = options->late;
    mix->feed.old = options->old;
    mix->feed.seed = options->seed;
    keys_init(mix);
    lanes_init(mix);
    return mix;
}

void bench_mix_destroy(struct bench_mix *mix)
{
    if (mix == NULL) {
        return;
    }
    CHECK(mix->mark == BENCH_MIX_MARK);
    for (uint64_t i = 0; i < mix->options->connections; i++) {
        free(mix->lanes[i].kept);
    }
    free(mix->lanes);
    free(mix);
}

size_t bench_mix_words(const struct bench_mix *mix)
{
    return 1 + BENCH_MIX_KEY_WORDS * mix->options->page_ids;
}

size_t bench_mix_bytes_max(const struct bench_mix *mix)
{
    return BENCH_MIX_KEY_MAX * mix->options->page_ids + 2 * BENCH_MIX_VALUE_MAX;
}

char *bench_mix_put_key(const struct bench_mix *mix, const uint64_t *words, uint64_t key, char *out)
{
    enum bench_kind kind = bench_mix_kind(words);
    uint32_t argument = bench_mix_argument(words, key);
    bool member = kind >= BENCH_KIND_EXIST;
    bool slot = kind == BENCH_KIND_SLOT || kind == BENCH_KIND_INCR;
    const struct bench_around *around = member ? &mix->member
                                        : slot ? &mix->slots[argument]
                                               : &mix->record;

    out = bench_put(out, around->head, around->head_length);
    out += num_print(out, bench_mix_id(words, key));
    out = bench_put(out, around->tail, around->tail_length);
    if (!member) {
        return out;
    }
    *out++ = 'u';
    return out + num_print(out, argument);
}

static size_t no_argument(const struct bench_mix *mix, uint64_t random)
{
    (void)mix;
    (void)random;
    return 0;
}

static size_t a_slot(const struct bench_mix *mix, uint64_t random)
{
    return bench_scale(random, mix->options->slot_count);
}

/* At least one slot, as bits. */
static size_t some_slots(const struct bench_mix *mix, uint64_t random)
{
    return 1 + bench_scale(random, (1ull << mix->options->slot_count) - 1);
}

static size_t a_member(const struct bench_mix *mix, uint64_t random)
{
    return bench_scale(random, mix->options->members);
}

/* " 1,,3,": what each slot grows by. */
static char *put_deltas(const struct bench_mix *mix, const uint64_t *words, char *out)
{
    uint32_t named = bench_mix_argument(words, 0);

    for (size_t i = 0; i < mix->options->slot_count; i++) {
        *out++ = i == 0 ? ' ' : ',';
        if (named >> i & 1) {
            out += num_print(out, bench_mix_delta(i));
        }
    }
    return bench_put(out, "\r\n", 2);
}

/* " 0 0 11\r\n1,22,333,44\r\n": a new record, as a load would set it. */
static char *put_record(const struct bench_mix *mix, const uint64_t *words, char *out)
{
    char value[BENCH_MIX_VALUE_MAX], *at = value;

    for (size_t i = 0; i < mix->options->slot_count; i++) {
        at += num_print(at, bench_workload_value(bench_mix_id(words, 0), i));
        *at++ = ',';
    }
    size_t length = (size_t)(at - value) - 1;

    CHECK(length < BENCH_MIX_VALUE_MAX);
    out = bench_put(out, " 0 0 ", 5);
    out += num_print(out, length);
    out = bench_put(out, "\r\n", 2);
    out = bench_put(out, value, length);
    return bench_put(out, "\r\n", 2);
}

static const struct form forms[BENCH_KINDS] = {
    [BENCH_KIND_PAGE] = {"get", "\r\n", false, no_argument, NULL},
    [BENCH_KIND_RECORD] = {"get", "\r\n", false, no_argument, NULL},
    [BENCH_KIND_SLOT] = {"get", "\r\n", false, a_slot, NULL},
    [BENCH_KIND_INCR] = {"incr", " 1\r\n", true, a_slot, NULL},
    [BENCH_KIND_SEVERAL] = {"incr", NULL, true, some_slots, put_deltas},
    [BENCH_KIND_CREATE] = {"set", NULL, true, no_argument, put_record},
    [BENCH_KIND_DELETE] = {"delete", "\r\n", true, no_argument, NULL},
    [BENCH_KIND_EXIST] = {"get", "\r\n", false, a_member, NULL},
    [BENCH_KIND_LIKE] = {"add", " 0 0 1\r\n1\r\n", true, a_member, NULL},
    [BENCH_KIND_UNLIKE] = {"delete", "\r\n", true, a_member, NULL},
};

static bool keeps(const struct bench_mix *mix, uint64_t index)
{
    return mix->kept_a_lane != 0 && index % BENCH_KEPT_ONE_IN == 0;
}

/* A kept id of the lane, now and then, if the place drawn holds one that is new enough. */
static const struct bench_kept *draw_kept(struct bench_mix *mix, const struct bench_lane *lane,
                                          uint64_t *place)
{
    uint64_t random = bench_random_next(&mix->random);

    if (mix->kept_a_lane == 0 || random % KEPT_DRAWN_ONE_IN != 0) {
        return NULL;
    }
    *place = bench_scale(random, mix->kept_a_lane);
    const struct bench_kept *kept = &lane->kept[*place];
    return kept->used && bench_feed_recent(&mix->feed, kept->index) ? kept : NULL;
}

/* An id to look at or change, with its argument. Only kept ones of the lane's own are changed. */
static void draw_key(struct bench_mix *mix, uint64_t lane, const struct form *form, uint64_t *words)
{
    size_t argument = form->argument(mix, bench_random_next(&mix->random));
    uint64_t place = 0;
    const struct bench_kept *kept = draw_kept(mix, &mix->lanes[lane], &place);

    words[1] = argument;
    if (kept != NULL) {
        words[0] = kept->id;
        words[1] |= (place + 1) << BENCH_ARGUMENT_BITS;
        return;
    }
    uint64_t index = bench_feed_draw(&mix->feed, bench_random_next(&mix->random));
    if (form->writes && keeps(mix, index)) {
        index++;
    }
    words[0] = bench_workload_id(mix->options, index);
}

static void draw_new(struct bench_mix *mix, uint64_t *words)
{
    uint64_t index = bench_feed_next(&mix->feed);

    words[0] = bench_workload_id(mix->options, index);
    words[1] = keeps(mix, index) ? (index + 1) << BENCH_ARGUMENT_BITS : 0;
}

size_t bench_mix_compose(struct bench_mix *mix, uint64_t lane, char *out, uint64_t *words)
{
    CHECK(mix->mark == BENCH_MIX_MARK && lane < mix->options->connections);
    enum bench_kind kind =
        bench_shares_draw(&mix->options->shares, bench_random_next(&mix->random));
    const struct form *form = &forms[kind];
    char *at = bench_put(out, form->verb, strlen(form->verb));

    words[0] = (uint64_t)kind | lane << BENCH_KIND_BITS;
    for (uint64_t key = 0; key < bench_mix_keys(mix, kind); key++) {
        uint64_t *key_words = words + 1 + key * BENCH_MIX_KEY_WORDS;
        if (kind == BENCH_KIND_CREATE) {
            draw_new(mix, key_words);
        } else {
            draw_key(mix, lane, form, key_words);
        }
        *at++ = ' ';
        at = bench_mix_put_key(mix, words, key, at);
    }
    at = form->tail != NULL ? form->tail(mix, words, at)
                            : bench_put(at, form->end, strlen(form->end));
    return (size_t)(at - out);
}
