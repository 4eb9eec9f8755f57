/*
 * table.c: making and unmaking a table, and finding an id's place in it.
 */
#include "counter/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "counter/table_private.h"

static uint64_t first_origin(const struct counter_table *t)
{
    /* Without a known spacing the window holds every id; else the first id anchors it. */
    bool all = !t->capped || t->shape.window_bits == 63;
    return all ? 0 : TABLE_UNANCHORED;
}

static void reset_counts(struct counter_table *t)
{
    atomic_store(&t->origin, first_origin(t));
    atomic_store(&t->records, 0);
    id_span_clear(&t->ids);
}

static void set_layout(struct counter_table *t)
{
    const struct counter_shape *shape = &t->shape;
    t->wide = shape->places > TABLE_NARROW_PLACES;
    t->count_mask = t->wide ? 0x3f : 0xf;
    t->choice_mask = (uint32_t)((1ull << shape->places) - 1);
    t->version_one = 1u << (t->wide ? GROUP_WIDE_VERSION : GROUP_CHOICE_SHIFT + shape->places);
    t->page_groups = TABLE_PAGE_BYTES / shape->group_bytes;
    t->rem_offset = shape->group_bytes - shape->meta_bytes - shape->places * shape->rem_bytes;
    CHECK(t->rem_offset >= shape->places * shape->payload_bytes);
}

struct counter_table *counter_table_create(const struct counter_config *config)
{
    struct counter_table *t = NULL;
    if (posix_memalign((void **)&t, MEMORY_LINE_BYTES, sizeof *t) != 0) {
        errno = ENOMEM;
        return NULL;
    }
    memset(t, 0, sizeof *t);
    t->magic = TABLE_MAGIC;
    t->capped = !config->any_ids;
    counter_schema_init(&t->schema, config);
    counter_shape_init(&t->shape, config);
    set_layout(t);
    t->secret = clock_random();
    const uint64_t keys[PERMUTE_ROUNDS] = {clock_random(), clock_random(), clock_random()};
    permute_init(&t->permute, t->shape.window_bits, keys);
    t->memory = memory_region_create(t->shape.table_bytes);
    t->extend = dict_create(t->shape.payload_bytes, t->shape.extend_bytes, clock_random());
    t->aux = dict_create(sizeof(uint64_t), t->shape.aux_bytes, clock_random());
    t->stripes = memory_region_create(TABLE_STRIPES * sizeof *t->stripes);
#ifdef ROLLCALL_SHADOW_IDS
    t->shadow = memory_region_create(t->shape.groups * t->shape.places * sizeof *t->shadow);
#endif
    reset_counts(t);
    if (!t->memory || !t->extend || !t->aux || !t->stripes) {
        counter_table_destroy(t);
        errno = ENOMEM;
        return NULL;
    }
    return t;
}

void counter_table_destroy(struct counter_table *t)
{
    if (!t) {
        return;
    }
    CHECK(t->magic == TABLE_MAGIC);
#ifdef ROLLCALL_SHADOW_IDS
    memory_region_destroy(t->shadow, t->shape.groups * t->shape.places * sizeof *t->shadow);
#endif
    memory_region_destroy(t->stripes, TABLE_STRIPES * sizeof *t->stripes);
    dict_destroy(t->aux);
    dict_destroy(t->extend);
    memory_region_destroy(t->memory, t->shape.table_bytes);
    t->magic = 0;
    free(t);
}

void counter_table_clear(struct counter_table *t)
{
    CHECK(t->magic == TABLE_MAGIC);
    memory_region_clear(t->memory, t->shape.table_bytes);
    dict_clear(t->extend);
    dict_clear(t->aux);
    reset_counts(t);
}

const struct counter_shape *counter_table_shape(const struct counter_table *t)
{
    return &t->shape;
}

struct counter_schema *counter_table_schema(struct counter_table *t)
{
    return &t->schema;
}

/*
 * The first id of a table whose window does not hold every id sets it: a quarter of the window
 * below for late ids, the rest above. Nothing is in the table before, so there is nothing to move.
 */
static uint64_t anchor(const struct counter_table *t, uint64_t id)
{
    uint64_t below = (t->permute.mask >> 2) + 1;
    uint64_t origin = id > below ? id - below : 0;
    uint64_t expected = TABLE_UNANCHORED;
    _Atomic uint64_t *shared = &((struct counter_table *)t)->origin;
    return atomic_compare_exchange_strong(shared, &expected, origin) ? origin : expected;
}

uint64_t counter_table_origin(const struct counter_table *t)
{
    return atomic_load_explicit(&t->origin, memory_order_acquire);
}

static void prefetch_group(const struct counter_table *t, uint64_t group, bool for_change)
{
    const char *line = (const char *)group_words(t, group);
    for (unsigned at = 0; at < t->shape.group_bytes; at += MEMORY_LINE_BYTES) {
        if (for_change) {
            __builtin_prefetch(line + at, 1, 3);
        } else {
            __builtin_prefetch(line + at, 0, 3);
        }
    }
}

void counter_table_locate(const struct counter_table *t, uint64_t id, bool for_change,
                          struct counter_locus *locus)
{
    uint64_t origin = counter_table_origin(t);
    if (UNLIKELY(origin == TABLE_UNANCHORED) && for_change) {
        origin = anchor(t, id);
    }
    locus->id = id;
    locus->rem = 0;
    locus->group = TABLE_OUTSIDE;
    if (UNLIKELY(origin == TABLE_UNANCHORED)) {
        locus->group = TABLE_NOWHERE;
        return;
    }
    if (UNLIKELY(id - origin > t->permute.mask)) {
        return; /* below the origin wraps to far above it */
    }
    uint64_t x = permute_forward(&t->permute, id - origin);
    unsigned rem_bits = t->shape.window_bits - t->shape.group_bits;
    locus->group = x >> rem_bits;
    locus->rem = x & ((1ull << rem_bits) - 1);
    prefetch_group(t, locus->group, for_change);
}

uint64_t table_place_id(const struct counter_table *t, uint64_t group, uint32_t place,
                        uint32_t word)
{
    const shared_word *words = group_words(t, group);
    uint64_t rem = group_rem(t, words, place);
    bool alternate = group_choices(t, words, word) >> place & 1;
    uint64_t home = alternate ? group_other(t, group, rem_hash(t, rem)) : group;
    unsigned rem_bits = t->shape.window_bits - t->shape.group_bits;
    return permute_back(&t->permute, home << rem_bits | rem) + atomic_load(&t->origin);
}

void counter_table_stats(const struct counter_table *t, struct counter_table_stats *stats)
{
    *stats = (struct counter_table_stats){
        .records = atomic_load_explicit(&t->records, memory_order_relaxed),
        .aux = dict_count(t->aux),
        .extend = dict_count(t->extend),
        .aux_used_bytes = dict_used_bytes(t->aux),
        .aux_pool_bytes = dict_pool_bytes(t->aux),
        .aux_entry_bytes = dict_entry_bytes(t->aux),
        .extend_used_bytes = dict_used_bytes(t->extend),
        .extend_pool_bytes = dict_pool_bytes(t->extend),
        .extend_entry_bytes = dict_entry_bytes(t->extend),
        .first_id = id_span_first(&t->ids),
        .last_id = id_span_last(&t->ids),
        .origin = atomic_load_explicit(&t->origin, memory_order_relaxed),
    };
    stats->anchored = stats->origin != TABLE_UNANCHORED;
}

void counter_table_populate(struct counter_table *t, const _Atomic bool *stop)
{
    memory_populate_until(t->memory, t->shape.table_bytes, stop);
}

#ifdef ROLLCALL_SHADOW_IDS
static uint64_t *shadow_at(const struct counter_table *t, uint64_t group, uint32_t place)
{
    return t->shadow + group * t->shape.places + place;
}

void table_shadow_set(const struct counter_table *t, uint64_t group, uint32_t place, uint64_t id)
{
    __atomic_store_n(shadow_at(t, group, place), id, __ATOMIC_RELAXED);
}

void table_shadow_move(const struct counter_table *t, uint64_t group, uint32_t place,
                       uint64_t to_group, uint32_t to_place)
{
    uint64_t id = __atomic_load_n(shadow_at(t, group, place), __ATOMIC_RELAXED);
    table_shadow_set(t, to_group, to_place, id);
}

void table_shadow_check(const struct counter_table *t, uint64_t group, uint32_t place, uint64_t id)
{
    CHECK(__atomic_load_n(shadow_at(t, group, place), __ATOMIC_RELAXED) == id);
}
#else
void table_shadow_set(const struct counter_table *t, uint64_t group, uint32_t place, uint64_t id)
{
    (void)t, (void)group, (void)place, (void)id;
}

void table_shadow_move(const struct counter_table *t, uint64_t group, uint32_t place,
                       uint64_t to_group, uint32_t to_place)
{
    (void)t, (void)group, (void)place, (void)to_group, (void)to_place;
}

void table_shadow_check(const struct counter_table *t, uint64_t group, uint32_t place, uint64_t id)
{
    (void)t, (void)group, (void)place, (void)id;
}
#endif
