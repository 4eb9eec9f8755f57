/* codec_run.c: see codec_run.h. */
#include "tests/fuzz/codec_run.h"

#include <stdio.h>

#include "tests/fuzz/fuzz.h"

#define TRACE_MAX (256u << 20)

/* One way of giving the bytes to a codec, and what it made of them. */
struct run {
    const struct codec *codec;
    const char *bytes; /* all there are */
    size_t length;
    struct test_random *random; /* NULL: whole */
    struct protocol_state state;
    size_t at;          /* of the bytes: done with */
    struct buf trace;   /* requests … */
    struct buf answers; /* … and the bytes that answer them */
    const char *parsed; /* the copy of bytes[at..) the batch points into … */
    size_t parsed_length;
    struct request_batch *batch;
};

/* ---- what a batch must hold ---- */

static bool is_inside(const char *from, size_t length, const char *bytes, size_t room)
{
    return from >= bytes && length <= room && (size_t)(from - bytes) <= room - length;
}

static void check_place(const struct run *run, const char *from, size_t length)
{
    const struct request_batch *batch = run->batch;

    CHECK(is_inside(from, length, run->parsed, run->parsed_length) ||
          is_inside(from, length, batch->scratch, batch->scratch_used));
}

static void check_request(const struct run *run, const struct request *request)
{
    CHECK(request->verb < VERB_COUNT);
    for (uint32_t i = 0; i < request->keys; i++) {
        const struct request_key *key = &run->batch->keys[request->first_key + i];

        CHECK(key->length > 0 && key->length <= PROTOCOL_KEY_MAX);
        check_place(run, key->bytes, key->length);
    }
    if (request->value_length > 0 && request->verb != VERB_INCR && request->verb != VERB_DECR) {
        check_place(run, request->value, request->value_length);
    }
    CHECK(request->verb != VERB_ERROR ||
          (request->refusal >= REPLY_ERROR && request->refusal <= REPLY_SERVER_ERROR));
}

static void check_batch(const struct run *run, enum protocol_result result)
{
    const struct request_batch *batch = run->batch;
    uint32_t keys = 0;
    size_t at = 0;

    CHECK(batch->request_count <= PROTOCOL_BATCH_REQUESTS);
    CHECK(batch->key_count <= PROTOCOL_BATCH_KEYS);
    CHECK(batch->scratch_used <= PROTOCOL_SCRATCH_BYTES);
    for (uint32_t i = 0; i < batch->request_count; i++) {
        const struct request *request = &batch->requests[i];

        CHECK(request->begin >= at && request->end > request->begin);
        CHECK(request->first_key == keys);
        check_request(run, request);
        at = request->end;
        keys += request->keys;
    }
    CHECK(keys == batch->key_count);
    CHECK(at <= batch->consumed && batch->consumed <= run->parsed_length);
    CHECK(result != PROTOCOL_FULL || batch->request_count > 0);
}

/* ---- the trace ---- */

static void say(struct run *run, const void *bytes, size_t length)
{
    CHECK(buf_append(&run->trace, bytes, length));
}

static void say_number(struct run *run, uint64_t number)
{
    say(run, &number, sizeof(number));
}

static void say_text(struct run *run, const char *bytes, size_t length)
{
    say_number(run, length);
    if (length > 0) {
        say(run, bytes, length);
    }
}

static void say_fields(struct run *run, const struct request *request)
{
    const uint64_t fields[] = {
        request->verb,           request->quiet, request->create,  request->want_cas,
        request->compare,        request->touch, request->refusal, request->detail,
        request->flags,          request->cas,   request->delay,   (uint64_t)request->exptime,
        request->bare,           run->at + request->begin};

    say(run, fields, sizeof(fields));
    if (request->text != NULL) {
        say_text(run, request->text, strlen(request->text));
    }
    say_text(run, request->value, request->value_length);
    if (!run->codec->has_meta) {
        say_number(run, request->binary.opaque);
        say_number(run, request->binary.opcode);
    } else if (request->meta.line != NULL) {
        check_place(run, request->meta.line, request->meta.length);
        say_text(run, request->meta.line, request->meta.length);
    }
}

/* ---- answers ---- */

/* Where the answers of a request go: as much room as the codec says they take, and no byte more. */
static struct buf room_for(const struct run *run, const struct request *request)
{
    size_t most = run->codec->reply_bytes_max(request);

    return (struct buf){.data = malloc(most), .capacity = most, .length_max = most};
}

static void say_room(struct run *run, struct buf *out)
{
    CHECK(out->length <= out->capacity);
    CHECK(out->length == 0 || buf_append(&run->answers, out->data, out->length));
    free(out->data);
}

static void answer_key(const struct run *run, const struct request *request,
                       const struct request_key *key, struct buf *out)
{
    static const char value[PROTOCOL_REPLY_VALUE_MAX] = "12345";
    struct test_random random = fuzz_random(key->bytes, key->length);
    const struct hit hit = {.value = value,
                            .value_length = test_random_below(&random, sizeof(value) + 1),
                            .cas = UINT64_MAX >> test_random_below(&random, 64),
                            .flags = UINT32_MAX >> test_random_below(&random, 32),
                            .ttl_s = INT32_MAX >> test_random_below(&random, 32)};

    if (test_random_once_in(&random, 3)) {
        if (run->codec->compose_miss != NULL) {
            run->codec->compose_miss(out, request, key);
        }
    } else {
        size_t before = out->length;

        run->codec->compose_value(out, request, key, &hit);
        CHECK(out->length > before || request->quiet == QUIET_ALL);
    }
}

/* The first `count` of the requests that are joined in one: each as if it were alone, but that all
 * answers are composed by the joined one. */
static void say_joined(struct run *run, const struct request *joined, uint32_t count)
{
    struct buf out = room_for(run, joined);

    CHECK(joined->keys > 1 && joined->keys <= PROTOCOL_JOINED_MAX && !joined->more);
    for (uint32_t i = 0; i < count; i++) {
        const struct request_key *key = &run->batch->keys[joined->first_key + i];
        struct request one;

        run->codec->part(run->batch, joined, i, run->parsed, &one);
        CHECK(one.keys == 1 && run->batch->keys[one.first_key].bytes == key->bytes);
        CHECK(one.begin >= joined->begin && one.end <= joined->end && one.begin < one.end);
        say_fields(run, &one);
        say_text(run, key->bytes, key->length);
        say_number(run, 0);
        answer_key(run, joined, key, &out);
        run->codec->compose_end(&out, joined);
        say_text(run, "end", 3);
    }
    say_room(run, &out);
}

/* The first `count` keys of a get. */
static void say_get(struct run *run, const struct request *request, uint32_t count)
{
    if (request->joined) {
        say_joined(run, request, count);
        return;
    }
    struct buf out = room_for(run, request);

    if (!request->before.in_get) {
        say_fields(run, request);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct request_key *key = &run->batch->keys[request->first_key + i];

        say_text(run, key->bytes, key->length);
        say_number(run, request->verb == VERB_GAT ? (uint64_t)request->exptime : 0);
        answer_key(run, request, key, &out);
    }
    if (count == request->keys) {
        run->codec->compose_end(&out, request);
    }
    say_room(run, &out);
    if (count == request->keys && !request->more) {
        say_text(run, "end", 3);
    }
}

static const enum reply_status of_storage[] = {REPLY_STORED, REPLY_NOT_STORED, REPLY_EXISTS,
                                               REPLY_NOT_FOUND, REPLY_SERVER_ERROR};
static const enum reply_status of_numbers[] = {REPLY_NUMBER, REPLY_NOT_FOUND, REPLY_CLIENT_ERROR,
                                               REPLY_EXISTS, REPLY_SERVER_ERROR};
static const enum reply_status of_delete[] = {REPLY_DELETED, REPLY_NOT_FOUND, REPLY_EXISTS};
static const enum reply_status of_touch[] = {REPLY_TOUCHED, REPLY_NOT_FOUND, REPLY_SERVER_ERROR};

static enum reply_status status_of(const struct request *request, struct test_random *random)
{
    switch (request->verb) {
    case VERB_ERROR:
        return request->refusal;
    case VERB_TOUCH:
        return of_touch[test_random_below(random, LENGTH(of_touch))];
    case VERB_SET:
    case VERB_ADD:
    case VERB_REPLACE:
    case VERB_APPEND:
    case VERB_PREPEND:
    case VERB_CAS:
        return of_storage[test_random_below(random, LENGTH(of_storage))];
    case VERB_INCR:
    case VERB_DECR:
        return of_numbers[test_random_below(random, LENGTH(of_numbers))];
    case VERB_DELETE:
        return of_delete[test_random_below(random, LENGTH(of_delete))];
    case VERB_VERSION:
        return REPLY_VERSION;
    case VERB_NOOP:
        return REPLY_NOOP;
    case VERB_QUIT:
        return REPLY_QUIT;
    case VERB_SASL_LIST:
        return REPLY_SASL_LIST;
    case VERB_SASL:
        return REPLY_LOGIN;
    default:
        return REPLY_OK;
    }
}

static const char *words_of(const struct request *request, enum reply_status status)
{
    if (request->verb == VERB_ERROR) {
        return request->text != NULL ? request->text : "";
    }
    if (status == REPLY_NUMBER) {
        return "18446744073709551615";
    }
    return status == REPLY_VERSION ? "1.6.45" : "out of memory storing object";
}

static void say_other(struct run *run, const struct request *request)
{
    struct buf out = room_for(run, request);
    struct test_random random = fuzz_random(request->value, request->value_length);
    enum reply_status status = status_of(request, &random);
    const char *words = words_of(request, status);
    const struct reply reply = {.status = status,
                                .detail = request->detail,
                                .value = words,
                                .value_length = strlen(words),
                                .cas = UINT64_MAX >> test_random_below(&random, 64),
                                .ttl_s = (int32_t)test_random_below(&random, 1000) - 1};

    say_fields(run, request);
    for (uint32_t i = 0; i < request->keys; i++) {
        const struct request_key *key = &run->batch->keys[request->first_key + i];

        say_text(run, key->bytes, key->length);
    }
    if (request->verb == VERB_STATS) {
        run->codec->compose_stat(&out, request, "name", "text");
        run->codec->compose_stats_end(&out, request);
    } else {
        run->codec->compose(&out, request, &reply);
        CHECK(out.length > 0 || request->quiet != QUIET_NO || request->verb == VERB_QUIT);
    }
    say_room(run, &out);
}

/* ---- the runs ---- */

static bool is_get(const struct request *request)
{
    return request->verb == VERB_GET || request->verb == VERB_GAT;
}

/* A get is answered in part. */
static void cut_get(struct run *run, const struct request *request)
{
    uint32_t answered = 1 + (uint32_t)test_random_below(run->random, request->keys - 1);
    size_t offset = SIZE_MAX;

    say_get(run, request, answered);
    if (request->joined) {
        struct request next;

        run->codec->part(run->batch, request, answered, run->parsed, &next);
        run->state = next.before;
        run->at += next.begin;
        return;
    }
    run->codec->cut(run->batch, request, answered, run->parsed, &run->state, &offset);
    CHECK(offset <= run->parsed_length);
    run->at += offset;
}

/* Runs the batch, or a part of it. True: all of it. */
static bool run_batch(struct run *run)
{
    const struct request_batch *batch = run->batch;
    bool all = run->random == NULL || !test_random_once_in(run->random, 4);
    uint32_t count = all ? batch->request_count
                         : (uint32_t)test_random_below(run->random, batch->request_count + 1);

    for (uint32_t i = 0; i < count; i++) {
        const struct request *request = &batch->requests[i];

        if (!is_get(request)) {
            say_other(run, request);
        } else if (run->random != NULL && request->keys > 1 &&
                   test_random_once_in(run->random, 4)) {
            cut_get(run, request);
            return false;
        } else {
            say_get(run, request, request->keys);
        }
    }
    bool to_end = count == batch->request_count;

    run->state = to_end ? batch->after : batch->requests[count].before;
    run->at += to_end ? batch->consumed : batch->requests[count].begin;
    return to_end;
}

/* Parses and runs what there is of bytes[0..have). False: the connection closes. */
static bool run_bytes(struct run *run, size_t have)
{
    for (;;) {
        size_t left = have - run->at;
        char *copy = fuzz_copy(run->bytes + run->at, left);

        run->parsed = copy;
        run->parsed_length = left;
        enum protocol_result result = run->codec->parse(&run->state, copy, left, run->batch);

        check_batch(run, result);
        bool to_end = run_batch(run);

        free(copy);
        if (to_end && result != PROTOCOL_FULL) {
            return result == PROTOCOL_MORE;
        }
    }
}

static void run_all(struct run *run)
{
    size_t piece_max =
        run->random == NULL ? run->length : (size_t)1 << test_random_below(run->random, 12);
    bool open = true;

    run->batch->joins = run->random != NULL && !test_random_once_in(run->random, 4);
    for (size_t have = 0; open && have < run->length;) {
        size_t piece =
            run->random == NULL ? run->length : 1 + test_random_below(run->random, piece_max);

        have = run->length - have < piece ? run->length : have + piece;
        open = run_bytes(run, have);
    }
    say_number(run, open);
    if (open) {
        say_number(run, run->at);
        say_number(run, run->state.swallow_bytes);
    }
}

static void run_open(struct run *run, const struct codec *codec, const char *bytes, size_t length)
{
    *run = (struct run){.codec = codec, .bytes = bytes, .length = length};
    run->batch = malloc(sizeof(*run->batch));
    CHECK(run->batch != NULL);
    run->batch->value_max = PROTOCOL_VALUE_MAX;
    buf_init(&run->trace, TRACE_MAX, NULL);
    buf_init(&run->answers, TRACE_MAX, NULL);
}

static void run_close(struct run *run)
{
    buf_fini(&run->trace);
    buf_fini(&run->answers);
    free(run->batch);
}

static bool is_same(const struct buf *left, const struct buf *right)
{
    return left->length == right->length &&
           (left->length == 0 || memcmp(left->data, right->data, left->length) == 0);
}

void codec_run(const struct codec *codec, const char *bytes, size_t length)
{
    struct test_random random = fuzz_random(bytes, length);
    struct run whole;
    struct run pieces;

    run_open(&whole, codec, bytes, length);
    run_open(&pieces, codec, bytes, length);
    pieces.random = &random;
    run_all(&whole);
    run_all(&pieces);
    CHECK(is_same(&whole.trace, &pieces.trace));
    CHECK(is_same(&whole.answers, &pieces.answers));
    run_close(&whole);
    run_close(&pieces);
}
