/*
 * test_agent_walk.c: three agents act by agent_decide() on daemons and keys of a model, in random
 * orders: what an agent has seen is old when it acts, words are late, leases end, agents and
 * daemons are killed, machines lose power, disks are full, promotions are refused. It is the world
 * of tests/model/three_keys.py, with the decisions of the agent itself: an answered change is on
 * every node that may come to lead.
 *
 * Daemons have no clock there: one goes on leading until it is told otherwise, whatever its lease.
 * After a walk nothing fails any more, but that one disk is full for good: then changes are
 * answered again, if a node that may lead has room.
 *
 * In other walks clocks run, and somebody writes another leader into `state` by hand: then no two
 * take changes at one time, which is all that holds without a sync follower.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/random.h"
#include "tools/rollcall/agent_decide.h"

#define NODES      3u
#define LOG_MAX    64u
#define FLYING_MAX 16u
#define WALKS      4000u
#define STEPS      400u
#define PATIENCE   20u
#define HEALING    3000u /* steps after which a group has healed, at most */
#define CLOCKED    400u  /* walks with clocks */
#define LEASE      240u  /* there: of the time that steps take, about 45 a round */
#define LEASES_MAX 1024u
#define NOBODY     NODES

static const char *const names[NODES + 1] = {"a", "b", "c", ""};

/* A record: an epoch that begins, negative, or a change. */
struct node {
    int log[LOG_MAX];
    size_t length, durable;
    int leads, epoch; /* leads 0: it follows */
    bool waits[NODES], lacks, held[LOG_MAX];
    size_t got[NODES]; /* what each has acknowledged to it */
    bool synced, no_room;
    uint64_t word;  /* of the last `lead` */
    uint64_t until; /* with clocks: when that ends */
    unsigned boot;
};

/* An agent between its looks and its acts. */
struct looker {
    struct agent_memory memory;
    struct agent_view view;
    char name[8], boot[16];
    unsigned phase; /* 0: it begins a round */
    uint64_t lease, word;
    uint64_t until; /* with clocks: when a word ends that it says now */
};

struct flight {
    unsigned from, to;
    int epoch;
    size_t end;
};

struct world {
    struct test_random random;
    struct node nodes[NODES];
    struct looker agents[NODES];
    bool has_state;
    struct agent_state state;
    int64_t revision, state_revision, alive_revision;
    uint64_t alive_lease; /* 0: nobody */
    unsigned alive;
    uint64_t leases, now, words;
    struct flight flights[FLYING_MAX];
    size_t flight_count;
    int changes;
    int answered[LOG_MAX]; /* the epoch of the answer; 0: none */
    bool alone[LOG_MAX], lost[LOG_MAX];
    unsigned answers, reigns;
    bool clocks;
    uint64_t ends[LEASES_MAX]; /* with clocks: of each lease */
    unsigned led;              /* steps in which a node took changes */
};

static uint64_t below(struct world *world, uint64_t bound)
{
    return test_random_below(&world->random, bound);
}

static unsigned number_of(const char *name)
{
    unsigned i = 0;

    while (i < NODES && strcmp(names[i], name) != 0) {
        i++;
    }
    return i;
}

static int last_epoch(const struct node *node, size_t length)
{
    int last = 0;

    for (size_t i = 0; i < length; i++) {
        last = node->log[i] < 0 ? -node->log[i] : last;
    }
    return last;
}

/* ---- daemons ---- */

static void node_stops(struct node *node)
{
    node->leads = 0;
    node->lacks = false;
    memset(node->waits, 0, sizeof(node->waits));
    memset(node->held, 0, sizeof(node->held));
    memset(node->got, 0, sizeof(node->got));
    node->word = 0;
    node->until = 0;
}

static void take_change(struct world *world, unsigned n)
{
    struct node *node = &world->nodes[n];

    if (node->leads == 0 || node->lacks || node->length == LOG_MAX ||
        world->changes + 1 >= (int)LOG_MAX) {
        return;
    }
    node->log[node->length++] = ++world->changes;
    node->held[world->changes] = true;
}

static void answer(struct world *world, unsigned n)
{
    struct node *node = &world->nodes[n];
    bool alone = true;

    for (size_t i = 0; node->leads != 0 && !node->lacks && i < node->length; i++) {
        bool may = node->log[i] > 0 && node->held[node->log[i]];

        for (unsigned f = 0; f < NODES; f++) {
            may = may && (!node->waits[f] || node->got[f] > i);
            alone = alone && !node->waits[f];
        }
        if (may) {
            node->held[node->log[i]] = false;
            world->answered[node->log[i]] = node->leads;
            world->alone[node->log[i]] = alone;
            world->answers++;
        }
    }
}

/* The record that begins a reign is on the disk before anybody counts on it. */
static void note_durable(struct node *node, size_t same)
{
    node->durable = node->durable < same ? node->durable : same;
    for (size_t i = node->durable; i < node->length; i++) {
        node->durable = node->log[i] < 0 ? i + 1 : node->durable;
    }
}

/* One record further behind a leader, and word of it on its way. */
static void follow(struct world *world, unsigned f, unsigned l)
{
    struct node *own = &world->nodes[f];
    const struct node *leader = &world->nodes[l];
    size_t same = 0;

    if (f == l || leader->leads == 0 || own->leads != 0 || leader->leads < own->epoch ||
        own->no_room) {
        return;
    }
    while (same < own->length && same < leader->length && own->log[same] == leader->log[same]) {
        same++;
    }
    own->length = same;
    if (same < leader->length) {
        own->log[own->length++] = leader->log[same];
    }
    note_durable(own, same);
    own->epoch = leader->leads > own->epoch ? leader->leads : own->epoch;
    own->synced = own->synced || own->length == leader->length;
    if (world->flight_count < FLYING_MAX) {
        world->flights[world->flight_count++] =
            (struct flight){.from = f, .to = l, .epoch = leader->leads, .end = own->length};
    }
}

static void hear(struct world *world)
{
    if (world->flight_count == 0) {
        return;
    }
    size_t at = below(world, world->flight_count);
    struct flight flight = world->flights[at];
    struct node *leader = &world->nodes[flight.to];

    world->flights[at] = world->flights[--world->flight_count];
    if (leader->leads == flight.epoch && leader->got[flight.from] < flight.end) {
        leader->got[flight.from] = flight.end;
    }
}

static void kill_daemon(struct world *world, unsigned n)
{
    node_stops(&world->nodes[n]);
    world->nodes[n].synced = false;
}

static void kill_agent(struct world *world, unsigned n)
{
    struct looker *agent = &world->agents[n];

    memset(&agent->memory, 0, sizeof(agent->memory));
    agent->memory.patience_ms = world->clocks ? LEASE / 3 : PATIENCE;
    agent->memory.told_ms = world->clocks ? AGENT_TOLD_UNKNOWN : 0;
    agent->phase = 0;
    if (world->alive != n) {
        agent->lease = 0;
    }
}

static void cut_power(struct world *world, unsigned n)
{
    struct node *node = &world->nodes[n];
    size_t end = node->durable + below(world, node->length - node->durable + 1);
    bool alone = number_of(world->state.leader) == n && world->state.sync[0] == '\0';

    for (size_t i = end; i < node->length; i++) {
        if (node->log[i] > 0 && (alone || world->alone[node->log[i]])) {
            world->lost[node->log[i]] = true;
        }
    }
    node->length = end;
    node->epoch = last_epoch(node, end);
    node->boot++;
    kill_daemon(world, n);
    kill_agent(world, n);
}

/* ---- agents ---- */

static void look_at_daemon(struct world *world, unsigned n, struct agent_view *view)
{
    const struct node *node = &world->nodes[n];
    struct agent_daemon_view *daemon = &view->daemon;

    memset(daemon, 0, sizeof(*daemon));
    daemon->known = true;
    daemon->leads = node->leads != 0;
    daemon->epoch = (uint64_t)last_epoch(node, node->length);
    daemon->written = node->length;
    daemon->caught_up = node->synced;
    daemon->can_lead = true;
    for (unsigned f = 0; f < NODES; f++) {
        if (f != n && node->leads != 0 && node->got[f] > 0) {
            daemon->followers_written[daemon->follower_count] = (uint64_t)node->got[f];
            snprintf(daemon->followers[daemon->follower_count++], AGENT_NAME_MAX + 1, "%s",
                     names[f]);
        }
    }
}

static void look_at_keys(struct world *world, unsigned n, struct agent_view *view)
{
    struct agent_keys *keys = &view->keys;

    memset(keys, 0, sizeof(*keys));
    keys->known = true;
    keys->has_state = world->has_state;
    keys->state = world->state;
    keys->state_revision = world->state_revision;
    if (world->alive_lease != 0) {
        snprintf(keys->alive, sizeof(keys->alive), "%s", names[world->alive]);
        keys->alive_revision = world->alive_revision;
        keys->alive_mine = world->alive_lease == world->agents[n].lease;
    }
    for (unsigned i = 0; i < NODES; i++) {
        struct agent_node *node = &keys->nodes[keys->node_count++];

        snprintf(node->name, sizeof(node->name), "%s", names[i]);
        snprintf(node->address, sizeof(node->address), "%s:1", names[i]);
        node->may_lead = true;
        node->in_sync = world->nodes[i].synced && !world->nodes[i].no_room;
        node->full = world->nodes[i].no_room;
    }
}

static void set_self(struct world *world, unsigned n, struct agent_view *view)
{
    struct looker *agent = &world->agents[n];

    snprintf(agent->name, sizeof(agent->name), "%s", names[n]);
    snprintf(agent->boot, sizeof(agent->boot), "%s%u", names[n], world->nodes[n].boot);
    view->self = (struct agent_self){.name = agent->name,
                                     .address = "x:1",
                                     .boot = agent->boot,
                                     .may_lead = true,
                                     .alone = n != 2};
}

static bool put_state(struct world *world, unsigned n, const struct agent_action *action)
{
    struct looker *agent = &world->agents[n];
    struct agent_keys *keys = &agent->view.keys;
    int64_t alive_now = world->alive_lease != 0 ? world->alive_revision : 0;

    if (keys->state_revision != world->state_revision || keys->alive_revision != alive_now) {
        keys->known = false;
        return false;
    }
    world->reigns += action->state.epoch > world->state.epoch;
    world->state = action->state;
    world->state_revision = ++world->revision;
    if (action->act == AGENT_TAKE) {
        world->alive = n;
        world->alive_lease = agent->lease;
        world->alive_revision = world->revision;
    }
    look_at_keys(world, n, &agent->view);
    agent->view.held = false;
    return true;
}

static bool promote(struct world *world, unsigned n, int epoch)
{
    struct node *node = &world->nodes[n];
    struct agent_daemon_view *daemon = &world->agents[n].view.daemon;

    if (node->leads != 0 || epoch <= last_epoch(node, node->length) || node->length == LOG_MAX ||
        node->no_room) {
        world->agents[n].memory.refusals++;
        daemon->known = false;
        return false;
    }
    node_stops(node);
    node->log[node->length++] = -epoch;
    note_durable(node, node->length);
    node->leads = node->epoch = epoch;
    node->synced = true;
    node->lacks = true; /* fenced, until the agent says for whom it waits */
    daemon->leads = true;
    daemon->epoch = (uint64_t)epoch;
    return true;
}

static bool hold(struct world *world, unsigned n, const char *waits)
{
    struct looker *agent = &world->agents[n];
    struct node *node = &world->nodes[n];
    struct agent_memory *memory = &agent->memory;

    memory->told_ms = agent->until;
    if (node->leads == 0 || node->leads != (int)agent->view.keys.state.epoch ||
        agent->word < node->word) {
        agent->view.daemon.known = false;
        return false;
    }
    node->word = agent->word;
    node->until = agent->until;
    node->lacks = strcmp(waits, "*") == 0;
    for (unsigned f = 0; f < NODES; f++) {
        node->waits[f] = strchr(waits, names[f][0]) != NULL;
    }
    if (memory->adding[0] != '\0') {
        memory->mark = memory->marked ? memory->mark : node->length;
        memory->marked = true;
        memory->acked = node->got[number_of(memory->adding)];
    }
    agent->view.held = true;
    return true;
}

static bool act(struct world *world, unsigned n, const struct agent_action *action)
{
    struct looker *agent = &world->agents[n];

    switch (action->act) {
    case AGENT_TAKE:
    case AGENT_CHANGE:
        return put_state(world, n, action);
    case AGENT_PROMOTE:
        return promote(world, n, (int)action->state.claim.epoch);
    case AGENT_HOLD:
        return hold(world, n, action->waits);
    case AGENT_FOLLOW:
        if (strcmp(action->address, "-") == 0) {
            kill_daemon(world, n);
            agent->view.daemon.known = false;
        }
        snprintf(agent->view.daemon.leader, sizeof(agent->view.daemon.leader), "%s",
                 action->address);
        return true;
    case AGENT_RESIGN:
        if (world->alive_lease == agent->lease) {
            world->alive_lease = 0;
        }
        agent->lease = 0;
        agent->view.keys.known = false;
        return true;
    case AGENT_REST:
        break;
    }
    return false;
}

/* It keeps its lease, or asks for one. The word ends a part before the lease does. */
static void renew(struct world *world, struct looker *agent)
{
    if (world->clocks && agent->lease != 0 && world->ends[agent->lease] <= world->now) {
        agent->lease = 0;
    }
    agent->lease = agent->lease != 0 ? agent->lease : ++world->leases;
    agent->word = ++world->words;
    if (!world->clocks) {
        return;
    }
    assert_true(agent->lease < LEASES_MAX);
    world->ends[agent->lease] = world->now + LEASE;
    agent->until = world->now + LEASE - LEASE / 6;
    if (agent->memory.told_ms == AGENT_TOLD_UNKNOWN) {
        agent->memory.told_ms = agent->until;
    }
}

/* The next part of its round: between two of them anything may happen. */
static void agent_step(struct world *world, unsigned n)
{
    struct looker *agent = &world->agents[n];
    struct agent_action action;

    switch (agent->phase++) {
    case 0:
        agent->view = (struct agent_view){.now_ms = world->now, .held = false};
        set_self(world, n, &agent->view);
        look_at_daemon(world, n, &agent->view);
        agent->view.daemon.known = below(world, 10) > 0;
        agent->view.daemon.can_lead = !world->nodes[n].no_room || below(world, 4) == 0;
        agent->view.daemon.full = world->nodes[n].no_room;
        break;
    case 1:
        renew(world, agent);
        look_at_keys(world, n, &agent->view);
        break;
    default:
        action = agent_decide(&agent->view, &agent->memory);
        if (!act(world, n, &action)) {
            agent->phase = 0;
        }
    }
}

/* ---- what must hold ---- */

static bool may_lead(struct world *world, unsigned n)
{
    struct agent_view view = {.now_ms = world->now, .held = false};

    set_self(world, n, &view);
    look_at_daemon(world, n, &view);
    look_at_keys(world, n, &view);
    return agent_may_lead(&view);
}

static void check_node(struct world *world, unsigned n)
{
    const struct node *node = &world->nodes[n];

    if (!may_lead(world, n)) {
        return;
    }
    for (int change = 1; change <= world->changes; change++) {
        size_t at = 0;

        if (world->answered[change] == 0 || world->lost[change]) {
            continue;
        }
        while (at < node->length && node->log[at] != change) {
            at++;
        }
        if (at == node->length || last_epoch(node, at) > world->answered[change]) {
            fail_msg("change %d of epoch %d was answered, and %s may lead without it, in epoch %d: "
                     "leader %s, sync %s",
                     change, world->answered[change], names[n], (int)world->state.epoch,
                     world->state.leader, world->state.sync);
        }
    }
}

/* In one epoch one node leads. */
static void check_leaders(const struct world *world)
{
    for (unsigned i = 0; i < NODES; i++) {
        for (unsigned k = 0; k < i; k++) {
            assert_true(world->nodes[i].leads == 0 ||
                        world->nodes[i].leads != world->nodes[k].leads);
        }
    }
}

/* With clocks: at most one takes changes now. */
static void check_alone(struct world *world)
{
    unsigned leaders = 0;

    for (unsigned i = 0; i < NODES; i++) {
        leaders += world->nodes[i].leads != 0 && world->nodes[i].until > world->now;
    }
    assert_true(leaders <= 1);
    world->led += leaders;
}

/* ---- walks ---- */

/* Without clocks at any time. */
static void end_lease(struct world *world)
{
    if (!world->clocks || world->ends[world->alive_lease] <= world->now) {
        world->alive_lease = 0;
    }
}

/* By hand, whoever leads. */
static void write_state(struct world *world)
{
    world->state.epoch++;
    world->state.sync[0] = '\0';
    snprintf(world->state.leader, sizeof(world->state.leader), "%s", names[below(world, NODES)]);
    world->state_revision = ++world->revision;
}

static void step(struct world *world)
{
    unsigned n = (unsigned)below(world, NODES);
    uint64_t what = below(world, 1000);

    world->now += below(world, 4);
    if (what < 60) {
        take_change(world, n);
    } else if (what < 160) {
        answer(world, n);
    } else if (what < 420) {
        follow(world, n, (unsigned)below(world, NODES));
    } else if (what < 560) {
        hear(world);
    } else if (what < 970) {
        agent_step(world, n);
    } else if (what < 974) {
        world->nodes[n].no_room = below(world, 4) == 0;
    } else if (what < 980) {
        end_lease(world);
    } else if (what < 986) {
        kill_agent(world, n);
    } else if (what < 992) {
        kill_daemon(world, n);
    } else if (what < 996) {
        cut_power(world, n);
    } else if (world->clocks) {
        write_state(world);
    }
}

static void begin(struct world *world, uint64_t seed, bool clocks)
{
    memset(world, 0, sizeof(*world));
    world->clocks = clocks;
    world->random.state = seed;
    world->has_state = true;
    snprintf(world->state.leader, sizeof(world->state.leader), "a");
    world->state_revision = world->revision = 1;
    world->alive = NOBODY;
    for (unsigned n = 0; n < NODES; n++) {
        kill_agent(world, n);
    }
}

/* ---- after a walk ---- */

static bool one_answers(const struct world *world)
{
    for (unsigned n = 0; n < NODES; n++) {
        const struct node *node = &world->nodes[n];
        bool answers = node->leads != 0 && node->leads == (int)world->state.epoch && !node->lacks;

        for (unsigned f = 0; f < NODES; f++) {
            answers = answers && !(node->waits[f] && world->nodes[f].no_room);
        }
        if (answers) {
            return true;
        }
    }
    return false;
}

/* Leases end that nobody renews, as those of agents that were killed. */
static void step_healing(struct world *world)
{
    unsigned n = (unsigned)below(world, NODES);
    bool lost = world->alive_lease != 0 && world->agents[world->alive].lease != world->alive_lease;

    world->now += below(world, 4);
    agent_step(world, n);
    follow(world, n, (unsigned)below(world, NODES));
    hear(world);
    answer(world, n);
    if (lost && below(world, 20) == 0) {
        world->alive_lease = 0;
    }
}

/* Returns whether there was one who may lead. */
static bool heal(struct world *world, unsigned full)
{
    bool may = false;
    unsigned steps = 0;

    for (unsigned n = 0; n < NODES; n++) {
        world->nodes[n].no_room = n == full;
        may = may || (n != full && may_lead(world, n));
        if (world->nodes[n].length > LOG_MAX / 2) {
            return false; /* of the model, not of a disk */
        }
    }
    while (may && !one_answers(world)) {
        step_healing(world);
        if (++steps == HEALING) {
            fail_msg("%s is full, and nobody leads: epoch %d, leader %s, sync %s, claim %d of %s",
                     names[full], (int)world->state.epoch, world->state.leader, world->state.sync,
                     (int)world->state.claim.epoch, world->state.claim.name);
        }
    }
    return may;
}

static void test_walks(void **unused)
{
    (void)unused;
    uint64_t seed = test_seed();
    uint64_t walks = test_scaled(WALKS);
    uint64_t answers = 0;
    uint64_t reigns = 0;
    uint64_t healed = 0;
    struct world *world = calloc(1, sizeof(*world));

    for (uint64_t walk = 0; walk < walks; walk++) {
        begin(world, seed + walk, false);
        for (unsigned i = 0; i < STEPS; i++) {
            step(world);
            check_leaders(world);
            for (unsigned n = 0; n < NODES; n++) {
                check_node(world, n);
            }
        }
        answers += world->answers;
        reigns += world->reigns;
        healed += heal(world, (unsigned)(walk % NODES));
    }
    printf("%llu walks: %llu reigns, %llu changes answered, %llu healed\n",
           (unsigned long long)walks, (unsigned long long)reigns, (unsigned long long)answers,
           (unsigned long long)healed);
    /* something happens */
    assert_true(reigns > 2 * walks && answers > walks && healed > walks / 4);
    free(world);
}

static void test_clocks(void **unused)
{
    (void)unused;
    uint64_t seed = test_seed();
    uint64_t walks = test_scaled(CLOCKED);
    uint64_t led = 0;
    struct world *world = calloc(1, sizeof(*world));

    for (uint64_t walk = 0; walk < walks; walk++) {
        begin(world, seed + walk, true);
        for (unsigned i = 0; i < 10 * STEPS; i++) {
            step(world);
            check_alone(world);
        }
        led += world->led;
    }
    assert_true(led > walks * STEPS); /* a tenth of the time somebody leads */
    free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walks),
        cmocka_unit_test(test_clocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
