/* A chunk's operations, given to their engines together. */
#include "base/check.h"
#include "request/dispatch_private.h"

static void init_op(struct engine_op *op, char *value, struct net_worker *net)
{
    op->value = value;
    op->ticket.wake = net_wake;
    op->ticket.target = net;
}

void dispatch_chunk_init(struct dispatch_chunk *chunk, struct net_worker *net)
{
    for (size_t i = 0; i < DISPATCH_CHUNK_KEYS; i++) {
        chunk->ops[i] = &chunk->keys[i].op;
        init_op(chunk->ops[i], chunk->values[i], net);
        chunk->keys[i].extended = &chunk->extended[i];
    }
}

void dispatch_alone_init(struct dispatch_worker *worker)
{
    worker->hit = (struct hit){.ttl_s = -1, .ttl_touched_s = -1, .ttl_made_s = -1};
    init_op(&worker->alone.op, worker->alone_value, worker->net);
    worker->alone.extended = &worker->alone_extended;
}

enum batch_call { BATCH_PREPARE, BATCH_READ };

static void engine_batch(struct dispatch_worker *worker, struct engine *engine,
                         struct engine_op *const *ops, size_t n, enum batch_call call)
{
    if (call == BATCH_READ) {
        engine->functions->read(engine, ops, n);
        if (UNLIKELY(worker->has_cold)) {
            dispatch_cold_look(worker, ops, n);
        }
    } else {
        engine->functions->prepare(engine, ops, n);
    }
}

/* The operations of space among keys [from, to). Returns how many. */
static size_t dispatch_route_gather(struct dispatch_worker *worker, struct dispatch_chunk *chunk,
                                    const struct space *space, uint32_t from, uint32_t to,
                                    enum batch_call call)
{
    size_t n = 0;

    for (uint32_t i = from; i < to; i++) {
        const struct dispatch_key *key = &chunk->keys[i];

        if (key->space == space && key->command->call != COMMAND_CALL_NONE &&
            (call == BATCH_PREPARE || key->command->call == COMMAND_CALL_READ)) {
            worker->gathered[n++] = chunk->ops[i];
        }
    }
    return n;
}

/* Makes one call for the operations of keys [from, to), or one an engine. */
static void by_engine(struct dispatch_worker *worker, struct dispatch_chunk *chunk, uint32_t from,
                      uint32_t to, enum batch_call call)
{
    uint64_t seen = 0; /* a bit a space */

    if (LIKELY(chunk->uniform)) {
        engine_batch(worker, chunk->keys[from].space->engine, chunk->ops + from, to - from, call);
        return;
    }
    for (uint32_t i = from; i < to; i++) {
        const struct space *space = chunk->keys[i].space;

        if (space == NULL || (seen & (1ull << space->index)) != 0) {
            continue;
        }
        seen |= 1ull << space->index;
        size_t n = dispatch_route_gather(worker, chunk, space, i, to, call);

        if (n > 0) {
            engine_batch(worker, space->engine, worker->gathered, n, call);
        }
    }
}

void dispatch_chunk_prepare(struct dispatch_worker *worker, struct dispatch_chunk *chunk,
                            uint32_t count)
{
    chunk->count = count;
    chunk->cursor = 0;
    chunk->read_to = 0;
    if (count == 0) {
        return;
    }
    if (UNLIKELY(worker->own.sample_in <= count)) {
        dispatch_watch_keys(worker, chunk);
    } else {
        worker->own.sample_in -= count;
    }
    by_engine(worker, chunk, 0, count, BATCH_PREPARE);
}

/* Returns where the run of reads that begins at `from` ends: at a change, or at what must run
 * alone. */
static uint32_t reads_end(const struct dispatch_chunk *chunk, uint32_t from)
{
    uint32_t to = from + 1;

    if (chunk->gets) {
        return chunk->count;
    }
    if (chunk->keys[from].delete_after) {
        return to;
    }
    while (to < chunk->count && chunk->keys[to].command->call != COMMAND_CALL_CHANGE &&
           !chunk->keys[to].delete_after) {
        to++;
    }
    return to;
}

void dispatch_read_run(struct dispatch_worker *worker, uint32_t from)
{
    struct dispatch_chunk *chunk = worker->chunk;
    uint32_t to = reads_end(chunk, from);

    chunk->read_to = to;
    by_engine(worker, chunk, from, to, BATCH_READ);
}
