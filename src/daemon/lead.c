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
#include "space/populate.h"

#define CATCH_UP_US 2000000u /* below what an operator's tool waits */

/* Why no further change is made. */
static const char begins_anew[] = "this node begins anew: try again";
static const char ends[] = "this node ends";

struct lead {
    struct server *server;
    struct data *data;
    struct lead_owner owner;
    struct repl_receiver *receiver; /* NULL: it began as a leader */
    struct repl_control control;
    pthread_mutex_t lock; /* one change at a time */
    const char *leaves;   /* one of the above; NULL: it stays */
    bool led;             /* as it leaves */
    _Atomic bool anew;    /* the receiver has ended as the daemon begins anew: no further change */
    char *next;           /* the node it is to follow then; NULL: nobody said */
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
    atomic_store(&lead->anew, true);
    lead->owner.again(lead->owner.context, cut_lsn, NULL, false);
}

/* What is made resident now would be given back when the copy has come; the processor is the
 * copy's. */
static void lead_copies(void *context)
{
    const struct lead *lead = context;

    populate_stop(lead->server->populate);
    populate_go(lead->server->populate, NULL);
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

/* A copy that broke has left memory that is not resident, and none is to come any more. */
static void lead_serve(struct lead *lead)
{
    struct server *server = lead->server;

    barrier_stop(server->barrier);
    server->follows = false;
    server->promoted_us = clock_boot_us();
    server_set_leader(server, ""); /* what is said while it is fenced */
    barrier_go(server->barrier);
    populate_stop(server->populate);
    populate_go(server->populate, server->spaces);
}

/* Has the node go on receiving from the one it follows, if it follows one. */
static bool lead_receive(struct lead *lead)
{
    return !repl_receiver_has_leader(lead->receiver) || repl_receiver_start(lead->receiver);
}

/* It neither leads nor follows: the daemon ends, and whoever starts it again has it try anew. */
static bool lead_give_up(struct lead *lead, const char *what, const char *error)
{
    log_error("%s failed: %s", what, error);
    lead->leaves = ends;
    lead->owner.fail(lead->owner.context);
    return false;
}

/* Promotes the node: from here on changes are taken. False, with `why`: it was refused. */
static bool lead_take_over(struct lead *lead, const struct repl_promotion *promotion,
                           char why[REPL_TEXT_MAX + 1])
{
    char error[DATA_ERROR_MAX];

    repl_receiver_stop(lead->receiver);
    if (atomic_load(&lead->anew)) {
        return lead_refuse(why, "%s", begins_anew);
    }
    switch (data_promote(lead->data, promotion->epoch, promotion->new_stream,
                         clock_monotonic_us() + CATCH_UP_US, error)) {
    case DATA_PROMOTED:
        lead_serve(lead);
        return true;
    case DATA_PROMOTE_REFUSED:
        lead_refuse(why, "%.*s", (int)REPL_TEXT_MAX, error);
        if (lead_receive(lead)) {
            return false;
        }
        break;
    default:
        lead_refuse(why, "%.*s", (int)REPL_TEXT_MAX, error);
        break;
    }
    return lead_give_up(lead, "promotion", error);
}

/* While nobody follows, who would take the new stream for the old one. */
static bool lead_part(struct lead *lead, const struct repl_promotion *promotion,
                      char why[REPL_TEXT_MAX + 1])
{
    char name[REPL_NAME_MAX + 1];

    if (lead->server->leased) {
        return lead_refuse(why,
                           "an agent decides whom this node follows (replication.follow: "
                           "agent): a new stream is for one that is told by its configuration");
    }
    if (!repl_feeds_shut(lead->server->feeds, name)) {
        return lead_refuse(why,
                           "%s follows this node, and cannot follow a new stream: have it follow "
                           "another node first",
                           name);
    }
    return lead_take_over(lead, promotion, why);
}

/* Under the lock. */
static bool lead_promote_now(struct lead *lead, struct repl_promotion *promotion,
                             char why[REPL_TEXT_MAX + 1])
{
    uint64_t present = lead_epoch(lead);

    if (lead->leaves != NULL) {
        return lead_refuse(why, "%s", lead->leaves);
    }
    if (!lead->server->follows) {
        return lead_refuse(why, "this node leads already, in epoch %llu",
                           (unsigned long long)present);
    }
    if (promotion->epoch != 0 && promotion->epoch <= present) {
        return lead_refuse(why, "epoch %llu is not above that of the journal, %llu",
                           (unsigned long long)promotion->epoch, (unsigned long long)present);
    }
    bool leads = lead_may_lose(lead, promotion->force, why) &&
                 (promotion->new_stream ? lead_part : lead_take_over)(lead, promotion, why);

    repl_feeds_open(lead->server->feeds);
    if (!leads) {
        return false;
    }
    promotion->epoch = lead_epoch(lead);
    promotion->lsn = data_reign_lsn(lead->data);
    if (lead->server->leased) {
        log_info("this node leads, as long as its agent says so epoch=%llu lsn=%llu",
                 (unsigned long long)promotion->epoch, (unsigned long long)promotion->lsn);
        return true;
    }
    log_warning("this node leads, until it is restarted: take replication.follow out of its "
                "configuration epoch=%llu lsn=%llu stream=%s",
                (unsigned long long)promotion->epoch, (unsigned long long)promotion->lsn,
                promotion->new_stream ? "new" : "as before");
    return true;
}

static bool lead_promote(void *context, struct repl_promotion *promotion,
                         char why[REPL_TEXT_MAX + 1])
{
    struct lead *lead = context;

    pthread_mutex_lock(&lead->lock);
    bool promoted = lead_promote_now(lead, promotion, why);

    pthread_mutex_unlock(&lead->lock);
    return promoted;
}

/* ---- follow-to ---- */

static bool lead_is_address(const char *address)
{
    const char *colon = strrchr(address, ':');

    return address[0] == '/' || (colon != NULL && colon != address && colon[1] != '\0');
}

/* Turns a node that follows already to another node, or to none. */
static bool lead_turn_to(struct lead *lead, const char *address, char why[REPL_TEXT_MAX + 1])
{
    repl_receiver_stop(lead->receiver);
    if (atomic_load(&lead->anew)) {
        return lead_refuse(why, "%s", begins_anew);
    }
    repl_receiver_redirect(lead->receiver, address);
    barrier_stop(lead->server->barrier);
    server_set_leader(lead->server, address);
    barrier_go(lead->server->barrier);
    log_info("its agent has it follow %s", address[0] != '\0' ? address : "nobody");
    if (lead_receive(lead)) {
        return true;
    }
    lead_refuse(why, "no thread can be had to follow it");
    return lead_give_up(lead, "follow-to", "no thread can be had");
}

/* Under the lock. address "": nobody. *again: the daemon has to begin anew for it. */
static bool lead_follow_now(struct lead *lead, const char *address, bool force, bool *again,
                            char why[REPL_TEXT_MAX + 1])
{
    bool leads = !lead->server->follows;
    bool leased = lead->server->leased;
    char error[DATA_ERROR_MAX];

    if (lead->leaves != NULL) {
        return lead_refuse(why, "%s", lead->leaves);
    }
    if (!(leased && address[0] == '\0') && !lead_is_address(address)) {
        return lead_refuse(why, "%.128s is no HOST:PORT, nor the path of a socket", address);
    }
    if (leads && !force) {
        return lead_refuse(why,
                           "this node leads: what of its journal %.128s has not is lost, and "
                           "clients must write there; `force` has it follow all the same",
                           address[0] != '\0' ? address : "another");
    }
    if (leased && !leads) {
        return lead_turn_to(lead, address, why);
    }
    if (!data_has_room(lead->data, true, error)) {
        return lead_refuse(why, "it cannot begin anew: %.200s", error);
    }
    *again = true;
    lead->leaves = begins_anew;
    lead->led = leads;
    if (leased) {
        log_info("its agent has it lead no more");
        return true;
    }
    free(lead->next);
    lead->next = memory_strdup(address);
    log_warning("this node is to follow %s until it is restarted: put that into its "
                "configuration, as replication.follow",
                address);
    return true;
}

static bool lead_follow(void *context, const char *address, bool force, bool *again,
                        char why[REPL_TEXT_MAX + 1])
{
    struct lead *lead = context;

    pthread_mutex_lock(&lead->lock);
    bool follows =
        lead_follow_now(lead, strcmp(address, "-") == 0 ? "" : address, force, again, why);

    pthread_mutex_unlock(&lead->lock);
    return follows;
}

static void lead_leave(void *context)
{
    struct lead *lead = context;

    lead->owner.again(lead->owner.context, 0, lead->next, lead->led);
}

/* ---- lead ---- */

/* Under the lock. */
static bool lead_may_hold(struct lead *lead, uint64_t epoch, uint64_t until_ms,
                          char why[REPL_TEXT_MAX + 1])
{
    uint64_t present = lead_epoch(lead);

    if (!lead->server->leased) {
        return lead_refuse(why, "this node asks no agent: its configuration has no "
                                "replication.follow: agent");
    }
    if (lead->leaves != NULL) {
        return lead_refuse(why, "%s", lead->leaves);
    }
    if (lead->server->follows) {
        return lead_refuse(why, "this node follows: promote it first");
    }
    if (epoch != present) {
        return lead_refuse(why, "this node leads in epoch %llu, not %llu",
                           (unsigned long long)present, (unsigned long long)epoch);
    }
    if (until_ms * 1000 < atomic_load(&lead->server->lease_us)) {
        return lead_refuse(why, "that is an older word than the last one");
    }
    if (until_ms > clock_boot_us() / 1000 + REPL_LEASE_MS_MAX) {
        return lead_refuse(why,
                           "%llu is more than %u s from now: it is to be CLOCK_BOOTTIME, in "
                           "milliseconds",
                           (unsigned long long)until_ms, REPL_LEASE_MS_MAX / 1000);
    }
    return true;
}

/* The followers it waits for come first: nothing is answered for a new lease by an old rule. */
static bool lead_hold(void *context, uint64_t epoch, uint64_t until_ms,
                      const struct repl_waits *waits, uint64_t *written,
                      uint64_t acked[REPL_WAITS_MAX], char why[REPL_TEXT_MAX + 1])
{
    struct lead *lead = context;
    struct server *server = lead->server;

    pthread_mutex_lock(&lead->lock);
    bool may = lead_may_hold(lead, epoch, until_ms, why);

    if (may) {
        bool fenced = server_is_fenced(server);

        repl_feeds_wait_for(server->feeds, waits);
        atomic_store(&server->lease_us, until_ms * 1000);
        *written = journal_written(server->journal); /* after it waits */
        for (size_t i = 0; i < waits->count; i++) {
            acked[i] = repl_feeds_acked_by(server->feeds, i);
        }
        if (fenced && !server_is_fenced(server)) {
            log_info("this node takes changes, by its agent's word epoch=%llu",
                     (unsigned long long)epoch);
        }
    }
    pthread_mutex_unlock(&lead->lock);
    return may;
}

/* ---- its life ---- */

struct lead *lead_create(struct server *server, struct data *data, const struct lead_owner *owner)
{
    struct lead *lead = memory_zalloc(sizeof(*lead));
    const struct repl_receiver_owner receiver = {
        .context = lead, .counts = owner->counts, .again = lead_again, .copies = lead_copies};

    CHECK(pthread_mutex_init(&lead->lock, NULL) == 0);
    lead->server = server;
    lead->data = data;
    lead->owner = *owner;
    lead->control = (struct repl_control){.context = lead,
                                          .promote = lead_promote,
                                          .follow = lead_follow,
                                          .lead = lead_hold,
                                          .again = lead_leave};
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
            lead_receive(lead));
}

void lead_end(struct lead *lead)
{
    if (lead == NULL) {
        return;
    }
    pthread_mutex_lock(&lead->lock); /* a change that is under way ends before */
    if (lead->leaves == NULL) {
        lead->leaves = atomic_load(&lead->anew) ? begins_anew : ends;
    }
    repl_receiver_stop(lead->receiver);
    pthread_mutex_unlock(&lead->lock);
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
