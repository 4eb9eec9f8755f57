/* receiver_connect.c: a connection to the node that is followed: TLS, the login, the first line and
 * its answer. */
#include "repl/receiver_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/address.h"
#include "net/net.h"

#define SECOND_US    1000000u
#define LOGIN_MAX    512u /* bytes of the login */
#define FIRST_QUOTED 100  /* characters of a line that is none of ours */

/* ---- lines and bytes ---- */

void receiver_note_end(struct repl_receiver *receiver)
{
    const struct net_tls *tls = receiver->link.tls;
    const char *why = tls != NULL ? net_tls_refused(tls) : NULL;

    if (why != NULL) {
        receiver_trouble(receiver, "its certificate is refused: %s", why);
    } else if (tls != NULL && (!net_tls_established(tls) || net_tls_failed(tls))) {
        receiver_trouble(receiver, "the TLS handshake failed");
    } else if (!receiver->no_room) {
        receiver_trouble(receiver, "the connection ended");
    }
}

bool receiver_say(struct repl_receiver *receiver, const struct repl_line *line)
{
    char text[REPL_LINE_MAX];
    size_t length = repl_compose(line, text);

    if (!repl_link_write(&receiver->link, text, length, REPL_SILENCE_S)) {
        receiver_note_end(receiver);
        return false;
    }
    return true;
}

/* What no line of this protocol is: clients' errors are said in their words. */
static void receiver_note_foreign(struct repl_receiver *receiver, const char *text, size_t length,
                                  const char *error)
{
    char quoted[LOG_QUOTED_MAX];

    receiver_trouble(receiver, "it answers %s: %.80s",
                     log_quoted(text, length < FIRST_QUOTED ? length : FIRST_QUOTED, quoted),
                     error);
}

/* The next line's text; NULL: it is over. */
static const char *receiver_await_text(struct repl_receiver *receiver, unsigned silence_s,
                                       size_t *length)
{
    struct repl_link *link = &receiver->link;
    uint64_t until_us = clock_monotonic_us() + (uint64_t)silence_s * SECOND_US;
    const char *text;

    while ((text = repl_link_line(link, length)) == NULL) {
        size_t before = *length;

        if (before > REPL_LINE_MAX) {
            receiver_trouble(receiver, "it sent a line of more than %u bytes", REPL_LINE_MAX);
            return NULL;
        }
        if (!repl_link_fill(link)) {
            receiver_note_end(receiver);
            return NULL;
        }
        if (link->in_length > before) {
            continue;
        }
        if (clock_monotonic_us() >= until_us) {
            receiver_trouble(receiver, "it said nothing for %u s", silence_s);
            return NULL;
        }
        repl_link_wait(link, until_us);
    }
    return text;
}

bool receiver_await_line(struct repl_receiver *receiver, unsigned silence_s, struct repl_line *line)
{
    char error[REPL_TEXT_MAX + 1];
    size_t length;
    const char *text = receiver_await_text(receiver, silence_s, &length);

    if (text == NULL) {
        return false;
    }
    if (!repl_parse(REPL_OF_LEADER, text, length, line, error)) {
        receiver_note_foreign(receiver, text, length, error);
        return false;
    }
    return true;
}

bool receiver_await_bytes(struct repl_receiver *receiver, unsigned silence_s, void *to,
                          size_t length)
{
    struct repl_link *link = &receiver->link;
    char *at = to;
    uint64_t silence_us = (uint64_t)silence_s * SECOND_US;
    uint64_t until_us = clock_monotonic_us() + silence_us;

    while (length > 0) {
        ssize_t got = repl_link_bytes(link, at, length);

        if (got < 0) {
            receiver_note_end(receiver);
            return false;
        }
        at += got;
        length -= (size_t)got;
        uint64_t now_us = clock_monotonic_us();

        if (got > 0) {
            until_us = now_us + silence_us;
        } else if (now_us >= until_us) {
            receiver_trouble(receiver, "it said nothing for %u s", silence_s);
            return false;
        } else {
            repl_link_wait(link, until_us);
        }
    }
    return true;
}

enum receiver_next receiver_refused(struct repl_receiver *receiver, const struct repl_line *line)
{
    switch (line->kind) {
    case REPL_ERROR:
        receiver_trouble(receiver, "it says: %s", line->text);
        return RECEIVER_LATER;
    case REPL_BUSY:
        receiver->busy_s = line->seconds;
        receiver_trouble(receiver, "it is busy, and says to come again");
        return RECEIVER_BUSY;
    default:
        receiver_trouble(receiver, "it sent a line that does not belong there");
        return RECEIVER_LATER;
    }
}

/* ---- the connection ---- */

bool receiver_link(struct repl_receiver *receiver, int fd)
{
    pthread_mutex_lock(&receiver->lock);
    receiver->linked = repl_link_open(&receiver->link, fd, NULL, "", 0);
    if (receiver->linked && atomic_load(&receiver->stop)) {
        repl_link_wake(&receiver->link, true);
    }
    bool linked = receiver->linked;

    pthread_mutex_unlock(&receiver->lock);
    return linked;
}

void receiver_unlink(struct repl_receiver *receiver)
{
    pthread_mutex_lock(&receiver->lock);
    receiver->linked = false;
    repl_link_close(&receiver->link);
    pthread_mutex_unlock(&receiver->lock);
}

/* The handshake is part of the first write. False: no memory. */
static bool receiver_wrap(struct repl_receiver *receiver, const char *host)
{
    pthread_mutex_lock(&receiver->lock);
    struct net_tls_context *context =
        receiver->tls != NULL ? net_tls_context_share(receiver->tls) : NULL;

    pthread_mutex_unlock(&receiver->lock);
    if (context == NULL) {
        return true;
    }
    receiver->link.tls = net_tls_create_client(context, receiver->link.fd, host);
    net_tls_context_release(context);
    if (receiver->link.tls == NULL) {
        receiver_trouble(receiver, "there is no memory for TLS");
    }
    return receiver->link.tls != NULL;
}

/* False: there is none, and nothing is to be closed. */
static bool receiver_connect(struct repl_receiver *receiver)
{
    size_t prefix = strlen(NET_PLAIN_PREFIX);
    bool plain = strncmp(receiver->address, NET_PLAIN_PREFIX, prefix) == 0;
    const char *text = receiver->address + (plain ? prefix : 0);
    struct net_address_parts parts;

    if (!net_address_split(text, &parts)) {
        receiver_trouble(receiver, "this is no address");
        return false;
    }
    if (!receiver_dial(receiver, text, &parts)) {
        return false;
    }
    if (!parts.is_unix && !plain && !receiver_wrap(receiver, parts.host)) {
        receiver_unlink(receiver);
        return false;
    }
    return true;
}

/* ---- the login ---- */

/* Composes a login as any client's: a set of any key, whose data is the user. */
static size_t receiver_compose_login(struct repl_receiver *receiver, char text[LOGIN_MAX])
{
    int length = 0;

    pthread_mutex_lock(&receiver->lock);
    if (receiver->login != NULL) {
        length = snprintf(text, LOGIN_MAX, "set auth 0 0 %zu\r\n%s\r\n", strlen(receiver->login),
                          receiver->login);
    }
    pthread_mutex_unlock(&receiver->lock);
    return (size_t)length;
}

static bool receiver_log_in(struct repl_receiver *receiver)
{
    char text[LOGIN_MAX];
    size_t length = receiver_compose_login(receiver, text);

    if (length == 0) {
        return true;
    }
    bool said = repl_link_write(&receiver->link, text, length, REPL_SILENCE_S);

    explicit_bzero(text, sizeof(text));
    if (!said) {
        receiver_note_end(receiver);
        return false;
    }
    const char *answer = receiver_await_text(receiver, RECEIVER_ANSWER_S, &length);

    if (answer != NULL && (length != strlen("STORED") || memcmp(answer, "STORED", length) != 0)) {
        receiver_note_foreign(receiver, answer, length,
                              "the user of replication.credentials is not let in");
        return false;
    }
    return answer != NULL;
}

/* ---- follow ---- */

bool receiver_has_room(struct repl_receiver *receiver)
{
    char error[DATA_ERROR_MAX];
    bool has = data_has_room(receiver->data, true, error);

    if (!has) {
        receiver_trouble(receiver, "it cannot begin anew yet: %.200s", error);
    }
    return has;
}

enum receiver_next receiver_diverged(struct repl_receiver *receiver, uint64_t from, uint64_t lsn)
{
    receiver_trouble(receiver,
                     "it has other records than this node from LSN %llu to %llu: two have led at "
                     "one time; nothing more is taken: empty the data directory of the one that is "
                     "wrong",
                     (unsigned long long)from, (unsigned long long)lsn);
    receiver_set_state(receiver, REPL_RECEIVER_DIVERGED);
    return RECEIVER_OVER;
}

static enum receiver_next receiver_rewind(struct repl_receiver *receiver,
                                          const struct repl_line *line)
{
    const struct data_position *position = &receiver->position;

    if (line->lsn >= position->lsn) {
        receiver_trouble(receiver, "it says to go back to LSN %llu, and this node is at %llu",
                         (unsigned long long)line->lsn, (unsigned long long)position->lsn);
        return RECEIVER_LATER;
    }
    if (line->lsn > journal_written(receiver->journal)) {
        receiver_trouble(receiver, "what this node is to go back to is not written yet");
        return RECEIVER_LATER;
    }
    if (!receiver_has_room(receiver)) {
        return RECEIVER_LATER;
    }
    log_warning("following %s: its history and this node's part lsn=%llu epoch=%llu "
                "lost_bytes=%llu",
                receiver->address, (unsigned long long)line->lsn, (unsigned long long)line->epoch,
                (unsigned long long)(position->lsn - line->lsn));
    switch (data_can_rewind(receiver->data, line->lsn)) {
    case DATA_REWIND_PARTED:
        log_error("following %s: the nodes have diverged: no record ends here at that LSN",
                  receiver->address);
        return receiver_diverged(receiver, line->lsn, position->lsn);
    case DATA_REWIND_COPY:
        log_warning("following %s: what is stored here is newer than that, so a copy is fetched",
                    receiver->address);
        return receiver_copy(receiver);
    default:
        break;
    }
    atomic_fetch_add(&receiver->owner.counts->rewinds, 1);
    atomic_fetch_add(&receiver->owner.counts->lost_bytes, position->lsn - line->lsn);
    receiver_set_state(receiver, REPL_RECEIVER_REWINDING);
    receiver->owner.again(receiver->owner.context, line->lsn, false);
    return RECEIVER_OVER;
}

/* A follower that has nothing yet takes any stream. */
static bool receiver_agrees(struct repl_receiver *receiver, const struct repl_line *line)
{
    struct data_position *position = &receiver->position;
    bool nothing = (position->stream[0] | position->stream[1]) == 0;
    char error[DATA_ERROR_MAX];

    if (line->lsn != position->lsn ||
        (!nothing && memcmp(line->stream, position->stream, sizeof(line->stream)) != 0)) {
        receiver_trouble(receiver, "it streams what was not asked for");
        return false;
    }
    if (nothing && !data_take_stream(receiver->data, line->stream, error)) {
        receiver_trouble(receiver, "%.240s", error);
        return false;
    }
    memcpy(position->stream, line->stream, sizeof(position->stream));
    pthread_mutex_lock(&receiver->lock);
    memcpy(receiver->figures.stream, line->stream, sizeof(receiver->figures.stream));
    pthread_mutex_unlock(&receiver->lock);
    return true;
}

static enum receiver_next receiver_begin_stream(struct repl_receiver *receiver,
                                                const struct repl_line *line, uint64_t *lasted_us)
{
    if (!receiver_agrees(receiver, line)) {
        return RECEIVER_LATER;
    }
    uint64_t began_us = clock_monotonic_us();
    enum receiver_next next = receiver_stream(receiver, line->lsn, line->epoch);

    *lasted_us = clock_monotonic_us() - began_us;
    return next;
}

static enum receiver_next receiver_follow(struct repl_receiver *receiver, uint64_t *lasted_us)
{
    struct data_position *position = &receiver->position;
    struct repl_line line = {.kind = REPL_FOLLOW};

    data_position(receiver->data, position);
    memcpy(line.stream, position->stream, sizeof(line.stream));
    memcpy(line.group, receiver->group, sizeof(line.group));
    memcpy(line.name, receiver->name, sizeof(line.name));
    line.epoch = position->epoch;
    line.lsn = position->lsn;
    if (!receiver_say(receiver, &line) ||
        !receiver_await_line(receiver, RECEIVER_ANSWER_S, &line)) {
        return RECEIVER_LATER;
    }
    switch (line.kind) {
    case REPL_STREAM:
        return receiver_begin_stream(receiver, &line, lasted_us);
    case REPL_REWIND:
        return receiver_rewind(receiver, &line);
    case REPL_COPY:
        log_info("following %s: a copy is needed reason=\"%s\"", receiver->address, line.text);
        return receiver_copy(receiver);
    default:
        return receiver_refused(receiver, &line);
    }
}

enum receiver_next receiver_converse(struct repl_receiver *receiver, uint64_t *lasted_us)
{
    if (!receiver_connect(receiver)) {
        return RECEIVER_LATER;
    }
    enum receiver_next next =
        receiver_log_in(receiver) ? receiver_follow(receiver, lasted_us) : RECEIVER_LATER;

    receiver_unlink(receiver);
    return next;
}
