/* Gets: their keys are read together, through their rows of the command table, and answered in
 * order. */
#include <string.h>

#include "base/check.h"
#include "plain/plain.h"
#include "request/dispatch_private.h"

void dispatch_tally_end(struct dispatch_worker *worker, bool answered)
{
    for (; worker->tallied != 0; worker->tallied &= worker->tallied - 1) {
        unsigned index = (unsigned)__builtin_ctzll(worker->tallied);
        struct dispatch_tally *tally = &worker->tally[index];
        struct space_metrics *own = dispatch_figures_of(worker, worker->spaces->at[index]);

        if (answered) {
            metric_add(&own->hits, tally->hits);
            metric_add(&own->misses_absent, tally->absent);
            metric_add(&own->misses_unset, tally->unset);
            metric_add(&own->misses_incomplete, tally->incomplete);
            metric_add(&own->misses_below, tally->below);
            metric_add(&own->bad_keys, tally->bad);
        }
        *tally = (struct dispatch_tally){0};
    }
}

void dispatch_tally_miss(struct dispatch_worker *worker, const struct dispatch_key *key)
{
    struct dispatch_tally *tally = dispatch_tally_of(worker, key->space);

    switch (key->op.miss) {
    case ENGINE_MISS_ABSENT:
    case ENGINE_MISS_EXPIRED:
        tally->absent++;
        return;
    case ENGINE_MISS_UNSET:
        tally->unset++;
        return;
    case ENGINE_MISS_INCOMPLETE:
        tally->incomplete++;
        return;
    case ENGINE_MISS_BELOW:
        tally->below++;
        return;
    }
}

#define WORD_BITS   64
#define BLOCK_WORDS ((PROTOCOL_GET_KEYS_BLOCK + WORD_BITS - 1) / WORD_BITS)

/* What the keys of a get, or of a block of one, came to. */
struct block {
    bool full;         /* there is no room for the answers of further keys … */
    uint32_t answered; /* … than these */
    uint32_t hits;
    uint32_t refused; /* of a joined request: answered with an error */
    uint32_t no_space;
    bool pending;
    bool failed; /* the worker's result holds the line */
    bool deletes;
    uint64_t found[BLOCK_WORDS]; /* with deletes alone, and set up by the first: a bit a key
                                    that is to be deleted */
};

static uint32_t key_number(const struct dispatch_worker *worker, const struct request *request,
                           const struct request_key *bytes)
{
    return (uint32_t)(bytes - &worker->batch.keys[request->first_key]);
}

/* The worker's result holds what a key is refused with: that alone, or the whole request. */
static void block_refuse(struct dispatch_worker *worker, const struct request *request,
                         const struct request_key *bytes, struct block *block)
{
    struct request one;

    if (!request->joined) {
        block->failed = true;
        return;
    }
    worker->codec->part(&worker->batch, request, key_number(worker, request, bytes), worker->parsed,
                        &one);
    dispatch_reply(worker, &one, &worker->result.reply);
    block->refused++;
}

static void block_fail(struct dispatch_worker *worker, const struct request *request,
                       const struct request_key *bytes, const struct dispatch_key *key,
                       struct block *block)
{
    if (!block->failed) {
        command_refuse(key->space, &key->op, dispatch_figures_of(worker, key->space),
                       &worker->result);
    }
    block_refuse(worker, request, bytes, block);
}

/* A key that is refused unread: a meta command's flags are not for its space. */
static bool block_refused(struct dispatch_worker *worker, const struct request *request,
                          const struct request_key *bytes, const struct dispatch_key *key,
                          struct block *block)
{
    if (key->command->absent.status != REPLY_CLIENT_ERROR) {
        return false;
    }
    command_finish(key->command, key->space, &key->op, worker->metrics,
                   dispatch_figures_of(worker, key->space), &worker->result);
    block_refuse(worker, request, bytes, block);
    return true;
}

/* A past exptime: an earlier key of the block is the same; then it is gone when this one comes. */
static bool block_goes(const struct block *block, const struct request_key *first, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if ((block->found[k / WORD_BITS] >> k % WORD_BITS & 1) != 0 &&
            first[k].length == first[i].length &&
            memcmp(first[k].bytes, first[i].bytes, first[i].length) == 0) {
            return true;
        }
    }
    return false;
}

static void block_miss(struct dispatch_worker *worker, const struct request *request,
                       const struct request_key *bytes)
{
    if (worker->codec->compose_miss != NULL) {
        worker->codec->compose_miss(worker->out, request, bytes);
    }
}

/* Notes that a key with a past exptime is to be deleted. False: an earlier key is the same. */
static bool block_marks(struct dispatch_worker *worker, const struct request *request,
                        const struct request_key *bytes, struct block *block)
{
    const struct request_key *first = &worker->batch.keys[request->first_key];
    size_t i = key_number(worker, request, bytes);

    if (!block->deletes) {
        memset(block->found, 0, sizeof(block->found));
        block->deletes = true;
    }
    if (block_goes(block, first, i)) {
        return false;
    }
    block->found[i / WORD_BITS] |= 1ull << i % WORD_BITS;
    return true;
}

/* Nothing of the key is there, or in a cache a part of it: then that goes, too. */
static void block_absent(struct dispatch_worker *worker, const struct request *request,
                         const struct request_key *bytes, const struct dispatch_key *key,
                         struct block *block)
{
    if (UNLIKELY(key->delete_after) && key->op.miss == ENGINE_MISS_INCOMPLETE) {
        (void)block_marks(worker, request, bytes, block);
    }
    dispatch_tally_miss(worker, key);
    block_miss(worker, request, bytes);
}

/* Composes the answer to a key of an engine of ids that was read and found. */
static inline void compose_hit(struct dispatch_worker *worker, const struct request *request,
                               const struct request_key *bytes, const struct dispatch_key *key)
{
    struct hit *hit = &worker->hit;

    hit->value = key->op.value;
    hit->value_length = key->op.value_length;
    hit->cas = key->op.cas_now;
    hit->flags = key->space->engine->flags;
    worker->codec->compose_value(worker->out, request, bytes, hit);
}

static void block_hit(struct dispatch_worker *worker, const struct request *request,
                      const struct request_key *bytes, struct dispatch_key *key,
                      struct block *block)
{
    if (UNLIKELY(key->delete_after) && !block_marks(worker, request, bytes, block)) {
        key->op.miss = ENGINE_MISS_ABSENT;
        dispatch_tally_miss(worker, key);
        block_miss(worker, request, bytes);
        return;
    }
    compose_hit(worker, request, bytes, key);
    dispatch_tally_of(worker, key->space)->hits++;
    block->hits++;
}

/* Composes the answers to the first `most` of these keys, up to one that was not found. Returns how
 * many. */
static inline uint32_t compose_found(struct dispatch_worker *worker, const struct request *request,
                                     const struct request_key *bytes,
                                     const struct dispatch_key *keys, uint32_t most)
{
    size_t value_bytes = 0;
    uint32_t n = 0;
    for (; n < most && keys[n].op.status == ENGINE_DONE; n++) {
        const struct engine_op *op = &keys[n].op;
        worker->found[n] = (struct found){op->value, op->value_length, op->cas_now};
        value_bytes += op->value_length;
    }
    if (n > 0) {
        worker->codec->compose_values(worker->out, request, bytes, worker->found, n, value_bytes,
                                      keys->space->engine->flags);
    }
    return n;
}

/* The same of a space that has one value alone. */
static inline uint32_t compose_alike(struct dispatch_worker *worker, const struct request *request,
                                     const struct request_key *bytes,
                                     const struct dispatch_key *keys, uint32_t most)
{
    const struct engine_op *op = &keys->op;
    const struct found found = {op->value, op->value_length, op->cas_now};
    uint32_t n = 0;
    while (n < most && keys[n].op.status == ENGINE_DONE) {
        n++;
    }
    bool done = n > 0 && worker->codec->compose_alike(worker->out, request, bytes, &found, n,
                                                      keys->space->engine->flags);
    return done ? n : compose_found(worker, request, bytes, keys, n);
}

/*
 * The keys from here on that were read and found are composed together, as far as this chunk has
 * them. Returns how many; 0: the next one is for block_key().
 */
static inline uint32_t block_several(struct dispatch_worker *worker, const struct request *request,
                                     const struct request_key *bytes, uint32_t left,
                                     struct block *block)
{
    struct dispatch_chunk *chunk = dispatch_chunk_now(worker);
    const struct dispatch_key *keys = &chunk->keys[chunk->cursor];
    if (!chunk->gets || !chunk->uniform || keys->command->call != COMMAND_CALL_READ) {
        return 0;
    }
    if (chunk->cursor >= chunk->read_to) {
        dispatch_read_run(worker, chunk->cursor);
    }
    uint32_t read = chunk->read_to - chunk->cursor;
    uint32_t most = read < left ? read : left;
    uint32_t n = keys->space->engine->only_value != 0
                     ? compose_alike(worker, request, bytes, keys, most)
                     : compose_found(worker, request, bytes, keys, most);
    if (n > 0) {
        dispatch_tally_of(worker, keys->space)->hits += n;
        block->hits += n;
        chunk->cursor += n;
    }
    return n;
}

/* What any dialect puts around a key and its value, and after a get; meta flags of its line. */
#define HIT_WORDS_MAX (512 + PROTOCOL_LINE_MAX)

/* A value of any length, composed while its engine holds it. */
struct visit {
    struct dispatch_worker *worker;
    const struct request *request;
    const struct request_key *bytes;
};

static bool visit_hit(void *context, const struct plain_hit *found)
{
    const struct visit *visit = context;
    struct dispatch_worker *worker = visit->worker;
    size_t room = HIT_WORDS_MAX + visit->bytes->length + found->value_length;
    struct hit hit = {.value = found->value,
                      .value_length = found->value_length,
                      .cas = found->cas,
                      .flags = found->flags,
                      .ttl_s = found->ttl_s,
                      .ttl_touched_s = found->ttl_touched_s,
                      .ttl_made_s = found->ttl_made_s,
                      .item_bytes = found->item_bytes,
                      .idle_s = found->idle_s,
                      .fetched = found->fetched,
                      .vivified = found->vivified,
                      .stale = found->stale,
                      .sent = found->sent,
                      .won = found->won};

    if (buf_room(worker->out, room) == NULL) {
        return false;
    }
    size_t before = worker->out->length;

    worker->codec->compose_value(worker->out, visit->request, visit->bytes, &hit);
    CHECK(worker->out->length > before); /* else an answer is lost */
    return true;
}

/* Returns whether there is still room for what may follow a visit: has_room() did not count what
 * the visit composed. */
static bool rest_fits(const struct dispatch_worker *worker, const struct request *request,
                      uint32_t answered)
{
    return answered == request->keys ||
           buf_room(worker->out, worker->codec->reply_bytes_max(request)) != NULL;
}

static void block_visit(struct dispatch_worker *worker, const struct request *request,
                        const struct request_key *bytes, struct dispatch_key *key,
                        struct block *block)
{
    struct visit visit = {worker, request, bytes};
    struct engine *engine = key->space->engine;
    uint32_t number = key_number(worker, request, bytes);

    plain_visit(engine, &key->op, request->verb == VERB_GAT, visit_hit, &visit);
    switch (key->op.status) {
    case ENGINE_DONE:
        dispatch_tally_of(worker, key->space)->hits++;
        block->hits++;
        block->answered = number + 1;
        block->full = !rest_fits(worker, request, number + 1);
        return;
    case ENGINE_EXISTS:
        block->answered = number;
        block->full = true;
        return;
    default:
        dispatch_tally_of(worker, key->space)->absent++;
        metric_add(&worker->metrics->get_expired, key->op.miss == ENGINE_MISS_EXPIRED);
        block_miss(worker, request, bytes);
        return;
    }
}

/* A key that is read alone, or not at all. */
static __attribute__((noinline)) void block_odd(struct dispatch_worker *worker,
                                                const struct request *request,
                                                const struct request_key *bytes,
                                                struct dispatch_key *key, struct block *block)
{
    if (key->command->call == COMMAND_CALL_VISIT) {
        block_visit(worker, request, bytes, key, block);
        return;
    }
    if (block_refused(worker, request, bytes, key, block)) {
        return;
    }
    block_miss(worker, request, bytes);
    if (key->space != NULL) {
        dispatch_tally_of(worker, key->space)->bad++;
    } else {
        block->no_space++;
    }
}

/* A key has to wait, and the whole request with it; of a joined one those before it are answered.
 */
static void block_wait(struct dispatch_worker *worker, const struct request *request,
                       const struct request_key *bytes, struct dispatch_key *key,
                       struct block *block)
{
    block->answered = key_number(worker, request, bytes);
    block->full = request->joined;
    if (request->joined && block->answered > 0) {
        return;
    }
    block->pending = true;
    if (!dispatch_wait_op(worker, request, key->space->engine, &key->op)) {
        block->pending = !request->joined;
        block->full = false;
        block_fail(worker, request, bytes, key, block);
    }
}

static inline void block_key(struct dispatch_worker *worker, const struct request *request,
                             const struct request_key *bytes, struct block *block)
{
    struct dispatch_key *key = dispatch_key_next(worker);

    if (UNLIKELY(key->command->call != COMMAND_CALL_READ)) {
        block_odd(worker, request, bytes, key, block);
        return;
    }
    dispatch_read(worker);
    if (LIKELY(key->op.status == ENGINE_DONE)) {
        block_hit(worker, request, bytes, key, block);
        return;
    }
    switch (key->op.status) {
    case ENGINE_PENDING:
        block_wait(worker, request, bytes, key, block);
        return;
    case ENGINE_ERROR:
        block_fail(worker, request, bytes, key, block);
        return;
    default:
        block_absent(worker, request, bytes, key, block);
        return;
    }
}

/*
 * Deletes the keys of a request with a past exptime. All keys were read before: a request that is
 * run again finds them. Only the first delete may have it run again; should a later one have to
 * wait, it is refused, as what is deleted would not be found.
 */
static void block_delete(struct dispatch_worker *worker, const struct request *request,
                         struct block *block)
{
    const struct request_key *bytes = &worker->batch.keys[request->first_key];
    bool deleted = false;
    for (uint32_t i = 0; i < request->keys && !block->pending && !block->failed; i++) {
        if ((block->found[i / WORD_BITS] >> i % WORD_BITS & 1) == 0) {
            continue;
        }
        struct dispatch_key *key = dispatch_route_alone(worker, request, &bytes[i]);
        enum engine_status status = dispatch_delete(worker, request, key);
        block->pending = status == ENGINE_PENDING && !deleted;
        if (status == ENGINE_PENDING && deleted) {
            key->op.error = ENGINE_E_BUSY;
        }
        if (status == ENGINE_ERROR || (status == ENGINE_PENDING && deleted)) {
            block_fail(worker, request, &bytes[i], key, block);
        }
        deleted = true;
    }
}

/*
 * Never a silent miss: in the first block the error line is the whole answer, and the rest of the
 * get is passed over; in a later one it takes the place of END, and the connection ends.
 */
static enum dispatch_end block_end_failed(struct dispatch_worker *worker,
                                          const struct request *request)
{
    dispatch_reply(worker, request, &worker->result.reply);
    if (request->before.in_get) {
        return DISPATCH_CLOSE;
    }
    worker->conn->skip_get = request->more;
    return DISPATCH_DONE;
}

static enum dispatch_end skip_block(struct dispatch_worker *worker, const struct request *request)
{
    for (uint32_t i = 0; i < request->keys; i++) {
        (void)dispatch_key_next(worker);
    }
    worker->conn->skip_get = request->more;
    return DISPATCH_DONE;
}

/* The keys that are answered count; the next turn goes on with the others. */
static enum dispatch_end block_cut(struct dispatch_worker *worker, const struct request *request,
                                   const struct block *block)
{
    if (block->answered == 0) {
        dispatch_tally_end(worker, false);
        return DISPATCH_FULL;
    }
    dispatch_tally_end(worker, true);
    metric_add(&worker->metrics->no_space, block->no_space);
    command_count_reads(request->verb, block->hits, block->answered - block->refused - block->hits,
                        worker->metrics);
    worker->cut = block->answered;
    return DISPATCH_CUT;
}

/* A key alone that is found, as most of meta and binary are: nothing of it can be taken back, so
 * it is counted at once. False: nothing was done. */
static bool run_found(struct dispatch_worker *worker, const struct request *request)
{
    const struct dispatch_key *key = dispatch_key_next(worker);
    const struct command *command = key->command;
    if (LIKELY(command->call == COMMAND_CALL_READ) && LIKELY(!key->delete_after)) {
        dispatch_read(worker);
        if (LIKELY(key->op.status == ENGINE_DONE)) {
            compose_hit(worker, request, &worker->batch.keys[request->first_key], key);
            metric_add(&dispatch_figures_of(worker, key->space)->hits, 1);
            command_count(worker->metrics, command->counts, 1);
            command_count(worker->metrics, command->hit, 1);
            worker->codec->compose_end(worker->out, request);
            return true;
        }
    }
    worker->chunk->cursor--;
    return false;
}

static __attribute__((noinline)) enum dispatch_end run_block(struct dispatch_worker *worker,
                                                             const struct request *request)
{
    const struct request_key *bytes = &worker->batch.keys[request->first_key];
    size_t start = worker->out->length;
    bool several = request->keys > 1;
    struct block block;

    memset(&block, 0, offsetof(struct block, found));
    for (uint32_t i = 0; i < request->keys && !block.full;) {
        uint32_t n =
            several ? block_several(worker, request, &bytes[i], request->keys - i, &block) : 0;
        if (n == 0) {
            block_key(worker, request, &bytes[i++], &block);
        }
        i += n;
    }
    if (UNLIKELY(block.deletes) && !block.failed && !block.pending) {
        block_delete(worker, request, &block);
    }
    if (UNLIKELY(block.failed || block.pending)) {
        buf_truncate(worker->out, start);
        dispatch_tally_end(worker, false);
        if (block.failed) {
            return block_end_failed(worker, request);
        }
        metric_add(&worker->metrics->suspensions, 1);
        return DISPATCH_PENDING;
    }
    if (UNLIKELY(block.full)) {
        return block_cut(worker, request, &block);
    }
    dispatch_tally_end(worker, true);
    metric_add(&worker->metrics->no_space, block.no_space);
    command_count_reads(request->verb, block.hits, request->keys - block.refused - block.hits,
                        worker->metrics);
    worker->codec->compose_end(worker->out, request);
    return DISPATCH_DONE;
}

enum dispatch_end dispatch_run_get(struct dispatch_worker *worker, const struct request *request)
{
    if (UNLIKELY(worker->conn->skip_get)) {
        return skip_block(worker, request);
    }
    if (request->keys == 1 && run_found(worker, request)) {
        return DISPATCH_DONE;
    }
    return run_block(worker, request);
}
