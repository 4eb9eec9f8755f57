/* Judging replies: the verdicts that all dialects share. */
#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "tools/rollcall/bench_dialect.h"

void bench_judged_mismatch(const struct bench_judged *judged, const char *what)
{
    bench_tally_mismatch(judged->tally, what, judged->item.line, judged->item.line_length);
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

void bench_judged_denied(const struct bench_judged *judged, uint64_t from, uint64_t to)
{
    for (; from < to; from++) {
        bool foreign = (bench_id_at(judged, from) & BENCH_FOREIGN) != 0;
        judged->tally->foreign += foreign;
        if (!foreign && judged->workload->verify == BENCH_VALUES) {
            bench_judged_mismatch_of(judged, "a loaded member is denied: ", from);
        }
    }
}

bool bench_judged_value_right(const struct bench_judged *judged, uint64_t id, int slot)
{
    const struct bench_workload *workload = judged->workload;
    char value[BENCH_VALUE_TEXT_MAX + 4];
    bool whole = slot == BENCH_SLOT_WHOLE;

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
    uint64_t number = 0;

    judged->tally->hits++;
    if (!num_parse(judged->item.line, judged->item.line_length, &number)) {
        bench_judged_mismatch(judged, "not a number: ");
    } else if (workload->climbed &&
               number <= bench_workload_value(judged->ids[0], (size_t)workload->keys[0].slot)) {
        bench_judged_mismatch(judged, "not above the loaded value: ");
    }
}

void bench_judged_error(const struct bench_judged *judged)
{
    const struct bench_item *item = &judged->item;
    const char *allowed = judged->workload->options->allow;

    bench_tally_error(judged->tally, item->line, item->line_length,
                      allowed != NULL && bench_item_begins(item, allowed));
}

size_t bench_workload_judge(struct bench_workload *workload, const uint64_t *words,
                            const char *bytes, size_t length, struct bench_reply *reply,
                            struct bench_tally *tally)
{
    CHECK(workload->mark == BENCH_WORKLOAD_MARK && !reply->done && !reply->broken);
    if (workload->mix != NULL) {
        return bench_mix_judge(workload->mix, words, bytes, length, reply, tally);
    }
    struct bench_judged judged = {.workload = workload,
                                  .ids = words,
                                  .item = {.line = bytes},
                                  .reply = reply,
                                  .tally = tally};
    size_t taken = length > 0 ? workload->dialect->judge(&judged, bytes, length) : 0;
    if (reply->done) {
        tally->requests++;
        tally->operations += workload->ids;
    }
    return taken;
}
