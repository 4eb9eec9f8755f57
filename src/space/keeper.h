/*
 * keeper.h: one thread that does what engines ask for and workers must not: open tables, recycle
 * them (row_maintain). It is named "keeper".
 *
 * An engine notifies the keeper through its engine_keeper, from any thread, also while the world is
 * stopped: a flag of its own and, if that was down, one wake-up. The keeper runs the engines that
 * raised theirs one after another, in turn; one that notifies while it is maintained is run again.
 *
 * It has one errand besides, of the server's (flush_all): run once after it was asked for, in a
 * bracket of its own, so that nobody waits for others' brackets.
 *
 * The keeper is no member of the barrier: maintain stops the world itself, and may take long
 * outside of that. So what replaces the contents of an engine (reload, flush_all) or drops an
 * engine brackets that with keeper_stop() and keeper_go(): between the two nothing is maintained,
 * and nobody else is in such a bracket. Order, against deadlock: out of the barrier, keeper_stop,
 * populate_stop, barrier_stop; back the other way round.
 *
 * A bracket may last as long as the disk takes for a small file (a checkpoint stores its manifest
 * in one), so no worker and not the main thread waits for one: they ask for the errand, or start a
 * thread. Requests that need a table do wait for its end. A checkpoint that writes files, and only
 * wants rows to stay as they are for longer, holds the keeper instead: nothing is maintained from
 * keeper_hold() to keeper_release(), but brackets and errands begin and end. Their owner may change
 * rows; a holder looks again when it is in a bracket of its own.
 *
 * Thread rule: as each function says.
 */
#ifndef ROLLCALL_SPACE_KEEPER_H
#define ROLLCALL_SPACE_KEEPER_H

#include <stdbool.h>

#include "base/barrier.h"
#include "engine/engine.h"

struct keeper;
struct spaces;

/* What an engine notifies: embedded in its space, lives as long as the engine. */
struct keeper_job {
    struct keeper *keeper;
    struct engine *engine;
    _Atomic bool asked;
};

typedef void keeper_errand_fn(void *context);

/* Makes a keeper without a thread; what is asked for meanwhile is done later. errand NULL: there is
 * none. Never returns NULL. */
struct keeper *keeper_create(struct barrier *barrier, keeper_errand_fn *errand, void *context);
/* After the engines' last operation, before they are destroyed. NULL: no-op */
void keeper_destroy(struct keeper *keeper);

/*
 * Has the engines of a set notify this keeper, those that already do excepted. Before any other
 * thread can reach them: at creation, and before a set is published.
 */
void keeper_attach(struct keeper *keeper, struct spaces *spaces);

/* Starts the thread, for the engines of a set. False with errno: there is no thread. */
bool keeper_start(struct keeper *keeper, const struct spaces *spaces);
/*
 * Ends the thread, after the step it is in: nobody's ticket is woken by it from here on. Requests
 * that wait for it wait for ever, so the workers are ended next. Brackets still exclude each other.
 * By the thread that started it; NULL, or not started: no-op.
 */
void keeper_end(struct keeper *keeper);

/* Has the errand run, once more if it is running. Any thread; never waits. */
void keeper_ask_errand(struct keeper *keeper);

/* Waits until nothing is maintained; not for brackets. Any thread outside the barrier. */
void keeper_hold(struct keeper *keeper);
/* By whoever held it, outside a bracket of its own. */
void keeper_release(struct keeper *keeper);

/* Waits until nothing is maintained, and for other brackets, not for holders. Any thread outside
 * the barrier. */
void keeper_stop(struct keeper *keeper);
/* Goes on, with the engines of a set; NULL: the same as before. By whoever stopped it. */
void keeper_go(struct keeper *keeper, const struct spaces *spaces);

#endif
