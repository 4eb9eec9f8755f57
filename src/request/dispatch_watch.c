/*
 * What a worker notes of its turns (request/watch.h), with one call of the clock a turn.
 *
 * A request's time begins with the wake-up that found its bytes, or, if it was suspended, when it
 * first had to wait; it ends with the turn that answers it, or, if its answer is held, when the
 * journal said that the answer may leave. So it has what the daemon adds to the network's time,
 * other connections of the same wake-up included. All requests of a turn have the turn's time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "request/dispatch_private.h"

#define SAMPLE_GAP_MASK 255u /* gaps of 1 to 256 keys: WATCH_SAMPLE on average */
_Static_assert((SAMPLE_GAP_MASK + 1) / 2 == WATCH_SAMPLE, "as the header says");

static const uint8_t classes[VERB_COUNT] = {
    [VERB_ERROR] = WATCH_OTHER,     [VERB_GET] = WATCH_GET,         [VERB_GAT] = WATCH_TOUCH,
    [VERB_TOUCH] = WATCH_TOUCH,     [VERB_SET] = WATCH_STORE,       [VERB_ADD] = WATCH_STORE,
    [VERB_REPLACE] = WATCH_STORE,   [VERB_APPEND] = WATCH_STORE,    [VERB_PREPEND] = WATCH_STORE,
    [VERB_CAS] = WATCH_STORE,       [VERB_INCR] = WATCH_INCR,       [VERB_DECR] = WATCH_INCR,
    [VERB_DELETE] = WATCH_DELETE,   [VERB_FLUSH_ALL] = WATCH_OTHER, [VERB_VERSION] = WATCH_OTHER,
    [VERB_VERBOSITY] = WATCH_OTHER, [VERB_STATS] = WATCH_OTHER,     [VERB_SHUTDOWN] = WATCH_OTHER,
    [VERB_FEED] = WATCH_OTHER,      [VERB_NOOP] = WATCH_OTHER,      [VERB_QUIT] = WATCH_OTHER,
    [VERB_SASL_LIST] = WATCH_OTHER, [VERB_SASL] = WATCH_OTHER,
};

void dispatch_watch_begin(struct dispatch_worker *worker)
{
    const struct dispatch_conn *conn = worker->conn;
    struct dispatch_watch *own = &worker->own;

    own->waited_us = conn->waits_since_us != 0 ? conn->waits_since_us : conn->busy_since_us;
    own->waited_for = conn->waits_since_us != 0 ? conn->waits_for : WATCH_SYNC;
    memset(&own->turn, 0, sizeof(own->turn));
}

void dispatch_watch_count(struct dispatch_worker *worker, const struct request *request,
                          uint32_t with_it)
{
    struct dispatch_counts *turn = &worker->own.turn;
    enum watch_class class = classes[request->verb];
    uint32_t asked = protocol_asked(request) + with_it;

    if (turn->all == 0) { /* a block of a get that goes on counts nothing: the next one is first */
        worker->own.first = class;
    }
    turn->of[class] += asked;
    turn->all += asked;
}

static bool is_slow(const struct dispatch_worker *worker, uint64_t us)
{
    uint64_t slow_ms = worker->settings->slow_request_ms;

    return slow_ms > 0 && us >= slow_ms * 1000;
}

/* Notes a slow request, if it is one. */
static void note_slow(struct dispatch_worker *worker, enum watch_class class, enum watch_tier tier,
                      uint64_t now_us, uint64_t us, const struct dispatch_first_key *key)
{
    if (is_slow(worker, us)) {
        struct watch_request slow = {
            .at_s = now_us / 1000000, .took_us = us, .class = class, .tier = tier};

        watch_print_key(slow.key, key->bytes, key->length);
        watch_slow(worker->watch, &slow);
    }
}

/* first: a class that some are of; nearly always all are. */
static void took(struct dispatch_worker *worker, const struct dispatch_counts *counts,
                 enum watch_class first, enum watch_tier tier, uint64_t us)
{
    if (LIKELY(counts->of[first] == counts->all)) {
        watch_took(worker->watch, first, tier, us, counts->all);
        return;
    }
    for (int class = 0; class < WATCH_CLASSES; class ++) {
        if (counts->of[class] > 0) {
            watch_took(worker->watch, (enum watch_class) class, tier, us, counts->of[class]);
        }
    }
}

/* The first key of the last batch, which most turns have only one of. */
static void first_key(const struct dispatch_worker *worker, struct dispatch_first_key *key)
{
    const struct request_batch *batch = &worker->batch;

    key->length = 0;
    if (batch->key_count > 0) {
        size_t length = batch->keys[0].length;

        key->length = (uint32_t)(length < WATCH_KEY_MAX ? length : WATCH_KEY_MAX);
        memcpy(key->bytes, batch->keys[0].bytes, key->length);
    }
}

/* The answers of the turn are held: their time goes on. */
static void hold(struct dispatch_worker *worker, uint64_t now_us)
{
    struct dispatch_held *held = &worker->own.held;

    if (held->counts.all == 0) {
        held->since_us = net_worker_now_us(worker->net);
        held->first = worker->own.first;
        first_key(worker, &held->key);
    }
    held->ended_us = now_us;
    held->counts.all += worker->own.turn.all;
    for (int class = 0; class < WATCH_CLASSES; class ++) {
        held->counts.of[class] += worker->own.turn.of[class];
    }
}

/* The end of a turn that is not as most are: the first one waited, answers are held, it is slow or
 * of several classes.
 * Not inlined, so that the others do without its room for a key. */
__attribute__((noinline)) static void end_otherwise(struct dispatch_worker *worker, bool held,
                                                    uint64_t now_us)
{
    struct dispatch_watch *own = &worker->own;
    uint64_t us = now_us - net_worker_now_us(worker->net);
    struct dispatch_first_key key;

    if (!held || own->waited_us != 0) { /* else it is for hold() alone */
        first_key(worker, &key);
    }
    if (own->waited_us != 0) { /* by the first one alone */
        uint64_t waited_us = now_us - own->waited_us;

        watch_took(worker->watch, own->first, own->waited_for, waited_us, 1);
        note_slow(worker, own->first, own->waited_for, now_us, waited_us, &key);
        own->turn.of[own->first]--;
        own->turn.all--;
    }
    if (held) {
        hold(worker, now_us);
        return;
    }
    took(worker, &own->turn, own->first, WATCH_MEMORY, us);
    if (own->turn.all > 0) {
        note_slow(worker, own->first, WATCH_MEMORY, now_us, us, &key);
    }
}

void dispatch_watch_end(struct dispatch_worker *worker, bool held)
{
    struct dispatch_watch *own = &worker->own;

    if (own->turn.all == 0) {
        return;
    }
    uint64_t now_us = clock_monotonic_us();
    uint64_t us = now_us - net_worker_now_us(worker->net);

    if (UNLIKELY(held || own->waited_us != 0 || is_slow(worker, us)) ||
        UNLIKELY(own->turn.of[own->first] != own->turn.all)) {
        end_otherwise(worker, held, now_us);
        return;
    }
    watch_took(worker->watch, own->first, WATCH_MEMORY, us, own->turn.all);
}

/* ---- answers that wait for the journal ---- */

void dispatch_watch_commit(struct dispatch_worker *worker, enum net_commit verdict, uint64_t lsn)
{
    struct dispatch_watch *own = &worker->own;
    struct dispatch_held *held = &own->held;

    if (held->counts.all == 0) {
        return;
    }
    if (verdict == NET_COMMITTED) {
        took(worker, &held->counts, held->first, WATCH_MEMORY, held->ended_us - held->since_us);
    } else if (verdict == NET_COMMIT_LATER && own->waiting_count < DISPATCH_WAITING) {
        held->lsn = lsn;
        own->waiting[(own->waiting_first + own->waiting_count++) % DISPATCH_WAITING] = *held;
    }                                               /* beyond this number their time is not noted */
    memset(&held->counts, 0, sizeof(held->counts)); /* the rest means something with them alone */
}

void dispatch_watch_released(struct dispatch_worker *worker)
{
    struct dispatch_watch *own = &worker->own;
    const struct server_waker *waker = &worker->server->wakers[worker->index];
    uint64_t given = atomic_load(&waker->given);
    uint64_t at_us = atomic_load(&waker->given_us);

    while (own->waiting_count > 0 && own->waiting[own->waiting_first].lsn <= given) {
        const struct dispatch_held *held = &own->waiting[own->waiting_first];
        uint64_t us = at_us > held->since_us ? at_us - held->since_us : 0;

        took(worker, &held->counts, held->first, WATCH_SYNC, us);
        note_slow(worker, held->first, WATCH_SYNC, at_us, us, &held->key);
        own->waiting_first = (own->waiting_first + 1) % DISPATCH_WAITING;
        own->waiting_count--;
    }
}

/* ---- hot keys ---- */

/* xorshift: a gap that is not even, or it would fall in step with requests. */
static uint32_t next_gap(struct dispatch_watch *own)
{
    uint32_t x = own->random;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    own->random = x;
    return 1 + (x & SAMPLE_GAP_MASK);
}

void dispatch_watch_open(struct dispatch_worker *worker)
{
    worker->watch = &worker->server->watches[worker->index];
    worker->own.waiting = memory_zalloc(DISPATCH_WAITING * sizeof(worker->own.waiting[0]));
    worker->own.random = 2463534242u + worker->index;
    worker->own.sample_in = next_gap(&worker->own);
}

void dispatch_watch_close(struct dispatch_worker *worker)
{
    free(worker->own.waiting);
}

static void dispatch_watch_sample(struct dispatch_worker *worker, const struct dispatch_key *key)
{
    const struct space *space = key->space;
    const struct engine_op *op = &key->op;

    if (space == NULL || key->command->call == COMMAND_CALL_NONE) {
        return;
    }
    if (space->settings.kind == SPACE_PLAIN) {
        watch_saw(worker->watch, WATCH_IDS, space->name, 0, op->member, op->member_length);
        return;
    }
    watch_saw(worker->watch, WATCH_IDS, space->name, op->id, NULL, 0);
    if (space->settings.kind == SPACE_PHANTOM) {
        watch_saw(worker->watch, WATCH_MEMBERS, space->name, op->id, op->member, op->member_length);
    }
}

void dispatch_watch_keys(struct dispatch_worker *worker, const struct dispatch_chunk *chunk)
{
    uint32_t at = 0;

    while (worker->own.sample_in <= chunk->count - at) {
        at += worker->own.sample_in;
        dispatch_watch_sample(worker, &chunk->keys[at - 1]);
        worker->own.sample_in = next_gap(&worker->own);
    }
    worker->own.sample_in -= chunk->count - at;
}
