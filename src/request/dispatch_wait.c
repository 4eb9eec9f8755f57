/*
 * How long a request may wait: for a table (a dump or an opening that does not end), for a page of
 * a dumped one (a disk that hangs), for a merge that makes room for its change (op->error is BUSY
 * then), for flush_all. Waiting for room in the journal has a bound of its own
 * (dispatch_journal.c).
 *
 * The clock is a connection's, as only its first request can wait, and begins when that does. Once
 * its time is up the request is run again, by its wake or by the worker's tick, and is answered
 * with an error where it would have to wait on. A list is run at each tick, as its time begins anew
 * with each step of the lister.
 */
#include "request/dispatch.h"
#include "request/dispatch_private.h"
#include "row/row.h"

bool dispatch_is_first(const struct dispatch_worker *worker, const struct request *request)
{
    return worker->turn->consumed == 0 && request == worker->batch.requests;
}

bool dispatch_wait(struct dispatch_worker *worker, const struct request *request)
{
    struct dispatch_conn *conn = worker->conn;
    uint64_t now_us = net_worker_now_us(worker->net);

    if (conn->waits_since_us == 0 || !dispatch_is_first(worker, request)) {
        conn->waits_since_us = now_us;
    }
    worker->waits = true;
    return now_us - conn->waits_since_us < worker->server->wait_us;
}

bool dispatch_wait_op(struct dispatch_worker *worker, const struct request *request,
                      struct engine *engine, struct engine_op *op)
{
    bool merge = op->error == ENGINE_E_BUSY;
    bool table = op->wants_table && !merge;

    worker->conn->waits_for = table ? WATCH_TABLE : WATCH_DISK;
    if (op->error == ENGINE_E_JOURNAL_BUSY || dispatch_wait(worker, request)) {
        return true;
    }
    op->status = ENGINE_ERROR;
    op->error = table || merge ? ENGINE_E_BUSY : ENGINE_E_READ_FAILED;
    if (table) {
        row_waited(engine->row);
    }
    return false;
}

struct overdue {
    struct dispatch_worker *worker;
    uint64_t now_us;
    bool more; /* connections that wait, and are not due */
};

static void wake_overdue(void *context, const struct net_conn *conn)
{
    struct overdue *overdue = context;
    struct dispatch_worker *worker = overdue->worker;
    const struct dispatch_conn *state = net_conn_state((struct net_conn *)(uintptr_t)conn);

    if (state->waits_since_us == 0) {
        return;
    }
    bool due = overdue->now_us - state->waits_since_us >= worker->server->wait_us;

    if (due || dispatch_records_lists(worker, conn)) {
        net_wake(worker->net, net_conn_serial(conn));
    }
    overdue->more = overdue->more || !due;
}

void dispatch_wait_tick(struct dispatch_worker *worker)
{
    if (worker->waits) {
        struct overdue overdue = {.worker = worker, .now_us = net_worker_now_us(worker->net)};

        net_worker_each(worker->net, wake_overdue, &overdue);
        worker->waits = overdue.more;
    }
}
