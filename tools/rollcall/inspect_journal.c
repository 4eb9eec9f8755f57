/* inspect_journal.c: a segment of the journal: header, marks, records. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "store/journal_salvage.h"
#include "tools/rollcall/inspect_private.h"

struct listing {
    const struct inspect *inspect;
    struct salvage segment;
    uint64_t records, gaps;
    bool closed; /* the last record is a clean end */
    bool damaged;
};

static void inspect_journal_print_header(const struct listing *listing)
{
    const struct inspect *inspect = listing->inspect;
    const struct journal_header *header = &listing->segment.header;
    const struct journal_mark *mark = &listing->segment.mark;
    char size[SIZE_TEXT_MAX];
    inspect_field(inspect, "journal", "segment, format %u", JOURNAL_VERSION);
    inspect_field(inspect, "epoch", "%" PRIu64, header->epoch);
    inspect_field(inspect, "number", "%" PRIu64, header->number);
    inspect_field(inspect, "start", "LSN %" PRIu64, header->start);
    inspect_field(inspect, "full", "at LSN %" PRIu64 ", %s", journal_end_of(header),
                  size_text(size, header->bytes));
    if (listing->segment.size < header->bytes) {
        inspect_field(inspect, "file", "%" PRIu64 " bytes: what is missing counts as zero",
                      listing->segment.size);
    }
    inspect_field(inspect, "durable", "LSN %" PRIu64 " when it was made", header->durable);
    inspect_field(inspect, "boot", "%016" PRIx64 ": the run of the system that wrote it",
                  header->boot);
    if (mark->serial == 0) {
        inspect_field(inspect, "mark", "none");
    } else {
        inspect_field(inspect, "mark",
                      "LSN %" PRIu64 " is durable, LSN %" PRIu64 " written; serial %" PRIu64 "%s",
                      mark->durable, mark->written, mark->serial,
                      mark->sealed ? "; sealed: a successor follows" : "");
    }
    if (header->previous.number == 0) {
        inspect_field(inspect, "predecessor", "none");
    } else {
        inspect_field(inspect, "predecessor",
                      "number %" PRIu64 ", from LSN %" PRIu64 ", sum %016" PRIx64,
                      header->previous.number, header->previous.start, header->previous.sum);
    }
}

static void print_record(struct listing *listing, const struct journal_record *record)
{
    FILE *out = listing->inspect->out;
    if (listing->records == 0) {
        fprintf(out, "\n%12s %16s  %-8s %5s %3s %3s\n", "offset", "LSN", "type", "bytes", "a", "b");
    }
    if (inspect_wants(listing->inspect, listing->records++)) {
        fprintf(out, "%12" PRIu64 " %16" PRIu64 "  %3u %-6s %3zu %3u %3u  ",
                journal_offset_of(&listing->segment.header, record->lsn), record->lsn, record->type,
                inspect_record_name(record->type), record->bytes + JOURNAL_HEADER_BYTES, record->a,
                record->b);
        inspect_record(out, record);
        fputc('\n', out);
    }
    listing->closed = record->type == JOURNAL_CLOSED;
}

/* Damage if it lies below what the segment says must be there, or if sound records follow, though a
 * power cut may leave such; else what a kill or a cut leaves, if no later segment follows. */
static void print_gap(struct listing *listing, const struct salvage_item *gap)
{
    const struct inspect *inspect = listing->inspect;
    uint64_t offset = journal_offset_of(&listing->segment.header, gap->lsn);
    bool damage = gap->lsn < salvage_reach(&listing->segment) || gap->resumes;
    listing->closed = false;
    listing->damaged |= damage;
    if (!inspect_wants(inspect, listing->gaps++)) {
        return;
    }
    fprintf(inspect->out,
            "%12" PRIu64 " %16" PRIu64 "  -- %" PRIu64 " bytes that are no record: %s: %s\n",
            offset, gap->lsn, gap->bytes, gap->why,
            damage ? "damage" : "above its marks: a start cuts it off, unless a segment follows");
    if (damage) {
        verb_complain(inspect->errors, "%s: offset %" PRIu64 ": %s (LSN %" PRIu64 ")",
                      inspect->options->path, offset, gap->why, gap->lsn);
    }
}

static void print_end(struct listing *listing, uint64_t lsn)
{
    const struct inspect *inspect = listing->inspect;
    uint64_t offset = journal_offset_of(&listing->segment.header, lsn);
    bool full = lsn == journal_end_of(&listing->segment.header);
    uint64_t hidden =
        inspect_wants(inspect, listing->records) ? 0 : listing->records - inspect->options->limit;
    if (hidden > 0) {
        fprintf(inspect->out, "%12s (%" PRIu64 " more; --limit 0 shows all)\n", "...", hidden);
    }
    fprintf(inspect->out, "\n%" PRIu64 " record%s, to offset %" PRIu64 ", LSN %" PRIu64 ": %s\n",
            listing->records, listing->records == 1 ? "" : "s", offset, lsn,
            listing->closed ? "a clean end"
            : full          ? "full"
                            : "nothing is written after it");
    uint64_t reach = salvage_reach(&listing->segment);
    if (!full && lsn < reach) {
        verb_complain(inspect->errors,
                      "%s: offset %" PRIu64 ": there is no record (LSN %" PRIu64
                      ", %s up to %" PRIu64 ")",
                      inspect->options->path, offset, lsn,
                      reach == salvage_durable(&listing->segment) ? "durable" : "written", reach);
        listing->damaged = true;
    }
}

static enum verb_exit inspect_journal_list(struct listing *listing)
{
    struct salvage_item item;
    enum salvage_step step = SALVAGE_RECORD;
    uint64_t end = listing->segment.at;
    while (step == SALVAGE_RECORD || step == SALVAGE_GAP) {
        step = salvage_next(&listing->segment, &item);
        if (step == SALVAGE_RECORD) {
            print_record(listing, &item.record);
            end = item.lsn + item.bytes;
        } else if (step == SALVAGE_GAP) {
            print_gap(listing, &item);
        }
    }
    if (step == SALVAGE_FAILED) {
        verb_complain(listing->inspect->errors, "%s: offset %" PRIu64 ": %s",
                      listing->inspect->options->path,
                      journal_offset_of(&listing->segment.header, item.lsn), strerror(errno));
        return VERB_DAMAGED;
    }
    print_end(listing, end);
    return listing->damaged ? VERB_DAMAGED : VERB_SOUND;
}

/* A copy may have any name; but a segment's name must be its own. */
static bool is_named_right(const struct listing *listing)
{
    uint64_t start;
    const struct inspect *inspect = listing->inspect;
    if (!journal_name_parse(verb_base_name(inspect->options->path), &start) ||
        start == listing->segment.header.start) {
        return true;
    }
    verb_complain(inspect->errors, "%s: offset 0: holds another segment than its name says",
                  inspect->options->path);
    return false;
}

enum verb_exit inspect_journal(const struct inspect *inspect)
{
    struct listing listing = {.inspect = inspect};
    const char *path = inspect->options->path;
    enum verb_exit status;
    if (!salvage_init(&listing.segment, inspect->vfs, path)) {
        verb_complain(inspect->errors, "%s: %s", path, strerror(errno));
        return VERB_USAGE;
    }
    if (listing.segment.state == JOURNAL_PAGE_SOUND) {
        inspect_journal_print_header(&listing);
        status = inspect_journal_list(&listing);
        status = is_named_right(&listing) ? status : VERB_DAMAGED;
    } else {
        bool newer = listing.segment.state == JOURNAL_PAGE_NEWER;
        verb_complain(inspect->errors, "%s: offset 0: %s", path, listing.segment.why);
        status = newer ? VERB_USAGE : VERB_DAMAGED;
    }
    salvage_fini(&listing.segment);
    return status;
}
