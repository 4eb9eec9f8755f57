#include "request/dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/memory.h"
#include "request/dispatch_private.h"

typedef enum dispatch_end run_fn(struct dispatch_worker *worker, const struct request *request);

#define RUNNERS(GET, GAT, CHANGE, ADD, FLUSH)                                                      \
    {                                                                                              \
        [VERB_ERROR] = dispatch_run_admin, [VERB_GET] = GET, [VERB_GAT] = GAT,                     \
        [VERB_TOUCH] = CHANGE, [VERB_SET] = CHANGE, [VERB_ADD] = CHANGE, [VERB_REPLACE] = CHANGE,  \
        [VERB_APPEND] = CHANGE, [VERB_PREPEND] = CHANGE, [VERB_CAS] = CHANGE, [VERB_INCR] = ADD,   \
        [VERB_DECR] = ADD, [VERB_DELETE] = CHANGE, [VERB_FLUSH_ALL] = FLUSH,                       \
        [VERB_VERSION] = dispatch_run_admin, [VERB_VERBOSITY] = dispatch_run_admin,                \
        [VERB_STATS] = dispatch_run_admin, [VERB_CRAWLER] = dispatch_list_crawler,                 \
        [VERB_SHUTDOWN] = dispatch_run_admin, [VERB_NOOP] = dispatch_run_admin,                    \
        [VERB_QUIT] = dispatch_run_admin, [VERB_SASL_LIST] = dispatch_run_admin,                   \
        [VERB_SASL] = dispatch_run_admin, [VERB_FEED] = dispatch_run_feed,                         \
    }

static run_fn *const runners[VERB_COUNT] = RUNNERS(
    dispatch_run_get, dispatch_run_get, dispatch_run_one, dispatch_run_add, dispatch_run_admin);
static run_fn *const runners_follow[VERB_COUNT] =
    RUNNERS(dispatch_run_get, dispatch_follow_refuse_gat, dispatch_follow_refuse_change,
            dispatch_follow_refuse_change, dispatch_follow_refuse_change);
static run_fn *const runners_stale[VERB_COUNT] =
    RUNNERS(dispatch_follow_refuse_read, dispatch_follow_refuse_gat, dispatch_follow_refuse_change,
            dispatch_follow_refuse_change, dispatch_follow_refuse_change);

static run_fn *const *runners_of(const struct dispatch_worker *worker)
{
    if (LIKELY(!worker->follows)) {
        return runners;
    }
    return worker->stale ? runners_stale : runners_follow;
}

void *dispatch_open(void *context, struct net_worker *net_worker)
{
    struct server *server = context;
    struct dispatch_worker *worker = memory_zalloc(sizeof(*worker));

    worker->server = server;
    worker->net = net_worker;
    worker->index = net_worker_index(net_worker);
    CHECK(worker->index < server->threads);
    worker->metrics = &server->metrics[worker->index];
    worker->member = barrier_join(server->barrier);
    CHECK(worker->member != NULL);
    worker->chunk = memory_zalloc(sizeof(*worker->chunk));
    worker->next = memory_zalloc(sizeof(*worker->next));
    dispatch_chunk_init(worker->chunk, net_worker);
    dispatch_chunk_init(worker->next, net_worker);
    dispatch_alone_init(worker);
    dispatch_watch_open(worker);
    worker->sink = change_sink_null();
    return worker;
}

void dispatch_close(void *worker_state)
{
    struct dispatch_worker *worker = worker_state;

    dispatch_journal_close(worker);
    dispatch_watch_close(worker);
    barrier_resign(worker->member);
    free(worker->chunk);
    free(worker->next);
    free(worker);
}

size_t dispatch_state_bytes(void)
{
    return sizeof(struct dispatch_conn);
}

void dispatch_turns_begin(void *worker_state)
{
    struct dispatch_worker *worker = worker_state;

    barrier_enter(worker->member);
    worker->settings = worker->server->settings;
    worker->spaces = worker->server->spaces;
    if (UNLIKELY(!worker->opened)) {
        worker->opened = true;
        dispatch_journal_open(worker);
        worker->has_cold = worker->server->cold != NULL;
    }
    if (worker->journal != NULL) {
        dispatch_journal_look(worker);
        dispatch_follow_look(worker);
        dispatch_watch_released(worker);
    }
}

void dispatch_turns_end(void *worker_state)
{
    struct dispatch_worker *worker = worker_state;

    if (worker->journal != NULL) {
        dispatch_journal_rest(worker);
    }
    barrier_leave(worker->member);
}

void dispatch_tick(void *worker_state)
{
    struct dispatch_worker *worker = worker_state;

    server_round(worker->server, worker->index);
    dispatch_journal_tick(worker);
    dispatch_wait_tick(worker);
}

/* A ticket of a connection that is gone wakes nobody; only pages may be held for it. */
void dispatch_closed(void *worker_state, struct net_conn *conn)
{
    const struct dispatch_conn *state = net_conn_state(conn);
    if (state->codec != NULL) {
        dispatch_trace_close(conn);
    }
    dispatch_cold_closed(worker_state, conn);
    dispatch_records_closed(worker_state, conn);
}

static bool dispatch_has_room(struct dispatch_worker *worker, const struct request *request)
{
    struct buf *out = worker->out;
    if (LIKELY(request->keys == 1 && out->capacity - out->length >= PROTOCOL_REPLY_BYTES_MAX)) {
        return true;
    }
    size_t most = worker->codec->reply_bytes_max(request);

    return out->capacity - out->length >= most || buf_room(out, most) != NULL;
}

static void count_meta(struct dispatch_worker *worker, uint32_t answered)
{
    const struct request_batch *batch = &worker->batch;
    uint64_t meta = 0;

    if (LIKELY(!batch->any_meta)) {
        return;
    }
    for (uint32_t i = 0; i < answered; i++) {
        meta += batch->requests[i].meta.line != NULL ? batch->requests[i].keys : 0;
    }
    metric_add(&worker->metrics->cmd_meta, meta);
}

static bool is_run_again(enum dispatch_end end)
{
    static const unsigned again = 1u << DISPATCH_FULL | 1u << DISPATCH_PENDING |
                                  1u << DISPATCH_CUT | 1u << DISPATCH_AGAIN | 1u << DISPATCH_LEAVE;

    return (again >> end & 1) != 0;
}

/* Of joined requests those up to worker->cut were run: they alone are what is done with.
 * Not inlined, as cut_get(): else every turn would guard the stack for their variables. */
static __attribute__((noinline)) void cut_joined(struct dispatch_worker *worker,
                                                 struct request *joined)
{
    struct request_batch *batch = &worker->batch;
    struct request next;

    worker->codec->part(batch, joined, worker->cut, worker->parsed, &next);
    joined->keys = worker->cut;
    joined->end = next.begin;
    batch->consumed = next.begin;
    batch->after = next.before;
    batch->request_count = (uint32_t)(joined - batch->requests) + 1;
}

/* Runs the batch up to what stops it. *stopped_at: requests that need not be seen again. */
static enum dispatch_end run_requests(struct dispatch_worker *worker, uint32_t *stopped_at)
{
    const struct request_batch *batch = &worker->batch;
    enum dispatch_end end = DISPATCH_DONE;
    bool traced = log_level() >= LOG_LEVEL_COMMANDS;
    run_fn *const *run = runners_of(worker);
    uint32_t i;
    for (i = 0; i < batch->request_count && end == DISPATCH_DONE; i++) {
        const struct request *request = &batch->requests[i];

        size_t answer = worker->out->length;
        end = dispatch_has_room(worker, request) ? run[request->verb](worker, request)
                                                 : DISPATCH_FULL;
        if (LIKELY(!is_run_again(end))) {
            dispatch_watch_count(worker, request, worker->with_it);
            if (UNLIKELY(traced)) {
                dispatch_trace_request(worker, request, answer);
            }
        }
        if (UNLIKELY(worker->copied_bytes >= DISPATCH_COPIED_MAX) && end == DISPATCH_DONE) {
            end = DISPATCH_LAST;
        }
        i += worker->with_it;
        worker->with_it = 0;
    }
    if (UNLIKELY(end == DISPATCH_CUT) && batch->requests[i - 1].joined) {
        cut_joined(worker, &worker->batch.requests[i - 1]);
        dispatch_watch_count(worker, &batch->requests[i - 1], 0);
        end = DISPATCH_LAST;
    }
    *stopped_at = UNLIKELY(end != DISPATCH_DONE) && is_run_again(end) ? i - 1 : i;
    if (worker->codec->has_meta) {
        count_meta(worker, *stopped_at);
    }
    return end;
}

/* The batch ends in the middle of a get, which goes on with the keys from worker->cut. */
static __attribute__((noinline)) void cut_get(struct dispatch_worker *worker,
                                              const struct request *get, const char *bytes,
                                              size_t *consumed)
{
    size_t offset;

    worker->codec->cut(&worker->batch, get, worker->cut, bytes + *consumed, &worker->conn->parser,
                       &offset);
    *consumed += offset;
}

/* Runs the batch, parsed from bytes[*consumed]; it grows by those that are done with. */
static enum dispatch_end run_batch(struct dispatch_worker *worker, const char *bytes,
                                   size_t *consumed)
{
    const struct request_batch *batch = &worker->batch;
    uint32_t stopped_at;

    worker->parsed = bytes + *consumed;
    dispatch_route_begin(worker);
    enum dispatch_end end = run_requests(worker, &stopped_at);

    if (LIKELY(stopped_at == batch->request_count)) {
        *consumed += batch->consumed;
        worker->conn->parser = batch->after;
    } else if (end == DISPATCH_CUT) {
        cut_get(worker, &batch->requests[stopped_at], bytes, consumed);
    } else {
        *consumed += batch->requests[stopped_at].begin;
        worker->conn->parser = batch->requests[stopped_at].before;
    }
    return end;
}

/* How the turn goes on after a batch; NET_AGAIN: with the next one. */
static enum net_next after_batch(const struct dispatch_worker *worker, enum dispatch_end end,
                                 enum protocol_result parsed)
{
    if (LIKELY(end == DISPATCH_DONE && parsed == PROTOCOL_MORE)) {
        return NET_WAIT;
    }
    switch (end) {
    case DISPATCH_LAST:
    case DISPATCH_CUT:
    case DISPATCH_AGAIN:
        return NET_AGAIN;
    case DISPATCH_PENDING:
        return NET_SUSPENDED;
    case DISPATCH_CLOSE:
        return NET_CLOSE;
    case DISPATCH_LEAVE:
        return NET_LEAVE;
    case DISPATCH_FULL: /* an answer that does not fit even an empty output never will */
        return worker->out->length > 0 ? NET_AGAIN : NET_CLOSE;
    case DISPATCH_DONE:
        break;
    }
    if (UNLIKELY(parsed == PROTOCOL_CLOSE)) {
        dispatch_log_closed(worker->net_conn, "what it sends is no request");
    }
    static const enum net_next next[] = {
        [PROTOCOL_MORE] = NET_WAIT, [PROTOCOL_FULL] = NET_AGAIN, [PROTOCOL_CLOSE] = NET_CLOSE};

    return next[parsed];
}

static bool turn_begin(struct dispatch_worker *worker, struct net_conn *conn,
                       const struct net_turn *turn)
{
    struct dispatch_conn *state = net_conn_state(conn);
    bool opened = false;
    if (UNLIKELY(state->codec == NULL)) {
        state->codec = codec_of((unsigned char)turn->in[0]);
        opened = true;
    }
    worker->conn = state;
    worker->net_conn = conn;
    worker->serial = net_conn_serial(conn);
    worker->codec = state->codec;
    worker->turn = turn;
    worker->out = turn->out;
    worker->changed = false;
    worker->copied_bytes = 0;
    worker->held_cold = state->cold;
    if (UNLIKELY(opened)) {
        dispatch_trace_open(worker);
    }
    return state->codec != NULL;
}

/* What fairness counts: requests, or keys of those that have many. */
static uint32_t batch_work(const struct request_batch *batch)
{
    return batch->key_count > batch->request_count ? batch->key_count : batch->request_count;
}

/* Batches, until the bytes are used up, something stops them or fairness does. */
static enum net_next run_batches(struct dispatch_worker *worker, struct net_turn *turn)
{
    uint32_t work = 0;

    worker->batch.value_max = worker->spaces->value_max;
    do {
        /* else each of them is logged, or refused, by itself */
        worker->batch.joins = log_level() < LOG_LEVEL_COMMANDS && !worker->stale;
        enum protocol_result parsed =
            worker->codec->parse(&worker->conn->parser, turn->in + turn->consumed,
                                 turn->in_length - turn->consumed, &worker->batch);
        enum dispatch_end end = run_batch(worker, turn->in, &turn->consumed);
        enum net_next next = after_batch(worker, end, parsed);

        if (next != NET_AGAIN || end == DISPATCH_FULL || end == DISPATCH_CUT ||
            end == DISPATCH_AGAIN) {
            return next;
        }
        work += batch_work(&worker->batch);
    } while (work < worker->settings->requests_per_turn &&
             worker->copied_bytes < DISPATCH_COPIED_MAX);
    return turn->consumed < turn->in_length ? NET_AGAIN : NET_WAIT;
}

/* Closes a connection that begins with a hello of TLS: it would wait for an answer for ever, and
 * its bytes may hold a newline. */
static enum net_next refuse_tls(const struct net_conn *conn, struct net_turn *turn)
{
    static const char words[] = "ERROR no TLS on this port\r\n";

    dispatch_log_closed(conn, "it speaks TLS, this port does not");
    turn->consumed = turn->in_length;
    (void)buf_append(turn->out, words, sizeof(words) - 1);
    return NET_CLOSE;
}

enum net_next dispatch_turn(void *worker_state, struct net_conn *conn, struct net_turn *turn)
{
    struct dispatch_worker *worker = worker_state;

    turn->consumed = 0;
    if (turn->in_length == 0) {
        return NET_WAIT;
    }
    if (UNLIKELY(!turn_begin(worker, conn, turn))) {
        return refuse_tls(conn, turn);
    }
    if (UNLIKELY(worker->settings->auth != NULL && !worker->conn->authenticated)) {
        enum net_next before = dispatch_auth(worker, conn, turn);

        if (before != NET_AGAIN) {
            return before;
        }
    }
    dispatch_watch_begin(worker);
    enum net_next next = run_batches(worker, turn);

    if (UNLIKELY(worker->conn->waits_since_us != 0) && next != NET_SUSPENDED) {
        worker->conn->waits_since_us = 0;
    }
    if (UNLIKELY(worker->conn->cold)) {
        next = dispatch_cold_end(worker, next, turn->consumed > 0);
    }
    if (UNLIKELY(worker->journal != NULL)) {
        turn->hold = dispatch_journal_holds(worker);
    }
    if (UNLIKELY(log_level() == LOG_LEVEL_STATES)) {
        dispatch_trace_turn(worker, turn, next);
    }
    dispatch_watch_end(worker, turn->hold);
    return next;
}
