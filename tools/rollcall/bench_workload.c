#include "tools/rollcall/bench_mix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/num.h"
#include "tools/rollcall/bench_random.h"

#define STAMP_SHIFT   22
#define MACHINE_SHIFT 12
#define MACHINES      1024u
#define SEQUENCE_MASK 7u /* a snowflake's low bits are rarely above a handful */
#define MS_A_SECOND   1000u
#define RANDOM_SPAN   (1ull << 40)
#define NUMBERS       1000u
#define MEMBER_SHIFT  34 /* of a hash: leaves the number of a member */
#define WRONG_TIMES   5  /* more wrong answers than this many times the planned are a fault … */
#define WRONG_SPARE   20 /* … and this many more, so that few checks may have bad luck */

static uint64_t id_of_second(const struct bench_options *options, uint64_t index)
{
    uint64_t second = index / options->per_second;
    return options->first + (second << STAMP_SHIFT) + index % options->per_second;
}

/*
 * Up to a thousand ids a second each has a millisecond of its own; above, those of one millisecond
 * share out the machines in rising order.
 */
static uint64_t id_of_ms(const struct bench_options *options, uint64_t index)
{
    uint64_t jitter = hash_u64(index + options->seed);
    uint64_t sequence = jitter & SEQUENCE_MASK;

    if (options->per_second <= MS_A_SECOND) {
        uint64_t ms = index * MS_A_SECOND / options->per_second;
        uint64_t machine = (jitter >> 32) % MACHINES;
        return options->first + (ms << STAMP_SHIFT) + (machine << MACHINE_SHIFT) + sequence;
    }
    uint64_t a_ms = (options->per_second + MS_A_SECOND - 1) / MS_A_SECOND;
    uint64_t machine = index % a_ms * MACHINES / a_ms;
    return options->first + (index / a_ms << STAMP_SHIFT) + (machine << MACHINE_SHIFT) + sequence;
}

/* Returns a random id of the stride of that number: rising, never twice, and without a list. */
static uint64_t id_at_random(const struct bench_options *options, uint64_t index)
{
    uint64_t stride = RANDOM_SPAN / options->ids;
    uint64_t within = bench_scale(hash_u64(index * BENCH_WEYL + options->ids), stride);
    return options->first + index * stride + within;
}

uint64_t bench_workload_id(const struct bench_options *options, uint64_t index)
{
    switch ((enum bench_shape)options->shape) {
    case BENCH_SECONDS:
        return id_of_second(options, index);
    case BENCH_MS:
        return id_of_ms(options, index);
    case BENCH_RANDOM:
        return id_at_random(options, index);
    case BENCH_DENSE:
        break;
    }
    return options->first + index;
}

uint64_t bench_workload_value(uint64_t id, size_t slot)
{
    uint64_t piece = hash_u64(id + slot / 4) >> 16 * (slot % 4) & 0xffff;
    return piece * NUMBERS >> 16;
}

size_t bench_workload_print_value(const struct bench_workload *workload, uint64_t id, int slot,
                                  char *out)
{
    char *at = out;

    if (slot == BENCH_SLOT_MEMBER) {
        *out = '1';
        return 1;
    }
    if (slot != BENCH_SLOT_WHOLE) {
        return num_print(out, bench_workload_value(id, (size_t)slot));
    }
    for (size_t i = 0; i < workload->options->slot_count; i++) {
        at += num_print(at, bench_workload_value(id, i));
        *at++ = ',';
    }
    return (size_t)(at - out) - 1;
}

void bench_workload_add_key(struct bench_workload *workload, int slot, const char *between,
                            const char *name)
{
    struct bench_key *key = &workload->keys[workload->key_count++];

    CHECK(workload->key_count <= BENCH_SLOTS_MAX);
    int length = snprintf(key->suffix, sizeof(key->suffix), "%s%s%s", workload->pattern->tail,
                          between, name);
    CHECK(length >= 0 && (size_t)length < sizeof(key->suffix));
    key->suffix_length = (size_t)length;
    key->slot = slot;
}

static void add_keys(struct bench_workload *workload, bool load)
{
    const struct bench_options *options = workload->options;
    const struct bench_kit *kit = options->kit;
    bool one_slot = options->workload == BENCH_INCR || options->workload == BENCH_SLOT;

    if (kit->add_keys != NULL && kit->add_keys(workload, load)) {
        return;
    }
    if (options->workload == BENCH_EXIST) {
        bench_workload_add_key(workload, BENCH_SLOT_MEMBER, "", "");
    } else if (!load && one_slot) {
        bench_workload_add_key(workload, (int)options->slot_chosen, ".",
                               options->slot_names[options->slot_chosen]);
    } else {
        bench_workload_add_key(workload, BENCH_SLOT_WHOLE, "", "");
    }
}

struct bench_workload *bench_workload_begin(const struct bench_options *options,
                                            enum bench_verb verb,
                                            const struct bench_pattern *pattern, uint64_t ids)
{
    struct bench_workload *workload = memory_zalloc(sizeof(*workload));

    workload->options = options;
    workload->dialect = options->kit->dialects[options->protocol];
    workload->pattern = pattern;
    workload->verb = verb;
    workload->verify = (enum bench_verify)options->verify;
    workload->ids = ids;
    workload->head = pattern->head;
    workload->head_length = strlen(pattern->head);
    return workload;
}

struct bench_workload *bench_workload_create(const struct bench_options *options, bool load)
{
    bool incr = options->workload == BENCH_INCR;
    bool many = options->workload == BENCH_PAGE || options->workload == BENCH_EXIST;
    struct bench_workload *workload =
        bench_workload_begin(options,
                             load   ? BENCH_VERB_SET
                             : incr ? BENCH_VERB_INCR
                                    : BENCH_VERB_GET,
                             &options->record, !load && many ? options->page_ids : 1);

    if (options->workload == BENCH_MIX && !load) {
        workload->mix = bench_mix_create(options);
        return workload;
    }
    workload->climbed = options->load && options->verify == BENCH_VALUES;
    workload->hit_below = options->hits == 100 ? UINT64_MAX : UINT64_MAX / 100 * options->hits;
    workload->random = bench_random_state(options->seed);
    add_keys(workload, load);
    workload->state = memory_zalloc(workload->dialect->state_bytes);
    if (workload->dialect->prepare != NULL) {
        workload->dialect->prepare(workload);
    }
    return workload;
}

void bench_workload_stream(struct bench_workload *workload, uint64_t stream)
{
    workload->random += hash_u64(stream);
}

void bench_workload_destroy(struct bench_workload *workload)
{
    if (workload == NULL) {
        return;
    }
    bench_mix_destroy(workload->mix);
    free(workload->state);
    free(workload);
}

uint64_t bench_workload_load_requests(const struct bench_workload *workload)
{
    return workload->options->ids * workload->key_count;
}

size_t bench_workload_words(const struct bench_workload *workload)
{
    return workload->mix != NULL ? bench_mix_words(workload->mix) : workload->ids;
}

size_t bench_workload_key_bytes(const struct bench_workload *workload)
{
    size_t longest = 0;

    for (size_t i = 0; i < workload->key_count; i++) {
        if (workload->keys[i].suffix_length > longest) {
            longest = workload->keys[i].suffix_length;
        }
    }
    return 1 + workload->head_length + BENCH_NUMBER_TEXT_MAX + longest + BENCH_MEMBER_TEXT_MAX;
}

size_t bench_workload_bytes_max(const struct bench_workload *workload)
{
    return workload->mix != NULL ? bench_mix_bytes_max(workload->mix)
                                 : workload->dialect->bytes_max(workload);
}

static uint64_t draw_id(struct bench_workload *workload)
{
    const struct bench_options *options = workload->options;
    uint64_t drawn = bench_random_next(&workload->random);
    uint64_t index = options->kit->draw != NULL
                         ? options->kit->draw(options, drawn, &workload->random)
                         : bench_scale(drawn, options->ids);
    uint64_t id = bench_workload_id(options, index);
    bool exist = options->workload == BENCH_EXIST;
    return exist && hash_u64(drawn) >= workload->hit_below ? id | BENCH_FOREIGN : id;
}

char *bench_workload_put_member(uint64_t id, char *out)
{
    *out++ = id & BENCH_FOREIGN ? 'f' : 'u';
    return out + num_print(out, hash_u64(id & ~BENCH_FOREIGN) >> MEMBER_SHIFT);
}

char *bench_workload_put_key(const struct bench_workload *workload, const struct bench_key *key,
                             uint64_t id, char *out)
{
    out = bench_put(out, workload->head, workload->head_length);
    out += num_print(out, id & ~BENCH_FOREIGN);
    out = bench_put(out, key->suffix, key->suffix_length);
    return key->slot == BENCH_SLOT_MEMBER ? bench_workload_put_member(id, out) : out;
}

bool bench_workload_wrong_few(const struct bench_options *options, const struct bench_tally *tally)
{
    return tally->wrong <= WRONG_TIMES * (tally->foreign / options->one_in) + WRONG_SPARE;
}

/* The keys of an id follow each other. */
static size_t compose_set(struct bench_workload *workload, char *out, uint64_t *words)
{
    const struct bench_key *key = &workload->keys[workload->next % workload->key_count];

    *words = bench_workload_id(workload->options, workload->next / workload->key_count);
    workload->next++;
    return (size_t)(workload->dialect->set(workload, key, *words, out) - out);
}

size_t bench_workload_compose(struct bench_workload *workload, uint64_t lane, char *out,
                              uint64_t *words)
{
    if (workload->mix != NULL) {
        return bench_mix_compose(workload->mix, lane, out, words);
    }
    if (workload->verb == BENCH_VERB_SET) {
        return compose_set(workload, out, words);
    }
    for (uint64_t i = 0; i < workload->ids; i++) {
        words[i] = draw_id(workload);
    }
    return (size_t)(workload->dialect->ask(workload, words, out) - out);
}

/* ---- verdicts ---- */

/* mix also knows what it wrote. */
static void tell_mix(const struct bench_judged *judged, uint64_t key, bool yes)
{
    if (judged->asked != NULL) {
        bench_mix_answered(judged, key, yes);
    }
}

bool bench_judged_foreign(const struct bench_judged *judged, uint64_t key)
{
    return (bench_id_at(judged, key) & BENCH_FOREIGN) != 0;
}

void bench_judged_found(const struct bench_judged *judged)
{
    uint64_t key = judged->reply->key++;
    bool foreign = bench_judged_foreign(judged, key);

    judged->tally->hits++;
    judged->tally->foreign += foreign;
    judged->tally->wrong += foreign;
    tell_mix(judged, key, true);
}

/* Counts a miss. Existence keys may be missing only if they are foreign. */
static void missed(const struct bench_judged *judged, uint64_t key)
{
    const struct bench_workload *workload = judged->workload;
    bool foreign = bench_judged_foreign(judged, key);

    judged->tally->misses++;
    judged->tally->foreign += foreign && workload->verify != BENCH_OFF;
    if (!foreign && workload->keys[0].slot == BENCH_SLOT_MEMBER &&
        workload->verify == BENCH_VALUES) {
        bench_judged_mismatch_of(judged, "a loaded member is denied: ", key);
    }
    tell_mix(judged, key, false);
}

void bench_judged_missed(const struct bench_judged *judged, uint64_t to)
{
    for (; judged->reply->key < to; judged->reply->key++) {
        missed(judged, judged->reply->key);
    }
}

void bench_judged_changed(const struct bench_judged *judged, bool yes)
{
    judged->tally->hits += yes;
    judged->tally->misses += !yes;
    tell_mix(judged, 0, yes);
}

void bench_judged_mismatch(const struct bench_judged *judged, const char *what)
{
    bench_tally_mismatch(judged->tally, what, judged->item.line, judged->item.line_length);
}

void bench_judged_broken(const struct bench_judged *judged, const char *what)
{
    bench_judged_mismatch(judged, what);
    judged->reply->broken = true;
}

void bench_judged_mismatch_of(const struct bench_judged *judged, const char *what, uint64_t key)
{
    const struct bench_workload *workload = judged->workload;
    char text[BENCH_KEY_TEXT_MAX + 1 + BENCH_TEXT_MAX];
    size_t shown = judged->item.line_length;
    char *at = bench_workload_put_key(workload, bench_key_at(workload, key),
                                      bench_id_at(judged, key), text);

    shown = shown < BENCH_TEXT_MAX ? shown : BENCH_TEXT_MAX;
    *at++ = ' ';
    at = bench_put(at, judged->item.line, shown);
    bench_tally_mismatch(judged->tally, what, text, (size_t)(at - text));
}

bool bench_judged_value_right(const struct bench_judged *judged, uint64_t id, int slot)
{
    const struct bench_workload *workload = judged->workload;
    char value[BENCH_VALUE_ROOM];
    bool whole = slot == BENCH_SLOT_WHOLE;

    if (workload->verify == BENCH_OFF) {
        return true;
    }
    if (workload->verify == BENCH_FORM && slot != BENCH_SLOT_MEMBER) {
        return bench_item_numbers(judged->item.data, judged->item.data_length,
                                  whole ? workload->options->slot_count : 1, whole);
    }
    size_t length = bench_workload_print_value(workload, id, slot, value);
    return length == judged->item.data_length && memcmp(value, judged->item.data, length) == 0;
}

void bench_judged_incremented(const struct bench_judged *judged)
{
    const struct bench_workload *workload = judged->workload;
    const struct bench_item *item = &judged->item;
    bool whole = workload->keys[0].slot == BENCH_SLOT_WHOLE;
    size_t fields = whole ? workload->options->slot_count : 1;
    uint64_t number = 0;

    if (!bench_item_numbers(item->line, item->line_length, fields, whole)) {
        bench_judged_mismatch(judged, "not a number: ");
    } else if (workload->climbed && num_parse(item->line, item->line_length, &number) &&
               number <= bench_workload_value(judged->ids[0], (size_t)workload->keys[0].slot)) {
        bench_judged_mismatch(judged, "not above the loaded value: ");
    }
    bench_judged_changed(judged, true);
}

void bench_judged_error(const struct bench_judged *judged)
{
    const struct bench_item *item = &judged->item;
    const char *allowed = judged->workload->options->allow;
    bool expected = (*allowed != '\0' && bench_item_begins(item, allowed)) ||
                    (judged->asked != NULL && bench_mix_expects(judged));

    bench_tally_error(judged->tally, item->line, item->line_length, expected);
}

size_t bench_judge(struct bench_judged *judged, const char *bytes, size_t length)
{
    const struct bench_workload *workload = judged->workload;
    size_t taken = length > 0 ? workload->dialect->judge(judged, bytes, length) : 0;

    if (judged->reply->done) {
        judged->tally->requests++;
        judged->tally->operations += workload->ids;
    }
    return taken;
}

size_t bench_workload_judge(struct bench_workload *workload, const uint64_t *words,
                            const char *bytes, size_t length, struct bench_reply *reply,
                            struct bench_tally *tally)
{
    CHECK(!reply->done && !reply->broken);
    if (workload->mix != NULL) {
        return bench_mix_judge(workload->mix, words, bytes, length, reply, tally);
    }
    struct bench_judged judged = {.workload = workload,
                                  .ids = words,
                                  .item = {.line = bytes},
                                  .reply = reply,
                                  .tally = tally};
    return bench_judge(&judged, bytes, length);
}
