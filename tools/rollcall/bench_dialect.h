/*
 * bench_dialect.h: what a dialect of the load generator does, and what all of them share in
 * judging.
 *
 * A dialect is a row of functions: it composes the requests of a workload and judges the items of
 * their replies; what is drawn, loaded and expected is the workload's. A judge cuts one item off,
 * finds which key it is the answer for, and hands the verdict to the functions below, so that
 * misses, hits, wrong answers and errors are counted alike in all of them. Included by
 * dialects, kits and what carries them out only.
 */
#ifndef ROLLCALL_TOOLS_BENCH_DIALECT_H
#define ROLLCALL_TOOLS_BENCH_DIALECT_H

#include "tools/rollcall/bench_item.h"
#include "tools/rollcall/bench_workload_private.h"

/* One item being judged. */
struct bench_judged {
    const struct bench_workload *workload;
    const uint64_t *ids;
    struct bench_item item; /* line: as messages show it; data: what a key holds */
    struct bench_reply *reply;
    struct bench_tally *tally;
};

struct bench_dialect {
    const char *name;    /* as --protocol names it */
    const char *address; /* where its servers usually listen */
    size_t state_bytes;  /* of a workload's `state`, which is the dialect's own, from zeros */
    void (*prepare)(struct bench_workload *workload); /* once, when its keys are known; or NULL */
    size_t (*bytes_max)(const struct bench_workload *workload); /* of a request */

    /* Append a request and return its end: one that sets a key as loaded, one that asks for ids. */
    char *(*set)(const struct bench_workload *workload, const struct bench_key *key, uint64_t id,
                 char *out);
    char *(*ask)(const struct bench_workload *workload, const uint64_t *ids, char *out);

    /* Judges one item or several at `bytes`, 1 or more of them; their bytes, 0 if none is whole. */
    size_t (*judge)(struct bench_judged *judged, const char *bytes, size_t length);
};

#define BENCH_ADDRESS_MEMCACHED "127.0.0.1:11211"

extern const struct bench_dialect bench_dialect_text;
extern const struct bench_dialect bench_dialect_binary;

static inline uint64_t bench_keys_asked(const struct bench_workload *workload)
{
    return workload->ids * workload->key_count;
}

static inline const struct bench_key *bench_key_at(const struct bench_workload *workload,
                                                   uint64_t key)
{
    return &workload->keys[key % workload->key_count];
}

static inline uint64_t bench_id_at(const struct bench_judged *judged, uint64_t key)
{
    return judged->ids[key / judged->workload->key_count];
}

static inline bool bench_asks_members(const struct bench_workload *workload)
{
    return workload->keys[0].slot == BENCH_SLOT_MEMBER;
}

/* The key is there, the next to be judged. */
static inline void bench_judged_found(const struct bench_judged *judged)
{
    uint64_t id = bench_id_at(judged, judged->reply->key);

    judged->tally->hits++;
    judged->reply->key++;
    if (bench_asks_members(judged->workload) && (id & BENCH_FOREIGN) != 0) {
        judged->tally->foreign++;
        judged->tally->wrong++;
    }
}

/* Existence keys that are missing, from a key up to `to`: only foreign ones may be. */
void bench_judged_denied(const struct bench_judged *judged, uint64_t from, uint64_t to);

/* The keys up to `to` are not there. */
static inline void bench_judged_missed(const struct bench_judged *judged, uint64_t to)
{
    uint64_t from = judged->reply->key;

    judged->tally->misses += to - from;
    judged->reply->key = to;
    if (bench_asks_members(judged->workload) && judged->workload->verify != BENCH_OFF) {
        bench_judged_denied(judged, from, to);
    }
}

/* The key at or behind `key` that should be there; bench_keys_asked() if there is none. */
static inline uint64_t bench_next_expected(const struct bench_judged *judged, uint64_t key)
{
    while (bench_asks_members(judged->workload) && key < bench_keys_asked(judged->workload) &&
           (bench_id_at(judged, key) & BENCH_FOREIGN) != 0) {
        key++;
    }
    return key;
}

/* Counts a mismatch; what is shown is the item's line, after the text of the key if it is named. */
void bench_judged_mismatch(const struct bench_judged *judged, const char *what);
void bench_judged_mismatch_of(const struct bench_judged *judged, const char *what, uint64_t key);

/* Counts the item's line as an error the server answers. */
void bench_judged_error(const struct bench_judged *judged);

/* Are the item's data what a slot of an id holds, or of such a form? */
bool bench_judged_value_right(const struct bench_judged *judged, uint64_t id, int slot);

/* The item's line answers an increment: a number, above the loaded one if that is known. */
void bench_judged_incremented(const struct bench_judged *judged);

/* The answer of a loaded key, byte for byte: its bytes, 0 if it is another. */
typedef size_t bench_expected_fn(const struct bench_judged *judged, uint64_t key, const char *bytes,
                                 size_t length);

/* The common case: what the next loaded key answers. Returns its bytes, else 0. */
static inline size_t bench_judged_common(const struct bench_judged *judged,
                                         bench_expected_fn *expected, const char *bytes,
                                         size_t length)
{
    const struct bench_workload *workload = judged->workload;
    uint64_t asked = bench_keys_asked(workload);

    if (workload->verb != BENCH_VERB_GET || workload->verify != BENCH_VALUES ||
        judged->reply->key >= asked) {
        return 0;
    }
    uint64_t key = bench_next_expected(judged, judged->reply->key);
    if (key >= asked) {
        return 0;
    }
    size_t taken = expected(judged, key, bytes, length);
    if (taken != 0) {
        bench_judged_missed(judged, key);
        bench_judged_found(judged);
    }
    return taken;
}

#endif
