/*
 * bench_dialect.h: a dialect of the load generator: functions that compose a workload's requests
 * and judge the items of their replies. A judge cuts one item off, finds which key it answers, and
 * hands the verdict to the functions below: all dialects count misses, hits, wrong answers and
 * errors alike. Included by dialects, kits and what carries them out only.
 */
#ifndef ROLLCALL_TOOLS_BENCH_DIALECT_H
#define ROLLCALL_TOOLS_BENCH_DIALECT_H

#include "tools/rollcall/bench_item.h"
#include "tools/rollcall/bench_workload.h"

#define BENCH_VALUE_TEXT_MAX  64u  /* sixteen numbers of three digits and fifteen commas */
#define BENCH_EXPECTED_MAX    512u /* "VALUE ", a key, the value and what stands between */
#define BENCH_VALUE_ROOM      (BENCH_VALUE_TEXT_MAX + BENCH_NUMBER_TEXT_MAX)
#define BENCH_SLOT_WHOLE      (-1)
#define BENCH_SLOT_MEMBER     (-2) /* no slot: the key ends in a member */
#define BENCH_NUMBER_TEXT_MAX 20u

#define BENCH_MEMBER_TEXT_MAX (1 + BENCH_NUMBER_TEXT_MAX)
#define BENCH_KEY_TEXT_MAX    (BENCH_KEY_MAX + BENCH_NUMBER_TEXT_MAX + BENCH_MEMBER_TEXT_MAX)

enum bench_verb {
    BENCH_VERB_GET,
    BENCH_VERB_INCR,
    BENCH_VERB_SET,
    BENCH_VERB_ADD, /* of mix, like the following: text only */
    BENCH_VERB_DELETE
};

/* One key of an id: what follows the number, and what it names. */
struct bench_key {
    char suffix[BENCH_KEY_MAX + 1];
    size_t suffix_length;
    int slot; /* BENCH_SLOT_WHOLE: the record */
};

struct bench_workload {
    const struct bench_dialect *dialect;
    const struct bench_options *options;
    const struct bench_pattern *pattern;
    struct bench_mix *mix; /* not NULL: everything is its own, the rest is unused */
    enum bench_verb verb;
    enum bench_verify verify;
    bool climbed;       /* incr after a load of our own: answers are above the loaded value */
    uint64_t ids;       /* a request */
    uint64_t hit_below; /* exist: of 2^64, the draws that ask for a loaded member */
    uint64_t random;
    uint64_t next;    /* load: index of the next request */
    const char *end;  /* text: what follows the keys; NULL: the verb's usual */
    const char *head; /* of a key: "feed:" */
    size_t head_length;
    size_t key_count; /* keys an id in a request; in a load they take turns */
    struct bench_key keys[BENCH_SLOTS_MAX];
    void *state; /* the dialect's */
};

/* A workload without keys yet, for a kind of request of mix or to be completed. */
struct bench_workload *bench_workload_begin(const struct bench_options *options,
                                            enum bench_verb verb,
                                            const struct bench_pattern *pattern, uint64_t ids);

/* Adds a key to those of an id: pattern, `between` and name. At most BENCH_SLOTS_MAX. */
void bench_workload_add_key(struct bench_workload *workload, int slot, const char *between,
                            const char *name);

/* Writes what a loaded key holds into BENCH_VALUE_ROOM bytes. Returns its length. */
size_t bench_workload_print_value(const struct bench_workload *workload, uint64_t id, int slot,
                                  char *out);

/* Appends the member of an id, loaded or foreign. */
char *bench_workload_put_member(uint64_t id, char *out);

/* Appends a key: at most BENCH_KEY_TEXT_MAX bytes. */
char *bench_workload_put_key(const struct bench_workload *workload, const struct bench_key *key,
                             uint64_t id, char *out);

/* The longest key, and a space before it. */
size_t bench_workload_key_bytes(const struct bench_workload *workload);

struct bench_asked;

/* One item being judged. */
struct bench_judged {
    const struct bench_workload *workload;
    const uint64_t *ids;
    const struct bench_asked *asked; /* by mix (bench_mix.h); else NULL */
    struct bench_item item;          /* line: as messages show it; data: what a key holds */
    struct bench_reply *reply;
    struct bench_tally *tally;
};

/* Judges the next items with the workload's dialect. Returns the bytes it took. */
size_t bench_judge(struct bench_judged *judged, const char *bytes, size_t length);

struct bench_dialect {
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

/* Appends length bytes; returns the new end. */
static inline char *bench_put(char *out, const char *bytes, size_t length)
{
    __builtin_memcpy(out, bytes, length);
    return out + length;
}

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

/* Returns whether a key is one that was never added. */
bool bench_judged_foreign(const struct bench_judged *judged, uint64_t key);

/* The key is there, the next to be judged; the keys up to `to` are not. */
void bench_judged_found(const struct bench_judged *judged);
void bench_judged_missed(const struct bench_judged *judged, uint64_t to);

/* Counts a mismatch; what is shown is the item's line, after the text of the key if it is named. */
void bench_judged_mismatch(const struct bench_judged *judged, const char *what);
void bench_judged_mismatch_of(const struct bench_judged *judged, const char *what, uint64_t key);

/* Counts the item's line as an error the server answers. */
void bench_judged_error(const struct bench_judged *judged);

/* Returns whether the item's data are what a slot of an id holds, or have the form of it. */
bool bench_judged_value_right(const struct bench_judged *judged, uint64_t id, int slot);

/* The item's line answers an increment: a number, above the loaded one if that is known. */
void bench_judged_incremented(const struct bench_judged *judged);

/* Any other change was made, or there was nothing to change. */
void bench_judged_changed(const struct bench_judged *judged, bool yes);

/* Counts a mismatch after which no reply can be told from another. */
void bench_judged_broken(const struct bench_judged *judged, const char *what);

#endif
