/*
 * receiver_private.h: what the files of the receiver share. Included by receiver*.c only.
 *
 *     receiver.c          its thread, its pauses, its figures
 *     receiver_connect.c  a connection, as far as the answer to follow
 *     receiver_dial.c     its socket: the name, its addresses
 *     receiver_stream.c   records, and how far they are here
 *     receiver_copy.c     a copy of the other's files
 */
#ifndef ROLLCALL_REPL_RECEIVER_PRIVATE_H
#define ROLLCALL_REPL_RECEIVER_PRIVATE_H

#include <pthread.h>

#include "data/follow.h"
#include "net/address.h"
#include "repl/link.h"
#include "repl/lookup.h"
#include "repl/receiver.h"
#include "store/journal.h"
#include "store/vfs.h"

#define RECEIVER_SAMPLES 64 /* of what was written there when */
#define RECEIVER_ANSWER_S                                                                          \
    60u /* to follow and copy: the other may have to sync, or to look for us */

/* When the other's journal was how far, by this clock: the oldest of those that are not applied. */
struct receiver_sample {
    uint64_t written, us;
};

/* What comes after a connection. */
enum receiver_next {
    RECEIVER_LATER, /* the pause after a failure */
    RECEIVER_SOON,  /* the shortest pause: it went well */
    RECEIVER_BUSY,  /* busy_s, and something by lot */
    RECEIVER_OVER,  /* nothing: the thread ends */
};

struct repl_receiver {
    struct data *data;
    struct journal *journal;
    struct vfs *vfs;
    char *directory;
    char *address; /* as the settings have it */
    char name[REPL_NAME_MAX + 1], group[REPL_NAME_MAX + 1];
    struct repl_receiver_owner owner;
    struct repl_receiver_counts own_counts; /* if the owner has none */
    pthread_t thread;
    bool started; /* the main thread's */
    _Atomic bool stop;
    _Atomic bool sleeps;             /* it waits for what is here to move */
    _Atomic uint64_t level_us;       /* when it last had all that was written there; 0: never */
    _Atomic uint64_t stale_after_us; /* 0: never */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t stopped;
    bool linked;           /* the link may be woken */
    struct repl_link link; /* the thread's, but for that */
    struct net_tls_context *tls;
    char *login; /* "name password"; NULL: none */
    struct repl_receiver_stats figures;
    struct receiver_sample samples[RECEIVER_SAMPLES];
    size_t sample_first, sample_count;

    /* the thread's own */
    struct repl_lookup *lookup;    /* of the address's name, where an answer is still out */
    struct data_position position; /* at the beginning of this connection */
    uint64_t busy_s;
    _Atomic bool no_room; /* on the disk here: why it does not go on, whatever else happens */
    char logged[REPL_TEXT_MAX + 1]; /* the last trouble in the log */
};

/* ---- receiver.c ---- */

void receiver_set_state(struct repl_receiver *receiver, enum repl_receiver_state state);
/* Why it does not stream: for the figures, and for the log unless it has just said so. */
__attribute__((format(printf, 2, 3))) void receiver_trouble(struct repl_receiver *receiver,
                                                            const char *format, ...);
void receiver_no_trouble(struct repl_receiver *receiver);
/* Returns the upper end of the pause after this many failures in a row; the pause is drawn below
 * it. */
uint64_t receiver_pause_us(unsigned failures);

/* ---- receiver_connect.c ---- */

/* Runs one connection from its beginning to its end. *lasted_us: how long its stream lasted. */
enum receiver_next receiver_converse(struct repl_receiver *receiver, uint64_t *lasted_us);
/* False: it is over, or silent for so long; the trouble is noted. */
bool receiver_say(struct repl_receiver *receiver, const struct repl_line *line);
bool receiver_await_line(struct repl_receiver *receiver, unsigned silence_s,
                         struct repl_line *line);
bool receiver_await_bytes(struct repl_receiver *receiver, unsigned silence_s, void *to,
                          size_t length);
/* The connection has ended without a word. */
void receiver_note_end(struct repl_receiver *receiver);
/* SERVER_ERROR, BUSY, or a line that does not belong there. */
enum receiver_next receiver_refused(struct repl_receiver *receiver, const struct repl_line *line);
/* Its records from `from` to lsn are not those here: nothing more is taken. */
enum receiver_next receiver_diverged(struct repl_receiver *receiver, uint64_t from, uint64_t lsn);
/* Has the disk room for the start that is to come? False: said. */
bool receiver_has_room(struct repl_receiver *receiver);

/* Takes the socket over, as the present link. False: it is closed. */
bool receiver_link(struct repl_receiver *receiver, int fd);
void receiver_unlink(struct repl_receiver *receiver);

/* ---- receiver_dial.c ---- */

/* Has a link to the address; parts are its parts. False: the trouble is noted. */
bool receiver_dial(struct repl_receiver *receiver, const char *address,
                   const struct net_address_parts *parts);

/* ---- receiver_stream.c ---- */

/* After STREAM was heard. Returns when it is over. */
enum receiver_next receiver_stream(struct repl_receiver *receiver, uint64_t lsn, uint64_t epoch);

/* ---- receiver_copy.c ---- */

/* Asks for a copy on the connection, and has it whole in DIR/copy. */
enum receiver_next receiver_copy(struct repl_receiver *receiver);

#endif
