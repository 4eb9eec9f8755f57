/* agent_keys.c: what etcd holds of the group, and whether this agent is the one to speak for its
 * node.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "tools/rollcall/agent.h"

/* Once, until it changes. */
static void agent_say_trouble(char said[], size_t room, const char *what, const char *now)
{
    if (strncmp(said, now, room - 1) != 0) {
        snprintf(said, room, "%s", now);
        if (now[0] != '\0') {
            log_warning("%s: %s", what, now);
        }
    }
}

bool agent_etcd_failed(struct agent *agent)
{
    agent->view.keys.known = false;
    agent_say_trouble(agent->etcd_trouble, sizeof(agent->etcd_trouble), "etcd",
                      agent_etcd_error(agent->etcd));
    return false;
}

static bool agent_etcd_answers(struct agent *agent)
{
    if (agent->etcd_trouble[0] != '\0') {
        agent->etcd_trouble[0] = '\0';
        log_info("etcd answers again");
    }
    return true;
}

/* ---- keys ---- */

void agent_key(const struct agent *agent, const char *name, char key[AGENT_ETCD_KEY_MAX])
{
    snprintf(key, AGENT_ETCD_KEY_MAX, "/rollcall/%s/%s", agent->group, name);
}

static void agent_take_alive(struct agent *agent, const struct agent_etcd_item *item)
{
    struct agent_keys *keys = &agent->view.keys;

    snprintf(keys->alive, sizeof(keys->alive), "%.*s", AGENT_NAME_MAX, item->value);
    keys->alive_revision = item->revision;
    keys->alive_lease = item->lease;
}

static void agent_take_node(struct agent *agent, const char *name,
                            const struct agent_etcd_item *item)
{
    struct agent_keys *keys = &agent->view.keys;
    struct agent_own_node *own = &agent->own;
    struct agent_node node;
    bool good = strlen(name) <= AGENT_NAME_MAX && agent_node_parse(item->value, &node);

    if (strcmp(name, agent->name) == 0) {
        own->revision = item->revision;
        own->lease = item->lease;
        own->node = good ? node : (struct agent_node){.address = ""};
    }
    if (good && keys->node_count < AGENT_NODES_MAX) {
        snprintf(node.name, sizeof(node.name), "%.*s", AGENT_NAME_MAX, name);
        keys->nodes[keys->node_count++] = node;
    }
}

static void agent_take_key(void *context, const struct agent_etcd_item *item)
{
    static const char node[] = "node/";
    struct agent *agent = context;
    struct agent_keys *keys = &agent->view.keys;
    char prefix[AGENT_ETCD_KEY_MAX];

    agent_key(agent, "", prefix);
    const char *name = item->key + strlen(prefix);

    if (strcmp(name, "state") == 0) {
        keys->has_state = agent_state_parse(item->value, &keys->state);
        keys->state_revision = item->revision;
        if (!keys->has_state) {
            log_warning("the key %s is none of ours: %.100s", item->key, item->value);
        }
    } else if (strcmp(name, "alive") == 0) {
        agent_take_alive(agent, item);
    } else if (strncmp(name, node, strlen(node)) == 0) {
        agent_take_node(agent, name + strlen(node), item);
    }
}

bool agent_has_namesake(const struct agent *agent, char text[AGENT_TEXT_MAX])
{
    const struct agent_own_node *own = &agent->own;

    if (!agent_is_namesake(&own->node, &agent->view.self)) {
        return false;
    }
    snprintf(
        text, AGENT_TEXT_MAX,
        "there is a node %s already, at %.*s: another daemon. Each needs a replication.name of "
        "its own; this one takes no part until the other one's lease has ended",
        agent->name, 128, own->node.address);
    return true;
}

/* Another agent lives, or may live, beside the same daemon. With the lock there is none in this
 * scope, so one that said the same scope has ended. mine: the name is; but the daemon may have
 * begun anew in another directory, which another agent speaks for. */
static bool agent_has_double(struct agent *agent, bool mine, char text[AGENT_TEXT_MAX])
{
    const struct agent_own_node *own = &agent->own;

    if (agent->identity[0] == '\0') {
        return false;
    }
    enum agent_lock_result lock = agent_lock_take(&agent->lock, agent->identity);

    if (lock == AGENT_LOCK_HELD) {
        snprintf(text, AGENT_TEXT_MAX,
                 "beside this daemon runs another agent already, pid %ld: stop one of them; this "
                 "one takes no part until that one has ended",
                 (long)agent->lock.holder);
        return true;
    }
    bool ended = lock == AGENT_LOCK_HAD && own->node.scope != 0 && own->node.scope == agent->scope;

    if (mine || own->node.address[0] == '\0' || ended) {
        return false;
    }
    snprintf(text, AGENT_TEXT_MAX,
             "beside this daemon runs another agent, or did: of another container, or an earlier "
             "version; this one takes no part until the lease of that one has ended");
    return true;
}

/* Returns whether the name is this agent's to speak for. */
static bool agent_has_name(struct agent *agent)
{
    char text[AGENT_TEXT_MAX] = "";
    bool mine = agent->lease != 0 && agent->own.lease == agent->lease;
    bool other = !mine && agent_has_namesake(agent, text);
    bool has = !other && !agent_has_double(agent, mine, text);

    agent_say_trouble(agent->name_trouble, sizeof(agent->name_trouble), agent->group, text);
    return has;
}

bool agent_read_keys(struct agent *agent)
{
    struct agent_keys *keys = &agent->view.keys;
    char prefix[AGENT_ETCD_KEY_MAX];

    memset(keys, 0, sizeof(*keys));
    memset(&agent->own, 0, sizeof(agent->own));
    agent_key(agent, "", prefix);
    keys->known = agent_etcd_read(agent->etcd, prefix, agent_take_key, agent);
    return keys->known ? agent_etcd_answers(agent) : agent_etcd_failed(agent);
}

bool agent_look(struct agent *agent)
{
    struct agent_keys *keys = &agent->view.keys;

    keys->known = agent_read_keys(agent) && agent_has_name(agent);
    if (keys->known && agent->lease == 0 && agent_may_adopt(&agent->view)) {
        agent->lease = keys->alive_lease;
    }
    keys->alive_mine = agent->lease != 0 && keys->alive_lease == agent->lease;
    return keys->known;
}
