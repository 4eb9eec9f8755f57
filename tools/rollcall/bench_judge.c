/*
 * Judging replies. judge_expected() is the common case: the item is byte for byte what a loaded key
 * answers. Whatever is not goes to judge_line(), which alone decides what is wrong.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "tools/rollcall/bench_workload_private.h"

#define LINE_MAX_BYTES 2048u

/* One item being judged. */
struct item {
    const struct bench_workload *workload;
    const uint64_t *ids;
    const char *line; /* without its CRLF */
    size_t line_length;
    const char *data; /* of a VALUE */
    size_t data_length;
    struct bench_reply *reply;
    struct bench_tally *tally;
};

static bool begins(const struct item *item, const char *word)
{
    size_t length = strlen(word);
    return item->line_length >= length && memcmp(item->line, word, length) == 0;
}

/* Keeps the first text of a kind, with unprintable bytes shown as dots. */
static void keep_first(char kept[BENCH_TEXT_MAX], const char *what, const char *bytes,
                       size_t length)
{
    if (kept[0] != '\0')
        return;
    size_t at = (size_t)snprintf(kept, BENCH_TEXT_MAX, "%s", what);
    for (size_t i = 0; i < length && at + 1 < BENCH_TEXT_MAX; i++)
        kept[at++] = bytes[i] >= ' ' && bytes[i] < 127 ? bytes[i] : '.';
    kept[at] = '\0';
}

static void mismatch(const struct item *item, const char *what)
{
    item->tally->mismatches++;
    keep_first(item->tally->first_mismatch, what, item->line, item->line_length);
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

    out = bench_workload_put(out, workload->value_head, workload->value_head_length);
    out += num_print(out, id & ~BENCH_FOREIGN);
    return bench_workload_put_suffix(form, id, out);
}

static bool is_exist(const struct bench_workload *workload)
{
    return workload->keys[0].slot == BENCH_SLOT_MEMBER;
}

/* The keys up to `to` are not there: of existence keys only foreign ones may be missing. */
static void pass_missed(const struct item *item, uint64_t to)
{
    const struct bench_workload *workload = item->workload;
    uint64_t from = item->reply->key;

    item->tally->misses += to - from;
    item->reply->key = to;
    for (; is_exist(workload) && workload->verify != BENCH_OFF && from < to; from++) {
        bool foreign = (id_at(workload, item->ids, from) & BENCH_FOREIGN) != 0;
        item->tally->foreign += foreign;
        if (!foreign && workload->verify == BENCH_VALUES)
            mismatch(item, "a loaded member is denied: ");
    }
}

/* The next key is there. */
static void pass_found(const struct item *item)
{
    uint64_t id = id_at(item->workload, item->ids, item->reply->key);

    item->tally->hits++;
    item->reply->key++;
    if (is_exist(item->workload) && (id & BENCH_FOREIGN) != 0) {
        item->tally->foreign++;
        item->tally->wrong++;
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

    at = bench_workload_put(at, " 0 ", 3);
    at += num_print(at, value_length);
    at = bench_workload_put(at, "\r\n", 2);
    at = bench_workload_put(at, value, value_length);
    at = bench_workload_put(at, "\r\n", 2);
    size_t expected_length = (size_t)(at - expected);
    if (length < expected_length || memcmp(bytes, expected, expected_length) != 0)
        return 0;
    return expected_length;
}

/* Reads the lengths off "VALUE <key> <flags> <bytes>[ <cas>]"; the key's text into *key_end. */
static bool value_line(const struct item *item, size_t *key_end, uint64_t *data_length)
{
    const char *at = item->line + strlen("VALUE ");
    const char *end = item->line + item->line_length;
    const char *space = memchr(at, ' ', (size_t)(end - at));
    uint64_t flags = 0;

    if (space == NULL)
        return false;
    *key_end = (size_t)(space - item->line);
    const char *flags_end = memchr(space + 1, ' ', (size_t)(end - space - 1));
    if (flags_end == NULL || !num_parse(space + 1, (size_t)(flags_end - space - 1), &flags))
        return false;
    const char *length_end = memchr(flags_end + 1, ' ', (size_t)(end - flags_end - 1));
    if (length_end == NULL)
        length_end = end;
    return num_parse(flags_end + 1, (size_t)(length_end - flags_end - 1), data_length);
}

/* Numbers or nothing, as many as there are slots. */
static bool form_right(const struct item *item, int slot)
{
    size_t fields_wanted = slot == BENCH_SLOT_WHOLE ? item->workload->options->slot_count : 1;
    size_t fields = 1;

    for (size_t i = 0; i < item->data_length; i++) {
        if (item->data[i] == ',')
            fields++;
        else if (item->data[i] < '0' || item->data[i] > '9')
            return false;
    }
    return fields == fields_wanted && (slot == BENCH_SLOT_WHOLE || item->data_length > 0);
}

static bool value_right(const struct item *item, uint64_t id, int slot)
{
    char value[BENCH_VALUE_TEXT_MAX + 4];

    if (item->workload->verify == BENCH_FORM && slot != BENCH_SLOT_MEMBER)
        return form_right(item, slot);
    size_t length = bench_workload_print_value(item->workload, id, slot, value);
    return length == item->data_length && memcmp(value, item->data, length) == 0;
}

/* A VALUE whose data is all there: of the next key asked for, or of a later one. */
static void judge_value(const struct item *item, size_t key_end)
{
    const struct bench_workload *workload = item->workload;
    uint64_t asked = keys_asked(workload);
    char text[BENCH_EXPECTED_MAX];

    for (uint64_t key = item->reply->key; key < asked; key++) {
        size_t length = (size_t)(put_key(workload, item->ids, key, text) - text);
        if (length != key_end || memcmp(text, item->line, length) != 0)
            continue;
        pass_missed(item, key);
        pass_found(item);
        if (!value_right(item, id_at(workload, item->ids, key), key_at(workload, key)->slot))
            mismatch(item, "wrong value: ");
        return;
    }
    mismatch(item, "key not asked for here: ");
}

/* Completes a VALUE item. Returns its bytes, 0 if its data is not all there. */
static size_t judge_value_item(struct item *item, const char *bytes, size_t length)
{
    size_t key_end = 0, header = (size_t)(item->data - bytes);
    uint64_t data_length = 0;

    if (!value_line(item, &key_end, &data_length) || data_length > BENCH_ITEM_MAX / 2) {
        mismatch(item, "bad VALUE line: ");
        item->reply->broken = true;
        return header;
    }
    if (length < header + data_length + 2)
        return 0;
    item->data_length = data_length;
    if (memcmp(item->data + data_length, "\r\n", 2) != 0) {
        mismatch(item, "data without its CRLF: ");
        item->reply->broken = true;
    } else if (item->workload->verify == BENCH_OFF) {
        item->tally->hits++;
        item->reply->key++;
    } else {
        judge_value(item, key_end);
    }
    return header + data_length + 2;
}

static void judge_get_end(const struct item *item)
{
    uint64_t asked = keys_asked(item->workload);

    if (item->reply->key < asked)
        pass_missed(item, asked);
    item->reply->done = true;
}

static void judge_incr(const struct item *item)
{
    const struct bench_workload *workload = item->workload;
    size_t length = item->line_length;
    uint64_t number = 0;

    item->tally->hits++;
    item->reply->done = true;
    if (!num_parse(item->line, length, &number))
        mismatch(item, "not a number: ");
    else if (workload->climbed &&
             number <= bench_workload_value(item->ids[0], (size_t)workload->keys[0].slot))
        mismatch(item, "not above the loaded value: ");
}

static void judge_error(const struct item *item)
{
    item->tally->errors++;
    item->reply->done = true;
    keep_first(item->tally->first_error, "", item->line, item->line_length);
}

/* A line that is no VALUE ends the reply to its request. */
static void judge_line(const struct item *item)
{
    enum bench_verb verb = item->workload->verb;

    if (begins(item, "ERROR") || begins(item, "CLIENT_ERROR") || begins(item, "SERVER_ERROR")) {
        judge_error(item);
    } else if (verb == BENCH_VERB_GET && item->line_length == 3 && begins(item, "END")) {
        judge_get_end(item);
    } else if (verb == BENCH_VERB_SET && item->line_length == 6 && begins(item, "STORED")) {
        item->tally->hits++;
        item->reply->done = true;
    } else if (verb == BENCH_VERB_INCR && begins(item, "NOT_FOUND")) {
        item->tally->misses++;
        item->reply->done = true;
    } else if (verb == BENCH_VERB_INCR && item->line_length > 0 && item->line[0] >= '0' &&
               item->line[0] <= '9') {
        judge_incr(item);
    } else {
        mismatch(item, "unexpected line: ");
        item->reply->broken = true;
    }
}

static size_t judge_item(struct item *item, const char *bytes, size_t length)
{
    const char *newline = memchr(bytes, '\n', length);

    if (newline == NULL && length <= LINE_MAX_BYTES)
        return 0;
    if (newline == NULL || newline == bytes || newline[-1] != '\r') {
        item->line_length = newline == NULL ? BENCH_TEXT_MAX : (size_t)(newline - bytes);
        mismatch(item, "line without its CRLF: ");
        item->reply->broken = true;
        return item->line_length;
    }
    item->line_length = (size_t)(newline - bytes) - 1;
    item->data = newline + 1;
    if (item->workload->verb == BENCH_VERB_GET && begins(item, "VALUE "))
        return judge_value_item(item, bytes, length);
    judge_line(item);
    return (size_t)(newline - bytes) + 1;
}

size_t bench_workload_judge(const struct bench_workload *workload, const uint64_t *ids,
                            const char *bytes, size_t length, struct bench_reply *reply,
                            struct bench_tally *tally)
{
    struct item item = {
        .workload = workload, .ids = ids, .line = bytes, .reply = reply, .tally = tally};

    CHECK(workload->mark == BENCH_WORKLOAD_MARK && !reply->done && !reply->broken);
    if (length == 0)
        return 0;
    if (workload->verb == BENCH_VERB_GET && workload->verify == BENCH_VALUES &&
        reply->key < keys_asked(workload)) {
        uint64_t key = next_expected(workload, ids, reply->key);
        size_t taken =
            key < keys_asked(workload) ? judge_expected(workload, ids, key, bytes, length) : 0;
        if (taken != 0) {
            pass_missed(&item, key);
            pass_found(&item);
            return taken;
        }
    }
    return judge_item(&item, bytes, length);
}
