/*
 * table.c: making and unmaking a table, and finding an id's place in it.
 */
#include "counter/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "counter/table_private.h"
#include "row/row_policy.h"

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
    CHECK(t->rem_offset + shape->rem_bytes >= 8);
    /* near_load() of the last place stays in the group. */
    CHECK((shape->places - 1) * shape->payload_bytes + 8 <= shape->group_bytes);
    t->rem_eight = t->rem_offset + shape->rem_bytes - 8;
    t->rem_shift = 64 - 8 * shape->rem_bytes;
    if (shape->rem_bytes == LANE_BYTES) {
        CHECK(t->rem_offset % LANE_BYTES == 0);
        t->lanes_first = t->rem_offset / 8;
        t->lanes_end = (t->rem_offset + LANE_BYTES * shape->places + 7) / 8;
        t->lanes_skip = t->rem_offset % 8 / LANE_BYTES;
    }
}

/* What a group's number leaves of an id. */
static void set_split(struct counter_table *t)
{
    t->rem_bits = t->shape.window_bits - t->shape.group_bits;
}

/* What a dumped table needs as well. */
static bool reserve_stripes(struct counter_table *t)
{
    t->extend_max = t->aux_max = UINT64_MAX;
    t->stripes = memory_region_create(TABLE_STRIPES * sizeof(*t->stripes));
    return t->stripes != NULL;
}

static bool reserve(struct counter_table *t)
{
    uint64_t extend_bytes = t->extend_times * t->shape.extend_bytes;
    t->extend = dict_create(t->shape.payload_bytes, extend_bytes, clock_random());
    t->aux = dict_create(sizeof(uint64_t), t->aux_times * t->shape.aux_bytes, clock_random());
#ifdef ROLLCALL_SHADOW_IDS
    if (t->memory) {
        t->shadow = memory_region_create(t->shape.groups * t->shape.places * sizeof(*t->shadow));
    }
#endif
    if (!t->extend || !t->aux) {
        return false;
    }
    table_dicts_note(t);
    return reserve_stripes(t);
}

/* The numbers no other table has. */
static void set_keys(struct counter_table *t, uint64_t secret, const uint64_t keys[PERMUTE_ROUNDS])
{
    t->secret = secret;
    permute_init(&t->permute, t->shape.window_bits, keys);
    t->row.keys = &t->permute;
}

/* A part takes records of another one as they are. */
static void set_as_part(struct counter_table *t, const struct counter_config *config,
                        const struct row_want *want)
{
    const struct counter_table *of = (const void *)want->part_of;
    t->schema = of->schema;
    t->shape = (struct counter_shape){.table_bytes = want->region_bytes,
                                      .payload_bytes = of->shape.payload_bytes,
                                      .window_bits = of->shape.window_bits};
    counter_shape_part(&t->shape, counter_part_bits(want->base, want->last, of->shape.window_bits));
    table_part_pools(&t->shape, of);
    t->origin = of->origin;
    set_keys(t, of->secret, of->permute.odd);
    counter_table_set_view(t, config);
}

/*
 * A layer is shaped as its root, but where more records fit into it by what the ids of the root
 * have shown: the first table of a row takes any id, and its layers need not. No id comes above the
 * root's frontier; falling ones may go on below the first as far as layers reach. With a log a
 * layer takes any id, too.
 */
static void set_layer_shape(struct counter_table *t, const struct counter_config *config,
                            const struct counter_table *root)
{
    uint64_t first = id_span_first(&root->row.ids);
    uint64_t last = atomic_load(&root->row.frontier);
    struct counter_shape shape;
    if (first > last || root->row.owner == NULL || root->row.owner->log != NULL) {
        return;
    }
    counter_shape_init(&shape, config, row_policy_range(last - first + 1, 1, ROW_LAYERS_MAX + 1));
    if (shape.payload_bytes == root->shape.payload_bytes && shape.capacity > root->shape.capacity) {
        uint64_t mask = UINT64_MAX >> (64 - shape.window_bits);
        t->shape = shape;
        t->origin = last > mask ? last - mask : 0;
    }
}

/* A new table: as the root it is a layer of, or by what is known of its ids. */
static void set_new(struct counter_table *t, const struct counter_config *config,
                    const struct row_want *want)
{
    const struct counter_table *root = (const void *)want->layer_of;
    if (root) {
        t->shape = root->shape;
        t->schema = root->schema;
        t->origin = root->origin;
        set_layer_shape(t, config, root);
    } else {
        counter_schema_init(&t->schema, config);
        counter_shape_init(&t->shape, config, want->first ? 0 : want->range);
        if (want->apart) {
            counter_shape_apart(&t->shape, config);
        }
        bool unsettled = want->first && !config->row.any_ids;
        t->origin = unsettled || want->apart ? TABLE_NO_WINDOW : want->base;
    }
    const uint64_t keys[PERMUTE_ROUNDS] = {clock_random(), clock_random(), clock_random()};
    set_keys(t, clock_random(), keys);
    counter_table_set_view(t, config);
}

/*
 * Makes a table as it was described. Slots that only the configuration names are not learned yet.
 * False: the row's state contradicts the description.
 */
static bool set_described(struct counter_table *t, const struct counter_config *config,
                          const struct row_want *want)
{
    struct table_description is;
    bool unsettled = want->apart || (want->first && !config->row.any_ids);
    bool read = table_description_read(&is, want->description, want->description_bytes);
    if (!read || unsettled != (is.origin == TABLE_NO_WINDOW) ||
        (want->region && is.shape.table_bytes > want->region_bytes)) {
        return false;
    }
    t->shape = is.shape;
    t->schema = is.schema;
    t->origin = is.origin;
    set_keys(t, is.secret, is.odd);
    counter_table_preview(t, config);
    return true;
}

/* Says what a table is. False: nothing that can be. */
static bool set_kind(struct counter_table *t, const struct counter_config *config,
                     const struct row_want *want)
{
    t->root = want->layer_of ? (struct counter_table *)(void *)want->layer_of : t;
    t->extend_times = t->aux_times = want->description ? TABLE_ROOMY : 1;
    if (!want->description && want->part_of) {
        set_as_part(t, config, want);
    } else if (!want->description) {
        set_new(t, config, want);
    } else if (!set_described(t, config, want)) {
        return false;
    }
    CHECK(want->region ? t->shape.table_bytes <= want->region_bytes
                       : want->description || want->apart);
    /* With ids: any there is no row to roll: the table is full when its dict is. */
    t->row.capacity = config->row.any_ids ? UINT64_MAX : t->shape.capacity;
    bool grows = !config->row.any_ids && !want->apart;
    t->row.grows_to = grows ? t->shape.capacity << table_shape_doubles_max(&t->shape) : 0;
    return true;
}

/* The last id of the window; an unsettled table has none, and nothing is ahead of it. */
static uint64_t window_last(const struct counter_table *t)
{
    bool all = t->origin == TABLE_NO_WINDOW || t->permute.mask > ROW_ID_MAX - t->origin;
    return all ? ROW_ID_MAX : t->origin + t->permute.mask;
}

struct counter_table *counter_table_create(const struct counter_config *config,
                                           const struct row_want *want, struct row *row)
{
    struct counter_table *t = NULL;
    if (posix_memalign((void **)&t, MEMORY_LINE_BYTES, sizeof(*t)) != 0) {
        errno = ENOMEM;
        return NULL;
    }
    memset(t, 0, sizeof(*t));
    t->magic = TABLE_MAGIC;
    t->in_row = row;
    t->memory = want->region;
    if (!set_kind(t, config, want)) {
        t->magic = 0;
        free(t);
        errno = EINVAL;
        return NULL;
    }
    set_layout(t);
    set_split(t);
    id_span_clear(&t->row.ids);
    atomic_init(&t->row.apart_first, UINT64_MAX);
    t->row.is_apart = want->apart;
    t->row.sections = COUNTER_TABLE_SECTIONS;
    t->row.section_bytes[COUNTER_TABLE_EXTEND] = t->shape.payload_bytes;
    t->row.section_bytes[COUNTER_TABLE_AUX] = sizeof(uint64_t);
    t->row.window_last = window_last(t);
    if (!(t->memory || want->apart ? reserve(t) : reserve_stripes(t))) {
        counter_table_destroy(t);
        errno = ENOMEM;
        return NULL;
    }
    return t;
}

void table_reshape(struct counter_table *t, unsigned times)
{
    if (times == 0) {
        return;
    }
    CHECK(!t->memory && t->row.capacity == t->shape.capacity);
    table_shape_double(&t->shape, times);
    set_split(t);
    t->row.capacity = t->shape.capacity;
    t->row.fill <<= times;
}

void table_leave_memory(struct counter_table *t)
{
#ifdef ROLLCALL_SHADOW_IDS
    memory_region_destroy(t->shadow, t->shape.groups * t->shape.places * sizeof(*t->shadow));
    t->shadow = NULL;
#endif
    dict_destroy(t->aux);
    dict_destroy(t->extend);
    t->aux = t->extend = NULL;
    t->memory = NULL;
}

void counter_table_destroy(struct counter_table *t)
{
    if (!t) {
        return;
    }
    CHECK(t->magic == TABLE_MAGIC);
    table_leave_memory(t);
    table_overlay_destroy(t->overlay);
    table_overlay_destroy(t->older);
    table_overlay_destroy(t->fold.wider);
    table_file_let_go(t->file);
    memory_region_destroy(t->stripes, TABLE_STRIPES * sizeof(*t->stripes));
    t->magic = 0;
    free(t);
}

const struct counter_shape *counter_table_shape(const struct counter_table *t)
{
    return &t->shape;
}

const struct counter_schema *counter_table_schema(const struct counter_table *t)
{
    return &t->schema;
}

const struct counter_view *counter_table_view(const struct counter_table *t)
{
    return &t->view;
}

bool counter_table_can_view(const struct counter_table *t, const struct counter_config *config)
{
    struct counter_schema learns = t->schema;
    struct counter_view view;
    return counter_view_make(&view, &learns, config);
}

void counter_table_set_view(struct counter_table *t, const struct counter_config *config)
{
    bool viewed = counter_view_make(&t->view, &t->schema, config);
    CHECK(viewed); /* asked before, or every slot is a physical one */
    t->previewed = false;
}

void counter_table_preview(struct counter_table *t, const struct counter_config *config)
{
    struct counter_schema learns = t->schema;
    struct counter_view view;
    if (counter_view_make(&view, &learns, config)) {
        t->view = view;
    }
    t->previewed = true;
}

bool counter_table_is_previewed(const struct counter_table *t)
{
    return t->previewed;
}

void counter_table_restored(struct counter_table *t)
{
    CHECK(t->magic == TABLE_MAGIC && !t->previewed);
    if (t->extend_times > 1 && t->extend) {
        table_dicts_trim(t);
    }
}

void table_set_window(struct counter_table *t, uint64_t low)
{
    uint64_t below = t->permute.mask / WINDOW_BELOW + 1;
    bool all = t->shape.window_bits == TABLE_ID_BITS;
    t->origin = all || low < below ? 0 : low - below;
    t->row.window_last = window_last(t);
}

/* Inlined by force: gcc 12 takes a function that only prefetches for one without effect, and drops
 * its calls. */
static inline __attribute__((always_inline)) void prefetch_group(const struct counter_table *t,
                                                                 uint64_t group, bool for_change)
{
    const char *line = (const char *)group_words(t, group);
    const char *end = line + t->shape.group_bytes;
    if (for_change) {
        do {
            __builtin_prefetch(line, 1, 3);
        } while ((line += MEMORY_LINE_BYTES) < end);
        return;
    }
    do {
        __builtin_prefetch(line, 0, 3);
    } while ((line += MEMORY_LINE_BYTES) < end);
}

static __attribute__((noinline)) void locate_in_part(const struct counter_table *t, uint64_t x,
                                                     bool for_change, struct counter_locus *locus)
{
    table_part_locate(t, x, locus);
    if (t->memory) {
        prefetch_group(t, locus->group, for_change);
    }
}

void counter_table_locate(const struct counter_table *t, uint64_t id, bool for_change,
                          struct counter_locus *locus)
{
    uint64_t inside = id - t->origin; /* below the origin wraps to far above it */
    locus->id = id;
    if (UNLIKELY(inside > t->permute.mask)) {
        locus->rem = 0;
        locus->group = TABLE_OUTSIDE;
        return;
    }
    uint64_t x = permute_forward(&t->permute, inside);
    if (UNLIKELY(t->shape.part_bits != 0)) {
        locate_in_part(t, x, for_change, locus);
        return;
    }
    uint64_t group = x >> t->rem_bits;
    locus->group = group;
    locus->rem = x ^ group << t->rem_bits;
    if (LIKELY(t->memory)) {
        prefetch_group(t, group, for_change);
    }
}

uint64_t table_words_id_of(const struct counter_table *t, unsigned group_bits,
                           const shared_word *words, uint64_t group, uint32_t place, uint32_t word)
{
    uint64_t rem = group_rem(t, words, place);
    bool alternate = group_choices(t, words, word) >> place & 1;
    uint64_t home = alternate ? group_other(t, group, rem_hash(t, rem)) : group;
    if (t->shape.part_bits != 0) {
        return permute_back(&t->permute, table_part_key(t, home, rem)) + t->origin;
    }
    return permute_back(&t->permute, home << (t->shape.window_bits - group_bits) | rem) + t->origin;
}

uint64_t table_words_id(const struct counter_table *t, const shared_word *words, uint64_t group,
                        uint32_t place, uint32_t word)
{
    return table_words_id_of(t, t->shape.group_bits, words, group, place, word);
}

uint64_t table_place_id(const struct counter_table *t, uint64_t group, uint32_t place,
                        uint32_t word)
{
    return table_words_id(t, group_words(t, group), group, place, word);
}

void counter_table_stats(const struct counter_table *t, struct counter_table_stats *stats)
{
    if (!t->extend) {
        *stats = (struct counter_table_stats){
            .records = atomic_load_explicit(&t->row.count, memory_order_relaxed),
            .first_id = id_span_first(&t->row.ids),
            .last_id = id_span_last(&t->row.ids),
            .window_first = t->origin,
            .settled = t->origin != TABLE_NO_WINDOW,
            .cold = true,
        };
        return;
    }
    *stats = (struct counter_table_stats){
        .records = atomic_load_explicit(&t->row.count, memory_order_relaxed),
        .aux = dict_count(t->aux),
        .extend = dict_count(t->extend),
        .aux_used_bytes = dict_used_bytes(t->aux),
        .aux_pool_bytes = dict_pool_bytes(t->aux),
        .aux_entry_bytes = dict_entry_bytes(t->aux),
        .extend_used_bytes = dict_used_bytes(t->extend),
        .extend_pool_bytes = dict_pool_bytes(t->extend),
        .extend_entry_bytes = dict_entry_bytes(t->extend),
        .first_id = id_span_first(&t->row.ids),
        .last_id = id_span_last(&t->row.ids),
        .window_first = t->origin,
        .settled = t->origin != TABLE_NO_WINDOW,
    };
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

void table_shadow_group(const struct counter_table *t, uint64_t group, uint32_t word)
{
    for (uint32_t place = 0; place < group_count(t, word); place++) {
        table_shadow_set(t, group, place, table_place_id(t, group, place, word));
    }
}
#endif
