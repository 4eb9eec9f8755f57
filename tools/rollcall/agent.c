/* agent.c: rollcall agent: its rounds, and what it does in them. */
#include "tools/rollcall/agent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/notify.h"
#include "tools/rollcall/verb.h"

#define MS_US    1000u
#define S_MS     1000u
#define ACTS_MAX 8 /* of a round */
#define WRITTEN_MS                                                                                 \
    60000u             /* how far the journal is is told so often: etcd keeps all that is put      \
                        */
#define ADDING_MS 100u /* between two rounds while a follower is to have what was written */
#define BOOT_FILE "/proc/sys/kernel/random/boot_id"

/* clock_boot_us */
static uint64_t agent_now_ms(void)
{
    return clock_boot_us() / MS_US;
}

/* ---- the lease ---- */

/* Its word ends a part before the lease does, counted from before that was asked for. */
static void agent_note_lease(struct agent *agent, uint64_t asked_ms, uint64_t ttl_s)
{
    agent->ttl_ms = ttl_s * S_MS;
    agent->word_ms = asked_ms + agent->ttl_ms - agent->ttl_ms / AGENT_ROUNDS;
}

/* The last word of the agent before this process is not known, but ends no later than one now. */
static void agent_note_told(struct agent *agent)
{
    if (agent->memory.told_ms == AGENT_TOLD_UNKNOWN) {
        agent->memory.told_ms = agent->word_ms;
    }
}

static bool agent_keep_lease(struct agent *agent)
{
    uint64_t asked_ms = agent_now_ms();
    uint64_t ttl_s;

    if (!agent_etcd_keep(agent->etcd, agent->lease, &ttl_s)) {
        return agent_etcd_failed(agent);
    }
    if (ttl_s == 0) {
        log_warning("its lease has ended");
        agent->lease = 0;
        return true;
    }
    agent_note_lease(agent, asked_ms, ttl_s);
    return true;
}

/* It has one, or there is none to be had. */
static bool agent_renew(struct agent *agent)
{
    uint64_t ttl_s;

    if (agent->lease == 0 && !agent_look(agent)) {
        return false;
    }
    if (agent->lease != 0 && !agent_keep_lease(agent)) {
        return false;
    }
    if (agent->lease != 0) {
        agent_note_told(agent);
        return true;
    }
    uint64_t asked_ms = agent_now_ms();

    if (!agent_etcd_grant(agent->etcd, agent->options->ttl_s, &agent->lease, &ttl_s)) {
        agent->lease = 0;
        return agent_etcd_failed(agent);
    }
    agent->node_text[0] = '\0';
    agent_note_lease(agent, asked_ms, ttl_s);
    agent_note_told(agent);
    return true;
}

/* ---- node/NAME ---- */

/* What others decide by is told at once, how far the journal is only now and then. */
static bool agent_announce(struct agent *agent)
{
    const struct agent_daemon_view *daemon = &agent->view.daemon;
    struct agent_node node = {
        .epoch = daemon->epoch, .may_lead = agent->view.self.may_lead, .scope = agent->scope};
    struct agent_etcd_txn txn = {.compare_count = 1, .put_count = 1};
    char text[AGENT_TEXT_MAX], name[AGENT_NAME_MAX + 8];
    int64_t revision;

    snprintf(node.address, sizeof(node.address), "%s", agent->view.self.address);
    snprintf(node.word, sizeof(node.word), "%s", agent_word(daemon));
    memcpy(node.identity, agent->identity, sizeof(node.identity));
    agent_node_print(&node, text);
    if (!daemon->known || (strcmp(text, agent->node_text) == 0 &&
                           agent->view.now_ms < agent->node_put_ms + WRITTEN_MS)) {
        return true;
    }
    snprintf(agent->node_text, sizeof(agent->node_text), "%s", text);
    agent->node_put_ms = agent->view.now_ms;
    node.written = daemon->written;
    agent_node_print(&node, text);
    snprintf(name, sizeof(name), "node/%s", agent->name);
    agent_key(agent, name, txn.puts[0].key);
    txn.puts[0].value = text;
    txn.puts[0].lease = agent->lease;
    memcpy(txn.compares[0].key, txn.puts[0].key, sizeof(txn.puts[0].key));
    txn.compares[0].revision = agent->own.revision;
    if (!agent_etcd_commit(agent->etcd, &txn, &revision)) {
        agent->node_text[0] = '\0';
        return agent_etcd_failed(agent);
    }
    if (revision == 0) {
        agent->node_text[0] = '\0'; /* a node of the same name was faster: the next look says so */
    }
    return revision != 0;
}

/* ---- acts ---- */

static bool agent_daemon_failed(struct agent *agent, const char *what)
{
    log_warning("%s: %s", what, agent->daemon_trouble);
    agent->view.daemon.known = false;
    return false;
}

/* state, and with `alive` that key, if nobody changed either since they were read. */
static bool agent_put_state(struct agent *agent, const struct agent_action *action, bool alive)
{
    struct agent_keys *keys = &agent->view.keys;
    struct agent_etcd_txn txn = {.compare_count = 2, .put_count = alive ? 2 : 1};
    char text[AGENT_TEXT_MAX];
    int64_t revision;

    agent_state_print(&action->state, text);
    agent_key(agent, "state", txn.compares[0].key);
    agent_key(agent, "alive", txn.compares[1].key);
    txn.compares[0].revision = keys->state_revision;
    txn.compares[1].revision = keys->alive_revision;
    memcpy(txn.puts[0].key, txn.compares[0].key, sizeof(txn.puts[0].key));
    memcpy(txn.puts[1].key, txn.compares[1].key, sizeof(txn.puts[1].key));
    txn.puts[0].value = text;
    txn.puts[1].value = agent->name;
    txn.puts[1].lease = agent->lease;
    if (!agent_etcd_commit(agent->etcd, &txn, &revision)) {
        return agent_etcd_failed(agent);
    }
    if (revision == 0) {
        keys->known = false; /* somebody was faster */
        return false;
    }
    log_info("state is now: %s (%s)", text, action->why);
    keys->state = action->state;
    keys->state_revision = revision;
    if (alive) {
        snprintf(keys->alive, sizeof(keys->alive), "%s", agent->name);
        keys->alive_revision = revision;
        keys->alive_mine = true;
    }
    agent->view.held = false;
    return true;
}

static bool agent_promote(struct agent *agent, uint64_t epoch)
{
    if (!agent_ask_promote(agent, epoch)) {
        agent->memory.refusals += agent->asked == EXIT_STATUS_DONE; /* it has answered */
        return agent_daemon_failed(agent, "the daemon cannot be promoted");
    }
    log_info("the daemon leads epoch=%llu", (unsigned long long)epoch);
    agent->view.daemon.leads = true;
    agent->view.daemon.epoch = epoch;
    return true;
}

static bool agent_hold(struct agent *agent, const char *waits)
{
    struct agent_memory *memory = &agent->memory;
    uint64_t written;
    uint64_t acked;

    if (!agent_ask_hold(agent, waits, &written, &acked)) {
        return agent_daemon_failed(agent, "the daemon does not lead on");
    }
    if (memory->adding[0] != '\0') {
        memory->mark = memory->marked ? memory->mark : written;
        memory->marked = true;
        memory->acked = acked;
    }
    agent->view.held = true;
    return true;
}

static bool agent_follow(struct agent *agent, const struct agent_action *action)
{
    bool leads = agent->view.daemon.leads;

    if (!agent_ask_follow(agent, action->address)) {
        return agent_daemon_failed(agent, "the daemon does not follow");
    }
    log_info("the daemon follows %s%s%s", leads ? "nobody yet" : action->address,
             action->why != NULL ? ": " : "", action->why != NULL ? action->why : "");
    snprintf(agent->view.daemon.leader, sizeof(agent->view.daemon.leader), "%s", action->address);
    agent->view.daemon.known = !leads; /* it begins anew */
    return true;
}

static bool agent_resign(struct agent *agent, const char *why)
{
    log_warning("its lease is given back: %s", why);
    agent->view.keys.known = false;
    if (!agent_etcd_revoke(agent->etcd, agent->lease)) {
        return agent_etcd_failed(agent);
    }
    agent->lease = 0;
    return true;
}

/* False: that is all in this round. */
static bool agent_act(struct agent *agent, const struct agent_action *action)
{
    switch (action->act) {
    case AGENT_TAKE:
        return agent_put_state(agent, action, true);
    case AGENT_CHANGE:
        return agent_put_state(agent, action, false);
    case AGENT_PROMOTE:
        return agent_promote(agent, action->state.claim.epoch);
    case AGENT_HOLD:
        return agent_hold(agent, action->waits);
    case AGENT_FOLLOW:
        return agent_follow(agent, action);
    case AGENT_RESIGN:
        return agent_resign(agent, action->why);
    case AGENT_REST:
        break;
    }
    return false;
}

/* ---- a round ---- */

static void agent_round(struct agent *agent)
{
    char before[ONLINE_ERROR_MAX];

    agent->view.now_ms = agent_now_ms();
    agent->view.held = false;
    agent->view.keys.known = false;
    memcpy(before, agent->daemon_trouble, sizeof(before));
    agent->daemon_trouble[0] = '\0';
    if (!agent_ask_state(agent) && strcmp(before, agent->daemon_trouble) != 0) {
        log_warning("daemon: %s", agent->daemon_trouble);
    } else if (agent->view.daemon.known && before[0] != '\0') {
        log_info("the daemon answers again");
    }
    if (agent->name[0] == '\0' || !agent_renew(agent) || !agent_look(agent) ||
        !agent_announce(agent)) {
        agent->view.keys.known = false;
    }
    for (unsigned acts = 0; acts < ACTS_MAX; acts++) {
        struct agent_action action = agent_decide(&agent->view, &agent->memory);

        if (!agent_act(agent, &action)) {
            break;
        }
    }
    agent_hook_look(agent);
}

/* ---- its life ---- */

static void agent_read_boot(char boot[AGENT_BOOT_MAX + 1])
{
    FILE *file = fopen(BOOT_FILE, "re");

    if (file == NULL || fgets(boot, AGENT_BOOT_MAX + 1, file) == NULL) {
        boot[0] = '\0';
    }
    boot[strcspn(boot, "\n ")] = '\0';
    if (file != NULL) {
        fclose(file);
    }
}

/* What it knows of its machine, and the view of itself. */
static void agent_set_up(struct agent *agent, const struct online_options *options,
                         struct agent_etcd *etcd)
{
    agent->options = options;
    agent->etcd = etcd;
    agent->ttl_ms = (uint64_t)options->ttl_s * S_MS;
    agent->memory.patience_ms = agent->ttl_ms / 3;
    agent->memory.told_ms = AGENT_TOLD_UNKNOWN;
    agent->lock.fd = -1;
    agent->scope = agent_lock_scope();
    agent_read_boot(agent->boot);
    agent->view.self = (struct agent_self){.name = agent->name,
                                           .address = options->address,
                                           .boot = agent->boot,
                                           .identity = agent->identity,
                                           .may_lead = !options->follows_only,
                                           .alone = !options->not_alone};
}

/* Runs until it is told to end. Its lease stays: an agent that is started again within it goes on.
 */
static int agent_run(struct agent *agent)
{
    sigset_t signals;
    int got;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    (void)signal(SIGCHLD, SIG_DFL); /* ignored by who started it, it would hide how programs end */
    log_stamp();
    log_info("started server=%s address=%s etcd=%s ttl=%u", agent->options->target.wire.server,
             agent->options->address, agent->options->etcd, agent->options->ttl_s);
    notify_manager("READY=1");
    do {
        agent_round(agent);
        uint64_t next_ms =
            agent->memory.adding[0] != '\0' ? ADDING_MS : agent->ttl_ms / AGENT_ROUNDS;
        const struct timespec wait = {.tv_sec = (time_t)(next_ms / S_MS),
                                      .tv_nsec = (long)(next_ms % S_MS) * (long)(MS_US * MS_US)};

        got = sigtimedwait(&signals, NULL, &wait);
    } while (got < 0);
    log_info("stopping signal=SIG%s", sigabbrev_np(got));
    return EXIT_STATUS_DONE;
}

static int agent_begin(struct agent *agent)
{
    const struct online_options *options = agent->options;

    if (options->word_count > 0) {
        return agent_show(agent);
    }
    if (options->init) {
        return agent_init(agent);
    }
    return options->force ? agent_force(agent) : agent_run(agent);
}

static bool agent_check(const struct online_options *options)
{
    const char *address = options->address;

    if (online_is_http(&options->target)) {
        (void)verb_complain(stderr, "the status page is for looking only: give -s the address that "
                                    "memcached clients use");
        return false;
    }
    if (options->word_count > 0 && strcmp(options->words[0], "status") != 0) {
        (void)verb_complain(stderr, "what is \"%s\"? usage: rollcall agent [options] [status]",
                            options->words[0]);
        return false;
    }
    if (options->word_count == 0 && !options->init && !options->force &&
        (address == NULL || (address[0] != '/' && strchr(address, ':') == NULL) ||
         strlen(address) > AGENT_ADDRESS_MAX || strchr(address, ' ') != NULL)) {
        (void)verb_complain(stderr, "--address HOST:PORT is missing: where other nodes can follow "
                                    "the daemon of this one");
        return false;
    }
    return true;
}

/* All endpoints are asked well within a lease; an operator waits longer. */
static unsigned agent_etcd_timeout(const struct online_options *options)
{
    bool runs = options->word_count == 0 && !options->init && !options->force;
    unsigned parts = strchr(options->etcd, ',') != NULL ? 2 : 3; /* of a lease */

    return runs ? options->ttl_s * S_MS / parts : options->target.timeout_ms;
}

static int agent_main_run(const struct online_options *options)
{
    const struct agent_etcd_options etcd_options = {
        .endpoints = options->etcd,
        .auth_file = options->etcd_auth,
        .ca = options->etcd_ca,
        .cert = options->etcd_cert,
        .key = options->etcd_key,
        .timeout_ms = agent_etcd_timeout(options),
    };
    char error[AGENT_ETCD_ERROR_MAX];

    if (!agent_check(options)) {
        return EXIT_STATUS_USAGE;
    }
    log_setup("rollcall agent", LOG_LEVEL_INFO);
    struct agent_etcd *etcd = agent_etcd_create(&etcd_options, error);

    if (etcd == NULL) {
        return (int)verb_complain(stderr, "%s", error);
    }
    struct agent *agent = memory_zalloc(sizeof(*agent));

    agent_set_up(agent, options, etcd);
    int status = agent_begin(agent);

    agent_lock_end(&agent->lock);
    free(agent);
    agent_etcd_destroy(etcd);
    return status;
}

int agent_main(int argc, char **argv)
{
    static const char *const takes[] = {
        "etcd", "etcd-auth", "etcd-ca",      "etcd-cert", "etcd-key", "address", "group",
        "ttl",  "on-change", "follows-only", "not-alone", "init",     "force",   NULL};
    static const struct online_verb verb = {
        .name = "agent",
        .words = "[status]",
        .does =
            "Runs beside a daemon with replication.follow: agent, until it is stopped: by keys in "
            "etcd one node\nof a group leads, the others follow it, and one of them takes over "
            "when it is gone.\nstatus: says who leads. --init: begins a group, with this node. "
            "--force: this node is to lead, though\nsomething may be lost; it says what.",
        .examples = "  rollcall agent --address 10.0.0.1:11211 --etcd "
                    "http://10.0.0.7:2379,http://10.0.0.8:2379\n"
                    "  rollcall agent --init\n"
                    "  rollcall agent status\n",
        .takes = takes,
        .words_least = 0,
        .words_most = 1,
        .run = agent_main_run,
    };

    return online_main(&verb, argc, argv);
}
