/*
 * plain.h: a small, bounded general cache as an engine, for the keys that belong to no space of
 * ids: snapshots, sessions, health checks. Any key, any bytes, flags, expiry, tokens.
 *
 * It is what memcached is, kept small: memory is reserved at creation and never grows; what was
 * not read for long goes when there is no room (ring.h). It is not journaled and empty after a
 * restart. Values are looked at where they lie (engine_functions.visit), copied by the caller under
 * the lock of their shard.
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

/* NULL with errno: the system refuses the memory. The config is within the limits above. */
struct engine *plain_create(const struct plain_config *config);
/* Takes another item_bytes_max; memory stays until a restart. World stopped. */
void plain_reconfigure(struct engine *engine, const struct plain_config *config);
/* Ends the process at a broken invariant. Nobody else there. */
void plain_check(const struct engine *engine);

#endif
