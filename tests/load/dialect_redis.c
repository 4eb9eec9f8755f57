/*
 * The dialect of Redis: a request is an array of bulk strings, RESP2. By layout a read is one
 * command for all keys (MGET) or one for each id, sent together and answered one after the other.
 * judge_common() is the common case, byte for byte what a loaded key answers, for a hash all its
 * fields at once; the rest is judged element by element.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "tests/load/kit.h"
#include "tests/load/resp.h"

#define BULK_AROUND_MAX 16u  /* "$16\r\n" and "\r\n" */
#define AROUND_MAX      768u /* sixteen slot names, each with its length */
#define EXPECTED_MAX    (AROUND_MAX * 2)

#define ADDRESS "127.0.0.1:6379"

enum answer {
    ANSWER_OK,     /* +OK */
    ANSWER_ADDED,  /* a number, of what is new: none if it was loaded before */
    ANSWER_NUMBER, /* the incremented one */
    ANSWER_VALUE,  /* a bulk string or nil */
    ANSWER_VALUES, /* one array of them, for all keys */
    ANSWER_FIELDS, /* an array of them, a slot each */
    ANSWER_PAIRS,  /* an array of fields and values */
    ANSWER_FLAG    /* 0 or 1 */
};

/* What follows a key in a request. */
enum tail { TAIL_NONE, TAIL_VALUE, TAIL_FIELD, TAIL_FIELDS, TAIL_PAIRS, TAIL_FIELD_1, TAIL_MEMBER };

enum command {
    COMMAND_SET,
    COMMAND_HSET,
    COMMAND_SADD,
    COMMAND_INCR,
    COMMAND_HINCRBY,
    COMMAND_GET,
    COMMAND_MGET,
    COMMAND_HGET,
    COMMAND_HMGET,
    COMMAND_HGETALL,
    COMMAND_SISMEMBER
};

static const struct form {
    const char *name;
    enum tail tail;
    enum answer answer;
} forms[] = {
    [COMMAND_SET] = {"SET", TAIL_VALUE, ANSWER_OK},
    [COMMAND_HSET] = {"HSET", TAIL_PAIRS, ANSWER_ADDED},
    [COMMAND_SADD] = {"SADD", TAIL_MEMBER, ANSWER_ADDED},
    [COMMAND_INCR] = {"INCR", TAIL_NONE, ANSWER_NUMBER},
    [COMMAND_HINCRBY] = {"HINCRBY", TAIL_FIELD_1, ANSWER_NUMBER},
    [COMMAND_GET] = {"GET", TAIL_NONE, ANSWER_VALUE},
    [COMMAND_MGET] = {"MGET", TAIL_NONE, ANSWER_VALUES},
    [COMMAND_HGET] = {"HGET", TAIL_FIELD, ANSWER_VALUE},
    [COMMAND_HMGET] = {"HMGET", TAIL_FIELDS, ANSWER_FIELDS},
    [COMMAND_HGETALL] = {"HGETALL", TAIL_NONE, ANSWER_PAIRS},
    [COMMAND_SISMEMBER] = {"SISMEMBER", TAIL_MEMBER, ANSWER_FLAG},
};

/* The requests of a workload, which differ in their keys and members only. */
struct redis {
    enum command command;
    char before[32];        /* a key: "*3\r\n$4\r\nHGET\r\n" */
    char after[AROUND_MAX]; /* and what follows it: "$4\r\nlike\r\n" */
    size_t before_length;
    size_t after_length;
};

static const struct redis *redis_of(const struct bench_workload *workload)
{
    return workload->state;
}

static const struct form *form_of(const struct bench_workload *workload)
{
    return &forms[redis_of(workload)->command];
}

static enum command command_of(const struct bench_workload *workload)
{
    const struct bench_options *options = workload->options;
    uint64_t layout = load_options_of(options)->layout;
    bool hash = layout == LOAD_HASH || layout == LOAD_HASH_ALL;
    bool many = options->workload == BENCH_PAGE || options->workload == BENCH_EXIST ||
                workload->key_count > 1;

    if (workload->verb == BENCH_VERB_SET) {
        return hash ? COMMAND_HSET : layout == LOAD_SETS ? COMMAND_SADD : COMMAND_SET;
    }
    if (workload->verb == BENCH_VERB_INCR) {
        return hash ? COMMAND_HINCRBY : COMMAND_INCR;
    }
    if (layout == LOAD_SETS) {
        return COMMAND_SISMEMBER;
    }
    if (hash && options->workload == BENCH_SLOT) {
        return COMMAND_HGET;
    }
    if (hash) {
        return layout == LOAD_HASH ? COMMAND_HMGET : COMMAND_HGETALL;
    }
    return many ? COMMAND_MGET : COMMAND_GET;
}

static char *put_bulk(char *out, const char *bytes, size_t length)
{
    *out++ = '$';
    out += num_print(out, length);
    out = bench_put(out, "\r\n", 2);
    out = bench_put(out, bytes, length);
    return bench_put(out, "\r\n", 2);
}

static char *put_name(char *out, const char *name)
{
    return put_bulk(out, name, strlen(name));
}

/* Arguments after the command. */
static size_t arguments_of(const struct bench_workload *workload)
{
    size_t slots = workload->options->slot_count;

    switch (form_of(workload)->tail) {
    case TAIL_NONE:
        break;
    case TAIL_VALUE:
    case TAIL_FIELD:
    case TAIL_MEMBER:
        return 2;
    case TAIL_FIELD_1:
        return 3;
    case TAIL_FIELDS:
        return 1 + slots;
    case TAIL_PAIRS:
        return 1 + 2 * slots;
    }
    return redis_of(workload)->command == COMMAND_MGET ? bench_keys_asked(workload) : 1;
}

static void redis_prepare(struct bench_workload *workload)
{
    struct redis *redis = workload->state;
    const struct bench_options *options = workload->options;

    redis->command = command_of(workload);
    const char *name = form_of(workload)->name;
    enum tail tail = form_of(workload)->tail;
    int length = snprintf(redis->before, sizeof(redis->before), "*%zu\r\n$%zu\r\n%s\r\n",
                          arguments_of(workload) + 1, strlen(name), name);
    CHECK(length > 0 && (size_t)length < sizeof(redis->before));
    redis->before_length = (size_t)length;
    char *at = redis->after;
    if (tail == TAIL_FIELD || tail == TAIL_FIELD_1) {
        at = put_name(at, options->slot_names[options->slot_chosen]);
    }
    if (tail == TAIL_FIELD_1) {
        at = put_bulk(at, "1", 1);
    }
    for (size_t i = 0; tail == TAIL_FIELDS && i < options->slot_count; i++) {
        at = put_name(at, options->slot_names[i]);
    }
    redis->after_length = (size_t)(at - redis->after);
    CHECK(redis->after_length <= sizeof(redis->after));
}

static size_t redis_bytes_max(const struct bench_workload *workload)
{
    const struct redis *redis = redis_of(workload);
    size_t value_bytes = BENCH_NAME_MAX + BENCH_NUMBER_TEXT_MAX + 2 * BULK_AROUND_MAX;
    size_t set_bytes = workload->options->slot_count * value_bytes + BENCH_VALUE_TEXT_MAX;
    size_t key_bytes = bench_workload_key_bytes(workload) + 2 * BULK_AROUND_MAX +
                       BENCH_MEMBER_TEXT_MAX + redis->before_length + redis->after_length;
    return key_bytes * bench_keys_asked(workload) + redis->before_length +
           (workload->verb == BENCH_VERB_SET ? set_bytes : 0);
}

static char *put_member(uint64_t id, char *out)
{
    char member[BENCH_MEMBER_TEXT_MAX];
    char *end = bench_workload_put_member(id, member);
    return put_bulk(out, member, (size_t)(end - member));
}

/* A key; that of a set ends before the member. */
static char *put_key(const struct bench_workload *workload, const struct bench_key *key,
                     uint64_t id, char *out)
{
    char text[BENCH_KEY_TEXT_MAX];
    char *end = NULL;

    if (form_of(workload)->tail == TAIL_MEMBER) {
        end = bench_put(text, workload->head, workload->head_length);
        end += num_print(end, id & ~BENCH_FOREIGN);
        end = bench_put(end, key->suffix, key->suffix_length);
    } else {
        end = bench_workload_put_key(workload, key, id, text);
    }
    return put_bulk(out, text, (size_t)(end - text));
}

static char *put_value(const struct bench_workload *workload, uint64_t id, int slot, char *out)
{
    char value[BENCH_VALUE_ROOM];
    size_t length = bench_workload_print_value(workload, id, slot, value);
    return put_bulk(out, value, length);
}

/* The slots of an id, with or without their names before them. */
static char *put_slots(const struct bench_workload *workload, uint64_t id, bool names, char *out)
{
    for (size_t i = 0; i < workload->options->slot_count; i++) {
        if (names) {
            out = put_name(out, workload->options->slot_names[i]);
        }
        out = put_value(workload, id, (int)i, out);
    }
    return out;
}

static char *put_request(const struct bench_workload *workload, const struct bench_key *key,
                         uint64_t id, char *out)
{
    const struct redis *redis = redis_of(workload);
    enum tail tail = form_of(workload)->tail;

    out = bench_put(out, redis->before, redis->before_length);
    out = put_key(workload, key, id, out);
    if (tail == TAIL_MEMBER) {
        return put_member(id, out);
    }
    if (tail == TAIL_VALUE) {
        return put_value(workload, id, key->slot, out);
    }
    if (tail == TAIL_PAIRS) {
        return put_slots(workload, id, true, out);
    }
    return bench_put(out, redis->after, redis->after_length);
}

static char *redis_ask(const struct bench_workload *workload, const uint64_t *ids, char *out)
{
    const struct redis *redis = redis_of(workload);

    if (redis->command != COMMAND_MGET) {
        for (uint64_t i = 0; i < workload->ids; i++) {
            out = put_request(workload, &workload->keys[0], ids[i], out);
        }
        return out;
    }
    out = bench_put(out, redis->before, redis->before_length);
    for (uint64_t key = 0; key < bench_keys_asked(workload); key++) {
        out = put_key(workload, bench_key_at(workload, key), ids[key / workload->key_count], out);
    }
    return out;
}

static uint64_t answers_asked(const struct bench_workload *workload)
{
    return workload->verb == BENCH_VERB_GET ? bench_keys_asked(workload) : 1;
}

static void broken(struct bench_judged *judged, const char *what)
{
    bench_judged_mismatch(judged, what);
    judged->reply->broken = true;
}

/* An error answers a command: of a read of all keys, all of them. */
static void judge_error(struct bench_judged *judged)
{
    bench_judged_error(judged);
    if (redis_of(judged->workload)->command == COMMAND_MGET) {
        judged->reply->key = answers_asked(judged->workload);
    } else {
        judged->reply->key++;
    }
}

static void judge_change(struct bench_judged *judged, enum answer answer)
{
    uint64_t added = 0;

    if (answer == ANSWER_NUMBER) {
        bench_judged_incremented(judged);
    } else {
        judged->tally->hits++;
        if (answer == ANSWER_OK && !bench_item_is(&judged->item, "OK")) {
            bench_judged_mismatch(judged, "not OK: ");
        }
        if (answer == ANSWER_ADDED &&
            (!num_parse(judged->item.line, judged->item.line_length, &added) ||
             added > judged->workload->options->slot_count)) {
            bench_judged_mismatch(judged, "not so many were added: ");
        }
    }
    judged->reply->key++;
}

/* The next key, as a bulk string or nil. */
static void judge_value(struct bench_judged *judged, enum load_resp_kind kind)
{
    const struct bench_workload *workload = judged->workload;
    uint64_t key = judged->reply->key;

    if (kind == LOAD_RESP_NIL) {
        bench_judged_missed(judged, key + 1);
        return;
    }
    bench_judged_found(judged);
    if (workload->verify != BENCH_OFF &&
        !bench_judged_value_right(judged, bench_id_at(judged, key),
                                  bench_key_at(workload, key)->slot)) {
        bench_judged_mismatch_of(judged, "wrong value: ", key);
    }
}

static void judge_flag(struct bench_judged *judged)
{
    uint64_t key = judged->reply->key;

    if (bench_item_is(&judged->item, "0")) {
        bench_judged_missed(judged, key + 1);
        return;
    }
    if (!bench_item_is(&judged->item, "1")) {
        bench_judged_mismatch_of(judged, "neither 0 nor 1: ", key);
    }
    bench_judged_found(judged);
}

/* One slot of a hash, the item's data. */
static void judge_slot(struct bench_judged *judged, size_t slot)
{
    const struct bench_workload *workload = judged->workload;
    uint64_t key = judged->reply->key;

    judged->reply->seen |= 1u << slot;
    if (workload->verify != BENCH_OFF &&
        !bench_judged_value_right(judged, bench_id_at(judged, key), (int)slot)) {
        bench_judged_mismatch_of(judged, "wrong value: ", key);
    }
}

/* A hash with no slot is not there; a loaded one has them all. */
static void end_hash(struct bench_judged *judged)
{
    const struct bench_workload *workload = judged->workload;
    uint64_t key = judged->reply->key;

    if (judged->reply->seen == 0) {
        bench_judged_missed(judged, key + 1);
        return;
    }
    bench_judged_found(judged);
    if (workload->verify == BENCH_VALUES &&
        judged->reply->seen != (1u << workload->options->slot_count) - 1) {
        bench_judged_mismatch_of(judged, "a loaded slot is missing: ", key);
    }
}

/* An element of an array; a hash is complete with the last. */
static void judge_element(struct bench_judged *judged, enum load_resp_kind kind)
{
    struct bench_reply *reply = judged->reply;
    enum answer answer = form_of(judged->workload)->answer;

    if (kind != LOAD_RESP_BULK && kind != LOAD_RESP_NIL) {
        broken(judged, "neither a string nor nil: ");
        return;
    }
    if (answer == ANSWER_VALUES) {
        judge_value(judged, kind);
    } else if (kind == LOAD_RESP_BULK) {
        judge_slot(judged, judged->workload->options->slot_count - reply->left);
    }
    reply->left--;
}

/* A field of a hash by its name, and its value. Returns the bytes of both, 0 for a part. */
static size_t judge_pair(struct bench_judged *judged, const char *bytes, size_t length)
{
    const struct bench_options *options = judged->workload->options;
    struct load_resp field, value;
    size_t slot = 0;
    enum load_resp_kind kind = load_resp_cut(bytes, length, &field);

    judged->item = field.item;
    if (kind == LOAD_RESP_PART || (kind == LOAD_RESP_BULK && field.bytes == length)) {
        return 0;
    }
    if (kind == LOAD_RESP_BULK) {
        kind = load_resp_cut(bytes + field.bytes, length - field.bytes, &value);
        judged->item = value.item;
    }
    if (kind == LOAD_RESP_PART) {
        return 0;
    }
    if (kind != LOAD_RESP_BULK) {
        broken(judged, "neither field nor value: ");
        return 0;
    }
    judged->reply->left -= 2;
    while (slot < options->slot_count && !bench_item_is(&field.item, options->slot_names[slot])) {
        slot++;
    }
    if (judged->workload->verify == BENCH_OFF) {
        judged->reply->seen = 1;
    } else if (slot == options->slot_count || (judged->reply->seen & 1u << slot) != 0) {
        judged->item = field.item;
        bench_judged_mismatch_of(judged, "a field too many: ", judged->reply->key);
    } else {
        judge_slot(judged, slot);
    }
    return field.bytes + value.bytes;
}

/* The head of an array. */
static void judge_array(struct bench_judged *judged, uint64_t count)
{
    const struct bench_workload *workload = judged->workload;
    enum answer answer = form_of(workload)->answer;
    bool right = answer == ANSWER_VALUES   ? count == bench_keys_asked(workload)
                 : answer == ANSWER_FIELDS ? count == workload->options->slot_count
                                           : count % 2 == 0;

    if (!right) {
        broken(judged, "an array of another length: ");
    }
    judged->reply->open = true;
    judged->reply->left = count;
    judged->reply->seen = 0;
}

/* What answers a command. */
static void judge_answer(struct bench_judged *judged, enum load_resp_kind kind, uint64_t count)
{
    static const enum load_resp_kind wanted[] = {
        [ANSWER_OK] = LOAD_RESP_LINE,       [ANSWER_ADDED] = LOAD_RESP_NUMBER,
        [ANSWER_NUMBER] = LOAD_RESP_NUMBER, [ANSWER_VALUE] = LOAD_RESP_BULK,
        [ANSWER_VALUES] = LOAD_RESP_ARRAY,  [ANSWER_FIELDS] = LOAD_RESP_ARRAY,
        [ANSWER_PAIRS] = LOAD_RESP_ARRAY,   [ANSWER_FLAG] = LOAD_RESP_NUMBER,
    };
    enum answer answer = form_of(judged->workload)->answer;

    if (kind == LOAD_RESP_ERROR) {
        judge_error(judged);
    } else if (kind != wanted[answer] && !(kind == LOAD_RESP_NIL && answer == ANSWER_VALUE)) {
        broken(judged, "unexpected reply: ");
    } else if (kind == LOAD_RESP_ARRAY) {
        judge_array(judged, count);
    } else if (answer == ANSWER_VALUE) {
        judge_value(judged, kind);
    } else if (answer == ANSWER_FLAG) {
        judge_flag(judged);
    } else {
        judge_change(judged, answer);
    }
}

static size_t judge_item(struct bench_judged *judged, const char *bytes, size_t length)
{
    bool open = judged->reply->open;
    struct load_resp resp;

    if (open && form_of(judged->workload)->answer == ANSWER_PAIRS) {
        return judge_pair(judged, bytes, length);
    }
    enum load_resp_kind kind = load_resp_cut(bytes, length, &resp);
    judged->item = resp.item;
    if (kind == LOAD_RESP_PART) {
        return 0;
    }
    if (kind == LOAD_RESP_BROKEN) {
        broken(judged, resp.item.fault);
    } else if (open) {
        judge_element(judged, kind);
    } else {
        judge_answer(judged, kind, resp.count);
    }
    return resp.bytes;
}

/* What the next loaded key answers; a hash with all its slots. Its end, `out` if there is none. */
static char *put_expected(const struct bench_judged *judged, char *out)
{
    const struct bench_workload *workload = judged->workload;
    enum answer answer = form_of(workload)->answer;
    uint64_t key = judged->reply->key;
    uint64_t id = bench_id_at(judged, key);
    bool pairs = answer == ANSWER_PAIRS;

    if (answer == ANSWER_FLAG || judged->reply->open != (answer == ANSWER_VALUES)) {
        return out;
    }
    if (answer == ANSWER_VALUE || answer == ANSWER_VALUES) {
        return put_value(workload, id, bench_key_at(workload, key)->slot, out);
    }
    *out++ = '*';
    out += num_print(out, workload->options->slot_count * (pairs ? 2 : 1));
    out = bench_put(out, "\r\n", 2);
    return put_slots(workload, id, pairs, out);
}

/* The common case: byte for byte what the next loaded key answers. Returns its bytes, else 0. */
static size_t judge_common(const struct bench_judged *judged, const char *bytes, size_t length)
{
    const struct bench_workload *workload = judged->workload;
    char expected[EXPECTED_MAX];

    if (workload->verb != BENCH_VERB_GET || workload->verify != BENCH_VALUES) {
        return 0;
    }
    size_t taken = (size_t)(put_expected(judged, expected) - expected);
    if (taken == 0 || length < taken || memcmp(bytes, expected, taken) != 0) {
        return 0;
    }
    bench_judged_found(judged);
    if (judged->reply->open) {
        judged->reply->left--;
    }
    return taken;
}

static size_t redis_judge(struct bench_judged *judged, const char *bytes, size_t length)
{
    struct bench_reply *reply = judged->reply;
    size_t taken = judge_common(judged, bytes, length);

    if (taken == 0) {
        taken = judge_item(judged, bytes, length);
    }
    if (taken == 0 || reply->broken) {
        return taken;
    }
    if (reply->open && reply->left == 0) {
        reply->open = false;
        if (form_of(judged->workload)->answer != ANSWER_VALUES) {
            end_hash(judged);
        }
    }
    reply->done = !reply->open && reply->key >= answers_asked(judged->workload);
    return taken;
}

const struct bench_dialect load_dialect_redis = {
    .address = ADDRESS,
    .state_bytes = sizeof(struct redis),
    .prepare = redis_prepare,
    .bytes_max = redis_bytes_max,
    .set = put_request,
    .ask = redis_ask,
    .judge = redis_judge,
};
