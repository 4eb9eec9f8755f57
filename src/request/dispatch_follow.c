/*
 * dispatch_follow.c: a node that follows another: its records come from there alone. So every verb
 * that could change something is refused before it is looked at, spaces of kind plain included: a
 * client must not have to know which spaces are in a journal. SERVER_ERROR, as what is asked is
 * right, and another node would do it: routers go on to that one.
 *
 * One that leads by an agent's word does the same from when that has ended: it is fenced.
 *
 * Reads are refused while what is here is not of one moment yet, or too old
 * (replication.stale-after): a fenced leader's is as old as its agent's last word.
 */
#include <string.h>

#include "data/follow.h"
#include "repl/receiver.h"
#include "request/dispatch_private.h"

void dispatch_follow_look(struct dispatch_worker *worker)
{
    const struct server *server = worker->server;

    worker->follows = server->follows || (UNLIKELY(server->leased) && server_is_fenced(server));
    worker->stale = server->follows
                        ? !data_readable(server->data) || repl_receiver_is_stale(server->receiver)
                        : server_is_stale(server, worker->settings->replication.stale_after_s);
}

/* The keys of a request that is not run were routed all the same. */
static void pass_over(struct dispatch_worker *worker, const struct request *request)
{
    for (uint32_t i = 0; i < request->keys; i++) {
        (void)dispatch_key_next(worker);
    }
}

static enum dispatch_end dispatch_follow_refuse(struct dispatch_worker *worker,
                                                const struct request *request, const char *words)
{
    const struct reply reply = {
        .status = REPLY_SERVER_ERROR, .value = words, .value_length = strlen(words)};

    pass_over(worker, request);
    metric_add(&worker->metrics->refused_noreply, request->quiet == QUIET_ALL);
    dispatch_reply(worker, request, &reply);
    return DISPATCH_DONE;
}

enum dispatch_end dispatch_follow_refuse_change(struct dispatch_worker *worker,
                                                const struct request *request)
{
    return dispatch_follow_refuse(worker, request, worker->server->not_leader);
}

/* Refuses the keys of a get once: in a later block the line takes the place of END, and the
 * connection ends. */
static enum dispatch_end refuse_keys(struct dispatch_worker *worker, const struct request *request,
                                     const char *words)
{
    if (worker->conn->skip_get) {
        pass_over(worker, request);
        worker->conn->skip_get = request->more;
        return DISPATCH_DONE;
    }
    (void)dispatch_follow_refuse(worker, request, words);
    worker->conn->skip_get = request->more;
    return request->before.in_get ? DISPATCH_CLOSE : DISPATCH_DONE;
}

enum dispatch_end dispatch_follow_refuse_gat(struct dispatch_worker *worker,
                                             const struct request *request)
{
    return refuse_keys(worker, request, worker->server->not_leader);
}

enum dispatch_end dispatch_follow_refuse_read(struct dispatch_worker *worker,
                                              const struct request *request)
{
    return refuse_keys(worker, request, "stale");
}
