/*
 * plain.h: a small, bounded general cache as an engine, for the keys that belong to no space of
 * ids: snapshots, sessions, health checks. Any key, any bytes, flags, expiry, tokens.
 *
 * It is what memcached is, kept small: memory is reserved at creation and never grows; what was
 * not read for long goes when there is no room (ring.h). It is not journaled and empty after a
 * restart. Values are looked at where they lie (plain_visit), copied by the caller under the lock
 * of their shard.
 *
 * An operation's key is its `member`. Verbs mean what they mean in memcached: incr and decr change
 * text numbers in place, padded with spaces where the number became shorter, and answer NOT_FOUND
 * to what is not there unless the operation creates it. The token is a number that each change
 * raises.
 *
 * Cost: a hash, a mutex, two or three lines. Thread rule: engine.h's.
 */
#ifndef ROLLCALL_PLAIN_PLAIN_H
#define ROLLCALL_PLAIN_PLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

#define PLAIN_MEMORY_BYTES_MIN (1ull << 20)
#define PLAIN_MEMORY_BYTES_MAX (1ull << 46)
#define PLAIN_ITEM_BYTES_MIN   1024u
#define PLAIN_ITEM_BYTES_MAX   (1u << 20) /* what a connection's buffers take */

struct plain_config {
    uint64_t memory_bytes;   /* all of it */
    uint64_t item_bytes_max; /* of a key with its value and what it costs; at most 1/4 of a shard */
};

/* What is given of a value that was found. */
struct plain_hit {
    const char *value; /* valid during the call */
    size_t value_length;
    uint64_t cas;
    uint32_t flags;
    int32_t ttl_s;         /* before this look; -1: it does not expire */
    int32_t ttl_touched_s; /* if it is touched … */
    int32_t ttl_made_s;    /* … and if this look made it */
    uint32_t item_bytes;   /* with key and what it costs */
    uint32_t idle_s;       /* since it was stored or read … */
    bool fetched;          /* … which it was */
    bool vivified;         /* it was not there: this look made it */
    bool stale;            /* it was invalidated */
    bool sent;             /* an earlier reader was told to renew it … */
    bool won;              /* … or this one is */
};
/* False: there is no room for it now. Called with the lock of a shard held: only copies. */
typedef bool plain_hit_fn(void *context, const struct plain_hit *hit);
/* One key of a walk, as plain_hit_fn gets one of a read. */
typedef void plain_key_fn(void *context, const char *key, size_t length,
                          const struct plain_hit *hit);

/* NULL with errno: the system refuses the memory. The config is within the limits above. */
struct engine *plain_create(const struct plain_config *config);
/* Takes another item_bytes_max; memory stays until a restart. World stopped. */
void plain_reconfigure(struct engine *engine, const struct plain_config *config);
/*
 * READ of one prepared op. If it is found, `hit` is called, and the status is DONE, or EXISTS if
 * `hit` had no room. With touch, its expiry becomes op->expires_s, unless there was no room.
 */
void plain_visit(struct engine *engine, struct engine_op *op, bool touch, plain_hit_fn *hit,
                 void *context);
/*
 * Makes one step of a walk over all keys, from *cursor on (0 at first), and moves it: calls visit
 * for a few of them, or none. False: that was the last step, or the walk was over. A key that is
 * there all the while is visited once.
 */
bool plain_walk(struct engine *engine, uint64_t *cursor, plain_key_fn *visit, void *context);
/* Forgets everything. World stopped. */
void plain_clear(struct engine *engine);
/* Forgets everything at that clock_monotonic_s(); any thread inside the barrier. */
void plain_clear_later(struct engine *engine, uint64_t at_s);
/* Makes its memory resident; blocks; stops early once *stop is true. Any thread. */
void plain_populate(struct engine *engine, const _Atomic bool *stop);
/* Ends the process at a broken invariant. Nobody else there. */
void plain_check(const struct engine *engine);

#endif
