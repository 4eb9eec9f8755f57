/*
 * The binary dialect of memcached. Several keys are asked for by quiet gets with their keys
 * (GETKQ), closed by a NOOP, as client libraries do it: what is missing is silent. The opaque of a
 * request is its key's number and bits of its id, so that an answer to another one is found even
 * where it has no key.
 */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "tools/rollcall/bench_dialect.h"

#define REQUEST_MAGIC     0x80
#define ANSWER_MAGIC      0x81
#define HEADER_BYTES      24u
#define CAS_AT            16u /* in the header: of an answer, any number */
#define SET_EXTRAS_BYTES  8u  /* flags, expiration */
#define INCR_EXTRAS_BYTES 20u /* delta, initial, expiration */
#define GET_EXTRAS_BYTES  4u  /* flags */
#define NUMBER_BYTES      8u
#define NEVER_CREATE      0xffffffffu /* as the expiration of an increment */
#define STATUS_DONE       0u
#define STATUS_NOT_FOUND  1u
#define OPAQUE_ID_SHIFT   16 /* above the number of a key in its request: 16 slots of 1000 ids */
#define STATUS_TEXT_MAX   24u

enum opcode {
    OPCODE_GET = 0x00,
    OPCODE_SET = 0x01,
    OPCODE_INCREMENT = 0x05,
    OPCODE_NOOP = 0x0a,
    OPCODE_GETKQ = 0x0d
};

struct header {
    uint8_t magic;
    uint8_t opcode;
    uint16_t key_length;
    uint8_t extras_length;
    uint8_t data_type;
    uint16_t status; /* of a request: the bucket, always 0 */
    uint32_t body_length;
    uint32_t opaque;
    uint64_t cas;
} __attribute__((packed));

_Static_assert(sizeof(struct header) == HEADER_BYTES, "a header has 24 bytes");

/* An answer, in the machine's order. */
struct answer {
    uint8_t opcode;
    uint16_t status;
    uint32_t opaque;
    size_t key_length;
    size_t extras_length;
    const char *key;
    size_t bytes; /* in all */
};

static bool is_quiet(const struct bench_workload *workload)
{
    uint64_t kind = workload->options->workload;
    return workload->key_count > 1 || kind == BENCH_PAGE || kind == BENCH_EXIST;
}

static uint32_t opaque_of(uint64_t id, uint64_t key)
{
    return (uint32_t)(id << OPAQUE_ID_SHIFT) + (uint32_t)key;
}

/* Writes the header of a body that stands behind it already; `extras` counts as part of it. */
static char *close_packet(char *start, char *end, const struct header *parts)
{
    struct header header = {
        .magic = parts->magic,
        .opcode = parts->opcode,
        .key_length = htobe16(parts->key_length),
        .extras_length = parts->extras_length,
        .body_length = htobe32((uint32_t)((size_t)(end - start) - HEADER_BYTES)),
        .opaque = htobe32(parts->opaque),
    };
    memcpy(start, &header, sizeof(header));
    return end;
}

static size_t binary_bytes_max(const struct bench_workload *workload)
{
    size_t key_bytes = HEADER_BYTES + INCR_EXTRAS_BYTES + bench_workload_key_bytes(workload) +
                       BENCH_VALUE_TEXT_MAX;
    return key_bytes * bench_keys_asked(workload) + HEADER_BYTES + sizeof(struct bench_number);
}

static char *binary_set(const struct bench_workload *workload, const struct bench_key *key,
                        uint64_t id, char *out)
{
    char *key_at = out + HEADER_BYTES + SET_EXTRAS_BYTES;
    char *key_end = bench_workload_put_key(workload, key, id, key_at);
    struct header parts = {
        .magic = REQUEST_MAGIC,
        .opcode = OPCODE_SET,
        .key_length = (uint16_t)(key_end - key_at),
        .extras_length = SET_EXTRAS_BYTES,
        .opaque = opaque_of(id, 0),
    };

    memset(out + HEADER_BYTES, 0, SET_EXTRAS_BYTES);
    char *end = key_end + bench_workload_print_value(workload, id, key->slot, key_end);
    return close_packet(out, end, &parts);
}

static char *put_incr(const struct bench_workload *workload, uint64_t id, char *out)
{
    const uint64_t delta = htobe64(1), initial = 0;
    const uint32_t expiration = htobe32(NEVER_CREATE);
    char *key_at = out + HEADER_BYTES + INCR_EXTRAS_BYTES;
    char *end = bench_workload_put_key(workload, &workload->keys[0], id, key_at);
    struct header parts = {
        .magic = REQUEST_MAGIC,
        .opcode = OPCODE_INCREMENT,
        .key_length = (uint16_t)(end - key_at),
        .extras_length = INCR_EXTRAS_BYTES,
        .opaque = opaque_of(id, 0),
    };

    memcpy(out + HEADER_BYTES, &delta, sizeof(delta));
    memcpy(out + HEADER_BYTES + sizeof(delta), &initial, sizeof(initial));
    memcpy(out + HEADER_BYTES + sizeof(delta) + sizeof(initial), &expiration, sizeof(expiration));
    return close_packet(out, end, &parts);
}

static char *put_get(const struct bench_workload *workload, enum opcode opcode, uint64_t id,
                     uint64_t key, char *out)
{
    char *key_at = out + HEADER_BYTES;
    char *end = bench_workload_put_key(workload, bench_key_at(workload, key), id, key_at);
    struct header parts = {
        .magic = REQUEST_MAGIC,
        .opcode = (uint8_t)opcode,
        .key_length = (uint16_t)(end - key_at),
        .opaque = opaque_of(id, key),
    };
    return close_packet(out, end, &parts);
}

static char *binary_ask(const struct bench_workload *workload, const uint64_t *ids, char *out)
{
    struct header closing = {
        .magic = REQUEST_MAGIC,
        .opcode = OPCODE_NOOP,
        .opaque = opaque_of(ids[0], 0),
    };

    if (workload->verb == BENCH_VERB_INCR) {
        return put_incr(workload, ids[0], out);
    }
    if (!is_quiet(workload)) {
        return put_get(workload, OPCODE_GET, ids[0], 0, out);
    }
    for (uint64_t key = 0; key < bench_keys_asked(workload); key++) {
        out = put_get(workload, OPCODE_GETKQ, ids[key / workload->key_count], key, out);
    }
    return close_packet(out, out + HEADER_BYTES, &closing);
}

static void broken(struct bench_judged *judged, const char *what)
{
    bench_judged_mismatch(judged, what);
    judged->reply->broken = true;
}

/* Cuts the next answer off. False: it is not all there, or none. */
static bool cut(struct bench_judged *judged, const char *bytes, size_t length,
                struct answer *answer)
{
    struct header header;

    judged->item.line_length = length < HEADER_BYTES ? length : HEADER_BYTES;
    if ((uint8_t)bytes[0] != ANSWER_MAGIC) {
        broken(judged, "not a binary answer: ");
        return false;
    }
    if (length < HEADER_BYTES) {
        return false;
    }
    memcpy(&header, bytes, sizeof(header));
    size_t body_length = be32toh(header.body_length);
    *answer = (struct answer){
        .opcode = header.opcode,
        .status = be16toh(header.status),
        .opaque = be32toh(header.opaque),
        .key_length = be16toh(header.key_length),
        .extras_length = header.extras_length,
        .key = bytes + HEADER_BYTES + header.extras_length,
        .bytes = HEADER_BYTES + body_length,
    };
    size_t around = answer->extras_length + answer->key_length;
    if (answer->bytes > BENCH_ITEM_MAX || around > body_length) {
        broken(judged, "a header with impossible lengths: ");
        return false;
    }
    judged->item.data = answer->key + answer->key_length;
    judged->item.data_length = body_length - around;
    judged->item.line = judged->item.data;
    judged->item.line_length = judged->item.data_length;
    return length >= answer->bytes;
}

/* An error is its text, or if it has none, its status. */
static void judge_error(struct bench_judged *judged, const struct answer *answer)
{
    char text[STATUS_TEXT_MAX];

    if (judged->item.line_length == 0) {
        judged->item.line = text;
        judged->item.line_length =
            (size_t)snprintf(text, sizeof(text), "status 0x%04x", answer->status);
    }
    bench_judged_error(judged);
    judged->item.line = judged->item.data;
}

static bool value_of(const struct bench_judged *judged, uint64_t key)
{
    const struct bench_workload *workload = judged->workload;
    return workload->verify == BENCH_OFF ||
           bench_judged_value_right(judged, bench_id_at(judged, key),
                                    bench_key_at(workload, key)->slot);
}

static void judge_get(struct bench_judged *judged, const struct answer *answer)
{
    if (answer->status == STATUS_NOT_FOUND) {
        bench_judged_missed(judged, 1);
    } else if (answer->status != STATUS_DONE) {
        judge_error(judged, answer);
    } else if (answer->extras_length != GET_EXTRAS_BYTES || answer->key_length != 0) {
        broken(judged, "a get's answer of another form: ");
    } else {
        bench_judged_found(judged);
        if (!value_of(judged, 0)) {
            bench_judged_mismatch_of(judged, "wrong value: ", 0);
        }
    }
}

static void judge_incr(struct bench_judged *judged, const struct answer *answer)
{
    char text[BENCH_NUMBER_TEXT_MAX];
    uint64_t number = 0;

    if (answer->status == STATUS_NOT_FOUND) {
        judged->tally->misses++;
    } else if (answer->status != STATUS_DONE) {
        judge_error(judged, answer);
    } else if (judged->item.data_length != NUMBER_BYTES || answer->key_length != 0 ||
               answer->extras_length != 0) {
        broken(judged, "an increment's answer of another form: ");
    } else {
        memcpy(&number, judged->item.data, sizeof(number));
        judged->item.line = text;
        judged->item.line_length = num_print(text, be64toh(number));
        bench_judged_incremented(judged);
    }
}

static void judge_set(struct bench_judged *judged, const struct answer *answer)
{
    if (answer->status != STATUS_DONE) {
        judge_error(judged, answer);
    } else if (answer->bytes != HEADER_BYTES) {
        broken(judged, "a set's answer of another form: ");
    } else {
        judged->tally->hits++;
    }
}

/* The only answer to a request. */
static void judge_single(struct bench_judged *judged, const struct answer *answer)
{
    static const struct {
        enum opcode opcode;
        void (*judge)(struct bench_judged *judged, const struct answer *answer);
    } singles[] = {
        [BENCH_VERB_GET] = {OPCODE_GET, judge_get},
        [BENCH_VERB_INCR] = {OPCODE_INCREMENT, judge_incr},
        [BENCH_VERB_SET] = {OPCODE_SET, judge_set},
    };
    enum bench_verb verb = judged->workload->verb;

    if (answer->opcode != singles[verb].opcode) {
        broken(judged, "unexpected opcode: ");
    } else if (answer->opaque != opaque_of(judged->ids[0], 0)) {
        broken(judged, "another request's opaque: ");
    } else {
        singles[verb].judge(judged, answer);
    }
    judged->reply->done = !judged->reply->broken;
}

/* The key an answer to a quiet get is for, at or behind the next one; keys asked: there is none. */
static uint64_t find_key(const struct bench_judged *judged, const struct answer *answer)
{
    const struct bench_workload *workload = judged->workload;
    uint64_t asked = bench_keys_asked(workload);
    char text[BENCH_KEY_TEXT_MAX];

    for (uint64_t key = judged->reply->key; key < asked; key++) {
        uint64_t id = bench_id_at(judged, key);
        if (answer->opaque != opaque_of(id, key)) {
            continue;
        }
        char *end = bench_workload_put_key(workload, bench_key_at(workload, key), id, text);
        bool same = (size_t)(end - text) == answer->key_length &&
                    memcmp(text, answer->key, answer->key_length) == 0;
        return same || answer->status != STATUS_DONE ? key : asked;
    }
    return asked;
}

static void judge_quiet_get(struct bench_judged *judged, const struct answer *answer)
{
    const struct bench_workload *workload = judged->workload;

    if (workload->verify == BENCH_OFF && answer->status == STATUS_DONE) {
        judged->tally->hits++;
        judged->reply->key++;
        return;
    }
    uint64_t key = find_key(judged, answer);
    if (key == bench_keys_asked(workload)) {
        judged->item.line = answer->key;
        judged->item.line_length = answer->key_length;
        bench_judged_mismatch(judged, "key not asked for here: ");
        return;
    }
    bench_judged_missed(judged, key);
    if (answer->status == STATUS_NOT_FOUND) {
        bench_judged_mismatch_of(judged, "a quiet get's miss that is not silent: ", key);
    } else if (answer->status != STATUS_DONE) {
        judge_error(judged, answer);
        judged->reply->key++;
    } else if (answer->extras_length != GET_EXTRAS_BYTES) {
        broken(judged, "a get's answer of another form: ");
    } else {
        bench_judged_found(judged);
        if (!value_of(judged, key)) {
            bench_judged_mismatch_of(judged, "wrong value: ", key);
        }
    }
}

/* One of the answers to quiet gets, or the one that closes them. */
static void judge_quiet(struct bench_judged *judged, const struct answer *answer)
{
    uint64_t asked = bench_keys_asked(judged->workload);

    if (answer->opcode == OPCODE_GETKQ) {
        judge_quiet_get(judged, answer);
    } else if (answer->opcode != OPCODE_NOOP) {
        broken(judged, "unexpected opcode: ");
    } else if (answer->opaque != opaque_of(judged->ids[0], 0)) {
        broken(judged, "another request's opaque: ");
    } else {
        if (answer->status != STATUS_DONE) {
            judge_error(judged, answer);
        }
        if (judged->reply->key < asked) {
            bench_judged_missed(judged, asked);
        }
        judged->reply->done = true;
    }
}

/* The answer of a key, as a loaded one gives it; its cas is any. Returns its bytes, else 0. */
static size_t judge_expected(const struct bench_judged *judged, uint64_t key, const char *bytes,
                             size_t length)
{
    const struct bench_workload *workload = judged->workload;
    const struct bench_key *form = bench_key_at(workload, key);
    bool quiet = is_quiet(workload);
    uint64_t id = bench_id_at(judged, key);
    char expected[HEADER_BYTES + BENCH_EXPECTED_MAX];
    char *key_at = expected + HEADER_BYTES + GET_EXTRAS_BYTES;
    char *key_end = quiet ? bench_workload_put_key(workload, form, id, key_at) : key_at;
    char *end = key_end + bench_workload_print_value(workload, id, form->slot, key_end);
    struct header parts = {
        .magic = ANSWER_MAGIC,
        .opcode = quiet ? OPCODE_GETKQ : OPCODE_GET,
        .key_length = (uint16_t)(key_end - key_at),
        .extras_length = GET_EXTRAS_BYTES,
        .opaque = opaque_of(id, key),
    };
    size_t expected_length = (size_t)(end - expected);

    if (length < expected_length) {
        return 0;
    }
    memset(expected + HEADER_BYTES, 0, GET_EXTRAS_BYTES);
    close_packet(expected, end, &parts);
    bool same =
        memcmp(bytes, expected, CAS_AT) == 0 &&
        memcmp(bytes + HEADER_BYTES, expected + HEADER_BYTES, expected_length - HEADER_BYTES) == 0;
    return same ? expected_length : 0;
}

/* The common case: what the next loaded key answers. */
static size_t judge_common(const struct bench_judged *judged, const char *bytes, size_t length)
{
    size_t taken = bench_judged_common(judged, judge_expected, bytes, length);

    if (taken != 0) {
        judged->reply->done = !is_quiet(judged->workload);
    }
    return taken;
}

static size_t binary_judge(struct bench_judged *judged, const char *bytes, size_t length)
{
    struct answer answer;
    size_t at = 0, taken = 0;

    while (at < length && (taken = judge_common(judged, bytes + at, length - at)) != 0) {
        at += taken;
    }
    if (at != 0) {
        return at;
    }
    if (!cut(judged, bytes, length, &answer)) {
        return 0;
    }
    if (judged->workload->verb == BENCH_VERB_GET && is_quiet(judged->workload)) {
        judge_quiet(judged, &answer);
    } else {
        judge_single(judged, &answer);
    }
    return answer.bytes;
}

const struct bench_dialect bench_dialect_binary = {
    .name = "binary",
    .address = BENCH_ADDRESS_MEMCACHED,
    .bytes_max = binary_bytes_max,
    .set = binary_set,
    .ask = binary_ask,
    .judge = binary_judge,
};
