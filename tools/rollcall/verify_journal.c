/*
 * verify_journal.c: the journal of a data directory. journal_scan() gives the verdict, the same one
 * a start would come to, over all segments there are. It ends at the first damage; then each live
 * segment is read for itself, so that every bad place is named, and how far it goes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "engine/change_record.h"
#include "store/journal_chain.h"
#include "store/journal_salvage.h"
#include "tools/rollcall/verify_private.h"

#define PROGRESS_RECORDS (1u << 18)               /* between two lines of progress */
#define LOOKS_MAX        5                        /* at a journal that is trimmed meanwhile */
#define SCAN_HINT        "; see: rollcall repair" /* journal_scan's advice */

struct look {
    struct verify *verify;
    const struct journal_chain *chain;
    struct journal_scan scan;
    uint64_t from; /* of the scan */
    bool said;     /* what the scan found was found again */
};

/* The live segment that holds an LSN: the last that begins at or below it. NULL: none. */
static const struct journal_found *holder(const struct journal_chain *chain, uint64_t lsn)
{
    const struct journal_found *found = NULL;
    for (size_t i = 0; i < chain->live_count && chain->live[i]->header.start <= lsn; i++) {
        found = chain->live[i];
    }
    return found;
}

/* A daemon that goes on writing may have begun the record's segment only now. */
static void say_meaningless(struct look *look, const struct journal_record *record)
{
    const struct journal_found *found = holder(look->chain, record->lsn);
    if (found) {
        verify_finding(look->verify,
                       "%s/%s: offset %" PRIu64 ": a record of type %u that means nothing (LSN "
                       "%" PRIu64 ")",
                       look->verify->options->directory, found->name,
                       journal_offset_of(&found->header, record->lsn), record->type, record->lsn);
    }
}

static bool verify_journal_take_record(void *context, const struct journal_record *record)
{
    struct look *look = context;
    struct verify *verify = look->verify;
    struct change change;
    struct change_record_event event;
    if (++verify->count.records % PROGRESS_RECORDS == 0) {
        verify_progress(verify, "checking %s: journal, %" PRIu64 " records",
                        verify->options->directory, verify->count.records);
    }
    if (change_record_decode(record->type, record->a, record->b, record->payload, record->bytes,
                             &change, &event) == CHANGE_RECORD_IS_BAD) {
        say_meaningless(look, record);
    }
    return true;
}

/* ---- what the scan did not say ---- */

__attribute__((format(printf, 4, 5))) static void
finding_at(struct look *look, const char *name, uint64_t offset, const char *format, ...)
{
    char place[VFS_PATH_MAX];
    char what[JOURNAL_ERROR_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    snprintf(place, sizeof(place), "%s/%s: offset %" PRIu64 ": ", look->verify->options->directory,
             name, offset);
    if (strncmp(look->scan.error, place, strlen(place)) == 0) {
        look->said = true;
    }
    verify_finding(look->verify, "%s%s", place, what);
}

static void verify_journal_say_gap(struct look *look, const char *name,
                                   const struct salvage *segment, const struct salvage_item *gap)
{
    uint64_t offset = journal_offset_of(&segment->header, gap->lsn);
    if (gap->resumes) {
        finding_at(look, name, offset,
                   "%s (LSN %" PRIu64 "); %" PRIu64
                   " bytes are lost, sound records go on at offset %" PRIu64,
                   gap->why, gap->lsn, gap->bytes, offset + gap->bytes);
    } else {
        finding_at(look, name, offset,
                   "%s (LSN %" PRIu64 "); no sound record follows in this segment", gap->why,
                   gap->lsn);
    }
}

/* A bad place with nothing after it, above all marks, is no damage: there the stream ends. */
static bool is_damage(const struct look *look, const struct salvage_item *gap)
{
    return gap->resumes || gap->lsn < look->scan.durable || gap->lsn < look->chain->written;
}

static void read_through(struct look *look, const struct journal_found *found,
                         struct salvage *segment)
{
    struct salvage_item item;
    enum salvage_step step;
    uint64_t closed_at = 0;
    bool damage, cut = false;
    do {
        step = salvage_next(segment, &item);
        look->verify->count.records +=
            step == SALVAGE_RECORD && item.record.type >= JOURNAL_TYPES_RESERVED;
        bool ends = step == SALVAGE_END || (step == SALVAGE_GAP && !item.resumes);
        cut = ends && journal_chain_is_cut(found, closed_at);
        damage = step == SALVAGE_GAP && is_damage(look, &item) && !cut;
        if (damage) {
            verify_journal_say_gap(look, found->name, segment, &item);
        }
        closed_at = step == SALVAGE_RECORD && item.record.type == JOURNAL_CLOSED
                        ? item.lsn + item.bytes
                        : 0;
    } while (step == SALVAGE_RECORD || damage);
    uint64_t offset = journal_offset_of(&segment->header, item.lsn);
    if (step == SALVAGE_FAILED) {
        finding_at(look, found->name, offset, "cannot be read: %s; check the disk",
                   strerror(errno));
    } else if (cut) {
        finding_at(look, found->name, offset, JOURNAL_CUT_WORDS " (LSN %" PRIu64 ")", found->size,
                   found->header.bytes, item.lsn);
    } else if (step == SALVAGE_END && item.lsn < found->end && is_damage(look, &item)) {
        finding_at(look, found->name, offset, "there is no record (LSN %" PRIu64 ")", item.lsn);
    }
}

static void look_into(struct look *look, const struct journal_found *found)
{
    char path[VFS_PATH_MAX];
    struct salvage segment;
    if (!verify_path(look->verify, path, found->name)) {
        return;
    }
    verify_begin(look->verify, found->name);
    if (!salvage_init(&segment, look->verify->vfs, path)) {
        finding_at(look, found->name, 0, "cannot be read: %s; check the disk", strerror(errno));
        return;
    }
    if (segment.state == JOURNAL_PAGE_SOUND) {
        uint64_t room = found->size > JOURNAL_PAGE_BYTES ? found->size - JOURNAL_PAGE_BYTES : 0;
        uint64_t left = found->header.start + room / JOURNAL_UNIT * JOURNAL_UNIT;
        segment.end =
            left < found->end ? left : found->end; /* zeroes stand for what is not there */
        read_through(look, found, &segment);
    }
    salvage_fini(&segment);
}

static void look_deeper(struct look *look)
{
    const struct journal_chain *chain = look->chain;
    look->verify->count.records = 0; /* the scan counted those before the damage */
    for (size_t i = chain->sound; i < chain->count; i++) {
        verify_begin(look->verify, chain->found[i].name);
        finding_at(look, chain->found[i].name, 0, "%s", chain->found[i].why);
    }
    for (size_t i = 0; i < chain->live_count; i++) {
        const struct journal_found *found = chain->live[i];
        look_into(look, found);
        if (i + 1 < chain->live_count && found->end < chain->live[i + 1]->header.start &&
            !journal_chain_unsound(chain, found->end, found->end)) {
            char name[JOURNAL_NAME_MAX];
            journal_name(name, found->end);
            finding_at(look, name, 0, "the segment is missing");
        }
    }
    if (!look->said) {
        char *hint = strstr(look->scan.error, SCAN_HINT);
        if (hint) {
            *hint = '\0';
        }
        verify_finding(look->verify, "%s", look->scan.error);
    }
}

/* ---- the verdict ---- */

/* Damage of what no start reads any more is told apart from other damage. */
static void say_if_old(struct look *look)
{
    struct verify *verify = look->verify;
    if (!verify->manifest || look->scan.end >= verify->manifest->journal_lsn) {
        return;
    }
    struct journal_scan scan = {.from = verify->manifest->journal_lsn};
    enum journal_scan_end end =
        journal_scan(verify->vfs, verify->options->directory, &scan, NULL, NULL);
    if (end == JOURNAL_SCAN_CLEAN || end == JOURNAL_SCAN_TORN) {
        verify_note(verify,
                    "the journal's damage is below LSN %" PRIu64
                    ", where replay begins: a start does not read it",
                    verify->manifest->journal_lsn);
        verify->journal_known = true;
        verify->journal_end = scan.end;
    }
}

static void say_end(struct look *look, enum journal_scan_end end)
{
    struct verify *verify = look->verify;
    const struct journal_scan *scan = &look->scan;
    const struct journal_found *found = holder(look->chain, scan->end);
    if (end == JOURNAL_SCAN_CLEAN || !found) {
        return;
    }
    char place[VFS_PATH_MAX];
    snprintf(place, sizeof(place), "%s/%s: offset %" PRIu64, verify->options->directory,
             found->name, journal_offset_of(&found->header, scan->end));
    if (scan->lost_records > 0) {
        verify_finding(verify,
                       "%s: the journal breaks off here, at LSN %" PRIu64 ", but %" PRIu64
                       " sound records (%" PRIu64 " bytes) follow, from LSN %" PRIu64
                       ": what is between was not written before the power went, or is damaged; "
                       "the next start cuts all of it off",
                       place, scan->end, scan->lost_records, scan->lost_bytes, scan->lost_first);
    } else if (verify->running) {
        verify_note(verify, "%s: the journal ends here for now, at LSN %" PRIu64, place, scan->end);
    } else if (scan->torn_bytes == 0) {
        verify_note(verify,
                    "%s: the journal ends here, at LSN %" PRIu64
                    ", without a clean end: the daemon was killed",
                    place, scan->end);
    } else {
        verify_note(verify,
                    "%s: torn tail of %" PRIu64 " bytes, at LSN %" PRIu64
                    ": a kill or a power cut; the next start cuts it off",
                    place, scan->torn_bytes, scan->end);
    }
}

/* Compares a sound stream with what the manifest needs of it. */
static void compare_manifest(struct look *look)
{
    struct verify *verify = look->verify;
    const struct manifest *manifest = verify->manifest;
    const struct journal_scan *scan = &look->scan;
    verify->journal_known = true;
    verify->journal_end = scan->end;
    if (!manifest) {
        return;
    }
    const char *directory = verify->options->directory;
    if (manifest->journal_lsn < scan->first) {
        char name[JOURNAL_NAME_MAX];
        journal_name(name, scan->first);
        verify_finding(verify,
                       "%s/%s: offset 0: the oldest segment begins at LSN %" PRIu64
                       ", " MANIFEST_NAME " needs the journal from LSN %" PRIu64
                       ": a segment is missing",
                       directory, name, scan->first, manifest->journal_lsn);
    } else if (manifest->journal_lsn > scan->end || manifest->table_event_lsn > scan->end) {
        verify_finding(verify,
                       "%s: the journal ends at LSN %" PRIu64 ", " MANIFEST_NAME
                       " knows of LSN %" PRIu64 ": segments are missing",
                       directory, scan->end,
                       manifest->journal_lsn > manifest->table_event_lsn
                           ? manifest->journal_lsn
                           : manifest->table_event_lsn);
    }
}

static void verify_journal_judge(struct look *look)
{
    struct verify *verify = look->verify;
    look->scan.from = look->from;
    enum journal_scan_end end = journal_scan(verify->vfs, verify->options->directory, &look->scan,
                                             verify_journal_take_record, look);
    switch (end) {
    case JOURNAL_SCAN_CLEAN:
    case JOURNAL_SCAN_TORN:
        compare_manifest(look);
        say_end(look, end);
        break;
    case JOURNAL_SCAN_STOPPED:
    case JOURNAL_SCAN_DAMAGED:
    case JOURNAL_SCAN_FAILED:
        look_deeper(look);
        say_if_old(look);
        break;
    }
}

/* Segments that a later one ended from their beginning on. */
static void say_dead(struct look *look)
{
    const struct journal_chain *chain = look->chain;
    for (size_t i = 0; i < chain->sound; i++) {
        const struct journal_found *live = holder(chain, chain->found[i].header.start);
        if (live && live->header.number > chain->found[i].header.number) {
            verify_note(look->verify, "%s/%s: replaced by %s: the next start deletes it",
                        look->verify->options->directory, chain->found[i].name, live->name);
        }
    }
}

/* Headers of another version: nothing can be said of the journal. True: there are some. */
static bool say_newer(struct verify *verify)
{
    uint64_t start;
    bool newer = false;
    for (size_t i = 0; i < verify->names_count; i++) {
        char path[VFS_PATH_MAX], text[VFS_PATH_MAX];
        struct salvage segment;
        if (!journal_name_parse(verify->names[i], &start)) {
            continue;
        }
        verify_count_file(verify, verify->names[i]);
        if (!vfs_path(path, verify->options->directory, verify->names[i]) ||
            !salvage_init(&segment, verify->vfs, path)) {
            continue; /* the chain will say so */
        }
        if (segment.state == JOURNAL_PAGE_NEWER) {
            snprintf(text, sizeof(text), "%s/%s: offset 0: %s; use the program that wrote it",
                     verify->options->directory, verify->names[i], segment.why);
            verify_unjudged(verify, text);
            newer = true;
        }
        salvage_fini(&segment);
    }
    return newer;
}

static void verify_journal_look(struct verify *verify, uint64_t from)
{
    struct journal_chain chain;
    struct look look = {.verify = verify, .chain = &chain, .from = from};
    verify_begin(verify, "journal");
    if (say_newer(verify)) {
        return;
    }
    if (journal_chain_init(&chain, verify->vfs, verify->options->directory, look.scan.error)) {
        verify_journal_judge(&look);
        say_dead(&look);
    } else {
        verify_finding(verify, "%s", look.scan.error);
    }
    journal_chain_fini(&chain);
}

/* Beside a daemon: whether a checkpoint has been made since MANIFEST was read, so that segments may
 * have been deleted. Then that is read anew. */
static bool has_moved(struct verify *verify)
{
    struct manifest *now = verify_manifest_now(verify);
    if (!now || now->journal_lsn == verify->manifest->journal_lsn) {
        manifest_destroy(now);
        return false;
    }
    verify_renew(verify, now);
    return true;
}

void verify_journal(struct verify *verify)
{
    struct verify_part part;
    bool again = true;
    for (unsigned i = 1; again; i++) {
        /* at last without what is only kept for followers: more of it may be deleted each time */
        bool needed = verify->manifest && i >= LOOKS_MAX;
        verify_part_begin(verify, &part);
        uint64_t findings = verify->count.findings;
        verify_journal_look(verify, needed ? verify->manifest->journal_lsn : JOURNAL_FROM_OLDEST);
        again = verify->count.findings > findings && i < LOOKS_MAX && has_moved(verify);
        verify_part_end(verify, &part, !again);
    }
}
