/* agent_ask.c: what an agent asks of its daemon, and tells it. A connection for each. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "tools/rollcall/agent.h"

#define COMMAND_MAX    400
#define TIMEOUT_MS_MIN 200u
#define PROMOTE_MS     4000u /* the daemon first carries out what it has received */

static bool agent_ask_fail(struct agent *agent, const char *why)
{
    return fail_with(agent->daemon_trouble, sizeof(agent->daemon_trouble), "%s", why);
}

/* Of an answer the lines; the last one to `last`. */
static bool agent_exchange(struct agent *agent, const char *command, unsigned timeout_ms,
                           online_line_fn *take, void *context)
{
    struct online_target target = agent->options->target;

    target.timeout_ms = timeout_ms > TIMEOUT_MS_MIN ? timeout_ms : TIMEOUT_MS_MIN;
    struct online_link *link = online_open(&target, true);
    bool answered =
        online_status(link) == EXIT_STATUS_DONE && online_ask(link, command, take, context);

    agent->view.daemon.absent = online_is_absent(link);
    agent->asked = online_status(link);
    if (!answered) {
        (void)agent_ask_fail(agent, online_error(link));
    }
    online_close(link);
    return answered;
}

static unsigned agent_ask_timeout(const struct agent *agent)
{
    return (unsigned)(agent->ttl_ms / AGENT_ROUNDS);
}

/* ---- its state ---- */

static void agent_ask_note_follower(struct agent_daemon_view *daemon, const char *name,
                                    size_t length)
{
    if (daemon->follower_count < AGENT_FOLLOWERS_MAX && length <= AGENT_NAME_MAX) {
        snprintf(daemon->followers[daemon->follower_count++], AGENT_NAME_MAX + 1, "%.*s",
                 (int)length, name);
    }
}

/* `name` ends at `end`: of the follower that was noted last, whose figures come one after another.
 */
static void agent_ask_note_written(struct agent_daemon_view *daemon, const char *name,
                                   const char *end, const char *value)
{
    size_t last = daemon->follower_count - 1, length = (size_t)(end - name);

    if (daemon->follower_count > 0 && strlen(daemon->followers[last]) == length &&
        memcmp(daemon->followers[last], name, length) == 0) {
        daemon->followers_written[last] = strtoull(value, NULL, 10);
    }
}

/* caught_up of a follower comes after its state: only one that streams has ever caught up. */
static void agent_ask_note(void *context, const char *line, size_t length)
{
    static const char caught_up[] = ":caught_up", written[] = ":written";
    struct agent *agent = context;
    struct agent_daemon_view *daemon = &agent->view.daemon;
    char key[AGENT_ADDRESS_MAX + 1], value[AGENT_ADDRESS_MAX + 1];

    (void)length;
    if (sscanf(line, "STAT %255s %255s", key, value) != 2) {
        return;
    }
    const char *end = strstr(key, caught_up);
    const char *written_end = strstr(key, written);

    if (strcmp(key, "role") == 0) {
        daemon->known = strcmp(value, "single") != 0;
        daemon->leads = strcmp(value, "leader") == 0;
    } else if (strcmp(key, "name") == 0) {
        snprintf(agent->name, sizeof(agent->name), "%.*s", AGENT_NAME_MAX, value);
    } else if (strcmp(key, "group") == 0) {
        snprintf(agent->group, sizeof(agent->group), "%.*s", AGENT_NAME_MAX, value);
    } else if (strcmp(key, "identity") == 0) {
        snprintf(agent->identity, sizeof(agent->identity), "%.*s", AGENT_IDENTITY_MAX, value);
    } else if (strcmp(key, "reign") == 0) {
        daemon->epoch = strtoull(value, NULL, 10);
    } else if (strcmp(key, "written") == 0) {
        daemon->written = strtoull(value, NULL, 10);
    } else if (strcmp(key, "leader") == 0) {
        snprintf(daemon->leader, sizeof(daemon->leader), "%s",
                 strcmp(value, "none") == 0 ? "" : value);
    } else if (strcmp(key, "caught_up") == 0) {
        daemon->caught_up = strcmp(value, "1") == 0;
    } else if (strcmp(key, "can_lead") == 0) {
        daemon->can_lead = strcmp(value, "1") == 0;
    } else if (strcmp(key, "full") == 0) {
        daemon->full = strcmp(value, "1") == 0;
    } else if (end != NULL && end[strlen(caught_up)] == '\0' && strcmp(value, "1") == 0) {
        agent_ask_note_follower(daemon, key, (size_t)(end - key));
    } else if (written_end != NULL && written_end[strlen(written)] == '\0') {
        agent_ask_note_written(daemon, key, written_end, value);
    }
}

bool agent_ask_state(struct agent *agent)
{
    struct agent_daemon_view *daemon = &agent->view.daemon;

    memset(daemon, 0, sizeof(*daemon));
    daemon->can_lead = true; /* unless it says otherwise: an earlier version says nothing */
    if (!agent_exchange(agent, "stats replication\r\n", agent_ask_timeout(agent), agent_ask_note,
                        agent)) {
        daemon->known = false;
        return false;
    }
    return daemon->known ||
           agent_ask_fail(agent, "it has no replication.name: an agent is for nodes "
                                 "that have one, and replication.follow: agent");
}

/* ---- its orders ---- */

static void agent_ask_keep(void *context, const char *line, size_t length)
{
    snprintf(context, ONLINE_ERROR_MAX, "%.*s", (int)length, line);
}

/* True: OK, and what is after it in answer[]. */
static bool agent_ask_order(struct agent *agent, const char *command, unsigned timeout_ms,
                            char answer[ONLINE_ERROR_MAX])
{
    static const char refused[] = "SERVER_ERROR ";

    answer[0] = '\0';
    if (!agent_exchange(agent, command, timeout_ms, agent_ask_keep, answer)) {
        return false;
    }
    if (strncmp(answer, "OK", strlen("OK")) == 0) {
        return true;
    }
    return agent_ask_fail(
        agent, answer + (strncmp(answer, refused, strlen(refused)) == 0 ? strlen(refused) : 0));
}

bool agent_ask_promote(struct agent *agent, uint64_t epoch)
{
    char command[COMMAND_MAX], answer[ONLINE_ERROR_MAX];

    snprintf(command, sizeof(command), "promote 1 %" PRIu64 " force\r\n", epoch);
    return agent_ask_order(agent, command, PROMOTE_MS, answer);
}

bool agent_ask_follow(struct agent *agent, const char *address)
{
    char command[COMMAND_MAX], answer[ONLINE_ERROR_MAX];

    snprintf(command, sizeof(command), "follow-to 1 %s force\r\n", address);
    return agent_ask_order(agent, command, agent_ask_timeout(agent), answer);
}

bool agent_ask_hold(struct agent *agent, const char *waits, uint64_t *written, uint64_t *acked)
{
    char command[COMMAND_MAX], answer[ONLINE_ERROR_MAX];
    uint64_t of[2];

    snprintf(command, sizeof(command), "lead 1 %" PRIu64 " %" PRIu64 " %s\r\n",
             agent->view.keys.state.epoch, agent->word_ms, waits);
    agent->memory.told_ms = agent->word_ms; /* even if the answer is lost */
    if (!agent_ask_order(agent, command, agent_ask_timeout(agent), answer)) {
        return false;
    }
    int count = sscanf(answer, "OK %" SCNu64 " %" SCNu64 " %" SCNu64, written, &of[0], &of[1]);

    *acked = count >= 2 ? of[count - 2] : 0;
    return count >= 1 || agent_ask_fail(agent, answer);
}
