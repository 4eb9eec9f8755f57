/* row_parts_cold.c: parts leave memory and come back. */
#include "base/log.h"
#include "base/point.h"
#include "row/row_data.h"
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
        bytes += row->tables[i]->leaving ? row_part_bytes(row, row->tables[i]) : 0;
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
            coming += row_part_bytes(row, part);
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

bool row_recall_begin(struct row *row, struct row_table *part, struct row_recall *recall)
{
    CHECK(part->cold && !part->merging);
    *recall = (struct row_recall){.serial = part->serial, .base = part->base};
    recall->begun = row->kind->recall_begin(part);
    if (recall->begun == NULL) {
        return false;
    }
    POINT("part comes back");
    part->merging = true; /* nothing else becomes of its file and its overlay meanwhile */
    row->merges++;
    return true;
}

void row_recall_read(const struct row *row, struct row_recall *recall)
{
    recall->read = row->kind->recall_read(recall->begun);
}

static void recall_stand(struct row *row, struct row_table *part, void *begun)
{
    uint64_t bytes = recall_bytes(row, part);
    part->region = row_part_region_of(row, row->kind->recall_end(part, begun), bytes);
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
    atomic_store(&row->wake_due, true);
    if (same && recall->read) {
        recall_stand(row, part, recall->begun);
        return true;
    }
    if (same) {
        CHECK(row_merge_end(row, part, NULL) == NULL);
        row_touch(part); /* an image of both overlays walks dicts that are others now */
        log_warning("a part of a space cannot be read back, and takes no new ids for now space=%s "
                    "part=%llu",
                    row_space_name(row), (unsigned long long)part->serial);
    }
    return false;
}

void row_recall_free(const struct row *row, struct row_recall *recall)
{
    row->kind->recall_free(recall->begun);
    *recall = (struct row_recall){0};
}

bool row_recall_now(struct row *row, struct row_table *part)
{
    struct row_recall recall;
    if (part->merging || !row_recall_begin(row, part, &recall)) {
        return false;
    }
    row_recall_read(row, &recall);
    bool back = row_recall_end(row, &recall);
    row_recall_free(row, &recall);
    return back;
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
