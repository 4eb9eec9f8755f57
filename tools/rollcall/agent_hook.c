/* agent_hook.c: a program of the operator's, run when another node leads. Nothing waits for it. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"
#include "tools/rollcall/agent.h"

#define HOOK_MS_MAX 60000u /* it is killed then */
#define EPOCH_TEXT  24

extern char **environ;

static const char *agent_hook_address(const struct agent_keys *keys)
{
    const struct agent_node *leader = agent_node_of(keys, keys->state.leader);

    return leader != NULL ? leader->address : "-";
}

/* One at a time; one that hangs is killed. */
static bool agent_hook_is_free(struct agent *agent)
{
    struct agent_hook *hook = &agent->hook;
    int status;

    if (hook->pid == 0) {
        return true;
    }
    if (agent->view.now_ms > hook->until_ms) {
        kill(hook->pid, SIGKILL);
    }
    pid_t ended = waitpid(hook->pid, &status, WNOHANG);

    if (ended == 0) {
        return false;
    }
    hook->pid = 0;
    if (ended < 0) {
        log_warning("what became of the program of --on-change is not known: %s", strerror(errno));
        return true;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        log_warning("the program of --on-change failed status=%d",
                    WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    return true;
}

static void agent_hook_run(struct agent *agent, char *role)
{
    struct agent_keys *keys = &agent->view.keys;
    char epoch[EPOCH_TEXT], address[AGENT_ADDRESS_MAX + 1];
    char *const words[] = {
        agent->options->on_change, role, keys->state.leader, address, epoch, agent->group, NULL};
    posix_spawnattr_t attributes;
    sigset_t none;

    snprintf(epoch, sizeof(epoch), "%" PRIu64, keys->state.epoch);
    snprintf(address, sizeof(address), "%s", agent_hook_address(keys));
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int error = posix_spawn(&agent->hook.pid, words[0], NULL, &attributes, words, environ);

    posix_spawnattr_destroy(&attributes);
    if (error != 0) {
        agent->hook.pid = 0;
        log_warning("the program of --on-change cannot be run: %s", strerror(error));
    }
    agent->hook.until_ms = agent->view.now_ms + HOOK_MS_MAX;
}

void agent_hook_look(struct agent *agent)
{
    const struct agent_view *view = &agent->view;
    char now[AGENT_TEXT_MAX];
    char leader[] = "leader";
    char follower[] = "follower";
    bool leads = view->daemon.leads && view->keys.alive_mine;
    bool is_free = agent_hook_is_free(agent); /* whatever else is known: it ends one that hangs */

    if (agent->options->on_change == NULL || !view->keys.known || !view->daemon.known ||
        !agent_is_settled(&view->keys)) {
        return;
    }
    snprintf(now, sizeof(now), "%d %" PRIu64 " %s %s", leads, view->keys.state.epoch,
             view->keys.state.leader, agent_hook_address(&view->keys));
    if (strcmp(now, agent->hook.told) != 0 && is_free) {
        memcpy(agent->hook.told, now, sizeof(now));
        agent_hook_run(agent, leads ? leader : follower);
    }
}
