/* Requests that change one key, or only look whether it is there, answered one by one. */
#include "base/check.h"
#include "base/log.h"
#include "base/num.h"
#include "counter/counter.h"
#include "request/dispatch_private.h"

/* Apart, as is whatever needs the address of a variable: so others need no guard of the stack. */
static __attribute__((noinline)) void look_cold(struct dispatch_worker *worker,
                                                struct engine_op *op)
{
    dispatch_cold_look(worker, &op, 1);
}

static inline void change_key(struct dispatch_worker *worker, struct dispatch_key *key)
{
    struct engine *engine = key->space->engine;
    struct engine_op *op = &key->op;

    engine->functions->change(engine, op, worker->sink);
    if (UNLIKELY(worker->has_cold)) {
        look_cold(worker, op);
    }
    if (UNLIKELY(op->status == ENGINE_ERROR)) {
        if (op->error == ENGINE_E_JOURNAL_BUSY) {
            dispatch_journal_busy(worker, op);
        }
        return;
    }
    worker->changed |= key->space != worker->spaces->plain; /* which is in no journal */
    worker->copied_bytes += op->copied_bytes;
    worker->conn->busy_since_us = 0;
}

static enum engine_status delete_now(struct dispatch_worker *worker, struct dispatch_key *key)
{
    struct engine *engine = key->space->engine;
    struct engine_op *op = &key->op;

    op->verb = ENGINE_DELETE;
    op->compare = false; /* a token was judged by what came before */
    op->expires = false;
    engine->functions->prepare(engine, &op, 1);
    change_key(worker, key);
    return op->status;
}

enum engine_status dispatch_delete(struct dispatch_worker *worker, const struct request *request,
                                   struct dispatch_key *key)
{
    if (delete_now(worker, key) == ENGINE_PENDING) {
        (void)dispatch_wait_op(worker, request, key->space->engine, &key->op);
    }
    return key->op.status;
}

static void count_one(struct dispatch_worker *worker, const struct request *request,
                      const struct dispatch_key *key)
{
    struct space_metrics *own = dispatch_figures_of(worker, key->space);

    if (worker->result.refused && worker->result.reply.detail == DETAIL_TOO_LARGE) {
        metric_add(&worker->metrics->store_too_large, 1);
    }
    if (worker->result.refused && request->quiet == QUIET_ALL) {
        metric_add(&worker->metrics->refused_noreply, 1);
        if (own != NULL) {
            metric_add(&own->refused_noreply, 1);
        }
    }
    if (request->verb != VERB_TOUCH || key->command->call != COMMAND_CALL_READ) {
        return;
    }
    if (key->op.status == ENGINE_DONE) {
        dispatch_tally_of(worker, key->space)->hits++;
    } else if (key->op.status == ENGINE_ABSENT) {
        dispatch_tally_miss(worker, key);
    }
    dispatch_tally_end(worker, true);
}

/* The key's engine has been called, if it has one. */
static __attribute__((noinline)) enum dispatch_end
end_one(struct dispatch_worker *worker, const struct request *request, struct dispatch_key *key)
{
    struct command_result *result = &worker->result;

    if (LIKELY(key->command->call != COMMAND_CALL_NONE)) {
        if (UNLIKELY(key->op.status == ENGINE_PENDING) &&
            dispatch_wait_op(worker, request, key->space->engine, &key->op)) {
            metric_add(&worker->metrics->suspensions, 1);
            dispatch_cold_ahead(worker, request, key);
            return DISPATCH_PENDING;
        }
    }
    command_finish(key->command, key->space, &key->op, worker->metrics,
                   dispatch_figures_of(worker, key->space), result);
    count_one(worker, request, key);
    if (UNLIKELY(result->dropped)) { /* whatever comes of it: nothing more can be done */
        (void)dispatch_delete(worker, request, key);
    }
    dispatch_reply(worker, request, &result->reply);
    return DISPATCH_DONE;
}

enum dispatch_end dispatch_run_one(struct dispatch_worker *worker, const struct request *request)
{
    CHECK(request->keys == 1);
    struct dispatch_key *key = dispatch_key_next(worker);
    enum command_call call = key->command->call;

    if (LIKELY(call == COMMAND_CALL_CHANGE)) {
        change_key(worker, key);
        if (LIKELY(key->op.status == ENGINE_DONE) && LIKELY(key->space != worker->spaces->plain)) {
            command_count_done(key->command, worker->metrics,
                               dispatch_figures_of(worker, key->space), 1);
            command_done(key->command, key->space, &key->op, &worker->result.reply);
            worker->codec->compose(worker->out, request, &worker->result.reply);
            return DISPATCH_DONE;
        }
    } else if (call != COMMAND_CALL_NONE) {
        dispatch_read(worker);
    }
    return end_one(worker, request, key);
}

/* Carries out and answers bare increments from this one on, as many as are simple. Returns how
 * many. */
static __attribute__((noinline)) uint32_t run_adds(struct dispatch_worker *worker,
                                                   const struct request *request)
{
    struct dispatch_chunk *chunk = dispatch_chunk_now(worker);
    const struct dispatch_key *key = &chunk->keys[chunk->cursor];

    _Static_assert(DISPATCH_CHUNK_KEYS * PROTOCOL_NUMBER_MAX <= PROTOCOL_REPLY_BYTES_MAX, "a run");
    if (!chunk->uniform || chunk->verb != request->verb ||
        key->space->settings.kind != SPACE_COUNTER ||
        log_level() >= LOG_LEVEL_COMMANDS || /* then each is traced */
        buf_room(worker->out, PROTOCOL_REPLY_BYTES_MAX) == NULL) {
        return 0;
    }
    struct engine *engine = key->space->engine;
    uint32_t n =
        (uint32_t)counter_add(engine, &chunk->ops[chunk->cursor], chunk->count - chunk->cursor,
                              worker->sink, worker->numbers, worker->tokens);

    if (n > 0) {
        chunk->cursor += n;
        worker->changed = true;
        worker->conn->busy_since_us = 0;
        command_count_done(key->command, worker->metrics, dispatch_figures_of(worker, key->space),
                           n);
        worker->codec->compose_numbers(worker->out, request, worker->numbers, worker->tokens, n);
    }
    return n;
}

enum dispatch_end dispatch_run_add(struct dispatch_worker *worker, const struct request *request)
{
    uint32_t n = request->bare ? run_adds(worker, request) : 0;

    if (n == 0) {
        return dispatch_run_one(worker, request);
    }
    worker->with_it = n - 1;
    return DISPATCH_DONE;
}

void dispatch_forget(struct dispatch_worker *worker, const struct request *request)
{
    struct request deleting = *request;

    deleting.verb = VERB_DELETE;
    deleting.value_length = 0;
    struct dispatch_key *key =
        dispatch_route_alone(worker, &deleting, &worker->batch.keys[request->first_key]);

    if (key->space != NULL && key->space == worker->spaces->plain) {
        (void)delete_now(worker, key);
    }
}
