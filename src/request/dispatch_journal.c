/*
 * What the journal asks of a worker: when answers may leave, and what a change does that finds no
 * room.
 *
 * Held are the answers of a turn with a change while the journal's head is ahead of what is
 * written; under sync: always, of what is durable. The turn may have put nothing itself (an add of
 * what is there), but what it says rests on what somebody else has put and not written yet. No
 * worker writes: it submits, and the answers leave when the journal says that it came so far
 * (net_release). A journal that fails meanwhile closes their connections: nobody knows what of it
 * is kept (net_release_no_more). Once it is known to have failed, what changes nothing is answered
 * like a read.
 *
 * With ack: replica they wait for a follower's word, too (settled). While that one is away or
 * behind no change is begun, as none could be acknowledged: nothing is ever acknowledged without
 * it.
 *
 * A change without room is suspended and run again when room may have come: when the journal says
 * so (journal_want_room), and at each tick. After BUSY_WAIT_US it is refused; at once if the disk
 * is full or the journal has failed. So it is too, at once, while the journal hangs: when answers
 * of this worker have waited for it that long, and it came no further.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "data/follow.h"
#include "repl/feed.h"
#include "repl/receiver.h"
#include "request/dispatch.h"
#include "request/dispatch_private.h"

#define BUSY_WAIT_US 1000000u

/* ---- what the journal says, on its threads ---- */

/* Up to where answers may leave. With ack: replica the follower must have it, too. */
static uint64_t settled(const struct server *server)
{
    uint64_t here = server->sync == JOURNAL_SYNC_ALWAYS ? journal_durable(server->journal)
                                                        : journal_written(server->journal);
    if (LIKELY(!server->ack_replica)) {
        return here;
    }
    uint64_t there = repl_feeds_acked(server->feeds);

    return there < here ? there : here;
}

/* Returns whether a follower must acknowledge changes and is not there. Any thread. */
static bool dispatch_journal_lacks_replica(const struct server *server)
{
    return UNLIKELY(server->ack_replica) && !repl_feeds_in_sync(server->feeds);
}

/*
 * A worker notes what it waits for and then looks how far the journal is; the journal moves and
 * then looks at the note. Both are of one order (seq_cst), so one of the two sees the other. A
 * worker that waits for nothing new costs a look.
 */
static void dispatch_journal_release(struct server_waker *waker, uint64_t upto, bool failed)
{
    if (atomic_load(&waker->wanted) <= atomic_load(&waker->given) && !failed) {
        return;
    }
    pthread_mutex_lock(&waker->lock);
    if (waker->net != NULL) {
        net_release(waker->net, upto);
    }
    if (waker->net != NULL && failed) {
        net_release_no_more(waker->net);
    }
    if (atomic_load(&waker->given) < upto) {
        atomic_store(&waker->given_us, clock_monotonic_us());
        atomic_store(&waker->given, upto);
    }
    pthread_mutex_unlock(&waker->lock);
}

void dispatch_journal_moved(void *context)
{
    struct server *server = context;
    bool failed = journal_failed(server->journal); /* first: nothing moves after it */
    uint64_t upto = settled(server);

    for (unsigned i = 0; i < server->threads; i++) {
        dispatch_journal_release(&server->wakers[i], upto, failed);
    }
    if (server->feeds != NULL) {
        repl_feeds_moved(server->feeds);
    }
    if (server->followed != NULL) {
        data_follow_moved(server->followed);
        repl_receiver_moved(server->receiver);
    }
}

static void wake_all(struct server_waker *waker)
{
    pthread_mutex_lock(&waker->lock);
    for (size_t i = 0; i < waker->serials_count && waker->net != NULL; i++) {
        net_wake(waker->net, waker->serials[i]);
    }
    waker->serials_count = 0;
    pthread_mutex_unlock(&waker->lock);
}

void dispatch_journal_room(void *context)
{
    struct server *server = context;

    for (unsigned i = 0; i < server->threads; i++) {
        wake_all(&server->wakers[i]);
    }
}

/* ---- a worker's waker ---- */

static void waker_clear(struct server_waker *waker)
{
    pthread_mutex_lock(&waker->lock);
    waker->serials_count = 0;
    pthread_mutex_unlock(&waker->lock);
}

static struct server_waker *waker_of(const struct dispatch_worker *worker)
{
    return &worker->server->wakers[worker->index];
}

static void waker_set(struct server_waker *waker, struct net_worker *net)
{
    pthread_mutex_lock(&waker->lock);
    waker->net = net;
    waker->serials_count = 0;
    pthread_mutex_unlock(&waker->lock);
}

/* Notes a connection that is to be woken when there is room. The tick wakes all of them and empties
 * the list, so it never holds more than came since the last one, however long a disk hangs. */
static void waker_add(struct server_waker *waker, uint64_t serial)
{
    pthread_mutex_lock(&waker->lock);
    waker->serials = array_room(waker->serials, waker->serials_count, &waker->serials_room,
                                sizeof(*waker->serials));
    waker->serials[waker->serials_count++] = serial;
    pthread_mutex_unlock(&waker->lock);
}

void dispatch_journal_open(struct dispatch_worker *worker)
{
    struct journal *journal = worker->server->journal;

    if (journal == NULL) {
        return;
    }
    waker_set(waker_of(worker), worker->net);
    journal_sink_init(&worker->journal_sink, journal);
    worker->sink = &worker->journal_sink.sink;
    worker->journal = journal;
}

void dispatch_journal_close(struct dispatch_worker *worker)
{
    if (worker->journal == NULL) {
        return;
    }
    waker_set(waker_of(worker), NULL);
    journal_sink_fini(&worker->journal_sink);
}

void dispatch_journal_rest(struct dispatch_worker *worker)
{
    if (!journal_sink_wrote(&worker->journal_sink)) {
        journal_give_back(&worker->journal_sink.writer, 0);
    }
}

/* ---- answers ---- */

bool dispatch_journal_holds(const struct dispatch_worker *worker)
{
    bool takes_none = worker->journal_failed || worker->no_replica;

    if (!worker->changed || (takes_none && !journal_sink_wrote(&worker->journal_sink))) {
        return false;
    }
    return journal_head(worker->journal) > settled(worker->server);
}

static void dispatch_journal_complain(struct dispatch_worker *worker,
                                      const struct journal_stats *stats)
{
    worker->journal_failed = stats->failed;
    char text[JOURNAL_ERROR_MAX + 64];

    snprintf(text, sizeof(text), "journal %s: %s",
             stats->failed ? "failed, writes are refused" : "has no room", stats->error);
    server_complain(worker->server, text);
}

/* What waits is noted with the time of the oldest of it, as far as the journal is not yet there. */
static void note_wait(struct dispatch_worker *worker, uint64_t lsn)
{
    struct dispatch_wait *wait = &worker->wait;

    wait->last = lsn;
    wait->last_us = net_worker_now_us(worker->net);
    if (wait->first == 0) {
        wait->first = wait->last;
        wait->first_us = wait->last_us;
    }
}

/* Returns whether the journal has not come to what this worker waits for, for a second or more. */
static bool is_hanging(struct dispatch_worker *worker)
{
    struct dispatch_wait *wait = &worker->wait;
    uint64_t reached = settled(worker->server);

    if (wait->first > 0 && wait->first <= reached) {
        bool more = wait->last > reached;

        wait->first = more ? wait->last : 0;
        wait->first_us = wait->last_us;
    }
    return wait->first > 0 && net_worker_now_us(worker->net) - wait->first_us >= BUSY_WAIT_US;
}

static bool no_reserve(struct change_sink *sink)
{
    (void)sink;
    return false;
}

void dispatch_journal_look(struct dispatch_worker *worker)
{
    static const struct change_sink_functions functions = {.reserve = no_reserve};
    static const struct change_sink closed = {&functions};

    worker->hanging = is_hanging(worker);
    worker->no_replica = dispatch_journal_lacks_replica(worker->server);
    bool takes = !worker->hanging && !worker->no_replica;

    worker->sink = !takes ? (struct change_sink *)&closed : &worker->journal_sink.sink;
}

/* An answer that waited, for the disk or a follower, until after the lease is none any more. */
bool dispatch_may_leave(void *worker_state)
{
    const struct dispatch_worker *worker = worker_state;

    return LIKELY(!worker->server->leased) || !server_is_fenced(worker->server);
}

static enum net_commit commit(struct dispatch_worker *worker, uint64_t *wait)
{
    uint64_t lsn = journal_head(worker->journal);

    atomic_store(&waker_of(worker)->wanted, lsn);
    (void)journal_sink_submit(&worker->journal_sink);
    bool failed = journal_failed(worker->journal);

    if (!worker->follows && !dispatch_may_leave(worker)) {
        return NET_COMMIT_FAILED; /* it slept since the turns began, and others may lead now */
    }
    if (settled(worker->server) >= lsn) {
        return NET_COMMITTED;
    }
    if (failed) {
        struct journal_stats stats;

        journal_stats(worker->journal, &stats);
        dispatch_journal_complain(worker, &stats);
        return NET_COMMIT_FAILED;
    }
    note_wait(worker, lsn);
    *wait = lsn;
    return NET_COMMIT_LATER;
}

enum net_commit dispatch_commit(void *worker_state, uint64_t *wait)
{
    struct dispatch_worker *worker = worker_state;
    enum net_commit verdict = commit(worker, wait);

    dispatch_watch_commit(worker, verdict, *wait);
    return verdict;
}

/* ---- no room ---- */

/* Returns whether the change has waited long enough. Its clock begins with the first time. */
static bool time_is_up(struct dispatch_worker *worker)
{
    uint64_t now_us = net_worker_now_us(worker->net);
    struct dispatch_conn *conn = worker->conn;

    if (conn->busy_since_us == 0) {
        conn->busy_since_us = now_us;
        return false;
    }
    return now_us - conn->busy_since_us >= BUSY_WAIT_US;
}

/* Has it run again when there may be room. Under sync: never what was put makes some when it is
 * written. */
static void wait_for_room(struct dispatch_worker *worker)
{
    worker->busy = true;
    waker_add(waker_of(worker), worker->serial);
    (void)journal_sink_submit(&worker->journal_sink);
    journal_sink_want_room(&worker->journal_sink);
}

void dispatch_journal_busy(struct dispatch_worker *worker, struct engine_op *op)
{
    struct journal_stats stats;

    CHECK(worker->journal != NULL);
    journal_stats(worker->journal, &stats);
    if (stats.full || stats.failed) {
        op->error = stats.failed ? ENGINE_E_JOURNAL_FAILED : ENGINE_E_JOURNAL_FULL;
        dispatch_journal_complain(worker, &stats);
    } else if (worker->no_replica) {
        op->error = ENGINE_E_NO_REPLICA;
    } else if (!worker->hanging && !time_is_up(worker)) {
        wait_for_room(worker);
        op->status = ENGINE_PENDING;
        return;
    }
    worker->conn->busy_since_us = 0;
}

static void wake_busy(void *context, const struct net_conn *conn)
{
    struct dispatch_worker *worker = context;
    const struct dispatch_conn *state = net_conn_state((struct net_conn *)(uintptr_t)conn);

    if (state->busy_since_us != 0 || state->login_since_us != 0) {
        net_wake(worker->net, net_conn_serial(conn));
    }
}

/* A disk that hangs makes no room and wakes nobody: a waiting request looks at the clock. */
void dispatch_journal_tick(struct dispatch_worker *worker)
{
    if (worker->busy) {
        worker->busy = false; /* until one of them has to wait again */
        waker_clear(waker_of(worker));
        net_worker_each(worker->net, wake_busy, worker);
    }
}
