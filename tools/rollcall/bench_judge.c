/* Judging replies: the verdicts that all dialects share. */
#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "tools/rollcall/bench_mix.h"

/* mix also knows what it wrote. */
static void tell_mix(const struct bench_judged *judged, uint64_t key, bool yes)
{
    if (judged->asked != NULL) {
        bench_mix_answered(judged, key, yes);
    }
}

static bool is_foreign(const struct bench_judged *judged, uint64_t key)
{
    return bench_asks_members(judged->workload) && (bench_id_at(judged, key) & BENCH_FOREIGN) != 0;
}

void bench_judged_found(const struct bench_judged *judged)
{
    uint64_t key = judged->reply->key++;
    bool foreign = is_foreign(judged, key);

    judged->tally->hits++;
    judged->tally->foreign += foreign;
    judged->tally->wrong += foreign;
    tell_mix(judged, key, true);
}

/* Counts a miss. Existence keys may be missing only if they are foreign. */
static void missed(const struct bench_judged *judged, uint64_t key)
{
    const struct bench_workload *workload = judged->workload;
    bool foreign = is_foreign(judged, key);

    judged->tally->misses++;
    judged->tally->foreign += foreign && workload->verify != BENCH_OFF;
    if (!foreign && bench_asks_members(workload) && workload->verify == BENCH_VALUES) {
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

size_t bench_judged_common(const struct bench_judged *judged, bench_expected_fn *expected,
                           const char *bytes, size_t length)
{
    const struct bench_workload *workload = judged->workload;
    uint64_t asked = bench_keys_asked(workload);
    uint64_t key = judged->reply->key;

    if (workload->verb != BENCH_VERB_GET || workload->verify != BENCH_VALUES) {
        return 0;
    }
    while (key < asked && is_foreign(judged, key)) {
        key++;
    }
    size_t taken = key < asked ? expected(judged, key, bytes, length) : 0;
    if (taken != 0) {
        bench_judged_missed(judged, key);
        bench_judged_found(judged);
    }
    return taken;
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
