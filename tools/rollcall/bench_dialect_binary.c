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
#define SET_EXTRAS_BYTES  8u  /* flags, expiration */
#define INCR_EXTRAS_BYTES 20u /* delta, initial, expiration */
#define GET_EXTRAS_BYTES  4u  /* flags */
#define NUMBER_BYTES      8u
#define STATUS_DONE       0u
#define STATUS_NOT_FOUND  1u
#define OPAQUE_ID_SHIFT   16  /* above the number of a key in its request: 16 slots of 1000 ids */
#define STATUS_TEXT_MAX   24u /* or a number */

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

/* An answer; the numbers of its header are in the machine's order. */
struct answer {
    struct header header;
    const char *key;
    size_t bytes;               /* in all */
    char text[STATUS_TEXT_MAX]; /* its line, where the bytes have none */
};

static const enum opcode singles[] = {
    [BENCH_VERB_GET] = OPCODE_GET,
    [BENCH_VERB_INCR] = OPCODE_INCREMENT,
    [BENCH_VERB_SET] = OPCODE_SET,
};

static bool is_quiet(const struct bench_workload *workload)
{
    uint64_t kind = workload->options->workload;
    bool many = workload->key_count > 1 || kind == BENCH_PAGE || kind == BENCH_EXIST;
    return many && workload->verb == BENCH_VERB_GET;
}

static uint32_t opaque_of(uint64_t id, uint64_t key)
{
    return (uint32_t)(id << OPAQUE_ID_SHIFT) + (uint32_t)key;
}

/* Writes a request; the opaque tells the number of its key and bits of its id. NOOP has no key. */
static char *put_packet(const struct bench_workload *workload, enum opcode opcode,
                        const struct bench_key *key, uint64_t id, uint64_t number, char *out)
{
    static const uint8_t set_extras[SET_EXTRAS_BYTES];
    /* delta 1, initial 0, and the expiration that says: create nothing */
    static const uint8_t incr_extras[INCR_EXTRAS_BYTES] = {[7] = 1, [16] = 255, 255, 255, 255};
    bool incr = opcode == OPCODE_INCREMENT, set = opcode == OPCODE_SET;
    size_t extras = incr ? INCR_EXTRAS_BYTES : set ? SET_EXTRAS_BYTES : 0;
    char *key_at = out + HEADER_BYTES + extras;
    char *key_end =
        opcode != OPCODE_NOOP ? bench_workload_put_key(workload, key, id, key_at) : key_at;
    char *end =
        set ? key_end + bench_workload_print_value(workload, id, key->slot, key_end) : key_end;
    const struct header header = {
        .magic = REQUEST_MAGIC,
        .opcode = (uint8_t)opcode,
        .key_length = htobe16((uint16_t)(key_end - key_at)),
        .extras_length = (uint8_t)extras,
        .body_length = htobe32((uint32_t)((size_t)(end - out) - HEADER_BYTES)),
        .opaque = htobe32(opaque_of(id, number)),
    };

    memcpy(out, &header, sizeof(header));
    memcpy(out + HEADER_BYTES, incr ? incr_extras : set_extras, extras);
    return end;
}

static size_t binary_bytes_max(const struct bench_workload *workload)
{
    size_t key_bytes = HEADER_BYTES + INCR_EXTRAS_BYTES + bench_workload_key_bytes(workload);
    return key_bytes * bench_keys_asked(workload) + HEADER_BYTES + BENCH_VALUE_ROOM;
}

static char *binary_set(const struct bench_workload *workload, const struct bench_key *key,
                        uint64_t id, char *out)
{
    return put_packet(workload, OPCODE_SET, key, id, 0, out);
}

static char *binary_ask(const struct bench_workload *workload, const uint64_t *ids, char *out)
{
    if (!is_quiet(workload)) {
        return put_packet(workload, singles[workload->verb], &workload->keys[0], ids[0], 0, out);
    }
    for (uint64_t key = 0; key < bench_keys_asked(workload); key++) {
        out = put_packet(workload, OPCODE_GETKQ, bench_key_at(workload, key),
                         ids[key / workload->key_count], key, out);
    }
    return put_packet(workload, OPCODE_NOOP, NULL, ids[0], 0, out);
}

/* Cuts the next answer off. False: it is not all there, or none. */
static bool bench_dialect_binary_cut(struct bench_judged *judged, const char *bytes, size_t length,
                                     struct answer *answer)
{
    struct header *header = &answer->header;

    judged->item.line_length = length < HEADER_BYTES ? length : HEADER_BYTES;
    if ((uint8_t)bytes[0] != ANSWER_MAGIC) {
        bench_judged_broken(judged, "not a binary answer: ");
        return false;
    }
    if (length < HEADER_BYTES) {
        return false;
    }
    memcpy(header, bytes, sizeof(*header));
    header->key_length = be16toh(header->key_length);
    header->status = be16toh(header->status);
    header->opaque = be32toh(header->opaque);
    header->body_length = be32toh(header->body_length);
    answer->key = bytes + HEADER_BYTES + header->extras_length;
    answer->bytes = (size_t)HEADER_BYTES + header->body_length;
    uint32_t around = (uint32_t)header->extras_length + header->key_length;
    if (answer->bytes > BENCH_ITEM_MAX || around > header->body_length) {
        bench_judged_broken(judged, "a header with impossible lengths: ");
        return false;
    }
    judged->item.line = judged->item.data = answer->key + header->key_length;
    judged->item.line_length = judged->item.data_length = header->body_length - around;
    return length >= answer->bytes;
}

/* An error is its text, or if it has none, its status. */
static void judge_error(struct bench_judged *judged, struct answer *answer)
{
    if (judged->item.line_length == 0) {
        judged->item.line = answer->text;
        judged->item.line_length = (size_t)snprintf(answer->text, sizeof(answer->text),
                                                    "status 0x%04x", answer->header.status);
    }
    bench_judged_error(judged);
}

/* The answer to a get of that key, the next to be judged. */
static void judge_get(struct bench_judged *judged, struct answer *answer, uint64_t key)
{
    const struct bench_workload *workload = judged->workload;
    size_t key_length = is_quiet(workload) ? answer->header.key_length : 0;

    if (answer->header.status != STATUS_DONE) {
        judge_error(judged, answer);
        judged->reply->key++;
    } else if (answer->header.extras_length != GET_EXTRAS_BYTES ||
               answer->header.key_length != key_length) {
        bench_judged_broken(judged, "a get's answer of another form: ");
    } else {
        bench_judged_found(judged);
        if (!bench_judged_value_right(judged, bench_id_at(judged, key),
                                      bench_key_at(workload, key)->slot)) {
            bench_judged_mismatch_of(judged, "wrong value: ", key);
        }
    }
}

static void judge_incr(struct bench_judged *judged, struct answer *answer)
{
    uint64_t number = 0;

    if (judged->item.data_length != NUMBER_BYTES || answer->header.key_length != 0 ||
        answer->header.extras_length != 0) {
        bench_judged_broken(judged, "an increment's answer of another form: ");
        return;
    }
    memcpy(&number, judged->item.data, sizeof(number));
    judged->item.line = answer->text;
    judged->item.line_length = num_print(answer->text, be64toh(number));
    bench_judged_incremented(judged);
}

/* The only answer to a request. */
static void judge_single(struct bench_judged *judged, struct answer *answer)
{
    enum bench_verb verb = judged->workload->verb;

    if (answer->header.opcode != singles[verb]) {
        bench_judged_broken(judged, "unexpected opcode: ");
    } else if (answer->header.opaque != opaque_of(judged->ids[0], 0)) {
        bench_judged_broken(judged, "another request's opaque: ");
    } else if (answer->header.status == STATUS_NOT_FOUND && verb != BENCH_VERB_SET) {
        bench_judged_missed(judged, 1);
    } else if (verb == BENCH_VERB_GET) {
        judge_get(judged, answer, 0);
    } else if (answer->header.status != STATUS_DONE) {
        judge_error(judged, answer);
    } else if (verb == BENCH_VERB_INCR) {
        judge_incr(judged, answer);
    } else if (answer->bytes != HEADER_BYTES) {
        bench_judged_broken(judged, "a set's answer of another form: ");
    } else {
        bench_judged_changed(judged, true);
    }
    judged->reply->done = !judged->reply->broken;
}

/* Returns the key that an answer to a quiet get is for, at or after the next one; the number of
 * keys asked for: there is none. */
static uint64_t find_key(const struct bench_judged *judged, const struct answer *answer)
{
    const struct bench_workload *workload = judged->workload;
    uint64_t asked = bench_keys_asked(workload);
    uint64_t key = answer->header.opaque & ((1u << OPAQUE_ID_SHIFT) - 1);
    char text[BENCH_KEY_TEXT_MAX];

    if (key < judged->reply->key || key >= asked ||
        answer->header.opaque != opaque_of(bench_id_at(judged, key), key)) {
        return asked;
    }
    char *end = bench_workload_put_key(workload, bench_key_at(workload, key),
                                       bench_id_at(judged, key), text);
    bool same = (size_t)(end - text) == answer->header.key_length &&
                memcmp(text, answer->key, answer->header.key_length) == 0;
    return same || answer->header.status != STATUS_DONE ? key : asked;
}

static void judge_quiet_get(struct bench_judged *judged, struct answer *answer)
{
    const struct bench_workload *workload = judged->workload;

    if (workload->verify == BENCH_OFF && answer->header.status == STATUS_DONE) {
        judged->tally->hits++;
        judged->reply->key++;
        return;
    }
    uint64_t key = find_key(judged, answer);
    if (key == bench_keys_asked(workload)) {
        judged->item.line = answer->key;
        judged->item.line_length = answer->header.key_length;
        bench_judged_mismatch(judged, "key not asked for here: ");
        return;
    }
    bench_judged_missed(judged, key);
    if (answer->header.status == STATUS_NOT_FOUND) {
        bench_judged_mismatch_of(judged, "a quiet get's miss that is not silent: ", key);
    } else {
        judge_get(judged, answer, key);
    }
}

/* Judges one of the answers to quiet gets, or the one that closes them. */
static void judge_quiet(struct bench_judged *judged, struct answer *answer)
{
    if (answer->header.opcode == OPCODE_GETKQ) {
        judge_quiet_get(judged, answer);
    } else if (answer->header.opcode != OPCODE_NOOP) {
        bench_judged_broken(judged, "unexpected opcode: ");
    } else if (answer->header.opaque != opaque_of(judged->ids[0], 0)) {
        bench_judged_broken(judged, "another request's opaque: ");
    } else {
        if (answer->header.status != STATUS_DONE) {
            judge_error(judged, answer);
        }
        bench_judged_missed(judged, bench_keys_asked(judged->workload));
        judged->reply->done = true;
    }
}

static size_t binary_judge(struct bench_judged *judged, const char *bytes, size_t length)
{
    struct answer answer;

    if (!bench_dialect_binary_cut(judged, bytes, length, &answer)) {
        return 0;
    }
    if (is_quiet(judged->workload)) {
        judge_quiet(judged, &answer);
    } else {
        judge_single(judged, &answer);
    }
    return answer.bytes;
}

const struct bench_dialect bench_dialect_binary = {
    .address = BENCH_ADDRESS_MEMCACHED,
    .bytes_max = binary_bytes_max,
    .set = binary_set,
    .ask = binary_ask,
    .judge = binary_judge,
};
