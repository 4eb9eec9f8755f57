#include "daemon/lead.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/follow.h"
#include "repl/control.h"
#include "repl/feed.h"
#include "repl/receiver.h"

#define CATCH_UP_US 2000000u /* below what an operator's tool waits */

struct lead {
    struct server *server;
    struct data *data;
    struct lead_owner owner;
    struct repl_receiver *receiver; /* NULL: it began as a leader */
    struct repl_control control;
    pthread_mutex_t lock; /* one change at a time */
    bool leaves;          /* it begins anew: no further change */
    char *next;           /* whom it is to follow then; NULL: nobody said */
};

__attribute__((format(printf, 2, 3))) static bool lead_refuse(char why[REPL_TEXT_MAX + 1],
                                                              const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why, REPL_TEXT_MAX + 1, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- the receiver ---- */

static void lead_again(void *context, uint64_t cut_lsn, bool copied)
{
    struct lead *lead = context;

    log_info("beginning anew: %s", copied ? "a copy of the leader's data has come"
                                          : "the journal is cut where the leader's leaves it");
    lead->owner.again(lead->owner.context, cut_lsn, NULL);
}

static void lead_moved(void *context)
{
    const struct server *server = context;

    repl_receiver_moved(server->receiver);
}

/* ---- promote ---- */

static uint64_t lead_epoch(struct lead *lead)
{
    struct manifest_reign *reigns = memory_zalloc(MANIFEST_HISTORY_MAX * sizeof(*reigns));
    uint64_t stream[MANIFEST_STREAM_WORDS];
    size_t count = data_history(lead->data, stream, reigns);
    uint64_t epoch = count > 0 ? reigns[count - 1].epoch : 0;

    free(reigns);
    return epoch;
}

/* What the leader has and this node has not, as far as is known. */
static bool lead_may_lose(struct lead *lead, bool force, char why[REPL_TEXT_MAX + 1])
{
    struct repl_receiver_stats stats;

    repl_receiver_stats(lead->receiver, &stats);
    uint64_t lost = stats.leader_written > stats.written ? stats.leader_written - stats.written : 0;

    if (force || (stats.leader_written > 0 && lost == 0)) {
        return true;
    }
    if (stats.leader_written == 0) {
        return lead_refuse(why,
                           "since it began this node has not heard how far the leader is: what "
                           "would be lost is not known; `force` promotes it all the same");
    }
    return lead_refuse(
        why,
        "%llu bytes of the leader's journal are not here, about %llu changes; `force` "
        "promotes it all the same, and they are lost",
        (unsigned long long)lost, (unsigned long long)(lost / REPL_CHANGE_BYTES));
}

static void lead_serve(struct lead *lead)
{
    barrier_stop(lead->server->barrier);
    lead->server->follows = false;
    barrier_go(lead->server->barrier);
}

/* Promotes the node: from here on changes are taken. False, with `why`: it was refused. */
static bool lead_take_over(struct lead *lead, uint64_t epoch, char why[REPL_TEXT_MAX + 1])
{
    char error[DATA_ERROR_MAX];

    repl_receiver_stop(lead->receiver);
    switch (data_promote(lead->data, epoch, clock_monotonic_us() + CATCH_UP_US, error)) {
    case DATA_PROMOTED:
        lead_serve(lead);
        return true;
    case DATA_PROMOTE_REFUSED:
        lead_refuse(why, "%.*s", (int)REPL_TEXT_MAX, error);
        if (repl_receiver_start(lead->receiver)) {
            return false;
        }
        break;
    default:
        lead_refuse(why, "%.*s", (int)REPL_TEXT_MAX, error);
        break;
    }
    log_error("promotion failed: %s", error);
    lead->leaves = true;
    lead->owner.fail(lead->owner.context);
    return false;
}

/* Under the lock. */
static bool lead_promote_now(struct lead *lead, bool force, uint64_t *epoch, uint64_t *lsn,
                             char why[REPL_TEXT_MAX + 1])
{
    uint64_t present = lead_epoch(lead);

    if (lead->leaves) {
        return lead_refuse(why, "this node begins anew: try again");
    }
    if (!lead->server->follows) {
        return lead_refuse(why, "this node leads already, in epoch %llu",
                           (unsigned long long)present);
    }
    if (*epoch != 0 && *epoch <= present) {
        return lead_refuse(why, "epoch %llu is not above that of the journal, %llu",
                           (unsigned long long)*epoch, (unsigned long long)present);
    }
    if (!lead_may_lose(lead, force, why) || !lead_take_over(lead, *epoch, why)) {
        return false;
    }
    *epoch = lead_epoch(lead);
    *lsn = data_reign_lsn(lead->data);
    log_warning("this node leads, until it is restarted: take replication.follow out of its "
                "configuration epoch=%llu lsn=%llu",
                (unsigned long long)*epoch, (unsigned long long)*lsn);
    return true;
}

static bool lead_promote(void *context, bool force, uint64_t *epoch, uint64_t *lsn,
                         char why[REPL_TEXT_MAX + 1])
{
    struct lead *lead = context;

    pthread_mutex_lock(&lead->lock);
    bool promoted = lead_promote_now(lead, force, epoch, lsn, why);

    pthread_mutex_unlock(&lead->lock);
    return promoted;
}

/* ---- follow-to ---- */

static bool lead_is_address(const char *address)
{
    const char *colon = strrchr(address, ':');

    return address[0] == '/' || (colon != NULL && colon != address && colon[1] != '\0');
}

/* Under the lock. */
static bool lead_follow_now(struct lead *lead, const char *address, bool force,
                            char why[REPL_TEXT_MAX + 1])
{
    if (lead->leaves) {
        return lead_refuse(why, "this node begins anew: try again");
    }
    if (!lead_is_address(address)) {
        return lead_refuse(why, "%.128s is no HOST:PORT, nor the path of a socket", address);
    }
    if (!lead->server->follows && !force) {
        return lead_refuse(why,
                           "this node leads: what of its journal %.128s has not is lost, and "
                           "clients must write there; `force` has it follow all the same",
                           address);
    }
    lead->leaves = true;
    free(lead->next);
    lead->next = memory_strdup(address);
    log_warning("this node is to follow %s until it is restarted: put that into its "
                "configuration, as replication.follow",
                address);
    return true;
}

static bool lead_follow(void *context, const char *address, bool force, char why[REPL_TEXT_MAX + 1])
{
    struct lead *lead = context;

    pthread_mutex_lock(&lead->lock);
    bool follows = lead_follow_now(lead, address, force, why);

    pthread_mutex_unlock(&lead->lock);
    return follows;
}

static void lead_leave(void *context)
{
    struct lead *lead = context;

    lead->owner.again(lead->owner.context, 0, lead->next);
}

/* ---- its life ---- */

struct lead *lead_create(struct server *server, struct data *data, const struct lead_owner *owner)
{
    struct lead *lead = memory_zalloc(sizeof(*lead));
    const struct repl_receiver_owner receiver = {
        .context = lead, .counts = owner->counts, .again = lead_again};

    CHECK(pthread_mutex_init(&lead->lock, NULL) == 0);
    lead->server = server;
    lead->data = data;
    lead->owner = *owner;
    lead->control = (struct repl_control){
        .context = lead, .promote = lead_promote, .follow = lead_follow, .again = lead_leave};
    repl_feeds_control(server->feeds, &lead->control);
    lead->receiver = repl_receiver_create(server->settings, data, &receiver);
    server->receiver = lead->receiver;
    return lead;
}

bool lead_begin(struct lead *lead)
{
    struct server *server = lead->server;

    return !server->follows ||
           (data_follow(lead->data, server->barrier, &server->spaces, lead_moved, server) &&
            repl_receiver_start(lead->receiver));
}

void lead_end(struct lead *lead)
{
    if (lead != NULL) {
        repl_receiver_stop(lead->receiver);
    }
}

void lead_destroy(struct lead *lead)
{
    if (lead == NULL) {
        return;
    }
    repl_receiver_destroy(lead->receiver);
    pthread_mutex_destroy(&lead->lock);
    free(lead->next);
    free(lead);
}
