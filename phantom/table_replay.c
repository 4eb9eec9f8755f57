/*
 * table_replay.c: a change is carried out again, as its place says: what the filter, the frontier
 * and the exceptions of an image say meanwhile may be of another time, and is not asked.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "phantom/table_private.h"
#include "row/row_log.h"

static bool phantom_replay_refuse(const struct engine_replay *replay, const char *why,
                                  char error[ENGINE_ERROR_MAX])
{
    snprintf(error, ENGINE_ERROR_MAX,
             "the change of id %" PRIu64 " at %" PRIu64 " in the journal cannot be replayed: %s",
             replay->change.id, replay->lsn, why);
    return false;
}

static const char NO_MEMORY[] = "the system refuses memory";
static const char NO_SUCH[] = "it is none of a table of members";

/* Where the change goes. */
struct target {
    struct row *row;
    struct phantom_table *t;      /* NULL: it was recycled */
    struct phantom_table *apart;  /* NULL: the change is not in its part of the journal */
    struct phantom_member member; /* hashes, no bytes */
    bool own;                     /* whether it is in the table's part of the journal */
};

/*
 * It may not be there: an image is of another time. Of one that follows the count is read
 * meanwhile, and says what is there; at a start it is made anew in the end.
 */
static void leave_apart(const struct target *to)
{
    struct row_table *apart = &to->apart->row;

    if (phantom_apart_remove(to->apart, &to->member) && atomic_load(&apart->count) > 0) {
        row_removed(apart, apart, to->member.id);
    }
}

/* ---- adding ---- */

static const char *add_there(const struct target *to)
{
    struct phantom_table *t = to->t;
    if (to->own && phantom_exception_stands(t, to->member.hash, to->member.second)) {
        row_changed(&t->row);
        CHECK(dict_delete(t->exceptions, to->member.hash, (uint8_t)to->member.second));
    }
    return NULL;
}

/*
 * A layer has an image and a start of its own. Where there is one the change was made in it: it
 * touched the table, so the table's image began after it.
 */
static const char *add_inside(const struct target *to, uint64_t lsn)
{
    if (to->apart) { /* it may come from there */
        leave_apart(to);
    }
    struct phantom_table *holder = to->t ? phantom_table_holder(to->t) : NULL;
    if (!holder || holder->row.start_lsn > lsn) {
        return NULL;
    }
    uint64_t line = phantom_filter_line(&holder->filter, to->member.hash);
    if (holder->dump && !phantom_dump_grow(holder->dump, line)) {
        return NO_MEMORY;
    }
    phantom_table_set_bits(to->t, to->member.hash);
    row_replay_created(to->row, &to->t->row, &holder->row, to->member.id, true);
    return NULL;
}

static const char *add_apart(const struct target *to)
{
    if (!to->row->apart) {
        return NO_SUCH;
    }
    if (!to->apart) {
        return NULL;
    }
    uint64_t before = dict_count(to->apart->apart);
    if (!phantom_apart_restore(to->apart, &to->member)) {
        return NO_MEMORY;
    }
    row_replay_apart(to->row, to->member.id, dict_count(to->apart->apart) > before);
    return NULL;
}

static const char *replay_add(const struct target *to, enum change_place place, uint64_t lsn)
{
    switch (place) {
    case CHANGE_THERE:
        return add_there(to);
    case CHANGE_INSIDE:
        return add_inside(to, lsn);
    case CHANGE_APART:
        return add_apart(to);
    default:
        return NO_SUCH;
    }
}

/* ---- removing ---- */

/* Another pair's of the same key would stand no more by then: its image was of a later time. */
static const char *make_exception(struct phantom_table *t, const struct phantom_member *member)
{
    row_changed(&t->row);
    if (!t->exceptions && !phantom_table_deletes(t, true, 0)) {
        return NO_MEMORY;
    }
    while (!dict_put(t->exceptions, member->hash, (uint8_t)member->second, &member->second)) {
        if (!dict_grow(&t->exceptions)) {
            return NO_MEMORY;
        }
    }
    return NULL;
}

static const char *replay_remove(const struct target *to, enum change_place place)
{
    bool apart = place == CHANGE_APART || place == CHANGE_BOTH;
    if (place == CHANGE_THERE || (apart && !to->row->apart)) {
        return NO_SUCH;
    }
    if (apart && to->apart) {
        leave_apart(to);
    }
    bool excepts = place == CHANGE_INSIDE || place == CHANGE_BOTH;
    return excepts && to->own ? make_exception(to->t, &to->member) : NULL;
}

bool phantom_table_replay(struct row *row, struct phantom_table *t,
                          const struct engine_replay *replay, char error[ENGINE_ERROR_MAX])
{
    const struct change *change = &replay->change;
    struct target to = {
        .row = row,
        .t = t,
        .apart = phantom_table_of(row_replay_find_apart(row, replay->lsn)),
        .member = {.id = change->id, .hash = change->member[0], .second = change->member[1]},
        .own = t && t->row.start_lsn <= replay->lsn,
    };
    const char *why = change->type == CHANGE_MEMBER_ADD
                          ? replay_add(&to, change->place, replay->lsn)
                      : change->type == CHANGE_MEMBER_DELETE ? replay_remove(&to, change->place)
                                                             : NO_SUCH;
    return !why || phantom_replay_refuse(replay, why, error);
}
