/* agent_status.c: what an operator asks and says: who leads, who is the first, who leads by force.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "repl/wire.h"
#include "tools/rollcall/agent.h"
#include "tools/rollcall/verb.h"

/* The daemon says which group, and what it has. */
static int agent_ask_daemon(struct agent *agent)
{
    if (agent_ask_state(agent)) {
        return EXIT_STATUS_DONE;
    }
    (void)verb_complain(stderr, "%s: %s", agent->options->target.wire.server,
                        agent->daemon_trouble);
    return agent->asked != EXIT_STATUS_DONE ? (int)agent->asked : EXIT_STATUS_USAGE;
}

/* Of a call to etcd that failed. */
static int agent_etcd_status(const struct agent *agent)
{
    return agent_etcd_refused(agent->etcd) ? EXIT_STATUS_REFUSED : EXIT_STATUS_NO_ANSWER;
}

static int agent_read_group(struct agent *agent)
{
    if (agent->group[0] == '\0') {
        (void)verb_complain(stderr, "the daemon names no group");
        return EXIT_STATUS_USAGE;
    }
    agent->view.keys.known = agent_read_keys(agent);
    return agent->view.keys.known ? EXIT_STATUS_DONE : agent_etcd_status(agent); /* said already */
}

/* ---- status ---- */

static const char *agent_standing(const struct agent_keys *keys, const struct agent_node *node)
{
    if (strcmp(node->name, keys->state.leader) == 0) {
        return strcmp(node->name, keys->alive) == 0 ? "leads" : "led last";
    }
    if (strcmp(node->name, keys->state.sync) == 0) {
        return node->in_sync                       ? "sync follower"
               : node->full                        ? "sync follower, its disk is full"
               : strcmp(node->word, "behind") == 0 ? "sync follower, behind"
                                                   : "sync follower, cannot lead now";
    }
    return node->may_lead ? "follows" : "follows only";
}

int agent_show(struct agent *agent)
{
    const struct agent_keys *keys = &agent->view.keys;
    int status = EXIT_STATUS_DONE;

    if (agent->options->group != NULL) {
        snprintf(agent->group, sizeof(agent->group), "%.*s", AGENT_NAME_MAX, agent->options->group);
    } else {
        status = agent_ask_daemon(agent);
    }
    status = status == EXIT_STATUS_DONE ? agent_read_group(agent) : status;
    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    if (!keys->has_state) {
        (void)verb_complain(stderr,
                            "group %s was never begun: rollcall agent --init, on the node "
                            "that has the data",
                            agent->group);
        return EXIT_STATUS_FAILED;
    }
    printf("group %s, epoch %" PRIu64 ": %s %s, %s\n", agent->group, keys->state.epoch,
           keys->state.leader,
           keys->alive[0] == '\0'                         ? "led last, nobody does now"
           : strcmp(keys->alive, keys->state.leader) == 0 ? "leads"
                                                          : "led last, another takes over",
           keys->state.sync[0] != '\0' ? "and its sync follower may take over"
                                       : "and nobody else may take over");
    printf("%-16s %-24s %8s %16s  %s\n", "NODE", "ADDRESS", "EPOCH", "WRITTEN", "");
    for (size_t i = 0; i < keys->node_count; i++) {
        const struct agent_node *node = &keys->nodes[i];

        printf("%-16s %-24s %8" PRIu64 " %16" PRIu64 "  %s\n", node->name, node->address,
               node->epoch, node->written, agent_standing(keys, node));
    }
    return keys->alive[0] != '\0' ? EXIT_STATUS_DONE : EXIT_STATUS_FAILED;
}

/* ---- --init, --force ---- */

/* Writes that this node is the leader of `epoch`, and that nobody is in sync with it. */
static int agent_put(struct agent *agent, uint64_t epoch)
{
    struct agent_keys *keys = &agent->view.keys;
    struct agent_state state = {.epoch = epoch, .from = agent->view.daemon.written};
    struct agent_etcd_txn txn = {.compare_count = 2, .put_count = 1};
    char text[AGENT_TEXT_MAX];
    int64_t revision;

    snprintf(state.leader, sizeof(state.leader), "%s", agent->name);
    snprintf(state.boot, sizeof(state.boot), "%s", agent->boot);
    agent_state_print(&state, text);
    agent_key(agent, "state", txn.compares[0].key);
    agent_key(agent, "alive", txn.compares[1].key);
    txn.compares[0].revision = keys->state_revision;
    agent_key(agent, "state", txn.puts[0].key);
    txn.puts[0].value = text;
    if (!agent_etcd_commit(agent->etcd, &txn, &revision)) {
        (void)verb_complain(stderr, "etcd: %s", agent_etcd_error(agent->etcd));
        return agent_etcd_status(agent);
    }
    if (revision == 0) {
        (void)verb_complain(stderr, "somebody else changed the group's keys just now: nothing was "
                                    "changed; look at rollcall agent status");
        return EXIT_STATUS_REFUSED;
    }
    printf("%s is to lead group %s; its agent does the rest.\n", agent->name, agent->group);
    return EXIT_STATUS_DONE;
}

/* Before it decides who leads. */
static int agent_ask_all(struct agent *agent)
{
    char text[AGENT_TEXT_MAX];
    int status = agent_ask_daemon(agent);

    status = status == EXIT_STATUS_DONE ? agent_read_group(agent) : status;
    if (status == EXIT_STATUS_DONE && agent_has_namesake(agent, text)) {
        (void)verb_complain(stderr, "%s", text);
        return EXIT_STATUS_REFUSED;
    }
    return status;
}

int agent_init(struct agent *agent)
{
    const struct agent_keys *keys = &agent->view.keys;
    int status = agent_ask_all(agent);

    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    if (keys->state_revision != 0) {
        (void)verb_complain(stderr,
                            "group %s has begun already: in epoch %" PRIu64 " %s leads, or did; "
                            "for another leader: --force",
                            agent->group, keys->state.epoch, keys->state.leader);
        return EXIT_STATUS_REFUSED;
    }
    return agent_put(agent, agent->view.daemon.epoch);
}

/* What state says was there, and this node lacks. */
static void agent_say_loss(const struct agent *agent)
{
    const struct agent_keys *keys = &agent->view.keys;
    uint64_t here = agent->view.daemon.written;
    uint64_t there = keys->state.from;

    for (size_t i = 0; i < keys->node_count; i++) {
        there = keys->nodes[i].written > there ? keys->nodes[i].written : there;
    }
    if (there > here) {
        (void)verb_complain(stderr,
                            "at least %" PRIu64 " bytes of journal are not here, about %" PRIu64
                            " changes: they are lost",
                            there - here, (there - here) / REPL_CHANGE_BYTES);
    } else if (strcmp(keys->state.leader, agent->name) != 0) {
        (void)verb_complain(stderr,
                            "what %s answered in epoch %" PRIu64 " and is not here is lost; how "
                            "much that is nobody here knows",
                            keys->state.leader, keys->state.epoch);
    }
}

int agent_force(struct agent *agent)
{
    const struct agent_keys *keys = &agent->view.keys;
    int status = agent_ask_all(agent);

    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    if (keys->alive[0] != '\0') {
        (void)verb_complain(stderr,
                            "%s leads group %s now: stop its agent first, and wait until "
                            "its lease has ended",
                            keys->alive, agent->group);
        return EXIT_STATUS_REFUSED;
    }
    agent_say_loss(agent);
    uint64_t epoch = agent->view.daemon.epoch;

    epoch = keys->state.epoch > epoch ? keys->state.epoch : epoch;
    return agent_put(agent, keys->state.claim.epoch > epoch ? keys->state.claim.epoch : epoch);
}
