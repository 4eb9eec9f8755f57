/*
 * backup_journal.c: the journal of a running daemon up to a record's end.
 *
 * The daemon writes the stream without gaps. So what is sound from the beginning of the last
 * segment on, record by record, is as it will stay, and the copy ends where that ends. Header pages
 * were read before any data: their marks promise nothing that is not in the copy. A segment whose
 * page says that it is sealed has a successor, which is opened too.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/point.h"
#include "store/vfs.h"
#include "tools/rollcall/backup_private.h"

#define LOOKS_MAX   100          /* at a journal that goes on to new segments */
#define SEGMENT_MAX (1ull << 40) /* bytes of one */

static bool is_open(const struct backup_set *set, const char *name)
{
    for (size_t i = 0; i < set->segment_count; i++) {
        if (strcmp(set->segments[i].pin.name, name) == 0) {
            return true;
        }
    }
    return false;
}

static int by_segment_number(const void *a, const void *b)
{
    uint64_t left = ((const struct backup_segment *)a)->header.number;
    uint64_t right = ((const struct backup_segment *)b)->header.number;

    return (left > right) - (left < right);
}

static bool journal_fail(struct copy *copy, const char *name, const char *what)
{
    return fail_with(copy->error, sizeof(copy->error), "%.400s/%.64s: %.200s; see rollcall verify",
                     copy->from, name, what);
}

static bool read_header(struct copy *copy, struct backup_segment *segment)
{
    const char *why;
    ssize_t got =
        vfs_read_all(vfs_real(), segment->pin.fd, segment->page, sizeof(segment->page), 0);

    if (got != (ssize_t)sizeof(segment->page)) {
        return journal_fail(copy, segment->pin.name, got < 0 ? strerror(errno) : "it is cut short");
    }
    switch (journal_page_decode(segment->page, &segment->header, &segment->mark, &why)) {
    case JOURNAL_PAGE_SOUND:
        return segment->header.bytes <= SEGMENT_MAX ||
               journal_fail(copy, segment->pin.name, "its header is none");
    case JOURNAL_PAGE_NEWER:
        return journal_fail(copy, segment->pin.name, "of a newer version");
    default:
        return journal_fail(copy, segment->pin.name, why);
    }
}

/* False with copy->error. One that was deleted meanwhile is left out. */
static bool pin_segment(struct copy *copy, struct backup_set *set, const char *name)
{
    struct backup_segment *segments =
        realloc(set->segments, (set->segment_count + 1) * sizeof(*segments));

    if (segments == NULL) {
        return copy_fail(copy, name, strerror(ENOMEM));
    }
    set->segments = segments;
    struct backup_segment *segment = &segments[set->segment_count];

    switch (copy_pin(copy, name, &segment->pin)) {
    case COPY_ABSENT:
        return true;
    case COPY_FAILED:
        return false;
    default:
        set->segment_count++;
        return read_header(copy, segment);
    }
}

/* Opens the segments that are not open yet. *more: there were some. */
static bool open_new(struct copy *copy, struct backup_set *set, bool *more)
{
    DIR *directory = opendir(copy->from);
    bool good = directory != NULL;
    uint64_t start;

    *more = false;
    for (struct dirent *entry; good && (entry = readdir(directory)) != NULL;) {
        if (journal_name_parse(entry->d_name, &start) && !is_open(set, entry->d_name)) {
            *more = true;
            POINT_SLOW(BACKUP_POINT_SEGMENT);
            good = pin_segment(copy, set, entry->d_name);
        }
    }
    if (directory == NULL) {
        return journal_fail(copy, ".", strerror(errno));
    }
    closedir(directory);
    if (set->segment_count > 0) {
        qsort(set->segments, set->segment_count, sizeof(*set->segments), by_segment_number);
    }
    return good;
}

static bool last_is_sealed(const struct backup_set *set)
{
    return set->segment_count > 0 && set->segments[set->segment_count - 1].mark.sealed;
}

/*
 * Lets go of what lies before a gap: a directory is not read at one moment, so a segment may be
 * open whose successors were deleted before they were. Returns where the rest begins.
 */
static uint64_t drop_before_gap(struct backup_set *set)
{
    size_t first = set->segment_count;
    uint64_t start = UINT64_MAX; /* the last one ends nothing */

    while (first > 0) {
        const struct journal_header *header = &set->segments[first - 1].header;

        if (start != UINT64_MAX && journal_end_of(header) < start) {
            break;
        }
        start = header->start < start ? header->start : start;
        first--;
    }
    for (size_t i = 0; i < first; i++) {
        copy_unpin(&set->segments[i].pin);
    }
    set->segment_count -= first;
    if (first > 0) {
        memmove(set->segments, set->segments + first, set->segment_count * sizeof(*set->segments));
    }
    return start;
}

bool backup_journal_hold(struct copy *copy, struct backup_set *set)
{
    bool more;

    return open_new(copy, set, &more);
}

enum backup_found backup_journal_open(struct copy *copy, struct backup_set *set, uint64_t from)
{
    bool more = true;

    for (unsigned looks = 0; looks < LOOKS_MAX && (more || last_is_sealed(set)); looks++) {
        if (!open_new(copy, set, &more)) {
            return BACKUP_FAILED;
        }
    }
    return !last_is_sealed(set) && drop_before_gap(set) <= from ? BACKUP_FOUND : BACKUP_AGAIN;
}

void backup_journal_close(struct backup_set *set)
{
    for (size_t i = 0; i < set->segment_count; i++) {
        copy_unpin(&set->segments[i].pin);
    }
    free(set->segments);
    set->segments = NULL;
    set->segment_count = 0;
}

/* ---- copying ---- */

/* Bytes of whole, sound records from data[at] on. */
static size_t sound_to(const struct backup_segment *segment, const unsigned char *data,
                       size_t length)
{
    size_t at = 0;

    while (at + JOURNAL_UNIT <= length) {
        uint64_t word;

        memcpy(&word, data + at, sizeof(word));
        size_t bytes = journal_word_bytes(word);

        if (bytes == 0 || at + bytes > length ||
            (uint32_t)word != journal_record_checksum(data + at, segment->header.start + at)) {
            break;
        }
        at += bytes;
    }
    return at;
}

/* The segment as far as it is sound, malloc'd. NULL with copy->error. */
static unsigned char *read_while_sound(struct copy *copy, const struct backup_segment *segment,
                                       size_t *length)
{
    size_t room = (size_t)segment->header.bytes;
    size_t size = segment->pin.bytes < room ? (size_t)segment->pin.bytes : room;
    unsigned char *data = size >= JOURNAL_PAGE_BYTES ? malloc(size) : NULL;
    ssize_t got = data != NULL ? vfs_read_all(vfs_real(), segment->pin.fd, data, size, 0) : -1;

    if (got < (ssize_t)JOURNAL_PAGE_BYTES) {
        (void)journal_fail(copy, segment->pin.name, data != NULL ? strerror(errno) : "no memory");
        free(data);
        return NULL;
    }
    memcpy(data, segment->page, JOURNAL_PAGE_BYTES);
    *length = (size_t)got;
    return data;
}

static bool copy_segment(struct copy *copy, const struct backup_segment *segment, uint64_t *end)
{
    size_t length;
    unsigned char *data = read_while_sound(copy, segment, &length);

    if (data == NULL) {
        return false;
    }
    size_t sound = sound_to(segment, data + JOURNAL_PAGE_BYTES, length - JOURNAL_PAGE_BYTES);
    bool good = copy_write(copy, segment->pin.name, data, JOURNAL_PAGE_BYTES + sound,
                           segment->header.bytes);

    free(data);
    *end = segment->header.start + sound;
    copy->done += segment->pin.bytes;
    progress_tell(&copy->progress, copy->done, copy->whole, segment->pin.name);
    return good;
}

bool backup_journal_copy(struct copy *copy, const struct backup_set *set, uint64_t *lsn)
{
    for (size_t i = 0; i < set->segment_count; i++) {
        const struct backup_segment *segment = &set->segments[i];

        if (i > 0 && segment->header.start > *lsn) { /* its predecessor's records ended before */
            return journal_fail(copy, segment->pin.name, "records before it are missing");
        }
        if (!copy_segment(copy, segment, lsn)) {
            return false;
        }
    }
    return true;
}
