/* row_parts.c: parts of a row of any ids grow. */
#include "row/row_parts.h"

#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/point.h"

#define PART_STEP_UP   9 /* a size is 9/8 of the one below */
#define PART_STEP_DOWN 8
#define PART_PAGE      4096u
#define PART_SPARE     32 /* a new part is asked for 1/32 more than there is */
#define PART_TOLD_STEP 2  /* a log line each time the space has become this many times as large */

/* A part that is to come, from a part that stands. bytes 0: none is. */
struct part_plan {
    uint64_t serial, base, last, bytes;
    struct row_recall recall; /* loaded not NULL: a part comes back instead */
};

/* ---- memory ---- */

struct row_region *row_part_region(struct row *row, uint64_t bytes)
{
    void *memory = memory_region_create(bytes);
    if (memory == NULL) {
        return NULL;
    }
    (void)memory_populate(memory, bytes); /* else the first use of a page will do it */
    return row_part_region_of(row, memory, bytes);
}

struct row_region *row_part_region_of(struct row *row, void *memory, uint64_t bytes)
{
    struct row_region *region = memory_zalloc(sizeof(*region));
    *region = (struct row_region){
        .memory = memory, .bytes = bytes, .resident = bytes, .used = true, .loose = true};
    atomic_fetch_add(&row->loose_bytes, bytes);
    return region;
}

void row_part_region_give(struct row *row, struct row_region *region)
{
    CHECK(region->loose && atomic_fetch_sub(&row->loose_bytes, region->bytes) >= region->bytes);
    memory_region_destroy(region->memory, region->bytes);
    free(region);
}

uint64_t row_part_bytes(const struct row_table *part)
{
    return part->cold ? 0 : part->region->bytes + part->pool_bytes;
}

uint64_t row_parts_bytes(const struct row *row)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < row->count; i++) {
        bytes += row_part_bytes(row->tables[i]);
    }
    return bytes;
}

static uint64_t parts_beyond(const struct row *row, uint64_t bytes)
{
    uint64_t aside = row_part_aside_bytes(&row->config);
    return bytes > aside ? bytes - aside : 0;
}

/* Returns whether the parts may have this many bytes. */
static bool parts_may_hold(const struct row *row, uint64_t bytes)
{
    const struct engine_growth *growth = row->engine->growth;
    uint64_t more = parts_beyond(row, bytes);
    if (more <= row->charged) {
        return true;
    }
    uint64_t used = growth != NULL ? atomic_load(&growth->used) : 0;
    uint64_t most = growth != NULL ? atomic_load(&growth->most) : 0;
    return used < most && more - row->charged <= most - used;
}

uint64_t row_parts_left(const struct row *row)
{
    const struct engine_growth *growth = row->engine->growth;
    uint64_t held = row_parts_bytes(row);
    uint64_t aside = row_part_aside_bytes(&row->config);
    uint64_t used = growth != NULL ? atomic_load(&growth->used) : 0;
    uint64_t most = growth != NULL ? atomic_load(&growth->most) : 0;
    return (held < aside ? aside - held : 0) + (used < most ? most - used : 0);
}

static void parts_charge(struct row *row, uint64_t bytes)
{
    struct engine_growth *growth = row->engine->growth;
    if (growth != NULL) {
        atomic_fetch_add(&growth->used, bytes - row->charged); /* modulo 2^64 */
        row->charged = bytes;
    }
}

void row_parts_charge(struct row *row)
{
    if (row->parted) {
        parts_charge(row, parts_beyond(row, row_parts_bytes(row)));
    }
}

void row_parts_share(struct row *row, struct engine_growth *growth)
{
    if (row->parted && row->engine->growth != growth) {
        parts_charge(row, 0);
        row->engine->growth = growth;
        row_parts_charge(row);
    }
}

/* ---- sizes ---- */

/* The number of an aligned range of keys, its bits backwards, as a share of 1. */
static double parts_phase_of(uint64_t base, uint64_t keys)
{
    double phase = 0;
    double weight = 0.5;
    for (uint64_t number = base / keys; number != 0; number >>= 1, weight /= 2) {
        phase += (double)(number & 1) * weight;
    }
    return phase;
}

static uint64_t whole_pages(double bytes)
{
    return (uint64_t)bytes / PART_PAGE * PART_PAGE;
}

/* Returns the smallest size of a part that takes this many records. 0: its largest does not. */
static uint64_t parts_size_for(const struct row *row, const struct row_table *of, uint64_t base,
                               uint64_t last, uint64_t records)
{
    uint64_t keys = last - base + 1;
    double bytes = (double)row_part_bytes_max(&row->config) *
                   pow((double)PART_STEP_DOWN / PART_STEP_UP, parts_phase_of(base, keys));
    uint64_t found = 0;
    while (bytes >= ROW_PART_BYTES_MIN &&
           row->kind->part_fill(of, base, last, whole_pages(bytes)) >= records) {
        found = whole_pages(bytes);
        bytes = bytes * PART_STEP_DOWN / PART_STEP_UP;
    }
    return found;
}

/* Records to expect in some of a part's keys. */
static uint64_t parts_expected(const struct row_table *part, uint64_t part_last, uint64_t last)
{
    double share = (double)(last - part->base + 1) / (double)(part_last - part->base + 1);
    double records = (double)row_count_of(part) * share;
    return (uint64_t)(records + records / PART_SPARE + 4 * sqrt(records)) + 1;
}

/*
 * What follows a part: of all its keys if that can be, else of the first half of them, of a half of
 * that, and so on. A range begins at a multiple of its keys.
 */
static struct part_plan parts_plan_for(const struct row *row, const struct row_table *part)
{
    struct part_plan plan = {.serial = part->serial, .base = part->base};
    uint64_t top = part->keys->mask;
    uint64_t part_last = part->last < top ? part->last : top;
    uint64_t keys = top + 1;
    while (keys > 1 && plan.bytes == 0) {
        bool fits = part->base % keys == 0 && keys - 1 <= part_last - part->base;
        plan.last = part->base + (keys - 1);
        if (fits) {
            uint64_t records = parts_expected(part, part_last, plan.last);
            plan.bytes = parts_size_for(row, part, plan.base, plan.last, records);
        }
        keys /= 2;
    }
    plan.last = plan.last == top ? ROW_ID_MAX : plan.last;
    return plan;
}

/* ---- one step ---- */

/* One whose dump or merge is being written waits for its end. */
static bool parts_wants(const struct row_table *part, uint32_t bits)
{
    return (atomic_load(&part->wants) & bits) != 0 && !part->refused && !part->awaiting &&
           !part->tapped && !part->merging;
}

/* One that somebody waits for goes first. */
static struct row_table *parts_next_growing(const struct row *row)
{
    struct row_table *found = NULL;
    for (size_t i = 0; i < row->count; i++) {
        struct row_table *part = row->tables[i];
        if (row->follows && !part->cold) {
            continue; /* its growth is an event */
        }
        if (parts_wants(part, ROW_WANT_GROW_NOW)) {
            return part;
        }
        found = found == NULL && parts_wants(part, ROW_WANT_GROW) ? part : found;
    }
    return found;
}

static uint64_t parts_records(const struct row *row)
{
    uint64_t records = 0;
    for (size_t i = 0; i < row->count; i++) {
        records += row_count_of(row->tables[i]);
    }
    return records;
}

/* Notes that there is no memory for a part: new ids are refused there, and growth is tried again
 * after a while. */
static void parts_refuse_growth(struct row *row, struct row_table *part, const char *why)
{
    part->refused = true;
    row_pause(row);
    if (!row->growth_warned) {
        log_warning("space %s cannot grow, and new ids are refused: %s ids=%llu bytes=%llu",
                    row_space_name(row), why, (unsigned long long)parts_records(row),
                    (unsigned long long)row_parts_bytes(row));
    }
    row->growth_warned = true;
}

static void parts_tell_growth(struct row *row)
{
    uint64_t bytes = row_parts_bytes(row);
    row->growth_warned = false;
    if (bytes >= PART_TOLD_STEP * row->growth_told) {
        if (row->growth_told != 0) {
            log_info("space %s has grown parts=%zu bytes=%llu ids=%llu", row_space_name(row),
                     row->count, (unsigned long long)bytes, (unsigned long long)parts_records(row));
        }
        row->growth_told = bytes;
    }
}

/* What the parts hold when the plan is carried out: where a pool is full it doubles. */
static uint64_t parts_bytes_after(const struct row *row, const struct row_table *part,
                                  const struct part_plan *plan)
{
    uint64_t pools = plan->bytes / ROW_PART_POOLS;
    bool full = row_count_of(part) < part->fill;
    pools = full ? row_larger(pools, 2 * part->pool_bytes) : pools;
    bool whole = plan->last == part->last;
    return row_parts_bytes(row) + plan->bytes + pools - (whole ? row_part_bytes(part) : 0);
}

/* Where memory does not suffice others leave it, and the part waits for that; or it is refused. If
 * the log has no room to say so, that passes: it is tried again. */
static bool parts_have_room(struct row *row, struct row_table *part, uint64_t bytes)
{
    if (row->follows || parts_may_hold(row, bytes)) {
        return true;
    }
    uint64_t held = row_parts_bytes(row);
    part->awaiting = row_parts_leave(row, part, bytes > held ? bytes - held : 0);
    if (!part->awaiting && !atomic_load(&row->denied)) {
        parts_refuse_growth(row, part, "`memory` has no more room for it");
    }
    return false;
}

/* True: the plan is to be carried out. */
static bool parts_plan_growth(struct row *row, struct row_table *part, struct part_plan *plan)
{
    *plan = parts_plan_for(row, part);
    bool may = plan->bytes != 0 && row->count < ROW_ROUTES_MAX;
    if (!may) {
        parts_refuse_growth(row, part, "it has as many parts as can be");
    }
    return may && parts_have_room(row, part, parts_bytes_after(row, part, plan));
}

/* The same of a dumped part: it comes back before it grows. */
static bool parts_plan_recall(struct row *row, struct row_table *part, struct part_plan *plan)
{
    if (!parts_have_room(row, part, row_parts_bytes(row) + row_recall_needs(row, part))) {
        return false;
    }
    if (!row_recall_begin(row, part, &plan->recall)) {
        parts_refuse_growth(row, part, ROW_REFUSED_MEMORY);
        return false;
    }
    return true;
}

/* The part that is to grow next, and how, or to come back. Nothing: none is, or may. */
static struct part_plan parts_plan_next(struct row *row)
{
    struct part_plan plan = {0};
    struct row_table *part = parts_next_growing(row);
    for (; part != NULL && !atomic_load(&row->denied); part = parts_next_growing(row)) {
        if (part->cold ? parts_plan_recall(row, part, &plan)
                       : parts_plan_growth(row, part, &plan)) {
            return plan;
        }
        plan = (struct part_plan){0};
    }
    return plan;
}

/* The new part has its records: it takes its place, and the old one goes or begins above. */
static void parts_stand(struct row *row, struct row_table *from, struct row_table *to)
{
    size_t at = row_index_of(row, from);
    atomic_store(&to->ids.first, atomic_load(&from->ids.first));
    atomic_store(&to->ids.last, atomic_load(&from->ids.last));
    row_touch(to);
    if (to->last == from->last) {
        CHECK(row_count_of(from) == 0);
        row_retire(row, from);
    } else {
        from->base = to->last + 1;
        from->low = from->base;
        row->bases[at] = from->base;
        row_start_at(from, to->last);
        row_touch(from);
    }
    row_stand(row, to);
}

static bool parts_grow(struct row *row, struct row_table *from, const struct part_plan *plan,
                       struct row_region *region)
{
    struct row_want want = {.base = plan->base, .last = plan->last, .part_of = from};
    struct row_table *to = row_make_table(row, &want, plan->last, region);
    if (to == NULL) {
        return false;
    }
    if (!row->kind->part_move(from, to)) {
        row->kind->destroy(to);
        return false;
    }
    POINT("part filled, not in place");
    to->fill = row->kind->part_fill(to, plan->base, plan->last, region->bytes);
    to->serial = row->serials++;
    bool whole = plan->last == from->last;
    parts_stand(row, from, to);
    row_log_put(row, CHANGE_EVENT_PART, to);
    if (!whole) { /* the other half is on its way */
        atomic_fetch_or(&from->wants, ROW_WANT_GROW);
    }
    row_parts_charge(row);
    parts_tell_growth(row);
    return true;
}

/* Stopped. True: the region was used. */
static bool parts_carry_out(struct row *row, const struct part_plan *plan,
                            struct row_region *region)
{
    struct row_table *from = row_find(row, plan->base);
    bool same = from != NULL && from->serial == plan->serial && from->base == plan->base &&
                plan->last <= from->last && !from->cold; /* it may have left meanwhile */
    if (!same || !row_keep_log_room(row)) {
        return false;
    }
    if (from->tapped) { /* its dump is of no use */
        row_cold_untap(row, from);
    }
    atomic_fetch_and(&from->wants, ~(ROW_WANT_GROW | ROW_WANT_GROW_NOW));
    if (region == NULL || !parts_grow(row, from, plan, region)) {
        parts_refuse_growth(row, from, ROW_REFUSED_MEMORY);
        return false;
    }
    return true;
}

/* ---- the keeper ---- */

/* What a plan asks for, outside: memory, or what a file has. */
struct part_step {
    struct part_plan plan;
    struct row_region *region;
    bool used; /* the region is a part's */
};

static void parts_end_recall(struct row *row, const struct row_recall *recall)
{
    struct row_table *part = row_find(row, recall->base);
    if (!row_recall_end(row, recall) && part != NULL && part->serial == recall->serial) {
        part->refused = true;
        row_pause(row);
    }
}

/* Stopped: the step ends. The next one. */
static struct part_plan parts_step(struct row *row, struct part_step *step)
{
    const struct part_plan *plan = &step->plan;
    step->used = plan->bytes != 0 && parts_carry_out(row, plan, step->region);
    if (plan->recall.loaded != NULL) {
        parts_end_recall(row, &plan->recall);
    }
    bool room = plan->bytes == 0 || step->used || !atomic_load(&row->denied);
    struct part_plan next = room ? parts_plan_next(row) : (struct part_plan){0};
    if (room && !row->follows) {
        row_parts_keep_spare(row);
    }
    return next;
}

/* One that may as well be in memory. The rest another time: other rows wait for the keeper, too. */
static void parts_plan_return(struct row *row, struct part_plan *plan)
{
    struct row_table *part = row->follows ? NULL : row_recall_due(row);
    if (part != NULL && row_recall_begin(row, part, &plan->recall)) {
        row_ask(row);
    }
}

static bool parts_step_is(const struct part_plan *plan)
{
    return plan->bytes != 0 || plan->recall.loaded != NULL;
}

void row_parts_maintain(struct row *row, struct barrier *barrier)
{
    struct part_step step = {0};
    bool returned = false;
    do {
        row_log_await(row);
        if (barrier != NULL) {
            barrier_stop(barrier);
        }
        struct part_plan next = parts_step(row, &step);
        if (!parts_step_is(&next) && !returned) {
            parts_plan_return(row, &next);
            returned = true;
        }
        if (barrier != NULL) {
            barrier_go(barrier);
        }
        if (step.region != NULL && !step.used) {
            row_part_region_give(row, step.region);
        }
        row_wake(row);
        row_dispose(row);
        step = (struct part_step){.plan = next};
        step.region = next.bytes != 0 ? row_part_region(row, next.bytes) : NULL;
        if (next.recall.loaded != NULL) {
            row_recall_read(row, &step.plan.recall);
        }
    } while (parts_step_is(&step.plan));
}

/* ---- replay ---- */

bool row_parts_replay(struct row *row, const struct row_described *described, uint64_t lsn,
                      char error[ROW_ERROR_MAX])
{
    const struct row_state *state = &described->state;
    struct row_table *from = row->parted ? row_find(row, state->base) : NULL;
    unsigned long long serial = state->serial;
    if (from == NULL || from->base != state->base || state->last > from->last ||
        state->serial < row->serials || row->count == ROW_ROUTES_MAX) {
        return row_fail(error, "part %llu grows out of none that is there", serial);
    }
    if (from->tapped) { /* what follows it is dumped anew */
        row_cold_untap(row, from);
    }
    if (from->cold && !row_recall_now(row, from)) {
        return row_fail(error, "part %llu grows out of one that cannot be read", serial);
    }
    struct row_table *to = row_state_make(row, described, NULL, error);
    if (to == NULL) {
        return false;
    }
    if (!row->kind->part_move(from, to)) {
        row_state_unmake(row, to);
        return row_fail(error, "part %llu: memory was refused", serial);
    }
    row->serials = state->serial + 1;
    to->start_lsn = lsn;
    atomic_store(&to->gone, 0);
    parts_stand(row, from, to);
    return true;
}
