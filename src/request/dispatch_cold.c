/*
 * What pages of dumped tables ask of a worker: that they are given back (store/cold.h: promises).
 *
 * A ticket is a connection's, for all its requests. While a request waits, pages for it and for
 * later reads are promised to the ticket. They are given back when the connection waits no more. If
 * requests were answered and a later one waits, its pages are mixed with theirs: all are given back
 * and the turn is run again, so that only what is still needed is held. Most of it is in the cache
 * then; and each time something was answered.
 *
 * Changes are carried out one by one, but wait together: the pages of those after one that waits
 * are asked for with its own. Else a client that loads old ids would cost a wake and a turn each.
 */
#include "request/dispatch_private.h"

static void dispatch_cold_release(struct dispatch_worker *worker, struct dispatch_conn *conn,
                                  uint64_t serial)
{
    const struct ticket ticket = {net_wake, worker->net, serial};

    cold_release(worker->server->cold, &ticket);
    conn->cold = false;
}

enum net_next dispatch_cold_end(struct dispatch_worker *worker, enum net_next next, bool answered)
{
    struct dispatch_conn *conn = worker->conn;
    bool mixed = worker->held_cold && answered;

    if (!conn->cold || (next == NET_SUSPENDED && !mixed)) {
        return next;
    }
    dispatch_cold_release(worker, conn, worker->serial);
    return next == NET_SUSPENDED ? NET_AGAIN : next;
}

void dispatch_cold_closed(struct dispatch_worker *worker, struct net_conn *conn)
{
    struct dispatch_conn *state = net_conn_state(conn);

    if (state->cold) {
        dispatch_cold_release(worker, state, net_conn_serial(conn));
    }
}

/*
 * A change reads what it changes, so a read of its key asks for the page. What that read tells is
 * thrown away with the turn. What would be given back at its end (above) is not asked for.
 */
void dispatch_cold_ahead(struct dispatch_worker *worker, const struct request *request,
                         const struct dispatch_key *key)
{
    const struct dispatch_chunk *chunk = worker->chunk;
    struct engine *engine = key->space->engine;
    bool page = worker->has_cold && key->op.error == ENGINE_E_NONE && !key->op.wants_table;
    bool mixed = worker->held_cold && !dispatch_is_first(worker, request);
    size_t spare = page && !mixed ? cold_spare(worker->server->cold) : 0;
    size_t most = spare < DISPATCH_AHEAD ? spare : DISPATCH_AHEAD;
    size_t n = 0;

    for (uint32_t i = chunk->cursor; i < chunk->count && n < most; i++) {
        const struct dispatch_key *next = &chunk->keys[i];

        if (next->space == key->space && next->command->call == COMMAND_CALL_CHANGE) {
            worker->gathered[n++] = chunk->ops[i];
        }
    }
    if (n > 0) {
        engine->functions->read(engine, worker->gathered, n);
    }
}

void dispatch_cold_look(struct dispatch_worker *worker, struct engine_op *const *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        worker->conn->cold |= ops[i]->status == ENGINE_PENDING;
    }
}
