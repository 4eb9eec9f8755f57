/* receiver.c: the thread that follows: one connection after another, and what it says of itself. */
#include "repl/receiver_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/wait.h"

#define SECOND_US      1000000u
#define PAUSE_FIRST_US 200000u /* after the first failure: the longest */
#define PAUSE_MAX_US   (30u * SECOND_US)
#define LASTED_US      (10u * SECOND_US) /* of a stream: then the next failure is a first one */
#define LEVEL_US       SECOND_US         /* level no longer ago: it streams */

static const char *const state_words[] = {
    [REPL_RECEIVER_CONNECTING] = "follower-connecting",
    [REPL_RECEIVER_COPYING] = "follower-copying",
    [REPL_RECEIVER_BEHIND] = "follower-behind",
    [REPL_RECEIVER_STREAMING] = "follower-streaming",
    [REPL_RECEIVER_REWINDING] = "follower-rewinding",
    [REPL_RECEIVER_DIVERGED] = "diverged",
};

const char *repl_receiver_state_word(enum repl_receiver_state state)
{
    CHECK(state < REPL_RECEIVER_STATES);
    return state_words[state];
}

struct repl_receiver *repl_receiver_create(const struct settings *settings, struct data *data,
                                           const struct repl_receiver_owner *owner)
{
    if (settings->replication.follow == NULL) {
        return NULL;
    }
    struct repl_receiver *receiver = memory_zalloc(sizeof(*receiver));

    receiver->data = data;
    receiver->journal = data_journal(data);
    receiver->vfs = data_vfs(data);
    receiver->directory = memory_strdup(settings->data);
    receiver->address =
        memory_strdup(settings_follows_agent(settings) ? "" : settings->replication.follow);
    receiver->owner = *owner;
    if (owner->counts == NULL) {
        receiver->owner.counts = &receiver->own_counts;
    }
    snprintf(receiver->name, sizeof(receiver->name), "%s", settings->replication.name);
    snprintf(receiver->group, sizeof(receiver->group), "%s", settings->replication.group);
    CHECK(pthread_mutex_init(&receiver->lock, NULL) == 0);
    thread_cond_init(&receiver->stopped);
    repl_receiver_reconfigure(receiver, settings);
    snprintf(receiver->figures.leader, sizeof(receiver->figures.leader), "%s", receiver->address);
    data_position(data, &receiver->position);
    memcpy(receiver->figures.stream, receiver->position.stream, sizeof(receiver->figures.stream));
    receiver->figures.epoch = receiver->position.epoch;
    return receiver;
}

static void receiver_wipe_login(struct repl_receiver *receiver)
{
    if (receiver->login != NULL) {
        explicit_bzero(receiver->login, strlen(receiver->login));
        free(receiver->login);
        receiver->login = NULL;
    }
}

void repl_receiver_reconfigure(struct repl_receiver *receiver, const struct settings *settings)
{
    if (receiver == NULL) {
        return;
    }
    atomic_store(&receiver->stale_after_us,
                 (uint64_t)settings->replication.stale_after_s * SECOND_US);
    pthread_mutex_lock(&receiver->lock);
    receiver_wipe_login(receiver);
    if (settings->replication.login != NULL) {
        receiver->login = memory_strdup(settings->replication.login);
    }
    net_tls_context_release(receiver->tls);
    receiver->tls =
        settings->tls.context != NULL ? net_tls_context_share(settings->tls.context) : NULL;
    pthread_mutex_unlock(&receiver->lock);
}

void repl_receiver_redirect(struct repl_receiver *receiver, const char *address)
{
    CHECK(!receiver->started);
    free(receiver->address);
    receiver->address = memory_strdup(address);
    receiver->logged[0] = '\0';
    pthread_mutex_lock(&receiver->lock);
    snprintf(receiver->figures.leader, sizeof(receiver->figures.leader), "%s", address);
    receiver->figures.leader_written = 0;
    receiver->figures.trouble[0] = '\0';
    pthread_mutex_unlock(&receiver->lock);
}

bool repl_receiver_has_leader(const struct repl_receiver *receiver)
{
    return receiver->address[0] != '\0';
}

void repl_receiver_stop(struct repl_receiver *receiver)
{
    if (receiver == NULL || !receiver->started) {
        return;
    }
    atomic_store(&receiver->stop, true);
    pthread_mutex_lock(&receiver->lock);
    if (receiver->linked) {
        repl_link_wake(&receiver->link, true);
    }
    pthread_cond_signal(&receiver->stopped);
    pthread_mutex_unlock(&receiver->lock);
    CHECK(pthread_join(receiver->thread, NULL) == 0);
    receiver->started = false;
}

void repl_receiver_destroy(struct repl_receiver *receiver)
{
    if (receiver == NULL) {
        return;
    }
    CHECK(!receiver->started);
    receiver_wipe_login(receiver);
    repl_lookup_drop(receiver->lookup);
    net_tls_context_release(receiver->tls);
    pthread_cond_destroy(&receiver->stopped);
    pthread_mutex_destroy(&receiver->lock);
    free(receiver->directory);
    free(receiver->address);
    free(receiver);
}

void repl_receiver_moved(struct repl_receiver *receiver)
{
    if (receiver == NULL || !atomic_load(&receiver->sleeps) ||
        !atomic_exchange(&receiver->sleeps, false)) {
        return;
    }
    pthread_mutex_lock(&receiver->lock);
    if (receiver->linked) {
        repl_link_wake(&receiver->link, false);
    }
    pthread_mutex_unlock(&receiver->lock);
}

/* ---- what it says of itself ---- */

void receiver_set_state(struct repl_receiver *receiver, enum repl_receiver_state state)
{
    pthread_mutex_lock(&receiver->lock);
    receiver->figures.state = state;
    pthread_mutex_unlock(&receiver->lock);
}

void receiver_trouble(struct repl_receiver *receiver, const char *format, ...)
{
    char text[REPL_TEXT_MAX + 1];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (atomic_load(&receiver->stop)) {
        return; /* whatever ended: it was to */
    }
    if (strcmp(text, receiver->logged) != 0) {
        log_warning("following %s: %s", receiver->address, text);
        memcpy(receiver->logged, text, sizeof(text));
    }
    pthread_mutex_lock(&receiver->lock);
    memcpy(receiver->figures.trouble, text, sizeof(text));
    pthread_mutex_unlock(&receiver->lock);
}

void receiver_no_trouble(struct repl_receiver *receiver)
{
    receiver->logged[0] = '\0';
    pthread_mutex_lock(&receiver->lock);
    receiver->figures.trouble[0] = '\0';
    pthread_mutex_unlock(&receiver->lock);
}

bool repl_receiver_is_stale(const struct repl_receiver *receiver)
{
    uint64_t after_us = receiver != NULL ? atomic_load(&receiver->stale_after_us) : 0;

    if (after_us == 0) {
        return false;
    }
    uint64_t level_us = atomic_load(&receiver->level_us); /* first: it may pass now */
    return level_us == 0 || clock_monotonic_us() > level_us + after_us;
}

/* Under the lock. */
static uint64_t receiver_lag_us(const struct repl_receiver *receiver, uint64_t applied,
                                uint64_t level_us, uint64_t now_us)
{
    if (receiver->figures.state != REPL_RECEIVER_STREAMING) {
        return level_us > 0 && now_us > level_us ? now_us - level_us : 0;
    }
    for (size_t i = 0; i < receiver->sample_count; i++) {
        const struct receiver_sample *sample =
            &receiver->samples[(receiver->sample_first + i) % RECEIVER_SAMPLES];

        if (sample->written > applied) {
            return now_us > sample->us ? now_us - sample->us : 0;
        }
    }
    return 0;
}

void repl_receiver_stats(struct repl_receiver *receiver, struct repl_receiver_stats *stats)
{
    uint64_t applied = data_applied(receiver->data);
    uint64_t durable = journal_durable(receiver->journal);
    uint64_t written = journal_written(receiver->journal); /* last: above both */

    pthread_mutex_lock(&receiver->lock);
    uint64_t level_us = atomic_load(&receiver->level_us);
    uint64_t now_us = clock_monotonic_us(); /* after all that is in the samples */

    *stats = receiver->figures;
    stats->lag_us = receiver_lag_us(receiver, applied, level_us, now_us);
    stats->caught_up = level_us > 0;
    stats->full = receiver->no_room;
    pthread_mutex_unlock(&receiver->lock);
    stats->copies = atomic_load(&receiver->owner.counts->copies);
    stats->rewinds = atomic_load(&receiver->owner.counts->rewinds);
    stats->lost_bytes = atomic_load(&receiver->owner.counts->lost_bytes);
    stats->written = written;
    stats->durable = durable;
    stats->applied = applied;
    stats->lag_bytes = stats->leader_written > applied ? stats->leader_written - applied : 0;
    if (stats->state == REPL_RECEIVER_STREAMING &&
        (level_us == 0 || now_us > level_us + LEVEL_US)) {
        stats->state = REPL_RECEIVER_BEHIND;
    }
}

/* ---- the thread ---- */

uint64_t receiver_pause_us(unsigned failures)
{
    uint64_t pause_us = PAUSE_FIRST_US;

    while (failures-- > 1 && pause_us < PAUSE_MAX_US) {
        pause_us *= 2;
    }
    return pause_us < PAUSE_MAX_US ? pause_us : PAUSE_MAX_US;
}

/* Until it is stopped, or so long. */
static void receiver_rest(struct repl_receiver *receiver, uint64_t us)
{
    uint64_t until_us = clock_monotonic_us() + us;

    pthread_mutex_lock(&receiver->lock);
    while (!atomic_load(&receiver->stop) &&
           wait_until(&receiver->stopped, &receiver->lock, until_us)) {
    }
    pthread_mutex_unlock(&receiver->lock);
}

/* Draws all of the pause by lot, so that followers that lost the same node do not come back in
 * step. */
static uint64_t receiver_draw_us(uint64_t most_us)
{
    return clock_random() % (most_us + 1);
}

static void *receiver_main(void *context)
{
    struct repl_receiver *receiver = context;
    unsigned failures = 0;

    while (!atomic_load(&receiver->stop)) {
        uint64_t lasted_us = 0;
        enum receiver_next next = receiver_converse(receiver, &lasted_us);

        if (next == RECEIVER_OVER) {
            break;
        }
        failures = next == RECEIVER_SOON || lasted_us >= LASTED_US ? 1 : failures + 1;
        receiver_set_state(receiver, REPL_RECEIVER_CONNECTING);
        receiver_rest(receiver, next == RECEIVER_BUSY
                                    ? receiver->busy_s * SECOND_US +
                                          receiver_draw_us((receiver->busy_s + 1) * SECOND_US)
                                    : receiver_draw_us(receiver_pause_us(failures)));
    }
    return NULL;
}

bool repl_receiver_start(struct repl_receiver *receiver)
{
    if (receiver != NULL && !receiver->started) {
        atomic_store(&receiver->stop, false);
        receiver->started = thread_start(&receiver->thread, receiver_main, receiver, "receiver");
        return receiver->started;
    }
    return true;
}
