/*
 * below.h: records below the oldest table, in a space of role cache: a bounded cache.
 *
 * What is written back to an id whose table was recycled is kept here, as whole records of 64-bit
 * numbers, until others need the room: then it is absent again. It is neither journaled nor dumped,
 * so a restart begins with none. It may forget; what it answers is what was written last.
 *
 *     head 0 | head 1 | head 2 | ...   one cache line each: lock, order of use, ids of 7 records
 *     7 records | 7 records | ...      set, and a number a slot
 *
 * The hash of an id says which bucket it belongs to. A bucket is full with 7 records; the next one
 * takes the place of the one used longest ago. So the order is kept within a bucket alone, which
 * costs no links to follow and keeps nearly what one order of all would. The lock is a bucket's,
 * and workers seldom meet there.
 *
 * No id is here and in a table: inside the barrier the row says which of the two it is. Ids only
 * come here, as the oldest table's base only rises and tables are dropped; but where the row begins
 * anew at 0, or a table opens among ids that were dropped, with the world stopped, the engine
 * empties the cache in the same stop.
 *
 * Cost: a hash, a lock, the head's line and one or two of the record. Memory: 8 bytes a slot and 17
 * a record, reserved at creation, resident as far as it was used.
 *
 * Invariants (counter_below_check):
 *  B1 a record lies in its id's bucket, once; it has something set, of the space's slots alone
 *  B2 the order of a bucket names each of its records once, and nothing else
 *  B3 the records counted are those there
 *
 * Thread rule: prefetch, look, edit, stats: any thread inside the barrier. The rest: world stopped,
 * or nobody else there.
 */
#ifndef ROLLCALL_COUNTER_BELOW_H
#define ROLLCALL_COUNTER_BELOW_H

#include <stdbool.h>
#include <stdint.h>

#include "counter/record.h"
#include "counter/table.h"

#define COUNTER_BELOW_BYTES_MIN 4096 /* less holds no bucket of the largest records */
#define COUNTER_BELOW_WAYS      7    /* records of a bucket */

struct counter_below;

/*
 * Makes a cache of `bytes` of memory (at least COUNTER_BELOW_BYTES_MIN), for records of `slots`
 * slots (1 to ENGINE_SLOTS_MAX). NULL with errno: the system refuses the memory. The caller
 * destroys it.
 */
struct counter_below *counter_below_create(uint64_t bytes, unsigned slots);
void counter_below_destroy(struct counter_below *below); /* NULL: no-op */

/* Forgets everything; from now on records have this many slots. In about no time. */
void counter_below_reset(struct counter_below *below, unsigned slots);

/* Asks for the line that look and edit of the id begin with. */
void counter_below_prefetch(const struct counter_below *below, uint64_t id);

/* Fills *values, all slots of the record. False: it is not here. */
bool counter_below_look(struct counter_below *below, uint64_t id, struct counter_values *values);

/*
 * Carries out an edit, as counter_table_edit: decided and done under the lock. A record that is
 * created may take the place of another. Returns what was decided.
 */
enum engine_status counter_below_edit(struct counter_below *below, uint64_t id,
                                      struct counter_edit *edit);

struct counter_below_stats {
    uint64_t records;
    uint64_t used_bytes; /* by them, with their share of the heads */
    uint64_t held_bytes; /* given at creation */
    uint64_t hits;       /* looks that found one */
    uint64_t evicted;    /* records others took the place of */
};
void counter_below_stats(const struct counter_below *below, struct counter_below_stats *stats);

/* CHECKs the invariants, and that all ids lie below `end`. */
void counter_below_check(const struct counter_below *below, uint64_t end);
/* Calls visit for the id of each record. */
void counter_below_each(const struct counter_below *below,
                        void (*visit)(const void *context, uint64_t id), const void *context);

#endif
