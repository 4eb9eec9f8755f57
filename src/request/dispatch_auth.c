/* A connection before it is authenticated: nothing it sends reaches a codec's parser. */
#include <string.h>

#include "base/log.h"
#include "config/auth.h"
#include "request/auth_delay.h"
#include "request/dispatch_private.h"

#define FAILURES_MAX      3         /* then the connection is closed */
#define WAIT_MAX_US       20000000u /* a login is answered by then */
#define WAITING_BYTES_MAX 4096u     /* a connection that waits with more would fill the buffers */
#define USER_SHOWN_MAX    64        /* letters of a user's name in the log */

_Static_assert(WAIT_MAX_US > (2 * AUTH_DELAY_MAX_S + 2) * 1000000u,
               "who waits alone, or after one other, has its turn");
_Static_assert(WAITING_BYTES_MAX >= 2 * AUTH_REQUEST_MAX + 2, "a whole login may wait");

static void answer(struct dispatch_worker *worker, const struct request *request,
                   enum reply_status status, enum reply_detail detail, const char *words)
{
    struct reply reply = {
        .status = status, .detail = detail, .value = words, .value_length = strlen(words)};

    dispatch_reply(worker, request, &reply);
}

/* False: that was one too many. */
static bool dispatch_auth_fail(struct dispatch_worker *worker, const struct request *request,
                               const char *words)
{
    answer(worker, request, REPLY_CLIENT_ERROR, DETAIL_AUTH, words);
    if (++worker->conn->auth_failures < FAILURES_MAX) {
        return true;
    }
    dispatch_log_closed(worker->net_conn, "it did not log in");
    return false;
}

/* ---- a user and a password ---- */

enum attempt { ATTEMPT_RIGHT, ATTEMPT_WRONG, ATTEMPT_LATER };

static bool is_right(const struct dispatch_worker *worker, const struct auth_request *asked)
{
    return asked->user != NULL &&
           auth_check(worker->settings->auth, asked->user, asked->user_length, asked->password,
                      asked->password_length);
}

/* Since when the login has waited, or begins to. */
static uint64_t waits_since(const struct dispatch_worker *worker)
{
    uint64_t since_us = worker->conn->login_since_us;

    return since_us != 0 ? since_us : net_worker_now_us(worker->net);
}

static enum attempt attempt(struct dispatch_worker *worker, const struct net_conn *conn,
                            const struct auth_request *asked)
{
    struct auth_delay *delay = worker->server->auth_delay;
    uint64_t origin = net_conn_origin(conn);
    uint64_t now_us = net_worker_now_us(worker->net);

    if (!auth_delay_begin(delay, origin, waits_since(worker), now_us)) {
        return ATTEMPT_LATER;
    }
    bool right = is_right(worker, asked);

    auth_delay_end(delay, origin, now_us, right);
    return right ? ATTEMPT_RIGHT : ATTEMPT_WRONG;
}

static void log_failure(const struct net_conn *conn, const struct auth_request *asked,
                        const char *how)
{
    char peer[128], user[LOG_QUOTED_MAX];
    size_t shown = asked->user_length < USER_SHOWN_MAX ? asked->user_length : USER_SHOWN_MAX;

    log_warning(
        "a login was refused peer=%s user=%s reason=\"%s\"", net_conn_peer(conn, peer),
        log_quoted(asked->user != NULL ? asked->user : "", asked->user != NULL ? shown : 0, user),
        how);
}

/* False: the connection ends. */
static bool end_attempt(struct dispatch_worker *worker, const struct net_conn *conn,
                        const struct auth_request *asked, bool right)
{
    worker->conn->login_since_us = 0;
    metric_add(&worker->metrics->auth_cmds, 1);
    if (!right) {
        metric_add(&worker->metrics->auth_errors, 1);
        log_failure(conn, asked, "wrong user or password");
        return dispatch_auth_fail(worker, &asked->request, "authentication failure");
    }
    worker->conn->authenticated = true;
    answer(worker, &asked->request, REPLY_LOGIN, DETAIL_NONE, "Authenticated");
    return true;
}

/* Its password will be looked at later: at the worker's tick it is woken and asks again. False: it
 * has waited long enough, or keeps too much. */
static bool wait_for_turn(struct dispatch_worker *worker, size_t bytes)
{
    struct dispatch_conn *conn = worker->conn;
    uint64_t now_us = net_worker_now_us(worker->net);

    if (bytes > WAITING_BYTES_MAX) {
        return false;
    }
    if (conn->login_since_us == 0) {
        conn->login_since_us = now_us;
        metric_add(&worker->metrics->auth_delayed, 1);
    }
    worker->busy = true;
    return now_us - conn->login_since_us < WAIT_MAX_US;
}

static void refuse_unseen(struct dispatch_worker *worker, const struct net_conn *conn,
                          const struct auth_request *asked)
{
    auth_delay_leave(worker->server->auth_delay, net_conn_origin(conn), waits_since(worker));
    metric_add(&worker->metrics->auth_refused, 1);
    log_failure(conn, asked, "too many wrong passwords from there");
    answer(worker, &asked->request, REPLY_SERVER_ERROR, DETAIL_AUTH,
           "too many wrong passwords, try again later");
}

/*
 * Its client has closed its side while it waited. As a rule it has gone: a guess that nobody waits
 * for must not hold up those who do. One that only says no more can still read its refusal.
 */
static bool was_given_up(const struct dispatch_worker *worker, const struct net_conn *conn)
{
    return worker->conn->login_since_us != 0 && net_conn_ended(conn);
}

/* `bytes`: of the turn, from the request on. NET_AGAIN: it is done with. */
static enum net_next try_in(struct dispatch_worker *worker, const struct net_conn *conn,
                            const struct auth_request *asked, size_t bytes)
{
    if (was_given_up(worker, conn)) {
        refuse_unseen(worker, conn, asked);
        return NET_CLOSE;
    }
    enum attempt how = attempt(worker, conn, asked);

    if (how != ATTEMPT_LATER) {
        return end_attempt(worker, conn, asked, how == ATTEMPT_RIGHT) ? NET_AGAIN : NET_CLOSE;
    }
    if (wait_for_turn(worker, bytes)) {
        return NET_SUSPENDED;
    }
    refuse_unseen(worker, conn, asked);
    return NET_CLOSE;
}

/* ---- the turn ---- */

static enum net_next refuse_other(struct dispatch_worker *worker, const struct request *request)
{
    metric_add(&worker->metrics->unauthenticated, 1);
    return dispatch_auth_fail(worker, request, "unauthenticated") ? NET_AGAIN : NET_CLOSE;
}

enum net_next dispatch_auth(struct dispatch_worker *worker, struct net_conn *conn,
                            struct net_turn *turn)
{
    enum net_next next = NET_AGAIN;
    struct auth_request asked;

    while (next == NET_AGAIN && !worker->conn->authenticated && turn->consumed < turn->in_length) {
        size_t left = turn->in_length - turn->consumed;
        enum auth_wish wish = worker->codec->read_auth(turn->in + turn->consumed, left, &asked);

        switch (wish) {
        case AUTH_MORE:
            return NET_WAIT;
        case AUTH_CLOSE:
            dispatch_log_closed(conn, "what it sends is no request");
            return NET_CLOSE;
        case AUTH_TRY:
            next = try_in(worker, conn, &asked, left);
            break;
        case AUTH_LIST:
            answer(worker, &asked.request, REPLY_SASL_LIST, DETAIL_NONE, AUTH_MECHANISM);
            break;
        case AUTH_OTHER:
            next = refuse_other(worker, &asked.request);
            break;
        }
        turn->consumed += next != NET_SUSPENDED ? asked.end : 0;
    }
    return next == NET_AGAIN && turn->consumed == turn->in_length ? NET_WAIT : next;
}

/*
 * Runs SASL on a connection that has logged in (or without users). It is a login like the first:
 * what came before it no longer counts, and dispatch_auth reads it again, as it reads all others.
 */
enum dispatch_end dispatch_run_sasl(struct dispatch_worker *worker, const struct request *request)
{
    if (worker->settings->auth == NULL) {
        answer(worker, request, REPLY_ERROR, DETAIL_UNKNOWN_COMMAND, "");
    } else if (request->verb == VERB_SASL_LIST) {
        answer(worker, request, REPLY_SASL_LIST, DETAIL_NONE, AUTH_MECHANISM);
    } else {
        worker->conn->authenticated = false;
        return DISPATCH_AGAIN;
    }
    return DISPATCH_DONE;
}
