/*
 * lister.h: a thread that collects the records of spaces of ids for lists (engine/collect.h), as no
 * worker may: it waits for the disk. It is named "lister" and starts with the first list.
 *
 * A list belongs to a connection. Its worker asks for a batch and suspends the request; the thread
 * fills the batch and wakes it; the worker answers with the batch and asks for the next one. With
 * several lists each has a batch in turn. A list is dropped when its connection ends, in the midst
 * of a batch too.
 *
 * Memory: a part of `memory` a list, and LISTER_LISTS_MAX lists.
 *
 * Thread rule: all functions by workers inside the barrier, each for its own connections; create,
 * end and destroy on the main thread.
 */
#ifndef ROLLCALL_REQUEST_LISTER_H
#define ROLLCALL_REQUEST_LISTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ticket.h"
#include "engine/collect.h"
#include "engine/engine.h"
#include "protocol/protocol.h"

#define LISTER_LISTS_MAX 4
#define LISTER_SHARE     32u /* a list has at most one part in this many of `memory` … */
#define LISTER_BYTES_MIN (1u << 20)
#define LISTER_BYTES_MAX (64u << 20) /* … and this is enough for any */
#define LISTER_OPS       64u         /* records read at once */

struct lister;
struct server;

enum lister_state {
    LISTER_IDLE,  /* no batch was asked for, or it is done with */
    LISTER_WAITS, /* the ticket is woken when it is there */
    LISTER_READY,
    LISTER_GONE,   /* the space is there no more */
    LISTER_FAILED, /* list->collect.error says why */
};

struct lister_list {
    struct ticket ticket; /* the connection's: names the list */
    /* The worker's, unless the list WAITS. */
    enum listing listing;
    bool alone;                            /* of one space, not of all */
    char space[ENGINE_SPACE_NAME_MAX + 1]; /* "": none yet */
    uint64_t from;                         /* the next id */
    uint64_t slots;                        /* a hash of the space's, whose texts are in batches */
    bool fresh;                            /* of the batch nothing was answered, or waited for */
    size_t at;                             /* in the batch: items below are answered */
    size_t read_from, read_to;             /* `ops` are of these */
    bool ended;                            /* all is listed, but the last line is not said */
    uint64_t steps_seen;                   /* when the wait was last looked at */
    struct engine_collect collect;
    struct engine_op ops[LISTER_OPS];
    struct engine_op *op_list[LISTER_OPS];
    char values[LISTER_OPS][ENGINE_VALUE_MAX];
    /* Inside. */
    struct server *server;
    struct engine *engine;
    enum lister_state state;
    bool dropped;
    _Atomic bool stop;
    uint64_t asked; /* serial of the asking: the oldest is served first */
};

struct lister *lister_create(struct server *server); /* never NULL */
/* Ends the thread: what waits does so for ever, so the workers are ended next. Again: no-op. */
void lister_end(struct lister *lister);
void lister_destroy(struct lister *lister); /* after the workers. NULL: no-op */

/* The list of a connection; NULL: it has none. */
struct lister_list *lister_find(struct lister *lister, const struct ticket *ticket);
/* Begins one. NULL: there are LISTER_LISTS_MAX, or no thread. */
struct lister_list *lister_begin(struct lister *lister, const struct ticket *ticket);
/* Asks for the batch of list->space from list->from on. */
void lister_ask(struct lister *lister, struct lister_list *list);
enum lister_state lister_look(struct lister *lister, struct lister_list *list);
/* The steps of all lists: while the number changes the thread goes on, maybe with others' batches.
 */
uint64_t lister_steps(struct lister *lister);
/* The batch is used up. */
void lister_used(struct lister *lister, struct lister_list *list);
/* The connection's list is over, if it has one. */
void lister_drop(struct lister *lister, const struct ticket *ticket);

#endif
