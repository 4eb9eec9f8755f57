/* row_room.c: whose memory is used again, and what becomes of its ids; with the world stopped. */
#include "row/row_room.h"

#include "base/dict.h"
#include "base/log.h"

#define JUMP_PART     4  /* a table opened for ahead ids is one of the others once it holds 1/4 */
#define DROPS_AT_ONCE 64 /* by each of the loops below: the log has room for their events */

_Static_assert(3 * DROPS_AT_ONCE * (ROW_DROP_BYTES_MAX + 16) + 3 * ROW_TABLE_BYTES_MAX <=
                   CHANGE_EVENTS_BYTES_MAX,
               "the log has room for the events of one row_serve");

/* Ids that came in place, here and in the layer. */
static uint64_t placed_so_far(const struct row_table *table)
{
    return row_count_all(table) + atomic_load_explicit(&table->gone, memory_order_relaxed);
}

void row_see_table(struct row_table *table)
{
    table->seen = placed_so_far(table);
}

void row_see_activity(struct row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        row_see_table(row->tables[i]);
    }
}

static uint64_t placed_since(const struct row_table *table)
{
    uint64_t placed = placed_so_far(table);
    return placed > table->seen ? placed - table->seen : 0;
}

/* Returns the table where most ids came in since the last opening. NULL: none came. */
static const struct row_table *most_active(const struct row *row)
{
    const struct row_table *found = NULL;
    for (size_t i = 0; i < row->count; i++) {
        uint64_t most = found ? placed_since(found) : 0;
        bool more = !row->tables[i]->cold && placed_since(row->tables[i]) > most;
        found = more ? row->tables[i] : found;
    }
    return found;
}

/* Returns whether a table is a jump. One where the stream has gone on is none, however few ids have
 * come yet. */
static bool is_jump(const struct row_table *table, const struct row_table *active)
{
    return table->jumped && !row_is_going(table) &&
           row_count_of(table) < table->capacity / JUMP_PART &&
           (table != active || placed_since(table) < ROW_CLUSTER);
}

/* Jumps beyond those there may be, if there were `more` of them. */
static size_t jumps_too_many(const struct row *row, size_t more)
{
    const struct row_table *active = most_active(row);
    size_t jumps = more;
    for (size_t i = 0; i < row->count; i++) {
        jumps += is_jump(row->tables[i], active);
    }
    size_t live = row->config.tables - (row_keeps_spare(row) ? 1 : 0);
    size_t most = live / 2 > 1 ? live / 2 : 1;
    return jumps > most ? jumps - most : 0;
}

/* Tables that stay: where most ids come in, the one opened last; and tables that alone may go. */
#define STAY_ACTIVE 1u
#define STAY_NEWEST 2u
#define GO_JUMPS    4u
#define GO_OLDER    8u /* than the one in need */
#define GO_NOBODY   16u

/* Returns whether the policy lets the table give its memory. */
static bool may_go(const struct row *row, const struct row_table *table)
{
    return row->config.recycle ? !table->cold : !row_is_going(table) && table->settled;
}

/* Returns the table opened longest ago of those that may go; never the one in need (NULL: that may
 * go). */
static struct row_table *oldest(const struct row *row, const struct row_table *needed,
                                unsigned rules)
{
    const struct row_table *active = most_active(row);
    struct row_table *found = NULL;
    for (size_t i = 0; i < row->count; i++) {
        struct row_table *table = row->tables[i];
        bool stays = table == needed || (rules & STAY_ACTIVE && table == active) ||
                     (rules & STAY_NEWEST && table->serial + 1 == row->serials) ||
                     (rules & GO_JUMPS && !is_jump(table, active)) ||
                     (rules & GO_OLDER && table->serial > needed->serial);
        bool older = found == NULL || table->serial < found->serial;
        if (!stays && older && may_go(row, table)) {
            found = table;
        }
    }
    return found;
}

/* By the first rules that let one go. */
#define RULES_MAX 3
typedef unsigned rules_list[RULES_MAX];

static struct row_table *victim(const struct row *row, const struct row_table *needed,
                                const rules_list rules)
{
    struct row_table *found = NULL;
    for (size_t i = 0; i < RULES_MAX && found == NULL && rules[i] != GO_NOBODY; i++) {
        found = oldest(row, needed, rules[i]);
    }
    return found;
}

/* Without a region nothing can be done: a stream is worth any table, a layer older ones and jumps,
 * a jump what is not used. */
static const rules_list for_region[] = {
    [ROW_NEED_NEXT] = {STAY_ACTIVE | STAY_NEWEST, STAY_NEWEST, 0},
    [ROW_NEED_LAYER] = {STAY_ACTIVE | STAY_NEWEST | GO_OLDER, STAY_NEWEST | GO_OLDER,
                        STAY_ACTIVE | GO_JUMPS},
    [ROW_NEED_JUMP] = {STAY_ACTIVE | STAY_NEWEST, GO_NOBODY},
};
static const rules_list for_region_of_jump = {STAY_ACTIVE | GO_JUMPS, STAY_ACTIVE | STAY_NEWEST,
                                              GO_NOBODY};

/* Without a spare one the next opening takes longer. */
static const rules_list for_spare[] = {
    [ROW_NEED_NEXT] = {STAY_ACTIVE | STAY_NEWEST, STAY_NEWEST, GO_NOBODY},
    [ROW_NEED_LAYER] = {STAY_ACTIVE | STAY_NEWEST | GO_OLDER, STAY_NEWEST | GO_OLDER, GO_NOBODY},
    [ROW_NEED_JUMP] = {STAY_ACTIVE | STAY_NEWEST, GO_NOBODY},
};

/* Deletes of what was only wrongly said to be there can outnumber what is. */
uint64_t row_held(const struct row *row, const struct row_table *table)
{
    uint64_t count = row_count_all(table);
    for (unsigned left = row->kind->excepted; left != 0; left &= left - 1) {
        const struct dict *front;
        unsigned section = (unsigned)__builtin_ctz(left);
        const struct dict *dict = row->kind->section(table, section, 0, &front);
        uint64_t gone = dict != NULL ? dict_count(dict) : 0;
        count = count > gone ? count - gone : 0;
    }
    return count;
}

/* ---- dropping ---- */

/* The gaps of a list of ranges, and how many ids apart lie in each. */
struct gaps {
    const struct row_dropped_list *list;
    uint64_t held[ROW_DROPPED_LIST_MAX];
};

static void note_held(void *context, uint64_t id)
{
    struct gaps *gaps = context;
    const struct row_range *at = gaps->list->at;
    for (uint64_t i = 0; i + 1 < gaps->list->count; i++) {
        gaps->held[i] += at[i].last < id && id < at[i + 1].first;
    }
}

static uint64_t ids_between(const struct row_range *range)
{
    return range[1].first - range[0].last - 1;
}

/*
 * Two ranges become one: the nearest with no id between them, in place or apart. What may come
 * between is refused from now on, which is better than a count that begins anew. False: there are
 * none, as only above this frontier nothing is in place.
 */
static bool close_gap(const struct row *row, uint64_t frontier, struct row_dropped_list *list)
{
    struct gaps gaps = {.list = list};
    uint64_t found = list->count;
    if (row->apart != NULL) {
        row_apart_each(row, note_held, &gaps);
    }
    for (uint64_t i = 0; i + 1 < list->count; i++) {
        bool free = list->at[i].last >= frontier && gaps.held[i] == 0;
        bool nearer =
            found == list->count || ids_between(&list->at[i]) < ids_between(&list->at[found]);
        found = free && nearer ? i : found;
    }
    if (found == list->count) {
        return false;
    }
    row_dropped_list_add(list, list->at[found].first, list->at[found + 1].last);
    return true;
}

/*
 * Which ids are gone with it: all up to its frontier, and what it knows. Those apart stay, but
 * where there are more ranges than the table below can know. As replay decides nothing, what it is
 * to know is said in full.
 */
static uint64_t see_dropped(const struct row *row, const struct row_table *table,
                            struct row_dropped *dropped)
{
    const struct row_table *below = row->tables[row_index_of(row, table) - 1];
    uint64_t frontier = row_frontier_of(table);
    struct row_dropped_list list = {0};
    row_dropped_list_add_all(&list, &below->dropped);
    row_dropped_list_add_all(&list, &table->dropped);
    if (frontier >= table->base) {
        row_dropped_list_add(&list, table->base, frontier);
    }
    while (list.count > ROW_DROPPED_MAX && close_gap(row, row_frontier_of(below), &list)) {
    }
    return row_dropped_new(&list, &below->dropped, dropped);
}

/* What of it is apart goes as well; of the lowest table all, since nobody can ask for it. */
static void forget_dropped(struct row *row, const struct row_table *table,
                           const struct row_dropped *dropped)
{
    if (row->tables[0] == table) {
        row->recycled_ids += row_apart_forget(row, 0, table->last);
    }
    for (uint64_t i = 0; i < dropped->count; i++) {
        row->recycled_ids += row_apart_forget(row, dropped->at[i].first, dropped->at[i].last);
    }
}

/*
 * Nothing of the range is in place there: it lies above all that ever was. Where the stream went on
 * from the one into the other it has passed what is dropped.
 */
static uint64_t take_over(struct row_table *table, const struct row_table *gone,
                          const struct row_dropped *dropped)
{
    uint64_t left_out = 0;
    bool passed = row_frontier_of(table) == table->last; /* closed or not: replay says the same */
    table->last = gone->last;
    if (passed) {
        row_raise_to(&table->frontier, row_frontier_of(gone));
        table->closed = row_frontier_of(table) == table->last;
    }
    for (uint64_t i = 0; i < dropped->count; i++) {
        left_out += row_dropped_add(&table->dropped, dropped->at[i].first, dropped->at[i].last);
    }
    row_follow_layer(table);
    row_touch(table);
    return left_out;
}

static void say_left_out(const struct row *row, const struct row_table *table, uint64_t ids)
{
    if (ids > 0) {
        log_warning("a table was recycled, and some of its ids count from nothing if they come "
                    "again, as it left more ranges of ids than are remembered space=%s "
                    "first_id=%llu ids=%llu ranges=%d",
                    row_space_name(row), (unsigned long long)table->base, (unsigned long long)ids,
                    ROW_DROPPED_MAX);
    }
}

void row_drop(struct row *row, struct row_table *table, const struct row_dropped *dropped)
{
    size_t at = row_rank(row, table->base, row->count) - 1;
    row->recycled_tables++;
    row->recycled_ids += row_held(row, table);
    forget_dropped(row, table, dropped);
    if (at > 0) {
        say_left_out(row, table, take_over(row->tables[at - 1], table, dropped));
        row_ahead_hand_over(row, table, row->tables[at - 1]);
    } else {
        row_ahead_forget(row, table);
    }
    row_log_drop(row, table, dropped);
    row_retire(row, table);
    row_count_dropped(row);
    row_apart_see(row);
    if (at > 0) { /* what the frontier passes there has become its own */
        row_lower_to(&row->tables[at - 1]->place_at, row->tables[at - 1]->apart_first);
    }
}

/* Below the oldest table nobody asks which they were. */
void row_recycle(struct row *row, struct row_table *table)
{
    struct row_dropped dropped = {0};
    if (row->tables[0] != table) {
        say_left_out(row, table, see_dropped(row, table, &dropped));
    }
    row_drop(row, table, &dropped);
}

bool row_jumps_enough(const struct row *row)
{
    return jumps_too_many(row, 1) > 0 &&
           (!row_keeps_spare(row) || oldest(row, NULL, STAY_ACTIVE | GO_JUMPS) == NULL);
}

/* Tables that it takes to reach from the end of this one to the next. */
static uint64_t needed_above(const struct row_table *table)
{
    uint64_t limit = row_limit(table);
    bool gap = table->settled && !table->closed && table->last != ROW_ID_MAX && limit < table->last;
    uint64_t range = table->range != 0 ? table->range : row_spanned(table) + 1;
    return gap ? 1 + (table->last - limit - 1) / range : 0;
}

bool row_needs_all(const struct row *row)
{
    uint64_t needed = 1; /* a layer, or what is denser than was thought */
    uint64_t most = row->config.tables / 2 > 1 ? row->config.tables / 2 - 1 : 0;
    size_t left = row_regions_free(row);
    for (size_t i = 0; i < row->count && needed < most; i++) {
        uint64_t more = needed_above(row->tables[i]);
        needed = more < most - needed ? needed + more : most;
    }
    return !row_keeps_spare(row) && left > 0 && left <= (needed < most ? needed : most);
}

/* Nothing ever came in place: its range can be that of the table below. */
static bool is_unused(const struct row *row, const struct row_table *table)
{
    return row_frontier_of(table) < table->base && row->tables[0] != table;
}

/* Gives up its memory: it is dropped, or to be dumped. */
static void go(struct row *row, struct row_table *table)
{
    if (row->config.recycle || is_unused(row, table)) {
        row_recycle(row, table);
    } else {
        row_cold_leave(row, table);
    }
}

static enum row_room recycle_some(struct row *row, const struct row_table *table,
                                  const rules_list rules)
{
    struct row_table *found = victim(row, table, rules);
    enum row_room room = found != NULL ? ROW_ROOM_AGAIN : ROW_ROOM_NONE;
    for (unsigned i = 0; i < DROPS_AT_ONCE && found != NULL; i++) {
        row_recycle(row, found);
        found = row_fits(row, 1) ? NULL : victim(row, table, rules);
    }
    return room;
}

/* Where none may go, a table that nothing came to gives its region, and its range to the one below:
 * scattered ids fill what they have shown of theirs, and never come above it. */
static bool take_unused(struct row *row, const struct row_table *table)
{
    bool may = row->log == NULL && row_stream_is_scattered(row, table);
    for (size_t i = row->count; may && i > 1; i--) {
        struct row_table *unused = row->tables[i - 1];
        if (unused != table && !unused->cold && row_came(unused) == 0 && is_unused(row, unused)) {
            row_recycle(row, unused);
            return true;
        }
    }
    return false;
}

/* No more leave than are waited for. */
static enum row_room dump_some(struct row *row, struct row_table *table, const rules_list rules)
{
    bool leaving = false;
    bool freed = false;
    size_t needed = 1;
    if (row->dump_failed) {
        return ROW_ROOM_NONE;
    }
    for (size_t i = 0; i < row->count; i++) {
        leaving = leaving || row_any_leaving(row->tables[i]);
        needed += row->tables[i]->awaiting;
    }
    for (unsigned i = 0; i < DROPS_AT_ONCE; i++) {
        bool enough = (leaving || freed) && row_fits(row, needed);
        struct row_table *found = enough ? NULL : victim(row, table, rules);
        if (found == NULL) {
            break;
        }
        bool unused = is_unused(row, found);
        leaving = leaving || !unused;
        freed = freed || unused;
        go(row, found);
    }
    table->awaiting = leaving && !freed;
    return freed ? ROW_ROOM_AGAIN : leaving ? ROW_ROOM_LATER : ROW_ROOM_NONE;
}

/* No other may go: it has all memory itself, as layers. The next table opens once it has left. */
static enum row_room dump_itself(struct row *row, struct row_table *table)
{
    if (row->dump_failed || table->further == NULL || !may_go(row, table)) {
        return ROW_ROOM_NONE;
    }
    row_cold_leave(row, table);
    table->awaiting = true;
    return ROW_ROOM_LATER;
}

enum row_room row_make_room(struct row *row, struct row_table *table, enum row_need need)
{
    if (row->untidy) {
        row->untidy = false;
        return ROW_ROOM_AGAIN;
    }
    bool instead = need == ROW_NEED_JUMP && jumps_too_many(row, 1) > 0;
    bool layer = need == ROW_NEED_LAYER;
    if (layer && row_stream_is_in(row, table)) {
        need = ROW_NEED_NEXT; /* the stream is worth any table there, too */
    }
    const unsigned *rules = instead ? for_region_of_jump : for_region[need];
    if (row->config.recycle) {
        return recycle_some(row, table, rules);
    }
    if (row_dumps(row)) {
        enum row_room room = dump_some(row, table, rules);
        bool itself = room == ROW_ROOM_NONE && need == ROW_NEED_NEXT && !layer;
        return itself ? dump_itself(row, table) : room;
    }
    bool full = layer || row_count_of(table) >= table->capacity; /* else others need it more */
    bool unused = full && need == ROW_NEED_NEXT && take_unused(row, table);
    table->layer_first = table->layer_first || (unused && layer);
    return unused ? ROW_ROOM_AGAIN : ROW_ROOM_NONE;
}

/* Too many jumps: the oldest goes, even if the new one was opened for ids that it held apart. */
static void drop_jumps(struct row *row)
{
    for (unsigned i = 0; i < DROPS_AT_ONCE && jumps_too_many(row, 0) > 0; i++) {
        struct row_table *found = oldest(row, NULL, STAY_ACTIVE | STAY_NEWEST | GO_JUMPS);
        if (found == NULL) {
            return;
        }
        go(row, found);
    }
}

void row_keep_spare(struct row *row, const struct row_table *table, enum row_need need)
{
    if (!row_keeps_spare(row)) {
        return;
    }
    if (need == ROW_NEED_JUMP) {
        drop_jumps(row);
    }
    for (unsigned i = 0; i < DROPS_AT_ONCE && !row_fits(row, 1); i++) {
        struct row_table *found = victim(row, table, for_spare[need]);
        if (found == NULL && need == ROW_NEED_NEXT) {
            found = oldest(row, NULL, STAY_NEWEST); /* what was in need is satisfied */
        }
        if (found == NULL) {
            return;
        }
        go(row, found);
    }
}
