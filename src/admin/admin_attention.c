/* admin_attention.c: one function for each thing that can be wrong. */
#include "admin/admin_attention.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/readable.h"

__attribute__((format(printf, 2, 3))) static void say(struct admin_attention *attention,
                                                      const char *format, ...)
{
    va_list arguments;

    if (attention->count == ADMIN_ATTENTION_MAX) {
        attention->more++;
        return;
    }
    va_start(arguments, format);
    vsnprintf(attention->sentences[attention->count++], ADMIN_SENTENCE_MAX, format, arguments);
    va_end(arguments);
}

/* ---- the disk ---- */

static void look_at_journal(const struct admin_figures *figures, struct admin_attention *attention)
{
    const struct journal_stats *journal = &figures->journal;
    uint64_t waited = figures->events.journal_refusals;
    char span[READABLE_MAX], times[READABLE_MAX];

    if (journal->failed) {
        say(attention,
            "The journal has failed, and every change is refused: %.150s. Repair the disk, then "
            "restart the daemon.",
            journal->error);
        return;
    }
    if (journal->full) {
        say(attention, "The disk is full: the journal finds no room for a further file, and "
                       "changes are refused. Free some space on the file system of `data`.");
    }
    if (journal->unsynced_us >= ADMIN_JOURNAL_LAG_US && figures->sync != JOURNAL_SYNC_NEVER) {
        say(attention,
            "The journal is behind: its oldest change has waited %s for the disk. Look whether the "
            "disk is busy (iostat -x 1) or failing (dmesg).",
            readable_span(span, (double)journal->unsynced_us / 1e6));
    }
    if (waited > 0 && !journal->full) {
        say(attention,
            "The journal had no room for a change %s in the last ten minutes, so clients waited. "
            "Raise journal.buffer, or look whether the disk keeps up (iostat -x 1).",
            readable_many(times, waited, "time"));
    }
}

static void look_at_data(const struct admin_figures *figures, struct admin_attention *attention)
{
    const struct admin_events *grown = &figures->events;
    char free_bytes[READABLE_MAX], many[READABLE_MAX];

    if (grown->checkpoint_failures > 0) {
        say(attention,
            "%s failed in the last ten minutes, so the journal grows and a restart takes longer. "
            "The log says why; often the disk is full.",
            readable_many(many, grown->checkpoint_failures, "checkpoint"));
    }
    if (grown->dump_failures > 0) {
        say(attention,
            "%s of tables failed in the last ten minutes, so no memory comes free for new ids. The "
            "log says why; often the disk is full.",
            readable_many(many, grown->dump_failures, "dump"));
    }
    if (figures->cold.bad_pages > 0) {
        say(attention,
            "Reads have met %s of dumped tables that the disk has damaged: their ids answer `disk "
            "read failed`. Run `rollcall verify DATA` on a copy, then `rollcall repair`.",
            readable_many(many, figures->cold.bad_pages, "page"));
    } else if (grown->cold_failed > 0) {
        say(attention,
            "%s of dumped tables failed in the last ten minutes. Look for disk errors (dmesg), and "
            "at what `rollcall verify DATA` says.",
            readable_many(many, grown->cold_failed, "read"));
    }
    if (grown->cold_busy > 0) {
        say(attention,
            "%" PRIu64 " reads of dumped tables were refused in the last ten minutes because the "
            "queue was full. Raise cold.threads or cold.cache, or keep more tables in memory.",
            grown->cold_busy);
    }
    if (figures->data.disk_bytes > 0 &&
        (double)figures->data.disk_free_bytes <
            ADMIN_DISK_FREE_LEAST * (double)figures->data.disk_bytes) {
        say(attention,
            "The file system of `data` has only %s free. Free some, move `data` to a larger one, "
            "or bound the files with dumps-max.",
            readable_bytes(free_bytes, (double)figures->data.disk_free_bytes));
    }
}

/* ---- other nodes ---- */

/* What keeps it from being level with the node it follows. */
static void look_at_followed(const struct admin_replication *repl,
                             struct admin_attention *attention)
{
    const struct repl_receiver_stats *receiver = &repl->receiver;
    char span[READABLE_MAX], bytes[READABLE_MAX];

    if (receiver->state == REPL_RECEIVER_DIVERGED) {
        say(attention,
            "This node and %.100s, which it follows, have other records at one place: two led at "
            "one time. Nothing more is taken. Decide which is right, then empty the other one's "
            "data directory and have it follow.",
            repl->leader);
        return;
    }
    if (!repl->applies) {
        say(attention, "What comes from %.80s is stored and not carried out: %.200s.", repl->leader,
            repl->trouble);
        return;
    }
    if (repl->grown) {
        say(attention,
            "The tables of %.80s are larger than `memory` here: %.200s. They are held all the "
            "same; raise `memory` before the machine has none left.",
            repl->leader, repl->trouble);
    } else if (receiver->state == REPL_RECEIVER_CONNECTING && repl->trouble[0] != '\0') {
        say(attention, "There is no connection to %.80s, which this node follows: %.200s.",
            repl->leader, repl->trouble);
    }
    if (receiver->lag_us >= ADMIN_BEHIND_US) {
        say(attention,
            "This node is %s and %s of journal behind %.80s, and answers with what it has. Look at "
            "the link between the two, and whether disk or processor here keep up.",
            readable_span(span, (double)receiver->lag_us / 1e6),
            readable_bytes(bytes, (double)receiver->lag_bytes), repl->leader);
    }
    if (!repl->readable) {
        say(attention,
            "This node refuses reads: it is not yet what %.80s was at one moment, or has not been "
            "level with it for replication.stale-after. Wait for the copy, or look at the link.",
            repl->leader);
    }
}

static void look_at_followers(const struct admin_replication *repl,
                              struct admin_attention *attention)
{
    char span[READABLE_MAX];

    if (repl->fenced) {
        say(attention,
            "The word of this leader's agent has ended, and every change is refused; after "
            "replication.stale-after reads are, too. Look at `rollcall agent status`, the agent's "
            "log and etcd.");
    } else if (repl->waits && repl->feeds.waits.lacks) {
        say(attention, "Answers wait for a follower, and the agent has named none yet: every "
                       "change is refused. Look at `rollcall agent status`, and start a follower.");
    } else if (repl->waits && !repl->feeds.in_sync) {
        say(attention,
            "Answers wait for %s, which is away or has not caught up: every change is refused. "
            "Look at that node.",
            repl->waits_for);
    }
    for (size_t i = 0; i < repl->feeds.count; i++) {
        const struct repl_feed_stats *feed = &repl->feeds.feeds[i];

        if (feed->state == REPL_FEED_STREAMING && feed->lag_us >= ADMIN_BEHIND_US) {
            say(attention,
                "The follower %s is %s behind. Look at the link to it (%.100s), and whether its "
                "disk keeps up; beyond replication.keep it needs a copy.",
                feed->name, readable_span(span, (double)feed->lag_us / 1e6), feed->peer);
        }
    }
}

static void look_at_replication(const struct admin_replication *repl,
                                struct admin_attention *attention)
{
    if (repl->role == ADMIN_ROLE_FOLLOWER) {
        look_at_followed(repl, attention);
    }
    if (repl->has_feeds) {
        look_at_followers(repl, attention);
    }
}

/* ---- clients and the machine ---- */

static void look_at_clients(const struct admin_figures *figures, struct admin_attention *attention)
{
    uint64_t open = metric_read(&figures->net.curr_connections);
    const struct admin_events *grown = &figures->events;
    char many[READABLE_MAX];

    if (grown->rejected_connections > 0) {
        say(attention,
            "%" PRIu64 " connections were refused in the last ten minutes. Raise max-connections "
            "(now %u), or look for clients that do not close theirs.",
            grown->rejected_connections, figures->max_connections);
    } else if ((double)open >= ADMIN_NEAR * figures->max_connections) {
        say(attention,
            "%" PRIu64 " of at most %u connections are open. Raise max-connections, or look for "
            "clients that do not close theirs.",
            open, figures->max_connections);
    }
    if (grown->failed_logins > 0) {
        say(attention,
            "%s failed in the last ten minutes. The log names the addresses: a client has an old "
            "password, or somebody is guessing.",
            readable_many(many, grown->failed_logins, "login"));
    }
}

static void look_at_hot(const struct admin_figures *figures, struct admin_attention *attention)
{
    static const char *const kinds[WATCH_KINDS] = {"id", "member"};
    char share[READABLE_MAX];

    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        if (figures->hot[kind].worst > WATCH_HOT_SHARE && figures->hot[kind].count > 0) {
            say(attention,
                "One %s takes %s of a worker's keys; the hottest is `%s`. Have clients keep it for "
                "a second or so, or spread their connections.",
                kinds[kind], readable_share(share, figures->hot[kind].worst),
                figures->hot[kind].tops[0].key);
        }
    }
}

static void look_at_machine(const struct admin_view *view, struct admin_attention *attention)
{
    const struct admin_figures *figures = view->figures;
    char resident[READABLE_MAX], limit[READABLE_MAX], ago[READABLE_MAX];
    int64_t by_s;
    uint64_t ago_s;

    if (figures->resident_bytes > figures->memory_bytes) {
        say(attention,
            "The process takes %s of memory, more than its limit of %s. Tell the developers, with "
            "the output of `stats` and `stats spaces`.",
            readable_bytes(resident, (double)figures->resident_bytes),
            readable_bytes(limit, (double)figures->memory_bytes));
    }
    if (huge_are_few(figures->huge)) {
        say(attention,
            "Only %s of %s of tables lie in huge pages: look-ups take longer than they need. Set "
            "/sys/kernel/mm/transparent_hugepage/enabled to madvise, and start again when memory "
            "is free in pieces of 2 MiB.",
            readable_bytes(limit, (double)figures->huge.huge),
            readable_bytes(resident, (double)figures->huge.resident));
    }
    if (admin_history_jump(view->history, figures->now_us, &by_s, &ago_s)) {
        say(attention,
            "The wall clock was set by %+" PRId64 " seconds, %s ago. Ids made from the time may be "
            "out of order; look at the machine's NTP.",
            by_s, readable_span(ago, (double)ago_s));
    }
    if (!figures->reload_well) {
        say(attention, "The last reload (SIGHUP) changed nothing: the file has a mistake. "
                       "`rollcalld --config FILE --check-config` shows it.");
    }
}

/* ---- spaces ---- */

/* What helps when there is no room for new ids. */
static const char *more_tables(const struct admin_space *space, bool has_data)
{
    if (space->any_ids) {
        return space->kind == SPACE_COUNTER
                   ? "Raise `memory`: it grows as far as that allows; or set `data` and `oldest: "
                     "dump`"
                   : "Raise its `table-size`";
    }
    if (space->tables >= ROW_ROUTES_MAX) {
        return "It has as many tables as there can be; set `dumps-max`, so that the oldest are "
               "dropped";
    }
    return has_data ? "Raise its `tables`, or set `oldest: dump`"
                    : "Raise its `tables`, or set `data` and `oldest: dump`";
}

/* Returns what helps against a refusal; NULL: the client must be mended. */
static const char *help_against(unsigned reason, const struct admin_space *space, bool has_data)
{
    static const char *const steps[ADMIN_REFUSALS_OURS] = {
        NULL, /* more_tables() */
        "Raise its `table-size`, or aux and extend memory",
        "Raise cold.threads or journal.buffer; look whether the disk keeps up",
        "Look for disk errors (dmesg), whether it keeps up (iostat -x 1), and what `rollcall "
        "verify "
        "DATA` says",
        "Raise its `max-id`",
        "Somebody writes ids far ahead of all others; look at who makes ids",
        "Somebody writes ids older than the oldest table; keep more tables",
    };

    if (reason == 0 || (reason == 1 && space->any_ids)) {
        return more_tables(space, has_data);
    }
    return reason < ADMIN_REFUSALS_OURS ? steps[reason]
                                        : "The application sends what the space does not take";
}

static void look_at_refusals(const struct admin_space *space, bool has_data,
                             struct admin_attention *attention)
{
    char count[READABLE_MAX];

    for (unsigned reason = 0; reason < ADMIN_REFUSALS_N; reason++) {
        if (space->trend.refused[reason] > 0) {
            say(attention, "%s refused %s operation%s in the last ten minutes: %s. %s.",
                space->name, readable_count(count, (double)space->trend.refused[reason]),
                space->trend.refused[reason] == 1 ? "" : "s", admin_refusal_words[reason],
                help_against(reason, space, has_data));
        }
    }
}

/* Rows that roll are never full. */
static void attention_look_at_room(const struct admin_space *space, bool has_data,
                                   struct admin_attention *attention)
{
    double full_in_s = space->full_in_s;
    char span[READABLE_MAX], rate[READABLE_MAX];

    if (!space->room.refuses || full_in_s < 0 || full_in_s >= ADMIN_SOON_S) {
        return;
    }
    if (full_in_s == 0) {
        say(attention, "%s is full: new ids are refused. %s.", space->name,
            more_tables(space, has_data));
        return;
    }
    say(attention, "%s is full in %s, at %s new ids a second; then they are refused. %s.",
        space->name, readable_span(span, full_in_s),
        readable_count(rate, space->trend.added_each_s), more_tables(space, has_data));
}

/* The worst one speaks for all. */
static void look_at_filters(const struct admin_space *space, struct admin_attention *attention)
{
    const struct admin_table *worst = NULL;
    unsigned over = 0;
    char rate[READABLE_MAX], target[READABLE_MAX], held[READABLE_MAX], room[READABLE_MAX];

    for (size_t i = 0; i < space->table_count && space->kind == SPACE_PHANTOM; i++) {
        const struct admin_table *table = &space->at[i];

        over += table->rate > space->target;
        if (table->rate > space->target && (worst == NULL || table->rate > worst->rate)) {
            worst = table;
        }
    }
    if (worst != NULL) {
        say(attention,
            "%s: %u of its filters answer wrong more often than their target of %s; the worst, of "
            "ids %" PRIu64 " to %" PRIu64 ", %s: it has %s of %s members. Raise late-room, so that "
            "the next table opens sooner.",
            space->name, over, readable_share(target, space->target), worst->first_id,
            worst->last_id, readable_share(rate, worst->rate),
            readable_count(held, (double)worst->members),
            readable_count(room, (double)worst->capacity));
    }
}

/* The share that is used of the pools that are nearly full; 0: none is. */
static double attention_share_of_pools(const struct admin_space *space)
{
    uint64_t used = 0;
    uint64_t pools = 0;

    for (size_t i = 0; i < space->table_count; i++) {
        const struct admin_table *table = &space->at[i];

        if ((double)table->aux_bytes >= ADMIN_NEAR * (double)table->aux_pool_bytes) {
            used += table->aux_bytes;
            pools += table->aux_pool_bytes;
        }
    }
    return pools > 0 ? (double)used / (double)pools : 0;
}

static void say_overflow(const struct admin_space *space, const struct admin_slot *slot,
                         double pools, struct admin_attention *attention)
{
    char count[READABLE_MAX], share[READABLE_MAX], enough[READABLE_MAX];
    char memory[READABLE_MAX + 48] = "";

    if (pools > 0) {
        snprintf(memory, sizeof(memory), ", and the memory for them is %s used",
                 readable_share(share, pools));
    }
    say(attention,
        "%s: %s numbers are too large for slot `%s` of %u bits%s; %u bits would hold %s of them. "
        "Give it more bits and reload: tables that open from then on have them.%s",
        space->name, readable_count(count, (double)slot->beside), slot->name, slot->bits, memory,
        slot->enough_bits, readable_count(enough, (double)slot->enough_for),
        pools > 0 ? " Until then, raise `aux-memory`." : "");
}

/* No look at the records (admin_survey.h) has met a number that is too large: none is over yet, or
 * what lies in the pools is of slots that the tables lack. */
static void say_pools(const struct admin_space *space, double pools,
                      struct admin_attention *attention)
{
    char share[READABLE_MAX];

    say(attention,
        "%s: the memory for numbers that lie beside a table is %s used; when it is full, new "
        "numbers there are refused. Raise `aux-memory`.",
        space->name, readable_share(share, pools));
}

/* Numbers too large for their slots are kept beside the table, in pools of a fixed size. */
static void look_at_overflow(const struct admin_space *space, struct admin_attention *attention)
{
    double pools = space->kind == SPACE_COUNTER ? attention_share_of_pools(space) : 0;
    double records = 0;
    const struct admin_slot *most = NULL;

    for (size_t i = 0; i < ENGINE_REACHES; i++) {
        records += (double)space->reach[i];
    }
    for (size_t i = 0; i < space->slot_count; i++) {
        const struct admin_slot *slot = &space->slot_list[i];

        most = most == NULL || slot->beside > most->beside ? slot : most;
    }
    if (pools > 0 && (most == NULL || most->beside == 0)) {
        say_pools(space, pools, attention);
    }
    for (size_t i = 0; i < space->slot_count; i++) {
        const struct admin_slot *slot = &space->slot_list[i];
        bool fills = pools > 0 && slot == most && slot->beside > 0;

        if (fills || (double)slot->beside > ADMIN_OVERFLOW * records) {
            say_overflow(space, slot, fills ? pools : 0, attention);
        }
    }
}

void admin_attention_collect(const struct admin_view *view, struct admin_attention *attention)
{
    const struct admin_figures *figures = view->figures;

    attention->count = 0;
    attention->more = 0;
    look_at_journal(figures, attention);
    look_at_data(figures, attention);
    look_at_replication(&figures->repl, attention);
    for (size_t i = 0; i < figures->space_count; i++) {
        const struct admin_space *space = &figures->spaces[i];

        look_at_refusals(space, figures->has_data, attention);
        attention_look_at_room(space, figures->has_data, attention);
        look_at_filters(space, attention);
        look_at_overflow(space, attention);
    }
    look_at_clients(figures, attention);
    look_at_hot(figures, attention);
    look_at_machine(view, attention);
}
