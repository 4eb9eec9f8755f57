/* repair_segments.c: which segments a journal has, and which it must have had: headers that are
 * damaged and files that are missing are made again of what their neighbours say. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "store/journal_salvage.h"
#include "tools/rollcall/repair_private.h"

/* A new last one. */
static struct repair_segment *repair_segments_add(struct repair_plan *plan)
{
    plan->segments = array_room(plan->segments, plan->count, &plan->room, sizeof(*plan->segments));
    struct repair_segment *segment = &plan->segments[plan->count++];
    *segment = (struct repair_segment){.there = false};
    return segment;
}

void repair_plan_free(struct repair_plan *plan)
{
    free(plan->segments);
    *plan = (struct repair_plan){.segments = NULL};
}

/* ---- what is there ---- */

static void add_live(struct repair_plan *plan, const struct journal_found *found)
{
    struct repair_segment *segment = repair_segments_add(plan);
    memcpy(segment->name, found->name, sizeof(segment->name));
    segment->header = found->header;
    segment->mark = found->mark;
    segment->there = segment->sound = true;
}

/* Adds a segment whose header says nothing: its name and its size are left. */
static void add_unsound(struct repair_plan *plan, const struct journal_chain *chain,
                        const struct journal_found *found)
{
    struct repair_segment *segment = repair_segments_add(plan);
    memcpy(segment->name, found->name, sizeof(segment->name));
    segment->header = found->header;
    segment->header.epoch = chain->epoch;
    segment->there = true;
}

/* Returns whether a live segment has records that end below `lsn`, and none after it: then it may
 * have ended there, before it was full. */
static bool repair_segments_may_end(struct repair *repair, const struct journal_found *live,
                                    uint64_t lsn)
{
    char path[VFS_PATH_MAX];
    struct salvage salvage;
    struct salvage_item first;
    struct salvage_found after = {0};
    if (lsn % JOURNAL_UNIT != 0 || !vfs_path(path, repair->options->directory, live->name) ||
        !salvage_init(&salvage, repair->vfs, path)) {
        return false;
    }
    salvage_trust(&salvage, &live->header);
    bool any = salvage_next(&salvage, &first) == SALVAGE_RECORD || first.resumes;
    salvage_seek(&salvage, lsn);
    bool none = salvage_count(&salvage, &after) && after.records == 0;
    salvage_fini(&salvage);
    return any && none;
}

/* Returns whether a segment lies within a live one that goes on without it: then it was replaced.
 */
static bool repair_segments_is_dead(struct repair *repair, const struct journal_chain *chain,
                                    const struct journal_found *found)
{
    for (size_t i = 0; i < chain->live_count; i++) {
        const struct journal_found *live = chain->live[i];
        if (live->header.start <= found->name_start && found->name_start < live->end) {
            return !live->mark.sealed && !repair_segments_may_end(repair, live, found->name_start);
        }
    }
    return false;
}

static int by_start(const void *a, const void *b)
{
    uint64_t x = ((const struct repair_segment *)a)->header.start;
    uint64_t y = ((const struct repair_segment *)b)->header.start;
    return x < y ? -1 : x > y;
}

static void repair_segments_collect(struct repair *repair, const struct journal_chain *chain,
                                    struct repair_plan *plan)
{
    for (size_t i = 0; i < chain->live_count; i++) {
        add_live(plan, chain->live[i]);
    }
    for (size_t i = chain->sound; i < chain->count; i++) {
        if (!repair_segments_is_dead(repair, chain, &chain->found[i])) {
            add_unsound(plan, chain, &chain->found[i]);
        }
    }
    if (plan->count > 0) {
        qsort(plan->segments, plan->count, sizeof(*plan->segments), by_start);
    }
    for (size_t i = 0; i < plan->count; i++) {
        struct repair_segment *segment = &plan->segments[i];
        segment->end = journal_end_of(&segment->header);
        if (i + 1 < plan->count && plan->segments[i + 1].header.start < segment->end) {
            segment->end = plan->segments[i + 1].header.start;
        }
    }
}

/* ---- what is missing ---- */

static void add_missing(struct repair_plan *plan, const struct journal_chain *chain, uint64_t from,
                        uint64_t until)
{
    struct repair_segment *segment = repair_segments_add(plan);
    journal_name(segment->name, from);
    segment->header = (struct journal_header){
        .epoch = chain->epoch, .start = from, .bytes = JOURNAL_PAGE_BYTES + until - from};
    segment->end = until;
}

static void fill_holes(const struct journal_chain *chain, struct repair_plan *plan, uint64_t from)
{
    size_t count = plan->count;
    uint64_t at = from;
    for (size_t i = 0; i < count; i++) {
        if (plan->segments[i].header.start > at) {
            add_missing(plan, chain, at, plan->segments[i].header.start);
        }
        at = plan->segments[i].end > at ? plan->segments[i].end : at;
    }
    if (at < plan->reach) {
        add_missing(plan, chain, at, plan->reach);
    }
    if (plan->count > count) {
        qsort(plan->segments, plan->count, sizeof(*plan->segments), by_start);
    }
}

/* ---- their numbers ---- */

/* Numbers rise; one that is not known is what the next one says, or follows the one before. */
static bool repair_segments_give_numbers(struct repair_plan *plan)
{
    uint64_t before = 0;
    for (size_t i = 0; i < plan->count; i++) {
        struct repair_segment *segment = &plan->segments[i];
        const struct repair_segment *next = i + 1 < plan->count ? segment + 1 : NULL;
        if (!segment->sound) {
            bool told = next && next->sound &&
                        next->header.previous.start == segment->header.start &&
                        next->header.previous.number > before;
            segment->header.number = told ? next->header.previous.number : before + 1;
            segment->changed = true;
        }
        if (segment->header.number <= before) {
            return false;
        }
        before = segment->header.number;
    }
    return true;
}

void repair_plan_link(struct repair_plan *plan, size_t index)
{
    struct repair_segment *segment = &plan->segments[index];
    const struct repair_segment *before = index > 0 ? segment - 1 : NULL;
    struct journal_link *link = &segment->header.previous;
    if (!before) {
        return; /* what it followed is gone, and not asked for */
    }
    bool right = link->number == before->header.number && link->start == before->header.start;
    if (!right || (link->sum != 0 && link->sum != before->sum)) {
        *link =
            (struct journal_link){.number = before->header.number, .start = before->header.start};
        segment->changed = true;
    }
}

/* ---- the whole ---- */

static uint64_t reach_of(const struct manifest *manifest, const struct journal_chain *chain)
{
    const uint64_t known[] = {manifest->journal_lsn, manifest->table_event_lsn, chain->durable,
                              chain->written};
    struct manifest_at at = {0};
    const struct manifest_file *file;
    uint64_t reach = 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        reach = known[i] > reach ? known[i] : reach;
    }
    while ((file = manifest_next_file(manifest, &at)) != NULL) {
        reach = file->end_lsn > reach ? file->end_lsn : reach;
    }
    return reach;
}

bool repair_plan_make(struct repair *repair, const struct journal_chain *chain,
                      struct repair_plan *plan)
{
    *plan = (struct repair_plan){.reach = reach_of(repair->manifest, chain)};
    repair_segments_collect(repair, chain, plan);
    uint64_t from = repair->manifest->journal_lsn;
    if (plan->count > 0 && plan->segments[0].header.start < from) {
        from = plan->segments[0].header.start;
    }
    fill_holes(chain, plan, from);
    if (!repair_segments_give_numbers(plan)) {
        repair_cannot(repair,
                      "%s: the segments of the journal do not belong together: restore the "
                      "directory from a copy",
                      repair->options->directory);
        return false;
    }
    if (plan->count > 0 && plan->segments[plan->count - 1].mark.sealed) {
        plan->segments[plan->count - 1].mark.sealed = false; /* its successor is gone */
        plan->segments[plan->count - 1].changed = true;
    }
    return true;
}
