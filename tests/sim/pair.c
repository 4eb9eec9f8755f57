/* pair.c: two nodes, their lives, and the turns of their threads. */
#include "tests/sim/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/clock.h"
#include "data/data_private.h"
#include "data/follow.h"
#include "repl/receiver_private.h"
#include "row/row_data.h"
#include "tests/sim/actors.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/wires.h"
#include "tests/support/fake_barrier.h"

#define MEMORY_BYTES (1ull << 40)
#define LEAP_US      1000000u /* of time, at most, where nobody can go on */
#define TURNS_HERE   40       /* in the midst of a checkpoint, at most */
#define CATCH_UP     20000u   /* turns of an applier that has all it needs */
#define DUMPS_MAX    8u
#define START_WITHIN 200u     /* calls of a start, until it ends */
#define OTHER        "/other" /* an address: which node that is is known */

static struct pair *now; /* whom the network is of */

struct pair_node *pair_leader(struct pair *pair)
{
    return &pair->nodes[pair->leader];
}

struct pair_node *pair_follower(struct pair *pair)
{
    return &pair->nodes[1 - pair->leader];
}

static struct pair_node *other_of(struct pair_node *node)
{
    return &node->pair->nodes[1 - node->number];
}

/* ---- in place of repl/receiver_dial.c ---- */

bool receiver_dial(struct repl_receiver *receiver, const char *address,
                   const struct net_address_parts *parts)
{
    unsigned from = now->nodes[0].receiver == receiver ? 0 : 1;
    struct pair_node *to = &now->nodes[1 - from];
    int fds[2];

    (void)address;
    (void)parts;
    if (now->parted || !to->up || to->sim.ended || to->feeds == NULL ||
        atomic_load(&receiver->stop)) {
        receiver_trouble(receiver, "it cannot be reached");
        return false;
    }
    wires_dial(fds);
    CHECK(receiver_link(receiver, fds[0]));
    actors_own(to->number);
    repl_feeds_take(to->feeds, fds[1], NULL, "", 0);
    now->figures.links++;
    return true;
}

/* ---- what is told ---- */

static void on_moved(void *context)
{
    struct pair_node *node = context;

    if (node->feeds != NULL) {
        repl_feeds_moved(node->feeds);
    }
    if (node->follows && node->receiver != NULL) {
        data_follow_moved(node->sim.data);
        repl_receiver_moved(node->receiver);
    }
    actors_changed();
}

static void on_room(void *context)
{
    (void)context;
}

static void on_applied(void *context)
{
    repl_receiver_moved(((struct pair_node *)context)->receiver);
}

static void on_acked(void *context)
{
    (void)context; /* the simulation looks by itself */
}

static void on_again(void *context, uint64_t cut_lsn, bool copied)
{
    struct pair_node *node = context;

    node->again = true;
    node->cuts = !copied;
    node->cut_lsn = cut_lsn;
}

/* ---- a start and an end, as sim.h sees them ---- */

/* What one that follows this node has received of its history, before that is cut. */
static void share(struct pair_node *node)
{
    struct pair_node *other = other_of(node);
    struct sim *to = &other->sim;

    if (!other->follows || to->leads || other->adopts) {
        return;
    }
    sim_meet(to);
}

static void on_learn(void *context, const struct journal_record *record)
{
    struct pair_node *node = context;

    if (node->follows) {
        (void)history_learn(&node->sim.history, &other_of(node)->sim.history, record);
    }
}

static void on_opening(void *context)
{
    struct pair_node *node = context;

    if (node->opened && node->cuts) { /* another process does not know of it */
        node->cuts = false;
        node->was_cutting = true;
    }
    node->opened = true;
    share(node);
    node->adopts |= node->follows && sim_has_file(&node->sim, SIM_DIRECTORY "/copy/MANIFEST");
}

static void on_found(void *context, uint64_t *end)
{
    struct pair_node *node = context;
    struct sim *sim = &node->sim;

    if (node->adopts) {
        uint64_t begins = sim->data->manifest->journal_lsn;

        history_cut(&sim->history, 0);
        history_follow(&sim->history, &other_of(node)->sim.history, begins);
        sim->must = 0;
        *end = begins > *end ? begins : *end;
    }
    if ((node->cuts || node->was_cutting) && sim->must > node->cut_lsn) {
        sim->must = node->cut_lsn;
    }
}

static void on_opened(void *context)
{
    struct pair_node *node = context;

    if (node->cuts) {
        data_cut(node->sim.data, node->cut_lsn);
    }
}

static void on_recovered(void *context)
{
    struct pair_node *node = context;
    struct sim *sim = &node->sim;

    uint64_t head = journal_head(data_journal(sim->data));

    if (node->cuts && head < sim->acknowledged) { /* else its tables did not allow it */
        history_cut(&sim->history, head);
        sim->acknowledged = sim->must = head;
    }
    node->cuts = node->adopts = false;
}

static void on_between(void *context)
{
    struct pair_node *node = context;
    struct data *data = node->sim.data;

    if (!node->up || node->sim.member->inside || fake_barrier_is_stopped(node->sim.barrier) ||
        pthread_mutex_trylock(&data->lock) != 0) {
        return;
    }
    pthread_mutex_unlock(&data->lock);
    pair_run(node->pair, (unsigned)test_random_below(&node->pair->random, TURNS_HERE));
}

static void on_stopping(void *context)
{
    struct pair_node *node = context;

    actors_free(node->number, NULL);
    repl_feeds_stop(node->feeds);
    repl_receiver_stop(node->receiver);
}

static void on_stopped(void *context)
{
    struct pair_node *node = context;

    CHECK(actors_none(node->number));
    repl_feeds_destroy(node->feeds);
    repl_receiver_destroy(node->receiver);
    node->feeds = NULL;
    node->receiver = NULL;
    node->up = false;
    actors_hold(node->number);
}

/* ---- a life ---- */

void pair_start(struct pair_node *node)
{
    static char other[] = OTHER;
    struct sim *sim = &node->sim;
    const struct repl_receiver_owner owner = {
        .context = node, .counts = &node->counts, .again = on_again};

    node->follows = node != pair_leader(node->pair);
    node->again = node->in_sync = node->opened = node->was_cutting = false;
    if (!node->follows) { /* a reign that the other has not heard of may have begun */
        other_of(node)->in_sync = false;
    }
    sim->settings.replication.follow = node->follows ? other : NULL;
    sim_begin(sim);
    node->feeds = repl_feeds_create(&sim->settings, sim->data, on_acked, node);
    node->receiver = repl_receiver_create(&sim->settings, sim->data, &owner);
    node->listener = (struct journal_listener){.moved = on_moved, .room = on_room, .context = node};
    journal_listen(data_journal(sim->data), &node->listener);
    node->up = true;
    for (unsigned i = 0; i < SIM_SPACES; i++) {
        node->held_bytes[i] = row_held_bytes(sim_engine(sim, i)->row);
    }
    if (node->follows) {
        actors_own(node->number);
        CHECK(data_follow(sim->data, sim->barrier, &sim->spaces, on_applied, node));
        actors_own(node->number);
        CHECK(repl_receiver_start(node->receiver));
    }
}

/* Up to where a node has the journal, at least. */
static uint64_t holds(const struct pair_node *node)
{
    return node->up && !node->sim.ended ? journal_head(data_journal(node->sim.data))
                                        : node->sim.must;
}

/* That both lose power before one has got again from the other what it had lost no promise covers,
 * unless each syncs before it acknowledges. */
static void lose_both(const struct pair_node *node)
{
    struct pair *pair = node->pair;
    uint64_t left = holds(&pair->nodes[0]);
    uint64_t other = holds(&pair->nodes[1]);

    left = left > other ? left : other;
    if (node->sim.end.cut && !sim_always(&node->sim) && left < pair->promised) {
        pair->promised = left;
        pair->figures.lost++;
    }
}

void pair_crash(struct pair_node *node, bool cut)
{
    pair_promise(node->pair);
    if (cut && test_random_once_in(&node->pair->random, 2)) {
        wires_cut(&node->pair->random, true); /* the other is not told */
    }
    sim_end(&node->sim, cut);
    node->pair->figures.crashes++;
    lose_both(node);
}

void pair_stop(struct pair_node *node, bool checkpoint)
{
    pair_promise(node->pair);
    sim_stop_cleanly(&node->sim, checkpoint);
    node->pair->figures.stops++;
}

void pair_bring_up(struct pair_node *node)
{
    struct pair *pair = node->pair;
    struct pair_node *other = other_of(node);

    if (node == pair_leader(pair) && pair->acks && node->sim.must < pair->promised) {
        if (!other->up) {
            pair_start(other);
        }
        if (other->sim.ended || !pair_promote(pair)) {
            return; /* another time */
        }
    }
    pair_start(node);
}

/* The start may end in its midst, and the next one, which is another process, goes on from there.
 */
static void start_armed(struct pair_node *node)
{
    if (test_random_once_in(&node->pair->random, 2)) {
        sim_arm(&node->sim, SIM_POINT_ANY, START_WITHIN,
                test_random_once_in(&node->pair->random, 2));
    }
    pair_start(node);
}

/* As its agent does again and again; after a cut nothing may have come by then. */
static void begin_again(struct pair_node *node)
{
    while (test_random_once_in(&node->pair->random, 3)) {
        pair_crash(node, test_random_once_in(&node->pair->random, 2));
        start_armed(node);
    }
}

static void begin_anew(struct pair_node *node)
{
    bool kills = test_random_once_in(&node->pair->random, 3);

    if (kills) {
        pair_crash(node, test_random_once_in(&node->pair->random, 2));
    } else {
        sim_stop_cleanly(&node->sim, !node->cuts); /* as the daemon does */
    }
    /* A process that was killed has forgotten where its journal was to be cut. */
    node->cuts = node->cuts && !kills;
    start_armed(node);
    begin_again(node);
}

/* A leader's workers do it. */
void pair_keep(struct sim *sim)
{
    for (unsigned i = 0; i < SIM_SPACES && !sim->leads && !sim->ended; i++) {
        if (sim->asked[i]) {
            (void)sim_maintain(sim, i);
        }
    }
    if (!sim->leads && sim_wants_checkpoint(sim)) {
        sim_meet(sim); /* what is trimmed is known */
        sim_checkpoint(sim);
    }
    for (unsigned i = 0; i < DUMPS_MAX && sim_wants_dump(sim); i++) {
        sim_meet(sim); /* what is trimmed is known */
        sim_dump(sim);
    }
}

void pair_tend(struct pair *pair)
{
    for (unsigned i = 0; i < PAIR_NODES; i++) {
        struct pair_node *node = &pair->nodes[i];

        if (node->up && !node->sim.ended) {
            pair_keep(&node->sim);
        }
        if (node->up && node->sim.ended) {
            pair_crash(node, false);
            node->cuts = false;
        }
        if (node->up && node->again) {
            begin_anew(node);
        }
    }
}

/* ---- turns ---- */

static bool is_whole(const struct pair *pair)
{
    for (unsigned i = 0; i < PAIR_NODES; i++) {
        const struct pair_node *node = &pair->nodes[i];

        if (node->up && (node->sim.ended || node->again)) {
            return false;
        }
    }
    return true;
}

static void calm(struct pair *pair)
{
    for (unsigned i = 0; i < PAIR_NODES; i++) {
        if (pair->nodes[i].up) {
            sim_calm(&pair->nodes[i].sim);
            sim_cold_calm(&pair->nodes[i].sim);
        }
    }
}

/* By an actor: whatever it sees, the threads of the journals are at rest. */
static void on_look(void)
{
    calm(now);
}

void pair_run(struct pair *pair, unsigned turns)
{
    calm(pair);
    while (turns-- > 0 && is_whole(pair) &&
           actors_step(&pair->random, 3, NULL, clock_monotonic_us() + LEAP_US)) {
        calm(pair);
        pair->figures.steps++;
    }
    pair_promise(pair);
}

/* ---- promotion ---- */

static bool is_level(const struct pair_node *node)
{
    return data_applied(node->sim.data) >= journal_head(data_journal(node->sim.data));
}

void pair_catch_up(struct pair_node *node)
{
    struct pair *pair = node->pair;
    unsigned turns = 0;

    while (!node->sim.ended && !is_level(node) && turns++ < CATCH_UP) {
        calm(pair);
        if (!actors_step(&pair->random, 1u << node->number, "applier",
                         clock_monotonic_us() + LEAP_US)) {
            break;
        }
        calm(pair);
        pair_keep(&node->sim);
    }
}

static void lead(struct pair_node *node)
{
    struct sim *sim = &node->sim;

    node->follows = false;
    sim_calm(sim);
    sim_sinks_begin(sim);
    sim_meet(sim);
    for (unsigned i = 0; i < SIM_SPACES; i++) {
        sim->asked[i] = true;
    }
    sim->acknowledged = journal_written(data_journal(sim->data));
    node->pair->leader = node->number;
    node->pair->figures.promotions++;
}

bool pair_promote(struct pair *pair)
{
    struct pair_node *node = pair_follower(pair);
    struct sim *sim = &node->sim;
    char error[DATA_ERROR_MAX];

    actors_free(node->number, "receiver");
    repl_receiver_stop(node->receiver);
    actors_hold(node->number);
    pair_catch_up(node);
    if (sim->ended) {
        return false;
    }
    sim_calm(sim);
    sim_meet(sim);
    bool armed = sim->end.armed; /* it ends before or after it */

    sim->end.armed = false;
    actors_own(node->number);
    actors_free(node->number, "applier");
    enum data_promoted promoted =
        data_promote(sim->data, pair->epoch + 1, false, clock_monotonic_us(), error);

    checkpoint_end(sim->data); /* rounds are the simulation's */
    actors_hold(node->number);
    sim->end.armed = armed;
    if (promoted == DATA_PROMOTED && journal_head(data_journal(sim->data)) < pair->promised) {
        fail_msg("seed %llu: acknowledged up to %llu, and the promoted one has less",
                 (unsigned long long)pair->seed, (unsigned long long)pair->promised);
    }
    if (promoted == DATA_PROMOTED &&
        journal_durable(data_journal(sim->data)) <= data_reign_lsn(sim->data)) {
        fail_msg("seed %llu: it leads, and its epoch is not on the disk",
                 (unsigned long long)pair->seed);
    }
    if (promoted == DATA_PROMOTED) {
        lead(node);
        return true;
    }
    if (promoted == DATA_PROMOTE_FAILED || data_readable(sim->data)) {
        fail_msg("seed %llu: a promotion is refused: %s", (unsigned long long)pair->seed, error);
    }
    pair->figures.refused++;
    actors_own(node->number);
    CHECK(repl_receiver_start(node->receiver));
    return false;
}

/* ---- a pair ---- */

static void set_replication(struct pair_node *node, uint64_t keep_bytes)
{
    static char names[PAIR_NODES][2] = {"a", "b"};
    static char group[] = "rollcall";
    struct settings *settings = &node->sim.settings;

    settings->memory_bytes = MEMORY_BYTES;
    settings->replication.name = names[node->number];
    settings->replication.group = group;
    settings->replication.copies = 1;
    settings->replication.keep_bytes = keep_bytes;
    if (node->pair->acks) {
        settings->replication.ack = SETTINGS_ACK_REPLICA;
        settings->replication.ack_by = names[1 - node->number];
    }
}

static void init_node(struct pair *pair, unsigned number, uint64_t keep_bytes)
{
    struct pair_node *node = &pair->nodes[number];

    sim_init(&node->sim, pair->seed);
    node->sim.random.state ^= number;
    node->sim.ends_random.state ^= number;
    node->pair = pair;
    node->number = number;
    node->hooks = (struct sim_node){.context = node,
                                    .opening = on_opening,
                                    .opened = on_opened,
                                    .found = on_found,
                                    .learn = on_learn,
                                    .recovered = on_recovered,
                                    .between = on_between,
                                    .stopping = on_stopping,
                                    .stopped = on_stopped,
                                    .acts = actors_is_one};
    node->sim.node = &node->hooks;
    set_replication(node, keep_bytes);
}

void pair_init(struct pair *pair, uint64_t seed)
{
    static const uint64_t keeps[] = {0, 64u << 10, 1u << 30};

    memset(pair, 0, sizeof(*pair));
    now = pair;
    pair->seed = seed;
    pair->random.state = hash_u64(seed + 1);
    wires_begin();
    sim_clock_hold(on_look);
    pair->acks = test_random_once_in(&pair->random, 2);
    uint64_t keep_bytes = keeps[test_random_below(&pair->random, 3)];

    init_node(pair, 0, keep_bytes);
    init_node(pair, 1, keep_bytes);
    pair_start(&pair->nodes[0]);
    pair_start(&pair->nodes[1]);
}

void pair_fini(struct pair *pair)
{
    for (unsigned i = 0; i < PAIR_NODES; i++) {
        struct pair_node *node = &pair->nodes[i];

        if (node->up) {
            sim_stop_cleanly(&node->sim, true);
        }
        pair->figures.copies += node->counts.copies;
        pair->figures.rewinds += node->counts.rewinds;
    }
    pair->figures.turned = wires_turned();
    wires_end();
    sim_clock_hold(NULL);
    for (unsigned i = 0; i < PAIR_NODES; i++) {
        sim_fini(&pair->nodes[i].sim);
    }
}
