/*
 * Judging replies. judge_common() is the common case: the item is byte for byte what a loaded key
 * answers. Whatever is not goes to judge_line(), which alone decides what is wrong.
 */
#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "tools/rollcall/bench_item.h"
#include "tools/rollcall/bench_workload_private.h"

/* One item being judged. */
struct judged {
    const struct bench_workload *workload;
    const uint64_t *ids;
    struct bench_item item;
    struct bench_reply *reply;
    struct bench_tally *tally;
};

static void mismatch(const struct judged *judged, const char *what)
{
    bench_tally_mismatch(judged->tally, what, judged->item.line, judged->item.line_length);
}

static uint64_t keys_asked(const struct bench_workload *workload)
{
    return workload->ids * workload->key_count;
}

static const struct bench_key *key_at(const struct bench_workload *workload, uint64_t key)
{
    return &workload->keys[key % workload->key_count];
}

static uint64_t id_at(const struct bench_workload *workload, const uint64_t *ids, uint64_t key)
{
    return ids[key / workload->key_count];
}

static char *put_key(const struct bench_workload *workload, const uint64_t *ids, uint64_t key,
                     char *out)
{
    const struct bench_key *form = key_at(workload, key);

    uint64_t id = id_at(workload, ids, key);

    out = bench_put(out, workload->value_head, workload->value_head_length);
    out += num_print(out, id & ~BENCH_FOREIGN);
    return bench_workload_put_suffix(form, id, out);
}

static bool is_exist(const struct bench_workload *workload)
{
    return workload->keys[0].slot == BENCH_SLOT_MEMBER;
}

/* The keys up to `to` are not there: of existence keys only foreign ones may be missing. */
static void pass_missed(const struct judged *judged, uint64_t to)
{
    const struct bench_workload *workload = judged->workload;
    uint64_t from = judged->reply->key;

    judged->tally->misses += to - from;
    judged->reply->key = to;
    for (; is_exist(workload) && workload->verify != BENCH_OFF && from < to; from++) {
        bool foreign = (id_at(workload, judged->ids, from) & BENCH_FOREIGN) != 0;
        judged->tally->foreign += foreign;
        if (!foreign && workload->verify == BENCH_VALUES)
            mismatch(judged, "a loaded member is denied: ");
    }
}

/* The next key is there. */
static void pass_found(const struct judged *judged)
{
    uint64_t id = id_at(judged->workload, judged->ids, judged->reply->key);

    judged->tally->hits++;
    judged->reply->key++;
    if (is_exist(judged->workload) && (id & BENCH_FOREIGN) != 0) {
        judged->tally->foreign++;
        judged->tally->wrong++;
    }
}

/* The next key that should be there. */
static uint64_t next_expected(const struct bench_workload *workload, const uint64_t *ids,
                              uint64_t key)
{
    while (is_exist(workload) && key < keys_asked(workload) &&
           (id_at(workload, ids, key) & BENCH_FOREIGN) != 0)
        key++;
    return key;
}

/* The VALUE of a key, as a loaded one answers it. Returns its bytes, 0 if it is another. */
static size_t judge_expected(const struct bench_workload *workload, const uint64_t *ids,
                             uint64_t key, const char *bytes, size_t length)
{
    char expected[BENCH_EXPECTED_MAX], value[BENCH_VALUE_TEXT_MAX + 4];
    uint64_t id = id_at(workload, ids, key);
    int slot = key_at(workload, key)->slot;
    size_t value_length = bench_workload_print_value(workload, id, slot, value);
    char *at = put_key(workload, ids, key, expected);

    at = bench_put(at, " 0 ", 3);
    at += num_print(at, value_length);
    at = bench_put(at, "\r\n", 2);
    at = bench_put(at, value, value_length);
    at = bench_put(at, "\r\n", 2);
    size_t expected_length = (size_t)(at - expected);
    if (length < expected_length || memcmp(bytes, expected, expected_length) != 0)
        return 0;
    return expected_length;
}

static bool value_right(const struct judged *judged, uint64_t id, int slot)
{
    const struct bench_workload *workload = judged->workload;
    char value[BENCH_VALUE_TEXT_MAX + 4];
    bool whole = slot == BENCH_SLOT_WHOLE;

    if (workload->verify == BENCH_FORM && slot != BENCH_SLOT_MEMBER)
        return bench_item_numbers(judged->item.data, judged->item.data_length,
                                  whole ? workload->options->slot_count : 1, whole);
    size_t length = bench_workload_print_value(workload, id, slot, value);
    return length == judged->item.data_length && memcmp(value, judged->item.data, length) == 0;
}

/* A VALUE: of the next key asked for, or of a later one. */
static void judge_value(const struct judged *judged)
{
    const struct bench_workload *workload = judged->workload;
    uint64_t asked = keys_asked(workload);
    char text[BENCH_EXPECTED_MAX];

    if (workload->verify == BENCH_OFF) {
        judged->tally->hits++;
        judged->reply->key++;
        return;
    }
    for (uint64_t key = judged->reply->key; key < asked; key++) {
        size_t length = (size_t)(put_key(workload, judged->ids, key, text) - text);
        if (length != judged->item.key_end || memcmp(text, judged->item.line, length) != 0)
            continue;
        pass_missed(judged, key);
        pass_found(judged);
        if (!value_right(judged, id_at(workload, judged->ids, key), key_at(workload, key)->slot))
            mismatch(judged, "wrong value: ");
        return;
    }
    mismatch(judged, "key not asked for here: ");
}

static void judge_get_end(const struct judged *judged)
{
    uint64_t asked = keys_asked(judged->workload);

    if (judged->reply->key < asked)
        pass_missed(judged, asked);
    judged->reply->done = true;
}

static void judge_incr(const struct judged *judged)
{
    const struct bench_workload *workload = judged->workload;
    uint64_t number = 0;

    judged->tally->hits++;
    judged->reply->done = true;
    if (!num_parse(judged->item.line, judged->item.line_length, &number))
        mismatch(judged, "not a number: ");
    else if (workload->climbed &&
             number <= bench_workload_value(judged->ids[0], (size_t)workload->keys[0].slot))
        mismatch(judged, "not above the loaded value: ");
}

static void judge_error(const struct judged *judged)
{
    const struct bench_item *item = &judged->item;
    const char *allowed = judged->workload->options->allow;

    bench_tally_error(judged->tally, item->line, item->line_length,
                      allowed != NULL && bench_item_begins(item, allowed));
    judged->reply->done = true;
}

/* A line that is no VALUE ends the reply to its request. */
static void judge_line(const struct judged *judged)
{
    const struct bench_item *item = &judged->item;
    enum bench_verb verb = judged->workload->verb;

    if (bench_item_error(item)) {
        judge_error(judged);
    } else if (verb == BENCH_VERB_GET && bench_item_is(item, "END")) {
        judge_get_end(judged);
    } else if (verb == BENCH_VERB_SET && bench_item_is(item, "STORED")) {
        judged->tally->hits++;
        judged->reply->done = true;
    } else if (verb == BENCH_VERB_INCR && bench_item_begins(item, "NOT_FOUND")) {
        judged->tally->misses++;
        judged->reply->done = true;
    } else if (verb == BENCH_VERB_INCR && item->line_length > 0 && item->line[0] >= '0' &&
               item->line[0] <= '9') {
        judge_incr(judged);
    } else {
        mismatch(judged, "unexpected line: ");
        judged->reply->broken = true;
    }
}

static size_t judge_item(struct judged *judged, const char *bytes, size_t length)
{
    bool values = judged->workload->verb == BENCH_VERB_GET;
    size_t taken = 0;

    switch (bench_item_cut(bytes, length, values, &judged->item, &taken)) {
    case BENCH_ITEM_PART:
        break;
    case BENCH_ITEM_VALUE:
        judge_value(judged);
        break;
    case BENCH_ITEM_LINE:
        judge_line(judged);
        break;
    case BENCH_ITEM_BROKEN:
        mismatch(judged, judged->item.fault);
        judged->reply->broken = true;
        break;
    }
    return taken;
}

/* The common case: byte for byte what the next loaded key answers. Returns its bytes, else 0. */
static size_t judge_common(const struct judged *judged, const char *bytes, size_t length)
{
    const struct bench_workload *workload = judged->workload;

    if (workload->verb != BENCH_VERB_GET || workload->verify != BENCH_VALUES ||
        judged->reply->key >= keys_asked(workload))
        return 0;
    uint64_t key = next_expected(workload, judged->ids, judged->reply->key);
    if (key >= keys_asked(workload))
        return 0;
    size_t taken = judge_expected(workload, judged->ids, key, bytes, length);
    if (taken != 0) {
        pass_missed(judged, key);
        pass_found(judged);
    }
    return taken;
}

size_t bench_workload_judge(struct bench_workload *workload, const uint64_t *words,
                            const char *bytes, size_t length, struct bench_reply *reply,
                            struct bench_tally *tally)
{
    CHECK(workload->mark == BENCH_WORKLOAD_MARK && !reply->done && !reply->broken);
    if (workload->mix != NULL)
        return bench_mix_judge(workload->mix, words, bytes, length, reply, tally);
    struct judged judged = {.workload = workload,
                            .ids = words,
                            .item = {.line = bytes},
                            .reply = reply,
                            .tally = tally};
    size_t taken = length > 0 ? judge_common(&judged, bytes, length) : 0;
    if (taken == 0 && length > 0)
        taken = judge_item(&judged, bytes, length);
    if (reply->done) {
        tally->requests++;
        tally->operations += workload->ids;
    }
    return taken;
}
