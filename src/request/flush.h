/*
 * flush.h: flush_all: asked for by a worker, done by the keeper's thread, so that a worker never
 * waits for what the keeper waits for: a bracket of a checkpoint, which stores a manifest, or of a
 * reload (keeper.h). Its request is suspended meanwhile and run again when the spaces are empty.
 *
 * A flush serves all that asked before it began. One that was asked for is done though its client
 * is gone, unless it was taken back.
 *
 * Thread rule: any thread; run: the keeper's. Wakes by the keeper's thread, with nothing locked.
 */
#ifndef ROLLCALL_REQUEST_FLUSH_H
#define ROLLCALL_REQUEST_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

struct flush;
struct server;

struct flush *flush_create(struct server *server); /* never NULL */
void flush_destroy(struct flush *flush);           /* after keeper_end. NULL: no-op */

/* Asks for one; the ticket is woken when it has ended. Its number, never 0. */
uint64_t flush_ask(struct flush *flush, const struct ticket *ticket);

enum flush_state {
    FLUSH_WAITS,
    FLUSH_DONE,    /* every space was emptied after it was asked for */
    FLUSH_REFUSED, /* the log has no room; some spaces may have been emptied */
};
enum flush_state flush_look(struct flush *flush, uint64_t number);

/* Takes a flush back: it does not happen, and nobody is woken. False: it is too late, the flush has
 * begun and ends soon. */
bool flush_take_back(struct flush *flush, uint64_t number);

/* The keeper's errand: context is the flush. In a bracket, outside the barrier. */
void flush_run(void *context);

#endif
