/* A connection before it is authenticated: nothing it sends reaches a codec's parser. */
#include <string.h>

#include "base/log.h"
#include "protocol/auth.h"
#include "protocol/binary.h"
#include "server/auth.h"
#include "server/dispatch_private.h"

#define FAILURES_MAX 3 /* then the connection is closed */

static void answer(struct dispatch_worker *worker, const struct request *request,
                   enum reply_status status, enum reply_detail detail, const char *words)
{
    struct reply reply = {
        .status = status, .detail = detail, .value = words, .value_length = strlen(words)};

    worker->codec->compose(worker->out, request, &reply);
}

/* False: that was one too many. */
static bool fail(struct dispatch_worker *worker, const struct request *request, const char *words)
{
    metric_add(&worker->metrics->auth_errors, 1);
    answer(worker, request, REPLY_CLIENT_ERROR, DETAIL_AUTH, words);
    return ++worker->conn->auth_failures < FAILURES_MAX;
}

static bool is_right(const struct dispatch_worker *worker, const struct auth_request *asked)
{
    return asked->user != NULL &&
           auth_check(worker->settings->auth, asked->user, asked->user_length, asked->password,
                      asked->password_length);
}

/* False: the connection ends. */
static bool try_in(struct dispatch_worker *worker, const struct auth_request *asked)
{
    metric_add(&worker->metrics->auth_cmds, 1);
    if (!is_right(worker, asked)) {
        return fail(worker, &asked->request, "authentication failure");
    }
    worker->conn->authenticated = true;
    if (worker->codec == binary_codec()) {
        answer(worker, &asked->request, REPLY_SASL, DETAIL_NONE, "Authenticated");
    } else {
        answer(worker, &asked->request, REPLY_STORED, DETAIL_NONE, "");
    }
    return true;
}

static bool run(struct dispatch_worker *worker, enum auth_wish wish,
                const struct auth_request *asked)
{
    switch (wish) {
    case AUTH_TRY:
        return try_in(worker, asked);
    case AUTH_LIST:
        answer(worker, &asked->request, REPLY_SASL_LIST, DETAIL_NONE, "PLAIN");
        return true;
    case AUTH_VERSION:
        answer(worker, &asked->request, REPLY_VERSION, DETAIL_NONE,
               worker->settings->version_shown);
        return true;
    default:
        return fail(worker, &asked->request, "unauthenticated");
    }
}

enum net_next dispatch_auth(struct dispatch_worker *worker, struct net_turn *turn)
{
    bool binary = worker->codec == binary_codec();
    struct auth_request asked;

    while (!worker->conn->authenticated && turn->consumed < turn->in_length) {
        enum auth_wish wish =
            auth_parse(binary, turn->in + turn->consumed, turn->in_length - turn->consumed, &asked);

        if (wish == AUTH_MORE) {
            return NET_WAIT;
        }
        if (wish == AUTH_CLOSE) {
            return NET_CLOSE;
        }
        turn->consumed += asked.end;
        if (!run(worker, wish, &asked)) {
            return NET_CLOSE;
        }
    }
    return worker->conn->authenticated && turn->consumed < turn->in_length ? NET_AGAIN : NET_WAIT;
}

/* SASL once more on a connection that is in: a wrong password ends it. */
static enum dispatch_end run_again(struct dispatch_worker *worker, const struct request *request)
{
    const struct request_key *mechanism = &worker->batch.keys[request->first_key];
    struct auth_request asked = {.request = *request};

    if (request->keys == 1 && auth_is_plain(mechanism->bytes, mechanism->length)) {
        auth_read_plain(request->value, request->value_length, &asked);
    }
    worker->conn->authenticated = false;
    (void)try_in(worker, &asked);
    return worker->conn->authenticated ? DISPATCH_DONE : DISPATCH_CLOSE;
}

/* Without users there is none of it. */
enum dispatch_end dispatch_run_sasl(struct dispatch_worker *worker, const struct request *request)
{
    if (worker->settings->auth == NULL) {
        answer(worker, request, REPLY_ERROR, DETAIL_UNKNOWN_COMMAND, "");
    } else if (request->verb == VERB_SASL_LIST) {
        answer(worker, request, REPLY_SASL_LIST, DETAIL_NONE, "PLAIN");
    } else {
        return run_again(worker, request);
    }
    return DISPATCH_DONE;
}
