/*
 * receiver_stream.c: records into the journal as they come, and word of how far they are.
 *
 * One thread does both: it never waits for the disk but inside data_take. When that has no room, or
 * a sum covers what is not written yet, it stops reading, goes on saying how far it is, and tries
 * again: nothing is held here but the one D that is being taken.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "repl/receiver_private.h"

#define TICK_US        (REPL_TICK_MS * 1000u)
#define SILENCE_US     (REPL_SILENCE_S * 1000000u)
#define APPLIED_US     5000u /* between two words of nothing but what is applied */
#define AGAIN_FIRST_US 1000u /* after which is tried again what had no room; doubled each time */
#define AGAIN_MAX_US   100000u

/* What is said: of these none ever falls. */
struct progress {
    uint64_t written, durable, applied;
};

struct reception {
    struct repl_receiver *receiver;
    uint64_t begin; /* where the stream began */
    uint64_t lsn;   /* the end of what was taken */
    char *bytes;    /* REPL_DATA_MAX: of the present D */
    size_t length, come, taken;
    struct repl_line sum; /* a V that waits */
    bool sum_waits;
    uint64_t again_us, pause_us; /* when what had no room is tried again; 0: nothing had none */
    struct progress said;
    uint64_t said_us; /* 0: nothing was */
    uint64_t now_us;
    enum receiver_next next; /* when it is over */
};

static bool reception_end(struct reception *reception, enum receiver_next next)
{
    reception->next = next;
    return false;
}

/* ---- what it says ---- */

static uint64_t lesser(uint64_t left, uint64_t right)
{
    return left < right ? left : right;
}

static uint64_t greater(uint64_t left, uint64_t right)
{
    return left > right ? left : right;
}

/* `written` last: it is above the others. */
static struct progress reception_look(const struct reception *reception)
{
    const struct repl_receiver *receiver = reception->receiver;
    const struct progress *said = &reception->said;
    uint64_t durable = journal_durable(receiver->journal);
    uint64_t applied = data_applied(receiver->data);
    uint64_t written = greater(journal_written(receiver->journal), said->written);

    return (struct progress){written, greater(lesser(durable, written), said->durable),
                             greater(lesser(applied, written), said->applied)};
}

/* Returns when the next word is due, if this is how far the node is. */
static uint64_t reception_due(const struct reception *reception, const struct progress *now)
{
    const struct progress *said = &reception->said;

    if (reception->said_us == 0 || now->written != said->written || now->durable != said->durable) {
        return 0;
    }
    return reception->said_us + (now->applied != said->applied ? APPLIED_US : TICK_US);
}

/* The oldest sample that is not applied is the first again. */
static void reception_note(struct reception *reception, uint64_t applied)
{
    struct repl_receiver *receiver = reception->receiver;

    pthread_mutex_lock(&receiver->lock);
    while (receiver->sample_count > 0 &&
           receiver->samples[receiver->sample_first].written <= applied) {
        atomic_store(&receiver->level_us, receiver->samples[receiver->sample_first].us);
        receiver->sample_first = (receiver->sample_first + 1) % RECEIVER_SAMPLES;
        receiver->sample_count--;
    }
    pthread_mutex_unlock(&receiver->lock);
}

static bool reception_acknowledge(struct reception *reception)
{
    struct progress now = reception_look(reception);

    reception_note(reception, now.applied);
    if (reception->now_us < reception_due(reception, &now)) {
        return true;
    }
    const struct repl_line line = {
        .kind = REPL_ACK, .written = now.written, .durable = now.durable, .applied = now.applied};

    reception->said = now;
    reception->said_us = reception->now_us;
    return receiver_say(reception->receiver, &line) || reception_end(reception, RECEIVER_LATER);
}

/* ---- what it hears ---- */

static bool reception_hear_data(struct reception *reception, const struct repl_line *line)
{
    if (line->lsn != reception->lsn) {
        receiver_trouble(reception->receiver, "it sent LSN %llu where LSN %llu is the next",
                         (unsigned long long)line->lsn, (unsigned long long)reception->lsn);
        return reception_end(reception, RECEIVER_LATER);
    }
    CHECK(line->bytes <= REPL_DATA_MAX);
    reception->length = (size_t)line->bytes;
    reception->come = reception->taken = 0;
    return true;
}

static bool reception_hear_time(struct reception *reception, const struct repl_line *line)
{
    struct repl_receiver *receiver = reception->receiver;
    uint64_t applied = data_applied(receiver->data);

    pthread_mutex_lock(&receiver->lock);
    receiver->figures.leader_written = line->written;
    receiver->figures.epoch = line->epoch;
    if (line->written <= applied) {
        atomic_store(&receiver->level_us, reception->now_us);
    } else if (receiver->sample_count < RECEIVER_SAMPLES) {
        size_t at = (receiver->sample_first + receiver->sample_count++) % RECEIVER_SAMPLES;

        receiver->samples[at] = (struct receiver_sample){line->written, reception->now_us};
    }
    pthread_mutex_unlock(&receiver->lock);
    return true;
}

static bool reception_hear_sum(struct reception *reception, const struct repl_line *line)
{
    if (line->lsn != reception->lsn || line->from > line->lsn) {
        receiver_trouble(reception->receiver, "it sent the sum of what it did not send");
        return reception_end(reception, RECEIVER_LATER);
    }
    reception->sum = *line;
    reception->sum_waits = true;
    return true;
}

static bool reception_hear_line(struct reception *reception, const char *text, size_t length)
{
    struct repl_receiver *receiver = reception->receiver;
    struct repl_line line;
    char error[REPL_TEXT_MAX + 1];

    if (!repl_parse(REPL_OF_LEADER, text, length, &line, error)) {
        receiver_trouble(receiver, "it sent what is no line: %.150s", error);
        return reception_end(reception, RECEIVER_LATER);
    }
    switch (line.kind) {
    case REPL_DATA:
        return reception_hear_data(reception, &line);
    case REPL_TIME:
        return reception_hear_time(reception, &line);
    case REPL_SUM:
        return reception_hear_sum(reception, &line);
    case REPL_COPY:
        receiver_trouble(receiver, "a copy is needed: %s", line.text);
        return reception_end(reception, RECEIVER_SOON);
    default:
        return reception_end(reception, receiver_refused(receiver, &line));
    }
}

/* ---- what it takes ---- */

static bool reception_again_later(struct reception *reception)
{
    uint64_t pause_us = reception->pause_us == 0 ? AGAIN_FIRST_US : 2 * reception->pause_us;

    reception->pause_us = lesser(pause_us, AGAIN_MAX_US);
    reception->again_us = clock_monotonic_us() + reception->pause_us;
    return true;
}

/* `why`: the disk is full; "": for a moment. */
static bool reception_no_room(struct reception *reception, const char *why)
{
    if (why[0] != '\0') {
        reception->receiver->no_room = true;
        receiver_trouble(reception->receiver, "%.250s", why);
    }
    return reception_again_later(reception);
}

static void reception_has_room(struct reception *reception)
{
    struct repl_receiver *receiver = reception->receiver;

    reception->again_us = reception->pause_us = 0;
    receiver->link.heard_us = clock_monotonic_us(); /* nobody has listened until now */
    if (receiver->no_room) {
        receiver->no_room = false;
        receiver_no_trouble(receiver);
        log_info("following %s: there is room again", receiver->address);
    }
}

/* As much of the D as there is room for. */
static bool reception_take(struct reception *reception)
{
    struct repl_receiver *receiver = reception->receiver;
    char error[DATA_ERROR_MAX] = "";

    while (reception->taken < reception->length) {
        size_t taken = 0;
        enum data_taken result =
            data_take(receiver->data, reception->lsn, reception->bytes + reception->taken,
                      reception->length - reception->taken, &taken, error);

        CHECK(taken <= reception->length - reception->taken);
        reception->taken += taken;
        reception->lsn += taken;
        if (result == DATA_NO_ROOM) {
            return reception_no_room(reception, error);
        }
        if (result != DATA_TAKEN) {
            receiver_trouble(receiver, "%s%.220s",
                             result == DATA_BAD ? "what it sent is not sound: " : "", error);
            return reception_end(reception, RECEIVER_LATER);
        }
    }
    reception->length = reception->come = reception->taken = 0;
    reception_has_room(reception);
    return true;
}

static bool reception_diverged(struct reception *reception, uint64_t sum)
{
    struct repl_receiver *receiver = reception->receiver;
    const struct repl_line *line = &reception->sum;

    log_error("following %s: the nodes have diverged from=%llu lsn=%llu sum=%016llx here=%016llx",
              receiver->address, (unsigned long long)line->from, (unsigned long long)line->lsn,
              (unsigned long long)line->sum, (unsigned long long)sum);
    return reception_end(reception, receiver_diverged(receiver, line->from, line->lsn));
}

/* Compares a sum once its records can be read from the files. */
static bool reception_compare(struct reception *reception)
{
    struct repl_receiver *receiver = reception->receiver;
    uint64_t sum;

    if (journal_written(receiver->journal) < reception->sum.lsn) {
        return reception_again_later(reception);
    }
    bool has = data_sum(receiver->data, reception->sum.from, reception->sum.lsn, &sum);

    if (has && sum != reception->sum.sum) {
        return reception_diverged(reception, sum);
    }
    if (!has && reception->sum.lsn == reception->begin) { /* later ones are of what came from it */
        log_info("following %s: not compared, as it is gone here from=%llu lsn=%llu",
                 receiver->address, (unsigned long long)reception->sum.from,
                 (unsigned long long)reception->sum.lsn);
    }
    reception->sum_waits = false;
    reception_has_room(reception);
    return true;
}

/* ---- the stream ---- */

/* Returns whether something that came must be dealt with before more is read. */
static bool reception_is_held(const struct reception *reception)
{
    return reception->sum_waits || (reception->length > 0 && reception->come == reception->length);
}

static bool reception_try_held(struct reception *reception)
{
    if (reception->now_us < reception->again_us) {
        return true;
    }
    return reception->sum_waits ? reception_compare(reception) : reception_take(reception);
}

/* What has come of the D. *any: there was something. */
static bool reception_read_bytes(struct reception *reception, bool *any)
{
    ssize_t got = repl_link_bytes(&reception->receiver->link, reception->bytes + reception->come,
                                  reception->length - reception->come);

    if (got < 0) {
        receiver_note_end(reception->receiver);
        return reception_end(reception, RECEIVER_LATER);
    }
    reception->come += (size_t)got;
    *any = got > 0;
    return true;
}

static bool reception_read_line(struct reception *reception, bool *any)
{
    struct repl_link *link = &reception->receiver->link;
    size_t length, before;
    const char *text = repl_link_line(link, &length);

    if (text != NULL) {
        *any = true;
        return reception_hear_line(reception, text, length);
    }
    if (length > REPL_LINE_MAX) {
        receiver_trouble(reception->receiver, "it sent a line without an end");
        return reception_end(reception, RECEIVER_LATER);
    }
    before = length;
    if (!repl_link_fill(link)) {
        receiver_note_end(reception->receiver);
        return reception_end(reception, RECEIVER_LATER);
    }
    *any = link->in_length > before;
    return true;
}

/* Reads, or tries again what is held. *any: it was of use, and there may be more. */
static bool reception_work(struct reception *reception, bool *any)
{
    struct repl_receiver *receiver = reception->receiver;

    if (reception_is_held(reception)) {
        bool tried = reception->now_us >= reception->again_us;

        if (!reception_try_held(reception)) {
            return false;
        }
        *any = tried && !reception_is_held(reception);
        return true;
    }
    bool good = reception->length > 0 ? reception_read_bytes(reception, any)
                                      : reception_read_line(reception, any);

    if (good && !*any && reception->now_us > receiver->link.heard_us + SILENCE_US) {
        receiver_trouble(receiver, "it is silent");
        return reception_end(reception, RECEIVER_LATER);
    }
    return good;
}

/* Sleeps until something moves here, something comes (if it can be taken), or the next word is due.
 */
static void reception_sleep(struct reception *reception)
{
    struct repl_receiver *receiver = reception->receiver;

    atomic_store(&receiver->sleeps, true);
    struct progress now = reception_look(reception);
    uint64_t until_us = reception_due(reception, &now);

    if (until_us > reception->now_us) {
        if (!reception_is_held(reception)) {
            repl_link_wait(&receiver->link, until_us);
        } else {
            repl_link_pause(&receiver->link, lesser(until_us, reception->again_us));
        }
    }
    atomic_store(&receiver->sleeps, false);
}

static bool reception_once(struct reception *reception)
{
    bool any = false;

    reception->now_us = clock_monotonic_us();
    if (!reception_acknowledge(reception) || !reception_work(reception, &any)) {
        return false;
    }
    if (!any) {
        reception_sleep(reception);
    }
    return true;
}

enum receiver_next receiver_stream(struct repl_receiver *receiver, uint64_t lsn, uint64_t epoch)
{
    struct reception reception = {
        .receiver = receiver, .begin = lsn, .lsn = lsn, .next = RECEIVER_LATER};

    reception.bytes = memory_zalloc(REPL_DATA_MAX);
    pthread_mutex_lock(&receiver->lock);
    receiver->figures.state = REPL_RECEIVER_STREAMING;
    receiver->figures.epoch = epoch;
    receiver->figures.connects++;
    receiver->sample_count = 0;
    pthread_mutex_unlock(&receiver->lock);
    if (!receiver->no_room) {
        receiver_no_trouble(receiver);
    }
    log_info("following %s: streaming lsn=%llu epoch=%llu", receiver->address,
             (unsigned long long)lsn, (unsigned long long)epoch);
    receiver->link.heard_us = clock_monotonic_us();
    while (reception_once(&reception)) {
    }
    free(reception.bytes);
    return reception.next;
}
