/*
 * follow_compare.c: what this node's journal has in common with its leader's: sums, and whether it
 * can be cut where the two part. Reads the journal's files.
 */
#include "data/follow_private.h"
#include "store/journal_format.h"

/* Sums the records from `at` to lsn. Returns how far it came. *segment: where the one it came to
 * begins. */
static uint64_t follow_sum(struct data *data, uint64_t at, uint64_t lsn, uint64_t *sum,
                           uint64_t *segment)
{
    struct journal_reader reader;
    uint64_t written = journal_written(data->journal);

    *sum = 0;
    journal_reader_init(&reader, data->vfs, data->directory, at);
    while (at < lsn && journal_reader_next(&reader, written) == JOURNAL_READ_RECORDS) {
        for (size_t i = 0; i < reader.length && at < lsn;) {
            uint64_t word = reader.records[i / JOURNAL_UNIT];

            *sum = journal_sum(*sum, word);
            i += journal_word_bytes(word);
            at += journal_word_bytes(word);
        }
    }
    *segment = reader.header.start;
    journal_reader_fini(&reader);
    return at;
}

/* Returns whether a record of the segment lies on both sides of lsn. */
static bool is_in_record(struct data *data, uint64_t segment, uint64_t lsn)
{
    uint64_t sum, unused;

    return segment < lsn && follow_sum(data, segment, lsn, &sum, &unused) > lsn;
}

bool data_sum(struct data *data, uint64_t from, uint64_t lsn, uint64_t *sum)
{
    uint64_t segment;

    if (follow_sum(data, from, lsn, sum, &segment) == lsn) {
        return true;
    }
    *sum = 0;
    return is_in_record(data, segment, from);
}

/* ---- going back ---- */

/* What lies from lsn on. */
struct above {
    bool begun[CHANGE_SPACE_MAX + 1]; /* a record is of the space's beginning, or of its slots */
    uint64_t end;                     /* up to where it can be read */
    uint64_t segment;                 /* where the one that holds that begins */
};

static void see_above(struct above *above, const struct journal_record *record)
{
    struct change_record_event event;

    if (follow_event(record, &event) && event.event == CHANGE_EVENT_SPACE) {
        above->begun[event.space] = true;
    }
}

static void read_above(struct data *data, uint64_t lsn, struct above *above)
{
    struct journal_reader reader;
    uint64_t written = journal_written(data->journal);

    *above = (struct above){.end = lsn};
    journal_reader_init(&reader, data->vfs, data->directory, lsn);
    while (above->end < written && journal_reader_next(&reader, written) == JOURNAL_READ_RECORDS) {
        for (size_t i = 0; i < reader.length;) {
            const uint64_t *words = reader.records + i / JOURNAL_UNIT;
            struct journal_record record;

            follow_record(words, above->end, &record);
            see_above(above, &record);
            i += journal_word_bytes(words[0]);
            above->end += journal_word_bytes(words[0]);
        }
    }
    above->segment = reader.header.start;
    journal_reader_fini(&reader);
}

/* A space that no image names may be one that begins above: then the manifest must not name it. */
static bool tables_allow(struct data *data, uint64_t lsn, const struct above *above)
{
    pthread_mutex_lock(&data->lock);
    const struct manifest *manifest = data->manifest;
    bool allow = manifest->journal_lsn <= lsn;

    for (size_t i = 0; i < manifest->spaces_count; i++) {
        const struct manifest_space *space = &manifest->spaces[i];
        uint64_t unnamed = above->begun[space->number] ? UINT64_MAX : 0;

        allow = allow && data_label(space, DATA_LABEL_M, unnamed) <= lsn;
    }
    pthread_mutex_unlock(&data->lock);
    return allow;
}

enum data_rewind data_can_rewind(struct data *data, uint64_t lsn)
{
    struct above above;
    uint64_t written = journal_written(data->journal); /* a disk that hangs has less than came */

    read_above(data, lsn, &above);
    if (lsn <= written && above.end >= written) {
        return tables_allow(data, lsn, &above) ? DATA_REWIND : DATA_REWIND_COPY;
    }
    return above.end == lsn && is_in_record(data, above.segment, lsn) ? DATA_REWIND_PARTED
                                                                      : DATA_REWIND_COPY;
}
