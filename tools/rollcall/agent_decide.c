/* agent_decide.c: the rules by which an agent acts. */
#include "tools/rollcall/agent_decide.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

static bool agent_rule_is(const char *name, const char *other)
{
    return strcmp(name, other) == 0;
}

static void agent_rule_copy(char to[AGENT_NAME_MAX + 1], const char *name)
{
    snprintf(to, AGENT_NAME_MAX + 1, "%s", name);
}

static struct agent_action agent_rule_rest(void)
{
    return (struct agent_action){.act = AGENT_REST};
}

/* ---- who may lead ---- */

/*
 * A node has all that it answered in its reign if that was the last reign and the machine has run
 * on since, so that at most the process was killed. After a crash of the machine its disk may lack
 * what the sync follower has.
 */
static bool agent_rule_was_leader(const struct agent_view *view)
{
    const struct agent_state *state = &view->keys.state;

    return agent_rule_is(state->leader, view->self.name) && view->daemon.epoch == state->epoch &&
           state->boot[0] != '\0' && agent_rule_is(state->boot, view->self.boot);
}

bool agent_may_lead(const struct agent_view *view)
{
    const struct agent_state *state = &view->keys.state;
    bool named = agent_rule_is(state->leader, view->self.name) ||
                 agent_rule_is(state->sync, view->self.name);
    bool alone = agent_rule_is(state->leader, view->self.name) && state->sync[0] == '\0';
    bool holds = view->daemon.written >= state->from; /* it is not a new disk */

    return view->self.may_lead && named && holds &&
           (alone || view->daemon.caught_up || agent_rule_was_leader(view));
}

bool agent_may_adopt(const struct agent_view *view)
{
    const struct agent_keys *keys = &view->keys;
    const struct agent_state *state = &keys->state;

    return keys->has_state && agent_rule_is(keys->alive, view->self.name) &&
           agent_rule_is(state->leader, view->self.name) && state->boot[0] != '\0' &&
           agent_rule_is(state->boot, view->self.boot);
}

/* By the address where one of them does not tell its identity; with neither they are the same. */
bool agent_is_namesake(const struct agent_node *own, const struct agent_self *self)
{
    bool known = own->identity[0] != '\0' && self->identity[0] != '\0';

    return known ? !agent_rule_is(own->identity, self->identity)
                 : own->address[0] != '\0' && self->address != NULL &&
                       !agent_rule_is(own->address, self->address);
}

/* A new reign, above all that was ever seen, of which nobody else can say that it is in sync. */
static struct agent_action agent_rule_take(const struct agent_view *view, const char *why)
{
    const struct agent_state *state = &view->keys.state;
    uint64_t seen = state->epoch > view->daemon.epoch ? state->epoch : view->daemon.epoch;
    struct agent_action action = {.act = AGENT_TAKE, .why = why};

    action.state.epoch = seen + 1;
    action.state.from = view->daemon.written;
    agent_rule_copy(action.state.leader, view->self.name);
    snprintf(action.state.boot, sizeof(action.state.boot), "%s", view->self.boot);
    return action;
}

/* ---- a leader's reign ---- */

static bool agent_rule_streams(const struct agent_view *view, const char *name)
{
    for (size_t i = 0; i < view->daemon.follower_count; i++) {
        if (agent_rule_is(view->daemon.followers[i], name)) {
            return true;
        }
    }
    return false;
}

/* Of those that have caught up, the first whose agent is there and lets it lead. NULL: none. */
static const char *agent_rule_candidate(const struct agent_view *view)
{
    const struct agent_keys *keys = &view->keys;

    for (size_t i = 0; i < keys->node_count; i++) {
        const struct agent_node *node = &keys->nodes[i];

        if (node->may_lead && node->in_sync && !agent_rule_is(node->name, view->self.name) &&
            !agent_rule_is(node->name, keys->state.sync) && agent_rule_streams(view, node->name)) {
            return node->name;
        }
    }
    return NULL;
}

static struct agent_action agent_rule_hold(const struct agent_view *view,
                                           const struct agent_memory *memory)
{
    const char *sync = view->keys.state.sync;
    struct agent_action action = {.act = AGENT_HOLD};
    bool both = sync[0] != '\0' && memory->adding[0] != '\0';

    snprintf(action.waits, sizeof(action.waits), "%s%s%s", sync, both ? "," : "", memory->adding);
    if (action.waits[0] == '\0') {
        snprintf(action.waits, sizeof(action.waits), "%s", view->self.alone ? "-" : "*");
    }
    return action;
}

static struct agent_action agent_rule_change(const struct agent_view *view, const char *sync,
                                             const char *why)
{
    struct agent_action action = {.act = AGENT_CHANGE, .state = view->keys.state, .why = why};

    agent_rule_copy(action.state.sync, sync);
    return action;
}

static void agent_rule_forget_adding(struct agent_memory *memory)
{
    memory->adding[0] = '\0';
    memory->marked = false;
    memory->mark = memory->acked = 0;
}

/* The daemon waits for the new one, too, until that has all that was written before. */
static struct agent_action agent_rule_add(const struct agent_view *view,
                                          struct agent_memory *memory)
{
    if (!view->held || !memory->marked) {
        return agent_rule_hold(view, memory);
    }
    return memory->acked >= memory->mark
               ? agent_rule_change(view, memory->adding, "it has all that was written")
               : agent_rule_rest();
}

/* Has the sync follower been away for so long that it is time for another, or none? */
static bool agent_rule_sync_is_gone(const struct agent_view *view, struct agent_memory *memory)
{
    const char *sync = view->keys.state.sync;

    if (sync[0] == '\0' || agent_rule_streams(view, sync)) {
        memory->sync_gone_ms = 0;
        return false;
    }
    if (memory->sync_gone_ms == 0) {
        memory->sync_gone_ms = view->now_ms;
    }
    return view->now_ms - memory->sync_gone_ms >= memory->patience_ms;
}

static struct agent_action agent_rule_reign(const struct agent_view *view,
                                            struct agent_memory *memory)
{
    const struct agent_keys *keys = &view->keys;
    bool wants = agent_rule_sync_is_gone(view, memory) || keys->state.sync[0] == '\0';

    if (memory->adding[0] != '\0' && (keys->state_revision != memory->adding_revision ||
                                      !agent_rule_streams(view, memory->adding) || !wants)) {
        agent_rule_forget_adding(memory);
    }
    const char *candidate = wants && memory->adding[0] == '\0' ? agent_rule_candidate(view) : NULL;

    if (candidate != NULL) {
        agent_rule_forget_adding(memory);
        agent_rule_copy(memory->adding, candidate);
        memory->adding_revision = keys->state_revision;
    }
    if (memory->adding[0] != '\0') {
        return agent_rule_add(view, memory);
    }
    if (wants && keys->state.sync[0] != '\0' && view->self.alone) {
        return agent_rule_change(view, "", "it is away, and no other is in sync");
    }
    return view->held ? agent_rule_rest() : agent_rule_hold(view, memory);
}

/* ---- others ---- */

static struct agent_action agent_rule_follow(const struct agent_view *view)
{
    const struct agent_keys *keys = &view->keys;
    const struct agent_daemon_view *daemon = &view->daemon;
    bool named = agent_rule_is(keys->state.leader, view->self.name);
    struct agent_action action = {.act = AGENT_FOLLOW};

    if (daemon->leads && !(named && daemon->epoch == keys->state.epoch)) {
        snprintf(action.address, sizeof(action.address), "-");
        action.why = "state says that another node, or epoch, reigns";
        return action;
    }
    if (named) {
        return agent_rule_rest();
    }
    for (size_t i = 0; i < keys->node_count; i++) {
        if (agent_rule_is(keys->nodes[i].name, keys->state.leader) &&
            !agent_rule_is(keys->nodes[i].address, daemon->leader)) {
            snprintf(action.address, sizeof(action.address), "%s", keys->nodes[i].address);
            return action;
        }
    }
    return agent_rule_rest();
}

/* ---- alive is this agent's, and state says that its node leads ---- */

static struct agent_action agent_rule_lead(const struct agent_view *view,
                                           struct agent_memory *memory)
{
    const struct agent_daemon_view *daemon = &view->daemon;
    const struct agent_state *state = &view->keys.state;

    if (daemon->leads && daemon->epoch == state->epoch) {
        return agent_rule_reign(view, memory);
    }
    agent_rule_forget_adding(memory);
    if (daemon->leads) {
        return agent_rule_follow(view); /* in another epoch: it ends that */
    }
    if (!agent_may_lead(view)) {
        return (struct agent_action){.act = AGENT_RESIGN, .why = "it is not in sync any more"};
    }
    /* Who leads alone took the epoch and did not come to use it. */
    return state->sync[0] == '\0' && daemon->epoch < state->epoch
               ? (struct agent_action){.act = AGENT_PROMOTE, .state = *state}
               : agent_rule_take(view, "its daemon was started again");
}

/* Nobody is alive. */
static struct agent_action agent_rule_vacant(const struct agent_view *view)
{
    const struct agent_state *state = &view->keys.state;

    if (agent_rule_is(state->leader, view->self.name) && view->daemon.leads &&
        view->daemon.epoch == state->epoch) {
        return (struct agent_action){
            .act = AGENT_TAKE, .state = *state, .why = "its lease had ended, and nobody else led"};
    }
    if (!view->daemon.leads && agent_may_lead(view)) {
        return agent_rule_take(view, "nobody leads");
    }
    return agent_rule_follow(view);
}

/* The daemon does not answer: another one leads sooner if the lease is given back. One that hangs
 * may go on, and answer clients, until the last word to it ends. */
static struct agent_action agent_rule_without(const struct agent_view *view,
                                              struct agent_memory *memory)
{
    agent_rule_forget_adding(memory);
    if (memory->daemon_gone_ms == 0) {
        memory->daemon_gone_ms = view->now_ms;
    }
    const struct agent_state *state = &view->keys.state;
    bool ended = view->daemon.absent || view->now_ms >= memory->told_ms;
    bool others = state->sync[0] != '\0' || !agent_rule_is(state->leader, view->self.name);

    return ended && view->keys.alive_mine && others &&
                   view->now_ms - memory->daemon_gone_ms >= memory->patience_ms
               ? (struct agent_action){.act = AGENT_RESIGN, .why = "its daemon does not answer"}
               : agent_rule_rest();
}

struct agent_action agent_decide(const struct agent_view *view, struct agent_memory *memory)
{
    const struct agent_keys *keys = &view->keys;

    if (!keys->known || !keys->has_state) {
        agent_rule_forget_adding(memory);
        return agent_rule_rest();
    }
    if (!view->daemon.known) {
        return agent_rule_without(view, memory);
    }
    memory->daemon_gone_ms = 0;
    if (keys->alive_mine && agent_rule_is(keys->state.leader, view->self.name)) {
        return agent_rule_lead(view, memory);
    }
    agent_rule_forget_adding(memory);
    if (keys->alive_mine && !view->daemon.leads) {
        return (struct agent_action){.act = AGENT_RESIGN, .why = "state names another leader"};
    }
    /* A daemon that leads ends that before the lease is given back, as the other begins then. */
    return keys->alive[0] == '\0' ? agent_rule_vacant(view) : agent_rule_follow(view);
}

/* ---- text ---- */

void agent_state_print(const struct agent_state *state, char text[AGENT_TEXT_MAX])
{
    snprintf(text, AGENT_TEXT_MAX, "epoch %" PRIu64 " leader %s sync %s from %" PRIu64 " boot %s",
             state->epoch, state->leader, state->sync[0] != '\0' ? state->sync : "-", state->from,
             state->boot[0] != '\0' ? state->boot : "-");
}

static void agent_rule_dash_is_none(char *text)
{
    if (agent_rule_is(text, "-")) {
        text[0] = '\0';
    }
}

bool agent_state_parse(const char *text, struct agent_state *state)
{
    int end = -1;

    memset(state, 0, sizeof(*state));
    bool good =
        sscanf(text, "epoch %" SCNu64 " leader %64s sync %64s from %" SCNu64 " boot %36s%n",
               &state->epoch, state->leader, state->sync, &state->from, state->boot, &end) == 5;

    agent_rule_dash_is_none(state->sync);
    agent_rule_dash_is_none(state->boot);
    return good && end >= 0 && text[end] == '\0';
}

void agent_node_print(const struct agent_node *node, char text[AGENT_TEXT_MAX])
{
    snprintf(text, AGENT_TEXT_MAX,
             "%s epoch %" PRIu64 " written %" PRIu64 " %s %s identity %s agent %" PRIu64,
             node->address, node->epoch, node->written, node->in_sync ? "in-sync" : "behind",
             node->may_lead ? "may-lead" : "follows-only",
             node->identity[0] != '\0' ? node->identity : "-", node->pid);
}

bool agent_node_parse(const char *text, struct agent_node *node)
{
    char sync[16], lead[16];
    int end = -1;

    node->identity[0] = '\0';
    node->pid = 0;
    int count = sscanf(text,
                       "%255s epoch %" SCNu64 " written %" SCNu64
                       " %15s %15s%n identity %16s agent %" SCNu64 "%n",
                       node->address, &node->epoch, &node->written, sync, lead, &end,
                       node->identity, &node->pid, &end);
    bool good = count == 7 || count == 5; /* as an earlier version says it */

    agent_rule_dash_is_none(node->identity);
    if (!good || end < 0 || text[end] != '\0') {
        return false;
    }
    node->in_sync = agent_rule_is(sync, "in-sync");
    node->may_lead = agent_rule_is(lead, "may-lead");
    return true;
}
