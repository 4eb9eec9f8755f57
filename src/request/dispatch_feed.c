/*
 * dispatch_feed.c: follow and copy. The line is not read here: with its connection it goes to a
 * feed of src/repl, which answers.
 */
#include <string.h>

#include "repl/feed.h"
#include "request/dispatch.h"
#include "request/dispatch_private.h"

static const char no_feeds[] = "nobody can follow this node: it has no replication.name";

enum dispatch_end dispatch_run_feed(struct dispatch_worker *worker, const struct request *request)
{
    if (worker->server->feeds == NULL) {
        const struct reply reply = {
            .status = REPLY_SERVER_ERROR, .value = no_feeds, .value_length = sizeof(no_feeds) - 1};

        dispatch_reply(worker, request, &reply);
        return DISPATCH_DONE;
    }
    /* What came before it is answered, and stored, first. */
    return worker->out->length > 0 || worker->changed ? DISPATCH_AGAIN : DISPATCH_LEAVE;
}

void dispatch_left(void *worker_state, struct net_conn *conn, const struct net_left *left)
{
    struct dispatch_worker *worker = worker_state;

    (void)conn;
    repl_feeds_take(worker->server->feeds, left->fd, left->tls, left->in, left->in_length);
}
