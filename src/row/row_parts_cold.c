/* row_parts_cold.c: parts leave memory and come back. */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/point.h"
#include "row/row_data.h"
#include "row/row_fold.h"
#include "row/row_parts.h"

#define PARTS_SPARE_SHARE 32 /* of the memory of parts, one in so many is spare */
#define PARTS_BACK_SHARES 4  /* so many times what is spare is free: parts come back */
#define LEAVES_AT_ONCE    64 /* the log has room for their events */

_Static_assert(LEAVES_AT_ONCE *(ROW_WHOLE_BYTES + 16) <= CHANGE_EVENTS_BYTES_MAX,
               "the log has room for the events of one stop");

/* ---- leaving ---- */

static uint64_t parts_leaving_bytes(const struct row *row)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < row->count; i++) {
        bytes += row->tables[i]->leaving ? row_part_bytes(row->tables[i]) : 0;
    }
    return bytes;
}

/* How full it is, as a share of 1. */
static double part_fullness(const struct row_table *part)
{
    return (double)row_count_of(part) / (double)part->fill;
}

/* One of a version that knew no parts may be too large to come back. */
static bool part_may_leave(const struct row *row, const struct row_table *part)
{
    return !row_is_going(part) && part->region->bytes <= row_part_bytes_max(&row->config);
}

/* The emptiest: it comes back to grow last. One that grows now only if it is the last. NULL: none
 * may. */
static struct row_table *parts_victim(const struct row *row, const struct row_table *needed)
{
    struct row_table *found = NULL;
    for (size_t i = 0; i < row->count; i++) {
        struct row_table *part = row->tables[i];
        bool may = part != needed && part_may_leave(row, part);
        bool better = found == NULL || (may && part_fullness(part) < part_fullness(found));
        found = may && better ? part : found;
    }
    return found;
}

bool row_parts_leave(struct row *row, const struct row_table *needed, uint64_t bytes)
{
    uint64_t coming = parts_leaving_bytes(row);
    bool may = row_dumps(row) && !row->dump_failed;
    for (unsigned i = 0; may && coming < bytes && i < LEAVES_AT_ONCE; i++) {
        struct row_table *part = parts_victim(row, needed);
        may = part != NULL && (part->whole || row_keep_log_room(row));
        if (may) {
            row_cold_leave(row, part);
            coming += row_part_bytes(part);
        }
    }
    row_cold_see(row);
    return coming > 0 && !row->dump_failed;
}

static uint64_t parts_spare(const struct row *row)
{
    return (row_parts_bytes(row) + row_parts_left(row)) / PARTS_SPARE_SHARE;
}

void row_parts_keep_spare(struct row *row)
{
    uint64_t left = row_parts_left(row);
    uint64_t spare = parts_spare(row);
    if (row_dumps(row) && left < spare / 2) {
        (void)row_parts_leave(row, NULL, spare - left);
    }
}

/* ---- coming back ---- */

static uint64_t recall_bytes(const struct row *row, const struct row_table *part)
{
    unsigned char description[ROW_DESCRIPTION_MAX];
    size_t length = row->kind->describe(part, description, NULL);
    return row->kind->described_bytes(description, length);
}

uint64_t row_recall_needs(const struct row *row, const struct row_table *part)
{
    uint64_t bytes = recall_bytes(row, part);
    return 2 * (bytes + bytes / ROW_PART_POOLS); /* it grows at once, into another one */
}

/* A table as the part is described, in memory of its own. NULL: memory is refused. */
static struct row_table *recall_make(struct row *row, const struct row_table *part)
{
    unsigned char description[ROW_DESCRIPTION_MAX];
    struct row_want want = {.base = part->base,
                            .description = description,
                            .description_bytes = row->kind->describe(part, description, NULL)};
    uint64_t bytes = recall_bytes(row, part);
    void *memory = memory_region_create(bytes);
    if (memory == NULL) {
        return NULL;
    }
    struct row_region *region = row_part_region_of(row, memory, bytes);
    struct row_table *loaded = row_make_table(row, &want, part->last, region);
    if (loaded == NULL) {
        row_part_region_give(row, region);
    }
    return loaded;
}

bool row_recall_begin(struct row *row, struct row_table *part, struct row_recall *recall)
{
    CHECK(part->cold && !part->merging && part->file != NULL);
    *recall = (struct row_recall){
        .serial = part->serial, .base = part->base, .part = part, .file = part->file};
    struct row_table *loaded = recall_make(row, part);
    if (loaded == NULL || !row->kind->file_begin(part, row->cold, 0)) {
        if (loaded != NULL) {
            row_retire_one(row, loaded);
        }
        return false;
    }
    POINT("part comes back");
    recall->loaded = loaded;
    part->merging = true; /* nothing else becomes of its file and its overlay meanwhile */
    row->merges++;
    return true;
}

void row_recall_read(const struct row *row, struct row_recall *recall)
{
    static const _Atomic bool never = false;
    _Atomic uint64_t done = 0;
    char error[ENGINE_ERROR_MAX];
    recall->read = row->kind->load(row->engine, recall->loaded, recall->file, &done, &never, error);
    if (!recall->read) {
        log_warning("%s", error);
    }
    recall->read = recall->read && row->kind->recall(recall->part, recall->loaded, false);
}

static void recall_stand(struct row *row, struct row_table *part, struct row_table *loaded)
{
    (void)row->kind->recall(part, loaded, true);
    part->region = loaded->region;
    loaded->region = NULL;
    part->cold = false;
    part->merging = false;
    CHECK(row->merges > 0);
    row->merges--;
    row_parts_charge(row);
    POINT("part is back");
}

bool row_recall_end(struct row *row, const struct row_recall *recall)
{
    struct row_table *part = row_find(row, recall->base);
    bool same = part != NULL && part->serial == recall->serial && part->merging;
    bool back = same && recall->read;
    atomic_store(&row->wake_due, true);
    if (back) {
        recall_stand(row, part, recall->loaded);
    } else if (same) {
        row_fold_begin(row, part);
        atomic_store(&row->merges_us, clock_monotonic_us()); /* the next round folds it, at once */
        row_notify(row->imager);
        log_warning("a part of a space cannot be read back, and takes no new ids for now space=%s "
                    "part=%llu",
                    row_space_name(row), (unsigned long long)part->serial);
    }
    row_retire_one(row, recall->loaded);
    return back;
}

bool row_recall_now(struct row *row, struct row_table *part)
{
    struct row_recall recall;
    if (part->merging || !row_recall_begin(row, part, &recall)) {
        return false;
    }
    row_recall_read(row, &recall);
    return row_recall_end(row, &recall);
}

/* The fullest: it would have to come back first. NULL: there is none, or no room. */
struct row_table *row_recall_due(const struct row *row)
{
    struct row_table *found = NULL;
    for (size_t i = 0; i < row->count; i++) {
        struct row_table *part = row->tables[i];
        bool may = part->cold && !part->merging && !part->refused;
        bool better = found == NULL || (may && part_fullness(part) > part_fullness(found));
        found = may && better ? part : found;
    }
    bool room = found != NULL && row_parts_left(row) > PARTS_BACK_SHARES * parts_spare(row) +
                                                           row_recall_needs(row, found);
    return room ? found : NULL;
}
