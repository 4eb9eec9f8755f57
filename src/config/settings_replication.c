/* settings_replication.c: the keys of replication: names, who is followed, and as which user. */
#include "config/settings_draft.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "config/auth.h"
#include "net/net.h"

/* Returns whether a node, or a group of them, may have this name. */
static bool settings_node_name_good(const char *name)
{
    size_t length = 0;

    for (; name[length] != '\0'; length++) {
        bool letter = (name[length] >= 'a' && name[length] <= 'z') ||
                      (name[length] >= '0' && name[length] <= '9');

        if (!letter && (length == 0 || strchr("_-.", name[length]) == NULL)) {
            return false;
        }
    }
    return length >= 1 && length <= SETTINGS_NODE_NAME_MAX;
}

bool settings_follows_agent(const struct settings *settings)
{
    return settings->replication.follow != NULL &&
           strcmp(settings->replication.follow, SETTINGS_FOLLOW_AGENT) == 0;
}

static void check_node_name(struct settings_draft *draft, const char *option, const char *name)
{
    if (name != NULL && !settings_node_name_good(name)) {
        settings_error(draft, settings_draft_place(draft, option),
                       "%s must be a-z 0-9 _ - and ., with a letter or digit in front", option);
    }
}

/* Over which bytes go to the one that is followed. */
static bool follows_by_tls(const struct settings *settings)
{
    const char *follow = settings->replication.follow;

    return settings->tls.enabled && *follow != '/' &&
           strncmp(follow, NET_PLAIN_PREFIX, strlen(NET_PLAIN_PREFIX)) != 0;
}

static void check_follow(struct settings_draft *draft)
{
    struct settings *settings = draft->settings;
    const struct settings_place *place = settings_draft_place(draft, "replication.follow");

    if (settings->replication.follow == NULL) {
        return;
    }
    if (settings->replication.name == NULL || settings->data == NULL) {
        settings_error(draft, place,
                       "replication.follow needs replication.name, which the node that is followed "
                       "knows this one by, and the key data");
    }
    if (settings_follows_agent(settings)) {
        return;
    }
    char *whole =
        settings_address_remote(draft, settings->replication.follow, "replication.follow", place);

    if (whole == NULL) {
        return;
    }
    free(settings->replication.follow);
    settings->replication.follow = whole;
    if (follows_by_tls(settings) && settings->tls.ca == NULL) {
        settings_error(draft, place,
                       "replication.follow over TLS needs tls.ca: who signed the certificate of "
                       "the node that is followed; or notls: in front of the address");
    }
}

static void load_login(struct settings_draft *draft)
{
    struct settings *settings = draft->settings;
    const char *file = settings->replication.credentials_file;
    const struct settings_place *place = settings_draft_place(draft, "replication.credentials");
    char error[AUTH_ERROR_MAX], login[AUTH_LINE_MAX + 1];
    unsigned exposed_mode;

    if (file == NULL) {
        return;
    }
    struct auth *auth = auth_load(file, &exposed_mode, error);

    if (auth == NULL) {
        settings_error(draft, place, "replication.credentials %s", error);
    } else if (exposed_mode != 0) {
        settings_error(draft, place,
                       "replication.credentials %s: every user of this machine can read or change "
                       "the password (mode %04o); do: chmod o-rwx %s",
                       file, exposed_mode, file);
    } else if (!auth_login(auth, login, error)) {
        settings_error(draft, place, "replication.credentials %s %s", file, error);
    } else {
        settings->replication.login = memory_strdup(login);
        explicit_bzero(login, sizeof(login));
    }
    auth_destroy(auth);
}

void settings_replication_check(struct settings_draft *draft)
{
    const struct settings *settings = draft->settings;

    check_node_name(draft, "replication.name", settings->replication.name);
    check_node_name(draft, "replication.group", settings->replication.group);
    check_node_name(draft, "replication.ack-by", settings->replication.ack_by);
    if (settings_follows_agent(settings) && settings->replication.ack_by != NULL) {
        settings_error(draft, settings_draft_place(draft, "replication.ack-by"),
                       "replication.ack-by does not go with follow: agent, which says who is "
                       "waited for: leave it out");
    }
    if (settings->replication.ack == SETTINGS_ACK_REPLICA && !settings_follows_agent(settings) &&
        (settings->replication.name == NULL || settings->replication.ack_by == NULL)) {
        settings_error(draft, settings_draft_place(draft, "replication.ack"),
                       "replication.ack: replica needs replication.name, and in ack-by the name "
                       "of the follower to wait for");
    }
    if (settings->replication.name != NULL && settings->data == NULL) {
        settings_error(draft, settings_draft_place(draft, "replication.name"),
                       "replication.name needs a directory for the journal: give the key data");
    }
    check_follow(draft);
    load_login(draft);
}
