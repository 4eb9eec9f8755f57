/*
 * The text dialect of memcached. bench_judged_common() is the common case: the item is byte for
 * byte what a loaded key answers. Whatever is not goes to judge_line(), which alone decides what is
 * wrong.
 */
#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "tools/rollcall/bench_dialect.h"

static size_t text_bytes_max(const struct bench_workload *workload)
{
    size_t key_bytes = bench_workload_key_bytes(workload);
    return key_bytes * bench_keys_asked(workload) + 2 * BENCH_VALUE_TEXT_MAX;
}

/* "set feed:1 0 0 11\r\n1,22,333,44\r\n" */
static char *text_set(const struct bench_workload *workload, const struct bench_key *key,
                      uint64_t id, char *out)
{
    char value[BENCH_VALUE_TEXT_MAX + 4];
    size_t length = bench_workload_print_value(workload, id, key->slot, value);

    CHECK(length <= BENCH_VALUE_TEXT_MAX);
    out = bench_put(out, "set ", 4);
    out = bench_workload_put_key(workload, key, id, out);
    out = bench_put(out, " 0 0 ", 5);
    out += num_print(out, length);
    out = bench_put(out, "\r\n", 2);
    out = bench_put(out, value, length);
    return bench_put(out, "\r\n", 2);
}

static char *put_keys(const struct bench_workload *workload, char *out, uint64_t id)
{
    char digits[BENCH_NUMBER_TEXT_MAX];
    size_t digit_count = num_print(digits, id & ~BENCH_FOREIGN);

    for (size_t i = 0; i < workload->key_count; i++) {
        const struct bench_key *key = &workload->keys[i];
        out = bench_put(out, workload->head, workload->head_length);
        out = bench_put(out, digits, digit_count);
        out = bench_workload_put_suffix(key, id, out);
    }
    return out;
}

static char *text_ask(const struct bench_workload *workload, const uint64_t *ids, char *out)
{
    bool incr = workload->verb == BENCH_VERB_INCR;

    out = incr ? bench_put(out, "incr", 4) : bench_put(out, "get", 3);
    for (uint64_t i = 0; i < workload->ids; i++) {
        out = put_keys(workload, out, ids[i]);
    }
    return incr ? bench_put(out, " 1\r\n", 4) : bench_put(out, "\r\n", 2);
}

/* How the line of a key begins. */
static char *put_value_key(const struct bench_judged *judged, uint64_t key, char *out)
{
    const struct bench_workload *workload = judged->workload;
    uint64_t id = bench_id_at(judged, key);

    out = bench_put(out, workload->value_head, workload->value_head_length);
    out += num_print(out, id & ~BENCH_FOREIGN);
    return bench_workload_put_suffix(bench_key_at(workload, key), id, out);
}

/* The VALUE of a key, as a loaded one answers it. Returns its bytes, 0 if it is another. */
static size_t judge_expected(const struct bench_judged *judged, uint64_t key, const char *bytes,
                             size_t length)
{
    const struct bench_workload *workload = judged->workload;
    char expected[BENCH_EXPECTED_MAX], value[BENCH_VALUE_TEXT_MAX + 4];
    int slot = bench_key_at(workload, key)->slot;
    size_t value_length =
        bench_workload_print_value(workload, bench_id_at(judged, key), slot, value);
    char *at = put_value_key(judged, key, expected);

    CHECK(value_length <= BENCH_VALUE_TEXT_MAX);
    at = bench_put(at, " 0 ", 3);
    at += num_print(at, value_length);
    at = bench_put(at, "\r\n", 2);
    at = bench_put(at, value, value_length);
    at = bench_put(at, "\r\n", 2);
    size_t expected_length = (size_t)(at - expected);
    if (length < expected_length || memcmp(bytes, expected, expected_length) != 0) {
        return 0;
    }
    return expected_length;
}

/* A VALUE: of the next key asked for, or of a later one. */
static void judge_value(const struct bench_judged *judged)
{
    const struct bench_workload *workload = judged->workload;
    uint64_t asked = bench_keys_asked(workload);
    char text[BENCH_EXPECTED_MAX];

    if (workload->verify == BENCH_OFF) {
        judged->tally->hits++;
        judged->reply->key++;
        return;
    }
    for (uint64_t key = judged->reply->key; key < asked; key++) {
        size_t length = (size_t)(put_value_key(judged, key, text) - text);
        if (length != judged->item.key_end || memcmp(text, judged->item.line, length) != 0) {
            continue;
        }
        bench_judged_missed(judged, key);
        bench_judged_found(judged);
        if (!bench_judged_value_right(judged, bench_id_at(judged, key),
                                      bench_key_at(workload, key)->slot)) {
            bench_judged_mismatch(judged, "wrong value: ");
        }
        return;
    }
    bench_judged_mismatch(judged, "key not asked for here: ");
}

static void judge_get_end(const struct bench_judged *judged)
{
    uint64_t asked = bench_keys_asked(judged->workload);

    if (judged->reply->key < asked) {
        bench_judged_missed(judged, asked);
    }
    judged->reply->done = true;
}

/* A line that is no VALUE ends the reply to its request. */
static void judge_line(const struct bench_judged *judged)
{
    const struct bench_item *item = &judged->item;
    enum bench_verb verb = judged->workload->verb;

    judged->reply->done = true;
    if (bench_item_error(item)) {
        bench_judged_error(judged);
    } else if (verb == BENCH_VERB_GET && bench_item_is(item, "END")) {
        judge_get_end(judged);
    } else if (verb == BENCH_VERB_SET && bench_item_is(item, "STORED")) {
        judged->tally->hits++;
    } else if (verb == BENCH_VERB_INCR && bench_item_begins(item, "NOT_FOUND")) {
        judged->tally->misses++;
    } else if (verb == BENCH_VERB_INCR && item->line_length > 0 && item->line[0] >= '0' &&
               item->line[0] <= '9') {
        bench_judged_incremented(judged);
    } else {
        bench_judged_mismatch(judged, "unexpected line: ");
        judged->reply->done = false;
        judged->reply->broken = true;
    }
}

static size_t judge_item(struct bench_judged *judged, const char *bytes, size_t length)
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
        bench_judged_mismatch(judged, judged->item.fault);
        judged->reply->broken = true;
        break;
    }
    return taken;
}

static size_t text_judge(struct bench_judged *judged, const char *bytes, size_t length)
{
    size_t at = 0, taken = 0;

    while (at < length &&
           (taken = bench_judged_common(judged, judge_expected, bytes + at, length - at)) != 0) {
        at += taken;
    }
    return at != 0 ? at : judge_item(judged, bytes, length);
}

const struct bench_dialect bench_dialect_text = {
    .name = "text",
    .address = BENCH_ADDRESS_MEMCACHED,
    .bytes_max = text_bytes_max,
    .set = text_set,
    .ask = text_ask,
    .judge = text_judge,
};
