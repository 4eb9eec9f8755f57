/* pair_judge.c: what must hold of two nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "data/data_private.h"
#include "data/follow.h"
#include "row/row_data.h"
#include "store/journal_reader.h"
#include "tests/sim/pair.h"
#include "tests/sim/wires.h"

#define HEAL_TURNS 100u /* at a time */
#define HEALS_MAX  2000u

#define SEED(pair) (unsigned long long)(pair)->seed

/* ---- what was acknowledged ---- */

/* Its manifest may be in use, by this thread. */
static bool is_free(struct data *data)
{
    bool is = pthread_mutex_trylock(&data->lock) == 0;

    if (is) {
        pthread_mutex_unlock(&data->lock);
    }
    return is;
}

static uint64_t epoch_of(struct data *data)
{
    struct manifest_reign reigns[MANIFEST_HISTORY_MAX];
    uint64_t stream[MANIFEST_STREAM_WORDS];
    size_t count = data_history(data, stream, reigns);

    return count > 0 ? reigns[count - 1].epoch : 0;
}

/* As answers leave: what is stored here, and what the other has acknowledged. */
static void promise(struct pair *pair, struct pair_node *node)
{
    struct sim *sim = &node->sim;
    uint64_t acked = repl_feeds_acked(node->feeds);
    uint64_t upto = acked < sim->acknowledged ? acked : sim->acknowledged;

    if (upto <= pair->promised || !is_free(sim->data)) {
        return;
    }
    uint64_t epoch = epoch_of(sim->data);

    assert_true(epoch < PAIR_EPOCHS_MAX);
    if (pair->acker[epoch] != 0 && pair->acker[epoch] != node->number + 1) {
        fail_msg("seed %llu: both nodes acknowledged in epoch %llu", SEED(pair),
                 (unsigned long long)epoch);
    }
    pair->acker[epoch] = (uint8_t)(node->number + 1);
    pair->promised = upto;
    pair->figures.promised++;
}

/* It has all that the leader has written, of the present reign, too. */
static void see_sync(struct pair_node *node)
{
    const struct pair_node *leader = pair_leader(node->pair);
    uint64_t head = journal_head(data_journal(node->sim.data));

    if (leader->up && !leader->sim.ended && leader->sim.leads && is_free(node->sim.data) &&
        is_free(leader->sim.data) && head >= journal_written(data_journal(leader->sim.data)) &&
        epoch_of(node->sim.data) == epoch_of(leader->sim.data)) {
        node->in_sync = true;
    }
}

void pair_promise(struct pair *pair)
{
    for (unsigned i = 0; i < PAIR_NODES; i++) {
        struct pair_node *node = &pair->nodes[i];

        if (!node->up || node->sim.ended) {
            continue;
        }
        if (is_free(node->sim.data) && epoch_of(node->sim.data) > pair->epoch) {
            pair->epoch = epoch_of(node->sim.data);
        }
        if (node->follows) {
            see_sync(node);
        } else if (pair->acks) {
            promise(pair, node);
        }
    }
}

/* ---- memory ---- */

static unsigned tables_in_memory(const struct row *row)
{
    unsigned count = 0;

    for (size_t i = 0; i < row->count; i++) {
        const struct row_table *table = row->tables[i];

        for (; table != NULL; table = table->further) {
            count += !table->cold;
        }
    }
    return count;
}

/* An opening waits for the dump that makes room: it takes no more than was given, or a start took.
 */
static void judge_growth(struct pair_node *node)
{
    for (unsigned i = 0; i < SIM_SPACES; i++) {
        const struct row *row = sim_engine(&node->sim, i)->row;
        uint64_t given = row->config.tables * row->config.table_bytes;
        uint64_t most = given > node->held_bytes[i] ? given : node->held_bytes[i];

        if (row->config.dump && !row->parted && row_held_bytes(row) > most) {
            fail_msg("seed %llu: space %u of the follower takes %llu bytes, of %llu",
                     SEED(node->pair), i, (unsigned long long)row_held_bytes(row),
                     (unsigned long long)most);
        }
    }
}

/* Tables leave by themselves: what a follower may dump does not stay. */
static void judge_memory(struct pair *pair)
{
    struct pair_node *node = pair_follower(pair);

    pair_tend(pair);
    for (unsigned i = 0; i < SIM_SPACES && node->up && node->follows && !node->sim.ended; i++) {
        const struct row *row = sim_engine(&node->sim, i)->row;

        if (row->config.dump && !row->parted && tables_in_memory(row) > row->config.tables) {
            fail_msg("seed %llu: space %u of the follower has %u tables in memory, of %u",
                     SEED(pair), i, tables_in_memory(row), row->config.tables);
        }
    }
}

/* ---- answers ---- */

void pair_compare(struct pair *pair)
{
    struct pair_node *node = pair_follower(pair);
    struct sim *sim = &node->sim;
    char why[DATA_ERROR_MAX];

    if (!node->up || !node->follows) {
        return;
    }
    pair_catch_up(node);
    if (!sim->ended && !node->again) {
        pair_keep(sim); /* what was emptied has a table more until its others are cleared */
    }
    if (sim->ended || node->again) {
        return;
    }
    judge_growth(node);
    data_follow_trouble(sim->data, why);
    if (why[0] != '\0' || data_applied(sim->data) < journal_head(data_journal(sim->data))) {
        fail_msg("seed %llu: what was taken is not carried out: at %llu of %llu: %s", SEED(pair),
                 (unsigned long long)data_applied(sim->data),
                 (unsigned long long)journal_head(data_journal(sim->data)), why);
    }
    if (data_readable(sim->data)) {
        sim_meet(sim);
        sim_compare(sim);
        pair->figures.compared++;
    }
}

/* ---- bytes ---- */

static char *read_journal(struct pair_node *node, uint64_t from, uint64_t to)
{
    struct journal_reader reader;
    char *bytes = memory_zalloc(to - from + 1);

    journal_reader_init(&reader, vfs_sim_vfs(node->sim.disk), SIM_DIRECTORY, from);
    while (reader.at < to) {
        if (journal_reader_next(&reader, to) != JOURNAL_READ_RECORDS) {
            fail_msg("seed %llu: node %u cannot read its journal at %llu: %s", SEED(node->pair),
                     node->number, (unsigned long long)reader.at, reader.error);
        }
        memcpy(bytes + (reader.at - reader.length - from), reader.records, reader.length);
    }
    journal_reader_fini(&reader);
    return bytes;
}

static void judge_bytes(struct pair *pair)
{
    uint64_t from = 0;
    uint64_t to = journal_written(data_journal(pair_leader(pair)->sim.data));

    for (unsigned i = 0; i < PAIR_NODES; i++) {
        uint64_t begins = pair->nodes[i].sim.data->manifest->journal_lsn;

        from = begins > from ? begins : from;
    }
    char *leader = read_journal(pair_leader(pair), from, to);
    char *follower = read_journal(pair_follower(pair), from, to);

    if (memcmp(leader, follower, to - from) != 0) {
        fail_msg("seed %llu: the journals differ between %llu and %llu", SEED(pair),
                 (unsigned long long)from, (unsigned long long)to);
    }
    free(leader);
    free(follower);
}

/* ---- the end ---- */

static bool is_healed(struct pair *pair)
{
    struct pair_node *leader = pair_leader(pair), *follower = pair_follower(pair);
    struct repl_receiver_stats stats;

    if (!leader->up || !follower->up || leader->again || follower->again || leader->sim.ended ||
        follower->sim.ended || !follower->follows) {
        return false;
    }
    repl_receiver_stats(follower->receiver, &stats);
    if (stats.state == REPL_RECEIVER_DIVERGED) {
        fail_msg("seed %llu: the nodes have diverged: %s", SEED(pair), stats.trouble);
    }
    /* one that has not been heard yet may be as long, with other records */
    return stats.state == REPL_RECEIVER_STREAMING && data_readable(follower->sim.data) &&
           data_applied(follower->sim.data) == journal_head(data_journal(leader->sim.data));
}

static void fail_to_heal(struct pair *pair)
{
    struct pair_node *node = pair_follower(pair);
    struct repl_receiver_stats stats = {.trouble = "it is down"};
    char why[DATA_ERROR_MAX] = "";

    if (node->up && node->receiver != NULL) {
        repl_receiver_stats(node->receiver, &stats);
        data_follow_trouble(node->sim.data, why);
    }
    fail_msg("seed %llu: the follower does not come level: %s: applied %llu, written %llu, there "
             "%llu; %s; %s",
             SEED(pair), repl_receiver_state_word(stats.state), (unsigned long long)stats.applied,
             (unsigned long long)stats.written,
             (unsigned long long)journal_head(data_journal(pair_leader(pair)->sim.data)),
             stats.trouble, why);
}

static void heal(struct pair *pair)
{
    unsigned tries = 0;

    pair->parted = false;
    *wires_weather() = (struct wires_weather){.turn_in = 0};
    wires_flow();
    for (unsigned i = 0; i < PAIR_NODES; i++) {
        struct pair_node *node = &pair->nodes[i];

        node->sim.end.armed = false;
        if (node->up && node->sim.leads && node != pair_leader(pair)) {
            pair_crash(node, false);
        }
    }
    while (!is_healed(pair)) {
        struct pair_node *leader = pair_leader(pair);

        if (leader->up && !leader->sim.ended) { /* what is put is written */
            (void)sim_commit(&leader->sim, 0);
        }
        for (unsigned i = 0; i < PAIR_NODES; i++) {
            if (!pair->nodes[i].up) {
                pair_bring_up(&pair->nodes[i]);
            }
        }
        pair_run(pair, HEAL_TURNS);
        pair_tend(pair);
        if (++tries > HEALS_MAX) {
            fail_to_heal(pair);
        }
    }
}

void pair_judge(struct pair *pair)
{
    heal(pair);
    uint64_t end = journal_head(data_journal(pair_leader(pair)->sim.data));

    if (end < pair->promised) {
        fail_msg("seed %llu: acknowledged up to %llu, and there is only %llu", SEED(pair),
                 (unsigned long long)pair->promised, (unsigned long long)end);
    }
    pair_compare(pair);
    sim_compare(&pair_leader(pair)->sim);
    judge_bytes(pair);
    judge_memory(pair);
}
