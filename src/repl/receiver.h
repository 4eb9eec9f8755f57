/*
 * receiver.h: the side that follows: one thread that connects to the node of replication.follow,
 * takes its journal as it is written, and says how far it is. The lines are wire.h's, what is taken
 * is data/follow.h's.
 *
 * It goes on by itself: whatever ends a connection is logged once, and after a pause, which grows
 * from one failure to the next and is drawn by lot, it comes again and goes on where it was. It
 * ends by itself only
 * - when the daemon has to begin anew: a copy has come whole (DIR/copy, which data_open puts in
 *   place), or the journal is to be cut where the other's history leaves it. Then again() is called
 * - when both nodes have other bytes at the same place (REPL_RECEIVER_DIVERGED). Reads go on.
 *
 * Thread rule: create, start, stop, destroy on the main thread; the rest any.
 */
#ifndef ROLLCALL_REPL_RECEIVER_H
#define ROLLCALL_REPL_RECEIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/settings.h"
#include "repl/wire.h"

#define REPL_ADDRESS_MAX 256u /* bytes of an address that is followed */

struct data;
struct repl_receiver;

/* Since the process began, whatever receivers it had. */
struct repl_receiver_counts {
    _Atomic uint64_t copies;     /* fetched */
    _Atomic uint64_t rewinds;    /* the journal was cut */
    _Atomic uint64_t lost_bytes; /* that were here and not there: what these cut off */
};

struct repl_receiver_owner {
    void *context;
    struct repl_receiver_counts *counts; /* NULL: they begin with each receiver */
    /*
     * The data directory has to be opened anew: copied: DIR/copy is a whole copy; else the journal
     * is to be cut at cut_lsn first. By the receiver's thread as the last that it does; once.
     */
    void (*again)(void *context, uint64_t cut_lsn, bool copied);
    /* A copy begins to come, which is to replace what is in memory. By the receiver's thread. NULL:
     * nobody is told. */
    void (*copies)(void *context);
};

/* NULL: the settings follow nobody. After data_recover; data outlives it but for the call of
 * destroy. */
struct repl_receiver *repl_receiver_create(const struct settings *settings, struct data *data,
                                           const struct repl_receiver_owner *owner);
/* Starts the thread, also again after a stop. False with errno: no thread can be had. NULL,
 * running: no-op. */
bool repl_receiver_start(struct repl_receiver *receiver);
/* The node it follows from the next start on, by an agent's word. Not while it runs. */
void repl_receiver_redirect(struct repl_receiver *receiver, const char *address);
/* Returns whether there is a node to follow. */
bool repl_receiver_has_leader(const struct repl_receiver *receiver);
/* Ends its thread and waits for that. While the journal is open. NULL, again, never started: no-op.
 */
void repl_receiver_stop(struct repl_receiver *receiver);
/* After the journal was closed, which calls repl_receiver_moved until then. NULL: no-op. */
void repl_receiver_destroy(struct repl_receiver *receiver);
/* What may change while it runs, from the next connection on: TLS, credentials; stale-after at
 * once. NULL: no-op. */
void repl_receiver_reconfigure(struct repl_receiver *receiver, const struct settings *settings);

/* What is written, durable or applied here has grown. Under no lock of the journal; no wait. NULL:
 * no-op. */
void repl_receiver_moved(struct repl_receiver *receiver);

/* Returns whether what can be read here is older than replication.stale-after. Cheap. NULL: false.
 */
bool repl_receiver_is_stale(const struct repl_receiver *receiver);

/* ---- figures ---- */

enum repl_receiver_state {
    REPL_RECEIVER_CONNECTING, /* or waits until it comes again */
    REPL_RECEIVER_COPYING,
    REPL_RECEIVER_BEHIND,    /* streams, and was not level for a second */
    REPL_RECEIVER_STREAMING, /* and is level */
    REPL_RECEIVER_REWINDING, /* again() was called to cut the journal */
    REPL_RECEIVER_DIVERGED,  /* it follows no more */
    REPL_RECEIVER_STATES
};

struct repl_receiver_stats {
    enum repl_receiver_state state;
    char leader[REPL_ADDRESS_MAX + 1]; /* its address; "": an agent has not said one yet */
    uint64_t stream[MANIFEST_STREAM_WORDS];
    uint64_t epoch; /* that reigns there */
    uint64_t written, durable, applied;
    uint64_t leader_written; /* as it said last */
    uint64_t lag_bytes;      /* written there and not readable here */
    uint64_t lag_us;         /* how old that is, about; without a stream: since it was level */
    bool caught_up;          /* since the start it once had all that was written there */
    bool full;               /* the disk here has no room for what comes */
    uint64_t connects;       /* streams and copies begun */
    uint64_t copies, rewinds, lost_bytes; /* as struct repl_receiver_counts */
    uint64_t copied_bytes, copy_bytes;    /* of the present copy, and what it needs in all */
    char trouble[REPL_TEXT_MAX + 1];      /* why it does not stream; "": it does, or just begins */
};

void repl_receiver_stats(struct repl_receiver *receiver, struct repl_receiver_stats *stats);
/* "streaming" */
const char *repl_receiver_state_word(enum repl_receiver_state state);

#endif
