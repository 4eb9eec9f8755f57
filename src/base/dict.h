/*
 * dict.h: a concurrent hash of whole keys, for the few that a table cannot hold in place.
 *
 * Key: a 64-bit id and an 8-bit sub-key; value: a fixed number of bytes, up to DICT_VALUE_MAX.
 * Buckets of one to four cache lines hold at least three entries and a verlock word. A key has two
 * buckets in each level; level k + 1 is twice as large as level k and comes into use when an insert
 * finds no bucket with more than one free place. Entries never move between buckets, so growing
 * costs nothing. The memory of all levels is one region, reserved at creation and resident only as
 * far as it is used. Up to 85 % of its places are taken before a key is refused.
 *
 * Cost: a look-up reads two lines a level in use (at most DICT_LEVELS), an insert the same and one
 * exchange. About 24 bytes an entry with values of 8 to 11 bytes.
 *
 * Thread rule: get by any thread at any time. Changes of different keys by any threads; changes of
 * one key one at a time (the caller's lock). A get of a key that is just being inserted or deleted
 * sees it before or after.
 */
#ifndef ROLLCALL_BASE_DICT_H
#define ROLLCALL_BASE_DICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DICT_KEY_BYTES   9  /* of an entry, before its value */
#define DICT_VALUE_MAX   64 /* bytes */
#define DICT_VALUE_WORDS 8  /* the same in words: values are passed as whole words */
#define DICT_LEVELS      4
#define DICT_POOL_MIN    4096 /* bytes: a bucket of the largest values a sixteenth */

struct dict;

/* pool_bytes: the memory of all levels, at least DICT_POOL_MIN. NULL with errno when refused. */
struct dict *dict_create(size_t value_bytes, size_t pool_bytes, uint64_t seed);
void dict_destroy(struct dict *dict); /* NULL: no-op */

/* Copies the value, zero-filled to whole words, to `value` (may be NULL). False: not there. */
bool dict_get(const struct dict *dict, uint64_t id, uint8_t sub, uint64_t *value);
/* Sets the value of a key, new or not. False, nothing changed: all places for it are taken. */
bool dict_put(struct dict *dict, uint64_t id, uint8_t sub, const uint64_t *value);
/* True if it was there. */
bool dict_delete(struct dict *dict, uint64_t id, uint8_t sub);

uint64_t dict_count(const struct dict *dict);
uint64_t dict_entry_bytes(const struct dict *dict);
uint64_t dict_used_bytes(const struct dict *dict); /* of the levels in use */
uint64_t dict_pool_bytes(const struct dict *dict);
uint64_t dict_places(const struct dict *dict); /* entries the pool has places for: not all fit */

/*
 * Makes the memory resident that so many entries use, so that no put of theirs has to wait for it:
 * at most so many bytes of it, from *at on, which is 0 at first. True: there is more. Any thread.
 */
bool dict_populate(const struct dict *dict, uint64_t entries, uint64_t *at, size_t bytes);

/*
 * Puts everything into a pool of that size, or at least twice the present one, at a new address and
 * by another hash. Nobody else may use the dict meanwhile. False with errno, and the dict is as it
 * was: ENOSPC: the entries do not fit (resize alone); else memory was refused.
 */
bool dict_resize(struct dict **dict, size_t pool_bytes);
bool dict_grow(struct dict **dict);

/* Calls visit for every entry; not while others change it. */
typedef void dict_visit(void *context, uint64_t id, uint8_t sub, const uint64_t *value);
void dict_each(const struct dict *dict, dict_visit *visit, void *context);

/*
 * Calls visit for every entry that is there from the beginning to the end of the walk, and maybe
 * for some that come or go meanwhile; the value is one that the entry had. No entry is visited
 * twice, except a key that was deleted and put again. Any thread, also while others change the
 * dict. *at is 0 at first; true: there is more, call again. A call visits at most `entries` (at
 * least a bucket's) and looks at no more buckets than that. A visit happens with no bucket locked.
 */
bool dict_walk(const struct dict *dict, uint64_t *at, size_t entries, dict_visit *visit,
               void *context);

/*
 * CHECKs: D1 no bucket is locked; D2 every count is within the bucket; D3 every entry lies in one
 * of its two buckets of that level; D4 no key stands twice; D5 the entries add up to dict_count().
 * Not while others change it. O(entries * levels).
 */
void dict_check(const struct dict *dict);

#endif
