/*
 * plain_private.h: the shards of a plain space, for plain*.c.
 *
 * A shard's ring is touched with its lock held, or with the world stopped.
 */
#ifndef ROLLCALL_PLAIN_PLAIN_PRIVATE_H
#define ROLLCALL_PLAIN_PLAIN_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "plain/plain.h"
#include "plain/ring.h"

/* ring_item.marks */
#define PLAIN_FETCHED 1u /* it was read since it was stored */
#define PLAIN_STALE   2u /* it was invalidated */
#define PLAIN_SENT    4u /* a reader was told to renew it */

struct plain_shard {
    pthread_mutex_t lock;
    struct ring *ring;
    uint64_t flushed_s; /* the delayed flush that was carried out last */
} __attribute__((aligned(64)));

struct plain {
    struct engine engine;
    unsigned shard_count; /* a power of two */
    uint64_t item_bytes_max;
    uint64_t seed;
    _Atomic uint64_t cas;     /* the last token given */
    _Atomic uint64_t flush_s; /* when all that was stored before it goes; 0: never */
    struct plain_shard shards[];
};

/* plain.c */

/* Forgets what a flush whose time has come is to forget. The shard's lock is held. */
void plain_flush_if_due(const struct plain *plain, struct plain_shard *shard, uint64_t now_s);

/* plain_ops.c: as in struct engine_functions. */

void plain_prepare(struct engine *engine, struct engine_op *const *ops, size_t n);
void plain_change(struct engine *engine, struct engine_op *op, struct change_sink *sink);

#endif
