/*
 * counter_replay.c: changes of the journal made again. What an image holds may be newer than a
 * change, so each says all that is needed: which slots become what, and where the record lies.
 */
#include <inttypes.h>

#include "base/check.h"
#include "base/fail.h"
#include "counter/counter_private.h"
#include "row/table_kind.h"

/* A change, and where it belongs. */
struct target {
    struct row_table *table; /* NULL: it is left out */
    struct counter_locus locus;
};

/* What an image has learned of slots is not told by those before it (counter_table_preview). */
static struct counter_table *taking_part(const struct counter *counter, struct row_table *table)
{
    struct counter_table *this = counter_table_of(table);
    if (UNLIKELY(counter_table_is_previewed(this))) {
        counter_table_set_view(this, &counter->config);
    }
    return this;
}

static bool change_valid(const struct counter *counter, const struct change *change)
{
    bool slots = change->type == CHANGE_SLOTS && (change->named & ~counter->names.all) == 0 &&
                 (change->set & ~change->named) == 0 && change->place <= CHANGE_THERE_APART;
    bool deletes = change->type == CHANGE_DELETE && change->place <= CHANGE_APART;
    return change->id <= ROW_ID_MAX && (slots || deletes);
}

/* A dumped table is counted by what changes say: each once, those below its own S not. */
static bool is_counted(const struct row_table *holder, const struct engine_replay *replay)
{
    return holder->cold && replay->lsn >= holder->start_lsn;
}

/*
 * Counts a deleted record off the table or layer it was of, wherever what is left of it was found:
 * an image may show what was deleted while it was written, and so may have sent the change on.
 */
static void count_deleted(struct row_table *table, const struct engine_replay *replay)
{
    struct row_table *holder = row_layer_of(table, replay->change.layer);
    if (holder && is_counted(holder, replay) && atomic_load(&holder->count) > 0) {
        row_removed(table, holder, replay->change.id);
    }
}

/* Pages are read at once, or asked for where others are there (row/row_follow.h). */
static struct counter_reader reader_of(const struct counter *counter, const struct ticket *ticket)
{
    struct counter_reader reader = {0};
    if (ticket != NULL) {
        reader.cold = counter->row.cold->cold;
        reader.ticket = *ticket;
    }
    return reader;
}

static enum counter_replayed replay_on(const struct counter *counter, struct row_table *holder,
                                       const struct counter_locus *locus,
                                       const struct engine_replay *replay, bool *created)
{
    struct counter_table *table = counter_table_of(holder);
    if (LIKELY(!holder->cold)) {
        return counter_table_replay(table, locus, &replay->change, created);
    }
    struct counter_reader reader = reader_of(counter, counter->row.replay_ticket);
    enum counter_replayed replayed =
        counter_table_replay_cold(table, locus, &replay->change, &reader, created);
    *created = *created && is_counted(holder, replay);
    return replayed;
}

/* The row counts what came and went. */
static void count_replayed(struct counter *counter, const struct target *target,
                           struct row_table *holder, const struct engine_replay *replay,
                           bool created)
{
    const struct change *change = &replay->change;
    if (target->table->is_apart) {
        row_replay_apart(&counter->row, change->id, created);
    } else if (change->type == CHANGE_DELETE) {
        count_deleted(target->table, replay);
    } else if (change->place != CHANGE_THERE) {
        row_replay_created(&counter->row, target->table, holder, change->id, created);
    }
}

/* Nothing of it was done. */
static bool refuse_replay(struct counter *counter, const struct engine_replay *replay,
                          enum counter_replayed replayed, char *error)
{
    static const struct {
        enum row_replayed ended;
        const char *why;
    } refusals[] = {
        [COUNTER_REPLAY_FULL] = {ROW_REPLAY_FAILED, "no memory for"},
        [COUNTER_REPLAY_UNREAD] = {ROW_REPLAY_UNREAD,
                                   "a file of a dumped table cannot be read for"},
        [COUNTER_REPLAY_PENDING] = {ROW_REPLAY_LATER, "a page of a dumped table is read for"},
    };
    counter->row.replayed = refusals[replayed].ended;
    return fail_with(error, ENGINE_ERROR_MAX, "%s the change of id %" PRIu64 " at %" PRIu64,
                     refusals[replayed].why, replay->change.id, replay->lsn);
}

static bool replay_one(struct counter *counter, const struct target *target,
                       const struct engine_replay *replay, char *error)
{
    const struct change *change = &replay->change;
    struct row_table *holder = target->table;
    struct counter_locus locus = target->locus;
    bool created = false;
    enum counter_replayed replayed = replay_on(counter, holder, &locus, replay, &created);
    while (UNLIKELY(replayed == COUNTER_REPLAY_FURTHER)) {
        holder = holder->further;
        struct counter_table *layer = taking_part(counter, holder);
        counter_table_locate(layer, change->id, true, &locus);
        replayed = replay_on(counter, holder, &locus, replay, &created);
    }
    if (replayed >= COUNTER_REPLAY_FULL) {
        return refuse_replay(counter, replay, replayed, error);
    }
    count_replayed(counter, target, holder, replay, created);
    return true;
}

static struct row_table *target_of(const struct counter *counter, const struct change *change,
                                   uint64_t lsn)
{
    bool apart = change->place == CHANGE_APART ||
                 (change->type == CHANGE_SLOTS && change->place == CHANGE_THERE_APART);
    return apart ? row_replay_find_apart(&counter->row, lsn)
                 : row_replay_find(&counter->row, change->id, lsn);
}

/* What was put in place is not apart any more. */
static void leave_apart(struct counter *counter, const struct engine_replay *replay)
{
    const struct change *change = &replay->change;
    bool placed = change->type == CHANGE_SLOTS && change->place == CHANGE_INSIDE;
    struct row_table *apart =
        placed ? row_replay_was_apart(&counter->row, change->id, replay->lsn) : NULL;
    if (UNLIKELY(apart != NULL)) {
        counter_table_drop_apart(taking_part(counter, apart), change->id);
    }
}

bool counter_replay(struct engine *engine, const struct engine_replay *changes, size_t n,
                    char error[ENGINE_ERROR_MAX])
{
    struct counter *counter = counter_of(engine);
    struct target targets[ROW_REPLAY_BATCH];
    CHECK(n <= ROW_REPLAY_BATCH);
    for (size_t i = 0; i < n; i++) {
        const struct change *change = &changes[i].change;
        if (!change_valid(counter, change)) {
            return fail_with(error, ENGINE_ERROR_MAX,
                             "the change at %" PRIu64 " is none of this space", changes[i].lsn);
        }
        targets[i].table = target_of(counter, change, changes[i].lsn);
        if (targets[i].table) {
            counter_table_locate(taking_part(counter, targets[i].table), change->id, true,
                                 &targets[i].locus);
        }
    }
    for (size_t i = 0; i < n; i++) {
        leave_apart(counter, &changes[i]);
        if (targets[i].table && !replay_one(counter, &targets[i], &changes[i], error)) {
            return false;
        }
    }
    return true;
}

bool counter_replay_reads(struct engine *engine, const struct engine_replay *replay,
                          const struct ticket *ticket)
{
    struct counter *counter = counter_of(engine);
    const struct change *change = &replay->change;
    struct counter_reader reader = reader_of(counter, ticket);
    struct row_table *holder =
        change_valid(counter, change) ? target_of(counter, change, replay->lsn) : NULL;
    bool reads = false;
    for (; holder != NULL && holder->cold; holder = holder->further) {
        struct counter_locus locus;
        struct counter_table *table = taking_part(counter, holder);
        counter_table_locate(table, change->id, false, &locus);
        reads = counter_table_replay_reads(table, &locus, change, ticket ? &reader : NULL) || reads;
    }
    return reads;
}
