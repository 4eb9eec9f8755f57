/*
 * follow_pages.c: changes whose record only the file of a dumped table knows. No disk is waited for
 * with the world stopped: pages are asked for there, and the slice ends; once they are here it goes
 * on. A disk reads several at once, so the pages of the next changes are asked for as well.
 */
#include "data/follow_private.h"

#include "row/row_follow.h"
#include "store/cold.h"

#define ASKS_MAX 64u   /* changes whose pages are asked for together */
#define ASKS_OF  4u    /* one in this many places of the pool's queue at most */
#define LOOK_MAX 2048u /* records that are looked at for them */

/* The applier looks by itself: what many wait for comes within its next pause. */
static void follow_pages_wake(void *target, uint64_t serial)
{
    (void)target;
    (void)serial;
}

struct ticket follow_pages_ticket(struct data *data)
{
    return (struct ticket){.wake = follow_pages_wake, .target = data->follow};
}

void follow_pages_see(struct follow *follow)
{
    follow->dumped = false;
    for (size_t i = 0; i < follow->recovery.count && !follow->dumped; i++) {
        const struct row *row = follow->recovery.spaces[i]->space->engine->row;

        follow->dumped = row_follows(row) && row_follow_dumped(row);
    }
}

/* The row a change is replayed on, as recovery_replay_take decides it; NULL: it is none, or none
 * that follows. */
static struct row *row_of_change(const struct recovery *recovery,
                                 const struct journal_record *record, struct engine_replay *replay)
{
    struct change_record_event event;

    replay->lsn = record->lsn;
    if (record->type < JOURNAL_TYPES_RESERVED ||
        change_record_decode(record->type, record->a, record->b, record->payload, record->bytes,
                             &replay->change, &event) != CHANGE_RECORD_IS_CHANGE ||
        replay->change.space > CHANGE_SPACE_MAX) {
        return NULL;
    }
    const struct recovery_space *space = recovery->by_number[replay->change.space];

    return space != NULL && record->lsn >= space->c && row_follows(space->space->engine->row)
               ? space->space->engine->row
               : NULL;
}

bool follow_pages_take(struct data *data, const struct journal_record *record, enum sliced *sliced)
{
    struct follow *follow = data->follow;
    struct recovery *recovery = &follow->recovery;
    const struct ticket ticket = follow_pages_ticket(data);
    struct engine_replay replay;
    char why[ENGINE_ERROR_MAX];

    if (LIKELY(!follow->dumped)) {
        return false;
    }
    struct row *row = row_of_change(recovery, record, &replay);

    if (row == NULL || !row_follow_reads(row, &replay, NULL)) {
        return false;
    }
    *sliced = SLICED_FAILED;
    if (!recovery_replay_flush_all(recovery)) { /* those before it come first */
        return true;
    }
    switch (row_follow_replay(row, &replay, &ticket, why)) {
    case ROW_REPLAYED:
        *sliced = SLICED;
        break;
    case ROW_REPLAY_LATER:
        *sliced = SLICED_READS;
        break;
    case ROW_REPLAY_UNREAD:
        *sliced = SLICED_WAITS;
        data_refuse(follow->error, "%s", why);
        follow_pages_release(data); /* what was promised has failed: the next slice asks anew */
        break;
    default:
        recovery_refuse_record(recovery, record->lsn, why);
        break;
    }
    return true;
}

/* Of a request that needs several pages, one after another, those before must stay. */
void follow_pages_ask(struct data *data, size_t at)
{
    struct follow *follow = data->follow;
    const struct journal_reader *reader = &follow->reader;
    const struct ticket ticket = follow_pages_ticket(data);
    uint64_t lsn = reader->at - reader->length;
    unsigned most = data->cold_config.queue / ASKS_OF;
    unsigned asked = 0;

    if (follow->asked_lsn != lsn + at) {
        follow_pages_release(data);
        follow->asked_lsn = lsn + at;
    }
    most = most < ASKS_MAX ? most : ASKS_MAX;
    for (unsigned n = 0; n < LOOK_MAX && at < reader->length && asked <= most; n++) {
        const uint64_t *words = reader->records + at / JOURNAL_UNIT;
        struct journal_record record;
        struct engine_replay replay;

        follow_record(words, lsn + at, &record);
        if (record.type == CHANGE_RECORD_EVENT) {
            break; /* those after it are of tables and slots as it leaves them */
        }
        struct row *row = row_of_change(&follow->recovery, &record, &replay);

        asked += row != NULL && row_follow_reads(row, &replay, &ticket);
        at += journal_word_bytes(words[0]);
    }
}

void follow_pages_release(struct data *data)
{
    const struct ticket ticket = follow_pages_ticket(data);

    if (data->follow->asked_lsn != 0) {
        data->follow->asked_lsn = 0;
        cold_release(data_cold(data), &ticket);
    }
}
