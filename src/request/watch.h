/*
 * watch.h: what a worker notes of its requests, always on: how long they took, which ids and
 * members are asked for most, and which requests were slow.
 *
 * Latency: log-linear histograms (WATCH_PARTS buckets an octave, so a time is known to 12 %), one a
 * class of commands and a tier: where its time went. They are plain figures (base/metrics.h).
 *
 * Hot keys: Space-Saving on one sampled key in about WATCH_SAMPLE. It keeps WATCH_HOT counters; a
 * key that has none takes the smallest one over, with its count as the error. So a key that is more
 * than 1/WATCH_HOT of the samples is always among them. All counts are halved when WATCH_WINDOW
 * samples were taken: what is told is of the last million keys or two.
 *
 * Slow requests: a ring of the last WATCH_SLOW.
 *
 * Thread rule: a worker writes its own; any thread reads. Hot keys and slow requests have a lock
 * that the worker only tries: while somebody reads, a sample is dropped.
 *
 * Cost to the worker: of its time, the kernel's part included (perf, 100,000 samples), 0.6 % of an
 * increment alone, 0.7 % of 16 pipelined ones, 0.5 % of a page of 20 keys. In instructions
 * (callgrind) 130 a turn, its clock call included, 11 for each further request and 5 a key.
 */
#ifndef ROLLCALL_REQUEST_WATCH_H
#define ROLLCALL_REQUEST_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metrics.h"
#include "engine/engine.h"

#define WATCH_PART_BITS   3
#define WATCH_PARTS       (1u << WATCH_PART_BITS)
#define WATCH_BUCKETS     200 /* to 2^27 us, 134 s; what is longer is in the last */
#define WATCH_SAMPLE      128
#define WATCH_HOT         64
#define WATCH_WINDOW      8192
#define WATCH_SAMPLES_MIN 256 /* fewer say nothing of shares */
#define WATCH_HOT_SHARE   0.05
#define WATCH_SLOW        128
#define WATCH_KEY_MAX     64 /* bytes that are kept of a key; others are cut */

enum watch_class {
    WATCH_GET,
    WATCH_TOUCH, /* gat, touch */
    WATCH_STORE,
    WATCH_INCR, /* and decr */
    WATCH_DELETE,
    WATCH_OTHER,
    WATCH_CLASSES
};
enum watch_tier {
    WATCH_MEMORY,
    WATCH_DISK,  /* a page of a dumped table */
    WATCH_TABLE, /* one to open or to be dumped */
    WATCH_SYNC,  /* room in the journal, or the answer until the journal had the change */
    WATCH_TIERS
};
extern const char *const watch_class_names[WATCH_CLASSES];
extern const char *const watch_tier_names[WATCH_TIERS];

struct watch_latency {
    metric counts[WATCH_CLASSES][WATCH_TIERS][WATCH_BUCKETS];
    metric sums_us[WATCH_CLASSES][WATCH_TIERS];
};

enum watch_kind { WATCH_IDS, WATCH_MEMBERS, WATCH_KINDS };

/* As it came: printed only when somebody looks. */
struct watch_key {
    char space[ENGINE_SPACE_NAME_MAX + 1];
    bool has_member;
    uint64_t id;
    size_t member_length; /* at most WATCH_KEY_MAX - 1; others are cut */
    char member[WATCH_KEY_MAX];
};

/* Counters of one kind; a share is counts[i] less errors[i] of total. */
struct watch_hot {
    uint64_t total;
    uint64_t hashes[WATCH_HOT]; /* 0: free */
    uint64_t counts[WATCH_HOT], errors[WATCH_HOT];
    struct watch_key keys[WATCH_HOT];
    uint64_t least; /* no counter is below it … */
    size_t hand;    /* … and of those that are as low the next one is from here on */
};

struct watch_request {
    uint64_t at_s; /* clock_monotonic_us / 1000000, of its end */
    uint64_t took_us;
    enum watch_class class;
    enum watch_tier tier;
    char key[WATCH_KEY_MAX]; /* the first one; printable */
};

struct watch {
    struct watch_latency latency;
    pthread_mutex_t lock; /* of what follows */
    struct watch_hot hot[WATCH_KINDS];
    struct watch_request slow[WATCH_SLOW];
    uint64_t slow_count; /* so far */
};

struct watch *watch_create(unsigned workers); /* one each; never NULL */
void watch_destroy(struct watch *watches, unsigned workers);

/* ---- the worker ---- */

/* Below WATCH_PARTS us one bucket each; above, WATCH_PARTS to the octave. */
static inline size_t watch_bucket_of(uint64_t us)
{
    if (us < WATCH_PARTS) {
        return (size_t)us;
    }
    unsigned power = 63u ^ (unsigned)__builtin_clzll(us); /* 63 - clz, in one operation */
    unsigned shift = power - WATCH_PART_BITS;
    /* us >> shift: WATCH_PARTS and, below it, the part of the octave */
    size_t bucket = ((size_t)shift << WATCH_PART_BITS) + (us >> shift);

    return bucket < WATCH_BUCKETS ? bucket : WATCH_BUCKETS - 1;
}

static inline void watch_took(struct watch *watch, enum watch_class class, enum watch_tier tier,
                              uint64_t us, uint64_t requests)
{
    metric_add(&watch->latency.counts[class][tier][watch_bucket_of(us)], requests);
    metric_add(&watch->latency.sums_us[class][tier], us * requests);
}

/* Notes one sampled key: its space and id, or its space and member. */
void watch_saw(struct watch *watch, enum watch_kind kind, const char *space, uint64_t id,
               const char *member, size_t member_length);
void watch_slow(struct watch *watch, const struct watch_request *request);
/* Prints at most WATCH_KEY_MAX - 1 bytes of a key; what is not printable ASCII becomes '?'. */
void watch_print_key(char text[WATCH_KEY_MAX], const char *key, size_t length);

/* ---- readers ---- */

struct watch_times {
    uint64_t counts[WATCH_BUCKETS];
    uint64_t count, sum_us;
};
/* Sums the times of all workers. class WATCH_CLASSES: of all classes. */
void watch_times(const struct watch *watches, unsigned workers, enum watch_class class,
                 enum watch_tier tier, struct watch_times *times);
/* The time that a share of the requests did not exceed, in us; 0 of none. */
uint64_t watch_quantile(const struct watch_times *times, double share);
/* How many took less than 2^power us. */
uint64_t watch_below(const struct watch_times *times, unsigned power);

struct watch_top {
    char key[WATCH_KEY_MAX];
    double share; /* of all sampled keys of the kind, at least */
};
/*
 * The hottest keys of all workers, the first the hottest; how many. *worst: the largest share that
 * one has of one worker's keys; 0: too few samples, or none.
 */
size_t watch_hottest(struct watch *watches, unsigned workers, enum watch_kind kind,
                     struct watch_top *tops, size_t most, double *worst);
/* The last slow requests of all workers, the newest first; how many. */
size_t watch_slowest(struct watch *watches, unsigned workers,
                     struct watch_request requests[WATCH_SLOW]);

#endif
