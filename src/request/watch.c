/* watch.c: histograms, hot keys and slow requests of workers. */
#include "request/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/memory.h"

#define MEMBER_SHOWN 24
const char *const watch_class_names[WATCH_CLASSES] = {"get",  "touch",  "store",
                                                      "incr", "delete", "other"};
const char *const watch_tier_names[WATCH_TIERS] = {"memory", "disk", "table", "sync"};

struct watch *watch_create(unsigned workers)
{
    struct watch *watches = memory_zalloc(workers * sizeof(watches[0]));

    for (unsigned i = 0; i < workers; i++) {
        CHECK(pthread_mutex_init(&watches[i].lock, NULL) == 0);
    }
    return watches;
}

void watch_destroy(struct watch *watches, unsigned workers)
{
    for (unsigned i = 0; i < workers; i++) {
        pthread_mutex_destroy(&watches[i].lock);
    }
    free(watches);
}

/* ---- times ---- */

/* The largest time of a bucket. */
static uint64_t bucket_last(size_t bucket)
{
    if (bucket < WATCH_PARTS) {
        return bucket;
    }
    unsigned shift = (unsigned)(bucket >> WATCH_PART_BITS) - 1;

    return ((WATCH_PARTS + bucket % WATCH_PARTS + 1) << shift) - 1;
}

void watch_times(const struct watch *watches, unsigned workers, enum watch_class class,
                 enum watch_tier tier, struct watch_times *times)
{
    size_t first = class == WATCH_CLASSES ? 0 : class;
    size_t last = class == WATCH_CLASSES ? WATCH_CLASSES - 1 : class;

    memset(times, 0, sizeof(*times));
    for (unsigned i = 0; i < workers; i++) {
        for (size_t of = first; of <= last; of++) {
            for (size_t k = 0; k < WATCH_BUCKETS; k++) {
                times->counts[k] += metric_read(&watches[i].latency.counts[of][tier][k]);
            }
            times->sum_us += metric_read(&watches[i].latency.sums_us[of][tier]);
        }
    }
    for (size_t k = 0; k < WATCH_BUCKETS; k++) {
        times->count += times->counts[k];
    }
}

uint64_t watch_quantile(const struct watch_times *times, double share)
{
    uint64_t sum = 0;

    for (size_t k = 0; k < WATCH_BUCKETS && times->count > 0; k++) {
        sum += times->counts[k];
        if ((double)sum >= share * (double)times->count) {
            return bucket_last(k);
        }
    }
    return 0;
}

uint64_t watch_below(const struct watch_times *times, unsigned power)
{
    uint64_t sum = 0;

    for (size_t k = 0; k < WATCH_BUCKETS && bucket_last(k) < 1ull << power; k++) {
        sum += times->counts[k];
    }
    return sum;
}

/* ---- hot keys ---- */

static void halve(struct watch_hot *hot)
{
    hot->total /= 2;
    hot->least /= 2;
    for (size_t i = 0; i < WATCH_HOT; i++) {
        hot->counts[i] /= 2;
        hot->errors[i] /= 2;
    }
}

/* Its counter; WATCH_HOT: it has none. */
static size_t watch_find(const struct watch_hot *hot, uint64_t hash)
{
    size_t at = 0;

    while (at < WATCH_HOT && hot->hashes[at] != hash) {
        at++;
    }
    return at;
}

/* The smallest counter. None is below `least`, so the next one from `hand` on that has no more is
 * it; while keys come once each that is one of the next few. */
static size_t watch_smallest(struct watch_hot *hot)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < WATCH_HOT; i++) {
        size_t at = (hot->hand + i) % WATCH_HOT;

        if (hot->counts[at] <= hot->least) {
            hot->hand = at + 1;
            return at;
        }
        least = hot->counts[at] < least ? hot->counts[at] : least;
    }
    hot->least = least;
    return watch_smallest(hot);
}

/* Returns the counter if it is the key's from now on: it then has to be told which that is. */
static struct watch_key *watch_count_one(struct watch_hot *hot, uint64_t hash)
{
    size_t at = watch_find(hot, hash);
    bool is_new = at == WATCH_HOT;

    if (++hot->total >= WATCH_WINDOW) {
        halve(hot);
    }
    if (is_new) {
        at = watch_smallest(hot);
        hot->hashes[at] = hash;
        hot->errors[at] = hot->counts[at];
    }
    hot->counts[at]++;
    return is_new ? &hot->keys[at] : NULL;
}

void watch_print_key(char text[WATCH_KEY_MAX], const char *key, size_t length)
{
    size_t count = length < WATCH_KEY_MAX ? length : WATCH_KEY_MAX - 1;

    for (size_t i = 0; i < count; i++) {
        text[i] = key[i] > ' ' && key[i] <= '~' ? key[i] : '?';
    }
    text[count] = '\0';
}

static void keep_key(struct watch_key *key, const char *space, uint64_t id, const char *member,
                     size_t member_length)
{
    size_t length = member_length < WATCH_KEY_MAX ? member_length : WATCH_KEY_MAX - 1;

    memcpy(key->space, space, strlen(space) + 1);
    key->id = id;
    key->has_member = member != NULL;
    key->member_length = member != NULL ? length : 0;
    if (member != NULL) {
        memcpy(key->member, member, length);
    }
}

/* What stands for the key: space:id, space:*:member, or a plain key as it is. */
static void print_counted(char text[WATCH_KEY_MAX], enum watch_kind kind,
                          const struct watch_key *key)
{
    char own[WATCH_KEY_MAX] = "";

    watch_print_key(own, key->member, key->member_length);
    if (kind == WATCH_MEMBERS) {
        snprintf(text, WATCH_KEY_MAX, "%s:*:%.*s", key->space, MEMBER_SHOWN, own);
    } else if (key->has_member) {
        memcpy(text, own, WATCH_KEY_MAX);
    } else {
        snprintf(text, WATCH_KEY_MAX, "%s:%" PRIu64, key->space, key->id);
    }
}

void watch_saw(struct watch *watch, enum watch_kind kind, const char *space, uint64_t id,
               const char *member, size_t member_length)
{
    uint64_t what = member != NULL ? hash_bytes(member, member_length, 0) : id;
    uint64_t hash = hash_words2(what, hash_bytes(space, strlen(space), 0), 0) | 1;

    if (pthread_mutex_trylock(&watch->lock) != 0) {
        return;
    }
    struct watch_key *key = watch_count_one(&watch->hot[kind], hash);

    if (key != NULL) {
        keep_key(key, space, id, member, member_length);
    }
    pthread_mutex_unlock(&watch->lock);
}

/* Counters of all workers by their keys. */
struct merged {
    uint64_t hash, sure;
    struct watch_key key;
};

/* Adds a worker's counters to those of the same key. Returns how many there are. */
static size_t merge(const struct watch_hot *hot, struct merged *merged, size_t count)
{
    for (size_t i = 0; i < WATCH_HOT; i++) {
        uint64_t sure = hot->counts[i] - hot->errors[i];
        size_t at = 0;

        while (at < count && merged[at].hash != hot->hashes[i]) {
            at++;
        }
        if (hot->hashes[i] == 0 || sure < 2) {
            continue;
        }
        if (at == count) {
            merged[count++] = (struct merged){.hash = hot->hashes[i], .key = hot->keys[i]};
        }
        merged[at].sure += sure;
    }
    return count;
}

static double worst_of(const struct watch_hot *hot)
{
    uint64_t most = 0;

    for (size_t i = 0; i < WATCH_HOT; i++) {
        uint64_t sure = hot->counts[i] - hot->errors[i];

        most = sure > most ? sure : most;
    }
    return hot->total >= WATCH_SAMPLES_MIN ? (double)most / (double)hot->total : 0;
}

static int compare_merged(const void *left, const void *right)
{
    const struct merged *a = left;
    const struct merged *b = right;

    return a->sure > b->sure ? -1 : a->sure < b->sure;
}

size_t watch_hottest(struct watch *watches, unsigned workers, enum watch_kind kind,
                     struct watch_top *tops, size_t most, double *worst)
{
    struct merged *merged = memory_zalloc(workers * WATCH_HOT * sizeof(merged[0]));
    struct watch_hot *hot = memory_zalloc(sizeof(*hot));
    uint64_t total = 0;
    size_t count = 0;

    *worst = 0;
    for (unsigned i = 0; i < workers; i++) {
        pthread_mutex_lock(&watches[i].lock);
        *hot = watches[i].hot[kind];
        pthread_mutex_unlock(&watches[i].lock);
        count = merge(hot, merged, count);
        total += hot->total;
        *worst = worst_of(hot) > *worst ? worst_of(hot) : *worst;
    }
    qsort(merged, count, sizeof(merged[0]), compare_merged);
    count = count < most ? count : most;
    for (size_t i = 0; i < count; i++) {
        tops[i].share = (double)merged[i].sure / (double)total;
        print_counted(tops[i].key, kind, &merged[i].key);
    }
    free(hot);
    free(merged);
    return count;
}

/* ---- slow requests ---- */

void watch_slow(struct watch *watch, const struct watch_request *request)
{
    if (pthread_mutex_trylock(&watch->lock) == 0) {
        watch->slow[watch->slow_count++ % WATCH_SLOW] = *request;
        pthread_mutex_unlock(&watch->lock);
    }
}

static int compare_requests(const void *left, const void *right)
{
    const struct watch_request *a = left;
    const struct watch_request *b = right;

    return a->at_s > b->at_s ? -1 : a->at_s < b->at_s;
}

size_t watch_slowest(struct watch *watches, unsigned workers,
                     struct watch_request requests[WATCH_SLOW])
{
    struct watch_request *all = memory_zalloc(workers * WATCH_SLOW * sizeof(all[0]));
    size_t count = 0;

    for (unsigned i = 0; i < workers; i++) {
        pthread_mutex_lock(&watches[i].lock);
        uint64_t own = watches[i].slow_count < WATCH_SLOW ? watches[i].slow_count : WATCH_SLOW;

        memcpy(all + count, watches[i].slow, own * sizeof(all[0]));
        pthread_mutex_unlock(&watches[i].lock);
        count += own;
    }
    qsort(all, count, sizeof(all[0]), compare_requests);
    count = count < WATCH_SLOW ? count : WATCH_SLOW;
    memcpy(requests, all, count * sizeof(all[0]));
    free(all);
    return count;
}
