/* Requests without keys. */
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "plain/plain.h"
#include "request/dispatch_private.h"
#include "request/flush.h"
#include "request/stats.h"

typedef enum dispatch_end admin_fn(struct dispatch_worker *worker, const struct request *request);

void dispatch_refuse(struct dispatch_worker *worker, const struct request *request,
                     const struct reply *reply)
{
    struct reply said = *reply;
    if (worker->settings->refusals == SETTINGS_REFUSALS_SERVER && worker->codec->says_whose) {
        said.status = REPLY_SERVER_ERROR;
    }
    worker->codec->compose(worker->out, request, &said);
}

/* `words` may be NULL. */
static enum dispatch_end dispatch_admin_say(struct dispatch_worker *worker,
                                            const struct request *request, enum reply_status status,
                                            const char *words)
{
    struct reply reply = {.status = status,
                          .detail = request->detail,
                          .value = words,
                          .value_length = words != NULL ? strlen(words) : 0};

    dispatch_reply(worker, request, &reply);
    return DISPATCH_DONE;
}

static enum dispatch_end dispatch_admin_refuse(struct dispatch_worker *worker,
                                               const struct request *request,
                                               enum reply_status status, const char *words)
{
    if (request->quiet == QUIET_ALL) {
        metric_add(&worker->metrics->refused_noreply, 1);
    }
    return dispatch_admin_say(worker, request, status, words);
}

/* What the codec refused. In the rest of a get that was answered with an error, nothing is said. */
static enum dispatch_end run_error(struct dispatch_worker *worker, const struct request *request)
{
    if (worker->conn->skip_get) {
        worker->conn->skip_get = false;
        return DISPATCH_DONE;
    }
    metric_add(&worker->metrics->store_too_large, request->detail == DETAIL_TOO_LARGE);
    if (request->keys == 1) {
        dispatch_forget(worker, request);
    }
    return dispatch_admin_refuse(worker, request, request->refusal, request->text);
}

/* Carries out a flush_all with a delay: only values that no log has to know of can go. */
static enum dispatch_end flush_later(struct dispatch_worker *worker, const struct request *request)
{
    uint64_t at_s = command_exptime_at((int64_t)request->delay);
    const struct space *plain = worker->spaces->plain;

    if (plain == NULL) {
        return dispatch_admin_refuse(worker, request, REPLY_CLIENT_ERROR,
                                     "flush_all delay not supported");
    }
    plain_clear_later(plain->engine, at_s);
    return dispatch_admin_say(worker, request, REPLY_OK, NULL);
}

/* Suspended until the keeper has done it. If that takes too long it is taken back. */
static enum dispatch_end await_flush(struct dispatch_worker *worker, const struct request *request)
{
    struct flush *flush = worker->server->flush;
    uint64_t number = worker->conn->flush;
    enum flush_state state = flush_look(flush, number);

    if (state == FLUSH_WAITS &&
        (dispatch_wait(worker, request) || !flush_take_back(flush, number))) {
        metric_add(&worker->metrics->suspensions, 1);
        return DISPATCH_PENDING;
    }
    worker->conn->flush = 0;
    worker->changed = state != FLUSH_WAITS; /* also if only some are empty */
    if (state == FLUSH_DONE) {
        return dispatch_admin_say(worker, request, REPLY_OK, NULL);
    }
    return dispatch_admin_refuse(worker, request, REPLY_SERVER_ERROR,
                                 state == FLUSH_REFUSED ? "journal busy" : "busy");
}

static enum dispatch_end run_flush_all(struct dispatch_worker *worker,
                                       const struct request *request)
{
    const struct ticket ticket = {net_wake, worker->net, worker->serial};

    if (worker->conn->flush != 0) { /* woken */
        return await_flush(worker, request);
    }
    metric_add(&worker->metrics->cmd_flush, 1);
    if (worker->no_replica) {
        return dispatch_admin_refuse(worker, request, REPLY_SERVER_ERROR, "no replica");
    }
    if (!worker->settings->flush_all) {
        return dispatch_admin_refuse(worker, request, REPLY_CLIENT_ERROR, "flush_all not allowed");
    }
    dispatch_log_deed(worker, "flush_all");
    if (request->delay != 0) {
        return flush_later(worker, request);
    }
    worker->conn->flush = flush_ask(worker->server->flush, &ticket);
    return await_flush(worker, request);
}

static enum dispatch_end run_version(struct dispatch_worker *worker, const struct request *request)
{
    return dispatch_admin_say(worker, request, REPLY_VERSION, worker->settings->version_shown);
}

/* memcached's 0 is silent but for trouble. */
static enum dispatch_end run_verbosity(struct dispatch_worker *worker,
                                       const struct request *request)
{
    uint64_t level;
    size_t digits = 0;

    while (digits < request->value_length && request->value[digits] != ' ') {
        digits++;
    }
    if (digits == 0 || !num_parse(request->value, digits, &level)) {
        return dispatch_admin_refuse(worker, request, REPLY_ERROR, NULL);
    }
    uint64_t most = LOG_LEVEL_STATES - LOG_LEVEL_INFO;
    enum log_level shown = LOG_LEVEL_WARNING;
    if (level > 0) { /* as so many -v */
        shown = LOG_LEVEL_INFO + (enum log_level)(level < most ? level : most);
    }
    dispatch_log_deed(worker, "verbosity");
    log_setup(SERVER_NAME, shown);
    return dispatch_admin_say(worker, request, REPLY_OK, NULL);
}

static enum dispatch_end run_stats(struct dispatch_worker *worker, const struct request *request)
{
    return stats_answer(worker, request);
}

/* memcached says nothing and goes. */
static enum dispatch_end run_shutdown(struct dispatch_worker *worker, const struct request *request)
{
    if (!worker->settings->shutdown_command) {
        return dispatch_admin_refuse(worker, request, REPLY_ERROR, ": shutdown not enabled");
    }
    dispatch_log_deed(worker, "shutdown");
    net_stop(worker->server->net);
    return DISPATCH_CLOSE;
}

static enum dispatch_end run_noop(struct dispatch_worker *worker, const struct request *request)
{
    return dispatch_admin_say(worker, request, REPLY_NOOP, NULL);
}

static enum dispatch_end run_quit(struct dispatch_worker *worker, const struct request *request)
{
    dispatch_admin_say(worker, request, REPLY_QUIT, NULL);
    return DISPATCH_CLOSE;
}

static admin_fn *const admins[VERB_COUNT] = {
    [VERB_ERROR] = run_error,
    [VERB_FLUSH_ALL] = run_flush_all,
    [VERB_VERSION] = run_version,
    [VERB_VERBOSITY] = run_verbosity,
    [VERB_STATS] = run_stats,
    [VERB_SHUTDOWN] = run_shutdown,
    [VERB_NOOP] = run_noop,
    [VERB_QUIT] = run_quit,
    [VERB_SASL_LIST] = dispatch_run_sasl,
    [VERB_SASL] = dispatch_run_sasl,
};

enum dispatch_end dispatch_run_admin(struct dispatch_worker *worker, const struct request *request)
{
    return admins[request->verb](worker, request);
}
