/*
 * table.c: life of a table, checks and changes: the filter, its layer and the exceptions as one.
 */
#include "phantom/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/point.h"
#include "phantom/table_private.h"
#include "store/table_file.h"

#define STRIPE_VERSION_ONE 2u /* nobody reads it; it keeps the word's form */
#define DESCRIBED_POOLS    2  /* times as large: what was in them by another hash must fit */
#define APART_PART         4  /* one place in this many for what is apart stays free */

/* ---- life ---- */

static const struct phantom_table *phantom_table_own(const struct row_table *table)
{
    return (const struct phantom_table *)table;
}

static uint64_t phantom_window_last(const struct row_want *want)
{
    uint64_t width;
    uint64_t last;
    if (want->range == 0 || __builtin_mul_overflow(want->range, PHANTOM_WINDOW_RANGES, &width) ||
        __builtin_add_overflow(want->base, width, &last) || last > ROW_ID_MAX) {
        return ROW_ID_MAX;
    }
    return last;
}

/* A dict in `times` the pool; *places: what of it is to be used. NULL: memory is refused. */
static struct dict *create_pool(size_t value_bytes, uint64_t bytes, unsigned times,
                                uint64_t *places)
{
    struct dict *dict = dict_create(value_bytes, times * bytes, clock_random());
    *places = dict ? dict_places(dict) / times : 0;
    return dict;
}

static bool create_exceptions(struct phantom_table *t, uint64_t bytes, unsigned times)
{
    t->exceptions = create_pool(sizeof(uint64_t), bytes, times, &t->exceptions_max);
    t->shape.exceptions_bytes = t->exceptions ? bytes : 0;
    return t->exceptions != NULL;
}

static bool create_apart(struct phantom_table *t, unsigned times)
{
    uint64_t places;
    t->apart = create_pool(PHANTOM_APART_VALUE_BYTES, t->shape.apart_bytes, times, &places);
    t->apart_max = places / APART_PART * (APART_PART - 1);
    return t->apart != NULL;
}

static bool create_own_parts(struct phantom_table *t, const struct row_want *want)
{
    unsigned times = want->description ? DESCRIBED_POOLS : 1;
    if (want->apart) {
        return create_apart(t, times);
    }
    t->stripes = memory_region_create(PHANTOM_STRIPES_BYTES);
    return t->stripes &&
           (!t->shape.exceptions_bytes || create_exceptions(t, t->shape.exceptions_bytes, times));
}

static bool same_filter(const struct phantom_shape *a, const struct phantom_shape *b)
{
    return a->table_bytes == b->table_bytes && a->capacity == b->capacity &&
           a->plan.bits == b->plan.bits;
}

/* What is wanted; `usual` is of the configuration. False: what is described cannot be. */
static bool choose_shape(struct phantom_shape *shape, const struct phantom_shape *usual,
                         const struct row_want *want)
{
    struct phantom_shape described;
    if (want->description &&
        !phantom_shape_read(&described, want->description, want->description_bytes)) {
        return false;
    }
    if (want->layer_of) {
        *shape = phantom_table_own(want->layer_of)->shape;
        shape->exceptions_bytes = 0;
        shape->apart_bytes = 0;
        CHECK(!want->region || want->region_bytes >= shape->table_bytes);
        return !want->description || same_filter(shape, &described);
    }
    if (want->description) {
        *shape = described;
        return (!want->region || want->region_bytes >= shape->table_bytes) &&
               (shape->apart_bytes != 0) == want->apart;
    }
    *shape = *usual;
    if (want->apart) {
        shape->exceptions_bytes = 0;
        return true;
    }
    shape->apart_bytes = 0;
    if (want->region_bytes < shape->table_bytes) { /* of before, when all was cleared */
        phantom_shape_size(shape, want->region_bytes);
    }
    return true;
}

struct phantom_table *phantom_table_create(const struct phantom_shape *shape,
                                           const struct phantom_secrets *secrets,
                                           const struct row_want *want)
{
    struct phantom_shape wanted;
    if (!choose_shape(&wanted, shape, want)) {
        errno = EINVAL;
        return NULL;
    }
    struct phantom_table *t = NULL;
    if (posix_memalign((void **)&t, MEMORY_LINE_BYTES, sizeof(*t)) != 0) {
        errno = ENOMEM;
        return NULL;
    }
    memset(t, 0, sizeof(*t));
    t->magic = PHANTOM_TABLE_MAGIC;
    t->shape = wanted;
    t->secrets = *secrets;
    t->filter.lines = t->shape.table_bytes / PHANTOM_LINE_BYTES;
    t->filter.bits = t->shape.plan.bits;
    t->filter.words = want->region;
    t->row.capacity = t->shape.capacity;
    t->row.window_last = phantom_window_last(want);
    t->row.is_apart = want->apart;
    /* All, even if there is no such dict yet: deletes may be turned on meanwhile. */
    t->row.sections = want->layer_of ? 0 : PHANTOM_SECTIONS;
    t->row.section_bytes[PHANTOM_SECTION_EXCEPTIONS] = sizeof(uint64_t);
    t->row.section_bytes[PHANTOM_SECTION_APART] = PHANTOM_APART_VALUE_BYTES;
    t->row.section_bytes[PHANTOM_SECTION_LINES] = PHANTOM_LINE_BYTES;
    atomic_init(&t->row.apart_first, UINT64_MAX);
    if (!want->layer_of && !create_own_parts(t, want)) {
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
    CHECK(t->magic == PHANTOM_TABLE_MAGIC);
    phantom_dump_release(t->dump);
    dict_destroy(t->exceptions);
    dict_destroy(t->apart);
    memory_region_destroy(t->stripes, PHANTOM_STRIPES_BYTES);
    t->magic = 0;
    free(t);
}

const struct phantom_shape *phantom_table_shape(const struct phantom_table *t)
{
    return &t->shape;
}

bool phantom_table_deletes(struct phantom_table *t, bool on, uint64_t exceptions_bytes)
{
    if (t->apart) {
        return true;
    }
    if (on && !t->exceptions) {
        return create_exceptions(t, phantom_exceptions_pool(t->shape.table_bytes, exceptions_bytes),
                                 1);
    }
    if (!on && t->exceptions && dict_count(t->exceptions) == 0) {
        dict_destroy(t->exceptions);
        t->exceptions = NULL;
        t->shape.exceptions_bytes = 0;
    }
    return true;
}

/* ---- hashes ---- */

/* Seeds are mixed: XXH3 only adds the seed to a short text, so near ids would give one hash. */
uint64_t phantom_hash_long(const struct phantom_secrets *secrets, uint64_t id, const char *bytes,
                           size_t length)
{
    return hash_bytes(bytes, length, hash_u64(id ^ secrets->first));
}

uint64_t phantom_second_hash(const struct phantom_secrets *secrets,
                             const struct phantom_member *member)
{
    return hash_bytes(member->bytes, member->length, hash_u64(member->id ^ secrets->second));
}

/* ---- is it there? ---- */

/* Returns whether the frontier has reached the id, so that its bits may have been set. */
static bool reached(const struct phantom_table *t, uint64_t id)
{
    return t->row.closed || !phantom_apart_of(t) ||
           id <= atomic_load_explicit(&t->row.frontier, memory_order_relaxed);
}

bool phantom_exception_stands(const struct phantom_table *t, uint64_t hash, uint64_t second)
{
    uint64_t value;
    return t->exceptions && dict_count(t->exceptions) != 0 &&
           dict_get(t->exceptions, hash, (uint8_t)second, &value) && value == second;
}

/* Returns whether an exception stands for it. The second hash is made only if there is any
 * exception at all. */
static bool excepted(const struct phantom_table *t, const struct phantom_member *member)
{
    return t->exceptions && dict_count(t->exceptions) != 0 &&
           phantom_exception_stands(t, member->hash, phantom_second_hash(&t->secrets, member));
}

bool phantom_table_confirms(const struct phantom_table *t, const struct phantom_member *member)
{
    return LIKELY(reached(t, member->id)) && LIKELY(!excepted(t, member));
}

/* ---- changes ---- */

/* Pairs of one line share their stripe, in a layer too: it has the same lines. */
static verlock *phantom_table_stripe(const struct phantom_table *t,
                                     const struct phantom_member *member)
{
    return t->stripes + phantom_filter_line(&t->filter, member->hash) % PHANTOM_STRIPES;
}

void phantom_table_lock(struct phantom_table *t, const struct phantom_member *member)
{
    CHECK(t->magic == PHANTOM_TABLE_MAGIC && t->stripes);
    (void)verlock_take(phantom_table_stripe(t, member));
}

void phantom_table_unlock(struct phantom_table *t, const struct phantom_member *member)
{
    verlock *stripe = phantom_table_stripe(t, member);
    uint32_t word = __atomic_load_n(stripe, __ATOMIC_RELAXED);
    CHECK(word & VERLOCK_LOCKED);
    verlock_release(stripe, (word & ~VERLOCK_LOCKED) + STRIPE_VERSION_ONE);
}

struct phantom_table *phantom_table_holder(struct phantom_table *t)
{
    return phantom_table_of(row_last_layer(&t->row));
}

void phantom_table_set_bits(struct phantom_table *t, uint64_t hash)
{
    struct phantom_table *holder = phantom_table_holder(t);
    row_changed(&holder->row);
    if (LIKELY(holder->filter.words != NULL)) {
        phantom_filter_set(&holder->filter, hash);
    }
    if (UNLIKELY(holder->dump != NULL)) {
        uint64_t line = phantom_filter_line(&holder->filter, hash);
        bool added = phantom_dump_add(holder->dump, line, holder->filter.bits, hash);
        CHECK(added || row_tap_is_given_up(&holder->row));
    }
}

enum row_verdict phantom_table_add(struct row *row, struct phantom_table *t,
                                   const struct phantom_member *member, enum change_place *place)
{
    if (phantom_exception_stands(t, member->hash, member->second)) {
        row_changed(&t->row);
        CHECK(dict_delete(t->exceptions, member->hash, (uint8_t)member->second));
        *place = CHANGE_THERE;
        return ROW_INSIDE;
    }
    enum row_verdict verdict = row_admit(row, &t->row, member->id);
    *place = verdict == ROW_APART ? CHANGE_APART : CHANGE_INSIDE;
    if (verdict == ROW_INSIDE) {
        phantom_table_set_bits(t, member->hash);
    } else if (verdict == ROW_APART && !phantom_apart_put(phantom_apart_of(t), member)) {
        row_removed(row->apart, row->apart, member->id);
        return row_too_far(row, &t->row, member->id);
    }
    return verdict;
}

/* Makes an exception; false: no room, or the key is another pair's, which must stay. */
static bool except(struct phantom_table *t, const struct phantom_member *member)
{
    CHECK(t->exceptions);
    uint8_t sub = (uint8_t)member->second;
    return dict_count(t->exceptions) < t->exceptions_max &&
           !dict_get(t->exceptions, member->hash, sub, NULL) &&
           dict_put(t->exceptions, member->hash, sub, &member->second);
}

bool phantom_table_remove(struct phantom_table *t, const struct phantom_member *member,
                          const struct phantom_lines *lines, enum change_place *place)
{
    bool in_place = phantom_table_filtered_by(t, member->hash, lines) && reached(t, member->id) &&
                    !phantom_exception_stands(t, member->hash, member->second);
    row_changed(&t->row);
    /* The exception first: it may fail. What is apart may pass for being in place as well. */
    if (in_place && !except(t, member)) {
        return false;
    }
    struct phantom_table *beside = phantom_apart_of(t);
    bool apart = row_may_be_apart(&t->row, member->id) && phantom_apart_remove(beside, member);
    if (apart) {
        row_removed(&beside->row, &beside->row, member->id);
    }
    POINT("exception made, before the LSN");
    CHECK(in_place || apart);
    *place = !apart ? CHANGE_INSIDE : !in_place ? CHANGE_APART : CHANGE_BOTH;
    return true;
}

/* ---- figures ---- */

static void add_pool(struct phantom_table_stats *stats, const struct dict *dict)
{
    stats->pools_used_bytes += dict_count(dict) * dict_entry_bytes(dict);
    stats->pools_bytes += dict_pool_bytes(dict);
}

static uint64_t in_filter(const struct phantom_table *holder)
{
    return atomic_load_explicit(&holder->row.count, memory_order_relaxed);
}

/* Of the table or of its layer. */
static void add_holder(struct phantom_table_stats *stats, const struct phantom_table *holder)
{
    const struct phantom_dump *dump = holder->dump;
    stats->put += in_filter(holder);
    stats->capacity += holder->apart ? 0 : holder->shape.capacity;
    stats->layers++;
    if (dump) {
        stats->overlay_lines += phantom_dump_lines(dump);
        stats->overlay_pools_bytes += phantom_dump_pool_bytes(dump);
    }
    if (phantom_table_is_cold(holder)) {
        const struct table_file *file = phantom_dump_file(dump);
        stats->cold++;
        stats->put_cold += in_filter(holder);
        stats->file_bytes += table_file_info(file)->file_bytes;
        stats->files_held_bytes += table_file_memory_bytes(file);
    }
}

void phantom_table_stats(const struct phantom_table *t, struct phantom_table_stats *stats)
{
    *stats = (struct phantom_table_stats){0};
    for (const struct row_table *layer = &t->row; layer; layer = layer->further) {
        add_holder(stats, phantom_table_own(layer));
    }
    if (t->exceptions) {
        stats->exceptions = dict_count(t->exceptions);
        stats->exceptions_bytes = dict_pool_bytes(t->exceptions);
        add_pool(stats, t->exceptions);
    }
    if (t->apart) {
        add_pool(stats, t->apart);
    }
    /* Deletes of what was only wrongly said to be there can outnumber it. */
    stats->members = stats->put > stats->exceptions ? stats->put - stats->exceptions : 0;
}

static double rate_of(const struct phantom_table *holder)
{
    const struct phantom_filter *filter = &holder->filter;
    return filter->words ? phantom_filter_rate(filter)
                         : phantom_filter_rate_at(filter->bits, (double)in_filter(holder) /
                                                                    (double)filter->lines);
}

double phantom_table_rate(const struct phantom_table *t)
{
    double right = 1;
    for (const struct row_table *layer = &t->row; layer; layer = layer->further) {
        right *= 1 - rate_of(phantom_table_own(layer));
    }
    return 1 - right;
}
