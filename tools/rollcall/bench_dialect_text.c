/*
 * The text dialect of memcached. judge_common() takes what is byte for byte what a loaded key
 * answers; the rest goes to judge_item(), which alone decides what is wrong.
 */
#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "tools/rollcall/bench_dialect.h"

#define VALUE "VALUE "

/* How a request reads, and the lines that end its reply; NULL: another way. */
static const struct {
    const char *word, *end;
    const char *yes, *no;
} verbs[] = {
    [BENCH_VERB_GET] = {"get", "\r\n", "END", NULL},
    [BENCH_VERB_INCR] = {"incr", " 1\r\n", NULL, "NOT_FOUND"},
    [BENCH_VERB_SET] = {"set", NULL, "STORED", NULL},
    [BENCH_VERB_ADD] = {"add", " 0 0 1\r\n1\r\n", "STORED", "NOT_STORED"},
    [BENCH_VERB_DELETE] = {"delete", "\r\n", "DELETED", "NOT_FOUND"},
};

static char *put_text(char *out, const char *text)
{
    return bench_put(out, text, strlen(text));
}

static size_t text_bytes_max(const struct bench_workload *workload)
{
    size_t key_bytes = bench_workload_key_bytes(workload);
    return key_bytes * bench_keys_asked(workload) + 2 * BENCH_VALUE_ROOM;
}

/* " 0 11\r\n1,22,333,44\r\n", what a loaded key holds: flags before it, as set and VALUE have it.
 */
static char *put_value(const struct bench_workload *workload, uint64_t id, int slot, char *out)
{
    char value[BENCH_VALUE_ROOM];
    size_t length = bench_workload_print_value(workload, id, slot, value);

    CHECK(length <= BENCH_VALUE_TEXT_MAX);
    out = bench_put(out, " 0 ", 3);
    out += num_print(out, length);
    out = bench_put(out, "\r\n", 2);
    out = bench_put(out, value, length);
    return bench_put(out, "\r\n", 2);
}

/* "set feed:1 0 0 11\r\n1,22,333,44\r\n" */
static char *text_set(const struct bench_workload *workload, const struct bench_key *key,
                      uint64_t id, char *out)
{
    out = bench_put(out, "set ", 4);
    out = bench_workload_put_key(workload, key, id, out);
    out = bench_put(out, " 0", 2);
    return put_value(workload, id, key->slot, out);
}

static char *text_ask(const struct bench_workload *workload, const uint64_t *ids, char *out)
{
    out = put_text(out, verbs[workload->verb].word);
    for (uint64_t key = 0; key < bench_keys_asked(workload); key++) {
        *out++ = ' ';
        out = bench_workload_put_key(workload, bench_key_at(workload, key),
                                     ids[key / workload->key_count], out);
    }
    return put_text(out, workload->end != NULL ? workload->end : verbs[workload->verb].end);
}

/* How the line of a key begins. */
static char *put_value_key(const struct bench_judged *judged, uint64_t key, char *out)
{
    const struct bench_workload *workload = judged->workload;

    out = bench_put(out, VALUE, strlen(VALUE));
    return bench_workload_put_key(workload, bench_key_at(workload, key), bench_id_at(judged, key),
                                  out);
}

/* The common case: byte for byte what the next loaded key answers. Returns its bytes, else 0. */
static size_t judge_common(const struct bench_judged *judged, const char *bytes, size_t length)
{
    const struct bench_workload *workload = judged->workload;
    uint64_t asked = bench_keys_asked(workload), key = judged->reply->key;
    char expected[BENCH_EXPECTED_MAX];

    if (workload->verb != BENCH_VERB_GET || workload->verify != BENCH_VALUES) {
        return 0;
    }
    while (key < asked && bench_judged_foreign(judged, key)) {
        key++;
    }
    if (key == asked) {
        return 0;
    }
    char *end = put_value(workload, bench_id_at(judged, key), bench_key_at(workload, key)->slot,
                          put_value_key(judged, key, expected));
    size_t taken = (size_t)(end - expected);

    if (length < taken || memcmp(bytes, expected, taken) != 0) {
        return 0;
    }
    bench_judged_missed(judged, key);
    bench_judged_found(judged);
    return taken;
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

/* A line that is no VALUE ends the reply to its request. */
static void judge_line(const struct bench_judged *judged)
{
    const struct bench_item *item = &judged->item;
    enum bench_verb verb = judged->workload->verb;
    const char *yes = verbs[verb].yes, *no = verbs[verb].no;
    char first = item->line_length > 0 ? item->line[0] : ' ';

    judged->reply->done = true;
    if (bench_item_error(item)) {
        bench_judged_error(judged);
    } else if (yes == NULL && (first == ',' || (first >= '0' && first <= '9'))) {
        bench_judged_incremented(judged);
    } else if (yes != NULL && bench_item_is(item, yes) && verb == BENCH_VERB_GET) {
        bench_judged_missed(judged, bench_keys_asked(judged->workload));
    } else if (yes != NULL && bench_item_is(item, yes)) {
        bench_judged_changed(judged, true);
    } else if (no != NULL && bench_item_is(item, no)) {
        bench_judged_changed(judged, false);
    } else {
        judged->reply->done = false;
        bench_judged_broken(judged, "unexpected line: ");
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
        bench_judged_broken(judged, judged->item.fault);
        break;
    }
    return taken;
}

static size_t text_judge(struct bench_judged *judged, const char *bytes, size_t length)
{
    size_t at = 0, taken = 0;

    while (at < length && (taken = judge_common(judged, bytes + at, length - at)) != 0) {
        at += taken;
    }
    return at != 0 ? at : judge_item(judged, bytes, length);
}

const struct bench_dialect bench_dialect_text = {
    .address = BENCH_ADDRESS_MEMCACHED,
    .bytes_max = text_bytes_max,
    .set = text_set,
    .ask = text_ask,
    .judge = text_judge,
};
