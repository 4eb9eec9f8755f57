/* agent_decide.c: the rules by which an agent acts. */
#include "tools/rollcall/agent_decide.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

static const char word_in_sync[] = "in-sync";
static const char word_full[] = "full";

static const char other_reigns[] = "state says that another node, or epoch, reigns";

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

static bool agent_rule_is_claimed(const struct agent_state *state)
{
    return state->claim.epoch > state->epoch;
}

static uint64_t agent_rule_highest(const struct agent_state *state)
{
    return agent_rule_is_claimed(state) ? state->claim.epoch : state->epoch;
}

/* Name and boot: of who leads, or claims to. */
static bool agent_rule_is_self(const struct agent_view *view, const char *name, const char *boot)
{
    return agent_rule_is(name, view->self.name) && boot[0] != '\0' &&
           agent_rule_is(boot, view->self.boot);
}

/* Its agent may be another process than the one that did. */
static bool agent_rule_claims(const struct agent_view *view)
{
    const struct agent_state *state = &view->keys.state;

    return agent_rule_is_claimed(state) &&
           agent_rule_is_self(view, state->claim.name, state->claim.boot);
}

/*
 * A node has all that it answered in its reign, or had when it claimed the next one, if the machine
 * has run on since, so that at most the process was killed. After a crash of the machine its disk
 * may lack what the sync follower has. A reign that was claimed may have begun.
 */
static bool agent_rule_was_leader(const struct agent_view *view)
{
    const struct agent_state *state = &view->keys.state;

    return view->daemon.epoch >= state->epoch && view->daemon.epoch <= agent_rule_highest(state) &&
           (agent_rule_is_self(view, state->leader, state->boot) || agent_rule_claims(view));
}

bool agent_may_lead(const struct agent_view *view)
{
    const struct agent_state *state = &view->keys.state;
    bool named = agent_rule_is(state->leader, view->self.name) ||
                 agent_rule_is(state->sync, view->self.name);
    bool alone = agent_rule_is(state->leader, view->self.name) && state->sync[0] == '\0';
    bool holds = view->daemon.written >= state->from; /* it is not a new disk */

    return view->self.may_lead && view->daemon.can_lead && named && holds &&
           (alone || view->daemon.caught_up || agent_rule_was_leader(view));
}

bool agent_may_adopt(const struct agent_view *view)
{
    const struct agent_keys *keys = &view->keys;
    const struct agent_state *state = &keys->state;

    return keys->has_state && agent_rule_is(keys->alive, view->self.name) &&
           (agent_rule_is_self(view, state->leader, state->boot) || agent_rule_claims(view));
}

/* By the address where one of them does not tell its identity; with neither they are the same. */
bool agent_is_namesake(const struct agent_node *own, const struct agent_self *self)
{
    bool known = own->identity[0] != '\0' && self->identity[0] != '\0';

    return known ? !agent_rule_is(own->identity, self->identity)
                 : own->address[0] != '\0' && self->address != NULL &&
                       !agent_rule_is(own->address, self->address);
}

const struct agent_node *agent_node_of(const struct agent_keys *keys, const char *name)
{
    for (size_t i = 0; i < keys->node_count; i++) {
        if (agent_rule_is(keys->nodes[i].name, name)) {
            return &keys->nodes[i];
        }
    }
    return NULL;
}

bool agent_is_settled(const struct agent_keys *keys)
{
    return keys->has_state && agent_rule_is(keys->alive, keys->state.leader) &&
           !agent_rule_is_claimed(&keys->state);
}

/* Claims a reign above all that was ever seen. */
static struct agent_action agent_rule_claim(const struct agent_view *view,
                                            struct agent_memory *memory, const char *why)
{
    struct agent_action action = {.act = AGENT_TAKE, .state = view->keys.state, .why = why};
    struct agent_claim *claim = &action.state.claim;
    uint64_t highest = agent_rule_highest(&action.state);

    memory->refusals = 0;
    claim->epoch = 1 + (highest > view->daemon.epoch ? highest : view->daemon.epoch);
    agent_rule_copy(claim->name, view->self.name);
    snprintf(claim->boot, sizeof(claim->boot), "%s", view->self.boot);
    return action;
}

/* The reign that was claimed has begun: of it nobody else can say that it is in sync. */
static struct agent_action agent_rule_confirm(const struct agent_view *view)
{
    struct agent_action action = {.act = AGENT_CHANGE, .why = "its daemon leads"};

    action.state.epoch = view->keys.state.claim.epoch;
    action.state.from = view->daemon.written;
    agent_rule_copy(action.state.leader, view->self.name);
    snprintf(action.state.boot, sizeof(action.state.boot), "%s", view->self.boot);
    return action;
}

/* As it leads, and may not. */
static struct agent_action agent_rule_end_reign(const char *why)
{
    struct agent_action action = {.act = AGENT_FOLLOW, .why = why};

    snprintf(action.address, sizeof(action.address), "-");
    return action;
}

static struct agent_action agent_rule_resign(const char *why)
{
    return (struct agent_action){.act = AGENT_RESIGN, .why = why};
}

/* ---- a leader's reign ---- */

/* Its place among the daemon's followers that have caught up; FOLLOWERS_MAX: it is none. */
static size_t agent_rule_place(const struct agent_view *view, const char *name)
{
    for (size_t i = 0; i < view->daemon.follower_count; i++) {
        if (agent_rule_is(view->daemon.followers[i], name)) {
            return i;
        }
    }
    return AGENT_FOLLOWERS_MAX;
}

/* Does it take what is written? One that has no room stays, and takes nothing. */
static bool agent_rule_streams(const struct agent_view *view, const char *name)
{
    const struct agent_node *node = agent_node_of(&view->keys, name);

    return agent_rule_place(view, name) < AGENT_FOLLOWERS_MAX && (node == NULL || !node->full);
}

/* Since when something is so. Returns whether it has been for so long that something is to be done.
 */
static bool agent_rule_lasts(const struct agent_view *view, const struct agent_memory *memory,
                             bool is_so, uint64_t *since_ms)
{
    *since_ms = !is_so ? 0 : *since_ms != 0 ? *since_ms : view->now_ms;
    return is_so && view->now_ms - *since_ms >= memory->patience_ms;
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

    return agent_rule_lasts(view, memory, sync[0] != '\0' && !agent_rule_streams(view, sync),
                            &memory->sync_gone_ms);
}

/* It has what is answered, and stays until another has that, who can lead. */
static bool agent_rule_sync_is_weak(const struct agent_view *view, struct agent_memory *memory)
{
    const struct agent_node *node = agent_node_of(&view->keys, view->keys.state.sync);

    return agent_rule_lasts(view, memory, node != NULL && !node->in_sync, &memory->sync_weak_ms);
}

/* Writes are refused here, and would not be there; and the sync follower said that it has all,
 * which with `ack: none` no answer has waited for. */
static bool agent_rule_is_full(const struct agent_view *view, struct agent_memory *memory)
{
    const struct agent_daemon_view *daemon = &view->daemon;
    const char *sync = view->keys.state.sync;
    const struct agent_node *node = agent_node_of(&view->keys, sync);
    bool other = node != NULL && node->in_sync && node->may_lead && agent_rule_streams(view, sync);

    return agent_rule_lasts(view, memory, daemon->full && other, &memory->full_ms) &&
           daemon->followers_written[agent_rule_place(view, sync)] >= daemon->written;
}

/* Its daemon may have no room to begin anew, either: then it may take no changes, once the last
 * word to it has ended, and the lease is another's to have. */
static struct agent_action agent_rule_give_way(const struct agent_view *view,
                                               struct agent_memory *memory)
{
    static const char why[] = "its disk is full, and the sync follower can lead";

    if (view->now_ms < memory->told_ms) {
        return agent_rule_end_reign(why);
    }
    memory->gives_way_ms = view->now_ms + 3 * memory->patience_ms;
    return agent_rule_resign(why);
}

static struct agent_action agent_rule_reign(const struct agent_view *view,
                                            struct agent_memory *memory)
{
    const struct agent_keys *keys = &view->keys;

    if (agent_rule_is_full(view, memory)) {
        return agent_rule_give_way(view, memory);
    }
    bool gone = agent_rule_sync_is_gone(view, memory);
    bool weak = agent_rule_sync_is_weak(view, memory);
    bool wants = gone || weak || keys->state.sync[0] == '\0';

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
    if (gone && view->self.alone) {
        return agent_rule_change(view, "", "it is away or full, and no other is in sync");
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

    const struct agent_node *leader = agent_node_of(&view->keys, keys->state.leader);

    if (daemon->leads && !(named && daemon->epoch == keys->state.epoch)) {
        return agent_rule_end_reign(other_reigns);
    }
    if (named || leader == NULL || agent_rule_is(leader->address, daemon->leader)) {
        return agent_rule_rest();
    }
    snprintf(action.address, sizeof(action.address), "%s", leader->address);
    return action;
}

/* ---- alive is this agent's, and state says that its node leads, or is to ---- */

static struct agent_action agent_rule_begin(const struct agent_view *view,
                                            struct agent_memory *memory)
{
    const struct agent_daemon_view *daemon = &view->daemon;
    const struct agent_state *state = &view->keys.state;

    agent_rule_forget_adding(memory);
    if (daemon->leads) {
        return daemon->epoch == state->claim.epoch ? agent_rule_confirm(view)
                                                   : agent_rule_end_reign(other_reigns);
    }
    if (memory->refusals >= AGENT_REFUSALS_MAX) {
        memory->gives_way_ms = view->now_ms + 3 * memory->patience_ms;
        return agent_rule_resign("its daemon cannot be promoted");
    }
    if (!agent_may_lead(view)) {
        return agent_rule_resign("it is not in sync any more, or has no room");
    }
    return daemon->epoch < state->claim.epoch
               ? (struct agent_action){.act = AGENT_PROMOTE, .state = *state}
               : agent_rule_claim(view, memory, "its daemon was started again");
}

static struct agent_action agent_rule_lead(const struct agent_view *view,
                                           struct agent_memory *memory)
{
    const struct agent_daemon_view *daemon = &view->daemon;
    const struct agent_state *state = &view->keys.state;

    if (daemon->leads && daemon->epoch == state->epoch && !agent_rule_is_claimed(state)) {
        return agent_rule_reign(view, memory);
    }
    agent_rule_forget_adding(memory);
    if (daemon->leads) {
        return agent_rule_end_reign(other_reigns);
    }
    if (!agent_may_lead(view)) {
        return agent_rule_resign("it is not in sync any more, or has no room");
    }
    return agent_rule_claim(view, memory, "its daemon was started again");
}

/* Nobody is alive. */
static struct agent_action agent_rule_vacant(const struct agent_view *view,
                                             struct agent_memory *memory)
{
    const struct agent_daemon_view *daemon = &view->daemon;
    const struct agent_state *state = &view->keys.state;
    bool reigned = agent_rule_is(state->leader, view->self.name) && daemon->epoch == state->epoch;
    bool begun = agent_rule_claims(view) && daemon->epoch == state->claim.epoch;

    if (daemon->leads && (begun || (reigned && !agent_rule_is_claimed(state)))) {
        if (view->now_ms < memory->gives_way_ms) {
            return agent_rule_rest();
        }
        return (struct agent_action){
            .act = AGENT_TAKE, .state = *state, .why = "its lease had ended, and nobody else led"};
    }
    if (daemon->leads) {
        /* Also in its own reign: who claimed the next one may have begun that, and follows only a
         * higher one. */
        return agent_rule_end_reign(other_reigns);
    }
    return agent_may_lead(view) && view->now_ms >= memory->gives_way_ms
               ? agent_rule_claim(view, memory, "nobody leads")
               : agent_rule_follow(view);
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
               ? agent_rule_resign("its daemon does not answer")
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
    if (keys->alive_mine && agent_rule_claims(view)) {
        return agent_rule_begin(view, memory);
    }
    if (keys->alive_mine && agent_rule_is(keys->state.leader, view->self.name)) {
        return agent_rule_lead(view, memory);
    }
    agent_rule_forget_adding(memory);
    if (keys->alive_mine && !view->daemon.leads) {
        return agent_rule_resign("state names another leader");
    }
    /* A daemon that leads ends that before the lease is given back, as the other begins then. */
    return keys->alive[0] == '\0' ? agent_rule_vacant(view, memory) : agent_rule_follow(view);
}

/* ---- text ---- */

const char *agent_word(const struct agent_daemon_view *daemon)
{
    return daemon->leads        ? word_in_sync
           : daemon->full       ? word_full
           : !daemon->caught_up ? "behind"
           : daemon->can_lead   ? word_in_sync
                                : "cannot-lead";
}

static const char *agent_rule_or_dash(const char *text)
{
    return text[0] != '\0' ? text : "-";
}

void agent_state_print(const struct agent_state *state, char text[AGENT_TEXT_MAX])
{
    int length = snprintf(text, AGENT_TEXT_MAX,
                          "epoch %" PRIu64 " leader %s sync %s from %" PRIu64 " boot %s",
                          state->epoch, state->leader, agent_rule_or_dash(state->sync), state->from,
                          agent_rule_or_dash(state->boot));

    if (agent_rule_is_claimed(state)) {
        snprintf(text + length, AGENT_TEXT_MAX - (size_t)length, " claim %" PRIu64 " %s boot %s",
                 state->claim.epoch, state->claim.name, agent_rule_or_dash(state->claim.boot));
    }
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
    struct agent_claim *claim = &state->claim;
    int count = sscanf(text,
                       "epoch %" SCNu64 " leader %64s sync %64s from %" SCNu64
                       " boot %36s%n claim %" SCNu64 " %64s boot %36s%n",
                       &state->epoch, state->leader, state->sync, &state->from, state->boot, &end,
                       &claim->epoch, claim->name, claim->boot, &end);

    agent_rule_dash_is_none(state->sync);
    agent_rule_dash_is_none(state->boot);
    agent_rule_dash_is_none(claim->boot);
    return (count == 5 || count == 8) && end >= 0 && text[end] == '\0';
}

void agent_node_print(const struct agent_node *node, char text[AGENT_TEXT_MAX])
{
    snprintf(text, AGENT_TEXT_MAX,
             "%s epoch %" PRIu64 " written %" PRIu64 " %s %s identity %s agent %" PRIu64,
             node->address, node->epoch, node->written, node->word,
             node->may_lead ? "may-lead" : "follows-only", agent_rule_or_dash(node->identity),
             node->scope);
}

bool agent_node_parse(const char *text, struct agent_node *node)
{
    char lead[16];
    int end = -1;

    node->identity[0] = '\0';
    node->scope = 0;
    int count = sscanf(text,
                       "%255s epoch %" SCNu64 " written %" SCNu64
                       " %15s %15s%n identity %16s agent %" SCNu64 "%n",
                       node->address, &node->epoch, &node->written, node->word, lead, &end,
                       node->identity, &node->scope, &end);
    bool good = count == 7 || count == 5; /* as an earlier version says it */

    agent_rule_dash_is_none(node->identity);
    if (!good || end < 0 || text[end] != '\0') {
        return false;
    }
    node->in_sync = agent_rule_is(node->word, word_in_sync);
    node->full = agent_rule_is(node->word, word_full);
    node->may_lead = agent_rule_is(lead, "may-lead");
    return true;
}
