/* checkpoint_round.c: one checkpoint from C to the manifest. */
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/point.h"
#include "data/checkpoint_private.h"
#include "data/follow.h"
#include "row/row_follow.h"

/* ---- the world ---- */

void checkpoint_stop_world(struct checkpoint_round *round)
{
    if (round->barrier != NULL) {
        barrier_stop(round->barrier);
    }
    round->reached = data_head(round->data);
}

void checkpoint_go(struct checkpoint_round *round)
{
    if (round->barrier != NULL) {
        barrier_go(round->barrier);
    }
}

static struct keeper *keeper_of(const struct checkpoint_round *round)
{
    return round->barrier != NULL && round->count > 0 ? round->spaces[0]->space->job.keeper : NULL;
}

static void raise_keeper(struct keeper *keeper, enum checkpoint_keeper from,
                         enum checkpoint_keeper to)
{
    if (from < CHECKPOINT_KEEPER_HELD && to >= CHECKPOINT_KEEPER_HELD) {
        keeper_hold(keeper);
    }
    if (from < CHECKPOINT_KEEPER_STOPPED && to >= CHECKPOINT_KEEPER_STOPPED) {
        keeper_stop(keeper);
    }
}

static void lower_keeper(struct keeper *keeper, enum checkpoint_keeper from,
                         enum checkpoint_keeper to)
{
    if (from >= CHECKPOINT_KEEPER_STOPPED && to < CHECKPOINT_KEEPER_STOPPED) {
        keeper_go(keeper, NULL);
    }
    if (from >= CHECKPOINT_KEEPER_HELD && to < CHECKPOINT_KEEPER_HELD) {
        keeper_release(keeper);
    }
}

void checkpoint_set_keeper(struct checkpoint_round *round, enum checkpoint_keeper to)
{
    if (keeper_of(round) != NULL) {
        raise_keeper(keeper_of(round), round->keeper, to);
        lower_keeper(keeper_of(round), round->keeper, to);
    }
    round->keeper = to;
}

/* ---- beginning ---- */

static void note_space(struct checkpoint_round *round, struct space *space)
{
    struct checkpoint_space *note = memory_zalloc(sizeof(*note));
    struct engine *engine = space->engine;

    note->space = space;
    row_images_begin(engine->row);
    note->state_bytes = row_state_write(engine->row, note->state);
    CHECK(note->state_bytes <= ENGINE_STATE_MAX);
    checkpoint_list_tables(note);
    round->spaces[round->count++] = note;
}

static bool takes_part(const struct checkpoint_round *round, const struct space *space)
{
    const struct engine *engine = space->engine;

    if (data_follows(round->data) && data_stores(&space->settings) && !row_follows(engine->row)) {
        return false; /* it has not begun there */
    }
    return data_stores(&space->settings) && (!round->dumps_only || row_images_wanted(engine->row) ||
                                             checkpoint_waits(round->data, space));
}

static void checkpoint_fold_all(struct checkpoint_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        const struct engine *engine = round->spaces[i]->space->engine;

        checkpoint_fold(round, engine->row);
    }
}

/* C, and the spaces as they are there. Spaces live on until the round is over: with data none is
 * removed. */
static void checkpoint_round_begin(struct checkpoint_round *round, struct spaces *const *spaces)
{
    checkpoint_stop_world(round);
    round->c = round->dumps_only ? 0 : round->reached;
    for (size_t i = 0; i < (*spaces)->count; i++) {
        if (takes_part(round, (*spaces)->at[i])) {
            note_space(round, (*spaces)->at[i]);
        }
    }
    checkpoint_go(round);
    checkpoint_fold_all(round);
}

/* ---- ending ---- */

static bool sync_journal(struct checkpoint_round *round)
{
    return journal_commit(&round->writer) && journal_sync_now(round->data->journal);
}

/*
 * Makes the journal durable: all that images may hold, and all events below any M, must come back
 * from it, so it has to be written (a worker may be in the midst of its turn) and synced, whatever
 * its sync setting.
 */
static bool make_durable(struct checkpoint_round *round)
{
    struct journal *journal = round->data->journal;
    struct journal_stats stats;

    if (!data_may_store(round->data)) { /* an image may hold a part of what failed */
        return data_refuse(round->error, "what is received is not carried out");
    }
    if (sync_journal(round) && journal_durable(journal) >= round->reached) {
        return true;
    }
    journal_stats(journal, &stats);
    return data_refuse(round->error, "the journal cannot be synced: %s", stats.error);
}

static void look_once_more(struct checkpoint_round *round)
{
    round->reached = data_head(round->data); /* not below any E or M */
}

/* World stopped. */
static void fail_images(struct checkpoint_space *space)
{
    struct engine *engine = space->space->engine;

    for (size_t i = 0; i < space->image_count; i++) {
        row_image_failed(engine->row, &space->images[i]->image);
    }
}

static void throw_away(struct checkpoint_round *round)
{
    checkpoint_stop_world(round);
    for (size_t i = 0; i < round->count; i++) {
        fail_images(round->spaces[i]);
    }
    checkpoint_go(round);
    for (size_t i = 0; i < round->count; i++) {
        const struct engine *engine = round->spaces[i]->space->engine;

        row_images_settle(engine->row);
        checkpoint_close_dumps(round->spaces[i]);
        for (size_t k = 0; k < round->spaces[i]->image_count; k++) {
            data_delete_file(round->data, round->spaces[i]->images[k]->file.name);
        }
    }
}

/*
 * Ends the waits of all spaces, not only of those that take part: the next round is some seconds
 * away for each. Also where a manifest with the dumps may be on the disk: they are handed over when
 * one is for sure.
 */
static void end_waits(struct checkpoint_round *round, struct spaces *const *spaces)
{
    struct row *failed[SETTINGS_SPACES_MAX];
    size_t count = 0;

    checkpoint_stop_world(round);
    for (size_t i = 0; i < (*spaces)->count; i++) {
        struct engine *engine = (*spaces)->at[i]->engine;

        if (data_stores(&(*spaces)->at[i]->settings)) {
            row_images_failed(engine->row);
            failed[count++] = engine->row;
        }
    }
    checkpoint_go(round);
    for (size_t i = 0; i < count; i++) {
        row_images_settle(failed[i]);
    }
}

static void checkpoint_round_fini(struct checkpoint_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        checkpoint_free_images(round->spaces[i]);
        free(round->spaces[i]->tables);
        free(round->spaces[i]);
    }
    journal_writer_fini(&round->writer);
}

/* ---- the whole ---- */

static bool make_images(struct checkpoint_round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        if (!checkpoint_images(round, round->spaces[i])) {
            return false;
        }
    }
    return true;
}

/* Dumps of this round, or of one before it whose manifest could not be stored. */
static bool hands_over(const struct checkpoint_round *round, const struct checkpoint_space *space)
{
    return checkpoint_has_dumps(space) || checkpoint_waits(round->data, space->space);
}

static bool checkpoint_round_has_dumps(const struct checkpoint_round *round)
{
    size_t i = 0;

    while (i < round->count && !hands_over(round, round->spaces[i])) {
        i++;
    }
    return i < round->count;
}

/* *found: there were images to make. */
static bool look_at_dumps(struct checkpoint_round *round, bool *found)
{
    *found = false;
    for (size_t i = 0; i < round->count; i++) {
        struct checkpoint_space *space = round->spaces[i];
        size_t before = space->written;

        if (hands_over(round, space) && !checkpoint_images(round, space)) {
            return false;
        }
        *found = *found || space->written > before;
    }
    return true;
}

/*
 * What was touched while other spaces had their turn: a later M, that holds until the dumps are
 * handed over. The journal's sync here only makes the one in the bracket short.
 */
static bool settle_dumps(struct checkpoint_round *round)
{
    bool found = checkpoint_round_has_dumps(round);

    if (found) {
        checkpoint_set_keeper(round, CHECKPOINT_KEEPER_HELD);
    }
    while (found) {
        if (!look_at_dumps(round, &found)) {
            return false;
        }
        if (round->keeper != CHECKPOINT_KEEPER_STOPPED) {
            (void)sync_journal(round);
            checkpoint_set_keeper(round, CHECKPOINT_KEEPER_STOPPED);
            found = true;
        }
    }
    return true;
}

static bool checkpoint_round_run(struct checkpoint_round *round, bool *taken)
{
    if (!make_images(round) || !settle_dumps(round)) {
        return false;
    }
    look_once_more(round);
    if (!make_durable(round) || !checkpoint_open_dumps(round)) {
        return false;
    }
    POINT("files synced, no manifest names them");
    return checkpoint_publish(round, taken);
}

bool checkpoint_round(struct checkpoint_round *round, struct spaces *const *spaces)
{
    bool taken = false;

    round->error[0] = '\0';
    journal_writer_init(&round->writer, round->data->journal);
    checkpoint_round_begin(round, spaces);
    bool done = checkpoint_round_run(round, &taken);

    if (!done && !taken) {
        throw_away(round);
    } else if (!done) {
        checkpoint_pend_dumps(round);
        if (round->dumps_only) { /* requests may wait for them, and no engine asks once more */
            round->data->asked = true;
        }
    }
    if (!done) {
        end_waits(round, spaces);
    }
    checkpoint_set_keeper(round, CHECKPOINT_KEEPER_FREE);
    checkpoint_fold_all(round); /* of merges that were thrown away */
    checkpoint_round_fini(round);
    return done;
}
