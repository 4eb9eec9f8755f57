/*
 * stats.h: the stats command: memcached's names where tools look for them, ours beside them.
 *
 * Figures are kept per worker and summed here; `stats reset` keeps the sums of the moment and they
 * are subtracted from then on. A slab class is a kind of memory (enum engine_memory_kind), never a
 * table. `stats conns` shows the connections of the worker that answers, each on its own thread,
 * and the totals of all. Rules that keep tools alive: a global name has only letters, digits and
 * '_'; one with a ':' begins with a numeric class; what stands after it in `stats spaces` and
 * `stats tables` only.
 *
 * With a data directory the general figures tell of the journal, of checkpoints and of the
 * recovery. While the server loads, how far it is; what the engines would have to tell is 0 or, in
 * `items` and `slabs`, nothing, since tools want an END; `spaces`, `tables` and `reset` are
 * refused.
 *
 * Cost: a few microseconds, and as the engines' own for `spaces` and `tables`. On a worker, in its
 * turn.
 */
#ifndef ROLLCALL_REQUEST_STATS_H
#define ROLLCALL_REQUEST_STATS_H

#include "request/dispatch_private.h"

/* Answers a stats request; the argument is the request's value. */
enum dispatch_end stats_answer(struct dispatch_worker *worker, const struct request *request);

#endif
