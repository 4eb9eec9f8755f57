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
    _Atomic bool failed;      /* what was done of the records at `applied` cannot be told */
    _Atomic bool has_room;    /* for a promotion, when that was last looked at */
    _Atomic uint64_t applied;
    struct follow_memory *memory;  /* what this configuration takes */
    _Atomic uint64_t readable_lsn; /* tables may hold what lies below it; UINT64_MAX: and what no
                                    * record of this stream is of */
    struct journal_writer writer;  /* the receiver's; its journal is NULL until the first take */

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
    uint64_t room_us;           /* when the room for a promotion was; 0: never */
    uint64_t tried_us;          /* when a file was made to see that; 0: never */
    bool dumped;                /* there are dumped tables, while a slice goes on */
    uint64_t asked_lsn;         /* pages were asked for from this change on; 0: none */

    pthread_mutex_t lock;
    pthread_cond_t work;
    bool more, ending;            /* under the lock */
    char trouble[DATA_ERROR_MAX]; /* likewise */
    char grown[DATA_ERROR_MAX];   /* likewise: tables take more than memory leaves */
    char unlike[DATA_ERROR_MAX];  /* likewise: slots that the configuration has otherwise */
};

/* ---- follow_said.c ---- */

enum follow_news { FOLLOW_AS_BEFORE, FOLLOW_BEGINS, FOLLOW_OTHERWISE, FOLLOW_OVER };

/* Replaces one of the sentences under the lock; "": there is none. Returns what is new of it. */
enum follow_news follow_say(struct follow *follow, char said[DATA_ERROR_MAX], const char *text);
/* Copies one of them. Any thread. */
void follow_said(struct follow *follow, const char said[DATA_ERROR_MAX], char text[DATA_ERROR_MAX]);

/* ---- follow_memory.c ---- */

struct follow_memory *follow_memory_create(const struct settings *settings); /* free() ends it */
/* Have the tables that are there outgrown it, as the other node's have? By how much; "": no. World
 * stopped. */
void follow_memory_look(const struct follow *follow, char grown[DATA_ERROR_MAX]);
void follow_memory_tell(struct follow *follow, const char *grown); /* logs what is new of that */

/* ---- follow_slots.c: says which slots the configuration has otherwise ---- */

void follow_slots_begin(struct data *data); /* of a start; nobody else is there */
/* Looks again where a reload, or the other node, may have changed them. The applier's thread, which
 * has nothing to carry out. */
void follow_slots_see(struct data *data);

/* ---- follow_pages.c: changes that need a page of a dumped table. World stopped ---- */

enum sliced {
    SLICED,
    SLICED_WAITS, /* for the keeper, or a file that cannot be read: error */
    SLICED_READS, /* for pages */
    SLICED_FAILED,
};

/* Whom pages are read for: it goes first (store/cold.h), however many clients ask for others. */
struct ticket follow_pages_ticket(struct data *data);
/* A slice begins. */
void follow_pages_see(struct follow *follow);
/* Returns whether the record is such a change; *sliced: how it went. */
bool follow_pages_take(struct data *data, const struct journal_record *record, enum sliced *sliced);
/* A change at `at` of what was read waits: asks for its pages, and for those of the next ones. */
void follow_pages_ask(struct data *data, size_t at);
/* What was asked for is not wanted any more. The applier, or when it has ended. */
void follow_pages_release(struct data *data);

/* ---- follow.c ---- */

/* Makes a record of its words. */
void follow_record(const uint64_t *words, uint64_t lsn, struct journal_record *record);
/* Returns whether it is an event. */
bool follow_event(const struct journal_record *record, struct change_record_event *event);

/* Notes those that a reload has added since the start. It stops the world for that. */
void follow_see_spaces(struct follow *follow);

/* ---- promote.c ---- */

/* Looks, now and then, whether a promotion would find room. The applier's thread, with the world
 * going on: waits for the disk. */
void promote_look(struct data *data);

#endif
