/* row_regions.c: the memory of tables. The list and what it says are under the row's lock; the
 * system is asked without it. Only the keeper adds and takes away. */
#include "row/row_parts.h"

#include "base/log.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

#define POPULATE_STEP_BYTES (16u << 20) /* about 5 ms */

static struct row_region *make_region(uint64_t bytes)
{
    void *memory = memory_region_create(bytes);
    if (memory == NULL) {
        return NULL;
    }
    struct row_region *region = memory_zalloc(sizeof(*region));
    region->memory = memory;
    region->bytes = bytes;
    return region;
}

static void destroy_region(struct row_region *region)
{
    memory_region_destroy(region->memory, region->bytes);
    free(region);
}

/* Makes one more, taken or free. NULL: memory is refused. */
static struct row_region *add_region(struct row *row, uint64_t bytes, bool used)
{
    struct row_region *region = make_region(bytes);
    if (region == NULL) {
        return NULL;
    }
    region->used = used;
    row_lock(row);
    row->regions[row->region_count++] = region;
    row_unlock(row);
    return region;
}

static uint64_t budget_of(const struct row *row)
{
    return row->config.tables * row->config.table_bytes;
}

/* Under the lock. */
static uint64_t held_bytes(const struct row *row)
{
    uint64_t held = 0;
    for (size_t i = 0; i < row->region_count; i++) {
        held += row->regions[i]->bytes;
    }
    return held;
}

uint64_t row_held_bytes(const struct row *row)
{
    row_lock(row);
    uint64_t held = held_bytes(row);
    row_unlock(row);
    return held + atomic_load(&row->loose_bytes);
}

size_t row_regions_free(const struct row *row)
{
    size_t n = 0;
    row_lock(row);
    for (size_t i = 0; i < row->region_count; i++) {
        n += !row->regions[i]->used && row->regions[i]->bytes == row->config.table_bytes;
    }
    row_unlock(row);
    return n;
}

/* Of it and its layers. */
static uint64_t stays_bytes(const struct row_table *table)
{
    uint64_t bytes = 0;
    for (; table != NULL; table = table->further) {
        bytes += !table->cold && !table->leaving ? table->region->bytes : 0;
    }
    return bytes;
}

bool row_fits(const struct row *row, size_t more)
{
    uint64_t used = 0;
    for (size_t i = 0; i < row->count; i++) {
        used += stays_bytes(row->tables[i]);
    }
    return used + more * row->config.table_bytes <= budget_of(row);
}

bool row_regions_init(struct row *row)
{
    for (unsigned i = 0; i < row->config.tables && !row->parted; i++) {
        struct row_region *region = make_region(row->config.table_bytes);
        if (region == NULL) {
            int error = errno;
            row_regions_fini(row);
            errno = error;
            return false;
        }
        row->regions[row->region_count++] = region;
    }
    return true;
}

void row_regions_fini(struct row *row)
{
    while (row->region_count > 0) {
        struct row_region *region = row->regions[--row->region_count];
        CHECK(region->pins == 0);
        destroy_region(region);
    }
}

static struct row_region *take(struct row *row, uint64_t least, uint64_t most)
{
    struct row_region *found = NULL;
    row_lock(row);
    for (size_t i = 0; i < row->region_count && found == NULL; i++) {
        struct row_region *region = row->regions[i];
        if (!region->used && least <= region->bytes && region->bytes <= most) {
            found = region;
            found->used = true;
        }
    }
    row_unlock(row);
    return found;
}

struct row_region *row_region_take(struct row *row)
{
    if (row->parted) {
        return row_part_region(row, row_part_first_bytes(&row->config));
    }
    return take(row, row->config.table_bytes, row->config.table_bytes);
}

struct row_region *row_region_take_for(struct row *row, uint64_t bytes)
{
    return take(row, bytes, UINT64_MAX);
}

/* Under the lock: takes it off the list. True: the caller destroys it; else the last pin does. */
static bool take_away(struct row *row, struct row_region *region)
{
    size_t i = 0;
    while (row->regions[i] != region) {
        i++;
        CHECK(i < row->region_count);
    }
    row->regions[i] = row->regions[--row->region_count];
    region->gone = true;
    return region->pins == 0;
}

void row_region_clear(struct row *row, struct row_region *region)
{
    memory_region_clear(region->memory, region->bytes);
    row_lock(row);
    CHECK(region->used);
    region->resident = 0;
    row_unlock(row);
}

void row_region_give(struct row *row, struct row_region *region)
{
    if (region == NULL) {
        return;
    }
    if (region->loose) {
        row_part_region_give(row, region);
        return;
    }
    row_region_clear(row, region);
    row_lock(row);
    region->used = false;
    region->left = false;
    row_unlock(row);
}

void row_region_leave(struct row *row, struct row_region *region)
{
    row_lock(row);
    region->left = true;
    if (region->loose) {
        region->next_left = row->parts_left;
        row->parts_left = region;
    }
    row_unlock(row);
}

static struct row_region *next_left(struct row *row)
{
    row_lock(row);
    struct row_region *found = row->parts_left;
    row->parts_left = found != NULL ? found->next_left : NULL;
    for (size_t i = 0; i < row->region_count && found == NULL; i++) {
        found = row->regions[i]->left ? row->regions[i] : NULL;
    }
    row_unlock(row);
    return found;
}

void row_regions_give_left(struct row *row)
{
    for (struct row_region *left = next_left(row); left != NULL; left = next_left(row)) {
        row_region_give(row, left);
    }
}

/* Under the lock: regions of the configured size. */
static size_t configured(const struct row *row)
{
    size_t n = 0;
    for (size_t i = 0; i < row->region_count; i++) {
        n += row->regions[i]->bytes == row->config.table_bytes;
    }
    return n;
}

/* Returns whether one region more than the budget allows may be held: the first of a new size.
 * Under the lock. */
static bool first_of_size(const struct row *row, size_t have)
{
    return row_keeps_spare(row) && configured(row) == have;
}

/* Gives back a free region that is of no use with this configuration, or any; false: there is none.
 */
static bool drop_one(struct row *row, bool any)
{
    struct row_region *surplus = NULL;
    bool destroy = false;
    row_lock(row);
    bool over = any || (held_bytes(row) > budget_of(row) && !first_of_size(row, 1));
    for (size_t i = 0; i < row->region_count && surplus == NULL; i++) {
        struct row_region *region = row->regions[i];
        if (!region->used && (over || region->bytes != row->config.table_bytes)) {
            surplus = region;
            destroy = take_away(row, region);
        }
    }
    row_unlock(row);
    if (destroy) {
        destroy_region(surplus);
    }
    return surplus != NULL;
}

/*
 * Bytes of a region that is missing; 0: none is. The first of a new size may be one too many: where
 * a single older one is larger than all that is configured, nothing could ever take its place else.
 */
static uint64_t missing_bytes(const struct row *row)
{
    row_lock(row);
    uint64_t bytes = row->config.table_bytes;
    bool fits = held_bytes(row) + bytes <= budget_of(row);
    bool missing =
        !row->parted && (fits || first_of_size(row, 0)) && row->region_count < ROW_TABLES_MAX;
    row_unlock(row);
    return missing ? bytes : 0;
}

static bool is_full(const struct row *row)
{
    row_lock(row); /* the keeper may be taking one away */
    bool full = row->region_count == ROW_REGIONS_MAX;
    row_unlock(row);
    return full;
}

/* Obtains a region for a restored row: tables have the bytes they had, whatever the configuration
 * says by now. */
struct row_region *row_region_obtain(struct row *row, uint64_t bytes)
{
    if (row->parted) {
        return row_part_region(row, bytes);
    }
    struct row_region *region = take(row, bytes, bytes);
    if (region == NULL && (!is_full(row) || drop_one(row, true))) {
        region = add_region(row, bytes, true);
        row->untidy = row->untidy || region != NULL;
    }
    return region;
}

void row_flush_ready(struct row *row)
{
    if (!row->parted && !is_full(row) && row_regions_free(row) == 0) {
        (void)add_region(row, row->config.table_bytes, false);
    }
}

void row_regions_tidy(struct row *row)
{
    while (drop_one(row, false)) {
    }
    for (uint64_t bytes = missing_bytes(row); bytes != 0; bytes = missing_bytes(row)) {
        if (add_region(row, bytes, false) == NULL) {
            log_warning("no memory for another table space=%s bytes=%llu", row_space_name(row),
                        (unsigned long long)bytes);
            return;
        }
    }
}

/* Pins the next region with a part to make resident, tables first. */
static struct row_region *pin_next(struct row *row, uint64_t *start, uint64_t *bytes)
{
    struct row_region *next = NULL;
    row_lock(row);
    for (size_t i = 0; i < row->region_count; i++) {
        struct row_region *region = row->regions[i];
        if (region->resident < region->bytes && (next == NULL || (region->used && !next->used))) {
            next = region;
        }
    }
    if (next != NULL) {
        uint64_t left = next->bytes - next->resident;
        *start = next->resident;
        *bytes = left < POPULATE_STEP_BYTES ? left : POPULATE_STEP_BYTES;
        next->resident += *bytes;
        next->pins++;
    }
    row_unlock(row);
    return next;
}

bool row_populate_step(struct row *row)
{
    uint64_t start;
    uint64_t bytes;
    struct row_region *region = pin_next(row, &start, &bytes);
    if (region == NULL) {
        return false;
    }
    bool done = memory_populate((char *)region->memory + start, bytes);
    row_lock(row);
    if (!done) {
        region->resident = region->bytes; /* the first use of a page will do it */
    }
    region->pins--;
    bool destroy = region->gone && region->pins == 0;
    row_unlock(row);
    if (destroy) {
        destroy_region(region);
    }
    return true;
}

void row_populate(struct row *row, const _Atomic bool *stop)
{
    while (!*stop && row_populate_step(row)) {
    }
}
