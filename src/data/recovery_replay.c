/* recovery_replay.c: the journal into engines. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/point.h"
#include "data/recovery_private.h"
#include "row/row_follow.h"

#define LOOK_RECORDS (1u << 14) /* between two looks at the clock, and at whether to stop */

/* ---- records ---- */

/* A follower that gave up what follows would get it again: the other node's tables are to come. */
bool recovery_refuse_record(struct recovery *recovery, uint64_t lsn, const char *why)
{
    if (recovery->follows) {
        return data_refuse(recovery->error,
                           "%s: journal record at %llu: %s; if it stays so, have a new copy come: "
                           "stop this daemon, empty %s, start it again",
                           recovery->data->directory, (unsigned long long)lsn, why,
                           recovery->data->directory);
    }
    return data_refuse(recovery->error,
                       "%s: journal record at %llu: %s; to give up what follows: rollcall repair "
                       "--drop-from %llu %s",
                       recovery->data->directory, (unsigned long long)lsn, why,
                       (unsigned long long)lsn, recovery->data->directory);
}

/* As above, where `why` ends with what helps a follower: a copy would need it as well. */
static bool refuse_until(struct recovery *recovery, uint64_t lsn, const char *why)
{
    return recovery->follows ? data_refuse(recovery->error, "%s: journal record at %llu: %s",
                                           recovery->data->directory, (unsigned long long)lsn, why)
                             : recovery_refuse_record(recovery, lsn, why);
}

static bool recovery_replay_flush(struct recovery *recovery, struct recovery_space *space)
{
    struct engine *engine = space->space->engine;
    size_t count = space->count;
    char why[ENGINE_ERROR_MAX];

    space->count = 0;
    return count == 0 || row_replay(engine->row, space->batch, count, why) ||
           recovery_refuse_record(recovery, space->batch[0].lsn, why);
}

static bool take_event(struct recovery *recovery, struct recovery_space *space, uint64_t lsn,
                       const struct change_record_event *event)
{
    struct engine *engine = space->space->engine;
    char why[ENGINE_ERROR_MAX];
    bool respaced = event->event == CHANGE_EVENT_SPACE;
    size_t head = respaced ? CHANGE_SPACE_HEAD_BYTES : 0;

    if (respaced) {
        atomic_store(&recovery->slots_due, true);
    }
    return recovery_replay_flush(recovery, space) &&
           (row_replay_event(engine->row, event->event, lsn, lsn >= space->m,
                             (const unsigned char *)event->bytes + head, event->length - head,
                             why) ||
            recovery_refuse_record(recovery, lsn, why));
}

/* ---- which space an event SPACE is of ---- */

static struct recovery_space *recovery_replay_named(struct recovery *recovery, const char *name)
{
    for (size_t i = 0; i < recovery->count; i++) {
        if (strcmp(recovery->spaces[i]->space->name, name) == 0) {
            return recovery->spaces[i];
        }
    }
    return NULL;
}

/*
 * A space the manifest does not name began here: that manifest is older than the space, as in a
 * copy that was taken while the space was added. False: the configuration has no such space.
 */
bool recovery_replay_name(struct recovery *recovery, uint64_t lsn, uint32_t number,
                          const struct change_space_head *head)
{
    struct recovery_space *space = recovery_replay_named(recovery, head->name);
    char why[ENGINE_ERROR_MAX];

    if (recovery->by_number[number] != NULL) {
        return true;
    }
    if (space == NULL || space->begun ||
        strcmp(space->space->engine->functions->kind, head->kind) != 0) {
        snprintf(why, sizeof(why), "space %s, of kind %s, begins with the number %u, and the %s",
                 head->name, head->kind, number,
                 space == NULL  ? "configuration lacks it: put it back"
                 : space->begun ? "manifest has it with another one"
                                : "configuration has it of another kind: correct that");
        return space != NULL && space->begun ? recovery_refuse_record(recovery, lsn, why)
                                             : refuse_until(recovery, lsn, why);
    }
    space->known = manifest_add_space(recovery->data->manifest, head->name, number, head->kind);
    if (space->known == NULL) {
        return recovery_refuse_record(recovery, lsn,
                                      "a space that is not allowed, or one too many");
    }
    recovery->by_number[number] = space;
    space->space->engine->space = number;
    return true;
}

/* Nothing is in it yet. */
static bool begin_named(struct recovery *recovery, uint64_t lsn, struct recovery_space *space)
{
    struct row *row = space->space->engine->row;
    char why[ENGINE_ERROR_MAX];

    if (!row_restore_begin(row, NULL, 0, why)) {
        return recovery_refuse_record(recovery, lsn, why);
    }
    space->begun = true;
    if (recovery->live) {
        row_follow_begin(row);
    }
    return true;
}

static bool recovery_replay_take_head(struct recovery *recovery, uint64_t lsn,
                                      const struct change_record_event *event)
{
    struct change_space_head head;

    if (!change_space_head_decode(event->bytes, event->length, &head)) {
        return recovery_refuse_record(recovery, lsn, "it does not say which space it is of");
    }
    if (!recovery_replay_name(recovery, lsn, event->space, &head)) {
        return false;
    }
    struct recovery_space *space = recovery->by_number[event->space];

    if (!space->begun) {
        return begin_named(recovery, lsn, space);
    }
    return (strcmp(space->space->name, head.name) == 0 &&
            strcmp(space->space->engine->functions->kind, head.kind) == 0) ||
           recovery_refuse_record(recovery, lsn, "it is of another space than the manifest says");
}

static bool take_change(struct recovery *recovery, struct recovery_space *space, uint64_t lsn,
                        const struct change *change)
{
    space->batch[space->count++] = (struct engine_replay){lsn, *change};
    return space->count < RECOVERY_BATCH || recovery_replay_flush(recovery, space);
}

/* The space a record of it names; NULL: there is none. */
static struct recovery_space *recovery_replay_space_of(struct recovery *recovery, uint32_t number)
{
    return number <= CHANGE_SPACE_MAX ? recovery->by_number[number] : NULL;
}

static bool refuse_unknown(struct recovery *recovery, const struct journal_record *record)
{
    char why[ENGINE_ERROR_MAX];

    snprintf(why, sizeof(why),
             "of type %u, not a record this program knows: a newer one may be "
             "needed",
             record->type);
    return refuse_until(recovery, record->lsn, why);
}

bool recovery_replay_take(struct recovery *recovery, const struct journal_record *record)
{
    struct change change;
    struct change_record_event event;
    enum change_record_kind kind = change_record_decode(
        record->type, record->a, record->b, record->payload, record->bytes, &change, &event);

    if (kind == CHANGE_RECORD_IS_BAD) {
        return refuse_unknown(recovery, record);
    }
    if (kind == CHANGE_RECORD_IS_EVENT && event.event == CHANGE_EVENT_SPACE &&
        !recovery_replay_take_head(recovery, record->lsn, &event)) {
        return false;
    }
    struct recovery_space *space = recovery_replay_space_of(
        recovery, kind == CHANGE_RECORD_IS_CHANGE ? change.space : event.space);

    if (space == NULL) {
        return recovery_refuse_record(recovery, record->lsn,
                                      "of a space the manifest does not name");
    }
    if (record->lsn < space->c) {
        return true;
    }
    return kind == CHANGE_RECORD_IS_CHANGE ? take_change(recovery, space, record->lsn, &change)
                                           : take_event(recovery, space, record->lsn, &event);
}

bool recovery_replay_is_cut(const struct recovery *recovery, uint64_t lsn)
{
    return recovery->cut_lsn != 0 && lsn >= recovery->cut_lsn;
}

/* Sets where the journal is cut: it ends there. A cut that tables do not allow is left out: they
 * were written since. */
static void set_cut(struct recovery *recovery)
{
    uint64_t least =
        recovery->needed_lsn > recovery->scan.from ? recovery->needed_lsn : recovery->scan.from;

    if (recovery->cut_lsn != 0 && recovery->cut_lsn < least) {
        log_warning("the journal is not cut lsn=%llu needed_lsn=%llu",
                    (unsigned long long)recovery->cut_lsn, (unsigned long long)least);
        recovery->cut_lsn = 0;
    }
}

static bool take_cut(struct recovery *recovery)
{
    struct journal_scan *scan = &recovery->scan;
    bool sound = recovery->scan_end == JOURNAL_SCAN_CLEAN ||
                 recovery->scan_end == JOURNAL_SCAN_TORN ||
                 (recovery->scan_end == JOURNAL_SCAN_STOPPED && recovery->error[0] == '\0' &&
                  !*recovery->stop);

    if (recovery->cut_lsn == 0 || !sound || scan->end < recovery->cut_lsn) {
        return false;
    }
    log_warning("the journal was cut lsn=%llu", (unsigned long long)recovery->cut_lsn);
    scan->end = recovery->cut_lsn;
    scan->sum = 0; /* not known there */
    return true;
}

static bool on_record(void *context, const struct journal_record *record)
{
    struct recovery *recovery = context;
    uint64_t records = recovery->data->figures.replayed_records;

    if (recovery_replay_is_cut(recovery, record->lsn)) {
        return false;
    }

    /* nobody else counts */
    atomic_store_explicit(&recovery->data->figures.replayed_records, records + 1,
                          memory_order_relaxed);
    if (records % LOOK_RECORDS == 0) {
        if (*recovery->stop) {
            return false;
        }
        POINT_SLOW("recovery look");
        recovery_tell_replaying(recovery, records, record->lsn);
    }
    return recovery_replay_take(recovery, record);
}

/* ---- the whole ---- */

bool recovery_replay_flush_all(struct recovery *recovery)
{
    bool flushed = true;

    for (size_t i = 0; i < recovery->count && flushed; i++) {
        flushed = recovery_replay_flush(recovery, recovery->spaces[i]);
    }
    return flushed;
}

static bool recovery_replay_judge(struct recovery *recovery)
{
    const struct journal_scan *scan = &recovery->scan;
    const char *directory = recovery->data->directory;

    if (take_cut(recovery)) {
        return true;
    }
    if (recovery->follows && scan->empty) { /* a copy's: the journal comes */
        recovery->scan.end = scan->from;
        return true;
    }
    switch (recovery->scan_end) {
    case JOURNAL_SCAN_STOPPED:
        return false; /* the error, if there is one, is there */
    case JOURNAL_SCAN_DAMAGED:
        return data_refuse(recovery->error, "%s", scan->error); /* it says what tells more */
    case JOURNAL_SCAN_FAILED:
        return data_refuse(recovery->error, "%s; see: rollcall repair %s", scan->error, directory);
    default:
        break;
    }
    if (scan->end < recovery->needed_lsn && !recovery->follows) {
        return data_refuse(recovery->error,
                           "%s: the journal ends at %llu, and tables were written when it was at "
                           "%llu; see: rollcall repair %s",
                           directory, (unsigned long long)scan->end,
                           (unsigned long long)recovery->needed_lsn, directory);
    }
    if (scan->lost_records > 0) {
        log_error(
            "sound records follow a break of the journal, which is no torn end: the power went "
            "before what is between was written, or that was damaged since; they are cut off "
            "too records=%llu bytes=%llu first_lsn=%llu break_lsn=%llu",
            (unsigned long long)scan->lost_records, (unsigned long long)scan->lost_bytes,
            (unsigned long long)scan->lost_first, (unsigned long long)scan->end);
    }
    if (scan->torn_bytes > 0) {
        log_warning("the journal's end was cut off: a kill or a power cut left it half written "
                    "bytes=%llu lsn=%llu",
                    (unsigned long long)scan->torn_bytes, (unsigned long long)scan->end);
        recovery->data->figures.cut_bytes = scan->torn_bytes;
    }
    return true;
}

bool recovery_replay(struct recovery *recovery)
{
    struct data *data = recovery->data;

    recovery->scan.from = data->manifest->journal_lsn;
    recovery->scan.reign = recovery_take_reign;
    set_cut(recovery);
    recovery_tell_replay(recovery);
    recovery->scan_end =
        journal_scan(data->vfs, data->directory, &recovery->scan, on_record, recovery);
    if (!recovery_replay_judge(recovery)) {
        return false;
    }
    data->figures.recovered_records = data->figures.replayed_records;
    return recovery_replay_flush_all(recovery);
}
