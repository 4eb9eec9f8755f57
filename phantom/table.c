/*
 * table.c: the filter, the exceptions and the locks as one.
 */
#include "phantom/table.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/dict.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/verlock.h"
#include "engine/id_span.h"

#define TABLE_MAGIC             0x7068746cu /* "phtl" */
#define EXCEPTIONS_SHARE        32          /* default: this part of the table's size */
#define STRIPES_BYTES           (PHANTOM_STRIPES * sizeof(verlock))
#define STRIPE_VERSION_ONE      2u /* nobody reads it; it keeps the word's form */
#define CHECKED_WHOLE_BYTES_MAX (1ull << 30)

struct phantom_table {
    uint32_t magic;
    struct phantom_shape shape;
    struct phantom_filter filter;
    uint64_t secret;         /* of the filter's hash */
    uint64_t second_secret;  /* of the exceptions' second hash */
    struct dict *exceptions; /* NULL: deletes are off and none stands */
    verlock *stripes;        /* [PHANTOM_STRIPES] */
    _Alignas(MEMORY_LINE_BYTES) _Atomic uint64_t put;
    struct id_span ids;
};

static uint64_t pool_bytes(const struct phantom_config *config)
{
    uint64_t bytes = config->exceptions_bytes;
    bytes = bytes ? bytes : config->table_bytes / EXCEPTIONS_SHARE;
    return bytes < PHANTOM_EXCEPTIONS_BYTES_MIN ? PHANTOM_EXCEPTIONS_BYTES_MIN : bytes;
}

void phantom_shape_init(struct phantom_shape *shape, const struct phantom_config *config)
{
    shape->table_bytes = config->table_bytes;
    shape->exceptions_bytes = config->deletes ? pool_bytes(config) : 0;
    phantom_filter_plan(config->false_positives, &shape->plan);
    shape->capacity =
        (uint64_t)((double)(config->table_bytes / PHANTOM_LINE_BYTES) * shape->plan.load);
}

static void reset_counts(struct phantom_table *t)
{
    atomic_store(&t->put, 0);
    id_span_clear(&t->ids);
}

struct phantom_table *phantom_table_create(const struct phantom_config *config)
{
    struct phantom_table *t = NULL;
    if (posix_memalign((void **)&t, MEMORY_LINE_BYTES, sizeof *t) != 0) {
        errno = ENOMEM;
        return NULL;
    }
    memset(t, 0, sizeof *t);
    t->magic = TABLE_MAGIC;
    phantom_shape_init(&t->shape, config);
    t->secret = clock_random();
    t->second_secret = clock_random();
    t->filter.lines = config->table_bytes / PHANTOM_LINE_BYTES;
    t->filter.bits = t->shape.plan.bits;
    t->filter.words = memory_region_create(config->table_bytes);
    t->stripes = memory_region_create(STRIPES_BYTES);
    reset_counts(t);
    if (!t->filter.words || !t->stripes ||
        !phantom_table_deletes(t, config->deletes, t->shape.exceptions_bytes)) {
        phantom_table_destroy(t);
        errno = ENOMEM;
        return NULL;
    }
    return t;
}

void phantom_table_destroy(struct phantom_table *t)
{
    if (!t) {
        return;
    }
    CHECK(t->magic == TABLE_MAGIC);
    dict_destroy(t->exceptions);
    memory_region_destroy(t->stripes, STRIPES_BYTES);
    memory_region_destroy(t->filter.words, t->shape.table_bytes);
    t->magic = 0;
    free(t);
}

void phantom_table_clear(struct phantom_table *t)
{
    CHECK(t->magic == TABLE_MAGIC);
    memory_region_clear(t->filter.words, t->shape.table_bytes);
    if (t->exceptions) {
        dict_clear(t->exceptions);
    }
    reset_counts(t);
}

const struct phantom_shape *phantom_table_shape(const struct phantom_table *t)
{
    return &t->shape;
}

bool phantom_table_deletes(struct phantom_table *t, bool on, uint64_t exceptions_bytes)
{
    if (on && !t->exceptions) {
        t->exceptions = dict_create(sizeof(uint64_t), exceptions_bytes, clock_random());
        return t->exceptions != NULL;
    }
    if (!on && t->exceptions && dict_count(t->exceptions) == 0) {
        dict_destroy(t->exceptions);
        t->exceptions = NULL;
    }
    return true;
}

/* Seeds are mixed: XXH3 only adds the seed to a short text, so near ids would give one hash. */
uint64_t phantom_table_hash(const struct phantom_table *t, uint64_t id, const char *bytes,
                            size_t length)
{
    return hash_bytes(bytes, length, hash_u64(id ^ t->secret));
}

uint64_t phantom_table_second_hash(const struct phantom_table *t,
                                   const struct phantom_member *member)
{
    return hash_bytes(member->bytes, member->length, hash_u64(member->id ^ t->second_secret));
}

void phantom_table_prefetch(const struct phantom_table *t, uint64_t hash)
{
    phantom_filter_prefetch(&t->filter, hash);
}

/* ---- exceptions ---- */

/* Does an exception stand for it? The second hash only where there is any exception at all. */
static bool excepted(const struct phantom_table *t, const struct phantom_member *member)
{
    if (!t->exceptions || dict_count(t->exceptions) == 0) {
        return false;
    }
    uint64_t second = phantom_table_second_hash(t, member);
    uint64_t value;
    return dict_get(t->exceptions, member->hash, (uint8_t)second, &value) && value == second;
}

bool phantom_table_holds(const struct phantom_table *t, const struct phantom_member *member)
{
    return phantom_filter_holds(&t->filter, member->hash) && LIKELY(!excepted(t, member));
}

/* ---- changes ---- */

/* Members of one hash share their line, so their stripe. */
static verlock *stripe_of(const struct phantom_table *t, const struct phantom_member *member)
{
    return t->stripes + phantom_filter_line(&t->filter, member->hash) % PHANTOM_STRIPES;
}

void phantom_table_lock(struct phantom_table *t, const struct phantom_member *member)
{
    CHECK(t->magic == TABLE_MAGIC);
    (void)verlock_take(stripe_of(t, member));
}

void phantom_table_unlock(struct phantom_table *t, const struct phantom_member *member)
{
    verlock *stripe = stripe_of(t, member);
    uint32_t word = __atomic_load_n(stripe, __ATOMIC_RELAXED);
    CHECK(word & VERLOCK_LOCKED);
    verlock_release(stripe, (word & ~VERLOCK_LOCKED) + STRIPE_VERSION_ONE);
}

bool phantom_table_add(struct phantom_table *t, const struct phantom_member *member)
{
    if (phantom_filter_holds(&t->filter, member->hash)) {
        uint64_t second = phantom_table_second_hash(t, member);
        bool stood = dict_delete(t->exceptions, member->hash, (uint8_t)second);
        CHECK(stood);
        return true;
    }
    if (atomic_fetch_add_explicit(&t->put, 1, memory_order_relaxed) >= t->shape.capacity) {
        atomic_fetch_sub_explicit(&t->put, 1, memory_order_relaxed);
        return false;
    }
    phantom_filter_set(&t->filter, member->hash);
    id_span_note(&t->ids, member->id);
    return true;
}

bool phantom_table_remove(struct phantom_table *t, const struct phantom_member *member)
{
    CHECK(t->exceptions && phantom_filter_holds(&t->filter, member->hash));
    uint64_t second = phantom_table_second_hash(t, member);
    if (dict_get(t->exceptions, member->hash, (uint8_t)second, NULL)) {
        return false; /* another member's, of equal hashes: it must not be overwritten */
    }
    return dict_put(t->exceptions, member->hash, (uint8_t)second, &second);
}

/* ---- figures ---- */

void phantom_table_stats(const struct phantom_table *t, struct phantom_table_stats *stats)
{
    *stats = (struct phantom_table_stats){
        .put = atomic_load_explicit(&t->put, memory_order_relaxed),
        .first_id = id_span_first(&t->ids),
        .last_id = id_span_last(&t->ids),
    };
    if (t->exceptions) {
        stats->exceptions = dict_count(t->exceptions);
        stats->exception_used_bytes = stats->exceptions * dict_entry_bytes(t->exceptions);
        stats->exception_pool_bytes = dict_pool_bytes(t->exceptions);
    }
    /* Deletes of what was only wrongly said to be there can outnumber it. */
    stats->members = stats->put > stats->exceptions ? stats->put - stats->exceptions : 0;
}

double phantom_table_rate(const struct phantom_table *t)
{
    return phantom_filter_rate(&t->filter);
}

void phantom_table_populate(struct phantom_table *t, const _Atomic bool *stop)
{
    memory_populate_until(t->filter.words, t->shape.table_bytes, stop);
}

/* ---- invariants ---- */

static void check_exception(void *context, uint64_t hash, uint8_t sub, const uint64_t *value)
{
    const struct phantom_table *t = context;
    CHECK((uint8_t)*value == sub);
    CHECK(phantom_filter_holds(&t->filter, hash)); /* T4 */
}

void phantom_table_check(const struct phantom_table *t)
{
    CHECK(t->magic == TABLE_MAGIC);
    uint64_t put = atomic_load(&t->put);
    for (size_t i = 0; i < PHANTOM_STRIPES; i++) {
        CHECK(!(__atomic_load_n(&t->stripes[i], __ATOMIC_ACQUIRE) & VERLOCK_LOCKED)); /* T1 */
    }
    CHECK(put <= t->shape.capacity); /* T2 */
    if (t->shape.table_bytes <= CHECKED_WHOLE_BYTES_MAX) {
        uint64_t set = phantom_filter_count(&t->filter);
        CHECK(set <= put * t->filter.bits && (put == 0) == (set == 0)); /* T3 */
    }
    if (t->exceptions) {
        dict_each(t->exceptions, check_exception, (void *)t);
        dict_check(t->exceptions); /* T5 */
    }
}
