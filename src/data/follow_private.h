/*
 * follow_private.h: a data directory that follows, between its files. Included by follow*.c and
 * recovery.c only.
 */
#ifndef ROLLCALL_DATA_FOLLOW_PRIVATE_H
#define ROLLCALL_DATA_FOLLOW_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/follow.h"
#include "data/recovery_private.h"
#include "store/journal_reader.h"

struct follow {
    struct recovery recovery; /* the start's, then the applier's: it goes on */
    _Atomic bool over;        /* it was promoted: its journal is its own */
    _Atomic uint64_t applied;
    struct follow_memory *memory; /* what this configuration takes */
    uint64_t readable_lsn;        /* tables may hold what lies below it; not changed any more */
    struct journal_writer writer; /* the receiver's; its journal is NULL until the first take */

    /* the applier */
    pthread_t thread;
    bool started;
    struct barrier *barrier;
    struct spaces *const *spaces;
    void (*moved)(void *context);
    void *context;
    struct journal_reader reader;
    char error[DATA_ERROR_MAX]; /* recovery.error */
    uint64_t seen_us;           /* when dumps and merges were looked at last */

    pthread_mutex_t lock;
    pthread_cond_t work;
    bool more, ending;            /* under the lock */
    char trouble[DATA_ERROR_MAX]; /* likewise */
    char grown[DATA_ERROR_MAX];   /* likewise: tables take more than memory leaves */
};

/* ---- follow_memory.c ---- */

struct follow_memory *follow_memory_create(const struct settings *settings); /* free() ends it */
/* Have the tables that are there outgrown it, as the other node's have? By how much; "": no. World
 * stopped. */
void follow_memory_look(const struct follow *follow, char grown[DATA_ERROR_MAX]);
void follow_memory_tell(struct follow *follow, const char *grown); /* logs what is new of that */

/* ---- follow.c ---- */

void follow_see_spaces(struct follow *follow); /* those that a reload has added since the start */

#endif
