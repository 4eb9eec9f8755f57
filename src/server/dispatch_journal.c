/*
 * What the journal asks of a worker: when answers may leave, and what a change does that finds no
 * room.
 *
 * Held are the answers of a turn with a change while the journal's head is ahead of what is
 * written; under sync: always, of what is durable. The turn may have put nothing itself (an add of
 * what is there), but what it says rests on what somebody else has put and not written yet. A
 * failed commit closes the connections: nobody knows what of it is kept. So does a journal that
 * fails while answers wait until they are durable (net_release_no_more). Once it is known to have
 * failed, what changes nothing is answered like a read.
 *
 * A change without room is suspended and run again when room may have come: when the journal says
 * so (journal_wait_room), and at each tick. After BUSY_WAIT_US it is refused; at once if the disk
 * is full or the journal has failed. Before it waits, all that was put is written, by this worker:
 * under sync: never that is what makes room.
 */
#include <stdio.h>

#include "base/check.h"
#include "server/dispatch.h"
#include "server/dispatch_private.h"

#define BUSY_WAIT_US 1000000u

/* ---- the wakers ---- */

static void waker_set(struct server_waker *waker, struct net_worker *net, struct journal *journal)
{
    pthread_mutex_lock(&waker->lock);
    waker->net = net;
    waker->journal = journal;
    pthread_mutex_unlock(&waker->lock);
}

/* Of answers that wait: also called when the journal has failed, or is closed. */
static void wake_answers(void *target, uint64_t lsn)
{
    struct server_waker *waker = target;

    pthread_mutex_lock(&waker->lock);
    if (waker->net != NULL) {
        uint64_t durable = journal_durable(waker->journal);

        net_release(waker->net, durable);
        if (durable < lsn) {
            net_release_no_more(waker->net);
        }
    }
    pthread_mutex_unlock(&waker->lock);
}

static void wake_request(void *target, uint64_t serial)
{
    struct server_waker *waker = target;

    pthread_mutex_lock(&waker->lock);
    if (waker->net != NULL) {
        net_wake(waker->net, serial);
    }
    pthread_mutex_unlock(&waker->lock);
}

static struct server_waker *waker_of(const struct dispatch_worker *worker)
{
    return &worker->server->wakers[worker->index];
}

void dispatch_journal_open(struct dispatch_worker *worker)
{
    struct journal *journal = worker->server->journal;

    if (journal == NULL) {
        return;
    }
    waker_set(waker_of(worker), worker->net, journal);
    journal_sink_init(&worker->journal_sink, journal);
    worker->sink = &worker->journal_sink.sink;
    worker->journal = journal;
}

void dispatch_journal_close(struct dispatch_worker *worker)
{
    if (worker->journal == NULL) {
        return;
    }
    waker_set(waker_of(worker), NULL, NULL);
    journal_sink_fini(&worker->journal_sink);
}

void dispatch_journal_rest(struct dispatch_worker *worker)
{
    if (worker->journal != NULL && !journal_sink_wrote(&worker->journal_sink)) {
        journal_give_back(&worker->journal_sink.writer);
    }
}

/* ---- answers ---- */

static bool always(const struct dispatch_worker *worker)
{
    return worker->server->sync == JOURNAL_SYNC_ALWAYS;
}

bool dispatch_journal_holds(const struct dispatch_worker *worker)
{
    const struct journal *journal = worker->journal;

    if (!worker->changed ||
        (worker->journal_failed && !journal_sink_wrote(&worker->journal_sink))) {
        return false;
    }
    uint64_t head = journal_head(journal);

    return head > (always(worker) ? journal_durable(journal) : journal_written(journal));
}

static void complain(struct dispatch_worker *worker, const struct journal_stats *stats)
{
    worker->journal_failed = stats->failed;
    char text[JOURNAL_ERROR_MAX + 64];

    snprintf(text, sizeof(text), "journal %s: %s",
             stats->failed ? "failed, writes are refused" : "has no room", stats->error);
    server_complain(worker->server, text);
}

enum net_commit dispatch_commit(void *worker_state, uint64_t *wait)
{
    struct dispatch_worker *worker = worker_state;
    uint64_t lsn;

    if (!journal_sink_commit(&worker->journal_sink, &lsn)) {
        struct journal_stats stats;

        journal_stats(worker->journal, &stats);
        complain(worker, &stats);
        return NET_COMMIT_FAILED;
    }
    if (!always(worker) || journal_durable(worker->journal) >= lsn) {
        return NET_COMMITTED;
    }
    *wait = lsn;
    journal_wait_durable(worker->journal, lsn, wake_answers, waker_of(worker), lsn);
    return NET_COMMIT_LATER;
}

/* ---- no room ---- */

/* Has it waited long enough? Its clock begins with the first time. */
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

/* Has it run again when there may be room. False: the commit failed. */
static bool wait_for_room(struct dispatch_worker *worker)
{
    uint64_t head;

    worker->busy = true;
    worker->changed = true; /* what this turn put leaves now; should that fail, it is not said */
    if (!journal_sink_commit(&worker->journal_sink, &head)) {
        return false;
    }
    journal_sink_wait(&worker->journal_sink, wake_request, waker_of(worker), worker->serial);
    return true;
}

void dispatch_journal_busy(struct dispatch_worker *worker, struct engine_op *op)
{
    struct journal_stats stats;

    CHECK(worker->journal != NULL);
    journal_stats(worker->journal, &stats);
    if (stats.full || stats.failed) {
        op->error = stats.failed ? ENGINE_E_JOURNAL_FAILED : ENGINE_E_JOURNAL_FULL;
        complain(worker, &stats);
    } else if (!time_is_up(worker) && wait_for_room(worker)) {
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

/* A disk that hangs makes no room and wakes nobody: who waits looks at the clock. */
void dispatch_journal_tick(struct dispatch_worker *worker)
{
    if (worker->busy) {
        worker->busy = false; /* until one of them has to wait again */
        net_worker_each(worker->net, wake_busy, worker);
    }
}
